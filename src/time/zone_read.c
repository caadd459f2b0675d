/* The files of tzdata. Nothing else in this layer reaches outside. */
#include "time/zone.h"

#include <stdio.h>

#define PATH_LEN_MAX 1024 /* bytes of the folder, the name and what is added; a longer folder is not a tzdata's */

/* There are folders where zones are expected: "Europe". They can be opened but not read. */
static bool is_folder(hf_env *env, const char *path)
{
    char inside[PATH_LEN_MAX + 2];
    hf_op op;
    int fd = -1;
    hf_op_init(&op);
    (void)snprintf(inside, sizeof inside, "%s/.", path);
    if (env->ops->file_open(env, &op, inside, HF_FILE_READ, &fd) != HF_OK) {
        return false;
    }
    HF_IGNORE(env->ops->file_close(env, &op, fd)); /* nothing was written */
    return true;
}

/* Up to `capacity` bytes. */
static hf_status read_all(hf_op *op, hf_env *env, const char *path, char *bytes, size_t capacity, size_t *ret_len)
{
    int fd = -1;
    size_t len = 0;
    size_t got = 0;
    hf_op closing;
    hf_op_init(&closing);
    HF_TRY(env->ops->file_check(env, op, path)); /* to open a pipe would wait */
    HF_TRY(env->ops->file_open(env, op, path, HF_FILE_READ, &fd));
    hf_status status = HF_OK;
    do {
        got = 0;
        status = env->ops->file_read(env, op, fd, bytes + len, capacity - len, &got);
        hf_assert(got <= capacity - len);
        len += got;
    } while (status == HF_OK && got > 0 && len < capacity);
    HF_IGNORE(env->ops->file_close(env, &closing, fd)); /* nothing was written */
    *ret_len = len;
    return status;
}

hf_status hf_zone_read(hf_op *op, hf_env *env, const char *folder, hf_str name, hf_arena *arena, hf_str *ret_bytes)
{
    char path[PATH_LEN_MAX];
    size_t len = 0;
    HF_TRY(hf_zone_name_check(op, name));
    int path_len = snprintf(path, sizeof path, "%s/%.*s", folder, HF_STR_ARGS(name));
    if (name.len == 0 || path_len < 0 || (size_t)path_len >= sizeof path) {
        return hf_fail(op, HF_ERR_INVALID, "the file of a time zone needs a name, and a folder of less than %d bytes",
                       PATH_LEN_MAX - HF_ZONE_NAME_LEN_MAX);
    }
    char *bytes = hf_arena_take(arena, HF_ZONE_LEN_MAX + 1, 1);
    if (bytes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a time zone");
    }
    hf_status status = read_all(op, env, path, bytes, HF_ZONE_LEN_MAX + 1, &len);
    if (status == HF_ERR_NOT_FOUND || (status != HF_OK && is_folder(env, path))) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no time zone %.*s in %s (Debian: package tzdata)",
                       HF_STR_ARGS(name), folder);
    }
    if (status != HF_OK) {
        return status;
    }
    if (len > HF_ZONE_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "%s has over %u bytes and is not a time zone", path, HF_ZONE_LEN_MAX);
    }
    *ret_bytes = hf_str_of_len(bytes, len);
    return HF_OK;
}
