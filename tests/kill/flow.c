#include "kill/flow.h"

#include "history/history.h"
#include "history/payload.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMANDS_MAX = 24, MESSAGES_MAX = 2 * CHILD_UPDATES };

/* ---- What has happened ------------------------------------------------------------------------------------------------ */

typedef struct seen {
    unsigned signals;   /* of all runs of a chain */
    unsigned here;      /* of this run */
    unsigned kids;      /* a bit for each child that has completed */
    unsigned accepted;  /* a bit for each update */
    unsigned completed; /* the same */
    bool is_begun;      /* its first commands were taken */
    bool is_continued;
    bool has_result;
    bool has_fired;
    bool is_canceled;
} seen;

static unsigned bit_of(hf_str id, char first)
{
    return id.len > 0 ? 1U << ((unsigned)(id.data[id.len - 1] - first) & 31U) : 0;
}

static void see_started(seen *s, const hf_pb_workflow_execution_started_event_attributes *attrs)
{
    s->is_continued = attrs->continued_execution_run_id.len > 0;
    const hf_pb_payload *carried = hf_payloads_first(attrs->input);
    if (carried != NULL && carried->data.len > 0) {
        s->signals += (unsigned)(carried->data.data[0] - '0');
    }
}

static void see(seen *s, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        see_started(s, event->workflow_execution_started_event_attributes);
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        s->signals++;
        s->here++;
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        s->is_begun = true;
        break;
    case HF_EVENT_TYPE_TIMER_STARTED:
        s->is_begun = s->is_begun || hf_str_equal(event->timer_started_event_attributes->timer_id, HF_STR("t"));
        break;
    case HF_EVENT_TYPE_TIMER_FIRED:
        s->has_fired = s->has_fired || hf_str_equal(event->timer_fired_event_attributes->timer_id, HF_STR("t"));
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        s->has_result = true;
        break;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
        s->kids |=
            bit_of(event->child_workflow_execution_completed_event_attributes->workflow_execution->workflow_id, 'a');
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
        s->accepted |= bit_of(event->workflow_execution_update_accepted_event_attributes->protocol_instance_id, '0');
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
        s->completed |= bit_of(event->workflow_execution_update_completed_event_attributes->meta->update_id, '0');
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        s->is_canceled = true;
        break;
    default:
        break;
    }
}

static seen look_back(child_asking *a, hf_str history)
{
    seen s = {0};
    hf_str bytes = {0};
    while (hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        if (hf_pb_decode(&a->op, &hf_pb_history_event_type, bytes, &a->arena, &event) != HF_OK) {
            child_give_up("a history", a->op.message);
        }
        see(&s, &event);
    }
    return s;
}

/* ---- Commands --------------------------------------------------------------------------------------------------------- */

typedef struct plan {
    child_asking *asking;
    hf_arena *arena;
    hf_rng *rng;
    const hf_pb_poll_workflow_task_queue_response *task;
    hf_pb_respond_workflow_task_completed_request *answer;
    bool is_end;
} plan;

static hf_pb_command *add_command(plan *p, int32_t type, uint32_t attributes_case)
{
    hf_assert(p->answer->commands.count < COMMANDS_MAX);
    hf_pb_command *command = &p->answer->commands.items[p->answer->commands.count++];
    *command = (hf_pb_command){.command_type = type, .attributes_case = attributes_case};
    return command;
}

static hf_pb_payloads *text_of(hf_arena *arena, const char *text)
{
    return hf_payloads_of(arena, hf_payload_bytes(arena, hf_arena_copy(arena, hf_str_of(text))));
}

/* Nobody makes the same one again. */
static hf_pb_payloads *chance(plan *p)
{
    char text[20];
    (void)snprintf(text, sizeof text, "%016llx", (unsigned long long)hf_rng_next(p->rng));
    return text_of(p->arena, text);
}

static void do_activity(plan *p)
{
    hf_pb_schedule_activity_task_command_attributes *attrs =
        HF_ARENA_NEW(p->arena, hf_pb_schedule_activity_task_command_attributes);
    attrs->activity_id = HF_STR("a");
    attrs->activity_type = HF_ARENA_NEW(p->arena, hf_pb_activity_type);
    attrs->activity_type->name = HF_STR("work");
    attrs->task_queue = &child_queue;
    attrs->start_to_close_timeout = hf_pb_duration_of(hf_seconds(60));
    attrs->retry_policy = HF_ARENA_NEW(p->arena, hf_pb_retry_policy);
    attrs->retry_policy->initial_interval = hf_pb_duration_of(hf_milliseconds(1));
    attrs->retry_policy->maximum_interval = hf_pb_duration_of(hf_milliseconds(5));
    add_command(p, HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK, HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES)
        ->schedule_activity_task_command_attributes = attrs;
}

static void start_timer(plan *p, hf_str id, hf_span span)
{
    hf_pb_start_timer_command_attributes *attrs = HF_ARENA_NEW(p->arena, hf_pb_start_timer_command_attributes);
    attrs->timer_id = id;
    attrs->start_to_fire_timeout = hf_pb_duration_of(span);
    add_command(p, HF_COMMAND_TYPE_START_TIMER, HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES)
        ->start_timer_command_attributes = attrs;
}

