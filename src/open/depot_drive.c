/* hf_depot_drive: workflows drive the sends of a depot (depot/driven.h).
 *
 *     depot --want(key)--> list of keys --> starters: start and signal "holdfast.depot", one run per key
 *     depot <--send_next-- activity "holdfast.depot.send" <-- the run: until the key has no more writes
 *
 * The rows are the truth, and the run is only the driver. What may be lost, and what becomes of it:
 *
 *     the run, its signal, an answer     the key is wanted again: at the next opening, at a retry by hand, an hour later
 *     the rows (a depot without a file)  the activity finds none, and the run ends
 *     an attempt                         it is tried again, with the write that is first then, under that write's id
 *
 * open-D1  A key is wanted until a report has told its run that it has no more writes. A write that comes later makes it wanted
 *     again, which is a signal: a run that is about to end takes it and goes on, because the engine does not complete a run over a
 *     signal that it has not seen. */
#include "base/buf.h"
#include "base/list.h"
#include "base/sha256.h"
#include "base/span.h"
#include "base/spin.h"
#include "base/status.h"
#include "depot/driven.h"
#include "depot/key.h"
#include "fiber/core.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

#define WORKFLOW "holdfast.depot"
#define SEND "holdfast.depot.send"
#define BURY "holdfast.depot.bury"
#define MORE "more"

enum {
    STARTERS = 8,     /* starts under way: their commits are shared */
    ROUNDS_MAX = 500, /* sends of one run; the next run goes on */
    QUEUE_LEN_MAX = 963,
    ID_LEN_MAX = 900,   /* of a workflow id, of which 1,000 may be used */
    SLACK_SECONDS = 30, /* of an attempt, beside the time that the push may take */
    STOP_SECONDS = 10
};
#define FIRST_PAUSE INT64_C(100000000)     /* ns before a start that failed is tried again; doubled ... */
#define LONGEST_PAUSE INT64_C(30000000000) /* ... up to this */
#define STUCK_PAUSE INT64_C(3600000000000) /* ns after a failure that stays until somebody changes something */
#define WAIT_FIRST INT64_C(30000000000)    /* ns that a run waits before it asks by itself; doubled ... */
#define WAIT_MAX INT64_C(3600000000000)    /* ... up to this */

/* A key that is wanted. */
typedef struct wanted {
    hf_node node;
    hf_depot_key_bytes key;
} wanted;

typedef struct hf_drive {
    hf_sends_by by; /* first: hf_depot_sends_whose gives it */
    hf_depot *depot;
    hf_service *service;
    hf_runtime *rt;
    hf_worker *worker; /* of .queue */
    hf_chan *bell;     /* a key is wanted */
    hf_chan *stop;     /* closed: the starters are to end ... */
    hf_chan *ended;    /* ... and closed: they have */
    hf_spin lock;
    hf_list keys; /* wanted; under the lock */
    hf_activity_options send;
    char queue[QUEUE_LEN_MAX + 1];
    char namespace_[HF_KEY_LEN_MAX + 1]; /* "" = the service's */
} hf_drive;

/* ---- Ids --------------------------------------------------------------------------------------------------------- */

static void put_escaped(hf_buf *out, hf_str text)
{
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:@+";
    static const char DIGITS[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c != '\0' && strchr(PLAIN, c) != NULL) {
            hf_buf_put(out, &text.data[i], 1);
        } else {
            char code[3] = {'%', DIGITS[c >> 4], DIGITS[c & 15]};
            hf_buf_put(out, code, sizeof code);
        }
    }
}

