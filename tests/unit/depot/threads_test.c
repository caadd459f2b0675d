/* labels: threads */
/* Real threads on one depot: four plain threads and the fibers of a runtime do everything at once on a depot whose
 * memory has room for about 100 entries. What is right is the model's matter (unit/model/depot_model); here the
 * sanitizers must have nothing to say, every call must return what it may, values must be whole, and memory must not
 * grow.
 *
 * Environment: HF_LIFE_SECONDS, for each case; 3 in a build with a sanitizer and 1 in a plain one unless set. */
#include "rig.h"

#include "base/rng.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { THREADS = 4, FIBERS = 8, KEYS = 150, SECONDS = SANITIZED ? 3 : 1 };
static const int64_t RSS_GROWTH_MAX = 24 << 20;

typedef struct scene {
    hf_depot *depot;
    hf_runtime *rt;
    int64_t until_ns;
    _Atomic(uint64_t) calls, fetches, pushes;
    atomic_int number_next;
} scene;

/* A value is its key's id and a number, so that one that is torn or of another key is noticed. */
static bool is_of(const hf_value *value, const char *id)
{
    size_t len = strlen(id);
    return hf_value_len(value) > len && memcmp(hf_value_data(value), id, len) == 0 &&
           ((const char *)hf_value_data(value))[len] == ':';
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    scene *s = state;
    char text[64];
    uint64_t number = atomic_fetch_add(&s->fetches, 1);
    for (uint64_t i = 0; i < number % 4; i++) {
        HF_TRY(hf_yield());
    }
    if (number % 13 == 5) {
        return hf_reply_fail(reply, HF_REPLY_DENIED);
    }
    if (number % 17 == 5) {
        return HF_ERR_NOT_FOUND;
    }
    if (request->etag != NULL && number % 2 == 0) {
        return hf_reply_not_modified(reply);
    }
    HF_TRY(hf_reply_etag(reply, "x"));
    int len = snprintf(text, sizeof text, "%.*s:%llu", (int)request->key.id_len, (const char *)request->key.id,
                       (unsigned long long)number);
    return hf_reply_value(reply, text, (size_t)len);
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    scene *s = state;
    uint64_t number = atomic_fetch_add(&s->pushes, 1);
    HF_TRY(hf_yield());
    if (number % 11 == 3 && request->len > 0) {
        HF_TRY(hf_reply_etag(reply, "y"));
        HF_TRY(hf_reply_value(reply, request->data, request->len));
        return HF_ERR_CONFLICT;
    }
    return number % 101 == 3 ? hf_reply_fail(reply, HF_REPLY_DENIED) : HF_OK;
}

static void check(hf_status status, const char *verb)
{
    static const hf_status ALLOWED[] = {HF_OK,          HF_ERR_NOT_FOUND, HF_ERR_UNAVAILABLE, HF_ERR_DENIED,
                                        HF_ERR_TIMEOUT, HF_ERR_CONFLICT,  HF_ERR_LIMIT,       HF_ERR_CANCELED};
    for (size_t i = 0; i < HF_COUNT_OF(ALLOWED); i++) {
        if (status == ALLOWED[i]) {
            return;
        }
    }
    (void)HF_CHECK_SAY(false, "%s: %s", verb, hf_status_name(status));
}

static void get_one(scene *s, hf_rng *rng, const char *id)
{
    hf_value *value = NULL;
    hf_depot_info info;
    hf_status status = hf_depot_get(s->depot, rig_key(id), &value, .fresh = (hf_fresh)hf_rng_below(rng, 5),
                                    .ret_info = &info, .within = hf_milliseconds(5), .force = true,
                                    .timeout = hf_rng_below(rng, 8) == 0 ? hf_microseconds(50) : hf_nanoseconds(0));
    check(status, "get");
    HF_CHECK_SAY(status != HF_OK || is_of(value, id), "a value of another key");
    hf_value_unref(value);
}

static void write_one(scene *s, hf_rng *rng, const char *id)
{
    char text[64];
    hf_depot_write *write = NULL;
    int len = snprintf(text, sizeof text, "%s:%llu", id, (unsigned long long)hf_rng_next(rng) % 1000000);
    if (hf_rng_below(rng, 6) == 0) {
        check(hf_depot_delete(s->depot, rig_key(id)), "delete");
        return;
    }
    hf_status status = hf_depot_put(s->depot, rig_key(id), text, (size_t)len, .ret_write = &write,
                                    .mode = hf_rng_below(rng, 8) == 0 ? HF_DEPOT_ORIGIN_FIRST : HF_DEPOT_LOCAL_FIRST);
    check(status, "put");
    if (write != NULL && hf_rng_below(rng, 4) == 0) {
        check(hf_depot_write_wait(write, .timeout = hf_milliseconds(2)), "wait");
    }
    hf_depot_write_free(write);
}

static void watch_one(scene *s, hf_rng *rng, const char *id)
{
    hf_watcher *watcher = NULL;
    uint64_t version = 0;
    check(hf_depot_watch(s->depot, rig_key(id), &watcher, .fresh = (hf_fresh)hf_rng_below(rng, 5),
                         .mode = hf_rng_below(rng, 2) == 0 ? HF_FLOW_CONFLATE : HF_FLOW_DROP_OLDEST, .capacity = 4),
          "watch");
    for (int i = 0; watcher != NULL && i < 3; i++) {
        hf_depot_event event;
        hf_status status = hf_watcher_next(watcher, &event, .timeout = hf_microseconds(100));
        check(status, "next");
        if (status == HF_OK && event.kind == HF_DEPOT_DATA) {
            HF_CHECK_SAY(event.version >= version && is_of(event.value, id), "DP4 %s", id);
            version = event.version;
            hf_value_unref(event.value);
        }
    }
    check(hf_watcher_close(watcher), "close");
}

