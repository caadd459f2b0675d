/* A call, from the inbox to its `done`.
 *
 *              begin                     room on the line
 *                |                              |
 *                v                              v
 *            WAITING --------------------->   SENT ----> finish: answered, refused for good, or not to be repeated
 *                ^                              |
 *                |  end of the pause            | refused for now, and it may be repeated
 *              PAUSED <-------------------------+
 *                ^
 *                +-- lost with its line: back to WAITING at once, if it may be repeated (remote-R2) */
#include "remote/remote_private.h"

#include "base/canary.h"
#include "fiber/enter.h"
#include "service/grpc_path.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Time -------------------------------------------------------------------------------------------------------------- */

static void set_alarm(hf_remote_ask *ask, int64_t at_ns)
{
    hf_remote *remote = ask->remote;
    if (at_ns == INT64_MAX) {
        hf_heap_remove(&remote->alarms, &ask->alarm);
    } else if (hf_heap_set(&remote->alarms, &ask->alarm, at_ns) != HF_OK) {
        ask->alarm.key = at_ns; /* without memory for it the call has no bound of its own: its connection has */
    }
    if (at_ns < remote->armed_ns) {
        hf_remote_ring(remote);
    }
}

/* ---- The end ----------------------------------------------------------------------------------------------------------- */

void hf_attempt_free(hf_attempt *attempt)
{
    hf_line *line = attempt->line;
    hf_allocator memory = line->remote->memory;
    hf_assert(attempt->ask == NULL); /* remote-R4 */
    hf_assert(line->attempt_count > 0 && line->in_len >= attempt->in.len);
    line->in_len -= attempt->in.len;
    line->attempt_count--;
    hf_list_remove(&attempt->node);
    hf_buf_deinit(&attempt->in);
    hf_buf_deinit(&attempt->message);
    hf_buf_deinit(&attempt->details);
    memory.release(memory.state, attempt, sizeof *attempt);
}

/* The ask lets go of its attempt, whose answer does not matter any more. */
static void give_up_attempt(hf_remote_ask *ask)
{
    hf_attempt *attempt = ask->attempt;
    if (attempt != NULL) {
        hf_assert(attempt->ask == ask); /* remote-R4 */
        attempt->ask = NULL;
        ask->attempt = NULL;
        hf_h2_reset(attempt->line->h2, &attempt->h2, HF_H2_CANCEL);
    }
}

void hf_ask_finish(hf_remote_ask *ask)
{
    hf_remote *remote = ask->remote;
    hf_call *call = ask->call;
    hf_assert(ask->attempt == NULL); /* remote-R4 */
    hf_heap_remove(&remote->alarms, &ask->alarm);
    if (hf_node_is_linked(&ask->wait_node)) {
        hf_list_remove(&ask->wait_node);
    }
    hf_list_remove(&ask->node);
    remote->memory.release(remote->memory.state, ask, sizeof *ask);

    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&remote->lock);
    hf_assert(hf_node_is_linked(&call->by_number) && remote->call_count > 0); /* remote-R3 */
    hf_list_remove(&call->by_number);
    if (hf_node_is_linked(&call->all)) {
        hf_list_remove(&call->all);
    }
    remote->call_count--;
    hf_spin_unlock(&remote->lock);
    call->done(call);
    hf_leave(self);
}

