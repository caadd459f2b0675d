/* One play of a trial (trial.h). */
#include "trial/trial.h"

#include "base/env.h"
#include "base/rng.h"
#include "history/history.h"
#include "history/payload.h"
#include "store/mem.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <string.h>

enum { LIVES_MAX = 8 };

/* ---- A store that outlives the engine ------------------------------------------------------------------------------------------- */

typedef struct keeper {
    hf_store store; /* first */
    hf_store *inner;
} keeper;

static hf_status keeper_execute(hf_store *store, hf_store_request *request)
{
    hf_store *inner = ((keeper *)(void *)store)->inner;
    return inner->ops->execute(inner, request);
}

static uint64_t keeper_last_commit(hf_store *store)
{
    hf_store *inner = ((keeper *)(void *)store)->inner;
    return inner->ops->last_commit(inner);
}

static void keeper_close(hf_store *store)
{
    store->was_left_open = true; /* the next engine finds what a process that died has left */
}

static const hf_store_ops KEEPER_OPS = {"trial", keeper_execute, keeper_last_commit, keeper_close};

/* ---- Activities ------------------------------------------------------------------------------------------------------------------ */

enum { ACTIVITIES_MAX = 256 };

/* Of the play of this process. Activities run on threads of the worker. */
static struct {
    hf_spin lock;
    int begun;                      /* activities */
    int fails;                      /* the number of the one that fails; 0 = none */
    bool fails_next;                /* and the next one, too */
    int count;                      /* of `real` */
    char untaken[HF_PLAY_TEXT_LEN]; /* names of signals */
    struct {
        hf_str name; /* the worker's */
        hf_function function;
    } real[ACTIVITIES_MAX];
} stage;

/* In place of every activity: counts, and lets some fail. */
static hf_status act(hf_payload in, hf_payload *ret_out)
{
    hf_function function = NULL;
    hf_str name = hf_str_of(hf_activity_info()->name);
    hf_spin_lock(&stage.lock);
    int number = ++stage.begun;
    bool fails = number == stage.fails || (stage.fails_next && number == stage.fails + 1);
    for (int i = 0; i < stage.count; i++) {
        function = hf_str_equal(stage.real[i].name, name) ? stage.real[i].function : function;
    }
    hf_spin_unlock(&stage.lock);
    hf_assert(function != NULL);
    return fails ? hf_activity_fail("the trial lets it fail", .is_final = true, .type = "Trial")
                 : function(in, ret_out);
}

static hf_status replace_activities(hf_worker *worker)
{
    stage.count = 0;
    HF_LIST_EACH(node, &worker->activities)
    {
        hf_function_entry *entry = HF_CONTAINER(node, hf_function_entry, node);
        if (stage.count == ACTIVITIES_MAX) {
            return hf_raise(HF_ERR_LIMIT, "a trial has at most %d activities", ACTIVITIES_MAX);
        }
        stage.real[stage.count].name = entry->name;
        stage.real[stage.count++].function = entry->function;
        entry->function = act;
    }
    return HF_OK;
}

/* ---- The play --------------------------------------------------------------------------------------------------------------------- */

typedef struct play {
    const hf_play_plan *plan;
    hf_upset upset;
    hf_rng rng; /* STORM */
    keeper keeper;
    hf_gate gate;
    hf_testenv *env;
    hf_execution *execution;
    bool is_sent[HF_PLAY_SIGNALS_MAX];
    int points; /* of the lives before this one */
} play;

static void note_untaken(const char *names)
{
    size_t skip = names[0] == '"' ? 1 : 0; /* the log quotes what has spaces */
    size_t len = strlen(names);
    len -= skip == 1 && len > 1 ? 2 : 0;
    hf_spin_lock(&stage.lock);
    size_t used = strlen(stage.untaken);
    (void)snprintf(stage.untaken + used, sizeof stage.untaken - used, "%s%.*s", used > 0 ? ", " : "", (int)len,
                   names + skip);
    hf_spin_unlock(&stage.lock);
}

/* Of the log only the signals are of interest that the run left when it ended. */
static void listen(void *state, hf_log_level level, const char *event, const char *fields)
{
    const char *names = strstr(fields, " names=");
    (void)state;
    (void)level;
    if (strcmp(event, "workflow_ends_over_signals") == 0 && names != NULL) {
        note_untaken(names + sizeof " names=" - 1);
    }
}

/* A process: an engine on what the last one has left, and a worker. */
static hf_status begin_life(play *p, hf_time clock, hf_upset upset)
{
    bool evicts = p->upset.kind == HF_UPSET_EVICT || (p->upset.kind == HF_UPSET_STORM && hf_rng_below(&p->rng, 2) == 0);
    hf_testenv_options options = {
        .size = sizeof options, .evict_always = evicts, .begins = clock, .patience = p->plan->patience, .log = listen};
    HF_TRY(hf_testenv_open(&options, &p->keeper.store, &p->env));
    hf_gate_init(&p->gate, hf_env_posix(), p->env->service, upset, (uint64_t)(upset.at * 64 + (int)upset.kind));
    p->env->gate = &p->gate;
    HF_TRY(hf_testenv_employ(p->env, &p->gate.service));
    HF_TRY(p->plan->add(p->plan->state, p->env->worker));
    return replace_activities(p->env->worker);
}

