/* What a run leaves when it ends: signals that nobody took, and handlers that are under way. Signals go along to the next run,
 * if there is one. Otherwise the log names them, and so does the summary of the event that closes the run, which `holdfast
 * show` prints: a signal whose name is spelled differently is not lost silently (N12). */
#include "worker/wf.h"

#include "base/json.h"
#include "history/payload.h"

enum { NAMES_MAX = 8, NAMES_LEN_MAX = 400 };

hf_status hf_wf_settle_signals(hf_op *op, hf_wf *wf)
{
    hf_arena *arena = &wf->recorder.arena;
    const hf_command_record *closing = wf->closing;
    if (hf_list_is_empty(&wf->signals) || closing->type != HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION) {
        return HF_OK;
    }
    hf_pb_header *header = HF_ARENA_NEW(arena, hf_pb_header);
    const hf_pb_header *own = closing->pb->continue_as_new_workflow_execution_command_attributes->header;
    size_t count = own != NULL ? own->fields.count : 0;
    hf_pb_header_fields_entry *fields = HF_ARENA_ARRAY(arena, hf_pb_header_fields_entry, count + 1);
    hf_pb_payload *value = HF_ARENA_NEW(arena, hf_pb_payload);
    hf_str bytes = hf_wf_encode_signals(wf, arena);
    if (bytes.len == 0 || arena->status != HF_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the signals of the next run");
    }
    value->data = bytes;
    for (size_t i = 0; i < count; i++) {
        fields[i] = own->fields.items[i];
    }
    hf_assert(closing->pb->continue_as_new_workflow_execution_command_attributes != NULL);
    fields[count] = (hf_pb_header_fields_entry){.key = HF_STR(HF_WF_SIGNALS_HEADER), .value = value};
    header->fields.items = fields;
    header->fields.count = count + 1;
    closing->pb->continue_as_new_workflow_execution_command_attributes->header = header;
    return HF_OK;
}

/* Adds a name to a list, or to the count of those that are not named. */
static void add_name(hf_buf *names, int *count, hf_str name)
{
    if (*count < NAMES_MAX && names->len + name.len + 2 < NAMES_LEN_MAX) {
        hf_buf_putf(names, "%s%.*s", *count == 0 ? "" : ", ", HF_STR_ARGS(name));
    }
    ++*count;
}

static int name_signals(const hf_wf *wf, hf_buf *names)
{
    int count = 0;
    HF_LIST_EACH(node, &wf->signals)
    {
        const hf_wf_signal *signal = HF_CONTAINER_CONST(node, hf_wf_signal, node);
        add_name(names, &count, hf_str_of_len(signal->name, signal->name_len));
    }
    return count;
}

static int name_handlers(const hf_wf *wf, hf_buf *names)
{
    int count = 0;
    HF_LIST_EACH(node, &wf->handlings)
    {
        const hf_wf_handling *handling = HF_CONTAINER_CONST(node, hf_wf_handling, node);
        if (!handling->may_be_left) {
            add_name(names, &count, hf_str_of(handling->name));
        }
    }
    return count;
}

/* Says it once, in the log and for the summary. */
static void tell(const hf_wf *wf, const char *event, const char *what, int count, const hf_buf *names, hf_buf *summary)
{
    if (count == 0 || names->status != HF_OK) {
        return;
    }
    hf_log(wf->worker->rt, HF_LOG_WARN, event, "workflow=%.*s run=%.*s count=%d names=%.*s", HF_STR_ARGS(wf->id),
           HF_STR_ARGS(wf->run_id), count, (int)names->len, names->data);
    hf_buf_putf(summary, "%s%d %s%s: %.*s%s", summary->len == 0 ? "it ended over " : ", and over ", count, what,
                count == 1 ? "" : "s", (int)names->len, names->data, count > NAMES_MAX ? ", ..." : "");
}

static void set_summary(hf_wf *wf, const hf_buf *text)
{
    hf_arena *arena = &wf->recorder.arena;
    hf_pb_user_metadata *tagged = wf->closing->pb->user_metadata; /* graph.c: its details stay */
    hf_pb_user_metadata *metadata = tagged != NULL ? tagged : HF_ARENA_NEW(arena, hf_pb_user_metadata);
    hf_pb_payload *summary = HF_ARENA_NEW(arena, hf_pb_payload);
    hf_buf quoted;
    hf_buf_init(&quoted, wf->worker->memory, 4 * NAMES_LEN_MAX * 6);
    hf_json_quote(&quoted, text->data, text->len);
    if (metadata != NULL && summary != NULL && quoted.status == HF_OK) { /* else only the log has it */
        *summary = hf_payload_json(arena, hf_arena_copy(arena, hf_str_of_len(quoted.data, quoted.len)));
        metadata->summary = summary;
        wf->closing->pb->user_metadata = metadata;
    }
    hf_buf_deinit(&quoted);
}

void hf_wf_name_leftovers(hf_wf *wf)
{
    hf_assert(wf->closing != NULL);
    bool continues = wf->closing->type == HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
    bool has_signals = !continues && !hf_list_is_empty(&wf->signals);
    if (HF_LIKELY(!has_signals && hf_list_is_empty(&wf->handlings)) || !wf->is_current) {
        return;
    }
    hf_buf signals;
    hf_buf handlers;
    hf_buf summary;
    hf_buf_init(&signals, wf->worker->memory, 2 * NAMES_LEN_MAX);
    hf_buf_init(&handlers, wf->worker->memory, 2 * NAMES_LEN_MAX);
    hf_buf_init(&summary, wf->worker->memory, 4 * NAMES_LEN_MAX);
    int signal_count = has_signals ? name_signals(wf, &signals) : 0;
    int handler_count = name_handlers(wf, &handlers);
    hf_assert(signal_count >= (int)has_signals);
    tell(wf, "workflow_ends_over_signals", "signal", signal_count, &signals, &summary);
    tell(wf, "workflow_ends_over_handlers", "handler", handler_count, &handlers, &summary);
    if (summary.len > 0 && summary.status == HF_OK) {
        set_summary(wf, &summary);
    }
    hf_buf_deinit(&summary);
    hf_buf_deinit(&handlers);
    hf_buf_deinit(&signals);
}
