/* Housekeeping: rows that nobody needs leave the file, some at a time, while the depot works.
 *
 * A pass walks over all entries in steps of STEP_ROWS rows or STEP_LEN bytes, one step every STEP_NS. A row goes if its
 * value was invalidated for good, if it was not validated for `.keep`, or if the file is over `.file_max` and the value
 * is among those that were not validated for longest: each pass counts the bytes by age, and the next one takes its
 * cutoff from that. A row is read once more under its key's slot before it goes, and stays if something happens to the
 * key: a write that waits, a watcher, a fetch (depot-D2). */
#include "depot/change.h"
#include "depot/file.h"

static const int64_t STEP_NS = 50000000;                  /* between two steps */
static const int64_t PASS_NS = INT64_C(600) * 1000000000; /* between two passes */
enum { STEP_ROWS = 64, STEP_LEN = 256 * 1024 };

/* The class of an age: its number of binary digits in seconds. */
static unsigned class_of(int64_t age)
{
    uint64_t seconds = (uint64_t)(age / 1000000000);
    return seconds > 0 ? 64 - (unsigned)__builtin_clzll(seconds) : 0;
}

static bool is_forgotten(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry, int64_t now)
{
    int64_t age = hf_rule_age(now, entry->validated_at);
    if (entry->generation < atomic_load_explicit(&space->hard, memory_order_relaxed) ||
        entry->generation_all < atomic_load_explicit(&depot->hard, memory_order_relaxed)) {
        return true;
    }
    if (entry->kind == HF_ENTRY_DELETED) {
        return age > HF_TOMBSTONE_NS;
    }
    if (entry->kind != HF_ENTRY_VALUE) { /* "not found", or nothing but a back-off */
        return age > depot->options.negative_ttl.ns && entry->backoff_until < now;
    }
    return age > depot->options.keep.ns || class_of(age) >= depot->keeping.cutoff;
}

/* ---- One row ----------------------------------------------------------------------------------------------------- */

static bool is_busy(const hf_depot_slot *slot)
{
    return !hf_list_is_empty(&slot->rows) || !hf_list_is_empty(&slot->watchers) || slot->flight != NULL ||
           slot->sub != NULL;
}

static hf_status decide_forget(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    if (is_busy(slot) || !is_forgotten(depot, slot->space, &slot->entry, hf_depot_wall(depot))) {
        change->is_ignored = true;
        return HF_OK;
    }
    hf_change_delete(depot, change, HF_TABLE_ENTRY, (hf_key){.text = hf_slot_key(slot)});
    return HF_OK;
}

static void apply_forget(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_slot *slot = change->slot;
    if (status == HF_OK && !change->is_ignored) {
        hf_memory_remove(depot, hf_slot_key(slot));
        depot->counts.forgotten++;
    }
    if (status == HF_OK && !change->is_ignored && !is_busy(slot)) { /* else only the row is gone */
        /* The next one who asks reads again. Nobody has the slot but this change, and perhaps asks that wait for it. */
        hf_entry_drop(&slot->entry);
        hf_snap_unref(slot->snap);
        slot->snap = NULL;
        slot->load = HF_SLOT_UNKNOWN;
    }
    hf_change_free(depot, change);
}

static void forget(hf_depot *depot, hf_str key)
{
    hf_depot_slot *slot = hf_slot_hold(depot, key);
    if (slot == NULL) {
        return; /* the next pass finds it */
    }
    hf_change *change = slot->holds == 1 ? hf_change_new(depot, slot) : NULL; /* nobody else */
    if (change != NULL) {
        change->decide = decide_forget;
        change->apply = apply_forget;
    }
    hf_slot_let_go(depot, slot);
    if (change != NULL) {
        hf_change_begin(depot, change);
    }
}

/* ---- Passes ------------------------------------------------------------------------------------------------------ */

