/* What a hit of a cache costs, how much memory an entry takes, and how often there is a hit. Each figure is beside that of
 * the least that is needed for it (the floor), and of uthash with a mutex and a list in the order of use.
 *
 *   cache [hit|bytes|ratio] [SECONDS]     all of them, 1 second a sample
 *
 * The floor is an open-addressing table of pointers to blocks with a count, the key and the value in one. A hit is a
 * probe, a comparison, and the count up and down. Nothing can leave it, so it needs no protection. */
#include "bench.h"

#include "../tests/support/requests.h"

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#if __has_include(<uthash.h>)
#include <uthash.h>
#define HAS_UTHASH 1
#else
#define HAS_UTHASH 0 /* its column is empty */
#endif

enum { KEY_LEN = 16, VALUE_LEN = 100, HOT = 1000, MANY = 1000000, DRAWN = 1 << 20, SAMPLES = 3 };

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench/cache: %s\n", what);
    exit(1);
}

/* Keys are texts, as ids are. */
static void key_of(uint32_t number, char ret_key[KEY_LEN])
{
    char text[KEY_LEN + 1];
    (void)snprintf(text, sizeof text, "user:%011u", number);
    memcpy(ret_key, text, KEY_LEN);
}

static uint64_t word_of(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- The floor --------------------------------------------------------------------------------------------------- */

typedef struct block {
    atomic_uint refs;
    char key[KEY_LEN];
    char value[VALUE_LEN];
} block;

static struct {
    block **slots;
    uint64_t mask;
} plain;

__extension__ typedef unsigned __int128 wide;

static uint64_t plain_hash(const char *key)
{
    wide product =
        (wide)(word_of(key) ^ UINT64_C(0xa0761d6478bd642f)) * (word_of(key + 8) ^ UINT64_C(0xe7037ed1a0b428db));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void plain_put(const char *key, const char *value)
{
    block *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        fail("no memory");
    }
    atomic_init(&fresh->refs, 1);
    memcpy(fresh->key, key, KEY_LEN);
    memcpy(fresh->value, value, VALUE_LEN);
    uint64_t at = plain_hash(key) & plain.mask;
    while (plain.slots[at] != NULL) {
        at = (at + 1) & plain.mask;
    }
    plain.slots[at] = fresh;
}

static bool plain_hit(const char *key)
{
    for (uint64_t at = plain_hash(key) & plain.mask; plain.slots[at] != NULL; at = (at + 1) & plain.mask) {
        block *found = plain.slots[at];
        if (memcmp(found->key, key, KEY_LEN) == 0) {
            (void)atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
            char seen = *(volatile char *)found->value;
            (void)seen;
            (void)atomic_fetch_sub_explicit(&found->refs, 1, memory_order_acq_rel);
            return true;
        }
    }
    return false;
}

/* ---- uthash, a mutex and a list ---------------------------------------------------------------------------------- */

#if HAS_UTHASH
typedef struct node node;
struct node {
    char key[KEY_LEN];
    node *prev; /* in the order of use */
    node *next;
    atomic_uint *refs; /* of the value, which is behind it */
    UT_hash_handle hh;
};

static struct {
    pthread_mutex_t lock;
    node *table;
    node order; /* the most recently used first */
} ut = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ut_link(node *at)
{
    at->prev = &ut.order;
    at->next = ut.order.next;
    at->next->prev = at;
    ut.order.next = at;
}

static void ut_put(const char *key, const char *value)
{
    node *fresh = malloc(sizeof *fresh);
    atomic_uint *refs = malloc(sizeof *refs + VALUE_LEN);
    if (fresh == NULL || refs == NULL) {
        fail("no memory");
    }
    if (ut.order.next == NULL) {
        ut.order.next = ut.order.prev = &ut.order;
    }
    memcpy(fresh->key, key, KEY_LEN);
    memcpy(refs + 1, value, VALUE_LEN);
    atomic_init(refs, 1);
    fresh->refs = refs;
    HASH_ADD(hh, ut.table, key, KEY_LEN, fresh);
    ut_link(fresh);
}

static bool ut_hit(const char *key)
{
    node *found = NULL;
    (void)pthread_mutex_lock(&ut.lock);
    HASH_FIND(hh, ut.table, key, KEY_LEN, found);
    atomic_uint *refs = NULL;
    if (found != NULL) {
        found->prev->next = found->next;
        found->next->prev = found->prev;
        ut_link(found);
        refs = found->refs;
        (void)atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&ut.lock);
    if (refs == NULL) {
        return false;
    }
    char seen = *(volatile char *)(refs + 1);
    (void)seen;
    (void)atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
    return true;
}

#else
static void ut_put(const char *key, const char *value)
{
    (void)key;
    (void)value;
}

static bool ut_hit(const char *key)
{
    (void)key;
    return true;
}
#endif

/* ---- Ours -------------------------------------------------------------------------------------------------------- */

static hf_runtime *runtime;
static hf_cache *cache;

static void ours_open(hf_evict kind)
{
    if (hf_cache_new(&cache, .runtime = runtime, .evict = kind, .count_max = HF_UNLIMITED, .bytes_max = HF_UNLIMITED) !=
        HF_OK) {
        fail(hf_error_text());
    }
}

static void ours_put(const char *key, const char *value)
{
    hf_value *copy = NULL;
    if (hf_value_copy(value, VALUE_LEN, &copy) != HF_OK || hf_cache_put(cache, key, KEY_LEN, copy, NULL) != HF_OK) {
        fail(hf_error_text());
    }
    hf_value_unref(copy);
}

static bool ours_hit(const char *key)
{
    hf_value *value = NULL;
    if (hf_cache_get(cache, key, KEY_LEN, &value) != HF_OK) {
        return false;
    }
    char seen = *(volatile char *)hf_value_data(value);
    (void)seen;
    hf_value_unref(value);
    return true;
}

/* ---- Hits -------------------------------------------------------------------------------------------------------- */

typedef struct side {
    const char *name;
    bool (*hit)(const char *key);
} side;

static const side SIDES[] = {{"floor", plain_hit}, {"S3-FIFO", ours_hit}, {"uthash", ut_hit}};
enum { FLOOR, OURS, UTHASH, SIDE_COUNT };

static char (*drawn)[KEY_LEN]; /* the keys of the requests, in order, made before: a request reads the next one */

typedef struct reader {
    const side *of;
    size_t from;
    int64_t until_ns;
    uint64_t count;
    bool has_missed;
} reader;

static void read_until(reader *me)
{
    size_t at = me->from;
    do {
        for (int i = 0; i < 1024; i++) {
            me->has_missed = !me->of->hit(drawn[at]) || me->has_missed;
            at = (at + 1) % DRAWN;
        }
        me->count += 1024;
    } while (bench_wall_ns() < me->until_ns);
}

static void *read_on_thread(void *arg)
{
    read_until(arg);
    return NULL;
}

static hf_status read_on_fiber(void *arg)
{
    read_until(arg);
    return HF_OK;
}

static void read_on_fibers(reader *readers, int threads)
{
    hf_scope *scope = NULL;
    if (hf_scope_open(&scope, .runtime = runtime) != HF_OK) {
        fail(hf_error_text());
    }
    for (int i = 0; i < threads; i++) {
        if (hf_fork(scope, read_on_fiber, &readers[i]) != HF_OK) {
            fail(hf_error_text());
        }
    }
    if (hf_join(scope) != HF_OK || hf_scope_close(scope) != HF_OK) {
        fail(hf_error_text());
    }
}

static void read_on_threads(reader *readers, int threads)
{
    pthread_t handles[2];
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&handles[i], NULL, read_on_thread, &readers[i]) != 0) {
            fail("no thread");
        }
    }
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(handles[i], NULL);
    }
}

