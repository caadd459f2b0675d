/* The simulated disk. Each file has two images: `now`, which reads see and writes change, and `synced`, which the
 * last file_sync made safe. The operations here only keep these two. writeback.c decides what a sync writes, also if
 * it fails, and crash.c what a power cut leaves.
 *
 * An operation may take virtual time, so a caller can be canceled, and others run, while it is on the disk. Every call
 * counts as one operation; after crash_after of them the power is gone and each fails with HF_ERR_IO. The write during which the power is cut writes a part of its bytes, and so does one that fails by eio_permille: a failed write promises
 * nothing about the bytes. */
#include "env/sim/sim_private.h"

#include <stdlib.h>
#include <string.h>

hf_sim_file *hf_sim_file_find(hf_sim *sim, const char *path)
{
    HF_LIST_EACH(node, &sim->files)
    {
        hf_sim_file *file = HF_CONTAINER(node, hf_sim_file, node);
        if (file->exists && strcmp(file->path, path) == 0) {
            return file;
        }
    }
    return NULL;
}

hf_sim_file *hf_sim_file_new(hf_sim *sim, const char *path)
{
    size_t len = strlen(path) + 1;
    hf_sim_file *file = (hf_sim_file *)calloc(1, sizeof *file + len);
    if (file != NULL) {
        memcpy(file->path, path, len);
        file->exists = true;
        hf_list_push_back(&sim->files, &file->node);
    }
    return file;
}

void hf_sim_files_drop(hf_sim *sim)
{
    for (hf_node *node = NULL; (node = hf_list_pop_front(&sim->files)) != NULL;) {
        hf_sim_file *file = HF_CONTAINER(node, hf_sim_file, node);
        free(file->now.bytes);
        free(file->synced.bytes);
        free(file->is_dirty);
        free(file);
    }
}

static bool image_reserve(hf_sim_image *image, size_t len)
{
    if (len <= image->capacity) {
        return true;
    }
    size_t capacity = len < 512 ? 512 : len + len / 2;
    uint8_t *bytes = (uint8_t *)realloc(image->bytes, capacity);
    if (bytes == NULL) {
        return false;
    }
    hf_assert(capacity >= len && image->len <= len);
    image->bytes = bytes;
    image->capacity = capacity;
    return true;
}

bool hf_sim_image_resize(hf_sim_image *image, size_t len)
{
    if (!image_reserve(image, len)) {
        return false;
    }
    if (len > image->len) {
        memset(image->bytes + image->len, 0, len - image->len);
    }
    hf_assert(len <= image->capacity);
    image->len = len;
    return true;
}

bool hf_sim_image_set(hf_sim_image *image, const void *bytes, size_t len)
{
    if (!image_reserve(image, len)) {
        return false;
    }
    if (len > 0) {
        memcpy(image->bytes, bytes, len);
    }
    image->len = len;
    return true;
}

/* One operation: its time, its count, its faults. */
static hf_status operate(hf_sim *sim, hf_op *op, const char *what, bool is_slow)
{
    bool takes_time = is_slow || hf_rng_below(&sim->rng, 8) == 0;
    hf_sim_sleep(sim, takes_time ? hf_sim_latency(sim) : 0);
    uint64_t number = ++sim->counters.file_operations;
    if (sim->options.crash_after > 0 && number > (uint64_t)sim->options.crash_after) {
        sim->counters.is_crashed = true;
        return hf_fail(op, HF_ERR_IO, "cannot %s a file: the simulated power is off", what);
    }
    if (hf_rng_permille(&sim->rng, sim->options.eio_permille)) {
        return hf_fail(op, HF_ERR_IO, "cannot %s a file: a simulated error", what);
    }
    return HF_OK;
}

static hf_status traced(hf_sim *sim, hf_status status, uint64_t word)
{
    hf_sim_trace(sim, HF_SIM_TRACE_FILE, ((uint64_t)status << 48) ^ word);
    return status;
}

static hf_status desc_of(hf_sim *sim, hf_op *op, int fd, hf_sim_desc **ret_desc)
{
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    if (desc == NULL || desc->kind != HF_SIM_FILE) {
        return hf_fail(op, HF_ERR_IO, "descriptor %d is not an open file of this simulation", fd);
    }
    if (desc->as.file.generation != sim->disk_generation) {
        return hf_fail(op, HF_ERR_IO, "descriptor %d is from before the restart", fd);
    }
    *ret_desc = desc;
    return HF_OK;
}

/* Finds or makes the file as the mode wants it. */
static hf_status open_as(hf_sim *sim, hf_op *op, const char *path, hf_file_mode mode, hf_sim_file **ret_file)
{
    hf_sim_file *file = hf_sim_file_find(sim, path);
    if (file == NULL && mode == HF_FILE_READ) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "no file \"%s\"", path);
    }
    if (file != NULL && mode == HF_FILE_WRITE_NEW) {
        return hf_fail(op, HF_ERR_EXISTS, "\"%s\" exists", path);
    }
    if (file == NULL && (file = hf_sim_file_new(sim, path)) == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated file \"%s\"", path);
    }
    if (mode == HF_FILE_WRITE) {
        sim->disk_len -= (int64_t)file->now.len;
        file->now.len = 0;
        hf_sim_pages_clean(file);
    }
    *ret_file = file;
    return HF_OK;
}

