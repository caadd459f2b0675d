/* One running activity: shared by activity.c (its life), heartbeat.c (its progress) and hung.c (when it does not
 * end). */
#ifndef HF_WORKER_ACTIVITY_PRIVATE_H
#define HF_WORKER_ACTIVITY_PRIVATE_H

#include "worker/worker_private.h"

/* The failure that hf_activity_fail recorded. */
typedef struct hf_activity_own_failure {
    bool is_final;
    hf_span retry_after;
    hf_payload details;    /* owned */
    hf_failure_body *body; /* owned: type and message */
} hf_activity_own_failure;

typedef struct hf_memo_body hf_memo_body;

struct hf_activity_work {
    hf_worker *worker;
    struct hf_local_job *job; /* of a local activity (local.h), which is told its end; NULL = the service is */
    hf_memo_body
        *body;     /* it is a call that attempts share (memo.h): it has no task of the service, and they hear its end */
    bool is_local; /* of a body: a local activity began it */
    hf_str memo_id;            /* of an attempt with a memo: the key of its input, in the arena */
    hf_node busy;              /* in worker->busy */
    atomic_bool has_returned;  /* the function has returned, and its result is being sent */
    int64_t started_ns;        /* mono */
    _Atomic(int64_t) until_ns; /* mono: its attempt is over then; INT64_MAX = no bound */
    hf_arena arena;            /* the task and the messages about it */
    const hf_pb_poll_activity_task_queue_response *task;
    const hf_function_entry *entry;
    hf_activity_facts facts;
    hf_payload in;   /* borrowed from the arena */
    hf_payload out;  /* result of the function */
    hf_scope *work;  /* while the function runs; changed under worker->busy_lock */
    atomic_int pins; /* calls of hf_activity_cancel that use `work`; raised under worker->busy_lock */
    hf_scope *beats;
    _Atomic(const hf_fiber *) fiber; /* with .on_fiber: the fiber, while the function runs; identifies a zombie */
    atomic_bool has_slot;            /* of hf_activity_slots: given back once, at the end or before */
    _Atomic(hf_chan *) beat;         /* capacity 1: there is something to send; made with the first heartbeat */
    atomic_bool is_beating;          /* the fiber that sends was forked */
    int64_t lapse_ns;   /* mono: the service must take a heartbeat before; used by that fiber; INT64_MAX = no bound */
    bool has_lapsed;    /* no heartbeat was taken in time; used by that fiber, and by the fiber that has joined it */
    hf_spin lock;       /* of the next three */
    hf_payload details; /* of the last heartbeat; owned */
    bool is_dirty;      /* it was not sent yet */
    hf_activity_own_failure *verdict; /* owned; NULL = hf_activity_fail was not called */
    atomic_bool is_cancel_requested;  /* by the workflow; also before the function runs */
    atomic_int why;                   /* hf_cancel_why: the first reason to end that was seen */
    atomic_bool is_gone;              /* the service does not know it any more ... */
    char gone_why[160];               /* ... and said why; written once, before that */
};

/* A local value of the activity's fiber and of whatever the function forks: the activity. */
extern const hf_local hf_activity_local;

/* Adds a span to a point in time; any values are allowed. */
static inline int64_t hf_ns_later(int64_t ns, hf_span span)
{
    int64_t sum = 0;
    return __builtin_add_overflow(ns, span.ns, &sum) ? INT64_MAX : sum;
}

/* activity.c: notes why it should end, unless there is a reason already. */
void hf_activity_note_why(hf_activity_work *act, hf_cancel_why why);

/* ---- activity.c, for memo.c -------------------------------------------------------------------------------------- */
/* Makes `act`, which has worker, body and arena, an activity like the attempt `by`, and lists it. It is then released,
 * also on failure. Fails: HF_ERR_NOMEM. */
hf_status hf_activity_stand_in(hf_activity_work *act, const hf_activity_work *by);
/* Calls the function, on this fiber or on a thread, inside the scope. `*ret_failure` is in the arena. */
hf_status hf_activity_call(hf_activity_work *act, hf_scope *scope, hf_pb_failure **ret_failure);
/* The status, or that with which a result that cannot be sent fails. */
hf_status hf_activity_check_result(hf_activity_work *act, hf_status status, hf_pb_failure **failure);
/* Gives `failure` (may be NULL) the type, message and details that hf_activity_fail recorded, and keeps its causes. */
void hf_activity_apply_verdict(hf_activity_work *act, hf_pb_failure *failure);
/* Frees it. */
void hf_activity_release(hf_activity_work *act);

/* ---- heartbeat.c ------------------------------------------------------------------------------------------------- */
/* The details of the last heartbeat, which were not sent; the caller's. */
hf_payload hf_activity_take_details(hf_activity_work *act);
/* Starts the fiber that sends heartbeats, if the activity has a heartbeat timeout. */
void hf_activity_expect_beats(hf_activity_work *act);

static inline bool hf_activity_is_local(const hf_activity_work *act)
{
    return act->job != NULL || act->is_local;
}

/* Where its slot is from. */
static inline hf_sem *hf_activity_slots(const hf_activity_work *act)
{
    return act->job != NULL ? act->worker->local_slots : act->worker->activity_slots;
}

/* ---- reach.c ----------------------------------------------------------------------------------------------------- */
/* Its scope may be canceled by hf_activity_cancel from now on; a cancel that came earlier is carried out. */
void hf_activity_be_reachable(hf_activity_work *act, hf_scope *scope);
/* The attempt at hand of a local activity, pinned for hf_activity_cancel; NULL = none is under way. */
hf_activity_work *hf_activity_pin_local(const struct hf_local_job *job);
/* Waits until no call of hf_activity_cancel uses it. */
void hf_activity_await_pins(hf_activity_work *act);
/* Nobody cancels the scope any more. */
void hf_activity_be_unreachable(hf_activity_work *act);

/* ---- hung.c ------------------------------------------------------------------------------------------------------ */
/* Frees its slot, once. Any thread may call it. */
void hf_activity_free_slot(hf_activity_work *act);

#endif
