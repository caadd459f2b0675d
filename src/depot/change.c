/* Changes: every change of an entry or of the writes of a key is decided, written and applied here, one after the other
 * (depot-D2). All changes that wait are one commit. A group is changes of several keys that are decided at one moment,
 * when each of them is the first of its key, and so are in one commit (ADR 0037). */
#include "depot/change.h"
#include "depot/file.h"
#include "depot/hearing.h"
#include "depot/lists.h"

hf_change *hf_change_new(hf_depot *depot, hf_depot_slot *slot)
{
    hf_change *change = hf_spare_take(depot, sizeof *change);
    if (change == NULL) {
        return NULL;
    }
    change->slot = slot;
    if (slot != NULL) {
        slot->holds++;
    }
    hf_op_init(&change->op);
    hf_list_init(&change->asks);
    change->writes = change->own_writes;
    change->rows = change->own_rows;
    change->write_capacity = HF_CHANGE_WRITES_OWN;
    hf_buf_init(&change->spilled, hf_env_memory(depot->rt->env), 0);
    return change;
}

/* What `decide` has made. */
static void undo(hf_change *change)
{
    for (size_t i = 0; i < change->write_count; i++) {
        hf_buf_deinit(&change->rows[i]);
    }
    change->write_count = 0;
    hf_entry_drop(&change->next);
    hf_snap_unref(change->snap);
    change->snap = NULL;
}

static void leave_group(hf_depot *depot, hf_change *change)
{
    hf_change_group *group = change->group;
    if (group == NULL) {
        return;
    }
    hf_list_remove(&change->in_group);
    if (hf_list_is_empty(&group->members)) {
        hf_rt_free(depot->rt, group, sizeof *group);
    }
}

hf_change *hf_change_of_key(hf_depot *depot, hf_str key)
{
    hf_depot_slot *slot = hf_slot_hold(depot, key);
    hf_change *change = slot != NULL ? hf_change_new(depot, slot) : NULL;
    if (slot != NULL) {
        hf_slot_let_go(depot, slot); /* the change holds it */
    }
    return change;
}

void hf_change_free(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    hf_assert(!change->is_parked && change->alias == NULL);
    hf_assert(!hf_node_is_linked(&change->node) && !hf_node_is_linked(&change->in_batch) &&
              hf_list_is_empty(&change->asks));
    undo(change);
    if (change->writes != change->own_writes) {
        hf_rt_free(depot->rt, change->writes, change->write_capacity * sizeof *change->writes);
        hf_rt_free(depot->rt, change->rows, change->write_capacity * sizeof *change->rows);
    }
    leave_group(depot, change);
    hf_spare_give(depot, change, sizeof *change);
    if (slot != NULL) {
        hf_slot_let_go(depot, slot);
    }
}

/* Room for one write more; false = no memory. */
static bool make_room(hf_depot *depot, hf_change *change)
{
    size_t capacity = change->write_capacity;
    hf_assert(change->write_count <= capacity);
    if (change->write_count < capacity) {
        return true;
    }
    hf_write *writes = hf_rt_alloc(depot->rt, 4 * capacity * sizeof *writes);
    hf_buf *rows = writes != NULL ? hf_rt_alloc(depot->rt, 4 * capacity * sizeof *rows) : NULL;
    if (rows == NULL) {
        hf_rt_free(depot->rt, writes, 4 * capacity * sizeof *writes);
        change->no_memory = true;
        return false;
    }
    memcpy(writes, change->writes, capacity * sizeof *writes);
    memcpy(rows, change->rows, capacity * sizeof *rows);
    if (change->writes != change->own_writes) {
        hf_rt_free(depot->rt, change->writes, capacity * sizeof *writes);
        hf_rt_free(depot->rt, change->rows, capacity * sizeof *rows);
    }
    change->writes = writes;
    change->rows = rows;
    change->write_capacity = 4 * capacity;
    return true;
}

