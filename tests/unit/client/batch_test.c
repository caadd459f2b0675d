/* hf_delete and hf_batch_*, through a service; and runs that are kept for a span of their own. */
#include "unit/client/scene.h"

#include <holdfast/batch.h>
#include <holdfast/list.h>
#include <holdfast/stream.h>

static hf_status start(scene *s, const char *id, const char *type)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    return hf_start(s->service, type, hf_payload_none(), &w, .id = id);
}

static int64_t count(scene *s, const char *query)
{
    hf_counts counts = {0};
    HF_CHECK(hf_count(s->service, &counts, .query = query) == HF_OK);
    return counts.total;
}

/* Until it is over; virtual time. */
static hf_batch_info wait_for(scene *s, const char *id)
{
    hf_batch_info info = {0};
    for (int i = 0; i < 1000; i++) {
        if (hf_batch_describe(s->service, id, &info) != HF_OK || info.state != HF_BATCH_RUNNING) {
            break;
        }
        HF_CHECK(hf_sleep(hf_milliseconds(10)) == HF_OK);
    }
    return info;
}

static int signals_of(scene *s, const char *id, const char *name)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_AUTO(hf_payload_free) hf_payload history = hf_payload_none();
    HF_CHECK(hf_execution_new(s->service, id, &w) == HF_OK && hf_history(w, &history) == HF_OK);
    char wanted[100];
    (void)snprintf(wanted, sizeof wanted, "\"signalName\":\"%s\"", name);
    int found = 0;
    char *text = calloc(1, history.len + 1);
    HF_CHECK(text != NULL);
    size_t len = 0;
    for (size_t i = 0; text != NULL && i < history.len; i++) { /* without the spaces between keys and values */
        char c = ((const char *)history.data)[i];
        if (c != ' ' && c != '\n') {
            text[len++] = c;
        }
    }
    for (const char *at = text; at != NULL && (at = strstr(at, wanted)) != NULL; at++) {
        found++;
    }
    free(text);
    return found;
}

typedef struct seen {
    char ids[200];
    int count, stop_after;
} seen;

static bool see(void *arg, const hf_batch_info *info)
{
    seen *it = arg;
    size_t len = strlen(it->ids);
    (void)snprintf(it->ids + len, sizeof it->ids - len, "%s:%d ", info->id, (int)info->state);
    return ++it->count != it->stop_after;
}

