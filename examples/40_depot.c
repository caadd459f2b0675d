/* A depot in front of an HTTP API: it asks once for a hundred callers, answers while the API is down, takes changes
 * meanwhile, and sends them when the API is back. The API is in this program, too, so that the example can stop it.
 *
 *     40_depot                    the whole story in one process
 *     40_depot api ADDRESS        only the API; "tcp:127.0.0.1:0" takes any port and prints it
 *     40_depot client ADDRESS STEP...   only the client: get, now, put=NAME, settled, stay
 *
 * `./dev demo depot` runs API and client as two processes, and kills them with kill -9 between the steps. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The API: GET /users/1 and PUT /users/1 ---------------------------------------------------------------------- */

typedef struct api {
    hf_scope *scope;
    hf_listener *listener;
    char address[HF_ADDRESS_LEN_MAX];
    char user[64]; /* the only user */
    int revision;
    int gets;
    bool is_loud; /* prints each change */
} api;

typedef struct visit {
    api *api;
    hf_conn *conn;
} visit;

/* Reads up to the end of the headers and of a body of Content-Length. */
static hf_status read_message(hf_conn *conn, char *text, size_t capacity)
{
    size_t len = 0;
    for (;;) {
        size_t got = 0;
        HF_TRY(hf_conn_read(conn, text + len, capacity - 1 - len, &got));
        len += got;
        text[len] = '\0';
        const char *body = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "Content-Length: ");
        size_t want = length != NULL ? (size_t)strtoul(length + 16, NULL, 10) : 0;
        if (got == 0 || len == capacity - 1 || (body != NULL && strlen(body + 4) >= want)) {
            return HF_OK;
        }
    }
}

static hf_status answer(void *arg)
{
    visit *one = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = one->conn;
    api *a = one->api;
    char text[1024];
    char etag[32];
    free(one);
    HF_TRY(read_message(conn, text, sizeof text));
    (void)snprintf(etag, sizeof etag, "\"%d\"", a->revision);
    const char *status = "200 OK";
    const char *body = a->user;
    if (strncmp(text, "PUT ", 4) == 0) {
        (void)snprintf(a->user, sizeof a->user, "%s", strstr(text, "\r\n\r\n") + 4);
        a->revision++;
        if (a->is_loud) {
            printf("  API: the user is %s now\n", a->user);
        }
    } else {
        a->gets++;
        if (strstr(text, "If-None-Match") != NULL && strstr(text, etag) != NULL) {
            status = "304 Not Modified";
            body = "";
        }
    }
    (void)snprintf(etag, sizeof etag, "\"%d\"", a->revision);
    int len =
        snprintf(text, sizeof text, "HTTP/1.1 %s\r\nETag: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                 status, etag, strlen(body), body);
    return hf_conn_write(conn, text, (size_t)len);
}

static hf_status serve(void *arg)
{
    api *a = arg;
    for (;;) {
        visit *one = malloc(sizeof *one);
        if (one == NULL) {
            return HF_ERR_NOMEM;
        }
        one->api = a;
        hf_status status = hf_listener_accept(a->listener, &one->conn);
        if (status == HF_OK) {
            status = hf_fork(a->scope, answer, one);
        }
        if (status != HF_OK) {
            free(one);
            return status;
        }
    }
}

static hf_status start_api(api *a)
{
    HF_TRY(hf_scope_open(&a->scope, .name = "api", .join = HF_JOIN_DISCARD));
    HF_TRY(hf_listener_open(a->address, &a->listener));
    /* With the port that it got. */
    (void)snprintf(a->address, sizeof a->address, "%s", hf_listener_address(a->listener));
    return hf_fork(a->scope, serve, a);
}

static void stop_api(api *a)
{
    (void)hf_scope_close(a->scope);
    (void)hf_listener_close(a->listener);
}

/* ---- How the depot talks to it ----------------------------------------------------------------------------------- */

static hf_status talk(api *a, const char *request, char *response, size_t capacity)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open(a->address, &conn));
    HF_TRY(hf_conn_write(conn, request, strlen(request)));
    HF_TRY(read_message(conn, response, capacity));
    return strstr(response, "\r\n\r\n") != NULL ? HF_OK : HF_ERR_RESET;
}

