/* The helper: a small program of its own that owns a runtime's child processes.
 *
 * It is the parent of all children and adopts their orphans (PR_SET_CHILD_SUBREAPER), so every descendant of a child
 * is a descendant of the helper, also after setsid and a double fork. When the host closes its end of the socket, or
 * dies for any reason, the helper kills all of them and exits. It has no C library, no heap and no other descriptor
 * of the host; the build embeds it into the library as bytes.
 *
 *      FREE --start--> STARTING --exec--> RUNNING --end--> ENDED --told--> FREE
 *                         |                  told "started" before "ended"
 *                         +--exec fails--> REFUSED --told and reaped--> FREE
 *
 * env-H1  Only this process reaps, and a RUNNING child is not reaped: its pid and group cannot belong to another
 *         process.
 * env-H2  The helper never waits for the host or for a child: replies that do not fit stay in the table, and the
 *         outcome of an exec arrives through a pipe that the exec closes. So the end of the host is always noticed.
 * env-H3  The helper is a session leader, and its children make groups of their own. Every group below it consists
 *         only of its descendants, and may be killed as a whole.
 * env-H4  All signals are blocked, and their actions are the default ones, so a child starts without inherited
 *         handlers. */
#include "env/posix/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHILDREN_MAX 4096 /* children at once: more than the default process limit of a user allows */
#define STARTING_MAX 32   /* children between fork and exec; further requests wait */
#define SIGNAL_MAX 64     /* the kernel's highest number */
#define FD_SIGNALS 5      /* a signalfd for SIGCHLD */

typedef enum hf_state { HF_FREE, HF_STARTING, HF_RUNNING, HF_ENDED, HF_REFUSED } hf_state;

typedef struct hf_helper_child {
    uint64_t request;     /* the host's name for it */
    int32_t pid;          /* 0 = reaped, or never there */
    int32_t status_fd;    /* STARTING: an errno or an end of file comes here */
    int32_t error;        /* REFUSED: why */
    int32_t code;         /* ENDED */
    int32_t signal;       /* ENDED */
    uint8_t state;        /* hf_state */
    uint8_t owes_started; /* the host has not been told yet */
    uint8_t owes_ended;   /* the same of the end; told after the start */
} hf_helper_child;

/* One more than may run: the last place holds the refusal of a start for which there was no other place. */
static hf_helper_child children[CHILDREN_MAX + 1];
static int32_t starting_count; /* children in STARTING */
static int32_t owing_count;    /* children with something to tell */
static int32_t used_max;       /* places from here on were never used */

void helper_main(void) __attribute__((noreturn, used));

/* The compiler calls these two by itself. Volatile keeps it from turning the loops into calls to themselves. */
void *memset(void *to, int byte, size_t len);
void *memcpy(void *to, const void *from, size_t len);

