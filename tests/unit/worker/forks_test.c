/* Activities and children without a fiber: every join counts them, cancels and deadlines reach them, their results are
 * there when the join returns, and a replay makes the same of them. Each program is played with everything cached, with
 * nothing cached, with answers refused and with late tasks. */
#include "unit/worker/play.h"

#include "env/sim/sim.h"
#include "worker/wf.h"

#include <stdlib.h>

static void play_all_ways(play_options options)
{
    play_on(options);
    options.worker.cached_max = HF_OFF;
    play_on(options);
    options.worker.cached_max = 0;
    options.tap.refuse_every = 2;
    play_on(options);
    options.tap.refuse_every = 0;
    options.tap.late_tasks = true;
    play_on(options);
}

static hf_allocator real_memory; /* of the worker */

/* ---- What is forked ------------------------------------------------------------------------------------------------ */

/* Returns its input after as many seconds, canceled or not. */
static hf_status slow(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(strtol(in.data, NULL, 10))));
    return hf_payload_copy(in, ret_out);
}

/* The same, but ends when it is canceled. */
static hf_status polite(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(strtol(in.data, NULL, 10))));
    return hf_payload_copy(in, ret_out);
}

/* Fails after as many seconds. */
static hf_status broken(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(strtol(in.data, NULL, 10))));
    return hf_activity_fail("out of order", .type = "Broken", .is_final = true);
}

/* A child: as `polite`, and "-3" fails after three seconds. */
static hf_status child(hf_payload in, hf_payload *ret_out)
{
    long seconds = strtol(in.data, NULL, 10);
    HF_TRY(hf_sleep(hf_seconds(labs(seconds))));
    return seconds < 0 ? hf_raise_typed(HF_ERR_FAILED, "Sad", "the child is sad") : hf_payload_copy(in, ret_out);
}

typedef struct racer {
    const char *what; /* name of the activity; "child": a child workflow */
    const char *in;
    hf_on_cancel on_cancel;
} racer;

enum { RACERS_MAX = 6 };

static const racer *racers; /* up to one without a name */
static hf_join_policy join;
static hf_span patience;
static hf_span second_thoughts; /* the scope is canceled after this; 0 = it is not */

static hf_status fork_racer(hf_scope *scope, const racer *r, hf_payload *ret_out, hf_branch **ret_branch)
{
    if (strcmp(r->what, "child") == 0) {
        return hf_fork_child(scope, "child", hf_payload_of_json(r->in), ret_out, .on_cancel = r->on_cancel,
                             .ret_branch = ret_branch);
    }
    return hf_fork_activity(scope, r->what, hf_payload_of_json(r->in), ret_out, .start_to_close = hf_minutes(2),
                            .on_cancel = r->on_cancel, .ret_branch = ret_branch);
}

/* What every racer came to, in a word: its result, or its status. */
static void note_racer(char *text, size_t capacity, const hf_branch *branch, const hf_payload *out)
{
    size_t len = strlen(text);
    hf_status status = hf_branch_status(branch);
    const hf_failure *failure = hf_branch_failure(branch);
    const char *word = status == HF_OK ? (out->len > 0 ? (const char *)out->data : "nothing") : hf_status_name(status);
    (void)snprintf(text + len, capacity - len, "%s%s%s", word, failure != NULL && failure->cause != NULL ? ":" : "",
                   failure != NULL && failure->cause != NULL ? failure->cause->type : "");
    len = strlen(text);
    (void)snprintf(text + len, capacity - len, " ");
}

