/* Shared by the files of a reset: reset.c, reset_call.c, reset_events.c, reset_portion.c and reset_last.c. */
#ifndef HF_ENGINE_MACHINES_RESET_PRIVATE_H
#define HF_ENGINE_MACHINES_RESET_PRIVATE_H

#include "engine/core_private.h"
#include "engine/reset.h"

typedef enum hf_reset_stage {
    RESET_FIND,     /* the events of the base are searched for the point */
    RESET_COPY,     /* the events up to the point become the first events of the new run */
    RESET_REAPPLY,  /* the events behind the point, and those of the runs that continued the base, are looked through */
    RESET_ASK_NEXT, /* the run that continued the last one is loaded */
    RESET_ASK_CURRENT, /* the current run of the id is loaded */
    RESET_LAST         /* everything is known */
} hf_reset_stage;

enum { RESET_TO_FIRST = 1, RESET_TO_LAST = 2 }; /* holdfast_point of the request */

struct hf_reset {
    hf_call call; /* to another run of the id; first */
    hf_node link; /* of one of hf_resets' lists */
    hf_core *core;
    hf_arena arena; /* of `call` */
    hf_pb_workflow_execution execution;
    hf_pb_reset_workflow_execution_request asks; /* the request of `call` */
    hf_call *caller;
    hf_list joined; /* calls with the same request id: they get the same answer */
    hf_reset_stage stage;
    int64_t base;    /* the run that is reset; held, like the next two */
    int64_t source;  /* the run whose events are taken; 0 = none is */
    int64_t current; /* the current run of the id; 0 = it was not found yet */
    bool has_none;   /* there is no current run */
    int64_t met;     /* the run that `call` met; 0 = none */
    int64_t next;    /* event of the source that is taken next */
    int64_t point;   /* the last event that is copied; 0 = it is not known yet */
    int64_t found;   /* RESET_FIND: the event that ends the task; 0 = none so far */
    int64_t
        scheduled_id;   /* the last WorkflowTaskScheduled event that was met, or the first one if it is only searched */
    int64_t started_id; /* the WorkflowTaskStarted event behind it; 0 = there is none */
    hf_owned next_run_id; /* the run that continued the source; empty = none did */
    size_t log_at;        /* where the event `next` begins in the log of the source ... */
    int64_t log_id;       /* ... if this is that event ... */
    uint64_t log_spills;  /* ... and this the number of times that the log was written */
    hf_slot *made;        /* the new run, which nobody can find: engine-R2; NULL = nothing was copied yet */
    int64_t made_count;   /* its events that are in rows */
    bool is_written;      /* it has rows, and one in the meta table: engine-R4 */
    int tries;
};

/* ---- reset.c ------------------------------------------------------------------------------------------------------------ */

/* The lists of all resets. */
hf_list *const *hf_resets_lists(hf_core *core, hf_list *(*ret_lists)[3]);
/* The reset goes to another of them. */
void hf_reset_move(hf_reset *it, hf_list *to);
/* The run stays in memory, and is not deleted from the store, until hf_reset_let_go is called with its number; that sets the number to 0. */
void hf_reset_hold(hf_core *core, hf_run *run);
void hf_reset_let_go(hf_core *core, int64_t *number);
/* The run becomes the source, from this event on. */
void hf_reset_read_from(hf_core *core, hf_reset *it, hf_run *run, int64_t event_id);
/* The call of the reset has found a run of its id. */
void hf_reset_meet(hf_reset *it, const hf_run *run);
/* Drops the new run. Its rows go with the next commit. */
void hf_reset_unmake(hf_core *core, hf_reset *it);
/* The next call that waits for the end of the reset; NULL = all are answered. */
hf_call *hf_reset_next_caller(hf_reset *it);
/* Answers everybody with a failure, and ends the reset. */
void hf_reset_fail(hf_core *core, hf_reset *it, hf_status status, const char *format, ...) HF_PRINTF(4, 5);
/* Frees the reset, whose callers have been answered. */
void hf_reset_end(hf_core *core, hf_reset *it);

/* ---- reset_call.c ------------------------------------------------------------------------------------------------------- */

/* Answers a caller: this is the new run. */
void hf_reset_answer(hf_core *core, hf_call *call, hf_str run_id);

/* ---- reset_portion.c ---------------------------------------------------------------------------------------------------- */

/* Whether this step may take another event: engine-R1. */
bool hf_resets_may_take(const hf_core *core);
/* Takes the next portion of the source, or reads it, or goes on to the next stage. */
void hf_reset_take_portion(hf_core *core, hf_reset *it);
/* Takes events from the log of the source; `is_last`: all of them. False: the reset has ended. */
bool hf_reset_take_log(hf_core *core, hf_reset *it, const hf_run *run, bool is_last);

/* ---- reset_last.c ------------------------------------------------------------------------------------------------------- */

/* The new run gets its number and its id, unless it has them. */
void hf_reset_number(hf_core *core, hf_reset *it);
/* The last step, unless something has changed meanwhile: then the reset goes back to an earlier stage. */
void hf_reset_finish(hf_core *core, hf_reset *it);

/* ---- reset_events.c ---------------------------------------------------------------------------------------------------- */

/* Takes one event of the source. False: the reset has ended. */
bool hf_reset_take(hf_core *core, hf_reset *it, hf_str bytes);
/* Where the search has led, after the last event of the base. False: it has failed. */
bool hf_reset_found(hf_core *core, hf_reset *it);
/* Adds the signals and options of the request to the new run. */
void hf_reset_add_operations(hf_core *core, hf_reset *it);

#endif
