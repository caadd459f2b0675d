/* The clients of the script.
 *
 *     slot:  StartWorkflowExecution -> GetWorkflowExecutionHistory (waits for the close event) -> again
 *     sweep: StartWorkflowExecution or SignalWorkflowExecution -> the same with the next number
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

static void send_start(errand *e, void (*then)(errand *e))
{
    e->request.start = (hf_pb_start_workflow_execution_request){
        .namespace = PLAY_NAMESPACE,
        .workflow_id = e->execution.workflow_id,
        .workflow_type = &workflow_type,
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
    send_start(e, slot_started);
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
    if (number >= p->sweep_count) {
        return false;
    }
    if (p->sweep_is_random) { /* a product of odd numbers: every run once in a while, in no order */
        number = (long long)((uint64_t)number * p->chance % p->o.runs_max);
    }
    hf_arena_reset(&e->arena);
    name_run(e, number, 0);
    return true;
}

static void sweep_next(errand *e);

static void sweep_answered(errand *e)
{
    play *p = e->p;
    if (play_errand_is_good(e)) {
        play_times_add(p, &p->sweep_times, bench_wall_ns() - play_run_of(p, e->run)->begun);
    }
    atomic_fetch_add(&p->swept, 1);
    sweep_next(e);
}

static void sweep_next(errand *e)
{
    play *p = e->p;
    bool is_start = e->call.method == HF_METHOD_START_WORKFLOW_EXECUTION;
    if (!sweep_number(p, e)) {
        play_errand_free(e);
        return;
    }
    play_run_of(p, e->run)->begun = bench_wall_ns();
    if (is_start) {
        send_start(e, sweep_answered);
        return;
    }
    e->request.signal = (hf_pb_signal_workflow_execution_request){
        .namespace = PLAY_NAMESPACE,
        .workflow_execution = &e->execution,
        .signal_name = HF_STR("go"),
        .input = &play_payloads,
        .identity = PLAY_IDENTITY,
    };
    play_errand_send(e, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &e->request.signal, sweep_answered);
}

void play_await(const atomic_llong *counter, long long count)
{
    while (atomic_load(counter) < count) {
        (void)usleep(1000);
    }
}

static int64_t sweep(play *p, hf_method method, long long count, int window)
{
    atomic_store(&p->next, 0);
    atomic_store(&p->swept, 0);
    p->sweep_count = count;
    int64_t begun = bench_wall_ns();
    for (int i = 0; i < window; i++) {
        errand *e = play_errand_new(p);
        e->call.method = method;
        sweep_next(e);
    }
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
