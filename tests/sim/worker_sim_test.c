/* The C worker and the real engine, together in a simulation: random workflow programs (activities that fail and are
 * tried again, local ones, side effects, sagas, durable sleeps, signals alone and in a select, scopes with children) run once with workflows kept in memory and once with each
 * of them evicted at every await, so that every step is a replay from its first event. The results must be equal, and
 * equal to those of the same program as a plain function. */
#include "support/support.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = 8, CHILDREN_MAX = 4, SIGNALS = OPS_MAX, RUNS = 3 };

static uint64_t mix(uint64_t value, uint64_t with)
{
    return hf_hash_mix(value, with) % 1000000;
}

/* ---- Activities --------------------------------------------------------------------------------------------------- */

static hf_status number_of(hf_payload in, uint64_t *ret_number)
{
    *ret_number = in.data != NULL ? strtoull(in.data, NULL, 10) : 0;
    return HF_OK;
}

static hf_status twist(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = 0;
    HF_TRY(number_of(in, &number));
    /* Fails once for every third number, so that the second attempt succeeds. */
    if (number % 3 == 0 && hf_activity_info()->attempt == 1) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "not at the first attempt");
    }
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)mix(number, 7));
}

static hf_status refuse(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_raise_typed(HF_ERR_FAILED, "Never", "this one always fails");
}

/* ---- The program: the same walk over a seed, done by a workflow and by a plain function -------------------------------- */

static hf_status run_twist(uint64_t number, uint64_t *ret_number)
{
    char text[32];
    hf_payload out = {0};
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    HF_TRY(hf_activity_run("twist", hf_payload_of_json(text), &out, .start_to_close = hf_seconds(30), .attempts_max = 3,
                           .retry_initial = hf_milliseconds(50)));
    return number_of(out, ret_number);
}

typedef struct child {
    uint64_t number;
    uint64_t result;
} child;

static hf_status child_body(void *arg)
{
    child *c = arg;
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(c->number % 97))));
    return run_twist(c->number, &c->result);
}

static hf_status fan_out(uint64_t number, size_t count, uint64_t *ret_number)
{
    child children[CHILDREN_MAX] = {{0, 0}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "fan"));
    for (size_t i = 0; i < count; i++) {
        children[i].number = mix(number, i);
        HF_TRY(hf_fork(scope, child_body, &children[i]));
    }
    HF_TRY(hf_join(scope));
    for (size_t i = 0; i < count; i++) {
        number = mix(number, children[i].result);
    }
    *ret_number = number;
    return HF_OK;
}

static hf_status local_twist(uint64_t *number)
{
    char text[32];
    hf_payload out = {0};
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)*number);
    HF_TRY(hf_activity_run_local("twist", hf_payload_of_json(text), &out, .start_to_close = hf_seconds(30),
                                 .attempts_max = 3, .retry_initial = hf_milliseconds(50),
                                 .timer_after = *number % 2 == 0 ? hf_milliseconds(20) : hf_nanoseconds(0)));
    return number_of(out, number);
}

static hf_status effect(void *arg, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)mix(*(const uint64_t *)arg, 9));
}

static hf_status side_effect(uint64_t *number)
{
    hf_payload out = {0};
    HF_TRY(hf_side_effect(effect, number, &out));
    return number_of(out, number);
}

/* With an odd number it fails, and what was done is undone. */
static hf_status saga(uint64_t *number)
{
    HF_AUTO(hf_saga_close) hf_saga *undo = NULL;
    HF_TRY(hf_saga_open(&undo));
    HF_TRY(hf_saga_add(undo, "twist", hf_payload_of_json("4"), .start_to_close = hf_seconds(30)));
    HF_TRY(run_twist(*number, number));
    if (*number % 2 == 0) {
        return hf_saga_commit(undo);
    }
    *number = mix(*number, 11);
    return hf_saga_undo(undo);
}

static hf_status any_signal(uint64_t *number)
{
    static const char *const NAMES[] = {"nothing", "go"};
    size_t idx = 0;
    hf_payload out = {0};
    HF_TRY(hf_signal_wait_any(NAMES, 2, &idx, &out));
    *number = mix(*number, idx * strtoull(out.data, NULL, 10));
    return HF_OK;
}

static hf_status select_signal(uint64_t *number)
{
    hf_signal_case nothing = {.name = "nothing"};
    hf_signal_case go = {.name = "go"};
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &nothing}, {.kind = HF_CASE_SIGNAL, .value = &go}};
    size_t idx = 0;
    HF_TRY(hf_select(cases, 2, &idx));
    *number = mix(*number, idx * strtoull(go.payload.data, NULL, 10));
    return HF_OK;
}

enum { KINDS = 10 };

