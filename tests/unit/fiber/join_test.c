/* Joins: when is a scope done, and what does hf_join return? Time is virtual here; order is checked with real threads. */
/* labels: threads */
#include "unit/fiber/bodies.h"

/* ---- Y4, N7, X10: quorum --------------------------------------------------------------------- */

typedef enum decision { APPROVE, REJECT, ABSTAIN, HANG } decision;

typedef struct decider {
    decision what;
    hf_span after;
    atomic_int canceled;
} decider;

static hf_status decide(void *arg)
{
    decider *d = arg;
    hf_status status = hf_sleep(d->what == HANG ? hf_hours(1) : d->after);
    if (status == HF_ERR_CANCELED) {
        d->canceled++;
        return status;
    }
    HF_TRY(status);
    switch (d->what) {
    case APPROVE:
        return HF_OK;
    case REJECT:
        return hf_raise((hf_status)(HF_ERR_USER + 1), "rejected");
    case ABSTAIN:
        return hf_raise((hf_status)(HF_ERR_USER + 2), "abstained");
    case HANG:
        break;
    }
    return HF_ERR_FAILED;
}

/* Three deciders, deadline 30 s, two must approve. */
static hf_status vote(decider *deciders, size_t count, int64_t needed, int64_t *ret_ms)
{
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "vote", .join = HF_JOIN_QUORUM(needed), .timeout = hf_seconds(30)));
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, decide, &deciders[i]));
    }
    hf_status status = hf_join(scope);
    *ret_ms = ms_since(start);
    return status;
}

static hf_status quorum_approves(void *arg)
{
    (void)arg;
    decider three[] = {
        {.what = APPROVE, .after = hf_seconds(1)}, {.what = HANG}, {.what = APPROVE, .after = hf_seconds(5)}};
    int64_t ms = 0;
    HF_CHECK(vote(three, 3, 2, &ms) == HF_OK);
    HF_CHECK(ms >= 5000 && ms < 5100);
    HF_CHECK(three[1].canceled == 1 && three[0].canceled == 0);
    decider abstaining[] = {{.what = ABSTAIN, .after = hf_seconds(1)},
                            {.what = APPROVE, .after = hf_seconds(2)},
                            {.what = APPROVE, .after = hf_seconds(3)}};
    HF_CHECK(vote(abstaining, 3, 2, &ms) == HF_OK);
    return HF_OK;
}

static void Y4_a_quorum_of_two_in_three_is_approved_at_the_second_approval(void **state)
{
    (void)state;
    simulated("quorum", 200, quorum_approves);
}

static hf_status quorum_fails(void *arg)
{
    (void)arg;
    decider three[] = {{.what = REJECT, .after = hf_seconds(1)},
                       {.what = APPROVE, .after = hf_seconds(2)},
                       {.what = ABSTAIN, .after = hf_seconds(3)}};
    int64_t ms = 0;
    HF_CHECK(vote(three, 3, 2, &ms) == HF_ERR_FAILED);
    HF_CHECK(error_says("1 of 3") && error_says("2 needed"));
    HF_CHECK(ms >= 3000 && ms < 3100);
    return HF_OK;
}

static void Y4_a_missed_quorum_is_an_error_that_names_the_votes(void **state)
{
    (void)state;
    simulated("missed quorum", 200, quorum_fails);
}

static hf_status quorum_times_out(void *arg)
{
    (void)arg;
    decider three[] = {{.what = APPROVE, .after = hf_seconds(1)}, {.what = HANG}, {.what = HANG}};
    int64_t ms = 0;
    HF_CHECK(vote(three, 3, 2, &ms) == HF_ERR_TIMEOUT);
    HF_CHECK(error_says("30000 ms") && error_says("1 of 3"));
    HF_CHECK(ms >= 30000 && ms < 30100);
    HF_CHECK(three[1].canceled == 1 && three[2].canceled == 1);
    return HF_OK;
}

static void Y4_a_quorum_that_is_not_reached_in_30_seconds_times_out(void **state)
{
    (void)state;
    simulated("quorum times out", 200, quorum_times_out);
}

