/* TZif files, and what follows from them.
 *
 *     header   "TZif", version, 15 bytes, six counts
 *     block    changes: times, then types; types: offset, is it daylight saving time, name; names; leap seconds; two
 *              lists of flags that nobody needs
 *     header, block   version 2 and later: once more, with times of 8 bytes instead of 4; this one counts
 *     footer   version 2 and later: "\n", the rule for all times behind the last change or nothing, "\n"
 *
 * The bytes may come from a client, so nothing in them is believed before it is checked. */
#include "time/zone_private.h"

#define HEADER_LEN 44
#define TYPE_LEN 6
#define TYPES_MAX 256         /* a type is named by a byte */
#define OFFSET_S_MIN (-89999) /* RFC 9636: -25 hours; HF_ZONE_OFFSET_S_MAX is the other bound */

_Static_assert(HF_ZONE_TRANSITIONS_MAX * 9 < HF_ZONE_LEN_MAX, "as many changes as are allowed fit");

typedef struct header {
    char version; /* '\0' = 1, '2', '3', '4' */
    uint32_t isut_count;
    uint32_t isstd_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t name_len;
} header;

static uint64_t big_endian(const char *bytes, size_t len)
{
    hf_assert(len <= sizeof(uint64_t));
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++) {
        number = number << 8 | (unsigned char)bytes[i];
    }
    return number;
}

/* NULL: there are not as many bytes. */
static const char *take(hf_str *bytes, uint64_t len)
{
    if (len > bytes->len) {
        return NULL;
    }
    const char *at = bytes->data;
    *bytes = hf_str_of_len(at + len, bytes->len - (size_t)len);
    return at;
}

static hf_status take_header(hf_op *op, hf_str *bytes, header *ret_header)
{
    const char *at = take(bytes, HEADER_LEN);
    if (at == NULL || memcmp(at, "TZif", 4) != 0) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: not a TZif file");
    }
    if (at[4] != '\0' && (at[4] < '2' || at[4] > '4')) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: version 0x%02x of TZif is not known",
                       (unsigned)(unsigned char)at[4]);
    }
    *ret_header = (header){
        .version = at[4],
        .isut_count = (uint32_t)big_endian(at + 20, 4),
        .isstd_count = (uint32_t)big_endian(at + 24, 4),
        .leap_count = (uint32_t)big_endian(at + 28, 4),
        .time_count = (uint32_t)big_endian(at + 32, 4),
        .type_count = (uint32_t)big_endian(at + 36, 4),
        .name_len = (uint32_t)big_endian(at + 40, 4),
    };
    return HF_OK;
}

static uint64_t block_len(const header *h, uint64_t time_len)
{
    return h->time_count * (time_len + 1) + h->type_count * UINT64_C(6) + h->name_len + h->leap_count * (time_len + 4) +
           h->isstd_count + h->isut_count;
}

static hf_status check_counts(hf_op *op, const header *h)
{
    if (h->leap_count > 0) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: zones that count leap seconds are not supported");
    }
    if (h->time_count > HF_ZONE_TRANSITIONS_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: %u transitions, at most %u are allowed", h->time_count,
                       HF_ZONE_TRANSITIONS_MAX);
    }
    if (h->type_count == 0 || h->type_count > TYPES_MAX || h->name_len == 0 ||
        (h->isstd_count != 0 && h->isstd_count != h->type_count) ||
        (h->isut_count != 0 && h->isut_count != h->type_count)) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: the counts in the header do not fit together");
    }
    return HF_OK;
}

/* The offsets of all types. */
static hf_status read_types(hf_op *op, const header *h, const char *types, int32_t *offsets)
{
    for (uint32_t i = 0; i < h->type_count; i++) {
        const char *type = types + (size_t)i * TYPE_LEN;
        offsets[i] = (int32_t)(uint32_t)big_endian(type, 4);
        if (offsets[i] < OFFSET_S_MIN || offsets[i] > HF_ZONE_OFFSET_S_MAX || (unsigned char)type[4] > 1 ||
            (unsigned char)type[5] >= h->name_len) {
            return hf_fail(op, HF_ERR_INVALID, "time zone data: local time type %u is out of range", i);
        }
    }
    return HF_OK;
}

static hf_status read_block(hf_op *op, const header *h, const char *block, size_t time_len, hf_arena *arena,
                            hf_zone *zone)
{
    int32_t types[TYPES_MAX];
    const char *time_types = block + h->time_count * time_len;
    HF_TRY(read_types(op, h, time_types + h->time_count, types));
    int64_t *at = HF_ARENA_ARRAY(arena, int64_t, h->time_count);
    int32_t *offsets = HF_ARENA_ARRAY(arena, int32_t, h->time_count);
    if (at == NULL || offsets == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a time zone");
    }
    for (uint32_t i = 0; i < h->time_count; i++) {
        uint64_t time = big_endian(block + i * time_len, time_len);
        at[i] = time_len == 4 ? (int32_t)(uint32_t)time : (int64_t)time;
        unsigned type = (unsigned char)time_types[i];
        if (type >= h->type_count) {
            return hf_fail(op, HF_ERR_INVALID, "time zone data: transition %u has a type that does not exist", i);
        }
        if (i > 0 && at[i] <= at[i - 1]) {
            return hf_fail(op, HF_ERR_INVALID, "time zone data: transition %u is not after the one before", i);
        }
        offsets[i] = types[type];
    }
    zone->count = h->time_count;
    zone->at = at;
    zone->offsets = offsets;
    zone->first_offset_s = types[0];
    return HF_OK;
}

