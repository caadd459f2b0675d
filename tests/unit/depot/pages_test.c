/* Pages of a query: windows as pure functions, then loads on virtual time. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "depot/window.h"
#include "store/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- An origin: a feed of posts with the numbers low to high ------------------------------------------------------ */

typedef struct feed {
    int low, high;   /* the first post, and the one behind the last */
    int first;       /* where the first page begins */
    bool has_tokens; /* every post has one; else only pages have */
    bool is_forward; /* pages have no token for what comes before them */
    hf_span takes;
    bool is_down;
    bool is_not_paged; /* answers with hf_reply_value */
    int overlap;       /* posts of the last page that the next one has again */
    int fetches[3];    /* by direction */
    int post_fetches;
    size_t page_size; /* of the last request */
    int text;         /* of the posts */
} feed;

static hf_depot_key post_key(int number)
{
    static _Thread_local char ids[64][12];
    static _Thread_local unsigned next;
    char *id = ids[next++ % 64];
    (void)snprintf(id, sizeof ids[0], "%d", number);
    return hf_depot_key_of("blog", "post", id);
}

static hf_depot_key query_key(void)
{
    return hf_depot_key_of("blog", "posts", "all");
}

/* Posts [from, to). A token is the number of the first post after it. */
static hf_status reply_posts(const feed *f, hf_reply *reply, int from, int to)
{
    char before[16];
    char after[16];
    char tokens[64][16];
    hf_page_item items[64];
    size_t count = 0;
    for (int i = from; i < to && count < HF_COUNT_OF(items); i++, count++) {
        char text[32];
        int len = snprintf(text, sizeof text, "post %d.%d", i, f->text);
        HF_TRY(hf_reply_add(reply, post_key(i), text, (size_t)len));
        (void)snprintf(tokens[count], sizeof tokens[count], "@%d", i);
        items[count] = (hf_page_item){post_key(i), f->has_tokens ? tokens[count] : NULL};
    }
    (void)snprintf(before, sizeof before, "%d", from);
    (void)snprintf(after, sizeof after, "%d", to);
    return hf_reply_page(reply, items, count, .before = from > f->low && !f->is_forward ? before : NULL,
                         .after = to < f->high ? after : NULL);
}

static int clamp(const feed *f, int number)
{
    return number < f->low ? f->low : number > f->high ? f->high : number;
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    feed *f = state;
    feed then = *f; /* as it was when the question arrived */
    if (strcmp(request->key.type, "post") == 0) {
        f->post_fetches++;
        return HF_ERR_NOT_FOUND;
    }
    HF_CHECK(strcmp(request->key.ns, "blog") == 0 && strcmp(request->key.type, "posts") == 0 &&
             request->key.id_len == 3);
    HF_CHECK((request->page == HF_PAGE_INITIAL) == (request->token == NULL));
    f->fetches[request->page]++;
    f->page_size = request->page_size;
    HF_TRY(hf_sleep(f->takes));
    if (f->is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
    }
    if (f->is_not_paged) {
        return hf_reply_value(reply, "text", 4);
    }
    int size = request->page_size > 0 ? (int)request->page_size : 10;
    int from = then.first;
    int to = from + size;
    const char *token = request->token != NULL ? request->token : "";
    bool is_of_post = token[0] == '@';
    int number = atoi(token + is_of_post);
    if (request->page == HF_PAGE_APPEND) {
        from = number + is_of_post - f->overlap; /* a token of a post means the post itself */
        to = from + size;
    } else if (request->page == HF_PAGE_PREPEND) {
        to = number;
        from = to - size;
    }
    return reply_posts(&then, reply, clamp(&then, from), clamp(&then, to));
}

static hf_status open_depot(feed *f, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("blog", ret_depot, .fetch = fetch, .state = f, .retries = HF_OFF));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

