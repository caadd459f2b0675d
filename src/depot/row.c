/* Records of the depot's file: bodies; the store's header with its checksum stands before them. Numbers are varints,
 * texts have their length before them. The first byte is the version; entries have their own layout, see below. */
#include "depot/file.h"

enum { PENDING_VERSION = 2, SPACE_VERSION = 1, ALIAS_VERSION = 1, NUMBERS_VERSION = 1 };

static void put_number(hf_buf *out, uint64_t number)
{
    unsigned char bytes[10];
    size_t len = 0;
    do {
        bytes[len] = (unsigned char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        number >>= 7;
        len++;
    } while (number > 0);
    hf_buf_put(out, bytes, len);
}

static void put_signed(hf_buf *out, int64_t number)
{
    put_number(out, ((uint64_t)number << 1) ^ (uint64_t)(number >> 63));
}

/* 0 = there is none; else its length and one more. */
static void put_value(hf_buf *out, const hf_value *value)
{
    put_number(out, value != NULL ? hf_value_len(value) + 1 : 0);
    if (value != NULL) {
        hf_buf_put(out, hf_value_data(value), hf_value_len(value));
    }
}

/* Reads with a sticky failure. */
typedef struct reader {
    const unsigned char *at, *end;
    bool is_bad;
    bool no_memory;
} reader;

static uint64_t get_number(reader *in)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end) {
            break;
        }
        unsigned char byte = *in->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        number |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return number;
        }
    }
    in->is_bad = true;
    return 0;
}

static int64_t get_signed(reader *in)
{
    uint64_t number = get_number(in);
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static hf_str get_bytes(reader *in, uint64_t len)
{
    if (in->is_bad || len > (uint64_t)(in->end - in->at)) {
        in->is_bad = true;
        return (hf_str){0};
    }
    hf_str bytes = hf_str_of_len(in->at, (size_t)len);
    in->at += len;
    hf_assert(in->at <= in->end);
    return bytes;
}

/* NULL: the bytes are not there, or no memory. */
static hf_value *value_of(reader *in, hf_str bytes)
{
    hf_value *value = NULL;
    if (!in->is_bad && hf_value_copy(bytes.data != NULL ? bytes.data : "", bytes.len, &value) != HF_OK) {
        in->is_bad = in->no_memory = true;
    }
    return value;
}

static hf_value *get_value(reader *in)
{
    uint64_t len = get_number(in);
    return len == 0 || in->is_bad ? NULL : value_of(in, get_bytes(in, len - 1));
}

/* A text is a value with its NUL, and no other. */
static hf_value *get_text(reader *in)
{
    hf_value *value = get_value(in);
    if (value != NULL) {
        size_t len = hf_value_len(value);
        const char *data = hf_value_data(value);
        if (len == 0 || memchr(data, '\0', len) != data + len - 1) {
            in->is_bad = true;
        }
    }
    return value;
}

static reader reader_of(hf_str bytes, unsigned version)
{
    reader in = {.at = (const unsigned char *)bytes.data, .end = (const unsigned char *)bytes.data + bytes.len};
    if (get_number(&in) != version) {
        in.is_bad = true;
    }
    return in;
}

static bool is_whole(const reader *in)
{
    return !in->is_bad && in->at == in->end;
}

/* ---- Entries -----------------------------------------------------------------------------------------------------
 *
 * Most are values that were fetched once, and there may be millions: these take eight bytes beside the value. The first
 * byte says what else there is; its highest bit is for layouts to come. The value is what remains. */

enum {
    ENTRY_KIND = 3,         /* hf_depot_entry_kind */
    ENTRY_UNUSABLE = 4,     /* soft-invalidated */
    ENTRY_CHANGED = 8,      /* its version is not 1, and follows */
    ENTRY_GENERATIONS = 16, /* they are not 0, and follow */
    ENTRY_FAILED = 32,      /* failures and back-off follow */
    ENTRY_SAID = 64,        /* max_age, revision and the texts follow */
    ENTRY_BITS = 127
};

/* Microseconds in seven bytes, the lowest first: what is read from the file may be one microsecond older than it was. */
enum { TIME_LEN = 7 };

static void put_time(hf_buf *out, int64_t ns)
{
    unsigned char bytes[TIME_LEN];
    uint64_t us = (uint64_t)(ns / 1000 - (ns % 1000 < 0));
    for (size_t i = 0; i < TIME_LEN; i++) {
        bytes[i] = (unsigned char)(us >> (8 * i));
    }
    hf_buf_put(out, bytes, sizeof bytes);
}

static int64_t get_time(reader *in)
{
    hf_str bytes = get_bytes(in, TIME_LEN);
    uint64_t us = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        us |= (uint64_t)(unsigned char)bytes.data[i] << (8 * i + 8);
    }
    int64_t wide = (int64_t)us / 256; /* with its sign */
    if (wide > INT64_MAX / 1000 || wide < INT64_MIN / 1000) {
        in->is_bad = true;
        return 0;
    }
    return wide * 1000;
}

