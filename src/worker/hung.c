/* Activities that do not end: they ignore a cancel, their timeout, the worker's stop.
 *
 * The runtime watches an activity on a thread of the pool from its cancel on (fiber/watch/watch_pool.c): it
 * interrupts the activity repeatedly and counts it as a zombie after the grace. An activity on a fiber (.on_fiber)
 * is a zombie when its fiber is (fiber/watch/watch.c). In both cases its slot goes to another activity then, and is
 * not given back a second time when the zombie ends. */
#include "worker/memo_private.h"

#include "base/fields.h"
#include "fiber/watch/watch.h"

#include <stdio.h>

typedef struct hf_activity_work activity;

enum { REPORT_MAX = 16, REPORT_LEN = 300 };

static void describe(const activity *act, int64_t now_ns, char text[REPORT_LEN])
{
    hf_fields_format(text, REPORT_LEN, "activity=%.60s id=%.40s workflow=%.60s run=%.40s ms=%lld", act->facts.name,
                     act->facts.id, act->facts.workflow_id, act->facts.run_id,
                     (long long)((now_ns - act->started_ns) / 1000000));
}

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

void hf_activity_free_slot(activity *act)
{
    if (atomic_exchange(&act->has_slot, false)) {
        (void)hf_sem_release(hf_activity_slots(act), 1);
    }
}

static void on_zombie(void *arg)
{
    activity *act = arg;
    if (act->body != NULL) { /* the attempt that waits for it has the slot */
        hf_memo_see_zombie(hf_memo_ref(act));
    } else {
        hf_activity_free_slot(act);
    }
}

static void label(void *arg, hf_label *ret_label)
{
    const activity *act = arg;
    char attempt[16];
    (void)snprintf(attempt, sizeof attempt, "%d", act->facts.attempt);
    hf_label_add(ret_label, "activity", act->facts.name);
    hf_label_add(ret_label, "id", act->facts.id);
    hf_label_add(ret_label, "attempt", attempt);
    hf_label_add(ret_label, "workflow", act->facts.workflow_id);
    hf_label_add(ret_label, "run", act->facts.run_id);
}

hf_status hf_activity_watch_pool(hf_worker *worker, hf_dispatcher *pool)
{
    static const hf_watchdog_ops OPS = {label, on_zombie};
    hf_op op;
    hf_op_init(&op);
    hf_fiber *self = hf_enter(worker->rt);
    hf_assert(pool != NULL);
    hf_status status = hf_watchdog_pool(&op, pool, &OPS);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_op_end(self, &op));
}

void hf_activity_see_zombies(hf_worker *worker)
{
    char texts[REPORT_MAX][REPORT_LEN];
    int count = 0;
    int local_count = 0;              /* among them */
    hf_memo_body *bodies[REPORT_MAX]; /* more of them are seen with the next look */
    int body_count = 0;
    int64_t now = hf_now(worker->rt).ns;
    hf_fiber *self = hf_enter(worker->rt);
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        activity *act = HF_CONTAINER(node, activity, busy);
        const hf_fiber *fiber = atomic_load_explicit(&act->fiber, memory_order_relaxed);
        bool is_zombie = fiber != NULL && hf_watchdog_is_zombie(worker->rt, fiber);
        if (is_zombie && act->body != NULL) {
            if (body_count < REPORT_MAX) {
                bodies[body_count++] = hf_memo_ref(act);
            }
            continue;
        }
        if (is_zombie && atomic_exchange(&act->has_slot, false)) {
            if (count < REPORT_MAX) {
                describe(act, now, texts[count]);
            }
            count++;
            local_count += act->job != NULL;
        }
    }
    hf_spin_unlock(&worker->busy_lock);
    hf_leave(self);
    for (int i = 0; i < body_count; i++) {
        hf_memo_see_zombie(bodies[i]);
    }
    for (int i = 0; i < count && i < REPORT_MAX;
         i++) { /* the runtime has logged the fiber, but only by its name "activity" */
        hf_log(worker->rt, HF_LOG_ERROR, "zombie_on_fiber", "%s slot=free", texts[i]);
    }
    if (count > local_count) {
        (void)hf_sem_release(worker->activity_slots, count - local_count);
    }
    if (local_count > 0) {
        (void)hf_sem_release(worker->local_slots, local_count);
    }
}

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

void hf_activity_report(hf_worker *worker, const char *event)
{
    char texts[REPORT_MAX][REPORT_LEN];
    size_t count = 0;
    int64_t now = hf_now(worker->rt).ns;
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        const activity *act = HF_CONTAINER(node, activity, busy);
        if (count < REPORT_MAX && act->body == NULL && !atomic_load(&act->has_returned)) { /* attempts name a body */
            describe(act, now, texts[count++]);
        }
    }
    hf_spin_unlock(&worker->busy_lock);
    for (size_t i = 0; i < count; i++) {
        hf_log(worker->rt, HF_LOG_ERROR, event, "%s", texts[i]);
    }
}

void hf_activity_tally(hf_worker *worker, uint64_t *ret_running, uint64_t *ret_zombies)
{
    *ret_running = 0;
    *ret_zombies = 0;
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        const activity *act = HF_CONTAINER(node, activity, busy);
        bool is_running = act->body == NULL && !atomic_load(&act->has_returned);
        *ret_running += is_running;
        *ret_zombies += is_running && !atomic_load(&act->has_slot);
    }
    hf_spin_unlock(&worker->busy_lock);
    hf_assert(*ret_zombies <= *ret_running);
}

hf_activity_counts hf_activity_count(hf_worker *worker)
{
    hf_activity_counts counts = {0, 0, 0};
    hf_spin_lock(&worker->busy_lock);
    hf_assert(worker->unsaid_count >= 0);
    counts.unsaid = worker->unsaid_count;
    HF_LIST_EACH(node, &worker->busy)
    {
        const activity *act = HF_CONTAINER(node, activity, busy);
        bool has_returned = atomic_load(&act->has_returned);
        counts.running += act->body == NULL && !has_returned;
        counts.answering += act->body == NULL && has_returned;
    }
    hf_spin_unlock(&worker->busy_lock);
    return counts;
}