static hf_status acts(scene *s)
{
    HF_TRY(start(s, "a", "order"));
    HF_TRY(start(s, "b", "order"));
    HF_TRY(start(s, "c", "bill"));
    HF_TRY(hf_batch_start(s->service, "sig", HF_BATCH_SIGNAL, .query = "WorkflowType = 'order'", .signal = "go",
                          .input = hf_payload_of_json("7"), .reason = "why not"));
    hf_batch_info info = wait_for(s, "sig");
    HF_CHECK(info.state == HF_BATCH_COMPLETED && info.kind == HF_BATCH_SIGNAL && strcmp(info.id, "sig") == 0);
    HF_CHECK(info.total == 2 && info.complete == 2 && info.failed == 0 && info.ended.ns >= info.started.ns);
    HF_CHECK(signals_of(s, "a", "go") == 1 && signals_of(s, "b", "go") == 1 && signals_of(s, "c", "go") == 0);
    static const char *const IDS[] = {"b", "nobody"};
    HF_TRY(hf_batch_start(s->service, "cancel", HF_BATCH_CANCEL, .ids = IDS, .id_count = 2));
    info = wait_for(s, "cancel");
    HF_CHECK(info.state == HF_BATCH_COMPLETED && info.total == 2 && info.complete == 2);
    HF_TRY(hf_batch_start(s->service, "end", HF_BATCH_TERMINATE, .query = "WorkflowType = 'order'"));
    HF_CHECK(wait_for(s, "end").complete == 2 && count(s, "ExecutionStatus = 'Terminated'") == 2);
    HF_TRY(hf_batch_start(s->service, "reset", HF_BATCH_RESET, .query = "WorkflowId = 'a'", .point = HF_RESET_FIRST));
    info = wait_for(s, "reset");
    HF_CHECK(info.state == HF_BATCH_COMPLETED && info.complete + info.failed == 1);
    HF_TRY(hf_batch_start(s->service, "calm", HF_BATCH_UNPAUSE_ACTIVITIES, .ids = (const char *const[]){"c"},
                          .id_count = 1, .activity_type = "pay"));
    HF_CHECK(wait_for(s, "calm").kind == HF_BATCH_UNPAUSE_ACTIVITIES);
    HF_TRY(hf_batch_start(s->service, "again", HF_BATCH_RESET_ACTIVITIES, .ids = (const char *const[]){"c"},
                          .id_count = 1));
    HF_CHECK(wait_for(s, "again").kind == HF_BATCH_RESET_ACTIVITIES);
    HF_TRY(hf_batch_start(s->service, "gone", HF_BATCH_DELETE, .query = "WorkflowType = 'order'"));
    HF_CHECK(wait_for(s, "gone").state == HF_BATCH_COMPLETED && count(s, "WorkflowType = 'order'") == 0);
    HF_CHECK(count(s, NULL) == 1);
    seen all = {0};
    seen two = {.stop_after = 2};
    HF_TRY(hf_batch_list(s->service, see, &all));
    HF_CHECK(strcmp(all.ids, "gone:2 again:2 calm:2 reset:2 end:2 cancel:2 sig:2 ") == 0);
    HF_TRY(hf_batch_list(s->service, see, &two));
    HF_CHECK(two.count == 2);
    return HF_OK;
}

static void batches_act(void **state)
{
    (void)state;
    scene_run(acts);
}

static int attempts_of(scene *s, const char *id, hf_time *ret_expires)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    HF_CHECK(hf_execution_new(s->service, id, &w) == HF_OK && hf_describe(w, &it) == HF_OK && it->activity_count == 1);
    *ret_expires = it->activity_count == 1 ? it->activities[0].expires : (hf_time){0};
    return it->activity_count == 1 ? it->activities[0].attempts_max : -1;
}

static hf_status changes(scene *s)
{
    hf_time before = {0};
    hf_time now = {0};
    HF_AUTO(hf_execution_free) hf_execution *w = scene_start(s);
    const scene_task *task = scene_poll(s);
    scene_reply reply = {0};
    scene_activity(s, &reply, "a1", 3);
    scene_complete(s, task, &reply);
    HF_CHECK(attempts_of(s, "w", &before) == 3);
    HF_TRY(hf_batch_start(s->service, "more", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'",
                          .schedule_to_close = hf_seconds(2000), .start_to_close = hf_seconds(100),
                          .schedule_to_start = hf_seconds(300), .heartbeat = hf_seconds(20), .attempts_max = 7));
    hf_batch_info info = wait_for(s, "more");
    HF_CHECK_SAY(info.kind == HF_BATCH_ACTIVITY_OPTIONS && info.complete == 1 && info.failed == 0, "%s", info.why);
    HF_CHECK(attempts_of(s, "w", &now) == 7 && now.ns == before.ns + hf_seconds(1000).ns);
    HF_TRY(hf_batch_start(s->service, "once", HF_BATCH_ACTIVITY_OPTIONS, .ids = (const char *const[]){"w"},
                          .id_count = 1, .activity_type = "charge", .attempts_max = HF_OFF));
    HF_CHECK(wait_for(s, "once").failed == 0 && attempts_of(s, "w", &now) == 1);
    HF_CHECK(now.ns == before.ns + hf_seconds(1000).ns);
    HF_TRY(hf_batch_start(s->service, "other", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'",
                          .activity_type = "another", .attempts_max = HF_UNLIMITED));
    HF_CHECK(wait_for(s, "other").failed == 0 && attempts_of(s, "w", &now) == 1);
    HF_TRY(hf_batch_start(s->service, "all", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'",
                          .attempts_max = HF_UNLIMITED, .schedule_to_close = HF_SPAN_UNLIMITED));
    HF_CHECK(wait_for(s, "all").failed == 0 && attempts_of(s, "w", &now) == 0 && now.ns == 0);
    HF_TRY(
        hf_batch_start(s->service, "back", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'", .original = true));
    HF_CHECK(wait_for(s, "back").failed == 0 && attempts_of(s, "w", &now) == 3 && now.ns == before.ns);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'") == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "as .start_to_close, or .original") != NULL);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'", .original = true,
                            .attempts_max = 2) == HF_ERR_INVALID);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_ACTIVITY_OPTIONS, .query = "WorkflowId = 'w'",
                            .heartbeat = hf_nanoseconds(5)) == HF_ERR_INVALID);
    return HF_OK;
}

