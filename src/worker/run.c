/* What a driver (drivers.c) does with a run: takes tasks out of the mailbox, plays them on the crew, answers.
 *
 *     task --> load events --> apply (turns of the crew) --> RespondWorkflowTaskCompleted --> the next task, or wait
 *                  |                  |                              |
 *                  +-- cannot --------+-- not deterministic -+       +-- refused: somebody else has gone on
 *                                                            v       v
 *                                   RespondWorkflowTaskFailed, and the run is evicted; the next task makes it again
 *
 * The run in memory and the history must agree. So when the service does not take an answer, the run is evicted. It is
 * also evicted when a task arrives that it has played already: that task lay with a poller until it timed out, and
 * another attempt was played meanwhile.
 *
 * A step that does not end, because a fiber of the workflow loops or blocks, is given up by the keeper (keeper.c),
 * which answers it as failed; a later result of the step is dropped. Where the watchdog may take a thread away, the
 * driver gets its turn back at once (hf_crew_turn), and waits in hf_crew_close until the fiber has returned. Meanwhile the
 * next task makes the run again, on a new fiber (cache.c, worker-D2). */
#include "worker/local.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEPT_LEN_MIN = 256 }; /* first piece of hf_wf.kept: the facts of a run, for most */
enum { RUN_BYTES = 1024 };   /* memory of a run beside its fibers and this struct: the crew's own, its first scopes */

/* ---- Making and freeing ------------------------------------------------------------------------------------------ */

enum { RETURN_SECONDS = 2 }; /* for the answer to a task that is not played; without it the task times out */

static void send_failure(hf_worker *worker, hf_str token, const hf_op *why);
static void answer_query(hf_worker *worker, hf_str token, const hf_pb_workflow_query_result *result, const hf_op *why);

/* Answers a task as failed. Without memory only its first attempt: later ones are left to time out, or they would come again at once. */
static void answer_unplayed(hf_worker *worker, const hf_pb_poll_workflow_task_queue_response *task, hf_status status)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* also when the worker is stopping */
    hf_op why;
    hf_op_init(&why);
    HF_IGNORE(hf_shield_open(hf_seconds(RETURN_SECONDS), &shield));
    (void)hf_fail(&why, status, "%s",
                  status == HF_ERR_NOMEM    ? "the worker that got this task has no memory for it"
                  : status == HF_ERR_CLOSED ? "the worker that got this task stops"
                                            : hf_wf_stuck_text);
    if (task->query != NULL) {
        answer_query(worker, task->task_token, &(hf_pb_workflow_query_result){0}, &why);
    } else if (task->attempt <= 1 || status != HF_ERR_NOMEM) {
        send_failure(worker, task->task_token, &why);
    }
}

void hf_wf_return(hf_worker *worker, hf_wtask *task, hf_status why)
{
    hf_assert(why == HF_ERR_NOMEM || why == HF_ERR_CLOSED || why == HF_ERR_TIMEOUT);
    if (worker->service->takes_nothing_back) {
        answer_unplayed(worker, task->task, why);
    } else {
        worker->service->ops->unwanted(worker->service, task->task->task_token);
    }
    hf_wtask_free(worker, task);
}

void hf_wf_return_all(hf_worker *worker, hf_list *tasks, hf_status why)
{
    while (!hf_list_is_empty(tasks)) {
        hf_wf_return(worker, HF_CONTAINER(hf_list_pop_front(tasks), hf_wtask, node), why);
        (void)hf_sem_release(worker->workflow_slots, 1);
    }
}

/* A worker that stops plays what only it can play (worker-K6), as long as it may call the service. */
static bool may_play(hf_worker *worker)
{
    return !hf_wf_cache_is_closed(worker) || (worker->service->takes_nothing_back && !hf_guard_is_shut(&worker->guard));
}

void hf_wf_pass_on(hf_worker *worker, hf_list *tasks)
{
    while (!hf_list_is_empty(tasks) && may_play(worker)) {
        hf_wtask *task = HF_CONTAINER(hf_list_pop_front(tasks), hf_wtask, node);
        if (hf_wf_cache_post(worker, task) != HF_OK) {
            hf_log(worker->rt, HF_LOG_ERROR, "workflow_not_started", "message=out_of_memory");
        }
    }
    hf_wf_return_all(worker, tasks, HF_ERR_CLOSED);
}

