/* What the programs of the storm do as runs: handlers of signals, queries and updates that come at any time, conditions,
 * children, signals and cancels to other runs, versions. See storm.h. */
#include "support/storm_private.h"

#include "base/base.h"
#include "base/rng.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef storm_walk walk;
typedef storm_common common;

/* ---- Handlers ------------------------------------------------------------------------------------------------------ */

/* A handler is a walk of its own. What it was told shows in the state of the run, which others read. */
static hf_status handle(common *all, uint64_t what)
{
    walk w = {hf_hash_mix(hf_hash_mix(all->seed, ++all->begun), what), 2, all};
    hf_status status = storm_block(&w, 2);
    if (status != HF_ERR_EVICTED) {
        all->state = hf_hash_mix(all->state, w.told);
    }
    return status;
}

static uint64_t number_of(hf_payload in)
{
    return in.len > 0 ? strtoull(in.data, NULL, 10) : 0;
}

static hf_status on_note(void *arg, hf_payload in)
{
    return handle(arg, number_of(in));
}

static hf_status on_any(void *arg, hf_payload in)
{
    common *all = arg;
    all->state = hf_hash_mix(all->state, number_of(in) + (uint64_t)hf_handler_name()[0]);
    return HF_OK;
}

static hf_status on_end(void *arg, hf_payload in)
{
    (void)in;
    ((common *)arg)->is_over = true;
    return HF_OK;
}

/* It may only look: each call below is refused. */
static hf_status on_state(void *arg, hf_payload in, hf_payload *ret_out)
{
    const common *all = arg;
    (void)in;
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_MISUSE && hf_yield() == HF_ERR_MISUSE);
    return hf_payload_printf(ret_out, "%" PRIu64, all->told);
}

static hf_status is_odd(void *arg, hf_payload in)
{
    const common *all = arg;
    return (number_of(in) + all->begun) % 3 != 0 ? HF_OK : hf_raise_typed(HF_ERR_FAILED, "Even", "not this one");
}

static hf_status on_update(void *arg, hf_payload in, hf_payload *ret_out)
{
    common *all = arg;
    hf_status status = handle(all, number_of(in) + (uint64_t)(unsigned char)hf_update_id()[0]);
    HF_TRY(status);
    if (all->state % 5 == 0) {
        return hf_raise(HF_ERR_FAILED, "by chance");
    }
    return hf_payload_printf(ret_out, "%" PRIu64, all->state);
}

hf_status storm_add_handlers(common *all)
{
    HF_TRY(hf_on_signal("end", on_end, .arg = all));
    return hf_on_query("state", on_state, .arg = all);
}

/* Some are replaced, some take signals that have waited for them. */
static hf_status add_handler(walk *w)
{
    switch (storm_draw(w, 6)) {
    case 0:
        return storm_hear(w, hf_on_signal("note", on_note, .arg = w->all));
    case 1:
        return storm_hear(w, hf_on_signal("other", storm_draw(w, 2) == 0 ? on_note : on_any, .arg = w->all));
    case 2:
        return storm_hear(w, hf_on_signal(NULL, on_any, .arg = w->all));
    case 3:
        return storm_hear(w, hf_on_update("up", on_update, .arg = w->all, .validator = is_odd));
    case 4:
        return storm_hear(w, hf_on_update(NULL, on_update, .arg = w->all, .may_be_left = true));
    default:
        return storm_hear(w, hf_on_query(NULL, on_state, .arg = w->all));
    }
}

static hf_status wait_for_handlers(walk *w)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(storm_hear(w, hf_scope_open(&scope, .timeout = storm_some_ticks(w, 6))));
    hf_status status = storm_hear(w, hf_handlers_wait());
    return status == HF_ERR_EVICTED ? status : storm_hear(w, hf_join(scope)); /* which knows whose cancel it was */
}

static hf_status wait_until(walk *w)
{
    const common *all = w->all;
    uint64_t rest = storm_draw(w, 3);
    return storm_hear(w, hf_wait_until(all->state % 3 == rest, .timeout = storm_some_wait(w, 8)));
}

/* By the clock of the run. */
static hf_status wait_for_time(walk *w)
{
    int64_t until = hf_wall_now(NULL).ns + storm_ticks(w, 4).ns;
    return storm_hear(w, hf_wait_until(hf_wall_now(NULL).ns >= until, .timeout = storm_some_wait(w, 8)));
}

