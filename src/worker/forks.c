/* Activities and children without a fiber: hf_fork_activity, hf_fork_child. Each is a job of the crew (fiber/crew/job.h)
 * with the same life as one that a fiber waits for (verbs_activity.c, verbs_child.c), but what a fiber does when it
 * runs again is done here at once:
 *
 *     its end was seen        outputs are written, its branch ends with the status, the join of its scope decides
 *     it is canceled          not sent yet: withdrawn, and its branch ends canceled
 *                             HF_CANCEL_WAIT: it is asked to end, and its branch ends with it
 *                             else: it is asked (HF_CANCEL_TRY) or not, and its branch ends canceled
 *
 * Events are applied by the driver, cancels may come from any fiber of the run: both in an order that a replay repeats
 * (worker-K3). */
#include "worker/wf.h"

#include "fiber/crew/strand.h"
#include "fiber/verbs.h"

#include <stdio.h>

/* Each is to cost at most 512 bytes beside its payload: this, its branch and its command, until the history shows it. */
_Static_assert(sizeof(hf_wf_activity_job) + sizeof(hf_branch) + sizeof(hf_command_record) <= 512, "worker-K5");
_Static_assert(sizeof(hf_wf_child_job) + sizeof(hf_branch) + sizeof(hf_command_record) <= 512, "worker-K5");

/* The text for as long as the run is in memory. A run has few names, and thousands of activities: the name of one that
 * failed may be the reason of a cancel, which outlives it. NULL: no memory. */
static const char *intern(hf_wf *wf, const char *text)
{
    size_t len = strlen(text);
    for (const hf_wf_name *name = wf->names; name != NULL; name = name->next) {
        if (name->len == len && memcmp(name->text, text, len) == 0) {
            return name->text;
        }
    }
    hf_wf_name *name = hf_arena_take(&wf->kept, sizeof *name + len + 1, _Alignof(hf_wf_name));
    if (name == NULL) {
        return NULL;
    }
    *name = (hf_wf_name){.next = wf->names, .len = len};
    memcpy(name->text, text, len + 1);
    wf->names = name;
    return name->text;
}

static void *job_new(hf_wf *wf, size_t len)
{
    hf_assert(len >= sizeof(hf_crew_job));
    hf_allocator memory = wf->worker->memory;
    void *job = memory.allocate(memory.state, len, _Alignof(max_align_t));
    if (job != NULL) {
        memset(job, 0, len);
        wf->jobs_bytes += len;
    }
    return job;
}

static void job_free(hf_wf *wf, void *job, size_t len)
{
    hf_assert(wf->jobs_bytes >= len);
    wf->jobs_bytes -= len;
    wf->worker->memory.release(wf->worker->memory.state, job, len);
}

