/* The facts of a run's first event that its state keeps.
 *
 * Much of that event is rare: a parent, a retry policy, a cron schedule. These are kept as one message, which is empty for an ordinary run,
 * so that such a run does not pay for them. Fields of their own hold what every run has (type, queue, timeouts). Data of users (input,
 * header, last result) stays in the event. Memo and search attributes are as the event has them until they are upserted. */
#include "run/run.h"

#include <string.h>

/* Bytes of a message; empty if it is NULL or has nothing. */
static void set_encoded(hf_run_memory *memory, hf_owned *owned, const hf_pb_type *type, const void *msg)
{
    hf_buf bytes;
    hf_buf_init(&bytes, memory->heap, SIZE_MAX / 4);
    if (msg != NULL) {
        hf_pb_encode(type, msg, &bytes);
    }
    if (bytes.status != HF_OK) {
        hf_run_memory_fail(memory);
    } else if (bytes.len > 0 || owned->len > 0) {
        hf_owned_set(memory, owned, hf_str_of_len(bytes.data, bytes.len));
    }
    hf_buf_deinit(&bytes);
}

static void learn_rare(hf_run_memory *memory, hf_run *run, const hf_start_facts *attrs)
{
    hf_start_facts rare = *attrs;
    rare.workflow_type = NULL;
    rare.task_queue = NULL;
    rare.input = NULL;
    rare.header = NULL;
    rare.memo = NULL;
    rare.search_attributes = NULL;
    rare.continued_failure = NULL;
    rare.last_completion_result = NULL;
    rare.prev_auto_reset_points = NULL;
    rare.workflow_execution_timeout = rare.workflow_run_timeout = rare.workflow_task_timeout = (hf_pb_duration){0};
    rare.workflow_execution_expiration_time = (hf_pb_timestamp){0};
    rare.identity = rare.workflow_id = HF_STR("");
    rare.eager_execution_accepted = false;
    if (hf_str_equal(rare.original_execution_run_id, rare.first_execution_run_id)) {
        rare.original_execution_run_id = HF_STR("");
    }
    rare.first_execution_run_id = HF_STR("");
    rare.attempt = rare.attempt > 1 ? rare.attempt : 0;
    set_encoded(memory, &run->start, &hf_pb_workflow_execution_started_event_attributes_type, &rare);
}

void hf_run_learn(hf_run_memory *memory, hf_run *run, const hf_pb_history_event *event)
{
    const hf_start_facts *attrs = event->workflow_execution_started_event_attributes;
    hf_assert(run->event_count > 0 && attrs != NULL); /* there is a first event */
    set_encoded(memory, &run->user_metadata, &hf_pb_user_metadata_type, event->user_metadata);
    learn_rare(memory, run, attrs);
    set_encoded(memory, &run->memo, &hf_pb_memo_type, attrs->memo);
    set_encoded(memory, &run->search_attributes, &hf_pb_search_attributes_type, attrs->search_attributes);
    if (attrs->workflow_execution_expiration_time.has) {
        run->expiration = hf_pb_timestamp_time(attrs->workflow_execution_expiration_time).ns;
    } else { /* histories of other engines may not say it */
        int64_t time = hf_pb_timestamp_time(event->event_time).ns;
        int64_t ends = hf_bound_end(time, hf_pb_duration_span(attrs->workflow_execution_timeout).ns);
        run->expiration = ends == INT64_MAX ? 0 : ends;
    }
}

hf_status hf_run_learn_late(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str events)
{
    hf_pb_raw field;
    hf_pb_history_event event = {0};
    bool is_first = hf_pb_next(&events, &field) && field.number == HF_CHANGE_EVENT &&
                    hf_pb_decode(op, &hf_pb_history_event_type, field.bytes, memory->scratch, &event) == HF_OK &&
                    event.event_id == 1 && event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED &&
                    event.attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES;
    if (!is_first) {
        (void)hf_fail(op, HF_ERR_INVALID, "run %lld: its first event cannot be read", (long long)run->number);
        return hf_run_memory_judge(op, memory, HF_ERR_INVALID);
    }
    hf_run_learn(memory, run, &event);
    run->is_unlearned = false;
    return memory->status;
}

void hf_run_set_start(hf_run_memory *memory, hf_run *run, const hf_start_facts *facts)
{
    set_encoded(memory, &run->start, &hf_pb_workflow_execution_started_event_attributes_type, facts);
}

bool hf_run_has_listener(const hf_run *run, hf_arena *arena, hf_start_facts *ret_facts)
{
    return run->start.len > 0 && hf_run_start_facts(run, arena, ret_facts) &&
           ret_facts->parent_workflow_execution != NULL;
}

bool hf_run_start_facts(const hf_run *run, hf_arena *arena, hf_start_facts *ret_facts)
{
    hf_op op;
    hf_op_init(&op);
    memset(ret_facts, 0, sizeof *ret_facts);
    return run->start.len == 0 || hf_pb_decode(&op, &hf_pb_workflow_execution_started_event_attributes_type,
                                               hf_owned_str(&run->start), arena, ret_facts) == HF_OK;
}
