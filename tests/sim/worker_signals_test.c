/* Waiting for one of several signals: hf_signal_wait_any, and signals as cases of hf_select. */
#include "sim/worker_scene.h"

typedef struct tally {
    char text[400];
} tally;

static void add(tally *t, const char *name, hf_payload in)
{
    size_t len = strlen(t->text);
    (void)snprintf(t->text + len, sizeof t->text - len, "%s%s ", name, in.len > 0 ? (const char *)in.data : "");
}

static hf_status send(hf_execution *execution, const char *name, const char *json)
{
    return hf_signal(execution, name, json != NULL ? hf_payload_of_json(json) : hf_payload_none());
}

/* ---- hf_signal_wait_any ------------------------------------------------------------------------------------------- */

static const char *const NAMES[] = {"approve", "reject", "defer"};

static hf_status takes_any(hf_payload in, hf_payload *ret_out)
{
    tally t = {0};
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(5))); /* three have come by then: the oldest is taken first, whatever its name */
    for (int i = 0; i < 6; i++) {
        size_t idx = 99;
        hf_payload out = hf_payload_none();
        hf_status status = hf_signal_wait_any(NAMES, 3, &idx, &out, .timeout = hf_seconds(60));
        if (status == HF_ERR_TIMEOUT) {
            add(&t, "none", hf_payload_none());
            continue;
        }
        HF_TRY(status);
        add(&t, NAMES[idx], out);
    }
    HF_TRY(hf_signal_wait("other", NULL)); /* of another name: it was kept */
    return hf_payload_printf(ret_out, "\"%s\"", t.text);
}

static hf_status send_mixed(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(send(execution, "reject", "1"));
    HF_TRY(send(execution, "approve", "2"));
    HF_TRY(send(execution, "reject", "3"));
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(send(execution, "other", "4"));
    HF_TRY(send(execution, "defer", "5"));
    HF_TRY(hf_sleep(hf_seconds(70)));
    return send(execution, "approve", NULL);
}

static void the_oldest_of_several_signals_is_taken_first(void **state)
{
    (void)state;
    play_scene((scene){.workflow = takes_any,
                       .client = send_mixed,
                       .expected = HF_OK,
                       .result = "\"reject1 approve2 reject3 defer5 none approve \""});
}

/* Two fibers wait for overlapping names: the one that began first gets what fits both. */
static hf_status wait_first(void *arg)
{
    size_t idx = 0;
    hf_payload out = hf_payload_none();
    HF_TRY(hf_signal_wait_any(NAMES, 2, &idx, &out));
    add(arg, "first:", out);
    return HF_OK;
}

static hf_status wait_second(void *arg)
{
    size_t idx = 0;
    hf_payload out = hf_payload_none();
    HF_TRY(hf_signal_wait_any(NAMES + 1, 2, &idx, &out));
    add(arg, "second:", out);
    return HF_OK;
}

static hf_status two_wait(hf_payload in, hf_payload *ret_out)
{
    tally *t = HF_WORKFLOW_NEW(tally);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_first, t));
    HF_TRY(hf_fork(scope, wait_second, t));
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%s\"", t->text);
}

static hf_status send_both(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(send(execution, "reject", "1"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return send(execution, "reject", "2");
}

static void the_fiber_that_began_to_wait_first_gets_the_signal(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = two_wait, .client = send_both, .expected = HF_OK, .result = "\"first:1 second:2 \""});
}

static hf_status on_signal(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return HF_OK;
}

static hf_status wait_for_both(void *arg)
{
    size_t idx = 0;
    (void)arg;
    return hf_signal_wait_any(NAMES, 2, &idx, NULL);
}

static hf_status is_refused(hf_payload in, hf_payload *ret_out)
{
    static const char *const EMPTY[] = {"approve", ""};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    size_t idx = 0;
    hf_signal_case signal = {.name = "handled"};
    hf_case one = {.kind = HF_CASE_SIGNAL, .value = &signal};
    (void)in;
    HF_TRY(hf_on_signal("handled", on_signal));
    static const char *const HANDLED[] = {"approve", "handled"};
    hf_status handled = hf_signal_wait_any(HANDLED, 2, &idx, NULL);
    hf_status empty = hf_signal_wait_any(EMPTY, 2, &idx, NULL);
    hf_status none = hf_signal_wait_any(NAMES, 0, &idx, NULL);
    hf_status many = hf_signal_wait_any(NAMES, HF_SELECT_COUNT_MAX + 1, &idx, NULL);
    hf_status past = hf_signal_wait_any(NAMES, 3, &idx, NULL, .timeout = hf_seconds(-1));
    hf_status no_case = hf_select(&one, 1, &idx);
    one.value = NULL;
    hf_status no_value = hf_try_select(&one, 1, &idx);
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_for_both, NULL));
    HF_TRY(hf_yield());
    hf_status waited_for = hf_on_signal("reject", on_signal); /* it is the second of the names that a fiber waits for */
    HF_TRY(hf_scope_cancel(scope));
    return hf_payload_printf(ret_out, "\"%s %s %s %s %s %s %s %s\"", hf_status_name(handled), hf_status_name(empty),
                             hf_status_name(none), hf_status_name(many), hf_status_name(past), hf_status_name(no_case),
                             hf_status_name(no_value), hf_status_name(waited_for));
}

static void a_wait_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    play_scene((scene){.workflow = is_refused,
                       .expected = HF_OK,
                       .result =
                           "\"HF_ERR_MISUSE HF_ERR_INVALID HF_ERR_INVALID HF_ERR_INVALID HF_ERR_TIMEOUT HF_ERR_MISUSE "
                           "HF_ERR_MISUSE HF_ERR_MISUSE\""});
}

