/* hf_query, hf_update, hf_update_start, hf_update_result: what they return, for everything that a workflow may answer. */
#include "unit/client/scene.h"

#include "client/errand.h"

/* ---- Queries ------------------------------------------------------------------------------------------------------ */

static hf_status query_answers(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call alone = {.verb = scene_query, .execution = w, .name = "view"};
    HF_TRY(scene_ask(s, &alone));
    const scene_task *task = scene_poll(s);
    HF_CHECK(hf_str_equal(task->query->query_type, HF_STR("view")));
    HF_CHECK(hf_str_equal(hf_payloads_first(task->query->query_args)->data, HF_STR("7")));
    scene_answer(s, task, "\"fine\"");
    HF_TRY(scene_wait(s));
    scene_expect(&alone, HF_OK, "\"fine\"");

    scene_call failed = {.verb = scene_query, .execution = w, .name = "other"};
    HF_TRY(scene_ask(s, &failed));
    scene_answer(s, scene_poll(s), NULL);
    HF_TRY(scene_wait(s));
    scene_expect(&failed, HF_ERR_FAILED, "");
    HF_CHECK(strcmp(failed.type, "Oops") == 0 && strcmp(failed.text, "no such view") == 0);

    HF_TRY(hf_signal(w, "go", hf_payload_none())); /* the query goes with the task of the signal */
    scene_call with_task = {.verb = scene_query, .execution = w, .name = "view"};
    HF_TRY(scene_ask(s, &with_task));
    HF_TRY(hf_sleep(hf_seconds(1)));
    scene_reply reply = {0};
    task = scene_poll(s);
    HF_CHECK(task->query == NULL && task->queries.count == 1);
    scene_answers(s, &reply, task, "2");
    scene_done(s, &reply, "\"end\"");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&with_task, HF_OK, "2");

    scene_call closed = {.verb = scene_query, .execution = w, .name = "view"}; /* an ended workflow answers, too */
    HF_TRY(scene_ask(s, &closed));
    scene_answer(s, scene_poll(s), "3");
    HF_TRY(scene_wait(s));
    scene_expect(&closed, HF_OK, "3");
    return HF_OK;
}

static void a_query_returns_the_answer_or_the_failure_of_the_workflow(void **state)
{
    (void)state;
    scene_run(query_answers);
}

