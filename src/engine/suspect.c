/* Suspects: tasks that a worker in this program had each time its process ended. Such a task is called "in hand".
 *
 * Workflow or activity code that crashes takes its process down, and every other run of that process with it. At the next start
 * the same task would be handed out again, and so on for ever. The engine cannot tell such a crash from a kill or a power cut,
 * but it can count: a task of an in-process worker that is started and not answered when the store is opened by the next
 * process was in hand when the last one ended. Processes that work through the owner of a file are counted when their connection
 * ends (hf_engine_lost): their workers are in-process workers to the engine.
 *
 *     counted once or twice    handed out again at once, like any other
 *     three times or more      a suspect: after a pause that doubles each time, last, and alone
 *
 * Most suspects did not cause the crash: they only happened to be in hand. They are answered when their turn comes, which clears
 * their count. The task that crashes does so alone and is the only one that is counted; during its pause all others can run.
 *
 *     paused      in no queue; the run's deadline is the end of the pause (hf_wft_deadline, the back-off of an activity)
 *     waiting     in core->suspects: no other task waits in its queue, or it has waited LAST_SPAN
 *     alone       core->alone: with an in-process worker, which gets no other task until this one is answered, or for ALONE_SPAN
 *
 * engine-U1  hf_task.crashes is the number of processes that ended with the task in hand and without closing the store, or the service
 *     through which they work with its owner: of a workflow task since the run last completed one, of an activity in a row (an attempt
 *     that ended in any other way begins anew).
 * engine-U2  The count is durable before the task is handed out again, because the start is (hf_core_runs_ahead): after an unclean end
 *     no task goes out ahead of its commit, so that there is always something to count. It costs no commit of its own: it is a
 *     change of the run, in the commit that is the next anyway. What a lost connection adds is lost with an owner that ends before that.
 * engine-U3  At most one suspect is alone, and a suspect is in core->suspects exactly while hf_task.is_last. */
#include "engine/suspect.h"

#include "base/canary.h"
#include "engine/core_private.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "history/limits.h"

#define PAUSE_FIRST INT64_C(1000000000) /* ns, after the third time ... */
#define PAUSE_MAX (INT64_C(600) * 1000000000)
#define ALONE_SPAN INT64_C(1000000000)       /* mono ns: longest time that others wait because of a suspect */
#define LAST_SPAN (INT64_C(60) * 1000000000) /* mono ns: then one is handed out though its queue is not empty */
#define LOOK_SPAN INT64_C(10000000) /* mono ns between two looks for tasks in hand: they visit every run in memory */

uint32_t hf_suspect_count(hf_core *core, const hf_task *task, bool is_unclean)
{
    bool counts = is_unclean && task->crashes < UINT32_MAX && !HF_CANARY(HF_BUG_CRASH_NOT_COUNTED);
    uint32_t crashes = task->crashes + (counts ? 1 : 0);
    if (crashes == HF_SUSPECT_FROM) {
        HF_PROBE(core, HF_PROBE_SUSPECT);
    }
    return crashes;
}

int64_t hf_suspect_pause(uint32_t crashes)
{
    hf_assert(PAUSE_FIRST > 0 && PAUSE_FIRST <= PAUSE_MAX);
    int64_t pause = crashes >= HF_SUSPECT_FROM ? PAUSE_FIRST : 0;
    for (uint32_t i = HF_SUSPECT_FROM; i < crashes && pause < PAUSE_MAX; i++) {
        pause *= 2;
    }
    return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

/* If more than the whole pause is left, the clock was set back meanwhile: then the pause counts as over. */
bool hf_suspect_is_paused(const hf_core *core, const hf_task *task, int64_t until)
{
    return until > core->now.wall && until - core->now.wall <= hf_suspect_pause(task->crashes);
}

bool hf_task_is_suspect(const hf_task *task)
{
    return task->crashes >= HF_SUSPECT_FROM;
}

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */

void hf_suspect_add(hf_core *core, hf_task *task, hf_queue *queue)
{
    hf_assert(task->queue == NULL && !task->is_last);
    task->queue = queue;
    task->is_last = true;
    task->last_since = core->now.mono;
    queue->suspect_count++;
    HF_SLOT(task->run)->suspects++;
    hf_core_use(core, task->run);
    hf_list_push_back(&core->suspects, &task->link);
    core->suspects_look = core->now.mono;
}

void hf_suspect_remove(hf_task *task)
{
    hf_assert(task->is_last && task->queue->suspect_count > 0 && HF_SLOT(task->run)->suspects > 0); /* engine-U3 */
    hf_list_remove(&task->link);
    task->queue->suspect_count--;
    task->queue = NULL;
    task->is_last = false;
    /* The removal of the task is part of a change of the run: once that is written the run may leave memory again. */
    HF_SLOT(task->run)->suspects--;
}

/* ---- Alone ----------------------------------------------------------------------------------------------------------- */

static bool is_in_hand(const hf_core *core, const hf_run *run)
{
    if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || !hf_run_is_open(run)) {
        return false;
    }
    const hf_wft *wft = &run->wft;
    if (wft->state == HF_WFT_STARTED && !wft->again && wft->incarnation == core->incarnation) {
        return true;
    }
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        if (activity->state == HF_ACTIVITY_STARTED && !activity->again && activity->incarnation == core->incarnation) {
            return true;
        }
    }
    return false;
}

