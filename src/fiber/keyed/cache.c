/* The verbs of a cache, and the cache with exact LRU: one lock over a set of keys and the order of their use (S9).
 * Pinned entries are not in the order, so the next entry to be evicted is always the first of the list. on_evict is
 * called, and values are released, after the lock was released. The other kind of cache is in s3fifo.c.
 *
 * fiber-U1  After every put: count <= count_max and bytes <= bytes_max.
 * fiber-U2  An entry is either in `order` or pinned, never both.
 * fiber-U3  A put that could only succeed by evicting a pinned entry changes nothing and fails with HF_ERR_LIMIT. */
#include "fiber/keyed/cache_private.h"
#include "fiber/keyed/s3_read.h"
#include "fiber/verbs.h"

#include <string.h>

enum { COUNT_DEFAULT = 100 };
#define S3_BYTES_DEFAULT (UINT64_C(64) << 20)

typedef struct entry {
    hf_key_node key;
    hf_node order; /* linked unless pinned; after eviction: in the list of evicted entries */
    hf_value *value;
    uint64_t pins;
    int64_t expires; /* by the environment's clock; used only if the cache has a ttl */
    unsigned char bytes[];
} entry;

static uint64_t bound(int64_t option, uint64_t usual)
{
    return option == 0 ? usual : (option < 0 ? UINT64_MAX : (uint64_t)option);
}

static hf_status check_options(hf_fiber *self, const hf_cache_options *options)
{
    if ((options->count_max < 0 && options->count_max != HF_UNLIMITED) ||
        (options->bytes_max < 0 && options->bytes_max != HF_UNLIMITED)) {
        return hf_refuse(self, HF_ERR_INVALID, "the bounds of a cache are numbers or HF_UNLIMITED");
    }
    if (options->evict != HF_EVICT_LRU && options->evict != HF_EVICT_S3FIFO) {
        return hf_refuse(self, HF_ERR_INVALID, "a cache evicts by HF_EVICT_LRU or HF_EVICT_S3FIFO");
    }
    if (options->ttl.ns < 0) {
        return hf_refuse(self, HF_ERR_INVALID, "the ttl of a cache is not negative");
    }
    if (options->shards < 0 || (options->shards & (options->shards - 1)) != 0 || options->shards > HF_SHARDS_MAX ||
        (options->shards > 1 && options->evict == HF_EVICT_LRU)) {
        return hf_refuse(self, HF_ERR_INVALID,
                         "an S3-FIFO cache has a power of two of shards, up to %d, an LRU cache has none",
                         HF_SHARDS_MAX);
    }
    return HF_OK;
}

