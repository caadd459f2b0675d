/* Smaller verbs of workflows on the real worker and engine, on virtual time: sleep until a time, memo and search attributes,
 * uuid, notes, sagas, patches that move, and kinds of failures of children. */
#include "sim/worker_scene.h"

/* ---- Activities ---------------------------------------------------------------------------------------------------- */

static char done[400]; /* what the activities did, in order */

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    const char *name = hf_activity_info()->name;
    (void)in;
    (void)ret_out;
    (void)strcat(strcat(done, name), " ");
    if (strstr(name, "broken") != NULL) {
        return hf_activity_fail("it is broken", .type = "Broken", .is_final = true);
    }
    hf_note(HF_LOG_INFO, "acted", "what=%s", "a deed");
    return HF_OK;
}

/* Its deed is done, and the cancel comes before its answer. */
static hf_status slow_act(hf_payload in, hf_payload *ret_out)
{
    (void)strcat(strcat(done, hf_activity_info()->name), " ");
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_seconds(60));
}

static hf_status add_all(hf_worker *worker)
{
    static const char *const NAMES[] = {"do_1", "do_2", "do_broken", "undo_1", "undo_2", "undo_3", "undo_broken"};
    done[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        HF_TRY(hf_worker_add_activity(worker, NAMES[i], act, .on_fiber = true));
    }
    HF_TRY(hf_worker_add_activity(worker, "do_slow", slow_act, .on_fiber = true));
    return hf_worker_add_activity(worker, "echo", echo, .on_fiber = true);
}

/* ---- Time, uuid, notes ----------------------------------------------------------------------------------------------- */

static hf_status sleeps(hf_payload in, hf_payload *ret_out)
{
    hf_time from = hf_wall_now(NULL);
    (void)in;
    HF_TRY(hf_sleep_until((hf_time){from.ns - 1000})); /* it has passed */
    HF_TRY(hf_sleep_until((hf_time){from.ns + hf_hours(5).ns}));
    HF_TRY(hf_sleep_until((hf_time){hf_wall_now(NULL).ns + 10})); /* less than a workflow's shortest wait: that */
    int64_t after = hf_wall_now(NULL).ns - from.ns;
    return hf_payload_printf(ret_out, "\"%d h\"", (int)(after / hf_hours(1).ns));
}

static void a_workflow_sleeps_until_a_time(void **state)
{
    (void)state;
    play_scene((scene){.workflow = sleeps, .expected = HF_OK, .result = "\"5 h\""});
}

static hf_status names_itself(hf_payload in, hf_payload *ret_out)
{
    char first[HF_UUID_LEN];
    char second[HF_UUID_LEN];
    char json[HF_UUID_LEN + 2];
    hf_payload told = hf_payload_none();
    (void)in;
    HF_TRY(hf_uuid(first));
    HF_TRY(hf_uuid(second));
    HF_CHECK(strcmp(first, second) != 0 && first[14] == '4' && first[8] == '-');
    (void)snprintf(json, sizeof json, "\"%s\"", first);
    HF_TRY(hf_activity_run("echo", hf_payload_of_json(json), &told, .start_to_close = hf_seconds(9)));
    return hf_payload_printf(ret_out, "\"%s\"", strcmp(told.data, json) == 0 ? "the same" : "another");
}

static void a_uuid_is_the_same_in_a_replay(void **state)
{
    (void)state;
    play_scene((scene){.workflow = names_itself, .expected = HF_OK, .result = "\"the same\"", .add = add_all});
}

static hf_status notes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    hf_note(HF_LOG_INFO, "began", NULL);
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_sleep(hf_seconds(1)));
        hf_note(HF_LOG_INFO, "woke", "number=%d text=%s", i, "two words");
    }
    HF_TRY(hf_activity_run("do_1", hf_payload_none(), NULL, .start_to_close = hf_seconds(9)));
    return hf_payload_printf(ret_out, "\"noted\"");
}

static void count_notes(hf_service *service)
{
    (void)service;
    HF_CHECK(scene_lines_with("began workflow=w run=") == 1);
    HF_CHECK_SAY(scene_lines_with("woke workflow=w run=") == 3, "%s", scene_lines);
    HF_CHECK(strstr(scene_lines, "number=2 text=\"two words\"") != NULL);
    HF_CHECK(scene_lines_with("acted workflow=w run=") == 1);
    HF_CHECK(strstr(scene_lines, "activity=do_1 attempt=1 what=\"a deed\"") != NULL);
}

static void a_note_is_written_once_and_not_in_replays(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = notes, .expected = HF_OK, .result = "\"noted\"", .add = add_all, .look = count_notes});
}

/* ---- Memo and search attributes ----------------------------------------------------------------------------------------- */

