/* The driver of the core: does step by step what loop.c does with threads. The store answers at once, but never inside
 * the call that asked: the core may be in the middle of a step. */
#include "support/engine_rig.h"

#include "store/mem.h"
#include "store/sqlite/sqlite.h"
#include "support/vfs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define START_TIME INT64_C(1700000000000000000)
#define ROUNDS_MAX 100000

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

const hf_allocator hf_rig_heap = {heap_allocate, heap_release, NULL};

/* Counts an allocation; true: it fails. */
static bool is_last(hf_rig *rig)
{
    uint64_t number = ++rig->allocations;
    return rig->fail_at != 0 && (number == rig->fail_at || (rig->fail_on && number > rig->fail_at));
}

static void *rig_allocate(void *state, size_t len, size_t align)
{
    hf_rig *rig = state;
    (void)align;
    if (is_last(rig)) {
        return NULL;
    }
    void *ptr = malloc(len);
    rig->live += ptr != NULL ? len : 0;
    return ptr;
}

static void rig_release(void *state, void *ptr, size_t len)
{
    hf_rig *rig = state;
    assert_true(rig->live >= len);
    rig->live -= len;
    free(ptr);
}

/* SQLite has one allocator for the process: it counts for the rig that has a database open. */
static hf_rig *sqlite_rig;
static sqlite3_mem_methods sqlite_heap;

static void *sqlite_allocate(int len)
{
    return sqlite_rig != NULL && is_last(sqlite_rig) ? NULL : sqlite_heap.xMalloc(len);
}

static void *sqlite_resize(void *ptr, int len)
{
    return sqlite_rig != NULL && is_last(sqlite_rig) ? NULL : sqlite_heap.xRealloc(ptr, len);
}

static void watch_sqlite(hf_rig *rig)
{
    if (sqlite_heap.xMalloc == NULL) {
        assert_int_equal(sqlite3_shutdown(), SQLITE_OK);
        assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_heap), SQLITE_OK);
        sqlite3_mem_methods mine = sqlite_heap;
        mine.xMalloc = sqlite_allocate;
        mine.xRealloc = sqlite_resize;
        assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &mine), SQLITE_OK);
    }
    sqlite_rig = rig;
}

static void submit_read(void *state, hf_store_request *request)
{
    hf_rig *rig = state;
    assert_true(rig->read_count < HF_RIG_READS);
    rig->reads[rig->read_count++] = request;
}

static void on_done(hf_call *call)
{
    hf_rig_call *slot = call->state;
    assert_false(slot->done);
    slot->done = true;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

hf_status hf_rig_reopen(hf_rig *rig)
{
    hf_op op;
    hf_op_init(&op);
    rig->options.seed[15]++; /* never the same twice */
    hf_status status = hf_core_open(&op, &rig->options, rig->store, rig->now, &rig->core);
    if (status != HF_OK) {
        rig->core = NULL;
        if (!rig->may_break) {
            fail_msg("the core does not open: %s", op.message);
        }
        return status;
    }
    rig->core->submit = submit_read;
    rig->core->submit_state = rig;
    return HF_OK;
}

static void init(hf_rig *rig, hf_core_options options)
{
    memset(rig, 0, sizeof *rig);
    rig->now = (hf_clock){START_TIME, 1000000000};
    rig->options = options;
    rig->options.memory = (hf_allocator){rig_allocate, rig_release, rig};
    memcpy(rig->options.seed, "a seed of a rig", 15);
    for (size_t i = 0; i < HF_RIG_SLOTS; i++) {
        hf_arena_init(&rig->slots[i].arena, rig->options.memory);
        hf_arena_init(&rig->slots[i].request, hf_rig_heap);
    }
}

static void begin(hf_rig *rig)
{
    assert_int_equal(hf_rig_reopen(rig), HF_OK);
    assert_true(hf_rig_settle(rig));
}

void hf_rig_open(hf_rig *rig, hf_core_options options)
{
    hf_op op;
    hf_op_init(&op);
    init(rig, options);
    assert_int_equal(hf_mem_store_open(&op, hf_rig_heap, NULL, &rig->store), HF_OK);
    begin(rig);
}

void hf_rig_reopen_store(hf_rig *rig)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t fail_at = rig->fail_at;
    rig->fail_at = 0;
    assert_null(rig->core);
    hf_store_close(rig->store);
    hf_sqlite_options options = {.vfs = hf_vfs_name(rig->disk), .cache_len = 256 * 1024};
    assert_int_equal(hf_sqlite_open(&op, rig->options.memory, "rig.db", &options, &rig->store), HF_OK);
    rig->fail_at = fail_at;
}

