/* Every allocation of a worker fails once: a workflow that uses every verb is run again for each of them. The step that finds no
 * memory is repeated, and the run ends as if nothing had happened. */
#include "support/support.h"

#include "base/base.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t allocations;
static uint64_t failing; /* this one; 0 = none */
static hf_allocator real_memory;
static bool is_server;  /* the service takes no task back, as a server */
static int64_t took_ns; /* the play, of virtual time */

/* What the engine puts into an answer is not the worker's: without memory for that the engine ends. */
static void *poor_allocate(void *state, size_t len, size_t align)
{
    bool is_of_worker = hf_runtime_current() != NULL;
    return is_of_worker && ++allocations == failing ? NULL : real_memory.allocate(state, len, align);
}

/* ---- The workflow ------------------------------------------------------------------------------------------------------ */

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status child(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_copy(in, ret_out);
}

static hf_status listener(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_signal_wait("hello", NULL));
    return hf_signal_wait("again", NULL);
}

static hf_status effect(void *arg, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "%d", *(const int *)arg);
}

typedef struct table {
    int notes;
    int ups;
} table;

static hf_status on_note(void *arg, hf_payload in)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(1)));
    ((table *)arg)->notes++;
    return HF_OK;
}

static hf_status on_up(void *arg, hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(30)));
    ((table *)arg)->ups++;
    return hf_payload_copy(in, ret_out);
}

static hf_status check_up(void *arg, hf_payload in)
{
    (void)arg;
    return in.len > 0 ? HF_OK : HF_ERR_INVALID;
}

static hf_status on_look(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%d", ((const table *)arg)->notes);
}

static const hf_entry HEADER[] = {{"trace", {"\"1\"", 3, HF_ENCODING_JSON_TEXT, NULL}}, {NULL, {NULL, 0, NULL, NULL}}};

static hf_status by_scope(void)
{
    hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "pair", .timeout = hf_hours(1)));
    HF_TRY(hf_fork_activity(scope, "echo", hf_payload_of_json("1"), &out, .start_to_close = hf_seconds(30),
                            .id = "named", .header = HEADER));
    HF_TRY(hf_fork_child(scope, "child", hf_payload_of_json("2"), NULL, .id = "kid-1", .header = HEADER));
    HF_TRY(hf_join(scope));
    return HF_OK;
}

static hf_status by_saga(void)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    HF_TRY(hf_saga_open(&saga, .name = "trip"));
    HF_TRY(hf_saga_add(saga, "echo", hf_payload_of_json("-1"), .start_to_close = hf_seconds(30), .header = HEADER));
    HF_TRY(hf_activity_run("echo", hf_payload_of_json("1"), NULL, .start_to_close = hf_seconds(30)));
    return hf_saga_undo(saga);
}

static hf_status by_worker(void)
{
    int seven = 7;
    hf_payload out = hf_payload_none();
    HF_TRY(hf_activity_run_local("echo", hf_payload_of_json("4"), &out, .start_to_close = hf_seconds(30)));
    return hf_side_effect(effect, &seven, &out);
}

static hf_status by_others(void)
{
    HF_TRY(hf_child_run("child", hf_payload_of_json("3"), NULL, .header = HEADER));
    HF_TRY(hf_child_start("child", hf_payload_of_json("3"), .id = "kid-2", .parent_close = HF_PARENT_CLOSE_ABANDON));
    HF_TRY(hf_external_signal("listener", "hello", hf_payload_of_json("5"), .header = HEADER));
    return hf_external_cancel("kid-2", "enough");
}

static hf_status by_signals(void)
{
    static const char *const NAMES[] = {"never", "any"};
    size_t idx = 9;
    hf_payload out = hf_payload_none();
    hf_signal_case other = {.name = "selected"};
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &other}};
    HF_TRY(hf_signal_wait("plain", &out));
    HF_TRY(hf_signal_wait_any(NAMES, 2, &idx, &out, .timeout = hf_hours(1)));
    HF_TRY(hf_select(cases, 1, &idx, .timeout = hf_hours(1)));
    hf_status status = hf_signal_try("nothing", &out);
    return status == HF_ERR_AGAIN ? HF_OK : status;
}

static hf_status by_failure(void)
{
    hf_status status = hf_workflow_fail("it is handled", .type = "Handled", .details = hf_payload_of_json("7"));
    return status == HF_ERR_FAILED ? HF_OK : status;
}