static void free_wf(hf_wf *wf)
{
    hf_worker *worker = wf->worker;
    hf_assert(!hf_node_is_linked(&wf->lru) && !hf_node_is_linked(&wf->bucket)); /* worker-K2 */
    hf_assert(!hf_node_is_linked(&wf->ready));                                  /* worker-D1 */
    hf_wf_return_all(worker, &wf->tasks, HF_ERR_NOMEM); /* of a run that could not begin; else there are none */
    while (!hf_list_is_empty(&wf->signals)) {
        hf_wf_signal *signal = HF_CONTAINER(hf_list_pop_front(&wf->signals), hf_wf_signal, node);
        hf_wf_header_free(wf, &signal->header);
        worker->memory.release(worker->memory.state, signal, sizeof *signal + signal->name_len);
    }
    while (!hf_list_is_empty(&wf->leftovers)) {
        hf_wf_leftover_free(wf, HF_CONTAINER(hf_list_first(&wf->leftovers), hf_wf_leftover, node));
    }
    hf_list *timers = NULL;
    for (int i = 0; (timers = hf_wf_pending_all(&wf->timers, i)) != NULL; i++) {
        while (!hf_list_is_empty(timers)) {
            hf_wf_timer *timer = HF_CONTAINER(hf_list_pop_front(timers), hf_wf_timer, node);
            worker->memory.release(worker->memory.state, timer, sizeof *timer);
        }
    }
    hf_wf_pending_deinit(&wf->activities, wf);
    hf_wf_pending_deinit(&wf->asks, wf);
    hf_wf_pending_deinit(&wf->timers, wf);
    hf_wf_header_free(wf, &wf->header);
    hf_wf_header_free(wf, &wf->taken_header);
    hf_wf_handlers_free(wf);
    hf_wf_fields_free(wf);
    hf_wtask_free(worker, wf->kept_task);
    hf_arena_deinit(&wf->kept);
    hf_payload_bag_free(&wf->payloads);
    hf_recorder_deinit(&wf->recorder);
    hf_wf_misdeed_free(wf);
    worker->memory.release(worker->memory.state, wf, wf->len);
}

static hf_str text_behind(char *room, hf_str from)
{
    if (from.len > 0) {
        memcpy(room, from.data, from.len);
    }
    room[from.len] = '\0';
    return hf_str_of_len(room, from.len);
}

hf_status hf_wf_new(hf_worker *worker, hf_wtask *task, hf_wf **ret_wf)
{
    const hf_pb_workflow_execution *execution = task->task->workflow_execution;
    hf_assert(execution != NULL); /* poller.c has checked it */
    size_t len = sizeof(hf_wf) + execution->workflow_id.len + execution->run_id.len + 2;
    hf_wf *wf = worker->memory.allocate(worker->memory.state, len, _Alignof(hf_wf));
    if (wf == NULL) {
        hf_wf_return(worker, task, HF_ERR_NOMEM);
        (void)hf_sem_release(worker->workflow_slots, 1);
        return HF_ERR_NOMEM;
    }
    memset(wf, 0, sizeof *wf);
    wf->worker = worker;
    wf->len = len;
    wf->id = text_behind((char *)(wf + 1), execution->workflow_id);
    wf->run_id = text_behind((char *)(wf + 1) + wf->id.len + 1, execution->run_id);
    hf_recorder_init(&wf->recorder);
    hf_list_init(&wf->tasks);
    hf_list_init(&wf->scheduling);
    hf_list_init(&wf->asking);
    hf_list_init(&wf->given_up);
    hf_list_init(&wf->leftovers);
    hf_list_init(&wf->signals);
    hf_list_init(&wf->signal_waits);
    hf_list_init(&wf->payloads.boxes);
    hf_list_init(&wf->locals);
    hf_list_init(&wf->local_jobs);
    hf_list_init(&wf->local_ends);
    hf_list_init(&wf->untils);
    hf_wf_handlers_init(wf);
    hf_arena_init(&wf->kept, worker->memory);
    wf->kept.chunk_len_next = KEPT_LEN_MIN;
    hf_wf_pending_init(&wf->activities);
    hf_wf_pending_init(&wf->asks);
    hf_wf_pending_init(&wf->timers);
    wf->event_id_next = 1;
    wf->posted = 1;
    wf->is_driven = true; /* by the one that hf_wf_start makes */
    hf_list_push_back(&wf->tasks, &task->node);
    *ret_wf = wf;
    return HF_OK;
}

