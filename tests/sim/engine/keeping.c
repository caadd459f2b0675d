/* A disk that loses its power or fails while an engine keeps house: blocks are made of a file that had none, runs are retired, an operation acts on
 * many runs, others are deleted, and the file is shrunk. The same script is played once without a fault, which tells the right contents after
 * every commit. Whatever happens, the next opening finds the contents after the last commit that was acknowledged, or after the one that
 * was under way; a shrink changes nothing; an engine opens on it, and `holdfast db check` has nothing to say. */
#include "sim/engine/disk.h"

#include "inspect/check.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RANDOM_IMAGES = 1,
    KNOWN_MAX = 4096,
    READS_MAX = 256,
    CROWD = 8,
    STEPS = 260,         /* of the script, HF_HOUSE_PACE each */
    STEP_SIGNAL = 20,    /* a batch signals the crowd ... */
    STEP_TERMINATE = 50, /* ... another one ends it ... */
    STEP_DELETE = 80,    /* ... and a third deletes a part of it */
    STEP_HOUR = 110,     /* time for retention */
    ENGINES_EVERY = 8
};

typedef struct keeper {
    char *bytes; /* of an older file; NULL = the disk begins empty */
    size_t len;
    hf_vfs *disk, *image;
    hf_rng rng;
    hf_store *store;
    hf_core *core;
    hf_clock now;
    hf_store_request *reads[READS_MAX];
    size_t read_count;
    hf_arena arena;           /* calls and their answers */
    uint64_t first;           /* last commit before the script */
    uint64_t last;            /* acknowledged */
    SIM_VEC(uint64_t) hashes; /* of the contents: at the opening, and after each commit since */
    bool is_first;            /* they are being noted */
    uint64_t hits;            /* faults of the disk before this time */
    uint64_t known[KNOWN_MAX];
    sim_keeping_counts *counts;
} keeper;

/* ---- The script -------------------------------------------------------------------------------------------------------- */

static void on_submit(void *state, hf_store_request *request)
{
    keeper *it = state;
    hf_assert(it->read_count < READS_MAX);
    it->reads[it->read_count++] = request;
}

static void on_done(hf_call *call)
{
    (void)call;
}

static void send(keeper *it, hf_method method, const void *request)
{
    hf_call *call = HF_ARENA_NEW(&it->arena, hf_call);
    hf_call_init(call, method, request, &it->arena, on_done);
    hf_core_call(it->core, call, it->now);
}

#define REQUEST(stem) hf_pb_##stem##_request *request = HF_ARENA_NEW(&it->arena, hf_pb_##stem##_request)

static void send_retention(keeper *it, hf_str namespace_)
{
    REQUEST(update_namespace);
    request->namespace = namespace_;
    request->config = HF_ARENA_NEW(&it->arena, hf_pb_namespace_config);
    request->config->workflow_execution_retention_ttl = hf_pb_duration_of(hf_nanoseconds(SIM_SECOND));
    send(it, HF_METHOD_UPDATE_NAMESPACE, request);
}

static hf_str crowd_name(keeper *it, int index)
{
    char name[SIM_NAME_LEN];
    int len = snprintf(name, sizeof name, "crowd-%d", index);
    return hf_arena_copy(&it->arena, hf_str_of_len(name, (size_t)len));
}

static void send_start(keeper *it, int index)
{
    REQUEST(start_workflow_execution);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_id = request->request_id = crowd_name(it, index);
    request->workflow_type = HF_ARENA_NEW(&it->arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("crowd");
    request->task_queue = HF_ARENA_NEW(&it->arena, hf_pb_task_queue);
    request->task_queue->name = HF_STR("idle");
    send(it, HF_METHOD_START_WORKFLOW_EXECUTION, request);
}

static void send_batch(keeper *it, int step)
{
    REQUEST(start_batch_operation);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->reason = HF_STR("because");
    request->visibility_query = HF_STR("TaskQueue = 'idle'");
    if (step == STEP_SIGNAL) {
        request->job_id = HF_STR("signals");
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_SIGNAL_OPERATION;
        request->signal_operation = HF_ARENA_NEW(&it->arena, hf_pb_batch_operation_signal);
        request->signal_operation->signal = HF_STR("go");
    } else if (step == STEP_TERMINATE) {
        request->job_id = HF_STR("ends");
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_TERMINATION_OPERATION;
        request->termination_operation = HF_ARENA_NEW(&it->arena, hf_pb_batch_operation_termination);
    } else {
        request->job_id = HF_STR("deletes");
        request->visibility_query = HF_STR("");
        request->executions.items = HF_ARENA_ARRAY(&it->arena, hf_pb_workflow_execution, CROWD / 2);
        for (int i = 0; i < CROWD / 2; i++) {
            request->executions.items[request->executions.count++].workflow_id = crowd_name(it, i);
        }
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_DELETION_OPERATION;
        request->deletion_operation = HF_ARENA_NEW(&it->arena, hf_pb_batch_operation_deletion);
    }
    send(it, HF_METHOD_START_BATCH_OPERATION, request);
}

/* Whether the script goes on: nothing has failed in this life. */
static bool goes_on(const keeper *it)
{
    return hf_core_status(it->core) == HF_OK && hf_vfs_faults_hit(it->disk) == it->hits && hf_checks_failed() == 0;
}

static void note_hash(keeper *it)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    HF_CHECK(hf_store_hash(&op, it->store, sim_heap, &hash) == HF_OK);
    *SIM_PUSH(&it->hashes) = hash;
}