static void start_kid(plan *p, const char *type, int32_t policy)
{
    char id[44];
    (void)snprintf(id, sizeof id, "%.*s.%c", HF_STR_ARGS(p->task->workflow_execution->workflow_id), type[4]);
    hf_pb_start_child_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(p->arena, hf_pb_start_child_workflow_execution_command_attributes);
    attrs->workflow_id = hf_arena_copy(p->arena, hf_str_of(id));
    attrs->workflow_type = HF_ARENA_NEW(p->arena, hf_pb_workflow_type);
    attrs->workflow_type->name = hf_arena_copy(p->arena, hf_str_of(type));
    attrs->task_queue = &child_queue;
    attrs->parent_close_policy = policy;
    add_command(p, HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
                HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES)
        ->start_child_workflow_execution_command_attributes = attrs;
}

static void continue_as_new(plan *p, unsigned signals)
{
    char carried[8];
    (void)snprintf(carried, sizeof carried, "%u", signals);
    hf_pb_continue_as_new_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(p->arena, hf_pb_continue_as_new_workflow_execution_command_attributes);
    attrs->input = text_of(p->arena, carried);
    add_command(p, HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
                HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES)
        ->continue_as_new_workflow_execution_command_attributes = attrs;
}

static void complete(plan *p)
{
    hf_pb_complete_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(p->arena, hf_pb_complete_workflow_execution_command_attributes);
    attrs->result = chance(p);
    add_command(p, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
                HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES)
        ->complete_workflow_execution_command_attributes = attrs;
    p->is_end = true;
}

static void be_canceled(plan *p)
{
    add_command(p, HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
                HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES)
        ->cancel_workflow_execution_command_attributes =
        HF_ARENA_NEW(p->arena, hf_pb_cancel_workflow_execution_command_attributes);
    p->is_end = true;
}

/* ---- Updates ---------------------------------------------------------------------------------------------------------- */

/* A message about an update; with a command, unless it rejects it. */
static void say(plan *p, hf_str update, const char *verb, const char *type_name, const hf_pb_type *type,
                const void *body)
{
    char text[80];
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_pb_encode(type, body, &bytes);
    hf_assert(p->answer->messages.count < MESSAGES_MAX);
    hf_pb_message *message = &p->answer->messages.items[p->answer->messages.count++];
    (void)snprintf(text, sizeof text, "%.*s/%s", HF_STR_ARGS(update), verb);
    *message = (hf_pb_message){.id = hf_arena_copy(p->arena, hf_str_of(text)), .protocol_instance_id = update};
    message->body = HF_ARENA_NEW(p->arena, hf_pb_any);
    (void)snprintf(text, sizeof text, "type.googleapis.com/temporal.api.update.v1.%s", type_name);
    message->body->type_url = hf_arena_copy(p->arena, hf_str_of(text));
    message->body->value = hf_arena_copy(p->arena, hf_str_of_len(bytes.data, bytes.len));
    hf_buf_deinit(&bytes);
    if (type != &hf_pb_rejection_type) {
        hf_pb_protocol_message_command_attributes *attrs =
            HF_ARENA_NEW(p->arena, hf_pb_protocol_message_command_attributes);
        attrs->message_id = message->id;
        add_command(p, HF_COMMAND_TYPE_PROTOCOL_MESSAGE, HF_PB_COMMAND_PROTOCOL_MESSAGE_COMMAND_ATTRIBUTES)
            ->protocol_message_command_attributes = attrs;
    }
}

static void respond(plan *p, hf_str update)
{
    hf_pb_meta meta = {.update_id = update};
    hf_pb_outcome outcome = {.value_case = HF_PB_OUTCOME_SUCCESS, .success = chance(p)};
    hf_pb_response response = {.meta = &meta, .outcome = &outcome};
    say(p, update, "respond", "Response", &hf_pb_response_type, &response);
}

static void take_update(plan *p, const seen *s, const hf_pb_message *message)
{
    hf_str update = message->protocol_instance_id;
    unsigned bit = bit_of(update, '0');
    hf_pb_request request;
    if (hf_pb_decode(&p->asking->op, &hf_pb_request_type, message->body->value, p->arena, &request) != HF_OK ||
        (s->accepted & bit) != 0) {
        child_give_up("an update", "was sent that is not one, or was accepted before");
    }
    if (bit == 1U << 2U) {
        hf_pb_rejection rejection = {
            .rejected_request_message_id = message->id,
            .rejected_request_sequencing_event_id = message->event_id,
            .rejected_request = &request,
            .failure = hf_failure_application(p->arena, HF_STR("Refused"), HF_STR("not this one"), false),
        };
        say(p, update, "reject", "Rejection", &hf_pb_rejection_type, &rejection);
        return;
    }
    hf_pb_acceptance acceptance = {
        .accepted_request_message_id = message->id,
        .accepted_request_sequencing_event_id = message->event_id,
        .accepted_request = &request,
    };
    say(p, update, "accept", "Acceptance", &hf_pb_acceptance_type, &acceptance);
    if (bit == 1U << 1U && !p->is_end) {
        start_timer(p, HF_STR("u"), hf_milliseconds(1)); /* brings the next task */
    } else {
        respond(p, update);
    }
}

