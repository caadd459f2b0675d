/* An origin that answers writes as a script says, and keeps a book of what it got; a depot in front of it, with or
 * without a store that outlives it. */
#ifndef HF_TESTS_DEPOT_SCRIPT_H
#define HF_TESTS_DEPOT_SCRIPT_H

#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin with a script ------------------------------------------------------------------------------------- */

enum { LOG_MAX = 40 };

/* What it answers to one push. */
typedef struct answer {
    hf_status status;      /* HF_OK, HF_ERR_CONFLICT, or a failure */
    hf_reply_class failed; /* of a failure */
    const char *value;     /* NULL = not told */
    const char *etag;
    const char *key; /* of a create */
    uint64_t revision;
    const char *modified;
    hf_span takes;
} answer;

typedef struct logged {
    char id[HF_WRITE_ID_LEN];
    char key[40];
    char data[40];
    hf_write_verb verb;
    char if_match[20];
    bool if_none;
    int attempt;
    int64_t at;
} logged;

typedef struct origin {
    answer answers[LOG_MAX];
    int answer_count;
    logged log[LOG_MAX]; /* of pushes */
    int count;
    int fetches;
    char fetched[40]; /* the key of the last one */
    const char *value;
    const char *modified;
    uint64_t revision;
    hf_span fetch_takes;
    const char *key; /* of all creates, if the script does not say */
    int combined;
    bool combine_fails;
} origin;

static void copy_text(char *to, size_t size, const void *data, size_t len)
{
    len = len < size ? len : size - 1;
    if (len > 0) {
        memcpy(to, data, len);
    }
    to[len] = '\0';
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->fetches++;
    copy_text(o->fetched, sizeof o->fetched, request->key.id, request->key.id_len);
    if (o->fetch_takes.ns > 0) {
        HF_TRY(hf_sleep(o->fetch_takes));
    }
    if (o->value == NULL) {
        return HF_ERR_NOT_FOUND;
    }
    if (o->modified != NULL) {
        HF_TRY(hf_reply_last_modified(reply, o->modified));
    }
    if (o->revision != 0) {
        HF_TRY(hf_reply_revision(reply, o->revision));
    }
    return hf_reply_value(reply, o->value, strlen(o->value));
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    int number = o->count++;
    if (!HF_CHECK(number < LOG_MAX)) {
        return HF_ERR_LIMIT;
    }
    logged *one = &o->log[number];
    *one = (logged){
        .verb = request->verb, .if_none = request->if_none, .attempt = request->attempt, .at = hf_now(NULL).ns};
    memcpy(one->id, request->id, sizeof one->id);
    copy_text(one->key, sizeof one->key, request->key.id, request->key.id_len);
    copy_text(one->data, sizeof one->data, request->data, request->len);
    if (request->if_match != NULL) {
        copy_text(one->if_match, sizeof one->if_match, request->if_match, strlen(request->if_match));
    }
    answer what = number < o->answer_count ? o->answers[number] : (answer){.status = HF_OK};
    if (what.takes.ns > 0) {
        HF_TRY(hf_sleep(what.takes));
    }
    if (what.status != HF_OK && what.status != HF_ERR_CONFLICT) {
        return hf_reply_fail(reply, what.failed, .message = "as the script says");
    }
    if (what.value != NULL) {
        HF_TRY(hf_reply_value(reply, what.value, strlen(what.value)));
    }
    if (what.etag != NULL) {
        HF_TRY(hf_reply_etag(reply, what.etag));
    }
    if (what.key == NULL && request->verb == HF_WRITE_CREATE) {
        what.key = o->key;
    }
    if (what.key != NULL) {
        HF_TRY(hf_reply_key(reply, hf_depot_key_of("acme", "user", what.key)));
    }
    if (what.revision != 0) {
        HF_TRY(hf_reply_revision(reply, what.revision));
    }
    if (what.modified != NULL) {
        HF_TRY(hf_reply_last_modified(reply, what.modified));
    }
    return what.status;
}

