/* Addresses: "sqlite:orders.db?mem=48M&durability=normal". The path ends at the first question mark; nothing in it is
 * escaped. */
#include "open/open.h"

#include "history/limits.h"

#include <stdio.h>
#include <string.h>

/* With less memory a commit of the largest size would not fit. */
#define MEM_MIN ((size_t)16 << 20)
#define LOG_MIN ((size_t)64 << 10)
enum { HOST_LEN_MAX = 253 }; /* bytes of a name in the DNS */

static const char *const KEYS =
    "mem=SIZE (as 48M), durability=full or normal, log=SIZE, retention=SPAN (as 30d), share=yes or no";
static const char *const OWNER_KEYS = "namespace=NAME";
static const char *const REMOTE_KEYS =
    "namespace=NAME, tls=yes or no, ca=FILE, cert=FILE, key=FILE, server_name=NAME, api_key_file=FILE";
#define DEFAULT_PORT "7233"

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

bool hf_retention_parse(hf_str text, int64_t *ret_ns)
{
    static const struct {
        char unit;
        int64_t ns;
    } UNITS[] = {{'s', 1000000000}, {'m', 60000000000}, {'h', 3600000000000}, {'d', 86400000000000}};
    int64_t value = 0;
    size_t i = 0;
    for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text.data[i] - '0', &value)) {
            return false;
        }
    }
    if (i > 0 && i == text.len && value == 0) {
        *ret_ns = 0;
        return true;
    }
    for (size_t n = 0; i > 0 && i + 1 == text.len && n < HF_COUNT_OF(UNITS); n++) {
        if (UNITS[n].unit == text.data[i]) {
            return !__builtin_mul_overflow(value, UNITS[n].ns, ret_ns);
        }
    }
    return false;
}

static hf_status take_yes(hf_op *op, const char *key, hf_str value, bool *ret_yes)
{
    if (!hf_str_equal(value, HF_STR("yes")) && !hf_str_equal(value, HF_STR("no"))) {
        return hf_fail(op, HF_ERR_INVALID, "%s=%.*s is unknown: use yes or no", key, HF_STR_ARGS(value));
    }
    *ret_yes = value.data[0] == 'y';
    return HF_OK;
}

static hf_status take_remote_key(hf_op *op, hf_str key, hf_str value, hf_service_address *place)
{
    const struct {
        hf_str key;
        hf_str *place;
        size_t len_max;
        bool needs_tls;
    } texts[] = {
        {HF_STR("namespace"), &place->namespace_, HF_ID_LEN_MAX, false},
        {HF_STR("ca"), &place->ca, HF_PATH_LEN_MAX - 1, true},
        {HF_STR("cert"), &place->certificate, HF_PATH_LEN_MAX - 1, true},
        {HF_STR("key"), &place->key, HF_PATH_LEN_MAX - 1, true},
        {HF_STR("server_name"), &place->server_name, HOST_LEN_MAX, true},
        {HF_STR("api_key_file"), &place->api_key_file, HF_PATH_LEN_MAX - 1, false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(texts); i++) {
        if (!hf_str_equal(key, texts[i].key)) {
            continue;
        }
        if (value.len == 0 || value.len > texts[i].len_max) {
            return hf_fail(op, HF_ERR_INVALID, "%.*s= in an address needs 1 to %zu bytes", HF_STR_ARGS(key),
                           texts[i].len_max);
        }
        *texts[i].place = value;
        place->is_tls |= texts[i].needs_tls;
        return HF_OK;
    }
    if (hf_str_equal(key, HF_STR("tls"))) {
        return take_yes(op, "tls", value, &place->is_tls);
    }
    return hf_fail(op, HF_ERR_INVALID, "unknown key \"%.*s\" in an address: the keys of temporal:// are %s",
                   HF_STR_ARGS(key), REMOTE_KEYS);
}

static hf_status take_owner_key(hf_op *op, hf_str key, hf_str value, hf_service_address *place)
{
    if (!hf_str_equal(key, HF_STR("namespace"))) {
        return hf_fail(op, HF_ERR_INVALID, "unknown key \"%.*s\" in an address: the keys of owner: are %s",
                       HF_STR_ARGS(key), OWNER_KEYS);
    }
    if (value.len == 0 || value.len > HF_ID_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "namespace= in an address needs 1 to %d bytes", (int)HF_ID_LEN_MAX);
    }
    place->namespace_ = value;
    return HF_OK;
}