/* "0-19,25 >": the posts, < and > if more can be loaded there, F if all are there, then the states that are not idle. */
static void describe(const hf_pages_view *view, char *text, size_t capacity)
{
    size_t len = 0;
    size_t count = hf_items_count(view->items);
    text[0] = '\0';
    for (size_t i = 0; i < count;) {
        int first = atoi(hf_items_at(view->items, i)->key.id);
        size_t end = i + 1;
        while (end < count && atoi(hf_items_at(view->items, end)->key.id) == first + (int)(end - i)) {
            end++;
        }
        len += (size_t)snprintf(text + len, capacity - len, "%s%d", i > 0 ? "," : "", first);
        if (end > i + 1) {
            len += (size_t)snprintf(text + len, capacity - len, "-%d", first + (int)(end - i) - 1);
        }
        i = end;
    }
    len += (size_t)snprintf(text + len, capacity - len, " %s%s%s", view->has_before ? "<" : "",
                            view->has_after ? ">" : "", view->is_fully_loaded ? "F" : "");
    for (int i = 0; i < 3; i++) {
        const hf_page_state *state = &view->states[i];
        if (state->phase != HF_PAGE_IDLE) {
            len += (size_t)snprintf(text + len, capacity - len, " %c%s%s", "IAP"[i],
                                    state -> phase == HF_PAGE_LOADING ? "..." : hf_status_name(state->status),
                                    state->is_stale ? "/stale" : "");
        }
    }
}

static void look(hf_pages *pages, const char *expected, int line)
{
    hf_pages_view view;
    char text[200];
    hf_status status = hf_pages_look(pages, &view);
    if (HF_CHECK_SAY(status == HF_OK, "line %d: %s", line, hf_status_name(status))) {
        describe(&view, text, sizeof text);
        HF_CHECK_SAY(strcmp(text, expected) == 0, "line %d: the window is '%s', not '%s'", line, text, expected);
        hf_items_free(view.items);
    }
}
#define LOOK(pages, expected) look(pages, expected, __LINE__)

static void next(hf_pages *pages, const char *expected, int line)
{
    hf_pages_view view;
    char text[200] = "nothing";
    hf_status status = hf_pages_next(pages, &view, .timeout = hf_seconds(100));
    if (status == HF_OK) {
        describe(&view, text, sizeof text);
        hf_items_free(view.items);
    }
    HF_CHECK_SAY(strcmp(text, expected) == 0, "line %d: the next one is '%s', not '%s': %s", line, text, expected,
                 hf_status_name(status));
}
#define NEXT(pages, expected) next(pages, expected, __LINE__)

/* ---- Loads, one after the other ---------------------------------------------------------------------------------- */

static const struct {
    feed feed;
    int page_size, window_max;
    const char *loads; /* I, A, P */
    const char *expected;
    int fetches;
} WALKS[] = {
    /* to the end, and not beyond it */
    {{.high = 100}, 10, 30, "", "0-9 >", 1},
    {{.high = 100}, 10, 30, "A", "0-19 >", 2},
    {{.high = 100}, 10, 30, "P", "0-9 >", 1},
    {{.high = 15}, 10, 30, "A", "0-14 F", 2},
    {{.high = 15}, 10, 30, "AAAP", "0-14 F", 2},
    {{.high = 7}, 10, 30, "", "0-6 F", 1},
    {{.high = 7}, 10, 30, "AP", "0-6 F", 1},
    {{.high = 0}, 10, 30, "AP", " F", 1},
    /* both ways from the middle */
    {{.high = 100, .first = 50}, 10, 40, "", "50-59 <>", 1},
    {{.high = 100, .first = 50}, 10, 40, "AP", "40-69 <>", 3},
    {{.high = 70, .first = 50}, 10, 100, "APPPPPP", "0-69 F", 7},
    /* trimmed at the other end: it can be loaded again, and is not an end */
    {{.high = 100}, 10, 30, "AAA", "10-39 <>", 4},
    {{.high = 100}, 10, 30, "AAAP", "0-29 >", 5},
    {{.high = 100}, 10, 30, "AAAAPA", "20-49 <>", 7},
    {{.high = 40}, 10, 30, "AAA", "10-39 <", 4},
    {{.high = 40}, 10, 30, "AAAPPAA", "10-39 <", 6}, /* the second P has no token, the second A neither */
    {{.high = 40, .has_tokens = true}, 10, 25, "AA", "5-29 <>", 3},
    {{.high = 40, .has_tokens = true}, 10, 25, "AAP", "0-24 >", 4},
    {{.high = 40, .has_tokens = true}, 10, 25, "AAPA", "10-34 <>", 5},
    {{.high = 40}, 10, 25, "AA", "10-29 <>", 3},                      /* without tokens of posts whole pages go */
    {{.high = 100, .is_forward = true}, 10, 30, "AAA", "10-39 >", 4}, /* and are gone, if there is no way back */
    {{.high = 100, .is_forward = true}, 10, 25, "AA", "5-29 >", 3},
    {{.high = 100, .is_forward = true}, 10, 25, "AAP", "5-29 >", 3},
    /* items that are there already */
    {{.high = 30, .overlap = 3}, 10, 100, "A", "0-16 >", 2},
    {{.high = 30, .overlap = 3}, 10, 100, "AAA", "0-29 F", 4},
    {{.high = 100, .overlap = 10}, 10, 100, "AA", "0-9 >", 3},
    /* the first page replaces */
    {{.high = 100}, 10, 30, "AAI", "0-9 >", 4},
    {{.high = 100}, 10, 30, "AAAIA", "0-19 >", 6},
    /* a page that is larger than what was asked for */
    {{.high = 100}, 1, 1, "", "0 >", 1},
    {{.high = 100}, 1, 10, "AAAAAAAAAAAA", "3-12 <>", 13},
    {{.high = 100}, 1, 1, "A", "1 <>", 2},
};

