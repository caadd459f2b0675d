/* A service manager for tests/program/serve.sh: `handover COMMAND ARGS...` listens on a port, starts the command with that socket and with a
 * socket for its notes, as systemd does (sd_listen_fds(3), sd_notify(3)), and prints the port and then each note, one a line. A signal goes to the
 * command, whose exit code is that of this program. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; /* SD_LISTEN_FDS_START */

static volatile sig_atomic_t child;

static void pass_on(int signal_number)
{
    (void)kill((pid_t)child, signal_number);
}

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(99);
}

/* A socket that listens, as descriptor 3. */
static unsigned listen_first(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0 || (fd != FIRST_FD && dup2(fd, FIRST_FD) < 0)) {
        die("listen");
    }
    return ntohs(at.sin_port);
}

/* A socket for notes, of which the name is no file. */
static int take_notes(char name[64])
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int len = snprintf(name, 64, "@holdfast-handover-%ld", (long)getpid());
    memcpy(at.sun_path + 1, name + 1, (size_t)len - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) != 0) {
        die("notes");
    }
    return fd;
}

static _Noreturn void become(char **argv, const char *notes)
{
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    (void)setenv("LISTEN_PID", pid, 1);
    (void)setenv("LISTEN_FDS", "1", 1);
    (void)setenv("NOTIFY_SOCKET", notes, 1);
    (void)setenv("WATCHDOG_PID", pid, 1);
    (void)setenv("WATCHDOG_USEC", "20000", 1);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
    (void)execv(argv[0], argv);
    die(argv[0]);
}

/* Prints the notes until the command has ended: the end of a pipe tells, which only the command holds. */
static void print_notes(int notes, int life)
{
    struct pollfd on[] = {{.fd = notes, .events = POLLIN}, {.fd = life, .events = POLLIN}};
    char note[256];
    for (;;) {
        ssize_t len = poll(on, 2, -1) > 0 && (on[0].revents & POLLIN) != 0 ? recv(notes, note, sizeof note - 1, 0) : 0;
        if (len > 0) {
            note[len] = '\0';
            (void)printf("%s\n", note);
            (void)fflush(stdout);
        } else if ((on[1].revents & POLLHUP) != 0) {
            return;
        }
    }
}

int main(int argc, char **argv)
{
    char name[64];
    int life[2];
    int status = 0;
    if (argc < 2) {
        return 99;
    }
    unsigned port = listen_first();
    int notes = take_notes(name);
    if (pipe(life) != 0) {
        die("pipe");
    }
    (void)printf("port %u\n", port);
    (void)fflush(stdout);
    child = (sig_atomic_t)fork();
    if (child == 0) {
        become(argv + 1, name);
    }
    (void)close(FIRST_FD);
    (void)close(life[1]);
    (void)signal(SIGTERM, pass_on);
    print_notes(notes, life[0]);
    if (waitpid((pid_t)child, &status, 0) < 0) {
        die("waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
