/* labels: threads */
/* Failures on their way from messages to programs and back: nothing is lost, on fibers and on plain threads. */
#include "support/broken_memory.h"
#include "support/support.h"

#include "client/data.h"
#include "history/limits.h"
#include "history/payload.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_LEN = 200, MESSAGE_LEN = 4096 };

static hf_str repeated(hf_arena *arena, char what, size_t len)
{
    char *text = hf_arena_take(arena, len + 1, 1);
    memset(text, what, len);
    text[len] = '\0';
    return hf_str_of_len(text, len);
}

static hf_pb_payloads *two_payloads(hf_arena *arena, const char *text)
{
    hf_pb_payload *items = hf_arena_zero(arena, 2 * sizeof *items, _Alignof(hf_pb_payload));
    hf_pb_payloads *payloads = HF_ARENA_NEW(arena, hf_pb_payloads);
    items[0] = hf_payload_json(arena, hf_str_of(text));
    items[1] = hf_payload_bytes(arena, HF_STR("more"));
    payloads->payloads.items = items;
    payloads->payloads.count = 2;
    return payloads;
}

/* A chain with every kind there is, and each field set that a link may have. */
static hf_pb_failure *every_kind(hf_arena *arena)
{
    hf_pb_failure *links = hf_arena_zero(arena, 10 * sizeof *links, _Alignof(hf_pb_failure));
    static const uint32_t CASES[] = {HF_PB_FAILURE_ACTIVITY_FAILURE_INFO,
                                     HF_PB_FAILURE_APPLICATION_FAILURE_INFO,
                                     HF_PB_FAILURE_TIMEOUT_FAILURE_INFO,
                                     HF_PB_FAILURE_CANCELED_FAILURE_INFO,
                                     HF_PB_FAILURE_TERMINATED_FAILURE_INFO,
                                     HF_PB_FAILURE_SERVER_FAILURE_INFO,
                                     HF_PB_FAILURE_RESET_WORKFLOW_FAILURE_INFO,
                                     HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO,
                                     HF_PB_FAILURE_NEXUS_OPERATION_EXECUTION_FAILURE_INFO,
                                     0};
    for (size_t i = 0; i < 10; i++) {
        links[i].failure_info_case = CASES[i];
        links[i].message = repeated(arena, (char)('a' + i), 700 + i);
        links[i].stack_trace = repeated(arena, (char)('k' + i), 2000);
        links[i].source = HF_STR("JavaSDK");
        links[i].unknown = HF_STR("\xa2\x06\x01x"); /* field 100 */
        links[i].cause = i < 9 ? &links[i + 1] : NULL;
    }
    static hf_pb_activity_type type = {.name = {"charge", 6}};
    hf_pb_activity_failure_info *activity = HF_ARENA_NEW(arena, hf_pb_activity_failure_info);
    *activity = (hf_pb_activity_failure_info){.scheduled_event_id = 5,
                                              .started_event_id = 6,
                                              .identity = HF_STR("w@h"),
                                              .activity_type = &type,
                                              .activity_id = HF_STR("1"),
                                              .retry_state = 2};
    links[0].activity_failure_info = activity;
    hf_pb_application_failure_info *application = HF_ARENA_NEW(arena, hf_pb_application_failure_info);
    application->type = repeated(arena, 'T', TYPE_LEN);
    application->non_retryable = true;
    application->details = two_payloads(arena, "{\"a\": 1}");
    links[1].application_failure_info = application;
    hf_pb_timeout_failure_info *timeout = HF_ARENA_NEW(arena, hf_pb_timeout_failure_info);
    timeout->timeout_type = 3;
    timeout->last_heartbeat_details = two_payloads(arena, "\"beat\"");
    links[2].timeout_failure_info = timeout;
    hf_pb_canceled_failure_info *canceled = HF_ARENA_NEW(arena, hf_pb_canceled_failure_info);
    canceled->details = two_payloads(arena, "\"why\"");
    links[3].canceled_failure_info = canceled;
    links[4].terminated_failure_info = HF_ARENA_NEW(arena, hf_pb_terminated_failure_info);
    links[5].server_failure_info = HF_ARENA_NEW(arena, hf_pb_server_failure_info);
    hf_pb_reset_workflow_failure_info *reset = HF_ARENA_NEW(arena, hf_pb_reset_workflow_failure_info);
    reset->last_heartbeat_details = two_payloads(arena, "\"reset\"");
    links[6].reset_workflow_failure_info = reset;
    links[7].child_workflow_execution_failure_info = HF_ARENA_NEW(arena, hf_pb_child_workflow_execution_failure_info);
    links[8].nexus_operation_execution_failure_info = HF_ARENA_NEW(arena, hf_pb_nexus_operation_failure_info);
    return links;
}