/* Nanoseconds per hit, of all threads together: of processor time on one thread, by the clock on two. */
static double measure(const side *of, int threads, bool on_fibers, double seconds)
{
    reader readers[2];
    int64_t from = bench_wall_ns();
    int64_t cpu_from = bench_cpu_ns();
    for (int i = 0; i < threads; i++) {
        readers[i] = (reader){of, (size_t)i * DRAWN / 2, from + (int64_t)(seconds * 1e9), 0, false};
    }
    if (on_fibers) {
        read_on_fibers(readers, threads);
    } else {
        read_on_threads(readers, threads);
    }
    int64_t took = threads == 1 ? bench_cpu_ns() - cpu_from : bench_wall_ns() - from;
    uint64_t count = 0;
    for (int i = 0; i < threads; i++) {
        count += readers[i].count;
        if (readers[i].has_missed) {
            fail("a key is missing");
        }
    }
    return (double)took / (double)count;
}

static void draw(requests_kind kind, double skew, uint32_t keys)
{
    requests r;
    if (!requests_init(&r, kind, skew, keys, DRAWN)) {
        fail("no memory");
    }
    for (size_t i = 0; i < DRAWN; i++) {
        key_of(kind == REQUESTS_LOOP ? (uint32_t)(hf_rng_next(&r.rng) % keys) : requests_next(&r), drawn[i]);
    }
    requests_deinit(&r);
}

