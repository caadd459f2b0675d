/* The owner's side of the socket beside a depot's file: a fiber of the depot that answers tools, one at a time, since they
 * come from people at a terminal (door.h). The socket file has mode 0600. A program works without the socket: where
 * it cannot be made, the log says so, and the depot goes on.
 *
 * A request is bounded in length and time, and cannot make the program fail. A request about the depot goes through
 * the driver like any call, and one about the file through the store's queue. */
#include "depot/door.h"

#include "depot/file.h"
#include "store/sqlite/owner.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 4 };
#define HELLO_SPAN hf_seconds(5)   /* for the whole request */
#define ANSWER_SPAN hf_seconds(30) /* for a piece of the answer to be taken */

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

static void put_le(unsigned char *to, uint64_t number, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (unsigned char)(number >> (8 * i));
    }
}

static uint64_t get_le(const char *from, size_t len)
{
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++) {
        number |= (uint64_t)(unsigned char)from[i] << (8 * i);
    }
    return number;
}

void hf_door_put(hf_buf *out, hf_door_kind kind, uint64_t number, hf_str text, hf_str body)
{
    unsigned char head[HF_DOOR_HEAD_LEN];
    hf_assert(text.len <= HF_KEY_TEXT_LEN_MAX && body.len <= HF_DOOR_FRAME_MAX); /* a name or a key; a record */
    put_le(head, HF_DOOR_HEAD_LEN - 4 + text.len + body.len, 4);
    head[4] = (unsigned char)kind;
    put_le(head + 5, number, 8);
    put_le(head + 13, text.len, 4);
    hf_buf_put(out, head, sizeof head);
    hf_buf_put(out, text.data, text.len);
    hf_buf_put(out, body.data, body.len);
}

hf_status hf_door_take(hf_str *bytes, hf_door_frame *ret_frame)
{
    if (bytes->len < HF_DOOR_HEAD_LEN) {
        return HF_ERR_AGAIN;
    }
    uint64_t len = get_le(bytes->data, 4) + 4;
    uint64_t text_len = get_le(bytes->data + 13, 4);
    if (len < HF_DOOR_HEAD_LEN || len > HF_DOOR_FRAME_MAX || text_len > len - HF_DOOR_HEAD_LEN) {
        return HF_ERR_INVALID;
    }
    if (bytes->len < len) {
        return HF_ERR_AGAIN;
    }
    *ret_frame = (hf_door_frame){
        .kind = (hf_door_kind)bytes->data[4],
        .number = get_le(bytes->data + 5, 8),
        .text = hf_str_of_len(bytes->data + HF_DOOR_HEAD_LEN, (size_t)text_len),
        .body = hf_str_of_len(bytes->data + HF_DOOR_HEAD_LEN + text_len, (size_t)(len - HF_DOOR_HEAD_LEN - text_len)),
    };
    *bytes = hf_str_of_len(bytes->data + len, bytes->len - (size_t)len);
    return HF_OK;
}

/* ---- Errands to the store ---------------------------------------------------------------------------------------- */

typedef struct errand {
    hf_ask ask;
    hf_depot *depot;
    hf_store_request *request;
    hf_post post;
} errand;

static void act_back(hf_depot *depot, hf_post *post)
{
    errand *one = HF_CONTAINER(post, errand, post);
    hf_assert(depot->loads > 0);
    depot->loads--;
    hf_depot_answer(depot, &one->ask, one->request->status);
}

static void on_done(hf_store_request *request)
{
    errand *one = request->owner;
    one->post.act = act_back;
    hf_depot_post_quietly(one->depot, &one->post);
}

static void act_go(hf_depot *depot, hf_post *post)
{
    errand *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), errand, ask);
    if (depot->is_ending || depot->source == NULL || depot->broken != HF_OK) {
        one->request->status = hf_fail(&one->request->op, HF_ERR_CLOSED, "the depot is being closed");
        hf_depot_answer(depot, &one->ask, HF_ERR_CLOSED);
        return;
    }
    hf_assert(one->request->done == on_done && one->request->owner == one);
    depot->loads++;
    hf_source_submit(depot, one->request);
}

