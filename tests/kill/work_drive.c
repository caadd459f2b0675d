/* kill -9 of a worker, many times: `work_drive CHILD HOLDFAST [KILLS [SEED [share]]]`. With `share` two children have the file, one as its
 * owner and the other through it (sqlite:FILE?share=yes), and one of them is killed each time: the other goes on.
 *
 * A child works (work_child.c) and is killed, often when it has just opened the database and takes up what the last one had in
 * hand. The next child goes on with the same file. After each kill
 *
 *     - no process is left that the child had started (this process is the parent of orphans: PR_SET_CHILD_SUBREAPER);
 *     - `holdfast db check --deep` finds the file sound.
 *
 * After CYCLES kills (SHARED_CYCLES of two on a file: tasks run ahead of their commits only before the first owner was killed) a last child lets all workflows end, within its time: tasks that a killed process had in hand went out
 * again at once, because their timeouts are an hour. Then
 *
 *     - every workflow that was begun has ended once, and one whose start was acknowledged is there;
 *     - the charges that stand are those that the results name;
 *     - the histories of each chain of runs have every signal that was acknowledged once, and each other one at most once. */
#include "base/base.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CYCLES = 10, SHARED_CYCLES = 3, QUICK_US = 40000, SLOW_US = 400000, CHARGES_MAX = 200000 };

extern char **environ;

typedef struct drive {
    const char *child;
    const char *holdfast;
    char database[300];
    char ledger[300];
    char log[300]; /* what the children say */
    unsigned failures;
    uint64_t runs, charges, refunds, stands, signals, canceled;
    unsigned owners; /* of the kills of two on a file: those that met the owner */
} drive;

static void fail(drive *d, const char *what, const char *which)
{
    (void)fprintf(stderr, "FAILED %s: %s\n", what, which);
    d->failures++;
}

static pid_t spawn(char *const argv[], const char *output)
{
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    int error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
        exit(2);
    }
    return pid;
}

static pid_t start_child(const drive *d, hf_rng *rng, const char *cycle)
{
    char words[5][300];
    char number[32];
    (void)snprintf(number, sizeof number, "%" PRIu64, hf_rng_next(rng) >> 1);
    const char *given[] = {d->child, d->database, d->ledger, number, cycle};
    char *argv[6] = {NULL};
    for (size_t i = 0; i < HF_COUNT_OF(given); i++) {
        (void)snprintf(words[i], sizeof words[i], "%s", given[i]);
        argv[i] = words[i];
    }
    return spawn(argv, d->log);
}

static bool runs_well(char *const argv[], const char *output)
{
    int how = 0;
    pid_t pid = spawn(argv, output);
    return waitpid(pid, &how, 0) == pid && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static void check_file(drive *d)
{
    char holdfast[300];
    char database[300];
    char db[] = "db";
    char check[] = "check";
    char deep[] = "--deep";
    (void)snprintf(holdfast, sizeof holdfast, "%s", d->holdfast);
    (void)snprintf(database, sizeof database, "%s", d->database);
    char *argv[] = {holdfast, db, check, deep, database, NULL};
    if (!runs_well(argv, d->log)) {
        fail(d, "the file is not sound", d->database);
    }
}

static off_t ledger_len(const drive *d)
{
    struct stat info;
    return stat(d->ledger, &info) == 0 ? info.st_size : 0;
}

/* Most kills are to meet a child at work, however slow the machine is. */
static void await_work(const drive *d, off_t before)
{
    static const struct timespec MOMENT = {0, 1000000};
    for (int i = 0; i < 60000 && ledger_len(d) == before; i++) {
        (void)nanosleep(&MOMENT, NULL);
    }
}

static void one_kill(drive *d, hf_rng *rng, unsigned cycle)
{
    char word[16];
    int how = 0;
    (void)snprintf(word, sizeof word, "%u", cycle);
    off_t before = ledger_len(d);
    pid_t pid = start_child(d, rng, word);
    bool is_quick = hf_rng_below(rng, 3) == 0;
    uint64_t us = hf_rng_below(rng, is_quick ? QUICK_US : SLOW_US);
    struct timespec span = {0, (long)us * 1000};
    if (!is_quick) {
        await_work(d, before);
    }
    (void)nanosleep(&span, NULL);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &how, 0);
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL) {
        fail(d, "the child ended by itself", word);
    }
    if (waitpid(-1, &how, WNOHANG) >= 0 || errno != ECHILD) {
        fail(d, "a process was left behind", word);
    }
    if (access(d->ledger, F_OK) == 0) { /* else the file may have been in the making */
        check_file(d);
    }
}