static bool drop_some(void *arg, const hf_depot_pending_write *write)
{
    uint64_t *sequence = arg;
    *sequence = write->is_dead ? write->sequence : *sequence;
    return !write->is_dead;
}

static void do_something(scene *s, hf_rng *rng)
{
    char id[16];
    uint64_t sequence = 0;
    hf_depot_counts counts;
    (void)snprintf(id, sizeof id, "k%d", (int)hf_rng_below(rng, KEYS));
    uint64_t what = hf_rng_below(rng, 1000);
    if (what < 600) {
        get_one(s, rng, id);
    } else if (what < 780) {
        write_one(s, rng, id);
    } else if (what < 880) {
        watch_one(s, rng, id);
    } else if (what < 930) {
        check(hf_depot_invalidate(s->depot, rig_key(id), .hard = what % 2 == 0), "invalidate");
    } else if (what < 940) {
        check(hf_depot_invalidate_namespace(s->depot, "acme", .hard = what % 2 == 0), "invalidate_namespace");
    } else if (what < 945) {
        check(hf_depot_invalidate_all(s->depot), "invalidate_all");
    } else if (what < 955) {
        check(hf_depot_trim(s->depot, 4096), "trim");
    } else if (what < 975) {
        check(hf_depot_prefetch(s->depot, rig_key(id)), "prefetch");
    } else if (what < 985) {
        check(hf_depot_online(s->depot, what > 978), "online");
        check(hf_depot_online(s->depot, true), "online");
    } else if (what < 993) {
        check(hf_depot_stat(s->depot, &counts), "stat");
        HF_CHECK_SAY(counts.bytes <= (uint64_t)s->depot->options.bytes_max, "DP8 %d bytes", (int)counts.bytes);
    } else {
        check(hf_depot_pending(s->depot, drop_some, &sequence), "pending");
        check(sequence != 0 ? hf_depot_drop(s->depot, sequence) : HF_OK, "drop");
    }
    atomic_fetch_add(&s->calls, 1);
}

static void do_everything(scene *s)
{
    hf_rng rng = {.state = (uint64_t)atomic_fetch_add(&s->number_next, 1) * 99 + 7};
    while (hf_now(s->rt).ns < s->until_ns) {
        for (int i = 0; i < 20; i++) {
            do_something(s, &rng);
        }
    }
}

static void *thread_main(void *arg)
{
    do_everything(arg);
    return NULL;
}

static hf_status fiber_main(void *arg)
{
    do_everything(arg);
    return HF_OK;
}

/* Bytes of this process in memory. */
static int64_t rss(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void play_for(scene *s, hf_scope *scope, int64_t ns)
{
    pthread_t threads[THREADS];
    s->until_ns = hf_now(s->rt).ns + ns;
    for (int i = 0; i < FIBERS; i++) {
        HF_CHECK(hf_fork(scope, fiber_main, s) == HF_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, s), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    HF_CHECK(hf_join(scope) == HF_OK);
}

static void play(const char *what, hf_store *store)
{
    const char *asked = getenv("HF_LIFE_SECONDS");
    int64_t ns = hf_seconds(asked != NULL ? strtol(asked, NULL, 10) : SECONDS).ns;
    scene s = {.depot = NULL};
    hf_scope *scope = NULL;
    assert_int_equal(hf_runtime_new(&s.rt, .threads = 2), HF_OK);
    assert_int_equal(hf_scope_open(&scope, .runtime = s.rt), HF_OK);
    hf_depot_options options = {.size = sizeof options,
                                .runtime = s.rt,
                                .fetch = fetch,
                                .push = push,
                                .state = &s,
                                .ttl = hf_milliseconds(20),
                                .negative_ttl = hf_milliseconds(1),
                                .bytes_max = 100 * (int64_t)(sizeof(hf_snap) + 100),
                                .pending_max = 1000,
                                .coalesce = hf_milliseconds(1)};
    assert_int_equal(hf_depot_open_in("threads", &s.depot, &options, store), HF_OK);
    play_for(&s, scope, ns / 5);
    int64_t before = rss();
    play_for(&s, scope, ns - ns / 5);
    int64_t grown = rss() - before;
    print_message("%s: %llu calls, %llu fetches, %llu pushes in %lld ms; RSS grew by %lld KiB of %lld\n", what,
                  (unsigned long long)s.calls, (unsigned long long)s.fetches, (unsigned long long)s.pushes,
                  (long long)(ns / 1000000), (long long)(grown >> 10), (long long)(before >> 10));
    bool is_flat = SANITIZED || grown < RSS_GROWTH_MAX; /* sanitizers keep what was freed */
    HF_CHECK_SAY(is_flat, "RSS grew by %lld bytes", (long long)grown);
    HF_CHECK(s.calls > 100 && s.fetches > 10 && s.pushes > 10);
    HF_CHECK(hf_depot_close(s.depot) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(s.rt) == HF_OK);
}

static void S5_S22_four_threads_do_everything_at_once_on_a_depot_in_memory(void **state)
{
    (void)state;
    play("memory", NULL);
}

static void S5_S22_four_threads_do_everything_at_once_on_a_depot_with_a_store(void **state)
{
    (void)state;
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    assert_int_equal(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store), HF_OK);
    play("store", store); /* takes it */
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S5_S22_four_threads_do_everything_at_once_on_a_depot_in_memory),
        cmocka_unit_test(S5_S22_four_threads_do_everything_at_once_on_a_depot_with_a_store),
    };
    return hf_test_main("depot threads", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
