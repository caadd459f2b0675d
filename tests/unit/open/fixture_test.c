/* labels: threads */
/* Databases of every version of the format (tests/fixtures): they open, they are sound, and what they hold is finished. */
#include "unit/open/place.h"

#include "fixtures/fixture.h"
#include "inspect/check.h"
#include "inspect/look.h"

typedef struct fixture {
    const char *name;
    bool is_older; /* than the tables that this version has: tools do not look at it */
    bool has_all;  /* that make.c lists from 0003 on */
    uint64_t runs;
    uint64_t open_runs;
    uint64_t runs_after; /* when all are finished: a cron schedule makes new ones */
} fixture;

static const fixture FIXTURES[] = {
    {"0001.db", true, false, 53, 42, 53},
    {"0002.db", false, false, 53, 42, 53},
    {"0003.db", false, true, 77, 57, 83},
};

static void copy(const char *name, const place *p)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s", HF_FIXTURES, name);
    size_t len = 0;
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
    assert_int_equal(hf_sqlite_integrity(&op, peek.store, on_found, NULL), HF_OK);
    assert_int_equal(hf_check_store(&op, hf_env_memory(hf_env_posix()), peek.store, &options, &report), HF_OK);
    hf_peek_close(&peek);
    assert_int_equal(report.damages, 0);
    return report;
}

static void refuse_to_look(const char *path)
{
    hf_peek peek;
    int64_t holder = 0;
    hf_op op;
    hf_op_init(&op);
    uint64_t before = file_hash(path);
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), path, &peek, &holder), HF_ERR_UNSUPPORTED);
    assert_non_null(strstr(op.message, "brings it up to date"));
    assert_true(file_hash(path) == before);
}

static void old_databases_are_sound(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        const fixture *f = &FIXTURES[i];
        copy(f->name, p);
        if (f->is_older) { /* tools change no file: an engine must have opened it */
            refuse_to_look(p->path);
            hf_rig rig;
            fixture_open(&rig, p->path, true);
            hf_rig_close(&rig);
        }
        uint64_t before = file_hash(p->path);
        hf_check_report report = check(p->path);
        print_message("%s: %d runs, %d open, %d events\n", f->name, (int)report.runs, (int)report.open_runs,
                      (int)report.events);
        assert_true(report.runs == f->runs && report.open_runs == f->open_runs);
        assert_true(file_hash(p->path) == before); /* looking changes nothing */
        assert_int_equal(place_count(p), 1);
    }
}

/* ---- What they say of their runs -------------------------------------------------------------------------------------- */

/* The answer is in the rig's memory until the next call. */
static const hf_pb_describe_workflow_execution_response *describe(hf_rig *rig, const char *id)
{
    char step[100];
    (void)snprintf(step, sizeof step, "describe %s", id);
    hf_rig_do(rig, step);
    return hf_rig_slot(rig, NULL)->call.response;
}

static const hf_pb_pending_activity_info *activity(const hf_pb_describe_workflow_execution_response *of, const char *id)
{
    for (size_t i = 0; i < of->pending_activities.count; i++) {
        if (hf_str_equal(of->pending_activities.items[i].activity_id, hf_str_of(id))) {
            return &of->pending_activities.items[i];
        }
    }
    fail_msg("there is no activity %s", id);
    return NULL;
}

