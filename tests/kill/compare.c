/* A store and a ledger: kill-N1 to kill-N5 (ledger.h). */
#include "kill/ledger.h"

#include "history/history.h"
#include "history/payload.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

/* ---- What a history says ---------------------------------------------------------------------------------------------- */

static void take_text(char out[LEDGER_TEXT_LEN], const hf_pb_payloads *payloads)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    hf_str text = first != NULL ? first->data : HF_STR("");
    (void)snprintf(out, LEDGER_TEXT_LEN, "%.*s", HF_STR_ARGS(text));
}

static void take_id(char out[40], hf_str id)
{
    (void)snprintf(out, 40, "%.*s", HF_STR_ARGS(id));
}

/* "p.a": which child it is. */
static unsigned kid_of(hf_str id)
{
    return id.len > 0 ? (unsigned)(id.data[id.len - 1] - 'a') % LEDGER_KIDS : 0;
}

static unsigned update_of(hf_str id)
{
    return id.len == 2 ? (unsigned)(id.data[1] - '0') % LEDGER_UPDATES : 0;
}

static void count_child(const hf_pb_history_event *event, facts *f)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        f->kids[kid_of(event->start_child_workflow_execution_initiated_event_attributes->workflow_id)].initiated++;
        break;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
        f->kids[kid_of(event->child_workflow_execution_started_event_attributes->workflow_execution->workflow_id)]
            .started++;
        break;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: {
        const hf_pb_child_workflow_execution_completed_event_attributes *attrs =
            event->child_workflow_execution_completed_event_attributes;
        unsigned k = kid_of(attrs->workflow_execution->workflow_id);
        f->kids[k].told++;
        take_text(f->kids[k].result, attrs->result);
        break;
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
        f->kids[kid_of(event->child_workflow_execution_canceled_event_attributes->workflow_execution->workflow_id)]
            .told++;
        break;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
        f->kids[kid_of(event->child_workflow_execution_terminated_event_attributes->workflow_execution->workflow_id)]
            .told++;
        break;
    default:
        break;
    }
}

static void count_execution(const hf_pb_history_event *event, const hf_run *run, facts *f)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        if (event->workflow_execution_started_event_attributes->continued_execution_run_id.len == 0) {
            take_id(f->first_run, hf_owned_str(&run->run_id));
        }
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
        if (hf_str_equal(event->workflow_task_failed_event_attributes->new_run_id, hf_owned_str(&run->run_id))) {
            take_id(f->made[f->resets++ % LEDGER_RESETS], hf_owned_str(&run->run_id));
        }
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        take_text(f->result, event->workflow_execution_completed_event_attributes->result);
        f->ends++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        f->ends++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        f->continued++;
        break;
    default:
        break;
    }
}

static void count_event(const hf_pb_history_event *event, const hf_run *run, facts *f)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: {
        hf_str name = event->workflow_execution_signaled_event_attributes->signal_name;
        f->signals[name.len == 2 ? (unsigned)(name.data[1] - '0') % LEDGER_SIGNALS : LEDGER_SIGNALS - 1]++;
        break;
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        f->cancels++;
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        f->scheduled++;
        break;
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        f->results++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
        f->updates[update_of(event->workflow_execution_update_admitted_event_attributes->request->meta->update_id)]
            .admitted++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
        f->updates[update_of(event->workflow_execution_update_accepted_event_attributes->protocol_instance_id)]
            .accepted++;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: {
        const hf_pb_workflow_execution_update_completed_event_attributes *attrs =
            event->workflow_execution_update_completed_event_attributes;
        unsigned n = update_of(attrs->meta->update_id);
        f->updates[n].completed++;
        if (attrs->outcome->value_case == HF_PB_OUTCOME_SUCCESS) {
            take_text(f->updates[n].outcomes[f->updates[n].outcome_count++ % LEDGER_RUNS], attrs->outcome->success);
        }
        break;
    }
    default:
        count_execution(event, run, f);
        count_child(event, f);
        break;
    }
}

/* Events in the history, and those that wait for the end of a workflow task. */
static bool gather(const hf_run *run, hf_str history, facts *f)
{
    hf_arena arena;
    hf_arena_init(&arena, run->log.memory);
    hf_op op;
    hf_op_init(&op);
    hf_str bytes = {0};
    hf_pb_history_event event;
    bool is_sound = true;
    while (is_sound && hf_history_next(&history, &bytes)) {
        hf_arena_reset(&arena);
        is_sound = hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event) == HF_OK;
        if (is_sound) {
            count_event(&event, run, f);
        }
    }
    for (size_t i = 0; is_sound && i < run->buffered.count; i++) {
        is_sound = hf_pb_decode(&op, &hf_pb_history_event_type, hf_owned_str(&run->buffered.items[i]), &arena,
                                &event) == HF_OK;
        if (is_sound) {
            count_event(&event, run, f);
        }
    }
    hf_arena_deinit(&arena);
    return is_sound && history.len == 0;
}

