/* Figures and health over HTTP/1.1, see meter.h: a fiber accepts connections, and each has a fiber that answers one request. */
#include "server/meter.h"

#include "fiber/io/conn.h"
#include "fiber/sched/wait.h"
#include "server/server_private.h"
#include "service/call.h"
#include "wire/http1.h"

#include <holdfast/wait.h>

enum {
    REQUESTS_MAX = 32,            /* at once; more are closed at once */
    REQUEST_SECONDS = 10,         /* for a request, and as long for its answer */
    LINGER_SECONDS = 2,           /* for the peer to read its answer */
    ACCEPT_PAUSE_MS = 50,         /* after a failed accept */
    FIGURES_LEN_MAX = 1024 * 1024 /* bytes of an answer */
};
#define SECOND_NS INT64_C(1000000000)

struct hf_meter {
    hf_env *env;
    hf_allocator memory;
    hf_service *service;
    hf_meter_options options;
    hf_listener *listener;
    hf_scope *scope;
    atomic_int requests;
    hf_spin lock;        /* of the next three */
    hf_keyring *keys;    /* NULL = none are needed */
    hf_door *door;       /* NULL = it is not open yet, or stops */
    hf_door_stats stats; /* the last ones, of a door that stops */
};

/* ---- Figures ---------------------------------------------------------------------------------------------------------------- */

static void put_figure(hf_buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    hf_buf_putf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\nholdfast_%s %llu\n", name, help, name, type, name,
                (unsigned long long)value);
}

/* The figures of the methods that were called. */
static void put_routes(hf_meter *meter, hf_buf *out)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    static const struct {
        const char *name;
        const char *help;
    } SERIES[] = {{"method_calls_total", "Answered calls, by method."},
                  {"method_failures_total", "Of those, with a code other than OK."}};
    for (int series = 0; series < 2; series++) {
        hf_buf_putf(out, "# HELP holdfast_%s %s\n# TYPE holdfast_%s counter\n", SERIES[series].name,
                    SERIES[series].help, SERIES[series].name);
        for (size_t i = 0; i < count; i++) {
            hf_spin_lock(&meter->lock);
            uint64_t calls = meter->door != NULL ? atomic_load(&meter->door->by_route[i].calls) : 0;
            uint64_t failures = meter->door != NULL ? atomic_load(&meter->door->by_route[i].failures) : 0;
            hf_spin_unlock(&meter->lock);
            if (calls > 0) {
                hf_buf_putf(out, "holdfast_%s{service=\"%s\",method=\"%s\"} %llu\n", SERIES[series].name,
                            routes[i].service, routes[i].name, (unsigned long long)(series == 0 ? calls : failures));
            }
        }
    }
}

static void put_figures(hf_meter *meter, hf_buf *out)
{
    hf_spin_lock(&meter->lock);
    if (meter->door != NULL) {
        hf_door_stats_get(meter->door, &meter->stats);
    }
    hf_door_stats stats = meter->stats;
    hf_spin_unlock(&meter->lock);
    put_figure(out, "connections", "gauge", "Open connections.", stats.links);
    put_figure(out, "connections_total", "counter", "Connections that were accepted.", stats.links_total);
    put_figure(out, "connections_cut_total", "counter", "Connections that were cut: floods, broken frames, silence.",
               stats.cut);
    put_figure(out, "calls", "gauge", "Calls that are not answered yet, waiting polls among them.", stats.streams);
    put_figure(out, "calls_total", "counter", "Answered calls.", stats.calls);
    put_figure(out, "failures_total", "counter", "Of those, with a code other than OK.", stats.failures);
    put_figure(out, "limited_total", "counter", "Of those, refused because their namespace was over its rate.",
               stats.limited);
    put_figure(out, "tasks_returned_total", "counter", "Tasks given back because the poll's stream was gone.",
               stats.returned);
    put_routes(meter, out);
    if (meter->options.figures != NULL) {
        meter->options.figures(meter->options.figures_state, out);
    }
}

