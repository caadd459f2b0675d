/* One call of a peer: from its head to its answer.
 *
 *     begin -> fields -> head -> data ... -> end -> ask the service -> done -> answer -> closed
 *                          |                               |
 *                          +- refused: unknown, denied     +- expired, reset, drained: the service is told
 *
 * Whatever the order of the last steps, the stream is freed when both the session and the service have let go of it (server-D2). */
#include "server/server_private.h"

#include "fiber/enter.h"
#include "service/grpc_code.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

#include <stdio.h>

#define SECOND_NS INT64_C(1000000000)
#define DEADLINE_WORDS "context deadline exceeded" /* grpc-go's */

enum {
    TASK_POLL_SECONDS = 60,    /* after which the engine answers a poll of tasks by itself ... */
    HISTORY_POLL_SECONDS = 20, /* ... and one of a history or an update */
    PATH_LEN_MAX = 256,        /* bytes of "/service/method" */
};

static hf_stream *stream_of(hf_h2_stream *h2)
{
    return (hf_stream *)(void *)h2;
}

static int64_t now_of(const hf_stream *stream)
{
    hf_env *env = stream->link->door->env;
    return env->ops->now(env).ns;
}

void hf_stream_set_deadline(hf_stream *stream, int64_t at_ns)
{
    int64_t at = at_ns < stream->until_ns ? at_ns : stream->until_ns;
    if (at == INT64_MAX) {
        hf_heap_remove(&stream->link->deadlines, &stream->deadline);
    } else if (hf_heap_set(&stream->link->deadlines, &stream->deadline, at) != HF_OK) {
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "no memory for the deadline of the call", NULL, NULL);
    }
}

/* ---- Memory: a request gets as much as its bound says ------------------------------------------------------------------- */

static void *budget_allocate(void *state, size_t len, size_t align)
{
    hf_stream *stream = state;
    hf_allocator memory = stream->link->door->memory;
    if (len > stream->budget) {
        return NULL;
    }
    void *ptr = memory.allocate(memory.state, len, align);
    stream->budget -= ptr != NULL ? len : 0;
    return ptr;
}

