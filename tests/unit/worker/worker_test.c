/* labels: threads */
/* The worker's life: activities with heartbeats and cancels, how it stops, how it runs on real threads. */
#include "unit/worker/play.h"

#include "env/sim/sim.h"
#include "fiber/core.h"
#include "history/limits.h"
#include "worker/worker_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static hf_status start_main(play *p, hf_execution **ret_execution)
{
    return hf_start(p->service, "main", hf_payload_of_json("1"), ret_execution, .id = "w", .task_queue = "orders");
}

static hf_status note_result(play *p, hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(execution, &out);
    play_note(p, "%s", status == HF_OK ? (out.data != NULL ? (const char *)out.data : "nothing") : hf_error_text());
    return HF_OK;
}

static hf_status run_one(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_main(p, &execution));
    return note_result(p, execution);
}

/* ---- A long wait --------------------------------------------------------------------------------------------------- */

enum { LOOKS = 5000, LOOK_LEN = 300 };

typedef struct slow_service {
    hf_service service; /* first */
    int looks;
    size_t used_max; /* bytes that an errand held when it asked */
} slow_service;

/* Every poll ends without news, and with a token; at last the workflow is gone. */
static void no_news(hf_service *service, hf_call *call)
{
    static char token[LOOK_LEN];
    slow_service *slow = (slow_service *)(void *)service;
    hf_pb_get_workflow_execution_history_response *response =
        HF_ARENA_NEW(call->arena, hf_pb_get_workflow_execution_history_response);
    slow->used_max = call->arena->used > slow->used_max ? call->arena->used : slow->used_max;
    response->next_page_token = hf_arena_copy(call->arena, hf_str_of_len(token, sizeof token));
    call->response = response;
    call->status = ++slow->looks < LOOKS ? HF_OK : HF_ERR_NOT_FOUND;
    call->done(call);
}

static void whoever_waits_for_months_needs_no_more_memory(void **state)
{
    static const hf_service_ops OPS = {.submit = no_news};
    slow_service slow = {.service = {.ops = &OPS}};
    hf_execution *execution = NULL;
    (void)state;
    assert_int_equal(hf_execution_new(&slow.service, "w", &execution), HF_OK);
    assert_int_equal(hf_result(execution, NULL), HF_ERR_NOT_FOUND);
    assert_int_equal(slow.looks, LOOKS);
    assert_true(slow.used_max < (size_t)16 * 1024);
    hf_execution_free(execution);
}

/* ---- A service in trouble ------------------------------------------------------------------------------------------- */

static void count_failed_polls(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)level;
    (void)fields;
    *(int *)state += strcmp(event, "poll_failed") == 0 ? 1 : 0;
}

static hf_status have_no_disk(play *p)
{
    int lines = 0;
    hf_runtime *rt = hf_runtime_current();
    hf_log_sink log = rt->log;
    void *log_state = rt->log_state;
    rt->log = count_failed_polls;
    rt->log_state = &lines;
    tap_close(p->tap, HF_ERR_FULL);
    HF_TRY(hf_sleep(hf_minutes(10)));
    play_note(p, "%s", lines >= 60 && lines <= 150 ? "a line now and then" : "too few or too many lines");
    rt->log = log;
    rt->log_state = log_state;
    return HF_OK;
}

