/* (a) What a hit costs. */
#include "cache/parts.h"

#include "../../tests/support/requests.h"

#include <pthread.h>

enum { DRAWN = 1 << 20, SAMPLES = 3 };

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

/* Nanoseconds per hit, of all threads together: processor time, divided by the threads. So other programs on the machine
 * do not count; nor does the time in which a thread waits for a lock. */
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
    int64_t took = (bench_cpu_ns() - cpu_from) / threads;
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

typedef struct hit_peer {
    const char *name;
    const char *metric;
    row_bar kind;
    double bar;        /* of the peer's nanoseconds divided by ours */
    bool on_two_alone; /* the bar is for two threads */
} hit_peer;

static const hit_peer HIT_PEERS[] = {
    {"Caffeine", "caffeine", ROW_AT_LEAST, 1 / 1.5, false}, /* ours <= 1.5 x its nanoseconds */
    {"Ristretto", "ristretto", ROW_AT_LEAST, 2, false},
    {"golang-lru", "lru", ROW_AT_LEAST, 2, false},
    {"memcached, one get", "memcached", ROW_NO_BAR, 0, false},
};

static void hit_rows(const char *what, const char *kind, int threads, const double *ns, double fiber,
                     const double *ns_alone)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s, %d thread%s", what, threads, threads > 1 ? "s" : "");
    row(name, ns[OURS], "ns", "floor", ns[FLOOR], ns[OURS] / ns[FLOOR], ROW_AT_MOST, 2.5);
    row("  on fibers", fiber, "ns", "floor", ns[FLOOR], fiber / ns[FLOOR], ROW_AT_MOST, 2.5);
    row("  hf_depot_get", ns[DEPOT], "ns", "floor", ns[FLOOR], ns[DEPOT] / ns[FLOOR], ROW_NO_BAR, 0);
    for (size_t i = 0; i < sizeof HIT_PEERS / sizeof *HIT_PEERS; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "hit.%s.%d.%s", kind, threads, HIT_PEERS[i].metric);
        double figure = peer(metric);
        if (HIT_PEERS[i].kind != ROW_NO_BAR || !isnan(figure)) {
            row("", ns[OURS], "ns", HIT_PEERS[i].name, figure, figure / ns[OURS], HIT_PEERS[i].kind, HIT_PEERS[i].bar);
        }
    }
    double uthash = HAS_UTHASH ? ns[UTHASH] : NAN;
    row("", ns[OURS], "ns", "uthash, mutex, list", uthash, uthash / ns[OURS], threads > 1 ? ROW_AT_LEAST : ROW_NO_BAR,
        3);
    if (threads > 1) {
        double gain = ns_alone[OURS] / ns[OURS];
        double floor_gain = ns_alone[FLOOR] / ns[FLOOR];
        row("  gain of 2 threads", gain, "x", "floor", floor_gain, gain / floor_gain, ROW_AT_LEAST, 0.8);
    }
}

static void print_hits(const char *what, const char *kind, double seconds)
{
    double alone[SIDE_COUNT] = {0};
    for (int threads = 1; threads <= 2; threads++) {
        double best[SIDE_COUNT];
        for (int i = 0; i < SIDE_COUNT; i++) {
            best[i] = INFINITY;
        }
        double fiber = INFINITY;
        for (int sample = 0; sample < SAMPLES; sample++) {
            for (int i = 0; i < SIDE_COUNT; i++) {
                best[i] = fmin(best[i], measure(&SIDES[i], threads, false, seconds));
            }
            fiber = fmin(fiber, measure(&SIDES[OURS], threads, true, seconds));
        }
        hit_rows(what, kind, threads, best, fiber, alone);
        memcpy(alone, best, sizeof alone);
    }
}

void part_hit(double seconds)
{
    drawn = malloc(DRAWN * sizeof *drawn);
    if (drawn == NULL) {
        fail("no memory");
    }
    sides_fill();
    row_head("(a) a hit; keys of 16 B, values of 100 B, 1,000,000 entries; compared: ours / floor, peer / ours");
    draw(REQUESTS_LOOP, 0, HOT);
    print_hits("1,000 hot keys", "hot", seconds);
    draw(REQUESTS_ZIPF, 0.99, MANY);
    print_hits("zipf 0.99 over 1,000,000", "zipf", seconds);
    free(drawn);
    sides_free();
}

/* The keys of the requests, one after the other, 16 bytes each. */
static void write_drawn(const char *folder, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s.keys", folder, name);
    FILE *file = fopen(path, "we");
    if (file == NULL || fwrite(drawn, sizeof *drawn, DRAWN, file) != DRAWN || fclose(file) != 0) {
        fail("the requests cannot be written");
    }
}

void draw_for_others(const char *folder)
{
    drawn = malloc(DRAWN * sizeof *drawn);
    if (drawn == NULL) {
        fail("no memory");
    }
    draw(REQUESTS_LOOP, 0, HOT);
    write_drawn(folder, "hot");
    draw(REQUESTS_ZIPF, 0.99, MANY);
    write_drawn(folder, "zipf");
    free(drawn);
}
