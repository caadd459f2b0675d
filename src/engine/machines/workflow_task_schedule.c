/* Workflow tasks are scheduled, and put into the queue where a poll finds them. Their states: run/machines/workflow_task.c. */
#include "engine/machines/workflow_task_private.h"

#include "base/canary.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/suspect.h"
#include "history/limits.h"

#define TASK_TIMEOUT_DEFAULT (INT64_C(10) * 1000000000)
#define STRETCH_FROM_ATTEMPT 4                     /* later attempts get more time ... */
#define STRETCH_FIRST (INT64_C(5) * 1000000000)    /* ... by this, doubled each time ... */
#define STRETCH_MAX (INT64_C(600) * 1000000000)    /* ... up to this */
#define STICKY_IDLE_MAX (INT64_C(10) * 1000000000) /* a sticky queue that was not polled for this long is skipped */

int64_t hf_wft_timeout(hf_core *core, const hf_run *run, int32_t attempt)
{
    int64_t timeout = run->task_timeout > 0 ? run->task_timeout : TASK_TIMEOUT_DEFAULT;
    if (attempt >= STRETCH_FROM_ATTEMPT) {
        int64_t more = STRETCH_FIRST;
        for (int32_t i = STRETCH_FROM_ATTEMPT; i < attempt && more < STRETCH_MAX; i++) {
            more *= 2;
        }
        more = more < STRETCH_MAX ? more : STRETCH_MAX;
        timeout = timeout > INT64_MAX - more ? INT64_MAX : timeout + more;
        HF_PROBE(core, HF_PROBE_WFT_STRETCHED);
    }
    return timeout;
}

bool hf_wft_wants_sticky(hf_core *core, const hf_run *run)
{
    if (run->sticky_queue.len == 0 || run->sticky_queue.len > HF_ID_LEN_MAX) {
        return false;
    }
    const hf_queue *queue = hf_queue_find(core, 'w', hf_owned_str(&run->namespace), hf_owned_str(&run->sticky_queue));
    bool alive = queue != NULL && !queue->shut &&
                 (hf_queue_has_pollers(queue) || core->now.mono - queue->polled_at <= STICKY_IDLE_MAX);
    HF_PROBE(core, alive ? HF_PROBE_STICKY_USED : HF_PROBE_STICKY_SKIPPED);
    return alive;
}

static bool buffer_is_over(const hf_core *core, const hf_run *run)
{
    const hf_core_limits *limits = &core->options.limits;
    return run->buffered.count > limits->buffered_count || run->buffered_len > limits->buffered_len;
}

/* Too many events wait for the end of the started task, so it ends. Its worker is not at fault, and no event is lost. */
static void overflow(hf_core *core, hf_run *run)
{
    HF_PROBE(core, HF_PROBE_BUFFER_OVER);
    hf_wft_fail_task(core, run, HF_WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, NULL, HF_IDENTITY_ENGINE);
    hf_wft_unstick_failed(core, run);
    hf_flush_buffered(core, run); /* the count of attempts goes on, unlike after other failures */
    hf_assert(core->status != HF_OK || run->buffered.count == 0);
    hf_wft_schedule(core, run);
}

/* Whether the first task of the run has to wait still. */
static bool is_held_back(const hf_core *core, const hf_run *run)
{
    return run->first_task_at > core->now.wall && !run->cancel_requested && !HF_CANARY(HF_BUG_PAUSE_SKIPPED);
}

static void schedule(hf_core *core, hf_run *run, int64_t first_time)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    hf_speculative_convert(core, run);
    if (core->status != HF_OK || !hf_run_is_open(run)) {
        return;
    }
    if (run->wft.state == HF_WFT_STARTED) {
        if (buffer_is_over(core, run)) {
            overflow(core, run);
        }
        return;
    }
    /* Events were added, so the length is checked even if a task waits already: no worker may ever take that one. Without a new
     * task the last event, or the two of an activity, may pass the limit (hf_execution_has_room). */
    bool is_next = run->wft.state == HF_WFT_NONE;
    if (hf_execution_is_too_long(core, run, is_next ? 1 : -2) || !is_next) {
        return;
    }
    int32_t attempt = run->wft.attempt;
    int64_t timeout = hf_wft_timeout(core, run, attempt);
    bool is_transient = attempt > 1;
    if (!is_transient) {
        hf_wft_emit_scheduled(core, run, 1, timeout, core->now.wall);
    }
    hf_pb_workflow_task_scheduled msg = {
        .attempt = attempt,
        .time = core->now.wall,
        .timeout = timeout,
        .sticky = !is_transient && hf_wft_wants_sticky(core, run),
        .order = hf_order_next(core),
        .is_transient = is_transient,
        .first_time = first_time,
    };
    hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
}

