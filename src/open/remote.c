/* temporal://HOST:PORT: the files that the address names are read, and the remote service is opened with them. */
#include "open/open.h"

#include <string.h>

#if __has_include("remote/remote.h") /* HF_WITH_REMOTE: the layers that this one may use have it */

#include "remote/remote.h"
#include "wire/tls.h"

enum { FILE_LEN_MAX = 1 << 20 }; /* bytes of certificates, or of a key */

/* The content of a file, in the arena. */
static hf_status read_file(hf_op *op, hf_env *env, hf_arena *arena, hf_str path, hf_str *ret_text)
{
    const char *name = hf_arena_copy(arena, path).data;
    char *text = name != NULL ? hf_arena_take(arena, FILE_LEN_MAX, 1) : NULL;
    size_t len = 0;
    size_t got = 1;
    int fd = -1;
    if (text == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to read a file");
    }
    HF_TRY(env->ops->file_open(env, op, name, HF_FILE_READ, &fd));
    hf_status status = HF_OK;
    while (status == HF_OK && got > 0 && len < FILE_LEN_MAX) {
        status = env->ops->file_read(env, op, fd, text + len, FILE_LEN_MAX - len, &got);
        len += status == HF_OK ? got : 0;
    }
    hf_op ignored;
    hf_op_init(&ignored);
    (void)env->ops->file_close(env, &ignored, fd);
    if (status == HF_OK && (len == 0 || len == FILE_LEN_MAX)) {
        status = hf_fail(op, HF_ERR_INVALID, "%s is %s", name, len == 0 ? "empty" : "too long");
    }
    *ret_text = hf_str_of_len(text, len);
    return status;
}

static hf_status open_tls(hf_op *op, hf_env *env, hf_arena *arena, const hf_service_address *place,
                          hf_tls_context **ret_tls)
{
    hf_str texts[3] = {{0}};
    const hf_str files[3] = {place->ca, place->certificate, place->key};
    if ((place->certificate.len > 0) != (place->key.len > 0)) {
        return hf_fail(op, HF_ERR_INVALID, "cert= and key= in an address belong together");
    }
    for (size_t i = 0; i < HF_COUNT_OF(files); i++) {
        if (files[i].len > 0) {
            HF_TRY(read_file(op, env, arena, files[i], &texts[i]));
        }
    }
    return hf_tls_client_context_open(op, texts[0], texts[1], texts[2], ret_tls);
}

/* On this machine nobody listens in. */
static bool is_local(hf_str host)
{
    static const hf_str LOCAL[] = {HF_STR_INIT("localhost"), HF_STR_INIT("127.0.0.1"), HF_STR_INIT("[::1]")};
    for (size_t i = 0; i < HF_COUNT_OF(LOCAL); i++) {
        if (hf_str_equal(host, LOCAL[i])) {
            return true;
        }
    }
    return false;
}

/* The key without the blanks around it: files end with a newline. Its bytes are in no message (remote-R5). */
static hf_status take_api_key(hf_op *op, const hf_service_address *place, hf_str text, hf_str *ret_key)
{
    while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]) != NULL) {
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.data[0]) != NULL) {
        text.data++;
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~') {
            return hf_fail(op, HF_ERR_INVALID, "the API key has a byte that cannot be in a header");
        }
    }
    if (text.len == 0) {
        return hf_fail(op, HF_ERR_INVALID, "the API key is empty");
    }
    if (!place->is_tls && !is_local(place->host)) {
        return hf_fail(op, HF_ERR_INVALID, "an API key is only sent with tls=yes, or to a server on this machine");
    }
    *ret_key = text;
    return HF_OK;
}

static hf_status open_with(hf_op *op, hf_env *env, hf_arena *arena, const hf_service_address *place,
                           const char *api_key, hf_remote_options *options, hf_service **ret_service)
{
    hf_str key = api_key != NULL ? hf_str_of(api_key) : (hf_str){0};
    if (api_key == NULL && place->api_key_file.len > 0) {
        HF_TRY(read_file(op, env, arena, place->api_key_file, &key));
    }
    if (api_key != NULL || place->api_key_file.len > 0) {
        HF_TRY(take_api_key(op, place, key, &options->api_key));
    }
    if (place->is_tls) {
        HF_TRY(open_tls(op, env, arena, place, &options->tls));
    }
    options->host = hf_arena_copy(arena, place->host).data;
    options->port = hf_arena_copy(arena, place->port).data;
    options->server_name = place->server_name.len > 0 ? hf_arena_copy(arena, place->server_name).data : NULL;
    return arena->status == HF_OK ? hf_remote_open(op, env, options, ret_service)
                                  : hf_fail(op, HF_ERR_NOMEM, "no memory for a remote service");
}

hf_status hf_open_remote(hf_op *op, hf_env *env, const hf_service_address *place, const char *api_key, hf_log_sink log,
                         void *log_state, hf_service **ret_service)
{
    hf_arena arena;
    hf_remote_options options = {.log = log, .log_state = log_state};
    hf_arena_init(&arena, hf_env_memory(env));
    hf_status status = open_with(op, env, &arena, place, api_key, &options, ret_service);
    hf_tls_context_unref(options.tls);
    hf_arena_deinit(&arena);
    return status;
}

#else

hf_status hf_open_remote(hf_op *op, hf_env *env, const hf_service_address *place, const char *api_key, hf_log_sink log,
                         void *log_state, hf_service **ret_service)
{
    (void)env;
    (void)place;
    (void)api_key;
    (void)log;
    (void)log_state;
    (void)ret_service;
    return hf_fail(op, HF_ERR_UNSUPPORTED, "this library was built without temporal:// (HF_WITH_REMOTE)");
}

#endif
