/* Programs that are canceled: by a scope, by a branch, by the run's client; and what races with that. */
#include "replay/programs.h"

#include <stdio.h>
#include <string.h>

/* ---- Children to cancel ---------------------------------------------------------------------------------------------- */

typedef struct job {
    notes *n;
    const char *activity; /* NULL = sleep; "" = wait for the signal "never" */
    const char *in;
    char mark;
} job;

static hf_status job_body(void *arg)
{
    job *j = arg;
    hf_payload details = hf_payload_none();
    hf_status status = HF_OK;
    if (j->activity == NULL) {
        status = hf_sleep(hf_seconds(30));
    } else if (j->activity[0] == '\0') {
        status = hf_signal_wait("never", NULL, .timeout = hf_seconds(30));
    } else {
        status = hf_activity_run(j->activity, hf_payload_of_json(j->in), NULL, .start_to_close = hf_minutes(1),
                                 .heartbeat = strcmp(j->activity, "beat") == 0 ? hf_seconds(10) : hf_nanoseconds(0),
                                 .attempts_max = 1, .ret_details = &details);
    }
    if (status != HF_ERR_EVICTED) {
        const char *reason = NULL;
        note(j->n, "%c:%d:", j->mark, (int)hf_cancel_cause(&reason));
        HF_TRY(heard(j->n, status));
    }
    return status;
}

static hf_status fork_jobs(hf_scope *scope, job *jobs, size_t count, hf_branch **ret_branches)
{
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, job_body, &jobs[i], .ret_branch = &ret_branches[i]));
    }
    return HF_OK;
}

#define JOBS(n)                                                                          \
    {                                                                                    \
        {(n), "slow", "5000", 'a'}, {(n), "beat", "30000", 'b'}, {(n), NULL, NULL, 'c'}, \
        {                                                                                \
            (n), "", NULL, 'd'                                                           \
        }                                                                                \
    }
enum { JOBS_COUNT = 4 };

/* ---- By a scope -------------------------------------------------------------------------------------------------------- */

static hf_status scope_cancel(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    job jobs[] = JOBS(&n);
    hf_branch *branches[JOBS_COUNT];
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(fork_jobs(scope, jobs, JOBS_COUNT, branches));
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_TRY(heard(&n, hf_scope_cancel(scope, .reason = "enough")));
        HF_TRY(heard(&n, hf_sleep(hf_seconds(1)))); /* the owner is inside */
        HF_TRY(heard(&n, hf_fork(scope, job_body, &jobs[0])));
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(20))));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        HF_TRY(fork_jobs(scope, jobs, JOBS_COUNT, branches));
        for (int i = JOBS_COUNT - 1; i >= 0; i--) { /* one by one, last first */
            HF_TRY(hf_sleep(hf_milliseconds(500)));
            HF_TRY(heard(&n, hf_branch_cancel(branches[i])));
        }
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(20))));
    return notes_result(&n, ret_out);
}

/* Asked for and given up in one step: nothing is sent, but the numbers are used up. */
static hf_status same_step(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    job jobs[] = JOBS(&n);
    hf_branch *branches[JOBS_COUNT];
    (void)in;
    for (int round = 0; round < 3; round++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(
            hf_scope_open(&scope, .join = HF_JOIN_COLLECT, .timeout = round == 2 ? hf_minutes(1) : HF_SPAN_UNLIMITED));
        HF_TRY(fork_jobs(scope, jobs, JOBS_COUNT, branches));
        HF_TRY(hf_yield());
        if (round == 0) {
            HF_TRY(heard(&n, hf_scope_cancel(scope)));
            HF_TRY(heard(&n, hf_join(scope)));
        } else if (round == 1) {
            HF_TRY(heard(&n, hf_branch_cancel(branches[0])));
            HF_TRY(heard(&n, hf_branch_cancel(branches[2])));
            HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5)))); /* the others are sent */
        }
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5))));
    HF_TRY(heard(&n, hf_sleep(hf_minutes(1))));
    return notes_result(&n, ret_out);
}

typedef struct named {
    const char *in;
    const char *activity;
} named;

static hf_status named_body(void *arg)
{
    const named *a = arg;
    return hf_activity_run(a->activity, hf_payload_of_json(a->in), NULL, .start_to_close = hf_minutes(1),
                           .heartbeat = hf_seconds(20), .attempts_max = 1, .id = "named");
}

/* The id of a canceled activity is in use until the activity has ended. */
static hf_status ids_in_use(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    named slow = {"3000", "slow"};
    named beat = {"30000", "beat"};
    named *both[] = {&slow, &beat};
    (void)in;
    for (int round = 0; round < 2; round++) {
        {
            HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
            HF_TRY(hf_scope_open(&scope));
            HF_TRY(hf_fork(scope, named_body, both[round]));
            HF_TRY(hf_yield());
            HF_TRY(heard(&n, named_body(&slow))); /* is being scheduled */
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_TRY(heard(&n, named_body(&slow))); /* runs */
            HF_TRY(hf_scope_cancel(scope));
        }
        HF_TRY(heard(&n, named_body(&slow))); /* was asked to end */
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(heard(&n, named_body(&slow)));
        HF_TRY(hf_sleep(hf_seconds(30)));
        HF_TRY(heard(&n, named_body(&slow))); /* has ended */
    }
    return notes_result(&n, ret_out);
}

