/* See programs.h: what the programs share, and the activities. */
#include "replay/programs.h"
#include "replay/workflows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Notes ------------------------------------------------------------------------------------------------------- */

void note(notes *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(n->text + n->len, sizeof n->text - n->len, format, args);
    va_end(args);
    size_t left = sizeof n->text - 1 - n->len;
    n->len += len < 0 ? 0 : (size_t)len < left ? (size_t)len : left;
}

hf_status heard(notes *n, hf_status status)
{
    const char *name = hf_status_name(status);
    note(n, "%s ", strncmp(name, "HF_ERR_", 7) == 0 ? name + 7 : name);
    return status == HF_ERR_EVICTED ? status : HF_OK;
}

hf_status heard_why(notes *n, hf_status status)
{
    if (status == HF_OK || status == HF_ERR_EVICTED) {
        return heard(n, status);
    }
    for (const hf_failure *failure = hf_error(); failure != NULL; failure = failure->cause) {
        const char *name = hf_status_name(failure->status);
        note(n, "%s/%s ", name, failure->type);
    }
    return HF_OK;
}

hf_status notes_result(const notes *n, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "\"%s\"", n->text);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

static int64_t number_of(hf_payload in)
{
    return in.data != NULL ? strtoll(in.data, NULL, 10) : 0;
}

static hf_status act_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status act_slow(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(10), &shield));
    HF_TRY(hf_sleep(hf_milliseconds(number_of(in))));
    return hf_payload_copy(in, ret_out);
}

static hf_status act_beat(hf_payload in, hf_payload *ret_out)
{
    for (int64_t left = number_of(in); left > 0; left -= 1000) {
        hf_status status = hf_activity_heartbeat(in);
        status = status == HF_OK ? hf_sleep(hf_seconds(1)) : status;
        if (status != HF_OK) {
            HF_TRY(hf_payload_printf(ret_out, "\"gave up\""));
            return status;
        }
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status act_flaky(hf_payload in, hf_payload *ret_out)
{
    if (hf_activity_info()->attempt <= number_of(in)) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "attempt %d fails", hf_activity_info()->attempt);
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status act_refuse(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_activity_fail("declined", .type = "Declined", .is_final = true, .details = in);
}

static hf_status act_user(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_ERR_USER + 7;
}

static hf_status act_hang(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_hours(10));
}

hf_status programs_add_activities(hf_worker *worker)
{
    static const program ACTIVITIES[] = {
        {"echo", act_echo},     {"slow", act_slow}, {"beat", act_beat}, {"flaky", act_flaky},
        {"refuse", act_refuse}, {"user", act_user}, {"hang", act_hang},
    };
    for (size_t i = 0; i < sizeof ACTIVITIES / sizeof *ACTIVITIES; i++) {
        HF_TRY(hf_worker_add_activity(worker, ACTIVITIES[i].name, ACTIVITIES[i].function, .on_fiber = true));
    }
    return HF_OK;
}

static hf_status add_table(hf_worker *worker, const program *table)
{
    for (; table->name != NULL; table++) {
        HF_TRY(hf_worker_add_workflow(worker, table->name, table->function));
    }
    return HF_OK;
}

hf_status programs_add_workflows(hf_worker *worker)
{
    static const program FIRST[] = {{"spans", replay_spans}, {"attempts", replay_attempts}, {NULL, NULL}};
    HF_TRY(add_table(worker, FIRST));
    HF_TRY(add_table(worker, programs_of_verbs));
    HF_TRY(add_table(worker, programs_of_scopes));
    HF_TRY(add_table(worker, programs_of_cancels));
    HF_TRY(add_table(worker, programs_of_runs));
    HF_TRY(programs_add_locals(worker));
    HF_TRY(add_table(worker, programs_of_forks));
    HF_TRY(add_table(worker, programs_of_waits));
    HF_TRY(add_table(worker, programs_of_carry));
    return add_table(worker, programs_of_storm);
}
