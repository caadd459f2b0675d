/* Activities that do not end, on the real worker and engine and on virtual time: all times of the watchdog are exact
 * here. They hang in a call that ignores cancels and returns when its thread is signalled, as read(2) does with
 * EINTR. */
#include "support/support.h"

#include "base/base.h"
#include "base/limits.h"
#include "env/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HUNGS_MAX = 160, TIMES_MAX = 100, SIGNAL = 23 };

static const int64_t SECOND = INT64_C(1000000000);
static const int64_t MS = INT64_C(1000000);

/* ---- Activities ---------------------------------------------------------------------------------------------------------- */

typedef struct hung {
    hf_word word; /* 1 = it may go on */
    int attempts;
    bool has_ended;
    int64_t canceled_ns; /* its attempt is over, by the runtime's clock */
    int count;           /* interrupts: */
    int64_t times[TIMES_MAX];
} hung;

static hf_env *env;
static hung hungs[HUNGS_MAX];
static int64_t quick_ns; /* when the quick activity ran; 0 = it did not */

static hung *hung_of(hf_payload in)
{
    return &hungs[strtol(in.data, NULL, 10) % HUNGS_MAX];
}

/* Waits until it is released, and ignores everything else. Spurious wake-ups come at the time of the last one. */
static void sit(hung *h)
{
    int64_t last = hf_now(NULL).ns;
    h->canceled_ns = hf_activity_info()->deadline.ns - (hf_wall_now(NULL).ns - last);
    while (atomic_load(&h->word) == 0) {
        (void)env->ops->word_wait(env, &h->word, 0, (hf_instant){INT64_MAX});
        int64_t now = hf_now(NULL).ns;
        if (now != last && atomic_load(&h->word) == 0 && HF_CHECK(h->count < TIMES_MAX)) {
            h->times[h->count++] = now;
        }
        last = now;
    }
}

static hf_status hang(hf_payload in, hf_payload *ret_out)
{
    hung *h = hung_of(in);
    h->attempts++;
    sit(h);
    h->has_ended = true;
    return hf_payload_printf(ret_out, "\"late\"");
}

static hf_status quick(hf_payload in, hf_payload *ret_out)
{
    quick_ns = hf_now(NULL).ns;
    return hf_payload_copy(in, ret_out);
}

static hf_status ask_to_hang(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hang", in, ret_out, .start_to_close = hf_seconds(1), .attempts_max = 1);
}

static hf_status ask_twice(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hang", in, ret_out, .start_to_close = hf_seconds(1), .attempts_max = 2);
}

static hf_status ask_patiently(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hang", in, ret_out, .start_to_close = hf_hours(5), .attempts_max = 1);
}

static hf_status ask_quickly(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("quick", in, ret_out, .start_to_close = hf_hours(1), .attempts_max = 1);
}

static void release(int i)
{
    atomic_store(&hungs[i].word, 1);
    env->ops->word_wake(env, &hungs[i].word, HF_POOL_THREADS_MAX);
}

static void release_all(void)
{
    for (int i = 0; i < HUNGS_MAX; i++) {
        release(i);
    }
}

/* ---- What was logged ----------------------------------------------------------------------------------------------------- */

static char lines[256 * 1024];
static size_t lines_len;
static int fatal_code;
static int64_t fatal_ns;

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    int len = snprintf(lines + lines_len, sizeof lines - lines_len, "%s %s\n", event, fields);
    lines_len += len > 0 && (size_t)len < sizeof lines - lines_len ? (size_t)len : 0;
}

static void on_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)message;
    fatal_code = exit_code;
    fatal_ns = env->ops->now(env).ns;
}

/* Number of lines that begin with `text`. */
static int count_lines(const char *text)
{
    int count = 0;
    for (const char *at = lines; (at = strstr(at, text)) != NULL; at++) {
        count += at == lines || at[-1] == '\n';
    }
    return count;
}

/* ---- A worker, and somebody who looks --------------------------------------------------------------------------------------- */

typedef struct scene {
    hf_status (*look)(hf_service *service); /* a fiber beside the worker, inside a shield */
    hf_watchdog_options watchdog;
    int activities_max;
    hf_span shutdown_grace;
    hf_status status; /* of hf_worker_run */
    hf_worker *worker;
} scene;

static scene now_playing;

static hf_status run_worker(void *arg)
{
    (void)arg;
    hf_status status = hf_worker_run(now_playing.worker);
    HF_CHECK_SAY(status == now_playing.status, "hf_worker_run: %s, %s", hf_status_name(status), hf_error_text());
    return HF_OK;
}

