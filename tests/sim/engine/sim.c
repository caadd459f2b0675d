/* One seed: knobs, a safety phase full of faults, healing, judgement. */
#include "sim/engine/sim.h"
#include "sim/engine/batches.h"
#include "sim/engine/children.h"
#include "sim/engine/resets.h"

#include <stdlib.h>
#include <string.h>

enum { CRASHES_MANY = 300 }; /* in one world; from then on the process lives longer */

#define HEAL_MAX (4 * 3600 * SIM_SECOND) /* of virtual time: every run is over by then */
enum { STEPS_MAX = 4 * SIM_STEPS_MANY, PROBE_PERCENT_MIN = 1 };
enum { LIFE_STEPS = SIM_STEPS_MANY / 8 }; /* of a process that is left alone, and was not yet killed often enough */
/* What is met by one seed in a hundred is met by half as many in hardly any thousand. */
enum { SHARE_SEEDS_MIN = 1000, SHARE_PERMILLE_MIN = 5 };

/* ---- Memory -------------------------------------------------------------------------------------------------------------- */

static void *allocate(void *state, size_t len, size_t align)
{
    (void)align;
    sim_world *world = state;
    void *ptr = malloc(len);
    if (ptr == NULL) {
        abort();
    }
    world->memory_used += len;
    return ptr;
}

static void release(void *state, void *ptr, size_t len)
{
    sim_world *world = state;
    if (ptr != NULL) {
        world->memory_used -= len;
        free(ptr);
    }
}

static void *core_allocate(void *state, size_t len, size_t align)
{
    sim_world *world = state;
    if (world->nomem_left > 0 && --world->nomem_left == 0) {
        sim_fault(world, HF_SIM_NOMEM);
        sim_trace(world, "an allocation fails");
        world->is_out_of_memory = true;
        return NULL;
    }
    return allocate(state, len, align);
}

/* ---- Knobs --------------------------------------------------------------------------------------------------------------- */

/* Most faults are off in most seeds, so that the others happen often and without interference. */
static int swarm(sim_world *world, int most)
{
    return sim_chance(world, 500) ? 0 : 1 + (int)sim_upto(world, most - 1);
}

/* Limits small enough to be reached; most seeds have none. */
static void choose_limits(sim_world *world, hf_core_limits *limits)
{
    if (!sim_chance(world, 300)) {
        return;
    }
    limits->payload_len = sim_chance(world, 500) ? 20000 + (size_t)sim_upto(world, 30000) : 0;
    limits->history_count = sim_chance(world, 500) ? 15 + sim_upto(world, 60) : 0;
    limits->suggest_count = limits->history_count * 2 / 3;
    limits->history_len = sim_chance(world, 300) ? 2000 + sim_upto(world, 8000) : 0;
    limits->pending = sim_chance(world, 500) ? SIM_PENDING_MAX + (size_t)sim_upto(world, 3) : 0;
    limits->buffered_count = sim_chance(world, 500) ? 1 + (size_t)sim_upto(world, 2) : 0;
    limits->buffered_len = sim_chance(world, 300) ? 100 + (size_t)sim_upto(world, 1000) : 0;
    limits->updates_in_flight = sim_chance(world, 500) ? 1 + (size_t)sim_upto(world, 2) : 0;
    limits->updates = sim_chance(world, 200) ? 1 + (size_t)sim_upto(world, 8) : 0;
    limits->signals = sim_chance(world, 500) ? 1 + sim_upto(world, 8) : 0;
    world->knobs.over_limit = limits->pending > 0 ? 1 + (int)sim_upto(world, 199) : 0;
}

