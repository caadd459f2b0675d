/* Task queues: tasks meet polls.
 *
 * Tasks that become ready and polls that come wait in their queue, and at the end of a portion of steps, in hf_match_all, they meet. A
 * task that meets a poll there is started in the same commit and never written anywhere but in its run. One that waits is in memory
 * with its run. When the run is dropped from memory, its task is a row of the task table (spill.c); such rows are
 * read back a page at a time when a worker polls (`cold`), and their runs are loaded, which brings the task back here.
 *
 * Order is by a number that every task gets when it begins to wait. A poll takes the oldest task in memory; if older ones are
 * on disk it also starts to load their runs, so that none waits for ever. */
#include "engine/matching.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/cursor.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/poll.h"
#include "engine/suspect.h"
#include "engine/unwritten.h"
#include "history/limits.h"
#include "ledger/rows.h"

#define COLD_LOADS_MAX 64 /* runs that are loaded for one poll */
#define TIDY_LOOKS_MAX 64 /* queues looked at between two steps */

/* ---- The queues ------------------------------------------------------------------------------------------------------ */

static uint64_t text_hash(hf_str text)
{
    return hf_hash_bytes(2, text.data, text.len);
}

static hf_queue *find_by_text(hf_core *core, hf_str text)
{
    hf_map_node *node = hf_map_first(&core->queues, text_hash(text));
    for (; node != NULL; node = hf_map_next(node)) {
        hf_queue *queue = HF_CONTAINER(node, hf_queue, by_text);
        if (hf_str_equal(hf_owned_str(&queue->text), text)) {
            return queue;
        }
    }
    return NULL;
}

hf_queue *hf_queue_by_text(hf_core *core, hf_str text)
{
    hf_assert(text.len >= 2);
    hf_queue *queue = find_by_text(core, text);
    if (queue != NULL) {
        return queue;
    }
    queue = hf_core_alloc(core, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    hf_owned_set(&core->runs_memory, &queue->text, text);
    hf_list_init(&queue->tasks);
    hf_list_init(&queue->cold);
    hf_list_init(&queue->polls);
    hf_list_init(&queue->pollers);
    queue->rate = -1;
    hf_queue_tally_begin(core, &queue->added);
    hf_queue_tally_begin(core, &queue->given);
    queue->cursor.has_rows = core->tasks_on_disk;
    queue->polled_at = INT64_MIN / 2;
    queue->used_at = core->now.mono;
    if (core->status != HF_OK || hf_map_insert(&core->queues, &queue->by_text, text_hash(text)) != HF_OK) {
        hf_owned_free(&core->runs_memory, &queue->text);
        hf_core_free_mem(core, queue, sizeof *queue);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    hf_list_push_back(&core->queues_all, &queue->all_link);
    return queue;
}

/* The text of a queue; false: a name is too long, and the core is broken. */
static bool text_of(hf_core *core, char kind, hf_str namespace_, hf_str name, char *text, size_t *ret_len)
{
    if (!hf_queue_text(kind, namespace_, name, text, ret_len)) {
        hf_core_break(core, HF_ERR_TOO_BIG, "a task queue's name is too long");
        return false;
    }
    return true;
}

hf_str hf_queue_text_in(hf_core *core, hf_arena *arena, char kind, hf_str namespace_, hf_str name)
{
    char text[HF_QUEUE_TEXT_LEN];
    size_t len = 0;
    (void)text_of(core, kind, namespace_, name, text, &len);
    return hf_arena_copy(arena, hf_str_of_len(text, len));
}

void hf_queue_mark(hf_core *core, hf_queue *queue)
{
    if (!hf_node_is_linked(&queue->marked_link)) {
        hf_list_push_back(&core->queues_marked, &queue->marked_link);
    }
}

hf_queue *hf_queue_get(hf_core *core, char kind, hf_str namespace_, hf_str name)
{
    char text[HF_QUEUE_TEXT_LEN];
    size_t len = 0;
    return text_of(core, kind, namespace_, name, text, &len) ? hf_queue_by_text(core, hf_str_of_len(text, len)) : NULL;
}

hf_queue *hf_queue_find(hf_core *core, char kind, hf_str namespace_, hf_str name)
{
    char text[HF_QUEUE_TEXT_LEN];
    size_t len = 0;
    return text_of(core, kind, namespace_, name, text, &len) ? find_by_text(core, hf_str_of_len(text, len)) : NULL;
}

void hf_queue_free(hf_core *core, hf_queue *queue)
{
    hf_assert(queue->task_count == 0 && queue->suspect_count == 0 && hf_list_is_empty(&queue->tasks));
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&queue->cold)) != NULL) {
        hf_core_free_mem(core, HF_CONTAINER(node, hf_cold, link), sizeof(hf_cold));
    }
    if (hf_node_is_linked(&queue->marked_link)) {
        hf_list_remove(&queue->marked_link);
    }
    hf_heap_remove(&core->rated, &queue->rate_wait);
    hf_pollers_free(core, queue);
    hf_owned_free(&core->runs_memory, &queue->text);
    hf_core_free_mem(core, queue, sizeof *queue);
}

