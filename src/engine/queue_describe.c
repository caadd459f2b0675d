/* DescribeTaskQueue: how many tasks wait in a queue, in memory and on disk, by priority, and who polls it (queue_pollers.c). In the enhanced mode,
 * which Temporal has deprecated, it tells the same of the workflow and the activity queue of a name at once, for the build ids that the caller
 * names: all tasks and pollers are those of the empty one.
 *
 * A run on disk has one row for each queue that its tasks wait in. No more than BACKLOG_READ_MAX rows are read for one answer. */
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "history/limits.h"
#include "ledger/rows.h"

#define BACKLOG_READ_MAX \
    4096              /* rows that are counted for one answer, and tasks in memory that are looked at for their age */
#define REACHED_MAX 5 /* build ids of one question about reachability, as on Temporal's server */
#define BUILD_IDS_MAX 100 /* of one question; each makes an answer longer */

typedef hf_pb_describe_task_queue_request describe_request;
typedef hf_pb_describe_task_queue_response describe_response;

static char kind_of(const describe_request *request)
{
    return request->task_queue_type == HF_TASK_QUEUE_TYPE_ACTIVITY ? 'a' : 'w';
}

static hf_queue *queue_of(hf_core *core, const describe_request *request, char kind)
{
    return hf_queue_find(core, kind, request->namespace, request->task_queue->name);
}

/* ---- Statistics ------------------------------------------------------------------------------------------------------------- */

/* When the task began to wait; 0 = it is never written. */
static int64_t waits_since(const hf_task *task)
{
    if (task->is_query || task->is_speculative) {
        return 0;
    }
    return task->scheduled_id != 0 ? HF_CONTAINER_CONST(task, hf_activity, task)->scheduled_time
                                   : task->run->wft.scheduled_time;
}

/* The time since which the oldest task of each priority waits in memory; 0 = none does. */
static void find_oldest(const hf_queue *queue, int64_t ret_since[HF_PRIORITY_LEVELS])
{
    memset(ret_since, 0, HF_PRIORITY_LEVELS * sizeof *ret_since);
    int left = BACKLOG_READ_MAX;
    HF_LIST_EACH(node, &queue->tasks)
    {
        const hf_task *task = HF_CONTAINER(node, hf_task, link);
        int64_t *since = &ret_since[task->priority - 1];
        *since = *since == 0 ? waits_since(task) : *since;
        if (--left == 0) {
            return;
        }
    }
}

static bool is_rate_limited(const hf_queue *queue)
{
    return queue != NULL && queue->rate_wait.place != 0;
}

/* Statistics of one priority, without the tasks on disk. */
static hf_pb_task_queue_stats *stats_of(hf_core *core, hf_queue *queue, int priority, int64_t since, hf_arena *arena)
{
    hf_pb_task_queue_stats *stats = HF_ARENA_NEW(arena, hf_pb_task_queue_stats);
    if (stats == NULL) {
        return NULL;
    }
    int64_t age = since > 0 && since < core->now.wall ? core->now.wall - since : 0;
    stats->approximate_backlog_age = hf_pb_duration_of(hf_nanoseconds(age));
    if (queue != NULL) {
        stats->approximate_backlog_count = (int64_t)queue->waiting[priority - 1];
        stats->tasks_add_rate = hf_queue_tally_rate(core, &queue->added, priority);
        stats->tasks_dispatch_rate = hf_queue_tally_rate(core, &queue->given, priority);
        stats->rate_limiting_active = is_rate_limited(queue);
    }
    return stats;
}

/* Adds the statistics of one priority to those of all. */
static void merge(hf_pb_task_queue_stats *all, const hf_pb_task_queue_stats *one)
{
    hf_span age = hf_pb_duration_span(one->approximate_backlog_age);
    all->approximate_backlog_count += one->approximate_backlog_count;
    if (age.ns > hf_pb_duration_span(all->approximate_backlog_age).ns) {
        all->approximate_backlog_age = one->approximate_backlog_age;
    }
    all->tasks_add_rate += one->tasks_add_rate;
    all->tasks_dispatch_rate += one->tasks_dispatch_rate;
    all->rate_limiting_active = all->rate_limiting_active || one->rate_limiting_active;
}

