/* Answers of activities from a depot, on the real worker and engine, in memory, on virtual time: what is kept and for how
 * long, calls that several attempts share, and what each attempt hears of them. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <string.h>

/* ---- Everything about a play ------------------------------------------------------------------------------------- */

typedef struct play {
    hf_service *service;
    hf_depot *answers;
    hf_worker *workers[2];
    hf_scope *scope; /* of the workers */
} play;

static int calls;          /* of the activity, so far */
static int running;        /* now */
static int ended_canceled; /* calls that heard of a cancel */
static hf_cancel_why heard_why;
static int to_fail;      /* calls that fail first */
static bool is_final;    /* for good */
static hf_span takes;    /* a call */
static int deaf;         /* it does not end when it is canceled, for this many seconds */
static bool completes;   /* although it was canceled */
static char seen_in[64]; /* input of the last call */
static hf_span beats;    /* it sends heartbeats this often */
static bool is_pending;  /* it returns HF_PENDING */
static int shared_marks;
static const char *const NO_MARK = "none";

static void begin_counts(void)
{
    calls = running = ended_canceled = to_fail = deaf = shared_marks = 0;
    heard_why = HF_WHY_NOT;
    is_final = completes = is_pending = false;
    takes = hf_seconds(1);
    beats = hf_nanoseconds(0);
    seen_in[0] = '\0';
}

/* Waits as long as a call takes, with heartbeats. */
static hf_status take_time(void)
{
    int64_t until = hf_now(NULL).ns + takes.ns;
    while (hf_now(NULL).ns < until) {
        int64_t left = until - hf_now(NULL).ns;
        bool has_beats = beats.ns > 0 && beats.ns < left;
        HF_TRY(hf_sleep(hf_nanoseconds(has_beats ? beats.ns : left)));
        if (has_beats) {
            HF_TRY(hf_activity_heartbeat(hf_payload_of_json("\"half\"")));
        }
    }
    return HF_OK;
}

static hf_status look_up(hf_payload in, hf_payload *ret_out)
{
    int number = ++calls;
    running++;
    HF_CHECK(hf_activity_info() != NULL && hf_activity_arg() == &calls);
    (void)snprintf(seen_in, sizeof seen_in, "%.*s", (int)in.len, in.data != NULL ? (const char *)in.data : "");
    hf_status status = take_time();
    if (status == HF_ERR_CANCELED) {
        ended_canceled++;
        heard_why = hf_activity_cancel_why();
        if (deaf > 0) {
            HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
            HF_TRY(hf_shield_open(hf_hours(1), &shield));
            HF_TRY(hf_sleep(hf_seconds(deaf)));
        }
        status = completes ? HF_OK : status;
    }
    running--;
    HF_TRY(status);
    if (is_pending) {
        return HF_PENDING;
    }
    if (to_fail > 0) {
        to_fail--;
        return hf_activity_fail("not now", .type = "Busy", .is_final = is_final, .details = hf_payload_of_json("[1]"));
    }
    return hf_payload_printf(ret_out, "\"%s is %d\"", seen_in, number);
}

/* Input and result of an activity with a memo are those of its workflow. */
static hf_status once(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("look up", in, ret_out, .start_to_close = hf_minutes(10));
}

static hf_status strict(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("look up", in, ret_out, .start_to_close = hf_seconds(3), .attempts_max = 1);
}

static hf_status with_heartbeats(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("look up", in, ret_out, .start_to_close = hf_minutes(10), .heartbeat = hf_seconds(5),
                           .attempts_max = 1);
}

static hf_status locally(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run_local("look up", in, ret_out, .start_to_close = hf_minutes(1));
}