static hf_status do_nothing(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

static hf_status add_nothing(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", do_nothing));
    return hf_worker_add_activity(worker, "count", do_nothing);
}

/* Each of its 128 pollers fails once in five seconds. */
static void a_service_in_trouble_does_not_fill_the_log(void **state)
{
    (void)state;
    play_on((play_options){.add = add_nothing, .body = have_no_disk, .result = "a line now and then"});
}

/* ---- Heartbeats -------------------------------------------------------------------------------------------------- */

/* Beats ten times in its first attempt, fails, and goes on where it was in the second. */
static hf_status count_up(hf_payload in, hf_payload *ret_out)
{
    const hf_activity_facts *facts = hf_activity_info();
    (void)in;
    if (facts->attempt == 2) {
        return hf_payload_copy(facts->last, ret_out);
    }
    HF_CHECK(facts->heartbeat.ns == hf_seconds(10).ns && facts->last.encoding == NULL);
    for (int i = 1; i <= 10; i++) {
        HF_AUTO(hf_payload_free) hf_payload at = hf_payload_none();
        HF_TRY(hf_payload_printf(&at, "%d", i));
        HF_TRY(hf_activity_heartbeat(at));
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    HF_TRY(hf_sleep(hf_seconds(15))); /* the last of them is sent meanwhile, and is not too old yet */
    return hf_raise(HF_ERR_FAILED, "half way");
}

static hf_status ask_to_count(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("count_up", in, ret_out, .start_to_close = hf_minutes(5), .heartbeat = hf_seconds(10));
}

static hf_status add_count(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", ask_to_count));
    return hf_worker_add_activity(worker, "count_up", count_up);
}

static hf_status count_heartbeats(play *p)
{
    HF_TRY(run_one(p));
    /* One at once, one each 8 s with the latest, none twice. */
    HF_CHECK_SAY(tap_calls(p->tap, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT) == 3, "%d heartbeats",
                 tap_calls(p->tap, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT));
    HF_CHECK(tap_activities(p->tap) == 2);
    return HF_OK;
}

static void heartbeats_are_throttled_and_the_last_one_arrives(void **state)
{
    (void)state;
    play_on((play_options){.add = add_count, .body = count_heartbeats, .result = "10"});
}

/* Memory runs out with the first heartbeat, at every place: that one fails, later ones are sent. Without a heartbeat timeout:
 * what sends them is made by the first. */
static hf_status beat_without_memory(hf_payload in, hf_payload *ret_out)
{
    hf_env *env = hf_runtime_current()->env;
    uint64_t nth = strtoull(in.data, NULL, 10);
    (void)ret_out;
    hf_sim_fail_allocation(env, nth, false);
    hf_status status = hf_activity_heartbeat(hf_payload_none());
    hf_sim_fail_allocation(env, 0, false);
    HF_CHECK_SAY(status == HF_ERR_NOMEM || nth > 1, "%s", hf_status_name(status));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_activity_heartbeat(hf_payload_none()));
        HF_TRY(hf_sleep(hf_seconds(30)));
    }
    return HF_OK;
}

static uint64_t failing_allocation;

static hf_status ask_to_beat(hf_payload in, hf_payload *ret_out)
{
    char text[24];
    (void)in;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)failing_allocation);
    return hf_activity_run("beat", hf_payload_of_json(text), ret_out, .start_to_close = hf_minutes(5));
}

static hf_status add_beat_without_memory(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", ask_to_beat));
    return hf_worker_add_activity(worker, "beat", beat_without_memory, .on_fiber = true);
}

static hf_status count_late_heartbeats(play *p)
{
    HF_TRY(run_one(p));
    HF_CHECK_SAY(tap_calls(p->tap, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT) >= 3,
                 "%d heartbeats after allocation %d failed",
                 tap_calls(p->tap, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT), (int)failing_allocation);
    return HF_OK;
}

static void heartbeats_go_on_after_one_that_found_no_memory(void **state)
{
    (void)state;
    for (failing_allocation = 1; failing_allocation <= 4; failing_allocation++) {
        (void)play_once((play_options){.add = add_beat_without_memory, .body = count_late_heartbeats}, 1, 1);
    }
}

/* The service takes no heartbeats any more, and cannot tell that the attempt has timed out: the activity learns it all the same. */
static atomic_int lapsed;

static hf_status beat_in_vain(hf_payload in, hf_payload *ret_out)
{
    int64_t from = hf_now(NULL).ns;
    const char *reason = NULL;
    hf_status status = HF_OK;
    (void)in;
    (void)ret_out;
    while (status == HF_OK) {
        status = hf_activity_heartbeat(hf_payload_none());
        status = status == HF_OK ? hf_sleep(hf_seconds(1)) : status;
    }
    HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_DEADLINE);
    HF_CHECK_SAY(strcmp(reason, "the heartbeat timeout of the activity is over") == 0, "%s", reason);
    int64_t after = hf_now(NULL).ns - from; /* the last one that was taken was the first */
    HF_CHECK_SAY(after / 1000000 == 10000, "after %lld ms", (long long)(after / 1000000));
    atomic_fetch_add(&lapsed, 1);
    return status;
}

static hf_status ask_in_vain(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("beat", in, ret_out, .start_to_close = hf_hours(5), .heartbeat = hf_seconds(10),
                           .attempts_max = 1);
}

static bool beats_on_fiber;

