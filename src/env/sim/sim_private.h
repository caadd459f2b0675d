/* The simulation's data. All objects belong to one hf_sim, and only one of its threads runs at a time, so nothing here
 * is locked. */
#ifndef HF_ENV_SIM_SIM_PRIVATE_H
#define HF_ENV_SIM_SIM_PRIVATE_H

#include "base/current.h"
#include "base/env.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/switch.h"
#include "env/exceptions.h"
#include "env/sim/sim.h"

typedef struct hf_sim hf_sim;
typedef struct hf_sim_link hf_sim_link;
typedef struct hf_sim_file hf_sim_file;

enum {
    HF_SIM_FD_FIRST = 1000000,     /* far from the host's descriptors, so that confusing them fails */
    HF_SIM_FD_COUNT_MAX = 100000,  /* open at once */
    HF_SIM_STACK_LEN = 256 * 1024, /* of a simulated thread, without its guard */
    HF_SIM_NAME_LEN_MAX = 32,
    HF_SIM_SIGNALS_MAX = 64,           /* queued in one set */
    HF_SIM_HELD_STEPS_MAX = 2000,      /* of the others, while a thread is held at a point */
    HF_SIM_SPURIOUS_PERMILLE = 2,      /* probability of spurious wake-ups and events, which kernels have, too */
    HF_SIM_SCRAP_COUNT_MAX = 128,      /* released blocks that are kept, poisoned ... */
    HF_SIM_SCRAP_LEN_MAX = 512 * 1024, /* ... and their bytes */
    HF_SIM_HANGUP = 4 /* beside HF_READABLE and HF_WRITABLE: broken, or ended both ways; reported whatever is watched */
};

/* ---- threads: sched.c ---- */

/* A stack; `lo` is above its guard page. */
typedef struct hf_sim_stack {
    char *lo;   /* NULL = none */
    size_t len; /* usable */
} hf_sim_stack;

typedef enum hf_sim_state {
    HF_SIM_RUNNABLE,  /* runs, or would if it were chosen */
    HF_SIM_ON_WORD,   /* in word_wait */
    HF_SIM_ON_POLLER, /* in poller_wait */
    HF_SIM_ON_JOIN,   /* waits for `target`, or, when that is NULL, for all forgotten threads */
    HF_SIM_ASLEEP,    /* a slow operation: only its deadline wakes it */
    HF_SIM_HELD,      /* at a point: runs again when nobody else can, or after many steps */
    HF_SIM_ENDED
} hf_sim_state;

struct hf_thread {
    hf_node node;             /* in sim->threads, by age, until it is freed */
    hf_context context;       /* where it was left: on its own stack, or on that of a fiber that it ran */
    hf_context birth;         /* as made; has TSan's handle for its own stack */
    hf_self *self;            /* the fiber that ran on it when it was left */
    int error;                /* errno at that time */
    hf_exceptions exceptions; /* C++ state at that time */
    hf_sim_state state;
    bool timed_out;      /* its last wait ended by the deadline */
    bool is_signalled;   /* the handler runs before it goes on */
    bool is_forgotten;   /* nobody will join it */
    uint32_t slot;       /* index in sim->runnable while HF_SIM_RUNNABLE */
    hf_instant deadline; /* of its wait */
    hf_word *word;       /* HF_SIM_ON_WORD */
    uint32_t expected;
    hf_poller *poller; /* HF_SIM_ON_POLLER */
    hf_thread *target; /* HF_SIM_ON_JOIN */
    hf_sim *sim;
    void (*main)(void *);
    void *arg;
    hf_sim_stack stack;
    uint64_t serial; /* identifies the thread in the trace; 0 = the main thread */
    char name[HF_SIM_NAME_LEN_MAX];
};

/* ---- descriptors and pollers: poller.c ---- */

typedef enum hf_sim_kind { HF_SIM_LISTENER, HF_SIM_STREAM, HF_SIM_FILE, HF_SIM_SIGNALS } hf_sim_kind;

typedef enum hf_sim_family { HF_SIM_TCP, HF_SIM_UNIX } hf_sim_family;

typedef struct hf_sim_address {
    hf_sim_family family;
    bool is_any; /* 0.0.0.0 or :: */
    bool is_v6;
    int port;                      /* tcp */
    char host[HF_ADDRESS_LEN_MAX]; /* numeric and canonical; unix: the path */
} hf_sim_address;

