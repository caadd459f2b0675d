/* Connections, listeners, descriptors, files, names and signals. Nearly every test is one body that runs twice:
 * simulated for many seeds, with short reads and writes, full buffers and latency, and on real sockets with two
 * threads. */
/* labels: threads */
#include "support/support.h"

#include "env/sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const hf_sim_options FAULTS = {.short_io_permille = 200, .full_permille = 100};
static hf_env *sim;      /* of the run at hand; NULL = the operating system */
static hf_body body_now; /* what hf_each_seed runs */
static char folder[64];  /* for sockets and files of real runs */

static void one_seed(uint64_t seed)
{
    sim = hf_sim_begin_with(seed, FAULTS);
    hf_runtime_options options = hf_sim_runtime_options(sim, 1 + (int)(seed % 3));
    HF_CHECK(hf_run_with(body_now, NULL, &options) == HF_OK);
    hf_sim_end(sim, NULL);
    sim = NULL;
}

static void run_simulated(const char *what, uint64_t seeds, hf_body body)
{
    body_now = body;
    hf_each_seed(what, seeds, one_seed);
}

static void run_real(hf_body body)
{
    hf_status status = hf_run(body, NULL, .threads = 2);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
}

static void run_both(const char *what, uint64_t seeds, hf_body body)
{
    run_simulated(what, seeds, body);
    run_real(body);
}

static const char *path_of(const char *name, char *ret_path)
{
    (void)snprintf(ret_path, HF_ADDRESS_LEN_MAX, "%s/%s", sim != NULL ? "/sim" : folder, name);
    return ret_path;
}

static unsigned char pattern(size_t at)
{
    return (unsigned char)((at * 2654435761u) >> 13);
}

static bool is_pattern(const unsigned char *bytes, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != pattern(at + i)) {
            return false;
        }
    }
    return true;
}

/* A listener and both ends of a connection to it. */
typedef struct pair {
    hf_listener *listener;
    hf_conn *near;
    hf_conn *far;
} pair;

static hf_status accept_far(void *arg)
{
    pair *p = arg;
    return hf_listener_accept(p->listener, &p->far);
}

static hf_status open_pair_at(pair *p, const char *address)
{
    HF_TRY(hf_listener_open(address, &p->listener, .replace = true));
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    hf_status status = hf_fork(scope, accept_far, p);
    status = status == HF_OK ? hf_conn_open(hf_listener_address(p->listener), &p->near) : status;
    hf_status joined = hf_join(scope);
    (void)hf_scope_close(scope);
    return status != HF_OK ? status : joined;
}

static hf_status open_pair(pair *p)
{
    return open_pair_at(p, "tcp:127.0.0.1:0");
}

static void close_pair(pair *p)
{
    HF_CHECK(hf_conn_close(p->near) == HF_OK);
    HF_CHECK(hf_conn_close(p->far) == HF_OK);
    HF_CHECK(hf_listener_close(p->listener) == HF_OK);
}

/* ---- Echo and back-pressure -------------------------------------------------------------------------------------- */

enum { CLIENTS = 3 };

typedef struct echo {
    hf_listener *listener;
    hf_scope *scope;
    size_t len;     /* bytes each client sends */
    bool may_break; /* resets are on: an early end is fine, a wrong byte is not */
} echo;

static hf_status serve_conn(void *arg)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = arg;
    unsigned char buf[3000];
    for (;;) {
        size_t len = 0;
        HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
        if (len == 0) {
            return hf_conn_shutdown(conn);
        }
        HF_TRY(hf_conn_write(conn, buf, len));
    }
}

static void drop_conn(void *arg)
{
    (void)hf_conn_close(arg);
}

static hf_status serve(void *arg)
{
    echo *e = arg;
    for (int i = 0; i < CLIENTS; i++) {
        hf_conn *conn = NULL;
        HF_TRY(hf_listener_accept(e->listener, &conn));
        HF_CHECK(strncmp(hf_conn_peer(conn), "tcp:127.0.0.1:", 14) == 0);
        HF_TRY(hf_fork(e->scope, serve_conn, conn, .drop = drop_conn));
    }
    return HF_OK;
}

typedef struct client {
    hf_conn *conn;
    const echo *echo;
} client;

static hf_status send_all(void *arg)
{
    client *c = arg;
    unsigned char buf[5000];
    for (size_t at = 0; at < c->echo->len;) {
        size_t len = c->echo->len - at < sizeof buf ? c->echo->len - at : sizeof buf;
        for (size_t i = 0; i < len; i++) {
            buf[i] = pattern(at + i);
        }
        HF_TRY(hf_conn_write(c->conn, buf, len));
        at += len;
    }
    return hf_conn_shutdown(c->conn);
}