hf_buf *hf_change_put(hf_depot *depot, hf_change *change, hf_table table, hf_key key)
{
    hf_assert(depot->source != NULL && !hf_node_is_linked(&change->in_batch)); /* depot-D2: it is not written yet */
    if (!make_room(depot, change)) {
        return &change->spilled;
    }
    hf_buf *buf = &change->rows[change->write_count];
    hf_buf_init(buf, hf_env_memory(depot->rt->env), HF_DEPOT_ROW_LEN_MAX);
    static const char HEADER[HF_RECORD_HEADER_LEN] = {0};
    hf_buf_put(buf, HEADER, hf_record_header_len(table));
    change->writes[change->write_count++] = (hf_write){.table = table, .kind = HF_WRITE_PUT, .key = key};
    return buf;
}

void hf_change_delete(hf_depot *depot, hf_change *change, hf_table table, hf_key key)
{
    hf_assert(depot->source != NULL && !hf_node_is_linked(&change->in_batch)); /* depot-D2 */
    if (!make_room(depot, change)) {
        return;
    }
    hf_buf_init(&change->rows[change->write_count], hf_env_memory(depot->rt->env), 0);
    change->writes[change->write_count++] = (hf_write){.table = table, .kind = HF_WRITE_DELETE, .key = key};
}

void hf_change_write_nothing(hf_change *change)
{
    hf_assert(!hf_node_is_linked(&change->in_batch)); /* depot-D2 */
    for (size_t i = 0; i < change->write_count; i++) {
        hf_buf_deinit(&change->rows[i]);
    }
    change->write_count = 0;
}

/* The records get their checksums. */
static hf_status seal(hf_change *change)
{
    if (change->no_memory) {
        return hf_fail(&change->op, HF_ERR_NOMEM, "no memory for the records of a change");
    }
    for (size_t i = 0; i < change->write_count; i++) {
        hf_write *write = &change->writes[i];
        hf_buf *buf = &change->rows[i];
        if (write->kind != HF_WRITE_PUT) {
            continue;
        }
        size_t header_len = hf_record_header_len(write->table);
        hf_assert(buf->len > header_len || hf_buf_status(buf) != HF_OK);
        if (hf_buf_status(buf) != HF_OK) {
            return hf_fail(&change->op, hf_buf_status(buf), "no memory for a record of the depot");
        }
        hf_record_seal(write->table, &write->key, buf->data, buf->len - header_len);
        write->value = hf_str_of_len(buf->data, buf->len);
    }
    return HF_OK;
}

static bool is_there(hf_depot_entry_kind kind)
{
    return kind == HF_ENTRY_VALUE;
}

hf_status hf_change_fold(hf_depot *depot, hf_change *change, const hf_pending *except, const hf_pending *more)
{
    hf_depot_slot *slot = change->slot;
    hf_depot_entry_kind kind = HF_ENTRY_NONE;
    hf_value *value = NULL;
    bool is_pending = false;
    hf_assert(slot->load == HF_SLOT_KNOWN && change->snap == NULL && (change->is_deciding || change->is_reading));
    hf_assert((change->next.value != NULL) == (change->next.kind == HF_ENTRY_VALUE)); /* depot-D5 */
    hf_status status = hf_slot_fold(depot, slot, &change->next, except, more, &kind, &value, &is_pending);
    if (status != HF_OK) {
        return hf_fail(&change->op, status, "the patch cannot be applied: %s", hf_status_text(status));
    }
    bool is_changed = is_there(kind) != is_there(slot->snap->kind) || !hf_value_is_same(value, slot->snap->value);
    change->next.version = slot->entry.version + is_changed;
    change->snap = hf_snap_new(depot, slot->space, &change->next, kind, value, is_pending, change->place);
    hf_value_unref(value);
    if (change->snap == NULL) {
        return hf_fail(&change->op, HF_ERR_NOMEM, "no memory for a value of the depot");
    }
    hf_value *object = atomic_load_explicit(&slot->snap->object, memory_order_acquire);
    if (!is_changed && object != NULL) { /* of the same bytes */
        hf_snap_set_object(change->snap, object);
    }
    if (depot->source != NULL && !change->is_reading) {
        hf_row_put_entry(hf_change_put(depot, change, HF_TABLE_ENTRY, (hf_key){.text = hf_slot_key(slot)}),
                         &change->next);
    }
    return HF_OK;
}

