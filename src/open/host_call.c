/* Calls of other processes, at the owner. A call is submitted to the engine, whose `done` puts it into the host's list of finished ones; the
 * host's thread then writes the answer. A poll that waits costs its struct and nothing else.
 *
 * Tasks: the tokens in an answer are noted for its connection, and forgotten when the task is answered. If the connection is lost, they are
 * what its process had in hand (open-H2). If the other side gives the call up, nobody reads its answer, and its tasks go to other pollers. */
#include "open/host_private.h"

#include "engine/engine.h"
#include "service/grpc_path.h"

/* ---- Tasks in hand ------------------------------------------------------------------------------------------------------- */

static hf_list *bucket_of(hf_visitor *visitor, hf_str token)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < token.len; i++) {
        hash = (hash ^ (unsigned char)token.data[i]) * 16777619u;
    }
    return &visitor->held[hash % HF_SHARE_BUCKETS];
}

static hf_str token_of(const hf_held_task *task)
{
    return hf_str_of_len((const char *)(task + 1), task->len);
}

static hf_held_task *find_held(hf_visitor *visitor, hf_str token)
{
    HF_LIST_EACH(node, bucket_of(visitor, token))
    {
        hf_held_task *task = HF_CONTAINER(node, hf_held_task, node);
        if (hf_str_equal(token_of(task), token)) {
            return task;
        }
    }
    return NULL;
}

static void forget(hf_visitor *visitor, hf_held_task *task)
{
    hf_allocator memory = hf_slab_memory(&visitor->host->slab);
    hf_assert(visitor->held_count > 0);
    visitor->held_count--;
    hf_list_remove(&task->node);
    memory.release(memory.state, task, sizeof *task + task->len);
}

/* Without memory for it the task is found by its timeout. */
static void hold(hf_visit *visit, hf_str token)
{
    hf_visitor *visitor = visit->visitor;
    hf_allocator memory = hf_slab_memory(&visitor->host->slab);
    if (token.len == 0 || visitor->held_count >= HF_SHARE_HELD_MAX || find_held(visitor, token) != NULL) {
        return;
    }
    hf_held_task *task = memory.allocate(memory.state, sizeof *task + token.len, 0);
    if (task != NULL) {
        *task = (hf_held_task){.number = visit->number, .len = token.len};
        memcpy(task + 1, token.data, token.len);
        hf_list_push_back(bucket_of(visitor, token), &task->node);
        visitor->held_count++;
    }
}

/* It was not handed on: the same task goes to the next poller. */
static void give_back(hf_visit *visit, hf_str token)
{
    hf_service *engine = visit->host->engine;
    if (token.len > 0) {
        engine->ops->unwanted(engine, token);
    }
}

/* Calls `with` for the token of each task in the answer. */
static void each_token(hf_visit *visit, void (*with)(hf_visit *visit, hf_str token))
{
    const void *response = visit->call.response;
    if (visit->visitor == NULL || visit->call.status != HF_OK || response == NULL) {
        return;
    }
    const hf_pb_poll_workflow_task_queue_response *task = NULL;
    switch ((int)visit->call.method) {
    case HF_METHOD_POLL_WORKFLOW_TASK_QUEUE:
        task = response;
        break;
    case HF_METHOD_START_WORKFLOW_EXECUTION:
        task = ((const hf_pb_start_workflow_execution_response *)response)->eager_workflow_task;
        break;
    case HF_METHOD_POLL_ACTIVITY_TASK_QUEUE:
        with(visit, ((const hf_pb_poll_activity_task_queue_response *)response)->task_token);
        break;
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED: {
        const hf_pb_respond_workflow_task_completed_response *completed = response;
        task = completed->workflow_task;
        for (size_t i = 0; i < completed->activity_tasks.count; i++) {
            with(visit, completed->activity_tasks.items[i].task_token);
        }
        break;
    }
    default:
        break;
    }
    if (task != NULL) {
        with(visit, task->task_token);
    }
}

/* The other side has given the call up, and its answer had been sent before it said so: nobody has seen these tasks. */
static void give_back_of(hf_visitor *visitor, uint64_t number)
{
    hf_service *engine = visitor->host->engine;
    for (size_t i = 0; i < HF_SHARE_BUCKETS; i++) {
        HF_LIST_EACH(node, &visitor->held[i])
        {
            hf_held_task *task = HF_CONTAINER(node, hf_held_task, node);
            if (task->number == number) {
                engine->ops->unwanted(engine, token_of(task));
                forget(visitor, task);
            }
        }
    }
}

