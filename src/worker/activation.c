/* Applies events to a run.
 *
 * A history is cut at each WorkflowTaskStarted whose task was completed, and at that of the current task; tasks that
 * failed or timed out left no trace in the workflow. Each piece is one activation, which goes through the stages of
 * stages.h in their order (worker-K3), whatever the order of the events was: README.md has them as a table. Replay relies
 * on that order.
 *
 * Ends are noted before the first fiber runs: code that gives up an activity or timer which ends in the same activation
 * has nothing to cancel. A signal goes to a waiting fiber, to a handler, or is kept.
 *
 * To settle is to give turns until nobody has anything to do: in a turn every fiber runs that is ready; then handlers
 * that were added get signals that had been kept; then fibers in hf_wait_until look, one by one, in the order in which they
 * began to wait; all over again until none of them has gone on. Then a hook of the workflow's type may change what they
 * look at (hf_worker_at_rest). */
#include "worker/local.h"
#include "worker/stages.h"

#include "base/canary.h"
#include "base/rng.h"

#include <inttypes.h>

enum { ROUNDS_MAX = 10000 }; /* in which conditions let each other pass, within one stage of a step */

typedef struct piece {
    const hf_pb_history_event *const *items;
    size_t count; /* the last one is the WorkflowTaskStarted */
} piece;

static void seed(hf_wf *wf, hf_str text)
{
    hf_crew_set_seed(wf->crew, hf_hash_bytes(0, text.data, text.len));
}

/* The rules that a completion names. history.c has seen that this version knows them all. The flags of other SDKs are not ours, and what they
 * have written is played by the rules of today. */
static uint32_t rules_of(const hf_pb_workflow_task_completed_metadata *sdk)
{
    uint32_t rules = 0;
    if (sdk == NULL || sdk->sdk_name.len == 0) {
        return 0;
    }
    if (!hf_str_equal(sdk->sdk_name, HF_STR(HF_WF_SDK_NAME))) {
        return HF_WF_RULES_ALL;
    }
    for (size_t i = 0; i < sdk->lang_used_flags.count; i++) {
        hf_assert(sdk->lang_used_flags.items[i] <= HF_WF_RULE_LAST);
        rules |= UINT32_C(1) << sdk->lang_used_flags.items[i];
    }
    for (size_t i = 0; i < sdk->core_used_flags.count; i++) {
        uint32_t flag = sdk->core_used_flags.items[i];
        hf_assert(flag <= HF_WF_FLAG_BASE + HF_WF_RULE_LAST);
        rules |= flag > HF_WF_FLAG_BASE ? UINT32_C(1) << (flag - HF_WF_FLAG_BASE) : 0;
    }
    return rules;
}

/* Sets the rules for the step at hand: see wf.h. */
static void choose_rules(hf_wf *wf, const hf_wf_reader *reader)
{
    if (wf->rules == HF_WF_RULES_ALL) {
        return;
    }
    if (reader->ahead.count == 0) {
        wf->rules = HF_WF_RULES_ALL;
    } else {
        const hf_pb_history_event *completed = reader->ahead.items[0];
        wf->rules |= completed->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES
                         ? rules_of(completed->workflow_task_completed_event_attributes->sdk_metadata)
                         : 0;
    }
    hf_assert((wf->rules & ~HF_WF_RULES_ALL) == 0);
    hf_crew_set_strict(wf->crew, hf_wf_plays_by(wf, HF_WF_RULE_SPANS));
    hf_crew_set_tells_first(wf->crew, !hf_wf_plays_by(wf, HF_WF_RULE_WAITS));
}

/* Reads the facts that the end of an earlier task has beside its commands: the library and rules that ran it; or that a
 * reset made a new run from there, with random numbers of its own. */
