#include "run/machines.h"
#include "run/stream.h"

#include <string.h>

void hf_run_init(hf_run_memory *memory, hf_run *run, int64_t number)
{
    hf_assert(run->event_count == 0 && run->log.data == NULL);
    run->number = number;
    run->wft.attempt = 1;
    run->wft.task.run = run;
    hf_buf_init(&run->log, memory->heap, SIZE_MAX / 4);
}

hf_run *hf_run_new(hf_run_memory *memory, int64_t number)
{
    hf_run *run = hf_run_alloc(memory, sizeof *run);
    if (run != NULL) {
        hf_run_init(memory, run, number);
    }
    return run;
}

void hf_activity_free(hf_run_memory *memory, hf_activity *activity)
{
    hf_assert(activity->task.queue == NULL && !activity->task.is_last);
    hf_owned_free(memory, &activity->scheduled);
    hf_owned_free(memory, &activity->names);
    hf_owned_free(memory, &activity->heartbeat_details);
    hf_owned_free(memory, &activity->last_failure);
    hf_owned_free(memory, &activity->identity);
    hf_owned_free(memory, &activity->pause);
    hf_owned_free(memory, &activity->options);
    hf_owned_free(memory, &activity->queue_name);
    hf_run_release(memory, activity, sizeof *activity);
}

void hf_run_drop_pending(hf_run_memory *memory, hf_run *run, hf_effects *effects)
{
    hf_effects_gone(memory, effects, &run->wft.task);
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_effects_end(effects, run->activities.items[i]);
    }
    run->activities.count = 0;
    hf_timers_free(memory, run);
    for (size_t i = 0; i < run->buffered.count; i++) {
        hf_owned_free(memory, &run->buffered.items[i]);
    }
    run->buffered.count = 0;
    run->buffered_len = 0;
    hf_owned_free(memory, &run->sticky_queue);
    hf_owned_free(memory, &run->wft.identity);
    hf_owned_free(memory, &run->wft.request_id);
    hf_assert(run->activities.count == 0 && run->timers.count == 0 && run->buffered.count == 0); /* run-R4 */
}

void hf_run_deinit(hf_run_memory *memory, hf_run *run)
{
    hf_effects effects;
    hf_assert(run->wft.task.queue == NULL);
    hf_effects_init(&effects);
    hf_run_drop_pending(memory, run, &effects);
    hf_effects_deinit(memory, &effects);
    HF_VEC_FREE(memory, &run->activities);
    HF_VEC_FREE(memory, &run->timers);
    for (size_t i = 0; i < run->externals.count; i++) {
        hf_owned_free(memory, &run->externals.items[i].event);
    }
    HF_VEC_FREE(memory, &run->externals);
    hf_children_free(memory, run);
    for (size_t i = 0; i < run->updates.count; i++) {
        hf_owned_free(memory, &run->updates.items[i].id);
    }
    HF_VEC_FREE(memory, &run->updates);
    hf_resets_free(memory, run);
    for (size_t i = 0; i < run->attached.count; i++) {
        hf_owned_free(memory, &run->attached.items[i].id);
    }
    HF_VEC_FREE(memory, &run->attached);
    HF_VEC_FREE(memory, &run->buffered);
    HF_VEC_FREE(memory, &run->request_ids);
    hf_run_stream_free(memory, run);
    hf_owned_free(memory, &run->next_run_id);
    HF_VEC_FREE(memory, &run->parts);
    for (size_t i = 0; i < run->rows_written.count; i++) {
        hf_owned_free(memory, &run->rows_written.items[i].queue);
    }
    HF_VEC_FREE(memory, &run->rows_written);
    hf_owned *const strings[] = {&run->namespace,
                                 &run->workflow_id,
                                 &run->run_id,
                                 &run->start_request_id,
                                 &run->first_run_id,
                                 &run->workflow_type,
                                 &run->task_queue,
                                 &run->unknown,
                                 &run->start,
                                 &run->memo,
                                 &run->search_attributes,
                                 &run->user_metadata,
                                 &run->operation,
                                 &run->progress};
    for (size_t i = 0; i < HF_COUNT_OF(strings); i++) {
        hf_owned_free(memory, strings[i]);
    }
    hf_buf_deinit(&run->log);
}

