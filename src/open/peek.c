/* A tool reads a database. It is opened read only, so it does not change. The tool holds the owner's lock meanwhile, so
 * that no program opens the database. If the lock file cannot be made, as on a read-only medium, no program can write
 * the database either, and the tool goes on without the lock.
 *
 * A database that was closed properly is a single file. If its program was killed, a log is left beside it whose
 * contents are not in the file yet. To read both, SQLite needs an index of the log, PATH-shm, which is removed
 * afterwards unless it existed. */
#include "open/open.h"

/* Whether the file exists and is not empty. Not for the database itself: closing a descriptor of it would drop the
 * locks that SQLite may have on it in this process. */
static bool has_bytes(hf_env *env, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    char byte = 0;
    size_t len = 0;
    if (env->ops->file_open(env, &op, path, HF_FILE_READ, &fd) != HF_OK) {
        return false;
    }
    bool has = env->ops->file_read(env, &op, fd, &byte, 1, &len) == HF_OK && len > 0;
    (void)env->ops->file_close(env, &op, fd);
    return has;
}

static bool has_beside(hf_env *env, const char *path, const char *suffix)
{
    char name[HF_PATH_LEN_MAX];
    return hf_beside(path, suffix, name) && has_bytes(env, name);
}

hf_status hf_peek_open(hf_op *op, hf_env *env, const char *path, hf_peek *ret_peek, int64_t *ret_holder)
{
    return hf_peek_open_of(op, env, &hf_engine_tables, path, ret_peek, ret_holder);
}

hf_status hf_peek_open_of(hf_op *op, hf_env *env, const hf_table_set *tables, const char *path, hf_peek *ret_peek,
                          int64_t *ret_holder)
{
    hf_peek peek = {.env = env};
    hf_op tried;
    hf_op_init(&tried);
    hf_status status = hf_file_owner_take_of(&tried, env, tables, path, true, &peek.owner, ret_holder);
    if (status == HF_ERR_EXISTS || status == HF_ERR_INVALID) {
        return hf_fail(op, status, "%s", tried.message);
    }
    peek.has_log = has_beside(env, path, "-wal") || has_beside(env, path, "-journal");
    hf_sqlite_options options = {.tables = tables, .read_only = true, .at_rest = !peek.has_log};
    if (peek.has_log && status == HF_OK && !has_beside(env, path, "-shm") && !hf_beside(path, "-shm", peek.litter)) {
        peek.litter[0] = '\0';
    }
    bool is_ours = status == HF_OK;
    status = hf_sqlite_open(op, hf_env_memory(env), path, &options, &peek.store);
    if (status != HF_OK) {
        bool is_torn = is_ours && has_beside(env, path, "-journal"); /* while the lock is still held */
        hf_peek_close(&peek);
        if (is_torn) {
            return hf_fail(op, status,
                           "%s was being made or changed when its program was killed: let that program open it again",
                           path);
        }
        return !is_ours && peek.has_log && status != HF_ERR_CONFLICT
                   ? hf_fail(
                         op, status,
                         "the program that used %s did not close it, and its log can only be read in a folder where "
                         "this user may write: copy the file and its log to another folder",
                         path)
                   : status;
    }
    hf_assert(peek.store != NULL);
    *ret_peek = peek;
    return HF_OK;
}

void hf_peek_close(hf_peek *peek)
{
    hf_store_close(peek->store);
    peek->store = NULL;
    if (peek->env == NULL) {
        return;
    }
    if (peek->litter[0] != '\0') {
        hf_op op;
        hf_op_init(&op);
        (void)peek->env->ops->file_remove(peek->env, &op, peek->litter);
        peek->litter[0] = '\0';
    }
    hf_file_owner_release(peek->env, &peek->owner);
}
