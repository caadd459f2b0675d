/* Lists and counts, and the registry of namespaces. I15: a list has every run that somebody knew when it was asked for, with its end if
 * somebody knew that, and no run that was deleted by then; a page goes on where the one before it ended, and is nobody else's. What was
 * registered stays registered. */
#include "sim/engine/sim.h"

#include "where/where.h"

/* What was known of a run when a list was asked for. */
typedef enum known { UNKNOWN, THERE, CLOSED, GONE } known;

/* A list that is being made; its request is what the call has. */
typedef struct list_ask {
    hf_pb_list_workflow_executions_request request; /* first; a scan has the same fields */
    unsigned char *known;                           /* by run of the world */
    size_t count;
    hf_str last;      /* run id at the end of the page before; empty = this is the first */
    bool is_of_other; /* the token is of another namespace: it must be refused */
} list_ask;

static void ask_list(sim_world *world, const list_ask *before, hf_str token, hf_str last, bool is_of_other);

static void note_known(sim_world *world, sim_call *call, list_ask *ask)
{
    ask->count = world->runs.count;
    ask->known = HF_ARENA_ARRAY(&call->arena, unsigned char, ask->count + 1);
    for (size_t i = 0; ask->known != NULL && i < ask->count; i++) {
        const sim_run_log *log = &world->runs.items[i];
        ask->known[i] = log->is_deleted ? GONE : log->count == 0 ? UNKNOWN : log->is_final ? CLOSED : THERE;
    }
}

static const hf_pb_workflow_execution_info *find(const hf_pb_list_workflow_executions_response *page,
                                                 const char *run_id)
{
    for (size_t i = 0; i < page->executions.count; i++) {
        if (hf_str_equal(page->executions.items[i].execution->run_id, hf_str_of(run_id))) {
            return &page->executions.items[i];
        }
    }
    return NULL;
}

/* A page that has all runs. */
static void judge_whole(sim_world *world, const list_ask *ask, const hf_pb_list_workflow_executions_response *page)
{
    for (size_t i = 0; i < ask->count; i++) {
        const sim_run_log *log = &world->runs.items[i];
        const hf_pb_workflow_execution_info *info = find(page, log->run_id);
        bool may_miss = log->may_be_gone || log->was_damaged || sim_is_damaged(world, hf_str_of(log->workflow_id)) ||
                        sim_is_retired(world, log->run_id);
        if (ask->known[i] == GONE && info != NULL) {
            sim_fail(world, "I15: run %s was deleted, and is listed", log->run_id);
        } else if (info == NULL && ask->known[i] != UNKNOWN && ask->known[i] != GONE && !may_miss) {
            sim_fail(world, "I15: run %s of %s is not listed", log->run_id, log->workflow_id);
        } else if (info != NULL && ask->known[i] == CLOSED && info->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
            sim_fail(world, "I15: run %s has ended, and is listed as running", log->run_id);
        }
    }
}

/* Of each id one run. */
static void judge_current(sim_world *world, const hf_pb_list_workflow_executions_response *page)
{
    for (size_t i = 0; i < page->executions.count; i++) {
        const hf_pb_workflow_execution_info *info = &page->executions.items[i];
        for (size_t j = 0; j < i; j++) {
            const hf_pb_workflow_execution_info *other = &page->executions.items[j];
            if (hf_str_equal(info->execution->workflow_id, other->execution->workflow_id)) {
                sim_fail(world, "engine-S4: two runs of %.*s are listed as current",
                         HF_STR_ARGS(info->execution->workflow_id));
            }
        }
    }
}

/* Whether its failure is somebody else's fault. */
static bool may_fail(const sim_call *call)
{
    return sim_is_lost(call) || call->call.status == HF_ERR_STORE || call->call.status == HF_ERR_LIMIT;
}

