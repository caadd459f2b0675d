/* Makes the inputs that fuzzing starts from: `fuzz_seeds FOLDER FIXTURE...` writes them to FOLDER/<target>/. Those of `store` are
 * taken from the databases of tests/fixtures and from rigs, a run at a time with all that leads to it. The corpora in
 * tests/fuzz/corpus have grown from these; they are only needed again when a format has changed. */
#include "fuzz/drive.h"

#include "proto/pb.h"
#include "store/sqlite/sqlite.h"
#include "support/engine_rig.h"
#include "unit/wire/pb_random.h"
#include "wire/pb_json.h"

#include <sys/stat.h>

static const char *folder;

static void write_file(const char *target, const char *name, const void *bytes, size_t len)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    (void)fclose(file);
}

static hf_buf new_buf(void)
{
    hf_buf buf;
    hf_buf_init(&buf, hf_rig_heap, SIZE_MAX / 4);
    return buf;
}

static hf_str str_of(const hf_buf *buf)
{
    return hf_str_of_len(buf->data, buf->len);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

static void put_call(hf_buf *out, hf_method method, const void *request, uint64_t bits, int64_t time)
{
    hf_buf body = new_buf();
    hf_buf step = new_buf();
    if (request != NULL) {
        hf_pb_encode(hf_method_info_of(method)->request_type, request, &body);
    }
    hf_pb_put_uint(&step, FUZZ_CALL_TIME, (uint64_t)time);
    hf_pb_put_uint(&step, FUZZ_CALL_METHOD, (uint64_t)method);
    hf_pb_put_bytes(&step, FUZZ_CALL_REQUEST, str_of(&body));
    hf_pb_put_uint(&step, FUZZ_CALL_BITS, bits);
    hf_pb_put_bytes(out, FUZZ_CALL, str_of(&step));
    hf_buf_deinit(&body);
    hf_buf_deinit(&step);
}

/* Everything that can be asked about one run, and for its tasks. */
static void put_calls(hf_buf *out, const hf_pb_run_state *state)
{
    hf_str ns = state->namespace;
    hf_pb_task_queue queue = {.name = state->task_queue};
    hf_pb_task_queue activities = {.name = HF_STR("q")};
    hf_pb_workflow_execution run = {.workflow_id = state->workflow_id, .run_id = state->run_id};
    hf_pb_payload payload = {.data = HF_STR("data")};
    hf_pb_payloads data = {.payloads = {&payload, 1}};
    int64_t second = 1000000000;

    hf_pb_describe_workflow_execution_request describe = {.namespace = ns, .execution = &run};
    put_call(out, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &describe, 0, 0);
    hf_pb_get_workflow_execution_history_request history = {.namespace = ns, .execution = &run, .maximum_page_size = 2};
    put_call(out, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &history, 0, 0);
    put_call(out, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &history, 0, 0);
    hf_pb_signal_workflow_execution_request signal = {
        .namespace = ns, .workflow_execution = &run, .signal_name = HF_STR("s"), .input = &data};
    put_call(out, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &signal, 0, 0);
    hf_pb_poll_workflow_task_queue_request poll = {.namespace = ns, .task_queue = &queue};
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 3, 0);
    hf_pb_start_timer_command_attributes timer = {.timer_id = HF_STR("new"),
                                                  .start_to_fire_timeout = {.seconds = 5, .has = true}};
    hf_pb_workflow_type type = {.name = HF_STR("t")};
    hf_pb_activity_type activity_type = {.name = HF_STR("t")};
    (void)type;
    hf_pb_schedule_activity_task_command_attributes activity = {.activity_id = HF_STR("b"),
                                                                .activity_type = &activity_type,
                                                                .task_queue = &activities,
                                                                .start_to_close_timeout = {.seconds = 5, .has = true}};
    hf_pb_command commands[] = {
        {.command_type = HF_COMMAND_TYPE_START_TIMER,
         .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
         .start_timer_command_attributes = &timer},
        {.command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
         .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
         .schedule_activity_task_command_attributes = &activity},
    };
    hf_pb_respond_workflow_task_completed_request completed = {.namespace = ns, .commands = {commands, 2}};
    put_call(out, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &completed, 0, 0);
    hf_pb_poll_activity_task_queue_request apoll = {.namespace = ns, .task_queue = &activities};
    put_call(out, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &apoll, 1, 0);
    hf_pb_record_activity_task_heartbeat_request heartbeat = {.namespace = ns, .details = &data};
    put_call(out, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &heartbeat, 0, second / 1000);
    hf_pb_respond_activity_task_failed_request failed = {.namespace = ns};
    put_call(out, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &failed, 0, 0);
    put_call(out, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &apoll, 0, 20 * second);
    hf_pb_respond_activity_task_completed_request done = {.namespace = ns, .result = &data};
    put_call(out, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &done, 0, 0);
    hf_pb_request_cancel_workflow_execution_request cancel = {.namespace = ns, .workflow_execution = &run};
    put_call(out, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &cancel, 0, 7200 * second);
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 0, 0);
    hf_pb_respond_workflow_task_failed_request task_failed = {.namespace = ns};
    put_call(out, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, &task_failed, 0, 0);
    hf_pb_terminate_workflow_execution_request terminate = {.namespace = ns, .workflow_execution = &run};
    put_call(out, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &terminate, 0, 0);
}

