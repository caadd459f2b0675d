/* The depot against an obvious twin, on virtual time.
 *
 * An origin with four keys, up to four more that are created, and two lists of them, which may be in each other, answers slowly, fails
 * with each class, is down for a while, and is changed by others. What it says about a list may bring values of members with it.
 * Actors get, read lists, watch, write and invalidate; the depot goes offline, is closed under their feet and opened again on the
 * same store; some depots subscribe to their keys instead of fetching them. Every value is a row of tokens, and no two writes have
 * the same one, so a value tells where it came from. The twin is the origin's own book:
 *
 *     proof    an answer of the origin (a fetch, or what a write was answered with): the value, when it was asked for, when it answered
 *     push     a write as it arrived: its id, what it carried, what it was answered
 *     op       a write or an invalidation as its caller saw it
 *
 * A get is right if a proof supports what it returned (DP2, DP3), a write if the book has it (DP6). The depot's own
 * state is looked at on its driver (DP5, DP8).
 *
 * In a second case the store is a file on a simulated disk whose power goes in the middle of some change (DP9). From
 * then on nothing can be written, so nothing is acknowledged. The depot is opened again on what is left of the disk. */
#include "support/hooked.h"
#include "support/lent.h"
#include "support/support.h"
#include "support/vfs.h"

#include "base/rng.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/outbox.h"
#include "depot/window.h"
#include "store/mem.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS = 4,    /* that are there from the beginning */
    CREATED = 4, /* that may be made */
    KEYS_ALL = KEYS + CREATED,
    LISTS = 2,
    ALL = KEYS_ALL + LISTS,
    MEMBERS_MAX = 6, /* of a list */
    ACTORS_MAX = 5,
    TOKEN_LEN = 4,
    VALUE_LEN_MAX = 80, /* a patch of a longer value begins anew */
    PROOFS_MAX = 4000,
    PUSHES_MAX = 2000,
    OPS_MAX = 1000,
    FAILURES_MAX = 2000,
};
static const int64_t SECOND = 1000000000;
static const int64_t MILLI = 1000000;

typedef struct text {
    size_t len;
    char bytes[VALUE_LEN_MAX + TOKEN_LEN + 1];
} text;

typedef struct proof {
    int key;
    bool is_absent;
    bool is_push; /* the answer to a write */
    text value;
    uint64_t start, end; /* ticks; UINT64_MAX = a subscriber is just handing it over */
    int64_t at;
} proof;

typedef enum answer { ANSWER_NONE, ANSWER_OK, ANSWER_CONFLICT, ANSWER_RETRY, ANSWER_REFUSED, ANSWER_CANCELED } answer;

typedef struct pushed {
    int key;
    char id[HF_WRITE_ID_LEN];
    text data;
    hf_write_verb verb;
    uint64_t tick;
    int64_t at;
    answer answered;
    uint64_t accepted; /* tick; 0 = not */
    int64_t told_at;   /* the depot heard of it, and could keep it; 0 = not */
    int64_t answered_at;
} pushed;

typedef enum op_kind { OP_WRITE, OP_INVALIDATE, OP_BY_HAND } op_kind;

typedef struct op {
    op_kind kind;
    int key;   /* -1 = all of the namespace ... */
    int space; /* ... -1 = of all */
    bool is_hard;
    hf_write_verb verb;
    bool is_origin_first;
    char token[TOKEN_LEN + 1];
    uint64_t start, end; /* ticks; end 0 = under way */
    int64_t made_at;
    int64_t ended_at;
    hf_status status;
    bool is_by_hand; /* dropped, or retried */
} op;

typedef struct failed {
    int key;
    hf_status status;
    uint64_t start, end;
    int64_t at;
} failed;

typedef struct actor {
    hf_rng rng;
    int number;
} actor;

/* A key that was made by hf_depot_create. */
typedef struct created {
    char old[HF_PROVISIONAL_LEN + 1];  /* "" = not known yet */
    char name[HF_PROVISIONAL_LEN + 1]; /* at the origin; "" = it was not accepted yet */
    bool is_known;                     /* the call has returned the old one */
    bool is_final;                     /* the depot has told the new one ... */
    int64_t final_at;                  /* ... at this moment */
} created;

static struct {
    uint64_t tick;
    hf_depot *depot;
    lent store;
    bool has_store;
    bool has_hooks;      /* it is reached by functions of the user */
    hf_vfs *disk;        /* the store is a file on it; NULL = in memory */
    uint64_t power_left; /* changes of the disk until the power goes; 0 = it stays */
    bool is_dark;        /* it has gone ... */
    int64_t dark_at;     /* ... at this time */
    bool is_closing;
    bool is_canceled; /* the scope of the actors and of the depot */
    bool is_last;     /* the origin is well, and nobody interferes */
    bool is_down;
    bool offline;          /* the depot was told so, or may have been (tell_online) */
    uint64_t offline_tick; /* of the last change */
    int telling;           /* calls under way that tell it whether it is online */
    unsigned told;         /* such calls that have begun so far */
    int64_t trouble_at;
    int64_t answered_at; /* the last attempt of all ended */
    text state[ALL];
    bool exists[ALL];
    text before[ALL];   /* what a replica that lags behind has: the value before the last delete */
    unsigned etag[ALL]; /* number of the state */
    created made[CREATED];
    int made_count;
    unsigned etag_next;
    unsigned token_next;
    proof proofs[PROOFS_MAX];
    int proof_count;
    pushed pushes[PUSHES_MAX];
    int push_count;
    op ops[OPS_MAX];
    int op_count;
    failed failures[FAILURES_MAX];
    int failure_count;
    int64_t fetching[ALL][8]; /* when an attempt that is under way began; 0 = none */
    int pushing[ALL];
    actor actors[ACTORS_MAX];
    hf_rng rng;                /* of the origin */
    bool subscribes;           /* .subscribe instead of .fetch */
    int64_t following[ALL][8]; /* when a subscription that has not said anything began; 0 = none, or it has */
    int64_t ttl, stale_max;
    uint64_t fetches, gets, writes, conflicts, watched, deaths, reopened, moved, lagged, batches, outages, lists,
        records, subscriptions;
} world;

/* What a change of the file fails with when there is no power. */
static bool is_dark(hf_status status)
{
    return world.is_dark && (status == HF_ERR_STORE || status == HF_ERR_IO);
}

static uint64_t tick(void)
{
    return ++world.tick;
}

static int64_t now(void)
{
    return hf_now(NULL).ns;
}

static bool chance(hf_rng *rng, int percent)
{
    return (int)hf_rng_below(rng, 100) < percent;
}

static const char *const SPACES[] = {"a", "b"};
static const char *const IDS[KEYS] = {"k0", "k1", "k2", "k3"};
static const char *const LIST_IDS[LISTS] = {"l0", "l1"};

static bool is_list(int key)
{
    return key >= KEYS_ALL;
}

static bool is_made(int key)
{
    return key >= KEYS && key < KEYS_ALL;
}

static int space_of(int key)
{
    return is_list(key) ? key - KEYS_ALL : key < KEYS ? key / 2 : 0;
}

/* One that was made has two names, as soon as the depot has told the second. */
static hf_depot_key key_of(int key)
{
    if (key < KEYS) {
        return hf_depot_key_of(SPACES[key / 2], "t", IDS[key]);
    }
    if (is_list(key)) {
        return hf_depot_key_of(SPACES[key - KEYS_ALL], "l", LIST_IDS[key - KEYS_ALL]);
    }
    const created *one = &world.made[key - KEYS];
    return hf_depot_key_of(SPACES[0], "t", one->is_final && world.tick % 2 == 0 ? one->name : one->old);
}

/* Any key that an actor may know. */
static int any_key(hf_rng *rng)
{
    int key = (int)hf_rng_below(rng, ALL);
    return !is_made(key) || world.made[key - KEYS].is_known ? key : key % KEYS;
}

/* The same, but not a list. */
static int any_item(hf_rng *rng)
{
    int key = any_key(rng);
    return is_list(key) ? key % KEYS : key;
}

static bool is_name(hf_depot_key key, const char *name)
{
    return key.id_len == strlen(name) && memcmp(key.id, name, key.id_len) == 0;
}

static int key_number(hf_depot_key key)
{
    const char *id = key.id;
    if (id[0] == 'k') {
        return id[1] - '0';
    }
    if (id[0] == 'l') {
        return KEYS_ALL + id[1] - '0';
    }
    for (int i = 0; i < CREATED; i++) {
        if (is_name(key, world.made[i].old) || is_name(key, world.made[i].name)) {
            return KEYS + i;
        }
    }
    return -1;
}

static void make_final(created *one)
{
    one->final_at = one->is_final ? one->final_at : now();
    one->is_final = true;
}

/* Whether the origin knows the key by this name. */
static bool is_known_name(int number, hf_depot_key key)
{
    return !is_made(number) || is_name(key, world.made[number - KEYS].name);
}

static text text_of(const void *data, size_t len)
{
    text made = {.len = len < sizeof made.bytes ? len : sizeof made.bytes - 1};
    if (made.len > 0) {
        memcpy(made.bytes, data, made.len);
    }
    made.bytes[made.len] = '\0';
    return made;
}

static text with_member(text list, int key)
{
    char token[TOKEN_LEN + 1];
    (void)snprintf(token, sizeof token, "m%03d", key);
    if (HF_CHECK(list.len + TOKEN_LEN < sizeof list.bytes)) {
        memcpy(list.bytes + list.len, token, TOKEN_LEN + 1);
        list.len += TOKEN_LEN;
    }
    return list;
}

static int member_of(const text *list, size_t index)
{
    return list->bytes[(index + 1) * TOKEN_LEN - 1] - '0';
}

/* A list as the keys that are in it. */
static text text_of_value(const hf_value *value)
{
    hf_window_cursor cursor;
    hf_window_item item;
    hf_str bytes = value != NULL ? hf_str_of_len(hf_value_data(value), hf_value_len(value)) : (hf_str){0};
    if (value == NULL || !hf_window_is_list(bytes) || !hf_window_begin(&cursor, bytes)) {
        return value != NULL ? text_of(bytes.data, bytes.len) : (text){0};
    }
    text list = {0};
    while (hf_window_next(&cursor, &item)) {
        hf_depot_key key;
        HF_CHECK(hf_depot_key_unpack(item.key, &key));
        list = with_member(list, key_number(key));
    }
    return list;
}

