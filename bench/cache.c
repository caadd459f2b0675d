/* What a hit of a cache costs, how much memory an entry takes, and how often there is a hit. Each figure is beside that
 * of the least that is needed for it (the floor), and of other caches.
 *
 *   cache [hit|bytes|ratio] [SECONDS] [PEERS]     all of them, 1 second a sample
 *   cache draw FOLDER                             writes the requests of `hit`, for programs in other languages
 *   cache memcached SOCKET PID                    what an entry takes there, and how long a get takes
 *
 * PEERS is a file of such programs' figures, lines of "metric<TAB>value" (bench/depot.sh makes it). The floor is an
 * open-addressing table of pointers to blocks with a count, the key and the value in one. A hit is a probe, a
 * comparison, and the count up and down. Nothing can leave it, so it needs no protection. */
#include "bench.h"
#include "row.h"

#include "../tests/support/requests.h"

#include <holdfast/holdfast.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
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

/* ---- Our depot, whose memory is such a cache --------------------------------------------------------------------- */

static hf_depot *depot;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    static const char VALUE[VALUE_LEN] = {1};
    (void)state;
    (void)request;
    return hf_reply_value(reply, VALUE, sizeof VALUE);
}

static bool depot_hit(const char *key)
{
    hf_value *value = NULL;
    if (hf_depot_get(depot, hf_depot_key_of_bytes("bench", "user", key, KEY_LEN), &value) != HF_OK) {
        return false;
    }
    char seen = *(volatile char *)hf_value_data(value);
    (void)seen;
    hf_value_unref(value);
    return true;
}

static hf_status depot_fill(void *arg)
{
    (void)arg;
    char key[KEY_LEN];
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        if (!depot_hit(key)) {
            return HF_ERR_FAILED;
        }
    }
    return HF_OK;
}

/* By a fiber: a fetch is then a switch, and not a wake-up of another thread. */
static void depot_open(void)
{
    hf_scope *scope = NULL;
    if (hf_depot_open("bench", &depot, .runtime = runtime, .fetch = fetch, .ttl = hf_hours(24),
                      .bytes_max = INT64_C(8) << 30) != HF_OK ||
        hf_scope_open(&scope, .runtime = runtime) != HF_OK || hf_fork(scope, depot_fill, NULL) != HF_OK ||
        hf_join(scope) != HF_OK || hf_scope_close(scope) != HF_OK) {
        fail(hf_error_text());
    }
}

/* ---- Hits -------------------------------------------------------------------------------------------------------- */

typedef struct side {
    const char *name;
    bool (*hit)(const char *key);
} side;

static const side SIDES[] = {{"floor", plain_hit}, {"hf_cache", ours_hit}, {"uthash", ut_hit}, {"hf_depot", depot_hit}};
enum { FLOOR, OURS, UTHASH, DEPOT, SIDE_COUNT };

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
    depot_open();
}

static const char *peers_file; /* NULL = none */