/* The same once more, with what else there is. */
static void put_more_calls(hf_buf *out, const hf_pb_run_state *state)
{
    hf_str ns = state->namespace;
    hf_pb_task_queue queue = {.name = state->task_queue};
    hf_pb_workflow_execution run = {.workflow_id = state->workflow_id};
    hf_pb_workflow_type type = {.name = HF_STR("t")};
    int64_t second = 1000000000;

    hf_pb_start_workflow_execution_request start = {
        .namespace = ns,
        .workflow_id = state->workflow_id,
        .workflow_type = &type,
        .task_queue = &queue,
        .workflow_run_timeout = {.seconds = 3600, .has = true},
        .workflow_id_conflict_policy = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
    };
    put_call(out, HF_METHOD_START_WORKFLOW_EXECUTION, &start, 0, 0);
    start.workflow_id = HF_STR("other");
    put_call(out, HF_METHOD_START_WORKFLOW_EXECUTION, &start, 0, 0);
    hf_pb_get_workflow_execution_history_request wait = {.namespace = ns, .execution = &run, .wait_new_event = true};
    put_call(out, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &wait, 0, 0);
    wait.history_event_filter_type = HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
    put_call(out, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &wait, 0, 0);
    hf_pb_reset_sticky_task_queue_request unstick = {.namespace = ns, .execution = &run};
    put_call(out, HF_METHOD_RESET_STICKY_TASK_QUEUE, &unstick, 0, 0);
    hf_pb_signal_workflow_execution_request signal = {
        .namespace = ns, .workflow_execution = &run, .signal_name = HF_STR("s"), .request_id = HF_STR("r9")};
    put_call(out, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &signal, 0, 0);
    hf_pb_poll_workflow_task_queue_request poll = {.namespace = ns, .task_queue = &queue};
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 1, 0);
    put_call(out, HF_METHOD_COUNT, NULL, 0, 0);
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 3, 0);
    hf_pb_cancel_timer_command_attributes untimer = {.timer_id = HF_STR("t")};
    hf_pb_request_cancel_activity_task_command_attributes unactivity = {.scheduled_event_id = 6};
    hf_pb_workflow_execution other = {.workflow_id = HF_STR("other")};
    hf_pb_signal_external_workflow_execution_command_attributes xsignal = {.execution = &other,
                                                                           .signal_name = HF_STR("s")};
    hf_pb_request_cancel_external_workflow_execution_command_attributes xcancel = {.workflow_id = HF_STR("nobody")};
    hf_pb_command commands[] = {
        {.command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
         .attributes_case = HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
         .signal_external_workflow_execution_command_attributes = &xsignal},
        {.command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
         .attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
         .request_cancel_external_workflow_execution_command_attributes = &xcancel},
        {.command_type = HF_COMMAND_TYPE_CANCEL_TIMER,
         .attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES,
         .cancel_timer_command_attributes = &untimer},
        {.command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK,
         .attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
         .request_cancel_activity_task_command_attributes = &unactivity},
    };
    bool has_timer = state->timers.count > 0;
    hf_pb_respond_workflow_task_completed_request completed = {.namespace = ns,
                                                               .commands = {commands, has_timer ? 4 : 2}};
    put_call(out, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &completed, 0, 0);
    hf_pb_poll_activity_task_queue_request apoll = {.namespace = ns, .task_queue = &queue};
    put_call(out, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &apoll, 1, 0);
    put_call(out, HF_METHOD_COUNT, NULL, 1, 0);
    put_call(out, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &apoll, 1, 0);
    hf_pb_respond_activity_task_canceled_request canceled = {.namespace = ns};
    put_call(out, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, &canceled, 0, second);
    hf_pb_shutdown_worker_request shutdown = {.namespace = ns, .sticky_task_queue = HF_STR("mine")};
    put_call(out, HF_METHOD_SHUTDOWN_WORKER, &shutdown, 0, 0);
    start.workflow_id = state->workflow_id;
    start.workflow_id_conflict_policy = HF_WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
    put_call(out, HF_METHOD_START_WORKFLOW_EXECUTION, &start, 0, 90000 * second);
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 1, 0);
    put_call(out, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, 1, 5000 * second);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------- */

