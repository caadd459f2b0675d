/* A picture of the scope tree. It is taken while the world is stopped, and read when it runs again. It holds copies
 * of everything, because the objects that it shows may be gone by then. */
#ifndef HF_FIBER_SNAPSHOT_H
#define HF_FIBER_SNAPSHOT_H

#include "base/buf.h"
#include "fiber/core.h"

#define HF_SNAP_NONE UINT32_MAX /* no node, no string */

typedef enum hf_snap_kind { HF_SNAP_SCOPE, HF_SNAP_SHIELD, HF_SNAP_BRANCH } hf_snap_kind;

/* What a branch is doing.      name                word in dumps */
#define HF_SNAP_STATE_MAP(X)                                                                       \
    X(HF_SNAP_NEW, "new")           /* not started: waits for a thread, a pool or its turn */      \
    X(HF_SNAP_DELAYED, "delayed")   /* not started: waits for its alarm */                         \
    X(HF_SNAP_RUNNING, "running")   /* in user code on a fiber thread: its stack cannot be read */ \
    X(HF_SNAP_CALLER, "dumping")    /* in user code that asked for this picture */                 \
    X(HF_SNAP_LOST, "lost")         /* in user code, on a thread that the runtime gave up */       \
    X(HF_SNAP_WAITING, "waiting")   /* parked */                                                   \
    X(HF_SNAP_READY, "ready")       /* parked, can go on */                                        \
    X(HF_SNAP_ON_POOL, "on a pool") /* on a thread of a pool */                                    \
    X(HF_SNAP_JOB, "elsewhere")     /* an activity or a workflow, without a fiber */               \
    X(HF_SNAP_DONE, "done")         /* has returned, its scope was not told yet */

typedef enum hf_snap_state {
#define HF_SNAP_STATE_ENUM(name, word) name,
    HF_SNAP_STATE_MAP(HF_SNAP_STATE_ENUM)
#undef HF_SNAP_STATE_ENUM
} hf_snap_state;

/* One scope or branch. Strings are offsets into `strings`, nodes are indexes. */
typedef struct hf_snap_node {
    const hf_cx *cx;        /* of the scope or branch: an address to compare, not followed once the world runs again */
    const hf_cx *parent_cx; /* root scopes: that of the node in which they were opened; NULL = none, or known */
    uint32_t parent;
    uint32_t first_child;
    uint32_t last_child;
    uint32_t next; /* sibling */
    uint8_t kind;  /* hf_snap_kind */
    uint8_t state; /* branches: hf_snap_state */
    uint8_t cause; /* cause of its cancel; HF_CAUSE_NONE = not canceled */
    uint8_t pc_count;
    uint32_t pc_first; /* in `pcs` */
    int thread;        /* index of the scheduler: of a scope its home, of a branch where it runs, -1 = none */
    uint32_t name;
    uint32_t reason;     /* of its cancellation */
    uint32_t object;     /* what it waits for */
    uint32_t policy;     /* scopes: name of the join */
    const char *verb;    /* in which it, or the thread that owns the scope, waits; a literal; NULL = it does not wait */
    uint32_t stack_size; /* bytes of its stack; 0 = it has none of ours */
    uint32_t stack_most; /* bytes of it that were touched so far, in whole pages; 0 = unknown */
    int64_t age_ns;
    int64_t left_ns; /* scopes: until the deadline; INT64_MAX = none */
    uint64_t number; /* scopes: id; branches: index in the scope */
    hf_tally tally;  /* scopes */
    bool by_thread;  /* scopes: owned by a plain or pool thread */
    bool is_closing; /* scopes */
} hf_snap_node;

typedef enum hf_snap_thread_state {
    HF_SNAP_THREAD_IDLE,
    HF_SNAP_THREAD_USER,  /* runs user code */
    HF_SNAP_THREAD_CALLER /* runs the code that asked */
} hf_snap_thread_state;

typedef struct hf_snap_thread {
    hf_snap_thread_state state;
    uint32_t node; /* branch that it runs */
} hf_snap_thread;

typedef struct hf_snapshot {
    hf_buf nodes;   /* hf_snap_node each; a parent stands before its children, but for scopes of pool threads */
    hf_buf strings; /* NUL-terminated */
    hf_buf pcs;     /* void * each */
    uint32_t count;
    uint32_t first_root;
    bool is_cut; /* the tree was larger than fits */
    struct {
        const char *from;
        uint32_t offset;
    } recent[64]; /* strings that are stored already, by their address */
    int thread_count;
    hf_snap_thread threads[HF_THREADS_MAX];
    int pc_count; /* the caller's own stack */
    void *pcs_here[HF_BACKTRACE_DEPTH_MAX];
} hf_snapshot;

/* Takes the picture; stops the world for it. `snap` is zeroed memory with `pcs_here` set. `with_stacks`: reads the
 * stacks of parked fibers. Fails: HF_ERR_NOMEM. */
hf_status hf_snapshot_take(hf_op *op, hf_runtime *rt, hf_fiber *self, bool with_stacks, hf_snapshot *snap);
void hf_snapshot_deinit(hf_snapshot *snap);

static inline hf_snap_node *hf_snap_node_at(const hf_snapshot *snap, uint32_t idx)
{
    return (hf_snap_node *)(void *)snap->nodes.data + idx;
}

/* NULL for HF_SNAP_NONE. */
static inline const char *hf_snap_string(const hf_snapshot *snap, uint32_t offset)
{
    return offset != HF_SNAP_NONE ? snap->strings.data + offset : NULL;
}

static inline void *const *hf_snap_pcs(const hf_snapshot *snap, const hf_snap_node *node)
{
    return (void *const *)(void *)snap->pcs.data + node->pc_first;
}

#endif