void hf_wft_schedule_next(hf_core *core, hf_run *run, int64_t first_time)
{
    if (!is_held_back(core, run)) {
        schedule(core, run, first_time);
    }
}

void hf_wft_schedule(hf_core *core, hf_run *run)
{
    hf_wft_schedule_next(core, run, 0);
}

void hf_wft_schedule_now(hf_core *core, hf_run *run)
{
    if (is_held_back(core, run)) {
        HF_PROBE(core, HF_PROBE_FIRST_TASK_EARLY);
    }
    schedule(core, run, 0);
}

void hf_wft_check_length(hf_core *core, hf_run *run)
{
    if (core->status != HF_OK || !hf_run_is_open(run)) {
        return;
    }
    if (run->wft.state != HF_WFT_STARTED) {
        (void)hf_execution_is_too_long(core, run, run->wft.state == HF_WFT_NONE ? 0 : -2);
    } else if (buffer_is_over(core, run)) {
        overflow(core, run);
    }
}

void hf_wft_enqueue(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (core->status != HF_OK || wft->task.queue != NULL || !hf_wft_waits(wft)) {
        return;
    }
    if (hf_suspect_is_paused(core, &wft->task, wft->pause_until)) {
        hf_due_at(core, run, wft->pause_until); /* hf_wft_time_out comes back here */
        return;
    }
    bool sticky = wft->sticky && wft->state == HF_WFT_SCHEDULED && run->sticky_queue.len > 0;
    hf_str namespace_ = hf_owned_str(&run->namespace);
    hf_queue *queue = hf_queue_get(core, 'w', namespace_, hf_owned_str(sticky ? &run->sticky_queue : &run->task_queue));
    if (sticky && queue != NULL && queue->shut) {
        HF_PROBE(core, HF_PROBE_STICKY_MOVED);
        hf_wft_unstick(core, run);
        queue = hf_queue_get(core, 'w', namespace_, hf_owned_str(&run->task_queue));
    }
    wft->task.run = run;
    wft->task.scheduled_id = 0;
    hf_match_add(core, &wft->task, queue);
}

void hf_wft_again(hf_core *core, hf_run *run)
{
    if (run->wft.state != HF_WFT_STARTED || run->wft.again) {
        return;
    }
    HF_PROBE(core, HF_PROBE_TASK_AGAIN);
    hf_pb_task_moved msg = {.order = hf_order_next(core)};
    hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &msg);
}

void hf_wft_lost(hf_core *core, hf_run *run, bool is_unclean)
{
    hf_wft *wft = &run->wft;
    if (wft->state != HF_WFT_STARTED || wft->again) {
        return; /* no worker had it */
    }
    HF_PROBE(core, HF_PROBE_WFT_OF_DEAD);
    hf_pb_task_moved msg = {.order = hf_order_next(core), .crashes = hf_suspect_count(core, &wft->task, is_unclean)};
    int64_t pause = hf_suspect_pause(msg.crashes);
    msg.pause_until = pause > 0 ? core->now.wall + pause : 0;
    hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &msg);
}

void hf_wft_unstick(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_pb_sticky msg = {.timeout = 0};
        hf_record(core, run, HF_CHANGE_STICKY, &hf_pb_sticky_type, &msg);
    }
}

void hf_wft_move_to_all(hf_core *core, hf_run *run)
{
    bool waits = run->wft.state == HF_WFT_SCHEDULED && run->wft.sticky;
    hf_wft_unstick(core, run);
    if (waits) { /* in a queue that may not be polled any more */
        hf_match_remove(core, &run->wft.task);
        hf_wft_enqueue(core, run);
    }
}
