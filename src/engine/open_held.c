/* Opening: tasks that in-process workers of an earlier process held are taken from them, and handed out again. */
#include "engine/open_private.h"

#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "ledger/rows.h"

typedef struct held_walk {
    hf_opening *o;
    int64_t count; /* rows */
    bool any_bad;  /* a record cannot be read, so its run is not known */
} held_walk;

/* The same for the rows of all runs. */
typedef struct holder_walk {
    hf_opening *o;
    int64_t count; /* rows of held tasks that the runs name */
    bool any_bad;  /* a run cannot be read, so it may name some */
} holder_walk;

/* Loads the run of a row if the row says that the task table has a held task of it. A row that cannot be read may be such a run: the
 * run is bad from now on. */
static hf_status load_holder(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    holder_walk *walk = arg;
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    int64_t count = 0;
    for (size_t i = 0; is_good && i < state.rows_written.count; i++) {
        count += hf_str_equal(state.rows_written.items[i].queue, HF_QUEUE_HELD) ? 1 : 0;
    }
    walk->count += count;
    walk->any_bad = walk->any_bad || !is_good;
    hf_run *run = NULL;
    hf_core_reset_scratch(walk->o->core);
    return count > 0 || !is_good ? hf_open_run(op, walk->o->core, walk->o->store, row->key.a, &run) : HF_OK;
}

static hf_status load_held_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    held_walk *walk = arg;
    hf_core *core = walk->o->core;
    hf_pb_task_record record;
    hf_op bad;
    hf_op_init(&bad);
    walk->count++;
    hf_status status = hf_task_row_open(&bad, row, arena, &record);
    if (status == HF_ERR_INVALID) {
        HF_PROBE(core, HF_PROBE_BAD_RECORD);
        walk->any_bad = true;
        return HF_OK;
    }
    if (status != HF_OK) {
        return hf_fail(op, status, "%s", bad.message);
    }
    hf_run *run = NULL;
    hf_core_reset_scratch(core);
    return hf_open_run(op, core, walk->o->store, record.run, &run);
}

hf_status hf_open_held(hf_op *op, hf_opening *o)
{
    held_walk walk = {.o = o};
    hf_key from = {HF_QUEUE_HELD, 0, 0};
    hf_key to = {HF_QUEUE_HELD, INT64_MAX, 0};
    HF_TRY(hf_store_each_row(op, o->store, o->core->memory, HF_TABLE_TASK, &from, &to, load_held_row, &walk));
    hf_core *core = o->core;
    core->held_rows = o->held >= 0 ? o->held : walk.count;
    if (!walk.any_bad && core->held_rows == walk.count) {
        return HF_OK;
    }
    /* A damaged record does not tell its run, and one whose key is wrong is not found (ledger-J4). But the run's row names the record: all
     * runs are read, however long that takes. */
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    holder_walk holders = {.o = o};
    HF_TRY(hf_store_each_row(op, o->store, core->memory, HF_TABLE_RUN, NULL, NULL, load_holder, &holders));
    core->held_rows = holders.any_bad ? core->held_rows : holders.count;
    return HF_OK;
}

static bool is_of_dead(const hf_core *core, uint64_t incarnation)
{
    return incarnation != 0 && incarnation != core->incarnation;
}

void hf_open_hand_out(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->bad) {
        return;
    }
    hf_message_send_all(core, run);
    hf_deletion_resume(core, run);
    if (!hf_run_is_open(run)) {
        return;
    }
    bool news = false;
    int64_t last = 0;
    for (size_t i = 0; i < run->activities.count && core->status == HF_OK;) {
        hf_activity *activity = run->activities.items[i];
        if (activity->scheduled_id <= last) {
            i++;
            continue;
        }
        last = activity->scheduled_id;
        hf_core_reset_scratch(core);
        /* An activity that was given back waits for its next worker: that attempt was not lost. */
        bool held = activity->state == HF_ACTIVITY_STARTED && !activity->again;
        if (held && is_of_dead(core, activity->incarnation)) {
            news = hf_activity_lost(core, run, activity) || news;
        }
    }
    if (run->wft.state == HF_WFT_STARTED && is_of_dead(core, run->wft.incarnation)) {
        hf_wft_lost(core, run, core->options.was_left_open);
    } else if (run->wft.state == HF_WFT_SCHEDULED && run->wft.sticky && core->status == HF_OK) {
        hf_core_reset_scratch(core);
        hf_wft_move_to_all(core,
                           run); /* nobody polls a sticky queue yet, and its worker may have gone with the process */
    }
    if (news) {
        hf_wft_schedule(core, run);
    }
}
