/* hf_publish, hf_stream_read and hf_history: with a cache and without one, with answers that are refused, the records are the same. */
#include "unit/worker/play.h"

#include <stdlib.h>

static void play_all_ways(play_options options)
{
    play_on(options);
    options.worker.cached_max = HF_OFF;
    play_on(options);
    options.worker.cached_max = 0;
    options.tap.refuse_every = 2;
    play_on(options);
    options.tap.refuse_every = 0;
    options.tap.late_tasks = true;
    play_on(options);
}

static bool note_record(void *arg, const hf_stream_record *record)
{
    play_note(arg, "%lld:%s:%.*s ", (long long)record->sequence, record->type, (int)record->value.len,
              (const char *)record->value.data);
    return true;
}

static hf_status say(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_TRY(hf_publish("said", in));
    return hf_publish(NULL, hf_payload_none());
}

static hf_status follow(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    int64_t cursor = 0;
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("0"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_stream_read(execution, &cursor, note_record, p));
    play_note(p, "end %lld", (long long)cursor);
    return HF_OK;
}

/* ---- In workflows and activities ------------------------------------------------------------------------------------- */

static hf_status on_query(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    (void)ret_out;
    HF_CHECK(hf_publish("no", hf_payload_none()) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status local(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_CHECK(hf_publish("no", hf_payload_none()) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status publishes(hf_payload in, hf_payload *ret_out)
{
    static char large[(2u << 20) + 1];
    char name[1002];
    (void)ret_out;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    HF_TRY(hf_on_query("q", on_query));
    HF_TRY(hf_publish("a", hf_payload_of_json("1")));
    HF_CHECK(hf_publish(name, hf_payload_none()) == HF_ERR_INVALID);
    HF_CHECK(hf_publish("large", hf_payload_of_bytes(large, sizeof large)) == HF_ERR_TOO_BIG);
    HF_TRY(hf_activity_run("say", in, NULL, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_activity_run_local("local", in, NULL, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_publish("b", hf_payload_of_json("2")));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_publish("c", hf_payload_of_json("3"));
}

static hf_status add_publishes(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "main", publishes));
    HF_TRY(hf_worker_add_activity(worker, "local", local));
    return hf_worker_add_activity(worker, "say", say);
}

static void records_are_published_once(void **state)
{
    (void)state;
    play_all_ways(
        (play_options){.add = add_publishes, .body = follow, .result = "0:a:1 1:said:0 2:: 3:b:2 4:c:3 end 5"});
}

/* ---- Chains ------------------------------------------------------------------------------------------------------------ */

static hf_status continues(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    char next[16];
    int round = atoi(in.data);
    HF_TRY(hf_publish("round", in));
    if (round == 3) {
        return HF_OK;
    }
    (void)snprintf(next, sizeof next, "%d", round + 1);
    return hf_continue_as_new(hf_payload_of_json(next));
}

static hf_status add_continues(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "main", continues);
}

static void numbers_go_on_over_runs(void **state)
{
    (void)state;
    play_all_ways((play_options){
        .add = add_continues, .body = follow, .result = "0:round:0 1:round:1 2:round:2 3:round:3 end 4"});
}

/* ---- The limit --------------------------------------------------------------------------------------------------------- */

static hf_status fills(hf_payload in, hf_payload *ret_out)
{
    static char large[2u << 20];
    (void)in;
    int count = 0;
    hf_status status = HF_OK;
    while ((status = hf_publish(NULL, hf_payload_of_bytes(large, sizeof large - 4096))) == HF_OK) {
        count++;
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    return hf_payload_printf(ret_out, "\"%s after %d\"", hf_status_name(status), count);
}

static hf_status add_fills(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "main", fills);
}

static hf_status note_result(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("0"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_result(execution, &out));
    play_note(p, "%s", (const char *)out.data);
    return HF_OK;
}

static void a_stream_is_full_at_the_same_place_in_a_replay(void **state)
{
    (void)state;
    play_options options = {.add = add_fills, .body = note_result, .result = "\"HF_ERR_LIMIT after 25\""};
    play_on(options);
    options.worker.cached_max = HF_OFF;
    play_on(options);
}

/* ---- Readers ------------------------------------------------------------------------------------------------------------ */

static bool stop_at_first(void *arg, const hf_stream_record *record)
{
    (void)note_record(arg, record);
    return false;
}

static hf_status read_in_parts(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_execution_free) hf_execution *nobody = NULL;
    HF_AUTO(hf_payload_free) hf_payload json = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload bytes = hf_payload_none();
    int64_t cursor = 0;
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("0"), &execution, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_stream_read(execution, &cursor, stop_at_first, p));
    HF_CHECK(hf_stream_read(execution, &cursor, note_record, p, .timeout = hf_milliseconds(500)) == HF_ERR_TIMEOUT);
    play_note(p, "at %lld ", (long long)cursor);
    HF_TRY(hf_stream_read(execution, &cursor, note_record, p));
    HF_CHECK(hf_stream_read(execution, NULL, note_record, p) == HF_ERR_MISUSE);
    cursor = -1;
    HF_CHECK(hf_stream_read(execution, &cursor, note_record, p) == HF_ERR_INVALID);
    HF_TRY(hf_execution_new(p->service, "nobody", &nobody));
    cursor = 0;
    HF_CHECK(hf_stream_read(nobody, &cursor, note_record, p) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_publish("no", hf_payload_none()) == HF_ERR_MISUSE);

    HF_TRY(hf_history(execution, &json));
    HF_CHECK(strstr(json.data, "\"eventType\":\"EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED\"") != NULL ||
             strstr(json.data, "WORKFLOW_EXECUTION_COMPLETED") != NULL);
    HF_TRY(hf_history(execution, &bytes, .as_bytes = true));
    HF_CHECK(bytes.len > 0 && bytes.len < json.len);
    HF_CHECK(hf_history(nobody, &bytes) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_history(execution, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void a_reader_stops_and_goes_on(void **state)
{
    (void)state;
    play_on(
        (play_options){.add = add_publishes, .body = read_in_parts, .result = "0:a:1 1:said:0 2:: at 3 3:b:2 4:c:3 "});
}

/* ---- Changes ------------------------------------------------------------------------------------------------------------ */

static bool note_change(void *arg, const hf_run_change *change)
{
    bool is_over = change->status != HF_WORKFLOW_RUNNING;
    HF_CHECK(strcmp(change->type, "main") == 0 && change->run_id[0] != '\0');
    if (is_over) {
        play_note(arg, "%s %s", change->id, hf_workflow_status_name(change->status));
    }
    return !is_over;
}

static hf_status watch_changes(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload cursor = hf_payload_none();
    HF_CHECK(hf_changes_read(p->service, &cursor, note_change, p) == HF_ERR_AGAIN); /* from now on */
    HF_CHECK(hf_changes_read(p->service, &cursor, note_change, p, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_changes_read(p->service, &cursor, note_change, p, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_changes_read(p->service, &cursor, NULL, p) == HF_ERR_MISUSE);
    HF_TRY(hf_start(p->service, "main", hf_payload_of_json("0"), &execution, .id = "w", .task_queue = "orders"));
    while (p->len == 0) {
        HF_TRY(hf_changes_read(p->service, &cursor, note_change, p));
    }
    return HF_OK;
}

static void a_page_stays_live(void **state)
{
    (void)state;
    play_on((play_options){.add = add_publishes, .body = watch_changes, .result = "w Completed"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_published_once),
        cmocka_unit_test(numbers_go_on_over_runs),
        cmocka_unit_test(a_stream_is_full_at_the_same_place_in_a_replay),
        cmocka_unit_test(a_reader_stops_and_goes_on),
        cmocka_unit_test(a_page_stays_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