static bool commit(keeper *it)
{
    hf_store_request *request = hf_core_seal(it->core, it->now);
    if (request == NULL) {
        return false;
    }
    hf_store_execute(it->store, request);
    if (request->status == HF_OK) {
        it->last = request->commit;
        if (it->is_first) {
            note_hash(it);
        }
    }
    hf_core_done(it->core, request, it->now);
    return true;
}

static bool read_one(keeper *it)
{
    if (it->read_count == 0) {
        return false;
    }
    hf_store_request *request = it->reads[0];
    it->read_count--;
    memmove(it->reads, it->reads + 1, it->read_count * sizeof *it->reads);
    hf_store_execute(it->store, request);
    hf_core_done(it->core, request, it->now);
    return true;
}

static bool tick(keeper *it)
{
    hf_clock next = hf_core_next(it->core);
    if (next.wall > it->now.wall && next.mono > it->now.mono) {
        return false;
    }
    hf_core_tick(it->core, it->now);
    return true;
}

static void settle(keeper *it)
{
    while (goes_on(it) && (read_one(it) || commit(it) || tick(it))) {
    }
}

static void shrink(keeper *it)
{
    hf_store_request request = {.verb = HF_STORE_SHRINK};
    do {
        hf_op_init(&request.op);
        hf_store_execute(it->store, &request);
        it->counts->shrinks++;
    } while (request.status == HF_OK && request.more && goes_on(it));
}

static void add_probes(keeper *it)
{
    for (int i = 0; i < HF_PROBE_COUNT; i++) {
        it->counts->probes[i] += it->core->probes[i];
    }
}

static void play(keeper *it)
{
    for (int step = 0; step < STEPS && goes_on(it); step++) {
        if (step == 0) {
            send_retention(it, HF_STR(SIM_NAMESPACE));
            send_retention(it, HF_STR("ns")); /* of the older files */
        } else if (step <= CROWD) {
            send_start(it, step - 1);
        } else if (step == STEP_SIGNAL || step == STEP_TERMINATE || step == STEP_DELETE) {
            send_batch(it, step);
        }
        int64_t span = step == STEP_HOUR ? 3600 * SIM_SECOND : HF_HOUSE_PACE;
        it->now.wall += span;
        it->now.mono += span;
        settle(it);
    }
    if (goes_on(it)) {
        shrink(it);
    }
}

/* Opens the file and an engine, and plays the script, as far as the disk allows. */
static void live(keeper *it)
{
    hf_op op;
    hf_arena_init(&it->arena, sim_heap);
    it->now = (hf_clock){.wall = INT64_C(4000000000) * SIM_SECOND, .mono = SIM_SECOND}; /* behind all deadlines */
    it->read_count = 0;
    it->core = NULL;
    it->store = NULL;
    hf_status status = sim_open_store(it->disk, &op, &it->store);
    if (status == HF_OK) {
        it->first = it->last = it->store->ops->last_commit(it->store);
        if (it->is_first) {
            note_hash(it);
        }
        hf_core_options options = {
            .memory = sim_heap, .seed = {7}, .block_size = 4, .operation_portion = 3, .mem_max = 40000};
        status = hf_core_open(&op, &options, it->store, it->now, &it->core);
    }
    if (status == HF_OK) {
        it->core->submit = on_submit;
        it->core->submit_state = it;
        play(it);
        add_probes(it);
        sim_close_engine(it->core);
    } else {
        HF_CHECK_SAY(!it->is_first, "the file cannot be opened: %s", op.message);
    }
    hf_store_close(it->store);
    hf_arena_deinit(&it->arena);
}

/* A disk as it was before the script. */
static void renew(keeper *it)
{
    hf_vfs *empty = hf_vfs_new("empty", 1);
    hf_vfs_image(empty, HF_CRASH_ALL, &it->rng, it->disk);
    hf_vfs_free(empty);
    if (it->bytes != NULL) {
        hf_vfs_write_file(it->disk, "sim.db", it->bytes, it->len);
    }
    it->hits = hf_vfs_faults_hit(it->disk);
    it->last = it->first;
}

