/* Which lists refer to a key: an index in memory, from members to the lists that have them, while a list is watched.
 *
 *     list that is watched --edge--> member --edge--> member of the list that it is
 *
 * It is built from what the depot sees: a list that is watched, and every value that comes into memory of a key that some
 * node stands for. All of it is done by the driver, so no change falls between reading and noting.
 *
 * depot-R1  A node is a list that is watched, or has an edge to it, or is swept when lists are let go.
 * depot-R2  There are at most REFS_MAX edges. If there would be more, or there is no memory for one, the index says that
 *           it is not whole (is_overflowed), and then every change of a key tells all list watchers. That costs them a
 *           look, and they miss nothing. */
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "depot/window.h"

enum {
    REFS_MAX = 200000, /* edges; some 40 MiB with nodes for short keys */
    LOST_MAX = 1000    /* lists to which none leads any more, before they are looked for */
};

typedef struct hf_ref_node {
    hf_key_node key; /* in refs->nodes */
    hf_list members; /* hf_ref_edge.of_list: edges to its members */
    hf_list lists;   /* hf_ref_edge.of_member: edges from lists that have it */
    size_t watchers; /* list watchers of it */
    unsigned depth;  /* edges from the nearest list that is watched, when it was noted */
    uint64_t walk;   /* the last one that came by */
    hf_node in_all;  /* in refs->all */
    hf_node in_walk; /* in the list of a walk */
    char bytes[];
} hf_ref_node;

typedef struct hf_ref_edge {
    hf_node of_list, of_member;
    hf_ref_node *list, *member;
} hf_ref_edge;

static hf_ref_node *find(const hf_depot *depot, hf_str key)
{
    uint64_t hash = hf_key_hash(depot->seed, key.data, key.len);
    hf_key_node *found = hf_keys_find(&depot->index.nodes, hash, key.data, key.len);
    return found != NULL ? HF_CONTAINER(found, hf_ref_node, key) : NULL;
}

/* Finds or makes it; NULL = no memory. */
static hf_ref_node *node_of(hf_depot *depot, hf_str key, unsigned depth)
{
    hf_ref_node *node = find(depot, key);
    if (node != NULL) {
        node->depth = depth < node->depth ? depth : node->depth;
        return node;
    }
    node = hf_rt_alloc(depot->rt, sizeof *node + key.len);
    if (node == NULL) {
        return NULL;
    }
    memcpy(node->bytes, key.data, key.len);
    node->key.hash = hf_key_hash(depot->seed, key.data, key.len);
    node->key.bytes = node->bytes;
    node->key.len = key.len;
    node->depth = depth;
    hf_list_init(&node->members);
    hf_list_init(&node->lists);
    hf_keys_add(&depot->index.nodes, &node->key);
    hf_list_push_back(&depot->index.all, &node->in_all);
    return node;
}

static void node_free(hf_depot *depot, hf_ref_node *node)
{
    hf_assert(node->watchers == 0 && hf_list_is_empty(&node->lists) && hf_list_is_empty(&node->members)); /* depot-R1 */
    hf_keys_remove(&depot->index.nodes, &node->key);
    hf_list_remove(&node->in_all);
    hf_rt_free(depot->rt, node, sizeof *node + node->key.len);
}

/* Its edges go, and with them plain members to which no other leads. Lists to which no other leads stay until a sweep:
 * they may lead to each other. */
static void drop_members(hf_depot *depot, hf_ref_node *node)
{
    for (hf_node *at = hf_list_pop_front(&node->members); at != NULL; at = hf_list_pop_front(&node->members)) {
        hf_ref_edge *edge = HF_CONTAINER(at, hf_ref_edge, of_list);
        hf_ref_node *member = edge->member;
        hf_list_remove(&edge->of_member);
        hf_rt_free(depot->rt, edge, sizeof *edge);
        hf_assert(depot->index.edges > 0);
        depot->index.edges--;
        if (member == node || member->watchers > 0 || !hf_list_is_empty(&member->lists)) {
            continue;
        }
        if (hf_list_is_empty(&member->members)) {
            node_free(depot, member);
        } else {
            depot->index.lost++;
        }
    }
}

/* An edge to a member; its node, NULL = no room. */
static hf_ref_node *add_edge(hf_depot *depot, hf_ref_node *list, hf_str key)
{
    hf_ref_edge *edge = depot->index.edges < REFS_MAX ? hf_rt_alloc(depot->rt, sizeof *edge) : NULL;
    hf_ref_node *member = edge != NULL ? node_of(depot, key, list->depth + 1) : NULL;
    if (member == NULL) {
        hf_rt_free(depot->rt, edge, sizeof *edge);
        depot->index.is_overflowed = true; /* depot-R2 */
        return NULL;
    }
    edge->list = list;
    edge->member = member;
    hf_list_push_back(&list->members, &edge->of_list);
    hf_list_push_back(&member->lists, &edge->of_member);
    depot->index.edges++;
    hf_assert(depot->index.edges <= REFS_MAX); /* depot-R2 */
    return member;
}

/* The members of a list; those that are lists, too, as far as they are in memory. The others are noted when they come
 * there. `level`: of the recursion. */
static void note(hf_depot *depot, hf_ref_node *list, const hf_value *value, unsigned level)
{
    hf_window_cursor cursor;
    hf_window_item item;
    hf_str bytes = value != NULL ? hf_str_of_len(hf_value_data(value), hf_value_len(value)) : (hf_str){0};
    drop_members(depot, list);
    if (list->depth >= HF_DEPOT_DEPTH_MAX || level > HF_DEPOT_DEPTH_MAX || !hf_window_begin(&cursor, bytes)) {
        return;
    }
    while (hf_window_next(&cursor, &item)) {
        hf_ref_node *member = add_edge(depot, list, hf_alias_follow(depot, item.key));
        if (member == NULL) {
            return;
        }
        if (hf_list_is_empty(&member->members)) { /* else it is noted already, or is one of those above */
            hf_snap *snap = hf_memory_get(depot, hf_alias_follow(depot, item.key));
            if (snap != NULL) {
                note(depot, member, snap->value, level + 1);
            }
            hf_snap_unref(snap);
        }
    }
}

