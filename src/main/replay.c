/* holdfast replay: recorded histories against the code of a plugin, before that code meets runs that are under way. The histories are files of
 * JSON (holdfast db export, or Temporal's), a folder of them, or the runs of a database that are open. */
#include "trial/replay.h"
#include "main/author.h"
#include "main/report.h"

#include "history/pb_json_read.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tally {
    const char *plugin;
    bool is_verbose;
    bool is_json;
    hf_report report; /* of --json */
    int same;
    int differ;
    int unknown; /* the plugin does not have their type */
    int ended;   /* runs of a database that have ended, and were left out: no code goes on with them */
    bool is_all; /* they are replayed, too */
    int bad;     /* cannot be read, or not be replayed */
} tally;

static hf_status add(void *state, hf_worker *worker)
{
    hf_op op;
    hf_op_init(&op);
    const tally *t = state;
    return hf_plugin_load(&op, t->plugin, worker) == HF_OK ? HF_OK : hf_raise(op.status, "%s", op.message);
}

static void put_json(hf_json *writer, const char *name, const hf_replay_result *result)
{
    hf_json_object(writer);
    hf_json_key_string(writer, "name", name);
    hf_json_key_string(writer, "type", result->type);
    hf_json_key_uint(writer, "events", result->event_count);
    hf_json_key_string(writer, "outcome", !result->is_known ? "unknown" : result->is_same ? "same" : "differs");
    hf_json_key_string(writer, "why", result->is_known && !result->is_same ? result->why : "");
    hf_json_end(writer);
}

/* False: the plugin is refused, and no other history will do better. */
static bool replay(tally *t, const char *name, hf_str bytes)
{
    hf_replay_result result;
    if (hf_replay(bytes, add, t, &result) != HF_OK) {
        t->bad++;
        (void)hf_complain(0, "%s: %s", name, hf_error_text());
        return hf_error()->status == HF_ERR_INVALID && result.event_count == 0; /* it was the history */
    }
    t->same += result.is_known && result.is_same;
    t->differ += result.is_known && !result.is_same;
    t->unknown += !result.is_known;
    if (t->is_json) {
        put_json(&t->report.writer, name, &result);
    } else if (result.is_known && !result.is_same) {
        (void)printf("%s: %s differs: %s\n", name, result.type, result.why);
    } else if (t->is_verbose) {
        (void)printf("%s: %s, %zu events: %s\n", name, result.type, result.event_count,
                     result.is_known ? "the same" : "the plugin does not have this workflow");
    }
    hf_progress("%d histories", t->same + t->differ + t->unknown + t->bad);
    return true;
}

/* ---- Files ---------------------------------------------------------------------------------------------------------------------- */

static bool read_file(const char *path, hf_buf *text)
{
    char piece[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t len = 0;
    if (file == NULL) {
        return false;
    }
    while ((len = fread(piece, 1, sizeof piece, file)) > 0) {
        hf_buf_put(text, piece, len);
    }
    bool is_read = ferror(file) == 0 && hf_buf_status(text) == HF_OK;
    (void)fclose(file);
    return is_read;
}

static bool replay_text(tally *t, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf text;
    hf_buf bytes;
    hf_arena arena;
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_buf_init(&text, memory, SIZE_MAX / 4);
    hf_buf_init(&bytes, memory, SIZE_MAX / 4);
    hf_arena_init(&arena, memory);
    bool goes_on = true;
    if (!read_file(path, &text)) {
        t->bad++;
        (void)hf_complain(0, "%s cannot be read: %s", path, strerror(errno));
    } else if (hf_history_from_json(&op, hf_str_of_len(text.data, text.len), &arena, &bytes) != HF_OK) {
        t->bad++;
        (void)hf_complain(0, "%s is not a history: %s", path, op.message);
    } else {
        goes_on = replay(t, path, hf_str_of_len(bytes.data, bytes.len));
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&bytes);
    hf_buf_deinit(&text);
    return goes_on;
}

static int is_history(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

static int replay_folder(tally *t, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_history, alphasort);
    bool goes_on = true;
    for (int i = 0; i < count; i++) {
        char path[HF_PATH_LEN_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        goes_on = goes_on && replay_text(t, path);
        free(entries[i]);
    }
    free(entries);
    if (count < 0) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "%s: %s", folder, strerror(errno));
    }
    return count > 0 ? HF_EXIT_FINE : hf_complain(HF_EXIT_CANNOT_OPEN, "%s has no histories (*.json)", folder);
}

/* ---- A database --------------------------------------------------------------------------------------------------------------------- */