void hf_change_show(hf_depot *depot, hf_change *change, bool is_renewed)
{
    hf_depot_slot *slot = change->slot;
    hf_assert(change->snap != NULL && slot->load == HF_SLOT_KNOWN);
    uint64_t version = slot->entry.version;
    bool was_unusable = slot->entry.is_unusable;
    hf_entry_set(&slot->entry, &change->next);
    hf_snap_unref(slot->snap);
    slot->snap = hf_snap_ref(change->snap);
    bool is_gone = change->snap->is_pending && hf_entry_is_gone(depot, slot->space, &slot->entry);
    if (is_gone || change->next.version < version) { /* a hard invalidation came while this was written */
        slot->entry.version = version > change->next.version ? version : change->next.version;
        hf_slot_refold(depot, slot);
    } else {
        hf_memory_put(depot, hf_slot_key(slot), slot->snap);
    }
    hf_assert(slot->snap->entry.version >= version); /* DP4 */
    if (change->flight == NULL &&
        (change->row == NULL || change->is_answer)) { /* not fetched, and not a write of ours */
        hf_stir_note(depot, slot);
    }
    hf_watch_show(depot, slot, is_renewed);
    if (slot->snap->entry.version != version || slot->entry.is_unusable != was_unusable) {
        hf_refs_changed(depot, hf_slot_key(slot));
    }
}

void hf_change_tell(hf_depot *depot, hf_change *change, hf_status status)
{
    for (hf_ask *ask = hf_depot_unpark(depot, &change->asks); ask != NULL;
         ask = hf_depot_unpark(depot, &change->asks)) {
        if (status != HF_OK) {
            ask->op = change->op;
            ask->op.status = status;
        }
        hf_depot_answer(depot, ask, status);
    }
}

/* ---- The order of a key's changes -------------------------------------------------------------------------------- */

/* Decides the change. True: it is over, nothing has to be written. */
static bool decide(hf_depot *depot, hf_change *change)
{
    hf_assert(change->slot == NULL || hf_list_first(&change->slot->changes) == &change->node); /* depot-D2 */
    hf_assert(!change->is_parked && change->write_count == 0 && change->snap == NULL);
    change->is_deciding = true;
    hf_status status = change->decide(depot, change);
    change->is_deciding = false;
    if (change->is_parked) { /* it waits for another one */
        hf_assert(status == HF_OK && change->write_count == 0);
        return false;
    }
    if (change->is_reading && status == HF_OK) {
        return false; /* hf_change_written follows */
    }
    change->status = status != HF_OK ? status : change->status; /* a release may have set it */
    if (change->status == HF_OK && (change->write_count > 0 || change->no_memory) && depot->source != NULL) {
        change->status = depot->broken != HF_OK ? depot->broken : seal(change);
        if (change->status == HF_OK) {
            hf_list_push_back(&depot->batch, &change->in_batch);
            return false;
        }
        if (depot->broken != HF_OK) {
            (void)hf_fail(&change->op, depot->broken,
                          "the file of depot '%s' failed: close the depot and open it again", depot->name);
        }
    }
    return true;
}

