/* The clients of the script.
 *
 *     slot:  StartWorkflowExecution -> GetWorkflowExecutionHistory (waits for the close event) -> again
 *     sweep: StartWorkflowExecution, SignalWorkflowExecution, UpdateWorkflowExecution or QueryWorkflow -> the same with the next number
 *
 * Runs are called by 32 random digits, as hf_start does it when it is not told an id, and their number behind a dash: that is
 * all that is needed to find what the script knows. */
#include "engine/play_private.h"

#include "bench.h"

static hf_pb_workflow_type workflow_type = {.name = HF_STR_INIT("order")};

/* Bits without order, the same for the same number. */
static uint64_t mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

static void name_run(errand *e, int64_t number, uint32_t serial)
{
    e->run = number;
    uint64_t bits = ((uint64_t)number << 32) + serial + 1;
    if (!e->p->o.is_in_order) {
        bits = mix(bits);
    } else if (serial > 0) {
        bits = ((uint64_t)serial << 32) + (uint64_t)number; /* slots: one after another over all of them */
    }
    int len = snprintf(e->id, sizeof e->id, "%016llx%016llx-%lld", (unsigned long long)bits,
                       (unsigned long long)mix(bits), (long long)number);
    e->execution = (hf_pb_workflow_execution){.workflow_id = hf_str_of_len(e->id, (size_t)len)};
}

static void send_start(errand *e, hf_pb_workflow_type *type, void (*then)(errand *e))
{
    e->request.start = (hf_pb_start_workflow_execution_request){
        .namespace = PLAY_NAMESPACE,
        .workflow_id = e->execution.workflow_id,
        .workflow_type = type,
        .task_queue = &play_queue,
        .input = &play_payloads,
        .identity = PLAY_IDENTITY,
        .request_id = e->execution.workflow_id,
    };
    play_errand_send(e, HF_METHOD_START_WORKFLOW_EXECUTION, &e->request.start, then);
}

static void slot_ends(errand *e)
{
    atomic_fetch_sub(&e->p->slots_busy, 1);
    play_errand_free(e);
}

static void slot_result(errand *e);

static void slot_started(errand *e)
{
    if (!play_errand_is_good(e)) {
        slot_ends(e);
        return;
    }
    play_mark(e->p);
    const hf_pb_start_workflow_execution_response *response = e->call.response;
    e->execution.run_id = response->run_id;
    e->request.history = (hf_pb_get_workflow_execution_history_request){
        .namespace = PLAY_NAMESPACE,
        .execution = &e->execution,
        .wait_new_event = true,
        .history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
    };
    play_errand_send(e, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &e->request.history, slot_result);
}

static void slot_next(errand *e)
{
    play *p = e->p;
    if (atomic_load_explicit(&p->stopping, memory_order_relaxed)) {
        slot_ends(e);
        return;
    }
    hf_arena_reset(&e->arena);
    play_run *run = play_run_of(p, e->run);
    name_run(e, e->run, ++run->serial);
    run->begun = bench_wall_ns();
    send_start(e, &workflow_type, slot_started);
}

static void slot_result(errand *e)
{
    play *p = e->p;
    if (!play_errand_is_good(e)) {
        slot_ends(e);
        return;
    }
    const hf_pb_get_workflow_execution_history_response *response = e->call.response;
    if (response->history.len == 0) {
        play_die("no result of %s within the time of a poll", e->id);
    }
    play_mark(p);
    atomic_fetch_add_explicit(&p->results, 1, memory_order_relaxed);
    play_times_add(p, &p->result_times, bench_wall_ns() - play_run_of(p, e->run)->begun);
    slot_next(e);
}

void play_slots(play *p, int count)
{
    atomic_store(&p->slots_busy, count);
    for (int i = 0; i < count; i++) {
        errand *e = play_errand_new(p);
        e->run = i;
        slot_next(e);
    }
}

/* ---- Sweeps -------------------------------------------------------------------------------------------------------------- */

static bool sweep_number(play *p, errand *e)
{
    long long number = atomic_fetch_add(&p->next, 1);
    if (number >= p->sweep_count || atomic_load_explicit(&p->stopping, memory_order_relaxed)) {
        return false;
    }
    e->ask = p->ask_base + number;
    if (p->sweep_only >= 0) {
        number = p->sweep_only;
    } else if (p->sweep_is_random) { /* a product of odd numbers: every run once in a while, in no order */
        number = (long long)((uint64_t)number * p->chance % p->o.runs_max);
    } else {
        number %= (long long)p->o.runs_max;
    }
    hf_arena_reset(&e->arena);
    name_run(e, number, 0);
    return true;
}

