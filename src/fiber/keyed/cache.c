/* The cache: one lock over a set of keys and the order of their use (S9). Pinned entries are not in the order, so
 * the next entry to be evicted is always the first of the list. on_evict is called, and values are released, after
 * the lock was released.
 *
 * fiber-U1  After every put: count <= count_max and bytes <= bytes_max.
 * fiber-U2  An entry is either in `order` or pinned, never both.
 * fiber-U3  A put that could only succeed by evicting a pinned entry changes nothing and fails with HF_ERR_LIMIT. */
#include "fiber/keyed/keys.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

#include <string.h>

enum { COUNT_DEFAULT = 100 };

typedef struct entry {
    hf_key_node key;
    hf_node order; /* linked unless pinned; after eviction: in the list of evicted entries */
    hf_value *value;
    uint64_t pins;
    unsigned char bytes[];
} entry;

struct hf_cache {
    hf_spin lock;
    hf_keys keys;
    hf_list order; /* least recently used first */
    uint64_t bytes;
    uint64_t pinned_count;
    uint64_t pinned_bytes;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    uint64_t count_max;
    uint64_t bytes_max;
    uint64_t seed;
    hf_runtime *rt;
    const char *name;
    void (*on_evict)(void *state, const void *key, size_t key_len, hf_value *value);
    void *state;
};

static uint64_t bound(int64_t option, uint64_t usual)
{
    return option == 0 ? usual : (option < 0 ? UINT64_MAX : (uint64_t)option);
}

hf_status hf_cache_new_with(hf_cache **ret_cache, const hf_cache_options *options)
{
    HF_OPTIONS(hf_cache_options, options, hf_cache_new);
    HF_VERB_ENTER(self, hf_cache_new, options->runtime);
    if (ret_cache == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_cache_new needs a place for the cache"));
    }
    if ((options->count_max < 0 && options->count_max != HF_UNLIMITED) ||
        (options->bytes_max < 0 && options->bytes_max != HF_UNLIMITED)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "the bounds of a cache are numbers or HF_UNLIMITED"));
    }
    hf_runtime *rt = NULL;
    hf_status status = HF_OK;
    hf_cache *cache = hf_object_new(self, "hf_cache_new", options->runtime, sizeof *cache, &rt, &status);
    if (cache != NULL) {
        cache->rt = rt;
        cache->name = options->name != NULL ? options->name : "cache";
        cache->seed = hf_keys_seed(rt);
        cache->count_max = bound(options->count_max, COUNT_DEFAULT);
        cache->bytes_max = bound(options->bytes_max, UINT64_MAX);
        cache->on_evict = options->on_evict;
        cache->state = options->state;
        hf_list_init(&cache->order);
        *ret_cache = cache;
    }
    HF_LEAVE(self, status);
}

/* Outside the library: letting a value go may run the user's code. */
static void entry_free(hf_cache *cache, entry *gone)
{
    if (gone != NULL) {
        hf_value_unref(gone->value);
        hf_rt_free(cache->rt, gone, sizeof *gone + gone->key.len);
    }
}

hf_status hf_cache_free(hf_cache *cache)
{
    if (cache == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_cache_free, cache->rt);
    hf_spin_lock(&cache->lock);
    bool is_used = cache->pinned_count > 0;
    hf_spin_unlock(&cache->lock);
    if (is_used) {
        HF_LEAVE(self, hf_object_in_use(self, cache->rt, "hf_cache_free", cache->name));
    }
    hf_leave(self);
    HF_LIST_EACH(node, &cache->order)
    {
        entry_free(cache, HF_CONTAINER(node, entry, order));
    }
    hf_rt_free(cache->rt, cache, sizeof *cache);
    return HF_OK;
}

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

static entry *find(hf_cache *cache, uint64_t hash, const void *key, size_t key_len)
{
    hf_key_node *found = hf_keys_find(&cache->keys, hash, key, key_len);
    return found != NULL ? HF_CONTAINER(found, entry, key) : NULL;
}

