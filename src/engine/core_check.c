/* For tests: checks that the runs in memory match their histories; a hash over the whole state. */
#include "engine/core_private.h"

#include "engine/matching.h"
#include "engine/unwritten.h"
#include "ledger/rows.h"

static hf_status check_run(hf_op *op, hf_core *core, hf_store *store, hf_run *run)
{
    hf_buf history;
    hf_buf_init(&history, core->memory, SIZE_MAX / 4);
    hf_status status = hf_history_read(op, store, run, core->memory, &history);
    if (status == HF_OK) {
        status = hf_rebuild_compare(op, &core->runs_memory, run, hf_str_of_len(history.data, history.len));
    }
    hf_buf_deinit(&history);
    return status;
}

/* A task waits in the queue that the state of its run names: a load of the run puts it there, and the rows must have it there, too. */
static hf_status check_place(hf_op *op, const hf_run *run, const hf_task *task, char kind, hf_str name)
{
    char text[HF_QUEUE_TEXT_LEN];
    size_t len = 0;
    if (task->queue == NULL || (hf_queue_text(kind, hf_owned_str(&run->namespace), name, text, &len) &&
                                hf_str_equal(hf_owned_str(&task->queue->text), hf_str_of_len(text, len)))) {
        return HF_OK;
    }
    return hf_fail(op, HF_ERR_INVALID, "run %lld: the task of event %lld waits in a queue that is not '%.*s'",
                   (long long)run->number, (long long)task->scheduled_id, HF_STR_ARGS(name));
}

static hf_status check_places(hf_op *op, const hf_run *run)
{
    const hf_wft *wft = &run->wft;
    bool sticky = wft->sticky && wft->state == HF_WFT_SCHEDULED && run->sticky_queue.len > 0;
    HF_TRY(check_place(op, run, &wft->task, 'w', hf_owned_str(sticky ? &run->sticky_queue : &run->task_queue)));
    for (size_t i = 0; i < run->activities.count; i++) {
        HF_TRY(check_place(op, run, &run->activities.items[i]->task, 'a', run->activities.items[i]->task_queue));
    }
    return HF_OK;
}

hf_status hf_core_check_run(hf_op *op, hf_core *core, hf_store *store, hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->bad) {
        return HF_OK;
    }
    hf_run_check(run);
    HF_TRY(check_places(op, run));
    /* Rows of a commit that is under way cannot be read yet. */
    bool on_its_way =
        run->spilled > 0 && run->commit_last > core->commit_durable && !hf_node_is_linked(&HF_SLOT(run)->dirty_link);
    return on_its_way ? HF_OK : check_run(op, core, store, run);
}

hf_status hf_core_check(hf_op *op, hf_core *core, hf_store *store)
{
    HF_LIST_EACH(node, &core->runs_all)
    {
        HF_TRY(hf_core_check_run(op, core, store, &HF_CONTAINER(node, hf_slot, all_link)->run));
    }
    return HF_OK;
}

uint64_t hf_core_hash(hf_core *core)
{
    uint64_t hash = hf_hash_mix(core->commit_next, (uint64_t)core->run_next);
    hash = hf_hash_mix(hash, (uint64_t)core->order_next);
    hash = hf_hash_mix(hash, (uint64_t)core->alone.run);
    HF_LIST_EACH(node, &core->suspects)
    {
        hash = hf_hash_mix(hash, (uint64_t)HF_CONTAINER(node, hf_task, link)->order);
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        hf_core_reset_scratch(core);
        core->row.len = 0;
        hf_run_encode(&core->runs_memory, run, HF_ENCODE_ALL, HF_STR(""), &core->row);
        hash = hf_hash_bytes(hash, core->row.data, core->row.len);
        hash = hf_hash_bytes(hash, run->log.data, run->log.len);
        hash = hf_unwritten_hash(HF_SLOT(run), hash);
        for (size_t i = 0; i < run->activities.count; i++) {
            hash = hf_hash_mix(hash, (uint64_t)run->activities.items[i]->heard_time);
        }
    }
    hash = hf_resets_hash(core, hash);
    for (size_t i = 0; i < HF_NAME_BUCKETS; i++) {
        const hf_name_bucket *bucket = &core->index.buckets[i];
        if (bucket->entries.count > 0) {
            hash =
                hf_hash_bytes(hash, (const char *)bucket->entries.items, bucket->entries.count * sizeof(hf_name_entry));
        }
    }
    return hash;
}