static void put_row(hf_buf *out, hf_table table, const hf_row *row)
{
    hf_buf bytes = new_buf();
    hf_op op;
    hf_op_init(&op);
    hf_str body = {0};
    if (hf_table_info_of(table)->has_value) {
        assert_int_equal(hf_record_open(&op, table, &row->key, row->value, &body), HF_OK);
    }
    hf_pb_put_uint(&bytes, FUZZ_ROW_TABLE, (uint64_t)table);
    hf_pb_put_uint(&bytes, FUZZ_ROW_A, (uint64_t)row->key.a);
    hf_pb_put_uint(&bytes, FUZZ_ROW_B, (uint64_t)row->key.b);
    hf_pb_put_bytes(&bytes, FUZZ_ROW_TEXT, row->key.text);
    hf_pb_put_bytes(&bytes, FUZZ_ROW_BODY, body);
    hf_pb_put_bytes(out, FUZZ_ROW, str_of(&bytes));
    hf_buf_deinit(&bytes);
}

static hf_row *scan(hf_store *store, hf_arena *arena, hf_table table, size_t *ret_count)
{
    hf_store_request request = {.verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .arena = arena};
    hf_store_execute(store, &request);
    assert_int_equal(request.status, HF_OK);
    *ret_count = request.row_count;
    return request.rows;
}

/* The number of the run that a row belongs to; 0 = to all of them. */
static int64_t run_of(hf_table table, const hf_row *row, hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    hf_str body = {0};
    hf_pb_task_record record;
    switch (table) {
    case HF_TABLE_RUN:
    case HF_TABLE_HISTORY:
        return row->key.a;
    case HF_TABLE_NAME:
    case HF_TABLE_DUE:
        return row->key.b;
    case HF_TABLE_TASK:
        assert_int_equal(hf_record_open(&op, table, &row->key, row->value, &body), HF_OK);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_task_record_type, body, arena, &record), HF_OK);
        return record.run;
    default:
        return 0;
    }
}