/* "depot-NAME/NS/TYPE/ID" with other characters escaped. One that would be too long ends with its hash. */
static hf_status make_id(const hf_drive *drive, hf_str packed, char ret_id[ID_LEN_MAX + 1])
{
    hf_depot_key key;
    hf_buf buf;
    bool is_key = hf_depot_key_unpack(packed, &key);
    hf_assert(is_key);
    hf_buf_init(&buf, hf_env_memory(hf_env_posix()), SIZE_MAX);
    const hf_str parts[] = {hf_str_of(hf_depot_name(drive->depot)), hf_str_of(key.ns), hf_str_of(key.type),
                            hf_str_of_len(key.id, key.id_len)};
    hf_buf_put(&buf, "depot-", 6);
    for (size_t i = 0; i < HF_COUNT_OF(parts); i++) {
        hf_buf_put(&buf, "/", i > 0);
        put_escaped(&buf, parts[i]);
    }
    hf_status status = hf_buf_status(&buf);
    if (status == HF_OK) {
        hf_assert(buf.data != NULL && buf.len > 0);
        bool is_short = buf.len <= ID_LEN_MAX;
        size_t kept = is_short ? buf.len : ID_LEN_MAX - HF_SHA256_HEX_LEN - 1;
        memcpy(ret_id, buf.data, kept);
        if (!is_short) {
            ret_id[kept] = '-';
            hf_sha256_hex(hf_str_of_len(buf.data, buf.len), ret_id + kept + 1);
        }
        ret_id[is_short ? kept : ID_LEN_MAX] = '\0';
    }
    hf_buf_deinit(&buf);
    return status;
}

/* ---- The workflow ------------------------------------------------------------------------------------------------ */

/* A run that was told to wait: until a signal comes, or for this long. */
static hf_status wait_for_more(int64_t ns)
{
    hf_status status = hf_signal_wait(MORE, NULL, .timeout = hf_nanoseconds(ns));
    return status == HF_ERR_TIMEOUT ? HF_OK : status;
}

static int64_t at_least_ms(int64_t ns)
{
    return ns > 1000000 ? ns : 1000000; /* a shorter timeout of a workflow is refused */
}

/* The retry policy has given up: the write is dead, and the next one has its turn. */
static hf_status bury(const hf_drive *drive, hf_payload in, hf_payload details)
{
    const hf_failure *why = hf_error()->cause != NULL ? hf_error()->cause : hf_error();
    HF_AUTO(hf_payload_free) hf_payload list = hf_payload_none();
    hf_payload items[3] = {in, details.data != NULL ? details : hf_payload_of_json("0"),
                           hf_payload_of_bytes(why->message, strlen(why->message))};
    HF_TRY(hf_payload_list(items, HF_COUNT_OF(items), &list));
    return hf_activity_run(BURY, list, NULL, .start_to_close = drive->send.start_to_close, .retry_max = hf_minutes(5));
}

/* One send. `*ret_wait` above 0: not now, but after this; -1: when there is a signal. */
static hf_status send_one(const hf_drive *drive, hf_payload in, bool *ret_has_more, int64_t *ret_wait)
{
    hf_payload out = hf_payload_none(); /* both are freed with the run */
    hf_payload details = hf_payload_none();
    hf_activity_options options = drive->send;
    options.size = sizeof options;
    options.ret_details = &details;
    options.file = __FILE__;
    options.line = __LINE__;
    hf_status status = hf_activity_run_with(SEND, in, &out, &options);
    *ret_has_more = true;
    *ret_wait = 0;
    if (status == HF_ERR_FAILED || status == HF_ERR_TIMEOUT) {
        const hf_failure *cause = hf_error()->cause;
        bool is_dead = cause != NULL && strcmp(cause->type, "WriteRefused") == 0;
        return is_dead ? HF_OK : bury(drive, in, details);
    }
    HF_TRY(status);
    HF_TRY(hf_json_get_bool(out, "more", ret_has_more));
    int64_t wait_ms = 0;
    HF_TRY(hf_json_get_int(out, "wait_ms", &wait_ms));
    *ret_wait = wait_ms < 0 ? -1 : wait_ms * 1000000;
    return HF_OK;
}

