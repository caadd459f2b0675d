#include "engine/core_private.h"

#include "base/canary.h"
#include "base/uuid.h"
#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/due.h"
#include "engine/filter.h"
#include "engine/history_read.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/notice.h"
#include "engine/poll.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "engine/zone.h"
#include "history/limits.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* ---- Memory ---------------------------------------------------------------------------------------------------------- */

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
    core->used -= len;
    core->options.memory.release(core->options.memory.state, ptr, len);
}

/* engine-E2 */
static void runs_memory_failed(void *arg)
{
    hf_core_break(arg, HF_ERR_NOMEM, "out of memory");
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

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
            options->mem_max / 4 < HF_JOURNAL_LEN_MAX ? options->mem_max / 4 : HF_JOURNAL_LEN_MAX;
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
    options->row_len_max = options->row_len_max > 0 ? options->row_len_max : 128u << 10;
    if (options->names_max == 0) {
        options->names_max = options->mem_max / 1024 < 65536 ? options->mem_max / 1024 : 65536;
    }
    options->ended_max = options->ended_max > 0 ? options->ended_max : 512;
    options->tick_max = options->tick_max > 0 ? options->tick_max : HF_TICK_RUNS_MAX;
    options->messages_max = options->messages_max > 0 ? options->messages_max : HF_BATCH_MESSAGES_MAX;
    options->queue_span = options->queue_span > 0 ? options->queue_span : 300 * SECOND;
    options->queues_max = options->queues_max > 0 ? options->queues_max : 10000;
    options->trim_count = options->trim_count > 0 ? options->trim_count : 64;
    options->reset_portion_len = options->reset_portion_len > 0 ? options->reset_portion_len : HF_RESET_PORTION_LEN;
    options->reset_portion_count =
        options->reset_portion_count > 0 ? options->reset_portion_count : HF_RESET_PORTION_COUNT;
}

