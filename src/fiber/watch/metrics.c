/* Metrics: the counters of hf_stats, and per scope name how many children it forked and how long it was open.
 *
 * Every scheduler has a table of its own, which its thread changes only when a named scope closes: no lock, and no
 * shared cache line. To read the metrics, a caller stops the world (safepoint.h), adds the tables up into one of its
 * own, lets the world run again, and writes the text.
 *
 *     name -- hash --> slots[] --> entry: count, forks, sum, max, histogram
 *
 * fiber-N1  An entry is found by its text and keeps a copy of it: a name need not outlive its scope.
 * fiber-N2  A table has at most HF_SCOPE_NAMES_MAX names. Further names, and names without memory, are added to
 *           `other`. */
#include "fiber/watch/metrics_private.h"

#include "base/json.h"
#include "fiber/crew/crew_private.h"
#include "fiber/enter.h"
#include "fiber/sched/safepoint.h"
#include "fiber/verbs.h"
#include "fiber/watch/text.h"
#include "fiber/watch/zombies.h"

#include <string.h>

const char hf_unnamed_scope[] = "scope";
const char hf_unnamed_shield[] = "shield";

enum { SLOTS_FIRST = 16, NAME_LEN_MAX = 128 };

/* ---- The table --------------------------------------------------------------------------------------------------- */

static void names_deinit(hf_runtime *rt, hf_scope_names *names)
{
    for (hf_scope_entry *at = names->first; at != NULL;) {
        hf_scope_entry *next = at->next;
        hf_rt_free(rt, at, sizeof *at + at->len + 1);
        at = next;
    }
    hf_rt_free(rt, names->slots, names->slot_count * sizeof(hf_scope_entry *));
    *names = (hf_scope_names){0};
}