/* "a" for everything that begins with an a. */
static hf_status first_letter(hf_payload in, hf_payload *ret_key)
{
    if (in.len == 0) {
        return hf_raise_typed(HF_ERR_INVALID, "NoLetter", "there is no first letter");
    }
    return hf_payload_copy(hf_payload_of_bytes((const char *)in.data + 1, 1), ret_key); /* after the quote */
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_memo_key key_now; /* of the memo */
static hf_span ttl_now;     /* of the memo */
static bool on_fiber;       /* the activity */
static hf_store *store_now; /* of the depot; NULL = none */

static hf_status open_answers(play *p)
{
    hf_depot_options options = {.size = sizeof options};
    return hf_depot_open_in("answers", &p->answers, &options, store_now);
}

static hf_status hire(play *p, int i)
{
    HF_TRY(hf_worker_new(p->service, "q", &p->workers[i], .pollers_max = 2, .activity_pollers_max = 2,
                         .shutdown_grace = hf_milliseconds(1), .shutdown_force = hf_minutes(1)));
    hf_worker *worker = p->workers[i];
    HF_TRY(hf_worker_add_workflow(worker, "once", once));
    HF_TRY(hf_worker_add_workflow(worker, "strict", strict));
    HF_TRY(hf_worker_add_workflow(worker, "with heartbeats", with_heartbeats));
    HF_TRY(hf_worker_add_workflow(worker, "locally", locally));
    HF_TRY(hf_worker_add_activity(worker, "look up", look_up, .arg = &calls, .on_fiber = on_fiber,
                                  .memo = hf_depot_memo(p->answers, .ttl = ttl_now, .key = key_now)));
    return hf_fork(p->scope, run_worker, worker);
}

static hf_status fire(play *p, int i)
{
    if (p->workers[i] != NULL) {
        HF_TRY(hf_worker_stop(p->workers[i]));
    }
    return HF_OK;
}

static hf_execution *start(play *p, const char *type, const char *in)
{
    hf_execution *run = NULL;
    HF_CHECK(hf_start(p->service, type, hf_payload_of_json(in), &run, .task_queue = "q") == HF_OK);
    return run;
}

/* Whether the run ended with this result and mark; frees it. */
static void expect(hf_execution *run, const char *result, const char *mark)
{
    hf_payload out = hf_payload_none();
    hf_payload meta = hf_payload_none();
    hf_status status = hf_result(run, &out, .timeout = hf_days(1));
    HF_CHECK_SAY(status == HF_OK && out.data != NULL && strcmp(out.data, result) == 0, "%s, not %s",
                 status == HF_OK ? (const char *)out.data : hf_error_text(), result);
    status = hf_payload_meta(out, HF_MEMO_NAME, &meta);
    const char *has = status == HF_OK ? meta.data : NO_MARK;
    HF_CHECK_SAY(mark == NULL || strcmp(has, mark) == 0, "the mark is %s, not %s", has, mark);
    shared_marks += strcmp(has, "shared") == 0;
    hf_payload_free(&meta);
    hf_payload_free(&out);
    hf_execution_free(run);
}

static void expect_failure(hf_execution *run, const char *text)
{
    hf_status status = hf_result(run, NULL, .timeout = hf_days(1));
    HF_CHECK_SAY(status == HF_ERR_FAILED && strstr(hf_error_text(), text) != NULL, "%s: %s, not %s",
                 hf_status_name(status), hf_error_text(), text);
    hf_execution_free(run);
}

/* ---- Scenes ------------------------------------------------------------------------------------------------------ */

static hf_status scene_hit(play *p)
{
    expect(start(p, "once", "\"ann\""), "\"\"ann\" is 1\"", NO_MARK);
    HF_TRY(hf_sleep(hf_seconds(12)));
    expect(start(p, "once", "\"ann\""), "\"\"ann\" is 1\"", "hit, age 12 s");
    expect(start(p, "once", "\"bob\""), "\"\"bob\" is 2\"", NO_MARK);
    expect(start(p, "locally", "\"bob\""), "\"\"bob\" is 2\"", "hit, age 0 s");
    HF_CHECK(calls == 2);
    /* nothing from before an invalidation is used */
    HF_TRY(hf_depot_invalidate_namespace(p->answers, "memo"));
    expect(start(p, "once", "\"ann\""), "\"\"ann\" is 3\"", NO_MARK);
    return HF_OK;
}

static hf_status scene_ttl(play *p)
{
    expect(start(p, "once", "1"), "\"1 is 1\"", NO_MARK);
    HF_TRY(hf_sleep(hf_minutes(59)));
    expect(start(p, "once", "1"), "\"1 is 1\"", "hit, age 3540 s");
    HF_TRY(hf_sleep(hf_minutes(2)));
    expect(start(p, "once", "1"), "\"1 is 2\"", NO_MARK);
    HF_TRY(hf_sleep(hf_seconds(3)));
    expect(start(p, "once", "1"), "\"1 is 2\"", "hit, age 3 s"); /* made again, its age begins again */
    return HF_OK;
}

static hf_status scene_shared(play *p)
{
    hf_execution *runs[20];
    for (int i = 0; i < 20; i++) {
        runs[i] = start(p, "once", "7");
    }
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_CHECK(running == 1);
    for (int i = 0; i < 20; i++) {
        expect(runs[i], "\"7 is 1\"", NULL);
    }
    HF_CHECK_SAY(calls == 1 && shared_marks == 19, "%d calls, %d shared", calls, shared_marks);
    expect(start(p, "once", "7"), "\"7 is 1\"", "hit, age 0 s");
    return HF_OK;
}

/* A canceled run leaves alone, and the last one cancels the call. */
static hf_status scene_cancel_one(play *p)
{
    takes = hf_seconds(10);
    hf_execution *first = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_execution *second = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_cancel(first));
    expect_failure(first, "cancel");
    HF_CHECK(running == 1 && ended_canceled == 0 && calls == 1);
    expect(second, "\"7 is 1\"", "shared");
    HF_CHECK(calls == 1 && ended_canceled == 0);
    return HF_OK;
}