static void choose_core(sim_world *world, hf_core_options *options)
{
    sim_knobs *knobs = &world->knobs;
    knobs->is_tiny = sim_chance(world, 600);
    options->mem_max = knobs->is_tiny ? 1 + (size_t)sim_upto(world, 60000) : (size_t)1 << 24;
    options->journal_len_max = sim_chance(world, 500) ? 1 + (size_t)sim_upto(world, 30000) : (size_t)1 << 20;
    options->batch_len_max = sim_chance(world, 300) ? 1 + (size_t)sim_upto(world, 20000) : 0;
    options->poll_span = sim_chance(world, 500) ? SIM_SECOND + sim_upto(world, 10 * SIM_SECOND) : 0;
    options->history_span = sim_chance(world, 500) ? SIM_SECOND + sim_upto(world, 10 * SIM_SECOND) : 0;
    options->due_window = sim_chance(world, 500) ? SIM_SECOND / 10 + sim_upto(world, 10 * SIM_SECOND) : 0;
    options->page_max = sim_chance(world, 600) ? 1 + (size_t)sim_upto(world, 2) : 0;
    options->history_page_len = sim_chance(world, 400) ? 1 + (size_t)sim_upto(world, 1500) : 0;
    options->tick_max = sim_chance(world, 400) ? 1 + (size_t)sim_upto(world, 2) : 0;
    options->messages_max = options->cancels_max = options->tick_max; /* as few as that */
    options->queue_span = sim_chance(world, 300) ? 20 * SIM_MS + sim_upto(world, 5 * SIM_SECOND) : 0;
    options->queues_max = sim_chance(world, 300) ? 1 + (size_t)sim_upto(world, 4) : 0;
    options->part_len_min = sim_chance(world, 400) ? 1 + (size_t)sim_upto(world, 100) : 0;
    options->tail_len_max = sim_chance(world, 500) ? 1 + (size_t)sim_upto(world, 600) : 0;
    options->row_len_max = sim_chance(world, 400) ? 1 + (size_t)sim_upto(world, 1500) : 0;
    options->names_max = sim_chance(world, 700) ? 1 + (size_t)sim_upto(world, 6) : 0;
    options->ended_max = sim_chance(world, 700) ? 1 + (size_t)sim_upto(world, 4) : 0;
    options->name_bits_off = sim_chance(world, 300) ? HF_NAME_BITS - (unsigned)sim_upto(world, 4) : 0;
    options->trim_count = sim_chance(world, 700) ? 1 + (uint64_t)sim_upto(world, 5) : 0;
    options->reset_portion_count = sim_chance(world, 600) ? 1 + (size_t)sim_upto(world, 3) : 0;
    options->reset_portion_len = sim_chance(world, 300) ? 1 + (size_t)sim_upto(world, 600) : 0;
    options->operation_portion = sim_chance(world, 700) ? 1 + (size_t)sim_upto(world, 3) : 0;
    options->operation_kept = sim_chance(world, 150) ? SIM_SECOND + sim_upto(world, 20 * SIM_SECOND) : 0;
    options->list_step_max = sim_chance(world, 700) ? 1 + (size_t)sim_upto(world, 6) : 0;
    options->block_size = sim_chance(world, 800) ? 1 + sim_upto(world, 7) : 0;
}