static void on_listed(sim_world *world, sim_call *call)
{
    const list_ask *ask = call->call.request;
    const hf_pb_list_workflow_executions_response *page = call->call.response;
    if (call->call.status != HF_OK) {
        if (!may_fail(call) && !(ask->is_of_other && call->call.status == HF_ERR_INVALID)) {
            sim_fail(world, "a list cannot be made: %s", call->call.message);
        }
        return;
    }
    if (ask->is_of_other) {
        sim_fail(world, "engine-S3: a page token was taken in another namespace");
        return;
    }
    for (size_t i = 0; i < page->executions.count; i++) {
        hf_str id = page->executions.items[i].execution->run_id;
        if (ask->last.len > 0 && hf_str_equal(id, ask->last)) {
            sim_fail(world, "I15: run %.*s is on two pages", HF_STR_ARGS(id));
        }
        for (size_t j = 0; j < i; j++) {
            if (hf_str_equal(id, page->executions.items[j].execution->run_id)) {
                sim_fail(world, "I15: run %.*s is listed twice", HF_STR_ARGS(id));
            }
        }
    }
    if (ask->request.holdfast_current) {
        judge_current(world, page);
    }
    if (page->next_page_token.len == 0 && ask->last.len == 0 && ask->request.query.len == 0 &&
        !ask->request.holdfast_current) {
        judge_whole(world, ask, page);
    } else if (page->next_page_token.len > 0 && page->executions.count > 0) {
        size_t at = ask->request.holdfast_current ? 0 : page->executions.count - 1;
        hf_str last = page->executions.items[at].execution->run_id;
        ask_list(world, ask, page->next_page_token, last, sim_chance(world, 300));
    }
}

static void ask_list(sim_world *world, const list_ask *before, hf_str token, hf_str last, bool is_of_other)
{
    static const char *const QUERIES[] = {"",
                                          "",
                                          "",
                                          "ExecutionStatus = 'Running'",
                                          "ExecutionStatus != 'Running' ORDER BY CloseTime",
                                          "ORDER BY WorkflowId DESC, StartTime",
                                          "WorkflowId STARTS_WITH 'w' AND CloseTime IS NULL"};
    sim_call *call = sim_call_new(world, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, NULL, on_listed);
    list_ask *ask = HF_ARENA_NEW(&call->arena, list_ask);
    ask->request.namespace = is_of_other ? HF_STR("other") : HF_STR(SIM_NAMESPACE);
    if (before != NULL) {
        ask->request.query = hf_arena_copy(&call->arena, before->request.query);
        ask->request.holdfast_current = before->request.holdfast_current;
        ask->request.page_size = before->request.page_size;
    } else {
        ask->request.query = hf_str_of(QUERIES[hf_rng_below(&world->rng, HF_COUNT_OF(QUERIES))]);
        ask->request.page_size = sim_chance(world, 400) ? 1 + (int32_t)sim_upto(world, 20) : 0;
        ask->request.holdfast_current = ask->request.query.len == 0 && sim_chance(world, 200);
    }
    ask->request.next_page_token = hf_arena_copy(&call->arena, token);
    ask->last = hf_arena_copy(&call->arena, last);
    ask->is_of_other = is_of_other;
    note_known(world, call, ask);
    call->call.request = ask;
    sim_call_submit(world, call);
}

/* ---- Counts -------------------------------------------------------------------------------------------------------------- */

static void on_counted(sim_world *world, sim_call *call)
{
    const hf_pb_count_workflow_executions_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        if (!may_fail(call)) {
            sim_fail(world, "runs cannot be counted: %s", call->call.message);
        }
        return;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < response->groups.count; i++) {
        sum += response->groups.items[i].count;
    }
    if (response->groups.count > 0 && sum != response->count) {
        sim_fail(world, "I15: %lld runs are counted, and %lld by status", (long long)response->count, (long long)sum);
    }
    int64_t least = 0; /* runs that were known when it was asked, and cannot have gone since */
    for (size_t i = 0; i < call->log && i < world->runs.count; i++) {
        const sim_run_log *log = &world->runs.items[i];
        least += !log->may_be_gone && !log->was_damaged && !sim_is_damaged(world, hf_str_of(log->workflow_id));
    }
    least -= (int64_t)call->epoch;
    if (response->count < least) {
        sim_fail(world, "I15: %lld runs are counted, %lld were known", (long long)response->count, (long long)least);
    }
}

