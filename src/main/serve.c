/* holdfast serve, holdfast server start-dev and holdfast PORT: a database behind a port, for the SDKs of Temporal.
 *
 * Order of the start: settings, database, door, "ready". Order of the stop (SIGTERM, SIGINT): the door stops as door.c says, then the
 * database is closed. A second signal does not wait: what was acknowledged is in the file. */
#include "main/files.h"
#include "main/notify.h"
#include "main/plugin.h"
#include "main/serve_private.h"
#include "main/tool.h"
#include "open/open.h"
#include "server/auth.h"
#include "server/door.h"
#include "server/meter.h"

#include "base/fields.h"

#include <holdfast/holdfast.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { RATE_MAX = 1000000, CONNECTIONS_MAX = 100000 };
_Static_assert((int)HF_RATES_MAX >= (int)HF_SETTING_VALUES_MAX, "all rates fit");

/* ---- Addresses ---------------------------------------------------------------------------------------------------------------- */

/* The same for a socket that was handed over. */
static bool is_local_socket(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } at = {0};
    socklen_t len = sizeof at;
    if (getsockname(fd, &at.any, &len) != 0) {
        return false;
    }
    return at.any.sa_family == AF_UNIX || (at.any.sa_family == AF_INET && ntohl(at.v4.sin_addr.s_addr) >> 24 == 127) ||
           (at.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&at.v6.sin6_addr));
}

/* Whether only this machine can reach it. */
static bool is_local(const char *address)
{
    if (strncmp(address, "fd:", 3) == 0) {
        return is_local_socket((int)strtol(address + 3, NULL, 10));
    }
    return strncmp(address, "unix:", 5) == 0 || strncmp(address, "tcp:127.", 8) == 0 ||
           strncmp(address, "tcp:[::1]:", 10) == 0;
}

/* "127.0.0.1:7233", "[::1]:7233", "localhost:7233", "unix:/run/x" become addresses of hf_listener_open. */
static const char *address_of(hf_arena *arena, const char *text)
{
    hf_buf name;
    hf_buf_init(&name, hf_env_memory(hf_env_posix()), 256);
    if (strncmp(text, "unix:", 5) == 0 || strncmp(text, "tcp:", 4) == 0 || strncmp(text, "fd:", 3) == 0) {
        hf_buf_puts(&name, text);
    } else if (strncmp(text, "localhost:", 10) == 0) {
        hf_buf_putf(&name, "tcp:127.0.0.1:%s", text + 10);
    } else {
        hf_buf_putf(&name, "tcp:%s", text);
    }
    hf_str copy = hf_arena_copy(arena, hf_str_of_len(name.data, name.len));
    hf_buf_deinit(&name);
    return copy.data != NULL ? copy.data : "";
}

hf_status hf_serve_take_address(hf_op *op, hf_serving *s, hf_arena *arena, const char *text, bool is_network_fine)
{
    const char *address = address_of(arena, text);
    if (s->address_count == HF_SETTING_VALUES_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "at most %d addresses to listen on", HF_SETTING_VALUES_MAX);
    }
    if (!is_local(address) && !is_network_fine) {
        return hf_fail(op, HF_ERR_DENIED,
                       "%s can be reached from the network without TLS (--tls-cert, --tls-key) and keys (--keys or "
                       "--tls-client-ca): anybody could run workflows. "
                       "Listen on 127.0.0.1, or say --insecure-network if something else protects it",
                       text);
    }
    s->addresses[s->address_count++] = address;
    return HF_OK;
}

/* ---- Serving ------------------------------------------------------------------------------------------------------------------ */

static int complain_op(hf_serving *s, int code, const hf_op *op)
{
    s->exit_code = hf_complain(code, "%s", op->message);
    return s->exit_code;
}

/* ---- Keys and certificates ---------------------------------------------------------------------------------------------------- */

static hf_status read_keys(hf_op *op, const hf_serving *s, hf_allocator memory, hf_keyring **ret_keys)
{
    hf_buf text;
    if (s->keys == NULL) {
        return HF_OK;
    }
    hf_buf_init(&text, memory, 64 << 20);
    hf_status status = hf_file_text(op, s->keys, &text);
    if (status == HF_OK) {
        status = hf_keyring_parse(op, memory, hf_str_of_len(text.data, text.len), ret_keys);
    }
    hf_buf_deinit(&text);
    return status;
}