static hf_status receive_all(void *arg)
{
    client *c = arg;
    unsigned char buf[4001];
    size_t at = 0;
    for (;;) {
        size_t len = 0;
        HF_TRY(hf_conn_read(c->conn, buf, sizeof buf, &len));
        if (len == 0) {
            break;
        }
        HF_CHECK(is_pattern(buf, at, len));
        at += len;
    }
    HF_CHECK(at == c->echo->len || c->echo->may_break);
    return HF_OK;
}

/* Writes and reads at the same time, from two fibers. */
static hf_status talk(void *arg)
{
    const echo *e = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open(hf_listener_address(e->listener), &conn));
    client c = {conn, e};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "client"));
    HF_TRY(hf_fork(scope, send_all, &c));
    HF_TRY(hf_fork(scope, receive_all, &c));
    return hf_join(scope);
}

static hf_status echo_with(bool may_break)
{
    echo e = {.len = sim != NULL ? 20000 : 3000000, .may_break = may_break};
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "echo"));
    e.listener = listener;
    e.scope = scope;
    HF_TRY(hf_fork(scope, serve, &e));
    for (int i = 0; i < CLIENTS; i++) {
        HF_TRY(hf_fork(scope, talk, &e));
    }
    return hf_join(scope);
}

static hf_status echo_body(void *arg)
{
    (void)arg;
    return echo_with(false);
}

static void echo_returns_every_byte_under_back_pressure(void **state)
{
    (void)state;
    run_both("echo", 300, echo_body);
}

static hf_status breaking_body(void *arg)
{
    (void)arg;
    (void)echo_with(true); /* whatever happens: it ends, nothing leaks, no byte is wrong */
    return HF_OK;
}

static void one_breaking_seed(uint64_t seed)
{
    hf_sim_options options = FAULTS;
    options.reset_permille = 3;
    options.refuse_permille = 100;
    options.latency_max = hf_milliseconds(20);
    sim = hf_sim_begin_with(seed, options);
    hf_runtime_options runtime = hf_sim_runtime_options(sim, 1 + (int)(seed % 3));
    HF_CHECK(hf_run_with(breaking_body, NULL, &runtime) == HF_OK);
    hf_sim_end(sim, NULL);
    sim = NULL;
}

static void broken_and_refused_connections_end_everything_cleanly(void **state)
{
    (void)state;
    hf_each_seed("resets", 300, one_breaking_seed);
}

static void one_poor_seed(uint64_t seed)
{
    for (uint64_t nth = 1 + seed % 7; nth < 400; nth += 7) {
        sim = hf_sim_begin_with(seed, FAULTS);
        hf_runtime_options runtime = hf_sim_runtime_options(sim, 2);
        hf_sim_fail_allocation(sim, nth, false);
        hf_status status = hf_run_with(breaking_body, NULL, &runtime);
        HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOMEM || status == HF_ERR_LIMIT, "%s", hf_status_name(status));
        hf_sim_end(sim, NULL);
        sim = NULL;
    }
}

static void a_failed_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    hf_each_seed("poor", 7, one_poor_seed);
}

/* ---- Cancel, timeout, close -------------------------------------------------------------------------------------- */

typedef struct blocked {
    pair p;
    hf_status status;
    char text[200]; /* hf_error_text */
} blocked;

static hf_status read_blocked(void *arg)
{
    blocked *b = arg;
    char byte = 0;
    size_t len = 0;
    do {
        b->status = hf_conn_read(b->p.near, &byte, 1, &len);
    } while (b->status == HF_ERR_MISUSE && hf_yield() == HF_OK); /* the test is looking whether we are here */
    (void)snprintf(b->text, sizeof b->text, "%s", hf_error_text());
    return HF_OK;
}

/* More than any buffer takes: this write does not end by itself. */
static hf_status write_blocked(void *arg)
{
    blocked *b = arg;
    static const unsigned char BYTES[64 * 1024 * 1024];
    do {
        b->status = hf_conn_write(b->p.near, BYTES, sizeof BYTES);
    } while (b->status == HF_ERR_MISUSE && hf_yield() == HF_OK);
    return HF_OK;
}

static hf_status accept_blocked(void *arg)
{
    blocked *b = arg;
    hf_conn *conn = NULL;
    do {
        b->status = hf_listener_accept(b->p.listener, &conn);
    } while (b->status == HF_ERR_MISUSE && hf_yield() == HF_OK);
    return HF_OK;
}

