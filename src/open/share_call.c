/* Calls of this process to the owner of a file.
 *
 *     submit -- inbox --> waiting --> sent --> done
 *                            ^          |
 *                            +----------+ the connection is lost, and it may be repeated (open-S2)
 *
 * Once this process is the owner, a call goes to the engine at once, as a second call (`inner`) whose `done` ends the first: so numbers stay
 * the share's own, and a cancel always finds its call. */
#include "open/share_private.h"

#include "service/grpc_path.h"

#include <stdarg.h>
#include <stdio.h>

static hf_share *share_of(hf_service *service)
{
    return (hf_share *)(void *)service;
}

static int64_t now_of(const hf_share *share)
{
    return share->env->ops->now(share->env).ns;
}

/* ---- The end ------------------------------------------------------------------------------------------------------------------ */

/* open-S1. Under the lock. */
static void take_out(hf_share *share, hf_call *call)
{
    hf_assert(hf_node_is_linked(&call->by_number) && share->call_count > 0);
    hf_list_remove(&call->by_number);
    if (hf_node_is_linked(&call->all)) {
        hf_list_remove(&call->all);
    }
    share->call_count--;
}

static void release(hf_errand_out *out)
{
    hf_share *share = out->share;
    hf_buf_deinit(&out->answer);
    hf_spin_lock(&share->lock);
    bool is_kept = share->spare_count < HF_SHARE_SPARE_MAX;
    if (is_kept) {
        share->spare_count++;
        hf_list_push_back(&share->spare, &out->node);
    }
    hf_spin_unlock(&share->lock);
    if (!is_kept) {
        share->memory.release(share->memory.state, out, sizeof *out);
    }
}

/* Leaves the thread's lists. */
static void unlink_out(hf_errand_out *out)
{
    hf_heap_remove(&out->share->alarms, &out->alarm);
    hf_list_remove(&out->node);
    if (hf_node_is_linked(&out->wait_node)) {
        hf_list_remove(&out->wait_node);
    }
    if (hf_node_is_linked(&out->by_wire)) {
        hf_list_remove(&out->by_wire);
    }
}

/* Ends the call with what stands in it. */
static void finish(hf_errand_out *out)
{
    hf_share *share = out->share;
    hf_call *call = out->call;
    unlink_out(out);
    hf_spin_lock(&share->lock);
    take_out(share, call);
    hf_spin_unlock(&share->lock); /* from here on no cancel finds `out` */
    release(out);
    call->done(call);
}

static void fail(hf_errand_out *out, hf_status status, const char *format, ...) HF_PRINTF(3, 4);
static void fail(hf_errand_out *out, hf_status status, const char *format, ...)
{
    char text[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hf_call_set_failure(out->call, status, text);
    finish(out);
}

static void fail_unreachable(hf_errand_out *out)
{
    fail(out, HF_ERR_UNAVAILABLE, "the program that has %s open cannot be reached: %s", out->share->path,
         out->share->why[0] != '\0' ? out->share->why : "there is no connection yet");
}

void hf_out_fail_all(hf_share *share, hf_status status, const char *why)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&share->out)) != NULL) {
        fail(HF_CONTAINER(node, hf_errand_out, node), status, "%s", why);
    }
}

/* ---- Waiting and sending -------------------------------------------------------------------------------------------------------- */

/* Without memory for the alarm the call has no bound of its own: its connection has. */
static void set_alarm(hf_errand_out *out, int64_t at_ns)
{
    if (at_ns == INT64_MAX || hf_heap_set(&out->share->alarms, &out->alarm, at_ns) != HF_OK) {
        hf_heap_remove(&out->share->alarms, &out->alarm);
    }
}

static void wait_for_owner(hf_errand_out *out)
{
    if (hf_node_is_linked(&out->by_wire)) {
        hf_list_remove(&out->by_wire);
    }
    out->wire = 0;
    out->answer.len = 0;
    hf_list_push_back(&out->share->waiting, &out->wait_node);
    set_alarm(out, out->until_ns);
}

