#include "depot/look.h"

#include "depot/file.h"

#include <stdio.h>

static const char *const VERBS[] = {
    [HF_WRITE_REPLACE] = "put", [HF_WRITE_PATCH] = "patch", [HF_WRITE_REMOVE] = "delete", [HF_WRITE_CREATE] = "create"};
_Static_assert(HF_COUNT_OF(VERBS) == HF_WRITE_CREATE + 1, "every verb that a row may have has its word");
static const char *const STATES[] = {
    [HF_ROW_WAITING] = "waiting", [HF_ROW_SENDING] = "sending", [HF_ROW_DEAD] = "dead"};

bool hf_look_generation(hf_table table, const hf_key *key, hf_str record, hf_seen_generation *ret_generation)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    bool is_good = hf_record_open(&bad, table, key, record, &body) == HF_OK &&
                   hf_row_get_space(body, &ret_generation->soft, &ret_generation->hard);
    if (!is_good) { /* as the depot does: DP3 */
        ret_generation->soft = ret_generation->hard = UINT64_MAX / 2;
    }
    return is_good;
}

static const char *kind_of(const hf_depot_entry *entry, const hf_seen_generation *space, const hf_seen_generation *all)
{
    static const char *const KINDS[] = {
        [HF_ENTRY_NONE] = "none",
        [HF_ENTRY_VALUE] = "value",
        [HF_ENTRY_ABSENT] = "absent",
        [HF_ENTRY_DELETED] = "deleted",
    };
    hf_assert((unsigned)entry->kind < HF_COUNT_OF(KINDS));
    if (entry->generation < space->hard || entry->generation_all < all->hard) {
        return "gone";
    }
    bool is_unusable = entry->is_unusable || entry->generation < space->soft || entry->generation_all < all->soft;
    return is_unusable && entry->kind == HF_ENTRY_VALUE ? "unusable" : KINDS[entry->kind];
}

hf_status hf_look_entry(const hf_row *row, const hf_seen_generation *space, const hf_seen_generation *all,
                        hf_seen_entry *ret_entry)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    hf_depot_key key;
    hf_depot_entry entry;
    bool no_memory = false;
    hf_assert(space->hard <= space->soft && all->hard <= all->soft);
    if (!hf_depot_key_unpack(row->key.text, &key) ||
        hf_record_open(&bad, HF_TABLE_ENTRY, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_entry(body, &entry, &no_memory)) {
        return no_memory ? HF_ERR_NOMEM : HF_ERR_INVALID;
    }
    *ret_entry = (hf_seen_entry){
        .key = key,
        .kind = kind_of(&entry, space, all),
        .version = entry.version,
        .validated_at = entry.validated_at,
        .max_age = entry.max_age,
        .failures = entry.failures,
        .value = entry.value, /* with its reference, as the next two */
        .etag = entry.etag,
        .last_modified = entry.last_modified,
    };
    return HF_OK;
}

void hf_seen_entry_drop(hf_seen_entry *entry)
{
    hf_value_unref(entry->value);
    hf_value_unref(entry->etag);
    hf_value_unref(entry->last_modified);
    *entry = (hf_seen_entry){0};
}

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

static void fill(hf_seen_write *into, const hf_pending *row)
{
    hf_assert((unsigned)row->verb < HF_COUNT_OF(VERBS) && (unsigned)row->state < HF_COUNT_OF(STATES));
    (void)snprintf(into->state, sizeof into->state, "%s", STATES[row->state]);
    (void)snprintf(into->verb, sizeof into->verb, "%s", VERBS[row->verb]);
    into->attempts = row->attempts;
    into->len = row->data != NULL ? hf_value_len(row->data) : 0;
    into->made_at = row->made_at;
    into->status = row->status;
    for (size_t i = 0; i < sizeof row->id; i++) {
        (void)snprintf(into->id + 2 * i, 3, "%02x", row->id[i]);
    }
    (void)snprintf(into->message, sizeof into->message, "%s", row->message);
}

hf_status hf_look_write(const hf_row *row, hf_seen_write *ret_write)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    hf_str key;
    hf_pending pending;
    bool no_memory = false;
    if (hf_record_open(&bad, HF_TABLE_PENDING, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_pending(body, &key, &pending, &no_memory)) {
        return no_memory ? HF_ERR_NOMEM : HF_ERR_INVALID;
    }
    *ret_write = (hf_seen_write){.sequence = (uint64_t)row->key.a};
    bool is_key = hf_depot_key_unpack(key, &ret_write->key);
    hf_assert(is_key); /* hf_row_get_pending has looked */
    fill(ret_write, &pending);
    hf_value_unref(pending.data);
    hf_value_unref(pending.if_match);
    return HF_OK;
}

void hf_look_put_line(hf_buf *out, const hf_pending *row)
{
    hf_seen_write seen = {0};
    fill(&seen, row);
    hf_buf_putf(out, "%s %s %u %zu %lld %d %s %s", seen.state, seen.verb, seen.attempts, seen.len,
                (long long)seen.made_at, (int)seen.status, seen.id, seen.message);
}

hf_status hf_look_write_line(uint64_t sequence, hf_str key, hf_str line, hf_seen_write *ret_write)
{
    char text[512];
    int status = 0;
    int at = 0;
    long long made_at = 0;
    hf_seen_write seen = {.sequence = sequence};
    if (line.len >= sizeof text || !hf_depot_key_unpack(key, &seen.key)) {
        return HF_ERR_INVALID;
    }
    memcpy(text, line.data, line.len);
    text[line.len] = '\0';
    if (sscanf(text, "%11s %11s %u %zu %lld %d %32s %n", seen.state, seen.verb, &seen.attempts, &seen.len, &made_at,
               &status, seen.id, &at) != 7 ||
        at <= 0) {
        return HF_ERR_INVALID;
    }
    seen.made_at = made_at;
    seen.status = (hf_status)status;
    (void)snprintf(seen.message, sizeof seen.message, "%.255s", text + at);
    *ret_write = seen;
    return HF_OK;
}
