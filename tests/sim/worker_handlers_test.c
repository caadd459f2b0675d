/* Handlers, conditions, the scope of a run, versions and the next run, on the real worker and engine, on virtual time. Every
 * play is made with runs kept in memory and with runs that are evicted at every wait; both must end the same. */
#include "support/support.h"

#include "base/base.h"
#include "client/data.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scene {
    hf_function workflow;
    hf_status (*client)(hf_service *service, hf_execution *execution); /* after the start; NULL = nothing */
    hf_status expected;
    const char *result; /* its result, or the sentence of its failure */
} scene;

static const scene *now_playing;
static bool evicts;

static hf_status tick(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    return in.len > 0 ? hf_payload_copy(in, ret_out) : hf_payload_printf(ret_out, "1");
}

static hf_status run_tick(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("tick", in, ret_out, .start_to_close = hf_minutes(1));
}

/* ---- The play ---------------------------------------------------------------------------------------------------- */

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status play(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    const scene *s = now_playing;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = evicts ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "workflow", s->workflow));
    HF_TRY(hf_worker_add_activity(worker, "tick", tick, .on_fiber = true));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "workflow", hf_payload_none(), &execution, .task_queue = "q", .id = "w"));
    if (s->client != NULL) {
        HF_TRY(s->client(service, execution));
    }
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(60));
    const char *text = status == HF_OK ? out.data : hf_error_text();
    HF_CHECK_SAY(status == s->expected && text != NULL && strstr(text, s->result) != NULL, "%s: %s, not %s: %s",
                 hf_status_name(status), text != NULL ? text : "", hf_status_name(s->expected), s->result);
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void play_scene(scene s)
{
    for (uint64_t i = 0; i < 6; i++) {
        now_playing = &s;
        evicts = i % 2 != 0;
        hf_status status = hf_sim_run(i + 1, 1 + (int)i / 3, play, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

typedef struct tally {
    char text[200];
    int count;
} tally;

static void add(tally *t, const char *text, char end)
{
    size_t len = strlen(t->text);
    (void)snprintf(t->text + len, sizeof t->text - len, "%s%c", text, end);
    t->count++;
}

static hf_status on_add(void *arg, hf_payload in)
{
    add(arg, in.data, ',');
    return HF_OK;
}

/* Waits between what came and what it does with that. */
static hf_status on_slow(void *arg, hf_payload in)
{
    hf_payload out = {0};
    HF_TRY(run_tick(in, &out));
    add(arg, out.data, '.');
    return HF_OK;
}

static hf_status on_any(void *arg, hf_payload in)
{
    add(arg, hf_handler_name(), '=');
    add(arg, in.data, ';');
    return HF_OK;
}

static hf_status on_bad(void *arg, hf_payload in)
{
    (void)in;
    add(arg, "bad", '!');
    return hf_raise(HF_ERR_FAILED, "this handler fails");
}

static hf_status handled(hf_payload in, hf_payload *ret_out)
{
    tally *t = HF_WORKFLOW_NEW(tally);
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(5))); /* the first signals come before there is a handler */
    HF_TRY(hf_on_signal("add", on_add, .arg = t));
    HF_TRY(hf_on_signal("slow", on_slow, .arg = t));
    HF_TRY(hf_on_signal("bad", on_bad, .arg = t));
    HF_TRY(hf_on_signal(NULL, on_any, .arg = t));
    HF_TRY(hf_wait_until(t->count >= 8));
    HF_TRY(hf_handlers_wait());
    return hf_payload_printf(ret_out, "\"%s\"", t->text);
}

static hf_status send_many(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "add", hf_payload_of_json("1")));
    HF_TRY(hf_signal(execution, "slow", hf_payload_of_json("2")));
    HF_TRY(hf_signal(execution, "add", hf_payload_of_json("3")));
    HF_TRY(hf_sleep(hf_seconds(9)));
    HF_TRY(hf_signal(execution, "bad", hf_payload_none()));
    HF_TRY(hf_signal(execution, "other", hf_payload_of_json("4")));
    HF_TRY(hf_sleep(hf_seconds(9)));
    HF_TRY(hf_signal(execution, "slow", hf_payload_of_json("5")));
    return hf_signal(execution, "add", hf_payload_of_json("6"));
}

static void T4_T5_signals_go_to_handlers_which_may_wait_and_fail(void **state)
{
    (void)state;
    play_scene((scene){handled, send_many, HF_OK, "\"1,3,2.bad!other=4;6,5.\""});
}

