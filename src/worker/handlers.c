/* Handlers of signals, queries and updates: functions of the workflow that the library calls, each time on a fiber of its
 * own beside the main function's (T2). A handler of signals or updates may wait; it is in wf->handlings until it
 * has returned. A query runs within one turn, and its fiber only reads.
 *
 *     on_signal --> handler --(a signal)--> handling, a fiber --> returned: gone
 *
 * worker-H1  A fiber that handles something is forked by the driver, between turns, in the order in which things came.
 *
 * A handler that is replaced goes on with the function that it began with. */
#include "worker/wf.h"

#include "base/canary.h"
#include "base/json.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

enum { STACK_TEXT_MAX = 64 * 1024 }; /* bytes of the answer to __stack_trace */

/* A local value of a handler's fiber and of whatever it forks: the handling. */
static const hf_local HANDLING = {"handler"};

void hf_wf_handlers_init(hf_wf *wf)
{
    hf_list_init(&wf->handlers);
    hf_list_init(&wf->handlings);
    hf_list_init(&wf->idle_waits);
}

static void free_handler(hf_wf *wf, hf_wf_handler *handler)
{
    hf_list_remove(&handler->node);
    wf->worker->memory.release(wf->worker->memory.state, handler, sizeof *handler + handler->name_len + 1);
}

const hf_wf_handling *hf_wf_handling_self(void)
{
    return hf_local_get(&HANDLING);
}

static void free_handling(hf_wf_handling *handling)
{
    hf_wf *wf = handling->wf;
    hf_assert(wf != NULL && handling->len > sizeof *handling);
    if (hf_node_is_linked(&handling->node)) {
        hf_list_remove(&handling->node);
    }
    hf_payload_free(&handling->in);
    hf_wf_header_free(wf, &handling->header);
    wf->worker->memory.release(wf->worker->memory.state, handling, handling->len);
}

void hf_wf_handlers_free(hf_wf *wf)
{
    while (!hf_list_is_empty(&wf->handlers)) {
        free_handler(wf, HF_CONTAINER(hf_list_first(&wf->handlers), hf_wf_handler, node));
    }
    while (!hf_list_is_empty(&wf->handlings)) { /* their fibers never began, or were stranded */
        free_handling(HF_CONTAINER(hf_list_first(&wf->handlings), hf_wf_handling, node));
    }
}

const hf_wf_handler *hf_wf_handler_of(const hf_wf *wf, hf_wf_handler_kind kind, hf_str name)
{
    const hf_wf_handler *any = NULL;
    HF_LIST_EACH(node, &wf->handlers)
    {
        const hf_wf_handler *handler = HF_CONTAINER_CONST(node, hf_wf_handler, node);
        if (handler->kind != kind) {
            continue;
        }
        if (handler->is_any) {
            any = handler;
        } else if (hf_str_equal(name, hf_str_of_len(handler->name, handler->name_len))) {
            return handler;
        }
    }
    return any;
}

void hf_wf_names_add(char text[HF_MESSAGE_LEN_MAX], int idx, hf_str name)
{
    size_t used = strlen(text);
    size_t room = HF_MESSAGE_LEN_MAX - used;
    if (idx < HF_NAMES_TOLD_MAX) {
        (void)snprintf(text + used, room, "%s'%.*s'", idx == 0 ? "; it has " : ", ",
                       name.len > HF_NAME_TOLD_LEN_MAX ? HF_NAME_TOLD_LEN_MAX : (int)name.len, name.data);
    } else if (idx == HF_NAMES_TOLD_MAX) {
        (void)snprintf(text + used, room, " and more");
    }
}

