#include "sim/engine/chains.h"

#include "sim/engine/children.h"
#include "sim/engine/operator.h"

#include "history/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTINUES_MAX = 3, ROUND_CANCEL = 4, ROUND_TERMINATE = 6, ROUND_LAST = 60, KEYS = 4, ZONE_LEN_MAX = 8192 };

static int64_t some(hf_rng *rng, int64_t least, int64_t most)
{
    return least + (int64_t)hf_rng_below(rng, (uint64_t)(most - least));
}

static hf_pb_duration span_of(hf_rng *rng, int64_t least, int64_t most)
{
    return hf_pb_duration_of(hf_nanoseconds(some(rng, least, most)));
}

/* ---- Parts of starts and commands --------------------------------------------------------------------------------------- */

static const char *const SCHEDULES[] = {
    "@every 1s",
    "@every 3s",
    "@every 10s",
    "* * * * *",
    "*/2 * * * *",
    "@hourly",
    "CRON_TZ=UTC * * * * *",
    "CRON_TZ=Europe/Berlin * * * * *",
    "CRON_TZ=America/New_York @every 2s",
    "TZ=Australia/Lord_Howe 15 */2 * * *",
    "CRON_TZ=" SIM_ZONE_GOES " * * * * *",
    "CRON_TZ=" SIM_ZONE_GOES " @every 2s",
    /* from here on: bad ones */
    "CRON_TZ=No/Where * * * * *",
    "0 0 31 2 *",
    "nonsense",
};
enum { SCHEDULES_GOOD = 12 };

static hf_pb_retry_policy *some_policy(hf_rng *rng, hf_arena *arena, bool may_be_endless, bool *ret_is_endless)
{
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    policy->initial_interval = span_of(rng, 50 * SIM_MS, 2 * SIM_SECOND);
    policy->backoff_coefficient = hf_rng_permille(rng, 300) ? 1.5 : 0;
    if (hf_rng_permille(rng, 500)) {
        policy->maximum_interval = span_of(rng, 2 * SIM_SECOND, 5 * SIM_SECOND);
    }
    policy->maximum_attempts = 1 + (int32_t)hf_rng_below(rng, 4);
    *ret_is_endless = hf_rng_permille(rng, 100) && may_be_endless;
    if (*ret_is_endless) {
        policy->maximum_attempts = 0;
    }
    if (hf_rng_permille(rng, 200)) {
        hf_str *types = HF_ARENA_ARRAY(arena, hf_str, 1);
        types[0] = hf_rng_permille(rng, 600) ? HF_STR("Planned") : HF_STR("TemporalTimeout:StartToClose");
        policy->non_retryable_error_types.items = types;
        policy->non_retryable_error_types.count = 1;
    }
    return policy;
}

static hf_pb_payload *some_value(hf_rng *rng, hf_arena *arena, bool may_be_nothing)
{
    hf_pb_payload *payload = HF_ARENA_NEW(arena, hf_pb_payload);
    char text[SIM_NAME_LEN];
    (void)snprintf(text, sizeof text, "%d", (int)hf_rng_below(rng, 1000));
    *payload = may_be_nothing && hf_rng_permille(rng, 300)
                   ? hf_payload_null(arena)
                   : hf_payload_json(arena, hf_arena_copy(arena, hf_str_of(text)));
    return payload;
}

static hf_str key_of(hf_arena *arena, char letter, int at)
{
    const char text[] = {letter, (char)('0' + at)};
    return hf_arena_copy(arena, hf_str_of_len(text, sizeof text));
}

/* Some of the keys, each with a value; `mark`: also "s" and this figure, unless it is negative. */
static hf_pb_memo *some_memo(hf_rng *rng, hf_arena *arena, bool is_upsert, int mark)
{
    hf_pb_memo *memo = HF_ARENA_NEW(arena, hf_pb_memo);
    memo->fields.items = HF_ARENA_ARRAY(arena, hf_pb_memo_fields_entry, KEYS + 1);
    for (int i = 0; i < KEYS; i++) {
        if (hf_rng_permille(rng, 500)) {
            memo->fields.items[memo->fields.count++] =
                (hf_pb_memo_fields_entry){.key = key_of(arena, 'k', i), .value = some_value(rng, arena, is_upsert)};
        }
    }
    if (mark >= 0) {
        memo->fields.items[memo->fields.count++] =
            (hf_pb_memo_fields_entry){.key = key_of(arena, 's', mark), .value = some_value(rng, arena, false)};
    }
    return memo;
}

