/* Pages: what paging.c, which loads them, and pages.c, which shows them, share. */
#ifndef HF_DEPOT_PAGES_H
#define HF_DEPOT_PAGES_H

#include "depot/lists.h"
#include "depot/window.h"

struct hf_pages {
    hf_depot *depot; /* the watcher has a reference */
    hf_watcher *watcher;
    hf_paging *paging;           /* of the driver */
    hf_depot_key_bytes query;    /* packed */
    hf_depot_key_bytes lanes[2]; /* of HF_PAGE_APPEND, HF_PAGE_PREPEND */
    hf_fresh members;
    hf_span members_within;
    uint64_t print; /* of what hf_pages_next has given */
    bool has_print;
};

static inline hf_str hf_key_str(const hf_depot_key_bytes *key)
{
    return hf_str_of_len(key->bytes, key->len);
}

static inline hf_str hf_value_str(const hf_value *value)
{
    return value != NULL ? hf_str_of_len(hf_value_data(value), hf_value_len(value)) : (hf_str){0};
}

/* Counts pages among the users of their query. The first one sets the bounds; `*ttl` is then that of the first. */
hf_status hf_paging_join(hf_pages *pages, size_t page_size, size_t window_max, hf_span *ttl);
void hf_paging_leave(hf_pages *pages);
/* Loads a page at one end, and waits for it. */
hf_status hf_page_load(hf_pages *pages, hf_page_direction direction, const hf_pages_load_options *options);
/* By the driver: the window at hand, as far as the origin made it; without items. False: there is none. */
bool hf_page_head(const hf_depot *depot, const hf_depot_slot *query, hf_window *ret_head);

#endif
