#include "wire/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

struct hf_tls {
    SSL *ssl;
    BIO *in;  /* bytes from the socket; ssl's */
    BIO *out; /* bytes for it; ssl's */
    hf_tls_context *context;
    hf_allocator memory;
    bool is_client;
};

/* ---- The context: an SSL_CTX, which counts its users itself ----------------------------------------------------------------- */

static SSL_CTX *ctx_of(hf_tls_context *context)
{
    return (SSL_CTX *)(void *)context;
}

static hf_status fail_tls(hf_op *op, hf_status status, const char *what)
{
    char why[160] = "no reason given";
    unsigned long error = ERR_peek_last_error();
    if (error != 0) {
        ERR_error_string_n(error, why, sizeof why);
    }
    ERR_clear_error();
    return hf_fail(op, status, "%s: %s", what, why);
}

/* The first protocol of the peer's list that we know. */
static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len, const unsigned char *names,
                           unsigned len, void *state)
{
    (void)ssl;
    (void)state;
    for (unsigned at = 0; at < len && names[at] <= len - at - 1; at += names[at] + 1u) {
        if (names[at] == 2 && memcmp(names + at + 1, "h2", 2) == 0) {
            *ret_name = names + at + 1;
            *ret_len = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The first certificate is the server's own, the others are its chain. */
static bool use_certificate(SSL_CTX *ctx, BIO *text)
{
    X509 *own = PEM_read_bio_X509(text, NULL, NULL, NULL);
    bool is_fine = own != NULL && SSL_CTX_use_certificate(ctx, own) == 1;
    X509_free(own);
    while (is_fine) {
        X509 *next = PEM_read_bio_X509(text, NULL, NULL, NULL);
        if (next == NULL) {
            ERR_clear_error();
            break;
        }
        is_fine = SSL_CTX_add0_chain_cert(ctx, next) == 1;
    }
    return is_fine;
}

static bool use_key(SSL_CTX *ctx, BIO *text)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);
    bool is_fine = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    return is_fine;
}

static bool use_client_ca(SSL_CTX *ctx, BIO *text)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    int count = 0;
    X509 *ca = NULL;
    while ((ca = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        bool is_fine = X509_STORE_add_cert(store, ca) == 1 && SSL_CTX_add_client_CA(ctx, ca) == 1;
        X509_free(ca);
        if (!is_fine) {
            return false;
        }
        count++;
    }
    ERR_clear_error();
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL); /* wire-T2 */
    return count > 0;
}

static hf_status with_text(hf_op *op, SSL_CTX *ctx, hf_str text, bool (*use)(SSL_CTX *ctx, BIO *text), const char *what)
{
    BIO *bio = text.len <= INT32_MAX ? BIO_new_mem_buf(text.data, (int)text.len) : NULL;
    bool is_fine = bio != NULL && use(ctx, bio);
    BIO_free(bio);
    return is_fine ? HF_OK : fail_tls(op, HF_ERR_INVALID, what);
}

hf_status hf_tls_context_open(hf_op *op, hf_str certificate, hf_str key, hf_str client_ca, hf_tls_context **ret_context)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL) {
        return fail_tls(op, HF_ERR_NOMEM, "TLS cannot be set up");
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); /* wire-T1 */
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    hf_status status = with_text(op, ctx, certificate, use_certificate, "the certificate cannot be used");
    if (status == HF_OK) {
        status = with_text(op, ctx, key, use_key, "the key of the certificate cannot be used");
    }
    if (status == HF_OK && client_ca.len > 0) {
        status = with_text(op, ctx, client_ca, use_client_ca, "the CA of clients cannot be used");
    }
    if (status != HF_OK) {
        SSL_CTX_free(ctx);
        return status;
    }
    *ret_context = (hf_tls_context *)(void *)ctx;
    return HF_OK;
}

