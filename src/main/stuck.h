/* Runs that do not go on by themselves. */
#ifndef HF_MAIN_STUCK_H
#define HF_MAIN_STUCK_H

#include "main/target.h"

#include "base/json.h"

enum { HF_STUCK_QUEUES_MAX = 256, HF_STUCK_ERROR_MAX = 600, HF_STUCK_FROM_ATTEMPT = 3 };

/* One of them. Texts are valid until the visitor returns. */
typedef struct hf_stuck {
    hf_str workflow_id;
    hf_str run_id;
    hf_str type;
    const char *reason; /* "task-fails", "no-poller", "crashes", "activity-fails", "damaged" */
    const char *why;    /* a sentence */
    const char *error;  /* the last one; empty = none */
    const char *help;   /* what to do */
} hf_stuck;

/* Whether somebody polls a queue, asked once for each. */
typedef struct hf_stuck_queue {
    char name[1000];
    bool is_activity;
    bool has_poller;
} hf_stuck_queue;

typedef struct hf_stuck_search {
    const hf_tool_args *args;
    const hf_tool_target *target;
    uint64_t looked_max; /* runs to look at; 0 = all */
    void (*visit)(struct hf_stuck_search *search, const hf_stuck *stuck);
    void *arg;

    uint64_t looked;
    uint64_t count;
    uint64_t waiting; /* in a file at rest: runs that are not stuck, and wait for a program that opens the file */
    hf_stuck_queue queues[HF_STUCK_QUEUES_MAX];
    size_t queue_count;
} hf_stuck_search;

/* Looks at all open runs of the namespace. `source` is that of a file at rest. */
hf_status hf_stuck_find(hf_op *op, hf_stuck_search *search, hf_tool_source *source);
/* The same for the current run of one workflow. The target is open. */
hf_status hf_stuck_ask(hf_op *op, hf_stuck_search *search, const char *workflow_id);
/* The same in a file at rest: `what` is a workflow id or a run id. */
hf_status hf_stuck_look(hf_op *op, hf_stuck_search *search, hf_tool_source *source, const char *what);
/* An object of the writer's array. */
void hf_stuck_put_json(hf_json *writer, const hf_stuck *stuck);
/* The task queue on which an activity waits for a worker; empty = it does not, or it is not known. */
hf_str hf_pending_queue(const hf_pb_pending_activity_info *info, int64_t now_ns);
/* Whether a worker has polled the queue in the last minutes. What cannot be found out counts as polled. */
bool hf_queue_is_polled(hf_service *service, const char *namespace_, hf_str name, bool is_activity, hf_arena *arena);
hf_status hf_describe_queue(hf_op *op, hf_service *service, const char *namespace_, hf_str name, int32_t type,
                            hf_arena *arena, const hf_pb_describe_task_queue_response **ret_queue);

#endif