static uint64_t len_of(const entry *at)
{
    return (uint64_t)hf_value_len(at->value) + at->key.len;
}

static void touch(hf_cache *cache, entry *at)
{
    hf_assert((at->pins == 0) == hf_node_is_linked(&at->order)); /* fiber-U2 */
    if (at->pins == 0) {
        hf_list_remove(&at->order);
        hf_list_push_back(&cache->order, &at->order);
    }
}

static void pin(hf_cache *cache, entry *at)
{
    hf_assert((at->pins == 0) == hf_node_is_linked(&at->order)); /* fiber-U2 */
    if (at->pins++ == 0) {
        hf_list_remove(&at->order);
        cache->pinned_count++;
        cache->pinned_bytes += len_of(at);
    }
}

static void unpin(hf_cache *cache, entry *at)
{
    hf_assert(at->pins > 0 && !hf_node_is_linked(&at->order)); /* fiber-U2 */
    if (--at->pins == 0) {
        hf_list_push_back(&cache->order, &at->order);
        hf_assert(cache->pinned_count > 0 && cache->pinned_bytes >= len_of(at));
        cache->pinned_count--;
        cache->pinned_bytes -= len_of(at);
    }
}

static hf_status check(hf_fiber *self, const hf_cache *cache, const void *key, size_t key_len, const char *verb)
{
    if (HF_UNLIKELY(cache == NULL)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a cache", verb);
    }
    return hf_key_check(self, verb, key, key_len);
}

/* Checks the arguments, locks the cache and finds the entry; NULL = there is none. On failure the cache is not locked. */
static hf_status lock_and_find(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len, const char *verb,
                               entry **ret_found)
{
    HF_TRY(check(self, cache, key, key_len, verb));
    uint64_t hash = hf_key_hash(cache->seed, key, key_len);
    hf_sync_point(self);
    hf_spin_lock(&cache->lock);
    *ret_found = find(cache, hash, key, key_len);
    return HF_OK;
}

static hf_status look_up(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value,
                         bool with_pin, const char *verb)
{
    entry *found = NULL;
    hf_value *value = NULL;
    hf_status status = lock_and_find(self, cache, key, key_len, verb, &found);
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    if (found != NULL) {
        cache->hits++;
        touch(cache, found);
        if (with_pin) {
            pin(cache, found);
        }
        value = ret_value != NULL ? hf_value_ref(found->value) : NULL;
    } else {
        cache->misses++;
    }
    hf_spin_unlock(&cache->lock);
    if (found == NULL) {
        hf_self_note(self, HF_ERR_NOT_FOUND, verb);
        HF_LEAVE(self, HF_ERR_NOT_FOUND);
    }
    if (ret_value != NULL) {
        *ret_value = value;
    }
    HF_LEAVE(self, HF_OK);
}

hf_status hf_cache_get(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    HF_VERB_ENTER(self, hf_cache_get, cache != NULL ? cache->rt : NULL);
    return look_up(self, cache, key, key_len, ret_value, false, "hf_cache_get");
}

hf_status hf_cache_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    HF_VERB_ENTER(self, hf_cache_pin, cache != NULL ? cache->rt : NULL);
    return look_up(self, cache, key, key_len, ret_value, true, "hf_cache_pin");
}

/* ---- Putting ----------------------------------------------------------------------------------------------------- */

/* Work that a put leaves for the time after the lock is released. */
typedef struct leftovers {
    hf_list evicted;
    hf_value *replaced;
} leftovers;

static void evict_over_bound(hf_cache *cache, hf_list *evicted)
{
    while (cache->keys.count > cache->count_max || cache->bytes > cache->bytes_max) {
        hf_node *node = hf_list_pop_front(&cache->order);
        hf_assert(node != NULL); /* fiber-U3: may_hold said so */
        entry *gone = HF_CONTAINER(node, entry, order);
        hf_keys_remove(&cache->keys, &gone->key);
        hf_assert(gone->pins == 0 && cache->bytes >= len_of(gone)); /* fiber-U2 */
        cache->bytes -= len_of(gone);
        cache->evictions++;
        hf_list_push_back(evicted, node);
    }
    hf_assert(cache->keys.count <= cache->count_max && cache->bytes <= cache->bytes_max); /* fiber-U1 */
}

