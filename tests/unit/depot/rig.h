/* A depot and its origin, on virtual time: for tests that say what a depot promises.
 *
 *     TRACE(S2_a_get_that_fails_leaves_the_others_running)
 *     {
 *         origin o = {.value = "v"};
 *         HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
 *         HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
 *         ...
 *         return HF_OK;
 *     }
 *
 * A trace is a test of its own: its body runs as the first fiber of a simulated runtime of one to three threads, once
 * for each seed. Pauses are as long as they may be. */
#ifndef HF_TESTS_DEPOT_RIG_H
#define HF_TESTS_DEPOT_RIG_H

#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- The origin -------------------------------------------------------------------------------------------------- */

enum { RIG_PUSHES_MAX = 64, RIG_DATA_MAX = 24 };

typedef struct rig_pushed {
    char id[RIG_DATA_MAX]; /* of the key */
    char data[RIG_DATA_MAX];
    char write_id[HF_WRITE_ID_LEN];
    char if_match[RIG_DATA_MAX];
    hf_write_verb verb;
    int attempt;
    bool if_none;
} rig_pushed;

typedef struct origin {
    /* What it answers. */
    hf_span takes;             /* a fetch */
    hf_span push_takes;        /* a push */
    hf_span cleanup;           /* a fetch that was canceled cleans up for this long */
    const char *value;         /* of every key; NULL = there is none */
    bool is_numbered;          /* the value is the number of the fetch instead */
    bool is_named;             /* the value is the id of the key instead */
    const char *etag;          /* NULL = none */
    const char *last_modified; /* the same */
    hf_span max_age;           /* told if it is not 0 */
    bool is_down;              /* fetches and pushes fail, with ... */
    hf_reply_class why;        /* ... this class; HF_REPLY_UNKNOWN = network */
    int http_status;           /* ... or this answer */
    hf_status returns;         /* ... or this status and nothing else */
    hf_span retry_after;       /* ... and this request */
    const char *bad_id;        /* only this key fails */
    const char *conflict_with; /* the next push of this value meets a conflict ... */
    const char *theirs;        /* ... with this one */
    const char *echo;          /* a push is answered with this value */
    /* What it saw. */
    int fetches, running, running_max, canceled, cleaned, not_modified, conditional;
    int attempt_last;
    hf_urgency urgency_last;
    char order[64]; /* ids of the keys that were fetched, if they are one letter long */
    int pushes, pushing, pushes_canceled;
    rig_pushed pushed[RIG_PUSHES_MAX];
} origin;

static inline hf_status rig_fail(const origin *o, hf_reply *reply)
{
    if (o->returns != HF_OK) {
        return o->returns;
    }
    return hf_reply_fail(reply, o->why != HF_REPLY_UNKNOWN ? o->why : HF_REPLY_NETWORK, .http_status = o->http_status,
                         .retry_after = o->retry_after, .message = "the line is dead");
}

static inline hf_status rig_answer(origin *o, const hf_fetch_request *request, hf_reply *reply, int number)
{
    char text[RIG_DATA_MAX];
    const char *value = o->value;
    if (o->is_down && (o->bad_id == NULL || strncmp(o->bad_id, request->key.id, request->key.id_len) == 0)) {
        return rig_fail(o, reply);
    }
    if (value == NULL && !o->is_numbered && !o->is_named) {
        return HF_ERR_NOT_FOUND;
    }
    if (o->max_age.ns != 0) {
        HF_TRY(hf_reply_max_age(reply, o->max_age));
    }
    o->conditional += request->etag != NULL || request->last_modified != NULL;
    if (request->etag != NULL && o->etag != NULL && strcmp(request->etag, o->etag) == 0) {
        o->not_modified++;
        return hf_reply_not_modified(reply);
    }
    if (o->etag != NULL) {
        HF_TRY(hf_reply_etag(reply, o->etag));
    }
    if (o->last_modified != NULL) {
        HF_TRY(hf_reply_last_modified(reply, o->last_modified));
    }
    if (o->is_named) {
        return hf_reply_value(reply, request->key.id, request->key.id_len);
    }
    if (o->is_numbered) {
        (void)snprintf(text, sizeof text, "%d", number);
        value = text;
    }
    return hf_reply_value(reply, value, strlen(value));
}

