/* For the files of the play: an errand, one call and what follows it. */
#ifndef HF_BENCH_PLAY_PRIVATE_H
#define HF_BENCH_PLAY_PRIVATE_H

#include "engine/play.h"

#define PLAY_NAMESPACE HF_STR("default")
#define PLAY_IDENTITY HF_STR("bench@here")
#define PLAY_ID_DIGITS 32 /* a workflow id is so many digits, a dash, the number of the run */

struct errand {
    hf_call call;
    hf_arena arena;          /* of the call's answer, and of the task while it is answered */
    hf_node link;            /* of the mail, or of the idle ones */
    play *p;                 /* whose */
    void (*then)(errand *e); /* after the call */
    int64_t run;             /* number */
    bool ends;               /* this answer closes the run */
    bool is_sticky;          /* workflow polls */
    bool is_kid;             /* a workflow task of a child */
    char id[64];             /* workflow id */
    int64_t ask;             /* sweeps: which call it is */
    char ask_id[32];         /* the same as the id of a signal or an update */
    hf_pb_meta meta;
    hf_pb_request asked;
    hf_pb_workflow_query query;
    hf_pb_workflow_execution execution;
    hf_pb_command command;
    hf_pb_start_timer_command_attributes timer;
    union {
        hf_pb_start_workflow_execution_request start;
        hf_pb_signal_workflow_execution_request signal;
        hf_pb_get_workflow_execution_history_request history;
        hf_pb_poll_workflow_task_queue_request poll_workflow;
        hf_pb_poll_activity_task_queue_request poll_activity;
        hf_pb_respond_workflow_task_completed_request workflow;
        hf_pb_respond_activity_task_completed_request activity;
        hf_pb_update_workflow_execution_request update;
        hf_pb_query_workflow_request query;
        hf_pb_respond_query_task_completed_request answer;
        hf_pb_terminate_workflow_execution_request terminate;
        hf_pb_describe_workflow_execution_request describe;
    } request;
};

#define PLAY_KID HF_STR("kid")   /* types of workflows, besides the one of o.wait: a child */
#define PLAY_CLAN HF_STR("clan") /* with many children */

extern hf_pb_task_queue play_queue;  /* where everything goes */
extern hf_pb_payloads play_payloads; /* every input and every result */

errand *play_errand_new(play *p);
void play_errand_free(errand *e);
/* Submits the call; `then` comes on the play's thread, or on the engine's. */
void play_errand_send(errand *e, hf_method method, const void *request, void (*then)(errand *e));
/* False: the call failed, and was counted. Calls that end because the service is closed are no news. */
bool play_errand_is_good(errand *e);
/* answers.c: what the script does with updates, queries and children. */
void play_take_updates(errand *e, const hf_pb_poll_workflow_task_queue_response *task,
                       hf_pb_respond_workflow_task_completed_request *answer);
void play_answer_query(errand *e, const hf_pb_poll_workflow_task_queue_response *task, void (*then)(errand *e));
hf_pb_command_list play_start_kids(errand *e, hf_str parent_id, int count);
/* A client of a slot was answered. */
void play_mark(play *p);
/* While it measures. */
void play_times_add(play *p, play_times *times, int64_t ns);

#endif