static const struct {
    hf_failure_kind kind;
    const char *type;
    hf_status status;
    const char *details;
} TOLD[] = {
    {HF_FAILURE_ACTIVITY, "ActivityFailed", HF_ERR_FAILED, NULL},
    {HF_FAILURE_APPLICATION, NULL, HF_ERR_FAILED, "{\"a\": 1}"},
    {HF_FAILURE_TIMEOUT, "Timeout", HF_ERR_TIMEOUT, "\"beat\""},
    {HF_FAILURE_CANCELED, "Canceled", HF_ERR_CANCELED, "\"why\""},
    {HF_FAILURE_TERMINATED, "Terminated", HF_ERR_FAILED, NULL},
    {HF_FAILURE_SERVER, "Failure", HF_ERR_FAILED, NULL},
    {HF_FAILURE_RESET, "Failure", HF_ERR_FAILED, "\"reset\""},
    {HF_FAILURE_CHILD, "ChildWorkflowFailed", HF_ERR_FAILED, NULL},
    {HF_FAILURE_NEXUS, "Failure", HF_ERR_FAILED, NULL},
    {HF_FAILURE_OTHER, "Failure", HF_ERR_FAILED, NULL},
};

static void compare(const hf_failure *told, const hf_pb_failure *failure)
{
    for (size_t i = 0; i < HF_COUNT_OF(TOLD); i++, told = told->cause, failure = failure->cause) {
        if (!HF_CHECK(told != NULL && failure != NULL)) {
            return;
        }
        HF_CHECK(told->kind == TOLD[i].kind && told->status == TOLD[i].status);
        HF_CHECK(TOLD[i].type != NULL ? strcmp(told->type, TOLD[i].type) == 0 : strlen(told->type) == TYPE_LEN);
        HF_CHECK(strlen(told->message) == 700 + i && told->message[0] == (char)('a' + i));
        HF_CHECK(strlen(told->stack) == 2000 && told->stack[0] == (char)('k' + i));
        HF_CHECK(TOLD[i].details == NULL ? told->details.data == NULL
                                         : strcmp(told->details.data, TOLD[i].details) == 0);
    }
    HF_CHECK(told == NULL && failure == NULL);
}

static hf_status pass_through(void *arg)
{
    (void)arg;
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_failure *failure = every_kind(&arena);
    HF_CHECK(hf_failure_raise_of(HF_ERR_FAILED, failure) == HF_ERR_FAILED);
    HF_CHECK(hf_failure_is_whole(failure));
    compare(hf_error(), failure);
    HF_CHECK(hf_error_find("Timeout") == hf_error()->cause->cause && hf_error_find("Nothing") == NULL);
    hf_pb_failure *again = hf_failure_encode(&arena, hf_error(), HF_ERR_FAILED);
    HF_CHECK(again != NULL && hf_pb_equal(&hf_pb_failure_type, failure, again));
    hf_arena_deinit(&arena);
    return HF_OK;
}

static void a_chain_of_every_kind_passes_unchanged(void **state)
{
    (void)state;
    assert_int_equal(pass_through(NULL), HF_OK); /* a plain thread */
    assert_int_equal(hf_sim_run(1, 2, pass_through, NULL, NULL), HF_OK);
    assert_int_equal(hf_run(pass_through, NULL), HF_OK);
}

/* A failure of the program's own becomes the first link, and what it got from elsewhere stays what it was. */
static hf_status wrap(void *arg)
{
    (void)arg;
    hf_arena arena;
    char type[TYPE_LEN + 1];
    char message[MESSAGE_LEN + 10];
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_failure *failure = every_kind(&arena);
    memset(type, 'O', TYPE_LEN);
    type[TYPE_LEN] = '\0';
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    HF_IGNORE(hf_failure_raise_of(HF_ERR_FAILED, failure));
    hf_status mine = hf_raise_typed((hf_status)(HF_ERR_USER + 7), type, "%s", message);
    HF_CHECK((int)mine == HF_ERR_USER + 7 && strcmp(hf_error()->type, type) == 0);
    HF_CHECK(strlen(hf_error()->message) == MESSAGE_LEN); /* the rest is cut */
    hf_pb_failure *again = hf_failure_encode(&arena, hf_error_as(mine), mine);
    HF_CHECK(again != NULL && hf_pb_equal(&hf_pb_failure_type, failure, again->cause));
    HF_CHECK(hf_failure_type(again).len == TYPE_LEN && again->message.len == MESSAGE_LEN);
    HF_IGNORE(hf_failure_raise_of(HF_ERR_FAILED, again)); /* at the client */
    HF_CHECK((int)hf_error()->status == HF_ERR_USER + 7 && strcmp(hf_error()->type, type) == 0);
    hf_arena_deinit(&arena);
    return HF_OK;
}

static void a_status_of_ones_own_passes_beside_a_type(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 1, wrap, NULL, NULL), HF_OK);
}

/* ---- Lengths ------------------------------------------------------------------------------------------------------- */

static int count_links(void)
{
    int count = 0;
    for (const hf_failure *at = hf_error(); at != NULL; at = at->cause) {
        count++;
    }
    return count;
}