static void ask_count(sim_world *world, void (*then)(sim_world *world, sim_call *call))
{
    sim_call *call = sim_call_new(world, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, NULL, then);
    hf_pb_count_workflow_executions_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_count_workflow_executions_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->query = sim_chance(world, 500) ? HF_STR("GROUP BY ExecutionStatus") : HF_STR("StartTime > 0");
    call->call.request = request;
    call->log = world->runs.count;
    call->epoch = 0; /* of those, runs that may not exist */
    for (size_t i = 0; i < world->runs.count; i++) {
        call->epoch += world->runs.items[i].count == 0;
    }
    sim_call_submit(world, call);
}

/* ---- The end --------------------------------------------------------------------------------------------------------------- */

static void on_last_listed(sim_world *world, sim_call *call)
{
    const hf_pb_list_workflow_executions_response *page = call->call.response;
    on_listed(world, call);
    world->lists_left--;
    world->listed = call->call.status == HF_OK && page->next_page_token.len == 0 ? (int64_t)page->executions.count : -1;
}

static void on_last_counted(sim_world *world, sim_call *call)
{
    const hf_pb_count_workflow_executions_response *response = call->call.response;
    on_counted(world, call);
    world->lists_left--;
    if (call->call.status == HF_OK && world->listed >= 0 && response->count != world->listed) {
        sim_fail(world, "I15: %lld runs are counted, %lld are listed", (long long)response->count,
                 (long long)world->listed);
    }
}

void sim_judge_lists(sim_world *world)
{
    if (world->core == NULL || hf_core_status(world->core) != HF_OK || world->is_told_wrong || world->is_store_gone) {
        return;
    }
    size_t retired = world->retired.count;
    world->lists_left = 1;
    sim_call *call = sim_call_new(world, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, NULL, on_last_listed);
    list_ask *ask = HF_ARENA_NEW(&call->arena, list_ask);
    ask->request.namespace = HF_STR(SIM_NAMESPACE);
    ask->request.page_size = 1000;
    note_known(world, call, ask);
    call->call.request = ask;
    sim_call_submit(world, call);
    while (world->lists_left > 0 && sim_world_step(world)) {
    }
    if (world->failed || world->lists_left > 0 || world->retired.count != retired) {
        return; /* a run with a span of its own went meanwhile */
    }
    world->lists_left = 1;
    ask_count(world, on_last_counted);
    while (world->lists_left > 0 && sim_world_step(world)) {
    }
}

/* ---- The older lists, and the registry ------------------------------------------------------------------------------------ */

static void on_told(sim_world *world, sim_call *call)
{
    hf_status status = call->call.status;
    bool is_expected = status == HF_OK || status == HF_ERR_EXISTS || status == HF_ERR_NOT_FOUND;
    if (!is_expected && !may_fail(call)) {
        sim_fail(world, "%s: %s", hf_method_info_of(call->call.method)->name, call->call.message);
    }
    if (status == HF_OK && call->call.method == HF_METHOD_REGISTER_NAMESPACE) {
        world->namespaces_known |= 1u << call->log;
    }
}

/* Everything that was registered when the list was asked for is there. */
static void on_namespaces(sim_world *world, sim_call *call)
{
    const hf_pb_list_namespaces_response *response = call->call.response;
    if (call->call.status != HF_OK) {
        on_told(world, call);
        return;
    }
    for (unsigned n = 0; n < 8; n++) {
        char name[SIM_NAME_LEN];
        bool is_there = false;
        (void)snprintf(name, sizeof name, "space%u", n);
        for (size_t i = 0; i < response->namespaces.count; i++) {
            is_there = is_there || hf_str_equal(response->namespaces.items[i].namespace_info->name, hf_str_of(name));
        }
        if (!is_there && (call->log >> n & 1) != 0) {
            sim_fail(world, "engine-B1: the namespace %s was registered, and is not there", name);
        }
    }
}

