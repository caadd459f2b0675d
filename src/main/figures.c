/* Figures of engine, store and process for GET /metrics. */
#include "main/serve_private.h"
#include "open/open.h"

#include "service/call.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct figures {
    hf_service *service;
    hf_pb_admin_stats stats;
    bool is_there;
} figures;

static hf_status ask(void *arg)
{
    figures *f = arg;
    hf_op op;
    hf_op_init(&op);
    f->is_there = hf_open_figures(&op, f->service, &f->stats) == HF_OK;
    return HF_OK;
}

static void put(hf_buf *out, const char *name, const char *type, const char *help, double value)
{
    hf_buf_putf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

/* Bytes of memory that the process has now; 0 = not known. */
static double resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%*s %ld", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void hf_serve_figures(void *state, hf_buf *out)
{
    figures f = {.service = state};
    if (hf_block(ask, &f) == HF_OK && f.is_there) {
        const struct {
            const char *name;
            const char *type;
            const char *help;
            uint64_t value;
        } ROWS[] = {
            {"holdfast_engine_calls_total", "counter", "Calls that the engine has answered.", f.stats.calls},
            {"holdfast_engine_transitions_total", "counter", "Changes of a run.", f.stats.transitions},
            {"holdfast_engine_commits_total", "counter", "Commits, also of earlier processes.", f.stats.commits},
            {"holdfast_engine_runs_in_memory", "gauge", "Runs in memory.", f.stats.runs_in_memory},
            {"holdfast_engine_memory_bytes", "gauge", "Memory of runs, queues and calls.", f.stats.memory_bytes},
            {"holdfast_engine_reopened_total", "counter", "Times the engine started over.", f.stats.reopened},
            {"holdfast_store_flushes_total", "counter", "Times the store has flushed its disk.", f.stats.flushes},
            {"holdfast_store_written_bytes_total", "counter", "Bytes that the store has written.",
             f.stats.bytes_written},
            {"holdfast_store_log_bytes", "gauge", "Length of the write-ahead log.", f.stats.log_bytes},
            {"holdfast_store_file_bytes", "gauge", "Length of the file.", f.stats.file_bytes},
        };
        for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
            put(out, ROWS[i].name, ROWS[i].type, ROWS[i].help, (double)ROWS[i].value);
        }
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        put(out, "process_cpu_seconds_total", "counter", "Processor time.",
            (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    }
    put(out, "process_resident_memory_bytes", "gauge", "Memory that the process has.", resident());
}

bool hf_serve_is_alive(hf_service *service)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_call call;
    hf_pb_get_system_info_request request = {0};
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_GET_SYSTEM_INFO, &request, &arena, NULL);
    bool is_alive = hf_service_ask(&op, service, &call) == HF_OK;
    hf_arena_deinit(&arena);
    return is_alive;
}
