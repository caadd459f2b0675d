/* The verbs for child processes. The processes belong to the helper process, which is started with the first of them.
 * process_events.c reads its news. */
#include "fiber/io/process_private.h"
#include "fiber/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    SIGNAL_TERM = 15,
    SIGNAL_KILL = 9,
    REPLY_BOUND_S = 10 /* seconds that a canceled fiber waits for a reply that is certain to come soon */
};

static const hf_wait_kind START = {"hf_process_start", hf_wait_abort_linked};
static const hf_wait_kind WAIT = {"hf_process_wait", hf_wait_abort_linked};
static const hf_wait_kind CLOSE = {"hf_process_close", hf_wait_abort_linked};

/* ---- The helper -------------------------------------------------------------------------------------------------- */

static void close_helper(hf_processes *all)
{
    hf_runtime *rt = all->rt;
    hf_fd_drop(rt, all->fd);
    rt->env->ops->helper_close(rt->env, all->helper);
    hf_rt_free(rt, all, sizeof *all);
}

static hf_status open_helper(hf_runtime *rt, hf_op *op, hf_processes **ret_all)
{
    hf_env *env = rt->env;
    if (env->ops->helper_open == NULL) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "the environment \"%s\" has no child processes", env->ops->name);
    }
    hf_processes *all = hf_rt_alloc(rt, sizeof *all);
    if (all == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for child processes");
    }
    all->rt = rt;
    hf_list_init(&all->all);
    hf_list_init(&all->waiters);
    hf_list_init(&all->stalled);
    hf_status status = env->ops->helper_open(env, op, &all->helper, &all->fd);
    if (status != HF_OK) {
        hf_rt_free(rt, all, sizeof *all);
        return status;
    }
    *ret_all = all;
    return HF_OK;
}

/* The runtime's helper, opened with its first process. If two fibers open it at once, one of the two helpers is closed. */
static hf_status get_processes(hf_runtime *rt, hf_op *op, hf_processes **ret_all)
{
    hf_spin_lock(&rt->processes_lock);
    *ret_all = rt->processes;
    hf_spin_unlock(&rt->processes_lock);
    if (*ret_all != NULL) {
        return HF_OK;
    }
    hf_processes *fresh = NULL;
    HF_TRY(open_helper(rt, op, &fresh));
    hf_spin_lock(&rt->processes_lock);
    if (rt->processes == NULL) {
        rt->processes = fresh;
        fresh = NULL;
    }
    *ret_all = rt->processes;
    hf_spin_unlock(&rt->processes_lock);
    if (fresh != NULL) {
        close_helper(fresh);
    }
    return HF_OK;
}

/* No verb can be inside any more. */
static void free_processes(hf_processes *all)
{
    for (hf_node *node = NULL; (node = hf_list_first(&all->all)) != NULL;) {
        hf_process *process = HF_CONTAINER(node, hf_process, node);
        process->refs = 1;
        hf_process_unref(process);
    }
    hf_assert(hf_list_is_empty(&all->waiters) && hf_list_is_empty(&all->stalled));
}

void hf_processes_deinit(hf_runtime *rt)
{
    hf_processes *all = rt->processes;
    if (all == NULL) {
        return;
    }
    rt->processes = NULL;
    free_processes(all);
    close_helper(all);
}

hf_status hf_process_box_open(hf_op *op, hf_runtime *rt, hf_process_box **ret_box)
{
    return open_helper(rt, op, ret_box);
}

void hf_process_box_kill(hf_process_box *box)
{
    if (box == NULL || box->helper == NULL) {
        return;
    }
    hf_runtime *rt = box->rt;
    hf_fiber *self = hf_enter(rt);
    hf_fd_drop(rt, box->fd);
    hf_helper *helper = box->helper;
    hf_spin_lock(&box->lock);
    box->helper = NULL;
    box->helper_ended = true;
    hf_spin_unlock(&box->lock);
    if (self != NULL) {
        hf_leave(self);
    }
    rt->env->ops->helper_close(rt->env, helper);
}

