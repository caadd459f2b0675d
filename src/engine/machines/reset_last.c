/* The last step of a reset: if everything that was found out still holds, the current run is ended and the new run is born. */
#include "engine/machines/reset_private.h"

#include "engine/due.h"
#include "engine/emit.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/stream.h"

void hf_reset_number(hf_core *core, hf_reset *it)
{
    hf_run *run = &it->made->run;
    hf_assert(HF_SLOT(run)->name == NULL); /* engine-R2 */
    if (run->number == 0) {
        run->number = hf_run_number_next(core);
        hf_owned_set(&core->runs_memory, &run->run_id, hf_execution_new_id(core, run->number));
    }
}

/* Other runs of the id have begun: the new one needs a greater number, and its rows and events name the old one. */
static void begin_again(hf_core *core, hf_reset *it)
{
    HF_PROBE(core, HF_PROBE_RESET_RESTARTED);
    if (++it->tries > HF_RESET_TRIES_MAX) {
        hf_reset_fail(core, it, HF_ERR_UNAVAILABLE, "new runs of this workflow id begin all the time; try again later");
        return;
    }
    hf_reset_unmake(core, it);
    hf_reset_let_go(core, &it->current);
    it->scheduled_id = it->started_id = 0;
    it->stage = RESET_COPY;
    hf_reset_read_from(core, it, hf_run_find(core, it->base), 1);
    hf_reset_move(it, &core->resets.next);
}

static void look_for_current(hf_core *core, hf_reset *it)
{
    hf_reset_let_go(core, &it->current);
    it->stage = RESET_ASK_CURRENT;
    hf_reset_move(it, &core->resets.next);
}

/* Whether everything that was found out still holds. If not, the reset goes back to the first stage whose result does not hold. */
static bool is_ready(hf_core *core, hf_reset *it)
{
    const hf_run *source = hf_run_find(core, it->source);
    const hf_run *current = it->current != 0 ? hf_run_find(core, it->current) : NULL;
    const hf_run *named = hf_name_current(core, it->asks.namespace, it->execution.workflow_id);
    const hf_core_limits *limits = &core->options.limits;
    hf_assert(current != NULL || it->has_none);
    if (it->next <= source->event_count) {
        it->stage = RESET_REAPPLY;
        hf_reset_move(it, &core->resets.next);
        return false;
    }
    bool is_current = current != NULL ? HF_SLOT(current)->name != NULL && current->deleting == HF_DELETING_NOT
                                      : named == NULL || named->deleting != HF_DELETING_NOT;
    if (!is_current) {
        look_for_current(core, it);
        return false;
    }
    if ((current != NULL && current->number > it->made->run.number) ||
        (named != NULL && named->number > it->made->run.number)) {
        begin_again(core, it);
        return false;
    }
    if (it->made->run.event_count >= limits->history_count || it->made->run.history_len >= limits->history_len) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        hf_reset_fail(core, it, HF_ERR_INVALID,
                      "the history of the new run would have %lld events and %lld bytes, more than a run may have",
                      (long long)it->made->run.event_count, (long long)it->made->run.history_len);
        return false;
    }
    return true;
}

/* Activities that the history shows as pending are scheduled now. */
static void renew_activities(hf_core *core, hf_run *run)
{
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_activity *activity = run->activities.items[i];
        hf_assert(activity->state == HF_ACTIVITY_SCHEDULED && activity->task.order == 0); /* no history shows more */
        activity->first_time = activity->scheduled_time = core->now.wall;
        activity->is_renewed = true;
        hf_activity_enqueue(core, run, activity);
    }
}

