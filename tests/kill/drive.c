/* kill -9, many times: `kill_drive CHILD HOLDFAST [KILLS [SEED]]`.
 *
 * A child works on a database (child.c) and is killed: often within milliseconds of its start, when it makes the file, recovers
 * or sends again what is in doubt; sometimes when it has said that it recovers, resets a run, makes a checkpoint or a backup, or has
 * made one (phase.h); otherwise somewhere under load. After each kill
 *
 *     - `holdfast db check --deep` finds the file sound;
 *     - the store has what was acknowledged, nothing twice, and nothing that nobody sent (ledger.h);
 *     - backups are what they promise (verify.c).
 *
 * The next child goes on with the same file. After CYCLES kills a last one lets everything end, and a new file is begun. At the
 * end, of every kind of moment there must have been some. */
#include "kill/drive.h"
#include "kill/ledger.h"
#include "kill/phase.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CYCLES = 20, QUICK_US = 15000, SLOW_US = 90000, AIM_US = 1000000, EARLY_NS = 50000000 };

extern char **environ;

/* ---- Programs --------------------------------------------------------------------------------------------------------- */

void drive_fail(drive *d, const char *what)
{
    (void)fprintf(stderr, "FAILED %s\n", what);
    d->failures++;
}

pid_t drive_spawn(char *const argv[], const char *output, int pipe_fd)
{
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    if (output != NULL) {
        (void)posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    }
    if (pipe_fd >= 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, pipe_fd, PHASE_FD);
    }
    pid_t pid = -1;
    int error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        (void)fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(error));
        exit(2);
    }
    return pid;
}

/* `load` NULL: to the end. */
static pid_t start_child(const drive *d, hf_rng *rng, const char *database, const char *ledger_path, const char *cycle,
                         const char *load, int pipe_fd)
{
    char words[6][400];
    const char *given[] = {d->child, database, ledger_path, "", cycle, load};
    char *argv[7] = {NULL};
    for (size_t i = 0; i < 6 && given[i] != NULL; i++) {
        (void)snprintf(words[i], sizeof words[i], "%s", given[i]);
        argv[i] = words[i];
    }
    (void)snprintf(words[3], sizeof words[3], "%llu", (unsigned long long)(hf_rng_next(rng) >> 1));
    return drive_spawn(argv, NULL, pipe_fd);
}

void drive_finish(drive *d, hf_rng *rng, const char *database, const char *ledger_path)
{
    pid_t pid = start_child(d, rng, database, ledger_path, "end", NULL, -1);
    int how = 0;
    (void)waitpid(pid, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        drive_fail(d, "the last child");
        return;
    }
    drive_verify(d, database, ledger_path, true);
}

/* ---- Moments ---------------------------------------------------------------------------------------------------------- */

/* When a child is to die: so long after its start, or after it has entered or left a phase. */
typedef struct moment {
    char letter; /* that it must have told (phase.h); 0 = none */
    const char *load;
    uint64_t us;
} moment;

static moment choose(hf_rng *rng)
{
    uint64_t kind = hf_rng_below(rng, 100);
    if (kind < 12) {
        return (moment){PHASE_RECOVERY, "plain", hf_rng_below(rng, 3000)};
    }
    if (kind < 24) {
        return (moment){PHASE_CHECKPOINT, "heavy", hf_rng_below(rng, 3000)};
    }
    if (kind < 32) {
        return (moment){PHASE_BACKUP, "backup", hf_rng_below(rng, 20000)};
    }
    if (kind < 40) {
        return (moment){PHASE_END(PHASE_BACKUP), "backup", hf_rng_below(rng, 20000)};
    }
    if (kind < 48) {
        return (moment){PHASE_RESET, kind < 44 ? "heavy" : "plain", hf_rng_below(rng, 5000)};
    }
    static const char *const LOADS[] = {"plain", "plain", "plain", "heavy", "backup", "backup"};
    const char *load = LOADS[hf_rng_below(rng, HF_COUNT_OF(LOADS))];
    return (moment){0, load, hf_rng_below(rng, kind < 72 ? QUICK_US : SLOW_US)};
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_us(uint64_t us)
{
    struct timespec span = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    (void)nanosleep(&span, NULL);
}

/* What a child has told. */
typedef struct phases {
    int is_in[128]; /* by small letter: the phases that it is in; so many times */
    bool has[128];  /* by any letter: it was told at least once */
} phases;

/* Reads what the child has told by now. */
static void hear(phases *p, int fd)
{
    char told[256];
    ssize_t len = 0;
    while ((len = read(fd, told, sizeof told)) > 0) {
        for (ssize_t i = 0; i < len; i++) {
            char letter = told[i];
            bool is_begin = letter >= 'a';
            p->has[(int)letter] = true;
            p->is_in[(int)(is_begin ? letter : letter - 'A' + 'a')] += is_begin ? 1 : -1;
        }
    }
}

/* Until the child has told this. It may never do so: the file may not need recovery. */
static void wait_for(phases *p, int fd, char letter)
{
    int64_t until = now_ns() + (int64_t)AIM_US * 1000;
    hear(p, fd);
    for (int64_t now = now_ns(); !p->has[(int)letter] && now < until; now = now_ns()) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        (void)poll(&wanted, 1, (int)((until - now) / 1000000) + 1);
        hear(p, fd);
        if ((wanted.revents & POLLHUP) != 0) {
            return;
        }
    }
}

