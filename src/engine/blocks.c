/* Housekeeping, on the core's thread: which range is next, what becomes of its visit, and which runs are retired. See blocks.h. */
#include "engine/blocks.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/core_private.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/namespaces.h"

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

void hf_blocks_init(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    all->size = core->options.block_size;
    hf_assert(all->size > 0 && all->size <= HF_BLOCK_RUNS);
    hf_list_init(&all->retiring);
    all->wake_mono = all->wake_wall = INT64_MAX;
}

static void gather_free(hf_core *core, hf_gather *gather)
{
    if (gather != NULL) {
        hf_arena_deinit(&gather->arena);
        hf_core_free_mem(core, gather, sizeof *gather);
    }
}

static void work_free(hf_core *core)
{
    hf_house_work *work = core->blocks.work;
    core->blocks.work = NULL;
    if (work == NULL) {
        return;
    }
    if (work->maker.end > 0) {
        hf_block_deinit(&work->maker);
    }
    gather_free(core, work->gather);
    hf_buf_deinit(&work->block);
    hf_buf_deinit(&work->summary);
    hf_arena_deinit(&work->arena);
    hf_arena_deinit(&work->scratch);
    hf_core_free_mem(core, work, sizeof *work);
}

static void retiring_free(hf_core *core, hf_retiring *it)
{
    hf_list_remove(&it->link);
    core->blocks.retiring_count--;
    hf_arena_deinit(&it->arena);
    hf_core_free_mem(core, it, sizeof *it);
}

void hf_blocks_deinit(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&core->blocks.retiring)) != NULL) {
        retiring_free(core, HF_CONTAINER(node, hf_retiring, link));
    }
    work_free(core);
    for (size_t i = 0; i < HF_GATHERS_MAX; i++) {
        gather_free(core, core->blocks.gathers[i]);
    }
    HF_VEC_FREE(&core->runs_memory, &core->blocks.infos);
}

/* ---- Ranges -------------------------------------------------------------------------------------------------------------- */

void hf_blocks_wake(hf_core *core)
{
    core->blocks.is_woken = true;
    if (core->blocks.wake_mono == INT64_MAX) {
        core->blocks.wake_mono = core->now.mono + HF_HOUSE_PACE;
    }
}

static int64_t range_of(const hf_core *core, int64_t run)
{
    return run / core->blocks.size - core->blocks.base;
}

/* Ranges up to the run with the highest number, but not more than HF_BLOCK_RANGES_MAX. False: engine-E2. */
static bool cover(hf_core *core, hf_block_state state)
{
    hf_blocks *all = &core->blocks;
    int64_t last = range_of(core, core->run_next - 1);
    size_t count = last < HF_BLOCK_RANGES_MAX ? (size_t)(last + 1) : HF_BLOCK_RANGES_MAX;
    while (all->infos.count < count) {
        if (!HF_VEC_RESERVE(&core->runs_memory, &all->infos)) {
            return false;
        }
        all->infos.items[all->infos.count++] = (hf_block_info){
            .state = (uint8_t)state,
            .expires_at = state == HF_BLOCK_UNKNOWN && all->has_keepings ? INT64_MIN : INT64_MAX,
        };
    }
    return true;
}

/* NULL: the range is not covered, so it has no block, or engine-E2. */
static hf_block_info *info_of(hf_core *core, int64_t run)
{
    hf_assert(run > 0 && run < core->run_next);
    int64_t idx = range_of(core, run);
    bool is_covered = cover(core, HF_BLOCK_LOOSE) && idx >= 0 && idx < HF_BLOCK_RANGES_MAX;
    return is_covered ? &core->blocks.infos.items[idx] : NULL;
}

/* The newest ranges are left alone: most of their runs are open, and soon are not. */
static bool is_full(const hf_core *core, size_t idx)
{
    return (int64_t)idx + 2 + core->blocks.base <= core->run_next / core->blocks.size;
}

