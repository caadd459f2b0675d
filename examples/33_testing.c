/* Tests of a workflow: a subscription that is charged every 30 days until a signal ends it. The tests need no file and no waiting: a
 * year passes at once, and the activities are fakes. Copy this file, put your workflow in place of `subscription`, and change the tests.
 *
 * hf_testenv (holdfast/testenv.h) is an engine and a worker in memory. Its clock moves only when a test lets it. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* ---- The workflow. In a program of its own it is in a file that the program and its tests share. ----------------------------------- */

static hf_status subscription(hf_payload in, hf_payload *ret_out)
{
    int months = 0;
    for (;;) {
        hf_status status = hf_activity_run("charge", in, NULL, .start_to_close = hf_seconds(30), .attempts_max = 3);
        if (status == HF_ERR_FAILED) {
            return hf_payload_printf(ret_out, "{\"months\": %d, \"ended\": \"unpaid\"}", months);
        }
        HF_TRY(status);
        months++;
        status = hf_signal_wait("cancel", NULL, .timeout = hf_days(30));
        if (status == HF_OK) {
            return hf_payload_printf(ret_out, "{\"months\": %d, \"ended\": \"canceled\"}", months);
        }
        if (status != HF_ERR_TIMEOUT) {
            return status;
        }
    }
}

/* ---- A fake bank ------------------------------------------------------------------------------------------------------------------ */

typedef struct bank {
    int calls;
    int refuses_from; /* the number of the first call that is refused; 0 = none */
} bank;

static hf_status fake_charge(hf_payload in, hf_payload *ret_out)
{
    bank *b = hf_activity_arg();
    (void)in;
    (void)ret_out;
    b->calls++;
    if (b->refuses_from != 0 && b->calls >= b->refuses_from) {
        return hf_raise_typed(HF_ERR_FAILED, "Refused", "the card is blocked");
    }
    return HF_OK;
}

/* ---- The tests -------------------------------------------------------------------------------------------------------------------- */

static int failures;

#define CHECK(fact)                                                                               \
    do {                                                                                          \
        if (!(fact)) {                                                                            \
            failures++;                                                                           \
            (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #fact, hf_error_text()); \
        }                                                                                         \
    } while (0)

static hf_status new_env(hf_testenv **ret_env, bank *b, bool evict_always)
{
    HF_TRY(hf_testenv_new(ret_env, .evict_always = evict_always));
    HF_TRY(hf_worker_add_workflow(hf_testenv_worker(*ret_env), "subscription", subscription));
    return hf_testenv_activity(*ret_env, "charge", fake_charge, .arg = b);
}

/* Every test runs twice: the second time each step of the workflow is a replay, which finds code that is not deterministic. */
static hf_status a_subscription_is_charged_until_it_is_canceled(bool evict_always)
{
    bank b = {0};
    HF_AUTO(hf_testenv_free) hf_testenv *env = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(new_env(&env, &b, evict_always));
    HF_TRY(hf_testenv_start(env, "subscription", hf_payload_of_json("\"ada\""), &run));
    HF_TRY(hf_testenv_pass(env, hf_days(365)));
    CHECK(b.calls == 13); /* on the first day, and then every 30 days */
    HF_TRY(hf_signal(run, "cancel", hf_payload_none()));
    HF_TRY(hf_testenv_result(env, run, &out));
    CHECK(strcmp(out.data, "{\"months\": 13, \"ended\": \"canceled\"}") == 0);
    return HF_OK;
}

static hf_status a_card_that_is_blocked_ends_it(bool evict_always)
{
    bank b = {.refuses_from = 3};
    HF_AUTO(hf_testenv_free) hf_testenv *env = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(new_env(&env, &b, evict_always));
    HF_TRY(hf_testenv_run(env, "subscription", hf_payload_of_json("\"bob\""), &out));
    CHECK(strcmp(out.data, "{\"months\": 2, \"ended\": \"unpaid\"}") == 0);
    CHECK(b.calls == 5); /* two months, and three attempts of the third one */
    return HF_OK;
}

/* A workflow that waits for something that does not come is not a test that hangs. */
static hf_status approval(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_signal_wait("approved", ret_out);
}

static hf_status a_test_is_told_what_a_run_waits_for(bool evict_always)
{
    HF_AUTO(hf_testenv_free) hf_testenv *env = NULL;
    (void)evict_always;
    HF_TRY(hf_testenv_new(&env));
    HF_TRY(hf_worker_add_workflow(hf_testenv_worker(env), "approval", approval));
    CHECK(hf_testenv_run(env, "approval", hf_payload_none(), NULL) == HF_ERR_AGAIN);
    (void)printf("  %s\n", hf_error_text());
    CHECK(strstr(hf_error_text(), "the signal 'approved'") != NULL);
    return HF_OK;
}

int main(void)
{
    static const struct {
        const char *name;
        hf_status (*body)(bool evict_always);
    } TESTS[] = {
        {"a subscription is charged until it is canceled", a_subscription_is_charged_until_it_is_canceled},
        {"a card that is blocked ends it", a_card_that_is_blocked_ends_it},
        {"a test is told what a run waits for", a_test_is_told_what_a_run_waits_for},
    };
    for (size_t i = 0; i < 2 * sizeof TESTS / sizeof TESTS[0]; i++) {
        int before = failures;
        (void)printf("%s%s\n", TESTS[i / 2].name, i % 2 == 1 ? ", replayed at every step" : "");
        CHECK(TESTS[i / 2].body(i % 2 == 1) == HF_OK);
        (void)printf("%s\n", failures == before ? "  ok" : "  FAILED");
    }
    return failures == 0 ? 0 : 1;
}