static hf_status add_beat_in_vain(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", ask_in_vain));
    return hf_worker_add_activity(worker, "beat", beat_in_vain, .on_fiber = beats_on_fiber);
}

static hf_status lose_the_disk(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_main(p, &execution));
    HF_TRY(hf_sleep(hf_seconds(4)));
    tap_close(p->tap, HF_ERR_FULL);
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(atomic_exchange(&lapsed, 0) == 1);
    return HF_OK;
}

/* The service times it out as well, and that is its outcome: a failure that came just before would be another one, by chance. */
static hf_status wait_in_silence(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    hf_status status = hf_sleep(hf_hours(1));
    HF_CHECK(status == HF_ERR_CANCELED);
    atomic_fetch_add(&lapsed, 1);
    return hf_activity_fail("it was told to end");
}

static hf_status add_silence(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", ask_in_vain));
    return hf_worker_add_activity(worker, "beat", wait_in_silence);
}

static hf_status count_attempts(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_main(p, &execution));
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(atomic_exchange(&lapsed, 0) == 1);
    HF_CHECK_SAY(tap_activities(p->tap) == 1, "%d attempts", tap_activities(p->tap));
    HF_TRY(note_result(p, execution));
    return HF_OK;
}

static void an_activity_that_was_not_heard_in_time_is_left_to_its_timeout(void **state)
{
    (void)state;
    play_on((play_options){.add = add_silence,
                           .body = count_attempts,
                           .result = "activity 'beat' timed out; because activity Heartbeat timeout after 10 s"});
}

static void an_activity_whose_heartbeats_are_not_taken_is_told_that_its_time_is_over(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        beats_on_fiber = i != 0;
        play_on((play_options){.add = add_beat_in_vain, .body = lose_the_disk});
    }
}

/* ---- Canceling an activity --------------------------------------------------------------------------------------- */

static atomic_int was_canceled;

static hf_status beat_for_ever(hf_payload in, hf_payload *ret_out)
{
    hf_status status = HF_OK;
    (void)in;
    (void)ret_out;
    while (status == HF_OK) {
        status = hf_activity_heartbeat(hf_payload_none());
        status = status == HF_OK ? hf_sleep(hf_seconds(1)) : status;
    }
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    atomic_fetch_add(&was_canceled, 1);
    return status;
}

static hf_status lose_patience(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_minutes(1)));
    hf_status status = hf_activity_run("beat", in, NULL, .start_to_close = hf_hours(5), .heartbeat = hf_seconds(10));
    return status == HF_ERR_CANCELED ? HF_OK : status;
}

static hf_status add_beat(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", lose_patience));
    return hf_worker_add_activity(worker, "beat", beat_for_ever);
}

static hf_status let_it_end(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_main(p, &execution));
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(note_result(p, execution)); /* the scope's deadline comes */
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_CHECK(atomic_exchange(&was_canceled, 0) == 1);
    return HF_OK;
}

static void an_activity_learns_by_its_heartbeat_that_it_is_not_wanted(void **state)
{
    (void)state;
    play_on((play_options){.add = add_beat, .body = let_it_end, .result = "nothing"});
}

/* ---- Stopping ---------------------------------------------------------------------------------------------------- */

static atomic_int finished;

static hf_status take_a_while(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    hf_status status = hf_sleep(hf_seconds(5));
    atomic_fetch_add(&finished, status == HF_OK ? 1 : 100);
    return status;
}

static hf_status take_for_ever(hf_payload in, hf_payload *ret_out)
{
    const char *reason = NULL;
    (void)in;
    (void)ret_out;
    hf_status status = hf_sleep(hf_days(5));
    HF_CHECK(status == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_EXPLICIT && strcmp(reason, "the worker stops") == 0);
    atomic_fetch_add(&was_canceled, 1);
    return status;
}

static hf_status ask_for_both(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("while", in, ret_out, .start_to_close = hf_days(9)));
    return hf_activity_run("ever", in, ret_out, .start_to_close = hf_days(9));
}

static hf_status add_both(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", ask_for_both));
    HF_TRY(hf_worker_add_activity(worker, "while", take_a_while));
    return hf_worker_add_activity(worker, "ever", take_for_ever);
}

static hf_status start_and_leave(play *p)
{
    HF_TRY(start_main(p, NULL));
    return hf_sleep(hf_seconds(1));
}