static void note_task(hf_wf *wf, const hf_pb_history_event *event)
{
    if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES) {
        const hf_pb_workflow_task_completed_metadata *sdk =
            event->workflow_task_completed_event_attributes->sdk_metadata;
        if (sdk != NULL && sdk->sdk_name.len > 0) {
            wf->is_sdk_known = hf_str_equal(sdk->sdk_name, HF_STR(HF_WF_SDK_NAME)) &&
                               hf_str_equal(sdk->sdk_version, HF_STR(HF_VERSION_TEXT)) &&
                               rules_of(sdk) == HF_WF_RULES_ALL;
        }
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_FAILED_EVENT_ATTRIBUTES) {
        const hf_pb_workflow_task_failed_event_attributes *failed = event->workflow_task_failed_event_attributes;
        if (failed->cause == HF_WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW && failed->new_run_id.len > 0) {
            seed(wf, failed->new_run_id);
            wf->is_reseeded = true;
            wf->child_base = hf_wf_keep_text(wf, failed->new_run_id);
        }
    }
}

/* Other SDKs list the patches of a run in a search attribute: an event without a command of the workflow's code. */
static bool is_list_of_patches(const hf_pb_history_event *event)
{
    if (event->attributes_case != HF_PB_HISTORY_EVENT_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_EVENT_ATTRIBUTES) {
        return false;
    }
    const hf_pb_search_attributes *attributes =
        event->upsert_workflow_search_attributes_event_attributes->search_attributes;
    return attributes != NULL && attributes->indexed_fields.count == 1 &&
           hf_str_equal(attributes->indexed_fields.items[0].key, HF_STR("TemporalChangeVersion"));
}

/* Whether the event comes from a command of the workflow's code. */
static bool is_of_code(const hf_pb_history_event *event)
{
    return hf_event_is_of_command(event->event_type) && !is_list_of_patches(event);
}

static hf_status check_commands(hf_op *op, hf_wf *wf, piece p)
{
    bool was_completed = false;
    for (size_t i = 0; i < p.count; i++) {
        const hf_pb_history_event *event = p.items[i];
        was_completed |= event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED;
        note_task(wf, event);
        if (!is_of_code(event)) {
            continue;
        }
        hf_command_record *record = NULL;
        HF_TRY(hf_recorder_check(op, &wf->recorder, event, &record));
        if (record != NULL && record->activity != NULL) {
            hf_wf_scheduled(wf, record->activity, event->event_id);
        }
        if (record != NULL && record->ask != NULL) {
            hf_wf_asked(wf, record->ask, event->event_id);
        }
        if (record != NULL && record->timer != NULL) {
            record->timer->record = NULL;
        }
    }
    return was_completed ? hf_recorder_check_end(op, &wf->recorder, p.items[p.count - 1]->event_id) : HF_OK;
}

/* The WorkflowTaskStarted of the task that follows these events, if nothing else comes before it. */
static int64_t started_behind(const hf_pb_history_event *last)
{
    return last->event_id + (last->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED     ? 0
                             : last->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED ? 1
                                                                                         : 2);
}

/* Like check_commands, but the run stays as it is: it is the next task that takes the records off the list. */
static hf_status compare_commands(hf_op *op, hf_wf *wf, piece p)
{
    bool was_completed = false;
    for (size_t i = 0; i < p.count; i++) {
        hf_command_record *record = NULL;
        was_completed |= p.items[i]->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED;
        if (is_of_code(p.items[i])) {
            HF_TRY(hf_recorder_check(op, &wf->recorder, p.items[i], &record));
        }
    }
    return was_completed ? hf_recorder_check_end(op, &wf->recorder, started_behind(p.items[p.count - 1])) : HF_OK;
}

/* Before a query: the commands of the last step are compared with the events behind it now, as the next task would do it first. Else
 * code that was changed would answer with what never was. A run in memory has no such events: it made them. */