typedef hf_pb_describe_task_queue_response_stats_by_priority_key_entry_list priority_list;

/* The total, and in `ret_list`, unless that is NULL, all priorities. `cold`: tasks whose runs are on disk, by priority key - 1. */
static hf_pb_task_queue_stats *all_stats(hf_core *core, hf_queue *queue, const int64_t cold[HF_PRIORITY_LEVELS],
                                         hf_arena *arena, priority_list *ret_list)
{
    hf_pb_task_queue_stats *all = HF_ARENA_NEW(arena, hf_pb_task_queue_stats);
    int64_t since[HF_PRIORITY_LEVELS] = {0};
    if (ret_list != NULL) {
        ret_list->items =
            HF_ARENA_ARRAY(arena, hf_pb_describe_task_queue_response_stats_by_priority_key_entry, HF_PRIORITY_LEVELS);
    }
    if (all != NULL && queue != NULL) {
        find_oldest(queue, since);
    }
    for (int key = 1; key <= HF_PRIORITY_LEVELS && arena->status == HF_OK; key++) {
        hf_pb_task_queue_stats *one = stats_of(core, queue, key, since[key - 1], arena);
        if (one == NULL) {
            break;
        }
        one->approximate_backlog_count += cold[key - 1];
        all->approximate_backlog_age =
            all->approximate_backlog_age.has ? all->approximate_backlog_age : hf_pb_duration_of((hf_span){0});
        merge(all, one);
        bool is_used = one->approximate_backlog_count > 0 || one->tasks_add_rate > 0 || one->tasks_dispatch_rate > 0;
        if (ret_list != NULL && (is_used || key == HF_PRIORITY_DEFAULT)) {
            ret_list->items[ret_list->count++] =
                (hf_pb_describe_task_queue_response_stats_by_priority_key_entry){.key = key, .value = one};
        }
    }
    return all;
}

/* ---- The answer ---------------------------------------------------------------------------------------------------------- */

static void fill(hf_core *core, const hf_call *call, const int64_t cold[HF_PRIORITY_LEVELS])
{
    const describe_request *request = call->request;
    describe_response *response = call->response;
    hf_arena *arena = call->arena;
    hf_queue *queue = queue_of(core, request, kind_of(request));
    hf_pb_describe_task_queue_response_effective_rate_limit *limit =
        HF_ARENA_NEW(arena, hf_pb_describe_task_queue_response_effective_rate_limit);
    hf_pb_task_queue_status *status = HF_ARENA_NEW(arena, hf_pb_task_queue_status);
    priority_list list = {0};
    hf_pb_task_queue_stats *stats = all_stats(core, queue, cold, arena, &list);
    if (arena->status != HF_OK) {
        return;
    }
    bool is_limited = queue != NULL && queue->rate >= 0;
    double rate = is_limited ? queue->rate : HF_QUEUE_RATE_DEFAULT;
    if (queue != NULL) {
        hf_pollers_list(core, queue, arena, &response->pollers);
    }
    limit->requests_per_second = (float)rate;
    limit->rate_limit_source = is_limited ? HF_RATE_LIMIT_SOURCE_WORKER : HF_RATE_LIMIT_SOURCE_SYSTEM;
    response->effective_rate_limit = limit;
    if (request->include_task_queue_status) {
        status->backlog_count_hint = stats->approximate_backlog_count;
        status->rate_per_second = rate;
        response->task_queue_status = status;
    }
    if (request->report_stats) {
        response->stats = stats;
        response->stats_by_priority_key = list;
    }
}

/* ---- The enhanced mode ------------------------------------------------------------------------------------------------------ */

static bool is_enhanced(const describe_request *request)
{
    return request->api_mode == HF_DESCRIBE_TASK_QUEUE_MODE_ENHANCED;
}

/* Whether the answer tells of queues of this type. */
static bool is_wanted(const describe_request *request, int32_t type)
{
    bool is_named = request->task_queue_types.count == 0 && type != HF_TASK_QUEUE_TYPE_NEXUS;
    for (size_t i = 0; i < request->task_queue_types.count; i++) {
        is_named = is_named || request->task_queue_types.items[i] == type;
    }
    return is_named;
}