static bool is_to_seal(const hf_core *core, size_t idx)
{
    const hf_block_info *info = &core->blocks.infos.items[idx];
    int64_t many = core->blocks.size / 8 > 0 ? core->blocks.size / 8 : 1;
    return is_full(core, idx) && info->state != HF_BLOCK_UNKNOWN &&
           (info->state == HF_BLOCK_SEALED || info->is_visited ? info->ended >= many : true);
}

static bool has_keepings(const hf_core *core)
{
    HF_LIST_EACH(node, &core->namespaces_all)
    {
        if (HF_CONTAINER_CONST(node, hf_namespace, link)->retention > 0) {
            return true;
        }
    }
    return false;
}

void hf_blocks_open(hf_core *core, int64_t first)
{
    hf_blocks *all = &core->blocks;
    hf_assert(first > 0 && first <= core->run_next);
    all->base = first / all->size;
    all->has_keepings = has_keepings(core);
    (void)cover(core, HF_BLOCK_UNKNOWN);
    if (is_full(core, 0)) {
        hf_blocks_wake(core);
        return;
    }
    all->is_loaded = true; /* there is no block yet */
    for (size_t i = 0; i < all->infos.count; i++) {
        all->infos.items[i].state = HF_BLOCK_LOOSE;
    }
    if (all->has_keepings) {
        all->wake_wall = INT64_MIN;
    }
}

void hf_blocks_keep_anew(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    all->has_keepings = has_keepings(core);
    all->search_left = 0;
    all->is_stale = true; /* what is under way was decided by another retention */
    all->victim_next = all->victim_count;
    for (size_t i = 0; i < all->infos.count; i++) {
        all->infos.items[i].expires_at = all->has_keepings ? INT64_MIN : INT64_MAX;
    }
    if (all->has_keepings) {
        all->is_loaded = !is_full(core, 0); /* summaries tell what visits would */
        all->load_from = 0;
        hf_blocks_wake(core);
    }
}

/* ---- What is remembered of runs ------------------------------------------------------------------------------------------ */

/* The place of the range's gather; NULL: it has none. With `first` -1: a free place. */
static hf_gather **gather_at(hf_core *core, int64_t first)
{
    for (size_t i = 0; i < HF_GATHERS_MAX; i++) {
        const hf_gather *gather = core->blocks.gathers[i];
        if (gather != NULL ? gather->first == first : first == -1) {
            return &core->blocks.gathers[i];
        }
    }
    return NULL;
}

/* NULL: the range has none. The caller frees it. */
static hf_gather *gather_take(hf_core *core, int64_t first)
{
    hf_gather **place = gather_at(core, first);
    hf_gather *gather = place != NULL ? *place : NULL;
    if (gather != NULL) {
        *place = NULL;
    }
    return gather;
}

/* NULL: there is no place for it, or engine-E2. */
static hf_gather *gather_new(hf_core *core, int64_t first)
{
    hf_gather **place = gather_at(core, -1);
    hf_gather *gather = place != NULL ? hf_core_alloc(core, sizeof *gather) : NULL;
    if (gather != NULL) {
        *place = gather;
        gather->first = first;
        hf_arena_init(&gather->arena, core->memory);
        gather->runs = HF_ARENA_ARRAY(&gather->arena, hf_visible *, (size_t)core->blocks.size);
    }
    return gather;
}