hf_core *hf_core_new(const hf_core_options *options)
{
    hf_core *core = options->memory.allocate(options->memory.state, sizeof *core, 0);
    if (core == NULL) {
        return NULL;
    }
    memset(core, 0, sizeof *core);
    core->options = *options;
    set_defaults(&core->options);
    core->memory = (hf_allocator){count_allocate, count_release, core};
    hf_arena_init(&core->scratch, core->memory);
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
    hf_list *const lists[] = {&core->runs_all,    &core->lru,           &core->ended,      &core->dirty,
                              &core->touched,     &core->queues_all,    &core->reads,      &core->calls_all,
                              &core->inbox,       &core->ahead_replies, &core->task_polls, &core->history_polls,
                              &core->suspects,    &core->queues_marked, &core->unsettled,  &core->zones,
                              &core->shut_workers};
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
    hf_resets_init(core);
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
    hf_deletions_deinit(core);
    hf_resets_deinit(core);
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
    while ((node = hf_list_first(&core->calls_all)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, all);
        hf_call_set_failure(call, status, why);
        hf_call_now(call);
    }
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

hf_str hf_uuid(hf_arena *arena, uint64_t high, uint64_t low)
{
    char text[HF_UUID_LEN];
    hf_uuid_text(high, low, text);
    return hf_arena_copy(arena, hf_str_of(text));
}

/* ---- Inputs ---------------------------------------------------------------------------------------------------------- */

bool hf_core_is_whole(hf_core *core)
{
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return core->status == HF_OK;
}

void hf_core_reset_scratch(hf_core *core)
{
    (void)hf_core_is_whole(core);
    hf_arena_reset(&core->scratch);
}

static bool begin(hf_core *core, hf_clock now)
{
    core->now = now;
    core->step++;
    hf_resets_begin_step(core);
    hf_core_reset_scratch(core);
    hf_op_init(&core->op);
    return core->status == HF_OK;
}

/* The end of a step: resets and deletions go on, and runs get the messages that others have sent them, each a step of its own. Of very many
 * some stay for the next step, so that other inputs come in between, and some for the next batch, so that the commit of others does not
 * wait for all of them. */
static void pump(hf_core *core)
{
    if (!hf_list_is_empty(&core->inbox)) {
        hf_inbox_pump(core);
    }
    if (!hf_list_is_empty(&core->deletions.next)) {
        hf_deletions_pump(core);
    }
    if (!hf_list_is_empty(&core->resets.next)) {
        hf_resets_pump(core);
    }
    if (!hf_list_is_empty(&core->unsettled)) {
        hf_unwritten_settle(core);
    }
}

/* The end of a portion of steps: tasks that became ready meet polls. Not after each call: a workflow task that waits for the end of the
 * portion brings everything with it that comes until then, as events; after its start they would be buffered. */
static void end(hf_core *core)
{
    pump(core);
    hf_match_all(core);
    hf_assert(core->status != HF_OK || hf_list_is_empty(&core->queues_marked));
}

static void fail_at_once(hf_call *call, hf_status status, const char *why)
{
    hf_call_set_failure(call, status, why);
    hf_call_now(call);
}

void hf_core_call(hf_core *core, hf_call *call, hf_clock now)
{
    hf_assert(call->done != NULL && call->method < HF_METHOD_COUNT && call->arena != NULL);
    core->calls++;
    call->status = HF_OK;
    call->detail_type = NULL;
    call->detail = NULL;
    call->is_final = false;
    call->holds = 0;
    call->place = HF_PLACE_NONE;
    call->deadline.place = 0;
    call->deadline_link = (hf_node){0};
    hf_list_push_back(&core->calls_all, &call->all);
    hf_list_push_back(&core->calls_by_number[call->number % HF_CALL_BUCKETS], &call->by_number);
    if (!begin(core, now)) {
        fail_at_once(call, core->status, core->why);
        return;
    }
    if (core->queues.count > core->options.queues_max) {
        hf_queues_tidy(core);
    }
    hf_input(core, call); /* if that breaks the core, hf_core_stop answers it */
    hf_suspects_tick(core);
    pump(core);
}

hf_call *hf_core_find_call(const hf_core *core, uint64_t number)
{
    HF_LIST_EACH(node, &core->calls_by_number[number % HF_CALL_BUCKETS])
    {
        hf_call *call = HF_CONTAINER(node, hf_call, by_number);
        if (call->number == number) {
            return call;
        }
    }
    return NULL;
}

void hf_core_cancel(hf_core *core, hf_call *call, hf_clock now)
{
    if (!begin(core, now)) {
        return;
    }
    if (call->place == HF_PLACE_QUEUE) {
        hf_match_unpark(core, call);
    } else if (call->place == HF_PLACE_WATCH) {
        hf_watch_remove(core, call);
    } else if (call->place == HF_PLACE_QUERY) {
        hf_query_drop(core, call);
    } else if (call->place == HF_PLACE_UPDATE) {
        hf_update_drop(core, call);
    } else {
        return; /* its answer is on its way */
    }
    fail_at_once(call, HF_ERR_CANCELED, "the caller went away");
}

void hf_run_take_back(hf_core *core, hf_run *run, const hf_token *token)
{
    if (!HF_SLOT(run)->bad && token->kind == HF_TASK_QUERY) {
        hf_query_again(core, run, token);
    }
    if (HF_SLOT(run)->bad || !hf_run_is_open(run)) {
        return;
    }
    hf_core_use(core, run);
    if (hf_wft_holds(core, run, token)) {
        hf_wft_again(core, run);
        hf_speculative_again(core, run); /* it is one of the two */
    }
    hf_activity *activity = token->kind == HF_TASK_ACTIVITY ? hf_run_activity(run, token->scheduled_id) : NULL;
    if (activity != NULL && hf_activity_given(activity) == token->attempt && activity->started_time == token->stamp) {
        hf_activity_again(core, activity);
    }
    hf_core_unuse(core, run);
}

void hf_core_unwanted(hf_core *core, hf_str task_token, hf_clock now)
{
    hf_token token;
    if (!begin(core, now) || !hf_token_decode(core, task_token, &token) || token.run >= core->run_next ||
        hf_resets_make(core, token.run)) {
        return;
    }
    hf_run *run = hf_run_load(core, token.run); /* the task's timeout would do the same, but may be days away */
    if (run != NULL && !HF_SLOT(run)->loading) {
        hf_run_take_back(core, run, &token);
    } else if (run != NULL && HF_VEC_RESERVE(&core->runs_memory, &HF_SLOT(run)->unwanted)) {
        HF_SLOT(run)->unwanted.items[HF_SLOT(run)->unwanted.count++] = token;
    }
    pump(core);
}

bool hf_core_zone_wanted(const hf_core *core, hf_str *ret_name)
{
    return core->status == HF_OK && hf_zone_wanted(core, ret_name);
}

void hf_core_zone(hf_core *core, hf_str name, hf_str bytes, hf_clock now)
{
    if (begin(core, now)) {
        hf_zone_arrived(core, name, bytes);
        pump(core);
    }
}

void hf_core_tick(hf_core *core, hf_clock now)
{
    if (!begin(core, now)) {
        return;
    }
    hf_polls_expire(core);
    hf_rates_tick(core);
    hf_due_tick(core);
    hf_suspects_tick(core);
    end(core);
    hf_queues_tidy(core);
}

bool hf_core_is_full(const hf_core *core)
{
    return core->status == HF_OK && core->open_len >= core->options.open_len_max;
}

bool hf_core_is_late(const hf_core *core, hf_clock now)
{
    const hf_heap_node *first = hf_heap_first(&core->due);
    return core->status == HF_OK && first != NULL && first->key <= now.wall;
}

hf_clock hf_core_next(const hf_core *core)
{
    hf_clock next = {INT64_MAX, INT64_MAX};
    const hf_heap_node *first = hf_heap_first(&core->due);
    const hf_heap_node *cold = hf_heap_first(&core->cold_due);
    const hf_call *poll = hf_polls_first(core);
    const hf_node *queue = hf_list_first(&core->queues_all);
    bool full = hf_due_is_full(core); /* then the driver seals the batch first */
    if (first != NULL && !full) {
        next.wall = first->key;
    }
    if (cold != NULL && !full && core->due_loads < core->options.tick_max && cold->key < next.wall) {
        next.wall = cold->key;
    }
    int64_t ahead = hf_due_read_at(core);
    next.wall = ahead < next.wall ? ahead : next.wall;
    if (hf_inbox_has_work(core) || hf_deletions_have_work(core) || hf_resets_have_work(core) ||
        !hf_list_is_empty(&core->queues_marked)) {
        return (hf_clock){next.wall, core->now.mono}; /* at once */
    }
    next.mono = hf_suspects_next(core);
    next.mono = hf_rates_next(core) < next.mono ? hf_rates_next(core) : next.mono;
    if (poll != NULL && poll->deadline.key < next.mono) {
        next.mono = poll->deadline.key;
    }
    if (queue != NULL) {
        int64_t idle = HF_CONTAINER_CONST(queue, hf_queue, all_link)->used_at + core->options.queue_span;
        next.mono = idle < next.mono ? idle : next.mono;
    }
    return next;
}

/* ---- Commit ---------------------------------------------------------------------------------------------------------- */

void hf_core_release(hf_core *core, hf_clock now)
{
    if (!hf_core_is_whole(core)) {
        return;
    }
    if (!hf_list_is_empty(&core->queues_marked) && begin(core, now)) {
        hf_match_all(core);
    }
    if (hf_core_is_whole(core)) {
        hf_calls_publish(&core->ahead_replies);
    }
}

/* Phase 1: calls that wait for new events are answered while the events are still in the runs' logs; runs that have closed get
 * their rows. */
static void settle_runs(hf_core *core, hf_commit_batch *batch)
{
    HF_LIST_EACH(node, &core->touched)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, batch_link)->run;
        hf_watch_wake(core, run);
        if (HF_UNLIKELY(HF_SLOT(run)->notices != 0)) {
            hf_notice_gather(core, batch, run);
        }
        if (HF_SLOT(run)->spill_now) {
            hf_spill(core, batch, run);
        }
    }
}

