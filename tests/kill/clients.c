/* The clients of the killed program. They use the service as it is, with request ids and update ids of their own, so that asking twice
 * is asking once. Each operation is a function that tells the ledger before and after it, and can be sent again after a crash. */
#include "kill/child.h"

#include "base/rng.h"
#include "history/payload.h"
#include "kill/ledger.h"
#include "kill/phase.h"

#include <string.h>
#include <time.h>

enum { BIG_LEN = 40000, HUGE_LEN = 200000, ROUNDS_MAX = 2000, RECENT = 3 };

static char big[HUGE_LEN];

static void wait_a_moment(void)
{
    struct timespec pause = {0, 5000000};
    (void)nanosleep(&pause, NULL);
}

/* ---- Operations ------------------------------------------------------------------------------------------------------- */

static void start(child_asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        child_note("s %s", id);
    }
    hf_arena_reset(&a->arena);
    hf_pb_workflow_type type = {.name = hf_str_of(id[0] == 'p' ? "parent" : id[0] == 'c' ? "chain" : "type")};
    hf_pb_start_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_id = hf_str_of(id),
        .workflow_type = &type,
        .task_queue = &child_queue,
        .request_id = hf_str_of(id),
    };
    hf_status status = child_ask(a, HF_METHOD_START_WORKFLOW_EXECUTION, &request, false);
    if (status != HF_OK) {
        child_give_up(id, a->op.message);
    }
    const hf_pb_start_workflow_execution_response *response = a->call.response;
    child_note("S %s %.*s", id, HF_STR_ARGS(response->run_id));
}

/* A workflow may have ended meanwhile: then nothing is acknowledged. True: it was. */
static bool signal_it(child_asking *a, const char *id, unsigned n, bool is_big, bool is_again)
{
    if (!is_again || id[0] == 'c') { /* the run that got it may have been continued since */
        child_note("g %s %u", id, n);
    }
    hf_arena_reset(&a->arena);
    char name[3] = {'s', (char)('0' + n), '\0'};
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-%u", id, n);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    size_t len = !is_big ? 100 : child_is_heavy ? HUGE_LEN : BIG_LEN;
    hf_pb_signal_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .signal_name = hf_str_of_len(name, 2),
        .request_id = hf_str_of(request_id),
        .input = hf_payloads_of(&a->arena, hf_payload_bytes(&a->arena, hf_str_of_len(big, len))),
    };
    hf_status status = child_ask(a, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        child_note("G %s %u", id, n);
    } else if (status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
    return status == HF_OK;
}

static void cancel_it(child_asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        child_note("c %s", id);
    }
    hf_arena_reset(&a->arena);
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-c", id);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .request_id = hf_str_of(request_id),
    };
    hf_status status = child_ask(a, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        child_note("C %s", id);
    } else if (status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
}

/* True: it has an outcome, and the ledger knows it. */
static bool note_outcome(const char *id, unsigned n, const hf_pb_outcome *outcome)
{
    if (outcome == NULL) {
        return false;
    }
    const hf_pb_payload *text =
        outcome->value_case == HF_PB_OUTCOME_SUCCESS ? hf_payloads_first(outcome->success) : NULL;
    if (text != NULL) {
        child_note("U %s %u %.*s", id, n, HF_STR_ARGS(text->data));
    } else if (hf_str_equal(hf_failure_type(outcome->failure), HF_STR("Refused"))) {
        child_note("W %s %u", id, n);
    } else {
        child_give_up(id, "an update has an outcome that no worker gave it");
    }
    return true;
}

