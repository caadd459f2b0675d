/* Time that is skipped: the clock of an engine for tests, as Temporal's TestService moves it.
 *
 * Such an engine has a wall clock of its own, which is ahead of the environment's by `skip.ahead`. While nobody holds a lock and nothing
 * runs, the clock jumps to the next deadline of a run that is open, or to the next sleeper: a month of waiting takes no time. The core
 * is not changed for this, since it gets the time with every input. Polls wait by the monotonic clock, which is not moved.
 *
 * Something runs if a workflow task or an activity waits for a worker or is with one, a message between runs is on its way, or the store
 * is busy. Deadlines of such a task pass in real time, and so a slow worker does not lose its tasks.
 *
 * At first time is locked, once. Clients unlock it while they wait for a result.
 *
 * A clock that stands still (`clock_at` of the options) moves only by jumps. So a test finds the same times whenever it runs, and no timeout
 * passes while code runs. An attempt that no process holds does not run then: hf_testenv counts it as waiting, so that its timeouts come.
 *
 * Two times of SleepUntil are not times: HF_SLEEP_UNTIL_SETTLED returns when nothing runs, and HF_SLEEP_UNTIL_IDLE when nothing runs, time is
 * not locked and nothing is due, ever: only a call can change something then.
 *
 * engine-J1  The clock never goes back, and never jumps over a deadline of an open run. */
#include "engine/loop_private.h"

#include "engine/machines/speculative.h"

/* Runs stay in memory, where skip.c looks at them: a test has few of them. */
#define MEM_MAX ((size_t)1 << 40)

void hf_skip_init(hf_engine *engine)
{
    hf_list_init(&engine->skip.sleepers);
    if (engine->options.skips_time) {
        engine->skip.locks = 1;
        engine->core_options.mem_max = MEM_MAX;
    }
}

/* ---- Calls ---------------------------------------------------------------------------------------------------------------- */

static void reply(hf_call *call, hf_clock now)
{
    const hf_method_info *info = hf_method_info_of(call->method);
    void *response = hf_arena_zero(call->arena, info->response_len, 16);
    if (response == NULL) {
        hf_call_set_failure(call, HF_ERR_NOMEM, "no memory for the answer");
    } else {
        call->status = HF_OK;
        call->response = response;
        if (call->method == HF_METHOD_GET_CURRENT_TIME) {
            ((hf_pb_get_current_time_response *)response)->time = hf_pb_timestamp_of((hf_time){now.wall});
        }
    }
    call->done(call);
}

static bool unlock(hf_engine *engine, hf_call *call)
{
    if (engine->skip.locks == 0) {
        hf_call_set_failure(call, HF_ERR_INVALID,
                            "time skipping is unlocked already: each unlock needs a lock before it");
        call->done(call);
        return false;
    }
    engine->skip.locks--;
    return true;
}

static void sleep_until(hf_engine *engine, hf_call *call, int64_t until)
{
    call->deadline.key = until;
    hf_list_push_back(&engine->skip.sleepers, &call->link); /* woken at the end of this step, if it is due */
}

static int64_t after(hf_clock now, hf_pb_duration span)
{
    int64_t until = 0;
    return __builtin_add_overflow(now.wall, hf_pb_duration_span(span).ns, &until) ? INT64_MAX : until;
}

void hf_skip_call(hf_engine *engine, hf_call *call, hf_clock now)
{
    hf_assert(engine->options.skips_time && hf_method_is_of_clock(call->method));
    const void *request = call->request;
    if (call->method == HF_METHOD_SLEEP) {
        sleep_until(engine, call, after(now, ((const hf_pb_sleep_request *)request)->duration));
    } else if (call->method == HF_METHOD_SLEEP_UNTIL) {
        hf_pb_timestamp at = ((const hf_pb_sleep_until_request *)request)->timestamp;
        sleep_until(engine, call, hf_pb_timestamp_time(at).ns);
    } else if (call->method == HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP) {
        if (unlock(engine, call)) {
            sleep_until(engine, call, after(now, ((const hf_pb_sleep_request *)request)->duration));
        }
    } else if (call->method == HF_METHOD_UNLOCK_TIME_SKIPPING) {
        if (unlock(engine, call)) {
            reply(call, now);
        }
    } else {
        engine->skip.locks += call->method == HF_METHOD_LOCK_TIME_SKIPPING;
        reply(call, now);
    }
}

