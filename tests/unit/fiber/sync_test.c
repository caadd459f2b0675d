/* Mutex, semaphore, condition, once. */
#include "unit/fiber/everywhere.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- Mutex ------------------------------------------------------------------------------------------------------- */

enum { FIBERS = 8, ROUNDS = 20 };

typedef struct counted {
    hf_mutex *mutex;
    int inside;
    int count; /* guarded by the mutex alone */
} counted;

static hf_status count_up(void *arg)
{
    counted *c = arg;
    for (int i = 0; i < ROUNDS; i++) {
        HF_TRY(hf_mutex_lock(c->mutex));
        HF_CHECK(c->inside++ == 0);
        int seen = c->count;
        HF_TRY(hf_yield());
        c->count = seen + 1;
        c->inside--;
        HF_TRY(hf_mutex_unlock(c->mutex));
    }
    return HF_OK;
}

static hf_status many_count(void *arg)
{
    (void)arg;
    counted c = {0};
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex, .name = "count"));
    c.mutex = mutex;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "counters"));
    for (int i = 0; i < FIBERS; i++) {
        HF_TRY(hf_fork(scope, count_up, &c));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(c.count == FIBERS * ROUNDS);
    return HF_OK;
}

static void S22_a_mutex_lets_one_in_at_a_time(void **state)
{
    (void)state;
    everywhere("mutex", 300, many_count);
}

static void *thread_count_up(void *arg)
{
    HF_CHECK(count_up(arg) == HF_OK);
    return NULL;
}

static void S5_plain_threads_and_fibers_share_a_mutex(void **state)
{
    (void)state;
    hf_runtime *rt = NULL;
    assert_int_equal(hf_runtime_new(&rt, .threads = 2), HF_OK);
    counted c = {0};
    assert_int_equal(hf_mutex_new(&c.mutex, .runtime = rt), HF_OK);
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = rt), HF_OK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hf_fork(scope, count_up, &c), HF_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, thread_count_up, &c), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(hf_join(scope), HF_OK);
    assert_int_equal(c.count, 8 * ROUNDS);
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_mutex_free(c.mutex), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

typedef struct line {
    hf_mutex *mutex;
    hf_sem *sem;
    int64_t wish;
    int *order;
    int *next;
    int number;
} line;

static hf_status stand_in_line(void *arg)
{
    line *l = arg;
    HF_TRY(hf_mutex_lock(l->mutex));
    l->order[(*l->next)++] = l->number;
    return hf_mutex_unlock(l->mutex);
}

static hf_status lock_in_order(void *arg)
{
    (void)arg;
    int order[5] = {0};
    int next = 0;
    line lines[5];
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_mutex_lock(mutex));
    for (int i = 0; i < 5; i++) {
        lines[i] = (line){.mutex = mutex, .order = order, .next = &next, .number = i};
        HF_TRY(hf_fork(scope, stand_in_line, &lines[i]));
        let_settle();
    }
    HF_TRY(hf_mutex_unlock(mutex));
    HF_CHECK(hf_mutex_try_lock(mutex) == HF_ERR_AGAIN); /* handed over: nobody overtakes */
    HF_TRY(hf_join(scope));
    for (int i = 0; i < 5; i++) {
        HF_CHECK(order[i] == i);
    }
    return HF_OK;
}

static void a_mutex_is_given_in_the_order_of_asking(void **state)
{
    (void)state;
    in_order("fifo", lock_in_order);
}

static hf_status unlock_other(void *arg)
{
    HF_CHECK(hf_mutex_unlock(arg) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status misuse_mutex(void *arg)
{
    (void)arg;
    hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex, .name = "door"));
    HF_CHECK(hf_mutex_unlock(mutex) == HF_ERR_MISUSE);
    HF_TRY(hf_mutex_lock(mutex));
    HF_CHECK(hf_mutex_lock(mutex) == HF_ERR_MISUSE);
    HF_CHECK(hf_error() != NULL && strstr(hf_error()->message, "door") != NULL);
    HF_CHECK(hf_mutex_try_lock(mutex) == HF_ERR_AGAIN);
    HF_CHECK(hf_mutex_free(mutex) == HF_ERR_MISUSE);
    HF_CHECK(hf_mutex_lock(NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_mutex_unlock(NULL) == HF_ERR_MISUSE);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, unlock_other, mutex));
    HF_TRY(hf_join(scope));
    HF_TRY(hf_mutex_unlock(mutex));
    HF_TRY(hf_mutex_free(mutex));
    HF_CHECK(hf_mutex_free(NULL) == HF_OK);
    return HF_OK;
}

