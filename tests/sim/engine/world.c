/* The driver: clocks, the store's queue, life and death of the process.
 *
 *     heap of wake-ups ----+
 *     store queue ---------+--> the earliest happens --> core --> answers to actors --> a seal is planned
 *     hf_core_next --------+
 *
 * Store requests are executed and told in the order they were submitted, each at a moment of its own, so that a crash can
 * fall between submission and execution (it did not happen), between execution and telling (it happened and nobody
 * knows), or behind both. */
#include "sim/engine/chains.h"
#include "sim/engine/resets.h"
#include "sim/engine/sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_ACTOR, EVENT_SEAL, EVENT_OPEN, EVENT_ZONE };
enum { STILL_MAX = 20000 }; /* steps without time passing: the world is stuck in a loop */

/* ---- Small things -------------------------------------------------------------------------------------------------- */

void *sim_grow(void *items, size_t *capacity, size_t count, size_t len)
{
    if (count == *capacity) {
        *capacity = count > 0 ? 2 * count : 16;
        items = realloc(items, *capacity * len);
        if (items == NULL) {
            abort();
        }
    }
    memset((char *)items + count * len, 0, len);
    return items;
}

void sim_fail(sim_world *world, const char *format, ...)
{
    if (world->failed) {
        return;
    }
    world->failed = true;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(world->why, sizeof world->why, format, args);
    va_end(args);
    sim_trace(world, "FAILED: %s", world->why);
}

void sim_trace(sim_world *world, const char *format, ...)
{
    if (world->options.trace == NULL) {
        return;
    }
    (void)fprintf(world->options.trace, "%10.4f  ", (double)world->mono / 1e9);
    va_list args;
    va_start(args, format);
    (void)vfprintf(world->options.trace, format, args);
    va_end(args);
    (void)fputc('\n', world->options.trace);
}

hf_clock sim_now(const sim_world *world)
{
    return (hf_clock){.wall = world->mono + world->wall_offset, .mono = world->mono};
}

/* ---- The heap of events ---------------------------------------------------------------------------------------------- */