/* What a commit of the journal says of one run; false: nothing. Counters and names are kept. */
static bool narrow(const hf_row *row, int64_t run, hf_arena *arena, hf_buf *ret_body)
{
    hf_op op;
    hf_op_init(&op);
    hf_str rest = {0};
    hf_pb_raw field;
    bool any = false;
    assert_int_equal(hf_record_open(&op, HF_TABLE_JOURNAL, &row->key, row->value, &rest), HF_OK);
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        hf_pb_run_changes changes = {.run = run};
        if (field.number == 4) {
            assert_int_equal(hf_pb_decode(&op, &hf_pb_run_changes_type, field.bytes, arena, &changes), HF_OK);
            any = any || changes.run == run;
        }
        if (changes.run == run && field.number != 7) {
            hf_buf_put(ret_body, field.whole.data, field.whole.len);
        }
    }
    return any;
}

static void put_journal(hf_buf *out, hf_store *store, int64_t run, hf_arena *arena)
{
    size_t count = 0;
    hf_row *rows = scan(store, arena, HF_TABLE_JOURNAL, &count);
    bool begun = false;
    for (size_t i = 0; i < count; i++) {
        hf_buf body = new_buf();
        begun = narrow(&rows[i], run, arena, &body) || begun;
        if (begun || i + 1 == count) {
            hf_buf row = new_buf();
            hf_pb_put_uint(&row, FUZZ_ROW_TABLE, HF_TABLE_JOURNAL);
            hf_pb_put_uint(&row, FUZZ_ROW_A, (uint64_t)rows[i].key.a);
            hf_pb_put_bytes(&row, FUZZ_ROW_BODY, str_of(&body));
            hf_pb_put_bytes(out, FUZZ_ROW, str_of(&row));
            hf_buf_deinit(&row);
        }
        hf_buf_deinit(&body);
    }
}

/* A run with all that leads to it, as an input. */
static void write_run(hf_store *store, const char *stem, int64_t number, const hf_pb_run_state *state)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_buf out = new_buf();
    for (size_t t = 0; t < hf_engine_tables.count; t++) {
        hf_table table = hf_engine_tables.tables[t];
        size_t count = 0;
        hf_row *rows = scan(store, &arena, table, &count);
        for (size_t i = 0; i < count && table != HF_TABLE_JOURNAL; i++) {
            int64_t of = run_of(table, &rows[i], &arena);
            if (of == number || (of == 0 && table != HF_TABLE_NAME_LOG)) {
                put_row(&out, table, &rows[i]);
            }
        }
    }
    put_journal(&out, store, number, &arena);
    size_t rows_len = out.len;
    for (uint64_t bits = 0; bits < 4; bits++) { /* plain, left open, small, the last of these with other calls */
        char name[80];
        out.len = rows_len;
        if (bits % 2 == 0) {
            put_calls(&out, state);
        } else {
            put_more_calls(&out, state);
        }
        hf_pb_put_uint(&out, FUZZ_OPTIONS, bits >= 2 ? 2 + 4 : bits);
        (void)snprintf(name, sizeof name, "%s_%lld_%llu", stem, (long long)number, (unsigned long long)bits);
        write_file("store", name, out.data, out.len);
    }
    hf_buf_deinit(&out);
    hf_arena_deinit(&arena);
}

/* Runs that have rows, and those that only the journal knows. */
static void write_store(hf_store *store, const char *stem, const hf_pb_run_state *known)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_op op;
    hf_op_init(&op);
    size_t count = 0;
    hf_row *rows = scan(store, &arena, HF_TABLE_RUN, &count);
    for (size_t i = 0; i < count; i++) {
        hf_str body = {0};
        hf_pb_run_state state;
        assert_int_equal(hf_record_open(&op, HF_TABLE_RUN, &rows[i].key, rows[i].value, &body), HF_OK);
        assert_int_equal(hf_pb_decode(&op, &hf_pb_run_state_type, body, &arena, &state), HF_OK);
        write_run(store, stem, rows[i].key.a, &state);
    }
    if (known != NULL) {
        write_run(store, stem, known->run, known);
    }
    hf_arena_deinit(&arena);
}

