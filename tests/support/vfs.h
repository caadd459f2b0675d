/* hf_vfs: a disk in memory, offered to SQLite as a VFS, that can lose its power and fail its calls.
 *
 * Nothing outside is used: no file, no clock, no randomness but the seed's. A database is opened on it by name:
 *
 *     hf_vfs *disk = hf_vfs_new("disk", seed);
 *     sqlite3_open_v2("test.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "disk");
 *
 * and, as there is no shared memory, in WAL mode with PRAGMA locking_mode=EXCLUSIVE as its first statement.
 *
 * Power. Written bytes stay pending until they are synced. At any moment, and most usefully in the hook before each
 * change, hf_vfs_image() makes another disk with contents that could be left if the power went now; the harness opens
 * the database there and checks it. Images share memory with their origin and cost microseconds.
 *
 * Errors. hf_vfs_fail() lets the n-th call of some kinds fail, once or from then on, in one of several ways. A failed
 * sync does what Linux does: the pending bytes are dropped, reads still see them, and only this one call reports it.
 *
 * Names. A file that was created is in the directory on the disk once the directory was synced, by one of three calls:
 * the first sync of a journal or log that was opened with SQLITE_OPEN_CREATE (errors of the directory are ignored
 * there, as by SQLite's own VFS), xDelete with its sync flag, or xSync of the directory itself, which is opened as "."
 * or "folder/.".
 *
 * A disk, its images and the images of these belong to one thread at a time. Running out of memory ends the test. */
#ifndef HF_TESTS_VFS_H
#define HF_TESTS_VFS_H

#include "base/op.h"
#include "base/rng.h"

typedef struct hf_vfs hf_vfs;

/* Registers a new, empty disk with SQLite under `name` (copied; not in use yet). The seed decides how failed writes tear,
 * which bits flip and what the clock starts with. */
hf_vfs *hf_vfs_new(const char *name, uint64_t seed);
/* Unregisters and frees it. Every file on it must have been closed. Accepts NULL. */
void hf_vfs_free(hf_vfs *vfs);
const char *hf_vfs_name(const hf_vfs *vfs);

/* SQLite takes random bytes that it writes (salts of the WAL) from one generator for the whole process: this resets it,
 * so that equal seeds make equal bytes. The seed is cut to 31 bits. */
void hf_vfs_seed_sqlite(uint64_t seed);

/* Whether the disk promises that a write leaves the bytes around it alone when it tears (SQLITE_IOCAP_POWERSAFE_OVERWRITE;
 * true for a new disk, as SQLite assumes of real ones). Without, tearing spoils whole sectors of 4,096 bytes. */
void hf_vfs_set_powersafe(hf_vfs *vfs, bool is_powersafe);

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

typedef enum hf_vfs_op_kind {
    HF_VFS_CREATE,
    HF_VFS_WRITE,
    HF_VFS_TRUNCATE,
    HF_VFS_SYNC,
    HF_VFS_DELETE,
    HF_VFS_SYNC_DIR,
} hf_vfs_op_kind;

/* Called before change number `op` (counted from 1) is made to `file`. It may take images, open databases on other
 * disks, or switch the power off: then the change does not happen. Temporary files have no name and are not reported. */
typedef void (*hf_vfs_hook)(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file);
void hf_vfs_on_op(hf_vfs *vfs, hf_vfs_hook hook, void *state); /* NULL: none */
/* Changes so far, failed ones included. */
uint64_t hf_vfs_ops(const hf_vfs *vfs);
/* Changes that a power cut could undo. 0: everything done so far is durable. */
uint64_t hf_vfs_unsynced(const hf_vfs *vfs);

/* ---- Power ------------------------------------------------------------------------------------------------------- */

typedef enum hf_crash_mode {
    HF_CRASH_ALL,    /* every pending change reached the disk */
    HF_CRASH_NONE,   /* only synced changes are there */
    HF_CRASH_PREFIX, /* a random number of pending changes, the oldest ones; the next one may be torn */
    HF_CRASH_RANDOM, /* each pending change is there, torn or missing, independently of the others */
} hf_crash_mode;
#define HF_CRASH_MODE_COUNT 4

/* Gives `to` contents that could be left of `from` if the power went now. Its old contents are gone, its open files are
 * dead, its power is on and everything on it is durable. Hooks and planned failures of `to` stay. `to` may be `from`: a
 * power cut. */
void hf_vfs_image(const hf_vfs *from, hf_crash_mode mode, hf_rng *rng, hf_vfs *to);
/* The process that used the disk is dead: each call fails with SQLITE_IOERR and changes nothing, so open files can be
 * closed without effect. The contents stay as the process left them. */
