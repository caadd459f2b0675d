/* Streams: what a workflow and its activities publish, and others follow; which runs have changed; and histories.
 *
 *     static bool show(void *arg, const hf_stream_record *record)
 *     {
 *         printf("%lld %s %.*s\n", (long long)record->sequence, record->type, (int)record->value.len,
 *                (const char *)record->value.data);
 *         return true;
 *     }
 *
 *     int64_t cursor = 0;
 *     HF_TRY(hf_stream_read(execution, &cursor, show, NULL));     until the workflow has ended
 *
 * A stream belongs to a chain of runs: records are numbered from 0, and go on over continue-as-new, retries and schedules. They stay as long
 * as their runs do. A reader holds up nobody: it asks for the next records when it has dealt with the last ones, and goes on from its
 * cursor whenever it wants. docs/guide/clients.md has more. */
#ifndef HOLDFAST_STREAM_H
#define HOLDFAST_STREAM_H

#include <holdfast/payload.h>
#include <holdfast/service.h>
#include <holdfast/wait.h>

/* A record. Valid until the function that it was given to returns. */
typedef struct hf_stream_record {
    int64_t sequence; /* from 0 on, over all runs of the chain */
    hf_time time;     /* when it was published */
    const char *type; /* as it was published; "" = it has none */
    hf_payload value;
} hf_stream_record;

typedef struct hf_history_options {
    size_t size;   /* set by the macro */
    bool as_bytes; /* the protobuf message temporal.api.history.v1.History instead of JSON */
} hf_history_options;

/* A run that has changed. Valid until the function that it was given to returns. */
typedef struct hf_run_change {
    const char *id;
    const char *run_id;
    const char *type;
    hf_workflow_status status;
} hf_run_change;

typedef struct hf_changes_options {
    size_t size;            /* set by the macro */
    const char *namespace_; /* "default" */
    hf_span timeout; /* give up with HF_ERR_TIMEOUT; 0 or HF_SPAN_UNLIMITED = never; a negative one does not wait */
} hf_changes_options;

/* Called for each run that has changed, the same. */
typedef bool hf_changes_visit(void *arg, const hf_run_change *change);
/* Called for each record, on the caller's thread or fiber. False ends the call. */
typedef bool hf_stream_visit(void *arg, const hf_stream_record *record);

HF_BEGIN_DECLS

/* Appends a record to the stream of the workflow: in a workflow with the answer of its task, once, however often the code is replayed; in an
 * activity at once, and again by each attempt that gets there. `type` may be NULL. Returns, in an activity, when the record is on the disk.
 * Fails: HF_ERR_LIMIT: the stream has 100,000 records or 50 MiB; a workflow counts those of earlier runs of its chain and its own.
 * HF_ERR_TOO_BIG: more than 2 MiB; HF_ERR_INVALID: `type` is longer than 1,000 bytes; HF_ERR_NOT_FOUND: the activity's attempt is over;
 * HF_ERR_CANCELED; HF_ERR_MISUSE: elsewhere, and in local activities, whose workflow can publish what they return. */
HF_API HF_MUST_USE hf_status hf_publish(const char *type, hf_payload value);

/* Visits the records from `*cursor` on, which moves with them, and waits for further ones. Returns HF_OK when the last run of the chain
 * has ended and everything was visited, or when `visit` returned false; *cursor is then the number of the record behind the one that was
 * visited last. Records of runs that were deleted are skipped. Fails: HF_ERR_TIMEOUT: the workflow still runs, and everything that is
 * there was visited; HF_ERR_INVALID: *cursor is negative; HF_ERR_NOT_FOUND: there is no such workflow. The rest as for hf_result. */
HF_API HF_MUST_USE hf_status hf_stream_read_with(hf_execution *execution, int64_t *cursor, hf_stream_visit *visit,
                                                 void *arg, const hf_wait_options *options);

/* Waits until a run of the namespace has changed, and visits those that have, in the order of their changes; a run may come more than once.
 * `cursor` is the caller's, hf_payload_none() at first, and moves along; the caller frees it. Meant for pages that stay live: list the runs,
 * then look again at those that have changed. Fails: HF_ERR_AGAIN: changes before this moment may be missing, as at the first call, after a
 * restart of the service, and for a reader that was away for long: list the runs again, and go on with the cursor. HF_ERR_TIMEOUT: nothing
 * has changed. HF_ERR_NOT_FOUND: there is no such namespace. The rest as for hf_list. */
HF_API HF_MUST_USE hf_status hf_changes_read_with(hf_service *service, hf_payload *cursor, hf_changes_visit *visit,
                                                  void *arg, const hf_changes_options *options);

/* The events of a run, all of them, as one JSON text that the caller owns; `ret_history->len` may be more than 2 MiB. Payloads of the events
 * are as the service has them: a codec is not asked. Fails: HF_ERR_NOT_FOUND; HF_ERR_NOMEM. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_history_with(hf_execution *execution, hf_payload *ret_history,
                                             const hf_history_options *options);

HF_END_DECLS

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_stream_read(...) HF_STREAM_READ_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_STREAM_READ_(execution, cursor, visit, arg, ...) \
    hf_stream_read_with((execution), (cursor), (visit), (arg), &(hf_wait_options){__VA_ARGS__})
#define hf_changes_read(...) HF_CHANGES_READ_(__VA_ARGS__, .size = sizeof(hf_changes_options))
#define HF_CHANGES_READ_(service, cursor, visit, arg, ...) \
    hf_changes_read_with((service), (cursor), (visit), (arg), &(hf_changes_options){__VA_ARGS__})
#define hf_history(...) HF_HISTORY_(__VA_ARGS__, .size = sizeof(hf_history_options))
#define HF_HISTORY_(execution, ret_history, ...) \
    hf_history_with((execution), (ret_history), &(hf_history_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_stream_read(hf_execution *execution, int64_t *cursor, hf_stream_visit *visit, void *arg,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_stream_read_with(execution, cursor, visit, arg, &options);
}
static inline HF_MUST_USE hf_status
hf_changes_read(hf_service *service, hf_payload *cursor, hf_changes_visit *visit, void *arg,
    hf_changes_options options = hf_changes_options())
{
    options.size = sizeof options;
    return hf_changes_read_with(service, cursor, visit, arg, &options);
}
static inline HF_MUST_USE hf_status
hf_history(hf_execution *execution, hf_payload *ret_history,
    hf_history_options options = hf_history_options())
{
    options.size = sizeof options;
    return hf_history_with(execution, ret_history, &options);
}
#endif
/* clang-format on */

#endif
