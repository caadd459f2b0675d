/* Deadlines: one entry per run, its earliest of any kind. An entry may be too early, which costs nothing but a look at the run, so
 * an entry is moved to a later time only by such a look. Entries of runs that are not in memory are rows of the due table, read a window
 * ahead; a run is loaded when its entry is due.
 *
 * When very many deadlines come at once, a tick fires those of at most tick_max runs, and calls are taken in between. If the store
 * is free, the batch then counts as full and must be sealed before the next tick, so that the first runs do not wait for the last.
 * While a commit is under way a larger batch delays nobody, and the batch goes on growing. Runs on disk wait until those in memory
 * have had their turn, so that they are not all loaded at once. */
#include "engine/due.h"

#include "base/canary.h"
#include "engine/core_private.h"
#include "engine/cursor.h"
#include "engine/delete.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"

#define COLD_SHARE 8 /* deadlines of runs on disk may take an eighth of the memory */

void hf_due_at(hf_core *core, hf_run *run, int64_t time)
{
    hf_assert(!HF_SLOT(run)->bad);
    if (time == INT64_MAX || (HF_SLOT(run)->due.place != 0 && HF_SLOT(run)->due.key <= time)) {
        return;
    }
    if (hf_heap_set(&core->due, &HF_SLOT(run)->due, time) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

/* The earliest deadline of a run, also of tasks that are not written. */
static int64_t next_due(const hf_run *run)
{
    int64_t due = hf_run_next_due(run);
    int64_t speculative = hf_speculative_due(run);
    return speculative < due ? speculative : due;
}

/* Activities and timers leave their lists when they end, so an item names its event and not its index. */
typedef struct hf_due_item {
    int64_t time;
    int64_t id; /* of the event that began it */
    bool is_timer;
} hf_due_item;

/* Inserts in the order of time; items of the same time in the order in which they began. */
static void insert(hf_due_item *items, size_t count, hf_due_item item)
{
    size_t at = count;
    for (; at > 0; at--) {
        const hf_due_item *before = &items[at - 1];
        if (before->time < item.time || (before->time == item.time && before->id < item.id)) {
            break;
        }
        items[at] = *before;
    }
    items[at] = item;
    hf_assert(at == 0 || items[at - 1].time <= item.time);
}

static hf_due_item *find_due(hf_core *core, const hf_run *run, size_t *ret_count)
{
    size_t count = 0;
    hf_due_item *items = HF_ARENA_ARRAY(&core->scratch, hf_due_item, run->timers.count + run->activities.count);
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        const hf_timer *timer = run->timers.items[i];
        if (hf_timer_is_due(core, timer)) {
            insert(items, count++, (hf_due_item){timer->fire_time, timer->started_id, true});
        }
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        int64_t deadline = hf_activity_deadline(run->activities.items[i]);
        if (deadline <= core->now.wall) {
            insert(items, count++, (hf_due_item){deadline, run->activities.items[i]->scheduled_id, false});
        }
    }
    *ret_count = count;
    return items;
}

/* Fires the deadlines in the order of their times, because a workflow may wait for the first of several. */
static bool fire_all(hf_core *core, hf_run *run)
{
    bool news = false;
    size_t count = 0;
    const hf_due_item *items = find_due(core, run, &count);
    for (size_t i = 0; i < count && core->status == HF_OK; i++) {
        hf_timer *timer = items[i].is_timer ? hf_run_timer(run, items[i].id) : NULL;
        bool needs_task = timer != NULL && hf_timer_is_due(core, timer) && hf_wft_state_now(run) == HF_WFT_NONE;
        if (needs_task && hf_execution_is_too_long(core, run, 2)) { /* with the task that it needs */
            return false;
        }
        hf_activity *activity = items[i].is_timer ? NULL : hf_run_activity(run, items[i].id);
        news = (timer != NULL && hf_timer_fire(core, run, timer)) || news;
        news = (activity != NULL && hf_activity_fire(core, run, activity)) || news;
    }
    return news;
}

/* A run that has ended, and is kept for a span of its own: it goes when that is over. As few at a time as retention deletes. */
static void retire(hf_core *core, hf_run *run)
{
    int64_t due = hf_run_next_due(run);
    bool is_over = due <= core->now.wall; /* engine-K4 */
    bool is_full = core->deletions.count - core->deletions.stuck >= HF_RETIRING_MAX;
    if (is_over && !is_full) {
        HF_PROBE(core, HF_PROBE_OWN_SPAN_OVER);
        hf_deletion_mark(core, run);
    } else {
        hf_due_at(core, run, is_over ? core->now.wall + HF_HOUSE_PACE : due);
    }
}

void hf_due_fire(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->bad && !HF_SLOT(run)->loading && HF_SLOT(run)->due.place != 0);
    hf_core_use(core, run);
    hf_heap_remove(&core->due, &HF_SLOT(run)->due);
    if (next_due(run) > core->now.wall) {
        HF_PROBE(core, HF_PROBE_DUE_EARLY);
    }
    if (run->kind == HF_KIND_OPERATION) {
        hf_operation_fire(core, run);
        if (HF_SLOT(run)->operation == NULL) { /* else it goes on, and has another deadline in the end */
            hf_due_at(core, run, next_due(run));
        }
        hf_core_unuse(core, run);
        return;
    }
    if (!hf_run_is_open(run)) {
        retire(core, run);
        hf_core_unuse(core, run);
        return;
    }
    if (run->run_deadline != 0 && run->run_deadline <= core->now.wall && hf_run_is_open(run)) {
        hf_execution_time_out(core, run);
    }
    if (hf_run_is_open(run) && run->first_task_at != 0 && run->first_task_at <= core->now.wall) {
        hf_wft_schedule(core, run);
    }
    if (hf_run_is_open(run)) {
        bool news = fire_all(core, run);
        if (hf_run_is_open(run)) {
            hf_wft_time_out(core, run);
        }
        if (news) {
            hf_wft_schedule(core, run);
        }
    }
    if (!HF_SLOT(run)->fetch_due) { /* else it fires again when the event is here */
        hf_due_at(core, run, next_due(run));
    }
    hf_core_unuse(core, run);
}