void hf_wf_tell_no_handler(const hf_wf *wf, hf_wf_handler_kind kind, hf_str name, char text[HF_MESSAGE_LEN_MAX])
{
    int count = 0;
    (void)snprintf(text, HF_MESSAGE_LEN_MAX, "workflow '%s' has no handler for %s '%.*s'", wf->entry->name.data,
                   kind == HF_WF_ON_QUERY ? "query" : "update", HF_STR_ARGS(name));
    HF_LIST_EACH(node, &wf->handlers)
    {
        const hf_wf_handler *handler = HF_CONTAINER_CONST(node, hf_wf_handler, node);
        if (handler->kind == kind) {
            hf_wf_names_add(text, count++, hf_str_of_len(handler->name, handler->name_len));
        }
    }
}

bool hf_wf_is_on_stack(const void *address)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    const char *at = address;
    return self != NULL && at != NULL && at >= self->stack_lo && at < self->stack_hi;
}

/* ---- Registering ------------------------------------------------------------------------------------------------- */

static bool is_waited_for(const hf_wf *wf, const char *name)
{
    HF_LIST_EACH(node, &wf->signal_waits)
    {
        const char *awaited = NULL;
        for (size_t i = 0; (awaited = hf_wf_awaited(HF_CONTAINER_CONST(node, hf_wait, node), i)) != NULL; i++) {
            if (strcmp(awaited, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Whether an address of this stack is among the bytes at `arg`: what a lambda of C++ has captured by reference. */
static bool leads_to_stack(const void *arg, size_t len)
{
    for (size_t at = 0; arg != NULL && at + sizeof(void *) <= len; at += sizeof(void *)) {
        const void *word = NULL;
        memcpy(&word, (const char *)arg + at, sizeof word);
        if (hf_wf_is_on_stack(word)) {
            return true;
        }
    }
    return false;
}

static hf_status refuse(hf_fiber *self, const hf_wf *wf, const char *verb, const char *name, const hf_wf_handler *from,
                        size_t arg_len)
{
    if (wf == NULL || (from->signal == NULL && from->reply == NULL)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a function, and can only be called in a workflow",
                            verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    if (name != NULL && (name[0] == '\0' || hf_wf_is_too_long(name))) {
        return hf_refuse_at(self, HF_ERR_INVALID, verb, "%s: a name has 1 to %d bytes", verb, HF_ID_LEN_MAX);
    }
    if (hf_wf_is_on_stack(from->arg)) {
        return hf_refuse_at(
            self, HF_ERR_MISUSE, verb,
            "%s: .arg is on the stack of this fiber, and a handler may run when that is gone: take it from "
            "hf_workflow_alloc",
            verb);
    }
    if (leads_to_stack(from->arg, arg_len)) {
        return hf_refuse_at(
            self, HF_ERR_MISUSE, verb,
            "%s: the handler of '%.100s' refers to the stack of this fiber, and may run when that is "
            "gone: let it capture what holdfast::keep() or hf_workflow_alloc returned (and a buffer only "
            "with a value in each byte)",
            verb, name != NULL ? name : "all names");
    }
    if (from->signal != NULL && name != NULL && is_waited_for(wf, name)) {
        return hf_refuse_at(
            self, HF_ERR_MISUSE, verb,
            "%s: a fiber waits for signal '%.100s' with hf_signal_wait; a name has a handler or is waited "
            "for",
            verb, name);
    }
    return HF_OK;
}

static hf_status add(hf_fiber *self, hf_wf *wf, const char *verb, hf_wf_handler_kind kind, const char *name,
                     const hf_wf_handler *from, size_t arg_len)
{
    HF_TRY(refuse(self, wf, verb, name, from, arg_len));
    size_t len = name != NULL ? strlen(name) : 0;
    hf_wf_handler *handler =
        wf->worker->memory.allocate(wf->worker->memory.state, sizeof *handler + len + 1, _Alignof(hf_wf_handler));
    if (handler == NULL) {
        wf->is_nomem = true;
        return hf_refuse_at(self, HF_ERR_NOMEM, verb, "no memory for a handler");
    }
    HF_LIST_EACH(node, &wf->handlers)
    {
        hf_wf_handler *old = HF_CONTAINER(node, hf_wf_handler, node);
        if (old->kind == kind && old->is_any == (name == NULL) &&
            (name == NULL || hf_str_equal(hf_str_of(name), hf_str_of(old->name)))) {
            free_handler(wf, old);
            break;
        }
    }
    *handler = *from;
    handler->node = (hf_node){NULL, NULL};
    handler->kind = kind;
    handler->is_any = name == NULL;
    handler->name_len = len;
    memcpy(handler->name, name != NULL ? name : "", len + 1);
    hf_list_push_back(&wf->handlers, &handler->node);
    wf->has_takers |= kind == HF_WF_ON_SIGNAL;
    return HF_OK;
}

hf_status hf_on_signal_with(const char *name, hf_signal_handler handler, const hf_on_signal_options *options)
{
    HF_OPTIONS(hf_on_signal_options, options, hf_on_signal);
    HF_VERB_ENTER(self, hf_on_signal, NULL);
    hf_wf_handler from = {.signal = handler, .arg = options->arg, .may_be_left = options->may_be_left};
    HF_LEAVE(self, add(self, hf_wf_self(), "hf_on_signal", HF_WF_ON_SIGNAL, name, &from, options->arg_len));
}

hf_status hf_on_query_with(const char *name, hf_reply_handler handler, const hf_on_query_options *options)
{
    HF_OPTIONS(hf_on_query_options, options, hf_on_query);
    HF_VERB_ENTER(self, hf_on_query, NULL);
    hf_wf_handler from = {.reply = handler, .arg = options->arg};
    HF_LEAVE(self, add(self, hf_wf_self(), "hf_on_query", HF_WF_ON_QUERY, name, &from, options->arg_len));
}

hf_status hf_on_update_with(const char *name, hf_reply_handler handler, const hf_on_update_options *options)
{
    HF_OPTIONS(hf_on_update_options, options, hf_on_update);
    HF_VERB_ENTER(self, hf_on_update, NULL);
    hf_wf_handler from = {
        .reply = handler, .arg = options->arg, .validator = options->validator, .may_be_left = options->may_be_left};
    HF_LEAVE(self, add(self, hf_wf_self(), "hf_on_update", HF_WF_ON_UPDATE, name, &from, options->arg_len));
}

/* ---- Under way --------------------------------------------------------------------------------------------------- */

const char *hf_handler_name(void)
{
    const hf_wf_handling *handling = hf_local_get(&HANDLING);
    return handling != NULL ? handling->name : NULL;
}

const char *hf_update_id(void)
{
    const hf_wf_handling *handling = hf_local_get(&HANDLING);
    return handling != NULL ? handling->update_id : NULL;
}

/* A handling that is under way, not counting `mine`; NULL: none. Handlers that wait for this themselves do not wait for each
 * other: they go on when all that are left wait. */
static const hf_wf_handling *busy(const hf_wf *wf, const hf_wf_handling *mine)
{
    bool passes_waiting = mine != NULL && hf_wf_plays_by(wf, HF_WF_RULE_WAITS);
    HF_LIST_EACH(node, &wf->handlings)
    {
        const hf_wf_handling *handling = HF_CONTAINER_CONST(node, hf_wf_handling, node);
        if (handling != mine && handling->is_counted && !(passes_waiting && handling->idle_waits > 0)) {
            return handling;
        }
    }
    return NULL;
}

static bool is_idle(const hf_wf *wf, const hf_wf_handling *mine)
{
    return busy(wf, mine) == NULL;
}

static hf_status still_busy(hf_fiber *self, const hf_wf *wf, const hf_wf_handling *mine)
{
    const hf_wf_handling *handling = busy(wf, mine);
    return hf_refuse_at(self, HF_ERR_TIMEOUT, "hf_handlers_wait",
                        "hf_handlers_wait: the handler of '%.100s' has not returned in time",
                        handling != NULL ? handling->name : "");
}

static bool abort_idle(hf_wait *wait)
{
    bool claimed = hf_node_is_linked(&wait->node);
    if (claimed) {
        hf_list_remove(&wait->node);
    }
    return claimed;
}

static const hf_wait_kind IDLE = {"hf_handlers_wait", abort_idle};

/* Inside a verb, or between turns. */
static void wake_idle(hf_wf *wf)
{
    HF_LIST_EACH(node, &wf->idle_waits)
    {
        hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
        if (is_idle(wf, wait->object)) {
            hf_list_remove(node);
            hf_wake(wait, HF_OK);
        }
    }
}

static hf_status wait_idle(hf_fiber *self, hf_wf *wf, hf_wf_handling *mine, const hf_wait_options *options)
{
    bool is_over = is_idle(wf, mine);
    if (!is_over && options->timeout.ns < 0) { /* it only looks, so that nobody may go on because of it */
        return still_busy(self, wf, mine);
    }
    if (mine != NULL && hf_wf_plays_by(wf, HF_WF_RULE_WAITS)) {
        mine->idle_waits++;
        wake_idle(wf); /* it may be the one that the others waited for */
    }
    hf_status status = HF_OK;
    if (!is_over) {
        hf_wait wait;
        hf_wait_init(&wait, self, &IDLE, mine, "");
        hf_list_push_back(&wf->idle_waits, &wait.node);
        status = hf_park(self, &wait, hf_wait_deadline(self, self->rt, options));
        hf_assert(!hf_node_is_linked(&wait.node)); /* it is on this stack */
        status = status == HF_ERR_TIMEOUT ? still_busy(self, wf, mine) : status;
    }
    if (mine != NULL && mine->idle_waits > 0) {
        mine->idle_waits--;
    }
    return status;
}

hf_status hf_handlers_wait_with(const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_handlers_wait);
    hf_wf_handling *mine = hf_local_get(&HANDLING); /* a verb itself: not inside this one */
    HF_VERB_ENTER(self, hf_handlers_wait, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_handlers_wait can only be called in a workflow"));
    }
    hf_status status = hf_may_wait_for(self, "hf_handlers_wait", options);
    HF_LEAVE(self, status == HF_OK ? wait_idle(self, wf, mine, options) : status);
}

/* The failure of a signal handler ends nothing. It is told once, not in replays. */
static void tell_failed(const hf_wf_handling *handling, hf_status status)
{
    const hf_wf *wf = handling->wf;
    if (status != HF_OK && wf->is_current && !wf->has_closed) {
        hf_log(wf->worker->rt, HF_LOG_WARN, "signal_handler_failed", "workflow=%.*s run=%.*s signal=%s message=%s",
               HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id), handling->name, hf_error_text());
    }
}

static hf_status handle(void *arg)
{
    hf_wf_handling *handling = arg;
    hf_wf *wf = handling->wf;
    handling->branch = hf_crew_self_branch();
    hf_status status = hf_local_set(&HANDLING, handling);
    wf->is_nomem |= status != HF_OK;
    if (status == HF_OK && handling->kind == HF_WF_ON_UPDATE) {
        hf_wf_run_update(handling);
    } else if (status == HF_OK) {
        hf_assert(handling->kind == HF_WF_ON_SIGNAL); /* worker-H1 */
        status = handling->signal(handling->arg, handling->in);
    }
    if (!hf_crew_self_is_evicted()) {
        tell_failed(handling, status);
        hf_list_remove(&handling->node);
        hf_fiber *self = hf_enter(NULL);
        wake_idle(wf);
        hf_leave(self);
    }
    free_handling(handling);
    return HF_OK;
}

static hf_wf_handling *new_handling(hf_wf *wf, hf_wf_handler_kind kind, const hf_wf_handler *handler, hf_str name,
                                    hf_str update_id)
{
    size_t len = sizeof(hf_wf_handling) + name.len + update_id.len + 2;
    hf_wf_handling *handling = wf->worker->memory.allocate(wf->worker->memory.state, len, _Alignof(hf_wf_handling));
    if (handling == NULL) {
        return NULL;
    }
    *handling = (hf_wf_handling){.wf = wf,
                                 .kind = kind,
                                 .signal = handler->signal,
                                 .reply = handler->reply,
                                 .validator = handler->validator,
                                 .arg = handler->arg,
                                 .may_be_left = handler->may_be_left,
                                 .is_counted = kind == HF_WF_ON_SIGNAL,
                                 .len = len};
    memcpy(handling->name, name.len > 0 ? name.data : "", name.len);
    handling->name[name.len] = '\0';
    char *id = handling->name + name.len + 1;
    memcpy(id, update_id.len > 0 ? update_id.data : "", update_id.len);
    id[update_id.len] = '\0';
    handling->update_id = update_id.len > 0 ? id : NULL;
    return handling;
}

hf_status hf_wf_handle(hf_op *op, hf_wf *wf, hf_wf_handler_kind kind, const hf_wf_handler *handler, hf_str name,
                       hf_str update_id, hf_payload in)
{
    hf_assert(kind == HF_WF_ON_SIGNAL ? handler->signal != NULL : handler->reply != NULL);
    hf_assert((update_id.len > 0) == (kind == HF_WF_ON_UPDATE));
    hf_wf_handling *handling = new_handling(wf, kind, handler, name, update_id);
    if (handling == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a handler");
    }
    hf_status status = hf_crew_fork(op, wf->crew, handle, handling, "handler");
    if (status != HF_OK) {
        free_handling(handling); /* `in` is still the caller's */
        return status;
    }
    handling->in = in;
    hf_list_push_back(&wf->handlings, &handling->node);
    return HF_OK;
}

void hf_wf_cancel_handlers(hf_wf *wf)
{
    hf_assert(wf->has_closed);
    HF_LIST_EACH(node, &wf->handlings)
    {
        hf_wf_handling *handling = HF_CONTAINER(node, hf_wf_handling, node);
        if (handling->branch != NULL) {
            hf_crew_cancel_member(wf->crew, handling->branch, "the workflow has ended");
        }
    }
}

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

static hf_status answer_query(void *arg)
{
    hf_wf_handling *query = arg;
    hf_assert(query->kind == HF_WF_ON_QUERY && !query->has_ended);
    hf_status status = hf_local_set(&HANDLING, query);
    if (status == HF_OK) {
        hf_op op;
        hf_op_init(&op);
        hf_crew_self_reads(true);
        status = query->reply(query->arg, query->in, &query->out);
        hf_crew_self_reads(false);
        if (status == HF_OK &&
            hf_payload_check_result(&op, "the answer to the query", query->out, query->in) != HF_OK) {
            status = hf_failure_raise_op(&op);
        }
    }
    if (status != HF_OK) {
        query->failure = hf_failure_encode(query->arena, hf_error_as(status), status);
    }
    query->status = status;
    query->has_ended = true;
    return HF_OK;
}

static void refuse_query(hf_arena *arena, hf_pb_workflow_query_result *result, hf_str type, const char *message)
{
    result->result_type = HF_QUERY_RESULT_TYPE_FAILED;
    result->error_message = hf_arena_copy(arena, hf_str_of(message));
    result->failure = hf_failure_application(arena, type, result->error_message, true);
}

/* "__stack_trace", which every workflow answers: where its fibers wait, a line for each. */
static hf_status answer_stack(hf_op *op, const hf_wf *wf, hf_arena *arena, hf_pb_workflow_query_result *ret_result)
{
    hf_buf text;
    hf_buf json;
    hf_buf_init(&text, arena->memory, STACK_TEXT_MAX);
    hf_buf_init(&json, arena->memory, SIZE_MAX / 4);
    hf_crew_put_waits(wf->crew, &text);
    hf_json_quote(&json, hf_buf_text(&text), text.len);
    hf_status status = json.status;
    if (status == HF_OK) {
        hf_str copy = hf_arena_copy(arena, hf_str_of_len(json.data, json.len));
        ret_result->result_type = HF_QUERY_RESULT_TYPE_ANSWERED;
        ret_result->answer = hf_payload_encode(arena, hf_payload_of_json(copy.data));
    }
    hf_buf_deinit(&text);
    hf_buf_deinit(&json);
    return status == HF_OK && arena->status == HF_OK ? HF_OK
                                                     : hf_fail(op, HF_ERR_NOMEM, "no memory for the answer to a query");
}

hf_status hf_wf_query(hf_op *op, hf_wf *wf, const hf_pb_workflow_query *asked, hf_arena *arena,
                      hf_pb_workflow_query_result *ret_result)
{
    char text[HF_MESSAGE_LEN_MAX];
    hf_assert(!wf->is_lost && wf->has_begun); /* worker-K1 */
    *ret_result = (hf_pb_workflow_query_result){0};
    const hf_wf_handler *handler = hf_wf_handler_of(wf, HF_WF_ON_QUERY, asked->query_type);
    if (handler == NULL && hf_str_equal(asked->query_type, HF_STR("__stack_trace"))) {
        return answer_stack(op, wf, arena, ret_result);
    }
    if (handler == NULL) {
        hf_wf_tell_no_handler(wf, HF_WF_ON_QUERY, asked->query_type, text);
        refuse_query(arena, ret_result, HF_STR("NotFound"), text);
        return HF_OK;
    }
    hf_wf_handling *query = new_handling(wf, HF_WF_ON_QUERY, handler, asked->query_type, (hf_str){NULL, 0});
    bool is_kept = query != NULL && hf_wf_header_keep(wf, asked->header, &query->header);
    hf_status status = is_kept ? hf_crew_fork(op, wf->crew, answer_query, query, "query") : HF_ERR_NOMEM;
    if (status != HF_OK) {
        if (query != NULL) {
            free_handling(query);
        }
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a query");
    }
    query->in = hf_payload_view(arena, asked->query_args);
    query->arena = arena;
    if (HF_CANARY(HF_BUG_QUERY_DRAWS)) {
        uint64_t lost = 0;
        hf_crew_random(wf->crew, &lost, sizeof lost);
    }
    status = hf_wf_turn(op, wf);
    if (HF_CANARY(HF_BUG_CONDITION_AFTER_QUERY) && status == HF_OK && query->has_ended) {
        uint64_t number = 0;
        hf_crew_set_now(wf->crew, (hf_time){hf_wall_now(wf->worker->rt).ns + hf_hours(1).ns});
        while (status == HF_OK && hf_wf_wake_until(wf, &number)) {
            status = hf_wf_turn(op, wf);
        }
    }
    if (status != HF_OK || !query->has_ended) { /* its fiber still uses the query and the task: they go with the run */
        hf_list_push_back(&wf->handlings, &query->node);
        wf->keeps_task = true;
    }
    if (status != HF_OK) {
        return status;
    }
    if (!query->has_ended) { /* it parked, which every verb refuses: something else switched it away */
        status = hf_fail(op, HF_ERR_CONFLICT, "query '%s' waits for something outside of its workflow", query->name);
        return status;
    }
    if (query->status == HF_OK) {
        ret_result->result_type = HF_QUERY_RESULT_TYPE_ANSWERED;
        ret_result->answer = hf_payload_encode(arena, query->out);
    } else {
        ret_result->result_type = HF_QUERY_RESULT_TYPE_FAILED;
        ret_result->failure = query->failure;
        ret_result->error_message = query->failure != NULL ? query->failure->message : HF_STR("");
    }
    hf_payload_free(&query->out);
    free_handling(query);
    return arena->status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the answer to a query");
}
