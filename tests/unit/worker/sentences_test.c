/* labels: threads */
/* What a workflow hears of a wait that took too long, or of something that is not there: the sentence names the object. */
#include "support/support.h"

#include "base/base.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

static hf_status wait_signal(void)
{
    return hf_signal_wait("approve", NULL, .timeout = hf_hours(1));
}

static hf_status wait_any(void)
{
    const char *const names[] = {"pay", "abandon"};
    size_t idx = 0;
    return hf_signal_wait_any(names, 2, &idx, NULL, .timeout = hf_hours(1));
}

static hf_status try_signal(void)
{
    return hf_signal_try("approve", NULL);
}

static hf_status wait_select(void)
{
    hf_signal_case approval = {.name = "approve"};
    hf_case cases[] = {{.kind = HF_CASE_SIGNAL, .value = &approval}};
    size_t idx = 0;
    return hf_select(cases, 1, &idx, .timeout = hf_hours(1));
}

static hf_status wait_chan(void)
{
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    int value = 0;
    HF_TRY(hf_chan_new(sizeof value, &chan, .name = "parcels"));
    return hf_chan_recv(chan, &value, .timeout = hf_hours(1));
}

static hf_status wait_sem(void)
{
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_TRY(hf_sem_new(0, &sem, .name = "seats"));
    return hf_sem_acquire(sem, 1, .timeout = hf_hours(1));
}

static hf_status until_false(void)
{
    return hf_wait_until(false, .timeout = hf_hours(1));
}

static hf_status until_now(void)
{
    return hf_wait_until(false, .timeout = hf_nanoseconds(-1));
}

static hf_status in_scope(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "bookings", .timeout = hf_hours(1)));
    HF_IGNORE(hf_sleep(hf_hours(2)));
    return hf_join(scope);
}

static hf_status run_activity(void)
{
    return hf_activity_run("charge", hf_payload_none(), NULL, .schedule_to_close = hf_hours(1));
}

static hf_status run_child(void)
{
    return hf_child_run("order", hf_payload_none(), NULL, .execution_timeout = hf_hours(1));
}

static hf_status signal_other(void)
{
    return hf_external_signal("other-7", "go", hf_payload_none());
}

static hf_status cancel_other(void)
{
    return hf_external_cancel("other-7", NULL);
}

static const struct {
    const char *name;
    hf_status (*call)(void);
    hf_status status;
    const char *names[2]; /* what the sentence names */
} CASES[] = {
    {"signal", wait_signal, HF_ERR_TIMEOUT, {"hf_signal_wait", "'approve'"}},
    {"any", wait_any, HF_ERR_TIMEOUT, {"'pay'", "'abandon'"}},
    {"try", try_signal, HF_ERR_AGAIN, {"'approve'", NULL}},
    {"select", wait_select, HF_ERR_TIMEOUT, {"hf_select", "'approve'"}},
    {"chan", wait_chan, HF_ERR_TIMEOUT, {"hf_chan_recv", "'parcels'"}},
    {"sem", wait_sem, HF_ERR_TIMEOUT, {"hf_sem_acquire", "'seats'"}},
    {"until", until_false, HF_ERR_TIMEOUT, {"hf_wait_until", "sentences_test.c"}},
    {"until now", until_now, HF_ERR_TIMEOUT, {"hf_wait_until", "sentences_test.c"}},
    {"scope", in_scope, HF_ERR_TIMEOUT, {"'bookings'", NULL}},
    {"activity", run_activity, HF_ERR_TIMEOUT, {"'charge'", NULL}},
    {"child", run_child, HF_ERR_TIMEOUT, {"'order'", NULL}},
    {"external signal", signal_other, HF_ERR_NOT_FOUND, {"other-7", NULL}},
    {"external cancel", cancel_other, HF_ERR_NOT_FOUND, {"other-7", NULL}},
};

static hf_status talk(hf_payload in, hf_payload *ret_out)
{
    int64_t i = 0;
    HF_TRY(hf_json_get_int(in, "", &i));
    hf_status status = CASES[i].call();
    return hf_payload_object(ret_out, hf_field_int("status", status),
                             hf_field_text("text", status != HF_OK ? hf_error_text() : ""));
}

static hf_status never(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_PENDING;
}

static hf_status sleeper(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_days(1));
}

static void quiet(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

static void a_sentence_names_what_it_is_about(void **state)
{
    (void)state;
    hf_testenv *env = NULL;
    int bad = 0;
    assert_int_equal(hf_testenv_new(&env, .log = quiet), HF_OK);
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "talk", talk), HF_OK);
    assert_int_equal(hf_worker_add_workflow(hf_testenv_worker(env), "order", sleeper), HF_OK);
    assert_int_equal(hf_testenv_activity(env, "charge", never), HF_OK);
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char number[16];
        char text[600] = "";
        int64_t status = 0;
        hf_payload out = hf_payload_none();
        (void)snprintf(number, sizeof number, "%zu", i);
        if (hf_testenv_run(env, "talk", hf_payload_of_json(number), &out) != HF_OK) {
            fail_msg("%s: %s", CASES[i].name, hf_error_text());
        }
        assert_int_equal(hf_json_get_int(out, "status", &status), HF_OK);
        assert_int_equal(hf_json_get_text(out, "text", sizeof text, text), HF_OK);
        print_message("%-16s %s\n", CASES[i].name, text);
        bad += status != CASES[i].status;
        for (size_t k = 0; k < HF_COUNT_OF(CASES[i].names) && CASES[i].names[k] != NULL; k++) {
            bool is_named = strstr(text, CASES[i].names[k]) != NULL;
            bad += !is_named;
            if (!is_named) {
                print_message("    does not name %s\n", CASES[i].names[k]);
            }
        }
        hf_payload_free(&out);
    }
    assert_int_equal(bad, 0);
    assert_int_equal(hf_testenv_free(env), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_names_what_it_is_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