/* Whether the bounds can be kept by evicting everything that may be evicted, but not the entry itself (fiber-U3). */
static bool may_hold(const hf_cache *cache, const entry *old, uint64_t len)
{
    uint64_t count = cache->pinned_count;
    uint64_t bytes = cache->pinned_bytes;
    if (old != NULL && old->pins > 0) {
        count--;
        bytes -= len_of(old);
    }
    return count < cache->count_max && bytes <= cache->bytes_max - len;
}

/* Under the lock. The entry becomes the youngest before others are dropped: it is never the one that goes. */
static void replace(hf_cache *cache, entry *old, hf_value *value, leftovers *left)
{
    uint64_t before = len_of(old);
    left->replaced = old->value;
    old->value = hf_value_ref(value);
    cache->bytes += len_of(old) - before;
    if (old->pins > 0) {
        cache->pinned_bytes += len_of(old) - before;
    }
    touch(cache, old);
    evict_over_bound(cache, &left->evicted);
}

static void insert(hf_cache *cache, entry *fresh, leftovers *left)
{
    hf_keys_add(&cache->keys, &fresh->key);
    cache->bytes += len_of(fresh);
    hf_list_push_back(&cache->order, &fresh->order);
    evict_over_bound(cache, &left->evicted);
}

static entry *entry_new(hf_cache *cache, uint64_t hash, const void *key, size_t key_len, hf_value *value)
{
    entry *fresh = hf_rt_alloc(cache->rt, sizeof *fresh + key_len);
    if (fresh != NULL) {
        if (key_len > 0) {
            memcpy(fresh->bytes, key, key_len);
        }
        fresh->key.hash = hash;
        fresh->key.bytes = fresh->bytes;
        fresh->key.len = key_len;
        fresh->value = hf_value_ref(value);
    }
    return fresh;
}

/* `*fresh` is used, and set to NULL, when the key is new. HF_ERR_NOT_FOUND: it is new and there is no fresh entry
 * yet. */
static hf_status put_locked(hf_cache *cache, uint64_t hash, const void *key, size_t key_len, hf_value *value,
                            entry **fresh, leftovers *left)
{
    hf_status status = HF_OK;
    hf_spin_lock(&cache->lock);
    entry *old = find(cache, hash, key, key_len);
    if (!may_hold(cache, old, (uint64_t)hf_value_len(value) + key_len)) {
        status = HF_ERR_LIMIT;
    } else if (old != NULL) {
        replace(cache, old, value, left);
    } else if (*fresh != NULL) {
        insert(cache, *fresh, left);
        *fresh = NULL;
    } else {
        status = HF_ERR_NOT_FOUND;
    }
    hf_spin_unlock(&cache->lock);
    return status;
}

/* Outside the library. */
static void clean_up(hf_cache *cache, leftovers *left, entry *fresh)
{
    HF_LIST_EACH(node, &left->evicted)
    {
        entry *gone = HF_CONTAINER(node, entry, order);
        if (cache->on_evict != NULL) {
            cache->on_evict(cache->state, gone->bytes, gone->key.len, gone->value);
        }
        entry_free(cache, gone);
    }
    hf_value_unref(left->replaced);
    entry_free(cache, fresh);
}

static hf_status check_put(hf_fiber *self, const hf_cache *cache, const void *key, size_t key_len,
                           const hf_value *value)
{
    HF_TRY(check(self, cache, key, key_len, "hf_cache_put"));
    if (value == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, "hf_cache_put", "a cache holds values, not NULL");
    }
    uint64_t len = hf_value_len(value);
    if (len > cache->bytes_max || key_len > cache->bytes_max - len) {
        return hf_refuse_at(self, HF_ERR_TOO_BIG, "hf_cache_put",
                            "an entry of %llu bytes is over the bound of cache '%s'",
                            (unsigned long long)(len + key_len), cache->name);
    }
    return HF_OK;
}

