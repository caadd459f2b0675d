/* hf_describe: what it shows of a run that works, waits and ends. */
#include "unit/client/scene.h"

static hf_status fail_activity(scene *s, hf_str token, const char *why, const char *because)
{
    hf_pb_failure *failure = hf_failure_application(&s->arena, HF_STR("Declined"), hf_str_of(why), false);
    failure->cause = hf_failure_application(&s->arena, HF_STR("Bank"), hf_str_of(because), false);
    hf_pb_respond_activity_task_failed_request request = {
        .namespace = HF_STR("default"), .task_token = token, .identity = HF_STR("worker"), .failure = failure};
    HF_CHECK(scene_do(s, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &request, NULL) != NULL);
    return HF_OK;
}

static hf_status beat(scene *s, hf_str token, const char *details)
{
    hf_pb_record_activity_task_heartbeat_request request = {.namespace = HF_STR("default"),
                                                            .task_token = token,
                                                            .identity = HF_STR("worker"),
                                                            .details = scene_json(s, details)};
    HF_CHECK(scene_do(s, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request, NULL) != NULL);
    return HF_OK;
}

static hf_status shows_pending(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_activity(s, &reply, "a1", 3);
    scene_child(s, &reply, "kid-1");
    scene_complete(s, task, &reply);
    HF_TRY(hf_sleep(hf_seconds(1)));
    const hf_pb_poll_activity_task_queue_response *first = scene_poll_activity(s);
    HF_TRY(beat(s, first->task_token, "\"half\""));
    {
        HF_AUTO(hf_description_free) hf_description *it = NULL;
        HF_TRY(hf_describe(w, &it));
        const hf_pending_activity *a = it->activities;
        HF_CHECK(it->activity_count == 1 && strcmp(a->id, "a1") == 0 && strcmp(a->type, "charge") == 0);
        HF_CHECK(a->state == HF_PENDING_STARTED && a->attempt == 1 && a->attempts_max == 3);
        HF_CHECK(a->started.ns > 0 && a->heartbeat_time.ns >= a->started.ns && a->next_attempt.ns == 0);
        HF_CHECK(a->expires.ns == a->scheduled.ns + hf_seconds(1000).ns);
        HF_CHECK(a->heartbeat.len == 6 && strcmp(a->heartbeat.data, "\"half\"") == 0);
        HF_CHECK(strcmp(a->last_failure, "") == 0 && strcmp(a->last_failure_type, "") == 0);
        HF_CHECK(strcmp(a->worker, "worker") == 0);
        const hf_pending_child *kid = it->children;
        HF_CHECK(it->child_count == 1 && strcmp(kid->id, "kid-1") == 0 && strcmp(kid->type, "kid") == 0);
        HF_CHECK(strlen(kid->run_id) == 36 && it->task_attempt == 1); /* the child's start woke the workflow */
        HF_AUTO(hf_execution_free) hf_execution *child = NULL;
        HF_AUTO(hf_description_free) hf_description *of_child = NULL;
        HF_TRY(hf_execution_new(s->service, "kid-1", &child, .run_id = kid->run_id));
        HF_TRY(hf_describe(child, &of_child));
        HF_CHECK(strcmp(of_child->parent_id, "w") == 0 && strcmp(of_child->parent_run_id, it->run_id) == 0);
        HF_CHECK(strcmp(of_child->task_queue, "nursery") == 0);
    }
    HF_TRY(fail_activity(s, first->task_token, "the charge failed", "the card is blocked"));
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    HF_TRY(hf_describe(w, &it));
    const hf_pending_activity *a = it->activities;
    HF_CHECK(a->state == HF_PENDING_SCHEDULED && a->attempt == 2 && a->next_attempt.ns > it->idle_since.ns);
    HF_CHECK_SAY(strcmp(a->last_failure, "the charge failed; because the card is blocked") == 0, "%s", a->last_failure);
    HF_CHECK(strcmp(a->last_failure_type, "Declined") == 0);
    HF_CHECK(it->memo[0].key == NULL && it->memo_count == 0 && it->search_attributes[0].key == NULL);
    HF_CHECK(it->summary.data == NULL);
    return HF_OK;
}

static void a_description_shows_pending_activities_and_children(void **state)
{
    (void)state;
    scene_run(shows_pending);
}

static hf_status shows_end(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_cancel(w));
    {
        HF_AUTO(hf_description_free) hf_description *it = NULL;
        HF_TRY(hf_describe(w, &it));
        HF_CHECK(it->is_cancel_requested && it->status == HF_WORKFLOW_RUNNING && it->closed.ns == 0);
        HF_CHECK(it->idle_since.ns >= it->started.ns + hf_seconds(5).ns);
    }
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_fail(s, &reply, "no luck");
    scene_complete(s, task, &reply);
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    HF_TRY(hf_describe(w, &it));
    HF_CHECK(it->status == HF_WORKFLOW_FAILED && it->closed.ns > it->started.ns && it->task_attempt == 0);
    HF_CHECK(it->activity_count == 0 && it->history_count == 6); /* with the events of one workflow task */
    return HF_OK;
}

static void a_description_shows_a_cancel_and_the_end(void **state)
{
    (void)state;
    scene_run(shows_end);
}

static hf_status refused(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    hf_description *none = NULL;
    HF_TRY(hf_execution_new(s->service, "nobody", &nobody));
    HF_CHECK(hf_describe(nobody, &none) == HF_ERR_NOT_FOUND && none == NULL);
    HF_CHECK(hf_describe(NULL, &none) == HF_ERR_MISUSE);
    HF_CHECK(hf_describe(nobody, NULL) == HF_ERR_MISUSE);
    hf_description_free(NULL);
    return HF_OK;
}

static void a_workflow_that_is_not_there_has_no_description(void **state)
{
    (void)state;
    scene_run(refused);
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"Unknown",    "Running",        "Completed", "Failed", "Canceled",
                                        "Terminated", "ContinuedAsNew", "TimedOut",  "Paused", "Unknown"};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        assert_string_equal(hf_workflow_status_name((hf_workflow_status)i), NAMES[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_description_shows_pending_activities_and_children),
        cmocka_unit_test(a_description_shows_a_cancel_and_the_end),
        cmocka_unit_test(a_workflow_that_is_not_there_has_no_description),
        cmocka_unit_test(every_status_has_a_name),
    };
    return hf_test_main("describe", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