static void take_fixture(const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    char stem[32];
    const char *name = strrchr(path, '/');
    char copy[64] = "/tmp/fuzz_seeds_XXXXXX";
    int fd = mkstemp(copy);
    assert_true(fd >= 0);
    FILE *from = fopen(path, "rb");
    FILE *to = fdopen(fd, "wb");
    assert_true(from != NULL && to != NULL);
    for (int c = fgetc(from); c != EOF; c = fgetc(from)) {
        (void)fputc(c, to);
    }
    (void)fclose(from);
    (void)fclose(to);
    (void)snprintf(stem, sizeof stem, "%.4s", name != NULL ? name + 1 : path);
    hf_sqlite_options options = {.must_exist = true, .durability = HF_DURABILITY_NORMAL};
    if (hf_sqlite_open(&op, hf_rig_heap, copy, &options, &store) != HF_OK) {
        fail_msg("%s", op.message);
    }
    write_store(store, stem, NULL);
    hf_store_close(store);
    (void)remove(copy);
}

/* ---- Rigs -------------------------------------------------------------------------------------------------------------- */

static const char *const SCRIPTS[] = {
    "start wf input=20",
    ("start wf; poll; complete timer t 1h, activity a each=10s retries=9 initial=10s queue=q, marker m; apoll;"
     "heartbeat details=half; afail type=Busy; time 10s; apoll in_process"),
    "start wf; poll in_process; signal wf one request=r1; cancel wf request=r2",
    "start wf; poll; complete xsignal wf hello, xcancel nobody, xsignal nobody hello; poll; complete done",
    "start wf; poll; fail; poll; fail; poll in_process",
    "start wf; poll; complete sticky=mine sticky_for=1h; signal wf s; time 1ms; start wf2 run=5s; time 6s",
    "start wf; poll; complete timer t 1s, activity a each=1h queue=q; signal wf s; poll; time 1s; apoll; acomplete",
    "start wf; poll; complete timer t 1s, timer u 1h; poll => parked; time 1s; complete untimer u, failed sorry",
    "start wf run=1h; poll; complete activity t each=1h beat=1m queue=q, timer t 3h; apoll; poll => parked; cancel wf;"
    "complete unactivity 5, activity u close=30m queue=q",
    "start wf; poll in_process; crash; poll in_process; crash; poll in_process; crash; time 10s",
    "start wf; poll; complete activity a each=1h retries=9 initial=1s queue=q; apoll in_process; crash;"
    "time 1s; apoll in_process; crash; time 2s; apoll in_process; crash; time 1m",
};

/* A message to a run that is not in memory: on its way, in the journal and in rows. */
static void take_message(void)
{
    for (int written = 0; written < 2; written++) {
        hf_rig rig;
        hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .journal_len_max = written ? 1 : 0});
        hf_rig_do(&rig, "start target; poll; complete marker m; start wf; poll");
        rig.hold = true;
        hf_rig_do(&rig, "complete xsignal target hello, xcancel target => again");
        for (int i = 0; i < 1 + written; i++) {
            (void)hf_rig_commit(&rig, false);
        }
        hf_pb_run_state known = {
            .run = 2, .namespace = HF_STR(HF_RIG_NS), .workflow_id = HF_STR("wf"), .task_queue = HF_STR(HF_RIG_QUEUE)};
        write_store(rig.store, written ? "message1" : "message0", &known);
        hf_rig_close(&rig);
    }
}

static void take_rigs(void)
{
    for (size_t i = 0; i < HF_COUNT_OF(SCRIPTS); i++) {
        for (int small = 0; small < 2; small++) {
            hf_rig rig;
            char stem[32];
            hf_rig_open(&rig, small ? (hf_core_options){.mem_max = 1, .tail_len_max = 1, .names_max = 1}
                                    : (hf_core_options){0});
            hf_rig_do(&rig, SCRIPTS[i]);
            (void)snprintf(stem, sizeof stem, "rig%zu%d", i, small);
            hf_pb_run_state known = {.run = 1,
                                     .namespace = HF_STR(HF_RIG_NS),
                                     .workflow_id = HF_STR("wf"),
                                     .task_queue = HF_STR(HF_RIG_QUEUE)};
            write_store(rig.store, stem, &known);
            hf_rig_close(&rig);
        }
    }
}

