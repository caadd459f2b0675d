/* Resets: a new run takes the place of the current one of its id. It begins with events of an older one, the base, up to a workflow task.
 *
 *     find --> copy --> reapply <--> ask next
 *                ^         |  ^
 *                |         v  | events came meanwhile
 *                |    ask current --> last --> (the new run is born)
 *                +----------------------+
 *                   another run has begun meanwhile
 *
 * The events of the base are taken in portions: from its log, or from its rows with one read for each step. They are applied to a run that
 * nobody can find. If it gets longer than a portion, its history rows are written before it exists, one portion with each commit, and
 * the meta table says so (ledger/making.h). Then the runs that continued the base are looked through in the same way (reset_events.c).
 *
 * The last step decides everything at once: whether the current run is still the same, and has no events that were not looked at. It terminates the
 * current run if that is open, and the new run is born: it becomes the current run, gets a workflow task, and is written with this
 * commit, whatever other runs do meanwhile. So no change of a journal has to make it, and before this commit nothing has happened that
 * anybody could see. If the last step finds events that are new it goes back; if it finds a newer run, the new run must get a greater
 * number, and the copy begins again.
 *
 * engine-R1  A step takes at most one portion of histories, for all resets together.
 * engine-R2  A run that is being made is not among the runs of the core, and has no name.
 * engine-R3  When a run is born by a reset it has the greatest number of its id, so that its name leads to it.
 * engine-R4  While a run that is being made has rows, the meta table has a row of it.
 *
 * A request id is remembered with the base and with the new run, and goes along to the runs that follow: whoever sends it again, with or without
 * a run id, gets the same run. Calls with an id that is under way wait for its end. */
#include "engine/machines/reset_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/size.h"
#include "history/limits.h"
#include "ledger/making.h"
#include "ledger/rows.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static hf_list *const *lists_of(hf_core *core, hf_list *(*ret_lists)[3])
{
    (*ret_lists)[0] = &core->resets.next;
    (*ret_lists)[1] = &core->resets.idle;
    (*ret_lists)[2] = &core->resets.full;
    return *ret_lists;
}

void hf_resets_init(hf_core *core)
{
    hf_list *lists[3];
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        hf_list_init(lists_of(core, &lists)[i]);
    }
}

static void drop_made(hf_core *core, hf_reset *it)
{
    if (it->made != NULL) {
        hf_slot_free(core, it->made);
        it->made = NULL;
    }
}

static void reset_free(hf_core *core, hf_reset *it)
{
    hf_assert(core->resets.count > 0);
    core->resets.count--;
    drop_made(core, it);
    hf_owned_free(&core->runs_memory, &it->next_run_id);
    hf_list_remove(&it->link);
    hf_arena_deinit(&it->arena);
    hf_core_free_mem(core, it, sizeof *it);
}

void hf_resets_deinit(hf_core *core)
{
    hf_list *lists[3];
    hf_node *node = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((node = hf_list_first(lists_of(core, &lists)[i])) != NULL) {
            reset_free(core, HF_CONTAINER(node, hf_reset, link));
        }
    }
    HF_VEC_FREE(&core->runs_memory, &core->resets.undo);
}

static void move(hf_reset *it, hf_list *to)
{
    hf_list_remove(&it->link);
    hf_list_push_back(to, &it->link);
}

/* The run stays in memory, and is not deleted from the store. */
static void hold(hf_core *core, hf_run *run)
{
    HF_SLOT(run)->resets++;
    hf_core_use(core, run);
}

static void let_go(hf_core *core, int64_t *number)
{
    hf_run *run = *number != 0 ? hf_run_find(core, *number) : NULL;
    hf_assert(*number == 0 || (run != NULL && HF_SLOT(run)->resets > 0));
    *number = 0;
    if (run != NULL && --HF_SLOT(run)->resets == 0) {
        hf_core_unuse(core, run);
    }
}

static void read_from(hf_core *core, hf_reset *it, hf_run *run, int64_t event_id)
{
    hold(core, run);
    let_go(core, &it->source);
    it->source = run->number;
    it->next = event_id;
    it->log_id = 0;
    hf_owned_free(&core->runs_memory, &it->next_run_id);
}

void hf_reset_undo(hf_core *core, int64_t run)
{
    if (HF_VEC_RESERVE(&core->runs_memory, &core->resets.undo)) {
        core->resets.undo.items[core->resets.undo.count++] = run;
    }
}