static void choose(sim_world *world)
{
    sim_knobs *knobs = &world->knobs;
    *knobs = (sim_knobs){
        .clients = 1 + (int)sim_upto(world, SIM_CLIENTS_MAX - 1),
        .workers = 1 + (int)sim_upto(world, SIM_WORKERS_MAX - 1),
        .workflows = 5 + (int)sim_upto(world, SIM_WORKFLOWS_MAX - 5),
        .inputs_min = 100 + (int)sim_upto(world, 80),
        .crashes = 1 + (int)sim_upto(world, 2),
        .has_clock_steps = sim_chance(world, 150),
        .commit_ns_max = sim_chance(world, 500) ? 100000 : sim_upto(world, 200 * SIM_MS),
        .read_ns_max = sim_chance(world, 500) ? 100000 : sim_upto(world, 100 * SIM_MS),
        .seal_ns_max = sim_chance(world, 500) ? 0 : sim_upto(world, 30 * SIM_MS),
        .think_ns_max = 20 * SIM_MS + sim_upto(world, 500 * SIM_MS),
        .work_ns_max = 10 * SIM_MS + sim_upto(world, 900 * SIM_MS),
        .down_ns_max = sim_chance(world, 500) ? SIM_MS : sim_upto(world, 3 * SIM_SECOND),
        .commit_fails = swarm(world, 40),
        .read_fails = swarm(world, 40),
        .poll_cancel = swarm(world, 400),
        .unwanted = swarm(world, 150),
        .lost = swarm(world, 100),
        .worker_crash = swarm(world, 60),
        .worker_pause = swarm(world, 60),
        .twice = swarm(world, 200),
        .late = swarm(world, 60),
        .forged = swarm(world, 100),
        .task_fails = sim_chance(world, 100) ? 500 : swarm(world, 200),
        .bad_command = swarm(world, 150),
        .sticky_reset = swarm(world, 100),
        .shutdown = swarm(world, 100),
        .large = swarm(world, 15),
        .task_heartbeat = swarm(world, 150),
        .activity_fails = sim_chance(world, 250) ? 600 : 200,
        .client_twice = swarm(world, 200),
        .stale_signal = swarm(world, 400),
    };
    knobs->askers = sim_chance(world, 300) ? 0 : (int)sim_upto(world, sim_chance(world, 100) ? SIM_ASKERS_MAX : 6);
    knobs->askers = sim_chance(world, 20) ? SIM_ASKERS_MAX : knobs->askers; /* a crowd */
    knobs->queues = knobs->workers > 1 ? 1 + (int)sim_upto(world, 1) : 1;
    choose_core(world, &knobs->core);
    choose_limits(world, &knobs->core.limits);
    knobs->core.limits.stream_count = sim_chance(world, 300) ? 2 + sim_upto(world, 6) : 0;
    knobs->core.stream_stops_max = sim_chance(world, 500) ? 1 : 0;
    knobs->core.limits.keep_alive = sim_chance(world, 400) ? 1 + sim_upto(world, 2 * SIM_SECOND) : 0;
    /* If the hashes of names collide, a damaged run also hides the names of others. */
    knobs->has_damage = sim_chance(world, 300) && knobs->core.name_bits_off == 0;
    knobs->poison = sim_chance(world, 250) ? (int)sim_upto(world, 1000) : 0;
    knobs->chains = swarm(world, 600);
    knobs->zones_go = sim_chance(world, 300);
    knobs->rate = sim_chance(world, 300) ? 0.5 + (double)sim_upto(world, 7) / 2 : 0;
    knobs->deletes = sim_chance(world, 600) ? 20 + (int)sim_upto(world, 180) : 0;
    knobs->retention = knobs->deletes > 0 && sim_chance(world, 400) ? 1 + sim_upto(world, 30 * SIM_SECOND) : 0;
    /* Where names are alike each call reads the runs of all, and the families of a schedule have very many. */
    knobs->has_children = sim_chance(world, 600) && (knobs->chains == 0 || knobs->core.name_bits_off == 0);
    knobs->portions = sim_chance(world, 400) ? (int)sim_upto(world, 600) : 0;
    knobs->eager = swarm(world, 900);
    knobs->inlined = swarm(world, 800);
    knobs->eager_start = swarm(world, 600);
    knobs->by_id = swarm(world, 300);
    knobs->operators = sim_chance(world, 450) ? 1 + (int)sim_upto(world, SIM_OPERATORS_MAX - 1) : 0;
    knobs->has_resets = sim_chance(world, 400);
    knobs->has_batches = sim_chance(world, 500);
    knobs->nomem = sim_chance(world, 200) ? 1 + (int)sim_upto(world, 19) : 0;
}

/* ---- Fate ---------------------------------------------------------------------------------------------------------------- */

static void step_clock(sim_world *world)
{
    bool forward = sim_chance(world, 500);
    int64_t span = sim_upto(world, 3600 * SIM_SECOND);
    sim_fault(world, forward ? HF_SIM_CLOCK_FORWARD : HF_SIM_CLOCK_BACK);
    world->wall_offset += forward ? span : -span;
    world->wall_offset_max = world->wall_offset > world->wall_offset_max ? world->wall_offset : world->wall_offset_max;
    sim_trace(world, "the wall clock jumps by %lld s", (long long)((forward ? span : -span) / SIM_SECOND));
}

static void decide_fate(sim_world *world, sim_actor *actor)
{
    if (world->is_healed || (sim_is_left_alone(world) && world->crashes >= (uint64_t)world->knobs.crashes)) {
        return;
    }
    if (world->knobs.has_clock_steps && sim_chance(world, 300)) {
        step_clock(world);
    } else {
        sim_world_crash(world);
    }
    /* Sometimes it dies again, before it has opened completely. */
    int64_t pause = sim_chance(world, 100) ? sim_upto(world, 2 * SIM_MS) : sim_upto(world, 3 * SIM_SECOND);
    /* On a slow disk a life of a second or two may be too short for anything to be acknowledged. */
    bool is_slow = world->crashes > CRASHES_MANY || sim_is_left_alone(world);
    sim_wake_in(world, actor, pause + (is_slow ? 30 * SIM_SECOND : 0));
}

