/* Aliases: a key that was made here has a provisional id until the origin gives it another one. Whoever knows the old
 * key can use it for 7 days: every call finds its slot through hf_slot_hold, which follows the alias (depot-D7).
 *
 * All of them are in memory, and with a file in its table `alias`. New keys are never provisional, so an alias does not
 * lead to another one. */
#include "depot/change.h"
#include "depot/outbox.h"

static const int64_t SWEEP_NS = INT64_C(3600) * 1000000000; /* between two looks for old ones */
enum { SWEEP_MAX = 256 };                                   /* rows of one commit */

/* ---- Provisional ids --------------------------------------------------------------------------------------------- */

bool hf_key_is_provisional(hf_str key)
{
    hf_depot_key parts;
    if (!hf_depot_key_unpack(key, &parts) || parts.id_len != HF_PROVISIONAL_LEN) {
        return false;
    }
    const char *id = parts.id;
    for (size_t i = 1; i < HF_PROVISIONAL_LEN; i++) {
        if (id[i] < 'a' || id[i] > 'z') {
            return false;
        }
    }
    return id[0] == '~';
}

hf_status hf_provisional_id(hf_op *op, hf_env *env, char ret_id[HF_PROVISIONAL_LEN])
{
    uint16_t numbers[HF_PROVISIONAL_LEN];
    HF_TRY(env->ops->random(env, op, numbers, sizeof numbers));
    ret_id[0] = '~';
    for (size_t i = 1; i < HF_PROVISIONAL_LEN; i++) {
        ret_id[i] = (char)('a' + numbers[i] % 26);
    }
    return HF_OK;
}

/* ---- The map ----------------------------------------------------------------------------------------------------- */

static size_t size_of(const hf_alias *alias)
{
    return sizeof *alias + alias->from.len + alias->to_len;
}

hf_alias *hf_alias_new(hf_depot *depot, hf_str from, hf_str to, int64_t made_at)
{
    hf_assert(hf_key_is_provisional(from) && !hf_key_is_provisional(to)); /* depot-D7 */
    hf_alias *alias = hf_rt_alloc(depot->rt, sizeof *alias + from.len + to.len);
    if (alias == NULL) {
        return NULL;
    }
    memcpy(alias->bytes, from.data, from.len);
    memcpy(alias->bytes + from.len, to.data, to.len);
    alias->from.hash = hf_key_hash(depot->seed, from.data, from.len);
    alias->from.bytes = alias->bytes;
    alias->from.len = from.len;
    alias->to_len = to.len;
    alias->made_at = made_at;
    return alias;
}

void hf_alias_free(hf_depot *depot, hf_alias *alias)
{
    if (alias != NULL) {
        hf_assert(!hf_node_is_linked(&alias->node));
        hf_rt_free(depot->rt, alias, size_of(alias));
    }
}

static hf_alias *find(const hf_depot *depot, hf_str key)
{
    hf_key_node *found = hf_keys_find(&depot->aliases, hf_key_hash(depot->seed, key.data, key.len), key.data, key.len);
    return found != NULL ? HF_CONTAINER(found, hf_alias, from) : NULL;
}

static void take_out(hf_depot *depot, hf_alias *alias)
{
    hf_assert(depot->aliases.count > 0 && hf_node_is_linked(&alias->node));
    hf_keys_remove(&depot->aliases, &alias->from);
    hf_list_remove(&alias->node);
    hf_alias_free(depot, alias);
}

static void ring(hf_depot *depot, hf_depot_timer_node *timer);

static void look_again(hf_depot *depot, int64_t pause)
{
    depot->alias_timer.ring = ring;
    hf_depot_timer(depot, &depot->alias_timer, hf_rt_now(depot->rt).ns + pause);
}

void hf_alias_add(hf_depot *depot, hf_alias *alias)
{
    /* A provisional id is random, and its create is gone with the commit that has the alias. */
    hf_assert(find(depot, hf_str_of_len(alias->bytes, alias->from.len)) == NULL);
    bool is_first = depot->aliases.count == 0;
    hf_keys_add(&depot->aliases, &alias->from);
    hf_list_push_back(&depot->alias_order, &alias->node);
    if (is_first) {
        look_again(depot, SWEEP_NS);
    }
}

hf_str hf_alias_follow(const hf_depot *depot, hf_str key)
{
    const hf_alias *alias = depot->aliases.count > 0 ? find(depot, key) : NULL;
    if (alias == NULL) {
        return key;
    }
    hf_assert(find(depot, hf_alias_to(alias)) == NULL); /* depot-D7 */
    return hf_alias_to(alias);
}

void hf_alias_drop_all(hf_depot *depot)
{
    for (hf_node *node = hf_list_first(&depot->alias_order); node != NULL; node = hf_list_first(&depot->alias_order)) {
        take_out(depot, HF_CONTAINER(node, hf_alias, node));
    }
    hf_assert(depot->aliases.count == 0); /* DP8 */
}

/* ---- Old ones go ------------------------------------------------------------------------------------------------- */

static hf_status decide_sweep(hf_depot *depot, hf_change *change)
{
    int64_t now = hf_depot_wall(depot);
    size_t too_many = depot->aliases.count > HF_ALIASES_MAX ? depot->aliases.count - HF_ALIASES_MAX : 0;
    HF_LIST_EACH(node, &depot->alias_order)
    {
        hf_alias *alias = HF_CONTAINER(node, hf_alias, node);
        hf_assert(!alias->is_forgotten); /* one sweep at a time */
        if (change->number < SWEEP_MAX && (too_many > 0 || hf_rule_age(now, alias->made_at) > HF_ALIAS_NS)) {
            too_many -= too_many > 0;
            alias->is_forgotten = true;
            change->number++;
            if (depot->source != NULL) {
                hf_change_delete(depot, change, HF_TABLE_ALIAS,
                                 (hf_key){.text = hf_str_of_len(alias->bytes, alias->from.len)});
            }
        }
    }
    return HF_OK;
}

static void apply_sweep(hf_depot *depot, hf_change *change, hf_status status)
{
    size_t count = 0;
    HF_LIST_EACH(node, &depot->alias_order)
    {
        hf_alias *alias = HF_CONTAINER(node, hf_alias, node);
        if (alias->is_forgotten) {
            alias->is_forgotten = false;
            count++;
            if (status == HF_OK) {
                take_out(depot, alias);
            }
        }
    }
    hf_assert(count == change->number);
    bool is_more = status == HF_OK && count == SWEEP_MAX;
    hf_change_free(depot, change);
    if (!depot->is_ending && depot->aliases.count > 0) {
        look_again(depot, is_more ? SWEEP_NS / 1000 : SWEEP_NS);
    }
}

static void ring(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_assert(timer == &depot->alias_timer);
    hf_change *change = depot->is_ending ? NULL : hf_change_new(depot, NULL);
    if (change != NULL) {
        change->decide = decide_sweep;
        change->apply = apply_sweep;
        hf_change_begin(depot, change);
    } else if (!depot->is_ending) {
        look_again(depot, SWEEP_NS);
    }
}