/* An answer to a task that the engine took, or did not want: the connection has it in hand no longer. */
static void forget_answered(hf_visit *visit)
{
    const hf_call *call = &visit->call;
    hf_str token = {0};
    bool is_over = call->status == HF_OK || call->status == HF_ERR_NOT_FOUND;
    bool is_heartbeat = call->method == HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT && !call->lets_go;
    if (visit->visitor == NULL || !is_over || is_heartbeat ||
        !hf_request_text(hf_method_info_of(call->method)->request_type, call->request, "task_token", &token)) {
        return;
    }
    hf_held_task *task = find_held(visit->visitor, token);
    if (task != NULL) {
        forget(visit->visitor, task);
    }
}

/* ---- Sticky queues -------------------------------------------------------------------------------------------------------- */

static bool is_noted(const hf_visitor *visitor, hf_str namespace_, hf_str queue)
{
    HF_LIST_EACH(node, &visitor->sticky)
    {
        const hf_sticky_name *name = HF_CONTAINER(node, hf_sticky_name, node);
        const char *text = (const char *)(name + 1);
        if (hf_str_equal(hf_str_of_len(text, name->namespace_len), namespace_) &&
            hf_str_equal(hf_str_of_len(text + name->namespace_len, name->len - name->namespace_len), queue)) {
            return true;
        }
    }
    return false;
}

static void note_sticky(hf_visitor *visitor, const hf_call *call)
{
    hf_allocator memory = visitor->host->memory;
    if (call->method != HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        return;
    }
    const hf_pb_poll_workflow_task_queue_request *poll = call->request;
    if (poll->task_queue == NULL || poll->task_queue->kind != HF_TASK_QUEUE_KIND_STICKY ||
        visitor->sticky_count == HF_HOST_STICKY_MAX || is_noted(visitor, poll->namespace, poll->task_queue->name)) {
        return;
    }
    hf_str queue = poll->task_queue->name;
    size_t len = poll->namespace.len + queue.len;
    hf_sticky_name *name = memory.allocate(memory.state, sizeof *name + len, 0);
    if (name != NULL) {
        *name = (hf_sticky_name){.namespace_len = poll->namespace.len, .len = len};
        char *text = (char *)(name + 1);
        memcpy(text, poll->namespace.data, poll->namespace.len);
        memcpy(text + poll->namespace.len, queue.data, queue.len);
        hf_list_push_back(&visitor->sticky, &name->node);
        visitor->sticky_count++;
    }
}

static void submit(hf_visit *visit)
{
    hf_host *host = visit->host;
    hf_assert(visit->visitor == NULL || host->call_count < HF_SHARE_CALLS_MAX); /* open-H3 */
    host->call_count++;
    host->requests_len += visit->len;
    hf_service_submit(host->engine, &visit->call);
}

static hf_visit *new_visit(hf_host *host, hf_visitor *visitor)
{
    hf_allocator memory = hf_slab_memory(&host->slab);
    hf_visit *visit = memory.allocate(memory.state, sizeof *visit, 0);
    if (visit != NULL) {
        *visit = (hf_visit){.host = host, .visitor = visitor, .arena = hf_arenas_take(&host->arenas)};
    }
    return visit;
}

static void free_visit(hf_visit *visit)
{
    hf_allocator memory = hf_slab_memory(&visit->host->slab);
    hf_arenas_give(&visit->host->arenas, &visit->arena);
    memory.release(memory.state, visit, sizeof *visit);
}

