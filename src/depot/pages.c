/* hf_pages: opening the pages of a query, looking at the window, waiting for changes; and what a fetcher answers. */
#include "depot/pages.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

enum { PAGE_SIZE = 20, PAGES_MAX = 10 };

/* ---- What a reader sees ------------------------------------------------------------------------------------------ */

typedef struct view_ask {
    hf_ask ask;
    hf_pages *pages;
    hf_pages_view view; /* without items */
    hf_value *window;   /* a reference; NULL = there is none */
} view_ask;

static void act_view(hf_depot *depot, hf_post *post)
{
    view_ask *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), view_ask, ask);
    if (hf_depot_refuses(depot, &one->ask)) {
        return;
    }
    hf_pages *pages = one->pages;
    const hf_depot_slot *query = pages->watcher->slot;
    hf_pages_view *view = &one->view;
    hf_look_at at = hf_snap_look(depot, query->snap, hf_depot_wall(depot));
    if (at.local == HF_LOCAL_FRESH || at.local == HF_LOCAL_STALE) {
        one->window = hf_value_ref(query->snap->value);
        view->is_stale = at.age > pages->paging->ttl.ns;
    }
    view->version = query->snap->entry.version;
    hf_window head = {0};
    if (hf_page_head(depot, query, &head)) {
        view->has_before = head.before.len > 0;
        view->has_after = head.after.len > 0;
        view->is_fully_loaded = head.is_start && head.is_end;
    }
    for (int i = HF_PAGE_INITIAL; i <= HF_PAGE_PREPEND; i++) {
        const hf_depot_key_bytes *key = i == HF_PAGE_INITIAL ? &pages->query : &pages->lanes[i - 1];
        hf_key_node *found =
            hf_keys_find(&depot->slots, hf_key_hash(depot->seed, key->bytes, key->len), key->bytes, key->len);
        bool is_loading = found != NULL && HF_CONTAINER(found, hf_depot_slot, key)->flight != NULL;
        hf_status error = pages->paging->errors[i];
        view->states[i] = (hf_page_state){
            .phase = is_loading       ? HF_PAGE_LOADING
                     : error != HF_OK ? HF_PAGE_ERROR
                                      : HF_PAGE_IDLE,
            .status = is_loading ? HF_OK : error,
            .is_stale = !is_loading && error != HF_OK && one->window != NULL,
        };
    }
    hf_depot_answer(depot, &one->ask, HF_OK);
}

static hf_status look(hf_pages *pages, hf_pages_view *ret_view)
{
    hf_depot *depot = pages->depot;
    view_ask one = {.pages = pages};
    HF_TRY(hf_depot_ask(depot, &one.ask, act_view, "hf_pages_look", hf_nanoseconds(0)));
    hf_depot_list_options options = {.members = pages->members, .members_within = pages->members_within};
    hf_status status = HF_OK;
    if (one.window != NULL) {
        status = hf_list_read(depot, hf_key_str(&pages->query), one.window, &options, &one.view.items);
    } else {
        one.view.items = hf_items_new();
        status = one.view.items != NULL ? HF_OK : hf_raise(HF_ERR_NOMEM, "no memory for the items of a page");
    }
    hf_value_unref(one.window);
    if (status == HF_OK) {
        *ret_view = one.view;
    }
    return status;
}

static uint64_t mix(uint64_t print, uint64_t number)
{
    return (print ^ number) * UINT64_C(0x100000001b3);
}

