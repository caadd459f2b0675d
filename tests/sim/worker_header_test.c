/* Headers: what a client sets reaches the workflow, its handlers, activities and children, by .header and by the hook; on
 * the real worker and engine, on virtual time. With a cache and without, so that everything is replayed, too. */
#include "support/support.h"

#include "base/base.h"
#include "env/sim/sim.h"

#include <stdio.h>
#include <string.h>

static const hf_entry START[] = {{"trace", {"\"start\"", 7, HF_ENCODING_JSON_TEXT, NULL}},
                                 {"bytes", {"\xFF\x00z", 3, HF_ENCODING_BYTES_TEXT, NULL}},
                                 {NULL, {NULL, 0, NULL, NULL}}};
static const hf_entry SIGNAL[] = {{"trace", {"\"signal\"", 8, HF_ENCODING_JSON_TEXT, NULL}},
                                  {NULL, {NULL, 0, NULL, NULL}}};
static const hf_entry UPDATE[] = {{"trace", {"\"update\"", 8, HF_ENCODING_JSON_TEXT, NULL}},
                                  {NULL, {NULL, 0, NULL, NULL}}};
static const hf_entry QUERY[] = {{"trace", {"\"query\"", 7, HF_ENCODING_JSON_TEXT, NULL}},
                                 {NULL, {NULL, 0, NULL, NULL}}};
static const hf_entry OWN[] = {{"trace", {"\"own\"", 5, HF_ENCODING_JSON_TEXT, NULL}}, {NULL, {NULL, 0, NULL, NULL}}};

static hf_service *asked;
static bool forwards; /* the hook is hf_header_forward */
static int hook_count;

/* The trace that came with the caller, or what there is instead of it. */
static void is_trace(const char *where, const char *expected)
{
    hf_payload value = hf_payload_none();
    hf_status status = hf_header_get("trace", &value);
    if (expected == NULL) {
        HF_CHECK_SAY(status == HF_ERR_NOT_FOUND, "%s: %s", where,
                     status == HF_OK ? (const char *)value.data : hf_error_text());
    } else {
        HF_CHECK_SAY(status == HF_OK && strcmp(value.data, expected) == 0, "%s: %s", where,
                     status == HF_OK ? (const char *)value.data : hf_error_text());
    }
    hf_payload_free(&value);
}

/* ---- Activities and children --------------------------------------------------------------------------------------- */

static hf_status told(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    is_trace("activity", strcmp(in.data, "\"none\"") == 0 ? NULL : in.data); /* its input says what to expect */
    return HF_OK;
}

/* An activity that is a client, too. */
static hf_status starter(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_execution_free) hf_execution *other = NULL;
    HF_TRY(hf_start(asked, "child", in, &other, .id = "other", .task_queue = "q"));
    return hf_result(other, ret_out);
}

static hf_status child(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    is_trace("child", strcmp(in.data, "\"none\"") == 0 ? NULL : in.data);
    return hf_activity_run("told", in, NULL, .start_to_close = hf_seconds(5), .attempts_max = 1,
                           .header = forwards || strcmp(in.data, "\"none\"") == 0 ? NULL : OWN);
}

/* ---- The workflow --------------------------------------------------------------------------------------------------- */

/* What an activity or child finds that was sent without a header of its own. */
static hf_payload expect(const char *json)
{
    return hf_payload_of_json(forwards ? json : "\"none\"");
}

static hf_status run_told(hf_payload in, const hf_entry *header)
{
    return hf_activity_run("told", in, NULL, .start_to_close = hf_seconds(5), .attempts_max = 1, .header = header);
}

static hf_status on_signal(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    is_trace("signal handler", "\"signal\"");
    HF_TRY(run_told(expect("\"signal\""), NULL));
    is_trace("signal handler, later", "\"signal\"");
    return HF_OK;
}

static hf_status on_update(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    is_trace("update handler", "\"update\"");
    HF_TRY(run_told(expect("\"update\""), NULL));
    is_trace("update handler, later", "\"update\"");
    return hf_payload_printf(ret_out, "1");
}

static hf_status on_query(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    is_trace("query", "\"query\"");
    return hf_payload_printf(ret_out, "1");
}

static hf_status in_fork(void *arg)
{
    (void)arg;
    is_trace("fork", "\"start\"");
    return HF_OK;
}

