/* The life of a core: its options, its memory, how it is built empty, stopped and freed. hf_core_open (open.c) fills it from a store. */
#include "engine/core_private.h"

#include "base/uuid.h"
#include "engine/answer.h"
#include "engine/due.h"
#include "engine/filter.h"
#include "engine/history_read.h"
#include "engine/lister.h"
#include "engine/load.h"
#include "engine/machines/message.h"
#include "engine/matching.h"
#include "engine/namespaces.h"
#include "engine/zone.h"
#include "history/limits.h"
#include "run/stream.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void *count_allocate(void *state, size_t len, size_t align)
{
    hf_core *core = state;
    void *ptr = core->options.memory.allocate(core->options.memory.state, len, align);
    if (ptr != NULL) {
        core->used += len;
    }
    return ptr;
}

static void count_release(void *state, void *ptr, size_t len)
{
    hf_core *core = state;
    hf_assert(core->used >= len); /* memory is released once */
    core->used -= len;
    core->options.memory.release(core->options.memory.state, ptr, len);
}

/* engine-E2, at once: a message that cannot be decoded for want of memory must not be taken for a damaged one. */
static void *scratch_allocate(void *state, size_t len, size_t align)
{
    void *ptr = count_allocate(state, len, align);
    if (ptr == NULL) {
        hf_core_break(state, HF_ERR_NOMEM, "out of memory");
    }
    return ptr;
}