/* The queue's only worker has gone: its tasks go to the other workers now, not when their time in that queue is over. */
static void unstick(hf_host *host, const hf_sticky_name *name)
{
    hf_visit *visit = new_visit(host, NULL);
    hf_pb_shutdown_worker_request *request =
        visit != NULL ? HF_ARENA_NEW(&visit->arena, hf_pb_shutdown_worker_request) : NULL;
    hf_str text =
        visit != NULL ? hf_arena_copy(&visit->arena, hf_str_of_len((const char *)(name + 1), name->len)) : (hf_str){0};
    if (request == NULL || visit->arena.status != HF_OK) {
        if (visit != NULL) {
            free_visit(visit);
        }
        return;
    }
    request->namespace = hf_str_of_len(text.data, name->namespace_len);
    request->sticky_task_queue = hf_str_of_len(text.data + name->namespace_len, name->len - name->namespace_len);
    request->reason = HF_STR("its process has gone");
    hf_call_init(&visit->call, HF_METHOD_SHUTDOWN_WORKER, request, &visit->arena, hf_visit_done);
    submit(visit);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------ */

static void answer(hf_visitor *visitor, hf_pb_owner_answer *msg, hf_str response)
{
    while (response.len > HF_SHARE_PIECE_LEN) {
        hf_pb_owner_answer piece = {
            .number = msg->number, .has_more = true, .response = {response.data, HF_SHARE_PIECE_LEN}};
        hf_duct_put(&visitor->duct, &hf_pb_owner_answer_type, &piece);
        response = hf_str_of_len(response.data + HF_SHARE_PIECE_LEN, response.len - HF_SHARE_PIECE_LEN);
    }
    msg->response = response;
    hf_duct_put(&visitor->duct, &hf_pb_owner_answer_type, msg);
}

static void refuse(hf_visitor *visitor, uint64_t number, hf_status status, const char *why)
{
    hf_pb_owner_answer msg = {.number = number, .status = (int32_t)status, .message = hf_str_of(why)};
    answer(visitor, &msg, (hf_str){0});
}

static bool find_method(hf_str name, hf_method *ret_method)
{
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        const char *known = hf_method_info_of((hf_method)i)->name;
        if (strlen(known) == name.len && memcmp(known, name.data, name.len) == 0) {
            *ret_method = (hf_method)i;
            return hf_method_grpc_service(*ret_method) != NULL; /* some are the engine's own */
        }
    }
    return false;
}

static hf_visit *find_visit(const hf_visitor *visitor, uint64_t number)
{
    HF_LIST_EACH(node, &visitor->visits)
    {
        hf_visit *visit = HF_CONTAINER(node, hf_visit, node);
        if (visit->number == number) {
            return visit;
        }
    }
    return NULL;
}

static hf_status decode(hf_op *op, hf_visit *visit, hf_method method, hf_str bytes)
{
    const hf_pb_type *type = hf_method_info_of(method)->request_type;
    hf_str copy = hf_arena_copy(&visit->arena, bytes);
    void *request = hf_arena_zero(&visit->arena, type->size, 16);
    if (visit->arena.status != HF_OK || request == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a request");
    }
    HF_TRY(hf_pb_decode(op, type, copy, &visit->arena, request));
    hf_call_init(&visit->call, method, request, &visit->arena, hf_visit_done);
    visit->len = bytes.len;
    return HF_OK;
}

static void begin(hf_visitor *visitor, const hf_pb_owner_call *frame)
{
    hf_host *host = visitor->host;
    hf_method method = HF_METHOD_COUNT;
    hf_op op;
    hf_op_init(&op);
    if (!find_method(frame->method, &method)) {
        refuse(visitor, frame->number, HF_ERR_UNSUPPORTED,
               "the program that has the file open is of another version, and does not have this call");
        return;
    }
    if (host->call_count >= HF_SHARE_CALLS_MAX || host->requests_len + frame->request.len > HF_SHARE_REQUESTS_LEN_MAX) {
        refuse(
            visitor, frame->number, HF_ERR_LIMIT,
            "the program that has the file open has as many calls of other processes as it takes (4096 calls, 64 MiB)");
        return;
    }
    hf_visit *visit = new_visit(host, visitor);
    if (visit == NULL) {
        refuse(visitor, frame->number, HF_ERR_NOMEM, "no memory for a call");
        return;
    }
    visit->number = frame->number;
    hf_status status = decode(&op, visit, method, frame->request);
    if (status != HF_OK) {
        free_visit(visit);
        refuse(visitor, frame->number, status, op.message);
        return;
    }
    visit->call.timeout = hf_nanoseconds(frame->timeout_ns > 0 ? frame->timeout_ns : 0);
    visit->call.in_process =
        true; /* if this process dies, the next opening hands its tasks out again: nobody else knows of them */
    visit->call.run_ahead = frame->run_ahead;
    visit->call.lets_go = frame->lets_go;
    visit->call.replays = frame->replays;
    hf_list_push_back(&visitor->visits, &visit->node);
    note_sticky(visitor, &visit->call);
    submit(visit);
}