hf_status hf_cache_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new)
{
    HF_VERB_ENTER(self, hf_cache_put, cache != NULL ? cache->rt : NULL);
    hf_status status = check_put(self, cache, key, key_len, value);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    uint64_t hash = hf_key_hash(cache->seed, key, key_len);
    leftovers left = {.replaced = NULL};
    hf_list_init(&left.evicted);
    entry *fresh = NULL;
    bool is_new = false;
    hf_sync_point(self);
    status = put_locked(cache, hash, key, key_len, value, &fresh, &left);
    if (status == HF_ERR_NOT_FOUND) {
        fresh = entry_new(cache, hash, key, key_len, value);
        status = fresh == NULL ? HF_ERR_NOMEM : put_locked(cache, hash, key, key_len, value, &fresh, &left);
        is_new = fresh == NULL;
    }
    if (status == HF_ERR_LIMIT) {
        (void)hf_refuse(self, status, "cache '%s' is full of pinned entries: unpin some, or raise its bounds",
                        cache->name);
    } else if (status == HF_ERR_NOMEM) {
        (void)hf_refuse(self, status, "no memory for an entry of cache '%s'", cache->name);
    }
    hf_leave(self);
    clean_up(cache, &left, fresh);
    if (status == HF_OK && ret_is_new != NULL) {
        *ret_is_new = is_new;
    }
    return status;
}

/* ---- The rest ---------------------------------------------------------------------------------------------------- */

hf_status hf_cache_unpin(hf_cache *cache, const void *key, size_t key_len)
{
    HF_VERB_ENTER(self, hf_cache_unpin, cache != NULL ? cache->rt : NULL);
    entry *found = NULL;
    hf_status status = lock_and_find(self, cache, key, key_len, "hf_cache_unpin", &found);
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    bool is_pinned = found != NULL && found->pins > 0;
    if (is_pinned) {
        unpin(cache, found);
    }
    hf_spin_unlock(&cache->lock);
    if (!is_pinned) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "the entry of cache '%s' is not pinned", cache->name));
    }
    HF_LEAVE(self, HF_OK);
}

hf_status hf_cache_remove(hf_cache *cache, const void *key, size_t key_len)
{
    HF_VERB_ENTER(self, hf_cache_remove, cache != NULL ? cache->rt : NULL);
    entry *found = NULL;
    hf_status status = lock_and_find(self, cache, key, key_len, "hf_cache_remove", &found);
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    bool is_pinned = found != NULL && found->pins > 0;
    if (found != NULL && !is_pinned) {
        hf_list_remove(&found->order);
        hf_keys_remove(&cache->keys, &found->key);
        hf_assert(cache->bytes >= len_of(found));
        cache->bytes -= len_of(found);
    }
    hf_spin_unlock(&cache->lock);
    if (is_pinned) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "the entry of cache '%s' is pinned: unpin it first", cache->name));
    }
    if (found == NULL) {
        hf_self_note(self, HF_ERR_NOT_FOUND, "hf_cache_remove");
        HF_LEAVE(self, HF_ERR_NOT_FOUND);
    }
    hf_leave(self);
    entry_free(cache, found);
    return HF_OK;
}

hf_status hf_cache_stats(hf_cache *cache, hf_cache_counts *ret_counts)
{
    if (cache == NULL || ret_counts == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_cache_stats needs a cache and a place for the counts");
    }
    HF_VERB_ENTER(self, hf_cache_stats, cache->rt);
    hf_spin_lock(&cache->lock);
    *ret_counts = (hf_cache_counts){
        .count = cache->keys.count,
        .bytes = cache->bytes,
        .pinned = cache->pinned_count,
        .hits = cache->hits,
        .misses = cache->misses,
        .evictions = cache->evictions,
    };
    hf_spin_unlock(&cache->lock);
    HF_LEAVE(self, HF_OK);
}