static hf_status read_tls(hf_op *op, const hf_serving *s, hf_allocator memory, hf_tls_context **ret_tls)
{
    const char *const paths[] = {s->tls_cert, s->tls_key, s->tls_client_ca};
    hf_buf texts[3];
    hf_status status = HF_OK;
    if (s->tls_cert == NULL) {
        return HF_OK;
    }
    for (int i = 0; i < 3; i++) {
        hf_buf_init(&texts[i], memory, 1 << 20);
        if (status == HF_OK && paths[i] != NULL) {
            status = hf_file_text(op, paths[i], &texts[i]);
        }
    }
    if (status == HF_OK) {
        status = hf_tls_context_open(op, hf_str_of_len(texts[0].data, texts[0].len),
                                     hf_str_of_len(texts[1].data, texts[1].len),
                                     hf_str_of_len(texts[2].data, texts[2].len), ret_tls);
    }
    for (int i = 0; i < 3; i++) {
        hf_buf_deinit(&texts[i]);
    }
    return status;
}

static void log_renewal(hf_serving *s, const char *what, hf_status status, const hf_op *op)
{
    char fields[2 * HF_MESSAGE_LEN_MAX];
    if (status == HF_OK) {
        hf_fields_format(fields, sizeof fields, "what=%s", what);
        hf_serve_log(s, HF_LOG_INFO, "renewed", fields);
    } else {
        hf_fields_format(fields, sizeof fields, "what=%s why=\"%s\"", what, op->message);
        hf_serve_log(s, HF_LOG_ERROR, "renewal_failed", fields);
    }
}

/* SIGHUP: what can be read replaces what there is; what cannot is logged, and the old goes on. Keys do not wait for a certificate: one
 * of them may have been revoked. */
static void renew(hf_serving *s, hf_door *door, hf_meter *meter)
{
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_keyring *keys = NULL;
    hf_tls_context *tls = NULL;
    hf_op of_keys;
    hf_op of_tls;
    hf_op_init(&of_keys);
    hf_op_init(&of_tls);
    hf_status keys_status = read_keys(&of_keys, s, memory, &keys);
    hf_status tls_status = read_tls(&of_tls, s, memory, &tls);
    hf_door_renew(door, keys, tls);
    hf_meter_renew(meter, keys);
    if (s->keys != NULL) {
        log_renewal(s, "keys", keys_status, &of_keys);
    }
    if (s->tls_cert != NULL) {
        log_renewal(s, "certificate", tls_status, &of_tls);
    }
    hf_keyring_unref(keys);
    hf_tls_context_unref(tls);
}

static void wait_for_end(hf_serving *s, hf_door *door, hf_meter *meter)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP};
    hf_os_signals *signals = NULL;
    int number = 0;
    hf_status status = hf_os_signals_open(SIGNALS, HF_COUNT_OF(SIGNALS), &signals);
    while (status == HF_OK && number != SIGTERM && number != SIGINT) {
        status = hf_os_signals_next(signals, &number);
        if (status == HF_OK && number == SIGHUP) {
            renew(s, door, meter);
        }
    }
    if (status != HF_OK) {
        s->exit_code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    hf_serve_log(s, HF_LOG_INFO, "stopping", number == SIGTERM ? "signal=SIGTERM" : "signal=SIGINT");
    (void)hf_os_signals_close(signals); /* from here on a signal ends the process */
}

/* Tells the service manager that all is well, as often as it wants to hear it: only if the engine answers. */
typedef struct hf_pulse {
    hf_service *service;
    hf_span every;
} hf_pulse;

static hf_status pulse(void *arg)
{
    const hf_pulse *p = arg;
    while (hf_sleep(hf_nanoseconds(p->every.ns / 2)) == HF_OK) {
        if (hf_serve_is_alive(p->service)) {
            hf_notify("WATCHDOG=1");
        }
    }
    return HF_OK;
}

static hf_status open_meter(hf_op *op, const hf_serving *s, hf_service *service, hf_keyring *keys, hf_meter **ret_meter)
{
    char address[HF_ADDRESS_LEN_MAX];
    hf_meter_options options = {.keys = s->is_metrics_local ? NULL : keys,
                                .is_local = s->is_metrics_local,
                                .figures = hf_serve_figures,
                                .figures_state = service};
    if (s->metrics == NULL) {
        return HF_OK;
    }
    HF_TRY(hf_meter_open(op, service, s->metrics, &options, ret_meter, address));
    (void)printf("holdfast %s: metrics on %s\n", hf_version(), address);
    return HF_OK;
}

/* From "ready" to the signal that ends it. */
static void serve_until_signal(hf_serving *s, hf_door *door, hf_meter *meter, hf_service *service)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_pulse p = {service, hf_notify_watchdog()};
    if (hf_scope_open(&scope, .name = "watchdog", .join = HF_JOIN_DISCARD) != HF_OK ||
        (p.every.ns > 0 && hf_fork(scope, pulse, &p, .name = "watchdog") != HF_OK)) {
        s->exit_code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
        return;
    }
    hf_notify("READY=1");
    wait_for_end(s, door, meter);
    hf_notify("STOPPING=1");
}