void hf_process_box_free(hf_process_box *box)
{
    if (box != NULL) {
        hf_fiber *self = hf_enter(box->rt);
        hf_assert(box->helper == NULL);
        free_processes(box);
        hf_rt_free(box->rt, box, sizeof *box);
        if (self != NULL) {
            hf_leave(self);
        }
    }
}

/* Opens a shield with a bound, for an operation that must be completed. NULL: no memory, and the operation runs
 * without. */
static hf_scope *open_shield(hf_fiber *self, hf_runtime *rt, const char *name, hf_span bound)
{
    hf_scope *shield = NULL;
    hf_scope_options options = {.size = sizeof options, .name = name, .timeout = bound};
    bool may_wait = self->hook_depth == 0;
    return may_wait && hf_scope_open_on(self, rt, &shield, &options, true) == HF_OK ? shield : NULL;
}

static void close_shield(hf_fiber *self, hf_scope *shield)
{
    if (shield != NULL) {
        (void)hf_scope_close_on(self, shield);
    }
}

/* ---- Starting ---------------------------------------------------------------------------------------------------- */

static hf_status make_pipe(hf_process *process, hf_op *op, int idx, hf_spawn *spawn)
{
    static const char *const NAMES[] = {"in", "out", "err"};
    hf_runtime *rt = process->owner->rt;
    hf_env *env = rt->env;
    int read_fd = -1;
    int write_fd = -1;
    HF_TRY(env->ops->pipe(env, op, &read_fd, &write_fd));
    int ours = idx == 0 ? write_fd : read_fd;
    int theirs = idx == 0 ? read_fd : write_fd;
    char name[HF_ADDRESS_LEN_MAX];
    (void)snprintf(name, sizeof name, "pipe:%s:%s", process->name, NAMES[idx]);
    process->io[idx] = hf_conn_wrap(rt, ours, name, true);
    if (process->io[idx] == NULL) {
        env->ops->close(env, ours);
        env->ops->close(env, theirs);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a pipe to %s", process->name);
    }
    spawn->fds[idx] = theirs;
    return HF_OK;
}

static hf_status make_stdio(hf_process *process, hf_op *op, const hf_process_options *options, hf_spawn *spawn)
{
    const hf_stdio wanted[3] = {options->in, options->out, options->err};
    for (int i = 0; i < 3; i++) {
        switch (wanted[i]) {
        case HF_STDIO_NULL:
            break;
        case HF_STDIO_INHERIT:
            spawn->fds[i] = -2;
            break;
        case HF_STDIO_PIPE:
            HF_TRY(make_pipe(process, op, i, spawn));
            break;
        default:
            return hf_fail(op, HF_ERR_MISUSE, "%d is not an hf_stdio", (int)wanted[i]);
        }
    }
    return HF_OK;
}

static hf_status make_process(hf_processes *all, hf_op *op, const char *name, hf_process **ret_process)
{
    hf_process *process = hf_rt_alloc(all->rt, sizeof *process);
    if (process == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a process");
    }
    process->owner = all;
    process->refs = 1;
    (void)snprintf(process->name, sizeof process->name, "%s", name);
    hf_spin_lock(&all->lock);
    process->request = ++all->requests;
    hf_list_push_back(&all->all, &process->node);
    hf_spin_unlock(&all->lock);
    *ret_process = process;
    return HF_OK;
}

/* Sends the request; a busy helper is waited for. `op` tells of a failure unless it was a cancel. */
static hf_status send_start(hf_fiber *self, hf_process *process, hf_op *op, const hf_spawn *spawn)
{
    hf_processes *all = process->owner;
    hf_env *env = all->rt->env;
    for (;;) {
        hf_status status = env->ops->child_start(env, op, all->helper, process->request, spawn);
        if (status != HF_ERR_AGAIN) {
            return status;
        }
        hf_op_init(op);
        HF_TRY(hf_processes_stall(self, all));
    }
}

static hf_status start_failed(hf_fiber *self, const hf_process *process, int error)
{
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_fail_errno(&op, error, "cannot start %s", process->name);
    if (error == EAGAIN || error == ENOMEM) {
        status = HF_ERR_LIMIT; /* a limit of processes, under any name that the kernel uses */
    }
    return hf_refuse_at(self, status, START.verb, "%s", op.message);
}