static hf_status play(void *arg)
{
    (void)arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* it looks on while the runtime shuts down */
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_shield_open(hf_hours(1000), &shield));
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .activities_max = now_playing.activities_max,
                         .shutdown_grace = now_playing.shutdown_grace));
    now_playing.worker = worker;
    HF_TRY(hf_worker_add_workflow(worker, "hang", ask_to_hang));
    HF_TRY(hf_worker_add_workflow(worker, "hang_twice", ask_twice));
    HF_TRY(hf_worker_add_workflow(worker, "hang_long", ask_patiently));
    HF_TRY(hf_worker_add_workflow(worker, "quick", ask_quickly));
    HF_TRY(hf_worker_add_activity(worker, "hang", hang));
    HF_TRY(hf_worker_add_activity(worker, "quick", quick));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, NULL));
    hf_status status = now_playing.look(service);
    release_all();
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_join(scope));
    HF_TRY(hf_worker_free(worker));
    HF_TRY(hf_sleep(hf_seconds(1))); /* work that was left behind ends, too */
    return status;
}

static void reset(scene s)
{
    now_playing = s;
    memset(hungs, 0, sizeof hungs);
    memset(lines, 0, sizeof lines);
    lines_len = 0;
    quick_ns = fatal_ns = 0;
    fatal_code = 0;
}

static uint64_t play_once(scene s, uint64_t seed, int threads)
{
    uint64_t hash = 0;
    reset(s);
    env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, threads);
    options.log = keep_line;
    options.fatal = on_fatal;
    options.watchdog = s.watchdog;
    hf_status status = hf_run_with(play, NULL, &options);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(env, &hash);
    return hash;
}

/* Runtimes with threads, and one without: jobs on a pool have threads there, too. */
static void play_scene(scene s)
{
    static const int THREADS[] = {1, 2, HF_OFF};
    for (size_t i = 0; i < HF_COUNT_OF(THREADS); i++) {
        uint64_t first = play_once(s, 1, THREADS[i]);
        HF_CHECK(first == play_once(s, 1, THREADS[i]));
        (void)play_once(s, 2 + i, THREADS[i]);
    }
}

static hf_status start(hf_service *service, const char *workflow, int number, hf_execution **ret_execution)
{
    char in[16];
    char id[32];
    (void)snprintf(in, sizeof in, "%d", number);
    (void)snprintf(id, sizeof id, "%s-%d", workflow, number);
    return hf_start(service, workflow, hf_payload_of_json(in), ret_execution, .id = id, .task_queue = "q");
}

static hf_status start_hung(hf_service *service, int count)
{
    for (int i = 0; i < count; i++) {
        HF_TRY(start(service, "hang", i, NULL));
    }
    return HF_OK;
}

static hf_status sleep_until(int64_t ns)
{
    int64_t left = ns - hf_now(NULL).ns;
    return left > 0 ? hf_sleep(hf_nanoseconds(left)) : HF_OK;
}

static hf_stats stats(void)
{
    hf_stats all;
    memset(&all, 0, sizeof all);
    HF_CHECK(hf_runtime_stats(NULL, &all) == HF_OK);
    return all;
}

/* ---- The ladder ---------------------------------------------------------------------------------------------------------- */

static hf_status look_at_one(hf_service *service)
{
    hung *h = &hungs[0];
    HF_TRY(start_hung(service, 1));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    int64_t from = h->canceled_ns;
    HF_TRY(sleep_until(from - MS));
    HF_CHECK(h->count == 0);
    HF_TRY(sleep_until(from + 10 * SECOND - MS));
    HF_CHECK(stats().zombies == 0);
    HF_TRY(sleep_until(from + 10 * SECOND + MS));
    HF_CHECK(stats().zombies == 1 && stats().stuck == 0);
    HF_TRY(sleep_until(from + 7200 * SECOND));
    HF_CHECK(stats().zombies == 1);
    release(0);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(h->has_ended && stats().zombies == 0);
    return hf_sleep(hf_seconds(60));
}

static void check_times(const hung *h)
{
    int64_t due = 0;
    for (int i = 0; i < h->count; i++) {
        HF_CHECK_SAY(h->times[i] - h->canceled_ns == due, "interrupt %d came at %" PRId64 " ms, not at %" PRId64, i,
                     (h->times[i] - h->canceled_ns) / MS, due / MS);
        due = due == 0 ? SECOND : (due < 60 * SECOND ? 2 * due : due + 60 * SECOND);
    }
}

