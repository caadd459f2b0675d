/* Tasks that may take the process down; engine-U1 to engine-U3 are in suspect.c. */
#ifndef HF_ENGINE_SUSPECT_H
#define HF_ENGINE_SUSPECT_H

#include "engine/core.h"
#include "run/run.h"

/* The suspect that a worker of this process has, while no such worker gets another task (suspect.c). */
typedef struct hf_alone {
    int64_t run;          /* 0 = there is none */
    int64_t scheduled_id; /* of the activity; 0 = the workflow task */
    int64_t stamp;        /* its started_time */
    int32_t attempt;
    int64_t since; /* ns: when it was handed out */
    int64_t until; /* mono ns */
} hf_alone;

/* Crashes of a task whose process ended: plus one if it did not close the store, or its connection to the owner of the file. */
uint32_t hf_suspect_count(hf_core *core, const hf_task *task, bool is_unclean);
int64_t hf_suspect_pause(uint32_t crashes); /* ns; 0 = none */
bool hf_suspect_is_paused(const hf_core *core, const hf_task *task, int64_t until);
bool hf_task_is_suspect(const hf_task *task);
void hf_suspect_add(hf_core *core, hf_task *task, hf_queue *queue); /* it waits until all others were handed out */
void hf_suspect_remove(hf_task *task);                              /* it no longer waits */
/* Gives a suspect that has waited too long to the first poll of the queue, though other tasks wait there. The queue has a poll. */
void hf_suspect_poll(hf_core *core, hf_queue *queue);
void hf_suspects_tick(hf_core *core);          /* hands out the suspect whose turn it is */
int64_t hf_suspects_next(const hf_core *core); /* mono ns; INT64_MAX = not by time */

#endif
