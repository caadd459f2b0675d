/* What the scripted worker answers to updates and queries, and how it starts children. */
#include "engine/play_private.h"

#include <stdio.h>

#define TYPE_URL "type.googleapis.com/temporal.api.update.v1."

static void *take(hf_arena *arena, size_t count, size_t len)
{
    void *ptr = hf_arena_zero(arena, count * len, 16);
    if (ptr == NULL) {
        play_die("out of memory");
    }
    return ptr;
}

/* A message about an update. Returns it, so that a command can name it. */
static hf_pb_message *say(errand *e, hf_pb_message_list *list, hf_str update, hf_str type_url, const hf_pb_type *type,
                          const void *body)
{
    hf_buf bytes;
    hf_buf_init(&bytes, e->p->memory, SIZE_MAX / 4);
    hf_pb_encode(type, body, &bytes);
    hf_pb_message *message = &list->items[list->count++];
    char id[64];
    int len = snprintf(id, sizeof id, "%.*s/%zu", HF_STR_ARGS(update), list->count);
    message->id = hf_arena_copy(&e->arena, hf_str_of_len(id, (size_t)len));
    message->protocol_instance_id = update;
    message->body = take(&e->arena, 1, sizeof *message->body);
    message->body->type_url = type_url;
    message->body->value = hf_arena_copy(&e->arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    return message;
}

static void add_command(errand *e, hf_pb_command_list *list, const hf_pb_message *message)
{
    hf_pb_protocol_message_command_attributes *attrs = take(&e->arena, 1, sizeof *attrs);
    attrs->message_id = message->id;
    list->items[list->count++] = (hf_pb_command){
        .command_type = HF_COMMAND_TYPE_PROTOCOL_MESSAGE,
        .attributes_case = HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES,
        .protocol_message_command_attributes = attrs,
    };
}

static void take_update(errand *e, const hf_pb_message *message, hf_pb_respond_workflow_task_completed_request *answer)
{
    static hf_pb_failure refused = {.message = HF_STR_INIT("not this one")};
    hf_op op;
    hf_op_init(&op);
    hf_str update = message->protocol_instance_id;
    hf_pb_request request;
    if (hf_pb_decode(&op, &hf_pb_request_type, message->body->value, &e->arena, &request) != HF_OK) {
        play_die("an update: %s", op.message);
    }
    if (e->p->o.rejects) {
        hf_pb_rejection rejection = {message->id, message->event_id, &request, &refused, {0}};
        (void)say(e, &answer->messages, update, HF_STR(TYPE_URL "Rejection"), &hf_pb_rejection_type, &rejection);
        return;
    }
    hf_pb_acceptance acceptance = {message->id, message->event_id, &request, {0}};
    hf_pb_meta meta = {.update_id = update};
    hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS, .success = &play_payloads};
    hf_pb_response response = {.meta = &meta, .outcome = &outcome};
    add_command(e, &answer->commands,
                say(e, &answer->messages, update, HF_STR(TYPE_URL "Acceptance"), &hf_pb_acceptance_type, &acceptance));
    add_command(e, &answer->commands,
                say(e, &answer->messages, update, HF_STR(TYPE_URL "Response"), &hf_pb_response_type, &response));
}

void play_take_updates(errand *e, const hf_pb_poll_workflow_task_queue_response *task,
                       hf_pb_respond_workflow_task_completed_request *answer)
{
    size_t count = 2 * task->messages.count;
    answer->messages = (hf_pb_message_list){take(&e->arena, count, sizeof *answer->messages.items), 0};
    answer->commands = (hf_pb_command_list){take(&e->arena, count, sizeof *answer->commands.items), 0};
    for (size_t i = 0; i < task->messages.count; i++) {
        take_update(e, &task->messages.items[i], answer);
    }
}

void play_answer_query(errand *e, const hf_pb_poll_workflow_task_queue_response *task, void (*then)(errand *e))
{
    e->request.answer = (hf_pb_respond_query_task_completed_request){
        .namespace = PLAY_NAMESPACE,
        .task_token = task->task_token,
        .completed_type = HF_QUERY_RESULT_TYPE_ANSWERED,
        .query_result = &play_payloads,
    };
    play_errand_send(e, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, &e->request.answer, then);
}

/* Their ids are that of their parent, a "c" and a number. */
hf_pb_command_list play_start_kids(errand *e, hf_str parent_id, int count)
{
    static hf_pb_workflow_type type = {.name = HF_STR_INIT("kid")};
    hf_pb_command_list list = {take(&e->arena, (size_t)count, sizeof *list.items), (size_t)count};
    for (int i = 0; i < count; i++) {
        hf_pb_start_child_workflow_execution_command_attributes *attrs = take(&e->arena, 1, sizeof *attrs);
        char id[80];
        int len = snprintf(id, sizeof id, "%.*sc%d", HF_STR_ARGS(parent_id), i);
        attrs->workflow_id = hf_arena_copy(&e->arena, hf_str_of_len(id, (size_t)len));
        attrs->workflow_type = &type;
        attrs->task_queue = &play_queue;
        attrs->input = &play_payloads;
        list.items[i] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
            .attributes_case = HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
            .start_child_workflow_execution_command_attributes = attrs,
        };
    }
    return list;
}