static void a_batch_gives_activities_other_options(void **state)
{
    (void)state;
    scene_run(changes);
}

/* A list names runs, too: older ones, and the current one where none is named. Runs of a list that are not there need nothing. */
static hf_status lists(scene *s)
{
    char first[64] = "";
    for (int i = 0; i < 2; i++) {
        HF_AUTO(hf_execution_free) hf_execution *w = NULL;
        HF_TRY(hf_start(s->service, "order", hf_payload_none(), &w, .id = "a"));
        if (i == 0) {
            (void)snprintf(first, sizeof first, "%s", hf_execution_run_id(w));
            HF_TRY(hf_terminate(w));
        }
    }
    HF_TRY(start(s, "b", "order"));
    HF_TRY(start(s, "c", "order"));
    const char *const ids[] = {"a", "b"};
    const char *const runs[] = {first, NULL};
    HF_TRY(hf_batch_start(s->service, "old", HF_BATCH_DELETE, .ids = ids, .run_ids = runs, .id_count = 2));
    hf_batch_info info = wait_for(s, "old");
    HF_CHECK(info.state == HF_BATCH_COMPLETED && info.total == 2 && info.complete == 2 && info.failed == 0);
    HF_CHECK(count(s, "WorkflowId = 'a'") == 1 && count(s, "WorkflowId = 'a' AND ExecutionStatus = 'Running'") == 1);
    HF_CHECK(count(s, "WorkflowId = 'b'") == 0 && count(s, "WorkflowId = 'c'") == 1);
    const char *const twice[] = {"c", "c", "nobody", "a"};
    HF_TRY(hf_batch_start(s->service, "sig", HF_BATCH_SIGNAL, .ids = twice, .id_count = 4, .signal = "go"));
    HF_CHECK(wait_for(s, "sig").state == HF_BATCH_COMPLETED);
    HF_CHECK(signals_of(s, "c", "go") == 1 && signals_of(s, "a", "go") == 1);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_CANCEL, .query = "WorkflowId = 'a'", .run_ids = runs) ==
             HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), ".run_ids are runs of .ids") != NULL);
    return HF_OK;
}

static void a_batch_takes_a_list_of_runs(void **state)
{
    (void)state;
    scene_run(lists);
}

static hf_status stops(scene *s)
{
    for (int i = 0; i < 6; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%d", i);
        HF_TRY(start(s, id, "order"));
    }
    HF_TRY(hf_batch_start(s->service, "slow", HF_BATCH_SIGNAL, .query = "WorkflowType = 'order'", .signal = "go",
                          .rate = 1));
    HF_CHECK(hf_sleep(hf_milliseconds(1500)) == HF_OK);
    HF_TRY(hf_batch_stop(s->service, "slow", .reason = "too slow"));
    hf_batch_info info = {0};
    HF_TRY(hf_batch_describe(s->service, "slow", &info));
    HF_CHECK(info.state == HF_BATCH_FAILED && info.complete >= 1 && info.complete < 6);
    HF_CHECK(strstr(info.why, "too slow") != NULL);
    int64_t reached = info.complete;
    HF_CHECK(hf_sleep(hf_seconds(20)) == HF_OK);
    HF_TRY(hf_batch_describe(s->service, "slow", &info));
    HF_CHECK(info.complete == reached);
    HF_CHECK(hf_batch_stop(s->service, "slow") == HF_ERR_NOT_FOUND);
    return HF_OK;
}

