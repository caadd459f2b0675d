/* Effects: what a change means outside of the run. Applying a change alters the run and nothing else; the caller gets the effects and
 * decides what to do with them. The engine moves deadlines, puts tasks into queues and takes them out, and sends messages;
 * recovery, rebuild and tools drop them. */
#ifndef HF_RUN_EFFECTS_H
#define HF_RUN_EFFECTS_H

#include "run/memory.h"

typedef struct hf_task hf_task;
typedef struct hf_activity hf_activity;

typedef struct hf_effects {
    int64_t due;            /* a deadline came up, ns: the earliest of them; INT64_MAX = none did */
    int64_t message;        /* a message to another run goes out: its ...Initiated event; 0 = none does */
    bool is_closed;         /* the run has closed */
    hf_task *ready;         /* a task that begins to wait for a worker; NULL = none does */
    HF_VEC(hf_task *) gone; /* tasks that no longer wait to be taken */
    hf_activity *ended;     /* activities that left the run, by next_ended; their tasks no longer wait, either */
} hf_effects;

void hf_effects_init(hf_effects *effects);
/* As after init. Frees the activities that have ended; none of their tasks is linked anywhere any more. After every change, and
 * few have ended anything: inline. */
void hf_effects_free_ended(hf_run_memory *memory, hf_effects *effects);
static inline void hf_effects_clear(hf_run_memory *memory, hf_effects *effects)
{
    if (effects->ended != NULL) {
        hf_effects_free_ended(memory, effects);
    }
    effects->due = INT64_MAX;
    effects->message = 0;
    effects->is_closed = false;
    effects->ready = NULL;
    effects->gone.count = 0;
}
void hf_effects_deinit(hf_run_memory *memory, hf_effects *effects);

/* For apply. */
void hf_effects_due(hf_effects *effects, int64_t time);
void hf_effects_ready(hf_effects *effects, hf_task *task);
void hf_effects_gone(hf_run_memory *memory, hf_effects *effects, hf_task *task);
void hf_effects_end(hf_effects *effects, hf_activity *activity); /* takes it */

#endif
