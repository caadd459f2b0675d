/* What is written when (docs/adr/0006).
 *
 * Every commit is one journal row: the changes of all runs it touched. A run's own rows (state, history, name, deadline, waiting
 * tasks) are written later, all at once: when it closes, when it has to leave memory, or when it holds up the oldest part
 * of the journal. A run that lives shorter than that is written once. The journal is then cut behind the oldest
 * change that is in no row yet, so a crash never has to read more than its bound.
 *
 * W1  A run whose rows are written with a commit is not in that commit's journal row: the rows hold it.
 * W2  Rows of a run say which commit they include (RunState.commit); recovery skips older changes.
 * W3  The due and task tables hold, for a run that is not in memory, exactly what hf_run_next_due and its queues would. */
#include "engine/core.h"

#include "base/canary.h"
#include "base/digest.h"
#include "history/history.h"
#include "history/limits.h"

#define KEPT_LEN_MIN ((size_t)64 << 10) /* bytes of a buffer that are kept for the next batch in any case */

void hf_batch_write(hf_core *core, hf_batch *batch, hf_write write)
{
    if (HF_VEC_RESERVE(&core->runs_memory, &batch->writes)) {
        batch->writes.items[batch->writes.count++] = write;
    }
}

/* Puts a record: room for the header, then the body that `fill` has written to core->row. */
void hf_batch_put_record(hf_core *core, hf_batch *batch, hf_table table, hf_key key, const hf_buf *body)
{
    char *bytes = hf_arena_take(&batch->arena, HF_RECORD_HEADER_LEN + body->len, 8);
    if (bytes == NULL || body->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (body->len > 0) {
        memcpy(bytes + HF_RECORD_HEADER_LEN, body->data, body->len);
    }
    hf_record_seal(table, &key, bytes, body->len);
    hf_batch_write(core, batch,
                   (hf_write){.table = table,
                              .kind = HF_WRITE_PUT,
                              .key = key,
                              .value = hf_str_of_len(bytes, HF_RECORD_HEADER_LEN + body->len)});
}

static void put_message(hf_core *core, hf_batch *batch, hf_table table, hf_key key, const hf_pb_type *type,
                        const void *msg)
{
    core->row.len = 0;
    hf_pb_encode(type, msg, &core->row);
    hf_batch_put_record(core, batch, table, key, &core->row);
}

/* ---- The rows of a run ----------------------------------------------------------------------------------------------- */

/* Takes events off `*events` for one row: so many that a page of a history need not read much more than it gives. */
static void put_history_row(hf_core *core, hf_batch *batch, hf_run *run, hf_str *events)
{
    hf_pb_history_record record = {
        .first_id = run->spilled + 1,
        .last_id = run->spilled,
        .chain_before = run->spilled_chain,
        .chain_after = run->spilled_chain,
    };
    hf_str rest = *events;
    hf_str bytes = {0};
    do {
        hf_assert(hf_history_next(&rest, &bytes));
        record.chain_after = hf_digest(record.chain_after, bytes);
        record.last_id++;
    } while (rest.len > 0 && events->len - rest.len < core->options.row_len_max);
    record.events = hf_str_of_len(events->data, events->len - rest.len);
    put_message(core, batch, HF_TABLE_HISTORY, (hf_key){.a = run->number, .b = record.first_id},
                &hf_pb_history_record_type, &record);
    run->spilled = record.last_id;
    run->spilled_chain = record.chain_after;
    run->spilled_len += (int64_t)record.events.len;
    *events = rest;
}

/* Few events go along in the run's own row: one page instead of two. Gives those; the others become a history row. */
static hf_str put_history(hf_core *core, hf_batch *batch, hf_run *run)
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
    while (events.len > 0) {
        put_history_row(core, batch, run, &events);
    }
    hf_assert(run->spilled == run->event_count && run->spilled_chain == run->chain);
    core->events.len = 0;
    return HF_STR("");
}

