/* Whether a caller may make a call: by the key that it shows, the roles of the route, and every namespace that the request names.
 *
 * A request can name namespaces deep inside: the parts of a bundle, the targets of a workflow's commands. All of them are found by
 * the tables of the messages, so that a new message is covered without a line here (CVE-2025-14986, CVE-2025-14987). */
#include "server/server_private.h"

#include "service/grpc_code.h"

static int64_t seconds_of(const hf_stream *stream)
{
    hf_env *env = stream->link->door->env;
    return env->ops->wall_now(env).ns / 1000000000;
}

static const hf_api_key *key_of(const hf_stream *stream, const hf_keyring *keys)
{
    return stream->token_len == HF_KEY_LEN
               ? hf_keyring_find(keys, hf_str_of_len(stream->token, stream->token_len), seconds_of(stream))
               : NULL;
}

bool hf_permit_head(hf_stream *stream)
{
    hf_keyring *keys = hf_door_keys(stream->link->door);
    hf_assert(stream->route != NULL); /* server-K2 needs its roles */
    bool is_known = keys == NULL || key_of(stream, keys) != NULL;
    bool is_fine = is_known || stream->route->roles == 0; /* server-K2 */
    hf_keyring_unref(keys);
    stream->link->is_known |= is_known; /* which gives it more streams, and nothing else */
    if (!is_fine) {
        hf_answer_status(stream, HF_GRPC_UNAUTHENTICATED,
                         stream->token_len == 0 ? "an API key is needed: authorization: Bearer hf_..."
                                                : "the API key is not valid, or has expired",
                         NULL, NULL);
    }
    return is_fine;
}

static bool is_namespace(const char *name)
{
    size_t len = strlen(name);
    static const char WORD[] = "namespace";
    return len >= sizeof WORD - 1 && strcmp(name + len - (sizeof WORD - 1), WORD) == 0;
}

typedef struct search {
    const hf_api_key *key;
    const hf_route *route;
    hf_str outer;   /* of the request itself */
    bool is_denied; /* the result */
} search;

static void look(search *s, const hf_pb_type *type, const void *message, int depth);

static void look_at_field(search *s, const hf_pb_field *field, const char *name, const char *message, int depth)
{
    const void *at = message + field->offset;
    bool is_set =
        field->shape != HF_PB_ONEOF || *(const uint32_t *)(const void *)(message + field->case_offset) == field->number;
    if (!is_set) {
        return;
    }
    if (field->kind == HF_PB_STRING && field->shape != HF_PB_LIST && is_namespace(name)) {
        const hf_str *value = at;
        if (value->len > 0 && !hf_str_equal(*value, s->outer)) {
            /* Another namespace than its own is a matter of writing there. */
            static const hf_route ELSEWHERE = {.roles = HF_ROLE_WRITE | HF_ROLE_ADMIN};
            s->is_denied |= !hf_api_key_may(s->key, &ELSEWHERE, *value);
        }
    } else if (field->kind == HF_PB_MESSAGE && (field->shape == HF_PB_LIST || field->shape == HF_PB_MAP)) {
        const hf_pb_str_list *list = at; /* all lists begin with items and count */
        for (size_t i = 0; i < list->count && !s->is_denied; i++) {
            look(s, field->of.type, (const char *)(const void *)list->items + i * field->of.type->size, depth + 1);
        }
    } else if (field->kind == HF_PB_MESSAGE) {
        const void *inner = *(const void *const *)at;
        if (inner != NULL) {
            look(s, field->of.type, inner, depth + 1);
        }
    }
}

static void look(search *s, const hf_pb_type *type, const void *message, int depth)
{
    hf_assert(depth <= HF_PB_DEPTH_MAX); /* wire-W3: it was decoded */
    for (size_t i = 0; i < type->field_count && !s->is_denied; i++) {
        look_at_field(s, &type->fields[i], type->names[i].name, message, depth);
    }
}

/* ---- Histories for workers: server-K3 ---------------------------------------------------------------------------------------- */

static hf_bearer bearer_of(const hf_stream *stream)
{
    hf_assert(stream->token_len == HF_KEY_LEN); /* its key is valid */
    return (hf_bearer){.key_id = hf_str_of_len(stream->token + 3, HF_KEY_ID_LEN), .link = stream->link->number};
}