static hf_page_direction direction_of(char letter)
{
    return letter == 'A' ? HF_PAGE_APPEND : letter == 'P' ? HF_PAGE_PREPEND : HF_PAGE_INITIAL;
}

static hf_status walk(size_t row, hf_depot_options *options)
{
    feed f = WALKS[row].feed;
    options->state = &f;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open_with("blog", &depot, options));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = WALKS[row].page_size,
                         .window_max = WALKS[row].window_max));
    HF_TRY(hf_sleep(hf_seconds(1))); /* the first page comes by itself */
    for (const char *load = WALKS[row].loads; *load != '\0'; load++) {
        hf_status status = hf_pages_load(pages, direction_of(*load));
        HF_CHECK_SAY(status == HF_OK, "walk %zu: %c gave %s", row, *load, hf_status_name(status));
    }
    char text[200];
    hf_pages_view view;
    HF_TRY(hf_pages_look(pages, &view));
    describe(&view, text, sizeof text);
    HF_CHECK_SAY(strcmp(text, WALKS[row].expected) == 0, "walk %zu: %s gives '%s', not '%s'", row, WALKS[row].loads,
                 text, WALKS[row].expected);
    int fetches = f.fetches[0] + f.fetches[1] + f.fetches[2];
    HF_CHECK_SAY(fetches == WALKS[row].fetches, "walk %zu: %d fetches, not %d", row, fetches, WALKS[row].fetches);
    HF_CHECK(f.post_fetches == 0 && f.page_size == (size_t)WALKS[row].page_size);
    for (size_t i = 0; i < hf_items_count(view.items); i++) { /* the posts came with the pages */
        HF_CHECK(hf_items_at(view.items, i)->value != NULL && !hf_items_at(view.items, i)->is_stale);
    }
    hf_items_free(view.items);
    return HF_OK;
}

static hf_status walks(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(WALKS); i++) {
        hf_depot_options options = {.size = sizeof options, .fetch = fetch};
        HF_TRY(walk(i, &options));
    }
    return HF_OK;
}

/* ---- States of loads --------------------------------------------------------------------------------------------- */

static hf_status append_one(void *arg)
{
    return hf_pages_load(arg, HF_PAGE_APPEND);
}

static hf_status prepend_one(void *arg)
{
    return hf_pages_load(arg, HF_PAGE_PREPEND);
}