static hf_status describes_itself(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_memo_set(hf_field_text("customer", "Ada \"L\""), hf_field_int("cents", 7), hf_field_bool("gone", true)));
    HF_TRY(hf_search_set(hf_field_text("City", "Kiel"), hf_field_int("Cents", 7), hf_field_real("Share", 0.5),
                         hf_field_time("Due", (hf_time){0}), hf_field_json("Tags", hf_payload_of_json("[\"a\"]"))));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_memo_set(hf_field_int("cents", 8), hf_field_null("gone")));
    hf_status none = hf_memo_set_of((const hf_field[]){hf_field_end()});
    hf_status twice = hf_search_set(hf_field_int("A", 1), hf_field_int("A", 2));
    hf_status bad = hf_memo_set(hf_field_text("", "x"));
    HF_TRY(hf_sleep(hf_seconds(5)));
    return hf_payload_printf(ret_out, "\"%s %s %s\"", hf_status_name(none), hf_status_name(twice), hf_status_name(bad));
}

static hf_status add_attributes(hf_service *service)
{
    HF_TRY(hf_search_attribute_add(service, "City", HF_SEARCH_KEYWORD));
    HF_TRY(hf_search_attribute_add(service, "Cents", HF_SEARCH_INT));
    HF_TRY(hf_search_attribute_add(service, "Share", HF_SEARCH_DOUBLE));
    HF_TRY(hf_search_attribute_add(service, "Due", HF_SEARCH_DATETIME));
    return hf_search_attribute_add(service, "Tags", HF_SEARCH_KEYWORD_LIST);
}

static const char *value_of(const hf_entry *entries, const char *key)
{
    for (size_t i = 0; entries[i].key != NULL; i++) {
        if (strcmp(entries[i].key, key) == 0) {
            return entries[i].value.data;
        }
    }
    return "";
}

static hf_status describe_it(hf_service *service, hf_execution *execution)
{
    hf_description *d = NULL;
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(8)));
    HF_TRY(hf_describe(execution, &d));
    HF_CHECK(d->memo_count == 2 && d->search_attribute_count == 5);
    HF_CHECK_SAY(strcmp(value_of(d->memo, "customer"), "\"Ada \\\"L\\\"\"") == 0, "%s", value_of(d->memo, "customer"));
    HF_CHECK(strcmp(value_of(d->memo, "cents"), "8") == 0);
    HF_CHECK(strcmp(value_of(d->search_attributes, "City"), "\"Kiel\"") == 0);
    HF_CHECK(strcmp(value_of(d->search_attributes, "Share"), "0.5") == 0);
    HF_CHECK(strcmp(value_of(d->search_attributes, "Due"), "\"1970-01-01T00:00:00Z\"") == 0);
    hf_description_free(d);
    return HF_OK;
}

/* The types go with the attributes. */
static void look_at_types(hf_service *service)
{
    HF_CHECK(scene_has_bytes(service, "Keyword") && scene_has_bytes(service, "KeywordList"));
    HF_CHECK(scene_has_bytes(service, "Datetime") && scene_has_bytes(service, "Double"));
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED) == 2);
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES) == 1);
}

static void a_workflow_sets_its_memo_and_search_attributes(void **state)
{
    (void)state;
    play_scene((scene){.before = add_attributes,
                       .workflow = describes_itself,
                       .client = describe_it,
                       .expected = HF_OK,
                       .result = "\"HF_ERR_INVALID HF_ERR_INVALID HF_ERR_INVALID\"",
                       .look = look_at_types});
}

/* What the parent and a run that continues say about their successors. */
static const hf_entry MEMO[] = {{"about", {"\"a trip\"", 8, HF_ENCODING_JSON_TEXT, NULL}},
                                {NULL, {NULL, 0, NULL, NULL}}};
static const hf_entry SEARCH[] = {{"City", {"\"Kiel\"", 6, HF_ENCODING_JSON_TEXT, NULL}},
                                  {NULL, {NULL, 0, NULL, NULL}}};

