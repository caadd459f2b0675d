/* holdfast depot pending, retry, drop: the writes of a depot's file that the origin has not accepted. */
#include "main/depot_view.h"
#include "main/grid.h"
#include "main/report.h"
#include "main/target.h"
#include "wire/base64.h"
#include "wire/time_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pending ----------------------------------------------------------------------------------------------------- */

typedef struct listing {
    const hf_tool_args *args;
    hf_report report;
    hf_buf out;
    hf_grid grid;
    uint64_t last;    /* number of the last write */
    uint64_t count;   /* that were listed */
    uint64_t damaged; /* that were found */
} listing;

static void put_time(hf_json *writer, const char *key, int64_t ns)
{
    char text[HF_TIME_TEXT_LEN_MAX] = "";
    hf_pb_timestamp at = {.seconds = ns / 1000000000, .nanos = (int32_t)(ns % 1000000000)};
    (void)hf_timestamp_format(at, text);
    hf_json_key_string(writer, key, text);
}

static void list_json(listing *l, const hf_seen_write *write)
{
    hf_json *writer = &l->report.writer;
    hf_json_object(writer);
    hf_json_key_uint(writer, "sequence", write->sequence);
    hf_depot_put_key(writer, &write->key);
    hf_json_key_string(writer, "verb", write->verb);
    hf_json_key_string(writer, "state", write->state);
    hf_json_key_uint(writer, "attempts", write->attempts);
    hf_json_key_uint(writer, "bytes", write->len);
    hf_json_key_string(writer, "writeId", write->id);
    put_time(writer, "madeTime", write->made_at);
    if (write->status != HF_OK) {
        hf_json_key_string(writer, "status", hf_status_name(write->status));
        hf_json_key_string(writer, "message", write->message);
    }
    hf_json_end(writer);
}

static void list_line(listing *l, const hf_seen_write *write)
{
    char number[32];
    hf_buf key;
    hf_buf_init(&key, l->out.memory, 4096);
    hf_buf_putf(&key, "%s/%s/", write->key.ns, write->key.type);
    (void)hf_put_text(&key, hf_str_of_len(write->key.id, write->key.id_len), 60);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)write->sequence);
    hf_grid_cell(&l->grid, hf_str_of(number), HF_TONE_PLAIN);
    hf_grid_cell_of(&l->grid, &key, HF_TONE_PLAIN);
    hf_grid_cell(&l->grid, hf_str_of(write->verb), HF_TONE_PLAIN);
    hf_grid_cell(&l->grid, hf_str_of(write->state), strcmp(write->state, "dead") == 0 ? HF_TONE_BAD : HF_TONE_PLAIN);
    (void)snprintf(number, sizeof number, "%u", write->attempts);
    hf_grid_cell(&l->grid, hf_str_of(number), HF_TONE_PLAIN);
    (void)snprintf(number, sizeof number, "%zu", write->len);
    hf_grid_cell(&l->grid, hf_str_of(number), HF_TONE_PLAIN);
    hf_buf why;
    hf_buf_init(&why, l->out.memory, 4096);
    (void)hf_put_text(&why, hf_str_of(write->status != HF_OK ? write->message : ""), 200);
    hf_grid_cell_of(&l->grid, &why, HF_TONE_DIM);
    hf_grid_end(&l->grid);
}

static void list_write(listing *l, const hf_seen_write *write)
{
    l->count++;
    if (l->args->json) {
        list_json(l, write);
    } else {
        list_line(l, write);
    }
}

static void take_write(void *arg, const hf_door_frame *frame)
{
    listing *l = arg;
    hf_seen_write seen;
    if (frame->kind != HF_DOOR_WRITE) {
        return;
    }
    l->last = frame->number;
    if (hf_look_write_line(frame->number, frame->text, frame->body, &seen) == HF_OK) {
        list_write(l, &seen);
    }
}

static bool list_row(void *arg, const hf_row *row)
{
    listing *l = arg;
    hf_seen_write seen;
    if (hf_look_write(row, &seen) == HF_OK) {
        list_write(l, &seen);
    } else {
        l->damaged++;
    }
    return true;
}