/* ---- Runs of an id that was reset ------------------------------------------------------------------------------------- */

static bool is_twice(const facts *f)
{
    bool is = f->scheduled > 1 || f->results > 1 || f->ends > 1 || f->resets > 1;
    for (unsigned n = 0; n < LEDGER_SIGNALS; n++) {
        is = is || f->signals[n] > 1;
    }
    for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
        is = is || f->updates[n].admitted > 1 || f->updates[n].accepted > 1 || f->updates[n].completed > 1;
    }
    return is;
}

/* Adds what a newer run says: most of what the older ones say is over. */
static void add_newer(facts *f, const facts *newer)
{
    facts before = *f;
    *f = *newer;
    f->runs += before.runs;
    f->open += before.open;
    f->deleting += before.deleting;
    f->results = f->results > before.results ? f->results : before.results;
    for (unsigned i = 0; i < before.resets; i++) {
        (void)memcpy(f->made[f->resets++ % LEDGER_RESETS], before.made[i % LEDGER_RESETS], sizeof f->made[0]);
    }
    if (newer->resets > 0) {
        (void)memcpy(f->first_run, before.first_run, sizeof f->first_run);
    }
    for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
        for (unsigned i = 0; i < before.updates[n].outcome_count; i++) {
            (void)memcpy(f->updates[n].outcomes[f->updates[n].outcome_count++ % LEDGER_RUNS],
                         before.updates[n].outcomes[i % LEDGER_RUNS], LEDGER_TEXT_LEN);
        }
    }
}

/* ---- What must be there ----------------------------------------------------------------------------------------------- */

static size_t wrong(const char *what, const char *id, const char *how)
{
    (void)fprintf(stderr, "%s: %s: %s\n", what, id, how);
    return 1;
}

/* It was acknowledged, by this time. */
static bool is_by(long acked, long until)
{
    return acked != 0 && acked <= until;
}

/* Of a signal: its own, or those of the reset that it comes with. */
static lines lines_of(const entry *e, unsigned n)
{
    bool is_of_reset = n >= LEDGER_RESET_SIGNAL && n < LEDGER_RESET_SIGNAL + LEDGER_RESETS;
    return is_of_reset ? e->resets[n - LEDGER_RESET_SIGNAL].lines : e->signals[n];
}

static size_t compare_signals(const entry *e, long until, const char *what)
{
    size_t bad = 0;
    const facts *f = &e->found;
    for (unsigned n = 0; n < LEDGER_SIGNALS; n++) {
        if (f->signals[n] > (e->id[0] == 'c' ? 1 + e->again[n] : 1)) {
            bad += wrong(what, e->id, "a signal is there twice");
        }
        if (is_by(lines_of(e, n).acked, until) && f->signals[n] == 0) {
            bad += wrong(what, e->id, "an acknowledged signal is lost");
        }
        if (lines_of(e, n).sent == 0 && f->signals[n] != 0) {
            bad += wrong(what, e->id, "a signal that nobody sent");
        }
    }
    if ((is_by(e->cancel.acked, until) && f->cancels == 0) || (e->cancel.sent == 0 && f->cancels > 0)) {
        bad += wrong(what, e->id, "a cancel request is lost, or from nobody");
    }
    return bad;
}

static bool is_outcome(const entry *e, unsigned n)
{
    for (unsigned i = 0; i < e->found.updates[n].outcome_count && i < LEDGER_RUNS; i++) {
        if (strcmp(e->found.updates[n].outcomes[i], e->updates[n].outcome) == 0) {
            return true;
        }
    }
    return false;
}

static size_t compare_updates(const entry *e, long until, const char *what)
{
    size_t bad = 0;
    for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
        unsigned accepted = e->found.updates[n].accepted;
        unsigned completed = e->found.updates[n].completed;
        bool is_acked = is_by(e->updates[n].lines.acked, until);
        if (accepted > 1 || completed > accepted) {
            bad += wrong(what, e->id, "an update was taken twice");
        }
        if (e->updates[n].lines.sent == 0 && accepted > 0) {
            bad += wrong(what, e->id, "an update that nobody sent");
        }
        if (is_acked && e->updates[n].is_rejected && accepted > 0) {
            bad += wrong(what, e->id, "an update was rejected, and is there");
        }
        if (is_acked && !e->updates[n].is_rejected && !is_outcome(e, n)) {
            bad += wrong(what, e->id, "the outcome of an update is lost, or another than the one that was told");
        }
        if (is_acked && !e->updates[n].is_rejected && accepted + e->found.updates[n].admitted == 0) {
            bad += wrong(what, e->id, "a reset has lost an update");
        }
    }
    return bad;
}