static hf_status go_deep(void *arg)
{
    (void)arg;
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    for (int i = 0; i < 40; i++) {
        char type[20];
        (void)snprintf(type, sizeof type, "Link%d", i);
        HF_IGNORE(hf_raise_typed(HF_ERR_FAILED, type, "link %d", i));
        HF_CHECK(count_links() == (i < HF_CAUSE_DEPTH_MAX ? i + 1 : HF_CAUSE_DEPTH_MAX));
    }
    HF_CHECK(hf_error_find("Link39") == hf_error() && hf_error_find("Link19") != NULL); /* 20 causes */
    HF_CHECK(hf_error_find("Link18") == NULL);
    hf_pb_failure *sent = hf_failure_encode(&arena, hf_error(), HF_ERR_FAILED);
    int links = 0;
    for (const hf_pb_failure *at = sent; at != NULL; at = at->cause) {
        links++;
    }
    HF_CHECK(links == 21);
    hf_arena_deinit(&arena);
    return HF_OK;
}

static void a_chain_keeps_its_first_20_causes(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 1, go_deep, NULL, NULL), HF_OK);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    static char text[MESSAGE_LEN + 100];
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 0, sizeof text);
        memset(text, 'x', shift);
        for (size_t at = shift; at + 4 < sizeof text; at += 4) {
            memcpy(text + at, "\xf0\x9f\x98\x80", 4);
        }
        HF_IGNORE(hf_raise(HF_ERR_FAILED, "%s", text));
        size_t len = strlen(hf_error()->message);
        assert_true(len <= MESSAGE_LEN && len > MESSAGE_LEN - 4 && (len - shift) % 4 == 0);
    }
}

/* A new failure may quote the old one, which it replaces. */
static void a_failure_can_quote_the_last_one(void **state)
{
    (void)state;
    static char text[2000];
    memset(text, 'q', sizeof text - 1);
    HF_IGNORE(hf_raise_typed(HF_ERR_FAILED, text, "%s", text));
    for (int i = 0; i < 3; i++) {
        const hf_failure *last = hf_error();
        HF_IGNORE(hf_raise_typed(HF_ERR_FAILED, last->type, "%s", last->message));
        assert_int_equal(strlen(hf_error()->type), HF_FAILURE_TYPE_LEN_MAX);
        assert_string_equal(hf_error()->message, text);
    }
}

/* ---- Threads ------------------------------------------------------------------------------------------------------- */

static void *end_with_a_failure(void *arg)
{
    (void)pass_through(arg);
    return NULL; /* LeakSanitizer says whether its chain was freed */
}

static void a_thread_that_ends_frees_its_failure(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, end_with_a_failure, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

static hf_status keep_on_thread(void *arg)
{
    return pass_through(arg) == HF_OK ? hf_failure_raise_of(HF_ERR_FAILED, arg) : HF_ERR_INVALID;
}

/* What hf_run reports to a plain thread outlives the runtime. */
static void a_chain_outlives_its_runtime(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_failure *failure = every_kind(&arena);
    assert_int_equal(hf_run(keep_on_thread, failure), HF_ERR_FAILED);
    compare(hf_error(), failure);
    hf_pb_failure *again = hf_failure_encode(&arena, hf_error(), HF_ERR_FAILED);
    assert_true(hf_pb_equal(&hf_pb_failure_type, failure, again));
    hf_arena_deinit(&arena);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

static hf_pb_failure *sent;
static hf_arena sent_arena;

static void raise_whole_or_not(void)
{
    hf_status status = hf_failure_raise_of(HF_ERR_FAILED, sent);
    bool is_whole = hf_failure_is_whole(sent);
    broken_memory_pause();
    assert_int_equal(status, HF_ERR_FAILED);
    assert_non_null(hf_error());
    assert_true(is_whole || broken_memory_has_failed());
    if (is_whole) {
        compare(hf_error(), sent);
    }
}

static void raise_long(void)
{
    static char text[3000];
    memset(text, 't', sizeof text - 1);
    hf_status status = hf_raise_typed((hf_status)(HF_ERR_USER + 1), "Long", "%s", text);
    broken_memory_pause();
    assert_int_equal(status, HF_ERR_USER + 1);
    assert_string_equal(hf_error()->type, "Long");
    size_t len = strlen(hf_error()->message);
    assert_true(len == sizeof text - 1 || (broken_memory_has_failed() && len == HF_MESSAGE_LEN_MAX - 1));
}

static void every_allocation_of_a_failure_may_fail(void **state)
{
    (void)state;
    hf_arena_init(&sent_arena, hf_env_memory(hf_env_posix()));
    sent = every_kind(&sent_arena);
    assert_true(broken_memory_each(raise_whole_or_not) > 20);
    assert_true(broken_memory_each(raise_long) >= 2);
    hf_arena_deinit(&sent_arena);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_chain_of_every_kind_passes_unchanged),
        cmocka_unit_test(a_status_of_ones_own_passes_beside_a_type),
        cmocka_unit_test(a_chain_keeps_its_first_20_causes),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(a_failure_can_quote_the_last_one),
        cmocka_unit_test(a_thread_that_ends_frees_its_failure),
        cmocka_unit_test(a_chain_outlives_its_runtime),
        cmocka_unit_test(every_allocation_of_a_failure_may_fail),
    };
    return hf_test_main("failure", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
