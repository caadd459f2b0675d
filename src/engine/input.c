/* Inputs: a call is checked (input_check.c), finds its run, and is given to the machine it is for (input_dispatch.c). */
#include "engine/input_private.h"

#include "base/uuid.h"
#include "engine/absent.h"
#include "engine/answer.h"
#include "engine/history_page.h"
#include "engine/history_read.h"
#include "engine/lister.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/multi.h"
#include "engine/matching.h"
#include "engine/namespaces.h"
#include "engine/stream.h"
#include "engine/system.h"
#include "engine/token.h"
#include "ledger/run_id.h"

/* ---- Finding the run ------------------------------------------------------------------------------------------------- */

/* Loads the run of a token. If a token was handed out ahead of a commit that failed, its run may not exist, or another
 * run may have got its number since. */
static void load_given_out(hf_core *core, hf_call *call, int64_t number)
{
    hf_assert(call->place == HF_PLACE_NONE);
    if (number >= core->run_next || hf_resets_make(core, number)) {
        HF_PROBE(core, HF_PROBE_LATE_ANSWER);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND,
                     "the run of this token does not exist: its creation was never committed");
        return;
    }
    hf_run *run = hf_run_load(core, number);
    if (run != NULL) {
        hf_input_run(core, call, run);
    }
}

static void by_token(hf_core *core, hf_call *call, hf_str bytes)
{
    core->token_call = NULL;
    if (!hf_token_decode(core, bytes, &core->token)) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        hf_call_fail(core, call, HF_ERR_INVALID, "the task token was not issued by this store");
        return;
    }
    core->token_call = call;
    load_given_out(core, call, core->token.run);
    core->token_call = NULL; /* the call may wait for its run, and be freed meanwhile */
}

static bool is_run_id(hf_str text)
{
    uint64_t halves[2] = {0};
    return hf_uuid_parse(text, &halves[0], &halves[1]);
}

static void by_name(hf_core *core, hf_call *call, const hf_target *target)
{
    hf_name *name = hf_name_get(core, target->namespace_, target->workflow_id);
    if (name != NULL) {
        hf_input_name(core, call, name);
        if (core->status == HF_OK) {
            hf_name_drop(core, name); /* there is no run with this id */
        }
    }
}

/* The page token of a call that reads a history; empty = it asks for the first page, or reads no history. */
static hf_str page_of(const hf_call *call)
{
    if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY) {
        REQUEST(get_workflow_execution_history);
        return request->next_page_token;
    }
    if (call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE) {
        REQUEST(get_workflow_execution_history_reverse);
        return request->next_page_token;
    }
    return HF_STR("");
}

static bool is_paged(const hf_call *call)
{
    return page_of(call).len > 0;
}

/* The next page is of the run that the pages began with, even if its workflow id has another current run by now. */
static void by_page(hf_core *core, hf_call *call)
{
    bool is_reverse = call->method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE;
    hf_page page;
    if (!hf_page_decode(core, page_of(call), &page) || page.is_reverse != is_reverse) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        hf_call_refuse(core, call, "NextPageToken was not issued by this store");
        return;
    }
    load_given_out(core, call, page.run);
}

/* Handles a call that is not about a run. False: the call is about a run. */
static bool is_of_no_run(hf_core *core, hf_call *call)
{
    if (call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        REQUEST(poll_workflow_task_queue);
        if (hf_call_queue_is_good(core, call, request->task_queue) &&
            hf_absent_in_poll(core, call, request->worker_version_capabilities, request->deployment_options)) {
            hf_match_poll(core, call);
        }
    } else if (call->method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        REQUEST(poll_activity_task_queue);
        if (hf_call_queue_is_good(core, call, request->task_queue) &&
            hf_call_rate_is_good(core, call, request->task_queue_metadata) &&
            hf_absent_in_poll(core, call, request->worker_version_capabilities, request->deployment_options)) {
            hf_match_poll(core, call);
        }
    } else if (call->method == HF_METHOD_SHUTDOWN_WORKER) {
        hf_shutdown_worker_call(core, call);
    } else if (call->method == HF_METHOD_DESCRIBE_TASK_QUEUE) {
        REQUEST(describe_task_queue);
        if (hf_call_queue_is_good(core, call, request->task_queue)) {
            hf_describe_task_queue_call(core, call);
        }
    } else {
        return false;
    }
    return true;
}