void hf_due_again(hf_core *core, hf_run *run)
{
    hf_due_at(core, run, next_due(run));
    if (HF_SLOT(run)->due.place != 0) {
        hf_core_reset_scratch(core);
        hf_due_fire(core, run);
    }
}

/* ---- Runs that are not in memory --------------------------------------------------------------------------------------- */

static uint64_t cold_hash(int64_t run)
{
    return hf_hash_mix(5, (uint64_t)run);
}

static hf_cold_due *cold_find(hf_core *core, int64_t run)
{
    uint64_t hash = cold_hash(run);
    for (hf_map_node *node = hf_map_first(&core->cold_runs, hash); node != NULL; node = hf_map_next(node)) {
        hf_cold_due *cold = HF_CONTAINER(node, hf_cold_due, by_run);
        if (cold->run == run) {
            return cold;
        }
    }
    return NULL;
}

static void cold_free(hf_core *core, hf_cold_due *cold)
{
    hf_assert(cold->due.place != 0); /* in the heap and in the map, or in neither */
    hf_heap_remove(&core->cold_due, &cold->due);
    hf_map_remove(&core->cold_runs, &cold->by_run);
    hf_core_free_mem(core, cold, sizeof *cold);
}

void hf_due_forget_cold(hf_core *core, int64_t run)
{
    hf_cold_due *cold = cold_find(core, run);
    if (cold != NULL) {
        HF_PROBE(core, HF_PROBE_COLD_DUE_STALE);
        cold_free(core, cold);
    }
}

static void fire_cold(hf_core *core, hf_cold_due *cold)
{
    int64_t number = cold->run;
    cold_free(core, cold);
    if (hf_run_find(core, number) != NULL) { /* it is being loaded already */
        return;
    }
    HF_PROBE(core, HF_PROBE_COLD_DUE);
    hf_run *run = hf_run_load(core, number); /* once it is loaded its own entry is used */
    if (run != NULL) {
        HF_SLOT(run)->due_load = true;
        core->due_loads++;
        hf_assert(core->due_loads <= core->options.tick_max); /* they are not all loaded at once */
    }
}