void hf_rig_open_on(hf_rig *rig, hf_core_options options, hf_rig_store kind)
{
    hf_op op;
    hf_op_init(&op);
    init(rig, options);
    if (kind == HF_RIG_MEMORY) {
        assert_int_equal(hf_mem_store_open(&op, rig->options.memory, NULL, &rig->store), HF_OK);
    } else {
        watch_sqlite(rig);
        rig->disk = hf_vfs_new("rig", 1);
        hf_rig_reopen_store(rig);
    }
    begin(rig);
}

static void end_core(hf_rig *rig)
{
    if (rig->core == NULL) {
        return;
    }
    for (size_t i = 0; i < HF_PROBE_COUNT; i++) {
        rig->probes[i] += rig->core->probes[i];
    }
    for (size_t i = 0; i < sizeof rig->walked / sizeof(uint64_t); i++) {
        ((uint64_t *)&rig->walked)[i] += ((uint64_t *)&rig->core->runs_memory.arrows)[i];
    }
    hf_core_stop(rig->core, HF_ERR_CLOSED, "the test ends it");
    rig->read_count = 0;
    hf_core_free(rig->core);
    rig->core = NULL;
    for (size_t i = 0; i < HF_RIG_SLOTS; i++) { /* calls that waited were answered */
        hf_rig_call *slot = &rig->slots[i];
        if (slot->used && slot->call.status != HF_OK) {
            slot->used = false;
        }
    }
}

void hf_rig_crash(hf_rig *rig)
{
    end_core(rig);
    rig->options.was_left_open = true;
    (void)hf_rig_reopen(rig);
}

void hf_rig_restart(hf_rig *rig)
{
    end_core(rig);
    rig->options.was_left_open = false;
    (void)hf_rig_reopen(rig);
}

