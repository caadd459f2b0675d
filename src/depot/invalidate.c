/* Invalidation: of a key by its row, of a namespace and of all by a number that rises (DP3). */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/file.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

static hf_status check_options(hf_depot *depot, const char *verb, const hf_depot_invalidate_options *options)
{
    hf_op op;
    hf_op_init(&op);
    if (options->drop_pending && !options->hard) {
        (void)hf_fail_at(&op, HF_ERR_INVALID, verb, ".drop_pending needs .hard");
        return hf_depot_raise(depot, &op);
    }
    return HF_OK;
}

/* ---- One key ----------------------------------------------------------------------------------------------------- */

static hf_status decide_key(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    hf_entry_copy(&change->next, &slot->entry);
    change->place = slot->snap->place;
    change->is_synced = true;
    if (change->is_hard) {
        uint64_t version = change->next.version;
        hf_entry_drop(&change->next);
        change->next = hf_entry_none(depot, slot->space);
        change->next.version = version;
    } else if (change->next.kind == HF_ENTRY_VALUE) {
        change->next.is_unusable = true;
    } else {
        uint64_t version = change->next.version;
        hf_entry_drop(&change->next);
        change->next = hf_entry_none(depot, slot->space);
        change->next.version = version;
    }
    return change->drops ? hf_pending_decide_drop(depot, change) : hf_change_fold(depot, change, NULL, NULL);
}

static void apply_key(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_slot *slot = change->slot;
    hf_assert(!change->drops || change->is_hard);
    hf_list gone;
    hf_list_init(&gone);
    if (change->drops && status == HF_OK) {
        hf_pending_drop_all(depot, slot, &gone);
    } else if (change->drops) {
        hf_pending_keep_all(depot, slot);
    }
    if (status == HF_OK) {
        slot->stirred = ++depot->stir;
        depot->voided[slot->key.hash % HF_VOIDED] = depot->stir;
        if (change->is_hard) {
            depot->hard_voided[slot->key.hash % HF_VOIDED] = depot->stir;
        }
        slot->voids++;
        slot->hard_voids += change->is_hard;
        if (slot->flight != NULL) {
            slot->flight->is_void = true;
        }
        hf_change_show(depot, change, false);
        hf_news_of_key(depot, HF_NEWS_INVALIDATED, hf_slot_key(slot), HF_OK, HF_REPLY_UNKNOWN);
        hf_watch_again(depot, slot);
    }
    if (change->drops && status == HF_OK) {
        hf_pending_tell_dropped(depot, slot, &gone);
    }
    hf_change_tell(depot, change, status);
    hf_change_free(depot, change);
}

static void act_key(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_change *change = hf_change_of_key(depot, ask->key);
    if (change == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for an invalidation"));
        return;
    }
    change->is_hard = ask->is_hard;
    change->drops = ask->drops;
    change->follows = true;
    change->decide = decide_key;
    change->apply = apply_key;
    if (!hf_depot_park(depot, ask, &change->asks)) {
        hf_change_free(depot, change);
        return;
    }
    hf_change_begin(depot, change);
}

hf_status hf_depot_invalidate_with(hf_depot *depot, hf_depot_key key, const hf_depot_invalidate_options *options)
{
    HF_OPTIONS(hf_depot_invalidate_options, options, hf_depot_invalidate);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_invalidate));
    HF_TRY(hf_depot_enter(depot, "hf_depot_invalidate"));
    hf_ask ask = {.is_hard = options->hard, .drops = options->drop_pending};
    hf_status status = check_options(depot, "hf_depot_invalidate", options);
    if (status == HF_OK) {
        status = hf_depot_ask_of(depot, key, &ask, act_key, "hf_depot_invalidate");
    }
    hf_depot_leave(depot);
    return status;
}

/* ---- A namespace, or all ----------------------------------------------------------------------------------------- */

