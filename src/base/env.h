/* hf_env: everything the library gets from outside, behind one table. Time, randomness, memory, threads, waiting, network,
 * files, signals and processes are reached through it and nowhere else (a test checks the archives' symbols), so that
 * env/sim can run the same code on virtual time with faults. env/posix is the operating system.
 *
 * Rules: no call keeps a pointer to its arguments. Calls that may block say so; all others return at once. Descriptors
 * are CLOEXEC and non-blocking. A simulated descriptor is a number that only its own environment understands. */
#ifndef HF_BASE_ENV_H
#define HF_BASE_ENV_H

#include "base/op.h"

#include <holdfast/io.h>
#include <holdfast/process.h>
#include <holdfast/runtime.h>

typedef struct hf_thread hf_thread; /* a thread of the environment */
typedef struct hf_poller hf_poller; /* waits for descriptors, a deadline and a ring, all at once */
typedef struct hf_helper hf_helper; /* the helper process that owns the children */
typedef _Atomic(uint32_t) hf_word;  /* a word that threads sleep on */

#define HF_INSTANT_NEVER ((hf_instant){INT64_MAX})

/* Where a simulated environment may let another thread run; also fed into the trace. */
typedef enum hf_point {
    HF_POINT_STEAL,   /* a thread is about to take jobs from another */
    HF_POINT_POST,    /* a message was put into another scheduler's inbox */
    HF_POINT_WAKE,    /* a waiter was claimed and is about to be made ready */
    HF_POINT_PARK,    /* a fiber is linked to the object it waits for and about to leave its thread */
    HF_POINT_HANDOFF, /* a call goes to or comes from a pool */
    HF_POINT_SWITCH,  /* a scheduler picked its next fiber */
    HF_POINT_LOCK,    /* a lock of the library is about to be taken */
    HF_POINT_LET_GO,  /* an object was let go of, and a thread that waited for that may free it (latch.h) */
    HF_POINT_COUNT
} hf_point;

typedef enum hf_guard_kind {
    HF_GUARD_BEST,    /* markers if the kernel has them, else protect */
    HF_GUARD_MARKER,  /* MADV_GUARD_INSTALL: no mapping is split */
    HF_GUARD_PROTECT, /* mprotect: two mappings per guard */
    HF_GUARD_NONE
} hf_guard_kind;

typedef struct hf_event {
    void *cookie; /* as given to poller_set */
    int events;   /* HF_READABLE | HF_WRITABLE; errors and hang-ups report both */
} hf_event;

/* The arguments for starting a process. */
typedef struct hf_spawn {
    const char *const *argv;
    const char *const *env;  /* NULL = the host's */
    const char *const *more; /* variables beside them, which take the place of others with the same name; NULL = none */
    const char *cwd;         /* NULL = the host's */
    int fds[3];              /* descriptors for the child's 0, 1, 2; -1 = /dev/null, -2 = inherit the host's */
} hf_spawn;

/* A message from the helper. */
typedef struct hf_child_event {
    uint64_t request; /* the number given to child_start */
    bool started;     /* true: the child runs as `pid`, or `error` says why not; false: it ended as `exit` */
    int64_t pid;
    int error; /* errno of a failed start, or 0 */
    hf_exit exit;
} hf_child_event;

