/* The monitor thread: it notices stuck fibers and activities (the watchdog), branches that no thread steals, and
 * memory that can be given back. In hosted and simulated runtimes it watches pools only, and is not started before
 * there is a pool to watch. */
#ifndef HF_FIBER_WATCH_H
#define HF_FIBER_WATCH_H

#include "fiber/sched/dispatch.h"

/* The order around the schedulers' threads: open, the threads start, start ... close, the threads end, deinit. The
 * signal must be open before the threads are made, and they use the monitor's state until they end. */
hf_status hf_watchdog_open(hf_runtime *rt, hf_op *op);
hf_status hf_watchdog_start(hf_runtime *rt, hf_op *op);
void hf_watchdog_close(hf_runtime *rt); /* no fiber is left, so lost threads end by themselves */
void hf_watchdog_deinit(hf_runtime *rt);

/* A scheduler woke up. The monitor sleeps while all of them sleep. */
void hf_watchdog_busy(hf_sched *sched);

/* Called by a fiber on a thread that has lost its scheduler: moves the fiber to the scheduler's new thread and
 * returns there. The old thread ends. */
void hf_watchdog_carry(hf_fiber *self);
/* The other half, on the old thread's own stack: `away` is the context that runs there now. The thread must then end
 * without touching its former scheduler. */
void hf_watchdog_left(hf_fiber *away);

/* A listener hears of stuck fibers, from any thread. It belongs to the caller, and is used between listen and
 * unlisten. Its word is incremented, and a thread that sleeps on it is woken, for every fiber that is reported or
 * becomes a zombie, and when the runtime takes no new work any more (is_draining). */
typedef struct hf_watchdog_listener {
    hf_node node;
    hf_word *word;
} hf_watchdog_listener;
void hf_watchdog_listen(hf_runtime *rt, hf_watchdog_listener *listener);
void hf_watchdog_unlisten(hf_runtime *rt, hf_watchdog_listener *listener);

/* Whether this fiber is a zombie now. The pointer is only compared. From any thread. */
bool hf_watchdog_is_zombie(hf_runtime *rt, const hf_fiber *fiber);

uint64_t hf_watchdog_zombies(const hf_runtime *rt);
uint64_t hf_watchdog_stuck(const hf_runtime *rt);

/* ---- Branches on a pool: watch_pool.c ---------------------------------------------------------------------------- */

/* How a branch is described in the log, dumps and metrics: "activity=charge workflow=order-1 attempt=2". */
enum { HF_LABEL_FIELDS_MAX = 6, HF_LABEL_VALUE_LEN = 100 };
typedef struct hf_label {
    int count;
    struct {
        const char *key; /* a literal */
        char value[HF_LABEL_VALUE_LEN];
    } fields[HF_LABEL_FIELDS_MAX];
} hf_label;
void hf_label_add(hf_label *label, const char *key, const char *value); /* copied, cut to fit */

/* Functions of the owner of a pool. The monitor calls them with the branch's arg, while its body has not returned. */
typedef struct hf_watchdog_ops {
    void (*label)(void *arg, hf_label *ret_label);
    void (*on_zombie)(void *arg); /* it is a zombie now; the pool has one more thread, so its place is free */
} hf_watchdog_ops;

/* From now on the branches of this pool are watched once they are canceled. To be called before the first branch.
 * Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (the monitor's thread could not be started). */
hf_status hf_watchdog_pool(hf_op *op, hf_dispatcher *pool, const hf_watchdog_ops *ops);
/* A branch of a watched pool is canceled while it runs on this thread, which is the caller or pinned. May be called
 * repeatedly. */
void hf_watchdog_begin(hf_dispatcher *pool, hf_fiber *thread, const hf_branch *branch);
/* The body has returned. Called on the thread itself, when no cancel can find the branch any more. */
void hf_watchdog_end(hf_dispatcher *pool, hf_fiber *thread);

typedef struct hf_zombie {
    hf_label label;
    int64_t age_ns; /* time since its cancel */
} hf_zombie;
/* Lists the branches that are zombies now, at most HF_ZOMBIES_LISTED_MAX. `*ret_zombies` has `*ret_room` elements;
 * the caller frees it with hf_rt_free. It is NULL if there are none. Returns how many are used, -1 = no memory. From
 * any thread. */
int hf_watchdog_list(hf_runtime *rt, hf_zombie **ret_zombies, size_t *ret_room);

#endif