static hf_status load_states(void *arg)
{
    (void)arg;
    feed f = {.high = 100, .first = 50, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10));
    NEXT(pages, "  I...");
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND)); /* no window, no token: nothing happens */
    HF_CHECK(f.fetches[HF_PAGE_APPEND] == 0);
    NEXT(pages, "50-59 <>");
    { /* two calls in one direction share a load, and both directions go side by side */
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        int64_t before = hf_now(NULL).ns;
        HF_TRY(hf_fork(scope, append_one, pages));
        HF_TRY(hf_fork(scope, append_one, pages));
        HF_TRY(hf_fork(scope, prepend_one, pages));
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        LOOK(pages, "50-59 <> A... P...");
        HF_TRY(hf_fork(scope, append_one, pages)); /* late, but it joins */
        HF_TRY(hf_join(scope));
        HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns);
        HF_CHECK(f.fetches[HF_PAGE_APPEND] == 1 && f.fetches[HF_PAGE_PREPEND] == 1);
    }
    LOOK(pages, "40-69 <>");
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.joined == 2);
    return HF_OK;
}

static hf_status load_failures(void *arg)
{
    (void)arg;
    feed f = {.high = 100, .first = 50, .is_down = true};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10));
    HF_TRY(hf_sleep(hf_seconds(1)));
    LOOK(pages, "  IHF_ERR_IO");                                           /* nothing is there, so nothing is stale */
    HF_CHECK(hf_pages_load(pages, HF_PAGE_INITIAL) == HF_ERR_UNAVAILABLE); /* a moment ago it failed */
    f.is_down = false;
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL, .force = true));
    LOOK(pages, "50-59 <>");
    /* an end fails: the posts stay, and the other end goes on */
    f.is_down = true;
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_IO);
    HF_CHECK(strstr(hf_error_text(), "the line is dead") != NULL);
    LOOK(pages, "50-59 <> AHF_ERR_IO/stale");
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_UNAVAILABLE);
    LOOK(pages, "50-59 <> AHF_ERR_UNAVAILABLE/stale");
    f.is_down = false;
    HF_TRY(hf_pages_load(pages, HF_PAGE_PREPEND));
    LOOK(pages, "40-59 <> AHF_ERR_UNAVAILABLE/stale");
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND, .force = true));
    LOOK(pages, "40-69 <>");
    f.is_down = true;
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_IO);
    HF_TRY(hf_sleep(hf_seconds(5))); /* the back-off is over */
    f.is_down = false;
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
    LOOK(pages, "40-79 <>");
    /* the first page fails: the window stays */
    f.is_down = true;
    HF_CHECK(hf_pages_load(pages, HF_PAGE_INITIAL) == HF_ERR_IO);
    LOOK(pages, "40-79 <> IHF_ERR_IO/stale");
    /* offline */
    HF_TRY(hf_depot_online(depot, false));
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_UNAVAILABLE);
    HF_TRY(hf_depot_online(depot, true));
    /* a fetcher that does not know pages */
    f.is_down = false;
    f.is_not_paged = true;
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "hf_reply_page") != NULL);
    HF_CHECK(hf_pages_load(pages, (hf_page_direction)7) == HF_ERR_INVALID);
    return HF_OK;
}

/* Callers that leave. */
static hf_status load_leaves(void *arg)
{
    (void)arg;
    feed f = {.high = 100, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, append_one, pages));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND, .timeout = hf_milliseconds(200)) == HF_ERR_TIMEOUT);
    LOOK(pages, "0-9 > A..."); /* the other one still waits */
    HF_TRY(hf_join(scope));
    LOOK(pages, "0-19 >");
    HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND, .timeout = hf_milliseconds(200)) == HF_ERR_TIMEOUT);
    LOOK(pages, "0-19 >"); /* nobody waits: it was canceled, which is not a failure */
    HF_TRY(hf_sleep(hf_seconds(2)));
    LOOK(pages, "0-19 >");
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
    LOOK(pages, "0-29 >");
    HF_CHECK(f.fetches[HF_PAGE_APPEND] == 3);
    return HF_OK;
}

/* ---- What happens between ---------------------------------------------------------------------------------------- */

