/* labels: threads */
/* Databases that the C worker made (tests/fixtures/flows.h): every kind of event that it makes is in them, they are sound, and a
 * worker of this version takes their runs over in the middle and ends them. */
#include "unit/open/place.h"

#include "base/arena.h"
#include "fixtures/flows.h"
#include "inspect/check.h"
#include "inspect/look.h"
#include "service/call.h"
#include "store/sqlite/sqlite.h"

static const char *const FILES[] = {"0004.db"};

static void copy(const char *name, const place *p)
{
    char path[1000];
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/%s", HF_FIXTURES, name);
    char *bytes = file_bytes(path, &len);
    assert_non_null(bytes);
    (void)unlink(p->path);
    file_put(p->path, 0, bytes, len);
    free(bytes);
}

static void on_found(void *state, const char *sentence)
{
    (void)state;
    print_message("%s\n", sentence);
}

static hf_check_report check(const char *path)
{
    hf_peek peek;
    int64_t holder = 0;
    hf_check_report report = {0};
    hf_check_options options = {.deep = true, .found = on_found};
    hf_op op;
    hf_op_init(&op);
    if (hf_peek_open(&op, hf_env_posix(), path, &peek, &holder) != HF_OK) {
        fail_msg("%s", op.message);
    }
    assert_int_equal(hf_check_store(&op, hf_env_memory(hf_env_posix()), peek.store, &options, &report), HF_OK);
    hf_peek_close(&peek);
    assert_int_equal(report.damages, 0);
    return report;
}

/* ---- Which events they have --------------------------------------------------------------------------------------------- */

static const int32_t KINDS[] = {
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
    HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
    HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
    HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED,
    HF_EVENT_TYPE_TIMER_STARTED,
    HF_EVENT_TYPE_TIMER_FIRED,
    HF_EVENT_TYPE_TIMER_CANCELED,
    HF_EVENT_TYPE_MARKER_RECORDED,
    HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
    HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
    HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
    HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
    HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
    HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
    HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
    HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
    HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
    HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED,
    HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
    HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
    HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
};

static unsigned seen[64];

/* Counts the kinds of events of a run; `*ret_next`: the next run of its chain, in the arena, or empty. */
static hf_status count_run(hf_service *service, const char *id, hf_str run_id, hf_arena *arena, hf_str *ret_next)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_execution which = {.workflow_id = hf_str_of(id), .run_id = run_id};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    hf_call call;
    hf_pb_history history = {0};
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, arena, NULL);
    HF_TRY(hf_service_ask(&op, service, &call));
    const hf_pb_get_workflow_execution_history_response *response = call.response;
    HF_TRY(hf_pb_decode(&op, &hf_pb_history_type, response->history, arena, &history));
    *ret_next = (hf_str){NULL, 0};
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        seen[event->event_type]++;
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED &&
            run_id.len == 0) { /* the first of its chain */
            hf_str first = event->workflow_execution_started_event_attributes->first_execution_run_id;
            hf_str own = event->workflow_execution_started_event_attributes->original_execution_run_id;
            *ret_next = hf_str_equal(first, own) ? (hf_str){NULL, 0} : first;
        }
    }
    return HF_OK;
}

static hf_status count_kinds(hf_service *service)
{
    static const char *const IDS[] = {"whole", "handlers", "chain", "pending", "parent", "saga", "gone"};
    hf_arena arena;
    hf_status status = HF_OK;
    memset(seen, 0, sizeof seen);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    for (size_t i = 0; i < HF_COUNT_OF(IDS) && status == HF_OK; i++) {
        hf_str run_id = {NULL, 0};
        do {
            hf_str next = {NULL, 0};
            status = count_run(service, IDS[i], run_id, &arena, &next);
            run_id = next;
        } while (status == HF_OK && run_id.len > 0);
    }
    hf_arena_deinit(&arena);
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        const char *name = hf_pb_enum_brief(&hf_pb_event_type_enum, KINDS[i]);
        HF_CHECK_SAY(seen[KINDS[i]] > 0, "there is no %s", name != NULL ? name : "?");
    }
    return status;
}

/* ---- They are finished ---------------------------------------------------------------------------------------------------- */

static hf_status finish(void *arg)
{
    const place *p = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    char *text = NULL;
    HF_TRY(hf_open(p->address, &service));
    HF_TRY(count_kinds(service));
    HF_TRY(flows_worker(service, &worker));
    HF_TRY(hf_worker_start(worker));
    hf_status status = flows_end(service, &text);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    if (!HF_CHECK(text != NULL && strcmp(text, flows_wanted) == 0)) {
        print_message("the runs say\n%s", text != NULL ? text : "");
    }
    free(text);
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

static void runs_of_the_c_worker_are_taken_over_and_end(void **state)
{
    place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FILES); i++) {
        copy(FILES[i], p);
        hf_check_report before = check(p->path);
        assert_true(before.open_runs > 0);
        hf_status status = hf_run(finish, p);
        HF_CHECK_SAY(status == HF_OK, "%s: %s", FILES[i], hf_error_text());
        hf_check_report after = check(p->path);
        print_message("%s: %d runs, %d open before, %d after\n", FILES[i], (int)after.runs, (int)before.open_runs,
                      (int)after.open_runs);
        assert_int_equal(after.open_runs, 0);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup_teardown(runs_of_the_c_worker_are_taken_over_and_end, place_open, place_close),
    };
    return hf_test_main("flows", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