/* Returns once others are inside a read, a write and, if asked for, an accept: a second one is refused then. */
static hf_status see_blocked(const pair *p, bool accepts)
{
    char byte = 0;
    size_t len = 0;
    hf_conn *conn = NULL;
    while (hf_conn_read(p->near, &byte, 1, &len, .timeout = HF_SPAN_OFF) != HF_ERR_MISUSE ||
           hf_conn_write(p->near, &byte, 0) != HF_ERR_MISUSE ||
           (accepts && hf_listener_accept(p->listener, &conn, .timeout = HF_SPAN_OFF) != HF_ERR_MISUSE)) {
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status cancel_body(void *arg)
{
    (void)arg;
    blocked b = {.status = HF_OK};
    blocked w = {.status = HF_OK};
    HF_TRY(open_pair(&b.p));
    w.p = b.p;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "blocked"));
    HF_TRY(hf_fork(scope, read_blocked, &b));
    HF_TRY(hf_fork(scope, write_blocked, &w));
    HF_TRY(see_blocked(&b.p, false));
    HF_TRY(hf_scope_cancel(scope, .reason = "enough"));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(b.status == HF_ERR_CANCELED);
    HF_CHECK_SAY(strstr(b.text, "enough") != NULL, "%s", b.text);
    HF_CHECK(w.status == HF_ERR_CANCELED);
    char byte = 0;
    size_t len = 0;
    HF_TRY(hf_conn_write(b.p.far, "x", 1)); /* the connection itself lives */
    HF_CHECK(hf_conn_read(b.p.near, &byte, 1, &len) == HF_OK && byte == 'x');
    close_pair(&b.p);
    return HF_OK;
}

static void a_cancel_ends_a_blocked_read_and_write(void **state)
{
    (void)state;
    run_both("cancel", 300, cancel_body);
}

static hf_status level_body(void *arg)
{
    (void)arg;
    pair p = {0};
    HF_TRY(open_pair(&p));
    HF_TRY(hf_conn_write(p.far, "data", 4));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_scope_cancel(scope));
    char buf[4];
    size_t len = 0;
    hf_conn *conn = NULL;
    HF_CHECK(hf_conn_read(p.near, buf, sizeof buf, &len) == HF_ERR_CANCELED); /* although data is there */
    HF_CHECK(hf_conn_write(p.near, "x", 1) == HF_ERR_CANCELED);
    HF_CHECK(hf_listener_accept(p.listener, &conn) == HF_ERR_CANCELED);
    HF_CHECK(hf_conn_open(hf_listener_address(p.listener), &conn) == HF_ERR_CANCELED);
    HF_CHECK(hf_conn_shutdown(p.near) == HF_OK); /* never waits: cleanup may use it */
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_conn_read(p.near, buf, sizeof buf, &len) == HF_OK && len > 0);
    close_pair(&p);
    return HF_OK;
}

static void a_canceled_fiber_gets_no_data_even_if_it_is_there(void **state)
{
    (void)state;
    run_both("level", 100, level_body);
}

static hf_status timeout_body(void *arg)
{
    (void)arg;
    pair p = {0};
    HF_TRY(open_pair(&p));
    char buf[8];
    size_t len = 0;
    hf_conn *conn = NULL;
    HF_CHECK(hf_conn_read(p.near, buf, sizeof buf, &len, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_error()->status == HF_ERR_TIMEOUT && strstr(hf_error_text(), "hf_conn_read") != NULL);
    HF_CHECK(hf_listener_accept(p.listener, &conn, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT);
    hf_status status = HF_OK;
    static const unsigned char BYTES[65536];
    while (status == HF_OK) {
        status = hf_conn_write(p.near, BYTES, sizeof BYTES, .timeout = hf_milliseconds(2));
    }
    HF_CHECK(status == HF_ERR_TIMEOUT);
    HF_TRY(hf_conn_write(p.far, "late", 4));
    HF_CHECK(hf_conn_read(p.near, buf, sizeof buf, &len) == HF_OK && len > 0); /* still usable */
    close_pair(&p);
    return HF_OK;
}

static void reads_writes_and_accepts_time_out(void **state)
{
    (void)state;
    run_both("timeout", 200, timeout_body);
}

static hf_status close_body(void *arg)
{
    (void)arg;
    blocked r = {.status = HF_OK};
    HF_TRY(open_pair(&r.p));
    blocked w = r;
    blocked a = r;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, read_blocked, &r));
    HF_TRY(hf_fork(scope, write_blocked, &w));
    HF_TRY(hf_fork(scope, accept_blocked, &a));
    HF_TRY(see_blocked(&r.p, true));
    close_pair(&r.p);
    HF_TRY(hf_join(scope));
    HF_CHECK_SAY(r.status == HF_ERR_CLOSED, "%s", hf_status_name(r.status));
    HF_CHECK_SAY(w.status == HF_ERR_CLOSED || w.status == HF_ERR_RESET, "%s", hf_status_name(w.status));
    HF_CHECK_SAY(a.status == HF_ERR_CLOSED, "%s", hf_status_name(a.status));
    return HF_OK;
}

/* An end of stream meets a reader anywhere between its look and its wait. */
static hf_status read_to_end(void *arg)
{
    blocked *b = arg;
    unsigned char buf[64];
    size_t len = 0;
    do {
        b->status = hf_conn_read(b->p.near, buf, sizeof buf, &len);
    } while (b->status == HF_OK && len > 0);
    return HF_OK;
}

