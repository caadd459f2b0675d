/* What a killed child leaves. The database has all that the ledger knows. A backup that was acknowledged has all that was
 * acknowledged before it began, and is a prefix (kill-N4 in ledger.h); and every OPENED_EVERY-th of them is more than something to
 * look at: an engine opens it, with a ledger of that time, is sent again what is in doubt, and brings every workflow to its
 * end. A backup that was not finished is refused, or sound. */
#include "kill/drive.h"
#include "kill/ledger.h"

#include "inspect/check.h"
#include "open/open.h"

#include <dirent.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPENED_EVERY = 4 };

static bool is_sound(drive *d, const char *database)
{
    char program[400];
    char path[400];
    char output[100];
    (void)snprintf(program, sizeof program, "%s", d->holdfast);
    (void)snprintf(path, sizeof path, "%s", database);
    (void)snprintf(output, sizeof output, "%s/check", d->folder);
    char *argv[] = {program, (char[]){"db"}, (char[]){"check"}, (char[]){"--deep"}, path, NULL};
    pid_t pid = drive_spawn(argv, output, -1);
    int how = 0;
    d->checks++;
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

static void count(drive *d, const ledger *l)
{
    d->workflows += l->count;
    d->queries += l->queries;
    for (size_t i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        d->deletions += e->deletion.acked != 0 ? 1 : 0;
        d->continued += e->found.continued;
        d->resets += e->found.resets;
        for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
            d->updates += e->updates[n].lines.acked != 0 ? 1 : 0;
        }
        for (unsigned k = 0; k < LEDGER_KIDS; k++) {
            d->children += e->found.kids[k].told;
        }
    }
}

static void compare(drive *d, const char *database, ledger *l, long *until, bool is_over)
{
    hf_env *env = hf_env_posix();
    hf_op op;
    hf_op_init(&op);
    hf_peek peek;
    hf_look *look = NULL;
    int64_t holder = 0;
    if (hf_peek_open(&op, env, database, &peek, &holder) != HF_OK) {
        drive_fail(d, op.message);
        return;
    }
    if (hf_look_open(&op, hf_env_memory(env), peek.store, &look) != HF_OK) {
        drive_fail(d, op.message);
    } else if (ledger_verify(l, look, until, is_over, database) != 0) {
        drive_fail(d, "the ledger");
    }
    count(d, l);
    hf_look_close(look);
    hf_peek_close(&peek);
}

void drive_verify(drive *d, const char *database, const char *ledger_path, bool is_over)
{
    if (!is_sound(d, database)) {
        drive_fail(d, "the database is not sound");
        return;
    }
    ledger l;
    ledger_read(&l, ledger_path);
    long until = LONG_MAX;
    compare(d, database, &l, &until, is_over);
    ledger_free(&l);
}

static void go_on_with_backup(drive *d, hf_rng *rng, const char *path, long until)
{
    char copy[100];
    (void)snprintf(copy, sizeof copy, "%s/ledger-of-backup", d->folder);
    ledger_copy(d->ledger_path, until, copy);
    drive_finish(d, rng, path, copy);
    d->backups_opened++;
    static const char *const REST[] = {"-wal", "-shm", "-owner"};
    for (size_t i = 0; i < HF_COUNT_OF(REST); i++) {
        char rest[420];
        (void)snprintf(rest, sizeof rest, "%s%s", path, REST[i]);
        (void)unlink(rest);
    }
    (void)unlink(copy);
}

static void verify_acknowledged(drive *d, hf_rng *rng, ledger *l, const char *path)
{
    long until = l->backup_at;
    if (!is_sound(d, path)) {
        drive_fail(d, "a backup is not sound");
        return;
    }
    compare(d, path, l, &until, false);
    if (d->failures == 0 && d->backups++ % OPENED_EVERY == 0) {
        go_on_with_backup(d, rng, path, until);
    }
}

static void verify_other(drive *d, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_peek peek;
    int64_t holder = 0;
    if (hf_peek_open(&op, hf_env_posix(), path, &peek, &holder) != HF_OK) {
        d->backups_refused++;
        return;
    }
    hf_peek_close(&peek);
    if (!is_sound(d, path)) {
        drive_fail(d, "an unfinished backup was taken for one");
    }
}

void drive_verify_backups(drive *d, hf_rng *rng)
{
    ledger l;
    ledger_read(&l, d->ledger_path);
    DIR *all = opendir(d->folder);
    for (const struct dirent *at = NULL; d->failures == 0 && all != NULL && (at = readdir(all)) != NULL;) {
        const char *name = strstr(at->d_name, "backup-");
        if (name == NULL || strstr(name, "-journal") != NULL) {
            continue;
        }
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", d->folder, at->d_name);
        if (strcmp(name, l.backup) == 0) {
            verify_acknowledged(d, rng, &l, path);
        } else {
            verify_other(d, path);
        }
        if (d->failures == 0) {
            (void)unlink(path);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    ledger_free(&l);
}