/* ---- hf_select ---------------------------------------------------------------------------------------------------- */

static hf_status feed(void *arg)
{
    hf_chan *chan = arg;
    int value = 7;
    HF_TRY(hf_sleep(hf_seconds(30)));
    return hf_chan_send(chan, &value);
}

/* Signals and a channel: what is ready first in the order of the cases is taken, and what is not taken stays. */
static hf_status selects(hf_payload in, hf_payload *ret_out)
{
    tally t = {0};
    int value = 0;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_chan_new(sizeof value, &chan));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, feed, chan));
    HF_TRY(hf_sleep(hf_seconds(5)));
    for (int i = 0; i < 6; i++) {
        hf_signal_case approve = {.name = "approve"};
        hf_signal_case reject = {.name = "reject"};
        hf_signal_case never = {.name = NULL};
        hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &never},
                           {.kind = HF_CASE_SIGNAL, .value = &approve},
                           {.kind = HF_CASE_RECV, .chan = chan, .value = &value},
                           {.kind = HF_CASE_SIGNAL, .value = &reject}};
        size_t idx = 99;
        hf_status status = hf_select(cases, 4, &idx, .timeout = hf_seconds(60));
        if (status == HF_ERR_TIMEOUT) {
            add(&t, "none", hf_payload_none());
            continue;
        }
        HF_TRY(status);
        HF_CHECK(cases[idx].status == HF_OK);
        if (idx == 2) {
            HF_CHECK(value == 7);
            add(&t, "chan", hf_payload_none());
        } else {
            add(&t, idx == 1 ? "approve" : "reject", idx == 1 ? approve.payload : reject.payload);
        }
    }
    hf_signal_case again = {.name = "approve"};
    hf_case one = {.kind = HF_CASE_SIGNAL, .value = &again};
    size_t idx = 0;
    HF_CHECK(hf_try_select(&one, 1, &idx) == HF_ERR_AGAIN);
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%s\"", t.text);
}

static hf_status send_to_select(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(send(execution, "reject", "1")); /* stored: the first case that is ready is taken, not the oldest */
    HF_TRY(send(execution, "approve", "2"));
    HF_TRY(hf_sleep(hf_seconds(40)));
    HF_TRY(send(execution, "reject", "3"));
    HF_TRY(hf_sleep(hf_seconds(70)));
    return send(execution, "approve", "4");
}

static void a_signal_is_a_case_of_select(void **state)
{
    (void)state;
    play_scene((scene){.workflow = selects,
                       .client = send_to_select,
                       .expected = HF_OK,
                       .result = "\"approve2 reject1 chan reject3 none approve4 \""});
}

/* Both signals come in one step: the select takes one, and the other is kept. */
static hf_status takes_one(hf_payload in, hf_payload *ret_out)
{
    hf_signal_case approve = {.name = "approve"};
    hf_signal_case reject = {.name = "reject"};
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &approve}, {.kind = HF_CASE_SIGNAL, .value = &reject}};
    size_t idx = 99;
    hf_payload rest = hf_payload_none();
    (void)in;
    HF_TRY(hf_select(cases, 2, &idx));
    HF_TRY(hf_signal_wait(idx == 0 ? "reject" : "approve", &rest));
    return hf_payload_printf(ret_out, "\"%zu %s %s\"", idx, idx == 1 && approve.payload.data == NULL ? "taken" : "both",
                             (const char *)rest.data);
}

static hf_status takes_one_later(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("block", hf_payload_none(), NULL, .start_to_close = hf_minutes(1)));
    return takes_one(in, ret_out);
}

static hf_status block(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_seconds(10));
}

static hf_status add_block(hf_worker *worker)
{
    return hf_worker_add_activity(worker, "block", block, .on_fiber = true);
}

static hf_status send_pair(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(20)));
    HF_TRY(send(execution, "reject", "1"));
    return send(execution, "approve", "2");
}

static void a_select_takes_one_of_two_signals(void **state)
{
    (void)state;
    play_scene((scene){.workflow = takes_one_later,
                       .client = send_pair,
                       .expected = HF_OK,
                       .result = "\"1 taken 2\"",
                       .add = add_block});
}

/* ---- Cancels ------------------------------------------------------------------------------------------------------ */

static hf_status is_canceled(hf_payload in, hf_payload *ret_out)
{
    size_t idx = 99;
    hf_signal_case approve = {.name = "approve"};
    hf_case one = {.kind = HF_CASE_SIGNAL, .value = &approve};
    (void)in;
    hf_status any = hf_signal_wait_any(NAMES, 3, &idx, NULL);
    if (any == HF_ERR_EVICTED) {
        return any;
    }
    hf_status selected = hf_select(&one, 1, &idx);
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_signal_wait("defer", NULL)); /* a canceled wait took nothing */
    return hf_payload_printf(ret_out, "\"%s %s\"", hf_status_name(any), hf_status_name(selected));
}

static hf_status cancel_it(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_cancel(execution));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return send(execution, "defer", NULL);
}

static void a_canceled_wait_takes_no_signal(void **state)
{
    (void)state;
    play_scene((scene){.workflow = is_canceled,
                       .client = cancel_it,
                       .expected = HF_OK,
                       .result = "\"HF_ERR_CANCELED HF_ERR_CANCELED\""});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(the_oldest_of_several_signals_is_taken_first),
    cmocka_unit_test(the_fiber_that_began_to_wait_first_gets_the_signal),
    cmocka_unit_test(a_wait_that_makes_no_sense_is_refused),
    cmocka_unit_test(a_signal_is_a_case_of_select),
    cmocka_unit_test(a_select_takes_one_of_two_signals),
    cmocka_unit_test(a_canceled_wait_takes_no_signal),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_signals", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