static void a_stopping_worker_lets_an_activity_finish(void **state)
{
    (void)state;
    atomic_store(&finished, 0);
    play_on((play_options){.add = add_both, .body = start_and_leave, .log = "w: ScheduleActivityTask 1 while;\n"});
    assert_int_equal(atomic_load(&finished), 4);
}

static hf_status start_and_leave_later(play *p)
{
    HF_TRY(start_main(p, NULL));
    return hf_sleep(hf_seconds(30));
}

static void a_stopping_worker_cancels_what_does_not_finish(void **state)
{
    (void)state;
    atomic_store(&was_canceled, 0);
    play_on((play_options){.add = add_both,
                           .body = start_and_leave_later,
                           .log = "w: ScheduleActivityTask 1 while;\nw: ScheduleActivityTask 2 ever;\n"});
    assert_int_equal(atomic_exchange(&was_canceled, 0), 4);
}

/* A service that ends takes its worker with it. */
static hf_status run_until_closed(void *arg)
{
    play *p = arg;
    hf_status status = hf_worker_run(p->worker);
    HF_CHECK(status == HF_ERR_STORE);
    return HF_OK;
}

static hf_status close_under_it(void *arg)
{
    play *p = arg;
    HF_TRY(play_open(p));
    HF_TRY(hf_worker_new(p->service, "orders", &p->worker));
    HF_TRY(add_both(p->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_until_closed, p));
        HF_TRY(start_and_leave(p));
        HF_CHECK(hf_worker_free(p->worker) == HF_ERR_MISUSE);
        tap_close(p->tap, HF_ERR_STORE);
        HF_TRY(hf_join(scope));
    }
    HF_CHECK(hf_worker_run(p->worker) == HF_ERR_MISUSE);
    HF_TRY(hf_worker_free(p->worker));
    return play_close(p);
}

static void a_worker_ends_with_its_service(void **state)
{
    (void)state;
    static play p;
    memset(&p, 0, sizeof p);
    HF_CHECK(hf_sim_run(1, 2, close_under_it, &p, NULL) == HF_OK);
}

/* A worker inside a scope that is canceled stops as if it had been told. */
static hf_status run_inside(void *arg)
{
    play *p = arg;
    HF_CHECK(hf_worker_run(p->worker) == HF_OK);
    return HF_OK;
}

static hf_status cancel_around_it(void *arg)
{
    play *p = arg;
    HF_TRY(play_open(p));
    HF_TRY(hf_worker_new(p->service, "orders", &p->worker));
    HF_TRY(add_both(p->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_inside, p));
        HF_TRY(start_and_leave(p));
        HF_TRY(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p->worker));
    return play_close(p);
}

static void a_canceled_worker_stops_as_if_told(void **state)
{
    (void)state;
    static play p;
    memset(&p, 0, sizeof p);
    atomic_store(&finished, 0);
    HF_CHECK(hf_sim_run(1, 2, cancel_around_it, &p, NULL) == HF_OK);
    assert_int_equal(atomic_load(&finished), 1);
}

/* ---- Real threads ------------------------------------------------------------------------------------------------ */

static hf_status twice(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "%ld", 2 * strtol((const char *)in.data, NULL, 10));
}

static hf_status ask_one(void *arg)
{
    hf_payload *both = arg;
    return hf_activity_run("twice", both[0], &both[1], .start_to_close = hf_seconds(60));
}

static hf_status sum_up(hf_payload in, hf_payload *ret_out)
{
    enum { MANY = 8 };
    hf_payload pairs[MANY][2];
    long sum = 0;
    (void)in;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_payload_printf(&pairs[i][0], "%d", i));
        pairs[i][1] = hf_payload_none();
        HF_TRY(hf_fork(scope, ask_one, pairs[i]));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < MANY; i++) {
        sum += strtol((const char *)pairs[i][1].data, NULL, 10);
    }
    HF_TRY(hf_sleep(hf_milliseconds(1))); /* of real time, on real threads */
    return hf_payload_printf(ret_out, "%ld", sum);
}

static hf_service *open_memory(void)
{
    hf_service *service = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    return service;
}

static void *run_worker(void *arg)
{
    hf_worker *worker = arg;
    HF_CHECK(hf_worker_run(worker) == HF_OK);
    return NULL;
}