static void a_batch_that_is_stopped_reaches_no_other_run(void **state)
{
    (void)state;
    scene_run(stops);
}

static hf_status refusals(scene *s)
{
    hf_batch_info info = {0};
    static const char *const IDS[] = {"a"};
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_TERMINATE) == HF_ERR_INVALID);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_TERMINATE, .query = "A = 1", .ids = IDS, .id_count = 1) ==
             HF_ERR_INVALID);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_TERMINATE, .query = "WorkflowId = ") == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "column") != NULL);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_SIGNAL, .query = "WorkflowId = 'a'") == HF_ERR_INVALID);
    HF_CHECK(hf_batch_start(s->service, "x", (hf_batch_kind)99, .query = "WorkflowId = 'a'") == HF_ERR_INVALID);
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_CANCEL, .query = "WorkflowId = 'a'", .namespace_ = "nowhere") ==
             HF_ERR_NOT_FOUND);
    HF_CHECK(hf_batch_start(NULL, "x", HF_BATCH_CANCEL) == HF_ERR_MISUSE);
    HF_TRY(hf_batch_start(s->service, "x", HF_BATCH_CANCEL, .query = "WorkflowId = 'a'"));
    HF_CHECK(hf_batch_start(s->service, "x", HF_BATCH_CANCEL, .query = "WorkflowId = 'b'") == HF_ERR_EXISTS);
    HF_CHECK(hf_batch_describe(s->service, "y", &info) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_batch_describe(s->service, "x", &info, .namespace_ = "nowhere") == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_batch_stop(s->service, "y") == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_batch_list(s->service, NULL, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    scene_run(refusals);
}

static hf_status deletes(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_AUTO(hf_execution_free) hf_execution *none = NULL;
    HF_TRY(start(s, "a", "order"));
    HF_TRY(hf_execution_new(s->service, "a", &w));
    HF_TRY(hf_terminate(w));
    HF_TRY(start(s, "a", "order"));
    HF_TRY(hf_delete(w, .all_runs = true));
    HF_CHECK(count(s, NULL) == 0 && hf_delete(w) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_execution_new(s->service, "nobody", &none));
    HF_CHECK(hf_delete(none) == HF_ERR_NOT_FOUND && hf_delete(NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void runs_are_deleted(void **state)
{
    (void)state;
    scene_run(deletes);
}

static hf_status keeps(scene *s)
{
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    HF_CHECK(hf_start(s->service, "order", hf_payload_none(), NULL, .keep = hf_seconds(-1)) == HF_ERR_INVALID);
    HF_TRY(hf_start(s->service, "order", hf_payload_none(), &w, .id = "a", .keep = hf_minutes(1)));
    HF_TRY(start(s, "b", "order"));
    HF_CHECK(hf_sleep(hf_minutes(5)) == HF_OK && count(s, NULL) == 2); /* it has not ended */
    HF_TRY(hf_terminate(w));
    HF_CHECK(hf_sleep(hf_seconds(50)) == HF_OK && count(s, NULL) == 2);
    HF_CHECK(hf_sleep(hf_seconds(20)) == HF_OK && count(s, NULL) == 1);
    HF_CHECK(count(s, "WorkflowId = 'b'") == 1);
    return HF_OK;
}

static void a_run_is_kept_for_a_span_of_its_own(void **state)
{
    (void)state;
    scene_run(keeps);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(batches_act),
        cmocka_unit_test(a_batch_gives_activities_other_options),
        cmocka_unit_test(a_batch_takes_a_list_of_runs),
        cmocka_unit_test(a_batch_that_is_stopped_reaches_no_other_run),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(runs_are_deleted),
        cmocka_unit_test(a_run_is_kept_for_a_span_of_its_own),
    };
    return hf_test_main("client_batch", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
