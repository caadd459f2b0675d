/* A depot on a simulated disk that loses its power or fails its calls, and what must be true of what is left.
 *
 * A program of one fiber gets, writes and invalidates three keys of a depot whose file lies on the disk (support/vfs.h);
 * fetches and sends go on beside it. No two writes have the same token, so a value tells where it came from. The book
 * is what the world outside remembers, whatever becomes of the disk:
 *
 *     op      a write or an invalidation of the program: when it began, when it was acknowledged
 *     proof   a value that the origin had: for which key, from when on
 *     push    a write that arrived there, and how it was answered
 *
 * All of them carry ticks. What is left of the disk at tick t is judged by what had happened until t (disk_judge). */
#ifndef HF_TESTS_DEPOT_DISK_H
#define HF_TESTS_DEPOT_DISK_H

#include "depot/outbox.h"
#include "rig.h"

#include "support/vfs.h"

#include "base/rng.h"
#include "store/sqlite/sqlite.h"

enum { DISK_KEYS = 3, DISK_OPS = 200, DISK_PROOFS = 2000, DISK_PUSHES = 2000, TOKEN_LEN = 5 };

typedef enum disk_kind { DISK_PUT, DISK_DELETE, DISK_SOFT, DISK_HARD } disk_kind;

typedef struct disk_op {
    disk_kind kind;
    int key; /* -1 = all keys */
    char token[TOKEN_LEN + 1];
    uint64_t start, end; /* ticks; end 0 = not acknowledged */
    int64_t made_at;
    hf_status status; /* HF_ERR_AGAIN = under way */
} disk_op;

typedef struct disk_proof {
    int key;
    char token[TOKEN_LEN + 1];
    uint64_t start, end; /* the origin was asked, and answered */
} disk_proof;

typedef struct disk_push {
    int key;
    char token[TOKEN_LEN + 1]; /* "" = a delete */
    char id[HF_WRITE_ID_LEN];
    uint64_t tick;
    bool is_final; /* it was accepted or refused, not put off */
} disk_push;

/* Numbers of writes that the program has seen: `number` is the largest one, from this tick on. */
typedef struct disk_number {
    uint64_t tick, number;
} disk_number;

static struct {
    hf_rng rng; /* of the program */
    uint64_t tick;
    unsigned token_next;
    char state[DISK_KEYS][TOKEN_LEN + 1]; /* of the origin; "" = none */
    disk_op ops[DISK_OPS];
    int op_count;
    disk_proof proofs[DISK_PROOFS];
    int proof_count;
    disk_push pushes[DISK_PUSHES];
    int push_count;
    disk_number numbers[DISK_OPS];
    int number_count;
    bool is_down;   /* the origin */
    bool is_steady; /* it always accepts */
    bool coalesces;
} book;

static const char *const DISK_IDS[DISK_KEYS] = {"k0", "k1", "k2"};

static inline uint64_t disk_tick(void)
{
    return ++book.tick;
}

static inline bool disk_chance(int percent)
{
    return (int)hf_rng_below(&book.rng, 100) < percent;
}

static inline void disk_new_token(char token[TOKEN_LEN + 1])
{
    (void)snprintf(token, TOKEN_LEN + 1, "%05u", ++book.token_next % 100000);
}

static inline int disk_key_of(hf_depot_key key)
{
    return ((const char *)key.id)[1] - '0';
}

/* ---- Numbers of writes ------------------------------------------------------------------------------------------- */

/* The largest number among the writes that wait; 0 = none does. */
static inline uint64_t disk_number_last(const hf_depot *depot)
{
    uint64_t last = 0;
    HF_LIST_EACH(node, &depot->rows)
    {
        uint64_t number = HF_CONTAINER(node, hf_pending, in_all)->sequence;
        last = number > last ? number : last;
    }
    return last;
}

