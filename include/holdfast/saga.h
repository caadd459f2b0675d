/* Inside a workflow: sagas. Several deeds of which all are done or none stays.
 *
 *     HF_AUTO(hf_saga_close) hf_saga *undo = NULL;      leaving without hf_saga_commit undoes, newest first
 *     HF_TRY(hf_saga_open(&undo, .name = "trip"));
 *     HF_TRY(hf_saga_add(undo, "cancel_flight", in, .start_to_close = hf_minutes(1)));
 *     HF_TRY(hf_activity_run("book_flight", in, NULL, .start_to_close = hf_minutes(1)));
 *     HF_TRY(hf_saga_add(undo, "cancel_hotel", in, .start_to_close = hf_minutes(1)));
 *     HF_TRY(hf_activity_run("book_hotel", in, NULL, .start_to_close = hf_minutes(1)));
 *     return hf_saga_commit(undo);
 *
 * A step is added before its deed, because the answer of a deed may get lost: a booking that went through, and was told as
 * failed or canceled, is undone, too. So an activity that undoes must do no harm where nothing was done.
 *
 * Undoing runs the added activities one after another, the newest first, in a shield: also after a cancel of the workflow or
 * of the scope, and after a crash in the middle of it. A step that fails is in the log (saga_step_failed), and the others go
 * on. A workflow that is released from memory is not left, and undoes nothing. */
#ifndef HOLDFAST_SAGA_H
#define HOLDFAST_SAGA_H

#include <holdfast/workflow.h>

typedef struct hf_saga hf_saga;

typedef struct hf_saga_options {
    size_t size;      /* set by the macro */
    const char *name; /* in the log; copied; "saga" */
    hf_span bound;    /* time limit of all of the undoing; 1 h */
} hf_saga_options;

HF_BEGIN_DECLS

/* Its memory is freed with the run. Fails: HF_ERR_INVALID: the name or the bound makes no sense; HF_ERR_NOMEM,
 * HF_ERR_EVICTED; HF_ERR_MISUSE: there is no place for it, or the caller is not a workflow. */
HF_API HF_MUST_USE hf_status hf_saga_open_with(hf_saga **ret_saga, const hf_saga_options *options);
/* Adds an activity that undoes what the caller is about to do. Name, input and options are copied; .ret_details is not used.
 * Fails: as hf_activity_run does before it starts one: HF_ERR_INVALID, HF_ERR_TOO_BIG; HF_ERR_NOMEM, HF_ERR_EVICTED;
 * HF_ERR_MISUSE: the saga is of another workflow, was committed or undone. */
HF_API HF_MUST_USE hf_status hf_saga_add_with(hf_saga *saga, const char *activity, hf_payload in,
                                              const hf_activity_options *options);
/* All is done: nothing is undone any more. Fails: HF_ERR_MISUSE: it was undone, or the caller is not its workflow;
 * HF_ERR_EVICTED. */
HF_API HF_MUST_USE hf_status hf_saga_commit(hf_saga *saga);
/* Undoes now. Afterwards the saga is over. Fails: with the failure of the first step that could not be undone, when all were
 * tried; HF_ERR_EVICTED, HF_ERR_MISUSE: it was committed, or the caller is not its workflow. */
HF_API HF_MUST_USE hf_status hf_saga_undo(hf_saga *saga);
/* Undoes, unless the saga was committed or undone. The last failure of the calling fiber stays what it was, so that the
 * workflow fails with it; if some steps could not be undone, its message says how many. Accepts NULL. Fails: as
 * hf_saga_undo. */
HF_API hf_status hf_saga_close(hf_saga *saga);

HF_END_DECLS

HF_AUTO_DEFINE(hf_saga_close, hf_saga)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_saga_open(...) HF_SAGA_OPEN_(__VA_ARGS__, .size = sizeof(hf_saga_options))
#define HF_SAGA_OPEN_(ret_saga, ...) \
    hf_saga_open_with((ret_saga), &(hf_saga_options){__VA_ARGS__})
#define hf_saga_add(...) HF_SAGA_ADD_(__VA_ARGS__, .size = sizeof(hf_activity_options), .file = __FILE__, .line = __LINE__)
#define HF_SAGA_ADD_(saga, activity, in, ...) \
    hf_saga_add_with((saga), (activity), (in), &(hf_activity_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_saga_open(hf_saga **ret_saga,
    hf_saga_options options = hf_saga_options())
{
    options.size = sizeof options;
    return hf_saga_open_with(ret_saga, &options);
}
static inline HF_MUST_USE hf_status
hf_saga_add(hf_saga *saga, const char *activity, hf_payload in,
    hf_activity_options options = hf_activity_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_saga_add_with(saga, activity, in, &options);
}
#endif
/* clang-format on */

#endif
