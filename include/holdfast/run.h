/* Inside a workflow: the run itself. Its facts, its memory, its scope, versions of its code, the next run of its chain, how it
 * fails. */
#ifndef HOLDFAST_RUN_H
#define HOLDFAST_RUN_H

#include <holdfast/json.h>
#include <holdfast/payload.h>
#include <holdfast/scope.h>
#include <holdfast/time.h>

/* Texts are valid as long as the run is in memory. */
typedef struct hf_workflow_facts {
    const char *id;
    const char *run_id;
    const char *type;
    const char *task_queue;
    const char *namespace_;
    const char *first_run_id; /* of the chain: it differs from run_id after a retry, a cron tick or a continue-as-new */
    const char *parent_id;    /* workflow id of the parent; "" = there is none */
    const char *cron;         /* its schedule; "" = none */
    int attempt;              /* from 1 */
    hf_time started;          /* when this run was started */
    int64_t history_count;    /* events of the history when this step began */
    int64_t history_len;      /* their bytes, as far as the service tells; 0 = unknown */
    bool should_continue;     /* the history gets long: continue as new soon */
    void *arg;                /* of hf_worker_add_workflow */
    const char *parent_run_id; /* "" = there is no parent */
    const char *root_id;       /* workflow id of the first parent of all; its own = there is no parent */
    const char
        *continued_run_id;     /* the run before it in its chain: a retry, a cron tick, a continue-as-new; "" = none */
    hf_span execution_timeout; /* of all runs of the chain together; 0 = none */
    hf_span run_timeout;       /* of this run; 0 = none */
    hf_payload last_result;    /* of the last run before it that a cron schedule started and that succeeded; borrowed;
                                     empty = there is none */
    const char *last_failure;  /* message of the failure of the run before it: a retry, a cron tick; "" = none */
} hf_workflow_facts;

typedef struct hf_continue_options {
    size_t size;            /* set by the macro */
    const char *type;       /* of the workflow; NULL = the same */
    const char *task_queue; /* NULL = the same */
    hf_span run_timeout;    /* of the next run; 0 = the same */
    hf_span task_timeout;   /* 0 = the same */
    const char *file;       /* set by the macro, as is the line: see hf_wait_options */
    int line;
    const hf_entry *header; /* of the next run, see header.h; NULL = none */
    const hf_entry
        *memo; /* of the next run, in place of this run's, as that of hf_start; NULL = this run's; an empty list =
                             none */
    const hf_entry *search_attributes; /* the same */
} hf_continue_options;

typedef struct hf_workflow_fail_options {
    size_t size;         /* set by the macro */
    const char *type;    /* for programs, and for a retry policy's final_types; NULL = "HF_ERR_FAILED" */
    bool is_final;       /* the workflow is not tried again, whatever its retry policy says */
    hf_span retry_after; /* pause before its next run, in place of the policy's, at most the policy's longest; 0 = the
                            policy's */
    hf_payload details;  /* for whoever waits for the result: hf_error()->details; borrowed */
} hf_workflow_fail_options;

HF_BEGIN_DECLS

/* NULL outside a workflow. Valid until the calling fiber waits. */
HF_API const hf_workflow_facts *hf_workflow_info(void);
/* Zeroed memory that is freed with the run: for what handlers share with the main function. NULL: out of memory, or the
 * caller is not a workflow; without memory the step is tried again later. */
HF_API void *hf_workflow_alloc(size_t len);
/* The scope around the main function. If a fiber that was forked into it fails, the main function is canceled, and the
 * workflow fails with that fiber's failure. When the main function returns, the fibers in it are canceled and joined.
 * NULL outside a workflow, and in a handler after the main function has returned. */
HF_API hf_scope *hf_workflow_scope(void);

/* For code that changes while runs are under way: if (hf_patched("express")) { new code } else { old code }
 *
 * True in runs that come here for the first time, and a marker in the history remembers it. False in a replay of a
 * history that was made without the call. The first call with an id decides for the rest of the run, and the whole history is
 * looked through: the call may be moved to where another step runs; within a step its place among the commands counts. `id` is copied and has 1 to 1,000 bytes. False outside a
 * workflow, too. */
HF_API bool hf_patched(const char *id);
/* When no run takes the old branch any more, replaces hf_patched: from now on the marker may be missing in code and
 * history. Remove the call when the runs that have its marker are gone. Fails: HF_ERR_INVALID, HF_ERR_MISUSE,
 * HF_ERR_NOMEM, HF_ERR_EVICTED. */
HF_API HF_MUST_USE hf_status hf_patch_deprecate(const char *id);

/* Sets keys of the memo, which hf_describe shows, or of the search attributes, by which runs are found; keys that are not
 * named keep their value, and hf_field_null("key") removes one. Returns at once: what others see changes when the step ends. A
 * search attribute has the type of its field: text is Keyword, int is Int, real is Double, bool is Bool, time is Datetime, and
 * a JSON array of texts is KeywordList; one that the namespace does not know (hf_search_attribute_add, list.h), or knows as
 * another type, fails the workflow task until it does. `fields` ends with hf_field_end(); hf_memo_set and hf_search_set below make the list.
 * Fails: HF_ERR_INVALID: no field, more than 100, a key that is empty, too long or there twice, or a value as in
 * hf_payload_object (json.h); HF_ERR_TOO_BIG: the memo, or the search attributes, would have more than 2 MiB in all;
 * HF_ERR_CANCELED: the workflow has ended; HF_ERR_NOMEM, HF_ERR_EVICTED, HF_ERR_MISUSE outside a workflow. */