static hf_status try_signal(walk *w)
{
    hf_payload out = {0};
    hf_status status = storm_hear(w, hf_signal_try(storm_draw(w, 2) == 0 ? "go" : "note", &out));
    w->told = hf_hash_mix(w->told, number_of(out));
    return status;
}

static hf_status side_main(void *arg)
{
    walk *w = arg;
    hf_status status = storm_block(w, 2);
    w->all->state = hf_hash_mix(w->all->state, w->told);
    return status == HF_ERR_EVICTED ? status : HF_OK; /* a failure would end the run */
}

/* Beside the main function, until it returns. */
static hf_status fork_beside(walk *w)
{
    walk *side = HF_WORKFLOW_NEW(walk);
    if (side == NULL || hf_workflow_scope() == NULL) {
        return storm_hear(w, HF_ERR_NOMEM);
    }
    *side = (walk){hf_hash_mix(w->told, 3), 2, w->all};
    return storm_hear(w, hf_fork(hf_workflow_scope(), side_main, side));
}

/* ---- Other runs ---------------------------------------------------------------------------------------------------- */

static hf_child_options child_options(walk *w)
{
    static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
    static const hf_parent_close CLOSES[] = {HF_PARENT_CLOSE_TERMINATE, HF_PARENT_CLOSE_CANCEL,
                                             HF_PARENT_CLOSE_ABANDON};
    return (hf_child_options){
        .size = sizeof(hf_child_options),
        .on_cancel = HOWS[storm_draw(w, HF_COUNT_OF(HOWS))],
        .parent_close = CLOSES[storm_draw(w, HF_COUNT_OF(CLOSES))],
        .run_timeout = storm_draw(w, 6) == 0 ? storm_some_ticks(w, 6) : hf_nanoseconds(0),
        .attempts_max = (int)storm_draw(w, 3),
        .retry_initial = hf_milliseconds(STORM_TICK_MS),
    };
}

static hf_status run_child(walk *w)
{
    char text[64];
    char id[64];
    hf_payload out = {0};
    if (w->all->is_child) {
        return storm_hear(w, hf_sleep(storm_ticks(w, 4)));
    }
    hf_child_options options = child_options(w);
    (void)snprintf(text, sizeof text, "\"%" PRIu64 " 0 child\"", w->told);
    (void)snprintf(id, sizeof id, "%s-kid-%d", hf_workflow_id(), (int)storm_draw(w, 3)); /* it may exist */
    options.id = storm_draw(w, 2) == 0 ? id : NULL;
    if (storm_draw(w, 3) == 0) {
        return storm_hear(w, hf_child_start_with("program", hf_payload_of_json(text), &options));
    }
    hf_status status = hf_child_run_with("program", hf_payload_of_json(text), &out, &options);
    w->told = hf_hash_mix(w->told, status == HF_OK ? number_of(out) : 0);
    return storm_hear(w, status);
}

