/* A new child between fork and exec: makes itself a group, takes its descriptors and directory, finds its program. */
#include "env/posix/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define PATH_LEN_MAX 4096 /* the kernel's limit of a path, with its end */

static bool is_path_missing(long error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ENAMETOOLONG || error == -ELOOP || error == -ENODEV ||
           error == -ESTALE || error == -ETIMEDOUT;
}

/* Puts "directory/name" into `ret_path`; an empty directory is the current one. Returns false if it does not fit. */
static bool join_path(char *ret_path, const char *directory, size_t directory_len, const char *name)
{
    size_t len = 0;
    while (len < directory_len && len < PATH_LEN_MAX - 2) {
        ret_path[len] = directory[len];
        len++;
    }
    if (len < directory_len) {
        return false;
    }
    if (len > 0) {
        ret_path[len++] = '/';
    }
    while (*name != '\0' && len < PATH_LEN_MAX - 1) {
        ret_path[len++] = *name++;
    }
    ret_path[len] = '\0';
    return *name == '\0';
}

static const char *find_path(char *const *envp)
{
    for (; *envp != NULL; envp++) {
        const char *text = *envp;
        if (text[0] == 'P' && text[1] == 'A' && text[2] == 'T' && text[3] == 'H' && text[4] == '=') {
            return text + 5;
        }
    }
    return "/bin:/usr/bin";
}

/* Tries the name in every directory of PATH, as execvp would, but never a shell. Returns a negative errno. */
static long exec_in_path(char *const *argv, char *const *envp)
{
    static char path[PATH_LEN_MAX];
    const char *at = find_path(envp);
    long result = -ENOENT;
    for (;;) {
        size_t len = 0;
        while (at[len] != '\0' && at[len] != ':') {
            len++;
        }
        if (join_path(path, at, len, argv[0])) {
            long error = sys3(SYS_execve, SYS_PTR(path), SYS_PTR(argv), SYS_PTR(envp));
            if (error == -EACCES) {
                result = error; /* another directory may have one that can be executed; if not, this is the error */
            } else if (!is_path_missing(error)) {
                return error;
            }
        }
        if (at[len] == '\0') {
            return result;
        }
        at += len + 1;
    }
}

static long exec_program(char *const *argv, char *const *envp)
{
    const char *name = argv[0];
    if (name[0] == '\0') {
        return -ENOENT;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == '/') {
            return sys3(SYS_execve, SYS_PTR(name), SYS_PTR(argv), SYS_PTR(envp));
        }
    }
    return exec_in_path(argv, envp);
}

/* Received descriptors come after FD_SIGNALS, so none of 0, 1, 2 is overwritten before it was used. */
static long place_fds(const hf_exec_plan *plan)
{
    for (int i = 0; i < 3; i++) {
        if (plan->fds[i] < 0) {
            continue; /* /dev/null is there already */
        }
        if (plan->request->stdio[i] == HF_WIRE_GIVEN) {
            long flags = sys2(SYS_fcntl, plan->fds[i], F_GETFL);
            if (flags >= 0 && (flags & O_NONBLOCK) != 0) {
                (void)sys3(SYS_fcntl, plan->fds[i], F_SETFL, flags & ~O_NONBLOCK);
            }
        }
        long error = sys3(SYS_dup3, plan->fds[i], i, 0);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

long hf_helper_exec(const hf_exec_plan *plan)
{
    const hf_wire_request *request = plan->request;
    (void)sys2(SYS_setpgid, 0, 0);
    (void)sys2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL); /* for the case that the helper itself is killed */
    long base = sys6(SYS_mmap, 0, (long)request->payload_len, PROT_READ | PROT_WRITE, MAP_PRIVATE, plan->payload_fd, 0);
    if (base < 0 && base > -4096) {
        return base;
    }
    uint64_t *slots = (uint64_t *)(uintptr_t)base;
    uint64_t slot_count = (uint64_t)request->argument_count + 1 + request->variable_count + 1;
    for (uint64_t i = 0; i < slot_count; i++) {
        slots[i] += slots[i] != 0 ? (uint64_t)base : 0;
    }
    char *const *argv = (char *const *)(uintptr_t)slots;
    char *const *envp = argv + request->argument_count + 1;

    long error = plan->directory_fd >= 0 ? sys1(SYS_fchdir, plan->directory_fd) : 0;
    if (request->cwd_offset != 0) {
        error = sys1(SYS_chdir, base + (long)request->cwd_offset);
    }
    if (error >= 0) {
        error = place_fds(plan);
    }
    if (error < 0) {
        return error;
    }
    (void)sys3(SYS_close_range, 3, ~0U,
               CLOSE_RANGE_CLOEXEC); /* all of them are CLOEXEC already; this is a second safeguard */
    uint64_t nothing = 0;
    (void)sys4(SYS_rt_sigprocmask, SIG_SETMASK, SYS_PTR(&nothing), 0, sizeof nothing);
    return exec_program(argv, envp);
}
