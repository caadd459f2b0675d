/* Writes on their way to the origin, and the names of keys. */
#ifndef HF_DEPOT_OUTBOX_H
#define HF_DEPOT_OUTBOX_H

#include "depot/depot_private.h"

/* ---- pending.c: rows of writes ----------------------------------------------------------------------------------- */

void hf_pending_free(hf_depot *depot, hf_pending *row);
/* What it takes of .pending_bytes_max. */
size_t hf_pending_len(const hf_pending *row);
/* The write is settled or given up: its waiters hear of it. */
void hf_pending_over(hf_depot *depot, hf_pending *row, hf_status status, hf_failure_box *failure);
void hf_pending_link(hf_depot *depot, hf_pending *row);
void hf_pending_unlink(hf_depot *depot, hf_pending *row);
bool hf_pending_is_folded(const hf_pending *row);
/* The number by which programs and people name the write. No other write of this file ever gets it, before or after a
 * restart: source.c sees to that. A write that goes to the origin first is in no file; it has a large number that is
 * part of its id. */
uint64_t hf_pending_number(const hf_pending *row);
void hf_pending_id(const hf_pending *row, char ret_text[HF_WRITE_ID_LEN]);
/* By `decide`: the row is written as it is here, or goes. */
void hf_pending_put(hf_depot *depot, hf_change *change, const hf_pending *row);
void hf_pending_delete(hf_depot *depot, hf_change *change, const hf_pending *row);
/* By `decide`: the row is not sent until `apply` lets it go. */
void hf_pending_hold(hf_depot *depot, hf_pending *row);
/* At close: callers of writes that are not sent yet. */
void hf_pending_end_all(hf_depot *depot);
/* The same for handles of writes that are left. */
void hf_depot_drop_rows(hf_depot *depot);
/* A handle with two references, the row's and the caller's; NULL = no memory. Takes a reference of `id`. */
hf_depot_write *hf_depot_write_new(hf_depot *depot, hf_value *id);
/* The handles of the row hear of the id that its key has now. Without memory they keep the old one. */
void hf_pending_rename(hf_pending *row, hf_str key);
/* By `decide`, when `next` is set: folds and writes the entry without the writes of the key, which are deleted and not
 * sent meanwhile. By `apply`: they go, and their callers hear of it when that was shown; or (a failure) stay. */
hf_status hf_pending_decide_drop(hf_depot *depot, hf_change *change);
void hf_pending_drop_all(hf_depot *depot, hf_depot_slot *slot, hf_list *ret_gone);
void hf_pending_tell_dropped(hf_depot *depot, hf_depot_slot *slot, hf_list *gone);
void hf_pending_keep_all(hf_depot *depot, hf_depot_slot *slot);

/* ---- tombstone.c ------------------------------------------------------------------------------------------------- */

/* A date of HTTP, "Sun, 06 Nov 1994 08:49:37 GMT", as nanoseconds since 1970; -1 = it is none. */
int64_t hf_tombstone_date(const char *text);
/* Whether the entry is a delete that is remembered. */
bool hf_tombstone_stands(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry);
/* Whether a fetched value does not count under it. */
bool hf_tombstone_hides(const hf_depot_entry *entry, const hf_value *last_modified, uint64_t revision);

/* ---- alias.c: keys that got another name ------------------------------------------------------------------------- */

enum { HF_ALIASES_MAX = 100000 }; /* as many as writes may wait */
#define HF_ALIAS_NS (INT64_C(7) * 86400 * 1000000000)

struct hf_alias {
    hf_key_node from;  /* in depot->aliases */
    hf_node node;      /* in depot->alias_order */
    int64_t made_at;   /* wall */
    bool is_forgotten; /* its row is being deleted */
    size_t to_len;
    char bytes[]; /* the old key, then the new one */
};

bool hf_key_is_provisional(hf_str key);
/* `~` and 26 letters. Fails: HF_ERR_IO. */
enum { HF_PROVISIONAL_LEN = 27 };
hf_status hf_provisional_id(hf_op *op, hf_env *env, char ret_id[HF_PROVISIONAL_LEN]);
/* NULL = no memory. It is not in the map yet. */
hf_alias *hf_alias_new(hf_depot *depot, hf_str from, hf_str to, int64_t made_at);
void hf_alias_free(hf_depot *depot, hf_alias *alias);
static inline hf_str hf_alias_to(const hf_alias *alias)
{
    return hf_str_of_len(alias->bytes + alias->from.len, alias->to_len);
}
/* Takes it. Old ones go, now and then. */
void hf_alias_add(hf_depot *depot, hf_alias *alias);
/* The key that this one stands for: itself, if there is no alias. */
hf_str hf_alias_follow(const hf_depot *depot, hf_str key);
void hf_alias_drop_all(hf_depot *depot);
/* Whether the origin is about to name the key: it is a provisional one, and its write is on its way. */
static inline bool hf_slot_may_move(const hf_depot_slot *slot)
{
    return slot->sending != NULL && hf_key_is_provisional(hf_slot_key(slot));
}
/* Whether the key has another name by now. */
static inline bool hf_slot_is_renamed(const hf_depot *depot, const hf_depot_slot *slot)
{
    return hf_alias_follow(depot, hf_slot_key(slot)).data != slot->bytes;
}

/* ---- move.c: a key gets another name ----------------------------------------------------------------------------- */

typedef struct hf_sending hf_sending;
/* By `decide` of the answer to a create, which is parked: entry, writes and watchers go to the key in the reply, in one
 * commit; then the change is released. Fails: HF_ERR_NOMEM. */
hf_status hf_move_begin(hf_depot *depot, hf_change *answer, hf_sending *one);

/* ---- send.c ------------------------------------------------------------------------------------------------------ */

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

void hf_depot_start_sends(hf_depot *depot);
/* The writes of a slot have changed: the first one is sent when it may be. */
void hf_depot_look_at_sends(hf_depot *depot, hf_depot_slot *slot);
/* The same of all slots. `at_once`: also where a pause is not over, as when the depot is online again. */
void hf_depot_look_at_all_sends(hf_depot *depot, bool at_once);

/* ---- driven.c ---------------------------------------------------------------------------------------------------- */

/* At close: those who drive sends stop. The first on the fiber or thread that closes, the second by the driver. */
void hf_driven_close(hf_depot *depot);
void hf_driven_end(hf_depot *depot);

#endif