/* What is known of one that cannot be read: its number, and its bytes. */
static bool list_damaged(void *arg, const hf_row *row)
{
    listing *l = arg;
    hf_seen_write seen;
    if (hf_look_write(row, &seen) == HF_OK) {
        return true;
    }
    l->damaged++;
    if (!l->args->json) {
        hf_buf_putf(&l->out, "write %lld cannot be read: %zu bytes\n", (long long)row->key.a, row->value.len);
        return true;
    }
    hf_json *writer = &l->report.writer;
    hf_buf text;
    hf_buf_init(&text, l->out.memory, SIZE_MAX / 4);
    hf_base64_encode(row->value, &text);
    hf_json_object(writer);
    hf_json_key_int(writer, "sequence", row->key.a);
    hf_json_key_uint(writer, "bytes", row->value.len);
    hf_json_key_string(writer, "recordBase64", hf_buf_text(&text));
    hf_json_end(writer);
    hf_buf_deinit(&text);
    return true;
}

static bool count_damaged(void *arg, const hf_row *row)
{
    hf_seen_write seen;
    ((listing *)arg)->damaged += hf_look_write(row, &seen) != HF_OK;
    return true;
}

/* The owner knows more than its file: attempts, and what is on its way. */
static hf_status list_of_owner(hf_op *op, hf_depot_view *view, listing *l)
{
    bool more = true;
    while (more) {
        char request[64];
        (void)snprintf(request, sizeof request, "pending %llu", (unsigned long long)l->last + 1);
        HF_TRY(hf_depot_view_ask(op, view, request, take_write, l, &more));
    }
    return hf_depot_view_rows(op, view, HF_TABLE_PENDING, (hf_key){.a = 0}, count_damaged, l);
}

static void put_end(listing *l, const hf_depot_view *view)
{
    if (l->args->damaged) {
        if (l->damaged == 0) {
            hf_buf_puts(&l->out, "no write is damaged\n");
        }
        return;
    }
    if (l->damaged > 0) {
        hf_buf_putf(&l->out, "%llu writes cannot be read: holdfast depot pending --damaged %s\n",
                    (unsigned long long)l->damaged, view->path);
    }
    if (l->count == 0) {
        hf_buf_puts(&l->out, "no write waits\n");
    }
}

int hf_cmd_depot_pending(const hf_tool_args *args)
{
    static const hf_column COLUMNS[] = {{"WRITE", 8, 0},    {"KEY", 36, 16}, {"VERB", 7, 0},          {"STATE", 8, 0},
                                        {"ATTEMPTS", 8, 0}, {"BYTES", 8, 0}, {"LAST FAILURE", 40, 12}};
    hf_op op;
    hf_depot_view view;
    listing l = {.args = args};
    hf_op_init(&op);
    int code = hf_depot_view_open(&view, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_report_init(&l.report);
    hf_buf_init(&l.out, hf_env_memory(view.env), SIZE_MAX / 4);
    hf_grid_init(&l.grid, COLUMNS, HF_COUNT_OF(COLUMNS), hf_screen_width(), &l.out);
    hf_json_object(&l.report.writer);
    hf_json_key_string(&l.report.writer, "file", view.path);
    hf_json_key(&l.report.writer, args->damaged ? "damaged" : "writes");
    hf_json_array(&l.report.writer);
    if (!args->json && !args->damaged) {
        hf_grid_title(&l.grid);
    }
    hf_key first = {.a = 0};
    hf_status status = args->damaged   ? hf_depot_view_rows(&op, &view, HF_TABLE_PENDING, first, list_damaged, &l)
                       : view.is_owned ? list_of_owner(&op, &view, &l)
                                       : hf_depot_view_rows(&op, &view, HF_TABLE_PENDING, first, list_row, &l);
    hf_json_end(&l.report.writer);
    hf_json_key_uint(&l.report.writer, "damagedWrites", l.damaged);
    hf_json_end(&l.report.writer);
    code = status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op.message);
    if (code == HF_EXIT_FINE && !args->json) {
        put_end(&l, &view);
        (void)fwrite(hf_buf_text(&l.out), 1, l.out.len, stdout);
    }
    hf_buf_deinit(&l.out);
    code = hf_report_end(&l.report, args->json, code);
    hf_depot_view_close(&view);
    return code;
}