void hf_row_put_entry(hf_buf *out, const hf_depot_entry *entry)
{
    hf_assert((entry->value != NULL) == (entry->kind == HF_ENTRY_VALUE));
    bool is_said = entry->max_age != -1 || entry->revision != 0 || entry->etag != NULL || entry->last_modified != NULL;
    unsigned bits = (unsigned)entry->kind | (entry->is_unusable ? ENTRY_UNUSABLE : 0u) |
                    (entry->version != 1 ? ENTRY_CHANGED : 0u) |
                    ((entry->generation | entry->generation_all) != 0 ? ENTRY_GENERATIONS : 0u) |
                    (entry->failures != 0 || entry->backoff_until != 0 ? ENTRY_FAILED : 0u) |
                    (is_said ? ENTRY_SAID : 0u);
    put_number(out, bits);
    put_time(out, entry->validated_at);
    if ((bits & ENTRY_CHANGED) != 0) {
        put_number(out, entry->version);
    }
    if ((bits & ENTRY_GENERATIONS) != 0) {
        put_number(out, entry->generation);
        put_number(out, entry->generation_all);
    }
    if ((bits & ENTRY_FAILED) != 0) {
        put_number(out, entry->failures);
        put_signed(out, entry->backoff_until);
    }
    if ((bits & ENTRY_SAID) != 0) {
        put_signed(out, entry->max_age);
        put_number(out, entry->revision);
        put_value(out, entry->etag);
        put_value(out, entry->last_modified);
    }
    if (entry->value != NULL) {
        hf_buf_put(out, hf_value_data(entry->value), hf_value_len(entry->value));
    }
}

bool hf_row_get_entry(hf_str bytes, hf_depot_entry *ret_entry, bool *ret_no_memory)
{
    reader in = {.at = (const unsigned char *)bytes.data, .end = (const unsigned char *)bytes.data + bytes.len};
    uint64_t bits = get_number(&in);
    in.is_bad = in.is_bad || bits > ENTRY_BITS;
    hf_depot_entry entry = {
        .kind = (hf_depot_entry_kind)(bits & ENTRY_KIND),
        .is_unusable = (bits & ENTRY_UNUSABLE) != 0,
        .version = 1,
        .max_age = -1,
    };
    entry.validated_at = get_time(&in);
    if ((bits & ENTRY_CHANGED) != 0) {
        entry.version = get_number(&in);
    }
    if ((bits & ENTRY_GENERATIONS) != 0) {
        entry.generation = get_number(&in);
        entry.generation_all = get_number(&in);
    }
    if ((bits & ENTRY_FAILED) != 0) {
        entry.failures = (uint32_t)get_number(&in);
        entry.backoff_until = get_signed(&in);
    }
    if ((bits & ENTRY_SAID) != 0) {
        entry.max_age = get_signed(&in);
        entry.revision = get_number(&in);
        entry.etag = get_text(&in);
        entry.last_modified = get_text(&in);
    }
    if (entry.kind == HF_ENTRY_VALUE && !in.is_bad) {
        entry.value = value_of(&in, get_bytes(&in, (uint64_t)(in.end - in.at)));
    }
    *ret_no_memory = in.no_memory;
    if (!is_whole(&in)) {
        hf_entry_drop(&entry);
        return false;
    }
    hf_assert(entry.kind <= HF_ENTRY_DELETED && (entry.value != NULL) == (entry.kind == HF_ENTRY_VALUE));
    *ret_entry = entry;
    return true;
}

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

void hf_row_put_pending(hf_buf *out, hf_str key, const hf_pending *row)
{
    hf_assert((row->data == NULL) == (row->verb == HF_WRITE_REMOVE) && !row->is_origin_first);
    hf_assert(row->on_conflict >= HF_CONFLICT_SERVER_WINS && row->on_conflict <= HF_CONFLICT_MERGE);
    hf_assert(memchr(row->message, '\0', sizeof row->message) != NULL);
    put_number(out, PENDING_VERSION);
    put_number(out, key.len);
    hf_buf_put(out, key.data, key.len);
    put_number(out, row->verb);
    put_number(out, (row->state == HF_ROW_DEAD) | (unsigned)row->if_none << 1 | (unsigned)row->is_forced << 2);
    put_number(out, row->on_conflict - HF_CONFLICT_SERVER_WINS); /* 0 in the file is "the server wins" */
    hf_buf_put(out, row->id, sizeof row->id);
    put_number(out, row->attempts);
    put_number(out, row->rounds);
    put_signed(out, row->made_at);
    put_signed(out, row->retry_at);
    put_number(out, row->status);
    size_t message_len = strlen(row->message);
    put_number(out, message_len);
    hf_buf_put(out, row->message, message_len);
    put_value(out, row->if_match);
    put_value(out, row->data);
}