static hf_errand_out *new_out(hf_share *share, hf_call *call)
{
    hf_spin_lock(&share->lock);
    hf_node *spare = hf_list_pop_front(&share->spare);
    share->spare_count -= spare != NULL ? 1 : 0;
    hf_spin_unlock(&share->lock);
    hf_errand_out *out = spare != NULL ? HF_CONTAINER(spare, hf_errand_out, node)
                                       : share->memory.allocate(share->memory.state, sizeof *out, 0);
    if (out != NULL) {
        *out = (hf_errand_out){.share = share, .call = call, .manner = hf_manner_of(call)};
        hf_buf_init(&out->answer, share->memory, HF_SHARE_ANSWER_LEN_MAX);
    }
    return out;
}

void hf_out_begin(hf_share *share, hf_call *call)
{
    hf_errand_out *out = new_out(share, call);
    hf_spin_lock(&share->lock);
    if (out == NULL) {
        take_out(share, call);
    } else {
        call->parked = out;
    }
    hf_spin_unlock(&share->lock);
    if (out == NULL) {
        hf_call_set_failure(call, HF_ERR_NOMEM, "no memory for a call");
        call->done(call);
        return;
    }
    out->until_ns = hf_manner_patience_until(&out->manner, call, now_of(share));
    hf_list_push_back(&share->out, &out->node);
    wait_for_owner(out);
}

/* `gives_up`: an answer that is on its way is not read any more, and the owner hands its tasks to others. */
static void send_cancel(hf_share *share, uint64_t wire, bool gives_up)
{
    hf_pb_owner_call frame = {.number = wire, .gives_up = gives_up};
    if (share->duct.fd >= 0) {
        hf_duct_put(&share->duct, &hf_pb_owner_call_type, &frame);
    }
}

void hf_out_cancel(hf_errand_out *out)
{
    if (out->wire == 0) {
        fail(out, HF_ERR_CANCELED, "the caller was canceled");
        return;
    }
    out->is_canceled = true; /* the owner answers soon: with a failure, or with what was decided before */
    send_cancel(out->share, out->wire, false);
    set_alarm(out, hf_later(now_of(out->share), hf_seconds(HF_SHARE_CANCEL_SECONDS).ns));
}

static bool may_repeat(const hf_errand_out *out)
{
    return out->manner.repeat != HF_REPEAT_NEVER; /* open-S2 */
}

void hf_out_ring(hf_errand_out *out)
{
    hf_share *share = out->share;
    if (out->is_canceled) {
        send_cancel(share, out->wire, true);
        fail(out, HF_ERR_CANCELED, "the caller was canceled");
    } else if (out->wire == 0) {
        fail_unreachable(out);
    } else if (may_repeat(out) && now_of(share) < out->until_ns) {
        send_cancel(share, out->wire, true);
        wait_for_owner(out);
    } else {
        send_cancel(share, out->wire, true);
        fail(out, out->manner.is_wait ? HF_ERR_TIMEOUT : HF_ERR_UNAVAILABLE,
             may_repeat(out)
                 ? "the program that has %s open did not answer in time"
                 : "the program that has %s open did not answer in time: whether it has done it is not known",
             share->path);
    }
}

static void send_one(hf_errand_out *out)
{
    hf_share *share = out->share;
    hf_call *call = out->call;
    const hf_method_info *info = hf_method_info_of(call->method);
    hf_buf *bytes = &share->scratch;
    bytes->len = 0;
    bytes->status = HF_OK;
    hf_pb_encode(info->request_type, call->request, bytes);
    if (hf_buf_status(bytes) != HF_OK) {
        fail(out, hf_buf_status(bytes), "the request has more than %d bytes, or there is no memory for it",
             HF_SHARE_REQUEST_LEN_MAX);
        return;
    }
    hf_assert(out->wire == 0 && !out->is_canceled); /* open-S2: it is not under way */
    hf_list_remove(&out->wait_node);
    out->wire = ++share->wire_last;
    hf_list_push_back(&share->by_wire[out->wire % HF_SHARE_BUCKETS], &out->by_wire);
    hf_pb_owner_call frame = {
        .number = out->wire,
        .method = hf_str_of(info->name),
        .timeout_ns = call->timeout.ns,
        .lets_go = call->lets_go,
        .replays = call->replays,
        .run_ahead = call->run_ahead,
        .request = hf_str_of_len(bytes->data, bytes->len),
    };
    hf_duct_put(&share->duct, &hf_pb_owner_call_type, &frame);
    /* The owner's own answer should come first. */
    set_alarm(out, hf_later(now_of(share), hf_later(hf_manner_attempt_span(&out->manner, call), hf_seconds(1).ns)));
}