static hf_status scene_cancel_all(play *p)
{
    takes = hf_seconds(10);
    hf_execution *first = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_execution *second = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_cancel(first));
    expect_failure(first, "cancel");
    HF_CHECK(running == 1 && ended_canceled == 0);
    HF_TRY(hf_cancel(second));
    expect_failure(second, "cancel");
    HF_CHECK(running == 0 && ended_canceled == 1 && heard_why == HF_WHY_CANCELED);
    takes = hf_seconds(1);
    expect(start(p, "once", "7"), "\"7 is 2\"", NO_MARK);
    return HF_OK;
}

/* While a canceled call still ends, its key is free; and one that completes all the same is an answer. */
static hf_status scene_cancel_slowly(play *p)
{
    takes = hf_seconds(10);
    deaf = 5;
    hf_execution *first = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_cancel(first));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(running == 1 && ended_canceled == 1);
    takes = hf_milliseconds(10);
    expect(start(p, "once", "7"), "\"7 is 2\"", NO_MARK);
    HF_CHECK(running == 1);
    expect_failure(first, "cancel");
    completes = true;
    takes = hf_seconds(10);
    hf_execution *third = start(p, "once", "8");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_cancel(third));
    HF_TRY(hf_sleep(hf_seconds(9)));
    hf_execution_free(third);
    expect(start(p, "once", "8"), "\"8 is 3\"", "hit, age 4 s");
    return HF_OK;
}

/* A failure goes to all who share it and is not kept; each has its own retry policy. */
static hf_status scene_failure(play *p)
{
    to_fail = 1;
    hf_execution *patient = start(p, "once", "7");
    hf_execution *impatient = start(p, "strict", "7");
    expect_failure(impatient, "not now");
    expect(patient, "\"7 is 2\"", NO_MARK);
    HF_CHECK(calls == 2);
    expect(start(p, "strict", "7"), "\"7 is 2\"", NULL);
    to_fail = 1;
    is_final = true;
    expect_failure(start(p, "once", "8"), "not now");
    expect(start(p, "once", "8"), "\"8 is 4\"", NO_MARK);
    is_pending = true;
    expect_failure(start(p, "once", "9"), "cannot be answered later");
    return HF_OK;
}

