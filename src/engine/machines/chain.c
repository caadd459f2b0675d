#include "engine/machines/chain.h"

#include "base/canary.h"
#include "engine/core_private.h"
#include "engine/emit.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/retry.h"
#include "engine/stream.h"
#include "engine/zone.h"

/* ---- Whether another run follows ------------------------------------------------------------------------------------- */

static hf_start_facts facts_of(hf_core *core, const hf_run *run)
{
    hf_start_facts facts;
    if (!hf_run_start_facts(run, &core->scratch, &facts)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return facts;
}

bool hf_chain_may_go_on(hf_core *core, const hf_run *run)
{
    if (run->start.len == 0) {
        return false;
    }
    hf_start_facts facts = facts_of(core, run);
    return facts.retry_policy != NULL || facts.cron_schedule.len > 0;
}

/* Whether the rules of the schedule's zone are here; else the run waits for them. */
static bool zone_is_here(hf_core *core, hf_run *run)
{
    hf_start_facts facts = facts_of(core, run);
    hf_cron cron;
    const hf_zone *zone = NULL;
    if (facts.cron_schedule.len == 0 || hf_zone_get_cron(core, facts.cron_schedule, &cron, &zone) != HF_FETCH_COMING) {
        return true;
    }
    if (HF_SLOT(run)->fetch_id == 0) { /* else it waits for something already, and this is decided again then */
        hf_zone_wait(core, run, facts.cron_schedule);
    }
    return false;
}

bool hf_chain_ready_for_call(hf_core *core, hf_call *call, hf_run *run, hf_pb_history_event *ret_first)
{
    if (!hf_event_for_call(core, call, run, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, ret_first)) {
        return false;
    }
    if (!zone_is_here(core, run)) {
        call->place = HF_PLACE_ELSEWHERE;
        hf_list_push_front(&HF_SLOT(run)->waiting, &call->link);
        return false;
    }
    return core->status == HF_OK;
}

bool hf_chain_ready_for_due(hf_core *core, hf_run *run, hf_pb_history_event *ret_first)
{
    bool is_lost = false;
    if (!hf_event_for_due(core, run, 1, HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, ret_first, &is_lost)) {
        return false;
    }
    if (!zone_is_here(core, run)) {
        HF_SLOT(run)->fetch_due = true;
        return false;
    }
    return core->status == HF_OK;
}

/* When the run was due: it began with a pause if it follows another one. */
static int64_t due_time(const hf_run *run, const hf_start_facts *facts)
{
    int64_t time = hf_bound_end(run->start_time, hf_pb_duration_span(facts->first_workflow_task_backoff).ns);
    return time == INT64_MAX ? run->start_time : time;
}

static void after_cron(hf_core *core, const hf_run *run, const hf_start_facts *facts, hf_next *ret_next)
{
    int64_t pause = HF_CRON_NEVER;
    if (facts->cron_schedule.len > 0) {
        pause = hf_zone_cron_pause(core, facts->cron_schedule, due_time(run, facts));
    }
    if (pause != HF_CRON_NEVER) {
        HF_PROBE(core, HF_PROBE_CRON);
        *ret_next = (hf_next){.initiator = HF_CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE, .pause = pause};
    }
}

int32_t hf_chain_after_failure(hf_core *core, hf_run *run, const hf_pb_failure *failure, hf_next *ret_next)
{
    hf_assert(hf_run_is_open(run));
    *ret_next = (hf_next){0};
    hf_start_facts facts = facts_of(core, run);
    int32_t retry_state = HF_RETRY_STATE_RETRY_POLICY_NOT_SET;
    if (facts.retry_policy != NULL) {
        int64_t pause = 0;
        int32_t attempt = facts.attempt > 1 ? facts.attempt : 1;
        retry_state = hf_retry_next(&(hf_retry_case){facts.retry_policy, failure, attempt, true}, &pause);
        if (retry_state == HF_RETRY_STATE_IN_PROGRESS && run->expiration != 0 &&
            hf_bound_end(core->now.wall, pause) > run->expiration) {
            retry_state = HF_RETRY_STATE_TIMEOUT;
        }
        if (retry_state == HF_RETRY_STATE_IN_PROGRESS) {
            HF_PROBE(core, HF_PROBE_WORKFLOW_RETRIED);
            *ret_next = (hf_next){.initiator = HF_CONTINUE_AS_NEW_INITIATOR_RETRY, .pause = pause};
            return retry_state;
        }
    }
    after_cron(core, run, &facts, ret_next);
    return retry_state;
}

void hf_chain_after_success(hf_core *core, hf_run *run, hf_next *ret_next)
{
    *ret_next = (hf_next){0};
    hf_start_facts facts = facts_of(core, run);
    after_cron(core, run, &facts, ret_next);
}

/* ---- The next run ---------------------------------------------------------------------------------------------------- */

void hf_chain_reserve(hf_core *core, const hf_run *run, hf_next *next)
{
    if (next->initiator == HF_CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED || core->status != HF_OK) {
        return;
    }
    next->run = hf_execution_create(core, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id), HF_STR(""),
                                    HF_KIND_WORKFLOW);
    hf_assert(next->run == NULL || next->run->number > run->number); /* engine-H1: the newest run of its id */
    if (next->run != NULL) {
        next->run_id = hf_arena_copy(&core->scratch, hf_owned_str(&next->run->run_id));
    }
}