void *memset(void *to, int byte, size_t len)
{
    volatile unsigned char *at = to;
    for (size_t i = 0; i < len; i++) {
        at[i] = (unsigned char)byte;
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t len)
{
    volatile unsigned char *at = to;
    const unsigned char *source = from;
    for (size_t i = 0; i < len; i++) {
        at[i] = source[i];
    }
    return to;
}

/* ---- The table ---- */

static void owe(hf_helper_child *child, bool started)
{
    owing_count += child->owes_started == 0 && child->owes_ended == 0 ? 1 : 0;
    if (started) {
        child->owes_started = 1;
    } else {
        child->owes_ended = 1;
    }
}

static bool tell(const hf_helper_child *child, bool started)
{
    hf_wire_reply reply = {.request = child->request, .started = started ? 1 : 0};
    if (started) {
        reply.error = child->error;
        reply.pid = child->error == 0 ? child->pid : 0;
    } else {
        reply.code = child->code;
        reply.signal = child->signal;
    }
    long put = sys6(SYS_sendto, HF_WIRE_FD_SOCKET, SYS_PTR(&reply), sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
    return put != -EAGAIN && put != -ENOBUFS && put != -ENOMEM && put != -EINTR;
}

static void free_if_done(hf_helper_child *child)
{
    bool is_over = child->state == HF_ENDED || child->state == HF_REFUSED;
    if (is_over && child->pid == 0 && child->owes_started == 0 && child->owes_ended == 0) {
        child->state = HF_FREE;
    }
}

/* Sends the replies that the host has not got yet. False: the socket is full. */
static bool pay(hf_helper_child *child)
{
    bool owed = child->owes_started != 0 || child->owes_ended != 0;
    if (child->owes_started != 0) {
        if (!tell(child, true)) {
            return false;
        }
        child->owes_started = 0;
    }
    if (child->owes_ended != 0) {
        if (!tell(child, false)) {
            owed = false; /* stays counted */
        } else {
            child->owes_ended = 0;
        }
    }
    bool still_owes = child->owes_started != 0 || child->owes_ended != 0;
    owing_count -= owed && !still_owes ? 1 : 0;
    free_if_done(child);
    return !still_owes;
}

static void pay_all(void)
{
    for (int32_t i = 0; i <= CHILDREN_MAX && owing_count > 0; i++) {
        hf_helper_child *child = &children[i];
        if ((child->owes_started != 0 || child->owes_ended != 0) && !pay(child)) {
            return;
        }
    }
}

static hf_helper_child *find_free(void)
{
    for (int32_t i = 0; i < CHILDREN_MAX; i++) {
        if (children[i].state == HF_FREE) {
            used_max = i >= used_max ? i + 1 : used_max;
            return &children[i];
        }
    }
    return NULL;
}

static hf_helper_child *find_pid(int64_t pid)
{
    for (int32_t i = 0; i < used_max; i++) {
        if (children[i].state != HF_FREE && children[i].pid == pid) {
            return &children[i];
        }
    }
    return NULL;
}

static void refuse(hf_helper_child *child, int error)
{
    child->state = HF_REFUSED;
    child->error = error;
    owe(child, true);
    (void)pay(child);
}

/* ---- Starting ---- */

/* Reads the outcome of an exec. A child that is dead has surely closed its end. */
static void finish_start(hf_helper_child *child)
{
    int32_t error = 0;
    long got = sys3(SYS_read, child->status_fd, SYS_PTR(&error), sizeof error);
    if (got == -EAGAIN || got == -EINTR) {
        return;
    }
    close_fd(child->status_fd);
    child->status_fd = -1;
    starting_count--;
    if (got == (long)sizeof error) {
        refuse(child, error);
        return;
    }
    child->state = HF_RUNNING;
    owe(child, true);
    (void)pay(child);
}

static void start(hf_helper_child *child, const hf_exec_plan *plan)
{
    int status[2] = {-1, -1};
    long result = sys2(SYS_pipe2, SYS_PTR(status), O_CLOEXEC);
    if (result < 0) {
        refuse(child, (int)-result);
        return;
    }
    (void)sys3(SYS_fcntl, status[0], F_SETFL, O_NONBLOCK);
    long pid = sys5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        int32_t error = (int32_t)-hf_helper_exec(plan);
        (void)sys3(SYS_write, status[1], SYS_PTR(&error), sizeof error);
        leave(127);
    }
    close_fd(status[1]);
    if (pid < 0) {
        close_fd(status[0]);
        refuse(child, (int)-pid);
        return;
    }
    child->pid = (int32_t)pid;
    child->status_fd = status[0];
    child->state = HF_STARTING;
    starting_count++;
}

static void handle_start(const hf_wire_request *request, const int *fds, int fd_count)
{
    hf_helper_child *child = find_free();
    bool is_full = child == NULL;
    if (is_full) {
        child = &children[CHILDREN_MAX];
    }
    *child = (hf_helper_child){.request = request->request, .status_fd = -1};
    int wanted = 2;
    for (int i = 0; i < 3; i++) {
        wanted += request->stdio[i] != HF_WIRE_NULL ? 1 : 0;
    }
    if (is_full) {
        refuse(child, EAGAIN);
    } else if (fd_count != wanted) {
        refuse(child, EMFILE); /* some did not fit into our own limit */
    } else {
        hf_exec_plan plan = {.request = request, .payload_fd = fds[0], .directory_fd = fds[1]};
        int next = 2;
        for (int i = 0; i < 3; i++) {
            plan.fds[i] = request->stdio[i] != HF_WIRE_NULL ? fds[next++] : -1;
        }
        start(child, &plan);
    }
}

static void handle_signal(const hf_wire_request *request)
{
    hf_helper_child *child = find_pid(request->pid);
    if (child == NULL || child->state != HF_RUNNING) {
        return; /* it ended meanwhile: the host will be told */
    }
    if (sys2(SYS_kill, -child->pid, request->number) < 0) { /* env-H1 */
        (void)sys2(SYS_kill, child->pid, request->number);  /* it left its group */
    }
}

/* ---- Requests ---- */

static int take_fds(struct msghdr *message, int *ret_fds)
{
    int count = 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = NULL) { /* the host sends at most one */
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS) {
            count = (int)((at->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(ret_fds, CMSG_DATA(at), (size_t)count * sizeof(int));
        }
    }
    return count;
}

/* Handles one request. False: the host is gone. */
static bool take_request(void)
{
    hf_wire_request request = {0};
    hf_wire_control control = {.bytes = {0}};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    long got = sys3(SYS_recvmsg, HF_WIRE_FD_SOCKET, SYS_PTR(&message), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == -EAGAIN || got == -EINTR || got == -ENOMEM || got == -ENOBUFS) {
        return true;
    }
    if (got <= 0) {
        return false;
    }
    int fds[HF_WIRE_FDS_MAX] = {-1, -1, -1, -1, -1};
    int fd_count = take_fds(&message, fds);
    if (got == (long)sizeof request && request.kind == HF_WIRE_START) {
        handle_start(&request, fds, fd_count);
    } else if (got == (long)sizeof request && request.kind == HF_WIRE_SIGNAL) {
        handle_signal(&request);
    }
    for (int i = 0; i < fd_count; i++) {
        close_fd(fds[i]);
    }
    return true;
}

/* ---- Ends ---- */

static void handle_end(const siginfo_t *info)
{
    hf_helper_child *child = find_pid(info->si_pid);
    if (child == NULL) {
        return; /* an adopted orphan: the host does not know it */
    }
    if (child->state == HF_STARTING) {
        finish_start(child);
    }
    child->pid = 0;
    if (child->state == HF_RUNNING) {
        bool has_exited = info->si_code == CLD_EXITED;
        child->code = has_exited ? info->si_status : -1;
        child->signal = has_exited ? 0 : info->si_status;
        child->state = HF_ENDED;
        owe(child, false);
        (void)pay(child);
    }
    free_if_done(child);
}

/* Reaps everything that has ended. False: there are no children at all. */
bool hf_helper_reap(void)
{
    for (;;) {
        siginfo_t info = {0};
        long result = sys5(SYS_waitid, P_ALL, 0, SYS_PTR(&info), WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
        if (result == -ECHILD) {
            return false;
        }
        if (result < 0 || info.si_pid == 0) {
            return true;
        }
        int32_t pid = info.si_pid;
        if (find_pid(pid) !=
            NULL) { /* env-H1: not reaped yet, so the group is still its own; the rest of the group ends too */
            (void)sys2(SYS_kill, -pid, SIGKILL);
        }
        if (sys5(SYS_waitid, P_PID, pid, SYS_PTR(&info), WEXITED | WNOHANG | __WALL, 0) == 0) {
            handle_end(&info);
        }
    }
}

/* ---- The loop ---- */

static void drain_signals(void)
{
    char buffer[1024];
    while (sys3(SYS_read, FD_SIGNALS, SYS_PTR(buffer), sizeof buffer) > 0) {
    }
}

/* Waits for something to do and does it. False: the host is gone. */
static bool turn(void)
{
    struct pollfd fds[3 + STARTING_MAX];
    hf_helper_child *starting[STARTING_MAX];
    bool takes_requests = starting_count < STARTING_MAX && children[CHILDREN_MAX].state == HF_FREE;
    int events = (takes_requests ? POLLIN : 0) | (owing_count > 0 ? POLLOUT : 0);
    fds[0] = (struct pollfd){.fd = HF_WIRE_FD_SOCKET, .events = (short)(events | POLLRDHUP)};
    fds[1] = (struct pollfd){.fd = FD_SIGNALS, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = HF_WIRE_FD_HOST, .events = POLLIN};
    int count = 3;
    for (int32_t i = 0; i < used_max && count - 3 < starting_count; i++) {
        if (children[i].state == HF_STARTING) {
            starting[count - 3] = &children[i];
            fds[count++] = (struct pollfd){.fd = children[i].status_fd, .events = POLLIN};
        }
    }
    if (sys5(SYS_ppoll, SYS_PTR(fds), count, 0, 0, 8) < 0) {
        return true;
    }
    if ((fds[0].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0 || (fds[2].revents & POLLIN) != 0) {
        return false;
    }
    for (int i = 3; i < count; i++) {
        if (fds[i].revents != 0) {
            finish_start(starting[i - 3]);
        }
    }
    if (fds[1].revents != 0) {
        drain_signals(); /* before reaping: one that comes later makes it readable again */
        (void)hf_helper_reap();
    }
    if ((fds[0].revents & POLLOUT) != 0) {
        pay_all();
    }
    return (fds[0].revents & POLLIN) == 0 || take_request();
}

/* The argument of the kernel's rt_sigaction; all zero is the default action. */
typedef struct hf_action {
    uint64_t words[4];
} hf_action;

static void clear_signals(void)
{
    uint64_t all = ~(uint64_t)0;
    (void)sys4(SYS_rt_sigprocmask, SIG_SETMASK, SYS_PTR(&all), 0, sizeof all);
    hf_action standard = {{0}};
    for (int number = 1; number <= SIGNAL_MAX; number++) {
        (void)sys4(SYS_rt_sigaction, number, SYS_PTR(&standard), 0, sizeof all);
    }
}

/* Closes every descriptor of the host's from FD_SIGNALS up. */
static void close_inherited(void)
{
    if (sys3(SYS_close_range, FD_SIGNALS, ~0U, 0) == 0) {
        return;
    }
    uint64_t limit[2] = {0, 0};
    (void)sys4(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, SYS_PTR(limit));
    for (uint64_t fd = FD_SIGNALS; fd < limit[0] && fd < 1048576; fd++) {
        close_fd((int)fd);
    }
}

/* Makes 0, 1 and 2 /dev/null and FD_SIGNALS a signalfd. */
static bool open_own(void)
{
    long null_fd = sys4(SYS_openat, AT_FDCWD, SYS_PTR("/dev/null"), O_RDWR, 0);
    if (null_fd < 0) {
        return false;
    }
    for (int fd = 0; fd < 3; fd++) {
        if (fd != null_fd && sys3(SYS_dup3, null_fd, fd, 0) < 0) {
            return false;
        }
    }
    if (null_fd > 2) {
        close_fd((int)null_fd);
    }
    uint64_t wanted = (uint64_t)1 << (SIGCHLD - 1);
    long fd = sys4(SYS_signalfd4, -1, SYS_PTR(&wanted), sizeof wanted, O_CLOEXEC | O_NONBLOCK);
    return fd == FD_SIGNALS;
}

void helper_main(void)
{
    clear_signals();
    close_inherited();
    set_cloexec(HF_WIRE_FD_SOCKET);
    set_cloexec(HF_WIRE_FD_HOST);
    (void)sys1(SYS_setsid, 0);
    (void)sys2(SYS_prctl, PR_SET_NAME, SYS_PTR("hf-helper"));
    if (sys2(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1) < 0 || !open_own()) {
        leave(1);
    }
    while (turn()) {
    }
    hf_helper_kill_all();
    leave(0);
}

__asm__(".text\n"
        ".globl _start\n"
        ".type _start, %function\n"
        "_start:\n"
#if defined(__x86_64__)
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call helper_main\n"
#else
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    bl helper_main\n"
#endif
);
