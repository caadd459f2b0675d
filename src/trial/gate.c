/* The gate: between a worker and the engine of a play (trial.h). It passes calls on, and disturbs at one point. */
#include "trial/trial.h"

#include "base/rng.h"
#include "service/guard.h"

enum { LOOKS = 20 }; /* without news, until no other answer is expected */

static bool is_activity_answer(hf_method method)
{
    return method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED || method == HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED ||
           method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED;
}

static bool is_answer(hf_method method)
{
    return is_activity_answer(method) || method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED ||
           method == HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED;
}

static void refuse(hf_call *call)
{
    hf_call_set_failure(call, HF_ERR_CLOSED, "the process has died, in a trial");
    call->done(call);
}

/* Frees memory in a random order, so that the next allocations of this thread come in another order than the last time: code that depends
 * on addresses then finds others. */
static void disorder_heap(hf_env *env, uint64_t seed)
{
    enum { BLOCKS = 7, SIZES = 16 }; /* as many as a thread keeps of each size */
    hf_rng rng = {seed};
    for (size_t size = 1; size <= SIZES; size++) {
        void *blocks[BLOCKS];
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = env->ops->allocate(env, 16 * size, 0);
        }
        for (size_t i = BLOCKS; i > 0; i--) {
            size_t pick = hf_rng_below(&rng, i);
            if (blocks[pick] != NULL) {
                env->ops->release(env, blocks[pick], 16 * size);
            }
            blocks[pick] = blocks[i - 1];
        }
    }
}

static int count_activities(const hf_call *call)
{
    const hf_pb_respond_workflow_task_completed_request *request = call->request;
    int count = 0;
    for (size_t i = 0; i < request->commands.count; i++) {
        count += request->commands.items[i].command_type == HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
    }
    return count;
}

/* Locked. Whether the call is dealt with: it pauses the play, ends it, or is kept. */
static bool disturb(hf_gate *gate, hf_call *call, bool *ret_is_refused)
{
    bool is_here = gate->points == gate->upset.at;
    switch (gate->upset.kind) {
    case HF_UPSET_CRASH_BEFORE:
        *ret_is_refused = is_here;
        return is_here;
    case HF_UPSET_SIGNAL:
    case HF_UPSET_CANCEL:
        if (is_here) {
            hf_assert(gate->held == NULL);
            gate->held = call;
            atomic_store(&gate->state, HF_GATE_PAUSES);
        }
        return is_here;
    case HF_UPSET_ORDER:
    case HF_UPSET_NONE:
    case HF_UPSET_EVICT:
    case HF_UPSET_CRASH_AFTER:
    case HF_UPSET_FAIL:
    case HF_UPSET_FAIL_TWO:
    case HF_UPSET_STORM:
    case HF_UPSET_COUNT:
        break;
    }
    return false;
}

/* ---- Which activity an answer is of ------------------------------------------------------------------------------------------- */

static hf_gate *guarded; /* that of this process: the end of a poll does not tell */

static hf_str token_of(const hf_call *call)
{
    if (call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED) {
        return ((const hf_pb_respond_activity_task_completed_request *)call->request)->task_token;
    }
    if (call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED) {
        return ((const hf_pb_respond_activity_task_failed_request *)call->request)->task_token;
    }
    hf_assert(call->method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED);
    return ((const hf_pb_respond_activity_task_canceled_request *)call->request)->task_token;
}

static uint64_t hash_of(hf_str token)
{
    return hf_hash_bytes(1, token.data, token.len);
}

/* The number of an activity; 0 = it has a name. */
static int number_of(hf_str id)
{
    int number = 0;
    for (size_t i = 0; i < id.len && number < 100000000; i++) {
        number = id.data[i] >= '0' && id.data[i] <= '9' ? 10 * number + (id.data[i] - '0') : 0;
    }
    return number;
}

/* A poll for activities is done: remembers which activity has which token. */
static void poll_done(hf_call *call)
{
    hf_gate *gate = guarded;
    void (*done)(hf_call *) = NULL;
    hf_spin_lock(&gate->lock);
    for (int i = 0; i < HF_GATE_POLLS_MAX; i++) {
        if (gate->polls[i].call == call) {
            done = gate->polls[i].done;
            gate->polls[i].call = NULL;
        }
    }
    const hf_pb_poll_activity_task_queue_response *task = call->status == HF_OK ? call->response : NULL;
    if (task != NULL && task->task_token.len > 0) {
        gate->tokens[gate->token_count % HF_GATE_TOKENS_MAX].hash = hash_of(task->task_token);
        gate->tokens[gate->token_count++ % HF_GATE_TOKENS_MAX].number = number_of(task->activity_id);
    }
    hf_spin_unlock(&gate->lock);
    hf_assert(done != NULL);
    call->done = done;
    done(call);
}

static void watch_poll(hf_gate *gate, hf_call *call)
{
    hf_spin_lock(&gate->lock);
    for (int i = 0; i < HF_GATE_POLLS_MAX; i++) {
        if (gate->polls[i].call == NULL) {
            gate->polls[i].call = call;
            gate->polls[i].done = call->done;
            call->done = poll_done;
            break;
        }
    }
    hf_spin_unlock(&gate->lock);
}

