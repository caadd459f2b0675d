/* News from the helper: which child runs, which has ended.
 *
 * There is no fiber that only reads them, because it would have to live as long as the runtime. One of the waiters
 * reads for all, and hands the role on when it leaves:
 *
 *     wait:   my news is there? done.   nobody reads? I do.   else I sleep until my news, or the role, comes to me
 *     reader: read all there is, wake the waiters of each process, wait for more;  leaving: wake one waiter
 *
 * fiber-E1  has_reader is false only while nobody waits, or while a waiter was woken that will look again.
 * fiber-E2  While nobody waits, the news stays in the helper's socket, and then in the helper.
 * fiber-E3  A process is in `all` from before its request is sent until its end was read, or the helper has ended. */
#include "fiber/io/process_private.h"

enum { STALL_NS = 2000000 }; /* how long a busy helper is left alone */

/* ---- Processes --------------------------------------------------------------------------------------------------- */

void hf_process_ref(hf_process *process)
{
    hf_spin_lock(&process->owner->lock);
    hf_assert(process->refs > 0);
    process->refs++;
    hf_spin_unlock(&process->owner->lock);
}

void hf_process_unref(hf_process *process)
{
    hf_processes *all = process->owner;
    hf_spin_lock(&all->lock);
    hf_assert(process->refs > 0);
    bool is_last = --process->refs == 0;
    if (is_last) {
        hf_assert(hf_node_is_linked(&process->node)); /* fiber-E3 */
        hf_list_remove(&process->node);
    }
    hf_spin_unlock(&all->lock);
    if (is_last) {
        for (int i = 0; i < 3; i++) {
            hf_conn_drop(process->io[i]);
        }
        hf_rt_free(all->rt, process, sizeof *process);
    }
}

bool hf_process_has_ended(hf_process *process)
{
    hf_spin_lock(&process->owner->lock);
    bool has_ended = process->has_ended;
    hf_spin_unlock(&process->owner->lock);
    return has_ended;
}

/* Kills an orphan that runs. If the helper is too busy to take the request, it kills the orphan when the runtime ends. */
static void kill_orphan(hf_processes *all, int64_t pid)
{
    (void)all->rt->env->ops->child_signal(all->rt->env, NULL, all->helper, pid, 9 /* SIGKILL */);
}