/* Two views with the same one show the same. */
static uint64_t print_of(const hf_pages_view *view)
{
    uint64_t print = mix(UINT64_C(0xcbf29ce484222325), view->version);
    for (int i = HF_PAGE_INITIAL; i <= HF_PAGE_PREPEND; i++) {
        print = mix(mix(print, (uint64_t)view->states[i].phase), (uint64_t)view->states[i].status);
    }
    print = mix(print, (uint64_t)view->is_stale << 1 | (uint64_t)view->is_fully_loaded);
    for (size_t i = 0; i < hf_items_count(view->items); i++) {
        const hf_item *item = hf_items_at(view->items, i);
        print = mix(mix(print, item->version), (uint64_t)item->status << 1 | (uint64_t)item->is_pending);
    }
    return mix(print, hf_items_count(view->items));
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

static void pages_free(hf_pages *pages)
{
    hf_env *env = hf_env_posix();
    env->ops->release(env, pages, sizeof *pages);
}

typedef struct page_bounds {
    size_t page_size, window_max;
    hf_span ttl;
} page_bounds;

static hf_status check_open(hf_op *op, hf_depot_key query, hf_pages **ret_pages, const hf_pages_options *options,
                            page_bounds *ret_bounds)
{
    if (ret_pages == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_pages_open needs a place for the pages");
    }
    if (query.type != NULL && strlen(query.type) > HF_PAGE_TYPE_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the type of a query with pages has %zu bytes: it may have %d",
                       strlen(query.type), HF_PAGE_TYPE_LEN_MAX);
    }
    int64_t page_size = options->page_size != 0 ? options->page_size : PAGE_SIZE;
    if (page_size < 1 || page_size > HF_PAGE_SIZE_MAX) {
        return hf_fail(op, HF_ERR_INVALID, ".page_size is %lld: it may be 1 to %d", (long long)page_size,
                       HF_PAGE_SIZE_MAX);
    }
    int64_t window_max = options->window_max != 0 ? options->window_max : page_size * PAGES_MAX;
    if (window_max < page_size || window_max > page_size * PAGES_MAX) {
        return hf_fail(op, HF_ERR_INVALID, ".window_max is %lld: it may be %lld to %lld, which are one page and ten",
                       (long long)window_max, (long long)page_size, (long long)(page_size * PAGES_MAX));
    }
    if (options->ttl.ns < 0 || options->members_within.ns < 0 || (unsigned)options->members > HF_FRESH_LOCAL) {
        return hf_fail(op, HF_ERR_INVALID, ".ttl or .members_within is negative, or .members is not a freshness");
    }
    ret_bounds->page_size = (size_t)page_size;
    ret_bounds->window_max = (size_t)window_max;
    ret_bounds->ttl = options->ttl.ns != 0 ? options->ttl : hf_minutes(5);
    return HF_OK;
}

/* The key of a lane: two bytes before the type. */
static hf_status pack_lane(hf_op *op, hf_depot_key query, char mark, hf_depot_key_bytes *ret_key)
{
    char type[2 + HF_PAGE_TYPE_LEN_MAX + 1] = {'\x01', mark};
    memcpy(type + 2, query.type, strlen(query.type) + 1);
    return hf_depot_key_pack(op, hf_depot_key_of_bytes(query.ns, type, query.id, query.id_len), ret_key);
}

static hf_status open_pages(hf_op *op, hf_depot *depot, hf_depot_key query, hf_pages **ret_pages,
                            const hf_pages_options *options)
{
    hf_depot_key_bytes key;
    page_bounds bounds = {0};
    HF_TRY(hf_depot_key_pack(op, query, &key));
    HF_TRY(check_open(op, query, ret_pages, options, &bounds));
    if (depot->options.subscribe != NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, "hf_pages_open",
                          "pages need a fetcher that is asked for them: depot '%s' has .subscribe", depot->name);
    }
    if (hf_key_is_provisional(hf_str_of_len(key.bytes, key.len))) {
        return hf_fail_at(op, HF_ERR_INVALID, "hf_pages_open",
                          "a key that hf_depot_create has made has no pages before the origin has named it");
    }
    hf_env *env = hf_env_posix();
    hf_pages *pages = env->ops->allocate(env, sizeof *pages, _Alignof(hf_pages));
    if (pages == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for pages");
    }
    *pages = (hf_pages){
        .depot = depot, .query = key, .members = options->members, .members_within = options->members_within};
    hf_status status = pack_lane(op, query, 'a', &pages->lanes[0]);
    status = status == HF_OK ? pack_lane(op, query, 'p', &pages->lanes[1]) : status;
    hf_assert(status == HF_OK); /* the key and the length of its type were looked at */
    status = hf_paging_join(pages, bounds.page_size, bounds.window_max, &bounds.ttl);
    if (status == HF_OK) {
        hf_depot_watch_options watch = {.fresh = HF_FRESH_WITHIN, .within = bounds.ttl};
        status = hf_watch_open(depot, query, &pages->watcher, &watch, true, true);
        if (status != HF_OK) {
            hf_paging_leave(pages);
        }
    }
    if (status != HF_OK) {
        pages_free(pages);
        return status;
    }
    *ret_pages = pages;
    return HF_OK;
}

hf_status hf_pages_open_with(hf_depot *depot, hf_depot_key query, hf_pages **ret_pages, const hf_pages_options *options)
{
    HF_OPTIONS(hf_pages_options, options, hf_pages_open);
    HF_TRY(HF_VERB_ALLOWED(hf_pages_open));
    HF_TRY(hf_depot_enter(depot, "hf_pages_open"));
    hf_op op;
    hf_op_init(&op);
    hf_status status = open_pages(&op, depot, query, ret_pages, options);
    if (op.status != HF_OK) {
        status = hf_depot_raise(depot, &op);
    }
    hf_depot_leave(depot);
    return status;
}