/* ---- Requests --------------------------------------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } REASONS[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {431, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(REASONS); i++) {
        if (REASONS[i].status == status) {
            return REASONS[i].reason;
        }
    }
    return "Error";
}

/* A name could be one that a web page made to point here. */
static bool is_host_fine(hf_str host)
{
    size_t len = host.len;
    if (len > 0 && host.data[0] == '[') {
        return true;
    }
    const char *colon = len > 0 ? memchr(host.data, ':', len) : NULL;
    hf_str name = hf_str_of_len(host.data, colon != NULL ? (size_t)(colon - host.data) : len);
    bool is_number = name.len > 0;
    for (size_t i = 0; i < name.len; i++) {
        is_number &= (name.data[i] >= '0' && name.data[i] <= '9') || name.data[i] == '.';
    }
    return is_number || hf_str_equal(name, HF_STR("localhost")) || len == 0;
}

/* Whether the caller may see the figures. */
static bool has_key(hf_meter *meter, hf_str authorization)
{
    static const char BEARER[] = "Bearer ";
    size_t len = sizeof BEARER - 1;
    hf_spin_lock(&meter->lock);
    hf_keyring *keys = meter->keys != NULL ? hf_keyring_ref(meter->keys) : NULL;
    hf_spin_unlock(&meter->lock);
    int64_t now_s = meter->env->ops->wall_now(meter->env).ns / SECOND_NS;
    bool is_bearer = authorization.len >= len && memcmp(authorization.data, BEARER, len) == 0;
    bool is_fine = keys == NULL ||
                   (is_bearer && hf_keyring_find(keys, hf_str_of_len(authorization.data + len, authorization.len - len),
                                                 now_s) != NULL);
    hf_keyring_unref(keys);
    return is_fine;
}

/* Whether the engine answers. */
static bool is_ready(hf_meter *meter, hf_buf *out)
{
    hf_spin_lock(&meter->lock);
    bool is_closed = meter->door == NULL;
    hf_spin_unlock(&meter->lock);
    if (is_closed) {
        hf_buf_puts(out, "starting or stopping\n");
        return false;
    }
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_call call;
    hf_pb_get_system_info_request request = {0};
    hf_arena_init(&arena, meter->memory);
    hf_call_init(&call, HF_METHOD_GET_SYSTEM_INFO, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, meter->service, &call);
    hf_buf_putf(out, "%s\n", status == HF_OK ? "ok" : op.message);
    hf_arena_deinit(&arena);
    return status == HF_OK;
}

static int answer(hf_meter *meter, const hf_http1 *http, hf_buf *out)
{
    hf_str path = hf_http1_path(http);
    bool is_head = strcmp(hf_http1_method(http), "HEAD") == 0;
    if (!is_head && strcmp(hf_http1_method(http), "GET") != 0) {
        return 405;
    }
    if (meter->options.is_local && !is_host_fine(hf_http1_host(http))) {
        return 403;
    }
    if (hf_str_equal(path, HF_STR("/livez"))) {
        hf_buf_puts(out, "ok\n");
        return 200;
    }
    if (hf_str_equal(path, HF_STR("/readyz"))) {
        return is_ready(meter, out) ? 200 : 503;
    }
    if (hf_str_equal(path, HF_STR("/metrics"))) {
        if (!has_key(meter, hf_http1_authorization(http))) {
            return 401;
        }
        put_figures(meter, out);
        return 200;
    }
    return 404;
}

static void write_all(hf_conn *conn, const hf_buf *bytes, int64_t until)
{
    size_t sent = 0;
    while (sent < bytes->len) {
        size_t len = 0;
        hf_status status = hf_conn_try_write(conn, bytes->data + sent, bytes->len - sent, &len);
        sent += len;
        if (status == HF_ERR_AGAIN) {
            status = hf_conn_wait(conn, HF_WRITABLE, (hf_instant){until});
        }
        if (status != HF_OK) {
            return;
        }
    }
}