/* Executes it on the store's thread. Nothing ends the wait: the store uses the request until it is done. */
static hf_status execute(hf_op *op, hf_depot *depot, hf_store_request *request)
{
    errand one = {.depot = depot, .request = request};
    hf_assert(request->verb != HF_STORE_COMMIT); /* depot-D2: changes go through the driver */
    request->done = on_done;
    request->owner = &one;
    hf_op_init(&request->op);
    hf_depot_tell(depot, &one.ask, act_go, "hf_depot");
    if (request->status != HF_OK) {
        *op = request->op;
        op->status = request->status;
    }
    return request->status;
}

/* ---- What is asked ----------------------------------------------------------------------------------------------- */

typedef struct talk {
    hf_depot *depot;
    hf_buf out;
    hf_op op;
    const char *words[WORDS_MAX]; /* the verb, then its arguments; NULL = there is none */
} talk;

static hf_status number_of(talk *t, const char *word, uint64_t *ret_number)
{
    char *end = NULL;
    *ret_number = word != NULL ? strtoull(word, &end, 10) : 0;
    return word != NULL && end != word && *end == '\0'
               ? HF_OK
               : hf_fail(&t->op, HF_ERR_INVALID, "%s needs a number", t->words[0]);
}

static hf_status bytes_of(talk *t, const char *word, char *ret_bytes, size_t max, size_t *ret_len)
{
    static const char DIGITS[] = "0123456789abcdef";
    size_t len = word != NULL && strcmp(word, "-") != 0 ? strlen(word) : 0;
    if (len % 2 != 0 || len / 2 > max || (len > 0 && strspn(word, DIGITS) != len)) {
        return hf_fail(&t->op, HF_ERR_INVALID, "%s needs bytes in hexadecimal, at most %zu of them", t->words[0], max);
    }
    for (size_t i = 0; i < len / 2; i++) {
        ret_bytes[i] = (char)((strchr(DIGITS, word[2 * i]) - DIGITS) << 4 | (strchr(DIGITS, word[2 * i + 1]) - DIGITS));
    }
    *ret_len = len / 2;
    return HF_OK;
}

static void put_figure(talk *t, const char *name, const char *word, uint64_t value)
{
    char text[100];
    (void)snprintf(text, sizeof text, "%s%s%s", name, word != NULL ? "." : "", word != NULL ? word : "");
    hf_door_put(&t->out, HF_DOOR_FIGURE, value, hf_str_of(text), (hf_str){0});
}

static hf_status answer_stats(talk *t)
{
    hf_depot *depot = t->depot;
    hf_store_count *count = hf_rt_alloc(depot->rt, sizeof *count);
    hf_figure *figures = hf_rt_alloc(depot->rt, HF_PANEL_FIGURES_MAX * sizeof *figures);
    hf_store_request request = {.verb = HF_STORE_STATS, .count = count};
    hf_status status =
        count != NULL && figures != NULL ? HF_OK : hf_fail(&t->op, HF_ERR_NOMEM, "no memory for the figures");
    do {
        status = status == HF_OK ? execute(&t->op, depot, &request) : status;
    } while (status == HF_OK && request.more);
    if (status == HF_OK) {
        put_figure(t, "file_bytes", NULL, request.stats.file_len);
        put_figure(t, "log_bytes", NULL, request.stats.log_len);
        put_figure(t, "free_bytes", NULL, request.stats.free_len);
        for (size_t i = 0; i < hf_depot_tables.count; i++) {
            hf_table table = hf_depot_tables.tables[i];
            put_figure(t, "rows", hf_table_info_of(table)->name, request.stats.rows[table]);
        }
        hf_assert(count->table == HF_TABLE_COUNT); /* all are counted */
        size_t figure_count = depot->panel.figures(&depot->panel, figures);
        for (size_t i = 0; i < figure_count; i++) {
            put_figure(t, figures[i].label != NULL ? figures[i].name : "live",
                       figures[i].label != NULL ? figures[i].word : figures[i].name, figures[i].value);
        }
    }
    hf_rt_free(depot->rt, figures, HF_PANEL_FIGURES_MAX * sizeof *figures);
    hf_rt_free(depot->rt, count, sizeof *count);
    return status;
}

