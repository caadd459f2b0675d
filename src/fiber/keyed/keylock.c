/* A lock per key. Keys are spread over shards, each with a small lock of its own, so that two keys rarely meet.
 *
 *            lock                    unlock, somebody waits
 *   (none) -------> held <--------------------------------- held
 *      ^             |  ^
 *      | over the    |  | lock
 *      | bound       v  |
 *      +----------- idle        in the shard's list, oldest first
 *
 * fiber-K1  An entry that is held is never dropped, even at the bound. Only an entry that is held has waiters.
 * fiber-K2  After every unlock there are at most idle_max idle entries in all. The shard that exceeded the bound
 *           drops one of its own. An idle entry remembers nothing, so nobody can distinguish it from a new one.
 * fiber-K3  Waiters wait under the shard's lock, which lives as long as the whole key lock. */
#include "fiber/crew/strand.h"
#include "fiber/keyed/keys.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

#include <string.h>

enum { SHARDS = 16, IDLE_DEFAULT = 1000 };

typedef struct shard {
    hf_spin lock; /* first: hf_wait.object points here */
    hf_keys keys;
    hf_list idle; /* least recently used first */
    size_t idle_count;
} shard;

struct hf_key_guard {
    hf_key_node key;
    hf_keylock *keylock;
    shard *shard;
    hf_holder owner;
    hf_list waiters;
    hf_node idle; /* linked while nobody holds it */
    unsigned char bytes[];
};

struct hf_keylock {
    hf_runtime *rt;
    const char *name;
    uint64_t seed;
    int64_t idle_max;
    _Atomic(int64_t) idle_count; /* of all shards */
    hf_owned_object owned;
    shard shards[SHARDS];
};

static void entry_free(hf_runtime *rt, hf_key_guard *entry)
{
    if (entry != NULL) {
        hf_rt_free(rt, entry, sizeof *entry + entry->key.len);
    }
}

/* False: a key has waiters, so the object stays. */
static bool free_all(hf_keylock *keylock)
{
    bool is_awaited = false;
    for (size_t i = 0; i < SHARDS; i++) {
        hf_keys *keys = &keylock->shards[i].keys;
        for (hf_key_node *key = hf_keys_any(keys); key != NULL; key = hf_keys_any(keys)) {
            hf_key_guard *entry = HF_CONTAINER(key, hf_key_guard, key);
            hf_keys_remove(keys, key);
            if (hf_list_is_empty(&entry->waiters)) {
                entry_free(keylock->rt, entry);
            } else {
                is_awaited = true;
            }
        }
    }
    if (!is_awaited) {
        hf_rt_free(keylock->rt, keylock, sizeof *keylock);
    }
    return !is_awaited;
}

static void drop_keylock(hf_owned_object *owned)
{
    hf_keylock *keylock = HF_CONTAINER(owned, hf_keylock, owned);
    if (!free_all(keylock)) {
        hf_owned_in_use(keylock->rt, "keylock", keylock->name);
    }
}

hf_status hf_keylock_new_with(hf_keylock **ret_keylock, const hf_keylock_options *options)
{
    HF_OPTIONS(hf_keylock_options, options, hf_keylock_new);
    HF_VERB_ENTER(self, hf_keylock_new, options->runtime);
    if (ret_keylock == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_keylock_new needs a place for the key lock"));
    }
    if (options->idle_max < HF_UNLIMITED) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "idle_max is a number of entries, HF_OFF or HF_UNLIMITED"));
    }
    hf_runtime *rt = NULL;
    hf_status status = HF_OK;
    hf_keylock *keylock = hf_object_new(self, "hf_keylock_new", options->runtime, sizeof *keylock, &rt, &status);
    if (keylock != NULL) {
        keylock->rt = rt;
        keylock->name = options->name != NULL ? options->name : "keylock";
        keylock->seed = hf_keys_seed(rt);
        keylock->idle_max = options->idle_max == 0 ? IDLE_DEFAULT : options->idle_max;
        keylock->idle_max = options->idle_max == HF_OFF ? 0 : keylock->idle_max;
        keylock->idle_max = options->idle_max == HF_UNLIMITED ? INT64_MAX : keylock->idle_max;
        for (size_t i = 0; i < SHARDS; i++) {
            hf_list_init(&keylock->shards[i].idle);
        }
        hf_own(self, &keylock->owned, drop_keylock);
        *ret_keylock = keylock;
    }
    HF_LEAVE(self, status);
}

hf_status hf_keylock_free(hf_keylock *keylock)
{
    if (keylock == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_keylock_free, keylock->rt);
    bool is_used = false;
    for (size_t i = 0; i < SHARDS; i++) {
        shard *at = &keylock->shards[i];
        hf_spin_lock(&at->lock);
        is_used |= at->keys.count > at->idle_count;
        hf_spin_unlock(&at->lock);
    }
    if (is_used) {
        HF_LEAVE(self, hf_object_in_use(self, keylock->rt, "hf_keylock_free", keylock->name));
    }
    hf_status status = hf_disown(self, &keylock->owned, "hf_keylock_free", keylock->name);
    if (status == HF_OK) {
        (void)free_all(keylock);
    }
    HF_LEAVE(self, status);
}