static hf_status drive_key(hf_payload in, hf_payload *ret_out)
{
    const hf_drive *drive = hf_workflow_info()->arg;
    int64_t patience = WAIT_FIRST;
    (void)ret_out;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool has_more = false;
        int64_t wait = 0;
        while (hf_signal_try(MORE, NULL) == HF_OK) { /* what came so far is asked for now */
        }
        HF_TRY(send_one(drive, in, &has_more, &wait));
        if (wait != 0) {
            HF_TRY(wait_for_more(at_least_ms(wait > 0 ? wait : patience)));
            patience = wait > 0 ? WAIT_FIRST : patience * 2 < WAIT_MAX ? patience * 2 : WAIT_MAX;
        } else if (!has_more) {
            hf_status status = hf_signal_try(MORE, NULL);
            if (status != HF_OK) {
                return status == HF_ERR_AGAIN ? HF_OK : status; /* open-D1 */
            }
        } else {
            patience = WAIT_FIRST;
        }
    }
    return hf_continue_as_new(in);
}

/* ---- Its activities ---------------------------------------------------------------------------------------------- */

static hf_status key_of(hf_payload in, hf_depot_key *ret_key)
{
    return hf_depot_key_unpack(hf_str_of_len(in.data, in.len), ret_key)
               ? HF_OK
               : hf_activity_fail("the input is not a key of a depot", .type = "WriteRefused", .is_final = true);
}

static const char *const ENDS[] = {
    [HF_SEND_NONE] = "none",      [HF_SEND_SETTLED] = "settled", [HF_SEND_GIVEN_UP] = "given up",
    [HF_SEND_AGAIN] = "conflict", [HF_SEND_FAILED] = "failed",   [HF_SEND_DEAD] = "dead",
    [HF_SEND_HELD] = "held",
};

static hf_status fail_send(const hf_send_report *report)
{
    char sequence[24];
    char text[HF_SEND_MESSAGE_LEN + 64];
    bool is_dead = report->end == HF_SEND_DEAD;
    (void)snprintf(sequence, sizeof sequence, "%llu", (unsigned long long)report->sequence);
    (void)snprintf(text, sizeof text, "write %llu, attempt %d: %s", (unsigned long long)report->sequence,
                   report->attempts, report->message[0] != '\0' ? report->message : hf_status_text(report->status));
    hf_span pause = report->retry_after.ns >= 1000000 ? report->retry_after : hf_nanoseconds(0);
    return hf_activity_fail(text, .type = is_dead ? "WriteRefused" : "SendFailed", .is_final = is_dead,
                            .retry_after = is_dead ? hf_nanoseconds(0) : pause,
                            .details = hf_payload_of_json(sequence));
}

static hf_status send_it(hf_payload in, hf_payload *ret_out)
{
    hf_drive *drive = hf_activity_arg();
    hf_depot_key key;
    hf_send_report report;
    HF_TRY(key_of(in, &key));
    HF_TRY(hf_depot_send_next(drive->depot, key, &report));
    if (report.end == HF_SEND_FAILED || report.end == HF_SEND_DEAD) {
        return fail_send(&report);
    }
    bool is_held = report.end == HF_SEND_HELD;
    int64_t wait_ms = report.retry_after.ns > 0 ? report.retry_after.ns / 1000000 + 1 : -1;
    return hf_payload_printf(ret_out, "{\"write\":%llu,\"end\":\"%s\",\"more\":%s,\"wait_ms\":%lld}",
                             (unsigned long long)report.sequence, ENDS[report.end], report.has_more ? "true" : "false",
                             (long long)(is_held ? wait_ms : 0));
}

static hf_status bury_it(hf_payload in, hf_payload *ret_out)
{
    hf_drive *drive = hf_activity_arg();
    HF_AUTO(hf_payload_free) hf_payload packed = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload number = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload message = hf_payload_none();
    hf_depot_key key;
    int64_t sequence = 0;
    (void)ret_out;
    HF_TRY(hf_payload_nth(in, 0, &packed));
    HF_TRY(hf_payload_nth(in, 1, &number));
    HF_TRY(hf_payload_nth(in, 2, &message));
    HF_TRY(key_of(packed, &key));
    HF_TRY(hf_json_get_int(number, "", &sequence));
    return hf_depot_bury(drive->depot, key, (uint64_t)sequence, message.data != NULL ? message.data : "");
}

