/* holdfast show FILE: the runs in it, newest first.
 *
 *     ID        TYPE   STATE      STARTED               LAST EVENT         RUN
 *     order-2   order  Running    2026-11-16T07:25:52Z  15, 3.214 s ago    0f41...
 *     ... and 1203 more: --all lists them
 *
 * A run that cannot be read is listed as DAMAGED (exit code 1).
 *
 * The runs are read page by page, from a file at rest or from its owner. */
#include "main/grid.h"
#include "main/target.h"

#include "base/json.h"
#include "wire/time_text.h"

#include <stdio.h>

enum { LIST_MAX = 50 };

static const hf_column COLUMNS[] = {{"ID", 24, 8},      {"TYPE", 16, 6},        {"STATE", 14, 9},
                                    {"STARTED", 21, 0}, {"LAST EVENT", 24, 12}, {"RUN", 36, 0}};

typedef struct listing {
    const hf_tool_args *args;
    int64_t now_ns;
    uint64_t listed;
    uint64_t more;    /* runs that are not listed */
    uint64_t damaged; /* listed runs that are damaged */
    hf_buf text;      /* one line, or all of the JSON */
    hf_grid table;    /* of lines */
    hf_json writer;
} listing;

/* ---- For people --------------------------------------------------------------------------------------------------------- */

static const char *state_of(const hf_pb_admin_run *run)
{
    const char *state = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, run->status);
    return state != NULL ? state : "Unknown";
}

static void put_time(hf_grid *table, int64_t ns)
{
    char at[HF_TIME_TEXT_LEN_MAX] = "";
    int64_t seconds = ns / 1000000000; /* people do not need fractions of a second */
    (void)hf_timestamp_format(hf_pb_timestamp_of((hf_time){seconds * 1000000000}), at);
    hf_grid_cell(table, hf_str_of(at), HF_TONE_PLAIN);
}

static void put_last_event(hf_grid *table, const hf_pb_admin_run *run, int64_t now_ns)
{
    hf_buf text;
    hf_buf_init(&text, table->out->memory, SIZE_MAX / 4);
    hf_buf_putf(&text, "%lld, ", (long long)run->events);
    hf_put_span(&text, now_ns - run->last_ns);
    hf_buf_puts(&text, " ago");
    hf_grid_cell_of(table, &text, HF_TONE_PLAIN);
}

/* Only the number of a damaged run is known. */
static void put_damaged(hf_grid *table, const hf_pb_admin_run *run)
{
    char name[32];
    (void)snprintf(name, sizeof name, "(run %lld)", (long long)run->number);
    hf_grid_cell(table, hf_str_of(name), HF_TONE_PLAIN);
    hf_grid_cell(table, HF_STR(""), HF_TONE_PLAIN);
    hf_grid_cell(table, HF_STR("DAMAGED"), HF_TONE_BAD);
    (void)hf_put_text(table->out, run->damage, SIZE_MAX);
}

static void put_known(hf_grid *table, const hf_pb_admin_run *run, int64_t now_ns)
{
    hf_grid_cell(table, run->workflow_id, HF_TONE_PLAIN);
    hf_grid_cell(table, run->type, HF_TONE_PLAIN);
    hf_grid_cell(table, hf_str_of(state_of(run)), hf_tone_of_status(run->status));
    put_time(table, run->start_ns);
    put_last_event(table, run, now_ns);
    hf_grid_cell(table, run->run_id, HF_TONE_DIM);
    hf_str namespace_ = run->namespace;
    if (!hf_str_equal(namespace_, HF_STR("default"))) {
        hf_buf_puts(table->out, "  --namespace ");
        (void)hf_put_text(table->out, namespace_, SIZE_MAX);
    }
}

static void put_line(hf_grid *table, const hf_pb_admin_run *run, int64_t now_ns)
{
    if (run->damage.len > 0) {
        put_damaged(table, run);
    } else {
        put_known(table, run, now_ns);
    }
    hf_grid_end(table);
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

static void put_object(hf_json *writer, const hf_pb_admin_run *run)
{
    hf_json_object(writer);
    if (run->damage.len > 0) {
        hf_json_key_int(writer, "number", run->number);
        key_text(writer, "damage", run->damage);
        hf_json_end(writer);
        return;
    }
    key_text(writer, "namespace", run->namespace);
    key_text(writer, "workflowId", run->workflow_id);
    key_text(writer, "runId", run->run_id);
    key_text(writer, "type", run->type);
    hf_json_key_string(writer, "state", state_of(run));
    key_time(writer, "startTime", run->start_ns);
    key_time(writer, "closeTime", run->close_ns);
    key_time(writer, "lastEventTime", run->last_ns);
    hf_json_key_int(writer, "events", run->events);
    hf_json_end(writer);
}

/* ---- The list ----------------------------------------------------------------------------------------------------------- */

static void show(listing *l, const hf_pb_admin_run *run)
{
    if (l->args->json) {
        put_object(&l->writer, run);
    } else {
        l->text.len = 0;
        if (l->listed == 0) {
            hf_grid_title(&l->table);
        }
        put_line(&l->table, run, l->now_ns);
        (void)fputs(hf_buf_text(&l->text), stdout);
    }
    l->listed++;
    l->damaged += run->damage.len > 0 ? 1 : 0;
}

/* ---- Pages -------------------------------------------------------------------------------------------------------------- */

/* Where pages come from: if `look` is NULL, from the owner. */
typedef struct shelf {
    hf_look *look;
    hf_tool_source *owned;
} shelf;

static hf_status page_of_file(hf_op *op, hf_look *look, int64_t before, size_t count_max, hf_arena *arena,
                              hf_pb_admin_runs *ret_page)
{
    if (before == INT64_MAX) {
        HF_TRY(hf_look_count(op, look, &ret_page->total));
    }
    return hf_look_page(op, look, before, count_max, arena, &ret_page->runs);
}

static void keep_bytes(void *state, hf_str kind, hf_str chunk)
{
    if (kind.len > 0) {
        hf_buf_put(state, chunk.data, chunk.len);
    }
}

hf_status hf_owner_page(hf_op *op, const char *path, int64_t before, size_t count_max, hf_arena *arena,
                        hf_pb_admin_runs *ret_page)
{
    hf_env *env = hf_env_posix();
    char numbers[2][24];
    const char *words[] = {numbers[0], numbers[1]};
    (void)snprintf(numbers[0], sizeof numbers[0], "%lld", (long long)before);
    (void)snprintf(numbers[1], sizeof numbers[1], "%zu", count_max);
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(env), SIZE_MAX / 4);
    hf_status status = hf_admin_ask(op, env, path, "list", words, 2, keep_bytes, &bytes);
    if (status == HF_OK) {
        hf_str copy = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.len));
        status = hf_pb_decode(op, &hf_pb_admin_runs_type, copy, arena, ret_page);
    }
    hf_buf_deinit(&bytes);
    return status;
}

