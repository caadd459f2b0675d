/* memcached through its socket, for the columns of other caches. */
#include "cache/parts.h"

#include <sys/socket.h>
#include <sys/un.h>

static double rss_of(long pid)
{
    char path[64];
    long total = 0;
    long resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        fail("memcached does not run");
    }
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* Waits for the answer to a get. */
static void memcached_get(FILE *out, FILE *in, const char *key)
{
    char line[512];
    (void)fprintf(out, "get %.*s\r\n", KEY_LEN, key);
    (void)fflush(out);
    do {
        if (fgets(line, sizeof line, in) == NULL) {
            fail("memcached has gone");
        }
    } while (strcmp(line, "END\r\n") != 0);
}

void part_memcached(const char *socket_path, long pid)
{
    enum { GETS = 20000 };
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&name, sizeof name) != 0) {
        fail("memcached does not answer");
    }
    FILE *out = fdopen(fd, "w");
    FILE *in = fdopen(dup(fd), "r");
    if (out == NULL || in == NULL) {
        fail("no memory");
    }
    char key[KEY_LEN];
    double before = rss_of(pid);
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        (void)fprintf(out, "set %.*s 0 0 %d noreply\r\n%0*d\r\n", KEY_LEN, key, VALUE_LEN, VALUE_LEN, 1);
    }
    memcached_get(out, in, key); /* all of them were read */
    bench_print("bytes.memcached", (rss_of(pid) - before) / MANY - KEY_LEN - VALUE_LEN);
    int64_t from = bench_wall_ns();
    for (uint32_t i = 0; i < GETS; i++) {
        key_of(i % HOT, key);
        memcached_get(out, in, key);
    }
    bench_print("hit.hot.1.memcached", (double)(bench_wall_ns() - from) / GETS);
    (void)fclose(out);
    (void)fclose(in);
}