static hf_status hung_decider(void *arg)
{
    (void)arg;
    int64_t ms = 0;
    decider approving[] = {{.what = HANG},
                           {.what = APPROVE, .after = hf_milliseconds(20)},
                           {.what = APPROVE, .after = hf_milliseconds(10)}};
    HF_CHECK(vote(approving, 3, 2, &ms) == HF_OK);
    HF_CHECK(ms >= 20 && ms < 100 && approving[0].canceled == 1);
    decider rejecting[] = {
        {.what = HANG}, {.what = REJECT, .after = hf_milliseconds(20)}, {.what = REJECT, .after = hf_milliseconds(10)}};
    HF_CHECK(vote(rejecting, 3, 2, &ms) == HF_ERR_FAILED);
    HF_CHECK(ms >= 20 && ms < 100); /* at once, not at 30 s */
    HF_CHECK(error_says("0 of 3") && rejecting[0].canceled == 1);
    return HF_OK;
}

static void N7_a_quorum_with_one_hung_decider_ends_as_soon_as_it_is_decided(void **state)
{
    (void)state;
    simulated("hung decider", 300, hung_decider);
}

static hf_status quorums(void *arg)
{
    (void)arg;
    for (int64_t k = 1; k <= 3; k++) {
        for (int approvals = 0; approvals <= 3; approvals++) {
            decider three[3];
            for (int i = 0; i < 3; i++) {
                three[i] = (decider){.what = i < approvals ? APPROVE : REJECT, .after = hf_milliseconds(1 + i)};
            }
            int64_t ms = 0;
            HF_CHECK((vote(three, 3, k, &ms) == HF_OK) == (approvals >= k));
        }
    }
    return HF_OK;
}

static void X10_the_quorum_is_what_was_asked_for(void **state)
{
    (void)state;
    simulated("quorums", 50, quorums);
}

/* ---- Y3, X11: tolerate ----------------------------------------------------------------------- */

typedef struct instances {
    int failing; /* the first so many fail */
    int64_t threshold;
    hf_status status;
    hf_tally tally;
} instances;

typedef struct instance {
    bool fails;
    int number;
} instance;

static hf_status run_instance(void *arg)
{
    instance *in = arg;
    HF_TRY(hf_sleep(hf_milliseconds(1 + in->number % 7)));
    return in->fails ? hf_raise(HF_ERR_FAILED, "instance %d failed", in->number) : HF_OK;
}

static hf_status run_instances(instances *all)
{
    instance each[100];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "instances", .join = HF_JOIN_TOLERATE(all->threshold)));
    for (int i = 0; i < 100; i++) {
        each[i] = (instance){i < all->failing, i};
        HF_TRY(hf_fork(scope, run_instance, &each[i]));
    }
    all->status = hf_join(scope);
    all->tally = hf_scope_tally(scope);
    return HF_OK;
}

static hf_status multi_instance(void *arg)
{
    (void)arg;
    instances fine = {.failing = 0, .threshold = 10};
    HF_TRY(run_instances(&fine));
    HF_CHECK(fine.status == HF_OK && fine.tally.ok == 100);
    instances at = {.failing = 10, .threshold = 10}; /* not more than the threshold */
    HF_TRY(run_instances(&at));
    HF_CHECK(at.status == HF_OK && at.tally.ok == 90 && at.tally.failed == 10);
    instances over = {.failing = 11, .threshold = 10};
    HF_TRY(run_instances(&over));
    HF_CHECK(over.status == HF_ERR_FAILED && error_says("instance"));
    HF_CHECK(over.tally.failed >= 11 && over.tally.ok + over.tally.failed + over.tally.canceled == 100);
    return HF_OK;
}

static void Y3_a_hundred_instances_wait_for_all_or_fail_over_the_threshold(void **state)
{
    (void)state;
    simulated("instances", 100, multi_instance);
}

static hf_status success_does_not_stop(void *arg)
{
    (void)arg;
    instances all = {.failing = 1, .threshold = 1};
    HF_TRY(run_instances(&all));
    HF_CHECK(all.status == HF_OK && all.tally.ok == 99 && all.tally.canceled == 0);
    return HF_OK;
}

static void X11_a_failure_threshold_does_not_stop_at_the_first_success(void **state)
{
    (void)state;
    simulated("failure threshold", 100, success_does_not_stop);
}

/* ---- Y5, Y15: deadlines ---------------------------------------------------------------------- */

