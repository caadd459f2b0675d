/* Speculative workflow tasks: for updates, which may leave no trace.
 *
 * An update that finds no workflow task needs one, and if the workflow's code rejects it, nothing has happened. So that task is not written:
 * it is part of hf_unwritten, and its two events are only shown to the worker that takes it, with the ids that would come next.
 * If its answer does nothing but reject, it is dropped. The worker is told to forget what it saw (reset_history_event_id), and other
 * events get the same ids later.
 *
 * Anything that changes the run makes it an ordinary task before that: its events are written, with the ids that the worker has seen, and the
 * change follows or is buffered. That happens in one place (emit.c). So do a failure, a timeout and every other answer.
 *
 * engine-V1  While there is one, the run has no workflow task of its own, and its ids are the next two of the run's history.
 * engine-V2  A token of one never fits another, although the two may have the same ids and times: it is made of the request id, which no
 *     other start has, in this opening or in another. */
#include "engine/machines/speculative.h"

#include "base/canary.h"
#include "engine/core_private.h"
#include "engine/due.h"
#include "engine/machines/machines.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "history/limits.h"

#define TOKEN_BIT 0x40000000 /* of a token's attempt: its stamp is made of the request id */

static hf_wft *one_of(const hf_run *run)
{
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    return unwritten != NULL && unwritten->speculative.state != HF_WFT_NONE ? &unwritten->speculative : NULL;
}

hf_wft_state hf_wft_state_now(const hf_run *run)
{
    const hf_wft *wft = one_of(run);
    hf_assert(wft == NULL || run->wft.state == HF_WFT_NONE); /* engine-V1 */
    return wft != NULL ? wft->state : run->wft.state;
}

const hf_wft *hf_wft_now(const hf_run *run)
{
    const hf_wft *wft = one_of(run);
    return wft != NULL ? wft : &run->wft;
}

const hf_wft *hf_speculative_started(const hf_run *run)
{
    const hf_wft *wft = one_of(run);
    return wft != NULL && wft->state == HF_WFT_STARTED ? wft : NULL;
}

static int64_t stamp_of(const hf_core *core, const hf_wft *wft)
{
    return (int64_t)(hf_siphash(core->mac_key, hf_owned_str(&wft->request_id)) & INT64_MAX);
}

void hf_speculative_token(const hf_core *core, const hf_wft *wft, hf_token *token)
{
    token->attempt = wft->attempt | TOKEN_BIT;
    token->stamp = stamp_of(core, wft);
}