HF_API HF_MUST_USE hf_status hf_memo_set_of(const hf_field *fields);
HF_API HF_MUST_USE hf_status hf_search_set_of(const hf_field *fields);
/* Reads a key of the memo or of the search attributes: as it was at the start of the run, with what was set since. The
 * caller owns the value, which is freed with the run. Fails: HF_ERR_NOT_FOUND: there is no such key; HF_ERR_NOMEM; HF_ERR_MISUSE
 * outside a workflow. */
HF_API HF_MUST_USE hf_status hf_memo_get(const char *key, hf_payload *ret_value);
HF_API HF_MUST_USE hf_status hf_search_get(const char *key, hf_payload *ret_value);

/* return hf_continue_as_new(state);  Ends the run and starts the next one of its chain, with the same id and an empty
 * history. It takes effect when the main function returns the status that this returns, HF_ERR_CONTINUED. The next run has
 * the retry policy of this one and, unless the options give others, its memo and its search attributes, with what was set
 * meanwhile. Signals that were not taken go along, in their order. From this call on handlers get no signals, because the
 * next run is to see them.
 * Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG, HF_ERR_MISUSE: `in` has no bytes, or the
 * caller is not the main function of a workflow; HF_ERR_NOMEM, HF_ERR_EVICTED. */
HF_API HF_MUST_USE hf_status hf_continue_as_new_with(hf_payload in, const hf_continue_options *options);

/* return hf_workflow_fail("the order is empty", .type = "EmptyOrder", .is_final = true);
 *
 * Makes a failure and returns HF_ERR_FAILED. The main function that returns this status ends the run with that failure; its
 * parent, or hf_result, finds type and details in hf_error(), or in the causes of that. A handler of updates, a validator or
 * a query that returns it fails with it, too, and so does a fiber, whose join then returns it. The last failure of the
 * fiber, even one that was handled, becomes its cause. Any other failure may be returned as well (hf_raise,
 * hf_raise_typed): this one also has details, and is final if it should be. Texts and details are copied.
 * Fails: HF_ERR_TOO_BIG: .details has more than 2 MiB; HF_ERR_INVALID: .retry_after is negative, or less than a
 * millisecond; HF_ERR_NOMEM; HF_ERR_MISUSE: there is no message, or the caller is not a workflow. */
HF_API HF_MUST_USE hf_status hf_workflow_fail_with(const char *message, const hf_workflow_fail_options *options);

HF_END_DECLS

/* hf_memo_set(fields...) and hf_search_set(fields...), for C and C++:
 *     HF_TRY(hf_search_set(hf_field_text("customer", name), hf_field_int("cents", 4711))); */
/* clang-format off */
#ifndef __cplusplus
#define hf_memo_set(...) (hf_here(__FILE__, __LINE__), hf_memo_set_of((const hf_field[]){__VA_ARGS__, hf_field_end()}))
#define hf_search_set(...) (hf_here(__FILE__, __LINE__), hf_search_set_of((const hf_field[]){__VA_ARGS__, hf_field_end()}))
#else
template <class... Fields> static inline HF_MUST_USE hf_status hf_memo_set(Fields... fields)
{
    const hf_field list[] = {fields..., hf_field_end()};
    return hf_memo_set_of(list);
}
template <class... Fields> static inline HF_MUST_USE hf_status hf_search_set(Fields... fields)
{
    const hf_field list[] = {fields..., hf_field_end()};
    return hf_search_set_of(list);
}
#define hf_memo_set(...) (hf_here(__FILE__, __LINE__), hf_memo_set(__VA_ARGS__))
#define hf_search_set(...) (hf_here(__FILE__, __LINE__), hf_search_set(__VA_ARGS__))
#endif
/* clang-format on */
#define hf_patched(...) (hf_here(__FILE__, __LINE__), hf_patched(__VA_ARGS__))
#define hf_patch_deprecate(...) (hf_here(__FILE__, __LINE__), hf_patch_deprecate(__VA_ARGS__))

/* HF_WORKFLOW_NEW(cart): memory for one object of the type, see hf_workflow_alloc. */
#define HF_WORKFLOW_NEW(type) ((type *)hf_workflow_alloc(sizeof(type)))

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_continue_as_new(...) HF_CONTINUE_AS_NEW_(__VA_ARGS__, .size = sizeof(hf_continue_options), .file = __FILE__, .line = __LINE__)
#define HF_CONTINUE_AS_NEW_(in, ...) \
    hf_continue_as_new_with((in), &(hf_continue_options){__VA_ARGS__})
#define hf_workflow_fail(...) HF_WORKFLOW_FAIL_(__VA_ARGS__, .size = sizeof(hf_workflow_fail_options))
#define HF_WORKFLOW_FAIL_(message, ...) \
    hf_workflow_fail_with((message), &(hf_workflow_fail_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_continue_as_new(hf_payload in,
    hf_continue_options options = hf_continue_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_continue_as_new_with(in, &options);
}
static inline HF_MUST_USE hf_status
hf_workflow_fail(const char *message,
    hf_workflow_fail_options options = hf_workflow_fail_options())
{
    options.size = sizeof options;
    return hf_workflow_fail_with(message, &options);
}
#endif
/* clang-format on */

#endif
