/* Resets: a new run takes the place of the current one of its id. It begins with events of an older one, the base, up to a workflow task.
 *
 *     find --> copy --> reapply <--> ask next
 *                ^         |  ^
 *                |         v  | events came meanwhile
 *                |    ask current --> last --> (the new run is born)
 *                +----------------------+
 *                   another run has begun meanwhile
 *
 * The events of the base are taken in portions: from its log, or from its rows with one read for each step. They are applied to a run that
 * nobody can find. If it gets longer than a portion, its history rows are written before it exists, one portion with each commit, and
 * the meta table says so (ledger/making.h). Then the runs that continued the base are looked through in the same way (reset_events.c).
 *
 * The last step decides everything at once: whether the current run is still the same, and has no events that were not looked at. It terminates the
 * current run if that is open, and the new run is born: it becomes the current run, gets a workflow task, and is written with this
 * commit, whatever other runs do meanwhile. So no change of a journal has to make it, and before this commit nothing has happened that
 * anybody could see. If the last step finds events that are new it goes back; if it finds a newer run, the new run must get a greater
 * number, and the copy begins again.
 *
 * engine-R1  A step takes at most one portion of histories, for all resets together.
 * engine-R2  A run that is being made is not among the runs of the core, and has no name.
 * engine-R3  When a run is born by a reset it has the greatest number of its id, so that its name leads to it.
 * engine-R4  While a run that is being made has rows, the meta table has a row of it.
 *
 * A request id is remembered with the base and with the new run, and goes along to the runs that follow: whoever sends it again, with or without
 * a run id, gets the same run. Calls with an id that is under way wait for its end. */
#include "engine/machines/reset_private.h"

#include "engine/answer.h"
#include "engine/input.h"
#include "engine/load.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

hf_list *const *hf_resets_lists(hf_core *core, hf_list *(*ret_lists)[3])
{
    (*ret_lists)[0] = &core->resets.next;
    (*ret_lists)[1] = &core->resets.idle;
    (*ret_lists)[2] = &core->resets.full;
    return *ret_lists;
}

void hf_resets_init(hf_core *core)
{
    hf_list *lists[3];
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        hf_list_init(hf_resets_lists(core, &lists)[i]);
    }
}

static void drop_made(hf_core *core, hf_reset *it)
{
    if (it->made != NULL) {
        hf_slot_free(core, it->made);
        it->made = NULL;
    }
}

static void reset_free(hf_core *core, hf_reset *it)
{
    hf_assert(core->resets.count > 0);
    core->resets.count--;
    drop_made(core, it);
    hf_owned_free(&core->runs_memory, &it->next_run_id);
    hf_list_remove(&it->link);
    hf_arena_deinit(&it->arena);
    hf_core_free_mem(core, it, sizeof *it);
}

void hf_resets_deinit(hf_core *core)
{
    hf_list *lists[3];
    hf_node *node = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((node = hf_list_first(hf_resets_lists(core, &lists)[i])) != NULL) {
            reset_free(core, HF_CONTAINER(node, hf_reset, link));
        }
    }
    HF_VEC_FREE(&core->runs_memory, &core->resets.undo);
}

void hf_reset_move(hf_reset *it, hf_list *to)
{
    hf_list_remove(&it->link);
    hf_list_push_back(to, &it->link);
}

/* The run stays in memory, and is not deleted from the store. */
void hf_reset_hold(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    HF_SLOT(run)->resets++;
    hf_core_use(core, run);
}

void hf_reset_let_go(hf_core *core, int64_t *number)
{
    hf_run *run = *number != 0 ? hf_run_find(core, *number) : NULL;
    hf_assert(*number == 0 || (run != NULL && HF_SLOT(run)->resets > 0));
    *number = 0;
    if (run != NULL && --HF_SLOT(run)->resets == 0) {
        hf_core_unuse(core, run);
    }
}

void hf_reset_read_from(hf_core *core, hf_reset *it, hf_run *run, int64_t event_id)
{
    hf_assert(event_id > 0); /* run-R1 */
    hf_reset_hold(core, run);
    hf_reset_let_go(core, &it->source);
    it->source = run->number;
    it->next = event_id;
    it->log_id = 0;
    hf_owned_free(&core->runs_memory, &it->next_run_id);
}

void hf_reset_undo(hf_core *core, int64_t run)
{
    if (HF_VEC_RESERVE(&core->runs_memory, &core->resets.undo)) {
        core->resets.undo.items[core->resets.undo.count++] = run;
    }
}

void hf_reset_unmake(hf_core *core, hf_reset *it)
{
    hf_assert(!it->is_written || it->made != NULL); /* engine-R4 */
    if (it->is_written) {
        hf_reset_undo(core, it->made->run.number);
        it->is_written = false;
    }
    drop_made(core, it);
    it->made_count = 0;
}

void hf_reset_end(hf_core *core, hf_reset *it)
{
    hf_assert(it->caller == NULL && hf_list_is_empty(&it->joined));
    hf_reset_unmake(core, it);
    hf_reset_let_go(core, &it->source);
    hf_reset_let_go(core, &it->current);
    hf_reset_let_go(core, &it->base);
    reset_free(core, it);
}