static hf_pb_search_attributes *some_attributes(hf_rng *rng, hf_arena *arena, bool is_upsert, int mark)
{
    const hf_pb_memo *memo = some_memo(rng, arena, is_upsert, mark);
    hf_pb_search_attributes *made = HF_ARENA_NEW(arena, hf_pb_search_attributes);
    made->indexed_fields.items = HF_ARENA_ARRAY(arena, hf_pb_search_attributes_indexed_fields_entry, KEYS + 1);
    for (; made->indexed_fields.count < memo->fields.count; made->indexed_fields.count++) {
        size_t at = made->indexed_fields.count;
        made->indexed_fields.items[at].key = memo->fields.items[at].key;
        made->indexed_fields.items[at].value = memo->fields.items[at].value;
    }
    return made;
}

/* ---- Clients ------------------------------------------------------------------------------------------------------------ */

typedef struct start_plan {
    bool retries, endless_retries, delays;
    const char *cron; /* NULL = none */
    bool is_bad, may_be_bad;
} start_plan;

static hf_rng rng_of(const sim_world *world, const sim_op *op)
{
    return (hf_rng){hf_hash_mix(world->seed, op->number * 64 + (uint64_t)op->client)};
}

/* What the start is about; the rest of the chance is for its figures. */
static start_plan plan_of(const sim_world *world, hf_rng *rng)
{
    uint64_t chance = hf_rng_below(rng, 10);
    start_plan plan = {.retries = chance <= 3 || chance >= 8, .delays = chance >= 6 && chance <= 8};
    if (chance == 4 || chance == 5 || chance == 9) {
        size_t at = hf_rng_below(rng, HF_COUNT_OF(SCHEDULES));
        plan.cron = SCHEDULES[at];
        plan.is_bad = at >= SCHEDULES_GOOD;
        if (hf_rng_permille(rng, 50)) {
            plan.delays = plan.is_bad = true; /* not together */
        }
        bool goes = strstr(plan.cron, SIM_ZONE_GOES) != NULL && world->knobs.zones_go;
        plan.may_be_bad = plan.is_bad || goes;
    }
    return plan;
}

void sim_chain_choose(sim_world *world, sim_op *op)
{
    bool is_child = op->workflow >= world->knobs.workflows; /* the janitor does not end what has no end */
    if (sim_op_starts(op) && !is_child && sim_chance(world, world->knobs.chains)) {
        hf_arena arena;
        hf_pb_start_workflow_execution_request ignored = {0};
        hf_rng rng = rng_of(world, op);
        start_plan plan = plan_of(world, &rng);
        op->is_chain = true;
        op->is_bad = plan.is_bad;
        op->may_be_bad = plan.may_be_bad;
        hf_arena_init(&arena, world->memory);
        sim_chain_fill(world, op, &arena, &ignored);
        bool is_endless = ignored.cron_schedule.len > 0 ||
                          (ignored.retry_policy != NULL && ignored.retry_policy->maximum_attempts == 0);
        world->endless |= is_endless ? 1U << op->workflow : 0;
        hf_arena_deinit(&arena);
    } else if ((op->kind == SIM_OP_CANCEL || op->kind == SIM_OP_TERMINATE) && op->run_id[0] != '\0' &&
               sim_chance(world, world->knobs.chains / 2)) {
        (void)snprintf(op->first_run_id, sizeof op->first_run_id, "%s", op->run_id);
        op->run_id[0] = '\0';
    } else if (!sim_op_starts(op) && op->run_id[0] != '\0' && sim_chance(world, world->knobs.chains / 2)) {
        for (size_t i = world->runs.count; i-- > 0;) { /* a later run of a chain: only workers and readers know it */
            char name[SIM_NAME_LEN];
            sim_name_of(world, op->workflow, name);
            if (strcmp(world->runs.items[i].workflow_id, name) == 0) {
                (void)snprintf(op->run_id, sizeof op->run_id, "%s", world->runs.items[i].run_id);
                return;
            }
        }
    }
}

