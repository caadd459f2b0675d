/* Which rows are written when (docs/adr/0006).
 *
 * Every commit is one journal row: the changes of all runs it touched. A run's own rows (state, history, name, deadline, waiting
 * tasks) are written later, all at once: when it closes, when it has to leave memory, or when it holds up the oldest part
 * of the journal. A run that closes before that is written once. The journal is then cut behind the oldest
 * change that is in no row yet, so a crash never has to read more than its bound.
 *
 * engine-W1  A run whose rows are written with a commit is not in that commit's journal row: the rows hold it. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/batch.h"
#include "engine/filter.h"
#include "engine/lister.h"
#include "engine/matching.h"
#include "ledger/journal.h"
#include "ledger/kept.h"
#include "ledger/making.h"
#include "ledger/rows.h"

#define KEPT_LEN_MIN ((size_t)64 << 10) /* bytes of a buffer that are kept for the next batch in any case */

/* ---- The rows of a run ----------------------------------------------------------------------------------------------- */

/* If there are few events they go into the run's own row, one page instead of two: returns them. Else they become history rows. */
static hf_str put_history(hf_core *core, hf_commit_batch *batch, hf_run *run)
{
    core->events.len = 0;
    if (run->event_count == run->spilled) {
        return HF_STR("");
    }
    hf_log_events(run, run->spilled + 1, run->event_count, &core->events);
    if (core->events.status != HF_OK) {
        hf_core_break(core, core->events.status, "out of memory");
        return HF_STR("");
    }
    hf_assert((int64_t)core->events.len == run->history_len - run->spilled_len); /* run-R2 */
    hf_str events = hf_str_of_len(core->events.data, core->events.len);
    if (events.len <= core->options.tail_len_max) {
        return events;
    }
    hf_history_put(&batch->writes, run, events, core->options.row_len_max);
    core->events.len = 0;
    return HF_STR("");
}

static void put_name(hf_core *core, const hf_run *run)
{
    hf_assert(!run->is_written); /* ledger-N1: the name is written with the run's first row */
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    hf_status status = hf_name_text(hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id), text, &len);
    hf_assert(status == HF_OK); /* its length was checked when the run was made, and when it was read */
    int64_t hash = hf_name_hash(&core->index, hf_str_of_len(text, len));
    hf_names_add(&core->index, hash, run->number, core->commit_next);
    hf_filter_add(core, (uint64_t)hash);
}

/* `counts`: by priority key - 1. */
static void put_task(hf_core *core, hf_commit_batch *batch, hf_run *run, const hf_task *task,
                     int32_t counts[HF_PRIORITY_LEVELS])
{
    int32_t count = 0;
    for (int i = 0; i < HF_PRIORITY_LEVELS; i++) {
        count += counts[i];
    }
    hf_pb_task_record record = {.run = run->number, .scheduled_id = task->scheduled_id, .count = count};
    if (counts[HF_PRIORITY_DEFAULT - 1] != count) {
        record.counts = (hf_pb_int32_list){counts, HF_PRIORITY_LEVELS};
    }
    hf_assert(count > 0 && !task->is_query && !task->is_speculative); /* ledger-W3 */
    hf_task_put(&batch->writes, run, hf_owned_str(&task->queue->text), task->order, &record);
    core->tasks_on_disk = true;
}

/* Counts the waiting activities by queue, and finds the oldest of each: in the queues themselves. */
static void count_waiting(const hf_run *run)
{
    for (size_t i = 0; i < run->activities.count; i++) {
        hf_queue *queue = run->activities.items[i]->task.queue;
        if (queue != NULL) {
            memset(queue->spill_counts, 0, sizeof queue->spill_counts);
            queue->spill_order = INT64_MAX;
        }
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_task *task = &run->activities.items[i]->task;
        if (task->queue != NULL) {
            task->queue->spill_counts[task->priority - 1]++;
            task->queue->spill_order = task->order < task->queue->spill_order ? task->order : task->queue->spill_order;
        }
    }
}

/* Each queue in which tasks of the run wait gets one row, in the place of the oldest: loading the run brings them all. One row more
 * makes the next opening go on with the run: tasks that a worker of this process holds are handed out again, messages are sent
 * again, a deletion goes on. */
