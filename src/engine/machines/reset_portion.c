/* Portions of a reset: the events of the source that one step takes, from its log or from its rows, and the events of the new run that
 * one commit writes. */
#include "engine/machines/reset_private.h"

#include "engine/batch.h"
#include "engine/load.h"
#include "ledger/making.h"
#include "ledger/rows.h"

#include <stdio.h>

/* ---- Taken by a step --------------------------------------------------------------------------------------------- */

void hf_resets_begin_step(hf_core *core)
{
    core->resets.taken_len = core->resets.taken_count = 0;
}

/* Whether this step may take another event: engine-R1. */
bool hf_resets_may_take(const hf_core *core)
{
    return core->resets.taken_len < core->options.reset_portion_len &&
           core->resets.taken_count < core->options.reset_portion_count;
}

/* Whether the new run has a portion that is in no row. */
static bool is_full(const hf_core *core, const hf_reset *it)
{
    return it->made != NULL &&
           (it->made->run.log.len >= core->options.reset_portion_len ||
            it->made->run.event_count - it->made_count >= (int64_t)core->options.reset_portion_count);
}

/* Takes events from bytes that begin with event `first`; `*ret_left` are the bytes that were not looked at. `is_last`: all of them. False: the reset has
 * ended. */
static bool take_from(hf_core *core, hf_reset *it, hf_str bytes, int64_t first, bool is_last, hf_str *ret_left)
{
    hf_pb_raw field;
    *ret_left = bytes;
    while (bytes.len > 0 && core->status == HF_OK) {
        if (!hf_pb_next(&bytes, &field)) {
            hf_reset_fail(core, it, HF_ERR_STORE, "events of run %lld cannot be read; see holdfast db check",
                          (long long)it->source);
            return false;
        }
        if (field.number != HF_CHANGE_EVENT || first++ < it->next) {
            *ret_left = bytes;
            continue;
        }
        if (!is_last && (!hf_resets_may_take(core) || is_full(core, it))) {
            return true;
        }
        if (!is_last) {
            core->resets.taken_len += field.whole.len;
            core->resets.taken_count++;
            hf_assert(core->resets.taken_len - field.whole.len < core->options.reset_portion_len &&
                      core->resets.taken_count <= core->options.reset_portion_count); /* engine-R1 */
        }
        if (!hf_reset_take(core, it, field.bytes)) {
            return false;
        }
        *ret_left = bytes;
        if (it->next != first) { /* the search is over */
            return true;
        }
    }
    return core->status == HF_OK;
}

/* Events were taken from the source: the reset goes on in this step, or waits for a commit. */
static void go_on(hf_core *core, hf_reset *it)
{
    hf_reset_move(it, is_full(core, it) ? &core->resets.full : &core->resets.next);
}

/* From the log of the source. */
bool hf_reset_take_log(hf_core *core, hf_reset *it, const hf_run *run, bool is_last)
{
    int64_t first = it->log_id;
    hf_str log = {0};
    if (first == it->next && it->log_spills == HF_SLOT(run)->spills) {
        log = hf_str_of_len(run->log.data + it->log_at, run->log.len - it->log_at);
    } else {
        log = hf_log_from(run, it->next, &first);
    }
    hf_str left = {0};
    int64_t before = it->next;
    bool is_search = it->stage == RESET_FIND;
    if (!take_from(core, it, log, first, is_last, &left)) {
        return false;
    }
    bool is_found = is_search && it->stage != RESET_FIND;
    hf_assert(it->next > before || is_found || !hf_resets_may_take(core) ||
              is_full(core, it)); /* run-R2: the log has them */
    it->log_id = it->next > before ? it->next : 0;
    it->log_at = (size_t)(left.data - run->log.data);
    it->log_spills = HF_SLOT(run)->spills;
    return true;
}

