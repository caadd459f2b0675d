/* hf_open("owner:FILE"), and "sqlite:FILE?share=yes" in a process that is not the owner: a service whose engine is in the process that has the
 * file open. One thread has the connection; it encodes requests, writes, reads, and ends calls.
 *
 *     asking  --- the connection is lost ---> seeking: becomes the owner, or finds the new one
 *        ^                                      |   |
 *        +---------- hello was answered --------+   +--> inside: calls go to the engine of this process, for good (open-S3)
 *
 * The lock beside the file (owner.c) says who may become the owner: the kernel gives it to one process, and takes it away when that one
 * ends. So several processes may try at once. */
#include "open/share_private.h"

#include "base/fields.h"

#include <stdio.h>

enum { STACK_LEN = 512 * 1024, PATIENCE_S = 5 }; /* hf_open waits as long for an owner that is just opening the file */

static int64_t now_of(const hf_share *share)
{
    return share->env->ops->now(share->env).ns;
}

hf_service *hf_share_service(hf_share *share)
{
    return &share->service;
}

/* ---- The bell ------------------------------------------------------------------------------------------------------------------ */

bool hf_share_wants_ring(hf_share *share)
{
    if (!share->is_asleep) {
        return false;
    }
    share->is_asleep = false;
    hf_guest_enter(&share->service.guests);
    return true;
}

void hf_share_ring(hf_share *share)
{
    hf_env *env = share->env;
    env->ops->poller_ring(env, share->poller);
    hf_guest_leave(env, &share->service.guests); /* from here on the share may be gone */
}

static void rest(hf_share *share, hf_instant until)
{
    hf_env *env = share->env;
    hf_event events[4];
    hf_spin_lock(&share->lock);
    bool is_idle = hf_list_is_empty(&share->inbox) && hf_list_is_empty(&share->canceled) &&
                   hf_list_is_empty(&share->tokens) && !share->is_closing;
    share->is_asleep = is_idle;
    hf_spin_unlock(&share->lock);
    int count =
        env->ops->poller_wait(env, share->poller, events, (int)HF_COUNT_OF(events), is_idle ? until : (hf_instant){0});
    hf_spin_lock(&share->lock);
    share->is_asleep = false;
    hf_spin_unlock(&share->lock);
    for (int i = 0; i < count; i++) { /* of an earlier connection: a read more, which says "again" */
        share->duct.may_read |= (events[i].events & HF_READABLE) != 0;
        share->duct.may_write |= (events[i].events & HF_WRITABLE) != 0;
    }
}

static void tell(hf_share *share, hf_log_level level, const char *event, const char *why)
{
    char fields[2 * HF_MESSAGE_LEN_MAX];
    hf_fields_format(fields, sizeof fields, "file=%s why=\"%s\"", share->path, why);
    if (share->log != NULL) {
        share->log(share->log_state, level, event, fields);
    }
}

/* ---- The connection --------------------------------------------------------------------------------------------------------------- */

static void close_line(hf_share *share)
{
    hf_env *env = share->env;
    if (share->duct.fd >= 0) {
        hf_duct_deinit(&share->duct);
        hf_duct_init(&share->duct, env, -1, NULL, NULL);
    }
}