/* Activities and children without fibers, under any join; the owner waits beside them, or cancels one. */
static hf_status fork_jobs(walk *w)
{
    enum { JOBS_MAX = 4 };
    hf_payload outs[JOBS_MAX] = {{0}};
    hf_branch *jobs[JOBS_MAX] = {NULL};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = storm_draw(w, 2) == 0 ? storm_some_ticks(w, 8) : HF_SPAN_UNLIMITED;
    size_t count = 1 + (size_t)storm_draw(w, JOBS_MAX);
    HF_TRY(storm_hear(w, hf_scope_open(&scope, .timeout = timeout, .join = storm_some_join(w))));
    for (size_t i = 0; i < count; i++) {
        static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
        char text[64];
        hf_status status = HF_OK;
        if (w->all->is_child || storm_draw(w, 3) > 0) {
            (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
            status = hf_fork_activity(scope, "act", hf_payload_of_json(text), &outs[i], .task_queue = "other",
                                      .start_to_close = storm_draw(w, 3) == 0 ? storm_some_ticks(w, 4) : hf_seconds(30),
                                      .attempts_max = 1 + (int)storm_draw(w, 2),
                                      .retry_initial = hf_milliseconds(STORM_TICK_MS),
                                      .on_cancel = HOWS[storm_draw(w, HF_COUNT_OF(HOWS))], .ret_branch = &jobs[i]);
        } else {
            hf_child_options options = child_options(w);
            (void)snprintf(text, sizeof text, "\"%" PRIu64 " 0 child\"", w->told);
            options.ret_branch = &jobs[i];
            status = hf_fork_child_with(scope, "program", hf_payload_of_json(text), &outs[i], &options);
        }
        (void)storm_hear(w, status);
    }
    if (storm_draw(w, 3) == 0 && storm_hear(w, hf_sleep(storm_ticks(w, 3))) == HF_ERR_EVICTED) {
        return HF_ERR_EVICTED;
    }
    if (storm_draw(w, 4) == 0 && jobs[0] != NULL) {
        (void)storm_hear(w, hf_branch_cancel(jobs[0]));
    }
    hf_status status = storm_hear(w, hf_join(scope));
    for (size_t i = 0; i < count && status != HF_ERR_EVICTED; i++) {
        if (jobs[i] != NULL) {
            (void)storm_hear(w, hf_branch_status(jobs[i]));
            w->told = hf_hash_mix(w->told, number_of(outs[i]));
        }
    }
    return status == HF_ERR_CANCELED ? HF_OK : status; /* the scope's own; the next wait reports an outer one */
}

static const char *some_run(walk *w, char id[64])
{
    switch (storm_draw(w, 3)) {
    case 0:
        return "nobody";
    case 1:
        (void)snprintf(id, 64, "program-%d", (int)storm_draw(w, 3)); /* itself, perhaps */
        return id;
    default:
        (void)snprintf(id, 64, "%s-kid-%d", hf_workflow_id(), (int)storm_draw(w, 3));
        return id;
    }
}

static hf_status signal_other(walk *w)
{
    char id[64];
    const char *to = some_run(w, id);
    return storm_hear(w, hf_external_signal(to, storm_draw(w, 2) == 0 ? "note" : "other", hf_payload_of_json("5")));
}

static hf_status cancel_other(walk *w)
{
    char id[64];
    const char *to = some_run(w, id);
    bool is_kid = strstr(to, "-kid-") != NULL; /* programs are canceled by clients: too many cancels show little */
    return storm_hear(w, hf_external_cancel(is_kid ? to : "nobody", "by chance"));
}

/* ---- Versions and facts ---------------------------------------------------------------------------------------------- */

static hf_status choose_version(walk *w)
{
    static const char *const IDS[] = {"a", "b", "c \"quoted\""};
    bool is_patched = hf_patched(IDS[storm_draw(w, HF_COUNT_OF(IDS))]);
    w->told = hf_hash_mix(w->told, is_patched);
    return storm_draw(w, 3) == 0 ? storm_hear(w, hf_patch_deprecate("old")) : HF_OK;
}

static hf_status read_facts(walk *w)
{
    const hf_workflow_facts *facts = hf_workflow_info();
    w->told = hf_hash_mix(hf_hash_mix(w->told, (uint64_t)facts->history_count), w->all->state);
    return HF_OK;
}

/* The text says which run published it, and its place among those of the run: whoever reads the stream knows what is missing. */
static hf_status publish(walk *w)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%s %d", hf_workflow_run_id(), w->all->published);
    hf_status status = hf_publish("storm", hf_payload_of_bytes(text, strlen(text)));
    w->all->published += status == HF_OK;
    return storm_hear(w, status);
}

hf_status storm_run_one(walk *w)
{
    static hf_status (*const KINDS[])(walk *) = {
        fork_jobs,
        fork_jobs,
        wait_for_time,
        add_handler,
        add_handler,
        add_handler,
        add_handler,
        wait_for_handlers,
        wait_until,
        wait_for_time,
        try_signal,
        fork_beside,
        run_child,
        run_child,
        signal_other,
        cancel_other,
        choose_version,
        choose_version,
        read_facts,
        storm_run_local,
        storm_run_local,
        storm_look_outside,
        storm_run_saga,
        storm_wait_for_any,
        storm_select_signal,
        storm_set_facts,
        storm_sleep_until,
        publish,
        publish,
    };
    return KINDS[storm_draw(w, HF_COUNT_OF(KINDS))](w);
}
