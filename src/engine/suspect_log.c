/* Warnings in the log about suspects (suspect.c): when a store is opened, and when a process has gone that worked through this one. The runs
 * are in memory when a store is opened: they were held by the process that ended, so opening has loaded them. */
#include "engine/loop_private.h"

#include "base/fields.h"
#include "engine/load.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "history/limits.h"

enum { NAME_LEN_MAX = 100 }; /* bytes of an id or a type in a line of the log */

static int cut(hf_str text)
{
    return text.len < NAME_LEN_MAX ? (int)text.len : NAME_LEN_MAX;
}

/* `activity`: its type; empty = it is the workflow task. */
static void log_suspect(hf_engine *engine, const hf_run *run, hf_str activity, const hf_task *task, int64_t from)
{
    hf_str id = hf_owned_str(&run->workflow_id);
    hf_str type = hf_owned_str(&run->workflow_type);
    hf_str which = activity.len > 0 ? activity : HF_STR("(the workflow itself)");
    int64_t pause = from > engine->core->now.wall ? from - engine->core->now.wall : 0;
    char fields[2 * HF_MESSAGE_LEN_MAX];
    hf_fields_format(fields, sizeof fields, "workflow=%.*s type=%.*s activity=%.*s times=%u next_in_ms=%lld why=%s",
                     cut(id), id.data, cut(type), type.data, cut(which), which.data, (unsigned)task->crashes,
                     (long long)(pause / 1000000),
                     "the program ended each time while it had this task in hand, so its code may crash: repair it, or "
                     "end the run with hf_terminate; it is handed out last and alone");
    engine->options.log(engine->options.log_state, HF_LOG_WARN, "task_ends_program", fields);
}

void hf_loop_log_suspects(hf_engine *engine)
{
    if (engine->options.log == NULL) {
        return;
    }
    HF_LIST_EACH(node, &engine->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || !hf_run_is_open(run)) {
            continue;
        }
        if (run->wft.task.crashes >= HF_SUSPECT_FROM) {
            log_suspect(engine, run, HF_STR(""), &run->wft.task, run->wft.pause_until);
        }
        for (size_t i = 0; i < run->activities.count; i++) {
            const hf_activity *activity = run->activities.items[i];
            if (activity->task.crashes >= HF_SUSPECT_FROM) {
                log_suspect(engine, run, activity->activity_type, &activity->task, activity->scheduled_time);
            }
        }
    }
}

void hf_loop_log_suspect(hf_engine *engine, hf_str task_token)
{
    hf_token token;
    if (engine->options.log == NULL || !hf_token_decode(engine->core, task_token, &token)) {
        return;
    }
    const hf_run *run = hf_run_find(engine->core, token.run);
    if (run == NULL || HF_SLOT(run)->loading || HF_SLOT(run)->bad || !hf_run_is_open(run)) {
        return; /* one that is still read is counted all the same, and show tells */
    }
    int64_t now = engine->core->now.wall;
    if (token.kind == HF_TASK_WORKFLOW && hf_task_is_suspect(&run->wft.task) && run->wft.pause_until > now) {
        log_suspect(engine, run, HF_STR(""), &run->wft.task, run->wft.pause_until);
    }
    const hf_activity *activity = token.kind == HF_TASK_ACTIVITY ? hf_run_activity(run, token.scheduled_id) : NULL;
    if (activity != NULL && hf_task_is_suspect(&activity->task) && activity->scheduled_time > now) {
        log_suspect(engine, run, activity->activity_type, &activity->task, activity->scheduled_time);
    }
}