static void budget_release(void *state, void *ptr, size_t len)
{
    hf_stream *stream = state;
    hf_allocator memory = stream->link->door->memory;
    memory.release(memory.state, ptr, len);
    stream->budget += ptr != NULL ? len : 0;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------ */

static hf_h2_stream *on_begin(void *state, int32_t id)
{
    hf_link *link = state;
    hf_door *door = link->door;
    (void)id;
    if (link->stream_count >= (size_t)(link->is_known ? HF_DOOR_STREAMS_MAX : HF_DOOR_STREAMS_UNKNOWN_MAX) ||
        link->stage != HF_STAGE_SERVING) {
        return NULL;
    }
    if (link->stream_count >= HF_DOOR_STREAMS_EACH_MIN &&
        atomic_load(&door->streams) >= (uint64_t)door->options.streams_max) {
        return NULL;
    }
    hf_stream *stream = door->env->ops->allocate(door->env, sizeof *stream, 0);
    if (stream == NULL) {
        return NULL;
    }
    *stream = (hf_stream){.link = link, .until_ns = INT64_MAX, .budget = HF_DOOR_DECODED_LEN_MAX};
    hf_buf_init(&stream->in, door->memory, HF_DOOR_MESSAGE_LEN_MAX + HF_GRPC_HEAD_LEN);
    hf_arena_init(&stream->arena, (hf_allocator){budget_allocate, budget_release, stream});
    hf_list_push_back(&link->streams, &stream->node);
    link->stream_count++;
    link->has_begun = true;
    atomic_store(&link->idle_ns, 0);
    atomic_fetch_add(&door->streams, 1);
    hf_stream_set_deadline(stream, now_of(stream) + HF_DOOR_HEAD_SECONDS * SECOND_NS);
    return &stream->h2;
}

static void drop_in(hf_stream *stream)
{
    hf_assert(stream->link->in_len >= stream->in.len);
    stream->link->in_len -= stream->in.len;
    hf_buf_deinit(&stream->in);
    hf_buf_init(&stream->in, stream->link->door->memory, HF_DOOR_MESSAGE_LEN_MAX + HF_GRPC_HEAD_LEN);
}

static void drop_tokens(hf_stream *stream)
{
    hf_allocator memory = stream->link->door->memory;
    for (int i = 0; i < stream->token_count; i++) {
        memory.release(memory.state, (void *)(uintptr_t)stream->tokens[i].data, stream->tokens[i].len);
    }
    stream->token_count = 0;
}

void hf_stream_free(hf_stream *stream)
{
    hf_link *link = stream->link;
    hf_allocator memory = link->door->memory;
    hf_assert(stream->is_closed && !stream->is_asked); /* server-D2 */
    hf_heap_remove(&link->deadlines, &stream->deadline);
    drop_in(stream);
    drop_tokens(stream);
    hf_buf_deinit(&stream->in);
    hf_arena_deinit(&stream->arena);
    if (stream->path != NULL) {
        memory.release(memory.state, stream->path, PATH_LEN_MAX);
    }
    hf_list_remove(&stream->node);
    hf_assert(link->stream_count > 0);
    if (--link->stream_count == 0) {
        atomic_store(&link->idle_ns, now_of(stream));
    }
    atomic_fetch_sub(&link->door->streams, 1);
    memory.release(memory.state, stream, sizeof *stream);
}

/* ---- Tasks that nobody took (server-D3) --------------------------------------------------------------------------------- */

static void give_back(hf_stream *stream, hf_str token)
{
    hf_door *door = stream->link->door;
    if (token.len > 0) {
        atomic_fetch_add(&door->returned, 1);
        door->service->ops->unwanted(door->service, token);
    }
}

/* Calls `with` for the token of each task in the answer. */
static void each_token(hf_stream *stream, void (*with)(hf_stream *stream, hf_str token))
{
    if (stream->call.status != HF_OK || stream->call.response == NULL) {
        return;
    }
    if (stream->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        with(stream, ((const hf_pb_poll_workflow_task_queue_response *)stream->call.response)->task_token);
    } else if (stream->call.method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        with(stream, ((const hf_pb_poll_activity_task_queue_response *)stream->call.response)->task_token);
    } else if (stream->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        const hf_pb_respond_workflow_task_completed_response *response = stream->call.response;
        if (response->workflow_task != NULL) {
            with(stream, response->workflow_task->task_token);
        }
        for (size_t i = 0; i < response->activity_tasks.count; i++) {
            with(stream, response->activity_tasks.items[i].task_token);
        }
    }
}

/* The answer is not the peer's before its stream has ended well: until then its tokens are kept. More than there is room for are
 * eager activities, which a timeout heals. */
static void keep_token(hf_stream *stream, hf_str token)
{
    hf_allocator memory = stream->link->door->memory;
    if (token.len == 0 || stream->token_count == (int)HF_COUNT_OF(stream->tokens)) {
        return;
    }
    char *copy = memory.allocate(memory.state, token.len, 0);
    if (copy != NULL) {
        memcpy(copy, token.data, token.len);
        stream->tokens[stream->token_count++] = hf_str_of_len(copy, token.len);
    }
}

/* ---- The head --------------------------------------------------------------------------------------------------------------- */

static bool starts_with(hf_str text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && memcmp(text.data, prefix, len) == 0;
}

/* Whether a list "identity,deflate, gzip" has the word. */
static bool has_word(hf_str list, hf_str word)
{
    size_t at = 0;
    while (at < list.len) {
        while (at < list.len && (list.data[at] == ' ' || list.data[at] == ',')) {
            at++;
        }
        size_t end = at;
        while (end < list.len && list.data[end] != ',' && list.data[end] != ' ') {
            end++;
        }
        if (hf_str_equal(hf_str_of_len(list.data + at, end - at), word)) {
            return true;
        }
        at = end;
    }
    return false;
}

static void keep_path(hf_stream *stream, hf_str path)
{
    hf_allocator memory = stream->link->door->memory;
    if (stream->path != NULL || path.len >= PATH_LEN_MAX) {
        stream->is_bad_head = true;
        return;
    }
    stream->path = memory.allocate(memory.state, PATH_LEN_MAX, 0);
    if (stream->path != NULL) {
        memcpy(stream->path, path.data, path.len);
        stream->path[path.len] = '\0';
    }
}

/* "Bearer hf_..."; whatever cannot be a key is only noted. */
static void keep_bearer(hf_stream *stream, hf_str value)
{
    static const char BEARER[] = "bearer ";
    size_t len = sizeof BEARER - 1;
    bool is_bearer = value.len >= len;
    for (size_t i = 0; i < len && is_bearer; i++) {
        is_bearer = (value.data[i] | 0x20) == (BEARER[i] | 0x20);
    }
    stream->token_len = is_bearer ? value.len - len : 1;
    if (stream->token_len == HF_KEY_LEN) {
        memcpy(stream->token, value.data + len, HF_KEY_LEN);
    }
}

static void on_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    (void)state;
    hf_stream *stream = stream_of(h2);
    hf_span timeout = {0};
    if (stream->is_headed) {
        return; /* trailers of a request mean nothing to us */
    }
    if (hf_str_equal(name, HF_STR(":path"))) {
        keep_path(stream, value);
    } else if (hf_str_equal(name, HF_STR(":method"))) {
        stream->is_post = hf_str_equal(value, HF_STR("POST"));
    } else if (hf_str_equal(name, HF_STR("content-type"))) {
        stream->is_grpc = hf_str_equal(value, HF_STR("application/grpc")) ||
                          starts_with(value, "application/grpc+proto") || starts_with(value, "application/grpc;");
    } else if (hf_str_equal(name, HF_STR("grpc-encoding"))) {
        stream->is_gzip = hf_str_equal(value, HF_STR("gzip"));
        stream->has_encoding = !stream->is_gzip && !hf_str_equal(value, HF_STR("identity"));
    } else if (hf_str_equal(name, HF_STR("grpc-accept-encoding"))) {
        stream->takes_gzip = has_word(value, HF_STR("gzip"));
    } else if (hf_str_equal(name, HF_STR("authorization"))) {
        keep_bearer(stream, value);
    } else if (hf_str_equal(name, HF_STR("client-name"))) {
        stream->is_ours = hf_str_equal(value, HF_STR("holdfast-c"));
        stream->is_person = hf_str_equal(value, HF_STR("temporal-cli")) || hf_str_equal(value, HF_STR("temporal-ui"));
    } else if (hf_str_equal(name, HF_STR("grpc-timeout"))) {
        if (hf_grpc_timeout_parse(value, &timeout)) {
            int64_t now = now_of(stream);
            stream->until_ns = timeout.ns > INT64_MAX - now ? INT64_MAX : now + timeout.ns;
        } else {
            stream->is_bad_head = true;
        }
    }
}

