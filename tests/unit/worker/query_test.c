/* Queries of a run whose code was changed: the commands of the last step are compared with their events before a query is answered,
 * although no task follows yet that would do it. */
#include "unit/worker/play.h"

/* What another build of the program would have there. */
typedef enum version { AS_RECORDED, ONE_MORE, ONE_LESS, ANOTHER, ENDS_LATER } version;

static version played;
static int validations; /* in this play */

static hf_status on_state(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"%s\"", *(const char **)arg);
}

static hf_status is_fine(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    validations++;
    return HF_OK;
}

static hf_status on_set(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    return hf_payload_copy(in, ret_out);
}

static hf_status call(void *arg)
{
    return hf_activity_run(arg, hf_payload_none(), NULL, .start_to_close = hf_days(9), .task_queue = "nobody");
}

/* Two activities that nobody executes and a timer are open while it waits. */
static hf_status order(hf_payload in, hf_payload *ret_out)
{
    static char names[][8] = {"charge", "reserve", "send"};
    const char **phase = hf_workflow_alloc(sizeof *phase);
    (void)in;
    *phase = "begins";
    HF_TRY(hf_on_query("state", on_state, .arg = phase));
    HF_TRY(hf_on_update("set", on_set, .validator = is_fine));
    HF_TRY(hf_sleep(hf_seconds(1)));
    *phase = "charges";
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_days(5)));
    HF_TRY(hf_fork(scope, call, names[0]));
    if (played != ONE_LESS) {
        HF_TRY(hf_fork(scope, call, played == ANOTHER ? names[2] : names[1]));
    }
    if (played == ONE_MORE) {
        HF_TRY(hf_fork(scope, call, names[2]));
    }
    *phase = "waits";
    HF_TRY(hf_signal_wait("go", NULL));
    if (played == ENDS_LATER) {
        HF_TRY(hf_sleep(hf_hours(1)));
    }
    *phase = "ended";
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    return hf_payload_printf(ret_out, "\"done\"");
}

static hf_status other(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_signal_wait("go", NULL);
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    return hf_worker_add_workflow(worker, "other", other);
}

/* The worker has room for one run: this one takes the place of the order. */
static hf_status put_out(play *p, int number)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    char id[16];
    (void)snprintf(id, sizeof id, "other-%d", number);
    HF_TRY(hf_start(p->service, "other", hf_payload_none(), &execution, .id = id, .task_queue = "orders"));
    return hf_sleep(hf_seconds(1));
}

static void ask(hf_execution *execution, const char *name, hf_status expected, const char *answer)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_query(execution, name, hf_payload_none(), &out, .timeout = hf_minutes(1));
    const char *text = status == HF_OK ? (const char *)out.data : hf_error_text();
    HF_CHECK_SAY(status == expected && strstr(text, answer) != NULL, "version %d, %s: %s: '%s', not '%s'", (int)played,
                 name, hf_status_name(status), text, answer);
}

static const struct {
    version version;
    const char *open;   /* the sentence while it waits; NULL: it does what was recorded */
    const char *closed; /* and when it has ended */
} CASES[] = {
    {AS_RECORDED, NULL, NULL},
    {ONE_MORE,
     "not deterministic: the history has nothing more before event 14, the workflow made ScheduleActivityTask id=3 "
     "type=send at query_test.c:",
     "not deterministic: the history has nothing more before event 15, the workflow made ScheduleActivityTask id=3"},
    {ONE_LESS, "the history has ActivityTaskScheduled id=2 type=reserve (event 12), the workflow made nothing more",
     "the history has ActivityTaskScheduled id=2 type=reserve (event 12), the workflow made nothing more"},
    {ANOTHER, "(event 12), the workflow made ScheduleActivityTask id=2 type=send at query_test.c:",
     "(event 12), the workflow made ScheduleActivityTask id=2 type=send at query_test.c:"},
    {ENDS_LATER, NULL,
     "not deterministic: the history has ActivityTaskCancelRequested of_event=12 (event 17), the workflow made "
     "StartTimer id=3"},
};

static hf_status ask_all(play *p, hf_execution *execution, bool is_open, int *number)
{
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        const char *refused = is_open ? CASES[i].open : CASES[i].closed;
        HF_TRY(put_out(p, (*number)++));
        played = CASES[i].version;
        ask(execution, "state", refused != NULL ? HF_ERR_FAILED : HF_OK,
            refused != NULL ? refused
            : is_open       ? "\"waits\""
                            : "\"ended\"");
        ask(execution, "__stack_trace", refused != NULL ? HF_ERR_FAILED : HF_OK, refused != NULL ? refused : "");
    }
    played = AS_RECORDED;
    return HF_OK;
}