static hf_status read_footer(hf_op *op, hf_str bytes, hf_zone *zone)
{
    if (bytes.len < 2 || bytes.data[0] != '\n' ||
        memchr(bytes.data + 1, '\n', bytes.len - 1) != &bytes.data[bytes.len - 1]) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: it does not end with one rule for later years");
    }
    hf_str text = hf_str_of_len(bytes.data + 1, bytes.len - 2);
    zone->has_rule = text.len > 0;
    return zone->has_rule ? hf_zone_rule_parse(op, text, &zone->rule) : HF_OK;
}

hf_status hf_zone_parse(hf_op *op, hf_str bytes, hf_arena *arena, const hf_zone **ret_zone)
{
    header h;
    size_t time_len = 4;
    if (bytes.len > HF_ZONE_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: %zu bytes, at most %u are allowed", bytes.len,
                       HF_ZONE_LEN_MAX);
    }
    HF_TRY(take_header(op, &bytes, &h));
    bool has_footer = h.version != '\0';
    if (has_footer) {
        if (take(&bytes, block_len(&h, time_len)) == NULL) {
            return hf_fail(op, HF_ERR_INVALID, "time zone data: it ends too early");
        }
        HF_TRY(take_header(op, &bytes, &h));
        time_len = 8;
    }
    HF_TRY(check_counts(op, &h));
    const char *block = take(&bytes, block_len(&h, time_len));
    if (block == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "time zone data: it ends too early");
    }
    hf_zone *zone = HF_ARENA_NEW(arena, hf_zone);
    if (zone == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a time zone");
    }
    HF_TRY(read_block(op, &h, block, time_len, arena, zone));
    if (has_footer) {
        HF_TRY(read_footer(op, bytes, zone));
    }
    *ret_zone = zone;
    return HF_OK;
}

/* ---- Looking up -------------------------------------------------------------------------------------------------------- */

/* How many changes there were until then. */
static size_t changes_until(const hf_zone *zone, int64_t utc_s)
{
    size_t low = 0;
    size_t high = zone->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->at[middle] <= utc_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    hf_assert(low == 0 || zone->at[low - 1] <= utc_s);
    hf_assert(low == zone->count || zone->at[low] > utc_s);
    return low;
}

int32_t hf_zone_offset(const hf_zone *zone, int64_t utc_s)
{
    hf_assert(utc_s >= -HF_ZONE_S_MAX && utc_s <= HF_ZONE_S_MAX);
    if (zone == NULL) {
        return 0;
    }
    size_t count = changes_until(zone, utc_s);
    int32_t offset = 0;
    if (count == zone->count && zone->has_rule) {
        offset = hf_zone_rule_offset(&zone->rule, utc_s);
    } else {
        offset = count > 0 ? zone->offsets[count - 1] : zone->first_offset_s;
    }
    hf_assert(offset >= -HF_ZONE_OFFSET_S_MAX && offset <= HF_ZONE_OFFSET_S_MAX); /* time-T2 */
    return offset;
}

hf_civil hf_zone_local(const hf_zone *zone, int64_t utc_s)
{
    return hf_civil_of(utc_s + hf_zone_offset(zone, utc_s));
}

int64_t hf_zone_utc(const hf_zone *zone, hf_civil local)
{
    int64_t local_s = hf_civil_seconds(local);
    /* The offset at a moment that is off by the offset itself. It is right unless the clocks are changed in between; the
     * offset at the moment that it leads to decides then. An offset of 0 leads to the same moment. */
    int32_t guess = hf_zone_offset(zone, local_s);
    int32_t offset = guess != 0 ? hf_zone_offset(zone, local_s - guess) : 0;
    return local_s - offset;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    char lower = (char)(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-' || c == '/';
}

hf_status hf_zone_name_check(hf_op *op, hf_str name)
{
    if (name.len > HF_ZONE_NAME_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the name of a time zone has %zu bytes, at most %d are allowed", name.len,
                       HF_ZONE_NAME_LEN_MAX);
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_char(name.data[i]) || (i == 0 && name.data[i] == '/')) {
            return hf_fail(
                op, HF_ERR_INVALID,
                "byte %zu of the name of a time zone, 0x%02x, is not allowed there (Europe/Berlin is a name)", i + 1,
                (unsigned)(unsigned char)name.data[i]);
        }
    }
    return HF_OK;
}

bool hf_zone_name_is_utc(hf_str name)
{
    return name.len == 0 || hf_str_equal(name, HF_STR("UTC")) || hf_str_equal(name, HF_STR("Local"));
}
