/* holdfast top: runs, task queues and stuck runs of a target, refreshed each second on a terminal, else once.
 *
 *     orders.db, namespace default: 1204 runs, 3 Running, 1201 Completed
 *
 *     QUEUE     TYPE      POLLERS  WAITING  OLDEST     IN/S   OUT/S
 *     orders    workflow        2        0              4.0     4.0
 *
 *     1 run is stuck: holdfast list orders.db --stuck
 *     order-1   its workflow task fails, attempt 7
 *
 * Every open run is looked at to find the stuck ones: at most STUCK_LOOKED of them, and less often if it takes long. */
#include "main/grid.h"
#include "main/stuck.h"
#include "service/call.h"

#include <holdfast/error.h>
#include <holdfast/list.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { QUEUES = 256, STUCK_LOOKED = 500, STUCK_SHOWN = 10, STUCK_SHARE = 10 };

static const hf_column QUEUE_COLUMNS[] = {{"QUEUE", 32, 8},  {"TYPE", 8, 0}, {"POLLERS", 7, 0}, {"WAITING", 7, 0},
                                          {"OLDEST", 10, 0}, {"IN/S", 7, 0}, {"OUT/S", 7, 0}};
static const hf_column STUCK_COLUMNS[] = {{"ID", 24, 8}, {"WHY", 100, 20}};

typedef struct board {
    const hf_tool_args *args;
    hf_tool_target target;
    hf_stuck_search search;
    hf_buf stuck; /* lines, or a JSON array */
    hf_grid stuck_table;
    hf_json stuck_writer;
    int64_t stuck_next_ns; /* when they are looked for again */
    hf_buf out;
} board;

static int64_t now_ns(void)
{
    hf_env *env = hf_env_posix();
    return env->ops->now(env).ns;
}

/* ---- Stuck runs ------------------------------------------------------------------------------------------------------------------ */

static void keep_stuck(hf_stuck_search *search, const hf_stuck *stuck)
{
    board *b = search->arg;
    if (search->count > STUCK_SHOWN) {
        return;
    }
    if (b->args->json) {
        hf_stuck_put_json(&b->stuck_writer, stuck);
        return;
    }
    hf_grid_cell(&b->stuck_table, stuck->workflow_id, HF_TONE_PLAIN);
    hf_grid_cell(&b->stuck_table, hf_str_of(stuck->why), HF_TONE_BAD);
    hf_grid_end(&b->stuck_table);
}

/* A search that takes long is not repeated before ten times as long has passed. */
static hf_status refresh_stuck(hf_op *op, board *b)
{
    int64_t from = now_ns();
    if (from < b->stuck_next_ns) {
        return HF_OK;
    }
    b->stuck.len = 0;
    b->search = (hf_stuck_search){
        .args = b->args, .target = &b->target, .looked_max = STUCK_LOOKED, .visit = keep_stuck, .arg = b};
    hf_grid_init(&b->stuck_table, STUCK_COLUMNS, HF_COUNT_OF(STUCK_COLUMNS), hf_screen_width(), &b->stuck);
    hf_json_init(&b->stuck_writer, &b->stuck);
    if (b->args->json) {
        hf_json_array(&b->stuck_writer);
    }
    HF_TRY(hf_stuck_find(op, &b->search, NULL));
    if (b->args->json) {
        hf_json_end(&b->stuck_writer);
    }
    b->stuck_next_ns = now_ns() + STUCK_SHARE * (now_ns() - from);
    return HF_OK;
}

/* ---- Queues ---------------------------------------------------------------------------------------------------------------------- */

typedef struct queue_row {
    hf_str name;
    const char *type;
    int64_t pollers, waiting, oldest_ns;
    double in, out;
} queue_row;

static void put_number(hf_grid *table, double number, int digits, hf_tone tone)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%7.*f", digits, number);
    hf_grid_cell(table, hf_str_of(text), tone);
}

