/* Starting the helper program from the bytes embedded in the library.
 *
 *     host --clone--> middle --clone--> helper          both share the host's memory and stop it until they are done
 *                     exits             execs           (CLONE_VM | CLONE_VFORK): no page tables are copied
 *
 * The middle process never execs, so it keeps the exit signal it was made with: none. The host reaps it and sees no
 * SIGCHLD. The helper would get SIGCHLD as its exit signal by its exec; but by then the middle process is its parent,
 * and later whoever adopts it. A host that is itself a subreaper or process 1 adopts it, and helper_close reaps it
 * there.
 *
 * The two functions run in a process that shares everything with a suspended thread. They call nothing but the
 * kernel, and are not instrumented: a sanitizer would take them for that thread. */
#include "env/posix/helper_start.h"

#include "env/posix/clone.h"
#include "env/posix/helper/wire.h"
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3: this memory file is meant to be executed */
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#if defined(__clang__)
#define UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined"), noinline))
#endif

#define STACK_LEN (32u * 1024) /* bytes, for each of the two processes until its exit or exec */
#define FD_HIGH 16             /* above the numbers the helper expects: out of their way while they are placed */

extern const unsigned char hf_posix_helper_image[];
extern const size_t hf_posix_helper_image_len;

/* Memory that the two processes share with the host. */
typedef struct hf_launch {
    int socket_fd;     /* becomes HF_WIRE_FD_SOCKET */
    int host_fd;       /* becomes HF_WIRE_FD_HOST */
    int image_fd;      /* the program */
    const void *cores; /* those that the helper may use; NULL = those of the calling thread */
    size_t cores_len;
    unsigned char *stack_end; /* of the helper until its exec */
    long pid;                 /* out: of the helper, or a negative errno */
    int pid_fd;               /* out */
    int error;                /* out: errno of the exec, or 0 */
} hf_launch;

UNINSTRUMENTED static int run_helper(void *arg)
{
    hf_launch *launch = arg;
    static char name[] = "holdfast-helper";
    static char *const ARGV[] = {name, NULL};
    static char *const ENVP[] = {NULL};
    /* This process has a copy of the host's descriptors: they are moved above the target numbers first, then into
     * place. */
    long socket_fd = syscall(SYS_fcntl, launch->socket_fd, F_DUPFD_CLOEXEC, FD_HIGH);
    long host_fd = syscall(SYS_fcntl, launch->host_fd, F_DUPFD_CLOEXEC, FD_HIGH);
    long image_fd = syscall(SYS_fcntl, launch->image_fd, F_DUPFD_CLOEXEC, FD_HIGH);
    if (socket_fd >= 0 && host_fd >= 0 && image_fd >= 0 && syscall(SYS_dup3, socket_fd, HF_WIRE_FD_SOCKET, 0) >= 0 &&
        syscall(SYS_dup3, host_fd, HF_WIRE_FD_HOST, 0) >= 0) {
        (void)syscall(SYS_execveat, image_fd, "", ARGV, ENVP, AT_EMPTY_PATH);
    }
    launch->error = errno;
    return 127;
}

UNINSTRUMENTED static int run_middle(void *arg)
{
    hf_launch *launch = arg;
    if (launch->cores != NULL) {
        (void)syscall(SYS_sched_setaffinity, 0, launch->cores_len, launch->cores);
    }
    launch->pid = hf_posix_clone(run_helper, launch->stack_end, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, launch,
                                 &launch->pid_fd);
    if (launch->pid > 0 && launch->error != 0) {
        (void)syscall(SYS_wait4, launch->pid, NULL, __WALL, NULL);
    }
    return 0;
}

