/* holdfast key: makes, lists and revokes API keys in a file that `holdfast serve --keys` reads. A running server reads the file again
 * on SIGHUP. */
#include "main/files.h"
#include "main/report.h"
#include "main/target.h"
#include "server/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct key_args {
    const char *file;
    const char *permissions;
    const char *days;
    const char *label;
    const char *id; /* of revoke */
    bool json;
} key_args;

enum { DAY_SECONDS = 24 * 3600, DAYS_MAX = 36500 };

static bool take_args(int argc, char **argv, key_args *args)
{
    const struct {
        const char *name;
        const char **value;
    } OPTIONS[] = {{"--keys", &args->file},
                   {"--permissions", &args->permissions},
                   {"--days", &args->days},
                   {"--label", &args->label}};
    for (int i = 0; i < argc; i++) {
        size_t row = 0;
        if (strcmp(argv[i], "--json") == 0) {
            args->json = true;
            continue;
        }
        while (row < HF_COUNT_OF(OPTIONS) && strcmp(argv[i], OPTIONS[row].name) != 0) {
            row++;
        }
        if (row < HF_COUNT_OF(OPTIONS) && i + 1 < argc) {
            *OPTIONS[row].value = argv[++i];
        } else if (row == HF_COUNT_OF(OPTIONS) && argv[i][0] != '-' && args->id == NULL) {
            args->id = argv[i];
        } else {
            (void)hf_complain(0, "'%s' is not understood, or needs a value", argv[i]);
            return false;
        }
    }
    if (args->file == NULL) {
        (void)hf_complain(0, "which file? --keys FILE");
    }
    return args->file != NULL;
}

/* The file of keys, parsed; a file that does not exist is empty. */
static hf_status read_ring(hf_op *op, const char *path, hf_buf *text, hf_keyring **ret_ring)
{
    hf_status status = hf_file_text(op, path, text);
    if (status == HF_ERR_NOT_FOUND) {
        hf_op_init(op);
        status = HF_OK;
    }
    return status == HF_OK ? hf_keyring_parse(op, text->memory, hf_str_of_len(text->data, text->len), ret_ring)
                           : status;
}

static hf_status add(hf_op *op, const key_args *args, hf_buf *text)
{
    unsigned char random[36];
    unsigned char hash[HF_SHA256_LEN];
    char key[HF_KEY_LEN + 1];
    char hex[2 * HF_SHA256_LEN + 1];
    hf_env *env = hf_env_posix();
    long days = args->days != NULL ? strtol(args->days, NULL, 10) : 0;
    const char *label = args->label != NULL ? args->label : "-";
    if (args->permissions == NULL || (args->days != NULL && (days < 1 || days > DAYS_MAX)) ||
        strpbrk(label, " \t\r\n") != NULL) {
        return hf_fail(op, HF_ERR_INVALID,
                       "key add needs --permissions NAMESPACE:ROLE,...; --days is 1 to %d, and a label is one word",
                       DAYS_MAX);
    }
    hf_arena arena;
    hf_grant *grants = NULL;
    size_t count = 0;
    hf_arena_init(&arena, hf_env_memory(env));
    hf_status status = hf_grants_parse(op, &arena, hf_str_of(args->permissions), &grants, &count);
    hf_arena_deinit(&arena);
    HF_TRY(status);
    HF_TRY(env->ops->random(env, op, random, sizeof random));
    hf_api_key_format(random, key);
    hf_sha256(hf_str_of_len(key, HF_KEY_LEN), hash);
    hf_hex(hash, sizeof hash, hex);
    int64_t expires = days > 0 ? env->ops->wall_now(env).ns / 1000000000 + days * DAY_SECONDS : 0;
    hf_buf_putf(text, "%.*s %s %lld %s %s\n", HF_KEY_ID_LEN, key + 3, hex, (long long)expires, args->permissions,
                label);
    HF_TRY(hf_file_replace(op, args->file, hf_str_of_len(text->data, text->len)));
    if (args->json) {
        char id[HF_KEY_ID_LEN + 1];
        (void)snprintf(id, sizeof id, "%.*s", HF_KEY_ID_LEN, key + 3);
        hf_put_object((const char *const[]){"id", id, "key", key, NULL});
    } else {
        (void)printf("%s\n", key);
    }
    (void)fprintf(stderr, "This key is shown once. The file has only its hash.\n");
    return HF_OK;
}