/* In the words of grpc-go: SDKs look for them. */
static void answer_unknown(hf_stream *stream, bool has_service)
{
    char text[2 * PATH_LEN_MAX];
    const char *slash = stream->path != NULL && stream->path[0] == '/' ? strchr(stream->path + 1, '/') : NULL;
    if (slash == NULL) {
        (void)snprintf(text, sizeof text, "malformed method name: %s", stream->path != NULL ? stream->path : "");
    } else if (has_service) {
        (void)snprintf(text, sizeof text, "unknown method %s for service %.*s", slash + 1,
                       (int)(slash - stream->path - 1), stream->path + 1);
    } else {
        (void)snprintf(text, sizeof text, "unknown service %.*s", (int)(slash - stream->path - 1), stream->path + 1);
    }
    hf_answer_status(stream, HF_GRPC_UNIMPLEMENTED, text, NULL, NULL);
}

static void on_head(void *state, hf_h2_stream *h2)
{
    (void)state;
    hf_stream *stream = stream_of(h2);
    bool has_service = false;
    if (stream->is_headed) {
        return;
    }
    stream->is_headed = true;
    hf_stream_set_deadline(stream, now_of(stream) + HF_DOOR_BODY_SECONDS * SECOND_NS);
    if (!stream->is_post || !stream->is_grpc) {
        stream->http = stream->is_post ? "415" : "405";
    } else if (stream->is_bad_head || stream->path == NULL) {
        hf_answer_status(stream, HF_GRPC_INTERNAL, "malformed headers: the path or grpc-timeout", NULL, NULL);
    } else if (stream->has_encoding) {
        hf_answer_status(stream, HF_GRPC_UNIMPLEMENTED,
                         "grpc: Decompressor is not installed for this grpc-encoding; use gzip", NULL, NULL);
    } else {
        stream->route = hf_route_find(hf_str_of(stream->path), stream->link->door->options.has_tests, &has_service);
        if (stream->route == NULL) {
            answer_unknown(stream, has_service);
        } else {
            (void)hf_permit_head(stream);
        }
    }
}

