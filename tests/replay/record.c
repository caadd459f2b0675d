/* Plays a workflow of workflows.h until it waits for the signal "go", and writes its history:
 *     replay_record spans > spans.json
 * Histories in this folder are made once, by the version whose behaviour they are to show, and kept. */
#include "replay/workflows.h"
#include "support/support.h"

#include "history/history.h"
#include "service/call.h"

#include <stdlib.h>

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

/* One event per line. */
static void print_lines(const char *text, size_t len)
{
    static const char EVENT[] = "{\"eventId\"";
    for (size_t i = 0; i < len; i++) {
        if (i + 2 == len || (len - i >= sizeof EVENT && memcmp(text + i, EVENT, sizeof EVENT - 1) == 0)) {
            (void)putchar('\n');
        }
        (void)putchar(text[i]);
    }
    (void)putchar('\n');
}

static hf_status write_history(hf_service *service)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_buf text;
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    hf_op_init(&op);
    hf_arena_init(&arena, HEAP);
    hf_buf_init(&text, HEAP, (size_t)1 << 26);
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, service, &call);
    if (status == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        status = hf_history_to_json(&op, response->history, false, &text);
        print_lines(text.data, text.len);
    }
    hf_buf_deinit(&text);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status record(void *arg)
{
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "spans", replay_spans));
    HF_TRY(hf_worker_add_workflow(worker, "attempts", replay_attempts));
    HF_TRY(hf_worker_add_activity(worker, "echo", replay_echo, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "flaky", attempts_flaky, .on_fiber = true));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(hf_start(service, arg, hf_payload_of_json("7"), NULL, .id = "w", .task_queue = "q"));
        HF_TRY(hf_sleep(hf_hours(1)));
        HF_TRY(write_history(service));
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(worker));
    return hf_close(service);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: replay_record WORKFLOW\n");
        return 2;
    }
    HF_OR_DIE(hf_sim_run(1, 1, record, argv[1], NULL));
    return hf_checks_failed() == 0 ? 0 : 1;
}