/* ---- By the client ------------------------------------------------------------------------------------------------------ */

/* Everything waits when the run is canceled; then it cleans up in a shield, and ends canceled, with a result. */
static hf_status run_cancel(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    job jobs[] = JOBS(&n);
    hf_branch *branches[JOBS_COUNT];
    const char *reason = NULL;
    hf_status status = HF_OK;
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(fork_jobs(scope, jobs, JOBS_COUNT, branches));
        status = hf_join(scope);
        HF_TRY(heard(&n, status));
    }
    note(&n, "%d ", (int)hf_cancel_cause(&reason));
    note(&n, "%s ", reason);
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5))));
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(&n, hf_signal_wait("never", NULL)));
    {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_minutes(1), &shield));
        HF_TRY(heard(&n, RUN("echo", "2", .start_to_close = hf_seconds(5), .id = "undo")));
        HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    }
    HF_TRY(notes_result(&n, ret_out));
    return hf_raise(HF_ERR_CANCELED, "as it was asked to");
}

/* The same, but the run ends as if nothing had happened. */
static hf_status run_cancel_ignored(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    HF_TRY(heard(&n, RUN("slow", "5000", .start_to_close = hf_minutes(1))));
    HF_TRY(heard(&n, hf_sleep(hf_seconds(5))));
    HF_TRY(heard(&n, hf_canceled()));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    HF_TRY(heard(&n, hf_sleep(hf_seconds(5))));
    return notes_result(&n, ret_out);
}

/* A cancel that comes into a shield; and ends with the status of the call that it ended. */
static hf_status run_cancel_shielded(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    (void)ret_out;
    {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_seconds(10), &shield));
        HF_TRY(heard(&n, RUN("slow", "3000", .start_to_close = hf_minutes(1))));
        HF_TRY(heard(&n, hf_canceled()));
    }
    HF_TRY(RUN("echo", n.text[0] == 'H' ? "1" : "0", .start_to_close = hf_minutes(1)));
    return HF_OK;
}

/* ---- Races --------------------------------------------------------------------------------------------------------------- */

/* A fiber that cancels the scope when the signal comes. */
static hf_status cancel_on_signal(void *arg)
{
    HF_TRY(hf_signal_wait("stop", NULL));
    return hf_scope_cancel(arg);
}

/* Signals, ends, fired timers and a cancel reach the code in one step, because no worker was there meanwhile. */
static hf_status one_step(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    job jobs[] = {{&n, "slow", "1000", 'a'},
                  {&n, "refuse", "2", 'b'},
                  {&n, NULL, NULL, 'c'},
                  {&n, "beat", "600000", 'd'},
                  {&n, "slow", "2000", 'e'}};
    hf_branch *branches[5];
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        HF_TRY(fork_jobs(scope, jobs, 5, branches));
        HF_TRY(hf_fork(scope, cancel_on_signal, scope));
        HF_TRY(heard(&n, hf_signal_wait("go", NULL, .timeout = hf_seconds(40))));
        HF_TRY(heard(&n, hf_sleep(hf_seconds(40))));
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(heard(&n, hf_sleep(hf_seconds(20))));
    HF_TRY(heard(&n, hf_signal_wait("go", NULL, .timeout = hf_seconds(1))));
    return notes_result(&n, ret_out);
}

/* The run waits for several things, and each may be first. */
static hf_status either(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    for (int i = 0; i < 4; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        job jobs[] = {{&n, "slow", "2000", 'a'}, {&n, "", NULL, 'b'}};
        hf_branch *branches[2];
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_ANY, .timeout = hf_seconds(1 + i)));
        HF_TRY(fork_jobs(scope, jobs, 2, branches));
        HF_TRY(hf_fork(scope, cancel_on_signal, scope));
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(10))));
    return notes_result(&n, ret_out);
}

/* Ends as soon as the signal comes, so that its last task meets news. */
static hf_status meets_news(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    HF_TRY(heard(&n, hf_signal_wait("go", NULL)));
    while (hf_signal_wait("go", NULL, .timeout = HF_SPAN_OFF) == HF_OK) {
        note(&n, "more ");
    }
    return notes_result(&n, ret_out);
}

const program programs_of_cancels[] = {
    {"scope-cancel", scope_cancel},
    {"same-step", same_step},
    {"ids-in-use", ids_in_use},
    {"run-cancel", run_cancel},
    {"run-cancel-ignored", run_cancel_ignored},
    {"run-cancel-shielded", run_cancel_shielded},
    {"one-step", one_step},
    {"either", either},
    {"meets-news", meets_news},
    {NULL, NULL},
};
