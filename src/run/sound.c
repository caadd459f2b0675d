/* Checks that a run which was read is consistent.
 *
 * A checksum shows that a record was not changed since it was written, not that it makes sense: another version, a person or a bug may
 * have written it. All other files rely on what is checked here (and asserted in hf_run_check), so it is checked once, where bytes
 * become a run: when its row is read, and when the journal was applied to it. A run that is not sound is bad, and no other run is
 * affected (D4). */
#include "run/run.h"

#include "base/digest.h"
#include "history/limits.h"
#include "run/stream.h"

#include <string.h>

#define TASK_KEY_LEN_MAX 3000     /* bytes of a task row's key, as the store has it */
#define COUNT_MAX (INT64_MAX / 4) /* events and bytes: their sums do not overflow */

static bool is_within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

/* Whether this can be the number in a key of a table. */
static bool is_order(int64_t order)
{
    return is_within(order, 0, INT64_MAX - 1);
}

bool hf_namespace_is_good(hf_str name)
{
    return name.len > 0 && name.len <= HF_ID_LEN_MAX && memchr(name.data, '\x1f', name.len) == NULL;
}

static const char *wrong_identity(const hf_run *run)
{
    const hf_owned *const names[] = {&run->run_id,     &run->start_request_id, &run->first_run_id, &run->workflow_type,
                                     &run->task_queue, &run->sticky_queue,     &run->reset_run_id, &run->next_run_id};
    for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
        if (names[i]->len > HF_ID_LEN_MAX) {
            return "one of its names is too long";
        }
    }
    bool is_named = hf_namespace_is_good(hf_owned_str(&run->namespace)) && run->workflow_id.len > 0 &&
                    run->workflow_id.len <= HF_ID_LEN_MAX;
    return is_named ? NULL : "it has no namespace or workflow id";
}

static const char *wrong_counts(const hf_run *run)
{
    if (run->status < HF_WORKFLOW_EXECUTION_STATUS_RUNNING || run->status > HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT) {
        return "its status is unknown";
    }
    bool is_operation = run->kind == HF_KIND_OPERATION; /* run-O1 */
    if (!is_within(run->event_count, is_operation ? 0 : 1, is_operation ? 0 : COUNT_MAX) ||
        !is_within(run->spilled, 0, run->event_count)) { /* run-R1, run-R2 */
        return "its number of events is impossible";
    }
    if (!is_within(run->history_len, 0, COUNT_MAX) || !is_within(run->spilled_len, 0, run->history_len)) { /* run-R2 */
        return "the length of its history is impossible";
    }
    if (is_operation != (run->operation.len > 0) || is_operation != (run->operation_state != HF_OPERATION_NEW)) {
        return "it is an operation without a request";
    }
    return is_within(run->signal_count, 0, run->event_count) ? NULL : "its number of signals is impossible";
}

static const char *wrong_task(const hf_run *run)
{
    const hf_wft *wft = &run->wft;
    int64_t last = run->event_count + (wft->is_transient ? 2 : 0);
    bool is_pending = wft->state != HF_WFT_NONE;
    bool is_started = wft->state == HF_WFT_STARTED;
    if (!is_within(wft->scheduled_id, is_pending ? 1 : 0, last) ||
        !is_within(wft->started_id, is_started ? wft->scheduled_id + 1 : 0, last) ||
        !is_within(wft->last_started_id, 0, run->event_count) || !is_within(wft->completed_id, 0, run->event_count)) {
        return "its workflow task names events that it does not have";
    }
    return is_within(wft->attempt, 1, INT32_MAX - 1) && is_order(wft->task.order) ? NULL
                                                                                  : "its workflow task is invalid";
}

static const char *wrong_activities(const hf_run *run)
{
    int64_t before = 0;
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        if (!is_within(activity->scheduled_id, before + 1, run->event_count)) {
            return "its activities are not in order";
        }
        before = activity->scheduled_id;
        if (!is_within(activity->attempt, 1, INT32_MAX - 1) || !is_order(activity->task.order) ||
            activity->task_queue.len > HF_ID_LEN_MAX || activity->activity_id.len > HF_ID_LEN_MAX) {
            return "one of its activities is invalid";
        }
        bool is_paused = hf_activity_is_paused(activity);
        bool waits =
            activity->state == HF_ACTIVITY_SCHEDULED || activity->state == HF_ACTIVITY_BACKOFF || activity->again;
        if (!is_within(activity->attempt_given, 0, INT32_MAX - 1) ||
            (is_paused ? waits : activity->state == HF_ACTIVITY_PAUSED)) { /* run-R6 */
            return "one of its activities is paused and not paused";
        }
    }
    return NULL;
}