typedef struct hf_sim_desc {
    hf_sim_kind kind;
    int fd;
    hf_list watches; /* hf_sim_watch.in_desc */
    union {
        struct {
            hf_node node;  /* in sim->listeners */
            hf_list queue; /* established, not accepted: hf_sim_link.node */
            int queue_count;
            int backlog;
            hf_sim_address address;
        } listener;
        struct {
            hf_sim_link *link;
            int side; /* 0 = connected or writes the pipe, 1 = was accepted or reads it */
        } stream;
        struct {
            hf_sim_file *file;
            hf_file_mode mode;
            size_t offset;         /* of the next read */
            uint64_t generation;   /* of the disk: a restart makes the descriptor useless */
            bool is_lock;          /* nobody else may lock the file while it is open */
            uint64_t errors_heard; /* value of file->errors when a failure was last reported to this descriptor */
        } file;
        struct {
            uint64_t mask;  /* bit n: signal n */
            bool is_shared; /* others may have the same */
            uint32_t first;
            uint32_t count;
            uint8_t numbers[HF_SIM_SIGNALS_MAX]; /* a ring */
        } signals;
    } as;
} hf_sim_desc;

/* One descriptor in one poller. */
typedef struct hf_sim_watch {
    hf_node in_poller;
    hf_node in_desc;
    hf_node in_hot; /* linked while an edge was seen and not yet reported */
    hf_poller *poller;
    hf_sim_desc *desc;
    int events;
    void *cookie;
} hf_sim_watch;

struct hf_poller {
    hf_node node; /* in sim->pollers */
    hf_list watches;
    uint32_t watch_count;
    hf_list hot;
    uint32_t hot_count;
    bool is_rung;
    uint64_t serial;
};

/* ---- the network: delivery.c, stream.c, listen.c ---- */

/* One direction. All counters are bytes since the start: consumed <= delivered <= written <= consumed + buffer_len. */
typedef struct hf_sim_flow {
    uint8_t *bytes; /* a ring of sim->buffer_len, made by the first write */
    uint64_t written;
    uint64_t delivered;
    uint64_t consumed;
    int64_t last_at;  /* when the last chunk arrives: later ones do not overtake it */
    bool is_finished; /* the writer will write no more */
    bool is_ended;    /* and the reader's side knows */
    bool is_starved;  /* the writer got HF_ERR_AGAIN: it must be notified when there is room */
} hf_sim_flow;

typedef enum hf_sim_link_state { HF_SIM_CONNECTING, HF_SIM_CONNECTED, HF_SIM_BROKEN } hf_sim_link_state;

/* A connection or a pipe. Side s writes flow[s] and reads flow[1 - s]. */
struct hf_sim_link {
    hf_node node;  /* in a listener's queue */
    uint32_t refs; /* its open descriptors, its place in a queue, its deliveries under way */
    hf_sim_link_state state;
    hf_status error; /* why it is broken */
    bool is_pipe;
    int tries;           /* connect requests that met a full queue */
    hf_sim_desc *end[2]; /* NULL = closed or not accepted yet */
    hf_sim_flow flow[2];
    hf_sim_address target; /* the address it connects to */
    int port;              /* of the connecting side */
};

typedef enum hf_sim_delivery_kind {
    HF_SIM_DELIVER_BYTES,   /* flow[side] up to `upto` */
    HF_SIM_DELIVER_END,     /* flow[side] is at its end */
    HF_SIM_DELIVER_RESET,   /* the connection breaks */
    HF_SIM_DELIVER_CONNECT, /* a connect request at the listener */
    HF_SIM_DELIVER_REFUSAL, /* there is no listener */
    HF_SIM_DELIVER_ROOM     /* `side` may write again */
} hf_sim_delivery_kind;

/* A message on its way. */
typedef struct hf_sim_delivery {
    int64_t at;
    uint64_t serial; /* the order of deliveries that arrive at the same time */
    hf_sim_link *link;
    uint64_t upto;
    hf_sim_delivery_kind kind;
    int side;
} hf_sim_delivery;

/* ---- the disk: disk.c ---- */

typedef struct hf_sim_image {
    uint8_t *bytes;
    size_t len;
    size_t capacity;
} hf_sim_image;

struct hf_sim_file {
    hf_node node;         /* in sim->files */
    hf_sim_image now;     /* the bytes that reads see */
    hf_sim_image synced;  /* the bytes that the last sync made safe */
    bool *is_dirty;       /* pages of `now` that the next sync writes; writeback.c */
    size_t page_capacity; /* elements of is_dirty */
    uint64_t errors;      /* syncs that failed since the last boot */
    bool is_told;         /* the last failure was reported to a descriptor */
    bool is_durable;      /* it was synced at least once: it cannot vanish */
    bool exists;          /* false after a restart that lost it */
    bool is_brief;        /* of a lock: its holder will be brief */
    char path[];
};

