/* Flows: streams of values with one or many collectors, each with its own buffer and its own back-pressure.
 *
 * A cold flow is a function that emits; each collector runs it again, in a fiber that ends with the collector.
 * A hot flow is emitted into from anywhere; every collector sees what is emitted while it collects.
 * A shared flow is a cold one that runs once while it has collectors, and is canceled when the last one leaves. */
#ifndef HOLDFAST_FLOW_H
#define HOLDFAST_FLOW_H

#include <holdfast/scope.h>
#include <holdfast/wait.h>

typedef struct hf_flow hf_flow;
typedef struct hf_emitter hf_emitter;
typedef struct hf_collector hf_collector;

/* The source of a cold or shared flow: emits with hf_emit until it is done (HF_OK) or fails. */
typedef hf_status (*hf_flow_source)(void *arg, hf_emitter *emitter);
/* Called for each value. Any status but HF_OK ends the collection, and hf_flow_collect returns that status. */
typedef hf_status (*hf_flow_item)(void *ctx, const void *value);

typedef enum hf_flow_mode {
    HF_FLOW_DEFAULT,    /* as HF_FLOW_BUFFER; watchers of a depot: as HF_FLOW_CONFLATE */
    HF_FLOW_BUFFER,     /* keep `capacity` values (at least 1), then the emitter waits */
    HF_FLOW_CONFLATE,   /* keep the newest only */
    HF_FLOW_DROP_OLDEST /* keep `capacity` values, drop the oldest */
} hf_flow_mode;

typedef struct hf_flow_options {
    size_t size;           /* set by the macro */
    const char *name;      /* in dumps; "flow" */
    hf_runtime *runtime;   /* needed on a plain thread only */
    hf_flow_source source; /* NULL = hot */
    void *arg;             /* for source */
    hf_scope *share;       /* with source: shared; the source runs as a child of this scope */
} hf_flow_options;

typedef struct hf_collector_options {
    size_t size; /* set by the macro */
    hf_flow_mode mode;
    size_t capacity; /* 0 = 1 */
} hf_collector_options;

typedef struct hf_flow_collect_options {
    size_t size; /* set by the macro */
    hf_flow_mode mode;
    size_t capacity; /* 0 = 1 */
    hf_span timeout; /* for the whole collection: give up with HF_ERR_TIMEOUT; 0 or HF_SPAN_UNLIMITED = never */
} hf_flow_collect_options;

HF_BEGIN_DECLS

HF_API HF_MUST_USE hf_status hf_flow_new_with(size_t value_len, hf_flow **ret_flow, const hf_flow_options *options);
/* Ends the flow: collectors get the buffered values, then HF_ERR_CLOSED (hf_flow_collect returns HF_OK). Does not wait;
 * the memory is freed when the last collector is closed and the source has ended. */
HF_API hf_status hf_flow_free(hf_flow *flow);
/* Ends a hot flow in the same way, but does not free it. HF_ERR_MISUSE for other flows: they end with their source. */
HF_API hf_status hf_flow_close(hf_flow *flow);

/* Gives a value to all collectors of a hot flow: waits until no buffer is full, then adds it to each. On failure no
 * collector got it. Fails: HF_ERR_CLOSED, HF_ERR_CANCELED. */
HF_API HF_MUST_USE hf_status hf_flow_emit(hf_flow *flow, const void *value);
/* Called by a source. Fails: HF_ERR_CANCELED when the source is canceled, or when the last collector has left or the
 * flow was freed (then even inside a shield); HF_ERR_CLOSED when the flow was freed while it waited. */
HF_API HF_MUST_USE hf_status hf_emit(hf_emitter *emitter, const void *value);

/* Collects until the flow ends (HF_OK), fails (its failure), `item` stops it, or the caller is canceled. */
HF_API HF_MUST_USE hf_status hf_flow_collect_with(hf_flow *flow, hf_flow_item item, void *ctx,
                                                  const hf_flow_collect_options *options);

/* The same by hand. A collector belongs to the fiber that opened it. One of a cold flow holds a scope open in that
 * fiber, so it is closed in reverse order with other scopes and collectors; out of order is HF_ERR_MISUSE, and
 * closes nothing. */
HF_API HF_MUST_USE hf_status hf_collector_open_with(hf_flow *flow, hf_collector **ret_collector,
                                                    const hf_collector_options *options);
HF_API HF_MUST_USE hf_status hf_collector_next_with(hf_collector *collector, void *ret_value,
                                                    const hf_wait_options *options);
HF_API uint64_t hf_collector_dropped(const hf_collector *collector); /* values conflated or dropped so far */
HF_API hf_status hf_collector_close(hf_collector *collector);

HF_END_DECLS

HF_AUTO_DEFINE(hf_flow_free, hf_flow)
HF_AUTO_DEFINE(hf_collector_close, hf_collector)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_flow_new(...) HF_FLOW_NEW_(__VA_ARGS__, .size = sizeof(hf_flow_options))
#define HF_FLOW_NEW_(value_len, ret_flow, ...) \
    hf_flow_new_with((value_len), (ret_flow), &(hf_flow_options){__VA_ARGS__})
#define hf_flow_collect(...) HF_FLOW_COLLECT_(__VA_ARGS__, .size = sizeof(hf_flow_collect_options))
#define HF_FLOW_COLLECT_(flow, item, ctx, ...) \
    hf_flow_collect_with((flow), (item), (ctx), &(hf_flow_collect_options){__VA_ARGS__})
#define hf_collector_open(...) HF_COLLECTOR_OPEN_(__VA_ARGS__, .size = sizeof(hf_collector_options))
#define HF_COLLECTOR_OPEN_(flow, ret_collector, ...) \
    hf_collector_open_with((flow), (ret_collector), &(hf_collector_options){__VA_ARGS__})
#define hf_collector_next(...) HF_COLLECTOR_NEXT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_COLLECTOR_NEXT_(collector, ret_value, ...) \
    hf_collector_next_with((collector), (ret_value), &(hf_wait_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_flow_new(size_t value_len, hf_flow **ret_flow,
    hf_flow_options options = hf_flow_options())
{
    options.size = sizeof options;
    return hf_flow_new_with(value_len, ret_flow, &options);
}
static inline HF_MUST_USE hf_status
hf_flow_collect(hf_flow *flow, hf_flow_item item, void *ctx,
    hf_flow_collect_options options = hf_flow_collect_options())
{
    options.size = sizeof options;
    return hf_flow_collect_with(flow, item, ctx, &options);
}
static inline HF_MUST_USE hf_status
hf_collector_open(hf_flow *flow, hf_collector **ret_collector,
    hf_collector_options options = hf_collector_options())
{
    options.size = sizeof options;
    return hf_collector_open_with(flow, ret_collector, &options);
}
static inline HF_MUST_USE hf_status
hf_collector_next(hf_collector *collector, void *ret_value,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_collector_next_with(collector, ret_value, &options);
}
#endif
/* clang-format on */

#endif