static bool is_enough(const sim_world *world)
{
    return world->totals.inputs - world->asked_inputs >= (uint64_t)world->knobs.inputs_min &&
           world->crashes >= (uint64_t)world->knobs.crashes && world->ops.count >= 10 && world->runs.count >= 5;
}

static void heal(sim_world *world)
{
    world->is_healed = true;
    if (world->options.is_failing) {
        sim_trouble_clear(world);
    }
    world->wall_offset = world->wall_offset_max; /* else a deadline might be an hour away again */
    sim_trace(world, "healed");
    if (world->knobs.has_damage) { /* all other runs come to their ends */
        sim_damage_some(world);
    }
    sim_wake_in(world, &world->janitor, SIM_SECOND);
    for (int i = 0; i < world->knobs.workers; i++) {
        world->workers[i].away_until = 0;
        for (int j = 0; j < SIM_SLOTS; j++) {
            if (world->workers[i].slots[j].state == 0) {
                sim_wake_in(world, &world->workers[i].slots[j].actor, SIM_MS);
            }
        }
    }
}

/* What the runs that are still open wait for, for the trace of a seed that does not end. */
static void trace_open_runs(sim_world *world)
{
    if (world->core == NULL) {
        return;
    }
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (hf_run_is_open(run)) {
            sim_trace(world,
                      "run %lld of %.*s is open: workflow task %d, activities %zu, timers %zu, children %zu, "
                      "messages %zu, updates %zu",
                      (long long)run->number, HF_STR_ARGS(hf_owned_str(&run->workflow_id)), (int)run->wft.state,
                      run->activities.count, run->timers.count, run->children.count, run->externals.count,
                      run->updates.count);
        }
    }
}

static void live(sim_world *world)
{
    while (!is_enough(world) && sim_world_step(world)) {
        if (world->steps > STEPS_MAX) {
            sim_fail(world, "the safety phase does not end");
        }
        if (sim_is_left_alone(world) && world->steps % LIFE_STEPS == 0) {
            sim_wake_in(world, &world->fate, 0); /* half a minute of busy clients may be more steps than are left */
        }
    }
    if (world->failed) {
        return;
    }
    heal(world);
    int64_t end = world->mono + HEAL_MAX;
    while (!world->is_over && sim_world_step(world)) {
        if (world->mono > end || world->steps > 2 * STEPS_MAX) {
            trace_open_runs(world);
            sim_fail(world, "I16: %d workflows are not over long after the last fault", world->janitor_open);
        }
    }
}

/* Makes the last decisions durable. */
static void come_to_rest(sim_world *world)
{
    sim_keep_all(world);
    int64_t end = world->mono + 2 * SIM_SECOND + (world->knobs.retention > 0 ? SIM_KEEP_MAX : 0);
    int64_t end_last = world->mono + 600 * SIM_SECOND;
    /* Not beyond the end: what becomes due there would only begin. */
    while (sim_world_next(world) < end && sim_world_step(world)) {
        const hf_core *core = world->core;
        if (core != NULL && core->deletions.count > core->deletions.stuck && world->mono < end_last &&
            end < world->mono + 2 * SIM_SECOND) {
            end = world->mono + 2 * SIM_SECOND; /* what retention has begun comes to its end */
        }
    }
    (void)sim_world_rest(world);
}