static hf_status whole(hf_payload in, hf_payload *ret_out)
{
    char text[40];
    if (in.len > 0) { /* the second run of its chain: it has a signal that the first did not take */
        HF_TRY(hf_signal_wait("kept", NULL));
        return hf_payload_printf(ret_out, "\"done\"");
    }
    table *t = HF_WORKFLOW_NEW(table);
    if (t == NULL) {
        return HF_ERR_NOMEM;
    }
    HF_TRY(hf_on_signal("note", on_note, .arg = t));
    HF_TRY(hf_on_update("up", on_up, .arg = t, .validator = check_up));
    HF_TRY(hf_on_query("look", on_look, .arg = t));
    HF_TRY(hf_patched("new") ? HF_OK : HF_ERR_NOMEM);
    HF_TRY(hf_patch_deprecate("old"));
    HF_TRY(hf_memo_set(hf_field_text("who", "ada")));
    hf_payload who = hf_payload_none();
    HF_TRY(hf_memo_get("who", &who));
    HF_TRY(hf_search_set(hf_field_int("Count", 3)));
    HF_TRY(hf_uuid(text));
    HF_TRY(hf_sleep_until((hf_time){hf_wall_now(NULL).ns + hf_seconds(5).ns}));
    HF_TRY(by_signals());
    HF_TRY(by_worker());
    HF_TRY(by_others());
    HF_TRY(by_scope());
    HF_TRY(by_saga());
    HF_TRY(by_failure());
    HF_TRY(hf_wait_until(t->notes == 2 && t->ups == 1, .timeout = hf_hours(10)));
    HF_TRY(hf_handlers_wait());
    return hf_continue_as_new(hf_payload_of_json("2"), .header = HEADER);
}

/* ---- The play ------------------------------------------------------------------------------------------------------------ */

/* What fails for lack of memory is done again by its caller. */
static hf_status converse(hf_execution *run)
{
    hf_payload out = hf_payload_none();
    HF_TRY(hf_signal(run, "note", hf_payload_of_json("1"), .header = HEADER));
    HF_TRY(hf_signal(run, "note", hf_payload_of_json("2")));
    HF_TRY(hf_signal(run, "kept", hf_payload_of_json("3")));
    HF_TRY(hf_signal(run, "plain", hf_payload_of_json("4")));
    hf_status status = HF_ERR_FAILED;
    for (int i = 0; i < 3 && status != HF_OK; i++) { /* a query that finds no memory is answered as failed */
        status = hf_query(run, "look", hf_payload_none(), &out, .timeout = hf_minutes(5));
        hf_payload_free(&out);
    }
    HF_TRY(status);
    HF_TRY(hf_update(run, "up", hf_payload_of_json("6"), NULL, .id = "up"));
    HF_TRY(hf_signal(run, "any", hf_payload_of_json("7")));
    HF_TRY(hf_signal(run, "selected", hf_payload_of_json("8")));
    HF_TRY(hf_result(run, &out, .timeout = hf_hours(20)));
    HF_CHECK_SAY(strcmp(out.data, "\"done\"") == 0, "%s", (const char *)out.data);
    hf_payload_free(&out);
    return HF_OK;
}

static hf_status play(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *other = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_open("memory:", &service));
    service->takes_nothing_back = is_server;
    HF_TRY(hf_search_attribute_add(service, "Count", HF_SEARCH_INT));
    HF_TRY(hf_worker_new(service, "q", &worker, .pollers_max = 2, .activity_pollers_max = 2));
    HF_TRY(hf_worker_add_workflow(worker, "whole", whole));
    HF_TRY(hf_worker_add_workflow(worker, "child", child));
    HF_TRY(hf_worker_add_workflow(worker, "listener", listener));
    HF_TRY(hf_worker_add_activity(worker, "echo", echo, .on_fiber = true));
    HF_TRY(hf_start(service, "listener", hf_payload_none(), &other, .id = "listener", .task_queue = "q"));
    HF_TRY(hf_start(service, "whole", hf_payload_none(), &run, .id = "whole", .task_queue = "q", .header = HEADER));
    HF_TRY(hf_worker_start(worker));
    real_memory = worker->memory;
    allocations = 0;
    worker->memory.allocate = poor_allocate;
    worker->arenas.memory.allocate = poor_allocate;
    int64_t since = hf_now(NULL).ns;
    hf_status status = converse(run);
    took_ns = hf_now(NULL).ns - since;
    HF_CHECK_SAY(status == HF_OK, "allocation %d: %s", (int)failing, hf_error_text());
    worker->memory = real_memory;
    worker->arenas.memory = real_memory;
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

static void fail_each(void)
{
    uint64_t stride = hf_test_seeds(10) >= 10 ? 1 : 7; /* under a sanitizer */
    failing = UINT64_MAX;
    assert_int_equal(hf_sim_run(1, 1, play, NULL, NULL), HF_OK);
    int64_t usual_ns = took_ns;
    failing = 0;
    do {
        failing += failing == 0 ? 1 : stride;
        hf_status status = hf_sim_run(1, 1, play, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "allocation %d: the play ended with %s", (int)failing, hf_status_name(status));
        HF_CHECK_SAY(took_ns < usual_ns + hf_seconds(9).ns, "allocation %d: worker-K6: %lld s more", (int)failing,
                     (long long)((took_ns - usual_ns) / 1000000000));
    } while (allocations >= failing && hf_checks_failed() == 0);
    print_message("%d allocations\n", (int)failing);
    assert_true(failing > 100);
}

static void every_allocation_of_a_worker_fails_once(void **state)
{
    (void)state;
    is_server = false;
    fail_each();
}

/* What a worker has no memory for is answered as failed, and comes again at once. */
static void worker_K6_no_task_of_a_server_is_dropped_for_lack_of_memory(void **state)
{
    (void)state;
    is_server = true;
    fail_each();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_allocation_of_a_worker_fails_once),
        cmocka_unit_test(worker_K6_no_task_of_a_server_is_dropped_for_lack_of_memory),
    };
    return hf_test_main("worker_nomem", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