static void first_runs_describe_rightly(hf_rig *rig)
{
    const hf_pb_workflow_execution_info *info = describe(rig, "done-2")->workflow_execution_info;
    assert_int_equal(info->status, HF_WORKFLOW_EXECUTION_STATUS_COMPLETED);
    assert_true(info->close_time.has);
    info = describe(rig, "late")->workflow_execution_info;
    assert_int_equal(info->status, HF_WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    const hf_pb_describe_workflow_execution_response *of = describe(rig, "timer-1");
    info = of->workflow_execution_info;
    assert_int_equal(info->status, HF_WORKFLOW_EXECUTION_STATUS_RUNNING);
    assert_true(info->start_time.has && info->execution_time.has);
    assert_true(hf_str_equal(info->first_run_id, info->execution->run_id));
    assert_true(hf_str_equal(info->root_execution->run_id, info->execution->run_id));
    assert_null(info->parent_execution);
    assert_null(of->pending_workflow_task);
    assert_int_equal(of->pending_children.count, 0);
    const hf_pb_pending_activity_info *a = activity(describe(rig, "retry-1"), "a");
    assert_int_equal(a->attempt, 3);
    assert_int_equal(a->state, HF_PENDING_ACTIVITY_STATE_SCHEDULED);
    assert_true(a->last_failure != NULL && a->next_attempt_schedule_time.has && !a->paused);
    a = activity(describe(rig, "busy"), "a");
    assert_int_equal(a->state, HF_PENDING_ACTIVITY_STATE_STARTED);
    assert_non_null(a->heartbeat_details);
    assert_non_null(describe(rig, "backlog-7")->pending_workflow_task);
}

static void third_activities_describe_rightly(hf_rig *rig)
{
    const hf_pb_describe_workflow_execution_response *of = describe(rig, "control");
    assert_int_equal(of->pending_activities.count, 5);
    const hf_pb_pending_activity_info *a = activity(of, "paused");
    assert_true(a->paused && a->pause_info != NULL && a->attempt == 2);
    a = activity(of, "held");
    assert_true(a->paused && a->attempt == 1);
    a = activity(of, "reset");
    assert_true(!a->paused && a->attempt == 1 && !a->next_attempt_schedule_time.has);
    a = activity(of, "other");
    assert_true(hf_str_equal(a->activity_options->task_queue->name, HF_STR("moved")));
    assert_int_equal(hf_pb_duration_span(a->activity_options->start_to_close_timeout).ns, hf_minutes(5).ns);
    assert_int_equal(a->maximum_attempts, 7);
    a = activity(of, "plain");
    assert_true(a->attempt == 2 && a->next_attempt_schedule_time.has);
    assert_int_equal(describe(rig, "herd")->pending_activities.count, 6);
}

static void third_runs_describe_rightly(hf_rig *rig)
{
    const hf_pb_describe_workflow_execution_response *of = describe(rig, "family");
    assert_int_equal(of->pending_children.count, 2);
    assert_true(of->pending_children.items[0].run_id.len > 0);
    assert_int_equal(of->pending_children.items[1].parent_close_policy, HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL);
    assert_true(hf_str_equal(describe(rig, "kid-timer")->workflow_execution_info->parent_execution->workflow_id,
                             HF_STR("family")));
    const hf_pb_workflow_execution_info *info = describe(rig, "next")->workflow_execution_info;
    assert_false(hf_str_equal(info->first_run_id, info->execution->run_id));
    assert_int_equal(info->memo->fields.count, 1);
    info = describe(rig, "retry-run")->workflow_execution_info;
    assert_true(info->execution_time.seconds - info->start_time.seconds == 3600);
    info = describe(rig, "cron")->workflow_execution_info;
    assert_true(info->execution_time.seconds - info->start_time.seconds == 120);
    assert_null(describe(rig, "delayed")->pending_workflow_task);
    of = describe(rig, "props");
    assert_int_equal(of->workflow_execution_info->memo->fields.count, 14);
    assert_int_equal(of->workflow_execution_info->search_attributes->indexed_fields.count, 1);
    assert_non_null(of->execution_config->user_metadata);
    hf_rig_do(rig, "updpoll answered good says=completed:fine => answer; updpoll answered bad says=completed:Oops =>"
                   "answer; updpoll accepted half wait=accepted says=accepted => answer;"
                   "updpoll closed-up last says=completed:fine => answer; update answered good says=completed:fine =>"
                   "answer");
    hf_rig_do(rig, "describe gone-1 => not_found; describe gone-2 => not_found; describe gone-3 => not_found;"
                   "describe nameless => not_found");
    third_activities_describe_rightly(rig);
}

/* Runs that lost their name are found by their run ids. */
static void nameless_runs_are_there(hf_rig *rig)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig->store, &look), HF_OK);
    unsigned found = 0;
    for (int64_t number = 0; hf_look_next(&op, look, number, &number) == HF_OK && number != 0;) {
        hf_run *run = NULL;
        assert_int_equal(hf_look_run(&op, look, number, &run), HF_OK);
        if (hf_str_equal(hf_owned_str(&run->workflow_id), HF_STR("nameless"))) {
            char step[100];
            (void)snprintf(step, sizeof step, "describe nameless run_id=%.*s", HF_STR_ARGS(hf_owned_str(&run->run_id)));
            hf_rig_do(rig, step);
            found++;
        }
        hf_look_run_free(look, run);
    }
    hf_look_close(look);
    assert_int_equal(found, 2);
}

