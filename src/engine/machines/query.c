/* Queries: a caller asks a workflow's code, and nothing changes. Nothing is written, either: a query is part of hf_unwritten.
 *
 *                                a workflow task starts
 *     QueryWorkflow --> buffered ----------------------> attached      answered in its completion, or buffered again when it ends;
 *          |                |                                          failed if the task does as not deterministic
 *          |                | no workflow task is pending
 *          |                v              a poller
 *          +------------> waiting -----------------------> taken       answered by RespondQueryTaskCompleted
 *                           ^   not answered in time, unwanted |
 *                           +----------------------------------+
 *
 * A query must see everything that was acknowledged before it came. If a workflow task is pending, there is something that the
 * workflow's code has not seen: the query goes with that task, behind its events, or waits for the next one if it has started. If none
 * is pending the code has seen everything, and the query gets a task of its own: of a closed run, too. Before the first workflow
 * task was completed there is no code to ask.
 *
 * A query's own task is in the sticky queue first, where the worker has the run and needs no history. If that queue has no poller, or its worker
 * does not answer, any worker gets it, with the whole history. A query ends with its caller, and when its run is deleted.
 *
 * engine-Q2  A query is attached only to a workflow task that starts after it came.
 * engine-Q3  A query has a task of its own only while its run is closed, or had no workflow task when it got it. */
#include "engine/machines/query.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_page.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/poll.h"
#include "engine/size.h"
#include "engine/token.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define FAIL_FROM_ATTEMPT 3                /* of a workflow task: its code fails, and so would the query */
#define ATTACHED_LEN_MAX (2 * 1024 * 1024) /* bytes of the queries that go with one task, if it is more than one */
#define EMPTY_HISTORY "\x42\x00"           /* the field `history` of the answer to a poll, there and empty */

typedef enum hf_query_state { QUERY_BUFFERED, QUERY_ATTACHED, QUERY_WAITING, QUERY_TAKEN } hf_query_state;

typedef struct hf_query {
    hf_node link; /* of hf_unwritten.queries */
    hf_query_state state;
    hf_call *call;   /* its request is there as long as it waits */
    uint64_t number; /* from 1, since the core was opened */
    int64_t until;   /* mono ns: the caller waits no longer */
    int32_t tries;   /* how often its task was put into a queue: an answer to an earlier one is late */
    bool sticky;     /* its task is for the worker that has the run */
    hf_task task;
} hf_query;

static const hf_pb_query_workflow_request *request_of(const hf_query *query)
{
    return query->call->request;
}

/* Differs between openings: a token of an earlier one names no query of this one. */
static int64_t stamp_of(const hf_core *core, uint64_t number)
{
    return (int64_t)(hf_siphash(core->options.seed, hf_str_of_len(&number, sizeof number)) & INT64_MAX);
}

/* Its name among the queries of a workflow task. */
static hf_str name_of(const hf_core *core, const hf_query *query, hf_arena *arena)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%llx-%016llx", (unsigned long long)query->number,
                   (unsigned long long)stamp_of(core, query->number));
    return hf_arena_copy(arena, hf_str_of(text));
}

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

/* Removes the query from its queue and its run. Its call is no longer parked. */
static hf_call *end(hf_core *core, hf_run *run, hf_query *query)
{
    hf_assert(query->task.run == run && HF_SLOT(run)->unwritten != NULL);
    hf_call *call = query->call;
    hf_assert(call->place == HF_PLACE_QUERY && call->parked == query);
    hf_match_remove(core, &query->task);
    hf_poll_unpark(core, call);
    call->place = HF_PLACE_NONE;
    call->parked = NULL;
    hf_list_remove(&query->link);
    hf_core_free_mem(core, query, sizeof *query);
    hf_unwritten_mark(core, HF_SLOT(run)->unwritten); /* which may be empty now */
    return call;
}

