/* Commands carry the number of their scope, the first one of a scope also its name and parent, so that the graph of a run can be
 * drawn from its history. A replay gives the same numbers. */
#include "unit/worker/play.h"

#include "worker/wf.h"

#include "service/call.h"

static hf_status run_echo(void *arg)
{
    (void)arg;
    HF_TRY(hf_activity_run("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(5)));
    return hf_activity_run("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(5));
}

/* Opens a scope that makes no command itself, and one inside it that does. */
static hf_status nested(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
    HF_TRY(hf_scope_open(&outer, .name = "outer"));
    HF_TRY(hf_scope_open(&inner, .name = "a \"name\" that is longer than an event should have"));
    HF_TRY(hf_fork(inner, run_echo, NULL));
    HF_TRY(hf_join(inner));
    return run_echo(NULL);
}

static hf_status graph(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(run_echo(NULL)); /* of the run's own scope: no metadata */
    {
        HF_AUTO(hf_scope_close) hf_scope *pieces = NULL;
        HF_TRY(hf_scope_open(&pieces, .name = "pieces", .timeout = hf_hours(1)));
        for (int i = 0; i < 10; i++) {
            HF_TRY(hf_fork_activity(pieces, "echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(5)));
        }
        HF_TRY(hf_fork(pieces, nested, NULL));
        HF_TRY(hf_join(pieces));
    }
    {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_hours(1), &shield)); /* not a scope of its own */
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *near = NULL; /* its first command is the marker of a local activity */
        HF_TRY(hf_scope_open(&near, .name = "near"));
        HF_TRY(hf_activity_run_local("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(5)));
        HF_TRY(run_echo(NULL));
    }
    return hf_payload_printf(ret_out, "1");
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", graph));
    return hf_worker_add_activity(worker, "echo", echo, .on_fiber = true);
}

/* Notes what the commands of the run carry, one letter for their kind before it; "-" for nothing. */
static hf_status note_graph(play *p)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_history history = {0};
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    size_t bytes = 0;
    size_t count = 0;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, p->service, &call);
    if (status == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        status = hf_pb_decode(&op, &hf_pb_history_type, response->history, &arena, &history);
    }
    for (size_t i = 0; status == HF_OK && i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        const hf_pb_user_metadata *metadata = event->user_metadata;
        char kind = event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED ? 'a'
                    : event->event_type == HF_EVENT_TYPE_TIMER_STARTED         ? 't'
                    : event->event_type == HF_EVENT_TYPE_MARKER_RECORDED       ? 'l'
                                                                               : 0;
        if (kind != 0) {
            hf_str text = metadata != NULL && metadata->details != NULL ? metadata->details->data : HF_STR("-");
            play_note(p, "%c%.*s ", kind, HF_STR_ARGS(text));
            bytes += metadata != NULL ? text.len : 0;
            count++;
        }
    }
    HF_CHECK_SAY(count > 0 && bytes / count <= 32, "%zu bytes for %zu commands", bytes, count);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status run_main(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_result(execution, NULL));
    return note_graph(p);
}

static void commands_carry_their_scope(void **state)
{
    (void)state;
    play_options options = {
        .add = add,
        .body = run_main,
        .result = "a- a- t{\"s\":1,\"n\":\"pieces\"} a{\"s\":1} a{\"s\":1} a{\"s\":1} a{\"s\":1} a{\"s\":1} a{\"s\":1} "
                  "a{\"s\":1} a{\"s\":1} a{\"s\":1} a{\"s\":1} "
                  "a{\"s\":2,\"n\":\"a \\\"name\\\" that is longer than an event "
                  "sh\",\"p\":{\"s\":3,\"n\":\"outer\",\"p\":1}} "
                  "a{\"s\":2} a{\"s\":2} a{\"s\":2} t- t- l{\"s\":4,\"n\":\"near\"} a{\"s\":4} "
                  "a{\"s\":4} "};
    play_on(options);
    options.worker.cached_max = HF_OFF; /* every step is a replay */
    play_on(options);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(commands_carry_their_scope),
    };
    return hf_test_main("graph", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