/* Handles a call about namespaces, their search attributes, or many runs of one. False: it is another one. */
static bool is_of_registry(hf_core *core, hf_call *call)
{
    static const struct {
        hf_method method;
        void (*handle)(hf_core *core, hf_call *call);
    } HANDLERS[] = {
        {HF_METHOD_DESCRIBE_NAMESPACE, hf_describe_namespace_call},
        {HF_METHOD_REGISTER_NAMESPACE, hf_register_namespace_call},
        {HF_METHOD_UPDATE_NAMESPACE, hf_update_namespace_call},
        {HF_METHOD_DEPRECATE_NAMESPACE, hf_deprecate_namespace_call},
        {HF_METHOD_ADD_SEARCH_ATTRIBUTES, hf_add_search_attributes_call},
        {HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, hf_remove_search_attributes_call},
        {HF_METHOD_LIST_SEARCH_ATTRIBUTES, hf_list_search_attributes_call},
        {HF_METHOD_LIST_WORKFLOW_EXECUTIONS, hf_list_call},
        {HF_METHOD_SCAN_WORKFLOW_EXECUTIONS, hf_list_call},
        {HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, hf_list_call},
        {HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS, hf_list_call},
        {HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS, hf_list_call},
        {HF_METHOD_START_BATCH_OPERATION, hf_start_batch_call},
        {HF_METHOD_STOP_BATCH_OPERATION, hf_stop_batch_call},
        {HF_METHOD_DESCRIBE_BATCH_OPERATION, hf_describe_batch_call},
        {HF_METHOD_LIST_BATCH_OPERATIONS, hf_list_batches_call},
        {HF_METHOD_DELETE_NAMESPACE, hf_delete_namespace_call},
        {HF_METHOD_READ_CHANGES, hf_read_changes_call},
        {HF_METHOD_LIST_TASK_QUEUES, hf_list_task_queues_call},
    };
    if (call->method < HF_METHOD_LIST_WORKFLOW_EXECUTIONS && call->method != HF_METHOD_DESCRIBE_NAMESPACE) {
        return false; /* nearly all calls: those about many runs are the last methods */
    }
    for (size_t i = 0; i < HF_COUNT_OF(HANDLERS); i++) {
        if (HANDLERS[i].method == call->method) {
            HANDLERS[i].handle(core, call);
            return true;
        }
    }
    return false;
}

void hf_input(hf_core *core, hf_call *call)
{
    hf_target target = hf_call_target(call);
    if (call->method == HF_METHOD_GET_SYSTEM_INFO) {
        hf_system_info_call(core, call);
        return;
    }
    if (call->method == HF_METHOD_GET_CLUSTER_INFO) {
        hf_cluster_info_call(core, call);
        return;
    }
    if (call->method == HF_METHOD_LIST_NAMESPACES) {
        hf_list_namespaces_call(core, call);
        return;
    }
    if (call->method == HF_METHOD_GET_SEARCH_ATTRIBUTES) {
        hf_get_search_attributes_call(core, call);
        return;
    }
    if (hf_method_is_of_clock(call->method)) {
        hf_call_fail(core, call, HF_ERR_UNSUPPORTED, "the clock of this engine cannot be moved");
        return;
    }
    if (!hf_call_namespace_is_good(core, call, target.namespace_) || !hf_call_words_are_short(core, call)) {
        return;
    }
    if (is_of_registry(core, call) || is_of_no_run(core, call)) {
        return;
    }
    if (!hf_call_is_good(core, call)) {
        return;
    }
    if (target.token.len > 0) {
        by_token(core, call, target.token);
        return;
    }
    if (target.workflow_id.len == 0 || target.workflow_id.len > HF_ID_LEN_MAX) {
        hf_call_refuse(core, call,
                       target.names_workflow ? "WorkflowId is not set on request, or longer than 1000 bytes."
                                             : "the task token or the execution is not set on request");
        return;
    }
    if (target.run_id.len > 0 && !is_run_id(target.run_id)) {
        hf_call_refuse(core, call, "Invalid RunId.");
        return;
    }
    if (is_paged(call)) {
        by_page(core, call);
        return;
    }
    int64_t number = hf_run_id_number(core->mac_key, target.run_id);
    if (number > 0 && number < core->run_next && !hf_resets_make(core, number)) {
        hf_run *run = hf_run_load(core, number);
        if (run != NULL) {
            hf_input_run(core, call, run);
        }
        return;
    }
    by_name(core, call, &target);
}

static void wait_in(hf_core *core, hf_call *call, hf_list *waiting)
{
    hf_assert(call->place != HF_PLACE_QUEUE && call->place != HF_PLACE_WATCH);
    HF_PROBE(core, HF_PROBE_LOAD_WAITED);
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(waiting, &call->link);
}

void hf_call_say_no_run(hf_core *core, hf_call *call)
{
    hf_target target = hf_call_target(call);
    if (target.workflow_id.len > 0 && target.run_id.len > 0) {
        hf_call_say(core, call, "workflow execution not found for workflow ID \"%.*s\" and run ID \"%.*s\"",
                    HF_STR_ARGS(target.workflow_id), HF_STR_ARGS(target.run_id));
    } else {
        hf_call_say(core, call, "workflow execution not found");
    }
}

/* The name's text holds the namespace and the workflow id. */
static void refuse_unknown(hf_core *core, hf_call *call, const hf_name *name)
{
    const char *end = memchr(name->text.data, '\x1f', name->text.len);
    hf_assert(end != NULL); /* hf_name_text */
    hf_str namespace_ = {name->text.data, (size_t)(end - name->text.data)};
    hf_str id = {end + 1, name->text.len - namespace_.len - 1};
    hf_call_say(core, call, "workflow not found for ID: %.*s", HF_STR_ARGS(id));
    hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no workflow '%.*s' in the namespace '%.*s'", HF_STR_ARGS(id),
                 HF_STR_ARGS(namespace_));
}