static hf_status described(hf_payload in, hf_payload *ret_out)
{
    if (in.len > 0 && strcmp(in.data, "\"child\"") == 0) {
        return hf_sleep(hf_seconds(60));
    }
    if (in.len > 0 && strcmp(in.data, "\"next\"") == 0) {
        HF_TRY(hf_sleep(hf_seconds(60)));
        return hf_payload_printf(ret_out, "\"ended\"");
    }
    char copied[] = "deed that is undone";
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    HF_TRY(hf_saga_open(&saga));
    HF_TRY(hf_saga_add(saga, "undo_1", hf_payload_none(), .start_to_close = hf_seconds(5), .summary = copied));
    memset(copied, 'x', sizeof copied - 1);
    HF_TRY(hf_activity_run("echo", hf_payload_of_json("1"), NULL, .start_to_close = hf_seconds(5),
                           .summary = "an \"echo\", once"));
    HF_TRY(hf_activity_run_local("echo", hf_payload_of_json("2"), NULL, .start_to_close = hf_seconds(5),
                                 .summary = "an echo from here"));
    HF_TRY(hf_saga_undo(saga));
    HF_TRY(hf_child_start("workflow", hf_payload_of_json("\"child\""), .id = "kid", .summary = "the child of it",
                          .memo = MEMO, .search_attributes = SEARCH, .parent_close = HF_PARENT_CLOSE_ABANDON));
    const hf_entry twice[] = {MEMO[0], MEMO[0], MEMO[1]};
    static char long_line[2000];
    memset(long_line, 'l', sizeof long_line - 1);
    HF_CHECK(hf_child_run("workflow", hf_payload_none(), NULL, .memo = twice) == HF_ERR_INVALID);
    HF_CHECK(hf_child_run("workflow", hf_payload_none(), NULL, .search_attributes = twice) == HF_ERR_INVALID);
    HF_CHECK(hf_child_run("workflow", hf_payload_none(), NULL, .summary = long_line) == HF_ERR_INVALID);
    HF_CHECK(hf_activity_run("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(1), .summary = long_line) ==
             HF_ERR_INVALID);
    HF_CHECK(hf_activity_run_local("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(1),
                                   .summary = long_line) == HF_ERR_INVALID);
    HF_CHECK(hf_continue_as_new(hf_payload_none(), .memo = twice) == HF_ERR_INVALID);
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_continue_as_new(hf_payload_of_json("\"next\""), .memo = MEMO, .search_attributes = SEARCH);
}

static void is_described(hf_execution *execution)
{
    hf_description *d = NULL;
    hf_status status = hf_describe(execution, &d);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    if (status == HF_OK) {
        HF_CHECK(strcmp(value_of(d->memo, "about"), "\"a trip\"") == 0);
        HF_CHECK(strcmp(value_of(d->search_attributes, "City"), "\"Kiel\"") == 0);
        hf_description_free(d);
    }
}

static hf_status look_at_successors(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *kid = NULL;
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(scene_has_bytes(service, "\"an \\\"echo\\\", once\"") && scene_has_bytes(service, "\"the child of it\""));
    HF_CHECK(scene_has_bytes(service, "\"deed that is undone\""));
    HF_CHECK(scene_has_bytes(service, "\"an echo from here\""));
    HF_TRY(hf_execution_new(service, "kid", &kid));
    is_described(kid);
    HF_TRY(hf_sleep(hf_seconds(20)));
    is_described(execution); /* the next run */
    return HF_OK;
}

static void children_and_next_runs_are_described_and_activities_have_a_summary(void **state)
{
    (void)state;
    play_scene((scene){.before = add_attributes,
                       .workflow = described,
                       .client = look_at_successors,
                       .expected = HF_OK,
                       .result = "\"ended\"",
                       .add = add_all});
}

/* What a run has, with what it set itself, is the next run's, unless it is given something else. */
static const hf_entry NOTHING[] = {{NULL, {NULL, 0, NULL, NULL}}};

static hf_status carries(hf_payload in, hf_payload *ret_out)
{
    switch (strtol(in.data, NULL, 10)) {
    case 1:
        HF_TRY(hf_memo_set(hf_field_text("b", "one"), hf_field_text("c", "x")));
        HF_TRY(hf_search_set(hf_field_text("City", "Kiel"), hf_field_int("Cents", 7)));
        HF_TRY(hf_sleep(hf_seconds(1)));
        return hf_continue_as_new(hf_payload_of_json("2"));
    case 2: {
        HF_TRY(hf_memo_set(hf_field_null("c"), hf_field_text("b", "two")));
        HF_TRY(hf_search_set(hf_field_null("Cents")));
        HF_TRY(hf_sleep(hf_seconds(1)));
        hf_status status = hf_continue_as_new(hf_payload_of_json("3"));
        HF_TRY(hf_memo_set(hf_field_text("d", "late")));
        return status;
    }
    case 3:
        HF_TRY(hf_sleep(hf_seconds(60)));
        return hf_continue_as_new(hf_payload_of_json("4"), .memo = MEMO, .search_attributes = NOTHING);
    default:
        HF_TRY(hf_sleep(hf_seconds(60)));
        return hf_workflow_info()->attempt == 1 ? hf_raise(HF_ERR_FAILED, "tried again, as the first run was to be")
                                                : hf_payload_printf(ret_out, "\"ended\"");
    }
}

static hf_status look_at_chain(hf_service *service, hf_execution *execution)
{
    static const hf_entry BEGIN[] = {{"a", {"7", 1, HF_ENCODING_JSON_TEXT, NULL}},
                                     {"b", {"8", 1, HF_ENCODING_JSON_TEXT, NULL}},
                                     {NULL, {NULL, 0, NULL, NULL}}};
    HF_AUTO(hf_execution_free) hf_execution *chain = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_description *d = NULL;
    (void)execution;
    HF_TRY(hf_start(service, "carries", hf_payload_of_json("1"), &chain, .task_queue = "q", .id = "chain",
                    .memo = BEGIN, .attempts_max = 2));
    HF_TRY(hf_sleep(hf_seconds(30)));
    HF_TRY(hf_describe(chain, &d));
    HF_CHECK_SAY(d->memo_count == 3 && d->search_attribute_count == 1, "%zu %zu", d->memo_count,
                 d->search_attribute_count);
    HF_CHECK(strcmp(value_of(d->memo, "a"), "7") == 0 && strcmp(value_of(d->memo, "b"), "\"two\"") == 0);
    HF_CHECK(strcmp(value_of(d->memo, "d"), "\"late\"") == 0);
    HF_CHECK(strcmp(value_of(d->search_attributes, "City"), "\"Kiel\"") == 0);
    hf_description_free(d);
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_TRY(hf_describe(chain, &d));
    HF_CHECK(d->memo_count == 1 && d->search_attribute_count == 0);
    HF_CHECK(strcmp(value_of(d->memo, "about"), "\"a trip\"") == 0);
    hf_description_free(d);
    HF_TRY(hf_result(chain, &out));
    HF_CHECK_SAY(strcmp(out.data, "\"ended\"") == 0, "%s", (const char *)out.data);
    return HF_OK;
}

static hf_status ends_at_once(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"ended\"");
}

