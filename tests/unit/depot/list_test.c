/* Lists of keys, and what replies bring besides their own value: on virtual time. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "depot/window.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin of lists and users -------------------------------------------------------------------------------- */

/* A list "L" of "a,b,@M": the users a and b, and the list M. */
typedef struct listed {
    const char *id;
    const char *members;
    const char *brings; /* "a=1,b~2": records of its reply; ~ says partial. NULL = none */
} listed;

typedef struct origin {
    listed lists[12];
    const char *users[8][2]; /* id, value; the user "denied" is refused, all others do not exist */
    hf_span list_takes, user_takes;
    const char *last_modified; /* of records */
    bool is_push_down;
    const char *answers; /* to a push */
    int list_fetches, user_fetches;
    hf_status add_status; /* of the last hf_reply_add that failed */
} origin;

static hf_depot_key user_key(const char *id)
{
    return hf_depot_key_of("people", "user", id);
}

static hf_depot_key list_key(const char *id)
{
    return hf_depot_key_of("acme", "list", id);
}

static const listed *list_of(const origin *o, const hf_depot_key *key)
{
    for (size_t i = 0; i < HF_COUNT_OF(o->lists) && o->lists[i].id != NULL; i++) {
        if (strlen(o->lists[i].id) == key->id_len && memcmp(o->lists[i].id, key->id, key->id_len) == 0) {
            return &o->lists[i];
        }
    }
    return NULL;
}

/* The next word of "a,b,c"; false: none is left. */
static bool next_word(const char **at, char *word, size_t capacity)
{
    size_t len = strcspn(*at, ",");
    if (len == 0 || len >= capacity) {
        return false;
    }
    memcpy(word, *at, len);
    word[len] = '\0';
    *at += len + ((*at)[len] == ',');
    return true;
}

static hf_status reply_list(origin *o, const listed *list, hf_reply *reply)
{
    char words[40][16];
    hf_depot_key keys[40];
    size_t count = 0;
    const char *at = list->members;
    while (count < HF_COUNT_OF(keys) && next_word(&at, words[count], sizeof words[count])) {
        keys[count] = words[count][0] == '@' ? list_key(words[count] + 1) : user_key(words[count]);
        count++;
    }
    char record[16];
    at = list->brings != NULL ? list->brings : "";
    while (next_word(&at, record, sizeof record)) {
        char *value = strpbrk(record, "=~");
        bool is_partial = *value == '~';
        *value++ = '\0';
        hf_status status = hf_reply_add(reply, user_key(record), value, strlen(value), .partial = is_partial,
                                        .last_modified = o->last_modified);
        o->add_status = status != HF_OK ? status : o->add_status;
    }
    return hf_reply_list(reply, keys, count);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    if (strcmp(request->key.type, "list") == 0) {
        o->list_fetches++;
        listed list = {0};
        const listed *found = list_of(o, &request->key);
        if (found != NULL) {
            list = *found; /* as it was when the question arrived */
        }
        HF_TRY(hf_sleep(o->list_takes));
        return found != NULL ? reply_list(o, &list, reply) : HF_ERR_NOT_FOUND;
    }
    o->user_fetches++;
    HF_TRY(hf_sleep(o->user_takes));
    if (request->key.id_len == 6 && memcmp(request->key.id, "denied", 6) == 0) {
        return hf_reply_fail(reply, HF_REPLY_DENIED);
    }
    for (size_t i = 0; i < HF_COUNT_OF(o->users) && o->users[i][0] != NULL; i++) {
        if (strlen(o->users[i][0]) == request->key.id_len &&
            memcmp(o->users[i][0], request->key.id, request->key.id_len) == 0) {
            return hf_reply_value(reply, o->users[i][1], strlen(o->users[i][1]));
        }
    }
    return HF_ERR_NOT_FOUND;
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)request;
    if (o->is_push_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    o->add_status = hf_reply_add(reply, user_key("z"), "z", 1); /* not for pushers */
    return o->answers != NULL ? hf_reply_value(reply, o->answers, strlen(o->answers)) : HF_OK;
}

/* What is at hand, then what comes. */
static hf_status append(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                        hf_value **ret_value)
{
    (void)state;
    HF_CHECK(base == NULL);
    char text[32];
    size_t len = mine != NULL ? hf_value_len(mine) : 0;
    memcpy(text, mine != NULL ? hf_value_data(mine) : "", len);
    memcpy(text + len, hf_value_data(theirs), hf_value_len(theirs));
    return hf_value_copy(text, len + hf_value_len(theirs), ret_value);
}

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("people", ret_depot, .fetch = fetch, .push = push, .merge = append, .state = o,
                         .coalesce = HF_SPAN_OFF));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

/* "a=1 @M .c=3 x=- f=?DENIED": a dot for each level, ! for a list that is cut, - for none, ? for a failure. */
static void describe(const hf_items *items, char *text, size_t capacity)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < hf_items_count(items); i++) {
        const hf_item *item = hf_items_at(items, i);
        static const char DOTS[] = "........";
        bool is_list = strcmp(item->key.type, "list") == 0;
        len += (size_t)snprintf(text + len, capacity - len, "%s%.*s%s%.*s", i > 0 ? " " : "", (int)item->depth - 1,
                                DOTS, is_list ? "@" : "", (int)item->key.id_len, (const char *)item->key.id);
        if (item->is_list) {
            len += (size_t)snprintf(text + len, capacity - len, "%s", item->is_cut ? "!" : "");
        } else if (item->value != NULL) {
            len += (size_t)snprintf(text + len, capacity - len, "=%.*s", (int)hf_value_len(item->value),
                                    (const char *)hf_value_data(item->value));
        } else {
            len += (size_t)snprintf(text + len, capacity - len, "=%s",
                                    item->status == HF_ERR_NOT_FOUND ? "-" : hf_status_name(item->status));
        }
        if (len >= capacity) {
            return;
        }
    }
}