/* ---- The message ------------------------------------------------------------------------------------------------------------ */

static void on_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    (void)state;
    hf_stream *stream = stream_of(h2);
    hf_link *link = stream->link;
    hf_grpc_frame frame;
    hf_op op;
    hf_op_init(&op);
    if (stream->is_answered || stream->is_complete || stream->http != NULL) {
        return;
    }
    if (link->in_len + bytes.len > HF_DOOR_IN_LEN_MAX) {
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "too many bytes of unfinished requests on this connection",
                         NULL, NULL);
        return;
    }
    size_t before = stream->in.len;
    hf_buf_put(&stream->in, bytes.data, bytes.len);
    link->in_len += stream->in.len - before;
    if (hf_buf_status(&stream->in) == HF_ERR_NOMEM) {
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "no memory for the request", NULL, NULL);
        return;
    }
    if (stream->route->kind == HF_ROUTE_REFLECTION) {
        hf_stream_set_deadline(stream, now_of(stream) + HF_DOOR_BODY_SECONDS * SECOND_NS);
        hf_reflect_take(stream);
        return;
    }
    hf_status status =
        hf_grpc_take(&op, hf_str_of_len(stream->in.data, stream->in.len), HF_DOOR_MESSAGE_LEN_MAX, &frame);
    if (status == HF_ERR_TOO_BIG) {
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, op.message, NULL, NULL);
    } else if (status == HF_ERR_INVALID) {
        hf_answer_status(stream, HF_GRPC_INTERNAL, op.message, NULL, NULL);
    } else if (hf_buf_status(&stream->in) != HF_OK || (status == HF_OK && frame.rest.len > 0)) {
        hf_answer_status(stream, HF_GRPC_INTERNAL, "this method takes one message, and more came", NULL, NULL);
    }
}

/* The bytes of the message, inflated; in the arena. False: the stream was answered. */
static bool open_message(hf_stream *stream, hf_str *ret_bytes)
{
    hf_grpc_frame frame;
    hf_op op;
    hf_op_init(&op);
    if (hf_grpc_take(&op, hf_str_of_len(stream->in.data, stream->in.len), HF_DOOR_MESSAGE_LEN_MAX, &frame) != HF_OK) {
        hf_answer_status(stream, HF_GRPC_INTERNAL, "the request ended before its message did", NULL, NULL);
        return false;
    }
    if (!frame.is_compressed) {
        *ret_bytes = hf_arena_copy(&stream->arena, frame.message);
        if (stream->arena.status != HF_OK) {
            hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "no memory for the request", NULL, NULL);
        }
        return stream->arena.status == HF_OK;
    }
    if (!stream->is_gzip) {
        hf_answer_status(stream, HF_GRPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding", NULL,
                         NULL);
        return false;
    }
    hf_buf plain;
    hf_buf_init(&plain, stream->link->door->memory, SIZE_MAX / 2);
    hf_status status = hf_gunzip(&op, frame.message, HF_DOOR_MESSAGE_LEN_MAX, &plain);
    if (status == HF_OK) {
        *ret_bytes = hf_arena_copy(&stream->arena, hf_str_of_len(plain.data, plain.len));
        status = stream->arena.status;
    }
    hf_buf_deinit(&plain);
    if (status != HF_OK) {
        hf_answer_status(stream, status == HF_ERR_INVALID ? HF_GRPC_INTERNAL : HF_GRPC_RESOURCE_EXHAUSTED,
                         op.message[0] != '\0' ? op.message : "no memory for the request", NULL, NULL);
    }
    return status == HF_OK;
}

