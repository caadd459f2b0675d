#include "run/effects.h"

#include "run/run.h"

void hf_effects_init(hf_effects *effects)
{
    *effects = (hf_effects){.due = INT64_MAX};
}

void hf_effects_free_ended(hf_run_memory *memory, hf_effects *effects)
{
    while (effects->ended != NULL) {
        hf_activity *activity = effects->ended;
        effects->ended = activity->next_ended;
        hf_activity_free(memory, activity);
    }
}

void hf_effects_deinit(hf_run_memory *memory, hf_effects *effects)
{
    hf_effects_clear(memory, effects);
    HF_VEC_FREE(memory, &effects->gone);
    hf_effects_init(effects);
}

void hf_effects_due(hf_effects *effects, int64_t time)
{
    effects->due = time < effects->due ? time : effects->due;
}

void hf_effects_ready(hf_effects *effects, hf_task *task)
{
    hf_assert(effects->ready == NULL); /* one change, one task */
    effects->ready = task;
}

void hf_effects_gone(hf_run_memory *memory, hf_effects *effects, hf_task *task)
{
    hf_assert(task->run != NULL || task->queue == NULL);
    if ((task->queue != NULL || task->is_last) && HF_VEC_RESERVE(memory, &effects->gone)) {
        effects->gone.items[effects->gone.count++] = task;
    }
}

void hf_effects_end(hf_effects *effects, hf_activity *activity)
{
    hf_assert(activity->next_ended == NULL);
    activity->next_ended = effects->ended;
    effects->ended = activity;
}