#define LIST(depot, id, expected, ...)                                                                                \
    do {                                                                                                              \
        HF_AUTO(hf_items_free) hf_items *items_ = NULL;                                                               \
        char text_[1000];                                                                                             \
        hf_status status_ = hf_depot_list(depot, list_key(id), &items_, __VA_ARGS__);                                 \
        describe(items_, text_, sizeof text_);                                                                        \
        HF_CHECK_SAY(status_ == HF_OK && strcmp(text_, expected) == 0, "%d: list %s is '%s', not '%s': %s", __LINE__, \
                     id, text_, expected, hf_status_name(status_));                                                   \
    } while (0)

/* The user as it is at hand, "-" = none. */
#define USER(depot, id, expected)                                                                                 \
    do {                                                                                                          \
        HF_AUTO(hf_value_unref) hf_value *value_ = NULL;                                                          \
        hf_status status_ = hf_depot_get(depot, user_key(id), &value_, .fresh = HF_FRESH_LOCAL);                  \
        HF_CHECK_SAY((status_ == HF_ERR_NOT_FOUND && strcmp(expected, "-") == 0) ||                               \
                         (status_ == HF_OK && hf_value_len(value_) == strlen(expected) &&                         \
                          memcmp(hf_value_data(value_), expected, strlen(expected)) == 0),                        \
                     "%d: user %s is not '%s' but '%.*s': %s", __LINE__, id, expected, (int)hf_value_len(value_), \
                     value_ != NULL ? (const char *)hf_value_data(value_) : "", hf_status_name(status_));         \
    } while (0)

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static const struct {
    listed lists[12];
    const char *expected;
} READINGS[] = {
    {{{"L", "a,b", NULL}}, "a=1 b=2"},
    {{{"L", "", NULL}}, ""},
    {{{"L", "a,nobody,b", NULL}}, "a=1 nobody=- b=2"},
    {{{"L", "a,denied", NULL}}, "a=1 denied=HF_ERR_DENIED"},
    {{{"L", "a,a", NULL}}, "a=1 a=1"},
    {{{"L", "b,a", "a=7"}}, "b=2 a=7"},
    {{{"L", "a,@M,b", NULL}, {"M", "c", NULL}}, "a=1 @M .c=3 b=2"},
    {{{"L", "@M,@N", NULL}, {"M", "a", NULL}, {"N", "@O,b", NULL}, {"O", "c", NULL}}, "@M .a=1 @N .@O ..c=3 .b=2"},
    {{{"L", "@M,@M", NULL}, {"M", "a", NULL}}, "@M .a=1 @M .a=1"}, /* twice is not a cycle */
    {{{"L", "@X,a", NULL}}, "@X=- a=1"},
    {{{"L", "a,@L", NULL}}, "a=1 @L!"},
    {{{"L", "@M", NULL}, {"M", "a,@L,@M", NULL}}, "@M .a=1 .@L! .@M!"},
    {{{"L", "@1", NULL},
      {"1", "@2", NULL},
      {"2", "@3", NULL},
      {"3", "@4", NULL},
      {"4", "@5", NULL},
      {"5", "@6", NULL},
      {"6", "@7", NULL},
      {"7", "@8,a", NULL},
      {"8", "@9", NULL},
      {"9", "a", NULL}},
     "@1 .@2 ..@3 ...@4 ....@5 .....@6 ......@7 .......@8! .......a=1"},
};

static hf_status read_lists(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(READINGS); i++) {
        origin o = {.users = {{"a", "1"}, {"b", "2"}, {"c", "3"}}, .user_takes = hf_seconds(1)};
        memcpy(o.lists, READINGS[i].lists, sizeof o.lists);
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        LIST(depot, "L", READINGS[i].expected, .fresh = HF_FRESH_CACHED);
        int fetches = o.user_fetches;
        if (strstr(READINGS[i].expected, "denied") == NULL) { /* that one is not asked for again at once */
            LIST(depot, "L", READINGS[i].expected, .members = HF_FRESH_CACHED);
        }
        HF_CHECK(o.user_fetches == fetches && o.list_fetches <= 10);
    }
    return HF_OK;
}