static hf_status take_key(hf_op *op, hf_str key, hf_str value, hf_service_address *place)
{
    if (place->scheme == HF_SCHEME_REMOTE) {
        return take_remote_key(op, key, value, place);
    }
    if (place->scheme == HF_SCHEME_OWNER) {
        return take_owner_key(op, key, value, place);
    }
    if (place->scheme == HF_SCHEME_SQLITE && hf_str_equal(key, HF_STR("share"))) {
        return take_yes(op, "share", value, &place->is_shared);
    }
    if (hf_str_equal(key, HF_STR("mem"))) {
        return take_size(op, "mem", value, MEM_MIN, &place->mem);
    }
    if (hf_str_equal(key, HF_STR("log"))) {
        return take_size(op, "log", value, LOG_MIN, &place->log_len_max);
    }
    if (hf_str_equal(key, HF_STR("retention"))) {
        place->has_retention = true;
        return hf_retention_parse(value, &place->retention)
                   ? HF_OK
                   : hf_fail(op, HF_ERR_INVALID,
                             "retention=%.*s is not a span: write it like 30d, 12h, 90m or 45s, or 0",
                             HF_STR_ARGS(value));
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
                           HF_STR_ARGS(pair),
                           place->scheme == HF_SCHEME_REMOTE  ? REMOTE_KEYS
                           : place->scheme == HF_SCHEME_OWNER ? OWNER_KEYS
                                                              : KEYS);
        }
        hf_str key = {pair.data, (size_t)(equals - pair.data)};
        hf_str value = {equals + 1, pair.len - key.len - 1};
        HF_TRY(take_key(op, key, value, place));
        text += pair.len + (text[pair.len] == '&' ? 1 : 0);
    }
    return HF_OK;
}

/* "localhost", "10.0.0.1:7233", "[::1]:7233" */
static hf_status take_host(hf_op *op, hf_str text, hf_service_address *place)
{
    const char *bracket = text.len > 0 && text.data[0] == '[' ? memchr(text.data, ']', text.len) : NULL;
    size_t skip = bracket != NULL ? (size_t)(bracket - text.data) : 0;
    const char *colon = memchr(text.data + skip, ':', text.len - skip);
    place->host = colon != NULL ? hf_str_of_len(text.data, (size_t)(colon - text.data)) : text;
    place->port = colon != NULL ? hf_str_of_len(colon + 1, text.len - place->host.len - 1) : HF_STR(DEFAULT_PORT);
    int64_t port = 0;
    for (size_t i = 0; i < place->port.len && port <= UINT16_MAX; i++) {
        char digit = place->port.data[i];
        port = digit >= '0' && digit <= '9' ? port * 10 + (digit - '0') : INT64_MAX / 16;
    }
    bool is_host = place->host.len > 0 && place->host.len <= HOST_LEN_MAX &&
                   (bracket == NULL || place->host.len == skip + 1) &&
                   memchr(place->host.data, '/', place->host.len) == NULL;
    if (!is_host || port < 1 || port > UINT16_MAX) {
        return hf_fail(op, HF_ERR_INVALID,
                       "\"temporal://%.*s\" is not an address: use temporal://HOST or temporal://HOST:PORT",
                       text.len > 200 ? 200 : (int)text.len, text.data);
    }
    return HF_OK;
}

hf_status hf_service_address_parse(hf_op *op, const char *address, hf_service_address *ret_place)
{
    static const struct {
        const char *prefix;
        hf_scheme scheme;
    } SCHEMES[] = {{"sqlite:", HF_SCHEME_SQLITE},
                   {"memory:", HF_SCHEME_MEMORY},
                   {"owner:", HF_SCHEME_OWNER},
                   {"temporal://", HF_SCHEME_REMOTE}};
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
        return hf_fail(op, HF_ERR_INVALID,
                       "\"%.200s\" is not an address: use sqlite:PATH, owner:PATH, memory: or temporal://HOST:PORT",
                       address);
    }
    size_t len = strcspn(path, "?");
    if (ret_place->scheme == HF_SCHEME_REMOTE) {
        HF_TRY(take_host(op, hf_str_of_len(path, len), ret_place));
        return path[len] == '?' ? take_keys(op, path + len + 1, ret_place) : HF_OK;
    }
    bool wants_path = ret_place->scheme != HF_SCHEME_MEMORY;
    if (wants_path ? len == 0 || len > HF_PATH_LEN_MAX - 32 : len != 0) {
        return hf_fail(op, HF_ERR_INVALID,
                       wants_path ? "\"%.200s\" needs a path of at most 4064 bytes after its scheme"
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
        .cache = mem / 6, .state = mem / 2, .journal = mem / 4 < ((size_t)32 << 20) ? mem / 4 : (size_t)32 << 20};
}
