/* Files: every call may block, so a pool thread makes it. Its arguments are on the caller's stack: the caller waits
 * for a call that has begun, even if it is canceled; a call that has not begun is withdrawn. */
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"

#include <string.h>

enum { CLOSE_BOUND_S = 10 }; /* seconds that a canceled fiber waits for the close */

struct hf_file {
    hf_runtime *rt;
    int fd;
};

typedef enum verb { OPEN, READ, WRITE, SYNC, CLOSE } verb;
static const char *const VERBS[] = {"hf_file_open", "hf_file_read", "hf_file_write", "hf_file_sync", "hf_file_close"};

/* Arguments and results of one call. */
typedef struct call {
    verb verb;
    hf_env *env;
    int fd; /* of the file; open: the result */
    const char *path;
    hf_file_mode mode;
    void *buf;
    const void *bytes;
    size_t len;
    size_t got; /* read: the result */
    hf_op op;   /* the status and message of the call */
} call;

/* On a pool thread. HF_OK: the call was made; `op` has its result. */
static hf_status make_call(void *arg)
{
    call *c = arg;
    const hf_env_ops *ops = c->env->ops;
    switch (c->verb) {
    case OPEN:
        (void)ops->file_open(c->env, &c->op, c->path, c->mode, &c->fd);
        break;
    case READ:
        (void)ops->file_read(c->env, &c->op, c->fd, c->buf, c->len, &c->got);
        break;
    case WRITE:
        (void)ops->file_write(c->env, &c->op, c->fd, c->bytes, c->len);
        break;
    case SYNC:
        (void)ops->file_sync(c->env, &c->op, c->fd);
        break;
    case CLOSE:
        (void)ops->file_close(c->env, &c->op, c->fd);
        break;
    }
    return HF_OK;
}

/* Returns the result of a call to the caller of the verb. */
static hf_status tell(hf_runtime *rt, const call *c)
{
    if (c->op.status == HF_OK) {
        return HF_OK;
    }
    hf_fiber *self = hf_enter(rt);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_refuse_at(self, c->op.status, VERBS[c->verb], "%s", c->op.message));
}

static hf_status on_pool(hf_runtime *rt, call *c)
{
    c->env = rt->env;
    hf_op_init(&c->op);
    HF_TRY(hf_block(make_call, c));
    return tell(rt, c);
}

static hf_status refuse(hf_runtime *rt, verb which)
{
    hf_fiber *self = hf_enter(rt);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, VERBS[which], "an argument is missing"));
}

/* Makes the object first: if there was no memory for it afterwards, the open file would be lost. */
static hf_status prepare(const hf_io_options *options, bool is_complete, hf_file **ret_file)
{
    hf_fiber *self = hf_enter(options->runtime);
    if (self == NULL) {
        return hf_forked();
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    hf_file *file = NULL;
    if (rt != NULL && !is_complete) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "hf_file_open needs a path and a place for the file");
    } else if (rt != NULL && (file = hf_rt_alloc(rt, sizeof *file)) == NULL) {
        (void)hf_fail(&op, HF_ERR_NOMEM, "no memory for a file");
    }
    if (file == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, op.status, VERBS[OPEN], "%s", op.message));
    }
    file->rt = rt;
    *ret_file = file;
    HF_LEAVE(self, HF_OK);
}

hf_status hf_file_open_with(const char *path, hf_file_mode mode, hf_file **ret_file, const hf_io_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_file_open));
    HF_OPTIONS(hf_io_options, options, hf_file_open);
    hf_file *file = NULL;
    HF_TRY(prepare(options, ret_file != NULL && path != NULL, &file));
    call c = {.verb = OPEN, .path = path, .mode = mode, .fd = -1};
    hf_status status = on_pool(file->rt, &c);
    if (status != HF_OK) {
        hf_rt_free(file->rt, file, sizeof *file);
        return status;
    }
    file->fd = c.fd;
    *ret_file = file;
    return HF_OK;
}

hf_status hf_file_read(hf_file *file, void *buf, size_t len, size_t *ret_len)
{
    HF_TRY(HF_VERB_ALLOWED(hf_file_read));
    if (file == NULL || buf == NULL || len == 0 || ret_len == NULL) {
        return refuse(file != NULL ? file->rt : NULL, READ);
    }
    call c = {.verb = READ, .fd = file->fd, .buf = buf, .len = len};
    HF_TRY(on_pool(file->rt, &c));
    *ret_len = c.got;
    return HF_OK;
}

hf_status hf_file_write(hf_file *file, const void *buf, size_t len)
{
    HF_TRY(HF_VERB_ALLOWED(hf_file_write));
    if (file == NULL || (buf == NULL && len > 0)) {
        return refuse(file != NULL ? file->rt : NULL, WRITE);
    }
    call c = {.verb = WRITE, .fd = file->fd, .bytes = buf, .len = len};
    return on_pool(file->rt, &c);
}

hf_status hf_file_sync(hf_file *file)
{
    HF_TRY(HF_VERB_ALLOWED(hf_file_sync));
    if (file == NULL) {
        return refuse(NULL, SYNC);
    }
    call c = {.verb = SYNC, .fd = file->fd};
    return on_pool(file->rt, &c);
}

/* Closing also works when the fiber is canceled. If no pool thread is available, the file is closed on the calling
 * thread. */
hf_status hf_file_close(hf_file *file)
{
    if (file == NULL) {
        return HF_OK;
    }
    hf_runtime *rt = file->rt;
    HF_VERB_ENTER(self, hf_file_close, rt);
    hf_leave(self);
    call c = {.verb = CLOSE, .env = rt->env, .fd = file->fd};
    hf_op_init(&c.op);
    hf_shield *shield = NULL;
    bool is_shielded = hf_canceled() != HF_OK && hf_shield_open(hf_seconds(CLOSE_BOUND_S), &shield) == HF_OK;
    if (hf_block(make_call, &c) != HF_OK) {
        (void)make_call(&c);
    }
    if (is_shielded) {
        (void)hf_shield_close(shield);
    }
    hf_rt_free(rt, file, sizeof *file);
    return tell(rt, &c);
}