void hf_run_free(hf_run_memory *memory, hf_run *run)
{
    hf_run_deinit(memory, run);
    hf_run_release(memory, run, sizeof *run);
}

hf_activity *hf_run_activity(const hf_run *run, int64_t scheduled_id)
{
    size_t low = 0;
    size_t high = run->activities.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->activities.items[middle]->scheduled_id < scheduled_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->activities.count && run->activities.items[low]->scheduled_id == scheduled_id
               ? run->activities.items[low]
               : NULL;
}

hf_activity *hf_run_activity_by_id(const hf_run *run, hf_str activity_id)
{
    for (size_t i = 0; i < run->activities.count; i++) {
        if (hf_str_equal(run->activities.items[i]->activity_id, activity_id)) {
            return run->activities.items[i];
        }
    }
    return NULL;
}

hf_external *hf_run_external(const hf_run *run, int64_t initiated_id)
{
    for (size_t i = 0; i < run->externals.count; i++) {
        if (run->externals.items[i].initiated_id == initiated_id) {
            return &run->externals.items[i];
        }
    }
    return NULL;
}

hf_update *hf_run_update(const hf_run *run, hf_str id)
{
    for (size_t i = 0; i < run->updates.count; i++) {
        if (hf_str_equal(hf_owned_str(&run->updates.items[i].id), id)) {
            return &run->updates.items[i];
        }
    }
    return NULL;
}

void hf_run_remember(hf_run_memory *memory, hf_run *run, hf_str request_id)
{
    if (HF_VEC_RESERVE(memory, &run->request_ids)) {
        run->request_ids.items[run->request_ids.count++] = hf_request_hash(request_id);
    }
}

void hf_run_check(const hf_run *run)
{
    hf_assert(run->event_count >= run->spilled && run->spilled >= 0); /* run-R1, run-R2 */
    hf_assert(run->history_len >= run->spilled_len);                  /* run-R2 */
    if (!hf_run_is_open(run)) {                                       /* run-R4 */
        hf_assert(run->wft.state == HF_WFT_NONE && run->activities.count == 0 && run->timers.count == 0);
        hf_assert(run->buffered.count == 0 && run->wft.task.queue == NULL);
        hf_assert(run->status == HF_WORKFLOW_EXECUTION_STATUS_UNSPECIFIED || run->close_event_id == run->event_count);
    }
    hf_assert(run->buffered.count == 0 || run->wft.state == HF_WFT_STARTED); /* run-R5 */
    hf_assert((run->kind == HF_KIND_OPERATION) == (run->operation.len > 0)); /* run-O1 */
    hf_assert(run->operation.len == 0 || (run->event_count == 0 && run->operation_due != 0 &&
                                          (run->operation_state <= HF_OPERATION_ACTING) == hf_run_is_open(run)));
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        hf_assert(i == 0 || run->activities.items[i - 1]->scheduled_id < activity->scheduled_id);
        hf_assert(activity->scheduled_id <= run->event_count);
        hf_assert(activity->task.queue == NULL || activity->state == HF_ACTIVITY_SCHEDULED || activity->again);
        hf_assert(!hf_activity_is_paused(activity) || activity->task.queue == NULL); /* run-R6 */
        hf_assert(activity->state != HF_ACTIVITY_PAUSED || hf_activity_is_paused(activity));
    }
    for (size_t i = 0; i < run->updates.count; i++) {
        hf_assert(i == 0 || hf_update_first(&run->updates.items[i - 1]) < hf_update_first(&run->updates.items[i]));
        hf_assert(run->updates.items[i].completed_id <= run->event_count);
    }
    for (size_t i = 0; i < run->attached.count; i++) {
        hf_assert(i == 0 || run->attached.items[i - 1].event_id < run->attached.items[i].event_id);
        hf_assert(run->attached.items[i].event_id <= run->event_count);
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        hf_assert(i == 0 || run->timers.items[i - 1]->started_id < run->timers.items[i]->started_id);
        hf_assert(run->timers.items[i]->started_id <= run->event_count);
        hf_assert(hf_run_timer_by_id(run, hf_owned_str(&run->timers.items[i]->id)) != NULL);
    }
}

bool hf_run_has_messages(const hf_run *run)
{
    return run->externals.count > 0 || run->moving > 0 || run->is_untold;
}
