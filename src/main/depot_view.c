#include "main/depot_view.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_S = 5, PAUSE_MS = 50, ANSWER_S = 60 };

int hf_depot_view_open(hf_depot_view *view, const char *word)
{
    *view = (hf_depot_view){.env = hf_env_posix(), .path = strncmp(word, "sqlite:", 7) == 0 ? word + 7 : word};
    hf_env *env = view->env;
    hf_instant until = {env->ops->now(env).ns + hf_seconds(PATIENCE_S).ns};
    for (;;) {
        hf_op op;
        hf_op_init(&op);
        hf_status status = hf_peek_open_of(&op, env, &hf_depot_tables, view->path, &view->peek, &view->holder);
        view->is_owned = status == HF_ERR_EXISTS && view->holder > 0;
        if (status == HF_OK || (view->is_owned && hf_admin_listens(env, view->path))) {
            return HF_EXIT_FINE;
        }
        if (!view->is_owned || env->ops->now(env).ns >= until.ns) {
            return hf_complain(status == HF_ERR_DENIED ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN, "%s", op.message);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL); /* it is opening or closing it */
    }
}

void hf_depot_view_close(hf_depot_view *view)
{
    hf_peek_close(&view->peek);
}

/* ---- The owner --------------------------------------------------------------------------------------------------- */

static hf_status await(hf_op *op, int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, ANSWER_S * 1000) > 0
               ? HF_OK
               : hf_fail(op, HF_ERR_TIMEOUT, "the program that has the file open does not answer");
}

static hf_status say(hf_op *op, hf_env *env, int fd, const char *request)
{
    char line[HF_DOOR_REQUEST_MAX];
    int len = snprintf(line, sizeof line, HF_DOOR_HELLO "%s\n", request);
    if (len < 0 || (size_t)len >= sizeof line) {
        return hf_fail(op, HF_ERR_INVALID, "the request is too long");
    }
    for (size_t at = 0; at < (size_t)len;) {
        size_t put = 0;
        hf_op tried;
        hf_op_init(&tried);
        HF_TRY(await(op, fd, POLLOUT));
        hf_status status = env->ops->write(env, &tried, fd, line + at, (size_t)len - at, &put);
        if (status != HF_OK && status != HF_ERR_AGAIN) {
            return hf_fail(op, HF_ERR_CLOSED, "the program that has the file open cannot be asked: %s", tried.message);
        }
        at += put;
    }
    return HF_OK;
}

/* Gives whole frames to `take`, and drops them from the buffer. True: the last one was among them. */
static bool hand_out(hf_op *op, hf_buf *in, hf_depot_take *take, void *arg, bool *ret_more, hf_status *ret_status)
{
    hf_str left = hf_str_of_len(in->data, in->len);
    hf_door_frame frame;
    hf_status status = HF_OK;
    while ((status = hf_door_take(&left, &frame)) == HF_OK) {
        if (frame.kind == HF_DOOR_END) {
            *ret_status = (hf_status)frame.number;
            if (frame.number != HF_OK) {
                (void)hf_fail(op, *ret_status, "%.*s", HF_STR_ARGS(frame.body));
            }
            return true;
        }
        if (frame.kind == HF_DOOR_MORE) {
            *ret_more = true;
        } else if (take != NULL) {
            take(arg, &frame);
        }
    }
    if (left.len > 0 && left.data != in->data) {
        memmove(in->data, left.data, left.len);
    }
    in->len = left.len;
    if (status == HF_ERR_INVALID) {
        *ret_status =
            hf_fail(op, HF_ERR_UNSUPPORTED, "the program that has the file open does not answer as a depot does");
        return true;
    }
    return false;
}

static hf_status hear(hf_op *op, hf_env *env, int fd, hf_depot_take *take, void *arg, bool *ret_more)
{
    hf_buf in;
    hf_status status = HF_OK;
    hf_buf_init(&in, hf_env_memory(env), 2 * (size_t)HF_DOOR_FRAME_MAX);
    for (;;) {
        char piece[16384];
        size_t got = 0;
        hf_op tried;
        hf_op_init(&tried);
        status = await(op, fd, POLLIN);
        if (status != HF_OK) {
            break;
        }
        status = env->ops->read(env, &tried, fd, piece, sizeof piece, &got);
        if (status == HF_ERR_AGAIN) {
            continue;
        }
        if (status != HF_OK || got == 0) {
            status =
                hf_fail(op, HF_ERR_CLOSED,
                        "the program that had the file open has closed it meanwhile, or does not answer as a depot "
                        "does: try again");
            break;
        }
        hf_buf_put(&in, piece, got);
        if (hf_buf_status(&in) != HF_OK) {
            status = hf_fail(op, hf_buf_status(&in), "no memory for the answer");
            break;
        }
        if (hand_out(op, &in, take, arg, ret_more, &status)) {
            break;
        }
    }
    hf_buf_deinit(&in);
    return status;
}