static void serve_door(hf_serving *s, hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    hf_door *door = NULL;
    hf_meter *meter = NULL;
    hf_door_options options = {.links_max = s->connections,
                               .rates = s->rates,
                               .rate_count = s->rate_count,
                               .has_tests = s->skips_time,
                               .log = hf_serve_log,
                               .log_state = s};
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_status status = read_keys(&op, s, memory, &options.keys);
    if (status == HF_OK) {
        status = read_tls(&op, s, memory, &options.tls);
    }
    if (status == HF_OK) {
        status = open_meter(&op, s, service, options.keys, &meter);
    }
    if (status == HF_OK) {
        status = hf_door_open(&op, service, &options, &door);
    }
    hf_keyring_unref(options.keys);
    hf_tls_context_unref(options.tls);
    if (status != HF_OK) {
        (void)complain_op(s, HF_EXIT_CANNOT_OPEN, &op);
        hf_meter_close(meter);
        return;
    }
    hf_meter_attach(meter, door);
    bool is_fine = true;
    for (int i = 0; i < s->address_count && is_fine; i++) {
        char address[HF_ADDRESS_LEN_MAX];
        is_fine = hf_door_listen(&op, door, s->addresses[i], address) == HF_OK;
        if (is_fine) {
            (void)printf("holdfast %s: ready on %s\n", hf_version(), address);
            (void)fflush(stdout);
        } else {
            (void)complain_op(s, HF_EXIT_CANNOT_OPEN, &op);
        }
    }
    if (is_fine) {
        serve_until_signal(s, door, meter, service);
    }
    hf_meter_drain(meter);
    hf_door_stop(door);
    hf_meter_close(meter);
}

static void serve_service(hf_serving *s, hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    hf_worker *worker = NULL;
    if (hf_serve_prepare(s, service) != HF_OK) {
        s->exit_code = hf_complain(HF_EXIT_USAGE, "%s", hf_error_text());
    } else if (hf_plugins_start(&op, service, s->plugins, s->plugin_count, s->plugin_queue, &worker) != HF_OK) {
        (void)complain_op(s, HF_EXIT_USAGE, &op);
    } else {
        serve_door(s, service);
    }
    hf_worker_free(worker); /* stops it, and waits */
}