static void wait_until(hf_core *core, hf_query *query, int64_t until)
{
    if (hf_heap_set(&core->polls, &query->call->deadline, until < query->until ? until : query->until) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

static hf_query *query_new(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(call->place == HF_PLACE_NONE && call->parked == NULL);
    hf_unwritten *unwritten = hf_unwritten_get(core, run);
    hf_query *query = unwritten != NULL ? hf_core_alloc(core, sizeof *query) : NULL;
    if (query == NULL) {
        return NULL;
    }
    int64_t span = call->timeout.ns > 0 ? call->timeout.ns : core->options.poll_span;
    query->number = ++core->query_count;
    query->call = call;
    query->until = span > INT64_MAX - core->now.mono ? INT64_MAX : core->now.mono + span;
    query->task.run = run;
    query->task.is_query = true;
    hf_list_push_back(&unwritten->queries, &query->link);
    call->place = HF_PLACE_QUERY;
    call->parked = query;
    wait_until(core, query, query->until);
    hf_unwritten_mark(core, unwritten);
    return query;
}

void hf_queries_free(hf_core *core, hf_unwritten *unwritten)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&unwritten->queries)) != NULL) { /* their calls were answered by hf_core_stop */
        hf_query *query = HF_CONTAINER(node, hf_query, link);
        hf_match_remove(core, &query->task);
        hf_core_free_mem(core, query, sizeof *query);
    }
}

uint64_t hf_queries_hash(const hf_unwritten *unwritten, uint64_t hash)
{
    HF_LIST_EACH(node, &unwritten->queries)
    {
        const hf_query *query = HF_CONTAINER(node, hf_query, link);
        hash = hf_hash_mix(hash, query->number * 8 + (uint64_t)query->state * 2 + (query->sticky ? 1 : 0));
        hash = hf_hash_mix(hash, (uint64_t)query->tries);
    }
    return hash;
}

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static void answer_with(hf_core *core, hf_call *call, const hf_pb_payloads *result)
{
    hf_pb_query_workflow_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    if (result != NULL) {
        response->query_result = HF_ARENA_NEW(call->arena, hf_pb_payloads);
        if (response->query_result != NULL) {
            (void)hf_pb_copy(&hf_pb_payloads_type, result, call->arena, response->query_result);
        }
    }
    hf_call_reply(core, call); /* which looks whether there was memory */
}

static void fail_with(hf_core *core, hf_call *call, hf_str message, hf_pb_failure *failure)
{
    HF_PROBE(core, HF_PROBE_QUERY_FAILED);
    hf_pb_query_failed_failure detail = {.failure = failure};
    hf_call_fail_with(core, call, HF_ERR_INVALID, &hf_pb_query_failed_failure_type, &detail, "%.*s",
                      HF_STR_ARGS(message));
}

/* Passes the answer of a worker on to the caller. */
static void take_answer(hf_core *core, hf_run *run, hf_query *query, const hf_pb_workflow_query_result *result)
{
    hf_call *call = end(core, run, query);
    bool is_answer = result->result_type == HF_QUERY_RESULT_TYPE_ANSWERED;
    size_t len = is_answer ? hf_payloads_len(result->answer)
                           : hf_message_len(core, &hf_pb_failure_type, result->failure) + result->error_message.len;
    if (!hf_fits(core, len)) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        fail_with(core, call, HF_STR("the answer to this query is too long"), NULL);
    } else if (is_answer) {
        answer_with(core, call, result->answer);
    } else {
        fail_with(core, call, result->error_message,
                  result->failure != NULL && !hf_failure_is_deep(result->failure) ? result->failure : NULL);
    }
}

static void refuse_no_code(hf_core *core, hf_call *call)
{
    hf_call_fail(core, call, HF_ERR_NOT_READY, "Workflow execution closed before WorkflowTaskStarted event");
}

/* ---- Its own task ---------------------------------------------------------------------------------------------------- */

static void put_into_queue(hf_core *core, hf_run *run, hf_query *query, bool sticky)
{
    hf_assert(query->task.queue == NULL && run->wft.completed_id > 0);
    hf_assert(query->state != QUERY_BUFFERED || !hf_run_is_open(run) || hf_wft_state_now(run) == HF_WFT_NONE ||
              HF_CANARY(HF_BUG_QUERY_STALE)); /* engine-Q3 */
    query->state = QUERY_WAITING;
    query->sticky = sticky;
    query->tries++;
    query->task.order = hf_order_next(core);
    int64_t span = run->sticky_timeout > 0 ? run->sticky_timeout : INT64_MAX - core->now.mono;
    wait_until(core, query, sticky && span < INT64_MAX - core->now.mono ? core->now.mono + span : INT64_MAX);
    hf_str queue = hf_owned_str(sticky ? &run->sticky_queue : &run->task_queue);
    hf_match_add(core, &query->task, hf_queue_get(core, 'w', hf_owned_str(&run->namespace), queue));
}