void sim_chain_fill(const sim_world *world, const sim_op *op, hf_arena *arena,
                    hf_pb_start_workflow_execution_request *request)
{
    hf_rng rng = rng_of(world, op);
    start_plan plan = plan_of(world, &rng);
    bool is_endless = false;
    if (plan.retries) {
        request->retry_policy = some_policy(&rng, arena, true, &is_endless);
    }
    if (plan.cron != NULL) {
        request->cron_schedule = hf_str_of(plan.cron);
    }
    if (plan.delays) {
        request->workflow_start_delay = span_of(&rng, SIM_MS, 10 * SIM_SECOND);
    }
    if (hf_rng_permille(&rng, 400)) {
        request->workflow_run_timeout = span_of(&rng, SIM_SECOND, 15 * SIM_SECOND);
    }
    if (hf_rng_permille(&rng, 300)) {
        request->workflow_execution_timeout = span_of(&rng, 3 * SIM_SECOND, 60 * SIM_SECOND);
    }
    if (hf_rng_permille(&rng, 500)) {
        request->memo = some_memo(&rng, arena, false, -1);
    }
    if (hf_rng_permille(&rng, 500)) {
        request->search_attributes = some_attributes(&rng, arena, false, -1);
    }
}

uint64_t sim_field_hash(hf_str key, const hf_pb_payload *value)
{
    uint64_t name = hf_hash_bytes(1, key.data, key.len);
    return hf_hash_mix(name, value != NULL ? hf_hash_bytes(2, value->data.data, value->data.len) : 0);
}

void sim_chain_described(sim_world *world, const hf_pb_workflow_execution_info *info)
{
    if (info->execution == NULL) {
        sim_fail(world, "a description says nothing of its run");
        return;
    }
    sim_description it = {.event_count = info->history_length};
    it.run = sim_log_run(world, info->execution->run_id, info->execution->workflow_id);
    for (size_t i = 0; info->memo != NULL && i < info->memo->fields.count; i++) {
        it.memo += sim_field_hash(info->memo->fields.items[i].key, info->memo->fields.items[i].value);
    }
    const hf_pb_search_attributes *attributes = info->search_attributes;
    for (size_t i = 0; attributes != NULL && i < attributes->indexed_fields.count; i++) {
        if (!sim_is_of_pauses(attributes->indexed_fields.items[i].key)) { /* those follow from the events */
            it.attributes +=
                sim_field_hash(attributes->indexed_fields.items[i].key, attributes->indexed_fields.items[i].value);
        }
    }
    *SIM_PUSH(&world->descriptions) = it;
}

static void on_described(sim_world *world, sim_call *call)
{
    if (call->call.status != HF_OK) {
        sim_fail(world, "a run cannot be described: %s", call->call.message);
        return;
    }
    const hf_pb_describe_workflow_execution_response *response = call->call.response;
    sim_chain_described(world, response->workflow_execution_info);
}

void sim_chain_describe(sim_world *world, size_t run)
{
    sim_call *call = sim_call_new(world, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, on_described);
    hf_pb_describe_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_describe_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->execution->workflow_id = sim_copy(call, world->runs.items[run].workflow_id);
    request->execution->run_id = sim_copy(call, world->runs.items[run].run_id);
    call->call.request = request;
    size_t before = world->descriptions.count;
    sim_call_submit(world, call);
    while (world->descriptions.count == before && sim_world_step(world)) {
    }
}

sim_op_kind sim_chain_sweep(const sim_world *world, int workflow)
{
    bool is_endless = workflow < world->knobs.workflows && (world->endless & (1U << workflow)) != 0;
    if (world->janitor_round >= ROUND_LAST) {
        return SIM_OP_TERMINATE; /* enough: the judge knows who should have ended by itself */
    }
    if (!is_endless || world->janitor_round < ROUND_CANCEL) {
        return SIM_OP_SIGNAL;
    }
    return world->janitor_round < ROUND_TERMINATE ? SIM_OP_CANCEL : SIM_OP_TERMINATE;
}

