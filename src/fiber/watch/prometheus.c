/* hf_metrics in Prometheus' text. Names begin with holdfast_; counters end with _total, times are in seconds. All numbers
 * of one name stand together behind their HELP and TYPE, as the format asks.
 *
 * A label has the name of a scope, a pool or a depot, and words of ours, never a key or an id: each new label value is a
 * time series that the server keeps. */
#include "fiber/watch/metrics_private.h"

#include <string.h>

static void head(hf_buf *buf, const char *name, const char *suffix, const char *type, const char *help)
{
    hf_buf_putf(buf, "# HELP holdfast_%s%s %s\n# TYPE holdfast_%s%s %s\n", name, suffix, help, name, suffix, type);
}

/* A label value: backslash, quote and line feed are escaped, other control characters replaced. */
static void quote(hf_buf *buf, const char *text)
{
    hf_buf_putc(buf, '"');
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"') {
            hf_buf_putc(buf, '\\');
            hf_buf_putc(buf, *text);
        } else if (*text == '\n') {
            hf_buf_puts(buf, "\\n");
        } else {
            hf_buf_putc(buf, (unsigned char)*text < 0x20 ? ' ' : *text);
        }
    }
    hf_buf_putc(buf, '"');
}

static void counters(hf_buf *buf, const hf_stats *stats)
{
    static const char counter[] = "_total";
    static const char gauge[] = "";
#define COUNTER_LINES(field, type, help)             \
    head(buf, "runtime_" #field, type, #type, help); \
    hf_buf_putf(buf, "holdfast_runtime_" #field "%s %llu\n", type, (unsigned long long)stats->field);
    HF_METRIC_COUNTERS(COUNTER_LINES)
#undef COUNTER_LINES
}

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

typedef void with_scope(hf_buf *buf, const char *name, const hf_scope_figures *figures);

static void each_scope(hf_buf *buf, const hf_scope_names *names, with_scope *with)
{
    for (const hf_scope_entry *at = names->first; at != NULL; at = at->next) {
        with(buf, at->name, &at->figures);
    }
    if (names->other.count > 0) {
        with(buf, "other", &names->other);
    }
}

static void scope_line(hf_buf *buf, const char *key, const char *name)
{
    hf_buf_putf(buf, "holdfast_scope_%s{name=", key);
    quote(buf, name);
}

static void forks(hf_buf *buf, const char *name, const hf_scope_figures *figures)
{
    scope_line(buf, "forks_total", name);
    hf_buf_putf(buf, "} %llu\n", (unsigned long long)figures->forks);
}

static void longest(hf_buf *buf, const char *name, const hf_scope_figures *figures)
{
    scope_line(buf, "duration_max_seconds", name);
    hf_buf_putf(buf, "} %.6f\n", (double)figures->max_us / 1e6);
}

/* Buckets add up, and those in which nothing is more than in the one before are left out. */
static void durations(hf_buf *buf, const char *name, const hf_scope_figures *figures)
{
    uint64_t so_far = 0;
    for (int i = 0; i < HF_HISTOGRAM_COUNT - 1; i++) {
        so_far += figures->classes[i];
        if (figures->classes[i] > 0) {
            scope_line(buf, "duration_seconds_bucket", name);
            hf_buf_putf(buf, ",le=\"%.6f\"} %llu\n", (double)(UINT64_C(1) << i) / 1e6, (unsigned long long)so_far);
        }
    }
    hf_assert(so_far + figures->classes[HF_HISTOGRAM_COUNT - 1] == figures->count);
    scope_line(buf, "duration_seconds_bucket", name);
    hf_buf_putf(buf, ",le=\"+Inf\"} %llu\n", (unsigned long long)figures->count);
    scope_line(buf, "duration_seconds_sum", name);
    hf_buf_putf(buf, "} %.6f\n", (double)figures->sum_us / 1e6);
    scope_line(buf, "duration_seconds_count", name);
    hf_buf_putf(buf, "} %llu\n", (unsigned long long)figures->count);
}

static void scopes(hf_buf *buf, const hf_scope_names *names)
{
    if (names->first == NULL && names->other.count == 0) {
        return;
    }
    head(buf, "scope_forks", "_total", "counter", "Children of scopes with this name.");
    each_scope(buf, names, forks);
    head(buf, "scope_duration_seconds", "", "histogram", "How long scopes with this name were open.");
    each_scope(buf, names, durations);
    head(buf, "scope_duration_max_seconds", "", "gauge", "The longest of them.");
    each_scope(buf, names, longest);
}

/* ---- Panels ------------------------------------------------------------------------------------------------------ */

static void panel_line(hf_buf *buf, const hf_panel_shown *shown, const hf_figure *figure)
{
    hf_buf_putf(buf, "holdfast_%s_%s%s{name=", shown->kind, figure->name, figure->is_gauge ? "" : "_total");
    quote(buf, shown->name);
    if (figure->label != NULL) {
        hf_buf_putf(buf, ",%s=\"%s\"", figure->label, figure->word);
    }
    hf_buf_putf(buf, "} %llu\n", (unsigned long long)figure->value);
}

/* The numbers with the name of the i-th figure, of all panels of the kind of `first`. */
static void panel_group(hf_buf *buf, const hf_panel_shown *first, size_t i)
{
    const hf_figure *figure = &first->figures[i];
    hf_buf_putf(buf, "# HELP holdfast_%s_%s%s %s\n# TYPE holdfast_%s_%s%s %s\n", first->kind, figure->name,
                figure->is_gauge ? "" : "_total", figure->help, first->kind, figure->name,
                figure->is_gauge ? "" : "_total", figure->is_gauge ? "gauge" : "counter");
    for (const hf_panel_shown *at = first; at != NULL; at = at->next) {
        for (size_t k = i; strcmp(at->kind, first->kind) == 0 && k < at->count; k++) {
            if (strcmp(at->figures[k].name, figure->name) == 0) {
                panel_line(buf, at, &at->figures[k]);
            }
        }
    }
}

static bool is_first_of_kind(const hf_panel_shown *shown, const hf_panel_shown *one)
{
    for (const hf_panel_shown *at = shown; at != one; at = at->next) {
        if (strcmp(at->kind, one->kind) == 0) {
            return false;
        }
    }
    return true;
}

static void panels(hf_buf *buf, const hf_panel_shown *shown)
{
    for (const hf_panel_shown *one = shown; one != NULL; one = one->next) {
        if (!is_first_of_kind(shown, one)) {
            continue;
        }
        for (size_t i = 0; i < one->count; i++) {
            if (i == 0 || strcmp(one->figures[i - 1].name, one->figures[i].name) != 0) {
                panel_group(buf, one, i);
            }
        }
    }
}

void hf_metrics_prometheus(hf_buf *buf, const hf_stats *stats, const hf_scope_names *names, const hf_panel_shown *shown)
{
    counters(buf, stats);
    scopes(buf, names);
    panels(buf, shown);
}