/* The base and the new run remember the request id. The new run also takes over the request ids of the base. */
static void remember(hf_core *core, const hf_reset *it, hf_run *base, hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    for (size_t i = 0; i < base->resets.count; i++) {
        hf_pb_run_reset before = {
            .request_id = hf_owned_str(&base->resets.items[i].request_id),
            .run_id = hf_owned_str(&base->resets.items[i].run_id),
        };
        hf_record(core, run, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &before);
    }
    hf_pb_run_reset msg = {.request_id = request->request_id, .run_id = hf_owned_str(&run->run_id)};
    hf_record(core, run, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &msg);
    msg.is_base = true;
    hf_record(core, base, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &msg);
    HF_SLOT(base)->spill_now = true; /* a closed run is written when it changes */
}

/* The new run goes on behind the last record of the base, or of the current run if that has later ones: no reader sees two records with one
 * number. */
static void take_over_stream(hf_core *core, const hf_reset *it, const hf_run *base, hf_run *run)
{
    const hf_run *current = it->current != 0 ? hf_run_find(core, it->current) : NULL;
    bool is_later = current != NULL && hf_run_stream_next(current) > hf_run_stream_next(base);
    hf_records_go_on(core, is_later ? current : base, run);
    hf_execution_keep(core, run, base->keep);
}

static void be_born(hf_core *core, hf_reset *it)
{
    hf_slot *slot = it->made;
    hf_run *run = &slot->run;
    hf_run *base = hf_run_find(core, it->base);
    hf_assert(hf_run_find(core, run->number) == NULL && slot->name == NULL); /* engine-R2 */
    if (!hf_run_insert(core, slot)) {
        return;
    }
    it->made = NULL;
    slot->is_in_making = it->is_written;
    slot->spill_now = true;
    it->is_written = false;
    hf_core_touch(core, run);
    core->open_len += run->log.len;
    hf_name_succeed(core, run);
    remember(core, it, base, run);
    take_over_stream(core, it, base, run);
    renew_activities(core, run);
    hf_wft_schedule(core, run);
    if (core->status == HF_OK) {
        hf_due_at(core, run, hf_run_next_due(run));
        hf_message_send_all(core, run);
    }
}

static void count_probes(hf_core *core, const hf_reset *it, const hf_run *current)
{
    HF_PROBE(core, HF_PROBE_RESET);
    if (current == NULL) {
        HF_PROBE(core, HF_PROBE_RESET_NO_CURRENT);
    } else if (hf_run_is_open(current)) {
        HF_PROBE(core, HF_PROBE_RESET_OPEN);
    } else {
        HF_PROBE(core, HF_PROBE_RESET_CLOSED);
    }
    if (current != NULL && it->current != it->base) {
        HF_PROBE(core, HF_PROBE_RESET_OLD);
    }
}

void hf_reset_finish(hf_core *core, hf_reset *it)
{
    hf_assert(it->stage == RESET_LAST && it->made != NULL);
    if (!is_ready(core, it)) {
        return;
    }
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    hf_run *current = it->current != 0 ? hf_run_find(core, it->current) : NULL;
    count_probes(core, it, current);
    hf_assert(current == NULL || current->number < it->made->run.number); /* engine-R3 */
    if (current != NULL && hf_run_is_open(current)) {
        hf_execution_terminate(core, current, request->reason, NULL, HF_RESETTER);
        bool is_looked_through = core->status == HF_OK && it->current == it->source;
        it->stage = RESET_REAPPLY;
        if (is_looked_through &&
            !hf_reset_take_log(core, it, current, true)) { /* events that were buffered until now */
            return;
        }
    }
    if (core->status != HF_OK) {
        return;
    }
    hf_reset_add_operations(core, it);
    hf_str run_id = hf_arena_copy(&it->arena, hf_owned_str(&it->made->run.run_id));
    if (core->status == HF_OK) {
        be_born(core, it);
    }
    hf_call *call = NULL;
    while (hf_core_is_whole(core) && (call = hf_reset_next_caller(it)) != NULL) {
        hf_reset_answer(core, call, run_id);
    }
    if (core->status == HF_OK) {
        hf_reset_end(core, it);
    }
}
