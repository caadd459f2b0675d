/* Loads of pages: a window over a query grows at its ends (ADR 0037).
 *
 * The window is the value of the query's key. Its first page is an ordinary fetch of that key, so this file has nothing to do
 * with it but to remember whether it failed. A load at one of its ends is a flight of a slot of its own, the lane of that
 * direction: so there is one at a time, a second call joins it, and retries, back-off and breaker are those of every
 * flight. Its landing is a group of changes: the lane's (failures), the window's, and those of the records.
 *
 * depot-P1  A page is added only to the end whose token it was asked with; else it is asked for again.
 * depot-P2  A window has at most window_max items after a load. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/pages.h"

enum { IDLE_LOOKS = 8 };

/* ---- The state of a query ---------------------------------------------------------------------------------------- */

hf_paging *hf_paging_find(const hf_depot *depot, hf_str key)
{
    if (depot->paging.count == 0) {
        return NULL;
    }
    hf_key_node *found = hf_keys_find(&depot->paging, hf_key_hash(depot->seed, key.data, key.len), key.data, key.len);
    return found != NULL ? HF_CONTAINER(found, hf_paging, key) : NULL;
}

static void paging_free(hf_depot *depot, hf_paging *paging)
{
    hf_assert(paging->users == 0);
    if (hf_node_is_linked(&paging->in_idle)) {
        hf_list_remove(&paging->in_idle);
    }
    hf_keys_remove(&depot->paging, &paging->key);
    hf_rt_free(depot->rt, paging, sizeof *paging + paging->key.len);
}

void hf_paging_drop_all(hf_depot *depot)
{
    for (hf_key_node *node = hf_keys_any(&depot->paging); node != NULL; node = hf_keys_any(&depot->paging)) {
        hf_paging *paging = HF_CONTAINER(node, hf_paging, key);
        paging->users = 0; /* handles that are still open look at it no more: the depot is closed */
        paging_free(depot, paging);
    }
}

/* Whether nobody looks at it and its window has left memory; then it goes. */
static bool is_forgotten(hf_depot *depot, hf_paging *paging)
{
    if (paging->users > 0) {
        return false;
    }
    hf_snap *snap = hf_memory_get(depot, hf_str_of_len(paging->bytes, paging->key.len));
    hf_snap_unref(snap);
    if (snap == NULL) {
        paging_free(depot, paging);
    }
    return snap == NULL;
}

/* Each that opens or closes looks at a few, so there are hardly more than windows in memory. */
static void look_at_idle(hf_depot *depot)
{
    for (int i = 0; i < IDLE_LOOKS && !hf_list_is_empty(&depot->paging_idle); i++) {
        hf_paging *paging = HF_CONTAINER(hf_list_pop_front(&depot->paging_idle), hf_paging, in_idle);
        hf_list_push_back(&depot->paging_idle, &paging->in_idle);
        (void)is_forgotten(depot, paging);
    }
}

typedef struct open_ask {
    hf_ask ask;
    hf_pages *pages;
    size_t page_size, window_max;
    hf_span ttl; /* in: of the caller; out: of the first */
} open_ask;

static void act_open(hf_depot *depot, hf_post *post)
{
    open_ask *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), open_ask, ask);
    if (hf_depot_refuses(depot, &one->ask)) {
        return;
    }
    hf_str key = hf_key_str(&one->pages->query);
    look_at_idle(depot);
    hf_paging *paging = hf_paging_find(depot, key);
    if (paging == NULL || is_forgotten(depot, paging)) {
        paging = hf_rt_alloc(depot->rt, sizeof *paging + key.len);
        if (paging == NULL) {
            hf_depot_answer(depot, &one->ask, hf_fail(&one->ask.op, HF_ERR_NOMEM, "no memory for pages"));
            return;
        }
        memcpy(paging->bytes, key.data, key.len);
        paging->key.hash = hf_key_hash(depot->seed, key.data, key.len);
        paging->key.bytes = paging->bytes;
        paging->key.len = key.len;
        paging->page_size = one->page_size;
        paging->window_max = one->window_max;
        paging->ttl = one->ttl;
        hf_keys_add(&depot->paging, &paging->key);
    } else if (hf_node_is_linked(&paging->in_idle)) {
        hf_list_remove(&paging->in_idle);
    }
    paging->users++;
    one->pages->paging = paging;
    one->ttl = paging->ttl;
    hf_depot_answer(depot, &one->ask, HF_OK);
}