hf_status hf_cache_new_with(hf_cache **ret_cache, const hf_cache_options *options)
{
    HF_OPTIONS(hf_cache_options, options, hf_cache_new);
    HF_VERB_ENTER(self, hf_cache_new, options->runtime);
    if (ret_cache == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_cache_new needs a place for the cache"));
    }
    hf_status status = check_options(self, options);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_runtime *rt = NULL;
    hf_cache *cache = hf_object_new(self, "hf_cache_new", options->runtime, sizeof *cache, &rt, &status);
    if (cache != NULL) {
        bool is_lru = options->evict == HF_EVICT_LRU;
        cache->rt = rt;
        cache->name = options->name != NULL ? options->name : "cache";
        cache->seed = hf_keys_seed(rt);
        cache->count_max = bound(options->count_max, is_lru ? COUNT_DEFAULT : UINT64_MAX);
        cache->bytes_max = bound(options->bytes_max, is_lru ? UINT64_MAX : S3_BYTES_DEFAULT);
        cache->ttl_ns = options->ttl.ns == INT64_MAX ? 0 : options->ttl.ns;
        cache->on_evict = options->on_evict;
        cache->state = options->state;
        hf_list_init(&cache->order);
        cache->s3 = is_lru ? NULL : hf_s3_new(cache, options->shards);
        if (!is_lru && cache->s3 == NULL) {
            hf_rt_free(rt, cache, sizeof *cache);
            HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a cache"));
        }
        cache->is_quick = !is_lru && rt->env->ops->point == NULL;
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
    if (is_used || (cache->s3 != NULL && hf_s3_has_pins(cache->s3))) {
        HF_LEAVE(self, hf_object_in_use(self, cache->rt, "hf_cache_free", cache->name));
    }
    hf_leave(self);
    if (cache->s3 != NULL) {
        hf_s3_free(cache);
    }
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

static bool is_expired(const hf_cache *cache, const entry *at, int64_t now)
{
    return cache->ttl_ns != 0 && now >= at->expires;
}

static int64_t expires_at(const hf_cache *cache, int64_t now)
{
    return now > INT64_MAX - cache->ttl_ns ? INT64_MAX : now + cache->ttl_ns;
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
    if (HF_LIKELY(cache != NULL && key != NULL && key_len <= HF_KEY_LEN_MAX)) {
        return HF_OK;
    }
    if (cache == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a cache", verb);
    }
    return hf_key_check(self, verb, key, key_len);
}

/* Locks the cache and finds the entry; NULL = there is none. */
static entry *lock_and_find(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len)
{
    uint64_t hash = hf_key_hash(cache->seed, key, key_len);
    hf_sync_point(self);
    hf_spin_lock(&cache->lock);
    return find(cache, hash, key, key_len);
}

static hf_status look_up_lru(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value,
                             bool with_pin)
{
    int64_t now = hf_cache_now(cache);
    entry *found = lock_and_find(self, cache, key, key_len);
    if (found != NULL && is_expired(cache, found, now)) {
        found = NULL; /* it stays until it is evicted or replaced */
    }
    if (found != NULL) {
        cache->hits++;
        touch(cache, found);
        if (with_pin) {
            pin(cache, found);
        }
        if (ret_value != NULL) {
            *ret_value = hf_value_ref(found->value);
        }
    } else {
        cache->misses++;
    }
    hf_spin_unlock(&cache->lock);
    return found != NULL ? HF_OK : HF_ERR_NOT_FOUND;
}

/* Everything but a hit of an S3-FIFO cache. */
static HF_NOINLINE hf_status get_inside(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    HF_VERB_ENTER(self, hf_cache_get, cache != NULL ? cache->rt : NULL);
    hf_status status = check(self, cache, key, key_len, "hf_cache_get");
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    if (HF_LIKELY(cache->s3 != NULL)) {
        hf_sync_point(self);
        status = hf_s3_get(cache, key, key_len, ret_value) ? HF_OK : HF_ERR_NOT_FOUND;
    } else {
        status = look_up_lru(self, cache, key, key_len, ret_value, false);
    }
    if (status == HF_ERR_NOT_FOUND) {
        hf_self_note(self, HF_ERR_NOT_FOUND, "hf_cache_get");
    }
    HF_LEAVE(self, status);
}

hf_status hf_cache_get(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    return HF_LIKELY(hf_s3_hit(cache, key, key_len, NULL, NULL, ret_value))
               ? HF_OK
               : get_inside(cache, key, key_len, ret_value);
}

hf_status hf_cache_pin(hf_cache *cache, const void *key, size_t key_len, hf_value **ret_value)
{
    HF_VERB_ENTER(self, hf_cache_pin, cache != NULL ? cache->rt : NULL);
    hf_status status = check(self, cache, key, key_len, "hf_cache_pin");
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    if (cache->s3 != NULL) {
        hf_sync_point(self);
        status = hf_s3_pin(cache, key, key_len, ret_value);
        if (status == HF_ERR_LIMIT) {
            (void)hf_refuse(self, status, "the entry of cache '%s' has as many pins as an entry can have", cache->name);
        }
    } else {
        status = look_up_lru(self, cache, key, key_len, ret_value, true);
    }
    if (status == HF_ERR_NOT_FOUND) {
        hf_self_note(self, HF_ERR_NOT_FOUND, "hf_cache_pin");
    }
    HF_LEAVE(self, status);
}

static bool visit_lru(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len,
                      bool (*look)(void *arg, hf_value *value), void *arg)
{
    int64_t now = hf_cache_now(cache);
    entry *found = lock_and_find(self, cache, key, key_len);
    bool is_hit = found != NULL && !is_expired(cache, found, now) && look(arg, found->value);
    if (is_hit) {
        cache->hits++;
        touch(cache, found);
    } else {
        cache->misses++;
    }
    hf_spin_unlock(&cache->lock);
    return is_hit;
}

static HF_NOINLINE bool visit_inside(hf_cache *cache, const void *key, size_t key_len,
                                     bool (*look)(void *arg, hf_value *value), void *arg)
{
    hf_fiber *self = hf_enter(cache->rt);
    if (self == NULL) {
        return false;
    }
    bool is_hit = false;
    if (HF_LIKELY(check(self, cache, key, key_len, "hf_cache_visit") == HF_OK)) {
        if (HF_LIKELY(cache->s3 != NULL)) {
            hf_sync_point(self);
            is_hit = hf_s3_visit(cache, key, key_len, look, arg);
        } else {
            is_hit = visit_lru(self, cache, key, key_len, look, arg);
        }
    }
    hf_leave(self);
    return is_hit;
}

bool hf_cache_visit(hf_cache *cache, const void *key, size_t key_len, bool (*look)(void *arg, hf_value *value),
                    void *arg)
{
    return HF_LIKELY(hf_s3_hit(cache, key, key_len, look, arg, NULL)) || visit_inside(cache, key, key_len, look, arg);
}

/* ---- Putting ----------------------------------------------------------------------------------------------------- */

/* Work that a put leaves for the time after the lock is released. */
typedef struct leftovers {
    hf_list evicted;
    hf_value *replaced;
    bool was_expired; /* the entry was there, but could not be found any more */
} leftovers;

/* The entry is in no list. */
static void take_out(hf_cache *cache, entry *gone)
{
    hf_keys_remove(&cache->keys, &gone->key);
    hf_assert(gone->pins == 0 && cache->bytes >= len_of(gone)); /* fiber-U2 */
    cache->bytes -= len_of(gone);
}

static bool evict_first(hf_cache *cache, hf_list *evicted)
{
    hf_node *node = hf_list_pop_front(&cache->order);
    if (node == NULL) {
        return false;
    }
    take_out(cache, HF_CONTAINER(node, entry, order));
    cache->evictions++;
    hf_list_push_back(evicted, node);
    return true;
}

static void evict_over_bound(hf_cache *cache, hf_list *evicted)
{
    while (cache->keys.count > cache->count_max || cache->bytes > cache->bytes_max) {
        bool is_evicted = evict_first(cache, evicted);
        hf_assert(is_evicted); /* fiber-U3: may_hold said so */
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
static void replace(hf_cache *cache, entry *old, hf_value *value, int64_t now, leftovers *left)
{
    uint64_t before = len_of(old);
    left->was_expired = is_expired(cache, old, now);
    old->expires = expires_at(cache, now);
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

static entry *entry_new(hf_cache *cache, uint64_t hash, const void *key, size_t key_len, hf_value *value, int64_t now)
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
        fresh->expires = expires_at(cache, now);
    }
    return fresh;
}

/* `*fresh` is used, and set to NULL, when the key is new. HF_ERR_NOT_FOUND: it is new and there is no fresh entry
 * yet. */
static hf_status put_locked(hf_cache *cache, uint64_t hash, const void *key, size_t key_len, hf_value *value,
                            int64_t now, entry **fresh, leftovers *left)
{
    hf_status status = HF_OK;
    hf_spin_lock(&cache->lock);
    entry *old = find(cache, hash, key, key_len);
    if (!may_hold(cache, old, (uint64_t)hf_value_len(value) + key_len)) {
        status = HF_ERR_LIMIT;
    } else if (old != NULL) {
        replace(cache, old, value, now, left);
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
    uint64_t bytes = cache->s3 != NULL ? hf_s3_cost(cache, key_len, len) : len + key_len;
    if (len > UINT64_MAX / 2 || bytes > (cache->s3 != NULL ? hf_s3_cost_max(cache->s3) : cache->bytes_max)) {
        return hf_refuse_at(self, HF_ERR_TOO_BIG, "hf_cache_put",
                            "an entry of %llu bytes is over the bound of cache '%s'", (unsigned long long)bytes,
                            cache->name);
    }
    return HF_OK;
}

static hf_status put_lru(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new,
                         leftovers *left, entry **fresh)
{
    uint64_t hash = hf_key_hash(cache->seed, key, key_len);
    int64_t now = hf_cache_now(cache);
    *ret_is_new = false;
    hf_status status = put_locked(cache, hash, key, key_len, value, now, fresh, left);
    if (status == HF_ERR_NOT_FOUND) {
        *fresh = entry_new(cache, hash, key, key_len, value, now);
        status = *fresh == NULL ? HF_ERR_NOMEM : put_locked(cache, hash, key, key_len, value, now, fresh, left);
        *ret_is_new = *fresh == NULL;
    }
    *ret_is_new = *ret_is_new || left->was_expired;
    return status;
}

hf_status hf_cache_put(hf_cache *cache, const void *key, size_t key_len, hf_value *value, bool *ret_is_new)
{
    HF_VERB_ENTER(self, hf_cache_put, cache != NULL ? cache->rt : NULL);
    hf_status status = check_put(self, cache, key, key_len, value);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    leftovers left = {.replaced = NULL};
    hf_s3_gone gone = {.home = NULL};
    hf_list_init(&left.evicted);
    entry *fresh = NULL;
    bool is_new = false;
    hf_sync_point(self);
    status = cache->s3 != NULL ? hf_s3_put(cache, key, key_len, value, &is_new, &gone)
                               : put_lru(cache, key, key_len, value, &is_new, &left, &fresh);
    if (status == HF_ERR_LIMIT) {
        (void)hf_refuse(self, status, "cache '%s' is full of pinned entries: unpin some, or raise its bounds",
                        cache->name);
    } else if (status == HF_ERR_NOMEM) {
        (void)hf_refuse(self, status, "no memory for an entry of cache '%s'", cache->name);
    }
    hf_leave(self);
    if (cache->s3 != NULL) {
        hf_s3_clean_up(cache, &gone);
    } else {
        clean_up(cache, &left, fresh);
    }
    if (status == HF_OK && ret_is_new != NULL) {
        *ret_is_new = is_new;
    }
    return status;
}

/* ---- The rest ---------------------------------------------------------------------------------------------------- */

static hf_status unpin_lru(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len)
{
    entry *found = lock_and_find(self, cache, key, key_len);
    bool is_pinned = found != NULL && found->pins > 0;
    if (is_pinned) {
        unpin(cache, found);
    }
    hf_spin_unlock(&cache->lock);
    return is_pinned ? HF_OK : HF_ERR_NOT_FOUND;
}

hf_status hf_cache_unpin(hf_cache *cache, const void *key, size_t key_len)
{
    HF_VERB_ENTER(self, hf_cache_unpin, cache != NULL ? cache->rt : NULL);
    hf_status status = check(self, cache, key, key_len, "hf_cache_unpin");
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    if (cache->s3 != NULL) {
        hf_sync_point(self);
        status = hf_s3_unpin(cache, key, key_len) ? HF_OK : HF_ERR_NOT_FOUND;
    } else {
        status = unpin_lru(self, cache, key, key_len);
    }
    if (status == HF_ERR_NOT_FOUND) {
        status = hf_refuse(self, HF_ERR_MISUSE, "the entry of cache '%s' is not pinned", cache->name);
    }
    HF_LEAVE(self, status);
}

/* HF_ERR_MISUSE: it is pinned. */
static hf_status remove_lru(hf_fiber *self, hf_cache *cache, const void *key, size_t key_len, entry **ret_gone)
{
    int64_t now = hf_cache_now(cache);
    entry *found = lock_and_find(self, cache, key, key_len);
    bool is_pinned = found != NULL && found->pins > 0;
    if (found != NULL && !is_pinned) {
        hf_list_remove(&found->order);
        take_out(cache, found);
        *ret_gone = found;
    }
    hf_spin_unlock(&cache->lock);
    if (is_pinned) {
        return HF_ERR_MISUSE;
    }
    return found != NULL && !is_expired(cache, found, now) ? HF_OK : HF_ERR_NOT_FOUND;
}

hf_status hf_cache_remove(hf_cache *cache, const void *key, size_t key_len)
{
    HF_VERB_ENTER(self, hf_cache_remove, cache != NULL ? cache->rt : NULL);
    hf_status status = check(self, cache, key, key_len, "hf_cache_remove");
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    entry *found = NULL;
    hf_s3_gone gone = {.home = NULL};
    if (cache->s3 != NULL) {
        hf_sync_point(self);
        status = hf_s3_remove(cache, key, key_len, &gone);
    } else {
        status = remove_lru(self, cache, key, key_len, &found);
    }
    if (status == HF_ERR_MISUSE) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "the entry of cache '%s' is pinned: unpin it first", cache->name));
    }
    if (status == HF_ERR_NOT_FOUND) {
        hf_self_note(self, HF_ERR_NOT_FOUND, "hf_cache_remove");
    }
    hf_leave(self);
    if (cache->s3 != NULL) {
        hf_s3_clean_up(cache, &gone);
    } else {
        entry_free(cache, found);
    }
    return status;
}

/* All of it at once: exact LRU is for caches with few entries. */
static void sweep_lru(hf_cache *cache, hf_cache_test is_gone, void *arg, hf_list *gone, size_t *ret_count)
{
    hf_spin_lock(&cache->lock);
    HF_LIST_EACH(node, &cache->order)
    {
        entry *at = HF_CONTAINER(node, entry, order);
        if (is_gone(arg, at->bytes, at->key.len, at->value)) {
            hf_list_remove(node);
            take_out(cache, at);
            hf_list_push_back(gone, node);
            ++*ret_count;
        }
    }
    hf_spin_unlock(&cache->lock);
}

bool hf_cache_sweep(hf_cache *cache, uint64_t *cursor, size_t portion, hf_cache_test is_gone, void *arg,
                    size_t *ret_count)
{
    hf_fiber *self = hf_enter(cache->rt);
    if (self == NULL) {
        return false;
    }
    size_t count = 0;
    bool has_more = false;
    hf_s3_gone gone = {.home = NULL};
    hf_list removed;
    hf_list_init(&removed);
    hf_sync_point(self);
    if (cache->s3 != NULL) {
        has_more = hf_s3_sweep(cache, cursor, portion, is_gone, arg, &count, &gone);
    } else {
        sweep_lru(cache, is_gone, arg, &removed, &count);
    }
    hf_leave(self);
    if (cache->s3 != NULL) {
        hf_s3_clean_up(cache, &gone);
    }
    HF_LIST_EACH(node, &removed)
    {
        entry_free(cache, HF_CONTAINER(node, entry, order));
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return has_more;
}

static void trim_s3(hf_cache *cache, uint64_t bytes)
{
    for (bool has_more = true; has_more;) {
        hf_fiber *self = hf_enter(cache->rt);
        if (self == NULL) {
            return;
        }
        hf_s3_gone gone = {.home = NULL};
        hf_sync_point(self);
        has_more = hf_s3_trim(cache, bytes, &gone);
        hf_leave(self);
        hf_s3_clean_up(cache, &gone);
    }
    hf_s3_flush(cache);
}

void hf_cache_trim(hf_cache *cache, uint64_t bytes)
{
    if (cache->s3 != NULL) {
        trim_s3(cache, bytes);
        return;
    }
    hf_fiber *self = hf_enter(cache->rt);
    if (self == NULL) {
        return;
    }
    leftovers left = {.replaced = NULL};
    hf_list_init(&left.evicted);
    hf_sync_point(self);
    hf_spin_lock(&cache->lock);
    for (bool has_evicted = true; has_evicted && cache->bytes > bytes;) {
        has_evicted = evict_first(cache, &left.evicted);
    }
    hf_spin_unlock(&cache->lock);
    hf_leave(self);
    clean_up(cache, &left, NULL);
}

hf_status hf_cache_stats(hf_cache *cache, hf_cache_counts *ret_counts)
{
    if (cache == NULL || ret_counts == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_cache_stats needs a cache and a place for the counts");
    }
    HF_VERB_ENTER(self, hf_cache_stats, cache->rt);
    if (cache->s3 != NULL) {
        hf_s3_counts(cache->s3, ret_counts);
        HF_LEAVE(self, HF_OK);
    }
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