/* A handler that looks whether it is alone, waits for the others for a while, and then takes longer than anybody waits. */
static hf_status on_long(void *arg, hf_payload in)
{
    (void)in;
    add(arg, hf_status_name(hf_handlers_wait(.timeout = hf_seconds(-1))), '.');
    HF_TRY(hf_sleep(hf_hours(1)));
    add(arg, "long", '.');
    return HF_OK;
}

static hf_status on_patient(void *arg, hf_payload in)
{
    (void)in;
    add(arg, hf_status_name(hf_handlers_wait(.timeout = hf_seconds(-1))), ',');
    add(arg, hf_status_name(hf_handlers_wait(.timeout = hf_minutes(30))), ',');
    return HF_OK;
}

static hf_status waits_a_while(hf_payload in, hf_payload *ret_out)
{
    tally *t = HF_WORKFLOW_NEW(tally);
    (void)in;
    add(t, hf_status_name(hf_handlers_wait(.timeout = hf_nanoseconds(30))), ' '); /* a number without a unit */
    add(t, hf_status_name(hf_handlers_wait(.timeout = hf_seconds(-1))), ' ');     /* nobody is under way */
    HF_TRY(hf_on_signal("long", on_long, .arg = t));
    HF_TRY(hf_on_signal("patient", on_patient, .arg = t));
    HF_TRY(hf_sleep(hf_minutes(1)));
    hf_time begun = hf_wall_now(NULL);
    add(t, hf_status_name(hf_handlers_wait(.timeout = hf_minutes(1))), ' ');
    add(t, hf_wall_now(NULL).ns - begun.ns == hf_minutes(1).ns ? "1 min" : "too long", ' ');
    add(t, hf_status_name(hf_handlers_wait(.timeout = hf_hours(2))), ' '); /* its timer is taken back */
    return hf_payload_printf(ret_out, "\"%s\"", t->text);
}

static hf_status send_long(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_signal(execution, "long", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_signal(execution, "patient", hf_payload_none());
}

static void a_wait_for_handlers_may_be_bounded(void **state)
{
    (void)state;
    play_scene(
        (scene){waits_a_while, send_long, HF_OK,
                "\"HF_ERR_INVALID HF_OK HF_OK.HF_ERR_TIMEOUT,HF_ERR_TIMEOUT 1 min HF_ERR_TIMEOUT,long.HF_OK \""});
}

static hf_status misuses(hf_payload in, hf_payload *ret_out)
{
    tally local = {0};
    hf_status on_stack = hf_on_signal("add", on_add, .arg = &local);
    (void)in;
    HF_TRY(hf_on_signal("add", on_add, .arg = HF_WORKFLOW_NEW(tally)));
    hf_status handled_twice = hf_signal_wait("add", NULL, .timeout = hf_seconds(1));
    hf_status empty = hf_on_signal("", on_add);
    hf_status none = hf_signal_try("other", NULL);
    return hf_payload_printf(ret_out, "\"%s %s %s %s\"", hf_status_name(on_stack), hf_status_name(handled_twice),
                             hf_status_name(empty), hf_status_name(none));
}

static void a_handler_that_cannot_be_is_refused(void **state)
{
    (void)state;
    play_scene((scene){misuses, NULL, HF_OK, "\"HF_ERR_MISUSE HF_ERR_MISUSE HF_ERR_INVALID HF_ERR_AGAIN\""});
}

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

typedef struct votes {
    int yes;
    char order[100];
} votes;

static hf_status on_yes(void *arg, hf_payload in)
{
    (void)in;
    ((votes *)arg)->yes++;
    return HF_OK;
}

/* The one that waits first looks first, and what it does may let another one go on. */
static hf_status first(void *arg)
{
    votes *v = arg;
    HF_TRY(hf_wait_until(v->yes >= 12));
    (void)strcat(v->order, "first,");
    return HF_OK;
}

static hf_status second(void *arg)
{
    votes *v = arg;
    HF_TRY(hf_wait_until(v->yes >= 2));
    (void)strcat(v->order, "second,");
    v->yes += 10;
    return HF_OK;
}

static hf_status conditions(hf_payload in, hf_payload *ret_out)
{
    votes *v = HF_WORKFLOW_NEW(votes);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    hf_status late = hf_wait_until(v->yes > 0, .timeout = hf_seconds(2));
    hf_status past = hf_wait_until(v->yes > 0, .timeout = hf_seconds(-2));
    hf_status changes = HF_OK;
    HF_TRY(hf_wait_until((changes = hf_on_signal("yes", on_yes, .arg = v)) == HF_ERR_MISUSE)); /* it may only look */
    HF_TRY(hf_on_signal("yes", on_yes, .arg = v));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, first, v));
    HF_TRY(hf_fork(scope, second, v));
    HF_TRY(hf_wait_until(v->yes >= 12, .timeout = hf_days(7)));
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%s %s %s %s\"", hf_status_name(late), hf_status_name(past),
                             hf_status_name(changes), v->order);
}