static hf_status end_race_body(void *arg)
{
    (void)arg;
    for (int i = 0; i < (sim != NULL ? 3 : 300); i++) {
        blocked b = {.status = HF_OK};
        HF_TRY(open_pair(&b.p));
        hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, read_to_end, &b));
        for (int k = 0; k < i % 7; k++) {
            HF_TRY(hf_conn_write(b.p.far, "some bytes", 10));
        }
        HF_CHECK(hf_conn_close(b.p.far) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_OK);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_conn_close(b.p.near) == HF_OK);
        HF_CHECK(hf_listener_close(b.p.listener) == HF_OK);
    }
    return HF_OK;
}

static void closing_wakes_who_waits(void **state)
{
    (void)state;
    run_both("close", 300, close_body);
    run_both("end_race", 100, end_race_body);
}

static hf_status misuse_body(void *arg)
{
    (void)arg;
    blocked b = {.status = HF_OK};
    HF_TRY(open_pair(&b.p));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, read_blocked, &b));
    char buf[4];
    size_t len = 0;
    hf_conn *conn = NULL;
    while (hf_conn_read(b.p.near, buf, sizeof buf, &len, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT) {
        HF_TRY(hf_yield());
    }
    HF_CHECK(hf_error()->status == HF_ERR_MISUSE && strstr(hf_error_text(), "one at a time") != NULL);
    HF_CHECK(hf_conn_read(b.p.near, buf, 0, &len) == HF_ERR_MISUSE);
    HF_CHECK(hf_conn_write(NULL, buf, 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_conn_open("udp:127.0.0.1:1", &conn) == HF_ERR_INVALID);
    HF_CHECK(hf_conn_open("tcp:127.0.0.1:99999", &conn) == HF_ERR_INVALID);
    HF_CHECK(hf_conn_close(NULL) == HF_OK && hf_listener_close(NULL) == HF_OK);
    HF_CHECK(hf_fd_wait(3, 0) == HF_ERR_MISUSE);
    HF_TRY(hf_conn_write(b.p.far, "x", 1));
    HF_TRY(hf_join(scope));
    HF_CHECK(b.status == HF_OK);
    close_pair(&b.p);
    return HF_OK;
}

static void misuse_is_refused_with_a_sentence(void **state)
{
    (void)state;
    run_both("misuse", 50, misuse_body);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static hf_status refused_body(void *arg)
{
    (void)arg;
    hf_listener *listener = NULL;
    hf_conn *conn = NULL;
    char address[HF_ADDRESS_LEN_MAX];
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    (void)snprintf(address, sizeof address, "%s", hf_listener_address(listener));
    HF_CHECK(hf_listener_close(listener) == HF_OK);
    HF_CHECK(hf_conn_open(address, &conn) == HF_ERR_REFUSED && conn == NULL);
    HF_CHECK_SAY(strstr(hf_error_text(), address) != NULL, "%s", hf_error_text());
    return HF_OK;
}

static void nobody_listening_is_refused(void **state)
{
    (void)state;
    run_both("refused", 100, refused_body);
}

static hf_status unix_body(void *arg)
{
    (void)arg;
    char path[HF_ADDRESS_LEN_MAX];
    char address[HF_ADDRESS_LEN_MAX + 8];
    (void)snprintf(address, sizeof address, "unix:%s", path_of("x.sock", path));
    hf_conn *conn = NULL;
    HF_CHECK(hf_conn_open(address, &conn) == HF_ERR_NOT_FOUND);
    pair p = {0};
    HF_TRY(open_pair_at(&p, address));
    HF_CHECK(strcmp(hf_listener_address(p.listener), address) == 0);
    hf_listener *second = NULL;
    HF_CHECK(hf_listener_open(address, &second, .replace = true) == HF_ERR_EXISTS); /* somebody accepts there */
    HF_TRY(hf_conn_write(p.near, "over unix", 9));
    HF_TRY(hf_conn_shutdown(p.near));
    char buf[16];
    size_t at = 0;
    for (size_t len = 1; len > 0; at += len) {
        HF_TRY(hf_conn_read(p.far, buf + at, sizeof buf - at, &len));
    }
    HF_CHECK(at == 9 && memcmp(buf, "over unix", 9) == 0);
    close_pair(&p);
    HF_CHECK(hf_conn_open(address, &conn) == HF_ERR_REFUSED); /* the file stays behind */
    HF_CHECK(hf_listener_open(address, &second) == HF_ERR_EXISTS);
    HF_CHECK(hf_listener_open(address, &second, .replace = true) == HF_OK);
    HF_CHECK(hf_listener_close(second) == HF_OK);
    if (sim == NULL) {
        HF_CHECK(unlink(path) == 0);
    }
    return HF_OK;
}

static void unix_sockets_work_and_stale_ones_are_replaced(void **state)
{
    (void)state;
    run_both("unix", 100, unix_body);
}

static hf_status names_body(void *arg)
{
    (void)arg;
    char addresses[4][HF_ADDRESS_LEN_MAX];
    size_t count = 0;
    HF_TRY(hf_resolve("localhost", addresses, 4, &count));
    HF_CHECK(count > 0 && (strcmp(addresses[0], "127.0.0.1") == 0 || strcmp(addresses[0], "::1") == 0));
    HF_CHECK(hf_resolve("", addresses, 4, &count) == HF_ERR_INVALID);
    if (sim != NULL) {
        HF_CHECK(hf_resolve("no.such.host", addresses, 4, &count) == HF_ERR_NOT_FOUND);
        hf_conn *none = NULL;
        HF_CHECK(hf_conn_open("tcp:no.such.host:80", &none) == HF_ERR_NOT_FOUND);
    }
    pair p = {0};
    HF_TRY(open_pair(&p));
    char address[HF_ADDRESS_LEN_MAX];
    const char *port = strrchr(hf_listener_address(p.listener), ':');
    (void)snprintf(address, sizeof address, "tcp:localhost%s", port);
    hf_conn *conn = NULL;
    HF_CHECK(hf_conn_open(address, &conn, .timeout = hf_seconds(60)) == HF_OK); /* ::1 first, perhaps, and refused */
    HF_CHECK(conn != NULL && strcmp(hf_conn_peer(conn), hf_listener_address(p.listener)) == 0);
    HF_CHECK(hf_conn_close(conn) == HF_OK);
    close_pair(&p);
    return HF_OK;
}

/* A lookup that is canceled, or late, while it runs on the pool, or before. */
static hf_status look_up_forever(void *arg)
{
    (void)arg;
    char addresses[4][HF_ADDRESS_LEN_MAX];
    size_t count = 0;
    hf_status status = HF_OK;
    while (status == HF_OK) {
        status = hf_resolve("localhost", addresses, 4, &count);
    }
    return status;
}

static hf_status lookup_cancel_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(3)));
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, look_up_forever, NULL));
    }
    hf_status status = hf_join(scope);
    HF_CHECK_SAY(status == HF_ERR_TIMEOUT, "%s", hf_status_name(status));
    return HF_OK;
}