static hf_status changes_between(void *arg)
{
    (void)arg;
    feed f = {.high = 100, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
    LOOK(pages, "0-19 >");
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    /* the window is replaced while a page comes: the page does not fit, and the right one is asked for */
    f.takes = hf_seconds(3);
    HF_TRY(hf_fork(scope, append_one, pages)); /* after 19 */
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    f.takes = hf_seconds(1);
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
    LOOK(pages, "0-9 > A...");
    HF_TRY(hf_join(scope));
    LOOK(pages, "0-19 >");
    HF_CHECK(f.fetches[HF_PAGE_APPEND] == 3);
    /* it is invalidated meanwhile: what was loaded does not come back */
    HF_TRY(hf_fork(scope, append_one, pages));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    f.text = 1;
    HF_TRY(hf_depot_invalidate(depot, query_key()));
    LOOK(pages, "  I... A...");
    HF_CHECK(hf_join(scope) == HF_ERR_CONFLICT);
    HF_TRY(hf_sleep(hf_seconds(1)));
    LOOK(pages, "0-9 > AHF_ERR_CONFLICT/stale");
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
    LOOK(pages, "0-19 >");
    /* hard: nothing is there until the first page has come again */
    HF_TRY(hf_depot_invalidate_namespace(depot, "blog", .hard = true));
    LOOK(pages, "  I...");
    HF_TRY(hf_sleep(hf_seconds(2)));
    LOOK(pages, "0-9 >");
    return HF_OK;
}

/* A reader hears of the window, of its posts, and of states. */
static hf_status reader(void *arg)
{
    (void)arg;
    feed f = {.high = 15, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10));
    NEXT(pages, "  I...");
    NEXT(pages, "0-9 >");
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, append_one, pages));
    NEXT(pages, "0-9 > A...");
    NEXT(pages, "0-14 F");
    hf_pages_view view;
    HF_CHECK(hf_pages_next(pages, &view, .timeout = hf_seconds(10)) == HF_ERR_TIMEOUT);
    /* a post changes, as part of another answer */
    f.text = 2;
    HF_TRY(hf_depot_invalidate(depot, post_key(3)));
    HF_TRY(hf_pages_next(pages, &view));
    HF_CHECK(hf_items_at(view.items, 3)->value == NULL && hf_items_at(view.items, 4)->value != NULL);
    hf_items_free(view.items);
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
    bool was_there = false;
    while (!was_there) { /* loading, then there */
        HF_TRY(hf_pages_next(pages, &view, .timeout = hf_seconds(10)));
        const hf_item *item = hf_items_at(view.items, 3);
        was_there = item != NULL && item->value != NULL && memcmp(hf_value_data(item->value), "post 3.2", 8) == 0;
        hf_items_free(view.items);
    }
    return HF_OK;
}

/* ---- Sharing and forgetting -------------------------------------------------------------------------------------- */