/* The request is out: the answer is waited for even if the fiber is canceled, so that no child is forgotten. */
static hf_status finish_start(hf_fiber *self, hf_process *process)
{
    hf_scope *shield = open_shield(self, process->owner->rt, "process start", hf_seconds(REPLY_BOUND_S));
    hf_status status = hf_process_await(self, process, false, HF_INSTANT_NEVER, &START);
    close_shield(self, shield);
    if (status == HF_OK && process->error != 0) {
        status = start_failed(self, process, process->error);
    }
    return status;
}

/* `all` NULL: the runtime's. */
static hf_status start(hf_fiber *self, hf_runtime *rt, hf_processes *all, const char *const *argv,
                       const char *const *more, const hf_process_options *options, hf_process **ret_process)
{
    hf_op op;
    hf_op_init(&op);
    hf_env *env = rt->env;
    hf_process *process = NULL;
    hf_spawn spawn = {.argv = argv, .env = options->env, .more = more, .cwd = options->cwd, .fds = {-1, -1, -1}};
    hf_status status = all != NULL ? HF_OK : get_processes(rt, &op, &all);
    status = status == HF_OK ? make_process(all, &op, argv[0], &process) : status;
    status = status == HF_OK ? make_stdio(process, &op, options, &spawn) : status;
    status = status == HF_OK ? send_start(self, process, &op, &spawn) : status;
    bool is_sent = status == HF_OK;
    for (int i = 0; i < 3; i++) {
        if (spawn.fds[i] >= 0) { /* the helper has its own by now */
            env->ops->close(env, spawn.fds[i]);
        }
    }
    if (is_sent) {
        status = finish_start(self, process);
    } else if (op.status != HF_OK) {
        (void)hf_refuse_at(self, op.status, START.verb, "%s", op.message);
    }
    if (status == HF_OK) {
        process->kill_after = options->kill_after;
        *ret_process = process;
    } else if (process != NULL && is_sent) {
        hf_process_orphan(process);
    } else if (process != NULL) {
        hf_process_unref(process);
    }
    return status;
}

hf_status hf_process_start_with(const char *const *argv, hf_process **ret_process, const hf_process_options *options)
{
    HF_OPTIONS(hf_process_options, options, hf_process_start);
    HF_VERB_ENTER(self, hf_process_start, options->runtime);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (ret_process == NULL || argv == NULL || argv[0] == NULL || argv[0][0] == '\0') {
        HF_LEAVE(self,
                 hf_refuse_at(self, HF_ERR_MISUSE, START.verb, "a program to start and a place for it are needed"));
    }
    hf_status status = hf_may_wait(self, START.verb);
    HF_LEAVE(self, status != HF_OK ? status : start(self, rt, NULL, argv, NULL, options, ret_process));
}

hf_status hf_process_start_in(hf_process_box *box, const char *const *argv, const char *const *more,
                              hf_process **ret_process, const hf_process_options *options)
{
    HF_VERB_ENTER(self, hf_process_start, box->rt);
    hf_assert(box->helper != NULL && argv[0] != NULL);
    hf_status status = hf_may_wait(self, START.verb);
    HF_LEAVE(self, status != HF_OK ? status : start(self, box->rt, box, argv, more, options, ret_process));
}

/* ---- Using ------------------------------------------------------------------------------------------------------- */

int64_t hf_process_pid(const hf_process *process)
{
    return process != NULL ? process->pid : -1;
}

hf_conn *hf_process_in(hf_process *process)
{
    return process != NULL ? process->io[0] : NULL;
}

hf_conn *hf_process_out(hf_process *process)
{
    return process != NULL ? process->io[1] : NULL;
}

hf_conn *hf_process_err(hf_process *process)
{
    return process != NULL ? process->io[2] : NULL;
}

static void close_pipe(hf_process *process, int idx)
{
    hf_spin_lock(&process->owner->lock);
    hf_conn *conn = process->io[idx];
    process->io[idx] = NULL;
    hf_spin_unlock(&process->owner->lock);
    hf_conn_drop(conn);
}

