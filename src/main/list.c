/* holdfast show FILE: the runs in it, newest first.
 *
 *     ID        TYPE   STATE      STARTED               LAST EVENT         RUN
 *     order-2   order  Running    2026-11-16T07:25:52Z  15, 3.214 s ago    0f41...
 *     ... and 1203 more: --all lists them
 *
 * From a file at rest, or from a copy that its owner makes: there is no call that lists. */
#include "main/tool.h"

#include "base/json.h"
#include "wire/time_text.h"

#include <stdio.h>

enum { LIST_MAX = 50, ID_WIDTH = 24, TYPE_WIDTH = 16, STATE_WIDTH = 14, TIME_WIDTH = 21, EVENT_WIDTH = 24 };

typedef struct listing {
    const hf_tool_args *args;
    int64_t now_ns;
    uint64_t listed;
    uint64_t more; /* that are not */
    hf_buf text;   /* of one line, or all of the JSON */
    hf_json writer;
} listing;

/* ---- For people --------------------------------------------------------------------------------------------------------- */

/* In a column, with what would disturb a terminal left out. */
static void put_column(hf_buf *out, hf_str text, size_t width)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        hf_buf_putc(out, byte < 0x20 || byte == 0x7f ? ' ' : (char)byte);
    }
    hf_buf_putf(out, "%*s  ", text.len < width ? (int)(width - text.len) : 0, "");
}

static void put_title(hf_buf *out)
{
    put_column(out, HF_STR("ID"), ID_WIDTH);
    put_column(out, HF_STR("TYPE"), TYPE_WIDTH);
    put_column(out, HF_STR("STATE"), STATE_WIDTH);
    put_column(out, HF_STR("STARTED"), TIME_WIDTH);
    put_column(out, HF_STR("LAST EVENT"), EVENT_WIDTH);
    hf_buf_puts(out, "RUN\n");
}

static const char *state_of(const hf_run *run)
{
    const char *state = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, run->status);
    return state != NULL ? state : "Unknown";
}

static void put_time(hf_buf *out, int64_t ns)
{
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    int64_t seconds = ns / 1000000000; /* a person does not care for less */
    (void)hf_timestamp_format(hf_pb_timestamp_of((hf_time){seconds * 1000000000}), at);
    put_column(out, hf_str_of(at), TIME_WIDTH);
}

static void put_last_event(hf_buf *out, const hf_run *run, int64_t now_ns)
{
    size_t from = out->len;
    hf_buf_putf(out, "%lld, ", (long long)run->event_count);
    hf_put_span(out, now_ns - run->last_time);
    hf_buf_puts(out, " ago");
    size_t len = out->len - from;
    hf_buf_putf(out, "%*s  ", len < EVENT_WIDTH ? (int)(EVENT_WIDTH - len) : 0, "");
}

static void put_line(hf_buf *out, const hf_run *run, int64_t now_ns)
{
    put_column(out, hf_owned_str(&run->workflow_id), ID_WIDTH);
    put_column(out, hf_owned_str(&run->workflow_type), TYPE_WIDTH);
    put_column(out, hf_str_of(state_of(run)), STATE_WIDTH);
    put_time(out, run->start_time);
    put_last_event(out, run, now_ns);
    hf_buf_putf(out, "%.*s", HF_STR_ARGS(hf_owned_str(&run->run_id)));
    hf_str name_space = hf_owned_str(&run->namespace);
    if (!hf_str_equal(name_space, HF_STR("default"))) {
        hf_buf_puts(out, "  --namespace ");
        put_column(out, name_space, 0);
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--;
    }
    hf_buf_putc(out, '\n');
}

/* ---- For programs ------------------------------------------------------------------------------------------------------- */

static void key_text(hf_json *writer, const char *key, hf_str text)
{
    hf_json_key(writer, key);
    hf_json_string_len(writer, text.data, text.len);
}

static void key_time(hf_json *writer, const char *key, int64_t ns)
{
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    (void)hf_timestamp_format(hf_pb_timestamp_of((hf_time){ns}), at);
    hf_json_key_string(writer, key, ns != 0 ? at : NULL);
}

