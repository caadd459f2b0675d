/* Deadlines: one entry per run, its earliest of any kind. An entry may be too early, which costs a look and nothing else, so
 * it is only ever moved forward by looking. Entries of runs that are not in memory are rows of the due table, read a window
 * ahead; each that comes up loads its run. */
#include "engine/core.h"

#include "base/canary.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t hf_run_next_due(const hf_run *run)
{
    if (!hf_run_is_open(run)) {
        return INT64_MAX;
    }
    int64_t due = hf_wft_deadline(run);
    if (run->run_deadline != 0) {
        due = least(due, run->run_deadline);
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        due = least(due, hf_activity_deadline(run->activities.items[i]));
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        if (run->timers.items[i]->state == HF_TIMER_STARTED) {
            due = least(due, run->timers.items[i]->fire_time);
        }
    }
    return due;
}

void hf_due_at(hf_core *core, hf_run *run, int64_t time)
{
    if (run->detached || time == INT64_MAX || (run->due.place != 0 && run->due.key <= time)) {
        return;
    }
    if (hf_heap_set(&core->due, &run->due, time) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

/* Activities and timers leave their lists when they end: goes by id, not by place. */
static bool fire_activities(hf_core *core, hf_run *run)
{
    bool news = false;
    int64_t last = 0;
    for (size_t i = 0; i < run->activities.count && core->status == HF_OK;) {
        hf_activity *activity = run->activities.items[i];
        if (activity->scheduled_id <= last) {
            i++;
            continue;
        }
        last = activity->scheduled_id;
        news = hf_activity_fire(core, run, activity) || news;
    }
    return news;
}

static bool fire_timers(hf_core *core, hf_run *run)
{
    bool news = false;
    for (;;) { /* in the order of their times; equal ones in the order of their start */
        hf_timer *first = NULL;
        for (size_t i = 0; i < run->timers.count; i++) {
            hf_timer *timer = run->timers.items[i];
            if (timer->state == HF_TIMER_STARTED && (first == NULL || timer->fire_time < first->fire_time)) {
                first = timer;
            }
        }
        if (first == NULL || core->status != HF_OK || !hf_timer_fire(core, run, first)) {
            return news;
        }
        news = true;
    }
}

void hf_due_fire(hf_core *core, hf_run *run)
{
    hf_core_use(core, run);
    hf_heap_remove(&core->due, &run->due);
    if (hf_run_next_due(run) > core->now.wall) {
        HF_PROBE(core, HF_PROBE_DUE_EARLY);
    }
    if (run->run_deadline != 0 && run->run_deadline <= core->now.wall && hf_run_is_open(run)) {
        hf_execution_time_out(core, run);
    }
    if (hf_run_is_open(run)) {
        bool news = fire_timers(core, run);
        news = fire_activities(core, run) || news;
        hf_wft_time_out(core, run);
        if (news) {
            hf_wft_schedule(core, run);
        }
    }
    hf_due_at(core, run, hf_run_next_due(run));
    hf_core_unuse(core, run);
}

static void fire_cold(hf_core *core, hf_cold_due *cold)
{
    hf_heap_remove(&core->cold_due, &cold->due);
    if (hf_run_find(core, cold->run) == NULL) {
        HF_PROBE(core, HF_PROBE_COLD_DUE);
        hf_run_load(core, cold->run); /* once it is here its own entry takes over */
    }
    hf_core_free_mem(core, cold, sizeof *cold);
}

static void read_ahead(hf_core *core)
{
    if (core->due_reading || !core->due_on_disk || core->due_until > core->now.wall + core->options.due_window / 2) {
        return;
    }
    hf_read *read = hf_read_new(core, HF_READ_DUE, HF_TABLE_DUE);
    if (read == NULL) {
        return;
    }
    core->due_reading = true;
    read->to = core->now.wall + core->options.due_window;
    core->due_reading_to = read->to;
    read->request.key = (hf_key){.a = core->due_until, .b = core->due_until_run};
    read->request.key_end = (hf_key){.a = read->to};
    read->request.row_max = core->options.page_max;
    hf_read_submit(core, read);
}

hf_status hf_due_add_cold(hf_core *core, int64_t time, int64_t run)
{
    hf_cold_due *cold = hf_core_alloc(core, sizeof *cold);
    if (cold == NULL) {
        return HF_ERR_NOMEM;
    }
    cold->run = run;
    if (hf_heap_set(&core->cold_due, &cold->due, time) != HF_OK) {
        hf_core_free_mem(core, cold, sizeof *cold);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return HF_ERR_NOMEM;
    }
    return HF_OK;
}

void hf_due_rows_read(hf_core *core, hf_read *read)
{
    core->due_reading = false;
    for (size_t i = 0; i < read->request.row_count && core->status == HF_OK; i++) {
        const hf_key *key = &read->request.rows[i].key;
        if (hf_run_find(core, key->b) == NULL) {
            (void)hf_due_add_cold(core, key->a, key->b);
        }
    }
    if (read->request.more) {
        const hf_key *last = &read->request.rows[read->request.row_count - 1].key;
        core->due_until = last->a;
        core->due_until_run = last->b + 1;
    } else {
        core->due_until = read->to;
        core->due_until_run = 0;
    }
    hf_due_tick(core);
}

void hf_due_tick(hf_core *core)
{
    hf_heap_node *node = NULL;
    while (core->status == HF_OK && (node = hf_heap_first(&core->cold_due)) != NULL && node->key <= core->now.wall) {
        fire_cold(core, HF_CONTAINER(node, hf_cold_due, due));
    }
    while (core->status == HF_OK && (node = hf_heap_first(&core->due)) != NULL && node->key <= core->now.wall) {
        hf_arena_reset(&core->scratch);
        hf_due_fire(core, HF_CONTAINER(node, hf_run, due));
    }
    if (core->status == HF_OK) {
        read_ahead(core);
    }
}
