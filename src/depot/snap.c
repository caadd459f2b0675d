/* Entries, snapshots, and the memory of the depot. */
#include "depot/lists.h"

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

void hf_entry_copy(hf_depot_entry *to, const hf_depot_entry *from)
{
    *to = *from;
    (void)hf_value_ref(to->value);
    (void)hf_value_ref(to->etag);
    (void)hf_value_ref(to->last_modified);
}

void hf_entry_drop(hf_depot_entry *entry)
{
    hf_value_unref(entry->value);
    hf_value_unref(entry->etag);
    hf_value_unref(entry->last_modified);
    memset(entry, 0, sizeof *entry);
}

void hf_entry_set(hf_depot_entry *entry, const hf_depot_entry *from)
{
    hf_depot_entry old = *entry;
    hf_entry_copy(entry, from); /* first: they may share */
    hf_entry_drop(&old);
}

hf_depot_entry hf_entry_none(const hf_depot *depot, const hf_space *space)
{
    return (hf_depot_entry){
        .max_age = -1,
        .generation = atomic_load_explicit(&space->generation, memory_order_relaxed),
        .generation_all = atomic_load_explicit(&depot->generation, memory_order_relaxed),
    };
}

/* ---- Namespaces -------------------------------------------------------------------------------------------------- */

hf_space *hf_depot_space(hf_depot *depot, hf_str ns)
{
    uint64_t hash = hf_key_hash(depot->seed, ns.data, ns.len);
    hf_key_node *found = hf_keys_find(&depot->spaces, hash, ns.data, ns.len);
    if (found != NULL) {
        return HF_CONTAINER(found, hf_space, name);
    }
    hf_space *space = hf_rt_alloc(depot->rt, sizeof *space + ns.len);
    if (space == NULL) {
        return NULL;
    }
    memcpy(space->bytes, ns.data, ns.len);
    space->name.hash = hash;
    space->name.bytes = space->bytes;
    space->name.len = ns.len;
    hf_keys_add(&depot->spaces, &space->name);
    return space;
}

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

static void snap_release(void *data)
{
    hf_snap *snap = data;
    hf_entry_drop(&snap->entry);
    hf_value_unref(atomic_load_explicit(&snap->object, memory_order_relaxed));
    hf_value_unref(snap->value);
    hf_rt_free(snap->rt, snap, sizeof *snap);
}

hf_snap *hf_snap_new(hf_depot *depot, hf_space *space, const hf_depot_entry *entry, hf_depot_entry_kind kind,
                     hf_value *value, bool is_pending, hf_depot_place place)
{
    hf_snap *snap = hf_rt_alloc(depot->rt, sizeof *snap);
    if (snap == NULL) {
        return NULL;
    }
    snap->rt = depot->rt;
    snap->space = space;
    hf_entry_copy(&snap->entry, entry);
    snap->kind = kind;
    snap->value = hf_value_ref(value);
    snap->is_pending = is_pending;
    snap->place = place;
    size_t len = sizeof *snap + hf_value_len(value) + hf_value_len(entry->etag) + hf_value_len(entry->last_modified) +
                 (entry->value != value ? hf_value_len(entry->value) : 0) +
                 (depot->options.decode != NULL ? hf_value_len(value) : 0); /* what it becomes: about as much */
    hf_value *self = NULL;
    if (hf_value_new(snap, len, snap_release, &self) != HF_OK) { /* it has released the snapshot */
        return NULL;
    }
    snap->self = self;
    return snap;
}

bool hf_entry_is_blank(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry)
{
    hf_depot_entry none = hf_entry_none(depot, space);
    return entry->kind == HF_ENTRY_NONE && !entry->is_unusable && entry->etag == NULL && entry->last_modified == NULL &&
           entry->validated_at == none.validated_at && entry->max_age == none.max_age && entry->failures == 0 &&
           entry->backoff_until == 0 && entry->generation == none.generation &&
           entry->generation_all == none.generation_all && entry->version == none.version && entry->revision == 0;
}