hf_status hf_sim_file_open(hf_env *env, hf_op *op, const char *path, hf_file_mode mode, int *ret_fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_sim_file *file = NULL;
    hf_status status = operate(sim, op, "open", false);
    if (status == HF_OK) {
        status = hf_sim_desc_new(sim, op, HF_SIM_FILE, &desc);
    }
    if (status == HF_OK && (status = open_as(sim, op, path, mode, &file)) != HF_OK) {
        hf_sim_desc_free(sim, desc);
    }
    if (status != HF_OK) {
        return traced(sim, status, 1);
    }
    desc->as.file.file = file;
    desc->as.file.mode = mode;
    desc->as.file.generation = sim->disk_generation;
    desc->as.file.errors_heard = file->is_told ? file->errors : 0;
    *ret_fd = desc->fd;
    return traced(sim, HF_OK, (uint64_t)desc->fd);
}

hf_status hf_sim_file_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_status status = operate(sim, op, "read", false);
    if (status == HF_OK) {
        status = desc_of(sim, op, fd, &desc);
    }
    hf_assert(status != HF_OK || desc != NULL);
    if (status == HF_OK && desc->as.file.mode != HF_FILE_READ) {
        status = hf_fail(op, HF_ERR_INVALID, "descriptor %d is open for writing", fd);
    }
    if (status != HF_OK) {
        return traced(sim, status, 2);
    }
    const hf_sim_image *image = &desc->as.file.file->now;
    size_t offset = desc->as.file.offset;
    size_t left = offset < image->len ? image->len - offset : 0;
    size_t count = left < len ? left : len;
    if (count > 1 && hf_rng_permille(&sim->rng, sim->options.short_io_permille)) {
        count = 1 + (size_t)hf_rng_below(&sim->rng, count - 1);
    }
    if (count > 0) {
        memcpy(buf, image->bytes + offset, count);
    }
    desc->as.file.offset += count;
    *ret_len = count;
    return traced(sim, HF_OK, count);
}

/* Where the next write goes: an appender always finds the end, a writer continues after its last write. */
static hf_status put(hf_sim *sim, hf_op *op, hf_sim_desc *desc, const void *buf, size_t len)
{
    hf_sim_image *image = &desc->as.file.file->now;
    size_t offset = desc->as.file.mode == HF_FILE_APPEND ? image->len : desc->as.file.offset;
    size_t end = offset + len;
    size_t first = offset < image->len ? offset : image->len;
    if (!image_reserve(image, end) || !hf_sim_pages_touch(desc->as.file.file, first, end)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for %zu bytes on the simulated disk", len);
    }
    if (offset > image->len) { /* somebody truncated it meanwhile: a hole */
        memset(image->bytes + image->len, 0, offset - image->len);
    }
    if (len > 0) {
        memcpy(image->bytes + offset, buf, len);
    }
    if (end > image->len) {
        sim->disk_len += (int64_t)(end - image->len);
        image->len = end;
    }
    desc->as.file.offset = end;
    return HF_OK;
}

hf_status hf_sim_file_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    bool was_crashed = sim->counters.is_crashed;
    hf_status status = operate(sim, op, "write", false);
    hf_status found = desc_of(sim, status == HF_OK ? op : NULL, fd, &desc);
    hf_assert(found != HF_OK || desc != NULL);
    if (found != HF_OK || desc->as.file.mode == HF_FILE_READ) {
        if (found == HF_OK) {
            found = hf_fail(status == HF_OK ? op : NULL, HF_ERR_INVALID, "descriptor %d is open for reading", fd);
        }
        return traced(sim, status != HF_OK ? status : found, 3);
    }
    if (status != HF_OK) { /* a part of it is on the disk, unless the power was off before */
        size_t part = was_crashed ? 0 : (size_t)hf_rng_below(&sim->rng, len + 1);
        (void)put(sim, NULL, desc, buf, part);
        return traced(sim, status, 3);
    }
    int64_t room = sim->options.disk_len_max == HF_UNLIMITED ? INT64_MAX : sim->options.disk_len_max - sim->disk_len;
    room = room > 0 ? room : 0;
    size_t fits = (uint64_t)room < len ? (size_t)room : len;
    status = put(sim, op, desc, buf, fits);
    if (status == HF_OK && fits < len) {
        status = hf_fail(op, HF_ERR_FULL, "the simulated disk is full: %zu of %zu bytes written", fits, len);
    }
    return traced(sim, status, fits);
}

/* A sync by this descriptor that the disk does not fail. It may still report an earlier failure. */
static hf_status sync_well(hf_op *op, hf_sim_desc *desc)
{
    hf_sim_file *file = desc->as.file.file;
    if (!hf_sim_pages_sync(file)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated disk");
    }
    if (desc->as.file.errors_heard != file->errors) {
        desc->as.file.errors_heard = file->errors;
        file->is_told = true;
        return hf_fail(op, HF_ERR_IO, "cannot sync a file: an earlier sync by another descriptor failed");
    }
    return HF_OK;
}

