/* Options of hf_start, hf_start_and_signal and hf_start_and_update, as hf_describe and the worker see them. */
#include "unit/client/scene.h"

static const hf_entry *entry_of(const hf_entry *entries, const char *key)
{
    for (; entries->key != NULL; entries++) {
        if (strcmp(entries->key, key) == 0) {
            return entries;
        }
    }
    return NULL;
}

static bool is_value(const hf_entry *entry, const char *text, const char *encoding)
{
    return entry != NULL && entry->value.len == strlen(text) &&
           memcmp(entry->value.data, text, entry->value.len) == 0 && strcmp(entry->value.encoding, encoding) == 0;
}

/* ---- Options of a start ------------------------------------------------------------------------------------------- */

static hf_status start_described(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    hf_entry memo[] = {{"customer", hf_payload_of_json("\"ada\"")},
                       {"raw", hf_payload_of_bytes("\x01\x02", 2)},
                       {NULL, hf_payload_none()}};
    hf_entry search[] = {{"Amount", hf_payload_of_json("7")}, {NULL, hf_payload_none()}};
    hf_time now = hf_wall_now(NULL);
    HF_TRY(hf_search_attribute_add(s->service, "Amount", HF_SEARCH_INT));
    HF_TRY(hf_start(s->service, "order", hf_payload_of_json("1"), &w, .id = "w", .task_queue = "orders",
                    .start_delay = hf_hours(2), .memo = memo, .search_attributes = search,
                    .summary = "an order of \"kelp\""));
    HF_TRY(hf_describe(w, &it));
    HF_CHECK(strcmp(it->id, "w") == 0 && strcmp(it->type, "order") == 0 && strcmp(it->task_queue, "orders") == 0);
    HF_CHECK(strcmp(it->run_id, hf_execution_run_id(w)) == 0 && strcmp(it->first_run_id, it->run_id) == 0);
    HF_CHECK(strcmp(it->parent_id, "") == 0 && strcmp(it->parent_run_id, "") == 0);
    HF_CHECK(it->status == HF_WORKFLOW_RUNNING && strcmp(hf_workflow_status_name(it->status), "Running") == 0);
    HF_CHECK(it->started.ns >= now.ns && it->closed.ns == 0 && it->idle_since.ns == it->started.ns);
    HF_CHECK(it->begins.ns == it->started.ns + hf_hours(2).ns);
    HF_CHECK(it->history_count == 1 && it->history_len > 0 && it->task_attempt == 0);
    HF_CHECK(it->memo_count == 2 && it->search_attribute_count == 1);
    HF_CHECK(is_value(entry_of(it->memo, "customer"), "\"ada\"", HF_ENCODING_JSON_TEXT));
    HF_CHECK(is_value(entry_of(it->memo, "raw"), "\x01\x02", HF_ENCODING_BYTES_TEXT));
    HF_CHECK(is_value(entry_of(it->search_attributes, "Amount"), "7", HF_ENCODING_JSON_TEXT));
    HF_CHECK(strcmp(it->summary.data, "\"an order of \\\"kelp\\\"\"") == 0);
    HF_CHECK(it->activities == NULL && it->activity_count == 0 && it->children == NULL && it->child_count == 0);
    return HF_OK;
}

static void a_start_keeps_its_delay_memo_attributes_and_summary(void **state)
{
    (void)state;
    scene_run(start_described);
}

static hf_status start_retried(scene *s)
{
    static const char *const FINAL[] = {"Oops", NULL};
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_TRY(hf_start(s->service, "type", hf_payload_none(), &w, .id = "w", .attempts_max = 3,
                    .retry_initial = hf_minutes(1), .retry_coefficient = 3, .retry_max = hf_minutes(2)));
    hf_instant before = hf_now(NULL);
    for (int attempt = 1; attempt <= 3; attempt++) {
        const scene_task *task = scene_poll(s);
        scene_reply reply = {0};
        scene_fail(s, &reply, "no luck");
        scene_complete(s, task, &reply);
    }
    int64_t took = hf_now(NULL).ns - before.ns;
    HF_CHECK_SAY(took / 1000000000 == 180, "%lld s", (long long)(took / 1000000000)); /* 1 min, then 2 of 3 */
    HF_CHECK(hf_result(w, NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "Oops") == 0);

    HF_AUTO(hf_execution_free) hf_execution *once = NULL;
    HF_TRY(hf_start(s->service, "type", hf_payload_none(), &once, .id = "once", .attempts_max = HF_UNLIMITED,
                    .final_types = FINAL));
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_fail(s, &reply, "no luck");
    scene_complete(s, task, &reply);
    HF_CHECK(hf_result(once, NULL) == HF_ERR_FAILED);
    return HF_OK;
}

