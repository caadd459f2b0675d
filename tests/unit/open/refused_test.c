/* labels: threads */
/* What a program cannot mean is refused with a sentence, before anything is copied or asked: names that nothing can have, spans
 * without a unit, lengths without bytes, results that are not there any more. On the real engine, in virtual time. */
#include "support/support.h"

#include "base/base.h"
#include "history/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char long_text[HF_ID_LEN_MAX + 2];         /* one byte more than an id may have */
static char unpolled_queue[HF_QUEUE_LEN_MAX + 2]; /* one byte more than a queue may have */
static char longest_queue[HF_QUEUE_LEN_MAX + 1];

/* ---- What clients give ------------------------------------------------------------------------------------------------- */

static void check(const char *what, hf_status status, hf_status expected, const char *sentence)
{
    bool is_so = status == expected;
    if (expected != HF_OK) {
        is_so = is_so && strncmp(hf_error_text(), sentence, strlen(sentence)) == 0;
    }
    HF_CHECK_SAY(is_so, "%s gave %s: %s", what, hf_status_name(status), status != HF_OK ? hf_error_text() : "");
}

#define REFUSES(call, sentence) check(#call, (call), HF_ERR_INVALID, sentence)
#define START(...) hf_start(service, "t", hf_payload_none(), NULL, __VA_ARGS__)
#define NEGATIVE " is negative: leave it out, or give a time"
#define UNIT " is 30 ns: give it a unit, hf_seconds(30)"

static hf_status starts(hf_service *service)
{
    hf_span tiny = hf_nanoseconds(30);
    hf_span less = HF_SPAN_OFF;
    REFUSES(hf_start(service, NULL, hf_payload_none(), NULL), "hf_start: the type has 0 bytes, not 1 to 1000");
    REFUSES(hf_start(service, "", hf_payload_none(), NULL), "hf_start: the type has 0 bytes, not 1 to 1000");
    REFUSES(hf_start(service, long_text, hf_payload_none(), NULL), "hf_start: the type has 1001 bytes, not 1 to 1000");
    REFUSES(START(.id = ""), "hf_start: .id has 0 bytes, not 1 to 1000");
    REFUSES(START(.id = long_text), "hf_start: .id has 1001 bytes, not 1 to 1000");
    REFUSES(START(.task_queue = ""), "hf_start: .task_queue has 0 bytes, not 1 to 963");
    REFUSES(START(.task_queue = unpolled_queue), "hf_start: .task_queue has 964 bytes, not 1 to 963");
    REFUSES(START(.namespace_ = ""), "hf_start: .namespace_ has 0 bytes, not 1 to 1000");
    REFUSES(START(.namespace_ = long_text), "hf_start: .namespace_ has 1001 bytes, not 1 to 1000");
    REFUSES(START(.request_id = ""), "hf_start: .request_id has 0 bytes, not 1 to 1000");
    REFUSES(START(.request_id = long_text), "hf_start: .request_id has 1001 bytes, not 1 to 1000");
    REFUSES(START(.execution_timeout = tiny), "hf_start: .execution_timeout" UNIT);
    REFUSES(START(.run_timeout = tiny), "hf_start: .run_timeout" UNIT);
    REFUSES(START(.task_timeout = tiny), "hf_start: .task_timeout" UNIT);
    REFUSES(START(.execution_timeout = less), "hf_start: .execution_timeout" NEGATIVE);
    REFUSES(START(.run_timeout = less), "hf_start: .run_timeout" NEGATIVE);
    REFUSES(START(.task_timeout = less), "hf_start: .task_timeout" NEGATIVE);
    return START(.task_queue = longest_queue, .run_timeout = hf_milliseconds(1), .task_timeout = HF_SPAN_UNLIMITED);
}

