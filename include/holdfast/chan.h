/* Channels and select. Values are copied; a channel of capacity 0 is a rendezvous. From fibers and plain threads. */
#ifndef HOLDFAST_CHAN_H
#define HOLDFAST_CHAN_H

#include <holdfast/payload.h>
#include <holdfast/scope.h>
#include <holdfast/wait.h>

typedef struct hf_chan hf_chan;

typedef struct hf_chan_options {
    size_t size;         /* set by the macro */
    const char *name;    /* in dumps; must outlive the channel; "chan" */
    size_t capacity;     /* values that fit in; 0 = rendezvous */
    hf_runtime *runtime; /* needed on a plain thread only */
} hf_chan_options;

typedef enum hf_case_kind {
    HF_CASE_RECV,
    HF_CASE_SEND,
    HF_CASE_SIGNAL /* in a workflow: a signal comes, or is stored */
} hf_case_kind;
/* Of HF_CASE_SIGNAL: {.kind = HF_CASE_SIGNAL, .value = &approval} with hf_signal_case approval = {.name = "approve"}. */
typedef struct hf_signal_case {
    const char *name;   /* of the signal; NULL = this case never happens */
    hf_payload payload; /* set when the case is taken; freed as that of hf_signal_wait */
} hf_signal_case;
typedef struct hf_case {
    hf_case_kind kind;
    hf_chan *chan;    /* NULL = this case never happens; not used by HF_CASE_SIGNAL */
    void *value;      /* recv: where to write; send: what to send; signal: its hf_signal_case */
    hf_status status; /* of the case that was taken: HF_OK or HF_ERR_CLOSED */
} hf_case;
#define HF_SELECT_COUNT_MAX 64

HF_BEGIN_DECLS

/* A channel for values of `value_len` bytes: at most 1 MiB each, and 1 GiB in all for `capacity` of them; larger things
 * travel by pointer. Fails: HF_ERR_NOMEM, HF_ERR_INVALID over these bounds. */
HF_API HF_MUST_USE hf_status hf_chan_new_with(size_t value_len, hf_chan **ret_chan, const hf_chan_options *options);
/* Call it when no fiber uses the channel any more, best after the scope of its users was closed. HF_ERR_MISUSE while
 * a fiber or thread waits on it. Accepts NULL. */
HF_API hf_status hf_chan_free(hf_chan *chan);
/* Ends the sending: further sends fail with HF_ERR_CLOSED. Receivers still get the buffered values, then
 * HF_ERR_CLOSED. */
HF_API hf_status hf_chan_close(hf_chan *chan);

/* Fails: HF_ERR_CLOSED, HF_ERR_CANCELED, HF_ERR_TIMEOUT; then nothing was sent or received. */
HF_API HF_MUST_USE hf_status hf_chan_send_with(hf_chan *chan, const void *value, const hf_wait_options *options);
HF_API HF_MUST_USE hf_status hf_chan_recv_with(hf_chan *chan, void *ret_value, const hf_wait_options *options);
/* These never wait. Fails: HF_ERR_AGAIN: the channel is full or empty; HF_ERR_CLOSED. */
HF_API HF_MUST_USE hf_status hf_chan_try_send(hf_chan *chan, const void *value);
HF_API HF_MUST_USE hf_status hf_chan_try_recv(hf_chan *chan, void *ret_value);
HF_API size_t hf_chan_count(hf_chan *chan); /* values buffered now */

/* Waits until a case is ready, does it and gives its index. If several are ready, the first of them is taken. A closed
 * channel is ready: the call returns HF_OK, and the case's .status is HF_ERR_CLOSED. A signal that nobody has taken makes
 * its case ready; several of one name are taken in their order, one by each call.
 * Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED (nothing happened), HF_ERR_INVALID: more than HF_SELECT_COUNT_MAX cases, or the
 * name of a signal is empty or too long; HF_ERR_MISUSE: a case lacks its value, a signal has a handler (handler.h), or is a
 * case outside of a workflow. */
HF_API HF_MUST_USE hf_status hf_select_with(hf_case *cases, size_t count, size_t *ret_idx,
                                            const hf_wait_options *options);
/* Never waits. Fails: HF_ERR_AGAIN: no case is ready; HF_ERR_INVALID: as for hf_select. */
HF_API HF_MUST_USE hf_status hf_try_select(hf_case *cases, size_t count, size_t *ret_idx);

HF_END_DECLS

HF_AUTO_DEFINE(hf_chan_free, hf_chan)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_chan_new(...) HF_CHAN_NEW_(__VA_ARGS__, .size = sizeof(hf_chan_options))
#define HF_CHAN_NEW_(value_len, ret_chan, ...) \
    hf_chan_new_with((value_len), (ret_chan), &(hf_chan_options){__VA_ARGS__})
#define hf_chan_send(...) HF_CHAN_SEND_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_CHAN_SEND_(chan, value, ...) \
    hf_chan_send_with((chan), (value), &(hf_wait_options){__VA_ARGS__})
#define hf_chan_recv(...) HF_CHAN_RECV_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_CHAN_RECV_(chan, ret_value, ...) \
    hf_chan_recv_with((chan), (ret_value), &(hf_wait_options){__VA_ARGS__})
#define hf_select(...) HF_SELECT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_SELECT_(cases, count, ret_idx, ...) \
    hf_select_with((cases), (count), (ret_idx), &(hf_wait_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_chan_new(size_t value_len, hf_chan **ret_chan,
    hf_chan_options options = hf_chan_options())
{
    options.size = sizeof options;
    return hf_chan_new_with(value_len, ret_chan, &options);
}
static inline HF_MUST_USE hf_status
hf_chan_send(hf_chan *chan, const void *value,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_chan_send_with(chan, value, &options);
}
static inline HF_MUST_USE hf_status
hf_chan_recv(hf_chan *chan, void *ret_value,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_chan_recv_with(chan, ret_value, &options);
}
static inline HF_MUST_USE hf_status
hf_select(hf_case *cases, size_t count, size_t *ret_idx,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_select_with(cases, count, ret_idx, &options);
}
#endif
/* clang-format on */

#endif