void hf_process_orphan(hf_process *process)
{
    hf_processes *all = process->owner;
    hf_spin_lock(&all->lock);
    bool is_over = process->has_ended || all->helper_ended || (process->is_started && process->error != 0);
    process->is_orphan = !is_over;
    int64_t pid = process->is_started ? process->pid : 0;
    hf_spin_unlock(&all->lock);
    if (is_over) {
        hf_process_unref(process);
    } else if (pid != 0) {
        kill_orphan(all, pid);
    }
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Wakes all waiters for this process; NULL = for all processes. One at a time, because a wake-up must not happen
 * under the lock. */
static void wake_waiters(hf_processes *all, const hf_process *process)
{
    hf_wait *found = NULL;
    do {
        found = NULL;
        hf_spin_lock(&all->lock);
        HF_LIST_EACH(node, &all->waiters)
        {
            hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
            if (found == NULL && (process == NULL || wait->value == process)) {
                found = wait;
                hf_list_remove(node);
            }
        }
        hf_spin_unlock(&all->lock);
        if (found != NULL) {
            hf_wake(found, HF_OK);
        }
    } while (found != NULL);
}

static hf_process *find(hf_processes *all, uint64_t request)
{
    HF_LIST_EACH(node, &all->all)
    {
        hf_process *process = HF_CONTAINER(node, hf_process, node);
        if (process->request == request) {
            return process;
        }
    }
    return NULL;
}

static void take_event(hf_processes *all, const hf_child_event *event)
{
    hf_spin_lock(&all->lock);
    hf_process *process = find(all, event->request);
    bool is_orphan = false;
    bool is_over = false;
    if (process != NULL) {
        hf_assert(process->refs > 0); /* fiber-E3 */
        process->refs++;
        if (event->started) {
            process->is_started = true;
            process->pid = event->pid;
            process->error = event->error;
        } else {
            process->has_ended = true;
            process->exit = event->exit;
        }
        is_orphan = process->is_orphan;
        is_over = process->has_ended || process->error != 0;
        process->is_orphan = is_orphan && !is_over;
    }
    hf_spin_unlock(&all->lock);
    if (process == NULL) {
        return;
    }
    wake_waiters(all, process);
    if (is_orphan && is_over) {
        hf_process_unref(process); /* the reference of its starter */
    } else if (is_orphan) {
        kill_orphan(all, event->pid);
    }
    hf_process_unref(process);
}

/* By the reader: takes all news there is. */
static void read_news(hf_processes *all)
{
    hf_env *env = all->rt->env;
    for (;;) {
        hf_child_event event;
        hf_status status = env->ops->child_event(env, NULL, all->helper, &event);
        if (status == HF_ERR_AGAIN) {
            return;
        }
        if (status != HF_OK) {
            hf_spin_lock(&all->lock);
            all->helper_ended = true;
            hf_spin_unlock(&all->lock);
            wake_waiters(all, NULL);
            return;
        }
        take_event(all, &event);
    }
}

/* The reader leaves: the next one in line takes over (fiber-E1). */
static void give_role(hf_processes *all)
{
    hf_spin_lock(&all->lock);
    hf_assert(all->has_reader); /* fiber-E1 */
    all->has_reader = false;
    hf_node *node = hf_list_pop_front(&all->waiters);
    hf_spin_unlock(&all->lock);
    if (node != NULL) {
        hf_wake(HF_CONTAINER(node, hf_wait, node), HF_OK);
    }
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static bool has_news(const hf_process *process, bool end)
{
    return end ? process->has_ended : process->is_started;
}

static hf_status read_until(hf_fiber *self, hf_process *process, bool end, hf_instant deadline)
{
    static const hf_wait_kind READ = {"hf_process_wait", hf_fd_abort};
    static const hf_wait_kind START = {"hf_process_start", hf_fd_abort};
    hf_processes *all = process->owner;
    hf_fd_user user = {end ? &READ : &START, process->name, NULL, false};
    hf_status status = HF_OK;
    for (;;) {
        read_news(all);
        hf_spin_lock(&all->lock);
        bool is_done = has_news(process, end) || all->helper_ended;
        hf_spin_unlock(&all->lock);
        if (is_done) {
            break;
        }
        status = hf_fd_wait_on(self, all->rt, all->fd, HF_READABLE, deadline, &user);
        if (status != HF_OK) {
            break;
        }
    }
    give_role(all);
    return status;
}

hf_status hf_process_await(hf_fiber *self, hf_process *process, bool end, hf_instant deadline, const hf_wait_kind *kind)
{
    hf_processes *all = process->owner;
    HF_TRY(hf_may_wait(self, kind->verb));
    for (;;) {
        hf_wait wait;
        hf_wait_init(&wait, self, kind, all, process->name);
        wait.value = process;
        hf_spin_lock(&all->lock);
        bool is_there = has_news(process, end);
        bool is_lost = all->helper_ended;
        bool reads = !all->has_reader;
        if (!is_there && !is_lost && reads) {
            all->has_reader = true;
        } else if (!is_there && !is_lost) {
            hf_list_push_back(&all->waiters, &wait.node);
        }
        hf_spin_unlock(&all->lock);
        if (is_there) {
            return HF_OK;
        }
        if (is_lost) {
            return hf_refuse_at(self, HF_ERR_CLOSED, kind->verb,
                                "the helper process has ended, and %s with it; its exit status is unknown",
                                process->name);
        }
        HF_TRY(reads ? read_until(self, process, end, deadline) : hf_park(self, &wait, deadline));
    }
}

hf_status hf_processes_stall(hf_fiber *self, hf_processes *all)
{
    static const hf_wait_kind STALL = {"a busy helper process", hf_wait_abort_linked};
    HF_TRY(hf_may_wait(self, STALL.verb));
    hf_wait wait;
    hf_wait_init(&wait, self, &STALL, all, "helper");
    hf_spin_lock(&all->lock);
    bool reads = !all->has_reader;
    all->has_reader = true;
    hf_list_push_back(&all->stalled, &wait.node);
    hf_spin_unlock(&all->lock);
    if (reads) { /* the helper may be busy because nobody reads its news */
        read_news(all);
        give_role(all);
    }
    hf_status status = hf_park(self, &wait, (hf_instant){hf_rt_now(all->rt).ns + STALL_NS});
    if (status == HF_ERR_TIMEOUT) { /* expected: the moment is over */
        self->last_status = HF_OK;
        self->last_where = NULL;
        status = HF_OK;
    }
    return status;
}