/* Reads a request. 0 = the peer has gone. */
static int read_request(hf_meter *meter, hf_conn *conn, hf_http1 *http)
{
    char bytes[4096];
    int status = 0;
    int64_t until = meter->env->ops->now(meter->env).ns + REQUEST_SECONDS * SECOND_NS;
    while (status == 0) {
        size_t len = 0;
        hf_status read = hf_conn_try_read(conn, bytes, sizeof bytes, &len);
        if (read == HF_ERR_AGAIN) {
            read = hf_conn_wait(conn, HF_READABLE, (hf_instant){until});
            if (read == HF_ERR_TIMEOUT) {
                return 408;
            }
            if (read != HF_OK) {
                return 0;
            }
        } else if (read != HF_OK || len == 0) {
            return 0;
        } else {
            status = hf_http1_recv(http, hf_str_of_len(bytes, len));
        }
    }
    return status;
}

/* Closing while bytes of the peer are on their way would make the system throw away what it has not read yet. */
static void linger(hf_meter *meter, hf_conn *conn)
{
    char bytes[512];
    size_t len = 1;
    int64_t until = meter->env->ops->now(meter->env).ns + LINGER_SECONDS * SECOND_NS;
    hf_status status = hf_conn_shutdown(conn);
    while (status == HF_OK && len > 0) {
        status = hf_conn_try_read(conn, bytes, sizeof bytes, &len);
        if (status == HF_ERR_AGAIN) {
            len = 1;
            status = hf_conn_wait(conn, HF_READABLE, (hf_instant){until});
        }
    }
}

typedef struct talk {
    hf_meter *meter;
    hf_conn *conn;
} talk;

static void talk_with(hf_meter *meter, hf_conn *conn)
{
    hf_http1 *http = NULL;
    hf_op op;
    hf_op_init(&op);
    if (hf_http1_open(&op, meter->memory, &http) != HF_OK) {
        return;
    }
    hf_buf body;
    hf_buf head;
    hf_buf_init(&body, meter->memory, FIGURES_LEN_MAX);
    hf_buf_init(&head, meter->memory, FIGURES_LEN_MAX + 1024);
    int status = read_request(meter, conn, http);
    bool is_read = status == 200;
    if (is_read) {
        status = answer(meter, http, &body);
    }
    if (status != 0 && body.len == 0) {
        hf_buf_putf(&body, "%d %s\n", status, reason_of(status));
    }
    if (status != 0 && hf_buf_status(&body) == HF_OK) {
        hf_buf_putf(
            &head,
            "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %zu\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s%sConnection: close\r\n\r\n",
            status, reason_of(status), body.len, status == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
            status == 405 ? "Allow: GET, HEAD\r\n" : "");
        if (!is_read || strcmp(hf_http1_method(http), "HEAD") != 0) {
            hf_buf_put(&head, body.data, body.len);
        }
        write_all(conn, &head, meter->env->ops->now(meter->env).ns + REQUEST_SECONDS * SECOND_NS);
        linger(meter, conn);
    }
    hf_buf_deinit(&head);
    hf_buf_deinit(&body);
    hf_http1_close(http);
}

static hf_status talk_body(void *arg)
{
    talk *t = arg;
    hf_meter *meter = t->meter;
    talk_with(meter, t->conn);
    (void)hf_conn_close(t->conn);
    meter->env->ops->release(meter->env, t, sizeof *t);
    atomic_fetch_sub(&meter->requests, 1);
    return HF_OK;
}