/* The timeout of an attempt ends its own wait. */
static hf_status scene_timeout(play *p)
{
    takes = hf_seconds(10);
    hf_execution *patient = start(p, "once", "7");
    hf_execution *hasty = start(p, "strict", "7");
    int64_t before = hf_now(NULL).ns;
    expect_failure(hasty, "StartToClose");
    HF_CHECK(hf_now(NULL).ns - before < hf_seconds(4).ns && running == 1);
    expect(patient, "\"7 is 1\"", NULL);
    HF_CHECK(calls == 1);
    /* alone it ends the call */
    expect_failure(start(p, "strict", "8"), "StartToClose");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(running == 0 && ended_canceled == 1 && heard_why == HF_WHY_TIMED_OUT);
    return HF_OK;
}

/* Each attempt repeats the heartbeats of the call; one that expects them and hears none has failed. */
static hf_status scene_heartbeats(play *p)
{
    takes = hf_seconds(20);
    beats = hf_seconds(2);
    hf_execution *first = start(p, "with heartbeats", "7");
    HF_TRY(hf_sleep(hf_seconds(7)));
    hf_execution *second = start(p, "with heartbeats", "7"); /* hears the last one at once */
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_description *shown = NULL;
    HF_TRY(hf_describe(second, &shown));
    HF_CHECK(shown->activity_count == 1 && shown->activities[0].heartbeat.data != NULL &&
             strcmp(shown->activities[0].heartbeat.data, "\"half\"") == 0);
    hf_description_free(shown);
    expect(first, "\"7 is 1\"", NO_MARK);
    expect(second, "\"7 is 1\"", "shared");
    beats = hf_nanoseconds(0);
    expect_failure(start(p, "with heartbeats", "8"), "Heartbeat timeout");
    return HF_OK;
}

static hf_status scene_keys(play *p)
{
    expect(start(p, "once", "\"anna\""), "\"\"anna\" is 1\"", NO_MARK);
    expect(start(p, "once", "\"arthur\""), "\"\"anna\" is 1\"", "hit, age 0 s");
    expect(start(p, "once", "\"bob\""), "\"\"bob\" is 2\"", NO_MARK);
    HF_TRY(hf_depot_invalidate(p->answers, hf_depot_key_of("memo", "look up", "a")));
    expect(start(p, "once", "\"anna\""), "\"\"anna\" is 3\"", NO_MARK);
    hf_execution *run = NULL;
    HF_TRY(hf_start(p->service, "strict", hf_payload_none(), &run, .task_queue = "q"));
    expect_failure(run, "there is no first letter");
    return HF_OK;
}

/* Inputs that are too long for a key differ by their last byte, and so do other encodings. */
static hf_status scene_long_inputs(play *p)
{
    static char text[5000];
    takes = hf_milliseconds(1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            (void)memset(text, 'x', sizeof text - 1);
            text[0] = text[sizeof text - 2] = '"';
            text[sizeof text - 3] = (char)('a' + i);
            hf_execution *run = start(p, "once", text);
            HF_CHECK(hf_result(run, NULL) == HF_OK);
            hf_execution_free(run);
        }
        HF_CHECK_SAY(calls == 3, "%d calls in round %d", calls, round);
    }
    hf_execution *run = NULL;
    HF_TRY(hf_start(p->service, "once", hf_payload_of_bytes(text, strlen(text)), &run, .task_queue = "q"));
    HF_CHECK(hf_result(run, NULL) == HF_OK && calls == 4);
    hf_execution_free(run);
    return HF_OK;
}