void hf_out_send_all(hf_share *share)
{
    hf_node *node = NULL;
    while (share->duct.fd >= 0 && !share->duct.is_over && hf_duct_left(&share->duct) < HF_SHARE_SEND_LEN_MAX &&
           (node = hf_list_first(&share->waiting)) != NULL) {
        send_one(HF_CONTAINER(node, hf_errand_out, wait_node));
    }
}

/* The whole list, in the order in which they were sent. */
void hf_out_lost(hf_share *share)
{
    HF_LIST_EACH(node, &share->out)
    {
        hf_errand_out *out = HF_CONTAINER(node, hf_errand_out, node);
        if (out->wire == 0) {
            continue;
        }
        if (out->is_canceled) {
            fail(out, HF_ERR_CANCELED, "the caller was canceled");
        } else if (may_repeat(out)) {
            wait_for_owner(out);
        } else {
            fail(out, HF_ERR_UNAVAILABLE,
                 "the program that had %s open has gone before it answered: whether it has done it is not known",
                 share->path);
        }
    }
}

/* ---- Answers -------------------------------------------------------------------------------------------------------------------- */

static hf_errand_out *find_wire(hf_share *share, uint64_t wire)
{
    HF_LIST_EACH(node, &share->by_wire[wire % HF_SHARE_BUCKETS])
    {
        hf_errand_out *out = HF_CONTAINER(node, hf_errand_out, by_wire);
        if (out->wire == wire) {
            return out;
        }
    }
    return NULL;
}

static hf_status take_response(hf_op *op, hf_call *call, hf_str bytes)
{
    const hf_method_info *info = hf_method_info_of(call->method);
    hf_str copy = hf_arena_copy(call->arena, bytes);
    void *response = hf_arena_zero(call->arena, info->response_type->size, 16);
    if (call->arena->status != HF_OK || response == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an answer");
    }
    HF_TRY(hf_pb_decode(op, info->response_type, copy, call->arena, response));
    call->status = HF_OK;
    call->response = response;
    return HF_OK;
}

/* The message of errordetails.v1, in the call's arena. */
static void take_detail(hf_call *call, hf_str name, hf_str bytes)
{
    static const hf_pb_type *const TYPES[] = {
        &hf_pb_not_found_failure_type,           &hf_pb_workflow_execution_already_started_failure_type,
        &hf_pb_namespace_not_found_failure_type, &hf_pb_query_failed_failure_type,
        &hf_pb_permission_denied_failure_type,   &hf_pb_resource_exhausted_failure_type,
        &hf_pb_workflow_not_ready_failure_type,  &hf_pb_multi_operation_execution_failure_type,
    };
    hf_op op;
    hf_op_init(&op);
    for (size_t i = 0; i < HF_COUNT_OF(TYPES); i++) {
        if (!hf_str_equal(hf_str_of(TYPES[i]->name), name)) {
            continue;
        }
        hf_str copy = hf_arena_copy(call->arena, bytes);
        void *detail = hf_arena_zero(call->arena, TYPES[i]->size, 16);
        if (detail != NULL && (copy.len > 0 || bytes.len == 0) &&
            hf_pb_decode(&op, TYPES[i], copy, call->arena, detail) == HF_OK) {
            call->detail_type = TYPES[i];
            call->detail = detail;
        }
        return;
    }
}

static void take_failure(hf_call *call, const hf_pb_owner_answer *msg)
{
    bool is_status = msg->status > 0 && msg->status <= INT16_MAX;
    hf_call_set_failure(call, is_status ? (hf_status)msg->status : HF_ERR_UNAVAILABLE, "");
    call->detail_type = NULL;
    call->detail = NULL;
    (void)snprintf(call->message, sizeof call->message, "%.*s", HF_STR_ARGS(msg->message));
    if (msg->detail_type.len > 0) {
        take_detail(call, msg->detail_type, msg->detail);
    }
    call->is_final = msg->is_final;
    call->words = msg->words.len > 0 ? hf_arena_copy(call->arena, msg->words).data : NULL;
    call->retry_after = hf_nanoseconds(msg->retry_after_ns);
    call->existing_run_id = hf_arena_copy(call->arena, msg->existing_run_id);
    call->task_failed_cause = msg->task_failed_cause;
}