/* Freshness of the list and of its members; deadlines; values that are not lists. */
static hf_status read_options(void *arg)
{
    (void)arg;
    origin o = {
        .lists = {{"L", "a,b,c", NULL}}, .users = {{"a", "1"}, {"b", "2"}, {"c", "3"}}, .user_takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    hf_items *items = NULL;
    HF_CHECK(hf_depot_list(depot, list_key("L"), &items, .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
    LIST(depot, "L", "a=- b=- c=-", .members = HF_FRESH_LOCAL);
    HF_CHECK(o.user_fetches == 0);
    int64_t before = hf_now(NULL).ns;
    HF_CHECK(hf_depot_list(depot, list_key("L"), &items, .timeout = hf_milliseconds(300)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(300).ns && items == NULL);
    before = hf_now(NULL).ns;
    LIST(depot, "L", "a=1 b=2 c=3", .timeout = hf_seconds(5)); /* side by side */
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns);
    hf_depot_info info;
    HF_TRY(hf_sleep(hf_minutes(1)));
    o.users[0][1] = "8";
    LIST(depot, "L", "a=1 b=2 c=3", .ret_info = &info);
    HF_CHECK(info.age.ns > hf_minutes(1).ns);
    LIST(depot, "L", "a=8 b=2 c=3", .members = HF_FRESH_WITHIN, .members_within = hf_seconds(30));
    HF_CHECK(o.user_fetches == 9); /* 3 that were left alone, and 6 */
    HF_CHECK(hf_depot_list(depot, user_key("a"), &items) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "not a list") != NULL);
    HF_CHECK(hf_depot_list(depot, list_key("L"), &items, .members = (hf_fresh)9) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_list(depot, list_key(""), &items) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_list(depot, list_key("L"), NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_depot_list(NULL, list_key("L"), &items) == HF_ERR_MISUSE);
    return HF_OK;
}

typedef struct lister {
    hf_depot *depot;
    hf_status status;
} lister;

static hf_status read_once(void *arg)
{
    lister *one = arg;
    hf_items *items = NULL;
    one->status = hf_depot_list(one->depot, list_key("L"), &items);
    hf_items_free(items);
    return HF_OK;
}

/* A cancel in the moment when the origin says that a member does not exist: the list is not what does not exist. */
static hf_status read_canceled(void *arg)
{
    (void)arg;
    origin o = {.lists = {{"L", "nobody,denied", NULL}}, .user_takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    lister one = {depot, HF_ERR_AGAIN};
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, read_once, &one));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    HF_TRY(hf_scope_close(scope));
    HF_CHECK_SAY(one.status == HF_OK || one.status == HF_ERR_CANCELED, "%s", hf_status_name(one.status));
    return HF_OK;
}

/* A list of our own, longer than a batch; and one that is too long as a whole. */
static hf_status read_many(void *arg)
{
    (void)arg;
    enum { MANY = 700 };
    static char ids[MANY][12];
    static hf_depot_key keys[MANY];
    origin o = {.users = {{"a", "1"}, {"7", "seven"}}, .user_takes = hf_milliseconds(10)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d", i);
        keys[i] = user_key(ids[i]);
    }
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    HF_TRY(hf_depot_list_pack(keys, MANY, &list));
    HF_TRY(hf_depot_put(depot, list_key("own"), hf_value_data(list), hf_value_len(list)));
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_TRY(hf_depot_list(depot, list_key("own"), &items));
    HF_CHECK(hf_items_count(items) == MANY && hf_items_at(items, MANY) == NULL && o.user_fetches == MANY);
    for (size_t i = 0; i < MANY; i++) {
        const hf_item *item = hf_items_at(items, i);
        HF_CHECK(item->key.id_len == strlen(ids[i]) && memcmp(item->key.id, ids[i], item->key.id_len) == 0);
        HF_CHECK((item->value != NULL) == (i == 7) && item->status == (i == 7 ? HF_OK : HF_ERR_NOT_FOUND));
    }
    /* 20 times that list is too much */
    hf_depot_key own[20];
    for (size_t i = 0; i < HF_COUNT_OF(own); i++) {
        own[i] = list_key("own");
    }
    HF_AUTO(hf_value_unref) hf_value *lists = NULL;
    HF_TRY(hf_depot_list_pack(own, HF_COUNT_OF(own), &lists));
    HF_TRY(hf_depot_put(depot, list_key("big"), hf_value_data(lists), hf_value_len(lists)));
    hf_items *none = NULL;
    HF_CHECK(hf_depot_list(depot, list_key("big"), &none, .members = HF_FRESH_LOCAL) == HF_ERR_LIMIT && none == NULL);
    return HF_OK;
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* What happens to the user "a", who is at hand as 0, before a list's fetch begins or while it is under way; the list
 * brings a=1. */
typedef enum happening {
    NOTHING,
    WRITTEN_BEFORE, /* and not settled */
    WRITTEN,        /* the same, under way */
    ANSWERED,       /* the origin answers a write under way */
    INVALIDATED,
    INVALIDATED_HARD,
    NAMESPACE,
    FETCHED, /* by another fetch, under way */
    DELETED_BEFORE,
    DELETED_AND_CHANGED, /* the record is from after the delete */
    ALL,                 /* the list itself is asked for again */
    UNKNOWN_INVALIDATED  /* not at hand, and invalidated */
} happening;

static const struct {
    happening what;
    const char *visible; /* at hand in the end */
    const char *base;    /* after the writes that wait were dropped */
    int list_fetches;
    uint64_t kept;
} RECORDS[] = {
    {NOTHING, "1", "1", 1, 1},
    {WRITTEN_BEFORE, "w", "1", 1, 1},
    {WRITTEN, "w", "1", 1, 1},
    {ANSWERED, "9", "9", 1, 0},
    {INVALIDATED, "-", "-", 1, 0},
    {INVALIDATED_HARD, "-", "-", 1, 0},
    {NAMESPACE, "-", "-", 1, 0},
    {FETCHED, "5", "5", 1, 0},
    {DELETED_BEFORE, "-", "-", 1, 0},
    {DELETED_AND_CHANGED, "1", "1", 1, 1},
    {ALL, "1", "1", 2, 1},
    {UNKNOWN_INVALIDATED, "-", "-", 1, 0},
};

static bool drop_one(void *arg, const hf_depot_pending_write *write)
{
    *(uint64_t *)arg = write->sequence;
    return false;
}

static hf_status happen_before(happening what, origin *o, hf_depot *depot)
{
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    if (what != UNKNOWN_INVALIDATED) {
        HF_TRY(hf_depot_get(depot, user_key("a"), &user));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    switch ((int)what) {
    case WRITTEN_BEFORE:
        o->is_push_down = true;
        return hf_depot_put(depot, user_key("a"), "w", 1);
    case DELETED_AND_CHANGED:
        o->last_modified = "Sun, 06 Nov 2094 08:49:37 GMT";
        HF_TRY(hf_depot_delete(depot, user_key("a"), .ret_write = &write));
        return hf_depot_write_wait(write);
    case DELETED_BEFORE:
        HF_TRY(hf_depot_delete(depot, user_key("a"), .ret_write = &write));
        return hf_depot_write_wait(write);
    default:
        return HF_OK;
    }
}

static hf_status happen_meanwhile(happening what, origin *o, hf_depot *depot)
{
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    switch ((int)what) {
    case WRITTEN:
        o->is_push_down = true;
        return hf_depot_put(depot, user_key("a"), "w", 1);
    case ANSWERED:
        o->answers = "9";
        HF_TRY(hf_depot_put(depot, user_key("a"), "w", 1, .ret_write = &write));
        return hf_depot_write_wait(write);
    case INVALIDATED:
    case UNKNOWN_INVALIDATED:
        return hf_depot_invalidate(depot, user_key("a"));
    case INVALIDATED_HARD:
        return hf_depot_invalidate(depot, user_key("a"), .hard = true);
    case NAMESPACE:
        return hf_depot_invalidate_namespace(depot, "people");
    case FETCHED:
        o->users[0][1] = "5";
        return hf_depot_get(depot, user_key("a"), &user, .fresh = HF_FRESH_NOW);
    case ALL:
        return hf_depot_invalidate_all(depot);
    default:
        return HF_OK;
    }
}

static hf_status ask_for_list(void *arg)
{
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    return hf_depot_get(arg, list_key("L"), &list);
}

static hf_status open_on(origin *o, lent *store, hf_depot **ret_depot)
{
    hf_depot_options options = {
        .size = sizeof options, .fetch = fetch, .push = push, .merge = append, .state = o, .coalesce = HF_SPAN_OFF};
    HF_TRY(hf_depot_open_in("people", ret_depot, &options, store != NULL ? &store->base : NULL));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static hf_status one_record(size_t row, lent *store)
{
    happening what = RECORDS[row].what;
    origin o = {.lists = {{"L", "a,b", "a=1,b=2"}}, .users = {{"a", "0"}}, .list_takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_on(&o, store, &depot));
    HF_TRY(happen_before(what, &o, depot));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, ask_for_list, depot));
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        HF_TRY(happen_meanwhile(what, &o, depot));
        HF_TRY(hf_join(scope));
    }
    USER(depot, "a", RECORDS[row].visible);
    USER(depot, "b", what == NAMESPACE ? "-" : "2");
    uint64_t sequence = 0;
    HF_TRY(hf_depot_pending(depot, drop_one, &sequence));
    hf_status dropped = sequence != 0 ? hf_depot_drop(depot, sequence) : HF_OK;
    while (dropped == HF_ERR_CONFLICT) { /* it is being sent */
        HF_TRY(hf_sleep(hf_milliseconds(10)));
        dropped = hf_depot_drop(depot, sequence);
    }
    HF_TRY(dropped);
    USER(depot, "a", RECORDS[row].base);
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    uint64_t b = what != NAMESPACE;
    HF_CHECK(counts.records == RECORDS[row].kept + b && counts.records_left_out == 2 - RECORDS[row].kept - b);
    HF_CHECK(o.list_fetches == RECORDS[row].list_fetches && depot->stirs.count == 0);
    return HF_OK;
}

static hf_status records(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(RECORDS); i++) {
        HF_TRY(one_record(i, NULL));
        hf_op op;
        hf_op_init(&op);
        lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
        HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
        HF_TRY(one_record(i, &store));
        { /* the file says the same */
            origin o = {.is_push_down = true};
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(open_on(&o, &store, &depot));
            USER(depot, "a", RECORDS[i].base);
        }
        hf_store_close(store.inner);
    }
    return HF_OK;
}

/* Many keys are stirred while a list is fetched: records of keys that were not are kept as long as they are known. */
static hf_status many_stirs(void *arg)
{
    (void)arg;
    origin o = {.lists = {{"L", "a,b", "a=1,b=2"}}, .list_takes = hf_seconds(1)};
    for (int count = 500; count <= 1500; count += 1000) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, ask_for_list, depot));
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        HF_TRY(hf_depot_invalidate(depot, user_key("b")));
        for (int i = 0; i < count; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "%d", i);
            HF_TRY(hf_depot_invalidate(depot, user_key(id)));
        }
        HF_TRY(hf_join(scope));
        USER(depot, "a", count < 1024 ? "1" : "-"); /* else it is not known whether it was */
        USER(depot, "b", "-");
    }
    return HF_OK;
}