static hf_status handles(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *e = NULL;
    REFUSES(hf_execution_new(service, NULL, &e), "hf_execution_new: the id has 0 bytes, not 1 to 1000");
    REFUSES(hf_execution_new(service, "", &e), "hf_execution_new: the id has 0 bytes, not 1 to 1000");
    REFUSES(hf_execution_new(service, long_text, &e), "hf_execution_new: the id has 1001 bytes, not 1 to 1000");
    REFUSES(hf_execution_new(service, "w", &e, .namespace_ = ""),
            "hf_execution_new: .namespace_ has 0 bytes, not 1 to 1000");
    REFUSES(hf_execution_new(service, "w", &e, .run_id = long_text),
            "hf_execution_new: .run_id has 1001 bytes, not 0 to 1000");
    HF_TRY(hf_execution_new(service, "w", &e, .run_id = ""));
    REFUSES(hf_signal(e, NULL, hf_payload_none()), "hf_signal: the name has 0 bytes, not 1 to 1000");
    REFUSES(hf_signal(e, long_text, hf_payload_none()), "hf_signal: the name has 1001 bytes, not 1 to 1000");
    REFUSES(hf_signal(e, "s", hf_payload_none(), .request_id = long_text),
            "hf_signal: .request_id has 1001 bytes, not 1 to 1000");
    REFUSES(hf_cancel(e, .reason = long_text), "hf_cancel: .reason has 1001 bytes, not 0 to 1000");
    REFUSES(hf_terminate(e, .reason = long_text), "hf_terminate: .reason has 1001 bytes, not 0 to 1000");
    return HF_OK;
}

static hf_status workers(hf_service *service)
{
    hf_span tiny = hf_nanoseconds(30);
    hf_worker *w = NULL;
    REFUSES(hf_worker_new(service, "", &w), "hf_worker_new: the task queue has 0 bytes, not 1 to 963");
    REFUSES(hf_worker_new(service, unpolled_queue, &w), "hf_worker_new: the task queue has 964 bytes, not 1 to 963");
    REFUSES(hf_worker_new(service, "q", &w, .namespace_ = ""), "hf_worker_new: .namespace_ has 0 bytes, not 1 to 1000");
    REFUSES(hf_worker_new(service, "q", &w, .namespace_ = long_text),
            "hf_worker_new: .namespace_ has 1001 bytes, not 1 to 1000");
    REFUSES(hf_worker_new(service, "q", &w, .identity = long_text),
            "hf_worker_new: .identity has 1001 bytes, not 0 to 1000");
    REFUSES(hf_worker_new(service, "q", &w, .sticky_timeout = tiny), "hf_worker_new: .sticky_timeout" UNIT);
    REFUSES(hf_worker_new(service, "q", &w, .shutdown_grace = tiny), "hf_worker_new: .shutdown_grace" UNIT);
    REFUSES(hf_worker_new(service, "q", &w, .shutdown_force = tiny), "hf_worker_new: .shutdown_force" UNIT);
    HF_TRY(hf_worker_new(service, longest_queue, &w, .shutdown_grace = HF_SPAN_OFF));
    return hf_worker_free(w);
}

/* A length is compared before a byte is copied: of these there are not so many. */
static hf_status lengths(hf_service *service)
{
    static const size_t LENGTHS[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, (size_t)8 << 30, HF_PAYLOAD_LEN_MAX + 1};
    HF_AUTO(hf_execution_free) hf_execution *e = NULL;
    HF_TRY(hf_execution_new(service, "w", &e));
    for (size_t i = 0; i < HF_COUNT_OF(LENGTHS); i++) {
        char sentence[200];
        hf_payload lie = hf_payload_of_bytes("12345", LENGTHS[i]);
        (void)snprintf(sentence, sizeof sentence, "the input of the workflow has %zu bytes, at most 2097152 are taken",
                       LENGTHS[i]);
        check("hf_start", hf_start(service, "t", lie, NULL), HF_ERR_TOO_BIG, sentence);
        (void)snprintf(sentence, sizeof sentence, "the input of the signal has %zu bytes, at most 2097152 are taken",
                       LENGTHS[i]);
        check("hf_signal", hf_signal(e, "s", lie), HF_ERR_TOO_BIG, sentence);
        lie.encoding = NULL; /* bytes without a word for them are bytes */
        check("hf_signal", hf_signal(e, "s", lie), HF_ERR_TOO_BIG, sentence);
        if (LENGTHS[i] > HF_PAYLOAD_COPY_LEN_MAX) {
            hf_payload copy = hf_payload_none();
            (void)snprintf(sentence, sizeof sentence,
                           "hf_payload_copy: the payload has %zu bytes, at most 1073741824 are copied", LENGTHS[i]);
            check("hf_payload_copy", hf_payload_copy(lie, &copy), HF_ERR_TOO_BIG, sentence);
        }
    }
    return HF_OK;
}

