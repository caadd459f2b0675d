/* Priorities. A task has the key of its activity, else that of its run, else the default. Which tasks are handed out first does not depend
 * on it; descriptions of task queues tell it. */
#include "run/run.h"

/* WorkflowExecutionStartedEventAttributes.priority and Priority.priority_key */
enum { STARTED_PRIORITY = 35, PRIORITY_KEY = 1 };

/* The bytes of the run's priority among the rare facts of its start; empty = it has none. Most runs have no rare facts at all. */
static hf_str bytes_of(const hf_run *run)
{
    hf_str rest = hf_owned_str(&run->start);
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number == STARTED_PRIORITY) {
            return field.bytes;
        }
    }
    return HF_STR("");
}

hf_pb_priority *hf_run_priority(const hf_run *run, hf_arena *arena)
{
    hf_str bytes = hf_arena_copy(arena, bytes_of(run));
    hf_pb_priority *priority = bytes.len > 0 ? HF_ARENA_NEW(arena, hf_pb_priority) : NULL;
    hf_op op;
    hf_op_init(&op);
    bool is_good = priority != NULL && hf_pb_decode(&op, &hf_pb_priority_type, bytes, arena, priority) == HF_OK;
    return is_good ? priority : NULL;
}

hf_pb_priority *hf_priority_merge(hf_arena *arena, hf_pb_priority *of_run, hf_pb_priority *own)
{
    if (of_run == NULL || own == NULL) {
        return own != NULL ? own : of_run;
    }
    hf_pb_priority *merged = HF_ARENA_NEW(arena, hf_pb_priority);
    if (merged != NULL) {
        merged->priority_key = own->priority_key != 0 ? own->priority_key : of_run->priority_key;
        merged->fairness_key = own->fairness_key.len > 0 ? own->fairness_key : of_run->fairness_key;
        merged->fairness_weight = own->fairness_weight != 0 ? own->fairness_weight : of_run->fairness_weight;
    }
    return merged;
}

static int64_t key_of(const hf_run *run)
{
    hf_str rest = bytes_of(run);
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number == PRIORITY_KEY) {
            return (int64_t)field.value;
        }
    }
    return 0;
}

uint8_t hf_task_priority(const hf_task *task)
{
    int64_t key = task->scheduled_id != 0 ? HF_CONTAINER_CONST(task, hf_activity, task)->priority_key : 0;
    key = key != 0 ? key : key_of(task->run);
    key = key > 0 ? key : HF_PRIORITY_DEFAULT;
    key = key < HF_PRIORITY_LEVELS ? key : HF_PRIORITY_LEVELS;
    hf_assert(key >= 1 && key <= HF_PRIORITY_LEVELS);
    return (uint8_t)key;
}