/* The cutoff for the next pass: what is older takes the bytes that are too many. */
static unsigned choose_cutoff(const hf_depot *depot)
{
    const hf_depot_keeping *keeping = &depot->keeping;
    uint64_t all = 0;
    for (unsigned i = 0; i < HF_COUNT_OF(keeping->bytes); i++) {
        all += keeping->bytes[i];
    }
    unsigned cutoff = HF_COUNT_OF(keeping->bytes);
    while (cutoff > 1 && all > (uint64_t)depot->options.file_max) {
        cutoff--;
        all -= keeping->bytes[cutoff];
    }
    return cutoff;
}

static void look_at_row(hf_depot *depot, const hf_row *row)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    hf_depot_key parts;
    hf_depot_entry entry;
    bool no_memory = false;
    int64_t now = hf_depot_wall(depot);
    if (!hf_depot_key_unpack(row->key.text, &parts) ||
        hf_record_open(&bad, HF_TABLE_ENTRY, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_entry(body, &entry, &no_memory)) {
        return; /* reported when somebody asks for it */
    }
    const hf_space *space = hf_depot_space(depot, hf_depot_key_ns(row->key.text));
    unsigned age = class_of(hf_rule_age(now, entry.validated_at));
    depot->keeping.bytes[age] += row->key.text.len + row->value.len;
    bool is_over = space != NULL && is_forgotten(depot, space, &entry, now);
    hf_entry_drop(&entry);
    if (is_over) {
        forget(depot, row->key.text);
    }
}

static void act_scanned(hf_depot *depot, hf_post *post)
{
    hf_depot_keeping *keeping = HF_CONTAINER(post, hf_depot_keeping, post);
    hf_store_request *scan = &keeping->scan;
    hf_assert(keeping->is_scanning && depot->loads > 0);
    keeping->is_scanning = false;
    depot->loads--;
    bool is_over = scan->status != HF_OK || !scan->more || scan->row_count == 0;
    if (!is_over) { /* the next step begins behind the last key */
        hf_str last = scan->rows[scan->row_count - 1].key.text;
        is_over = last.len >= sizeof keeping->next;
        if (!is_over) {
            memcpy(keeping->next, last.data, last.len);
            keeping->next[last.len] = '\0';
            keeping->next_len = last.len + 1;
        }
    }
    for (size_t i = 0; scan->status == HF_OK && i < scan->row_count && !depot->is_ending; i++) {
        look_at_row(depot, &scan->rows[i]);
    }
    hf_arena_deinit(&keeping->arena);
    if (is_over) {
        keeping->cutoff = choose_cutoff(depot);
        memset(keeping->bytes, 0, sizeof keeping->bytes);
        keeping->next_len = 0;
    }
    if (!depot->is_ending) {
        hf_depot_timer(depot, &keeping->timer, hf_rt_now(depot->rt).ns + (is_over ? PASS_NS : STEP_NS));
    }
}

static void on_scanned(hf_store_request *request)
{
    hf_depot_keeping *keeping = HF_CONTAINER(request, hf_depot_keeping, scan);
    hf_depot_post_quietly(keeping->depot, &keeping->post);
}

static void ring(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_depot_keeping *keeping = HF_CONTAINER(timer, hf_depot_keeping, timer);
    if (depot->is_ending || depot->broken != HF_OK) {
        return;
    }
    hf_assert(!keeping->is_scanning);
    hf_spare_drop_all(depot);
    hf_arena_init(&keeping->arena, hf_env_memory(depot->rt->env));
    keeping->scan = (hf_store_request){
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_ENTRY,
        .key = {.text = hf_str_of_len(keeping->next, keeping->next_len)},
        .key_end = hf_key_last(),
        .row_max = STEP_ROWS,
        .len_max = STEP_LEN,
        .arena = &keeping->arena,
        .done = on_scanned,
    };
    keeping->is_scanning = true;
    depot->loads++;
    hf_source_submit(depot, &keeping->scan);
}

void hf_depot_keep_house(hf_depot *depot)
{
    hf_depot_keeping *keeping = &depot->keeping;
    if (depot->source == NULL) {
        return;
    }
    keeping->depot = depot;
    keeping->cutoff = HF_COUNT_OF(keeping->bytes);
    keeping->post.act = act_scanned;
    keeping->timer.ring = ring;
    hf_depot_timer(depot, &keeping->timer, hf_rt_now(depot->rt).ns + PASS_NS);
}
