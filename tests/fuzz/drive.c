#include "fuzz/drive.h"

#include "store/mem.h"

enum {
    OPTION_LEFT_OPEN = 1,   /* the process before did not close the store */
    OPTION_SMALL = 2,       /* runs leave memory with every commit */
    OPTION_PAGES = 4,       /* pages and rows of one event */
    OPTION_LIMITS = 8,      /* small limits */
    OPTION_SAME_NAMES = 16, /* many names have the same hash */
    OPTION_AGAIN = 32,      /* the incarnation of the process before */
};

enum { ROUNDS_MAX = 20000, CALL_IN_PROCESS = 1, CALL_RUNS_AHEAD = 2 };

#define TIME_SPAN \
    (UINT64_C(1) << 56) /* ns, some two years: however many calls there are, the clock stays below its end */

/* ---- The core ---------------------------------------------------------------------------------------------------------- */

static hf_core_options options_of(fuzz_drive *drive, hf_str input)
{
    uint64_t bits = 0;
    hf_pb_raw field;
    while (input.len > 0 && hf_pb_next(&input, &field)) {
        bits = field.number == FUZZ_OPTIONS ? field.value : bits;
    }
    hf_core_options options = {.memory = fuzz_heap(&drive->memory), .mem_max = 1 << 20, .journal_len_max = 1 << 18};
    memcpy(options.seed, "a seed of a test", sizeof options.seed);
    options.was_left_open = (bits & OPTION_LEFT_OPEN) != 0;
    if ((bits & OPTION_SMALL) != 0) {
        options.mem_max = 1;
        options.journal_len_max = 2000;
        options.trim_count = 2;
        options.names_max = 1;
        options.ended_max = 1;
    }
    if ((bits & OPTION_PAGES) != 0) {
        options.page_max = 1;
        options.history_page_len = 1;
        options.tail_len_max = 1;
        options.row_len_max = 1;
        options.tick_max = 1;
    }
    if ((bits & OPTION_LIMITS) != 0) {
        options.limits = (hf_core_limits){.payload_len = 100,
                                          .history_count = 20,
                                          .history_len = 4000,
                                          .pending = 2,
                                          .buffered_count = 2,
                                          .buffered_len = 1000,
                                          .signals = 2};
    }
    options.name_bits_off = (bits & OPTION_SAME_NAMES) != 0 ? 30 : 0;
    options.incarnation = (bits & OPTION_AGAIN) != 0 ? 1 : 0;
    return options;
}

bool fuzz_drive_open(fuzz_drive *drive, hf_str input)
{
    hf_op op;
    hf_op_init(&op);
    memset(drive, 0, sizeof *drive);
    hf_arena_init(&drive->arena, fuzz_heap(&drive->memory));
    hf_list_init(&drive->reads);
    drive->now = (hf_clock){FUZZ_START_TIME, 1000000000};
    drive->options = options_of(drive, input);
    FUZZ_CHECK(hf_mem_store_open(&op, fuzz_heap(&drive->memory), NULL, &drive->store) == HF_OK, "no store");
    return fuzz_rows_read(drive, input);
}

void fuzz_drive_close(fuzz_drive *drive)
{
    hf_store_close(drive->store);
    hf_arena_deinit(&drive->arena);
    fuzz_memory_check(&drive->memory, (size_t)256 << 20);
}

static void submit(void *state, hf_store_request *request)
{
    fuzz_drive *drive = state;
    hf_list_push_back(&drive->reads, &request->link);
}

bool fuzz_core_open(fuzz_drive *drive)
{
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_core_open(&op, &drive->options, drive->store, drive->now, &drive->core);
    if (status != HF_OK) {
        FUZZ_CHECK(op.message[0] != '\0', "refused without a sentence");
        drive->core = NULL;
        return false;
    }
    drive->core->submit = submit;
    drive->core->submit_state = drive;
    return true;
}

void fuzz_core_close(fuzz_drive *drive)
{
    hf_core_stop(drive->core, HF_ERR_CLOSED, "the test ends it");
    hf_list_init(&drive->reads); /* the core has them */
    hf_core_free(drive->core);
    drive->core = NULL;
    for (size_t i = 0; i < drive->call_count; i++) {
        FUZZ_CHECK(drive->calls[i].is_done, "a call was not answered");
        hf_arena_deinit(&drive->calls[i].arena);
    }
    drive->call_count = 0;
}

static bool commit(fuzz_drive *drive)
{
    hf_store_request *request = hf_core_seal(drive->core, drive->now);
    if (request == NULL) {
        return false;
    }
    hf_store_execute(drive->store, request);
    hf_core_done(drive->core, request, drive->now);
    return true;
}

static bool read_next(fuzz_drive *drive)
{
    hf_node *node = hf_list_pop_front(&drive->reads);
    if (node == NULL) {
        return false;
    }
    hf_store_request *request = HF_CONTAINER(node, hf_store_request, link);
    hf_store_execute(drive->store, request);
    hf_core_done(drive->core, request, drive->now);
    return true;
}

static bool tick(fuzz_drive *drive)
{
    hf_clock next = hf_core_next(drive->core);
    if (next.wall > drive->now.wall && next.mono > drive->now.mono) {
        return false;
    }
    hf_core_tick(drive->core, drive->now);
    return true;
}