static void unmake(hf_core *core, hf_reset *it)
{
    if (it->is_written) {
        hf_reset_undo(core, it->made->run.number);
        it->is_written = false;
    }
    drop_made(core, it);
    it->made_count = 0;
}

static void end(hf_core *core, hf_reset *it)
{
    hf_assert(it->caller == NULL && hf_list_is_empty(&it->joined));
    unmake(core, it);
    let_go(core, &it->source);
    let_go(core, &it->current);
    let_go(core, &it->base);
    reset_free(core, it);
}

static hf_call *next_caller(hf_reset *it)
{
    hf_call *call = it->caller;
    hf_node *node = call == NULL ? hf_list_pop_front(&it->joined) : NULL;
    it->caller = NULL;
    call = node != NULL ? HF_CONTAINER(node, hf_call, link) : call;
    if (call != NULL) {
        call->place = HF_PLACE_NONE;
    }
    return call;
}

void hf_reset_fail(hf_core *core, hf_reset *it, hf_status status, const char *format, ...)
{
    char why[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hf_call *call = NULL;
    while (core->status == HF_OK && (call = next_caller(it)) != NULL) {
        hf_call_fail(core, call, status, "%s", why);
    }
    if (core->status == HF_OK) {
        end(core, it);
    }
}

/* ---- The call -------------------------------------------------------------------------------------------------------- */

static void answer(hf_core *core, hf_call *call, hf_str run_id)
{
    hf_pb_reset_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        response->run_id = hf_arena_copy(call->arena, run_id);
        hf_call_reply(core, call);
    }
}

static bool refuse(hf_core *core, hf_call *call, const char *why)
{
    HF_PROBE(core, HF_PROBE_RESET_REFUSED);
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool signal_is_good(hf_core *core, hf_call *call, const hf_pb_post_reset_operation_signal_workflow *signal)
{
    if (signal->signal_name.len == 0 || signal->signal_name.len > HF_ID_LEN_MAX) {
        return refuse(core, call, "SignalName is not set on a PostResetOperation, or longer than 1000 bytes.");
    }
    if (!hf_fits(core, hf_payloads_len(signal->input)) ||
        !hf_fits(core, hf_message_len(core, &hf_pb_header_type, signal->header))) {
        hf_call_fail(core, call, HF_ERR_TOO_BIG, "a signal of a PostResetOperation is longer than one blob may be");
        return false;
    }
    return true;
}

/* Options without a mask change nothing. */
static bool options_are_good(hf_core *core, hf_call *call,
                             const hf_pb_post_reset_operation_update_workflow_options *update)
{
    static const hf_pb_workflow_execution_options NONE = {0};
    const hf_pb_workflow_execution_options *options = update->workflow_execution_options;
    return update->update_mask == NULL ||
           hf_options_are_good(core, call, options != NULL ? options : &NONE, update->update_mask);
}

static bool operations_are_good(hf_core *core, hf_call *call)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    bool is_good = true;
    for (size_t i = 0; is_good && i < request->post_reset_operations.count; i++) {
        const hf_pb_post_reset_operation *operation = &request->post_reset_operations.items[i];
        if (operation->variant_case == HF_PB_POST_RESET_OPERATION_SIGNAL_WORKFLOW) {
            is_good = signal_is_good(core, call, operation->signal_workflow);
        } else if (operation->variant_case == HF_PB_POST_RESET_OPERATION_UPDATE_WORKFLOW_OPTIONS) {
            is_good = options_are_good(core, call, operation->update_workflow_options);
        } else {
            is_good = refuse(core, call, "a PostResetOperation is neither a signal nor an update of options");
        }
    }
    return is_good;
}

static bool request_is_good(hf_core *core, hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    bool has_event = request->workflow_task_finish_event_id != 0;
    if (request->holdfast_point < 0 || request->holdfast_point > RESET_TO_LAST) {
        return refuse(core, call, "HoldfastPoint is neither 1, the first workflow task, nor 2, the last one.");
    }
    if (has_event + (request->holdfast_point != 0) + (request->holdfast_activity_id.len > 0) > 1) {
        return refuse(core, call,
                      "of WorkflowTaskFinishEventId, HoldfastPoint and HoldfastActivityId more than one is set");
    }
    if (!has_event && (request->holdfast_point != 0 || request->holdfast_activity_id.len > 0)) {
        return operations_are_good(core, call);
    }
    if (request->workflow_task_finish_event_id <= 1 || request->workflow_task_finish_event_id > run->event_count) {
        HF_PROBE(core, HF_PROBE_RESET_REFUSED);
        hf_call_fail(core, call, HF_ERR_INVALID,
                     "WorkflowTaskFinishEventId is %lld: it must be greater than 1 and at most %lld, the last event",
                     (long long)request->workflow_task_finish_event_id, (long long)run->event_count);
        return false;
    }
    return operations_are_good(core, call);
}

