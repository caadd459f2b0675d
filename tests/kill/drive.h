/* Shared by the files of kill_drive: drive.c kills, verify.c looks at what is left. */
#ifndef HF_TESTS_KILL_DRIVE_H
#define HF_TESTS_KILL_DRIVE_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct drive {
    const char *child;     /* the program that is killed */
    const char *holdfast;  /* the program that looks at databases */
    char folder[64];       /* holds all files of this run */
    char database[100];    /* in the folder */
    char ledger_path[100]; /* in the folder */
    size_t failures;       /* each was told on stderr */
    size_t kills;          /* the rest is counted for the last line */
    size_t early;          /* kills within 50 ms of the start */
    size_t aimed_early;    /* the same, as they were meant */
    size_t in_recovery;    /* kills in this phase; the others likewise */
    size_t in_checkpoint;
    size_t in_backup;
    size_t in_reset;
    size_t checks;          /* runs of `holdfast db check --deep` */
    size_t backups;         /* that were acknowledged, and hold their promise */
    size_t backups_opened;  /* of these: an engine went on with them until all workflows had ended */
    size_t backups_refused; /* that were not finished */
    size_t workflows;       /* compared with the ledger; the others were found in them, each time */
    size_t updates;         /* with a known outcome */
    size_t children;        /* whose parent knows of their end */
    size_t continued;       /* runs that another one follows */
    size_t deletions;
    size_t resets; /* runs that they made */
    size_t queries;
} drive;

void drive_fail(drive *d, const char *what);
/* `output`: a file for what it says, NULL = ours. `pipe_fd`: becomes the child's PHASE_FD; -1 = none. */
pid_t drive_spawn(char *const argv[], const char *output, int pipe_fd);
/* A child that goes on with a database until all workflows of a ledger have ended. */
void drive_finish(drive *d, hf_rng *rng, const char *database, const char *ledger_path);

/* ---- verify.c -------------------------------------------------------------------------------------------------------- */

/* The database is sound and says what its ledger says. `is_over`: all workflows must have ended. */
void drive_verify(drive *d, const char *database, const char *ledger_path, bool is_over);
/* The same for backups, of the time when they were made. All are removed. */
void drive_verify_backups(drive *d, hf_rng *rng);

#endif
