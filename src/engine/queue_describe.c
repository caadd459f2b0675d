/* DescribeTaskQueue: who has polled a queue in the last minutes, how many tasks wait in it, in memory and on disk, and how many come and
 * go in a second, over the last half minute.
 *
 * A run on disk has one row for each queue that its tasks wait in, however many there are, so that the count of those is a lower bound;
 * and no more than BACKLOG_READ_MAX rows are read for one answer. */
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "history/limits.h"
#include "ledger/rows.h"

#define POLLER_SPAN (INT64_C(300) * 1000000000) /* how long a poller is remembered */
#define POLLERS_MAX 1000                        /* of one queue; those that polled longest ago are forgotten first */
#define BACKLOG_READ_MAX 4096                   /* rows that are counted for one answer */
#define RATE_DEFAULT 100000.0                   /* tasks a second: shown for a queue without a limit */
#define TALLY_SPAN (INT64_C(5) * 1000000000)    /* ns of one count */

/* A poller of a queue. */
typedef struct hf_poller {
    hf_map_node by_name; /* of core->pollers */
    hf_node link;        /* of queue->pollers */
    hf_queue *queue;
    hf_owned identity;
    int64_t wall, mono; /* ns: its last poll */
    double rate;        /* tasks a second that it wants; negative = it does not say */
} hf_poller;

/* ---- Pollers ----------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const hf_queue *queue, hf_str identity)
{
    return hf_hash_bytes(queue->by_text.hash, identity.data, identity.len);
}

static hf_poller *find(const hf_core *core, const hf_queue *queue, hf_str identity)
{
    hf_map_node *node = hf_map_first(&core->pollers, hash_of(queue, identity));
    for (; node != NULL; node = hf_map_next(node)) {
        hf_poller *poller = HF_CONTAINER(node, hf_poller, by_name);
        if (poller->queue == queue && hf_str_equal(hf_owned_str(&poller->identity), identity)) {
            return poller;
        }
    }
    return NULL;
}

static void drop(hf_core *core, hf_poller *poller)
{
    hf_assert(poller->queue->poller_count > 0);
    poller->queue->poller_count--;
    hf_list_remove(&poller->link);
    hf_map_remove(&core->pollers, &poller->by_name);
    hf_owned_free(&core->runs_memory, &poller->identity);
    hf_core_free_mem(core, poller, sizeof *poller);
}

static hf_poller *add(hf_core *core, hf_queue *queue, hf_str identity)
{
    hf_poller *poller = hf_core_alloc(core, sizeof *poller);
    if (poller == NULL) {
        return NULL;
    }
    hf_owned_set(&core->runs_memory, &poller->identity, identity);
    if (core->status != HF_OK || hf_map_insert(&core->pollers, &poller->by_name, hash_of(queue, identity)) != HF_OK) {
        hf_owned_free(&core->runs_memory, &poller->identity);
        hf_core_free_mem(core, poller, sizeof *poller);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    poller->queue = queue;
    queue->poller_count++;
    hf_list_push_back(&queue->pollers, &poller->link);
    return poller;
}

void hf_poller_note(hf_core *core, hf_queue *queue, hf_str identity, const hf_pb_double_value *rate)
{
    hf_node *last = hf_list_last(&queue->pollers); /* the poller that came last mostly polls again */
    hf_poller *poller = last != NULL ? HF_CONTAINER(last, hf_poller, link) : NULL;
    if (poller == NULL || !hf_str_equal(hf_owned_str(&poller->identity), identity)) {
        poller = find(core, queue, identity);
        if (poller != NULL) {
            hf_list_remove(&poller->link);
            hf_list_push_back(&queue->pollers, &poller->link);
        } else {
            poller = add(core, queue, identity);
        }
    }
    if (poller == NULL) {
        return;
    }
    poller->wall = core->now.wall;
    poller->mono = core->now.mono;
    poller->rate = rate != NULL ? rate->value : -1;
    hf_poller *first = HF_CONTAINER(hf_list_first(&queue->pollers), hf_poller, link);
    if (queue->poller_count > POLLERS_MAX || core->now.mono - first->mono > POLLER_SPAN) {
        drop(core, first);
    }
}