/* ---- Watching ---------------------------------------------------------------------------------------------------- */

/* Nodes to which no list that is watched leads any more go. */
static void sweep(hf_depot *depot)
{
    hf_list walk;
    hf_list_init(&walk);
    uint64_t number = ++depot->index.walk;
    HF_LIST_EACH(at, &depot->index.all)
    {
        hf_ref_node *node = HF_CONTAINER(at, hf_ref_node, in_all);
        if (node->watchers > 0) {
            node->walk = number;
            hf_list_push_back(&walk, &node->in_walk);
        }
    }
    for (hf_node *at = hf_list_pop_front(&walk); at != NULL; at = hf_list_pop_front(&walk)) {
        HF_LIST_EACH(of_list, &HF_CONTAINER(at, hf_ref_node, in_walk)->members)
        {
            hf_ref_node *member = HF_CONTAINER(of_list, hf_ref_edge, of_list)->member;
            if (member->walk != number) {
                member->walk = number;
                hf_list_push_back(&walk, &member->in_walk);
            }
        }
    }
    hf_list lost;
    hf_list_init(&lost);
    HF_LIST_EACH(at, &depot->index.all)
    {
        hf_ref_node *node = HF_CONTAINER(at, hf_ref_node, in_all);
        if (node->walk != number) {
            node->watchers++; /* so that it does not go with its last edge */
            hf_list_push_back(&lost, &node->in_walk);
        }
    }
    HF_LIST_EACH(at, &lost)
    {
        drop_members(depot, HF_CONTAINER(at, hf_ref_node, in_walk));
    }
    for (hf_node *at = hf_list_pop_front(&lost); at != NULL; at = hf_list_pop_front(&lost)) {
        hf_ref_node *node = HF_CONTAINER(at, hf_ref_node, in_walk);
        node->watchers--;
        node_free(depot, node); /* its edges came from others that are lost */
    }
    depot->index.lost = 0;
}

void hf_refs_watch(hf_depot *depot, const hf_depot_slot *slot)
{
    hf_assert(slot->load == HF_SLOT_KNOWN);
    depot->index.watched++;
    hf_ref_node *node = node_of(depot, hf_slot_key(slot), 0);
    if (node == NULL) {
        depot->index.is_overflowed = true;
        return;
    }
    node->depth = 0;
    node->watchers++;
    if (node->watchers == 1) {
        note(depot, node, slot->snap->value, 0);
    }
}

void hf_refs_unwatch(hf_depot *depot, const hf_depot_slot *slot)
{
    hf_assert(depot->index.watched > 0);
    depot->index.watched--;
    hf_ref_node *node = find(depot, hf_slot_key(slot));
    if (node == NULL || node->watchers == 0) { /* there was no memory for it */
        hf_assert(depot->index.is_overflowed);
    } else if (--node->watchers == 0 || depot->index.lost > 0) {
        sweep(depot);
    }
    if (depot->index.watched == 0) {
        hf_assert(depot->index.nodes.count == 0 && depot->index.edges == 0); /* depot-R1 */
        depot->index.is_overflowed = false;
    }
}

void hf_refs_saw(hf_depot *depot, hf_str key, const hf_value *value)
{
    if (depot->index.lost >= LOST_MAX) {
        sweep(depot);
    }
    hf_ref_node *node = find(depot, key);
    if (node != NULL) {
        note(depot, node, value, 0);
    }
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

static void tell(hf_depot *depot, hf_ref_node *node)
{
    if (node->watchers > 0) {
        hf_key_node *found = hf_keys_find(&depot->slots, node->key.hash, node->key.bytes, node->key.len);
        hf_assert(found != NULL); /* its watchers hold it */
        hf_watch_members(depot, HF_CONTAINER(found, hf_depot_slot, key));
    }
}

/* The lists above a member, each once. */
static void tell_lists(hf_depot *depot, hf_ref_node *member, unsigned depth)
{
    HF_LIST_EACH(at, &member->lists)
    {
        hf_ref_node *list = HF_CONTAINER(at, hf_ref_edge, of_member)->list;
        if (list->walk != depot->index.walk) {
            list->walk = depot->index.walk;
            tell(depot, list);
            if (depth < HF_DEPOT_DEPTH_MAX) {
                tell_lists(depot, list, depth + 1);
            }
        }
    }
}

void hf_refs_changed(hf_depot *depot, hf_str key)
{
    if (depot->index.watched == 0) {
        return;
    }
    if (depot->index.is_overflowed) {
        hf_refs_changed_all(depot);
        return;
    }
    hf_ref_node *node = find(depot, key);
    if (node != NULL) {
        node->walk = ++depot->index.walk; /* it has told its own watchers itself */
        tell_lists(depot, node, 1);
    }
}

void hf_refs_changed_all(hf_depot *depot)
{
    if (depot->index.watched == 0) {
        return;
    }
    HF_LIST_EACH(at, &depot->all_watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(at, hf_watcher, in_all);
        if (watcher->is_list) {
            hf_watch_look_again(depot, watcher);
        }
    }
}

void hf_refs_renamed(hf_depot *depot)
{
    if (depot->index.watched == 0) {
        return;
    }
    depot->index.is_overflowed = true; /* depot-R2: edges may lead to the old name */
    hf_refs_changed_all(depot);
}