/* The etag of a response. */
static hf_status take_etag(const char *response, hf_reply *reply)
{
    char etag[32];
    const char *at = strstr(response, "ETag: ");
    if (at == NULL || sscanf(at, "ETag: %31s", etag) != 1) {
        return HF_OK;
    }
    return hf_reply_etag(reply, etag);
}

static hf_status fetch_user(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    char text[512];
    char response[1024];
    (void)snprintf(text, sizeof text, "GET /users/%.*s HTTP/1.1\r\nHost: api\r\n%s%s%s\r\n", (int)request->key.id_len,
                   (const char *)request->key.id, request->etag != NULL ? "If-None-Match: " : "",
                   request->etag != NULL ? request->etag : "", request->etag != NULL ? "\r\n" : "");
    HF_TRY(talk(state, text, response, sizeof response));
    int status = atoi(response + strlen("HTTP/1.1 "));
    if (status == 304) {
        return hf_reply_not_modified(reply);
    }
    if (status != 200) {
        return hf_reply_fail(reply, HF_REPLY_UNKNOWN, .http_status = status);
    }
    HF_TRY(take_etag(response, reply));
    const char *body = strstr(response, "\r\n\r\n") + 4;
    return hf_reply_value(reply, body, strlen(body));
}

static hf_status push_user(void *state, const hf_push_request *request, hf_reply *reply)
{
    char text[512];
    char response[1024];
    (void)snprintf(text, sizeof text,
                   "PUT /users/%.*s HTTP/1.1\r\nHost: api\r\nIdempotency-Key: %s\r\nContent-Length: %zu\r\n\r\n%.*s",
                   (int)request->key.id_len, (const char *)request->key.id, request->id, request->len,
                   (int)request->len, (const char *)request->data);
    HF_TRY(talk(state, text, response, sizeof response));
    int status = atoi(response + strlen("HTTP/1.1 "));
    return status == 200 ? take_etag(response, reply) : hf_reply_fail(reply, HF_REPLY_UNKNOWN, .http_status = status);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static hf_status print_user(hf_depot *users, hf_fresh fresh)
{
    static const char *const PLACES[] = {"memory", "the file", "the API", "a change of ours"};
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    hf_depot_info info;
    HF_TRY(hf_depot_get(users, hf_depot_key_of("acme", "user", "1"), &user, .fresh = fresh, .ret_info = &info));
    printf("  %.*s, from %s%s\n", (int)hf_value_len(user), (const char *)hf_value_data(user), PLACES[info.place],
           info.is_stale ? ", old" : "");
    return HF_OK;
}

static hf_status ask(void *arg)
{
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    return hf_depot_get(arg, hf_depot_key_of("acme", "user", "1"), &user);
}

static hf_status run(void *arg)
{
    (void)arg;
    api a = {.address = "tcp:127.0.0.1:0", .user = "Ada", .revision = 1};
    HF_TRY(start_api(&a));
    {
        HF_AUTO(hf_depot_close) hf_depot *users = NULL;
        HF_TRY(hf_depot_open("users", &users, .fetch = fetch_user, .push = push_user, .state = &a,
                             .file = "sqlite:users.db", .retries = HF_OFF));
        printf("a hundred ask at once:\n");
        HF_AUTO(hf_scope_close) hf_scope *askers = NULL;
        HF_TRY(hf_scope_open(&askers));
        for (int i = 0; i < 100; i++) {
            HF_TRY(hf_fork(askers, ask, users));
        }
        HF_TRY(hf_join(askers));
        printf("  the API was asked %d time%s\n", a.gets, a.gets == 1 ? "" : "s");
        HF_TRY(print_user(users, HF_FRESH_CACHED));
    }
    stop_api(&a);

    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    hf_depot_write *write = NULL;
    printf("the API is down, and the program starts again:\n");
    HF_TRY(hf_depot_open("users", &users, .fetch = fetch_user, .push = push_user, .state = &a,
                         .file = "sqlite:users.db", .retries = HF_OFF));
    HF_TRY(print_user(users, HF_FRESH_CACHED));
    HF_TRY(print_user(users, HF_FRESH_OR_STALE));
    HF_TRY(hf_depot_put(users, hf_depot_key_of("acme", "user", "1"), "Grace", 5, .ret_write = &write));
    HF_TRY(print_user(users, HF_FRESH_CACHED));
    printf("  the API still has %s\n", a.user);

    printf("the API is back:\n");
    HF_TRY(start_api(&a));
    HF_TRY(hf_depot_write_wait(write, .timeout = hf_seconds(60)));
    hf_depot_write_free(write);
    printf("  the API has %s\n", a.user);
    HF_TRY(print_user(users, HF_FRESH_NOW));
    stop_api(&a);
    return HF_OK;
}

/* ---- The same in two processes, which can be killed -------------------------------------------------------------- */

static hf_status run_api(void *arg)
{
    api a = {.user = "Ada", .revision = 1, .is_loud = true};
    (void)snprintf(a.address, sizeof a.address, "%s", (const char *)arg);
    HF_TRY(start_api(&a));
    printf("%s\n", a.address);
    hf_status status = hf_sleep(HF_SPAN_UNLIMITED);
    stop_api(&a);
    return status;
}

/* Until the API has accepted every change. */
static hf_status wait_until_settled(hf_depot *users)
{
    hf_depot_counts counts;
    hf_depot_news news;
    HF_AUTO(hf_collector_close) hf_collector *events = NULL;
    HF_TRY(hf_depot_events(users, &events)); /* before the count, so that nothing is missed */
    HF_TRY(hf_depot_stat(users, &counts));
    while (counts.pending > 0) {
        HF_TRY(hf_collector_next(events, &news, .timeout = hf_seconds(60)));
        HF_TRY(hf_depot_stat(users, &counts));
    }
    printf("  all changes are settled\n");
    return HF_OK;
}

static hf_status take_step(hf_depot *users, const char *step)
{
    if (strcmp(step, "get") == 0 || strcmp(step, "now") == 0) {
        return print_user(users, step[0] == 'g' ? HF_FRESH_CACHED : HF_FRESH_NOW);
    }
    if (strncmp(step, "put=", 4) == 0) {
        return hf_depot_put(users, hf_depot_key_of("acme", "user", "1"), step + 4, strlen(step + 4));
    }
    if (strcmp(step, "settled") == 0) {
        return wait_until_settled(users);
    }
    return strcmp(step, "stay") == 0 ? hf_sleep(HF_SPAN_UNLIMITED) : hf_raise(HF_ERR_INVALID, "no step '%s'", step);
}

static hf_status run_client(void *arg)
{
    char **words = arg; /* the address, then the steps */
    api a = {.revision = 0};
    (void)snprintf(a.address, sizeof a.address, "%s", words[0]);
    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    HF_TRY(hf_depot_open("users", &users, .fetch = fetch_user, .push = push_user, .state = &a,
                         .file = "sqlite:users.db", .retries = HF_OFF));
    for (char **step = words + 1; *step != NULL; step++) {
        HF_TRY(take_step(users, *step));
    }
    return HF_OK;
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a process that is killed has printed its lines */
    if (argc > 2 && strcmp(argv[1], "api") == 0) {
        HF_OR_DIE(hf_run(run_api, argv[2]));
    } else if (argc > 2 && strcmp(argv[1], "client") == 0) {
        HF_OR_DIE(hf_run(run_client, argv + 2));
    } else {
        (void)remove("users.db"); /* begin from nothing */
        HF_OR_DIE(hf_run(run, NULL));
    }
    return 0;
}
