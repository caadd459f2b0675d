/* Bad input: every row is something that a program, an origin, a clock or a disk does wrong. It gets a status and a
 * sentence, or is served from memory; nobody gets a wrong value, and nothing hangs. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* What the origin of a row does. */
typedef enum trick {
    FINE,
    NOTHING,      /* HF_OK, and no value */
    NOT_MODIFIED, /* although it was asked without an etag */
    LONG_ETAG,
    LARGE,
    NEGATIVE_AGE,
    NEGATIVE_PAUSE,
    ASKS_ITSELF, /* calls the depot about the key that it is called for */
    ASKS_FORKED, /* the same in a fiber that it forks */
    WRITES_ITSELF,
    LEAVES_SCOPE, /* open */
    SETS_LOCAL,   /* a local value of the fiber, which is the depot's */
    CLOSES        /* the depot */
} trick;

typedef struct origin {
    trick trick;
    hf_depot *depot;
    hf_status inside; /* of the call that the trick makes */
    char sentence[256];
    int fetches, pushes;
    hf_span takes; /* a fetch */
    bool conflicts;
    hf_status apply_status, merge_status;
    bool apply_gives_nothing, merge_is_large, apply_calls;
} origin;

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static void note(origin *o, hf_status status)
{
    o->inside = status;
    (void)snprintf(o->sentence, sizeof o->sentence, "%s", status != HF_OK ? hf_error_text() : "");
}

static hf_status ask_in_fork(void *arg)
{
    origin *o = arg;
    hf_value *value = NULL;
    note(o, hf_depot_get(o->depot, key_of("A"), &value, .fresh = HF_FRESH_NOW));
    hf_value_unref(value);
    return HF_OK;
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)request;
    o->fetches++;
    if (o->takes.ns > 0) {
        HF_TRY(hf_sleep(o->takes));
    }
    switch (o->trick) {
    case NOTHING:
        return HF_OK;
    case NOT_MODIFIED:
        return hf_reply_not_modified(reply);
    case LONG_ETAG: {
        char etag[2049];
        memset(etag, 'e', 2048);
        etag[2048] = '\0';
        HF_TRY(hf_reply_etag(reply, etag));
        break;
    }
    case LARGE: {
        static char large[1001];
        return hf_reply_value(reply, large, sizeof large);
    }
    case NEGATIVE_AGE:
        HF_TRY(hf_reply_max_age(reply, hf_seconds(-7)));
        break;
    case NEGATIVE_PAUSE:
        return hf_reply_fail(reply, HF_REPLY_ORIGIN, .retry_after = hf_seconds(-7));
    case ASKS_ITSELF:
        (void)ask_in_fork(o);
        break;
    case ASKS_FORKED: {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, ask_in_fork, o));
        HF_TRY(hf_join(scope));
        break;
    }
    case WRITES_ITSELF:
        note(o, hf_depot_put(o->depot, key_of("A"), "mine", 4));
        break;
    case LEAVES_SCOPE: {
        hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "left"));
        break;
    }
    case SETS_LOCAL: {
        static const hf_local WORD = {"word"};
        HF_IGNORE(hf_local_set(&WORD, o)); /* threads of a pool are refused */
        break;
    }
    case CLOSES:
        note(o, hf_depot_close(o->depot));
        break;
    case FINE:
        break;
    }
    return hf_reply_value(reply, "v", 1);
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)request;
    o->pushes++;
    if (o->conflicts) {
        HF_TRY(hf_reply_value(reply, "theirs", 6));
        return HF_ERR_CONFLICT;
    }
    return HF_OK;
}

static hf_status apply(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    origin *o = state;
    (void)value;
    if (o->apply_calls) {
        note(o, hf_depot_put(o->depot, key_of("B"), "from apply", 10));
        if (o->inside == HF_ERR_MISUSE) {
            note(o, hf_depot_close(o->depot));
        }
    }
    if (o->apply_status != HF_OK) {
        return hf_raise(o->apply_status, "the patch does not fit");
    }
    return o->apply_gives_nothing ? HF_OK : hf_value_copy(patch, len, ret_value);
}