static void misuse_of_a_mutex_is_told_and_harms_nobody(void **state)
{
    (void)state;
    everywhere("misuse", 10, misuse_mutex);
}

typedef struct race {
    hf_mutex *mutex;
    atomic_int got;
    atomic_int canceled;
} race;

static hf_status lock_or_be_canceled(void *arg)
{
    race *r = arg;
    hf_status status = hf_mutex_lock(r->mutex);
    if (status == HF_OK) {
        atomic_fetch_add(&r->got, 1);
        return hf_mutex_unlock(r->mutex);
    }
    HF_CHECK(status == HF_ERR_CANCELED);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    atomic_fetch_add(&r->canceled, 1);
    return status;
}

static hf_status cancel_against_unlock(void *arg)
{
    (void)arg;
    race r = {0};
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    r.mutex = mutex;
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_TRY(hf_scope_open(&outer));
    hf_branch *jobs[3] = {NULL};
    HF_TRY(hf_mutex_lock(mutex));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(outer, lock_or_be_canceled, &r, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_branch_cancel(jobs[0]));
    HF_TRY(hf_mutex_unlock(mutex));
    HF_TRY(hf_branch_cancel(jobs[1]));
    HF_IGNORE(hf_join(outer));
    HF_CHECK(r.got + r.canceled == 3);
    HF_CHECK(r.got >= 1);
    HF_CHECK(hf_mutex_try_lock(mutex) == HF_OK); /* nobody took it along */
    return hf_mutex_unlock(mutex);
}

static void S18_a_canceled_waiter_has_the_mutex_or_the_cancel_never_both(void **state)
{
    (void)state;
    everywhere("cancel against unlock", 500, cancel_against_unlock);
}

static hf_status hold_for_a_while(void *arg)
{
    HF_TRY(hf_mutex_lock(arg));
    HF_TRY(hf_sleep(hf_milliseconds(50)));
    return hf_mutex_unlock(arg);
}

static hf_status time_out(void *arg)
{
    (void)arg;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, hold_for_a_while, mutex));
    let_settle();
    HF_CHECK(hf_mutex_lock(mutex, .timeout = hf_milliseconds(10)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_error() != NULL && strcmp(hf_error()->where, "hf_mutex_lock") == 0);
    HF_CHECK(hf_mutex_lock(mutex, .timeout = hf_seconds(10)) == HF_OK);
    HF_CHECK(hf_mutex_unlock(mutex) == HF_OK);
    return hf_join(scope);
}

static void a_wait_for_a_mutex_ends_at_its_timeout(void **state)
{
    (void)state;
    in_order("timeout", time_out);
}

/* ---- Semaphore --------------------------------------------------------------------------------------------------- */

typedef struct crowd {
    hf_sem *sem;
    atomic_int inside;
    atomic_int most;
} crowd;

static hf_status be_in_crowd(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < 10; i++) {
        int64_t wish = 1 + i % 3;
        HF_TRY(hf_sem_acquire(c->sem, wish));
        int now = atomic_fetch_add(&c->inside, (int)wish) + (int)wish;
        HF_CHECK(now <= 3);
        HF_TRY(hf_yield());
        atomic_fetch_sub(&c->inside, (int)wish);
        HF_TRY(hf_sem_release(c->sem, wish));
    }
    return HF_OK;
}