/* Takes `conn`. */
static void admit(hf_meter *meter, hf_conn *conn)
{
    talk *t = atomic_load(&meter->requests) < REQUESTS_MAX ? meter->env->ops->allocate(meter->env, sizeof *t, 0) : NULL;
    if (t == NULL) {
        (void)hf_conn_close(conn);
        return;
    }
    *t = (talk){meter, conn};
    atomic_fetch_add(&meter->requests, 1);
    if (hf_fork(meter->scope, talk_body, t, .name = "metrics") != HF_OK) {
        atomic_fetch_sub(&meter->requests, 1);
        (void)hf_conn_close(conn);
        meter->env->ops->release(meter->env, t, sizeof *t);
    }
}

static hf_status accept_all(void *arg)
{
    hf_meter *meter = arg;
    for (;;) {
        hf_conn *conn = NULL;
        hf_status status = hf_listener_accept(meter->listener, &conn);
        if (status == HF_OK) {
            admit(meter, conn);
        } else if (status == HF_ERR_CLOSED || status == HF_ERR_CANCELED ||
                   hf_sleep(hf_milliseconds(ACCEPT_PAUSE_MS)) != HF_OK) {
            return HF_OK;
        }
    }
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------- */

hf_status hf_meter_open(hf_op *op, hf_service *service, const char *address, const hf_meter_options *options,
                        hf_meter **ret_meter, char *ret_address)
{
    hf_assert(hf_runtime_current() != NULL); /* on a fiber */
    hf_env *env = hf_runtime_current()->env;
    hf_meter *meter = env->ops->allocate(env, sizeof *meter, 0);
    if (meter == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for metrics");
    }
    *meter = (hf_meter){
        .env = env, .memory = hf_env_memory(env), .service = service, .options = *options, .keys = options->keys};
    if (meter->keys != NULL) {
        (void)hf_keyring_ref(meter->keys);
    }
    hf_status status = hf_listener_open(address, &meter->listener, .replace = true);
    if (status == HF_OK) {
        status = hf_scope_open(&meter->scope, .name = "metrics", .join = HF_JOIN_DISCARD);
    }
    if (status == HF_OK) {
        status = hf_fork(meter->scope, accept_all, meter, .name = "accept");
    }
    if (status != HF_OK) {
        (void)hf_fail(op, status, "%s", hf_error_text());
        (void)hf_listener_close(meter->listener);
        (void)hf_scope_close(meter->scope);
        hf_keyring_unref(meter->keys);
        env->ops->release(env, meter, sizeof *meter);
        return status;
    }
    if (ret_address != NULL) {
        memcpy(ret_address, hf_listener_address(meter->listener), strlen(hf_listener_address(meter->listener)) + 1);
    }
    *ret_meter = meter;
    return HF_OK;
}

void hf_meter_attach(hf_meter *meter, hf_door *door)
{
    if (meter != NULL) {
        hf_spin_lock(&meter->lock);
        meter->door = door;
        hf_spin_unlock(&meter->lock);
    }
}

void hf_meter_renew(hf_meter *meter, hf_keyring *keys)
{
    if (meter == NULL || keys == NULL) {
        return;
    }
    (void)hf_keyring_ref(keys);
    hf_spin_lock(&meter->lock);
    hf_keyring *old = keys; /* of a meter that needs none */
    if (meter->keys != NULL) {
        old = meter->keys;
        meter->keys = keys;
    }
    hf_spin_unlock(&meter->lock);
    hf_keyring_unref(old);
}

void hf_meter_drain(hf_meter *meter)
{
    if (meter != NULL) {
        hf_spin_lock(&meter->lock);
        if (meter->door != NULL) {
            hf_door_stats_get(meter->door, &meter->stats);
        }
        meter->door = NULL;
        hf_spin_unlock(&meter->lock);
    }
}

void hf_meter_close(hf_meter *meter)
{
    if (meter == NULL) {
        return;
    }
    (void)hf_listener_close(meter->listener);
    (void)hf_scope_close(meter->scope); /* cancels requests that are under way */
    hf_assert(atomic_load(&meter->requests) == 0);
    hf_keyring_unref(meter->keys);
    meter->env->ops->release(meter->env, meter, sizeof *meter);
}
