/* Parts: pieces of a run's state that are large and rarely change. Each has a row of its own, so that a state row is written without
 * them. A request id is kept as a hash: two ids of one run are taken for the same with a probability of 2^-64. */
#include "run/run.h"

#include "base/crc32c.h"
#include "base/siphash.h"
#include "history/limits.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "request ids are stored as they are in memory");
_Static_assert(HF_REQUEST_IDS_MAX / HF_PART_REQUEST_COUNT < HF_PART_ACTIVITIES - HF_PART_REQUESTS,
               "the parts with request ids have keys of their own");
_Static_assert(2 * HF_HISTORY_COUNT_MAX < HF_PART_KEY_MAX - HF_PART_ACTIVITIES, "every activity has a key of its own");

uint64_t hf_request_hash(hf_str request_id)
{
    static const unsigned char KEY[HF_SIPHASH_KEY_LEN] = "request ids, 1:"; /* for ever: rows hold the hashes */
    return hf_siphash(KEY, request_id);
}

void hf_run_each_part(const hf_run *run, size_t len_min, hf_part_visit *visit, void *arg)
{
    hf_assert(len_min > 0);
    const struct {
        hf_part_key key;
        const hf_owned *piece;
    } PIECES[] = {
        {HF_PART_MEMO, &run->memo},
        {HF_PART_SEARCH_ATTRIBUTES, &run->search_attributes},
        {HF_PART_USER_METADATA, &run->user_metadata},
        {HF_PART_START, &run->start},
        {HF_PART_OPERATION, &run->operation},
    };
    for (size_t i = 0; i < HF_COUNT_OF(PIECES); i++) {
        if (PIECES[i].piece->len >= len_min) {
            visit(arg, (int64_t)PIECES[i].key, hf_owned_str(PIECES[i].piece));
        }
    }
    for (size_t i = 0; i < run->request_ids.count / HF_PART_REQUEST_COUNT; i++) {
        const uint64_t *ids = &run->request_ids.items[i * HF_PART_REQUEST_COUNT];
        visit(arg, HF_PART_REQUESTS + (int64_t)i, hf_str_of_len(ids, HF_PART_REQUEST_COUNT * sizeof *ids));
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        hf_assert(activity->scheduled_id < HF_PART_KEY_MAX - HF_PART_ACTIVITIES);
        if (activity->scheduled.len >= len_min) {
            visit(arg, HF_PART_ACTIVITIES + activity->scheduled_id, hf_owned_str(&activity->scheduled));
        }
    }
}

bool hf_run_has_part(const hf_run *run, int64_t key)
{
    size_t low = 0;
    size_t high = run->parts.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->parts.items[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->parts.count && run->parts.items[low].key == key;
}

bool hf_part_is_final(int64_t key)
{
    return key >= HF_PART_REQUESTS;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------------- */

static hf_pb_activity_state *find_activity(hf_pb_run_state *state, int64_t scheduled_id)
{
    for (size_t i = 0; i < state->activities.count; i++) {
        if (state->activities.items[i].scheduled_id == scheduled_id) {
            return &state->activities.items[i];
        }
    }
    return NULL;
}

/* False: there is no place for it. */
static bool fill(hf_pb_run_state *state, int64_t key, hf_str bytes, char *ids, size_t *ids_len)
{
    hf_str *place = key == HF_PART_MEMO                ? &state->memo
                    : key == HF_PART_SEARCH_ATTRIBUTES ? &state->search_attributes
                    : key == HF_PART_USER_METADATA     ? &state->user_metadata
                    : key == HF_PART_START             ? &state->start
                    : key == HF_PART_OPERATION         ? &state->operation
                                                       : NULL;
    if (key >= HF_PART_ACTIVITIES) {
        hf_pb_activity_state *activity = find_activity(state, key - HF_PART_ACTIVITIES);
        place = activity != NULL ? &activity->scheduled : NULL;
    } else if (key >= HF_PART_REQUESTS) {
        bool is_next = (size_t)(key - HF_PART_REQUESTS) * HF_PART_REQUEST_COUNT * sizeof(uint64_t) == *ids_len;
        if (is_next && bytes.len == HF_PART_REQUEST_COUNT * sizeof(uint64_t)) {
            memcpy(ids + *ids_len, bytes.data, bytes.len);
            *ids_len += bytes.len;
            return true;
        }
    }
    if (place == NULL || place->len > 0) {
        return false;
    }
    *place = bytes;
    return true;
}

hf_status hf_parts_fill(hf_op *op, const hf_part_rows *rows, hf_arena *arena, hf_pb_run_state *state)
{
    size_t room = state->request_hashes.len + state->parts.count * HF_PART_REQUEST_COUNT * sizeof(uint64_t);
    char *ids = hf_arena_take(arena, room, sizeof(uint64_t));
    if (ids == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the state of a run");
    }
    size_t ids_len = 0;
    size_t at = 0;
    for (size_t i = 0; i < state->parts.count; i++) {
        const hf_pb_state_part *part = &state->parts.items[i];
        while (at < rows->count && rows->items[at].key < part->key) {
            at++;
        }
        const hf_part_row *row = at < rows->count && rows->items[at].key == part->key ? &rows->items[at] : NULL;
        bool is_sorted = i == 0 || state->parts.items[i - 1].key < part->key;
        if (row == NULL || !is_sorted || hf_crc32c(0, row->bytes.data, row->bytes.len) != part->crc ||
            !fill(state, part->key, row->bytes, ids, &ids_len)) {
            return hf_fail(op, HF_ERR_INVALID, "run %lld: part %lld of its state %s", (long long)state->run,
                           (long long)part->key, row == NULL ? "is missing" : "does not belong to it");
        }
    }
    if (state->request_hashes.len > 0) {
        memcpy(ids + ids_len, state->request_hashes.data, state->request_hashes.len);
    }
    state->request_hashes = hf_str_of_len(ids, ids_len + state->request_hashes.len);
    return HF_OK;
}
