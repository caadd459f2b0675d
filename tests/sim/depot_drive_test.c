/* Sends of a depot that workflows drive, on the real worker and engine, in memory, on virtual time: their order, what is
 * seen of them, and what a restart, a conflict, a refusal, a pause or a crash of either side does. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "service/call.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin --------------------------------------------------------------------------------------------------- */

enum { PUSHES_MAX = 64 };

typedef struct origin {
    hf_span takes;
    bool is_down;
    const char *refuses;  /* this value, for good */
    const char *disputes; /* this value, once: a conflict */
    int pushes;
    int at_once, at_once_max; /* of one key */
    struct {
        char key[16], value[16], id[HF_WRITE_ID_LEN];
        bool is_accepted;
    } seen[PUSHES_MAX];
} origin;

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    HF_CHECK(o->pushes < PUSHES_MAX);
    int i = o->pushes++;
    (void)snprintf(o->seen[i].key, sizeof o->seen[i].key, "%.*s", (int)request->key.id_len,
                   (const char *)request->key.id);
    (void)snprintf(o->seen[i].value, sizeof o->seen[i].value, "%.*s", (int)request->len,
                   request->data != NULL ? (const char *)request->data : "");
    memcpy(o->seen[i].id, request->id, sizeof request->id);
    o->at_once++;
    o->at_once_max = o->at_once > o->at_once_max ? o->at_once : o->at_once_max;
    hf_status status = o->takes.ns > 0 ? hf_sleep(o->takes) : HF_OK;
    o->at_once--;
    HF_TRY(status);
    if (o->is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
    }
    if (o->refuses != NULL && strcmp(o->seen[i].value, o->refuses) == 0) {
        return hf_reply_fail(reply, HF_REPLY_INVALID, .message = "not like this");
    }
    if (o->disputes != NULL && strcmp(o->seen[i].value, o->disputes) == 0) {
        o->disputes = NULL;
        HF_TRY(hf_reply_value(reply, "theirs", 6));
        HF_TRY(hf_reply_etag(reply, "t1"));
        return HF_ERR_CONFLICT;
    }
    o->seen[i].is_accepted = true;
    return request->verb == HF_WRITE_CREATE ? hf_reply_key(reply, hf_depot_key_of("acme", "user", "77")) : HF_OK;
}

/* How often the value was accepted. */
static int accepted(const origin *o, const char *key, const char *value)
{
    int count = 0;
    for (int i = 0; i < o->pushes; i++) {
        count += o->seen[i].is_accepted && strcmp(o->seen[i].key, key) == 0 && strcmp(o->seen[i].value, value) == 0;
    }
    return count;
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

/* ---- A play ------------------------------------------------------------------------------------------------------ */

typedef struct play {
    origin o;
    hf_service *service;
    hf_depot *users;
} play;

static hf_status open_users(play *p, hf_store *store)
{
    hf_depot_options options = {
        .size = sizeof options, .push = push, .state = &p->o, .coalesce = HF_SPAN_OFF, .driven = store != NULL};
    HF_TRY(hf_depot_open_in("users", &p->users, &options, store));
    p->users->jitter_is_full = true;
    return HF_OK;
}

static hf_status put(play *p, const char *id, const char *value, hf_depot_write **ret_write)
{
    return hf_depot_put(p->users, key_of(id), value, strlen(value), .ret_write = ret_write);
}

static void expect_settled(hf_depot_write *write, hf_status expected)
{
    hf_status status = hf_depot_write_wait(write, .timeout = hf_days(1));
    HF_CHECK_SAY(status == expected, "%s, not %s: %s", hf_status_name(status), hf_status_name(expected),
                 hf_error_text());
    hf_depot_write_free(write);
}

typedef struct found {
    int open, closed;
    char id[64];
} found;

static bool see_run(void *arg, const hf_description *run)
{
    found *f = arg;
    HF_CHECK(strcmp(run->type, "holdfast.depot") == 0);
    f->open += run->status == HF_WORKFLOW_RUNNING;
    f->closed += run->status == HF_WORKFLOW_COMPLETED;
    HF_CHECK_SAY(run->status == HF_WORKFLOW_RUNNING || run->status == HF_WORKFLOW_COMPLETED, "%s is %s", run->id,
                 hf_workflow_status_name(run->status));
    (void)snprintf(f->id, sizeof f->id, "%s", run->id);
    return true;
}

static found look(play *p)
{
    found f = {0};
    HF_CHECK(hf_list(p->service, see_run, &f) == HF_OK);
    return f;
}

/* The runs end soon after their last write. */
static void expect_runs(play *p, int open, int closed)
{
    found f = {0};
    for (int i = 0; i < 100; i++) {
        f = look(p);
        if (f.open == open && f.closed == closed) {
            return;
        }
        HF_CHECK(hf_sleep(hf_milliseconds(100)) == HF_OK);
    }
    HF_CHECK_SAY(f.open == open && f.closed == closed, "%d open and %d closed runs, not %d and %d", f.open, f.closed,
                 open, closed);
}

static hf_status pending_activity(play *p, const char *id, hf_description **ret_shown)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_execution_new(p->service, id, &run));
    return hf_describe(run, ret_shown);
}