static void use(hf_core *core, hf_queue *queue)
{
    hf_assert(hf_node_is_linked(&queue->all_link));
    queue->used_at = core->now.mono;
    hf_list_remove(&queue->all_link);
    hf_list_push_back(&core->queues_all, &queue->all_link);
}

/* A queue without waiting tasks and polls, and whose rate limit has all its tokens, holds nothing that is not in the task table, too: it
 * can be freed, and is made again from the table when it is next used. Unused queues are kept for queue_span, or less if there are more than queues_max queues. */
void hf_queues_tidy(hf_core *core)
{
    hf_node *node = NULL;
    for (int looks = 0; looks < TIDY_LOOKS_MAX && (node = hf_list_first(&core->queues_all)) != NULL; looks++) {
        hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
        bool old = core->now.mono - queue->used_at >= core->options.queue_span;
        if (core->status != HF_OK || (!old && core->queues.count <= core->options.queues_max)) {
            return;
        }
        if (queue->task_count > 0 || queue->suspect_count > 0 || queue->poll_count > 0 || queue->cursor.is_reading ||
            queue->loads > 0 || (queue->rate > 0 && queue->rate_full_at > core->now.mono) ||
            hf_node_is_linked(&queue->marked_link)) {
            use(core, queue);
            continue;
        }
        HF_PROBE(core, HF_PROBE_QUEUE_FREED);
        hf_assert(core->tasks_on_disk || (!queue->cursor.has_rows && hf_list_is_empty(&queue->cold)));
        hf_map_remove(&core->queues, &queue->by_text);
        hf_list_remove(&queue->all_link);
        hf_queue_free(core, queue);
    }
}

bool hf_queue_has_pollers(const hf_queue *queue)
{
    return queue->poll_count > 0;
}

int64_t hf_order_next(hf_core *core)
{
    hf_assert(hf_run_is_number(core->order_next)); /* there is always a next one */
    return core->order_next++;
}

/* ---- Waiting tasks --------------------------------------------------------------------------------------------------- */

static void start(hf_core *core, hf_task *task, hf_call *call)
{
    hf_assert(task->queue == NULL && !task->is_last); /* it is in no queue any more */
    hf_run *run = task->run;
    hf_core_use(core, run);
    if (task->is_query) {
        hf_query_start(core, task, call);
    } else if (task->is_speculative) {
        hf_speculative_start(core, run, call);
    } else if (task->scheduled_id == 0) {
        hf_wft_start(core, run, call);
    } else {
        hf_activity *activity = hf_run_activity(run, task->scheduled_id);
        hf_assert(activity != NULL && &activity->task == task);
        hf_activity_start(core, activity, call);
    }
}