/* The run that a closing event names. */
static hf_str named_in(const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        return event->workflow_execution_completed_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
        return event->workflow_execution_failed_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
        return event->workflow_execution_timed_out_event_attributes->new_execution_run_id;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        return event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    default:
        return (hf_str){0};
    }
}

void sim_chain_saw(sim_world *world, size_t run, hf_str bytes)
{
    hf_arena arena;
    hf_op op;
    hf_pb_history_event event;
    hf_op_init(&op);
    hf_arena_init(&arena, world->memory);
    if (hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event) == HF_OK && named_in(&event).len > 0) {
        char workflow_id[SIM_NAME_LEN];
        (void)snprintf(workflow_id, sizeof workflow_id, "%s", world->runs.items[run].workflow_id);
        size_t next = sim_log_run(world, named_in(&event), hf_str_of(workflow_id));
        world->runs.items[next].is_named = true;
    }
    hf_arena_deinit(&arena);
}

/* ---- Programs ----------------------------------------------------------------------------------------------------------- */

sim_chain_plan sim_chain_plan_of(const sim_world *world, hf_rng *rng)
{
    sim_chain_plan plan = {0};
    if (world->knobs.chains > 0) {
        plan.continues = hf_rng_permille(rng, 350) ? 1 + (int)hf_rng_below(rng, CONTINUES_MAX) : 0;
        plan.fails = hf_rng_permille(rng, 300) ? 1 + (int)hf_rng_below(rng, 3) : 0;
        plan.rng.state = hf_rng_next(rng);
    }
    return plan;
}

/* A mark that sim_chain_upsert leaves: "s" and the step. */
static void note_mark(sim_summary *summary, hf_str key)
{
    if (key.len == 2 && key.data[0] == 's') {
        summary->upserted[(key.data[1] - '0') % SIM_STEPS_MAX] = true;
    }
}

void sim_chain_add_event(sim_summary *summary, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: {
        const hf_pb_workflow_execution_started_event_attributes *attrs =
            event->workflow_execution_started_event_attributes;
        const hf_pb_payload *input = hf_payloads_first(attrs->input);
        bool is_continued = input != NULL && input->data.len == 2 && input->data.data[0] == 'c';
        summary->continued = is_continued ? input->data.data[1] - '0' : 0;
        summary->run_attempt = attrs->attempt;
        (void)snprintf(summary->cron, sizeof summary->cron, "%.*s", HF_STR_ARGS(attrs->cron_schedule));
        return;
    }
    case HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED: {
        const hf_pb_memo *memo = event->workflow_properties_modified_event_attributes->upserted_memo;
        for (size_t i = 0; i < memo->fields.count; i++) {
            note_mark(summary, memo->fields.items[i].key);
        }
        return;
    }
    case HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: {
        const hf_pb_search_attributes *attributes =
            event->upsert_workflow_search_attributes_event_attributes->search_attributes;
        for (size_t i = 0; i < attributes->indexed_fields.count; i++) {
            note_mark(summary, attributes->indexed_fields.items[i].key);
        }
        return;
    }
    default:
        return;
    }
}

bool sim_chain_is_later(const sim_summary *known)
{
    return known->continued > 0 || known->run_attempt > 1;
}

bool sim_chain_continues(const sim_chain_plan *plan, const sim_summary *known)
{
    return known->continued < plan->continues;
}

bool sim_chain_fails(const sim_chain_plan *plan, const sim_summary *known)
{
    return known->run_attempt <= plan->fails;
}