static void the_journal_knows_deleted_runs(const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_peek peek;
    int64_t holder = 0;
    hf_look *look = NULL;
    assert_int_equal(hf_peek_open(&op, hf_env_posix(), path, &peek, &holder), HF_OK);
    assert_int_equal(hf_look_open(&op, hf_env_memory(hf_env_posix()), peek.store, &look), HF_OK);
    assert_true(hf_look_gone(look, 0) != 0 && hf_look_gone(look, 1) != 0 && hf_look_gone(look, 2) != 0);
    hf_look_close(look);
    hf_peek_close(&peek);
}

static void old_databases_describe_their_runs(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        copy(FIXTURES[i].name, p);
        if (FIXTURES[i].has_all) {
            the_journal_knows_deleted_runs(p->path);
        }
        hf_rig rig;
        fixture_open(&rig, p->path, true);
        for (int again = 0; again < 2; again++) { /* the second time rows of this version are read */
            first_runs_describe_rightly(&rig);
            if (FIXTURES[i].has_all) {
                third_runs_describe_rightly(&rig);
                nameless_runs_are_there(&rig);
            }
            hf_rig_do(&rig, "crash");
        }
        hf_rig_close(&rig);
    }
}

/* ---- They are finished ------------------------------------------------------------------------------------------------ */

/* Takes whatever there is and ends it. */
static void work_off(hf_rig *rig)
{
    static const char *const QUEUES[] = {"q",  "other", "later", "mine", "n",      "k",     "k2",
                                         "k3", "c",     "h",     "herd", "herd-2", "moved", "u"};
    for (size_t i = 0; i < HF_COUNT_OF(QUEUES); i++) {
        char step[100];
        (void)snprintf(step, sizeof step, "apoll queue=%s", QUEUES[i]);
        while (hf_rig_try(rig, step) == HF_OK) {
            hf_rig_do(rig, "acomplete");
        }
        (void)snprintf(step, sizeof step, "poll queue=%s", QUEUES[i]);
        while (hf_rig_try(rig, step) == HF_OK) {
            hf_rig_do(rig, "complete done");
        }
        hf_rig_do(rig, "drop w; drop a");
    }
}

static void expect_in_history(hf_rig *rig, const char *id, const char *text)
{
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_text(rig, id, &out);
    if (strstr(hf_buf_text(&out), text) == NULL) {
        fail_msg("%s has no %s:\n%s", id, text, hf_buf_text(&out));
    }
    hf_buf_deinit(&out);
}

static unsigned times_in_history(hf_rig *rig, const char *id, const char *text)
{
    hf_buf out;
    unsigned times = 0;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_text(rig, id, &out);
    for (const char *at = hf_buf_text(&out); (at = strstr(at, text)) != NULL; at++) {
        times++;
    }
    hf_buf_deinit(&out);
    return times;
}

/* What the runs from 0003 on wait for. */
static void prepare_third(hf_rig *rig)
{
    hf_rig_do(rig, "signal next go; signal answered go; signal accepted go; signal props go; aunpause control paused;"
                   "acomplete by=control/held");
    for (int i = 1; i <= 300; i++) {
        char step[60];
        (void)snprintf(step, sizeof step, "signal chatty s request=r%d", i);
        hf_rig_do(rig, step);
    }
    assert_int_equal(hf_rig_probe(rig, HF_PROBE_SIGNAL_DEDUPED), 301); /* it has them all; one was for "buffered" */
    hf_rig_do(rig, "signal chatty go");
    hf_rig_do(rig, "signal family go; signal untold go; signal unstarted go");
}