static hf_status one_op(hf_rng *rng, uint64_t *number)
{
    hf_payload out = {0};
    switch (hf_rng_below(rng, KINDS)) {
    case 5:
        return local_twist(number);
    case 6:
        return side_effect(number);
    case 7:
        return saga(number);
    case 8:
        return any_signal(number);
    case 9:
        return select_signal(number);
    case 0:
        return run_twist(*number, number);
    case 1:
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(rng, 500) + 1)));
        *number = mix(*number, 1);
        return HF_OK;
    case 2:
        HF_TRY(hf_signal_wait("go", &out));
        *number = mix(*number, strtoull(out.data, NULL, 10));
        return HF_OK;
    case 3: {
        hf_status status = hf_activity_run("refuse", hf_payload_none(), &out, .start_to_close = hf_seconds(5),
                                           .attempts_max = 2, .retry_initial = hf_milliseconds(10));
        *number = mix(*number, status == HF_OK ? 1 : 2);
        return status == HF_ERR_EVICTED || status == HF_ERR_CANCELED ? status : HF_OK;
    }
    default:
        return fan_out(*number, 1 + hf_rng_below(rng, CHILDREN_MAX), number);
    }
}

static hf_status program(hf_payload in, hf_payload *ret_out)
{
    uint64_t number = 0;
    HF_TRY(number_of(in, &number));
    hf_rng rng = {number};
    size_t ops = 1 + hf_rng_below(&rng, OPS_MAX);
    for (size_t i = 0; i < ops; i++) {
        HF_TRY(one_op(&rng, &number));
    }
    return hf_payload_printf(ret_out, "%llu", (unsigned long long)number);
}

static uint64_t twisted(uint64_t number)
{
    return mix(number, 7);
}

static uint64_t expected(uint64_t number)
{
    hf_rng rng = {number};
    size_t ops = 1 + hf_rng_below(&rng, OPS_MAX);
    uint64_t signals = 0;
    for (size_t i = 0; i < ops; i++) {
        switch (hf_rng_below(&rng, KINDS)) {
        case 0:
        case 5:
            number = twisted(number);
            break;
        case 6:
            number = mix(number, 9);
            break;
        case 7:
            number = twisted(number);
            number = number % 2 == 0 ? number : mix(number, 11);
            break;
        case 1:
            (void)hf_rng_below(&rng, 500);
            number = mix(number, 1);
            break;
        case 2:
        case 8:
        case 9:
            number = mix(number, 100 + signals++);
            break;
        case 3:
            number = mix(number, 2);
            break;
        default: {
            size_t count = 1 + hf_rng_below(&rng, CHILDREN_MAX);
            uint64_t start = number;
            for (size_t c = 0; c < count; c++) {
                number = mix(number, twisted(mix(start, c)));
            }
        }
        }
    }
    return number;
}

/* ---- The play ------------------------------------------------------------------------------------------------------- */

typedef struct play {
    uint64_t seed;
    int cached_max;
    hf_service *service;
    hf_worker *worker;
    uint64_t results[RUNS];
} play;

static hf_status work(void *arg)
{
    play *p = arg;
    return hf_worker_run(p->worker);
}

static hf_status drive(play *p, size_t index)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    hf_payload out = {0};
    char text[32];
    char id[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)(p->seed * RUNS + index));
    (void)snprintf(id, sizeof id, "program-%zu", index);
    HF_TRY(hf_start(p->service, "program", hf_payload_of_json(text), &execution, .id = id, .task_queue = "sim"));
    for (int i = 0; i < SIGNALS; i++) {
        (void)snprintf(text, sizeof text, "%d", 100 + i);
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)((p->seed + (uint64_t)i * 7) % 40))));
        hf_status status = hf_signal(execution, "go", hf_payload_of_json(text));
        if (status == HF_ERR_NOT_FOUND) {
            break; /* it has ended already */
        }
        HF_TRY(status);
    }
    HF_TRY(hf_result(execution, &out));
    p->results[index] = strtoull(out.data, NULL, 10);
    hf_payload_free(&out);
    return HF_OK;
}

typedef struct driver {
    play *p;
    size_t index;
} driver;

static hf_status drive_body(void *arg)
{
    driver *d = arg;
    return drive(d->p, d->index);
}

static hf_status clients(play *p)
{
    driver drivers[RUNS];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "clients"));
    for (size_t i = 0; i < RUNS; i++) {
        drivers[i] = (driver){p, i};
        HF_TRY(hf_fork(scope, drive_body, &drivers[i]));
    }
    return hf_join(scope);
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    HF_TRY(hf_open("memory:", &p->service));
    hf_worker_options options = {.size = sizeof options, .cached_max = p->cached_max};
    HF_TRY(hf_worker_new_with(p->service, "sim", &p->worker, &options));
    HF_TRY(hf_worker_add_workflow(p->worker, "program", program));
    HF_TRY(hf_worker_add_activity(p->worker, "twist", twist));
    HF_TRY(hf_worker_add_activity(p->worker, "refuse", refuse));
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "play", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, work, p));
        status = clients(p);
        HF_CHECK_SAY(status == HF_OK, "a client ended with %s: %s", hf_status_name(status), hf_error_text());
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p->worker));
    HF_TRY(hf_close(p->service));
    return status;
}

