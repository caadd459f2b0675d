/* Addresses: "sqlite:orders.db?mem=48M&durability=normal". The path ends at the first question mark; nothing in it is
 * escaped. */
#include "open/open.h"

#include <stdio.h>
#include <string.h>

/* With less memory a commit of the largest size would not fit. */
#define MEM_MIN ((size_t)16 << 20)
#define LOG_MIN ((size_t)64 << 10)

static const char *const KEYS = "mem=SIZE (as 48M), durability=full or normal, log=SIZE";

/* "48M": digits, then K, M, G or nothing. */
static bool parse_size(hf_str text, size_t *ret_size)
{
    size_t value = 0;
    size_t i = 0;
    while (i < text.len && text.data[i] >= '0' && text.data[i] <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (size_t)(text.data[i] - '0'), &value)) {
            return false;
        }
        i++;
    }
    unsigned shift = 0;
    if (i + 1 == text.len) {
        static const char UNITS[3] = {'K', 'M', 'G'};
        const char *unit = memchr(UNITS, text.data[i], sizeof UNITS);
        if (unit == NULL) {
            return false;
        }
        shift = 10 * (unsigned)(unit - UNITS + 1);
    } else if (i != text.len) {
        return false;
    }
    *ret_size = value << shift;
    return text.len > 0 && i > 0 && *ret_size >> shift == value;
}

static hf_status take_size(hf_op *op, const char *key, hf_str value, size_t least, size_t *ret_size)
{
    size_t size = 0;
    bool is_mega = least % (1024 * 1024) == 0;
    if (!parse_size(value, &size)) {
        return hf_fail(op, HF_ERR_INVALID, "%s=%.*s is not a size: write it like 48M", key, HF_STR_ARGS(value));
    }
    if (size < least) {
        return hf_fail(op, HF_ERR_INVALID, "%s=%.*s is too small: at least %zu%s", key, HF_STR_ARGS(value),
                       least >> (is_mega ? 20 : 10), is_mega ? "M" : "K");
    }
    *ret_size = size;
    return HF_OK;
}

static hf_status take_key(hf_op *op, hf_str key, hf_str value, hf_service_address *place)
{
    if (hf_str_equal(key, HF_STR("mem"))) {
        return take_size(op, "mem", value, MEM_MIN, &place->mem);
    }
    if (hf_str_equal(key, HF_STR("log"))) {
        return take_size(op, "log", value, LOG_MIN, &place->log_len_max);
    }
    if (hf_str_equal(key, HF_STR("durability"))) {
        if (hf_str_equal(value, HF_STR("full")) || hf_str_equal(value, HF_STR("normal"))) {
            place->durability = value.data[0] == 'f' ? HF_DURABILITY_FULL : HF_DURABILITY_NORMAL;
            return HF_OK;
        }
        return hf_fail(op, HF_ERR_INVALID, "durability=%.*s is unknown: use full or normal", HF_STR_ARGS(value));
    }
    return hf_fail(op, HF_ERR_INVALID, "unknown key \"%.*s\" in an address: the keys are %s", HF_STR_ARGS(key), KEYS);
}

/* "mem=48M&durability=full" */
static hf_status take_keys(hf_op *op, const char *text, hf_service_address *place)
{
    while (*text != '\0') {
        hf_str pair = {text, strcspn(text, "&")};
        const char *equals = memchr(pair.data, '=', pair.len);
        if (equals == NULL) {
            return hf_fail(op, HF_ERR_INVALID, "\"%.*s\" in an address is not key=value: the keys are %s",
                           HF_STR_ARGS(pair), KEYS);
        }
        hf_str key = {pair.data, (size_t)(equals - pair.data)};
        hf_str value = {equals + 1, pair.len - key.len - 1};
        HF_TRY(take_key(op, key, value, place));
        text += pair.len + (text[pair.len] == '&' ? 1 : 0);
    }
    return HF_OK;
}

hf_status hf_service_address_parse(hf_op *op, const char *address, hf_service_address *ret_place)
{
    static const struct {
        const char *prefix;
        hf_scheme scheme;
    } SCHEMES[] = {{"sqlite:", HF_SCHEME_SQLITE}, {"memory:", HF_SCHEME_MEMORY}};
    *ret_place = (hf_service_address){0};
    const char *path = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(SCHEMES); i++) {
        size_t len = strlen(SCHEMES[i].prefix);
        if (strncmp(address, SCHEMES[i].prefix, len) == 0) {
            ret_place->scheme = SCHEMES[i].scheme;
            path = address + len;
        }
    }
    if (path == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "\"%.200s\" is not an address: use sqlite:PATH or memory:", address);
    }
    size_t len = strcspn(path, "?");
    bool wants_path = ret_place->scheme == HF_SCHEME_SQLITE;
    if (wants_path ? len == 0 || len > HF_PATH_LEN_MAX - 32 : len != 0) {
        return hf_fail(op, HF_ERR_INVALID,
                       wants_path ? "\"%.200s\" needs a path of at most 4064 bytes after sqlite:"
                                  : "\"%.200s\": memory: has no path",
                       address);
    }
    memcpy(ret_place->path, path, len);
    return path[len] == '?' ? take_keys(op, path + len + 1, ret_place) : HF_OK;
}

hf_shares hf_service_address_shares(const hf_service_address *place)
{
    size_t mem = place->mem;
    return (hf_shares){
        .cache = mem / 6, .state = mem / 2, .journal = mem / 8 < ((size_t)32 << 20) ? mem / 8 : (size_t)32 << 20};
}