void hf_query_unstick(hf_core *core, hf_task *task)
{
    hf_query *query = HF_CONTAINER(task, hf_query, task);
    if (query->sticky) {
        HF_PROBE(core, HF_PROBE_QUERY_UNSTUCK);
        hf_match_remove(core, task);
        put_into_queue(core, task->run, query, false);
    }
}

static hf_query *find(hf_core *core, hf_run *run, const hf_token *token)
{
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    if (unwritten == NULL || token->kind != HF_TASK_QUERY ||
        token->stamp != stamp_of(core, (uint64_t)token->started_id)) {
        return NULL;
    }
    HF_LIST_EACH(node, &unwritten->queries)
    {
        hf_query *query = HF_CONTAINER(node, hf_query, link);
        if (query->number == (uint64_t)token->started_id) {
            return query->state == QUERY_TAKEN && query->tries == token->attempt ? query : NULL;
        }
    }
    return NULL;
}

void hf_query_again(hf_core *core, hf_run *run, const hf_token *token)
{
    hf_query *query = find(core, run, token);
    if (query != NULL) {
        HF_PROBE(core, HF_PROBE_TASK_AGAIN);
        put_into_queue(core, run, query, false);
    }
}

void hf_query_answer_call(hf_core *core, hf_call *call, hf_run *run, const hf_token *token)
{
    const hf_pb_respond_query_task_completed_request *request = call->request;
    hf_query *query = find(core, run, token);
    if (query == NULL) {
        HF_PROBE(core, HF_PROBE_LATE_ANSWER);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "nobody waits for the answer to this query any more");
        return;
    }
    if (request->completed_type != HF_QUERY_RESULT_TYPE_ANSWERED &&
        request->completed_type != HF_QUERY_RESULT_TYPE_FAILED) {
        hf_call_fail(core, call, HF_ERR_INVALID, "CompletedType is not set on request.");
        return;
    }
    HF_PROBE(core, HF_PROBE_QUERY_DIRECT);
    if (!hf_run_is_open(run)) {
        HF_PROBE(core, HF_PROBE_QUERY_CLOSED);
    }
    hf_pb_workflow_query_result result = {
        .result_type = request->completed_type,
        .answer = request->query_result,
        .error_message = request->error_message,
        .failure = request->failure,
    };
    take_answer(core, run, query, &result);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