static void format_expiry(const hf_api_key *key, char *text, size_t len)
{
    time_t at = (time_t)key->expires_s;
    struct tm parts;
    (void)gmtime_r(&at, &parts);
    (void)strftime(text, len, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void list_json(const hf_keyring *ring)
{
    hf_report report;
    hf_report_init(&report);
    hf_json *writer = &report.writer;
    hf_json_array(writer);
    for (size_t i = 0; i < ring->count; i++) {
        const hf_api_key *key = &ring->keys[i];
        char expiry[40];
        format_expiry(key, expiry, sizeof expiry);
        hf_json_object(writer);
        hf_put_key(writer, "id", key->id);
        hf_json_key_string(writer, "expireTime", key->expires_s != 0 ? expiry : NULL);
        hf_json_key(writer, "permissions");
        hf_json_array(writer);
        for (size_t j = 0; j < key->grant_count; j++) {
            hf_json_object(writer);
            hf_put_key(writer, "namespace", key->grants[j].namespace_);
            hf_json_key_string(writer, "role", hf_role_name(key->grants[j].role));
            hf_json_end(writer);
        }
        hf_json_end(writer);
        hf_put_key(writer, "label", key->label);
        hf_json_end(writer);
    }
    hf_json_end(writer);
    (void)hf_report_end(&report, true, HF_EXIT_FINE);
}

static void list(const hf_keyring *ring)
{
    for (size_t i = 0; i < ring->count; i++) {
        const hf_api_key *key = &ring->keys[i];
        char expiry[40] = "never";
        if (key->expires_s != 0) {
            format_expiry(key, expiry, sizeof expiry);
        }
        (void)printf("%.*s  %-20s  ", HF_STR_ARGS(key->id), expiry);
        for (size_t j = 0; j < key->grant_count; j++) {
            (void)printf("%s%.*s:%s", j > 0 ? "," : "", HF_STR_ARGS(key->grants[j].namespace_),
                         hf_role_name(key->grants[j].role));
        }
        (void)printf("  %.*s\n", HF_STR_ARGS(key->label));
    }
}

static hf_status revoke(hf_op *op, const key_args *args, const hf_buf *text)
{
    hf_buf kept;
    bool is_found = false;
    hf_buf_init(&kept, text->memory, SIZE_MAX / 2);
    for (const char *line = hf_buf_text(text); *line != '\0';) {
        size_t len = strcspn(line, "\n");
        size_t whole = len + (line[len] == '\n' ? 1 : 0);
        if (args->id != NULL && strlen(args->id) == HF_KEY_ID_LEN && len > HF_KEY_ID_LEN &&
            line[HF_KEY_ID_LEN] == ' ' && memcmp(line, args->id, HF_KEY_ID_LEN) == 0) {
            is_found = true;
        } else {
            hf_buf_put(&kept, line, whole);
        }
        line += whole;
    }
    hf_status status = is_found
                           ? hf_file_replace(op, args->file, hf_str_of_len(kept.data, kept.len))
                           : hf_fail(op, HF_ERR_NOT_FOUND, "no key has the id '%s'; holdfast key list shows the ids",
                                     args->id != NULL ? args->id : "");
    hf_buf_deinit(&kept);
    return status;
}

typedef enum act { ADD, LIST, REVOKE } act;

static int do_key(act what, int argc, char **argv)
{
    key_args args = {0};
    hf_keyring *ring = NULL;
    hf_buf text;
    hf_op op;
    hf_op_init(&op);
    if (!take_args(argc, argv, &args)) {
        return HF_EXIT_USAGE;
    }
    hf_buf_init(&text, hf_env_memory(hf_env_posix()), 64 << 20);
    hf_status status = read_ring(&op, args.file, &text, &ring);
    if (status == HF_OK && what == ADD) {
        status = add(&op, &args, &text);
    } else if (status == HF_OK && what == REVOKE) {
        status = revoke(&op, &args, &text);
        if (status == HF_OK && args.json) {
            hf_put_object((const char *const[]){"id", args.id, NULL});
        }
    } else if (status == HF_OK) {
        (args.json ? list_json : list)(ring);
    }
    hf_keyring_unref(ring);
    hf_buf_deinit(&text);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op.message);
}

int hf_cmd_key_add(int argc, char **argv)
{
    return do_key(ADD, argc, argv);
}

int hf_cmd_key_list(int argc, char **argv)
{
    return do_key(LIST, argc, argv);
}

int hf_cmd_key_revoke(int argc, char **argv)
{
    return do_key(REVOKE, argc, argv);
}