static bool use_ca(SSL_CTX *ctx, BIO *text)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    int count = 0;
    X509 *ca = NULL;
    while ((ca = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        bool is_fine = X509_STORE_add_cert(store, ca) == 1;
        X509_free(ca);
        if (!is_fine) {
            return false;
        }
        count++;
    }
    ERR_clear_error();
    return count > 0;
}

hf_status hf_tls_client_context_open(hf_op *op, hf_str ca, hf_str certificate, hf_str key, hf_tls_context **ret_context)
{
    static const unsigned char PROTOCOLS[] = {2, 'h', '2'};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL) {
        return fail_tls(op, HF_ERR_NOMEM, "TLS cannot be set up");
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); /* wire-T1 */
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); /* wire-T3 */
    hf_status status = SSL_CTX_set_alpn_protos(ctx, PROTOCOLS, sizeof PROTOCOLS) == 0
                           ? HF_OK
                           : fail_tls(op, HF_ERR_NOMEM, "TLS cannot be set up");
    if (status == HF_OK && ca.len > 0) {
        status = with_text(op, ctx, ca, use_ca, "the CA of the server cannot be used");
    } else if (status == HF_OK && SSL_CTX_set_default_verify_paths(ctx) != 1) {
        status = fail_tls(op, HF_ERR_INVALID, "the certificates of the system cannot be used");
    }
    if (status == HF_OK && certificate.len > 0) {
        status = with_text(op, ctx, certificate, use_certificate, "the certificate cannot be used");
    }
    if (status == HF_OK && key.len > 0) {
        status = with_text(op, ctx, key, use_key, "the key of the certificate cannot be used");
    }
    if (status != HF_OK) {
        SSL_CTX_free(ctx);
        return status;
    }
    *ret_context = (hf_tls_context *)(void *)ctx;
    return HF_OK;
}

hf_tls_context *hf_tls_context_ref(hf_tls_context *context)
{
    int ok = SSL_CTX_up_ref(ctx_of(context));
    hf_assert(ok == 1);
    return context;
}

void hf_tls_context_unref(hf_tls_context *context)
{
    SSL_CTX_free(ctx_of(context));
}

/* ---- A connection ------------------------------------------------------------------------------------------------------------ */

static hf_status open_either(hf_op *op, hf_tls_context *context, hf_allocator memory, hf_tls **ret_tls)
{
    hf_tls *tls = memory.allocate(memory.state, sizeof *tls, 0);
    if (tls == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a TLS connection");
    }
    *tls = (hf_tls){
        .memory = memory, .ssl = SSL_new(ctx_of(context)), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem())};
    if (tls->ssl == NULL || tls->in == NULL || tls->out == NULL) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        SSL_free(tls->ssl);
        memory.release(memory.state, tls, sizeof *tls);
        return fail_tls(op, HF_ERR_NOMEM, "no memory for a TLS connection");
    }
    SSL_set_bio(tls->ssl, tls->in, tls->out); /* from here on they are ssl's */
    *ret_tls = tls;
    return HF_OK;
}

hf_status hf_tls_open(hf_op *op, hf_tls_context *context, hf_allocator memory, hf_tls **ret_tls)
{
    HF_TRY(open_either(op, context, memory, ret_tls));
    SSL_set_accept_state((*ret_tls)->ssl);
    return HF_OK;
}

/* wire-T3: a certificate names a host, or an address. */
static bool expect_name(SSL *ssl, const char *name)
{
    char bare[256];
    size_t len = strlen(name);
    bool is_v6 = len > 2 && name[0] == '[' && name[len - 1] == ']';
    if (len == 0 || len >= sizeof bare) {
        return false;
    }
    memcpy(bare, name + (is_v6 ? 1 : 0), len - (is_v6 ? 2 : 0));
    bare[len - (is_v6 ? 2 : 0)] = '\0';
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), bare) == 1) {
        return true;
    }
    ERR_clear_error();
    return SSL_set1_host(ssl, bare) == 1 && SSL_set_tlsext_host_name(ssl, bare) == 1;
}