static hf_status decide_space(hf_depot *depot, hf_change *change)
{
    hf_space *space = change->space;
    uint64_t *last = space != NULL ? &space->generation_last : &depot->generation_last;
    uint64_t *hard_last = space != NULL ? &space->hard_last : &depot->hard_last;
    uint64_t generation = ++*last; /* several may be in one commit */
    *hard_last = change->is_hard ? generation : *hard_last;
    uint64_t hard = *hard_last;
    change->number = generation;
    if (depot->source != NULL) {
        hf_buf *out = space != NULL
                          ? hf_change_put(depot, change, HF_TABLE_SPACE,
                                          (hf_key){.text = hf_str_of_len(space->bytes, space->name.len)})
                          : hf_change_put(depot, change, HF_TABLE_META, (hf_key){.text = HF_STR("generation")});
        hf_row_put_space(out, generation, hard);
    }
    change->is_synced = true;
    return HF_OK;
}

/* A watched key of the namespace: its watchers see that it is gone, and fetch again. */
static void touch(hf_depot *depot, hf_depot_slot *slot, bool is_hard)
{
    slot->stirred = depot->stir;
    if (slot->load != HF_SLOT_KNOWN) {
        return;
    }
    if (is_hard && slot->snap->is_pending) {
        hf_slot_refold(depot, slot);
    }
    if (hf_list_is_empty(&slot->watchers)) {
        return;
    }
    if (is_hard) {
        hf_watch_show(depot, slot, true);
    }
    hf_watch_again(depot, slot);
}

typedef struct touching {
    hf_depot *depot;
    const hf_space *space;
    bool is_hard;
} touching;

static void touch_all(const touching *what, hf_key_node *node)
{
    if (node == NULL) {
        return;
    }
    hf_depot_slot *slot = HF_CONTAINER(node, hf_depot_slot, key);
    for (int i = 0; i < 4; i++) {
        touch_all(what, node->child[i]);
    }
    if (what->space == NULL || slot->space == what->space) {
        touch(what->depot, slot, what->is_hard);
    }
}

static void apply_space(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_space *space = change->space;
    if (status == HF_OK) {
        uint64_t generation = change->number;
        hf_assert(generation > atomic_load(space != NULL ? &space->generation : &depot->generation));
        depot->stir++;
        if (space != NULL) {
            space->stirred = depot->stir;
        }
        atomic_store(space != NULL ? &space->generation : &depot->generation, generation);
        if (change->is_hard) {
            atomic_store(space != NULL ? &space->hard : &depot->hard, generation);
        }
        hf_news_of_space(depot, space);
        touching what = {depot, space, change->is_hard};
        touch_all(&what, depot->slots.root);
        hf_refs_changed_all(depot);
    }
    hf_change_tell(depot, change, status);
    hf_change_free(depot, change);
}

/* ---- With the writes that wait ----------------------------------------------------------------------------------- */

/* The writes of a namespace go key by key, in the order of each key's changes; then the number rises. */
typedef struct dropping {
    hf_change *space; /* begins when all are gone */
    size_t left;
    hf_status status; /* the first failure */
    hf_op op;
} dropping;

static void drop_ends(hf_depot *depot, dropping *drop)
{
    hf_change *space = drop->space;
    hf_status status = drop->status;
    hf_assert(drop->left > 0);
    if (--drop->left > 0) {
        return;
    }
    if (status == HF_OK) {
        hf_change_begin(depot, space);
    } else { /* some are gone; nothing else has changed */
        space->op = drop->op;
        apply_space(depot, space, status);
    }
    hf_rt_free(depot->rt, drop, sizeof *drop);
}

static hf_status decide_drop(hf_depot *depot, hf_change *change)
{
    hf_entry_copy(&change->next, &change->slot->entry);
    change->place = change->slot->snap->place;
    return hf_pending_decide_drop(depot, change);
}

static void apply_drop(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_slot *slot = change->slot;
    dropping *drop = change->what;
    if (status == HF_OK) {
        hf_list gone;
        hf_pending_drop_all(depot, slot, &gone);
        slot->stirred = ++depot->stir;
        hf_change_show(depot, change, true);
        hf_pending_tell_dropped(depot, slot, &gone);
    } else {
        hf_pending_keep_all(depot, slot);
        drop->op = drop->status == HF_OK ? change->op : drop->op;
        drop->status = drop->status == HF_OK ? status : drop->status;
    }
    hf_change_free(depot, change);
    drop_ends(depot, drop);
}