static hf_status vote(hf_service *service, hf_execution *execution)
{
    (void)service;
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_sleep(hf_seconds(10)));
        HF_TRY(hf_signal(execution, "yes", hf_payload_none()));
    }
    return HF_OK;
}

static void conditions_look_in_order_until_none_passes(void **state)
{
    (void)state;
    play_scene((scene){conditions, vote, HF_OK, "\"HF_ERR_TIMEOUT HF_ERR_TIMEOUT HF_ERR_MISUSE second,first,\""});
}

/* ---- The end of a run -------------------------------------------------------------------------------------------- */

static hf_status forever(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    hf_status status = hf_sleep(hf_days(30));
    if (status == HF_ERR_CANCELED) {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_minutes(1), &shield));
        hf_status late = run_tick(hf_payload_none(), NULL); /* the run has ended: this is dropped */
        HF_CHECK(late == HF_ERR_CANCELED || late == HF_ERR_EVICTED);
        late = hf_sleep(hf_seconds(5));
        HF_CHECK(late == HF_ERR_CANCELED || late == HF_ERR_EVICTED);
    }
    return status;
}

/* The handler of the last signal begins in the step in which the main function returns, and what it asks for goes along
 * before the end. */
static hf_status ends_over_handlers(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_on_signal("forever", forever));
    HF_TRY(hf_signal_wait("end", NULL));
    return hf_payload_printf(ret_out, "\"ended\"");
}

static hf_status end_it(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "forever", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "forever", hf_payload_none()));
    return hf_signal(execution, "end", hf_payload_none());
}

static void T6_T9_N4_a_run_ends_over_its_handlers(void **state)
{
    (void)state;
    play_scene((scene){ends_over_handlers, end_it, HF_OK, "\"ended\""});
}

static hf_status breaks(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_seconds(3)));
    return hf_raise_typed(HF_ERR_FAILED, "Broken", "the pump broke");
}

static hf_status sleeps(void *arg)
{
    (void)arg;
    return hf_sleep(hf_days(3));
}

static hf_status fails_beside(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_fork(hf_workflow_scope(), breaks, NULL));
    return hf_sleep(hf_days(1));
}

static void T3_N5_a_fiber_of_the_runs_scope_fails_the_run_with_its_own_failure(void **state)
{
    (void)state;
    play_scene((scene){fails_beside, NULL, HF_ERR_FAILED, "the pump broke"});
}

static hf_status leaves_behind(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_fork(hf_workflow_scope(), sleeps, NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "\"done\"");
}

static void T8_fibers_of_the_runs_scope_end_with_it(void **state)
{
    (void)state;
    play_scene((scene){leaves_behind, NULL, HF_OK, "\"done\""});
}

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

static hf_status on_state(void *arg, hf_payload in, hf_payload *ret_out)
{
    const tally *t = arg;
    hf_status sleep = hf_sleep(hf_seconds(1));
    hf_status activity = run_tick(hf_payload_none(), NULL);
    hf_status signal = hf_signal_wait("x", NULL);
    HF_CHECK(sleep == HF_ERR_MISUSE && activity == HF_ERR_MISUSE && signal == HF_ERR_MISUSE);
    return hf_payload_printf(ret_out, "\"%s %d %s\"", hf_handler_name(), t->count,
                             in.len > 0 ? (const char *)in.data : "");
}

static hf_status on_refusal(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    (void)ret_out;
    return hf_raise(HF_ERR_FAILED, "not today");
}

static hf_status asked(hf_payload in, hf_payload *ret_out)
{
    tally *t = HF_WORKFLOW_NEW(tally);
    (void)in;
    HF_TRY(hf_on_query("state", on_state, .arg = t));
    HF_TRY(hf_on_query("refusal", on_refusal));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_signal_wait("go", NULL));
        t->count++;
    }
    return hf_payload_printf(ret_out, "\"%d\"", t->count);
}

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