static void ask_removal(sim_call *call)
{
    hf_pb_remove_search_attributes_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_remove_search_attributes_request);
    call->call.method = HF_METHOD_REMOVE_SEARCH_ATTRIBUTES;
    call->call.request = request;
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->search_attributes.items = HF_ARENA_NEW(&call->arena, hf_str);
    request->search_attributes.items[0] = HF_STR("Some");
    request->search_attributes.count = 1;
}

static void ask_registry(sim_world *world)
{
    uint64_t n = hf_rng_below(&world->rng, 8);
    char name[SIM_NAME_LEN];
    (void)snprintf(name, sizeof name, "space%llu", (unsigned long long)n);
    sim_call *call = sim_call_new(world, HF_METHOD_REGISTER_NAMESPACE, NULL, on_told);
    hf_str copy = sim_copy(call, name);
    call->log = n;
#define ASK(which, stem)                                                                  \
    hf_pb_##stem##_request *request = HF_ARENA_NEW(&call->arena, hf_pb_##stem##_request); \
    call->call.method = which;                                                            \
    call->call.request = request
    switch (hf_rng_below(&world->rng, 12)) {
    case 0:
    case 1: {
        ASK(HF_METHOD_REGISTER_NAMESPACE, register_namespace);
        request->namespace = copy;
        break;
    }
    case 2: {
        ASK(HF_METHOD_UPDATE_NAMESPACE, update_namespace);
        request->namespace = copy;
        request->update_info = HF_ARENA_NEW(&call->arena, hf_pb_update_namespace_info);
        request->update_info->description = copy;
        break;
    }
    case 3: {
        ASK(HF_METHOD_DEPRECATE_NAMESPACE, deprecate_namespace);
        request->namespace = copy;
        break;
    }
    case 4: {
        ASK(HF_METHOD_LIST_NAMESPACES, list_namespaces);
        request->page_size = 0;
        call->then = on_namespaces;
        call->log = world->namespaces_known;
        break;
    }
    case 5: {
        ASK(HF_METHOD_ADD_SEARCH_ATTRIBUTES, add_search_attributes);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->search_attributes.items =
            HF_ARENA_NEW(&call->arena, hf_pb_add_search_attributes_request_search_attributes_entry);
        request->search_attributes.items[0].key = HF_STR("Some");
        request->search_attributes.items[0].value = HF_INDEXED_VALUE_TYPE_INT;
        request->search_attributes.count = 1;
        break;
    }
    case 6: {
        ask_removal(call);
        break;
    }
    case 7: {
        ASK(HF_METHOD_LIST_SEARCH_ATTRIBUTES, list_search_attributes);
        request->namespace = copy;
        break;
    }
    case 8: {
        ASK(HF_METHOD_GET_SEARCH_ATTRIBUTES, get_search_attributes);
        (void)request;
        break;
    }
    case 9: {
        ASK(HF_METHOD_SCAN_WORKFLOW_EXECUTIONS, scan_workflow_executions);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->page_size = 1 + (int32_t)n;
        break;
    }
    case 10: {
        ASK(HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS, list_open_workflow_executions);
        request->namespace = HF_STR(SIM_NAMESPACE);
        break;
    }
    default: {
        ASK(HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS, list_closed_workflow_executions);
        request->namespace = HF_STR(SIM_NAMESPACE);
        break;
    }
    }
#undef ASK
    bool is_added = call->call.method == HF_METHOD_ADD_SEARCH_ATTRIBUTES;
    sim_call_submit(world, call);
    if (is_added && sim_chance(world, 700)) {
        sim_call *after = sim_call_new(world, HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, NULL, on_told);
        ask_removal(after);
        sim_call_submit(world, after);
    }
}

void sim_list(sim_world *world)
{
    uint64_t chance = hf_rng_below(&world->rng, 10);
    if (sim_retention_tempts(world)) {
        return;
    }
    if (chance < 5) {
        ask_list(world, NULL, HF_STR(""), HF_STR(""), false);
    } else if (chance < 7) {
        ask_count(world, on_counted);
    } else {
        ask_registry(world);
    }
}
