/* Programs for what belongs to a run itself: local activities, side effects, patches, memo and search attributes, sagas, and
 * waits for one of several signals. */
#include "replay/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Local activities ------------------------------------------------------------------------------------------------ */

static hf_status local_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status local_nap(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(in.len > 0 ? strtol(in.data, NULL, 10) : 0)));
    return hf_payload_copy(in, ret_out);
}

static hf_status local_flaky(hf_payload in, hf_payload *ret_out)
{
    if (hf_activity_info()->attempt <= strtol(in.data, NULL, 10)) {
        return hf_activity_fail("not yet", .type = "Flaky");
    }
    return hf_payload_printf(ret_out, "%d", hf_activity_info()->attempt);
}

static hf_status local_refuse(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_activity_fail("no", .type = "Declined", .is_final = true, .details = hf_payload_of_json("[7]"));
}

hf_status programs_add_locals(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "local-echo", local_echo, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "local-nap", local_nap, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "local-flaky", local_flaky, .on_fiber = true));
    return hf_worker_add_activity(worker, "local-refuse", local_refuse, .on_fiber = true);
}

#define LOCAL(name, json, out, ...) hf_activity_run_local((name), hf_payload_of_json(json), (out), __VA_ARGS__)

static hf_status effect(void *arg, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "%d", *(const int *)arg);
}

typedef struct napper {
    notes *n;
    const char *seconds;
} napper;

static hf_status nap_twice(void *arg)
{
    const napper *self = arg;
    for (int i = 0; i < 2; i++) {
        HF_TRY(LOCAL("local-nap", self->seconds, NULL, .start_to_close = hf_minutes(1)));
        note(self->n, "%s.", self->seconds);
    }
    return HF_OK;
}

static hf_status locals(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    int seven = 7;
    hf_payload out = hf_payload_none();
    (void)in;
    HF_TRY(heard(&n, LOCAL("local-echo", "1", &out, .start_to_close = hf_seconds(5))));
    note(&n, "%s ", (const char *)out.data);
    HF_TRY(heard(&n, LOCAL("local-flaky", "2", &out, .start_to_close = hf_seconds(5))));
    note(&n, "%s ", (const char *)out.data);
    HF_TRY(heard_why(&n, LOCAL("local-refuse", "0", NULL, .start_to_close = hf_seconds(5), .ret_details = &out)));
    note(&n, "%s ", (const char *)out.data);
    HF_TRY(heard(&n, hf_side_effect(effect, &seven, &out)));
    note(&n, "%s ", (const char *)out.data);
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(&n, LOCAL("local-nap", "30", NULL, .start_to_close = hf_seconds(2), .attempts_max = 2)));
    HF_TRY(heard(&n, LOCAL("local-flaky", "2", &out, .start_to_close = hf_seconds(5), .retry_initial = hf_minutes(2))));
    note(&n, "%s ", (const char *)out.data);
    {
        napper all[] = {{&n, "3"}, {&n, "2"}};
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, nap_twice, &all[0]));
        HF_TRY(hf_fork(scope, nap_twice, &all[1]));
        HF_TRY(hf_join(scope));
    }
    return notes_result(&n, ret_out);
}

/* ---- Patches, memo, search attributes -------------------------------------------------------------------------------- */

static hf_status patches(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    note(&n, "%d ", hf_patched("first"));
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    note(&n, "%d %d ", hf_patched("second \"quoted\""), hf_patched("first"));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5))));
    HF_TRY(heard(&n, hf_patch_deprecate("third")));
    HF_TRY(heard(&n, hf_memo_set(hf_field_text("who", "ada"), hf_field_int("count", 3))));
    HF_TRY(heard(&n, hf_search_set(hf_field_text("City", "Kiel"), hf_field_bool("Done", false))));
    HF_TRY(heard(&n, hf_sleep_until((hf_time){hf_wall_now(NULL).ns + hf_minutes(3).ns})));
    HF_TRY(heard(&n, hf_memo_set(hf_field_null("who"))));
    return notes_result(&n, ret_out);
}

/* ---- Signals and sagas ------------------------------------------------------------------------------------------------- */

static hf_status anysignal(hf_payload in, hf_payload *ret_out)
{
    static const char *const NAMES[] = {"go", "stop", "wait"};
    notes n = {.len = 0};
    (void)in;
    for (int i = 0; i < 3; i++) {
        size_t idx = 9;
        hf_payload out = hf_payload_none();
        HF_TRY(heard(&n, hf_signal_wait_any(NAMES, 3, &idx, &out, .timeout = hf_seconds(30))));
        note(&n, "%zu %s ", idx, out.len > 0 ? (const char *)out.data : "");
    }
    hf_signal_case go = {.name = "go"};
    hf_signal_case stop = {.name = "stop"};
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &go}, {.kind = HF_CASE_SIGNAL, .value = &stop}};
    size_t idx = 9;
    HF_TRY(heard(&n, hf_select(cases, 2, &idx, .timeout = hf_seconds(60))));
    note(&n, "%zu ", idx);
    return notes_result(&n, ret_out);
}

static hf_status sagas(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)ret_out;
    HF_TRY(hf_saga_open(&saga));
    HF_TRY(hf_saga_add(saga, "echo", hf_payload_of_json("-1"), .start_to_close = hf_seconds(5)));
    HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
    HF_TRY(hf_saga_add(saga, "refuse", hf_payload_of_json("-2"), .start_to_close = hf_seconds(5)));
    HF_TRY(hf_activity_run("slow", hf_payload_of_json("60000"), NULL, .start_to_close = hf_minutes(5)));
    return hf_raise_typed(HF_ERR_FAILED, "SoldOut", "nothing is left");
}

const program programs_of_runs[] = {
    {"locals", locals}, {"patches", patches}, {"anysignal", anysignal}, {"sagas", sagas}, {NULL, NULL}};