/* ---- Asking ------------------------------------------------------------------------------------------------------------------ */

static void on_done(hf_call *call)
{
    hf_stream *stream = call->state;
    hf_link_tell(stream->link, stream);
}

/* A poll is answered a little before its caller gives up. 0: the engine's own time is shorter. */
static hf_span poll_timeout(const hf_stream *stream)
{
    if (!stream->route->is_poll || stream->until_ns == INT64_MAX) {
        return (hf_span){0};
    }
    int64_t left = stream->until_ns - now_of(stream);
    int64_t spare = left / 10 < SECOND_NS ? left / 10 : SECOND_NS;
    bool is_task = stream->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ||
                   stream->call.method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE;
    int64_t usual = (is_task ? TASK_POLL_SECONDS : HISTORY_POLL_SECONDS) * SECOND_NS;
    left -= spare;
    return hf_nanoseconds(left >= usual ? 0 : left > 0 ? left : 1);
}

static bool is_within_rate(hf_stream *stream, hf_str namespace_)
{
    static const hf_pb_resource_exhausted_failure OVER = {.cause = HF_RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
                                                          .scope = HF_RESOURCE_EXHAUSTED_SCOPE_NAMESPACE};
    hf_door *door = stream->link->door;
    if (door->rates == NULL || namespace_.len == 0 || hf_rates_take(door->rates, namespace_, now_of(stream))) {
        return true;
    }
    atomic_fetch_add(&door->limited, 1);
    hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "namespace rate limit exceeded",
                     &hf_pb_resource_exhausted_failure_type, &OVER);
    return false;
}

/* False: the stream was answered. */
static bool translate(hf_stream *stream, void **request)
{
    if (stream->route->translate == NULL) {
        return true;
    }
    *request = stream->route->translate(&stream->arena, *request);
    if (*request == NULL && stream->arena.status != HF_OK) {
        hf_answer_status(stream, HF_GRPC_RESOURCE_EXHAUSTED, "no memory for the request", NULL, NULL);
    } else if (*request == NULL) {
        hf_answer_status(stream, HF_GRPC_UNIMPLEMENTED,
                         "workflow_id is not set on request: there are no activities without a workflow here", NULL,
                         NULL);
    }
    return *request != NULL;
}

static void ask(hf_stream *stream, hf_str bytes)
{
    hf_link *link = stream->link;
    hf_door *door = link->door;
    const hf_route *route = stream->route;
    hf_op op;
    hf_op_init(&op);
    if (stream->until_ns != INT64_MAX && stream->until_ns <= now_of(stream)) { /* nobody waits for it any more */
        hf_answer_status(stream, HF_GRPC_DEADLINE_EXCEEDED, DEADLINE_WORDS, NULL, NULL);
        return;
    }
    void *request = hf_arena_zero(&stream->arena, route->request_type->size, 16);
    hf_status status =
        request != NULL ? hf_pb_decode(&op, route->request_type, bytes, &stream->arena, request) : HF_ERR_NOMEM;
    if (status != HF_OK) {
        hf_answer_status(stream, status == HF_ERR_INVALID ? HF_GRPC_INVALID_ARGUMENT : HF_GRPC_RESOURCE_EXHAUSTED,
                         op.message[0] != '\0' ? op.message : "no memory for the request", NULL, NULL);
        return;
    }
    if (!hf_permit_request(stream, route->request_type, request) ||
        !is_within_rate(stream, hf_request_namespace(route->request_type, request)) || !translate(stream, &request)) {
        return;
    }
    hf_call_init(&stream->call, route->method, request, &stream->arena, on_done);
    stream->call.state = stream;
    stream->call.timeout = poll_timeout(stream);
    stream->call.replays = !stream->is_person; /* to a person a history ends with what is written */
    stream->call.handed_before = stream->is_of_task ? door->opened_ns : 0;
    hf_stream_set_deadline(stream, INT64_MAX);
    if (stream->is_answered) {
        return;
    }
    stream->is_asked = true;
    link->asked++;
    hf_fiber *self = hf_enter(NULL);
    hf_service_submit(door->service, &stream->call);
    hf_leave(self);
    if (link->stage != HF_STAGE_SERVING) { /* its head came before the stop: it does not wait, either */
        hf_stream_drain(stream);
    }
}