static hf_status merge(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                       hf_value **ret_value)
{
    origin *o = state;
    (void)base;
    (void)theirs;
    static char large[1001];
    if (o->merge_status != HF_OK) {
        return hf_raise(o->merge_status, "these two cannot be merged");
    }
    return o->merge_is_large ? hf_value_copy(large, sizeof large, ret_value)
                             : hf_value_copy(hf_value_data(mine), hf_value_len(mine), ret_value);
}

#define REFUSED(call, expected, words)                                                                 \
    do {                                                                                               \
        hf_status got_ = (call);                                                                       \
        HF_CHECK_SAY(got_ == (expected), "%s: %s", #call, hf_status_name(got_));                       \
        HF_CHECK_SAY(strstr(hf_error_text(), (words)) != NULL, "%s says: %s", #call, hf_error_text()); \
    } while (0)

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .push = push, .apply = apply, .merge = merge, .state = o,
                         .value_max = 1000, .retries = HF_OFF, .negative_ttl = HF_SPAN_OFF));
    o->depot = *ret_depot;
    return HF_OK;
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static hf_status check_arguments(void *arg)
{
    (void)arg;
    static char long_id[1001];
    static char large[1001];
    char long_name[102];
    origin o = {0};
    hf_value *value = NULL;
    hf_watcher *watcher = NULL;
    hf_depot *other = NULL;
    memset(long_name, 'n', 101);
    long_name[101] = '\0';
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    const struct {
        hf_depot_key key;
        const char *sentence;
    } KEYS[] = {
        {hf_depot_key_of_bytes("acme", "user", "", 0), "the id of a key has 0 bytes: it must have 1 to 1000"},
        {hf_depot_key_of_bytes("acme", "user", NULL, 5), "the id of a key has 0 bytes"},
        {hf_depot_key_of_bytes("acme", "user", long_id, 1001), "the id of a key has 1001 bytes"},
        {hf_depot_key_of("\0cme", "user", "1"), "the namespace of a key has 0 bytes"}, /* a NUL ends it */
        {hf_depot_key_of(NULL, "user", "1"), "the namespace of a key has 0 bytes"},
        {hf_depot_key_of(long_name, "user", "1"), "the namespace of a key has 101 bytes"},
        {hf_depot_key_of("acme", "", "1"), "the type of a key has 0 bytes"},
        {hf_depot_key_of("acme", long_name, "1"), "the type of a key has 101 bytes"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(KEYS); i++) {
        hf_depot_key key = KEYS[i].key;
        REFUSED(hf_depot_get(depot, key, &value), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_prefetch(depot, key), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_put(depot, key, "x", 1), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_patch(depot, key, "x", 1), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_delete(depot, key), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_invalidate(depot, key), HF_ERR_INVALID, KEYS[i].sentence);
        REFUSED(hf_depot_watch(depot, key, &watcher), HF_ERR_INVALID, KEYS[i].sentence);
    }
    REFUSED(hf_depot_put(depot, key_of("A"), large, sizeof large), HF_ERR_TOO_BIG, "a value has 1001 bytes");
    REFUSED(hf_depot_patch(depot, key_of("A"), large, sizeof large), HF_ERR_TOO_BIG, "a value has 1001 bytes");
    REFUSED(hf_depot_get(depot, key_of("A"), &value, .within = hf_seconds(-7)), HF_ERR_INVALID, ".within is negative");
    o.takes = hf_seconds(1); /* a timeout that has passed is over at once, as everywhere */
    REFUSED(hf_depot_get(depot, key_of("A"), &value, .timeout = hf_seconds(-7)), HF_ERR_TIMEOUT, "hf_depot_get");
    REFUSED(hf_depot_watch(depot, key_of("A"), &watcher, .refresh = hf_seconds(-7)), HF_ERR_INVALID, "negative");
    REFUSED(hf_depot_open("other", &other, .ttl = hf_seconds(-7)), HF_ERR_INVALID, ".ttl is negative");
    REFUSED(hf_depot_open("other", &other, .keep = hf_seconds(-7)), HF_ERR_INVALID, ".keep is negative");
    REFUSED(hf_depot_open("other", &other, .stale_max = hf_seconds(-7)), HF_ERR_INVALID, ".stale_max is negative");
    REFUSED(hf_depot_open("other", &other, .coalesce = hf_seconds(-7)), HF_ERR_INVALID, ".coalesce is negative");
    HF_CHECK(value == NULL && watcher == NULL && other == NULL && o.pushes == 0);
    /* No .push, no .apply. */
    HF_AUTO(hf_depot_close) hf_depot *local = NULL;
    HF_TRY(hf_depot_open("local", &local));
    REFUSED(hf_depot_put(local, key_of("A"), "x", 1), HF_ERR_MISUSE, "depot 'local' has no .push");
    HF_AUTO(hf_depot_close) hf_depot *plain = NULL;
    HF_TRY(hf_depot_open("plain", &plain, .push = push, .state = &o));
    REFUSED(hf_depot_patch(plain, key_of("A"), "x", 1), HF_ERR_MISUSE, "depot 'plain' has no .apply");
    REFUSED(hf_depot_put(plain, key_of("A"), "x", 1, .on_conflict = HF_CONFLICT_MERGE), HF_ERR_MISUSE, ".merge");
    return HF_OK;
}

static void arguments_that_are_wrong_get_a_status_and_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 1, check_arguments, NULL, NULL), HF_OK);
}