static uint64_t hash_of(const char *name, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a: names are short */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Where the name is, or would be. */
static hf_scope_entry **slot_of(const hf_scope_names *names, uint64_t hash, const char *name, size_t len)
{
    hf_assert(names->count < names->slot_count); /* or the search would not end */
    for (uint64_t at = hash;; at++) {
        hf_scope_entry **slot = &names->slots[at & (names->slot_count - 1)];
        if (*slot == NULL || ((*slot)->hash == hash && (*slot)->len == len && memcmp((*slot)->name, name, len) == 0)) {
            return slot;
        }
    }
}

static bool names_grow(hf_runtime *rt, hf_scope_names *names)
{
    size_t slot_count = names->slot_count > 0 ? names->slot_count * 2 : SLOTS_FIRST;
    hf_scope_entry **slots = hf_rt_alloc(rt, slot_count * sizeof(hf_scope_entry *));
    if (slots == NULL) {
        return false;
    }
    hf_rt_free(rt, names->slots, names->slot_count * sizeof(hf_scope_entry *));
    names->slots = slots;
    names->slot_count = slot_count;
    for (hf_scope_entry *at = names->first; at != NULL; at = at->next) {
        *slot_of(names, at->hash, at->name, at->len) = at;
    }
    return true;
}

/* Never NULL: fiber-N2. */
static hf_scope_figures *names_get(hf_runtime *rt, hf_scope_names *names, const char *name)
{
    hf_scope_entry *recent = names->recent;
    if (HF_LIKELY(recent != NULL) && recent->len < NAME_LEN_MAX && strcmp(recent->name, name) == 0) {
        return &recent->figures; /* a copy that was not cut */
    }
    size_t len = strnlen(name, NAME_LEN_MAX);
    uint64_t hash = hash_of(name, len);
    hf_scope_entry **slot = names->slot_count > 0 ? slot_of(names, hash, name, len) : NULL;
    if (HF_LIKELY(slot != NULL && *slot != NULL)) {
        names->recent = *slot;
        return &(*slot)->figures;
    }
    if (names->count == HF_SCOPE_NAMES_MAX || ((names->count + 1) * 2 > names->slot_count && !names_grow(rt, names))) {
        return &names->other;
    }
    hf_scope_entry *fresh = hf_rt_alloc(rt, sizeof *fresh + len + 1);
    if (fresh == NULL) {
        return &names->other;
    }
    memcpy(fresh->name, name, len);
    fresh->len = len;
    fresh->hash = hash;
    *slot_of(names, hash, name, len) = fresh;
    if (names->last != NULL) {
        names->last->next = fresh;
    } else {
        names->first = fresh;
    }
    names->last = fresh;
    names->count++;
    hf_assert(names->count <= HF_SCOPE_NAMES_MAX);        /* fiber-N2 */
    hf_assert(*slot_of(names, hash, name, len) == fresh); /* fiber-N1 */
    return &fresh->figures;
}

/* ---- Recording --------------------------------------------------------------------------------------------------- */

static unsigned class_of(uint64_t us)
{
    unsigned class = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    return class < HF_HISTOGRAM_COUNT ? class : HF_HISTOGRAM_COUNT - 1;
}

void hf_metrics_scope(hf_sched *sched, const hf_scope *scope)
{
    if (scope->name == hf_unnamed_scope || scope->name == hf_unnamed_shield) {
        return;
    }
    if (hf_crew_of_scope(scope) != NULL && scope->owner->crew == NULL) {
        return; /* the scope of a crew itself is named after a workflow id: such names would fill the table */
    }
    hf_runtime *rt = sched->rt;
    if (sched->names == NULL && (sched->names = hf_rt_alloc(rt, sizeof *sched->names)) == NULL) {
        return; /* a figure is lost, but the close succeeds */
    }
    int64_t ns = hf_rt_now(rt).ns - scope->opened_ns;
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    hf_scope_figures *into = names_get(rt, sched->names, scope->name);
    into->count++;
    into->forks += scope->tally.forked;
    into->sum_us += us;
    into->max_us = us > into->max_us ? us : into->max_us;
    into->classes[class_of(us)]++;
}

void hf_metrics_deinit(hf_sched *sched)
{
    if (sched->names != NULL) {
        names_deinit(sched->rt, sched->names);
        hf_rt_free(sched->rt, sched->names, sizeof *sched->names);
        sched->names = NULL;
    }
}

/* ---- Adding up --------------------------------------------------------------------------------------------------- */

static void add(hf_scope_figures *into, const hf_scope_figures *from)
{
    into->count += from->count;
    into->forks += from->forks;
    into->sum_us += from->sum_us;
    into->max_us = from->max_us > into->max_us ? from->max_us : into->max_us;
    for (int i = 0; i < HF_HISTOGRAM_COUNT; i++) {
        into->classes[i] += from->classes[i];
    }
}

static void add_up(hf_runtime *rt, hf_scope_names *total)
{
    hf_world_stop(rt);
    for (int i = 0; i < rt->sched_count; i++) {
        const hf_scope_names *names = rt->scheds[i]->names;
        if (names == NULL) {
            continue;
        }
        for (const hf_scope_entry *at = names->first; at != NULL; at = at->next) {
            add(names_get(rt, total, at->name), &at->figures);
        }
        add(&total->other, &names->other);
    }
    hf_world_start(rt);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void text_line(hf_buf *buf, const char *key, const char *name, uint64_t value)
{
    hf_buf_puts(buf, key);
    hf_buf_puts(buf, "{name=");
    hf_json_quote(buf, name, strlen(name));
    hf_buf_putf(buf, "} %llu\n", (unsigned long long)value);
}

static void text_figures(hf_buf *buf, const char *name, const hf_scope_figures *from)
{
    text_line(buf, "scope.forks", name, from->forks);
    text_line(buf, "scope.duration.count", name, from->count);
    text_line(buf, "scope.duration.sum_us", name, from->sum_us);
    text_line(buf, "scope.duration.max_us", name, from->max_us);
    for (int i = 0; i < HF_HISTOGRAM_COUNT; i++) {
        if (from->classes[i] == 0) {
            continue;
        }
        hf_buf_puts(buf, "scope.duration.class{name=");
        hf_json_quote(buf, name, strlen(name));
        if (i < HF_HISTOGRAM_COUNT - 1) {
            hf_buf_putf(buf, ",below_us=\"%llu\"", 1ULL << i);
        } else {
            hf_buf_puts(buf, ",below_us=\"inf\"");
        }
        hf_buf_putf(buf, "} %llu\n", (unsigned long long)from->classes[i]);
    }
}

static void text_panel(hf_buf *buf, const hf_panel_shown *shown)
{
    for (size_t i = 0; i < shown->count; i++) {
        const hf_figure *figure = &shown->figures[i];
        hf_buf_putf(buf, "%s.%s{name=", shown->kind, figure->name);
        hf_json_quote(buf, shown->name, strlen(shown->name));
        if (figure->label != NULL) {
            hf_buf_putf(buf, ",%s=\"%s\"", figure->label, figure->word);
        }
        hf_buf_putf(buf, "} %llu\n", (unsigned long long)figure->value);
    }
}

static void write_text(hf_buf *buf, const hf_stats *stats, const hf_scope_names *names, const hf_zombies *zombies,
                       const hf_panel_shown *shown)
{
#define COUNTER_LINE(field, type, help) hf_buf_putf(buf, #field " %llu\n", (unsigned long long)stats->field);
    HF_METRIC_COUNTERS(COUNTER_LINE)
#undef COUNTER_LINE
    for (int i = 0; i < zombies->count; i++) {
        hf_buf_puts(buf, "zombie.age_us{");
        hf_zombie_fields(buf, &zombies->all[i]);
        hf_buf_putf(buf, "} %lld\n", (long long)(zombies->all[i].age_ns / 1000));
    }
    for (const hf_scope_entry *at = names->first; at != NULL; at = at->next) {
        text_figures(buf, at->name, &at->figures);
    }
    if (names->other.count > 0) {
        text_figures(buf, "other", &names->other);
    }
    for (; shown != NULL; shown = shown->next) {
        text_panel(buf, shown);
    }
}

static void json_figures(hf_json *json, const char *name, const hf_scope_figures *from)
{
    hf_json_object(json);
    hf_json_key_string(json, "name", name);
    hf_json_key_uint(json, "forks", from->forks);
    hf_json_key(json, "duration");
    hf_json_object(json);
    hf_json_key_uint(json, "count", from->count);
    hf_json_key_uint(json, "sum_us", from->sum_us);
    hf_json_key_uint(json, "max_us", from->max_us);
    hf_json_key(json, "classes");
    hf_json_array(json);
    for (int i = 0; i < HF_HISTOGRAM_COUNT; i++) {
        if (from->classes[i] == 0) {
            continue;
        }
        hf_json_object(json);
        if (i < HF_HISTOGRAM_COUNT - 1) {
            hf_json_key_uint(json, "below_us", UINT64_C(1) << i);
        } else {
            hf_json_key_string(json, "below_us", NULL);
        }
        hf_json_key_uint(json, "count", from->classes[i]);
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_end(json);
    hf_json_end(json);
}

/* Numbers that differ by a label are members of an object: "hits": {"memory": 5, "source": 2}. */
static void json_panel(hf_json *json, const hf_panel_shown *shown)
{
    hf_json_object(json);
    hf_json_key_string(json, "kind", shown->kind);
    hf_json_key_string(json, "name", shown->name);
    for (size_t i = 0; i < shown->count; i++) {
        const hf_figure *figure = &shown->figures[i];
        if (figure->label == NULL) {
            hf_json_key_uint(json, figure->name, figure->value);
            continue;
        }
        if (i == 0 || strcmp(shown->figures[i - 1].name, figure->name) != 0) {
            hf_json_key(json, figure->name);
            hf_json_object(json);
        }
        hf_json_key_uint(json, figure->word, figure->value);
        if (i + 1 == shown->count || strcmp(shown->figures[i + 1].name, figure->name) != 0) {
            hf_json_end(json);
        }
    }
    hf_json_end(json);
}

static void write_json(hf_buf *buf, const hf_stats *stats, const hf_scope_names *names, const hf_zombies *zombies,
                       const hf_panel_shown *shown)
{
    hf_json json;
    hf_json_init(&json, buf);
    hf_json_object(&json);
    hf_json_key(&json, "counters");
    hf_json_object(&json);
#define COUNTER_KEY(field, type, help) hf_json_key_uint(&json, #field, stats->field);
    HF_METRIC_COUNTERS(COUNTER_KEY)
#undef COUNTER_KEY
    hf_json_end(&json);
    hf_json_key(&json, "zombies");
    hf_json_array(&json);
    for (int i = 0; i < zombies->count; i++) {
        hf_json_object(&json);
        hf_zombie_json(&json, &zombies->all[i]);
        hf_json_end(&json);
    }
    hf_json_end(&json);
    hf_json_key(&json, "scopes");
    hf_json_array(&json);
    for (const hf_scope_entry *at = names->first; at != NULL; at = at->next) {
        json_figures(&json, at->name, &at->figures);
    }
    if (names->other.count > 0) {
        json_figures(&json, "other", &names->other);
    }
    hf_json_end(&json);
    hf_json_key(&json, "panels");
    hf_json_array(&json);
    for (; shown != NULL; shown = shown->next) {
        json_panel(&json, shown);
    }
    hf_json_end(&json);
    hf_json_end(&json);
    hf_buf_putc(buf, '\n');
}

hf_status hf_metrics_with(hf_runtime *runtime, char **ret_text, const hf_metrics_options *options)
{
    HF_OPTIONS(hf_metrics_options, options, hf_metrics);
    HF_TRY(HF_VERB_ALLOWED(hf_metrics));
    hf_runtime *rt = runtime != NULL ? runtime : hf_runtime_current();
    hf_stats stats;
    HF_TRY(hf_runtime_stats(rt, &stats)); /* a verb of its own: before we enter */
    HF_VERB_ENTER(self, hf_metrics, rt);
    if (ret_text == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_metrics needs a place for the text"));
    }
    hf_op op;
    hf_op_init(&op);
    rt = hf_rt_choose(&op, runtime); /* two fibers that stop each other's runtimes would wait for ever */
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (options->json && options->prometheus) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "hf_metrics writes one form: .json or .prometheus"));
    }
    hf_zombies zombies = {0};
    if (hf_zombies_get(&op, rt, &zombies) != HF_OK) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    hf_scope_names total = {0};
    add_up(rt, &total);
    bool is_whole = false;
    hf_panel_shown *shown = hf_panels_show(rt, &is_whole);
    hf_buf buf;
    hf_buf_init(&buf, rt->allocator, HF_TEXT_LEN_MAX);
    if (options->json) {
        write_json(&buf, &stats, &total, &zombies, shown);
    } else if (options->prometheus) {
        hf_metrics_prometheus(&buf, &stats, &total, shown);
    } else {
        write_text(&buf, &stats, &total, &zombies, shown);
    }
    names_deinit(rt, &total);
    hf_panels_shown_free(rt, shown);
    hf_zombies_free(rt, &zombies);
    hf_status status = is_whole ? hf_text_give(&op, &buf, ret_text)
                                : hf_fail(&op, HF_ERR_NOMEM, "no memory for the numbers of a depot");
    hf_buf_deinit(&buf);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_op_end(self, &op));
}