static void on_end(void *state, hf_h2_stream *h2)
{
    (void)state;
    hf_stream *stream = stream_of(h2);
    hf_str bytes = {0};
    if (stream->is_answered || stream->is_complete) {
        return;
    }
    stream->is_complete = true;
    if (stream->http != NULL) {
        hf_answer_http(stream, stream->http);
        return;
    }
    if (stream->route->kind == HF_ROUTE_REFLECTION) {
        hf_reflect_end(stream);
        return;
    }
    bool is_open = open_message(stream, &bytes);
    drop_in(stream);
    if (!is_open) {
        return;
    }
    switch (stream->route->kind) {
    case HF_ROUTE_SERVICE:
        ask(stream, bytes);
        break;
    case HF_ROUTE_HEALTH_CHECK:
        hf_health_check(stream, bytes);
        break;
    case HF_ROUTE_HEALTH_WATCH:
        hf_health_watch(stream, bytes);
        break;
    case HF_ROUTE_REFLECTION: /* hf_reflect_end */
        break;
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------------ */

void hf_stream_cancel(hf_stream *stream)
{
    hf_door *door = stream->link->door;
    if (stream->is_asked) {
        hf_fiber *self = hf_enter(NULL);
        door->service->ops->cancel(door->service, stream->call.number);
        hf_leave(self);
    }
}

void hf_stream_done(hf_stream *stream)
{
    if (stream->is_closed) {
        each_token(stream, give_back);
        hf_stream_free(stream);
        return;
    }
    if (stream->is_answered) { /* its deadline came first */
        each_token(stream, give_back);
        return;
    }
    each_token(stream, keep_token);
    hf_permit_note(stream);
    hf_answer_call(stream);
    hf_arena_deinit(&stream->arena);
}

void hf_stream_expire(hf_stream *stream)
{
    if (stream->is_watching) {
        hf_health_expire(stream);
        return;
    }
    if (stream->is_answered || stream->is_closed) {
        return;
    }
    if (stream->is_talking || (!stream->is_complete && now_of(stream) < stream->until_ns)) { /* it dribbles in */
        hf_h2_reset(stream->link->h2, &stream->h2, HF_H2_ENHANCE_YOUR_CALM);
        return;
    }
    hf_stream_cancel(stream);
    hf_answer_status(stream, HF_GRPC_DEADLINE_EXCEEDED, DEADLINE_WORDS, NULL, NULL);
}

void hf_stream_drain(hf_stream *stream)
{
    if (stream->is_watching) {
        hf_health_tell(stream);
    } else if (stream->is_talking && !stream->is_complete) {
        hf_reflect_end(stream);
    } else if (stream->is_asked && (stream->route->ends_with_door || stream->link->stage == HF_STAGE_CLOSING)) {
        hf_stream_cancel(stream);
    }
}

static void on_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    (void)state;
    hf_stream *stream = stream_of(h2);
    hf_assert(!stream->is_closed); /* wire-H3 */
    stream->is_closed = true;
    hf_heap_remove(&stream->link->deadlines, &stream->deadline);
    if (code != HF_H2_NO_ERROR) {
        for (int i = 0; i < stream->token_count; i++) {
            give_back(stream, stream->tokens[i]);
        }
    }
    drop_tokens(stream);
    if (stream->is_asked) {
        hf_stream_cancel(stream);
    } else {
        hf_stream_free(stream);
    }
}

const hf_h2_events hf_stream_events = {on_begin, on_field, on_head, on_data, on_end, on_closed};