void hf_vfs_power_off(hf_vfs *vfs);
/* The disk works again, but not for files that were open at power_off. */
void hf_vfs_power_on(hf_vfs *vfs);
/* Hash of names and contents as a reader sees them. It depends only on these, not on how they were made. */
uint64_t hf_vfs_hash(const hf_vfs *vfs);

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* The kinds of calls that SQLite makes; bits, to be combined. */
typedef enum hf_io_kind {
    HF_IO_READ = 1 << 0,
    HF_IO_WRITE = 1 << 1,
    HF_IO_SYNC = 1 << 2,
    HF_IO_OPEN = 1 << 3,
    HF_IO_TRUNCATE = 1 << 4,
    HF_IO_DELETE = 1 << 5,
    HF_IO_ACCESS = 1 << 6, /* is there such a file? */
    HF_IO_SIZE = 1 << 7,
    HF_IO_LOCK = 1 << 8,
    HF_IO_SYNC_DIR = 1 << 9, /* of the directory, in any of the three ways */
    HF_IO_ANY = (1 << 10) - 1,
} hf_io_kind;
#define HF_IO_KIND_COUNT 10

typedef enum hf_io_fault {
    HF_FAULT_EIO,         /* SQLITE_IOERR_*. A part of a write may be there; a failed sync drops pending changes, any of
                            their blocks or none (vfs-D3 and vfs-D4 in vfs_disk.c) */
    HF_FAULT_ENOSPC,      /* SQLITE_FULL: writes, truncates and opens that create; a part of the write may be there */
    HF_FAULT_SHORT_READ,  /* reads: the rest is zero, SQLITE_IOERR_SHORT_READ */
    HF_FAULT_BIT_FLIP,    /* reads: one bit is wrong, SQLITE_OK */
    HF_FAULT_STALE_READ,  /* reads: the bytes of the last sync, SQLITE_OK */
    HF_FAULT_LOST_WRITE,  /* writes: nothing happens, SQLITE_OK */
    HF_FAULT_LOST_SYNC,   /* syncs: nothing becomes durable, SQLITE_OK */
    HF_FAULT_LATE_ENOSPC, /* syncs: no room for writes that had succeeded: as EIO, with errno ENOSPC */
} hf_io_fault;
#define HF_IO_FAULT_COUNT 8

/* Lets call number `nth` from now (1 is the next) among those of `kinds` to which the fault can happen fail, and with
 * `forever` all such calls after it. Replaces the plan before; nth 0: no plan. */
void hf_vfs_fail(hf_vfs *vfs, unsigned kinds, uint64_t nth, hf_io_fault fault, bool forever);
/* The kinds that a fault can happen to. */
unsigned hf_io_fault_kinds(hf_io_fault fault);
/* A background writeback of the file's pending changes, as kernels do after a while, fails with `error`. Open
 * descriptors report it at their next sync. So does one that is opened later, unless `is_told`: then another process
 * was told already. False: nothing was pending. */
bool hf_vfs_writeback_fails(hf_vfs *vfs, const char *file, int error, bool is_told);
/* For hf_sqlite_options.reread, with the disk as its state: syncs the file, twice if the first sync fails, and drops
 * its cached blocks. These syncs count and fail like others. */
hf_status hf_vfs_reread(void *vfs, hf_op *op, const char *file);
/* Failures that happened, over all plans. */
uint64_t hf_vfs_faults_hit(const hf_vfs *vfs);
/* Calls of these kinds so far, those of temporary files included. */
uint64_t hf_vfs_io_ops(const hf_vfs *vfs, unsigned kinds);

/* ---- Files by hand ----------------------------------------------------------------------------------------------- */

/* None of these functions counts as a change or can fail by plan; their writes are durable at once. False: there is no
 * such file, or the offset is beyond its end. */
bool hf_vfs_file_size(const hf_vfs *vfs, const char *file, uint64_t *ret_len);
/* Up to `len` bytes from `offset`; `*ret_len` says how many there were. */
bool hf_vfs_read_file(const hf_vfs *vfs, const char *file, uint64_t offset, void *ret_bytes, size_t len,
                      size_t *ret_len);
/* Gives the file this content, whatever it was before; makes it where it is missing. */
void hf_vfs_write_file(hf_vfs *vfs, const char *file, const void *bytes, size_t len);
bool hf_vfs_truncate_file(hf_vfs *vfs, const char *file, uint64_t len);
bool hf_vfs_delete_file(hf_vfs *vfs, const char *file);
/* Flips one bit (0..7) of the byte at `offset`. */
bool hf_vfs_flip(hf_vfs *vfs, const char *file, uint64_t offset, unsigned bit);
/* The name of the n-th file (from 0, oldest first), or NULL; owned by the disk, valid until that file goes away. */
const char *hf_vfs_file_name(const hf_vfs *vfs, size_t n);

#endif