/* Before anything else: the run may end with this task. */
static void take_updates(plan *p, const seen *s)
{
    for (unsigned n = 0; n < CHILD_UPDATES; n++) {
        char id[8];
        (void)snprintf(id, sizeof id, "u%u", n);
        if ((s->accepted & ~s->completed & 1U << n) != 0) {
            respond(p, hf_arena_copy(p->arena, hf_str_of(id)));
        }
    }
    for (size_t i = 0; i < p->task->messages.count; i++) {
        take_update(p, s, &p->task->messages.items[i]);
    }
}

/* ---- Workflows -------------------------------------------------------------------------------------------------------- */

static void decide_type(plan *p, const seen *s)
{
    bool is_done = s->is_begun && s->has_result && s->has_fired && s->signals >= CHILD_SIGNALS;
    p->is_end = is_done || s->is_canceled;
    take_updates(p, s);
    if (s->is_canceled) {
        be_canceled(p);
    } else if (is_done) {
        complete(p);
    } else if (!s->is_begun) {
        do_activity(p);
        start_timer(p, HF_STR("t"), hf_milliseconds(5));
    }
}

static void decide_chain(plan *p, const seen *s)
{
    if (s->signals >= CHILD_SIGNALS) {
        complete(p);
    } else if (s->here > 0) {
        continue_as_new(p, s->signals);
    }
}

static void decide_parent(plan *p, const seen *s)
{
    static const char *const LAST[] = {"kid-c1", "kid-c2", "kid-c3"};
    hf_str id = p->task->workflow_execution->workflow_id;
    if (!s->is_begun) {
        int32_t policy = (int32_t)(hf_hash_bytes(1, id.data, id.len) % HF_COUNT_OF(LAST));
        start_kid(p, "kid-a", HF_PARENT_CLOSE_POLICY_TERMINATE);
        start_kid(p, "kid-b", HF_PARENT_CLOSE_POLICY_TERMINATE);
        start_kid(p, LAST[policy], 1 + policy);
    } else if ((s->kids & 3U) == 3U) {
        complete(p);
    }
}

static void decide_kid(plan *p, const seen *s, char name, char policy)
{
    if (s->is_canceled) {
        be_canceled(p);
    } else if (name == 'c' && !s->is_begun) {
        start_timer(p, HF_STR("t"), policy == '2' ? hf_milliseconds(20) : hf_hours(1));
    } else if (name == 'b' && !s->is_continued) {
        continue_as_new(p, 0);
    } else if (!s->is_begun) {
        do_activity(p);
    } else if (s->has_result || s->has_fired) {
        complete(p);
    }
}

hf_pb_payloads *flow_query(child_asking *a, const hf_pb_poll_workflow_task_queue_response *task)
{
    char text[16];
    seen s = look_back(a, task->history);
    (void)snprintf(text, sizeof text, "%u", s.signals);
    return text_of(&a->arena, text);
}

static void answer_queries(child_asking *a, const hf_pb_poll_workflow_task_queue_response *task,
                           hf_pb_respond_workflow_task_completed_request *answer)
{
    answer->query_results.items = HF_ARENA_ARRAY(
        &a->arena, hf_pb_respond_workflow_task_completed_request_query_results_entry, task->queries.count + 1);
    for (size_t i = 0; i < task->queries.count; i++) {
        hf_pb_workflow_query_result *result = HF_ARENA_NEW(&a->arena, hf_pb_workflow_query_result);
        result->result_type = HF_QUERY_RESULT_TYPE_ANSWERED;
        result->answer = flow_query(a, task);
        answer->query_results.items[answer->query_results.count++] =
            (hf_pb_respond_workflow_task_completed_request_query_results_entry){
                .key = task->queries.items[i].key,
                .value = result,
            };
    }
}

bool flow_decide(child_asking *a, hf_rng *rng, const hf_pb_poll_workflow_task_queue_response *task,
                 hf_pb_respond_workflow_task_completed_request *answer)
{
    plan p = {.asking = a, .arena = &a->arena, .rng = rng, .task = task, .answer = answer};
    seen s = look_back(a, task->history);
    hf_str type = task->workflow_type->name;
    answer->commands.items = HF_ARENA_ARRAY(&a->arena, hf_pb_command, COMMANDS_MAX);
    answer->messages.items = HF_ARENA_ARRAY(&a->arena, hf_pb_message, MESSAGES_MAX);
    answer_queries(a, task, answer);
    if (hf_str_equal(type, HF_STR("type"))) {
        decide_type(&p, &s);
    } else if (hf_str_equal(type, HF_STR("chain"))) {
        decide_chain(&p, &s);
    } else if (hf_str_equal(type, HF_STR("parent"))) {
        decide_parent(&p, &s);
    } else if (type.len >= 5) {
        decide_kid(&p, &s, type.data[4], type.len > 5 ? type.data[5] : '\0');
    }
    return p.is_end;
}