static void act_close(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    hf_paging *paging = ((hf_pages *)ask->what)->paging;
    hf_assert(paging->users > 0 && !hf_node_is_linked(&paging->in_idle));
    if (--paging->users == 0) {
        hf_list_push_back(&depot->paging_idle, &paging->in_idle);
    }
    look_at_idle(depot);
    hf_depot_answer(depot, ask, HF_OK);
}

hf_status hf_paging_join(hf_pages *pages, size_t page_size, size_t window_max, hf_span *ttl)
{
    open_ask one = {.pages = pages, .page_size = page_size, .window_max = window_max, .ttl = *ttl};
    HF_TRY(hf_depot_ask(pages->depot, &one.ask, act_open, "hf_pages_open", hf_nanoseconds(0)));
    *ttl = one.ttl;
    return HF_OK;
}

void hf_paging_leave(hf_pages *pages)
{
    hf_ask ask = {.what = pages};
    hf_depot_tell(pages->depot, &ask, act_close, "hf_pages_close");
}

/* ---- Loads ------------------------------------------------------------------------------------------------------- */

static hf_depot_slot *query_of(const hf_depot_flight *flight)
{
    return flight->query != NULL ? flight->query : flight->slot;
}

static void set_error(hf_depot *depot, hf_depot_slot *query, hf_page_direction direction, hf_status status)
{
    hf_paging *paging = hf_paging_find(depot, hf_slot_key(query));
    if (paging != NULL) {
        paging->errors[direction] = status;
        hf_watch_paged(depot, query);
    }
}

void hf_pages_began(hf_depot *depot, const hf_depot_flight *flight)
{
    set_error(depot, query_of(flight), flight->direction, HF_OK);
}

void hf_pages_ended(hf_depot *depot, const hf_depot_flight *flight)
{
    bool is_failure = flight->status != HF_ERR_CANCELED && flight->status != HF_ERR_CLOSED;
    hf_assert(flight->is_over);
    set_error(depot, query_of(flight), flight->direction, is_failure ? flight->status : HF_OK);
}

void hf_pages_refused(hf_depot *depot, const hf_depot_slot *slot, hf_status status)
{
    hf_paging *paging = hf_paging_find(depot, hf_slot_key(slot));
    if (paging != NULL) { /* its watcher has an event */
        paging->errors[HF_PAGE_INITIAL] = status;
    }
}

bool hf_page_head(const hf_depot *depot, const hf_depot_slot *query, hf_window *ret_head)
{
    hf_window_cursor cursor;
    const hf_depot_entry *entry = &query->entry;
    hf_assert(query->load == HF_SLOT_KNOWN);
    if (entry->kind != HF_ENTRY_VALUE || hf_entry_is_unusable(depot, query->space, entry) ||
        !hf_window_begin(&cursor, hf_value_str(entry->value)) || !cursor.head.is_window) {
        return false;
    }
    *ret_head = cursor.head;
    return true;
}

/* The token at that end; empty = none. */
static hf_str token_of(const hf_depot *depot, const hf_depot_slot *query, hf_page_direction direction)
{
    hf_window head;
    hf_assert(direction != HF_PAGE_INITIAL);
    if (!hf_page_head(depot, query, &head)) {
        return (hf_str){0};
    }
    return direction == HF_PAGE_APPEND ? head.after : head.before;
}