static void T13_T14_T15_an_activity_that_hangs_is_interrupted_counted_given_up_and_uncounted(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_one, .watchdog = {.signal = SIGNAL}});
    HF_CHECK_SAY(hungs[0].count == 66, "%d interrupts",
                 hungs[0].count); /* 0, 1 ... 64 s, then each minute, for an hour */
    check_times(&hungs[0]);
    HF_CHECK(count_lines("zombie activity=hang id=1 attempt=1 workflow=hang-0 run=") == 1);
    HF_CHECK(strstr(lines, " ms=10000 slot=free stack=\"") != NULL && strstr(lines, "stack=\"\"") == NULL);
    HF_CHECK(count_lines("zombie_gave_up activity=hang ") == 1 && strstr(lines, " ms=3600000 ") != NULL);
    HF_CHECK(count_lines("zombie_gone activity=hang ") == 1 && strstr(lines, " ms=7200000\n") != NULL);
    HF_CHECK(count_lines("zombie ") == 1 && count_lines("activity_answer_refused") == 0);
}

static void T13_without_a_signal_nothing_is_sent_and_all_else_holds(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_one});
    HF_CHECK(hungs[0].count == 0);
    HF_CHECK(count_lines("zombie activity=hang ") == 1);
    HF_CHECK(strstr(lines, " ms=10000 slot=free stack=\"\" message=\"no stack: only a signal can read it, and none was "
                           "given; set .watchdog.signal, for example to SIGURG\"\n") != NULL);
    HF_CHECK(count_lines("zombie_gave_up") == 0 && count_lines("zombie_gone activity=hang ") == 1);
}

static void T13_figures_of_the_ladder_can_be_set(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_one,
                       .watchdog = {.signal = SIGNAL,
                                    .stuck_after = HF_SPAN_OFF, /* of fibers */
                                    .interrupt_first = hf_minutes(30),
                                    .interrupt_max = hf_minutes(1),
                                    .give_up_after = hf_seconds(32 * 60)}});
    HF_CHECK_SAY(hungs[0].count == 3, "%d interrupts", hungs[0].count); /* 0, 30 and 31 minutes */
}

/* ---- Slots and threads ----------------------------------------------------------------------------------------------------- */

static hf_status look_at_slots(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_hung(service, 2));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    int64_t from = hungs[0].canceled_ns;
    HF_CHECK(hungs[0].attempts == 1 && hungs[1].attempts == 1 && hungs[1].canceled_ns == from);
    HF_TRY(start(service, "quick", 7, &execution));
    HF_TRY(sleep_until(from + 10 * SECOND - MS));
    HF_CHECK(quick_ns == 0 && stats().pool_threads == 2); /* both slots are taken */
    HF_TRY(hf_result(execution, NULL, .timeout = hf_seconds(60)));
    HF_CHECK_SAY(quick_ns >= from + 10 * SECOND && quick_ns < from + 10 * SECOND + MS, "after %" PRId64 " ms",
                 (quick_ns - from) / MS);
    HF_CHECK(stats().zombies == 2 && stats().pool_threads >= 3);
    release_all();
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(stats().zombies == 0);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK_SAY(stats().pool_threads <= 2, "%d threads", (int)stats().pool_threads); /* as many as slots again */
    memset(hungs, 0, sizeof hungs);                                                   /* and slots as before */
    for (int i = 2; i < 5; i++) {
        HF_TRY(start(service, "hang", i, NULL));
    }
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(hungs[2].attempts + hungs[3].attempts + hungs[4].attempts == 2);
    return HF_OK;
}

static void T17_zombies_keep_neither_slot_nor_thread_from_other_activities(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_slots, .watchdog = {.signal = SIGNAL}, .activities_max = 2});
    play_scene((scene){.look = look_at_slots, .activities_max = 2}); /* with or without a signal */
}

static hf_status look_at_bound(hf_service *service)
{
    enum { SLOTS = 4, ALL = SLOTS + HF_POOL_ZOMBIES_MAX };
    int started = 0;
    HF_TRY(start_hung(service, ALL + 2));
    HF_TRY(hf_sleep(hf_minutes(20))); /* four at a time, eleven seconds each */
    for (int i = 0; i < ALL + 2; i++) {
        started += hungs[i].attempts;
    }
    HF_CHECK_SAY(started == ALL, "%d of %d run", started, ALL + 2);
    HF_CHECK_SAY(stats().zombies == ALL && stats().pool_threads == ALL, "%d zombies, %d threads", (int)stats().zombies,
                 (int)stats().pool_threads);
    HF_CHECK(count_lines("zombie activity=hang ") == ALL && strstr(lines, " slot=kept ") != NULL);
    release(0); /* its thread and its place are another one's */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(hungs[0].has_ended && hungs[ALL].attempts + hungs[ALL + 1].attempts == 1);
    return HF_OK;
}