void hf_rig_close(hf_rig *rig)
{
    end_core(rig);
    for (size_t i = 0; i < HF_RIG_SLOTS; i++) {
        hf_arena_deinit(&rig->slots[i].arena);
        hf_arena_deinit(&rig->slots[i].request);
    }
    hf_store_close(rig->store);
    hf_vfs_free(rig->disk);
    sqlite_rig = rig->disk != NULL ? NULL : sqlite_rig;
    assert_int_equal(rig->live, 0);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

hf_rig_call *hf_rig_slot(hf_rig *rig, const char *name)
{
    if (name == NULL) {
        return &rig->slots[0];
    }
    hf_rig_call *unused = NULL;
    for (size_t i = 1; i < HF_RIG_SLOTS; i++) {
        hf_rig_call *slot = &rig->slots[i];
        if (slot->name[0] != '\0' && strcmp(slot->name, name) == 0) {
            return slot;
        }
        if (slot->name[0] == '\0' && unused == NULL) {
            unused = slot;
        }
    }
    assert_non_null(unused);
    (void)snprintf(unused->name, sizeof unused->name, "%s", name);
    return unused;
}

void *hf_rig_request(hf_rig_call *slot, size_t len)
{
    if (slot->used && !slot->done) {
        fail_msg("slot %s has a poll that is not answered", slot->name);
    }
    hf_arena_reset(&slot->request);
    hf_arena_reset(&slot->arena);
    slot->used = slot->done = false;
    slot->call = (hf_call){0};
    return hf_arena_zero(&slot->request, len, 16);
}

void hf_rig_submit(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request)
{
    hf_call set = slot->call;
    hf_call_init(&slot->call, method, request, &slot->arena, on_done);
    slot->call.state = slot;
    slot->call.timeout = set.timeout;
    slot->call.in_process = set.in_process;
    slot->call.run_ahead = set.run_ahead;
    slot->call.replays = set.replays;
    slot->call.lets_go = set.lets_go;
    slot->used = true;
    hf_core_call(rig->core, &slot->call, rig->now);
}

void hf_rig_send(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request)
{
    hf_rig_submit(rig, slot, method, request);
    if (!rig->hold) {
        (void)hf_rig_settle(rig);
    } else {
        hf_core_release(rig->core, rig->now); /* answers that need not wait for a commit */
    }
}

/* ---- Turning ----------------------------------------------------------------------------------------------------- */

bool hf_rig_commit(hf_rig *rig, bool lost)
{
    hf_store_request *request = hf_core_seal(rig->core, rig->now);
    if (request == NULL) {
        return false;
    }
    if (lost) {
        request->status = hf_fail(&request->op, HF_ERR_IO, "the test lost this commit");
    } else {
        hf_store_execute(rig->store, request);
        rig->commits++;
    }
    hf_core_done(rig->core, request, rig->now);
    return true;
}

bool hf_rig_read(hf_rig *rig)
{
    if (rig->read_count == 0) {
        return false;
    }
    hf_store_request *request = rig->reads[0];
    rig->read_count--;
    memmove(rig->reads, rig->reads + 1, rig->read_count * sizeof *rig->reads);
    hf_store_execute(rig->store, request);
    hf_core_done(rig->core, request, rig->now);
    return true;
}

static bool tick(hf_rig *rig)
{
    hf_str zone = {0};
    if (hf_core_zone_wanted(rig->core, &zone)) {
        char name[HF_RIG_ZONE_LEN];
        (void)snprintf(name, sizeof name, "%.*s", HF_STR_ARGS(zone));
        hf_core_zone(rig->core, hf_str_of(name), rig->zone != NULL ? rig->zone(name) : HF_STR(""), rig->now);
        return true;
    }
    hf_clock next = hf_core_next(rig->core);
    if (next.wall > rig->now.wall && next.mono > rig->now.mono) {
        return false;
    }
    hf_core_tick(rig->core, rig->now);
    return true;
}

bool hf_rig_settle(hf_rig *rig)
{
    int rounds = 0;
    while (hf_core_status(rig->core) == HF_OK && (hf_rig_read(rig) || tick(rig) || hf_rig_commit(rig, rig->lose))) {
        if (++rounds > ROUNDS_MAX) {
            fail_msg("the core does not come to rest");
        }
    }
    if (hf_core_status(rig->core) != HF_OK) {
        if (!rig->may_break) {
            fail_msg("the core broke: %s", rig->core->why);
        }
        return false;
    }
    if (!rig->no_check) {
        hf_op op;
        hf_op_init(&op);
        uint64_t fail_at = rig->fail_at;
        rig->fail_at = 0; /* the check itself is not under test */
        uint64_t allocations = rig->allocations;
        if (hf_core_check(&op, rig->core, rig->store) != HF_OK) {
            fail_msg("%s", op.message);
        }
        rig->fail_at = fail_at;
        rig->allocations = allocations;
    }
    return true;
}

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

static void *response_in(hf_rig *rig, const char *name)
{
    hf_rig_call *slot = hf_rig_slot(rig, name);
    if (!slot->done || slot->call.status != HF_OK || slot->call.response == NULL) {
        fail_msg("slot %s has no answer: %s", name, slot->call.message);
    }
    return slot->call.response;
}

const hf_pb_poll_workflow_task_queue_response *hf_rig_task(hf_rig *rig, const char *slot)
{
    return response_in(rig, slot);
}

const hf_pb_poll_activity_task_queue_response *hf_rig_activity(hf_rig *rig, const char *slot)
{
    return response_in(rig, slot);
}

uint64_t hf_rig_probe(const hf_rig *rig, hf_probe probe)
{
    return rig->probes[probe] + (rig->core != NULL ? rig->core->probes[probe] : 0);
}