void hf_poller_forget(hf_core *core, hf_queue *queue, hf_str identity)
{
    hf_poller *poller = find(core, queue, identity);
    if (poller != NULL) {
        drop(core, poller);
    }
}

void hf_pollers_free(hf_core *core, hf_queue *queue)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&queue->pollers)) != NULL) {
        drop(core, HF_CONTAINER(node, hf_poller, link));
    }
    hf_assert(queue->poller_count == 0);
}

/* ---- Rates --------------------------------------------------------------------------------------------------------------- */

void hf_queue_tally_begin(const hf_core *core, hf_queue_tally *tally)
{
    *tally = (hf_queue_tally){.since = core->now.mono, .last = core->now.mono / TALLY_SPAN};
}

/* Forgets what is too long ago. */
static void tally_move(const hf_core *core, hf_queue_tally *tally)
{
    int64_t now = core->now.mono / TALLY_SPAN;
    hf_assert(now >= tally->last); /* this clock does not go back */
    tally->last = now - tally->last > HF_QUEUE_TALLY_COUNTS ? now - HF_QUEUE_TALLY_COUNTS : tally->last;
    while (tally->last < now) {
        tally->counts[++tally->last % HF_QUEUE_TALLY_COUNTS] = 0;
    }
}

void hf_queue_tally_count(const hf_core *core, hf_queue_tally *tally)
{
    tally_move(core, tally);
    tally->counts[tally->last % HF_QUEUE_TALLY_COUNTS]++;
}

/* Tasks a second. */
static float tally_rate(const hf_core *core, hf_queue_tally *tally)
{
    tally_move(core, tally);
    uint64_t count = 0;
    for (size_t i = 0; i < HF_QUEUE_TALLY_COUNTS; i++) {
        count += tally->counts[i];
    }
    int64_t counted = core->now.mono - (tally->last - (HF_QUEUE_TALLY_COUNTS - 1)) * TALLY_SPAN;
    int64_t span = core->now.mono - tally->since;
    span = span < counted ? span : counted;
    return span > 0 ? (float)((double)count * 1e9 / (double)span) : 0;
}

/* ---- The answer ---------------------------------------------------------------------------------------------------------- */

static char kind_of(const hf_call *call)
{
    const hf_pb_describe_task_queue_request *request = call->request;
    return request->task_queue_type == HF_TASK_QUEUE_TYPE_ACTIVITY ? 'a' : 'w';
}

static hf_queue *queue_of(hf_core *core, const hf_call *call)
{
    const hf_pb_describe_task_queue_request *request = call->request;
    return hf_queue_find(core, kind_of(call), request->namespace, request->task_queue->name);
}

/* When the oldest task that waits in memory began to wait; 0 = none does. */
static int64_t waits_since(const hf_queue *queue)
{
    hf_node *node = hf_list_first(&queue->tasks);
    const hf_task *task = node != NULL ? HF_CONTAINER(node, hf_task, link) : NULL;
    if (task == NULL || task->is_query || task->is_speculative) {
        return 0;
    }
    const hf_activity *activity = task->scheduled_id != 0 ? hf_run_activity(task->run, task->scheduled_id) : NULL;
    return activity != NULL ? activity->scheduled_time : task->run->wft.scheduled_time;
}

static void list_pollers(const hf_core *core, const hf_queue *queue, hf_arena *arena,
                         hf_pb_describe_task_queue_response *response)
{
    response->pollers.items = HF_ARENA_ARRAY(arena, hf_pb_poller_info, queue->poller_count);
    for (hf_node *node = queue->pollers.head.prev; arena->status == HF_OK && node != &queue->pollers.head;
         node = node->prev) { /* those that polled last come first */
        const hf_poller *poller = HF_CONTAINER(node, hf_poller, link);
        if (core->now.mono - poller->mono > POLLER_SPAN) {
            return;
        }
        response->pollers.items[response->pollers.count++] = (hf_pb_poller_info){
            .last_access_time = hf_pb_timestamp_of((hf_time){poller->wall}),
            .identity = hf_arena_copy(arena, hf_owned_str(&poller->identity)),
            .rate_per_second = poller->rate >= 0 ? poller->rate : RATE_DEFAULT,
        };
    }
}