/* ---- Starting runs ----------------------------------------------------------------------------------------------- */

static bool want(void *state, hf_depot_key key)
{
    hf_drive *drive = state;
    hf_op op;
    hf_op_init(&op);
    wanted *one = hf_rt_alloc(drive->rt, sizeof *one);
    if (one == NULL) {
        return false;
    }
    hf_status status = hf_depot_key_pack(&op, key, &one->key);
    hf_assert(status == HF_OK); /* it is a key of the depot */
    hf_spin_lock(&drive->lock);
    hf_list_push_back(&drive->keys, &one->node);
    hf_spin_unlock(&drive->lock);
    HF_IGNORE(hf_chan_try_send(drive->bell, "")); /* full: as many are about to look as there are */
    return true;
}

static wanted *take(hf_drive *drive)
{
    hf_spin_lock(&drive->lock);
    hf_node *node = hf_list_pop_front(&drive->keys);
    hf_spin_unlock(&drive->lock);
    return node != NULL ? HF_CONTAINER(node, wanted, node) : NULL;
}

/* Starts the run of the key, or tells it that there is more. Tries until it has worked, because the writes of the key were acknowledged: after a
 * failure that stays (a namespace that was deleted) once an hour, with a line in the log each time (base-B4). Fails: HF_ERR_CANCELED. */
static hf_status start_run(hf_drive *drive, const wanted *one)
{
    char id[ID_LEN_MAX + 1];
    hf_payload in = hf_payload_of_bytes(one->key.bytes, one->key.len);
    for (int64_t pause = FIRST_PAUSE;; pause = pause < LONGEST_PAUSE / 2 ? 2 * pause : LONGEST_PAUSE) {
        hf_status status = make_id(drive, hf_str_of_len(one->key.bytes, one->key.len), id);
        if (status == HF_OK) {
            status = hf_start_and_signal(drive->service, WORKFLOW, in, MORE, hf_payload_none(), NULL, .id = id,
                                         .task_queue = drive->queue,
                                         .namespace_ = drive->namespace_[0] != '\0' ? drive->namespace_ : NULL);
        }
        if (status == HF_OK || status == HF_ERR_CANCELED) {
            return status;
        }
        if (!hf_status_may_pass(status)) {
            pause = STUCK_PAUSE;
            hf_log(drive->rt, HF_LOG_WARN, "depot_run_not_started", "depot=%s workflow=%s message=%s",
                   hf_depot_name(drive->depot), id, hf_error_text());
        }
        HF_TRY(hf_sleep(hf_nanoseconds(pause)));
    }
}

static hf_status start_runs(void *arg)
{
    hf_drive *drive = arg;
    for (;;) {
        wanted *one = take(drive);
        if (one == NULL) {
            char token = 0;
            HF_TRY(hf_chan_recv(drive->bell, &token));
            continue;
        }
        hf_status status = start_run(drive, one);
        hf_rt_free(drive->rt, one, sizeof *one);
        HF_TRY(status);
    }
}

/* The fiber around the starters, in the depot's scope. */
static hf_status run_starters(void *arg)
{
    hf_drive *drive = arg;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        char token = 0;
        hf_status status = hf_scope_open(&scope, .name = "depot starters", .join = HF_JOIN_DISCARD);
        int count = 0;
        while (count < STARTERS && status == HF_OK) {
            status = hf_fork(scope, start_runs, drive, .name = "depot starter");
            count += status == HF_OK;
        }
        if (count == 0) {
            hf_log(drive->rt, HF_LOG_ERROR, "depot_not_driven", "depot=%s message=%s", hf_depot_name(drive->depot),
                   hf_error_text());
        }
        HF_IGNORE(hf_chan_recv(drive->stop, &token));
    }
    HF_IGNORE(hf_chan_close(drive->ended));
    return HF_OK;
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