/* ---- Locking ----------------------------------------------------------------------------------------------------- */

static hf_key_guard *entry_new(hf_keylock *keylock, shard *home, uint64_t hash, const void *key, size_t key_len)
{
    hf_key_guard *entry = hf_rt_alloc(keylock->rt, sizeof *entry + key_len);
    if (entry == NULL) {
        return NULL;
    }
    if (key_len > 0) {
        memcpy(entry->bytes, key, key_len);
    }
    entry->key.hash = hash;
    entry->key.bytes = entry->bytes;
    entry->key.len = key_len;
    entry->keylock = keylock;
    entry->shard = home;
    hf_list_init(&entry->waiters);
    return entry;
}

/* Under the shard's lock: makes a free entry the caller's. */
static bool take(hf_key_guard *entry, hf_fiber *self)
{
    hf_assert(entry->owner.fiber != NULL || hf_list_is_empty(&entry->waiters)); /* fiber-K1 */
    if (entry->owner.fiber != NULL && !HF_CANARY(HF_BUG_TWO_HOLDERS)) {
        return false;
    }
    if (hf_node_is_linked(&entry->idle) && !HF_CANARY(HF_BUG_EVICT_HELD)) {
        hf_assert(entry->shard->idle_count > 0);
        hf_list_remove(&entry->idle);
        entry->shard->idle_count--;
        atomic_fetch_sub_explicit(&entry->keylock->idle_count, 1, memory_order_relaxed);
    }
    entry->owner = hf_holder_of(self);
    return true;
}

typedef struct request {
    hf_fiber *self;
    hf_keylock *keylock;
    const void *key;
    size_t key_len;
    const char *verb;
    hf_wait *wait;       /* linked when the key is held; NULL = do not wait */
    hf_key_guard *entry; /* the entry that was found or made */
} request;

/* HF_OK: held. HF_ERR_AGAIN: somebody else holds it, and request->wait is in its queue. */
static hf_status find_or_make(request *want)
{
    hf_keylock *keylock = want->keylock;
    uint64_t hash = hf_key_hash(keylock->seed, want->key, want->key_len);
    shard *home = &keylock->shards[hash >> 60];
    hf_key_guard *fresh = NULL;
    hf_sync_point(want->self);
    hf_spin_lock(&home->lock);
    hf_key_node *found = hf_keys_find(&home->keys, hash, want->key, want->key_len);
    if (found == NULL) {
        hf_spin_unlock(&home->lock);
        fresh = entry_new(keylock, home, hash, want->key, want->key_len);
        if (fresh == NULL) {
            return hf_refuse_at(want->self, HF_ERR_NOMEM, want->verb, "no memory for a lock of '%s'", keylock->name);
        }
        hf_spin_lock(&home->lock);
        found = hf_keys_find(&home->keys, hash, want->key, want->key_len); /* somebody may have been faster */
        if (found == NULL) {
            hf_keys_add(&home->keys, &fresh->key);
            found = &fresh->key;
            fresh = NULL;
        }
    }
    hf_assert(home->idle_count <= home->keys.count);
    hf_key_guard *entry = HF_CONTAINER(found, hf_key_guard, key);
    want->entry = entry;
    hf_status status = take(entry, want->self) ? HF_OK : HF_ERR_AGAIN;
    if (status == HF_ERR_AGAIN && want->wait != NULL) {
        if (hf_holder_is(entry->owner, want->self)) {
            status = HF_ERR_MISUSE;
        } else {
            want->wait->object = home;
            hf_list_push_back(&entry->waiters, &want->wait->node);
        }
    }
    hf_spin_unlock(&home->lock);
    entry_free(keylock->rt, fresh);
    if (status == HF_ERR_MISUSE) {
        (void)hf_refuse_at(want->self, status, want->verb, "the caller holds this key of '%s' already", keylock->name);
    }
    return status;
}

static const hf_wait_kind LOCK = {"hf_keylock_lock", hf_wait_abort_linked};

static hf_status check(hf_fiber *self, const hf_keylock *keylock, const void *key, size_t key_len,
                       hf_key_guard *const *ret_guard, const char *verb)
{
    if (HF_UNLIKELY(keylock == NULL || ret_guard == NULL)) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "a key lock and a place for the guard are needed");
    }
    return hf_key_check(self, verb, key, key_len);
}