hf_status hf_depot_view_ask(hf_op *op, hf_depot_view *view, const char *request, hf_depot_take *take, void *arg,
                            bool *ret_more)
{
    hf_env *env = view->env;
    char address[HF_PATH_LEN_MAX];
    int fd = -1;
    bool more = false;
    hf_op tried;
    hf_op_init(&tried);
    hf_beside_socket(view->path, address);
    if (env->ops->connect(env, &tried, address, &fd) != HF_OK) {
        return hf_fail(op, HF_ERR_CLOSED, "the program that has %s open cannot be asked: %s", view->path,
                       tried.message);
    }
    hf_status status = say(op, env, fd, request);
    if (status == HF_OK) {
        status = hear(op, env, fd, take, arg, &more);
    }
    env->ops->close(env, fd);
    if (ret_more != NULL) {
        *ret_more = more;
    }
    return status;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

typedef struct walk {
    hf_depot_with_row *with;
    void *arg;
    bool is_over;
    uint64_t last;                  /* number of the last row */
    char text[HF_KEY_TEXT_LEN_MAX]; /* and its text */
    size_t text_len;
} walk;

static void take_row(void *arg, const hf_door_frame *frame)
{
    walk *w = arg;
    if (frame->kind != HF_DOOR_ROW || frame->text.len > sizeof w->text || w->is_over) {
        return;
    }
    hf_row row = {.key = {.text = frame->text, .a = (int64_t)frame->number}, .value = frame->body};
    w->last = frame->number;
    memcpy(w->text, frame->text.data, frame->text.len);
    w->text_len = frame->text.len;
    w->is_over = !w->with(w->arg, &row);
}

static hf_status walk_owner(hf_op *op, hf_depot_view *view, hf_table table, hf_key from, walk *w)
{
    const hf_table_info *info = hf_table_info_of(table);
    w->last = (uint64_t)from.a;
    w->text_len = from.text.len;
    memcpy(w->text, from.text.data != NULL ? from.text.data : "", from.text.len);
    bool more = true;
    for (bool is_first = true; more && !w->is_over; is_first = false) {
        char request[HF_DOOR_REQUEST_MAX - 100];
        int len = snprintf(request, sizeof request, "rows %s ", info->name);
        if (info->has_a) {
            (void)snprintf(request + len, sizeof request - (size_t)len, "%llu",
                           (unsigned long long)(w->last + !is_first));
        } else { /* behind the last one: one byte more */
            size_t count = w->text_len + !is_first;
            if (2 * count + 2 + (size_t)len > sizeof request || count > sizeof w->text) {
                return hf_fail(op, HF_ERR_INVALID, "a key is too long");
            }
            w->text[w->text_len < sizeof w->text ? w->text_len : 0] = '\0';
            for (size_t i = 0; i < count; i++) {
                len += snprintf(request + len, sizeof request - (size_t)len, "%02x", (unsigned char)w->text[i]);
            }
            if (count == 0) {
                (void)snprintf(request + len, sizeof request - (size_t)len, "-");
            }
        }
        HF_TRY(hf_depot_view_ask(op, view, request, take_row, w, &more));
    }
    return HF_OK;
}

static hf_status visit_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)op;
    (void)arena;
    walk *w = arg;
    w->is_over = !w->with(w->arg, row);
    return w->is_over ? HF_ERR_CANCELED : HF_OK; /* ends the walk */
}

hf_status hf_depot_view_rows(hf_op *op, hf_depot_view *view, hf_table table, hf_key from, hf_depot_with_row *with,
                             void *arg)
{
    walk w = {.with = with, .arg = arg};
    if (view->is_owned) {
        return walk_owner(op, view, table, from, &w);
    }
    hf_status status =
        hf_store_each_row(op, view->peek.store, hf_env_memory(view->env), table, &from, NULL, visit_row, &w);
    if (status == HF_ERR_CANCELED && w.is_over) {
        hf_op_init(op);
        return HF_OK;
    }
    return status;
}