/* Ends what is there; `is_running`: the starters are. */
static hf_status drive_free(hf_drive *drive, bool is_running)
{
    /* The activities end first, while the depot still answers them. */
    hf_status status = drive->worker != NULL ? hf_worker_free(drive->worker) : HF_OK;
    if (hf_depot_sends_whose(drive->depot) == &drive->by) {
        HF_IGNORE(hf_depot_sends_by(drive->depot, NULL)); /* this one cannot fail */
    }
    if (is_running) {
        char token = 0;
        HF_IGNORE(hf_chan_close(drive->stop));
        while (hf_chan_recv(drive->ended, &token) == HF_ERR_CANCELED) { /* the caller is: it must not leave them */
            HF_IGNORE(hf_yield());
        }
    }
    for (wanted *one = take(drive); one != NULL; one = take(drive)) {
        hf_rt_free(drive->rt, one, sizeof *one);
    }
    (void)hf_chan_free(drive->bell);
    (void)hf_chan_free(drive->stop);
    (void)hf_chan_free(drive->ended);
    hf_rt_free(drive->rt, drive, sizeof *drive);
    return status;
}

static void on_close(void *state)
{
    HF_IGNORE(drive_free(state, true)); /* the log has it */
}

static const char VERB[] = "hf_depot_drive";

static hf_status check(hf_op *op, const hf_depot *depot, const hf_depot_drive_options *o)
{
    if (hf_depot_settings(depot)->push == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, VERB, "depot '%s' has no .push: it sends nothing", hf_depot_name(depot));
    }
    size_t queue_len = o->queue != NULL ? strlen(o->queue) : strlen("depot-") + strlen(hf_depot_name(depot));
    if (queue_len < 1 || queue_len > QUEUE_LEN_MAX) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, ".queue has %zu bytes: it must have 1 to %d", queue_len,
                          QUEUE_LEN_MAX);
    }
    size_t namespace_len = o->namespace_ != NULL ? strlen(o->namespace_) : 1;
    if (namespace_len < 1 || namespace_len > HF_KEY_LEN_MAX) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, ".namespace_ has %zu bytes: it must have 1 to %d", namespace_len,
                          HF_KEY_LEN_MAX);
    }
    HF_TRY(hf_number_check(op, VERB, ".attempts_max", o->attempts_max, HF_MAY_BE_UNLIMITED));
    HF_TRY(hf_span_check(op, VERB, ".retry_initial", o->retry_initial, 0));
    HF_TRY(hf_span_check(op, VERB, ".retry_max", o->retry_max, 0));
    if (o->attempts_max > INT32_MAX || (o->retry_coefficient != 0 && !(o->retry_coefficient >= 1))) {
        return hf_fail_at(op, HF_ERR_INVALID, VERB, ".attempts_max is too large, or .retry_coefficient is less than 1");
    }
    return HF_OK;
}

static void settle(hf_drive *drive, const hf_depot_drive_options *o)
{
    const hf_depot_options *settings = hf_depot_settings(drive->depot);
    (void)snprintf(drive->queue, sizeof drive->queue, "%s%s", o->queue != NULL ? "" : "depot-",
                   o->queue != NULL ? o->queue : hf_depot_name(drive->depot));
    (void)snprintf(drive->namespace_, sizeof drive->namespace_, "%s", o->namespace_ != NULL ? o->namespace_ : "");
    int64_t limit = hf_seconds(SLACK_SECONDS).ns;
    bool is_bounded = !__builtin_add_overflow(limit, settings->fetch_timeout.ns, &limit);
    drive->send = (hf_activity_options){
        .size = sizeof drive->send,
        .start_to_close = is_bounded ? hf_nanoseconds(limit) : hf_days(1),
        .attempts_max = o->attempts_max == HF_UNLIMITED ? 0 : (int)o->attempts_max,
        .retry_initial = o->retry_initial.ns > 0 ? o->retry_initial : hf_seconds(1),
        .retry_coefficient = o->retry_coefficient > 0 ? o->retry_coefficient : 2,
        .retry_max = o->retry_max.ns > 0 ? o->retry_max : hf_minutes(5),
    };
}