/* Whether any task is in hand. Runs that have left memory are not checked: their tasks may be in hand together with a suspect. */
static bool is_anything_in_hand(const hf_core *core)
{
    HF_LIST_EACH(node, &core->runs_all)
    {
        if (is_in_hand(core, &HF_CONTAINER(node, hf_slot, all_link)->run)) {
            return true;
        }
    }
    return false;
}

/* Whether the suspect that was handed out alone has not been answered yet. */
static bool is_out(hf_core *core)
{
    const hf_alone *alone = &core->alone;
    const hf_run *run = hf_run_find(core, alone->run);
    if (run == NULL || HF_SLOT(run)->loading || HF_SLOT(run)->bad) {
        return run != NULL && HF_SLOT(run)->loading;
    }
    if (!hf_run_is_open(run)) {
        return false;
    }
    if (alone->scheduled_id == 0) {
        const hf_wft *wft = &run->wft;
        return wft->state == HF_WFT_STARTED && !wft->again && wft->started_time == alone->stamp &&
               wft->attempt == alone->attempt;
    }
    const hf_activity *activity = hf_run_activity(run, alone->scheduled_id);
    return activity != NULL && activity->state == HF_ACTIVITY_STARTED && !activity->again &&
           activity->started_time == alone->stamp && activity->attempt == alone->attempt;
}

static void end_alone(hf_core *core)
{
    hf_assert(core->alone.run != 0);
    core->alone = (hf_alone){0};
    HF_LIST_EACH(node, &core->queues_all)
    {
        hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
        if (queue->poll_count > 0) { /* tasks that waited meanwhile may have left memory */
            hf_queue_mark(core, queue);
        }
    }
}

static bool is_its_turn(const hf_core *core, const hf_task *task)
{
    const hf_queue *queue = task->queue;
    const hf_node *first = hf_list_first(&queue->polls);
    int64_t waited = core->now.mono - task->last_since;
    if (first == NULL) {
        return false;
    }
    bool is_last = queue->task_count == 0 && hf_list_is_empty(&queue->cold) && !queue->cursor.has_rows &&
                   !queue->cursor.is_reading && queue->loads == 0;
    if (!is_last && waited < LAST_SPAN) {
        return false; /* tasks that are being loaded from disk come first, too */
    }
    const hf_call *call = HF_CONTAINER_CONST(first, hf_call, link);
    return !call->in_process || waited >= ALONE_SPAN || !is_anything_in_hand(core);
}

static void hand_out(hf_core *core, hf_task *task, hf_call *call)
{
    hf_assert(core->alone.run == 0 && task->is_last); /* engine-U3 */
    const hf_run *run = task->run;
    int64_t scheduled_id = task->scheduled_id;
    bool in_process = call->in_process;
    hf_queue_gave(core, task->queue, task);
    hf_match_start(core, task, call);
    if (core->status != HF_OK || !in_process) {
        return;
    }
    HF_PROBE(core, HF_PROBE_SUSPECT_ALONE);
    const hf_activity *activity = scheduled_id != 0 ? hf_run_activity(run, scheduled_id) : NULL;
    core->alone = (hf_alone){
        .run = run->number,
        .scheduled_id = scheduled_id,
        .stamp = activity != NULL ? activity->started_time : run->wft.started_time,
        .attempt = activity != NULL ? activity->attempt : run->wft.attempt,
        .since = core->now.wall,
        .until = core->now.mono + ALONE_SPAN,
    };
}

void hf_suspect_poll(hf_core *core, hf_queue *queue)
{
    if (core->status != HF_OK || core->alone.run != 0) {
        return;
    }
    HF_LIST_EACH(node, &core->suspects)
    {
        hf_task *task = HF_CONTAINER(node, hf_task, link);
        if (task->queue == queue && core->now.mono - task->last_since >= LAST_SPAN) {
            hf_call *call = HF_CONTAINER(hf_list_first(&queue->polls), hf_call, link);
            hf_core_reset_scratch(core);
            hf_match_unpark(core, call);
            hand_out(core, task, call);
            return;
        }
    }
}

static HF_NOINLINE void look(hf_core *core)
{
    if (core->alone.run != 0 && (core->now.mono >= core->alone.until || !is_out(core))) {
        end_alone(core);
    }
    if (hf_list_is_empty(&core->suspects) || core->alone.run != 0 || core->now.mono < core->suspects_look) {
        return;
    }
    core->suspects_look = core->now.mono + LOOK_SPAN;
    HF_LIST_EACH(node, &core->suspects)
    {
        hf_task *task = HF_CONTAINER(node, hf_task, link);
        if (core->status == HF_OK && is_its_turn(core, task) && hf_queue_may_give(core, task->queue)) {
            hf_call *call = HF_CONTAINER(hf_list_first(&task->queue->polls), hf_call, link);
            hf_core_reset_scratch(core);
            hf_match_unpark(core, call);
            hand_out(core, task, call);
            return;
        }
    }
}

/* After every call, and there is nothing to look at nearly always. */
void hf_suspects_tick(hf_core *core)
{
    if (HF_UNLIKELY(core->alone.run != 0 || !hf_list_is_empty(&core->suspects))) {
        look(core);
    }
}

int64_t hf_suspects_next(const hf_core *core)
{
    if (core->alone.run != 0) {
        return core->alone.until;
    }
    HF_LIST_EACH(node, &core->suspects)
    {
        if (HF_CONTAINER_CONST(node, hf_task, link)->queue->poll_count > 0) {
            return core->suspects_look;
        }
    }
    return INT64_MAX;
}
