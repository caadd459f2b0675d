/* SQLite's side of the simulated disk. Every call passes `enter`, which counts it, shows changes to the hook, and
 * decides whether the call fails; vfs_disk.c then changes the files.
 *
 * Only version 1 of the file methods is offered: no shared memory, no mapping. A WAL database keeps its index on the
 * heap when its locking mode is EXCLUSIVE from the first access on, and asks for no more. Locks between connections are
 * kept all the same: a database that is opened twice has to find that out. */
#include "support/vfs_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An open file; SQLite allocates it. */
typedef struct handle {
    sqlite3_file base;     /* SQLite's view */
    hf_vfs *vfs;           /* the disk */
    hf_vfs_file *file;     /* the file; NULL after a failed open, and for the directory */
    hf_node node;          /* in file->handles */
    uint64_t generation;   /* the disk's when it was opened */
    uint64_t errors_heard; /* value of file->errors when this descriptor last reported one */
    int lock;              /* SQLITE_LOCK_* */
    bool is_deleted_after; /* SQLITE_OPEN_DELETEONCLOSE */
    bool is_syncing_dir;   /* its next sync is one of the directory, too */
} handle;

enum { PATH_LEN_MAX = 256, SECTOR_LEN = 4096 };

/* 2026-01-01 in Julian milliseconds, the earliest a clock starts. */
#define CLOCK_START_MS INT64_C(212633985600000)

/* ---- Failing ----------------------------------------------------------------------------------------------------- */

unsigned hf_io_fault_kinds(hf_io_fault fault)
{
    switch (fault) {
    case HF_FAULT_EIO:
        return HF_IO_ANY;
    case HF_FAULT_ENOSPC:
        return HF_IO_WRITE | HF_IO_TRUNCATE | HF_IO_OPEN;
    case HF_FAULT_SHORT_READ:
    case HF_FAULT_BIT_FLIP:
    case HF_FAULT_STALE_READ:
        return HF_IO_READ;
    case HF_FAULT_LOST_WRITE:
        return HF_IO_WRITE;
    case HF_FAULT_LOST_SYNC:
    case HF_FAULT_LATE_ENOSPC:
        return HF_IO_SYNC;
    }
    return 0;
}

void hf_vfs_fail(hf_vfs *vfs, unsigned kinds, uint64_t nth, hf_io_fault fault, bool forever)
{
    vfs->plan_kinds = kinds & hf_io_fault_kinds(fault);
    vfs->plan_left = nth;
    vfs->plan_fault = fault;
    vfs->plan_forever = forever;
}

uint64_t hf_vfs_faults_hit(const hf_vfs *vfs)
{
    return vfs->faults_hit;
}

uint64_t hf_vfs_io_ops(const hf_vfs *vfs, unsigned kinds)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HF_IO_KIND_COUNT; i++) {
        count += (kinds >> i & 1) != 0 ? vfs->io_ops[i] : 0;
    }
    return count;
}

/* How a call goes on. */
typedef enum verdict {
    GO,    /* does its work */
    FAULT, /* fails as planned */
    DEAD,  /* does nothing: no power */
} verdict;

static bool is_dead(hf_vfs *vfs, const handle *h)
{
    bool is_dead = vfs->is_off || (h != NULL && h->generation != vfs->generation);
    vfs->last_error = is_dead ? EIO : vfs->last_error;
    return is_dead;
}

static verdict enter(hf_vfs *vfs, const handle *h, hf_io_kind kind)
{
    if (is_dead(vfs, h)) {
        return DEAD;
    }
    vfs->io_ops[__builtin_ctz((unsigned)kind)]++;
    if (vfs->plan_left == 0 || (vfs->plan_kinds & (unsigned)kind) == 0) {
        return GO;
    }
    if (vfs->plan_left > 1) {
        vfs->plan_left--;
        return GO;
    }
    vfs->plan_left = vfs->plan_forever ? 1 : 0;
    vfs->faults_hit++;
    vfs->last_error = vfs->plan_fault == HF_FAULT_ENOSPC || vfs->plan_fault == HF_FAULT_LATE_ENOSPC ? ENOSPC : EIO;
    return FAULT;
}