static void ask(hf_service *service, const char *name, hf_status expected, const char *answer)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_arena_init(&arena, (hf_allocator){heap_allocate, heap_release, NULL});
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("w")};
    hf_pb_workflow_query query = {.query_type = hf_str_of(name),
                                  .query_args = hf_payload_encode(&arena, hf_payload_of_json("7"))};
    hf_pb_query_workflow_request request = {.namespace = HF_STR("default"), .execution = &execution, .query = &query};
    hf_call call;
    hf_call_init(&call, HF_METHOD_QUERY_WORKFLOW, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, service, &call);
    const hf_pb_query_workflow_response *response = call.response;
    hf_payload got = status == HF_OK ? hf_payload_view(&arena, response->query_result) : hf_payload_none();
    HF_CHECK_SAY(status == expected, "%s: %s, %s", name, hf_status_name(status), op.message);
    if (status == expected && expected == HF_OK) {
        HF_CHECK_SAY(got.len == strlen(answer) && memcmp(got.data, answer, got.len) == 0, "%s: %.*s, not %s", name,
                     (int)got.len, (const char *)got.data, answer);
    } else if (status == expected) {
        HF_CHECK_SAY(strstr(op.message, answer) != NULL, "%s: %s, not %s", name, op.message, answer);
    }
    hf_arena_deinit(&arena);
}

static hf_status query_it(hf_service *service, hf_execution *execution)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    ask(service, "state", HF_OK, "\"state 0 7\"");
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    ask(service, "state", HF_OK, "\"state 1 7\""); /* it sees what was acknowledged before it */
    ask(service, "refusal", HF_ERR_INVALID, "not today");
    ask(service, "nothing", HF_ERR_INVALID, "no handler for query 'nothing'");
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(1)));
    ask(service, "state", HF_OK, "\"state 3 7\""); /* it has ended */
    return HF_OK;
}

static void queries_see_the_run_and_change_nothing(void **state)
{
    (void)state;
    play_scene((scene){asked, query_it, HF_OK, "\"3\""});
}

/* ---- Updates ----------------------------------------------------------------------------------------------------- */

typedef struct account {
    int balance;
} account;

static int validations; /* in this play, with all of its replays */

static hf_status is_positive(void *arg, hf_payload in)
{
    const account *a = arg;
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_MISUSE);
    validations++;
    return strtol(in.data, NULL, 10) + a->balance >= 0 ? HF_OK
                                                       : hf_raise_typed(HF_ERR_FAILED, "Overdrawn", "not enough");
}

static hf_status on_book(void *arg, hf_payload in, hf_payload *ret_out)
{
    account *a = arg;
    HF_CHECK(hf_update_id() != NULL && strncmp(hf_update_id(), "u-", 2) == 0);
    a->balance += (int)strtol(in.data, NULL, 10);
    return hf_payload_printf(ret_out, "%d", a->balance);
}

static hf_status on_slow_book(void *arg, hf_payload in, hf_payload *ret_out)
{
    HF_TRY(run_tick(hf_payload_none(), NULL));
    return on_book(arg, in, ret_out);
}

static hf_status on_broken(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_raise_typed(HF_ERR_FAILED, "Broken", "it broke halfway");
}

static hf_status on_quiet_book(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    ((account *)arg)->balance += (int)strtol(in.data, NULL, 10);
    return HF_OK;
}

static hf_status bank(hf_payload in, hf_payload *ret_out)
{
    account *a = HF_WORKFLOW_NEW(account);
    (void)in;
    HF_TRY(hf_on_update("book", on_book, .arg = a, .validator = is_positive));
    HF_TRY(hf_on_update("slow", on_slow_book, .arg = a));
    HF_TRY(hf_on_update("broken", on_broken, .arg = a));
    HF_TRY(hf_on_update("quiet", on_quiet_book, .arg = a));
    HF_TRY(hf_signal_wait("close", NULL));
    HF_TRY(hf_handlers_wait());
    return hf_payload_printf(ret_out, "\"%d\"", a->balance);
}