typedef struct hf_env_ops {
    const char *name; /* "posix", "sim" */

    /* Time and randomness. */
    hf_instant (*now)(hf_env *env);
    hf_time (*wall_now)(hf_env *env);
    hf_time (*wall_coarse)(hf_env *env); /* the same, some milliseconds behind, and cheaper; NULL = there is none */
    hf_status (*random)(hf_env *env, hf_op *op, void *bytes, size_t len);

    void (*whoami)(hf_env *env, char *ret_text, size_t capacity); /* "PID@HOST", cut; for people */

    /* Memory. */
    void *(*allocate)(hf_env *env, size_t len, size_t align); /* NULL = out of memory */
    void (*release)(hf_env *env, void *ptr, size_t len);
    void (*heap_trim)(hf_env *env); /* free memory of the heap goes back to the system, if it can; takes milliseconds */
    void *(*pages_reserve)(hf_env *env, size_t len); /* zeroed, uses memory only when touched; NULL = no room */
    void (*pages_release)(hf_env *env, void *pages, size_t len);
    void (*pages_discard)(hf_env *env, void *pages, size_t len); /* content is lost, memory given back */
    /* Makes touching the pages a fault. Returns the kind used, or HF_GUARD_NONE when it could not be done. */
    hf_guard_kind (*pages_guard)(hf_env *env, void *pages, size_t len, hf_guard_kind kind);
    /* Tells which of the pages, of 4096 bytes each, were touched and so have memory: a byte for each page, not 0 = it
     * has. Pages in swap do not count. False: not supported here. */
    bool (*pages_touched)(hf_env *env, void *pages, size_t len, unsigned char *ret_touched);
    int64_t (*mappings_max)(hf_env *env); /* vm.max_map_count */
    /* A word that is 1 here and reads 0 in a process that fork() made of this one. NULL = out of memory. */
    hf_word *(*fork_marker_open)(hf_env *env);
    void (*fork_marker_close)(hf_env *env, hf_word *marker);

    /* Threads. */
    int (*core_count)(hf_env *env);
    hf_status (*thread_start)(hf_env *env, hf_op *op, const char *name, size_t stack_len, void (*main)(void *),
                              void *arg, hf_thread **ret_thread);
    void (*thread_join)(hf_env *env, hf_thread *thread); /* blocks; frees it */
    /* Lets go of a thread that will never be joined (a zombie); frees it when it ends. */
    void (*thread_forget)(hf_env *env, hf_thread *thread);
    hf_status (*thread_signal)(hf_env *env, hf_op *op, hf_thread *thread, int number);
    uint64_t (*thread_id)(hf_env *env); /* of the caller; unique among living threads, never 0 */
    int (*thread_core)(hf_env *env);    /* on which the caller runs at this moment; -1 = not known */
    /* Binds the caller, a thread of thread_start, to one of the cores that it may use: number `index`, counted round.
     * Threads and helpers that it starts may use all of these cores, and core_count still counts all of them. On failure
     * the thread is as before. */
    hf_status (*thread_pin)(hf_env *env, hf_op *op, int index);
    /* Gives a thread that has called thread_pin its cores back, from another thread. Where the system refuses, it stays bound. */
    void (*thread_unpin)(hf_env *env, hf_thread *thread);
    /* Blocks while *word == expected, until woken or the deadline. False = the deadline passed. May wake for nothing. */
    bool (*word_wait)(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline);
    void (*word_wake)(hf_env *env, hf_word *word, int count);
    /* After it, every other thread has executed a full barrier. */
    void (*barrier_all)(hf_env *env);
    /* NULL in a real environment: callers test for it. */
    void (*point)(hf_env *env, hf_point point, uint64_t detail);

    /* A signal for the library's own threads: `on_signal` runs in the handler, on the thread that got it. */
    hf_status (*interrupt_open)(hf_env *env, hf_op *op, int number, void (*on_signal)(void));
    void (*interrupt_close)(hf_env *env, int number);
    /* Reports touching a guard: `on_fault` runs on an alternate stack with the address; false = not ours, crash as before.
     * Only while the host has no SIGSEGV handler of its own (HF_ERR_EXISTS). Needs an alternate stack per thread:
     * thread_start gives one to every thread, overflow_thread to the calling one. */
    hf_status (*overflow_open)(hf_env *env, hf_op *op, bool (*on_fault)(void *state, void *address), void *state);
    void (*overflow_close)(hf_env *env, void *state);
    void (*overflow_thread)(hf_env *env);

    /* Waiting for descriptors. */
    hf_status (*poller_open)(hf_env *env, hf_op *op, hf_poller **ret_poller);
    void (*poller_close)(hf_env *env, hf_poller *poller);
    /* Watches fd for `events`, edge-triggered; 0 = no more. A first watch reports what is ready already. */
    hf_status (*poller_set)(hf_env *env, hf_op *op, hf_poller *poller, int fd, int events, bool is_new, void *cookie);
    /* Blocks until there are events, a ring, or the deadline (HF_INSTANT_NEVER, or a past one to just look). */
    int (*poller_wait)(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline);
    void (*poller_ring)(hf_env *env, hf_poller *poller);                     /* from any thread */
    int (*poller_fd)(hf_env *env, hf_poller *poller);                        /* for a host's loop; -1 = it has none */
    void (*poller_arm)(hf_env *env, hf_poller *poller, hf_instant deadline); /* makes poller_fd readable then */

    /* Network. All return HF_ERR_AGAIN instead of waiting. Addresses as in holdfast/io.h; names must be numeric. */
    hf_status (*listen)(hf_env *env, hf_op *op, const char *address, int backlog, bool replace, int *ret_fd,
                        char *ret_address);
    hf_status (*accept)(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer);
    bool (*peer_is_us)(hf_env *env, int fd); /* the other end of a unix socket is of this user, or of root */
    hf_status (*connect)(hf_env *env, hf_op *op, const char *address, int *ret_fd); /* HF_OK also while under way */
    hf_status (*connect_finish)(hf_env *env, hf_op *op, int fd);                    /* once writable */
    hf_status (*read)(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len); /* 0 = end */
    hf_status (*write)(hf_env *env, hf_op *op, int fd, const void *buf, size_t len, size_t *ret_len);
    hf_status (*shutdown)(hf_env *env, hf_op *op, int fd);
    void (*close)(hf_env *env, int fd);
    /* Blocks: pool threads only. */
    hf_status (*resolve)(hf_env *env, hf_op *op, const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                         size_t count, size_t *ret_count);

    /* Files. All block: pool threads only. */
    hf_status (*file_open)(hf_env *env, hf_op *op, const char *path, hf_file_mode mode, int *ret_fd);
    hf_status (*file_read)(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len);
    hf_status (*file_write)(hf_env *env, hf_op *op, int fd, const void *buf, size_t len); /* all of it */
    hf_status (*file_sync)(hf_env *env, hf_op *op, int fd);
    hf_status (*file_close)(hf_env *env, hf_op *op, int fd);
    hf_status (*file_remove)(hf_env *env, hf_op *op, const char *path); /* HF_OK also when it is not there */
    /* The same for a unix socket. Fails: HF_ERR_EXISTS: there is something else, which is left alone. */
    hf_status (*socket_remove)(hf_env *env, hf_op *op, const char *path);
    /* Fails: HF_ERR_INVALID: the path exists and is neither a regular file nor a folder; the message names its kind.
     * Opens nothing, because opening a fifo may wait, and opening a device may have effects. */
    hf_status (*file_check)(hf_env *env, hf_op *op, const char *path);
    /* Syncs the file and drops its cached pages, so that later reads come from the disk. Changes no byte of the file.
     * Fails: HF_ERR_NOT_FOUND, HF_ERR_IO and others: it cannot be synced. */
    hf_status (*file_reread)(hf_env *env, hf_op *op, const char *path);
    /* Locks the file, which is made first if it does not exist (mode 0600; not through a symbolic link). There is at
     * most one holder at a time, in all processes; the lock ends with the process. Never waits for the holder. Fails:
     * HF_ERR_EXISTS: the lock is held by the process `*ret_holder` (negative = a holder that will be brief, 0 =
     * unknown). */
    hf_status (*lock_open)(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder);
    void (*lock_close)(hf_env *env, const char *path, int fd); /* removes the file and unlocks it */

    /* Signals that a host asked to receive. The descriptor is readable when one is queued. */
    hf_status (*signals_open)(hf_env *env, hf_op *op, const int *numbers, size_t count, int *ret_fd);
    /* The same for one signal with several receivers: each of them gets it. HF_ERR_EXISTS: it was opened with
     * signals_open. */
    hf_status (*signals_share)(hf_env *env, hf_op *op, int number, int *ret_fd);
    hf_status (*signals_read)(hf_env *env, hf_op *op, int fd, int *ret_number);
    void (*signals_close)(hf_env *env, const int *numbers, size_t count, int fd);

    /* Child processes. `*ret_fd` is readable when child_event has something. NULL: processes are not supported. */
    hf_status (*helper_open)(hf_env *env, hf_op *op, hf_helper **ret_helper, int *ret_fd);
    void (*helper_close)(hf_env *env, hf_helper *helper); /* kills all that is left */
    /* Asks for a child. Its descriptors are sent along and stay the caller's. HF_ERR_AGAIN: the helper is busy. */
    hf_status (*child_start)(hf_env *env, hf_op *op, hf_helper *helper, uint64_t request, const hf_spawn *spawn);
    hf_status (*child_signal)(hf_env *env, hf_op *op, hf_helper *helper, int64_t pid, int number);  /* whole group */
    hf_status (*child_event)(hf_env *env, hf_op *op, hf_helper *helper, hf_child_event *ret_event); /* HF_ERR_AGAIN */
    hf_status (*pipe)(hf_env *env, hf_op *op, int *ret_read_fd, int *ret_write_fd); /* both non-blocking; a child's end
                                                                                     is made blocking by the helper */

    /* The sink of last resort. */
    void (*print)(hf_env *env, const char *text); /* to stderr, whole */
} hf_env_ops;

/* Implementations embed this as their first member. */
struct hf_env {
    const hf_env_ops *ops;
};

/* The environment's memory as an allocator. */
hf_allocator hf_env_memory(hf_env *env);

/* The operating system. One object without state of its own; never freed. */
hf_env *hf_env_posix(void);
/* Calls `end` with `arg` when the calling thread of the operating system ends, unless the process ends first. One pair
 * per thread, the last one; after the call it may be set again. */
void hf_env_at_thread_end(void (*end)(void *arg), void *arg);

#endif
