/* Operators: they pause activities, let them go on, reset them, give them other options and complete them, by id, by type and all of a run,
 * while attempts run, wait for a worker and wait for their time. Each operation is repeated until somebody answers. What must be true then
 * is in paused.c. */
#include "sim/engine/operator.h"
#include "sim/engine/workers.h"

#include <string.h>

static void wake(sim_world *world, sim_actor *actor);

static sim_operator *operator_of(sim_actor *actor)
{
    return HF_CONTAINER(actor, sim_operator, actor);
}

static void rest(sim_world *world, sim_operator *operator)
{
    operator->is_waiting = false;
    sim_wake_in(world, &operator->actor, 5 * SIM_MS + sim_upto(world, 2 * world->knobs.think_ns_max));
}

/* ---- Which activity ---------------------------------------------------------------------------------------------------- */

typedef struct target {
    size_t run; /* index of its log */
    int64_t number;
    hf_activity_state state;
} target;

static bool find_log(const sim_world *world, hf_str run_id, size_t *ret_run)
{
    for (size_t i = world->runs.count; i-- > 0;) {
        if (hf_str_equal(hf_str_of(world->runs.items[i].run_id), run_id)) {
            *ret_run = i;
            return true;
        }
    }
    return false;
}

/* One of those in memory, in this state if there is one. */
static bool choose(sim_world *world, hf_activity_state wanted, target *ret_target)
{
    uint64_t found[2] = {0}; /* in another state, in this one */
    target chosen[2] = {{0}};
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        size_t log = 0;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || !hf_run_is_open(run) || run->activities.count == 0 ||
            !find_log(world, hf_owned_str(&run->run_id), &log)) {
            continue;
        }
        for (size_t i = 0; i < run->activities.count; i++) {
            const hf_activity *activity = run->activities.items[i];
            int is_it = activity->state == wanted;
            if (hf_activity_is_pending(activity) && hf_rng_below(&world->rng, ++found[is_it]) == 0) {
                chosen[is_it] = (target){log, sim_item_number(activity->activity_id), activity->state};
            }
        }
    }
    if (found[0] + found[1] == 0) {
        return false;
    }
    *ret_target = chosen[found[1] > 0];
    return true;
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

static hf_pb_workflow_execution *execution_of(sim_call *call, const sim_control *control)
{
    const sim_run_log *log = &call->world->runs.items[control->run];
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    execution->workflow_id = sim_copy(call, log->workflow_id);
    execution->run_id = sim_copy(call, control->is_current ? "" : log->run_id);
    return execution;
}

static hf_str name_of(sim_call *call, const sim_control *control)
{
    if (control->number == 0) {
        return sim_activity_type(control->type);
    }
    const char text[] = {'a', (char)('0' + (control->number - 1) / SIM_ITEMS_MAX), '-',
                         (char)('0' + (control->number - 1) % SIM_ITEMS_MAX)};
    return hf_arena_copy(&call->arena, hf_str_of_len(text, sizeof text));
}

/* Sets the activities that a request is for. */
#define NAME_ACTIVITIES(request, NAME, ALL, all_field)       \
    do {                                                     \
        if (control->number == 0 && control->type == 0) {    \
            (request)->activity_case = NAME##_REQUEST_##ALL; \
            (request)->all_field = true;                     \
        } else if (control->number == 0) {                   \
            (request)->activity_case = NAME##_REQUEST_TYPE;  \
            (request)->type = name_of(call, control);        \
        } else {                                             \
            (request)->activity_case = NAME##_REQUEST_ID;    \
            (request)->id = name_of(call, control);          \
        }                                                    \
    } while (0)

static void fill_pause(sim_call *call, const sim_control *control)
{
    hf_pb_pause_activity_request *request = HF_ARENA_NEW(&call->arena, hf_pb_pause_activity_request);
    char id[SIM_NAME_LEN];
    (void)snprintf(id, sizeof id, "p%llu", (unsigned long long)call->log);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = execution_of(call, control);
    request->identity = HF_STR("operator");
    request->request_id = sim_copy(call, id);
    request->activity_case = control->number != 0 ? HF_PB_PAUSE_ACTIVITY_REQUEST_ID : HF_PB_PAUSE_ACTIVITY_REQUEST_TYPE;
    request->id = name_of(call, control); /* or the type: they are one field */
    call->call.request = request;
}

