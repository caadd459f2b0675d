/* The registry of operations, and their calls. See operations.h. */
#include "engine/operations.h"

#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/emit.h"
#include "engine/input_private.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/operation_private.h"
#include "engine/namespaces.h"
#include "engine/size.h"
#include "history/limits.h"
#include "ledger/operations.h"

#include <stdio.h>

#define CASE(name) HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION
#define PURGE_ID  \
    HF_STR("\x1f" \
           "delete-namespace") /* of the engine's own: no caller can give it */

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

void hf_operations_init(hf_core *core)
{
    hf_list_init(&core->operations.next);
    hf_list_init(&core->operations.idle);
}

static void entry_free(hf_core *core, hf_operation_entry *entry)
{
    hf_owned_free(&core->runs_memory, &entry->namespace_);
    hf_owned_free(&core->runs_memory, &entry->job_id);
    hf_owned_free(&core->runs_memory, &entry->run_id);
}

void hf_operations_deinit(hf_core *core)
{
    hf_operations *all = &core->operations;
    hf_operations_free(core);
    for (size_t i = 0; i < all->all.count; i++) {
        entry_free(core, &all->all.items[i]);
    }
    HF_VEC_FREE(&core->runs_memory, &all->all);
    HF_VEC_FREE(&core->runs_memory, &all->gone);
}

hf_operation_entry *hf_operation_find(hf_core *core, hf_str namespace_, hf_str job_id)
{
    for (size_t i = core->operations.all.count; i > 0; i--) { /* the newest is asked for most */
        hf_operation_entry *entry = &core->operations.all.items[i - 1];
        if (hf_str_equal(hf_owned_str(&entry->job_id), job_id) &&
            hf_str_equal(hf_owned_str(&entry->namespace_), namespace_)) {
            return entry;
        }
    }
    return NULL;
}