static void ask_about(play *p, hf_method method, const void *request)
{
    hf_arena arena;
    hf_op op;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, method, request, &arena, NULL);
    HF_CHECK_SAY(hf_service_ask(&op, p->service, &call) == HF_OK, "%s", op.message);
    hf_arena_deinit(&arena);
}

/* ---- Scenes ------------------------------------------------------------------------------------------------------ */

/* In order per key, keys side by side, one run per key, which ends with its writes. */
static hf_status scene_order(play *p)
{
    hf_depot_write *writes[9] = {NULL};
    p->o.takes = hf_seconds(1);
    for (int i = 0; i < 9; i++) {
        char value[16];
        const char *const IDS[] = {"A", "B", "C"};
        (void)snprintf(value, sizeof value, "%d", i / 3);
        HF_TRY(put(p, IDS[i % 3], value, &writes[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    found f = look(p);
    HF_CHECK_SAY(f.open == 3 && f.closed == 0, "%d open, %d closed", f.open, f.closed);
    HF_CHECK(strncmp(f.id, "depot-users/acme/user/", 22) == 0);
    hf_description *shown = NULL;
    HF_TRY(pending_activity(p, f.id, &shown));
    HF_CHECK(shown->activity_count == 1 && strcmp(shown->activities[0].type, "holdfast.depot.send") == 0);
    hf_description_free(shown);
    for (int i = 0; i < 9; i++) {
        expect_settled(writes[i], HF_OK);
    }
    HF_CHECK_SAY(p->o.pushes == 9 && p->o.at_once_max == 3, "%d pushes, %d at once", p->o.pushes, p->o.at_once_max);
    char next[3] = {'0', '0', '0'};
    for (int i = 0; i < 9; i++) {
        char *want = &next[p->o.seen[i].key[0] - 'A'];
        HF_CHECK(p->o.seen[i].value[0] == (*want)++); /* DP6 */
    }
    expect_runs(p, 0, 3);
    /* the next write has a run of its own, or wakes the one that is about to end (open-D1) */
    HF_TRY(put(p, "A", "later", &writes[0]));
    expect_settled(writes[0], HF_OK);
    expect_runs(p, 0, 4);
    return HF_OK;
}

/* Failures are tried again by the policy of the activity, under the same id. */
static hf_status scene_retry(play *p)
{
    hf_depot_write *write = NULL;
    p->o.is_down = true;
    int64_t before = hf_now(NULL).ns;
    HF_TRY(put(p, "A", "1", &write));
    HF_TRY(hf_sleep(hf_milliseconds(2500)));
    HF_CHECK_SAY(p->o.pushes == 2, "%d pushes", p->o.pushes); /* at 0 and 1 s; the next at 3 s */
    hf_description *shown = NULL;
    HF_TRY(pending_activity(p, "depot-users/acme/user/A", &shown));
    HF_CHECK(shown->activity_count == 1 && shown->activities[0].attempt == 3 &&
             strstr(shown->activities[0].last_failure, "the line is dead") != NULL);
    hf_description_free(shown);
    p->o.is_down = false;
    expect_settled(write, HF_OK);
    HF_CHECK(hf_now(NULL).ns - before >= hf_seconds(3).ns && hf_now(NULL).ns - before < hf_seconds(4).ns);
    HF_CHECK(p->o.pushes == 3 && strcmp(p->o.seen[0].id, p->o.seen[2].id) == 0);
    expect_runs(p, 0, 1);
    return HF_OK;
}

static bool see_dead(void *arg, const hf_depot_pending_write *write)
{
    *(uint64_t *)arg = write->sequence;
    HF_CHECK(write->is_dead && write->message != NULL && write->message[0] != '\0');
    return true;
}

/* A refused write is dead, and later ones go on; retried by hand it has a run again. */
static hf_status scene_dead(play *p)
{
    hf_depot_write *first = NULL;
    hf_depot_write *second = NULL;
    p->o.refuses = "bad";
    p->o.takes = hf_milliseconds(100);
    HF_TRY(put(p, "A", "bad", &first));
    HF_TRY(put(p, "A", "good", &second));
    expect_settled(first, HF_ERR_INVALID);
    expect_settled(second, HF_OK);
    expect_runs(p, 0, 1);
    uint64_t sequence = 0;
    HF_TRY(hf_depot_pending(p->users, see_dead, &sequence));
    HF_CHECK(sequence != 0 && p->o.pushes == 2);
    p->o.refuses = NULL;
    HF_TRY(hf_depot_retry(p->users, sequence));
    expect_runs(p, 0, 2);
    HF_CHECK(accepted(&p->o, "A", "bad") == 1 && strcmp(p->o.seen[0].id, p->o.seen[2].id) == 0);
    return HF_OK;
}

static hf_status scene_conflict(play *p)
{
    hf_depot_write *write = NULL;
    p->o.disputes = "mine";
    HF_TRY(put(p, "A", "mine", &write));
    expect_settled(write, HF_ERR_CONFLICT); /* the server wins */
    expect_runs(p, 0, 1);
    p->o.disputes = "mine";
    HF_TRY(hf_depot_put(p->users, key_of("A"), "mine", 4, .on_conflict = HF_CONFLICT_CLIENT_WINS, .ret_write = &write));
    expect_settled(write, HF_OK);
    HF_CHECK(accepted(&p->o, "A", "mine") == 1 && p->o.pushes == 3);
    expect_runs(p, 0, 2);
    return HF_OK;
}

/* Offline nothing is sent; the run waits for the word that comes with being online. */
static hf_status scene_offline(play *p)
{
    hf_depot_write *write = NULL;
    p->o.takes = hf_seconds(1);
    HF_TRY(put(p, "A", "1", NULL));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(put(p, "A", "2", &write));
    HF_TRY(hf_depot_online(p->users, false));
    HF_TRY(hf_sleep(hf_minutes(10)));
    HF_CHECK(p->o.pushes == 1 && look(p).open == 1);
    int64_t before = hf_now(NULL).ns;
    HF_TRY(hf_depot_online(p->users, true));
    expect_settled(write, HF_OK);
    HF_CHECK(hf_now(NULL).ns - before < hf_seconds(3).ns);
    expect_runs(p, 0, 1);
    return HF_OK;
}

/* A paused activity holds the send. */
static hf_status scene_pause(play *p)
{
    hf_depot_write *write = NULL;
    p->o.is_down = true;
    HF_TRY(put(p, "A", "1", &write));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_CHECK(p->o.pushes == 1);
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("depot-users/acme/user/A")};
    hf_pb_pause_activity_request pause = {.namespace = HF_STR("default"),
                                          .execution = &which,
                                          .activity_case = HF_PB_PAUSE_ACTIVITY_REQUEST_ID,
                                          .id = HF_STR("1")};
    ask_about(p, HF_METHOD_PAUSE_ACTIVITY, &pause);
    p->o.is_down = false;
    HF_TRY(hf_sleep(hf_minutes(30)));
    HF_CHECK_SAY(p->o.pushes == 1, "%d pushes while it was paused", p->o.pushes);
    hf_pb_unpause_activity_request unpause = {.namespace = HF_STR("default"),
                                              .execution = &which,
                                              .activity_case = HF_PB_UNPAUSE_ACTIVITY_REQUEST_ID,
                                              .id = HF_STR("1")};
    ask_about(p, HF_METHOD_UNPAUSE_ACTIVITY, &unpause);
    expect_settled(write, HF_OK);
    HF_CHECK(p->o.pushes == 2);
    expect_runs(p, 0, 1);
    return HF_OK;
}

/* Without its driver the depot sends by itself. */
static hf_status scene_undrive(play *p)
{
    hf_depot_write *write = NULL;
    HF_CHECK(hf_depot_drive(p->users, p->service) == HF_ERR_EXISTS);
    HF_TRY(put(p, "A", "1", &write));
    expect_settled(write, HF_OK);
    HF_TRY(hf_depot_undrive(p->users));
    HF_TRY(hf_depot_undrive(p->users));
    HF_TRY(put(p, "B", "2", &write));
    expect_settled(write, HF_OK);
    found f = look(p);
    HF_CHECK(f.open + f.closed == 1);
    HF_TRY(hf_depot_drive(p->users, p->service));
    HF_TRY(put(p, "C", "3", &write));
    expect_settled(write, HF_OK);
    expect_runs(p, 0, 2);
    return HF_OK;
}

/* Somebody terminates the run: the write is not lost (depot-D8). */
static hf_status scene_terminated(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    hf_depot_write *write = NULL;
    p->o.is_down = true;
    HF_TRY(put(p, "A", "1", &write));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(hf_execution_new(p->service, "depot-users/acme/user/A", &run));
    HF_TRY(hf_terminate(run));
    p->o.is_down = false;
    HF_TRY(hf_sleep(hf_minutes(50)));
    HF_CHECK(p->o.pushes == 1);
    expect_settled(write, HF_OK); /* wanted again after an hour */
    HF_CHECK(p->o.pushes == 2 && strcmp(p->o.seen[0].id, p->o.seen[1].id) == 0);
    return HF_OK;
}

/* Writes to the origin first have the same order. */
static hf_status scene_origin_first(play *p)
{
    p->o.takes = hf_seconds(1);
    HF_TRY(put(p, "A", "1", NULL));
    HF_TRY(hf_depot_put(p->users, key_of("A"), "2", 1, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_CHECK(p->o.pushes == 2 && strcmp(p->o.seen[1].value, "2") == 0);
    p->o.refuses = "3";
    expect_runs(p, 0, 1);
    HF_CHECK(hf_depot_put(p->users, key_of("A"), "3", 1, .mode = HF_DEPOT_ORIGIN_FIRST) == HF_ERR_INVALID);
    expect_runs(p, 0, 2);
    return HF_OK;
}

/* The origin gives a new thing its key: the writes that came meanwhile are sent under that, by a run of its own. */
static hf_status scene_create(play *p)
{
    hf_depot_write *made = NULL;
    hf_depot_write *changed = NULL;
    hf_depot_id id;
    p->o.takes = hf_seconds(1);
    HF_TRY(hf_depot_create(p->users, hf_depot_key_of_bytes("acme", "user", NULL, 0), "1", 1, &id, .ret_write = &made));
    HF_TRY(
        hf_depot_put(p->users, hf_depot_key_of_bytes("acme", "user", id.bytes, id.len), "2", 1, .ret_write = &changed));
    expect_settled(made, HF_OK);
    expect_settled(changed, HF_OK);
    HF_CHECK(p->o.pushes == 2 && accepted(&p->o, "77", "2") == 1);
    expect_runs(p, 0, 2);
    return HF_OK;
}

/* ---- Playing ----------------------------------------------------------------------------------------------------- */

static hf_status (*scene_now)(play *p);
static hf_depot_drive_options drive_now;

static hf_status play_it(void *arg)
{
    (void)arg;
    play p = {.service = NULL};
    HF_TRY(hf_open("memory:", &p.service));
    HF_TRY(open_users(&p, NULL));
    drive_now.size = sizeof drive_now;
    HF_TRY(hf_depot_drive_with(p.users, p.service, &drive_now));
    hf_status status = scene_now(&p);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    HF_TRY(hf_depot_close(p.users));
    HF_CHECK_SAY(hf_close(p.service) == HF_OK, "%s", hf_error_text());
    return HF_OK;
}

static void one_seed(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), play_it, NULL, NULL) == HF_OK);
}

static void perform(const char *what, hf_status (*scene)(play *p))
{
    scene_now = scene;
    hf_each_seed(what, 10, one_seed);
    drive_now = (hf_depot_drive_options){0};
}

#define SCENE(name, scene)         \
    static void name(void **state) \
    {                              \
        (void)state;               \
        perform(#scene, scene);    \
    }
SCENE(DP6_sends_are_activities_of_one_run_per_key, scene_order)
SCENE(DP6_a_failed_send_is_tried_again_by_the_retry_policy, scene_retry)
SCENE(DP6_a_refused_write_is_dead_and_the_next_one_goes_on, scene_dead)
SCENE(conflicts_are_settled_as_without_a_workflow, scene_conflict)
SCENE(a_run_waits_while_the_depot_is_offline, scene_offline)
SCENE(a_paused_activity_holds_the_send, scene_pause)
SCENE(a_depot_that_is_not_driven_sends_by_itself, scene_undrive)
SCENE(DP6_a_terminated_run_loses_no_write, scene_terminated)
SCENE(DP6_writes_of_a_new_key_follow_it, scene_create)
SCENE(writes_to_the_origin_first_keep_their_order, scene_origin_first)

/* The retry policy gives up: the write is dead, and the next one has its turn. */
static hf_status scene_exhausted(play *p)
{
    hf_depot_write *first = NULL;
    hf_depot_write *second = NULL;
    p->o.is_down = true;
    HF_TRY(put(p, "A", "1", &first));
    HF_TRY(put(p, "A", "2", &second));
    expect_settled(first, HF_ERR_IO);
    HF_CHECK_SAY(p->o.pushes == 2, "%d pushes", p->o.pushes);
    p->o.is_down = false;
    expect_settled(second, HF_OK);
    HF_CHECK(accepted(&p->o, "A", "1") == 0 && accepted(&p->o, "A", "2") == 1);
    uint64_t sequence = 0;
    HF_TRY(hf_depot_pending(p->users, see_dead, &sequence));
    HF_CHECK(sequence == 1);
    expect_runs(p, 0, 1);
    return HF_OK;
}

static void DP6_a_write_whose_attempts_are_used_up_is_dead(void **state)
{
    (void)state;
    drive_now.attempts_max = 2;
    perform("exhausted", scene_exhausted);
}

/* ---- Restarts ---------------------------------------------------------------------------------------------------- */

static bool keeps_engine; /* else the next process has an engine that knows nothing */

/* The first process ends before the origin answers. */
static hf_status restart(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    play p = {.o = {.takes = hf_seconds(20)}};
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    HF_TRY(hf_open("memory:", &p.service));
    HF_TRY(open_users(&p, &store.base));
    HF_TRY(hf_depot_drive(p.users, p.service));
    HF_TRY(put(&p, "A", "1", NULL));
    HF_TRY(put(&p, "A", "2", NULL));
    HF_TRY(put(&p, "B", "3", NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(p.o.pushes == 2);
    HF_TRY(hf_depot_close(p.users));
    if (!keeps_engine) {
        HF_TRY(hf_close(p.service));
        HF_TRY(hf_open("memory:", &p.service));
    }
    HF_CHECK(look(&p).open == (keeps_engine ? 2 : 0));
    p.o.takes = hf_nanoseconds(0);
    int pushes = p.o.pushes;
    HF_TRY(open_users(&p, &store.base));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(p.o.pushes == pushes); /* .driven */
    HF_TRY(hf_depot_drive(p.users, p.service));
    HF_TRY(hf_sleep(hf_minutes(2)));
    found f = look(
        &p); /* a run that was left may have sent all before its new signal came, which then has a run of its own */
    HF_CHECK_SAY(f.open == 0 && f.closed >= 2 && f.closed <= (keeps_engine ? 4 : 2), "%d open, %d closed", f.open,
                 f.closed);
    HF_CHECK_SAY(accepted(&p.o, "A", "1") == 1 && accepted(&p.o, "A", "2") == 1 && accepted(&p.o, "B", "3") == 1,
                 "%d, %d and %d times", accepted(&p.o, "A", "1"), accepted(&p.o, "A", "2"), accepted(&p.o, "B", "3"));
    for (int i = 0; i < p.o.pushes; i++) {
        for (int j = 0; j < p.o.pushes; j++) { /* one id per write, whoever sent it */
            HF_CHECK((strcmp(p.o.seen[i].value, p.o.seen[j].value) == 0) ==
                     (strcmp(p.o.seen[i].id, p.o.seen[j].id) == 0));
        }
    }
    HF_TRY(hf_depot_close(p.users));
    HF_TRY(hf_close(p.service));
    hf_store_close(store.inner);
    return HF_OK;
}

static void one_restart(uint64_t seed)
{
    keeps_engine = seed % 2 == 0;
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), restart, NULL, NULL) == HF_OK);
}

static void DP6_a_restart_of_either_side_loses_and_doubles_nothing(void **state)
{
    (void)state;
    hf_each_seed("restart", 20, one_restart);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static hf_status refusals(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_depot_close) hf_depot *silent = NULL;
    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    origin o = {.pushes = 0};
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_depot_open("silent", &silent));
    HF_TRY(hf_depot_open("users", &users, .push = push, .state = &o));
    HF_CHECK(hf_depot_drive(silent, service) == HF_ERR_MISUSE && strstr(hf_error_text(), ".push") != NULL);
    HF_CHECK(hf_depot_drive(users, service, .queue = "") == HF_ERR_INVALID);
    HF_CHECK(hf_depot_drive(users, service, .retry_coefficient = 0.5) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_drive(users, service, .retry_max = hf_nanoseconds(5)) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_drive(users, service, .attempts_max = -7) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_undrive(users) == HF_OK);
    return HF_OK;
}

static void what_cannot_be_driven_is_refused(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 1, refusals, NULL, NULL) == HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(DP6_sends_are_activities_of_one_run_per_key),
    cmocka_unit_test(DP6_a_failed_send_is_tried_again_by_the_retry_policy),
    cmocka_unit_test(DP6_a_refused_write_is_dead_and_the_next_one_goes_on),
    cmocka_unit_test(conflicts_are_settled_as_without_a_workflow),
    cmocka_unit_test(a_run_waits_while_the_depot_is_offline),
    cmocka_unit_test(a_paused_activity_holds_the_send),
    cmocka_unit_test(a_depot_that_is_not_driven_sends_by_itself),
    cmocka_unit_test(DP6_a_terminated_run_loses_no_write),
    cmocka_unit_test(DP6_writes_of_a_new_key_follow_it),
    cmocka_unit_test(writes_to_the_origin_first_keep_their_order),
    cmocka_unit_test(DP6_a_write_whose_attempts_are_used_up_is_dead),
    cmocka_unit_test(DP6_a_restart_of_either_side_loses_and_doubles_nothing),
    cmocka_unit_test(what_cannot_be_driven_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot drive", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