static inline void disk_note_number(const hf_depot *depot)
{
    uint64_t number = disk_number_last(depot);
    uint64_t before = book.number_count > 0 ? book.numbers[book.number_count - 1].number : 0;
    if (number > before && HF_CHECK(book.number_count < DISK_OPS)) {
        book.numbers[book.number_count++] = (disk_number){.tick = disk_tick(), .number = number};
    }
}

/* A new write gets a number that nobody had seen at tick `at`. */
static inline hf_status disk_judge_number(hf_depot *depot, uint64_t at)
{
    uint64_t seen = 0;
    for (int i = 0; i < book.number_count && book.numbers[i].tick <= at; i++) {
        seen = book.numbers[i].number;
    }
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, rig_key("n"), "new", 3));
    uint64_t number = disk_number_last(depot);
    HF_CHECK_SAY(number > seen, "DP6 a new write gets number %d, and %d was seen", (int)number, (int)seen);
    return hf_depot_drop(depot, number);
}

/* ---- The origin -------------------------------------------------------------------------------------------------- */

static inline void disk_prove(int key, const char *token, uint64_t start)
{
    if (token[0] != '\0' && HF_CHECK(book.proof_count < DISK_PROOFS)) {
        disk_proof *one = &book.proofs[book.proof_count++];
        *one = (disk_proof){.key = key, .start = start, .end = disk_tick()};
        memcpy(one->token, token, sizeof one->token);
    }
}

static inline hf_status disk_fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    int key = disk_key_of(request->key);
    uint64_t start = disk_tick();
    if (disk_chance(60)) {
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&book.rng, 200))));
    }
    if (book.is_down || (!book.is_steady && disk_chance(10))) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    if (book.state[key][0] == '\0') {
        return HF_ERR_NOT_FOUND;
    }
    disk_prove(key, book.state[key], start);
    if (request->etag != NULL && strcmp(request->etag, book.state[key]) == 0 && disk_chance(70)) {
        return hf_reply_not_modified(reply);
    }
    HF_TRY(hf_reply_etag(reply, book.state[key]));
    return hf_reply_value(reply, book.state[key], TOKEN_LEN);
}

static inline hf_status disk_push_one(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    int key = disk_key_of(request->key);
    if (!HF_CHECK(book.push_count < DISK_PUSHES)) {
        return HF_ERR_LIMIT;
    }
    disk_push *one = &book.pushes[book.push_count++];
    *one = (disk_push){.key = key, .tick = disk_tick()};
    if (request->len == TOKEN_LEN) {
        memcpy(one->token, request->data, TOKEN_LEN);
    }
    memcpy(one->id, request->id, sizeof one->id);
    for (int i = 0; i < book.push_count - 1; i++) { /* the same write has the same id, and no two have one */
        const disk_push *other = &book.pushes[i];
        bool is_same = strcmp(other->id, one->id) == 0;
        HF_CHECK_SAY(is_same || one->token[0] == '\0' || strcmp(other->token, one->token) != 0 || book.coalesces,
                     "DP6 %s has two ids", one->token);
        HF_CHECK_SAY(!is_same || (other->key == key && (book.coalesces || strcmp(other->token, one->token) == 0)),
                     "DP6 one id, two writes: %s and %s", other->token, one->token);
    }
    if (disk_chance(60)) {
        HF_TRY(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&book.rng, 200))));
    }
    if (book.is_down || (!book.is_steady && disk_chance(15))) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    one->is_final = true;
    if (!book.is_steady && disk_chance(15) && book.state[key][0] != '\0') {
        HF_TRY(hf_reply_etag(reply, book.state[key]));
        HF_TRY(hf_reply_value(reply, book.state[key], TOKEN_LEN));
        disk_prove(key, book.state[key], disk_tick());
        return HF_ERR_CONFLICT;
    }
    if (!book.is_steady && disk_chance(5)) {
        return hf_reply_fail(reply, HF_REPLY_DENIED);
    }
    memcpy(book.state[key], one->token, sizeof one->token);
    disk_prove(key, one->token, disk_tick());
    return HF_OK;
}