void hf_visit_begin(hf_visitor *visitor, const hf_pb_owner_call *frame)
{
    hf_service *engine = visitor->host->engine;
    if (frame->unwanted.len > 0) {
        hf_held_task *task = find_held(visitor, frame->unwanted);
        if (task != NULL) { /* it can only give back what it was given */
            engine->ops->unwanted(engine, frame->unwanted);
            forget(visitor, task);
        }
    } else if (frame->closes) {
        visitor->has_closed = true;
    } else if (frame->method.len == 0) {
        hf_visit *visit = find_visit(visitor, frame->number);
        if (visit != NULL) { /* else its answer is on its way */
            visit->is_given_up |= frame->gives_up;
            engine->ops->cancel(engine, visit->call.number);
        } else if (frame->gives_up) {
            give_back_of(visitor, frame->number);
        }
    } else {
        begin(visitor, frame);
    }
}

/* False: the answer could not be sent, and the other side was told so. */
static bool say(hf_visit *visit)
{
    const hf_call *call = &visit->call;
    hf_host *host = visit->host;
    hf_buf *bytes = &host->scratch;
    hf_pb_owner_answer msg = {.number = visit->number, .status = (int32_t)call->status};
    bytes->len = 0;
    bytes->status = HF_OK;
    if (call->status == HF_OK) {
        hf_pb_encode(hf_method_info_of(call->method)->response_type, call->response, bytes);
        if (hf_buf_status(bytes) != HF_OK) {
            refuse(visit->visitor, visit->number, HF_ERR_TOO_BIG,
                   "the answer is too large, or there is no memory for it");
            return false;
        }
        answer(visit->visitor, &msg, hf_str_of_len(bytes->data, bytes->len));
        return true;
    }
    msg.message = hf_str_of(call->message);
    msg.words = call->words != NULL ? hf_str_of(call->words) : (hf_str){0};
    msg.is_final = call->is_final;
    msg.retry_after_ns = call->retry_after.ns;
    msg.existing_run_id = call->existing_run_id;
    msg.task_failed_cause = call->task_failed_cause;
    if (call->detail_type != NULL && call->detail != NULL) {
        hf_pb_encode(call->detail_type, call->detail, bytes);
        if (hf_buf_status(bytes) == HF_OK && bytes->len <= HF_SHARE_DETAIL_LEN_MAX) {
            msg.detail_type = hf_str_of(call->detail_type->name);
            msg.detail = hf_str_of_len(bytes->data, bytes->len);
        }
    }
    answer(visit->visitor, &msg, (hf_str){0});
    return true;
}

void hf_visit_end(hf_visit *visit)
{
    hf_host *host = visit->host;
    hf_visitor *visitor = visit->visitor;
    hf_assert(host->call_count > 0 && host->requests_len >= visit->len);
    host->call_count--;
    host->requests_len -= visit->len;
    if (visitor != NULL) {
        hf_list_remove(&visit->node);
        forget_answered(visit);
        if (!visitor->is_gone && !visit->is_given_up && say(visit)) {
            each_token(visit, hold);
        } else {
            each_token(visit, give_back);
        }
    }
    free_visit(visit);
    if (host->scratch.capacity > HF_SHARE_PIECE_LEN) {
        hf_buf_deinit(&host->scratch);
    }
}

void hf_visitor_leave(hf_visitor *visitor)
{
    hf_host *host = visitor->host;
    hf_node *node = NULL;
    bool is_over = atomic_load(&host->stopping); /* this owner ends, not that process: the next one finds its tasks */
    hf_assert(visitor->is_gone);
    HF_LIST_EACH(visit, &visitor->visits)
    {
        host->engine->ops->cancel(host->engine, HF_CONTAINER(visit, hf_visit, node)->call.number);
    }
    for (size_t i = 0; i < HF_SHARE_BUCKETS; i++) {
        while ((node = hf_list_first(&visitor->held[i])) != NULL) {
            hf_held_task *task = HF_CONTAINER(node, hf_held_task, node);
            if (!is_over) {
                hf_engine_lost(host->engine, token_of(task), !visitor->has_closed); /* open-H2 */
            }
            forget(visitor, task);
        }
    }
    while ((node = hf_list_pop_front(&visitor->sticky)) != NULL) {
        hf_sticky_name *name = HF_CONTAINER(node, hf_sticky_name, node);
        unstick(host, name);
        host->memory.release(host->memory.state, name, sizeof *name + name->len);
    }
    hf_assert(visitor->held_count == 0);
}
