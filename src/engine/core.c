/* Steps: a call, a cancellation, a time zone or a moment in time comes in, and its consequences follow before the next one. How a batch of
 * steps becomes a commit: core_commit.c. */
#include "engine/core_private.h"

#include "engine/answer.h"
#include "engine/due.h"
#include "engine/history_read.h"
#include "engine/input.h"
#include "engine/lister.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/poll.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "engine/zone.h"

/* ---- The step -------------------------------------------------------------------------------------------------------- */

bool hf_core_is_whole(hf_core *core)
{
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return core->status == HF_OK;
}

void hf_core_reset_scratch(hf_core *core)
{
    (void)hf_core_is_whole(core);
    hf_arena_reset(&core->scratch);
}

bool hf_core_begin_step(hf_core *core, hf_clock now)
{
    hf_assert(core->effects.gone.count == 0 &&
              core->effects.ready == NULL); /* the effects of the last change were carried out */
    core->now = now;
    core->step++;
    hf_resets_begin_step(core);
    hf_core_reset_scratch(core);
    hf_op_init(&core->op);
    return core->status == HF_OK;
}

/* The end of a step: resets and deletions go on, and messages between runs are delivered, each as a step of its own. If there are very many
 * messages, some stay for the next step, so that other inputs come in between, and some for the next batch, so that its commit is not
 * delayed by all of them. */
static void pump(hf_core *core)
{
    if (!hf_list_is_empty(&core->inbox)) {
        hf_inbox_pump(core);
    }
    if (!hf_list_is_empty(&core->deletions.next)) {
        hf_deletions_pump(core);
    }
    if (!hf_list_is_empty(&core->resets.next)) {
        hf_resets_pump(core);
    }
    if (!hf_list_is_empty(&core->operations.next)) {
        hf_operations_pump(core);
    }
    if (!hf_list_is_empty(&core->unsettled)) {
        hf_unwritten_settle(core);
    }
    hf_assert(core->status != HF_OK || hf_list_is_empty(&core->unsettled)); /* engine-Q1 */
}

/* The end of a portion of steps: tasks that became ready meet polls. Not after each call: a workflow task that waits for the end of the
 * portion brings everything with it that comes until then, as events; after its start they would be buffered. */
void hf_core_end_steps(hf_core *core)
{
    hf_assert(core->canceled <= core->options.cancels_max); /* calls of others waited for at most this many */
    core->canceled = 0;
    pump(core);
    hf_match_all(core);
    hf_assert(core->status != HF_OK || hf_list_is_empty(&core->queues_marked));
}

/* ---- Inputs ---------------------------------------------------------------------------------------------------------- */

static void fail_at_once(hf_call *call, hf_status status, const char *why)
{
    hf_assert(call->place == HF_PLACE_NONE); /* no list has it */
    hf_call_set_failure(call, status, why);
    hf_call_now(call);
}

void hf_core_call(hf_core *core, hf_call *call, hf_clock now)
{
    hf_assert(call->done != NULL && call->method < HF_METHOD_COUNT && call->arena != NULL);
    core->calls++;
    call->status = HF_OK;
    call->detail_type = NULL;
    call->detail = NULL;
    call->is_final = false;
    call->holds = 0;
    call->place = HF_PLACE_NONE;
    call->deadline.place = 0;
    call->deadline_link = (hf_node){0};
    hf_list_push_back(&core->calls_all, &call->all);
    hf_list_push_back(&core->calls_by_number[call->number % HF_CALL_BUCKETS], &call->by_number);
    if (!hf_core_begin_step(core, now)) {
        fail_at_once(call, core->status, core->why);
        return;
    }
    if (core->queues.count > core->options.queues_max) {
        hf_queues_tidy(core);
    }
    hf_input(core, call); /* if that breaks the core, hf_core_stop answers it */
    hf_suspects_tick(core);
    pump(core);
}

hf_call *hf_core_find_call(const hf_core *core, uint64_t number)
{
    HF_LIST_EACH(node, &core->calls_by_number[number % HF_CALL_BUCKETS])
    {
        hf_call *call = HF_CONTAINER(node, hf_call, by_number);
        if (call->number == number) {
            return call;
        }
    }
    return NULL;
}

bool hf_core_cancel(hf_core *core, hf_call *call, hf_clock now)
{
    if (!hf_core_begin_step(core, now)) {
        return true; /* hf_core_stop answers it */
    }
    if (core->canceled >= core->options.cancels_max) {
        HF_PROBE(core, HF_PROBE_CANCEL_PUT_OFF);
        return false;
    }
    core->canceled++;
    if (call->place == HF_PLACE_QUEUE) {
        hf_match_unpark(core, call);
    } else if (call->place == HF_PLACE_WATCH) {
        hf_watch_remove(core, call);
    } else if (call->place == HF_PLACE_QUERY) {
        hf_query_drop(core, call);
    } else if (call->place == HF_PLACE_UPDATE) {
        hf_update_drop(core, call);
    } else if (call->place == HF_PLACE_CHANGES) {
        hf_changes_remove(core, call);
    } else if (call->place == HF_PLACE_LIST) {
        hf_list_drop(core, call);
    } else {
        return true; /* its answer is on its way */
    }
    fail_at_once(call, HF_ERR_CANCELED, "the caller went away");
    return true;
}