/* ---- Messages ---------------------------------------------------------------------------------------------------------- */

static void take_messages(void)
{
    for (size_t i = 0; i < hf_pb_type_count; i++) {
        const hf_pb_type *type = hf_pb_types[i];
        uint16_t hash = (uint16_t)hf_hash_bytes(1, type->name, strlen(type->name));
        char head[3] = {(char)hash, (char)(hash >> 8), 0};
        hf_arena arena;
        hf_arena_init(&arena, hf_rig_heap);
        hf_buf bytes = new_buf();
        hf_buf text = new_buf();
        random_maker m = {.rng = {i}, .arena = &arena, .budget = 12};
        void *msg = hf_arena_take(&arena, type->size, 8);
        random_message(&m, type, msg, 0);
        hf_buf_put(&bytes, head, sizeof head);
        hf_pb_encode(type, msg, &bytes);
        write_file("codec", type->name, bytes.data, bytes.len);
        head[2] = 2;
        hf_buf_put(&text, head, sizeof head);
        if (hf_pb_json_write(type, msg, &text) == HF_OK) {
            char name[200];
            (void)snprintf(name, sizeof name, "%s.json", type->name);
            write_file("codec", name, text.data, text.len);
        }
        hf_buf_deinit(&bytes);
        hf_buf_deinit(&text);
        hf_arena_deinit(&arena);
    }
}

/* Each call with each token that the rig of token.c has given out: as it is, for another attempt, run or event, and in turn. */
static void take_tokens(void)
{
    enum { CALLS = 9, GIVEN = 7 };
    hf_buf all = new_buf();
    for (uint64_t i = 0; i < (uint64_t)CALLS * GIVEN * 4; i++) {
        uint64_t change = i / (CALLS * GIVEN);
        hf_buf step = new_buf();
        hf_buf out = new_buf();
        char name[16];
        hf_pb_put_uint(&step, 1, i % CALLS);
        hf_pb_put_uint(&step, 3, i / CALLS % GIVEN);
        hf_pb_put_uint(&step, 4, change > 0 ? 1 : 0);
        if (change > 0) {
            hf_pb_put_uint(&step, (uint32_t)(9 + change), change == 1 ? i % 5 : 3);
        }
        hf_pb_put_bytes(&out, 1, str_of(&step));
        if (change == 0) {
            hf_buf_put(&all, out.data, out.len);
        }
        (void)snprintf(name, sizeof name, "%llu", (unsigned long long)i);
        write_file("token", name, out.data, out.len);
        hf_buf_deinit(&step);
        hf_buf_deinit(&out);
    }
    write_file("token", "all", all.data, all.len);
    hf_buf_deinit(&all);
}

static void put_admin_request(hf_buf *out, const char *verb, const char *first, const char *second)
{
    hf_str args[2] = {hf_str_of(first), hf_str_of(second)};
    size_t count = (first[0] != '\0') + (second[0] != '\0');
    hf_pb_admin_request request = {.verb = hf_str_of(verb), .args = {args, count}};
    hf_pb_encode_field(2, &hf_pb_admin_request_type, &request, out);
}