static hf_status answer_rows(talk *t)
{
    char from[HF_KEY_TEXT_LEN_MAX];
    size_t len = 0;
    uint64_t number = 0;
    hf_table table = HF_TABLE_COUNT;
    for (size_t i = 0; i < hf_depot_tables.count && t->words[1] != NULL; i++) {
        if (strcmp(hf_table_info_of(hf_depot_tables.tables[i])->name, t->words[1]) == 0) {
            table = hf_depot_tables.tables[i];
        }
    }
    if (table == HF_TABLE_COUNT) {
        return hf_fail(&t->op, HF_ERR_INVALID, "a depot's file has no such table");
    }
    if (hf_table_info_of(table)->has_a) {
        HF_TRY(number_of(t, t->words[2], &number));
    } else {
        HF_TRY(bytes_of(t, t->words[2], from, sizeof from, &len));
    }
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(t->depot->rt->env));
    hf_store_request request = {
        .verb = HF_STORE_SCAN,
        .table = table,
        .key = {.text = hf_str_of_len(from, len), .a = (int64_t)(number & INT64_MAX)},
        .key_end = hf_key_last(),
        .len_max = HF_DOOR_PAGE_LEN,
        .arena = &arena,
    };
    hf_status status = execute(&t->op, t->depot, &request);
    for (size_t i = 0; status == HF_OK && i < request.row_count; i++) {
        const hf_row *row = &request.rows[i];
        hf_door_put(&t->out, HF_DOOR_ROW, (uint64_t)row->key.a, row->key.text, row->value);
    }
    if (status == HF_OK && request.more) {
        hf_door_put(&t->out, HF_DOOR_MORE, 0, (hf_str){0}, (hf_str){0});
    }
    hf_arena_deinit(&arena);
    return status;
}

typedef struct listing {
    hf_ask ask;
    hf_buf *out;
    uint64_t from;
} listing;

static void act_list(hf_depot *depot, hf_post *post)
{
    listing *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), listing, ask);
    hf_buf line;
    size_t count = 0;
    hf_buf_init(&line, hf_env_memory(depot->rt->env), 4096);
    HF_LIST_EACH(node, &depot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (row->is_origin_first || row->sequence < one->from) {
            continue;
        }
        if (count++ == HF_DOOR_WRITES_MAX) {
            hf_door_put(one->out, HF_DOOR_MORE, 0, (hf_str){0}, (hf_str){0});
            break;
        }
        line.len = 0;
        hf_look_put_line(&line, row);
        hf_door_put(one->out, HF_DOOR_WRITE, row->sequence, hf_slot_key(row->slot), hf_str_of_len(line.data, line.len));
    }
    hf_buf_deinit(&line);
    hf_depot_answer(depot, &one->ask, HF_OK);
}

static hf_status answer_pending(talk *t)
{
    listing one = {.out = &t->out};
    HF_TRY(number_of(t, t->words[1], &one.from));
    hf_assert(t->out.len == 0);
    hf_depot_tell(t->depot, &one.ask, act_list, "hf_depot");
    return HF_OK;
}

/* A verb of the depot, by its number of the write. */
static hf_status answer_by_hand(talk *t, hf_status (*verb)(hf_depot *depot, uint64_t sequence))
{
    uint64_t sequence = 0;
    HF_TRY(number_of(t, t->words[1], &sequence));
    hf_status status = verb(t->depot, sequence);
    return status == HF_OK ? HF_OK : hf_fail(&t->op, status, "%s", hf_error()->message);
}

