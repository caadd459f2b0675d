/* An engine on a disk that is not the world's: opened, checked, closed. */
#include "sim/engine/disk.h"

#include "store/sqlite/sqlite.h"

#include <stdlib.h>

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

const hf_allocator sim_heap = {heap_allocate, heap_release, NULL};

hf_status sim_open_store(hf_vfs *disk, hf_op *op, hf_store **ret_store)
{
    hf_sqlite_options options = {
        .vfs = hf_vfs_name(disk), .cache_len = 64 * 1024, .reread = hf_vfs_reread, .reread_state = disk};
    hf_op_init(op);
    *ret_store = NULL;
    return hf_sqlite_open(op, sim_heap, "sim.db", &options, ret_store);
}

static const hf_clock NOW = {.wall = INT64_C(1700000000) * SIM_SECOND, .mono = SIM_SECOND};

/* The engine's reads are never answered: nothing here needs them. */
static void ignore(void *state, hf_store_request *request)
{
    (void)state;
    (void)request;
}

hf_status sim_open_engine(hf_op *op, hf_store *store, hf_core **ret_core)
{
    hf_core_options options = {.memory = sim_heap, .seed = {7}};
    hf_status status = hf_core_open(op, &options, store, NOW, ret_core);
    if (status == HF_OK) {
        (*ret_core)->submit = ignore;
    }
    return status;
}

void sim_close_engine(hf_core *core)
{
    hf_core_stop(core, HF_ERR_CLOSED, "enough");
    hf_core_free(core);
}

/* The first commit of an engine, which records the opening. */
hf_status sim_make_commit(hf_core *core, hf_store *store)
{
    hf_store_request *request = hf_core_seal(core, NOW);
    hf_assert(request != NULL); /* its incarnation is new */
    hf_store_execute(store, request);
    hf_status status = request->status;
    hf_core_done(core, request, NOW);
    return status;
}

/* Opens an engine on the store and checks its runs against their histories; returns the hash of its state. */
hf_status sim_try_engine(hf_op *op, hf_store *store, uint64_t *ret_hash)
{
    hf_core *core = NULL;
    hf_status status = sim_open_engine(op, store, &core);
    if (status == HF_OK) {
        status = hf_core_check(op, core, store);
        *ret_hash = hf_core_hash(core);
        sim_close_engine(core);
    }
    return status;
}
