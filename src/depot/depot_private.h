/* What the files of the depot share.
 *
 * One at a time: the state of a depot (slots, flights, writes, breakers, watchers) is changed by its driver and by
 * nobody else. Whoever has something to say posts it. If nobody drives, the poster does, until nothing is left; else it
 * parks until it is answered (drive.c). So no lock is held while memory is allocated or the user's functions are
 * called, and every effect happens in one place.
 *
 *     caller, fetch, send          driver                                   thread of the store
 *     post ----------------------> act: decide, a change for a key
 *                                  settle: start fetches and sends,
 *                                          one commit of all changes ------> writes
 *                                  act: apply: memory, watchers, waiters <--- post
 *     goes on <------------------- answer
 *
 * depot-D1  Only the driver touches what is not marked otherwise. It is one fiber or thread at a time.
 * depot-D2  The changes of a key are decided, written and applied one after the other, in the order in which they came.
 * depot-D3  An ask is answered once, by the driver, unless it was aborted before; then its caller takes it back
 * (`leave`).
 * depot-D4  A slot lives while somebody holds it: asks, a flight, watchers, changes, writes, a load.
 * depot-D5  What is visible is the entry with its pending writes folded in, in order (DP5); memory has the same.
 * depot-D6  Memory is changed after the commit, watchers and waiters hear of it after memory.
 * depot-D7  A key that got another name has an alias, and no slot that can be found, no entry and no rows. An alias
 * leads to a key that has none. */
#ifndef HF_DEPOT_DEPOT_PRIVATE_H
#define HF_DEPOT_DEPOT_PRIVATE_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/rng.h"
#include "depot/driven.h"
#include "depot/key.h"
#include "depot/rules.h"
#include "fiber/fail.h"
#include "fiber/keyed/keys.h"
#include "fiber/sched/wait.h"
#include "fiber/sync/sync.h"
#include "fiber/sync/work.h"
#include "fiber/watch/panel.h"
#include "store/store.h"

#include <holdfast/pages.h>

#include <string.h>

typedef struct hf_post hf_post;
struct hf_post {
    hf_node node; /* in the inbox; under the lock */
    void (*act)(hf_depot *depot, hf_post *post);
};

/* A timer of the depot: rings on the driver. */
typedef struct hf_depot_timer_node hf_depot_timer_node;
struct hf_depot_timer_node {
    hf_heap_node node; /* in depot->timers */
    void (*ring)(hf_depot *depot, hf_depot_timer_node *timer);
};

/* ---- Entries and snapshots --------------------------------------------------------------------------------------- */

typedef enum hf_depot_entry_kind {
    HF_ENTRY_NONE,
    HF_ENTRY_VALUE,
    HF_ENTRY_ABSENT,
    HF_ENTRY_DELETED
} hf_depot_entry_kind;

/* The base: what the origin last said about a key, and what became of asking it. Values are shared, never changed. */
typedef struct hf_depot_entry {
    hf_depot_entry_kind kind;
    bool is_unusable;        /* soft-invalidated */
    hf_value *value;         /* of HF_ENTRY_VALUE */
    hf_value *etag;          /* NUL-terminated text; NULL = none */
    hf_value *last_modified; /* the same */
    int64_t validated_at;    /* when the origin last confirmed it */
    int64_t max_age;         /* the origin's word; -1 = none */
    uint32_t failures;       /* fetches that failed, in a row */
    int64_t backoff_until;   /* not fetched before; 0 = no back-off */
    uint64_t generation;     /* of its namespace, when it was validated */
    uint64_t generation_all; /* of the depot */
    uint64_t version;        /* of what is visible */
    uint64_t revision;       /* the origin's own number; 0 = none */
} hf_depot_entry;

/* Both are NULL, or have the same bytes. */
static inline bool hf_value_is_same(const hf_value *a, const hf_value *b)
{
    return a == b || (a != NULL && b != NULL && hf_value_len(a) == hf_value_len(b) &&
                      memcmp(hf_value_data(a), hf_value_data(b), hf_value_len(a)) == 0);
}

void hf_entry_copy(hf_depot_entry *to, const hf_depot_entry *from); /* `to` is not initialised */
void hf_entry_drop(hf_depot_entry *entry);                          /* its references */
/* Replaces what it holds. */
void hf_entry_set(hf_depot_entry *entry, const hf_depot_entry *from);

/* A namespace. Lives as long as the depot. */
typedef struct hf_space {
    hf_key_node name;
    _Atomic(uint64_t) generation;        /* entries from before it are unusable ... */
    _Atomic(uint64_t) hard;              /* ... and those from before this one are gone */
    uint64_t generation_last, hard_last; /* as decided; may not be written yet */
    uint64_t stirred;                    /* depot->stir of its last invalidation */
    struct hf_snap *none;                /* shared by its keys of which nothing is known; NULL = none was asked for */
    char bytes[];
} hf_space;

/* What is visible of a key. Never changed; counted by the hf_value around it, which the memory of the depot keeps. */
typedef struct hf_snap {
    hf_value *self; /* its data is this struct */
    hf_runtime *rt;
    hf_space *space;
    hf_depot_entry entry;
    hf_value *value;          /* visible; NULL = none */
    hf_depot_entry_kind kind; /* visible */
    bool is_pending;          /* writes are folded in */
    hf_depot_place place;
    _Atomic(hf_value *) object; /* what .decode made of the value, from the first read on; owned */
} hf_snap;

static inline hf_snap *hf_snap_ref(hf_snap *snap)
{
    if (snap != NULL) {
        (void)hf_value_ref(snap->self);
    }
    return snap;
}

