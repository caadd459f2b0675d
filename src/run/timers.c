/* The timers of a run, in the order of their events. Most runs have a few. As many as a history holds may be pending, so from INDEX_FROM on
 * they are also found by their ids in a table: a workflow task that starts 10,000 of them would take seconds otherwise, and all other runs
 * would wait for it. */
#include "run/machines.h"

#include "base/rng.h"

#include <string.h>

enum { INDEX_FROM = 16 };

static uint64_t hash_of(hf_str id)
{
    return hf_hash_bytes(5, id.data, id.len);
}

static void index_one(hf_run_memory *memory, hf_run *run, hf_timer *timer)
{
    if (hf_map_insert(run->timer_index, &timer->by_id, hash_of(hf_owned_str(&timer->id))) != HF_OK) {
        hf_run_memory_fail(memory);
    }
}

static void begin_index(hf_run_memory *memory, hf_run *run)
{
    hf_assert(run->timer_index == NULL);
    run->timer_index = hf_run_alloc(memory, sizeof *run->timer_index);
    if (run->timer_index == NULL) {
        return;
    }
    hf_map_init(run->timer_index, memory->heap);
    for (size_t i = 0; i < run->timers.count && memory->status == HF_OK; i++) {
        index_one(memory, run, run->timers.items[i]);
    }
}

static void end_index(hf_run_memory *memory, hf_run *run)
{
    if (run->timer_index != NULL) {
        hf_map_deinit(run->timer_index);
        hf_run_release(memory, run->timer_index, sizeof *run->timer_index);
        run->timer_index = NULL;
    }
}

hf_timer *hf_timer_add(hf_run_memory *memory, hf_run *run, int64_t started_id, hf_str timer_id, int64_t fire_time)
{
    if (!HF_VEC_RESERVE(memory, &run->timers)) {
        return NULL;
    }
    hf_timer *timer = hf_run_alloc(memory, sizeof *timer);
    if (timer == NULL) {
        return NULL;
    }
    timer->started_id = started_id;
    timer->fire_time = fire_time;
    timer->state = HF_TIMER_STARTED;
    hf_owned_set(memory, &timer->id, timer_id);
    run->timers.items[run->timers.count++] = timer;
    if (run->timer_index != NULL) {
        index_one(memory, run, timer);
    } else if (run->timers.count == INDEX_FROM) {
        begin_index(memory, run);
    }
    return timer;
}

/* Index of the first timer whose event is not before this one. */
static size_t place_of(const hf_run *run, int64_t started_id)
{
    size_t low = 0;
    size_t high = run->timers.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->timers.items[middle]->started_id < started_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hf_timer *hf_run_timer(const hf_run *run, int64_t started_id)
{
    size_t place = place_of(run, started_id);
    bool is_there = place < run->timers.count && run->timers.items[place]->started_id == started_id;
    return is_there ? run->timers.items[place] : NULL;
}

hf_timer *hf_run_timer_by_id(const hf_run *run, hf_str timer_id)
{
    if (run->timer_index != NULL) {
        hf_map_node *node = hf_map_first(run->timer_index, hash_of(timer_id));
        for (; node != NULL; node = hf_map_next(node)) {
            hf_timer *timer = HF_CONTAINER(node, hf_timer, by_id);
            if (hf_str_equal(hf_owned_str(&timer->id), timer_id)) {
                return timer;
            }
        }
        return NULL;
    }
    for (size_t i = 0; i < run->timers.count; i++) {
        if (hf_str_equal(hf_owned_str(&run->timers.items[i]->id), timer_id)) {
            return run->timers.items[i];
        }
    }
    return NULL;
}

static void timer_free(hf_run_memory *memory, hf_timer *timer)
{
    hf_assert(timer != NULL);
    hf_owned_free(memory, &timer->id);
    hf_run_release(memory, timer, sizeof *timer);
}

void hf_timer_drop(hf_run_memory *memory, hf_run *run, hf_timer *timer)
{
    hf_assert(run->timers.count > 0 && timer->state != HF_TIMER_STARTED); /* it has fired or was canceled */
    size_t place = place_of(run, timer->started_id);
    hf_assert(place < run->timers.count && run->timers.items[place] == timer);
    if (run->timer_index != NULL) {
        hf_map_remove(run->timer_index, &timer->by_id);
    }
    run->timers.count--;
    memmove(&run->timers.items[place], &run->timers.items[place + 1], (run->timers.count - place) * sizeof(hf_timer *));
    timer_free(memory, timer);
    if (run->timers.count == 0) {
        end_index(memory, run);
    }
}

void hf_timers_free(hf_run_memory *memory, hf_run *run)
{
    end_index(memory, run);
    for (size_t i = 0; i < run->timers.count; i++) {
        timer_free(memory, run->timers.items[i]);
    }
    run->timers.count = 0;
}
