/* Shared by the commands for authors of workflows: worker, replay and sim. */
#ifndef HF_MAIN_AUTHOR_H
#define HF_MAIN_AUTHOR_H

#include "main/plugin.h"
#include "main/tool.h"

enum { HF_AUTHOR_VALUES_MAX = 16 };

/* An option of such a command. */
typedef struct hf_author_option {
    const char *name;    /* "--plugin" */
    bool *flag;          /* it has no value ... */
    const char **values; /* ... or this many at most: HF_AUTHOR_VALUES_MAX with a count, 1 without */
    int *count;
} hf_author_option;

/* Reads the words behind the command: options, and up to `words_max` others. False: it was told what is wrong. The list ends with a NULL name. */
bool hf_author_parse(int argc, char **argv, const hf_author_option *options, const char **words, int words_max,
                     int *ret_count);

/* Starts this program again with the determinism guard in front of libc, unless it is there. Returns only if that is not possible: false, and
 * `why` (of 256 bytes at least) says why; or true: the guard is there. */
bool hf_author_guard(char **argv, char *why);

int hf_cmd_worker(int argc, char **argv); /* worker.c */
int hf_cmd_replay(int argc, char **argv); /* replay.c */
int hf_cmd_sim(int argc, char **argv);    /* sim.c */
int hf_cmd_limits(int argc, char **argv); /* limits.c */

#endif