static const char *wrong_lists(const hf_run *run)
{
    int64_t before = 0;
    for (size_t i = 0; i < run->timers.count; i++) {
        if (!is_within(run->timers.items[i]->started_id, before + 1, run->event_count)) {
            return "its timers are not in order";
        }
        before = run->timers.items[i]->started_id;
    }
    before = 0;
    for (size_t i = 0; i < run->externals.count; i++) {
        if (!is_within(run->externals.items[i].initiated_id, before + 1, run->event_count)) {
            return "its messages are not in order";
        }
        before = run->externals.items[i].initiated_id;
    }
    before = 0;
    for (size_t i = 0; i < run->children.count; i++) {
        const hf_child *child = &run->children.items[i];
        if (!is_within(child->initiated_id, before + 1, run->event_count) ||
            !is_within(child->started_id, 0, run->event_count) || child->workflow_id.len > HF_ID_LEN_MAX ||
            child->run_id.len > HF_ID_LEN_MAX) {
            return "its children are not in order";
        }
        before = child->initiated_id;
    }
    before = 0;
    for (size_t i = 0; i < run->updates.count; i++) {
        const hf_update *update = &run->updates.items[i];
        bool is_accepted = update->admitted_id == 0 || update->accepted_id != 0;
        if (!is_within(hf_update_first(update), before + 1, run->event_count) || update->admitted_id < 0 ||
            (is_accepted && !is_within(update->accepted_id, update->admitted_id + 1, run->event_count)) ||
            (update->completed_id != 0 &&
             (!is_accepted || !is_within(update->completed_id, update->accepted_id + 1, run->event_count)))) {
            return "its updates are not in order";
        }
        before = hf_update_first(update);
    }
    before = 0;
    for (size_t i = 0; i < run->attached.count; i++) {
        if (!is_within(run->attached.items[i].event_id, before + 1, run->event_count)) {
            return "its attached request ids are not in order";
        }
        before = run->attached.items[i].event_id;
    }
    for (size_t i = 0; i < run->rows_written.count; i++) {
        if (!is_order(run->rows_written.items[i].order) || run->rows_written.items[i].queue.len > TASK_KEY_LEN_MAX) {
            return "it names rows that cannot exist";
        }
    }
    return run->due_written < INT64_MAX ? NULL : "its deadline is impossible";
}

/* run-R4, run-R5. */
static const char *wrong_rest(const hf_run *run)
{
    bool is_idle = run->wft.state == HF_WFT_NONE && run->activities.count == 0 && run->timers.count == 0;
    if (!hf_run_is_open(run) && (!is_idle || run->close_event_id != run->event_count)) {
        return "it is closed, but still has pending work or later events";
    }
    if (hf_run_is_open(run) && (run->deleting != HF_DELETING_NOT || run->is_nameless)) {
        return "it is open, but being deleted or without a name";
    }
    return run->buffered.count == 0 || run->wft.state == HF_WFT_STARTED ? NULL
                                                                        : "events are buffered without a workflow task";
}

hf_status hf_run_sound(hf_op *op, const hf_run *run)
{
    const char *wrong = wrong_identity(run);
    wrong = wrong == NULL ? wrong_counts(run) : wrong;
    wrong = wrong == NULL ? wrong_task(run) : wrong;
    wrong = wrong == NULL ? wrong_activities(run) : wrong;
    wrong = wrong == NULL ? wrong_lists(run) : wrong;
    wrong = wrong == NULL ? wrong_rest(run) : wrong;
    wrong = wrong == NULL ? hf_run_stream_wrong(run) : wrong;
    return wrong == NULL
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the state of run %lld cannot be used: %s", (long long)run->number, wrong);
}

hf_status hf_tail_sound(hf_op *op, const hf_run *run, hf_str tail)
{
    int64_t id = run->spilled;
    uint64_t chain = run->spilled_chain;
    hf_str rest = tail;
    hf_pb_raw field;
    bool is_good = true;
    while (is_good && rest.len > 0 && hf_pb_next(&rest, &field)) {
        is_good = field.number == HF_CHANGE_EVENT && field.wire == HF_PB_WIRE_BYTES;
        chain = hf_digest(chain, field.bytes);
        id++;
    }
    is_good = is_good && rest.len == 0 && rest.data != NULL && id == run->event_count && chain == run->chain &&
              (int64_t)tail.len == run->history_len - run->spilled_len;
    return is_good || tail.len == 0
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the events in the row of run %lld are not its last events",
                         (long long)run->number);
}
