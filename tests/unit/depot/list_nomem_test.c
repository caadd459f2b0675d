/* Every allocation fails, once each, while lists and pages are read, loaded and watched: calls fail with HF_ERR_NOMEM, nothing
 * leaks, and afterwards everything is as it should be. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <string.h>

/* ---- Memory that fails ------------------------------------------------------------------------------------------- */

static struct {
    const hf_env_ops *real[2]; /* of the simulation, of the process */
    hf_env_ops ops[2];
    bool counts;
    uint64_t count, nth;
} memory;

static bool fails(void)
{
    return memory.counts && ++memory.count == memory.nth;
}

static void *allocate_sim(hf_env *env, size_t len, size_t align)
{
    return fails() ? NULL : memory.real[0]->allocate(env, len, align);
}

static void *allocate_posix(hf_env *env, size_t len, size_t align)
{
    return fails() ? NULL : memory.real[1]->allocate(env, len, align);
}

static void break_memory(hf_env *sim)
{
    hf_env *envs[] = {sim, hf_env_posix()};
    for (int i = 0; i < 2; i++) {
        memory.real[i] = envs[i]->ops;
        memory.ops[i] = *envs[i]->ops;
        memory.ops[i].allocate = i == 0 ? allocate_sim : allocate_posix;
        envs[i]->ops = &memory.ops[i];
    }
}

static void mend_memory(hf_env *sim)
{
    sim->ops = memory.real[0];
    hf_env_posix()->ops = memory.real[1];
}

/* ---- A small origin ---------------------------------------------------------------------------------------------- */

static hf_depot_key key_of(const char *type, const char *id)
{
    return hf_depot_key_of("ns", type, id);
}

/* The list "all" of a and b, with a; b by itself; a feed of a, then b. */
static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    hf_depot_key keys[] = {key_of("user", "a"), key_of("user", "b")};
    if (strcmp(request->key.type, "user") == 0) {
        return hf_reply_value(reply, request->key.id, 1);
    }
    HF_TRY(hf_reply_add(reply, keys[0], "a", 1));
    if (strcmp(request->key.type, "list") == 0) {
        return hf_reply_list(reply, keys, 2);
    }
    hf_page_item item = {keys[request->page == HF_PAGE_APPEND], NULL};
    return request->page == HF_PAGE_APPEND ? hf_reply_page(reply, &item, 1, .before = "b")
                                           : hf_reply_page(reply, &item, 1, .after = "a");
}

/* Everything once; the first failure ends it. */
static hf_status use(hf_depot *depot)
{
    hf_depot_key list = key_of("list", "all");
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    hf_pages_view view;
    HF_TRY(hf_depot_list_watch(depot, list, &watcher));
    HF_TRY(hf_depot_list(depot, list, &items, .fresh = HF_FRESH_NOW, .force = true));
    HF_TRY(hf_depot_invalidate(depot, key_of("user", "a")));
    HF_TRY(hf_pages_open(depot, key_of("feed", "all"), &pages, .page_size = 1));
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL, .force = true));
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND, .force = true));
    HF_TRY(hf_pages_next(pages, &view));
    hf_items_free(view.items);
    return HF_OK;
}

static hf_status check(hf_depot *depot)
{
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    hf_pages_view view;
    HF_TRY(hf_sleep(hf_minutes(1))); /* back-off and breaker are over */
    HF_TRY(hf_depot_list(depot, key_of("list", "all"), &items, .fresh = HF_FRESH_NOW));
    HF_CHECK(hf_items_count(items) == 2 && hf_items_at(items, 0)->value != NULL &&
             hf_items_at(items, 1)->value != NULL);
    HF_TRY(hf_pages_open(depot, key_of("feed", "all"), &pages, .page_size = 1));
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND));
    HF_TRY(hf_pages_look(pages, &view));
    HF_CHECK(hf_items_count(view.items) == 2 && hf_items_at(view.items, 0)->value != NULL && view.is_fully_loaded);
    hf_items_free(view.items);
    HF_CHECK(depot->index.watched == 1 && !depot->index.is_overflowed); /* that of the pages */
    return HF_OK;
}

/* One allocation fails: whether there is another one. */
static hf_status one(bool has_file, bool *ret_is_over)
{
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    if (has_file) {
        HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    }
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .retries = HF_OFF};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("lists", &depot, &options, has_file ? &store.base : NULL));
        hf_env *env = depot->rt->env;
        break_memory(env);
        memory.count = 0;
        memory.counts = true;
        hf_status status = use(depot);
        memory.counts = false;
        mend_memory(env);
        *ret_is_over = memory.count < memory.nth;
        HF_CHECK_SAY(status == HF_OK || (status == HF_ERR_NOMEM && !*ret_is_over), "allocation %llu: %s, %s",
                     (unsigned long long)memory.nth, hf_status_name(status), hf_error_text());
        status = check(depot);
        HF_CHECK_SAY(status == HF_OK, "after allocation %llu: %s, %s", (unsigned long long)memory.nth,
                     hf_status_name(status), hf_error_text());
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static hf_status all(void *arg)
{
    const bool *has_file = arg;
    bool is_over = false;
    for (memory.nth = 1; !is_over; memory.nth++) {
        HF_TRY(one(*has_file, &is_over));
    }
    HF_CHECK(memory.nth > 50); /* so many fail at least */
    return HF_OK;
}

static void DP8_every_allocation_of_lists_and_pages_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i <= 1; i++) {
        bool has_file = i == 1;
        HF_CHECK(hf_sim_run(1, 1, all, &has_file, NULL) == HF_OK);
        print_message("%s: %llu allocations\n", has_file ? "with a file" : "in memory",
                      (unsigned long long)memory.nth - 2);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(DP8_every_allocation_of_lists_and_pages_may_fail),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot lists without memory", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
