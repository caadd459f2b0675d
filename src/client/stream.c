/* hf_stream_read and hf_history: pages of the service, put together. */
#include "base/env.h"
#include "client/errand.h"
#include "fiber/verbs.h"
#include "history/payload.h"
#include "service/codec.h"
#include "wire/pb_json.h"

#include <holdfast/stream.h>

#include <string.h>

enum { POLL_SECONDS = 20 };

/* ---- hf_stream_read ---------------------------------------------------------------------------------------------------- */

typedef struct reading {
    hf_execution *execution;
    int64_t *cursor;
    hf_stream_visit *visit;
    void *arg;
    char run_id[HF_UUID_LEN]; /* of the run to go on with; "" = the current one */
} reading;

static hf_status show_one(hf_errand *e, const reading *r, const hf_pb_stream_record *record, bool *ret_goes_on)
{
    hf_pb_payload none = {.data = {NULL, 0}};
    hf_pb_payloads list = {.payloads = {record->payload != NULL ? record->payload : &none, record->payload != NULL}};
    hf_stream_record shown = {.sequence = record->sequence, .time = hf_pb_timestamp_time(record->time)};
    shown.type = hf_arena_copy(&e->arena, record->type).data;
    shown.type = record->type.len > 0 ? shown.type : "";
    if (shown.type == NULL || hf_payload_decode(&list, NULL, &shown.value) != HF_OK) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "hf_stream_read: no memory for a record");
    }
    *r->cursor = record->sequence + 1;
    *ret_goes_on = r->visit(r->arg, &shown);
    hf_payload_free(&shown.value);
    return HF_OK;
}

static hf_status show(hf_errand *e, const reading *r, hf_str bytes, bool *ret_goes_on)
{
    const hf_codec *codec = r->execution->service->codec;
    hf_pb_stream_records page = {.records = {NULL, 0}};
    HF_TRY(hf_pb_decode(&e->op, &hf_pb_stream_records_type, bytes, &e->arena, &page));
    HF_TRY(hf_codec_decode(&e->op, codec, &hf_pb_stream_records_type, &page, &e->arena, false));
    for (size_t i = 0; i < page.records.count && *ret_goes_on; i++) {
        if (page.records.items[i].sequence < *r->cursor) { /* engine-T1 */
            return hf_fail(&e->op, HF_ERR_INVALID, "hf_stream_read: record %lld came again: the server is at fault",
                           (long long)page.records.items[i].sequence);
        }
        HF_TRY(show_one(e, r, &page.records.items[i], ret_goes_on));
    }
    return HF_OK;
}

/* One page. `*ret_goes_on` false: the caller wants no more, or nothing follows. */
static hf_status read_page(hf_errand *e, reading *r, hf_span wait, bool *ret_goes_on, bool *ret_is_empty)
{
    hf_assert(r->execution->id.len > 0 && *ret_goes_on);
    hf_pb_workflow_execution which = {.workflow_id = r->execution->id, .run_id = hf_str_of(r->run_id)};
    hf_pb_read_stream_request request = {
        .namespace = r->execution->namespace_,
        .execution = &which,
        .from = *r->cursor,
        .wait_new_record = wait.ns > 0,
    };
    e->timeout = wait.ns > 0 ? wait : hf_nanoseconds(0);
    HF_TRY(hf_errand_ask(e, r->execution->service, HF_METHOD_READ_STREAM, &request));
    const hf_pb_read_stream_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    if (response->run_id.len > 0 && response->run_id.len < sizeof r->run_id) {
        memcpy(r->run_id, response->run_id.data, response->run_id.len);
        r->run_id[response->run_id.len] = '\0';
    }
    *ret_is_empty = response->records.len == 0 && !response->is_gap;
    HF_TRY(show(e, r, response->records, ret_goes_on));
    if (response->is_gap) {
        *r->cursor = response->next;
    }
    *ret_goes_on = *ret_goes_on && !response->is_end;
    return HF_OK;
}