static void names_are_looked_up_on_the_pool(void **state)
{
    (void)state;
    run_both("names", 100, names_body);
    run_both("lookup_cancel", 200, lookup_cancel_body);
}

/* ---- Descriptors used up ----------------------------------------------------------------------------------------- */

enum { HELD_MAX = 4000 };

static int held[HELD_MAX];
static int held_count;

static void use_up_descriptors(void)
{
    if (sim != NULL) {
        hf_sim_limit_descriptors(sim, hf_sim_descriptors(sim));
        return;
    }
    int fd = -1;
    while (held_count < HELD_MAX && (fd = dup(0)) >= 0) {
        held[held_count++] = fd;
    }
    HF_CHECK(held_count < HELD_MAX && errno == EMFILE);
}

static void give_descriptors_back(void)
{
    if (sim != NULL) {
        hf_sim_limit_descriptors(sim, 100000);
    }
    while (held_count > 0) {
        (void)close(held[--held_count]);
    }
}

static hf_status limit_body(void *arg)
{
    (void)arg;
    hf_listener *listener = NULL;
    hf_conn *near = NULL;
    hf_conn *far = NULL;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_TRY(hf_conn_open(hf_listener_address(listener), &near));
    use_up_descriptors();
    for (int i = 0; i < 3; i++) {
        HF_CHECK(hf_listener_accept(listener, &far) == HF_ERR_LIMIT && far == NULL);
        HF_CHECK_SAY(strstr(hf_error_text(), "accept again") != NULL, "%s", hf_error_text());
    }
    hf_conn *more = NULL;
    HF_CHECK(hf_conn_open(hf_listener_address(listener), &more) == HF_ERR_LIMIT);
    give_descriptors_back();
    HF_CHECK(hf_listener_accept(listener, &far) == HF_OK); /* nothing was lost */
    HF_CHECK(hf_conn_write(near, "x", 1) == HF_OK);
    char byte = 0;
    size_t len = 0;
    HF_CHECK(hf_conn_read(far, &byte, 1, &len) == HF_OK && byte == 'x');
    HF_CHECK(hf_conn_close(near) == HF_OK && hf_conn_close(far) == HF_OK && hf_listener_close(listener) == HF_OK);
    return HF_OK;
}