void hf_run_take_back(hf_core *core, hf_run *run, const hf_token *token)
{
    if (!HF_SLOT(run)->bad && token->kind == HF_TASK_QUERY) {
        hf_query_again(core, run, token);
    }
    if (HF_SLOT(run)->bad || !hf_run_is_open(run)) {
        return;
    }
    hf_core_use(core, run);
    if (hf_wft_holds(core, run, token)) {
        if (token->holder == HF_HELD_BY_LOST && hf_speculative_started(run) != NULL) {
            hf_speculative_convert(core, run); /* engine-U1: only a task of the run itself is counted */
        }
        if (token->holder != HF_HELD_BY_NONE) {
            hf_wft_lost(core, run, token->holder == HF_HELD_BY_LOST);
        } else {
            hf_wft_again(core, run);
        }
        hf_speculative_again(core, run); /* the task is either written or speculative */
    }
    hf_activity *activity = token->kind == HF_TASK_ACTIVITY ? hf_run_activity(run, token->scheduled_id) : NULL;
    if (activity != NULL && hf_activity_given(activity) == token->attempt && activity->started_time == token->stamp) {
        if (token->holder == HF_HELD_BY_NONE) {
            hf_activity_again(core, activity);
        } else if (hf_activity_gone(core, run, activity, token->holder == HF_HELD_BY_LOST)) {
            hf_wft_schedule(core, run);
        }
    }
    hf_core_unuse(core, run);
}

void hf_core_take_back(hf_core *core, hf_str task_token, hf_task_holder holder, hf_clock now)
{
    hf_token token;
    if (!hf_core_begin_step(core, now) || !hf_token_decode(core, task_token, &token) || token.run >= core->run_next ||
        hf_resets_make(core, token.run)) {
        return;
    }
    token.holder = holder;
    hf_run *run = hf_run_load(core, token.run); /* the task's timeout would do the same, but may be days away */
    if (run != NULL && !HF_SLOT(run)->loading) {
        hf_run_take_back(core, run, &token);
    } else if (run != NULL && HF_VEC_RESERVE(&core->runs_memory, &HF_SLOT(run)->unwanted)) {
        HF_SLOT(run)->unwanted.items[HF_SLOT(run)->unwanted.count++] = token;
    }
    pump(core);
}

bool hf_core_zone_wanted(const hf_core *core, hf_str *ret_name)
{
    return core->status == HF_OK && hf_zone_wanted(core, ret_name);
}

void hf_core_zone(hf_core *core, hf_str name, hf_str bytes, hf_clock now)
{
    if (hf_core_begin_step(core, now)) {
        hf_zone_arrived(core, name, bytes);
        pump(core);
    }
}

void hf_core_tick(hf_core *core, hf_clock now)
{
    if (!hf_core_begin_step(core, now)) {
        return;
    }
    hf_polls_expire(core);
    hf_rates_tick(core);
    hf_due_tick(core);
    hf_suspects_tick(core);
    hf_blocks_tick(core);
    hf_core_end_steps(core);
    hf_queues_tidy(core);
}

bool hf_core_is_full(const hf_core *core)
{
    return core->status == HF_OK && core->open_len >= core->options.open_len_max;
}

bool hf_core_is_late(const hf_core *core, hf_clock now)
{
    const hf_heap_node *first = hf_heap_first(&core->due);
    return core->status == HF_OK && first != NULL && first->key <= now.wall;
}

hf_clock hf_core_next(const hf_core *core)
{
    hf_clock next = {INT64_MAX, INT64_MAX};
    const hf_heap_node *first = hf_heap_first(&core->due);
    const hf_heap_node *cold = hf_heap_first(&core->cold_due);
    const hf_call *poll = hf_polls_first(core);
    const hf_node *queue = hf_list_first(&core->queues_all);
    bool full = hf_due_is_full(core); /* then the driver seals the batch first */
    if (first != NULL && !full) {
        next.wall = first->key;
    }
    if (cold != NULL && !full && core->due_loads < core->options.tick_max && cold->key < next.wall) {
        next.wall = cold->key;
    }
    int64_t ahead = hf_due_read_at(core);
    next.wall = ahead < next.wall ? ahead : next.wall;
    if (hf_inbox_has_work(core) || hf_deletions_have_work(core) || hf_resets_have_work(core) ||
        hf_operations_have_work(core) || !hf_list_is_empty(&core->queues_marked)) {
        return (hf_clock){next.wall, core->now.mono}; /* at once */
    }
    next.mono = hf_suspects_next(core);
    hf_clock house = hf_blocks_next(core);
    next.wall = house.wall < next.wall ? house.wall : next.wall;
    next.mono = house.mono < next.mono ? house.mono : next.mono;
    next.mono = hf_rates_next(core) < next.mono ? hf_rates_next(core) : next.mono;
    if (poll != NULL && poll->deadline.key < next.mono) {
        next.mono = poll->deadline.key;
    }
    if (queue != NULL) {
        int64_t idle = HF_CONTAINER_CONST(queue, hf_queue, all_link)->used_at + core->options.queue_span;
        next.mono = idle < next.mono ? idle : next.mono;
    }
    return next;
}

/* ---- For the driver -------------------------------------------------------------------------------------------------- */

hf_status hf_core_status(const hf_core *core)
{
    return core->status;
}

bool hf_core_is_ahead(const hf_core *core)
{
    return core->ahead > 0;
}

bool hf_core_is_committing(const hf_core *core)
{
    return core->committing;
}