static hf_status poll_every_100_ms(void *arg)
{
    int *polls = arg;
    for (;;) {
        hf_status status = hf_sleep(hf_milliseconds(100));
        if (status != HF_OK) {
            const char *reason = NULL;
            HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_DEADLINE && strcmp(reason, "items") == 0);
            return status;
        }
        ++*polls;
    }
}

static hf_status one_deadline(void *arg)
{
    (void)arg;
    int polls[5] = {0};
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "items", .timeout = hf_seconds(10)));
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(scope, poll_every_100_ms, &polls[i]));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    HF_CHECK(error_says("'items'") && error_says("10000 ms"));
    HF_CHECK(ms_since(start) >= 10000 && ms_since(start) < 10100);
    for (int i = 0; i < 5; i++) {
        HF_CHECK(polls[i] >= 98 && polls[i] <= 100);
    }
    HF_CHECK(hf_canceled() == HF_OK); /* it was the scope's own: the owner goes on */
    HF_TRY(hf_sleep(hf_seconds(1)));
    return HF_OK;
}

static void Y5_one_deadline_for_all_items_and_the_error_names_the_milliseconds(void **state)
{
    (void)state;
    simulated("one deadline", 100, one_deadline);
}

static hf_status five_seconds(void *arg)
{
    (void)arg;
    return hf_sleep(hf_seconds(5));
}

static hf_status five_under_one(void *arg)
{
    (void)arg;
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(1)));
    HF_TRY(hf_fork(scope, five_seconds, NULL));
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    HF_CHECK(ms_since(start) >= 1000 && ms_since(start) < 1100);
    return HF_OK;
}

static void Y15_a_5_s_task_under_a_1_s_deadline_times_out(void **state)
{
    (void)state;
    simulated("5 s under 1 s", 200, five_under_one);
}

static hf_status in_time(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(10)));
    HF_TRY(hf_fork(scope, five_seconds, NULL));
    HF_TRY(hf_join(scope));
    HF_TRY(hf_sleep(hf_seconds(60))); /* the deadline is over with the join: code behind it can wait */
    return hf_canceled();
}

static void a_join_in_time_ends_the_deadline(void **state)
{
    (void)state;
    simulated("in time", 100, in_time);
}

typedef struct timed {
    hf_span left;
    hf_status status;
} timed;

static hf_status look_at_clock(void *arg)
{
    timed *t = arg;
    t->left = hf_time_left();
    HF_AUTO(hf_scope_close) hf_scope *wider = NULL; /* asks for more than there is */
    HF_TRY(hf_scope_open(&wider, .timeout = hf_hours(1)));
    HF_CHECK(hf_time_left().ns <= t->left.ns);
    HF_TRY(hf_fork(wider, sleep_long, NULL));
    t->status = hf_join(wider); /* not its own deadline: a cancel from further out */
    return t->status;
}

static hf_status minimum(void *arg)
{
    (void)arg;
    HF_CHECK(hf_time_left().ns == HF_SPAN_UNLIMITED.ns);
    timed t = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(10)));
    HF_TRY(hf_fork(scope, look_at_clock, &t));
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    HF_CHECK(t.left.ns <= hf_seconds(10).ns && t.left.ns > hf_seconds(9).ns);
    HF_CHECK(t.status == HF_ERR_CANCELED);
    return HF_OK;
}

static void Y5_deadlines_are_inherited_as_a_minimum(void **state)
{
    (void)state;
    simulated("minimum", 100, minimum);
}

static hf_status some_in_time(void *arg)
{
    hf_span *span = arg;
    HF_TRY(hf_sleep(*span));
    *span = hf_nanoseconds(-1);
    return HF_OK;
}

static hf_status partial(void *arg)
{
    (void)arg;
    hf_span spans[4] = {hf_seconds(1), hf_seconds(20), hf_seconds(2), hf_seconds(30)};
    hf_branch *jobs[4];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_PARTIAL, .timeout = hf_seconds(10)));
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, some_in_time, &spans[i], .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(hf_scope_tally(scope).ok == 2 && hf_scope_tally(scope).canceled == 2);
    HF_CHECK(hf_branch_status(jobs[0]) == HF_OK && hf_branch_status(jobs[2]) == HF_OK);
    HF_CHECK(hf_branch_status(jobs[1]) == HF_ERR_CANCELED && spans[1].ns == hf_seconds(20).ns);
    return HF_OK;
}