static inline hf_status rig_fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    int number = ++o->fetches;
    o->attempt_last = request->attempt;
    o->urgency_last = request->urgency;
    if (request->key.id_len == 1 && strlen(o->order) + 1 < sizeof o->order) {
        o->order[strlen(o->order)] = *(const char *)request->key.id;
    }
    o->running++;
    o->running_max = o->running > o->running_max ? o->running : o->running_max;
    hf_status status = o->takes.ns > 0 ? hf_sleep(o->takes) : HF_OK;
    if (status != HF_OK) {
        o->canceled++;
        if (o->cleanup.ns > 0) {
            HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
            if (hf_shield_open(hf_minutes(10), &shield) == HF_OK && hf_sleep(o->cleanup) == HF_OK) {
                o->cleaned++;
            }
        }
    }
    o->running--;
    return status == HF_OK ? rig_answer(o, request, reply, number) : status;
}

static inline hf_status rig_push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    rig_pushed *one = &o->pushed[o->pushes < RIG_PUSHES_MAX ? o->pushes : RIG_PUSHES_MAX - 1];
    o->pushes++;
    *one = (rig_pushed){.verb = request->verb, .attempt = request->attempt, .if_none = request->if_none};
    (void)snprintf(one->id, sizeof one->id, "%.*s", (int)request->key.id_len, (const char *)request->key.id);
    (void)snprintf(one->data, sizeof one->data, "%.*s", (int)request->len,
                   request->data != NULL ? (const char *)request->data : "");
    (void)snprintf(one->write_id, sizeof one->write_id, "%s", request->id);
    (void)snprintf(one->if_match, sizeof one->if_match, "%.20s", request->if_match != NULL ? request->if_match : "");
    o->pushing++;
    hf_status status = o->push_takes.ns > 0 ? hf_sleep(o->push_takes) : HF_OK;
    o->pushing--;
    o->pushes_canceled += status != HF_OK;
    HF_TRY(status);
    if (o->is_down) {
        return rig_fail(o, reply);
    }
    if (o->conflict_with != NULL && strcmp(o->conflict_with, one->data) == 0) {
        o->conflict_with = NULL;
        HF_TRY(hf_reply_etag(reply, "theirs"));
        HF_TRY(hf_reply_value(reply, o->theirs, strlen(o->theirs)));
        return HF_ERR_CONFLICT;
    }
    if (o->echo != NULL) {
        HF_TRY(hf_reply_etag(reply, "echo"));
        return hf_reply_value(reply, o->echo, strlen(o->echo));
    }
    return HF_OK;
}

/* ---- The depot --------------------------------------------------------------------------------------------------- */

static inline hf_status rig_open_with(hf_depot **ret_depot, lent *store, hf_depot_options options)
{
    options.size = sizeof options;
    HF_TRY(hf_depot_open_in("users", ret_depot, &options, store != NULL ? &store->base : NULL));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}
#define rig_open(ret_depot, ...) rig_open_with((ret_depot), NULL, (hf_depot_options){__VA_ARGS__})
#define rig_open_on(store, ret_depot, ...) rig_open_with((ret_depot), (store), (hf_depot_options){__VA_ARGS__})

/* A store that outlives depots; hf_store_close(store->inner) closes it. */
static inline hf_status rig_store(lent *ret_store)
{
    hf_op op;
    hf_op_init(&op);
    *ret_store = (lent){.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    return hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &ret_store->inner);
}