/* Phase 2: memory and journal are brought within their bounds. Runs whose rows are written already are dropped first: that costs nothing. */
static void make_room(hf_core *core, hf_commit_batch *batch)
{
    hf_core_evict(core);
    hf_spill_old(core, batch);
    if (hf_names_sweep(&core->index, &batch->writes, core->commit_next, core->options.names_max)) {
        HF_PROBE(core, HF_PROBE_NAMES_SWEPT);
    }
}

/* Phase 3: the changes of the batch that are in no row go to the journal; after an opening the meta record is written, too. */
static void write_journal(hf_core *core, hf_commit_batch *batch)
{
    if (hf_core_is_whole(core)) {
        hf_journal_put(core, batch);
    }
    if (core->meta_dirty && hf_core_is_whole(core)) {
        hf_core_put_meta(core, batch);
    }
}

/* Phase 4: the batch becomes a request to the store, and the other batch is opened. */
static hf_store_request *send_off(hf_core *core, hf_commit_batch *batch)
{
    hf_assert(hf_list_is_empty(&core->touched) ||
              HF_CANARY(HF_BUG_NEXT_RUN_LATER)); /* engine-E4: every change is in a row or in the journal */
    hf_assert(!core->committing);
    hf_assert(core->delivered <= core->options.messages_max); /* others wait for so much work of families at most */
    batch->request = (hf_store_request){
        .verb = HF_STORE_COMMIT,
        .commit = core->commit_next,
        .writes = batch->writes.list.items,
        .write_count = batch->writes.list.count,
        .state = batch,
    };
    hf_op_init(&batch->request.op);
    core->committing = true;
    core->commit_next++;
    core->ahead = 0;
    core->fired = 0;
    core->delivered = 0;
    core->open_len = 0;
    core->open_idx = 1 - core->open_idx;
    hf_assert(hf_list_is_empty(&core->batches[core->open_idx].replies)); /* engine-E1: they went with its own commit */
    return &batch->request;
}

