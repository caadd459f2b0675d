/* The disk that the next boot finds, and files that a test puts there or reads.
 *
 * For each file, the seed decides which of the bytes that were written but not synced survive a power cut:
 *
 *   nothing      the image of the last sync
 *   a prefix     up to some 512-byte block of the new bytes
 *   torn         the new length, but each new block may be missing: then it reads as before, or as zeros
 *   everything
 *
 * Pages that a failed sync dropped never survive: the disk keeps its old bytes there, whatever reads showed before
 * (writeback.c). A file that was never synced may also be missing altogether: its directory entry was not safe
 * either. */
#include "env/sim/sim_private.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_LEN = 512 };

typedef enum outcome { NOTHING, PREFIX, TORN, EVERYTHING, OUTCOME_COUNT } outcome;

/* The first byte in which the two images differ, or the shorter length, as the start of its block. */
static size_t first_change(const hf_sim_image *a, const hf_sim_image *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    size_t same = 0;
    while (same < len && a->bytes[same] == b->bytes[same]) {
        same++;
    }
    return same / BLOCK_LEN * BLOCK_LEN;
}

/* Keeps the new bytes up to a random cut; behind it the file has its synced bytes, as far as these go. */
static void keep_prefix(hf_rng *rng, hf_sim_file *file, size_t start)
{
    hf_sim_image *now = &file->now;
    hf_assert(start <= now->len && start % BLOCK_LEN == 0);
    size_t blocks = (now->len - start) / BLOCK_LEN;
    size_t cut = start + BLOCK_LEN * (size_t)hf_rng_below(rng, blocks + 1);
    if (cut < file->synced.len) {
        size_t overlap = file->synced.len < now->len ? file->synced.len : now->len;
        if (cut < overlap) {
            memcpy(now->bytes + cut, file->synced.bytes + cut, overlap - cut);
        }
        now->len = overlap;
    } else {
        now->len = cut;
    }
}

static void tear(hf_rng *rng, hf_sim_file *file, size_t start)
{
    hf_sim_image *now = &file->now;
    hf_assert(start % BLOCK_LEN == 0);
    for (size_t at = start; at < now->len; at += BLOCK_LEN) {
        if (hf_rng_below(rng, 2) == 0) {
            continue;
        }
        size_t len = now->len - at < BLOCK_LEN ? now->len - at : BLOCK_LEN;
        size_t safe = at < file->synced.len ? file->synced.len - at : 0;
        safe = safe < len ? safe : len;
        if (safe > 0) {
            memcpy(now->bytes + at, file->synced.bytes + at, safe);
        }
        memset(now->bytes + at + safe, 0, len - safe);
    }
}

/* False = no memory. */
static bool restart_file(hf_sim *sim, hf_sim_file *file)
{
    hf_sim_pages_forget(file);
    hf_sim_pages_clean(file);
    bool is_dirty = !file->is_durable || file->now.len != file->synced.len ||
                    (file->now.len > 0 && memcmp(file->now.bytes, file->synced.bytes, file->now.len) != 0);
    if (!file->exists || !is_dirty) {
        return true;
    }
    if (!file->is_durable && hf_rng_below(&sim->rng, 2) == 0) {
        file->exists = false;
        file->now.len = 0;
        hf_sim_trace(sim, HF_SIM_TRACE_FILE, OUTCOME_COUNT);
        return true;
    }
    outcome left = (outcome)hf_rng_below(&sim->rng, OUTCOME_COUNT);
    size_t start = first_change(&file->now, &file->synced);
    hf_sim_trace(sim, HF_SIM_TRACE_FILE, left);
    switch (left) {
    case NOTHING:
        if (!hf_sim_image_set(&file->now, file->synced.bytes, file->synced.len)) {
            return false;
        }
        break;
    case PREFIX:
        keep_prefix(&sim->rng, file, start);
        break;
    case TORN:
        tear(&sim->rng, file, start);
        break;
    case EVERYTHING:
    case OUTCOME_COUNT:
        break;
    }
    file->is_durable = true;
    return hf_sim_image_set(&file->synced, file->now.bytes, file->now.len);
}

static void faults_off(hf_sim *sim)
{
    sim->options.short_io_permille = 0;
    sim->options.reset_permille = 0;
    sim->options.refuse_permille = 0;
    sim->options.full_permille = 0;
    sim->options.eio_permille = 0;
    sim->options.disk_len_max = HF_UNLIMITED;
    sim->options.crash_after = 0;
    sim->counters.is_crashed = false;
}

hf_status hf_sim_boot(hf_env *env, hf_op *op)
{
    if (env == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "a simulated environment is needed to restart it");
    }
    hf_sim *sim = hf_sim_of(env);
    faults_off(sim);
    sim->disk_generation++;
    sim->disk_len = 0;
    HF_LIST_EACH(node, &sim->files)
    {
        hf_sim_file *file = HF_CONTAINER(node, hf_sim_file, node);
        if (!restart_file(sim, file)) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated disk");
        }
        hf_assert(file->errors == 0); /* a boot reads the disk, not the cache */
        sim->disk_len += (int64_t)file->now.len;
    }
    return HF_OK;
}

hf_status hf_sim_disk_put(hf_env *env, hf_op *op, const char *path, const void *bytes, size_t len)
{
    if (env == NULL || path == NULL || path[0] == '\0' || (bytes == NULL && len > 0)) {
        return hf_fail(op, HF_ERR_MISUSE, "a simulated environment, a path and bytes are needed to put a file there");
    }
    hf_sim *sim = hf_sim_of(env);
    hf_sim_file *file = hf_sim_file_find(sim, path);
    if (file == NULL && (file = hf_sim_file_new(sim, path)) == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated disk");
    }
    int64_t old_len = (int64_t)file->now.len;
    if (!hf_sim_image_set(&file->synced, bytes, len) || !hf_sim_image_set(&file->now, bytes, len)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated disk");
    }
    file->is_durable = true;
    hf_sim_pages_clean(file);
    sim->disk_len += (int64_t)len - old_len;
    return HF_OK;
}

hf_status hf_sim_disk_get(hf_env *env, hf_op *op, const char *path, char **ret_bytes, size_t *ret_len)
{
    if (env == NULL || path == NULL || ret_bytes == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "a simulated environment, a path and a place for the bytes are needed");
    }
    const hf_sim_file *file = hf_sim_file_find(hf_sim_of(env), path);
    if (file == NULL) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "the simulated disk has no file \"%.200s\"", path);
    }
    char *bytes = (char *)malloc(file->now.len + 1); /* hf_text_free releases it with the host's free */
    if (bytes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the %zu bytes of a file", file->now.len);
    }
    if (file->now.len > 0) {
        memcpy(bytes, file->now.bytes, file->now.len);
    }
    bytes[file->now.len] = '\0';
    *ret_bytes = bytes;
    if (ret_len != NULL) {
        *ret_len = file->now.len;
    }
    return HF_OK;
}