static void take_talks(void)
{
    static const char *const REQUESTS[][3] = {
        {"stats", "", ""},           {"backup", "/x", ""},  {"show", "default", "one"}, {"show", "default", "nobody"},
        {"list", "9999999999", "1"}, {"list", "2", "1000"}, {"list", "0", "x"},         {"dance", "", ""}};
    for (size_t i = 0; i < 4 * HF_COUNT_OF(REQUESTS); i++) {
        const char *const *words = REQUESTS[i % HF_COUNT_OF(REQUESTS)];
        char name[16];
        hf_buf out = new_buf();
        hf_pb_put_uint(&out, 6, i / HF_COUNT_OF(REQUESTS)); /* without faults, with one kind, with the other */
        put_admin_request(&out, words[0], words[1], words[2]);
        if (i % 3 == 0) {
            hf_pb_put_uint(&out, 3, 1000);
            hf_pb_put_uint(&out, 5, 1);
            hf_pb_put_bytes(&out, 1, HF_STR("\x05\0\0"));
            hf_pb_put_uint(&out, 4, 11000000000);
        }
        (void)snprintf(name, sizeof name, "%zu", i);
        write_file("admin", name, out.data, out.len);
        hf_buf_deinit(&out);
    }
    hf_buf out = new_buf();
    hf_pb_admin_response piece = {.kind = HF_STR("history"), .chunk = HF_STR("bytes")};
    hf_pb_admin_response last = {.status = HF_ERR_NOT_FOUND, .message = HF_STR("no"), .last = true};
    hf_pb_put_uint(&out, 6, 8);
    hf_pb_put_uint(&out, 3, 30);
    hf_pb_encode_field(2, &hf_pb_admin_response_type, &piece, &out);
    hf_pb_encode_field(2, &hf_pb_admin_response_type, &last, &out);
    write_file("admin", "owner", out.data, out.len);
    hf_buf_deinit(&out);
}

static void take_texts(void)
{
    static const char *const TEXTS[] = {
        "02024-02-29T12:00:00.5+01:00",
        "00001-01-01T00:00:00Z",
        "1-1.500s",
        "19223372036854775807.999999999s",
        "2abcdefghijkl",
        "3sqlite:a.db?mem=48M&durability=normal&log=64K",
        "3memory:?mem=16M",
        "4tcp:[::1]:80",
        "4tcp:127.0.0.1:65535",
        "4unix:/a/b",
        "5QUJD",
        "5_-8=",
        "6kept/000000000000000f",
        "6b6ee3e9e-4a5e-4c2b-9d5c-1f1a5a0c7c11",
    };
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        char text[128];
        char name[16];
        size_t len = strlen(TEXTS[i]);
        memcpy(text, TEXTS[i], len);
        text[0] = (char)(text[0] - '0');
        (void)snprintf(name, sizeof name, "%zu", i);
        write_file("text", name, text, len);
    }
}

/* Those of `zone` are files of tests/fixtures/zoneinfo, those of `where` are filters of tests/unit/where. */
static void take_crons(void)
{
    static const char *const TEXTS[] = {
        "*/15 0-3,23 * * MON-FRI",
        "30 2 29 feb ?",
        "0 0 31 2 *",
        "5/7 1 1,15 */2 sun",
        "CRON_TZ=Europe/Berlin 0 9 * * 1",
        "TZ= @weekly",
        "@yearly",
        "@every 1h30m0.5s",
        "@every 250\xc2\xb5s",
    };
    static const int64_t TIMES[] = {INT64_C(1774747800000000001), -1, INT64_C(4000000000000000000)};
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        char bytes[128];
        char name[16];
        size_t len = strlen(TEXTS[i]);
        memcpy(bytes, &TIMES[i % HF_COUNT_OF(TIMES)], sizeof TIMES[0]);
        memcpy(bytes + sizeof TIMES[0], TEXTS[i], len);
        (void)snprintf(name, sizeof name, "%zu", i);
        write_file("cron", name, bytes, sizeof TIMES[0] + len);
    }
}

static int fixture_count;
static char **fixtures;

static void make(void **state)
{
    (void)state;
    (void)mkdir(folder, 0777);
    for (int i = 0; i < fixture_count; i++) {
        take_fixture(fixtures[i]);
    }
    take_rigs();
    take_message();
    take_messages();
    take_tokens();
    take_talks();
    take_texts();
    take_crons();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(make)};
    if (argc < 3) {
        (void)fprintf(stderr, "usage: fuzz_seeds FOLDER FIXTURE...\n");
        return 2;
    }
    folder = argv[1];
    fixtures = argv + 2;
    fixture_count = argc - 2;
    return cmocka_run_group_tests_name("seeds", TESTS, NULL, NULL);
}
