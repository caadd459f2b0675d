/* Pages of a query: a window over a list that is too long to have at hand as a whole, such as a feed.
 *
 *     static hf_status fetch_posts(void *state, const hf_fetch_request *request, hf_reply *reply)
 *     {
 *         ... ask the origin for request->page_size posts: the first ones, those after request->token (HF_PAGE_APPEND),
 *             or those before it (HF_PAGE_PREPEND) ...
 *         ... hf_reply_add(reply, key of a post, its bytes, its length) for each ...
 *         return hf_reply_page(reply, items, count, .after = token_of_the_next_page);
 *     }
 *
 *     HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
 *     HF_TRY(hf_pages_open(posts, query, &pages, .page_size = 20));
 *     hf_pages_view view;
 *     while (hf_pages_next(pages, &view) == HF_OK) {
 *         ... show view.items; when the reader gets to the end: hf_pages_load(pages, HF_PAGE_APPEND) ...
 *         hf_items_free(view.items);
 *     }
 *
 * The window is the value of the query's key: a list of keys, with the tokens at its ends. So hf_depot_list,
 * hf_depot_watch, the file and hf_depot_invalidate work with it as with any other list, and its first page is fetched like any
 * other value. */
#ifndef HOLDFAST_PAGES_H
#define HOLDFAST_PAGES_H

#include <holdfast/depot.h>

typedef struct hf_pages hf_pages;

#define HF_PAGE_SIZE_MAX 1000      /* items of a page that is asked for */
#define HF_PAGE_TOKEN_LEN_MAX 1024 /* bytes of a token */
#define HF_PAGE_TYPE_LEN_MAX 98    /* bytes of the type of a query with pages */

/* An item of a page that a fetcher brings. */
typedef struct hf_page_item {
    hf_depot_key key;
    /* Where the item is, if the origin can continue from any item (a cursor): pages before it and after it can be
     * fetched with it. NULL = it cannot. */
    const char *token;
} hf_page_item;

typedef struct hf_reply_page_options {
    size_t size;        /* set by the macro */
    const char *before; /* token of the page before this one; NULL = there is none: this is the beginning */
    const char *after;  /* token of the page after this one; NULL = there is none: this is the end */
} hf_reply_page_options;

typedef struct hf_pages_options {
    size_t size;            /* set by the macro */
    int64_t page_size;      /* items that a fetcher is asked for; 20, at most HF_PAGE_SIZE_MAX */
    int64_t window_max;     /* items at hand; ten pages, which is also the most; at least one page */
    hf_span ttl;            /* an older window is fetched again when it is opened; 5 min */
    hf_fresh members;       /* how fresh the values of items are; HF_FRESH_CACHED */
    hf_span members_within; /* of HF_FRESH_WITHIN */
} hf_pages_options;

typedef struct hf_pages_load_options {
    size_t size;     /* set by the macro */
    hf_span timeout; /* bounds the caller; the load goes on for others. 0 or HF_SPAN_UNLIMITED = none */
    bool force;      /* load although the last one failed a moment ago */
} hf_pages_load_options;

typedef enum hf_page_phase { HF_PAGE_IDLE, HF_PAGE_LOADING, HF_PAGE_ERROR } hf_page_phase;

/* What becomes of the loads in one direction. */
typedef struct hf_page_state {
    hf_page_phase phase;
    hf_status status; /* of HF_PAGE_ERROR */
    bool is_stale;    /* of HF_PAGE_ERROR: the items from before are still there */
} hf_page_state;

typedef struct hf_pages_view {
    hf_items *items;         /* release it with hf_items_free */
    hf_page_state states[3]; /* by hf_page_direction */
    bool has_before;         /* HF_PAGE_PREPEND would load something */
    bool has_after;          /* HF_PAGE_APPEND would */
    bool is_fully_loaded;    /* the window has all: the origin said of both ends that nothing comes there */
    bool is_stale;           /* older than .ttl */
    uint64_t version;        /* of the window */
} hf_pages_view;

HF_BEGIN_DECLS

