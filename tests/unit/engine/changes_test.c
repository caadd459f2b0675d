/* The feed of changes, and the list of task queues. */
#include "fixture.h"

#include "engine/changes.h"

#include <stdio.h>

static char cursor[64];
static size_t cursor_len;

/* Asks from the cursor on. */
static hf_rig_call *ask(const char *slot_name, const char *namespace_, int32_t max, bool waits)
{
    hf_rig_call *slot = hf_rig_slot(&rig, slot_name);
    hf_pb_read_changes_request *request = HF_RIG_REQUEST(slot, read_changes);
    request->namespace = hf_str_of(namespace_);
    request->cursor = hf_arena_copy(&slot->request, hf_str_of_len(cursor, cursor_len));
    request->maximum_page_size = max;
    request->wait_new_change = waits;
    hf_rig_send(&rig, slot, HF_METHOD_READ_CHANGES, request);
    return slot;
}

/* "wf:Status+..." and "!" at a gap; moves the cursor. */
static const char *answer(const hf_rig_call *slot)
{
    static char text[400];
    size_t len = 0;
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_read_changes_response *response = slot->call.response;
    for (size_t i = 0; i < response->changes.count; i++) {
        const hf_pb_run_change *change = &response->changes.items[i];
        assert_true(change->execution->run_id.len > 0 && change->workflow_type.len > 0);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s:%d", i > 0 ? "+" : "",
                                HF_STR_ARGS(change->execution->workflow_id), (int)change->status);
    }
    (void)snprintf(text + len, sizeof text - len, "%s", response->is_gap ? "!" : "");
    assert_true(response->cursor.len > 0 && response->cursor.len <= sizeof cursor);
    memcpy(cursor, response->cursor.data, response->cursor.len);
    cursor_len = response->cursor.len;
    return text;
}

static const char *changes(int32_t max)
{
    return answer(ask("c", HF_RIG_NS, max, false));
}

static void begin(void)
{
    cursor_len = 0;
    assert_string_equal(changes(0), "!"); /* from now on */
}

static void changes_come_in_order(void **state)
{
    (void)state;
    begin();
    assert_string_equal(changes(0), "");
    hf_rig_do(&rig, "start a; start b; start x ns=other; signal a s");
    assert_string_equal(changes(2), "a:1+b:1");
    assert_string_equal(changes(0), "a:1");
    hf_rig_do(&rig, "terminate b");
    assert_string_equal(changes(0), "b:5");
    assert_string_equal(changes(0), "");
}

static void a_reader_waits(void **state)
{
    (void)state;
    begin();
    hf_rig_call *slot = ask("c", HF_RIG_NS, 0, true);
    assert_false(slot->done);
    hf_rig_do(&rig, "start x ns=other");
    assert_false(slot->done);
    rig.hold = true;
    (void)hf_rig_step(&rig, "start a");
    assert_false(slot->done); /* engine-F1 */
    rig.hold = false;
    hf_rig_settle(&rig);
    assert_string_equal(answer(slot), "a:1");
    slot = ask("c", HF_RIG_NS, 0, true);
    hf_rig_do(&rig, "time 20s");
    assert_string_equal(answer(slot), "");
    slot = ask("c", HF_RIG_NS, 0, true);
    assert_true(hf_core_cancel(rig.core, &slot->call, rig.now));
    assert_int_equal(slot->call.status, HF_ERR_CANCELED);
}

/* engine-F1: its cursor is behind changes that a crash could undo. */
static void a_wait_ends_with_the_commit(void **state)
{
    (void)state;
    begin();
    hf_rig_call *slot = ask("c", HF_RIG_NS, 0, true);
    rig.hold = true;
    (void)hf_rig_step(&rig, "start x ns=other");
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    rig.now.mono += hf_seconds(20).ns;
    hf_core_tick(rig.core, rig.now);
    assert_false(slot->done);
    hf_store_execute(rig.store, commit);
    hf_core_done(rig.core, commit, rig.now);
    rig.hold = false;
    hf_rig_settle(&rig);
    assert_string_equal(answer(slot), "");
}