static void one_kill(drive *d, hf_rng *rng, unsigned cycle)
{
    char word[16];
    (void)snprintf(word, sizeof word, "%u", cycle);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        exit(2);
    }
    moment m = choose(rng);
    phases p = {0};
    int64_t begin = now_ns();
    pid_t pid = start_child(d, rng, d->database, d->ledger_path, word, m.load, ends[1]);
    (void)close(ends[1]);
    if (m.letter != 0) {
        wait_for(&p, ends[0], m.letter);
    }
    wait_us(m.us);
    (void)kill(pid, SIGKILL);
    d->early += now_ns() - begin < EARLY_NS ? 1 : 0;
    d->aimed_early += m.letter == 0 && (int64_t)m.us * 1000 < EARLY_NS ? 1 : 0;
    int how = 0;
    (void)waitpid(pid, &how, 0);
    if (!WIFSIGNALED(how)) {
        drive_fail(d, "the child ended by itself");
    }
    hear(&p, ends[0]);
    (void)close(ends[0]);
    d->kills++;
    d->in_recovery += p.is_in[PHASE_RECOVERY] > 0 ? 1 : 0;
    d->in_checkpoint += p.is_in[PHASE_CHECKPOINT] > 0 ? 1 : 0;
    d->in_backup += p.is_in[PHASE_BACKUP] > 0 ? 1 : 0;
    d->in_reset += p.is_in[PHASE_RESET] > 0 ? 1 : 0;
}

/* Before anything was sent there may be no file yet, or one that is just being made. */
static bool is_begun(const drive *d)
{
    ledger l;
    ledger_read(&l, d->ledger_path);
    bool is = l.count > 0;
    ledger_free(&l);
    return is;
}

/* ---- The program ------------------------------------------------------------------------------------------------------ */

static void one_file(drive *d, hf_rng *rng, size_t kills)
{
    for (unsigned cycle = 0; d->failures == 0 && cycle < CYCLES && d->kills < kills; cycle++) {
        one_kill(d, rng, cycle);
        if (is_begun(d)) {
            drive_verify(d, d->database, d->ledger_path, false);
            drive_verify_backups(d, rng);
        }
    }
    if (d->failures == 0) {
        drive_finish(d, rng, d->database, d->ledger_path);
    }
}

static void remove_all(const drive *d)
{
    DIR *all = opendir(d->folder);
    for (const struct dirent *at = NULL; all != NULL && (at = readdir(all)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", d->folder, at->d_name);
        (void)unlink(path);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}

/* A long enough run without a kill in some phase has not tested it. */
static void check_moments(drive *d)
{
    if (d->aimed_early < d->kills / 15) { /* how many of them came in time is the machine's business */
        drive_fail(d, "too few kills aimed at the first 50 ms");
    }
    if (d->in_recovery == 0) {
        drive_fail(d, "no kill in a recovery");
    }
    if (d->in_checkpoint == 0) {
        drive_fail(d, "no kill in a checkpoint");
    }
    if (d->in_backup == 0 || d->backups_opened == 0) {
        drive_fail(d, "no kill in a backup, or none was opened");
    }
    if (d->in_reset == 0) {
        drive_fail(d, "no kill in a reset");
    }
    if (d->updates == 0 || d->children == 0 || d->continued == 0 || d->deletions == 0 || d->queries == 0 ||
        d->resets == 0) {
        drive_fail(d, "no update, child, chain, deletion, query or reset");
    }
}

static void report(const drive *d)
{
    (void)printf("%zu kills: %zu within 50 ms of the start, %zu in a recovery, %zu in a checkpoint, %zu in a backup, "
                 "%zu in a reset\n",
                 d->kills, d->early, d->in_recovery, d->in_checkpoint, d->in_backup, d->in_reset);
    (void)printf("%zu checks; %zu backups sound, %zu of them opened and brought to their end, %zu unfinished ones"
                 " refused; workflows compared %zu times\n",
                 d->checks, d->backups, d->backups_opened, d->backups_refused, d->workflows);
    (void)printf("in these comparisons: %zu updates, %zu children, %zu runs that were continued, %zu deletions, %zu "
                 "queries, %zu runs made by resets\n",
                 d->updates, d->children, d->continued, d->deletions, d->queries, d->resets);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: kill_drive CHILD HOLDFAST [KILLS [SEED]]\n");
        return 2;
    }
    drive d = {.child = argv[1], .holdfast = argv[2]};
    size_t kills = argc > 3 ? strtoul(argv[3], NULL, 10) : 300;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed =
        argc > 4 ? strtoull(argv[4], NULL, 10) : (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    (void)printf("seed %llu, %zu kills\n", (unsigned long long)seed, kills);
    (void)fflush(stdout);
    hf_rng rng = {.state = seed};
    (void)snprintf(d.folder, sizeof d.folder, "/tmp/hf_kill_XXXXXX");
    if (mkdtemp(d.folder) == NULL) {
        return 2;
    }
    (void)snprintf(d.database, sizeof d.database, "%s/x.db", d.folder);
    (void)snprintf(d.ledger_path, sizeof d.ledger_path, "%s/ledger", d.folder);
    while (d.failures == 0 && d.kills < kills) {
        one_file(&d, &rng, kills);
        if (d.failures == 0) {
            remove_all(&d);
        }
    }
    report(&d);
    if (d.failures == 0 && kills >= 100) {
        check_moments(&d);
    }
    if (d.failures > 0) {
        (void)printf("FAILED with seed %llu after %zu kills; the files are in %s\n", (unsigned long long)seed, d.kills,
                     d.folder);
        return 1;
    }
    (void)rmdir(d.folder);
    return 0;
}