/* The key is invalidated while the call runs: its answer is given, but not kept (DP3). */
static hf_status scene_invalidated(play *p)
{
    takes = hf_seconds(10);
    hf_execution *run = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(running == 1);
    HF_TRY(hf_depot_invalidate_all(p->answers, .hard = true));
    expect(run, "\"7 is 1\"", NO_MARK);
    expect(start(p, "once", "7"), "\"7 is 2\"", NO_MARK);
    expect(start(p, "once", "7"), "\"7 is 2\"", "hit, age 0 s");
    return HF_OK;
}

/* The worker that runs the call stops: the attempt of another worker runs it. */
static hf_status scene_two_workers(play *p)
{
    takes = hf_seconds(30);
    hf_execution *runs[8];
    HF_TRY(hire(p, 1));
    for (int i = 0; i < 8; i++) {
        runs[i] = start(p, "once", "7");
    }
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(running == 1 && calls == 1);
    HF_TRY(fire(p, 0));
    HF_TRY(hf_sleep(hf_seconds(2)));
    takes = hf_seconds(5);
    for (int i = 0; i < 8; i++) {
        hf_payload out = hf_payload_none();
        HF_CHECK(hf_result(runs[i], &out, .timeout = hf_days(1)) == HF_OK);
        hf_payload_free(&out);
        hf_execution_free(runs[i]);
    }
    HF_CHECK_SAY(calls <= 2, "%d calls", calls);
    return HF_OK;
}

/* A call that does not end when it is canceled: the attempt that waits for it gives its slot back, once. */
static hf_status scene_zombie(play *p)
{
    hf_worker_stats stats;
    if (on_fiber) {
        return HF_OK; /* a fiber that waits is not one */
    }
    takes = hf_seconds(10);
    deaf = 60;
    hf_execution *run = start(p, "once", "7");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_worker_stat(p->workers[0], &stats));
    HF_CHECK_SAY(stats.activities == 1 && stats.activity_zombies == 0, "%d activities, %d zombies",
                 (int)stats.activities, (int)stats.activity_zombies);
    HF_TRY(hf_cancel(run));
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(hf_worker_stat(p->workers[0], &stats));
    HF_CHECK_SAY(stats.activities == 1 && stats.activity_zombies == 1, "%d activities, %d zombies",
                 (int)stats.activities, (int)stats.activity_zombies);
    expect_failure(run, "cancel");
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_worker_stat(p->workers[0], &stats));
    HF_CHECK(stats.activities == 0 && stats.activity_zombies == 0 && running == 0);
    return HF_OK;
}

/* ---- Playing ----------------------------------------------------------------------------------------------------- */

typedef hf_status (*scene)(play *p);
static scene scene_now;

static hf_status play_it(void *arg)
{
    (void)arg;
    play p = {.service = NULL};
    HF_TRY(open_answers(&p));
    HF_TRY(hf_open("memory:", &p.service));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        p.scope = scope;
        HF_TRY(hire(&p, 0));
        hf_status status = scene_now(&p);
        HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
        HF_TRY(fire(&p, 0));
        HF_TRY(fire(&p, 1));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p.workers[0]));
    HF_TRY(hf_worker_free(p.workers[1]));
    HF_CHECK(running == 0);
    HF_CHECK(hf_close(p.service) == HF_OK);
    return hf_depot_close(p.answers);
}

static void one_seed(uint64_t seed)
{
    begin_counts();
    on_fiber = seed % 2 != 0;
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed / 2 % 3), play_it, NULL, NULL) == HF_OK);
}

static void perform(scene s)
{
    scene_now = s;
    hf_each_seed("memo", 12, one_seed);
    key_now = NULL;
    ttl_now = hf_nanoseconds(0);
}

#define SCENE(name, ...)           \
    static void name(void **state) \
    {                              \
        (void)state;               \
        ttl_now = hf_hours(1);     \
        __VA_ARGS__;               \
    }