bool sim_run(uint64_t seed, sim_options options, sim_totals *totals, uint64_t *ret_hash, char *ret_why, size_t why_len)
{
    sim_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        abort();
    }
    world->seed = seed;
    world->options = options;
    world->rng.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world->memory = (hf_allocator){allocate, release, world};
    world->core_memory = (hf_allocator){core_allocate, release, world};
    world->mono = SIM_SECOND;
    world->wall_offset = world->wall_offset_max = INT64_C(1700000000) * SIM_SECOND;
    choose(world);
    world->knobs.has_damage =
        world->knobs.has_damage && !options.is_failing; /* failing syncs are enough for one world */
    sim_damage_init(world);
    if (sim_store_open(world) && sim_world_open(world)) {
        world->fate.wake = decide_fate;
        sim_wake_in(world, &world->fate, sim_upto(world, 3 * SIM_SECOND));
        sim_workers_init(world);
        sim_clients_init(world);
        live(world);
        if (!world->failed) {
            come_to_rest(world);
            sim_retention_settle(world);
            sim_check_runs(world, true);
            sim_judge_rest(world);
        }
        if (!world->failed) {
            sim_judge_lists(world);
        }
        if (!world->failed) {
            sim_judge(world);
        }
        if (!world->failed) {
            sim_judge_deletes(world);
        }
        if (!world->failed) {
            sim_judge_resets(world);
        }
        if (!world->failed) {
            sim_judge_batches(world);
        }
    }
    world->totals.seeds = 1;
    world->totals.virtual_s = (uint64_t)(world->mono / SIM_SECOND);
    uint64_t crashes = world->crashes;
    sim_world_free(world);
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        world->totals.probe_seeds[i] = world->totals.probes[i] > 0;
    }
    world->totals.crowds = world->knobs.askers == SIM_ASKERS_MAX;
    world->totals.inputs_min = world->totals.inputs;
    world->totals.runs_min = world->totals.runs;
    world->totals.crashes_min = crashes;
    *ret_hash = world->hash;
    (void)snprintf(ret_why, why_len, "%s", world->why);
    bool fine = !world->failed || world->is_poorer;
    sim_totals_add(totals, &world->totals);
    free(world);
    return fine;
}

/* ---- Totals ---------------------------------------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void sim_totals_add(sim_totals *to, const sim_totals *from)
{
    to->seeds += from->seeds;
    to->runs += from->runs;
    to->inputs += from->inputs;
    to->commits += from->commits;
    to->virtual_s += from->virtual_s;
    to->events += from->events;
    to->checks += from->checks;
    to->crowds += from->crowds;
    to->outcomes += from->outcomes;
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        to->methods[i] += from->methods[i];
    }
    to->inputs_min = least(to->inputs_min, from->inputs_min);
    to->runs_min = least(to->runs_min, from->runs_min);
    to->crashes_min = least(to->crashes_min, from->crashes_min);
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++) {
        to->faults[i] += from->faults[i];
    }
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        to->probes[i] += from->probes[i];
        to->probe_seeds[i] += from->probe_seeds[i];
    }
    for (int id = 0; id < HF_MACHINE_COUNT; id++) {
        for (int i = 0; i < HF_MACHINE_STATE_MAX; i++) {
            for (int j = 0; j < HF_MACHINE_STATE_MAX; j++) {
                to->walked.counts[id][i][j] += from->walked.counts[id][i][j];
            }
        }
    }
}

static bool print_count(FILE *out, uint64_t count, const char *text)
{
    bool fine = count > 0;
    (void)fprintf(out, "  %12llu  %s%s\n", (unsigned long long)count, text, fine ? "" : "   <-- never");
    return fine;
}

/* How often each probe was met, and by how many seeds; then those that too few seeds have met. */
static void print_probes(const sim_totals *totals, FILE *out)
{
    static const char *const PROBES[] = {
#define TEXT(name, text) text,
        HF_PROBE_MAP(TEXT)};
#undef TEXT
    int rare = 0;
    (void)fprintf(out, "Probes:\n%14s  %10s  %8s\n", "hits", "seeds", "of all");
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        bool is_rare = totals->probe_seeds[i] * 100 < totals->seeds * PROBE_PERCENT_MIN;
        double percent = totals->seeds > 0 ? 100.0 * (double)totals->probe_seeds[i] / (double)totals->seeds : 0;
        rare += is_rare;
        (void)fprintf(out, "  %12llu  %10llu  %6.2f %%  %s%s\n", (unsigned long long)totals->probes[i],
                      (unsigned long long)totals->probe_seeds[i], percent, PROBES[i],
                      totals->probes[i] == 0 ? "   <-- never"
                      : is_rare              ? "   <-- rare"
                                             : "");
    }
    (void)fprintf(out, "%d of %d probes were met by less than %d %% of the seeds%s\n", rare, (int)HF_PROBE_COUNT,
                  PROBE_PERCENT_MIN, rare > 0 ? ":" : "");
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        if (totals->probe_seeds[i] * 100 < totals->seeds * PROBE_PERCENT_MIN) {
            (void)fprintf(out, "  %s\n", PROBES[i]);
        }
    }
}

