/* A client and a scripted worker on a simulated runtime, on virtual time, with the real engine between them, on a store in
 * memory. A test's body is the worker: it polls and answers through the service. Calls of the client that wait run beside
 * it, on fibers of their own (scene_ask). */
#ifndef HF_TESTS_SCENE_H
#define HF_TESTS_SCENE_H

#include "support/support.h"
#include "support/tap.h"

#include "base/arena.h"
#include "base/buf.h"
#include "history/payload.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scene scene;
typedef hf_pb_poll_workflow_task_queue_response scene_task;

struct scene {
    hf_status (*body)(scene *s);
    tap_options faults; /* of the service */
    tap *tap;
    hf_service *service; /* the tap's */
    hf_scope *scope;     /* of the calls that wait */
    hf_arena arena;      /* of requests and answers of the worker */
};

/* ---- The client --------------------------------------------------------------------------------------------------- */

/* One call of the client, its arguments and its result. */
typedef struct scene_call {
    hf_status (*verb)(struct scene_call *call); /* one of the functions below, or the test's own */
    scene *s;
    hf_execution *execution;
    const char *name;
    const char *id;
    hf_span timeout;
    hf_update_handle *handle;
    hf_execution *started;
    bool is_done;
    hf_status status;
    char out[200];  /* the result */
    char type[100]; /* hf_error()->type */
    char text[400]; /* hf_error_text() */
} scene_call;

static inline void scene_note(scene_call *c, hf_status status, hf_payload out)
{
    c->status = status;
    (void)snprintf(c->out, sizeof c->out, "%.*s", (int)out.len, out.data != NULL ? (const char *)out.data : "");
    if (status != HF_OK) {
        (void)snprintf(c->type, sizeof c->type, "%s", hf_error()->type);
        (void)snprintf(c->text, sizeof c->text, "%s", hf_error_text());
    }
}

static inline hf_status scene_query(scene_call *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    scene_note(c, hf_query(c->execution, c->name, hf_payload_of_json("7"), &out, .timeout = c->timeout), out);
    return HF_OK;
}

static inline hf_status scene_update(scene_call *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status =
        hf_update(c->execution, c->name, hf_payload_of_json("7"), &out, .id = c->id, .timeout = c->timeout);
    scene_note(c, status, out);
    return HF_OK;
}

static inline hf_status scene_update_start(scene_call *c)
{
    hf_status status =
        hf_update_start(c->execution, c->name, hf_payload_of_json("7"), &c->handle, .id = c->id, .timeout = c->timeout);
    scene_note(c, status, hf_payload_none());
    return HF_OK;
}

static inline hf_status scene_update_result(scene_call *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    scene_note(c, hf_update_result(c->handle, &out, .timeout = c->timeout), out);
    return HF_OK;
}

static inline hf_status scene_result(scene_call *c)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    scene_note(c, hf_result(c->execution, &out, .timeout = c->timeout), out);
    return HF_OK;
}

static inline hf_status scene_call_body(void *arg)
{
    scene_call *c = arg;
    hf_status status = c->verb(c);
    c->is_done = true;
    return status;
}

/* Begins a call beside the worker. */
static inline hf_status scene_ask(scene *s, scene_call *c)
{
    c->s = s;
    return hf_fork(s->scope, scene_call_body, c);
}

/* Waits for all calls. */
static inline hf_status scene_wait(scene *s)
{
    HF_TRY(hf_join(s->scope));
    HF_TRY(hf_scope_close(s->scope));
    s->scope = NULL;
    return hf_scope_open(&s->scope, .name = "calls");
}

static inline void scene_expect(const scene_call *c, hf_status status, const char *out)
{
    HF_CHECK_SAY(c->is_done && c->status == status, "%s: %s", hf_status_name(c->status), c->text);
    HF_CHECK_SAY(strcmp(c->out, out) == 0, "it gave '%s', not '%s'", c->out, out);
}

/* ---- The worker --------------------------------------------------------------------------------------------------- */

static inline void *scene_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len > 0 ? len : 1);
}

static inline void scene_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

/* Its response; NULL: it failed. */
static inline void *scene_do(scene *s, hf_method method, const void *request, hf_status *ret_status)
{
    hf_op op;
    hf_call *call = HF_ARENA_NEW(&s->arena, hf_call);
    hf_op_init(&op);
    hf_call_init(call, method, request, &s->arena, NULL);
    hf_status status = hf_service_ask(&op, s->service, call);
    if (ret_status != NULL) {
        *ret_status = status;
    } else {
        HF_CHECK_SAY(status == HF_OK, "%s", op.message);
    }
    return status == HF_OK ? call->response : NULL;
}