hf_status hf_keylock_lock_with(hf_keylock *keylock, const void *key, size_t key_len, hf_key_guard **ret_guard,
                               const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_keylock_lock);
    HF_VERB_ENTER(self, hf_keylock_lock, keylock != NULL ? keylock->rt : NULL);
    hf_status status = check(self, keylock, key, key_len, ret_guard, LOCK.verb);
    status = status == HF_OK ? hf_may_wait_for(self, LOCK.verb, options) : status;
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    hf_wait wait;
    hf_wait_init(&wait, self, &LOCK, NULL, keylock->name);
    request want = {self, keylock, key, key_len, LOCK.verb, &wait, NULL};
    status = find_or_make(&want);
    if (status == HF_ERR_AGAIN) {
        status = hf_park(self, &wait, hf_wait_deadline(self, keylock->rt, options));
    }
    if (status == HF_OK) {
        *ret_guard = want.entry; /* only the holder may touch the entry (fiber-K1) */
    }
    HF_LEAVE(self, status);
}

hf_status hf_keylock_try_lock(hf_keylock *keylock, const void *key, size_t key_len, hf_key_guard **ret_guard)
{
    static const char VERB[] = "hf_keylock_try_lock";
    HF_VERB_ENTER(self, hf_keylock_try_lock, keylock != NULL ? keylock->rt : NULL);
    hf_status status = check(self, keylock, key, key_len, ret_guard, VERB);
    if (status == HF_OK) {
        request want = {self, keylock, key, key_len, VERB, NULL, NULL};
        status = find_or_make(&want);
        if (status == HF_OK) {
            *ret_guard = want.entry;
        } else if (status == HF_ERR_AGAIN) {
            hf_count_if_evicted(self);
            hf_self_note(self, status, VERB);
        }
    }
    HF_LEAVE(self, status);
}

/* ---- Unlocking --------------------------------------------------------------------------------------------------- */

/* Under the shard's lock: no caller wants the entry any more. Returns an entry that the caller must free, or NULL. */
static hf_key_guard *retire(hf_key_guard *entry)
{
    hf_keylock *keylock = entry->keylock;
    shard *home = entry->shard;
    hf_assert(hf_list_is_empty(&entry->waiters) && !hf_node_is_linked(&entry->idle)); /* fiber-K1 */
    entry->owner = HF_HOLDER_NONE;
    hf_list_push_back(&home->idle, &entry->idle);
    home->idle_count++;
    if (atomic_fetch_add_explicit(&keylock->idle_count, 1, memory_order_relaxed) < keylock->idle_max) {
        return NULL;
    }
    hf_key_guard *oldest = HF_CONTAINER(hf_list_pop_front(&home->idle), hf_key_guard, idle);
    hf_assert(oldest->owner.fiber == NULL && hf_list_is_empty(&oldest->waiters)); /* fiber-K1 */
    hf_keys_remove(&home->keys, &oldest->key);
    home->idle_count--;
    atomic_fetch_sub_explicit(&keylock->idle_count, 1, memory_order_relaxed);
    return oldest;
}

hf_status hf_key_unlock(hf_key_guard *guard)
{
    if (guard == NULL) {
        return HF_OK;
    }
    hf_runtime *rt = guard->keylock->rt;
    HF_VERB_ENTER(self, hf_key_unlock, rt);
    shard *home = guard->shard;
    hf_wait *next = NULL;
    hf_key_guard *gone = NULL;
    hf_sync_point(self);
    hf_spin_lock(&home->lock);
    bool is_held = hf_holder_is(guard->owner, self);
    if (HF_LIKELY(is_held)) {
        hf_node *node = hf_list_pop_front(&guard->waiters);
        if (HF_CANARY(HF_BUG_NOT_FIFO) && node != NULL && !hf_list_is_empty(&guard->waiters)) {
            hf_list_push_back(&guard->waiters, node);
            node = hf_list_pop_front(&guard->waiters);
        }
        if (node != NULL) {
            next = HF_CONTAINER(node, hf_wait, node);
            hf_assert(next->object == home); /* fiber-K3 */
            guard->owner = hf_holder_of(next->fiber);
        } else {
            gone = retire(guard);
        }
    }
    hf_spin_unlock(&home->lock); /* from here on the key lock may be gone */
    hf_sync_point(self);
    if (HF_UNLIKELY(!is_held)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "the key is not held by the caller"));
    }
    if (next != NULL) {
        hf_wake(next, HF_OK);
    }
    entry_free(rt, gone);
    HF_LEAVE(self, HF_OK);
}

size_t hf_keylock_count(hf_keylock *keylock)
{
    if (keylock == NULL) {
        return 0;
    }
    hf_fiber *self = hf_enter(keylock->rt);
    if (self == NULL) {
        return 0;
    }
    hf_count_if_evicted(self);
    size_t count = 0;
    for (size_t i = 0; i < SHARDS; i++) {
        hf_spin_lock(&keylock->shards[i].lock);
        count += keylock->shards[i].keys.count;
        hf_spin_unlock(&keylock->shards[i].lock);
    }
    hf_leave(self);
    return count;
}