/* ---- What the origin does ---------------------------------------------------------------------------------------- */

static const struct {
    trick trick;
    hf_status status; /* of the get */
    const char *sentence;
    hf_status inside; /* of the call inside the fetcher */
    const char *inside_sentence;
} TRICKS[] = {
    {NOTHING, HF_ERR_INVALID, "returned HF_OK without a value", HF_OK, ""},
    {NOT_MODIFIED, HF_ERR_INVALID, "says 'not modified', but was not asked with an etag", HF_OK, ""},
    {LONG_ETAG, HF_ERR_INVALID, "hf_reply_etag needs a text of at most 1024 bytes", HF_OK, ""},
    {LARGE, HF_ERR_TOO_BIG, "a value has 1001 bytes: the depot takes 1000", HF_OK, ""},
    {NEGATIVE_AGE, HF_ERR_INVALID, "hf_reply_max_age was given a negative span", HF_OK, ""},
    {NEGATIVE_PAUSE, HF_ERR_INVALID, "no negative span", HF_OK, ""},
    {ASKS_ITSELF, HF_OK, "", HF_ERR_MISUSE,
     "hf_depot_get was called by the fetcher, subscriber or pusher of depot 'users' about"},
    {ASKS_FORKED, HF_OK, "", HF_ERR_MISUSE,
     "hf_depot_get was called by the fetcher, subscriber or pusher of depot 'users' about"},
    {WRITES_ITSELF, HF_OK, "", HF_ERR_MISUSE, "hf_depot_put was called by the fetcher, subscriber or pusher"},
    {LEAVES_SCOPE, HF_ERR_MISUSE, "returned with a scope still open", HF_OK, ""},
    {SETS_LOCAL, HF_OK, "", HF_OK, ""},
    {CLOSES, HF_OK, "", HF_ERR_MISUSE, "must be closed by the fiber or thread that opened it"},
};

static hf_status check_tricks(void *arg)
{
    hf_dispatcher *pool = arg;
    for (size_t i = 0; i < HF_COUNT_OF(TRICKS); i++) {
        origin o = {.trick = TRICKS[i].trick};
        hf_value *value = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(
            hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .value_max = 1000, .on = pool));
        o.depot = depot;
        int64_t before = hf_now(NULL).ns;
        hf_status status = hf_depot_get(depot, key_of("A"), &value);
        HF_CHECK_SAY(status == TRICKS[i].status, "row %zu: %s", i, hf_status_name(status));
        HF_CHECK_SAY(status == HF_OK || strstr(hf_error_text(), TRICKS[i].sentence) != NULL, "row %zu says: %s", i,
                     hf_error_text());
        HF_CHECK_SAY((value != NULL) == (status == HF_OK), "row %zu has a value", i);
        HF_CHECK_SAY(o.inside == TRICKS[i].inside && strstr(o.sentence, TRICKS[i].inside_sentence) != NULL,
                     "row %zu inside: %s", i, o.sentence);
        HF_CHECK_SAY(o.fetches == 1, "row %zu: %d fetches", i, o.fetches); /* no such failure is tried again */
        HF_CHECK_SAY(pool != NULL || hf_now(NULL).ns == before, "row %zu waits", i); /* no deadlock, no timeout */
        hf_value_unref(value);
        value = NULL;
        /* A wrong answer leaves nothing behind. */
        o.trick = FINE;
        HF_CHECK_SAY(hf_depot_get(depot, key_of("B"), &value, .fresh = HF_FRESH_NOW) == HF_OK, "row %zu then", i);
        hf_value_unref(value);
        value = NULL;
        hf_status local = hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_LOCAL);
        HF_CHECK_SAY(local == (status == HF_OK ? HF_OK : HF_ERR_NOT_FOUND), "row %zu kept: %s", i,
                     hf_status_name(local));
        hf_value_unref(value);
    }
    return HF_OK;
}

