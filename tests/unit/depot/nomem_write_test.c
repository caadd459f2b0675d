/* Every allocation of the writing side fails once, on virtual time: a call says HF_ERR_NOMEM or has done what it says,
 * and what was acknowledged reaches the origin in order, under the name that the origin has given. */
#include "unit/depot/script.h"

#include "env/sim/sim.h"

static uint64_t fails_at; /* the allocation that fails; counted from the opening on */
static bool has_failed;

static bool is_fine(hf_status status)
{
    return status == HF_OK || status == HF_ERR_NOMEM;
}

static hf_status play(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.takes = hf_seconds(1)}}, .answer_count = 1, .key = "42"};
    hf_env *env = hf_runtime_current()->env;
    hf_depot_options options = {.coalesce = HF_SPAN_OFF};
    hf_depot_id id;
    hf_depot_write *write = NULL;
    hf_watcher *watcher = NULL;
    char expected[8] = "-";
    int count = 0; /* of patches that were acknowledged */
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, &options, &depot));
    uint64_t before = hf_sim_allocations(env);
    hf_sim_fail_allocation(env, fails_at, false);
    hf_status status = hf_depot_create(depot, hf_depot_key_of("acme", "user", NULL), "a", 1, &id, .ret_write = &write);
    HF_CHECK_SAY(is_fine(status), "create: %s", hf_status_name(status));
    bool is_created = status == HF_OK;
    hf_depot_key key = hf_depot_key_of_bytes("acme", "user", is_created ? id.bytes : (const unsigned char *)"A",
                                             is_created ? id.len : 1);
    if (is_created) {
        (void)snprintf(expected, sizeof expected, "a");
        status = hf_depot_watch(depot, key, &watcher);
        HF_CHECK_SAY(is_fine(status), "watch: %s", hf_status_name(status));
        for (int i = 0; i < 3; i++) {
            char patch = (char)('1' + i);
            status = hf_depot_patch(depot, key, &patch, 1);
            HF_CHECK_SAY(is_fine(status), "patch: %s", hf_status_name(status));
            if (status == HF_OK) {
                expected[1 + count++] = patch;
                expected[1 + count] = '\0';
            }
        }
        status = hf_depot_write_wait(write, .timeout = hf_minutes(5));
        HF_CHECK_SAY(is_fine(status), "wait: %s", hf_status_name(status));
    }
    hf_depot_write_free(write);
    HF_TRY(hf_sleep(hf_minutes(2))); /* what was put off is sent */
    uint64_t used = hf_sim_allocations(env) - before;
    has_failed = used >= fails_at;
    hf_sim_fail_allocation(env, 0, false);
    HF_CHECK(is_at_hand(depot, key, expected));
    if (is_created) {
        HF_CHECK(is_at_hand(depot, hf_depot_key_of("acme", "user", "42"), expected));
        HF_CHECK_SAY(counts_of(depot).pending == 0, "DP6 %llu are left", (unsigned long long)counts_of(depot).pending);
        int patches = 0;
        for (int i = 0; i < o.count; i++) { /* DP6: in order; a patch that was not acknowledged is not sent */
            bool is_create = o.log[i].verb == HF_WRITE_CREATE;
            HF_CHECK_SAY(is_create ? patches == 0
                                   : strcmp(o.log[i].key, "42") == 0 && patches < count &&
                                         o.log[i].data[0] == expected[1 + patches],
                         "push %d: %s of %s", i, o.log[i].data, o.log[i].key);
            patches += !is_create && (i + 1 == o.count || strcmp(o.log[i].id, o.log[i + 1].id) != 0);
        }
        HF_CHECK(patches == count);
        HF_CHECK(hf_depot_invalidate(depot, key, .hard = true, .drop_pending = true) == HF_OK);
    }
    return hf_watcher_close(watcher);
}

static hf_status drop(void *arg)
{
    (void)arg;
    origin o = {.value = NULL};
    hf_env *env = hf_runtime_current()->env;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_online(depot, false));
    static const char *const IDS[] = {"A", "B", "C"};
    for (size_t i = 0; i < HF_COUNT_OF(IDS); i++) {
        HF_TRY(hf_depot_put(depot, key_of(IDS[i]), "x", 1));
        HF_TRY(hf_depot_put(depot, key_of(IDS[i]), "y", 1));
    }
    uint64_t before = hf_sim_allocations(env);
    hf_sim_fail_allocation(env, fails_at, false);
    hf_status status = hf_depot_invalidate_namespace(depot, "acme", .hard = true, .drop_pending = true);
    has_failed = hf_sim_allocations(env) - before >= fails_at;
    hf_sim_fail_allocation(env, 0, false);
    HF_CHECK_SAY(is_fine(status), "invalidate: %s", hf_status_name(status));
    for (size_t i = 0; i < HF_COUNT_OF(IDS) && status == HF_OK; i++) {
        HF_CHECK(is_at_hand(depot, key_of(IDS[i]), "-"));
    }
    uint64_t left = counts_of(depot).pending;
    HF_CHECK(status == HF_OK ? left == 0 : left % 2 == 0); /* all of a key, or none */
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(counts_of(depot).pending == 0 && o.count == (int)left);
    return HF_OK;
}

static void one_failure(uint64_t seed)
{
    fails_at = 1 + seed / 2;
    one_seed(seed);
}

/* With and without a store, each allocation. */
static void sweep(const char *what, hf_body body)
{
    script_body = body;
    uint64_t seeds = 0;
    bool is_more = true;
    while (is_more && seeds < 4000) {
        is_more = false;
        for (int i = 0; i < 2; i++) {
            has_failed = false;
            one_failure(seeds++);
            is_more = is_more || has_failed;
        }
    }
    print_message("%s: %llu allocations\n", what, (unsigned long long)seeds / 2);
    assert_true(seeds > 30 && seeds < 4000);
}

static void every_allocation_of_a_create_may_fail(void **state)
{
    (void)state;
    sweep("create", play);
}

static void every_allocation_of_a_drop_may_fail(void **state)
{
    (void)state;
    sweep("drop", drop);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(every_allocation_of_a_create_may_fail),
    cmocka_unit_test(every_allocation_of_a_drop_may_fail),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot nomem", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