/* ---- Partial records --------------------------------------------------------------------------------------------- */

static hf_status partial(void *arg)
{
    (void)arg;
    origin o = {.lists = {{"L", "a,b", "a~x,b~y"}}, .users = {{"a", "1"}, {"b", "2"}}};
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_AUTO(hf_value_unref) hf_value *other = NULL;
    hf_depot_info info;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_TRY(hf_depot_get(depot, user_key("a"), &user));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_TRY(ask_for_list(depot));
    USER(depot, "a", "1x");
    USER(depot, "b", "y");
    /* the age of a whole value stays; a part alone is stale */
    HF_TRY(hf_depot_get(depot, user_key("a"), &other, .fresh = HF_FRESH_LOCAL, .ret_info = &info));
    HF_CHECK(info.age.ns == hf_minutes(1).ns && !info.is_stale && info.etag[0] == '\0');
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    LIST(depot, "L", "a=1x b=y", .members = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_seconds(1)));
    USER(depot, "b", "2"); /* was refreshed */
    /* a part does not bring back what was invalidated */
    HF_TRY(hf_depot_invalidate(depot, user_key("a")));
    HF_TRY(hf_depot_invalidate(depot, list_key("L")));
    HF_TRY(ask_for_list(depot));
    USER(depot, "a", "x");
    HF_CHECK(o.add_status == HF_OK);
    /* without .merge */
    origin plain = {.lists = {{"L", "a,b", "a~x,b=y"}}};
    HF_AUTO(hf_depot_close) hf_depot *second = NULL;
    HF_TRY(hf_depot_open("plain", &second, .fetch = fetch, .state = &plain));
    HF_TRY(ask_for_list(second));
    HF_CHECK(plain.add_status == HF_ERR_MISUSE);
    USER(second, "a", "-");
    USER(second, "b", "y");
    return HF_OK;
}