/* The attributes that the runs of a chain share, or that follow from the run before. */
static void follow(hf_core *core, const hf_run *run, const hf_next *next, hf_start_facts *body)
{
    hf_start_facts facts = facts_of(core, run);
    hf_arena *arena = &core->scratch;
    body->parent_workflow_namespace = facts.parent_workflow_namespace;
    body->parent_workflow_namespace_id = facts.parent_workflow_namespace_id;
    body->parent_workflow_execution = facts.parent_workflow_execution;
    body->parent_initiated_event_id = facts.parent_initiated_event_id;
    body->parent_initiated_event_version = facts.parent_initiated_event_version;
    body->root_workflow_execution = facts.root_workflow_execution;
    body->priority = facts.priority;
    bool is_pinned = facts.versioning_override != NULL &&
                     (facts.versioning_override->override_case == HF_PB_VERSIONING_OVERRIDE_PINNED ||
                      facts.versioning_override->pinned_version.len > 0);
    body->versioning_override =
        is_pinned ? facts.versioning_override : NULL; /* any other override is for this run alone */
    body->continued_execution_run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    body->first_execution_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id));
    body->original_execution_run_id = next->run_id;
    body->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    body->initiator = next->initiator;
    body->identity = HF_STR("");
    body->prev_auto_reset_points = NULL;
    body->eager_execution_accepted = false;
    body->workflow_execution_timeout = hf_pb_duration_of(hf_nanoseconds(run->execution_timeout));
    body->workflow_execution_expiration_time = run->expiration != 0 && !HF_CANARY(HF_BUG_EXPIRATION_FORGOTTEN)
                                                   ? hf_pb_timestamp_of((hf_time){run->expiration})
                                                   : (hf_pb_timestamp){0};
    body->first_workflow_task_backoff =
        next->pause > 0 ? hf_pb_duration_of(hf_nanoseconds(next->pause)) : (hf_pb_duration){0};
    int32_t attempt = facts.attempt > 1 ? facts.attempt : 1;
    body->attempt = next->initiator == HF_CONTINUE_AS_NEW_INITIATOR_RETRY ? attempt + 1 : 1;
    if (HF_CANARY(HF_BUG_RUN_ATTEMPT_NOT_COUNTED)) {
        body->attempt = attempt;
    }
}

static void begin(hf_core *core, const hf_run *run, const hf_next *next, hf_start_facts *body,
                  hf_pb_history_event *event)
{
    if (next->run == NULL || core->status != HF_OK) {
        return;
    }
    hf_assert(!hf_run_is_open(run)); /* engine-H1 */
    hf_name_succeed(core, next->run);
    for (size_t i = 0; i < run->resets.count; i++) { /* the next run recognises a repeated reset, too */
        hf_pb_run_reset msg = {
            .request_id = hf_owned_str(&run->resets.items[i].request_id),
            .run_id = hf_owned_str(&run->resets.items[i].run_id),
        };
        hf_record(core, next->run, HF_CHANGE_RUN_RESET, &hf_pb_run_reset_type, &msg);
    }
    hf_records_go_on(core, run, next->run);
    hf_execution_keep(core, next->run, run->keep);
    hf_execution_begin(core, next->run, body, event);
}

static void repeat(hf_core *core, const hf_run *run, const hf_next *next, const hf_pb_history_event *first,
                   hf_start_facts *body)
{
    hf_assert(first->event_id == 1 && first->workflow_execution_started_event_attributes != NULL); /* engine-H1 */
    follow(core, run, next, body);
    body->priority = first->workflow_execution_started_event_attributes->priority; /* it begins as the first one did */
    hf_pb_history_event event = {.user_metadata = first->user_metadata, .links = first->links};
    begin(core, run, next, body, &event);
}

void hf_chain_repeat_success(hf_core *core, const hf_run *run, const hf_next *next, const hf_pb_history_event *first,
                             hf_pb_payloads *result)
{
    if (next->run != NULL && core->status == HF_OK) {
        hf_start_facts body = *first->workflow_execution_started_event_attributes;
        body.continued_failure = NULL;
        body.last_completion_result = result;
        repeat(core, run, next, first, &body);
    }
}

void hf_chain_repeat_failure(hf_core *core, const hf_run *run, const hf_next *next, const hf_pb_history_event *first,
                             hf_pb_failure *failure)
{
    if (next->run != NULL && core->status == HF_OK) {
        hf_start_facts body = *first->workflow_execution_started_event_attributes;
        body.continued_failure = failure;
        repeat(core, run, next, first, &body);
    }
}

void hf_chain_continue(hf_core *core, const hf_run *run, const hf_next *next,
                       const hf_pb_continue_as_new_workflow_execution_command_attributes *attrs)
{
    HF_PROBE(core, HF_PROBE_CONTINUED_AS_NEW);
    hf_start_facts body = {
        .workflow_type = attrs->workflow_type,
        .task_queue = attrs->task_queue,
        .input = attrs->input,
        .workflow_run_timeout = attrs->workflow_run_timeout,
        .workflow_task_timeout = attrs->workflow_task_timeout,
        .continued_failure = attrs->failure,
        .last_completion_result = attrs->last_completion_result,
        .retry_policy = attrs->retry_policy,
        .cron_schedule = attrs->cron_schedule,
        .memo = attrs->memo,
        .search_attributes = attrs->search_attributes,
        .header = attrs->header,
    };
    follow(core, run, next, &body);
    hf_pb_history_event event = {0};
    begin(core, run, next, &body, &event);
}
