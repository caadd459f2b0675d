/* Programs for calls that wait for each other: signals behind hf_continue_as_new, handlers in hf_handlers_wait, the start of a
 * child that is canceled, a quorum that is missed. */
#include "replay/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Signals that come when the next run was asked for ------------------------------------------------------------------ */

/* A child workflow that ends as many seconds after it was asked to. */
static hf_status lingers(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    long seconds = in.len > 0 ? strtol(in.data, NULL, 10) : 1;
    (void)ret_out;
    hf_status status = hf_sleep(hf_hours(1));
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(seconds)));
    return status;
}

static hf_status echo_note(void *arg, hf_payload in)
{
    ++*(int *)arg;
    return hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5));
}

static hf_status take_all(hf_payload *ret_out)
{
    notes n = {.len = 0};
    hf_payload out = hf_payload_none();
    hf_status status = HF_OK;
    while ((status = hf_signal_try("note", &out)) == HF_OK) {
        note(&n, "%s ", (const char *)out.data);
    }
    return status == HF_ERR_EVICTED ? status : notes_result(&n, ret_out);
}

/* While the child ends, "note" finds a handler and "go" finds a fiber that waits for it. */
static hf_status wait_for_go(void *arg)
{
    hf_status status = hf_signal_wait("go", NULL);
    *(hf_status *)arg = status;
    return status == HF_ERR_EVICTED ? status : HF_OK;
}

static hf_status next_signals(hf_payload in, hf_payload *ret_out)
{
    if (in.len > 0 && strcmp(in.data, "\"next\"") == 0) {
        return take_all(ret_out);
    }
    int *count = hf_workflow_alloc(sizeof *count);
    hf_status *gone = hf_workflow_alloc(sizeof *gone);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_on_signal("note", echo_note, .arg = count));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork_child(scope, "lingers", hf_payload_of_json("30"), NULL));
    HF_TRY(hf_fork(scope, wait_for_go, gone));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_continue_as_new(hf_payload_of_json("\"next\"")); /* the scope is closed behind it */
}

/* ---- Handlers that wait for each other ----------------------------------------------------------------------------------- */

typedef struct idle_state {
    notes n;
    int ended;
} idle_state;

static hf_status bounded_idle(notes *n, int64_t seconds)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(seconds)));
    HF_TRY(heard(n, hf_handlers_wait()));
    return heard(n, hf_join(scope));
}

static hf_status idle_note(void *arg, hf_payload in)
{
    idle_state *state = arg;
    long seconds = in.len > 0 ? strtol(in.data, NULL, 10) : 0;
    if (seconds < 0) { /* it works, and the others wait for it */
        HF_TRY(hf_sleep(hf_seconds(-seconds)));
    } else {
        HF_TRY(bounded_idle(&state->n, seconds));
    }
    note(&state->n, "%ld ", seconds);
    state->ended++;
    return hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5));
}

static hf_status handlers_idle(hf_payload in, hf_payload *ret_out)
{
    idle_state *state = HF_WORKFLOW_NEW(idle_state);
    (void)in;
    if (state == NULL) {
        return HF_ERR_NOMEM;
    }
    HF_TRY(hf_on_signal("note", idle_note, .arg = state));
    HF_TRY(hf_wait_until(state->ended > 0));
    HF_TRY(hf_handlers_wait());
    note(&state->n, "| ");
    HF_TRY(hf_wait_until(state->ended == 5));
    HF_TRY(hf_handlers_wait());
    return notes_result(&state->n, ret_out);
}

/* ---- The start of a child that is canceled --------------------------------------------------------------------------------- */

typedef struct starter {
    notes *n;
    hf_on_cancel how;
} starter;

static hf_status start_one(void *arg)
{
    const starter *self = arg;
    hf_status status = hf_child_start("lingers", hf_payload_of_json("3"), .on_cancel = self->how);
    HF_TRY(heard(self->n, status));
    return HF_OK;
}

/* The local activity outlives its workflow task, so the next one knows that the children were asked for, and not yet that they
 * have started. */
static hf_status child_start_cancel(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    {
        static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
        starter all[3];
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 3; i++) {
            all[i] = (starter){&n, HOWS[i]};
            HF_TRY(hf_fork(scope, start_one, &all[i]));
        }
        HF_TRY(heard(
            &n, hf_activity_run_local("local-nap", hf_payload_of_json("9"), NULL, .start_to_close = hf_minutes(1))));
        HF_TRY(hf_scope_cancel(scope));
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    return notes_result(&n, ret_out);
}

/* ---- A quorum that is missed ------------------------------------------------------------------------------------------------ */

static hf_status call_refuse(void *arg)
{
    (void)arg;
    return RUN("refuse", "1", .start_to_close = hf_seconds(5));
}

static hf_status fail_otherwise(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_raise_typed(HF_ERR_LIMIT, "Enough", "it is enough");
}

static hf_status quorum_missed(hf_payload in, hf_payload *ret_out)
{
    static hf_status (*const FIRST[])(void *) = {call_refuse, fail_otherwise};
    notes n = {.len = 0};
    (void)in;
    for (int i = 0; i < 2; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_QUORUM(2)));
        HF_TRY(hf_fork(scope, FIRST[i], NULL));
        HF_TRY(hf_fork_activity(scope, "refuse", hf_payload_of_json("2"), NULL, .start_to_close = hf_seconds(5)));
        HF_TRY(hf_fork_activity(scope, "echo", hf_payload_of_json("3"), NULL, .start_to_close = hf_seconds(5)));
        HF_TRY(heard_why(&n, hf_join(scope)));
        note(&n, "| ");
    }
    return notes_result(&n, ret_out);
}

const program programs_of_waits[] = {
    {"lingers", lingers},
    {"next-signals", next_signals},
    {"handlers-idle", handlers_idle},
    {"child-start-cancel", child_start_cancel},
    {"quorum-missed", quorum_missed},
    {NULL, NULL},
};