SCENE(a_kept_answer_is_given_without_a_call, perform(scene_hit))
SCENE(an_answer_is_used_within_its_ttl, perform(scene_ttl))
SCENE(S10_equal_inputs_share_one_call, perform(scene_shared)) /* worker-M3 */
SCENE(DP7_a_canceled_run_leaves_the_others_their_call, perform(scene_cancel_one))
SCENE(DP7_the_last_canceled_run_cancels_the_call, perform(scene_cancel_all))
SCENE(DP7_a_call_that_ends_slowly_does_not_hold_its_key, perform(scene_cancel_slowly))
SCENE(DP7_failures_reach_all_and_are_not_kept, perform(scene_failure))
SCENE(DP7_a_timeout_is_of_one_attempt, perform(scene_timeout))
SCENE(heartbeats_are_repeated_by_each_attempt, perform(scene_heartbeats))
SCENE(a_key_function_says_which_inputs_are_equal, key_now = first_letter; perform(scene_keys))
SCENE(long_inputs_are_told_apart, perform(scene_long_inputs))
SCENE(DP3_an_answer_from_before_an_invalidation_is_not_kept, perform(scene_invalidated))
SCENE(a_call_that_does_not_end_is_one_zombie, perform(scene_zombie))
SCENE(another_worker_goes_on_when_one_stops, perform(scene_two_workers))

/* ---- A file ------------------------------------------------------------------------------------------------------ */

static hf_status scene_before(play *p)
{
    expect(start(p, "once", "7"), "\"7 is 1\"", NO_MARK);
    return HF_OK;
}

static hf_status scene_after(play *p)
{
    expect(start(p, "once", "7"), "\"7 is 1\"", NULL);
    expect(start(p, "once", "7"), "\"7 is 1\"", NULL);
    HF_CHECK(calls == 1);
    expect(start(p, "once", "8"), "\"8 is 2\"", NO_MARK);
    return HF_OK;
}

/* The process ends while the function runs: nothing is kept, and the next one calls it again. */
static hf_status scene_cut_off(play *p)
{
    takes = hf_seconds(20);
    hf_execution *run = start(p, "once", "9");
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(running == 1);
    takes = hf_seconds(1);
    hf_execution_free(run);
    return HF_OK;
}

static hf_status scene_cut_off_after(play *p)
{
    HF_CHECK(ended_canceled == 1 && heard_why == HF_WHY_SHUTDOWN);
    expect(start(p, "once", "9"), "\"9 is 4\"", NO_MARK);
    return HF_OK;
}

/* Another process, with another engine, finds what the first has kept. The engine knows nothing of it: as if it had died
 * before the answer was committed there. */
static hf_status two_lives(void *arg)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *inner = NULL;
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &inner));
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}, .inner = inner};
    store_now = &store.base;
    scene_now = scene_before;
    HF_TRY(play_it(arg));
    scene_now = scene_after;
    HF_TRY(play_it(arg));
    scene_now = scene_cut_off;
    HF_TRY(play_it(arg));
    scene_now = scene_cut_off_after;
    HF_TRY(play_it(arg));
    store_now = NULL;
    hf_store_close(inner);
    return HF_OK;
}

static void one_restart(uint64_t seed)
{
    begin_counts();
    on_fiber = seed % 2 != 0;
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed / 2 % 3), two_lives, NULL, NULL) == HF_OK);
}

static void answers_survive_a_restart(void **state)
{
    (void)state;
    ttl_now = hf_hours(1);
    hf_each_seed("restart", 12, one_restart);
}

/* ---- Without memory ---------------------------------------------------------------------------------------------- */

static uint64_t allocations; /* of the worker, so far */
static uint64_t failing;     /* this one fails; 0 = none */
static hf_allocator real_memory;

static void *poor_allocate(void *state, size_t len, size_t align)
{
    bool is_of_worker = hf_runtime_current() != NULL; /* what the engine puts into an answer is not */
    return is_of_worker && ++allocations == failing ? NULL : real_memory.allocate(state, len, align);
}