static hf_status race(hf_payload in, hf_payload *ret_out)
{
    hf_payload outs[RACERS_MAX] = {{0}};
    hf_branch *branches[RACERS_MAX] = {NULL};
    char text[400] = "";
    int64_t from = hf_wall_now(NULL).ns;
    int count = 0;
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "race", .join = join, .timeout = patience));
        for (; racers[count].what != NULL; count++) {
            HF_TRY(fork_racer(scope, &racers[count], &outs[count], &branches[count]));
            HF_CHECK(hf_branch_status(branches[count]) == HF_ERR_AGAIN);
        }
        if (second_thoughts.ns > 0) {
            HF_TRY(hf_sleep(second_thoughts));
            HF_TRY(hf_scope_cancel(scope, .reason = "second thoughts"));
        }
        hf_status status = hf_join(scope);
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        for (int i = 0; i < count; i++) {
            note_racer(text, sizeof text, branches[i], &outs[i]);
        }
        hf_tally tally = hf_scope_tally(scope);
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s %d+%d+%d after %d", hf_status_name(status), (int)tally.ok,
                       (int)tally.failed, (int)tally.canceled, (int)((hf_wall_now(NULL).ns - from) / hf_seconds(1).ns));
    }
    HF_TRY(hf_sleep(hf_minutes(1))); /* one more step, in which those that were left have ended */
    return hf_payload_printf(ret_out, "%s", text);
}

static hf_status add_race(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", race));
    HF_TRY(hf_worker_add_workflow(worker, "child", child));
    HF_TRY(hf_worker_add_activity(worker, "slow", slow, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "polite", polite, .on_fiber = true));
    return hf_worker_add_activity(worker, "broken", broken, .on_fiber = true);
}

static hf_status run_main(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &execution, .id = "w", .task_queue = "orders"));
    hf_status status = hf_result(execution, &out);
    play_note(p, "%s", status == HF_OK ? (const char *)out.data : hf_error_text());
    return HF_OK;
}

/* ---- Joins --------------------------------------------------------------------------------------------------------- */

static const racer THREE[] = {{"slow", "1", 0}, {"child", "2", 0}, {"slow", "3", 0}, {NULL, NULL, 0}};
static const racer ONE_FAILS[] = {
    {"broken", "1", 0}, {"slow", "4", 0}, {"polite", "90", 0}, {"child", "90", 0}, {NULL, NULL, 0}};
static const racer CHILD_FAILS[] = {{"child", "-2", 0}, {"slow", "3", 0}, {NULL, NULL, 0}};

typedef struct meeting {
    const char *name;
    hf_join_policy join;
    const racer *racers;
    const char *result;
} meeting;

/* With HF_CANCEL_WAIT: those that listen end canceled, "slow" completes, and its result is there. */
static void every_join_counts_them(void **state)
{
    (void)state;
    const meeting MEETINGS[] = {
        {"all", HF_JOIN_ALL, THREE, "1 2 3 HF_OK 3+0+0 after 3"},
        {"all", HF_JOIN_ALL, ONE_FAILS,
         "HF_ERR_FAILED:Broken 4 HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_FAILED 1+1+2 after 4"},
        {"all", HF_JOIN_ALL, CHILD_FAILS, "HF_ERR_FAILED:Sad 3 HF_ERR_FAILED 1+1+0 after 3"},
        {"any", HF_JOIN_ANY, THREE, "1 HF_ERR_CANCELED 3 HF_OK 2+0+1 after 3"},
        {"any", HF_JOIN_ANY, ONE_FAILS, "HF_ERR_FAILED:Broken 4 HF_ERR_CANCELED HF_ERR_CANCELED HF_OK 1+1+2 after 4"},
        {"quorum", HF_JOIN_QUORUM(2), THREE, "1 2 3 HF_OK 3+0+0 after 3"},
        {"quorum", HF_JOIN_QUORUM(4), ONE_FAILS,
         "HF_ERR_FAILED:Broken 4 HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_FAILED 1+1+2 after 4"},
        {"tolerate", HF_JOIN_TOLERATE(1), ONE_FAILS, "HF_ERR_FAILED:Broken 4 90 90 HF_OK 3+1+0 after 90"},
        {"tolerate", HF_JOIN_TOLERATE(0), CHILD_FAILS, "HF_ERR_FAILED:Sad 3 HF_ERR_FAILED 1+1+0 after 3"},
        {"collect", HF_JOIN_COLLECT, ONE_FAILS, "HF_ERR_FAILED:Broken 4 90 90 HF_ERR_FAILED 3+1+0 after 90"},
        {"discard", HF_JOIN_DISCARD, ONE_FAILS, "HF_ERR_FAILED:Broken 4 90 90 HF_OK 3+1+0 after 90"},
    };
    patience = second_thoughts = hf_nanoseconds(0);
    for (size_t i = 0; i < HF_COUNT_OF(MEETINGS); i++) {
        print_message("%s\n", MEETINGS[i].name);
        join = MEETINGS[i].join;
        racers = MEETINGS[i].racers;
        play_all_ways((play_options){.add = add_race, .body = run_main, .result = MEETINGS[i].result});
    }
}