static hf_status add_carries(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "carries", carries);
}

static void the_next_run_has_the_memo_attributes_and_retries_of_this_one(void **state)
{
    (void)state;
    play_scene((scene){.before = add_attributes,
                       .workflow = ends_at_once,
                       .client = look_at_chain,
                       .expected = HF_OK,
                       .result = "\"ended\"",
                       .add = add_carries});
}

/* What goes along must fit, so that a run can always continue. */
static hf_status sets_too_much(hf_payload in, hf_payload *ret_out)
{
    enum { LEN = 900 << 10 };
    static char text[LEN + 1];
    memset(text, 't', LEN);
    if (in.len > 0) {
        HF_CHECK(hf_memo_set(hf_field_text("c", text)) == HF_ERR_TOO_BIG);
        HF_TRY(hf_memo_set(hf_field_null("a"), hf_field_text("c", text)));
        return hf_payload_printf(ret_out, "\"ended\"");
    }
    HF_TRY(hf_memo_set(hf_field_text("a", text)));
    HF_TRY(hf_memo_set(hf_field_text("b", text)));
    HF_CHECK(hf_memo_set(hf_field_text("c", text)) == HF_ERR_TOO_BIG);
    HF_TRY(hf_memo_set(hf_field_text("b", text)));
    return hf_continue_as_new(hf_payload_of_json("1"));
}

static void a_memo_has_a_bound_in_all(void **state)
{
    (void)state;
    play_scene((scene){.workflow = sets_too_much, .expected = HF_OK, .result = "\"ended\""});
}

/* ---- Failing --------------------------------------------------------------------------------------------------------------- */

static bool has_failure(const hf_failure *failure, const char *type, const char *details)
{
    return failure != NULL && strcmp(failure->type, type) == 0 &&
           strcmp(failure->details.data != NULL ? failure->details.data : "", details) == 0;
}

/* Its first run asks for a pause, its second is the last one. */
static hf_status fails_for_good(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    const hf_workflow_facts *facts = hf_workflow_info();
    HF_TRY(hf_sleep(hf_seconds(1)));
    if (facts->attempt == 1) {
        return hf_workflow_fail("not now", .type = "Later", .retry_after = hf_seconds(50));
    }
    HF_CHECK(facts->attempt == 2);
    HF_IGNORE(hf_raise_typed(HF_ERR_IO, "Disk", "the disk is gone"));
    return hf_workflow_fail("never", .type = "Never", .is_final = true, .details = hf_payload_of_json("{\"at\": 7}"));
}

static hf_status fail_in_fiber(void *arg)
{
    (void)arg;
    return hf_workflow_fail("a fiber fails", .type = "Fiber", .details = hf_payload_of_json("8"));
}

static hf_status fail_reply(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    (void)ret_out;
    return hf_workflow_fail("no reply", .type = "Reply", .details = hf_payload_of_json("9"));
}

static hf_status fail_check(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return hf_workflow_fail("refused", .type = "Refusal", .details = hf_payload_of_json("10"));
}

