#include "main/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void hf_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path) {
        return;
    }
    size_t len = strlen(path);
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') {
        to.sun_path[0] = '\0'; /* a name that is not a file */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)(const void *)&to,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
        (void)close(fd);
    }
}

/* A variable that is a number and is meant for this process; -1 = it is not. */
static long long number_for_us(const char *variable, const char *pid_variable)
{
    const char *text = getenv(variable);
    const char *pid = getenv(pid_variable);
    char *end = NULL;
    if (text == NULL || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid())) {
        return -1;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' ? number : -1;
}

hf_span hf_notify_watchdog(void)
{
    long long us = number_for_us("WATCHDOG_USEC", "WATCHDOG_PID");
    return hf_microseconds(us > 0 ? us : 0);
}

int hf_notify_sockets(void)
{
    enum { SOCKETS_MAX = 16 };
    long long count = getenv("LISTEN_PID") != NULL ? number_for_us("LISTEN_FDS", "LISTEN_PID") : -1;
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDNAMES");
    return count > 0 ? (int)(count < SOCKETS_MAX ? count : SOCKETS_MAX) : 0;
}