static void sweep_next(errand *e);

/* Whether the answer is what was asked for. */
static void check_answer(const errand *e)
{
    const hf_pb_update_workflow_execution_response *update = e->call.response;
    const hf_pb_query_workflow_response *query = e->call.response;
    if (e->call.method == HF_METHOD_UPDATE_WORKFLOW_EXECUTION && update->outcome == NULL) {
        play_die("an update has no outcome");
    }
    if (e->call.method == HF_METHOD_QUERY_WORKFLOW && query->query_result == NULL) {
        play_die("a query has no result");
    }
}

static void sweep_answered(errand *e)
{
    play *p = e->p;
    if (play_errand_is_good(e)) {
        check_answer(e);
        play_times_add(p, &p->sweep_times, bench_wall_ns() - play_run_of(p, e->run)->begun);
    }
    atomic_fetch_add(&p->swept, 1);
    sweep_next(e);
}

/* An id that no other call of the sweep has. */
static hf_str name_ask(errand *e)
{
    int len = snprintf(e->ask_id, sizeof e->ask_id, "ask-%lld", (long long)e->ask);
    return hf_str_of_len(e->ask_id, (size_t)len);
}

static void send_signal(errand *e)
{
    e->request.signal = (hf_pb_signal_workflow_execution_request){
        .namespace = PLAY_NAMESPACE,
        .workflow_execution = &e->execution,
        .signal_name = HF_STR("go"),
        .input = &play_payloads,
        .identity = PLAY_IDENTITY,
        .request_id = e->p->o.has_request_ids ? name_ask(e) : HF_STR(""),
    };
    play_errand_send(e, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &e->request.signal, sweep_answered);
}

static void send_update(errand *e)
{
    static hf_pb_wait_policy until = {.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED};
    static hf_pb_input input = {.name = HF_STR_INIT("set"), .args = &play_payloads};
    e->meta = (hf_pb_meta){.update_id = name_ask(e), .identity = PLAY_IDENTITY};
    e->asked = (hf_pb_request){.meta = &e->meta, .input = &input};
    e->request.update = (hf_pb_update_workflow_execution_request){
        .namespace = PLAY_NAMESPACE,
        .workflow_execution = &e->execution,
        .wait_policy = &until,
        .request = &e->asked,
    };
    play_errand_send(e, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &e->request.update, sweep_answered);
}

static void send_query(errand *e)
{
    e->query = (hf_pb_workflow_query){.query_type = HF_STR("get"), .query_args = &play_payloads};
    e->request.query =
        (hf_pb_query_workflow_request){.namespace = PLAY_NAMESPACE, .execution = &e->execution, .query = &e->query};
    play_errand_send(e, HF_METHOD_QUERY_WORKFLOW, &e->request.query, sweep_answered);
}

static void sweep_next(errand *e)
{
    play *p = e->p;
    hf_method method = e->call.method;
    if (!sweep_number(p, e)) {
        play_errand_free(e);
        atomic_fetch_sub(&p->sweepers, 1);
        return;
    }
    play_run_of(p, e->run)->begun = bench_wall_ns();
    if (method == HF_METHOD_START_WORKFLOW_EXECUTION) {
        send_start(e, &workflow_type, sweep_answered);
    } else if (method == HF_METHOD_UPDATE_WORKFLOW_EXECUTION) {
        send_update(e);
    } else if (method == HF_METHOD_QUERY_WORKFLOW) {
        send_query(e);
    } else {
        send_signal(e);
    }
}

void play_await(const atomic_llong *counter, long long count)
{
    while (atomic_load(counter) < count) {
        (void)usleep(1000);
    }
}

static void sweep_begin(play *p, hf_method method, long long count, int window)
{
    atomic_store(&p->next, 0);
    atomic_store(&p->swept, 0);
    p->sweep_count = count;
    for (int i = 0; i < window; i++) {
        errand *e = play_errand_new(p);
        e->call.method = method;
        atomic_fetch_add(&p->sweepers, 1);
        sweep_next(e);
    }
}