/* ---- Two children on one file ------------------------------------------------------------------------------------------- */

static pid_t pair[2]; /* 0 = it is not there */

static void end_child(drive *d, int which)
{
    int how = 0;
    if (pair[which] == 0) {
        return;
    }
    (void)kill(pair[which], SIGKILL);
    (void)waitpid(pair[which], &how, 0);
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL) {
        fail(d, "a child ended by itself", which == 0 ? "the first" : "the second");
    }
    pair[which] = 0;
}

/* The file beside the database has the owner's process. */
static bool is_owner(const drive *d, pid_t pid)
{
    char path[400];
    char text[32] = "";
    (void)snprintf(path, sizeof path, "%s-owner", d->database);
    FILE *file = fopen(path, "re");
    bool is = file != NULL && fgets(text, sizeof text, file) != NULL && strtol(text, NULL, 10) == (long)pid;
    if (file != NULL) {
        (void)fclose(file);
    }
    return is;
}

/* The owner is killed as often as the other one: which of them it is depends on the kills before. */
static void one_shared_kill(drive *d, hf_rng *rng, unsigned cycle)
{
    for (int i = 0; i < 2; i++) {
        char word[16];
        (void)snprintf(word, sizeof word, "%u.%d", cycle, i);
        if (pair[i] == 0) {
            pair[i] = start_child(d, rng, word);
        }
    }
    bool is_quick = hf_rng_below(rng, 3) == 0;
    struct timespec span = {0, (long)hf_rng_below(rng, is_quick ? QUICK_US : SLOW_US) * 1000};
    if (!is_quick) {
        await_work(d, ledger_len(d));
    }
    (void)nanosleep(&span, NULL);
    int which = (int)hf_rng_below(rng, 2);
    off_t before = ledger_len(d);
    d->owners += is_owner(d, pair[which]) ? 1 : 0;
    end_child(d, which);
    await_work(d, before); /* the one that is left goes on, or the file would be at rest for ever */
    if (ledger_len(d) == before) {
        fail(d, "the other child does not go on", "");
    }
    check_file(d);
}

/* ---- The ledger ------------------------------------------------------------------------------------------------------- */

/* Charges that were made or given back, by id: a hash table. */
typedef struct charge {
    uint64_t id;
    bool is_made;
    bool is_back;
    bool is_named; /* by a result */
} charge;
static charge charges[CHARGES_MAX * 2];

static charge *charge_of(uint64_t id)
{
    size_t at = (size_t)(id % HF_COUNT_OF(charges));
    while (charges[at].id != 0 && charges[at].id != id) {
        at = (at + 1) % HF_COUNT_OF(charges);
    }
    charges[at].id = id;
    return &charges[at];
}

/* "D ID [charge, charge]" */
static void read_result(drive *d, char *line)
{
    char *text = strchr(line, ' ');
    bool buys = strncmp(line, "buy", 3) == 0;
    d->runs++;
    d->canceled += text != NULL && strcmp(text, " canceled") == 0;
    for (text = buys && text != NULL && text[1] == '[' ? text + 2 : NULL; text != NULL && *text != ']';) {
        charge *c = charge_of(strtoull(text, &text, 10));
        if (c->is_named) {
            fail(d, "a charge is in two results", line);
        }
        c->is_named = true;
        text += strspn(text, ", ");
        if (strspn(text, "0123456789]") == 0) {
            fail(d, "a result", line);
            return;
        }
    }
}

/* How often the ledger has this line. */
static unsigned lines_of(const char *ledger, const char *wanted)
{
    unsigned count = 0;
    size_t len = strlen(wanted);
    for (const char *at = strstr(ledger, wanted); at != NULL; at = strstr(at + 1, wanted)) {
        count += (at == ledger || at[-1] == '\n') && at[len] == '\n';
    }
    return count;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0) {
        size_t len = (size_t)ftell(file);
        rewind(file);
        text = malloc(len + 1);
        if (text != NULL) {
            text[fread(text, 1, len, file)] = '\0';
        }
    }
    (void)fclose(file);
    return text;
}

