/* Files of older versions (tests/fixtures) on a disk that loses its power or fails while they are opened for the first time. Whatever
 * happens, the next opening finds the file as it was or brought up to date, and an engine on it that passes its checks: with the first
 * commit of the engine before, if that was acknowledged, or else perhaps. */
#include "sim/engine/disk.h"

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANDOM_IMAGES = 2, KNOWN_MAX = 1024 };

typedef struct older {
    char *bytes; /* of the file */
    size_t len;
    hf_vfs *disk, *image;
    hf_rng rng;
    uint64_t hashes[2]; /* of the contents: brought up to date, and with the first commit */
    bool is_committed;  /* that was acknowledged */
    uint64_t known[KNOWN_MAX];
    sim_older_counts *counts;
} older;

char *sim_read_fixture(const char *name, size_t *ret_len)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s", HF_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    if (!HF_CHECK_SAY(file != NULL && fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0, "%s is there", path)) {
        return NULL;
    }
    *ret_len = (size_t)ftell(file);
    char *bytes = malloc(*ret_len);
    rewind(file);
    bool fine = bytes != NULL && fread(bytes, 1, *ret_len, file) == *ret_len;
    (void)fclose(file);
    if (!HF_CHECK(fine)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* A disk with nothing but the older file. */
static void renew(older *it)
{
    hf_vfs *empty = hf_vfs_new("empty", 1);
    hf_vfs_image(empty, HF_CRASH_ALL, &it->rng, it->disk);
    hf_vfs_free(empty);
    hf_vfs_write_file(it->disk, "sim.db", it->bytes, it->len);
    it->is_committed = false;
}

/* Opens the file and an engine, which makes its first commit. The hashes are noted, if there are none yet. */
static hf_status use(older *it)
{
    hf_store *store = NULL;
    hf_core *core = NULL;
    hf_op op;
    bool is_first = it->hashes[0] == 0;
    hf_status status = sim_open_store(it->disk, &op, &store);
    if (status == HF_OK && is_first) {
        HF_CHECK(hf_store_hash(&op, store, sim_heap, &it->hashes[0]) == HF_OK);
    }
    status = status == HF_OK ? sim_open_engine(&op, store, &core) : status;
    if (status == HF_OK) {
        status = sim_make_commit(core, store);
        it->is_committed = status == HF_OK;
        sim_close_engine(core);
    }
    if (status == HF_OK && is_first) {
        HF_CHECK(hf_store_hash(&op, store, sim_heap, &it->hashes[1]) == HF_OK);
    }
    hf_store_close(store);
    return status;
}

/* The next process finds this. */
static void judge(older *it, hf_vfs *disk, const char *when)
{
    hf_store *store = NULL;
    hf_op op;
    uint64_t hash = 0;
    uint64_t ignored = 0;
    if (!HF_CHECK_SAY(sim_open_store(disk, &op, &store) == HF_OK, "%s: %s", when, op.message)) {
        return;
    }
    HF_CHECK(hf_store_hash(&op, store, sim_heap, &hash) == HF_OK);
    HF_CHECK_SAY(hash == it->hashes[1] || (hash == it->hashes[0] && !it->is_committed),
                 "%s: the file is neither as it was nor with the first commit", when);
    HF_CHECK_SAY(sim_try_engine(&op, store, &ignored) == HF_OK, "%s: %s", when, op.message);
    hf_store_close(store);
}

/* ---- Power ------------------------------------------------------------------------------------------------------------- */

static void on_op(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)number;
    (void)kind;
    (void)file;
    older *it = state;
    for (int i = 0; i < HF_CRASH_MODE_COUNT - 1 + RANDOM_IMAGES && hf_checks_failed() == 0; i++) {
        hf_crash_mode mode = i < HF_CRASH_MODE_COUNT - 1 ? (hf_crash_mode)i : HF_CRASH_RANDOM;
        hf_vfs_image(it->disk, mode, &it->rng, it->image);
        uint64_t hash = hf_vfs_hash(it->image) ^ it->is_committed;
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
    {HF_FAULT_EIO, HF_IO_ANY, false},         {HF_FAULT_EIO, HF_IO_ANY, true},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false},      {HF_FAULT_ENOSPC, HF_IO_ANY, true},
    {HF_FAULT_SHORT_READ, HF_IO_READ, false}, {HF_FAULT_LATE_ENOSPC, HF_IO_SYNC, false},
    {HF_FAULT_EIO, HF_IO_SYNC_DIR, false},
};

static void fail_everywhere(older *it, const plan *how)
{
    for (uint64_t nth = 1; hf_checks_failed() == 0; nth++) {
        renew(it);
        uint64_t hits = hf_vfs_faults_hit(it->disk);
        hf_vfs_fail(it->disk, how->kinds, nth, how->fault, how->forever);
        it->counts->reported += use(it) != HF_OK;
        hf_vfs_fail(it->disk, 0, 0, HF_FAULT_EIO, false);
        if (hf_vfs_faults_hit(it->disk) == hits) {
            return; /* it has fewer calls */
        }
        it->counts->faults++;
        judge(it, it->disk, "after a failure");
        hf_vfs_image(it->disk, HF_CRASH_NONE, &it->rng, it->image);
        judge(it, it->image, "after a failure, an opening and a power cut");
    }
}

void sim_older_file(const char *name, sim_older_counts *counts)
{
    older *it = calloc(1, sizeof *it);
    if (it == NULL) {
        abort();
    }
    it->counts = counts;
    it->rng.state = 1;
    it->bytes = sim_read_fixture(name, &it->len);
    if (it->bytes != NULL) {
        it->disk = hf_vfs_new("older", 1);
        it->image = hf_vfs_new("image", 1);
        renew(it);
        HF_CHECK(use(it) == HF_OK && it->hashes[0] != it->hashes[1]);
        renew(it);
        hf_vfs_on_op(it->disk, on_op, it);
        HF_CHECK(use(it) == HF_OK);
        hf_vfs_on_op(it->disk, NULL, NULL);
        for (size_t i = 0; i < HF_COUNT_OF(PLANS); i++) {
            fail_everywhere(it, &PLANS[i]);
        }
        hf_vfs_free(it->disk);
        hf_vfs_free(it->image);
    }
    free(it->bytes);
    free(it);
}
