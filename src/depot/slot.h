/* Keys that something happens to (slot.c), and their writes that are not settled. */
#ifndef HF_DEPOT_SLOT_H
#define HF_DEPOT_SLOT_H

#include "depot/drive.h"
#include "depot/values.h"

typedef struct hf_change hf_change;
typedef struct hf_alias hf_alias;

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

typedef enum hf_row_state { HF_ROW_WAITING, HF_ROW_SENDING, HF_ROW_DEAD } hf_row_state;

enum { HF_WRITE_ID_BYTES = 16, HF_ROW_MESSAGE_LEN = 200 };

/* The handle of a write: hf_depot_write. Counted; has a lock of its own, because it may outlive the depot. */
struct hf_depot_write {
    hf_spin lock; /* first: hf_wait.object */
    atomic_uint refs;
    hf_runtime *rt;
    bool is_over;
    hf_status status;
    hf_failure_box *failure; /* NULL = HF_OK */
    hf_value *id;            /* of its key */
    hf_list waiters;
};

typedef struct hf_depot_slot hf_depot_slot;

/* A write that is not settled. */
typedef struct hf_pending {
    hf_node node;   /* in slot->rows */
    hf_node in_all; /* in depot->rows, by sequence */
    hf_depot_slot *slot;
    uint64_t sequence; /* its place among the writes of the depot; hf_pending_number is what others see */
    hf_write_verb verb;
    hf_row_state state;
    bool is_origin_first; /* not on the disk, not folded */
    bool if_none;
    bool is_held;            /* a change of it is being written: it is not sent meanwhile */
    bool is_old;             /* of an earlier process, which may have sent it: takes no newer value */
    bool is_forced;          /* client wins: sent with their etag */
    bool is_dropped;         /* by an invalidation, while it is sent: not folded, and goes when it is answered */
    hf_conflict on_conflict; /* never HF_CONFLICT_DEFAULT */
    hf_value *data;          /* value or patch; NULL of a removal */
    hf_value *if_match;      /* text; NULL = none */
    unsigned char id[HF_WRITE_ID_BYTES];
    uint32_t attempts;
    uint32_t rounds;     /* of conflicts */
    int64_t made_at;     /* wall */
    hf_instant next_try; /* not sent before */
    int64_t retry_at;    /* wall: the end of the pause after a failed attempt, for the next process; 0 = none */
    hf_status status;    /* of the last attempt */
    char message[HF_ROW_MESSAGE_LEN];
    hf_depot_write *handles[4]; /* writes that became one; owned */
    size_t handle_count;
    hf_list asks; /* callers that wait for the origin's answer; under the lock */
} hf_pending;

/* ---- Slots: keys that something happens to ----------------------------------------------------------------------- */

typedef enum hf_slot_load { HF_SLOT_UNKNOWN, HF_SLOT_LOADING, HF_SLOT_KNOWN } hf_slot_load;

typedef struct hf_depot_flight hf_depot_flight;
typedef struct hf_change hf_change;
typedef struct hf_alias hf_alias;

struct hf_depot_slot {
    hf_key_node key; /* in depot->slots; its bytes follow the struct */
    hf_space *space;
    unsigned holds; /* depot-D4 */
    hf_slot_load load;
    hf_depot_entry entry;    /* when known */
    hf_snap *snap;           /* visible, when known */
    hf_list loading;         /* asks; under the lock */
    hf_depot_flight *flight; /* NULL = none */
    struct hf_sub_run *sub;  /* NULL = none runs */
    hf_depot_timer_node sub_timer;
    hf_node in_subs; /* in depot->subs; holds it */
    hf_list watchers;
    hf_list changes;     /* the first is being written */
    hf_list rows;        /* hf_pending, in order */
    hf_pending *sending; /* a row of it, while it is sent */
    hf_node in_senders;  /* in depot->senders */
    hf_depot_timer_node send_timer;
    bool is_wanted;             /* driven sends: the one who drives was told of the key, or has its turn */
    int64_t wanted_ns;          /* monotonic: when that was */
    hf_list send_asks;          /* driven sends: asks that wait for the end of one; under the lock */
    uint64_t stirred;           /* depot->stir of its last write or invalidation */
    uint64_t answers;           /* of the origin to writes, that changed the base */
    uint64_t voids, hard_voids; /* invalidations of this key */
    char bytes[];
};

/* ---- slot.c ------------------------------------------------------------------------------------------------------ */

/* Finds or makes the slot of a key, or of the one that it is an alias of, and holds it. NULL = no memory. */
hf_depot_slot *hf_slot_hold(hf_depot *depot, hf_str key);
void hf_slot_let_go(hf_depot *depot, hf_depot_slot *slot);
static inline hf_str hf_slot_key(const hf_depot_slot *slot)
{
    return hf_str_of_len(slot->bytes, slot->key.len);
}
/* Whether it is known; else it begins to load, and `ask` (may be NULL) is acted on again when it is. False with an ask
 * that wants out: it was answered. */
bool hf_slot_know(hf_depot *depot, hf_depot_slot *slot, hf_ask *ask);
/* The slot of the ask's key, held by the ask, when it is known. NULL: the ask waits and is acted on again, or was answered. */
hf_depot_slot *hf_slot_of_ask(hf_depot *depot, hf_ask *ask);
/* The visible value of `entry` with the pending writes of the slot folded in: without `except`, or with `more` in its
 * place; `more` without `except` comes last. A patch that does not fit any more is left out, but one that comes last is
 * a failure. Fails: what .apply returned. */
hf_status hf_slot_fold(hf_depot *depot, const hf_depot_slot *slot, const hf_depot_entry *entry,
                       const hf_pending *except, const hf_pending *more, hf_depot_entry_kind *ret_kind,
                       hf_value **ret_value, bool *ret_is_pending);
/* The same for the writes of two keys in one, as hf_slot_take_rows orders them; without `except`. */
void hf_slot_fold_both(hf_depot *depot, const hf_depot_slot *slot, const hf_depot_slot *other, const hf_pending *except,
                       const hf_depot_entry *entry, hf_depot_entry_kind *ret_kind, hf_value **ret_value,
                       bool *ret_is_pending);
/* The writes of `other`, but for `except`, become those of `slot`: by sequence, but none before one that is being
 * sent. */
void hf_slot_take_rows(hf_depot *depot, hf_depot_slot *slot, hf_depot_slot *other, const hf_pending *except);
/* The first write that is not dead; NULL = none. */
hf_pending *hf_slot_first_row(const hf_depot_slot *slot);
/* What .apply makes of the value (NULL = none) and the patch of this row. Fails: what .apply returned; HF_ERR_INVALID: it
 * made nothing; HF_ERR_TOO_BIG; HF_ERR_MISUSE: there is no .apply. */
hf_status hf_slot_apply(hf_depot *depot, const hf_pending *row, const hf_value *value, hf_value **ret_value);
/* After a hard invalidation of more than the key: the writes that wait are folded without the base. */
void hf_slot_refold(hf_depot *depot, hf_depot_slot *slot);
hf_depot_entry hf_entry_none(const hf_depot *depot, const hf_space *space);
/* The entry of the slot is this one. */
void hf_slot_loaded(hf_depot *depot, hf_depot_slot *slot, const hf_depot_entry *entry);

#endif