static void T17_the_pool_grows_up_to_a_bound_and_takes_nothing_that_no_thread_can_run(void **state)
{
    (void)state;
    (void)play_once((scene){.look = look_at_bound,
                            .watchdog = {.signal = SIGNAL, .zombies_max = HF_OFF, .interrupt_first = HF_SPAN_OFF},
                            .activities_max = 4},
                    1, 2);
}

static hf_status look_at_all_threads(hf_service *service)
{
    for (int i = 0; i < HF_POOL_THREADS_MAX + 5; i++) {
        HF_TRY(start(service, "hang_long", i, NULL));
    }
    HF_TRY(hf_sleep(hf_seconds(30)));
    int started = 0;
    for (int i = 0; i < HUNGS_MAX; i++) {
        started += hungs[i].attempts;
    }
    HF_CHECK_SAY(started == HF_POOL_THREADS_MAX && stats().pool_depth == 0, "%d run, %d were taken and wait", started,
                 (int)stats().pool_depth);
    return HF_OK;
}

static void T17_without_a_bound_no_task_is_taken_that_no_thread_can_run(void **state)
{
    (void)state;
    (void)play_once((scene){.look = look_at_all_threads, .activities_max = HF_UNLIMITED}, 1, 2);
}

/* ---- The shutdown ---------------------------------------------------------------------------------------------------------- */

static hf_status look_at_ten(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_hung(service, 9));
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_CHECK(stats().zombies == 9 && count_lines("shutdown ") == 0);
    HF_TRY(start(service, "hang", 9, NULL));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    int64_t from = hungs[9].canceled_ns + 10 * SECOND;
    HF_TRY(sleep_until(from + MS));
    HF_CHECK(stats().zombies == 10 && count_lines("shutdown step=drain zombies=10 zombies_max=10") == 1);
    HF_TRY(start(service, "quick", 7, &execution)); /* nobody takes it any more */
    HF_TRY(sleep_until(from + 10 * SECOND - MS));
    HF_CHECK(count_lines("shutdown step=cancel") == 0 && quick_ns == 0);
    HF_TRY(sleep_until(from + 10 * SECOND + MS));
    HF_CHECK(count_lines("shutdown step=cancel") == 1);
    HF_TRY(sleep_until(from + 61 * SECOND));
    HF_CHECK_SAY(fatal_code == 1 && fatal_ns >= from + 15 * SECOND && fatal_ns <= from + 60 * SECOND,
                 "the fatal hook got %d after %" PRId64 " ms", fatal_code, (fatal_ns - from) / MS);
    HF_CHECK(stats().zombies == 10);
    return HF_OK;
}

static void T16_ten_zombies_shut_the_runtime_and_its_worker_down(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_ten, .watchdog = {.signal = SIGNAL}, .status = HF_ERR_TIMEOUT});
}

static hf_status look_at_many(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start_hung(service, 20));
    HF_TRY(hf_sleep(hf_minutes(10)));
    HF_CHECK(stats().zombies == 20);
    HF_TRY(start(service, "quick", 7, &execution));
    HF_TRY(hf_result(execution, NULL, .timeout = hf_seconds(1)));
    HF_CHECK(quick_ns > 0 && fatal_code == 0 && count_lines("shutdown ") == 0);
    return HF_OK;
}

static void T16_zombies_max_off_never_shuts_it_down(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_many, .watchdog = {.signal = SIGNAL, .zombies_max = HF_OFF}});
}

/* ---- Late answers, and what is left behind --------------------------------------------------------------------------------- */

static hf_status look_at_attempts(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(start(service, "hang_twice", 0, &execution));
    HF_TRY(hf_sleep(hf_seconds(30)));
    HF_CHECK(hungs[0].attempts == 2 && stats().zombies == 2);
    HF_CHECK(hf_result(execution, NULL, .timeout = hf_seconds(1)) == HF_ERR_FAILED); /* the second one is over, too */
    release_all();
    return hf_sleep(hf_seconds(1));
}

static void T15_the_late_answer_of_a_zombie_is_dropped_quietly(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_attempts, .watchdog = {.signal = SIGNAL}});
    HF_CHECK(count_lines("zombie ") == 2 && count_lines("zombie_gone ") == 2);
    HF_CHECK(strstr(lines, "refused") == NULL);
}

