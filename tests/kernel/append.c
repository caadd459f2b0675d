/* The same as starts.c without the library: a file that is appended to and synced. It tells what the kernel alone loses.
 *
 *     kernel_append FILE NAME COUNT    appends COUNT records and syncs each
 *     kernel_append FILE               prints the id of each record that is whole
 *
 * A record that fdatasync has returned 0 for is a line "acked ID". After the last one the program prints "all" and waits to be
 * killed. The first failure prints "refused" and ends the program with status 3.
 *
 * Records are RECORD_LEN long, six frames of SQLite's log. So a record begins in the middle of a block that the disk has already,
 * and ends some blocks later: the writes that a log of commits makes. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_LEN = 6 * 4120, ID_LEN = 32, PAUSE_US = 2000, REFUSED = 3 };

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[200];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len < 0 || len >= (int)sizeof line || write(STDOUT_FILENO, line, (size_t)len) != len) {
        _exit(1);
    }
}

/* A record is its id and then bytes that follow from the id and their place, so that no other record has the same. */
static void fill(char *record, const char *id)
{
    uint64_t state = 14695981039346656037u;
    memset(record, 0, ID_LEN);
    (void)snprintf(record, ID_LEN, "%s", id);
    for (size_t i = 0; i < RECORD_LEN; i++) {
        state = (state ^ (unsigned char)record[i % ID_LEN]) * 1099511628211u;
        if (i >= ID_LEN) {
            record[i] = (char)(state >> 56 | 1); /* never 0 */
        }
    }
}

static int append(const char *path, const char *name, long count)
{
    static char record[RECORD_LEN];
    struct stat facts = {0};
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || fstat(file, &facts) != 0) {
        say("refused open: %s\n", strerror(errno));
        return REFUSED;
    }
    off_t at = facts.st_size / RECORD_LEN * RECORD_LEN; /* half a record is written over */
    for (long i = 0; i < count; i++, at += RECORD_LEN) {
        char id[ID_LEN];
        (void)snprintf(id, sizeof id, "%s-%ld", name, i);
        fill(record, id);
        ssize_t wrote = pwrite(file, record, sizeof record, at);
        if (wrote != (ssize_t)sizeof record) {
            say("refused pwrite: %s\n", wrote < 0 ? strerror(errno) : "short");
            return REFUSED;
        }
        if (fdatasync(file) != 0) {
            say("refused fdatasync: %s\n", strerror(errno));
            return REFUSED;
        }
        say("acked %s\n", id);
        (void)usleep(PAUSE_US);
    }
    say("all\n");
    for (;;) {
        (void)pause();
    }
}

static int list(const char *path)
{
    static char record[RECORD_LEN];
    static char whole[RECORD_LEN];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 1;
    }
    for (off_t at = 0; pread(file, record, sizeof record, at) == (ssize_t)sizeof record; at += RECORD_LEN) {
        char id[ID_LEN];
        memcpy(id, record, sizeof id);
        id[ID_LEN - 1] = '\0';
        fill(whole, id);
        if (memcmp(record, whole, sizeof whole) == 0) {
            say("%s\n", id);
        }
    }
    (void)close(file);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) {
        (void)fprintf(stderr, "usage: kernel_append FILE [NAME COUNT]\n");
        return 2;
    }
    return argc == 2 ? list(argv[1]) : append(argv[1], argv[2], strtol(argv[3], NULL, 10));
}