static void put_object(hf_json *writer, const hf_run *run)
{
    hf_json_object(writer);
    key_text(writer, "namespace", hf_owned_str(&run->namespace));
    key_text(writer, "workflowId", hf_owned_str(&run->workflow_id));
    key_text(writer, "runId", hf_owned_str(&run->run_id));
    key_text(writer, "type", hf_owned_str(&run->workflow_type));
    hf_json_key_string(writer, "state", state_of(run));
    key_time(writer, "startTime", run->start_time);
    key_time(writer, "closeTime", run->close_time);
    key_time(writer, "lastEventTime", run->last_time);
    hf_json_key_int(writer, "events", run->event_count);
    hf_json_end(writer);
}

/* ---- The list ----------------------------------------------------------------------------------------------------------- */

static void show(listing *l, const hf_run *run)
{
    if (l->args->json) {
        put_object(&l->writer, run);
    } else {
        l->text.len = 0;
        if (l->listed == 0) {
            put_title(&l->text);
        }
        put_line(&l->text, run, l->now_ns);
        (void)fputs(hf_buf_text(&l->text), stdout);
    }
    l->listed++;
}

/* One run: shown, counted, or of another namespace. */
static hf_status consider(hf_op *op, hf_look *look, int64_t number, listing *l)
{
    hf_run *run = NULL;
    hf_status status = hf_look_run(op, look, number, &run);
    if (status != HF_OK) {
        return status;
    }
    bool is_meant =
        !l->args->has_name_space || hf_str_equal(hf_owned_str(&run->namespace), hf_str_of(l->args->name_space));
    if (is_meant && (l->args->all || l->listed < LIST_MAX)) {
        show(l, run);
    } else if (is_meant) {
        l->more++;
    }
    hf_look_run_free(look, run);
    return l->text.status == HF_OK ? HF_OK : hf_fail(op, l->text.status, "no memory for the list");
}

/* With a namespace every run has to be looked at; else those behind the last one that is shown are only counted. */
static hf_status list(hf_op *op, hf_look *look, listing *l)
{
    int64_t number = INT64_MAX;
    for (;;) {
        HF_TRY(hf_look_before(op, look, number, &number));
        if (number == 0) {
            return HF_OK;
        }
        HF_TRY(consider(op, look, number, l));
        if (!l->args->all && !l->args->has_name_space && l->listed == LIST_MAX) {
            uint64_t count = 0;
            HF_TRY(hf_look_count(op, look, &count));
            l->more = count > l->listed ? count - l->listed : 0;
            return HF_OK;
        }
    }
}

static void end_list(listing *l)
{
    if (l->args->json) {
        hf_json_end(&l->writer);
        hf_json_key_uint(&l->writer, "more", l->more);
        hf_json_end(&l->writer);
        (void)printf("%s\n", hf_buf_text(&l->text));
    } else if (l->listed == 0) {
        (void)printf("%s: no runs%s%s\n", l->args->words[0], l->args->has_name_space ? " in the namespace " : "",
                     l->args->has_name_space ? l->args->name_space : "");
    } else if (l->more > 0) {
        (void)printf("... and %llu more: --all lists them\n", (unsigned long long)l->more);
    }
}

int hf_list_runs(const hf_tool_args *args)
{
    hf_source source;
    int code = hf_source_open_still(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    listing l = {.args = args, .now_ns = source.env->ops->wall_now(source.env).ns};
    hf_buf_init(&l.text, hf_env_memory(source.env), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    if (args->json) {
        hf_json_object(&l.writer);
        hf_json_key(&l.writer, "runs");
        hf_json_array(&l.writer);
    }
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_status status = hf_look_open(&op, hf_env_memory(source.env), source.peek.store, &look);
    status = status == HF_OK ? list(&op, look, &l) : status;
    if (status == HF_OK) {
        end_list(&l);
    }
    hf_look_close(look);
    hf_buf_deinit(&l.text);
    hf_source_close(&source);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
}