static void a_workers_identity_is_no_longer_than_an_id(void **state)
{
    (void)state;
    char text[1002];
    memset(text, 'x', sizeof text);
    hf_service *service = open_memory();
    hf_worker *worker = NULL;
    text[1001] = '\0';
    assert_int_equal(hf_worker_new(service, "orders", &worker, .identity = text), HF_ERR_INVALID);
    text[1000] = '\0';
    assert_int_equal(hf_worker_new(service, "orders", &worker, .identity = text), HF_OK);
    assert_int_equal(hf_worker_free(worker), HF_OK);
    text[HF_QUEUE_LEN_MAX] = '\0';
    assert_int_equal(hf_worker_new(service, text, &worker), HF_OK); /* its own has the queue in it */
    assert_in_range(worker->identity.len, HF_QUEUE_LEN_MAX, 1000);
    assert_int_equal(hf_worker_free(worker), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

static void a_worker_is_called_by_process_host_and_queue(void **state)
{
    (void)state;
    char host[256] = "";
    char expected[400];
    hf_service *service = open_memory();
    hf_worker *worker = NULL;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(expected, sizeof expected, "%lld@%s@orders", (long long)getpid(), host);
    assert_int_equal(hf_worker_new(service, "orders", &worker), HF_OK);
    assert_string_equal(worker->identity.data, expected);
    assert_int_equal(hf_worker_free(worker), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

static void a_worker_refuses_bounds_that_are_none(void **state)
{
    (void)state;
    static const hf_worker_options BAD[] = {
        {.workflows_max = HF_OFF},    {.workflows_max = -3},         {.activities_max = -3},
        {.cached_max = -3},           {.pollers_max = HF_UNLIMITED}, {.activity_pollers_max = HF_UNLIMITED},
        {.cached_bytes_max = HF_OFF}, {.pollers_max = HF_OFF},       {.activity_pollers_max = HF_OFF},
    };
    static const hf_worker_options PAST[] = {
        {.sticky_timeout = {.ns = -2}},
        {.shutdown_grace = {.ns = -2}},
        {.shutdown_force = {.ns = INT64_MIN}},
        {.idle_timeout = {.ns = -2}},
    };
    hf_service *service = open_memory();
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_worker *worker = NULL;
        hf_worker_options options = BAD[i];
        options.size = sizeof options;
        assert_int_equal(hf_worker_new_with(service, "orders", &worker, &options), HF_ERR_INVALID);
        assert_non_null(strstr(hf_error_text(), ": give a number above 0"));
    }
    for (size_t i = 0; i < HF_COUNT_OF(PAST); i++) {
        hf_worker *worker = NULL;
        hf_worker_options options = PAST[i];
        options.size = sizeof options;
        assert_int_equal(hf_worker_new_with(service, "orders", &worker, &options), HF_ERR_INVALID);
        assert_non_null(strstr(hf_error_text(), "is negative: give a time, or HF_SPAN_OFF"));
    }
    assert_int_equal(hf_close(service), HF_OK);
}

/* A task that was taken and has no thread would wait here, although another worker may have one for it. */
static void a_worker_has_no_more_slots_than_there_can_be_threads(void **state)
{
    (void)state;
    static const struct {
        int activities_max;
        bool on_fiber;
        hf_status status;
    } CASES[] = {{1024, false, HF_OK},         {1025, false, HF_ERR_INVALID}, {1025, true, HF_OK},
                 {HF_UNLIMITED, false, HF_OK}, {HF_UNLIMITED, true, HF_OK},   {HF_OFF, false, HF_OK}};
    hf_service *service = open_memory();
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_worker *worker = NULL;
        assert_int_equal(hf_worker_new(service, "orders", &worker, .activities_max = CASES[i].activities_max), HF_OK);
        assert_int_equal(hf_worker_add_activity(worker, "twice", twice, .on_fiber = CASES[i].on_fiber),
                         CASES[i].status);
        if (CASES[i].status != HF_OK) {
            assert_string_equal(hf_error_text(),
                                "hf_worker_add_activity: 'twice' needs a thread, and a worker has at most 1024, but "
                                ".activities_max is 1025: lower it, or add the activity with .on_fiber if it never "
                                "blocks");
        }
        assert_int_equal(hf_worker_free(worker), HF_OK);
    }
    assert_int_equal(hf_close(service), HF_OK);
}

static void threads_with(hf_worker_options options)
{
    enum { MANY = 20 };
    hf_service *service = open_memory();
    hf_worker *worker = NULL;
    pthread_t thread;
    options.size = sizeof options;
    assert_int_equal(hf_worker_new_with(service, "orders", &worker, &options), HF_OK);
    assert_int_equal(hf_worker_add_workflow(worker, "main", sum_up), HF_OK);
    assert_int_equal(hf_worker_add_activity(worker, "twice", twice), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);
    hf_execution *all[MANY];
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(hf_start(service, "main", hf_payload_none(), &all[i], .task_queue = "orders"), HF_OK);
    }
    for (int i = 0; i < MANY; i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        assert_int_equal(hf_result(all[i], &out), HF_OK);
        assert_string_equal((const char *)out.data, "56");
        hf_execution_free(all[i]);
    }
    if (options.stop_on != 0) {
        assert_int_equal(kill(getpid(), options.stop_on), 0);
    } else {
        assert_int_equal(hf_worker_stop(worker), HF_OK);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hf_worker_free(worker), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

static void twenty_workflows_run_on_real_threads(void **state)
{
    (void)state;
    threads_with((hf_worker_options){.stop_on = 0});
}

static void twenty_workflows_run_on_real_threads_without_a_cache(void **state)
{
    (void)state;
    threads_with((hf_worker_options){.cached_max = HF_OFF});
}

static void twenty_workflows_run_on_real_threads_without_bounds(void **state)
{
    (void)state;
    threads_with(
        (hf_worker_options){.cached_max = HF_UNLIMITED, .workflows_max = HF_UNLIMITED, .activities_max = HF_UNLIMITED});
}

static void twenty_workflows_share_a_small_cache_until_the_signal(void **state)
{
    (void)state;
    threads_with((hf_worker_options){.cached_max = 3, .stop_on = SIGTERM, .workflows_max = 2, .activities_max = 2});
}

static void a_worker_that_cannot_hear_its_signal_does_not_begin(void **state)
{
    (void)state;
    hf_service *service = open_memory();
    hf_worker *worker = NULL;
    assert_int_equal(hf_worker_new(service, "orders", &worker, .stop_on = SIGKILL), HF_OK);
    assert_int_equal(hf_worker_run(worker), HF_ERR_INVALID);
    assert_string_equal(hf_error_text(),
                        "the worker ended: signal 9 cannot be caught: it is unknown, SIGKILL, SIGSTOP or a fault");
    assert_int_equal(hf_worker_free(worker), HF_OK);

    hf_runtime *rt = NULL;
    hf_os_signals *signals = NULL;
    int number = SIGTERM;
    assert_int_equal(hf_runtime_new(&rt, .threads = 1), HF_OK);
    assert_int_equal(hf_os_signals_open(&number, 1, &signals, .runtime = rt), HF_OK);
    assert_int_equal(hf_worker_new(service, "orders", &worker, .stop_on = SIGTERM), HF_OK);
    assert_int_equal(hf_worker_run(worker), HF_ERR_EXISTS);
    assert_non_null(strstr(hf_error_text(), "signal 15 has another use in this process"));
    assert_int_equal(hf_worker_free(worker), HF_OK);
    assert_int_equal(hf_os_signals_close(signals), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

/* A worker for a queue of its own, on a thread of its own. When this returns it listens: it has run a workflow. */
typedef struct listener {
    hf_worker *worker;
    pthread_t thread;
} listener;

static void listener_begin(listener *l, hf_service *service, const char *queue, hf_runtime *rt)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    assert_int_equal(hf_worker_new(service, queue, &l->worker, .runtime = rt, .stop_on = SIGUSR2), HF_OK);
    assert_int_equal(hf_worker_add_workflow(l->worker, "main", sum_up), HF_OK);
    assert_int_equal(hf_worker_add_activity(l->worker, "twice", twice), HF_OK);
    assert_int_equal(pthread_create(&l->thread, NULL, run_worker, l->worker), 0);
    assert_int_equal(hf_start(service, "main", hf_payload_none(), &execution, .task_queue = queue), HF_OK);
    assert_int_equal(hf_result(execution, NULL, .timeout = hf_minutes(1)), HF_OK);
}

static void listener_end(listener *l)
{
    assert_int_equal(pthread_join(l->thread, NULL), 0);
    assert_int_equal(hf_worker_free(l->worker), HF_OK);
}

/* Workers that come and go, two of them on one runtime, the others with their own. */
static void one_signal_stops_every_worker_that_asked_for_it(void **state)
{
    (void)state;
    hf_service *service = open_memory();
    hf_runtime *rt = NULL;
    listener all[4];
    assert_int_equal(hf_runtime_new(&rt, .threads = 1), HF_OK);
    listener_begin(&all[0], service, "a", NULL);
    listener_begin(&all[1], service, "b", rt);
    listener_begin(&all[2], service, "c", rt);
    assert_int_equal(hf_worker_stop(all[0].worker), HF_OK); /* the first one to ask does not take it away */
    listener_end(&all[0]);
    listener_begin(&all[3], service, "d", NULL);

    hf_os_signals *signals = NULL;
    int number = SIGUSR2;
    assert_int_equal(hf_os_signals_open(&number, 1, &signals, .runtime = rt), HF_ERR_EXISTS);
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    for (int i = 1; i < 4; i++) {
        listener_end(&all[i]);
    }
    assert_int_equal(hf_os_signals_open(&number, 1, &signals, .runtime = rt), HF_OK); /* the last one gave it back */
    assert_int_equal(hf_os_signals_close(signals), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
}

static hf_status run_beside(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status add_sum(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", sum_up));
    return hf_worker_add_activity(worker, "twice", twice);
}

static hf_status raise_for_two(play *p)
{
    HF_AUTO(hf_worker_free) hf_worker *one = NULL;
    HF_AUTO(hf_worker_free) hf_worker *two = NULL;
    HF_TRY(hf_worker_new(p->service, "ones", &one, .stop_on = SIGTERM));
    HF_TRY(hf_worker_new(p->service, "twos", &two, .stop_on = SIGTERM));
    HF_TRY(add_sum(one));
    HF_TRY(add_sum(two));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "two"));
    HF_TRY(hf_fork(scope, run_beside, one));
    HF_TRY(hf_fork(scope, run_beside, two));
    HF_TRY(hf_sleep(hf_seconds(1))); /* of virtual time: both listen by now */
    HF_TRY(hf_sim_raise(hf_runtime_current()->env, SIGTERM));
    HF_TRY(hf_join(scope)); /* else the simulation stands still, and says so */
    return run_one(p);      /* who did not ask goes on */
}

static void one_signal_stops_two_workers_in_a_simulation(void **state)
{
    (void)state;
    play_on((play_options){.add = add_sum, .body = raise_for_two, .result = "56"});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(whoever_waits_for_months_needs_no_more_memory),
        cmocka_unit_test(a_service_in_trouble_does_not_fill_the_log),
        cmocka_unit_test(heartbeats_are_throttled_and_the_last_one_arrives),
        cmocka_unit_test(heartbeats_go_on_after_one_that_found_no_memory),
        cmocka_unit_test(an_activity_whose_heartbeats_are_not_taken_is_told_that_its_time_is_over),
        cmocka_unit_test(an_activity_that_was_not_heard_in_time_is_left_to_its_timeout),
        cmocka_unit_test(an_activity_learns_by_its_heartbeat_that_it_is_not_wanted),
        cmocka_unit_test(a_stopping_worker_lets_an_activity_finish),
        cmocka_unit_test(a_stopping_worker_cancels_what_does_not_finish),
        cmocka_unit_test(a_worker_ends_with_its_service),
        cmocka_unit_test(a_canceled_worker_stops_as_if_told),
        cmocka_unit_test(a_workers_identity_is_no_longer_than_an_id),
        cmocka_unit_test(a_worker_is_called_by_process_host_and_queue),
        cmocka_unit_test(a_worker_refuses_bounds_that_are_none),
        cmocka_unit_test(a_worker_has_no_more_slots_than_there_can_be_threads),
        cmocka_unit_test(twenty_workflows_run_on_real_threads),
        cmocka_unit_test(twenty_workflows_run_on_real_threads_without_a_cache),
        cmocka_unit_test(twenty_workflows_run_on_real_threads_without_bounds),
        cmocka_unit_test(twenty_workflows_share_a_small_cache_until_the_signal),
        cmocka_unit_test(a_worker_that_cannot_hear_its_signal_does_not_begin),
        cmocka_unit_test(one_signal_stops_every_worker_that_asked_for_it),
        cmocka_unit_test(one_signal_stops_two_workers_in_a_simulation),
    };
    return hf_test_main("worker", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
