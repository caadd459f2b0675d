/* Which run a handle reaches: the chain of the run that was started, the current run, or one run only. */
#include "unit/client/scene.h"

static hf_workflow_status status_of(hf_execution *execution, char run_id[40])
{
    hf_description *it = NULL;
    hf_status status = hf_describe(execution, &it);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    hf_workflow_status result = it != NULL ? it->status : (hf_workflow_status)0;
    (void)snprintf(run_id, 40, "%s", it != NULL ? it->run_id : "");
    hf_description_free(it);
    return result;
}

/* The run "w" continues as another one. */
static void go_on(scene *s)
{
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_continue(s, &reply);
    scene_complete(s, task, &reply);
}

static hf_status follow(scene *s)
{
    char first[40];
    char second[40];
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_AUTO(hf_execution_free) hf_execution *only_first = NULL;
    HF_AUTO(hf_execution_free) hf_execution *by_id = NULL;
    HF_TRY(hf_execution_new(s->service, "w", &only_first, .run_id = hf_execution_run_id(w)));
    HF_TRY(hf_execution_new(s->service, "w", &by_id));
    HF_CHECK(strcmp(hf_execution_run_id(by_id), "") == 0);
    go_on(s);
    HF_CHECK(status_of(only_first, first) == HF_WORKFLOW_CONTINUED && strcmp(first, hf_execution_run_id(w)) == 0);
    HF_CHECK(status_of(w, second) == HF_WORKFLOW_RUNNING && strcmp(first, second) != 0);
    HF_CHECK(status_of(by_id, second) == HF_WORKFLOW_RUNNING);

    HF_CHECK(hf_signal(only_first, "go", hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_update(only_first, "add", hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_terminate(only_first) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_cancel(only_first) == HF_OK); /* it has ended: nothing changes */
    HF_TRY(hf_signal(w, "go", hf_payload_none()));

    scene_call query = {.verb = scene_query, .execution = w, .name = "view"};
    scene_call update = {.verb = scene_update, .execution = w, .name = "add"};
    scene_call result = {.verb = scene_result, .execution = w};
    scene_call from_first = {.verb = scene_result, .execution = only_first};
    HF_TRY(scene_ask(s, &query));
    HF_TRY(scene_ask(s, &update));
    HF_TRY(scene_ask(s, &result));
    HF_TRY(scene_ask(s, &from_first));
    HF_TRY(hf_sleep(hf_seconds(1)));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    HF_CHECK(hf_str_equal(task->workflow_execution->run_id, hf_str_of(second)));
    scene_answers(s, &reply, task, "1");
    scene_respond(s, &reply, scene_accept(s, &reply, task), "2");
    scene_complete(s, task, &reply);
    HF_TRY(hf_cancel(w, .reason = "enough"));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_done(s, &reply, "3");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&query, HF_OK, "1");
    scene_expect(&update, HF_OK, "2");
    scene_expect(&result, HF_OK, "3");
    scene_expect(&from_first, HF_OK, "3");
    return HF_OK;
}

static void the_handle_of_a_start_follows_its_chain_and_one_with_a_run_id_does_not(void **state)
{
    (void)state;
    scene_run(follow);
}

static hf_status other_chain(scene *s)
{
    char run_id[40];
    HF_AUTO(hf_execution_free) hf_execution *old = scene_start(s);
    go_on(s);
    HF_TRY(hf_terminate(old)); /* the second run of the chain */
    HF_AUTO(hf_execution_free) hf_execution *young = scene_start(s);
    HF_CHECK(hf_terminate(old) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_cancel(old) == HF_OK); /* its chain has ended: nothing changes */
    HF_CHECK(hf_update(old, "add", hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_update_start(old, "add", hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_result(old, NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowTerminated") == 0);
    hf_description *it = NULL;
    HF_TRY(hf_describe(young, &it));
    HF_CHECK(it->status == HF_WORKFLOW_RUNNING && !it->is_cancel_requested);
    hf_description_free(it);
    HF_TRY(hf_cancel(young));
    HF_TRY(hf_terminate(young));
    HF_CHECK(status_of(young, run_id) == HF_WORKFLOW_TERMINATED);
    HF_CHECK(strcmp(run_id, hf_execution_run_id(young)) == 0);
    return HF_OK;
}

static void a_handle_does_not_end_another_chain_of_its_id(void **state)
{
    (void)state;
    scene_run(other_chain);
}

/* A start that meets a run which is not the first of its chain. */
static hf_status joins_late(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_AUTO(hf_execution_free) hf_execution *same = NULL;
    go_on(s);
    HF_TRY(
        hf_start(s->service, "type", hf_payload_none(), &same, .id = "w", .id_conflict = HF_ID_CONFLICT_USE_EXISTING));
    HF_CHECK(strcmp(hf_execution_run_id(same), hf_execution_run_id(w)) != 0);
    go_on(s);
    HF_TRY(hf_cancel(same));
    HF_TRY(hf_terminate(same, .reason = "enough"));
    HF_CHECK(hf_result(w, NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowTerminated") == 0);
    return HF_OK;
}

static void a_start_that_finds_a_run_follows_that_runs_chain(void **state)
{
    (void)state;
    scene_run(joins_late);
}

/* ---- Resets ------------------------------------------------------------------------------------------------------- */

static hf_status reset_everywhere(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_activity(s, &reply, "a1", 1);
    scene_complete(s, task, &reply);
    const hf_reset_options cases[] = {
        {.point = HF_RESET_FIRST, .reason = "from the start"},
        {.point = HF_RESET_LAST},
        {.event_id = 4},
        {.activity_id = "a1", .request_id = "r1"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(cases); i++) {
        HF_AUTO(hf_execution_free) hf_execution *again = NULL;
        char run_id[40];
        hf_reset_options options = cases[i];
        options.size = sizeof options;
        HF_TRY(hf_reset_with(w, &again, &options));
        HF_CHECK(status_of(w, run_id) == HF_WORKFLOW_RUNNING && strcmp(run_id, hf_execution_run_id(again)) == 0);
        task = scene_poll(s);
        HF_CHECK(hf_str_equal(task->workflow_execution->run_id, hf_str_of(run_id)));
        reply = (scene_reply){0};
        scene_activity(s, &reply, "a1", 1);
        scene_complete(s, task, &reply);
        if (options.request_id != NULL) { /* the same request again makes no other run */
            HF_AUTO(hf_execution_free) hf_execution *same = NULL;
            HF_TRY(hf_reset_with(w, &same, &options));
            HF_CHECK(strcmp(hf_execution_run_id(same), hf_execution_run_id(again)) == 0);
        }
    }
    return HF_OK;
}

static void a_reset_goes_back_to_a_workflow_task_and_gives_the_new_run(void **state)
{
    (void)state;
    scene_run(reset_everywhere);
}

static hf_status reset_refused(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    HF_AUTO(hf_execution_free) hf_execution *later = NULL;
    hf_execution *none = NULL;
    HF_TRY(hf_execution_new(s->service, "nobody", &nobody));
    HF_CHECK(hf_reset(nobody, &none, .point = HF_RESET_FIRST) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_start(s->service, "type", hf_payload_none(), &later, .id = "later", .start_delay = hf_hours(1)));
    HF_CHECK(hf_reset(later, &none, .point = HF_RESET_FIRST) == HF_ERR_INVALID); /* it has had no workflow task */
    (void)scene_pass(s);
    HF_CHECK(hf_reset(w, &none) == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .point = HF_RESET_FIRST, .event_id = 4) == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .point = (hf_reset_point)3) == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .event_id = -1) == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .event_id = 99) == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .activity_id = "nothing") == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .activity_id = "") == HF_ERR_INVALID);
    HF_CHECK(hf_reset(w, &none, .point = HF_RESET_LAST, .request_id = "") == HF_ERR_INVALID);
    HF_CHECK(hf_reset(NULL, &none, .point = HF_RESET_LAST) == HF_ERR_MISUSE);
    HF_CHECK(none == NULL);
    HF_TRY(hf_reset(w, NULL, .point = HF_RESET_LAST)); /* without a handle */
    HF_CHECK(hf_result(w, NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowTerminated") == 0);
    return HF_OK;
}

static void a_reset_that_makes_no_sense_changes_nothing(void **state)
{
    (void)state;
    scene_run(reset_refused);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(the_handle_of_a_start_follows_its_chain_and_one_with_a_run_id_does_not),
        cmocka_unit_test(a_handle_does_not_end_another_chain_of_its_id),
        cmocka_unit_test(a_start_that_finds_a_run_follows_that_runs_chain),
        cmocka_unit_test(a_reset_goes_back_to_a_workflow_task_and_gives_the_new_run),
        cmocka_unit_test(a_reset_that_makes_no_sense_changes_nothing),
    };
    return hf_test_main("chain", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