/* The commands are part of the contract: made by the call that forks, in its order; asked to end in the order in which a
 * cancel meets them. */
static void their_commands_are_these(void **state)
{
    (void)state;
    static const racer RACERS[] = {{"broken", "1", 0}, {"slow", "4", 0}, {"polite", "90", 0}, {NULL, NULL, 0}};
    join = HF_JOIN_ALL;
    racers = RACERS;
    patience = second_thoughts = hf_nanoseconds(0);
    play_on((play_options){
        .add = add_race,
        .body = run_main,
        .result = "HF_ERR_FAILED:Broken 4 HF_ERR_CANCELED HF_ERR_FAILED 1+1+1 after 4",
        .log = "w: ScheduleActivityTask 1 broken; ScheduleActivityTask 2 slow; ScheduleActivityTask 3 polite;\n"
               "w: RequestCancelActivityTask; RequestCancelActivityTask;\n"
               "w: StartTimer 1 60s;\n"
               "w: CompleteWorkflowExecution;\n"});
}

/* ---- Cancels ------------------------------------------------------------------------------------------------------- */

static const racer KINDS[] = {{"slow", "9", HF_CANCEL_WAIT},   {"polite", "90", HF_CANCEL_WAIT},
                              {"slow", "9", HF_CANCEL_TRY},    {"slow", "9", HF_CANCEL_ABANDON},
                              {"child", "90", HF_CANCEL_WAIT}, {NULL, NULL, 0}};
static const racer LEFT[] = {{"child", "9", HF_CANCEL_TRY}, {"child", "9", HF_CANCEL_ABANDON}, {NULL, NULL, 0}};

static void a_cancel_goes_by_on_cancel(void **state)
{
    (void)state;
    join = HF_JOIN_ALL;
    patience = hf_nanoseconds(0);
    second_thoughts = hf_seconds(2);
    racers = KINDS;
    play_all_ways((play_options){
        .add = add_race,
        .body = run_main,
        .result = "9 HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED 1+0+4 after 9"});
    racers = LEFT;
    play_all_ways((play_options){
        .add = add_race, .body = run_main, .result = "HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED 0+0+2 after 2"});
}

static void a_deadline_reaches_them(void **state)
{
    (void)state;
    join = HF_JOIN_ALL;
    patience = hf_seconds(2);
    second_thoughts = hf_nanoseconds(0);
    racers = KINDS;
    play_all_ways((play_options){
        .add = add_race,
        .body = run_main,
        .result = "9 HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_TIMEOUT 1+0+4 after 9"});
    join = HF_JOIN_PARTIAL;
    play_all_ways((play_options){
        .add = add_race,
        .body = run_main,
        .result = "9 HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_ERR_CANCELED HF_OK 1+0+4 after 9"});
}