/* Whether enough deadlines on disk are known, so that reading more would only take memory. The known ones are the earliest. Reading
 * goes on when they have been fired, or when a deadline that was not read may be due before them. */
static bool knows_enough(const hf_core *core)
{
    const hf_heap_node *first = hf_heap_first(&core->cold_due);
    bool many = core->cold_due.count * sizeof(hf_cold_due) > core->options.mem_max / COLD_SHARE;
    hf_assert(!many || first != NULL);
    return many && (first->key <= core->now.wall || core->due_cursor.a > core->now.wall);
}

int64_t hf_due_read_at(const hf_core *core)
{
    if (core->due_cursor.is_reading || !core->due_cursor.has_rows) {
        return INT64_MAX;
    }
    if (knows_enough(core)) {
        return core->due_cursor.a > core->now.wall ? core->due_cursor.a : INT64_MAX;
    }
    return core->due_cursor.a - core->options.due_window / 2;
}

static void read_ahead(hf_core *core)
{
    if (hf_due_read_at(core) > core->now.wall) {
        return;
    }
    hf_read *read = hf_read_new(core, HF_READ_DUE, HF_TABLE_DUE);
    if (read == NULL) {
        return;
    }
    hf_cursor_begin(&core->due_cursor, &read->request, HF_STR(""), core->now.wall + core->options.due_window);
    read->request.row_max = core->options.page_max;
    hf_read_submit(core, read);
}

hf_status hf_due_add_cold(hf_core *core, int64_t time, int64_t run)
{
    hf_assert(time != INT64_MAX);
    hf_cold_due *cold = cold_find(core, run);
    if (cold != NULL) { /* a row was read while another was written: keep the earlier time, which is never too late */
        return time < cold->due.key ? hf_heap_set(&core->cold_due, &cold->due, time) : HF_OK;
    }
    cold = hf_core_alloc(core, sizeof *cold);
    if (cold == NULL) {
        return HF_ERR_NOMEM;
    }
    cold->run = run;
    if (hf_heap_set(&core->cold_due, &cold->due, time) != HF_OK ||
        hf_map_insert(&core->cold_runs, &cold->by_run, cold_hash(run)) != HF_OK) {
        hf_heap_remove(&core->cold_due, &cold->due);
        hf_core_free_mem(core, cold, sizeof *cold);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return HF_ERR_NOMEM;
    }
    return HF_OK;
}

void hf_due_rows_read(hf_core *core, hf_read *read)
{
    for (size_t i = 0; i < read->request.row_count && core->status == HF_OK; i++) {
        const hf_key *key = &read->request.rows[i].key;
        if (hf_run_find(core, key->b) == NULL) {
            (void)hf_due_add_cold(core, key->a, key->b);
        }
    }
    (void)hf_cursor_end(&core->due_cursor, &read->request);
    hf_due_tick(core);
}

bool hf_due_is_full(const hf_core *core)
{
    return core->fired >= core->options.tick_max && !core->committing;
}

/* The first of a heap, if its time has come. */
static hf_heap_node *due_now(const hf_core *core, const hf_heap *heap)
{
    hf_heap_node *node = hf_heap_first(heap);
    return core->status == HF_OK && node != NULL && node->key <= core->now.wall ? node : NULL;
}

void hf_due_tick(hf_core *core)
{
    hf_heap_node *node = NULL;
    for (size_t i = 0; i < core->options.tick_max && !hf_due_is_full(core); i++) {
        node = due_now(core, &core->due);
        if (node == NULL) {
            break;
        }
        hf_run *run = &HF_CONTAINER(node, hf_slot, due)->run;
        hf_core_reset_scratch(core);
        hf_due_fire(core, run);
        core->fired += hf_node_is_linked(&HF_SLOT(run)->batch_link) ? 1 : 0;
    }
    if (due_now(core, &core->due) != NULL) {
        HF_PROBE(core, HF_PROBE_TICK_FULL);
    } else {
        while (!hf_due_is_full(core) && core->due_loads < core->options.tick_max &&
               (node = due_now(core, &core->cold_due)) != NULL) {
            fire_cold(core, HF_CONTAINER(node, hf_cold_due, due));
        }
    }
    if (core->status == HF_OK) {
        read_ahead(core);
    }
}