/* `cold`: tasks whose runs are on disk. */
static void fill(hf_core *core, hf_call *call, int64_t cold)
{
    const hf_pb_describe_task_queue_request *request = call->request;
    hf_pb_describe_task_queue_response *response = call->response;
    hf_queue *queue = queue_of(core, call);
    hf_arena *arena = call->arena;
    hf_pb_describe_task_queue_response_effective_rate_limit *limit =
        HF_ARENA_NEW(arena, hf_pb_describe_task_queue_response_effective_rate_limit);
    hf_pb_task_queue_stats *stats = HF_ARENA_NEW(arena, hf_pb_task_queue_stats);
    hf_pb_task_queue_status *status = HF_ARENA_NEW(arena, hf_pb_task_queue_status);
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    bool is_limited = queue != NULL && queue->rate >= 0;
    double rate = is_limited ? queue->rate : RATE_DEFAULT;
    int64_t count = cold + (queue != NULL ? (int64_t)(queue->task_count + queue->suspect_count) : 0);
    int64_t since = queue != NULL ? waits_since(queue) : 0;
    if (queue != NULL) {
        list_pollers(core, queue, arena, response);
    }
    limit->requests_per_second = (float)rate;
    limit->rate_limit_source = is_limited ? HF_RATE_LIMIT_SOURCE_WORKER : HF_RATE_LIMIT_SOURCE_SYSTEM;
    response->effective_rate_limit = limit;
    if (request->include_task_queue_status) {
        status->backlog_count_hint = count;
        status->rate_per_second = rate;
        response->task_queue_status = status;
    }
    if (request->report_stats) {
        stats->approximate_backlog_count = count;
        stats->approximate_backlog_age =
            hf_pb_duration_of(hf_nanoseconds(since > 0 && since < core->now.wall ? core->now.wall - since : 0));
        stats->tasks_add_rate = queue != NULL ? tally_rate(core, &queue->added) : 0;
        stats->tasks_dispatch_rate = queue != NULL ? tally_rate(core, &queue->given) : 0;
        stats->rate_limiting_active = queue != NULL && queue->rate_wait.place != 0;
        response->stats = stats;
    }
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

void hf_backlog_rows_read(hf_core *core, hf_read *read)
{
    int64_t count = 0;
    for (size_t i = 0; i < read->request.row_count; i++) {
        hf_pb_task_record record;
        if (hf_task_row_open(&core->op, &read->request.rows[i], &core->scratch, &record) != HF_OK) {
            HF_PROBE(core, HF_PROBE_BAD_RECORD);
        } else if (hf_run_find(core, record.run) == NULL) {
            count += record.count > 0 ? record.count : 1; /* the tasks of runs in memory are in memory */
        }
    }
    fill(core, read->call, count);
    if (core->status == HF_OK) {
        hf_call_let_go(read->call);
    }
}

void hf_describe_task_queue_call(hf_core *core, hf_call *call)
{
    const hf_pb_describe_task_queue_request *request = call->request;
    if (request->api_mode == HF_DESCRIBE_TASK_QUEUE_MODE_ENHANCED) {
        hf_call_fail(core, call, HF_ERR_UNSUPPORTED, "DescribeTaskQueue in enhanced mode is not part of this version");
        return;
    }
    if (hf_call_response(core, call) == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_QUEUE_DESCRIBED);
    bool wants_count = request->include_task_queue_status || request->report_stats;
    if (!wants_count || !core->tasks_on_disk) {
        fill(core, call, 0);
        hf_call_reply(core, call);
        return;
    }
    hf_str text = hf_queue_text_in(core, call->arena, kind_of(call), request->namespace, request->task_queue->name);
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_read *read = hf_read_new(core, HF_READ_BACKLOG, HF_TABLE_TASK);
    if (read == NULL) {
        return;
    }
    read->call = call;
    read->request.key = (hf_key){text, 0, 0};
    read->request.key_end = (hf_key){text, INT64_MAX, 0};
    read->request.row_max = BACKLOG_READ_MAX;
    call->place = HF_PLACE_ELSEWHERE;
    call->holds = 2; /* the rows and the commit */
    hf_call_reply(core, call);
    hf_read_submit(core, read);
}