static hf_status serve_body(void *arg)
{
    hf_serving *s = arg;
    hf_service *service = NULL;
    hf_op op;
    hf_op_init(&op);
    for (int i = 0; i < s->plugin_count; i++) { /* before a file is made */
        if (hf_plugin_check(&op, s->plugins[i]) != HF_OK) {
            (void)complain_op(s, HF_EXIT_USAGE, &op);
            return HF_OK;
        }
    }
    hf_status status = s->skips_time ? hf_open_skipping(&service) : hf_open(s->store, &service);
    if (status != HF_OK) {
        s->exit_code =
            hf_complain(status == HF_ERR_DENIED ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
        return HF_OK;
    }
    serve_service(s, service);
    if (hf_close(service) != HF_OK) {
        s->exit_code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return HF_OK;
}

/* As many descriptors as this user may have: each connection is one. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int hf_serve_run(hf_serving *s)
{
    raise_descriptors();
    (void)signal(SIGPIPE, SIG_IGN);
    if (hf_run(serve_body, s, .name = "holdfast", .log = hf_serve_log, .log_state = s) != HF_OK) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return s->exit_code;
}

/* ---- holdfast serve ------------------------------------------------------------------------------------------------------------ */

static hf_status take_connections(hf_op *op, const hf_settings *settings, hf_serving *s)
{
    const char *value = hf_setting_get(settings, HF_SETTING_CONNECTIONS);
    char *end = NULL;
    long count = value != NULL ? strtol(value, &end, 10) : 0;
    if (value != NULL && (*value < '0' || *value > '9' || *end != '\0' || count < 1 || count > CONNECTIONS_MAX)) {
        return hf_fail(op, HF_ERR_INVALID, "connections is a number from 1 to %d, not '%s'", CONNECTIONS_MAX, value);
    }
    s->connections = (int)count;
    return HF_OK;
}

/* "100", or "batch=100" for one namespace. */
static hf_status take_rates(hf_op *op, const hf_settings *settings, hf_serving *s)
{
    for (int i = 0; i < settings->all[HF_SETTING_NAMESPACE_RATE].count; i++) {
        const char *value = settings->all[HF_SETTING_NAMESPACE_RATE].values[i];
        const char *equals = strrchr(value, '=');
        const char *number = equals != NULL ? equals + 1 : value;
        char *end = NULL;
        long rate = strtol(number, &end, 10);
        if (*number < '0' || *number > '9' || *end != '\0' || rate > RATE_MAX || equals == value) {
            return hf_fail(op, HF_ERR_INVALID, "namespace-rate is N or NAME=N, N from 0 to %d, not '%s'", RATE_MAX,
                           value);
        }
        hf_str name = equals != NULL ? hf_arena_copy(settings->arena, hf_str_of_len(value, (size_t)(equals - value)))
                                     : (hf_str){0};
        s->rates[s->rate_count++] = (hf_rate){.namespace_ = name.data, .per_second = rate};
    }
    return HF_OK;
}

static hf_status take_metrics(hf_op *op, const hf_settings *settings, hf_serving *s)
{
    const char *value = hf_setting_get(settings, HF_SETTING_METRICS);
    if (value == NULL) {
        return HF_OK;
    }
    s->metrics = address_of(settings->arena, value);
    s->is_metrics_local = is_local(s->metrics);
    if (!s->is_metrics_local && !hf_setting_is_on(settings, HF_SETTING_METRICS_NETWORK)) {
        return hf_fail(op, HF_ERR_DENIED,
                       "metrics on %s could be read from the network, unencrypted: use an address such as "
                       "127.0.0.1:9233, or say --metrics-network",
                       value);
    }
    return HF_OK;
}

static hf_status take_settings(hf_op *op, const hf_settings *settings, hf_serving *s)
{
    s->store = hf_setting_get(settings, HF_SETTING_STORE);
    if (s->store == NULL) {
        return hf_fail(op, HF_ERR_INVALID,
                       "serve needs a database: --store sqlite:FILE (or memory:, which is lost at the end)");
    }
    if (strncmp(s->store, "sqlite:", 7) != 0 && strncmp(s->store, "memory:", 7) != 0) {
        return hf_fail(op, HF_ERR_INVALID, "serve needs a database of its own, sqlite:FILE or memory:, not %s",
                       s->store);
    }
    HF_TRY(hf_serve_take_log(op, s, hf_setting_get(settings, HF_SETTING_LOG_FORMAT),
                             hf_setting_get(settings, HF_SETTING_LOG_LEVEL)));
    s->keys = hf_setting_get(settings, HF_SETTING_KEYS);
    s->tls_cert = hf_setting_get(settings, HF_SETTING_TLS_CERT);
    s->tls_key = hf_setting_get(settings, HF_SETTING_TLS_KEY);
    s->tls_client_ca = hf_setting_get(settings, HF_SETTING_TLS_CLIENT_CA);
    if ((s->tls_cert == NULL) != (s->tls_key == NULL) || (s->tls_client_ca != NULL && s->tls_cert == NULL)) {
        return hf_fail(op, HF_ERR_INVALID, "TLS needs both tls-cert and tls-key; tls-client-ca comes in addition");
    }
    bool is_safe = s->tls_cert != NULL && (s->keys != NULL || s->tls_client_ca != NULL);
    bool is_network_fine = is_safe || hf_setting_is_on(settings, HF_SETTING_INSECURE_NETWORK);
    for (int i = 0; i < settings->all[HF_SETTING_LISTEN].count; i++) {
        HF_TRY(
            hf_serve_take_address(op, s, settings->arena, settings->all[HF_SETTING_LISTEN].values[i], is_network_fine));
    }
    int sockets = hf_notify_sockets();
    for (int i = 0; i < sockets; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "fd:%d", 3 + i);
        HF_TRY(hf_serve_take_address(op, s, settings->arena, name, is_network_fine));
    }
    HF_TRY(take_connections(op, settings, s));
    HF_TRY(take_rates(op, settings, s));
    HF_TRY(take_metrics(op, settings, s));
    s->plugins = settings->all[HF_SETTING_PLUGIN].values;
    s->plugin_count = settings->all[HF_SETTING_PLUGIN].count;
    s->plugin_queue = hf_setting_get(settings, HF_SETTING_PLUGIN_QUEUE);
    return s->address_count > 0 ? HF_OK
                                : hf_serve_take_address(op, s, settings->arena, "127.0.0.1:7233", is_network_fine);
}

int hf_cmd_serve(int argc, char **argv)
{
    hf_arena arena;
    hf_settings settings;
    hf_serving s = {0};
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    int code = HF_EXIT_USAGE;
    if (hf_settings_read(&op, &settings, &arena, argc, argv) == HF_OK && take_settings(&op, &settings, &s) == HF_OK) {
        code = hf_serve_run(&s);
    } else {
        (void)hf_complain(0, "%s", op.message);
    }
    hf_arena_deinit(&arena);
    return code;
}