hf_wtask *hf_wf_unmake(hf_wf *wf)
{
    hf_node *node = hf_list_pop_front(&wf->tasks);
    hf_assert(node != NULL && hf_list_is_empty(&wf->tasks));
    free_wf(wf);
    return HF_CONTAINER(node, hf_wtask, node);
}

/* ---- The mailbox ------------------------------------------------------------------------------------------------- */

static hf_wtask *pop_task(hf_wf *wf, bool *ret_told)
{
    hf_wf_cache *cache = &wf->worker->cache;
    hf_spin_lock(&cache->lock);
    hf_node *node = hf_list_pop_front(&wf->tasks);
    *ret_told = wf->is_told;
    hf_spin_unlock(&cache->lock);
    return node != NULL ? HF_CONTAINER(node, hf_wtask, node) : NULL;
}

/* The run has no driver any more, if it has nothing to do. From then on it may be gone. */
static bool leave(hf_wf *wf)
{
    hf_wf_cache *cache = &wf->worker->cache;
    hf_spin_lock(&cache->lock);
    hf_assert(wf->is_driven); /* worker-D1 */
    bool has_work = !hf_list_is_empty(&wf->tasks) || wf->is_told;
    wf->is_driven = has_work;
    hf_spin_unlock(&cache->lock);
    return !has_work;
}

/* NULL: the run must end, or (`*ret_left`) it was left and is no longer the caller's. */
static hf_wtask *next_task(hf_wf *wf, bool *ret_left)
{
    bool is_told = false;
    hf_wtask *task = pop_task(wf, &is_told);
    while (task == NULL && !is_told) {
        hf_crew *crew = wf->crew;
        hf_crew_let_go(crew);
        if (leave(wf)) {
            *ret_left = true;
            return NULL;
        }
        hf_crew_take_over(crew);
        task = pop_task(wf, &is_told);
    }
    return task;
}

/* ---- Answering --------------------------------------------------------------------------------------------------- */

const char hf_wf_stuck_text[] = "the workflow's code does not yield: it loops or blocks, and keeps its thread; "
                                "only activities may block, a workflow waits through the library";

/* Answers a query that has a task of its own; `why`: the run could not be brought up to date, or the query does not end. The
 * answer to a query that nobody waits for any more is refused, which does not matter. */
static void answer_query(hf_worker *worker, hf_str token, const hf_pb_workflow_query_result *result, const hf_op *why)
{
    hf_pb_respond_query_task_completed_request request = {
        .namespace = worker->namespace_,
        .task_token = token,
        .completed_type = result->result_type,
        .query_result = result->answer,
        .error_message = result->error_message,
        .failure = result->failure,
    };
    if (why != NULL) {
        request.completed_type = HF_QUERY_RESULT_TYPE_FAILED;
        request.error_message = hf_str_of(why->message);
    }
    hf_op op;
    hf_op_init(&op);
    hf_arena arena; /* that of the task may be in use by a fiber that did not end */
    hf_arena_init(&arena, worker->memory);
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, &request, &arena);
    (void)hf_service_ask(&op, worker->service, &call);
    hf_arena_deinit(&arena);
}

void hf_wf_answer_failed(hf_worker *worker, const hf_stuck_step *step, const hf_op *why)
{
    if (step->is_query) {
        hf_log(worker->rt, HF_LOG_ERROR, "query_failed", "workflow=%.*s run=%.*s message=%s", HF_STR_ARGS(step->id),
               HF_STR_ARGS(step->run_id), why->message);
        answer_query(worker, step->token, &(hf_pb_workflow_query_result){0}, why);
        return;
    }
    hf_log(worker->rt, HF_LOG_ERROR, "workflow_task_failed", "workflow=%.*s run=%.*s attempt=%d message=%s",
           HF_STR_ARGS(step->id), HF_STR_ARGS(step->run_id), step->attempt, why->message);
    /* Later attempts are left to time out, so that they do not come again at once. But a step that does not end is tried again at
     * most once; and an engine answers the queries that came with the task by this failure, if another attempt would have it, too. It
     * takes no query from the third attempt on. A Temporal server keeps queries for the next attempt, again and again. */
    enum { QUERY_ATTEMPTS = 3 };
    bool ends_queries = step->has_queries && step->attempt <= QUERY_ATTEMPTS && why->status == HF_ERR_CONFLICT;
    if (step->attempt <= 1 || why->status == HF_ERR_TIMEOUT || ends_queries) {
        send_failure(worker, step->token, why);
    }
}

