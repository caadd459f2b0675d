/* Failures on their way through a workflow: what an activity said arrives at the workflow and at the client as it was said, and
 * the history keeps what kind of failure it is. */
#include "unit/worker/play.h"

#include "base/base.h"

enum { TYPE_LEN = 240, MESSAGE_LEN = 4000, CAUSES = 18 };

static char type_text[TYPE_LEN + 1];
static char message_text[MESSAGE_LEN + 1];

static hf_status fail_whole(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    for (int i = CAUSES; i > 0; i--) {
        char type[20];
        (void)snprintf(type, sizeof type, "Cause%d", i);
        HF_IGNORE(hf_raise_typed((hf_status)(HF_ERR_USER + i), type, "cause %d", i));
    }
    return hf_activity_fail(message_text, .type = type_text, .is_final = true,
                            .details = hf_payload_of_json("{\"left\": 3}"));
}

/* `from` is the failure of the activity. */
static void check_whole(const hf_failure *from, const char *who)
{
    if (!HF_CHECK_SAY(from != NULL && from->cause != NULL, "%s was told nothing", who)) {
        return;
    }
    HF_CHECK_SAY(from->kind == HF_FAILURE_ACTIVITY && strcmp(from->type, "ActivityFailed") == 0, "%s: kind %s, type %s",
                 who, hf_failure_kind_name(from->kind), from->type);
    from = from->cause;
    HF_CHECK_SAY(from->kind == HF_FAILURE_APPLICATION && strcmp(from->type, type_text) == 0, "%s: type %s", who,
                 from->type);
    HF_CHECK_SAY(strcmp(from->message, message_text) == 0, "%s: %zu bytes", who, strlen(from->message));
    HF_CHECK(from->details.data != NULL && strcmp(from->details.data, "{\"left\": 3}") == 0);
    for (int i = 1; i <= CAUSES; i++) {
        char type[20];
        (void)snprintf(type, sizeof type, "Cause%d", i);
        from = from->cause;
        if (!HF_CHECK_SAY(from != NULL && (int)from->status == HF_ERR_USER + i && strcmp(from->type, type) == 0,
                          "%s: cause %d is %s", who, i, from != NULL ? from->type : "missing")) {
            return;
        }
    }
    HF_CHECK(from->cause == NULL);
}

/* Fails as its activity did; with input, with a failure of its own because of that. */
static hf_status pass_on(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    hf_status status = hf_activity_run("fail", hf_payload_none(), NULL, .start_to_close = hf_seconds(9));
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    check_whole(hf_error(), "the workflow");
    HF_TRY(hf_sleep(hf_seconds(1))); /* a replay is told the same */
    status = hf_activity_run("fail", hf_payload_none(), NULL, .start_to_close = hf_seconds(9));
    if (status != HF_ERR_FAILED || in.len == 0) {
        return status;
    }
    return hf_raise_typed(HF_ERR_FAILED, "Mine", "the order failed");
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "pass_on", pass_on));
    return hf_worker_add_activity(worker, "fail", fail_whole, .on_fiber = true);
}

static hf_status ask(play *p)
{
    static const char *const INPUTS[] = {"", "1"};
    for (size_t i = 0; i < HF_COUNT_OF(INPUTS); i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_TRY(hf_start(p->service, "pass_on", hf_payload_of_json(INPUTS[i]), &execution, .task_queue = "orders"));
        HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
        const hf_failure *failure = hf_error();
        HF_CHECK(i == 0 || (failure->kind == HF_FAILURE_APPLICATION && strcmp(failure->type, "Mine") == 0));
        check_whole(i == 0 ? failure : failure->cause, "the client");
    }
    return HF_OK;
}

static void a_failure_arrives_as_it_was_said(void **state)
{
    (void)state;
    memset(type_text, 'T', TYPE_LEN);
    memset(message_text, 'm', MESSAGE_LEN);
    play_on((play_options){.add = add, .body = ask});
    play_on((play_options){.add = add, .body = ask, .worker = {.cached_max = HF_OFF}});
}

/* ---- How runs end -------------------------------------------------------------------------------------------------- */

static hf_status wait_long(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_days(1));
}

static hf_status add_waiter(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "wait", wait_long);
}

static hf_status end_in_every_way(play *p)
{
    static const struct {
        const char *type;
        hf_failure_kind kind;
    } ENDS[] = {{"WorkflowTerminated", HF_FAILURE_TERMINATED},
                {"WorkflowCanceled", HF_FAILURE_CANCELED},
                {"WorkflowTimedOut", HF_FAILURE_TIMEOUT}};
    for (size_t i = 0; i < HF_COUNT_OF(ENDS); i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_TRY(hf_start(p->service, "wait", hf_payload_none(), &execution, .task_queue = "orders",
                        .run_timeout = hf_hours(1)));
        HF_TRY(hf_sleep(hf_seconds(1)));
        if (i == 0) {
            HF_TRY(hf_terminate(execution));
        } else if (i == 1) {
            HF_TRY(hf_cancel(execution));
        }
        HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
        HF_CHECK_SAY(hf_error()->kind == ENDS[i].kind && strcmp(hf_error()->type, ENDS[i].type) == 0, "%s: %s, %s",
                     ENDS[i].type, hf_error()->type, hf_failure_kind_name(hf_error()->kind));
    }
    return HF_OK;
}

static void the_end_of_a_run_has_a_kind(void **state)
{
    (void)state;
    play_on((play_options){.add = add_waiter, .body = end_in_every_way});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_failure_arrives_as_it_was_said),
        cmocka_unit_test(the_end_of_a_run_has_a_kind),
    };
    return hf_test_main("worker_failure", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