static hf_status sharing(void *arg)
{
    (void)arg;
    feed f = {.high = 100};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    hf_pages *first = NULL;
    hf_pages *second = NULL;
    HF_TRY(hf_pages_open(depot, query_key(), &first, .page_size = 10, .window_max = 20));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_pages_open(depot, query_key(), &second, .page_size = 3)); /* the first one has set the bounds */
    LOOK(second, "0-9 >");
    HF_TRY(hf_pages_load(second, HF_PAGE_APPEND));
    HF_TRY(hf_pages_load(first, HF_PAGE_APPEND));
    LOOK(first, "10-29 <>");
    LOOK(second, "10-29 <>");
    HF_CHECK(f.page_size == 10 && f.fetches[0] == 1);
    HF_TRY(hf_pages_close(first));
    LOOK(second, "10-29 <>");
    HF_TRY(hf_pages_close(second));
    HF_CHECK(depot->paging.count == 1); /* the window is in memory */
    HF_TRY(hf_pages_open(depot, query_key(), &first, .page_size = 5));
    HF_TRY(hf_pages_load(first, HF_PAGE_APPEND));
    HF_CHECK(f.page_size == 10 && f.fetches[0] == 1);
    LOOK(first, "20-39 <>");
    HF_TRY(hf_pages_close(first));
    /* it leaves memory: the next one sets new bounds */
    HF_TRY(hf_depot_trim(depot, 0));
    HF_TRY(hf_pages_open(depot, query_key(), &first, .page_size = 5));
    HF_TRY(hf_sleep(hf_seconds(1)));
    LOOK(first, "0-4 >");
    HF_CHECK(f.page_size == 5 && f.fetches[0] == 2);
    /* older than .ttl: it is shown, and fetched again when it is opened */
    HF_TRY(hf_sleep(hf_minutes(6)));
    hf_pages_view view;
    HF_TRY(hf_pages_look(first, &view));
    HF_CHECK(view.is_stale && f.fetches[0] == 2);
    hf_items_free(view.items);
    f.takes = hf_seconds(1);
    HF_TRY(hf_pages_open(depot, query_key(), &second));
    LOOK(second, "0-4 > I...");
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(hf_pages_look(first, &view));
    HF_CHECK(!view.is_stale && f.fetches[0] == 3);
    hf_items_free(view.items);
    HF_TRY(hf_pages_close(first));
    HF_TRY(hf_pages_close(second));
    /* pages that are still open when the depot closes */
    hf_depot *other = NULL;
    HF_TRY(open_depot(&f, &other));
    HF_TRY(hf_pages_open(other, query_key(), &first));
    HF_TRY(hf_depot_close(other));
    HF_CHECK(hf_pages_next(first, &view) == HF_ERR_CLOSED);
    HF_CHECK(hf_pages_load(first, HF_PAGE_APPEND) == HF_ERR_CLOSED);
    return hf_pages_close(first);
}

/* The window is an ordinary value: in the file, and as a list. */
static hf_status restart(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    feed f = {.high = 100};
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .state = &f, .retries = HF_OFF};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("blog", &depot, &options, &store.base));
        HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
        HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10, .window_max = 20));
        HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
        HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
        f.is_down = true;
        HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND) == HF_ERR_IO);
        f.is_down = false;
        HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND, .force = true));
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("blog", &depot, &options, &store.base));
        int fetches = f.fetches[0];
        HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
        HF_TRY(hf_pages_open(depot, query_key(), &pages, .page_size = 10, .window_max = 20));
        LOOK(pages, "10-29 <>");
        HF_AUTO(hf_items_free) hf_items *items = NULL;
        HF_TRY(hf_depot_list(depot, query_key(), &items, .members = HF_FRESH_LOCAL));
        HF_CHECK(hf_items_count(items) == 20 && hf_items_at(items, 0)->value != NULL);
        HF_TRY(hf_pages_load(pages, HF_PAGE_PREPEND));
        LOOK(pages, "0-19 >");
        HF_CHECK(f.fetches[0] == fetches && f.post_fetches == 0);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static hf_status misuse(void *arg)
{
    (void)arg;
    feed f = {.high = 100};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&f, &depot));
    hf_pages *pages = NULL;
    hf_pages_view view;
    char type[101];
    memset(type, 't', sizeof type - 1);
    type[sizeof type - 1] = '\0';
    static const struct {
        int64_t page_size, window_max, ttl;
    } BAD[] = {{-1, 0, 0}, {1001, 0, 0}, {10, 9, 0}, {10, 101, 0}, {10, -5, 0}, {10, 0, -7}};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        HF_CHECK(hf_pages_open(depot, query_key(), &pages, .page_size = BAD[i].page_size,
                               .window_max = BAD[i].window_max, .ttl = hf_nanoseconds(BAD[i].ttl)) == HF_ERR_INVALID);
    }
    HF_CHECK(hf_pages_open(depot, hf_depot_key_of("n", type, "i"), &pages) == HF_ERR_INVALID);
    HF_CHECK(hf_pages_open(depot, hf_depot_key_of("n", NULL, "i"), &pages) == HF_ERR_INVALID);
    HF_CHECK(hf_pages_open(depot, query_key(), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_pages_open(NULL, query_key(), &pages) == HF_ERR_MISUSE);
    HF_CHECK(hf_pages_load(NULL, HF_PAGE_APPEND) == HF_ERR_MISUSE);
    HF_CHECK(hf_pages_look(NULL, &view) == HF_ERR_MISUSE && hf_pages_next(NULL, &view) == HF_ERR_MISUSE);
    HF_CHECK(hf_pages_close(NULL) == HF_OK && pages == NULL && depot->paging.count == 0);
    return HF_OK;
}