/* A verb that forks into a scope of the run. Fails: HF_ERR_EVICTED, HF_ERR_CANCELED. */
static hf_status may_fork(hf_fiber *self, const hf_wf *wf, const char *verb)
{
    if (wf == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s is for workflows", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    return hf_wf_not_over(self, wf, verb);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

static void forget_activity(hf_wf_activity_job *forked)
{
    hf_wf_activity *activity = &forked->activity;
    if (hf_node_is_linked(&activity->node)) {
        hf_list_remove(&activity->node);
    }
    if (activity->record != NULL) {
        hf_assert(activity->record->activity == activity || activity->record->activity == NULL);
        activity->record->activity = NULL;
    }
    job_free(activity->wf, forked, sizeof *forked + (activity->id != NULL ? strlen(activity->id) + 1 : 0));
}

static bool cancel_activity(hf_crew_job *job)
{
    hf_wf_activity_job *forked = HF_CONTAINER(job, hf_wf_activity_job, job);
    hf_wf_activity *activity = &forked->activity;
    hf_wf *wf = activity->wf;
    hf_assert(wf != NULL && activity->wait == NULL); /* no fiber waits for it */
    if (activity->scheduled_event_id == 0) {
        hf_wf_withdraw_activity(wf, activity);
    } else if (activity->on_cancel == HF_CANCEL_WAIT) {
        if (!activity->has_ended && !activity->is_asked) {
            hf_wf_cancel_activity(wf, activity);
        }
        activity->is_asked = true;
        return false;
    } else {
        hf_wf_leave_activity(wf, activity, (hf_on_cancel)activity->on_cancel);
    }
    forget_activity(forked);
    return true;
}

static void drop_activity(hf_crew_job *job)
{
    forget_activity(HF_CONTAINER(job, hf_wf_activity_job, job));
}

static const hf_crew_job_kind ACTIVITY = {cancel_activity, drop_activity};

void hf_wf_end_activity_job(hf_wf_activity *activity)
{
    hf_wf_activity_job *forked = HF_CONTAINER(activity, hf_wf_activity_job, activity);
    hf_assert(activity->wait == NULL && activity->end != NULL);
    hf_status status =
        hf_wf_activity_outcome(activity->wf, forked->name, activity, hf_crew_job_is_canceled(&forked->job),
                               forked->ret_out, forked->ret_details);
    hf_fiber *self = hf_enter(NULL);
    hf_crew_job_end(self, &forked->job, status);
    hf_leave(self);
    forget_activity(forked);
}

static hf_wf_activity_job *activity_new(hf_wf *wf, const char *name, hf_payload *ret_out,
                                        const hf_activity_options *options)
{
    size_t id_len = options->id != NULL ? strlen(options->id) + 1 : 0;
    size_t len = sizeof(hf_wf_activity_job) + id_len;
    const char *kept = intern(wf, name);
    hf_wf_activity_job *forked = kept != NULL ? job_new(wf, len) : NULL;
    if (forked != NULL) {
        forked->activity.wf = wf;
        forked->job.kind = &ACTIVITY;
        forked->name = kept;
        forked->ret_out = ret_out;
        forked->ret_details = options->ret_details;
        forked->activity.on_cancel = (uint8_t)options->on_cancel;
        if (id_len > 0) {
            memcpy(forked->id, options->id, id_len);
            forked->activity.id = forked->id;
        }
    }
    return forked;
}

static hf_status fork_activity(hf_fiber *self, hf_wf *wf, hf_scope *scope, const char *name, hf_payload in,
                               hf_payload *ret_out, const hf_activity_options *options)
{
    static const char VERB[] = "hf_fork_activity";
    hf_op op;
    hf_op_init(&op);
    HF_TRY(may_fork(self, wf, VERB));
    if (hf_wf_check_activity(&op, wf, name, in, options) != HF_OK) {
        return hf_refuse_at(self, op.status, VERB, "%s", op.message);
    }
    hf_wf_activity_job *forked = activity_new(wf, name, ret_out, options);
    if (forked == NULL) {
        wf->is_nomem = true;
        return hf_refuse_at(self, HF_ERR_NOMEM, VERB, "no memory for activity '%s'", name);
    }
    hf_status status = hf_fork_job(self, scope, &forked->job, VERB, forked->name, options->ret_branch);
    if (status != HF_OK) {
        wf->is_nomem |= status == HF_ERR_NOMEM;
        forget_activity(forked);
        return status;
    }
    if (hf_crew_job_is_canceled(&forked->job)) { /* the scope was canceled before: nothing is sent, no number is used */
        hf_crew_job_end(self, &forked->job, HF_ERR_CANCELED);
        forget_activity(forked);
        return HF_OK;
    }
    wf->forking = scope;
    bool is_made = hf_wf_schedule(wf, &forked->activity, name, in, options) != NULL;
    wf->forking = NULL;
    if (!is_made) {
        status = hf_refuse_at(self, HF_ERR_NOMEM, VERB, "no memory for activity '%s'", name);
        hf_crew_job_end(self, &forked->job, status);
        forget_activity(forked);
    }
    return status;
}

hf_status hf_fork_activity_with(hf_scope *scope, const char *name, hf_payload in, hf_payload *ret_out,
                                const hf_activity_options *options)
{
    HF_OPTIONS(hf_activity_options, options, hf_fork_activity);
    HF_TRY(hf_wf_header_make("hf_fork_activity", options->header));
    HF_VERB_ENTER(self, hf_fork_activity, NULL);
    HF_LEAVE(self, fork_activity(self, hf_wf_self(), scope, name, in, ret_out, options));
}

/* ---- Children ---------------------------------------------------------------------------------------------------- */

static void forget_child(hf_wf_child_job *forked)
{
    hf_wf_ask *ask = &forked->ask;
    if (hf_node_is_linked(&ask->node)) {
        hf_list_remove(&ask->node);
    }
    if (ask->record != NULL) {
        ask->record->ask = NULL;
    }
    job_free(ask->wf, forked, sizeof *forked);
}

static bool cancel_child(hf_crew_job *job)
{
    hf_wf_child_job *forked = HF_CONTAINER(job, hf_wf_child_job, job);
    hf_wf_ask *ask = &forked->ask;
    hf_wf *wf = ask->wf;
    bool is_waiting = ask->event_id > 0 && forked->on_cancel == HF_CANCEL_WAIT;
    if (ask->event_id == 0) {
        hf_wf_withdraw_ask(wf, ask);
    } else if (!ask->has_ended && !ask->is_asked && forked->on_cancel != HF_CANCEL_ABANDON) {
        hf_wf_cancel_child(wf, ask);
    }
    if (is_waiting) {
        ask->is_asked = true;
        return false;
    }
    wf->asks_count -= ask->event_id > 0;
    forget_child(forked);
    return true;
}

static void drop_child(hf_crew_job *job)
{
    forget_child(HF_CONTAINER(job, hf_wf_child_job, job));
}

static const hf_crew_job_kind CHILD = {cancel_child, drop_child};

void hf_wf_end_child_job(hf_wf_ask *ask)
{
    hf_wf_child_job *forked = HF_CONTAINER(ask, hf_wf_child_job, ask);
    hf_assert(ask->wait == NULL && ask->is_child && ask->end != NULL);
    hf_status status =
        hf_wf_child_outcome(ask->wf, forked->type, ask, hf_crew_job_is_canceled(&forked->job), forked->ret_out);
    hf_fiber *self = hf_enter(NULL);
    hf_crew_job_end(self, &forked->job, status);
    hf_leave(self);
    forget_child(forked);
}

static hf_status fork_child(hf_fiber *self, hf_wf *wf, hf_scope *scope, const char *type, hf_payload in,
                            hf_payload *ret_out, const hf_child_options *options)
{
    static const char VERB[] = "hf_fork_child";
    hf_op op;
    hf_op_init(&op);
    HF_TRY(may_fork(self, wf, VERB));
    if (hf_wf_check_child(&op, wf, VERB, type, in, options) != HF_OK) {
        return hf_refuse_at(self, op.status, VERB, "%s", op.message);
    }
    const char *name = intern(wf, type);
    hf_wf_child_job *forked = name != NULL ? job_new(wf, sizeof *forked) : NULL;
    if (forked == NULL) {
        wf->is_nomem = true;
        return hf_refuse_at(self, HF_ERR_NOMEM, VERB, "no memory for child '%.100s'", type);
    }
    forked->ask = (hf_wf_ask){.wf = wf, .is_child = true};
    forked->job.kind = &CHILD;
    forked->type = name;
    forked->ret_out = ret_out;
    forked->on_cancel = options->on_cancel;
    hf_status status = hf_fork_job(self, scope, &forked->job, VERB, name, options->ret_branch);
    if (status != HF_OK) {
        wf->is_nomem |= status == HF_ERR_NOMEM;
        forget_child(forked);
        return status;
    }
    if (hf_crew_job_is_canceled(&forked->job)) { /* the scope was canceled before: nothing is sent, no number is used */
        hf_crew_job_end(self, &forked->job, HF_ERR_CANCELED);
        forget_child(forked);
        return HF_OK;
    }
    wf->forking = scope;
    bool is_made = hf_wf_start_child(wf, &forked->ask, type, in, options) != NULL;
    wf->forking = NULL;
    if (!is_made) {
        status = hf_refuse_at(self, HF_ERR_NOMEM, VERB, "no memory for child '%.100s'", type);
        hf_crew_job_end(self, &forked->job, status);
        forget_child(forked);
    }
    return status;
}

hf_status hf_fork_child_with(hf_scope *scope, const char *type, hf_payload in, hf_payload *ret_out,
                             const hf_child_options *options)
{
    HF_OPTIONS(hf_child_options, options, hf_fork_child);
    HF_TRY(hf_wf_header_make("hf_fork_child", options->header));
    HF_VERB_ENTER(self, hf_fork_child, NULL);
    HF_LEAVE(self, fork_child(self, hf_wf_self(), scope, type, in, ret_out, options));
}