/* Whether it is the first of its key, but for calls under way. */
static bool is_first(const hf_pending *row)
{
    HF_LIST_EACH(node, &row->slot->rows)
    {
        const hf_pending *other = HF_CONTAINER(node, hf_pending, node);
        if (!other->is_origin_first) {
            return other == row;
        }
    }
    return false;
}

/* Takes the change, which is not begun. */
static void drop_first(hf_depot *depot, hf_change *space)
{
    dropping *drop = hf_rt_alloc(depot->rt, sizeof *drop);
    if (drop == NULL) {
        apply_space(depot, space, hf_fail(&space->op, HF_ERR_NOMEM, "no memory for an invalidation"));
        return;
    }
    drop->space = space;
    drop->left = 1; /* this function */
    hf_list begun;
    hf_list_init(&begun);
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        bool is_meant = (space->space == NULL || row->slot->space == space->space) && is_first(row);
        hf_change *change = is_meant ? hf_change_new(depot, row->slot) : NULL;
        if (change != NULL) {
            change->what = drop;
            change->follows = true;
            change->decide = decide_drop;
            change->apply = apply_drop;
            hf_list_push_back(&begun, &change->node);
            drop->left++;
        } else if (is_meant && drop->status == HF_OK) {
            drop->status = hf_fail(&drop->op, HF_ERR_NOMEM, "no memory for an invalidation");
        }
    }
    for (hf_node *node = hf_list_pop_front(&begun); node != NULL; node = hf_list_pop_front(&begun)) {
        hf_change_begin(depot, HF_CONTAINER(node, hf_change, node)); /* may change the list of rows */
    }
    drop_ends(depot, drop);
}

static void act_space(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_space *space = ask->what != NULL ? hf_depot_space(depot, hf_str_of(ask->what)) : NULL;
    hf_change *change = ask->what == NULL || space != NULL ? hf_change_new(depot, NULL) : NULL;
    bool drops = ask->drops;
    if (change == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for an invalidation"));
        return;
    }
    change->space = space;
    change->is_hard = ask->is_hard;
    change->decide = decide_space;
    change->apply = apply_space;
    if (!hf_depot_park(depot, ask, &change->asks)) {
        hf_change_free(depot, change);
        return;
    }
    if (drops) {
        drop_first(depot, change);
    } else {
        hf_change_begin(depot, change);
    }
}

static hf_status invalidate_space(hf_depot *depot, const char *verb, const char *ns,
                                  const hf_depot_invalidate_options *options)
{
    HF_TRY(check_options(depot, verb, options));
    hf_ask ask = {.what = (void *)(uintptr_t)ns, .is_hard = options->hard, .drops = options->drop_pending};
    return hf_depot_ask(depot, &ask, act_space, verb, hf_nanoseconds(0));
}

hf_status hf_depot_invalidate_namespace_with(hf_depot *depot, const char *ns,
                                             const hf_depot_invalidate_options *options)
{
    HF_OPTIONS(hf_depot_invalidate_options, options, hf_depot_invalidate_namespace);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_invalidate_namespace));
    HF_TRY(hf_depot_enter(depot, "hf_depot_invalidate_namespace"));
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_depot_ns_check(&op, ns) != HF_OK
                           ? hf_depot_raise(depot, &op)
                           : invalidate_space(depot, "hf_depot_invalidate_namespace", ns, options);
    hf_depot_leave(depot);
    return status;
}

hf_status hf_depot_invalidate_all_with(hf_depot *depot, const hf_depot_invalidate_options *options)
{
    HF_OPTIONS(hf_depot_invalidate_options, options, hf_depot_invalidate_all);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_invalidate_all));
    HF_TRY(hf_depot_enter(depot, "hf_depot_invalidate_all"));
    hf_status status = invalidate_space(depot, "hf_depot_invalidate_all", NULL, options);
    hf_depot_leave(depot);
    return status;
}