static hf_status crowd_of_three(void *arg)
{
    (void)arg;
    crowd c = {0};
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_TRY(hf_sem_new(3, &sem));
    c.sem = sem;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < FIBERS; i++) {
        HF_TRY(hf_fork(scope, be_in_crowd, &c));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(hf_sem_try_acquire(sem, 3) == HF_OK);
    HF_CHECK(hf_sem_try_acquire(sem, 1) == HF_ERR_AGAIN);
    return hf_sem_release(sem, 3);
}

static void S22_a_semaphore_never_gives_more_than_it_has(void **state)
{
    (void)state;
    everywhere("semaphore", 300, crowd_of_three);
}

static hf_status acquire_in_line(void *arg)
{
    line *l = arg;
    HF_TRY(hf_sem_acquire(l->sem, l->wish));
    l->order[(*l->next)++] = l->number;
    return HF_OK;
}

static hf_status small_wishes_wait_for_large_ones(void *arg)
{
    (void)arg;
    int order[3] = {-1, -1, -1};
    int next = 0;
    line lines[3];
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_TRY(hf_sem_new(1, &sem));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[3] = {NULL};
    for (int i = 0; i < 3; i++) { /* wishes 5, 2, 1 with one permit there */
        lines[i] = (line){.sem = sem, .wish = i == 0 ? 5 : 3 - i, .order = order, .next = &next, .number = i};
        HF_TRY(hf_fork(scope, acquire_in_line, &lines[i], .ret_branch = &jobs[i]));
        let_settle();
    }
    HF_CHECK(next == 0);
    HF_CHECK(hf_sem_try_acquire(sem, 1) == HF_ERR_AGAIN); /* not past those who wait */
    HF_TRY(hf_sem_release(sem, 1));
    let_settle();
    HF_CHECK(next == 0);
    HF_TRY(hf_branch_cancel(jobs[0])); /* two permits are there: the one behind it is served, the last is not */
    let_settle();
    HF_CHECK(next == 1 && order[0] == 1);
    HF_TRY(hf_sem_release(sem, 1));
    let_settle();
    HF_CHECK(next == 2 && order[1] == 2);
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

static void a_semaphore_serves_in_order_and_who_leaves_makes_room(void **state)
{
    (void)state;
    in_order("order of wishes", small_wishes_wait_for_large_ones);
}

static hf_status misuse_sem(void *arg)
{
    (void)arg;
    hf_sem *sem = NULL;
    HF_CHECK(hf_sem_new(-1, &sem) == HF_ERR_INVALID);
    HF_TRY(hf_sem_new(0, &sem));
    HF_CHECK(hf_sem_acquire(sem, 0) == HF_ERR_MISUSE);
    HF_CHECK(hf_sem_release(sem, -1) == HF_ERR_MISUSE);
    HF_CHECK(hf_sem_acquire(NULL, 1) == HF_ERR_MISUSE);
    HF_CHECK(hf_sem_acquire(sem, 1, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_sem_release(sem, INT64_MAX));
    HF_CHECK(hf_sem_release(sem, 1) == HF_ERR_MISUSE);
    HF_TRY(hf_sem_free(sem));
    return hf_sem_free(NULL);
}

static void misuse_of_a_semaphore_is_told(void **state)
{
    (void)state;
    everywhere("misuse", 10, misuse_sem);
}

/* ---- Condition --------------------------------------------------------------------------------------------------- */

typedef struct box {
    hf_mutex *mutex;
    hf_cond *cond;
    int filled; /* guarded by the mutex */
    int taken;
    int wanted;
} box;

static hf_status take_from_box(void *arg)
{
    box *b = arg;
    HF_TRY(hf_mutex_lock(b->mutex));
    HF_AUTO(hf_mutex_unlock) hf_mutex *held = b->mutex;
    while (b->taken < b->wanted) {
        if (b->filled == 0) {
            HF_TRY(hf_cond_wait(b->cond, b->mutex));
            continue;
        }
        b->filled--;
        b->taken++;
    }
    (void)held;
    return hf_cond_broadcast(b->cond);
}

static hf_status fill_box(void *arg)
{
    box *b = arg;
    for (int i = 0; i < b->wanted; i++) {
        HF_TRY(hf_mutex_lock(b->mutex));
        b->filled++;
        HF_TRY(hf_cond_signal(b->cond));
        HF_TRY(hf_mutex_unlock(b->mutex));
    }
    return HF_OK;
}

static hf_status fill_and_take(void *arg)
{
    (void)arg;
    box b = {.wanted = 40};
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_cond_new(&cond));
    b.mutex = mutex;
    b.cond = cond;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, take_from_box, &b));
    }
    HF_TRY(hf_fork(scope, fill_box, &b));
    HF_TRY(hf_join(scope));
    HF_CHECK(b.taken == 40 && b.filled == 0);
    return HF_OK;
}