static size_t compare_resets(const entry *e, long until, const char *what)
{
    size_t bad = 0;
    unsigned done = 0;
    for (unsigned n = 0; n < LEDGER_RESETS; n++) {
        done += e->found.signals[LEDGER_RESET_SIGNAL + n] > 0 ? 1 : 0;
        bool is_there = false;
        for (unsigned i = 0; i < e->found.resets && i < LEDGER_RESETS; i++) {
            is_there = is_there || strcmp(e->found.made[i], e->resets[n].run_id) == 0;
        }
        if (is_by(e->resets[n].lines.acked, until) && !is_there) {
            bad += wrong(what, e->id, "a run that a reset made is lost");
        }
    }
    if (e->found.resets != done) {
        bad += wrong(what, e->id, "a reset made two runs, or a run without its signal");
    }
    return bad;
}

/* What holds of the runs of every id. */
static size_t compare_runs(const facts *f, bool is_chain, bool is_ended, const char *id, const char *what)
{
    size_t bad = 0;
    if (f->runs != f->continued + f->resets + 1 || (!is_chain && f->continued > 0)) {
        bad += wrong(what, id, "was started twice, or a run of its chain is missing");
    }
    if (f->cancels > 1 || f->scheduled > 1 || f->results > 1 || f->ends > 1 || f->open + f->ends > 1) {
        bad += wrong(what, id, "something happened twice");
    }
    if (is_ended && (f->ends == 0 || f->open > 0)) {
        bad += wrong(what, id, "a workflow that had ended is open again");
    }
    return bad;
}

static size_t compare_kid(const entry *e, unsigned k, long until, bool is_over, const char *what)
{
    char id[44];
    (void)snprintf(id, sizeof id, "%s.%c", e->id, (char)('a' + (int)k));
    const kid *child = &e->kids[k];
    const facts *f = &child->found;
    bool has_parent = e->id[0] == 'p' && e->found.runs > 0;
    unsigned told = e->found.kids[k].told;
    size_t bad = 0;
    if (f->runs > 0) {
        bad += compare_runs(f, k == 1, is_by(child->end_acked, until), id, what);
    } else if (is_by(child->end_acked, until) || e->found.kids[k].started > 0) {
        bad += wrong(what, id, "a child that was started is not there");
    }
    if (is_by(child->result_acked, until) && f->results == 0) {
        bad += wrong(what, id, "an acknowledged result of an activity is lost");
    }
    if (e->found.kids[k].initiated > 1 || e->found.kids[k].started > 1 || told > 1) {
        bad += wrong(what, id, "its parent was told twice");
    }
    if (f->runs > 0 && e->found.kids[k].initiated == 0 && (has_parent || e->id[0] != 'p')) {
        bad += wrong(what, id, "a child that nobody asked for");
    }
    if (told > 0 && (f->ends == 0 || strcmp(f->result, e->found.kids[k].result) != 0)) {
        bad += wrong(what, id, "its parent was told something else than its end");
    }
    if (is_over && (f->open > 0 || (has_parent && k < 2 && told == 0))) {
        bad += wrong(what, id, "it is open, or its parent was not told of its end");
    }
    return bad;
}

static size_t compare(const entry *e, long until, bool is_over, const char *what)
{
    size_t bad = 0;
    const facts *f = &e->found;
    bool is_started = is_by(e->start.acked, until);
    for (unsigned k = 0; k < LEDGER_KIDS; k++) {
        bad += compare_kid(e, k, until, is_over, what);
    }
    if (is_by(e->deletion.acked, until)) {
        return f->runs == 0 ? bad : bad + wrong(what, e->id, "it was deleted, and is there");
    }
    if (e->deletion.sent == 0 && f->deleting > 0) {
        bad += wrong(what, e->id, "it is being deleted, and nobody asked for that");
    }
    if (f->runs == 0 || f->deleting > 0) { /* a chain loses its runs one by one */
        bool may_be_gone = !is_started || e->deletion.sent != 0;
        return may_be_gone ? bad : bad + wrong(what, e->id, "its start was acknowledged, and it is not there");
    }
    bool is_ended = is_by(e->end_acked, until) && (e->id[0] != 'r' || strcmp(e->end_run, f->newest_run) == 0);
    bad += compare_runs(f, e->id[0] == 'c', is_ended, e->id, what);
    bad += compare_resets(e, until, what);
    if (is_started && strcmp(f->first_run, e->run_id) != 0) {
        bad += wrong(what, e->id, "another run than the one that was acknowledged");
    }
    if (is_by(e->result_acked, until) && f->results == 0) {
        bad += wrong(what, e->id, "an acknowledged result of an activity is lost");
    }
    if (is_over && f->open > 0) {
        bad += wrong(what, e->id, "it is open at the end");
    }
    return bad + compare_signals(e, until, what) + compare_updates(e, until, what);
}