/* A patch is added to the end; "!" cannot be applied. */
static hf_status apply(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    (void)state;
    char text[80];
    size_t had = hf_value_len(value);
    if (len == 1 && ((const char *)patch)[0] == '!') {
        return HF_ERR_INVALID;
    }
    if (!HF_CHECK(had + len <= sizeof text)) {
        return HF_ERR_LIMIT;
    }
    memcpy(text, had > 0 ? hf_value_data(value) : "", had);
    memcpy(text + had, patch, len);
    return hf_value_copy(text, had + len, ret_value);
}

static hf_status merge(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                       hf_value **ret_value)
{
    (void)state;
    (void)base;
    char text[80];
    size_t a = hf_value_len(theirs);
    size_t b = hf_value_len(mine);
    memcpy(text, hf_value_data(theirs), a);
    text[a] = '+';
    memcpy(text + a + 1, hf_value_data(mine), b);
    return hf_value_copy(text, a + 1 + b, ret_value);
}

/* ---- A depot ----------------------------------------------------------------------------------------------------- */

static lent store;
static bool has_store;

static hf_status open_with(origin *o, const hf_depot_options *more, hf_depot **ret_depot)
{
    hf_depot_options options = more != NULL ? *more : (hf_depot_options){.coalesce = HF_SPAN_OFF};
    options.size = sizeof options;
    options.fetch = fetch;
    options.push = push;
    options.apply = apply;
    options.merge = merge;
    options.state = o;
    HF_TRY(hf_depot_open_in("users", ret_depot, &options, has_store ? &store.base : NULL));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static inline hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

/* What is at hand: the value, or "-". */
static inline bool is_at_hand(hf_depot *depot, hf_depot_key key, const char *text)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, key, &value, .fresh = HF_FRESH_LOCAL);
    bool is_right = status == HF_OK
                        ? hf_value_len(value) == strlen(text) && memcmp(hf_value_data(value), text, strlen(text)) == 0
                        : status == HF_ERR_NOT_FOUND && strcmp(text, "-") == 0;
    if (!is_right) {
        print_message("at hand is %.*s, not %s\n", (int)hf_value_len(value),
                      value != NULL ? (const char *)hf_value_data(value) : "-", text);
    }
    hf_value_unref(value);
    return is_right;
}

static inline hf_depot_counts counts_of(hf_depot *depot)
{
    hf_depot_counts counts = {0};
    HF_CHECK(hf_depot_stat(depot, &counts) == HF_OK);
    return counts;
}

typedef struct found {
    uint64_t sequence[8];
    bool is_dead[8];
    hf_write_verb verb[8];
    char message[8][40];
    size_t count;
} found;

static bool note_row(void *arg, const hf_depot_pending_write *write)
{
    found *rows = arg;
    rows->sequence[rows->count] = write->sequence;
    rows->is_dead[rows->count] = write->is_dead;
    rows->verb[rows->count] = write->verb;
    copy_text(rows->message[rows->count], 40, write->message, strlen(write->message));
    return ++rows->count < 8;
}

static inline found rows_of(hf_depot *depot)
{
    found rows = {.count = 0};
    HF_CHECK(hf_depot_pending(depot, note_row, &rows) == HF_OK);
    return rows;
}

static inline bool pushed(const origin *o, int number, hf_write_verb verb, const char *key, const char *data)
{
    const logged *one = &o->log[number];
    bool is_right =
        number < o->count && one->verb == verb && strcmp(one->key, key) == 0 && strcmp(one->data, data) == 0;
    if (!is_right) {
        print_message("push %d of %d: verb %d, key %s, data %s\n", number, o->count, (int)one->verb, one->key,
                      one->data);
    }
    return is_right;
}

/* Checks with a line of the table that failed. */
#define ROW(name, what) HF_CHECK_SAY(what, "%s: " #what, name)

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static hf_body script_body;

static hf_status with_store(void *arg)
{
    hf_op op;
    hf_op_init(&op);
    store = (lent){.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    hf_status status = script_body(arg);
    hf_store_close(store.inner);
    return status;
}

static inline void one_seed(uint64_t seed)
{
    has_store = seed % 2 == 0;
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), with_store, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "it ended with %s", hf_status_name(status));
}

static inline void simulated(const char *what, uint64_t seeds, hf_body body)
{
    script_body = body;
    hf_each_seed(what, seeds, one_seed);
}

#endif
