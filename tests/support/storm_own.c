/* What the programs of the storm do by the worker that runs them, and with several things at once: local activities, side
 * effects, sagas, waits for one of several signals, memo and search attributes. See storm.h. */
#include "support/storm_private.h"

#include "base/base.h"
#include "base/rng.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef storm_walk walk;

static uint64_t number_of(hf_payload in)
{
    return in.len > 0 ? strtoull(in.data, NULL, 10) : 0;
}

/* ---- Executed by the same worker ----------------------------------------------------------------------------------- */

hf_status storm_local(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = number_of(in);
    uint64_t chance = hf_hash_mix(number, 100 + (uint64_t)hf_activity_info()->attempt);
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(chance % 4) * STORM_TICK_MS)));
    if (chance % 5 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    return hf_payload_printf(ret_out, "%" PRIu64, chance % 1000);
}

hf_status storm_run_local(walk *w)
{
    static const hf_on_cancel HOWS[] = {HF_CANCEL_WAIT, HF_CANCEL_WAIT, HF_CANCEL_TRY, HF_CANCEL_ABANDON};
    char text[32];
    hf_payload out = {0};
    (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
    hf_span bound = storm_some_ticks(w, 3);
    hf_status status = hf_activity_run_local(
        "local", hf_payload_of_json(text), &out, .start_to_close = storm_draw(w, 3) == 0 ? bound : hf_seconds(5),
        .schedule_to_close = storm_draw(w, 5) == 0 ? storm_some_ticks(w, 6) : hf_nanoseconds(0),
        .attempts_max = 1 + (int)storm_draw(w, 3), .retry_initial = hf_milliseconds(STORM_TICK_MS),
        .timer_after = storm_draw(w, 2) == 0 ? hf_milliseconds(STORM_TICK_MS) : hf_nanoseconds(0),
        .on_cancel = HOWS[storm_draw(w, HF_COUNT_OF(HOWS))]);
    w->told = hf_hash_mix(w->told, status == HF_OK ? number_of(out) : 0);
    return storm_hear(w, status);
}

/* From outside: it differs whenever it is asked for, but not in a replay. */
static hf_status look_outside(void *arg, hf_payload *ret_out)
{
    static _Atomic(uint64_t) count;
    uint64_t value = hf_hash_mix(*(const uint64_t *)arg, count++);
    return value % 7 == 0 ? hf_raise_typed(HF_ERR_FAILED, "Blind", "nothing is seen")
                          : hf_payload_printf(ret_out, "%" PRIu64, value % 1000);
}

hf_status storm_look_outside(walk *w)
{
    uint64_t seed = w->told;
    hf_payload out = {0};
    hf_status status = hf_side_effect(look_outside, &seed, &out);
    w->told = hf_hash_mix(w->told, status == HF_OK ? number_of(out) : 0);
    return storm_hear(w, status);
}

/* ---- Sagas ---------------------------------------------------------------------------------------------------------- */

hf_status storm_run_saga(walk *w)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    HF_TRY(storm_hear(w, hf_saga_open(&saga, .bound = storm_draw(w, 3) == 0 ? storm_some_ticks(w, 6) : hf_hours(1))));
    for (uint64_t i = storm_draw(w, 3) + 1; i > 0; i--) {
        char text[32];
        (void)snprintf(text, sizeof text, "%d", (int)(w->told % 100000));
        HF_TRY(storm_hear(w, hf_saga_add(saga, "act", hf_payload_of_json(text), .task_queue = "other",
                                         .start_to_close = hf_seconds(30), .attempts_max = 2,
                                         .retry_initial = hf_milliseconds(STORM_TICK_MS))));
        hf_status status = storm_hear(w, hf_activity_run("act", hf_payload_of_json(text), NULL, .task_queue = "other",
                                                         .start_to_close = hf_seconds(30), .attempts_max = 1));
        if (status == HF_ERR_EVICTED || (status == HF_ERR_CANCELED && storm_draw(w, 2) == 0)) {
            return status; /* which undoes */
        }
    }
    hf_status status = HF_OK; /* left: it is undone behind this */
    switch (storm_draw(w, 3)) {
    case 0:
        return storm_hear(w, hf_saga_commit(saga));
    case 1:
        status = storm_hear(w, hf_saga_undo(saga));
        return status == HF_ERR_CANCELED ? HF_OK : status; /* by the saga's bound, which ends with it */
    default:
        return status;
    }
}

/* ---- One of several signals ----------------------------------------------------------------------------------------- */

hf_status storm_wait_for_any(walk *w)
{
    static const char *const NAMES[] = {"go", "note", "other"};
    size_t idx = 9;
    hf_payload out = {0};
    hf_status status =
        hf_signal_wait_any(NAMES, 1 + (size_t)storm_draw(w, 3), &idx, &out, .timeout = storm_some_wait(w, 8));
    w->told = hf_hash_mix(w->told, status == HF_OK ? idx * 1000 + number_of(out) : 0);
    return storm_hear(w, status);
}

hf_status storm_select_signal(walk *w)
{
    hf_signal_case go = {.name = "go"};
    hf_signal_case other = {.name = storm_draw(w, 2) == 0 ? "other" : "note"};
    uint64_t got = 0;
    size_t which = 9;
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &go},
                       {.kind = HF_CASE_RECV, .chan = w->all->chan, .value = &got},
                       {.kind = HF_CASE_SIGNAL, .value = &other}};
    hf_status status = hf_select(cases, 3, &which, .timeout = storm_some_wait(w, 8));
    w->told = hf_hash_mix(w->told, got + which * 1000 + number_of(go.payload) + number_of(other.payload));
    return storm_hear(w, status);
}

hf_status storm_prepare(hf_service *service)
{
    return hf_search_attribute_add(service, "Count", HF_SEARCH_INT);
}

/* ---- What others see of the run -------------------------------------------------------------------------------------- */

hf_status storm_set_facts(walk *w)
{
    int64_t count = (int64_t)storm_draw(w, 100);
    if (storm_draw(w, 2) == 0) {
        return storm_hear(w, hf_memo_set(hf_field_int("count", count), hf_field_null("gone")));
    }
    return storm_hear(w, hf_search_set(hf_field_int("Count", count)));
}

hf_status storm_sleep_until(walk *w)
{
    char text[40];
    int64_t until = hf_wall_now(NULL).ns + storm_ticks(w, 4).ns;
    HF_TRY(storm_hear(w, hf_uuid(text)));
    w->told = hf_hash_mix(w->told, (uint64_t)(unsigned char)text[0]);
    hf_note(HF_LOG_DEBUG, "storm", "told=%" PRIu64, w->told);
    return storm_hear(w, hf_sleep_until((hf_time){until}));
}