static hf_status employ(hf_drive *drive)
{
    int64_t sends = hf_depot_settings(drive->depot)->send_max;
    HF_TRY(hf_worker_new(drive->service, drive->queue, &drive->worker, .runtime = drive->rt,
                         .namespace_ = drive->namespace_[0] != '\0' ? drive->namespace_ : NULL, .pollers_max = 8,
                         .activity_pollers_max = 8, .activities_max = (int)sends,
                         .shutdown_grace = hf_seconds(STOP_SECONDS)));
    HF_TRY(hf_worker_add_workflow(drive->worker, WORKFLOW, drive_key, .arg = drive));
    HF_TRY(hf_worker_add_activity(drive->worker, SEND, send_it, .arg = drive, .on_fiber = true));
    return hf_worker_add_activity(drive->worker, BURY, bury_it, .arg = drive, .on_fiber = true);
}

static hf_status make(hf_drive *drive, bool *ret_is_running)
{
    HF_TRY(hf_chan_new(1, &drive->bell, .name = "depot bell", .capacity = STARTERS, .runtime = drive->rt));
    HF_TRY(hf_chan_new(1, &drive->stop, .name = "depot stop", .capacity = 1, .runtime = drive->rt));
    HF_TRY(hf_chan_new(1, &drive->ended, .name = "depot ended", .capacity = 1, .runtime = drive->rt));
    HF_TRY(employ(drive));
    HF_TRY(hf_fork(hf_depot_scope(drive->depot), run_starters, drive, .name = "depot starters"));
    *ret_is_running = true;
    HF_TRY(hf_depot_sends_by(drive->depot, &drive->by));
    return hf_worker_start(drive->worker); /* runs that are open ask at once */
}

hf_status hf_depot_drive_with(hf_depot *depot, hf_service *service, const hf_depot_drive_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_drive));
    HF_OPTIONS(hf_depot_drive_options, options, hf_depot_drive);
    if (depot == NULL || service == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_depot_drive needs a depot and a service");
    }
    HF_TRY(hf_depot_enter(depot, VERB)); /* says whether it may be called here */
    hf_depot_leave(depot);
    hf_op op;
    hf_op_init(&op);
    if (check(&op, depot, options) != HF_OK) {
        return hf_raise(op.status, "%s", op.message);
    }
    hf_runtime *rt = hf_depot_runtime(depot);
    hf_drive *drive = hf_rt_alloc(rt, sizeof *drive);
    if (drive == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory to drive depot '%s'", hf_depot_name(depot));
    }
    drive->by = (hf_sends_by){.state = drive, .want = want, .close = on_close};
    drive->depot = depot;
    drive->service = service;
    drive->rt = rt;
    hf_list_init(&drive->keys);
    settle(drive, options);
    bool is_running = false;
    hf_status status = make(drive, &is_running);
    if (status != HF_OK) {
        char why[HF_MESSAGE_LEN_MAX];
        (void)snprintf(why, sizeof why, "%s", hf_error_text());
        (void)drive_free(drive, is_running);
        return hf_raise(status, "%s", why);
    }
    return HF_OK;
}

hf_status hf_depot_undrive(hf_depot *depot)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_undrive));
    HF_TRY(hf_depot_enter(depot, "hf_depot_undrive"));
    const hf_sends_by *by = hf_depot_sends_whose(depot);
    hf_depot_leave(depot);
    return by != NULL && by->want == want ? drive_free(by->state, true) : HF_OK;
}
