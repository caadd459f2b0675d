/* What a worker knows of its runs beyond their histories: which signals their code waits for, and which it has not taken. */
#include "unit/worker/play.h"

#include "service/witness.h"

static hf_status wait_branch(void *arg)
{
    return hf_signal_wait(arg, NULL);
}

/* Waits for two signals at once, then for a third that says how to go on. */
static hf_status picky(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, wait_branch, (void *)(uintptr_t) "paid"));
        HF_TRY(hf_fork(scope, wait_branch, (void *)(uintptr_t) "packed"));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_signal_wait("delivered", NULL, .timeout = hf_days(14)));
    return hf_sleep(hf_days(1));
}

static hf_status add_picky(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "picky", picky);
}

static void note_look(play *p, const char *run_id, const char *namespace_)
{
    hf_insight insight;
    hf_service_look(p->service, hf_str_of(namespace_), hf_str_of(run_id), &insight);
    play_note(p, insight.is_known ? "waits" : "not known");
    for (int i = 0; i < insight.waits.count; i++) {
        play_note(p, " %s", insight.waits.items[i]);
    }
    for (int i = 0; i < insight.unread.count; i++) {
        play_note(p, " unread %s", insight.unread.items[i]);
    }
    play_note(p, "; ");
}

static hf_status look_at_it(play *p)
{
    static const char *const SIGNALS[] = {"Delivered", "packed", "Delivered", "paid", "delivered"};
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    note_look(p, "none", "default");
    HF_TRY(hf_start(p->service, "picky", hf_payload_none(), &execution, .id = "o", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    note_look(p, hf_execution_run_id(execution), "default");
    note_look(p, hf_execution_run_id(execution), "other");
    for (size_t i = 0; i < HF_COUNT_OF(SIGNALS); i++) {
        HF_TRY(hf_signal(execution, SIGNALS[i], hf_payload_none()));
        HF_TRY(hf_sleep(hf_seconds(1)));
        note_look(p, hf_execution_run_id(execution), "default");
    }
    return HF_OK;
}

static void a_worker_knows_what_its_runs_wait_for(void **state)
{
    (void)state;
    play_on((play_options){
        .add = add_picky,
        .body = look_at_it,
        .result =
            "not known; waits paid packed; not known; waits paid packed unread Delivered; waits paid unread "
            "Delivered; waits paid unread Delivered; waits delivered unread Delivered; waits unread Delivered; "});
}

static hf_status look_at_evicted(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "picky", hf_payload_none(), &execution, .id = "o", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    note_look(p, hf_execution_run_id(execution), "default");
    return HF_OK;
}

static void a_run_that_is_not_in_memory_is_not_known(void **state)
{
    (void)state;
    play_on((play_options){
        .add = add_picky, .body = look_at_evicted, .worker = {.cached_max = HF_OFF}, .result = "not known; "});
}

static void names_are_told_once_and_cut(void **state)
{
    (void)state;
    hf_insight_names names = {.count = 0};
    char text[HF_INSIGHT_NAME_LEN + 2];
    memset(text, 'x', sizeof text);
    hf_insight_add(&names, hf_str_of_len(text, HF_INSIGHT_NAME_LEN - 1));
    assert_int_equal(strlen(names.items[0]), HF_INSIGHT_NAME_LEN - 1);
    hf_insight_add(&names, hf_str_of_len(text, HF_INSIGHT_NAME_LEN));
    assert_int_equal(strlen(names.items[1]), HF_INSIGHT_NAME_LEN - 1);
    assert_string_equal(names.items[1] + HF_INSIGHT_NAME_LEN - 5, "x...");
    hf_insight_add(&names, hf_str_of_len(text, HF_INSIGHT_NAME_LEN + 1));
    hf_insight_add(&names, HF_STR(""));
    hf_insight_add(&names, HF_STR("a"));
    hf_insight_add(&names, HF_STR("a"));
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[3], "a");
    for (int i = 0; i < 20; i++) {
        hf_insight_add(&names, hf_str_of_len(text, (size_t)i));
    }
    assert_int_equal(names.count, HF_INSIGHT_NAMES_MAX);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_worker_knows_what_its_runs_wait_for),
    cmocka_unit_test(a_run_that_is_not_in_memory_is_not_known),
    cmocka_unit_test(names_are_told_once_and_cut),
};

int main(int argc, char **argv)
{
    return hf_test_main("witness", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