void *hf_core_alloc(hf_core *core, size_t len)
{
    void *ptr = core->memory.allocate(core->memory.state, len, 0);
    if (ptr == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    return memset(ptr, 0, len);
}

void hf_core_free_mem(hf_core *core, void *ptr, size_t len)
{
    hf_assert(ptr == NULL || core->used >= len);
    if (ptr != NULL) {
        core->memory.release(core->memory.state, ptr, len);
    }
}

void hf_core_break(hf_core *core, hf_status status, const char *format, ...)
{
    hf_assert(status != HF_OK); /* engine-E2 */
    if (core->status != HF_OK) {
        return;
    }
    core->status = status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(core->why, sizeof core->why, format, args);
    va_end(args);
}

/* engine-E2 */
static void runs_memory_failed(void *arg)
{
    hf_core_break(arg, HF_ERR_NOMEM, "out of memory");
}

/* ---- Options ----------------------------------------------------------------------------------------------------- */

#define SECOND INT64_C(1000000000)

static void set_limits(hf_core_limits *limits)
{
    limits->payload_len = limits->payload_len > 0 ? limits->payload_len : HF_PAYLOAD_LEN_MAX;
    limits->history_count = limits->history_count > 0 ? limits->history_count : HF_HISTORY_COUNT_MAX;
    limits->history_len = limits->history_len > 0 ? limits->history_len : HF_HISTORY_LEN_MAX;
    limits->suggest_count = limits->suggest_count > 0 ? limits->suggest_count : HF_HISTORY_SUGGEST_COUNT;
    limits->pending = limits->pending > 0 ? limits->pending : HF_PENDING_MAX;
    limits->buffered_count = limits->buffered_count > 0 ? limits->buffered_count : HF_BUFFERED_COUNT_MAX;
    limits->buffered_len = limits->buffered_len > 0 ? limits->buffered_len : HF_BUFFERED_LEN_MAX;
    limits->signals = limits->signals > 0 ? limits->signals : HF_SIGNALS_MAX;
    limits->stream_count = limits->stream_count > 0 ? limits->stream_count : HF_STREAM_COUNT_MAX;
    limits->stream_len = limits->stream_len > 0 ? limits->stream_len : HF_STREAM_LEN_MAX;
    limits->keep_alive = limits->keep_alive > 0 ? limits->keep_alive : HF_KEEP_ALIVE_SECONDS * SECOND;
}

static void set_defaults(hf_core_options *options)
{
    set_limits(&options->limits);
    if (options->store_memory.allocate == NULL) {
        options->store_memory = options->memory;
    }
    if (options->mem_max == 0) {
        options->mem_max = HF_CORE_MEM_DEFAULT;
    }
    if (options->journal_len_max == 0) {
        options->journal_len_max =
            options->mem_max / 2 < HF_JOURNAL_LEN_MAX ? options->mem_max / 2 : HF_JOURNAL_LEN_MAX;
    }
    if (options->batch_len_max == 0) {
        options->batch_len_max = 4u << 20;
    }
    if (options->open_len_max == 0) {
        options->open_len_max = options->mem_max / 8 > HF_OPEN_LEN_MIN ? options->mem_max / 8 : HF_OPEN_LEN_MIN;
    }
    options->poll_span = options->poll_span > 0 ? options->poll_span : 60 * SECOND;
    options->history_span = options->history_span > 0 ? options->history_span : 20 * SECOND;
    options->due_window = options->due_window > 0 ? options->due_window : 60 * SECOND;
    options->page_max = options->page_max > 0 ? options->page_max : 256;
    options->history_page_len = options->history_page_len > 0 ? options->history_page_len : HF_HISTORY_PAGE_LEN;
    options->tail_len_max = options->tail_len_max > 0 ? options->tail_len_max : 3072;
    options->stream_stops_max = options->stream_stops_max > 0 ? options->stream_stops_max : HF_STREAM_STOPS_MAX;
    options->row_len_max = options->row_len_max > 0 ? options->row_len_max : 128u << 10;
    if (options->names_max == 0) {
        options->names_max = options->mem_max / 1024 < 65536 ? options->mem_max / 1024 : 65536;
    }
    options->ended_max = options->ended_max > 0 ? options->ended_max : 512;
    options->tick_max = options->tick_max > 0 ? options->tick_max : HF_TICK_RUNS_MAX;
    options->messages_max = options->messages_max > 0 ? options->messages_max : HF_BATCH_MESSAGES_MAX;
    options->cancels_max = options->cancels_max > 0 ? options->cancels_max : HF_CANCELS_MAX;
    options->queue_span = options->queue_span > 0 ? options->queue_span : 300 * SECOND;
    options->queues_max = options->queues_max > 0 ? options->queues_max : 10000;
    options->block_size = options->block_size > 0 ? options->block_size : HF_BLOCK_RUNS;
    options->operation_kept = options->operation_kept > 0 ? options->operation_kept : HF_OPERATION_KEPT;
    options->trim_count = options->trim_count > 0 ? options->trim_count : 64;
    options->reset_portion_len = options->reset_portion_len > 0 ? options->reset_portion_len : HF_RESET_PORTION_LEN;
    options->reset_portion_count =
        options->reset_portion_count > 0 ? options->reset_portion_count : HF_RESET_PORTION_COUNT;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

hf_core *hf_core_new(const hf_core_options *options)
{
    hf_assert(options->memory.allocate != NULL && options->memory.release != NULL);
    hf_core *core = options->memory.allocate(options->memory.state, sizeof *core, 0);
    if (core == NULL) {
        return NULL;
    }
    memset(core, 0, sizeof *core);
    core->options = *options;
    set_defaults(&core->options);
    core->memory = (hf_allocator){count_allocate, count_release, core};
    hf_arena_init(&core->scratch, (hf_allocator){scratch_allocate, count_release, core});
    core->runs_memory = (hf_run_memory){.heap = core->memory,
                                        .scratch = &core->scratch,
                                        .on_failure = runs_memory_failed,
                                        .arg = core,
                                        .part_len_min = core->options.part_len_min};
    hf_effects_init(&core->effects);
    hf_op_init(&core->op);
    hf_map *const maps[] = {&core->runs, &core->names, &core->queues, &core->watches, &core->cold_runs, &core->pollers};
    for (size_t i = 0; i < HF_COUNT_OF(maps); i++) {
        hf_map_init(maps[i], core->memory);
    }
    hf_list *const lists[] = {&core->runs_all,        &core->lru,           &core->ended,         &core->dirty,
                              &core->touched,         &core->queues_all,    &core->reads,         &core->calls_all,
                              &core->inbox,           &core->ahead_replies, &core->task_polls,    &core->history_polls,
                              &core->changes.waiting, &core->suspects,      &core->queues_marked, &core->unsettled,
                              &core->zones,           &core->shut_workers,  &core->refused};
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        hf_list_init(lists[i]);
    }
    for (size_t i = 0; i < HF_COUNT_OF(core->calls_by_number); i++) {
        hf_list_init(&core->calls_by_number[i]);
    }
    hf_heap_init(&core->due, core->memory);
    hf_heap_init(&core->rated, core->memory);
    hf_heap_init(&core->cold_due, core->memory);
    hf_heap_init(&core->polls, core->memory);
    hf_buf_init(&core->row, core->memory, SIZE_MAX / 4);
    hf_buf_init(&core->events, core->memory, SIZE_MAX / 4);
    hf_deletions_init(core);
    hf_blocks_init(core);
    hf_resets_init(core);
    hf_operations_init(core);
    hf_list_init(&core->listers);
    hf_list_init(&core->namespaces_all);
    hf_list_init(&core->namespaces_gone);
    hf_map_init(&core->namespaces, core->memory);
    for (size_t i = 0; i < HF_COUNT_OF(core->batches); i++) {
        hf_writes_init(&core->batches[i].writes, &core->runs_memory, &core->row);
        hf_buf_init(&core->batches[i].journal, core->memory, SIZE_MAX / 4);
        hf_list_init(&core->batches[i].replies);
        hf_list_init(&core->batches[i].notices);
    }
    hf_names_init(&core->index, &core->runs_memory, core->mac_key);
    core->index.bits_off = core->options.name_bits_off;
    core->commit_next = 1;
    core->journal_first = 1;
    core->run_next = 1;
    core->order_next = 1;
    core->incarnation = 1;
    return core;
}

/* Takes any element out of a map; for the end, when order does not matter any more. */
static hf_map_node *map_pop(hf_map *map, size_t *bucket)
{
    for (; map->count > 0 && *bucket < map->bucket_count; (*bucket)++) {
        if (map->buckets[*bucket] != NULL) {
            hf_map_node *node = map->buckets[*bucket];
            hf_map_remove(map, node);
            return node;
        }
    }
    return NULL;
}

void hf_core_free(hf_core *core)
{
    if (core == NULL) {
        return;
    }
    hf_assert(hf_list_is_empty(&core->calls_all) && !core->committing);
    hf_node *node = NULL;
    while ((node = hf_list_first(&core->reads)) != NULL) {
        hf_read_free(core, HF_CONTAINER(node, hf_read, link));
    }
    hf_lists_deinit(core);
    hf_blocks_deinit(core);
    hf_operations_deinit(core);
    hf_namespaces_deinit(core);
    hf_messages_deinit(core);
    hf_deletions_deinit(core);
    hf_resets_deinit(core);
    hf_assert(core->resets.count == 0);
    while ((node = hf_list_pop_front(&core->runs_all)) != NULL) {
        hf_slot_free(core, HF_CONTAINER(node, hf_slot, all_link));
    }
    hf_shut_workers_free(core);
    while ((node = hf_list_pop_front(&core->queues_all)) != NULL) {
        hf_queue_free(core, HF_CONTAINER(node, hf_queue, all_link));
    }
    hf_map_node *found = NULL;
    size_t bucket = 0;
    while ((found = map_pop(&core->names, &bucket)) != NULL) {
        hf_name *name = HF_CONTAINER(found, hf_name, by_text);
        hf_owned_free(&core->runs_memory, &name->text);
        hf_core_free_mem(core, name, sizeof *name);
    }
    bucket = 0;
    hf_changes_free(core);
    while ((found = map_pop(&core->watches, &bucket)) != NULL) {
        hf_core_free_mem(core, HF_CONTAINER(found, hf_history_watch, by_number), sizeof(hf_history_watch));
    }
    for (size_t i = 0; i < core->cold_due.count; i++) {
        hf_core_free_mem(core, HF_CONTAINER(core->cold_due.entries[i].place, hf_cold_due, due.place),
                         sizeof(hf_cold_due));
    }
    hf_map_deinit(&core->runs);
    hf_map_deinit(&core->names);
    hf_map_deinit(&core->queues);
    hf_map_deinit(&core->pollers);
    hf_map_deinit(&core->watches);
    hf_map_deinit(&core->cold_runs);
    hf_heap_deinit(&core->due);
    hf_heap_deinit(&core->cold_due);
    hf_heap_deinit(&core->polls);
    hf_heap_deinit(&core->rated);
    for (size_t i = 0; i < HF_COUNT_OF(core->batches); i++) {
        hf_writes_deinit(&core->batches[i].writes);
        hf_buf_deinit(&core->batches[i].journal);
    }
    hf_core_free_mem(core, core->journal_lens.items, core->journal_lens.capacity * sizeof *core->journal_lens.items);
    hf_buf_deinit(&core->row);
    hf_buf_deinit(&core->events);
    hf_effects_deinit(&core->runs_memory, &core->effects);
    hf_names_deinit(&core->index);
    hf_filter_deinit(core);
    hf_zones_free(core);
    hf_arena_deinit(&core->scratch);
    hf_assert(core->used == 0);
    core->options.memory.release(core->options.memory.state, core, sizeof *core);
}

void hf_core_stop(hf_core *core, hf_status status, const char *why)
{
    hf_core_break(core, status, "%s", why);
    hf_node *node = NULL;
    hf_assert(core->status != HF_OK); /* engine-E2: it accepts no more calls */
    while ((node = hf_list_first(&core->calls_all)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, all);
        hf_call_set_failure(call, status, why);
        hf_call_now(call);
    }
}

hf_str hf_uuid_in(hf_arena *arena, uint64_t high, uint64_t low)
{
    char text[HF_UUID_LEN];
    hf_uuid_text(high, low, text);
    return hf_arena_copy(arena, hf_str_of(text));
}