/* What there is of one build id; all that there is belongs to the empty one. */
static hf_pb_task_queue_version_info *version_info(hf_core *core, const hf_call *call, bool is_ours,
                                                   const int64_t cold[2][HF_PRIORITY_LEVELS])
{
    static const int32_t TYPES[] = {HF_TASK_QUEUE_TYPE_WORKFLOW, HF_TASK_QUEUE_TYPE_ACTIVITY, HF_TASK_QUEUE_TYPE_NEXUS};
    static const int64_t NONE[HF_PRIORITY_LEVELS] = {0};
    const describe_request *request = call->request;
    hf_arena *arena = call->arena;
    hf_pb_task_queue_version_info *info = HF_ARENA_NEW(arena, hf_pb_task_queue_version_info);
    hf_pb_task_queue_version_info_types_info_entry *entries =
        HF_ARENA_ARRAY(arena, hf_pb_task_queue_version_info_types_info_entry, HF_COUNT_OF(TYPES));
    hf_pb_task_queue_type_info *types = HF_ARENA_ARRAY(arena, hf_pb_task_queue_type_info, HF_COUNT_OF(TYPES));
    if (arena->status != HF_OK) {
        return NULL;
    }
    info->types_info.items = entries;
    for (size_t i = 0; i < HF_COUNT_OF(TYPES); i++) {
        if (!is_wanted(request, TYPES[i])) {
            continue;
        }
        bool has_queue = is_ours && TYPES[i] != HF_TASK_QUEUE_TYPE_NEXUS; /* there are no tasks of that type */
        hf_queue *queue = has_queue ? queue_of(core, request, i == 0 ? 'w' : 'a') : NULL;
        if (request->report_pollers && queue != NULL) {
            hf_pollers_list(core, queue, arena, &types[i].pollers);
        }
        if (request->report_stats) {
            types[i].stats = all_stats(core, queue, has_queue ? cold[i] : NONE, arena, NULL);
        }
        entries[info->types_info.count++] =
            (hf_pb_task_queue_version_info_types_info_entry){.key = TYPES[i], .value = &types[i]};
    }
    if (request->report_task_reachability) {
        info->task_reachability =
            is_ours ? HF_BUILD_ID_TASK_REACHABILITY_REACHABLE : HF_BUILD_ID_TASK_REACHABILITY_UNREACHABLE;
    }
    return info;
}

static void fill_version(hf_core *core, const hf_call *call, hf_str build_id, const int64_t cold[2][HF_PRIORITY_LEVELS])
{
    describe_response *response = call->response;
    for (size_t i = 0; i < response->versions_info.count; i++) {
        if (hf_str_equal(response->versions_info.items[i].key, build_id)) {
            return;
        }
    }
    response->versions_info.items[response->versions_info.count++] =
        (hf_pb_describe_task_queue_response_versions_info_entry){
            .key = build_id, .value = version_info(core, call, build_id.len == 0, cold)};
}

static void fill_enhanced(hf_core *core, const hf_call *call, const int64_t cold[2][HF_PRIORITY_LEVELS])
{
    const describe_request *request = call->request;
    describe_response *response = call->response;
    const hf_pb_task_queue_version_selection *versions = request->versions;
    size_t count = versions != NULL ? versions->build_ids.count : 0;
    response->versions_info.items =
        HF_ARENA_ARRAY(call->arena, hf_pb_describe_task_queue_response_versions_info_entry, count + 1);
    if (call->arena->status != HF_OK) {
        return;
    }
    for (size_t i = 0; i < count && call->arena->status == HF_OK; i++) {
        fill_version(core, call, versions->build_ids.items[i], cold);
    }
    if (versions == NULL || versions->unversioned) {
        fill_version(core, call, HF_STR(""), cold);
    }
}

/* ---- The call --------------------------------------------------------------------------------------------------------------- */

/* Tasks on disk of both queues; in the arena of a call that waits for their rows. */
typedef struct hf_describing {
    int64_t cold[2][HF_PRIORITY_LEVELS]; /* of the workflow queue and the activity queue */
    int reads;                           /* that are not done */
} hf_describing;

