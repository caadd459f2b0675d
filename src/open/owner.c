/* One owner per file. Who opens a database takes the lock of the file PATH-owner beside it first, and keeps it until it has
 * closed the database. So the second opener, in this process or another, is told whom to ask instead of what SQLite finds
 * out, and tools know whether to open a file or to talk to the program that has it (admin.c).
 *
 * A tool that looks at a file at rest holds the lock, too, but says that it will be brief: a program that starts meanwhile waits for
 * it instead of failing.
 *
 * A lock of the kernel, not the file, says that there is an owner: a file that a crash left behind is in nobody's way. SQLite's
 * own lock still stands behind this one, for who comes by a hard link to the same file. */
#include "open/open.h"

#include <stdio.h>

enum { PAUSE_MS = 10, TRIES_MAX = 500 }; /* a tool is waited for for five seconds */

static hf_status explain(hf_op *op, hf_status status, const char *path, int64_t holder)
{
    char why[HF_MESSAGE_LEN_MAX];
    (void)snprintf(why, sizeof why, "%s", op->message);
    switch ((int)status) {
    case HF_ERR_EXISTS:
        if (holder > 0) {
            return hf_fail(op, status,
                           "%s is open in process %lld: stop that one first, or ask it (holdfast db stats %s)", path,
                           (long long)holder, path);
        }
        if (holder < 0) {
            return hf_fail(op, status, "%s is being looked at by process %lld: try again when that one is done", path,
                           (long long)-holder);
        }
        return hf_fail(op, status, "%s is just being opened by another program: try again", path);
    case HF_ERR_NOT_FOUND:
        return hf_fail(op, status, "cannot open %s: there is no such folder; make it first", path);
    case HF_ERR_DENIED:
        return hf_fail(op, status, "cannot open %s: this user may not write to its folder, where its log goes", path);
    default:
        return hf_fail(op, status, "cannot open %s: %s", path, why);
    }
}

static hf_status refuse_kind(hf_op *op)
{
    char what[HF_MESSAGE_LEN_MAX];
    (void)snprintf(what, sizeof what, "%s", op->message);
    return hf_fail(op, op->status, "%s, and a database is one: name another file", what);
}

static void sleep_ms(hf_env *env, int64_t ms)
{
    hf_word nobody = 0;
    (void)env->ops->word_wait(env, &nobody, 0, (hf_instant){env->ops->now(env).ns + hf_milliseconds(ms).ns});
}

hf_status hf_file_owner_take(hf_op *op, hf_env *env, const char *path, bool is_brief, hf_file_owner *ret_owner,
                             int64_t *ret_holder)
{
    hf_file_owner owner = {.fd = -1};
    int64_t holder = 0;
    if (!hf_beside(path, "-owner", owner.path)) {
        return hf_fail(op, HF_ERR_INVALID, "the path of a database has at most %d bytes", HF_PATH_LEN_MAX - 32);
    }
    if (env->ops->file_check(env, op, path) != HF_OK) { /* before something is made beside it */
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
        return explain(op, status, path, holder);
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