bool hf_row_get_pending(hf_str bytes, hf_str *ret_key, hf_pending *ret_row, bool *ret_no_memory)
{
    /* Version 1 had no retry_at. */
    unsigned version = bytes.len > 0 && bytes.data[0] == 1 ? 1 : PENDING_VERSION;
    reader in = reader_of(bytes, version);
    hf_pending row = {0};
    hf_depot_key parts;
    hf_str key = get_bytes(&in, get_number(&in));
    in.is_bad = in.is_bad || !hf_depot_key_unpack(key, &parts);
    uint64_t verb = get_number(&in);
    uint64_t flags = get_number(&in);
    uint64_t policy = get_number(&in);
    in.is_bad =
        in.is_bad || verb > HF_WRITE_CREATE || flags > 7 || policy > HF_CONFLICT_MERGE - HF_CONFLICT_SERVER_WINS;
    row.verb = (hf_write_verb)verb;
    row.state = (flags & 1) != 0 ? HF_ROW_DEAD : HF_ROW_WAITING;
    row.if_none = (flags & 2) != 0;
    row.is_forced = (flags & 4) != 0;
    row.on_conflict = (hf_conflict)(HF_CONFLICT_SERVER_WINS + policy);
    hf_str id = get_bytes(&in, sizeof row.id);
    if (!in.is_bad) {
        memcpy(row.id, id.data, sizeof row.id);
    }
    row.attempts = (uint32_t)get_number(&in);
    row.rounds = (uint32_t)get_number(&in);
    row.made_at = get_signed(&in);
    row.retry_at = version > 1 ? get_signed(&in) : 0;
    row.status = (hf_status)get_number(&in);
    hf_str message = get_bytes(&in, get_number(&in));
    in.is_bad = in.is_bad || message.len >= sizeof row.message;
    if (!in.is_bad && message.len > 0) {
        memcpy(row.message, message.data, message.len);
    }
    row.if_match = get_text(&in);
    row.data = get_value(&in);
    bool is_good = is_whole(&in) && (row.data == NULL) == (row.verb == HF_WRITE_REMOVE);
    *ret_no_memory = in.no_memory;
    if (!is_good) {
        hf_value_unref(row.if_match);
        hf_value_unref(row.data);
        return false;
    }
    *ret_key = key;
    *ret_row = row;
    return true;
}

/* ---- Generations ------------------------------------------------------------------------------------------------- */

void hf_row_put_space(hf_buf *out, uint64_t generation, uint64_t hard)
{
    hf_assert(hard <= generation); /* DP3 */
    put_number(out, SPACE_VERSION);
    put_number(out, generation);
    put_number(out, hard);
}

bool hf_row_get_space(hf_str bytes, uint64_t *ret_generation, uint64_t *ret_hard)
{
    reader in = reader_of(bytes, SPACE_VERSION);
    *ret_generation = get_number(&in);
    *ret_hard = get_number(&in);
    return is_whole(&in) && *ret_hard <= *ret_generation;
}

/* ---- Aliases ----------------------------------------------------------------------------------------------------- */

void hf_row_put_alias(hf_buf *out, hf_str to, int64_t made_at)
{
    put_number(out, ALIAS_VERSION);
    put_signed(out, made_at);
    put_number(out, to.len);
    hf_buf_put(out, to.data, to.len);
}

bool hf_row_get_alias(hf_str bytes, hf_str *ret_to, int64_t *ret_made_at)
{
    reader in = reader_of(bytes, ALIAS_VERSION);
    hf_depot_key parts;
    *ret_made_at = get_signed(&in);
    *ret_to = get_bytes(&in, get_number(&in));
    return is_whole(&in) && hf_depot_key_unpack(*ret_to, &parts);
}

/* ---- Numbers of writes ------------------------------------------------------------------------------------------- */

_Static_assert(HF_ROW_NUMBERS_LEN == 1 + sizeof(uint64_t), "a version and a number");

void hf_row_put_numbers(char ret_bytes[HF_ROW_NUMBERS_LEN], uint64_t next)
{
    ret_bytes[0] = NUMBERS_VERSION;
    for (size_t i = 0; i < sizeof next; i++) {
        ret_bytes[1 + i] = (char)(unsigned char)(next >> (8 * i));
    }
}

bool hf_row_get_numbers(hf_str bytes, uint64_t *ret_next)
{
    uint64_t next = 0;
    if (bytes.len != HF_ROW_NUMBERS_LEN || bytes.data[0] != NUMBERS_VERSION) {
        return false;
    }
    for (size_t i = 0; i < sizeof next; i++) {
        next |= (uint64_t)(unsigned char)bytes.data[1 + i] << (8 * i);
    }
    *ret_next = next;
    return next <= INT64_MAX; /* numbers are keys of rows */
}