/* Shows or counts the run, unless it is of another namespace. The namespace of a damaged run is unknown: it always
 * counts. */
static void consider(listing *l, const hf_pb_admin_run *run)
{
    bool is_meant =
        !l->args->has_namespace || run->damage.len > 0 || hf_str_equal(run->namespace, hf_str_of(l->args->namespace_));
    if (is_meant && (l->args->all || l->listed < LIST_MAX)) {
        show(l, run);
    } else if (is_meant) {
        l->more++;
    }
}

/* With --namespace every run has to be read. Without, the runs after the last one that is shown are only counted. */
static hf_status list(hf_op *op, const shelf *from, listing *l)
{
    bool is_brief = !l->args->all && !l->args->has_namespace;
    size_t count_max = is_brief ? LIST_MAX : HF_ADMIN_LIST_MAX;
    uint64_t total = 0;
    int64_t before = INT64_MAX;
    bool goes_on = true;
    hf_status status = HF_OK;
    hf_arena arena;
    hf_arena_init(&arena, l->text.memory);
    while (status == HF_OK && goes_on) {
        hf_pb_admin_runs page = {0};
        hf_arena_reset(&arena);
        status = from->look != NULL ? page_of_file(op, from->look, before, count_max, &arena, &page)
                                    : hf_owner_page(op, from->owned->path, before, count_max, &arena, &page);
        for (size_t i = 0; status == HF_OK && i < page.runs.count; i++) {
            consider(l, &page.runs.items[i]);
            before = page.runs.items[i].number;
        }
        total = page.total > total ? page.total : total;
        goes_on = page.runs.count > 0 && !(is_brief && l->listed >= LIST_MAX);
    }
    hf_arena_deinit(&arena);
    if (is_brief) {
        l->more = total > l->listed ? total - l->listed : 0;
    }
    HF_TRY(status);
    return l->text.status == HF_OK ? HF_OK : hf_fail(op, l->text.status, "no memory for the list");
}

static void end_list(listing *l)
{
    if (l->args->json) {
        hf_json_end(&l->writer);
        hf_json_key_uint(&l->writer, "more", l->more);
        hf_json_end(&l->writer);
        (void)printf("%s\n", hf_buf_text(&l->text));
    } else if (l->listed == 0) {
        (void)printf("%s: no runs%s%s\n", l->args->words[0], l->args->has_namespace ? " in the namespace " : "",
                     l->args->has_namespace ? l->args->namespace_ : "");
    } else if (l->more > 0) {
        (void)printf("... and %llu more: --all lists them\n", (unsigned long long)l->more);
    }
}

int hf_list_runs(const hf_tool_args *args)
{
    hf_tool_source source;
    const char *word = args->words[0];
    const char *colon = strncmp(word, "sqlite:", 7) == 0 || strncmp(word, "owner:", 6) == 0 ? strchr(word, ':') : NULL;
    int code = hf_source_open(&source, colon != NULL ? colon + 1 : word);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    listing l = {.args = args, .now_ns = source.env->ops->wall_now(source.env).ns};
    hf_buf_init(&l.text, hf_env_memory(source.env), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    hf_grid_init(&l.table, COLUMNS, HF_COUNT_OF(COLUMNS), hf_screen_width(), &l.text);
    if (args->json) {
        hf_json_object(&l.writer);
        hf_json_key(&l.writer, "runs");
        hf_json_array(&l.writer);
    }
    hf_op op;
    hf_op_init(&op);
    shelf from = {.owned = &source};
    hf_status status =
        source.is_owned ? HF_OK : hf_look_open(&op, hf_env_memory(source.env), source.peek.store, &from.look);
    status = status == HF_OK ? list(&op, &from, &l) : status;
    if (status == HF_OK) {
        end_list(&l);
    }
    hf_look_close(from.look);
    hf_buf_deinit(&l.text);
    hf_source_close(&source);
    if (status != HF_OK) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    }
    return l.damaged == 0 ? HF_EXIT_FINE : HF_EXIT_DAMAGED;
}