/* ---- Judging ----------------------------------------------------------------------------------------------------- */

/* Nothing from before this tick may be seen of the key at tick `at` (DP3). */
static inline uint64_t disk_earliest(int key, uint64_t at)
{
    uint64_t first = 0;
    for (int i = 0; i < book.op_count; i++) {
        const disk_op *one = &book.ops[i];
        if ((one->kind == DISK_SOFT || one->kind == DISK_HARD) && (one->key < 0 || one->key == key) && one->end != 0 &&
            one->end <= at && one->start > first) {
            first = one->start;
        }
    }
    return first;
}

/* A value that a depot shows: the origin had it, since the last invalidation; or it is a write that was begun. */
static inline void disk_judge_value(int key, const hf_value *value, bool is_pending, uint64_t at, const char *when)
{
    char token[TOKEN_LEN + 1] = "";
    bool is_known = false;
    bool is_new = false;
    if (HF_CHECK_SAY(hf_value_len(value) == TOKEN_LEN, "DP9 %s: a value of %zu bytes", when, hf_value_len(value))) {
        memcpy(token, hf_value_data(value), TOKEN_LEN);
    }
    uint64_t first = disk_earliest(key, at);
    for (int i = 0; i < book.proof_count && !is_pending; i++) {
        const disk_proof *one = &book.proofs[i];
        if (one->key == key && one->end <= at && strcmp(one->token, token) == 0) {
            is_known = true;
            is_new = is_new || one->start >= first;
        }
    }
    for (int i = 0; i < book.op_count && is_pending; i++) {
        const disk_op *one = &book.ops[i];
        bool is_refused = one->status == HF_ERR_IO || one->status == HF_ERR_FULL;
        if (one->kind == DISK_PUT && one->key == key && one->start <= at && !is_refused &&
            strcmp(one->token, token) == 0) {
            is_known = is_new = true;
        }
    }
    HF_CHECK_SAY(is_known, "DP9 %s: key %d is '%s', which %s", when, key, token,
                 is_pending ? "nobody wrote" : "the origin never said");
    HF_CHECK_SAY(!is_known || is_new, "DP3 %s: key %d is '%s', from before an invalidation", when, key, token);
}

static inline bool disk_has_token(const disk_op *one, int key, const char *token)
{
    if (one->key != key) {
        return false;
    }
    if (one->kind == DISK_DELETE || token[0] == '\0') {
        return one->kind == DISK_DELETE && token[0] == '\0';
    }
    for (int i = 0; i < book.op_count && book.coalesces; i++) { /* a later one may have taken its place */
        const disk_op *later = &book.ops[i];
        if (later->kind == DISK_PUT && later->key == key && later->start > one->start &&
            later->made_at - one->made_at <= hf_milliseconds(150).ns && strcmp(later->token, token) == 0) {
            return true;
        }
    }
    return strcmp(one->token, token) == 0;
}

/* Whether the origin has answered the write, before `at` or after the reopening (from push `since` on). */
static inline bool disk_is_answered(const disk_op *one, uint64_t at, int since)
{
    for (int i = 0; i < book.push_count; i++) {
        const disk_push *push = &book.pushes[i];
        if (push->is_final && (push->tick <= at || i >= since) && push->tick > one->start &&
            disk_has_token(one, push->key, push->token)) {
            return true;
        }
    }
    return false;
}

/* DP5: what is visible is the last write that waits, or else the base. */
static inline void disk_judge_fold(hf_depot *depot, int key, const hf_value *visible, bool is_pending)
{
    const hf_pending *last = NULL;
    HF_LIST_EACH(node, &depot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        hf_depot_key parts;
        if (hf_depot_key_unpack(hf_slot_key(row->slot), &parts) && disk_key_of(parts) == key &&
            hf_pending_is_folded(row)) {
            last = row;
        }
    }
    HF_CHECK_SAY((last != NULL) == is_pending || visible == NULL, "DP5 key %d: is_pending", key);
    if (last != NULL) {
        bool is_same = last->data == NULL
                           ? visible == NULL
                           : visible != NULL && hf_value_len(visible) == hf_value_len(last->data) &&
                                 memcmp(hf_value_data(visible), hf_value_data(last->data), hf_value_len(visible)) == 0;
        HF_CHECK_SAY(is_same, "DP5 key %d does not show its last write", key);
    }
}