/* Forked and given up in one step, or forked into a scope that is canceled: the history never hears of them. */
static hf_status given_up(hf_payload in, hf_payload *ret_out)
{
    hf_branch *first = NULL;
    hf_branch *late = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(fork_racer(scope, &(racer){"slow", "9", 0}, NULL, &first));
    HF_TRY(fork_racer(scope, &(racer){"child", "9", 0}, NULL, NULL));
    HF_TRY(hf_scope_cancel(scope));
    HF_TRY(fork_racer(scope, &(racer){"slow", "9", 0}, NULL, &late));
    HF_TRY(fork_racer(scope, &(racer){"child", "9", 0}, NULL, NULL));
    HF_CHECK(hf_branch_status(late) == HF_ERR_CANCELED);
    hf_status status = hf_join(scope);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_CHECK(status == HF_ERR_CANCELED && hf_branch_status(first) == HF_ERR_CANCELED);
    HF_AUTO(hf_scope_close) hf_scope *next = NULL; /* the join has cleared the cancel */
    HF_TRY(hf_scope_open(&next));
    HF_TRY(fork_racer(next, &(racer){"slow", "1", 0}, ret_out, NULL));
    return hf_join(next);
}

static hf_status add_main_as(hf_worker *worker, hf_function main)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", main));
    HF_TRY(hf_worker_add_workflow(worker, "child", child));
    HF_TRY(hf_worker_add_activity(worker, "polite", polite, .on_fiber = true));
    return hf_worker_add_activity(worker, "slow", slow, .on_fiber = true);
}

static hf_status add_given(hf_worker *worker)
{
    return add_main_as(worker, given_up);
}

static void one_that_is_given_up_in_its_step_is_never_sent(void **state)
{
    (void)state;
    play_all_ways((play_options){.add = add_given, .body = run_main, .result = "1"});
    play_on((play_options){.add = add_given,
                           .body = run_main,
                           .result = "1",
                           .log = "w: ScheduleActivityTask 2 slow;\nw: CompleteWorkflowExecution;\n"});
}

/* One branch alone is canceled; the others go on. */
static hf_status one_of_two(hf_payload in, hf_payload *ret_out)
{
    hf_branch *first = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_TOLERATE(1)));
    HF_TRY(fork_racer(scope, &(racer){"polite", "90", 0}, NULL, &first));
    HF_TRY(fork_racer(scope, &(racer){"polite", "5", 0}, ret_out, NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_branch_cancel(first));
    HF_TRY(hf_branch_cancel(first));
    hf_status status = hf_join(scope);
    if (status != HF_ERR_EVICTED) {
        HF_CHECK_SAY(status == HF_ERR_CANCELED, "%s", hf_status_name(status));
        HF_CHECK(hf_scope_tally(scope).ok == 1 && hf_scope_tally(scope).canceled == 1);
        status = HF_OK;
    }
    return status;
}

static hf_status add_one_of_two(hf_worker *worker)
{
    return add_main_as(worker, one_of_two);
}

static void one_branch_can_be_canceled(void **state)
{
    (void)state;
    play_all_ways((play_options){.add = add_one_of_two, .body = run_main, .result = "5"});
}

/* The run is canceled from outside while its scope is joined. */
static hf_status wait_long(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(fork_racer(scope, &(racer){"polite", "90", 0}, ret_out, NULL));
    HF_TRY(fork_racer(scope, &(racer){"child", "90", 0}, ret_out, NULL));
    return hf_join(scope);
}

static hf_status add_wait_long(hf_worker *worker)
{
    return add_main_as(worker, wait_long);
}

static hf_status cancel_main(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_cancel(execution));
    hf_status status = hf_result(execution, NULL);
    play_note(p, "%s %s", hf_status_name(status), hf_error()->type);
    return HF_OK;
}

static void a_cancel_of_the_run_reaches_them(void **state)
{
    (void)state;
    play_all_ways(
        (play_options){.add = add_wait_long, .body = cancel_main, .result = "HF_ERR_FAILED WorkflowCanceled"});
}

/* ---- Many, and their memory ---------------------------------------------------------------------------------------- */

static int how_many;
static _Atomic(size_t) in_use, in_use_then;

static void *counted_allocate(void *state, size_t len, size_t align)
{
    void *ptr = real_memory.allocate(state, len, align);
    in_use += ptr != NULL ? len : 0;
    return ptr;
}