static hf_status leave(void *arg)
{
    (void)arg;
    {
        HF_AUTO(hf_close) hf_service *service = NULL;
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_open("memory:", &service));
        HF_TRY(hf_worker_new(service, "q", &now_playing.worker, .activities_max = 1));
        HF_TRY(hf_worker_add_workflow(now_playing.worker, "hang", ask_to_hang));
        HF_TRY(hf_worker_add_activity(now_playing.worker, "hang", hang));
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, NULL));
        HF_TRY(start_hung(service, 2));
        HF_TRY(hf_sleep(hf_seconds(30)));
        HF_CHECK(stats().zombies == 2 && count_lines("worker_left_behind") == 0);
        HF_TRY(hf_worker_stop(now_playing.worker));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_worker_free(now_playing.worker));
    }
    /* The worker is freed, the service closed: a zombie that ends now uses neither, only memory that was kept for it. */
    HF_CHECK(count_lines("activity_left_behind activity=hang ") == 2 && stats().zombies == 2);
    HF_TRY(hf_sleep(hf_minutes(5)));
    release(0);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(hungs[0].has_ended && !hungs[1].has_ended && stats().zombies == 1);
    release(1);
    return hf_sleep(hf_seconds(1));
}

static void a_zombie_that_was_left_behind_ends_without_worker_and_service(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        reset((scene){.status = HF_ERR_TIMEOUT});
        env = hf_sim_begin((uint64_t)threads);
        hf_runtime_options options = hf_sim_runtime_options(env, threads);
        options.log = keep_line;
        options.watchdog.signal = SIGNAL;
        HF_CHECK(hf_run_with(leave, NULL, &options) == HF_OK);
        HF_CHECK(hungs[1].has_ended && count_lines("zombie_gone ") == 2);
        hf_sim_end(env, NULL);
    }
}

/* ---- What is seen of them -------------------------------------------------------------------------------------------------- */

static hf_status look_at_texts(hf_service *service)
{
    static const char *const WANTED[] = {
        "\nzombie activity=\"hang\",id=\"1\",attempt=\"1\",workflow=\"hang-0\",run=\"",
        "\"zombies\":[{\"activity\":\"hang\",\"id\":\"1\",\"attempt\":\"1\",\"workflow\":\"hang-0\",\"run\":\"",
        "\nzombie.age_us{activity=\"hang\",id=\"1\",attempt=\"1\",workflow=\"hang-0\",run=\"",
        "\"zombies\":[{\"activity\":\"hang\",\"id\":\"1\",\"attempt\":\"1\",\"workflow\":\"hang-0\",\"run\":\""};
    static const char *const AGES[] = {"\": canceled 10.250 s ago\n", "\"age_us\":10250000", "\"} 10250000\n",
                                       "\"age_us\":10250000"};
    HF_TRY(start_hung(service, 1));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    for (int is_zombie = 0; is_zombie < 2; is_zombie++) {
        HF_TRY(sleep_until(hungs[0].canceled_ns + (is_zombie ? 10250 : 8000) * MS));
        for (int i = 0; i < 4; i++) {
            char *text = NULL;
            HF_TRY(i < 2 ? hf_dump(NULL, &text, .json = i == 1) : hf_metrics(NULL, &text, .json = i == 3));
            HF_CHECK_SAY((strstr(text, WANTED[i]) != NULL) == is_zombie && (strstr(text, AGES[i]) != NULL) == is_zombie,
                         "%s", text);
            hf_text_free(text);
        }
    }
    return HF_OK;
}

static void dumps_and_metrics_name_activities_that_are_zombies(void **state)
{
    (void)state;
    play_scene((scene){.look = look_at_texts, .watchdog = {.signal = SIGNAL}});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(T13_T14_T15_an_activity_that_hangs_is_interrupted_counted_given_up_and_uncounted),
        cmocka_unit_test(T13_without_a_signal_nothing_is_sent_and_all_else_holds),
        cmocka_unit_test(T13_figures_of_the_ladder_can_be_set),
        cmocka_unit_test(T17_zombies_keep_neither_slot_nor_thread_from_other_activities),
        cmocka_unit_test(T17_the_pool_grows_up_to_a_bound_and_takes_nothing_that_no_thread_can_run),
        cmocka_unit_test(T17_without_a_bound_no_task_is_taken_that_no_thread_can_run),
        cmocka_unit_test(T16_ten_zombies_shut_the_runtime_and_its_worker_down),
        cmocka_unit_test(T16_zombies_max_off_never_shuts_it_down),
        cmocka_unit_test(T15_the_late_answer_of_a_zombie_is_dropped_quietly),
        cmocka_unit_test(a_zombie_that_was_left_behind_ends_without_worker_and_service),
        cmocka_unit_test(dumps_and_metrics_name_activities_that_are_zombies),
    };
    return hf_test_main("worker_hung", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