static hf_status flow(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_payload value = hf_payload_none();
    (void)in;
    (void)ret_out;
    HF_TRY(hf_on_signal("handled", on_signal));
    HF_TRY(hf_on_update("update", on_update));
    HF_TRY(hf_on_query("query", on_query));
    is_trace("workflow", "\"start\"");
    HF_TRY(hf_header_get("bytes", &value));
    HF_CHECK(value.len == 3 && memcmp(value.data, "\xFF\x00z", 3) == 0);
    HF_CHECK(hf_header_get("holdfast-signals", &value) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_header_of_signal("trace", &value) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, in_fork, NULL));
    HF_TRY(hf_join(scope));
    HF_TRY(run_told(hf_payload_of_json("\"own\""), OWN));
    HF_TRY(run_told(expect("\"start\""), NULL));
    HF_TRY(hf_child_run("child", hf_payload_of_json("\"own\""), NULL, .id = "kid", .header = OWN));
    HF_TRY(hf_child_run("child", expect("\"start\""), NULL, .id = "kid2"));
    {
        HF_AUTO(hf_scope_close) hf_scope *jobs = NULL;
        HF_TRY(hf_scope_open(&jobs));
        HF_TRY(hf_fork_activity(jobs, "told", hf_payload_of_json("\"own\""), NULL, .start_to_close = hf_seconds(5),
                                .attempts_max = 1, .header = OWN));
        HF_TRY(hf_fork_activity(jobs, "told", expect("\"start\""), NULL, .start_to_close = hf_seconds(5),
                                .attempts_max = 1));
        HF_TRY(hf_fork_child(jobs, "child", hf_payload_of_json("\"own\""), NULL, .id = "kid3", .header = OWN));
        HF_TRY(hf_fork_child(jobs, "child", expect("\"start\""), NULL, .id = "kid4"));
        HF_TRY(hf_join(jobs));
    }
    HF_TRY(hf_activity_run("starter", expect("\"start\""), NULL, .start_to_close = hf_seconds(50)));
    HF_TRY(hf_signal_wait("waited", NULL));
    HF_TRY(hf_header_of_signal("trace", &value));
    HF_CHECK(strcmp(value.data, "\"signal\"") == 0);
    is_trace("workflow, later", "\"start\"");
    HF_TRY(hf_handlers_wait());
    return hf_continue_as_new(hf_payload_none(), .type = "next", .header = forwards ? NULL : START);
}

/* The signal "kept" comes along, with its header. */
static hf_status next(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    hf_payload value = hf_payload_none();
    is_trace("next run", "\"start\"");
    HF_TRY(hf_signal_wait("kept", NULL));
    HF_TRY(hf_header_of_signal("trace", &value));
    HF_CHECK(strcmp(value.data, "\"signal\"") == 0);
    HF_TRY(hf_external_signal("listener", "note", hf_payload_none()));
    return hf_external_signal("listener", "own", hf_payload_none(), .header = OWN);
}

static hf_status listener(hf_payload in, hf_payload *ret_out)
{
    hf_payload value = hf_payload_none();
    (void)in;
    (void)ret_out;
    is_trace("listener", NULL);
    HF_TRY(hf_signal_wait("note", NULL));
    hf_status status = hf_header_of_signal("trace", &value);
    HF_CHECK(forwards ? status == HF_OK && strcmp(value.data, "\"start\"") == 0 : status == HF_ERR_NOT_FOUND);
    HF_TRY(hf_signal_wait("own", NULL));
    HF_TRY(hf_header_of_signal("trace", &value));
    HF_CHECK(strcmp(value.data, "\"own\"") == 0);
    return HF_OK;
}

/* ---- The client ------------------------------------------------------------------------------------------------------ */

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status converse(hf_service *service, hf_execution *execution, hf_execution *other)
{
    HF_TRY(hf_signal(execution, "handled", hf_payload_none(), .header = SIGNAL));
    HF_TRY(hf_signal(execution, "kept", hf_payload_none(), .header = SIGNAL));
    HF_TRY(hf_update(execution, "update", hf_payload_none(), NULL, .header = UPDATE));
    HF_TRY(hf_query(execution, "query", hf_payload_none(), NULL, .header = QUERY));
    HF_TRY(hf_start_and_signal(service, "flow", hf_payload_none(), "waited", hf_payload_none(), NULL, .id = "wf",
                               .task_queue = "q", .header = SIGNAL));
    HF_TRY(hf_result(execution, NULL));
    return hf_result(other, NULL);
}

static hf_status play(void *arg)
{
    const int *cached = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_execution_free) hf_execution *other = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service, .on_header = forwards ? hf_header_forward : NULL));
    asked = service;
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = *cached));
    HF_TRY(hf_worker_add_workflow(worker, "flow", flow));
    HF_TRY(hf_worker_add_workflow(worker, "next", next));
    HF_TRY(hf_worker_add_workflow(worker, "child", child));
    HF_TRY(hf_worker_add_workflow(worker, "listener", listener));
    HF_TRY(hf_worker_add_activity(worker, "told", told));
    HF_TRY(hf_worker_add_activity(worker, "starter", starter, .on_fiber = true));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "listener", hf_payload_none(), &other, .id = "listener", .task_queue = "q"));
    HF_TRY(hf_start(service, "flow", hf_payload_none(), &execution, .id = "wf", .task_queue = "q", .header = START));
    hf_status status = converse(service, execution, other);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void on_sim(hf_body body, void *arg)
{
    for (int i = 0; i < 3; i++) {
        hf_env *env = hf_sim_begin((uint64_t)i + 1);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + i);
        hf_status status = hf_run_with(body, arg, &options);
        HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
        hf_sim_end(env, NULL);
    }
}

static void a_header_reaches_what_it_was_sent_with_and_nothing_else(void **state)
{
    (void)state;
    forwards = false;
    for (int cached = HF_OFF; cached <= 0; cached++) {
        on_sim(play, &cached);
    }
}