static hf_status check_tail(hf_op *op, hf_wf *wf, const hf_wf_reader *reader)
{
    hf_list *records = &wf->recorder.records;
    hf_arena *arena = &reader->task->steps[0];
    size_t count = 0;
    if (reader->now.count == 0) {
        return HF_OK;
    }
    HF_LIST_EACH(node, records)
    {
        count++;
    }
    hf_node **nodes = hf_arena_take(arena, hf_arena_array_len(count + 1, sizeof *nodes), _Alignof(hf_node *));
    if (nodes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to compare %zu commands", count);
    }
    count = 0;
    HF_LIST_EACH(node, records)
    {
        nodes[count++] = node;
    }
    hf_status status = compare_commands(op, wf, (piece){reader->now.items, reader->now.count});
    while (!hf_list_is_empty(records)) {
        (void)hf_list_pop_front(records);
    }
    for (size_t i = 0; i < count; i++) {
        hf_list_push_back(records, nodes[i]);
    }
    return status;
}

/* Signals that the run before it did not take. */
static hf_status take_over_signals(hf_op *op, hf_wf *wf, const hf_pb_header *header)
{
    for (size_t i = 0; header != NULL && i < header->fields.count; i++) {
        const hf_pb_payload *value = header->fields.items[i].value;
        if (value != NULL && hf_str_equal(header->fields.items[i].key, HF_STR(HF_WF_SIGNALS_HEADER))) {
            return hf_wf_decode_signals(op, wf, value->data);
        }
    }
    return HF_OK;
}

/* What the step knows of its history. */
static void note_history(hf_wf *wf, const hf_pb_history_event *started)
{
    wf->history_count = started->event_id;
    if (started->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES) {
        const hf_pb_workflow_task_started_event_attributes *a = started->workflow_task_started_event_attributes;
        wf->history_len = a->history_size_bytes;
        wf->should_continue = a->suggest_continue_as_new;
    }
}

static hf_status begin(hf_op *op, hf_wf *wf, const hf_pb_history_event *event)
{
    const hf_pb_workflow_execution_started_event_attributes *started =
        event->workflow_execution_started_event_attributes;
    if (wf->has_begun) {
        return hf_fail(op, HF_ERR_INVALID, "the history has a second WorkflowExecutionStarted");
    }
    if (hf_payload_decode(started->input, &wf->payloads, &wf->input) != HF_OK || !hf_wf_learn(wf, event)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the input of a workflow");
    }
    wf->task_timeout = hf_pb_duration_span(started->workflow_task_timeout);
    HF_TRY(take_over_signals(op, wf, started->header));
    if (!wf->is_reseeded || !hf_wf_plays_by(wf, HF_WF_RULE_SEED)) {
        seed(wf, started->original_execution_run_id.len > 0 ? started->original_execution_run_id : wf->run_id);
    }
    if (wf->child_base == NULL) { /* a reset keeps the ids of the children that the run before it had started */
        wf->child_base = hf_wf_keep_run_id(wf, started->original_execution_run_id);
    }
    wf->has_begun = true;
    hf_crew_set_stack(wf->crew, wf->entry->stack_size);
    return hf_crew_fork(op, wf->crew, hf_wf_main, wf, wf->entry->name.data);
}

static hf_status apply_starts(hf_op *op, hf_wf *wf, piece p)
{
    for (size_t i = 0; i < p.count; i++) {
        if (p.items[i]->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES) {
            HF_TRY(begin(op, wf, p.items[i]));
        }
    }
    note_history(wf, p.items[p.count - 1]);
    return wf->has_begun ? HF_OK
                         : hf_fail(op, HF_ERR_INVALID, "the history does not begin with WorkflowExecutionStarted");
}

/* Updates have the number of the event that they come behind */
static hf_status apply_signals(hf_op *op, hf_wf *wf, piece p)
{
    size_t update = 0;
    for (size_t i = 0; i < p.count; i++) {
        const hf_pb_history_event *event = p.items[i];
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES) {
            HF_TRY(hf_wf_deliver_updates(op, wf, event->event_id, &update));
            HF_TRY(hf_wf_signaled(op, wf, event->workflow_execution_signaled_event_attributes));
        } else if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ADMITTED_EVENT_ATTRIBUTES) {
            HF_TRY(hf_wf_deliver_updates(op, wf, event->event_id, &update));
            HF_TRY(hf_wf_admitted(op, wf, event));
        }
    }
    return hf_wf_deliver_updates(op, wf, INT64_MAX, &update);
}

