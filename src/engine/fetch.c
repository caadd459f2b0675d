#include "engine/fetch.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/due.h"
#include "engine/input.h"
#include "engine/machines/message.h"
#include "ledger/rows.h"

static void ask(hf_core *core, hf_run *run, int64_t event_id)
{
    hf_read *read = hf_read_new(core, HF_READ_EVENT, HF_TABLE_HISTORY);
    if (read == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_EVENT_FETCHED);
    hf_core_use(core, run);
    HF_SLOT(run)->fetch_id = event_id;
    read->run = run;
    read->request.key = (hf_key){.a = run->number, .b = 0};
    read->request.key_end = (hf_key){.a = run->number, .b = event_id + 1};
    read->request.backwards = true; /* the row that holds it is the last that begins at or before it */
    read->request.row_max = 1;
    hf_read_submit(core, read);
}

/* The bytes of an event among others, of which the first is `first`. */
static bool find(hf_str events, int64_t first, int64_t event_id, hf_str *ret_bytes)
{
    hf_pb_raw field;
    while (events.len > 0 && hf_pb_next(&events, &field)) {
        if (field.number == HF_CHANGE_EVENT && first++ == event_id) {
            *ret_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

/* Whether the event has what its readers take for granted. */
static bool is_whole(const hf_pb_history_event *event)
{
    if (!hf_event_fits(event)) {
        return false;
    }
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        return event->workflow_execution_started_event_attributes->workflow_type != NULL &&
               event->workflow_execution_started_event_attributes->task_queue != NULL;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
        return event->workflow_execution_update_admitted_event_attributes->request != NULL;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
        return event->workflow_execution_update_completed_event_attributes->outcome != NULL;
    default:
        return true;
    }
}

static bool is_it(const hf_pb_history_event *event, int64_t event_id, int32_t event_type)
{
    bool is_of_type = event_type == (int32_t)HF_EVENT_TYPE_UNSPECIFIED || event->event_type == event_type;
    return event->event_id == event_id && is_of_type && is_whole(event);
}

hf_fetch hf_event_get(hf_core *core, hf_run *run, int64_t event_id, int32_t event_type, hf_pb_history_event *ret_event)
{
    hf_assert(event_id > 0 && event_id <= run->event_count && !HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    hf_slot *slot = HF_SLOT(run);
    hf_str bytes = hf_owned_str(&slot->fetched);
    if (event_id > run->spilled) {
        int64_t first = 0;
        hf_str log = hf_log_from(run, event_id, &first);
        bool is_found = find(log, first, event_id, &bytes);
        hf_assert(is_found); /* run-R2 */
    } else if (slot->fetched_id != event_id || slot->fetch_id != 0) {
        if (slot->fetch_id == 0) {
            ask(core, run, event_id);
        }
        return HF_FETCH_COMING;
    }
    if (bytes.len == 0) {
        return HF_FETCH_LOST;
    }
    bytes = hf_arena_copy(&core->scratch, bytes); /* the log may move */
    hf_status status = hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, &core->scratch, ret_event);
    if (status == HF_ERR_NOMEM || core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (status != HF_OK || !is_it(ret_event, event_id, event_type)) {
        *ret_event = (hf_pb_history_event){0};
        return HF_FETCH_LOST;
    }
    return HF_FETCH_HERE;
}

bool hf_event_for_call(hf_core *core, hf_call *call, hf_run *run, int64_t event_id, int32_t event_type,
                       hf_pb_history_event *ret_event)
{
    switch (hf_event_get(core, run, event_id, event_type, ret_event)) {
    case HF_FETCH_HERE:
        return core->status == HF_OK;
    case HF_FETCH_COMING:
        HF_PROBE(core, HF_PROBE_LOAD_WAITED);
        call->place = HF_PLACE_ELSEWHERE;
        hf_list_push_front(&HF_SLOT(run)->waiting, &call->link);
        hf_assert(hf_list_first(&HF_SLOT(run)->waiting) == &call->link); /* engine-N1 */
        return false;
    case HF_FETCH_LOST:
        break;
    }
    hf_call_fail(core, call, HF_ERR_STORE, "event %lld of run %lld cannot be read; see holdfast db check",
                 (long long)event_id, (long long)run->number);
    return false;
}

bool hf_event_for_due(hf_core *core, hf_run *run, int64_t event_id, int32_t event_type, hf_pb_history_event *ret_event,
                      bool *ret_is_lost)
{
    hf_fetch fetch = hf_event_get(core, run, event_id, event_type, ret_event);
    *ret_is_lost = fetch == HF_FETCH_LOST;
    HF_SLOT(run)->fetch_due = fetch == HF_FETCH_COMING || HF_SLOT(run)->fetch_due;
    return fetch != HF_FETCH_COMING;
}

/* The inputs that waited are decided. If one of them needs another event, the rest goes on waiting. */
void hf_fetch_go_on(hf_core *core, hf_run *run)
{
    hf_slot *slot = HF_SLOT(run);
    hf_assert(slot->fetch_id != 0); /* engine-N2 */
    slot->fetch_id = 0;
    if (slot->fetch_tell) {
        slot->fetch_tell = false;
        hf_core_reset_scratch(core);
        hf_listener_tell(core, run);
    }
    if (slot->fetch_due) {
        slot->fetch_due = false;
        hf_due_again(core, run);
    }
    hf_node *node = NULL;
    while (core->status == HF_OK && slot->fetch_id == 0 && (node = hf_list_pop_front(&slot->waiting)) != NULL) {
        hf_core_reset_scratch(core);
        hf_input_run(core, HF_CONTAINER(node, hf_call, link), run);
    }
    if (core->status == HF_OK && slot->fetch_id == 0) { /* engine-N2 */
        hf_owned_free(&core->runs_memory, &slot->fetched);
        slot->fetched_id = 0;
        hf_core_unuse(core, run);
    }
}

static hf_status take(hf_core *core, hf_read *read, hf_str *ret_bytes)
{
    const hf_run *run = read->run;
    hf_pb_history_record record;
    if (read->request.row_count == 0) {
        return hf_fail(&core->op, HF_ERR_INVALID, "run %lld: event %lld is missing", (long long)run->number,
                       (long long)HF_SLOT(run)->fetch_id);
    }
    HF_TRY(hf_history_row_open(&core->op, &read->request.rows[0], &core->scratch, &record));
    return find(record.events, record.first_id, HF_SLOT(run)->fetch_id, ret_bytes)
               ? HF_OK
               : hf_fail(&core->op, HF_ERR_INVALID, "run %lld: event %lld is missing in its row",
                         (long long)run->number, (long long)HF_SLOT(run)->fetch_id);
}

static void arrived(hf_core *core, hf_run *run, hf_str bytes)
{
    hf_slot *slot = HF_SLOT(run);
    hf_owned_free(&core->runs_memory, &slot->fetched);
    hf_owned_set(&core->runs_memory, &slot->fetched, bytes);
    slot->fetched_id = slot->fetch_id;
    hf_fetch_go_on(core, run);
}

void hf_fetch_done(hf_core *core, hf_read *read)
{
    hf_assert(HF_SLOT(read->run)->fetch_id > 0);
    hf_str bytes = {0};
    hf_status status = take(core, read, &bytes);
    if (status == HF_ERR_NOMEM) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (status != HF_OK) {
        hf_fetch_failed(core, read);
        return;
    }
    arrived(core, read->run, bytes);
}

void hf_fetch_failed(hf_core *core, hf_read *read)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    arrived(core, read->run, HF_STR("")); /* an empty event counts as lost */
}
