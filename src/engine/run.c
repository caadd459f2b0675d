#include "engine/core.h"

void hf_owned_free(hf_core *core, hf_owned *owned)
{
    if (owned->data != NULL) {
        hf_core_free_mem(core, owned->data, owned->len);
    }
    *owned = (hf_owned){NULL, 0};
}

void hf_owned_set(hf_core *core, hf_owned *owned, hf_str bytes)
{
    char *data = NULL;
    if (bytes.len > 0) {
        data = hf_core_alloc(core, bytes.len);
        if (data == NULL) {
            return;
        }
        memcpy(data, bytes.data, bytes.len);
    }
    hf_owned_free(core, owned);
    *owned = (hf_owned){data, bytes.len};
}

bool hf_vec_grow(hf_core *core, void **items, size_t *capacity, size_t count, size_t item_len)
{
    if (count < *capacity) {
        return true;
    }
    size_t larger = *capacity > 0 ? *capacity * 2 : 4;
    void *grown = hf_core_alloc(core, larger * item_len);
    if (grown == NULL) {
        return false;
    }
    if (*items != NULL) {
        memcpy(grown, *items, count * item_len);
        hf_core_free_mem(core, *items, *capacity * item_len);
    }
    *items = grown;
    *capacity = larger;
    return true;
}

#define VEC_FREE(core, vec) hf_core_free_mem((core), (vec)->items, (vec)->capacity * sizeof *(vec)->items)

hf_run *hf_run_new(hf_core *core, int64_t number)
{
    hf_run *run = hf_core_alloc(core, sizeof *run);
    if (run == NULL) {
        return NULL;
    }
    run->number = number;
    run->wft.attempt = 1;
    hf_list_init(&run->waiting);
    hf_list_init(&run->held);
    hf_list_init(&run->wanted_as);
    hf_buf_init(&run->log, core->memory, SIZE_MAX / 4);
    return run;
}

void hf_activity_free(hf_core *core, hf_activity *activity)
{
    hf_assert(activity->task.queue == NULL);
    hf_owned_free(core, &activity->scheduled);
    hf_owned_free(core, &activity->heartbeat_details);
    hf_owned_free(core, &activity->last_failure);
    hf_owned_free(core, &activity->identity);
    hf_core_free_mem(core, activity, sizeof *activity);
}

void hf_timer_free(hf_core *core, hf_timer *timer)
{
    hf_owned_free(core, &timer->id);
    hf_core_free_mem(core, timer, sizeof *timer);
}

void hf_run_drop_pending(hf_core *core, hf_run *run)
{
    hf_match_remove(core, &run->wft.task);
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_match_remove(core, &run->activities.items[i]->task);
        hf_activity_free(core, run->activities.items[i]);
    }
    run->activities.count = 0;
    for (size_t i = 0; i < run->timers.count; i++) {
        hf_timer_free(core, run->timers.items[i]);
    }
    run->timers.count = 0;
    for (size_t i = 0; i < run->buffered.count; i++) {
        hf_owned_free(core, &run->buffered.items[i]);
    }
    run->buffered.count = 0;
    run->buffered_len = 0;
    hf_owned_free(core, &run->sticky_queue);
    hf_owned_free(core, &run->wft.identity);
    hf_owned_free(core, &run->wft.request_id);
}

void hf_run_free(hf_core *core, hf_run *run)
{
    hf_run_drop_pending(core, run);
    VEC_FREE(core, &run->activities);
    VEC_FREE(core, &run->timers);
    for (size_t i = 0; i < run->externals.count; i++) {
        hf_owned_free(core, &run->externals.items[i].event);
    }
    VEC_FREE(core, &run->externals);
    VEC_FREE(core, &run->buffered);
    for (size_t i = 0; i < run->request_ids.count; i++) {
        hf_owned_free(core, &run->request_ids.items[i]);
    }
    VEC_FREE(core, &run->request_ids);
    for (size_t i = 0; i < run->rows_written.count; i++) {
        hf_owned_free(core, &run->rows_written.items[i].queue);
    }
    VEC_FREE(core, &run->rows_written);
    VEC_FREE(core, &run->unwanted);
    hf_owned *const strings[] = {&run->namespace,    &run->workflow_id,   &run->run_id,     &run->start_request_id,
                                 &run->first_run_id, &run->workflow_type, &run->task_queue, &run->unknown};
    for (size_t i = 0; i < HF_COUNT_OF(strings); i++) {
        hf_owned_free(core, strings[i]);
    }
    hf_buf_deinit(&run->log);
    hf_core_free_mem(core, run, sizeof *run);
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

hf_timer *hf_run_timer(const hf_run *run, int64_t started_id)
{
    for (size_t i = 0; i < run->timers.count; i++) {
        if (run->timers.items[i]->started_id == started_id) {
            return run->timers.items[i];
        }
    }
    return NULL;
}

hf_timer *hf_run_timer_by_id(const hf_run *run, hf_str timer_id)
{
    for (size_t i = 0; i < run->timers.count; i++) {
        if (hf_str_equal(hf_owned_str(&run->timers.items[i]->id), timer_id)) {
            return run->timers.items[i];
        }
    }
    return NULL;
}

void hf_run_check(const hf_run *run)
{
    hf_assert(run->event_count >= run->spilled && run->spilled >= 0); /* R1, R2 */
    hf_assert(run->history_len >= run->spilled_len);                  /* R2 */
    if (!hf_run_is_open(run)) {                                       /* R4 */
        hf_assert(run->wft.state == HF_WFT_NONE && run->activities.count == 0 && run->timers.count == 0);
        hf_assert(run->buffered.count == 0 && run->wft.task.queue == NULL);
        hf_assert(run->status == HF_WORKFLOW_EXECUTION_STATUS_UNSPECIFIED || run->close_event_id == run->event_count);
    }
    hf_assert(run->buffered.count == 0 || run->wft.state == HF_WFT_STARTED); /* R5 */
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        hf_assert(i == 0 || run->activities.items[i - 1]->scheduled_id < activity->scheduled_id);
        hf_assert(activity->scheduled_id <= run->event_count);
        hf_assert(activity->task.queue == NULL || activity->state == HF_ACTIVITY_SCHEDULED || activity->again);
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        hf_assert(i == 0 || run->timers.items[i - 1]->started_id < run->timers.items[i]->started_id);
        hf_assert(run->timers.items[i]->started_id <= run->event_count);
    }
}
