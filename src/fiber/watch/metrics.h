/* Scope durations and forks by name (Y13), kept per scheduler, added up when somebody asks. */
#ifndef HF_FIBER_METRICS_H
#define HF_FIBER_METRICS_H

#include "fiber/core.h"

/* What a scope and a shield without a name of its own are called. Compared by address: such a scope costs neither a
 * clock nor a table. */
extern const char hf_unnamed_scope[];
extern const char hf_unnamed_shield[];

/* A scope is closed on its home's thread. Unnamed ones only count. */
void hf_metrics_scope(hf_sched *sched, const hf_scope *scope);
void hf_metrics_deinit(hf_sched *sched);

#endif