/* ---- Judging ----------------------------------------------------------------------------------------------------------- */

static void on_found(void *state, const char *sentence)
{
    (void)HF_CHECK_SAY(false, "%s: holdfast db check: %s", (const char *)state, sentence);
}

/* The next process finds this. */
static void judge(keeper *it, hf_vfs *disk, const char *when)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t hash = 0;
    if (!HF_CHECK_SAY(sim_open_store(disk, &op, &store) == HF_OK, "%s: %s", when, op.message)) {
        return;
    }
    uint64_t last = store->ops->last_commit(store);
    HF_CHECK_SAY(last == it->last || last == it->last + 1, "%s: commit %llu is left, %llu was acknowledged", when,
                 (unsigned long long)last, (unsigned long long)it->last);
    size_t at = (size_t)(last - it->first);
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    HF_CHECK_SAY(at < it->hashes.count && hash == it->hashes.items[at], "%s: other contents after commit %llu", when,
                 (unsigned long long)last);
    if (hf_rng_below(&it->rng, ENGINES_EVERY) == 0) {
        hf_check_report report;
        hf_check_options options = {.deep = true, .found = on_found, .state = (void *)(uintptr_t)when};
        uint64_t ignored = 0;
        it->counts->engines++;
        HF_CHECK_SAY(sim_try_engine(&op, store, &ignored) == HF_OK, "%s: %s", when, op.message);
        HF_CHECK_SAY(hf_check_store(&op, sim_heap, store, &options, &report) == HF_OK, "%s: %s", when, op.message);
    }
    hf_store_close(store);
}

static void on_op(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)number;
    (void)kind;
    (void)file;
    keeper *it = state;
    for (int i = 0; i < HF_CRASH_MODE_COUNT - 1 + RANDOM_IMAGES && hf_checks_failed() == 0; i++) {
        hf_crash_mode mode = i < HF_CRASH_MODE_COUNT - 1 ? (hf_crash_mode)i : HF_CRASH_RANDOM;
        hf_vfs_image(it->disk, mode, &it->rng, it->image);
        uint64_t hash = hf_vfs_hash(it->image) ^ hf_hash_mix(it->last, 1);
        it->counts->images++;
        if (it->known[hash % KNOWN_MAX] != hash) {
            it->known[hash % KNOWN_MAX] = hash;
            it->counts->judged++;
            judge(it, it->image, "after a power cut");
        }
    }
}

/* ---- Calls that fail --------------------------------------------------------------------------------------------------- */

typedef struct plan {
    hf_io_fault fault;
    unsigned kinds;
    bool forever;
} plan;

static const plan PLANS[] = {
    {HF_FAULT_EIO, HF_IO_ANY, false},
    {HF_FAULT_ENOSPC, HF_IO_ANY, true},
    {HF_FAULT_SHORT_READ, HF_IO_READ, false},
    {HF_FAULT_EIO, HF_IO_SYNC, false},
};

/* Every `stride`-th call of the disk. */
static void fail_some(keeper *it, const plan *how, uint64_t stride)
{
    for (uint64_t nth = 1 + hf_rng_below(&it->rng, stride); hf_checks_failed() == 0; nth += stride) {
        renew(it);
        hf_vfs_fail(it->disk, how->kinds, nth, how->fault, how->forever);
        live(it);
        hf_vfs_fail(it->disk, 0, 0, HF_FAULT_EIO, false);
        if (hf_vfs_faults_hit(it->disk) == it->hits) {
            return; /* it has fewer calls */
        }
        it->counts->faults++;
        judge(it, it->disk, "after a failure");
    }
}

void sim_keeping_file(const char *bytes, size_t len, uint64_t stride, sim_keeping_counts *counts)
{
    keeper *it = calloc(1, sizeof *it);
    if (it == NULL) {
        abort();
    }
    it->counts = counts;
    it->rng.state = 1;
    it->bytes = (char *)(uintptr_t)bytes;
    it->len = len;
    it->disk = hf_vfs_new("keeping", 1);
    it->image = hf_vfs_new("image", 1);
    it->is_first = true;
    renew(it);
    live(it);
    it->is_first = false;
    judge(it, it->disk, "at rest");
    renew(it);
    hf_vfs_on_op(it->disk, on_op, it);
    live(it);
    hf_vfs_on_op(it->disk, NULL, NULL);
    for (size_t i = 0; i < HF_COUNT_OF(PLANS) && hf_checks_failed() == 0; i++) {
        fail_some(it, &PLANS[i], stride);
    }
    hf_vfs_free(it->disk);
    hf_vfs_free(it->image);
    free(it->hashes.items);
    free(it);
}