static hf_status read_all(hf_errand *e, reading *r, int64_t until_ns)
{
    bool goes_on = true;
    while (goes_on) {
        int64_t left = hf_errand_left(until_ns);
        hf_span wait = hf_seconds(POLL_SECONDS);
        wait.ns = left < wait.ns ? left : wait.ns; /* the last look does not wait */
        bool is_empty = false;
        HF_TRY(read_page(e, r, wait, &goes_on, &is_empty));
        if (goes_on && is_empty && left <= 0) {
            return hf_fail(&e->op, HF_ERR_TIMEOUT, "workflow '%s' still runs", r->execution->id.data);
        }
        if (goes_on) {
            hf_errand_again(e);
        }
    }
    return HF_OK;
}

hf_status hf_stream_read_with(hf_execution *execution, int64_t *cursor, hf_stream_visit *visit, void *arg,
                              const hf_wait_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_stream_read));
    HF_OPTIONS(hf_wait_options, options, hf_stream_read);
    if (execution == NULL || cursor == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE,
                        "hf_stream_read needs an execution, a cursor and a function to call for each record");
    }
    reading r = {.execution = execution, .cursor = cursor, .visit = visit, .arg = arg};
    if (execution->run_id.len > 0 && execution->run_id.len < sizeof r.run_id) {
        memcpy(r.run_id, execution->run_id.data, execution->run_id.len);
    }
    int64_t until = hf_errand_until(options->timeout);
    hf_errand e;
    hf_errand_begin(&e, "hf_stream_read", execution->id);
    (void)read_all(&e, &r, until);
    return hf_errand_end(&e);
}

/* ---- hf_changes_read --------------------------------------------------------------------------------------------------- */

static hf_status show_change(hf_errand *e, const hf_pb_run_change *change, hf_changes_visit *visit, void *arg,
                             bool *ret_goes_on)
{
    hf_arena *arena = &e->arena;
    hf_run_change shown = {
        .id = hf_arena_copy(arena, change->execution != NULL ? change->execution->workflow_id : HF_STR("")).data,
        .run_id = hf_arena_copy(arena, change->execution != NULL ? change->execution->run_id : HF_STR("")).data,
        .type = hf_arena_copy(arena, change->workflow_type).data,
        .status = (hf_workflow_status)change->status,
    };
    if (arena->status != HF_OK) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "hf_changes_read: no memory for a run");
    }
    *ret_goes_on = visit(arg, &shown);
    return HF_OK;
}

static hf_status keep_cursor(hf_errand *e, hf_str bytes, hf_payload *cursor)
{
    hf_payload copy = hf_payload_none();
    if (hf_payload_copy(hf_payload_of_bytes(bytes.data, bytes.len), &copy) != HF_OK) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "hf_changes_read: no memory for the cursor");
    }
    hf_payload_free(cursor);
    *cursor = copy;
    return HF_OK;
}

/* One look. `*ret_is_over` false: nothing has changed so far. */
static hf_status look_for_changes(hf_errand *e, hf_service *service, hf_payload *cursor, hf_changes_visit *visit,
                                  void *arg, hf_str namespace_, hf_span wait, bool *ret_is_over)
{
    hf_pb_read_changes_request request = {
        .namespace = namespace_, .cursor = {cursor->data, cursor->len}, .wait_new_change = wait.ns > 0};
    e->timeout = wait.ns > 0 ? wait : hf_nanoseconds(0);
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_READ_CHANGES, &request));
    const hf_pb_read_changes_response *response = e->call.response;
    hf_assert(response != NULL); /* service-V3 */
    HF_TRY(keep_cursor(e, response->cursor, cursor));
    if (response->is_gap) {
        return hf_fail(&e->op, HF_ERR_AGAIN, "changes may be missing: list the workflows again");
    }
    bool goes_on = true;
    for (size_t i = 0; i < response->changes.count && goes_on; i++) {
        HF_TRY(show_change(e, &response->changes.items[i], visit, arg, &goes_on));
    }
    *ret_is_over = response->changes.count > 0;
    return HF_OK;
}

