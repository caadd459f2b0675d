/* holdfast db: check, stats, backup. The rest is in keep.c. */
#include "base/glyph.h"
#include "inspect/check.h"
#include "inspect/ended.h"
#include "main/report.h"
#include "main/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- check ------------------------------------------------------------------------------------------------------------ */

typedef struct findings {
    bool json;
    uint64_t pages; /* damages that SQLite itself found */
    hf_buf text;    /* json: the whole output */
    hf_json writer;
} findings;

static void on_found(void *state, const char *sentence)
{
    findings *f = state;
    hf_progress(NULL);
    if (f->json) {
        hf_json_string(&f->writer, sentence);
    } else {
        char text[2 * HF_PATH_LEN_MAX];
        (void)snprintf(text, sizeof text, "%s", sentence);
        hf_text_clean(text); /* the sentence may contain the name of a workflow */
        (void)printf("DAMAGED  %s\n", text);
    }
}

static void on_page(void *state, const char *sentence)
{
    findings *f = state;
    f->pages++;
    on_found(f, sentence);
}

static void on_progress(void *state, const char *what, uint64_t done, uint64_t total)
{
    (void)state;
    if (total > 0) {
        hf_progress("%s: %llu of %llu", what, (unsigned long long)done, (unsigned long long)total);
    } else {
        hf_progress("%s: %llu", what, (unsigned long long)done);
    }
}

static void tell(findings *f, const hf_check_report *report, const char *path, bool deep)
{
    uint64_t damages = report->damages + f->pages;
    hf_progress(NULL);
    if (!f->json) {
        (void)printf("%s: %s. %llu run%s (%llu open), %llu events, %llu records, %llu commits in the journal%s\n", path,
                     damages == 0 ? "sound" : "DAMAGED", (unsigned long long)report->runs, report->runs == 1 ? "" : "s",
                     (unsigned long long)report->open_runs, (unsigned long long)report->events,
                     (unsigned long long)report->records, (unsigned long long)report->commits,
                     deep ? "; every page and event was read" : "");
        return;
    }
    hf_json_end(&f->writer);
    hf_json_key_bool(&f->writer, "sound", damages == 0);
    hf_json_key_uint(&f->writer, "damages", damages);
    hf_json_key_uint(&f->writer, "runs", report->runs);
    hf_json_key_uint(&f->writer, "openRuns", report->open_runs);
    hf_json_key_uint(&f->writer, "events", report->events);
    hf_json_key_uint(&f->writer, "records", report->records);
    hf_json_key_uint(&f->writer, "journalCommits", report->commits);
    hf_json_end(&f->writer);
    (void)printf("%s\n", hf_buf_text(&f->text));
}

static hf_status look(hf_op *op, hf_tool_source *source, bool deep, findings *f, hf_check_report *ret_report)
{
    hf_store *store = source->peek.store;
    if (deep) {
        hf_progress("pages ...");
        HF_TRY(hf_sqlite_integrity(op, store, on_page, f));
    }
    hf_check_options options = {.deep = deep, .found = on_found, .progress = on_progress, .state = f};
    return hf_check_store(op, hf_env_memory(source->env), store, &options, ret_report);
}

int hf_cmd_check(const hf_tool_args *args)
{
    hf_tool_source source;
    int code = hf_source_open_still(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    findings f = {.json = args->json};
    hf_buf_init(&f.text, hf_env_memory(source.env), SIZE_MAX / 4);
    hf_json_init(&f.writer, &f.text);
    hf_json_object(&f.writer);
    hf_json_key_string(&f.writer, "file", args->words[0]);
    hf_json_key(&f.writer, "found");
    hf_json_array(&f.writer);
    hf_check_report report = {0};
    hf_op op;
    hf_op_init(&op);
    hf_status status = look(&op, &source, args->deep, &f, &report);
    if (status != HF_OK) { /* a store that cannot be read is damaged, too */
        on_found(&f, op.message);
        report.damages++;
    }
    tell(&f, &report, args->words[0], args->deep);
    hf_buf_deinit(&f.text);
    hf_source_close(&source);
    return report.damages + f.pages == 0 ? HF_EXIT_FINE : HF_EXIT_DAMAGED;
}

/* ---- stats ------------------------------------------------------------------------------------------------------------ */

/* If a program has the file open, its rows are counted a few at a time while it works: a row that was there all the
 * time is counted once, a row that was added or removed meanwhile may or may not be counted (hf_store_count). All other
 * figures are of the moment of the request. */

typedef struct figure {
    const char *key;   /* in JSON */
    const char *label; /* for people */
    uint64_t value;
    bool is_len;  /* bytes */
    bool is_live; /* only a running engine knows it */
} figure;

static void print_len(uint64_t len)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)len;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < HF_COUNT_OF(UNITS)) {
        value /= 1024;
        unit++;
    }
    (void)printf(unit == 0 ? "%12.0f %s\n" : "%12.1f %s\n", value, UNITS[unit]);
}