static void origins_that_answer_wrongly_are_refused_and_called_once(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(2, 1, check_tricks, NULL, NULL), HF_OK);
}

static hf_status check_tricks_on_pool(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool));
    return check_tricks(pool);
}

static void callbacks_on_a_pool_are_refused_in_the_same_way(void **state)
{
    (void)state;
    assert_int_equal(hf_run(check_tricks_on_pool, NULL), HF_OK);
}

/* ---- Patches and merges ------------------------------------------------------------------------------------------ */

typedef struct pending_look {
    int count;
    hf_status status;
    bool is_dead;
    char message[256];
} pending_look;

static bool look_at_pending(void *arg, const hf_depot_pending_write *write)
{
    pending_look *look = arg;
    look->count++;
    look->status = write->status;
    look->is_dead = write->is_dead;
    (void)snprintf(look->message, sizeof look->message, "%s", write->message);
    return true;
}

static hf_status is_local(hf_depot *depot, const char *id, const char *text)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &value, .fresh = HF_FRESH_LOCAL);
    if (status == HF_OK && (text == NULL || hf_value_len(value) != strlen(text) ||
                            memcmp(hf_value_data(value), text, strlen(text)) != 0)) {
        status = HF_ERR_CONFLICT; /* it has another value */
    }
    hf_value_unref(value);
    return status;
}

static hf_status check_patches(void *arg)
{
    (void)arg;
    origin o = {.apply_status = HF_ERR_INVALID};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    REFUSED(hf_depot_patch(depot, key_of("A"), "p", 1), HF_ERR_INVALID, "the patch cannot be applied");
    o.apply_status = HF_OK;
    o.apply_gives_nothing = true;
    REFUSED(hf_depot_patch(depot, key_of("A"), "p", 1), HF_ERR_INVALID, "the patch cannot be applied");
    HF_CHECK(is_local(depot, "A", NULL) == HF_ERR_NOT_FOUND && o.pushes == 0);
    /* It calls the depot that has called it: refused, and the same for closing it. */
    o.apply_gives_nothing = false;
    o.apply_calls = true;
    HF_TRY(hf_depot_patch(depot, key_of("A"), "p", 1));
    HF_CHECK_SAY(o.inside == HF_ERR_MISUSE && strstr(o.sentence, "a function that it has called") != NULL, "%s",
                 o.sentence);
    o.apply_calls = false;
    HF_CHECK(is_local(depot, "A", "p") == HF_OK);
    /* It cannot say what the origin has after an accepted patch: that is not taken for a delete. */
    o.apply_gives_nothing = true;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.pushes == 1 && is_local(depot, "A", NULL) == HF_ERR_NOT_FOUND);
    hf_value *value = NULL;
    HF_CHECK(hf_depot_get(depot, key_of("A"), &value) == HF_OK && o.fetches == 1); /* unusable: it is asked */
    hf_value_unref(value);
    return HF_OK;
}