static void put_tasks(hf_core *core, hf_commit_batch *batch, hf_run *run)
{
    hf_tasks_remove(&batch->writes, run);
    const hf_wft *wft = &run->wft;
    bool is_held = hf_run_has_messages(run) || run->deleting != HF_DELETING_NOT ||
                   (wft->task.queue == NULL && wft->state == HF_WFT_STARTED && wft->incarnation != 0);
    if (wft->task.queue != NULL) {
        int32_t counts[HF_PRIORITY_LEVELS] = {0};
        counts[wft->task.priority - 1] = 1;
        put_task(core, batch, run, &wft->task, counts);
    }
    count_waiting(run);
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        const hf_task *task = &activity->task;
        is_held =
            is_held || (task->queue == NULL && activity->state == HF_ACTIVITY_STARTED && activity->incarnation != 0);
        if (task->queue != NULL && task->order == task->queue->spill_order) {
            put_task(core, batch, run, task, task->queue->spill_counts);
        }
    }
    if (is_held) {
        hf_pb_task_record record = {.run = run->number, .held = true};
        hf_task_put(&batch->writes, run, HF_QUEUE_HELD, hf_order_next(core), &record);
        core->tasks_on_disk = true;
    }
}

void hf_spill(hf_core *core, hf_commit_batch *batch, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    HF_PROBE(core, hf_run_is_open(run) ? HF_PROBE_SPILLED_OPEN : HF_PROBE_SPILLED_CLOSED);
    hf_core_reset_scratch(core);
    hf_str tail = put_history(core, batch, run); /* in core->events */
    if (!run->is_written) {
        put_name(core, run);
    }
    hf_assert(run->is_written || !run->is_nameless); /* ledger-N1: only a name that was written is lost */
    bool has_due = hf_due_put(&batch->writes, run, hf_run_next_due(run));
    core->due_cursor.has_rows = core->due_cursor.has_rows || has_due;
    put_tasks(core, batch, run);
    if (HF_SLOT(run)->kept) { /* ledger-B1: its rows include the kept changes */
        hf_kept_remove(&batch->writes, run->number);
        HF_SLOT(run)->kept = false;
    }
    if (HF_SLOT(run)->is_in_making) { /* ledger-G1: from this commit on it has a row of its own */
        hf_making_remove(&batch->writes, run->number);
        HF_SLOT(run)->is_in_making = false;
    }
    if (hf_run_is_open(run)) {
        HF_SLOT(run)->is_row_open = true;
    } else if (HF_SLOT(run)->is_row_open || !run->is_written) {
        HF_SLOT(run)->is_row_open = false;
        hf_blocks_run_ended(core, run);
    } else {
        hf_blocks_run_changes(core, batch, run->number); /* engine-K3 */
    }
    run->commit_last = core->commit_next;
    hf_parts_put(&batch->writes, run);
    hf_run_stream_put(&batch->writes, run, core->options.row_len_max);
    hf_run_row_put(&batch->writes, run, tail);
    if (core->status != HF_OK) {
        return;
    }
    run->is_written = true;
    HF_SLOT(run)->spill_now = false;
    HF_SLOT(run)->spills++;
    hf_buf_deinit(&run->log);
    hf_buf_init(&run->log, core->memory, SIZE_MAX / 4);
    hf_buf_put(&run->log, tail.data, tail.len);
    if (run->log.status != HF_OK) {
        hf_core_break(core, run->log.status, "out of memory");
        return;
    }
    HF_SLOT(run)->batch_start = run->log.len;
    memset(run->marks, 0, sizeof run->marks);
    hf_lists_pass(core, &HF_SLOT(run)->dirty_link);
    hf_list_remove(&HF_SLOT(run)->dirty_link);
    if (hf_node_is_linked(&HF_SLOT(run)->batch_link)) { /* engine-W1 */
        hf_list_remove(&HF_SLOT(run)->batch_link);
    }
    hf_assert(run->commit_last == core->commit_next);         /* ledger-W2 */
    hf_assert(!hf_node_is_linked(&HF_SLOT(run)->batch_link)); /* engine-W1 */
    hf_core_unuse(core, run);
}

/* ---- The journal ----------------------------------------------------------------------------------------------------- */

/* Writes the rows of as many old runs as are needed to keep journal and memory within their bounds. */
void hf_spill_old(hf_core *core, hf_commit_batch *batch)
{
    size_t soft =
        core->options.journal_len_max - core->options.journal_len_max / 4; /* the rest is room for commits under way */
    size_t spilled = 0;
    size_t before = batch->writes.arena.used; /* rows of runs that close do not count, or the journal would grow */
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_first(&core->dirty)) != NULL) {
        hf_run *run = &HF_CONTAINER(node, hf_slot, dirty_link)->run;
        bool holds_up = core->journal_len > soft && HF_SLOT(run)->commit_dirty < core->commit_next;
        bool no_room = core->used > core->options.mem_max;
        if ((!holds_up && !no_room) || batch->writes.arena.used - before > core->options.batch_len_max) {
            return;
        }
        if (holds_up && !no_room) {
            /* The journal can only be cut at its oldest commit: spill as much as it is above the soft bound, and at least 4 KiB. */
            size_t over = core->journal_len - soft;
            if (spilled > over && spilled > 4096) {
                return;
            }
        }
        spilled += run->log.len;
        hf_spill(core, batch, run);
    }
}