void hf_out_answer(hf_share *share, const hf_pb_owner_answer *msg)
{
    hf_errand_out *out = find_wire(share, msg->number);
    hf_op op;
    hf_op_init(&op);
    if (out == NULL) {
        return; /* its caller has given up */
    }
    if (msg->has_more || out->answer.len > 0) {
        hf_buf_put(&out->answer, msg->response.data, msg->response.len);
    }
    if (msg->has_more) {
        return;
    }
    if (msg->status != HF_OK) {
        take_failure(out->call, msg);
        finish(out);
        return;
    }
    hf_str bytes = out->answer.len > 0 ? hf_str_of_len(out->answer.data, out->answer.len) : msg->response;
    hf_status status = hf_buf_status(&out->answer);
    status = status == HF_OK ? take_response(&op, out->call, bytes) : hf_fail(&op, status, "it is too large");
    if (status == HF_OK) {
        finish(out);
    } else {
        send_cancel(share, msg->number, true);
        fail(out, status, "the answer of the program that has %s open cannot be used: %s", share->path, op.message);
    }
}

/* ---- With the engine in this process --------------------------------------------------------------------------------------------- */

static void inner_done(hf_call *inner)
{
    hf_errand_out *out = HF_CONTAINER(inner, hf_errand_out, inner);
    hf_share *share = out->share;
    hf_call *call = out->call;
    call->status = inner->status;
    call->response = inner->response;
    call->detail_type = inner->detail_type;
    call->detail = inner->detail;
    call->is_final = inner->is_final;
    call->words = inner->words;
    call->retry_after = inner->retry_after;
    call->existing_run_id = inner->existing_run_id;
    call->task_failed_cause = inner->task_failed_cause;
    if (inner->status != HF_OK) {
        memcpy(call->message, inner->message, sizeof call->message);
    }
    hf_spin_lock(&share->lock);
    take_out(share, call);
    call->parked = NULL;
    bool is_last = --out->refs == 0;
    hf_spin_unlock(&share->lock);
    if (is_last) {
        release(out);
    }
    call->done(call);
}

/* The call has its number, and `out` is known to cancels. From any thread. */
static void go_inside(hf_service *local, hf_errand_out *out)
{
    hf_share *share = out->share;
    const hf_call *call = out->call;
    hf_call_init(&out->inner, call->method, call->request, call->arena, inner_done);
    out->inner.verb = call->verb;
    out->inner.workflow_id = call->workflow_id;
    out->inner.timeout = call->timeout;
    out->inner.in_process = call->in_process;
    out->inner.run_ahead = call->run_ahead;
    out->inner.lets_go = call->lets_go;
    out->inner.replays = call->replays;
    hf_service_submit(local, &out->inner); /* the call may be done by now, but not `out`: it has a second reference */
    hf_spin_lock(&share->lock);
    out->is_submitted = true;
    bool is_last = --out->refs == 0;
    bool tell = out->is_canceled && !is_last;
    uint64_t number = out->inner.number;
    if (tell) {
        hf_guest_enter(&local->guests);
    }
    hf_spin_unlock(&share->lock);
    if (is_last) {
        release(out);
    }
    if (tell) {
        local->ops->cancel(local, number);
        hf_guest_leave(share->env, &local->guests);
    }
}

void hf_out_hand_over(hf_share *share)
{
    hf_node *node = NULL;
    hf_assert(share->local != NULL); /* open-S3 */
    while ((node = hf_list_first(&share->out)) != NULL) {
        hf_errand_out *out = HF_CONTAINER(node, hf_errand_out, node);
        unlink_out(out);
        hf_spin_lock(&share->lock);
        if (hf_node_is_linked(&out->call->all)) { /* its cancel was not taken yet */
            hf_list_remove(&out->call->all);
            out->is_canceled = true;
        }
        out->is_local = true;
        out->refs = 2;
        hf_spin_unlock(&share->lock);
        go_inside(share->local, out);
    }
}

/* ---- The service ------------------------------------------------------------------------------------------------------------------- */

static void refuse(hf_call *call, hf_status status, const char *why)
{
    hf_call_set_failure(call, status, why);
    call->done(call);
}

