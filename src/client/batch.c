/* hf_delete and hf_batch_*: each is one call of the service; a list is one for each page. */
#include "base/span.h"
#include "client/errand.h"
#include "fiber/verbs.h"
#include "service/batch_kind.h"

#include <holdfast/batch.h>

#include <stdio.h>
#include <string.h>

#define QUERY_LEN_MAX (64 << 10)
#define IDS_MAX 1000

hf_status hf_delete_with(hf_execution *execution, const hf_delete_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_delete));
    HF_OPTIONS(hf_delete_options, options, hf_delete);
    if (execution == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_delete needs an execution");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_delete", execution->id);
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_delete_workflow_execution_request request = {
        .namespace = execution->namespace_,
        .workflow_execution = &which,
        .holdfast_all_runs = options->all_runs,
    };
    (void)hf_errand_ask(&e, execution->service, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &request);
    return hf_errand_end(&e);
}

/* ---- Start --------------------------------------------------------------------------------------------------------------- */

/* The operations that a batch may be; one of them is used. */
typedef struct operations {
    hf_pb_batch_operation_termination terminate;
    hf_pb_batch_operation_cancellation cancel;
    hf_pb_batch_operation_signal signal;
    hf_pb_batch_operation_deletion delete;
    hf_pb_batch_operation_reset reset;
    hf_pb_batch_operation_unpause_activities unpause;
    hf_pb_batch_operation_reset_activities reset_activities;
    hf_pb_batch_operation_update_activity_options activity_options;
    hf_pb_activity_options options; /* of these */
    hf_pb_retry_policy policy;
    hf_pb_field_mask mask;
    hf_str paths[5];
} operations;

static bool changes_activities(const hf_batch_options *o)
{
    return o->start_to_close.ns != 0 || o->schedule_to_close.ns != 0 || o->schedule_to_start.ns != 0 ||
           o->heartbeat.ns != 0 || o->attempts_max != 0;
}

static hf_status check_activity_options(hf_op *op, const hf_batch_options *o)
{
    static const char VERB[] = "hf_batch_start";
    HF_TRY(hf_span_check(op, VERB, ".start_to_close", o->start_to_close, 0));
    HF_TRY(hf_span_check(op, VERB, ".schedule_to_close", o->schedule_to_close, 0));
    HF_TRY(hf_span_check(op, VERB, ".schedule_to_start", o->schedule_to_start, 0));
    HF_TRY(hf_span_check(op, VERB, ".heartbeat", o->heartbeat, 0));
    HF_TRY(hf_number_check(op, VERB, ".attempts_max", o->attempts_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED));
    return changes_activities(o) != o->original
               ? HF_OK
               : hf_fail_at(op, HF_ERR_INVALID, VERB,
                            "hf_batch_start: a batch of activity options needs one, as .start_to_close, or .original, "
                            "and not both");
}

static hf_status check(hf_op *op, hf_batch_kind kind, const hf_batch_options *o)
{
    static const char VERB[] = "hf_batch_start";
    HF_TRY(hf_text_check(op, VERB, ".query", o->query, 1, QUERY_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".namespace_", o->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".reason", o->reason, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".signal", o->signal, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, VERB, ".activity_type", o->activity_type, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_payload_check(op, "the input of the signal", o->input));
    if ((o->query == NULL) == (o->id_count == 0) || (o->id_count > 0 && o->ids == NULL) || o->id_count > IDS_MAX) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_batch_start needs a .query or at most %d .ids, and not both",
                          IDS_MAX);
    }
    if (o->run_ids != NULL && o->ids == NULL) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_batch_start: .run_ids are runs of .ids, and there are none");
    }
    for (size_t i = 0; i < o->id_count; i++) {
        HF_TRY(hf_text_check(op, VERB, "an id of .ids", o->ids[i] != NULL ? o->ids[i] : "", 1, HF_ERRAND_TEXT_LEN_MAX));
        const char *run = o->run_ids != NULL ? o->run_ids[i] : NULL;
        HF_TRY(hf_text_check(op, VERB, "an id of .run_ids", run, 0, HF_ERRAND_TEXT_LEN_MAX));
    }
    if (kind == HF_BATCH_SIGNAL && o->signal == NULL) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_batch_start: a batch of signals needs .signal, its name");
    }
    if (kind == HF_BATCH_ACTIVITY_OPTIONS) {
        HF_TRY(check_activity_options(op, o));
    }
    if ((unsigned)o->point > HF_RESET_LAST) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_batch_start: .point is %d, which is not an hf_reset_point",
                          (int)o->point);
    }
    return o->rate >= 0 && o->rate < 1e9
               ? HF_OK
               : hf_fail_at(op, HF_ERR_INVALID, VERB, "hf_batch_start: .rate is not a number of runs a second");
}

