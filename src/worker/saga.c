/* Sagas: activities that undo what was done, run in reverse. */
#include "worker/wf.h"

#include "base/span.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <holdfast/saga.h>

#include <stdio.h>

/* All of it is in wf->kept. */
typedef struct saga_step saga_step;
struct saga_step {
    saga_step *before; /* added before this one */
    const char *activity;
    hf_payload in;
    hf_activity_options options;
};

struct hf_saga {
    hf_wf *wf;
    const char *name;
    hf_span bound;
    saga_step *last;
    int count;
    bool is_over; /* committed or undone */
};

/* ---- Adding ----------------------------------------------------------------------------------------------------------- */

hf_status hf_saga_open_with(hf_saga **ret_saga, const hf_saga_options *options)
{
    HF_OPTIONS(hf_saga_options, options, hf_saga_open);
    HF_VERB_ENTER(self, hf_saga_open, NULL);
    hf_wf *wf = hf_wf_self();
    hf_op op;
    hf_op_init(&op);
    if (wf == NULL || ret_saga == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "hf_saga_open needs a place for the saga, and can only be called in a workflow"));
    }
    hf_status status = hf_not_evicted(self, "hf_saga_open");
    if (status == HF_OK &&
        (hf_text_check(&op, "hf_saga_open", ".name", options->name, 1, HF_ID_LEN_MAX) != HF_OK ||
         hf_span_check(&op, "hf_saga_open", ".bound", options->bound, HF_MAY_BE_UNLIMITED) != HF_OK)) {
        status = hf_refuse(self, op.status, "%s", op.message);
    }
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_saga *saga = HF_ARENA_NEW(&wf->kept, hf_saga);
    if (saga != NULL) {
        saga->wf = wf;
        saga->name = hf_wf_keep_text(wf, hf_str_of(options->name != NULL ? options->name : "saga"));
        saga->bound = options->bound.ns > 0 ? options->bound : hf_hours(1);
    }
    if (wf->kept.status != HF_OK) {
        wf->is_nomem = true;
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a saga"));
    }
    *ret_saga = saga;
    HF_LEAVE(self, HF_OK);
}

static const char *keep(hf_wf *wf, const char *text)
{
    return text != NULL ? hf_wf_keep_text(wf, hf_str_of(text)) : NULL;
}

static const char *const *keep_types(hf_wf *wf, const char *const *types)
{
    size_t count = 0;
    while (types != NULL && types[count] != NULL) {
        count++;
    }
    const char **kept = count > 0 ? HF_ARENA_ARRAY(&wf->kept, const char *, count + 1) : NULL;
    for (size_t i = 0; kept != NULL && i < count; i++) {
        kept[i] = keep(wf, types[i]);
    }
    return kept;
}

static hf_payload keep_payload(hf_wf *wf, hf_payload from)
{
    hf_payload kept = from;
    kept.owned = NULL;
    kept.data = from.len > 0 ? hf_arena_copy(&wf->kept, hf_str_of_len(from.data, from.len)).data : from.data;
    kept.encoding = keep(wf, from.encoding);
    return kept;
}

static const hf_entry *keep_header(hf_wf *wf, const hf_entry *header)
{
    size_t count = 0;
    while (header != NULL && header[count].key != NULL) {
        count++;
    }
    hf_entry *kept = count > 0 ? HF_ARENA_ARRAY(&wf->kept, hf_entry, count + 1) : NULL;
    for (size_t i = 0; kept != NULL && i < count; i++) {
        kept[i].key = keep(wf, header[i].key);
        kept[i].value = keep_payload(wf, header[i].value);
    }
    return kept;
}

/* False: no memory. */
static bool push(hf_saga *saga, const char *activity, hf_payload in, const hf_activity_options *options)
{
    hf_assert(!saga->is_over && (saga->last != NULL) == (saga->count > 0));
    hf_wf *wf = saga->wf;
    saga_step *step = HF_ARENA_NEW(&wf->kept, saga_step);
    if (step == NULL) {
        return false;
    }
    step->activity = keep(wf, activity);
    step->in = keep_payload(wf, in);
    step->options = *options;
    step->options.header = keep_header(wf, options->header);
    step->options.ret_branch = NULL;
    step->options.task_queue = keep(wf, options->task_queue);
    step->options.id = keep(wf, options->id);
    step->options.summary = keep(wf, options->summary);
    step->options.final_types = keep_types(wf, options->final_types);
    step->options.ret_details = NULL;
    step->before = saga->last;
    if (wf->kept.status != HF_OK) {
        return false;
    }
    saga->last = step;
    saga->count++;
    hf_assert(step->activity != NULL && step->options.ret_details == NULL); /* nothing of it is the caller's */
    return true;
}

/* Whether the saga may still be used by the caller. */
static hf_status check(hf_fiber *self, const hf_saga *saga, const char *verb)
{
    if (saga == NULL || saga->wf != hf_wf_self()) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a saga of the calling workflow", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    return saga->is_over ? hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s: the saga '%.100s' was committed or undone",
                                        verb, saga->name)
                         : HF_OK;
}

