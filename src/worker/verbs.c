/* The verbs of a workflow and the events that answer them: timers, signals, the end of the run. Activities are in
 * verbs_activity.c. Verbs run on the crew's fibers, inside turns; the functions for events (wf.h) run on the driver,
 * between turns. Both run on one thread, so there are no locks. */
#include "worker/wf.h"

#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

hf_wf *hf_wf_self(void)
{
    return hf_crew_self_state(&hf_wf_crew_ops);
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
    hf_pb_start_timer_command_attributes *a = room;
    a->timer_id = record->id;
    a->start_to_fire_timeout = hf_pb_duration_of(span);
    hf_list_push_back(hf_wf_bucket(wf->timers, timer->seq), &timer->node);
    wf->timers_count++;
    return HF_OK;
}

static hf_wf_timer *find_timer(hf_wf *wf, uint64_t seq)
{
    HF_LIST_EACH(node, hf_wf_bucket(wf->timers, seq))
    {
        hf_wf_timer *timer = HF_CONTAINER(node, hf_wf_timer, node);
        if (timer->seq == seq) {
            return timer;
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

static void record_timer_cancel(hf_wf *wf, uint64_t seq)
{
    void *room = NULL;
    hf_assert(seq > 0 && seq <= wf->timer_seq); /* worker-K3: numbers are given in order */
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_CANCEL_TIMER, HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_cancel_timer_command_attributes), &room);
    if (record == NULL) {
        wf->is_nomem = true;
        return;
    }
    record->id = hf_wf_number_text(&wf->recorder.arena, seq);
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
    } else if (!timer->has_fired) {
        record_timer_cancel(wf, timer->seq);
    }
    free_timer(wf, timer);
}

const hf_crew_ops hf_wf_crew_ops = {timer_start, timer_cancel};

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

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static bool abort_signal(hf_wait *wait)
{
    bool claimed = hf_node_is_linked(&wait->node);
    if (claimed) {
        hf_list_remove(&wait->node);
    }
    return claimed;
}

static const hf_wait_kind SIGNAL = {"hf_signal_wait", abort_signal};

static hf_wf_signal *take_signal(hf_wf *wf, hf_str name)
{
    HF_LIST_EACH(node, &wf->signals)
    {
        hf_wf_signal *signal = HF_CONTAINER(node, hf_wf_signal, node);
        if (hf_str_equal(name, hf_str_of_len(signal->name, signal->name_len))) {
            hf_list_remove(node);
            return signal;
        }
    }
    return NULL;
}

static void free_signal(hf_wf *wf, hf_wf_signal *signal)
{
    wf->worker->memory.release(wf->worker->memory.state, signal, sizeof *signal + signal->name_len);
}

static void give_signal(hf_wf *wf, hf_wf_signal *signal, hf_payload *ret_out)
{
    hf_assert(signal != NULL);
    if (ret_out != NULL) {
        *ret_out = signal->payload;
    } else {
        hf_payload_free(&signal->payload);
    }
    free_signal(wf, signal);
}

hf_status hf_signal_wait_with(const char *name, hf_payload *ret_out, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_signal_wait);
    HF_VERB_ENTER(self, hf_signal_wait, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL || name == NULL) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "hf_signal_wait needs a name, and can only be called in a workflow"));
    }
    if (HF_UNLIKELY(self->is_evicted)) {
        HF_LEAVE(self, hf_not_evicted(self, "hf_signal_wait"));
    }
    if (name[0] == '\0' || hf_wf_is_too_long(name)) { /* no signal can have this name */
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "the name of a signal has 1 to %d bytes", HF_ID_LEN_MAX));
    }
    hf_status status = hf_may_wait_for(self, "hf_signal_wait", options);
    hf_wf_signal *signal = status == HF_OK ? take_signal(wf, hf_str_of(name)) : NULL;
    if (status == HF_OK && signal == NULL) {
        hf_wait wait;
        hf_wait_init(&wait, self, &SIGNAL, wf, name);
        hf_list_push_back(&wf->signal_waits, &wait.node);
        status = hf_park(self, &wait, hf_wait_deadline(self, self->rt, options));
        signal = wait.value;
    }
    if (status == HF_OK) {
        give_signal(wf, signal, ret_out);
    }
    HF_LEAVE(self, status);
}