bool hf_wft_holds(const hf_core *core, const hf_run *run, const hf_token *token)
{
    if (token->kind != HF_TASK_WORKFLOW) {
        return false;
    }
    if ((token->attempt & TOKEN_BIT) == 0) {
        return hf_wft_is(run, token->scheduled_id, token->started_id, token->attempt, token->stamp);
    }
    const hf_wft *wft = hf_speculative_started(run) != NULL ? hf_speculative_started(run) : &run->wft;
    return wft->state == HF_WFT_STARTED && token->scheduled_id == wft->scheduled_id &&
           token->started_id == wft->started_id && token->attempt == (wft->attempt | TOKEN_BIT) &&
           (token->stamp == stamp_of(core, wft) || HF_CANARY(HF_BUG_SPECULATIVE_REUSED)); /* engine-V2 */
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------------- */

static void put_into_queue(hf_core *core, hf_run *run, hf_wft *wft)
{
    hf_str name = hf_owned_str(wft->sticky ? &run->sticky_queue : &run->task_queue);
    hf_match_add(core, &wft->task, hf_queue_get(core, 'w', hf_owned_str(&run->namespace), name));
}

void hf_speculative_schedule(hf_core *core, hf_run *run)
{
    hf_assert(hf_wft_state_now(run) == HF_WFT_NONE);
    if (!hf_run_is_open(run)) {
        return;
    }
    if (run->wft.attempt != 1 || run->wft.completed_id == 0) {
        hf_wft_schedule_now(core, run); /* a first task is always written */
        return;
    }
    if (hf_execution_is_too_long(core, run, 1)) { /* it may have to be written */
        return;
    }
    HF_PROBE(core, HF_PROBE_SPECULATIVE);
    hf_wft *wft = &HF_SLOT(run)->unwritten->speculative;
    wft->state = HF_WFT_SCHEDULED;
    wft->is_transient = true;
    wft->again = false;
    wft->sticky = hf_wft_wants_sticky(core, run);
    wft->attempt = 1;
    wft->scheduled_id = run->event_count + 1;
    wft->started_id = run->event_count + 2;
    wft->scheduled_time = core->now.wall;
    wft->started_time = 0;
    wft->timeout = hf_wft_timeout(core, run, 1);
    wft->last_started_id = run->wft.last_started_id;
    wft->completed_id = run->wft.completed_id;
    wft->task = (hf_task){.run = run, .is_speculative = true, .order = hf_order_next(core)};
    put_into_queue(core, run, wft);
    hf_due_at(core, run, hf_speculative_due(run));
}

void hf_speculative_unstick(hf_core *core, hf_run *run)
{
    hf_wft *wft = one_of(run);
    if (wft != NULL && wft->sticky && wft->task.queue != NULL) {
        HF_PROBE(core, HF_PROBE_STICKY_MOVED);
        hf_match_remove(core, &wft->task);
        wft->sticky = false;
        put_into_queue(core, run, wft);
    }
}

void hf_speculative_again(hf_core *core, hf_run *run)
{
    hf_wft *wft = one_of(run);
    if (wft != NULL && wft->state == HF_WFT_STARTED && !wft->again) {
        HF_PROBE(core, HF_PROBE_TASK_AGAIN);
        wft->again = true;
        wft->sticky = false;
        wft->task.order = hf_order_next(core);
        put_into_queue(core, run, wft);
    }
}

/* ---- Started ----------------------------------------------------------------------------------------------------------- */

/* engine-V2: nothing that survives a crash may be in it. */
static hf_str request_id_of(hf_core *core)
{
    uint64_t number = ++core->query_count;
    uint64_t high = hf_siphash(core->options.seed, hf_str_of_len(&number, sizeof number));
    return hf_uuid_in(&core->scratch, high, hf_hash_mix(high, number));
}

void hf_speculative_start(hf_core *core, hf_run *run, hf_call *call)
{
    const hf_pb_poll_workflow_task_queue_request *request = call->request;
    hf_wft *wft = one_of(run);
    hf_assert(wft != NULL && wft->task.queue == NULL && wft->scheduled_id == run->event_count + 1); /* engine-V1 */
    bool again = wft->again;
    bool sticky = wft->sticky;
    if (!again) {
        wft->state = HF_WFT_STARTED;
        wft->has_many_updates = hf_updates_are_many(core, run, true);
        wft->started_time = core->now.wall > run->last_time ? core->now.wall : run->last_time;
        hf_owned_set(&core->runs_memory, &wft->request_id, request_id_of(core));
    }
    hf_assert(hf_owned_str(&wft->request_id).len > 0 || core->status != HF_OK ||
              core->scratch.status != HF_OK); /* engine-V2 */
    wft->again = false;
    wft->incarnation = call->in_process ? core->incarnation : 0;
    hf_owned_set(&core->runs_memory, &wft->identity, request->identity);
    hf_due_at(core, run, hf_speculative_due(run));
    if (core->status == HF_OK) {
        hf_wft_answer(core, run, wft, call, sticky, again);
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

static void forget(hf_core *core, hf_wft *wft)
{
    hf_match_remove(core, &wft->task);
    hf_owned_free(&core->runs_memory, &wft->identity);
    hf_owned_free(&core->runs_memory, &wft->request_id);
    *wft = (hf_wft){0};
}

static void convert(hf_core *core, hf_run *run, hf_str identity)
{
    hf_wft *wft = one_of(run);
    if (wft == NULL || core->status != HF_OK) {
        return;
    }
    HF_PROBE(core, HF_PROBE_SPECULATIVE_CONVERTED);
    hf_assert(wft->scheduled_id == run->event_count + 1 && hf_run_is_open(run)); /* engine-V1 */
    hf_wft was = *wft;                                                           /* owns the texts now */
    hf_match_remove(core, &wft->task);
    *wft = (hf_wft){0};
    hf_wft_write(core, run, &was, identity);
    hf_assert(core->status != HF_OK || run->wft.scheduled_id == was.scheduled_id);
    hf_owned_free(&core->runs_memory, &was.identity);
    hf_owned_free(&core->runs_memory, &was.request_id);
}

void hf_speculative_make_real(hf_core *core, hf_run *run)
{
    convert(core, run, HF_STR(""));
}

void hf_speculative_answered(hf_core *core, hf_run *run)
{
    const hf_wft *wft = one_of(run);
    convert(core, run, wft != NULL ? hf_arena_copy(&core->scratch, hf_owned_str(&wft->identity)) : HF_STR(""));
}

void hf_speculative_discard(hf_core *core, hf_run *run)
{
    hf_wft *wft = one_of(run);
    hf_assert(wft != NULL);
    HF_PROBE(core, HF_PROBE_SPECULATIVE_DROPPED);
    forget(core, wft);
    hf_unwritten_mark(core, HF_SLOT(run)->unwritten);
}

void hf_speculative_close(hf_core *core, hf_run *run)
{
    const hf_wft *wft = one_of(run);
    if (wft != NULL && wft->state == HF_WFT_SCHEDULED) {
        hf_speculative_discard(core, run);
    } else {
        convert(core, run, HF_IDENTITY_ENGINE);
    }
}

int64_t hf_speculative_due(const hf_run *run)
{
    const hf_wft *wft = one_of(run);
    if (wft == NULL) {
        return INT64_MAX;
    }
    if (wft->state == HF_WFT_STARTED) {
        return hf_bound_end(wft->started_time, wft->timeout);
    }
    return wft->sticky ? hf_bound_end(wft->scheduled_time, run->sticky_timeout) : INT64_MAX;
}

void hf_speculative_free(hf_core *core, hf_unwritten *unwritten)
{
    forget(core, &unwritten->speculative);
}

uint64_t hf_speculative_hash(const hf_unwritten *unwritten, uint64_t hash)
{
    const hf_wft *wft = &unwritten->speculative;
    hash = hf_hash_mix(hash, (uint64_t)wft->state * 4 + (wft->sticky ? 2 : 0) + (wft->again ? 1 : 0));
    hash = hf_hash_mix(hash, (uint64_t)wft->started_time);
    return hf_hash_mix(hash, (uint64_t)wft->task.order);
}