/* The order of calls matters: the last failure of the fiber is the cause of the next one. */
static hf_status fails_in_many_ways(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_on_update("reply", fail_reply));
    HF_TRY(hf_on_update("checked", fail_reply, .validator = fail_check));
    HF_TRY(hf_on_query("reply", fail_reply));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, fail_in_fiber, NULL));
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED && has_failure(hf_error(), "Fiber", "8"));
    }
    hf_status status = hf_child_run("fails_for_good", hf_payload_none(), NULL, .attempts_max = 5);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_FAILED && has_failure(hf_error()->cause, "Never", "{\"at\": 7}"));
    HF_CHECK(has_failure(hf_error()->cause->cause, "Disk", ""));
    HF_TRY(hf_signal_wait("go", NULL));
    static char large[(2 << 20) + 1];
    HF_CHECK(hf_workflow_fail("x", .details = hf_payload_of_bytes(large, sizeof large)) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_workflow_fail("x", .retry_after = hf_nanoseconds(30)) == HF_ERR_INVALID);
    HF_CHECK(hf_workflow_fail(NULL) == HF_ERR_MISUSE);
    return hf_workflow_fail("all of it", .details = hf_payload_of_json("[11]"));
}

static hf_status see_failures(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *alone = NULL;
    HF_TRY(hf_start(service, "fails_for_good", hf_payload_none(), &alone, .task_queue = "q", .id = "alone",
                    .attempts_max = 5));
    hf_time began = hf_wall_now(NULL);
    HF_CHECK(hf_result(alone, NULL) == HF_ERR_FAILED && has_failure(hf_error(), "Never", "{\"at\": 7}"));
    HF_CHECK(has_failure(hf_error()->cause, "Disk", "") && strcmp(hf_error()->message, "never") == 0);
    int64_t took = (hf_wall_now(NULL).ns - began.ns) / 1000000000;
    HF_CHECK_SAY(took >= 50 && took < 60, "%d s", (int)took); /* the pause that it asked for, not the policy's */
    HF_CHECK(hf_update(execution, "reply", hf_payload_none(), NULL) == HF_ERR_FAILED && hf_error_find("Reply") != NULL);
    HF_CHECK(has_failure(hf_error_find("Reply"), "Reply", "9"));
    HF_CHECK(hf_update(execution, "checked", hf_payload_none(), NULL) == HF_ERR_FAILED);
    HF_CHECK(has_failure(hf_error_find("Refusal"), "Refusal", "10"));
    HF_CHECK(hf_query(execution, "reply", hf_payload_none(), NULL) != HF_OK);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED && has_failure(hf_error(), "HF_ERR_FAILED", "[11]"));
    return HF_OK;
}

static hf_status add_failing(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "fails_for_good", fails_for_good);
}

static void a_workflow_fails_with_type_details_and_for_good(void **state)
{
    (void)state;
    HF_CHECK(hf_workflow_fail("not a workflow") == HF_ERR_MISUSE);
    play_scene((scene){.workflow = fails_in_many_ways,
                       .client = see_failures,
                       .expected = HF_ERR_FAILED,
                       .result = "all of it",
                       .add = add_failing});
}

/* ---- What a run knows ------------------------------------------------------------------------------------------------------ */

static bool is_text(hf_payload payload, const char *text)
{
    return payload.data != NULL && strcmp(payload.data, text) == 0;
}

/* Fails once, and is tried again. */
static hf_status knows(hf_payload in, hf_payload *ret_out)
{
    const hf_workflow_facts *facts = hf_workflow_info();
    HF_CHECK(facts->run_timeout.ns == hf_hours(1).ns && facts->execution_timeout.ns == hf_hours(3).ns);
    if (facts->attempt == 1) {
        HF_CHECK(strcmp(facts->last_failure, "") == 0 && strcmp(facts->continued_run_id, "") == 0);
        return hf_raise_typed(HF_ERR_FAILED, "Once", "it is tried again");
    }
    HF_CHECK(facts->attempt == 2 && strcmp(facts->last_failure, "it is tried again") == 0);
    HF_CHECK(strlen(facts->continued_run_id) == 36 && strcmp(facts->continued_run_id, facts->run_id) != 0);
    if (is_text(in, "\"final\"")) {
        return hf_raise_typed(HF_ERR_FAILED, "Final", "it is not tried again");
    }
    return hf_payload_printf(ret_out, "\"%s %s %s\"", facts->parent_id, facts->parent_run_id, facts->root_id);
}

/* Tells its parent which run it is, and waits for an answer to that run. */
static hf_status listens(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_external_signal("w", "run", hf_payload_of_json(hf_workflow_run_id())));
    return hf_signal_wait("answer", NULL);
}

/* By a schedule: one more than the last time. */
static hf_status counts(hf_payload in, hf_payload *ret_out)
{
    hf_payload last = hf_workflow_info()->last_result;
    long count = last.len > 0 ? strtol(last.data, NULL, 10) : 0;
    char text[20];
    (void)in;
    (void)snprintf(text, sizeof text, "%ld", count);
    HF_TRY(hf_external_signal("w", "count", hf_payload_of_json(text)));
    return hf_payload_printf(ret_out, "%ld", count + 1);
}

static hf_status on_slow(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return hf_sleep(hf_hours(1));
}

