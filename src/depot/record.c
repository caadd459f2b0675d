/* Records: what a reply brings besides its own value. Each is a change of its own key, and all of them are one group
 * with the landing of the flight, so they are in one commit (ADR 0037). */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

typedef struct hf_record {
    hf_node node; /* in hf_reply.records */
    hf_value *value;
    hf_value *etag;          /* NULL = none */
    hf_value *last_modified; /* the same */
    int64_t max_age;         /* -1 = not said */
    bool is_partial;
    hf_depot_key_bytes key;
} hf_record;

/* ---- What a fetcher says ----------------------------------------------------------------------------------------- */

static void record_free(hf_runtime *rt, hf_record *record)
{
    hf_assert(!hf_node_is_linked(&record->node));
    hf_value_unref(record->value);
    hf_value_unref(record->etag);
    hf_value_unref(record->last_modified);
    hf_rt_free(rt, record, sizeof *record);
}

static void take_out(hf_reply *reply, hf_record *record)
{
    hf_assert(reply->record_count > 0 && reply->record_bytes >= hf_value_len(record->value));
    hf_list_remove(&record->node);
    reply->record_count--;
    reply->record_bytes -= hf_value_len(record->value);
}

void hf_records_drop(hf_reply *reply)
{
    for (hf_node *node = hf_list_first(&reply->records); node != NULL; node = hf_list_first(&reply->records)) {
        hf_record *record = HF_CONTAINER(node, hf_record, node);
        take_out(reply, record);
        record_free(reply->rt, record);
    }
    hf_assert(reply->record_count == 0 && reply->record_bytes == 0);
}

static hf_record *find(const hf_reply *reply, const hf_depot_key_bytes *key)
{
    HF_LIST_EACH(node, &reply->records)
    {
        hf_record *record = HF_CONTAINER(node, hf_record, node);
        if (record->key.len == key->len && memcmp(record->key.bytes, key->bytes, key->len) == 0) {
            return record;
        }
    }
    return NULL;
}

static hf_status check(hf_op *op, const hf_reply *reply, hf_depot_key key, const void *data, size_t len,
                       const hf_reply_add_options *options, hf_depot_key_bytes *ret_key)
{
    if (reply == NULL || !reply->takes_records || (data == NULL && len > 0)) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_reply_add needs the reply of a fetch, and the bytes of the value");
    }
    if (options->partial && !reply->takes_partial) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_reply_add was given a partial record, and the depot has no .merge");
    }
    HF_TRY(hf_depot_key_pack(op, key, ret_key));
    if (hf_page_mark_len(key.type) > 0) {
        return hf_fail(op, HF_ERR_INVALID, "the type of a record begins with a byte that the depot uses itself");
    }
    if (hf_str_equal(reply->asked_key, hf_str_of_len(ret_key->bytes, ret_key->len))) {
        return hf_fail(op, HF_ERR_INVALID, "hf_reply_add was given the key of the request: use hf_reply_value");
    }
    if ((options->etag != NULL && strlen(options->etag) > HF_ETAG_LEN_MAX) ||
        (options->last_modified != NULL && strlen(options->last_modified) > HF_ETAG_LEN_MAX)) {
        return hf_fail(op, HF_ERR_INVALID, "the etag or last_modified of a record has more than %d bytes",
                       HF_ETAG_LEN_MAX);
    }
    if (len > reply->value_max) {
        return hf_fail(op, HF_ERR_TOO_BIG, "a record has %zu bytes: the depot takes %zu (.value_max)", len,
                       reply->value_max);
    }
    const hf_record *old = find(reply, ret_key);
    size_t bytes = reply->record_bytes - (old != NULL ? hf_value_len(old->value) : 0);
    if (old == NULL && reply->record_count >= HF_REPLY_RECORDS_MAX) {
        return hf_fail(op, HF_ERR_LIMIT, "a reply has more than %d records", HF_REPLY_RECORDS_MAX);
    }
    return len <= HF_REPLY_BYTES_MAX - bytes
               ? HF_OK
               : hf_fail(op, HF_ERR_TOO_BIG, "the records of a reply have more than %zu bytes", HF_REPLY_BYTES_MAX);
}