/* Whether its outcome is known already: that is asked for as a waiting client would. */
static bool poll_update(child_asking *a, const char *id, unsigned n)
{
    hf_arena_reset(&a->arena);
    char update_id[3] = {'u', (char)('0' + n), '\0'};
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_update_ref ref = {.workflow_execution = &execution, .update_id = hf_str_of(update_id)};
    hf_pb_wait_policy policy = {.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED};
    hf_pb_poll_workflow_execution_update_request request = {
        .namespace = child_namespace, .update_ref = &ref, .wait_policy = &policy};
    hf_status status = child_ask(a, HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, &request, false);
    if (status != HF_OK && status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
    const hf_pb_poll_workflow_execution_update_response *response = a->call.response;
    return status == HF_OK && note_outcome(id, n, response->outcome);
}

/* The same update, until its outcome is known, or the workflow has ended without taking it. */
static void update(child_asking *a, const char *id, unsigned n, bool is_again)
{
    if (!is_again) {
        child_note("u %s %u", id, n);
    } else if (n % 2 == 0 && poll_update(a, id, n)) {
        return;
    }
    char update_id[3] = {'u', (char)('0' + n), '\0'};
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_wait_policy policy = {.lifecycle_stage = HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED};
    hf_pb_meta meta = {.update_id = hf_str_of(update_id)};
    hf_pb_input input = {.name = HF_STR("change")};
    hf_pb_request asked = {.meta = &meta, .input = &input};
    hf_pb_update_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .wait_policy = &policy,
        .request = &asked,
    };
    for (int round = 0; round < ROUNDS_MAX; round++) {
        hf_arena_reset(&a->arena);
        hf_status status = child_ask(a, HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, false);
        const hf_pb_update_workflow_execution_response *response = a->call.response;
        if (status == HF_ERR_NOT_FOUND || (status == HF_OK && note_outcome(id, n, response->outcome))) {
            return;
        }
        if (status == HF_ERR_NOT_READY) { /* its workflow task failed a few times: signals came between */
            wait_a_moment();
        } else if (status != HF_OK) {
            child_give_up(id, a->op.message);
        }
    }
    child_give_up(id, "an update is not answered");
}

/* Sees all signals that were acknowledged before it. */
static void query(child_asking *a, const char *id, unsigned signals)
{
    hf_arena_reset(&a->arena);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_workflow_query asked = {.query_type = HF_STR("signals")};
    hf_pb_query_workflow_request request = {.namespace = child_namespace, .execution = &execution, .query = &asked};
    hf_status status = child_ask(a, HF_METHOD_QUERY_WORKFLOW, &request, false);
    if (status != HF_OK) {
        return; /* it waited for a worker for too long, or the workflow task failed too often */
    }
    const hf_pb_query_workflow_response *response = a->call.response;
    const hf_pb_payload *text = hf_payloads_first(response->query_result);
    if (text == NULL || text->data.len == 0 || (unsigned)(text->data.data[0] - '0') < signals) {
        child_give_up(id, "a query does not see an acknowledged signal");
    }
    child_note("Q %s %c", id, text->data.data[0]);
}

/* Goes back to the first workflow task, or to the last one, and adds a signal. The run may have been deleted meanwhile. `made`: the
 * run that it is known to have made; NULL: it is not known. */
static void reset_it(child_asking *a, const char *id, unsigned n, const char *made, bool is_again)
{
    if (!is_again) {
        child_note("t %s %u", id, n);
    }
    hf_arena_reset(&a->arena);
    char request_id[64];
    char name[3] = {'s', (char)('0' + LEDGER_RESET_SIGNAL + n), '\0'};
    (void)snprintf(request_id, sizeof request_id, "%s-t%u", id, n);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_post_reset_operation_signal_workflow signal = {.signal_name = hf_str_of_len(name, 2)};
    hf_pb_post_reset_operation operation = {
        .variant_case = HF_PB_POST_RESET_OPERATION_SIGNAL_WORKFLOW,
        .signal_workflow = &signal,
    };
    hf_pb_reset_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .reason = HF_STR("once more"),
        .request_id = hf_str_of(request_id),
        .holdfast_point = hf_hash_bytes(n, id, strlen(id)) % 4 == 0 ? 2 : 1,
        .post_reset_operations = {&operation, 1},
    };
    child_phase(PHASE_RESET);
    hf_status status = child_ask(a, HF_METHOD_RESET_WORKFLOW_EXECUTION, &request, false);
    child_phase(PHASE_END(PHASE_RESET));
    const hf_pb_reset_workflow_execution_response *response = a->call.response;
    if (made != NULL && (status != HF_OK || !hf_str_equal(response->run_id, hf_str_of(made)))) {
        child_give_up(id, "a repeated reset is answered with another run");
    } else if (status == HF_OK && made == NULL) {
        child_note("T %s %u %.*s", id, n, HF_STR_ARGS(response->run_id));
    } else if (status != HF_OK && status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
}

/* A client who did not hear the answer asks once more. */
static void reset_twice(child_asking *a, const char *id, unsigned n)
{
    reset_it(a, id, n, NULL, false);
    const hf_pb_reset_workflow_execution_response *response = a->call.response;
    if (a->call.status != HF_OK) {
        child_give_up(id, "it had ended, and cannot be reset");
    }
    char made[40];
    (void)snprintf(made, sizeof made, "%.*s", HF_STR_ARGS(response->run_id));
    reset_it(a, id, n, made, true);
}