static inline hf_status disk_open(hf_vfs *disk, hf_depot **ret_depot)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    hf_sqlite_options options = {.tables = &hf_depot_tables,
                                 .vfs = hf_vfs_name(disk),
                                 .cache_len = 64 * 1024,
                                 .log_len_max = 48 * 1024,
                                 .reread = hf_vfs_reread,
                                 .reread_state = disk};
    HF_TRY(hf_sqlite_open(&op, hf_env_memory(hf_env_posix()), "depot.db", &options, &store));
    hf_depot_options how = {.size = sizeof how,
                            .fetch = disk_fetch,
                            .push = disk_push_one,
                            .ttl = hf_seconds(5),
                            .retries = HF_OFF,
                            .bytes_max = 2000,
                            .coalesce = book.coalesces ? hf_nanoseconds(0) : HF_SPAN_OFF};
    return hf_depot_open_in("disk", ret_depot, &how, store);
}

/* Opens what is left of a disk at tick `at`, and judges it: DP9, DP3, DP5, DP6. As the first fiber of a run. */
static inline hf_status disk_judge(hf_vfs *disk, uint64_t at)
{
    hf_depot *depot = NULL;
    int since = book.push_count;
    book.is_down = book.is_steady = true;
    hf_status status = disk_open(disk, &depot);
    if (!HF_CHECK_SAY(status == HF_OK, "DP9 what is left does not open: %s", hf_status_name(status))) {
        return HF_OK;
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    for (int key = 0; key < DISK_KEYS; key++) {
        hf_value *value = NULL;
        hf_depot_info info = {0};
        status = hf_depot_get(depot, rig_key(DISK_IDS[key]), &value, .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOT_FOUND, "DP9 key %d: %s", key, hf_status_name(status));
        if (status == HF_OK) {
            disk_judge_value(key, value, info.is_pending, at, "after a restart");
        }
        disk_judge_fold(depot, key, value, info.is_pending);
        hf_value_unref(value);
    }
    HF_CHECK_SAY(rig_counts(depot).damaged == 0, "DP9 a record is damaged");
    book.is_down = false;
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_minutes(2)));
    hf_depot_counts counts = rig_counts(depot);
    int dead = 0;
    HF_LIST_EACH(node, &depot->rows)
    {
        dead += HF_CONTAINER(node, hf_pending, in_all)->state == HF_ROW_DEAD;
    }
    HF_CHECK_SAY(counts.pending == (uint64_t)dead, "DP6 %d writes are not sent", (int)counts.pending - dead);
    for (int i = 0; i < book.op_count; i++) {
        const disk_op *one = &book.ops[i];
        bool is_write = one->kind == DISK_PUT || one->kind == DISK_DELETE;
        if (is_write && one->end != 0 && one->end <= at) {
            HF_CHECK_SAY(disk_is_answered(one, at, since), "DP6 write %s of key %d was acknowledged and is lost",
                         one->token, one->key);
        }
    }
    const char *last[DISK_KEYS] = {"", "", ""};
    for (int i = since; i < book.push_count; i++) { /* tokens rise, so order can be seen */
        const disk_push *push = &book.pushes[i];
        if (push->token[0] != '\0') {
            HF_CHECK_SAY(strcmp(push->token, last[push->key]) >= 0, "DP6 %s after %s", push->token, last[push->key]);
            last[push->key] = push->token;
        }
    }
    HF_TRY(disk_judge_number(depot, at));
    return hf_depot_close(depot);
}

#endif
