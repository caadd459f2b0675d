#include "engine/zone.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/input.h"

enum { ZONES_MAX = 1000 }; /* kept in memory; there are 600 in the world */

typedef struct hf_zone_entry {
    hf_node link; /* of core->zones */
    hf_owned name;
    bool is_here;        /* the driver has answered */
    bool is_in_use;      /* those that waited for it go on just now */
    const hf_zone *zone; /* in the arena; NULL: there is no such zone, or its rules cannot be read */
    hf_arena arena;
    hf_list calls; /* that wait for it, and are for no run yet */
    hf_list runs;  /* hf_slot whose calls wait for it */
} hf_zone_entry;

static hf_zone_entry *entry_find(const hf_core *core, hf_str name)
{
    HF_LIST_EACH(node, &core->zones)
    {
        hf_zone_entry *entry = HF_CONTAINER(node, hf_zone_entry, link);
        if (hf_str_equal(hf_owned_str(&entry->name), name)) {
            return entry;
        }
    }
    return NULL;
}

static void entry_free(hf_core *core, hf_zone_entry *entry)
{
    hf_assert(hf_list_is_empty(&entry->calls) && hf_list_is_empty(&entry->runs) && core->zone_count > 0);
    hf_list_remove(&entry->link);
    core->zone_count--;
    hf_arena_deinit(&entry->arena);
    hf_owned_free(&core->runs_memory, &entry->name);
    hf_core_free_mem(core, entry, sizeof *entry);
}

/* Callers may ask for any number of zones that do not exist: the one that was asked for longest ago is forgotten. Zones that exist stay: there
 * are fewer of them than ZONES_MAX, and runs count on them. */
static void forget_one(hf_core *core)
{
    HF_LIST_EACH(node, &core->zones)
    {
        hf_zone_entry *entry = HF_CONTAINER(node, hf_zone_entry, link);
        if (entry->is_here && entry->zone == NULL && !entry->is_in_use && hf_list_is_empty(&entry->calls) &&
            hf_list_is_empty(&entry->runs)) {
            entry_free(core, entry);
            return;
        }
    }
}

static hf_zone_entry *entry_get(hf_core *core, hf_str name)
{
    hf_zone_entry *entry = entry_find(core, name);
    if (entry == NULL && core->zone_count >= ZONES_MAX) {
        forget_one(core);
    }
    if (entry != NULL || core->zone_count >= ZONES_MAX) {
        return entry;
    }
    entry = hf_core_alloc(core, sizeof *entry);
    if (entry == NULL) {
        return NULL;
    }
    hf_list_init(&entry->calls);
    hf_list_init(&entry->runs);
    hf_arena_init(&entry->arena, core->memory);
    hf_owned_set(&core->runs_memory, &entry->name, name);
    hf_list_push_back(&core->zones, &entry->link);
    core->zone_count++;
    core->zones_wanted++;
    return entry;
}

hf_fetch hf_zone_get_cron(hf_core *core, hf_str schedule, hf_cron *ret_cron, const hf_zone **ret_zone)
{
    *ret_zone = NULL;
    if (hf_cron_parse(&core->op, schedule, ret_cron) != HF_OK) {
        return HF_FETCH_LOST;
    }
    if (hf_zone_name_is_utc(hf_str_of(ret_cron->zone))) {
        return HF_FETCH_HERE;
    }
    const hf_zone_entry *entry = entry_get(core, hf_str_of(ret_cron->zone));
    if (entry != NULL && !entry->is_here) {
        return HF_FETCH_COMING;
    }
    *ret_zone = entry != NULL ? entry->zone : NULL;
    if (*ret_zone == NULL) {
        (void)hf_fail(&core->op, HF_ERR_INVALID, "there is no time zone \"%s\", or no tzdata on this machine",
                      ret_cron->zone);
    }
    return *ret_zone != NULL ? HF_FETCH_HERE : HF_FETCH_LOST;
}