/* Sends an update and waits for its outcome. */
static void update(hf_service *service, const char *name, const char *id, const char *in, const char *expected)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_arena_init(&arena, (hf_allocator){heap_allocate, heap_release, NULL});
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("w")};
    hf_pb_meta meta = {.update_id = hf_str_of(id), .identity = HF_STR("test")};
    hf_pb_input input = {.name = hf_str_of(name), .args = hf_payload_encode(&arena, hf_payload_of_json(in))};
    hf_pb_request body = {.meta = &meta, .input = &input};
    hf_pb_wait_policy wait = {.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED};
    hf_pb_update_workflow_execution_request request = {
        .namespace = HF_STR("default"), .workflow_execution = &execution, .wait_policy = &wait, .request = &body};
    hf_call call;
    hf_call_init(&call, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, service, &call);
    HF_CHECK_SAY(status == HF_OK, "update %s: %s", id, op.message);
    const hf_pb_update_workflow_execution_response *response = call.response;
    const hf_pb_outcome *outcome = status == HF_OK ? response->outcome : NULL;
    hf_str got = {NULL, 0};
    if (outcome != NULL && outcome->value_case == HF_PB_OUTCOME_SUCCESS) {
        got = outcome->success->payloads.count > 0 ? outcome->success->payloads.items[0].data : HF_STR("");
    } else if (outcome != NULL) {
        got = outcome->failure->message;
    }
    HF_CHECK_SAY(outcome != NULL && hf_str_equal(got, hf_str_of(expected)), "update %s: %.*s, not %s", id,
                 HF_STR_ARGS(got), expected);
    hf_arena_deinit(&arena);
}

static hf_status run_bank(hf_service *service, hf_execution *execution)
{
    validations = 0;
    HF_TRY(hf_sleep(hf_seconds(1)));
    update(service, "book", "u-1", "10", "10");
    update(service, "book", "u-2", "-20", "not enough"); /* rejected: it leaves no trace */
    update(service, "book", "u-3", "-4", "6");
    HF_TRY(hf_signal(execution, "other", hf_payload_none()));
    update(service, "book", "u-4", "-20", "not enough"); /* behind an event that was not seen before */
    update(service, "slow", "u-5", "100", "106");
    update(service, "broken", "u-6", "0", "it broke halfway");
    update(service, "nothing", "u-7", "0",
           "workflow 'workflow' has no handler for update 'nothing'; it has 'book', 'slow', 'broken', 'quiet'");
    update(service, "book", "u-3", "-4", "6");   /* the same request once more */
    update(service, "quiet", "u-8", "1000", ""); /* it has no result */
    HF_CHECK_SAY(validations == 4, "%d validations", validations);
    return hf_signal(execution, "close", hf_payload_none());
}

static void T4_updates_are_validated_accepted_and_answered_once(void **state)
{
    (void)state;
    play_scene((scene){bank, run_bank, HF_OK, "\"1106\""});
}

/* Updates behind the point of a reset come to the new run once more. One that was rejected does not. */
static hf_status reset_bank(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *again = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_sleep(hf_seconds(1)));
    update(service, "book", "u-1", "10", "10");
    update(service, "book", "u-2", "-20", "not enough");
    update(service, "slow", "u-3", "-4", "6");
    HF_TRY(hf_signal(execution, "close", hf_payload_none()));
    HF_TRY(hf_result(execution, &out));
    HF_TRY(hf_reset(execution, &again, .point = HF_RESET_FIRST));
    hf_payload_free(&out);
    HF_TRY(hf_result(again, &out));
    HF_CHECK_SAY(strcmp(out.data, "\"6\"") == 0, "after the reset: %s", (const char *)out.data);
    return HF_OK;
}

static void updates_are_applied_again_after_a_reset(void **state)
{
    (void)state;
    play_scene((scene){bank, reset_bank, HF_OK, "\"6\""});
}

/* Its answer goes along with the end of the run. */
static hf_status ends_with_update(hf_payload in, hf_payload *ret_out)
{
    account *a = HF_WORKFLOW_NEW(account);
    (void)in;
    HF_TRY(hf_on_update("book", on_book, .arg = a));
    HF_TRY(hf_wait_until(a->balance > 0));
    return hf_payload_printf(ret_out, "\"%d\"", a->balance);
}

static hf_status end_by_update(hf_service *service, hf_execution *execution)
{
    (void)execution;
    HF_TRY(hf_sleep(hf_seconds(1)));
    update(service, "book", "u-1", "7", "7");
    return HF_OK;
}

static void T6_N4_the_answer_of_an_update_goes_along_with_the_end(void **state)
{
    (void)state;
    play_scene((scene){ends_with_update, end_by_update, HF_OK, "\"7\""});
}

/* ---- The next run ------------------------------------------------------------------------------------------------ */