static inline hf_depot_key rig_key(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static inline bool rig_is_text(const hf_value *value, const char *text)
{
    return value != NULL && hf_value_len(value) == strlen(text) &&
           memcmp(hf_value_data(value), text, strlen(text)) == 0;
}

/* Gets a value that must be this one; the rest are options of hf_depot_get. */
#define GET(depot, id, text, ...)                                                                    \
    do {                                                                                             \
        hf_value *got_ = NULL;                                                                       \
        hf_status status_ = hf_depot_get((depot), rig_key(id), &got_, __VA_ARGS__);                  \
        HF_CHECK_SAY(status_ == HF_OK && rig_is_text(got_, (text)), "%s is %s '%.*s', not '%s'", id, \
                     hf_status_name(status_), got_ != NULL ? (int)hf_value_len(got_) : 0,            \
                     got_ != NULL ? (const char *)hf_value_data(got_) : "", (text));                 \
        hf_value_unref(got_);                                                                        \
    } while (0)

/* The status of a get, whatever it brings. */
static inline hf_status rig_get_with(hf_depot *depot, const char *id, hf_depot_get_options options)
{
    hf_value *got = NULL;
    options.size = sizeof options;
    hf_status status = hf_depot_get_with(depot, rig_key(id), &got, &options);
    HF_CHECK((status == HF_OK) == (got != NULL));
    hf_value_unref(got);
    return status;
}
#define rig_get(depot, id, ...) rig_get_with((depot), (id), (hf_depot_get_options){__VA_ARGS__})

static inline hf_status rig_put(hf_depot *depot, const char *id, const char *text)
{
    return hf_depot_put(depot, rig_key(id), text, strlen(text));
}

/* The next event, which must be of this kind, and DATA of this value (NULL = any). */
static inline void rig_next(hf_watcher *watcher, hf_depot_event_kind kind, const char *text, hf_depot_event *ret_event)
{
    hf_depot_event event = {0};
    hf_status status = hf_watcher_next(watcher, &event, .timeout = hf_hours(1));
    HF_CHECK_SAY(status == HF_OK && event.kind == kind, "%s, event %d instead of %d", hf_status_name(status),
                 (int)event.kind, (int)kind);
    HF_CHECK_SAY(text == NULL || event.kind != kind || rig_is_text(event.value, text), "the event is '%.*s', not '%s'",
                 event.value != NULL ? (int)hf_value_len(event.value) : 0,
                 event.value != NULL ? (const char *)hf_value_data(event.value) : "", text);
    hf_value_unref(event.value);
    event.value = NULL;
    if (ret_event != NULL) {
        *ret_event = event;
    }
}

/* Nothing more has happened to the key. */
static inline void rig_no_event(hf_watcher *watcher)
{
    hf_depot_event event = {0};
    hf_status status = hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(1));
    HF_CHECK_SAY(status == HF_ERR_TIMEOUT, "%s, event %d", hf_status_name(status), (int)event.kind);
    hf_value_unref(status == HF_OK ? event.value : NULL);
}

static inline int64_t rig_now(void)
{
    return hf_now(NULL).ns;
}

static inline hf_depot_counts rig_counts(hf_depot *depot)
{
    hf_depot_counts counts = {0};
    HF_CHECK(hf_depot_stat(depot, &counts) == HF_OK);
    return counts;
}

/* A get of its own fiber. */
typedef struct rig_asker {
    hf_depot *depot;
    const char *id;
    const char *text; /* expected if the status is HF_OK */
    hf_depot_get_options options;
    hf_status status;
    bool is_over;
    int64_t took;
} rig_asker;

static inline hf_status rig_ask(void *arg)
{
    rig_asker *asker = arg;
    hf_value *got = NULL;
    int64_t before = rig_now();
    asker->options.size = sizeof asker->options;
    asker->status = hf_depot_get_with(asker->depot, rig_key(asker->id), &got, &asker->options);
    HF_CHECK_SAY(asker->status != HF_OK || asker->text == NULL || rig_is_text(got, asker->text), "%s is '%.*s'",
                 asker->id, got != NULL ? (int)hf_value_len(got) : 0,
                 got != NULL ? (const char *)hf_value_data(got) : "");
    asker->took = rig_now() - before;
    asker->is_over = true;
    hf_value_unref(got);
    return asker->status == HF_ERR_CANCELED ? HF_ERR_CANCELED : HF_OK;
}

/* ---- Traces ------------------------------------------------------------------------------------------------------ */

static hf_status (*rig_body)(void);
static uint64_t rig_seeds = 20; /* of each trace */

static inline hf_status rig_root(void *arg)
{
    (void)arg;
    return rig_body();
}

static inline void rig_one_seed(uint64_t seed)
{
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), rig_root, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "the trace ended with %s", hf_status_name(status));
}

static inline void rig_play(const char *name, hf_status (*body)(void))
{
    rig_body = body;
    hf_each_seed(name, rig_seeds, rig_one_seed);
}

#define TRACE(name)                     \
    static hf_status name##_body(void); \
    static void name(void **state)      \
    {                                   \
        (void)state;                    \
        rig_play(#name, name##_body);   \
    }                                   \
    static hf_status name##_body(void)

#endif