/* The same for a change: the hook sees it first, and may switch the power off. */
static verdict enter_change(hf_vfs *vfs, const handle *h, hf_io_kind kind, hf_vfs_op_kind op, const hf_vfs_file *file,
                            const char *name)
{
    if (is_dead(vfs, h)) {
        return DEAD;
    }
    if (file == NULL || !file->is_scratch) {
        vfs->ops++;
        if (vfs->hook != NULL) {
            vfs->hook(vfs->hook_state, vfs->ops, op, name);
        }
    }
    return enter(vfs, h, kind);
}

/* ---- Open files -------------------------------------------------------------------------------------------------- */

static int file_close(sqlite3_file *base)
{
    handle *h = (handle *)base;
    hf_vfs_file *file = h->file;
    if (file == NULL) {
        return SQLITE_OK;
    }
    hf_list_remove(&h->node);
    bool is_alive = !h->vfs->is_off && h->generation == h->vfs->generation;
    if (h->is_deleted_after && file->is_present && is_alive) {
        hf_vfs_do_delete(h->vfs, file);
    }
    hf_vfs_file_settle(file);
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *to, int amount, sqlite3_int64 offset)
{
    handle *h = (handle *)base;
    hf_vfs *vfs = h->vfs;
    size_t len = (size_t)amount;
    verdict v = enter(vfs, h, HF_IO_READ);
    hf_io_fault fault = vfs->plan_fault;
    if (v == DEAD || (v == FAULT && fault == HF_FAULT_EIO)) {
        return SQLITE_IOERR_READ;
    }
    bool is_stale = v == FAULT && fault == HF_FAULT_STALE_READ;
    const hf_vfs_content *content = is_stale ? hf_vfs_durable(h->file) : &h->file->now;
    size_t there = hf_vfs_content_read(content, (uint64_t)offset, to, len);
    if (v == FAULT && fault == HF_FAULT_SHORT_READ) {
        there = (size_t)hf_rng_below(&vfs->rng, len);
        memset((unsigned char *)to + there, 0, len - there);
    } else if (v == FAULT && fault == HF_FAULT_BIT_FLIP) {
        uint64_t bit = hf_rng_below(&vfs->rng, len * 8);
        ((unsigned char *)to)[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    return there == len ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *from, int amount, sqlite3_int64 offset)
{
    handle *h = (handle *)base;
    hf_vfs *vfs = h->vfs;
    size_t len = (size_t)amount;
    verdict v = enter_change(vfs, h, HF_IO_WRITE, HF_VFS_WRITE, h->file, h->file->name);
    if (v == DEAD) {
        return SQLITE_IOERR_WRITE;
    }
    if (v == FAULT && vfs->plan_fault == HF_FAULT_LOST_WRITE) {
        return SQLITE_OK;
    }
    if (v == FAULT) { /* a part of it was written, up to the end of a sector or to any byte */
        size_t part = (size_t)hf_rng_below(&vfs->rng, len + 1);
        len = hf_rng_below(&vfs->rng, 2) == 0 ? part : part / 512 * 512;
    }
    if (len > 0) {
        hf_vfs_do_write(vfs, h->file, (uint64_t)offset, from, len);
    }
    return v == GO ? SQLITE_OK : vfs->plan_fault == HF_FAULT_ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 len)
{
    handle *h = (handle *)base;
    verdict v = enter_change(h->vfs, h, HF_IO_TRUNCATE, HF_VFS_TRUNCATE, h->file, h->file->name);
    if (v != GO) {
        return v == FAULT && h->vfs->plan_fault == HF_FAULT_ENOSPC ? SQLITE_FULL : SQLITE_IOERR_TRUNCATE;
    }
    hf_vfs_do_truncate(h->vfs, h->file, (uint64_t)len);
    return SQLITE_OK;
}

static int sync_dir(hf_vfs *vfs, const handle *h)
{
    switch (enter_change(vfs, h, HF_IO_SYNC_DIR, HF_VFS_SYNC_DIR, NULL, ".")) {
    case GO:
        hf_vfs_do_sync_dir(vfs);
        return SQLITE_OK;
    case FAULT:
        hf_vfs_do_sync_dir_badly(vfs);
        return SQLITE_IOERR_DIR_FSYNC;
    default:
        return SQLITE_IOERR_DIR_FSYNC;
    }
}

/* vfs-D3. Returns SQLITE_OK, or an error that the descriptor has not reported yet. */
static int report(handle *h)
{
    if (h->errors_heard == h->file->errors) {
        return SQLITE_OK;
    }
    h->errors_heard = h->file->errors;
    h->file->is_told = true;
    h->vfs->last_error = h->file->error;
    return SQLITE_IOERR_FSYNC;
}

static int file_sync(sqlite3_file *base, int flags)
{
    handle *h = (handle *)base;
    (void)flags;
    if (h->file == NULL) {
        return sync_dir(h->vfs, h);
    }
    verdict v = enter_change(h->vfs, h, HF_IO_SYNC, HF_VFS_SYNC, h->file, h->file->name);
    if (v == DEAD) {
        return SQLITE_IOERR_FSYNC;
    }
    if (v == FAULT && h->vfs->plan_fault == HF_FAULT_LOST_SYNC) {
        return SQLITE_OK;
    }
    if (v == FAULT) {
        hf_vfs_do_sync_badly(h->vfs, h->file, h->vfs->last_error);
    } else {
        hf_vfs_do_sync(h->vfs, h->file);
    }
    int rc = report(h);
    if (rc == SQLITE_OK && h->is_syncing_dir) { /* SQLite does not ask whether that worked */
        (void)sync_dir(h->vfs, h);
        h->is_syncing_dir = false;
    }
    return rc;
}

static verdict sync_by_name(hf_vfs *vfs, hf_vfs_file *file)
{
    verdict v = enter_change(vfs, NULL, HF_IO_SYNC, HF_VFS_SYNC, file, file->name);
    if (v == GO || (v == FAULT && vfs->plan_fault == HF_FAULT_LOST_SYNC)) {
        hf_vfs_do_sync(vfs, file);
        v = GO;
    } else if (v == FAULT) {
        hf_vfs_do_sync_badly(vfs, file, vfs->last_error);
    }
    file->is_told = v == DEAD ? file->is_told : true;
    return v;
}

hf_status hf_vfs_reread(void *vfs, hf_op *op, const char *file)
{
    hf_vfs *disk = vfs;
    hf_vfs_file *found = hf_vfs_file_find(disk, file);
    if (found == NULL) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no %s", file);
    }
    if (sync_by_name(disk, found) != GO && sync_by_name(disk, found) != GO) {
        return hf_fail(op, disk->last_error == ENOSPC ? HF_ERR_FULL : HF_ERR_IO, "cannot make %s durable", file);
    }
    hf_vfs_do_drop(disk, found);
    return HF_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret_len)
{
    handle *h = (handle *)base;
    if (enter(h->vfs, h, HF_IO_SIZE) != GO) {
        return SQLITE_IOERR_FSTAT;
    }
    *ret_len = (sqlite3_int64)h->file->now.len;
    return SQLITE_OK;
}

/* The highest lock that other handles hold on the file. Handles from before a power cut hold none. */
static int lock_of_others(const handle *me)
{
    int highest = SQLITE_LOCK_NONE;
    HF_LIST_EACH(node, &me->file->handles)
    {
        const handle *h = HF_CONTAINER(node, handle, node);
        if (h != me && h->generation == me->generation && h->lock > highest) {
            highest = h->lock;
        }
    }
    return highest;
}

static int file_lock(sqlite3_file *base, int wanted)
{
    handle *h = (handle *)base;
    if (enter(h->vfs, h, HF_IO_LOCK) != GO) {
        return SQLITE_IOERR_LOCK;
    }
    if (h->lock >= wanted) {
        return SQLITE_OK;
    }
    int others = lock_of_others(h);
    int bearable = wanted == SQLITE_LOCK_SHARED ? SQLITE_LOCK_RESERVED : SQLITE_LOCK_SHARED;
    if (others > bearable) {
        return SQLITE_BUSY;
    }
    if (wanted == SQLITE_LOCK_EXCLUSIVE && others != SQLITE_LOCK_NONE) {
        h->lock = SQLITE_LOCK_PENDING; /* keeps new readers away until the old ones are gone */
        return SQLITE_BUSY;
    }
    h->lock = wanted;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int wanted)
{
    handle *h = (handle *)base;
    h->lock = wanted < h->lock ? wanted : h->lock;
    return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *base, int *ret_is_reserved)
{
    handle *h = (handle *)base;
    if (enter(h->vfs, h, HF_IO_LOCK) != GO) {
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    }
    *ret_is_reserved = h->lock >= SQLITE_LOCK_RESERVED || lock_of_others(h) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int what, void *arg)
{
    if (what == SQLITE_FCNTL_LAST_ERRNO) {
        *(int *)arg = ((handle *)base)->vfs->last_error;
        return SQLITE_OK;
    }
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *base)
{
    (void)base;
    return SECTOR_LEN;
}

static int file_characteristics(sqlite3_file *base)
{
    return ((handle *)base)->vfs->is_powersafe ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_is_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
};

/* ---- The disk ---------------------------------------------------------------------------------------------------- */

static hf_vfs *vfs_of(sqlite3_vfs *base)
{
    return base->pAppData;
}

/* Finds or makes the file to open. */
static int open_file(hf_vfs *vfs, const char *name, int flags, hf_vfs_file **ret_file)
{
    hf_vfs_file *file = name != NULL ? hf_vfs_file_find(vfs, name) : NULL;
    bool may_create = (flags & SQLITE_OPEN_CREATE) != 0;
    bool is_made = name != NULL && file == NULL && may_create;
    verdict v = is_made ? enter_change(vfs, NULL, HF_IO_OPEN, HF_VFS_CREATE, NULL, name) : enter(vfs, NULL, HF_IO_OPEN);
    bool is_full = v == FAULT && vfs->plan_fault == HF_FAULT_ENOSPC;
    if (v == DEAD || (v == FAULT && (is_made || !is_full))) { /* a full disk opens what is there */
        return is_full ? SQLITE_FULL : v == DEAD ? SQLITE_IOERR : SQLITE_CANTOPEN;
    }
    if (name != NULL && file == NULL && !may_create) {
        vfs->last_error = ENOENT;
        return SQLITE_CANTOPEN;
    }
    if (file != NULL && (flags & SQLITE_OPEN_EXCLUSIVE) != 0 && may_create) {
        return SQLITE_CANTOPEN;
    }
    if (file == NULL) {
        file = hf_vfs_file_add(&vfs->files, name != NULL ? name : "");
        file->is_scratch = name == NULL;
    }
    if (is_made) {
        hf_vfs_do_create(vfs, file);
    }
    *ret_file = file;
    return SQLITE_OK;
}

/* The directory itself: "." behind a slash, or alone. */
static bool is_dir(const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;
    return len > 0 && name[len - 1] == '.' && (len == 1 || name[len - 2] == '/');
}

static int open_dir(hf_vfs *vfs)
{
    verdict v = enter(vfs, NULL, HF_IO_OPEN);
    bool is_bad = v == DEAD || (v == FAULT && vfs->plan_fault != HF_FAULT_ENOSPC);
    return is_bad ? SQLITE_CANTOPEN : SQLITE_OK;
}

static int disk_open(sqlite3_vfs *base, const char *name, sqlite3_file *ret_file, int flags, int *ret_flags)
{
    hf_vfs *vfs = vfs_of(base);
    handle *h = (handle *)ret_file;
    bool is_journal = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    memset(h, 0, sizeof *h); /* no methods: SQLite will not close it if this fails */
    int rc = is_dir(name) ? open_dir(vfs) : open_file(vfs, name, flags, &h->file);
    if (rc != SQLITE_OK) {
        return rc;
    }
    h->base.pMethods = &METHODS;
    h->vfs = vfs;
    h->generation = vfs->generation;
    h->is_deleted_after = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    /* As SQLite's own VFS does, also where the file was there before. */
    h->is_syncing_dir = is_journal && (flags & SQLITE_OPEN_CREATE) != 0;
    if (h->file != NULL) {
        h->errors_heard = h->file->is_told ? h->file->errors : 0;
        hf_list_push_back(&h->file->handles, &h->node);
    }
    if (ret_flags != NULL) {
        *ret_flags = flags;
    }
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *base, const char *name, int is_durably)
{
    hf_vfs *vfs = vfs_of(base);
    if (hf_vfs_file_find(vfs, name) == NULL) {
        return enter(vfs, NULL, HF_IO_DELETE) == GO ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    }
    if (enter_change(vfs, NULL, HF_IO_DELETE, HF_VFS_DELETE, NULL, name) != GO) {
        return SQLITE_IOERR_DELETE;
    }
    hf_vfs_do_delete(vfs, hf_vfs_file_find(vfs, name));
    return is_durably != 0 ? sync_dir(vfs, NULL) : SQLITE_OK;
}

/* As SQLite's own VFS does, an empty file does not count as existing. */
static int disk_access(sqlite3_vfs *base, const char *name, int flags, int *ret_is_so)
{
    hf_vfs *vfs = vfs_of(base);
    if (enter(vfs, NULL, HF_IO_ACCESS) != GO) {
        *ret_is_so = 0; /* as SQLite's own VFS says it */
        errno = vfs->last_error;
        return SQLITE_OK;
    }
    const hf_vfs_file *file = hf_vfs_file_find(vfs, name);
    *ret_is_so = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->now.len > 0);
    return SQLITE_OK;
}