/* As a text; NULL = no memory. */
static hf_value *token_text(hf_str token)
{
    char text[HF_PAGE_TOKEN_LEN_MAX + 1];
    hf_assert(token.len > 0 && token.len < sizeof text);
    memcpy(text, token.data, token.len);
    text[token.len] = '\0';
    return hf_text_value(text);
}

bool hf_page_aim(hf_depot *depot, hf_depot_flight *flight)
{
    hf_str token = token_of(depot, flight->query, flight->direction);
    hf_value *text = token.len > 0 ? token_text(token) : NULL;
    if (text == NULL) {
        return false;
    }
    hf_value_unref(flight->token);
    flight->token = text;
    return true;
}

typedef struct load_ask {
    hf_ask ask; /* of the lane */
    hf_pages *pages;
    hf_page_direction direction;
} load_ask;

/* A new flight of the lane, or why there is none. */
static hf_depot_flight *begin_load(hf_depot *depot, load_ask *one, hf_depot_slot *lane, hf_depot_slot *query,
                                   hf_str token)
{
    hf_ask *ask = &one->ask;
    int64_t wait = 0;
    bool joined = false;
    if (hf_depot_is_blocked(depot, lane, ask->is_forced, &wait)) {
        set_error(depot, query, one->direction, HF_ERR_UNAVAILABLE);
        hf_depot_answer(depot, ask,
                        hf_fail(&ask->op, HF_ERR_UNAVAILABLE,
                                "depot '%s' does not ask the origin for pages for another %lld ms, or is offline",
                                depot->name, (long long)(wait / 1000000)));
        return NULL;
    }
    hf_value *text = token_text(token);
    hf_depot_flight *flight =
        text != NULL ? hf_flight_board(depot, lane, HF_FRESH_CACHED, HF_URGENCY_NORMAL, &joined) : NULL;
    if (flight == NULL) {
        hf_value_unref(text);
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a fetch"));
        return NULL;
    }
    hf_assert(!joined && flight->query == NULL && flight->call == NULL);
    flight->query = query;
    query->holds++;
    flight->direction = one->direction;
    flight->token = text;
    flight->page_size = one->pages->paging->page_size;
    flight->window_max = one->pages->paging->window_max;
    flight->reply.asked_key = hf_slot_key(query);
    hf_pages_began(depot, flight);
    return flight;
}

static void act_load(hf_depot *depot, hf_post *post)
{
    load_ask *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), load_ask, ask);
    hf_ask *ask = &one->ask;
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_depot_slot *lane = hf_slot_of_ask(depot, ask);
    if (lane == NULL) {
        return; /* it is acted on again when the lane is known */
    }
    hf_depot_slot *query = one->pages->watcher->slot;
    hf_assert(query != NULL && query->load == HF_SLOT_KNOWN); /* the watcher holds it */
    hf_depot_flight *flight = lane->flight;
    if (flight != NULL) {
        bool joined = false;
        flight = hf_flight_board(depot, lane, HF_FRESH_CACHED, HF_URGENCY_NORMAL, &joined);
        hf_assert(joined && flight->query == query);
        depot->counts.joined++;
    } else {
        hf_str token = token_of(depot, query, one->direction);
        if (token.len == 0) { /* nothing comes there, or there is no window */
            hf_depot_answer(depot, ask, HF_OK);
            return;
        }
        flight = begin_load(depot, one, lane, query, token);
        if (flight == NULL) {
            return;
        }
    }
    ask->flight = flight;
    flight->refs++; /* until the ask leaves it */
    (void)hf_depot_park(depot, ask, &flight->waiters);
}

hf_status hf_page_load(hf_pages *pages, hf_page_direction direction, const hf_pages_load_options *options)
{
    load_ask one = {.pages = pages, .direction = direction};
    one.ask.key = hf_depot_key_str(&pages->lanes[direction - HF_PAGE_APPEND]);
    one.ask.rule = (hf_ask_rule){.fresh = HF_FRESH_NOW};
    one.ask.is_forced = options->force;
    return hf_depot_ask(pages->depot, &one.ask, act_load, "hf_pages_load", options->timeout);
}

