/* Shared by the parts of the simulated disk: vfs_block.c (contents), vfs_disk.c (files and their pending changes),
 * vfs_image.c (power cuts), vfs.c (SQLite's side: calls, locks, failures). */
#ifndef HF_TESTS_VFS_PRIVATE_H
#define HF_TESTS_VFS_PRIVATE_H

#include "support/vfs.h"

#include "base/list.h"

#include <sqlite3.h>

/* ---- Contents (vfs_block.c) -------------------------------------------------------------------------------------- */

enum { HF_VFS_BLOCK_LEN = 4096 };

typedef struct hf_vfs_block hf_vfs_block;

/* The bytes of a file: blocks that are shared with other contents until one of them is written to. */
typedef struct hf_vfs_content {
    hf_vfs_block **blocks; /* `capacity` of them; NULL stands for zeros */
    size_t capacity;       /* blocks there is room for; those beyond `len` are NULL */
    uint64_t len;          /* bytes; the rest of the last block is zero */
} hf_vfs_content;

/* Makes `to` (anything) equal to `from`, sharing its blocks. */
void hf_vfs_content_share(hf_vfs_content *to, const hf_vfs_content *from);
void hf_vfs_content_clear(hf_vfs_content *content);
/* Bytes that were there; the rest of the buffer is zeroed. */
size_t hf_vfs_content_read(const hf_vfs_content *content, uint64_t offset, void *ret_bytes, size_t len);
/* NULL bytes: random ones, from `rng`. */
void hf_vfs_content_write(hf_vfs_content *content, uint64_t offset, const void *bytes, size_t len, hf_rng *rng);
void hf_vfs_content_truncate(hf_vfs_content *content, uint64_t len);
/* Takes the blocks of the bytes [offset, end) from `from`; the length grows if needed, and never shrinks. */
void hf_vfs_content_take(hf_vfs_content *to, const hf_vfs_content *from, uint64_t offset, uint64_t end);
bool hf_vfs_content_is_equal(const hf_vfs_content *a, const hf_vfs_content *b);
uint64_t hf_vfs_content_hash(const hf_vfs_content *content);

/* ---- Files (vfs_disk.c) ------------------------------------------------------------------------------------------ */

typedef struct hf_vfs_file hf_vfs_file;
struct hf_vfs_file {
    hf_node node;          /* in the disk's `files` */
    hf_list handles;       /* open hf_vfs_handle */
    hf_vfs_content now;    /* the bytes that reads see */
    hf_vfs_content synced; /* the durable bytes, which survive a power cut; unused while `is_clean` */
    hf_vfs_file *copy;     /* while an image is made: this file in it */
    bool *lost;            /* by block: nothing written to it reaches the disk (vfs-D5) */
    size_t lost_count;     /* blocks that `lost` has room for */
    uint64_t forgotten;    /* changes that a failed writeback dropped and that `synced` may lack */
    uint64_t errors;       /* writebacks that failed; a descriptor compares it with its errors_heard */
    int error;             /* errno of the last of them */
    bool is_told;          /* that one was reported to a descriptor or process */
    uint32_t pending;      /* changes in the disk's list */
    uint32_t names;        /* creations and deletions among them */
    bool is_clean;         /* synced and now are the same, and only `now` is kept */
    bool is_present;       /* the directory that processes see has it */
    bool is_durable;       /* the directory on the disk has it */
    bool is_scratch;       /* temporary: never durable, its changes are not reported */
    bool is_kept;          /* while an image is made: it is in the directory there */
    char name[];           /* empty: temporary */
};

/* What happens to a pending change in the image being made. */
typedef enum hf_vfs_fate { HF_VFS_LOST, HF_VFS_KEPT, HF_VFS_TORN } hf_vfs_fate;

/* A change that is not durable yet. Never a sync. */
typedef struct hf_vfs_pending {
    hf_node node;          /* in the disk's `pending` */
    hf_vfs_file *file;     /* whose `pending` counts it */
    hf_vfs_op_kind kind;   /* what it does */
    hf_vfs_fate fate;      /* while an image is made */
    uint64_t offset;       /* WRITE: where. TRUNCATE: the new length */
    size_t len;            /* WRITE: bytes */
    unsigned char bytes[]; /* WRITE */
} hf_vfs_pending;

