/* Which workflow ids have runs? A Bloom filter over the index of names (names.h) answers "surely not" without asking the store, so that a
 * start with a new id need not wait for a read.
 *
 * It is filled in the background after opening, a page at a time, and rules out no name until that is done. When it gets too full
 * it is dropped and filled anew, larger, up to its share of memory. No name is missed: those of the index are added before the reading
 * begins, new ones when they come, and the others are in the table. */
#ifndef HF_ENGINE_FILTER_H
#define HF_ENGINE_FILTER_H

#include "engine/cursor.h"

typedef struct hf_core hf_core;
typedef struct hf_read hf_read;

typedef struct hf_filter {
    uint64_t *words;
    size_t word_count; /* a power of two; 0 = there is no filter */
    size_t count;      /* names added */
    bool is_complete;  /* every name of the table is in it */
    hf_cursor cursor;  /* over the table */
    bool off;          /* too many names for its share of memory */
} hf_filter;

/* The table is empty: complete from the start. Else reading begins with hf_filter_tick. */
void hf_filter_open(hf_core *core, bool empty);
void hf_filter_deinit(hf_core *core);
/* `hash` of the text of a name. */
void hf_filter_add(hf_core *core, uint64_t hash);
bool hf_filter_may_have(const hf_filter *filter, uint64_t hash);
/* Reads on, if there is something to read. */
void hf_filter_tick(hf_core *core);
void hf_filter_rows_read(hf_core *core, hf_read *read);

#endif