static int disk_full_path(sqlite3_vfs *base, const char *name, int len, char *ret_path)
{
    (void)base;
    size_t name_len = strlen(name);
    if (name_len >= (size_t)len) {
        return SQLITE_CANTOPEN;
    }
    memcpy(ret_path, name, name_len + 1);
    return SQLITE_OK;
}

static int disk_randomness(sqlite3_vfs *base, int len, char *ret_bytes)
{
    for (int i = 0; i < len; i++) {
        ret_bytes[i] = (char)hf_rng_next(&vfs_of(base)->rng);
    }
    return len;
}

static int disk_sleep(sqlite3_vfs *base, int us)
{
    vfs_of(base)->clock_ms += us / 1000 + 1;
    return us;
}

static int disk_time_ms(sqlite3_vfs *base, sqlite3_int64 *ret_ms)
{
    *ret_ms = ++vfs_of(base)->clock_ms;
    return SQLITE_OK;
}

static int disk_time(sqlite3_vfs *base, double *ret_days)
{
    *ret_days = (double)++vfs_of(base)->clock_ms / 86400000.0;
    return SQLITE_OK;
}

static int disk_last_error(sqlite3_vfs *base, int len, char *ret_text)
{
    if (len > 0) {
        ret_text[0] = '\0';
    }
    return vfs_of(base)->last_error;
}