static void with_the_hook_it_goes_along(void **state)
{
    (void)state;
    forwards = true;
    for (int cached = HF_OFF; cached <= 0; cached++) {
        on_sim(play, &cached);
    }
}

/* ---- A hook of one's own, and bounds --------------------------------------------------------------------------------- */

static hf_status stamp(void *arg, hf_header *header)
{
    hook_count++;
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK || hf_workflow_info() != NULL); /* a workflow must not wait in it */
    HF_TRY(hf_header_put(header, "trace", hf_payload_of_json(arg)));
    return hook_count == 5 ? hf_raise(HF_ERR_DENIED, "not this one") : HF_OK;
}

static hf_status short_flow(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    is_trace("workflow", in.data);
    HF_TRY(run_told(hf_payload_of_json("\"stamp\""), NULL));
    return run_told(hf_payload_of_json("\"own\""), OWN);
}

static hf_status play_hook(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    char text[] = "\"stamp\"";
    hook_count = 0;
    HF_TRY(hf_open("memory:", &service, .on_header = stamp, .on_header_arg = text));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "short", short_flow));
    HF_TRY(hf_worker_add_activity(worker, "told", told));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "short", hf_payload_of_json("\"stamp\""), &execution, .task_queue = "q"));
    HF_TRY(hf_result(execution, NULL));
    HF_CHECK_SAY(hook_count == 3, "%d calls", hook_count);
    HF_TRY(hf_start(service, "nobody", hf_payload_none(), NULL, .task_queue = "none"));
    HF_CHECK(hf_start(service, "nobody", hf_payload_none(), NULL, .task_queue = "none") == HF_ERR_DENIED);
    HF_CHECK_SAY(strstr(hf_error_text(), "not this one") != NULL, "%s", hf_error_text());
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static hf_status play_bounds(void *arg)
{
    (void)arg;
    static char big[70000];
    HF_AUTO(hf_close) hf_service *service = NULL;
    hf_entry many[66];
    char keys[66][16];
    HF_TRY(hf_open("memory:", &service));
    hf_payload value = hf_payload_of_json("1");
    for (int i = 0; i < 65; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
        many[i] = (hf_entry){keys[i], value};
    }
    many[65] = (hf_entry){NULL, hf_payload_none()};
    char long_key[1100];
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = '\0';
    const hf_entry twice[] = {{"a", value}, {"a", value}, {NULL, value}};
    const hf_entry ours[] = {{"holdfast-signals", value}, {NULL, value}};
    const hf_entry empty[] = {{"", value}, {NULL, value}};
    const hf_entry none[] = {{"a", hf_payload_none()}, {NULL, value}};
    const hf_entry longest[] = {{long_key, value}, {NULL, value}};
    const hf_entry fat[] = {{"a", hf_payload_of_bytes(big, sizeof big)}, {NULL, value}};
    const struct {
        const hf_entry *header;
        hf_status expect;
    } cases[] = {{twice, HF_ERR_INVALID},   {ours, HF_ERR_INVALID}, {empty, HF_ERR_INVALID}, {none, HF_ERR_INVALID},
                 {longest, HF_ERR_INVALID}, {fat, HF_ERR_TOO_BIG},  {many, HF_ERR_TOO_BIG},  {many + 1, HF_OK}};
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(service, "nobody", hf_payload_none(), &execution));
    for (size_t i = 0; i < HF_COUNT_OF(cases); i++) {
        const hf_entry *h = cases[i].header;
        HF_CHECK_SAY(hf_start(service, "nobody", hf_payload_none(), NULL, .header = h) == cases[i].expect, "%zu: %s", i,
                     hf_error_text());
        HF_CHECK(hf_signal(execution, "s", hf_payload_none(), .header = h) == cases[i].expect);
        hf_status status = hf_update(execution, "u", hf_payload_none(), NULL, .header = h, .timeout = HF_SPAN_OFF);
        HF_CHECK(status == (cases[i].expect == HF_OK ? HF_ERR_TIMEOUT : cases[i].expect));
        status = hf_query(execution, "q", hf_payload_none(), NULL, .header = h, .timeout = HF_SPAN_OFF);
        HF_CHECK(status == (cases[i].expect == HF_OK ? HF_ERR_TIMEOUT : cases[i].expect));
    }
    hf_payload out = hf_payload_none();
    HF_CHECK(hf_header_get("a", &out) == HF_ERR_MISUSE && hf_header_of_signal("a", &out) == HF_ERR_MISUSE);
    HF_CHECK(hf_header_put(NULL, "a", value) == HF_ERR_MISUSE);
    return HF_OK;
}

static void a_hook_of_ones_own_is_asked_about_everything(void **state)
{
    (void)state;
    on_sim(play_hook, NULL);
}

static void headers_are_bounded(void **state)
{
    (void)state;
    on_sim(play_bounds, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_header_reaches_what_it_was_sent_with_and_nothing_else),
        cmocka_unit_test(with_the_hook_it_goes_along),
        cmocka_unit_test(a_hook_of_ones_own_is_asked_about_everything),
        cmocka_unit_test(headers_are_bounded),
    };
    return hf_test_main("worker_header", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