static void print_stats(const hf_tool_source *source, const hf_pb_admin_stats *stats, bool json)
{
    const figure FIGURES[] = {
        {"fileBytes", "file", stats->file_bytes, true, false},
        {"freeBytes", "  of that free", stats->free_bytes, true, false},
        {"logBytes", "write-ahead log", stats->log_bytes, true, true},
        {"commits", "commits", stats->commits, false, false},
        {"calls", "calls answered", stats->calls, false, true},
        {"transitions", "transitions", stats->transitions, false, true},
        {"runsInMemory", "runs in memory", stats->runs_in_memory, false, true},
        {"memoryBytes", "memory of the engine", stats->memory_bytes, true, true},
        {"flushes", "flushes", stats->flushes, false, true},
        {"bytesWritten", "written", stats->bytes_written, true, true},
        {"checkpoints", "checkpoints", stats->checkpoints, false, true},
        {"reopened", "engine restarts", stats->reopened, false, true},
        {"endedRuns", "runs that have ended", stats->ended_runs, false, false},
        {"endedBytes", "  they take", stats->ended_bytes, true, false},
        {"expiredRuns", "  retention deletes", stats->expired_runs, false, false},
        {"expiredBytes", "  which frees", stats->expired_bytes, true, false},
    };
    hf_buf text;
    hf_buf_init(&text, hf_env_memory(source->env), SIZE_MAX / 4);
    hf_json writer;
    hf_json_init(&writer, &text);
    hf_json_object(&writer);
    hf_json_key_string(&writer, "file", source->path);
    hf_json_key_int(&writer, "process", source->holder);
    if (!json) {
        (void)printf(source->is_owned ? "%s, open in process %lld\n" : "%s, not open in any program\n", source->path,
                     (long long)source->holder);
    }
    for (size_t i = 0; i < HF_COUNT_OF(FIGURES); i++) {
        const figure *f = &FIGURES[i];
        if (f->is_live && !source->is_owned) {
            continue;
        }
        hf_json_key_uint(&writer, f->key, f->value);
        if (!json) {
            (void)printf("  %-22s", f->label);
            if (f->is_len) {
                print_len(f->value);
            } else {
                (void)printf("%12llu\n", (unsigned long long)f->value);
            }
        }
    }
    hf_json_key(&writer, "rows");
    hf_json_object(&writer);
    for (size_t i = 0; i < stats->rows.count && i < hf_engine_tables.count; i++) {
        const char *name = hf_table_info_of(hf_engine_tables.tables[i])->name;
        hf_json_key_uint(&writer, name, stats->rows.items[i]);
        if (!json) {
            (void)printf("  rows of %-14s%12llu\n", name, (unsigned long long)stats->rows.items[i]);
        }
    }
    hf_json_end(&writer);
    hf_json_end(&writer);
    if (json) {
        (void)printf("%s\n", hf_buf_text(&text));
    }
    hf_buf_deinit(&text);
}

static void keep_bytes(void *state, hf_str kind, hf_str chunk)
{
    if (kind.len > 0) {
        hf_buf_put(state, chunk.data, chunk.len);
    }
}