static void put_row(hf_grid *table, const queue_row *row)
{
    hf_buf age;
    hf_buf_init(&age, table->out->memory, 100);
    if (row->waiting > 0) {
        hf_put_span(&age, row->oldest_ns);
    }
    bool is_waiting = row->waiting > 0 && row->pollers == 0;
    hf_grid_cell(table, row->name, HF_TONE_PLAIN);
    hf_grid_cell(table, hf_str_of(row->type), HF_TONE_PLAIN);
    put_number(table, (double)row->pollers, 0, is_waiting ? HF_TONE_BAD : HF_TONE_PLAIN);
    put_number(table, (double)row->waiting, 0, is_waiting ? HF_TONE_BAD : HF_TONE_PLAIN);
    hf_grid_cell_of(table, &age, HF_TONE_PLAIN);
    put_number(table, row->in, 1, HF_TONE_PLAIN);
    put_number(table, row->out, 1, HF_TONE_PLAIN);
    hf_grid_end(table);
}

static void put_row_json(hf_json *writer, const queue_row *row)
{
    hf_json_object(writer);
    hf_json_key(writer, "name");
    hf_json_string_len(writer, row->name.data, row->name.len);
    hf_json_key_string(writer, "type", row->type);
    hf_json_key_int(writer, "pollers", row->pollers);
    hf_json_key_int(writer, "waiting", row->waiting);
    hf_json_key_int(writer, "oldestMilliseconds", row->oldest_ns / 1000000);
    hf_json_key_int(writer, "addedPerMinute", (int64_t)(row->in * 60));
    hf_json_key_int(writer, "dispatchedPerMinute", (int64_t)(row->out * 60));
    hf_json_end(writer);
}

static hf_status put_queues(hf_op *op, board *b, hf_arena *arena, hf_json *writer)
{
    hf_call call;
    hf_grid table;
    hf_pb_list_task_queues_request request = {.namespace = hf_str_of(b->args->namespace_), .page_size = QUEUES};
    hf_call_init(&call, HF_METHOD_LIST_TASK_QUEUES, &request, arena, NULL);
    HF_TRY(hf_service_ask(op, b->target.service, &call));
    const hf_pb_list_task_queues_response *list = call.response;
    hf_grid_init(&table, QUEUE_COLUMNS, HF_COUNT_OF(QUEUE_COLUMNS), hf_screen_width(), &b->out);
    if (!b->args->json) {
        hf_grid_title(&table);
    }
    for (size_t i = 0; i < list->queues.count; i++) {
        const hf_pb_task_queue_entry *entry = &list->queues.items[i];
        const hf_pb_describe_task_queue_response *queue = NULL;
        HF_TRY(hf_describe_queue(op, b->target.service, b->args->namespace_, entry->name, entry->type, arena, &queue));
        const hf_pb_task_queue_stats *stats = queue->stats;
        queue_row row = {.name = entry->name,
                         .type = entry->type == HF_TASK_QUEUE_TYPE_ACTIVITY ? "activity" : "workflow",
                         .pollers = entry->pollers,
                         .waiting = stats != NULL ? stats->approximate_backlog_count : entry->backlog};
        if (stats != NULL) {
            row.oldest_ns = row.waiting > 0 ? hf_pb_duration_span(stats->approximate_backlog_age).ns : 0;
            row.in = (double)stats->tasks_add_rate;
            row.out = (double)stats->tasks_dispatch_rate;
        }
        if (b->args->json) {
            put_row_json(writer, &row);
        } else {
            put_row(&table, &row);
        }
    }
    return HF_OK;
}

/* ---- All of it ------------------------------------------------------------------------------------------------------------------- */