static hf_status check_merges(void *arg)
{
    (void)arg;
    static const struct {
        hf_status fails;
        bool is_large;
        hf_status status;
        const char *sentence;
    } ROWS[] = {{HF_ERR_FAILED, false, HF_ERR_FAILED, "the merge of two writes failed"},
                {HF_OK, true, HF_ERR_TOO_BIG, "the merge of two writes failed"}};
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        origin o = {.conflicts = true, .merge_status = ROWS[i].fails, .merge_is_large = ROWS[i].is_large};
        pending_look look = {0};
        hf_depot_write *write = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        HF_TRY(hf_depot_put(depot, key_of("A"), "mine", 4, .on_conflict = HF_CONFLICT_MERGE, .ret_write = &write));
        REFUSED(hf_depot_write_wait(write, .timeout = hf_seconds(60)), ROWS[i].status, ROWS[i].sentence);
        hf_depot_write_free(write);
        HF_CHECK(o.pushes == 1 && is_local(depot, "A", "mine") != HF_OK); /* rolled back */
        HF_TRY(hf_depot_pending(depot, look_at_pending, &look));
        HF_CHECK_SAY(look.count == 1 && look.is_dead && look.status == ROWS[i].status &&
                         strstr(look.message, ROWS[i].sentence) != NULL,
                     "row %zu: %s", i, look.message);
    }
    return HF_OK;
}

static void patches_and_merges_that_fail_leave_the_value_as_it_was(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(3, 1, check_patches, NULL, NULL), HF_OK);
    assert_int_equal(hf_sim_run(4, 1, check_merges, NULL, NULL), HF_OK);
}

/* ---- Rows that this program cannot apply ------------------------------------------------------------------------- */

typedef struct left_rows {
    hf_store *inner;
} left_rows;

static hf_status leave_rows(void *arg)
{
    left_rows *left = arg;
    origin o = {0};
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}, .inner = left->inner};
    hf_depot_options options = {.size = sizeof options,
                                .fetch = fetch,
                                .push = push,
                                .apply = apply,
                                .merge = merge,
                                .state = &o,
                                .coalesce = HF_SPAN_OFF};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("first", &depot, &options, &store.base));
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1));
        HF_TRY(hf_depot_patch(depot, key_of("A"), "patched", 7));
        HF_TRY(hf_depot_put(depot, key_of("B"), "b", 1, .on_conflict = HF_CONFLICT_MERGE));
    }
    /* Another program, which has neither .apply nor .merge. */
    o.conflicts = true;
    hf_depot_options without = {.size = sizeof without, .fetch = fetch, .push = push, .state = &o};
    pending_look look = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open_in("second", &depot, &without, &store.base));
    hf_status status = is_local(depot, "A", "a"); /* the patch is not seen ... */
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_CONFLICT, "%s", hf_status_name(status));
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(o.pushes >= 3); /* ... but sent */
    HF_TRY(hf_depot_pending(depot, look_at_pending, &look));
    HF_CHECK_SAY(look.count == 1 && look.is_dead && look.status == HF_ERR_MISUSE, "%d rows, %s", look.count,
                 look.message);
    return HF_OK;
}

static void rows_that_this_program_cannot_apply_are_sent_or_set_aside(void **state)
{
    (void)state;
    left_rows left = {0};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &left.inner), HF_OK);
    assert_int_equal(hf_sim_run(5, 1, leave_rows, &left, NULL), HF_OK);
    hf_store_close(left.inner);
}

/* ---- Clocks ------------------------------------------------------------------------------------------------------ */

static hf_env_ops moved_ops;
static const hf_env_ops *true_ops;
static int64_t moved_by;

static hf_time moved_wall_now(hf_env *env)
{
    return (hf_time){true_ops->wall_now(env).ns + moved_by};
}

static hf_status check_clock(void *arg)
{
    (void)arg;
    origin o = {0};
    hf_depot_info info;
    hf_value *value = NULL;
    hf_runtime *rt = hf_runtime_current();
    true_ops = rt->env->ops;
    moved_ops = *true_ops;
    moved_ops.wall_now = moved_wall_now;
    moved_by = 0;
    rt->env->ops = &moved_ops;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .stale_max = hf_hours(2)));
    HF_TRY(hf_depot_get(depot, key_of("A"), &value));
    hf_value_unref(value);
    /* An hour back: the value is from the future. It is old, however old it is. */
    moved_by = -hf_hours(1).ns;
    HF_TRY(hf_depot_get(depot, key_of("A"), &value, .ret_info = &info));
    hf_value_unref(value);
    HF_CHECK(info.is_stale && info.age.ns >= 0);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.fetches == 2); /* refreshed, and so stamped by the new clock */
    HF_TRY(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_WITHIN, .within = hf_minutes(1)));
    hf_value_unref(value);
    HF_CHECK(o.fetches == 2);
    moved_by = -hf_hours(2).ns;
    HF_TRY(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_WITHIN, .within = hf_minutes(1)));
    hf_value_unref(value);
    HF_CHECK_SAY(o.fetches == 3, "a value of unknown age passed for one within a minute"); /* DP2 */
    /* A year ahead: everything is old, and is asked for again; nothing that waits is lost. */
    moved_by = hf_hours(24 * 365).ns;
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, key_of("B"), "mine", 4));
    HF_CHECK(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_OR_STALE) == HF_ERR_UNAVAILABLE);
    HF_CHECK(is_local(depot, "B", "mine") == HF_OK);
    moved_by = 0;
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.pushes == 1);
    HF_TRY(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_NOW));
    hf_value_unref(value);
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    rt->env->ops = true_ops;
    return HF_OK;
}

