/* holdfast serve, and holdfast server start-dev: a database behind a port, for the SDKs of Temporal.
 *
 * Order of the start: settings, database, door, "ready". Order of the stop (SIGTERM, SIGINT): the door stops as door.c says, then the
 * database is closed. A second signal does not wait: what was acknowledged is in the file. */
#include "main/files.h"
#include "main/settings.h"
#include "main/tool.h"
#include "server/auth.h"
#include "server/door.h"

#include "base/fields.h"

#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

typedef struct serving {
    const char *store;
    const char *addresses[HF_SETTING_VALUES_MAX]; /* "tcp:..." or "unix:..." */
    int address_count;
    const char *keys; /* paths of files; NULL = none */
    const char *tls_cert;
    const char *tls_key;
    const char *tls_client_ca;
    bool is_json;           /* of the log */
    hf_log_level level;     /* the least that is logged */
    bool is_silent;         /* nothing is */
    const char *namespace_; /* is registered first, if it is not there; NULL = none is */
    int exit_code;
} serving;

/* ---- The log ------------------------------------------------------------------------------------------------------------------ */

static const char *const LEVELS[] = {"debug", "info", "warn", "error"};

static void put_json_text(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            (void)fputc('\\', to);
        }
        if (byte >= ' ') {
            (void)fputc(byte, to);
        } else {
            (void)fprintf(to, "\\u%04x", byte);
        }
    }
    (void)fputc('"', to);
}

static void log_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    const serving *s = state;
    if (s->is_silent || level < s->level) {
        return;
    }
    struct timespec now;
    struct tm parts;
    char time[40];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    size_t len = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(time + len, sizeof time - len, ".%03ldZ", now.tv_nsec / 1000000);
    flockfile(stderr);
    if (s->is_json) {
        (void)fprintf(stderr, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\",\"fields\":", time, LEVELS[level],
                      event);
        put_json_text(stderr, fields);
        (void)fputs("}\n", stderr);
    } else {
        (void)fprintf(stderr, "%s %-5s %s %s\n", time, LEVELS[level], event, fields);
    }
    funlockfile(stderr);
}

static hf_status take_log(hf_op *op, serving *s, const char *format, const char *level)
{
    if (format != NULL && strcmp(format, "json") != 0 && strcmp(format, "text") != 0 && strcmp(format, "pretty") != 0) {
        return hf_fail(op, HF_ERR_INVALID, "log-format is text or json, not '%s'", format);
    }
    s->is_json = format != NULL && strcmp(format, "json") == 0;
    s->level = HF_LOG_INFO;
    if (level == NULL) {
        return HF_OK;
    }
    if (strcmp(level, "never") == 0) {
        s->is_silent = true;
        return HF_OK;
    }
    for (int i = 0; i < (int)HF_COUNT_OF(LEVELS); i++) {
        if (strcmp(level, LEVELS[i]) == 0) {
            s->level = (hf_log_level)i;
            return HF_OK;
        }
    }
    return hf_fail(op, HF_ERR_INVALID, "log-level is debug, info, warn, error or never, not '%s'", level);
}

/* ---- Addresses ---------------------------------------------------------------------------------------------------------------- */

/* Whether only this machine can reach it. */
static bool is_local(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 || strncmp(address, "tcp:127.", 8) == 0 ||
           strncmp(address, "tcp:[::1]:", 10) == 0;
}

/* "127.0.0.1:7233", "[::1]:7233", "localhost:7233", "unix:/run/x" become addresses of hf_listener_open. */
static hf_status take_address(hf_op *op, serving *s, hf_arena *arena, const char *text, bool is_network_fine)
{
    hf_buf name;
    hf_buf_init(&name, hf_env_memory(hf_env_posix()), 256);
    if (strncmp(text, "unix:", 5) == 0 || strncmp(text, "tcp:", 4) == 0) {
        hf_buf_puts(&name, text);
    } else if (strncmp(text, "localhost:", 10) == 0) {
        hf_buf_putf(&name, "tcp:127.0.0.1:%s", text + 10);
    } else {
        hf_buf_putf(&name, "tcp:%s", text);
    }
    hf_str copy = hf_arena_copy(arena, hf_str_of_len(name.data, name.len));
    hf_buf_deinit(&name);
    if (s->address_count == HF_SETTING_VALUES_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "at most %d addresses to listen on", HF_SETTING_VALUES_MAX);
    }
    if (!is_local(copy.data) && !is_network_fine) {
        return hf_fail(op, HF_ERR_DENIED,
                       "%s can be reached from the network without TLS (--tls-cert, --tls-key) and keys (--keys or "
                       "--tls-client-ca): anybody could run workflows. "
                       "Listen on 127.0.0.1, or say --insecure-network if something else protects it",
                       text);
    }
    s->addresses[s->address_count++] = copy.data;
    return HF_OK;
}