static void send_failure(hf_worker *worker, hf_str token, const hf_op *why)
{
    hf_arena arena;
    hf_arena_init(&arena, worker->memory);
    hf_pb_respond_workflow_task_failed_request request = {
        .namespace = worker->namespace_,
        .identity = worker->identity,
        .task_token = token,
        .cause = why->status == HF_ERR_CONFLICT ? HF_WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
                                                : HF_WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
    };
    hf_failure failure = {.status = why->status, .type = hf_status_name(why->status), .message = why->message};
    request.failure = hf_failure_encode(&arena, &failure, why->status);
    hf_op op;
    hf_op_init(&op);
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, &request, &arena);
    (void)hf_service_ask(&op, worker->service, &call); /* if this fails, the task times out */
    hf_arena_deinit(&arena);
}

static void set_sticky(const hf_wf *wf, hf_pb_respond_workflow_task_completed_request *request,
                       hf_pb_sticky_execution_attributes *sticky, hf_pb_task_queue *queue)
{
    const hf_worker *worker = wf->worker;
    if (worker->sticky_queue.len == 0 || wf->hands_over) {
        return;
    }
    queue->name = worker->sticky_queue;
    queue->kind = HF_TASK_QUEUE_KIND_STICKY;
    queue->normal_name = worker->queue;
    sticky->worker_task_queue = queue;
    sticky->schedule_to_start_timeout = hf_pb_duration_of(worker->options.sticky_timeout);
    request->sticky_attributes = sticky;
    request->return_new_workflow_task = true;
}

/* Does not log refusals that are not errors: new events arrived meanwhile, or the task went to another worker. */
static void log_refusal(const hf_wf *wf, const hf_op *op, int32_t cause)
{
    bool is_quiet = op->status == HF_ERR_NOT_FOUND || op->status == HF_ERR_CANCELED || op->status == HF_ERR_CLOSED ||
                    op->status == HF_ERR_STORE || cause == HF_WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
    if (!is_quiet) {
        hf_log(wf->worker->rt, HF_LOG_WARN, "workflow_task_refused", "workflow=%.*s run=%.*s message=%s",
               HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id), op->message);
    }
}

/* Whoever answers the step as failed logs it. */
static hf_status no_memory_to_answer(hf_op *op, const char *what)
{
    return hf_fail(op, HF_ERR_NOMEM, "no memory for %s", what);
}

/* The service has taken the commands: activities that they cancel, and that a worker of this process executes, are told
 * at once. */
static void tell_canceled(const hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->recorder.records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (record->type == HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK && !record->is_withdrawn) {
            hf_assert(record->id.len > 0);
            (void)hf_service_cancel_activity(wf->worker->given, wf->worker->namespace_, wf->run_id, record->id);
        }
    }
}

typedef hf_pb_respond_workflow_task_completed_request_query_results_entry_list query_results;

/* Queries that came with a workflow task see what its events have led to. */
static hf_status answer_queries(hf_op *op, hf_wf *wf, hf_wtask *task, query_results *ret_results)
{
    size_t count = task->task->queries.count;
    hf_arena *arena = &task->arena;
    if (HF_LIKELY(count == 0)) {
        return HF_OK;
    }
    hf_pb_respond_workflow_task_completed_request_query_results_entry *entries =
        HF_ARENA_ARRAY(arena, hf_pb_respond_workflow_task_completed_request_query_results_entry, count);
    hf_pb_workflow_query_result *results = HF_ARENA_ARRAY(arena, hf_pb_workflow_query_result, count);
    if (entries == NULL || results == NULL) {
        return no_memory_to_answer(op, "the answers to queries");
    }
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hf_wf_query(op, wf, task->task->queries.items[i].value, arena, &results[i]));
        entries[i].key = task->task->queries.items[i].key;
        entries[i].value = &results[i];
    }
    ret_results->items = entries;
    ret_results->count = count;
    return HF_OK;
}