/* An attempt that finds no memory fails and is tried again; nothing is lost, and nobody waits for ever. */
static hf_status scene_poor(play *p)
{
    hf_execution *runs[3];
    beats = hf_milliseconds(300);
    real_memory = p->workers[0]->memory;
    allocations = 0;
    p->workers[0]->memory.allocate = poor_allocate;
    p->workers[0]->arenas.memory.allocate = poor_allocate;
    for (int i = 0; i < 3; i++) {
        runs[i] = start(p, "once", "7");
    }
    for (int i = 0; i < 3; i++) {
        HF_CHECK_SAY(hf_result(runs[i], NULL, .timeout = hf_days(1)) == HF_OK, "allocation %d: %s", (int)failing,
                     hf_error_text());
        hf_execution_free(runs[i]);
    }
    hf_execution *last = start(p, "once", "7");
    HF_CHECK(hf_result(last, NULL, .timeout = hf_days(1)) == HF_OK);
    hf_execution_free(last);
    HF_CHECK(running == 0 && calls <= 3);
    return HF_OK;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ttl_now = hf_hours(1);
    scene_now = scene_poor;
    failing = 0;
    one_seed(1);
    uint64_t count = allocations;
    HF_CHECK(count > 20);
    for (failing = 1; failing <= count; failing++) {
        one_seed(1 + failing % 2);
    }
    failing = 0;
    print_message("%d allocations\n", (int)count);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static hf_status refuse_memos(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    char name[200] = {0};
    memset(name, 'n', sizeof name - 1);
    HF_TRY(hf_depot_open("answers", &depot));
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_CHECK(hf_worker_add_activity(worker, "a", look_up, .memo = hf_depot_memo(NULL)) == HF_ERR_MISUSE &&
             strstr(hf_error_text(), "no depot") != NULL);
    HF_CHECK(hf_worker_add_activity(worker, "a", look_up, .memo = hf_depot_memo(depot, .ttl = hf_seconds(-3))) ==
                 HF_ERR_INVALID &&
             strstr(hf_error_text(), ".ttl") != NULL);
    HF_CHECK(hf_worker_add_activity(worker, "a", look_up, .memo = hf_depot_memo(depot, .ns = "")) == HF_ERR_INVALID &&
             strstr(hf_error_text(), ".ns") != NULL);
    HF_CHECK(hf_worker_add_activity(worker, name, look_up, .memo = hf_depot_memo(depot)) == HF_ERR_INVALID &&
             strstr(hf_error_text(), "name of the activity") != NULL);
    HF_CHECK(hf_worker_add_activity(worker, name, look_up) == HF_OK);
    return HF_OK;
}

static void a_memo_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 1, refuse_memos, NULL, NULL) == HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_kept_answer_is_given_without_a_call),
    cmocka_unit_test(an_answer_is_used_within_its_ttl),
    cmocka_unit_test(S10_equal_inputs_share_one_call),
    cmocka_unit_test(DP7_a_canceled_run_leaves_the_others_their_call),
    cmocka_unit_test(DP7_the_last_canceled_run_cancels_the_call),
    cmocka_unit_test(DP7_a_call_that_ends_slowly_does_not_hold_its_key),
    cmocka_unit_test(DP7_failures_reach_all_and_are_not_kept),
    cmocka_unit_test(DP7_a_timeout_is_of_one_attempt),
    cmocka_unit_test(heartbeats_are_repeated_by_each_attempt),
    cmocka_unit_test(a_key_function_says_which_inputs_are_equal),
    cmocka_unit_test(long_inputs_are_told_apart),
    cmocka_unit_test(DP3_an_answer_from_before_an_invalidation_is_not_kept),
    cmocka_unit_test(a_call_that_does_not_end_is_one_zombie),
    cmocka_unit_test(another_worker_goes_on_when_one_stops),
    cmocka_unit_test(answers_survive_a_restart),
    cmocka_unit_test(every_allocation_may_fail),
    cmocka_unit_test(a_memo_that_does_not_fit_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot memo", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
