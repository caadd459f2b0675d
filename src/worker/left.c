/* What a run leaves behind when it ends: signals that nobody took, handlers under way. A log line names them, and the closing
 * event has a sentence about them in its user metadata, which `holdfast show` prints. */
#include "worker/wf.h"

#include "base/json.h"
#include "history/payload.h"
#include "service/witness.h"

/* "approve, reject", and "and more" if there are more than fit. */
static void put_names(hf_buf *text, const hf_insight_names *names, size_t count)
{
    for (int i = 0; i < names->count; i++) {
        hf_buf_puts(text, i > 0 ? ", " : "");
        hf_buf_puts(text, names->items[i]);
    }
    if (count > 0 && names->count == HF_INSIGHT_NAMES_MAX) {
        hf_buf_puts(text, " and maybe others");
    }
}

static size_t name_signals(const hf_wf *wf, hf_insight_names *names)
{
    size_t count = 0;
    if (wf->closing->type == HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION) {
        return 0; /* they go along */
    }
    HF_LIST_EACH(node, &wf->signals)
    {
        const hf_wf_signal *signal = HF_CONTAINER_CONST(node, hf_wf_signal, node);
        hf_insight_add(names, hf_str_of_len(signal->name, signal->name_len));
        count++;
    }
    return count;
}

static size_t name_handlers(const hf_wf *wf, hf_insight_names *names)
{
    size_t count = 0;
    HF_LIST_EACH(node, &wf->handlings)
    {
        const hf_wf_handling *handling = HF_CONTAINER_CONST(node, hf_wf_handling, node);
        if (handling->is_counted && !handling->may_be_left) {
            hf_insight_add(names, hf_str_of(handling->name));
            count++;
        }
    }
    return count;
}

/* The sentence, as JSON text, for the closing event. */
static bool annotate(hf_wf *wf, const hf_buf *text)
{
    hf_arena *arena = &wf->recorder.arena;
    hf_buf json;
    hf_buf_init(&json, wf->worker->memory, 16384);
    hf_json_quote(&json, text->data, text->len);
    hf_pb_user_metadata *metadata = HF_ARENA_NEW(arena, hf_pb_user_metadata);
    hf_pb_payload *details = HF_ARENA_NEW(arena, hf_pb_payload);
    if (json.status == HF_OK && metadata != NULL && details != NULL) {
        *details = hf_payload_json(arena, hf_arena_copy(arena, hf_str_of_len(json.data, json.len)));
        metadata->details = details;
        wf->closing->pb->user_metadata = metadata;
    }
    bool is_done = json.status == HF_OK && arena->status == HF_OK;
    hf_buf_deinit(&json);
    return is_done;
}

hf_status hf_wf_tell_left(hf_op *op, hf_wf *wf)
{
    hf_insight_names signals = {.count = 0};
    hf_insight_names handlers = {.count = 0};
    hf_assert(wf->closing != NULL && wf->closing->pb != NULL);
    size_t signal_count = name_signals(wf, &signals);
    size_t handler_count = name_handlers(wf, &handlers);
    if (signal_count == 0 && handler_count == 0) {
        return HF_OK;
    }
    hf_buf text;
    hf_buf_init(&text, wf->worker->memory, 4096);
    if (signal_count > 0) {
        hf_buf_putf(&text, "%zu %s nobody took: ", signal_count, signal_count == 1 ? "signal that" : "signals that");
        size_t from = text.len;
        put_names(&text, &signals, signal_count);
        if (wf->is_current) {
            hf_log(wf->worker->rt, HF_LOG_WARN, "workflow_ends_over_signals",
                   "workflow=%.*s run=%.*s count=%zu names=%.*s", HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id),
                   signal_count, text.status == HF_OK ? (int)(text.len - from) : 0, text.data + from);
        }
    }
    if (handler_count > 0) {
        hf_buf_putf(&text, "%s%zu %s under way: ", signal_count > 0 ? "; " : "", handler_count,
                    handler_count == 1 ? "handler" : "handlers");
        put_names(&text, &handlers, handler_count);
    }
    bool is_done = text.status == HF_OK && annotate(wf, &text);
    hf_buf_deinit(&text);
    return is_done ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for what the workflow leaves behind");
}