hf_snap *hf_snap_none(hf_depot *depot, hf_space *space, const hf_depot_entry *entry, hf_depot_place place)
{
    hf_snap *have = space->none;
    if (have == NULL || have->place != place || have->entry.generation != entry->generation ||
        have->entry.generation_all != entry->generation_all) { /* of before an invalidation */
        hf_snap *made = hf_snap_new(depot, space, entry, HF_ENTRY_NONE, NULL, false, place);
        if (made == NULL) {
            return NULL;
        }
        hf_snap_unref(have);
        have = space->none = made;
    }
    hf_assert(have->kind == HF_ENTRY_NONE && !have->is_pending && have->value == NULL);
    return hf_snap_ref(have);
}

static int64_t ttl_of(const hf_depot *depot, const hf_depot_entry *entry)
{
    return entry->max_age >= 0 ? entry->max_age : depot->options.ttl.ns;
}

bool hf_entry_is_gone(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry)
{
    return entry->generation < atomic_load_explicit(&space->hard, memory_order_acquire) ||
           entry->generation_all < atomic_load_explicit(&depot->hard, memory_order_acquire);
}

bool hf_entry_is_unusable(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry)
{
    return entry->is_unusable || entry->generation < atomic_load_explicit(&space->generation, memory_order_acquire) ||
           entry->generation_all < atomic_load_explicit(&depot->generation, memory_order_acquire);
}

/* DP3: nothing from before an invalidation is served. */
static hf_at_hand local_of(const hf_depot *depot, const hf_snap *snap, int64_t now)
{
    const hf_depot_entry *entry = &snap->entry;
    if (snap->is_pending) { /* ours, whatever became of the base */
        return snap->kind == HF_ENTRY_VALUE ? HF_LOCAL_FRESH : HF_LOCAL_DELETED;
    }
    if (snap->kind == HF_ENTRY_NONE) {
        return HF_LOCAL_NONE;
    }
    if (hf_entry_is_gone(depot, snap->space, entry)) {
        return HF_LOCAL_NONE;
    }
    if (snap->kind == HF_ENTRY_DELETED && !hf_entry_is_unusable(depot, snap->space, entry)) {
        return hf_rule_age(now, entry->validated_at) <= HF_TOMBSTONE_NS ? HF_LOCAL_DELETED : HF_LOCAL_NONE;
    }
    if (hf_entry_is_unusable(depot, snap->space, entry)) {
        return snap->kind == HF_ENTRY_VALUE ? HF_LOCAL_UNUSABLE : HF_LOCAL_NONE;
    }
    if (snap->kind == HF_ENTRY_ABSENT) {
        bool is_fresh = hf_rule_is_fresh(now, entry->validated_at, depot->options.negative_ttl.ns);
        return is_fresh ? HF_LOCAL_ABSENT : HF_LOCAL_NONE;
    }
    return hf_rule_is_fresh(now, entry->validated_at, ttl_of(depot, entry)) ? HF_LOCAL_FRESH : HF_LOCAL_STALE;
}

hf_look_at hf_snap_look(const hf_depot *depot, const hf_snap *snap, int64_t now)
{
    return (hf_look_at){
        .local = local_of(depot, snap, now),
        .age = snap->entry.kind != HF_ENTRY_NONE ? hf_rule_age(now, snap->entry.validated_at) : 0,
        .is_ahead = hf_rule_is_ahead(now, snap->entry.validated_at),
        .is_pending = snap->is_pending,
    };
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

hf_snap *hf_memory_get(hf_depot *depot, hf_str key)
{
    hf_value *value = NULL;
    if (hf_cache_get(depot->memory, key.data, key.len, &value) != HF_OK) {
        return NULL;
    }
    depot->memory_gets++;
    return hf_value_data(value); /* with the reference of `value`, which is its self */
}

void hf_memory_put(hf_depot *depot, hf_str key, hf_snap *snap)
{
    if (hf_cache_put(depot->memory, key.data, key.len, snap->self, NULL) != HF_OK) {
        hf_memory_remove(depot, key); /* too big, or no memory: an older one must not stay */
    }
    if (depot->index.watched > 0) {
        hf_refs_saw(depot, key, snap->value);
    }
}

void hf_memory_remove(hf_depot *depot, hf_str key)
{
    HF_IGNORE(hf_cache_remove(depot->memory, key.data, key.len)); /* it need not be there */
}