/* disk_len is the sum of the lengths of `now` over all files. */

/* A path where a unix listener was: it stays behind like the file of a real socket. */
typedef struct hf_sim_stale {
    hf_node node;
    char path[HF_ADDRESS_LEN_MAX];
} hf_sim_stale;

/* ---- memory: memory.c ---- */

/* A block or mapping that is not released yet. */
typedef struct hf_sim_block {
    void *ptr; /* NULL = free slot */
    size_t len;
    bool is_pages;
} hf_sim_block;

typedef enum hf_sim_verdict { HF_SIM_GOES_ON, HF_SIM_STUCK, HF_SIM_ENDLESS } hf_sim_verdict;

struct hf_sim {
    hf_env env; /* first */
    uint64_t seed;
    hf_rng rng;        /* for every decision */
    hf_rng rng_random; /* for the bytes that random() returns */
    uint64_t hash;     /* of the trace */
    uint64_t steps;
    uint64_t heap_trims;    /* calls */
    int64_t now;            /* virtual, nanoseconds */
    hf_sim_options options; /* with the defaults filled in; 0 = off for every chance */

    hf_exceptions *exceptions; /* of C++, on the thread that runs all of this; NULL = the process has none */
    hf_thread main_thread;     /* the thread of the host that turns the simulation */
    hf_thread *current;
    hf_thread *left;   /* the thread that ran before the last switch */
    hf_thread *corpse; /* ended, still to be freed or its stack given back */
    hf_list threads;
    hf_thread **runnable;
    uint32_t runnable_count;
    uint32_t runnable_capacity;
    uint32_t thread_count; /* main included, ended ones that were not joined too */
    uint32_t live_count;   /* started and not ended */
    uint64_t thread_serial;
    int hold_permille;       /* chance that a thread is held at a point */
    uint32_t held_count;     /* HF_SIM_HELD */
    uint64_t held_until;     /* step at which they go on in any case */
    void (*on_signal)(void); /* interrupt_open; NULL = none */
    hf_sim_verdict verdict;
    bool is_over; /* the verdict was given: only the main thread goes on */
    char *report;
    void (*on_stuck)(void *state, const char *report);
    void *on_stuck_state;

    hf_sim_desc **descs;
    uint32_t desc_count; /* open */
    uint32_t desc_capacity;
    uint32_t desc_first_free; /* no lower slot is free */
    uint32_t desc_count_max;
    hf_list pollers;
    uint64_t poller_serial;
    hf_list listeners;
    hf_list stales;
    hf_sim_delivery *heap; /* soonest first */
    uint32_t heap_count;
    uint32_t heap_capacity;
    uint64_t delivery_serial;
    int port_next;

    hf_list files;
    int64_t disk_len;
    uint64_t disk_generation;

    hf_sim_block *blocks; /* open addressing, a power of two */
    uint32_t block_count;
    uint32_t block_capacity;
    hf_sim_block scrap[HF_SIM_SCRAP_COUNT_MAX]; /* a ring: released, poisoned, not given back yet */
    uint32_t scrap_first;
    uint32_t scrap_count;
    size_t scrap_len; /* bytes in it */
    uint64_t allocations;
    uint64_t fail_at; /* the allocation that fails; 0 = none */
    bool fail_forever;

    hf_sim_counters counters;
};

static inline hf_sim *hf_sim_of(hf_env *env)
{
    return HF_CONTAINER(env, hf_sim, env);
}

static inline const hf_sim *hf_sim_of_const(const hf_env *env)
{
    return HF_CONTAINER_CONST(env, hf_sim, env);
}

/* Every decision and result is added to the trace here, but never an address: addresses differ between runs. */
static inline void hf_sim_trace(hf_sim *sim, uint64_t tag, uint64_t word)
{
    sim->hash = hf_hash_mix(sim->hash, (tag << 56) ^ word);
}

enum { /* tags of the trace; points use 1..HF_POINT_COUNT */
       HF_SIM_TRACE_SWITCH = 32,
       HF_SIM_TRACE_CLOCK,
       HF_SIM_TRACE_WAKE,
       HF_SIM_TRACE_EVENT,
       HF_SIM_TRACE_NET,
       HF_SIM_TRACE_FILE,
       HF_SIM_TRACE_RANDOM,
       HF_SIM_TRACE_ALLOCATE
};

