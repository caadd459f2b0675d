/* The workers of the killed program: they poll, and answer with what flow.c decides. */
#include "kill/flow.h"

#include "history/payload.h"

#include <stdio.h>

/* A task may be gone by the time it is answered: canceled, timed out, or overtaken by a signal. */
static bool is_late(hf_status status)
{
    return status == HF_ERR_NOT_FOUND || status == HF_ERR_INVALID;
}

static hf_status answer_query(child_asking *a, const hf_pb_poll_workflow_task_queue_response *task)
{
    hf_pb_respond_query_task_completed_request answer = {
        .namespace = child_namespace,
        .task_token = task->task_token,
        .completed_type = HF_QUERY_RESULT_TYPE_ANSWERED,
        .query_result = flow_query(a, task),
    };
    return child_ask(a, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, &answer, false);
}

void *child_workflows(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(child_seed, 1000 + (uintptr_t)arg)};
    child_asking a;
    child_ask_init(&a);
    while (!atomic_load(&child_is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_workflow_task_queue_request poll = {.namespace = child_namespace, .task_queue = &child_queue};
        hf_status status = child_ask(&a, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, hf_rng_below(&rng, 2) == 0);
        const hf_pb_poll_workflow_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        char id[44];
        (void)snprintf(id, sizeof id, "%.*s", HF_STR_ARGS(task->workflow_execution->workflow_id));
        bool is_end = false;
        if (task->query != NULL) {
            status = answer_query(&a, task);
        } else {
            hf_pb_respond_workflow_task_completed_request answer = {.namespace = child_namespace,
                                                                    .task_token = task->task_token};
            is_end = flow_decide(&a, &rng, task, &answer);
            status = child_ask(&a, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &answer, false);
        }
        if (status == HF_OK && is_end) {
            child_note("D %s %.*s", id, HF_STR_ARGS(task->workflow_execution->run_id));
        } else if (status != HF_OK && !is_late(status)) {
            child_give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

static hf_status fail(child_asking *a, const hf_pb_poll_activity_task_queue_response *task)
{
    hf_pb_respond_activity_task_failed_request answer = {
        .namespace = child_namespace,
        .task_token = task->task_token,
        .failure = hf_failure_application(&a->arena, HF_STR("Busy"), HF_STR("not now"), false),
    };
    return child_ask(a, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &answer, false);
}

/* By its token, or as somebody who only knows its name. */
static hf_status complete(child_asking *a, const hf_pb_poll_activity_task_queue_response *task, bool by_id)
{
    if (!by_id) {
        hf_pb_respond_activity_task_completed_request answer = {.namespace = child_namespace,
                                                                .task_token = task->task_token};
        return child_ask(a, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &answer, false);
    }
    hf_pb_respond_activity_task_completed_by_id_request answer = {
        .namespace = child_namespace,
        .workflow_id = task->workflow_execution->workflow_id,
        .run_id = task->workflow_execution->run_id,
        .activity_id = task->activity_id,
    };
    return child_ask(a, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID, &answer, false);
}

void *child_activities(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(child_seed, 2000 + (uintptr_t)arg)};
    child_asking a;
    child_ask_init(&a);
    while (!atomic_load(&child_is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_activity_task_queue_request poll = {.namespace = child_namespace, .task_queue = &child_queue};
        hf_status status = child_ask(&a, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &poll, false);
        const hf_pb_poll_activity_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        char id[44];
        (void)snprintf(id, sizeof id, "%.*s", HF_STR_ARGS(task->workflow_execution->workflow_id));
        if (hf_rng_below(&rng, 5) == 0 && task->attempt < 3) {
            status = fail(&a, task);
        } else {
            status = complete(&a, task, hf_rng_below(&rng, 3) == 0);
            if (status == HF_OK) {
                child_note("R %s", id);
            }
        }
        if (status != HF_OK && !is_late(status)) {
            child_give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}