/* A range that was visited is read when it is visited again: that some of its runs end later is rare. */
static void remember(hf_core *core, const hf_block_info *info, const hf_run *run)
{
    int64_t first = run->number / core->blocks.size * core->blocks.size;
    const hf_house_work *work = core->blocks.work;
    hf_gather **place = gather_at(core, first);
    if (info->is_visited || (work != NULL && !work->is_load && work->first == first) ||
        core->used > core->options.mem_max / 2) {
        gather_free(core, gather_take(core, first));
        return;
    }
    hf_gather *gather = place != NULL ? *place : gather_new(core, first);
    if (gather == NULL) {
        return;
    }
    hf_visible visible = hf_visible_of_run(run, &gather->arena);
    visible.memo = visible.first_run_id = visible.paused = HF_STR(""); /* entries do without */
    if (hf_visible_len(&visible) > HF_BLOCK_ENTRY_LEN_MAX) {
        gather_free(core, gather_take(core, first)); /* blocks leave such a run out, too */
        return;
    }
    hf_visible *copy = HF_ARENA_NEW(&gather->arena, hf_visible);
    if (copy != NULL && gather->arena.status == HF_OK) {
        *copy = hf_visible_copy(&gather->arena, &visible);
        gather->runs[run->number - first] = copy;
    }
    if (gather->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

/* Runs without a row: engine-K2. */
static bool is_rowless(hf_core *core, int64_t number)
{
    const hf_run *run = hf_run_find(core, number);
    return run != NULL ? !run->is_written : hf_resets_make(core, number);
}

/* A run in memory that has not ended. */
static bool is_open(hf_core *core, int64_t number)
{
    const hf_run *run = hf_run_find(core, number);
    return run != NULL && !HF_SLOT(run)->loading && !HF_SLOT(run)->bad && hf_run_is_open(run);
}

/* The visit takes the runs of its range from what is remembered, if nothing is missing: the others are open, and in memory. */
static void use_gather(hf_core *core, hf_house_work *work)
{
    hf_gather *gather = gather_take(core, work->first);
    bool is_whole = gather != NULL && work->has_maker;
    for (int64_t number = work->first > 0 ? work->first : 1; is_whole && number < work->end; number++) {
        if (gather->runs[number - work->first] == NULL) {
            is_whole = is_open(core, number) || is_rowless(core, number);
            work->rowless[work->rowless_count++] = number;
        }
    }
    if (is_whole) {
        HF_PROBE(core, HF_PROBE_BLOCK_REMEMBERED);
        work->gather = gather;
        return;
    }
    work->rowless_count = 0;
    gather_free(core, gather);
}

/* ---- Changes of runs ----------------------------------------------------------------------------------------------------- */

void hf_blocks_run_changes(hf_core *core, hf_commit_batch *batch, int64_t run)
{
    hf_blocks *all = &core->blocks;
    hf_block_info *info = info_of(core, run);
    if (info == NULL || HF_CANARY(HF_BUG_BLOCK_KEPT)) {
        return;
    }
    int64_t first = run / all->size * all->size;
    if (!HF_CANARY(HF_BUG_GATHER_KEPT)) {
        gather_free(core, gather_take(core, first)); /* engine-K6 */
    }
    if (all->work != NULL && !all->work->is_load && all->work->first == first) {
        all->is_stale = true; /* engine-K2 */
    }
    if (info->state != HF_BLOCK_LOOSE) {
        HF_PROBE(core, HF_PROBE_BLOCK_DELETED);
        hf_block_delete(&batch->writes, first); /* engine-K3 */
        info->state = HF_BLOCK_LOOSE;
    }
    info->is_visited = false;
    if (is_full(core, (size_t)range_of(core, run))) {
        hf_blocks_wake(core);
    }
}

void hf_blocks_run_ended(hf_core *core, const hf_run *run)
{
    hf_blocks *all = &core->blocks;
    hf_block_info *info = info_of(core, run->number);
    if (info == NULL) {
        return;
    }
    info->ended = info->ended < UINT16_MAX ? (uint16_t)(info->ended + 1) : info->ended;
    remember(core, info, run);
    if (all->has_keepings && info->expires_at != INT64_MIN && run->keep == 0) {
        const hf_namespace *space = hf_namespace_find(core, hf_owned_str(&run->namespace));
        int64_t at = 0;
        if (space != NULL && space->retention > 0 && !__builtin_add_overflow(run->close_time, space->retention, &at)) {
            info->expires_at = at < info->expires_at ? at : info->expires_at;
            all->wake_wall = at < all->wake_wall ? at : all->wake_wall;
        }
    }
    if (!all->is_woken && is_full(core, (size_t)range_of(core, run->number)) &&
        is_to_seal(core, (size_t)range_of(core, run->number))) {
        hf_blocks_wake(core);
    }
}

/* ---- Steps --------------------------------------------------------------------------------------------------------------- */

static size_t step_max(const hf_core *core, size_t most)
{
    size_t given = core->options.list_step_max;
    return given > 0 && given < most ? given : most;
}

static void submit(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    hf_house_work *work = all->work;
    hf_read *read = hf_read_new(core, HF_READ_HOUSE, work->is_load ? HF_TABLE_SUMMARY : HF_TABLE_RUN);
    if (read == NULL) {
        return;
    }
    read->house = work;
    read->request.look = hf_house_look;
    read->request.key = (hf_key){.a = work->from};
    read->request.key_end = (hf_key){.a = core->run_next};
    read->request.row_max = step_max(core, work->is_load ? HF_HOUSE_SUMMARIES_MAX : HF_HOUSE_ROWS_MAX);
    read->request.len_max = HF_HOUSE_LEN_MAX;
    if (work->gather != NULL) {
        read->request.key_end = read->request.key; /* no row */
    } else if (!work->is_load && work->rows > 0) {
        read->request.key_end.a = work->end;
    }
    all->is_out = true;
    hf_read_submit(core, read);
}

hf_keeping *hf_blocks_keepings(const hf_core *core, hf_arena *arena, size_t *ret_count)
{
    size_t room = 0;
    HF_LIST_EACH(node, &core->namespaces_all)
    {
        room += HF_CONTAINER_CONST(node, hf_namespace, link)->retention > 0 ? 1 : 0;
    }
    hf_keeping *keepings = room > 0 ? HF_ARENA_ARRAY(arena, hf_keeping, room) : NULL;
    *ret_count = 0;
    HF_LIST_EACH(node, &core->namespaces_all)
    {
        const hf_namespace *space = HF_CONTAINER_CONST(node, hf_namespace, link);
        if (space->retention > 0 && keepings != NULL) {
            keepings[(*ret_count)++] = (hf_keeping){hf_arena_copy(arena, hf_owned_str(&space->name)), space->retention};
        }
    }
    return keepings;
}

/* Runs of the range that have no row yet, or are being made: engine-K2. */
static void find_rowless(hf_core *core, hf_house_work *work)
{
    work->rowless = HF_ARENA_ARRAY(&work->arena, int64_t, (size_t)(work->end - work->first));
    if (work->rowless == NULL) {
        return;
    }
    use_gather(core, work);
    for (int64_t number = work->first > 0 ? work->first : 1; work->gather == NULL && number < work->end; number++) {
        if (is_rowless(core, number)) {
            work->rowless[work->rowless_count++] = number;
        }
    }
}

static hf_house_work *work_new(hf_core *core)
{
    hf_assert(core->blocks.work == NULL);
    hf_house_work *work = hf_core_alloc(core, sizeof *work);
    if (work == NULL) {
        return NULL;
    }
    work->memory = core->options.store_memory;
    work->now = core->now.wall;
    work->expires_at = INT64_MAX;
    hf_arena_init(&work->arena, work->memory);
    hf_arena_init(&work->scratch, work->memory);
    hf_buf_init(&work->block, work->memory, SIZE_MAX / 4);
    hf_buf_init(&work->summary, work->memory, SIZE_MAX / 4);
    core->blocks.work = work;
    work->keepings = hf_blocks_keepings(core, &work->arena, &work->keeping_count);
    return work;
}

static void begin_load(hf_core *core)
{
    hf_house_work *work = work_new(core);
    if (work != NULL) {
        work->is_load = true;
        core->blocks.is_stale = false;
        work->from = core->blocks.load_from;
        submit(core);
    }
}

static void begin_visit(hf_core *core, size_t idx)
{
    hf_blocks *all = &core->blocks;
    hf_house_work *work = work_new(core);
    if (work == NULL) {
        return;
    }
    work->first = (all->base + (int64_t)idx) * all->size;
    work->end = work->first + all->size < core->run_next ? work->first + all->size : core->run_next;
    work->from = work->first;
    work->has_maker = is_to_seal(core, idx);
    if (work->has_maker) {
        hf_block_begin(&work->maker, work->memory, work->first, work->end);
        work->maker.summary.commit = core->commit_next - 1; /* rows are read behind that commit */
    }
    find_rowless(core, work);
    all->is_stale = false;
    all->infos.items[idx].ended = 0;
    if (work->arena.status != HF_OK || work->maker.arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    submit(core);
}

/* ---- Retention ----------------------------------------------------------------------------------------------------------- */

/* The run is marked, or it is not there any more. */
static void retired(hf_call *call)
{
    hf_retiring *it = (hf_retiring *)(void *)call;
    hf_core *core = it->core;
    if (core->status == HF_OK) { /* else hf_blocks_deinit frees it */
        core->probes[HF_PROBE_RETIRED] += call->status == HF_OK ? 1 : 0;
        retiring_free(core, it);
    }
}

static void retire(hf_core *core, const hf_expired *victim)
{
    hf_retiring *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return;
    }
    it->core = core;
    hf_arena_init(&it->arena, core->memory);
    hf_list_push_back(&core->blocks.retiring, &it->link);
    core->blocks.retiring_count++;
    it->execution = (hf_pb_workflow_execution){.workflow_id = hf_arena_copy(&it->arena, victim->workflow_id),
                                               .run_id = hf_arena_copy(&it->arena, victim->run_id)};
    it->request = (hf_pb_delete_workflow_execution_request){
        .namespace = hf_arena_copy(&it->arena, victim->namespace_),
        .workflow_execution = &it->execution,
    };
    hf_run *run = it->arena.status == HF_OK ? hf_run_load(core, victim->run) : NULL;
    if (run == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_call_init(&it->call, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &it->request, &it->arena, retired);
    it->call.maker = HF_CALL_OF_RETENTION;
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_input_run(core, &it->call, run);
}

/* As many as there is room for beside the calls of others: engine-K5. True: none is left. */
static bool retire_some(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    uint64_t calls = core->calls - all->calls_seen;
    all->calls_seen = core->calls;
    size_t room = calls < HF_RETIRING_MAX - HF_RETIRING_MIN ? HF_RETIRING_MAX - (size_t)calls : HF_RETIRING_MIN;
    if (room < HF_RETIRING_MAX) {
        HF_PROBE(core, HF_PROBE_RETIRED_BESIDE);
    }
    while (core->status == HF_OK && all->victim_next < all->victim_count && room > 0 &&
           core->deletions.count - core->deletions.stuck + all->retiring_count < 2 * HF_RETIRING_MAX) {
        retire(core, &all->victims[all->victim_next++]);
        room--;
    }
    return all->victim_next == all->victim_count;
}

/* ---- What is next -------------------------------------------------------------------------------------------------------- */

static bool is_due(const hf_core *core, size_t idx)
{
    const hf_block_info *info = &core->blocks.infos.items[idx];
    return (core->blocks.has_keepings && info->expires_at <= core->now.wall) || is_to_seal(core, idx);
}

/* The next range with something to do, from the cursor on and around; its count = none of this portion. A round goes over all ranges, in as many
 * ticks as it needs (engine-K1). */
static size_t find_due(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    if (all->search_left == 0) {
        all->search_left = all->infos.count;
        all->search_wake = INT64_MAX;
        all->is_woken = false;
    }
    for (size_t left = step_max(core, HF_HOUSE_RANGES_MAX); left > 0 && all->search_left > 0; left--) {
        size_t idx = all->cursor % all->infos.count;
        all->cursor = idx + 1;
        all->search_left--;
        if (is_due(core, idx)) {
            all->search_left = 0;
            return idx;
        }
        int64_t at = all->infos.items[idx].expires_at;
        all->search_wake = all->has_keepings && at < all->search_wake ? at : all->search_wake;
    }
    return all->infos.count;
}

hf_clock hf_blocks_next(const hf_core *core)
{
    const hf_blocks *all = &core->blocks;
    if (all->is_out || all->is_ready) {
        return (hf_clock){INT64_MAX, INT64_MAX};
    }
    /* A moment that has passed is now: drivers subtract. */
    return (hf_clock){all->wake_wall > core->now.wall ? all->wake_wall : core->now.wall, all->wake_mono};
}

void hf_blocks_tick(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    if (core->submit == NULL || all->is_out || all->is_ready ||
        (core->now.mono < all->wake_mono && core->now.wall < all->wake_wall) || !cover(core, HF_BLOCK_LOOSE)) {
        return;
    }
    all->wake_mono = core->now.mono + HF_HOUSE_PACE;
    if (all->search_left > 0 && all->wake_wall < all->search_wake) {
        all->search_wake = all->wake_wall; /* of a range that this round has passed */
    }
    all->wake_wall = INT64_MAX; /* from here on the pace counts */
    if (all->victim_next < all->victim_count && !retire_some(core)) {
        return;
    }
    if (all->victim_count > 0) {
        all->victim_count = all->victim_next = 0;
        all->victims = NULL;
        work_free(core);
    }
    if (all->work != NULL) {
        submit(core); /* the next step */
        return;
    }
    if (!all->is_loaded) {
        begin_load(core);
        return;
    }
    size_t idx = find_due(core);
    if (idx < all->infos.count) {
        begin_visit(core, idx);
    } else if (all->search_left == 0 && !all->is_woken) { /* a round without anything to do */
        all->wake_mono = INT64_MAX;
        all->wake_wall = all->search_wake;
    }
}

/* Whether runs end faster than they get blocks. Ranges are visited in their order: all that wait lie behind this one. */
static bool is_behind(const hf_core *core)
{
    const hf_blocks *all = &core->blocks;
    int64_t newest = core->run_next / all->size - 2 - all->base; /* that is full */
    int64_t idx = newest - HF_HOUSE_BEHIND;
    return idx >= 0 && idx < (int64_t)all->infos.count && all->infos.items[idx].state == HF_BLOCK_LOOSE &&
           !all->infos.items[idx].is_visited;
}

/* When the next step is due. Beside many commits it waits longer, if what it does has time: it retires nobody, and lists read few rows. */
static int64_t pace(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    uint64_t commits = core->commit_next - all->commit_seen;
    all->commit_seen = core->commit_next;
    bool is_quick = commits <= 2 || all->victim_count > 0 || is_behind(core); /* one of the commits may be its own */
    return core->now.mono + (is_quick ? HF_HOUSE_PACE : HF_HOUSE_PACE_BUSY);
}

/* ---- Answers ------------------------------------------------------------------------------------------------------------- */

static void take_loaded(hf_core *core, const hf_house_work *work)
{
    hf_blocks *all = &core->blocks;
    if (all->is_stale) {
        return; /* it begins again */
    }
    for (size_t i = 0; i < work->loaded_count; i++) {
        const hf_block_loaded *loaded = &work->loaded[i];
        int64_t idx = range_of(core, loaded->first);
        hf_block_info *info = idx >= 0 && idx < (int64_t)all->infos.count ? &all->infos.items[idx] : NULL;
        if (info == NULL || info->state == HF_BLOCK_LOOSE) {
            continue; /* it was deleted meanwhile */
        }
        if (info->state == HF_BLOCK_UNKNOWN) { /* runs may have ended since it was written */
            info->ended = loaded->has_others ? UINT16_MAX : 0;
        }
        info->state = HF_BLOCK_SEALED;
        info->is_visited = true;
        info->expires_at = !all->has_keepings || !loaded->has_others ? loaded->expires_at : INT64_MIN;
    }
    all->load_from = work->from;
    if (work->is_done) {
        HF_PROBE(core, HF_PROBE_BLOCKS_LOADED);
        all->is_loaded = true;
        for (size_t i = 0; i < all->infos.count; i++) {
            hf_block_info *info = &all->infos.items[i];
            info->state = info->state == HF_BLOCK_UNKNOWN ? HF_BLOCK_LOOSE : info->state;
        }
    }
}

/* Ranges without rows have nothing to do until the next opening. */
static void skip_empty(hf_core *core, const hf_house_work *work)
{
    hf_blocks *all = &core->blocks;
    int64_t end = work->next_run > 0 ? range_of(core, work->next_run) : INT64_MAX;
    for (size_t i = (size_t)range_of(core, work->first); (int64_t)i < end && i < all->infos.count && is_full(core, i);
         i++) {
        hf_block_info *info = &all->infos.items[i];
        if (info->state != HF_BLOCK_LOOSE || info->ended > 0) {
            break;
        }
        info->is_visited = true;
        info->expires_at = INT64_MAX;
    }
}

static void take_visited(hf_core *core, hf_house_work *work)
{
    hf_blocks *all = &core->blocks;
    hf_block_info *info = &all->infos.items[range_of(core, work->first)];
    if (all->is_stale) { /* engine-K2 */
        HF_PROBE(core, HF_PROBE_BLOCK_STALE);
        info->expires_at = all->has_keepings ? INT64_MIN : INT64_MAX;
        work_free(core);
        return;
    }
    info->is_visited = true;
    int64_t soon = core->now.wall + HF_HOUSE_SLACK;
    info->expires_at = work->expires_at < soon ? soon : work->expires_at; /* hf_blocks_run_ended tells of later ones */
    if (work->expired_count > 0) {
        all->victims = work->expired;
        all->victim_count = work->expired_count;
        all->victim_next = 0;
        info->is_visited = false;
    } else if (work->has_maker) {
        all->is_ready = true;
    } else {
        if (work->rows == 0 && work->rowless_count == 0) {
            skip_empty(core, work);
        }
        work_free(core);
    }
}

void hf_house_rows_read(hf_core *core, const hf_read *read)
{
    hf_blocks *all = &core->blocks;
    hf_house_work *work = read->house;
    hf_assert(all->is_out && work == all->work); /* engine-K1: one step at a time */
    all->is_out = false;
    if (work->status != HF_OK) {
        hf_core_break(core, work->status, "out of memory");
        return;
    }
    if (work->is_load) {
        take_loaded(core, work);
        work_free(core);
    } else if (work->is_done) {
        take_visited(core, work);
    }
    all->wake_mono = pace(core);
}

/* The store cannot read its own pages. The range stays as it is; lists find the same. */
void hf_house_failed(hf_core *core)
{
    hf_blocks *all = &core->blocks;
    hf_house_work *work = all->work;
    hf_assert(all->is_out && work != NULL);
    all->is_out = false;
    if (work->is_load) {
        all->is_loaded = true; /* no summary is trusted: engine-K3 deletes blocks of unknown ranges */
        all->load_from = 0;
    } else {
        all->infos.items[range_of(core, work->first)].is_visited = true;
        all->infos.items[range_of(core, work->first)].expires_at = INT64_MAX;
    }
    work_free(core);
}

/* ---- Commits ------------------------------------------------------------------------------------------------------------- */

bool hf_blocks_can_go(const hf_core *core)
{
    return core->blocks.is_ready;
}

void hf_blocks_go(hf_core *core, hf_commit_batch *batch)
{
    hf_blocks *all = &core->blocks;
    hf_house_work *work = all->work;
    hf_assert(all->is_ready && work != NULL && work->is_done && work->has_maker);
    hf_block_info *info = &all->infos.items[range_of(core, work->first)];
    all->is_ready = false;
    if (all->is_stale &&
        !HF_CANARY(HF_BUG_STALE_SEALED)) { /* engine-K2: a run has changed with this batch, or an earlier one */
        HF_PROBE(core, HF_PROBE_BLOCK_STALE);
        info->is_visited = false;
    } else {
        HF_PROBE(core, HF_PROBE_BLOCK_WRITTEN);
        hf_assert(!all->is_stale || HF_CANARY(HF_BUG_STALE_SEALED)); /* engine-K2 */
        hf_block_put(&batch->writes, work->first, &work->block, &work->summary);
        info->state = HF_BLOCK_SEALED;
    }
    work_free(core);
    all->wake_mono = pace(core);
}
