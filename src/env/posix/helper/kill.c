/* The end of everything that descends from the helper.
 *
 * An orphan becomes the helper's own child, so it is enough to kill children until there are none. They are found
 * without any table: every number that /proc lists is tried with waitid, which refuses those that are not ours. */
#include "env/posix/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#define PID_MAX 4194304     /* the kernel's highest limit of process numbers */
#define DENIED_ROUNDS_MAX 3 /* rounds after which processes that cannot be killed are left alone */

static bool is_child(int pid)
{
    siginfo_t info;
    return sys5(SYS_waitid, P_PID, pid, SYS_PTR(&info), WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == 0;
}

/* The result of a look at all children. */
typedef struct hf_sweep {
    int found_count;
    int killed_count; /* less than found: some belong to another user */
} hf_sweep;

/* Kills a child with its group, so that a child that forks all the time cannot run away (env-H3). */
static void kill_child(int pid, hf_sweep *sweep)
{
    long own_group = sys1(SYS_getpgid, 0); /* a child that has not made its own yet is in this one */
    long group = sys1(SYS_getpgid, pid);
    if (group > 1 && group != own_group) {
        (void)sys2(SYS_kill, -group, SIGKILL);
    }
    sweep->found_count++;
    sweep->killed_count += sys2(SYS_kill, pid, SIGKILL) == 0 ? 1 : 0;
}

static int parse_pid(const char *name)
{
    int64_t pid = 0;
    for (; *name >= '0' && *name <= '9' && pid <= PID_MAX; name++) {
        pid = pid * 10 + (*name - '0');
    }
    return *name == '\0' && pid <= PID_MAX ? (int)pid : 0;
}

typedef struct hf_dir_entry { /* of a directory, as the kernel writes it */
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
} hf_dir_entry;

/* Kills every child that /proc shows. */
static void kill_seen(hf_sweep *sweep)
{
    static _Alignas(hf_dir_entry) char buffer[32768];
    long fd = sys4(SYS_openat, AT_FDCWD, SYS_PTR("/proc"), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    for (;;) {
        long len = fd < 0 ? 0 : sys3(SYS_getdents64, fd, SYS_PTR(buffer), sizeof buffer);
        if (len <= 0) {
            break;
        }
        for (long at = 0; at < len;) {
            const hf_dir_entry *entry = (const hf_dir_entry *)(const void *)(buffer + at);
            int pid = parse_pid(entry->name);
            if (pid > 0 && is_child(pid)) {
                kill_child(pid, sweep);
            }
            at += entry->len;
        }
    }
    close_fd((int)fd);
}

/* The same without /proc: tries every possible process number. Slow (half a second), but always works. */
static void kill_unseen(hf_sweep *sweep)
{
    for (int pid = 1; pid <= PID_MAX; pid++) {
        if (is_child(pid)) {
            kill_child(pid, sweep);
        }
    }
}

/* The children of a killed child become children of the helper and are killed in the next round. */
void hf_helper_kill_all(void)
{
    int denied_count = 0; /* rounds in a row that found only processes that we may not kill */
    while (hf_helper_reap() && denied_count < DENIED_ROUNDS_MAX) {
        hf_sweep sweep = {0};
        kill_seen(&sweep);
        if (sweep.killed_count == 0) {
            kill_unseen(&sweep);
        }
        if (sweep.killed_count > 0) {
            siginfo_t info;
            (void)sys5(SYS_waitid, P_ALL, 0, SYS_PTR(&info), WEXITED | WNOWAIT | __WALL, 0);
            denied_count = 0;
        } else if (sweep.found_count > 0) {
            denied_count++; /* they belong to another user: not ours to kill, nor to wait for */
        }
    }
}