/* A text with its NUL, or none. False: no memory. */
static bool copy_text(const char *text, hf_value **ret_value)
{
    *ret_value = text != NULL ? hf_text_value(text) : NULL;
    return text == NULL || *ret_value != NULL;
}

static hf_status add(hf_op *op, hf_reply *reply, const hf_depot_key_bytes *key, const void *data, size_t len,
                     const hf_reply_add_options *options)
{
    hf_record *record = hf_rt_alloc(reply->rt, sizeof *record);
    if (record == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a record of a reply");
    }
    record->key = *key;
    record->is_partial = options->partial;
    record->max_age = options->max_age.ns == 0 ? -1 : options->max_age.ns > 0 ? options->max_age.ns : 0;
    if (hf_value_copy(data != NULL ? data : "", len, &record->value) != HF_OK ||
        !copy_text(options->etag, &record->etag) || !copy_text(options->last_modified, &record->last_modified)) {
        record_free(reply->rt, record);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a record of a reply");
    }
    hf_record *old = find(reply, key);
    if (old != NULL) {
        take_out(reply, old);
        record_free(reply->rt, old);
    }
    hf_list_push_back(&reply->records, &record->node);
    reply->record_count++;
    reply->record_bytes += len;
    return HF_OK;
}

hf_status hf_reply_add_with(hf_reply *reply, hf_depot_key key, const void *data, size_t len,
                            const hf_reply_add_options *options)
{
    HF_OPTIONS(hf_reply_add_options, options, hf_reply_add);
    HF_VERB_ENTER(self, hf_reply_add, reply != NULL ? reply->rt : NULL);
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    hf_status status = check(&op, reply, key, data, len, options, &bytes);
    hf_leave(self);
    if (status == HF_OK) {
        status = add(&op, reply, &bytes, data, len, options);
    }
    if (status != HF_OK) {
        self = hf_enter(reply != NULL ? reply->rt : NULL);
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    return HF_OK;
}

/* ---- What becomes of it ------------------------------------------------------------------------------------------ */

/* Whether the record is newer than what is at hand. */
static bool counts(hf_depot *depot, const hf_depot_slot *slot, const hf_record *record, const hf_depot_flight *flight)
{
    if (!hf_stir_is_quiet(depot, slot, flight->began)) { /* DP3 */
        return false;
    }
    const hf_depot_entry *entry = &slot->entry;
    bool is_answer = entry->kind != HF_ENTRY_NONE && !hf_entry_is_unusable(depot, slot->space, entry);
    if (is_answer && entry->validated_at > flight->began_at && entry->validated_at <= hf_depot_wall(depot)) {
        return false; /* the origin said so later */
    }
    return !hf_tombstone_stands(depot, slot->space, &slot->entry) ||
           !hf_tombstone_hides(&slot->entry, record->last_modified, 0);
}

/* The value of a partial record and of what is at hand. False: it cannot be made. */
static bool merge(hf_depot *depot, const hf_depot_slot *slot, const hf_record *record, bool has_mine,
                  hf_value **ret_value)
{
    hf_value *merged = NULL;
    hf_status status =
        depot->options.merge(depot->options.state, NULL, has_mine ? slot->entry.value : NULL, record->value, &merged);
    if (status != HF_OK || merged == NULL || hf_value_len(merged) > (size_t)depot->options.value_max) {
        hf_value_unref(merged);
        return false;
    }
    *ret_value = merged;
    return true;
}

static void set_text(hf_value **place, hf_value *text)
{
    hf_value_unref(*place);
    *place = hf_value_ref(text);
}

static hf_status decide_record(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    const hf_record *record = change->what;
    hf_value *value = NULL;
    hf_assert(change->flight->is_landing && change->group != NULL);
    bool has_mine = slot->entry.kind == HF_ENTRY_VALUE && !hf_entry_is_unusable(depot, slot->space, &slot->entry);
    change->is_ignored = hf_slot_is_renamed(depot, slot) || !counts(depot, slot, record, change->flight) ||
                         (record->is_partial && !merge(depot, slot, record, has_mine, &value));
    if (change->is_ignored) {
        return HF_OK;
    }
    hf_depot_entry *next = &change->next;
    hf_entry_copy(next, &slot->entry);
    change->place = HF_DEPOT_FETCHER;
    hf_value_unref(next->value);
    next->value = record->is_partial ? value : hf_value_ref(record->value);
    /* The etag of the whole is not that of a value that was merged. */
    set_text(&next->etag, record->etag);
    set_text(&next->last_modified, record->last_modified);
    if (!record->is_partial || !has_mine) {
        next->validated_at = hf_depot_wall(depot);
        next->max_age = record->max_age >= 0 || !record->is_partial ? record->max_age : 0;
    }
    next->kind = HF_ENTRY_VALUE;
    next->is_unusable = false;
    next->failures = 0;
    next->backoff_until = 0;
    next->generation = atomic_load_explicit(&slot->space->generation, memory_order_relaxed);
    next->generation_all = change->flight->generation_all;
    return hf_change_fold(depot, change, NULL, NULL);
}

static void apply_record(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_record *record = change->what;
    if (change->snap != NULL) { /* also if the file could not take it, as the value itself */
        hf_change_show(depot, change, true);
        depot->counts.records++;
    } else {
        depot->counts.records_left_out += status == HF_OK;
    }
    record_free(depot->rt, record);
    hf_change_free(depot, change);
}

/* The changes that were made so far go, and the records back to their reply. */
static void give_back(hf_depot *depot, hf_reply *reply, hf_change_group *group, size_t count)
{
    for (; count > 0; count--) {
        hf_change *change = HF_CONTAINER(hf_list_last(&group->members), hf_change, in_group);
        hf_record *record = change->what;
        hf_list_push_back(&reply->records, &record->node);
        reply->record_count++;
        reply->record_bytes += hf_value_len(record->value);
        group->waiting--;
        hf_list_remove(&change->in_group);
        change->group = NULL;
        hf_change_free(depot, change);
    }
}

/* Whether a change of this slot cannot be in the group: two names of one key lead to the same slot, and a key that is about
 * to get another name must not wait for others (move.c). */
static bool is_left_out(const hf_depot_flight *flight, const hf_change_group *group, const hf_depot_slot *slot)
{
    if (slot == flight->slot || slot == flight->query || hf_slot_may_move(slot)) {
        return true;
    }
    HF_LIST_EACH(node, &group->members)
    {
        if (HF_CONTAINER(node, hf_change, in_group)->slot == slot) {
            return true;
        }
    }
    return false;
}

bool hf_records_add_changes(hf_depot *depot, hf_depot_flight *flight, hf_change_group *group)
{
    hf_reply *reply = &flight->reply;
    size_t count = 0;
    while (reply->record_count > 0) {
        hf_record *record = HF_CONTAINER(hf_list_first(&reply->records), hf_record, node);
        hf_depot_slot *slot = hf_slot_hold(depot, hf_str_of_len(record->key.bytes, record->key.len));
        if (slot != NULL && is_left_out(flight, group, slot)) {
            hf_slot_let_go(depot, slot);
            take_out(reply, record);
            record_free(depot->rt, record);
            depot->counts.records_left_out++;
            continue;
        }
        hf_change *change = slot != NULL ? hf_change_new(depot, slot) : NULL;
        if (slot != NULL) {
            hf_slot_let_go(depot, slot); /* the change holds it */
        }
        if (change == NULL) {
            give_back(depot, reply, group, count);
            return false;
        }
        take_out(reply, record);
        change->what = record;
        change->flight = flight; /* it lives until the leader has ended */
        change->decide = decide_record;
        change->apply = apply_record;
        hf_change_group_add(group, change);
        count++;
    }
    return true;
}
