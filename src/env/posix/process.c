/* Child processes on the side of the host: packets to and from the helper. helper/helper.c describes the helper,
 * helper_start.c how it is started. */
#include "env/posix/posix.h"

#include "env/posix/helper/wire.h"
#include "env/posix/helper_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAYLOAD_LEN_MAX (64u * 1024 * 1024) /* bytes of arguments and environment: far above any kernel's limit */
#define STRINGS_MAX (1024u * 1024)          /* how many of them */

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

struct hf_helper {
    int fd;      /* our end of the socket */
    int pid_fd;  /* of the helper; -1 = the kernel has none */
    pid_t pid;   /* of the helper */
    pid_t owner; /* the process that opened it: a forked copy must not end its parent's children */
};

hf_status hf_posix_helper_open_from(hf_env *env, hf_op *op, hf_image_place first, hf_helper **ret_helper, int *ret_fd)
{
    hf_helper *helper = calloc(1, sizeof *helper);
    if (helper == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a helper process");
    }
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
        int error = errno;
        free(helper);
        return hf_fail_errno(op, error, "cannot make a socket for the helper process");
    }
    hf_helper_start start = {.socket_fd = fds[1]};
    hf_status status = hf_posix_helper_start(op, first, &start);
    hf_posix_close(env, fds[1]);
    if (status != HF_OK) {
        hf_posix_close(env, fds[0]);
        free(helper);
        return status;
    }
    *helper = (hf_helper){.fd = fds[0], .pid_fd = start.pid_fd, .pid = start.pid, .owner = getpid()};
    *ret_helper = helper;
    *ret_fd = helper->fd;
    return HF_OK;
}

hf_status hf_posix_helper_open(hf_env *env, hf_op *op, hf_helper **ret_helper, int *ret_fd)
{
    return hf_posix_helper_open_from(env, op, HF_IMAGE_MEMORY, ret_helper, ret_fd);
}

static void wait_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
}

/* Blocks until the helper has closed its end, which only its exit does. */
static void drain(int fd)
{
    for (;;) {
        hf_wire_reply reply;
        ssize_t got = recv(fd, &reply, sizeof reply, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) {
            wait_readable(fd);
        } else if (got == 0 || (got < 0 && errno != EINTR)) {
            return;
        }
    }
}

void hf_posix_helper_close(hf_env *env, hf_helper *helper)
{
    if (helper == NULL) {
        return;
    }
    if (helper->owner == getpid()) {
        (void)shutdown(helper->fd, SHUT_WR); /* the end of file, even if a forked process holds a copy */
        drain(helper->fd);
        if (helper->pid_fd >= 0) {
            wait_readable(helper->pid_fd);
            /* The helper is a child of the host only if the host adopts orphans. Then it is reaped here, by its
             * descriptor: its number may belong to another process by now. */
            siginfo_t info;
            (void)waitid((idtype_t)P_PIDFD, (id_t)helper->pid_fd, &info, WEXITED | WNOHANG | __WALL);
        }
    }
    hf_posix_close(env, helper->pid_fd);
    hf_posix_close(env, helper->fd);
    free(helper);
}

/* ---- Starting ---- */

/* Arguments and environment as one block: see wire.h. */
typedef struct hf_spawn_block {
    unsigned char *bytes;
    size_t len;
    size_t at;       /* where the next string goes */
    uint64_t *slots; /* the numbers at its beginning */
    size_t slot_idx; /* the next of them */
} hf_spawn_block;

static size_t count_strings(const char *const *strings, size_t *len)
{
    size_t count = 0;
    while (strings[count] != NULL && count < STRINGS_MAX && *len < PAYLOAD_LEN_MAX) {
        *len += strlen(strings[count]) + 1;
        count++;
    }
    return count;
}

static uint64_t put_string(hf_spawn_block *payload, const char *text)
{
    hf_assert(text != NULL);
    size_t len = strlen(text) + 1;
    hf_assert(len <= payload->len - payload->at);
    memcpy(payload->bytes + payload->at, text, len);
    payload->at += len;
    return payload->at - len;
}

