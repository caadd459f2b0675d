/* Deadlines, of runs in memory and on disk. */
#ifndef HF_ENGINE_DUE_H
#define HF_ENGINE_DUE_H

#include "base/heap.h"
#include "base/map.h"
#include "engine/core.h"
#include "engine/load.h"
#include "run/run.h"

/* A deadline of a run that is not in memory. */
typedef struct hf_cold_due {
    hf_heap_node due;
    hf_map_node by_run;
    int64_t run;
} hf_cold_due;

hf_status hf_due_add_cold(hf_core *core, int64_t time, int64_t run);
void hf_due_forget_cold(hf_core *core, int64_t run); /* it is in memory: its slot's entry is used */
bool hf_due_is_full(const hf_core *core);            /* the open batch is to be sealed before more are fired */
void hf_due_at(hf_core *core, hf_run *run, int64_t time);
/* A deadline that waited for an event (fetch.c) fires again. */
void hf_due_again(hf_core *core, hf_run *run);
void hf_due_fire(hf_core *core, hf_run *run);
void hf_due_tick(hf_core *core);
void hf_due_rows_read(hf_core *core, hf_read *read);
int64_t hf_due_read_at(const hf_core *core); /* when more deadlines are to be read; INT64_MAX = not by time */

#endif