hf_status hf_sim_file_sync(hf_env *env, hf_op *op, int fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_status status = operate(sim, op, "sync", true);
    hf_status found = desc_of(sim, status == HF_OK ? op : NULL, fd, &desc);
    hf_assert(found != HF_OK || desc != NULL);
    if (status == HF_OK) {
        status = found == HF_OK ? sync_well(op, desc) : found;
    } else if (found == HF_OK && !sim->counters.is_crashed) {
        hf_sim_pages_drop(sim, desc->as.file.file);
        desc->as.file.file->is_told = true;
        desc->as.file.errors_heard = desc->as.file.file->errors;
    }
    return traced(sim, status, 4);
}

/* The descriptor is gone whatever the status, as with close(2). */
hf_status hf_sim_file_close(hf_env *env, hf_op *op, int fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_status status = operate(sim, op, "close", false);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    hf_assert(desc != NULL && desc->kind == HF_SIM_FILE); /* a second close could close another caller's descriptor */
    hf_sim_desc_free(sim, desc);
    return traced(sim, status, 5);
}

/* ---- Removing, and locks by name ---- */

/* The file is gone for good: the directory is synced at once. A socket file that a listener left there goes, too. */
static void drop_name(hf_sim *sim, const char *path)
{
    hf_sim_file *file = hf_sim_file_find(sim, path);
    if (file != NULL) {
        sim->disk_len -= (int64_t)file->now.len;
        file->now.len = 0;
        file->exists = false;
    }
    hf_sim_stale_remove(sim, path);
}

hf_status hf_sim_file_remove(hf_env *env, hf_op *op, const char *path)
{
    hf_sim *sim = hf_sim_of(env);
    hf_status status = operate(sim, op, "remove", false);
    if (status == HF_OK) {
        drop_name(sim, path);
    }
    return traced(sim, status, 6);
}

hf_status hf_sim_socket_remove(hf_env *env, hf_op *op, const char *path)
{
    const hf_sim_file *file = hf_sim_file_find(hf_sim_of(env), path);
    if (file != NULL && file->exists) {
        return hf_fail(op, HF_ERR_EXISTS, "%s is in the way, and is not a socket: move it away", path);
    }
    return hf_sim_file_remove(env, op, path);
}

/* The simulated disk has only regular files. */
hf_status hf_sim_file_check(hf_env *env, hf_op *op, const char *path)
{
    (void)env;
    (void)op;
    (void)path;
    return HF_OK;
}

/* A simulation has only one process, so a lock is an open descriptor of the file with is_lock set. A restart frees it. */
static bool is_locked(hf_sim *sim, const hf_sim_file *file)
{
    for (uint32_t i = 0; i < sim->desc_capacity; i++) {
        const hf_sim_desc *desc = sim->descs[i];
        if (desc != NULL && desc->kind == HF_SIM_FILE && desc->as.file.is_lock && desc->as.file.file == file &&
            desc->as.file.generation == sim->disk_generation) {
            return true;
        }
    }
    return false;
}

hf_status hf_sim_lock_open(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_status status = operate(sim, op, "lock", false);
    hf_sim_file *file = hf_sim_file_find(sim, path);
    if (status == HF_OK && file != NULL && is_locked(sim, file)) {
        *ret_holder = file->is_brief ? -1 : 1;
        status = hf_fail(op, HF_ERR_EXISTS, "\"%s\" is held", path);
    }
    if (status == HF_OK) {
        status = hf_sim_desc_new(sim, op, HF_SIM_FILE, &desc);
    }
    if (status == HF_OK && (status = open_as(sim, op, path, HF_FILE_APPEND, &file)) != HF_OK) {
        hf_sim_desc_free(sim, desc);
    }
    if (status == HF_OK) {
        desc->as.file.file = file;
        desc->as.file.mode = HF_FILE_APPEND;
        desc->as.file.generation = sim->disk_generation;
        desc->as.file.is_lock = true;
        file->is_brief = is_brief;
        *ret_fd = desc->fd;
    }
    return traced(sim, status, 7);
}

void hf_sim_lock_close(hf_env *env, const char *path, int fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    hf_assert(desc != NULL && desc->kind == HF_SIM_FILE && desc->as.file.is_lock);
    if (desc->as.file.generation == sim->disk_generation && hf_sim_file_find(sim, path) == desc->as.file.file) {
        drop_name(sim, path);
    }
    hf_sim_desc_free(sim, desc);
    (void)traced(sim, HF_OK, 8);
}

/* Databases are not on this disk: SQLite has a simulated one of its own (tests/support/vfs.h). */
hf_status hf_sim_file_reread(hf_env *env, hf_op *op, const char *path)
{
    (void)env;
    return hf_fail(op, HF_ERR_NOT_FOUND, "there is no database %s on the simulated disk", path);
}