static void accept_reports_used_up_descriptors_and_recovers(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit low = {.rlim_cur = 128, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    run_both("limit", 50, limit_body);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- Plain threads ----------------------------------------------------------------------------------------------- */

static hf_status echo_one(void *arg)
{
    hf_conn *conn = NULL;
    HF_TRY(hf_listener_accept(arg, &conn));
    return serve_conn(conn);
}

static void talk_from_a_plain_thread(hf_runtime *rt)
{
    hf_listener *listener = NULL;
    hf_scope *scope = NULL;
    hf_conn *conn = NULL;
    char buf[8] = "";
    size_t len = 0;
    HF_CHECK(hf_listener_open("tcp:127.0.0.1:0", &listener) == HF_ERR_MISUSE); /* which runtime? */
    HF_CHECK(hf_listener_open("tcp:127.0.0.1:0", &listener, .runtime = rt) == HF_OK);
    HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
    HF_CHECK(hf_fork(scope, echo_one, listener) == HF_OK);
    HF_CHECK(hf_conn_open(hf_listener_address(listener), &conn, .runtime = rt) == HF_OK);
    HF_CHECK(hf_conn_read(conn, buf, sizeof buf, &len, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    for (int i = 0; i < 20; i++) {
        char sent = (char)('a' + i);
        HF_CHECK(hf_conn_write(conn, &sent, 1) == HF_OK);
        HF_CHECK(hf_conn_read(conn, buf, sizeof buf, &len) == HF_OK && len == 1 && buf[0] == sent);
    }
    HF_CHECK(hf_conn_shutdown(conn) == HF_OK);
    HF_CHECK(hf_conn_read(conn, buf, sizeof buf, &len) == HF_OK && len == 0);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_conn_close(conn) == HF_OK);
    HF_CHECK(hf_listener_close(listener) == HF_OK);
}

static void one_thread_seed(uint64_t seed)
{
    sim = hf_sim_begin_with(seed, FAULTS);
    hf_runtime_options options = hf_sim_runtime_options(sim, seed % 4 == 0 ? HF_OFF : (int)(seed % 4));
    hf_runtime *rt = NULL;
    HF_CHECK(hf_runtime_new_with(&rt, &options) == HF_OK);
    talk_from_a_plain_thread(rt);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
    hf_sim_end(sim, NULL);
    sim = NULL;
}

static void a_plain_thread_reads_and_writes_too(void **state)
{
    (void)state;
    hf_each_seed("thread", 200, one_thread_seed);
    for (int threads = HF_OFF; threads <= 2; threads++) {
        hf_runtime *rt = NULL;
        if (threads != 0) {
            assert_int_equal(hf_runtime_new(&rt, .threads = threads), HF_OK);
            talk_from_a_plain_thread(rt);
            assert_int_equal(hf_runtime_free(rt), HF_OK);
        }
    }
}

/* ---- The user's descriptors -------------------------------------------------------------------------------------- */

typedef struct waiter {
    int fd;
    hf_status status;
} waiter;

static hf_status wait_readable(void *arg)
{
    waiter *w = arg;
    do { /* the test itself waits there now and then */
        HF_TRY(hf_yield());
        w->status = hf_fd_wait(w->fd, HF_READABLE);
    } while (w->status == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status fd_body(void *arg)
{
    (void)arg;
    int fds[2] = {-1, -1};
    HF_CHECK(pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0);
    HF_CHECK(hf_fd_wait(fds[1], HF_WRITABLE) == HF_OK);
    HF_CHECK(hf_fd_wait(fds[0], HF_READABLE, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(write(fds[1], "ab", 2) == 2);
    char byte = 0;
    for (int i = 0; i < 3; i++) { /* what is ready stays ready, however often it is asked */
        HF_CHECK(hf_fd_wait(fds[0], HF_READABLE) == HF_OK);
    }
    HF_CHECK(read(fds[0], &byte, 1) == 1 && hf_fd_wait(fds[0], HF_READABLE) == HF_OK);
    HF_CHECK(read(fds[0], &byte, 1) == 1);
    HF_CHECK(hf_fd_wait(fds[0], HF_READABLE, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    waiter w = {fds[0], HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_readable, &w));
    while (hf_fd_wait(fds[0], HF_READABLE, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT) {
    } /* until the child waits: a second one is refused */
    HF_CHECK(hf_error()->status == HF_ERR_MISUSE);
    HF_CHECK(hf_fd_forget(fds[0]) == HF_OK);
    HF_TRY(hf_join(scope));
    HF_CHECK(w.status == HF_ERR_CLOSED);
    HF_CHECK(hf_fd_forget(fds[1]) == HF_OK);
    HF_CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    HF_CHECK(hf_fd_wait(file, HF_READABLE) == HF_ERR_UNSUPPORTED);
    HF_CHECK(hf_fd_forget(file) == HF_OK && close(file) == 0);
    return HF_OK;
}

static void a_descriptor_of_the_users_is_waited_for(void **state)
{
    (void)state;
    run_real(fd_body);
    assert_int_equal(hf_fd_wait(0, HF_READABLE), HF_ERR_MISUSE); /* a plain thread has poll */
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static hf_status read_back(const char *path, const char *expected)
{
    HF_AUTO(hf_file_close) hf_file *file = NULL;
    HF_TRY(hf_file_open(path, HF_FILE_READ, &file));
    char buf[64];
    size_t at = 0;
    for (size_t len = 1; len > 0; at += len) {
        HF_TRY(hf_file_read(file, buf + at, sizeof buf - at, &len));
    }
    HF_CHECK_SAY(at == strlen(expected) && memcmp(buf, expected, at) == 0, "read %zu bytes", at);
    return HF_OK;
}

static hf_status write_out(const char *path, hf_file_mode mode, const char *text)
{
    hf_file *file = NULL;
    HF_TRY(hf_file_open(path, mode, &file));
    HF_CHECK(hf_file_write(file, text, strlen(text)) == HF_OK);
    HF_CHECK(hf_file_sync(file) == HF_OK);
    return hf_file_close(file);
}

static hf_status files_body(void *arg)
{
    (void)arg;
    char path[HF_ADDRESS_LEN_MAX];
    (void)path_of("file", path);
    hf_file *file = NULL;
    HF_CHECK(hf_file_open(path, HF_FILE_READ, &file) == HF_ERR_NOT_FOUND && file == NULL);
    HF_CHECK_SAY(strstr(hf_error_text(), path) != NULL, "%s", hf_error_text());
    HF_TRY(write_out(path, HF_FILE_WRITE_NEW, "first "));
    HF_CHECK(hf_file_open(path, HF_FILE_WRITE_NEW, &file) == HF_ERR_EXISTS);
    HF_TRY(write_out(path, HF_FILE_APPEND, "second"));
    HF_TRY(read_back(path, "first second"));
    HF_TRY(write_out(path, HF_FILE_WRITE, "third"));
    HF_TRY(read_back(path, "third"));
    HF_TRY(hf_file_open(path, HF_FILE_READ, &file));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_scope_cancel(scope));
    char buf[4];
    size_t len = 0;
    hf_file *other = NULL;
    HF_CHECK(hf_file_read(file, buf, sizeof buf, &len) == HF_ERR_CANCELED);
    HF_CHECK(hf_file_open(path, HF_FILE_READ, &other) == HF_ERR_CANCELED && other == NULL);
    HF_CHECK(hf_file_close(file) == HF_OK); /* also when canceled */
    if (sim == NULL) {
        HF_CHECK(unlink(path) == 0);
    }
    return HF_OK;
}

static void files_are_read_and_written_through_the_pool(void **state)
{
    (void)state;
    run_both("files", 200, files_body);
    hf_file *file = NULL;
    hf_runtime *rt = NULL;
    char byte = 0;
    size_t len = 0;
    assert_int_equal(hf_runtime_new(&rt, .threads = 1), HF_OK); /* a plain thread simply calls */
    assert_int_equal(hf_file_open("/proc/self/exe", HF_FILE_READ, &file, .runtime = rt), HF_OK);
    assert_int_equal(hf_file_read(file, &byte, 1, &len), HF_OK);
    assert_int_equal(byte, 0x7f);
    assert_int_equal(hf_file_close(file), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

/* write_out checks only what must hold on a good disk, so this one asks for itself. */
static hf_status bad_writes_body(void *arg)
{
    (void)arg;
    int failed_count = 0;
    for (int i = 0; i < 20; i++) {
        hf_file *file = NULL;
        hf_status status = hf_file_open("/sim/file", HF_FILE_WRITE, &file);
        if (status == HF_OK) {
            hf_status written = hf_file_write(file, "text", 4);
            hf_status synced = hf_file_sync(file);
            hf_status closed = hf_file_close(file);
            status = written != HF_OK ? written : synced != HF_OK ? synced : closed;
        }
        HF_CHECK_SAY(status == HF_OK || status == HF_ERR_IO, "%s", hf_status_name(status));
        failed_count += status != HF_OK ? 1 : 0;
    }
    HF_CHECK(failed_count > 0);
    return HF_OK;
}

static void one_bad_disk_seed(uint64_t seed)
{
    sim = hf_sim_begin_with(seed, (hf_sim_options){.eio_permille = 300});
    hf_runtime_options options = hf_sim_runtime_options(sim, 2);
    HF_CHECK(hf_run_with(bad_writes_body, NULL, &options) == HF_OK);
    hf_sim_end(sim, NULL);
    sim = NULL;
}

static void a_failing_disk_is_reported(void **state)
{
    (void)state;
    hf_each_seed("bad_disk", 50, one_bad_disk_seed);
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* The library's own threads take no signals. A thread that does gets it at once; any other, such as one that sleeps
 * while ThreadSanitizer holds its signals back, would make the test wait. */
static void *raise_main(void *arg)
{
    const int *number = arg;
    sigset_t only;
    (void)sigemptyset(&only);
    (void)sigaddset(&only, *number);
    HF_CHECK(pthread_sigmask(SIG_UNBLOCK, &only, NULL) == 0);
    HF_CHECK(raise(*number) == 0);
    return NULL;
}

static void raise_signal(int number)
{
    if (sim != NULL) {
        HF_CHECK(hf_sim_raise(sim, number) == HF_OK);
    } else {
        pthread_t thread;
        HF_CHECK(pthread_create(&thread, NULL, raise_main, &number) == 0);
        HF_CHECK(pthread_join(thread, NULL) == 0);
    }
}

typedef struct listening {
    hf_os_signals *signals;
    hf_status status;
    int number;
} listening;

static hf_status hear(void *arg)
{
    listening *l = arg;
    do {
        l->status = hf_os_signals_next(l->signals, &l->number);
    } while (l->status == HF_ERR_MISUSE && hf_yield() == HF_OK);
    return HF_OK;
}

static hf_status see_hearing(hf_os_signals *signals)
{
    int number = 0;
    while (hf_os_signals_next(signals, &number, .timeout = HF_SPAN_OFF) != HF_ERR_MISUSE) {
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status signals_body(void *arg)
{
    (void)arg;
    static const int NUMBERS[] = {SIGUSR1, SIGUSR2};
    listening l = {.status = HF_OK};
    hf_os_signals *again = NULL;
    HF_TRY(hf_os_signals_open(NUMBERS, 2, &l.signals));
    HF_CHECK(hf_os_signals_open(NUMBERS, 1, &again) == HF_ERR_EXISTS);
    HF_CHECK(hf_os_signals_next(l.signals, &l.number, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, hear, &l));
    HF_TRY(see_hearing(l.signals));
    raise_signal(SIGUSR2);
    HF_TRY(hf_join(scope));
    HF_CHECK(l.status == HF_OK && l.number == SIGUSR2);
    raise_signal(SIGUSR1);
    raise_signal(SIGUSR2);
    int first = 0;
    int second = 0;
    HF_TRY(hf_os_signals_next(l.signals, &first));
    HF_TRY(hf_os_signals_next(l.signals, &second));
    HF_CHECK(first + second == SIGUSR1 + SIGUSR2 && first != second);
    HF_TRY(hf_fork(scope, hear, &l));
    HF_TRY(see_hearing(l.signals));
    HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(l.status == HF_ERR_CANCELED);
    HF_CHECK(hf_os_signals_close(l.signals) == HF_OK);
    HF_CHECK(hf_os_signals_open(NUMBERS, 1, &again) == HF_OK); /* free again */
    HF_CHECK(hf_os_signals_close(again) == HF_OK);
    return HF_OK;
}

static void signals_queue_up_for_a_fiber(void **state)
{
    (void)state;
    run_both("signals", 100, signals_body);
}

/* ---- Determinism ------------------------------------------------------------------------------------------------- */

static void one_twin_seed(uint64_t seed)
{
    uint64_t hash[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        sim = hf_sim_begin_with(seed, FAULTS);
        hf_runtime_options options = hf_sim_runtime_options(sim, 3);
        HF_CHECK(hf_run_with(echo_body, NULL, &options) == HF_OK);
        hf_sim_end(sim, &hash[i]);
        sim = NULL;
    }
    HF_CHECK(hash[0] == hash[1]);
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    hf_each_seed("twins", 20, one_twin_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(echo_returns_every_byte_under_back_pressure),
        cmocka_unit_test(broken_and_refused_connections_end_everything_cleanly),
        cmocka_unit_test(a_failed_allocation_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_cancel_ends_a_blocked_read_and_write),
        cmocka_unit_test(a_canceled_fiber_gets_no_data_even_if_it_is_there),
        cmocka_unit_test(reads_writes_and_accepts_time_out),
        cmocka_unit_test(closing_wakes_who_waits),
        cmocka_unit_test(misuse_is_refused_with_a_sentence),
        cmocka_unit_test(nobody_listening_is_refused),
        cmocka_unit_test(unix_sockets_work_and_stale_ones_are_replaced),
        cmocka_unit_test(names_are_looked_up_on_the_pool),
        cmocka_unit_test(accept_reports_used_up_descriptors_and_recovers),
        cmocka_unit_test(a_plain_thread_reads_and_writes_too),
        cmocka_unit_test(a_descriptor_of_the_users_is_waited_for),
        cmocka_unit_test(files_are_read_and_written_through_the_pool),
        cmocka_unit_test(a_failing_disk_is_reported),
        cmocka_unit_test(signals_queue_up_for_a_fiber),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
    };
    (void)snprintf(folder, sizeof folder, "/tmp/hf-io-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int result = hf_test_main("io", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
    (void)rmdir(folder);
    return result;
}
