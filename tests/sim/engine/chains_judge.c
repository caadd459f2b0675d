/* Chains, as the histories tell them (engine-H1):
 *
 * - A closing event that names a next run is followed by that run, which names the one before; no other run follows. Whether one follows,
 *   and after which pause, is what policy, schedule and failure say. Nothing begins between the two.
 * - Runs of a chain have one first run, one expiration and one bound of the whole; attempts are counted.
 * - I8: the first workflow task comes when its pause is over, not before and not late; so do timeouts of runs.
 * - I1: what was sent to a workflow id went to the run that was current then.
 * - Memo and search attributes that were described are those of the history up to that event. */
#include "sim/engine/children.h"

#include "history/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_MAX_S = 1 };

static int64_t span(hf_pb_duration duration)
{
    return hf_pb_duration_span(duration).ns;
}

static const char *id_of(const sim_world *world, const sim_link *link)
{
    return world->runs.items[link->run].run_id;
}

/* ---- A run -------------------------------------------------------------------------------------------------------------- */

static void set_field(sim_fields *fields, hf_str key, const hf_pb_payload *value, bool is_upsert)
{
    bool is_nothing =
        is_upsert && (value == NULL || value->data.len == 0 || hf_str_equal(value->data, HF_STR("null")) ||
                      hf_str_equal(value->data, HF_STR("[]")));
    for (size_t i = 0; i < fields->count; i++) {
        if (hf_str_equal(fields->items[i].key, key)) {
            if (is_nothing) {
                fields->items[i] = fields->items[--fields->count];
            } else {
                fields->items[i].data = value->data;
            }
            return;
        }
    }
    if (!is_nothing) {
        *SIM_PUSH(fields) = (sim_field){key, value != NULL ? value->data : HF_STR("")};
    }
}

static void set_memo(sim_fields *fields, const hf_pb_memo *memo, bool is_upsert)
{
    for (size_t i = 0; memo != NULL && i < memo->fields.count; i++) {
        set_field(fields, memo->fields.items[i].key, memo->fields.items[i].value, is_upsert);
    }
}

static void set_attributes(sim_fields *fields, const hf_pb_search_attributes *attributes, bool is_upsert)
{
    for (size_t i = 0; attributes != NULL && i < attributes->indexed_fields.count; i++) {
        set_field(fields, attributes->indexed_fields.items[i].key, attributes->indexed_fields.items[i].value,
                  is_upsert);
    }
}

static uint64_t hash_of(const sim_fields *fields)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < fields->count; i++) {
        hf_pb_payload value = {.data = fields->items[i].data};
        sum += sim_field_hash(fields->items[i].key, &value);
    }
    return sum;
}

static void compare_descriptions(sim_world *world, const sim_link *link)
{
    for (size_t i = 0; i < world->descriptions.count; i++) {
        const sim_description *said = &world->descriptions.items[i];
        if (said->run != link->run || said->event_count != link->event_count) {
            continue;
        }
        if (said->memo != hash_of(&link->memo)) {
            sim_fail(world, "run %s was described with another memo than it has after event %lld", id_of(world, link),
                     (long long)link->event_count);
        }
        if (said->attributes != hash_of(&link->attributes)) {
            sim_fail(world, "run %s was described with other search attributes than it has after event %lld",
                     id_of(world, link), (long long)link->event_count);
        }
    }
}

static void close_link(sim_link *link, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        link->next_run_id = event->workflow_execution_completed_event_attributes->new_execution_run_id;
        link->result = event->workflow_execution_completed_event_attributes->result;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        link->next_run_id = event->workflow_execution_failed_event_attributes->new_execution_run_id;
        link->failure = event->workflow_execution_failed_event_attributes->failure;
        link->retry_state = event->workflow_execution_failed_event_attributes->retry_state;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        link->next_run_id = event->workflow_execution_timed_out_event_attributes->new_execution_run_id;
        link->retry_state = event->workflow_execution_timed_out_event_attributes->retry_state;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        link->continued = event->workflow_execution_continued_as_new_event_attributes;
        link->next_run_id = link->continued->new_execution_run_id;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
        link->ended_why = event->workflow_execution_terminated_event_attributes->reason;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
        break;
    default:
        return;
    }
    link->close_type = event->event_type;
    link->close_time = hf_pb_timestamp_time(event->event_time).ns;
}

