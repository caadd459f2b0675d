/* Shared by metrics.c (the table of scope names, text and JSON) and prometheus.c. */
#ifndef HF_FIBER_METRICS_PRIVATE_H
#define HF_FIBER_METRICS_PRIVATE_H

#include "base/buf.h"
#include "fiber/watch/metrics.h"
#include "fiber/watch/panel.h"

enum { HF_HISTOGRAM_COUNT = 32 }; /* classes of a histogram: powers of two of microseconds */

typedef struct hf_scope_figures {
    uint64_t count; /* scopes closed */
    uint64_t forks; /* children they had */
    uint64_t sum_us;
    uint64_t max_us;
    /* class 0: below 1 us; class k: from 2^(k-1) to 2^k us; the last: the rest */
    uint64_t classes[HF_HISTOGRAM_COUNT];
} hf_scope_figures;

typedef struct hf_scope_entry {
    struct hf_scope_entry *next; /* in the order of first use */
    uint64_t hash;
    hf_scope_figures figures;
    size_t len;
    char name[];
} hf_scope_entry;

struct hf_scope_names {
    hf_scope_entry *first;
    hf_scope_entry *last;
    hf_scope_entry *recent; /* found last: a loop closes the same scope again and again */
    size_t count;
    hf_scope_entry **slots;
    size_t slot_count; /* a power of two, at least twice `count` */
    hf_scope_figures other;
};

/* The numbers of hf_stats: one list for all forms. The field, whether it may fall, and what it is. */
#define HF_METRIC_COUNTERS(X)                                                 \
    X(forks, counter, "Branches made.")                                       \
    X(joins, counter, "Joins that returned.")                                 \
    X(switches, counter, "Times a fiber was resumed.")                        \
    X(steals, counter, "Branches taken from another thread.")                 \
    X(wakes_remote, counter, "Wake-ups posted from another thread.")          \
    X(pool_calls, counter, "Calls handed to pools.")                          \
    X(pool_depth, gauge, "Calls that wait in pools.")                         \
    X(pool_threads, gauge, "Pool threads.")                                   \
    X(fibers, gauge, "Fibers that hold a stack.")                             \
    X(branches, gauge, "Branches that are not finished.")                     \
    X(scopes, gauge, "Scopes that are open.")                                 \
    X(stack_bytes, gauge, "Address space carved into stacks.")                \
    X(stuck, counter, "Fibers reported stuck.")                               \
    X(zombies, gauge, "Fibers and activities that ignore their cancel.")      \
    X(threads, gauge, "Fiber threads, replacements included, lost ones not.") \
    X(stranded, counter, "Fibers of evicted workflows that did not return.")

/* Prometheus' text: https://prometheus.io/docs/instrumenting/exposition_formats. */
void hf_metrics_prometheus(hf_buf *buf, const hf_stats *stats, const hf_scope_names *names,
                           const hf_panel_shown *shown);

#endif