static bool is_same(hf_core *core, const hf_reset *it, const hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *ours = it->caller->request;
    const hf_pb_reset_workflow_execution_request *request = call->request;
    const hf_run *base = hf_run_find(core, it->base);
    return hf_str_equal(ours->request_id, request->request_id) &&
           hf_str_equal(hf_owned_str(&base->namespace), hf_owned_str(&run->namespace)) &&
           hf_str_equal(hf_owned_str(&base->workflow_id), hf_owned_str(&run->workflow_id));
}

/* Whether the request is known: it was carried out, or is under way. */
static bool is_repeated(hf_core *core, hf_call *call, const hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = call->request;
    hf_str made = hf_run_reset_by(run, request->request_id);
    if (request->request_id.len == 0 || HF_CANARY(HF_BUG_RESET_TWICE)) {
        return false;
    }
    if (made.len > 0) {
        HF_PROBE(core, HF_PROBE_RESET_DEDUPED);
        answer(core, call, made);
        return true;
    }
    hf_list *lists[3];
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        HF_LIST_EACH(node, lists_of(core, &lists)[i])
        {
            hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            if (is_same(core, it, call, run)) {
                HF_PROBE(core, HF_PROBE_RESET_JOINED);
                call->place = HF_PLACE_ELSEWHERE;
                hf_list_push_back(&it->joined, &call->link);
                return true;
            }
        }
    }
    return false;
}

/* Where to, as far as that is known without looking at events. */
static void set_point(hf_reset *it, const hf_run *base)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    it->stage = RESET_FIND;
    if (request->workflow_task_finish_event_id != 0) {
        it->found = request->workflow_task_finish_event_id;
    } else if (request->holdfast_point == RESET_TO_LAST) {
        it->found = base->wft.completed_id;
    }
    if (it->found != 0) {
        it->point = it->found - 1;
        it->stage = RESET_COPY;
    }
}

static void begin(hf_core *core, hf_call *call, hf_run *base)
{
    hf_reset *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return;
    }
    core->resets.count++;
    it->core = core;
    it->caller = call;
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_init(&it->joined);
    hf_arena_init(&it->arena, core->memory);
    it->execution.workflow_id = hf_arena_copy(&it->arena, hf_owned_str(&base->workflow_id));
    it->asks = (hf_pb_reset_workflow_execution_request){
        .namespace = hf_arena_copy(&it->arena, hf_owned_str(&base->namespace)),
        .workflow_execution = &it->execution,
    };
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hold(core, base);
    it->base = base->number;
    read_from(core, it, base, 1);
    set_point(it, base);
    hf_list_push_back(&core->resets.next, &it->link);
}

static void meet(hf_reset *it, const hf_run *run)
{
    it->met = run->number;
    hf_call_now(&it->call);
}

void hf_reset_call(hf_core *core, hf_call *call, hf_run *run)
{
    if (call->maker == HF_CALL_OF_RESET) {
        meet((hf_reset *)(void *)call, run);
        return;
    }
    if (is_repeated(core, call, run) || !request_is_good(core, call, run)) {
        return;
    }
    if (core->resets.count >= HF_RESETS_MAX) {
        hf_call_fail(core, call, HF_ERR_LIMIT, "%d resets are under way, the most that are taken at a time",
                     (int)HF_RESETS_MAX);
        return;
    }
    begin(core, call, run);
}

/* ---- Other runs of the id -------------------------------------------------------------------------------------------- */