/* Workers of this process get no task while one of them has a suspect (suspect.c). */
static bool may_have_task(hf_core *core, const hf_call *call)
{
    bool may = core->alone.run == 0 || !call->in_process;
    if (!may) {
        HF_PROBE(core, HF_PROBE_SUSPECT_WAITED_FOR);
    }
    return may;
}

static hf_call *take_poll(hf_core *core, hf_queue *queue)
{
    HF_LIST_EACH(node, &queue->polls)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (may_have_task(core, call)) {
            hf_match_unpark(core, call);
            return call;
        }
    }
    return NULL;
}

/* Inserts by order. Most tasks are the newest of their queue. One that was read from disk is older than most of those that wait in memory, so the search
 * goes on from both ends at once. */
static void insert(hf_queue *queue, hf_task *task)
{
    hf_assert(task->run != NULL);
    hf_node *head = &queue->tasks.head;
    hf_node *before = head->prev;
    hf_node *after = head->next;
    while (before != head && HF_CONTAINER(before, hf_task, link)->order > task->order) {
        if (HF_CONTAINER(after, hf_task, link)->order >
            task->order) { /* not the head: `before` is there, or further on */
            before = after->prev;
            break;
        }
        before = before->prev;
        after = after->next;
    }
    hf_node_insert_(&task->link, before, before->next);
    task->queue = queue;
    queue->task_count++;
}

void hf_match_add(hf_core *core, hf_task *task, hf_queue *queue)
{
    if (queue == NULL || core->status != HF_OK) {
        return;
    }
    hf_assert(task->queue == NULL);
    task->priority = hf_task_priority(task);
    queue->waiting[task->priority - 1]++;
    if (task->order ==
        core->order_next - 1) { /* it begins to wait: it does not come from another queue, or from disk */
        hf_queue_tally_count(core, &queue->added, task);
    }
    if (hf_task_is_suspect(task)) {
        hf_suspect_add(core, task, queue);
        return;
    }
    if (core->is_opening) {
        hf_list_push_back(&queue->tasks, &task->link);
        task->queue = queue;
        queue->task_count++;
    } else {
        insert(queue, task);
    }
    hf_queue_mark(core, queue);
}

/* Two lists that end with NULL become one; of equal orders that of `first` is first. */
static hf_node *merge(hf_node *first, hf_node *second)
{
    hf_node *merged = NULL;
    hf_node **end = &merged;
    while (first != NULL && second != NULL) {
        hf_node **least =
            HF_CONTAINER(second, hf_task, link)->order < HF_CONTAINER(first, hf_task, link)->order ? &second : &first;
        *end = *least;
        end = &(*least)->next;
        *least = *end;
    }
    *end = first != NULL ? first : second;
    return merged;
}

static void sort(hf_list *tasks)
{
    hf_node *sorted[48] = {NULL}; /* [i]: a list of 2^i tasks, or none; those of longer lists were in front */
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(tasks)) != NULL) {
        size_t i = 0;
        for (; sorted[i] != NULL; i++) {
            node = merge(sorted[i], node);
            sorted[i] = NULL;
        }
        sorted[i] = node;
    }
    for (size_t i = 0; i < HF_COUNT_OF(sorted); i++) {
        node = merge(sorted[i], node);
    }
    while (node != NULL) {
        hf_node *next = node->next;
        hf_list_push_back(tasks, node);
        node = next;
    }
}

void hf_match_opened(hf_core *core)
{
    hf_assert(core->is_opening);
    core->is_opening = false;
    HF_LIST_EACH(node, &core->queues_all)
    {
        sort(&HF_CONTAINER(node, hf_queue, all_link)->tasks);
    }
}

void hf_match_ready(hf_core *core, hf_run *run, hf_task *task)
{
    if (task == &run->wft.task) {
        hf_wft_enqueue(core, run);
    } else {
        hf_activity_enqueue(core, run, HF_CONTAINER(task, hf_activity, task));
    }
}