static int stats_of_owner(hf_tool_source *source, bool json)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf bytes;
    hf_arena arena;
    hf_buf_init(&bytes, hf_env_memory(source->env), SIZE_MAX / 4);
    hf_arena_init(&arena, hf_env_memory(source->env));
    hf_pb_admin_stats stats = {0};
    hf_wait_begin("counting rows", NULL);
    hf_status status = hf_admin_ask(&op, source->env, source->path, "stats", NULL, 0, keep_bytes, &bytes);
    hf_wait_end();
    if (status == HF_OK) {
        status = hf_pb_decode(&op, &hf_pb_admin_stats_type, hf_str_of_len(bytes.data, bytes.len), &arena, &stats);
    }
    if (status == HF_OK) {
        print_stats(source, &stats, json);
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&bytes);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_CANNOT_OPEN, "%s", op.message);
}

static int stats_of_file(hf_tool_source *source, bool json)
{
    hf_store_count count = {0};
    hf_store_request request = {.verb = HF_STORE_STATS, .count = &count};
    do {
        hf_op_init(&request.op);
        hf_store_execute(source->peek.store, &request);
        if (request.status != HF_OK) {
            return hf_complain(HF_EXIT_DAMAGED, "%s", request.op.message);
        }
        if (hf_takes_long()) {
            hf_progress("counting rows ...");
        }
    } while (request.more);
    hf_pb_admin_stats stats = {.commits = source->peek.store->ops->last_commit(source->peek.store)};
    hf_admin_stats_of(&request.stats, &stats);
    hf_op op;
    hf_op_init(&op);
    hf_ended_figures ended;
    hf_allocator memory = hf_env_memory(source->env);
    int64_t now = source->env->ops->wall_now(source->env).ns;
    hf_status status = hf_ended_look(&op, source->peek.store, memory, now, hf_progress_runs, &ended);
    hf_progress(NULL);
    if (status != HF_OK) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    }
    stats.ended_runs = ended.runs;
    stats.ended_bytes = ended.len;
    stats.expired_runs = ended.expired_runs;
    stats.expired_bytes = ended.expired_len;
    print_stats(source, &stats, json);
    return HF_EXIT_FINE;
}

int hf_cmd_stats(const hf_tool_args *args)
{
    hf_tool_source source;
    int code = hf_source_open(&source, args->words[0]);
    if (code == HF_EXIT_FINE) {
        code = source.is_owned ? stats_of_owner(&source, args->json) : stats_of_file(&source, args->json);
        hf_source_close(&source);
    }
    return code;
}

/* ---- backup ----------------------------------------------------------------------------------------------------------- */

static void say_working(void *state, hf_str kind, hf_str chunk)
{
    (void)state;
    (void)kind;
    (void)chunk;
    hf_progress("copying ...");
}

static int backup_of_file(hf_tool_source *source, const char *to)
{
    hf_store_request request = {.verb = HF_STORE_BACKUP, .path = to};
    do {
        hf_op_init(&request.op);
        hf_store_execute(source->peek.store, &request);
        hf_progress("copying ...");
    } while (request.status == HF_OK && request.more);
    return request.status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(request.status), "%s", request.op.message);
}

static int backup_of_owner(hf_tool_source *source, const char *to)
{
    char path[HF_PATH_LEN_MAX];
    char folder[HF_PATH_LEN_MAX] = "";
    if (to[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "cannot read the current directory: %s", strerror(errno));
    }
    int len = snprintf(path, sizeof path, "%s%s%s", folder, to[0] != '/' ? "/" : "", to);
    if (len < 0 || (size_t)len >= sizeof path) {
        return hf_complain(HF_EXIT_USAGE, "the path %s is too long", to);
    }
    hf_op op;
    hf_op_init(&op);
    const char *args[] = {path};
    hf_status status = hf_admin_ask(&op, source->env, source->path, "backup", args, 1, say_working, NULL);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op.message);
}

int hf_cmd_backup(const hf_tool_args *args)
{
    hf_tool_source source;
    int code = hf_source_open(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    code = source.is_owned ? backup_of_owner(&source, args->words[1]) : backup_of_file(&source, args->words[1]);
    hf_progress(NULL);
    if (code == HF_EXIT_FINE && args->json) {
        hf_put_object((const char *const[]){"file", args->words[0], "copy", args->words[1], NULL});
    } else if (code == HF_EXIT_FINE) {
        (void)printf("%s: a copy of %s\n", args->words[1], args->words[0]);
    }
    hf_source_close(&source);
    return code;
}