/* ---- The window as a pure function ------------------------------------------------------------------------------- */

/* "a b< c> d<>": items with a token for what is before, after them. Tokens are the letter of the item. */
static hf_window window_of(hf_arena *arena, const char *text, bool is_start, bool is_end)
{
    hf_window window = {.is_window = true, .is_start = is_start, .is_end = is_end};
    window.items = HF_ARENA_ARRAY(arena, hf_window_item, 32);
    for (const char *at = text; *at != '\0'; at++) {
        hf_window_item *item = &window.items[window.count - (window.count > 0)];
        if (*at == '<') {
            item->before = hf_str_of_len(item->key.data + 4, 1);
        } else if (*at == '>') {
            item->after = hf_str_of_len(item->key.data + 4, 1);
        } else if (*at != ' ') {
            char key[] = {'n', 0, 't', 0, *at};
            window.items[window.count++].key = hf_arena_copy(arena, hf_str_of_len(key, sizeof key));
        }
    }
    if (window.count > 0) {
        window.before = is_start ? (hf_str){0} : window.items[0].before;
        window.after = is_end ? (hf_str){0} : window.items[window.count - 1].after;
    }
    return window;
}

static const struct {
    const char *window, *page;
    hf_page_direction direction;
    size_t max;
    const char *expected; /* "[" and "]" for true ends, then the tokens of the ends */
} JOINS[] = {
    {"ab", "cd", HF_PAGE_APPEND, 9, "abcd"},
    {"ab", "cd", HF_PAGE_PREPEND, 9, "cdab"},
    {"ab", "bca", HF_PAGE_APPEND, 9, "abc"},
    {"ab", "bca", HF_PAGE_PREPEND, 9, "cab"},
    {"ab", "ccc", HF_PAGE_APPEND, 9, "abc"},
    {"", "ab", HF_PAGE_APPEND, 9, "ab"},
    {"ab", "", HF_PAGE_APPEND, 9, "ab"},
    {"abc", "de", HF_PAGE_APPEND, 4, "bcde"},      /* no token anywhere: as many as are too many */
    {"ab<c<", "de", HF_PAGE_APPEND, 4, "b<cde"},   /* the first that has one */
    {"abc<", "d<e", HF_PAGE_APPEND, 4, "c<de"},    /* more go */
    {"abc", "d<e", HF_PAGE_APPEND, 4, "d<e"},      /* up to the page itself */
    {"a>b>c", "de", HF_PAGE_PREPEND, 4, "dea>b>"}, /* at the other end */
    {"a>bc", "de", HF_PAGE_PREPEND, 4, "dea>"},    /* */
    {"abc", "de>", HF_PAGE_PREPEND, 4, "de>"},     /* */
    {"abc", "de", HF_PAGE_PREPEND, 4, "deab"},     /* */
    {"ab", "cdefgh", HF_PAGE_APPEND, 3, "fgh"},    /* a page larger than the window */
    {"ab", "cdefgh", HF_PAGE_PREPEND, 3, "cde"},   /* */
};