static void trim(hf_core *core, hf_commit_batch *batch)
{
    const hf_node *node = hf_list_first(&core->dirty);
    uint64_t keep = node != NULL ? HF_CONTAINER_CONST(node, hf_slot, dirty_link)->commit_dirty : core->commit_next;
    if (keep > core->commit_next || HF_CANARY(HF_BUG_TRIMMED_EARLY)) {
        keep = core->commit_next;
    }
    hf_assert(keep >= core->journal_first); /* engine-E5: a change that is in no row is in the journal */
    size_t bytes = 0;
    uint64_t count = keep - core->journal_first;
    hf_assert(count <= core->journal_lens.count - core->journal_start);
    for (size_t i = 0; i < count; i++) {
        bytes += core->journal_lens.items[core->journal_start + i];
    }
    if (count == 0 || (count < core->options.trim_count && bytes < core->options.journal_len_max / 8)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_JOURNAL_TRIMMED);
    hf_names_trim(&core->index, &batch->writes, core->commit_next, keep);
    hf_writes_delete_range(&batch->writes, HF_TABLE_JOURNAL, (hf_key){.a = (int64_t)core->journal_first},
                           (hf_key){.a = (int64_t)keep});
    hf_assert(bytes <= core->journal_len);
    core->journal_first = keep;
    core->journal_len -= bytes;
    core->journal_start += (size_t)count;
    if (core->journal_start > core->journal_lens.count / 2) {
        core->journal_lens.count -= core->journal_start;
        memmove(core->journal_lens.items, core->journal_lens.items + core->journal_start,
                core->journal_lens.count * sizeof *core->journal_lens.items);
        core->journal_start = 0;
    }
}

/* Frees the buffers of a large batch. They count as used memory, and while more than the budget is used, runs are dropped from memory
 * with every commit. The batch before this one is durable. */
static void give_back(hf_core *core)
{
    size_t kept = core->options.mem_max / 16 > KEPT_LEN_MIN ? core->options.mem_max / 16 : KEPT_LEN_MIN;
    hf_commit_batch *before = &core->batches[1 - core->open_idx];
    hf_assert(!core->committing);
    hf_buf *const bufs[] = {&core->row, &core->events, &before->journal};
    for (size_t i = 0; i < HF_COUNT_OF(bufs); i++) {
        if (bufs[i]->capacity > kept) {
            hf_buf_deinit(bufs[i]);
        }
    }
    hf_writes_shrink(&before->writes, kept);
}

/* The changes of every run that the batch has touched, except those whose rows it writes. */
static void put_runs(hf_core *core, hf_buf *out)
{
    HF_LIST_EACH(node, &core->touched)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, batch_link)->run;
        size_t start = HF_SLOT(run)->batch_start;
        if (HF_CANARY(HF_BUG_NEXT_RUN_LATER) && HF_SLOT(run)->commit_dirty == core->commit_next &&
            !hf_str_equal(hf_owned_str(&run->first_run_id), hf_owned_str(&run->run_id))) {
            continue; /* with the next commit */
        }
        hf_journal_put_run(out, run->number, hf_str_of_len(run->log.data + start, run->log.len - start));
        HF_SLOT(run)->batch_start = run->log.len;
        run->commit_last = core->commit_next;
        hf_list_remove(node);
    }
}

void hf_journal_put(hf_core *core, hf_commit_batch *batch)
{
    trim(core, batch);
    hf_buf *out = &batch->journal;
    hf_journal_begin(out, core->commit_next, core->now.wall, core->journal_hash);
    put_runs(core, out);
    core->events.len = 0;
    hf_names_put(&core->index, core->commit_next, &core->events);
    /* A row that an opening could not count may be removed now. */
    int64_t held = core->held_rows + batch->writes.held;
    core->held_rows = held > 0 ? held : 0;
    hf_journal_tail tail = {
        .run_next = core->run_next,
        .order_next = core->order_next,
        .names = hf_str_of_len(core->events.data, core->events.len),
        .names_logged = core->index.log_count,
        .gone = hf_str_of_len(core->deletions.gone.data, core->deletions.gone.len),
        .held = core->held_rows,
    };
    if (core->events.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    size_t len = 0;
    hf_assert(core->deletions.gone.status == HF_OK);
    hf_journal_end(out, &tail, core->commit_next, core->journal_hash, &batch->writes, &core->journal_hash, &len);
    if (HF_VEC_RESERVE(&core->runs_memory, &core->journal_lens)) {
        core->journal_lens.items[core->journal_lens.count++] = (uint32_t)len;
        core->journal_len += len;
    }
    core->deletions.gone.len = 0;
    hf_assert(core->status != HF_OK || core->journal_lens.count - core->journal_start ==
                                           core->commit_next - core->journal_first + 1); /* ledger-J1 */
    give_back(core);
}