static hf_status ask_all(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(starts(service));
    HF_TRY(handles(service));
    HF_TRY(workers(service));
    return lengths(service);
}

static void a_client_is_told_of_what_it_cannot_mean(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, ask_all, NULL, NULL), HF_OK);
}

/* ---- What functions return --------------------------------------------------------------------------------------------- */

static char big[HF_PAYLOAD_LEN_MAX + 1];
static char fixed[] = "\"in a static array\"";
static char *mine; /* of malloc, and never freed */

/* The compiler may not know what becomes of it: it would warn, which is the second best that can happen. */
static const char *hidden(const char *text)
{
    __asm__ volatile("" : "+r"(text));
    return text;
}

static hf_status on_the_stack(hf_payload in, hf_payload *ret_out)
{
    char text[64];
    (void)snprintf(text, sizeof text, "{\"total\": %d}", (int)in.len);
    *ret_out = hf_payload_of_json(hidden(text));
    return HF_OK;
}

static hf_status in_an_outer_frame(hf_payload in, hf_payload *ret_out)
{
    *ret_out = hf_payload_of_bytes(hidden((const char *)&in), sizeof in);
    return HF_OK;
}

static hf_status with_its_word_on_the_stack(hf_payload in, hf_payload *ret_out)
{
    char word[64];
    (void)snprintf(word, sizeof word, "json/%d", (int)in.len);
    HF_TRY(hf_payload_printf(ret_out, "\"owned\""));
    ret_out->encoding = hidden(word);
    return HF_OK;
}

static hf_status with_only_a_word_on_the_stack(hf_payload in, hf_payload *ret_out)
{
    char word[64];
    (void)snprintf(word, sizeof word, "json/%d", (int)in.len);
    *ret_out = (hf_payload){NULL, 0, hidden(word), NULL};
    return HF_OK;
}

static hf_status on_the_heap(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = hf_payload_of_json(mine);
    return HF_OK;
}

static hf_status literal(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = hf_payload_of_json("\"a literal\"");
    return HF_OK;
}

static hf_status in_an_array(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = hf_payload_of_json(fixed);
    return HF_OK;
}

static hf_status its_input(hf_payload in, hf_payload *ret_out)
{
    *ret_out = in;
    return HF_OK;
}

static hf_status part_of_its_input(hf_payload in, hf_payload *ret_out)
{
    *ret_out = hf_payload_of_bytes((const char *)in.data + 1, 1);
    return HF_OK;
}

static hf_status behind_its_input(hf_payload in, hf_payload *ret_out)
{
    *ret_out = hf_payload_of_bytes((const char *)in.data + 1, in.len);
    return HF_OK;
}

static hf_status owned(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"owned\"");
}

static hf_status bare_bytes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = (hf_payload){"bare", 4, NULL, NULL};
    return HF_OK;
}