/* Runs both processes. Returns an errno, 0 when the helper has started. */
static int launch_helper(hf_launch *launch)
{
    unsigned char *stacks =
        mmap(NULL, (size_t)2 * STACK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED) {
        return errno;
    }
    launch->stack_end = stacks + STACK_LEN;
    launch->pid_fd = -1;
    launch->error = 0;
    /* No handler of the host may run in a process that shares its memory. The mask is the kernel's, with the signals
     * that the C library keeps for itself. The middle process shares the descriptors too, so that it can leave one
     * here. */
    uint64_t all = ~(uint64_t)0;
    uint64_t before = 0;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    long middle =
        hf_posix_clone(run_middle, stacks + (size_t)2 * STACK_LEN, CLONE_VM | CLONE_VFORK | CLONE_FILES, launch, NULL);
    if (middle > 0) {
        long reaped;
        do {
            reaped = syscall(SYS_wait4, middle, NULL, __WALL, NULL);
        } while (reaped < 0 && errno == EINTR);
    }
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    (void)munmap(stacks, (size_t)2 * STACK_LEN);
    if (middle < 0) {
        return (int)-middle;
    }
    return launch->pid < 0 ? (int)-launch->pid : launch->error;
}

static bool write_image(int fd)
{
    size_t done = 0;
    while (done < hf_posix_helper_image_len) {
        ssize_t put = write(fd, hf_posix_helper_image + done, hf_posix_helper_image_len - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static int open_memory_image(void)
{
    int fd = memfd_create("holdfast-helper", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("holdfast-helper", MFD_CLOEXEC);
    }
    if (fd >= 0 && !write_image(fd)) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* A program must not be open for writing while it is executed: the file is opened again, for reading, before its name
 * goes away. */
static int open_file_image(const char *folder)
{
    char path[256];
    int len = snprintf(path, sizeof path, "%s/holdfast-helper-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int write_fd = mkostemp(path, O_CLOEXEC);
    if (write_fd < 0) {
        return -1;
    }
    int fd = -1;
    if (write_image(write_fd) && fchmod(write_fd, 0500) == 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    int error = errno;
    (void)unlink(path);
    (void)close(write_fd);
    errno = error;
    return fd;
}

static int open_image(hf_image_place place)
{
    const char *folder = NULL;
    switch (place) {
    case HF_IMAGE_MEMORY:
        return open_memory_image();
    case HF_IMAGE_TMPDIR:
        folder = secure_getenv("TMPDIR");
        break;
    case HF_IMAGE_TMP:
        folder = "/tmp";
        break;
    case HF_IMAGE_VAR_TMP:
        folder = "/var/tmp";
        break;
    case HF_IMAGE_SHM:
        folder = "/dev/shm";
        break;
    case HF_IMAGE_PLACE_COUNT:
        break;
    }
    if (folder == NULL || folder[0] == '\0') {
        errno = ENOENT;
        return -1;
    }
    return open_file_image(folder);
}

/* A descriptor that becomes readable when this process ends; on a kernel without pidfds, one that is never readable. */
static int open_host_fd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM) {
        fd = eventfd(0, EFD_CLOEXEC);
    }
    return fd;
}

hf_status hf_posix_helper_start(hf_op *op, hf_image_place first, hf_helper_start *start)
{
    hf_launch launch = {.socket_fd = start->socket_fd, .host_fd = open_host_fd()};
    if (launch.host_fd < 0) {
        return hf_fail_errno(op, errno, "cannot open a descriptor for the helper process");
    }
    launch.cores = hf_posix_thread_cores(&launch.cores_len);
    int error = ENOENT;
    for (int place = (int)first; place < HF_IMAGE_PLACE_COUNT && error != 0; place++) {
        launch.image_fd = open_image((hf_image_place)place);
        int this_error = launch.image_fd < 0 ? errno : launch_helper(&launch);
        /* Whatever failed, the next place is tried. The first failure is reported, unless it only means that a folder
         * does not exist. */
        error = error == ENOENT || this_error == 0 ? this_error : error;
        hf_posix_close(NULL, launch.image_fd);
        if (error != 0) {
            hf_posix_close(NULL, launch.image_fd < 0 ? -1 : launch.pid_fd);
        }
    }
    hf_posix_close(NULL, launch.host_fd);
    if (error != 0) {
        return hf_fail_errno(op, error, "cannot start the helper process for children");
    }
    hf_assert(launch.pid > 0);
    start->pid = (pid_t)launch.pid;
    start->pid_fd = launch.pid_fd;
    return HF_OK;
}