/* ---- retry, drop ------------------------------------------------------------------------------------------------- */

typedef struct by_hand {
    char file[HF_PATH_LEN_MAX + 8];
    uint64_t sequence;
    bool drops;
    hf_status status;
    char message[HF_MESSAGE_LEN_MAX];
} by_hand;

/* On the file at rest, as its owner: a depot without an origin, which sends nothing and forgets nothing. */
static hf_status do_at_rest(void *arg)
{
    by_hand *one = arg;
    hf_depot *depot = NULL;
    one->status = hf_depot_open("holdfast depot", &depot, .file = one->file, .keep = HF_SPAN_UNLIMITED,
                                .file_max = INT64_MAX, .bytes_max = 1 << 20);
    if (one->status == HF_OK) {
        one->status = one->drops ? hf_depot_drop(depot, one->sequence) : hf_depot_retry(depot, one->sequence);
    }
    if (one->status != HF_OK) {
        (void)snprintf(one->message, sizeof one->message, "%s", hf_error()->message);
    }
    return hf_depot_close(depot);
}

/* The commands say what is damaged. */
static void say_nothing(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

static int do_by_hand(const hf_tool_args *args, bool drops)
{
    hf_op op;
    hf_depot_view view;
    by_hand *one = calloc(1, sizeof *one);
    char *end = NULL;
    hf_op_init(&op);
    if (one == NULL) {
        return hf_complain(HF_EXIT_DAMAGED, "no memory");
    }
    one->drops = drops;
    one->sequence = strtoull(args->words[1], &end, 10);
    if (args->words[1][0] < '0' || args->words[1][0] > '9' || *end != '\0') {
        free(one);
        return hf_complain(HF_EXIT_USAGE, "'%s' is not the number of a write: holdfast depot pending lists them",
                           args->words[1]);
    }
    int code = hf_depot_view_open(&view, args->words[0]);
    if (code != HF_EXIT_FINE) {
        free(one);
        return code;
    }
    if (view.is_owned) {
        char request[64];
        (void)snprintf(request, sizeof request, "%s %llu", drops ? "drop" : "retry", (unsigned long long)one->sequence);
        one->status = hf_depot_view_ask(&op, &view, request, NULL, NULL, NULL);
        (void)snprintf(one->message, sizeof one->message, "%s", op.message);
    }
    bool is_owned = view.is_owned;
    (void)snprintf(one->file, sizeof one->file, "sqlite:%s", view.path);
    hf_depot_view_close(&view); /* the lock of the reader */
    if (!is_owned && hf_run(do_at_rest, one, .log = say_nothing) != HF_OK && one->status == HF_OK) {
        one->status = HF_ERR_FAILED;
        (void)snprintf(one->message, sizeof one->message, "%s", hf_error_text());
    }
    code = one->status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(one->status), "%s", one->message);
    if (code == HF_EXIT_FINE && args->json) {
        hf_report report;
        hf_report_init(&report);
        hf_json_object(&report.writer);
        hf_json_key_uint(&report.writer, "sequence", one->sequence);
        hf_json_end(&report.writer);
        code = hf_report_end(&report, true, code);
    } else if (code == HF_EXIT_FINE) {
        (void)printf("write %llu %s\n", (unsigned long long)one->sequence,
                     drops      ? "is dropped"
                     : is_owned ? "is sent again"
                                : "is sent again when a program opens the depot");
    }
    free(one);
    return code;
}

int hf_cmd_depot_retry(const hf_tool_args *args)
{
    return do_by_hand(args, false);
}

int hf_cmd_depot_drop(const hf_tool_args *args)
{
    return do_by_hand(args, true);
}
