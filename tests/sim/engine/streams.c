/* Streams, and the feed of changes.
 *
 * Every record that a worker publishes has a text of its own, which names the run. A reader sees consecutive numbers, from the one that it asked
 * for on. A text is seen under one number only, and a number of a run with one text only: nothing is doubled. At the end every record that
 * was acknowledged, or that somebody has seen, is there: nothing is lost over crashes and evictions, and nobody was told before the
 * commit. The records of a run follow those of the run before it. */
#include "sim/engine/sim.h"

#include "sim/engine/children.h"

#include "history/payload.h"

#include <stdlib.h>
#include <string.h>

enum { CHANGES_READ = 6 }; /* pages of the feed, by one reader */

/* ---- Publishing -------------------------------------------------------------------------------------------------------- */

static hf_pb_stream_record_list publish(sim_world *world, sim_call *call, size_t run, size_t count)
{
    hf_pb_stream_record_list list = {HF_ARENA_ARRAY(&call->arena, hf_pb_stream_record, count), 0};
    call->records = world->records.count;
    for (; list.count < count; list.count++) {
        sim_record *record = SIM_PUSH(&world->records);
        *record = (sim_record){.run = run, .sequence = -1};
        (void)snprintf(record->text, sizeof record->text, "r%zu of %zu", world->records.count - 1, run);
        hf_pb_payload *payload = HF_ARENA_NEW(&call->arena, hf_pb_payload);
        *payload = hf_payload_bytes(&call->arena, sim_copy(call, record->text));
        list.items[list.count] = (hf_pb_stream_record){.type = HF_STR("sim"), .payload = payload};
    }
    call->record_count = count;
    return list;
}

void sim_publish_task(sim_world *world, sim_call *call, const char *run_id, const char *workflow_id,
                      hf_pb_respond_workflow_task_completed_request *request)
{
    if (!world->is_healed && sim_chance(world, 350)) {
        size_t run = sim_log_run(world, hf_str_of(run_id), hf_str_of(workflow_id));
        request->holdfast_stream = publish(world, call, run, 1 + (size_t)sim_upto(world, 3));
    }
}

void sim_publish_beat(sim_world *world, sim_call *call, sim_slot *slot,
                      hf_pb_record_activity_task_heartbeat_request *request)
{
    if (sim_chance(world, 400)) {
        return;
    }
    if (slot->has_record && sim_chance(world, 400)) { /* once more: it counts once */
        hf_pb_payload *payload = HF_ARENA_NEW(&call->arena, hf_pb_payload);
        hf_pb_stream_record *again = HF_ARENA_NEW(&call->arena, hf_pb_stream_record);
        *payload = hf_payload_bytes(&call->arena, sim_copy(call, world->records.items[slot->record].text));
        *again = (hf_pb_stream_record){.type = HF_STR("sim"), .payload = payload};
        request->holdfast_stream = (hf_pb_stream_record_list){again, 1};
        call->records = slot->record;
        call->record_count = 1;
    } else {
        size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
        request->holdfast_stream = publish(world, call, run, 1);
        slot->record = call->records;
        slot->has_record = true;
    }
    request->holdfast_request_id = sim_copy(call, world->records.items[call->records].text);
    if (sim_chance(world, 500)) {
        request->details = NULL;
    }
}