static void fill_unpause(sim_call *call, const sim_control *control)
{
    hf_pb_unpause_activity_request *request = HF_ARENA_NEW(&call->arena, hf_pb_unpause_activity_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = execution_of(call, control);
    request->reset_attempts = control->resets;
    request->reset_heartbeat = control->forgets;
    NAME_ACTIVITIES(request, HF_PB_UNPAUSE_ACTIVITY, UNPAUSE_ALL, unpause_all);
    call->call.request = request;
}

static void fill_reset(sim_call *call, const sim_control *control)
{
    hf_pb_reset_activity_request *request = HF_ARENA_NEW(&call->arena, hf_pb_reset_activity_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = execution_of(call, control);
    request->keep_paused = control->keeps_paused;
    request->reset_heartbeat = control->forgets;
    request->restore_original_options = control->restores;
    NAME_ACTIVITIES(request, HF_PB_RESET_ACTIVITY, MATCH_ALL, match_all);
    call->call.request = request;
}

static void fill_options(sim_world *world, sim_call *call, const sim_control *control)
{
    hf_arena *arena = &call->arena;
    hf_pb_update_activity_options_request *request = HF_ARENA_NEW(arena, hf_pb_update_activity_options_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = execution_of(call, control);
    NAME_ACTIVITIES(request, HF_PB_UPDATE_ACTIVITY_OPTIONS, MATCH_ALL, match_all);
    call->call.request = request;
    if (control->restores) {
        request->restore_original = true;
        return;
    }
    hf_pb_activity_options *options = HF_ARENA_NEW(arena, hf_pb_activity_options);
    request->activity_options = options;
    request->update_mask = HF_ARENA_NEW(arena, hf_pb_field_mask);
    request->update_mask->paths.items = HF_ARENA_ARRAY(arena, hf_str, 4);
    hf_str *paths = request->update_mask->paths.items;
    size_t count = 0;
    if (control->each != 0) {
        options->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(control->each));
        paths[count++] = HF_STR("start_to_close_timeout");
    }
    if (control->attempts_max != 0) {
        options->retry_policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        options->retry_policy->maximum_attempts = control->attempts_max;
        options->retry_policy->initial_interval =
            hf_pb_duration_of(hf_nanoseconds(1 + sim_upto(world, 2 * SIM_SECOND)));
        paths[count++] = HF_STR("retry_policy.maximum_attempts");
        paths[count++] = HF_STR("retryPolicy.initialInterval");
    }
    if (count == 0 || sim_chance(world, 300)) {
        char queue[SIM_NAME_LEN];
        (void)snprintf(queue, sizeof queue, "q%d", (int)sim_upto(world, world->knobs.queues - 1));
        options->task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
        options->task_queue->name = sim_copy(call, queue);
        paths[count++] = HF_STR("task_queue.name");
    }
    request->update_mask->paths.count = count;
}

/* ---- Operations -------------------------------------------------------------------------------------------------------- */

static bool is_refusal(sim_world *world, const sim_control *control, const sim_call *call)
{
    switch ((int)call->call.status) {
    case HF_ERR_NOT_FOUND:
        return true;
    case HF_ERR_NOT_READY:
        return control->method == HF_METHOD_PAUSE_ACTIVITY;
    default:
        return sim_is_stopped(world, call, hf_str_of(world->runs.items[control->run].workflow_id));
    }
}

static void note_answer(sim_world *world, const sim_call *call)
{
    sim_control *control = &world->controls.items[call->log];
    sim_trace(world, "operator: %s of %s %.8s, activity %lld, type %d: %s %s",
              hf_method_info_of(call->call.method)->name, world->runs.items[control->run].workflow_id,
              world->runs.items[control->run].run_id, (long long)control->number, control->type,
              hf_status_name(call->call.status), call->call.message);
    control->calls--;
    if (call->call.status != HF_OK && !sim_is_lost(call) && !is_refusal(world, control, call)) {
        sim_fail(world, "%s was refused with %s: %s", hf_method_info_of(call->call.method)->name,
                 hf_status_name(call->call.status), call->call.message);
    }
}

static void on_second(sim_world *world, sim_call *call)
{
    note_answer(world, call);
    world->controls.items[call->log].ended = ++world->marks;
}

static void on_controlled(sim_world *world, sim_call *call)
{
    sim_operator *operator= operator_of(call->actor);
    sim_control *control = &world->controls.items[call->log];
    note_answer(world, call);
    control->is_over = !sim_is_lost(call);
    operator->has_control = !control->is_over;
    sim_control_answered(world, control, call);
    rest(world, operator);
}

static sim_call *make_call(sim_world *world, sim_actor *actor, size_t index, void (*then)(sim_world *, sim_call *))
{
    sim_control *control = &world->controls.items[index];
    sim_call *call = sim_call_new(world, control->method, actor, then);
    call->log = index;
    switch ((int)control->method) {
    case HF_METHOD_PAUSE_ACTIVITY:
        fill_pause(call, control);
        break;
    case HF_METHOD_UNPAUSE_ACTIVITY:
        fill_unpause(call, control);
        break;
    case HF_METHOD_RESET_ACTIVITY:
        fill_reset(call, control);
        break;
    default:
        fill_options(world, call, control);
        break;
    }
    control->calls++;
    return call;
}

static void submit(sim_world *world, sim_operator *operator)
{
    operator->is_waiting = true;
    sim_control_sent(world, &world->controls.items[operator->control]);
    sim_call *second = NULL;
    if (sim_evil(world, world->knobs.client_twice)) {
        second = make_call(world, NULL, operator->control, on_second);
    }
    sim_call_submit(world, make_call(world, &operator->actor, operator->control, on_controlled));
    if (second != NULL) {
        sim_call_submit(world, second);
    }
}

static void control(sim_world *world, sim_operator *operator, hf_method method, const target *at)
{
    sim_control *it = SIM_PUSH(&world->controls);
    it->method = method;
    it->run = at->run;
    it->is_current = sim_chance(world, 150);
    if (sim_chance(world, 700)) {
        it->number = at->number;
    } else if (method == HF_METHOD_PAUSE_ACTIVITY || sim_chance(world, 500)) { /* there is no pause of all */
        it->type = at->number % 2 == 0 ? 2 : 1;
    }
    switch ((int)method) {
    case HF_METHOD_PAUSE_ACTIVITY:
        break;
    case HF_METHOD_UNPAUSE_ACTIVITY:
        it->unpauses = true;
        it->resets = sim_chance(world, 300);
        it->forgets = sim_chance(world, 300);
        break;
    case HF_METHOD_RESET_ACTIVITY:
        it->resets = true;
        it->keeps_paused = sim_chance(world, 400);
        it->unpauses = !it->keeps_paused;
        it->forgets = sim_chance(world, 300);
        it->restores = sim_chance(world, 200);
        break;
    default:
        it->restores = sim_chance(world, 250);
        it->each = it->restores || sim_chance(world, 400) ? 0 : SIM_SECOND + sim_upto(world, 10 * SIM_SECOND);
        it->attempts_max = it->restores || sim_chance(world, 500) ? 0 : 1 + (int32_t)sim_upto(world, 5);
        break;
    }
    operator->control = world->controls.count - 1;
    operator->has_control = true;
    submit(world, operator);
}

/* ---- By id ------------------------------------------------------------------------------------------------------------- */

static void on_completed(sim_world *world, sim_call *call)
{
    sim_operator *operator= operator_of(call->actor);
    sim_saw_answer(world, call->log, call);
    operator->has_answer = sim_is_lost(call);
    rest(world, operator);
}

static void send_completion(sim_world *world, sim_operator *operator)
{
    const sim_answer *answer = &world->answers.items[operator->answer];
    const sim_run_log *log = &world->runs.items[answer->run];
    sim_call *call = sim_call_new(world, answer->method, &operator->actor, on_completed);
    char nonce[SIM_NAME_LEN];
    (void)snprintf(nonce, sizeof nonce, "n%llu", (unsigned long long)operator->answer);
    sim_by_id_fill(world, call, &(sim_by_id){log->workflow_id, log->run_id, answer->scheduled_id, nonce});
    call->log = operator->answer;
    operator->is_waiting = true;
    sim_call_submit(world, call);
}

static void complete(sim_world *world, sim_operator *operator, const target * at)
{
    operator->has_answer = true;
    operator->answer = world->answers.count;
    *SIM_PUSH(&world->answers) = (sim_answer){
        .method = HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID,
        .worker = -1,
        .scheduled_id = at->number,
        .run = at->run,
        .is_by_id = true,
    };
    sim_suspect_answered(world, &world->answers.items[operator->answer]);
    send_completion(world, operator);
}

/* ---- Looking ----------------------------------------------------------------------------------------------------------- */

static void on_described(sim_world *world, sim_call *call)
{
    if (call->call.status == HF_OK) {
        sim_activity_described(world, call->log, call->call.response, call->epoch);
    } else if (!sim_is_lost(call) && call->call.status != HF_ERR_NOT_FOUND) {
        (void)sim_is_stopped(world, call, hf_str_of(world->runs.items[call->log].workflow_id));
    }
    rest(world, operator_of(call->actor));
}

static void look(sim_world *world, sim_operator *operator, const target * at)
{
    const sim_run_log *log = &world->runs.items[at->run];
    sim_call *call = sim_call_new(world, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &operator->actor, on_described);
    hf_pb_describe_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_describe_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, log->workflow_id);
    request->execution->run_id = sim_copy(call, log->run_id);
    call->call.request = request;
    call->log = at->run;
    call->epoch = ++world->marks;
    operator->is_waiting = true;
    sim_call_submit(world, call);
}

/* ---- Their life -------------------------------------------------------------------------------------------------------- */

static void next(sim_world *world, sim_operator *operator)
{
    static const hf_activity_state STATES[] = {HF_ACTIVITY_SCHEDULED, HF_ACTIVITY_STARTED, HF_ACTIVITY_BACKOFF,
                                               HF_ACTIVITY_PAUSED};
    target at;
    if (world->core == NULL || !choose(world, STATES[hf_rng_below(&world->rng, HF_COUNT_OF(STATES))], &at)) {
        rest(world, operator);
        return;
    }
    uint64_t chance = hf_rng_below(&world->rng, 100);
    if (chance < 15) {
        look(world, operator, & at);
    } else if (chance < 25) {
        complete(world, operator, & at);
    } else if (chance < 40) {
        control(world, operator, HF_METHOD_UPDATE_ACTIVITY_OPTIONS, &at);
    } else if (chance < 55) {
        control(world, operator, HF_METHOD_RESET_ACTIVITY, &at);
    } else if (at.state == HF_ACTIVITY_PAUSED ? chance < 95 : chance < 65) {
        control(world, operator, HF_METHOD_UNPAUSE_ACTIVITY, &at);
    } else {
        control(world, operator, HF_METHOD_PAUSE_ACTIVITY, &at);
    }
}

static void wake(sim_world *world, sim_actor *actor)
{
    sim_operator *operator= operator_of(actor);
    if (operator->is_waiting) {
        return;
    }
    if (operator->has_control) {
        submit(world, operator);
    } else if (operator->has_answer) {
        send_completion(world, operator);
    } else if (!world->is_healed) {
        next(world, operator);
    }
}

bool sim_operators_are_busy(const sim_world *world)
{
    for (int i = 0; i < world->knobs.operators; i++) {
        const sim_operator *operator= & world->operators[i];
        if (operator->is_waiting || operator->has_control || operator->has_answer) {
            return true;
        }
    }
    return false;
}

void sim_operator_sweep(sim_world *world, const char *workflow_id)
{
    enum { ROUNDS = 5 }; /* long enough for most timeouts to pass, if they could */
    if (world->controls.count == 0 || (world->seed % 2 == 0 && world->janitor_round < ROUNDS)) {
        return;
    }
    sim_control_unpaused(world, workflow_id);
    sim_call *call = sim_call_new(world, HF_METHOD_UNPAUSE_ACTIVITY, NULL, NULL);
    hf_pb_unpause_activity_request *request = HF_ARENA_NEW(&call->arena, hf_pb_unpause_activity_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, workflow_id);
    request->activity_case = HF_PB_UNPAUSE_ACTIVITY_REQUEST_UNPAUSE_ALL;
    request->unpause_all = true;
    call->call.request = request;
    sim_call_submit(world, call);
}

void sim_operators_init(sim_world *world)
{
    for (int i = 0; i < world->knobs.operators; i++) {
        world->operators[i] = (sim_operator){.actor = {.wake = wake}, .index = i};
        sim_wake_in(world, &world->operators[i].actor, sim_upto(world, SIM_SECOND));
    }
}