hf_store_request *hf_core_seal(hf_core *core, hf_clock now)
{
    hf_core_release(core, now);
    if (core->committing || !begin(core, now)) {
        return NULL;
    }
    hf_filter_tick(core);
    end(core); /* of the steps at opening */
    hf_commit_batch *batch = &core->batches[core->open_idx];
    if (!hf_core_is_whole(core)) {
        return NULL;
    }
    bool deletes = hf_deletions_can_go(core);
    bool makes = hf_resets_can_go(core);
    if (hf_list_is_empty(&core->touched) && !core->meta_dirty && !deletes && !makes) {
        hf_calls_publish(&batch->replies); /* everything they tell is durable */
        core->delivered = 0;
        return NULL;
    }
    hf_writes_reset(&batch->writes);
    hf_list_init(&batch->notices);
    if (deletes) {
        hf_deletions_go(core, batch);
    }
    if (makes) {
        hf_resets_go(core, batch);
    }
    settle_runs(core, batch);
    make_room(core, batch);
    write_journal(core, batch);
    return hf_core_is_whole(core) ? send_off(core, batch) : NULL;
}

static void committed(hf_core *core, hf_commit_batch *batch)
{
    core->committing = false;
    if (batch->request.status != HF_OK && !HF_CANARY(HF_BUG_FAILED_COMMIT_IGNORED)) {
        hf_core_break(core, batch->request.status, "a commit failed: %s", batch->request.op.message);
        return;
    }
    hf_assert(batch->request.commit == core->commit_durable + 1); /* engine-E1: in order, each before its answers */
    core->commit_durable = batch->request.commit;
    hf_calls_publish(&batch->replies);
    hf_notice_tell(core, batch);
    hf_deletions_committed(core);
    hf_core_evict(core);
}

/* A run was loaded: corrects the counts of loads that are under way, and forgets its deadline on disk. */
static void run_arrives(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->wanted_by != NULL) {
        hf_assert(HF_SLOT(run)->wanted_by->loads > 0);
        HF_SLOT(run)->wanted_by->loads--;
    }
    if (HF_SLOT(run)->due_load) {
        hf_assert(core->due_loads > 0);
        HF_SLOT(run)->due_load = false;
        core->due_loads--;
    }
    hf_due_forget_cold(core, run->number);
}

void hf_core_done(hf_core *core, hf_store_request *request, hf_clock now)
{
    bool alive = begin(core, now);
    if (request->verb == HF_STORE_COMMIT) {
        hf_commit_batch *batch = request->state;
        hf_assert(core->committing && batch == &core->batches[1 - core->open_idx]);
        if (alive) {
            committed(core, batch);
        } else {
            core->committing = false;
            if (request->status == HF_OK) { /* its answers are true, even though the core is broken */
                core->commit_durable = request->commit;
                hf_calls_publish(&batch->replies);
                hf_notice_tell(core, batch);
            }
        }
        return;
    }
    hf_read *read = request->state;
    if (alive && read->kind == HF_READ_RUN) {
        run_arrives(core, read->run);
    }
    if (alive) {
        hf_load_done(core, read);
        end(core); /* before the run may be dropped again */
        hf_core_evict(core);
    }
    hf_read_free(core, read);
}

/* ---- For the driver -------------------------------------------------------------------------------------------------- */

hf_status hf_core_status(const hf_core *core)
{
    return core->status;
}

bool hf_core_is_ahead(const hf_core *core)
{
    return core->ahead > 0;
}

bool hf_core_is_committing(const hf_core *core)
{
    return core->committing;
}