typedef enum state { IS_OPEN, HAS_ENDED, IS_NOT_THERE } state;

/* `ret_run`: NULL, or where the id of the run goes. */
static state describe_run(child_asking *a, const char *id, char ret_run[40])
{
    hf_arena_reset(&a->arena);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_describe_workflow_execution_request request = {.namespace = child_namespace, .execution = &execution};
    hf_status status = child_ask(a, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_ERR_NOT_FOUND) {
        return IS_NOT_THERE;
    }
    if (status != HF_OK) {
        child_give_up(id, a->op.message);
    }
    const hf_pb_describe_workflow_execution_response *response = a->call.response;
    const hf_pb_workflow_execution_info *info = response->workflow_execution_info;
    if (ret_run != NULL) {
        (void)snprintf(ret_run, 40, "%.*s", HF_STR_ARGS(info->execution->run_id));
    }
    return info->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING ? IS_OPEN : HAS_ENDED;
}

static state describe(child_asking *a, const char *id)
{
    return describe_run(a, id, NULL);
}

/* A chain goes with all of its runs, and so does a workflow that was reset. */
static void delete_it(child_asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        child_note("x %s", id);
    }
    hf_arena_reset(&a->arena);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_delete_workflow_execution_request request = {.namespace = child_namespace,
                                                       .workflow_execution = &execution,
                                                       .holdfast_all_runs = id[0] == 'c' || id[0] == 'r'};
    hf_status status = child_ask(a, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &request, false);
    if (status != HF_OK && !(is_again && status == HF_ERR_NOT_FOUND)) {
        child_give_up(id, a->op.message);
    }
    child_note("X %s", id);
    if (describe(a, id) != IS_NOT_THERE) {
        child_give_up(id, "it was deleted, and is there");
    }
}

/* ---- A client --------------------------------------------------------------------------------------------------------- */

/* Signals, updates and queries in some order, and perhaps a reset among them; then perhaps a cancel request. */
static void use(child_asking *a, hf_rng *rng, const char *id)
{
    bool cancels = id[0] == 'w' && hf_rng_below(rng, 4) == 0;
    unsigned wanted = id[0] == 'p' ? 0 : CHILD_SIGNALS;
    if (cancels || (wanted > 0 && hf_rng_below(rng, 8) == 0)) {
        wanted = (unsigned)hf_rng_below(rng, CHILD_SIGNALS); /* it does not end before it is canceled */
    }
    unsigned acked = 0;
    unsigned updates = 0;
    uint64_t reset_at = id[0] == 'r' ? hf_rng_below(rng, CHILD_SIGNALS + 1) : CHILD_SIGNALS;
    for (unsigned n = 0; n < wanted; n++) {
        if (n == reset_at) {
            reset_it(a, id, 0, NULL, false);
        }
        if ((id[0] == 'w' || id[0] == 'r') && updates < CHILD_UPDATES && hf_rng_below(rng, 2) == 0) {
            update(a, id, updates++, false);
        }
        acked += signal_it(a, id, n, hf_rng_below(rng, child_is_heavy ? 2 : 8) == 0, false) ? 1 : 0;
        if (hf_rng_below(rng, 3) == 0) {
            query(a, id, acked);
        }
    }
    if (cancels) {
        cancel_it(a, id, false);
    }
}