static void clocks_that_are_set_make_values_old_never_young(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(6, 1, check_clock, NULL, NULL), HF_OK);
}

/* ---- A disk that is full ----------------------------------------------------------------------------------------- */

static bool disk_is_full;

static hf_status full_execute(hf_store *store, hf_store_request *request)
{
    if (disk_is_full && request->verb == HF_STORE_COMMIT) {
        return request->status = hf_fail(&request->op, HF_ERR_FULL, "no space is left on the disk");
    }
    return lent_execute(store, request);
}

static const hf_store_ops FULL = {
    .name = "full", .execute = full_execute, .last_commit = lent_last, .close = lent_close};

static hf_status check_full(void *arg)
{
    origin o = {0};
    hf_value *value = NULL;
    hf_depot_counts counts;
    lent store = {.base = {.ops = &FULL, .tables = &hf_depot_tables}, .inner = arg};
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .push = push, .state = &o};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, key_of("W"), "before", 6));
    HF_TRY(hf_depot_online(depot, true));
    disk_is_full = true;
    HF_TRY(hf_depot_get(depot, key_of("A"), &value)); /* from the origin, kept in memory */
    hf_value_unref(value);
    HF_CHECK(is_local(depot, "A", "v") == HF_OK);
    REFUSED(hf_depot_put(depot, key_of("A"), "mine", 4), HF_ERR_FULL, "no space is left");
    REFUSED(hf_depot_invalidate(depot, key_of("A")), HF_ERR_FULL, "no space is left");
    REFUSED(hf_depot_invalidate_all(depot), HF_ERR_FULL, "no space is left");
    HF_CHECK(is_local(depot, "A", "v") == HF_OK && is_local(depot, "W", "before") == HF_OK);
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.not_kept >= 1);
    disk_is_full = false;
    HF_TRY(hf_depot_put(depot, key_of("A"), "mine", 4));
    HF_CHECK(is_local(depot, "A", "mine") == HF_OK);
    return HF_OK;
}

static void a_full_disk_serves_from_memory_and_refuses_writes(void **state)
{
    (void)state;
    hf_store *inner = NULL;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &inner), HF_OK);
    assert_int_equal(hf_sim_run(7, 1, check_full, inner, NULL), HF_OK);
    hf_store_close(inner);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static char folder[128];

static void path_of(char *ret_path, size_t room, const char *name)
{
    (void)snprintf(ret_path, room, "%s/%s", folder, name);
}

/* Fills the file with a value, and closes it. */
static hf_status fill_file(void *arg)
{
    origin o = {0};
    hf_value *value = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .file = arg));
    HF_TRY(hf_depot_get(depot, key_of("A"), &value));
    hf_value_unref(value);
    return HF_OK;
}

static hf_status open_engine(void *arg)
{
    hf_service *service = NULL;
    HF_TRY(hf_open(arg, &service));
    return hf_close(service);
}

typedef struct damage {
    const char *name;
    hf_status status;
    const char *sentence;
} damage;

static const damage DAMAGES[] = {
    {"engine", HF_ERR_INVALID, "is an engine's file"},
    {"newer", HF_ERR_UNSUPPORTED, "newer"},
    {"cut", HF_ERR_INVALID, ""},
    {"zeroed", HF_ERR_INVALID, ""},
    {"text", HF_ERR_INVALID, ""},
    {"folder", HF_ERR_INVALID, ""},
    {"none/there", HF_ERR_NOT_FOUND, "there is no such folder"},
};

