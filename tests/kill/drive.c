/* kill -9, many times: `kill_drive CHILD HOLDFAST [KILLS [SEED]]`.
 *
 * A child works on a database (child.c) and is killed after a random time: often within milliseconds of its start, when it makes
 * the file, recovers or sends again what is in doubt; otherwise under load, in commits, checkpoints and backups. After each kill
 *
 *     - `holdfast db check --deep` finds the file sound;
 *     - the store has what was acknowledged, and nothing twice (ledger.h);
 *     - the newest backup that was acknowledged is sound and has what was acknowledged before it began; one that was not
 *       finished is refused, or sound.
 *
 * The next child goes on with the same file. After CYCLES kills a last one lets everything end, and a new file is begun. */
#include "kill/ledger.h"

#include "engine/check.h"
#include "open/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CYCLES = 20, QUICK_PERCENT = 30, QUICK_US = 15000, SLOW_US = 90000 };

extern char **environ;

static const char *child;
static const char *holdfast;
static char folder[64];
static char database[100];
static char ledger_path[100];
static size_t failures;
static struct {
    size_t kills, early, backups, backups_refused, runs, checks;
} done;

/* `output`: a file for what it says, NULL = ours. */
static pid_t start_program(char *const argv[], const char *output)
{
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    if (output != NULL) {
        (void)posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
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

static pid_t start_child(const char *seed, const char *cycle)
{
    char program[400];
    char text[32];
    char word[32];
    (void)snprintf(program, sizeof program, "%s", child);
    (void)snprintf(text, sizeof text, "%s", seed);
    (void)snprintf(word, sizeof word, "%s", cycle);
    char *argv[] = {program, database, ledger_path, text, word, NULL};
    return start_program(argv, NULL);
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "FAILED %s\n", what);
    failures++;
}

static bool is_sound(char *path)
{
    char program[400];
    (void)snprintf(program, sizeof program, "%s", holdfast);
    char *argv[] = {program, (char[]){"db"}, (char[]){"check"}, (char[]){"--deep"}, path, NULL};
    char output[100];
    (void)snprintf(output, sizeof output, "%s/check", folder);
    pid_t pid = start_program(argv, output);
    int how = 0;
    done.checks++;
    if (waitpid(pid, &how, 0) == pid && WIFEXITED(how) && WEXITSTATUS(how) == 0) {
        return true;
    }
    char line[500];
    FILE *file = fopen(output, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)fputs(line, stderr);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return false;
}

/* What is in a file, against what the clients know. */
static void verify(const char *path, long until, bool is_older)
{
    hf_env *env = hf_env_posix();
    hf_op op;
    hf_op_init(&op);
    hf_peek peek;
    hf_look *look = NULL;
    int64_t holder = 0;
    if (hf_peek_open(&op, env, path, &peek, &holder) != HF_OK) {
        fail(op.message);
        return;
    }
    if (hf_look_open(&op, hf_env_memory(env), peek.store, &look) != HF_OK) {
        fail(op.message);
    } else {
        ledger l;
        ledger_read(&l, ledger_path, until);
        if (ledger_verify(&l, look, is_older, path) != 0) {
            fail("the ledger");
        }
        done.runs += l.count;
        ledger_free(&l);
    }
    hf_look_close(look);
    hf_peek_close(&peek);
}

/* Backups: the acknowledged one holds its promise; all others are refused or sound. All are removed. */
static void verify_backups(void)
{
    ledger l;
    ledger_read(&l, ledger_path, -1);
    DIR *all = opendir(folder);
    for (const struct dirent *at = NULL; all != NULL && (at = readdir(all)) != NULL;) {
        const char *name = strstr(at->d_name, "backup-");
        if (name == NULL || strstr(name, "-journal") != NULL) {
            continue;
        }
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        bool is_acked = strcmp(name, l.backup) == 0;
        hf_op op;
        hf_op_init(&op);
        hf_peek peek;
        int64_t holder = 0;
        if (is_acked) {
            done.backups++;
            if (!is_sound(path)) {
                fail("a backup is not sound");
            }
            verify(path, l.backup_at, true);
        } else if (hf_peek_open(&op, hf_env_posix(), path, &peek, &holder) != HF_OK) {
            done.backups_refused++;
        } else {
            hf_peek_close(&peek);
            if (!is_sound(path)) {
                fail("an unfinished backup was taken for one");
            }
        }
        (void)unlink(path);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    ledger_free(&l);
}

static void wait_us(uint64_t us)
{
    struct timespec span = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    (void)nanosleep(&span, NULL);
}

static void one_kill(hf_rng *rng, unsigned cycle)
{
    char seed[32];
    char word[16];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)(hf_rng_next(rng) >> 1));
    (void)snprintf(word, sizeof word, "%u", cycle);
    bool is_quick = hf_rng_below(rng, 100) < QUICK_PERCENT;
    uint64_t us = hf_rng_below(rng, is_quick ? QUICK_US : SLOW_US);
    pid_t pid = start_child(seed, word);
    wait_us(us);
    (void)kill(pid, SIGKILL);
    int how = 0;
    (void)waitpid(pid, &how, 0);
    done.kills++;
    done.early += us < 50000 ? 1 : 0;
    if (!WIFSIGNALED(how)) {
        fail("the child ended by itself");
    }
    ledger l;
    ledger_read(&l, ledger_path, -1);
    bool is_known = l.count > 0;
    ledger_free(&l);
    if (!is_known) { /* nothing was acknowledged: there may be no file yet, or one that is just being made */
        return;
    }
    if (!is_sound(database)) {
        fail("the database is not sound");
        return;
    }
    verify(database, -1, false);
    verify_backups();
}

