/* Scope durations and forks by name (Y13), kept per scheduler, added up when somebody asks. */
#ifndef HF_FIBER_METRICS_H
#define HF_FIBER_METRICS_H

#include "fiber/core.h"

/* Names of scopes and shields that were opened without a name. They are compared by address; such a scope needs
 * neither a clock nor a table. */
extern const char hf_unnamed_scope[];
extern const char hf_unnamed_shield[];

/* A scope is being closed, on the thread of its home. Unnamed scopes are only counted. */
void hf_metrics_scope(hf_sched *sched, const hf_scope *scope);
void hf_metrics_deinit(hf_sched *sched);

#endif