static bool is_same(const text *a, const text *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Whether the value has the token. */
static bool has(const text *value, const char *token)
{
    for (size_t i = 0; i + TOKEN_LEN <= value->len; i += TOKEN_LEN) {
        if (memcmp(value->bytes + i, token, TOKEN_LEN) == 0) {
            return true;
        }
    }
    return false;
}

static text joined(const text *value, const void *patch, size_t len)
{
    text made = value != NULL && value->len + len <= VALUE_LEN_MAX ? *value : (text){0};
    len = len < VALUE_LEN_MAX ? len : VALUE_LEN_MAX;
    memcpy(made.bytes + made.len, patch, len);
    made.len += len;
    made.bytes[made.len] = '\0';
    return made;
}

/* ---- The origin -------------------------------------------------------------------------------------------------- */

static void set_state(int key, const text *value)
{
    if (world.exists[key]) {
        world.before[key] = world.state[key];
    }
    world.exists[key] = value != NULL;
    world.state[key] = value != NULL ? *value : (text){0};
    world.etag[key] = ++world.etag_next;
}

static void prove(int key, bool exists, const text *value, uint64_t start, bool is_push)
{
    if (!HF_CHECK(world.proof_count < PROOFS_MAX)) {
        return;
    }
    world.proofs[world.proof_count++] = (proof){.key = key,
                                                .is_absent = !exists,
                                                .is_push = is_push,
                                                .value = *value,
                                                .start = start,
                                                .end = tick(),
                                                .at = now()};
}

static void note_failure(int key, hf_status status, uint64_t start)
{
    world.trouble_at = now();
    if (HF_CHECK(world.failure_count < FAILURES_MAX)) {
        world.failures[world.failure_count++] = (failed){key, status, start, tick(), now()};
    }
}

/* How long an answer takes. */
static hf_span delay(void)
{
    int what = (int)hf_rng_below(&world.rng, 100);
    int64_t ns = what < 30   ? 0
                 : what < 70 ? (int64_t)hf_rng_below(&world.rng, 300) * MILLI
                 : what < 95 ? (int64_t)hf_rng_below(&world.rng, 3000) * MILLI
                             : 12 * SECOND;
    return hf_nanoseconds(world.is_last ? ns % SECOND : ns);
}

static hf_reply_class any_class(bool is_push)
{
    int what = (int)hf_rng_below(&world.rng, 100);
    if (what < 70) {
        static const hf_reply_class RETRIED[] = {HF_REPLY_UNKNOWN, HF_REPLY_TIMEOUT, HF_REPLY_NETWORK, HF_REPLY_ORIGIN};
        return RETRIED[hf_rng_below(&world.rng, 4)];
    }
    static const hf_reply_class OTHERS[] = {HF_REPLY_TLS, HF_REPLY_DENIED, HF_REPLY_INVALID, HF_REPLY_NOT_FOUND};
    return OTHERS[hf_rng_below(&world.rng, is_push ? 4 : 3)];
}

static bool fails(void)
{
    return !world.is_last && (world.is_down || chance(&world.rng, 15));
}

static hf_status fail_with(hf_reply *reply, hf_reply_class why)
{
    if (chance(&world.rng, 20)) {
        return hf_reply_fail(reply, why, .retry_after = hf_milliseconds((int64_t)hf_rng_below(&world.rng, 5000)));
    }
    return hf_reply_fail(reply, why);
}

static bool may_lag(int key);

/* A key that the origin is being asked for. */
typedef struct question {
    int key;
    uint64_t start;
    int64_t at;
    bool reads_first, will_fail, exists;
    text value;
    unsigned etag;
    bool is_alone; /* in its call: else its holders may leave, and another fetch begin, while the call goes on */
    int place;     /* in world.fetching */
} question;

static void look_up(question *one)
{
    one->value = world.state[one->key];
    one->exists = world.exists[one->key];
    one->etag = world.etag[one->key];
}

static question question_of(const hf_fetch_request *request, bool is_alone)
{
    question one = {.key = key_number(request->key), .start = tick(), .at = now(), .is_alone = is_alone};
    if (!HF_CHECK_SAY(one.key >= 0, "a fetch of a key that nobody has made")) {
        one.key = 0;
    }
    /* one that began before and is being canceled may come in the same moment */
    HF_CHECK_SAY(!is_made(one.key) || !world.made[one.key - KEYS].is_final ||
                     world.made[one.key - KEYS].final_at == now() || is_known_name(one.key, request->key),
                 "depot-D7 key %d is fetched by its old name", one.key);
    one.reads_first = chance(&world.rng, 50);
    one.will_fail = fails();
    look_up(&one);
    world.fetches++;
    while (one.place < 7 && world.fetching[one.key][one.place] != 0) {
        one.place++;
    }
    world.fetching[one.key][one.place] = is_alone ? one.at : 0;
    return one;
}

static text any_list(hf_rng *rng)
{
    text list = {0};
    int count = (int)hf_rng_below(rng, MEMBERS_MAX + 1);
    for (int i = 0; i < count; i++) {
        list = with_member(list,
                           chance(rng, 15) ? KEYS_ALL + (int)hf_rng_below(rng, LISTS) : (int)hf_rng_below(rng, KEYS));
    }
    return list;
}

/* The origin says what is in a list, and sometimes what its members are just now. */
static hf_status reply_list(const question *one, hf_reply *reply)
{
    hf_depot_key keys[MEMBERS_MAX];
    size_t count = one->value.len / TOKEN_LEN;
    for (size_t i = 0; i < count; i++) {
        int member = member_of(&one->value, i);
        keys[i] = key_of(member);
        if (!world.subscribes && !is_list(member) && world.exists[member] && chance(&world.rng, 50)) {
            char name[16];
            (void)snprintf(name, sizeof name, "e%u", world.etag[member]);
            HF_TRY(hf_reply_add(reply, keys[i], world.state[member].bytes, world.state[member].len,
                                .etag = chance(&world.rng, 80) ? name : NULL));
            prove(member, true, &world.state[member], one->start, false);
            world.records++;
        }
    }
    return hf_reply_list(reply, keys, count);
}

/* The wait for the answer has ended with `status`. */
static hf_status answer_question(question *one, hf_status status, const hf_fetch_request *request, hf_reply *reply)
{
    int key = one->key;
    if (one->is_alone) {
        world.fetching[key][one->place] = 0;
    }
    world.answered_at = now();
    for (int i = 0; i < 8 && one->is_alone; i++) { /* one that was canceled ends in the same moment */
        HF_CHECK_SAY(world.fetching[key][i] == 0 || world.fetching[key][i] == now() || one->at == now(),
                     "DP1 two fetches of key %d at once", key);
    }
    if (status != HF_OK) {
        if (status != HF_ERR_CANCELED) {
            note_failure(key, status, one->start);
        } else if (now() - one->at >= hf_seconds(10).ns) {
            note_failure(key, HF_ERR_TIMEOUT, one->start); /* of the attempt */
        }
        return status;
    }
    if (!one->reads_first) {
        look_up(one);
    }
    if (one->will_fail) {
        status = fail_with(reply, any_class(false));
        note_failure(key, status, one->start);
        return status;
    }
    if (!is_known_name(key, request->key)) {
        one->exists = false;
    } else if (may_lag(key) && chance(&world.rng, 50)) { /* what it says is no proof of anything */
        world.lagged++;
        return hf_reply_value(reply, world.before[key].bytes, world.before[key].len);
    }
    prove(key, one->exists, &one->value, one->start, false);
    if (!one->exists) {
        return hf_reply_fail(reply, HF_REPLY_NOT_FOUND);
    }
    char name[16];
    (void)snprintf(name, sizeof name, "e%u", one->etag);
    if (request->etag != NULL && strcmp(request->etag, name) == 0 && chance(&world.rng, 80)) {
        return hf_reply_not_modified(reply);
    }
    if (chance(&world.rng, 85)) {
        HF_TRY(hf_reply_etag(reply, name));
    }
    return is_list(key) ? reply_list(one, reply) : hf_reply_value(reply, one->value.bytes, one->value.len);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    question one = question_of(request, true);
    return answer_question(&one, hf_sleep(delay()), request, reply);
}

static hf_status fetch_many(void *state, const hf_fetch_request *requests, hf_reply *const *replies, size_t count)
{
    (void)state;
    question all[ALL];
    if (!HF_CHECK_SAY(count <= ALL, "DP1 a key twice in a call")) {
        return HF_ERR_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        all[i] = question_of(&requests[i], count == 1);
    }
    hf_status status = hf_sleep(delay());
    for (size_t i = 0; i < count; i++) { /* a failure is the key's own */
        HF_IGNORE(answer_question(&all[i], status, &requests[i], replies[i]));
    }
    world.batches += count > 1;
    return status;
}

/* Says what there is, again and again, and ends in all ways. What it says counts from the moment when it is handed over. */
static hf_status subscribe(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    world.subscriptions++;
    question one = question_of(request, true);
    int place = one.place;
    int64_t *silent = &world.following[one.key][place]; /* its own: the next one may begin before this one ends */
    *silent = one.at;
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK; i++) {
        status = i == 0 ? hf_sleep(delay()) : hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&world.rng, 5000)));
        one.start = tick();
        one.will_fail = fails() && (i == 0 || chance(&world.rng, 50));
        one.reads_first = false;
        hf_fetch_request asked = *request;
        asked.etag = i == 0 ? request->etag : NULL;
        int proofs = world.proof_count;
        status = answer_question(&one, status, &asked, reply);
        world.fetching[one.key][place] = one.at; /* it goes on */
        if (status == HF_OK) {
            bool is_proved = world.proof_count > proofs;
            world.proofs[proofs].start = is_proved ? UINT64_MAX : world.proofs[proofs].start;
            *silent = 0;
            status = hf_reply_emit(reply);
            world.proofs[proofs].start = is_proved ? tick() : world.proofs[proofs].start;
        }
        if (status == HF_OK && chance(&world.rng, 15)) { /* who waits for another reply hears of that */
            note_failure(one.key, HF_ERR_INVALID, one.start);
            break;
        }
    }
    *silent = 0;
    world.fetching[one.key][place] = 0;
    return status;
}

static pushed *push_of(const hf_push_request *request)
{
    for (int i = world.push_count - 1; i >= 0; i--) {
        if (strcmp(world.pushes[i].id, request->id) == 0) {
            return &world.pushes[i];
        }
    }
    return NULL;
}