/* Opens the pages of a query. A window at hand can be seen at once; if there is none, or it is older than .ttl, the
 * first page is fetched. All that open a query share one window; the first one sets .page_size, .window_max and .ttl,
 * which are forgotten when nobody has it open and the window has left memory. From any fiber or thread.
 * Fails: HF_ERR_INVALID: the key, also one that hf_depot_create has made and the origin has not named, its type has over
 * HF_PAGE_TYPE_LEN_MAX bytes, an option; HF_ERR_MISUSE: the depot has .subscribe; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_pages_open_with(hf_depot *depot, hf_depot_key query, hf_pages **ret_pages,
                                                const hf_pages_options *options);
/* Loads a page and waits until it is there. HF_PAGE_INITIAL replaces the window. The others add to one end, without
 * items that are there already; if the window gets too long, items at the other end go, and can be loaded again. Without
 * a token at that end nothing happens. Two calls in one direction share one load. If it fails, the window stays as it
 * is, and the state says so.
 * Fails: HF_ERR_UNAVAILABLE: the origin is not asked at the moment. HF_ERR_CONFLICT: the window was replaced while the
 * page was loaded, several times or by one without a token there. HF_ERR_TOO_BIG: the window is over .value_max.
 * HF_ERR_TIMEOUT, HF_ERR_CANCELED: of the caller. Else the failure of the fetcher. */
HF_API HF_MUST_USE hf_status hf_pages_load_with(hf_pages *pages, hf_page_direction direction,
                                                const hf_pages_load_options *options);
/* The window as it is now, with the values of its items. Fails: HF_ERR_CANCELED, HF_ERR_CLOSED, HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_pages_look(hf_pages *pages, hf_pages_view *ret_view);
/* Waits until the window, an item or the state of a load differs from what the last call has given; the first call
 * gives what there is. Changes that come while nobody waits are one. One caller at a time. Fails: HF_ERR_TIMEOUT,
 * HF_ERR_CANCELED, HF_ERR_CLOSED: the depot was closed. */
HF_API HF_MUST_USE hf_status hf_pages_next_with(hf_pages *pages, hf_pages_view *ret_view,
                                                const hf_wait_options *options);
HF_API hf_status hf_pages_close(hf_pages *pages); /* accepts NULL */

/* The answer of a fetcher to a request for a page, also for the first one (HF_PAGE_INITIAL), instead of hf_reply_value.
 * An item that is there twice is kept once. Fails: HF_ERR_INVALID: a key, a token that is empty or too long;
 * HF_ERR_LIMIT: more than HF_DEPOT_LIST_MAX items; HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_reply_page_with(hf_reply *reply, const hf_page_item *items, size_t count,
                                                const hf_reply_page_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_pages_close, hf_pages)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_pages_open(...) HF_PAGES_OPEN_(__VA_ARGS__, .size = sizeof(hf_pages_options))
#define HF_PAGES_OPEN_(depot, query, ret_pages, ...) \
    hf_pages_open_with((depot), (query), (ret_pages), &(hf_pages_options){__VA_ARGS__})
#define hf_pages_load(...) HF_PAGES_LOAD_(__VA_ARGS__, .size = sizeof(hf_pages_load_options))
#define HF_PAGES_LOAD_(pages, direction, ...) \
    hf_pages_load_with((pages), (direction), &(hf_pages_load_options){__VA_ARGS__})
#define hf_pages_next(...) HF_PAGES_NEXT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_PAGES_NEXT_(pages, ret_view, ...) \
    hf_pages_next_with((pages), (ret_view), &(hf_wait_options){__VA_ARGS__})
#define hf_reply_page(...) HF_REPLY_PAGE_(__VA_ARGS__, .size = sizeof(hf_reply_page_options))
#define HF_REPLY_PAGE_(reply, items, count, ...) \
    hf_reply_page_with((reply), (items), (count), &(hf_reply_page_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_pages_open(hf_depot *depot, hf_depot_key query, hf_pages **ret_pages,
    hf_pages_options options = hf_pages_options())
{
    options.size = sizeof options;
    return hf_pages_open_with(depot, query, ret_pages, &options);
}
static inline HF_MUST_USE hf_status
hf_pages_load(hf_pages *pages, hf_page_direction direction,
    hf_pages_load_options options = hf_pages_load_options())
{
    options.size = sizeof options;
    return hf_pages_load_with(pages, direction, &options);
}
static inline HF_MUST_USE hf_status
hf_pages_next(hf_pages *pages, hf_pages_view *ret_view,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_pages_next_with(pages, ret_view, &options);
}
static inline HF_MUST_USE hf_status
hf_reply_page(hf_reply *reply, const hf_page_item *items, size_t count,
    hf_reply_page_options options = hf_reply_page_options())
{
    options.size = sizeof options;
    return hf_reply_page_with(reply, items, count, &options);
}
#endif
/* clang-format on */

#endif