static hf_status end_life(play *p, hf_time *ret_clock)
{
    *ret_clock = hf_testenv_now(p->env);
    p->points += p->gate.points;
    hf_execution_free(p->execution);
    p->execution = NULL;
    hf_testenv *env = p->env;
    p->env = NULL;
    return hf_testenv_free(env);
}

static hf_status send(play *p, int idx)
{
    p->is_sent[idx] = true;
    hf_status status = hf_signal(p->execution, p->plan->signals[idx].name, p->plan->signals[idx].in);
    if (status == HF_ERR_NOT_FOUND) { /* the run has ended without it */
        note_untaken(p->plan->signals[idx].name);
        return HF_OK;
    }
    return status;
}

static hf_status begin_run(play *p)
{
    const hf_play_plan *plan = p->plan;
    if (p->upset.kind != HF_UPSET_SIGNAL || p->upset.at != 0) {
        return hf_testenv_start(p->env, plan->type, plan->in, &p->execution, .id = "trial");
    }
    p->is_sent[p->upset.signal] = true;
    return hf_start_and_signal(p->env->service, plan->type, plan->in, plan->signals[p->upset.signal].name,
                               plan->signals[p->upset.signal].in, &p->execution, .id = "trial",
                               .task_queue = p->env->queue);
}

/* The next signal that was not sent; -1 = none is left. */
static int next_signal(const play *p)
{
    for (int i = 0; i < p->plan->signal_count; i++) {
        if (!p->is_sent[i]) {
            return i;
        }
    }
    return -1;
}

/* The disturbance of a life of a storm. */
static hf_upset draw(play *p, int life)
{
    hf_upset upset = {HF_UPSET_NONE, 0, 0};
    if (p->upset.kind != HF_UPSET_STORM) {
        return life == 0 ? p->upset : upset;
    }
    if (life < LIVES_MAX - 1 && hf_rng_below(&p->rng, 4) != 0) {
        upset.kind = hf_rng_below(&p->rng, 2) == 0 ? HF_UPSET_CRASH_BEFORE : HF_UPSET_CRASH_AFTER;
        upset.at = 1 + (int)hf_rng_below(&p->rng, 8);
    }
    return upset;
}

static hf_status go_on_after_pause(play *p)
{
    hf_status status = p->upset.kind == HF_UPSET_CANCEL ? hf_cancel(p->execution) : send(p, p->upset.signal);
    status = status == HF_ERR_NOT_FOUND ? HF_OK : status;
    hf_gate_go_on(&p->gate);
    return status;
}

/* Whether an activity has failed because its process died, and was not tried again. */
static bool has_lost(hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload bytes = hf_payload_none();
    hf_arena arena;
    bool is_found = false;
    hf_str one = {0};
    if (hf_history(execution, &bytes, .as_bytes = true) != HF_OK) {
        return false;
    }
    hf_str rest = hf_str_of_len(bytes.data, bytes.len);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    while (hf_history_next(&rest, &one)) {
        hf_op op;
        hf_pb_history_event event;
        hf_op_init(&op);
        hf_arena_reset(&arena);
        is_found |=
            hf_pb_decode(&op, &hf_pb_history_event_type, one, &arena, &event) == HF_OK &&
            event.event_type == HF_EVENT_TYPE_ACTIVITY_TASK_FAILED && event.attributes_case != 0 &&
            event.activity_task_failed_event_attributes->failure != NULL &&
            hf_str_equal(hf_failure_type(event.activity_task_failed_event_attributes->failure), HF_STR("WorkerLost"));
    }
    hf_arena_deinit(&arena);
    return is_found;
}

/* Until the run has ended, or waits for something that does not come. */
static hf_status wait_for_end(play *p, hf_payload *ret_out)
{
    for (int life = 0;;) {
        bool is_upset = false;
        int next = next_signal(p);
        hf_status status = HF_ERR_AGAIN;
        if (next < 0) {
            status = hf_testenv_await(p->env, p->execution, ret_out, &is_upset);
        } else { /* a signal comes when no code runs any more, and before time passes */
            HF_TRY(hf_testenv_pass(p->env, hf_nanoseconds(0)));
            is_upset = atomic_load(&p->gate.state) != HF_GATE_OPEN;
        }
        if (is_upset && atomic_load(&p->gate.state) == HF_GATE_PAUSES) {
            HF_TRY(go_on_after_pause(p));
        } else if (is_upset) {
            hf_time clock = {0};
            HF_TRY(end_life(p, &clock));
            HF_TRY(begin_life(p, clock, draw(p, ++life)));
            HF_TRY(hf_execution_new(p->env->service, "trial", &p->execution));
        } else if (next >= 0) {
            HF_TRY(send(p, next));
        } else {
            return status;
        }
    }
}