hf_vfs *hf_vfs_new(const char *name, uint64_t seed)
{
    hf_vfs *vfs = calloc(1, sizeof *vfs);
    hf_assert(vfs != NULL && strlen(name) < sizeof vfs->name && sqlite3_vfs_find(name) == NULL);
    memcpy(vfs->name, name, strlen(name) + 1);
    hf_list_init(&vfs->files);
    hf_list_init(&vfs->pending);
    vfs->rng.state = seed;
    vfs->clock_ms = CLOCK_START_MS + (int64_t)hf_rng_below(&vfs->rng, UINT64_C(86400000) * 365);
    vfs->is_powersafe = true;
    vfs->base = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(handle),
        .mxPathname = PATH_LEN_MAX,
        .zName = vfs->name,
        .pAppData = vfs,
        .xOpen = disk_open,
        .xDelete = disk_delete,
        .xAccess = disk_access,
        .xFullPathname = disk_full_path,
        .xRandomness = disk_randomness,
        .xSleep = disk_sleep,
        .xCurrentTime = disk_time,
        .xGetLastError = disk_last_error,
        .xCurrentTimeInt64 = disk_time_ms,
    };
    int rc = sqlite3_vfs_register(&vfs->base, 0);
    hf_assert(rc == SQLITE_OK);
    return vfs;
}

void hf_vfs_free(hf_vfs *vfs)
{
    if (vfs == NULL) {
        return;
    }
    hf_vfs_wipe(vfs);
    hf_assert(hf_list_is_empty(&vfs->files)); /* else something is still open */
    (void)sqlite3_vfs_unregister(&vfs->base);
    free(vfs);
}

const char *hf_vfs_name(const hf_vfs *vfs)
{
    return vfs->name;
}

void hf_vfs_seed_sqlite(uint64_t seed)
{
    int word = (int)(seed & INT32_MAX);
    (void)sqlite3_initialize();
    (void)sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, word != 0 ? word : 1,
                               (sqlite3 *)NULL); /* 0 would mean the system's */
}