void hf_match_remove(hf_core *core, hf_task *task)
{
    (void)core;
    if (task->queue != NULL) {
        hf_assert(task->queue->waiting[task->priority - 1] > 0);
        task->queue->waiting[task->priority - 1]--;
    }
    if (task->is_last) {
        hf_suspect_remove(task);
    } else if (task->queue != NULL) {
        hf_assert(task->queue->task_count > 0);
        hf_list_remove(&task->link);
        task->queue->task_count--;
        task->queue = NULL;
    }
}

/* ---- Polls ----------------------------------------------------------------------------------------------------------- */

/* Number of polls that could take a task now, up to the number of runs that are loaded at once. */
static size_t polls_ready(const hf_core *core, const hf_queue *queue)
{
    size_t count = 0;
    if (HF_LIKELY(core->alone.run == 0)) {
        return queue->poll_count < COLD_LOADS_MAX ? queue->poll_count : COLD_LOADS_MAX;
    }
    HF_LIST_EACH(node, &queue->polls)
    {
        count += HF_CONTAINER(node, hf_call, link)->in_process ? 0 : 1;
        if (count == COLD_LOADS_MAX) {
            break;
        }
    }
    return count;
}

/* Older tasks are on disk: their runs are loaded. Not for polls that wait because of a suspect: if memory is short, a run that nobody takes
 * leaves again at once, and the queue would read and load it over and over. When that wait is over, the queue is marked (suspect.c). */
static void fetch_cold(hf_core *core, hf_queue *queue)
{
    hf_node *first = hf_list_first(&queue->tasks);
    int64_t oldest = first != NULL ? HF_CONTAINER(first, hf_task, link)->order : INT64_MAX;
    size_t wanted = queue->shut ? COLD_LOADS_MAX : polls_ready(core, queue);
    if (wanted == 0) {
        return;
    }
    HF_LIST_EACH(node, &queue->cold)
    {
        hf_cold *cold = HF_CONTAINER(node, hf_cold, link);
        if (wanted == 0 || cold->order > oldest) {
            break;
        }
        int64_t number = cold->run;
        hf_list_remove(&cold->link);
        hf_core_free_mem(core, cold, sizeof *cold);
        const hf_run *run = hf_run_find(core, number);
        if (run != NULL) {
            HF_PROBE(core, HF_PROBE_COLD_TASK_STALE); /* its run is in memory, with the task if it still has it */
            continue;
        }
        HF_PROBE(core, HF_PROBE_COLD_TASK);
        hf_run *loading = hf_run_load(core, number);
        if (loading == NULL) {
            return;
        }
        HF_SLOT(loading)->wanted_by = queue;
        queue->loads++;
        wanted--;
    }
    if (queue->cursor.has_rows && !queue->cursor.is_reading && hf_list_is_empty(&queue->cold)) {
        hf_read *read = hf_read_new(core, HF_READ_TASKS, HF_TABLE_TASK);
        if (read == NULL) {
            return;
        }
        read->queue = queue;
        hf_cursor_begin(&queue->cursor, &read->request, hf_owned_str(&queue->text), INT64_MAX);
        read->request.row_max = core->options.page_max;
        hf_read_submit(core, read);
    }
}

/* The answer tells the number of tasks that still wait. */
static void hint(const hf_core *core, const hf_call *call, const hf_queue *queue)
{
    hf_pb_poll_workflow_task_queue_response *response = call->response;
    if (core->status == HF_OK && call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE && response != NULL) {
        response->backlog_count_hint = (int64_t)queue->task_count;
    }
}

/* Gives the oldest task to the poll that came first, and so on. Runs on disk whose tasks are older are loaded, so that none waits for
 * ever. */