static hf_status knows_all(hf_payload in, hf_payload *ret_out)
{
    static const char *const FINAL[] = {"Never", "Final", NULL};
    char expected[200];
    hf_payload out = hf_payload_none();
    (void)in;
    HF_CHECK(strcmp(hf_workflow_info()->root_id, "w") == 0 && strcmp(hf_workflow_info()->parent_run_id, "") == 0);
    HF_TRY(hf_on_signal("slow", on_slow, .may_be_left = true));
    HF_CHECK(hf_memo_get("who", &out) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_memo_set(hf_field_text("who", "ada")));
    HF_TRY(hf_search_set(hf_field_text("City", "Kiel")));
    HF_TRY(hf_child_run("knows", hf_payload_of_json("1"), &out, .attempts_max = 5, .run_timeout = hf_hours(1),
                        .execution_timeout = hf_hours(3)));
    (void)snprintf(expected, sizeof expected, "\"w %s w\"", hf_workflow_run_id());
    HF_CHECK_SAY(is_text(out, expected), "%s, not %s", (const char *)out.data, expected);
    hf_status status = hf_child_run("knows", hf_payload_of_json("\"final\""), NULL, .attempts_max = 5,
                                    .run_timeout = hf_hours(1), .execution_timeout = hf_hours(3), .final_types = FINAL);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_FAILED && strcmp(hf_error()->cause->type, "Final") == 0);
    HF_TRY(hf_child_start("listens", hf_payload_none(), .id = "listener"));
    HF_TRY(hf_signal_wait("run", &out));
    status = hf_external_signal("listener", "answer", hf_payload_none(), .run_id = hf_workflow_run_id());
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_NOT_FOUND);
    HF_TRY(hf_external_signal("listener", "answer", hf_payload_none(), .run_id = out.data));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_signal_wait("count", &out));
        HF_CHECK_SAY(strtol(out.data, NULL, 10) == i, "%s, not %d", (const char *)out.data, i);
    }
    HF_TRY(hf_memo_get("who", &out));
    HF_CHECK(is_text(out, "\"ada\""));
    HF_TRY(hf_search_get("City", &out));
    HF_CHECK(is_text(out, "\"Kiel\""));
    return hf_payload_printf(ret_out, "\"known\"");
}

static hf_status start_counting(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *clock = NULL;
    HF_TRY(hf_signal(execution, "slow", hf_payload_none()));
    HF_TRY(
        hf_start(service, "counts", hf_payload_none(), &clock, .task_queue = "q", .id = "clock", .cron = "* * * * *"));
    HF_TRY(hf_result(execution, NULL));
    return hf_terminate(clock);
}

static hf_status add_knowing(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "knows", knows));
    HF_TRY(hf_worker_add_workflow(worker, "listens", listens));
    return hf_worker_add_workflow(worker, "counts", counts);
}

static void no_handler_is_named(hf_service *service)
{
    (void)service;
    HF_CHECK(scene_lines_with("workflow_ends_over_handlers") == 0);
}

static void a_run_knows_its_relatives_its_predecessor_its_bounds_and_its_fields(void **state)
{
    hf_payload out = hf_payload_none();
    (void)state;
    HF_CHECK(hf_memo_get("who", &out) == HF_ERR_MISUSE && hf_search_get("City", &out) == HF_ERR_MISUSE);
    play_scene((scene){.before = add_attributes,
                       .workflow = knows_all,
                       .client = start_counting,
                       .expected = HF_OK,
                       .result = "\"known\"",
                       .add = add_knowing,
                       .look = no_handler_is_named});
}

/* ---- Sagas --------------------------------------------------------------------------------------------------------------- */

static hf_status step(hf_saga *saga, const char *undo, const char *deed)
{
    HF_TRY(hf_saga_add(saga, undo, hf_payload_none(), .start_to_close = hf_minutes(5)));
    return hf_activity_run(deed, hf_payload_none(), NULL, .start_to_close = hf_minutes(5));
}

static hf_status breaks(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_saga_open(&saga, .name = "trip"));
    HF_TRY(step(saga, "undo_1", "do_1"));
    HF_TRY(step(saga, "undo_2", "do_2"));
    HF_TRY(step(saga, "undo_3", "do_broken"));
    return hf_saga_commit(saga);
}

static void look_at_break(hf_service *service)
{
    (void)service;
    HF_CHECK_SAY(strcmp(done, "do_1 do_2 do_broken undo_3 undo_2 undo_1 ") == 0, "%s", done);
}

static void a_saga_that_fails_is_undone_in_reverse(void **state)
{
    (void)state;
    play_scene((scene){.workflow = breaks,
                       .expected = HF_ERR_FAILED,
                       .result = "it is broken", /* the workflow's own failure, not one of the undoing */
                       .add = add_all,
                       .look = look_at_break});
}