/* ---- What hf_reply_add refuses ----------------------------------------------------------------------------------- */

static hf_status fetch_too_much(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    static char big[HF_REPLY_BYTES_MAX / 8 + 1];
    int *checked = state;
    char id[16];
    HF_CHECK(hf_reply_add(reply, request->key, "v", 1) == HF_ERR_INVALID);
    HF_CHECK(hf_reply_add(reply, user_key(""), "v", 1) == HF_ERR_INVALID);
    HF_CHECK(hf_reply_add(reply,
                          hf_depot_key_of("n",
                                          "\x01"
                                          "atype",
                                          "i"),
                          "v", 1) == HF_ERR_INVALID);
    HF_CHECK(hf_reply_add(reply, user_key("a"), NULL, 1) == HF_ERR_MISUSE);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof id, "big-%d", i);
        HF_CHECK(hf_reply_add(reply, user_key(id), big, sizeof big) == (i < 7 ? HF_OK : HF_ERR_TOO_BIG));
    }
    HF_CHECK(hf_reply_add(reply, user_key("big-6"), big, sizeof big) == HF_OK); /* in place of the other */
    for (int i = 7; i < HF_REPLY_RECORDS_MAX; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        HF_CHECK(hf_reply_add(reply, user_key(id), "v", 1) == HF_OK);
    }
    HF_CHECK(hf_reply_add(reply, user_key("one more"), "v", 1) == HF_ERR_LIMIT);
    HF_CHECK(hf_reply_add(reply, user_key("500"), "w", 1) == HF_OK);
    (*checked)++;
    return hf_reply_value(reply, "v", 1);
}

static hf_status refusals(void *arg)
{
    (void)arg;
    int checked = 0;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("full", &depot, .fetch = fetch_too_much, .state = &checked, .value_max = 4 << 20));
    HF_TRY(hf_depot_get(depot, list_key("L"), &value));
    HF_CHECK(checked == 1);
    USER(depot, "500", "w");
    USER(depot, "501", "v");
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.records == HF_REPLY_RECORDS_MAX);
    /* a pusher brings none */
    origin o = {.users = {{"a", "1"}}};
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *second = NULL;
    HF_TRY(open_depot(&o, &second));
    HF_TRY(hf_depot_put(second, user_key("a"), "w", 1, .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write));
    HF_CHECK(o.add_status == HF_ERR_MISUSE);
    return HF_OK;
}

/* ---- One commit -------------------------------------------------------------------------------------------------- */

/* A store that counts the writes of its commits, and refuses them when it is told to. */
typedef struct counting {
    hf_store base;
    hf_store *inner;
    bool is_full;
    size_t commits, most; /* writes of the largest commit */
} counting;

static hf_status counting_execute(hf_store *store, hf_store_request *request)
{
    counting *own = HF_CONTAINER(store, counting, base);
    if (request->verb == HF_STORE_COMMIT) {
        own->commits++;
        own->most = request->write_count > own->most ? request->write_count : own->most;
        if (own->is_full) {
            request->status = hf_fail(&request->op, HF_ERR_FULL, "the disk is full");
            return HF_ERR_FULL;
        }
    }
    return own->inner->ops->execute(own->inner, request);
}

static uint64_t counting_last(hf_store *store)
{
    hf_store *inner = HF_CONTAINER(store, counting, base)->inner;
    return inner->ops->last_commit(inner);
}

static const hf_store_ops COUNTING = {
    .name = "counting", .execute = counting_execute, .last_commit = counting_last, .close = lent_close};