static void read_rows(hf_core *core, hf_reset *it)
{
    hf_read *read = hf_read_new(core, HF_READ_RESET, HF_TABLE_HISTORY);
    if (read != NULL) {
        read->reset = it;
        read->request.key = (hf_key){.a = it->source};
        read->request.key_end = (hf_key){.a = it->source, .b = it->next + 1};
        read->request.backwards = true; /* the row that holds the event is the last that begins at or before it */
        read->request.row_max = 1;
        hf_reset_move(it, &core->resets.idle);
        hf_read_submit(core, read);
    }
}

void hf_reset_rows_read(hf_core *core, hf_reset *it, hf_read *read)
{
    hf_pb_history_record record = {0};
    hf_status status = read->request.row_count > 0
                           ? hf_history_row_open(&core->op, &read->request.rows[0], &core->scratch, &record)
                           : HF_ERR_INVALID;
    if (status == HF_ERR_NOMEM) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (status != HF_OK || record.last_id < it->next) {
        char why[64];
        (void)snprintf(why, sizeof why, "event %lld is missing", (long long)it->next);
        hf_reset_failed(core, it, why);
        return;
    }
    hf_str left = {0};
    if (take_from(core, it, record.events, record.first_id, false, &left)) {
        go_on(core, it);
    }
}

void hf_reset_failed(hf_core *core, hf_reset *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    hf_reset_fail(core, it, HF_ERR_STORE, "the history of run %lld cannot be read: %s; see holdfast db check",
                  (long long)it->source, why);
}

/* All events of the source were taken. */
static void source_ended(hf_core *core, hf_reset *it)
{
    if (it->stage == RESET_FIND) {
        if (hf_reset_found(core, it)) {
            hf_reset_move(it, &core->resets.next);
        }
        return;
    }
    hf_assert(it->stage == RESET_REAPPLY); /* a copy ends with the point */
    it->stage = it->next_run_id.len > 0 ? RESET_ASK_NEXT : RESET_ASK_CURRENT;
    hf_reset_move(it, &core->resets.next);
}

void hf_reset_take_portion(hf_core *core, hf_reset *it)
{
    const hf_run *run = hf_run_find(core, it->source);
    if (it->next > run->event_count) {
        source_ended(core, it);
    } else if (it->next <= run->spilled) {
        read_rows(core, it);
    } else if (hf_reset_take_log(core, it, run, false)) {
        go_on(core, it);
    }
}

/* ---- Written by a commit ----------------------------------------------------------------------------------------- */

bool hf_resets_can_go(const hf_core *core)
{
    return !hf_list_is_empty(&core->resets.full) || core->resets.undo.count > 0;
}

/* A portion of a run that does not exist yet. */
static void write_portion(hf_core *core, hf_commit_batch *batch, hf_reset *it)
{
    HF_PROBE(core, HF_PROBE_RESET_PORTION);
    hf_reset_number(core, it);
    hf_run *run = &it->made->run;
    hf_assert(run->event_count > it->made_count); /* run-R2: its log has events that no row has */
    hf_assert(core->status != HF_OK || hf_run_find(core, run->number) == NULL); /* engine-R2 */
    hf_history_put(&batch->writes, run, hf_str_of_len(run->log.data, run->log.len), core->options.row_len_max);
    if (!it->is_written) {
        hf_making_put(&batch->writes, run->number, it->base);
        it->is_written = true;
    }
    hf_assert(it->is_written); /* engine-R4 */
    it->made_count = run->event_count;
    run->log.len = 0;
    hf_reset_move(it, &core->resets.next);
}

void hf_resets_go(hf_core *core, hf_commit_batch *batch)
{
    for (size_t i = 0; i < core->resets.undo.count; i++) {
        HF_PROBE(core, HF_PROBE_RESET_UNDONE);
        hf_making_undo(&batch->writes, core->resets.undo.items[i]);
    }
    core->resets.undo.count = 0;
    hf_node *node = hf_list_first(&core->resets.full);
    if (node != NULL) { /* one with each commit */
        write_portion(core, batch, HF_CONTAINER(node, hf_reset, link));
    }
}