/* An engine in this process takes an answer, or has forgotten the task. One that is out of reach has not: the same answer, with the
 * same token, is sent until it is taken or refused, or the worker's time to stop is over. */
static hf_status ask_on(hf_op *op, hf_worker *worker, hf_call *call)
{
    const hf_call like = *call;
    hf_status status = hf_service_ask(op, worker->service, call);
    for (int64_t pause = 20000000; worker->service->is_remote && hf_status_may_pass(status); pause *= 2) {
        if (!hf_worker_may_try_again(worker, pause < 1000000000 ? pause : 1000000000)) {
            break;
        }
        hf_op_init(op);
        *call = like;
        status = hf_service_ask(op, worker->service, call);
    }
    return status;
}

/* Sends the commands. The answer may have the next task. */
static hf_status answer_completed(hf_op *op, hf_wf *wf, const hf_wtask *task, const query_results *results,
                                  hf_wtask **ret_next)
{
    hf_worker *worker = wf->worker;
    hf_wtask *next = hf_wtask_new(worker);
    hf_assert(!wf->is_lost); /* worker-K1 */
    if (next == NULL) {
        return no_memory_to_answer(op, "the answer to a workflow task");
    }
    hf_pb_sticky_execution_attributes sticky = {0};
    hf_pb_task_queue queue = {0};
    hf_pb_respond_workflow_task_completed_request request = {
        .namespace = worker->namespace_,
        .identity = worker->identity,
        .task_token = task->task->task_token,
        .commands = hf_recorder_commands(&wf->recorder, &next->arena),
        .messages = hf_recorder_messages(&wf->recorder, &next->arena),
        .holdfast_stream = hf_recorder_published(&wf->recorder, &next->arena),
    };
    set_sticky(wf, &request, &sticky, &queue);
    request.force_create_new_workflow_task = wf->beats;
    request.return_new_workflow_task |= wf->beats && !wf->hands_over; /* the jobs are here */
    request.query_results = *results;
    uint32_t rules[HF_WF_RULE_LAST]; /* a run names every rule */
    for (uint32_t i = 0; i < HF_COUNT_OF(rules); i++) {
        rules[i] = HF_WF_FLAG_BASE + 1 + i;
    }
    hf_pb_workflow_task_completed_metadata sdk = {.core_used_flags = {rules, HF_COUNT_OF(rules)},
                                                  .sdk_name = HF_STR(HF_WF_SDK_NAME),
                                                  .sdk_version = HF_STR(HF_VERSION_TEXT)};
    request.sdk_metadata = wf->is_sdk_known ? NULL : &sdk; /* sent once, and again by another version of the library */
    hf_call call;
    hf_worker_call_init(worker, &call, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &request, &next->arena);
    if (next->arena.status != HF_OK) {
        hf_wtask_free(worker, next);
        return no_memory_to_answer(op, "the commands");
    }
    hf_status status = ask_on(op, worker, &call);
    if (status != HF_OK) {
        log_refusal(wf, op, call.task_failed_cause);
    } else {
        tell_canceled(wf);
        wf->is_sdk_known = true; /* this answer says it, or an earlier one */
    }
    const hf_pb_respond_workflow_task_completed_response *response = call.response;
    bool is_dropped = status == HF_OK && response->reset_history_event_id > 0;
    if (is_dropped) { /* its events never were */
        wf->event_id_next = response->reset_history_event_id + 1;
        wf->is_sdk_known = false;
    }
    if (status == HF_OK && response->workflow_task != NULL && response->workflow_task->task_token.len > 0) {
        next->task = response->workflow_task;
        *ret_next = next;
    } else {
        hf_wtask_free(worker, next);
    }
    return is_dropped && wf->has_passed ? HF_ERR_EVICTED : status; /* no replay lets that condition pass then */
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

static hf_status refuse_type(hf_op *op, const hf_worker *worker, hf_str type)
{
    char text[HF_MESSAGE_LEN_MAX];
    int count = 0;
    (void)snprintf(text, sizeof text, "this worker has no workflow '%.*s'", HF_STR_ARGS(type));
    HF_LIST_EACH(node, &worker->workflows)
    {
        hf_wf_names_add(text, count++, HF_CONTAINER_CONST(node, hf_function_entry, node)->name);
    }
    return hf_fail(op, HF_ERR_NOT_FOUND, "%s", text);
}

static hf_status play(hf_op *op, hf_wf *wf, hf_wtask *task)
{
    if (wf->entry == NULL) {
        hf_str type = task->task->workflow_type != NULL ? task->task->workflow_type->name : (hf_str){NULL, 0};
        wf->entry = hf_function_find(&wf->worker->workflows, type);
        if (wf->entry == NULL) {
            return refuse_type(op, wf->worker, type);
        }
    }
    hf_wf_reader reader;
    HF_TRY(hf_wf_open_history(op, wf, task, &reader));
    wf->messages = &task->task->messages;
    wf->is_asked = task->task->queries.count > 0 || task->task->messages.count > 0;
    wf->is_ahead = task->is_ahead;
    if (!wf->has_begun) {
        wf->stream_count = task->task->holdfast_stream_count;
        wf->stream_len = task->task->holdfast_stream_len;
    }
    return hf_wf_apply(op, wf, &reader, task->task->started_event_id);
}

/* The task of a step is over. If fibers of the run may still use it, it stays as long as they do. */
static void end_task(hf_wf *wf, hf_wtask *task)
{
    if (HF_UNLIKELY(wf->is_lost || wf->keeps_task)) {
        hf_assert(wf->kept_task == NULL); /* the run ends after such a step */
        wf->kept_task = task;
    } else {
        hf_wtask_free(wf->worker, task);
    }
}

/* A query outside of a workflow task: the run as it was after its last one. Frees the task. The run stays if it can still
 * be used. */
static hf_status query_step(hf_wf *wf, hf_wtask *task)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_query_result result = {0};
    hf_wf_cache_enter_step(wf, task);
    hf_status status = play(&op, wf, task);
    if (status == HF_OK) {
        status = hf_wf_query(&op, wf, task->task->query, &task->arena, &result);
    }
    if (!hf_wf_cache_leave_step(wf, wf->is_lost)) {
        status = HF_ERR_EVICTED; /* the keeper has answered */
    } else {
        answer_query(wf->worker, task->task->task_token, &result, status == HF_OK ? NULL : &op);
    }
    end_task(wf, task);
    return status != HF_OK || !wf->has_closed ? status : HF_ERR_CLOSED;
}