void sim_link_event(sim_world *world, sim_link *link, const hf_pb_history_event *event)
{
    int64_t time = hf_pb_timestamp_time(event->event_time).ns;
    link->event_count = event->event_id;
    sim_trace(world, "%.8s %s event %lld at %.4f: %s", id_of(world, link), world->runs.items[link->run].workflow_id,
              (long long)event->event_id, (double)(time - world->wall_offset) / 1e9, hf_event_name(event->event_type));
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        link->first = event->workflow_execution_started_event_attributes;
        link->first_time = time;
        set_memo(&link->memo, link->first->memo, false);
        set_attributes(&link->attributes, link->first->search_attributes, false);
        break;
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
        link->task_time = link->task_time != 0 ? link->task_time : time;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        link->cancel_time = time;
        if (event->workflow_execution_cancel_requested_event_attributes->external_initiated_event_id == 0) {
            link->left_by = event->workflow_execution_cancel_requested_event_attributes->external_workflow_execution;
        }
        link->is_woken = link->is_woken || link->task_time == 0;
        break;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        link->is_woken = link->is_woken ||
                         (link->task_time == 0 &&
                          sim_is_signal_start(world, event->workflow_execution_signaled_event_attributes->request_id));
        break;
    case HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
        set_memo(&link->memo, event->workflow_properties_modified_event_attributes->upserted_memo, true);
        break;
    case HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
        set_attributes(&link->attributes, event->upsert_workflow_search_attributes_event_attributes->search_attributes,
                       true);
        break;
    default:
        close_link(link, event);
        break;
    }
    compare_descriptions(world, link);
}

void sim_link_free(sim_link *link)
{
    free(link->memo.items);
    free(link->attributes.items);
}

/* ---- Times -------------------------------------------------------------------------------------------------------------- */

static int64_t expiration_of(const sim_link *link)
{
    return hf_pb_timestamp_time(link->first->workflow_execution_expiration_time).ns;
}

static bool is_slow(const sim_world *world, const sim_link *link, int64_t from, int64_t to)
{
    return sim_is_unhealthy(world, from, to) || world->runs.items[link->run].was_damaged;
}

/* Whether an update was on its way to the workflow while the run waited: it does not wait for the first task. */
static bool was_asked(const sim_world *world, const sim_link *link)
{
    int workflow = 0;
    int64_t slack = SIM_SECOND + world->wall_offset_max; /* clocks jump */
    if (sscanf(world->runs.items[link->run].workflow_id, "wf-%d", &workflow) != 1) {
        return false;
    }
    for (size_t i = 0; i < world->updates.count; i++) {
        const sim_update *update = &world->updates.items[i];
        if (update->workflow == workflow && update->asked <= link->task_time + slack &&
            update->asked_last >= link->first_time - slack) {
            return true;
        }
    }
    return false;
}

/* I8, of the pause before the first workflow task. */
static void judge_pause(sim_world *world, const sim_link *link)
{
    int64_t due = link->first_time + span(link->first->first_workflow_task_backoff);
    int64_t time = link->task_time != 0 ? link->task_time : link->close_time;
    if (link->task_time != 0 && time < due && !link->is_woken && !was_asked(world, link)) {
        sim_fail(world, "I8: the first workflow task of run %s came %.4f s before its pause was over",
                 id_of(world, link), (double)(due - time) / 1e9);
    }
    if (time > due + LATE_MAX_S * SIM_SECOND && !is_slow(world, link, due, time)) {
        sim_fail(world, "I8: the first workflow task of run %s came %.4f s late", id_of(world, link),
                 (double)(time - due) / 1e9);
    }
}