static void put_strings(hf_spawn_block *payload, const char *const *strings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        payload->slots[payload->slot_idx++] = put_string(payload, strings[i]);
    }
    payload->slots[payload->slot_idx++] = 0;
}

/* Whether `more` has a variable of the same name. */
static bool is_replaced(const char *variable, const char *const *more)
{
    size_t len = strcspn(variable, "=");
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        if (strncmp(variable, more[i], len) == 0 && more[i][len] == '=') {
            return true;
        }
    }
    return false;
}

/* The variables of `env` that are not replaced, and `more`. NULL: no memory. */
static const char **join_env(const char *const *env, const char *const *more)
{
    size_t count = 1;
    for (size_t i = 0; env[i] != NULL && i < STRINGS_MAX; i++) {
        count++;
    }
    for (size_t i = 0; more[i] != NULL && i < STRINGS_MAX; i++) {
        count++;
    }
    const char **all = malloc(count * sizeof *all);
    size_t used = 0;
    for (size_t i = 0; all != NULL && env[i] != NULL && i < STRINGS_MAX; i++) {
        if (!is_replaced(env[i], more)) {
            all[used++] = env[i];
        }
    }
    for (size_t i = 0; all != NULL && more[i] != NULL && i < STRINGS_MAX; i++) {
        all[used++] = more[i];
    }
    if (all != NULL) {
        hf_assert(used < count);
        all[used] = NULL;
    }
    return all;
}

static hf_status make_payload_of(hf_op *op, const hf_spawn *spawn, const char *const *env, hf_wire_request *request,
                                 hf_spawn_block *payload)
{
    size_t len = spawn->cwd != NULL ? strlen(spawn->cwd) + 1 : 0;
    size_t argument_count = count_strings(spawn->argv, &len);
    size_t variable_count = count_strings(env, &len);
    if (argument_count == 0) {
        return hf_fail(op, HF_ERR_INVALID, "a process needs at least its own name as an argument");
    }
    if (len >= PAYLOAD_LEN_MAX || argument_count >= STRINGS_MAX || variable_count >= STRINGS_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "the arguments and environment of %.200s are too big", spawn->argv[0]);
    }
    size_t slot_count = argument_count + 1 + variable_count + 1;
    payload->at = slot_count * sizeof *payload->slots;
    payload->len = payload->at + len;
    payload->bytes = malloc(payload->len);
    if (payload->bytes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to start %.200s", spawn->argv[0]);
    }
    payload->slots = (uint64_t *)(void *)payload->bytes;
    put_strings(payload, spawn->argv, argument_count);
    put_strings(payload, env, variable_count);
    request->cwd_offset = spawn->cwd != NULL ? put_string(payload, spawn->cwd) : 0;
    hf_assert(payload->at == payload->len && payload->slot_idx == slot_count);
    request->payload_len = payload->len;
    request->argument_count = (uint32_t)argument_count;
    request->variable_count = (uint32_t)variable_count;
    return HF_OK;
}

static hf_status make_payload(hf_op *op, const hf_spawn *spawn, hf_wire_request *request, hf_spawn_block *payload)
{
    const char *const *env = spawn->env != NULL ? spawn->env : (const char *const *)(void *)environ;
    static const char *const NO_ENV[] = {NULL};
    env = env != NULL ? env : NO_ENV;
    if (spawn->more == NULL) {
        return make_payload_of(op, spawn, env, request, payload);
    }
    const char **all = join_env(env, spawn->more);
    if (all == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to start %.200s", spawn->argv[0]);
    }
    hf_status status = make_payload_of(op, spawn, all, request, payload);
    free(all);
    return status;
}

static hf_status open_payload(hf_env *env, hf_op *op, const hf_spawn *spawn, hf_wire_request *request, int *ret_fd)
{
    hf_spawn_block payload = {0};
    HF_TRY(make_payload(op, spawn, request, &payload));
    hf_status status = HF_OK;
    int fd = memfd_create("holdfast-spawn", MFD_CLOEXEC);
    if (fd < 0) {
        status = hf_fail_errno(op, errno, "cannot hold the arguments of %.200s", spawn->argv[0]);
    } else {
        status = hf_posix_file_write(env, op, fd, payload.bytes, payload.len);
    }
    free(payload.bytes);
    if (status != HF_OK) {
        hf_posix_close(env, fd);
        return status;
    }
    *ret_fd = fd;
    return HF_OK;
}