static void Y5_at_the_deadline_partial_results_are_kept(void **state)
{
    (void)state;
    simulated("partial results", 100, partial);
}

/* ---- Y6, Y7, Y8, Y9, X9 ---------------------------------------------------------------------- */

static hf_status win(void *arg)
{
    (void)arg;
    return hf_sleep(hf_milliseconds(10));
}

static hf_status presets(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_AUTO(hf_scope_close) hf_scope *failure = NULL;
    HF_TRY(hf_scope_open(&failure, .join = HF_SHUTDOWN_ON_FAILURE)); /* all or nothing */
    HF_TRY(hf_fork(failure, sleep_and_tell, &canceled));
    HF_TRY(hf_fork(failure, fail_at_once, NULL));
    HF_CHECK(hf_join(failure) == HF_ERR_FAILED && canceled == 1);

    HF_AUTO(hf_scope_close) hf_scope *success = NULL;
    HF_TRY(hf_scope_open(&success, .join = HF_SHUTDOWN_ON_SUCCESS)); /* a race */
    HF_TRY(hf_fork(success, fail_at_once, NULL));
    HF_TRY(hf_fork(success, sleep_and_tell, &canceled));
    HF_TRY(hf_fork(success, win, NULL));
    HF_TRY(hf_join(success));
    HF_CHECK(canceled == 2);

    HF_AUTO(hf_scope_close) hf_scope *user = NULL;
    HF_TRY(hf_scope_open(&user, .join = HF_SHUTDOWN_ON_CANCEL)); /* only the user ends it */
    HF_TRY(hf_fork(user, fail_at_once, NULL));
    HF_TRY(hf_fork(user, win, NULL));
    HF_TRY(hf_fork(user, sleep_and_tell, &canceled));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(canceled == 2 && hf_scope_tally(user).ok == 1 && hf_scope_tally(user).failed == 1);
    HF_TRY(hf_scope_cancel(user, .reason = "the user said so"));
    HF_CHECK(hf_join(user) == HF_ERR_FAILED && canceled == 3);
    return HF_OK;
}

static void Y6_scopes_shut_down_on_failure_on_success_and_on_cancel(void **state)
{
    (void)state;
    simulated("presets", 200, presets);
}

static void X9_the_three_names_are_presets_of_our_own_joins(void **state)
{
    (void)state;
    assert_ptr_equal(HF_SHUTDOWN_ON_FAILURE.hooks, &hf_join_all_hooks);
    assert_ptr_equal(HF_SHUTDOWN_ON_SUCCESS.hooks, &hf_join_any_hooks);
    assert_ptr_equal(HF_SHUTDOWN_ON_CANCEL.hooks, &hf_join_collect_hooks);
    simulated("presets", 20, presets);
}

static hf_status subtasks(void *arg)
{
    (void)arg;
    hf_branch *ok = NULL;
    hf_branch *bad = NULL;
    hf_branch *slow = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT, .timeout = hf_seconds(1)));
    HF_TRY(hf_fork(scope, win, NULL, .ret_branch = &ok, .name = "ok"));
    HF_TRY(hf_fork(scope, fail_at_once, NULL, .ret_branch = &bad, .name = "bad"));
    HF_TRY(hf_fork(scope, sleep_long, NULL, .ret_branch = &slow, .name = "slow"));
    HF_CHECK(!hf_branch_is_done(ok) && hf_branch_status(ok) == HF_ERR_AGAIN && hf_branch_failure(ok) == NULL);
    HF_CHECK(!hf_scope_is_idle(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT); /* join until the deadline */
    HF_CHECK(hf_scope_is_idle(scope));
    HF_CHECK(hf_branch_is_done(ok) && hf_branch_status(ok) == HF_OK && hf_branch_failure(ok) == NULL);
    HF_CHECK(hf_branch_is_done(bad) && hf_branch_status(bad) == HF_ERR_FAILED);
    HF_CHECK(strcmp(hf_branch_failure(bad)->message, "it failed") == 0);
    HF_CHECK(strcmp(hf_branch_failure(bad)->where, "bad") == 0);
    HF_CHECK(hf_branch_status(slow) == HF_ERR_CANCELED && hf_branch_failure(slow) == NULL);
    HF_CHECK(hf_branch_index(slow) == 2);
    return HF_OK;
}