static void answer(hf_core *core, const hf_call *call, const hf_describing *it)
{
    const describe_request *request = call->request;
    if (is_enhanced(request)) {
        fill_enhanced(core, call, it->cold);
    } else {
        fill(core, call, it->cold[kind_of(request) == 'w' ? 0 : 1]);
    }
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

static void count_row(const hf_pb_task_record *record, int64_t counts[HF_PRIORITY_LEVELS])
{
    for (size_t i = 0; i < record->counts.count && i < HF_PRIORITY_LEVELS; i++) {
        counts[i] += record->counts.items[i] > 0 ? record->counts.items[i] : 0;
    }
    if (record->counts.count == 0) {
        counts[HF_PRIORITY_DEFAULT - 1] += record->count > 0 ? record->count : 1;
    }
}

void hf_backlog_rows_read(hf_core *core, hf_read *read)
{
    hf_describing *it = read->describing;
    hf_assert(it->reads > 0);
    int64_t *counts = it->cold[read->request.key.text.data[0] == 'w' ? 0 : 1];
    for (size_t i = 0; i < read->request.row_count; i++) {
        hf_pb_task_record record;
        if (hf_task_row_open(&core->op, &read->request.rows[i], &core->scratch, &record) != HF_OK) {
            HF_PROBE(core, HF_PROBE_BAD_RECORD);
        } else if (hf_run_find(core, record.run) == NULL) { /* the tasks of runs in memory are in memory */
            count_row(&record, counts);
        }
    }
    if (--it->reads == 0) {
        answer(core, read->call, it);
    }
    if (core->status == HF_OK) {
        hf_call_let_go(read->call);
    }
}

static bool bad(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool check(hf_core *core, hf_call *call)
{
    const describe_request *request = call->request;
    size_t build_ids = request->versions != NULL ? request->versions->build_ids.count : 0;
    if (request->report_task_reachability && build_ids > REACHED_MAX) {
        return bad(core, call, "Too many build ids queried at once with ReportTaskReachability==true, limit: 5");
    }
    if (build_ids > BUILD_IDS_MAX) {
        return bad(core, call, "DescribeTaskQueue was asked for more than 100 build ids.");
    }
    if (is_enhanced(request) && request->task_queue->kind == HF_TASK_QUEUE_KIND_STICKY) {
        return bad(core, call,
                   "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal "
                   "queue.");
    }
    return true;
}

/* Reads the rows of tasks in the queue of this kind. */
static void read_rows(hf_core *core, hf_call *call, hf_describing *it, char kind)
{
    const describe_request *request = call->request;
    hf_str text = hf_queue_text_in(core, call->arena, kind, request->namespace, request->task_queue->name);
    hf_read *read = call->arena->status == HF_OK ? hf_read_new(core, HF_READ_BACKLOG, HF_TABLE_TASK) : NULL;
    if (read == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    read->call = call;
    read->describing = it;
    read->request.key = (hf_key){text, 0, 0};
    read->request.key_end = (hf_key){text, INT64_MAX, 0};
    read->request.row_max = BACKLOG_READ_MAX;
    hf_read_submit(core, read);
}

void hf_describe_task_queue_call(hf_core *core, hf_call *call)
{
    const describe_request *request = call->request;
    if (!check(core, call) || hf_call_response(core, call) == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_QUEUE_DESCRIBED);
    hf_describing *it = HF_ARENA_NEW(call->arena, hf_describing);
    if (it == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (!(request->include_task_queue_status || request->report_stats) || !core->tasks_on_disk) {
        answer(core, call, it);
        hf_call_reply(core, call);
        return;
    }
    bool reads_both = is_enhanced(request);
    call->place = HF_PLACE_ELSEWHERE;
    it->reads = reads_both ? 2 : 1;
    call->holds = 1 + it->reads; /* the rows and the commit */
    hf_call_reply(core, call);
    read_rows(core, call, it, reads_both ? 'w' : kind_of(request));
    if (reads_both && core->status == HF_OK) {
        read_rows(core, call, it, 'a');
    }
}