/* The index of the first operation with this run or a later one. */
static size_t index_of(const hf_core *core, int64_t run)
{
    size_t low = 0;
    size_t high = core->operations.all.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->operations.all.items[middle].run < run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hf_operation_entry *hf_operation_of_run(hf_core *core, int64_t run)
{
    size_t at = index_of(core, run);
    hf_operation_entry *items = core->operations.all.items;
    return at < core->operations.all.count && items[at].run == run ? &items[at] : NULL;
}

/* At the end: runs have ascending numbers. */
static void entry_add(hf_core *core, const hf_pb_operation_record *record, bool is_dirty)
{
    hf_operations *all = &core->operations;
    hf_assert(all->all.count == 0 || all->all.items[all->all.count - 1].run < record->run);
    if (!HF_VEC_RESERVE(&core->runs_memory, &all->all)) {
        return;
    }
    hf_operation_entry *entry = &all->all.items[all->all.count++];
    *entry = (hf_operation_entry){
        .run = record->run,
        .type = record->type,
        .state = record->state,
        .start_time = record->start_time,
        .close_time = record->close_time,
        .purges = record->purges,
        .is_dirty = is_dirty,
    };
    hf_owned_set(&core->runs_memory, &entry->namespace_, record->namespace);
    hf_owned_set(&core->runs_memory, &entry->job_id, record->job_id);
    hf_owned_set(&core->runs_memory, &entry->run_id, record->run_id);
    all->is_dirty = all->is_dirty || is_dirty;
}

void hf_operations_remove(hf_core *core, int64_t run)
{
    hf_operations *all = &core->operations;
    hf_operation_entry *entry = hf_operation_of_run(core, run);
    if (entry == NULL || !HF_VEC_RESERVE(&core->runs_memory, &all->gone)) {
        return;
    }
    size_t at = (size_t)(entry - all->all.items);
    entry_free(core, entry);
    all->all.count--;
    memmove(all->all.items + at, all->all.items + at + 1, (all->all.count - at) * sizeof *all->all.items);
    all->gone.items[all->gone.count++] = run;
    all->is_dirty = true;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------- */

hf_status hf_operations_open(hf_op *op, hf_core *core, hf_store *store)
{
    hf_row *rows = NULL;
    size_t count = 0;
    hf_arena arena;
    hf_arena_init(&arena, core->memory);
    hf_status status = hf_operation_scan(op, store, &arena, &rows, &count);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        hf_pb_operation_record record;
        status = hf_operation_row_open(op, &rows[i], &arena, &record);
        if (status == HF_OK) {
            entry_add(core, &record, false);
            status = core->status;
        }
    }
    hf_arena_deinit(&arena);
    return status;
}

void hf_operations_put(hf_core *core, hf_commit_batch *batch)
{
    hf_operations *all = &core->operations;
    hf_assert(all->is_dirty);
    for (size_t i = 0; i < all->gone.count; i++) {
        hf_operation_row_remove(&batch->writes, all->gone.items[i]);
    }
    for (size_t i = 0; i < all->all.count; i++) {
        hf_operation_entry *entry = &all->all.items[i];
        if (!entry->is_dirty) {
            continue;
        }
        hf_pb_operation_record record = {
            .run = entry->run,
            .namespace = hf_owned_str(&entry->namespace_),
            .job_id = hf_owned_str(&entry->job_id),
            .run_id = hf_owned_str(&entry->run_id),
            .type = entry->type,
            .state = entry->state,
            .start_time = entry->start_time,
            .close_time = entry->close_time,
            .purges = entry->purges,
        };
        hf_operation_row_put(&batch->writes, &record);
        entry->is_dirty = false;
    }
    all->gone.count = 0;
    all->is_dirty = false;
}

/* ---- A new one --------------------------------------------------------------------------------------------------------- */

hf_str hf_operation_workflow_id(hf_arena *arena, hf_str job_id)
{
    char *text = hf_arena_take(arena, job_id.len + 2, 1);
    if (text == NULL) {
        return HF_STR("");
    }
    text[0] = HF_KIND_MARK;
    text[1] = (char)HF_KIND_OPERATION;
    memcpy(text + 2, job_id.data, job_id.len);
    return hf_str_of_len(text, job_id.len + 2);
}

hf_run *hf_operation_create(hf_core *core, const hf_pb_start_batch_operation_request *request, int32_t type,
                            hf_str identity, bool purges)
{
    hf_arena *arena = &core->scratch;
    hf_str id = hf_operation_workflow_id(arena, request->job_id);
    core->events.len = 0;
    hf_pb_encode(&hf_pb_start_batch_operation_request_type, request, &core->events);
    if (core->events.status != HF_OK || !hf_core_is_whole(core)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    hf_run *run = hf_execution_create(core, request->namespace, id, HF_STR(""), HF_KIND_OPERATION);
    if (run == NULL) {
        return NULL;
    }
    hf_pb_operation_start start = {
        .time = core->now.wall,
        .request = hf_str_of_len(core->events.data, core->events.len),
        .type = type,
        .identity = identity,
        .below = run->number,
        .purges = purges,
    };
    hf_record(core, run, HF_CHANGE_OPERATION_STARTED, &hf_pb_operation_start_type, &start);
    hf_pb_operation_progress progress = {
        .state = HF_OPERATION_WAITING, .time = core->now.wall, .due = core->now.wall > 0 ? core->now.wall : 1};
    hf_record(core, run, HF_CHANGE_OPERATION_MOVED, &hf_pb_operation_progress_type, &progress);
    hf_pb_operation_record record = {
        .run = run->number,
        .namespace = request->namespace,
        .job_id = request->job_id,
        .run_id = hf_owned_str(&run->run_id),
        .type = type,
        .state = HF_OPERATION_WAITING,
        .start_time = core->now.wall,
        .purges = purges,
    };
    if (core->status == HF_OK) {
        entry_add(core, &record, true);
    }
    return core->status == HF_OK ? run : NULL;
}

/* ---- What is asked for --------------------------------------------------------------------------------------------------- */

/* The kind of operation, and who asks for it. 0: it is none. */
static int32_t type_of(const hf_pb_start_batch_operation_request *request, hf_str *ret_identity)
{
#define IS(name, stem, type)                     \
    case CASE(name):                             \
        *ret_identity = request->stem->identity; \
        return HF_BATCH_OPERATION_TYPE_##type
    switch (request->operation_case) {
        IS(TERMINATION, termination_operation, TERMINATE);
        IS(SIGNAL, signal_operation, SIGNAL);
        IS(CANCELLATION, cancellation_operation, CANCEL);
        IS(DELETION, deletion_operation, DELETE);
        IS(RESET, reset_operation, RESET);
        IS(UPDATE_WORKFLOW_OPTIONS, update_workflow_options_operation, UPDATE_EXECUTION_OPTIONS);
        IS(UNPAUSE_ACTIVITIES, unpause_activities_operation, UNPAUSE_ACTIVITY);
        IS(RESET_ACTIVITIES, reset_activities_operation, RESET_ACTIVITY);
        IS(UPDATE_ACTIVITY_OPTIONS, update_activity_options_operation, UPDATE_ACTIVITY_OPTIONS);
    default:
        return HF_BATCH_OPERATION_TYPE_UNSPECIFIED;
    }
#undef IS
}

static const char MUST_PROVIDE[] = "must provide required parameters: BatchType,Reason,Namespace, AND one of (Query OR "
                                   "Executions OR TargetExecutions)";
static const char TYPE_OR_ALL[] = "Either activity type must be set, or match all should be set to true";

static bool reset_is_good(hf_core *core, hf_call *call, const hf_pb_batch_operation_reset *reset)
{
    if (reset->options == NULL) {
        return reset->reset_type == HF_RESET_TYPE_FIRST_WORKFLOW_TASK ||
               reset->reset_type == HF_RESET_TYPE_LAST_WORKFLOW_TASK ||
               hf_call_refuse(core, call,
                              "unknown batch reset type: it is neither the first nor the last workflow task");
    }
    if (reset->options->target_case == 0) {
        return hf_call_refuse(core, call, "batch reset missing target");
    }
    return reset->options->target_case != HF_PB_RESET_OPTIONS_BUILD_ID ||
           hf_call_refuse(core, call, "a reset to a build id is not there: this server has no worker versions");
}

static bool activities_are_good(hf_core *core, hf_call *call, uint32_t which, hf_str type, bool is_all)
{
    if (which == 0) {
        return hf_call_refuse(core, call, "activity filter must be set");
    }
    return is_all || hf_id_is_good(type) || hf_call_refuse(core, call, TYPE_OR_ALL);
}

static bool signal_is_good(hf_core *core, hf_call *call, const hf_pb_batch_operation_signal *signal)
{
    if (signal->signal.len == 0) {
        return hf_call_refuse(core, call, "must provide signal name");
    }
    return (hf_text_is_good(signal->signal) ||
            hf_call_refuse(core, call, "the name of the signal is longer than 1000 bytes, or not UTF-8")) &&
           hf_call_data_fits(core, call, "signal input", hf_payloads_len(signal->input)) &&
           hf_call_data_fits(core, call, "header", hf_message_len(core, &hf_pb_header_type, signal->header));
}

/* The fields that only one of the operations has. */
static bool operation_is_good(hf_core *core, hf_call *call)
{
    REQUEST(start_batch_operation);
#define ACTIVITIES(stem, prefix)                                                                          \
    activities_are_good(core, call, request->stem->activity_case,                                         \
                        request->stem->activity_case == prefix##_TYPE ? request->stem->type : HF_STR(""), \
                        request->stem->activity_case == prefix##_MATCH_ALL && request->stem->match_all)
    switch (request->operation_case) {
    case CASE(TERMINATION):
        return hf_call_data_fits(core, call, "details", hf_payloads_len(request->termination_operation->details));
    case CASE(SIGNAL):
        return signal_is_good(core, call, request->signal_operation);
    case CASE(RESET):
        return reset_is_good(core, call, request->reset_operation);
    case CASE(UPDATE_WORKFLOW_OPTIONS):
        return request->update_workflow_options_operation->workflow_execution_options == NULL
                   ? hf_call_refuse(core, call, "must provide UpdateOptions")
                   : request->update_workflow_options_operation->update_mask != NULL ||
                         hf_call_refuse(core, call, "must provide UpdateMask");
    case CASE(UNPAUSE_ACTIVITIES):
        return ACTIVITIES(unpause_activities_operation, HF_PB_BATCH_OPERATION_UNPAUSE_ACTIVITIES);
    case CASE(RESET_ACTIVITIES):
        return ACTIVITIES(reset_activities_operation, HF_PB_BATCH_OPERATION_RESET_ACTIVITIES);
    case CASE(UPDATE_ACTIVITY_OPTIONS): {
        const hf_pb_batch_operation_update_activity_options *asked = request->update_activity_options_operation;
        if ((asked->activity_options != NULL) == asked->restore_original) {
            return hf_call_refuse(core, call,
                                  asked->restore_original ? "cannot set both activity options and restore original"
                                                          : "neither activity options nor restore original is set");
        }
        return ACTIVITIES(update_activity_options_operation, HF_PB_BATCH_OPERATION_UPDATE_ACTIVITY_OPTIONS);
    }
    default:
        return true;
    }
#undef ACTIVITIES
}

static bool targets_are_good(hf_core *core, hf_call *call)
{
    REQUEST(start_batch_operation);
    if (request->visibility_query.len > 0 && request->executions.count > 0) {
        return hf_call_refuse(core, call, "visibility query, executions, and target executions are mutually exclusive");
    }
    if (request->executions.count > HF_OPERATION_TARGETS_MAX) {
        return hf_call_refuse(core, call, "a batch operation is for at most 1000 executions; use a query");
    }
    for (size_t i = 0; i < request->executions.count; i++) {
        const hf_pb_workflow_execution *execution = &request->executions.items[i];
        if (execution->workflow_id.len == 0 || execution->workflow_id.len > HF_ID_LEN_MAX ||
            execution->workflow_id.data[0] == HF_KIND_MARK || execution->run_id.len > HF_ID_LEN_MAX) {
            return hf_call_refuse(core, call,
                                  "an execution of the batch operation has no workflow id of 1 to 1000 bytes");
        }
    }
    if (request->visibility_query.len == 0) {
        return true;
    }
    hf_where where;
    size_t column = 0;
    hf_status status = hf_where_parse(&core->op, request->visibility_query, 0, hf_namespace_find_attribute,
                                      hf_namespace_find(core, request->namespace), &core->scratch, &where, &column);
    if (status == HF_ERR_NOMEM) {
        hf_core_break(core, status, "out of memory");
        return false;
    }
    if (status != HF_OK) {
        hf_call_fail(core, call, HF_ERR_INVALID, "invalid visibility query: %s", core->op.message);
    }
    return status == HF_OK;
}

static bool start_is_good(hf_core *core, hf_call *call, int32_t type, hf_str identity)
{
    REQUEST(start_batch_operation);
    if (type == HF_BATCH_OPERATION_TYPE_UNSPECIFIED || request->reason.len == 0 ||
        (request->visibility_query.len == 0 && request->executions.count == 0)) {
        return hf_call_refuse(core, call, MUST_PROVIDE);
    }
    if (request->job_id.len == 0 || request->job_id.len > HF_OPERATION_ID_LEN_MAX ||
        request->job_id.data[0] == HF_KIND_MARK || !hf_text_is_good(request->job_id)) {
        return hf_call_refuse(core, call,
                              request->job_id.len == 0
                                  ? "JobId is not set on request."
                                  : "JobId is longer than 998 bytes, not UTF-8, or begins with a byte 0x1f.");
    }
    if (!hf_text_is_good(request->reason) || !hf_text_is_good(identity)) {
        return hf_call_refuse(core, call, "the reason or the identity is longer than 1000 bytes, or not UTF-8");
    }
    float rate = request->max_operations_per_second;
    if (!(rate >= 0.0F)) { /* nor not a number */
        return hf_call_refuse(core, call, "MaxOperationsPerSecond is not a number of operations.");
    }
    return targets_are_good(core, call) && operation_is_good(core, call);
}

/* Whether the store takes one more. False: the call has failed. */
static bool has_room(hf_core *core, hf_call *call, hf_str namespace_)
{
    size_t open = 0;
    for (size_t i = 0; i < core->operations.all.count; i++) {
        const hf_operation_entry *entry = &core->operations.all.items[i];
        open += entry->state == HF_OPERATION_WAITING && hf_str_equal(hf_owned_str(&entry->namespace_), namespace_);
    }
    if (open >= HF_OPERATIONS_OPEN_MAX || core->operations.all.count >= HF_OPERATIONS_MAX) {
        hf_call_fail(core, call, HF_ERR_LIMIT, "Max concurrent batch operations is reached");
        return false;
    }
    return true;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

void hf_start_batch_call(hf_core *core, hf_call *call)
{
    REQUEST(start_batch_operation);
    hf_str identity = {0};
    int32_t type = type_of(request, &identity);
    if (!start_is_good(core, call, type, identity) || !has_room(core, call, request->namespace)) {
        return;
    }
    if (hf_operation_find(core, request->namespace, request->job_id) != NULL) {
        hf_call_fail(core, call, HF_ERR_EXISTS, "there is a batch operation '%.*s' already",
                     HF_STR_ARGS(request->job_id));
        return;
    }
    HF_PROBE(core, HF_PROBE_BATCH_STARTED);
    if (hf_operation_create(core, request, type, identity, false) != NULL) {
        hf_call_response(core, call);
        hf_call_reply(core, call);
    }
}

/* A call about one operation finds its run. */
static void go_to_run(hf_core *core, hf_call *call, hf_str namespace_, hf_str job_id)
{
    if (job_id.len == 0) {
        (void)hf_call_refuse(core, call, "JobId is not set on request.");
        return;
    }
    const hf_operation_entry *entry = hf_operation_find(core, namespace_, job_id);
    if (entry == NULL) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no batch operation '%.*s' in the namespace '%.*s'",
                     HF_STR_ARGS(job_id), HF_STR_ARGS(namespace_));
        return;
    }
    hf_run *run = hf_run_load(core, entry->run);
    if (run != NULL) {
        hf_input_run(core, call, run);
    }
}

void hf_stop_batch_call(hf_core *core, hf_call *call)
{
    REQUEST(stop_batch_operation);
    if (request->job_id.len > 0 && request->reason.len == 0) {
        (void)hf_call_refuse(core, call, "Reason is not set on request.");
        return;
    }
    go_to_run(core, call, request->namespace, request->job_id);
}

void hf_describe_batch_call(hf_core *core, hf_call *call)
{
    REQUEST(describe_batch_operation);
    go_to_run(core, call, request->namespace, request->job_id);
}

/* As Temporal names the states: one that was stopped has failed. */
static int32_t shown_state(int32_t state)
{
    return state == HF_OPERATION_COMPLETED                                 ? HF_BATCH_OPERATION_STATE_COMPLETED
           : state == HF_OPERATION_STOPPED || state == HF_OPERATION_FAILED ? HF_BATCH_OPERATION_STATE_FAILED
                                                                           : HF_BATCH_OPERATION_STATE_RUNNING;
}

/* Operations on workflows have newer names, too, which a Temporal server shows; the older ones are in files. */
static int32_t shown_type(int32_t type)
{
    return type >= HF_BATCH_OPERATION_TYPE_TERMINATE && type <= HF_BATCH_OPERATION_TYPE_UPDATE_EXECUTION_OPTIONS
               ? type + (HF_BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW - HF_BATCH_OPERATION_TYPE_TERMINATE)
               : type;
}

static hf_pb_timestamp shown_time(int64_t ns)
{
    return ns != 0 ? hf_pb_timestamp_of((hf_time){ns}) : (hf_pb_timestamp){0};
}

static void show_failures(const hf_pb_operation_progress *progress, hf_arena *arena,
                          hf_pb_describe_batch_operation_response *response)
{
    size_t count = progress->failures.count;
    response->holdfast_failures.items = HF_ARENA_ARRAY(arena, hf_pb_holdfast_batch_failure, count);
    for (size_t i = 0; arena->status == HF_OK && i < count; i++) {
        const hf_pb_operation_failure *failure = &progress->failures.items[i];
        hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
        if (execution != NULL) {
            execution->workflow_id = failure->workflow_id;
            execution->run_id = failure->run_id;
        }
        response->holdfast_failures.items[response->holdfast_failures.count++] =
            (hf_pb_holdfast_batch_failure){.execution = execution, .message = failure->message};
    }
}

static void show_targets(const hf_pb_start_batch_operation_request *request, hf_arena *arena,
                         hf_pb_describe_batch_operation_response *response)
{
    size_t count = request->executions.count;
    response->executions.items = HF_ARENA_ARRAY(arena, hf_pb_execution, count);
    for (size_t i = 0; arena->status == HF_OK && i < count; i++) {
        const hf_pb_workflow_execution *execution = &request->executions.items[i];
        response->executions.items[response->executions.count++] = (hf_pb_execution){
            .type = HF_EXECUTION_TYPE_WORKFLOW, .business_id = execution->workflow_id, .run_id = execution->run_id};
    }
}

static void describe(hf_core *core, hf_call *call, const hf_run *run)
{
    hf_arena *arena = call->arena;
    hf_pb_operation_start start;
    hf_pb_start_batch_operation_request request;
    hf_pb_operation_progress progress;
    hf_pb_describe_batch_operation_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    hf_str start_bytes = hf_arena_copy(arena, hf_owned_str(&run->operation));
    hf_str progress_bytes = hf_arena_copy(arena, hf_owned_str(&run->progress));
    hf_status status = arena->status;
    status =
        status == HF_OK ? hf_pb_decode(&core->op, &hf_pb_operation_start_type, start_bytes, arena, &start) : status;
    status = status == HF_OK
                 ? hf_pb_decode(&core->op, &hf_pb_start_batch_operation_request_type, start.request, arena, &request)
                 : status;
    status = status == HF_OK ? hf_pb_decode(&core->op, &hf_pb_operation_progress_type, progress_bytes, arena, &progress)
                             : status;
    if (status != HF_OK) {
        hf_core_break(core, status, "the operation of run %lld cannot be read", (long long)run->number);
        return;
    }
    *response = (hf_pb_describe_batch_operation_response){
        .operation_type = shown_type(start.type),
        .job_id = request.job_id,
        .state = shown_state(progress.state),
        .start_time = shown_time(run->start_time),
        .close_time = shown_time(run->close_time),
        .total_operation_count = progress.total,
        .complete_operation_count = progress.complete,
        .failure_operation_count = progress.failed,
        .identity = start.identity,
        .reason = request.reason,
        .query = request.visibility_query,
        .holdfast_end_reason = progress.why,
    };
    show_failures(&progress, arena, response);
    show_targets(&request, arena, response);
    hf_call_reply(core, call);
}

void hf_batch_run_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_assert(run->kind == HF_KIND_OPERATION); /* hf_input_run */
    if (call->method == HF_METHOD_DESCRIBE_BATCH_OPERATION) {
        describe(core, call, run);
        return;
    }
    REQUEST(stop_batch_operation);
    if (!hf_run_is_open(run)) {
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the batch operation has ended already");
        return;
    }
    HF_PROBE(core, HF_PROBE_BATCH_STOPPED);
    hf_operation_stop(core, run, request->reason);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

/* Newest first. A page token is the number of the last run on the page before; what a caller makes of it shows nothing but its own
 * namespace. */
void hf_list_batches_call(hf_core *core, hf_call *call)
{
    REQUEST(list_batch_operations);
    size_t max = request->page_size > 0 && request->page_size < 1000 ? (size_t)request->page_size : 1000;
    int64_t below = INT64_MAX;
    if (request->next_page_token.len == sizeof below) {
        memcpy(&below, request->next_page_token.data, sizeof below);
    } else if (request->next_page_token.len > 0) {
        (void)hf_call_refuse(core, call, "NextPageToken was not issued by this store");
        return;
    }
    hf_arena *arena = call->arena;
    hf_pb_list_batch_operations_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->operation_info.items = HF_ARENA_ARRAY(arena, hf_pb_batch_operation_info, max);
    for (size_t i = index_of(core, below); arena->status == HF_OK && i > 0; i--) {
        const hf_operation_entry *entry = &core->operations.all.items[i - 1];
        if (entry->purges || !hf_str_equal(hf_owned_str(&entry->namespace_), request->namespace)) {
            continue;
        }
        if (response->operation_info.count == max) {
            response->next_page_token = hf_arena_copy(arena, hf_str_of_len(&below, sizeof below));
            break;
        }
        below = entry->run;
        response->operation_info.items[response->operation_info.count++] = (hf_pb_batch_operation_info){
            .job_id = hf_arena_copy(arena, hf_owned_str(&entry->job_id)),
            .state = shown_state(entry->state),
            .start_time = shown_time(entry->start_time),
            .close_time = shown_time(entry->close_time),
            .operation_type = shown_type(entry->type),
        };
    }
    hf_call_reply(core, call);
}

void hf_delete_namespace_call(hf_core *core, hf_call *call)
{
    REQUEST(delete_namespace);
    if (hf_str_equal(request->namespace, HF_STR("default"))) { /* engine-B1 */
        hf_call_fail(core, call, HF_ERR_NOT_READY, "the namespace 'default' is in every store and cannot be deleted");
        return;
    }
    hf_pb_batch_operation_deletion deletion = {0};
    hf_pb_start_batch_operation_request purge = {
        .namespace = request->namespace,
        .job_id = PURGE_ID,
        .reason = HF_STR("the namespace was deleted"),
        .operation_case = CASE(DELETION),
        .deletion_operation = &deletion,
    };
    HF_PROBE(core, HF_PROBE_NAMESPACE_DELETING);
    hf_namespace_mark_deleted(core, request->namespace);
    hf_run *run = hf_operation_create(core, &purge, HF_BATCH_OPERATION_TYPE_DELETE, HF_STR(""), true);
    hf_pb_delete_namespace_response *response = run != NULL ? hf_call_response(core, call) : NULL;
    if (response != NULL) {
        response->deleted_namespace = hf_arena_copy(call->arena, request->namespace);
        hf_call_reply(core, call);
    }
}
