/* One owner per file. A program that opens a database first locks the file PATH-owner beside it, and keeps the lock
 * until it has closed the database. So a second opener, in this process or another, gets an error that names the owner
 * instead of an error of SQLite, and tools know whether to open a file or to ask the program that has it open.
 *
 * A tool that reads a file at rest holds the lock, too, but marks it as brief: a program that starts meanwhile waits
 * for the tool instead of failing.
 *
 * The kernel's lock, not the file, says that there is an owner: a lock file that a crash left behind does no harm. A
 * program that opens the database through a hard link finds another lock file; then SQLite's own lock keeps it out. */
#include "store/sqlite/owner.h"

#include <stdio.h>

enum { PAUSE_MS = 10, TRIES_MAX = 500 }; /* wait up to five seconds for a tool */

static hf_status explain(hf_op *op, hf_status status, const hf_table_set *tables, const char *path, int64_t holder)
{
    char why[HF_MESSAGE_LEN_MAX];
    (void)snprintf(why, sizeof why, "%s", op->message);
    switch ((int)status) {
    case HF_ERR_EXISTS:
        if (holder > 0) {
            return hf_fail(op, status, "%s is open in process %lld: stop that process first, or ask it (%s %s)%s", path,
                           (long long)holder, tables->looked_at_with, path, tables->shared_with);
        }
        if (holder < 0) {
            return hf_fail(op, status, "%s is being read by a tool, process %lld: try again when the tool has ended",
                           path, (long long)-holder);
        }
        return hf_fail(op, status, "%s is being opened by another program: try again", path);
    case HF_ERR_NOT_FOUND:
        return hf_fail(op, status, "cannot open %s: there is no such folder; make it first", path);
    case HF_ERR_DENIED:
        return hf_fail(op, status, "cannot open %s: its folder cannot be written to, and the log is written there (%s)",
                       path, why);
    default:
        return hf_fail(op, status, "cannot open %s: %s", path, why);
    }
}

static hf_status refuse_kind(hf_op *op)
{
    char what[HF_MESSAGE_LEN_MAX];
    (void)snprintf(what, sizeof what, "%s", op->message);
    return hf_fail(op, op->status, "%s: name another file", what);
}

static void sleep_ms(hf_env *env, int64_t ms)
{
    hf_word nobody = 0;
    (void)env->ops->word_wait(env, &nobody, 0, (hf_instant){env->ops->now(env).ns + hf_milliseconds(ms).ns});
}

hf_status hf_file_owner_take(hf_op *op, hf_env *env, const char *path, bool is_brief, hf_file_owner *ret_owner,
                             int64_t *ret_holder)
{
    return hf_file_owner_take_of(op, env, &hf_engine_tables, path, is_brief, ret_owner, ret_holder);
}

hf_status hf_file_owner_take_of(hf_op *op, hf_env *env, const hf_table_set *tables, const char *path, bool is_brief,
                                hf_file_owner *ret_owner, int64_t *ret_holder)
{
    hf_file_owner owner = {.fd = -1};
    int64_t holder = 0;
    if (!hf_beside(path, "-owner", owner.path)) {
        return hf_fail(op, HF_ERR_INVALID, "the path of a database has at most %d bytes", HF_PATH_LEN_MAX - 32);
    }
    if (env->ops->file_check(env, op, path) != HF_OK) { /* before PATH-owner is made beside it */
        return refuse_kind(op);
    }
    hf_status status = env->ops->lock_open(env, op, owner.path, is_brief, &owner.fd, &holder);
    for (int tries = 0; status == HF_ERR_EXISTS && holder <= 0 && tries < TRIES_MAX; tries++) {
        sleep_ms(env, PAUSE_MS);
        hf_op_init(op);
        status = env->ops->lock_open(env, op, owner.path, is_brief, &owner.fd, &holder);
    }
    *ret_holder = holder;
    if (status != HF_OK) {
        return explain(op, status, tables, path, holder);
    }
    *ret_owner = owner;
    return HF_OK;
}

void hf_file_owner_release(hf_env *env, hf_file_owner *owner)
{
    if (owner->path[0] != '\0') {
        env->ops->lock_close(env, owner->path, owner->fd);
        owner->path[0] = '\0';
    }
}
