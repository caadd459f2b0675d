/* The verbs of a workflow and the events that answer them: timers, and the end of the run. Activities are in
 * verbs_activity.c, signals in signals.c, handlers in handlers.c. Verbs run on the crew's fibers, inside turns; the functions for events (wf.h) run on the driver,
 * between turns. Both run on one thread, so there are no locks. */
#include "worker/wf.h"

#include "fiber/crew/crew_private.h"
#include "fiber/verbs.h"
#include "history/limits.h"

hf_wf *hf_wf_self(void)
{
    return hf_crew_self_state(&hf_wf_crew_ops);
}

bool hf_wf_is_canceled(const char *verb)
{
    hf_fiber *self = hf_enter(NULL);
    bool is_canceled = hf_is_canceled(self);
    if (is_canceled) {
        hf_self_note(self, HF_ERR_CANCELED, verb);
    }
    hf_leave(self);
    return is_canceled;
}

hf_payload_bag *hf_wf_self_payloads(void)
{
    hf_wf *wf = hf_wf_self();
    return wf != NULL ? &wf->payloads : NULL;
}

const char *hf_workflow_id(void)
{
    const hf_wf *wf = hf_wf_self();
    return wf != NULL ? wf->id.data : NULL;
}

const char *hf_workflow_run_id(void)
{
    const hf_wf *wf = hf_wf_self();
    return wf != NULL ? wf->run_id.data : NULL;
}

hf_str hf_wf_number_text(hf_arena *arena, uint64_t number)
{
    char text[20];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return hf_arena_copy(arena, hf_str_of_len(text + at, sizeof text - at));
}

bool hf_wf_is_too_long(const char *text)
{
    return text != NULL && strnlen(text, HF_ID_LEN_MAX + 1) > HF_ID_LEN_MAX;
}

/* ---- Timers ------------------------------------------------------------------------------------------------------ */

static hf_status timer_start(void *state, hf_crew_timer *crew_timer, hf_span span)
{
    hf_wf *wf = state;
    hf_worker *worker = wf->worker;
    void *room = NULL;
    if (wf->has_closed) {
        return HF_ERR_CANCELED; /* a handler cleans up after the run's end: there is nobody to fire it (T9) */
    }
    if (wf->timers_count >= HF_CREW_TIMERS_MAX && !hf_wf_plays_by(wf, HF_WF_RULE_TIMERS)) {
        return HF_ERR_LIMIT; /* services once failed a task with one timer more */
    }
    hf_wf_timer *timer = worker->memory.allocate(worker->memory.state, sizeof *timer, _Alignof(hf_wf_timer));
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_START_TIMER, HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_start_timer_command_attributes), &room);
    if (timer == NULL || record == NULL) {
        wf->is_nomem = true;
        if (timer != NULL) {
            worker->memory.release(worker->memory.state, timer, sizeof *timer);
        }
        return HF_ERR_NOMEM;
    }
    hf_assert(span.ns >= 0); /* fiber/crew.h */
    *timer = (hf_wf_timer){.seq = ++wf->timer_seq, .crew_timer = crew_timer, .record = record};
    crew_timer->id = timer->seq;
    record->id = hf_wf_number_text(&wf->recorder.arena, timer->seq);
    record->span = span;
    record->timer = timer;
    timer->file = record->file;
    timer->line = record->line;
    hf_pb_start_timer_command_attributes *a = room;
    a->timer_id = record->id;
    a->start_to_fire_timeout = hf_pb_duration_of(span);
    hf_wf_pending_add(&wf->timers, wf, &timer->node, timer->seq, ++wf->timers_count);
    return HF_OK;
}

static hf_wf_timer *find_timer(hf_wf *wf, uint64_t seq)
{
    hf_list *list = NULL;
    for (int i = 0; (list = hf_wf_pending_at(&wf->timers, seq, i)) != NULL; i++) {
        HF_LIST_EACH(node, list)
        {
            hf_wf_timer *timer = HF_CONTAINER(node, hf_wf_timer, node);
            if (timer->seq == seq) {
                return timer;
            }
        }
    }
    return NULL;
}

static void free_timer(hf_wf *wf, hf_wf_timer *timer)
{
    hf_assert(wf->timers_count > 0);
    hf_list_remove(&timer->node);
    wf->timers_count--;
    wf->worker->memory.release(wf->worker->memory.state, timer, sizeof *timer);
}

