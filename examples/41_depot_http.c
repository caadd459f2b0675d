/* A depot in front of a real HTTP server, asked with libcurl. curl blocks the thread that calls it, so the fetcher and the
 * pusher run on a pool (.on), and fibers go on meanwhile.
 *
 *     41_depot_http http://127.0.0.1:8080 */
#include <holdfast/holdfast.h>

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct http {
    const char *base; /* "http://127.0.0.1:8080" */
} http;

/* ---- One call of curl -------------------------------------------------------------------------------------------- */

typedef struct exchange {
    char body[4096];
    size_t len;
    char etag[256];
    long max_age; /* seconds; -1 = the server did not say */
    long retry_after;
} exchange;

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
    exchange *one = arg;
    size_t len = size * count;
    if (len > sizeof one->body - one->len) {
        return 0; /* too long: curl gives up */
    }
    memcpy(one->body + one->len, data, len);
    one->len += len;
    return len;
}

static size_t take_header(char *line, size_t size, size_t count, void *arg)
{
    exchange *one = arg;
    size_t len = size * count;
    char text[512];
    (void)snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), line);
    const char *age = strstr(text, "max-age=");
    if (strncasecmp(text, "ETag: ", 6) == 0) {
        (void)sscanf(text + 6, "%255s", one->etag);
    } else if (strncasecmp(text, "Cache-Control: ", 15) == 0 && age != NULL) {
        one->max_age = strtol(age + 8, NULL, 10);
    } else if (strncasecmp(text, "Retry-After: ", 13) == 0) {
        one->retry_after = strtol(text + 13, NULL, 10);
    }
    return len;
}

/* Called by curl now and then: a fetch that nobody waits for any more is given up. */
static int look(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    (void)arg;
    (void)down_all;
    (void)down;
    (void)up_all;
    (void)up;
    return hf_canceled() != HF_OK;
}

/* `data` NULL = without a body. The status is HTTP's. */
static hf_status talk(const http *api, const char *method, hf_depot_key key, struct curl_slist *headers,
                      const void *data, size_t len, hf_instant deadline, hf_reply *reply, exchange *ret_one,
                      long *ret_status)
{
    char url[512];
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        curl_slist_free_all(headers);
        return HF_ERR_NOMEM;
    }
    (void)snprintf(url, sizeof url, "%s/%s/%.*s", api->base, key.type, (int)key.id_len, (const char *)key.id);
    *ret_one = (exchange){.max_age = -1};
    int64_t left = (deadline.ns - hf_now(NULL).ns) / 1000000;
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(left > 1 ? left : 1));
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_one);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, ret_one);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look);
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    if (data != NULL) {
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)len);
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, data);
    }
    CURLcode code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (code == CURLE_OK) {
        return HF_OK;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        return HF_ERR_CANCELED;
    }
    hf_reply_class why = code == CURLE_OPERATION_TIMEDOUT                                            ? HF_REPLY_TIMEOUT
                         : code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ? HF_REPLY_TLS
                                                                                                     : HF_REPLY_NETWORK;
    return hf_reply_fail(reply, why, .message = curl_easy_strerror(code));
}

/* What the headers say about the value. */
static hf_status take_headers(const exchange *one, hf_reply *reply)
{
    if (one->etag[0] != '\0') {
        HF_TRY(hf_reply_etag(reply, one->etag));
    }
    return one->max_age < 0 ? HF_OK
                            : hf_reply_max_age(reply, one->max_age > 0 ? hf_seconds(one->max_age) : HF_SPAN_OFF);
}

static struct curl_slist *header(struct curl_slist *list, const char *name, const char *value)
{
    char line[1200];
    (void)snprintf(line, sizeof line, "%s: %s", name, value);
    return curl_slist_append(list, line);
}

/* ---- What the depot calls ---------------------------------------------------------------------------------------- */

