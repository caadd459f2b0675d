#include "support/engine_stream.h"

#include "history/payload.h"

hf_pb_stream_record_list hf_words_records(hf_arena *arena, const hf_words *w)
{
    const char *text = hf_words_option(w, "publish");
    hf_pb_stream_record_list list = {NULL, 0};
    if (text == NULL) {
        return list;
    }
    size_t size = (size_t)hf_words_number(w, "size", 0);
    list.items = HF_ARENA_ARRAY(arena, hf_pb_stream_record, strlen(text) + 1);
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "+");
        char *data = hf_arena_zero(arena, len + size + 1, 1);
        memcpy(data, at, len);
        memset(data + len, '.', size);
        hf_pb_payload *payload = HF_ARENA_NEW(arena, hf_pb_payload);
        *payload = hf_payload_bytes(arena, hf_str_of_len(data, len + size));
        list.items[list.count++] = (hf_pb_stream_record){.type = HF_STR("t"), .payload = payload};
        at += at[len] == '+' ? len + 1 : len;
    }
    return list;
}

static char cursor[64]; /* of the last answer about changes */
static size_t cursor_len;

static hf_rig_call *ask_changes(hf_rig *rig, const hf_words *w, hf_rig_call *slot)
{
    hf_pb_read_changes_request *request = HF_RIG_REQUEST(slot, read_changes);
    request->namespace = hf_arena_copy(&slot->request, hf_words_str(w, "ns", HF_RIG_NS));
    request->cursor = hf_arena_copy(&slot->request, hf_str_of_len(cursor, cursor_len));
    request->maximum_page_size = hf_words_number(w, "max", 0);
    request->wait_new_change = hf_words_has(w, "wait");
    hf_rig_send(rig, slot, HF_METHOD_READ_CHANGES, request);
    const hf_pb_read_changes_response *response = slot->call.response;
    if (slot->done && slot->call.status == HF_OK) {
        cursor_len = response->cursor.len <= sizeof cursor ? response->cursor.len : 0;
        memcpy(cursor, response->cursor.data, cursor_len);
    }
    return slot;
}

static hf_rig_call *ask_queues(hf_rig *rig, const hf_words *w, hf_rig_call *slot)
{
    hf_pb_list_task_queues_request *request = HF_RIG_REQUEST(slot, list_task_queues);
    request->namespace = hf_arena_copy(&slot->request, hf_words_str(w, "ns", HF_RIG_NS));
    request->page_size = hf_words_number(w, "page", 0);
    hf_rig_send(rig, slot, HF_METHOD_LIST_TASK_QUEUES, request);
    return slot;
}

hf_rig_call *hf_rig_stream(hf_rig *rig, const hf_words *w)
{
    const char *named = hf_words_option(w, "as");
    if (strcmp(w->items[0], "changes") == 0) {
        return ask_changes(rig, w, hf_rig_slot(rig, named != NULL ? named : "c"));
    }
    if (strcmp(w->items[0], "queues") == 0) {
        return ask_queues(rig, w, hf_rig_slot(rig, named != NULL ? named : "tq"));
    }
    if (strcmp(w->items[0], "stream") != 0) {
        return NULL;
    }
    const char *as = hf_words_option(w, "as");
    hf_rig_call *slot = hf_rig_slot(rig, as != NULL ? as : "s");
    hf_pb_read_stream_request *request = HF_RIG_REQUEST(slot, read_stream);
    hf_arena *arena = &slot->request;
    request->namespace = hf_arena_copy(arena, hf_words_str(w, "ns", HF_RIG_NS));
    request->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
    request->execution->run_id = hf_arena_copy(arena, hf_words_str(w, "run_id", ""));
    request->from = hf_words_number(w, "from", 0);
    request->maximum_page_size = hf_words_number(w, "max", 0);
    request->maximum_page_bytes = hf_words_number(w, "bytes", 0);
    request->wait_new_record = hf_words_has(w, "wait");
    slot->call.timeout.ns = hf_words_option(w, "timeout") != NULL ? hf_rig_span(hf_words_option(w, "timeout")) : 0;
    hf_rig_send(rig, slot, HF_METHOD_READ_STREAM, request);
    return slot;
}

bool hf_rig_stream_text(const hf_rig_call *slot, hf_buf *out)
{
    if (slot->call.method != HF_METHOD_READ_STREAM || !slot->done || slot->call.status != HF_OK) {
        return false;
    }
    const hf_pb_read_stream_response *response = slot->call.response;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_stream_records page = {.records = {NULL, 0}};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_pb_decode(&op, &hf_pb_stream_records_type, response->records, &arena, &page), HF_OK);
    for (size_t i = 0; i < page.records.count; i++) {
        const hf_pb_stream_record *record = &page.records.items[i];
        const char *end = memchr(record->payload->data.data, '.', record->payload->data.len);
        size_t len = end != NULL ? (size_t)(end - record->payload->data.data) : record->payload->data.len;
        hf_buf_putf(out, "%s%lld:%.*s", i > 0 ? "+" : "", (long long)record->sequence, (int)len,
                    record->payload->data.data);
        assert_true(record->time.has && record->event_id > 0 && hf_str_equal(record->type, HF_STR("t")));
    }
    hf_buf_putf(out, "/%lld%s%s", (long long)response->next, response->is_end ? "." : "", response->is_gap ? "!" : "");
    assert_true(response->run_id.len > 0);
    hf_arena_deinit(&arena);
    return true;
}