static int64_t now_of(const hf_stream *stream)
{
    hf_env *env = stream->link->door->env;
    return env->ops->now(env).ns;
}

/* A worker names the run by its id, which it has from a task. A caller that waits for new events, or asks for the end of a run, is a reader. */
static bool has_form_of_task(const hf_pb_get_workflow_execution_history_request *request)
{
    return request->execution != NULL && request->execution->run_id.len > 0 && !request->wait_new_event &&
           request->history_event_filter_type != HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
}

/* A key that is only a worker's. The engine is asked about runs that are not known here: it knows its page tokens and
 * the tasks that were in hand before this door was opened. */
static bool may_read_as_worker(hf_stream *stream, const hf_pb_get_workflow_execution_history_request *request)
{
    hf_door *door = stream->link->door;
    if (!has_form_of_task(request)) {
        return false;
    }
    stream->is_of_task =
        !hf_handed_has(door->handed, bearer_of(stream), request->namespace, request->execution->run_id, now_of(stream));
    return !stream->is_of_task || !door->service->is_remote;
}

static void note(hf_stream *stream, hf_str namespace_, const hf_pb_workflow_execution *execution)
{
    if (execution != NULL && execution->run_id.len > 0) {
        hf_handed_note(stream->link->door->handed, bearer_of(stream), namespace_, execution->run_id, now_of(stream));
    }
}

void hf_permit_note(hf_stream *stream)
{
    const hf_call *call = &stream->call;
    if (call->status != HF_OK || call->response == NULL || stream->token_len != HF_KEY_LEN) {
        return;
    }
    hf_str namespace_ = hf_request_namespace(hf_method_info_of(call->method)->request_type, call->request);
    if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        note(stream, namespace_, ((const hf_pb_poll_workflow_task_queue_response *)call->response)->workflow_execution);
    } else if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        const hf_pb_respond_workflow_task_completed_response *response = call->response;
        note(stream, namespace_, response->workflow_task != NULL ? response->workflow_task->workflow_execution : NULL);
    } else if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION) { /* eagerly: its worker may have a key of its own */
        const hf_pb_start_workflow_execution_response *response = call->response;
        note(stream, namespace_,
             response->eager_workflow_task != NULL ? response->eager_workflow_task->workflow_execution : NULL);
    }
}

/* ---- A request ------------------------------------------------------------------------------------------------------------------ */

static bool may_call(hf_stream *stream, const search *s, const void *request)
{
    static const hf_route READING = {.roles = HF_ROLE_READ | HF_ROLE_WRITE | HF_ROLE_ADMIN};
    bool is_history =
        s->route->kind == HF_ROUTE_SERVICE && s->route->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY;
    return hf_api_key_may(s->key, s->route, s->outer) &&
           (!is_history || hf_api_key_may(s->key, &READING, s->outer) || may_read_as_worker(stream, request));
}

bool hf_permit_request(hf_stream *stream, const hf_pb_type *type, const void *request)
{
    hf_keyring *keys = hf_door_keys(stream->link->door);
    if (keys == NULL) {
        return true;
    }
    search s = {.key = key_of(stream, keys), .route = stream->route, .outer = hf_request_namespace(type, request)};
    bool is_known = s.key != NULL; /* keys may have changed since the head came */
    s.is_denied = is_known && !may_call(stream, &s, request);
    hf_assert(is_known || !s.is_denied); /* exactly one answer below */
    if (is_known && !s.is_denied) {
        look(&s, type, request, 0);
    }
    hf_keyring_unref(keys);
    if (!is_known) {
        hf_answer_status(stream, HF_GRPC_UNAUTHENTICATED, "the API key is not valid, or has expired", NULL, NULL);
    } else if (s.is_denied) {
        static const hf_pb_permission_denied_failure DENIED = {.reason =
                                                                   HF_STR_INIT("the API key has no such permission")};
        hf_answer_status(stream, HF_GRPC_PERMISSION_DENIED, "Request unauthorized.",
                         &hf_pb_permission_denied_failure_type, &DENIED);
    }
    return is_known && !s.is_denied;
}
