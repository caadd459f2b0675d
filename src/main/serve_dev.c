/* Servers that tests start: `holdfast server start-dev`, with the arguments of Temporal's command, and `holdfast PORT`, which skips time. */
#include "main/serve_private.h"
#include "main/tool.h"
#include "open/open.h"

#include <stdio.h>

/* ---- holdfast server start-dev -------------------------------------------------------------------------------------------------- */

/* The arguments of Temporal's command, by which users' tests start a server. */
typedef struct dev_args {
    const char *port;
    const char *ip;
    const char *file;
    const char *log_format;
    const char *log_level;
    const char *namespaces[HF_SETTING_VALUES_MAX];
    int namespace_count;
    const char *attributes[HF_SETTING_VALUES_MAX]; /* "Name=Type" */
    int attribute_count;
    const char *ignored; /* of a server with a web page and tuning that this one does not need */
    bool is_insecure;
} dev_args;

static hf_status take_dev_args(hf_op *op, int argc, char **argv, dev_args *args)
{
    const struct {
        const char *name;
        char letter;
        const char **value; /* NULL = a flag; of a list: its first place */
        int *count;         /* of a list; NULL = one value */
        bool *flag;
    } OPTIONS[] = {
        {"port", 'p', &args->port, NULL, NULL},
        {"ip", '\0', &args->ip, NULL, NULL},
        {"db-filename", 'f', &args->file, NULL, NULL},
        {"log-format", '\0', &args->log_format, NULL, NULL},
        {"log-level", '\0', &args->log_level, NULL, NULL},
        {"namespace", 'n', args->namespaces, &args->namespace_count, NULL},
        {"search-attribute", '\0', args->attributes, &args->attribute_count, NULL},
        {"dynamic-config-value", '\0', &args->ignored, NULL, NULL},
        {"ui-port", '\0', &args->ignored, NULL, NULL},
        {"ui-ip", '\0', &args->ignored, NULL, NULL},
        {"http-port", '\0', &args->ignored, NULL, NULL},
        {"metrics-port", '\0', &args->ignored, NULL, NULL},
        {"sqlite-pragma", '\0', &args->ignored, NULL, NULL},
        {"headless", '\0', NULL, NULL, NULL},
        {"log-config", '\0', NULL, NULL, NULL},
        {"insecure-network", '\0', NULL, NULL, &args->is_insecure},
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
            int *count = OPTIONS[row].count;
            if (count != NULL && *count == HF_SETTING_VALUES_MAX) {
                return hf_fail(op, HF_ERR_INVALID, "%s is there more than %d times", word, HF_SETTING_VALUES_MAX);
            }
            OPTIONS[row].value[count != NULL ? (*count)++ : 0] = has_value ? equals + 1 : argv[++i];
        } else if (OPTIONS[row].flag != NULL) {
            *OPTIONS[row].flag = true;
        }
    }
    return HF_OK;
}

int hf_cmd_start_dev(int argc, char **argv)
{
    dev_args args = {.port = "7233", .ip = "127.0.0.1"};
    hf_serving s = {0};
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
        memcpy(s.namespaces, args.namespaces, sizeof s.namespaces);
        s.namespace_count = args.namespace_count;
        memcpy(s.attributes, args.attributes, sizeof s.attributes);
        s.attribute_count = args.attribute_count;
        status = hf_serve_take_log(&op, &s, args.log_format, args.log_level);
    }
    if (status == HF_OK) {
        status = hf_serve_take_address(&op, &s, &arena, address, args.is_insecure);
    }
    if (status == HF_OK) {
        code = hf_serve_run(&s);
    } else {
        (void)hf_complain(0, "%s", op.message);
    }
    hf_arena_deinit(&arena);
    return code;
}

/* ---- holdfast PORT: a server for tests ------------------------------------------------------------------------------------------ */

bool hf_is_port(const char *word)
{
    size_t len = strspn(word, "0123456789");
    return len > 0 && len <= 5 && word[len] == '\0';
}

/* As the SDKs start Temporal's test server: the port is the only argument, and everything is on this machine. */
int hf_cmd_test_server(const char *port)
{
    hf_serving s = {.skips_time = true, .level = HF_LOG_WARN};
    char address[64];
    hf_op op;
    hf_arena arena;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    (void)snprintf(address, sizeof address, "127.0.0.1:%s", port);
    int code = hf_serve_take_address(&op, &s, &arena, address, false) == HF_OK
                   ? hf_serve_run(&s)
                   : hf_complain(HF_EXIT_USAGE, "%s", op.message);
    hf_arena_deinit(&arena);
    return code;
}

/* ---- What tests want to find there ----------------------------------------------------------------------------------------------- */

/* "Name=Type" */
static hf_status add_attribute(hf_service *service, const char *namespace_, const char *pair)
{
    char name[HF_PATH_LEN_MAX];
    const char *equals = strrchr(pair, '=');
    int type = HF_SEARCH_TEXT;
    while (equals != NULL && type <= HF_SEARCH_KEYWORD_LIST &&
           strcmp(hf_search_attribute_type_name((hf_search_attribute_type)type), equals + 1) != 0) {
        type++;
    }
    if (equals == NULL || type > HF_SEARCH_KEYWORD_LIST || (size_t)(equals - pair) >= sizeof name) {
        return hf_raise(
            HF_ERR_INVALID,
            "search-attribute is NAME=TYPE, TYPE one of Text, Keyword, Int, Double, Bool, Datetime, KeywordList");
    }
    memcpy(name, pair, (size_t)(equals - pair));
    name[equals - pair] = '\0';
    hf_status status = hf_search_attribute_add(service, name, (hf_search_attribute_type)type, .namespace_ = namespace_);
    return status == HF_ERR_EXISTS ? HF_OK : status;
}

hf_status hf_serve_prepare(const hf_serving *s, hf_service *service)
{
    for (int i = 0; i < s->namespace_count; i++) {
        hf_status status = hf_namespace_register(service, s->namespaces[i]);
        if (status != HF_OK && status != HF_ERR_EXISTS) {
            return status;
        }
    }
    for (int k = 0; k < s->attribute_count; k++) {
        HF_TRY(add_attribute(service, "default", s->attributes[k]));
        for (int i = 0; i < s->namespace_count; i++) {
            HF_TRY(add_attribute(service, s->namespaces[i], s->attributes[k]));
        }
    }
    return HF_OK;
}
