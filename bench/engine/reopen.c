/* Opening a file whose process was killed with a full log: the store writes the log to the disk again before it reads it
 * (src/store/sqlite/durable.c), then the engine recovers. Beside it, in the same run, what it takes to write and flush as many
 * bytes in place, and an opening after a proper close. */
#include "bench.h"
#include "engine/cells.h"
#include "store/sqlite/sqlite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SAMPLES = 7, PIECE_LEN = 65536, CLIENTS = 64 };

static char piece[PIECE_LEN];

/* In a process of its own, which ends like one that was killed. */
static void fill_log(const cell_options *o, const char *path)
{
    cell_options endless = *o;
    endless.log_len_max = (size_t)1 << 40; /* no checkpoint */
    hf_service *service = cell_open(&endless, path);
    play_options options = {
        .service = service,
        .env = hf_env_posix(),
        .wait = PLAY_ACTIVITIES,
        .rounds = 1,
        .width = 1,
        .polls = CLIENTS,
        .runs_max = CLIENTS,
    };
    play p;
    play_open(&p, &options);
    play_slots(&p, CLIENTS);
    while (cell_now(service, &p).stats.store.log_len < (uint64_t)o->count << 20) {
        (void)usleep(1000);
    }
    _exit(0);
}

static void write_whole(int fd, const char *what, size_t len, off_t at)
{
    if (pwrite(fd, what, len, at) != (ssize_t)len) {
        play_die("cannot write %zu bytes", len);
    }
}

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    off_t at = 0;
    for (ssize_t len = 0; in >= 0 && out >= 0 && (len = pread(in, piece, sizeof piece, at)) > 0; at += len) {
        write_whole(out, piece, (size_t)len, at);
    }
    if (in < 0 || out < 0 || fsync(out) != 0) {
        play_die("cannot copy %s to %s", from, to);
    }
    (void)close(in);
    (void)close(out);
}

/* Writes the file once more, in place, and flushes it. */
static double seconds_plain(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        play_die("cannot open %s", path);
    }
    int64_t begun = bench_wall_ns();
    for (off_t at = 0; at < st.st_size; at += PIECE_LEN) {
        off_t left = st.st_size - at;
        write_whole(fd, piece, left < PIECE_LEN ? (size_t)left : PIECE_LEN, at);
    }
    if (fsync(fd) != 0) {
        play_die("cannot flush %s", path);
    }
    double seconds = (double)(bench_wall_ns() - begun) * 1e-9;
    (void)close(fd);
    return seconds;
}

typedef struct opening {
    double store;   /* seconds until the store is open */
    double serving; /* and until the engine has answered a question */
} opening;

static opening seconds_open(const char *path)
{
    opening took = {0};
    hf_op op;
    hf_op_init(&op);
    hf_engine_options options = {0};
    hf_store *store = NULL;
    hf_service *service = NULL;
    int64_t begun = bench_wall_ns();
    hf_status status = hf_sqlite_open(&op, cell_memory(), path, NULL, &store);
    took.store = (double)(bench_wall_ns() - begun) * 1e-9;
    if (status != HF_OK || hf_engine_open(&op, hf_env_posix(), store, &options, &service) != HF_OK) {
        play_die("cannot open %s: %s", path, op.message);
    }
    cell_serves(service);
    took.serving = (double)(bench_wall_ns() - begun) * 1e-9;
    cell_close(service);
    return took;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double print_median(const char *metric, double *samples)
{
    qsort(samples, SAMPLES, sizeof *samples, compare);
    bench_print(metric, samples[SAMPLES / 2]);
    return samples[SAMPLES / 2];
}

void cell_reopen(const cell_options *o)
{
    char path[4096], log[4200], copy[4200], copy_log[4300], plain[4200];
    (void)snprintf(path, sizeof path, "%s", cell_path(o, o->mode));
    (void)snprintf(log, sizeof log, "%s-wal", path);
    (void)snprintf(copy, sizeof copy, "%s.copy", path);
    (void)snprintf(copy_log, sizeof copy_log, "%s-wal", copy);
    (void)snprintf(plain, sizeof plain, "%s.plain", path);
    cell_remove(path);
    pid_t pid = fork();
    if (pid == 0) {
        fill_log(o, path);
    }
    int code = -1;
    if (pid < 0 || waitpid(pid, &code, 0) != pid || code != 0) {
        play_die("no log was made");
    }
    double store[SAMPLES], serving[SAMPLES], plain_s[SAMPLES], clean[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        copy_file(path, copy);
        copy_file(log, copy_log);
        copy_file(log, plain);
        plain_s[i] = seconds_plain(plain);
        opening killed = seconds_open(copy);
        store[i] = killed.store;
        serving[i] = killed.serving;
        clean[i] = seconds_open(copy).store;
    }
    struct stat st;
    bench_print("log_mib", stat(log, &st) == 0 ? (double)st.st_size / 1048576 : 0);
    double least = print_median("plain_s", plain_s);
    bench_print("ratio", print_median("store_s", store) / least);
    (void)print_median("serving_s", serving);
    (void)print_median("clean_s", clean);
    cell_remove(path);
    cell_remove(copy);
    (void)unlink(plain);
}