/* The last line of something that is there. A run that is missing although it was there at that time was deleted. */
static long reach(const entry *e, long until)
{
    long last = e->found.runs > 0 ? e->start.sent : 0;
    for (unsigned n = 0; n < LEDGER_SIGNALS; n++) {
        if (e->found.signals[n] > 0 && lines_of(e, n).sent > last) {
            last = lines_of(e, n).sent;
        }
    }
    for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
        if (e->found.updates[n].accepted > 0 && e->updates[n].lines.sent > last) {
            last = e->updates[n].lines.sent;
        }
    }
    bool is_deleted = e->found.deleting > 0 || (e->found.runs == 0 && is_by(e->start.acked, until));
    if (is_deleted && e->deletion.sent > last) {
        last = e->deletion.sent;
    }
    return e->found.cancels > 0 && e->cancel.sent > last ? e->cancel.sent : last;
}

/* ---- The store -------------------------------------------------------------------------------------------------------- */

/* Where what is found of an id goes; NULL: nobody started it. */
static facts *facts_of(ledger *l, char id[40])
{
    char *dot = strchr(id, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
    entry *e = ledger_find(l, id);
    return e == NULL ? NULL : dot != NULL ? &e->kids[(unsigned)(dot[1] - 'a') % LEDGER_KIDS].found : &e->found;
}

/* Writes down what the store says of a run. */
static size_t take_run(ledger *l, hf_look *look, int64_t number, hf_buf *history, const char *what)
{
    hf_op op;
    hf_op_init(&op);
    hf_run *run = NULL;
    history->len = 0;
    hf_status status = hf_look_run(&op, look, number, &run);
    if (status == HF_OK) {
        status = hf_look_history(&op, look, run, history);
    }
    if (status != HF_OK) {
        hf_look_run_free(look, run);
        return wrong(what, op.message, "cannot be read");
    }
    char id[40];
    hf_str full = hf_owned_str(&run->workflow_id);
    (void)snprintf(id, sizeof id, "%.*s", (int)(full.len < 39 ? full.len : 39), full.data);
    facts *f = facts_of(l, id);
    size_t bad = 0;
    if (f == NULL) {
        bad = wrong(what, id, "nobody started it");
    } else if (run->deleting != HF_DELETING_NOT) {
        f->deleting++;
    } else {
        facts newer = {0};
        facts *to = id[0] == 'r' ? &newer : f;
        to->runs++;
        to->open += hf_run_is_open(run) ? 1 : 0;
        bad = gather(run, hf_str_of_len(history->data, history->len), to) ? 0 : wrong(what, id, "cannot be decoded");
        take_id(to->newest_run, hf_owned_str(&run->run_id));
        if (id[0] == 'r') { /* an id's runs are met in the order of their beginnings */
            bad += is_twice(&newer) ? wrong(what, id, "something is twice in one run") : 0;
            add_newer(f, &newer);
        }
    }
    hf_look_run_free(look, run);
    return bad;
}

/* kill-N4. What is there moves the time on, and that may show that something else was deleted. */
static void move_on(const ledger *l, long *until)
{
    long before = 0;
    do {
        before = *until;
        for (size_t i = 0; i < l->count; i++) {
            long last = reach(&l->entries[i], *until);
            *until = last > *until ? last : *until;
        }
    } while (*until != before);
}

size_t ledger_verify(ledger *l, hf_look *look, long *until, bool is_over, const char *what)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf history;
    hf_buf_init(&history, hf_look_memory(look)->heap, SIZE_MAX / 4);
    size_t bad = 0;
    for (size_t i = 0; i < l->count; i++) {
        l->entries[i].found = (facts){0};
        for (unsigned k = 0; k < LEDGER_KIDS; k++) {
            l->entries[i].kids[k].found = (facts){0};
        }
    }
    int64_t number = 0;
    do {
        if (hf_look_next(&op, look, number, &number) != HF_OK) {
            bad += wrong(what, op.message, "cannot be read");
            break;
        }
        bad += number != 0 ? take_run(l, look, number, &history, what) : 0;
    } while (number != 0);
    hf_buf_deinit(&history);
    move_on(l, until);
    for (size_t i = 0; i < l->count; i++) {
        bad += compare(&l->entries[i], *until, is_over, what);
    }
    return bad;
}