static void fill(void)
{
    char key[KEY_LEN];
    char value[VALUE_LEN] = {1};
    plain.mask = (UINT64_C(1) << 21) - 1;
    plain.slots = calloc((size_t)plain.mask + 1, sizeof *plain.slots);
    drawn = malloc(DRAWN * sizeof *drawn);
    if (plain.slots == NULL || drawn == NULL) {
        fail("no memory");
    }
    ours_open(HF_EVICT_S3FIFO);
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        plain_put(key, value);
        ours_put(key, value);
        ut_put(key, value);
    }
}

static void print_hits(const char *what, double seconds)
{
    double one[SIDE_COUNT] = {0};
    for (int threads = 1; threads <= 2; threads++) {
        double best[SIDE_COUNT] = {1e9, 1e9, 1e9};
        double fiber = 1e9;
        for (int sample = 0; sample < SAMPLES; sample++) {
            for (int i = 0; i < SIDE_COUNT; i++) {
                double ns = measure(&SIDES[i], threads, false, seconds);
                best[i] = ns < best[i] ? ns : best[i];
            }
            double ns = measure(&SIDES[OURS], threads, true, seconds);
            fiber = ns < fiber ? ns : fiber;
        }
        printf("%-22s %7d %8.1f %8.1f %8.1f %8.1f %9.2f %9.2f %10.2f", what, threads, best[FLOOR], best[OURS], fiber,
               HAS_UTHASH ? best[UTHASH] : NAN, best[OURS] / best[FLOOR], fiber / best[FLOOR],
               HAS_UTHASH ? best[UTHASH] / best[OURS] : NAN);
        if (threads == 1) {
            memcpy(one, best, sizeof one);
            printf("\n");
        } else {
            printf("   gain of 2 threads: %.2f, floor %.2f\n", one[OURS] / best[OURS], one[FLOOR] / best[FLOOR]);
        }
        (void)fflush(stdout);
    }
}

