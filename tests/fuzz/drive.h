/* A core on a memory store whose rows come from an input, and a clock that the input turns. The rows are sealed here: whatever is
 * in them, their checksums are right.
 *
 * An input is these fields, in any order; what else there is, is passed over:
 *
 *     1  a row       1 = table, 2 = a, 3 = b, 4 = text, 5 = body, 6 = the body is taken as it is; otherwise rows.c
 *                    computes what follows from the rest: numbers and hashes of commits, counts and hashes of histories
 *     2  options     bits, OPTION_* in drive.c
 *     3  a call      1 = method (one more: the task of the last poll is not wanted), 2 = request, 3 = bits: in process, runs
 *                    ahead; 4 = nanoseconds that pass before it.
 *                    An answer to a task without a token gets the token of the last poll, a history without one that of the last
 *                    page. */
#ifndef HF_TESTS_FUZZ_DRIVE_H
#define HF_TESTS_FUZZ_DRIVE_H

#include "fuzz/fuzz.h"

#include "engine/core_private.h"

enum { FUZZ_ROW = 1, FUZZ_OPTIONS = 2, FUZZ_CALL = 3 };
enum { FUZZ_ROW_TABLE = 1, FUZZ_ROW_A = 2, FUZZ_ROW_B = 3, FUZZ_ROW_TEXT = 4, FUZZ_ROW_BODY = 5, FUZZ_ROW_RAW = 6 };
enum { FUZZ_CALL_METHOD = 1, FUZZ_CALL_REQUEST = 2, FUZZ_CALL_BITS = 3, FUZZ_CALL_TIME = 4 };
enum { FUZZ_CALLS_MAX = 24, FUZZ_ROWS_MAX = 256, FUZZ_COMMITS_MAX = 512 };

#define FUZZ_START_TIME INT64_C(1700000000000000000)

/* A call and its answer. */
typedef struct fuzz_call {
    hf_call call;
    hf_arena arena;
    bool is_done;
} fuzz_call;

typedef struct fuzz_drive {
    fuzz_memory memory;
    hf_arena arena; /* rows, requests, tokens */
    hf_store *store;
    hf_core *core; /* NULL = not open */
    hf_core_options options;
    hf_clock now;
    hf_list reads; /* asked by the core */
    fuzz_call calls[FUZZ_CALLS_MAX];
    size_t call_count;
    hf_str workflow_token; /* of the last poll that got a task */
    hf_str activity_token;
    hf_str page_token; /* of the last page of a history */
} fuzz_drive;

/* rows.c: fills the store. False: the input has rows that no store takes. */
bool fuzz_rows_read(fuzz_drive *drive, hf_str input);

/* Makes the store of an input. False: as above. */
bool fuzz_drive_open(fuzz_drive *drive, hf_str input);
void fuzz_drive_close(fuzz_drive *drive); /* checks that nothing is left behind */
/* Opens a core. False: the store was refused. */
bool fuzz_core_open(fuzz_drive *drive);
/* Answers all calls that wait, and frees it. */
void fuzz_core_close(fuzz_drive *drive);
/* The calls of the input, one after the other. */
void fuzz_core_calls(fuzz_drive *drive, hf_str input);
/* Reads, ticks and commits until nothing moves; checks that this comes to an end. */
void fuzz_core_settle(fuzz_drive *drive);

#endif