/* The id of the event that scheduled the activity which this event ends; 0 = it ends none. */
static int64_t activity_ended_by(const hf_pb_history_event *event)
{
    switch (event->attributes_case) {
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_COMPLETED_EVENT_ATTRIBUTES:
        return event->activity_task_completed_event_attributes->scheduled_event_id;
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_FAILED_EVENT_ATTRIBUTES:
        return event->activity_task_failed_event_attributes->scheduled_event_id;
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_TIMED_OUT_EVENT_ATTRIBUTES:
        return event->activity_task_timed_out_event_attributes->scheduled_event_id;
    case HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCELED_EVENT_ATTRIBUTES:
        return event->activity_task_canceled_event_attributes->scheduled_event_id;
    default:
        return 0;
    }
}

static void note_ends(hf_wf *wf, piece p)
{
    for (size_t i = 0; i < p.count; i++) {
        const hf_pb_history_event *event = p.items[i];
        int64_t scheduled = activity_ended_by(event);
        if (scheduled != 0) {
            hf_wf_will_resolve(wf, scheduled);
        } else if (event->attributes_case == HF_PB_HISTORY_EVENT_TIMER_FIRED_EVENT_ATTRIBUTES) {
            hf_wf_will_fire(wf, event->timer_fired_event_attributes->timer_id);
        } else {
            hf_wf_will_answer(wf, event);
        }
    }
}

/* The run keeps the reason: every failure that follows from the cancel names it. */
static hf_status cancel(hf_op *op, hf_wf *wf, hf_str reason)
{
    if (reason.len > 0 && wf->cancel_reason == NULL) {
        wf->cancel_reason = hf_wf_keep_text(wf, reason);
        if (wf->kept.status != HF_OK) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for the reason of a cancel");
        }
    }
    wf->is_cancel_requested = true;
    hf_crew_cancel(wf->crew, wf->cancel_reason != NULL ? wf->cancel_reason : "the workflow was asked to cancel");
    return HF_OK;
}

static hf_status apply_end(hf_op *op, hf_wf *wf, const hf_pb_history_event *event)
{
    int64_t scheduled = activity_ended_by(event);
    if (scheduled != 0) {
        hf_wf_resolve(wf, scheduled, event);
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_TIMER_FIRED_EVENT_ATTRIBUTES) {
        hf_wf_fired(wf, event->timer_fired_event_attributes->timer_id);
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES) {
        return cancel(op, wf, event->workflow_execution_cancel_requested_event_attributes->cause);
    } else {
        hf_wf_answered(wf, event);
    }
    return HF_OK;
}

static hf_status apply_ends(hf_op *op, hf_wf *wf, piece p)
{
    for (size_t i = 0; i < p.count; i++) {
        HF_TRY(apply_end(op, wf, p.items[i]));
    }
    return HF_OK;
}

hf_status hf_wf_turn(hf_op *op, hf_wf *wf)
{
    hf_assert(!wf->is_lost);                                                  /* worker-K1 */
    hf_assert(atomic_load_explicit(&wf->turn_ns, memory_order_relaxed) == 0); /* worker-K1: one turn at a time */
    if (!hf_crew_is_ready(wf->crew)) {
        return HF_OK;
    }
    atomic_store_explicit(&wf->turn_ns, hf_now(NULL).ns, memory_order_relaxed);
    wf->is_lost = !hf_crew_turn(wf->crew);
    if (!wf->is_lost) { /* else its fiber still has the turn */
        atomic_store_explicit(&wf->turn_ns, 0, memory_order_relaxed);
    }
    return wf->is_lost ? hf_fail(op, HF_ERR_TIMEOUT, "%s", hf_wf_stuck_text) : HF_OK;
}

