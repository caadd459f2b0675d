/* Local activities and side effects: activities that the worker of a run executes itself, inside a step of the run.
 *
 * A regular activity is a command; its end is an event that begins a step. A local one leaves only a marker, in the step in
 * which it ends:
 *
 *     fiber: hf_activity_run_local --> wf->locals --> the step has settled: begun --> hf_local_job, a fiber of the worker
 *     driver: waits for the next end --> RecordMarker, the fiber is woken, settle --> again, until none is under way
 *     or 80 % of the task's time are over: the commands so far go out, and the next step waits on (a heartbeat)
 *
 * In a replay the markers of a step say which of them ended in it, and in which order; nothing is executed.
 *
 * worker-J1  A local activity begins after the service has told that the start of its workflow task is durable: the run has that task,
 *     and not another one that was started after the process of the engine had died.
 * worker-J2  One end is one marker and one turn. The code sees of an end exactly what the marker has.
 * worker-J3  The run and the fiber that executes a job share it: the last of them frees it. `wf` of a job is set, under
 *     worker->local_lock, as long as the run wants its end.
 * worker-J4  A run whose job uses memory of a fiber (hf_side_effect) is not freed before that job has ended. */
#ifndef HF_WORKER_LOCAL_H
#define HF_WORKER_LOCAL_H

#include "worker/wf.h"

typedef struct hf_local_job hf_local_job;

/* How one ended, as its marker tells. */
typedef struct hf_local_end {
    uint64_t seq;
    int attempt;
    hf_str id;
    hf_str type;
    hf_time completed;
    hf_span backoff;   /* above 0: it is tried again after a timer of this length */
    hf_time scheduled; /* when the first attempt was asked for */
    const hf_pb_payloads *result;
    hf_pb_failure *failure; /* NULL = it completed */
} hf_local_end;

/* ---- local_marker.c ---------------------------------------------------------------------------------------------- */

#define HF_LOCAL_MARKER "core_local_activity"

bool hf_local_marker_is(const hf_pb_history_event *event);
/* Reads a marker; texts are in the arena or the event. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_local_marker_read(hf_op *op, const hf_pb_history_event *event, hf_arena *arena, hf_local_end *ret_end);
/* Adds the command, as one of `local`, which has ended so; with the number of its scope, if it is to have one. False: out of
 * memory. */
bool hf_local_marker_record(const hf_wf_local *local, const hf_local_end *end, bool has_scope);

/* ---- verbs_local.c: the driver's side, between turns --------------------------------------------------------------- */

/* All that were asked for are begun from now on: a cancel does not undo them any more. */
void hf_wf_locals_begin(hf_wf *wf);
/* What a fiber waits for under this number; NULL = none does. */
hf_wf_local *hf_wf_local_find(hf_wf *wf, uint64_t seq);
/* Gives this end to the fiber that waits for it. */
void hf_wf_local_resolve(hf_wf_local *local, const hf_local_end *end);
/* The end of a step that was played before. Fails: HF_ERR_CONFLICT: the code did not ask for it. */
hf_status hf_wf_local_replay(hf_op *op, hf_wf *wf, const hf_pb_history_event *event);

/* ---- local_job.c: executing ---------------------------------------------------------------------------------------- */

struct hf_local_job {
    hf_node node;     /* in wf->local_jobs */
    hf_node end_node; /* in wf->local_ends */
    hf_worker *worker;
    atomic_int refs;   /* worker-J3 */
    hf_wf *wf;         /* worker-J3; under worker->local_lock */
    bool is_pinned;    /* worker-J4 */
    bool is_over;      /* the driver has its end; this and the next three are the driver's */
    bool is_left;      /* its fiber does not wait any more */
    bool is_abandoned; /* nor is it told */
    bool is_told;      /* to end */
    uint64_t seq;
    hf_arena arena;                               /* of the texts, the input and the end */
    hf_pb_poll_activity_task_queue_response task; /* as a poll would bring it, without a token */
    hf_effect effect;                             /* of hf_side_effect; NULL = an activity by its name */
    void *effect_arg;
    hf_pb_retry_policy *policy; /* filled in */
    hf_span schedule_to_start;
    hf_span timer_after; /* longer pauses become a timer of the workflow */
    hf_chan *cancel;     /* closed: it should end */
    hf_chan *answered;   /* an attempt has ended */
    bool is_canceled;    /* under worker->local_lock */
    bool is_answered;    /* the same: the attempt at hand writes `said`, or has written it */
    int attempt;         /* the same: the one at hand */
    struct {
        hf_status status;
        hf_payload out;
        hf_pb_failure *failure; /* in the arena */
    } said;                     /* by the attempt at hand */
    hf_local_end end;           /* written before it is in wf->local_ends */
    bool is_lost;               /* the worker stops: it has not ended, and another worker runs it */
};

/* Starts what the fiber asked for. Fails: HF_ERR_NOMEM. */
hf_status hf_local_job_begin(hf_op *op, hf_wf_local *local);
/* Asks it to end. */
void hf_local_job_cancel(hf_local_job *job);
/* The run does not want its end any more. */
void hf_local_job_leave(hf_local_job *job);
void hf_local_job_unref(hf_local_job *job);
/* activity.c: executes one attempt, on a fiber of its own. Fails: HF_ERR_NOMEM. */
hf_status hf_activity_begin_local(hf_op *op, hf_local_job *job);
/* Called by the fiber of attempt `number` when it has ended; takes `out`. Dropped if nobody waits for that attempt. */
void hf_local_job_hear(hf_local_job *job, int number, hf_status status, hf_payload *out, const hf_pb_failure *failure);

/* ---- local_step.c: the driver ---------------------------------------------------------------------------------------- */

/* The stage of a step in which local activities end. `settle` gives turns. Fails: as hf_wf_apply. */
hf_status hf_wf_play_locals(hf_op *op, hf_wf *wf, hf_status (*settle)(hf_op *op, hf_wf *wf));
/* The run leaves memory. The first asks its jobs to end and waits for those that use memory of its fibers; the second, when
 * its fibers are gone, leaves the others to themselves. */
void hf_wf_locals_stop(hf_wf *wf);
void hf_wf_locals_close(hf_wf *wf);

#endif
