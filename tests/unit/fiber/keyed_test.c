/* Locks by key, and the values that the keyed objects share. */
#include "unit/fiber/everywhere.h"

#include <stdatomic.h>
#include <string.h>

/* ---- Key locks --------------------------------------------------------------------------------------------------- */

enum { KEYS = 10 };

typedef struct desk {
    hf_keylock *keylock;
    atomic_int inside[KEYS];
    atomic_int done;
} desk;

typedef struct visitor {
    desk *desk;
    int number;
} visitor;

static hf_status visit(void *arg)
{
    visitor *v = arg;
    for (int i = 0; i < 5; i++) {
        int key = (v->number + i) % KEYS;
        hf_key_guard *guard = NULL;
        HF_TRY(hf_keylock_lock(v->desk->keylock, &key, sizeof key, &guard));
        HF_CHECK(atomic_fetch_add(&v->desk->inside[key], 1) == 0); /* X6: never two holders */
        HF_TRY(hf_yield());
        atomic_fetch_sub(&v->desk->inside[key], 1);
        HF_TRY(hf_key_unlock(guard));
    }
    atomic_fetch_add(&v->desk->done, 1);
    return HF_OK;
}

static hf_status visit_with(int64_t idle_max)
{
    enum { VISITORS = 100 };
    desk d = {0};
    visitor visitors[VISITORS];
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = idle_max));
    d.keylock = keylock;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < VISITORS; i++) {
        visitors[i] = (visitor){&d, i};
        HF_TRY(hf_fork(scope, visit, &visitors[i]));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(d.done == VISITORS);
    HF_CHECK(hf_keylock_count(keylock) <= (idle_max < 0 ? 0 : (size_t)idle_max));
    return HF_OK;
}

static hf_status visit_with_one_idle(void *arg)
{
    (void)arg;
    HF_TRY(visit_with(1));
    return visit_with(HF_OFF);
}

static void S6_X6_a_key_has_one_holder_though_idle_entries_come_and_go(void **state)
{
    (void)state;
    everywhere("key locks", 60, visit_with_one_idle);
}

static hf_status hold_and_wait(void *arg)
{
    (void)arg;
    hf_key_guard *one = NULL;
    hf_key_guard *two = NULL;
    hf_key_guard *again = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock));
    HF_TRY(hf_keylock_lock(keylock, "one", 3, &one));
    HF_TRY(hf_keylock_lock(keylock, "two", 3, &two)); /* another key is another lock */
    HF_CHECK(hf_keylock_try_lock(keylock, "one", 3, &again) == HF_ERR_AGAIN && again == NULL);
    HF_CHECK(hf_keylock_lock(keylock, "one", 3, &again) == HF_ERR_MISUSE);
    HF_CHECK(hf_keylock_count(keylock) == 2);
    HF_CHECK(hf_keylock_free(keylock) == HF_ERR_MISUSE);
    HF_TRY(hf_key_unlock(one));
    HF_TRY(hf_keylock_try_lock(keylock, "one", 3, &one));
    HF_TRY(hf_key_unlock(one));
    HF_TRY(hf_key_unlock(two));
    HF_CHECK(hf_keylock_count(keylock) == 2); /* idle, kept */
    hf_key_guard *empty = NULL;
    HF_TRY(hf_keylock_lock(keylock, NULL, 0, &empty)); /* an empty key is a key */
    HF_TRY(hf_key_unlock(empty));
    char large[1001] = {0};
    HF_CHECK(hf_keylock_lock(keylock, large, sizeof large, &empty) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_keylock_lock(keylock, NULL, 1, &empty) == HF_ERR_MISUSE);
    HF_CHECK(hf_key_unlock(NULL) == HF_OK);
    return HF_OK;
}

static void S6_locks_are_per_key(void **state)
{
    (void)state;
    everywhere("per key", 10, hold_and_wait);
}