static hf_status put_json(hf_op *op, board *b, const hf_counts *counts, hf_arena *arena)
{
    hf_json writer;
    hf_json_init(&writer, &b->out);
    hf_json_object(&writer);
    hf_json_key_string(&writer, "target", b->args->words[0]);
    hf_json_key_string(&writer, "namespace", b->args->namespace_);
    hf_json_key(&writer, "runs");
    hf_json_object(&writer);
    hf_json_key_int(&writer, "total", counts->total);
    for (int i = 1; i < (int)HF_COUNT_OF(counts->by_status); i++) {
        if (counts->by_status[i] > 0) {
            hf_json_key_int(&writer, hf_workflow_status_name((hf_workflow_status)i), counts->by_status[i]);
        }
    }
    hf_json_end(&writer);
    hf_json_key(&writer, "queues");
    hf_json_array(&writer);
    HF_TRY(put_queues(op, b, arena, &writer));
    hf_json_end(&writer);
    hf_json_key_uint(&writer, "stuckCount", b->search.count);
    hf_json_key(&writer, "stuck");
    hf_json_raw(&writer, hf_buf_text(&b->stuck), b->stuck.len);
    hf_json_end(&writer);
    hf_buf_putc(&b->out, '\n');
    return HF_OK;
}

static hf_status put_text(hf_op *op, board *b, const hf_counts *counts, hf_arena *arena)
{
    hf_buf *out = &b->out;
    hf_buf_putf(out, "%s, namespace %s: %lld %s", b->args->words[0], b->args->namespace_, (long long)counts->total,
                counts->total == 1 ? "run" : "runs");
    for (int i = 1; i < (int)HF_COUNT_OF(counts->by_status); i++) {
        if (counts->by_status[i] > 0) {
            hf_buf_putf(out, ", %lld %s", (long long)counts->by_status[i],
                        hf_workflow_status_name((hf_workflow_status)i));
        }
    }
    hf_buf_puts(out, "\n\n");
    HF_TRY(put_queues(op, b, arena, NULL));
    if (b->search.count == 0) {
        hf_buf_puts(out, "\nno run is stuck");
    } else {
        hf_buf_putf(out, "\n%llu %s stuck: holdfast list %s --stuck", (unsigned long long)b->search.count,
                    b->search.count == 1 ? "run is" : "runs are", b->args->words[0]);
    }
    if (b->search.looked >= STUCK_LOOKED) {
        hf_buf_putf(out, " (of the newest %d that run)", STUCK_LOOKED);
    }
    hf_buf_putc(out, '\n');
    hf_buf_put(out, b->stuck.data, b->stuck.len);
    return HF_OK;
}

static hf_status put_board(hf_op *op, board *b)
{
    hf_arena arena;
    hf_counts counts = {0};
    if (hf_count(b->target.service, &counts, .namespace_ = b->args->namespace_) != HF_OK) {
        return hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    HF_TRY(refresh_stuck(op, b));
    b->out.len = 0;
    hf_arena_init(&arena, b->out.memory);
    hf_status status = b->args->json ? put_json(op, b, &counts, &arena) : put_text(op, b, &counts, &arena);
    hf_arena_deinit(&arena);
    return status;
}

int hf_cmd_top(const hf_tool_args *args)
{
    static board b; /* it is large */
    bool is_once = args->once || args->json || isatty(STDOUT_FILENO) == 0;
    b = (board){.args = args};
    int code = hf_target_find(&b.target, args);
    if (code == HF_EXIT_FINE && b.target.kind == HF_TARGET_REST) {
        return hf_complain(HF_EXIT_CANNOT_OPEN,
                           "no program has %s open, and so nothing happens: start the program that works on it",
                           b.target.path);
    }
    code = code == HF_EXIT_FINE ? hf_target_reach(&b.target) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&b.out, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_buf_init(&b.stuck, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    do {
        hf_op op;
        hf_op_init(&op);
        hf_status status = put_board(&op, &b);
        if (status != HF_OK) {
            code = hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
            break;
        }
        (void)printf("%s%s", is_once ? "" : "\033[H\033[2J", hf_buf_text(&b.out));
        (void)fflush(stdout);
        if (!is_once) {
            (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        }
    } while (!is_once);
    hf_buf_deinit(&b.out);
    hf_buf_deinit(&b.stuck);
    return hf_target_close(&b.target, code);
}
