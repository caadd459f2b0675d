/* labels: threads */
/* Databases of every version of the format (tests/fixtures): they open, they are sound, and what they hold is finished. */
#include "unit/open/place.h"

#include "fixtures/fixture.h"
#include "inspect/check.h"

static const char *const FIXTURES[] = {"0001.db", "0002.db"};

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
        copy(FIXTURES[i], p);
        if (i + 1 < HF_COUNT_OF(FIXTURES)) { /* tools change no file: an engine must have opened it */
            refuse_to_look(p->path);
            hf_rig rig;
            fixture_open(&rig, p->path, true);
            hf_rig_close(&rig);
        }
        uint64_t before = file_hash(p->path);
        hf_check_report report = check(p->path);
        print_message("%s: %d runs, %d open, %d events\n", FIXTURES[i], (int)report.runs, (int)report.open_runs,
                      (int)report.events);
        assert_true(report.runs == 53 && report.open_runs == 42);
        assert_true(file_hash(p->path) == before); /* looking changes nothing */
        assert_int_equal(place_count(p), 1);
    }
}

/* Takes whatever there is and ends it. */
static void work_off(hf_rig *rig)
{
    static const char *const QUEUES[] = {"q", "other", "later", "mine"};
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

static void old_databases_are_finished_by_this_version(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        copy(FIXTURES[i], p);
        hf_rig rig;
        fixture_open(&rig, p->path, true);
        hf_rig_do(&rig, "time 2m; signal signal-1 go; signal signal-2 go; signal signal-3 go; signal signal-4 go;"
                        "signal sender go; signal buffered one request=r1"); /* the last it has already */
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
        hf_rig_close(&rig);
        hf_check_report report = check(p->path);
        assert_true(report.runs == 53 && report.open_runs == 0);
    }
}

static void old_databases_open_in_a_real_engine(void **state)
{
    const place *p = *state;
    for (size_t i = 0; i < HF_COUNT_OF(FIXTURES); i++) {
        copy(FIXTURES[i], p);
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
    TEST(old_databases_are_finished_by_this_version),
    TEST(old_databases_open_in_a_real_engine),
};

int main(int argc, char **argv)
{
    return hf_test_main("fixture", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
