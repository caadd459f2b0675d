/* A cache in front of a slow source: a hundred fibers want the same value, and it is fetched once.
 *
 * hf_flight lets concurrent calls for one key share one run of the work. hf_cache keeps a bounded
 * number of results and evicts the least recently used entry first. Values have reference counts:
 * an evicted value stays valid for fibers that still hold it. */
#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 100 };

typedef struct library {
    hf_cache *cache;
    hf_flight *flight;
    _Atomic int fetches; /* number of real fetches from the source */
} library;

typedef struct request {
    library *library;
    const char *key;
    size_t got; /* bytes; the client's until the join */
} request;

/* The slow source. It runs as a fiber of the flight's scope, not of the first client: that client
 * may be canceled, and the others still get the value. */
static hf_status fetch(void *arg, hf_value **ret_value)
{
    request *r = arg;
    library *l = r->library;
    if (hf_cache_get(l->cache, r->key, strlen(r->key), ret_value) == HF_OK) {
        return HF_OK; /* another flight landed between the client's look and ours */
    }
    atomic_fetch_add(&l->fetches, 1);
    HF_TRY(hf_sleep(hf_milliseconds(50)));
    char text[64];
    int len = snprintf(text, sizeof text, "everything about %s", r->key);
    HF_TRY(hf_value_copy(text, (size_t)len, ret_value));
    return hf_cache_put(l->cache, r->key, strlen(r->key), *ret_value, NULL);
}

static hf_status get(void *arg)
{
    request *r = arg;
    HF_AUTO(hf_value_unref) hf_value *value = NULL; /* our reference goes at return */
    if (hf_cache_get(r->library->cache, r->key, strlen(r->key), &value) != HF_OK) {
        HF_TRY(hf_flight_run(r->library->flight, r->key, strlen(r->key), fetch, r, &value));
    }
    r->got = hf_value_len(value);
    return HF_OK;
}

static hf_status get_all(library *l, const char *key)
{
    static request requests[CLIENTS];
    HF_AUTO(hf_scope_close) hf_scope *clients = NULL;
    HF_TRY(hf_scope_open(&clients, .name = "clients"));
    for (int i = 0; i < CLIENTS; i++) {
        requests[i] = (request){.library = l, .key = key};
        HF_TRY(hf_fork(clients, get, &requests[i]));
    }
    HF_TRY(hf_join(clients));
    for (int i = 0; i < CLIENTS; i++) {
        if (requests[i].got == 0) {
            return hf_raise(HF_ERR_FAILED, "client %d came away with nothing", i);
        }
    }
    printf("%d clients have %s; fetches so far: %d\n", CLIENTS, key, atomic_load(&l->fetches));
    return HF_OK;
}

static hf_status app(void *arg)
{
    (void)arg;
    library l = {.fetches = 0};
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_AUTO(hf_scope_close) hf_scope *work = NULL; /* where the fetches run */
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_cache_new(&cache, .name = "pages", .count_max = 2, .bytes_max = 4096));
    HF_TRY(hf_scope_open(&work, .name = "fetches", .join = HF_JOIN_DISCARD));
    HF_TRY(hf_flight_new(&flight, .name = "pages", .scope = work));
    l.cache = cache;
    l.flight = flight;

    HF_TRY(get_all(&l, "fibers"));   /* one fetch for a hundred clients */
    HF_TRY(get_all(&l, "fibers"));   /* none: it is in the cache */
    HF_TRY(get_all(&l, "scopes"));   /* one more */
    HF_TRY(get_all(&l, "channels")); /* one more, and the cache of two lets go of "fibers" */
    hf_cache_counts stats;
    HF_TRY(hf_cache_stats(cache, &stats));
    printf("the cache: %llu entries, %llu bytes, %llu hits, %llu evicted\n", (unsigned long long)stats.count,
           (unsigned long long)stats.bytes, (unsigned long long)stats.hits, (unsigned long long)stats.evictions);
    return atomic_load(&l.fetches) == 3 ? HF_OK : hf_raise(HF_ERR_FAILED, "three fetches were expected");
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