hf_call *hf_reset_next_caller(hf_reset *it)
{
    hf_call *call = it->caller;
    hf_node *node = call == NULL ? hf_list_pop_front(&it->joined) : NULL;
    it->caller = NULL;
    call = node != NULL ? HF_CONTAINER(node, hf_call, link) : call;
    if (call != NULL) {
        call->place = HF_PLACE_NONE;
    }
    return call;
}

void hf_reset_fail(hf_core *core, hf_reset *it, hf_status status, const char *format, ...)
{
    char why[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hf_call *call = NULL;
    while (core->status == HF_OK && (call = hf_reset_next_caller(it)) != NULL) {
        hf_call_fail(core, call, status, "%s", why);
    }
    if (core->status == HF_OK) {
        hf_reset_end(core, it);
    }
}

/* ---- Other runs of the id -------------------------------------------------------------------------------------------- */

void hf_reset_meet(hf_reset *it, const hf_run *run)
{
    it->met = run->number;
    hf_call_now(&it->call);
}

static void met_current(hf_core *core, hf_reset *it, hf_run *run)
{
    const hf_pb_reset_workflow_execution_request *request = it->caller->request;
    if (run == NULL && request->workflow_execution->run_id.len == 0) {
        hf_reset_fail(core, it, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    it->has_none = run == NULL;
    if (run != NULL) {
        hf_reset_hold(core, run);
        hf_reset_let_go(core, &it->current); /* the reset has been here before */
        it->current = run->number;
    }
    it->stage = RESET_LAST;
    hf_reset_move(it, &core->resets.next);
}

/* The call of the reset is answered: the run is loaded, or does not exist. */
static void call_done(hf_call *call)
{
    hf_reset *it = (hf_reset *)(void *)call;
    hf_core *core = it->core;
    if (core->status != HF_OK) {
        return; /* hf_resets_deinit frees it */
    }
    hf_run *run = it->met != 0 ? hf_run_find(core, it->met) : NULL;
    if (run == NULL && call->status != HF_ERR_NOT_FOUND) {
        hf_reset_fail(core, it, call->status, "%s", call->message);
    } else if (it->stage == RESET_ASK_CURRENT) {
        met_current(core, it, run);
    } else if (run != NULL) {
        HF_PROBE(core, HF_PROBE_RESET_CONTINUED);
        hf_reset_read_from(core, it, run, 1);
        it->stage = RESET_REAPPLY;
        hf_reset_move(it, &core->resets.next);
    } else { /* it was deleted, and its events are lost */
        it->stage = RESET_ASK_CURRENT;
        hf_reset_move(it, &core->resets.next);
    }
}

static void ask(hf_core *core, hf_reset *it, hf_str run_id)
{
    it->execution.run_id = run_id;
    it->met = 0;
    hf_reset_move(it, &core->resets.idle);
    hf_call_init(&it->call, HF_METHOD_RESET_WORKFLOW_EXECUTION, &it->asks, &it->arena, call_done);
    it->call.maker = HF_CALL_OF_RESET;
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_input(core, &it->call);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------- */

static void turn(hf_core *core, hf_reset *it)
{
    if (hf_run_find(core, it->base)->deleting != HF_DELETING_NOT) {
        hf_reset_fail(core, it, HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
        return;
    }
    switch (it->stage) {
    case RESET_FIND:
    case RESET_COPY:
    case RESET_REAPPLY:
        hf_reset_take_portion(core, it);
        return;
    case RESET_ASK_NEXT:
        ask(core, it, hf_owned_str(&it->next_run_id));
        return;
    case RESET_ASK_CURRENT:
        ask(core, it, HF_STR(""));
        return;
    case RESET_LAST:
        hf_reset_finish(core, it);
        return;
    }
}

bool hf_resets_have_work(const hf_core *core)
{
    return !hf_list_is_empty(&core->resets.next) && !hf_core_is_full(core);
}

void hf_resets_pump(hf_core *core)
{
    if (core->submit == NULL) {
        return; /* while the store is being opened */
    }
    /* Each turn takes events or goes to another stage; a step that has taken a portion ends. */
    for (int i = 0; core->status == HF_OK && i < HF_RESETS_MAX && hf_resets_may_take(core) && hf_resets_have_work(core);
         i++) {
        hf_core_reset_scratch(core);
        turn(core, HF_CONTAINER(hf_list_first(&core->resets.next), hf_reset, link));
    }
}

bool hf_resets_make(const hf_core *core, int64_t number)
{
    const hf_list *const LISTS[] = {&core->resets.next, &core->resets.idle, &core->resets.full};
    for (size_t i = 0; i < HF_COUNT_OF(LISTS) && core->resets.count > 0; i++) {
        HF_LIST_EACH(node, LISTS[i])
        {
            const hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            if (it->made != NULL && it->made->run.number == number) {
                return true;
            }
        }
    }
    return false;
}

uint64_t hf_resets_hash(const hf_core *core, uint64_t hash)
{
    const hf_list *lists[] = {&core->resets.next, &core->resets.idle, &core->resets.full};
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        HF_LIST_EACH(node, lists[i])
        {
            const hf_reset *it = HF_CONTAINER(node, hf_reset, link);
            hash = hf_hash_mix(hf_hash_mix(hash, (uint64_t)it->stage), (uint64_t)it->next);
            hash = it->made != NULL ? hf_hash_mix(hash, it->made->run.chain) : hash;
        }
    }
    return hash;
}