static hf_status query_fails(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    HF_TRY(hf_execution_new(s->service, "nobody", &nobody));
    HF_CHECK(hf_query(nobody, "view", hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_query(w, "", hf_payload_none(), NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_query(w, NULL, hf_payload_none(), NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_query(NULL, "view", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_query(w, "view", hf_payload_of_bytes(NULL, 1), NULL) == HF_ERR_MISUSE);
    hf_instant before = hf_now(NULL);
    HF_CHECK(hf_query(w, "view", hf_payload_none(), NULL, .timeout = hf_hours(3)) == HF_ERR_TIMEOUT);
    HF_CHECK_SAY(hf_now(NULL).ns - before.ns >= hf_hours(3).ns, "%s", hf_error_text());
    HF_CHECK(strstr(hf_error_text(), "hf_query of workflow 'w'") != NULL);
    HF_CHECK(hf_query(w, "view", hf_payload_none(), NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_TRY(hf_terminate(w));
    HF_CHECK(hf_query(w, "view", hf_payload_none(), NULL) == HF_ERR_NOT_READY); /* it ended before its code ran */
    return HF_OK;
}

static void a_query_that_nobody_answers_fails_with_the_status_of_the_header(void **state)
{
    (void)state;
    scene_run(query_fails);
}

static hf_status query_canceled(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    scene_call query = {.verb = scene_query, .execution = w, .name = "view"};
    HF_TRY(scene_ask(s, &query));
    HF_TRY(hf_sleep(hf_hours(1))); /* without a timeout it waits as long as need be */
    HF_CHECK(!query.is_done);
    HF_TRY(hf_scope_cancel(s->scope));
    HF_CHECK(hf_join(s->scope) == HF_OK);
    HF_CHECK(query.is_done && query.status == HF_ERR_CANCELED);
    return HF_OK;
}

static void a_canceled_scope_ends_the_wait_of_a_query(void **state)
{
    (void)state;
    scene_run(query_canceled);
}

/* ---- Updates ------------------------------------------------------------------------------------------------------ */

static hf_status update_ends(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call at_once = {.verb = scene_update, .execution = w, .name = "add"};
    HF_TRY(scene_ask(s, &at_once));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_respond(s, &reply, scene_accept(s, &reply, task), "\"added\"");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&at_once, HF_OK, "\"added\"");

    scene_call rejected = {.verb = scene_update, .execution = w, .name = "add"};
    HF_TRY(scene_ask(s, &rejected));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_reject(s, &reply, task, "it is full");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&rejected, HF_ERR_FAILED, "");
    HF_CHECK(strcmp(rejected.type, "Refused") == 0 && strcmp(rejected.text, "it is full") == 0);

    scene_call failed = {.verb = scene_update, .execution = w, .name = "add"};
    HF_TRY(scene_ask(s, &failed));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, scene_accept(s, &reply, task), NULL);
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&failed, HF_ERR_FAILED, "");
    HF_CHECK(strcmp(failed.type, "Oops") == 0 && strcmp(failed.text, "no luck") == 0);

    scene_call outlived = {
        .verb = scene_update, .execution = w, .name = "add"}; /* the workflow ends before its handler */
    HF_TRY(scene_ask(s, &outlived));
    task = scene_poll(s);
    reply = (scene_reply){0};
    (void)scene_accept(s, &reply, task);
    scene_done(s, &reply, "1");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&outlived, HF_ERR_FAILED, "");
    HF_CHECK_SAY(strcmp(outlived.type, "AcceptedUpdateCompletedWorkflow") == 0, "%s", outlived.type);
    return HF_OK;
}

static void an_update_returns_the_result_or_the_failure_of_its_handler(void **state)
{
    (void)state;
    scene_run(update_ends);
}

/* The wait is longer than one call of the service lasts, before and after the update is accepted. */
static hf_status update_waits(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call slow = {.verb = scene_update, .execution = w, .name = "add", .id = "u1"};
    HF_TRY(scene_ask(s, &slow));
    HF_TRY(hf_sleep(hf_hours(1)));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    HF_CHECK(strcmp(scene_accept(s, &reply, task), "u1") == 0);
    scene_complete(s, task, &reply);
    HF_TRY(hf_sleep(hf_hours(1)));
    HF_CHECK(!slow.is_done);
    HF_TRY(hf_signal(w, "go", hf_payload_none()));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, "u1", "\"late\"");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&slow, HF_OK, "\"late\"");

    scene_call again = {.verb = scene_update, .execution = w, .name = "add", .id = "u1"}; /* the same update */
    HF_TRY(scene_ask(s, &again));
    HF_TRY(scene_wait(s));
    scene_expect(&again, HF_OK, "\"late\"");
    return HF_OK;
}

static void an_update_waits_as_long_as_its_handler_takes(void **state)
{
    (void)state;
    scene_run(update_waits);
}

static hf_status update_in_two_steps(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call start = {.verb = scene_update_start, .execution = w, .name = "add", .id = "u1"};
    HF_TRY(scene_ask(s, &start));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    (void)scene_accept(s, &reply, task);
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&start, HF_OK, "");
    HF_CHECK(strcmp(hf_update_handle_id(start.handle), "u1") == 0);
    HF_CHECK(hf_update_result(start.handle, NULL, .timeout = hf_seconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_update_result(start.handle, NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_update_result(NULL, NULL) == HF_ERR_MISUSE);

    scene_call result = {.verb = scene_update_result, .handle = start.handle};
    HF_TRY(scene_ask(s, &result));
    HF_TRY(hf_signal(w, "go", hf_payload_none()));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, "u1", "5");
    scene_continue(s, &reply); /* the outcome stays with the run that had the update */
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&result, HF_OK, "5");
    scene_call later = {.verb = scene_update_result, .handle = start.handle};
    HF_TRY(scene_ask(s, &later));
    HF_TRY(scene_wait(s));
    scene_expect(&later, HF_OK, "5");
    hf_update_handle_free(start.handle);

    HF_AUTO(hf_update_handle_free) hf_update_handle *elsewhere = NULL; /* as another program would do */
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_execution_new(s->service, "w", &run, .run_id = hf_execution_run_id(w)));
    HF_TRY(hf_update_handle_new(run, "u1", &elsewhere));
    scene_call found = {.verb = scene_update_result, .handle = elsewhere};
    HF_TRY(scene_ask(s, &found));
    HF_TRY(scene_wait(s));
    scene_expect(&found, HF_OK, "5");

    HF_AUTO(hf_update_handle_free) hf_update_handle *unknown = NULL;
    HF_TRY(hf_update_handle_new(w, "u2", &unknown));
    HF_CHECK(hf_update_result(unknown, NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_update_handle_new(w, "", &unknown) == HF_ERR_INVALID);
    HF_CHECK(hf_update_handle_new(NULL, "u", &unknown) == HF_ERR_MISUSE);
    HF_CHECK(strcmp(hf_update_handle_id(NULL), "") == 0);
    return HF_OK;
}

