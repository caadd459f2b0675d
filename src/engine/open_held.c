/* Opening: tasks that in-process workers of an earlier process held are taken from them, and handed out again. */
#include "engine/open_private.h"

#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "ledger/rows.h"

/* Loads the run of a row if the row says that the task table has a held task of it. A row that cannot be read may be such a run: the
 * run is bad from now on. */
static hf_status load_holder(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    const hf_opening *o = arg;
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    bool is_holder = !is_good;
    for (size_t i = 0; is_good && i < state.rows_written.count; i++) {
        is_holder = is_holder || hf_str_equal(state.rows_written.items[i].queue, HF_QUEUE_HELD);
    }
    hf_run *run = NULL;
    hf_core_reset_scratch(o->core);
    return is_holder ? hf_open_run(op, o->core, o->store, row->key.a, &run) : HF_OK;
}

typedef struct held_walk {
    hf_opening *o;
    bool any_bad; /* a record cannot be read, so its run is not known */
} held_walk;

static hf_status load_held_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    held_walk *walk = arg;
    hf_core *core = walk->o->core;
    hf_pb_task_record record;
    hf_op bad;
    hf_op_init(&bad);
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
    /* A damaged record does not tell its run, but the run's row names the record: all runs are read, however long that takes. */
    return walk.any_bad ? hf_store_each_row(op, o->store, o->core->memory, HF_TABLE_RUN, NULL, NULL, load_holder, o)
                        : HF_OK;
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
        hf_wft_lost(core, run);
    }
    if (news) {
        hf_wft_schedule(core, run);
    }
}