static void copy_query(hf_core *core, const hf_query *query, hf_arena *arena, hf_pb_workflow_query **ret_query)
{
    *ret_query = HF_ARENA_NEW(arena, hf_pb_workflow_query);
    if (*ret_query == NULL ||
        hf_pb_copy(&hf_pb_workflow_query_type, request_of(query)->query, arena, *ret_query) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

void hf_query_start(hf_core *core, hf_task *task, hf_call *call)
{
    hf_query *query = HF_CONTAINER(task, hf_query, task);
    hf_run *run = task->run;
    hf_assert(query->state == QUERY_WAITING && task->queue == NULL);
    hf_pb_poll_workflow_task_queue_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    query->state = QUERY_TAKEN;
    hf_assert(query->tries > 0 && query->number <= core->query_count); /* its token differs from every earlier one */
    hf_token token = {
        .kind = HF_TASK_QUERY,
        .run = run->number,
        .started_id = (int64_t)query->number,
        .attempt = query->tries,
        .stamp = stamp_of(core, query->number),
    };
    if (!hf_wft_name_task(core, run, call, &token, response)) {
        return;
    }
    response->attempt = 1;
    copy_query(core, query, call->arena, &response->query);
    hf_page_want want = {
        .page = {.run = run->number, .next = query->sticky ? run->event_count + 1 : 1, .last = run->event_count},
        .to = run->event_count,
        .count_max = HF_HISTORY_PAGE_COUNT,
        .ret_history = &response->history,
        .ret_token = &response->next_page_token,
    };
    if (query->sticky) { /* no events, but a history: the SDKs refuse a task that has none */
        response->unknown = HF_STR(EMPTY_HISTORY);
    }
    if (core->status == HF_OK) {
        hf_history_reply(core, call, run, want);
    }
}

/* ---- With a workflow task -------------------------------------------------------------------------------------------- */

void hf_queries_attach(hf_core *core, hf_run *run, bool again, hf_call *call,
                       hf_pb_poll_workflow_task_queue_response *response)
{
    hf_unwritten *unwritten = HF_SLOT(run)->unwritten;
    if (unwritten == NULL || hf_list_is_empty(&unwritten->queries)) {
        return;
    }
    hf_assert(hf_wft_state_now(run) == HF_WFT_STARTED); /* engine-Q2 */
    size_t count = 0;
    HF_LIST_EACH(node, &unwritten->queries)
    {
        count++;
    }
    response->queries.items = HF_ARENA_ARRAY(call->arena, hf_pb_poll_workflow_task_queue_response_queries_entry, count);
    if (response->queries.items == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    size_t len = 0;
    HF_LIST_EACH(node, &unwritten->queries)
    {
        hf_query *query = HF_CONTAINER(node, hf_query, link);
        if (query->state != (again ? QUERY_ATTACHED : QUERY_BUFFERED) || core->status != HF_OK) { /* engine-Q2 */
            continue;
        }
        len += hf_message_len(core, &hf_pb_workflow_query_type, request_of(query)->query);
        if (len > ATTACHED_LEN_MAX && response->queries.count > 0 && !again) {
            break; /* the others wait for the next task */
        }
        HF_PROBE(core, HF_PROBE_QUERY_ATTACHED);
        query->state = QUERY_ATTACHED;
        hf_pb_poll_workflow_task_queue_response_queries_entry *entry =
            &response->queries.items[response->queries.count++];
        entry->key = name_of(core, query, call->arena);
        copy_query(core, query, call->arena, &entry->value);
    }
}

void hf_queries_answered(hf_core *core, hf_run *run, const hf_pb_respond_workflow_task_completed_request *request)
{
    for (size_t i = 0; i < request->query_results.count && HF_SLOT(run)->unwritten != NULL; i++) {
        const hf_pb_respond_workflow_task_completed_request_query_results_entry *entry =
            &request->query_results.items[i];
        HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->queries)
        {
            hf_query *query = HF_CONTAINER(node, hf_query, link);
            if (query->state == QUERY_ATTACHED && entry->value != NULL &&
                hf_str_equal(name_of(core, query, &core->scratch), entry->key)) {
                take_answer(core, run, query, entry->value);
                break;
            }
        }
    }
}

void hf_queries_refuse_attached(hf_core *core, hf_run *run, hf_pb_failure *failure)
{
    hf_pb_workflow_query_result result = {
        .result_type = HF_QUERY_RESULT_TYPE_FAILED,
        .error_message =
            failure != NULL ? failure->message : HF_STR("the code of the workflow does not fit its history"),
        .failure = failure,
    };
    if (HF_SLOT(run)->unwritten == NULL) {
        return;
    }
    HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->queries)
    {
        hf_query *query = HF_CONTAINER(node, hf_query, link);
        if (query->state == QUERY_ATTACHED && core->status == HF_OK) {
            HF_PROBE(core, HF_PROBE_QUERY_CONFLICT);
            take_answer(core, run, query, &result);
        }
    }
}

void hf_queries_settle(hf_core *core, hf_run *run, hf_unwritten *unwritten)
{
    bool is_open = hf_run_is_open(run);
    bool is_seen = !is_open || hf_wft_state_now(run) == HF_WFT_NONE; /* the workflow's code has seen all there is */
    HF_LIST_EACH(node, &unwritten->queries)
    {
        hf_query *query = HF_CONTAINER(node, hf_query, link);
        if (run->deleting != HF_DELETING_NOT && core->status == HF_OK) { /* no call reaches the run any more */
            hf_call_fail(core, end(core, run, query), HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
            continue;
        }
        if (query->state == QUERY_ATTACHED && hf_wft_state_now(run) != HF_WFT_STARTED) {
            query->state = QUERY_BUFFERED; /* its task has ended without an answer */
        }
        if (query->state != QUERY_BUFFERED || core->status != HF_OK) {
            continue;
        }
        if (!is_open && run->wft.completed_id == 0) {
            refuse_no_code(core, end(core, run, query));
        } else if ((is_seen || HF_CANARY(HF_BUG_QUERY_STALE)) && run->wft.completed_id != 0) { /* engine-Q3 */
            put_into_queue(core, run, query, is_open && hf_wft_wants_sticky(core, run));
        }
    }
}

/* ---- QueryWorkflow ----------------------------------------------------------------------------------------------------- */

static bool is_rejected(const hf_pb_query_workflow_request *request, const hf_run *run)
{
    return !hf_run_is_open(run) &&
           (request->query_reject_condition == HF_QUERY_REJECT_CONDITION_NOT_OPEN ||
            (request->query_reject_condition == HF_QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY &&
             run->status != HF_WORKFLOW_EXECUTION_STATUS_COMPLETED));
}

static void reject(hf_core *core, hf_call *call, const hf_run *run)
{
    HF_PROBE(core, HF_PROBE_QUERY_REJECTED);
    hf_pb_query_workflow_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->query_rejected = HF_ARENA_NEW(call->arena, hf_pb_query_rejected);
    if (response->query_rejected != NULL) {
        response->query_rejected->status = run->status;
    }
    hf_call_reply(core, call);
}

bool hf_query_is_good(hf_core *core, hf_call *call)
{
    const hf_pb_workflow_query *query = ((const hf_pb_query_workflow_request *)call->request)->query;
    if (query == NULL || !hf_id_is_good(query->query_type)) {
        hf_call_fail(core, call, HF_ERR_INVALID,
                     "QueryType is not set on request, longer than 1000 bytes, or not UTF-8.");
        return false;
    }
    if (!hf_fits(core, hf_payloads_len(query->query_args)) ||
        !hf_fits(core, hf_message_len(core, &hf_pb_header_type, query->header))) {
        hf_call_fail(core, call, HF_ERR_TOO_BIG, "the arguments or the header of the query have more than %zu bytes",
                     core->options.limits.payload_len);
        return false;
    }
    return true;
}

/* Whether it has to wait for a workflow task. */
static size_t buffered_count(const hf_run *run)
{
    size_t count = 0;
    if (HF_SLOT(run)->unwritten != NULL) {
        HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->queries)
        {
            hf_query_state state = HF_CONTAINER(node, hf_query, link)->state;
            count += state == QUERY_BUFFERED || state == QUERY_ATTACHED;
        }
    }
    return count;
}

void hf_query_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(((const hf_pb_query_workflow_request *)call->request)->query != NULL); /* hf_query_is_good */
    bool is_open = hf_run_is_open(run);
    if (is_rejected(call->request, run)) {
        reject(core, call, run);
        return;
    }
    if (!is_open && run->wft.completed_id == 0) {
        refuse_no_code(core, call);
        return;
    }
    int64_t span = call->timeout.ns > 0 ? call->timeout.ns : core->options.poll_span;
    if (run->first_task_at > core->now.wall && run->first_task_at - core->now.wall > span) {
        hf_call_fail(core, call, HF_ERR_NOT_READY, "Workflow task is not scheduled yet.");
        return;
    }
    if (is_open && run->wft.attempt >= FAIL_FROM_ATTEMPT) {
        HF_PROBE(core, HF_PROBE_QUERY_FAILED_FAST);
        hf_call_fail(core, call, HF_ERR_NOT_READY, "Unable to query workflow due to Workflow Task in failed state.");
        return;
    }
    if (buffered_count(run) >= HF_QUERIES_WAITING_MAX) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        hf_call_fail(core, call, HF_ERR_LIMIT, "too many queries wait for the workflow task of this run");
        return;
    }
    (void)query_new(core, call, run); /* hf_queries_settle sees to it */
}

void hf_query_drop(hf_core *core, hf_call *call)
{
    hf_query *query = call->parked;
    (void)end(core, query->task.run, query);
}

void hf_query_expire(hf_core *core, hf_call *call)
{
    hf_query *query = call->parked;
    hf_run *run = query->task.run;
    if (query->until > core->now.mono) { /* its worker does not answer */
        hf_assert(query->sticky && (query->state == QUERY_WAITING || query->state == QUERY_TAKEN));
        HF_PROBE(core, HF_PROBE_QUERY_UNSTUCK);
        hf_match_remove(core, &query->task);
        put_into_queue(core, run, query, false);
        return;
    }
    HF_PROBE(core, HF_PROBE_QUERY_EXPIRED);
    (void)end(core, run, query);
    hf_call_set_failure(call, HF_ERR_TIMEOUT, "no worker has answered the query in time");
    hf_call_now(call);
}