/* stack.c: false = no memory. */
bool hf_sim_stack_get(size_t len, hf_sim_stack *ret_stack);
void hf_sim_stack_put(hf_sim_stack *stack);

/* sched.c */
void hf_sim_step(hf_sim *sim); /* a place where another thread may be let run */
bool hf_sim_wait(hf_sim *sim, hf_sim_state state, hf_instant deadline); /* false = the deadline passed */
void hf_sim_sleep(hf_sim *sim, int64_t ns);
void hf_sim_wake(hf_sim *sim, hf_thread *thread);
void hf_sim_threads_drop(hf_sim *sim); /* at the end */
hf_status hf_sim_thread_start(hf_env *env, hf_op *op, const char *name, size_t stack_len, void (*main)(void *),
                              void *arg, hf_thread **ret_thread);
void hf_sim_thread_join(hf_env *env, hf_thread *thread);
void hf_sim_thread_forget(hf_env *env, hf_thread *thread);
hf_status hf_sim_thread_signal(hf_env *env, hf_op *op, hf_thread *thread, int number);
bool hf_sim_word_wait(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline);
void hf_sim_word_wake(hf_env *env, hf_word *word, int count);
void hf_sim_point(hf_env *env, hf_point point, uint64_t detail);
/* verdict.c: does not return. */
void hf_sim_give_up(hf_sim *sim) __attribute__((noreturn));

/* memory.c */
bool hf_sim_may_allocate(hf_sim *sim); /* false = this allocation must fail (hf_sim_fail_allocation) */
void hf_sim_blocks_drop(hf_sim *sim);
/* Instead of free: a thread that still uses the block is noticed. */
void hf_sim_scrap(hf_sim *sim, void *ptr, size_t len);
void hf_sim_scrap_drop(hf_sim *sim); /* at the end */
void *hf_sim_allocate(hf_env *env, size_t len, size_t align);
void hf_sim_release(hf_env *env, void *ptr, size_t len);
void *hf_sim_pages_reserve(hf_env *env, size_t len);
void hf_sim_pages_release(hf_env *env, void *pages, size_t len);
void hf_sim_heap_trim(hf_env *env); /* is only counted */
void hf_sim_pages_discard(hf_env *env, void *pages, size_t len);
bool hf_sim_pages_touched(hf_env *env, void *pages, size_t len, unsigned char *ret_touched);
hf_guard_kind hf_sim_pages_guard(hf_env *env, void *pages, size_t len, hf_guard_kind kind);
hf_word *hf_sim_fork_marker_open(hf_env *env);
void hf_sim_fork_marker_close(hf_env *env, hf_word *marker);

/* poller.c */
hf_status hf_sim_desc_new(hf_sim *sim, hf_op *op, hf_sim_kind kind, hf_sim_desc **ret_desc);
void hf_sim_desc_free(hf_sim *sim, hf_sim_desc *desc);
hf_sim_desc *hf_sim_desc_find(hf_sim *sim, int fd); /* NULL = not open */
/* An edge: something became ready. desc may be NULL, for an end that is closed: then nothing happens. */
void hf_sim_desc_notify(hf_sim *sim, hf_sim_desc *desc, int events);
void hf_sim_pollers_drop(hf_sim *sim);
hf_status hf_sim_poller_open(hf_env *env, hf_op *op, hf_poller **ret_poller);
void hf_sim_poller_close(hf_env *env, hf_poller *poller);
hf_status hf_sim_poller_set(hf_env *env, hf_op *op, hf_poller *poller, int fd, int events, bool is_new, void *cookie);
int hf_sim_poller_wait(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline);
void hf_sim_poller_ring(hf_env *env, hf_poller *poller);

/* delivery.c */
int64_t hf_sim_latency(hf_sim *sim);
int64_t hf_sim_delivery_next(const hf_sim *sim);           /* INT64_MAX = nothing is under way */
bool hf_sim_delivery_reserve(hf_sim *sim, uint32_t count); /* false = no memory; after it that many sends succeed */
void hf_sim_delivery_send(hf_sim *sim, hf_sim_delivery_kind kind, hf_sim_link *link, int side, int64_t at);
void hf_sim_deliver(hf_sim *sim); /* delivers all messages that are due */
void hf_sim_deliveries_drop(hf_sim *sim);
hf_sim_link *hf_sim_link_new(bool is_pipe);
void hf_sim_link_unref(hf_sim_link *link);
void hf_sim_link_break(hf_sim *sim, hf_sim_link *link, hf_status error);
int hf_sim_stream_ready(hf_sim *sim, const hf_sim_desc *desc);
void hf_sim_stream_close(hf_sim *sim, hf_sim_desc *desc);