static void answer_step_failed(const hf_wf *wf, const hf_wtask *task, const hf_op *why)
{
    hf_stuck_step step = {.id = wf->id,
                          .run_id = wf->run_id,
                          .token = task->task->task_token,
                          .attempt = task->task->attempt,
                          .has_queries = task->task->queries.count > 0};
    hf_wf_answer_failed(wf->worker, &step, why);
}

/* Plays one task and answers it. HF_OK: the run goes on, with `*ret_next` if it is not NULL. Frees the task. */
static hf_status step(hf_wf *wf, hf_wtask *task, hf_wtask **ret_next)
{
    hf_worker *worker = wf->worker;
    hf_op op;
    hf_op_init(&op);
    hf_assert(task->task != NULL);
    if (task->task->query != NULL) {
        return query_step(wf, task);
    }
    hf_wf_cache_enter_step(wf, task);
    query_results results = {NULL, 0};
    wf->step_ns = hf_now(NULL).ns;
    wf->beats = false;
    hf_status status = play(&op, wf, task);
    atomic_fetch_add(&worker->conflicts, status == HF_ERR_CONFLICT);
    if (status == HF_OK) {
        status = answer_queries(&op, wf, task, &results);
    }
    if (!hf_wf_cache_leave_step(wf, wf->is_lost)) {
        status = HF_ERR_EVICTED; /* the keeper has answered */
    } else if (status == HF_OK) {
        status = answer_completed(&op, wf, task, &results, ret_next);
        if (status == HF_ERR_NOMEM) { /* it was not sent, or not taken: the next attempt comes at once */
            answer_step_failed(wf, task, &op);
        }
    } else if (hf_wf_fails_run(wf, status)) {
        hf_wf_fail_run(wf, task, &op);
    } else if (status != HF_ERR_STORE && status != HF_ERR_CLOSED && status != HF_ERR_CANCELED &&
               status != HF_ERR_EVICTED) {
        answer_step_failed(wf, task, &op);
    }
    end_task(wf, task);
    if (status == HF_OK && !wf->has_closed) {
        status = wf->hands_over ? HF_ERR_EVICTED : hf_recorder_compact(&wf->recorder);
    }
    return status != HF_OK || !wf->has_closed ? status : HF_ERR_CLOSED;
}