static int64_t sweep(play *p, hf_method method, long long count, int window)
{
    int64_t begun = bench_wall_ns();
    sweep_begin(p, method, count, window);
    play_await(&p->swept, count);
    return bench_wall_ns() - begun;
}

int64_t play_start_all(play *p, long long count, int window)
{
    p->sweep_is_random = false;
    return sweep(p, HF_METHOD_START_WORKFLOW_EXECUTION, count, window);
}

int64_t play_signal_all(play *p, long long count, int window, bool is_random)
{
    p->sweep_is_random = is_random;
    p->chance = UINT64_C(0x9E3779B1);
    return sweep(p, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, count, window);
}

int64_t play_signal_one(play *p, long long number, long long count, int window)
{
    p->sweep_only = number;
    int64_t ns = sweep(p, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, count, window);
    while (atomic_load(&p->sweepers) > 0) {
        (void)usleep(100);
    }
    p->sweep_only = -1;
    return ns;
}

void play_ask_begin(play *p, hf_method method, int window, bool is_random)
{
    p->sweep_is_random = is_random;
    p->chance = UINT64_C(0x9E3779B1);
    sweep_begin(p, method, INT64_MAX, window);
}

void play_ask_end(play *p)
{
    atomic_store(&p->stopping, true);
    while (atomic_load(&p->sweepers) > 0) {
        (void)usleep(100);
    }
    atomic_store(&p->stopping, false);
}

/* ---- Clans --------------------------------------------------------------------------------------------------------------- */

static void clan_answered(errand *e)
{
    (void)play_errand_is_good(e);
    atomic_fetch_add(&e->p->swept, 1);
    play_errand_free(e);
}

void play_start_clan(play *p, long long number)
{
    static hf_pb_workflow_type type = {.name = HF_STR_INIT("clan")};
    errand *e = play_errand_new(p);
    name_run(e, number, 0);
    atomic_store(&p->swept, 0);
    send_start(e, &type, clan_answered);
    play_await(&p->swept, 1);
}

void play_end_clan(play *p, long long number)
{
    errand *e = play_errand_new(p);
    name_run(e, number, 0);
    atomic_store(&p->swept, 0);
    e->request.terminate = (hf_pb_terminate_workflow_execution_request){
        .namespace = PLAY_NAMESPACE, .workflow_execution = &e->execution, .reason = HF_STR("measured")};
    play_errand_send(e, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &e->request.terminate, clan_answered);
    play_await(&p->swept, 1);
}

static void clan_described(errand *e)
{
    const hf_pb_describe_workflow_execution_response *response = e->call.response;
    if (play_errand_is_good(e)) {
        atomic_store(&e->p->described, response->workflow_execution_info->status);
    }
    clan_answered(e);
}

bool play_clan_is_over(play *p, long long number)
{
    errand *e = play_errand_new(p);
    name_run(e, number, 0);
    size_t len = e->execution.workflow_id.len;
    (void)snprintf(e->id + len, sizeof e->id - len, "c%d", p->o.children - 1);
    e->execution.workflow_id = hf_str_of(e->id);
    atomic_store(&p->swept, 0);
    e->request.describe =
        (hf_pb_describe_workflow_execution_request){.namespace = PLAY_NAMESPACE, .execution = &e->execution};
    play_errand_send(e, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &e->request.describe, clan_described);
    play_await(&p->swept, 1);
    return atomic_load(&p->described) == HF_WORKFLOW_EXECUTION_STATUS_TERMINATED;
}

/* ---- Gaps ---------------------------------------------------------------------------------------------------------------- */

void play_mark(play *p)
{
    long long now = bench_wall_ns();
    long long last = atomic_exchange_explicit(&p->mark_last, now, memory_order_relaxed);
    if (last != 0 && now - last > atomic_load_explicit(&p->mark_gap, memory_order_relaxed)) {
        atomic_store_explicit(&p->mark_gap, now - last, memory_order_relaxed);
    }
}

void play_gap_begin(play *p)
{
    atomic_store(&p->mark_last, bench_wall_ns());
    atomic_store(&p->mark_gap, 0);
}

int64_t play_gap(play *p)
{
    play_mark(p); /* one that goes on still */
    return atomic_load(&p->mark_gap);
}