static void counted_release(void *state, void *ptr, size_t len)
{
    in_use -= ptr != NULL ? len : 0;
    real_memory.release(state, ptr, len);
}

static hf_status measured(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_seconds(1))); /* the step that forked has ended */
    if (in_use_then == 0) {
        in_use_then = in_use;
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status many(hf_payload in, hf_payload *ret_out)
{
    static hf_payload outs[2000]; /* one run at a time */
    int right = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < how_many; i++) {
        HF_TRY(hf_fork_activity(scope, "measured", hf_payload_of_json("7"), &outs[i], .start_to_close = hf_hours(1)));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < how_many; i++) {
        right += outs[i].len == 1 && *(const char *)outs[i].data == '7';
        hf_payload_free(&outs[i]);
    }
    return hf_payload_printf(ret_out, "%d", right);
}

static hf_status add_many(hf_worker *worker)
{
    real_memory = worker->memory;
    in_use = in_use_then = 0;
    worker->memory.allocate = counted_allocate;
    worker->memory.release = counted_release;
    worker->arenas.memory = worker->memory;
    HF_TRY(hf_worker_add_workflow(worker, "main", many));
    return hf_worker_add_activity(worker, "measured", measured, .on_fiber = true);
}

static size_t memory_of(int count, const char *result)
{
    how_many = count;
    (void)play_once(
        (play_options){.add = add_many, .body = run_main, .worker = {.activities_max = 1}, .result = result}, 1, 1);
    HF_CHECK(in_use_then > 0);
    return in_use_then;
}

static void a_thousand_take_512_bytes_each(void **state)
{
    (void)state;
    size_t few = memory_of(1, "1");
    size_t more = memory_of(1000, "1000");
    size_t each = (more - few) / 999 + sizeof(hf_branch);
    print_message("%zu bytes each, of which the branch has %zu\n", each, sizeof(hf_branch));
    HF_CHECK(more > few);
    HF_CHECK_SAY(each <= 512, "%zu bytes", each);
}

/* ---- Out of memory ------------------------------------------------------------------------------------------------- */

static uint64_t failing; /* this allocation of the worker, or of the runtime, while the workflow forks */
static uint64_t allocations;
static bool is_poor, has_failed;

static void *poor_allocate(void *state, size_t len, size_t align)
{
    if (is_poor && ++allocations == failing) {
        has_failed = true;
        return NULL;
    }
    return real_memory.allocate(state, len, align);
}

static hf_status poor(hf_payload in, hf_payload *ret_out)
{
    hf_env *env = hf_runtime_current()->env;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    is_poor = !has_failed; /* not for workflows: the task fails, and its next attempt finds memory */
    if (is_poor) {
        hf_sim_fail_allocation(env, failing, false);
    }
    hf_status status = fork_racer(scope, &(racer){"slow", "1", 0}, ret_out, NULL);
    status = status == HF_OK ? fork_racer(scope, &(racer){"child", "1", 0}, NULL, NULL) : status;
    if (is_poor) {
        hf_sim_fail_allocation(env, 0, false);
        is_poor = false;
        has_failed |= status == HF_ERR_NOMEM;
        HF_CHECK_SAY((status == HF_ERR_NOMEM) == has_failed, "%s", hf_status_name(status));
    }
    HF_TRY(status);
    return hf_join(scope);
}

static hf_status add_poor(hf_worker *worker)
{
    real_memory = worker->memory;
    worker->memory.allocate = poor_allocate;
    worker->arenas.memory.allocate = poor_allocate;
    return add_main_as(worker, poor);
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    failing = 0;
    do {
        failing++;
        has_failed = is_poor = false;
        allocations = 0;
        (void)play_once((play_options){.add = add_poor, .body = run_main, .result = "1"}, 1, 1);
        assert_true(failing < 100);
    } while (has_failed);
    print_message("%d allocations\n", (int)failing - 1);
    assert_true(failing > 3);
}