void *child_client(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    hf_rng rng = {.state = hf_hash_mix(child_seed, number)};
    char recent[RECENT][40] = {{0}}; /* that may have ended by now */
    child_asking a;
    child_ask_init(&a);
    for (unsigned i = 0; !atomic_load(&child_is_over); i++) {
        char *id = recent[i % RECENT];
        if (id[0] == 'r' && describe(&a, id) == HAS_ENDED) {
            reset_twice(&a, id, 1);
        }
        if (id[0] != '\0' && hf_rng_below(&rng, 2) == 0 && describe(&a, id) == HAS_ENDED) {
            delete_it(&a, id, false);
        }
        (void)snprintf(id, sizeof recent[0], "%c%s-%u-%u", "wrrpc"[hf_rng_below(&rng, 5)], child_cycle, number, i);
        start(&a, id, false);
        use(&a, &rng, id);
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

/* ---- After a crash, and at the end ------------------------------------------------------------------------------------ */

static void send_entry_again(child_asking *a, const entry *e)
{
    if (e->start.acked == 0) {
        start(a, e->id, true);
    }
    for (unsigned n = 0; n < LEDGER_SIGNALS; n++) {
        if (e->signals[n].sent != 0 && e->signals[n].acked == 0) {
            (void)signal_it(a, e->id, n, false, true);
        }
    }
    if (e->cancel.sent != 0 && e->cancel.acked == 0) {
        cancel_it(a, e->id, true);
    }
    for (unsigned n = 0; n < LEDGER_UPDATES; n++) {
        if (e->updates[n].lines.sent != 0 && e->updates[n].lines.acked == 0) {
            update(a, e->id, n, true);
        }
    }
    for (unsigned n = 0; n < LEDGER_RESETS; n++) {
        if (e->resets[n].lines.sent != 0 && e->resets[n].lines.acked == 0) {
            reset_it(a, e->id, n, NULL, true);
        } else if (e->resets[n].lines.acked != 0 && e->deletion.sent == 0) {
            reset_it(a, e->id, n, e->resets[n].run_id, true);
        }
    }
    if (e->deletion.sent != 0 && e->deletion.acked == 0) {
        delete_it(a, e->id, true);
    }
}

void child_send_again(const char *ledger_path, bool goes_on)
{
    ledger l;
    ledger_read(&l, ledger_path);
    hf_rng rng = {.state = hf_hash_mix(child_seed, 3000)};
    child_asking a;
    child_ask_init(&a);
    for (size_t i = 0; i < l.count; i++) {
        const entry *e = &l.entries[i];
        bool is_chosen = hf_rng_below(&rng, 8) == 0;
        send_entry_again(&a, e);
        if (e->deletion.acked != 0 && is_chosen && describe(&a, e->id) != IS_NOT_THERE) {
            child_give_up(e->id, "it was deleted, and is there again");
        }
        if (goes_on && e->id[0] == 'r' && e->resets[1].lines.sent == 0 && e->deletion.sent == 0 &&
            hf_rng_below(&rng, 2) == 0) {
            reset_it(&a, e->id, 1, NULL, false); /* it has had signals behind its first workflow task, or has ended */
        }
        if (goes_on && is_chosen && e->end_acked != 0 && e->deletion.sent == 0) {
            delete_it(&a, e->id, false);
        }
    }
    hf_arena_deinit(&a.arena);
    ledger_free(&l);
}

/* The third child of a parent may go on when its parent has ended, or was never started. */
static bool kids_have_ended(child_asking *a, const char *id)
{
    char last[44];
    (void)snprintf(last, sizeof last, "%s.c", id);
    return id[0] != 'p' || describe(a, last) != IS_OPEN;
}

/* A workflow gets the signals that it still waits for. True: it has ended. */
static bool help(child_asking *a, const entry *e, bool is_first)
{
    for (unsigned n = 0; is_first && e->id[0] != 'p' && n < CHILD_SIGNALS; n++) {
        if (e->signals[n].sent == 0) {
            (void)signal_it(a, e->id, n, false, false);
        }
    }
    char run[40] = "";
    state is = describe_run(a, e->id, run);
    if (is == IS_NOT_THERE && e->deletion.sent == 0) {
        child_give_up(e->id, "it is not there");
    }
    if (is == IS_OPEN || !kids_have_ended(a, e->id)) {
        return false;
    }
    child_note("D %s %s", e->id, run);
    return true;
}

void child_let_all_end(const char *ledger_path)
{
    child_asking a;
    child_ask_init(&a);
    size_t left = 1;
    for (int round = 0; left > 0; round++) {
        if (round == ROUNDS_MAX) {
            child_give_up("the end", "some workflows do not end");
        }
        ledger l;
        ledger_read(&l, ledger_path);
        left = 0;
        for (size_t i = 0; i < l.count; i++) {
            const entry *e = &l.entries[i];
            bool is_done = e->end_acked != 0 && e->resets[0].lines.sent == 0 && e->resets[1].lines.sent == 0 &&
                           kids_have_ended(&a, e->id);
            left += is_done || help(&a, e, round == 0) ? 0 : 1;
        }
        ledger_free(&l);
        wait_a_moment();
    }
    hf_arena_deinit(&a.arena);
}