/* Gives the signal to the first fiber that waits for its name, else keeps it. */
static void deliver(hf_wf *wf, hf_wf_signal *signal)
{
    hf_str name = hf_str_of_len(signal->name, signal->name_len);
    hf_fiber *self = hf_enter(NULL);
    HF_LIST_EACH(node, &wf->signal_waits)
    {
        hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
        if (hf_str_equal(name, hf_str_of(wait->object_name))) {
            hf_list_remove(node);
            wait->value = signal;
            hf_wake(wait, HF_OK);
            hf_leave(self);
            return;
        }
    }
    hf_list_push_back(&wf->signals, &signal->node);
    hf_leave(self);
}

hf_status hf_wf_signaled(hf_wf *wf, const hf_pb_workflow_execution_signaled_event_attributes *from)
{
    hf_allocator memory = wf->worker->memory;
    hf_wf_signal *signal =
        memory.allocate(memory.state, sizeof *signal + from->signal_name.len, _Alignof(hf_wf_signal));
    if (signal == NULL) {
        return HF_ERR_NOMEM;
    }
    *signal = (hf_wf_signal){.name_len = from->signal_name.len};
    if (signal->name_len > 0) {
        memcpy(signal->name, from->signal_name.data, signal->name_len);
    }
    hf_status status = hf_payload_decode(from->input, &wf->payloads, &signal->payload);
    if (status != HF_OK) {
        free_signal(wf, signal);
        return status;
    }
    deliver(wf, signal);
    return HF_OK;
}

/* ---- The first fiber --------------------------------------------------------------------------------------------- */

static bool record_complete(hf_wf *wf, hf_payload out)
{
    void *room = NULL;
    if (hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
                        HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_complete_workflow_execution_command_attributes), &room) == NULL) {
        return false;
    }
    ((hf_pb_complete_workflow_execution_command_attributes *)room)->result =
        hf_payload_encode(&wf->recorder.arena, out);
    return wf->recorder.arena.status == HF_OK;
}

static bool record_cancel(hf_wf *wf, hf_payload out)
{
    void *room = NULL;
    if (hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
                        HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_cancel_workflow_execution_command_attributes), &room) == NULL) {
        return false;
    }
    ((hf_pb_cancel_workflow_execution_command_attributes *)room)->details = hf_payload_encode(&wf->recorder.arena, out);
    return wf->recorder.arena.status == HF_OK;
}

static bool record_failure(hf_wf *wf, const hf_failure *failure, hf_status status)
{
    void *room = NULL;
    if (hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
                        HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_fail_workflow_execution_command_attributes), &room) == NULL) {
        return false;
    }
    ((hf_pb_fail_workflow_execution_command_attributes *)room)->failure =
        hf_failure_encode(&wf->recorder.arena, failure, status);
    return wf->recorder.arena.status == HF_OK;
}

static bool record_fail(hf_wf *wf, hf_status status)
{
    return record_failure(wf, hf_error_as(status), status);
}

/* The service does not take the result. The code that made it has returned, so the run fails. */
static bool record_refused(hf_wf *wf, const hf_op *why)
{
    return record_failure(wf, &(hf_failure){why->status, hf_status_name(why->status), why->message, "", NULL},
                          why->status);
}

/* Scopes that the function left open are closed before the command that ends the run: canceling their activities
 * takes commands, and may take steps. */
static hf_status close_leftovers(hf_status status)
{
    hf_fiber *self = hf_enter(NULL);
    if (HF_UNLIKELY(self->scope != NULL)) {
        (void)hf_scope_close_leftovers(self);
        if (status == HF_OK) {
            status = hf_refuse(self, HF_ERR_MISUSE,
                               "the workflow returned with a scope still open; close every scope it opens "
                               "(HF_AUTO(hf_scope_close) does)");
        }
    }
    HF_LEAVE(self, status);
}

hf_status hf_wf_main(void *arg)
{
    hf_wf *wf = arg;
    hf_payload out = hf_payload_none();
    hf_status status = close_leftovers(wf->entry->function(wf->input, &out));
    if (hf_crew_self_is_evicted()) {
        return HF_ERR_EVICTED; /* its status does not matter: its calls were refused */
    }
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
    } else {
        is_recorded = record_fail(wf, status);
    }
    wf->is_nomem |= !is_recorded;
    wf->has_closed = true;
    hf_payload_free(&out);
    return HF_OK;
}
