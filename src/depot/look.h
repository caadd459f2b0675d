/* The rows of a depot's file as tools see them, at rest or from the program that has it open. */
#ifndef HF_DEPOT_LOOK_H
#define HF_DEPOT_LOOK_H

#include "base/str.h"
#include "store/store.h"

#include <holdfast/depot.h>

/* Generations of the file: which entries were invalidated with their namespace, or with all. */
typedef struct hf_seen_generation {
    uint64_t soft, hard;
} hf_seen_generation;

/* The record of a row of HF_TABLE_SPACE, or of the row "generation" of HF_TABLE_META. False: it is damaged, and everything counts
 * as invalidated. */
bool hf_look_generation(hf_table table, const hf_key *key, hf_str record, hf_seen_generation *ret_generation);

typedef struct hf_seen_entry {
    hf_depot_key key;     /* points into the row */
    const char *kind;     /* "value", "unusable", "absent", "deleted", "gone", "none"; a literal */
    uint64_t version;     /* of what is visible */
    int64_t validated_at; /* wall */
    int64_t max_age;      /* the origin's word; -1 = none */
    uint32_t failures;    /* fetches that failed, in a row */
    hf_value *value;      /* NULL = none; these three are released with hf_seen_entry_drop */
    hf_value *etag;
    hf_value *last_modified;
} hf_seen_entry;

/* `space`, `all`: of its namespace, and of the file. Fails: HF_ERR_INVALID: the row is damaged; HF_ERR_NOMEM. */
hf_status hf_look_entry(const hf_row *row, const hf_seen_generation *space, const hf_seen_generation *all,
                        hf_seen_entry *ret_entry);
void hf_seen_entry_drop(hf_seen_entry *entry);

typedef struct hf_seen_write {
    uint64_t sequence;
    hf_depot_key key; /* points into the row */
    char state[12];   /* "waiting", "sending", "dead" */
    char verb[12];    /* "put", "patch", "delete", "create" */
    uint32_t attempts;
    size_t len;       /* bytes of the value or patch */
    int64_t made_at;  /* wall */
    hf_status status; /* of the last attempt; HF_OK = none failed */
    char id[HF_WRITE_ID_LEN];
    char message[256]; /* of the last attempt */
} hf_seen_write;

/* Fails: HF_ERR_INVALID: the row is damaged; HF_ERR_NOMEM. */
hf_status hf_look_write(const hf_row *row, hf_seen_write *ret_write);
/* The same from the line that an owner sends. */
hf_status hf_look_write_line(uint64_t sequence, hf_str key, hf_str line, hf_seen_write *ret_write);

#endif
