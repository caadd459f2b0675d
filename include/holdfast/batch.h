/* Deletion of workflows, and operations on many of them at once.
 *
 *     hf_batch_start(service, "stop-2026-03", HF_BATCH_TERMINATE, .query = "WorkflowType = 'charge'", .reason = "wrong price");
 *
 *     hf_batch_info info = {0};
 *     hf_batch_describe(service, "stop-2026-03", &info);       info.complete of info.total runs, info.failed of them in vain
 *
 * A batch is durable: it goes on in the background, in this process and in the next ones that open the file, until it has reached all of its
 * runs or is stopped. It acts once on each run, and only on runs that began before it. It is kept for a week after its end. */
#ifndef HOLDFAST_BATCH_H
#define HOLDFAST_BATCH_H

#include <holdfast/service.h>

typedef enum hf_batch_kind {
    HF_BATCH_TERMINATE = 1,
    HF_BATCH_CANCEL,
    HF_BATCH_SIGNAL, /* .signal and .input */
    HF_BATCH_DELETE,
    HF_BATCH_RESET,                  /* .point */
    HF_BATCH_UNPAUSE_ACTIVITIES = 7, /* .activity_type */
    HF_BATCH_ACTIVITY_OPTIONS,       /* .activity_type; .start_to_close and the options behind it, at least one */
    HF_BATCH_RESET_ACTIVITIES        /* .activity_type */
} hf_batch_kind;

typedef enum hf_batch_state {
    HF_BATCH_RUNNING = 1,
    HF_BATCH_COMPLETED,
    HF_BATCH_FAILED /* or stopped; .why says which */
} hf_batch_state;

typedef struct hf_delete_options {
    size_t size;   /* set by the macro */
    bool all_runs; /* the current run and all older ones of the workflow id */
} hf_delete_options;

typedef struct hf_batch_options {
    size_t size;            /* set by the macro */
    const char *namespace_; /* "default" */
    const char *query;      /* the workflows, as for hf_list, without ORDER BY; this or .ids is required */
    const char *const *ids; /* ids of the workflows, at most 1,000; one that is not there needs nothing */
    size_t id_count;
    const char *reason;         /* why, for people; at most 1,000 bytes. NULL = "a batch operation" */
    double rate;                /* runs a second at most; 0 = 5,000 */
    const char *signal;         /* its name */
    hf_payload input;           /* of the signal */
    hf_reset_point point;       /* HF_RESET_FIRST or HF_RESET_LAST; HF_RESET_NOWHERE = HF_RESET_LAST */
    const char *activity_type;  /* activities of this type; NULL = all */
    const char *const *run_ids; /* a run for each of .ids; NULL = the current ones, also in place of one of them */
    /* Of HF_BATCH_ACTIVITY_OPTIONS, for activities that have not ended; as in hf_activity_options, but 0 = as it is. */
    hf_span start_to_close;    /* HF_SPAN_UNLIMITED = none */
    hf_span schedule_to_close; /* the same */
    hf_span schedule_to_start; /* the same */
    hf_span heartbeat;         /* the same */
    int attempts_max;          /* HF_UNLIMITED; HF_OFF = 1 */
    bool original;             /* in place of these: the options with which the workflow scheduled them */
} hf_batch_options;

typedef struct hf_batch_stop_options {
    size_t size;            /* set by the macro */
    const char *namespace_; /* "default" */
    const char *reason;     /* NULL = "stopped" */
} hf_batch_stop_options;

typedef struct hf_batch_find_options {
    size_t size;            /* set by the macro */
    const char *namespace_; /* "default" */
} hf_batch_find_options;

typedef struct hf_batch_info {
    const char *id; /* of a list: valid until the visit returns */
    int kind;       /* hf_batch_kind; other numbers: an operation that only servers offer */
    hf_batch_state state;
    hf_time started;
    hf_time ended;    /* 0 = it goes on */
    int64_t total;    /* runs that fitted when it began; the rest is not told by a list */
    int64_t complete; /* runs that it has acted on, or that needed nothing any more */
    int64_t failed;   /* runs that refused it */
    char why[256];    /* why it was stopped or has failed; else what the first run that refused it said; "" = nothing */
} hf_batch_info;

/* False ends the list. */
typedef bool hf_batch_list_visit(void *arg, const hf_batch_info *info);

HF_BEGIN_DECLS