static void a_failed_workflow_is_tried_again_as_its_start_says(void **state)
{
    (void)state;
    scene_run(start_retried);
}

static hf_status start_cron(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_TRY(hf_start(s->service, "type", hf_payload_none(), &w, .id = "w", .cron = "@every 1h"));
    for (int i = 0; i < 2; i++) {
        const scene_task *task = scene_poll(s);
        scene_reply reply = {0};
        scene_done(s, &reply, "1");
        scene_complete(s, task, &reply);
    }
    HF_CHECK(hf_result(w, NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT); /* the chain goes on */
    HF_TRY(hf_cancel(w));
    HF_TRY(hf_terminate(w)); /* its current run */
    HF_CHECK(hf_result(w, NULL) == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowTerminated") == 0);
    return HF_OK;
}

static void a_cron_schedule_starts_runs_and_the_handle_reaches_the_current_one(void **state)
{
    (void)state;
    scene_run(start_cron);
}

static hf_status start_refused(scene *s)
{
    static const char *const FINAL[] = {"Oops", NULL};
    hf_entry no_key[] = {{"", hf_payload_of_json("1")}, {NULL, hf_payload_none()}};
    hf_entry no_value[] = {{"a", hf_payload_none()}, {NULL, hf_payload_none()}};
    hf_entry twice[] = {{"a", hf_payload_of_json("1")}, {"a", hf_payload_of_json("2")}, {NULL, hf_payload_none()}};
    hf_entry broken[] = {{"a", hf_payload_of_bytes(NULL, 1)}, {NULL, hf_payload_none()}};
    static hf_entry many[1002];
    for (size_t i = 0; i < 1001; i++) {
        static char keys[1001][8];
        (void)snprintf(keys[i], sizeof keys[i], "%zu", i);
        many[i] = (hf_entry){keys[i], hf_payload_of_json("1")};
    }
    const struct {
        hf_status status;
        hf_start_options options;
    } cases[] = {
        {HF_ERR_INVALID, {.start_delay = hf_nanoseconds(1)}},
        {HF_ERR_INVALID, {.start_delay = hf_nanoseconds(-5)}},
        {HF_ERR_INVALID, {.cron = ""}},
        {HF_ERR_INVALID, {.cron = "every day"}},
        {HF_ERR_INVALID, {.cron = "@every 1h", .start_delay = hf_nanoseconds(1000000000)}},
        {HF_ERR_INVALID, {.attempts_max = -7}},
        {HF_ERR_INVALID, {.retry_initial = hf_nanoseconds(1000000000)}},
        {HF_ERR_INVALID, {.retry_max = hf_nanoseconds(1000000000), .attempts_max = 1}},
        {HF_ERR_INVALID, {.retry_coefficient = 2}},
        {HF_ERR_INVALID, {.final_types = FINAL}},
        {HF_ERR_INVALID, {.attempts_max = 2, .retry_coefficient = 0.5}},
        {HF_ERR_INVALID, {.attempts_max = 2, .retry_coefficient = __builtin_nan("")}},
        {HF_ERR_INVALID, {.attempts_max = 2, .retry_max = hf_nanoseconds(500000000)}},
        {HF_ERR_INVALID, {.attempts_max = 2, .retry_initial = hf_nanoseconds(5)}},
        {HF_ERR_INVALID, {.memo = no_key}},
        {HF_ERR_INVALID, {.memo = no_value}},
        {HF_ERR_INVALID, {.search_attributes = twice}},
        {HF_ERR_INVALID, {.memo = many}},
        {HF_ERR_MISUSE, {.memo = broken}},
        {HF_ERR_INVALID, {.update_id = "u"}},
        {HF_ERR_INVALID, {.update_timeout = hf_nanoseconds(1000000000)}},
    };
    for (size_t i = 0; i < HF_COUNT_OF(cases); i++) {
        hf_execution *none = NULL;
        hf_start_options options = cases[i].options;
        options.size = sizeof options;
        options.id = "refused";
        hf_status status = hf_start_with(s->service, "type", hf_payload_none(), &none, &options);
        HF_CHECK_SAY(status == cases[i].status && none == NULL, "case %zu: %s: %s", i, hf_status_name(status),
                     hf_error_text());
        HF_CHECK(hf_error_text()[0] != '\0');
    }
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    HF_TRY(hf_execution_new(s->service, "refused", &nobody));
    HF_CHECK(hf_signal(nobody, "go", hf_payload_none()) == HF_ERR_NOT_FOUND); /* none of them was started */
    return HF_OK;
}

static void a_start_with_options_that_make_no_sense_is_refused(void **state)
{
    (void)state;
    scene_run(start_refused);
}

/* ---- A start and a signal ----------------------------------------------------------------------------------------- */

static hf_status start_and_signal(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *first = NULL;
    HF_AUTO(hf_execution_free) hf_execution *second = NULL;
    HF_AUTO(hf_execution_free) hf_execution *repeated = NULL;
    hf_entry memo[] = {{"a", hf_payload_of_json("1")}, {NULL, hf_payload_none()}};
    hf_payload none = hf_payload_none();
    HF_TRY(
        hf_start_and_signal(s->service, "type", none, "go", hf_payload_of_json("1"), &first, .id = "w", .memo = memo));
    HF_TRY(hf_start_and_signal(s->service, "type", none, "go", none, &second, .id = "w", .request_id = "r"));
    HF_TRY(hf_start_and_signal(s->service, "type", none, "go", none, &repeated, .id = "w", .request_id = "r"));
    HF_CHECK(strcmp(hf_execution_run_id(first), hf_execution_run_id(second)) == 0);
    HF_CHECK(strcmp(hf_execution_run_id(first), hf_execution_run_id(repeated)) == 0);
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    HF_TRY(hf_describe(first, &it));
    HF_CHECK(it->history_count == 4 && it->memo_count == 1); /* started, signaled, a workflow task, signaled */
    HF_TRY(hf_terminate(second));
    HF_TRY(hf_start_and_signal(s->service, "type", none, "go", none, NULL)); /* an id of its own, and no handle */
    HF_CHECK(hf_start_and_signal(s->service, "type", none, "", none, NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_start_and_signal(s->service, "type", none, "go", none, NULL, .id_conflict = HF_ID_CONFLICT_FAIL) ==
             HF_ERR_INVALID);
    HF_CHECK(hf_start_and_signal(s->service, "type", none, "go", none, NULL, .id = "w",
                                 .id_reuse = HF_ID_REUSE_REJECT) == HF_ERR_EXISTS);
    HF_CHECK(hf_start_and_signal(NULL, "type", none, "go", none, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void a_start_with_a_signal_starts_once_and_signals_each_time(void **state)
{
    (void)state;
    scene_run(start_and_signal);
}

/* ---- A start and an update ---------------------------------------------------------------------------------------- */

static hf_status verb_start_and_update(scene_call *c)
{
    hf_status status =
        hf_start_and_update(c->s->service, "type", hf_payload_none(), c->name, hf_payload_of_json("7"), &c->started,
                            &c->handle, .id = "w", .update_id = c->id, .update_timeout = c->timeout);
    scene_note(c, status, hf_payload_none());
    return HF_OK;
}

static hf_status start_and_update(scene *s)
{
    scene_call first = {.verb = verb_start_and_update, .name = "add", .id = "u1"};
    scene_call second = {.verb = verb_start_and_update, .name = "add", .id = "u2"};
    scene_call rejected = {.verb = verb_start_and_update, .name = "add"};
    HF_TRY(scene_ask(s, &first));
    HF_TRY(hf_sleep(hf_hours(1))); /* longer than one call of the service lasts */
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    HF_CHECK(strcmp(scene_accept(s, &reply, task), "u1") == 0);
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&first, HF_OK, "");
    HF_CHECK(strcmp(hf_execution_id(first.started), "w") == 0 && strcmp(hf_update_handle_id(first.handle), "u1") == 0);

    HF_TRY(scene_ask(s, &second)); /* to the run that is there */
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, "u1", "1");
    scene_respond(s, &reply, scene_accept(s, &reply, task), "2");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&second, HF_OK, "");
    HF_CHECK(strcmp(hf_execution_run_id(first.started), hf_execution_run_id(second.started)) == 0);
    scene_call results[] = {{.verb = scene_update_result, .handle = first.handle},
                            {.verb = scene_update_result, .handle = second.handle}};
    HF_TRY(scene_ask(s, &results[0]));
    HF_TRY(scene_ask(s, &results[1]));
    HF_TRY(scene_wait(s));
    scene_expect(&results[0], HF_OK, "1");
    scene_expect(&results[1], HF_OK, "2");

    HF_TRY(scene_ask(s, &rejected));
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_reject(s, &reply, task, "it is full");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&rejected, HF_ERR_FAILED, "");
    HF_CHECK(rejected.started == NULL && rejected.handle == NULL && strcmp(rejected.type, "Refused") == 0);
    HF_TRY(hf_cancel(second.started));
    HF_TRY(hf_terminate(first.started));
    hf_execution_free(first.started);
    hf_execution_free(second.started);
    hf_update_handle_free(first.handle);
    hf_update_handle_free(second.handle);
    return HF_OK;
}

static void a_start_with_an_update_waits_until_it_is_accepted(void **state)
{
    (void)state;
    scene_run(start_and_update);
}

static hf_status start_and_update_refused(scene *s)
{
    hf_payload none = hf_payload_none();
    hf_service *service = s->service;
    HF_CHECK(hf_start_and_update(service, "type", none, "", none, NULL, NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_start_and_update(service, "", none, "add", none, NULL, NULL) == HF_ERR_INVALID);
    HF_CHECK(hf_start_and_update(service, "type", none, "add", none, NULL, NULL, .update_id = "") == HF_ERR_INVALID);
    HF_CHECK(hf_start_and_update(NULL, "type", none, "add", none, NULL, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_start_and_update(service, "type", none, "add", none, NULL, NULL, .cron = "@every 1h") ==
             HF_ERR_INVALID);
    HF_CHECK_SAY(strstr(hf_error_text(), "CronSchedule") != NULL, "%s", hf_error_text()); /* why, and not only that */
    HF_CHECK(hf_start_and_update(service, "type", none, "add", none, NULL, NULL, .id = "w",
                                 .update_timeout = hf_minutes(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_start_and_update(service, "type", none, "add", none, NULL, NULL, .id = "w",
                                 .id_conflict = HF_ID_CONFLICT_FAIL) == HF_ERR_EXISTS);
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_TRY(hf_execution_new(service, "w", &w));
    HF_TRY(hf_terminate(w)); /* it was started all the same */
    return HF_OK;
}

static void a_start_with_an_update_that_is_refused_says_why(void **state)
{
    (void)state;
    scene_run(start_and_update_refused);
}

/* The run that was started continues as another one before it has taken the update. */
static hf_status start_and_update_moves_on(scene *s)
{
    scene_call call = {.verb = verb_start_and_update, .name = "add", .id = "u1"};
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    const scene_task *task = scene_poll(s);
    HF_TRY(scene_ask(s, &call));
    HF_TRY(hf_sleep(hf_seconds(1)));
    scene_reply reply = {0};
    scene_continue(s, &reply);
    scene_complete(s, task, &reply);
    HF_TRY(hf_sleep(hf_seconds(1))); /* the client sends it again */
    task = scene_poll(s);
    reply = (scene_reply){0};
    scene_respond(s, &reply, scene_accept(s, &reply, task), "1");
    scene_complete(s, task, &reply);
    HF_TRY(scene_wait(s));
    scene_expect(&call, HF_OK, "");
    HF_CHECK(call.started != NULL && strcmp(hf_execution_run_id(call.started), hf_execution_run_id(w)) != 0);
    hf_execution_free(call.started);
    hf_update_handle_free(call.handle);
    return HF_OK;
}

static void a_start_with_an_update_follows_a_run_that_continues_as_new(void **state)
{
    (void)state;
    scene_run(start_and_update_moves_on);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_start_keeps_its_delay_memo_attributes_and_summary),
        cmocka_unit_test(a_failed_workflow_is_tried_again_as_its_start_says),
        cmocka_unit_test(a_cron_schedule_starts_runs_and_the_handle_reaches_the_current_one),
        cmocka_unit_test(a_start_with_options_that_make_no_sense_is_refused),
        cmocka_unit_test(a_start_with_a_signal_starts_once_and_signals_each_time),
        cmocka_unit_test(a_start_with_an_update_waits_until_it_is_accepted),
        cmocka_unit_test(a_start_with_an_update_that_is_refused_says_why),
        cmocka_unit_test(a_start_with_an_update_follows_a_run_that_continues_as_new),
    };
    return hf_test_main("start", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