static const hf_str WHO = {"client", 6};

/* All activities, or those of a type. */
#define SET_ACTIVITIES(name, message, prefix)                      \
    static void set_##name(message *to, const hf_batch_options *o) \
    {                                                              \
        *to = (message){.identity = WHO};                          \
        if (o->activity_type != NULL) {                            \
            to->activity_case = prefix##_TYPE;                     \
            to->type = hf_str_of(o->activity_type);                \
        } else {                                                   \
            to->activity_case = prefix##_MATCH_ALL;                \
            to->match_all = true;                                  \
        }                                                          \
    }
SET_ACTIVITIES(unpause, hf_pb_batch_operation_unpause_activities, HF_PB_BATCH_OPERATION_UNPAUSE_ACTIVITIES)
SET_ACTIVITIES(reset, hf_pb_batch_operation_reset_activities, HF_PB_BATCH_OPERATION_RESET_ACTIVITIES)
SET_ACTIVITIES(those, hf_pb_batch_operation_update_activity_options, HF_PB_BATCH_OPERATION_UPDATE_ACTIVITY_OPTIONS)

static void set_limit(operations *all, hf_span span, const char *path, hf_pb_duration *to)
{
    if (span.ns != 0) {
        *to = hf_pb_duration_of(hf_nanoseconds(span.ns != HF_SPAN_UNLIMITED.ns ? span.ns : 0)); /* 0 = none */
        all->mask.paths.items[all->mask.paths.count++] = hf_str_of(path);
    }
}

static void set_activity_options(operations *all, const hf_batch_options *o)
{
    hf_pb_activity_options *options = &all->options;
    set_those(&all->activity_options, o);
    all->activity_options.restore_original = o->original;
    if (o->original) {
        return;
    }
    *options = (hf_pb_activity_options){.retry_policy = NULL};
    all->mask = (hf_pb_field_mask){.paths = {all->paths, 0}};
    set_limit(all, o->start_to_close, "start_to_close_timeout", &options->start_to_close_timeout);
    set_limit(all, o->schedule_to_close, "schedule_to_close_timeout", &options->schedule_to_close_timeout);
    set_limit(all, o->schedule_to_start, "schedule_to_start_timeout", &options->schedule_to_start_timeout);
    set_limit(all, o->heartbeat, "heartbeat_timeout", &options->heartbeat_timeout);
    if (o->attempts_max != 0) {
        all->policy = (hf_pb_retry_policy){.maximum_attempts = o->attempts_max == HF_UNLIMITED ? 0
                                                               : o->attempts_max == HF_OFF     ? 1
                                                                                               : o->attempts_max};
        options->retry_policy = &all->policy;
        all->mask.paths.items[all->mask.paths.count++] = HF_STR("retry_policy.maximum_attempts");
    }
    hf_assert(all->mask.paths.count > 0 && all->mask.paths.count <= HF_COUNT_OF(all->paths));
    all->activity_options.activity_options = options;
    all->activity_options.update_mask = &all->mask;
}