/* I8, of the bounds of the run and of its chain. */
static void judge_timeout(sim_world *world, const sim_link *link)
{
    int64_t expiration = expiration_of(link);
    int64_t bound = span(link->first->workflow_run_timeout);
    int64_t due = bound > 0 ? link->first_time + span(link->first->first_workflow_task_backoff) + bound : INT64_MAX;
    due = expiration != 0 && expiration < due ? expiration : due;
    if (link->close_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT && link->close_time < due) {
        sim_fail(world, "I8: run %s timed out early", id_of(world, link));
    }
    if (due != INT64_MAX && link->close_time > due + LATE_MAX_S * SIM_SECOND &&
        !is_slow(world, link, due, link->close_time)) {
        sim_fail(world, "I8: run %s ended %.4f s after its time was over", id_of(world, link),
                 (double)(link->close_time - due) / 1e9);
    }
}

/* ---- What follows ------------------------------------------------------------------------------------------------------- */

typedef struct follower {
    int32_t initiator; /* 0 = nothing follows */
    int32_t retry_state;
    int64_t pause;
    bool is_open; /* or nothing: it depends on what was there then */
} follower;

static bool names_type(const hf_pb_retry_policy *policy, hf_str type)
{
    for (size_t i = 0; i < policy->non_retryable_error_types.count; i++) {
        if (hf_str_equal(policy->non_retryable_error_types.items[i], type)) {
            return true;
        }
    }
    return false;
}

static void expect_cron(const sim_world *world, const sim_link *link, follower *it)
{
    hf_arena arena;
    hf_op op;
    hf_cron cron;
    hf_op_init(&op);
    if (link->first->cron_schedule.len == 0 || hf_cron_parse(&op, link->first->cron_schedule, &cron) != HF_OK) {
        return;
    }
    hf_arena_init(&arena, world->memory);
    bool is_there = false;
    const hf_zone *zone = sim_zone_of(cron.zone, &arena, &is_there);
    int64_t due = link->first_time + span(link->first->first_workflow_task_backoff);
    it->pause = is_there ? hf_cron_backoff(&cron, zone, due, link->close_time) : HF_CRON_NEVER;
    it->is_open = world->knobs.zones_go && strcmp(cron.zone, SIM_ZONE_GOES) == 0;
    it->initiator = it->pause != HF_CRON_NEVER ? (int32_t)HF_CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE : 0;
    hf_arena_deinit(&arena);
}

/* Initial interval, times the coefficient for each attempt before, up to the longest. */
static int64_t retry_pause(const hf_pb_retry_policy *policy, int32_t attempt)
{
    double pause = (double)span(policy->initial_interval);
    double longest = (double)span(policy->maximum_interval);
    for (int32_t i = 1; i < attempt && pause < longest; i++) {
        pause *= policy->backoff_coefficient;
    }
    return (int64_t)(pause < longest ? pause : longest);
}

static void expect_after_failure(const sim_world *world, const sim_link *link, follower *it)
{
    const hf_pb_retry_policy *policy = link->first->retry_policy;
    bool timed_out = link->close_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT;
    int64_t expiration = expiration_of(link);
    if (timed_out && expiration != 0 && expiration <= link->close_time) {
        it->retry_state = HF_RETRY_STATE_TIMEOUT;
        return;
    }
    it->retry_state = HF_RETRY_STATE_RETRY_POLICY_NOT_SET;
    if (policy != NULL) {
        int64_t pause = retry_pause(policy, link->first->attempt);
        hf_str type = timed_out ? HF_STR("TemporalTimeout:StartToClose") : HF_STR("Planned");
        if (names_type(policy, type)) {
            it->retry_state = HF_RETRY_STATE_NON_RETRYABLE_FAILURE;
        } else if (policy->maximum_attempts > 0 && link->first->attempt >= policy->maximum_attempts) {
            it->retry_state = HF_RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED;
        } else if (expiration != 0 && link->close_time + pause > expiration) {
            it->retry_state = HF_RETRY_STATE_TIMEOUT;
        } else {
            *it = (follower){HF_CONTINUE_AS_NEW_INITIATOR_RETRY, HF_RETRY_STATE_IN_PROGRESS, pause, false};
            return;
        }
    }
    expect_cron(world, link, it);
}