struct hf_vfs {
    sqlite3_vfs base;                  /* SQLite's view; base.pAppData is this disk */
    hf_list files;                     /* every hf_vfs_file that is present, durable, pending or open */
    hf_list pending;                   /* changes, oldest first, over all files */
    uint64_t pending_count;            /* of that list */
    bool is_dir_dirty;                 /* a name changed since the directory was last written, well or badly */
    int last_error;                    /* errno of the last call that failed by plan */
    hf_rng rng;                        /* for failures and SQLite's xRandomness */
    int64_t clock_ms;                  /* Julian milliseconds; moves when asked for and by sleeps */
    uint64_t generation;               /* files opened under an older one are dead */
    bool is_off;                       /* no power: everything fails */
    bool is_powersafe;                 /* tearing spoils no neighbours */
    hf_vfs_hook hook;                  /* before each change; may be NULL */
    void *hook_state;                  /* for the hook */
    uint64_t ops;                      /* changes so far */
    uint64_t io_ops[HF_IO_KIND_COUNT]; /* calls so far, by kind */
    unsigned plan_kinds;               /* the plan: which calls count */
    uint64_t plan_left;                /* calls until one fails; 0 = no plan */
    hf_io_fault plan_fault;            /* how it fails */
    bool plan_forever;                 /* all calls after it fail, too */
    uint64_t faults_hit;               /* failures that happened */
    char name[64];                     /* under which SQLite knows it */
};

/* Whether it changes the directory, not the content. */
static inline bool hf_vfs_is_name_op(const hf_vfs_pending *op)
{
    return op->kind == HF_VFS_CREATE || op->kind == HF_VFS_DELETE;
}

hf_vfs_file *hf_vfs_file_find(const hf_vfs *vfs, const char *name);
/* A new file that is neither present nor durable nor scratch: the caller sets these. */
hf_vfs_file *hf_vfs_file_add(hf_list *files, const char *name);
/* Frees the file if nobody can see it any more. */
void hf_vfs_file_settle(hf_vfs_file *file);

/* The changes themselves. All but sync become pending; scratch files change at once. */
void hf_vfs_do_create(hf_vfs *vfs, hf_vfs_file *file);
void hf_vfs_do_write(hf_vfs *vfs, hf_vfs_file *file, uint64_t offset, const void *bytes, size_t len);
void hf_vfs_do_truncate(hf_vfs *vfs, hf_vfs_file *file, uint64_t len);
void hf_vfs_do_delete(hf_vfs *vfs, hf_vfs_file *file);
/* Makes the file's earlier changes durable, but not its name. */
void hf_vfs_do_sync(hf_vfs *vfs, hf_vfs_file *file);
/* A writeback that failed with this errno: each block is written, in part or not at all, and none is pending any more. */
void hf_vfs_do_sync_badly(hf_vfs *vfs, hf_vfs_file *file, int error);
/* Makes creations and deletions durable, if there was one since the last call of this or the next. */
void hf_vfs_do_sync_dir(hf_vfs *vfs);
/* A sync of the directory that failed: nothing was written, and there is nothing left to write until a name changes. */
void hf_vfs_do_sync_dir_badly(hf_vfs *vfs);
/* vfs-D5: `content` is the disk's content of `file`, or an image of it. Its lost blocks become zeros. */
void hf_vfs_lose(const hf_vfs_file *file, hf_vfs_content *content);
/* Drops most cached blocks of the file, so that reads see the disk's bytes (vfs-D5). The file was synced just before. */
void hf_vfs_do_drop(hf_vfs *vfs, hf_vfs_file *file);
const hf_vfs_content *hf_vfs_durable(const hf_vfs_file *file);
/* Removes everything on the disk; open files stay in memory, without a name, until they are closed. */
void hf_vfs_wipe(hf_vfs *vfs);

#endif
