/* What is known of a key: entries, snapshots, namespaces (snap.c), and what callers get of a value (convert.c). */
#ifndef HF_DEPOT_VALUES_H
#define HF_DEPOT_VALUES_H

#include "depot/key.h"
#include "depot/rules.h"
#include "fiber/keyed/keys.h"

#include <string.h>

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

#endif
