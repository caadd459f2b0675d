/* Scope durations by name (Y13), kept per scheduler, added up when somebody asks. */
#ifndef HF_FIBER_METRICS_H
#define HF_FIBER_METRICS_H

#include "fiber/core.h"

/* A scope is closed on its home's thread. Unnamed ones only count. */
void hf_metrics_scope(hf_sched *sched, const hf_scope *scope);
void hf_metrics_deinit(hf_sched *sched);

#endif