hf_status hf_process_close_in(hf_process *process)
{
    HF_VERB_ENTER(self, hf_process_close_in, process != NULL ? process->owner->rt : NULL);
    if (process == NULL || process->io[0] == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "there is no open input to close: ask for .in = HF_STDIO_PIPE"));
    }
    close_pipe(process, 0);
    HF_LEAVE(self, HF_OK);
}

hf_status hf_process_wait_with(hf_process *process, hf_exit *ret_exit, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_process_wait);
    HF_VERB_ENTER(self, hf_process_wait, process != NULL ? process->owner->rt : NULL);
    if (process == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, WAIT.verb, "no process to wait for"));
    }
    hf_process_ref(process);
    hf_instant deadline = hf_wait_deadline(self, process->owner->rt, options);
    hf_status status = hf_process_await(self, process, true, deadline, &WAIT);
    if (status == HF_OK && ret_exit != NULL) {
        *ret_exit = process->exit;
    }
    hf_process_unref(process);
    HF_LEAVE(self, status);
}

/* HF_ERR_AGAIN only where the caller must not wait for a busy helper. */
static hf_status signal_group(hf_fiber *self, hf_process *process, hf_op *op, int number)
{
    hf_processes *all = process->owner;
    hf_env *env = all->rt->env;
    for (;;) {
        hf_status status = env->ops->child_signal(env, op, all->helper, process->pid, number);
        if (status != HF_ERR_AGAIN || hf_processes_stall(self, all) != HF_OK) {
            return status;
        }
    }
}

hf_status hf_process_kill(hf_process *process, int signal)
{
    HF_VERB_ENTER(self, hf_process_kill, process != NULL ? process->owner->rt : NULL);
    if (process == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no process to signal"));
    }
    if (hf_process_has_ended(process)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOT_FOUND, "%s has ended already", process->name));
    }
    hf_op op;
    hf_op_init(&op);
    hf_process_ref(process);
    hf_status status = signal_group(self, process, &op, signal);
    if (status != HF_OK) {
        status = hf_refuse(self, status, "%s", op.message);
    }
    hf_process_unref(process);
    HF_LEAVE(self, status);
}

/* Inside the shield: SIGTERM first, if kill_after is set, then SIGKILL. */
static hf_status end_process(hf_fiber *self, hf_process *process)
{
    hf_runtime *rt = process->owner->rt;
    if (process->kill_after.ns > 0) {
        (void)signal_group(self, process, NULL, SIGNAL_TERM);
        close_pipe(process, 0); /* some programs end when their input ends */
        hf_instant deadline = hf_rt_deadline(rt, process->kill_after);
        hf_status status = hf_process_await(self, process, true, deadline, &CLOSE);
        if (status != HF_ERR_TIMEOUT) {
            return status;
        }
    }
    (void)signal_group(self, process, NULL, SIGNAL_KILL);
    return hf_process_await(self, process, true, HF_INSTANT_NEVER, &CLOSE);
}

hf_status hf_process_close(hf_process *process)
{
    if (process == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_process_close, process->owner->rt);
    hf_status status = HF_OK;
    if (!hf_process_has_ended(process)) {
        hf_status last_status = self->last_status; /* releasing sets no failure of its own */
        const char *last_where = self->last_where;
        int64_t kill_after = process->kill_after.ns > 0 ? process->kill_after.ns : 0;
        hf_span bound = {.ns = kill_after < INT64_MAX / 2 ? kill_after + hf_seconds(REPLY_BOUND_S).ns : kill_after};
        hf_scope *shield = open_shield(self, process->owner->rt, "process close", bound);
        status = end_process(self, process);
        close_shield(self, shield);
        status = status == HF_ERR_CLOSED ? HF_OK : status; /* the helper has ended, and all children with it */
        if (status == HF_OK) {
            self->last_status = last_status;
            self->last_where = last_where;
        }
    }
    for (int i = 0; i < 3; i++) {
        close_pipe(process, i);
    }
    if (status == HF_OK) {
        hf_process_unref(process);
    } else {
        hf_process_orphan(process);
    }
    HF_LEAVE(self, status);
}
