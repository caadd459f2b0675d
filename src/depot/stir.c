/* Which keys were stirred while something flies. A reply may bring records of keys that nobody named when its flight
 * began, so the slots of these keys were not held, and nothing else remembers that one of them was invalidated meanwhile
 * (DP3). The set is bounded: what does not fit is taken for a stir of every key, which costs a fetch and nothing else. */
#include "depot/fetching.h"
#include "depot/lists.h"

enum { STIRS_MAX = 1024 }; /* keys; far more than are written while one fetch is under way */

typedef struct stirred {
    hf_key_node key;
    hf_node node; /* in depot->stirs_by_age: the oldest first */
    uint64_t stir;
    char bytes[];
} stirred;

static void forget_oldest(hf_depot *depot)
{
    stirred *oldest = HF_CONTAINER(hf_list_pop_front(&depot->stirs_by_age), stirred, node);
    hf_assert(oldest->stir > depot->stir_floor && oldest->stir <= depot->stir);
    hf_keys_remove(&depot->stirs, &oldest->key);
    hf_rt_free(depot->rt, oldest, sizeof *oldest + oldest->key.len);
}

/* Those from before the oldest flight began are of no interest; else the oldest one goes. */
static void make_room(hf_depot *depot)
{
    uint64_t began = depot->stir;
    HF_LIST_EACH(node, &depot->all_flights)
    {
        const hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, in_all);
        began = flight->began < began ? flight->began : began;
    }
    hf_node *first = hf_list_first(&depot->stirs_by_age);
    uint64_t floor = HF_CONTAINER(first, stirred, node)->stir;
    floor = began > floor ? began : floor;
    while (first != NULL && HF_CONTAINER(first, stirred, node)->stir <= floor) {
        forget_oldest(depot);
        first = hf_list_first(&depot->stirs_by_age);
    }
    depot->stir_floor = floor;
}

void hf_stir_note(hf_depot *depot, const hf_depot_slot *slot)
{
    uint64_t stir = ++depot->stir;
    if (depot->flight_count == 0) {
        return;
    }
    hf_key_node *found = hf_keys_find(&depot->stirs, slot->key.hash, slot->key.bytes, slot->key.len);
    if (found != NULL) {
        stirred *known = HF_CONTAINER(found, stirred, key);
        known->stir = stir;
        hf_list_remove(&known->node);
        hf_list_push_back(&depot->stirs_by_age, &known->node);
        return;
    }
    if (depot->stirs.count >= STIRS_MAX) {
        make_room(depot);
    }
    hf_assert(depot->stirs.count < STIRS_MAX); /* DP8 */
    stirred *one = hf_rt_alloc(depot->rt, sizeof *one + slot->key.len);
    if (one == NULL) {
        hf_stir_forget(depot);
        depot->stir_floor = stir;
        return;
    }
    memcpy(one->bytes, slot->bytes, slot->key.len);
    one->key.hash = slot->key.hash;
    one->key.bytes = one->bytes;
    one->key.len = slot->key.len;
    one->stir = stir;
    hf_keys_add(&depot->stirs, &one->key);
    hf_list_push_back(&depot->stirs_by_age, &one->node);
}

bool hf_stir_is_quiet(const hf_depot *depot, const hf_depot_slot *slot, uint64_t since)
{
    hf_assert(depot->flight_count > 0 && since <= depot->stir); /* else stirs are not noted */
    if (depot->stir_floor > since || slot->space->stirred > since) {
        return false;
    }
    hf_key_node *found = hf_keys_find(&depot->stirs, slot->key.hash, slot->key.bytes, slot->key.len);
    return found == NULL || HF_CONTAINER(found, stirred, key)->stir <= since;
}

void hf_stir_forget(hf_depot *depot)
{
    while (!hf_list_is_empty(&depot->stirs_by_age)) {
        forget_oldest(depot);
    }
    hf_assert(depot->stirs.count == 0);
}