static inline void hf_snap_unref(hf_snap *snap)
{
    if (snap != NULL) {
        hf_value_unref(snap->self);
    }
}

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

typedef struct hf_slot hf_slot;

/* A write that is not settled. */
typedef struct hf_pending {
    hf_node node;   /* in slot->rows */
    hf_node in_all; /* in depot->rows, by sequence */
    hf_slot *slot;
    uint64_t sequence; /* its place among the writes of the depot; hf_pending_number is what others see */
    hf_write_verb verb;
    hf_row_state state;
    bool is_origin_first; /* not on the disk, not folded */
    bool if_none;
    bool is_held;    /* a change of it is being written: it is not sent meanwhile */
    bool is_old;     /* of an earlier process, which may have sent it: takes no newer value */
    bool is_forced;  /* client wins: sent with their etag */
    bool is_dropped; /* by an invalidation, while it is sent: not folded, and goes when it is answered */
    hf_conflict on_conflict;
    hf_value *data;     /* value or patch; NULL of a removal */
    hf_value *if_match; /* text; NULL = none */
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

struct hf_slot {
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

/* ---- Asks: calls that wait --------------------------------------------------------------------------------------- */

typedef struct hf_ask hf_ask;
struct hf_ask {
    hf_post post;
    hf_wait wait;      /* in the list that it waits in; under the lock */
    hf_wait_kind kind; /* of the wait */
    bool wants_out;    /* its abort came while the driver had it; under the lock */
    bool is_done;      /* answered by its own caller, who drives */
    hf_instant deadline;
    hf_slot *slot;           /* held */
    hf_op op;                /* a failure with a sentence */
    hf_failure_box *failure; /* or the failure of another; owned */

    const hf_depot_key_bytes *key;
    hf_ask_rule rule;
    bool is_forced;
    bool is_prefetch;
    bool is_hard, drops;
    hf_urgency urgency;
    hf_snap *snap; /* the answer; a reference */
    bool is_stale; /* it is older than it should be */
    int64_t age;
    int64_t asked_at; /* wall; of a get */
    int64_t retry_after;
    hf_depot_place place;
    hf_pending *row; /* of a write: made by the caller, taken by the driver */
    uint64_t if_version;
    hf_depot_flight *flight; /* that it waits for */
    hf_pending *waits_row;   /* that it waits for */
    void *what;              /* other arguments */
    struct hf_many *many;    /* it is one of many: nobody waits for it alone */
};

/* ---- Flights ----------------------------------------------------------------------------------------------------- */

struct hf_reply {
    hf_runtime *rt;
    size_t value_max;
    hf_value *value;
    hf_value *etag;
    hf_value *last_modified;
    int64_t max_age;   /* -1 = not said */
    uint64_t revision; /* 0 = not said */
    /* Of a create without an id: what was asked; NULL = the key may not change. */
    const hf_depot_key *asked;
    hf_value *key; /* packed; NULL = it stays */
    bool is_not_modified;
    bool has_class;
    hf_reply_class why;
    int64_t retry_after;
    bool takes_records;       /* it answers a fetch */
    bool takes_partial;       /* the depot has .merge */
    bool is_page;             /* `value` was set by hf_reply_page */
    hf_str asked_key;         /* of the fetch, borrowed from its slot */
    size_t window_max;        /* items that a page may have; 0 = no bound of its own */
    hf_list records;          /* hf_record: what it brings besides its own value */
    size_t record_count;      /* of `records` ... */
    size_t record_bytes;      /* ... and what they take */
    bool keeps_failure;       /* one of many: hf_reply_fail leaves the failure here */
    hf_failure_box *failure;  /* with keeps_failure; owned */
    struct hf_sub_run *emits; /* of a subscriber: hf_reply_emit hands the reply to it */
};

void hf_reply_init(hf_reply *reply, hf_runtime *rt, size_t value_max);
void hf_reply_clear(hf_reply *reply);

typedef struct hf_depot_call hf_depot_call;
typedef struct hf_many hf_many;

struct hf_depot_flight {
    hf_depot *depot;
    hf_slot *slot;       /* held */
    unsigned refs;       /* the slot's, the call's, and one per ask; of the driver */
    hf_node node;        /* while it waits: in depot->queue, depot->gathering or hf_many.gathered */
    hf_depot_call *call; /* that it is part of; NULL = it waits, or lands */
    uint64_t ticket;     /* flights with the same one may share a call; 0 = it flies alone */
    bool is_gathering;   /* it is in depot->gathering */
    hf_node in_all;      /* in depot->all_flights */
    hf_list waiters;     /* asks; under the lock */
    unsigned holders;    /* waiters, watchers and the depot */
    bool is_refresh;     /* the depot holds it */
    bool is_over;        /* left its slot */
    atomic_bool is_left; /* the same, for the fiber of its call */
    bool is_landing;     /* what it brought is being written */
    bool is_void;        /* the key was written or invalidated: what it brings is not kept, and it flies again */
    bool is_conditional; /* may be asked with etag and last_modified */
    hf_urgency urgency;
    uint64_t began;   /* depot->stir when it began */
    uint64_t answers; /* slot->answers when it began */
    uint64_t generation, generation_all;
    unsigned rounds;                /* flown again because of an invalidation */
    hf_value *etag, *last_modified; /* that it asks with */
    hf_reply reply;
    hf_value *object;      /* what .decode made of the reply's value; NULL = nothing */
    hf_post landed;        /* before its call is over */
    bool is_answered;      /* by the fiber of its call: the next three are set */
    hf_status work_status; /* what became of asking */
    hf_failure_box *work_failure;
    hf_status status; /* of its end; of the driver */
    hf_failure_box *failure;
    hf_reply_class why;
    int64_t retry_after;
    bool was_denied; /* the breaker refused it */
    unsigned origin;
    int64_t began_at;            /* wall; with `began` */
    hf_slot *query;              /* of a page: the slot of its query, held; NULL = an ordinary fetch */
    hf_page_direction direction; /* of a page */
    hf_value *token;             /* of a page: where it begins; NUL-terminated */
    size_t page_size;            /* items that are wanted; 0 = not said */
    size_t window_max;           /* of a page: items that the window may have */
};

/* ---- Calls: a fiber that asks the origin for one flight, or for several ------------------------------------------ */

enum { HF_CALL_FLIGHTS_MAX = 256 };

struct hf_depot_call {
    hf_work work;
    hf_depot *depot;
    hf_post over;
    unsigned origin; /* of all its flights */
    bool is_many;    /* .fetch_many is called */
    bool may_begin;  /* the breaker allowed the first attempt */
    bool is_probe;
    bool was_denied;   /* the breaker refused an attempt */
    bool has_answered; /* the origin has said something about one of the keys */
    bool has_failed;   /* a flight failed in a way that counts against the breaker */
    size_t live;       /* flights that somebody holds and that have not landed; of the driver */
    size_t count;
    hf_depot_flight *flights[]; /* a reference each; NULL = it lands before the call is over */
};

/* ---- Many keys in one call of a program -------------------------------------------------------------------------- */

typedef struct hf_many_key {
    hf_ask ask; /* ask.many is set: its answer goes there */
    hf_depot_key_bytes *bytes;
    size_t index; /* in the caller's arrays */
    hf_status status;
    bool is_decided; /* it was answered, or waits for a flight */
    bool is_done;    /* answered */
} hf_many_key;

struct hf_many {
    hf_ask whole;  /* the call; answered when all keys are */
    hf_list waits; /* `whole`, while it waits; under the lock */
    bool has_begun, is_acting;
    size_t left;      /* keys without an answer */
    size_t undecided; /* of them, those that are still being read */
    uint64_t ticket;
    hf_list gathered; /* flights that wait until all keys are decided */
    size_t count, capacity;
    hf_many_key keys[];
};

/* ---- Subscriptions ----------------------------------------------------------------------------------------------- */

/* One run of .subscribe for a key. */
typedef struct hf_sub_run {
    hf_work work;
    hf_depot *depot;
    hf_slot *slot;   /* held */
    bool is_current; /* it is slot->sub; else nobody wants it any more */
    bool is_counted; /* among the fetches at once: it has not emitted yet */
    bool has_emitted;
    bool has_handed_over;   /* the same, of the subscriber */
    atomic_bool is_probe;   /* set by its fiber */
    atomic_bool was_denied; /* the same */
    bool is_told;           /* the breaker knows how it began */
    unsigned origin;
    uint64_t voids;                      /* of the slot, when it began */
    uint64_t generation, generation_all; /* the same */
    hf_depot_timer_node timer;           /* the first reply must come before */
    hf_fetch_request request;
    hf_value *etag, *last_modified; /* that it asks with */
    hf_reply reply;                 /* that is being filled by the subscriber */
    hf_value *object;               /* what .decode made of it */
    hf_list emitting;               /* the ask of hf_reply_emit, while it waits; under the lock */
    hf_reply taken;                 /* what was handed over; of the driver */
    hf_value *taken_object;
    bool has_taken;  /* `taken` waits until the key is not being written */
    bool is_landing; /* `taken` was handed to the slot's flight, whose end answers the ask */
    hf_post over;
    hf_status status;
    hf_reply_class why;
    hf_failure_box *failure;
} hf_sub_run;

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

enum { HF_CHANGE_WRITES_OWN = 3 }; /* most changes write an entry and a row; the others get an array */
#define HF_DEPOT_ROW_LEN_MAX ((size_t)64 * 1024 * 1024) /* a value of the largest size, with its etag */

/* Changes of several keys that are decided together and written in one commit, all or none. The leader comes last: it
 * is decided first, and if it fails, so do the others. */
typedef struct hf_change_group {
    hf_list members; /* hf_change.in_group */
    size_t waiting;  /* members whose turn has not come */
} hf_change_group;

/* One change: what is to be written, and what happens when it is. */
struct hf_change {
    hf_node node;     /* in slot->changes */
    hf_node in_batch; /* in depot->batch, then in depot->committing */
    hf_slot *slot;    /* held; NULL = it concerns no key */
    /* Fills `next` and the writes by what the slot is now. A failure ends the change with `apply`. */
    hf_status (*decide)(hf_depot *depot, hf_change *change);
    /* It is written, or (status) it is not. Frees the change. */
    void (*apply)(hf_depot *depot, hf_change *change, hf_status status);
    hf_op op;            /* of a failure */
    hf_depot_entry next; /* the entry afterwards */
    hf_snap *snap;       /* what is visible afterwards; NULL = the entry stays as it is */
    bool is_synced;      /* the commit must be durable */
    hf_write *writes;    /* what is written, in order: `own_writes`, or an array */
    hf_buf *rows;        /* bytes of the records; the same */
    size_t write_count, write_capacity;
    hf_write own_writes[HF_CHANGE_WRITES_OWN];
    hf_buf own_rows[HF_CHANGE_WRITES_OWN];
    bool no_memory; /* a write did not fit: the change fails */
    hf_buf spilled; /* takes the bytes of such a write */
    bool is_parked; /* decided, but it waits for a change of another key (hf_change_release) */
    bool is_deciding;
    bool is_reading; /* `decide` reads the source first; hf_change_written follows */
    bool follows;    /* goes with its key when the key gets another name */
    hf_list asks;    /* callers that wait for it; under the lock */
    hf_depot_flight *flight;
    hf_pending *row;
    hf_space *space;
    bool is_hard, drops;
    bool is_ignored;  /* nothing changes */
    bool is_answer;   /* the base is what the origin answered to a write */
    hf_pending *mate; /* the row that takes the new value */
    hf_value *merged; /* of a conflict, or two patches in one; a reference */
    hf_alias *alias;  /* of a move; owned */
    void *what;       /* of a send */
    hf_status status;
    uint64_t number;
    hf_depot_place place;
    hf_change_group *group; /* NULL = it stands alone */
    hf_node in_group;
    bool is_ready; /* its turn has come; it waits for the others of its group */
};

/* ---- Watchers ---------------------------------------------------------------------------------------------------- */

struct hf_watcher {
    hf_spin lock;    /* first: hf_wait.object. Guards the queue */
    hf_depot *depot; /* a reference */
    hf_node node;    /* in slot->watchers */
    hf_slot *slot;   /* held; NULL = closed */
    hf_ask_rule rule;
    hf_flow_mode mode;
    size_t capacity;
    hf_span refresh;
    hf_depot_timer_node timer;   /* of .refresh */
    hf_depot_flight *flight;     /* held */
    bool has_value;              /* it was shown one, and not GONE after it */
    bool is_loading;             /* it was told LOADING, and nothing after it */
    hf_node in_all;              /* in depot->all_watchers */
    struct hf_watch_item *items; /* a ring of `capacity` places, and one for REKEYED */
    size_t first, count;
    bool is_rekeyed; /* REKEYED is in the ring */
    uint64_t dropped;
    bool is_closed; /* the depot is gone */
    hf_list waiters;
    hf_post post;
    uint64_t seen; /* version of the last DATA or GONE */
    bool is_list;  /* it hears of changes of the members of a list, too */
    bool is_paged; /* it belongs to hf_pages, and hears of the states of loads, too */
};

/* ---- Lists and pages --------------------------------------------------------------------------------------------- */

/* Who refers to a key: refs.c. */
typedef struct hf_refs {
    hf_keys nodes;      /* hf_ref_node: lists that are watched, and their members */
    hf_list all;        /* the same */
    size_t lost;        /* lists that were let go since the last sweep */
    size_t edges;       /* from lists to members */
    size_t watched;     /* list watchers */
    uint64_t walk;      /* number of the last walk */
    bool is_overflowed; /* not all edges are there: every change tells all list watchers */
} hf_refs;

/* The state of the pages of a query: pages.c. */
typedef struct hf_paging {
    hf_key_node key;     /* of the query, in depot->paging; its bytes follow the struct */
    hf_node in_idle;     /* in depot->paging_idle, while nobody has it open */
    size_t users;        /* hf_pages that have it open */
    size_t page_size;    /* set by the first */
    size_t window_max;   /* the same: items */
    hf_span ttl;         /* the same */
    hf_status errors[3]; /* of the last load by direction; HF_OK = it did not fail */
    char bytes[];
} hf_paging;

/* ---- Housekeeping: housekeep.c ----------------------------------------------------------------------------------- */

typedef struct hf_depot_keeping {
    hf_depot *depot;
    hf_depot_timer_node timer;
    hf_post post;
    hf_store_request scan;
    hf_arena arena; /* of the scan */
    bool is_scanning;
    char next[HF_DEPOT_KEY_LEN_MAX + 1]; /* the key where the next step begins */
    size_t next_len;
    uint64_t bytes[65]; /* of the pass so far, by class of age */
    unsigned cutoff;    /* values of this class of age and older go */
} hf_depot_keeping;

/* By the driver, once. */
void hf_depot_keep_house(hf_depot *depot);

/* ---- The depot --------------------------------------------------------------------------------------------------- */

enum { HF_ORIGINS = 64, HF_VOIDED = 64, HF_SPARE_CLASSES = 24 };

struct hf_depot {
    hf_spin lock; /* first: hf_wait.object. Guards inbox, is_driven, waiters' lists, users, keeper */
    hf_list inbox;
    bool is_driven;
    const hf_fiber *_Atomic driver; /* who drives: a callback of the depot must not call it */
    unsigned users;                 /* calls inside */
    bool is_closing;
    hf_list keeper_waits; /* the keeper, when it sleeps */
    bool keeper_ends;
    bool timer_moved;     /* the keeper sleeps until another moment than the first timer's */
    bool tick_is_posted;  /* `tick` is in the inbox */
    hf_list closer_waits; /* hf_depot_close, until no call is inside */
    atomic_uint refs;     /* the owner's, and one per watcher */

    hf_runtime *rt;
    const char *name;
    hf_depot_options options; /* with the defaults filled in */
    hf_scope *scope;
    const hf_fiber *owner;
    uint64_t seed; /* of the hashes of keys */
    hf_rng rng;
    bool jitter_is_full; /* tests: every pause is as long as it may be */

    hf_cache *memory;
    hf_keys slots;
    hf_keys spaces;
    _Atomic(uint64_t) generation; /* of all */
    _Atomic(uint64_t) hard;
    uint64_t generation_last, hard_last; /* as decided; may not be written yet */
    uint64_t stir;                       /* counts writes and invalidations, over all keys */
    /* `stir` of the last invalidation of a key, and of the last hard one, by the hash of the key: for keys that have no
     * slot yet when a write begins that will become theirs. */
    uint64_t voided[HF_VOIDED], hard_voided[HF_VOIDED];
    hf_keys stirs; /* keys whose base was stirred while something flies: stir.c */
    hf_list stirs_by_age;
    uint64_t stir_floor; /* stirs up to this one are forgotten: take it that they concern every key */

    hf_refs index;       /* who refers to a key */
    hf_keys paging;      /* hf_paging */
    hf_list paging_idle; /* those that nobody has open, the oldest first */

    hf_list all_flights;
    hf_list all_watchers;
    hf_list queue[3];  /* flights that wait for a permit, by urgency: high, normal, low */
    hf_list gathering; /* flights that wait until .batch_window is over */
    size_t gathering_count;
    hf_depot_timer_node window;
    uint64_t ticket_last;
    hf_list subs;         /* slots whose subscription has to be looked at */
    hf_keylock *decoding; /* by snapshot: one decodes it, the others wait; NULL = there is no .decode */
    size_t flights;       /* calls and subscriptions that wait for the origin's word */
    size_t flight_count;  /* in all */
    size_t refreshes;     /* held by the depot */
    size_t sends;         /* under way */
    size_t works;         /* fibers under way */
    size_t loads;         /* reads under way */
    hf_breaker breakers[HF_ORIGINS];
    bool is_offline;
    bool is_ending; /* nothing new is sent or fetched */

    hf_list rows; /* hf_pending in the order of their sequence */
    size_t row_count;
    size_t row_bytes;
    uint64_t sequence_next;

    struct hf_source *source; /* NULL = memory only */
    hf_list batch;            /* changes that wait for the next commit */
    hf_list committing;       /* changes of the commit under way */
    bool is_committing;
    hf_status broken; /* the source takes nothing any more */

    hf_keys aliases;     /* by the old key */
    hf_list alias_order; /* the oldest first */
    hf_depot_timer_node alias_timer;

    hf_heap timers;                     /* watchers' refreshes, sends that wait; monotonic */
    hf_list senders;                    /* slots with a write that may be sent now */
    const struct hf_sends_by *sends_by; /* driven.h; NULL = the depot sends by itself ... */
    bool waits_for_drive;               /* ... or not at all: .driven */
    size_t watcher_count;
    hf_depot_keeping keeping;
    hf_depot_counts counts;
    uint64_t memory_gets;      /* hits of the memory that were the driver's own */
    size_t dead_count;         /* dead rows */
    hf_list damaged;           /* rows that cannot be read (damaged.c) */
    hf_flow *events;           /* of hf_depot_news */
    atomic_bool has_listeners; /* somebody has asked for them */
    hf_panel panel;            /* in hf_metrics and hf_dump */
    hf_depot_counts last_seen; /* by hf_metrics; under the lock */
    int64_t complained_at;     /* the log heard of values that were not kept */
    hf_ask *closer;            /* hf_depot_close, until nothing is under way */
    hf_post tick;
    struct spare *spares[HF_SPARE_CLASSES]; /* spare.c: freed memory, by size */
    size_t spare_bytes;                     /* of it */
};

static inline int64_t hf_depot_wall(const hf_depot *depot)
{
    return depot->rt->env->ops->wall_now(depot->rt->env).ns;
}

/* Some milliseconds behind, for hits: a value may count as fresh that much longer. */
static inline int64_t hf_depot_wall_coarse(const hf_depot *depot)
{
    hf_env *env = depot->rt->env;
    return (env->ops->wall_coarse != NULL ? env->ops->wall_coarse(env) : env->ops->wall_now(env)).ns;
}

/* By the driver. */
static inline double hf_depot_chance(hf_depot *depot)
{
    return depot->jitter_is_full ? 1.0 : hf_rule_chance(&depot->rng);
}
/* By a fiber of a flight. */
double hf_depot_chance_of(hf_depot *depot);

/* ---- drive.c ----------------------------------------------------------------------------------------------------- */

/* Posts, and drives unless somebody else does. Outside the library. */
void hf_depot_post(hf_depot *depot, hf_post *post);
/* Posts, and lets the keeper drive unless somebody else does: for the thread of the store, and inside the library. */
void hf_depot_post_quietly(hf_depot *depot, hf_post *post);
/* Posts an ask and waits for its answer. The failure is then the last one of the caller. `verb`: for messages. */
hf_status hf_depot_ask(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb,
                       hf_span timeout);
/* By the driver: the ask is over. Its failure is in ask->op or ask->failure. */
void hf_depot_answer(hf_depot *depot, hf_ask *ask, hf_status status);
/* By the driver: the ask waits in this list. False: it wants out, and was answered. */
bool hf_depot_park(hf_depot *depot, hf_ask *ask, hf_list *list);
/* By the driver: true when the depot is ending; the ask was answered with that. */
bool hf_depot_refuses(hf_depot *depot, hf_ask *ask);
/* By the driver: takes the first ask out of a list; NULL = none is left. */
hf_ask *hf_depot_unpark(hf_depot *depot, hf_list *list);
/* The keeper: drives when nobody else does, and watches the timers. */
hf_status hf_depot_keeper(void *arg);
/* Fails: HF_ERR_MISUSE in a hook of a join, and in a process that fork() made. */
hf_status hf_depot_check_place(hf_runtime *rt, const char *verb);
/* Hands an operation's failure to the caller. */
hf_status hf_depot_raise(hf_depot *depot, const hf_op *op);
/* Room for the timers of what is there, and of one more write or watcher. Fails: HF_ERR_NOMEM. */
hf_status hf_depot_make_timers(hf_depot *depot);
/* Sets a timer; without memory it does not ring, but see hf_depot_make_timers. */
void hf_depot_timer(hf_depot *depot, hf_depot_timer_node *timer, int64_t when_ns);

/* The same about a key, without a timeout. Fails also: HF_ERR_INVALID: the key. */
hf_status hf_depot_ask_of(hf_depot *depot, hf_depot_key key, hf_ask *ask, void (*act)(hf_depot *, hf_post *),
                          const char *verb);
/* As hf_depot_ask, but nothing ends the wait: for calls that release something. */
void hf_depot_tell(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb);
/* The keeper ends when it is told. */
void hf_depot_end_keeper(hf_depot *depot);

/* ---- depot.c ----------------------------------------------------------------------------------------------------- */

/* hf_depot_open with a store of the depot's tables instead of a file; takes it, also on failure. NULL = none. */
hf_status hf_depot_open_in(const char *name, hf_depot **ret_depot, const hf_depot_options *options, hf_store *store);
void hf_depot_send_what_is_left(hf_depot *depot);
/* By the driver, when it has nothing to do: the closer hears of it. */
void hf_depot_look_at_end(hf_depot *depot);
void hf_depot_unref(hf_depot *depot);

/* ---- spare.c ----------------------------------------------------------------------------------------------------- */

/* As hf_rt_alloc and hf_rt_free, by the driver, for what comes and goes all the time. */
void *hf_spare_take(hf_depot *depot, size_t size);
void hf_spare_give(hf_depot *depot, void *memory, size_t size); /* accepts NULL */
void hf_spare_drop_all(hf_depot *depot);

/* ---- snap.c ------------------------------------------------------------------------------------------------------ */

hf_space *hf_depot_space(hf_depot *depot, hf_str ns); /* NULL = no memory */
/* Takes its own references. NULL = no memory. */
hf_snap *hf_snap_new(hf_depot *depot, hf_space *space, const hf_depot_entry *entry, hf_depot_entry_kind kind,
                     hf_value *value, bool is_pending, hf_depot_place place);
/* The same of a key of which nothing is known, and that has no writes: the keys of a namespace share it. */
hf_snap *hf_snap_none(hf_depot *depot, hf_space *space, const hf_depot_entry *entry, hf_depot_place place);
/* Whether nothing is known of the key: the entry is what hf_entry_none makes now. */
bool hf_entry_is_blank(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry);
/* Whether a hard invalidation, or any, came after the entry. */
bool hf_entry_is_gone(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry);
bool hf_entry_is_unusable(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry);
/* What the rules see of it now, but for is_blocked. */
hf_look_at hf_snap_look(const hf_depot *depot, const hf_snap *snap, int64_t now);
/* The snapshot in memory, with a reference; NULL = none. */
hf_snap *hf_memory_get(hf_depot *depot, hf_str key);
void hf_memory_put(hf_depot *depot, hf_str key, hf_snap *snap);
void hf_memory_remove(hf_depot *depot, hf_str key);
/* A text with its NUL; NULL = no memory. */
static inline hf_value *hf_text_value(const char *text)
{
    hf_value *value = NULL;
    return hf_value_copy(text, strlen(text) + 1, &value) == HF_OK ? value : NULL;
}
static inline const char *hf_value_text(const hf_value *value)
{
    return value != NULL ? hf_value_data(value) : NULL;
}

/* ---- slot.c ------------------------------------------------------------------------------------------------------ */

/* Finds or makes the slot of a key, or of the one that it is an alias of, and holds it. NULL = no memory. */
hf_slot *hf_slot_hold(hf_depot *depot, hf_str key);
void hf_slot_let_go(hf_depot *depot, hf_slot *slot);
static inline hf_str hf_slot_key(const hf_slot *slot)
{
    return hf_str_of_len(slot->bytes, slot->key.len);
}
/* Whether it is known; else it begins to load, and `ask` (may be NULL) is acted on again when it is. False with an ask
 * that wants out: it was answered. */
bool hf_slot_know(hf_depot *depot, hf_slot *slot, hf_ask *ask);
/* The slot of the ask's key, held by the ask, when it is known. NULL: the ask waits and is acted on again, or was answered. */
hf_slot *hf_slot_of_ask(hf_depot *depot, hf_ask *ask);
/* The visible value of `entry` with the pending writes of the slot folded in: without `except`, or with `more` in its
 * place; `more` without `except` comes last. A patch that does not fit any more is left out, but one that comes last is
 * a failure. Fails: what .apply returned. */
hf_status hf_slot_fold(hf_depot *depot, const hf_slot *slot, const hf_depot_entry *entry, const hf_pending *except,
                       const hf_pending *more, hf_depot_entry_kind *ret_kind, hf_value **ret_value,
                       bool *ret_is_pending);
/* The same for the writes of two keys in one, as hf_slot_take_rows orders them; without `except`. */
void hf_slot_fold_both(hf_depot *depot, const hf_slot *slot, const hf_slot *other, const hf_pending *except,
                       const hf_depot_entry *entry, hf_depot_entry_kind *ret_kind, hf_value **ret_value,
                       bool *ret_is_pending);
/* The writes of `other`, but for `except`, become those of `slot`: by sequence, but none before one that is being
 * sent. */
void hf_slot_take_rows(hf_depot *depot, hf_slot *slot, hf_slot *other, const hf_pending *except);
/* The first write that is not dead; NULL = none. */
hf_pending *hf_slot_first_row(const hf_slot *slot);
/* What .apply makes of the value (NULL = none) and the patch of this row. Fails: what .apply returned; HF_ERR_INVALID: it
 * made nothing; HF_ERR_TOO_BIG; HF_ERR_MISUSE: there is no .apply. */
hf_status hf_slot_apply(hf_depot *depot, const hf_pending *row, const hf_value *value, hf_value **ret_value);
/* After a hard invalidation of more than the key: the writes that wait are folded without the base. */
void hf_slot_refold(hf_depot *depot, hf_slot *slot);
hf_depot_entry hf_entry_none(const hf_depot *depot, const hf_space *space);
/* The entry of the slot is this one. */
void hf_slot_loaded(hf_depot *depot, hf_slot *slot, const hf_depot_entry *entry);

/* ---- flight.c ---------------------------------------------------------------------------------------------------- */

/* Whether the origin is not asked for this key now; `*ret_wait`: for how long at least. */
bool hf_depot_is_blocked(hf_depot *depot, hf_slot *slot, bool is_forced, int64_t *ret_wait);
/* The flight of the slot that serves this freshness, or a new one; it is held by the caller. NULL = no memory. */
hf_depot_flight *hf_flight_board_for(hf_depot *depot, hf_slot *slot, hf_fresh fresh, hf_urgency urgency, hf_many *many,
                                     bool *ret_joined);
static inline hf_depot_flight *hf_flight_board(hf_depot *depot, hf_slot *slot, hf_fresh fresh, hf_urgency urgency,
                                               bool *ret_joined)
{
    return hf_flight_board_for(depot, slot, fresh, urgency, NULL, ret_joined);
}
/* A holder leaves; the last one ends it. */
void hf_flight_get_off(hf_depot *depot, hf_depot_flight *flight);
/* The same for an ask, which has a reference. */
void hf_flight_leave(hf_depot *depot, hf_depot_flight *flight);
/* The key of the slot got another name: those who wait ask again, by the new one. */
void hf_flight_redirect(hf_depot *depot, hf_slot *slot);
/* A refresh that belongs to the depot, if there is room for one. */
void hf_flight_refresh_for(hf_depot *depot, hf_slot *slot, hf_urgency urgency, hf_many *many);
static inline void hf_flight_refresh(hf_depot *depot, hf_slot *slot, hf_urgency urgency)
{
    hf_flight_refresh_for(depot, slot, urgency, NULL);
}
/* At close: all flights end, and their waiters with this status. */
void hf_flight_end_all(hf_depot *depot);
/* The origin was asked: work_status, work_failure, reply, object, why and retry_after are set. Takes the reference of
 * the call. */
void hf_flight_land(hf_depot *depot, hf_depot_flight *flight);
/* It ends before the origin was asked. Takes `failure`. */
void hf_flight_fail(hf_depot *depot, hf_depot_flight *flight, hf_status status, hf_failure_box *failure);
/* It counts as of now: of a reply that came by itself. */
/* It asks as if it began now. */
void hf_flight_aim(hf_depot *depot, hf_depot_flight *flight);
/* The same, and it waits for a permit once more. */
void hf_flight_queue_again(hf_depot *depot, hf_depot_flight *flight);
void hf_flight_stamp(hf_depot *depot, hf_depot_flight *flight);
/* Queues those of a list, which are in no other one. */
void hf_flight_queue_all(hf_depot *depot, hf_list *flights);
/* Whether there is any way to ask the origin. */
static inline bool hf_depot_has_fetcher(const hf_depot *depot)
{
    return depot->options.fetch != NULL || depot->options.fetch_many != NULL || depot->options.subscribe != NULL;
}

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

void hf_depot_start_flights(hf_depot *depot);
/* A flight of the call is over before it has landed; without any other the call is canceled. */
void hf_call_leave(hf_depot *depot, hf_depot_call *call);
/* Cancels the fiber of a work, which is on its way. */
void hf_depot_abandon(hf_depot *depot, hf_work *work);
/* On a fiber, after a call returned `status`: its failure. */
hf_failure_box *hf_depot_take_failure(hf_depot *depot, hf_status status);
/* What an answer without a failure is: HF_OK, or the failure of a fetcher that did not keep to its contract. */
hf_status hf_reply_check(const hf_depot *depot, const hf_reply *reply, bool asks_with);
unsigned hf_depot_origin(hf_depot *depot, hf_str key);
/* One call of a fetcher, pusher or subscriber about a key, within `timeout` (0 = none): verbs about the key are refused inside. On
 * the fiber of a call, a send or a subscription. */
hf_status hf_depot_attempt_of(hf_depot *depot, const hf_slot *slot, hf_span timeout, hf_body call, void *arg);
/* Whether this fiber is inside such a call about this key. */
bool hf_depot_is_called_for(const hf_fiber *self, const hf_depot *depot, hf_str key);
/* What a verb says there. */
hf_status hf_depot_refuse_own(hf_op *op, const hf_depot *depot, const char *verb);
/* When such a call ends. */
hf_instant hf_depot_attempt_deadline(const hf_depot *depot);
/* What became of it, after it returned `status`. */
hf_reply_class hf_depot_classify(const hf_reply *reply, hf_status status);
hf_breaker_end hf_depot_end_of(hf_status status, hf_reply_class why);
/* On such a fiber: asks the breaker. Fails: HF_ERR_UNAVAILABLE, HF_ERR_CANCELED. */
hf_status hf_depot_permit(hf_depot *depot, unsigned origin, bool *ret_is_probe);

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

void hf_read_act(hf_depot *depot, hf_post *post);
/* The flight of these asks is over. */
void hf_read_landed(hf_depot *depot, hf_ask *ask, const hf_depot_flight *flight);
/* What is in memory, if it will do: no lock is taken, and nothing is counted but the reference of the value. */
bool hf_read_at_once(hf_depot *depot, const hf_depot_key_bytes *key, const hf_ask_rule *rule, hf_value **ret_value,
                     hf_depot_info *ret_info);
void hf_info_fill(hf_depot_info *info, const hf_snap *snap, int64_t age, bool is_stale, hf_depot_place place);
/* Fails: HF_ERR_INVALID. */
hf_status hf_read_check(hf_op *op, hf_fresh fresh, hf_span within, hf_urgency urgency);

/* ---- many.c ------------------------------------------------------------------------------------------------------ */

/* A key of many is answered. */
void hf_many_answered(hf_depot *depot, hf_ask *ask, hf_status status);
/* A key of many waits for a flight. */
void hf_many_decided(hf_depot *depot, hf_ask *ask);
/* Its flight was of an old name: it is acted on again. */
void hf_many_again(hf_ask *ask);

/* ---- sub.c ------------------------------------------------------------------------------------------------------- */

/* The flight waits for the next reply of its key's subscription, which begins if it does not run. */
void hf_sub_board(hf_depot *depot, hf_depot_flight *flight);
/* Something has changed: whether the slot's subscription is wanted is looked at when the driver has nothing else to do.
 * Does nothing without .subscribe. */
void hf_sub_look(hf_depot *depot, hf_slot *slot);
void hf_depot_look_at_subs(hf_depot *depot);
/* Online again. */
void hf_depot_look_at_all_subs(hf_depot *depot);
/* By the subscriber: hf_reply_emit. */
hf_status hf_sub_emit(hf_sub_run *run);
/* Whether the watcher wants one. */
static inline bool hf_watcher_subscribes(const hf_watcher *watcher)
{
    return watcher->depot->options.subscribe != NULL && watcher->rule.fresh != HF_FRESH_LOCAL;
}

/* ---- convert.c --------------------------------------------------------------------------------------------------- */

/* What a caller gets of a snapshot with a value: a reference to the value, or with .decode to what that makes of it, once
 * per snapshot. On the caller's fiber, or on .compute. Fails: what .decode returned, HF_ERR_CANCELED, HF_ERR_NOMEM. */
hf_status hf_snap_give(hf_depot *depot, hf_snap *snap, hf_value **ret_value);
/* The same of a value that is in no snapshot yet. */
hf_status hf_depot_decode(hf_depot *depot, const hf_value *value, hf_value **ret_object);
/* Whether .decode is for this value: lists of keys are the depot's own. */
bool hf_depot_decodes(const hf_depot *depot, const hf_value *value);
/* By the driver, before anybody else has the snapshot: takes a reference. */
void hf_snap_set_object(hf_snap *snap, hf_value *object);

/* ---- change.c ---------------------------------------------------------------------------------------------------- */

hf_change *hf_change_new(hf_depot *depot, hf_slot *slot); /* holds the slot; NULL = no memory */
void hf_change_free(hf_depot *depot, hf_change *change);
/* Its turn comes after the changes of its key that are there. */
void hf_change_begin(hf_depot *depot, hf_change *change);
/* By `decide` of the first change of a key: it stays where it is, and nothing is written, until it is released. */
void hf_change_release(hf_depot *depot, hf_change *change, hf_status status);
/* Adds a row of a table to the writes. Without memory the change fails when it is decided. The key's text must live as
 * long as the change. */
hf_buf *hf_change_put(hf_depot *depot, hf_change *change, hf_table table, hf_key key);
void hf_change_delete(hf_depot *depot, hf_change *change, hf_table table, hf_key key);
/* By `decide`: what was put is not written after all. */
void hf_change_write_nothing(hf_change *change);
/* By `decide`, when `next` is set: makes the snapshot, counts the version, and adds the row of the entry to the
 * writes. */
hf_status hf_change_fold(hf_depot *depot, hf_change *change, const hf_pending *except, const hf_pending *more);
/* By `apply`: entry and snapshot become those of the slot; memory, then watchers (depot-D6). `is_renewed`: watchers
 * hear of it although the value is the same. */
void hf_change_show(hf_depot *depot, hf_change *change, bool is_renewed);
/* Answers all callers that wait for the change. */
void hf_change_tell(hf_depot *depot, hf_change *change, hf_status status);
void hf_depot_commit(hf_depot *depot);
/* A group; NULL = no memory. */
hf_change_group *hf_change_group_new(hf_depot *depot);
/* Adds a change; the last one that is added leads. */
void hf_change_group_add(hf_change_group *group, hf_change *change);
/* hf_change_begin for all of them. All take their places in the queues of their keys at once, so no two groups wait for
 * each other. */
void hf_change_begin_all(hf_depot *depot, hf_change_group *group);
/* The changes of a slot that is known now. */
void hf_slot_run_changes(hf_depot *depot, hf_slot *slot);
/* By the source: the change is written, or not. */
void hf_change_written(hf_depot *depot, hf_change *change, hf_status status);

#endif