static void change_file(const char *path, const char *how)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat about;
    static const char ZEROS[4096];
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    if (strcmp(how, "newer") == 0) {
        assert_int_equal(pwrite(fd, "\0\0\3\347", 4, 60), 4); /* user_version 999 */
    } else if (strcmp(how, "cut") == 0) {
        assert_int_equal(ftruncate(fd, about.st_size / 2 + 1), 0);
    } else if (strcmp(how, "zeroed") == 0) {
        for (off_t at = 0; at < about.st_size; at += (off_t)sizeof ZEROS) {
            assert_int_equal(pwrite(fd, ZEROS, sizeof ZEROS, at), sizeof ZEROS);
        }
    } else if (strcmp(how, "text") == 0) {
        assert_int_equal(pwrite(fd, "This was a depot once.", 22, 0), 22);
    }
    assert_int_equal(close(fd), 0);
}

static hf_status open_damaged(void *arg)
{
    char path[256];
    char file[300];
    const damage *row = arg;
    origin o = {0};
    hf_depot *depot = NULL;
    path_of(path, sizeof path, row->name);
    (void)snprintf(file, sizeof file, "sqlite:%s", path);
    hf_status status = hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .file = file);
    HF_CHECK_SAY(status == row->status, "%s: %s, %s", row->name, hf_status_name(status), hf_error_text());
    HF_CHECK_SAY(strstr(hf_error_text(), row->sentence) != NULL && strlen(hf_error_text()) > 20, "%s says: %s",
                 row->name, hf_error_text());
    HF_CHECK(depot == NULL);
    return depot != NULL ? hf_depot_close(depot) : HF_OK;
}

static void files_that_are_no_depots_are_refused_and_left_alone(void **state)
{
    (void)state;
    char path[256];
    char file[300];
    (void)snprintf(folder, sizeof folder, "/tmp/hf-bad-%d", (int)getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < HF_COUNT_OF(DAMAGES); i++) {
        path_of(path, sizeof path, DAMAGES[i].name);
        (void)snprintf(file, sizeof file, "sqlite:%s", path);
        print_message("%s\n", DAMAGES[i].name);
        if (strcmp(DAMAGES[i].name, "engine") == 0) {
            assert_int_equal(hf_run(open_engine, file), HF_OK);
        } else if (strcmp(DAMAGES[i].name, "folder") == 0) {
            assert_int_equal(mkdir(path, 0700), 0);
        } else if (strchr(DAMAGES[i].name, '/') == NULL) {
            assert_int_equal(hf_run(fill_file, file), HF_OK);
            change_file(path, DAMAGES[i].name);
        }
        struct stat before = {0};
        struct stat after = {0};
        (void)stat(path, &before);
        assert_int_equal(hf_run(open_damaged, (void *)(uintptr_t)&DAMAGES[i]), HF_OK);
        (void)stat(path, &after);
        assert_int_equal(before.st_size, after.st_size);
        assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    }
    /* And the other way round. */
    path_of(path, sizeof path, "depot");
    (void)snprintf(file, sizeof file, "sqlite:%s", path);
    assert_int_equal(hf_run(fill_file, file), HF_OK);
    assert_int_equal(hf_run(open_engine, file), HF_ERR_INVALID);
}

static hf_status check_owned(void *arg)
{
    origin o = {0};
    hf_depot *second = NULL;
    HF_AUTO(hf_depot_close) hf_depot *first = NULL;
    HF_TRY(hf_depot_open("first", &first, .fetch = fetch, .state = &o, .file = arg));
    char sentence[64];
    (void)snprintf(sentence, sizeof sentence, "is open in process %d", (int)getpid());
    REFUSED(hf_depot_open("second", &second, .fetch = fetch, .state = &o, .file = arg), HF_ERR_CONFLICT, sentence);
    REFUSED(hf_depot_open("second", &second, .file = arg), HF_ERR_CONFLICT, "holdfast depot stats");
    HF_CHECK(second == NULL);
    return HF_OK;
}

/* Refused if the user may not write it; then nothing is served from it either. */
static hf_status open_read_only(void *arg)
{
    hf_depot *depot = NULL;
    hf_status status = hf_depot_open("users", &depot, .file = arg);
    HF_CHECK_SAY(status == HF_ERR_DENIED, "%s: %s", hf_status_name(status), hf_error_text());
    return depot != NULL ? hf_depot_close(depot) : HF_OK;
}