/* Says "calls", and waits for the answer. */
static hf_status shake_hands(hf_op *op, hf_share *share, int fd)
{
    char version[16];
    hf_str args[1];
    hf_arena arena;
    hf_pb_admin_response response = {0};
    hf_wire wire = {.env = share->env,
                    .poller = share->poller,
                    .fd = fd,
                    .deadline = {now_of(share) + hf_seconds(HF_SHARE_CONNECT_SECONDS).ns},
                    .stopping = &share->is_stopping};
    (void)snprintf(version, sizeof version, "%d", HF_SHARE_VERSION);
    args[0] = hf_str_of(version);
    hf_pb_admin_request request = {.verb = HF_STR("calls"), .args = {args, 1}};
    HF_TRY(share->env->ops->poller_set(share->env, op, share->poller, fd, HF_READABLE | HF_WRITABLE, true, share));
    hf_arena_init(&arena, share->memory);
    hf_status status = hf_frame_write(op, &wire, &hf_pb_admin_request_type, &request, share->memory);
    if (status == HF_OK) {
        status = hf_frame_read(op, &wire, &hf_pb_admin_response_type, HF_FRAME_RESPONSE_MAX, &arena, &response);
    }
    if (status == HF_OK && response.status != HF_OK) {
        /* An owner of an older version does not know the word. */
        bool is_old = response.status == HF_ERR_INVALID;
        status = is_old ? hf_fail(op, HF_ERR_UNSUPPORTED,
                                  "the program that has %s open is of an older version of Holdfast: use the same one",
                                  share->path)
                        : hf_fail(op, (hf_status)response.status, "%.*s", HF_STR_ARGS(response.message));
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status connect_to(hf_op *op, hf_share *share)
{
    hf_env *env = share->env;
    int fd = -1;
    HF_TRY(env->ops->connect(env, op, share->address, &fd));
    hf_status status = shake_hands(op, share, fd);
    if (status == HF_OK) { /* from here on as the duct wants it */
        status = env->ops->poller_set(env, op, share->poller, fd, HF_READABLE, false, share);
    }
    if (status != HF_OK) {
        env->ops->close(env, fd);
        return status;
    }
    hf_duct_deinit(&share->duct);
    hf_duct_init(&share->duct, env, fd, share->poller, share);
    share->failures = 0;
    share->why[0] = '\0';
    return HF_OK;
}

static void note_failure(hf_share *share, const char *why)
{
    int64_t pause = HF_SHARE_PAUSE_FIRST_MS;
    for (unsigned i = 0; i < share->failures && pause < HF_SHARE_PAUSE_MAX_MS; i++) {
        pause *= 2;
    }
    pause = pause < HF_SHARE_PAUSE_MAX_MS ? pause : HF_SHARE_PAUSE_MAX_MS;
    share->failures++;
    if (share->failures == HF_SHARE_FAILURES_TOLD) {
        share->has_told = true;
        tell(share, HF_LOG_WARN, "owner_out_of_reach", why);
    }
    share->try_ns = hf_later(now_of(share), hf_milliseconds(pause).ns);
    (void)snprintf(share->why, sizeof share->why, "%s", why);
}

/* There is no connection: this process becomes the owner, or finds it. */
static void seek(hf_share *share)
{
    hf_op op;
    hf_op_init(&op);
    hf_service *engine = NULL;
    hf_status status = HF_ERR_EXISTS;
    if (share->become != NULL) {
        status = share->become(share->become_state, &op, &engine);
    }
    if (status == HF_OK) {
        hf_spin_lock(&share->lock);
        share->local = engine;
        hf_spin_unlock(&share->lock);
        tell(share, HF_LOG_INFO, "file_taken_over", "the program that had it open has gone");
        return;
    }
    if (status != HF_ERR_EXISTS) { /* the file cannot be opened, which seldom passes soon */
        note_failure(share, op.message);
        share->try_ns = hf_later(now_of(share), hf_seconds(1).ns);
        return;
    }
    hf_op_init(&op);
    if (connect_to(&op, share) != HF_OK) {
        note_failure(share, op.message);
    } else if (share->has_told) {
        share->has_told = false;
        tell(share, HF_LOG_INFO, "owner_reached", "it answers");
    }
}

static void lose(hf_share *share)
{
    (void)snprintf(share->why, sizeof share->why, "%s", share->duct.why);
    close_line(share);
    if (!share->has_told) {
        share->has_told = true;
        tell(share, HF_LOG_INFO, "owner_lost", share->why);
    }
    share->try_ns = 0;
    hf_out_lost(share);
}

/* ---- Turns -------------------------------------------------------------------------------------------------------------------------- */

static void take_calls(hf_share *share)
{
    hf_list fresh;
    hf_node *node = NULL;
    hf_spin_lock(&share->lock);
    hf_list_move_all(&share->inbox, &fresh);
    hf_spin_unlock(&share->lock);
    while ((node = hf_list_pop_front(&fresh)) != NULL) {
        hf_out_begin(share, HF_CONTAINER(node, hf_call, link));
    }
}

/* One at a time: another thread may add to the list meanwhile. */
static hf_errand_out *next_canceled(hf_share *share)
{
    hf_errand_out *found = NULL;
    hf_spin_lock(&share->lock);
    HF_LIST_EACH(node, &share->canceled)
    {
        hf_call *call = HF_CONTAINER(node, hf_call, all);
        if (call->parked != NULL) { /* else it has come after the inbox was taken: the next turn */
            found = call->parked;
            hf_list_remove(node);
            break;
        }
    }
    hf_spin_unlock(&share->lock);
    return found;
}

static void take_tokens(hf_share *share)
{
    hf_list tokens;
    hf_node *node = NULL;
    hf_spin_lock(&share->lock);
    hf_list_move_all(&share->tokens, &tokens);
    hf_spin_unlock(&share->lock);
    while ((node = hf_list_pop_front(&tokens)) != NULL) {
        hf_share_token *item = HF_CONTAINER(node, hf_share_token, node);
        hf_str token = hf_str_of_len((const char *)(item + 1), item->len);
        hf_pb_owner_call frame = {.unwanted = token};
        if (share->local != NULL) {
            share->local->ops->unwanted(share->local, token);
        } else if (share->duct.fd >= 0) { /* else a new owner finds it by its timeout */
            hf_duct_put(&share->duct, &hf_pb_owner_call_type, &frame);
        }
        share->memory.release(share->memory.state, item, sizeof *item + item->len);
    }
}

static void ring_alarms(hf_share *share)
{
    int64_t now = now_of(share);
    hf_heap_node *first = NULL;
    while ((first = hf_heap_first(&share->alarms)) != NULL && first->key <= now) {
        hf_heap_remove(&share->alarms, first);
        hf_out_ring(HF_CONTAINER(first, hf_errand_out, alarm));
    }
}

static void listen_to(hf_share *share)
{
    hf_str message = {0};
    hf_duct_fill(&share->duct, HF_SHARE_PIECE_FRAME_LEN_MAX);
    while (!share->duct.is_over && hf_duct_take(&share->duct, HF_SHARE_PIECE_FRAME_LEN_MAX, &message)) {
        hf_op op;
        hf_arena arena;
        hf_pb_owner_answer msg = {0};
        hf_op_init(&op);
        hf_arena_init(&arena, share->memory);
        if (hf_pb_decode(&op, &hf_pb_owner_answer_type, message, &arena, &msg) == HF_OK) {
            hf_out_answer(share, &msg);
        } else {
            share->duct.is_over = true;
            (void)snprintf(share->duct.why, sizeof share->duct.why, "it answers with something that cannot be read");
        }
        hf_arena_deinit(&arena);
    }
}

static void turn(hf_share *share)
{
    hf_errand_out *canceled = NULL;
    take_calls(share);
    if (share->local == NULL && share->duct.fd < 0 && now_of(share) >= share->try_ns) {
        seek(share);
    }
    if (share->local != NULL) {
        hf_out_hand_over(share);
        take_tokens(share);
        return;
    }
    while ((canceled = next_canceled(share)) != NULL) {
        hf_out_cancel(canceled);
    }
    take_tokens(share);
    ring_alarms(share);
    if (share->duct.fd < 0) {
        return;
    }
    hf_out_send_all(share);
    hf_duct_flush(&share->duct);
    listen_to(share);
    if (share->duct.is_over) {
        lose(share);
    }
}

static hf_instant next_turn(const hf_share *share)
{
    if (share->local != NULL) {
        return HF_INSTANT_NEVER;
    }
    const hf_heap_node *first = hf_heap_first(&share->alarms);
    int64_t at = first != NULL ? first->key : INT64_MAX;
    if (share->duct.fd < 0) {
        at = share->try_ns < at ? share->try_ns : at;
    } else if (share->duct.may_read || (!hf_list_is_empty(&share->waiting) && share->duct.may_write)) {
        at = 0;
    }
    return (hf_instant){at};
}

static bool is_closing(hf_share *share)
{
    hf_spin_lock(&share->lock);
    bool is = share->is_closing;
    hf_spin_unlock(&share->lock);
    return is;
}

/* What a worker has left behind is not counted as the end of this process (engine-U1). Does not wait: an owner that takes nothing counts. */
static void say_goodbye(hf_share *share)
{
    if (share->duct.fd >= 0) {
        hf_pb_owner_call goodbye = {.closes = true};
        hf_duct_put(&share->duct, &hf_pb_owner_call_type, &goodbye);
        hf_duct_flush(&share->duct);
    }
}

static void share_main(void *arg)
{
    hf_share *share = arg;
    while (!is_closing(share)) {
        turn(share);
        rest(share, next_turn(share));
    }
    take_calls(share);
    take_tokens(share);
    if (share->local != NULL) {
        hf_out_hand_over(share); /* the engine ends them */
    } else {
        hf_out_fail_all(share, HF_ERR_CLOSED, "the service was closed");
        say_goodbye(share);
    }
    close_line(share);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------------------- */

/* Whether a program has the file open, or is opening or closing it. */
static bool has_owner(hf_share *share)
{
    hf_op op;
    hf_op_init(&op);
    hf_file_owner owner = {0};
    int64_t holder = 0;
    if (hf_file_owner_take(&op, share->env, share->path, true, &owner, &holder) == HF_OK) {
        hf_file_owner_release(share->env, &owner);
        return false;
    }
    return op.status == HF_ERR_EXISTS;
}

static void pause_ms(hf_share *share, int64_t ms)
{
    hf_event events[4];
    (void)share->env->ops->poller_wait(share->env, share->poller, events, (int)HF_COUNT_OF(events),
                                       (hf_instant){now_of(share) + hf_milliseconds(ms).ns});
}

/* The first connection. An owner opens its socket last: it may be opening the file. */
static hf_status reach(hf_op *op, hf_share *share)
{
    int64_t until = now_of(share) + hf_seconds(PATIENCE_S).ns;
    for (;;) {
        hf_op tried;
        hf_op_init(&tried);
        hf_status status = connect_to(&tried, share);
        if (status == HF_OK) {
            return HF_OK;
        }
        if (status == HF_ERR_UNSUPPORTED || status == HF_ERR_LIMIT || status == HF_ERR_INVALID ||
            status == HF_ERR_NOMEM || status == HF_ERR_DENIED) {
            return hf_fail(op, status, "%s", tried.message);
        }
        if (!has_owner(share)) {
            return hf_fail(
                op, HF_ERR_NOT_FOUND,
                "no program has %s open: start the one that works on it, or open the file itself (sqlite:%s)",
                share->path, share->path);
        }
        if (now_of(share) >= until) {
            return hf_fail(op, HF_ERR_UNAVAILABLE, "the program that has %s open cannot be asked: %s", share->path,
                           tried.message);
        }
        pause_ms(share, HF_SHARE_PAUSE_MAX_MS / 2);
    }
}

static hf_status start(hf_op *op, hf_share *share)
{
    hf_env *env = share->env;
    HF_TRY(env->ops->poller_open(env, op, &share->poller));
    if (share->local != NULL) {
        return HF_OK;
    }
    if (share->become == NULL) {
        HF_TRY(reach(op, share));
    } else { /* who has it now may be gone in a moment: the thread seeks on */
        hf_op tried;
        hf_op_init(&tried);
        hf_status status = connect_to(&tried, share);
        if (status == HF_ERR_UNSUPPORTED) {
            return hf_fail(op, status, "%s", tried.message);
        }
    }
    return env->ops->thread_start(env, op, "hf-share", STACK_LEN, share_main, share, &share->thread);
}

hf_status hf_share_open(hf_op *op, hf_env *env, const hf_share_options *options, hf_share **ret_share)
{
    hf_share *share = env->ops->allocate(env, sizeof *share, 0);
    if (share == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a service");
    }
    *share = (hf_share){.service = {.ops = &hf_share_ops, .is_remote = true},
                        .env = env,
                        .memory = hf_env_memory(env),
                        .become = options->become,
                        .become_state = options->become_state,
                        .local = options->local,
                        .log = options->log,
                        .log_state = options->log_state};
    (void)snprintf(share->path, sizeof share->path, "%s", options->path);
    hf_beside_socket(share->path, share->address);
    hf_duct_init(&share->duct, env, -1, NULL, NULL);
    hf_heap_init(&share->alarms, share->memory);
    hf_buf_init(&share->scratch, share->memory, HF_SHARE_REQUEST_LEN_MAX);
    hf_list *const LISTS[] = {&share->out,      &share->waiting, &share->inbox,
                              &share->canceled, &share->tokens,  &share->spare};
    for (size_t i = 0; i < HF_COUNT_OF(LISTS); i++) {
        hf_list_init(LISTS[i]);
    }
    for (size_t i = 0; i < HF_SHARE_BUCKETS; i++) {
        hf_list_init(&share->buckets[i]);
        hf_list_init(&share->by_wire[i]);
    }
    hf_status status = start(op, share);
    if (status != HF_OK) {
        hf_share_free(share);
        return status;
    }
    *ret_share = share;
    return HF_OK;
}

void hf_share_stop(hf_share *share)
{
    hf_env *env = share->env;
    atomic_store(&share->is_stopping, true);
    hf_spin_lock(&share->lock);
    share->is_closing = true;
    hf_spin_unlock(&share->lock);
    if (share->thread != NULL) {
        env->ops->poller_ring(env, share->poller);
        env->ops->thread_join(env, share->thread);
        share->thread = NULL;
    }
}

void hf_share_free(hf_share *share)
{
    hf_env *env = share->env;
    hf_node *node = NULL;
    hf_guests_await(env, &share->service.guests);                       /* service-V4 */
    hf_assert(share->call_count == 0 && hf_list_is_empty(&share->out)); /* open-S1 */
    while ((node = hf_list_pop_front(&share->tokens)) != NULL) {
        hf_share_token *item = HF_CONTAINER(node, hf_share_token, node);
        share->memory.release(share->memory.state, item, sizeof *item + item->len);
    }
    while ((node = hf_list_pop_front(&share->spare)) != NULL) {
        share->memory.release(share->memory.state, HF_CONTAINER(node, hf_errand_out, node), sizeof(hf_errand_out));
    }
    hf_duct_deinit(&share->duct);
    hf_heap_deinit(&share->alarms);
    hf_buf_deinit(&share->scratch);
    if (share->poller != NULL) {
        env->ops->poller_close(env, share->poller);
    }
    env->ops->release(env, share, sizeof *share);
}
