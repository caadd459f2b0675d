/* Workflows whose tasks end the process, and how the engine must treat them.
 *
 * It counts every end of the process that a task caused since the task was last answered (engine-U1). While a suspect
 * runs alone, no other task is started for a worker of its process (engine-U3).
 *
 * Both hold exactly only while the clock is not set: a jump ends attempts that were not answered. A run that cannot be
 * read at the opening after a crash is not counted then, so engine-U1 is not checked if records are damaged. */
#include "sim/engine/workers.h"

bool sim_is_poison(sim_world *world, const sim_slot *slot)
{
    hf_str id = hf_str_of(slot->workflow_id);
    return slot->worker->in_process && hf_hash_bytes(world->seed, id.data, id.len) % 4 == 0 &&
           sim_evil(world, world->knobs.poison);
}

static sim_suspect *find(sim_world *world, bool is_activity, size_t run, int64_t scheduled_id)
{
    for (size_t i = 0; i < world->suspects.count; i++) {
        sim_suspect *each = &world->suspects.items[i];
        if (each->is_activity == is_activity && each->run == run && each->scheduled_id == scheduled_id) {
            return each;
        }
    }
    return NULL;
}

static sim_suspect *find_task(sim_world *world, const sim_slot *slot)
{
    size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
    bool is_activity = slot->kind == SIM_ACTIVITY;
    return find(world, is_activity, run, is_activity ? slot->scheduled_id : 0);
}

/* Whether the engine thinks otherwise than the worker, which got a workflow task that has ended since: a full buffer ends one. */
static bool is_over(const sim_world *world, const sim_slot *slot)
{
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (!HF_SLOT(run)->loading && !HF_SLOT(run)->bad && slot->kind != SIM_ACTIVITY &&
            hf_str_equal(hf_owned_str(&run->run_id), hf_str_of(slot->run_id))) {
            return run->wft.state != HF_WFT_STARTED || run->wft.started_id != slot->started_id;
        }
    }
    return false;
}

void sim_poison(sim_world *world, sim_slot *slot)
{
    sim_fault(world, HF_SIM_CRASH_OF_TASK);
    sim_trace(world, "worker %d.%d: the task of %s ends the process", slot->worker->index, slot->kind,
              slot->workflow_id);
    bool is_activity = slot->kind == SIM_ACTIVITY;
    bool is_durable = is_activity || !slot->worker->run_ahead || world->was_left_open;
    sim_suspect *suspect = find_task(world, slot);
    if (suspect == NULL) {
        suspect = SIM_PUSH(&world->suspects);
        suspect->is_activity = is_activity;
        suspect->run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
        suspect->scheduled_id = is_activity ? slot->scheduled_id : 0;
    }
    /* Otherwise its start may be lost, or it may have timed out without its worker knowing. */
    bool is_fresh = sim_now(world).wall - slot->started_time < SIM_SECOND / 2;
    if (is_activity && slot->attempt != suspect->attempt + 1) {
        suspect->crashes = 0; /* an attempt in between has ended in another way */
    }
    suspect->attempt = slot->attempt;
    if (is_durable && is_fresh && world->core != NULL && !is_over(world, slot)) {
        suspect->crashes++;
    }
    sim_world_crash(world);
}

void sim_suspect_reset(sim_world *world, size_t run, int64_t scheduled_id)
{
    sim_suspect *suspect = find(world, true, run, scheduled_id);
    if (suspect != NULL) {
        suspect->crashes = 0; /* attempts have other numbers from now on */
    }
}

void sim_suspect_answered(sim_world *world, const sim_answer *answer)
{
    bool is_activity = answer->method != HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED &&
                       answer->method != HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED;
    sim_suspect *suspect = find(world, is_activity, answer->run, is_activity ? answer->scheduled_id : 0);
    if (suspect != NULL && answer->method != HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
        suspect->crashes = 0;
    }
}

/* The engine's count of crashes; -1 = the run is not in memory. */
static int64_t counted(const sim_world *world, const sim_slot *slot)
{
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad ||
            !hf_str_equal(hf_owned_str(&run->run_id), hf_str_of(slot->run_id))) {
            continue;
        }
        if (slot->kind != SIM_ACTIVITY) {
            return run->wft.task.crashes;
        }
        for (size_t i = 0; i < run->activities.count; i++) {
            const hf_activity *activity = run->activities.items[i];
            if (sim_item_number(activity->activity_id) == slot->scheduled_id) {
                return activity->attempt == slot->attempt ? (int64_t)activity->task.crashes : -1;
            }
        }
    }
    return -1;
}

void sim_check_counted(sim_world *world, const sim_slot *slot)
{
    const sim_suspect *suspect = find_task(world, slot);
    bool is_exact = !world->knobs.has_clock_steps && !world->knobs.has_damage;
    if (suspect == NULL || world->core == NULL || !is_exact || !slot->worker->in_process) {
        return;
    }
    bool is_next = slot->kind != SIM_ACTIVITY || slot->attempt == suspect->attempt + 1;
    int64_t count = counted(world, slot);
    if (is_next && count >= 0 && count < suspect->crashes) {
        sim_fail(world, "engine-U1: a task of run %s has ended %d processes, the engine has counted %lld", slot->run_id,
                 suspect->crashes, (long long)count);
    }
}

static bool is_after(const hf_core *core, bool is_started, bool again, uint64_t incarnation, int64_t started_time)
{
    return is_started && !again && incarnation == core->incarnation && started_time > core->alone.since;
}

void sim_check_alone(sim_world *world)
{
    const hf_core *core = world->core;
    if (core->alone.run == 0 || world->knobs.has_clock_steps || core->alone.until <= world->mono) {
        return;
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || !hf_run_is_open(run)) {
            continue;
        }
        const hf_wft *wft = &run->wft;
        bool is_after_it =
            is_after(core, wft->state == HF_WFT_STARTED, wft->again, wft->incarnation, wft->started_time);
        for (size_t i = 0; i < run->activities.count; i++) {
            const hf_activity *each = run->activities.items[i];
            is_after_it = is_after_it || is_after(core, each->state == HF_ACTIVITY_STARTED, each->again,
                                                  each->incarnation, each->started_time);
        }
        if (is_after_it) {
            sim_fail(world, "engine-U3: a task of run %lld was started while one of run %lld was to be alone",
                     (long long)run->number, (long long)core->alone.run);
        }
    }
}