hf_status hf_changes_read_with(hf_service *service, hf_payload *cursor, hf_changes_visit *visit, void *arg,
                               const hf_changes_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_changes_read));
    HF_OPTIONS(hf_changes_options, options, hf_changes_read);
    if (service == NULL || cursor == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_changes_read needs a service, a cursor and a function to call for each run");
    }
    int64_t until = hf_errand_until(options->timeout);
    hf_errand e;
    hf_errand_begin(&e, "hf_changes_read", HF_STR(""));
    hf_status status =
        hf_text_check(&e.op, "hf_changes_read", ".namespace_", options->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX);
    bool is_over = false;
    while (status == HF_OK && !is_over) {
        int64_t left = hf_errand_left(until);
        hf_span wait = hf_seconds(POLL_SECONDS);
        wait.ns = left < wait.ns ? left : wait.ns; /* the last look does not wait */
        status = look_for_changes(&e, service, cursor, visit, arg, hf_namespace_or(options->namespace_, service), wait,
                                  &is_over);
        if (status == HF_OK && !is_over && left <= 0) {
            status = hf_fail(&e.op, HF_ERR_TIMEOUT, "no workflow has changed");
        }
        if (status == HF_OK && !is_over) {
            hf_errand_again(&e);
        }
    }
    return hf_errand_end(&e);
}

/* ---- hf_history -------------------------------------------------------------------------------------------------------- */

/* Appends all pages of the history. */
static hf_status gather(hf_errand *e, const hf_execution *execution, hf_buf *out)
{
    hf_pb_workflow_execution which = {.workflow_id = execution->id, .run_id = execution->run_id};
    hf_pb_get_workflow_execution_history_request request = {.namespace = execution->namespace_, .execution = &which};
    hf_page_token token;
    hf_page_token_init(&token);
    bool goes_on = true;
    while (goes_on &&
           hf_errand_ask(e, execution->service, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request) == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *page = e->call.response;
        hf_buf_put(out, page->history.data, page->history.len);
        if (out->status != HF_OK) {
            (void)hf_fail(&e->op, HF_ERR_NOMEM, "hf_history: no memory for the events");
            break;
        }
        goes_on = hf_page_token_next(e, &token, page->next_page_token, &request.next_page_token);
    }
    hf_page_token_deinit(&token);
    return e->op.status;
}

static hf_status to_json(hf_errand *e, const hf_buf *bytes, hf_buf *out)
{
    hf_pb_history history = {.events = {NULL, 0}};
    HF_TRY(hf_pb_decode(&e->op, &hf_pb_history_type, hf_str_of_len(bytes->data, bytes->len), &e->arena, &history));
    hf_status status = hf_pb_json_write(&hf_pb_history_type, &history, out);
    return status == HF_OK ? HF_OK : hf_fail(&e->op, status, "hf_history: the events cannot be written as JSON");
}

static hf_status history(hf_errand *e, const hf_execution *execution, hf_payload *ret_history, bool as_bytes)
{
    hf_buf bytes;
    hf_buf json;
    hf_buf_init(&bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_buf_init(&json, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_status status = gather(e, execution, &bytes);
    if (status == HF_OK && !as_bytes) {
        status = to_json(e, &bytes, &json);
    }
    const hf_buf *made = as_bytes ? &bytes : &json;
    hf_assert(status != HF_OK || made->status == HF_OK);
    if (status == HF_OK) {
        hf_payload given = hf_payload_of_bytes(hf_buf_text(made), made->len);
        given.encoding = as_bytes ? HF_ENCODING_BYTES_TEXT : HF_ENCODING_JSON_TEXT;
        if (hf_payload_copy(given, ret_history) != HF_OK) {
            status = hf_fail(&e->op, HF_ERR_NOMEM, "hf_history: no memory for the events");
        }
    }
    hf_buf_deinit(&bytes);
    hf_buf_deinit(&json);
    return status;
}

hf_status hf_history_with(hf_execution *execution, hf_payload *ret_history, const hf_history_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_history));
    HF_OPTIONS(hf_history_options, options, hf_history);
    if (execution == NULL || ret_history == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_history needs an execution and a place for the events");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_history", execution->id);
    (void)history(&e, execution, ret_history, options->as_bytes);
    return hf_errand_end(&e);
}