static void pump(hf_core *core, hf_queue *queue)
{
    bool has_tasks =
        queue->task_count > 0 || queue->suspect_count > 0 || queue->cursor.has_rows || !hf_list_is_empty(&queue->cold);
    if (has_tasks && queue->poll_count > 0 && !hf_queue_may_give(core, queue)) {
        return; /* no token: neither are tasks given nor runs loaded */
    }
    if (queue->suspect_count > 0 && queue->poll_count > 0) {
        hf_suspect_poll(core, queue);
    }
    if (core->status == HF_OK && (queue->poll_count > 0 || queue->shut)) {
        fetch_cold(core, queue);
    }
    while (core->status == HF_OK && queue->task_count > 0 && queue->poll_count > 0 && hf_queue_may_give(core, queue)) {
        hf_call *call = take_poll(core, queue);
        if (call == NULL) {
            break; /* a worker has a suspect */
        }
        hf_task *task = HF_CONTAINER(hf_list_first(&queue->tasks), hf_task, link);
        hf_core_reset_scratch(core);
        hf_match_remove(core, task);
        hf_queue_gave(core, queue, task);
        start(core, task, call);
        hint(core, call, queue);
    }
    /* While a worker has a suspect, tasks and polls may both wait. The polls that are left may take younger tasks from disk. */
    if (core->status == HF_OK && queue->task_count == 0 && polls_ready(core, queue) > queue->loads &&
        !hf_list_is_empty(&queue->cold)) {
        fetch_cold(core, queue);
    }
}

void hf_match_all(hf_core *core)
{
    hf_unwritten_settle(core);
    hf_assert(hf_list_is_empty(&core->unsettled) || core->status != HF_OK); /* engine-Q1 */
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&core->queues_marked)) != NULL) {
        pump(core, HF_CONTAINER(node, hf_queue, marked_link));
    }
}

void hf_match_start(hf_core *core, hf_task *task, hf_call *call)
{
    hf_match_remove(core, task);
    start(core, task, call);
}

void hf_queue_shut(hf_core *core, hf_queue *queue)
{
    queue->shut = true;
    queue->polled_at = INT64_MIN / 2;
    for (hf_node *node = queue->tasks.head.next; core->status == HF_OK && node != &queue->tasks.head;) {
        hf_task *task = HF_CONTAINER(node, hf_task, link);
        node = node->next;
        if (task->is_query) {
            hf_query_unstick(core, task);
        } else if (task->is_speculative) {
            hf_speculative_unstick(core, task->run);
        } else if (task->scheduled_id == 0 && task->run->wft.sticky) {
            hf_match_remove(core, task);
            hf_wft_enqueue(core, task->run); /* which moves it: the queue is shut */
        }
    }
    hf_queue_mark(core, queue);
}

void hf_match_poll(hf_core *core, hf_call *call)
{
    hf_assert(call->place == HF_PLACE_NONE && call->parked == NULL);
    bool workflow = call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE;
    const hf_pb_poll_workflow_task_queue_request *w = call->request;
    const hf_pb_poll_activity_task_queue_request *a = call->request;
    const hf_pb_task_queue *named = workflow ? w->task_queue : a->task_queue;
    hf_queue *queue = hf_queue_get(core, workflow ? 'w' : 'a', workflow ? w->namespace : a->namespace, named->name);
    if (queue == NULL) {
        return;
    }
    if (hf_worker_is_shut(core, workflow ? w->worker_instance_key : a->worker_instance_key)) {
        HF_PROBE(core, HF_PROBE_POLL_ENDED);
        hf_call_response(core, call);
        hf_call_reply(core, call);
        return;
    }
    const hf_pb_double_value *rate =
        !workflow && a->task_queue_metadata != NULL ? a->task_queue_metadata->max_tasks_per_second : NULL;
    hf_poller_note(core, queue, workflow ? w->identity : a->identity, rate);
    if (!workflow) {
        hf_queue_set_rate(core, queue, rate);
    }
    queue->polled_at = core->now.mono;
    queue->is_sticky = named->kind == HF_TASK_QUEUE_KIND_STICKY;
    queue->shut = false;
    use(core, queue);
    hf_list_push_back(&queue->polls, &call->link);
    queue->poll_count++;
    call->place = HF_PLACE_QUEUE;
    call->parked = queue;
    hf_poll_park(core, call, &core->task_polls, core->options.poll_span);
    hf_queue_mark(core, queue);
}