/* Lets fibers look at their conditions. `*ret_any`: one has gone on. */
static hf_status look_at_conditions(hf_op *op, hf_wf *wf, bool *ret_any)
{
    uint64_t number = 0;
    uint64_t last = wf->until_number; /* fibers that begin to wait meanwhile have looked themselves */
    *ret_any = false;
    while (number < last && hf_wf_wake_until(wf, &number)) {
        HF_TRY(hf_wf_turn(op, wf));
        *ret_any |= !hf_wf_until_waits(wf, number);
    }
    wf->has_passed |= *ret_any;
    return HF_OK;
}

/* A stage is over when the fibers, handlers of signals that were kept, and conditions have nothing more to do. */
static hf_status settle(hf_op *op, hf_wf *wf)
{
    bool any = true;
    HF_TRY(hf_wf_turn(op, wf));
    for (int round = 0; any; round++) {
        if (round == ROUNDS_MAX) {
            return hf_fail(op, HF_ERR_LIMIT,
                           "the conditions of hf_wait_until do not come to rest: each lets another one pass");
        }
        HF_TRY(hf_wf_flush_signals(op, wf, &any));
        if (any) {
            HF_TRY(hf_wf_turn(op, wf));
        } else {
            HF_TRY(look_at_conditions(op, wf, &any));
            any = any || (wf->entry->at_rest != NULL && wf->entry->at_rest(wf->entry->at_rest_arg));
        }
    }
    return HF_OK;
}

hf_status hf_wf_not_over(hf_fiber *self, const hf_wf *wf, const char *verb)
{
    if (HF_LIKELY(!wf->has_closed)) {
        return HF_OK;
    }
    if (wf->is_current) {
        hf_log(wf->worker->rt, HF_LOG_WARN, "command_after_end", "workflow=%.*s run=%.*s verb=%s", HF_STR_ARGS(wf->id),
               HF_STR_ARGS(wf->run_id), verb);
    }
    return hf_refuse_at(self, HF_ERR_CANCELED, verb, "%s: the workflow has ended", verb);
}

/* The main function has returned: its command goes behind all others, and handlers that still wait are canceled
 * (T6). */
static hf_status finish(hf_op *op, hf_wf *wf, piece p)
{
    (void)p;
    if (wf->closing == NULL || wf->is_nomem) {
        return HF_OK;
    }
    hf_assert(!wf->has_closed && !hf_node_is_linked(&wf->closing->node));
    HF_TRY(hf_wf_settle_signals(op, wf));
    HF_TRY(hf_wf_fields_carry(op, wf));
    hf_wf_name_leftovers(wf);
    if (HF_CANARY(HF_BUG_CLOSING_NOT_LAST)) {
        hf_list_push_front(&wf->recorder.records, &wf->closing->node);
    } else {
        hf_list_push_back(&wf->recorder.records, &wf->closing->node);
    }
    wf->closing = NULL;
    wf->has_closed = true;
    if (!hf_list_is_empty(&wf->handlings)) {
        hf_wf_cancel_handlers(wf);
        HF_TRY(hf_wf_turn(op, wf));
    }
    return HF_OK;
}

/* What there is before a fiber runs. */
static hf_status prepare(hf_op *op, hf_wf *wf, piece p)
{
    HF_TRY(check_commands(op, wf, p));
    hf_recorder_reset(&wf->recorder);
    wf->recorder.patches_are_free = hf_wf_plays_by(wf, HF_WF_RULE_PATCHES);
    wf->has_passed = false;
    note_ends(wf, p);
    hf_crew_set_now(wf->crew, hf_pb_timestamp_time(p.items[p.count - 1]->event_time));
    return HF_OK;
}

static hf_status play_locals(hf_op *op, hf_wf *wf, piece p)
{
    (void)p;
    return hf_wf_play_locals(op, wf, settle);
}