static void a_started_update_has_its_result_later_wherever_it_is_asked_for(void **state)
{
    (void)state;
    scene_run(update_in_two_steps);
}

static hf_status update_fails(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    hf_update_handle *none = NULL;
    (void)scene_pass(s);
    HF_TRY(hf_execution_new(s->service, "nobody", &nobody));
    HF_CHECK(hf_update(nobody, "add", hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_update_start(nobody, "add", hf_payload_none(), &none) == HF_ERR_NOT_FOUND && none == NULL);
    HF_CHECK(hf_update(w, "", hf_payload_none(), NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_update(w, "add", hf_payload_none(), NULL, .id = "") == HF_ERR_INVALID);
    HF_CHECK(hf_update(NULL, "add", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_update_start(NULL, "add", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_update(w, "add", hf_payload_of_bytes(NULL, 1), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_update(w, "add", hf_payload_none(), NULL, .timeout = hf_minutes(10)) == HF_ERR_TIMEOUT);
    HF_CHECK(strstr(hf_error_text(), "not accepted in time") != NULL);
    HF_CHECK(hf_update_start(w, "add", hf_payload_none(), NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);

    scene_call rejected = {.verb = scene_update_start, .execution = w, .name = "add"};
    HF_TRY(hf_terminate(w));
    HF_TRY(scene_ask(s, &rejected));
    HF_TRY(scene_wait(s));
    scene_expect(&rejected, HF_ERR_NOT_FOUND, "");
    return HF_OK;
}

static void an_update_that_is_not_accepted_fails_with_the_status_of_the_header(void **state)
{
    (void)state;
    scene_run(update_fails);
}

static hf_status update_start_rejected(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call start = {.verb = scene_update_start, .execution = w, .name = "add"};
    HF_TRY(scene_ask(s, &start));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_reject(s, &reply, task, "it is full");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&start, HF_ERR_FAILED, "");
    HF_CHECK(start.handle == NULL && strcmp(start.type, "Refused") == 0);
    return HF_OK;
}

static void a_rejected_update_has_no_handle(void **state)
{
    (void)state;
    scene_run(update_start_rejected);
}

/* The run continues as another one while the update waits for a workflow task: it is for that one. */
static hf_status update_moves_on(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    const scene_task *task = scene_poll(s);
    scene_call moves = {.verb = scene_update, .execution = w, .name = "add"};
    HF_TRY(scene_ask(s, &moves));
    HF_TRY(hf_sleep(hf_seconds(1)));
    scene_reply reply = {0};
    scene_continue(s, &reply);
    scene_complete(s, task, &reply);
    HF_TRY(hf_sleep(hf_seconds(1))); /* the client sends it again */
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, scene_accept(s, &reply, task), "6");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&moves, HF_OK, "6");
    return HF_OK;
}

static void an_update_follows_a_run_that_continues_as_new(void **state)
{
    (void)state;
    scene_run(update_moves_on);
}

/* ---- A service in trouble ----------------------------------------------------------------------------------------- */

static hf_status ask_query(hf_execution *w)
{
    return hf_query(w, "view", hf_payload_none(), NULL);
}

static hf_status ask_update(hf_execution *w)
{
    return hf_update(w, "add", hf_payload_none(), NULL);
}

static hf_status ask_update_start(hf_execution *w)
{
    return hf_update_start(w, "add", hf_payload_none(), NULL);
}

static hf_status ask_update_result(hf_execution *w)
{
    HF_AUTO(hf_update_handle_free) hf_update_handle *handle = NULL;
    HF_TRY(hf_update_handle_new(w, "u", &handle));
    return hf_update_result(handle, NULL);
}

static hf_status ask_describe(hf_execution *w)
{
    hf_description *none = NULL;
    return hf_describe(w, &none);
}

static hf_status ask_reset(hf_execution *w)
{
    return hf_reset(w, NULL, .point = HF_RESET_FIRST);
}

static hf_status ask_both(hf_execution *w)
{
    return hf_start_and_update(w->service, "type", hf_payload_none(), "add", hf_payload_none(), NULL, NULL);
}

static hf_status ask_start_and_signal(hf_execution *w)
{
    return hf_start_and_signal(w->service, "type", hf_payload_none(), "go", hf_payload_none(), NULL);
}

static const struct {
    hf_method method;
    hf_status (*ask)(hf_execution *w);
} TROUBLES[] = {
    {HF_METHOD_QUERY_WORKFLOW, ask_query},
    {HF_METHOD_UPDATE_WORKFLOW_EXECUTION, ask_update},
    {HF_METHOD_UPDATE_WORKFLOW_EXECUTION, ask_update_start},
    {HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, ask_update_result},
    {HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, ask_describe},
    {HF_METHOD_RESET_WORKFLOW_EXECUTION, ask_reset},
    {HF_METHOD_EXECUTE_MULTI_OPERATION, ask_both},
    {HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, ask_start_and_signal},
};

static hf_status trouble(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    size_t i = (size_t)s->faults.refuse_count - 1; /* the row */
    hf_status status = TROUBLES[i].ask(w);
    HF_CHECK_SAY(status == s->faults.refuse_status, "row %zu: %s: %s", i, hf_status_name(status), hf_error_text());
    HF_CHECK(tap_calls(s->tap, TROUBLES[i].method) == 1); /* the caller decides whether to try again */
    return HF_OK;
}

static void a_service_that_cannot_answer_is_reported_at_once(void **state)
{
    (void)state;
    static const hf_status STATUSES[] = {HF_ERR_UNAVAILABLE, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_LIMIT};
    for (size_t i = 0; i < HF_COUNT_OF(TROUBLES) * HF_COUNT_OF(STATUSES); i++) {
        size_t row = i % HF_COUNT_OF(TROUBLES);
        scene_run_with(trouble, (tap_options){.refuse_method = TROUBLES[row].method,
                                              .refuse_count = (int)row + 1,
                                              .refuse_status = STATUSES[i / HF_COUNT_OF(TROUBLES)]});
    }
}

/* The answer to an accepted update is lost: the same id asks for the same update. */
static hf_status update_repeated(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    (void)scene_pass(s);
    scene_call lost = {.verb = scene_update, .execution = w, .name = "add", .id = "u1"};
    HF_TRY(scene_ask(s, &lost));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    (void)scene_accept(s, &reply, task);
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s)); /* its first poll is refused */
    scene_expect(&lost, HF_ERR_UNAVAILABLE, "");
    scene_call again = {.verb = scene_update, .execution = w, .name = "add", .id = "u1"};
    HF_TRY(scene_ask(s, &again));
    HF_TRY(hf_signal(w, "go", hf_payload_none()));
    task = scene_poll(s);
    HF_CHECK(task->messages.count == 0); /* it is not sent to the workflow again */
    reply = (scene_reply){0};
    scene_respond(s, &reply, "u1", "5");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&again, HF_OK, "5");
    return HF_OK;
}