void hf_ask_fail(hf_remote_ask *ask, hf_status status, const char *format, ...)
{
    char text[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    give_up_attempt(ask);
    hf_call_set_failure(ask->call, status, text);
    hf_ask_finish(ask);
}

/* ---- Waiting, again and again ---------------------------------------------------------------------------------------------- */

static void wait_for_line(hf_remote_ask *ask)
{
    hf_assert(ask->attempt == NULL && !hf_node_is_linked(&ask->wait_node)); /* remote-R4 */
    ask->state = HF_ASK_WAITING;
    hf_list_push_back(&ask->remote->waiting, &ask->wait_node);
    set_alarm(ask, ask->until_ns);
}

void hf_ask_begin(hf_remote *remote, hf_call *call)
{
    hf_remote_ask *ask = remote->memory.allocate(remote->memory.state, sizeof *ask, 0);
    if (ask == NULL) {
        hf_fiber *self = hf_enter(NULL);
        hf_spin_lock(&remote->lock);
        hf_list_remove(&call->by_number);
        if (hf_node_is_linked(&call->all)) {
            hf_list_remove(&call->all);
        }
        remote->call_count--;
        hf_spin_unlock(&remote->lock);
        hf_call_set_failure(call, HF_ERR_NOMEM, "no memory for a call");
        call->done(call);
        hf_leave(self);
        return;
    }
    hf_assert(call->parked == NULL && call->done != NULL);
    *ask = (hf_remote_ask){.remote = remote, .call = call, .manner = hf_manner_of(call)};
    ask->until_ns = hf_manner_patience_until(&ask->manner, call, hf_remote_now(remote));
    call->parked = ask;
    hf_list_push_back(&remote->asks, &ask->node);
    wait_for_line(ask);
}

void hf_ask_cancel(hf_remote_ask *ask)
{
    hf_ask_fail(ask, HF_ERR_CANCELED, "the caller was canceled");
}

static void fail_unreachable(hf_remote_ask *ask)
{
    const hf_remote *remote = ask->remote;
    hf_ask_fail(ask, HF_ERR_UNAVAILABLE, "cannot reach %s: %s", remote->name,
                remote->why[0] != '\0' ? remote->why : "the connection is not open yet");
}

/* remote-R2 */
static bool may_repeat(const hf_remote_ask *ask)
{
    return ask->manner.repeat != HF_REPEAT_NEVER || HF_CANARY(HF_BUG_SENT_TWICE);
}

void hf_ask_ring(hf_remote_ask *ask)
{
    const hf_remote *remote = ask->remote;
    int64_t now = hf_remote_now(remote);
    switch (ask->state) {
    case HF_ASK_WAITING:
        fail_unreachable(ask);
        break;
    case HF_ASK_PAUSED:
        wait_for_line(ask);
        break;
    case HF_ASK_SENT:
        hf_assert(ask->attempt != NULL); /* remote-R4 */
        if (may_repeat(ask) && now < ask->until_ns) {
            give_up_attempt(ask);
            wait_for_line(ask);
        } else {
            hf_ask_fail(ask, ask->manner.is_wait ? HF_ERR_TIMEOUT : HF_ERR_UNAVAILABLE,
                        may_repeat(ask) ? "%s did not answer in time"
                                        : "%s did not answer in time: whether it has done it is not known",
                        remote->name);
        }
        break;
    }
}

void hf_ask_refused(hf_remote_ask *ask, int first_ms)
{
    hf_remote *remote = ask->remote;
    int64_t now = hf_remote_now(remote);
    int64_t at = hf_later(now, hf_remote_pause(remote, ask->failures++, first_ms));
    hf_assert(ask->attempt == NULL && ask->call->status != HF_OK);
    if (!may_repeat(ask) || at >= ask->until_ns) {
        hf_ask_finish(ask);
        return;
    }
    ask->state = HF_ASK_PAUSED;
    set_alarm(ask, at);
}

void hf_attempt_lost(hf_attempt *attempt, bool is_unsent)
{
    hf_remote_ask *ask = attempt->ask;
    hf_remote *remote = attempt->line->remote;
    attempt->ask = NULL;
    hf_attempt_free(attempt);
    if (ask == NULL) {
        return;
    }
    hf_assert(ask->state == HF_ASK_SENT && ask->attempt == attempt); /* remote-R4 */
    ask->attempt = NULL;
    if (HF_CANARY(HF_BUG_ANSWER_LOST) && ask->call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED) {
        static hf_pb_respond_activity_task_completed_response nothing;
        ask->call->response = &nothing;
        hf_ask_finish(ask);
        return;
    }
    if (!(is_unsent || HF_CANARY(HF_BUG_TAKEN_FOR_UNSENT)) && !may_repeat(ask)) {
        hf_ask_fail(ask, HF_ERR_UNAVAILABLE,
                    "the connection to %s was lost before the answer came: whether it has done it is not known",
                    remote->name);
    } else if (hf_remote_now(remote) >= ask->until_ns) {
        fail_unreachable(ask);
    } else {
        wait_for_line(ask);
    }
}

/* ---- Sending --------------------------------------------------------------------------------------------------------------- */

/* Puts the request into the body of the stream, in a frame. */
static hf_status put_request(hf_op *op, hf_remote_ask *ask, hf_attempt *attempt, bool *ret_gzip)
{
    hf_remote *remote = ask->remote;
    hf_buf *out = &attempt->h2.out;
    hf_buf packed;
    unsigned char head[HF_GRPC_HEAD_LEN] = {0};
    *ret_gzip = false;
    hf_buf_init(&packed, remote->memory, SIZE_MAX / 2);
    hf_buf_put(out, head, sizeof head);
    hf_pb_encode(hf_method_info_of(ask->call->method)->request_type, ask->call->request, out);
    if (hf_buf_status(out) != HF_OK) {
        return hf_fail(op, hf_buf_status(out), "the request is too large, or there is no memory for it");
    }
    size_t len = out->len - sizeof head;
    if (len >= HF_REMOTE_GZIP_FROM && !remote->is_plain &&
        hf_gzip(op, hf_str_of_len(out->data + sizeof head, len), &packed) == HF_OK && packed.len < len) {
        out->len = sizeof head;
        hf_buf_put(out, packed.data, packed.len);
        *ret_gzip = true;
    }
    hf_buf_deinit(&packed);
    hf_assert(out->len >= sizeof head && out->len - sizeof head <= UINT32_MAX); /* HF_REMOTE_REQUEST_LEN_MAX */
    hf_grpc_head(head, *ret_gzip, (uint32_t)(out->len - sizeof head));
    memcpy(out->data, head, sizeof head);
    return HF_OK;
}

static hf_status put_head(hf_op *op, hf_remote_ask *ask, hf_attempt *attempt, bool is_gzip)
{
    hf_remote *remote = ask->remote;
    const hf_method_info *info = hf_method_info_of(ask->call->method);
    char path[160];
    char timeout[HF_GRPC_TIMEOUT_LEN];
    hf_str namespace_ = {0};
    hf_h2_field fields[16];
    size_t count = 0;
    int path_len = snprintf(path, sizeof path, "/%s/%s", hf_method_grpc_service(ask->call->method), info->name);
    hf_assert(path_len > 0 && (size_t)path_len < sizeof path);
    fields[count++] = (hf_h2_field){HF_STR(":method"), HF_STR("POST")};
    fields[count++] = (hf_h2_field){HF_STR(":scheme"), remote->tls != NULL ? HF_STR("https") : HF_STR("http")};
    fields[count++] = (hf_h2_field){HF_STR(":path"), hf_str_of(path)};
    fields[count++] = (hf_h2_field){HF_STR(":authority"), hf_str_of(remote->name)};
    fields[count++] = (hf_h2_field){HF_STR("content-type"), HF_STR("application/grpc")};
    fields[count++] = (hf_h2_field){HF_STR("te"), HF_STR("trailers")};
    fields[count++] = (hf_h2_field){HF_STR("user-agent"), HF_STR("holdfast-c/" HF_VERSION_TEXT)};
    fields[count++] = (hf_h2_field){HF_STR("client-name"), HF_STR("holdfast-c")};
    fields[count++] = (hf_h2_field){HF_STR("client-version"), HF_STR(HF_VERSION_TEXT)};
    fields[count++] = (hf_h2_field){HF_STR("grpc-accept-encoding"), HF_STR("gzip")};
    if (is_gzip) {
        fields[count++] = (hf_h2_field){HF_STR("grpc-encoding"), HF_STR("gzip")};
    }
    if (hf_request_text(info->request_type, ask->call->request, "namespace", &namespace_) && namespace_.len > 0) {
        fields[count++] = (hf_h2_field){HF_STR("temporal-namespace"), namespace_};
    }
    int64_t span = hf_manner_attempt_span(&ask->manner, ask->call);
    if (span != INT64_MAX) {
        hf_grpc_timeout_format(hf_nanoseconds(span), timeout);
        fields[count++] = (hf_h2_field){HF_STR("grpc-timeout"), hf_str_of(timeout)};
    }
    if (remote->bearer.len > 0) {
        fields[count++] = (hf_h2_field){HF_STR("authorization"), remote->bearer}; /* remote-R5 */
    }
    hf_assert(count <= HF_COUNT_OF(fields));
    return hf_h2_request(op, attempt->line->h2, &attempt->h2, fields, count, false);
}

static hf_status send_now(hf_op *op, hf_remote_ask *ask, hf_attempt *attempt)
{
    bool is_gzip = false;
    hf_buf body;
    hf_buf_init(&attempt->h2.out, ask->remote->memory, HF_REMOTE_REQUEST_LEN_MAX);
    hf_status status = put_request(op, ask, attempt, &is_gzip);
    body = attempt->h2.out; /* the session makes a buffer of its own */
    attempt->h2.out = (hf_buf){0};
    status = status == HF_OK ? put_head(op, ask, attempt, is_gzip) : status;
    if (status != HF_OK) {
        hf_buf_deinit(&body);
        return status;
    }
    hf_buf_deinit(&attempt->h2.out);
    attempt->h2.out = body;
    hf_h2_put(attempt->line->h2, &attempt->h2, body.len);
    hf_h2_end(attempt->line->h2, &attempt->h2, NULL, 0);
    return HF_OK;
}

void hf_ask_send(hf_remote_ask *ask, hf_line *line)
{
    hf_remote *remote = ask->remote;
    hf_op op;
    hf_op_init(&op);
    hf_assert(ask->state == HF_ASK_WAITING && ask->attempt == NULL); /* remote-R4 */
    hf_attempt *attempt = remote->memory.allocate(remote->memory.state, sizeof *attempt, 0);
    if (attempt == NULL) {
        hf_ask_fail(ask, HF_ERR_NOMEM, "no memory to send a call");
        return;
    }
    *attempt = (hf_attempt){.line = line, .code = -1};
    hf_buf_init(&attempt->in, remote->memory, HF_REMOTE_ANSWER_LEN_MAX + HF_GRPC_HEAD_LEN);
    hf_buf_init(&attempt->message, remote->memory, HF_H2_HEADERS_LEN_MAX);
    hf_buf_init(&attempt->details, remote->memory, HF_H2_HEADERS_LEN_MAX);
    hf_list_push_back(&line->attempts, &attempt->node);
    line->attempt_count++;
    hf_list_remove(&ask->wait_node);
    hf_status status = send_now(&op, ask, attempt);
    if (status != HF_OK) {
        hf_attempt_free(attempt);
        if (status == HF_ERR_CLOSED) { /* no more streams: the next line has some */
            wait_for_line(ask);
            line->is_open = false;
        } else {
            hf_ask_fail(ask, status, "%s", op.message);
        }
        return;
    }
    ask->state = HF_ASK_SENT;
    ask->attempt = attempt;
    attempt->ask = ask;
    int64_t span = hf_manner_attempt_span(&ask->manner, ask->call);
    int64_t now = hf_remote_now(remote);
    /* The server's own answer should come first. */
    set_alarm(ask, span == INT64_MAX ? INT64_MAX : hf_later(now, hf_later(span, HF_SECOND_NS)));
}