/* Begins a verb of pages. */
static hf_status enter(hf_pages *pages, const char *verb)
{
    if (pages == NULL) {
        hf_op op;
        hf_op_init(&op);
        (void)hf_fail_at(&op, HF_ERR_MISUSE, verb, "%s needs pages", verb);
        return hf_depot_raise(NULL, &op);
    }
    return hf_depot_enter(pages->depot, verb);
}

static hf_status load_initial(hf_pages *pages, const hf_pages_load_options *options)
{
    HF_AUTO(hf_value_unref) hf_value *window = NULL;
    hf_depot_key query;
    bool is_key = hf_depot_key_unpack(hf_key_str(&pages->query), &query);
    hf_assert(is_key);
    return hf_depot_get(pages->depot, query, &window, .fresh = HF_FRESH_NOW, .timeout = options->timeout,
                        .force = options->force);
}

hf_status hf_pages_load_with(hf_pages *pages, hf_page_direction direction, const hf_pages_load_options *options)
{
    HF_OPTIONS(hf_pages_load_options, options, hf_pages_load);
    HF_TRY(HF_VERB_ALLOWED(hf_pages_load));
    HF_TRY(enter(pages, "hf_pages_load"));
    hf_status status = HF_OK;
    if ((unsigned)direction > HF_PAGE_PREPEND) {
        hf_op op;
        hf_op_init(&op);
        (void)hf_fail_at(&op, HF_ERR_INVALID, "hf_pages_load", "%d is not a direction", (int)direction);
        status = hf_depot_raise(pages->depot, &op);
    } else {
        status = direction == HF_PAGE_INITIAL ? load_initial(pages, options) : hf_page_load(pages, direction, options);
    }
    hf_depot_leave(pages->depot);
    return status;
}

static hf_status no_place(hf_pages *pages, const char *verb)
{
    hf_op op;
    hf_op_init(&op);
    (void)hf_fail_at(&op, HF_ERR_MISUSE, verb, "%s needs a place for the view", verb);
    return hf_depot_raise(pages->depot, &op);
}

hf_status hf_pages_look(hf_pages *pages, hf_pages_view *ret_view)
{
    HF_TRY(HF_VERB_ALLOWED(hf_pages_look));
    HF_TRY(enter(pages, "hf_pages_look"));
    hf_status status = ret_view != NULL ? look(pages, ret_view) : no_place(pages, "hf_pages_look");
    hf_depot_leave(pages->depot);
    return status;
}

/* One look. `*ret_is_new`: it shows something else than the last one that was given. */
static hf_status look_for_news(hf_pages *pages, hf_pages_view *ret_view, bool *ret_is_new)
{
    HF_TRY(enter(pages, "hf_pages_next"));
    hf_status status = look(pages, ret_view);
    hf_depot_leave(pages->depot);
    HF_TRY(status);
    uint64_t print = print_of(ret_view);
    *ret_is_new = !pages->has_print || pages->print != print;
    pages->has_print = true;
    pages->print = print;
    if (!*ret_is_new) {
        hf_items_free(ret_view->items);
    }
    return HF_OK;
}

hf_status hf_pages_next_with(hf_pages *pages, hf_pages_view *ret_view, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_pages_next);
    HF_TRY(HF_VERB_ALLOWED(hf_pages_next));
    if (pages == NULL || ret_view == NULL) {
        HF_TRY(enter(pages, "hf_pages_next"));
        hf_status status = no_place(pages, "hf_pages_next");
        hf_depot_leave(pages->depot);
        return status;
    }
    hf_runtime *rt = pages->depot->rt; /* the watcher's reference keeps it */
    hf_instant deadline = options->timeout.ns == 0 ? HF_INSTANT_NEVER : hf_rt_deadline(rt, options->timeout);
    bool is_new = false;
    if (!pages->has_print) {
        HF_TRY(look_for_news(pages, ret_view, &is_new));
    }
    while (!is_new) {
        hf_depot_event event = {.value = NULL};
        hf_wait_options wait = *options;
        if (deadline.ns != HF_INSTANT_NEVER.ns) {
            int64_t left = deadline.ns - hf_rt_now(rt).ns;
            wait.timeout = hf_nanoseconds(left > 0 ? left : -1);
        }
        HF_TRY(hf_watcher_next_with(pages->watcher, &event, &wait));
        hf_value_unref(event.value);
        HF_TRY(look_for_news(pages, ret_view, &is_new));
    }
    return HF_OK;
}