static void refuse_bad(hf_core *core, hf_call *call, int64_t run)
{
    hf_call_fail(core, call, HF_ERR_STORE, "the records of run %lld are damaged; see holdfast db check",
                 (long long)run);
}

void hf_input_name(hf_core *core, hf_call *call, hf_name *name)
{
    hf_assert(!name->fresh); /* hf_name_get looks for it */
    hf_assert(name->run == NULL || HF_SLOT(name->run)->name == name);
    if (name->loading) {
        wait_in(core, call, &name->waiting);
        return;
    }
    hf_run *run = name->run;
    if (name->bad_run != 0) {
        refuse_bad(core, call, name->bad_run);
        return;
    }
    if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION ||
        call->method == HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION) {
        if (run != NULL) {
            hf_core_use(core, run);
        }
        if (call->method == HF_METHOD_START_WORKFLOW_EXECUTION) {
            hf_execution_start(core, call, name);
        } else {
            hf_signal_start_call(core, call, name);
        }
        if (run != NULL) {
            hf_core_unuse(core, run);
        }
        return;
    }
    if (call->method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        call->place = HF_PLACE_NONE;
        hf_multi_call(core, call, name);
        return;
    }
    hf_str run_id = hf_call_run_id(call);
    if (run != NULL && (run_id.len == 0 || hf_str_equal(hf_owned_str(&run->run_id), run_id))) {
        hf_input_run(core, call, run);
        return;
    }
    if (run == NULL) {
        refuse_unknown(core, call, name);
        return;
    }
    hf_call_say_no_run(core, call);
    hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no run %.*s of this workflow id", HF_STR_ARGS(run_id));
}

/* ---- Passing it to the run -------------------------------------------------------------------------------------------- */

/* Whether the call did not name a run, waited for the current one, and another run has become the current one meanwhile. */
static bool is_overtaken(const hf_call *call, const hf_target *target, const hf_run *run)
{
    return target->names_workflow && target->run_id.len == 0 && !is_paged(call) && !hf_run_is_open(run) &&
           HF_SLOT(run)->name == NULL;
}

/* Whether the call is for runs of this kind. */
static bool is_of_kind(hf_core *core, const hf_call *call, const hf_run *run)
{
    bool is_of_operations =
        call->method == HF_METHOD_DESCRIBE_BATCH_OPERATION || call->method == HF_METHOD_STOP_BATCH_OPERATION;
    return (run->kind == HF_KIND_OPERATION) == is_of_operations || hf_deletion_asks(call) ||
           hf_operation_purges(core, call);
}

void hf_input_run(hf_core *core, hf_call *call, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->fetch_id != 0) {
        wait_in(core, call, &HF_SLOT(run)->waiting);
        return;
    }
    call->place = HF_PLACE_NONE;
    hf_target target = hf_call_target(call);
    if (HF_SLOT(run)->bad) {
        bool is_named = call->method == HF_METHOD_DELETE_WORKFLOW_EXECUTION && target.run_id.len > 0;
        if (!is_named || !hf_delete_bad_call(core, call, run)) {
            refuse_bad(core, call, run->number);
        }
        return;
    }
    if (!hf_str_equal(hf_owned_str(&run->namespace), target.namespace_)) {
        hf_call_say_no_run(core, call);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run in this namespace");
        return;
    }
    if (!is_of_kind(core, call, run)) { /* engine-O3 */
        hf_call_say_no_run(core, call);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run");
        return;
    }
    bool is_led = call->led_to == run->number; /* along its chain, by the run before */
    if (target.names_workflow && !is_led &&
        (!hf_str_equal(hf_owned_str(&run->workflow_id), target.workflow_id) ||
         (target.run_id.len > 0 && !hf_str_equal(hf_owned_str(&run->run_id), target.run_id)))) {
        if (is_paged(call)) {
            hf_call_refuse(core, call, "NextPageToken belongs to another history");
            return;
        }
        hf_call_say_no_run(core, call);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no run %.*s of this workflow id",
                     HF_STR_ARGS(target.run_id));
        return;
    }
    if (!hf_deletion_asks(call) && run->deleting == HF_DELETING_NOT && !is_led && is_overtaken(call, &target, run)) {
        by_name(core, call, &target);
        return;
    }
    if (run->deleting != HF_DELETING_NOT && !hf_deletion_asks(call)) {
        HF_PROBE(core, HF_PROBE_DELETED_ASKED);
        if (is_led) {
            hf_read_stream_end(core, call);
            return;
        }
        hf_call_say_no_run(core, call);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    hf_core_use(core, run);
    if (hf_operation_asks(call)) {
        hf_operation_act(core, call, run);
    } else {
        hf_input_dispatch(core, call, run);
    }
    hf_core_unuse(core, run);
}