static void hits(double seconds)
{
    fill();
    printf("(a) a hit, ns; keys of 16 B, values of 100 B, 1,000,000 entries\n");
    printf("%-22s %7s %8s %8s %8s %8s %9s %9s %10s\n", "", "threads", "floor", "ours", "on fiber", "uthash", "ours/fl",
           "fiber/fl", "uthash/our");
    draw(REQUESTS_LOOP, 0, HOT);
    print_hits("1,000 hot keys", seconds);
    draw(REQUESTS_ZIPF, 0.99, MANY);
    print_hits("zipf 0.99 over 1 M", seconds);
    printf("targets: ours/fl <= 2.5 (goal 1.5), uthash/our on 2 threads >= 3, gain >= 0.8 x that of the floor\n\n");
    if (hf_cache_free(cache) != HF_OK) {
        fail(hf_error_text());
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

typedef struct bytes_row {
    const char *what;
    hf_evict kind;
    int64_t bytes_max;
    uint32_t count; /* puts */
} bytes_row;

static const bytes_row BYTES_ROWS[] = {
    {"S3-FIFO, no bound", HF_EVICT_S3FIFO, HF_UNLIMITED, MANY},
    {"S3-FIFO, at its bound, with ghosts", HF_EVICT_S3FIFO, 192 * (int64_t)MANY, 3 * MANY},
    {"LRU, no bound", HF_EVICT_LRU, HF_UNLIMITED, MANY},
};

static void bytes_of(const bytes_row *row)
{
    char key[KEY_LEN];
    char value[VALUE_LEN] = {1};
    int64_t before = bench_rss();
    if (hf_cache_new(&cache, .runtime = runtime, .evict = row->kind, .count_max = HF_UNLIMITED,
                     .bytes_max = row->bytes_max) != HF_OK) {
        fail(hf_error_text());
    }
    for (uint32_t i = 0; i < row->count; i++) {
        key_of(i, key);
        ours_put(key, value);
    }
    hf_cache_counts counts;
    if (hf_cache_stats(cache, &counts) != HF_OK) {
        fail(hf_error_text());
    }
    double each = (double)(bench_rss() - before) / (double)counts.count;
    printf("%-34s %9llu %8.1f %8.1f %12.1f\n", row->what, (unsigned long long)counts.count, each,
           each - KEY_LEN - VALUE_LEN, (double)counts.bytes / (double)counts.count);
    (void)fflush(stdout);
}

/* Each row in a process of its own: the heap keeps what was freed. */
static void bytes(void)
{
    char self[2048] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fail("no /proc/self/exe");
    }
    printf(
        "(b) bytes per entry; keys of 16 B, values of 100 B, copied (of them hf_value: 16 and 12 of the allocator)\n");
    printf("%-34s %9s %8s %8s %12s\n", "", "entries", "each", "beside", "as counted");
    (void)fflush(stdout);
    for (size_t i = 0; i < sizeof BYTES_ROWS / sizeof *BYTES_ROWS; i++) {
        char command[4096];
        (void)snprintf(command, sizeof command, "'%s' bytes-%zu", self, i);
        if (system(command) != 0) {
            fail("a row failed");
        }
    }
    printf("targets: beside <= 76 (goal 60)\n\n");
}

/* ---- Hit ratios -------------------------------------------------------------------------------------------------- */

static double ratio_of(const requests_row *row, hf_evict kind, hf_value *value)
{
    enum { COUNT = 1000000, WARM = 200000 };
    requests r;
    if (!requests_init(&r, row->kind, row->skew, row->key_count, COUNT) ||
        hf_cache_new(&cache, .runtime = runtime, .evict = kind, .count_max = row->size, .bytes_max = HF_UNLIMITED) !=
            HF_OK) {
        fail("no cache");
    }
    int found = 0;
    for (int i = 0; i < COUNT; i++) {
        uint32_t key = requests_next(&r);
        if (hf_cache_get(cache, &key, sizeof key, NULL) == HF_OK) {
            found += i >= WARM;
        } else if (hf_cache_put(cache, &key, sizeof key, value, NULL) != HF_OK) {
            fail(hf_error_text());
        }
    }
    requests_deinit(&r);
    if (hf_cache_free(cache) != HF_OK) {
        fail(hf_error_text());
    }
    return (double)found / (COUNT - WARM);
}

static void ratios(void)
{
    hf_value *value = NULL;
    if (hf_value_copy("v", 1, &value) != HF_OK) {
        fail("no memory");
    }
    printf("(c) hit ratios; 100,000 keys\n%-34s %8s %8s %8s %8s\n", "", "LRU", "S3-FIFO", "best", "of best");
    for (size_t i = 0; i < sizeof REQUESTS_ROWS / sizeof *REQUESTS_ROWS; i++) {
        const requests_row *row = &REQUESTS_ROWS[i];
        requests r;
        if (!requests_init(&r, row->kind, row->skew, row->key_count, 1)) {
            fail("no memory");
        }
        double best = requests_best(&r, row->size);
        requests_deinit(&r);
        double lru = ratio_of(row, HF_EVICT_LRU, value);
        double s3fifo = ratio_of(row, HF_EVICT_S3FIFO, value);
        printf("%-34s %8.3f %8.3f %8.3f %8.3f\n", row->what, lru, s3fifo, best, s3fifo / best);
        (void)fflush(stdout);
    }
    printf("targets: zipf 1.0 >= 0.95 of the best static set, the loop >= 0.6, never more than 0.01 under LRU\n");
    hf_value_unref(value);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    if (hf_runtime_new(&runtime, .threads = 2) != HF_OK) {
        fail("no runtime");
    }
    if (strncmp(mode, "bytes-", 6) == 0) {
        bytes_of(&BYTES_ROWS[strtoul(mode + 6, NULL, 10) % (sizeof BYTES_ROWS / sizeof *BYTES_ROWS)]);
        return 0;
    }
    if (*mode == '\0' || strcmp(mode, "hit") == 0) {
        hits(seconds);
    }
    if (*mode == '\0' || strcmp(mode, "bytes") == 0) {
        bytes();
    }
    if (*mode == '\0' || strcmp(mode, "ratio") == 0) {
        ratios();
    }
    return hf_runtime_free(runtime) == HF_OK ? 0 : 1;
}