static hf_status one_commit(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    for (int is_full = 0; is_full <= 1; is_full++) {
        counting store = {.base = {.ops = &COUNTING, .tables = &hf_depot_tables}};
        HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
        origin o = {.lists = {{"L", "a,b", "a=1,b=2"}}};
        hf_depot_options options = {.size = sizeof options, .fetch = fetch, .state = &o};
        {
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(hf_depot_open_in("people", &depot, &options, &store.base));
            store.is_full = is_full == 1;
            HF_TRY(ask_for_list(depot));
            HF_CHECK(store.commits == 1 && store.most == 3);
            LIST(depot, "L", "a=1 b=2", .fresh = HF_FRESH_LOCAL, .members = HF_FRESH_LOCAL); /* also if it is full */
        }
        store.is_full = false;
        {
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(hf_depot_open_in("people", &depot, &options, &store.base));
            if (is_full == 0) {
                LIST(depot, "L", "a=1 b=2", .fresh = HF_FRESH_LOCAL, .members = HF_FRESH_LOCAL);
            } else {
                USER(depot, "a", "-");
                USER(depot, "b", "-");
            }
        }
        hf_store_close(store.inner);
    }
    return HF_OK;
}

typedef struct crossing {
    hf_depot *depot;
    const char *list;
} crossing;

static hf_status cross(void *arg)
{
    const crossing *one = arg;
    for (int i = 0; i < 5; i++) {
        HF_AUTO(hf_value_unref) hf_value *list = NULL;
        HF_TRY(hf_depot_get(one->depot, list_key(one->list), &list, .fresh = HF_FRESH_NOW));
    }
    return HF_OK;
}

/* Lists with the same members in other orders: no landing waits for another one for ever. */
static hf_status crossing_lists(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    origin o = {.lists = {{"L", "a,b,c", "a=1,b=1,c=1"}, {"M", "c,b,a", "c=2,b=2,a=2"}, {"N", "b", "b=3"}}};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, &store, &depot));
        crossing all[] = {{depot, "L"}, {depot, "M"}, {depot, "N"}};
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_minutes(1)));
        for (size_t i = 0; i < HF_COUNT_OF(all); i++) {
            HF_TRY(hf_fork(scope, cross, &all[i]));
        }
        for (int i = 0; i < 5; i++) {
            HF_TRY(hf_depot_put(depot, user_key("b"), "w", 1));
        }
        HF_CHECK(hf_join(scope) == HF_OK);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static hf_status ask_until_closed(void *arg)
{
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    hf_status status = hf_depot_list(arg, list_key("L"), &items, .fresh = HF_FRESH_NOW);
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_CLOSED, "%s", hf_status_name(status));
    return HF_OK;
}

/* The depot closes while landings wait for their turns, are written, or have just begun. */
static hf_status close_meanwhile(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    for (int yields = 0; yields < 12; yields++) {
        lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
        HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
        origin o = {.lists = {{"L", "a,b,c", "a=1,b=1"}}, .users = {{"c", "3"}}};
        {
            HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
            HF_TRY(hf_scope_open(&scope));
            hf_depot *depot = NULL;
            HF_TRY(open_on(&o, &store, &depot));
            hf_watcher *watcher = NULL;
            HF_TRY(hf_depot_list_watch(depot, list_key("L"), &watcher));
            HF_TRY(hf_fork(scope, ask_until_closed, depot));
            HF_TRY(hf_fork(scope, ask_until_closed, depot));
            for (int i = 0; i < yields; i++) {
                HF_TRY(hf_yield());
            }
            HF_CHECK(hf_depot_put(depot, user_key("b"), "w", 1) == HF_OK);
            hf_depot_counts counts = {0};
            while (counts.joined + counts.misses < 2) { /* both calls are inside: none may begin after the close */
                HF_TRY(hf_sleep(hf_microseconds(1)));
                HF_TRY(hf_depot_stat(depot, &counts));
            }
            HF_TRY(hf_depot_close(depot));
            HF_TRY(hf_watcher_close(watcher));
            HF_TRY(hf_join(scope));
        }
        hf_store_close(store.inner);
    }
    return HF_OK;
}

/* ---- Watching ---------------------------------------------------------------------------------------------------- */

static void expect(hf_watcher *watcher, bool has_event, int line)
{
    hf_depot_event event = {.value = NULL};
    hf_status status = hf_watcher_next(watcher, &event, .timeout = hf_seconds(1));
    HF_CHECK_SAY(has_event ? status == HF_OK && event.kind == HF_DEPOT_DATA && event.value != NULL
                           : status == HF_ERR_TIMEOUT,
                 "line %d: %s, kind %d", line, hf_status_name(status), (int)event.kind);
    hf_value_unref(event.value);
}

#define HEARS(watcher) expect(watcher, true, __LINE__)
#define HEARS_NOTHING(watcher) expect(watcher, false, __LINE__)

static hf_status put(hf_depot *depot, const char *id, const char *value)
{
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_TRY(hf_depot_put(depot, user_key(id), value, strlen(value), .ret_write = &write));
    return hf_depot_write_wait(write);
}