static hf_status commits(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)in;
    HF_TRY(hf_saga_open(&saga));
    HF_TRY(step(saga, "undo_1", "do_1"));
    HF_TRY(hf_saga_commit(saga));
    hf_status late = hf_saga_add(saga, "undo_2", hf_payload_none(), .start_to_close = hf_minutes(5));
    hf_status undone = hf_saga_undo(saga);
    return hf_payload_printf(ret_out, "\"%s %s\"", hf_status_name(late), hf_status_name(undone));
}

static void look_at_commit(hf_service *service)
{
    (void)service;
    HF_CHECK_SAY(strcmp(done, "do_1 ") == 0, "%s", done);
}

static void a_saga_that_is_committed_is_not_undone(void **state)
{
    (void)state;
    play_scene((scene){.workflow = commits,
                       .expected = HF_OK,
                       .result = "\"HF_ERR_MISUSE HF_ERR_MISUSE\"",
                       .add = add_all,
                       .look = look_at_commit});
}

static hf_status is_canceled(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_saga_open(&saga));
    HF_TRY(step(saga, "undo_1", "do_1"));
    HF_TRY(step(saga, "undo_2", "do_slow"));
    return hf_saga_commit(saga);
}

static hf_status cancel_it(hf_service *service, hf_execution *execution)
{
    (void)service;
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_cancel(execution);
}

static void look_at_cancel(hf_service *service)
{
    (void)service;
    HF_CHECK_SAY(strcmp(done, "do_1 do_slow undo_2 undo_1 ") == 0, "%s", done);
}

static void a_saga_is_undone_after_a_cancel(void **state)
{
    (void)state;
    play_scene((scene){.workflow = is_canceled,
                       .client = cancel_it,
                       .expected = HF_ERR_FAILED,
                       .result = "the workflow was canceled",
                       .add = add_all,
                       .look = look_at_cancel});
}

static hf_status cannot_undo(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_saga_open(&saga, .name = "trip"));
    HF_TRY(step(saga, "undo_1", "do_1"));
    HF_TRY(step(saga, "undo_broken", "do_2"));
    return hf_raise_typed(HF_ERR_FAILED, "SoldOut", "no seats are left");
}

static void look_at_rest(hf_service *service)
{
    (void)service;
    HF_CHECK_SAY(strcmp(done, "do_1 do_2 undo_broken undo_1 ") == 0, "%s", done);
    HF_CHECK_SAY(scene_lines_with("saga_step_failed workflow=w run=") == 1, "%s", scene_lines);
}

static void a_step_that_cannot_be_undone_does_not_stop_the_others(void **state)
{
    (void)state;
    play_scene((scene){.workflow = cannot_undo,
                       .expected = HF_ERR_FAILED,
                       .result = "no seats are left; 1 of 2 steps of the saga 'trip' could not be undone",
                       .add = add_all,
                       .look = look_at_rest});
}

static hf_status undoes_itself(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    (void)in;
    HF_TRY(hf_saga_open(&saga, .bound = hf_hours(2)));
    HF_TRY(step(saga, "undo_1", "do_1"));
    HF_TRY(hf_saga_add(saga, "undo_broken", hf_payload_none(), .start_to_close = hf_minutes(5)));
    hf_status refused = hf_saga_add(saga, "undo_1", hf_payload_none());
    hf_status status = hf_saga_undo(saga);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(hf_error_find("Broken") != NULL);
    return hf_payload_printf(ret_out, "\"%s %s\"", hf_status_name(status), hf_status_name(refused));
}

static void look_at_undone(hf_service *service)
{
    (void)service;
    HF_CHECK_SAY(strcmp(done, "do_1 undo_broken undo_1 ") == 0, "%s", done); /* once: closing it does nothing more */
}

static void a_saga_can_be_undone_at_once(void **state)
{
    (void)state;
    play_scene((scene){.workflow = undoes_itself,
                       .expected = HF_OK,
                       .result = "\"HF_ERR_FAILED HF_ERR_INVALID\"",
                       .add = add_all,
                       .look = look_at_undone});
}

/* ---- Patches that move --------------------------------------------------------------------------------------------------- */

static int version; /* of the code: changes while the run sleeps */

/* The call of hf_patched is in the second step; in version 1 in the third, in version 2 in the first, in version 3 gone. */
static hf_status moves(hf_payload in, hf_payload *ret_out)
{
    bool is_new = version == 3;
    (void)in;
    is_new |= version == 2 && hf_patched("moved");
    HF_TRY(hf_sleep(hf_seconds(10)));
    is_new |= version == 0 && hf_patched("moved");
    HF_TRY(hf_sleep(hf_seconds(10)));
    is_new |= version == 1 && hf_patched("moved");
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_payload_printf(ret_out, "\"%s\"", is_new ? "new" : "old");
}

static hf_status deploy_1(hf_service *service, hf_execution *execution)
{
    (void)service;
    (void)execution;
    version = 0;
    HF_TRY(hf_sleep(hf_seconds(15)));
    version = 1;
    return HF_OK;
}