static void finish(hf_rng *rng)
{
    char seed[32];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)(hf_rng_next(rng) >> 1));
    pid_t pid = start_child(seed, "end");
    int how = 0;
    (void)waitpid(pid, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        fail("the last child");
    }
    if (!is_sound(database)) {
        fail("the database is not sound at the end");
    }
    verify(database, -1, false);
}

static void remove_all(void)
{
    DIR *all = opendir(folder);
    for (const struct dirent *at = NULL; all != NULL && (at = readdir(all)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        (void)unlink(path);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: kill_drive CHILD HOLDFAST [KILLS [SEED]]\n");
        return 2;
    }
    child = argv[1];
    holdfast = argv[2];
    size_t kills = argc > 3 ? strtoul(argv[3], NULL, 10) : 300;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed =
        argc > 4 ? strtoull(argv[4], NULL, 10) : (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    (void)printf("seed %llu, %zu kills\n", (unsigned long long)seed, kills);
    (void)fflush(stdout);
    hf_rng rng = {.state = seed};
    (void)snprintf(folder, sizeof folder, "/tmp/hf_kill_XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 2;
    }
    (void)snprintf(database, sizeof database, "%s/x.db", folder);
    (void)snprintf(ledger_path, sizeof ledger_path, "%s/ledger", folder);
    while (failures == 0 && done.kills < kills) {
        for (unsigned cycle = 0; failures == 0 && cycle < CYCLES && done.kills < kills; cycle++) {
            one_kill(&rng, cycle);
        }
        if (failures == 0) {
            finish(&rng);
        }
        if (failures == 0) {
            remove_all();
        }
    }
    (void)printf(
        "%zu kills, %zu of them within 50 ms of the start; %zu checks, %zu backups sound, %zu unfinished ones refused;"
        " workflows compared %zu times\n",
        done.kills, done.early, done.checks, done.backups, done.backups_refused, done.runs);
    if (failures > 0) {
        (void)printf("FAILED with seed %llu after %zu kills; the files are in %s\n", (unsigned long long)seed,
                     done.kills, folder);
        return 1;
    }
    (void)rmdir(folder);
    return 0;
}