static hf_status answer(talk *t)
{
    const char *verb = t->words[0] != NULL ? t->words[0] : "";
    if (strcmp(verb, "stats") == 0) {
        return answer_stats(t);
    }
    if (strcmp(verb, "rows") == 0) {
        return answer_rows(t);
    }
    if (strcmp(verb, "pending") == 0) {
        return answer_pending(t);
    }
    if (strcmp(verb, "retry") == 0 || strcmp(verb, "drop") == 0) {
        return answer_by_hand(t, verb[0] == 'r' ? hf_depot_retry : hf_depot_drop);
    }
    return hf_fail(&t->op, HF_ERR_INVALID, "there is no verb '%.40s': the verbs are stats, rows, pending, retry, drop",
                   verb);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* Reads the line; false: it did not come, or is not ours. */
static bool hear(hf_conn *conn, char *line, size_t room)
{
    size_t len = 0;
    while (len + 1 < room && memchr(line, '\n', len) == NULL) {
        size_t got = 0;
        if (hf_conn_read(conn, line + len, room - 1 - len, &got, .timeout = HELLO_SPAN) != HF_OK || got == 0) {
            return false;
        }
        len += got;
        size_t hello = strlen(HF_DOOR_HELLO);
        if (memcmp(line, HF_DOOR_HELLO, len < hello ? len : hello) != 0) {
            return false; /* somebody has the wrong socket */
        }
    }
    char *end = memchr(line, '\n', len);
    if (end != NULL) {
        *end = '\0';
    }
    return end != NULL && (size_t)(end - line) >= strlen(HF_DOOR_HELLO);
}

static void split(char *line, talk *t)
{
    char *at = line + strlen(HF_DOOR_HELLO);
    for (size_t i = 0; i < WORDS_MAX && *at != '\0'; i++) {
        t->words[i] = at;
        at += strcspn(at, " ");
        if (*at == ' ') {
            *at++ = '\0';
        }
    }
}

static void serve(hf_depot *depot, hf_conn *conn)
{
    talk *t = hf_rt_alloc(depot->rt, sizeof *t);
    char *line = t != NULL ? hf_rt_alloc(depot->rt, HF_DOOR_REQUEST_MAX) : NULL;
    if (line != NULL && hear(conn, line, HF_DOOR_REQUEST_MAX)) {
        t->depot = depot;
        hf_op_init(&t->op);
        hf_buf_init(&t->out, hf_env_memory(depot->rt->env), 2 * (size_t)HF_DOOR_FRAME_MAX);
        split(line, t);
        hf_status status = answer(t);
        if (status == HF_OK && hf_buf_status(&t->out) != HF_OK) {
            status = hf_fail(&t->op, hf_buf_status(&t->out), "no memory for the answer");
        }
        if (hf_buf_status(&t->out) != HF_OK) {
            hf_buf_deinit(&t->out);
            hf_buf_init(&t->out, hf_env_memory(depot->rt->env), HF_DOOR_REQUEST_MAX);
        }
        hf_door_put(&t->out, HF_DOOR_END, (uint64_t)status, (hf_str){0},
                    status != HF_OK ? hf_str_of(t->op.message) : (hf_str){0});
        HF_IGNORE(hf_conn_write(conn, t->out.data, t->out.len, .timeout = ANSWER_SPAN)); /* the tool may have gone */
        hf_buf_deinit(&t->out);
    }
    hf_rt_free(depot->rt, line, HF_DOOR_REQUEST_MAX);
    hf_rt_free(depot->rt, t, sizeof *t);
}

hf_status hf_depot_door(void *arg)
{
    hf_depot *depot = arg;
    hf_listener *listener = NULL;
    const char *path = hf_source_path(depot);
    char *names = hf_rt_alloc(depot->rt, 2 * (size_t)HF_PATH_LEN_MAX); /* too much for a stack */
    hf_assert(path != NULL);
    hf_status status = names != NULL ? HF_OK : HF_ERR_NOMEM;
    if (status == HF_OK) {
        hf_beside_socket(path, names);
        status = hf_listener_open(names, &listener, .replace = true);
    }
    if (status != HF_OK && status != HF_ERR_CANCELED) {
        hf_log(depot->rt, HF_LOG_WARN, "depot_without_socket", "depot=%s message=%s", depot->name,
               names != NULL ? hf_error_text() : "no memory");
    }
    while (status == HF_OK) {
        hf_conn *conn = NULL;
        status = hf_listener_accept(listener, &conn);
        if (status == HF_OK) {
            serve(depot, conn);
            (void)hf_conn_close(conn);
        } else if (status == HF_ERR_LIMIT) { /* no descriptor is free */
            status = hf_sleep(hf_seconds(1));
        }
    }
    if (listener != NULL) {
        hf_op op;
        hf_op_init(&op);
        (void)hf_listener_close(listener);
        if (hf_beside(path, "-sock", names + HF_PATH_LEN_MAX)) {
            hf_env *env = depot->rt->env;
            (void)env->ops->socket_remove(env, &op, names + HF_PATH_LEN_MAX);
        }
    }
    hf_rt_free(depot->rt, names, 2 * (size_t)HF_PATH_LEN_MAX);
    return HF_OK;
}