static hf_status body(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload result = hf_payload_none();
    int number = 0;
    played = AS_RECORDED;
    validations = 0;
    HF_TRY(hf_start(p->service, "order", hf_payload_none(), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(ask_all(p, execution, true, &number));
    HF_TRY(put_out(p, number++));
    ask(execution, "state", HF_OK, "\"waits\""); /* made again for a query, */
    ask(execution, "state", HF_OK, "\"waits\"");
    HF_TRY(hf_signal(execution, "go", hf_payload_none())); /* and its next task finds what it expects */
    HF_TRY(hf_result(execution, &result));
    play_note(p, "%s", (const char *)result.data);
    return ask_all(p, execution, false, &number);
}

static void a_query_of_code_that_was_changed_is_refused(void **state)
{
    (void)state;
    play_on((play_options){.add = add, .body = body, .worker = {.cached_max = 1}, .result = "\"done\""});
    play_on((play_options){.add = add, .body = body, .worker = {.cached_max = HF_OFF}, .result = "\"done\""});
}

/* An update comes with a workflow task, which is refused before the validator sees a run that never was. */
static hf_status update_body(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    played = AS_RECORDED;
    validations = 0;
    HF_TRY(hf_start(p->service, "order", hf_payload_none(), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(put_out(p, 0));
    played = ONE_MORE;
    hf_status status = hf_update(execution, "set", hf_payload_of_json("1"), NULL, .timeout = hf_seconds(5));
    play_note(p, "%s, %d|", hf_status_name(status), validations);
    HF_CHECK_SAY(strstr(tap_log(p->tap), "FAILED 24 not deterministic: the history has nothing more before event 14") !=
                     NULL,
                 "the log was\n%s", tap_log(p->tap));
    played = AS_RECORDED;
    HF_TRY(hf_sleep(hf_hours(1)));
    play_note(p, "%d", validations);
    return HF_OK;
}

static void an_update_of_code_that_was_changed_reaches_no_validator(void **state)
{
    (void)state;
    play_on((play_options){
        .add = add, .body = update_body, .worker = {.cached_max = HF_OFF}, .result = "HF_ERR_TIMEOUT, 0|1"});
}

/* A query that comes with a workflow task is told the same as one that has a task of its own. */
static hf_status attached_body(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    played = AS_RECORDED;
    HF_TRY(hf_start(p->service, "order", hf_payload_none(), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(put_out(p, 0));
    played = ONE_MORE;
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    ask(execution, "state", HF_ERR_FAILED,
        "not deterministic: the history has nothing more before event 18, the workflow made ScheduleActivityTask id=3");
    played = AS_RECORDED;
    HF_TRY(hf_sleep(hf_hours(1)));
    ask(execution, "state", HF_OK, "\"ended\"");
    return HF_OK;
}

static void a_query_with_a_task_of_code_that_was_changed_is_refused(void **state)
{
    (void)state;
    play_on((play_options){.add = add, .body = attached_body, .worker = {.cached_max = HF_OFF}, .result = ""});
}

/* A Temporal server gives such a query to the next attempt, which comes at once: the worker does not go round with it. */
static hf_status kept_body(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "order", hf_payload_none(), &execution, .id = "order-1", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(put_out(p, 0));
    played = ONE_MORE;
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(5)));
    play_note(p, "%d failures", tap_calls(p->tap, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED));
    played = AS_RECORDED;
    HF_TRY(hf_sleep(hf_hours(1)));
    return HF_OK;
}

static void a_query_that_a_server_keeps_does_not_make_tasks_fail_without_a_pause(void **state)
{
    (void)state;
    play_on((play_options){.add = add,
                           .body = kept_body,
                           .tap = {.queries = 50},
                           .worker = {.cached_max = HF_OFF},
                           .result = "3 failures"});
}

/* ---- Where it waits ------------------------------------------------------------------------------------------------------- */

static int places[2]; /* lines of the two waits */

static hf_status on_go(void *arg, hf_payload in)
{
    (void)in;
    ++*(int *)arg;
    return HF_OK;
}

/* The first has no bound, and the second one has a timer. */
static hf_status looks(hf_payload in, hf_payload *ret_out)
{
    int *count = hf_workflow_alloc(sizeof *count);
    (void)ret_out;
    (void)in;
    HF_TRY(hf_on_signal("go", on_go, .arg = count));
    places[0] = __LINE__ + 1;
    HF_TRY(hf_wait_until(*count >= 2));
    places[1] = __LINE__ + 1;
    return hf_wait_until(*count >= 3, .timeout = hf_days(1));
}

static hf_status add_looks(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "looks", looks);
}

static hf_status looks_body(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "looks", hf_payload_none(), &execution, .id = "w", .task_queue = "orders"));
    for (int i = 0; i < 3; i++) { /* after the first signal it has looked, and waits again */
        char line[80];
        HF_TRY(hf_sleep(hf_seconds(1)));
        (void)snprintf(line, sizeof line, "query_test.c:%d)", places[i / 2]);
        ask(execution, "__stack_trace", HF_OK, "hf_wait_until (");
        ask(execution, "__stack_trace", HF_OK, line);
        HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    }
    return hf_result(execution, NULL);
}

static void a_stack_names_the_place_of_a_condition(void **state)
{
    (void)state;
    play_on((play_options){.add = add_looks, .body = looks_body});
    play_on((play_options){.add = add_looks, .body = looks_body, .worker = {.cached_max = HF_OFF}});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_query_of_code_that_was_changed_is_refused),
        cmocka_unit_test(an_update_of_code_that_was_changed_reaches_no_validator),
        cmocka_unit_test(a_query_with_a_task_of_code_that_was_changed_is_refused),
        cmocka_unit_test(a_query_that_a_server_keeps_does_not_make_tasks_fail_without_a_pause),
        cmocka_unit_test(a_stack_names_the_place_of_a_condition),
    };
    return hf_test_main("query", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