static void play_seed(uint64_t seed, int cached_max)
{
    play p = {.seed = seed, .cached_max = cached_max};
    hf_status status = hf_sim_run(seed, 2, play_main, &p, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s", hf_status_name(status));
    for (size_t i = 0; i < RUNS && status == HF_OK; i++) {
        uint64_t wanted = expected(seed * RUNS + i);
        HF_CHECK_SAY(p.results[i] == wanted, "run %zu gave %llu, not %llu (workflows in memory: %d)", i,
                     (unsigned long long)p.results[i], (unsigned long long)wanted, cached_max);
    }
}

static void kept(uint64_t seed)
{
    play_seed(seed, 0);
}

static void evicted(uint64_t seed)
{
    play_seed(seed, HF_OFF);
}

static void few(uint64_t seed)
{
    play_seed(seed, 1);
}

static void programs_end_as_they_say_with_workflows_in_memory(void **state)
{
    (void)state;
    hf_each_seed("programs kept in memory", 4000, kept);
}

static void programs_end_the_same_evicted_at_every_await(void **state)
{
    (void)state;
    hf_each_seed("programs evicted at every await", 4000, evicted);
}

static void programs_end_the_same_with_room_for_one(void **state)
{
    (void)state;
    hf_each_seed("programs with a cache of one", 4000, few);
}

static void the_same_seed_gives_the_same_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint64_t hashes[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            play p = {.seed = seed, .cached_max = HF_OFF};
            assert_int_equal(hf_sim_run(seed, 2, play_main, &p, &hashes[i]), HF_OK);
        }
        assert_int_equal(hashes[0], hashes[1]);
    }
}

/* ---- Failures, as the engine takes them ------------------------------------------------------------------------------ */

static int attempts[3];

static hf_status decline(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    attempts[0]++;
    return hf_activity_fail("no money", .type = "CardDeclined", .is_final = true,
                            .details = hf_payload_of_json("{\"code\": 5}"));
}

static hf_status come_later(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    attempts[1]++;
    if (hf_activity_info()->attempt == 1) {
        return hf_activity_fail("the shop opens tomorrow", .retry_after = hf_hours(20));
    }
    return hf_payload_printf(ret_out, "\"open\"");
}

static hf_status typed(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    attempts[2]++;
    return hf_raise_typed(HF_ERR_FAILED, "Never", "whatever it says");
}

static hf_status fail_in_all_ways(hf_payload in, hf_payload *ret_out)
{
    static const char *const FINAL[] = {"Other", "Never", NULL};
    hf_payload details = {0};
    hf_status status = hf_activity_run("decline", in, NULL, .start_to_close = hf_seconds(5), .ret_details = &details);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_FAILED && strcmp(hf_error()->type, "ActivityFailed") == 0);
    HF_CHECK(strcmp(hf_error()->cause->type, "CardDeclined") == 0 &&
             strcmp(hf_error()->cause->message, "no money") == 0);
    HF_CHECK(details.data != NULL && strcmp(details.data, "{\"code\": 5}") == 0);
    hf_time from = hf_wall_now(NULL);
    HF_TRY(hf_activity_run("later", in, NULL, .start_to_close = hf_seconds(5)));
    HF_CHECK(hf_wall_now(NULL).ns - from.ns >= hf_hours(20).ns);
    status = hf_activity_run("typed", in, NULL, .start_to_close = hf_seconds(5), .final_types = FINAL);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_FAILED && strcmp(hf_error()->cause->type, "Never") == 0);
    return hf_payload_printf(ret_out, "\"%s\"", hf_error()->cause->message);
}

static hf_status fail_client(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(p->service, "failing", hf_payload_none(), &execution, .task_queue = "sim"));
    HF_TRY(hf_result(execution, &out));
    HF_CHECK(strcmp(out.data, "\"whatever it says\"") == 0);
    return HF_OK;
}

static hf_status fail_main(void *arg)
{
    play *p = arg;
    HF_TRY(hf_open("memory:", &p->service));
    hf_worker_options options = {.size = sizeof options, .cached_max = p->cached_max};
    HF_TRY(hf_worker_new_with(p->service, "sim", &p->worker, &options));
    HF_TRY(hf_worker_add_workflow(p->worker, "failing", fail_in_all_ways));
    HF_TRY(hf_worker_add_activity(p->worker, "decline", decline));
    HF_TRY(hf_worker_add_activity(p->worker, "later", come_later, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(p->worker, "typed", typed, .on_fiber = true));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "play", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, work, p));
        HF_CHECK(fail_client(p) == HF_OK);
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p->worker));
    return hf_close(p->service);
}

static void activities_say_how_they_fail(void **state)
{
    (void)state;
    for (int cached_max = HF_OFF; cached_max <= 0; cached_max -= HF_OFF) {
        play p = {.cached_max = cached_max};
        memset(attempts, 0, sizeof attempts);
        HF_CHECK(hf_sim_run(1, 2, fail_main, &p, NULL) == HF_OK);
        HF_CHECK(attempts[0] == 1 && attempts[1] == 2 && attempts[2] == 1);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(programs_end_as_they_say_with_workflows_in_memory),
    cmocka_unit_test(programs_end_the_same_evicted_at_every_await),
    cmocka_unit_test(programs_end_the_same_with_room_for_one),
    cmocka_unit_test(the_same_seed_gives_the_same_trace),
    cmocka_unit_test(activities_say_how_they_fail),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_sim", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