/* NAN: it was not measured. */
static double peer(const char *metric)
{
    FILE *file = peers_file != NULL ? fopen(peers_file, "re") : NULL;
    char line[256];
    double found = NAN;
    size_t len = strlen(metric);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, metric, len) == 0 && line[len] == '\t') {
            found = strtod(line + len + 1, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
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
    row("", ns[OURS], "ns", "uthash, mutex, list", uthash, uthash / ns[OURS],
        threads > 1 ? ROW_AT_LEAST : ROW_NO_BAR, 3);
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

static void hits(double seconds)
{
    fill();
    row_head("(a) a hit; keys of 16 B, values of 100 B, 1,000,000 entries; compared: ours / floor, peer / ours");
    draw(REQUESTS_LOOP, 0, HOT);
    print_hits("1,000 hot keys", "hot", seconds);
    draw(REQUESTS_ZIPF, 0.99, MANY);
    print_hits("zipf 0.99 over 1,000,000", "zipf", seconds);
    if (hf_depot_close(depot) != HF_OK || hf_cache_free(cache) != HF_OK) {
        fail(hf_error_text());
    }
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

static void draw_for_others(const char *folder)
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

static void bytes_of(const bytes_row *one)
{
    char key[KEY_LEN];
    char value[VALUE_LEN] = {1};
    int64_t before = bench_rss();
    if (hf_cache_new(&cache, .runtime = runtime, .evict = one->kind, .count_max = HF_UNLIMITED,
                     .bytes_max = one->bytes_max) != HF_OK) {
        fail(hf_error_text());
    }
    for (uint32_t i = 0; i < one->count; i++) {
        key_of(i, key);
        ours_put(key, value);
    }
    hf_cache_counts counts;
    if (hf_cache_stats(cache, &counts) != HF_OK) {
        fail(hf_error_text());
    }
    double each = (double)(bench_rss() - before) / (double)counts.count - KEY_LEN - VALUE_LEN;
    row(one->what, each, "B", "as counted", (double)counts.bytes / (double)counts.count - KEY_LEN - VALUE_LEN, each,
        one->kind == HF_EVICT_S3FIFO ? ROW_AT_MOST : ROW_NO_BAR, 76);
}

/* Each row in a process of its own: the heap keeps what was freed. */
static void bytes(void)
{
    char self[2048] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fail("no /proc/self/exe");
    }
    row_head("(b) bytes of an entry beside its key of 16 B and its value of 100 B; hf_value and its allocation take 28");
    for (size_t i = 0; i < sizeof BYTES_ROWS / sizeof *BYTES_ROWS; i++) {
        char command[4096];
        (void)snprintf(command, sizeof command, "'%s' bytes-%zu", self, i);
        if (system(command) != 0) {
            fail("a row failed");
        }
    }
    row("", NAN, "B", "Caffeine", peer("bytes.caffeine"), NAN, ROW_NO_BAR, 0);
    row("", NAN, "B", "memcached", peer("bytes.memcached"), NAN, ROW_NO_BAR, 0);
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

static void ratio_rows(const requests_row *one, double lru, double s3fifo, double best)
{
    bool is_loop = one->kind == REQUESTS_LOOP;
    row(one->what, s3fifo, "", "best static set", best, is_loop ? s3fifo : s3fifo / best,
        is_loop || one->of_best_min > 0 ? ROW_AT_LEAST : ROW_NO_BAR, is_loop ? 0.6 : one->of_best_min);
    row("", s3fifo, "", "LRU", lru, s3fifo - lru, ROW_AT_LEAST, -0.01);
}

static void ratios(void)
{
    hf_value *value = NULL;
    if (hf_value_copy("v", 1, &value) != HF_OK) {
        fail("no memory");
    }
    row_head("(c) hit ratios of S3-FIFO; 100,000 keys; compared: of the best, and more than LRU");
    for (size_t i = 0; i < sizeof REQUESTS_ROWS / sizeof *REQUESTS_ROWS; i++) {
        const requests_row *one = &REQUESTS_ROWS[i];
        requests r;
        if (!requests_init(&r, one->kind, one->skew, one->key_count, 1)) {
            fail("no memory");
        }
        double best = requests_best(&r, one->size);
        requests_deinit(&r);
        ratio_rows(one, ratio_of(one, HF_EVICT_LRU, value), ratio_of(one, HF_EVICT_S3FIFO, value), best);
    }
    hf_value_unref(value);
}

/* ---- memcached --------------------------------------------------------------------------------------------------- */

static double rss_of(long pid)
{
    char path[64];
    long total = 0;
    long resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        fail("memcached does not run");
    }
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* Waits for the answer to a get. */
static void memcached_get(FILE *out, FILE *in, const char *key)
{
    char line[512];
    (void)fprintf(out, "get %.*s\r\n", KEY_LEN, key);
    (void)fflush(out);
    do {
        if (fgets(line, sizeof line, in) == NULL) {
            fail("memcached has gone");
        }
    } while (strcmp(line, "END\r\n") != 0);
}

static void memcached(const char *socket_path, long pid)
{
    enum { GETS = 20000 };
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&name, sizeof name) != 0) {
        fail("memcached does not answer");
    }
    FILE *out = fdopen(fd, "w");
    FILE *in = fdopen(dup(fd), "r");
    if (out == NULL || in == NULL) {
        fail("no memory");
    }
    char key[KEY_LEN];
    double before = rss_of(pid);
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        (void)fprintf(out, "set %.*s 0 0 %d noreply\r\n%0*d\r\n", KEY_LEN, key, VALUE_LEN, VALUE_LEN, 1);
    }
    memcached_get(out, in, key); /* all of them were read */
    bench_print("bytes.memcached", (rss_of(pid) - before) / MANY - KEY_LEN - VALUE_LEN);
    int64_t from = bench_wall_ns();
    for (uint32_t i = 0; i < GETS; i++) {
        key_of(i % HOT, key);
        memcached_get(out, in, key);
    }
    bench_print("hit.hot.1.memcached", (double)(bench_wall_ns() - from) / GETS);
    (void)fclose(out);
    (void)fclose(in);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    peers_file = argc > 3 ? argv[3] : NULL;
    if (strcmp(mode, "draw") == 0 && argc > 2) {
        draw_for_others(argv[2]);
        return 0;
    }
    if (strcmp(mode, "memcached") == 0 && argc > 3) {
        memcached(argv[2], strtol(argv[3], NULL, 10));
        return 0;
    }
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