static hf_status replay_run(hf_op *op, tally *t, hf_look *look, int64_t number, bool *ret_goes_on)
{
    hf_buf history;
    hf_arena arena;
    hf_str namespace_ = {0};
    char name[HF_PATH_LEN_MAX];
    hf_pb_describe_workflow_execution_response shown;
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_buf_init(&history, memory, SIZE_MAX / 4);
    hf_arena_init(&arena, memory);
    hf_status status = hf_look_describe(op, look, number, &arena, &history, &namespace_, &shown);
    if (status == HF_OK) {
        const hf_pb_workflow_execution *run = shown.workflow_execution_info->execution;
        bool is_open = shown.workflow_execution_info->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
        t->ended += !is_open && !t->is_all;
        (void)snprintf(name, sizeof name, "%.*s (run %.*s)", HF_STR_ARGS(run->workflow_id), HF_STR_ARGS(run->run_id));
        *ret_goes_on = (!is_open && !t->is_all) || replay(t, name, hf_str_of_len(history.data, history.len));
    } else if (status == HF_ERR_INVALID) {
        t->bad++; /* a damaged run: the others are replayed */
        (void)hf_complain(0, "run %lld: %s", (long long)number, op->message);
        hf_op_init(op);
        status = HF_OK;
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&history);
    return status;
}

static int replay_database(tally *t, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_tool_source source;
    hf_look *look = NULL;
    int code = hf_source_open_still(&source, path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_look_open(&op, hf_env_memory(source.env), source.peek.store, &look);
    int64_t number = 0;
    bool goes_on = true;
    while (status == HF_OK && goes_on && (status = hf_look_next(&op, look, number, &number)) == HF_OK && number != 0) {
        status = replay_run(&op, t, look, number, &goes_on);
    }
    hf_look_close(look);
    hf_source_close(&source);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_CANNOT_OPEN, "%s", op.message);
}

/* ---- The command -------------------------------------------------------------------------------------------------------------------- */

/* What all of them have come to. */
static int tell(tally *t, bool is_replayed, int code)
{
    hf_json *writer = &t->report.writer;
    if (is_replayed && !t->is_json) {
        (void)printf("%d %s replayed: %d the same, %d differ", t->same + t->differ,
                     t->same + t->differ == 1 ? "history" : "histories", t->same, t->differ);
        if (t->unknown > 0) {
            (void)printf("; %d of workflows that the plugin does not have", t->unknown);
        }
        (void)printf(t->ended > 0 ? "; %d ended %s left out: --all replays those, too\n" : "\n", t->ended,
                     t->ended == 1 ? "run was" : "runs were");
    }
    hf_json_end(writer);
    hf_json_key_int(writer, "same", t->same);
    hf_json_key_int(writer, "differ", t->differ);
    hf_json_key_int(writer, "unknown", t->unknown);
    hf_json_key_int(writer, "unreadable", t->bad);
    hf_json_key_int(writer, "ended", t->ended);
    hf_json_end(writer);
    return hf_report_end(&t->report, t->is_json, code);
}

static bool is_database(const char *path)
{
    char head[16] = "";
    FILE *file = fopen(path, "rb");
    size_t len = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    return len == sizeof head && memcmp(head, "SQLite format 3", 16) == 0;
}

int hf_cmd_replay(int argc, char **argv)
{
    const char *what = NULL;
    int words = 0;
    tally t = {.plugin = NULL};
    struct stat facts;
    const hf_author_option options[] = {{"--plugin", NULL, &t.plugin, NULL},
                                        {"--verbose", &t.is_verbose, NULL, NULL},
                                        {"--all", &t.is_all, NULL, NULL},
                                        {"--json", &t.is_json, NULL, NULL},
                                        {NULL, NULL, NULL, NULL}};
    if (!hf_author_parse(argc, argv, options, &what, 1, &words)) {
        return HF_EXIT_USAGE;
    }
    if (words == 0 || t.plugin == NULL) {
        return hf_complain(
            HF_EXIT_USAGE,
            "replay needs histories and a plugin: holdfast replay HISTORY.json|FOLDER|FILE --plugin x.so");
    }
    if (stat(what, &facts) != 0) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "%s: %s", what, strerror(errno));
    }
    int code = HF_EXIT_FINE;
    hf_report_init(&t.report);
    hf_json_object(&t.report.writer);
    hf_json_key(&t.report.writer, "histories");
    hf_json_array(&t.report.writer);
    if (S_ISDIR(facts.st_mode)) {
        code = replay_folder(&t, what);
    } else if (is_database(what)) {
        code = replay_database(&t, what);
    } else {
        (void)replay_text(&t, what);
    }
    hf_progress(NULL);
    bool is_replayed = code == HF_EXIT_FINE;
    if (is_replayed && t.differ > 0) {
        code = HF_EXIT_DAMAGED;
    } else if (is_replayed && (t.bad > 0 || (t.same == 0 && (t.ended == 0 || t.unknown > 0)))) {
        code = HF_EXIT_CANNOT_OPEN;
    }
    return tell(&t, is_replayed, code);
}