static void wake(hf_engine *engine, hf_call *call)
{
    hf_list_remove(&call->link);
    engine->skip.locks += call->method == HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP;
}

bool hf_skip_cancel(hf_engine *engine, uint64_t number)
{
    HF_LIST_EACH(node, &engine->skip.sleepers)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (call->number == number) {
            wake(engine, call);
            hf_call_set_failure(call, HF_ERR_CANCELED, "the caller has canceled the call");
            call->done(call);
            return true;
        }
    }
    return false;
}

void hf_skip_end(hf_engine *engine)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&engine->skip.sleepers)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        wake(engine, call);
        hf_call_set_failure(call, HF_ERR_CLOSED, "the service is closed");
        call->done(call);
    }
}

/* ---- The clock ------------------------------------------------------------------------------------------------------------ */

int64_t hf_skip_next(const hf_engine *engine)
{
    int64_t next = INT64_MAX;
    HF_LIST_EACH(node, &engine->skip.sleepers)
    {
        const hf_call *call = HF_CONTAINER(node, hf_call, link);
        bool is_time = call->deadline.key != HF_SLEEP_UNTIL_SETTLED;
        next = is_time && call->deadline.key < next ? call->deadline.key : next;
    }
    return next;
}

/* Whether a worker has something to do, or something to do for one is on its way. */
static bool is_busy(const hf_engine *engine, const hf_run *run)
{
    if (HF_SLOT(run)->loading || hf_run_has_messages(run)) {
        return true;
    }
    if (!hf_run_is_open(run)) {
        return false;
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        bool is_left = engine->options.clock_at != 0 && activity->incarnation == 0; /* ADR 0021 */
        if (activity->state == HF_ACTIVITY_SCHEDULED || (activity->state == HF_ACTIVITY_STARTED && !is_left)) {
            return true;
        }
    }
    return hf_wft_state_now(run) != HF_WFT_NONE;
}

/* The next time at which something happens by itself. False: something runs. */
static bool find_next(const hf_engine *engine, int64_t *ret_next)
{
    const hf_core *core = engine->core;
    *ret_next = hf_skip_next(engine);
    if (engine->stopped != HF_OK || core->status != HF_OK || engine->requests_out > 0 || engine->held_since != 0 ||
        core->committing || !hf_list_is_empty(&core->inbox)) {
        return false;
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (is_busy(engine, run)) {
            return false;
        }
        int64_t due = hf_run_is_open(run) ? hf_run_next_due(run) : INT64_MAX; /* nobody waits until it is deleted */
        *ret_next = due < *ret_next ? due : *ret_next;
    }
    return true;
}

/* Whether the call has slept long enough. */
static bool is_over(const hf_engine *engine, const hf_call *call, hf_clock now, bool is_quiet, int64_t next)
{
    switch (call->deadline.key) {
    case HF_SLEEP_UNTIL_SETTLED:
        return is_quiet;
    case HF_SLEEP_UNTIL_IDLE:
        return is_quiet && engine->skip.locks == 0 && next == INT64_MAX;
    default:
        return call->deadline.key <= now.wall;
    }
}

void hf_skip_step(hf_engine *engine, hf_clock now)
{
    int64_t next = 0;
    if (!engine->options.skips_time) {
        return;
    }
    bool is_quiet = find_next(engine, &next);
    HF_LIST_EACH(node, &engine->skip.sleepers)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (is_over(engine, call, now, is_quiet, next)) {
            wake(engine, call);
            reply(call, now);
        }
    }
    if (engine->skip.locks == 0 && find_next(engine, &next) && next != INT64_MAX && next > now.wall) {
        engine->skip.ahead += next - now.wall; /* engine-J1 */
        hf_assert(engine->skip.ahead > 0);
    }
}