static bool is_before(const sim_event *a, const sim_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void plan(sim_world *world, int kind, sim_actor *actor, int64_t time)
{
    sim_event event = {
        .time = time > world->mono ? time : world->mono,
        .order = world->events_order++,
        .kind = kind,
        .actor = actor,
        .turn = actor != NULL ? ++actor->turn : 0,
    };
    size_t i = world->events.count;
    *SIM_PUSH(&world->events) = event;
    while (i > 0 && is_before(&event, &world->events.items[(i - 1) / 2])) {
        world->events.items[i] = world->events.items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world->events.items[i] = event;
}

static sim_event pop(sim_world *world)
{
    sim_event *items = world->events.items;
    sim_event first = items[0];
    sim_event last = items[--world->events.count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= world->events.count) {
            break;
        }
        if (child + 1 < world->events.count && is_before(&items[child + 1], &items[child])) {
            child++;
        }
        if (!is_before(&items[child], &last)) {
            break;
        }
        items[i] = items[child];
        i = child;
    }
    items[i] = last;
    return first;
}

void sim_wake_at(sim_world *world, sim_actor *actor, int64_t mono)
{
    plan(world, EVENT_ACTOR, actor, mono);
}

void sim_wake_in(sim_world *world, sim_actor *actor, int64_t span)
{
    plan(world, EVENT_ACTOR, actor, world->mono + span);
}

/* ---- The store's queue ------------------------------------------------------------------------------------------------ */

static void on_submit(void *state, hf_store_request *request)
{
    sim_world *world = state;
    bool commit = request->verb == HF_STORE_COMMIT;
    int64_t most = commit ? world->knobs.commit_ns_max : world->knobs.read_ns_max;
    int64_t done_at = world->mono + 1 + sim_upto(world, most);
    int64_t execute_at = done_at - sim_upto(world, done_at - world->mono);
    if (world->requests.count > world->requests_first) { /* in order */
        const sim_request *last = &world->requests.items[world->requests.count - 1];
        execute_at = execute_at < last->execute_at ? last->execute_at : execute_at;
        done_at = done_at < last->done_at ? last->done_at : done_at;
    } else {
        world->requests.count = world->requests_first = 0;
    }
    done_at = done_at < execute_at ? execute_at : done_at;
    *SIM_PUSH(&world->requests) = (sim_request){request, execute_at, done_at, false};
}

/* A store on a failing disk may report a failure. */
static void note_failure(sim_world *world, hf_status status)
{
    if (status != HF_OK && world->options.is_failing) {
        world->is_told_wrong = true;
        world->is_store_gone = world->is_store_gone || status == HF_ERR_STORE;
    }
}

static void execute_commit(sim_world *world, hf_store_request *request)
{
    sim_retention_commit(world, request);
    if (world->options.on_commit != NULL) {
        world->options.on_commit(world, request);
    }
    world->asked = request->commit;
    hf_store_execute(&world->view, request);
    world->totals.commits++;
    note_failure(world, request->status);
    if (request->status == HF_OK) {
        world->executed = request->commit;
        world->durable = world->options.is_normal ? world->durable : world->executed;
        sim_store_upkeep(world);
    } else if (!world->is_store_gone) { /* store-S5: the commit was refused, and left no trace */
        world->asked = world->executed;
    }
}

/* True: the commit was made to fail. */
static bool fail_commit(sim_world *world, hf_store_request *request)
{
    if (!sim_evil(world, world->knobs.commit_fails)) {
        return false;
    }
    world->is_told_wrong = true;
    bool happens = sim_chance(world, 500);
    if (happens) {
        execute_commit(world, request);
    }
    bool unknown = sim_chance(world, 300);
    sim_fault(world, unknown ? HF_SIM_COMMIT_UNKNOWN : happens ? HF_SIM_COMMIT_LIED : HF_SIM_COMMIT_FAILED);
    request->status = hf_fail(&request->op, unknown ? HF_ERR_STORE : HF_ERR_IO, "a fault");
    sim_trace(world, "commit %llu is reported as failed, it did%s happen", (unsigned long long)request->commit,
              happens ? "" : " not");
    return true;
}

static void execute(sim_world *world, sim_request *entry)
{
    hf_store_request *request = entry->request;
    entry->is_executed = true;
    world->nomem_left = 0; /* results need memory, and stores need different amounts */
    if (request->verb == HF_STORE_COMMIT) {
        if (!fail_commit(world, request)) {
            execute_commit(world, request);
            sim_trace(world, "commit %llu: %s", (unsigned long long)request->commit, hf_status_name(request->status));
        }
        return;
    }
    if (sim_evil(world, world->knobs.read_fails)) {
        world->is_told_wrong = true;
        sim_fault(world, HF_SIM_READ_FAILED);
        request->status = hf_fail(&request->op, HF_ERR_IO, "a fault");
        return;
    }
    int more =
        world->seed % 8 == 6 ? (int)(world->steps % 3) : 0; /* steps of a list that find nobody else in the queue */
    do {
        hf_store_execute(&world->view, request);
    } while (request->goes_on != NULL && more-- > 0 && request->goes_on(request));
    note_failure(world, request->status);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static void add_walked(sim_world *world)
{
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        world->totals.probes[i] += world->core->probes[i];
    }
    sim_totals part = {.walked = world->core->runs_memory.arrows,
                       .inputs_min = UINT64_MAX,
                       .runs_min = UINT64_MAX,
                       .crashes_min = UINT64_MAX};
    sim_totals_add(&world->totals, &part);
}

/* The process ends: calls are cut off, and requests that the store has not executed are forgotten. */
static void end_core(sim_world *world)
{
    hf_core *core = world->core;
    hf_core_stop(core, HF_ERR_CLOSED, "the connection was lost");
    for (size_t i = world->requests_first; i < world->requests.count; i++) {
        hf_store_request *request = world->requests.items[i].request;
        if (request->verb == HF_STORE_COMMIT) {
            request->status = HF_ERR_CLOSED;
            hf_core_done(core, request, sim_now(world));
        }
    }
    world->requests.count = world->requests_first = 0;
    add_walked(world);
    world->core = NULL;
    hf_core_free(core); /* asserts I20: nothing is left allocated */
    world->is_sealing = world->is_zoning = false;
    *SIM_PUSH(&world->unhealthy) = sim_now(world).wall - SIM_SECOND;
}

static hf_status open_core(sim_world *world, hf_op *op)
{
    hf_op_init(op);
    hf_core_options options = world->knobs.core;
    options.memory = world->core_memory;
    options.was_left_open = world->was_left_open;
    uint64_t words[2] = {hf_rng_next(&world->rng), hf_rng_next(&world->rng)};
    memcpy(options.seed, words, sizeof options.seed);
    return hf_core_open(op, &options, &world->view, sim_now(world), &world->core);
}

bool sim_world_open(sim_world *world)
{
    hf_op op;
    world->is_told_wrong = world->is_out_of_memory = false;
    world->nomem_left = 0; /* stores allocate differently here; tests/support/nomem.h tests that */
    uint64_t met = world->damage_met;
    hf_status status = open_core(world, &op);
    if (status == HF_OK && world->damage_met > met) {
        sim_fault(world, HF_SIM_OPENED_DAMAGED);
    }
    if (status != HF_OK) {
        world->core = NULL;
        sim_fail(world, "the engine does not open: %s: %s", hf_status_name(status), op.message);
        return false;
    }
    world->core->submit = on_submit;
    world->core->submit_state = world;
    world->opened++;
    sim_trace(world, "open %llu, next commit %llu", (unsigned long long)world->opened,
              (unsigned long long)world->core->commit_next);
    if (world->core->commit_next != world->executed + 1) {
        sim_fail(world, "store-S2: the store took %llu commits, the engine found %llu",
                 (unsigned long long)world->executed, (unsigned long long)world->core->commit_next - 1);
    }
    if (world->unhealthy.count % 2 == 1) {
        *SIM_PUSH(&world->unhealthy) = sim_now(world).wall + SIM_SECOND;
    }
    sim_damage_opened(world);
    sim_check_runs(world, true);
    return !world->failed;
}

void sim_world_restart(sim_world *world)
{
    if (world->core != NULL) {
        /* The effects of the last end of a process are final once the first commit after it is durable. */
        bool is_settled = world->core->commit_durable >= world->core->commit_first;
        end_core(world);
        bool is_left = sim_chance(world, 500);
        world->was_left_open = is_left || (!is_settled && world->was_left_open);
        if (world->is_store_gone) {
            sim_trouble_reopen(world);
        }
        sim_workers_crashed(world);
        plan(world, EVENT_OPEN, NULL, world->mono + sim_upto(world, world->knobs.down_ns_max));
    }
}

void sim_world_crash(sim_world *world)
{
    if (world->core == NULL) {
        return;
    }
    world->crashes++;
    sim_fault(world, HF_SIM_CRASH);
    if (world->core->meta_dirty) {
        sim_fault(world, HF_SIM_CRASH_AT_OPEN);
    }
    bool idle = true;
    for (size_t i = world->requests_first; i < world->requests.count; i++) {
        sim_request *entry = &world->requests.items[i];
        if (entry->request->verb != HF_STORE_COMMIT) {
            continue;
        }
        idle = false;
        if (!entry->is_executed && sim_chance(world, 500)) {
            execute(world, entry);
        }
        sim_fault(world, entry->is_executed ? HF_SIM_CRASH_COMMITTED : HF_SIM_CRASH_UNCOMMITTED);
    }
    if (idle) {
        sim_fault(world, HF_SIM_CRASH_IDLE);
    }
    sim_trace(world, "crash");
    end_core(world);
    world->was_left_open = true;
    sim_store_crash(world);
    sim_workers_crashed(world);
    plan(world, EVENT_OPEN, NULL, world->mono + sim_upto(world, world->knobs.down_ns_max));
}

/* A broken core is closed and opened again. It may break only when the store failed. */
static void look_after(sim_world *world)
{
    if (world->core == NULL || hf_core_status(world->core) == HF_OK) {
        return;
    }
    bool no_memory = world->is_out_of_memory && hf_core_status(world->core) == HF_ERR_NOMEM;
    if (!world->is_told_wrong && !no_memory) {
        sim_fail(world, "the core broke: %s: %s", hf_status_name(world->core->status), world->core->why);
        return;
    }
    sim_trace(world, "stopped: %s", world->core->why);
    sim_world_restart(world);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------ */

static void give_answers(sim_world *world)
{
    while (world->answered != NULL && !world->failed) {
        sim_call *call = world->answered;
        world->answered = call->next;
        world->hash = hf_hash_mix(world->hash, (uint64_t)call->call.method * 64 + (uint64_t)call->call.status);
        if (call->then != NULL) {
            call->then(world, call);
        }
        sim_call_free(world, call);
    }
}

static void seal(sim_world *world)
{
    world->is_sealing = false;
    if (world->core != NULL) {
        hf_core_release(world->core, sim_now(world)); /* the portion ends here */
        sim_note_commits(world);
        hf_store_request *request = hf_core_seal(world->core, sim_now(world));
        if (request != NULL) {
            on_submit(world, request);
        }
    }
}

static void plan_seal(sim_world *world)
{
    hf_core *core = world->core;
    if (core == NULL || world->is_sealing || core->committing) {
        return;
    }
    if (core->meta_dirty || !hf_list_is_empty(&core->touched) || hf_deletions_can_go(core) || hf_resets_can_go(core) ||
        !hf_list_is_empty(&core->batches[core->open_idx].replies)) {
        world->is_sealing = true;
        plan(world, EVENT_SEAL, NULL, world->mono + sim_upto(world, world->knobs.seal_ns_max));
    }
}

/* An input waits for the rules of a time zone: they come, after a while. */
static void plan_zone(sim_world *world)
{
    hf_str name;
    if (world->core != NULL && !world->is_zoning && hf_core_zone_wanted(world->core, &name)) {
        world->is_zoning = true;
        plan(world, EVENT_ZONE, NULL, world->mono + sim_upto(world, world->knobs.read_ns_max));
    }
}

static void happen(sim_world *world)
{
    sim_event event = pop(world);
    switch (event.kind) {
    case EVENT_ACTOR:
        if (event.turn == event.actor->turn) {
            event.actor->wake(world, event.actor);
        }
        return;
    case EVENT_SEAL:
        if (world->is_sealing) {
            seal(world);
        }
        return;
    case EVENT_ZONE:
        if (world->is_zoning) {
            world->is_zoning = false;
            sim_zone_give(world);
        }
        return;
    default:
        if (world->core == NULL) {
            (void)sim_world_open(world);
        }
        return;
    }
}

static void serve(sim_world *world)
{
    for (size_t i = world->requests_first; i < world->requests.count; i++) {
        sim_request *entry = &world->requests.items[i];
        if (!entry->is_executed) {
            if (entry->execute_at > world->mono) {
                break;
            }
            execute(world, entry);
            return;
        }
    }
    hf_store_request *request = world->requests.items[world->requests_first++].request;
    hf_core_done(world->core, request, sim_now(world));
}

/* When the store has something to do. */
static int64_t store_time(const sim_world *world)
{
    for (size_t i = world->requests_first; i < world->requests.count; i++) {
        const sim_request *entry = &world->requests.items[i];
        if (!entry->is_executed) {
            const sim_request *first = &world->requests.items[world->requests_first];
            return first->is_executed && first->done_at < entry->execute_at ? first->done_at : entry->execute_at;
        }
    }
    return world->requests.count > world->requests_first ? world->requests.items[world->requests_first].done_at
                                                         : INT64_MAX;
}

static int64_t core_time(const sim_world *world)
{
    if (world->core == NULL) {
        return INT64_MAX;
    }
    hf_clock next = hf_core_next(world->core);
    int64_t wall = next.wall == INT64_MAX ? INT64_MAX : next.wall - world->wall_offset;
    int64_t time = wall < next.mono ? wall : next.mono;
    return time < world->portion_end ? world->portion_end : time;
}

/* The end of a portion of inputs. Some are longer than one input. */
static void release(sim_world *world)
{
    if (world->mono >= world->portion_end && !hf_list_is_empty(&world->core->queues_marked) &&
        sim_chance(world, world->knobs.portions)) {
        world->portion_end = world->mono + 1 + sim_upto(world, 50 * SIM_MS);
    }
    if (world->mono >= world->portion_end) {
        hf_core_release(world->core, sim_now(world));
    }
}

static void settle(sim_world *world)
{
    do {
        if (world->core != NULL) {
            world->run_next = world->core->run_next;
            sim_note_commits(world);
            release(world);
        }
        give_answers(world);
        look_after(world);
    } while (world->answered != NULL && !world->failed);
    world->nomem_left = 0; /* the checks themselves are not under test */
    if (world->failed) {
        return;
    }
    if (world->core != NULL) {
        sim_note_commits(world);
    }
    plan_seal(world);
    plan_zone(world);
    sim_check_runs(world, false);
    sim_check_rest(world);
    if (world->steps % 32 == 0 && world->core != NULL) {
        world->hash = hf_hash_mix(world->hash, hf_core_hash(world->core));
    }
}

int64_t sim_world_next(sim_world *world)
{
    int64_t event = world->events.count > 0 ? world->events.items[0].time : INT64_MAX;
    int64_t store = store_time(world);
    int64_t core = core_time(world);
    int64_t time = event < store ? event : store;
    return core < time ? core : time;
}

bool sim_world_step(sim_world *world)
{
    int64_t store = store_time(world);
    int64_t core = core_time(world);
    int64_t time = sim_world_next(world);
    if (time == INT64_MAX || world->failed) {
        return false;
    }
    world->still = time <= world->mono ? world->still + 1 : 0;
    world->mono = time > world->mono ? time : world->mono;
    if (world->still > STILL_MAX) {
        sim_fail(world, "time stands still");
        return false;
    }
    world->steps++;
    world->hash = hf_hash_mix(world->hash, (uint64_t)world->mono);
    if (sim_evil(world, world->knobs.nomem)) {
        world->nomem_left = 1 + sim_upto(world, 20);
    }
    if (store <= time) {
        serve(world);
    } else if (core <= time) {
        hf_core_tick(world->core, sim_now(world));
    } else {
        happen(world);
    }
    settle(world);
    return !world->failed;
}

/* A deletion is not counted any more once its last commit is sealed, and is done when that is executed. */
static bool is_at_rest(const sim_world *world)
{
    const hf_core *core = world->core;
    return core == NULL || (core->deletions.count <= core->deletions.stuck && !core->committing && !world->is_sealing &&
                            world->requests.count == world->requests_first);
}

bool sim_world_rest(sim_world *world)
{
    int64_t end = world->mono + 600 * SIM_SECOND; /* on a slow disk a commit may take a minute */
    plan_seal(world);                             /* of a call that came after the last step */
    while (sim_world_next(world) < end && !is_at_rest(world) && sim_world_step(world)) {
    }
    return is_at_rest(world);
}

void sim_world_free(sim_world *world)
{
    if (world->core != NULL) {
        end_core(world);
    }
    while (world->answered != NULL) {
        sim_call *call = world->answered;
        world->answered = call->next;
        sim_call_free(world, call);
    }
    sim_store_close(world);
    for (size_t i = 0; i < world->runs.count; i++) {
        free(world->runs.items[i].events);
    }
    for (int i = 0; i < SIM_WORKERS_MAX; i++) {
        free(world->workers[i].cache.items);
    }
    sim_resets_free(world);
    free(world->runs.items);
    free(world->ops.items);
    free(world->child_names.items);
    free(world->updates.items);
    free(world->options_seen.items);
    free(world->given.items);
    free(world->answers.items);
    free(world->deliveries.items);
    free(world->controls.items);
    free(world->activities.items);
    free(world->pauses.items);
    free(world->suspects.items);
    free(world->unhealthy.items);
    free(world->damages.items);
    free(world->descriptions.items);
    free(world->records.items);
    free(world->retired.items);
    free(world->events.items);
    free(world->requests.items);
    if (world->memory_used != 0) {
        sim_fail(world, "I20: %zu bytes were not freed", world->memory_used);
    }
}