hf_status hf_tls_connect(hf_op *op, hf_tls_context *context, const char *server_name, hf_allocator memory,
                         hf_tls **ret_tls)
{
    hf_tls *tls = NULL;
    HF_TRY(open_either(op, context, memory, &tls));
    if (!expect_name(tls->ssl, server_name)) {
        hf_tls_close(tls);
        return fail_tls(op, HF_ERR_INVALID, "the name of the server cannot be used");
    }
    SSL_set_connect_state(tls->ssl);
    tls->is_client = true;
    *ret_tls = tls;
    return HF_OK;
}

void hf_tls_close(hf_tls *tls)
{
    if (tls != NULL) {
        SSL_free(tls->ssl);
        tls->memory.release(tls->memory.state, tls, sizeof *tls);
    }
}

hf_status hf_tls_feed(hf_op *op, hf_tls *tls, hf_str bytes)
{
    hf_assert(bytes.len <= INT32_MAX);
    int put = BIO_write(tls->in, bytes.data, (int)bytes.len);
    return put == (int)bytes.len ? HF_OK : fail_tls(op, HF_ERR_NOMEM, "no memory for bytes of a TLS connection");
}

/* wire-T1: of a client; a server has refused everything else already. */
static bool has_h2(const hf_tls *tls)
{
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(tls->ssl, &name, &len);
    return !tls->is_client || (len == 2 && memcmp(name, "h2", 2) == 0);
}

hf_status hf_tls_read(hf_op *op, hf_tls *tls, void *buf, size_t len, size_t *ret_len)
{
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, buf, len, ret_len);
    if (result == 1) {
        hf_assert(SSL_is_init_finished(tls->ssl) == 1);                             /* wire-T2: no early data */
        hf_assert(!tls->is_client || SSL_get_verify_result(tls->ssl) == X509_V_OK); /* wire-T3 */
        return has_h2(tls) ? HF_OK : hf_fail(op, HF_ERR_DENIED, "the server does not speak HTTP/2 over TLS");
    }
    long verdict = tls->is_client ? SSL_get_verify_result(tls->ssl) : X509_V_OK;
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return HF_ERR_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return HF_ERR_CLOSED;
    default:
        if (verdict != X509_V_OK) {
            ERR_clear_error();
            return hf_fail(op, HF_ERR_DENIED, "the certificate of the server is refused: %s",
                           X509_verify_cert_error_string(verdict));
        }
        return fail_tls(op, HF_ERR_DENIED, "TLS");
    }
}

hf_status hf_tls_write(hf_op *op, hf_tls *tls, hf_str bytes)
{
    while (bytes.len > 0) {
        size_t put = 0;
        ERR_clear_error();
        if (SSL_write_ex(tls->ssl, bytes.data, bytes.len, &put) != 1) {
            return fail_tls(op, HF_ERR_DENIED, "TLS"); /* the output has room for everything: this does not pass */
        }
        hf_assert(put > 0 && put <= bytes.len); /* wire-T1 */
        bytes.data += put;
        bytes.len -= put;
    }
    return HF_OK;
}

void hf_tls_take(hf_tls *tls, hf_buf *out)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(tls->out, &bytes);
    if (len > 0) {
        hf_buf_put(out, bytes, (size_t)len);
        (void)BIO_reset(tls->out);
    }
}

bool hf_tls_is_open(const hf_tls *tls)
{
    return SSL_is_init_finished(tls->ssl) == 1;
}

/* ---- Hashes ------------------------------------------------------------------------------------------------------------------ */

void hf_sha256(hf_str bytes, unsigned char ret_hash[HF_SHA256_LEN])
{
    _Static_assert(HF_SHA256_LEN == SHA256_DIGEST_LENGTH, "the same hash");
    (void)SHA256((const unsigned char *)(bytes.data != NULL ? bytes.data : ""), bytes.len, ret_hash);
}

bool hf_hash_equal(const unsigned char a[HF_SHA256_LEN], const unsigned char b[HF_SHA256_LEN])
{
    return CRYPTO_memcmp(a, b, HF_SHA256_LEN) == 0;
}
