/* Lists of keys as values: plain ones, and windows, which also have tokens. Pure functions of bytes.
 *
 *     value   = magic (8 bytes, the last one is the version), flags, [before, after,] count, item ...
 *     item    = length of the key, the key, [before, after]
 *     in [ ]: only of a window
 *
 * Numbers are varints. A token is its length and its bytes; the length 0 says that there is none. A token of an item
 * says how to go on from there: `before`, how to fetch what comes before the item, `after`, what comes after it. Those of the
 * window are of its ends. At an end without a token nothing can be fetched; it is a true end (is_start, is_end) only if the
 * origin said so, not if items were trimmed there. */
#ifndef HF_DEPOT_WINDOW_H
#define HF_DEPOT_WINDOW_H

#include "base/arena.h"
#include "base/buf.h"
#include "depot/key.h"

#include <holdfast/pages.h>

typedef struct hf_window_item {
    hf_str key;           /* packed */
    hf_str before, after; /* tokens; empty = none */
} hf_window_item;

typedef struct hf_window {
    bool is_window;        /* else it has no tokens */
    bool is_start, is_end; /* the origin has nothing before, after it */
    hf_str before, after;  /* tokens of its ends; empty = none */
    hf_window_item *items; /* borrows from the bytes that were read */
    size_t count;
} hf_window;

/* Goes over the items without memory. */
typedef struct hf_window_cursor {
    const unsigned char *at, *end;
    size_t left;    /* items */
    bool is_bad;    /* the bytes are not a list */
    hf_window head; /* without items */
} hf_window_cursor;

/* False: the bytes do not begin like a list. */
bool hf_window_begin(hf_window_cursor *cursor, hf_str bytes);
/* False: there is no other item, or is_bad. */
bool hf_window_next(hf_window_cursor *cursor, hf_window_item *ret_item);
/* Whether the bytes are a list, to the last one. */
bool hf_window_is_list(hf_str bytes);

/* Fails: HF_ERR_INVALID: it is not a list; HF_ERR_NOMEM. */
hf_status hf_window_read(hf_arena *arena, hf_str bytes, hf_window *ret_window);
void hf_window_write(hf_buf *out, const hf_window *window);

/* Removes items whose key came before. False: no memory. */
bool hf_window_unite(hf_arena *arena, hf_window *window);
/* Only the first `max` items stay, and what trimming says below. */
void hf_window_cut(hf_window *window, size_t max);
/* The window with the page at one of its ends, without items that are there twice. If there are more than `max`, items
 * at the other end go: as many as are too many, and then as many more as it takes until the end has a token, if there
 * is an item with one. Fails: HF_ERR_NOMEM. */
hf_status hf_window_join(hf_arena *arena, const hf_window *window, const hf_window *page, hf_page_direction direction,
                         size_t max, hf_window *ret_window);

#endif