static void joins_are_trimmed_by_whole_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(JOINS); i++) {
        hf_arena arena;
        hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
        print_message("join %zu\n", i);
        hf_window old = window_of(&arena, JOINS[i].window, true, true);
        hf_window page = window_of(&arena, JOINS[i].page, true, true);
        hf_window joined;
        size_t all = old.count + page.count;
        assert_int_equal(hf_window_join(&arena, &old, &page, JOINS[i].direction, JOINS[i].max, &joined), HF_OK);
        char text[64];
        size_t len = 0;
        for (size_t k = 0; k < joined.count; k++) {
            text[len++] = joined.items[k].key.data[4];
            bool is_first = k == 0 && joined.before.len > 0;
            bool is_last = k + 1 == joined.count && joined.after.len > 0;
            if (is_first) {
                text[len++] = '<';
            }
            if (is_last || (joined.items[k].after.len > 0 && JOINS[i].direction == HF_PAGE_PREPEND && !is_first)) {
                text[len++] = '>';
            }
        }
        text[len] = '\0';
        assert_string_equal(text, JOINS[i].expected);
        assert_true(joined.count <= JOINS[i].max);
        /* an end that was trimmed is not one of the origin's */
        bool is_trimmed = joined.count < all && joined.count == JOINS[i].max;
        bool is_append = JOINS[i].direction == HF_PAGE_APPEND;
        if (is_trimmed) {
            assert_false(is_append ? joined.is_start : joined.is_end);
        }
        assert_true(is_append ? joined.is_end : joined.is_start);
        /* over bytes and back */
        hf_buf out;
        hf_window again;
        hf_buf_init(&out, hf_env_memory(hf_env_posix()), 10000);
        hf_window_write(&out, &joined);
        assert_int_equal(hf_window_read(&arena, hf_str_of_len(out.data, out.len), &again), HF_OK);
        assert_true(again.is_window && again.is_start == joined.is_start && again.is_end == joined.is_end &&
                    again.count == joined.count && hf_str_equal(again.before, joined.before) &&
                    hf_str_equal(again.after, joined.after));
        for (size_t k = 0; k < joined.count; k++) {
            assert_true(hf_str_equal(again.items[k].key, joined.items[k].key) &&
                        hf_str_equal(again.items[k].before, joined.items[k].before) &&
                        hf_str_equal(again.items[k].after, joined.items[k].after));
        }
        for (size_t cut = 0; cut < out.len; cut++) {
            assert_int_equal(hf_window_read(&arena, hf_str_of_len(out.data, cut), &again), HF_ERR_INVALID);
        }
        hf_buf_deinit(&out);
        hf_arena_deinit(&arena);
    }
}

/* ---- The tests --------------------------------------------------------------------------------------------------- */

static hf_body trace;

static void one_seed(uint64_t seed)
{
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), trace, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "it ended with %s", hf_status_name(status));
}

#define SIMULATED(name, body, seeds)          \
    static void name(void **state)            \
    {                                         \
        (void)state;                          \
        trace = (body);                       \
        hf_each_seed(#body, seeds, one_seed); \
    }

SIMULATED(depot_P2_pages_are_added_trimmed_and_replaced, walks, 20)
SIMULATED(DP1_loads_of_one_direction_are_shared, load_states, 50)
SIMULATED(loads_that_fail_leave_the_window_as_it_is, load_failures, 50)
SIMULATED(DP7_the_last_caller_of_a_load_cancels_it, load_leaves, 50)
SIMULATED(DP3_depot_P1_pages_fit_or_are_asked_for_again, changes_between, 50)
SIMULATED(readers_hear_of_windows_posts_and_states, reader, 50)
SIMULATED(the_first_to_open_a_query_sets_its_bounds, sharing, 50)
SIMULATED(windows_survive_a_restart, restart, 50)
SIMULATED(pages_refuse_bad_options, misuse, 3)

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(joins_are_trimmed_by_whole_items),
    cmocka_unit_test(depot_P2_pages_are_added_trimmed_and_replaced),
    cmocka_unit_test(DP1_loads_of_one_direction_are_shared),
    cmocka_unit_test(loads_that_fail_leave_the_window_as_it_is),
    cmocka_unit_test(DP7_the_last_caller_of_a_load_cancels_it),
    cmocka_unit_test(DP3_depot_P1_pages_fit_or_are_asked_for_again),
    cmocka_unit_test(readers_hear_of_windows_posts_and_states),
    cmocka_unit_test(the_first_to_open_a_query_sets_its_bounds),
    cmocka_unit_test(windows_survive_a_restart),
    cmocka_unit_test(pages_refuse_bad_options),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot pages", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