static hf_status none(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

static hf_status too_big(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = hf_payload_of_bytes(big, sizeof big);
    return HF_OK;
}

static hf_status endless(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = hf_payload_of_bytes(big, SIZE_MAX);
    return HF_OK;
}

#define GONE "is in memory that is no longer valid (the stack of the function), or is not the library's"
static const struct {
    const char *name;
    hf_function function;
    const char *result;  /* "word: bytes" that arrives, or ... */
    const char *refusal; /* ... how the sentence goes on behind "the result of the workflow " or "of the activity " */
} RESULTS[] = {
    {"on_the_stack", on_the_stack, NULL, GONE},
    {"in_an_outer_frame", in_an_outer_frame, NULL, GONE},
    {"with_its_word_on_the_stack", with_its_word_on_the_stack, NULL, GONE},
    {"with_only_a_word_on_the_stack", with_only_a_word_on_the_stack, NULL, GONE},
    {"on_the_heap", on_the_heap, NULL, GONE},
    {"behind_its_input", behind_its_input, NULL, GONE},
    {"too_big", too_big, NULL, "has 2097153 bytes, at most 2097152 are taken"},
    {"endless", endless, NULL, "has 18446744073709551615 bytes, at most 2097152 are taken"},
    {"literal", literal, "json/plain: \"a literal\"", NULL},
    {"in_an_array", in_an_array, "json/plain: \"in a static array\"", NULL},
    {"its_input", its_input, "json/plain: 1234", NULL},
    {"part_of_its_input", part_of_its_input, "binary/plain: 2", NULL},
    {"owned", owned, "json/plain: \"owned\"", NULL},
    {"bare_bytes", bare_bytes, "binary/plain: bare", NULL},
    {"none", none, "nothing", NULL},
};

static void note(char *text, size_t capacity, hf_payload out)
{
    (void)snprintf(text, capacity, "%s%s%.100s", out.encoding != NULL ? out.encoding : "nothing",
                   out.encoding != NULL ? ": " : "", out.data != NULL ? (const char *)out.data : "");
}

/* Runs the activity that its input names, and tells what came. */
static hf_status of_activity(hf_payload in, hf_payload *ret_out)
{
    char text[600];
    char name[64];
    hf_payload out = hf_payload_none();
    (void)snprintf(name, sizeof name, "%.*s", (int)in.len, (const char *)in.data);
    hf_status status = hf_activity_run(name, hf_payload_of_json("1234"), &out, .start_to_close = hf_seconds(5),
                                       .attempts_max = strcmp(name, "too_big") == 0 ? 0 : 1);
    HF_TRY(status == HF_ERR_EVICTED ? status : HF_OK);
    if (status == HF_OK) {
        note(text, sizeof text, out);
    } else {
        (void)snprintf(text, sizeof text, "%s", hf_error()->cause != NULL ? hf_error()->cause->message : "no cause");
    }
    return hf_payload_copy(hf_payload_of_bytes(text, strlen(text)), ret_out);
}

typedef struct stage {
    bool on_fiber;
} stage;

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static void compare(const char *name, const char *what, const char *text, const char *result, const char *refusal)
{
    char expected[600];
    if (refusal != NULL) {
        (void)snprintf(expected, sizeof expected, "the result of the %s %s", what, refusal);
    } else {
        (void)snprintf(expected, sizeof expected, "%s", result);
    }
    HF_CHECK_SAY(strncmp(text, expected, strlen(expected)) == 0, "%s of the %s gave '%s', not '%s'", name, what, text,
                 expected);
}

static hf_status try_results(hf_service *service)
{
    for (size_t i = 0; i < HF_COUNT_OF(RESULTS); i++) {
        HF_AUTO(hf_execution_free) hf_execution *as_workflow = NULL;
        HF_AUTO(hf_execution_free) hf_execution *as_activity = NULL;
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_AUTO(hf_payload_free) hf_payload told = hf_payload_none();
        char text[600];
        const char *name = RESULTS[i].name;
        HF_TRY(hf_start(service, name, hf_payload_of_json("1234"), &as_workflow, .task_queue = "q"));
        hf_status status = hf_result(as_workflow, &out);
        note(text, sizeof text, out);
        HF_CHECK((status == HF_OK) == (RESULTS[i].result != NULL));
        compare(name, "workflow", status == HF_OK ? text : hf_error_text(), RESULTS[i].result, RESULTS[i].refusal);
        HF_TRY(hf_start(service, "of_activity", hf_payload_of_json(name), &as_activity, .task_queue = "q"));
        HF_TRY(hf_result(as_activity, &told));
        compare(name, "activity", told.data, RESULTS[i].result, RESULTS[i].refusal);
    }
    return HF_OK;
}

static hf_status play_results(void *arg)
{
    const stage *s = arg;
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "of_activity", of_activity));
    for (size_t i = 0; i < HF_COUNT_OF(RESULTS); i++) {
        HF_TRY(hf_worker_add_workflow(worker, RESULTS[i].name, RESULTS[i].function));
        HF_TRY(hf_worker_add_activity(worker, RESULTS[i].name, RESULTS[i].function, .on_fiber = s->on_fiber));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(try_results(service));
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(worker));
    return hf_close(service);
}