bool hf_zone_check_cron(hf_core *core, hf_call *call, hf_str schedule)
{
    hf_cron cron;
    const hf_zone *zone = NULL;
    if (schedule.len == 0) {
        return true;
    }
    hf_fetch fetch = hf_zone_get_cron(core, schedule, &cron, &zone);
    if (core->status != HF_OK) {
        return false;
    }
    if (fetch == HF_FETCH_COMING) {
        call->place = HF_PLACE_ELSEWHERE;
        hf_list_push_back(&entry_find(core, hf_str_of(cron.zone))->calls, &call->link);
        return false;
    }
    if (fetch == HF_FETCH_LOST) {
        hf_call_fail(core, call, HF_ERR_INVALID, "Invalid CronSchedule \"%.*s\": %s", HF_STR_ARGS(schedule),
                     core->op.message);
        return false;
    }
    if (hf_cron_next(&cron, zone, core->now.wall) == HF_CRON_NEVER) {
        hf_call_fail(core, call, HF_ERR_INVALID, "Invalid CronSchedule \"%.*s\": it never comes",
                     HF_STR_ARGS(schedule));
        return false;
    }
    return true;
}

int64_t hf_zone_cron_pause(hf_core *core, hf_str schedule, int64_t due)
{
    hf_cron cron;
    const hf_zone *zone = NULL;
    return hf_zone_get_cron(core, schedule, &cron, &zone) == HF_FETCH_HERE
               ? hf_cron_backoff(&cron, zone, due, core->now.wall)
               : HF_CRON_NEVER;
}

void hf_zone_wait(hf_core *core, hf_run *run, hf_str schedule)
{
    hf_cron cron;
    const hf_zone *zone = NULL;
    hf_fetch fetch = hf_zone_get_cron(core, schedule, &cron, &zone);
    hf_assert(fetch == HF_FETCH_COMING && HF_SLOT(run)->fetch_id == 0);
    hf_core_use(core, run);
    HF_SLOT(run)->fetch_id = HF_FETCH_ZONE;
    hf_list_push_back(&entry_find(core, hf_str_of(cron.zone))->runs, &HF_SLOT(run)->zone_link);
}

/* Those that waited go on, in order. */
static void go_on(hf_core *core, hf_zone_entry *entry)
{
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&entry->calls)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        call->place = HF_PLACE_NONE;
        hf_core_reset_scratch(core);
        hf_input(core, call);
    }
    while (core->status == HF_OK && (node = hf_list_pop_front(&entry->runs)) != NULL) {
        hf_fetch_go_on(core, &HF_CONTAINER(node, hf_slot, zone_link)->run);
    }
}

bool hf_zone_wanted(const hf_core *core, hf_str *ret_name)
{
    if (core->zones_wanted == 0) {
        return false;
    }
    HF_LIST_EACH(node, &core->zones)
    {
        const hf_zone_entry *entry = HF_CONTAINER_CONST(node, hf_zone_entry, link);
        if (!entry->is_here) {
            *ret_name = hf_owned_str(&entry->name);
            return true;
        }
    }
    return false;
}

void hf_zone_arrived(hf_core *core, hf_str name, hf_str bytes)
{
    hf_zone_entry *entry = entry_find(core, name);
    if (entry == NULL || entry->is_here) {
        return; /* nobody has asked */
    }
    hf_op op;
    hf_op_init(&op);
    entry->is_here = true;
    hf_assert(core->zones_wanted > 0);
    core->zones_wanted--;
    if (bytes.len > 0 && hf_zone_parse(&op, bytes, &entry->arena, &entry->zone) == HF_ERR_NOMEM) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    entry->is_in_use = true;
    go_on(core, entry);
    entry->is_in_use = false;
}

void hf_zones_free(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&core->zones)) != NULL) {
        hf_zone_entry *entry = HF_CONTAINER(node, hf_zone_entry, link); /* what waited for it is freed elsewhere */
        hf_arena_deinit(&entry->arena);
        hf_owned_free(&core->runs_memory, &entry->name);
        hf_core_free_mem(core, entry, sizeof *entry);
    }
}