void hf_match_unpark(hf_core *core, hf_call *call)
{
    hf_queue *queue = call->parked;
    hf_assert(call->place == HF_PLACE_QUEUE && queue->poll_count > 0);
    hf_list_remove(&call->link);
    hf_poll_unpark(core, call);
    queue->poll_count--;
    if (!queue->shut) {
        queue->polled_at = core->now.mono;
    }
    use(core, queue);
    call->place = HF_PLACE_NONE;
    call->parked = NULL;
}

/* ---- Disk ------------------------------------------------------------------------------------------------------------ */

static bool cold_is_known(const hf_queue *queue, int64_t order)
{
    HF_LIST_EACH(node, &queue->cold)
    {
        if (HF_CONTAINER(node, hf_cold, link)->order == order) {
            return true;
        }
    }
    return false;
}

static void add_cold(hf_core *core, hf_queue *queue, const hf_pb_task_record *record, int64_t order)
{
    if (hf_run_find(core, record->run) != NULL || cold_is_known(queue, order)) {
        return;
    }
    hf_cold *cold = hf_core_alloc(core, sizeof *cold);
    if (cold == NULL) {
        return;
    }
    *cold = (hf_cold){.queue = queue, .run = record->run, .scheduled_id = record->scheduled_id, .order = order};
    hf_node *before = queue->cold.head.prev;
    while (before != &queue->cold.head && HF_CONTAINER(before, hf_cold, link)->order > order) {
        before = before->prev;
    }
    hf_node_insert_(&cold->link, before, before->next);
}

void hf_match_tasks_read(hf_core *core, hf_read *read)
{
    hf_queue *queue = read->queue;
    for (size_t i = 0; i < read->request.row_count && core->status == HF_OK; i++) {
        const hf_row *row = &read->request.rows[i];
        hf_pb_task_record record;
        hf_status status = hf_task_row_open(&core->op, row, &core->scratch, &record);
        if (status == HF_OK) {
            add_cold(core, queue, &record, row->key.a);
        } else {
            HF_PROBE(core, HF_PROBE_BAD_RECORD); /* the run is still found by its deadline, if it has one */
        }
    }
    if (hf_cursor_end(&queue->cursor,
                      &read->request)) { /* false if a task has left memory meanwhile: its row may be missing here */
        queue->cursor.has_rows = false;
    }
    hf_queue_mark(core, queue);
}

void hf_match_run_loaded(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    if (!hf_run_is_open(run)) {
        return;
    }
    hf_wft_enqueue(core, run);
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_activity_enqueue(core, run, run->activities.items[i]);
    }
}

/* A waiting task leaves memory and is only a row from now on: the queue must read the table again. */
static void gone_cold(hf_core *core, hf_task *task)
{
    hf_queue *queue = task->queue;
    if (queue == NULL) {
        return;
    }
    hf_match_remove(core, task);
    core->tasks_on_disk = true;
    if (!HF_CANARY(HF_BUG_TASK_ROW_FORGOTTEN)) {
        hf_cursor_move_back(&queue->cursor, task->order, 0);
    }
}

void hf_match_evicted(hf_core *core, hf_run *run)
{
    hf_assert(HF_SLOT(run)->suspects == 0); /* suspects hold their run in memory */
    gone_cold(core, &run->wft.task);
    for (size_t i = 0; i < run->activities.count; i++) {
        gone_cold(core, &run->activities.items[i]->task);
    }
}