/* ---- Serving ------------------------------------------------------------------------------------------------------------------ */

static int complain_op(serving *s, int code, const hf_op *op)
{
    s->exit_code = hf_complain(code, "%s", op->message);
    return s->exit_code;
}

/* ---- Keys and certificates ---------------------------------------------------------------------------------------------------- */

static hf_status read_keys(hf_op *op, const serving *s, hf_allocator memory, hf_keyring **ret_keys)
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

static hf_status read_tls(hf_op *op, const serving *s, hf_allocator memory, hf_tls_context **ret_tls)
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

/* SIGHUP: what can be read replaces what there is; what cannot is logged, and the old goes on. */
static void renew(serving *s, hf_door *door)
{
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_keyring *keys = NULL;
    hf_tls_context *tls = NULL;
    hf_op op;
    hf_op_init(&op);
    hf_status status = read_keys(&op, s, memory, &keys);
    if (status == HF_OK) {
        status = read_tls(&op, s, memory, &tls);
    }
    if (status == HF_OK) {
        hf_door_renew(door, keys, tls);
        log_line(s, HF_LOG_INFO, "renewed", "");
    } else {
        char fields[2 * HF_MESSAGE_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "why=\"%s\"", op.message);
        log_line(s, HF_LOG_ERROR, "renewal_failed", fields);
    }
    hf_keyring_unref(keys);
    hf_tls_context_unref(tls);
}

static void wait_for_end(serving *s, hf_door *door)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP};
    hf_os_signals *signals = NULL;
    int number = 0;
    hf_status status = hf_os_signals_open(SIGNALS, HF_COUNT_OF(SIGNALS), &signals);
    while (status == HF_OK && number != SIGTERM && number != SIGINT) {
        status = hf_os_signals_next(signals, &number);
        if (status == HF_OK && number == SIGHUP) {
            renew(s, door);
        }
    }
    if (status != HF_OK) {
        s->exit_code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    log_line(s, HF_LOG_INFO, "stopping", number == SIGTERM ? "signal=SIGTERM" : "signal=SIGINT");
    (void)hf_os_signals_close(signals); /* from here on a signal ends the process */
}

static void serve_door(serving *s, hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    hf_door *door = NULL;
    hf_door_options options = {.log = log_line, .log_state = s};
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_status status = read_keys(&op, s, memory, &options.keys);
    if (status == HF_OK) {
        status = read_tls(&op, s, memory, &options.tls);
    }
    if (status == HF_OK) {
        status = hf_door_open(&op, service, &options, &door);
    }
    hf_keyring_unref(options.keys);
    hf_tls_context_unref(options.tls);
    if (status != HF_OK) {
        (void)complain_op(s, HF_EXIT_CANNOT_OPEN, &op);
        return;
    }
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
        wait_for_end(s, door);
    }
    hf_door_stop(door);
}