static void no_signal_is_lost_between_unlocking_and_waiting(void **state)
{
    (void)state;
    everywhere("condition", 300, fill_and_take);
}

typedef struct waiter {
    hf_mutex *mutex;
    hf_cond *cond;
    int *woken;
    hf_status status;
} waiter;

static hf_status wait_once(void *arg)
{
    waiter *w = arg;
    HF_TRY(hf_mutex_lock(w->mutex));
    w->status = hf_cond_wait(w->cond, w->mutex);
    (*w->woken)++;
    HF_CHECK(hf_mutex_try_lock(w->mutex) == HF_ERR_AGAIN);
    HF_CHECK(hf_mutex_unlock(w->mutex) == HF_OK); /* held again, canceled or not */
    return w->status;
}

static hf_status signal_and_broadcast(void *arg)
{
    (void)arg;
    int woken = 0;
    waiter w[5];
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_cond_new(&cond));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[5] = {NULL};
    for (int i = 0; i < 5; i++) {
        w[i] = (waiter){mutex, cond, &woken, HF_OK};
        HF_TRY(hf_fork(scope, wait_once, &w[i], .ret_branch = &jobs[i]));
    }
    let_settle();
    HF_CHECK(hf_cond_free(cond) == HF_ERR_MISUSE);
    HF_TRY(hf_cond_signal(cond));
    let_settle();
    HF_CHECK(woken == 1);
    HF_TRY(hf_mutex_lock(mutex));
    HF_TRY(hf_branch_cancel(jobs[4])); /* has to wait for the mutex all the same */
    let_settle();
    HF_CHECK(woken == 1);
    HF_TRY(hf_mutex_unlock(mutex));
    let_settle();
    HF_CHECK(woken == 2 && w[4].status == HF_ERR_CANCELED);
    HF_TRY(hf_mutex_lock(mutex));
    HF_TRY(hf_cond_signal(cond));
    let_settle();
    HF_TRY(hf_branch_cancel(jobs[1])); /* signaled, it waits for the mutex: a cancel does not get it out of there */
    let_settle();
    HF_CHECK(woken == 2);
    HF_TRY(hf_mutex_unlock(mutex));
    let_settle();
    HF_CHECK(woken == 3 && w[1].status == HF_OK);
    HF_TRY(hf_cond_broadcast(cond));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(woken == 5);
    HF_CHECK(hf_cond_wait(cond, mutex) == HF_ERR_MISUSE);
    HF_TRY(hf_mutex_lock(mutex));
    HF_CHECK(hf_cond_wait(cond, mutex, .timeout = hf_milliseconds(2)) == HF_ERR_TIMEOUT);
    return hf_mutex_unlock(mutex);
}

static void S19_a_canceled_condition_wait_holds_the_mutex_for_its_cleanup(void **state)
{
    (void)state;
    in_order("signal, broadcast, cancel", signal_and_broadcast);
}

/* ---- Once -------------------------------------------------------------------------------------------------------- */

typedef struct setup {
    hf_once *once;
    atomic_int runs;
    atomic_int failures_left;
    atomic_int failed;
} setup;

static hf_status set_up(void *arg)
{
    setup *s = arg;
    HF_TRY(hf_yield());
    atomic_fetch_add(&s->runs, 1);
    if (atomic_fetch_sub(&s->failures_left, 1) > 0) {
        return hf_raise(HF_ERR_FAILED, "not yet");
    }
    return HF_OK;
}