static hf_status watch_lists(void *arg)
{
    (void)arg;
    origin o = {
        .lists = {{"L", "a,@M", "a=1"}, {"M", "c", "c=3"}}, .users = {{"b", "2"}}, .list_takes = hf_milliseconds(10)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_list_watch(depot, list_key("L"), &watcher));
    hf_depot_event event = {.value = NULL};
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_LOADING);
    HEARS(watcher);
    HF_TRY(put(depot, "a", "x"));
    HEARS(watcher);
    HF_TRY(put(depot, "c", "x")); /* M was not read yet: nobody knows that it is a list */
    HEARS_NOTHING(watcher);
    LIST(depot, "L", "a=x @M .c=3", .fresh = HF_FRESH_CACHED);
    HEARS(watcher); /* M came, with c as the origin has it */
    HF_TRY(put(depot, "c", "y"));
    HEARS(watcher);
    HF_TRY(put(depot, "b", "y"));
    HEARS_NOTHING(watcher);
    for (int i = 0; i < 100; i++) { /* conflated */
        HF_TRY(put(depot, i % 2 == 0 ? "a" : "c", i % 4 < 2 ? "p" : "q"));
    }
    HEARS(watcher);
    HEARS_NOTHING(watcher);
    HF_CHECK(hf_watcher_dropped(watcher) >= 99);
    HF_TRY(hf_depot_invalidate(depot, user_key("a")));
    HEARS(watcher);
    HF_TRY(hf_depot_invalidate_namespace(depot, "people"));
    HEARS(watcher);
    /* the list changes: b is a member now, and M is not */
    o.lists[0] = (listed){"L", "a,b", NULL};
    HF_TRY(hf_depot_invalidate(depot, list_key("L")));
    HEARS(watcher);
    HF_TRY(put(depot, "b", "z"));
    HEARS(watcher);
    HF_TRY(put(depot, "c", "z"));
    HEARS_NOTHING(watcher);
    /* another watcher of the same list, and a plain one */
    HF_AUTO(hf_watcher_close) hf_watcher *second = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *plain = NULL;
    HF_TRY(hf_depot_list_watch(depot, list_key("L"), &second, .fresh = HF_FRESH_LOCAL));
    HF_TRY(hf_depot_watch(depot, list_key("L"), &plain, .fresh = HF_FRESH_LOCAL));
    HEARS(second);
    HEARS(plain);
    HF_TRY(put(depot, "b", "!"));
    HEARS(watcher);
    HEARS(second);
    HEARS_NOTHING(plain);
    HF_TRY(hf_watcher_close(watcher));
    HF_TRY(put(depot, "b", "?"));
    HEARS(second);
    HF_CHECK(depot->index.nodes.count == 3 && depot->index.edges == 2); /* L, a, b */
    return HF_OK;
}

