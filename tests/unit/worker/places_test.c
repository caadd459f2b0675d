/* Every command keeps the file and line of the call that asked for it: if a replay differs, the report names both sides and
 * that line. Each program makes another command than its history has; the line is that of the new one. (A marker of
 * hf_patched is never made where the history has something else.) */
#include "unit/worker/play.h"

static bool is_changed;
static int line;

/* The call in the next line makes the command. */
#define HERE (line = is_changed ? __LINE__ + 1 : line)

typedef hf_status (*program)(void);

static hf_status body_of(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status by_sleep(void)
{
    HERE;
    return hf_sleep(hf_seconds(3));
}

static hf_status by_sleep_until(void)
{
    hf_time now = hf_wall_now(NULL);
    HERE;
    return hf_sleep_until((hf_time){now.ns + hf_seconds(3).ns});
}

static hf_status by_activity(void)
{
    HERE;
    return hf_activity_run("other", hf_payload_none(), NULL, .start_to_close = hf_seconds(5));
}

static hf_status by_fork_activity(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HERE;
    HF_TRY(hf_fork_activity(scope, "other", hf_payload_none(), NULL, .start_to_close = hf_seconds(5)));
    return hf_join(scope);
}

static hf_status by_child(void)
{
    HERE;
    return hf_child_run("other", hf_payload_none(), NULL);
}

static hf_status by_fork_child(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HERE;
    HF_TRY(hf_fork_child(scope, "other", hf_payload_none(), NULL));
    return hf_join(scope);
}

static hf_status by_scope(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HERE;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(3)));
    return hf_signal_wait("never", NULL);
}

static hf_status by_fork_delay(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HERE;
    HF_TRY(hf_fork(scope, body_of, NULL, .delay = hf_seconds(3)));
    return hf_join(scope);
}

static hf_status by_shield(void)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HERE;
    HF_TRY(hf_shield_open(hf_seconds(3), &shield));
    return hf_signal_wait("never", NULL);
}

static hf_status by_channel(void)
{
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    char value = 0;
    HF_TRY(hf_chan_new(1, &chan));
    HERE;
    return hf_chan_recv(chan, &value, .timeout = hf_seconds(3));
}

static hf_status by_until(void)
{
    HERE;
    return hf_wait_until(false, .timeout = hf_seconds(3));
}

static hf_status by_signal(void)
{
    HERE;
    return hf_external_signal("other", "go", hf_payload_none());
}

static hf_status by_cancel(void)
{
    HERE;
    return hf_external_cancel("other", NULL);
}

static hf_status by_continue(void)
{
    HERE;
    return hf_continue_as_new(hf_payload_none());
}

static hf_status by_memo(void)
{
    HERE;
    return hf_memo_set(hf_field_int("cents", 7));
}

static hf_status by_search(void)
{
    HERE;
    return hf_search_set(hf_field_int("CustomIntField", 7));
}

/* A local activity is no command before it has ended: the report names what the code waits for. */
static hf_status by_local(void)
{
    HERE;
    return hf_activity_run_local("other", hf_payload_none(), NULL, .start_to_close = hf_seconds(5));
}

static hf_status nothing(void *arg, hf_payload *ret_out)
{
    (void)arg;
    (void)ret_out;
    return HF_OK;
}

static hf_status by_effect(void)
{
    HERE;
    return hf_side_effect(nothing, NULL, NULL);
}

static const struct {
    const char *made; /* the command */
    program body;
} PROGRAMS[] = {
    {"StartTimer id=1 span=3000ms", by_sleep},
    {"StartTimer id=1 span=3000ms", by_sleep_until},
    {"ScheduleActivityTask id=1 type=other", by_activity},
    {"ScheduleActivityTask id=1 type=other", by_fork_activity},
    {"StartChildWorkflowExecution id=", by_child},
    {"StartChildWorkflowExecution id=", by_fork_child},
    {"StartTimer id=1 span=3000ms", by_scope},
    {"StartTimer id=1 span=3000ms", by_fork_delay},
    {"StartTimer id=1 span=3000ms", by_shield},
    {"StartTimer id=1 span=3000ms", by_channel},
    {"StartTimer id=1 span=3000ms", by_until},
    {"SignalExternalWorkflowExecution id=other type=go", by_signal},
    {"RequestCancelExternalWorkflowExecution id=other", by_cancel},
    {"ContinueAsNewWorkflowExecution", by_continue},
    {"ModifyWorkflowProperties", by_memo},
    {"UpsertWorkflowSearchAttributes", by_search},
    {"local activity id=1 type=other", by_local},
    {"local activity id=1 type=hf_side_effect", by_effect},
};

static size_t current;

static hf_status changes(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    if (is_changed) {
        return PROGRAMS[current].body();
    }
    HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
    return hf_signal_wait("go", NULL);
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", changes));
    return hf_worker_add_activity(worker, "echo", echo, .on_fiber = true);
}

static hf_status change_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    char at[100];
    is_changed = false;
    line = 0;
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    is_changed = true;
    HF_TRY(hf_signal(execution, "other", hf_payload_none()));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    is_changed = false;
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(hf_result(execution, NULL));
    (void)snprintf(at, sizeof at, " at places_test.c:%d; its code was changed", line);
    const char *report = strstr(tap_log(p->tap), "the history has ActivityTaskScheduled id=1 type=echo (event 5)");
    HF_CHECK_SAY(report != NULL && strstr(report, PROGRAMS[current].made) != NULL && strstr(report, at) != NULL,
                 "'%s' and '%s' are not in\n%s", PROGRAMS[current].made, at, tap_log(p->tap));
    return HF_OK;
}

static void every_command_is_reported_with_its_line(void **state)
{
    (void)state;
    for (current = 0; current < sizeof PROGRAMS / sizeof *PROGRAMS; current++) {
        print_message("%s\n", PROGRAMS[current].made);
        (void)play_once((play_options){.add = add, .body = change_it, .worker = {.cached_max = HF_OFF}}, 1, 1);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_command_is_reported_with_its_line),
    };
    return hf_test_main("places", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
