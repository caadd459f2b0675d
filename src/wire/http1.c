#include "wire/http1.h"

#include <llhttp.h>

#include <string.h>

/* The field whose value comes next. */
typedef enum field_kind { OTHER, HOST, AUTHORIZATION } field_kind;

struct hf_http1 {
    hf_allocator memory;
    llhttp_t parser;
    llhttp_settings_t settings;
    size_t len;   /* bytes of the head so far */
    int fields;   /* of those, fields */
    int hosts;    /* and of those, Host */
    char last;    /* the last byte: '\n' = a line begins */
    int status;   /* 0 = goes on, else the result */
    bool is_name; /* the last piece was one of a name */
    hf_buf name;
    field_kind kind;
    hf_buf target;
    hf_buf host;
    hf_buf authorization;
};

static int refuse(hf_http1 *http, int status)
{
    http->status = http->status == 0 ? status : http->status;
    return -1;
}

static bool is_name(const hf_buf *name, const char *word)
{
    if (name->len != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < name->len; i++) {
        char lower = (char)(name->data[i] >= 'A' && name->data[i] <= 'Z' ? name->data[i] + 32 : name->data[i]);
        if (lower != word[i]) {
            return false;
        }
    }
    return true;
}

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    hf_http1 *http = parser->data;
    hf_buf_put(&http->target, at, len);
    return hf_buf_status(&http->target) == HF_OK ? 0 : refuse(http, 414);
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
    hf_http1 *http = parser->data;
    if (!http->is_name) {
        http->name.len = 0;
        http->is_name = true;
        http->fields++;
    }
    hf_buf_put(&http->name, at, len);
    return hf_buf_status(&http->name) == HF_OK && http->fields <= HF_HTTP1_FIELDS_MAX ? 0 : refuse(http, 431);
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    hf_http1 *http = parser->data;
    if (http->is_name) {
        http->is_name = false;
        http->kind = is_name(&http->name, "host")            ? HOST
                     : is_name(&http->name, "authorization") ? AUTHORIZATION
                                                             : OTHER;
        http->hosts += http->kind == HOST;
    }
    hf_buf *value = http->kind == HOST ? &http->host : http->kind == AUTHORIZATION ? &http->authorization : NULL;
    if (value != NULL) {
        hf_buf_put(value, at, len);
        return hf_buf_status(value) == HF_OK ? 0 : refuse(http, 431);
    }
    return 0;
}

static int on_head(llhttp_t *parser)
{
    hf_http1 *http = parser->data;
    if (parser->http_major != 1) {
        return refuse(http, 505);
    }
    if (http->hosts > 1 || (http->hosts == 0 && parser->http_minor >= 1)) { /* wire-P2 */
        return refuse(http, 400);
    }
    if (parser->content_length > 0 || (parser->flags & F_TRANSFER_ENCODING) != 0 || parser->upgrade != 0) {
        return refuse(http, 413);
    }
    http->status = 200;
    return -1; /* the head is all that we want */
}

hf_status hf_http1_open(hf_op *op, hf_allocator memory, hf_http1 **ret_http)
{
    hf_http1 *http = memory.allocate(memory.state, sizeof *http, 0);
    if (http == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a request");
    }
    *http = (hf_http1){.memory = memory, .last = '\n'};
    hf_buf_init(&http->name, memory, HF_HTTP1_VALUE_LEN_MAX);
    hf_buf_init(&http->target, memory, HF_HTTP1_TARGET_LEN_MAX);
    hf_buf_init(&http->host, memory, HF_HTTP1_VALUE_LEN_MAX);
    hf_buf_init(&http->authorization, memory, HF_HTTP1_VALUE_LEN_MAX);
    llhttp_settings_init(&http->settings);
    http->settings.on_url = on_url;
    http->settings.on_header_field = on_name;
    http->settings.on_header_value = on_value;
    http->settings.on_headers_complete = on_head;
    llhttp_init(&http->parser, HTTP_REQUEST, &http->settings);
    http->parser.data = http;
    *ret_http = http;
    return HF_OK;
}

void hf_http1_close(hf_http1 *http)
{
    if (http != NULL) {
        hf_buf_deinit(&http->name);
        hf_buf_deinit(&http->target);
        hf_buf_deinit(&http->host);
        hf_buf_deinit(&http->authorization);
        http->memory.release(http->memory.state, http, sizeof *http);
    }
}

/* Gives the parser one line at a time, so that a line that begins with white space is never given to it (wire-P2). */
int hf_http1_recv(hf_http1 *http, hf_str bytes)
{
    size_t at = 0;
    while (at < bytes.len && http->status == 0) {
        bool begins = http->last == '\n' && http->len > 0;
        if (begins && (bytes.data[at] == ' ' || bytes.data[at] == '\t')) {
            (void)refuse(http, 400);
            break;
        }
        const char *end = memchr(bytes.data + at, '\n', bytes.len - at);
        size_t len = end != NULL ? (size_t)(end - (bytes.data + at)) + 1 : bytes.len - at;
        if (http->len + len > HF_HTTP1_HEAD_LEN_MAX) {
            (void)refuse(http, 431);
            break;
        }
        if (llhttp_execute(&http->parser, bytes.data + at, len) != HPE_OK) {
            (void)refuse(http, 400);
        }
        http->len += len;
        http->last = bytes.data[at + len - 1];
        at += len;
    }
    hf_assert(http->len <= HF_HTTP1_HEAD_LEN_MAX); /* wire-P1 */
    return http->status;
}

const char *hf_http1_method(const hf_http1 *http)
{
    return llhttp_method_name((llhttp_method_t)http->parser.method);
}

static hf_str str_of(const hf_buf *buf)
{
    return hf_str_of_len(buf->data, buf->len);
}

hf_str hf_http1_path(const hf_http1 *http)
{
    hf_str target = str_of(&http->target);
    const char *query = target.len > 0 ? memchr(target.data, '?', target.len) : NULL;
    return query != NULL ? hf_str_of_len(target.data, (size_t)(query - target.data)) : target;
}

hf_str hf_http1_host(const hf_http1 *http)
{
    return str_of(&http->host);
}

hf_str hf_http1_authorization(const hf_http1 *http)
{
    return str_of(&http->authorization);
}