void sim_published(sim_world *world, const sim_call *call, bool is_acked)
{
    for (size_t i = 0; is_acked && i < call->record_count; i++) {
        world->records.items[call->records + i].is_acked = true;
    }
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------- */

/* A stream that is being read; lives with its call. */
typedef struct reading {
    hf_pb_read_stream_request request; /* first */
    size_t run;                        /* that it began with */
    int pages;                         /* left */
    bool *is_over;                     /* of the judge; NULL = a client reads */
} reading;

static void ask(sim_world *world, const reading *before, int64_t from, hf_str run_id);
static void ask_changes(sim_world *world, int more);

static void saw(sim_world *world, const hf_pb_stream_record *record)
{
    unsigned long number = 0;
    char text[sizeof world->records.items->text];
    hf_str data = record->payload != NULL ? record->payload->data : HF_STR("");
    (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(data));
    number = text[0] == 'r' ? strtoul(text + 1, NULL, 10) : world->records.count;
    if (number >= world->records.count || strcmp(world->records.items[number].text, text) != 0) {
        sim_fail(world, "a stream has a record '%s' that nobody has published", text);
        return;
    }
    sim_record *known = &world->records.items[number];
    if (known->sequence >= 0 && known->sequence != record->sequence) {
        sim_fail(world, "record '%s' was seen as number %lld, and as %lld", text, (long long)known->sequence,
                 (long long)record->sequence);
    }
    for (size_t i = 0; i < world->records.count; i++) {
        const sim_record *other = &world->records.items[i];
        if (i != number && other->run == known->run && other->sequence == record->sequence) {
            sim_fail(world, "record %lld of run %s was seen as '%s', and as '%s'", (long long)record->sequence,
                     world->runs.items[known->run].run_id, other->text, text);
        }
    }
    known->sequence = record->sequence;
    known->is_found = true;
}

/* A run of which a record was acknowledged is there. */
static bool is_sure(const sim_world *world, size_t run)
{
    bool is_there = world->runs.items[run].count > 0;
    for (size_t i = 0; i < world->records.count && !is_there; i++) {
        is_there = world->records.items[i].run == run && world->records.items[i].is_acked;
    }
    return is_there;
}

static void on_read(sim_world *world, sim_call *call)
{
    const reading *it = call->call.request;
    const hf_pb_read_stream_response *response = call->call.response;
    if (it->is_over != NULL) {
        *it->is_over = true;
    }
    if (call->call.status != HF_OK) {
        const sim_run_log *log = &world->runs.items[it->run];
        bool is_there = !log->may_be_gone && is_sure(world, it->run); /* else a crash may have undone it */
        bool may_fail = sim_is_lost(call) || !is_there || call->call.status == HF_ERR_STORE ||
                        sim_had_deletes(world, log->workflow_id);
        if (!may_fail || (it->is_over != NULL && is_there)) {
            sim_fail(world, "the stream of run %s cannot be read: %s", log->run_id, call->call.message);
        }
        return;
    }
    hf_op op;
    hf_op_init(&op);
    hf_pb_stream_records page = {.records = {NULL, 0}};
    if (hf_pb_decode(&op, &hf_pb_stream_records_type, response->records, &call->arena, &page) != HF_OK) {
        sim_fail(world, "records of a stream cannot be decoded: %s", op.message);
        return;
    }
    for (size_t i = 0; i < page.records.count && !world->failed; i++) {
        if (page.records.items[i].sequence != it->request.from + (int64_t)i) {
            sim_fail(world, "engine-T1: record %lld of a stream is in place %lld",
                     (long long)page.records.items[i].sequence, (long long)it->request.from + (long long)i);
        }
        saw(world, &page.records.items[i]);
    }
    const char *id =
        world->runs.items[it->run].workflow_id; /* records of a run that was deleted, or is damaged, are missing */
    bool is_gap_fine = !response->is_gap || sim_had_deletes(world, id) || sim_is_still_damaged(world, hf_str_of(id));
    int64_t next = it->request.from + (int64_t)page.records.count;
    if (!is_gap_fine || (response->next != next && !response->is_gap)) {
        sim_fail(world, "engine-T1: a page of %zu records from %lld on is followed by %lld", page.records.count,
                 (long long)it->request.from, (long long)response->next);
    }
    bool is_done = response->is_end || (page.records.count == 0 && !response->is_gap && it->is_over == NULL);
    if (!world->failed && !is_done && it->pages > 0) {
        ask(world, it, response->next, response->run_id);
    }
}

static void ask(sim_world *world, const reading *before, int64_t from, hf_str run_id)
{
    sim_call *call = sim_call_new(world, HF_METHOD_READ_STREAM, NULL, on_read);
    reading *it = HF_ARENA_NEW(&call->arena, reading);
    const sim_run_log *log = &world->runs.items[before->run];
    it->run = before->run;
    it->pages = before->pages - 1;
    it->is_over = before->is_over;
    if (it->is_over != NULL) {
        *it->is_over = false;
    }
    it->request.namespace = HF_STR(SIM_NAMESPACE);
    it->request.execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    it->request.execution->workflow_id = sim_copy(call, log->workflow_id);
    it->request.execution->run_id = hf_arena_copy(&call->arena, run_id);
    it->request.from = from;
    it->request.maximum_page_size = before->request.maximum_page_size;
    it->request.maximum_page_bytes = before->request.maximum_page_bytes;
    it->request.wait_new_record = before->request.wait_new_record;
    call->call.request = it;
    sim_call_submit(world, call);
}

/* Which runs have changed: only that the call is answered. */
static void on_changes(sim_world *world, sim_call *call)
{
    if (call->call.status != HF_OK) {
        if (!sim_is_lost(call) && call->call.status != HF_ERR_STORE) {
            sim_fail(world, "%s: %s", hf_method_info_of(call->call.method)->name, call->call.message);
        }
        return;
    }
    if (call->call.method != HF_METHOD_READ_CHANGES) {
        return;
    }
    const hf_pb_read_changes_response *response = call->call.response;
    if (!response->is_gap) {
        for (size_t i = 0; i < response->changes.count; i++) {
            (void)sim_log_run(world, response->changes.items[i].execution->run_id,
                              response->changes.items[i].execution->workflow_id);
        }
    }
    world->cursor_len = response->cursor.len <= sizeof world->cursor ? response->cursor.len : 0;
    memcpy(world->cursor, response->cursor.data != NULL ? response->cursor.data : "", world->cursor_len);
    if (call->log > 0) {
        ask_changes(world, (int)call->log - 1);
    }
}

static void ask_changes(sim_world *world, int more)
{
    sim_call *call = sim_call_new(world, HF_METHOD_READ_CHANGES, NULL, on_changes);
    call->log = (uint64_t)more;
    if (more == CHANGES_READ && sim_chance(world, 300)) {
        hf_pb_list_task_queues_request *request = HF_ARENA_NEW(&call->arena, hf_pb_list_task_queues_request);
        call->call.method = HF_METHOD_LIST_TASK_QUEUES;
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->page_size = sim_chance(world, 500) ? 1 + (int32_t)sim_upto(world, 3) : 0;
        call->call.request = request;
    } else {
        hf_pb_read_changes_request *request = HF_ARENA_NEW(&call->arena, hf_pb_read_changes_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->cursor = hf_arena_copy(&call->arena, hf_str_of_len(world->cursor, world->cursor_len));
        request->maximum_page_size = sim_chance(world, 300) ? 1 + (int32_t)sim_upto(world, 5) : 0;
        request->wait_new_change = sim_chance(world, 600);
        call->call.request = request;
    }
    sim_call_submit(world, call);
}

static bool has_follower(const sim_world *world, size_t run)
{
    for (size_t i = 0; i < world->runs.count; i++) {
        const sim_run_log *log = &world->runs.items[i];
        if (i != run && log->is_named && strcmp(log->workflow_id, world->runs.items[run].workflow_id) == 0) {
            return true;
        }
    }
    return false;
}

size_t sim_published_run(sim_world *world)
{
    size_t from = world->records.count > 0 ? hf_rng_below(&world->rng, world->records.count) : 0;
    for (size_t i = 0; i < world->records.count; i++) {
        const sim_record *record = &world->records.items[(from + i) % world->records.count];
        const sim_run_log *log = &world->runs.items[record->run];
        if (record->is_acked && !log->may_be_gone && has_follower(world, record->run) &&
            !sim_is_child_name(hf_str_of(log->workflow_id))) {
            return record->run;
        }
    }
    return SIZE_MAX;
}

static bool is_gone(const sim_world *world, size_t run)
{
    return world->runs.items[run].is_deleted || sim_is_retired(world, world->runs.items[run].run_id);
}

/* The newest run of the same workflow that is not deleted: what is left of the chain. */
static size_t rest_of(const sim_world *world, size_t run)
{
    size_t rest = run;
    for (size_t i = 0; i < world->runs.count; i++) {
        if (!is_gone(world, i) && strcmp(world->runs.items[i].workflow_id, world->runs.items[run].workflow_id) == 0) {
            rest = i;
        }
    }
    return rest;
}

void sim_read_stream(sim_world *world)
{
    if (sim_chance(world, 200)) {
        ask_changes(world, CHANGES_READ);
        return;
    }
    if (world->runs.count == 0) {
        return;
    }
    reading it = {.run = hf_rng_below(&world->rng, world->runs.count), .pages = 1 + (int)sim_upto(world, 12)};
    bool is_rest = sim_chance(world, 300);
    for (size_t i = 0; is_rest && i < world->records.count; i++) {
        size_t run = world->records.items[i].run;
        it.run = is_gone(world, run) ? rest_of(world, run) : it.run;
    }
    const sim_run_log *log = &world->runs.items[it.run];
    if (log->workflow_id[0] == '\0') {
        return;
    }
    it.request.maximum_page_size = sim_chance(world, 500) ? 1 + (int32_t)sim_upto(world, 4) : 0;
    it.request.maximum_page_bytes = sim_chance(world, 200) ? 1 : 0;
    it.request.wait_new_record = sim_chance(world, 600);
    ask(world, &it, is_rest || sim_chance(world, 600) ? 0 : sim_upto(world, 6),
        !log->is_deleted && sim_chance(world, 700) ? hf_str_of(log->run_id) : HF_STR(""));
}

/* ---- The end ------------------------------------------------------------------------------------------------------------ */

static bool has_gone_before(const sim_world *world, size_t run)
{
    for (size_t i = 0; i < world->records.count; i++) {
        const sim_record *record = &world->records.items[i];
        if (record->is_acked && is_gone(world, record->run) &&
            strcmp(world->runs.items[record->run].workflow_id, world->runs.items[run].workflow_id) == 0) {
            return true;
        }
    }
    return false;
}

/* What is left of chains of which a run with records was deleted. */
static void read_rests(sim_world *world)
{
    for (size_t run = 0; run < world->runs.count && !world->failed; run++) {
        bool is_over = false;
        reading it = {.run = run, .pages = 4, .is_over = &is_over};
        if (is_gone(world, run) || world->runs.items[run].may_be_gone || world->runs.items[run].count == 0 ||
            !has_gone_before(world, run)) {
            continue; /* or it was lost before its first commit */
        }
        ask(world, &it, 0, hf_str_of(world->runs.items[run].run_id));
        while (!is_over && !world->failed && sim_world_step(world)) {
        }
    }
}

static void on_deleted(sim_world *world, sim_call *call)
{
    if (call->call.status != HF_OK) {
        sim_fail(world, "run %s cannot be deleted: %s", world->runs.items[call->log].run_id, call->call.message);
    }
    world->runs.items[call->log].is_deleted = true;
}

/* At the very end: a run with records is deleted, and the rest of its chain is read. */
static void delete_one(sim_world *world)
{
    size_t run = world->knobs.deletes > 0 && !world->knobs.has_damage ? sim_published_run(world) : SIZE_MAX;
    int workflow = 0;
    if (run == SIZE_MAX || sscanf(world->runs.items[run].workflow_id, "wf-%d", &workflow) != 1 ||
        workflow >= SIM_WORKFLOWS_MAX) {
        return;
    }
    sim_call *call = sim_call_new(world, HF_METHOD_DELETE_WORKFLOW_EXECUTION, NULL, on_deleted);
    hf_pb_delete_workflow_execution_request *request =
        HF_ARENA_NEW(&call->arena, hf_pb_delete_workflow_execution_request);
    request->namespace = HF_STR(SIM_NAMESPACE);
    request->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = sim_copy(call, world->runs.items[run].workflow_id);
    request->workflow_execution->run_id = sim_copy(call, world->runs.items[run].run_id);
    call->call.request = request;
    call->log = run;
    world->deletes[workflow]++;
    world->runs.items[run].may_be_gone = world->runs.items[run].is_unwanted = true;
    sim_call_submit(world, call);
    if ((!sim_world_rest(world) || !world->runs.items[run].is_deleted) && !world->failed) {
        sim_fail(world, "sim-X3: the deletion of run %s does not end", world->runs.items[run].run_id);
    }
    read_rests(world);
}

static void judge_records(sim_world *world)
{
    read_rests(world);
    for (size_t i = 0; i < world->records.count; i++) {
        world->records.items[i].is_found = false;
    }
    for (size_t run = 0; run < world->runs.count && !world->failed; run++) {
        bool is_wanted = false;
        for (size_t i = 0; i < world->records.count; i++) {
            const sim_record *record = &world->records.items[i];
            is_wanted = is_wanted || (record->run == run && (record->is_acked || record->sequence >= 0));
        }
        if (!is_wanted || world->runs.items[run].may_be_gone) {
            continue;
        }
        bool is_over = false;
        reading it = {.run = run, .pages = 100000, .is_over = &is_over};
        ask(world, &it, 0, hf_str_of(world->runs.items[run].run_id));
        while (!is_over && !world->failed && sim_world_step(world)) {
        }
    }
    for (size_t i = 0; i < world->records.count && !world->failed; i++) {
        const sim_record *record = &world->records.items[i];
        if ((record->is_acked || record->sequence >= 0) && !record->is_found &&
            !world->runs.items[record->run].may_be_gone) {
            sim_fail(world, "record '%s' of run %s was %s, and is not there", record->text,
                     world->runs.items[record->run].run_id, record->is_acked ? "acknowledged" : "seen");
        }
    }
}

void sim_judge_streams(sim_world *world)
{
    judge_records(world);
    if (!world->failed) {
        delete_one(world);
    }
}