/* The write may have been merged. Whether that was kept is not known for sure if the power went just then. */
static bool had_conflict(const char *id)
{
    for (int i = 0; i < world.push_count; i++) {
        if (world.pushes[i].answered == ANSWER_CONFLICT && strcmp(world.pushes[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool was_accepted(const char *id)
{
    for (int i = 0; i < world.push_count; i++) {
        if (world.pushes[i].accepted != 0 && strcmp(world.pushes[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static hf_status echo(int key, hf_reply *reply)
{
    char name[16];
    (void)snprintf(name, sizeof name, "e%u", world.etag[key]);
    HF_TRY(hf_reply_etag(reply, name));
    prove(key, true, &world.state[key], tick(), true);
    return hf_reply_value(reply, world.state[key].bytes, world.state[key].len);
}

/* A name of the origin's own, or sometimes the one that it has; the same when it is asked again. */
static hf_status give_name(int key, hf_depot_key asked, hf_reply *reply)
{
    created *one = &world.made[key - KEYS];
    if (one->name[0] == '\0' && chance(&world.rng, 15)) {
        memcpy(one->name, one->old, sizeof one->name);
    } else if (one->name[0] == '\0') {
        (void)snprintf(one->name, sizeof one->name, "n%d", key - KEYS);
        world.moved++;
    }
    if (strcmp(one->name, one->old) == 0 && chance(&world.rng, 50)) {
        return HF_OK;
    }
    return hf_reply_key(reply, hf_depot_key_of(asked.ns, asked.type, one->name));
}

/* Which create a write is that the origin sees for the first time, maybe before its caller knows its key. */
static int create_of(const hf_push_request *request)
{
    text data = text_of(request->data, request->len);
    for (int i = 0; i < world.op_count && request->verb == HF_WRITE_CREATE; i++) {
        const op *one = &world.ops[i];
        if (one->kind == OP_WRITE && one->verb == HF_WRITE_CREATE && has(&data, one->token)) {
            memcpy(world.made[one->key - KEYS].old, request->key.id, HF_PROVISIONAL_LEN);
            return one->key;
        }
    }
    return -1;
}

static hf_status push_once(const hf_push_request *request, hf_reply *reply, pushed *one, bool is_repeated)
{
    int key = one->key;
    char name[16];
    (void)snprintf(name, sizeof name, "e%u", world.etag[key]);
    is_repeated = is_repeated &&
                  (world.exists[key] || one->verb == HF_WRITE_REMOVE); /* "accepted, and gone since" cannot be said */
    if (fails() && !is_repeated) {
        hf_status status = fail_with(reply, any_class(true));
        one->answered = hf_class_info_of(reply->why)->is_retried ? ANSWER_RETRY : ANSWER_REFUSED;
        note_failure(key, status, one->tick);
        return status;
    }
    if (is_repeated && world.is_down && !world.is_last) {
        one->answered = ANSWER_RETRY;
        note_failure(key, HF_ERR_IO, one->tick);
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    if (one->verb != HF_WRITE_CREATE && !is_known_name(key, request->key)) {
        HF_CHECK_SAY(!world.made[key - KEYS].is_final, "depot-D7 a write of key %d is sent with its old name", key);
        one->answered = ANSWER_REFUSED; /* its create was refused, or given up */
        note_failure(key, HF_ERR_INVALID, one->tick);
        return hf_reply_fail(reply, HF_REPLY_INVALID);
    }
    bool is_refused = (request->if_match != NULL && (!world.exists[key] || strcmp(request->if_match, name) != 0)) ||
                      (request->if_none && world.exists[key]) || (!world.is_last && chance(&world.rng, 10));
    if (is_refused && !is_repeated) {
        one->answered = ANSWER_CONFLICT;
        world.conflicts++;
        if (world.exists[key]) {
            HF_TRY(echo(key, reply));
        }
        return HF_ERR_CONFLICT;
    }
    one->answered = ANSWER_OK;
    one->accepted = tick();
    if (!is_repeated) {
        text next = one->verb == HF_WRITE_PATCH
                        ? joined(world.exists[key] ? &world.state[key] : NULL, one->data.bytes, one->data.len)
                        : one->data;
        set_state(key, one->verb != HF_WRITE_REMOVE ? &next : NULL);
    }
    if (one->verb == HF_WRITE_CREATE) {
        HF_TRY(give_name(key, request->key, reply));
    }
    bool echoes = is_repeated || one->verb == HF_WRITE_PATCH || chance(&world.rng, 50);
    if (one->verb == HF_WRITE_REMOVE || !world.exists[key]) {
        prove(key, false, &(text){0}, tick(), true);
    } else if (echoes) {
        HF_TRY(echo(key, reply));
    } else {
        prove(key, true, &world.state[key], tick(), true);
    }
    return HF_OK;
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    int key = key_number(request->key);
    key = key >= 0 ? key : create_of(request);
    const pushed *earlier = push_of(request);
    if (!HF_CHECK_SAY(key >= 0, "a write of a key that nobody has made")) {
        return HF_ERR_INVALID;
    }
    if (!HF_CHECK(world.push_count < PUSHES_MAX)) {
        return HF_ERR_LIMIT;
    }
    pushed *one = &world.pushes[world.push_count++];
    *one = (pushed){
        .key = key, .verb = request->verb, .tick = tick(), .at = now(), .data = text_of(request->data, request->len)};
    (void)snprintf(one->id, sizeof one->id, "%s", request->id);
    if (earlier != NULL) {
        HF_CHECK_SAY(had_conflict(one->id) || (is_same(&earlier->data, &one->data) && earlier->verb == one->verb),
                     "DP6 write %s of key %d was sent as %s, then as %s", one->id, key, earlier->data.bytes,
                     one->data.bytes);
        HF_CHECK_SAY(earlier->key == key, "DP6 one id, two keys");
    }
    HF_CHECK_SAY(world.pushing[key] == 0, "DP6 two writes of key %d at once", key);
    world.pushing[key]++;
    bool acts_first = chance(&world.rng, 50);
    hf_status status = HF_OK;
    if (acts_first) { /* the answer is slow, or lost */
        int proofs = world.proof_count;
        status = push_once(request, reply, one, was_accepted(request->id));
        answer answered = one->answered;
        one->answered = ANSWER_CANCELED;
        hf_status slept = hf_sleep(delay());
        if (slept == HF_OK) {
            one->answered = answered;
            for (int i = proofs; i < world.proof_count; i++) { /* it counts from when it is told */
                if (world.proofs[i].key == key && world.proofs[i].is_push) {
                    world.proofs[i].at = now();
                }
            }
        } else {
            hf_reply_clear(reply);
            status = slept;
            world.trouble_at = now();
        }
    } else {
        one->answered = ANSWER_CANCELED;
        status = hf_sleep(delay());
        if (status == HF_OK) {
            status = push_once(request, reply, one, was_accepted(request->id));
        } else {
            world.trouble_at = now();
        }
    }
    world.pushing[key]--;
    world.answered_at = one->answered_at = now();
    one->told_at = status == HF_OK ? now() : 0;
    return status;
}

static hf_status apply(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    (void)state;
    text old = text_of_value(value);
    text made = joined(value != NULL ? &old : NULL, patch, len);
    return hf_value_copy(made.bytes, made.len, ret_value);
}

static hf_status merge(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                       hf_value **ret_value)
{
    (void)state;
    (void)base;
    text a = text_of_value(theirs);
    text b = text_of_value(mine);
    text made = joined(&a, b.bytes, b.len);
    return hf_value_copy(made.bytes, made.len, ret_value);
}

/* ---- Judging ----------------------------------------------------------------------------------------------------- */

static bool concerns(const op *one, int key)
{
    return one->key >= 0 ? one->key == key : one->space < 0 || one->space == space_of(key);
}

/* The depot has sent the write again: the answer was lost with the power. */
static bool is_forgotten(int push)
{
    for (int i = push + 1; i < world.push_count; i++) {
        if (strcmp(world.pushes[i].id, world.pushes[push].id) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the depot remembers that this key was deleted, so that a replica may lag: the last write that the origin has
 * accepted was a delete, the depot has heard of it, and has not forgotten it for an invalidation. Without a store it may
 * be evicted. */
static bool may_lag(int key)
{
    const pushed *last = NULL;
    for (int i = 0; i < world.push_count; i++) {
        const pushed *one = &world.pushes[i];
        last = one->key == key && one->accepted != 0 ? one : last;
    }
    if (world.is_last || !world.has_store || world.exists[key] || world.before[key].len == 0 || last == NULL ||
        last->verb != HF_WRITE_REMOVE || last->told_at == 0 || last->told_at >= now() || world.is_dark ||
        is_forgotten((int)(last - world.pushes))) {
        return false;
    }
    for (int i = 0; i < world.op_count; i++) {
        const op *one = &world.ops[i];
        /* one in the moment when the write began counts as later */
        if (one->kind == OP_INVALIDATE && concerns(one, key) && (one->end == 0 || one->ended_at >= last->at)) {
            return false;
        }
    }
    for (int i = 0; i < world.proof_count; i++) { /* the depot has heard of a later value */
        if (world.proofs[i].key == key && !world.proofs[i].is_absent && world.proofs[i].end > last->tick) {
            return false;
        }
    }
    return true;
}

typedef struct asked {
    int key;
    hf_fresh fresh;
    int64_t within;
    hf_span timeout;
    uint64_t start;
    int64_t at;
} asked;

/* What the depot has heard counts from when it is written: that takes a moment if a thread of the pool begins for it.
 * Until then a get may see what was there before, or join the flight whose answer is being written. */
static int64_t writing(void)
{
    return world.has_hooks ? MILLI : 0;
}

/* The first tick that a proof of a value may have been asked for at. */
static uint64_t earliest(const asked *ask, bool *ret_is_deleted)
{
    uint64_t first = 0;
    *ret_is_deleted = false;
    for (int i = 0; i < world.op_count; i++) {
        const op *one = &world.ops[i];
        if (!concerns(one, ask->key) || one->end == 0 || one->end > ask->start || one->status != HF_OK) {
            continue;
        }
        if (one->kind == OP_INVALIDATE && (one->is_hard || ask->fresh != HF_FRESH_OR_STALE) && one->start > first) {
            first = one->start; /* DP3 */
        }
    }
    for (int i = 0; i < world.push_count; i++) { /* what this depot wrote is not forgotten, if it could be kept */
        const pushed *one = &world.pushes[i];
        if (one->key == ask->key && one->accepted != 0 && one->told_at != 0 && one->told_at + writing() < ask->at &&
            one->accepted > first && !is_forgotten(i) && (!world.is_dark || one->told_at < world.dark_at)) {
            first = one->accepted;
        }
    }
    return first;
}

/* With HF_SEED: what happened to the key, for the reader of a failure. */
static void tell_story(int key)
{
    if (getenv("HF_SEED") == NULL) {
        return;
    }
    for (uint64_t at = 1; at <= world.tick; at++) {
        for (int i = 0; i < world.proof_count; i++) {
            const proof *one = &world.proofs[i];
            if (one->key == key && one->end == at) {
                print_message("%5llu proof since %llu at %lld ms: %s%s\n", (unsigned long long)at,
                              (unsigned long long)one->start, (long long)(one->at / MILLI),
                              one->is_absent ? "absent" : one->value.bytes, one->is_push ? " (push)" : "");
            }
        }
        for (int i = 0; i < world.failure_count; i++) {
            const failed *one = &world.failures[i];
            if (one->key == key && one->end == at) {
                print_message("%5llu failed since %llu at %lld ms: %s\n", (unsigned long long)at,
                              (unsigned long long)one->start, (long long)(one->at / MILLI),
                              hf_status_name(one->status));
            }
        }
        for (int i = 0; i < world.push_count; i++) {
            const pushed *one = &world.pushes[i];
            if (one->key == key && one->tick == at) {
                print_message("%5llu push %.6s verb %d %s: answer %d, accepted %llu\n", (unsigned long long)at, one->id,
                              (int)one->verb, one->data.bytes, (int)one->answered, (unsigned long long)one->accepted);
            }
        }
        for (int i = 0; i < world.op_count; i++) {
            const op *one = &world.ops[i];
            if (concerns(one, key) && one->start == at) {
                print_message("%5llu to %llu at %lld ms: %s %d %s %s%s\n", (unsigned long long)at,
                              (unsigned long long)one->end, (long long)(one->made_at / MILLI),
                              one->kind == OP_WRITE        ? "write"
                              : one->kind == OP_INVALIDATE ? "invalidate"
                                                           : "by hand",
                              one->kind == OP_WRITE ? (int)one->verb : (int)one->is_hard, one->token,
                              hf_status_name(one->status), one->is_origin_first ? " origin first" : "");
            }
        }
    }
}

static void judge_value(const asked *ask, const text *value, const hf_depot_info *info)
{
    if (info->is_pending) { /* looked at by DP5 */
        return;
    }
    bool is_deleted = false;
    uint64_t first = earliest(ask, &is_deleted);
    bool is_known = false;
    bool is_new = false;
    bool is_fresh = false;
    for (int i = world.proof_count - 1; i >= 0 && !is_fresh; i--) {
        const proof *one = &world.proofs[i];
        if (one->key != ask->key || one->is_absent || !is_same(&one->value, value)) {
            continue;
        }
        is_known = true;
        if (one->start < first) {
            continue;
        }
        is_new = true;
        switch (ask->fresh) {
        case HF_FRESH_NOW:
            is_fresh = one->at >= ask->at - writing();
            break;
        case HF_FRESH_WITHIN:
            is_fresh = one->at >= ask->at - ask->within - writing();
            break;
        case HF_FRESH_OR_STALE:
            is_fresh = one->at >= ask->at - world.stale_max - writing();
            break;
        case HF_FRESH_CACHED:
        case HF_FRESH_LOCAL:
            is_fresh = true;
            break;
        }
    }
    if (!is_known || !is_new || !is_fresh) {
        tell_story(ask->key);
    }
    HF_CHECK_SAY(is_known, "key %d: the origin never said %s", ask->key, value->bytes);
    HF_CHECK_SAY(!is_known || is_new, "DP3 key %d: %s is from before tick %llu (asked at %llu, fresh %d)", ask->key,
                 value->bytes, (unsigned long long)first, (unsigned long long)ask->start, (int)ask->fresh);
    HF_CHECK_SAY(!is_new || is_fresh, "DP2 key %d: %s is older than asked for (fresh %d)", ask->key, value->bytes,
                 (int)ask->fresh);
    HF_CHECK_SAY(ask->fresh != HF_FRESH_WITHIN || info->age.ns <= ask->within + (now() - ask->at) + writing(),
                 "DP2 age");
}

static bool was_deleted(const asked *ask)
{
    for (int i = 0; i < world.op_count; i++) {
        const op *one = &world.ops[i];
        if (one->kind == OP_WRITE && one->verb == HF_WRITE_REMOVE && one->key == ask->key) {
            return true;
        }
    }
    return false;
}

static void judge_not_found(const asked *ask)
{
    if (ask->fresh == HF_FRESH_LOCAL || was_deleted(ask)) {
        return;
    }
    bool is_deleted = false;
    uint64_t first = earliest(ask, &is_deleted);
    for (int i = world.proof_count - 1; i >= 0; i--) {
        const proof *one = &world.proofs[i];
        if (one->key == ask->key && one->is_absent && one->start >= first &&
            (ask->fresh == HF_FRESH_NOW || ask->fresh == HF_FRESH_OR_STALE ? one->at >= ask->at - writing()
                                                                           : one->at >= ask->at - 30 * SECOND)) {
            return;
        }
    }
    tell_story(ask->key);
    (void)HF_CHECK_SAY(false, "DP2 key %d: not found, but the origin did not say so (asked at %llu, fresh %d)",
                       ask->key, (unsigned long long)ask->start, (int)ask->fresh);
}

/* The depot gives up a subscription that says nothing, in the moment before the subscriber hears of that. */
static bool is_late(int key)
{
    bool is_any = false;
    for (int i = 0; i < 8; i++) {
        int64_t began = world.following[key][i];
        is_any = is_any || (began != 0 && now() - began >= hf_seconds(10).ns);
    }
    return is_any;
}

static void judge_failure(const asked *ask, hf_status status, bool was_canceled)
{
    int64_t end = now();
    bool has_failed = false;
    for (int i = 0; i < world.failure_count; i++) {
        has_failed = has_failed || (world.failures[i].key == ask->key && world.failures[i].status == status &&
                                    world.failures[i].at >= ask->at - writing());
    }
    if (has_failed) {
        return;
    }
    switch (status) {
    case HF_ERR_TIMEOUT:
        HF_CHECK_SAY((ask->timeout.ns > 0 && end - ask->at >= ask->timeout.ns) || is_late(ask->key),
                     "DP7 timeout of nobody");
        return;
    case HF_ERR_CANCELED:
        HF_CHECK_SAY(was_canceled || world.is_canceled, "DP7 canceled by nobody");
        return;
    case HF_ERR_CLOSED:
        HF_CHECK_SAY(world.is_closing, "DP7 closed, but it is open");
        return;
    case HF_ERR_UNAVAILABLE: {
        if (getenv("HF_SEED") != NULL) {
            print_message("asked %llu at %lld ms, now %lld, offline %d since %llu, trouble %lld\n",
                          (unsigned long long)ask->start, (long long)(ask->at / MILLI), (long long)(end / MILLI),
                          world.offline, (unsigned long long)world.offline_tick, (long long)(world.trouble_at / MILLI));
        }
        bool is_any_late = false;
        for (int key = 0; key < ALL; key++) {
            is_any_late = is_any_late || is_late(key);
        }
        HF_CHECK_SAY(
            is_any_late || world.offline || world.offline_tick > ask->start || end - world.trouble_at <= 120 * SECOND ||
                world.depot->breakers[0].state == HF_BREAKER_HALF_OPEN || world.answered_at >= ask->at, /* a probe */
            "DP10 key %d: unavailable, but nothing is wrong", ask->key);
        return;
    }
    case HF_ERR_CONFLICT: {
        int count = 0;
        for (int i = 0; i < world.op_count; i++) {
            count += concerns(&world.ops[i], ask->key) &&
                     (world.ops[i].end == 0 || world.ops[i].ended_at >= ask->at - 120 * SECOND);
        }
        for (int i = 0; i < world.push_count; i++) { /* an answer to a write is one, too */
            const pushed *one = &world.pushes[i];
            count += one->key == ask->key && (one->answered == ANSWER_OK || one->answered == ANSWER_CONFLICT) &&
                     one->answered_at >= ask->at - 120 * SECOND;
        }
        if (!HF_CHECK_SAY(count >= 3, "DP7 key %d: conflict after %d changes", ask->key, count)) {
            tell_story(ask->key);
        }
        return;
    }
    default:
        (void)HF_CHECK_SAY(false, "DP7 key %d: %s, but no fetch failed so (asked at %llu)", ask->key,
                           hf_status_name(status), (unsigned long long)ask->start);
        tell_story(ask->key);
    }
}

/* ---- The depot's own state, on its driver ------------------------------------------------------------------------ */

static bool same_value(const hf_value *a, const hf_value *b)
{
    text one = text_of_value(a);
    text other = text_of_value(b);
    return (a == NULL) == (b == NULL) && is_same(&one, &other);
}

static void look_at_slot(hf_depot *depot, hf_depot_slot *slot)
{
    if (slot->load != HF_SLOT_KNOWN) {
        return;
    }
    bool is_gone = slot->entry.generation < atomic_load(&slot->space->hard) ||
                   slot->entry.generation_all < atomic_load(&depot->hard);
    bool is_there = slot->entry.kind == HF_ENTRY_VALUE && !is_gone;
    text value = text_of_value(is_there ? slot->entry.value : NULL);
    bool is_pending = false;
    HF_LIST_EACH(node, &slot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        HF_CHECK_SAY((row->state == HF_ROW_SENDING) == (slot->sending == row), "a write is sent and is not");
        HF_CHECK_SAY(!row->is_dropped || row->state == HF_ROW_SENDING, "a write was dropped and is there");
        if (row->state == HF_ROW_DEAD || row->is_origin_first || row->is_dropped) {
            continue;
        }
        is_pending = true;
        text data = text_of_value(row->data);
        value = row->verb == HF_WRITE_REMOVE  ? (text){0}
                : row->verb == HF_WRITE_PATCH ? joined(is_there ? &value : NULL, data.bytes, data.len)
                                              : data;
        is_there = row->verb != HF_WRITE_REMOVE;
    }
    hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall(depot));
    bool is_shown = at.local == HF_LOCAL_FRESH || at.local == HF_LOCAL_STALE || at.local == HF_LOCAL_UNUSABLE;
    text shown = text_of_value(is_shown ? slot->snap->value : NULL);
    HF_CHECK_SAY(is_shown == is_there && is_same(&shown, &value),
                 "DP5 visible is %d '%s', but base and writes make %d '%s'", is_shown, shown.bytes, is_there,
                 value.bytes);
    HF_CHECK_SAY(slot->snap->is_pending == is_pending, "DP5 is_pending");
    hf_snap *memory = hf_memory_get(depot, hf_slot_key(slot));
    HF_CHECK_SAY(memory == NULL ||
                     (memory->kind == slot->snap->kind && memory->entry.version == slot->snap->entry.version &&
                      memory->is_pending == slot->snap->is_pending && same_value(memory->value, slot->snap->value)),
                 "DP5 memory has another value");
    hf_snap_unref(memory);
    if (slot->flight != NULL) {
        size_t holders = slot->flight->is_refresh;
        HF_LIST_EACH(node, &slot->flight->waiters)
        {
            holders++;
        }
        HF_LIST_EACH(node, &slot->watchers)
        {
            holders += HF_CONTAINER(node, hf_watcher, node)->flight != NULL;
        }
        HF_CHECK_SAY(slot->flight->holders >= holders, "DP7 holders");
        HF_CHECK_SAY(slot->flight->holders > 0 || slot->flight->is_landing,
                     "DP7 nobody holds the fetch, and it goes on");
    }
}

static void look_at_all(hf_depot *depot, hf_key_node *node)
{
    if (node != NULL) {
        look_at_slot(depot, HF_CONTAINER(node, hf_depot_slot, key));
        for (int i = 0; i < 4; i++) {
            look_at_all(depot, node->child[i]);
        }
    }
}

typedef struct looking {
    hf_ask ask;
    int live, dead;
} looking;

static void act_look(hf_depot *depot, hf_post *post)
{
    looking *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), looking, ask);
    look_at_all(depot, depot->slots.root);
    size_t count = 0;
    size_t bytes = 0;
    HF_LIST_EACH(node, &depot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        count++;
        bytes += sizeof *row + hf_value_len(row->data);
        one->live += row->state != HF_ROW_DEAD;
        one->dead += row->state == HF_ROW_DEAD;
    }
    HF_CHECK_SAY(count == depot->row_count && bytes == depot->row_bytes, "DP8 writes are counted wrong");
    HF_CHECK_SAY(depot->flights <= (size_t)depot->options.fetch_max && depot->sends <= (size_t)depot->options.send_max,
                 "DP8 bounds");
    hf_cache_counts memory = {0};
    HF_CHECK(hf_cache_stats(depot->memory, &memory) == HF_OK);
    HF_CHECK_SAY(memory.bytes <= (uint64_t)depot->options.bytes_max, "DP8 memory has %llu bytes",
                 (unsigned long long)memory.bytes);
    hf_depot_answer(depot, &one->ask, HF_OK);
}

static looking look(void)
{
    looking one = {.live = 0};
    if (hf_depot_enter(world.depot, "look") == HF_OK) {
        hf_depot_tell(world.depot, &one.ask, act_look, "look");
        hf_depot_leave(world.depot);
    }
    return one;
}

/* ---- Actors ------------------------------------------------------------------------------------------------------ */

static void pause_a_little(actor *self)
{
    int what = (int)hf_rng_below(&self->rng, 100);
    int64_t ns = what < 40   ? 0
                 : what < 80 ? (int64_t)hf_rng_below(&self->rng, 400) * MILLI
                 : what < 95 ? (int64_t)hf_rng_below(&self->rng, 5000) * MILLI
                             : (int64_t)hf_rng_below(&self->rng, 400) * SECOND;
    HF_IGNORE(hf_sleep(hf_nanoseconds(ns)));
}

static void get_one(actor *self, int key, hf_span timeout, bool may_be_canceled)
{
    asked ask = {
        .key = key,
        .fresh = (hf_fresh)hf_rng_below(&self->rng, 5),
        .within = (int64_t)hf_rng_below(&self->rng, 20) * SECOND,
        .timeout = timeout,
        .start = tick(),
        .at = now(),
    };
    hf_value *value = NULL;
    hf_depot_info info = {0};
    world.gets++;
    hf_status status =
        hf_depot_get(world.depot, key_of(key), &value, .fresh = ask.fresh, .within = hf_nanoseconds(ask.within),
                     .timeout = timeout, .force = chance(&self->rng, 10), .ret_info = &info);
    if (status == HF_OK) {
        text got = text_of_value(value);
        judge_value(&ask, &got, &info);
    } else if (status == HF_ERR_NOT_FOUND) {
        judge_not_found(&ask);
    } else {
        judge_failure(&ask, status, may_be_canceled && hf_canceled() != HF_OK);
    }
    HF_CHECK((status == HF_OK) == (value != NULL));
    hf_value_unref(value);
}

/* Several keys with one call; a key may be there twice. */
static void get_several(actor *self)
{
    enum { MOST = 6 };
    hf_depot_key keys[MOST];
    asked asks[MOST];
    hf_depot_result results[MOST];
    hf_depot_info infos[MOST];
    size_t count = 1 + hf_rng_below(&self->rng, MOST);
    hf_fresh fresh = (hf_fresh)hf_rng_below(&self->rng, 5);
    int64_t within = (int64_t)hf_rng_below(&self->rng, 20) * SECOND;
    hf_span timeout =
        chance(&self->rng, 30) ? hf_milliseconds((int64_t)hf_rng_below(&self->rng, 800)) : hf_nanoseconds(0);
    uint64_t start = tick();
    for (size_t i = 0; i < count; i++) {
        int key = any_key(&self->rng);
        keys[i] = key_of(key);
        asks[i] = (asked){key, fresh, within, timeout, start, now()};
        infos[i] = (hf_depot_info){0};
    }
    world.gets += count;
    hf_status status =
        hf_depot_get_many(world.depot, keys, count, results, .fresh = fresh, .within = hf_nanoseconds(within),
                          .timeout = timeout, .force = chance(&self->rng, 10), .ret_infos = infos);
    if (status != HF_OK) {
        judge_failure(&asks[0], status, hf_canceled() != HF_OK);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (results[i].status == HF_OK) {
            text got = text_of_value(results[i].value);
            judge_value(&asks[i], &got, &infos[i]);
        } else if (results[i].status == HF_ERR_NOT_FOUND) {
            judge_not_found(&asks[i]);
        } else {
            judge_failure(&asks[i], results[i].status, false);
        }
        HF_CHECK((results[i].status == HF_OK) == (results[i].value != NULL));
        hf_value_unref(results[i].value);
    }
}

/* The items of the list at `*at`, which is on this level, follow; then those of its lists. */
static void judge_members(const hf_items *items, size_t *at, const asked *ask, unsigned depth, const text *list)
{
    for (size_t i = 0; i < list->len / TOKEN_LEN; i++) {
        const hf_item *item = hf_items_at(items, *at);
        if (!HF_CHECK_SAY(item != NULL && item->depth == depth && key_number(item->key) == member_of(list, i),
                          "key %d: member %zu of a list is missing", ask->key, i)) {
            return;
        }
        ++*at;
        asked of_item = *ask;
        of_item.key = member_of(list, i);
        if (item->status == HF_OK) {
            text value = text_of_value(item->value);
            hf_depot_info info = {.is_pending = item->is_pending, .age = item->age};
            judge_value(&of_item, &value, &info);
            HF_CHECK(item->is_list == is_list(of_item.key) || item->is_pending);
            if (item->is_list && !item->is_cut) {
                judge_members(items, at, ask, depth + 1, &value);
            }
        } else if (item->status == HF_ERR_NOT_FOUND) {
            judge_not_found(&of_item);
        } else {
            judge_failure(&of_item, item->status, false);
        }
        HF_CHECK((item->status == HF_OK) == (item->value != NULL));
    }
}

static void read_list(actor *self)
{
    asked ask = {
        .key = KEYS_ALL + (int)hf_rng_below(&self->rng, LISTS),
        .fresh = (hf_fresh)hf_rng_below(&self->rng, 5),
        .within = (int64_t)hf_rng_below(&self->rng, 20) * SECOND,
        .timeout = chance(&self->rng, 20) ? hf_milliseconds((int64_t)hf_rng_below(&self->rng, 800)) : hf_nanoseconds(0),
        .start = tick(),
        .at = now(),
    };
    asked of_member = ask;
    of_member.fresh = (hf_fresh)hf_rng_below(&self->rng, 5);
    of_member.within = (int64_t)hf_rng_below(&self->rng, 20) * SECOND;
    hf_items *items = NULL;
    hf_depot_info info = {0};
    world.lists++;
    hf_status status =
        hf_depot_list(world.depot, key_of(ask.key), &items, .fresh = ask.fresh, .within = hf_nanoseconds(ask.within),
                      .members = of_member.fresh, .members_within = hf_nanoseconds(of_member.within),
                      .timeout = ask.timeout, .force = chance(&self->rng, 10), .ret_info = &info);
    HF_CHECK((status == HF_OK) == (items != NULL));
    if (status == HF_OK) {
        text list = {0};
        for (size_t i = 0; i < hf_items_count(items); i++) {
            const hf_item *item = hf_items_at(items, i);
            list = item->depth == 1 ? with_member(list, key_number(item->key)) : list;
        }
        size_t at = 0;
        judge_value(&ask, &list, &info);
        judge_members(items, &at, &of_member, 1, &list);
        HF_CHECK_SAY(at == hf_items_count(items), "a list has %zu items too many", hf_items_count(items) - at);
    } else if (status == HF_ERR_NOT_FOUND) {
        judge_not_found(&ask);
    } else {
        judge_failure(&ask, status, hf_canceled() != HF_OK);
    }
    hf_items_free(items);
}

static hf_status get_many(void *arg)
{
    actor self = {.rng = {.state = (uint64_t)(uintptr_t)arg}};
    for (int i = 0; i < 3 && !world.is_closing && hf_canceled() == HF_OK; i++) {
        if (chance(&self.rng, 20)) {
            read_list(&self);
        } else if (chance(&self.rng, 30)) {
            get_several(&self);
        } else {
            get_one(&self, any_key(&self.rng), hf_nanoseconds(0), true);
        }
    }
    return HF_OK;
}

/* Gets that are canceled under way. */
static void get_and_cancel(actor *self)
{
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .join = HF_JOIN_DISCARD) == HF_OK);
    for (int i = 0; i < 2; i++) {
        HF_CHECK(hf_fork(scope, get_many, (void *)(uintptr_t)hf_rng_next(&self->rng)) == HF_OK);
    }
    HF_IGNORE(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&self->rng, 600))));
    HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
}

static op *op_new(op_kind kind, int key)
{
    static op spare;
    op *one = HF_CHECK(world.op_count < OPS_MAX) ? &world.ops[world.op_count++] : &spare;
    *one = (op){.kind = kind, .key = key, .space = -1, .start = tick(), .made_at = now()};
    return one;
}

static void op_end(op *one, hf_status status)
{
    one->status = status;
    one->end = tick();
    one->ended_at = now();
}

typedef enum cover {
    COVER_SENT,     /* the origin has had it */
    COVER_ANSWERED, /* and has accepted or refused it */
    COVER_ACCEPTED
} cover;

/* Whether this has become of the write, or of one that took its place within the span of coalescing. */
static bool is_covered(const op *one, cover least)
{
    for (int i = 0; i < world.push_count; i++) {
        const pushed *at = &world.pushes[i];
        bool is_answered = at->answered == ANSWER_CONFLICT || at->answered == ANSWER_REFUSED || at->accepted != 0;
        if (at->key != one->key || (least == COVER_ACCEPTED && at->accepted == 0) ||
            (least == COVER_ANSWERED && !is_answered)) {
            continue;
        }
        if (one->verb == HF_WRITE_REMOVE ? at->verb == HF_WRITE_REMOVE && at->tick > one->start
                                         : has(&at->data, one->token)) {
            return true;
        }
        for (int j = 0; j < world.op_count && (one->verb == HF_WRITE_REPLACE || one->verb == HF_WRITE_CREATE); j++) {
            const op *later = &world.ops[j];
            if (later != one && later->kind == OP_WRITE && later->key == one->key && later->verb == HF_WRITE_REPLACE &&
                (later->end == 0 || later->end > one->start) && later->made_at - one->made_at <= 150 * MILLI &&
                has(&at->data, later->token)) {
                return true;
            }
        }
    }
    return one->is_by_hand;
}

static void wait_for(actor *self, const op *one, hf_depot_write *write)
{
    int64_t before = now();
    hf_span timeout = hf_milliseconds(1 + (int64_t)hf_rng_below(&self->rng, 8000));
    hf_status status = hf_depot_write_wait(write, .timeout = timeout);
    if (status == HF_OK) {
        HF_CHECK_SAY(is_covered(one, COVER_ACCEPTED),
                     "DP6 the write of %s was acknowledged, but the origin has not accepted it", one->token);
    } else if (status == HF_ERR_TIMEOUT && now() - before >= timeout.ns) {
        return;
    } else if (status == HF_ERR_CLOSED) {
        HF_CHECK_SAY(world.is_closing, "DP7 closed, but it is open");
    } else if (status != HF_ERR_CANCELED) {
        HF_CHECK_SAY(is_covered(one, COVER_SENT), "DP7 a write ended with %s, but was never sent",
                     hf_status_name(status));
    }
}

/* The caller knows the key now: the provisional name, or if it went to the origin first the origin's. */
static void note_created(int key, const op *one, const hf_depot_id *id)
{
    created *made = &world.made[key - KEYS];
    if (one->is_origin_first) {
        HF_CHECK_SAY(id->len == strlen(made->name) && memcmp(id->bytes, made->name, id->len) == 0,
                     "key %d: the depot does not know its name", key);
        make_final(made);
    } else {
        HF_CHECK(id->len == HF_PROVISIONAL_LEN);
        HF_CHECK_SAY(made->old[0] == '\0' || memcmp(made->old, id->bytes, id->len) == 0, "another provisional id");
        memcpy(made->old, id->bytes, HF_PROVISIONAL_LEN);
    }
    made->is_known = true;
}

/* A handle knows the name that the origin gave, as soon as the create is settled. */
static void ask_name(const op *one, const hf_depot_write *write)
{
    hf_depot_id id;
    created *made = one->key >= KEYS ? &world.made[one->key - KEYS] : NULL;
    if (made == NULL || hf_depot_write_key(write, &id) != HF_OK) {
        return;
    }
    bool is_old = id.len == strlen(made->old) && memcmp(id.bytes, made->old, id.len) == 0;
    bool is_new = id.len == strlen(made->name) && memcmp(id.bytes, made->name, id.len) == 0;
    HF_CHECK_SAY(is_old || is_new, "key %d has a name that nobody gave", one->key);
    if (is_new) {
        make_final(made);
    }
}

static void write_one(actor *self)
{
    int key = any_item(&self->rng);
    int what = (int)hf_rng_below(&self->rng, 100);
    bool creates = !world.subscribes && world.made_count < CREATED && chance(&self->rng, 20);
    if (creates) {
        key = KEYS + world.made_count++;
    }
    op *one = op_new(OP_WRITE, key);
    hf_depot_id id;
    hf_depot_write *write = NULL;
    hf_depot_write **place = chance(&self->rng, 50) ? &write : NULL;
    hf_conflict policy = (hf_conflict)hf_rng_below(&self->rng, 3);
    hf_depot_mode mode = chance(&self->rng, 15) ? HF_DEPOT_ORIGIN_FIRST : HF_DEPOT_LOCAL_FIRST;
    hf_span timeout =
        chance(&self->rng, 10) ? hf_milliseconds((int64_t)hf_rng_below(&self->rng, 500)) : hf_nanoseconds(0);
    if (mode == HF_DEPOT_ORIGIN_FIRST && timeout.ns == 0) { /* the origin may be down until somebody else acts */
        timeout = hf_seconds(40);
    }
    const char *if_match = chance(&self->rng, 15) ? "e3" : NULL;
    bool if_none = if_match == NULL && chance(&self->rng, 8);
    (void)snprintf(one->token, sizeof one->token, "%04u", world.token_next++ % 10000);
    one->is_origin_first = mode == HF_DEPOT_ORIGIN_FIRST;
    one->verb = creates ? HF_WRITE_CREATE : what < 60 ? HF_WRITE_REPLACE : what < 80 ? HF_WRITE_PATCH : HF_WRITE_REMOVE;
    world.writes++;
    hf_status status = HF_OK;
    hf_depot_write_options options = {.size = sizeof options,
                                      .mode = mode,
                                      .on_conflict = policy,
                                      .if_match = if_match,
                                      .if_none = if_none,
                                      .timeout = timeout,
                                      .ret_write = place};
    switch (one->verb) {
    case HF_WRITE_REPLACE:
        status = hf_depot_put_with(world.depot, key_of(key), one->token, TOKEN_LEN, &options);
        break;
    case HF_WRITE_PATCH:
        status = hf_depot_patch_with(world.depot, key_of(key), one->token, TOKEN_LEN, &options);
        break;
    case HF_WRITE_REMOVE:
        status = hf_depot_delete_with(world.depot, key_of(key), &options);
        break;
    case HF_WRITE_CREATE:
        status = hf_depot_create_with(world.depot, hf_depot_key_of(SPACES[0], "t", NULL), one->token, TOKEN_LEN, &id,
                                      &options);
        break;
    }
    op_end(one, status);
    if (creates && status == HF_OK) {
        note_created(key, one, &id);
    }
    if (one->is_origin_first) {
        HF_CHECK_SAY(status != HF_OK || is_covered(one, COVER_ACCEPTED), "DP6 origin first: %s was not accepted",
                     one->token);
    } else {
        HF_CHECK_SAY(status == HF_OK || (status == HF_ERR_TIMEOUT && timeout.ns > 0) ||
                         (status == HF_ERR_CANCELED && hf_canceled() != HF_OK) ||
                         (status == HF_ERR_CLOSED && world.is_closing) || is_dark(status),
                     "DP7 a write failed with %s", hf_status_name(status));
    }
    HF_CHECK(status == HF_OK || write == NULL);
    if (write != NULL) {
        wait_for(self, one, write);
        ask_name(one, write);
        hf_depot_write_free(write);
    }
}

static void invalidate_one(actor *self)
{
    int what = (int)hf_rng_below(&self->rng, 100);
    int key = any_key(&self->rng);
    int space = space_of(key);
    bool is_hard = chance(&self->rng, 40);
    bool drops = is_hard && chance(&self->rng, 20);
    op *one = op_new(OP_INVALIDATE, what < 60 ? key : -1);
    one->is_hard = is_hard;
    one->space = what < 85 ? space : -1;
    hf_status status =
        what < 60   ? hf_depot_invalidate(world.depot, key_of(key), .hard = is_hard, .drop_pending = drops)
        : what < 85 ? hf_depot_invalidate_namespace(world.depot, SPACES[space], .hard = is_hard, .drop_pending = drops)
                    : hf_depot_invalidate_all(world.depot, .hard = is_hard, .drop_pending = drops);
    op_end(one, status);
    for (int i = 0; i < world.op_count && drops; i++) { /* those that waited are gone */
        op *other = &world.ops[i];
        bool is_meant = other->kind == OP_WRITE && !other->is_origin_first &&
                        (what < 60 ? other->key == key : what >= 85 || space_of(other->key) == space);
        other->is_by_hand = other->is_by_hand || is_meant;
    }
    HF_CHECK_SAY(status == HF_OK || (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK ||
                     is_dark(status),
                 "invalidate: %s", hf_status_name(status));
}

typedef struct watched {
    uint64_t version;
    bool has_version;
    bool has_value;
    text value;
    bool is_loading;
    int key;
    bool is_rekeyed;
} watched;

static void see(watched *seen, hf_depot_event *event)
{
    if (event->kind == HF_DEPOT_DATA || event->kind == HF_DEPOT_GONE) {
        text value = text_of_value(event->value);
        HF_CHECK_SAY(!seen->has_version || event->version >= seen->version, "DP4 version %llu after %llu",
                     (unsigned long long)event->version, (unsigned long long)seen->version);
        bool is_other = event->kind == HF_DEPOT_DATA && seen->has_value && !is_same(&value, &seen->value);
        HF_CHECK_SAY(!is_other || event->version > seen->version, "DP4 two values with version %llu",
                     (unsigned long long)event->version);
        seen->has_version = true;
        seen->version = event->version;
        seen->has_value = event->kind == HF_DEPOT_DATA;
        seen->value = value;
    }
    if (event->kind == HF_DEPOT_REKEYED) {
        HF_CHECK_SAY(is_made(seen->key) && !seen->is_rekeyed &&
                         is_name(event->key, world.made[seen->key - KEYS].name) &&
                         !is_name(event->key, world.made[seen->key - KEYS].old),
                     "key %d got a name that nobody gave", seen->key);
        seen->is_rekeyed = true;
        make_final(&world.made[seen->key - KEYS]);
    }
    seen->is_loading = event->kind == HF_DEPOT_LOADING;
    hf_value_unref(event->value);
    event->value = NULL;
}

static void watch_one(actor *self)
{
    int key = any_key(&self->rng);
    bool hears_members = is_list(key) && chance(&self->rng, 60);
    hf_watcher *watcher = NULL;
    watched seen = {.key = key};
    world.watched++;
    hf_fresh fresh = (hf_fresh)hf_rng_below(&self->rng, 5);
    hf_depot_watch_options options = {.size = sizeof options,
                                      .fresh = fresh,
                                      .within = hf_seconds((int64_t)hf_rng_below(&self->rng, 10)),
                                      .mode = (hf_flow_mode)hf_rng_below(&self->rng, 3),
                                      .capacity = hf_rng_below(&self->rng, 4),
                                      .refresh = chance(&self->rng, 20) ? hf_seconds(2) : hf_nanoseconds(0)};
    hf_status status = hears_members ? hf_depot_list_watch_with(world.depot, key_of(key), &watcher, &options)
                                     : hf_depot_watch_with(world.depot, key_of(key), &watcher, &options);
    if (status != HF_OK) {
        HF_CHECK_SAY((status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK, "watch: %s",
                     hf_status_name(status));
        return;
    }
    int events = (int)hf_rng_below(&self->rng, 6);
    for (int i = 0; i < events; i++) {
        hf_depot_event event;
        if (chance(&self->rng, 30)) { /* events wait for it */
            pause_a_little(self);
        }
        int64_t before = now();
        hf_span timeout = hf_milliseconds(1 + (int64_t)hf_rng_below(&self->rng, 4000));
        status = hf_watcher_next(watcher, &event, .timeout = timeout);
        if (status == HF_OK) {
            see(&seen, &event);
        } else {
            HF_CHECK_SAY((status == HF_ERR_TIMEOUT && now() - before >= timeout.ns) ||
                             (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK,
                         "next: %s", hf_status_name(status));
            break;
        }
    }
    HF_CHECK(hf_watcher_close(watcher) == HF_OK);
}

typedef struct choice {
    uint64_t sequence;
    int skip;
    int key;
    hf_write_verb verb;
    text data;
    bool is_found, is_dead;
    char id[HF_WRITE_ID_LEN];
} choice;

static bool choose(void *arg, const hf_depot_pending_write *write)
{
    choice *one = arg;
    one->sequence = write->sequence;
    one->is_found = true;
    one->key = key_number(write->key);
    one->verb = write->verb;
    memcpy(one->id, write->id, sizeof one->id);
    HF_LIST_EACH(node, &world.depot->rows) /* on its driver */
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (row->sequence == write->sequence && !row->is_origin_first) {
            one->data = text_of_value(row->data);
            one->is_dead = row->state == HF_ROW_DEAD;
        }
    }
    for (int i = 0; i < world.op_count && one->key < 0; i++) { /* a create whose caller does not know its key yet */
        one->key = has(&one->data, world.ops[i].token) ? world.ops[i].key : -1;
    }
    return one->skip-- > 0;
}

/* The writes that are in the row: they may be dropped, and a dead one that is sent again comes after later ones. Those
 * whose value a later one has replaced go with it. A write that waits and is sent at once keeps its place. */
static void note_by_hand(const choice *one, bool is_dropped)
{
    for (int i = 0; i < world.op_count && (is_dropped || one->is_dead); i++) {
        op *other = &world.ops[i];
        if (other->kind != OP_WRITE || other->key != one->key || other->is_origin_first) {
            continue;
        }
        bool is_in = one->verb == HF_WRITE_REMOVE ? other->verb == HF_WRITE_REMOVE : has(&one->data, other->token);
        other->is_by_hand = other->is_by_hand || is_in;
        for (int j = 0; j < world.op_count && is_in && one->verb != HF_WRITE_REMOVE; j++) {
            op *mate = &world.ops[j];
            int64_t between = other->made_at - mate->made_at;
            mate->is_by_hand = mate->is_by_hand || (mate->kind == OP_WRITE && mate->key == other->key &&
                                                    !mate->is_origin_first && between >= 0 && between <= 150 * MILLI);
        }
    }
}

/* The origin has refused it by now. */
static bool is_refused(const choice *one)
{
    for (int i = 0; i < world.push_count; i++) {
        if (world.pushes[i].answered == ANSWER_REFUSED && strcmp(world.pushes[i].id, one->id) == 0) {
            return true;
        }
    }
    return false;
}

static void by_hand(actor *self)
{
    choice one = {.skip = (int)hf_rng_below(&self->rng, 3)};
    if (hf_depot_pending(world.depot, choose, &one) != HF_OK || !one.is_found || world.is_closing) {
        return;
    }
    bool drops = !chance(&self->rng, 60);
    note_by_hand(&one, drops);
    op *change = op_new(OP_BY_HAND, one.key);
    hf_status status = drops ? hf_depot_drop(world.depot, one.sequence) : hf_depot_retry(world.depot, one.sequence);
    op_end(change, status);
    if (!one.is_dead && !drops && is_refused(&one)) { /* it has died between the look and the retry */
        one.is_dead = true;
        note_by_hand(&one, false);
    }
    for (int i = 0; i < world.push_count && drops && status == HF_OK; i++) {
        pushed *other = &world.pushes[i]; /* its answer was lost with the power, and now it will not be sent again */
        other->told_at = strcmp(other->id, one.id) == 0 ? 0 : other->told_at;
    }
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOT_FOUND || status == HF_ERR_CONFLICT ||
                     (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK || is_dark(status),
                 "by hand: %s", hf_status_name(status));
}

/* Of two calls at once either may be the last one that the depot hears. After them it may be offline, until a call that
 * is alone has returned. */
static void tell_online(bool is_online)
{
    bool is_alone = world.telling == 0;
    unsigned number = ++world.told;
    world.telling++;
    world.offline = world.offline || !is_online;
    world.offline_tick = tick();
    hf_status status = hf_depot_online(world.depot, is_online);
    world.telling--;
    is_alone = is_alone && world.told == number;
    world.offline = !is_online || !is_alone;
    world.offline_tick = tick();
    HF_CHECK(status == HF_OK || (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK);
}

static void disturb(actor *self)
{
    int what = (int)hf_rng_below(&self->rng, 100);
    if (what < 35) {
        world.is_down = !world.is_down;
    } else if (what < 70) { /* somebody else writes */
        int key = chance(&self->rng, 30) ? KEYS_ALL + (int)hf_rng_below(&self->rng, LISTS)
                                         : (int)hf_rng_below(&self->rng, KEYS);
        char token[TOKEN_LEN + 1];
        (void)snprintf(token, sizeof token, "%04u", world.token_next++ % 10000);
        text value = is_list(key) ? any_list(&self->rng) : text_of(token, TOKEN_LEN);
        set_state(key, chance(&self->rng, 80) ? &value : NULL);
    } else if (what < 90) {
        tell_online(chance(&self->rng, 60));
    } else if (what < 95) {
        HF_IGNORE(hf_depot_trim(world.depot, 0));
    } else {
        HF_IGNORE(hf_depot_prefetch(world.depot, key_of(any_key(&self->rng))));
    }
}

static hf_status act(void *arg)
{
    actor *self = arg;
    int steps = 4 + (int)hf_rng_below(&self->rng, 10);
    for (int i = 0; i < steps && hf_canceled() == HF_OK; i++) {
        pause_a_little(self);
        if (world.is_closing) {
            break;
        }
        int what = (int)hf_rng_below(&self->rng, 100);
        if (what < 10) {
            get_several(self);
        } else if (what < 17) {
            read_list(self);
        } else if (what < 38) {
            hf_span timeout =
                chance(&self->rng, 30) ? hf_milliseconds((int64_t)hf_rng_below(&self->rng, 800)) : hf_nanoseconds(0);
            get_one(self, any_key(&self->rng), timeout, true);
        } else if (what < 58) {
            write_one(self);
        } else if (what < 68) {
            invalidate_one(self);
        } else if (what < 78) {
            watch_one(self);
        } else if (what < 84) {
            get_and_cancel(self);
        } else if (what < 87) {
            by_hand(self);
        } else if (what < 95) {
            disturb(self);
        } else {
            (void)look();
        }
    }
    return HF_OK;
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

static hf_status open_depot(hf_rng *rng)
{
    hf_source_hooks hooks = hooked(world.store.inner);
    bool has_many = !world.subscribes && chance(rng, 40);
    hf_depot_options options = {
        .size = sizeof options,
        .fetch = world.subscribes ? NULL : fetch,
        .subscribe = world.subscribes ? subscribe : NULL,
        .push = push,
        .apply = apply,
        .merge = merge,
        .ttl = hf_nanoseconds(world.ttl),
        .stale_max = hf_nanoseconds(world.stale_max),
        .bytes_max = chance(rng, 60) ? 1500 : 0,
        .fetch_max = chance(rng, 30) ? 2 : 0,
        .send_max = chance(rng, 30) ? 1 : 0,
        .refresh_max = chance(rng, 30) ? 1 : 0,
        .fetch_many = has_many ? fetch_many : NULL,
        .batch_window = has_many && chance(rng, 30) ? hf_milliseconds(20) : hf_nanoseconds(0),
        .source = world.has_hooks ? &hooks : NULL,
    };
    return hf_depot_open_in("model", &world.depot, &options,
                            world.has_store && !world.has_hooks ? &world.store.base : NULL);
}

/* Whether the depot cannot know the name: the answer to the create was lost, and the create then dropped. */
static bool is_lost(int key)
{
    hf_depot_key_bytes bytes;
    hf_op bad;
    hf_op_init(&bad);
    if (!is_made(key) || world.made[key - KEYS].is_final) {
        return false;
    }
    const created *one = &world.made[key - KEYS];
    HF_CHECK(hf_depot_key_pack(&bad, hf_depot_key_of(SPACES[0], "t", one->old), &bytes) == HF_OK);
    hf_str old = hf_str_of_len(bytes.bytes, bytes.len);
    return strcmp(one->old, one->name) != 0 && hf_alias_follow(world.depot, old).data == old.data;
}

/* A key that is in the list, or in a list in it, as they are at hand; -1 = none. */
static int any_member(int list, int depth)
{
    hf_value *value = NULL;
    int found = -1;
    hf_status status = hf_depot_get(world.depot, key_of(list), &value, .fresh = HF_FRESH_LOCAL);
    text members = text_of_value(value);
    for (size_t i = 0; status == HF_OK && found < 0 && i < members.len / TOKEN_LEN; i++) {
        int member = member_of(&members, i);
        found = !is_list(member) ? member : depth < LISTS ? any_member(member, depth + 1) : -1;
    }
    hf_value_unref(value);
    return found;
}

/* Who watches a list hears of a change of each member (DP4). */
static void judge_list_watcher(int list, hf_watcher *watcher)
{
    hf_depot_event event;
    int member = any_member(list, 1);
    watched seen = {.key = list};
    while (hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(1)) == HF_OK) {
        see(&seen, &event);
    }
    if (member >= 0) {
        op *one = op_new(OP_WRITE, member);
        (void)snprintf(one->token, sizeof one->token, "%04u", world.token_next++ % 10000);
        hf_status status = hf_depot_put(world.depot, key_of(member), one->token, TOKEN_LEN);
        op_end(one, status);
        status = status == HF_OK ? hf_watcher_next(watcher, &event, .timeout = hf_seconds(1)) : status;
        if (HF_CHECK_SAY(status == HF_OK, "DP4 key %d: a list watcher has not heard of key %d: %s", list, member,
                         hf_status_name(status))) {
            HF_CHECK(event.kind == HF_DEPOT_DATA);
            see(&seen, &event);
        }
    }
}

/* Everything settles: what is left is judged. */
static void settle(void)
{
    world.is_last = true;
    world.is_down = false;
    world.offline = false;
    HF_CHECK(hf_depot_online(world.depot, true) == HF_OK);
    hf_watcher *watchers[ALL] = {NULL};
    watched seen[ALL] = {0};
    for (int key = 0; key < ALL; key++) {
        seen[key].key = key;
        if (is_made(key) && !world.made[key - KEYS].is_known) {
            continue;
        }
        HF_CHECK(hf_depot_watch(world.depot, key_of(key), &watchers[key], .fresh = HF_FRESH_LOCAL, .capacity = 3,
                                .mode = key % 2 == 0 ? HF_FLOW_CONFLATE : HF_FLOW_DROP_OLDEST) == HF_OK);
    }
    hf_watcher *of_lists[LISTS] = {NULL};
    for (int i = 0; i < LISTS; i++) {
        HF_CHECK(hf_depot_list_watch(world.depot, key_of(KEYS_ALL + i), &of_lists[i], .fresh = HF_FRESH_LOCAL) ==
                 HF_OK);
    }
    HF_CHECK(hf_sleep(hf_minutes(15)) == HF_OK);
    looking left = look();
    HF_CHECK_SAY(left.live == 0, "DP6 %d writes are left", left.live);
    hf_depot_counts counts;
    HF_CHECK(hf_depot_stat(world.depot, &counts) == HF_OK);
    HF_CHECK_SAY(counts.flights == 0 && counts.breakers_open == 0, "DP10 a permit was lost, or a fetch does not end");
    HF_CHECK_SAY(counts.damaged == 0, "DP9 %d records are damaged", (int)counts.damaged);
    world.deaths += (uint64_t)left.dead;
    for (int i = 0; i < world.op_count; i++) {
        const op *one = &world.ops[i];
        if (one->kind == OP_WRITE && one->status == HF_OK) {
            HF_CHECK_SAY(is_covered(one, COVER_ANSWERED), "DP6 the write of %s (key %d) was acknowledged and is lost",
                         one->token, one->key);
        }
    }
    for (int key = 0; key < ALL; key++) {
        if (watchers[key] == NULL) {
            continue;
        }
        hf_value *value = NULL;
        hf_depot_info info = {0};
        asked ask = {.key = key, .fresh = HF_FRESH_NOW, .start = tick(), .at = now()};
        hf_status status =
            hf_depot_get(world.depot, key_of(key), &value, .fresh = HF_FRESH_NOW, .force = true, .ret_info = &info);
        text got = text_of_value(value);
        if (status == HF_OK) {
            judge_value(&ask, &got, &info);
            HF_CHECK(is_same(&got, &world.state[key]));
        } else {
            HF_CHECK_SAY(status == HF_ERR_NOT_FOUND && (!world.exists[key] || was_deleted(&ask) || is_lost(key)),
                         "at the end, key %d: %s", key, hf_status_name(status));
        }
        hf_depot_event event;
        while (hf_watcher_next(watchers[key], &event, .timeout = hf_milliseconds(1)) == HF_OK) {
            see(&seen[key], &event);
        }
        HF_CHECK_SAY(seen[key].has_value == (value != NULL) && (value == NULL || is_same(&got, &seen[key].value)),
                     "DP4 key %d: the watcher has not seen the last value", key);
        hf_value_unref(value);
        HF_CHECK(hf_watcher_close(watchers[key]) == HF_OK);
    }
    for (int i = 0; i < LISTS; i++) {
        judge_list_watcher(KEYS_ALL + i, of_lists[i]);
        HF_CHECK(hf_watcher_close(of_lists[i]) == HF_OK);
    }
    (void)look();
}

/* The origin has accepted the write of this push before: it is sent again because the answer was lost with the power. */
static bool is_repetition(int push)
{
    for (int i = 0; i < push; i++) {
        if (world.pushes[i].accepted != 0 && strcmp(world.pushes[i].id, world.pushes[push].id) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes of a key that did not overlap arrive in their order. */
static void judge_order(void)
{
    for (int i = 0; i < world.push_count; i++) {
        for (int j = 0; j < i && !is_repetition(i); j++) { /* j arrived first */
            const pushed *late = &world.pushes[i];
            const pushed *early = &world.pushes[j];
            if (late->key != early->key || (late->verb != HF_WRITE_REPLACE && late->verb != HF_WRITE_CREATE) ||
                (early->verb != HF_WRITE_REPLACE && early->verb != HF_WRITE_CREATE) || late->data.len != TOKEN_LEN ||
                early->data.len != TOKEN_LEN || strcmp(late->id, early->id) == 0) {
                continue;
            }
            const op *of_late = NULL;
            const op *of_early = NULL;
            for (int k = 0; k < world.op_count; k++) {
                const op *one = &world.ops[k];
                of_late = one->kind == OP_WRITE && has(&late->data, one->token) ? one : of_late;
                of_early = one->kind == OP_WRITE && has(&early->data, one->token) ? one : of_early;
            }
            if (!HF_CHECK_SAY(of_late == NULL || of_early == NULL || of_late->is_by_hand || of_late->status != HF_OK ||
                                  of_late->end > of_early->start,
                              "DP6 key %d: %s arrived after %s, but was written before it", late->key, late->data.bytes,
                              early->data.bytes)) {
                tell_story(late->key);
            }
        }
    }
}

/* ---- The disk ---------------------------------------------------------------------------------------------------- */

static void power_goes(void *state, uint64_t number, hf_vfs_op_kind kind, const char *file)
{
    (void)state;
    (void)number;
    (void)kind;
    (void)file;
    if (world.power_left > 0 && --world.power_left == 0) {
        hf_env *env = world.depot->rt->env; /* this is the thread of the store */
        hf_vfs_power_off(world.disk);
        world.is_dark = true;
        world.dark_at = env->ops->now(env).ns;
    }
}

static void open_store(void)
{
    hf_op opening;
    hf_op_init(&opening);
    hf_allocator memory = hf_env_memory(hf_env_posix());
    world.store = (lent){.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    if (world.disk == NULL) {
        HF_CHECK(hf_mem_store_open(&opening, memory, &hf_depot_tables, &world.store.inner) == HF_OK);
        return;
    }
    hf_sqlite_options options = {.tables = &hf_depot_tables,
                                 .vfs = hf_vfs_name(world.disk),
                                 .cache_len = 64 * 1024,
                                 .log_len_max = 64 * 1024,
                                 .reread = hf_vfs_reread,
                                 .reread_state = world.disk};
    hf_status status = hf_sqlite_open(&opening, memory, "depot.db", &options, &world.store.inner);
    HF_CHECK_SAY(status == HF_OK, "DP9 the file does not open: %s", opening.message);
}

/* The depot is closed. What is left of the disk is opened. */
static void restore_power(hf_rng *rng)
{
    if (!world.is_dark) {
        hf_vfs_power_off(world.disk);
        world.dark_at = now();
    }
    for (int i = 0; i < world.push_count; i++) { /* these answers could not be kept */
        pushed *one = &world.pushes[i];
        one->told_at = one->told_at >= world.dark_at ? 0 : one->told_at;
    }
    hf_store_close(world.store.inner);
    hf_vfs_image(world.disk, (hf_crash_mode)hf_rng_below(rng, HF_CRASH_MODE_COUNT), rng, world.disk);
    world.is_dark = false;
    world.power_left = 0;
    world.outages++;
    open_store();
}

static void run_round(hf_rng *rng, bool is_cut)
{
    hf_scope *scope = NULL; /* opened before the depot, so that the depot can be closed under its fibers */
    HF_CHECK(hf_scope_open(&scope, .join = HF_JOIN_DISCARD) == HF_OK);
    HF_CHECK(open_depot(rng) == HF_OK);
    world.offline = false;
    world.power_left = is_cut && world.disk != NULL ? 1 + hf_rng_below(rng, 120) : 0;
    int count = 2 + (int)hf_rng_below(rng, ACTORS_MAX - 1);
    for (int i = 0; i < count; i++) {
        world.actors[i] = (actor){.rng = {.state = hf_rng_next(rng)}, .number = i};
        HF_CHECK(hf_fork(scope, act, &world.actors[i]) == HF_OK);
    }
    if (is_cut) {
        HF_IGNORE(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(rng, 8000))));
    } else {
        HF_IGNORE(hf_join(scope));
        settle();
        judge_order();
    }
    world.is_closing = true;
    HF_IGNORE(hf_sleep(
        hf_milliseconds(1))); /* calls that have begun are inside now: those that wait are ended by the close */
    if (is_cut && chance(rng, 30)) {
        world.is_canceled = true;
        HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    }
    HF_CHECK(hf_depot_close(world.depot) == HF_OK);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    world.is_closing = world.is_canceled = false;
    if (is_cut && world.disk != NULL) {
        restore_power(rng);
    }
}

static hf_status root(void *arg)
{
    hf_rng *rng = arg;
    world.has_store = chance(rng, 75) || world.disk != NULL;
    world.has_hooks = world.has_store && world.disk == NULL && chance(rng, 40);
    world.subscribes = chance(rng, 15);
    open_store();
    int rounds = world.has_store ? (int)hf_rng_below(rng, 3) : 0;
    rounds += world.disk != NULL;
    for (int i = 0; i < rounds; i++) {
        run_round(rng, true);
        world.reopened++;
    }
    run_round(rng, false);
    hf_store_close(world.store.inner);
    return HF_OK;
}

static uint64_t totals[14];
static bool with_disk;

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    if (with_disk) {
        world.disk = hf_vfs_new("disk", seed);
        hf_vfs_seed_sqlite(seed);
        hf_vfs_on_op(world.disk, power_goes, NULL);
    }
    hf_rng rng = {.state = hf_hash_mix(161, seed)};
    world.rng.state = hf_rng_next(&rng);
    world.ttl = (int64_t)(1 + hf_rng_below(&rng, 20)) * SECOND;
    world.stale_max = world.ttl * (int64_t)(1 + hf_rng_below(&rng, 4));
    world.trouble_at = -1000 * SECOND;
    for (int key = 0; key < ALL; key++) {
        if (is_made(key)) {
            continue;
        }
        char token[TOKEN_LEN + 1];
        (void)snprintf(token, sizeof token, "%04u", world.token_next++ % 10000);
        text value = is_list(key) ? any_list(&rng) : text_of(token, TOKEN_LEN);
        set_state(key, chance(&rng, 80) ? &value : NULL);
    }
    uint64_t hash = 0;
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 4), root, &rng, &hash) == HF_OK);
    HF_CHECK(hf_sim_errors_logged() == 0 || world.outages > 0);
    hf_vfs_free(world.disk);
    uint64_t counts[] = {world.fetches, world.gets,     world.writes,  world.conflicts,    world.watched,
                         world.deaths,  world.reopened, world.moved,   world.lagged,       world.outages,
                         world.batches, world.lists,    world.records, world.subscriptions};
    for (size_t i = 0; i < HF_COUNT_OF(counts); i++) {
        totals[i] += counts[i];
    }
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 50 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "the same seed gave another trace");
    }
}

static void run_seeds(const char *what, uint64_t count)
{
    memset(totals, 0, sizeof totals);
    hf_each_seed(what, count, one_seed);
    print_message(
        "fetches %llu, gets %llu, writes %llu, conflicts %llu, watchers %llu, dead %llu, reopened %llu, moved %llu, "
        "lagged %llu, power cuts %llu, batches %llu, lists %llu, records %llu, subscriptions %llu\n",
        (unsigned long long)totals[0], (unsigned long long)totals[1], (unsigned long long)totals[2],
        (unsigned long long)totals[3], (unsigned long long)totals[4], (unsigned long long)totals[5],
        (unsigned long long)totals[6], (unsigned long long)totals[7], (unsigned long long)totals[8],
        (unsigned long long)totals[9], (unsigned long long)totals[10], (unsigned long long)totals[11],
        (unsigned long long)totals[12], (unsigned long long)totals[13]);
}

static void depots_do_what_their_twin_says(void **state)
{
    (void)state;
    with_disk = false;
    run_seeds("depots", 50000);
}

static void depots_lose_nothing_when_the_power_goes(void **state)
{
    (void)state;
    with_disk = true;
    run_seeds("depots on a disk without power", 3000);
}

#ifdef HF_CANARIES
#define IS_CANARY true
#else
#define IS_CANARY false
#endif

/* Seeds that failed once: all but the last because of the twin, which did not know this. */
static const uint64_t SEEDS_KEPT[] = {
    10048877, /* a subscription that was replaced ended after the next one had begun, in the same moment */
    10428105, /* two calls told the depot at once that it is online, and that it is not */
    10490463, /* the same */
    10741118, /* the same */
    10477217, /* a value was read while the answer to a write was being written to the user's source */
    10665889, /* a get that wanted no older value joined a flight whose answer was being written there */
    10841560, /* a fetch that a record had overtaken was ended as if its key had been invalidated once more */
};

static void seeds_that_failed_once_do_not_fail_again(void **state)
{
    (void)state;
    if (IS_CANARY) {
        skip();
    }
    with_disk = false;
    for (size_t i = 0; i < HF_COUNT_OF(SEEDS_KEPT) && hf_checks_failed() == 0; i++) {
        print_message("seed %llu\n", (unsigned long long)SEEDS_KEPT[i]);
        (void)run(SEEDS_KEPT[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(depots_do_what_their_twin_says),
        cmocka_unit_test(seeds_that_failed_once_do_not_fail_again),
        cmocka_unit_test(depots_lose_nothing_when_the_power_goes),
    };
    return hf_test_main("depot_model", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