/* How often each method was called. Every disk fails and every power cut happens under these calls, so none may be missing. */
static bool print_methods(const sim_totals *totals, FILE *out)
{
    static const hf_method ELSEWHERE[] = {
        HF_METHOD_GET_SYSTEM_INFO, HF_METHOD_GET_CLUSTER_INFO, HF_METHOD_DESCRIBE_NAMESPACE, /* they need no store */
        HF_METHOD_TELL_LISTENER,                                                             /* the engine's own */
    };
    bool fine = true;
    (void)fprintf(out, "Calls:\n");
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        bool is_elsewhere = hf_method_is_of_clock((hf_method)i); /* those are the loop's */
        for (size_t j = 0; j < HF_COUNT_OF(ELSEWHERE); j++) {
            is_elsewhere = is_elsewhere || (hf_method)i == ELSEWHERE[j];
        }
        if (!is_elsewhere || totals->methods[i] > 0) {
            fine = print_count(out, totals->methods[i], hf_method_info_of((hf_method)i)->name) && fine;
        }
    }
    (void)fprintf(out, "%llu seeds had %d callers of queries and updates, who were told %llu outcomes\n",
                  (unsigned long long)totals->crowds, (int)SIM_ASKERS_MAX, (unsigned long long)totals->outcomes);
    return fine && totals->outcomes > 0;
}

/* Whether a probe is met by one seed in a hundred, as far as chance lets that many seeds tell: two standard deviations below it are
 * chance. Of 12,000 seeds that are 99, of 1,000,000 they are 9,800; of 1,000 the half decides. */
static bool has_share(uint64_t hits, uint64_t seeds)
{
    uint64_t due = seeds * PROBE_PERCENT_MIN / 100;
    uint64_t lacks = hits < due ? due - hits : 0;
    return lacks * lacks <= 4 * due && hits * 1000 >= seeds * SHARE_PERMILLE_MIN;
}

bool sim_totals_have_shares(const sim_totals *totals)
{
    bool fine = true;
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        fine = fine && has_share(totals->probe_seeds[i], totals->seeds);
    }
    return fine || totals->seeds < SHARE_SEEDS_MIN;
}

bool sim_totals_print(const sim_totals *totals, FILE *out)
{
    static const char *const FAULTS[] = {
#define TEXT(name, text) text,
        HF_SIM_FAULT_MAP(TEXT)};
#undef TEXT
    bool fine = true;
    (void)fprintf(
        out,
        "%llu seeds: %llu runs (at least %llu a seed), %llu inputs (%llu), %llu commits, %llu events, %llu "
        "crashes (%llu), %llu states rebuilt, %.1f days of virtual time\n",
        (unsigned long long)totals->seeds, (unsigned long long)totals->runs, (unsigned long long)totals->runs_min,
        (unsigned long long)totals->inputs, (unsigned long long)totals->inputs_min, (unsigned long long)totals->commits,
        (unsigned long long)totals->events, (unsigned long long)totals->faults[HF_SIM_CRASH],
        (unsigned long long)totals->crashes_min, (unsigned long long)totals->checks, (double)totals->virtual_s / 86400);
    (void)fprintf(out, "Faults:\n");
    for (int i = 0; i < HF_SIM_FAULT_COUNT; i++) {
        fine = print_count(out, totals->faults[i], FAULTS[i]) && fine;
    }
    fine = print_methods(totals, out) && fine;
    print_probes(totals, out);
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        fine = fine && totals->probes[i] > 0;
    }
    fine = sim_totals_have_shares(totals) && fine;
    (void)fprintf(out, "Transitions:\n");
    for (int id = 0; id < HF_MACHINE_COUNT; id++) {
        const hf_machine *machine = hf_machine_of((hf_machine_id)id);
        for (int i = 0; i < machine->state_count; i++) {
            for (int j = 0; j < machine->state_count; j++) {
                if ((machine->rules[i].next & HF_BIT(j)) != 0) {
                    char text[100];
                    (void)snprintf(text, sizeof text, "%s: %s -> %s", machine->name, machine->rules[i].name,
                                   machine->rules[j].name);
                    fine = print_count(out, totals->walked.counts[id][i][j], text) && fine;
                }
            }
        }
    }
    return fine;
}
