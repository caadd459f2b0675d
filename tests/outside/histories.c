/* Reads recorded histories (histories.sh) and puts each through a list of checks:
 *     histories <file.bin or file.json>...
 * A file passes when every check says so. A new check is a function and a line in CHECKS. */
#include "engine/core_private.h"
#include "history/history.h"
#include "history/pb_json_read.h"
#include "wire/pb_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LEN_MAX (64u << 20)

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

/* A history, as the checks see it. */
typedef struct recorded {
    const char *name;      /* of the file, without folders */
    hf_str bytes;          /* the encoded History */
    hf_pb_history history; /* decoded; borrows from `bytes` */
    hf_arena *arena;       /* lives as long as the file is looked at */
    hf_op *op;             /* for failures */
} recorded;

typedef struct check {
    const char *name;
    bool (*run)(recorded *r); /* false: failed; the op may hold a sentence */
} check;

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

static bool comes_back_byte_by_byte(recorded *r)
{
    hf_buf buf;
    hf_buf_init(&buf, HEAP, FILE_LEN_MAX);
    hf_pb_encode(&hf_pb_history_type, &r->history, &buf);
    bool ok = hf_str_equal(hf_str_of_len(buf.data, buf.len), r->bytes);
    buf.len = 0;
    for (size_t i = 0; i < r->history.events.count; i++) {
        hf_pb_encode_field(1, &hf_pb_history_event_type, &r->history.events.items[i], &buf);
    }
    ok = ok && hf_str_equal(hf_str_of_len(buf.data, buf.len), r->bytes);
    hf_buf_deinit(&buf);
    return ok;
}

static bool has_no_unknown_fields(recorded *r)
{
    hf_pb_history copy;
    if (hf_pb_copy(&hf_pb_history_type, &r->history, r->arena, &copy) != HF_OK) {
        return false;
    }
    bool ok = hf_pb_equal(&hf_pb_history_type, &r->history, &copy) && r->history.unknown.len == 0;
    for (size_t i = 0; i < copy.events.count; i++) {
        ok = ok && copy.events.items[i].unknown.len == 0;
    }
    return ok;
}

static bool comes_back_from_json(recorded *r)
{
    hf_buf text;
    hf_buf bytes;
    hf_buf_init(&text, HEAP, FILE_LEN_MAX);
    hf_buf_init(&bytes, HEAP, FILE_LEN_MAX);
    bool ok = hf_history_to_json(r->op, r->bytes, false, &text) == HF_OK &&
              hf_history_from_json(r->op, hf_str_of_len(text.data, text.len), r->arena, &bytes) == HF_OK &&
              hf_str_equal(hf_str_of_len(bytes.data, bytes.len), r->bytes);
    hf_buf_deinit(&text);
    hf_buf_deinit(&bytes);
    return ok;
}

static bool has_dense_event_ids(recorded *r)
{
    for (size_t i = 0; i < r->history.events.count; i++) {
        if (r->history.events.items[i].event_id != (int64_t)i + 1) {
            return false;
        }
    }
    return r->history.events.count > 0;
}

static size_t counted_only; /* events of kinds that no machine has a meaning for */
static size_t cuts;         /* places where a history was cut */

/* The engine makes a run of it: every event can follow the one before. */
static bool can_be_rebuilt(recorded *r)
{
    hf_core_options options = {.memory = HEAP};
    hf_core *core = hf_core_new(&options);
    hf_run *run = NULL;
    bool ok = core != NULL && hf_rebuild(r->op, &core->runs_memory, r->bytes, &run) == HF_OK;
    if (ok) {
        hf_run_check(run);
        ok = run->event_count == (int64_t)r->history.events.count && run->history_len == (int64_t)r->bytes.len;
        hf_run_free(&core->runs_memory, run);
    }
    hf_core_free(core);
    for (size_t i = 0; ok && i < r->history.events.count; i++) {
        counted_only += hf_event_has_meaning(r->history.events.items[i].event_type) ? 0 : 1;
    }
    return ok;
}

static hf_status apply_all(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str events)
{
    hf_effects effects;
    hf_effects_init(&effects);
    hf_apply a = {.op = op, .memory = memory, .effects = &effects, .is_history = true};
    hf_pb_raw field;
    hf_status status = HF_OK;
    while (status == HF_OK && events.len > 0 && hf_pb_next(&events, &field)) {
        hf_arena_reset(memory->scratch);
        status = hf_apply_change(&a, run, &field);
        hf_effects_clear(memory, &effects);
    }
    hf_effects_deinit(memory, &effects);
    return status;
}

/* What no history holds. */
static void name_it(hf_run_memory *memory, hf_run *run)
{
    run->number = 1;
    hf_owned_set(memory, &run->namespace, HF_STR("default"));
    hf_owned_set(memory, &run->workflow_id, HF_STR("wf"));
    hf_owned_set(memory, &run->run_id, HF_STR("00000000-0000-4000-8000-000000000001"));
}

/* A run that was rebuilt from the first events becomes its row, is read again and goes on with the rest: it is then the run of the whole
 * history. */
