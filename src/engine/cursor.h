/* hf_cursor: a table that is read in the background, page by page, while it changes.
 *
 * Three readers work like this: a queue reads its waiting tasks (matching.c), the deadlines are read a window ahead (due.c), and the filter
 * reads all names (filter.c). A row that is written in front of the cursor is found later. A row that is written behind it, or into the part
 * that is just being read, may never be seen: the writer asks hf_cursor_may_miss and remembers the row itself, or moves the cursor
 * back.
 *
 * engine-C1  A row from the cursor's place on is found by a later page. */
#ifndef HF_ENGINE_CURSOR_H
#define HF_ENGINE_CURSOR_H

#include "store/store.h"

typedef struct hf_cursor {
    int64_t a, b;    /* the numbers of the first key that was not read */
    int64_t end;     /* while a page is being read: its keys are before this `a` */
    bool is_reading; /* a page is being read */
    bool is_moved;   /* the cursor was moved back meanwhile: the page does not move it forward */
    bool has_rows;   /* the table may have rows from here on */
} hf_cursor;

/* The request is to read from here to the keys with `a` = end, INT64_MAX = all there are. `text`: the first part of the key. */
void hf_cursor_begin(hf_cursor *cursor, hf_store_request *request, hf_str text, int64_t end);
/* The page was read; the cursor goes behind it, unless it was moved back. True: the cursor has reached the end. */
bool hf_cursor_end(hf_cursor *cursor, const hf_store_request *request);
/* Whether a row that is written now with this key may be missed by all pages. */
bool hf_cursor_may_miss(const hf_cursor *cursor, int64_t a, int64_t b);
/* A row that must be found is written here: a cursor that is further goes back to it. */
void hf_cursor_move_back(hf_cursor *cursor, int64_t a, int64_t b);

#endif