static hf_status try_held(void *arg)
{
    hf_keylock *keylock = arg;
    for (int key = 0; key < 20; key++) {
        hf_key_guard *guard = NULL;
        HF_CHECK(hf_keylock_try_lock(keylock, &key, sizeof key, &guard) == HF_ERR_AGAIN);
    }
    return HF_OK;
}

static hf_status hold_past_the_bound(void *arg)
{
    (void)arg;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = 3));
    hf_key_guard *guards[20] = {NULL};
    for (int key = 0; key < 20; key++) {
        HF_TRY(hf_keylock_lock(keylock, &key, sizeof key, &guards[key]));
    }
    HF_CHECK(hf_keylock_count(keylock) == 20);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, try_held, keylock)); /* every one of them is still there */
    HF_TRY(hf_join(scope));
    for (int key = 0; key < 20; key++) {
        HF_TRY(hf_key_unlock(guards[key]));
        size_t held = (size_t)(19 - key);
        HF_CHECK(hf_keylock_count(keylock) <= held + 3); /* S11, fiber-K2: the bound is over idle entries */
        HF_CHECK(hf_keylock_count(keylock) >= held);
    }
    HF_CHECK(hf_keylock_count(keylock) == 3);
    return HF_OK;
}

static void N9_S11_key_table_at_its_bound_never_drops_a_held_key(void **state)
{
    (void)state;
    everywhere("bound", 20, hold_past_the_bound);
}

static hf_status lock_one(void *arg)
{
    hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(arg, "k", 1, &guard));
    return hf_key_unlock(guard);
}

static hf_status cancel_key_waiters(void *arg)
{
    (void)arg;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock, .idle_max = HF_OFF));
    hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(keylock, "k", 1, &guard));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, lock_one, keylock, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_branch_cancel(jobs[0]));
    HF_TRY(hf_key_unlock(guard));
    HF_TRY(hf_branch_cancel(jobs[2]));
    HF_IGNORE(hf_join(scope));
    for (int i = 0; i < 4; i++) {
        hf_status status = hf_branch_status(jobs[i]);
        HF_CHECK(status == HF_OK || ((i == 0 || i == 2) && status == HF_ERR_CANCELED));
    }
    HF_CHECK(hf_keylock_count(keylock) == 0); /* nothing is left of it */
    return HF_OK;
}

static void S18_a_canceled_waiter_for_a_key_leaves_nothing_behind(void **state)
{
    (void)state;
    everywhere("cancel", 500, cancel_key_waiters);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static int released;

static void on_release(void *data)
{
    HF_CHECK(data == &released);
    released++;
}

static void a_value_is_released_by_its_last_holder(void **state)
{
    (void)state;
    released = 0;
    hf_value *value = NULL;
    assert_int_equal(hf_value_new(&released, 7, on_release, &value), HF_OK);
    assert_ptr_equal(hf_value_ref(value), value);
    assert_ptr_equal(hf_value_data(value), &released);
    assert_int_equal(hf_value_len(value), 7);
    hf_value_unref(value);
    assert_int_equal(released, 0);
    hf_value_unref(value);
    assert_int_equal(released, 1);
    hf_value_unref(NULL);
    assert_null(hf_value_ref(NULL));
    char text[] = "copied";
    assert_int_equal(hf_value_copy(text, sizeof text, &value), HF_OK);
    text[0] = 'X';
    assert_string_equal(hf_value_data(value), "copied");
    hf_value_unref(value);
    assert_int_equal(hf_value_copy(NULL, 0, &value), HF_OK);
    assert_int_equal(hf_value_len(value), 0);
    hf_value_unref(value);
    assert_int_equal(hf_value_copy(NULL, 1, &value), HF_ERR_MISUSE);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S6_X6_a_key_has_one_holder_though_idle_entries_come_and_go),
        cmocka_unit_test(S6_locks_are_per_key),
        cmocka_unit_test(N9_S11_key_table_at_its_bound_never_drops_a_held_key),
        cmocka_unit_test(S18_a_canceled_waiter_for_a_key_leaves_nothing_behind),
        cmocka_unit_test(a_value_is_released_by_its_last_holder),
    };
    return hf_test_main("keyed", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