static void a_result_that_is_gone_is_refused_and_a_constant_is_not(void **state)
{
    (void)state;
    mine = strdup("\"of malloc\"");
    for (int on_fiber = 0; on_fiber < 2; on_fiber++) {
        stage s = {on_fiber != 0};
        assert_int_equal(hf_sim_run(1, 2, play_results, &s, NULL), HF_OK);
    }
    assert_int_equal(hf_run(play_results, &(stage){false}), HF_OK); /* real threads of the pool */
    free(mine);
}

/* ---- What activities say -------------------------------------------------------------------------------------------------- */

static char said[4][300];

static hf_status say_too_much(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_IGNORE(hf_activity_heartbeat(hf_payload_of_bytes(big, SIZE_MAX)));
    (void)snprintf(said[0], sizeof said[0], "%s", hf_error_text());
    HF_IGNORE(hf_activity_heartbeat((hf_payload){NULL, 3, HF_ENCODING_JSON_TEXT, NULL}));
    (void)snprintf(said[1], sizeof said[1], "%s", hf_error_text());
    HF_IGNORE(hf_activity_fail("no", .details = hf_payload_of_bytes(big, SIZE_MAX)));
    (void)snprintf(said[2], sizeof said[2], "%s", hf_error_text());
    HF_IGNORE(hf_activity_fail("no", .retry_after = hf_nanoseconds(30)));
    (void)snprintf(said[3], sizeof said[3], "%s", hf_error_text());
    return HF_OK;
}

static hf_status ask_it(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("say_too_much", in, ret_out, .start_to_close = hf_seconds(5), .attempts_max = 1);
}

static hf_status play_saying(void *arg)
{
    (void)arg;
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "ask_it", ask_it));
    HF_TRY(hf_worker_add_activity(worker, "say_too_much", say_too_much));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(hf_start(service, "ask_it", hf_payload_none(), &execution, .task_queue = "q"));
        HF_TRY(hf_result(execution, NULL));
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(worker));
    return hf_close(service);
}

static void an_activity_is_told_of_what_it_cannot_say(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 2, play_saying, NULL, NULL), HF_OK);
    assert_string_equal(said[0],
                        "hf_activity_heartbeat: the payload has 18446744073709551615 bytes, at most 2097152 are taken");
    assert_string_equal(said[1], "hf_activity_heartbeat: the payload has a length of 3 bytes, but its data is NULL");
    assert_string_equal(said[2],
                        "hf_activity_fail: .details has 18446744073709551615 bytes, at most 2097152 are taken");
    assert_string_equal(said[3], "hf_activity_fail: .retry_after is 30 ns: give it a unit, hf_seconds(30)");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_client_is_told_of_what_it_cannot_mean),
        cmocka_unit_test(a_result_that_is_gone_is_refused_and_a_constant_is_not),
        cmocka_unit_test(an_activity_is_told_of_what_it_cannot_say),
    };
    memset(long_text, 'x', sizeof long_text - 1);
    memset(unpolled_queue, 'x', sizeof unpolled_queue - 1);
    memset(longest_queue, 'x', sizeof longest_queue - 1);
    return hf_test_main("refused", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