/* Puts the operation into the request. False: there is no such kind. */
static bool set_operation(hf_errand *e, hf_batch_kind kind, const hf_batch_options *o, operations *all,
                          hf_pb_start_batch_operation_request *request)
{
#define USE(name, field, member, ...)                                                 \
    all->member = (__typeof__(all->member)){.identity = WHO, __VA_ARGS__};            \
    request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION; \
    request->field = &all->member;                                                    \
    return true
    switch (kind) {
    case HF_BATCH_TERMINATE:
        USE(TERMINATION, termination_operation, terminate, .details = NULL);
    case HF_BATCH_CANCEL:
        USE(CANCELLATION, cancellation_operation, cancel, );
    case HF_BATCH_SIGNAL:
        USE(SIGNAL, signal_operation, signal, .signal = hf_text_or(o->signal, ""),
            .input = hf_payload_encode(&e->arena, o->input));
    case HF_BATCH_DELETE:
        USE(DELETION, deletion_operation, delete, );
    case HF_BATCH_RESET:
        USE(RESET, reset_operation, reset,
            .reset_type =
                o->point == HF_RESET_FIRST ? HF_RESET_TYPE_FIRST_WORKFLOW_TASK : HF_RESET_TYPE_LAST_WORKFLOW_TASK);
    case HF_BATCH_UNPAUSE_ACTIVITIES:
        set_unpause(&all->unpause, o);
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_UNPAUSE_ACTIVITIES_OPERATION;
        request->unpause_activities_operation = &all->unpause;
        return true;
    case HF_BATCH_ACTIVITY_OPTIONS:
        set_activity_options(all, o);
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_UPDATE_ACTIVITY_OPTIONS_OPERATION;
        request->update_activity_options_operation = &all->activity_options;
        return true;
    case HF_BATCH_RESET_ACTIVITIES:
        set_reset(&all->reset_activities, o);
        request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_RESET_ACTIVITIES_OPERATION;
        request->reset_activities_operation = &all->reset_activities;
        return true;
    }
#undef USE
    return false;
}

static hf_status start(hf_errand *e, hf_service *service, const char *id, hf_batch_kind kind, const hf_batch_options *o)
{
    HF_TRY(check(&e->op, kind, o));
    operations all;
    hf_pb_workflow_execution *executions = HF_ARENA_ARRAY(&e->arena, hf_pb_workflow_execution, o->id_count);
    if (e->arena.status != HF_OK) {
        return hf_fail(&e->op, HF_ERR_NOMEM, "hf_batch_start: no memory for the ids");
    }
    for (size_t i = 0; i < o->id_count; i++) {
        executions[i].workflow_id = hf_str_of(o->ids[i]);
        executions[i].run_id = hf_text_or(o->run_ids != NULL ? o->run_ids[i] : NULL, "");
    }
    hf_pb_start_batch_operation_request request = {
        .namespace = hf_namespace_or(o->namespace_, service),
        .visibility_query = hf_text_or(o->query, ""),
        .job_id = hf_str_of(id),
        .reason = hf_text_or(o->reason, "a batch operation"),
        .executions = {executions, o->id_count},
        .max_operations_per_second = (float)o->rate,
    };
    if (!set_operation(e, kind, o, &all, &request)) {
        return hf_fail_at(&e->op, HF_ERR_INVALID, "hf_batch_start", "hf_batch_start: %d is not an hf_batch_kind",
                          (int)kind);
    }
    hf_assert(request.operation_case != 0 && (request.visibility_query.len > 0) != (request.executions.count > 0));
    return hf_errand_ask(e, service, HF_METHOD_START_BATCH_OPERATION, &request);
}

hf_status hf_batch_start_with(hf_service *service, const char *id, hf_batch_kind kind, const hf_batch_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_batch_start));
    HF_OPTIONS(hf_batch_options, options, hf_batch_start);
    if (service == NULL || id == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_batch_start needs a service and an id");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_batch_start", HF_STR(""));
    (void)start(&e, service, id, kind, options);
    return hf_errand_end(&e);
}

/* ---- The rest ------------------------------------------------------------------------------------------------------------ */

hf_status hf_batch_stop_with(hf_service *service, const char *id, const hf_batch_stop_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_batch_stop));
    HF_OPTIONS(hf_batch_stop_options, options, hf_batch_stop);
    if (service == NULL || id == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_batch_stop needs a service and an id");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_batch_stop", HF_STR(""));
    hf_pb_stop_batch_operation_request request = {
        .namespace = hf_namespace_or(options->namespace_, service),
        .job_id = hf_str_of(id),
        .reason = hf_text_or(options->reason, "stopped"),
        .identity = HF_STR("client"),
    };
    (void)hf_errand_ask(&e, service, HF_METHOD_STOP_BATCH_OPERATION, &request);
    return hf_errand_end(&e);
}