/* stream.c */
hf_status hf_sim_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len);
hf_status hf_sim_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len, size_t *ret_len);
hf_status hf_sim_shutdown(hf_env *env, hf_op *op, int fd);
void hf_sim_close(hf_env *env, int fd);
hf_status hf_sim_pipe(hf_env *env, hf_op *op, int *ret_read_fd, int *ret_write_fd);

/* listen.c */
hf_sim_desc *hf_sim_listener_find(hf_sim *sim, const hf_sim_address *address);
void hf_sim_listener_close(hf_sim *sim, hf_sim_desc *desc);
void hf_sim_stales_drop(hf_sim *sim);
hf_status hf_sim_listen(hf_env *env, hf_op *op, const char *address, int backlog, bool replace, int *ret_fd,
                        char *ret_address);
hf_status hf_sim_accept(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer);
bool hf_sim_peer_is_us(hf_env *env, int fd);
hf_status hf_sim_connect(hf_env *env, hf_op *op, const char *address, int *ret_fd);
hf_status hf_sim_connect_finish(hf_env *env, hf_op *op, int fd);

/* address.c */
hf_status hf_sim_address_parse(hf_op *op, const char *text, hf_sim_address *ret_address);
void hf_sim_address_format(const hf_sim_address *address, char *ret_text); /* HF_ADDRESS_LEN_MAX bytes */
hf_status hf_sim_resolve(hf_env *env, hf_op *op, const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                         size_t count, size_t *ret_count);

/* disk.c */
void hf_sim_files_drop(hf_sim *sim);
hf_sim_file *hf_sim_file_find(hf_sim *sim, const char *path);              /* NULL = no such file */
hf_sim_file *hf_sim_file_new(hf_sim *sim, const char *path);               /* NULL = no memory */
bool hf_sim_image_set(hf_sim_image *image, const void *bytes, size_t len); /* false = no memory */
/* Cuts the image, or extends it with zeros. False: no memory. */
bool hf_sim_image_resize(hf_sim_image *image, size_t len);
/* writeback.c. These bytes of `now` are about to change. False: no memory. */
bool hf_sim_pages_touch(hf_sim_file *file, size_t offset, size_t end);
/* The next sync has nothing to write. */
void hf_sim_pages_clean(hf_sim_file *file);
/* A sync that works. False: no memory. */
bool hf_sim_pages_sync(hf_sim_file *file);
/* A sync that fails: each page may reach the disk or not, and is not written again. */
void hf_sim_pages_drop(hf_sim *sim, hf_sim_file *file);
/* At a boot, before crash.c decides about dirty pages: all other pages get the bytes that are on the disk. */
void hf_sim_pages_forget(hf_sim_file *file);
hf_status hf_sim_file_open(hf_env *env, hf_op *op, const char *path, hf_file_mode mode, int *ret_fd);
hf_status hf_sim_file_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len);
hf_status hf_sim_file_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len);
hf_status hf_sim_file_sync(hf_env *env, hf_op *op, int fd);
hf_status hf_sim_file_close(hf_env *env, hf_op *op, int fd);
hf_status hf_sim_file_remove(hf_env *env, hf_op *op, const char *path);
hf_status hf_sim_socket_remove(hf_env *env, hf_op *op, const char *path);
hf_status hf_sim_file_check(hf_env *env, hf_op *op, const char *path);
hf_status hf_sim_file_reread(hf_env *env, hf_op *op, const char *path);
hf_status hf_sim_lock_open(hf_env *env, hf_op *op, const char *path, bool is_brief, int *ret_fd, int64_t *ret_holder);
void hf_sim_lock_close(hf_env *env, const char *path, int fd);
/* Removes the file that a unix listener left at this path, if any. */
void hf_sim_stale_remove(hf_sim *sim, const char *path);

/* signals.c */
hf_status hf_sim_signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, int *ret_fd);
hf_status hf_sim_signals_share(hf_env *env, hf_op *op, int number, int *ret_fd);
hf_status hf_sim_signals_read(hf_env *env, hf_op *op, int fd, int *ret_number);
void hf_sim_signals_close(hf_env *env, const int *numbers, size_t count, int fd);

#endif