static void record_timer_cancel(hf_wf *wf, const hf_wf_timer *timer)
{
    void *room = NULL;
    hf_assert(timer->seq > 0 && timer->seq <= wf->timer_seq); /* worker-K3: numbers are given in order */
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_CANCEL_TIMER, HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_cancel_timer_command_attributes), &room);
    if (record == NULL) {
        wf->is_nomem = true;
        return;
    }
    record->file = timer->file;
    record->line = timer->line;
    record->id = hf_wf_number_text(&wf->recorder.arena, timer->seq);
    ((hf_pb_cancel_timer_command_attributes *)room)->timer_id = record->id;
}

static void timer_cancel(void *state, hf_crew_timer *crew_timer)
{
    hf_wf *wf = state;
    hf_wf_timer *timer = find_timer(wf, crew_timer->id);
    hf_assert(timer != NULL && timer->crew_timer == crew_timer);
    if (timer->record != NULL) { /* started and given up in one step: the command is not sent */
        timer->record->is_withdrawn = true;
        timer->record->timer = NULL;
    } else if (!timer->has_fired && !wf->has_closed) {
        record_timer_cancel(wf, timer);
    }
    free_timer(wf, timer);
}

const hf_crew_ops hf_wf_crew_ops = {timer_start, timer_cancel, hf_wf_signal_check, hf_wf_signal_take,
                                    hf_wf_signal_waits};

static hf_wf_timer *timer_named(hf_wf *wf, hf_str timer_id)
{
    uint64_t seq = 0;
    for (size_t i = 0; i < timer_id.len && i < 20; i++) {
        seq = seq * 10 + (uint64_t)(timer_id.data[i] - '0');
    }
    return find_timer(wf, seq);
}

void hf_wf_will_fire(hf_wf *wf, hf_str timer_id)
{
    hf_wf_timer *timer = timer_named(wf, timer_id);
    if (timer != NULL) {
        timer->has_fired = true;
    }
}

void hf_wf_fired(hf_wf *wf, hf_str timer_id)
{
    hf_wf_timer *timer = timer_named(wf, timer_id);
    if (timer != NULL) { /* else it was canceled just before */
        hf_crew_timer *crew_timer = timer->crew_timer;
        hf_assert(crew_timer != NULL);
        free_timer(wf, timer);
        hf_crew_fire(wf->crew, crew_timer);
    }
}

/* ---- The first fiber --------------------------------------------------------------------------------------------- */

void hf_wf_set_closing(hf_wf *wf, hf_command_record *record)
{
    hf_assert(wf->closing == NULL && hf_node_is_linked(&record->node));
    hf_list_remove(&record->node);
    wf->closing = record;
}

/* The command that ends the run, and its attributes. NULL: no memory. */
static void *record_closing(hf_wf *wf, int32_t type, uint32_t attributes_case, size_t len)
{
    void *room = NULL;
    hf_command_record *record = hf_recorder_add(&wf->recorder, type, attributes_case, len, &room);
    if (record == NULL) {
        return NULL;
    }
    hf_wf_set_closing(wf, record);
    return room;
}

static bool record_complete(hf_wf *wf, hf_payload out)
{
    hf_pb_complete_workflow_execution_command_attributes *a =
        record_closing(wf, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
                       HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, sizeof *a);
    if (a != NULL) {
        a->result = hf_payload_encode(&wf->recorder.arena, out);
    }
    return wf->recorder.arena.status == HF_OK;
}

static bool record_cancel(hf_wf *wf, hf_payload out)
{
    hf_pb_cancel_workflow_execution_command_attributes *a =
        record_closing(wf, HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
                       HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, sizeof *a);
    if (a != NULL) {
        a->details = hf_payload_encode(&wf->recorder.arena, out);
    }
    return wf->recorder.arena.status == HF_OK;
}

static bool record_failure(hf_wf *wf, const hf_failure *failure, hf_status status)
{
    hf_pb_fail_workflow_execution_command_attributes *a =
        record_closing(wf, HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
                       HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, sizeof *a);
    if (a != NULL) {
        hf_arena *arena = &wf->recorder.arena;
        a->failure = hf_wf_plays_by(wf, HF_WF_RULE_FAILURES) ? hf_failure_encode(arena, failure, status)
                                                             : hf_failure_encode_flat(arena, failure, status);
    }
    return wf->recorder.arena.status == HF_OK;
}