static follower expect(const sim_world *world, const sim_link *link)
{
    follower it = {0};
    switch (link->close_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        it.initiator = link->continued->initiator != 0 ? link->continued->initiator
                                                       : (int32_t)HF_CONTINUE_AS_NEW_INITIATOR_WORKFLOW;
        it.pause = span(link->continued->backoff_start_interval);
        return it;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        expect_cron(world, link, &it);
        return it;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        expect_after_failure(world, link, &it);
        return it;
    default:
        return it;
    }
}

static bool is_same(const hf_pb_type *type, const void *a, const void *b, hf_allocator memory)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    hf_buf one;
    hf_buf two;
    hf_buf_init(&one, memory, SIZE_MAX / 4);
    hf_buf_init(&two, memory, SIZE_MAX / 4);
    hf_pb_encode(type, a, &one);
    hf_pb_encode(type, b, &two);
    bool same = hf_str_equal(hf_str_of_len(one.data, one.len), hf_str_of_len(two.data, two.len));
    hf_buf_deinit(&one);
    hf_buf_deinit(&two);
    return same;
}

/* What a retry or a schedule repeats, and what a command says. */
static const char *difference(const sim_world *world, const sim_link *link, const sim_link *next)
{
    const hf_pb_workflow_execution_continued_as_new_event_attributes *as = link->continued;
    const hf_pb_payloads *result = link->result != NULL ? link->result : link->first->last_completion_result;
    const struct {
        const hf_pb_type *type;
        const void *before, *after;
        const char *name;
    } PARTS[] = {
        {&hf_pb_payloads_type, as != NULL ? as->input : link->first->input, next->first->input, "input"},
        {&hf_pb_memo_type, as != NULL ? as->memo : link->first->memo, next->first->memo, "memo"},
        {&hf_pb_search_attributes_type, as != NULL ? as->search_attributes : link->first->search_attributes,
         next->first->search_attributes, "search attributes"},
        {&hf_pb_workflow_type_type, as != NULL ? as->workflow_type : link->first->workflow_type,
         next->first->workflow_type, "type"},
        {&hf_pb_retry_policy_type, as != NULL ? next->first->retry_policy : link->first->retry_policy,
         next->first->retry_policy, "retry policy"},
        {&hf_pb_payloads_type, as != NULL ? as->last_completion_result : result, next->first->last_completion_result,
         "last result"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(PARTS); i++) {
        if (!is_same(PARTS[i].type, PARTS[i].before, PARTS[i].after, world->memory)) {
            return PARTS[i].name;
        }
    }
    bool same_cron = as != NULL || hf_str_equal(link->first->cron_schedule, next->first->cron_schedule);
    bool same_queue =
        hf_str_equal(as != NULL ? as->task_queue->name : link->first->task_queue->name, next->first->task_queue->name);
    return !same_cron ? "schedule" : !same_queue ? "task queue" : NULL;
}

/* `next` is the run that `link` names. */
static void judge_pair(sim_world *world, const sim_link *link, const sim_link *next)
{
    const hf_pb_workflow_execution_started_event_attributes *a = link->first;
    const hf_pb_workflow_execution_started_event_attributes *b = next->first;
    const char *id = id_of(world, next);
    follower it = expect(world, link);
    int32_t attempt = b->initiator == HF_CONTINUE_AS_NEW_INITIATOR_RETRY ? a->attempt + 1 : 1;
    const char *other = difference(world, link, next);
    if (!hf_str_equal(b->continued_execution_run_id, hf_str_of(id_of(world, link)))) {
        sim_fail(world, "engine-H1: run %s does not name run %s, which it follows", id, id_of(world, link));
    } else if (!hf_str_equal(b->first_execution_run_id, a->first_execution_run_id)) {
        sim_fail(world, "engine-H1: run %s has another first run than the one before", id);
    } else if (b->attempt != attempt) {
        sim_fail(world, "engine-H1: run %s is attempt %d, after attempt %d", id, (int)b->attempt, (int)a->attempt);
    } else if (expiration_of(next) != expiration_of(link) ||
               span(a->workflow_execution_timeout) != span(b->workflow_execution_timeout)) {
        sim_fail(world, "engine-H1: run %s has another expiration than the run before", id);
    } else if (next->row != link->row + 1 || next->is_by_client) {
        sim_fail(world, "I4: another run began between run %s and the one before", id);
    } else if (next->first_time != link->close_time && !world->knobs.has_clock_steps) {
        sim_fail(world, "engine-H1: run %s did not begin when the one before ended", id);
    } else if (other != NULL) {
        sim_fail(world, "engine-H1: run %s has another %s than it should", id, other);
    } else if (!world->knobs.has_clock_steps && b->initiator != it.initiator) {
        sim_fail(world, "engine-H1: run %s was begun by %d, it should be %d", id, (int)b->initiator, (int)it.initiator);
    } else if (!world->knobs.has_clock_steps && span(b->first_workflow_task_backoff) != it.pause) {
        sim_fail(world, "engine-H1: run %s waits for %.4f s, it should be %.4f", id,
                 (double)span(b->first_workflow_task_backoff) / 1e9, (double)it.pause / 1e9);
    }
}

static const sim_link *find(const sim_world *world, const sim_link *links, size_t count, hf_str run_id)
{
    const sim_link *found = NULL;
    for (size_t i = 0; i < count && found == NULL; i++) {
        found = hf_str_equal(hf_str_of(id_of(world, &links[i])), run_id) ? &links[i] : NULL;
    }
    return found;
}

static bool is_of(const sim_world *world, const sim_link *a, const sim_link *b)
{
    return strcmp(world->runs.items[a->run].workflow_id, world->runs.items[b->run].workflow_id) == 0;
}

/* Backwards: what it says of the run before. */
static void judge_before(sim_world *world, const sim_link *links, size_t count, const sim_link *link)
{
    hf_str mine = hf_str_of(id_of(world, link));
    hf_str before = link->first->continued_execution_run_id;
    if (!hf_str_equal(link->first->original_execution_run_id, mine)) {
        sim_fail(world, "run %s does not name itself as the original", id_of(world, link));
    }
    if (before.len == 0) {
        bool is_first = hf_str_equal(link->first->first_execution_run_id, mine) && link->first->attempt == 1;
        if (!is_first || !link->is_by_client) {
            sim_fail(world, "engine-H1: run %s follows no other and is not the first of its chain", id_of(world, link));
        }
        return;
    }
    const sim_link *named = find(world, links, count, before);
    if (named == NULL && sim_had_deletes(world, world->runs.items[link->run].workflow_id)) {
        return; /* it may have been deleted */
    }
    if (named == NULL || !hf_str_equal(named->next_run_id, mine) || !is_of(world, named, link)) {
        sim_fail(world, "engine-H1: run %s follows run %.*s, which does not name it", id_of(world, link),
                 HF_STR_ARGS(before));
    }
}

static void judge_after(sim_world *world, const sim_link *links, size_t count, const sim_link *link)
{
    const char *id = id_of(world, link);
    if (link->next_run_id.len > 0) {
        const sim_link *next = find(world, links, count, link->next_run_id);
        if (next == NULL && sim_had_deletes(world, world->runs.items[link->run].workflow_id)) {
            return; /* it may have been deleted */
        }
        if (next == NULL || !is_of(world, link, next)) {
            sim_fail(world, "engine-H1: run %s names run %.*s as the next, which is not there", id,
                     HF_STR_ARGS(link->next_run_id));
            return;
        }
        judge_pair(world, link, next);
    }
    if (world->knobs.has_clock_steps) {
        return; /* what follows depends on the time that it was then */
    }
    follower it = expect(world, link);
    bool may_stop = it.is_open || world->knobs.has_damage; /* its first event could not be read */
    if ((it.initiator != 0 && link->next_run_id.len == 0 && !may_stop) ||
        (it.initiator == 0 && link->next_run_id.len > 0)) {
        sim_fail(world, "engine-H1: run %s ended with %s, and %s follows", id, hf_event_name(link->close_type),
                 link->next_run_id.len > 0 ? "a run" : "none");
    }
    if (link->retry_state != it.retry_state && !may_stop) {
        sim_fail(world, "engine-H1: run %s ended with retry state %d, it should be %d", id, (int)link->retry_state,
                 (int)it.retry_state);
    }
}

/* ---- Calls that name no run --------------------------------------------------------------------------------------------- */

void sim_judge_signal(sim_world *world, const sim_op *op, const sim_link *link)
{
    bool was_current = link->first_time <= op->time && link->close_time >= op->asked;
    if (op->outcome == SIM_ACKED && !op->maybe && !was_current && !world->knobs.has_clock_steps) {
        sim_fail(world, "I1: signal %s is in run %s, which was not current when it was sent", op->request_id,
                 id_of(world, link));
    }
}

/* A cancel or terminate that was acknowledged for whatever run was current. */
static void judge_unnamed(sim_world *world, const sim_link *links, size_t count, const sim_op *op)
{
    char name[SIM_NAME_LEN];
    sim_name_of(world, op->workflow, name);
    bool found = op->kind == SIM_OP_CANCEL;
    for (size_t i = 0; i < count; i++) {
        const sim_link *link = &links[i];
        if (strcmp(world->runs.items[link->run].workflow_id, name) != 0) {
            continue;
        }
        bool of_chain = op->first_run_id[0] == '\0' ||
                        hf_str_equal(link->first->first_execution_run_id, hf_str_of(op->first_run_id));
        if (op->kind == SIM_OP_CANCEL) { /* current from before it was sent until after it was answered */
            bool was_current = link->first_time < op->asked && link->close_time > op->time;
            if (was_current && (!of_chain || link->cancel_time == 0)) {
                sim_fail(world, "I1: cancel %s was acknowledged, and is not in run %s", op->request_id,
                         id_of(world, link));
            }
        } else {
            found = found || (of_chain && link->close_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED &&
                              link->close_time >= op->asked && link->close_time <= op->time);
        }
    }
    if (!found && !sim_had_deletes(world, name)) {
        sim_fail(world, "I1: terminate %s was acknowledged, and ended no run of %s", op->request_id, name);
    }
}

void sim_judge_chains(sim_world *world, const sim_link *links, size_t count)
{
    for (size_t i = 0; i < count && !world->failed; i++) {
        judge_pause(world, &links[i]);
        judge_timeout(world, &links[i]);
        judge_before(world, links, count, &links[i]);
        judge_after(world, links, count, &links[i]);
    }
    for (size_t i = 0; i < world->ops.count && !world->failed; i++) {
        const sim_op *op = &world->ops.items[i];
        if ((op->kind == SIM_OP_CANCEL || op->kind == SIM_OP_TERMINATE) && op->run_id[0] == '\0' &&
            op->outcome == SIM_ACKED && !world->knobs.has_clock_steps) {
            judge_unnamed(world, links, count, op);
        }
    }
}
