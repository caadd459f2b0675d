/* The caches whose hits are measured: the floor, uthash with a mutex and a list in the order of use, and ours. */
#include "cache/parts.h"

#include <pthread.h>
#include <stdatomic.h>
#if __has_include(<uthash.h>)
#include <uthash.h>
#define WITH_UTHASH 1
#else
#define WITH_UTHASH 0
#endif

const bool HAS_UTHASH = WITH_UTHASH != 0;

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

#if WITH_UTHASH
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

static hf_cache *cache;

void ours_put(hf_cache *into, const char *key, const char *value)
{
    hf_value *copy = NULL;
    if (hf_value_copy(value, VALUE_LEN, &copy) != HF_OK || hf_cache_put(into, key, KEY_LEN, copy, NULL) != HF_OK) {
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

/* ---- All --------------------------------------------------------------------------------------------------------- */

const side SIDES[SIDE_COUNT] = {
    [FLOOR] = {"floor", plain_hit},
    [OURS] = {"hf_cache", ours_hit},
    [UTHASH] = {"uthash", ut_hit},
    [DEPOT] = {"hf_depot", depot_hit},
};

void sides_fill(void)
{
    char key[KEY_LEN];
    char value[VALUE_LEN] = {1};
    plain.mask = (UINT64_C(1) << 21) - 1;
    plain.slots = calloc((size_t)plain.mask + 1, sizeof *plain.slots);
    if (plain.slots == NULL) {
        fail("no memory");
    }
    if (hf_cache_new(&cache, .runtime = runtime, .evict = HF_EVICT_S3FIFO, .count_max = HF_UNLIMITED,
                     .bytes_max = HF_UNLIMITED) != HF_OK) {
        fail(hf_error_text());
    }
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        plain_put(key, value);
        ours_put(cache, key, value);
        ut_put(key, value);
    }
    depot_side_open();
}

/* What the others have ends with the process. */
void sides_free(void)
{
    depot_side_close();
    if (hf_cache_free(cache) != HF_OK) {
        fail(hf_error_text());
    }
}