static hf_status send_request(hf_op *op, hf_helper *helper, hf_wire_request *request, const int *fds, size_t fd_count)
{
    hf_wire_control control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = request, .iov_len = sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
        memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof *fds);
    }
    ssize_t put;
    do {
        put = sendmsg(helper->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (put < 0 && errno == EINTR);
    if (put >= 0) {
        return HF_OK;
    }
    switch (errno) {
    case EAGAIN:
    case ENOBUFS:
        return hf_fail(op, HF_ERR_AGAIN, "the helper process is busy");
    case EPIPE:
    case ECONNRESET:
        return hf_fail(op, HF_ERR_CLOSED, "the helper process has ended: children cannot be started any more");
    case ETOOMANYREFS:
        return hf_fail(op, HF_ERR_LIMIT, "too many descriptors are on their way to the helper process");
    default:
        return hf_fail_errno(op, errno, "cannot reach the helper process");
    }
}

/* Collects the descriptors for the child's 0, 1 and 2. Returns how many descriptors `fds` has then. */
static size_t add_stdio(const hf_spawn *spawn, hf_wire_request *request, int *fds, size_t count)
{
    for (int i = 0; i < 3; i++) {
        int fd = spawn->fds[i];
        request->stdio[i] = HF_WIRE_NULL;
        if (fd >= 0) {
            request->stdio[i] = HF_WIRE_GIVEN;
        } else if (fd == -2 && fcntl(i, F_GETFD) >= 0) { /* a host may have closed its own: then there is nothing */
            request->stdio[i] = HF_WIRE_INHERIT;
            fd = i;
        }
        if (request->stdio[i] != HF_WIRE_NULL) {
            fds[count++] = fd;
        }
    }
    return count;
}

hf_status hf_posix_child_start(hf_env *env, hf_op *op, hf_helper *helper, uint64_t request, const hf_spawn *spawn)
{
    hf_wire_request wire = {.kind = HF_WIRE_START, .request = request};
    int payload_fd = -1;
    HF_TRY(open_payload(env, op, spawn, &wire, &payload_fd));
    hf_status status;
    /* The helper's own working directory is from the time of its start, so the host's current one is sent along. */
    int directory_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0) {
        status = hf_fail_errno(op, errno, "cannot open the working directory");
    } else {
        int fds[HF_WIRE_FDS_MAX] = {payload_fd, directory_fd};
        size_t fd_count = add_stdio(spawn, &wire, fds, 2);
        status = send_request(op, helper, &wire, fds, fd_count);
    }
    hf_posix_close(env, directory_fd);
    hf_posix_close(env, payload_fd);
    return status;
}

hf_status hf_posix_child_signal(hf_env *env, hf_op *op, hf_helper *helper, int64_t pid, int number)
{
    (void)env;
    if (pid <= 1 || number < 0 || number > 64) {
        return hf_fail(op, HF_ERR_INVALID, "signal %d for process %lld: the signal or the process number is invalid",
                       number, (long long)pid);
    }
    hf_wire_request wire = {.kind = HF_WIRE_SIGNAL, .pid = pid, .number = number};
    return send_request(op, helper, &wire, NULL, 0);
}

hf_status hf_posix_child_event(hf_env *env, hf_op *op, hf_helper *helper, hf_child_event *ret_event)
{
    (void)env;
    hf_wire_reply reply;
    ssize_t got;
    do {
        got = recv(helper->fd, &reply, sizeof reply, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        return hf_fail(op, HF_ERR_AGAIN, "no child has news");
    }
    if (got <= 0) {
        return hf_fail(op, HF_ERR_CLOSED, "the helper process has ended, and all children with it");
    }
    hf_assert(got == (ssize_t)sizeof reply);
    *ret_event = (hf_child_event){
        .request = reply.request,
        .started = reply.started != 0,
        .pid = reply.pid,
        .error = reply.error,
        .exit = {.code = reply.code, .signal = reply.signal},
    };
    return HF_OK;
}