static void Y7_join_with_a_deadline_and_ask_each_subtask(void **state)
{
    (void)state;
    simulated("subtasks", 200, subtasks);
}

static hf_status cancel_one(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    hf_branch *jobs[3];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, i == 1 ? sleep_and_tell : win, &canceled, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_branch_cancel(jobs[1]));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED && error_says("1 of the 3 children of scope 'scope' was canceled"));
    HF_CHECK(canceled == 1 && hf_scope_tally(scope).ok == 2);
    return HF_OK;
}

static void Y7_one_child_can_be_canceled_alone(void **state)
{
    (void)state;
    simulated("cancel one", 200, cancel_one);
}

static hf_status wrapped(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, fail_at_once, NULL, .name = "worker-7"));
    hf_status status = hf_join(scope);
    HF_CHECK(status == HF_ERR_FAILED);
    return hf_raise_typed((hf_status)(HF_ERR_USER + 7), "OrderFailed", "order 12 cannot be sent");
}

static hf_status own_error(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, sleep_long, NULL));
    HF_TRY(hf_fork(scope, wrapped, NULL, .name = "order"));
    HF_CHECK(hf_join(scope) == (hf_status)(HF_ERR_USER + 7));
    const hf_failure *error = hf_error();
    HF_CHECK(error != NULL && strcmp(error->type, "OrderFailed") == 0);
    HF_CHECK(error != NULL && strstr(error->message, "order 12 cannot be sent") != NULL);
    HF_CHECK(error != NULL && strcmp(error->where, "order") == 0);
    HF_CHECK(error != NULL && error->cause != NULL && strcmp(error->cause->message, "it failed") == 0);
    HF_CHECK(error != NULL && error->cause != NULL && strcmp(error->cause->where, "worker-7") == 0);
    return HF_OK;
}

static void Y8_the_owner_sees_the_first_failures_own_error(void **state)
{
    (void)state;
    simulated_and_on_threads("own error", 200, own_error);
}

static hf_status fail_number(void *arg)
{
    return hf_raise(HF_ERR_FAILED, "number %d", *(int *)arg);
}

static hf_status collect(void *arg)
{
    (void)arg;
    int numbers[HF_SCOPE_FAILURES_MAX + 10];
    enum { COUNT = sizeof numbers / sizeof *numbers };
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        HF_TRY(hf_fork(scope, fail_number, &numbers[i]));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
    HF_CHECK(hf_scope_tally(scope).failed == COUNT && hf_scope_tally(scope).canceled == 0);
    const hf_failure *first = hf_scope_failure(scope, 0);
    HF_CHECK(first != NULL && strcmp(first->message, hf_error_text()) == 0);
    bool seen[COUNT] = {false};
    for (size_t i = 0; i < HF_SCOPE_FAILURES_MAX; i++) {
        const hf_failure *failure = hf_scope_failure(scope, i);
        int number = -1;
        if (HF_CHECK(failure != NULL) && HF_CHECK(sscanf(failure->message, "number %d", &number) == 1)) {
            HF_CHECK(number >= 0 && number < COUNT && !seen[number]);
            seen[number] = true;
        }
    }
    HF_CHECK(hf_scope_failure(scope, HF_SCOPE_FAILURES_MAX) == NULL); /* kept up to a bound */
    return HF_OK;
}

static void Y9_every_failure_is_collected_up_to_the_bound(void **state)
{
    (void)state;
    simulated_and_on_threads("collect", 200, collect);
}

/* ---- Hooks of one's own ---------------------------------------------------------------------- */

typedef struct best {
    int best;
    int seen;
} best;

static hf_status offer(void *arg)
{
    return *(int *)arg >= 0 ? HF_OK : hf_raise(HF_ERR_FAILED, "no offer");
}

static hf_status at_most_six(const hf_tally *tally)
{
    return tally->forked < 6 ? HF_OK : (hf_status)(HF_ERR_USER + 6);
}

static hf_verdict until_over_ten(const hf_tally *tally, const hf_outcome *outcome)
{
    best *b = tally->state;
    if (outcome == NULL) {
        HF_CHECK(tally->joining);
        return HF_GO_ON;
    }
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_MISUSE); /* a hook must not wait */
    b->seen++;
    if (outcome->status == HF_OK && *(int *)outcome->arg > b->best) {
        b->best = *(int *)outcome->arg;
    }
    return b->best > 10 ? HF_STOP : HF_GO_ON;
}