static hf_status need_set_up(void *arg)
{
    setup *s = arg;
    hf_status status = hf_once_run(s->once, set_up, s);
    if (status != HF_OK) {
        HF_CHECK(status == HF_ERR_FAILED && strcmp(hf_error()->message, "not yet") == 0);
        atomic_fetch_add(&s->failed, 1);
    }
    return HF_OK;
}

static hf_status once_among_many(void *arg)
{
    (void)arg;
    setup s = {0};
    atomic_store(&s.failures_left, 2);
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_TRY(hf_once_new(&once));
    s.once = once;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, need_set_up, &s));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(s.runs == 3 && s.failed == 2); /* two failed, the third did it, the others waited */
    HF_TRY(hf_once_run(once, set_up, &s));
    HF_CHECK(s.runs == 3);
    return HF_OK;
}

static void once_runs_until_it_worked_and_never_again(void **state)
{
    (void)state;
    everywhere("once", 300, once_among_many);
}

static hf_status run_itself(void *arg)
{
    HF_CHECK(hf_once_free(arg) == HF_ERR_MISUSE);
    return hf_once_run(arg, run_itself, arg);
}

static hf_status once_inside_itself(void *arg)
{
    (void)arg;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_TRY(hf_once_new(&once));
    HF_CHECK(hf_once_run(once, run_itself, once) == HF_ERR_MISUSE);
    HF_CHECK(hf_once_run(once, NULL, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void once_inside_itself_is_misuse_not_a_deadlock(void **state)
{
    (void)state;
    everywhere("once inside itself", 10, once_inside_itself);
}

static hf_status slow_set_up(void *arg)
{
    (void)arg;
    return hf_sleep(hf_milliseconds(20));
}

static hf_status run_slow(void *arg)
{
    return hf_once_run(arg, slow_set_up, NULL);
}

static hf_status cancel_the_runner(void *arg)
{
    (void)arg;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_TRY(hf_once_new(&once));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, run_slow, once, .ret_branch = &jobs[i]));
    }
    let_settle();
    HF_TRY(hf_branch_cancel(jobs[1])); /* a waiter leaves alone */
    let_settle();
    HF_CHECK(hf_branch_status(jobs[1]) == HF_ERR_CANCELED && !hf_branch_is_done(jobs[0]));
    HF_TRY(hf_branch_cancel(jobs[0])); /* the runner: the turn goes to the last */
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_branch_status(jobs[0]) == HF_ERR_CANCELED);
    HF_CHECK(hf_branch_status(jobs[2]) == HF_OK);
    return HF_OK;
}

static void S18_canceling_who_runs_once_gives_the_turn_to_the_next(void **state)
{
    (void)state;
    in_order("cancel the runner", cancel_the_runner);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S22_a_mutex_lets_one_in_at_a_time),
        cmocka_unit_test(S5_plain_threads_and_fibers_share_a_mutex),
        cmocka_unit_test(a_mutex_is_given_in_the_order_of_asking),
        cmocka_unit_test(misuse_of_a_mutex_is_told_and_harms_nobody),
        cmocka_unit_test(S18_a_canceled_waiter_has_the_mutex_or_the_cancel_never_both),
        cmocka_unit_test(a_wait_for_a_mutex_ends_at_its_timeout),
        cmocka_unit_test(S22_a_semaphore_never_gives_more_than_it_has),
        cmocka_unit_test(a_semaphore_serves_in_order_and_who_leaves_makes_room),
        cmocka_unit_test(misuse_of_a_semaphore_is_told),
        cmocka_unit_test(no_signal_is_lost_between_unlocking_and_waiting),
        cmocka_unit_test(S19_a_canceled_condition_wait_holds_the_mutex_for_its_cleanup),
        cmocka_unit_test(once_runs_until_it_worked_and_never_again),
        cmocka_unit_test(once_inside_itself_is_misuse_not_a_deadlock),
        cmocka_unit_test(S18_canceling_who_runs_once_gives_the_turn_to_the_next),
    };
    return hf_test_main("sync", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