void sim_chain_continue(hf_pb_command *command, hf_arena *arena, const sim_chain_plan *plan, const sim_summary *known)
{
    hf_rng rng = {plan->rng.state + (uint64_t)known->continued};
    bool is_endless = false;
    hf_pb_continue_as_new_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_continue_as_new_workflow_execution_command_attributes);
    attrs->input = hf_payloads_of(arena, hf_payload_bytes(arena, key_of(arena, 'c', known->continued + 1)));
    if (hf_rng_permille(&rng, 300)) {
        attrs->backoff_start_interval = span_of(&rng, SIM_MS, 3 * SIM_SECOND);
    }
    if (hf_rng_permille(&rng, 500)) {
        attrs->retry_policy = some_policy(&rng, arena, false, &is_endless);
    }
    if (hf_rng_permille(&rng, 300)) {
        attrs->workflow_run_timeout = span_of(&rng, SIM_SECOND, 15 * SIM_SECOND);
    }
    if (hf_rng_permille(&rng, 500)) {
        attrs->memo = some_memo(&rng, arena, false, -1);
    }
    if (hf_rng_permille(&rng, 500)) {
        attrs->search_attributes = some_attributes(&rng, arena, false, -1);
    }
    if (hf_rng_permille(&rng, 500)) {
        attrs->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
        attrs->workflow_type->name = HF_STR("program");
    }
    if (known->cron[0] != '\0' && hf_rng_permille(&rng, 500)) {
        attrs->cron_schedule = hf_arena_copy(arena, hf_str_of(known->cron));
    }
    command->command_type = HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_CONTINUE_AS_NEW_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->continue_as_new_workflow_execution_command_attributes = attrs;
}

void sim_chain_upsert(hf_pb_command *command, hf_arena *arena, int at, hf_rng rng)
{
    if (hf_rng_permille(&rng, 500)) {
        command->command_type = HF_COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES;
        command->attributes_case = HF_PB_COMMAND_MODIFY_WORKFLOW_PROPERTIES_COMMAND_ATTRIBUTES;
        command->modify_workflow_properties_command_attributes =
            HF_ARENA_NEW(arena, hf_pb_modify_workflow_properties_command_attributes);
        command->modify_workflow_properties_command_attributes->upserted_memo = some_memo(&rng, arena, true, at);
        return;
    }
    command->command_type = HF_COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES;
    command->attributes_case = HF_PB_COMMAND_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES_COMMAND_ATTRIBUTES;
    command->upsert_workflow_search_attributes_command_attributes =
        HF_ARENA_NEW(arena, hf_pb_upsert_workflow_search_attributes_command_attributes);
    command->upsert_workflow_search_attributes_command_attributes->search_attributes =
        some_attributes(&rng, arena, true, at);
}

/* ---- Time zones --------------------------------------------------------------------------------------------------------- */

/* The bytes of a file of tests/fixtures/zoneinfo, in `bytes`; empty: there is none. */
static hf_str read_zone(hf_str name, char bytes[ZONE_LEN_MAX])
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%.*s", HF_ZONES, HF_STR_ARGS(name));
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return (hf_str){0};
    }
    size_t len = fread(bytes, 1, ZONE_LEN_MAX, file);
    (void)fclose(file);
    return hf_str_of_len(bytes, len);
}

void sim_zone_give(sim_world *world)
{
    char bytes[ZONE_LEN_MAX];
    char text[SIM_CRON_LEN];
    hf_str name;
    if (world->core == NULL || !hf_core_zone_wanted(world->core, &name)) {
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(name));
    bool is_gone =
        world->knobs.zones_go && strcmp(text, SIM_ZONE_GOES) == 0 && hf_hash_mix(world->seed, world->opened) % 2 == 0;
    hf_str rules = is_gone ? (hf_str){0} : read_zone(hf_str_of(text), bytes);
    sim_fault(world, rules.len > 0 ? HF_SIM_ZONE_GIVEN : HF_SIM_ZONE_MISSING);
    sim_trace(world, "zone %s: %zu bytes", text, rules.len);
    hf_core_zone(world->core, hf_str_of(text), rules, sim_now(world));
}

const hf_zone *sim_zone_of(const char *name, hf_arena *arena, bool *ret_is_there)
{
    char bytes[ZONE_LEN_MAX];
    const hf_zone *zone = NULL;
    hf_op op;
    hf_op_init(&op);
    *ret_is_there = true;
    if (hf_zone_name_is_utc(hf_str_of(name))) {
        return NULL;
    }
    *ret_is_there = hf_zone_parse(&op, read_zone(hf_str_of(name), bytes), arena, &zone) == HF_OK;
    return zone;
}