static hf_status activate(hf_op *op, hf_wf *wf, piece p)
{
    static hf_status (*const APPLY[])(hf_op *, hf_wf *, piece) = {
        [HF_WF_STAGE_PATCHES] = prepare, [HF_WF_STAGE_START] = apply_starts, [HF_WF_STAGE_SIGNALS] = apply_signals,
        [HF_WF_STAGE_ENDS] = apply_ends, [HF_WF_STAGE_LOCALS] = play_locals, [HF_WF_STAGE_CLOSING] = finish,
    };
    static const hf_wf_looks LOOKS[] = {
#define LOOKS_OF(stage, name, looks, brings, runs) looks,
        HF_WF_STAGE_MAP(LOOKS_OF)
#undef LOOKS_OF
    };
    _Static_assert(HF_COUNT_OF(LOOKS) == HF_WF_STAGE_COUNT && HF_COUNT_OF(APPLY) == HF_WF_STAGE_COUNT - 1,
                   "every stage has its function; queries are last, and in run.c");
    hf_assert(p.count > 0); /* the last one is the WorkflowTaskStarted */
    for (size_t stage = 0; stage < HF_COUNT_OF(APPLY); stage++) {
        HF_TRY(APPLY[stage](op, wf, p));
        if (LOOKS[stage] == HF_WF_LOOKS_AFTER) {
            HF_TRY(settle(op, wf));
        }
    }
    if (wf->misdeed != NULL) {
        return hf_fail(op, HF_ERR_CONFLICT, "%s", wf->misdeed);
    }
    if (hf_crew_is_disturbed(wf->crew)) {
        return hf_fail(op, HF_ERR_CONFLICT, "a fiber of the workflow was woken by something outside of it");
    }
    return wf->is_nomem ? hf_fail(op, HF_ERR_NOMEM, "no memory for a command") : HF_OK;
}

/* What the commands of the step at hand became: the events right behind its WorkflowTaskCompleted. */
static void set_own(hf_wf *wf, const hf_wf_reader *reader)
{
    const hf_wf_events *ahead = &reader->ahead;
    size_t count = 0;
    while (1 + count < ahead->count && hf_event_is_of_command(ahead->items[1 + count]->event_type)) {
        count++;
    }
    wf->is_current = ahead->count == 0;
    wf->own = count > 0 ? ahead->items + 1 : NULL;
    wf->own_count = count;
}

hf_status hf_wf_apply(hf_op *op, hf_wf *wf, hf_wf_reader *reader, int64_t started_event_id)
{
    bool is_query = started_event_id == 0;
    bool is_any = false;
    if (!is_query && wf->event_id_next > started_event_id) {
        return hf_fail(op, HF_ERR_EVICTED, "the task belongs to a step that was played before");
    }
    HF_TRY(hf_wf_read_step(op, reader, &is_any));
    while (is_any) {
        const hf_wf_events *now = &reader->now;
        int64_t started = now->items[now->count - 1]->event_id;
        choose_rules(wf, reader);
        set_own(wf, reader);
        HF_TRY(activate(op, wf, (piece){now->items, now->count}));
        wf->event_id_next = started + 1;
        is_any = started != started_event_id;
        if (is_any) {
            HF_IGNORE(hf_yield()); /* a long history shares its thread with others */
            HF_TRY(hf_wf_read_step(op, reader, &is_any));
        }
    }
    if (!is_query && wf->event_id_next <= started_event_id) {
        return hf_fail(op, HF_ERR_INVALID, "the history ends before the task's own WorkflowTaskStarted");
    }
    wf->own = NULL; /* the events go with the task */
    wf->own_count = 0;
    if (is_query && !wf->has_begun) {
        return hf_fail(op, HF_ERR_NOT_READY, "the workflow has not begun");
    }
    return is_query ? check_tail(op, wf, reader) : HF_OK;
}
