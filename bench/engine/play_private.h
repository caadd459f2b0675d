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
    char id[64];             /* workflow id */
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
    } request;
};

extern hf_pb_task_queue play_queue;  /* where everything goes */
extern hf_pb_payloads play_payloads; /* every input and every result */

errand *play_errand_new(play *p);
void play_errand_free(errand *e);
/* Submits the call; `then` comes on the play's thread, or on the engine's. */
void play_errand_send(errand *e, hf_method method, const void *request, void (*then)(errand *e));
/* False: the call failed, and was counted. Calls that end because the service is closed are no news. */
bool play_errand_is_good(errand *e);
/* While it measures. */
void play_times_add(play *p, play_times *times, int64_t ns);

#endif