/* ---- Where they are refused ---------------------------------------------------------------------------------------- */

static hf_status ask_nothing(void *arg, hf_payload in, hf_payload *ret_out)
{
    hf_scope *scope = *(hf_scope **)arg;
    (void)in;
    hf_status activity = fork_racer(scope, &(racer){"slow", "1", 0}, NULL, NULL);
    hf_status other = fork_racer(scope, &(racer){"child", "1", 0}, NULL, NULL);
    return hf_payload_printf(ret_out, "%s %s", hf_status_name(activity), hf_status_name(other));
}

static hf_status refused(hf_payload in, hf_payload *ret_out)
{
    hf_scope **kept = hf_workflow_alloc(sizeof *kept);
    char text[300] = "";
    (void)in;
    (void)ret_out;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_scope_open(&scope, .branches_max = 1));
        *kept = scope;
        HF_TRY(hf_on_query("ask", ask_nothing, .arg = kept));
        hf_status none = fork_racer(NULL, &(racer){"slow", "1", 0}, NULL, NULL);
        hf_status bad = fork_racer(scope, &(racer){"", "1", 0}, NULL, NULL);
        hf_status unbound = hf_fork_activity(scope, "slow", hf_payload_none(), NULL);
        HF_TRY(fork_racer(scope, &(racer){"slow", "1", 0}, NULL, NULL));
        hf_status full = fork_racer(scope, &(racer){"slow", "1", 0}, NULL, NULL);
        hf_status also = fork_racer(scope, &(racer){"child", "1", 0}, NULL, NULL);
        HF_TRY(hf_shield_open(hf_seconds(9), &shield));
        hf_status shielded = fork_racer((hf_scope *)(void *)shield, &(racer){"slow", "1", 0}, NULL, NULL);
        (void)snprintf(text, sizeof text, "%s %s %s %s %s %s", hf_status_name(none), hf_status_name(bad),
                       hf_status_name(unbound), hf_status_name(full), hf_status_name(also), hf_status_name(shielded));
        HF_TRY(hf_signal_wait("go", NULL));
    }
    return hf_payload_printf(ret_out, "%s", text);
}

static hf_status add_refused(hf_worker *worker)
{
    return add_main_as(worker, refused);
}

static hf_status query_main(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload result = hf_payload_none();
    HF_CHECK(fork_racer(NULL, &(racer){"slow", "1", 0}, NULL, NULL) == HF_ERR_MISUSE);
    HF_CHECK(fork_racer(NULL, &(racer){"child", "1", 0}, NULL, NULL) == HF_ERR_MISUSE);
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("1"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_query(execution, "ask", hf_payload_none(), &out));
    play_note(p, "%s|", (const char *)out.data);
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    HF_TRY(hf_result(execution, &result));
    play_note(p, "%s", (const char *)result.data);
    return HF_OK;
}

static void they_are_refused_where_they_make_no_sense(void **state)
{
    (void)state;
    play_on((play_options){.add = add_refused,
                           .body = query_main,
                           .result = "HF_ERR_MISUSE HF_ERR_MISUSE|HF_ERR_MISUSE HF_ERR_INVALID HF_ERR_INVALID "
                                     "HF_ERR_LIMIT HF_ERR_LIMIT HF_ERR_MISUSE"});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_join_counts_them),
        cmocka_unit_test(their_commands_are_these),
        cmocka_unit_test(a_cancel_goes_by_on_cancel),
        cmocka_unit_test(a_deadline_reaches_them),
        cmocka_unit_test(one_that_is_given_up_in_its_step_is_never_sent),
        cmocka_unit_test(one_branch_can_be_canceled),
        cmocka_unit_test(a_cancel_of_the_run_reaches_them),
        cmocka_unit_test(a_thousand_take_512_bytes_each),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(they_are_refused_where_they_make_no_sense),
    };
    return hf_test_main("forks", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
