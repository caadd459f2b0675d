/* Locks by name and removing files, in both environments. */
#include "support/support.h"

#include "base/env.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void lock_has_one_holder(hf_env *env, const char *path, int64_t holder_expected)
{
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    int other = -1;
    int64_t holder = -1;
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &fd, &holder), HF_OK);
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &other, &holder), HF_ERR_EXISTS);
    assert_int_equal(other, -1);
    assert_int_equal(holder, holder_expected);
    env->ops->lock_close(env, path, fd);
    hf_op_init(&op);
    assert_int_equal(env->ops->file_open(env, &op, path, HF_FILE_READ, &other), HF_ERR_NOT_FOUND); /* it is gone */
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &fd, &holder), HF_OK);
    env->ops->lock_close(env, path, fd);
    assert_int_equal(env->ops->lock_open(env, &op, path, true, &fd, &holder), HF_OK);
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &other, &holder), HF_ERR_EXISTS);
    assert_int_equal(holder, -holder_expected); /* it will be brief */
    env->ops->lock_close(env, path, fd);
}

static void a_file_that_is_removed_is_gone(hf_env *env, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    assert_int_equal(env->ops->file_open(env, &op, path, HF_FILE_WRITE_NEW, &fd), HF_OK);
    assert_int_equal(env->ops->file_write(env, &op, fd, "x", 1), HF_OK);
    assert_int_equal(env->ops->file_close(env, &op, fd), HF_OK);
    assert_int_equal(env->ops->file_remove(env, &op, path), HF_OK);
    assert_int_equal(env->ops->file_remove(env, &op, path), HF_OK); /* fine when it is not there */
    assert_int_equal(env->ops->file_open(env, &op, path, HF_FILE_READ, &fd), HF_ERR_NOT_FOUND);
}

static void sim_locks_have_one_holder(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    lock_has_one_holder(env, "x-owner", 1);
    a_file_that_is_removed_is_gone(env, "x");
    hf_sim_end(env, NULL);
}

static char folder[64];

static int folder_open(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/hf_lock_XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int folder_close(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[100];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void posix_locks_have_one_holder(void **state)
{
    (void)state;
    lock_has_one_holder(hf_env_posix(), path_of("x-owner"), getpid());
    a_file_that_is_removed_is_gone(hf_env_posix(), path_of("x"));
}

static void posix_lock_of_a_dead_process_is_free(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    const char *path = path_of("x-owner");
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    int64_t holder = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(env->ops->lock_open(env, &op, path, false, &fd, &holder) == HF_OK ? 0 : 1); /* and is gone with it */
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &fd, &holder), HF_OK);
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    env->ops->lock_close(env, path, fd);
}

static void posix_lock_is_kept_by_a_fork_and_not_lost_by_it(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    const char *path = path_of("x-owner");
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    int other = -1;
    int64_t holder = 0;
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &fd, &holder), HF_OK);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(fd); /* a child that tidies up */
        _exit(env->ops->lock_open(env, &op, path, false, &other, &holder) == HF_ERR_EXISTS ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_int_equal(env->ops->lock_open(env, &op, path, false, &other, &holder), HF_ERR_EXISTS);
    env->ops->lock_close(env, path, fd);
}

static void posix_lock_goes_through_no_symbolic_link(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    const char *path = path_of("x-owner");
    assert_int_equal(symlink("elsewhere", path), 0);
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    int64_t holder = 0;
    assert_int_not_equal(env->ops->lock_open(env, &op, path, false, &fd, &holder), HF_OK);
    assert_int_equal(fd, -1);
    assert_int_equal(unlink(path), 0);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, folder_open, folder_close)
static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(sim_locks_have_one_holder),         IN_FOLDER(posix_locks_have_one_holder),
    IN_FOLDER(posix_lock_of_a_dead_process_is_free),     IN_FOLDER(posix_lock_is_kept_by_a_fork_and_not_lost_by_it),
    IN_FOLDER(posix_lock_goes_through_no_symbolic_link),
};

int main(int argc, char **argv)
{
    return hf_test_main("lock", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