static void met_current(hf_core *core, hf_reset *it, hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    if (run == NULL && request->workflow_execution->run_id.len == 0) {
        hf_reset_fail(core, it, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    it->has_none = run == NULL;
    if (run != NULL) {
        hold(core, run);
        let_go(core, &it->current); /* the reset has been here before */
        it->current = run->number;
    }
    it->stage = RESET_LAST;
    move(it, &core->resets.next);
}

/* The run that was asked for is here, or there is none. */
static void call_done(hf_call *call)
{
    hf_reset *it = (hf_reset *)(void *)call;
    hf_core *core = it->core;
    if (core->status != HF_OK) {
        return; /* hf_resets_deinit frees it */
    }
    hf_run *run = it->met != 0 ? hf_run_find(core, it->met) : NULL;
    if (run == NULL && call->status != HF_ERR_NOT_FOUND) {
        hf_reset_fail(core, it, call->status, "%s", call->message);
    } else if (it->stage == RESET_ASK_CURRENT) {
        met_current(core, it, run);
    } else if (run != NULL) {
        HF_PROBE(core, HF_PROBE_RESET_CONTINUED);
        read_from(core, it, run, 1);
        it->stage = RESET_REAPPLY;
        move(it, &core->resets.next);
    } else { /* it was deleted: what it had is lost */
        it->stage = RESET_ASK_CURRENT;
        move(it, &core->resets.next);
    }
}

static void ask(hf_core *core, hf_reset *it, hf_str run_id)
{
    it->execution.run_id = run_id;
    it->met = 0;
    move(it, &core->resets.idle);
    hf_call_init(&it->call, HF_METHOD_RESET_WORKFLOW_EXECUTION, &it->asks, &it->arena, call_done);
    it->call.maker = HF_CALL_OF_RESET;
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_input(core, &it->call);
}

/* ---- Portions -------------------------------------------------------------------------------------------------------- */

void hf_resets_begin_step(hf_core *core)
{
    core->resets.taken_len = core->resets.taken_count = 0;
}

/* Whether this step may take another event: engine-R1. */
static bool may_take(const hf_core *core)
{
    return core->resets.taken_len < core->options.reset_portion_len &&
           core->resets.taken_count < core->options.reset_portion_count;
}

/* Whether the new run has a portion that is in no row. */
static bool is_full(const hf_core *core, const hf_reset *it)
{
    return it->made != NULL &&
           (it->made->run.log.len >= core->options.reset_portion_len ||
            it->made->run.event_count - it->made_count >= (int64_t)core->options.reset_portion_count);
}

/* Takes events from bytes that begin with event `first`; `*ret_left` is what was not looked at. `is_last`: all of them. False: the reset has
 * ended. */
static bool take_from(hf_core *core, hf_reset *it, hf_str bytes, int64_t first, bool is_last, hf_str *ret_left)
{
    hf_pb_raw field;
    *ret_left = bytes;
    while (bytes.len > 0 && core->status == HF_OK) {
        if (!hf_pb_next(&bytes, &field)) {
            hf_reset_fail(core, it, HF_ERR_STORE, "events of run %lld cannot be read; see holdfast db check",
                          (long long)it->source);
            return false;
        }
        if (field.number != HF_CHANGE_EVENT || first++ < it->next) {
            *ret_left = bytes;
            continue;
        }
        if (!is_last && (!may_take(core) || is_full(core, it))) {
            return true;
        }
        if (!is_last) {
            core->resets.taken_len += field.whole.len;
            core->resets.taken_count++;
            hf_assert(core->resets.taken_len - field.whole.len < core->options.reset_portion_len &&
                      core->resets.taken_count <= core->options.reset_portion_count); /* engine-R1 */
        }
        if (!hf_reset_take(core, it, field.bytes)) {
            return false;
        }
        *ret_left = bytes;
        if (it->next != first) { /* the search is over */
            return true;
        }
    }
    return core->status == HF_OK;
}

/* What comes after events were taken from the source. */
static void go_on(hf_core *core, hf_reset *it)
{
    move(it, is_full(core, it) ? &core->resets.full : &core->resets.next);
}

/* From the log of the source. */
static bool take_log(hf_core *core, hf_reset *it, const hf_run *run, bool is_last)
{
    int64_t first = it->log_id;
    hf_str log = {0};
    if (first == it->next && it->log_spills == HF_SLOT(run)->spills) {
        log = hf_str_of_len(run->log.data + it->log_at, run->log.len - it->log_at);
    } else {
        log = hf_log_from(run, it->next, &first);
    }
    hf_str left = {0};
    int64_t before = it->next;
    bool is_search = it->stage == RESET_FIND;
    if (!take_from(core, it, log, first, is_last, &left)) {
        return false;
    }
    bool is_found = is_search && it->stage != RESET_FIND;
    hf_assert(it->next > before || is_found || !may_take(core) || is_full(core, it)); /* run-R2: the log has them */
    it->log_id = it->next > before ? it->next : 0;
    it->log_at = (size_t)(left.data - run->log.data);
    it->log_spills = HF_SLOT(run)->spills;
    return true;
}

static void read_rows(hf_core *core, hf_reset *it)
{
    hf_read *read = hf_read_new(core, HF_READ_RESET, HF_TABLE_HISTORY);
    if (read != NULL) {
        read->reset = it;
        read->request.key = (hf_key){.a = it->source};
        read->request.key_end = (hf_key){.a = it->source, .b = it->next + 1};
        read->request.backwards = true; /* the row that holds the event is the last that begins at or before it */
        read->request.row_max = 1;
        move(it, &core->resets.idle);
        hf_read_submit(core, read);
    }
}

void hf_reset_rows_read(hf_core *core, hf_reset *it, hf_read *read)
{
    hf_pb_history_record record = {0};
    hf_status status = read->request.row_count > 0
                           ? hf_history_row_open(&core->op, &read->request.rows[0], &core->scratch, &record)
                           : HF_ERR_INVALID;
    if (status == HF_ERR_NOMEM) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (status != HF_OK || record.last_id < it->next) {
        char why[64];
        (void)snprintf(why, sizeof why, "event %lld is missing", (long long)it->next);
        hf_reset_failed(core, it, why);
        return;
    }
    hf_str left = {0};
    if (take_from(core, it, record.events, record.first_id, false, &left)) {
        go_on(core, it);
    }
}

void hf_reset_failed(hf_core *core, hf_reset *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    hf_reset_fail(core, it, HF_ERR_STORE, "the history of run %lld cannot be read: %s; see holdfast db check",
                  (long long)it->source, why);
}

/* ---- The last step --------------------------------------------------------------------------------------------------- */

void hf_reset_number(hf_core *core, hf_reset *it)
{
    hf_run *run = &it->made->run;
    if (run->number == 0) {
        run->number = hf_run_number_next(core);
        hf_owned_set(&core->runs_memory, &run->run_id, hf_execution_new_id(core, run->number));
    }
}

/* Other runs of the id have begun: the new one needs a greater number, and its rows and events name the old one. */
static void begin_again(hf_core *core, hf_reset *it)
{
    HF_PROBE(core, HF_PROBE_RESET_RESTARTED);
    if (++it->tries > HF_RESET_TRIES_MAX) {
        hf_reset_fail(core, it, HF_ERR_UNAVAILABLE, "new runs of this workflow id begin all the time; try again later");
        return;
    }
    unmake(core, it);
    let_go(core, &it->current);
    it->scheduled_id = it->started_id = 0;
    it->stage = RESET_COPY;
    read_from(core, it, hf_run_find(core, it->base), 1);
    move(it, &core->resets.next);
}

static void look_for_current(hf_core *core, hf_reset *it)
{
    let_go(core, &it->current);
    it->stage = RESET_ASK_CURRENT;
    move(it, &core->resets.next);
}

/* Whether what was found out still holds; else the reset goes on from where it does not. */
static bool is_ready(hf_core *core, hf_reset *it)
{
    const hf_run *source = hf_run_find(core, it->source);
    const hf_run *current = it->current != 0 ? hf_run_find(core, it->current) : NULL;
    const hf_run *named = hf_name_current(core, it->asks.namespace, it->execution.workflow_id);
    const hf_core_limits *limits = &core->options.limits;
    hf_assert(current != NULL || it->has_none);
    if (it->next <= source->event_count) {
        it->stage = RESET_REAPPLY;
        move(it, &core->resets.next);
        return false;
    }
    bool is_current = current != NULL ? HF_SLOT(current)->name != NULL && current->deleting == HF_DELETING_NOT
                                      : named == NULL || named->deleting != HF_DELETING_NOT;
    if (!is_current) {
        look_for_current(core, it);
        return false;
    }
    if ((current != NULL && current->number > it->made->run.number) ||
        (named != NULL && named->number > it->made->run.number)) {
        begin_again(core, it);
        return false;
    }
    if (it->made->run.event_count >= limits->history_count || it->made->run.history_len >= limits->history_len) {
        HF_PROBE(core, HF_PROBE_LIMIT_HIT);
        hf_reset_fail(core, it, HF_ERR_INVALID,
                      "the history of the new run would have %lld events and %lld bytes, more than a run may have",
                      (long long)it->made->run.event_count, (long long)it->made->run.history_len);
        return false;
    }
    return true;
}

/* Activities that were scheduled and not started, as far as the history tells, are so now. */
static void renew_activities(hf_core *core, hf_run *run)
{
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_activity *activity = run->activities.items[i];
        hf_assert(activity->state == HF_ACTIVITY_SCHEDULED && activity->task.order == 0); /* no history shows more */
        activity->first_time = activity->scheduled_time = core->now.wall;
        activity->is_renewed = true;
        hf_activity_enqueue(core, run, activity);
    }
}

/* The request id is known from now on, to the base and to the new run, which also takes over what the base knows. */
static void remember(hf_core *core, const hf_reset *it, hf_run *base, hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    for (size_t i = 0; i < base->resets.count; i++) {
        hf_pb_run_reset before = {
            .request_id = hf_owned_str(&base->resets.items[i].request_id),
            .run_id = hf_owned_str(&base->resets.items[i].run_id),
        };
        hf_record(core, run, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &before);
    }
    hf_pb_run_reset msg = {.request_id = request->request_id, .run_id = hf_owned_str(&run->run_id)};
    hf_record(core, run, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &msg);
    msg.is_base = true;
    hf_record(core, base, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &msg);
    HF_SLOT(base)->spill_now = true; /* a closed run is written when it changes */
}

static void be_born(hf_core *core, hf_reset *it)
{
    hf_slot *slot = it->made;
    hf_run *run = &slot->run;
    hf_run *base = hf_run_find(core, it->base);
    hf_assert(hf_run_find(core, run->number) == NULL && slot->name == NULL); /* engine-R2 */
    if (!hf_run_insert(core, slot)) {
        return;
    }
    it->made = NULL;
    slot->is_in_making = it->is_written;
    slot->spill_now = true;
    it->is_written = false;
    hf_core_touch(core, run);
    core->open_len += run->log.len;
    hf_name_succeed(core, run);
    remember(core, it, base, run);
    renew_activities(core, run);
    hf_wft_schedule(core, run);
    if (core->status == HF_OK) {
        hf_due_at(core, run, hf_run_next_due(run));
        hf_message_send_all(core, run);
    }
}

static void count_probes(hf_core *core, const hf_reset *it, const hf_run *current)
{
    HF_PROBE(core, HF_PROBE_RESET);
    if (current == NULL) {
        HF_PROBE(core, HF_PROBE_RESET_NO_CURRENT);
    } else if (hf_run_is_open(current)) {
        HF_PROBE(core, HF_PROBE_RESET_OPEN);
    } else {
        HF_PROBE(core, HF_PROBE_RESET_CLOSED);
    }
    if (current != NULL && it->current != it->base) {
        HF_PROBE(core, HF_PROBE_RESET_OLD);
    }
}

static void finish(hf_core *core, hf_reset *it)
{
    if (!is_ready(core, it)) {
        return;
    }
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    hf_run *current = it->current != 0 ? hf_run_find(core, it->current) : NULL;
    count_probes(core, it, current);
    hf_assert(current == NULL || current->number < it->made->run.number); /* engine-R3 */
    if (current != NULL && hf_run_is_open(current)) {
        hf_execution_terminate(core, current, request->reason, NULL, HF_RESETTER);
        bool is_looked_through = core->status == HF_OK && it->current == it->source;
        it->stage = RESET_REAPPLY;
        if (is_looked_through && !take_log(core, it, current, true)) { /* events that were buffered until now */
            return;
        }
    }
    if (core->status != HF_OK) {
        return;
    }
    hf_reset_add_operations(core, it);
    hf_str run_id = hf_arena_copy(&it->arena, hf_owned_str(&it->made->run.run_id));
    if (core->status == HF_OK) {
        be_born(core, it);
    }
    hf_call *call = NULL;
    while (hf_core_is_whole(core) && (call = next_caller(it)) != NULL) {
        answer(core, call, run_id);
    }
    if (core->status == HF_OK) {
        end(core, it);
    }
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------- */

/* All events of the source were taken. */
static void source_ended(hf_core *core, hf_reset *it)
{
    if (it->stage == RESET_FIND) {
        if (hf_reset_found(core, it)) {
            move(it, &core->resets.next);
        }
        return;
    }
    hf_assert(it->stage == RESET_REAPPLY); /* a copy ends with the point */
    it->stage = it->next_run_id.len > 0 ? RESET_ASK_NEXT : RESET_ASK_CURRENT;
    move(it, &core->resets.next);
}

static void take(hf_core *core, hf_reset *it)
{
    const hf_run *run = hf_run_find(core, it->source);
    if (it->next > run->event_count) {
        source_ended(core, it);
    } else if (it->next <= run->spilled) {
        read_rows(core, it);
    } else if (take_log(core, it, run, false)) {
        go_on(core, it);
    }
}

static void turn(hf_core *core, hf_reset *it)
{
    if (hf_run_find(core, it->base)->deleting != HF_DELETING_NOT) {
        hf_reset_fail(core, it, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    switch (it->stage) {
    case RESET_FIND:
    case RESET_COPY:
    case RESET_REAPPLY:
        take(core, it);
        return;
    case RESET_ASK_NEXT:
        ask(core, it, hf_owned_str(&it->next_run_id));
        return;
    case RESET_ASK_CURRENT:
        ask(core, it, HF_STR(""));
        return;
    case RESET_LAST:
        finish(core, it);
        return;
    }
}

bool hf_resets_have_work(const hf_core *core)
{
    return !hf_list_is_empty(&core->resets.next) && !hf_core_is_full(core);
}

void hf_resets_pump(hf_core *core)
{
    if (core->submit == NULL) {
        return; /* while the store is being opened */
    }
    /* Each turn takes events or goes to another stage; a step that has taken a portion ends. */
    for (int i = 0; core->status == HF_OK && i < HF_RESETS_MAX && may_take(core) && hf_resets_have_work(core); i++) {
        hf_core_reset_scratch(core);
        turn(core, HF_CONTAINER(hf_list_first(&core->resets.next), hf_reset, link));
    }
}

/* ---- Commits --------------------------------------------------------------------------------------------------------- */

bool hf_resets_make(const hf_core *core, int64_t number)
{
    const hf_list *const LISTS[] = {&core->resets.next, &core->resets.idle, &core->resets.full};
    for (size_t i = 0; i < HF_COUNT_OF(LISTS) && core->resets.count > 0; i++) {
        HF_LIST_EACH(node, LISTS[i])
        {
            const hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            if (it->made != NULL && it->made->run.number == number) {
                return true;
            }
        }
    }
    return false;
}

bool hf_resets_can_go(const hf_core *core)
{
    return !hf_list_is_empty(&core->resets.full) || core->resets.undo.count > 0;
}

/* A portion of a run that does not exist yet. */
static void write_portion(hf_core *core, hf_commit_batch *batch, hf_reset *it)
{
    HF_PROBE(core, HF_PROBE_RESET_PORTION);
    hf_reset_number(core, it);
    hf_run *run = &it->made->run;
    hf_assert(core->status != HF_OK || hf_run_find(core, run->number) == NULL); /* engine-R2 */
    hf_history_put(&batch->writes, run, hf_str_of_len(run->log.data, run->log.len), core->options.row_len_max);
    if (!it->is_written) {
        hf_making_put(&batch->writes, run->number, it->base);
        it->is_written = true;
    }
    hf_assert(it->is_written); /* engine-R4 */
    it->made_count = run->event_count;
    run->log.len = 0;
    move(it, &core->resets.next);
}

void hf_resets_go(hf_core *core, hf_commit_batch *batch)
{
    for (size_t i = 0; i < core->resets.undo.count; i++) {
        HF_PROBE(core, HF_PROBE_RESET_UNDONE);
        hf_making_undo(&batch->writes, core->resets.undo.items[i]);
    }
    core->resets.undo.count = 0;
    hf_node *node = hf_list_first(&core->resets.full);
    if (node != NULL) { /* one with each commit */
        write_portion(core, batch, HF_CONTAINER(node, hf_reset, link));
    }
}

uint64_t hf_resets_hash(const hf_core *core, uint64_t hash)
{
    const hf_list *lists[] = {&core->resets.next, &core->resets.idle, &core->resets.full};
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        HF_LIST_EACH(node, lists[i])
        {
            const hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            hash = hf_hash_mix(hf_hash_mix(hash, (uint64_t)it->stage), (uint64_t)it->next);
            hash = it->made != NULL ? hf_hash_mix(hash, it->made->run.chain) : hash;
        }
    }
    return hash;
}