static void read_line(drive *d, const char *ledger, char *line)
{
    char wanted[4200];
    if (strncmp(line, "C ", 2) == 0) {
        charge_of(strtoull(line + 2, NULL, 10))->is_made = true;
    } else if (strncmp(line, "R ", 2) == 0) {
        charge_of(strtoull(line + 2, NULL, 10))->is_back = true;
    } else if (strncmp(line, "D ", 2) == 0) {
        read_result(d, line + 2);
    } else if (strncmp(line, "S ", 2) == 0) {
        d->signals++;
        (void)snprintf(wanted, sizeof wanted, "H %s", line + 2);
        if (lines_of(ledger, wanted) == 0) {
            fail(d, "a signal was acknowledged, and is lost", line + 2);
        }
    } else if (strncmp(line, "H ", 2) == 0) {
        (void)snprintf(wanted, sizeof wanted, "s %s", line + 2);
        if (lines_of(ledger, line) != 1 || lines_of(ledger, wanted) == 0) {
            fail(d, "a signal is there twice, or was never sent", line + 2);
        }
    } else if (strncmp(line, "A ", 2) == 0) {
        (void)snprintf(wanted, sizeof wanted, "D %s none", line + 2);
        if (lines_of(ledger, wanted) > 0) {
            fail(d, "a start was acknowledged, and the run is not there", line + 2);
        }
    }
}

static void check_ledger(drive *d)
{
    char *ledger = read_file(d->ledger);
    char *copy = ledger != NULL ? strdup(ledger) : NULL;
    if (copy == NULL) {
        fail(d, "the ledger", d->ledger);
        free(ledger);
        return;
    }
    memset(charges, 0, sizeof charges);
    for (char *rest = copy, *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        read_line(d, ledger, line);
    }
    for (size_t i = 0; i < HF_COUNT_OF(charges); i++) {
        const charge *c = &charges[i];
        bool stands = c->is_made && !c->is_back;
        d->charges += c->is_made;
        d->refunds += c->is_back;
        d->stands += stands;
        if (c->id != 0 && stands != c->is_named) {
            char text[64];
            (void)snprintf(text, sizeof text, "%" PRIu64, c->id);
            fail(d,
                 c->is_named ? "a result names a charge that does not stand" : "a charge stands that no result names",
                 text);
        }
    }
    free(copy);
    free(ledger);
}

static void finish(drive *d, hf_rng *rng)
{
    int how = 0;
    pid_t pid = start_child(d, rng, "end");
    (void)waitpid(pid, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        fail(d, "the last child", "");
        return;
    }
    check_file(d);
    check_ledger(d);
}

static void forget(const drive *d)
{
    static const char *const ENDS[] = {"", "-wal", "-shm", "-owner", ".sock", "-log"};
    for (size_t i = 0; i < HF_COUNT_OF(ENDS); i++) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s%s", d->database, ENDS[i]);
        (void)unlink(path);
    }
    (void)unlink(d->ledger);
    (void)unlink(d->log);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: work_drive CHILD HOLDFAST [KILLS [SEED [share]]]\n");
        return 2;
    }
    bool is_shared = argc > 5 && strcmp(argv[5], "share") == 0;
    if (is_shared) {
        (void)setenv("WORK_SHARE", "yes", 1);
    }
    drive d = {.child = argv[1], .holdfast = argv[2]};
    unsigned kills = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : CYCLES;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    hf_rng rng = {seed};
    char folder[] = "work_kill.XXXXXX";
    if (mkdtemp(folder) == NULL || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return 2;
    }
    (void)printf("seed %" PRIu64 "\n", seed);
    for (unsigned done = 0, file = 0; done < kills && d.failures == 0; file++) {
        (void)snprintf(d.database, sizeof d.database, "%s/%u.db", folder, file);
        (void)snprintf(d.ledger, sizeof d.ledger, "%s/%u.ledger", folder, file);
        (void)snprintf(d.log, sizeof d.log, "%s/%u.log", folder, file);
        for (unsigned i = 0; i < (is_shared ? SHARED_CYCLES : CYCLES) && done < kills; i++, done++) {
            if (is_shared) {
                one_shared_kill(&d, &rng, i);
            } else {
                one_kill(&d, &rng, i);
            }
        }
        end_child(&d, 0);
        end_child(&d, 1);
        finish(&d, &rng);
        if (d.failures == 0) {
            forget(&d);
        }
        (void)printf("%u kills (%u of an owner of two), %" PRIu64 " workflows, %" PRIu64 " canceled, %" PRIu64
                     " signals, %" PRIu64 " charges, %" PRIu64 " stand\n",
                     done, d.owners, d.runs, d.canceled, d.signals, d.charges, d.stands);
        (void)fflush(stdout);
    }
    if (d.failures == 0) {
        (void)rmdir(folder);
    } else {
        (void)printf("the files are in %s\n", folder);
    }
    (void)printf("%u failures\n", d.failures);
    return d.failures == 0 ? 0 : 1;
}