void fuzz_core_settle(fuzz_drive *drive)
{
    int rounds = 0;
    while (hf_core_status(drive->core) == HF_OK && (read_next(drive) || tick(drive) || commit(drive))) {
        rounds++;
        FUZZ_CHECK(rounds < ROUNDS_MAX, "the core does not come to rest");
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

static void on_done(hf_call *call)
{
    fuzz_call *own = HF_CONTAINER(call, fuzz_call, call);
    FUZZ_CHECK(!own->is_done, "a call is answered twice");
    own->is_done = true;
}

/* What later calls come back with. */
static void keep_tokens(fuzz_drive *drive, const fuzz_call *own)
{
    if (!own->is_done || own->call.status != HF_OK || own->call.response == NULL) {
        return;
    }
    if (own->call.method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE) {
        const hf_pb_poll_workflow_task_queue_response *task = own->call.response;
        drive->workflow_token = hf_arena_copy(&drive->arena, task->task_token);
        drive->page_token = hf_arena_copy(&drive->arena, task->next_page_token);
    } else if (own->call.method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE) {
        const hf_pb_poll_activity_task_queue_response *task = own->call.response;
        drive->activity_token = hf_arena_copy(&drive->arena, task->task_token);
    } else if (own->call.method == HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY) {
        const hf_pb_get_workflow_execution_history_response *page = own->call.response;
        drive->page_token = hf_arena_copy(&drive->arena, page->next_page_token);
    }
}

static void put_token(hf_str *place, hf_str token)
{
    *place = place->len == 0 ? token : *place;
}

static void give_token(const fuzz_drive *drive, hf_method method, void *request)
{
    switch (method) {
    case HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED:
        put_token(&((hf_pb_respond_workflow_task_completed_request *)request)->task_token, drive->workflow_token);
        break;
    case HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED:
        put_token(&((hf_pb_respond_workflow_task_failed_request *)request)->task_token, drive->workflow_token);
        break;
    case HF_METHOD_RESPOND_QUERY_TASK_COMPLETED:
        put_token(&((hf_pb_respond_query_task_completed_request *)request)->task_token, drive->workflow_token);
        break;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED:
        put_token(&((hf_pb_respond_activity_task_completed_request *)request)->task_token, drive->activity_token);
        break;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED:
        put_token(&((hf_pb_respond_activity_task_failed_request *)request)->task_token, drive->activity_token);
        break;
    case HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED:
        put_token(&((hf_pb_respond_activity_task_canceled_request *)request)->task_token, drive->activity_token);
        break;
    case HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT:
        put_token(&((hf_pb_record_activity_task_heartbeat_request *)request)->task_token, drive->activity_token);
        break;
    case HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY:
        put_token(&((hf_pb_get_workflow_execution_history_request *)request)->next_page_token, drive->page_token);
        break;
    default:
        break;
    }
}

static void call(fuzz_drive *drive, hf_str bytes)
{
    uint64_t method = 0;
    uint64_t bits = 0;
    hf_str body = {0};
    hf_pb_raw field;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        method = field.number == FUZZ_CALL_METHOD ? field.value % (HF_METHOD_COUNT + 1) : method;
        bits = field.number == FUZZ_CALL_BITS ? field.value : bits;
        body = field.number == FUZZ_CALL_REQUEST ? field.bytes : body;
        if (field.number == FUZZ_CALL_TIME) {
            int64_t span = (int64_t)(field.value % TIME_SPAN);
            drive->now = (hf_clock){drive->now.wall + span, drive->now.mono + span};
            fuzz_core_settle(drive);
        }
    }
    if (method == HF_METHOD_COUNT) {
        hf_core_unwanted(drive->core, (bits & CALL_IN_PROCESS) != 0 ? drive->activity_token : drive->workflow_token,
                         drive->now);
        fuzz_core_settle(drive);
        return;
    }
    const hf_method_info *info = hf_method_info_of((hf_method)method);
    void *request = hf_arena_zero(&drive->arena, info->request_type->size, 8);
    hf_op op;
    hf_op_init(&op);
    if (drive->call_count == FUZZ_CALLS_MAX || hf_core_status(drive->core) != HF_OK ||
        hf_pb_decode(&op, info->request_type, body, &drive->arena, request) != HF_OK) {
        return;
    }
    give_token(drive, (hf_method)method, request);
    fuzz_call *own = &drive->calls[drive->call_count++];
    *own = (fuzz_call){.is_done = false};
    hf_arena_init(&own->arena, fuzz_heap(&drive->memory));
    hf_call_init(&own->call, (hf_method)method, request, &own->arena, on_done);
    own->call.in_process = (bits & CALL_IN_PROCESS) != 0;
    own->call.run_ahead = (bits & CALL_RUNS_AHEAD) != 0;
    hf_core_call(drive->core, &own->call, drive->now);
    fuzz_core_settle(drive);
    keep_tokens(drive, own);
}

void fuzz_core_calls(fuzz_drive *drive, hf_str input)
{
    hf_pb_raw field;
    while (input.len > 0 && hf_pb_next(&input, &field)) {
        if (field.number == FUZZ_CALL) {
            call(drive, field.bytes);
        }
    }
    for (size_t i = 0; i < drive->call_count; i++) {
        if (!drive->calls[i].is_done) {
            bool is_taken = hf_core_cancel(drive->core, &drive->calls[i].call, drive->now);
            hf_assert(is_taken); /* there are far fewer than a portion has */
        }
    }
}