static hf_time time_of(hf_pb_timestamp at)
{
    return at.has ? hf_pb_timestamp_time(at) : (hf_time){0};
}

static void show(const hf_pb_describe_batch_operation_response *from, const char *id, hf_batch_info *ret_info)
{
    hf_str why = from->holdfast_end_reason;
    if (why.len == 0 && from->holdfast_failures.count > 0) {
        why = from->holdfast_failures.items[0].message;
    }
    *ret_info = (hf_batch_info){
        .id = id,
        .kind = hf_batch_kind_of(from->operation_type),
        .state = (hf_batch_state)from->state,
        .started = time_of(from->start_time),
        .ended = time_of(from->close_time),
        .total = from->total_operation_count,
        .complete = from->complete_operation_count,
        .failed = from->failure_operation_count,
    };
    (void)snprintf(ret_info->why, sizeof ret_info->why, "%.*s", HF_STR_ARGS(why));
}

hf_status hf_batch_describe_with(hf_service *service, const char *id, hf_batch_info *ret_info,
                                 const hf_batch_find_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_batch_describe));
    HF_OPTIONS(hf_batch_find_options, options, hf_batch_describe);
    if (service == NULL || id == NULL || ret_info == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_batch_describe needs a service, an id and a place for the answer");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_batch_describe", HF_STR(""));
    hf_pb_describe_batch_operation_request request = {.namespace = hf_namespace_or(options->namespace_, service),
                                                      .job_id = hf_str_of(id)};
    if (hf_errand_ask(&e, service, HF_METHOD_DESCRIBE_BATCH_OPERATION, &request) == HF_OK) {
        hf_assert(e.call.response != NULL);
        show(e.call.response, id, ret_info);
    }
    return hf_errand_end(&e);
}

static bool show_page(hf_arena *arena, const hf_pb_list_batch_operations_response *page, hf_batch_list_visit *visit,
                      void *arg)
{
    for (size_t i = 0; i < page->operation_info.count; i++) {
        const hf_pb_batch_operation_info *from = &page->operation_info.items[i];
        hf_str id = hf_arena_copy(arena, from->job_id); /* with a NUL */
        hf_batch_info info = {
            .id = id.data,
            .kind = hf_batch_kind_of(from->operation_type),
            .state = (hf_batch_state)from->state,
            .started = time_of(from->start_time),
            .ended = time_of(from->close_time),
        };
        if (arena->status != HF_OK || !visit(arg, &info)) {
            return false;
        }
    }
    return true;
}

static hf_status list(hf_errand *e, hf_service *service, hf_batch_list_visit *visit, void *arg,
                      const hf_batch_find_options *o)
{
    hf_page_token token;
    hf_page_token_init(&token);
    hf_pb_list_batch_operations_request request = {.namespace = hf_namespace_or(o->namespace_, service),
                                                   .page_size = 100};
    bool goes_on = true;
    while (goes_on && hf_errand_ask(e, service, HF_METHOD_LIST_BATCH_OPERATIONS, &request) == HF_OK) {
        const hf_pb_list_batch_operations_response *page = e->call.response;
        goes_on = show_page(&e->arena, page, visit, arg);
        if (e->arena.status != HF_OK) {
            (void)hf_fail(&e->op, HF_ERR_NOMEM, "hf_batch_list: no memory");
        }
        goes_on = goes_on && hf_page_token_next(e, &token, page->next_page_token, &request.next_page_token);
    }
    hf_page_token_deinit(&token);
    return e->op.status;
}

hf_status hf_batch_list_with(hf_service *service, hf_batch_list_visit *visit, void *arg,
                             const hf_batch_find_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_batch_list));
    HF_OPTIONS(hf_batch_find_options, options, hf_batch_list);
    if (service == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_batch_list needs a service and a function to call for each batch");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_batch_list", HF_STR(""));
    (void)list(&e, service, visit, arg, options);
    return hf_errand_end(&e);
}