static void an_update_whose_answer_was_lost_is_repeated_by_its_id(void **state)
{
    (void)state;
    scene_run_with(update_repeated, (tap_options){.refuse_method = HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE,
                                                  .refuse_count = 1,
                                                  .refuse_status = HF_ERR_UNAVAILABLE});
}

static void a_service_is_not_closed_under_the_handle_of_an_update(void **state)
{
    (void)state;
    hf_service *service = NULL;
    hf_execution *execution = NULL;
    hf_update_handle *handle = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(hf_execution_new(service, "w", &execution), HF_OK);
    assert_int_equal(hf_update_handle_new(execution, "u", &handle), HF_OK);
    hf_execution_free(execution); /* the handle does not need it */
    assert_string_equal(hf_update_handle_id(handle), "u");
    assert_int_equal(hf_close(service), HF_ERR_MISUSE);
    assert_string_equal(hf_error_text(),
                        "hf_close: 1 update handle of this service is not freed: call hf_update_handle_free first");
    hf_update_handle_free(handle);
    assert_int_equal(hf_close(service), HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_query_returns_the_answer_or_the_failure_of_the_workflow),
        cmocka_unit_test(a_query_that_nobody_answers_fails_with_the_status_of_the_header),
        cmocka_unit_test(a_canceled_scope_ends_the_wait_of_a_query),
        cmocka_unit_test(an_update_returns_the_result_or_the_failure_of_its_handler),
        cmocka_unit_test(an_update_waits_as_long_as_its_handler_takes),
        cmocka_unit_test(a_started_update_has_its_result_later_wherever_it_is_asked_for),
        cmocka_unit_test(an_update_that_is_not_accepted_fails_with_the_status_of_the_header),
        cmocka_unit_test(a_rejected_update_has_no_handle),
        cmocka_unit_test(an_update_follows_a_run_that_continues_as_new),
        cmocka_unit_test(a_service_that_cannot_answer_is_reported_at_once),
        cmocka_unit_test(an_update_whose_answer_was_lost_is_repeated_by_its_id),
        cmocka_unit_test(a_service_is_not_closed_under_the_handle_of_an_update),
    };
    return hf_test_main("ask", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
