/* Changes: what is to be written, and what happens when it is (change.c). */
#ifndef HF_DEPOT_CHANGE_H
#define HF_DEPOT_CHANGE_H

#include "base/buf.h"
#include "depot/depot_private.h"

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
    hf_node node;        /* in slot->changes */
    hf_node in_batch;    /* in depot->batch, then in depot->committing */
    hf_depot_slot *slot; /* held; NULL = it concerns no key */
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

/* ---- change.c ---------------------------------------------------------------------------------------------------- */

hf_change *hf_change_new(hf_depot *depot, hf_depot_slot *slot); /* holds the slot; NULL = no memory */
/* The same for the slot of a key. */
hf_change *hf_change_of_key(hf_depot *depot, hf_str key);
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
void hf_slot_run_changes(hf_depot *depot, hf_depot_slot *slot);
/* By the source: the change is written, or not. */
void hf_change_written(hf_depot *depot, hf_change *change, hf_status status);

#endif
