/* The parts of `bench/cache`, and what they share. */
#ifndef HF_BENCH_CACHE_PARTS_H
#define HF_BENCH_CACHE_PARTS_H

#include "bench.h"
#include "row.h"

#include <holdfast/holdfast.h>

enum { KEY_LEN = 16, VALUE_LEN = 100, HOT = 1000, MANY = 1000000 };

extern hf_runtime *runtime; /* two threads */

void fail(const char *what) __attribute__((noreturn));
/* Keys are texts, as ids are. */
void key_of(uint32_t number, char ret_key[KEY_LEN]);
/* A figure of a program in another language; NAN: it was not measured. */
double peer(const char *metric);

/* ---- The sides: sides.c, depot_side.c ---------------------------------------------------------------------------- */

typedef enum side_index { FLOOR, OURS, UTHASH, DEPOT, SIDE_COUNT } side_index;
typedef struct side {
    const char *name;
    bool (*hit)(const char *key); /* whether it was one */
} side;
extern const side SIDES[SIDE_COUNT];
extern const bool HAS_UTHASH; /* else its column is empty */
/* Puts MANY entries into each. */
void sides_fill(void);
void sides_free(void);
void ours_put(hf_cache *into, const char *key, const char *value);

bool depot_hit(const char *key);
void depot_side_open(void);
void depot_side_close(void);

/* ---- The parts --------------------------------------------------------------------------------------------------- */

void part_hit(double seconds);
/* Writes the requests of part_hit to files. */
void draw_for_others(const char *folder);
void part_bytes(void);
void bytes_row_number(size_t index); /* one row of it, in a process of its own */
void part_ratio(void);
void part_memcached(const char *socket_path, long pid);

#endif