static void files_that_are_owned_or_read_only_are_refused(void **state)
{
    (void)state;
    char path[256];
    char file[300];
    path_of(path, sizeof path, "owned");
    (void)snprintf(file, sizeof file, "sqlite:%s", path);
    assert_int_equal(hf_run(check_owned, file), HF_OK);
    assert_int_equal(hf_run(fill_file, file), HF_OK); /* and is free again */
    bool is_root = geteuid() == 0;
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(is_root ? seteuid(65534) : 0, 0);
    assert_int_equal(hf_run(open_read_only, file), HF_OK);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    char command[200];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* A record in the middle of the file: it counts as none, the others are served. */
static hf_status check_damaged_record(void *arg)
{
    hf_store *inner = arg;
    origin o = {0};
    hf_value *value = NULL;
    hf_depot_counts counts;
    hf_depot_news news;
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}, .inner = inner};
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .push = push, .state = &o};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
        HF_TRY(hf_depot_get(depot, key_of("A"), &value));
        hf_value_unref(value);
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_put(depot, key_of("W"), "mine", 4));
    }
    const char entry[] = "acme\0user\0A";
    hf_write writes[] = {
        {.table = HF_TABLE_ENTRY,
         .kind = HF_WRITE_PUT,
         .key = {.text = hf_str_of_len(entry, sizeof entry - 1)},
         .value = HF_STR("this is not a record at all")},
        {.table = HF_TABLE_PENDING, .kind = HF_WRITE_PUT, .key = {.a = 1}, .value = HF_STR("nor is this one here")},
    };
    hf_store_request request = {
        .verb = HF_STORE_COMMIT, .commit = inner->ops->last_commit(inner) + 1, .writes = writes, .write_count = 2};
    hf_store_execute(inner, &request);
    HF_CHECK(request.status == HF_OK);
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
    HF_AUTO(hf_collector_close) hf_collector *events = NULL;
    HF_TRY(hf_depot_events(depot, &events));
    int fetches = o.fetches;
    HF_CHECK(is_local(depot, "A", NULL) == HF_ERR_NOT_FOUND); /* DP9: whole or none */
    HF_TRY(hf_collector_next(events, &news));
    HF_CHECK(news.kind == HF_NEWS_DAMAGED && news.id_len == 1 && news.id[0] == 'A');
    HF_TRY(hf_depot_get(depot, key_of("A"), &value));
    hf_value_unref(value);
    HF_CHECK(o.fetches == fetches + 1);
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(o.pushes == 0 && is_local(depot, "W", "mine") != HF_OK); /* set aside: neither sent nor shown */
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.damaged == 3); /* the entry was read twice */
    REFUSED(hf_depot_retry(depot, 1), HF_ERR_NOT_FOUND, "there is no write 1");
    HF_TRY(hf_depot_drop(depot, 1));
    REFUSED(hf_depot_drop(depot, 1), HF_ERR_NOT_FOUND, "there is no write 1");
    return HF_OK;
}

static void records_that_are_damaged_count_as_none(void **state)
{
    (void)state;
    hf_store *inner = NULL;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &inner), HF_OK);
    assert_int_equal(hf_sim_run(8, 1, check_damaged_record, inner, NULL), HF_OK);
    hf_store_close(inner);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(arguments_that_are_wrong_get_a_status_and_a_sentence),
    cmocka_unit_test(origins_that_answer_wrongly_are_refused_and_called_once),
    cmocka_unit_test(callbacks_on_a_pool_are_refused_in_the_same_way),
    cmocka_unit_test(patches_and_merges_that_fail_leave_the_value_as_it_was),
    cmocka_unit_test(rows_that_this_program_cannot_apply_are_sent_or_set_aside),
    cmocka_unit_test(clocks_that_are_set_make_values_old_never_young),
    cmocka_unit_test(a_full_disk_serves_from_memory_and_refuses_writes),
    cmocka_unit_test(files_that_are_no_depots_are_refused_and_left_alone),
    cmocka_unit_test(files_that_are_owned_or_read_only_are_refused),
    cmocka_unit_test(records_that_are_damaged_count_as_none),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot_bad", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