/* ---- Landing ----------------------------------------------------------------------------------------------------- */

hf_status hf_page_decide(hf_depot *depot, hf_change *change)
{
    const hf_depot_flight *flight = change->flight;
    hf_str token = token_of(depot, flight->query, flight->direction);
    if (!hf_str_equal(token, hf_str_of(hf_value_text(flight->token)))) { /* depot-P1 */
        return HF_ERR_AGAIN;
    }
    if (change->next.failures == 0 && change->next.backoff_until == 0) {
        change->is_ignored = true; /* the lane has nothing to forget */
        return HF_OK;
    }
    change->next.failures = 0;
    change->next.backoff_until = 0;
    return hf_change_fold(depot, change, NULL, NULL);
}

/* The window with the page. Fails: HF_ERR_NOMEM, HF_ERR_TOO_BIG. */
static hf_status join(hf_depot *depot, const hf_depot_slot *query, const hf_depot_flight *flight, hf_value **ret_value)
{
    hf_allocator memory = hf_env_memory(depot->rt->env);
    hf_arena arena;
    hf_buf out;
    hf_window window;
    hf_window page;
    hf_window joined;
    hf_arena_init(&arena, memory);
    hf_buf_init(&out, memory, (size_t)depot->options.value_max);
    hf_status status = hf_window_read(&arena, hf_value_str(query->entry.value), &window);
    status = status == HF_OK ? hf_window_read(&arena, hf_value_str(flight->reply.value), &page) : status;
    if (status == HF_OK) {
        status = hf_window_join(&arena, &window, &page, flight->direction, flight->window_max, &joined);
    }
    if (status == HF_OK) {
        hf_assert(joined.count <= flight->window_max); /* depot-P2 */
        hf_window_write(&out, &joined);
        status = hf_buf_status(&out);
    }
    status = status == HF_OK ? hf_value_copy(out.data, out.len, ret_value) : status;
    hf_buf_deinit(&out);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status decide_window(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *query = change->slot;
    hf_value *value = NULL;
    hf_assert(query == change->flight->query && change->flight->reply.is_page);
    hf_assert(hf_str_equal(token_of(depot, query, change->flight->direction),
                           hf_str_of(hf_value_text(change->flight->token)))); /* depot-P1: the leader has looked */
    hf_status status = join(depot, query, change->flight, &value);
    if (status != HF_OK) {
        return hf_fail(&change->op, status, "a page cannot be added to its window: %s", hf_status_text(status));
    }
    hf_entry_copy(&change->next, &query->entry);
    hf_value_unref(change->next.value);
    change->next.value = value; /* age and etag stay those of the first page */
    change->place = HF_DEPOT_FETCHER;
    return hf_change_fold(depot, change, NULL, NULL);
}

static void apply_window(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_flight *flight = change->flight;
    if (change->snap != NULL) {
        hf_change_show(depot, change, true);
        hf_news_of_key(depot, status == HF_OK ? HF_NEWS_LANDED : HF_NEWS_NOT_KEPT, hf_slot_key(change->slot), status,
                       HF_REPLY_UNKNOWN);
        depot->counts.not_kept += status != HF_OK;
    } else if (status != HF_OK && status != HF_ERR_AGAIN &&
               flight->status == HF_OK) { /* the leader ends it with that */
        flight->status = status;
        flight->failure = hf_box_new(depot->rt, status, NULL, "hf_pages_load", change->op.message, NULL);
    }
    hf_change_free(depot, change);
}

hf_change *hf_page_change_new(hf_depot *depot, hf_depot_flight *flight)
{
    hf_change *change = hf_change_new(depot, flight->query);
    if (change != NULL) {
        change->flight = flight; /* it lives until the leader has ended */
        change->decide = decide_window;
        change->apply = apply_window;
    }
    return change;
}
