/* holdfast stream FILE ID: the records that a workflow and its activities have published.
 *
 *     0  2026-11-17T12:00:00.103Z  progress  {"percent": 10}
 *
 * From a file at rest, from the program that has it open, or from a server. With --json each record is a line of JSON. With --follow it goes
 * on until the workflow has ended. */
#include "main/target.h"

#include "base/json.h"
#include "history/history.h"
#include "history/payload.h"
#include "inspect/stream.h"
#include "wire/pb_json.h"
#include "wire/time_text.h"

#include <holdfast/stream.h>

#include <stdio.h>
#include <stdlib.h>

#define PAGE_LEN ((size_t)1 << 20)

static hf_status put_record(const hf_tool_args *args, const hf_pb_stream_record *record, hf_buf *out)
{
    out->len = 0;
    if (args->json) {
        HF_TRY(hf_pb_json_write_more(&hf_pb_stream_record_type, record, out, hf_history_put_readable));
        hf_buf_putc(out, '\n');
        return out->status;
    }
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    (void)hf_timestamp_format(record->time, at);
    hf_buf_putf(out, "%lld  %s  ", (long long)record->sequence, at);
    (void)hf_put_text(out, record->type.len > 0 ? record->type : HF_STR("-"), SIZE_MAX);
    hf_buf_puts(out, "  ");
    (void)hf_put_text(out, record->payload != NULL ? record->payload->data : HF_STR(""), SIZE_MAX);
    hf_buf_putc(out, '\n');
    return out->status;
}

static hf_status put_page(hf_op *op, const hf_tool_args *args, const hf_buf *bytes, hf_arena *arena, hf_buf *line)
{
    hf_pb_stream_records page = {.records = {NULL, 0}};
    HF_TRY(hf_pb_decode(op, &hf_pb_stream_records_type, hf_str_of_len(bytes->data, bytes->len), arena, &page));
    for (size_t i = 0; i < page.records.count; i++) {
        hf_status status = put_record(args, &page.records.items[i], line);
        if (status != HF_OK) {
            return hf_fail(op, status, "record %lld cannot be shown", (long long)page.records.items[i].sequence);
        }
        (void)fwrite(line->data, 1, line->len, stdout);
    }
    return HF_OK;
}

static hf_status put_all(hf_op *op, const hf_tool_args *args, hf_look *look, hf_allocator memory, int64_t from)
{
    int64_t number = 0;
    HF_TRY(hf_look_find(op, look, hf_str_of(args->namespace_), hf_str_of(args->words[1]), &number));
    hf_buf page;
    hf_buf line;
    hf_arena arena;
    hf_buf_init(&page, memory, SIZE_MAX / 4);
    hf_buf_init(&line, memory, SIZE_MAX / 4);
    hf_arena_init(&arena, memory);
    bool is_end = false;
    hf_status status = HF_OK;
    while (status == HF_OK && !is_end) {
        int64_t next = from;
        page.len = 0;
        hf_arena_reset(&arena);
        status = hf_look_stream(op, look, number, from, PAGE_LEN, &page, &next, &is_end);
        status = status == HF_OK ? put_page(op, args, &page, &arena, &line) : status;
        if (status == HF_OK && !is_end && page.len == 0) {
            (void)hf_complain(0, "records %lld to %lld were deleted with their runs", (long long)from,
                              (long long)next - 1);
        }
        from = next;
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&line);
    hf_buf_deinit(&page);
    return status;
}

/* ---- As its owner or a server tells it --------------------------------------------------------------------------------------- */

typedef struct hearing {
    const hf_tool_args *args;
    hf_buf line;
    int64_t next; /* the record that comes, if none is missing */
    hf_status status;
} hearing;

static bool hear(void *arg, const hf_stream_record *heard)
{
    hearing *h = arg;
    const char *encoding = heard->value.encoding != NULL ? heard->value.encoding : "";
    hf_pb_payload_metadata_entry meta = {.key = HF_STR("encoding"), .value = hf_str_of(encoding)};
    hf_pb_payload payload = {.metadata = {&meta, 1}, .data = hf_str_of_len(heard->value.data, heard->value.len)};
    hf_pb_stream_record record = {
        .sequence = heard->sequence,
        .time = hf_pb_timestamp_of(heard->time),
        .type = hf_str_of(heard->type),
        .payload = &payload,
    };
    if (heard->sequence > h->next) {
        (void)hf_complain(0, "records %lld to %lld were deleted with their runs", (long long)h->next,
                          (long long)heard->sequence - 1);
    }
    h->next = heard->sequence + 1;
    h->status = put_record(h->args, &record, &h->line);
    (void)fwrite(h->line.data, 1, h->line.len, stdout);
    if (h->args->follow) {
        (void)fflush(stdout);
    }
    return h->status == HF_OK;
}

static int hear_all(hf_tool_target *target, const hf_tool_args *args, int64_t from)
{
    hearing h = {.args = args, .next = from};
    hf_execution *execution = NULL;
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&h.line, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_status status = hf_execution_new(target->service, args->words[1], &execution, .namespace_ = args->namespace_);
    if (status == HF_OK) {
        status = hf_stream_read(execution, &from, hear, &h, .timeout = hf_nanoseconds(args->follow ? 0 : -1));
        status = status == HF_ERR_TIMEOUT ? HF_OK : status; /* all that is there */
    }
    code = h.status != HF_OK ? hf_complain(HF_EXIT_DAMAGED, "record %lld cannot be shown", (long long)h.next - 1)
                             : hf_told(status);
    hf_execution_free(execution);
    hf_buf_deinit(&h.line);
    return hf_target_close(target, code);
}

int hf_cmd_stream(const hf_tool_args *args)
{
    char *end = NULL;
    long long from = args->from != NULL ? strtoll(args->from, &end, 10) : 0;
    if (from < 0 || (args->from != NULL && (end == args->from || *end != '\0'))) {
        return hf_complain(HF_EXIT_USAGE, "--from %s is not the number of a record: they begin with 0", args->from);
    }
    hf_tool_target target;
    hf_tool_source source;
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind != HF_TARGET_REST) {
        return hear_all(&target, args, from);
    }
    code = code == HF_EXIT_FINE ? hf_source_open_still(&source, target.path) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_status status = hf_look_open(&op, hf_env_memory(source.env), source.peek.store, &look);
    if (status == HF_OK) {
        status = put_all(&op, args, look, hf_env_memory(source.env), from);
    }
    hf_look_close(look);
    hf_source_close(&source);
    if (status == HF_ERR_NOT_FOUND) {
        return hf_complain(HF_EXIT_NOT_FOUND, "there is no workflow '%s' in the namespace '%s'", args->words[1],
                           args->namespace_);
    }
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op.message);
}