static void put_name(hf_core *core, const hf_run *run)
{
    char text[2 * HF_ID_LEN_MAX + 1];
    size_t len = 0;
    hf_name_text(hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id), text, &len);
    hf_names_add(core, hf_name_hash(core, hf_str_of_len(text, len)), run->number);
}

static void put_due(hf_core *core, hf_batch *batch, hf_run *run)
{
    int64_t due = hf_run_next_due(run);
    int64_t key = due == INT64_MAX ? 0 : due;
    if (key == run->due_written) {
        return;
    }
    if (run->due_written != 0) {
        hf_batch_write(core, batch,
                       (hf_write){.table = HF_TABLE_DUE,
                                  .kind = HF_WRITE_DELETE,
                                  .key = {.a = run->due_written, .b = run->number}});
    }
    if (key != 0) {
        hf_batch_write(core, batch,
                       (hf_write){.table = HF_TABLE_DUE, .kind = HF_WRITE_PUT, .key = {.a = key, .b = run->number}});
        core->due_on_disk = true;
    }
    run->due_written = key;
}

static hf_str copy(hf_core *core, hf_batch *batch, hf_str bytes)
{
    hf_str copied = hf_arena_copy(&batch->arena, bytes);
    if (batch->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return copied;
}

static void put_task(hf_core *core, hf_batch *batch, hf_run *run, hf_str queue, const hf_task *task, bool held)
{
    if (!HF_VEC_RESERVE(&core->runs_memory, &run->rows_written)) {
        return;
    }
    /* A held task's number was given up when it was taken, or is not known any more after a crash: its row gets its own. */
    int64_t order = held ? hf_order_next(core) : task->order;
    hf_task_key *key = &run->rows_written.items[run->rows_written.count++];
    *key = (hf_task_key){.order = order};
    hf_owned_set(&core->runs_memory, &key->queue, queue);
    hf_pb_task_record record = {.run = run->number, .scheduled_id = task->scheduled_id, .held = held};
    put_message(core, batch, HF_TABLE_TASK, (hf_key){copy(core, batch, queue), order, 0}, &hf_pb_task_record_type,
                &record);
    core->tasks_on_disk = true;
}

/* Tasks that wait, and tasks that a worker of this process holds: those are handed out again at the next open. */
static void put_tasks(hf_core *core, hf_batch *batch, hf_run *run)
{
    for (size_t i = 0; i < run->rows_written.count; i++) {
        hf_task_key *key = &run->rows_written.items[i];
        hf_batch_write(core, batch,
                       (hf_write){.table = HF_TABLE_TASK,
                                  .kind = HF_WRITE_DELETE,
                                  .key = {copy(core, batch, hf_owned_str(&key->queue)), key->order, 0}});
        hf_owned_free(&core->runs_memory, &key->queue);
    }
    run->rows_written.count = 0;
    const hf_wft *wft = &run->wft;
    if (wft->task.queue != NULL) {
        put_task(core, batch, run, hf_owned_str(&wft->task.queue->text), &wft->task, false);
    } else if (wft->state == HF_WFT_STARTED && wft->incarnation != 0) {
        put_task(core, batch, run, HF_STR("h"), &wft->task, true);
    }
    if (run->externals.count > 0) { /* its messages are sent again at open */
        hf_task message = {0};
        put_task(core, batch, run, HF_STR("h"), &message, true);
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        if (activity->task.queue != NULL) {
            put_task(core, batch, run, hf_owned_str(&activity->task.queue->text), &activity->task, false);
        } else if (activity->state == HF_ACTIVITY_STARTED && activity->incarnation != 0) {
            put_task(core, batch, run, HF_STR("h"), &activity->task, true);
        }
    }
}

void hf_spill(hf_core *core, hf_batch *batch, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    HF_PROBE(core, hf_run_is_open(run) ? HF_PROBE_SPILLED_OPEN : HF_PROBE_SPILLED_CLOSED);
    hf_core_reset_scratch(core);
    hf_str tail = put_history(core, batch, run); /* in core->events */
    if (!run->is_written) {
        put_name(core, run);
    }
    put_due(core, batch, run);
    put_tasks(core, batch, run);
    hf_kept_remove(core, batch, run);
    run->commit_last = core->commit_next;
    core->row.len = 0;
    hf_run_encode(&core->runs_memory, run, true, tail, &core->row);
    hf_batch_put_record(core, batch, HF_TABLE_RUN, (hf_key){.a = run->number}, &core->row);
    if (core->status != HF_OK) {
        return;
    }
    run->is_written = true;
    HF_SLOT(run)->spill_now = false;
    hf_buf_deinit(&run->log);
    hf_buf_init(&run->log, core->memory, SIZE_MAX / 4);
    hf_buf_put(&run->log, tail.data, tail.len);
    if (run->log.status != HF_OK) {
        hf_core_break(core, run->log.status, "out of memory");
        return;
    }
    HF_SLOT(run)->batch_start = run->log.len;
    memset(run->marks, 0, sizeof run->marks);
    hf_list_remove(&HF_SLOT(run)->dirty_link);
    if (hf_node_is_linked(&HF_SLOT(run)->batch_link)) { /* W1 */
        hf_list_remove(&HF_SLOT(run)->batch_link);
    }
    hf_core_unuse(core, run);
}

/* ---- The journal ----------------------------------------------------------------------------------------------------- */

/* Old runs get their rows, as many as it takes to keep journal and memory within their bounds. */
void hf_spill_old(hf_core *core, hf_batch *batch)
{
    size_t spilled = 0;
    size_t before = batch->arena.used; /* rows of runs that close: they are no reason to let the journal grow */
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_first(&core->dirty)) != NULL) {
        hf_run *run = &HF_CONTAINER(node, hf_slot, dirty_link)->run;
        bool holds_up =
            core->journal_len > core->options.journal_len_max / 2 && HF_SLOT(run)->commit_dirty < core->commit_next;
        bool no_room = core->used > core->options.mem_max;
        if ((!holds_up && !no_room) || batch->arena.used - before > core->options.batch_len_max) {
            return;
        }
        if (holds_up && !no_room) {
            /* The journal shrinks only when its oldest commit goes: as much of it as this batch adds, and some more. */
            size_t over = core->journal_len - core->options.journal_len_max / 2;
            if (spilled > over && spilled > 4096) {
                return;
            }
        }
        spilled += run->log.len;
        hf_spill(core, batch, run);
    }
}

