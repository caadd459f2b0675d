/* The monitor thread: notices stuck fibers and activities (watchdog), branches that nobody steals, memory that can be given back.
 * In hosted and simulated runtimes it looks after branches of watched pools only, and there is none before there is such a pool. */
#ifndef HF_FIBER_WATCH_H
#define HF_FIBER_WATCH_H

#include "fiber/sched/dispatch.h"

/* In this order around the schedulers' threads: open, threads start, start ... close, threads end, deinit. The signal
 * must be open before the threads are made, and they look at the monitor's state until they end. */
hf_status hf_watchdog_open(hf_runtime *rt, hf_op *op);
hf_status hf_watchdog_start(hf_runtime *rt, hf_op *op);
void hf_watchdog_close(hf_runtime *rt); /* no fiber is left: lost threads end by themselves and are joined */
void hf_watchdog_deinit(hf_runtime *rt);

/* A scheduler woke up: the monitor sleeps while all of them do. */
void hf_watchdog_busy(hf_sched *sched);

/* Called by a fiber whose thread was taken away, on that thread: carries the fiber to its scheduler's new thread and
 * returns there; the old thread ends. */
void hf_watchdog_carry(hf_fiber *self);
/* The other half, on the old thread's own stack: `away` is what runs there now. The thread must then end without
 * touching its former scheduler. */
void hf_watchdog_left(hf_fiber *away);

/* Whoever wants to know that a fiber is stuck, from any thread; the caller's, between listen and unlisten. The word goes up,
 * and who sleeps on it is woken, with every fiber that is reported or has become a zombie, and when the runtime takes no new
 * work any more (is_draining). */
typedef struct hf_watchdog_listener {
    hf_node node;
    hf_word *word;
} hf_watchdog_listener;
void hf_watchdog_listen(hf_runtime *rt, hf_watchdog_listener *listener);
void hf_watchdog_unlisten(hf_runtime *rt, hf_watchdog_listener *listener);

/* Whether this fiber is a zombie now. Compared, not followed. From any thread. */
bool hf_watchdog_is_zombie(hf_runtime *rt, const hf_fiber *fiber);

uint64_t hf_watchdog_zombies(const hf_runtime *rt);
uint64_t hf_watchdog_stuck(const hf_runtime *rt);

/* ---- Branches on a pool: watch_pool.c -------------------------------------------------------------------------------- */

/* What a branch is called in the log, dumps and metrics: "activity=charge workflow=order-1 attempt=2". */
enum { HF_LABEL_FIELDS_MAX = 6, HF_LABEL_VALUE_LEN = 100 };
typedef struct hf_label {
    int count;
    struct {
        const char *key; /* a literal */
        char value[HF_LABEL_VALUE_LEN];
    } fields[HF_LABEL_FIELDS_MAX];
} hf_label;
void hf_label_add(hf_label *label, const char *key, const char *value); /* copied, cut to fit */

/* What the owner of a pool says about its branches. Called by the monitor, with the branch's arg, while the body has not returned. */
typedef struct hf_watchdog_ops {
    void (*label)(void *arg, hf_label *ret_label);
    void (*on_zombie)(
        void *arg); /* it counts as one, and the pool has a thread more: another branch may have its place */
} hf_watchdog_ops;

/* From now on the branches of this pool are watched once they are canceled. Before the first one. Fails: HF_ERR_NOMEM,
 * HF_ERR_LIMIT (the monitor's thread). */
hf_status hf_watchdog_pool(hf_op *op, hf_dispatcher *pool, const hf_watchdog_ops *ops);
/* A branch of a watched pool is canceled while it runs on this thread: the thread is the caller, or pinned. Any number of times. */
void hf_watchdog_begin(hf_dispatcher *pool, hf_fiber *thread, const hf_branch *branch);
/* The body has returned: on the thread itself, when no cancel can find it any more. */
void hf_watchdog_end(hf_dispatcher *pool, hf_fiber *thread);

typedef struct hf_zombie {
    hf_label label;
    int64_t age_ns; /* since its cancel */
} hf_zombie;
/* The branches that are zombies now, HF_ZOMBIES_LISTED_MAX at most. `*ret_zombies` is the caller's, of `*ret_room` elements, to be
 * freed with hf_rt_free; NULL when there are none. Returns how many are in it, -1 = no memory. From any thread. */
int hf_watchdog_list(hf_runtime *rt, hf_zombie **ret_zombies, size_t *ret_room);

#endif