static hf_status deploy_2(hf_service *service, hf_execution *execution)
{
    HF_TRY(deploy_1(service, execution));
    version = 2;
    return HF_OK;
}

static hf_status deploy_3(hf_service *service, hf_execution *execution)
{
    HF_TRY(deploy_1(service, execution));
    version = 3;
    return HF_OK;
}

static void one_marker(hf_service *service)
{
    HF_CHECK_SAY(scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED) == 1, "%d",
                 scene_count(service, HF_EVENT_TYPE_MARKER_RECORDED));
    HF_CHECK(scene_count(service, HF_EVENT_TYPE_WORKFLOW_TASK_FAILED) == 0);
}

static void a_call_of_patched_may_move(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = moves, .client = deploy_1, .expected = HF_OK, .result = "\"new\"", .look = one_marker});
    play_scene(
        (scene){.workflow = moves, .client = deploy_2, .expected = HF_OK, .result = "\"new\"", .look = one_marker});
    play_scene(
        (scene){.workflow = moves, .client = deploy_3, .expected = HF_OK, .result = "\"new\"", .look = one_marker});
}

/* ---- Children ------------------------------------------------------------------------------------------------------------ */

static hf_status child(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_days(1));
}

static hf_status add_child(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "child", child);
}

static hf_status waits_for_child(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_child_run("child", hf_payload_none(), ret_out, .id = "c");
}

static hf_status waits_briefly(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_child_run("child", hf_payload_none(), ret_out, .id = "c", .run_timeout = hf_seconds(20));
}

static hf_failure_kind expected_kind; /* of the cause of the run's failure */

/* The run passes the failure of its child on: a child that failed so, because of that. */
static void look_at_kinds(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_CHECK(hf_execution_new(service, "w", &run) == HF_OK);
    HF_CHECK(hf_result(run, NULL) == HF_ERR_FAILED);
    const hf_failure *failure = hf_error();
    while (failure != NULL && failure->kind != HF_FAILURE_CHILD) {
        failure = failure->cause;
    }
    HF_CHECK_SAY(failure != NULL && failure->cause != NULL && failure->cause->kind == expected_kind, "%s",
                 hf_error_text());
}

static hf_status terminate_child(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *c = NULL;
    (void)execution;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_execution_new(service, "c", &c));
    return hf_terminate(c);
}

static hf_status cancel_child(hf_service *service, hf_execution *execution)
{
    HF_AUTO(hf_execution_free) hf_execution *c = NULL;
    (void)execution;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_execution_new(service, "c", &c));
    return hf_cancel(c);
}

static void the_end_of_a_child_keeps_its_kind_when_it_is_passed_on(void **state)
{
    (void)state;
    expected_kind = HF_FAILURE_TIMEOUT;
    play_scene((scene){.workflow = waits_briefly,
                       .expected = HF_ERR_FAILED,
                       .result = "child workflow 'child' timed out",
                       .add = add_child,
                       .look = look_at_kinds});
    expected_kind = HF_FAILURE_TERMINATED;
    play_scene((scene){.workflow = waits_for_child,
                       .client = terminate_child,
                       .expected = HF_ERR_FAILED,
                       .result = "child workflow 'child' was terminated",
                       .add = add_child,
                       .look = look_at_kinds});
    expected_kind = HF_FAILURE_CANCELED;
    play_scene((scene){.workflow = waits_for_child,
                       .client = cancel_child,
                       .expected = HF_ERR_FAILED,
                       .result = "child workflow 'child' was canceled",
                       .add = add_child,
                       .look = look_at_kinds});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_workflow_sleeps_until_a_time),
    cmocka_unit_test(a_uuid_is_the_same_in_a_replay),
    cmocka_unit_test(a_note_is_written_once_and_not_in_replays),
    cmocka_unit_test(a_workflow_sets_its_memo_and_search_attributes),
    cmocka_unit_test(children_and_next_runs_are_described_and_activities_have_a_summary),
    cmocka_unit_test(the_next_run_has_the_memo_attributes_and_retries_of_this_one),
    cmocka_unit_test(a_memo_has_a_bound_in_all),
    cmocka_unit_test(a_workflow_fails_with_type_details_and_for_good),
    cmocka_unit_test(a_run_knows_its_relatives_its_predecessor_its_bounds_and_its_fields),
    cmocka_unit_test(a_saga_that_fails_is_undone_in_reverse),
    cmocka_unit_test(a_saga_that_is_committed_is_not_undone),
    cmocka_unit_test(a_saga_is_undone_after_a_cancel),
    cmocka_unit_test(a_step_that_cannot_be_undone_does_not_stop_the_others),
    cmocka_unit_test(a_saga_can_be_undone_at_once),
    cmocka_unit_test(a_call_of_patched_may_move),
    cmocka_unit_test(the_end_of_a_child_keeps_its_kind_when_it_is_passed_on),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_verbs", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