static hf_status best_of(const hf_tally *tally, hf_status first_failure)
{
    (void)first_failure;
    best *b = tally->state;
    return b->best > 10 ? HF_OK : hf_raise(HF_ERR_NOT_FOUND, "the best offer was %d", b->best);
}

static const hf_join_hooks BEST = {
    .name = "best", .on_fork = at_most_six, .on_done = until_over_ten, .result = best_of};

static hf_status own_join(void *arg)
{
    (void)arg;
    int offers[] = {3, -1, 7, 5, 2, 1, 9};
    best b = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = hf_join_policy_of(&BEST, 0, &b)));
    for (int i = 0; i < 6; i++) {
        HF_TRY(hf_fork(scope, offer, &offers[i]));
    }
    HF_CHECK(hf_fork(scope, offer, &offers[6]) == (hf_status)(HF_ERR_USER + 6));
    HF_CHECK(error_says("'best'"));
    HF_CHECK(hf_join(scope) == HF_ERR_NOT_FOUND && error_says("the best offer was 7"));
    HF_CHECK(b.seen == 6 && hf_scope_tally(scope).failed == 1);
    return HF_OK;
}

static void joins_of_ones_own_use_the_same_hooks(void **state)
{
    (void)state;
    simulated_and_on_threads("own join", 100, own_join);
}

static hf_status join_nobody(void *arg)
{
    (void)arg;
    const hf_join_policy policies[] = {HF_JOIN_ALL, HF_JOIN_COLLECT, HF_JOIN_DISCARD, HF_JOIN_TOLERATE(1),
                                       HF_JOIN_PARTIAL};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = policies[i]));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_join(scope)); /* and again */
    }
    HF_AUTO(hf_scope_close) hf_scope *any = NULL;
    HF_TRY(hf_scope_open(&any, .join = HF_JOIN_ANY));
    HF_CHECK(hf_join(any) == HF_ERR_FAILED && error_says("none was forked"));
    HF_AUTO(hf_scope_close) hf_scope *two = NULL;
    HF_TRY(hf_scope_open(&two, .join = HF_JOIN_QUORUM(2)));
    HF_CHECK(hf_join(two) == HF_ERR_FAILED && error_says("0 of 0"));
    return HF_OK;
}

static void joining_nobody_does_not_wait(void **state)
{
    (void)state;
    simulated_and_on_threads("nobody", 20, join_nobody);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(Y4_a_quorum_of_two_in_three_is_approved_at_the_second_approval),
        cmocka_unit_test(Y4_a_missed_quorum_is_an_error_that_names_the_votes),
        cmocka_unit_test(Y4_a_quorum_that_is_not_reached_in_30_seconds_times_out),
        cmocka_unit_test(N7_a_quorum_with_one_hung_decider_ends_as_soon_as_it_is_decided),
        cmocka_unit_test(X10_the_quorum_is_what_was_asked_for),
        cmocka_unit_test(Y3_a_hundred_instances_wait_for_all_or_fail_over_the_threshold),
        cmocka_unit_test(X11_a_failure_threshold_does_not_stop_at_the_first_success),
        cmocka_unit_test(Y5_one_deadline_for_all_items_and_the_error_names_the_milliseconds),
        cmocka_unit_test(Y15_a_5_s_task_under_a_1_s_deadline_times_out),
        cmocka_unit_test(a_join_in_time_ends_the_deadline),
        cmocka_unit_test(Y5_deadlines_are_inherited_as_a_minimum),
        cmocka_unit_test(Y5_at_the_deadline_partial_results_are_kept),
        cmocka_unit_test(Y6_scopes_shut_down_on_failure_on_success_and_on_cancel),
        cmocka_unit_test(X9_the_three_names_are_presets_of_our_own_joins),
        cmocka_unit_test(Y7_join_with_a_deadline_and_ask_each_subtask),
        cmocka_unit_test(Y7_one_child_can_be_canceled_alone),
        cmocka_unit_test(Y8_the_owner_sees_the_first_failures_own_error),
        cmocka_unit_test(Y9_every_failure_is_collected_up_to_the_bound),
        cmocka_unit_test(joins_of_ones_own_use_the_same_hooks),
        cmocka_unit_test(joining_nobody_does_not_wait),
    };
    return hf_test_main("join", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