/* Locked. */
static int find_number(const hf_gate *gate, hf_str token)
{
    uint64_t hash = hash_of(token);
    for (int i = 0; i < HF_GATE_TOKENS_MAX; i++) {
        if (gate->tokens[i].hash == hash) {
            return gate->tokens[i].number;
        }
    }
    return 0;
}

/* ---- Answers -------------------------------------------------------------------------------------------------------------------- */

/* An answer arrives at its point. */
static void pass(hf_gate *gate, hf_call *call)
{
    bool is_refused = false;
    hf_spin_lock(&gate->lock);
    bool is_cut = atomic_load(&gate->state) == HF_GATE_CUT;
    uint64_t seed = gate->seed + (uint64_t)++gate->points;
    bool is_done = !is_cut && disturb(gate, call, &is_refused);
    if (is_refused) {
        atomic_store(&gate->state, HF_GATE_CUT);
    }
    bool is_last = gate->upset.kind == HF_UPSET_CRASH_AFTER && gate->points == gate->upset.at;
    hf_spin_unlock(&gate->lock);
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        disorder_heap(gate->env, seed);
    }
    if (is_cut || is_refused) {
        refuse(call);
    } else if (!is_done) {
        hf_service_submit(gate->behind, call);
        if (is_last) {
            atomic_store(&gate->state, HF_GATE_CUT);
        }
    }
}

static void submit(hf_service *service, hf_call *call)
{
    hf_gate *gate = (hf_gate *)(void *)service;
    if (!is_answer(call->method)) {
        if (call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
            watch_poll(gate, call);
        }
        hf_service_submit(gate->behind, call);
        return;
    }
    hf_spin_lock(&gate->lock);
    bool is_kept = is_activity_answer(call->method) && atomic_load(&gate->state) != HF_GATE_CUT;
    if (call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
        gate->asked += count_activities(call);
    }
    if (is_kept) {
        call->place = find_number(gate, token_of(call));
        hf_list_push_back(&gate->kept, &call->link);
        gate->kept_count++;
        gate->looks = 0;
    }
    hf_spin_unlock(&gate->lock);
    if (!is_kept) {
        pass(gate, call);
    }
}

static void cancel(hf_service *service, uint64_t number)
{
    hf_service *behind = ((hf_gate *)(void *)service)->behind;
    behind->ops->cancel(behind, number);
}

static void unwanted(hf_service *service, hf_str task_token)
{
    hf_service *behind = ((hf_gate *)(void *)service)->behind;
    behind->ops->unwanted(behind, task_token);
}

static hf_status check(hf_op *op, const hf_service *service)
{
    return hf_service_check(op, ((const hf_gate *)(const void *)service)->behind);
}

static const hf_service_ops OPS = {submit, cancel, unwanted, NULL, check};

void hf_gate_init(hf_gate *gate, hf_env *env, hf_service *behind, hf_upset upset, uint64_t seed)
{
    *gate = (hf_gate){
        .service = {.ops = &OPS}, .behind = hf_guard_behind(behind), .env = env, .upset = upset, .seed = seed};
    hf_list_init(&gate->kept);
    guarded = gate;
    hf_assert(gate->behind != NULL);
}

void hf_gate_go_on(hf_gate *gate)
{
    hf_spin_lock(&gate->lock);
    hf_call *call = gate->held;
    gate->held = NULL;
    int pauses = HF_GATE_PAUSES;
    (void)atomic_compare_exchange_strong(&gate->state, &pauses, HF_GATE_OPEN);
    hf_spin_unlock(&gate->lock);
    if (call != NULL) {
        hf_service_submit(gate->behind, call);
    }
}

void hf_gate_look(hf_gate *gate)
{
    hf_call *next = NULL;
    hf_spin_lock(&gate->lock);
    bool are_all = gate->kept_count >= (size_t)gate->asked; /* of those that run at the same time */
    if (gate->kept_count > 0 && (are_all || ++gate->looks > LOOKS)) {
        HF_LIST_EACH(node, &gate->kept)
        {
            hf_call *call = HF_CONTAINER(node, hf_call, link);
            bool is_before = next == NULL || (gate->upset.kind == HF_UPSET_ORDER ? call->place > next->place
                                                                                 : call->place < next->place);
            next = is_before ? call : next;
        }
        hf_list_remove(&next->link);
        gate->kept_count--;
        gate->asked -= gate->asked > 0;
    }
    hf_spin_unlock(&gate->lock);
    if (next != NULL) {
        next->place = 0;
        pass(gate, next);
    }
}

void hf_gate_shut(hf_gate *gate)
{
    hf_list kept;
    hf_node *node = NULL;
    hf_spin_lock(&gate->lock);
    atomic_store(&gate->state, HF_GATE_CUT);
    hf_call *held = gate->held;
    gate->held = NULL;
    hf_list_move_all(&gate->kept, &kept);
    gate->kept_count = 0;
    hf_spin_unlock(&gate->lock);
    if (held != NULL) {
        refuse(held);
    }
    while ((node = hf_list_pop_front(&kept)) != NULL) {
        refuse(HF_CONTAINER(node, hf_call, link));
    }
}

void hf_gate_deinit(hf_gate *gate)
{
    hf_assert(gate->held == NULL && gate->kept_count == 0);
    hf_guests_await(gate->env, &gate->service.guests);
}