/* Lists that are inside each other, and a list that nobody watches any more. */
static hf_status watch_cycles(void *arg)
{
    (void)arg;
    origin o = {.lists = {{"L", "@M", NULL}, {"M", "@L,@N", NULL}, {"N", "@N,a", "a=1"}}};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    LIST(depot, "L", "@M .@L! .@N ..@N! ..a=1", .fresh = HF_FRESH_CACHED);
    {
        HF_AUTO(hf_watcher_close) hf_watcher *outer = NULL;
        HF_AUTO(hf_watcher_close) hf_watcher *inner = NULL;
        HF_TRY(hf_depot_list_watch(depot, list_key("L"), &outer));
        HF_TRY(hf_depot_list_watch(depot, list_key("N"), &inner));
        HEARS(outer);
        HEARS(inner);
        HF_TRY(put(depot, "a", "x"));
        HEARS(outer);
        HEARS(inner);
        HF_CHECK(depot->index.nodes.count == 4 && depot->index.edges == 5);
        /* L leaves the cycle; what it led to is still there for N */
        o.lists[0].members = "b";
        HF_TRY(hf_depot_invalidate(depot, list_key("L")));
        HEARS(outer);
        HF_TRY(put(depot, "a", "y"));
        HEARS(inner);
        HEARS_NOTHING(outer);
        /* N is no list any more */
        HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
        HF_TRY(hf_depot_put(depot, list_key("N"), "plain", 5, .ret_write = &write));
        HF_TRY(hf_depot_write_wait(write));
        HEARS(inner);
        HF_TRY(put(depot, "a", "z"));
        HEARS_NOTHING(inner);
    }
    HF_CHECK(depot->index.nodes.count == 0 && depot->index.edges == 0);
    return HF_OK;
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

static bool count_key(void *arg, hf_depot_key key)
{
    size_t *count = arg;
    HF_CHECK(strcmp(key.ns, "people") == 0 && strcmp(key.type, "user") == 0);
    return ++*count < 2;
}

static void lists_are_checked_to_the_last_byte(void **state)
{
    (void)state;
    hf_depot_key keys[] = {user_key("a"), user_key("bb"), user_key("ccc")};
    hf_value *list = NULL;
    assert_int_equal(hf_depot_list_pack(keys, HF_COUNT_OF(keys), &list), HF_OK);
    size_t count = 0;
    assert_int_equal(hf_depot_list_keys(list, count_key, &count), HF_OK);
    assert_int_equal(count, 2); /* it wanted no more */
    hf_str bytes = hf_str_of_len(hf_value_data(list), hf_value_len(list));
    assert_true(hf_window_is_list(bytes));
    for (size_t len = 0; len < bytes.len; len++) {
        assert_false(hf_window_is_list(hf_str_of_len(bytes.data, len)));
    }
    char changed[200];
    assert_true(bytes.len + 1 < sizeof changed);
    memcpy(changed, bytes.data, bytes.len);
    changed[bytes.len] = 0;
    assert_false(hf_window_is_list(hf_str_of_len(changed, bytes.len + 1)));
    for (size_t at = 0; at < bytes.len; at++) { /* whatever it says, it reads no other memory */
        for (int bit = 0; bit < 8; bit++) {
            changed[at] = (char)(changed[at] ^ (1 << bit));
            bool is_list = hf_window_is_list(hf_str_of_len(changed, bytes.len));
            assert_true(!is_list || at >= 8);
            changed[at] = (char)(changed[at] ^ (1 << bit));
        }
    }
    hf_value_unref(list);
    hf_value *none = NULL;
    assert_int_equal(hf_value_copy("text", 4, &list), HF_OK);
    assert_int_equal(hf_depot_list_keys(list, count_key, &count), HF_ERR_INVALID);
    assert_int_equal(hf_depot_list_keys(NULL, count_key, &count), HF_ERR_INVALID);
    assert_int_equal(hf_depot_list_keys(list, NULL, NULL), HF_ERR_MISUSE);
    assert_int_equal(hf_depot_list_pack(NULL, 1, &none), HF_ERR_MISUSE);
    assert_int_equal(hf_depot_list_pack(keys, HF_DEPOT_LIST_MAX + 1, &none), HF_ERR_LIMIT);
    keys[1].type = "";
    assert_int_equal(hf_depot_list_pack(keys, HF_COUNT_OF(keys), &none), HF_ERR_INVALID);
    assert_int_equal(hf_depot_list_pack(NULL, 0, &none), HF_OK); /* an empty list is one */
    assert_true(hf_window_is_list(hf_str_of_len(hf_value_data(none), hf_value_len(none))));
    hf_value_unref(none);
    hf_value_unref(list);
}

/* ---- On a plain thread ------------------------------------------------------------------------------------------- */

static void lists_are_read_by_plain_threads(void **state)
{
    (void)state;
    origin o = {.lists = {{"L", "a,b,@M", "a=1"}, {"M", "nobody", NULL}}, .users = {{"b", "2"}}};
    hf_runtime *rt = NULL;
    hf_depot *depot = NULL;
    assert_int_equal(hf_runtime_new(&rt), HF_OK);
    assert_int_equal(hf_depot_open("people", &depot, .fetch = fetch, .state = &o, .runtime = rt), HF_OK);
    LIST(depot, "L", "a=1 b=2 @M .nobody=-", .timeout = hf_seconds(60));
    assert_int_equal(hf_depot_close(depot), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

/* ---- The tests --------------------------------------------------------------------------------------------------- */

static hf_body trace;

static void one_seed(uint64_t seed)
{
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), trace, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "it ended with %s", hf_status_name(status));
}

#define SIMULATED(name, body, seeds)          \
    static void name(void **state)            \
    {                                         \
        (void)state;                          \
        trace = (body);                       \
        hf_each_seed(#body, seeds, one_seed); \
    }

SIMULATED(a_list_is_read_with_its_members_and_cycles_are_cut, read_lists, 20)
SIMULATED(lists_and_members_are_as_fresh_as_asked_for, read_options, 50)
SIMULATED(DP7_a_list_that_is_canceled_does_not_fail_as_a_member_does, read_canceled, 200)
SIMULATED(DP8_lists_are_read_in_batches_and_bounded, read_many, 3)
SIMULATED(DP3_DP5_records_do_not_undo_what_came_later, records, 20)
SIMULATED(DP8_stirs_are_bounded, many_stirs, 3)
SIMULATED(partial_records_are_merged, partial, 50)
SIMULATED(DP8_records_are_bounded, refusals, 3)
SIMULATED(DP9_a_reply_is_one_commit, one_commit, 50)
SIMULATED(landings_of_the_same_keys_do_not_wait_for_each_other, crossing_lists, 200)
SIMULATED(DP8_a_depot_closes_while_records_land, close_meanwhile, 100)
SIMULATED(watchers_of_lists_hear_of_members, watch_lists, 50)
SIMULATED(depot_R1_cycles_of_lists_leave_nothing_behind, watch_cycles, 50)

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_list_is_read_with_its_members_and_cycles_are_cut),
    cmocka_unit_test(lists_and_members_are_as_fresh_as_asked_for),
    cmocka_unit_test(DP7_a_list_that_is_canceled_does_not_fail_as_a_member_does),
    cmocka_unit_test(DP8_lists_are_read_in_batches_and_bounded),
    cmocka_unit_test(DP3_DP5_records_do_not_undo_what_came_later),
    cmocka_unit_test(DP8_stirs_are_bounded),
    cmocka_unit_test(partial_records_are_merged),
    cmocka_unit_test(DP8_records_are_bounded),
    cmocka_unit_test(DP9_a_reply_is_one_commit),
    cmocka_unit_test(landings_of_the_same_keys_do_not_wait_for_each_other),
    cmocka_unit_test(DP8_a_depot_closes_while_records_land),
    cmocka_unit_test(watchers_of_lists_hear_of_members),
    cmocka_unit_test(depot_R1_cycles_of_lists_leave_nothing_behind),
    cmocka_unit_test(lists_are_read_by_plain_threads),
    cmocka_unit_test(lists_are_checked_to_the_last_byte),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot lists", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