/* Takes one signal in each run and continues; the others go along. */
static hf_status chain(hf_payload in, hf_payload *ret_out)
{
    int number = in.len > 0 ? (int)strtol(in.data, NULL, 10) : 0;
    hf_payload got = {0};
    HF_TRY(hf_signal_wait("go", &got));
    HF_CHECK_SAY(strtol(got.data, NULL, 10) == number, "run %d got signal %s", number, (const char *)got.data);
    HF_CHECK((strcmp(hf_workflow_info()->run_id, hf_workflow_info()->first_run_id) == 0) == (number == 0));
    if (number < 3) {
        char next[20];
        (void)snprintf(next, sizeof next, "%d", number + 1);
        return hf_continue_as_new(hf_payload_of_json(next));
    }
    return hf_payload_printf(ret_out, "\"run %d\"", number);
}

static hf_status signal_chain(hf_service *service, hf_execution *execution)
{
    static const char *const NUMBERS[] = {"0", "1", "2", "3"};
    (void)service;
    (void)execution;
    HF_AUTO(hf_execution_free) hf_execution *newest = NULL;
    HF_TRY(hf_execution_new(service, "w", &newest));
    for (size_t i = 0; i < HF_COUNT_OF(NUMBERS); i++) {
        HF_TRY(hf_signal(newest, "go", hf_payload_of_json(NUMBERS[i])));
    }
    return HF_OK;
}

static void a_run_continues_as_new_and_takes_its_signals_along(void **state)
{
    (void)state;
    play_scene((scene){chain, signal_chain, HF_OK, "\"run 3\""});
}

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

static bool has_new_code;

/* The code changes while the run sleeps: what was decided before stays, and what comes later is new. */
static hf_status versions(hf_payload in, hf_payload *ret_out)
{
    bool early = has_new_code && hf_patched("early");
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(10)));
    bool late = has_new_code && hf_patched("late");
    bool again = has_new_code && hf_patched("late");
    HF_TRY(hf_sleep(hf_seconds(10)));
    bool still = has_new_code && hf_patched("late");
    return hf_payload_printf(ret_out, "\"%d %d %d %d\"", early, late, again, still);
}

static hf_status deploy(hf_service *service, hf_execution *execution)
{
    (void)service;
    (void)execution;
    has_new_code = false;
    HF_TRY(hf_sleep(hf_seconds(5)));
    has_new_code = true;
    return HF_OK;
}

static void code_may_change_under_a_run(void **state)
{
    (void)state;
    play_scene((scene){versions, deploy, HF_OK, "\"0 1 1 1\""});
}

static bool is_deprecated;

static hf_status deprecates(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    if (is_deprecated) {
        HF_TRY(hf_patch_deprecate("old \"path\""));
    } else {
        HF_CHECK(hf_patched("old \"path\""));
    }
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_payload_printf(ret_out, "\"fine\"");
}

static hf_status deprecate(hf_service *service, hf_execution *execution)
{
    (void)service;
    (void)execution;
    is_deprecated = false;
    HF_TRY(hf_sleep(hf_seconds(5)));
    is_deprecated = true;
    return HF_OK;
}

static void a_patch_is_deprecated_under_a_run(void **state)
{
    (void)state;
    play_scene((scene){deprecates, deprecate, HF_OK, "\"fine\""});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(T4_T5_signals_go_to_handlers_which_may_wait_and_fail),
    cmocka_unit_test(a_wait_for_handlers_may_be_bounded),
    cmocka_unit_test(a_handler_that_cannot_be_is_refused),
    cmocka_unit_test(conditions_look_in_order_until_none_passes),
    cmocka_unit_test(T6_T9_N4_a_run_ends_over_its_handlers),
    cmocka_unit_test(T3_N5_a_fiber_of_the_runs_scope_fails_the_run_with_its_own_failure),
    cmocka_unit_test(T8_fibers_of_the_runs_scope_end_with_it),
    cmocka_unit_test(queries_see_the_run_and_change_nothing),
    cmocka_unit_test(T4_updates_are_validated_accepted_and_answered_once),
    cmocka_unit_test(updates_are_applied_again_after_a_reset),
    cmocka_unit_test(T6_N4_the_answer_of_an_update_goes_along_with_the_end),
    cmocka_unit_test(a_run_continues_as_new_and_takes_its_signals_along),
    cmocka_unit_test(code_may_change_under_a_run),
    cmocka_unit_test(a_patch_is_deprecated_under_a_run),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_handlers", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