/* The next task of the queue "default". */
static inline const scene_task *scene_poll(scene *s)
{
    hf_pb_task_queue queue = {.name = HF_STR("default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_poll_workflow_task_queue_request request = {
        .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("worker")};
    const scene_task *task = NULL;
    do { /* a long poll may end without a task */
        task = scene_do(s, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, NULL);
    } while (task != NULL && task->task_token.len == 0);
    return task;
}

typedef struct scene_reply {
    hf_pb_command commands[8];
    size_t command_count;
    hf_pb_message messages[8];
    size_t message_count;
    hf_pb_respond_workflow_task_completed_request_query_results_entry answers[8];
    size_t answer_count;
} scene_reply;

static inline hf_pb_payloads *scene_json(scene *s, const char *text)
{
    return hf_payloads_of(&s->arena, hf_payload_json(&s->arena, hf_str_of(text)));
}

static inline hf_pb_command *scene_command(scene_reply *r, int32_t type, uint32_t which)
{
    hf_pb_command *command = &r->commands[r->command_count++];
    command->command_type = type;
    command->attributes_case = which;
    return command;
}

static inline void scene_done(scene *s, scene_reply *r, const char *result)
{
    hf_pb_command *command = scene_command(r, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
                                           HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES);
    command->complete_workflow_execution_command_attributes =
        HF_ARENA_NEW(&s->arena, hf_pb_complete_workflow_execution_command_attributes);
    command->complete_workflow_execution_command_attributes->result = scene_json(s, result);
}

static inline void scene_fail(scene *s, scene_reply *r, const char *why)
{
    hf_pb_command *command = scene_command(r, HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
                                           HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES);
    command->fail_workflow_execution_command_attributes =
        HF_ARENA_NEW(&s->arena, hf_pb_fail_workflow_execution_command_attributes);
    command->fail_workflow_execution_command_attributes->failure =
        hf_failure_application(&s->arena, HF_STR("Oops"), hf_str_of(why), false);
}

static inline void scene_continue(scene *s, scene_reply *r)
{
    hf_pb_command *command = scene_command(r, HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
                                           HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES);
    hf_pb_continue_as_new_workflow_execution_command_attributes *a =
        HF_ARENA_NEW(&s->arena, hf_pb_continue_as_new_workflow_execution_command_attributes);
    a->workflow_type = HF_ARENA_NEW(&s->arena, hf_pb_workflow_type);
    a->workflow_type->name = HF_STR("type");
    a->task_queue = HF_ARENA_NEW(&s->arena, hf_pb_task_queue);
    a->task_queue->name = HF_STR("default");
    command->continue_as_new_workflow_execution_command_attributes = a;
}

static inline void scene_activity(scene *s, scene_reply *r, const char *id, int attempts_max)
{
    hf_pb_command *command = scene_command(r, HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
                                           HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES);
    hf_pb_schedule_activity_task_command_attributes *a =
        HF_ARENA_NEW(&s->arena, hf_pb_schedule_activity_task_command_attributes);
    a->activity_id = hf_str_of(id);
    a->activity_type = HF_ARENA_NEW(&s->arena, hf_pb_activity_type);
    a->activity_type->name = HF_STR("charge");
    a->task_queue = HF_ARENA_NEW(&s->arena, hf_pb_task_queue);
    a->task_queue->name = HF_STR("default");
    a->start_to_close_timeout = hf_pb_duration_of(hf_seconds(100));
    a->schedule_to_close_timeout = hf_pb_duration_of(hf_seconds(1000));
    a->heartbeat_timeout = hf_pb_duration_of(hf_seconds(50));
    a->retry_policy = HF_ARENA_NEW(&s->arena, hf_pb_retry_policy);
    a->retry_policy->maximum_attempts = attempts_max;
    command->schedule_activity_task_command_attributes = a;
}

static inline void scene_child(scene *s, scene_reply *r, const char *id)
{
    hf_pb_command *command = scene_command(r, HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
                                           HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES);
    hf_pb_start_child_workflow_execution_command_attributes *a =
        HF_ARENA_NEW(&s->arena, hf_pb_start_child_workflow_execution_command_attributes);
    a->namespace = HF_STR("default");
    a->workflow_id = hf_str_of(id);
    a->workflow_type = HF_ARENA_NEW(&s->arena, hf_pb_workflow_type);
    a->workflow_type->name = HF_STR("kid");
    a->task_queue = HF_ARENA_NEW(&s->arena, hf_pb_task_queue);
    a->task_queue->name = HF_STR("nursery");
    command->start_child_workflow_execution_command_attributes = a;
}

static inline const char *scene_text(scene *s, const char *a, const char *b)
{
    char text[200];
    (void)snprintf(text, sizeof text, "%s%s", a, b);
    return hf_arena_copy(&s->arena, hf_str_of(text)).data;
}

/* A message about an update, and its command unless it rejects. */
static inline void scene_say(scene *s, scene_reply *r, const char *id, const char *what, const hf_pb_type *type,
                             const void *body, bool has_command)
{
    hf_buf bytes;
    hf_buf_init(&bytes, s->arena.memory, SIZE_MAX / 4);
    hf_pb_encode(type, body, &bytes);
    hf_pb_message *message = &r->messages[r->message_count++];
    message->id = hf_str_of(scene_text(s, id, what));
    message->protocol_instance_id = hf_str_of(id);
    message->body = HF_ARENA_NEW(&s->arena, hf_pb_any);
    message->body->type_url = hf_str_of(scene_text(s, "type.googleapis.com/", type->name));
    message->body->value = hf_arena_copy(&s->arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    if (has_command) {
        hf_pb_command *command =
            scene_command(r, HF_COMMAND_TYPE_PROTOCOL_MESSAGE, HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES);
        command->protocol_message_command_attributes =
            HF_ARENA_NEW(&s->arena, hf_pb_protocol_message_command_attributes);
        command->protocol_message_command_attributes->message_id = message->id;
    }
}

/* The only update that came with the task: its id, and the request in `*ret_asked`. */
static inline const char *scene_asked(scene *s, const scene_task *task, hf_pb_request **ret_asked)
{
    hf_op op;
    hf_op_init(&op);
    if (!HF_CHECK(task->messages.count == 1)) {
        return "";
    }
    *ret_asked = HF_ARENA_NEW(&s->arena, hf_pb_request);
    HF_CHECK(hf_pb_decode(&op, &hf_pb_request_type, task->messages.items[0].body->value, &s->arena, *ret_asked) ==
             HF_OK);
    return hf_arena_copy(&s->arena, task->messages.items[0].protocol_instance_id).data;
}

static inline const char *scene_accept(scene *s, scene_reply *r, const scene_task *task)
{
    hf_pb_request *asked = NULL;
    const char *id = scene_asked(s, task, &asked);
    if (asked != NULL) {
        hf_pb_acceptance body = {
            hf_str_of(scene_text(s, id, "/request")), task->messages.items[0].event_id, asked, {0}};
        scene_say(s, r, id, "/accept", &hf_pb_acceptance_type, &body, true);
    }
    return id;
}

static inline void scene_reject(scene *s, scene_reply *r, const scene_task *task, const char *why)
{
    hf_pb_request *asked = NULL;
    const char *id = scene_asked(s, task, &asked);
    hf_pb_failure *failure = hf_failure_application(&s->arena, HF_STR("Refused"), hf_str_of(why), false);
    if (asked != NULL) {
        hf_pb_rejection body = {
            hf_str_of(scene_text(s, id, "/request")), task->messages.items[0].event_id, asked, failure, {0}};
        scene_say(s, r, id, "/reject", &hf_pb_rejection_type, &body, false);
    }
}

/* `result` NULL: it fails. */
static inline void scene_respond(scene *s, scene_reply *r, const char *id, const char *result)
{
    hf_pb_meta meta = {.update_id = hf_str_of(id)};
    hf_pb_outcome outcome = {0};
    if (result != NULL) {
        outcome = (hf_pb_outcome){.value_case = HF_PB_OUTCOME_SUCCESS, .success = scene_json(s, result)};
    } else {
        outcome =
            (hf_pb_outcome){.value_case = HF_PB_OUTCOME_FAILURE,
                            .failure = hf_failure_application(&s->arena, HF_STR("Oops"), HF_STR("no luck"), false)};
    }
    hf_pb_response body = {.meta = &meta, .outcome = &outcome};
    scene_say(s, r, id, "/respond", &hf_pb_response_type, &body, true);
}

/* What a query is answered with: `result` NULL: a failure. */
static inline void scene_answer_to(scene *s, const char *result, hf_pb_workflow_query_result *answer)
{
    answer->result_type = result != NULL ? HF_QUERY_RESULT_TYPE_ANSWERED : HF_QUERY_RESULT_TYPE_FAILED;
    if (result != NULL) {
        answer->answer = scene_json(s, result);
    } else {
        answer->error_message = HF_STR("no such view");
        answer->failure = hf_failure_application(&s->arena, HF_STR("Oops"), HF_STR("no such view"), false);
    }
}

/* Answers all queries that came with the task. */
static inline void scene_answers(scene *s, scene_reply *r, const scene_task *task, const char *result)
{
    for (size_t i = 0; i < task->queries.count && r->answer_count < HF_COUNT_OF(r->answers); i++) {
        r->answers[r->answer_count].key = task->queries.items[i].key;
        r->answers[r->answer_count].value = HF_ARENA_NEW(&s->arena, hf_pb_workflow_query_result);
        scene_answer_to(s, result, r->answers[r->answer_count++].value);
    }
}

static inline void scene_complete(scene *s, const scene_task *task, scene_reply *r)
{
    hf_pb_respond_workflow_task_completed_request request = {
        .namespace = HF_STR("default"),
        .task_token = task->task_token,
        .identity = HF_STR("worker"),
        .commands = {r->commands, r->command_count},
        .messages = {r->messages, r->message_count},
        .query_results = {r->answers, r->answer_count},
    };
    (void)scene_do(s, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &request, NULL);
}

/* The next task, answered without a command. */
static inline const scene_task *scene_pass(scene *s)
{
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_complete(s, task, &reply);
    return task;
}

/* Answers a query that came alone. */
static inline void scene_answer(scene *s, const scene_task *task, const char *result)
{
    hf_pb_workflow_query_result answer = {0};
    HF_CHECK(task->query != NULL);
    scene_answer_to(s, result, &answer);
    hf_pb_respond_query_task_completed_request request = {
        .namespace = HF_STR("default"),
        .task_token = task->task_token,
        .completed_type = answer.result_type,
        .query_result = answer.answer,
        .error_message = answer.error_message,
        .failure = answer.failure,
    };
    (void)scene_do(s, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, &request, NULL);
}

static inline const hf_pb_poll_activity_task_queue_response *scene_poll_activity(scene *s)
{
    hf_pb_task_queue queue = {.name = HF_STR("default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_poll_activity_task_queue_request request = {
        .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("worker")};
    return scene_do(s, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &request, NULL);
}

/* A workflow "w" of the type "type" on the queue "default". */
static inline hf_execution *scene_start(scene *s)
{
    hf_execution *execution = NULL;
    hf_status status = hf_start(s->service, "type", hf_payload_of_json("1"), &execution, .id = "w");
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    return execution;
}

/* ---- The frame ---------------------------------------------------------------------------------------------------- */

static hf_status scene_main(void *arg)
{
    scene *s = arg;
    hf_service *engine = NULL;
    HF_TRY(hf_open("memory:", &engine));
    s->tap = tap_new(engine, &s->faults);
    s->service = tap_as_service(s->tap);
    HF_TRY(hf_scope_open(&s->scope, .name = "calls"));
    hf_arena_init(&s->arena, (hf_allocator){scene_allocate, scene_release, NULL});
    hf_status status = s->body(s);
    HF_CHECK_SAY(status == HF_OK, "the body ended with %s: %s", hf_status_name(status), hf_error_text());
    HF_CHECK(hf_scope_close(s->scope) == HF_OK);
    hf_arena_deinit(&s->arena);
    HF_CHECK(atomic_load(&s->service->executions) == 0 && atomic_load(&s->service->updates) == 0);
    return tap_free(s->tap);
}

static inline void scene_run_with(hf_status (*body)(scene *s), tap_options faults)
{
    for (int threads = 1; threads <= 2; threads++) {
        scene s = {.body = body, .faults = faults};
        HF_CHECK(hf_sim_run(1, threads, scene_main, &s, NULL) == HF_OK);
    }
}

static inline void scene_run(hf_status (*body)(scene *s))
{
    scene_run_with(body, (tap_options){0});
}

#endif