static void third_has_ended(hf_rig *rig)
{
    hf_rig_do(rig, "terminate cron; updpoll answered good says=completed:fine => answer;"
                   "updpoll closed-up last says=completed:fine => answer");
    assert_int_equal(times_in_history(rig, "untold", "ChildWorkflowExecutionCompleted"), 1);
    assert_int_equal(times_in_history(rig, "unstarted", "ChildWorkflowExecutionStarted"), 1);
    assert_int_equal(times_in_history(rig, "chatty", "WorkflowExecutionSignaled"), 301);
    expect_in_history(rig, "kid-timer", "WorkflowExecutionTerminated"); /* its parent has ended */
    expect_in_history(rig, "kid-new", "WorkflowExecutionCancelRequested");
    expect_in_history(rig, "retry-run", "WorkflowExecutionCompleted");
    expect_in_history(rig, "delayed", "WorkflowExecutionCompleted");
    expect_in_history(rig, "herd", "WorkflowExecutionCompleted");
    expect_in_history(rig, "control", "WorkflowExecutionCompleted");
    hf_rig_do(rig,
              "start gone-1; start nameless; terminate gone-1; terminate nameless; delete gone-1; delete nameless");
}

static void old_databases_are_finished_by_this_version(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        copy(FIXTURES[i].name, p);
        hf_rig rig;
        fixture_open(&rig, p->path, true);
        hf_rig_do(&rig, "time 5m; signal signal-1 go; signal signal-2 go; signal signal-3 go; signal signal-4 go;"
                        "signal sender go; signal buffered one request=r1"); /* the last it has already */
        if (FIXTURES[i].has_all) {
            prepare_third(&rig);
        }
        work_off(&rig);
        hf_rig_do(&rig, "time 2h");
        work_off(&rig);
        for (int round = 0; round < 3; round++) { /* pauses between attempts */
            hf_rig_do(&rig, "time 1h");
            work_off(&rig);
        }
        expect_in_history(&rig, "buffered", "one");
        expect_in_history(&rig, "buffered", "two");
        expect_in_history(&rig, "buffered", "WorkflowExecutionCompleted");
        expect_in_history(&rig, "timer-8", "TimerFired");
        expect_in_history(&rig, "retry-4", "ActivityTaskStarted");
        expect_in_history(&rig, "backlog-20", "WorkflowExecutionCompleted");
        if (FIXTURES[i].has_all) {
            third_has_ended(&rig);
        }
        hf_rig_close(&rig);
        hf_check_report report = check(p->path);
        print_message("%s: %d runs, %d open\n", FIXTURES[i].name, (int)report.runs, (int)report.open_runs);
        assert_true(report.runs == FIXTURES[i].runs_after && report.open_runs == 0);
    }
}

static void old_databases_open_in_a_real_engine(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        copy(FIXTURES[i].name, p);
        hf_service *service = NULL;
        assert_int_equal(hf_open(p->address, &service), HF_OK);
        hf_execution *execution = NULL;
        assert_int_equal(hf_execution_new(service, "signal-1", &execution, .namespace_ = HF_RIG_NS), HF_OK);
        assert_int_equal(hf_signal(execution, "go", hf_payload_none()), HF_OK);
        hf_execution_free(execution);
        assert_int_equal(hf_start(service, "type", hf_payload_none(), NULL, .id = "again", .namespace_ = HF_RIG_NS),
                         HF_ERR_EXISTS);
        assert_int_equal(hf_close(service), HF_OK);
        (void)check(p->path);
        assert_int_equal(hf_open(p->address, &service), HF_OK); /* its first journal has the names of all runs */
        assert_int_equal(hf_start(service, "type", hf_payload_none(), NULL, .id = "again", .namespace_ = HF_RIG_NS),
                         HF_ERR_EXISTS);
        assert_int_equal(hf_close(service), HF_OK);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(old_databases_are_sound),
    TEST(old_databases_describe_their_runs),
    TEST(old_databases_are_finished_by_this_version),
    TEST(old_databases_open_in_a_real_engine),
};

int main(int argc, char **argv)
{
    return hf_test_main("fixture", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