static hf_status fetch_it(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    exchange one;
    long status = 0;
    struct curl_slist *headers = request->etag != NULL ? header(NULL, "If-None-Match", request->etag) : NULL;
    HF_TRY(talk(state, "GET", request->key, headers, NULL, 0, request->deadline, reply, &one, &status));
    HF_TRY(take_headers(&one, reply));
    if (status == 304) {
        return hf_reply_not_modified(reply);
    }
    if (status != 200) { /* 404 is "not found"; 429 and 5xx are tried again */
        return hf_reply_fail(reply, HF_REPLY_UNKNOWN, .http_status = (int)status,
                             .retry_after = hf_seconds(one.retry_after));
    }
    return hf_reply_value(reply, one.body, one.len);
}

static hf_status push_it(void *state, const hf_push_request *request, hf_reply *reply)
{
    exchange one;
    long status = 0;
    struct curl_slist *headers = header(NULL, "Idempotency-Key", request->id);
    headers = request->if_match != NULL ? header(headers, "If-Match", request->if_match) : headers;
    headers = request->if_none ? header(headers, "If-None-Match", "*") : headers;
    const char *method = request->verb == HF_WRITE_REMOVE ? "DELETE" : "PUT";
    HF_TRY(talk(state, method, request->key, headers, request->data, request->len, request->deadline, reply, &one,
                &status));
    HF_TRY(take_headers(&one, reply));
    if (status == 412) { /* somebody else has changed it: here is what they have */
        HF_TRY(hf_reply_value(reply, one.body, one.len));
        return HF_ERR_CONFLICT;
    }
    if (status >= 200 && status < 300) {
        return HF_OK;
    }
    return hf_reply_fail(reply, HF_REPLY_UNKNOWN, .http_status = (int)status,
                         .retry_after = hf_seconds(one.retry_after));
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static hf_status print_it(hf_depot *users, const char *id, hf_fresh fresh, hf_depot_info *ret_info)
{
    static const char *const PLACES[] = {"memory", "the file", "the server", "a change of ours"};
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_TRY(hf_depot_get(users, hf_depot_key_of("acme", "users", id), &user, .fresh = fresh, .ret_info = ret_info));
    printf("user %s is %.*s, from %s, etag %s\n", id, (int)hf_value_len(user), (const char *)hf_value_data(user),
           PLACES[ret_info->place], ret_info->etag);
    return HF_OK;
}

static hf_status run(void *arg)
{
    hf_depot_info info;
    hf_depot_counts counts;
    hf_depot_write *write = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    HF_TRY(hf_pool_new(&pool, .name = "curl", .limit = 8));
    HF_TRY(hf_depot_open("users", &users, .fetch = fetch_it, .push = push_it, .state = arg, .on = pool));
    HF_TRY(print_it(users, "1", HF_FRESH_CACHED, &info));
    HF_TRY(print_it(users, "1", HF_FRESH_CACHED, &info));
    /* Asked again, with its etag: the server sends no value, only 304. */
    HF_TRY(print_it(users, "1", HF_FRESH_OR_STALE, &info));
    HF_TRY(hf_depot_stat(users, &counts));
    printf("%llu fetches, %llu of them found it unchanged\n", (unsigned long long)counts.fetches,
           (unsigned long long)counts.not_modified);
    HF_TRY(hf_depot_put(users, hf_depot_key_of("acme", "users", "1"), "Grace", 5, .if_match = info.etag,
                        .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write, .timeout = hf_seconds(30)));
    hf_depot_write_free(write);
    HF_TRY(print_it(users, "1", HF_FRESH_NOW, &info));
    hf_status status = print_it(users, "none", HF_FRESH_CACHED, &info);
    printf("user none: %s\n", hf_status_name(status));
    return status == HF_ERR_NOT_FOUND ? HF_OK : HF_ERR_FAILED;
}

int main(int argc, char **argv)
{
    http api = {.base = argc > 1 ? argv[1] : "http://127.0.0.1:8080"};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return 1;
    }
    HF_OR_DIE(hf_run(run, &api));
    curl_global_cleanup();
    return 0;
}