static void share_submit(hf_service *service, hf_call *call)
{
    hf_share *share = share_of(service);
    hf_errand_out *inside = NULL;
    bool ring = false;
    if (hf_method_grpc_service(call->method) == NULL) {
        refuse(call, HF_ERR_UNSUPPORTED, "this method is not for callers from outside");
        return;
    }
    call->parked = NULL;
    hf_spin_lock(&share->lock);
    bool is_local = share->local != NULL;
    hf_spin_unlock(&share->lock);
    if (is_local && (inside = new_out(share, call)) == NULL) {
        refuse(call, HF_ERR_NOMEM, "no memory for a call");
        return;
    }
    hf_spin_lock(&share->lock);
    hf_service *local = share->local; /* it does not go once it is there: open-S3 */
    bool is_closed = share->is_closing;
    bool is_full = share->call_count >= HF_SHARE_CALLS_HERE_MAX;
    if (!is_closed && !is_full) {
        call->number = ++share->number_last;
        share->call_count++;
        hf_list_push_back(&share->buckets[call->number % HF_SHARE_BUCKETS], &call->by_number);
        if (inside != NULL) {
            inside->is_local = true;
            inside->refs = 2;
            call->parked = inside;
        } else {
            hf_list_push_back(&share->inbox,
                              &call->link); /* also if an engine has come since: the thread hands it over */
            ring = hf_share_wants_ring(share);
        }
    }
    hf_spin_unlock(&share->lock); /* from here on the call may be done */
    if (is_closed || is_full) {
        if (inside != NULL) {
            release(inside);
        }
        refuse(call, is_closed ? HF_ERR_CLOSED : HF_ERR_LIMIT,
               is_closed ? "the service was closed" : "too many calls are under way");
    } else if (inside != NULL) {
        go_inside(local, inside);
    } else if (ring) {
        hf_share_ring(share);
    }
}

static void share_cancel(hf_service *service, uint64_t number)
{
    hf_share *share = share_of(service);
    hf_service *local = NULL;
    uint64_t inner = 0;
    bool ring = false;
    hf_spin_lock(&share->lock);
    HF_LIST_EACH(node, &share->buckets[number % HF_SHARE_BUCKETS])
    {
        hf_call *call = HF_CONTAINER(node, hf_call, by_number);
        hf_errand_out *out = call->parked;
        if (call->number != number) {
            continue;
        }
        if (out != NULL && out->is_local && out->is_submitted) {
            inner = out->inner.number;
            local = share->local;
            hf_guest_enter(&local->guests); /* the call is not done, so the engine is there */
        } else if (out != NULL && out->is_local) {
            out->is_canceled = true; /* its submitter tells the engine */
        } else if (!hf_node_is_linked(&call->all)) {
            hf_list_push_back(&share->canceled, &call->all);
            ring = hf_share_wants_ring(share);
        }
        break;
    }
    hf_spin_unlock(&share->lock);
    if (local != NULL) {
        local->ops->cancel(local, inner);
        hf_guest_leave(share->env, &local->guests);
    } else if (ring) {
        hf_share_ring(share);
    }
}

static void share_unwanted(hf_service *service, hf_str token)
{
    hf_share *share = share_of(service);
    hf_spin_lock(&share->lock);
    hf_service *local = share->local;
    hf_spin_unlock(&share->lock);
    if (local != NULL) {
        local->ops->unwanted(local, token);
        return;
    }
    /* Without memory for it the task's timeout does the same, later. */
    hf_share_token *item = share->memory.allocate(share->memory.state, sizeof *item + token.len, 0);
    if (item == NULL) {
        return;
    }
    *item = (hf_share_token){.len = token.len};
    memcpy(item + 1, token.data, token.len);
    hf_spin_lock(&share->lock);
    hf_list_push_back(&share->tokens, &item->node);
    bool ring = hf_share_wants_ring(share);
    hf_spin_unlock(&share->lock);
    if (ring) {
        hf_share_ring(share);
    }
}

/* Whoever opened it stops and frees it. */
static hf_status share_close(hf_op *op, hf_service *service)
{
    (void)service;
    return hf_fail(op, HF_ERR_MISUSE, "a shared service is closed by the one who opened it");
}

const hf_service_ops hf_share_ops = {share_submit, share_cancel, share_unwanted, share_close, NULL};