static bool record_fail(hf_wf *wf, hf_status status)
{
    return record_failure(wf, hf_error_as(status), status);
}

/* The service does not take the result. The code that made it has returned, so the run fails. */
static bool record_refused(hf_wf *wf, const hf_op *why)
{
    return record_failure(
        wf, &(hf_failure){.status = why->status, .type = hf_status_name(why->status), .message = why->message},
        why->status);
}

static bool record_continue(hf_wf *wf)
{
    hf_pb_continue_as_new_workflow_execution_command_attributes *a =
        record_closing(wf, HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
                       HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES, sizeof *a);
    if (a != NULL) {
        *a = wf->next->attributes;
        wf->closing->file = wf->next->file;
        wf->closing->line = wf->next->line;
    }
    return wf->recorder.arena.status == HF_OK;
}

/* Scopes that the function left open are closed before the command that ends the run: canceling their activities
 * takes commands, and may take steps. */
static hf_status close_leftovers(const hf_wf *wf, hf_status status)
{
    hf_fiber *self = hf_enter(NULL);
    bool is_open = self->scope != wf->scope;
    while (self->scope != wf->scope) {
        hf_assert(self->scope != NULL);
        hf_log(self->rt, HF_LOG_ERROR, "misuse", "message=body_returned_with_open_scope scope=%s", self->scope->name);
        (void)hf_scope_close_on(self, self->scope);
    }
    if (is_open && status == HF_OK) {
        status = hf_refuse(self, HF_ERR_MISUSE,
                           "the workflow returned with a scope still open; close every scope it opens "
                           "(HF_AUTO(hf_scope_close) does)");
    }
    HF_LEAVE(self, status);
}

/* Cancels and joins the fibers that were forked into the scope of the run. If one of them failed by itself, that is why
 * the main function was canceled, and why the run fails (T3). */
static hf_status close_scope(hf_wf *wf, hf_status status)
{
    hf_scope *scope = wf->scope;
    wf->scope = NULL; /* nothing is forked into it any more */
    if (hf_scope_tally(scope).failed > 0 && (status == HF_OK || status == HF_ERR_CANCELED)) {
        status = hf_join(scope); /* all are canceled already; hf_error() is the failure of the first */
    }
    HF_IGNORE(hf_scope_close(scope));
    return status;
}

/* Calls the workflow's function inside the scope of the run. */
static hf_status call_function(hf_wf *wf, hf_payload *ret_out)
{
    hf_scope scope; /* on this stack: most runs wait with one page of it, and that has room */
    hf_crew_self_open(&scope, wf->entry->name.data);
    wf->scope = &scope;
    scope.number = HF_SCOPE_OF_RUN;
    return close_scope(wf, close_leftovers(wf, wf->entry->function(wf->input, ret_out)));
}

hf_status hf_wf_main(void *arg)
{
    hf_wf *wf = arg;
    hf_payload out = hf_payload_none();
    hf_status status = call_function(wf, &out);
    if (hf_crew_self_is_evicted()) {
        return HF_ERR_EVICTED; /* its status does not matter: its calls were refused */
    }
    hf_here(NULL, 0); /* the closing command comes from no verb */
    bool is_recorded = false;
    bool is_canceled = status == HF_ERR_CANCELED && wf->is_cancel_requested;
    hf_op op;
    hf_op_init(&op);
    if ((status == HF_OK || is_canceled) &&
        hf_payload_check_result(&op, "the result of the workflow", out, wf->input) != HF_OK) {
        is_recorded = record_refused(wf, &op);
    } else if (status == HF_OK) {
        is_recorded = record_complete(wf, out);
    } else if (is_canceled) {
        is_recorded = record_cancel(wf, out);
    } else if (status == HF_ERR_CONTINUED && wf->next != NULL) {
        is_recorded = record_continue(wf);
    } else if (status == HF_PENDING) {
        (void)hf_fail(
            &op, HF_ERR_MISUSE,
            "the workflow returned HF_PENDING, which is for activities: a workflow waits for a signal or an update");
        is_recorded = record_refused(wf, &op);
    } else {
        is_recorded = record_fail(wf, status);
    }
    wf->is_nomem |= !is_recorded;
    hf_payload_free(&out);
    return HF_OK;
}