hf_status hf_pages_close(hf_pages *pages)
{
    if (pages == NULL) {
        return HF_OK;
    }
    HF_TRY(HF_VERB_ALLOWED(hf_pages_close));
    hf_depot *depot = pages->depot;
    HF_TRY(hf_depot_check_place(depot->rt, "hf_pages_close"));
    hf_spin_lock(&depot->lock);
    bool is_open = !depot->is_closing;
    depot->users += is_open;
    hf_spin_unlock(&depot->lock);
    if (is_open) { /* else its state goes with the depot */
        hf_paging_leave(pages);
        hf_depot_leave(depot);
    }
    HF_TRY(hf_watcher_close(pages->watcher));
    pages_free(pages);
    return HF_OK;
}

/* ---- What a fetcher says ----------------------------------------------------------------------------------------- */

static hf_status take_token(hf_op *op, const char *text, hf_str *ret_token)
{
    size_t len = text != NULL ? strlen(text) : 0;
    if (text != NULL && (len == 0 || len > HF_PAGE_TOKEN_LEN_MAX)) {
        return hf_fail(op, HF_ERR_INVALID, "a token of a page has %zu bytes: it must have 1 to %d", len,
                       HF_PAGE_TOKEN_LEN_MAX);
    }
    *ret_token = hf_str_of_len(text, len);
    return HF_OK;
}

static hf_status make_page(hf_op *op, hf_arena *arena, const hf_reply *reply, const hf_page_item *items, size_t count,
                           const hf_reply_page_options *options, hf_window *ret_page)
{
    hf_window page = {.is_window = true, .is_start = options->before == NULL, .is_end = options->after == NULL};
    if ((items == NULL && count > 0) || count > HF_DEPOT_LIST_MAX) {
        return hf_fail(op, count > HF_DEPOT_LIST_MAX ? HF_ERR_LIMIT : HF_ERR_MISUSE,
                       "hf_reply_page was given %zu items, or none where it says so: it takes %d", count,
                       HF_DEPOT_LIST_MAX);
    }
    HF_TRY(take_token(op, options->before, &page.before));
    HF_TRY(take_token(op, options->after, &page.after));
    page.items = HF_ARENA_ARRAY(arena, hf_window_item, count + 1);
    for (size_t i = 0; i < count && arena->status == HF_OK; i++) {
        hf_depot_key_bytes key;
        hf_window_item *item = &page.items[i];
        HF_TRY(hf_depot_key_pack(op, items[i].key, &key));
        HF_TRY(take_token(op, items[i].token, &item->before));
        item->key = hf_arena_copy(arena, hf_key_str(&key));
        item->after = item->before;
    }
    page.count = count;
    if (arena->status != HF_OK || !hf_window_unite(arena, &page)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a page");
    }
    if (page.count > 0) {
        hf_window_item *first = &page.items[0];
        hf_window_item *last = &page.items[page.count - 1];
        first->before = first->before.len > 0 ? first->before : page.before;
        last->after = last->after.len > 0 ? last->after : page.after;
    }
    if (reply->window_max > 0) {
        hf_window_cut(&page, reply->window_max);
    }
    *ret_page = page;
    return HF_OK;
}

hf_status hf_reply_page_with(hf_reply *reply, const hf_page_item *items, size_t count,
                             const hf_reply_page_options *options)
{
    HF_OPTIONS(hf_reply_page_options, options, hf_reply_page);
    HF_VERB_ENTER(self, hf_reply_page, reply != NULL ? reply->rt : NULL);
    if (reply == NULL) {
        HF_LEAVE(self,
                 hf_refuse_at(self, HF_ERR_MISUSE, "hf_reply_page", "hf_reply_page needs the reply of the request"));
    }
    hf_leave(self);
    hf_allocator memory = hf_env_memory(reply->rt->env);
    hf_arena arena;
    hf_buf out;
    hf_op op;
    hf_window page;
    hf_op_init(&op);
    hf_arena_init(&arena, memory);
    hf_buf_init(&out, memory, reply->value_max);
    hf_status status = make_page(&op, &arena, reply, items, count, options, &page);
    if (status == HF_OK) {
        hf_window_write(&out, &page);
        status = hf_buf_status(&out) == HF_OK ? HF_OK
                                              : hf_fail(&op, hf_buf_status(&out),
                                                        "a page of %zu items is too big, or there is no memory", count);
    }
    if (status == HF_OK) {
        status = hf_reply_value(reply, out.data, out.len);
        reply->is_page = status == HF_OK;
    } else {
        self = hf_enter(reply->rt);
        status = hf_op_end(self, &op);
        hf_leave(self);
    }
    hf_buf_deinit(&out);
    hf_arena_deinit(&arena);
    return status;
}