static void trim(hf_core *core, hf_batch *batch)
{
    const hf_node *node = hf_list_first(&core->dirty);
    uint64_t keep = node != NULL ? HF_CONTAINER_CONST(node, hf_slot, dirty_link)->commit_dirty : core->commit_next;
    if (keep > core->commit_next || HF_CANARY(HF_BUG_TRIMMED_EARLY)) {
        keep = core->commit_next;
    }
    size_t bytes = 0;
    uint64_t count = keep - core->journal_first;
    for (size_t i = 0; i < count; i++) {
        bytes += core->journal_lens.items[core->journal_start + i];
    }
    if (count == 0 || (count < core->options.trim_count && bytes < core->options.journal_len_max / 8)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_JOURNAL_TRIMMED);
    hf_names_trim(core, batch, keep);
    hf_batch_write(core, batch,
                   (hf_write){.table = HF_TABLE_JOURNAL,
                              .kind = HF_WRITE_DELETE_RANGE,
                              .key = {.a = (int64_t)core->journal_first},
                              .key_end = {.a = (int64_t)keep}});
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

/* What a large batch has needed is given back: it counts as used, and while more is used than may be, every run leaves memory
 * with every commit. The batch before this one is durable. */
static void give_back(hf_core *core)
{
    size_t kept = core->options.mem_max / 16 > KEPT_LEN_MIN ? core->options.mem_max / 16 : KEPT_LEN_MIN;
    hf_batch *before = &core->batches[1 - core->open_idx];
    hf_assert(!core->committing);
    hf_buf *const bufs[] = {&core->row, &core->events, &before->journal};
    for (size_t i = 0; i < HF_COUNT_OF(bufs); i++) {
        if (bufs[i]->capacity > kept) {
            hf_buf_deinit(bufs[i]);
        }
    }
    hf_arena_reset(&before->arena);
    if (before->writes.capacity * sizeof(hf_write) > kept) {
        hf_core_free_mem(core, before->writes.items, before->writes.capacity * sizeof(hf_write));
        before->writes.items = NULL;
        before->writes.count = before->writes.capacity = 0;
    }
}

/* A run's part: its number and its changes. */
static void put_changes(hf_core *core, hf_buf *out, const hf_run *run)
{
    hf_str changes = hf_str_of_len(run->log.data + HF_SLOT(run)->batch_start, run->log.len - HF_SLOT(run)->batch_start);
    hf_buf *head = &core->events;
    head->len = 0;
    hf_pb_put_uint(head, 1, (uint64_t)run->number);
    hf_pb_put_tag(head, 2, HF_PB_WIRE_BYTES);
    hf_pb_put_varint(head, changes.len);
    hf_pb_put_tag(out, 4, HF_PB_WIRE_BYTES);
    hf_pb_put_varint(out, head->len + changes.len);
    hf_buf_put(out, head->data, head->len);
    hf_buf_put(out, changes.data, changes.len);
}

static void put_body(hf_core *core, hf_buf *out)
{
    hf_pb_put_uint(out, 1, core->commit_next);
    hf_pb_put_uint(out, 2, (uint64_t)core->now.wall);
    hf_pb_put_tag(out, 3, HF_PB_WIRE_64);
    hf_buf_put(out, &core->journal_hash, sizeof core->journal_hash);
    HF_LIST_EACH(node, &core->touched)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, batch_link)->run;
        put_changes(core, out, run);
        HF_SLOT(run)->batch_start = run->log.len;
        run->commit_last = core->commit_next;
        hf_list_remove(node);
    }
    hf_pb_put_uint(out, 5, (uint64_t)core->run_next);
    hf_pb_put_uint(out, 6, (uint64_t)core->order_next);
    core->events.len = 0;
    hf_names_put(core, &core->events);
    if (core->events.len > 0) {
        hf_pb_put_bytes(out, 7, hf_str_of_len(core->events.data, core->events.len));
    }
    hf_pb_put_uint(out, 8, core->index.log_count);
}

void hf_journal_put(hf_core *core, hf_batch *batch)
{
    trim(core, batch);
    hf_buf *out = &batch->journal;
    static const char HEADER[HF_RECORD_HEADER_LEN] = {0};
    out->len = 0;
    hf_buf_put(out, HEADER, sizeof HEADER);
    put_body(core, out);
    if (core->events.status != HF_OK || out->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_key key = {.a = (int64_t)core->commit_next};
    hf_str body = hf_str_of_len(out->data + sizeof HEADER, out->len - sizeof HEADER);
    core->journal_hash = hf_digest(core->journal_hash, body);
    hf_record_seal(HF_TABLE_JOURNAL, &key, out->data, body.len);
    hf_batch_write(
        core, batch,
        (hf_write){
            .table = HF_TABLE_JOURNAL, .kind = HF_WRITE_PUT, .key = key, .value = hf_str_of_len(out->data, out->len)});
    if (HF_VEC_RESERVE(&core->runs_memory, &core->journal_lens)) {
        core->journal_lens.items[core->journal_lens.count++] = (uint32_t)body.len;
        core->journal_len += body.len;
    }
    give_back(core);
}
