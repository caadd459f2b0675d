/* Listening, accepting, connecting, looking names up. Reading and writing are in stream.c. */
#include "env/posix/posix.h"

#include "env/posix/address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPTS_LOST_MAX 64 /* connections that broke in the queue, skipped by one accept */

static int open_socket(const hf_address *address)
{
    return socket(address->as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A socket for the address, which is given as text. */
static hf_status open_for(hf_op *op, const char *text, hf_address *ret_address, int *ret_fd)
{
    HF_TRY(hf_address_parse(op, text, ret_address));
    *ret_fd = open_socket(ret_address);
    return *ret_fd >= 0 ? HF_OK : hf_fail_errno(op, errno, "cannot open a socket for %s", text);
}

static void set_flag(int fd, int level, int name)
{
    int on = 1;
    (void)setsockopt(fd, level, name, &on, sizeof on);
}

/* Small messages must not wait for each other. Fails on a unix socket, where there is nothing to set. */
static void set_no_delay(int fd)
{
    set_flag(fd, IPPROTO_TCP, TCP_NODELAY);
}

/* Removes the file of a unix socket on which no program accepts. False: it is another kind of file, or a program accepts on it. */
static bool remove_stale(const hf_address *address)
{
    hf_assert(address->as.any.sa_family == AF_UNIX);
    const char *path = address->as.local.sun_path;
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    int fd = open_socket(address);
    if (fd < 0) {
        return false;
    }
    bool is_stale = connect(fd, &address->as.any, address->len) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return is_stale && unlink(path) == 0;
}

static int bind_address(int fd, const hf_address *address, bool replace)
{
    if (bind(fd, &address->as.any, address->len) == 0) {
        return 0;
    }
    if (errno != EADDRINUSE || !replace || address->as.any.sa_family != AF_UNIX) {
        return -1;
    }
    if (!remove_stale(address)) {
        errno = EADDRINUSE;
        return -1;
    }
    return bind(fd, &address->as.any, address->len);
}

/* "fd:3": a socket that this process was started with, and on which it listens already. */
static hf_status adopt(hf_op *op, const char *address, int *ret_fd, char *ret_address)
{
    char *end = NULL;
    long fd = strtol(address + 3, &end, 10);
    int is_listening = 0;
    socklen_t len = sizeof is_listening;
    hf_address bound = {.len = sizeof bound.as};
    if (end == address + 3 || *end != '\0' || fd < 0 || fd > INT_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "\"%s\" does not name a descriptor, as fd:3 does", address);
    }
    if (getsockopt((int)fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) != 0 || is_listening == 0) {
        return hf_fail(op, HF_ERR_INVALID, "descriptor %ld is not a socket on which connections can be accepted", fd);
    }
    int flags = fcntl((int)fd, F_GETFL);
    if (flags < 0 || fcntl((int)fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0 ||
        getsockname((int)fd, &bound.as.any, &bound.len) != 0) {
        return hf_fail_errno(op, errno, "cannot use descriptor %ld", fd);
    }
    hf_address_format(&bound, ret_address);
    *ret_fd = (int)fd;
    return HF_OK;
}

hf_status hf_posix_listen(hf_env *env, hf_op *op, const char *address, int backlog, bool replace, int *ret_fd,
                          char *ret_address)
{
    hf_address where;
    int fd = -1;
    if (strncmp(address, "fd:", 3) == 0) {
        return adopt(op, address, ret_fd, ret_address);
    }
    HF_TRY(open_for(op, address, &where, &fd));
    if (where.as.any.sa_family != AF_UNIX) {
        set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
    } else {
        (void)fchmod(fd,
                     0600); /* of the file that bind makes: other users may connect only if the program changes it */
    }
    if (where.as.any.sa_family == AF_INET6) {
        set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY); /* independent of the system's default */
    }
    hf_address bound = {.len = sizeof bound.as};
    if (bind_address(fd, &where, replace) != 0 || listen(fd, backlog > 0 ? backlog : SOMAXCONN) != 0 ||
        getsockname(fd, &bound.as.any, &bound.len) != 0) {
        int error = errno;
        hf_posix_close(env, fd);
        return hf_fail_errno(op, error, "cannot listen on %s", address);
    }
    hf_address_format(&bound, ret_address);
    *ret_fd = fd;
    return HF_OK;
}

/* Whether the connection broke before it was accepted: the next in the queue may work, and no new edge would announce
 * it. */
static bool is_lost(int error)
{
    return error == ECONNABORTED || error == EPROTO || error == ENETDOWN || error == ENOPROTOOPT ||
           error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH || error == ENETUNREACH;
}

hf_status hf_posix_accept(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer)
{
    (void)env;
    hf_address peer;
    int conn_fd = -1;
    int lost_count = 0;
    do {
        peer.len = sizeof peer.as;
        conn_fd = accept4(fd, &peer.as.any, &peer.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        lost_count += conn_fd < 0 && is_lost(errno) ? 1 : 0;
    } while (conn_fd < 0 && (errno == EINTR || (is_lost(errno) && lost_count < ACCEPTS_LOST_MAX)));
    if (conn_fd < 0) {
        return hf_fail_errno(op, errno, "cannot accept on descriptor %d", fd);
    }
    if (peer.as.any.sa_family != AF_UNIX) {
        set_no_delay(conn_fd);
    }
    hf_address_format(&peer, ret_peer);
    *ret_fd = conn_fd;
    return HF_OK;
}

bool hf_posix_peer_is_us(hf_env *env, int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    (void)env;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && len == sizeof peer &&
           (peer.uid == geteuid() || peer.uid == 0);
}

hf_status hf_posix_connect(hf_env *env, hf_op *op, const char *address, int *ret_fd)
{
    hf_address where;
    int fd = -1;
    HF_TRY(open_for(op, address, &where, &fd));
    if (where.as.any.sa_family != AF_UNIX) {
        set_no_delay(fd);
    }
    if (connect(fd, &where.as.any, where.len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        int error = errno;
        hf_posix_close(env, fd);
        return hf_fail_errno(op, error, "cannot connect to %s", address);
    }
    *ret_fd = fd;
    return HF_OK;
}

hf_status hf_posix_connect_finish(hf_env *env, hf_op *op, int fd)
{
    (void)env;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        return hf_fail_errno(op, error, "cannot connect descriptor %d", fd);
    }
    hf_address peer = {.len = sizeof peer.as};
    if (getpeername(fd, &peer.as.any, &peer.len) != 0) {
        return errno == ENOTCONN ? hf_fail(op, HF_ERR_AGAIN, "descriptor %d is still connecting", fd)
                                 : hf_fail_errno(op, errno, "cannot connect descriptor %d", fd);
    }
    return HF_OK;
}

static hf_status fail_lookup(hf_op *op, int code, int error, const char *host)
{
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return hf_fail(op, HF_ERR_NOT_FOUND, "there is no host \"%.200s\"", host);
    case EAI_MEMORY:
        return hf_fail(op, HF_ERR_NOMEM, "no memory to look up \"%.200s\"", host);
    case EAI_SYSTEM:
        return hf_fail_errno(op, error, "cannot look up \"%.200s\"", host);
    default:
        return hf_fail(op, HF_ERR_IO, "cannot look up \"%.200s\": %s", host, gai_strerror(code));
    }
}

hf_status hf_posix_resolve(hf_env *env, hf_op *op, const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                           size_t count, size_t *ret_count)
{
    (void)env;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0) {
        return fail_lookup(op, code, errno, host);
    }
    size_t used = 0;
    for (struct addrinfo *at = found; at != NULL && used < count; at = at->ai_next) {
        hf_address address = {.len = at->ai_addrlen};
        if ((at->ai_family == AF_INET || at->ai_family == AF_INET6) && at->ai_addrlen <= sizeof address.as) {
            memcpy(&address.as, at->ai_addr, at->ai_addrlen);
            hf_address_format_host(&address, ret_addresses[used]);
            used++;
        }
    }
    freeaddrinfo(found);
    if (used == 0 && count > 0) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "the host \"%.200s\" has no internet address", host);
    }
    hf_assert(used <= count);
    *ret_count = used;
    return HF_OK;
}