hf_status hf_saga_add_with(hf_saga *saga, const char *activity, hf_payload in, const hf_activity_options *options)
{
    HF_OPTIONS(hf_activity_options, options, hf_saga_add);
    HF_VERB_ENTER(self, hf_saga_add, NULL);
    hf_op op;
    hf_op_init(&op);
    hf_status status = check(self, saga, "hf_saga_add");
    if (status == HF_OK && hf_wf_check_work(&op, saga->wf, activity, in, options) != HF_OK) {
        status = hf_refuse(self, op.status, "%s", op.message);
    }
    if (status == HF_OK && !push(saga, activity, in, options)) {
        saga->wf->is_nomem = true;
        status = hf_refuse(self, HF_ERR_NOMEM, "no memory for a step of the saga");
    }
    HF_LEAVE(self, status);
}

hf_status hf_saga_commit(hf_saga *saga)
{
    HF_VERB_ENTER(self, hf_saga_commit, NULL);
    hf_status status = check(self, saga, "hf_saga_commit");
    if (status == HF_OK) {
        saga->is_over = true;
    }
    HF_LEAVE(self, status);
}

/* ---- Undoing ---------------------------------------------------------------------------------------------------------- */

static void keep_failure(hf_failure_box **kept)
{
    if (*kept == NULL && hf_error() != NULL) {
        *kept = hf_box_ref(hf_box_of(hf_error()));
    }
}

/* Makes it the last failure of the fiber again; NULL = it had none. */
static void give_failure(hf_failure_box *kept)
{
    hf_fiber *self = hf_enter(NULL);
    if (kept != NULL) {
        hf_self_fail(self, kept);
    } else {
        self->last_status = HF_OK;
        self->last_where = NULL;
    }
    hf_leave(self);
}

/* Runs all steps, in a shield. `*ret_failed`: how many failed; the first of their failures is in `*ret_first`. */
static hf_status run_steps(hf_saga *saga, int *ret_failed, hf_failure_box **ret_first)
{
    hf_status first = HF_OK;
    hf_assert(!saga->is_over && *ret_first == NULL); /* each step is undone once */
    *ret_failed = 0;
    for (const saga_step *step = saga->last; step != NULL; step = step->before) {
        hf_status status = hf_activity_run_with(step->activity, step->in, NULL, &step->options);
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        if (status != HF_OK) {
            ++*ret_failed;
            keep_failure(ret_first);
            first = first != HF_OK ? first : status;
            hf_note(HF_LOG_WARN, "saga_step_failed", "saga=%s activity=%s message=%s", saga->name, step->activity,
                    hf_error_text());
        }
    }
    hf_assert(*ret_failed <= saga->count && (*ret_failed > 0) == (first != HF_OK));
    return first;
}

static hf_status undo(hf_saga *saga, int *ret_failed, hf_failure_box **ret_first)
{
    hf_shield *shield = NULL;
    hf_assert(saga->wf == hf_wf_self() && saga->bound.ns > 0);
    HF_TRY(hf_shield_open(saga->bound, &shield));
    hf_status status = run_steps(saga, ret_failed, ret_first);
    HF_IGNORE(hf_shield_close(shield));
    saga->is_over = status != HF_ERR_EVICTED;
    return status;
}

static hf_status enter(hf_saga *saga)
{
    HF_VERB_ENTER(self, hf_saga_undo, NULL);
    HF_LEAVE(self, check(self, saga, "hf_saga_undo"));
}

hf_status hf_saga_undo(hf_saga *saga)
{
    int failed = 0;
    hf_failure_box *first = NULL;
    HF_TRY(enter(saga));
    hf_status status = undo(saga, &failed, &first);
    if (first != NULL) {
        give_failure(first);
    }
    return status;
}

/* The failure with which the workflow is about to return, and how many steps could not be undone. Takes it. */
static hf_failure_box *with_count(const hf_saga *saga, hf_failure_box *kept, int failed)
{
    char text[HF_MESSAGE_LEN_MAX];
    if (kept == NULL || failed == 0) {
        return kept;
    }
    (void)snprintf(text, sizeof text, "%.300s; %d of %d steps of the saga '%.60s' could not be undone",
                   kept->failure.message, failed, saga->count, saga->name);
    hf_failure_box *box = hf_box_new(kept->rt, kept->as, kept->failure.type, NULL, text, hf_box_ref(kept));
    hf_box_unref(kept);
    return box;
}

hf_status hf_saga_close(hf_saga *saga)
{
    int failed = 0;
    hf_failure_box *kept = NULL;
    hf_failure_box *first = NULL;
    if (saga == NULL || hf_crew_self_is_evicted()) {
        return HF_OK;
    }
    if (saga->wf == hf_wf_self() && saga->is_over) {
        return HF_OK;
    }
    keep_failure(&kept);
    hf_status status = enter(saga);
    if (status == HF_OK) {
        status = undo(saga, &failed, &first);
        hf_box_unref(first);
        give_failure(status == HF_ERR_EVICTED ? kept : with_count(saga, kept, failed));
    } else {
        hf_box_unref(kept);
    }
    return status;
}