static hf_status open_crew(hf_wf *wf)
{
    hf_op op;
    hf_op_init(&op);
    return hf_crew_open(&op, &wf->crew,
                        &(hf_crew_options){wf->id.data, &hf_wf_crew_ops, wf, 0}); /* seeded by event 1 */
}

static size_t bytes_of(const hf_wf *wf)
{
    hf_assert(!wf->is_lost); /* worker-K1: its crew is not ours to look at */
    return RUN_BYTES + hf_crew_bytes(wf->crew) + wf->len + wf->recorder.arena.used + wf->payloads.bytes +
           wf->kept.used + wf->jobs_bytes + hf_wf_fields_len(wf);
}

/* The driver closes the crew and frees the run. `next`: a task that came with its last answer and was not played, or NULL. */
static void end_run(hf_wf *wf, hf_wtask *next)
{
    hf_worker *worker = wf->worker;
    size_t dropped = 0;
    bool has_begun = wf->crew != NULL;
    hf_wf_locals_stop(wf);
    if (wf->is_lost) { /* its fiber may come back late: the tasks that wait are for the run that takes its place */
        hf_assert(next == NULL);
        hf_wf_pass_on(worker, &wf->tasks);
        dropped = hf_crew_close(wf->crew);
        hf_wf_cache_remove(wf);
    } else {
        hf_wf_cache_remove(wf);
        dropped = hf_crew_close(wf->crew);
    }
    if (dropped > 0) {
        atomic_fetch_add(&worker->dropped, dropped);
    }
    hf_wf_locals_close(wf);
    if (wf->is_given_up) {
        hf_log(worker->rt, HF_LOG_WARN, "workflow_came_back", "workflow=%.*s run=%.*s message=it_is_evicted",
               HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id));
    }
    if (next != NULL) {
        hf_list_push_front(&wf->tasks, &next->node);
    }
    if (has_begun) {                       /* else a new run would not find memory, either */
        hf_wf_pass_on(worker, &wf->tasks); /* the code of the old run has ended, and nobody finds it any more */
    }
    free_wf(wf);
    hf_worker_count(worker, &worker->runs_count, -1);
}

void hf_wf_attend(hf_wf *wf)
{
    hf_worker *worker = wf->worker;
    hf_status status = HF_OK;
    hf_wtask *task = NULL;
    bool is_left = false;
    if (wf->crew == NULL) {
        status = open_crew(wf);
    } else {
        hf_crew_take_over(wf->crew);
    }
    while (status == HF_OK && (task = next_task(wf, &is_left)) != NULL) {
        while (status == HF_OK && task != NULL) {
            hf_wtask *next = NULL;
            status = step(wf, task, &next);
            task = next;
        }
        if (task == NULL) { /* else it came with the answer to a step behind which the run ends, and keeps the slot */
            (void)hf_sem_release(worker->workflow_slots, 1);
        }
        if (!wf->is_lost) {
            hf_wf_cache_touch(wf, bytes_of(wf));
        }
    }
    if (is_left) {
        return; /* it may be gone */
    }
    end_run(wf, task);
}

hf_status hf_wf_start(hf_wf *wf)
{
    hf_worker *worker = wf->worker;
    hf_worker_count(worker, &worker->runs_count, 1);
    hf_status status = hf_fork(worker->runs, hf_wf_drive_new, wf, .name = "workflow");
    if (status != HF_OK) {
        hf_wf_cache_remove(wf);
        free_wf(wf);
        hf_worker_count(worker, &worker->runs_count, -1);
    }
    return status;
}