static bool goes_on_after(recorded *r, hf_core *core, size_t cut, hf_str whole)
{
    hf_run_memory *memory = &core->runs_memory;
    hf_run *first = NULL;
    hf_run *second = hf_run_new(memory, 1);
    hf_buf row, state;
    hf_buf_init(&row, HEAP, FILE_LEN_MAX);
    hf_buf_init(&state, HEAP, FILE_LEN_MAX);
    hf_str head = hf_str_of_len(r->bytes.data, cut);
    hf_str tail = hf_str_of_len(r->bytes.data + cut, r->bytes.len - cut);
    bool ok = second != NULL && hf_rebuild(r->op, memory, head, &first) == HF_OK;
    if (ok) {
        hf_run_check(first);
        name_it(memory, first);
        hf_run_encode(memory, first, HF_ENCODE_ALL, HF_STR(""), &row);
        bool wants_parts = false;
        ok = hf_run_decode(r->op, memory, second, hf_str_of_len(row.data, row.len), NULL, &wants_parts) == HF_OK &&
             apply_all(r->op, memory, second, tail) == HF_OK;
    }
    if (ok) {
        hf_run_check(second);
        hf_run_encode(memory, second, HF_ENCODE_TOLD, HF_STR(""), &state);
        ok = memory->status == HF_OK && hf_str_equal(hf_str_of_len(state.data, state.len), whole);
    }
    if (first != NULL) {
        hf_run_free(memory, first);
    }
    if (second != NULL) {
        hf_run_free(memory, second);
    }
    hf_buf_deinit(&row);
    hf_buf_deinit(&state);
    return ok;
}

static bool is_of_task(int32_t type)
{
    return type >= HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED && type <= HF_EVENT_TYPE_WORKFLOW_TASK_FAILED;
}

/* Cut behind every event of a workflow task. */
static bool can_be_cut(recorded *r)
{
    hf_core_options options = {.memory = HEAP};
    hf_core *core = hf_core_new(&options);
    hf_run *run = NULL;
    hf_buf whole;
    hf_buf_init(&whole, HEAP, FILE_LEN_MAX);
    bool ok = core != NULL && hf_rebuild(r->op, &core->runs_memory, r->bytes, &run) == HF_OK;
    if (ok) {
        name_it(&core->runs_memory, run);
        hf_run_encode(&core->runs_memory, run, HF_ENCODE_TOLD, HF_STR(""), &whole);
        hf_run_free(&core->runs_memory, run);
    }
    hf_str rest = r->bytes;
    hf_pb_raw field;
    for (size_t i = 0; ok && rest.len > 0 && hf_pb_next(&rest, &field); i++) {
        if (is_of_task(r->history.events.items[i].event_type)) {
            cuts++;
            ok = goes_on_after(r, core, r->bytes.len - rest.len, hf_str_of_len(whole.data, whole.len));
        }
    }
    hf_buf_deinit(&whole);
    hf_core_free(core);
    return ok;
}

static const check CHECKS[] = {
    {"byte by byte", comes_back_byte_by_byte},
    {"no unknown fields", has_no_unknown_fields},
    {"from JSON", comes_back_from_json},
    {"dense ids", has_dense_event_ids},
    {"rebuilt", can_be_rebuilt},
    {"cut", can_be_cut},
};

/* ---- Files ----------------------------------------------------------------------------------------------------- */

static hf_str read_whole(const char *path, hf_buf *buf)
{
    FILE *file = fopen(path, "rb");
    char chunk[65536];
    size_t got = 0;
    while (file != NULL && (got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        hf_buf_put(buf, chunk, got);
    }
    if (file == NULL || ferror(file) || hf_buf_status(buf) != HF_OK) {
        fprintf(stderr, "FAILED: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return hf_str_of_len(buf->data, buf->len);
}

static bool load(recorded *r, const char *path, hf_buf *content, hf_buf *bytes)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(path, '.');
    r->name = slash != NULL ? slash + 1 : path;
    r->bytes = read_whole(path, content);
    if (dot != NULL && strcmp(dot, ".json") == 0) {
        if (hf_history_from_json(r->op, r->bytes, r->arena, bytes) != HF_OK) {
            return false;
        }
        r->bytes = hf_str_of_len(bytes->data, bytes->len);
    }
    return hf_pb_decode(r->op, &hf_pb_history_type, r->bytes, r->arena, &r->history) == HF_OK;
}

#define KINDS_MAX 64
static size_t kind_counts[KINDS_MAX];

static bool look_at(const char *path)
{
    hf_op op;
    hf_arena arena;
    hf_buf content;
    hf_buf bytes;
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    hf_buf_init(&content, HEAP, FILE_LEN_MAX);
    hf_buf_init(&bytes, HEAP, FILE_LEN_MAX);
    recorded r = {.arena = &arena, .op = &op};
    bool ok = load(&r, path, &content, &bytes);
    if (!ok) {
        printf("FAILED: %s: %s\n", path, op.message);
    }
    for (size_t i = 0; ok && i < HF_COUNT_OF(CHECKS); i++) {
        hf_op_init(&op);
        ok = CHECKS[i].run(&r);
        if (!ok) {
            printf("FAILED: %s: %s: %s\n", r.name, CHECKS[i].name, op.message);
        }
    }
    for (size_t i = 0; ok && i < r.history.events.count; i++) {
        int32_t type = r.history.events.items[i].event_type;
        kind_counts[type >= 0 && type < KINDS_MAX ? type : 0]++;
    }
    if (ok) {
        printf("%-60s %6zu bytes %5zu events\n", r.name, r.bytes.len, r.history.events.count);
    }
    hf_buf_deinit(&content);
    hf_buf_deinit(&bytes);
    hf_arena_deinit(&arena);
    return ok;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed += !look_at(argv[i]);
    }
    for (int32_t type = 0; type < KINDS_MAX; type++) {
        if (kind_counts[type] > 0) {
            printf("%6zu %s\n", kind_counts[type], hf_event_name(type));
        }
    }
    printf("%zu events were counted only; cut and rebuilt at %zu places\n", counted_only, cuts);
    printf("%d files, %zu checks each, %d failed\n", argc - 1, HF_COUNT_OF(CHECKS), failed);
    return failed > 0 || counted_only > 0 || cuts == 0 || argc < 2;
}