static hf_status serve_body(void *arg)
{
    serving *s = arg;
    hf_service *service = NULL;
    if (hf_open(s->store, &service) != HF_OK) {
        s->exit_code = hf_complain(HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
        return HF_OK;
    }
    hf_status status = s->namespace_ != NULL ? hf_namespace_register(service, s->namespace_) : HF_OK;
    if (status == HF_OK || status == HF_ERR_EXISTS) {
        serve_door(s, service);
    } else {
        s->exit_code = hf_complain(HF_EXIT_USAGE, "%s", hf_error_text());
    }
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

static int run_server(serving *s)
{
    raise_descriptors();
    (void)signal(SIGPIPE, SIG_IGN);
    if (hf_run(serve_body, s, .name = "holdfast", .log = log_line, .log_state = s) != HF_OK) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return s->exit_code;
}

/* ---- holdfast serve ------------------------------------------------------------------------------------------------------------ */

static hf_status take_settings(hf_op *op, const hf_settings *settings, serving *s)
{
    s->store = hf_setting_get(settings, HF_SETTING_STORE);
    if (s->store == NULL) {
        return hf_fail(op, HF_ERR_INVALID,
                       "serve needs a database: --store sqlite:FILE (or memory:, which is lost at the end)");
    }
    HF_TRY(take_log(op, s, hf_setting_get(settings, HF_SETTING_LOG_FORMAT),
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
        HF_TRY(take_address(op, s, settings->arena, settings->all[HF_SETTING_LISTEN].values[i], is_network_fine));
    }
    return s->address_count > 0 ? HF_OK : take_address(op, s, settings->arena, "127.0.0.1:7233", is_network_fine);
}

int hf_cmd_serve(int argc, char **argv)
{
    hf_arena arena;
    hf_settings settings;
    serving s = {0};
    hf_op op;
    hf_op_init(&op);
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        (void)printf("holdfast serve: a database behind a port, for the SDKs of Temporal\n\n");
        hf_settings_help();
        return HF_EXIT_FINE;
    }
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    int code = HF_EXIT_USAGE;
    if (hf_settings_read(&op, &settings, &arena, argc, argv) == HF_OK && take_settings(&op, &settings, &s) == HF_OK) {
        code = run_server(&s);
    } else {
        (void)hf_complain(0, "%s", op.message);
    }
    hf_arena_deinit(&arena);
    return code;
}

/* ---- holdfast server start-dev -------------------------------------------------------------------------------------------------- */

/* The arguments of Temporal's command, by which users' tests start a server. */
typedef struct dev_args {
    const char *port;
    const char *ip;
    const char *file;
    const char *log_format;
    const char *log_level;
    const char *namespace_;
    const char *ignored; /* of a server with a web page and tuning that this one does not need */
    bool is_insecure;
} dev_args;

static hf_status take_dev_args(hf_op *op, int argc, char **argv, dev_args *args)
{
    const struct {
        const char *name;
        char letter;
        const char **value; /* NULL = a flag */
        bool *flag;
    } OPTIONS[] = {
        {"port", 'p', &args->port, NULL},
        {"ip", '\0', &args->ip, NULL},
        {"db-filename", 'f', &args->file, NULL},
        {"log-format", '\0', &args->log_format, NULL},
        {"log-level", '\0', &args->log_level, NULL},
        {"namespace", 'n', &args->namespace_, NULL},
        {"dynamic-config-value", '\0', &args->ignored, NULL},
        {"ui-port", '\0', &args->ignored, NULL},
        {"ui-ip", '\0', &args->ignored, NULL},
        {"http-port", '\0', &args->ignored, NULL},
        {"metrics-port", '\0', &args->ignored, NULL},
        {"sqlite-pragma", '\0', &args->ignored, NULL},
        {"headless", '\0', NULL, NULL},
        {"log-config", '\0', NULL, NULL},
        {"insecure-network", '\0', NULL, &args->is_insecure},
    };
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        const char *equals = strchr(word, '=');
        size_t len = equals != NULL && word[1] == '-' ? (size_t)(equals - word) : strlen(word);
        size_t row = 0;
        for (; row < HF_COUNT_OF(OPTIONS); row++) {
            bool is_long = len > 2 && strncmp(word, "--", 2) == 0 && strlen(OPTIONS[row].name) == len - 2 &&
                           memcmp(word + 2, OPTIONS[row].name, len - 2) == 0;
            if (is_long ||
                (len == 2 && word[0] == '-' && OPTIONS[row].letter != '\0' && word[1] == OPTIONS[row].letter)) {
                break;
            }
        }
        if (row == HF_COUNT_OF(OPTIONS)) {
            return hf_fail(op, HF_ERR_INVALID, "server start-dev has no option %s", word);
        }
        bool has_value = equals != NULL && len < strlen(word);
        if (OPTIONS[row].value != NULL && !has_value && i + 1 == argc) {
            return hf_fail(op, HF_ERR_INVALID, "%s needs a value", word);
        }
        if (OPTIONS[row].value != NULL) {
            *OPTIONS[row].value = has_value ? equals + 1 : argv[++i];
        } else if (OPTIONS[row].flag != NULL) {
            *OPTIONS[row].flag = true;
        }
    }
    return HF_OK;
}

int hf_cmd_start_dev(int argc, char **argv)
{
    dev_args args = {.port = "7233", .ip = "127.0.0.1"};
    serving s = {0};
    hf_op op;
    hf_arena arena;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    char address[128];
    char store[HF_PATH_LEN_MAX];
    int code = HF_EXIT_USAGE;
    hf_status status = take_dev_args(&op, argc, argv, &args);
    if (status == HF_OK) {
        bool is_v6 = strchr(args.ip, ':') != NULL && args.ip[0] != '[';
        (void)snprintf(address, sizeof address, is_v6 ? "[%s]:%s" : "%s:%s", args.ip, args.port);
        (void)snprintf(store, sizeof store, args.file != NULL ? "sqlite:%s" : "memory:", args.file);
        s.store = store;
        s.namespace_ = args.namespace_;
        status = take_log(&op, &s, args.log_format, args.log_level);
    }
    if (status == HF_OK) {
        status = take_address(&op, &s, &arena, address, args.is_insecure);
    }
    if (status == HF_OK) {
        code = run_server(&s);
    } else {
        (void)hf_complain(0, "%s", op.message);
    }
    hf_arena_deinit(&arena);
    return code;
}
