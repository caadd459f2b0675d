/* The parts of `bench/depot`, and what they share. */
#ifndef HF_BENCH_DEPOT_PARTS_H
#define HF_BENCH_DEPOT_PARTS_H

#include "bench.h"
#include "row.h"

#include <holdfast/holdfast.h>

#include <sqlite3.h>

enum { ID_LEN = 16, VALUE_LEN = 100 };

/* Ends the program. */
void fail(const char *what) __attribute__((noreturn));
/* Fails unless it is HF_OK. */
void must(hf_status status, const char *what);

/* A key of 16 letters and digits; the struct must outlive the key. */
typedef struct id {
    char text[ID_LEN + 1];
} id;
hf_depot_key key_of(id *place, const char *ns, uint32_t number);
/* Numbers below `count` in an order without an order: each once for at = 0 to count - 1. */
uint32_t shuffled(uint32_t at, uint32_t count);

/* Runs `body` as a fiber of a new runtime with this many threads. */
void on_fiber(int threads, hf_body body, void *arg);
/* Runs `count` fibers of the same body, and waits for all. On a fiber. */
void at_once(int count, hf_body body, void *arg);

/* Answers with VALUE_LEN bytes at once. */
hf_status fetch_at_once(void *state, const hf_fetch_request *request, hf_reply *reply);

/* For files of the depot and of SQLite: removes it, with its log. */
void remove_file(const char *path);
int64_t file_len(const char *path); /* with its log */

/* ---- Raw SQLite, with the settings of the depot's file ------------------------------------------------------------ */

typedef struct raw {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *entry, *pending, *select;
} raw;

void raw_open(raw *one, const char *path, bool is_synced);
void raw_close(raw *one);
void raw_step(raw *one, sqlite3_stmt *statement); /* and resets it */
void raw_put_entry(raw *one, uint32_t number, int record_len);
void raw_put_pending(raw *one, int64_t sequence, int record_len);
/* Whether there is such an entry; its bytes are read. */
bool raw_get(raw *one, uint32_t number);
/* Bytes of a record in the file of a depot, on average. */
int raw_record_len(const char *path, const char *table);

/* ---- The parts --------------------------------------------------------------------------------------------------- */

void part_storm(void);
void part_watch(void);
void part_land(const char *folder);
void part_file(const char *folder, uint32_t count);
/* In a process of its own: what `part_file` has the program do. */
void file_fill(const char *folder, uint32_t count);
void file_look(const char *folder, uint32_t count);

#endif