/* The change is over; it is freed. */
static void finish(hf_depot *depot, hf_change *change)
{
    if (hf_node_is_linked(&change->node)) {
        hf_list_remove(&change->node);
    }
    hf_assert(change->snap == NULL || change->snap->entry.version == change->next.version); /* depot-D5 */
    hf_assert(!hf_node_is_linked(&change->in_batch)); /* depot-D6: it is written */
    change->apply(depot, change, change->status);
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

hf_change_group *hf_change_group_new(hf_depot *depot)
{
    hf_change_group *group = hf_rt_alloc(depot->rt, sizeof *group);
    if (group != NULL) {
        hf_list_init(&group->members);
    }
    return group;
}

void hf_change_group_add(hf_change_group *group, hf_change *change)
{
    hf_assert(change->group == NULL && change->slot != NULL && !hf_node_is_linked(&change->node));
    change->group = group;
    hf_list_push_back(&group->members, &change->in_group);
    group->waiting++;
}

static hf_change *member_of(hf_node *node)
{
    return HF_CONTAINER(node, hf_change, in_group);
}

/* One that cannot be decided ends all of them: nothing is written. */
static void fail_group(hf_change_group *group, hf_status status, const hf_op *op)
{
    hf_op why = *op;
    HF_LIST_EACH(node, &group->members)
    {
        hf_change *member = member_of(node);
        undo(member);
        member->status = status;
        member->op = why;
    }
}

static hf_status decide_member(hf_depot *depot, hf_change *member)
{
    member->is_deciding = true;
    hf_status status = member->decide(depot, member);
    member->is_deciding = false;
    hf_assert(!member->is_parked && !member->is_reading); /* a group does not wait any more */
    return status;
}

/* The leader first: the others count only if it does. Returns how many writes there are. */
static size_t decide_group(hf_depot *depot, hf_change_group *group)
{
    hf_change *leader = member_of(hf_list_last(&group->members));
    size_t writes = 0;
    HF_LIST_EACH(node, &group->members) /* no memory to read what a key has */
    {
        const hf_change *member = member_of(node);
        hf_assert(member->is_ready && hf_list_first(&member->slot->changes) == &member->node); /* depot-D2 */
        if (member->status != HF_OK) {
            fail_group(group, member->status, &member->op);
            return 0;
        }
    }
    leader->status = decide_member(depot, leader);
    if (leader->status != HF_OK) {
        fail_group(group, leader->status, &leader->op);
        return 0;
    }
    HF_LIST_EACH(node, &group->members)
    {
        hf_change *member = member_of(node);
        member->status = member != leader ? decide_member(depot, member) : HF_OK;
        if (member->status != HF_OK) {
            fail_group(group, member->status, &member->op);
            return 0;
        }
        writes += member->write_count + member->no_memory; /* seal_group tells of the latter */
    }
    return writes;
}

static hf_status seal_group(hf_depot *depot, hf_change_group *group)
{
    hf_op op;
    hf_op_init(&op);
    hf_status status = depot->broken;
    if (status != HF_OK) {
        (void)hf_fail(&op, status, "the file of depot '%s' failed: close the depot and open it again", depot->name);
    }
    HF_LIST_EACH(node, &group->members)
    {
        hf_change *member = member_of(node);
        if (status == HF_OK) {
            status = seal(member);
            op = member->op;
        }
    }
    if (status != HF_OK) {
        HF_LIST_EACH(node, &group->members)
        {
            member_of(node)->status = status;
            member_of(node)->op = op;
        }
    }
    return status;
}

/* The turn of all of them has come: they are in one batch afterwards, or over. */
static void run_group(hf_depot *depot, hf_change_group *group)
{
    hf_assert(group->waiting == 0);
    if (decide_group(depot, group) > 0 && depot->source != NULL && seal_group(depot, group) == HF_OK) {
        HF_LIST_EACH(node, &group->members)
        {
            hf_list_push_back(&depot->batch, &member_of(node)->in_batch);
        }
        return;
    }
    for (bool is_last = false; !is_last;) {
        hf_node *node = hf_list_first(&group->members);
        is_last = node == hf_list_last(&group->members); /* the group goes with it */
        hf_depot_slot *slot = member_of(node)->slot;
        slot->holds++;
        finish(depot, member_of(node));
        hf_slot_run_changes(depot, slot);
        hf_slot_let_go(depot, slot);
    }
}

/* The change is the first of its key, which is known, or cannot be read. False: it waits for the others of its group. */
static bool take_turn(hf_depot *depot, hf_change *change)
{
    hf_change_group *group = change->group;
    if (!change->is_ready) {
        hf_assert(group->waiting > 0);
        change->is_ready = true;
        group->waiting--;
    }
    if (group->waiting > 0) {
        return false;
    }
    run_group(depot, group);
    return true;
}

void hf_change_begin_all(hf_depot *depot, hf_change_group *group)
{
    hf_assert(!hf_list_is_empty(&group->members));
    HF_LIST_EACH(node, &group->members)
    {
        hf_change *member = member_of(node);
        hf_list_push_back(&member->slot->changes, &member->node);
    }
    for (hf_node *node = hf_list_first(&group->members); node != NULL;) {
        hf_change *member = member_of(node);
        hf_depot_slot *slot = member->slot;
        node = node == hf_list_last(&group->members) ? NULL : node->next; /* the last turn may end the group */
        if (hf_list_first(&slot->changes) != &member->node) {
            continue;
        }
        if (hf_slot_know(depot, slot, NULL)) {
            hf_slot_run_changes(depot, slot);
        } else if (slot->load == HF_SLOT_UNKNOWN) {
            member->status = hf_fail(&member->op, HF_ERR_NOMEM, "no memory to read a value of the depot");
            (void)take_turn(depot, member);
        }
    }
}

void hf_slot_run_changes(hf_depot *depot, hf_depot_slot *slot)
{
    slot->holds++; /* while this looks at it */
    while (!hf_list_is_empty(&slot->changes) && hf_slot_know(depot, slot, NULL)) {
        hf_change *change = HF_CONTAINER(hf_list_first(&slot->changes), hf_change, node);
        if (hf_node_is_linked(&change->in_batch) || change->is_parked || change->is_reading) {
            break; /* it is being written or read, or waits for another one */
        }
        if (change->group != NULL) {
            if (!take_turn(depot, change)) {
                break;
            }
            continue;
        }
        if (!decide(depot, change)) {
            break;
        }
        finish(depot, change);
    }
    while (!hf_list_is_empty(&slot->changes) && slot->load == HF_SLOT_UNKNOWN) { /* no memory to load it */
        hf_change *change = HF_CONTAINER(hf_list_first(&slot->changes), hf_change, node);
        change->status = hf_fail(&change->op, HF_ERR_NOMEM, "no memory to read a value of the depot");
        if (change->group == NULL) {
            finish(depot, change);
        } else if (!take_turn(depot, change)) {
            break; /* the whole group fails when the last of it has its turn */
        }
    }
    hf_slot_let_go(depot, slot);
}

void hf_change_release(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_slot *slot = change->slot;
    hf_assert(change->is_parked && slot != NULL && hf_list_first(&slot->changes) == &change->node); /* depot-D2 */
    change->is_parked = false;
    change->status = status;
    if (change->is_deciding) {
        return; /* whoever decides it finishes it */
    }
    slot->holds++;
    finish(depot, change);
    hf_slot_run_changes(depot, slot);
    hf_slot_let_go(depot, slot);
}

void hf_change_begin(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    if (slot == NULL) {
        if (decide(depot, change)) {
            finish(depot, change);
        }
        return;
    }
    bool is_first = hf_list_is_empty(&slot->changes);
    hf_list_push_back(&slot->changes, &change->node);
    if (is_first) {
        hf_slot_run_changes(depot, slot);
    }
}

void hf_change_written(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_slot *slot = change->slot;
    hf_assert(!hf_node_is_linked(&change->in_batch) && !change->is_parked);
    hf_assert(slot == NULL || hf_list_first(&slot->changes) == &change->node); /* depot-D2 */
    change->status = status;
    if (slot == NULL) {
        finish(depot, change);
        return;
    }
    slot->holds++;
    finish(depot, change);
    hf_slot_run_changes(depot, slot);
    hf_slot_let_go(depot, slot);
}

void hf_depot_commit(hf_depot *depot)
{
    if (!depot->is_committing && !hf_list_is_empty(&depot->batch)) {
        hf_assert(depot->source != NULL);
        hf_source_commit(depot);
    }
}