/* Deletes a run with its history: the current one, or the one that the handle is bound to. An open run is terminated first, and its code is not
 * told. Fails: HF_ERR_NOT_FOUND: there is no such run; HF_ERR_STORE: .all_runs, and an older run is damaged. HF_ERR_INVALID: .all_runs, and the
 * handle is bound to a run. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_delete_with(hf_execution *execution, const hf_delete_options *options);

/* Starts an operation on many workflows; it is durable when the call returns, and has only begun. Fails: HF_ERR_EXISTS: there is a batch with
 * this id; HF_ERR_INVALID: neither or both of .query and .ids, .run_ids without .ids, a wrong query (the sentence names the column), no .signal,
 * no option for activities or an .original beside one;
 * HF_ERR_LIMIT: 64 batches of the namespace are under way; HF_ERR_NOT_FOUND: there is no such namespace. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_batch_start_with(hf_service *service, const char *id, hf_batch_kind kind,
                                                 const hf_batch_options *options);
/* Stops it: what it has done stays, and it reaches no other run. Fails: HF_ERR_NOT_FOUND: there is no such batch, or it has ended. */
HF_API HF_MUST_USE hf_status hf_batch_stop_with(hf_service *service, const char *id,
                                                const hf_batch_stop_options *options);
/* How far it has come. `ret_info->id` is `id`. Fails: HF_ERR_NOT_FOUND. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_batch_describe_with(hf_service *service, const char *id, hf_batch_info *ret_info,
                                                    const hf_batch_find_options *options);
/* Visits the batches of a namespace, newest first. Fails: as hf_start. */
HF_API HF_MUST_USE hf_status hf_batch_list_with(hf_service *service, hf_batch_list_visit *visit, void *arg,
                                                const hf_batch_find_options *options);

HF_END_DECLS

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_delete(...) HF_DELETE_(__VA_ARGS__, .size = sizeof(hf_delete_options))
#define HF_DELETE_(execution, ...) \
    hf_delete_with((execution), &(hf_delete_options){__VA_ARGS__})
#define hf_batch_start(...) HF_BATCH_START_(__VA_ARGS__, .size = sizeof(hf_batch_options))
#define HF_BATCH_START_(service, id, kind, ...) \
    hf_batch_start_with((service), (id), (kind), &(hf_batch_options){__VA_ARGS__})
#define hf_batch_stop(...) HF_BATCH_STOP_(__VA_ARGS__, .size = sizeof(hf_batch_stop_options))
#define HF_BATCH_STOP_(service, id, ...) \
    hf_batch_stop_with((service), (id), &(hf_batch_stop_options){__VA_ARGS__})
#define hf_batch_describe(...) HF_BATCH_DESCRIBE_(__VA_ARGS__, .size = sizeof(hf_batch_find_options))
#define HF_BATCH_DESCRIBE_(service, id, ret_info, ...) \
    hf_batch_describe_with((service), (id), (ret_info), &(hf_batch_find_options){__VA_ARGS__})
#define hf_batch_list(...) HF_BATCH_LIST_(__VA_ARGS__, .size = sizeof(hf_batch_find_options))
#define HF_BATCH_LIST_(service, visit, arg, ...) \
    hf_batch_list_with((service), (visit), (arg), &(hf_batch_find_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_delete(hf_execution *execution,
    hf_delete_options options = hf_delete_options())
{
    options.size = sizeof options;
    return hf_delete_with(execution, &options);
}
static inline HF_MUST_USE hf_status
hf_batch_start(hf_service *service, const char *id, hf_batch_kind kind,
    hf_batch_options options = hf_batch_options())
{
    options.size = sizeof options;
    return hf_batch_start_with(service, id, kind, &options);
}
static inline HF_MUST_USE hf_status
hf_batch_stop(hf_service *service, const char *id,
    hf_batch_stop_options options = hf_batch_stop_options())
{
    options.size = sizeof options;
    return hf_batch_stop_with(service, id, &options);
}
static inline HF_MUST_USE hf_status
hf_batch_describe(hf_service *service, const char *id, hf_batch_info *ret_info,
    hf_batch_find_options options = hf_batch_find_options())
{
    options.size = sizeof options;
    return hf_batch_describe_with(service, id, ret_info, &options);
}
static inline HF_MUST_USE hf_status
hf_batch_list(hf_service *service, hf_batch_list_visit *visit, void *arg,
    hf_batch_find_options options = hf_batch_find_options())
{
    options.size = sizeof options;
    return hf_batch_list_with(service, visit, arg, &options);
}
#endif
/* clang-format on */

#endif