static void a_cursor_may_be_too_old(void **state)
{
    (void)state;
    begin();
    hf_rig_do(&rig, "start a");
    rig.no_check = true;
    for (int i = 0; i <= HF_CHANGES_MAX; i++) {
        hf_rig_do(&rig, i % 2 == 0 ? "signal a s" : "signal a t");
        if (i % 4000 == 3999) {
            hf_rig_do(&rig, "terminate a; start a");
        }
    }
    assert_string_equal(changes(0), "!");
    hf_rig_do(&rig, "start b");
    assert_string_equal(changes(0), "b:1");
    hf_rig_do(&rig, "crash"); /* another opening */
    assert_string_equal(changes(0), "!");
    hf_rig_do(&rig, "signal b s");
    assert_string_equal(changes(0), "b:1");
    hf_rig_call *other = ask("o", "other", 0, false); /* the cursor of another namespace */
    assert_string_equal(answer(other), "!");
}

/* Nobody asks for a while: nothing is kept. */
static void an_idle_feed_ends(void **state)
{
    (void)state;
    begin();
    hf_rig_do(&rig, "start a; time 6m; signal a s");
    assert_null(rig.core->changes.ring);
    assert_string_equal(changes(0), "!");
    assert_non_null(rig.core->changes.ring);
}

/* ---- Task queues ------------------------------------------------------------------------------------------------------- */

static char token[1200];
static size_t token_len;

/* "NAME/TYPE/pollers/backlog+..." */
static const char *queues(const char *namespace_, int32_t page)
{
    static char text[800];
    size_t len = 0;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_list_task_queues_request *request = HF_RIG_REQUEST(slot, list_task_queues);
    request->namespace = hf_str_of(namespace_);
    request->page_size = page;
    request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(token, token_len));
    hf_rig_send(&rig, slot, HF_METHOD_LIST_TASK_QUEUES, request);
    assert_true(slot->done);
    if (slot->call.status != HF_OK) {
        return hf_status_name(slot->call.status);
    }
    const hf_pb_list_task_queues_response *response = slot->call.response;
    text[0] = '\0';
    for (size_t i = 0; i < response->queues.count; i++) {
        const hf_pb_task_queue_entry *entry = &response->queues.items[i];
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s/%d/%lld/%lld", i > 0 ? "+" : "",
                                HF_STR_ARGS(entry->name), (int)entry->type, (long long)entry->pollers,
                                (long long)entry->backlog);
    }
    token_len = response->next_page_token.len;
    memcpy(token, response->next_page_token.data != NULL ? response->next_page_token.data : "", token_len);
    return text;
}

static void queues_are_listed(void **state)
{
    (void)state;
    token_len = 0;
    assert_string_equal(queues(HF_RIG_NS, 0), "");
    hf_rig_do(&rig, "start a queue=one; start b queue=one; start c queue=two; start x queue=hidden ns=other;"
                    "poll queue=three as=p => parked; apoll queue=one as=q => parked");
    assert_string_equal(queues(HF_RIG_NS, 0), "one/2/1/0+one/1/0/2+three/1/1/0+two/1/0/1");
    assert_string_equal(queues(HF_RIG_NS, 2), "one/2/1/0+one/1/0/2");
    assert_true(token_len > 0);
    assert_string_equal(queues("other", 2), "HF_ERR_INVALID"); /* the token of another namespace */
    assert_string_equal(queues(HF_RIG_NS, 2), "three/1/1/0+two/1/0/1");
    assert_int_equal(token_len, 0);
    assert_string_equal(queues("other", 0), "hidden/1/0/1");
}

/* Those that are only rows are found, too. */
static void queues_on_disk_are_listed(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    token_len = 0;
    hf_rig_do(&rig, "start a queue=one; start b queue=one; start c queue=two; start x queue=hidden ns=other; crash");
    assert_string_equal(queues(HF_RIG_NS, 0), "one/1/0/0+two/1/0/0");
    assert_string_equal(queues(HF_RIG_NS, 1), "one/1/0/0");
    assert_string_equal(queues(HF_RIG_NS, 1), "two/1/0/0");
    token_len = 0;
    assert_true(hf_rig_probe(&rig, HF_PROBE_QUEUES_COLD) > 0);
    assert_string_equal(queues("other", 0), "hidden/1/0/0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_come_in_order),     TEST(a_reader_waits),    TEST(a_wait_ends_with_the_commit),
        TEST(a_cursor_may_be_too_old),   TEST(an_idle_feed_ends), TEST(queues_are_listed),
        TEST(queues_on_disk_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