static void describe(hf_status status, hf_payload out, hf_play_result *result)
{
    const hf_failure *failure = status != HF_OK ? hf_error() : NULL;
    const char *type = failure != NULL ? failure->type : "";
    bool is_patience = status == HF_ERR_TIMEOUT && strcmp(type, "Patience") == 0;
    bool is_task = status == HF_ERR_FAILED && strcmp(type, "WorkflowTaskFailed") == 0;
    result->is_success = status == HF_OK;
    result->has_ended = status != HF_ERR_AGAIN && !is_patience && !is_task;
    if (status == HF_OK) {
        int len = out.len < sizeof result->outcome - 32 ? (int)out.len : (int)sizeof result->outcome - 32;
        (void)snprintf(result->outcome, sizeof result->outcome, "completed %.*s", len,
                       out.data != NULL ? (const char *)out.data : "");
    } else {
        (void)snprintf(result->outcome, sizeof result->outcome, "%s%s%s%s",
                       status == HF_ERR_AGAIN      ? "waits: "
                       : status == HF_ERR_CANCELED ? "canceled: "
                                                   : "failed, ",
                       status == HF_ERR_AGAIN || status == HF_ERR_CANCELED ? "" : type,
                       status == HF_ERR_AGAIN || status == HF_ERR_CANCELED ? "" : ": ", hf_error_text());
    }
}

static void look_at_world(const hf_play_plan *plan, char *text)
{
    HF_AUTO(hf_payload_free) hf_payload world = hf_payload_none();
    text[0] = '\0';
    if (plan->world != NULL && plan->world(&world) == HF_OK && world.data != NULL) {
        (void)snprintf(text, HF_PLAY_TEXT_LEN, "%s", (const char *)world.data);
    }
}

static hf_status play_it(play *p, hf_play_result *result)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    const hf_play_plan *plan = p->plan;
    hf_time clock = {0};
    HF_TRY(begin_life(p, clock, draw(p, 0)));
    look_at_world(plan, result->before);
    HF_TRY(begin_run(p));
    for (int i = 0; p->upset.kind == HF_UPSET_STORM && i < plan->signal_count && hf_rng_below(&p->rng, 2) == 0; i++) {
        HF_TRY(send(p, i));
    }
    hf_status status = wait_for_end(p, &out);
    describe(status, out, result);
    result->has_lost = has_lost(p->execution);
    result->points = p->points + p->gate.points;
    return HF_OK;
}

hf_status hf_play(const hf_play_plan *plan, hf_upset upset, hf_play_result *ret_result)
{
    hf_op op;
    hf_op_init(&op);
    hf_assert(upset.kind < HF_UPSET_COUNT && plan->signal_count <= HF_PLAY_SIGNALS_MAX);
    static play p; /* a gate is long, and there is one play in a process */
    p = (play){.plan = plan, .upset = upset, .rng = {(uint64_t)upset.at * 0x9e3779b97f4a7c15u + 1}};
    p.keeper.store.ops = &KEEPER_OPS;
    hf_allocator memory = hf_env_memory(hf_env_posix());
    if (hf_mem_store_open(&op, memory, NULL, &p.keeper.inner) != HF_OK) {
        return hf_raise(op.status, "%s", op.message);
    }
    stage.begun = 0;
    stage.untaken[0] = '\0';
    stage.fails_next = upset.kind == HF_UPSET_FAIL_TWO;
    stage.fails = upset.kind == HF_UPSET_FAIL || stage.fails_next ? upset.at : 0;
    *ret_result = (hf_play_result){.has_ended = false};
    hf_status status = play_it(&p, ret_result);
    char why[HF_MESSAGE_LEN_MAX];
    (void)snprintf(why, sizeof why, "%s", status != HF_OK ? hf_error_text() : "");
    ret_result->activities = stage.begun;
    look_at_world(plan, ret_result->after);
    hf_execution_free(p.execution);
    if (p.env == NULL || hf_testenv_free(p.env) == HF_OK) {
        hf_store_close(p.keeper.inner);
    } /* else code of the plugin does not return, and the process ends soon */
    hf_spin_lock(&stage.lock);
    memcpy(ret_result->untaken, stage.untaken, sizeof stage.untaken);
    hf_spin_unlock(&stage.lock);
    return status == HF_OK ? HF_OK : hf_raise(status, "%s", why);
}

/* ---- Names ------------------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    const char *text;
    bool is_equal;
} UPSETS[] = {
#define HF_UPSET_ROW(constant, word, is_equal, text) [constant] = {word, text, is_equal},
    HF_UPSET_MAP(HF_UPSET_ROW)
#undef HF_UPSET_ROW
};

const char *hf_upset_word(hf_upset_kind kind)
{
    hf_assert(kind < HF_UPSET_COUNT);
    return UPSETS[kind].word;
}

bool hf_upset_is_equal(hf_upset_kind kind)
{
    hf_assert(kind < HF_UPSET_COUNT);
    return UPSETS[kind].is_equal;
}

const char *hf_upset_text(hf_upset_kind kind)
{
    hf_assert(kind < HF_UPSET_COUNT);
    return UPSETS[kind].text;
}
