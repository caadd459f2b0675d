/* hf_depot: a read-through store. It keeps values that come from somewhere slow, the origin (an HTTP API, a device, a
 * database far away), at hand: in memory and, with .file, on the disk. It asks the origin once for a hundred callers,
 * serves values as fresh as asked for, refreshes them behind the caller's back, works while the origin does not, and
 * sends changes to it when it can.
 *
 *     static hf_status fetch_user(void *state, const hf_fetch_request *request, hf_reply *reply)
 *     {
 *         ... ask the origin for request->key, which may take its time ...
 *         return hf_reply_value(reply, bytes, len);
 *     }
 *
 *     HF_AUTO(hf_depot_close) hf_depot *users = NULL;
 *     HF_TRY(hf_depot_open("users", &users, .fetch = fetch_user, .state = &api, .file = "sqlite:users.db"));
 *     HF_AUTO(hf_value_unref) hf_value *user = NULL;
 *     HF_TRY(hf_depot_get(users, hf_depot_key_of("acme", "user", "42"), &user, .fresh = HF_FRESH_OR_STALE));
 *
 * docs/guide/depot.md explains freshness, writes and conflicts. */
#ifndef HOLDFAST_DEPOT_H
#define HOLDFAST_DEPOT_H

#include <holdfast/flow.h>
#include <holdfast/keyed.h>
#include <holdfast/memo.h>

typedef struct hf_depot hf_depot;
typedef struct hf_reply hf_reply;
typedef struct hf_watcher hf_watcher;
typedef struct hf_depot_write hf_depot_write;
typedef struct hf_service hf_service; /* service.h */
typedef struct hf_items hf_items;

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

#define HF_DEPOT_NAME_LEN_MAX 100 /* bytes of a namespace and of a type */
#define HF_DEPOT_ID_LEN_MAX 1000  /* bytes of an id */

/* What a value is called: a namespace and a type, which are texts, and an id of any bytes. */
typedef struct hf_depot_key {
    const char *ns;   /* such as a tenant; 1 to 100 bytes */
    const char *type; /* such as "user"; 1 to 100 bytes */
    const void *id;   /* 1 to 1,000 bytes */
    size_t id_len;
} hf_depot_key;

/* A name and a value of a query. */
typedef struct hf_depot_term {
    const char *name;
    const char *value;
} hf_depot_term;

/* The id of a query, made by hf_depot_query. */
typedef struct hf_depot_query_id {
    size_t len;
    unsigned char bytes[HF_DEPOT_ID_LEN_MAX];
} hf_depot_query_id;

/* An id, with room for any: of something that hf_depot_create has made. */
typedef struct hf_depot_id {
    size_t len;
    unsigned char bytes[HF_DEPOT_ID_LEN_MAX];
} hf_depot_id;

/* ---- What the origin is asked ------------------------------------------------------------------------------------ */

typedef enum hf_urgency {
    HF_URGENCY_NORMAL, /* somebody waits for it */
    HF_URGENCY_LOW,    /* a refresh, a prefetch */
    HF_URGENCY_HIGH
} hf_urgency;

/* Which page of a query is wanted: see <holdfast/pages.h>. */
typedef enum hf_page_direction {
    HF_PAGE_INITIAL, /* the first one, or this is not about pages */
    HF_PAGE_APPEND,  /* the one after `token` */
    HF_PAGE_PREPEND  /* the one before `token` */
} hf_page_direction;

/* Valid until the fetcher returns. */
typedef struct hf_fetch_request {
    hf_depot_key key;
    const char *etag;          /* of the value that is at hand; NULL = ask without a condition */
    const char *last_modified; /* the same */
    hf_urgency urgency;
    int attempt;         /* from 1 on */
    hf_instant deadline; /* of this attempt; a wait of the fetcher ends there with HF_ERR_TIMEOUT */
    hf_page_direction page;
    const char *token; /* of HF_PAGE_APPEND and HF_PAGE_PREPEND: what the origin gave with the page that is there */
    size_t page_size;  /* items that are wanted; 0 = not said */
} hf_fetch_request;

/* Asks the origin. It runs on a fiber of the depot, or on .on. It answers with hf_reply_value or hf_reply_not_modified
 * and returns HF_OK, or returns a failure: HF_ERR_NOT_FOUND if there is no such thing, what hf_reply_fail returned, or
 * any other status. Calls of the depot about the same key are refused with HF_ERR_MISUSE inside, unless memory answers
 * them at once: they would wait for themselves. The same holds for a pusher and a subscriber. Two fetchers that ask for each
 * other's keys wait until a timeout. */
typedef hf_status (*hf_fetcher)(void *state, const hf_fetch_request *request, hf_reply *reply);

#define HF_FETCH_MANY_MAX 256 /* keys that a fetcher of many keys is asked for at once */

/* Asks the origin for several keys of one origin with one call, where .fetch runs. replies[i] answers requests[i], as a
 * fetcher answers; hf_reply_fail(replies[i], ...) says that this key has failed (HF_REPLY_NOT_FOUND: there is no such
 * thing). If it returns a failure, the keys that it has not answered have failed with that. The keys are tried again, and
 * land, each by itself; the next attempt asks for those that are left. */
typedef hf_status (*hf_many_fetcher)(void *state, const hf_fetch_request *requests, hf_reply *const *replies,
                                     size_t count);

/* Follows a key at the origin, where .fetch runs: fills `reply` and hands it over with hf_reply_emit, again and again,
 * until a call fails with HF_ERR_CANCELED. It runs once per key, while the key is watched or somebody waits for it. The
 * first reply must come within .fetch_timeout. When it fails it begins again after the key's back-off; when it returns
 * HF_OK or HF_ERR_NOT_FOUND, after a second. */
typedef hf_status (*hf_subscriber)(void *state, const hf_fetch_request *request, hf_reply *reply);

/* Makes what callers get out of the bytes of a value; it is called once for each value in memory. The result is shared,
 * so it must not be changed. Lists of keys and pages are not given to it. `bytes` is valid during the call. A failure is
 * that of the fetch that brought the bytes; it is not tried again, and what was at hand before stays. */
typedef hf_status (*hf_decoder)(void *state, const hf_value *bytes, hf_value **ret_object);
/* The reverse, for hf_depot_put_value. */
typedef hf_status (*hf_encoder)(void *state, const hf_value *object, hf_value **ret_bytes);

typedef enum hf_write_verb { HF_WRITE_REPLACE, HF_WRITE_PATCH, HF_WRITE_REMOVE, HF_WRITE_CREATE } hf_write_verb;

#define HF_WRITE_ID_LEN 33 /* bytes of a write's id as text, with its NUL */

/* A write on its way. Valid until the function that it was given to returns. */
typedef struct hf_push_request {
    hf_depot_key key;
    hf_write_verb verb;
    const void *data; /* the new value, or the patch; NULL with HF_WRITE_REMOVE */
    size_t len;
    const char *if_match;     /* do it only if the origin's value has this etag; NULL = no condition */
    bool if_none;             /* do it only if the origin has no value */
    char id[HF_WRITE_ID_LEN]; /* the same in every attempt, also after a restart: the origin's idempotency key */
    int attempt;              /* from 1 on */
    hf_instant deadline;      /* as of a fetch */
} hf_push_request;

/* Sends a write to the origin, where .fetch runs. HF_OK: it was accepted; hf_reply_etag and hf_reply_value say what
 * became of it, and with HF_WRITE_CREATE hf_reply_key which key it has there. HF_ERR_CONFLICT, with hf_reply_etag and
 * hf_reply_value if they are known: a condition was not met. Other failures are as of a fetch. */
typedef hf_status (*hf_pusher)(void *state, const hf_push_request *request, hf_reply *reply);

/* The value after a patch. `value` is NULL if there is none. */
typedef hf_status (*hf_patcher)(void *state, const hf_value *value, const void *patch, size_t len,
                                hf_value **ret_value);
/* One patch that does what `first` and then `second` do. Any failure: both are sent. */
typedef hf_status (*hf_combiner)(void *state, const void *first, size_t first_len, const void *second,
                                 size_t second_len, hf_value **ret_patch);
/* Two writes of one key that met at the origin: `base` is what both began with (may be NULL), `mine` what this depot
 * wants, `theirs` what the origin has. For a partial record (hf_reply_add) `base` is NULL, `mine` is what the origin
 * said before, or NULL, and `theirs` is the record. */
typedef hf_status (*hf_merger)(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                               hf_value **ret_value);

typedef enum hf_reply_class {
    HF_REPLY_UNKNOWN,   /* tried again */
    HF_REPLY_TIMEOUT,   /* tried again */
    HF_REPLY_NETWORK,   /* tried again */
    HF_REPLY_ORIGIN,    /* the origin is in trouble (408, 429, 5xx): tried again */
    HF_REPLY_TLS,       /* counts as a failure of the origin, not tried again */
    HF_REPLY_NOT_FOUND, /* there is no such thing */
    HF_REPLY_DENIED,    /* not tried again */
    HF_REPLY_INVALID,   /* not tried again */
    HF_REPLY_CONVERTER  /* .decode failed: not tried again. hf_reply_fail does not take it */
} hf_reply_class;
#define HF_REPLY_CLASSES 9 /* of them */

typedef struct hf_reply_fail_options {
    size_t size;         /* set by the macro */
    int http_status;     /* decides the class if it is given: 404, 503 */
    hf_span retry_after; /* the origin asks not to come back earlier; at most an hour counts */
    const char *message; /* a sentence for people; copied */
} hf_reply_fail_options;

#define HF_REPLY_RECORDS_MAX 1000                     /* records of one reply */
#define HF_REPLY_BYTES_MAX ((size_t)16 * 1024 * 1024) /* bytes of their values together */

typedef struct hf_reply_add_options {
    size_t size; /* set by the macro */
    const char *etag;
    const char *last_modified;
    hf_span max_age; /* as of hf_reply_max_age; 0 = not said */
    /* Only a part of the value: .merge makes the value of it and of the one at hand. */
    bool partial;
} hf_reply_add_options;

/* ---- A source of your own ---------------------------------------------------------------------------------------- */

/* What a row of the source is. */
typedef enum hf_source_kind {
    HF_SOURCE_META,    /* of the whole depot */
    HF_SOURCE_ENTRY,   /* a value, or that there is none. Its key: namespace, NUL, type, NUL, id */
    HF_SOURCE_SPACE,   /* of a namespace, which is its key */
    HF_SOURCE_PENDING, /* a write that is not settled. Its key: 8 bytes, in the order of the writes */
    HF_SOURCE_ALIAS    /* an old key of a value */
} hf_source_kind;

#define HF_SOURCE_KEY_LEN_MAX 1202

/* A row: bytes under a kind and a key. The data is the depot's own record, with a checksum: keep it as it is. */
typedef struct hf_source_row {
    hf_source_kind kind;
    const void *key;
    size_t key_len;
    hf_value *data; /* what `read` gives: a reference, which the depot takes; NULL = there is no such row */
} hf_source_row;

/* A change of a row. */
typedef struct hf_source_write {
    hf_source_kind kind;
    const void *key;
    size_t key_len;
    const void *data; /* of the new row, in place of the old one; NULL = delete it, if it is there */
    size_t len;
} hf_source_write;

/* Called for a row of a scan; false: that is enough. */
typedef bool hf_source_visit(void *arg, const void *key, size_t key_len, const void *data, size_t len);

/* Where a depot keeps its rows instead of a file. The functions run on the runtime's pool, one at a time, so they may
 * block. A failure is any status but HF_OK; HF_ERR_STORE says that it is not known what became of a write, and the depot
 * then asks the source nothing more. A read must give what was written last, also after a restart. */
typedef struct hf_source_hooks {
    void *state;
    /* Sets row->data. If it fails, the value counts as missing and is fetched. */
    hf_status (*read)(void *state, hf_source_row *row);
    /* The same for several entries at once, at most 256; NULL = `read` is called for each. */
    hf_status (*read_many)(void *state, hf_source_row *rows, size_t count);
    /* All of the writes, in this order, or none. is_synced: they hold something that must not be lost, a write of the
     * program or an invalidation, so they must be durable when this returns. */
    hf_status (*write)(void *state, const hf_source_write *writes, size_t count, bool is_synced);
    /* Visits the rows of a kind in the order of the bytes of their keys (memcmp, shorter ones first), from the first one
     * that is not before `from` on. The rows of a namespace stand together. */
    hf_status (*scan)(void *state, hf_source_kind kind, const void *from, size_t from_len, hf_source_visit *visit,
                      void *arg);
    /* The depot is closed: the last call. Not called if hf_depot_open fails. May be NULL. */
    void (*close)(void *state);
} hf_source_hooks;

/* ---- Options ----------------------------------------------------------------------------------------------------- */

typedef enum hf_conflict {
    HF_CONFLICT_DEFAULT,     /* of a write: what its depot says; of a depot: the server wins */
    HF_CONFLICT_SERVER_WINS, /* the write is given up with HF_ERR_CONFLICT */
    HF_CONFLICT_CLIENT_WINS, /* it is sent again, with the origin's etag as its condition, three times at most */
    HF_CONFLICT_MERGE        /* .merge decides what is sent */
} hf_conflict;

typedef struct hf_depot_options {
    size_t size;          /* set by the macro */
    hf_runtime *runtime;  /* needed on a plain thread only */
    hf_fetcher fetch;     /* NULL = nothing is fetched: a depot of local values */
    hf_pusher push;       /* NULL = nothing can be written */
    hf_patcher apply;     /* needed by hf_depot_patch */
    hf_merger merge;      /* needed by HF_CONFLICT_MERGE, and for partial records */
    void *state;          /* of these functions */
    hf_dispatcher *on;    /* where fetch and push run; NULL = on fibers */
    const char *file;     /* "sqlite:users.db" keeps values and writes over a restart; NULL = in memory only */
    hf_span keep;         /* the file forgets values that were not validated for this long; 30 days */
    int64_t file_max;     /* bytes of values in the file; those that were not validated for longest go first; 1 GiB */
    hf_span ttl;          /* how long a value is fresh; the origin's own word, hf_reply_max_age, comes first; 5 min */
    hf_span stale_max;    /* HF_FRESH_OR_STALE serves values up to this age; HF_SPAN_UNLIMITED */
    hf_span negative_ttl; /* how long "not found" is remembered; 30 s, HF_SPAN_OFF */
    int64_t bytes_max;    /* memory of values at hand; 64 MiB */
    int64_t value_max;    /* bytes of a value; 2 MiB */
    int64_t fetch_max;    /* fetches at once; 64 */
    int64_t send_max;     /* writes on their way at once; 16 */
    int64_t refresh_max;  /* refreshes that no caller waits for, at once; 64 */
    int64_t pending_max;  /* writes that wait; 100,000 */
    int64_t pending_bytes_max; /* bytes of them; 64 MiB */
    hf_span fetch_timeout;     /* of one attempt; 10 s */
    int64_t retries;           /* more attempts of a fetch; 2, HF_OFF */
    int64_t attempts_max;      /* of a write, before it is given up as dead; HF_UNLIMITED */
    /* Two writes of a key within this span are one, if the first was not sent yet; 150 ms, HF_SPAN_OFF. */
    hf_span coalesce;
    hf_conflict on_conflict; /* of writes that do not say it themselves; HF_CONFLICT_SERVER_WINS */
    /* The origin that a key belongs to: a number below 64 of your choice. Each has its own circuit breaker. NULL =
     * there is one. */
    unsigned (*origin_of)(void *state, hf_depot_key key);
    hf_combiner combine; /* makes one patch of two within .coalesce; NULL = patches are sent one by one */
    /* Nothing is sent but by hf_depot_drive: writes wait for it, also those of an earlier process. */
    bool driven;
    /* Fetches many keys with one call: the misses of one hf_depot_get_many, and with .batch_window those of all calls. A
     * call counts as one fetch of .fetch_max. NULL = they are fetched one by one. Without .fetch it fetches single keys,
     * too. */
    hf_many_fetcher fetch_many;
    hf_span batch_window;    /* a fetch waits this long for others that can share its call; 0 = no */
    hf_subscriber subscribe; /* instead of fetch */
    hf_decoder decode;       /* hf_depot_get and watchers give what it makes; NULL = they give the bytes */
    hf_encoder encode;       /* needed by hf_depot_put_value */
    /* Where decode and encode run: a pool or a view. NULL = where they are needed: on the fiber of the fetch, or on the
     * caller's own fiber or thread. */
    hf_dispatcher *compute;
    const hf_source_hooks *source; /* instead of .file; copied */
} hf_depot_options;

typedef enum hf_fresh {
    /* What is at hand; an old value is served, and refreshed behind the caller's back; the default. */
    HF_FRESH_CACHED,
    HF_FRESH_WITHIN,   /* not older than .within, else it is fetched */
    HF_FRESH_NOW,      /* fetched now */
    HF_FRESH_OR_STALE, /* fetched now; if that fails, what is at hand, up to the age .stale_max */
    HF_FRESH_LOCAL     /* what is at hand, at any age; nothing is fetched */
} hf_fresh;

typedef enum hf_depot_place { HF_DEPOT_MEMORY, HF_DEPOT_SOURCE, HF_DEPOT_FETCHER, HF_DEPOT_WRITE } hf_depot_place;

#define HF_ETAG_LEN_MAX 1024

typedef struct hf_depot_info {
    hf_depot_place place; /* where the value came from */
    hf_span age;          /* since the origin confirmed it; 0 if it has never spoken of the key */
    bool is_stale;        /* older than it should be */
    bool is_pending;      /* it has writes that are not settled */
    uint64_t version;     /* one more with each change that can be seen; survives a restart */
    hf_span retry_after;  /* with HF_ERR_UNAVAILABLE: not before this has passed */
    char etag[HF_ETAG_LEN_MAX + 1];
} hf_depot_info;

typedef struct hf_depot_get_options {
    size_t size; /* set by the macro */
    hf_fresh fresh;
    hf_span within;  /* of HF_FRESH_WITHIN */
    hf_span timeout; /* bounds the caller; the fetch goes on for others. 0 or HF_SPAN_UNLIMITED = none */
    bool force;      /* fetch although the last one failed a moment ago */
    hf_urgency urgency;
    hf_depot_info *ret_info; /* set on success, and retry_after with HF_ERR_UNAVAILABLE; NULL = not wanted */
} hf_depot_get_options;

#define HF_DEPOT_LIST_MAX 10000 /* keys of a list, and items of one reading, those of lists inside included */
#define HF_DEPOT_DEPTH_MAX 8    /* lists inside lists */

typedef struct hf_depot_list_options {
    size_t size;            /* set by the macro */
    hf_fresh fresh;         /* of the list itself */
    hf_span within;         /* the same */
    hf_fresh members;       /* of its members; HF_FRESH_LOCAL asks the origin for none of them */
    hf_span members_within; /* the same */
    hf_span timeout;        /* of the call; 0 or HF_SPAN_UNLIMITED = none */
    bool force;             /* as of hf_depot_get */
    hf_urgency urgency;
    hf_depot_info *ret_info; /* of the list; NULL = not wanted */
} hf_depot_list_options;

/* A member of a list as it was read. */
typedef struct hf_item {
    hf_depot_key key;
    hf_value *value;  /* borrowed from the hf_items; NULL = there is none, or it could not be read */
    hf_status status; /* HF_OK; HF_ERR_NOT_FOUND: there is none; else why it could not be read */
    unsigned depth;   /* 1 = a member of the list that was asked for, 2 = of a list in it, ... */
    bool is_list;     /* the value is a list */
    bool is_cut;      /* a list whose members do not follow: it is inside itself, or too deep */
    bool is_stale;
    bool is_pending;
    hf_span age;
    uint64_t version;
} hf_item;

#define HF_DEPOT_MANY_MAX 4096 /* keys of one hf_depot_get_many */

typedef struct hf_depot_get_many_options {
    size_t size; /* set by the macro */
    hf_fresh fresh;
    hf_span within;  /* of HF_FRESH_WITHIN */
    hf_span timeout; /* keys that have no answer by then have HF_ERR_TIMEOUT. 0 or HF_SPAN_UNLIMITED = none */
    bool force;
    hf_urgency urgency;
    hf_depot_info *ret_infos; /* as many as keys, each set as ret_info of hf_depot_get; NULL = not wanted */
} hf_depot_get_many_options;

#define HF_DEPOT_MESSAGE_LEN 200

/* What became of one key of many. */
typedef struct hf_depot_result {
    hf_status status;                   /* as of hf_depot_get */
    hf_value *value;                    /* with HF_OK: the caller's own reference */
    char message[HF_DEPOT_MESSAGE_LEN]; /* without: a sentence for people */
} hf_depot_result;

typedef enum hf_depot_mode {
    HF_DEPOT_LOCAL_FIRST, /* durable here, visible at once, sent when it can be; the default */
    HF_DEPOT_ORIGIN_FIRST /* sent first; nothing changes here before the origin has accepted it */
} hf_depot_mode;

typedef struct hf_depot_write_options {
    size_t size; /* set by the macro */
    hf_depot_mode mode;
    const char *if_match;       /* only if the origin's value has this etag */
    bool if_none;               /* only if the origin has no value */
    uint64_t if_version;        /* only if the value here has this version, else HF_ERR_CONFLICT; 0 = no condition */
    hf_conflict on_conflict;    /* the depot's */
    hf_depot_write **ret_write; /* to wait for it; NULL = not wanted. Freed with hf_depot_write_free */
    /* Of the call; with HF_DEPOT_ORIGIN_FIRST of the answer. The write may happen all the same. */
    hf_span timeout;
} hf_depot_write_options;

typedef struct hf_depot_invalidate_options {
    size_t size; /* set by the macro */
    /* The value is deleted; else it is kept for its etag and for HF_FRESH_OR_STALE. Writes that wait are sent all the
     * same. */
    bool hard;
    /* With .hard: writes that wait, and dead ones, are dropped, too; their waiters get HF_ERR_CANCELED. One that
     * is being sent may still reach the origin; it is not sent again. */
    bool drop_pending;
} hf_depot_invalidate_options;

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

typedef enum hf_depot_event_kind {
    HF_DEPOT_LOADING, /* nothing is at hand; it is being fetched */
    HF_DEPOT_DATA,    /* the value, or its age, has changed */
    HF_DEPOT_ERROR,   /* a fetch has failed */
    HF_DEPOT_GONE,    /* the value was deleted */
    HF_DEPOT_REKEYED  /* the origin has given the key another id; the watcher goes on with it. Never dropped */
} hf_depot_event_kind;

typedef struct hf_depot_event {
    hf_depot_event_kind kind;
    /* Of DATA; of REKEYED it holds the bytes of `key`. The receiver's own reference: release it with hf_value_unref. */
    hf_value *value;
    hf_span age;
    bool is_stale;
    bool is_pending;
    bool served_stale; /* of ERROR: the value at hand is still there */
    hf_status status;  /* of ERROR */
    uint64_t version;  /* of DATA and GONE: rises */
    hf_depot_key key;  /* of REKEYED: the new one; valid as long as `value` */
} hf_depot_event;

typedef struct hf_depot_watch_options {
    size_t size; /* set by the macro */
    hf_fresh fresh;
    hf_span within;
    /* Which events are kept for a watcher that is slow. It never holds up the depot, and never ends by itself.
     * HF_FLOW_CONFLATE, the default: the newest DATA, GONE or LOADING and the newest ERROR. HF_FLOW_BUFFER: the oldest
     * ones in order; when there are `capacity` of them, the last is replaced by each newer one, so that the newest is
     * always there. HF_FLOW_DROP_OLDEST: the newest ones in order. */
    hf_flow_mode mode;
    size_t capacity; /* events that are kept, up to 65,536; 1 with HF_FLOW_BUFFER, 16 with HF_FLOW_DROP_OLDEST */
    hf_span refresh; /* fetch again in this rhythm; 0 = no; HF_FRESH_LOCAL never fetches */
} hf_depot_watch_options;

/* ---- What one sees of a depot ------------------------------------------------------------------------------------ */

typedef enum hf_depot_news_kind {
    HF_NEWS_FETCHED,        /* a fetch has brought a value ... */
    HF_NEWS_NOT_MODIFIED,   /* ... or the word that the value at hand is still right */
    HF_NEWS_FETCH_FAILED,   /* after its last attempt */
    HF_NEWS_LANDED,         /* what was fetched is served from now on */
    HF_NEWS_NOT_KEPT,       /* it is, but the file could not take it */
    HF_NEWS_SENT,           /* a write is on its way to the origin */
    HF_NEWS_SETTLED,        /* the origin has accepted a write */
    HF_NEWS_SEND_FAILED,    /* a write is sent again later */
    HF_NEWS_CONFLICT,       /* a write has met another one at the origin */
    HF_NEWS_DEAD,           /* a write was refused, and waits for hf_depot_retry or hf_depot_drop */
    HF_NEWS_INVALIDATED,    /* a key; with `ns` alone a namespace; without, everything */
    HF_NEWS_BREAKER_OPEN,   /* the origin failed several times and is left alone for a while ... */
    HF_NEWS_BREAKER_CLOSED, /* ... and has answered again */
    HF_NEWS_DAMAGED         /* a record of the file cannot be read */
} hf_depot_news_kind;
#define HF_NEWS_KINDS 14 /* of them */

#define HF_DEPOT_NEWS_MAX 256 /* that hf_depot_events keeps for a collector that is slow; then the oldest go */

/* Something that has happened in a depot. It has no value: hf_depot_watch brings those. */
typedef struct hf_depot_news {
    hf_depot_news_kind kind;
    hf_status status;                     /* of a failure; else HF_OK */
    hf_reply_class reply_class;           /* of FETCH_FAILED, SEND_FAILED and DEAD */
    unsigned origin;                      /* of a breaker */
    uint64_t sequence;                    /* of a write, see hf_depot_pending_write; 0 = it is about none */
    hf_time at;                           /* by the clock of the runtime */
    char ns[HF_DEPOT_NAME_LEN_MAX + 1];   /* "" = it is about no key */
    char type[HF_DEPOT_NAME_LEN_MAX + 1]; /* "" = about no key, or about a whole namespace */
    size_t id_len;
    unsigned char id[HF_DEPOT_ID_LEN_MAX];
} hf_depot_news;

typedef struct hf_depot_counts {
    uint64_t hits_memory, hits_source; /* gets that were served from there */
    uint64_t misses;                   /* gets that waited for a fetch */
    uint64_t stale_served;
    uint64_t fetches, not_modified, fetch_failures; /* fetches that ended */
    uint64_t joined;                                /* gets that joined a fetch under way */
    uint64_t refreshes;                             /* fetches that began behind a caller's back */
    uint64_t writes, sent, conflicts, dead;         /* of writes */
    uint64_t pending, pending_bytes;                /* writes that wait, are on their way or are dead, now */
    uint64_t flights, watchers;                     /* now */
    uint64_t entries, bytes;                        /* in memory, now */
    uint64_t breakers_open;                         /* through which nothing goes now */
    uint64_t not_kept;                              /* values that the file could not take */
    uint64_t forgotten;                             /* values that left the file: old, invalidated, or too many */
    uint64_t damaged;                               /* records of the file that could not be read */
    uint64_t failures[HF_REPLY_CLASSES];            /* fetches that failed, by hf_reply_class */
    uint64_t evictions;                             /* values that left the memory to make room */
    uint64_t dead_now;                              /* dead writes that wait for a decision, now */
    uint64_t sending;                               /* writes on their way, now */
    uint64_t breakers_half_open;                    /* that let the next call through to try, now */
    uint64_t records;          /* values that replies brought besides their own, and that were kept */
    uint64_t records_left_out; /* those that were older than what is at hand, or could not be merged */
} hf_depot_counts;

/* A write that waits or is dead. Valid until the function that it was given to returns. */
typedef struct hf_depot_pending_write {
    /* Its number. It rises, and no other write of the file ever gets it; a restart leaves some numbers out.
     * A write with HF_DEPOT_ORIGIN_FIRST is not in the file: its number in hf_depot_news is 2^52 or more. */
    uint64_t sequence;
    hf_depot_key key;
    hf_write_verb verb;
    size_t len;
    int attempts;
    bool is_dead;
    hf_status status;    /* of the last attempt; HF_OK = none failed */
    const char *message; /* of the last attempt */
    char id[HF_WRITE_ID_LEN];
} hf_depot_pending_write;
typedef bool hf_depot_pending_visit(void *arg, const hf_depot_pending_write *write);
/* A key of a list, borrowed from the list. Returns whether it wants the next one. */
typedef bool hf_depot_key_visit(void *arg, hf_depot_key key);

/* ---- With workflows ---------------------------------------------------------------------------------------------- */

typedef struct hf_depot_memo_options {
    size_t size;     /* set by the macro */
    hf_span ttl;     /* an older answer is not used; the depot's .ttl, HF_SPAN_UNLIMITED */
    hf_memo_key key; /* which inputs are equal; NULL = those with the same bytes and encodings */
    const char *ns;  /* namespace of the answers' keys, 1 to 100 bytes, kept until the worker is freed; "memo" */
} hf_depot_memo_options;

typedef struct hf_depot_drive_options {
    size_t size;              /* set by the macro */
    const char *queue;        /* task queue of the sends, which belongs to this depot alone; "depot-NAME" */
    const char *namespace_;   /* of the runs; that of the service */
    int64_t attempts_max;     /* of a send, before it is given up as dead; HF_UNLIMITED */
    hf_span retry_initial;    /* pause before the second attempt; 1 s */
    double retry_coefficient; /* factor by which each pause is longer than the last; 2 */
    hf_span retry_max;        /* longest pause; 5 min */
} hf_depot_drive_options;

HF_BEGIN_DECLS

static inline hf_depot_key hf_depot_key_of(const char *ns, const char *type, const char *id)
{
    hf_depot_key key;
    key.ns = ns;
    key.type = type;
    key.id = id;
    key.id_len = 0;
    while (id != NULL && id[key.id_len] != '\0') {
        key.id_len++;
    }
    return key;
}

static inline hf_depot_key hf_depot_key_of_bytes(const char *ns, const char *type, const void *id, size_t id_len)
{
    hf_depot_key key;
    key.ns = ns;
    key.type = type;
    key.id = id;
    key.id_len = id_len;
    return key;
}

/* The id of a query: the same for the same terms in any order, and for no others. Fails: HF_ERR_INVALID: a name twice,
 * a term without a name or value; HF_ERR_TOO_BIG: more than 1,000 bytes; HF_ERR_LIMIT: more than 64 terms. */
HF_API HF_MUST_USE hf_status hf_depot_query(const hf_depot_term *terms, size_t count, hf_depot_query_id *ret_id);

/* Opens a depot. The calling fiber or thread owns it and closes it, in reverse order with its scopes: fetches and sends
 * are children of a scope of the depot, and no failure of one reaches another. All other calls may come from any fiber
 * or thread, but not from a workflow. `name` is for logs and dumps; it must outlive the depot (a literal).
 * With .file the program is the owner of the file until the depot is closed, and answers `holdfast depot` through a
 * socket beside it.
 * Fails: HF_ERR_INVALID, HF_ERR_NOMEM; and with .file HF_ERR_CONFLICT: another program has it open; HF_ERR_UNSUPPORTED:
 * a newer version wrote it; HF_ERR_NOT_FOUND: there is no such folder; HF_ERR_DENIED, HF_ERR_FULL, HF_ERR_IO. */
HF_API HF_MUST_USE hf_status hf_depot_open_with(const char *name, hf_depot **ret_depot,
                                                const hf_depot_options *options);
/* Cancels fetches and sends, ends watchers and calls that wait with HF_ERR_CLOSED, writes what is left to write, and
 * frees the depot when the last of its callbacks has returned. No call may begin any more. Nothing that was
 * acknowledged is lost. Fails: HF_ERR_MISUSE from anyone but the owner. */
HF_API hf_status hf_depot_close(hf_depot *depot);

/* Gives the value of a key, as fresh as asked for; `*ret_value` holds a reference.
 * Fails: HF_ERR_NOT_FOUND: there is none, or (HF_FRESH_LOCAL) none is at hand. HF_ERR_UNAVAILABLE: nothing that would
 * do is at hand, and the origin is not asked at the moment, because it failed a moment ago or the depot is offline;
 * .ret_info has retry_after. HF_ERR_TIMEOUT, HF_ERR_CANCELED: of the caller. HF_ERR_CONFLICT: the key was invalidated
 * three times while it was fetched. HF_ERR_INVALID: the key. Else the failure of the fetcher. */
HF_API HF_MUST_USE hf_status hf_depot_get_with(hf_depot *depot, hf_depot_key key, hf_value **ret_value,
                                               const hf_depot_get_options *options);
/* hf_depot_get for many keys, each by itself: results[i] is about keys[i]. Returns when all of them are answered; those
 * that have to be fetched are fetched side by side, or with .fetch_many together. The same key may be there twice.
 * HF_OK: all results are set, whatever their status; the caller releases their values. Fails, and sets no result:
 * HF_ERR_CANCELED; HF_ERR_LIMIT: more than 4,096 keys; HF_ERR_CLOSED, HF_ERR_NOMEM, HF_ERR_INVALID (an option). */
HF_API HF_MUST_USE hf_status hf_depot_get_many_with(hf_depot *depot, const hf_depot_key *keys, size_t count,
                                                    hf_depot_result *ret_results,
                                                    const hf_depot_get_many_options *options);
/* Fetches the value behind the caller's back if what is at hand is not fresh. Returns at once. Fails: HF_ERR_INVALID,
 * HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_depot_prefetch(hf_depot *depot, hf_depot_key key);

/* Writes. Local first: when this returns the write is on the disk (with .file), everybody sees the new value, and it
 * will be sent to the origin, also after a restart, in order with the other writes of its key, until the origin has
 * accepted or refused it.
 * Fails: HF_ERR_LIMIT: too many writes wait. HF_ERR_TOO_BIG: the value is over .value_max. HF_ERR_CONFLICT:
 * .if_version. HF_ERR_MISUSE: the depot has no .push. HF_ERR_FULL, HF_ERR_IO, HF_ERR_STORE: it is not on the disk, and
 * nothing has changed. With HF_DEPOT_ORIGIN_FIRST also HF_ERR_UNAVAILABLE: the depot is offline or the origin is not
 * asked at the moment; and the origin's refusal. */
HF_API HF_MUST_USE hf_status hf_depot_put_with(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
                                               const hf_depot_write_options *options);
/* The same with what .encode makes of an object; the caller keeps its reference. Fails also: HF_ERR_MISUSE: there is no
 * .encode; what .encode returned. */
HF_API HF_MUST_USE hf_status hf_depot_put_value_with(hf_depot *depot, hf_depot_key key, const hf_value *object,
                                                     const hf_depot_write_options *options);
/* A change of the value, as bytes that .apply understands. Fails also: HF_ERR_MISUSE: there is no .apply; what .apply
 * returned. */
HF_API HF_MUST_USE hf_status hf_depot_patch_with(hf_depot *depot, hf_depot_key key, const void *patch, size_t len,
                                                 const hf_depot_write_options *options);
HF_API HF_MUST_USE hf_status hf_depot_delete_with(hf_depot *depot, hf_depot_key key,
                                                  const hf_depot_write_options *options);
/* Makes something new. `key` needs no id (NULL, 0): then it gets a provisional one, `~` and 26 letters, which all calls
 * take. The origin gets the write as HF_WRITE_CREATE and may answer with another id (hf_reply_key). From then on this
 * is the key, in one step with the writes that were made meanwhile; watchers get HF_DEPOT_REKEYED, and the provisional
 * id stands for it for 7 days. `*ret_id` (NULL = not wanted) is the id: the provisional one, or with
 * HF_DEPOT_ORIGIN_FIRST the final one; hf_depot_write_key tells it later.
 * Fails as hf_depot_put, and with HF_ERR_CONFLICT if a value with this id is at hand; HF_ERR_UNSUPPORTED: no id, and the
 * depot has .subscribe. */
HF_API HF_MUST_USE hf_status hf_depot_create_with(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
                                                  hf_depot_id *ret_id, const hf_depot_write_options *options);
/* The id of the key that the write is about, as far as it is known: of a create that was accepted, the origin's.
 * Fails: HF_ERR_MISUSE. */
HF_API HF_MUST_USE hf_status hf_depot_write_key(const hf_depot_write *write, hf_depot_id *ret_id);
/* Waits until the origin has accepted the write (HF_OK) or it was given up: HF_ERR_CONFLICT, the origin's refusal,
 * HF_ERR_CLOSED when the depot closes first. */
HF_API HF_MUST_USE hf_status hf_depot_write_wait_with(hf_depot_write *write, const hf_wait_options *options);
HF_API void hf_depot_write_free(hf_depot_write *write); /* accepts NULL; the write goes on */

/* After this has returned nothing from before is served, nor written by a fetch that was under way. Fails, and changes
 * nothing: HF_ERR_INVALID: the key, or .drop_pending without .hard; HF_ERR_FULL, HF_ERR_IO, HF_ERR_STORE: it is not on the
 * disk; HF_ERR_NOMEM, HF_ERR_CLOSED. After HF_ERR_CANCELED it may happen all the same. */
HF_API HF_MUST_USE hf_status hf_depot_invalidate_with(hf_depot *depot, hf_depot_key key,
                                                      const hf_depot_invalidate_options *options);
/* The same for all keys of a namespace, and for all; takes one row, however many there are. Fails: as for a key. */
HF_API HF_MUST_USE hf_status hf_depot_invalidate_namespace_with(hf_depot *depot, const char *ns,
                                                                const hf_depot_invalidate_options *options);
HF_API HF_MUST_USE hf_status hf_depot_invalidate_all_with(hf_depot *depot, const hf_depot_invalidate_options *options);
/* The row of the key was changed in the source by somebody else: it is read again, and watchers see what has changed.
 * A fetch under way is not affected. Fails: HF_ERR_INVALID: the key; the failure of the source: what was at hand
 * stays. */
HF_API HF_MUST_USE hf_status hf_depot_changed(hf_depot *depot, hf_depot_key key);
/* Frees memory until at most `bytes` are taken by values at hand. The file keeps them. Fails: HF_ERR_INVALID: `bytes` is
 * negative. */
HF_API HF_MUST_USE hf_status hf_depot_trim(hf_depot *depot, int64_t bytes);
/* Whether the origin can be reached, as far as you know; true at first. False: no fetch, subscription or send begins; those
 * under way go on. True again: writes are sent at once. Fails: HF_ERR_CANCELED, HF_ERR_CLOSED. */
HF_API HF_MUST_USE hf_status hf_depot_online(hf_depot *depot, bool is_online);
/* The same numbers are in hf_metrics of the depot's runtime, by the name of the depot. Fails: HF_ERR_CANCELED,
 * HF_ERR_CLOSED. */
HF_API HF_MUST_USE hf_status hf_depot_stat(hf_depot *depot, hf_depot_counts *ret_counts);
/* Collects what happens in the whole depot from now on, as hf_depot_news, with hf_collector_next. It never holds up the
 * depot: a collector that is slow loses the oldest of HF_DEPOT_NEWS_MAX (hf_collector_dropped). It belongs to the calling
 * fiber or thread, which closes it with hf_collector_close; it ends with HF_ERR_CLOSED when the depot is closed.
 * Fails: HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_depot_events(hf_depot *depot, hf_collector **ret_collector);
/* "fetched", "breaker open"; "?" for a number that is none of them. */
HF_API const char *hf_depot_news_name(hf_depot_news_kind kind);
/* The writes that wait or are dead, in order. Fails: HF_ERR_CANCELED, HF_ERR_CLOSED. */
HF_API HF_MUST_USE hf_status hf_depot_pending(hf_depot *depot, hf_depot_pending_visit *visit, void *arg);
/* Sends a write again at once, also a dead one; or drops it. A write of the file that cannot be read is not in the list,
 * but can be dropped: `holdfast depot pending --damaged` shows their numbers. Fails: HF_ERR_NOT_FOUND; HF_ERR_CONFLICT:
 * it is being sent. */
HF_API HF_MUST_USE hf_status hf_depot_retry(hf_depot *depot, uint64_t sequence);
HF_API HF_MUST_USE hf_status hf_depot_drop(hf_depot *depot, uint64_t sequence);

/* Watches a key: first what is at hand, then every change. Fails: HF_ERR_INVALID: the key or an option; HF_ERR_CANCELED,
 * HF_ERR_CLOSED, HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_depot_watch_with(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                                                 const hf_depot_watch_options *options);
/* Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_CLOSED: the depot was closed. */
HF_API HF_MUST_USE hf_status hf_watcher_next_with(hf_watcher *watcher, hf_depot_event *ret_event,
                                                  const hf_wait_options *options);
HF_API uint64_t hf_watcher_dropped(const hf_watcher *watcher); /* events that newer ones replaced so far */
HF_API hf_status hf_watcher_close(hf_watcher *watcher);        /* accepts NULL */

/* Answers of activities, kept in the depot: for .memo of hf_worker_add_activity, which says what is wrong with it. The
 * worker must be freed before the depot is closed. The key of an answer is {.ns, name of the activity, id}; the id is what
 * .key gives, or the input, if that has at most 1,000 bytes, else its hash. So hf_depot_invalidate_namespace(depot, "memo")
 * forgets all answers. Answers are not encrypted by the codec of the service. Runs of an activity with a memo count as
 * fetches nowhere: .fetch of the depot is not used, and it may be missing. */
HF_API HF_MUST_USE hf_memo hf_depot_memo_with(hf_depot *depot, const hf_depot_memo_options *options);
/* Lets workflows of this service drive the sends of the depot: each key that has writes has a run of the workflow
 * "holdfast.depot", with the id "depot-NAME/NS/TYPE/ID", and each send is an activity "holdfast.depot.send" of it. So they
 * are in hf_list, can be paused, and are tried again as the retry options say. A worker on .queue is started for them. The
 * writes stay in the depot: a run that is lost is started again, and no write is lost or sent under another id. Names of
 * depots that use one service must differ. A depot that is opened with .driven sends nothing before. Close the depot, or call hf_depot_undrive, before the service is closed.
 * Fails: HF_ERR_EXISTS: it is driven already; HF_ERR_MISUSE: it has no .push; HF_ERR_INVALID, HF_ERR_NOMEM, and as
 * hf_worker_start. */
HF_API HF_MUST_USE hf_status hf_depot_drive_with(hf_depot *depot, hf_service *service,
                                                 const hf_depot_drive_options *options);
/* The depot sends by itself again, unless it was opened with .driven. Waits until the worker has stopped. Runs that are open wait for the next
 * hf_depot_drive. Does nothing if it is not driven. Fails: as hf_worker_wait. */
HF_API HF_MUST_USE hf_status hf_depot_undrive(hf_depot *depot);

/* ---- Lists: values that are lists of keys. Their members are values of their own, and a member may itself be a list. */

/* Makes a list, to be put with hf_depot_put; a fetcher uses hf_reply_list. `*ret_value` holds a reference. Fails:
 * HF_ERR_INVALID: a key; HF_ERR_LIMIT: more than HF_DEPOT_LIST_MAX keys; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_depot_list_pack(const hf_depot_key *keys, size_t count, hf_value **ret_value);
/* Calls `visit` for each key of a list, in order. Fails: HF_ERR_INVALID: the value is not a list. */
HF_API HF_MUST_USE hf_status hf_depot_list_keys(const hf_value *list, hf_depot_key_visit *visit, void *arg);
/* Reads a list and its members, at most 256 at a time; the members of a list in the list follow it, to the depth
 * HF_DEPOT_DEPTH_MAX, but not if it is inside itself. A member that is not there, or that cannot be read, has no value.
 * Fails: as hf_depot_get for the list itself. HF_ERR_INVALID: it is not a list. HF_ERR_LIMIT: more than
 * HF_DEPOT_LIST_MAX items. */
HF_API HF_MUST_USE hf_status hf_depot_list_with(hf_depot *depot, hf_depot_key key, hf_items **ret_items,
                                                const hf_depot_list_options *options);
HF_API size_t hf_items_count(const hf_items *items);
HF_API const hf_item *hf_items_at(const hf_items *items, size_t index); /* NULL = there is no such item */
HF_API void hf_items_free(hf_items *items);                             /* accepts NULL */
/* As hf_depot_watch, but the watcher also gets DATA, with the list as it is, when a member has changed or was
 * invalidated, also one of a list in the list. Then read it with hf_depot_list. */
HF_API HF_MUST_USE hf_status hf_depot_list_watch_with(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                                                      const hf_depot_watch_options *options);

/* How a fetcher or pusher answers. These return HF_OK, or HF_ERR_NOMEM, HF_ERR_TOO_BIG, HF_ERR_INVALID: then return
 * that status. */
HF_API HF_MUST_USE hf_status hf_reply_value(hf_reply *reply, const void *data, size_t len);
HF_API HF_MUST_USE hf_status hf_reply_not_modified(hf_reply *reply);
/* hf_reply_value with a list of these keys. Fails also: HF_ERR_LIMIT: more than HF_DEPOT_LIST_MAX keys. */
HF_API HF_MUST_USE hf_status hf_reply_list(hf_reply *reply, const hf_depot_key *keys, size_t count);
/* The origin's answer has another value in it, such as a member of the list. It is kept together with the answer's own
 * value, all of them or none; but not if its key was invalidated, or the origin has accepted a write of it, or a later
 * fetch has brought it, since this one began. Writes of the key that wait stay visible. Given twice, the second one
 * counts. A value made of a partial record with nothing at hand is stale from the start. Only fetchers may call it.
 * Fails also: HF_ERR_LIMIT: more than HF_REPLY_RECORDS_MAX records; HF_ERR_TOO_BIG: HF_REPLY_BYTES_MAX;
 * HF_ERR_MISUSE: the depot has no .merge for a partial record, or this is a pusher; HF_ERR_INVALID: the key of the
 * request itself. */
HF_API HF_MUST_USE hf_status hf_reply_add_with(hf_reply *reply, hf_depot_key key, const void *data, size_t len,
                                               const hf_reply_add_options *options);
HF_API HF_MUST_USE hf_status hf_reply_etag(hf_reply *reply, const char *etag);
HF_API HF_MUST_USE hf_status hf_reply_last_modified(hf_reply *reply, const char *last_modified);
/* The origin's own number of this value, which rises with every change of it; above 0. It is not the version of
 * hf_depot_info. A value that is fetched after a delete counts only if it is newer than the delete, see docs/guide. */
HF_API HF_MUST_USE hf_status hf_reply_revision(hf_reply *reply, uint64_t revision);
/* The key that the origin has given to what HF_WRITE_CREATE has made. Namespace and type stay. Fails also:
 * HF_ERR_MISUSE: the write was not a create without an id. */
HF_API HF_MUST_USE hf_status hf_reply_key(hf_reply *reply, hf_depot_key key);
/* How long the value is fresh; HF_SPAN_OFF = it is never fresh. */
HF_API HF_MUST_USE hf_status hf_reply_max_age(hf_reply *reply, hf_span max_age);
/* Of a subscriber: hands over what the reply says and clears it for the next one. Returns when the depot has kept it.
 * Fails: HF_ERR_CANCELED: nobody wants it any more; HF_ERR_INVALID: it says nothing, or "not modified" without an etag
 * in the request; what .decode returned. Return these; HF_ERR_MISUSE: the reply is not that of a subscriber. */
HF_API HF_MUST_USE hf_status hf_reply_emit(hf_reply *reply);
/* Says why it failed. Returns a status that stands for the class: return it. */
HF_API HF_MUST_USE hf_status hf_reply_fail_with(hf_reply *reply, hf_reply_class reply_class,
                                                const hf_reply_fail_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_depot_close, hf_depot)
HF_AUTO_DEFINE(hf_depot_write_free, hf_depot_write)
HF_AUTO_DEFINE(hf_watcher_close, hf_watcher)
HF_AUTO_DEFINE(hf_items_free, hf_items)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_depot_open(...) HF_DEPOT_OPEN_(__VA_ARGS__, .size = sizeof(hf_depot_options))
#define HF_DEPOT_OPEN_(name, ret_depot, ...) \
    hf_depot_open_with((name), (ret_depot), &(hf_depot_options){__VA_ARGS__})
#define hf_depot_get(...) HF_DEPOT_GET_(__VA_ARGS__, .size = sizeof(hf_depot_get_options))
#define HF_DEPOT_GET_(depot, key, ret_value, ...) \
    hf_depot_get_with((depot), (key), (ret_value), &(hf_depot_get_options){__VA_ARGS__})
#define hf_depot_get_many(...) HF_DEPOT_GET_MANY_(__VA_ARGS__, .size = sizeof(hf_depot_get_many_options))
#define HF_DEPOT_GET_MANY_(depot, keys, count, ret_results, ...) \
    hf_depot_get_many_with((depot), (keys), (count), (ret_results), &(hf_depot_get_many_options){__VA_ARGS__})
#define hf_depot_put(...) HF_DEPOT_PUT_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_PUT_(depot, key, data, len, ...) \
    hf_depot_put_with((depot), (key), (data), (len), &(hf_depot_write_options){__VA_ARGS__})
#define hf_depot_put_value(...) HF_DEPOT_PUT_VALUE_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_PUT_VALUE_(depot, key, object, ...) \
    hf_depot_put_value_with((depot), (key), (object), &(hf_depot_write_options){__VA_ARGS__})
#define hf_depot_patch(...) HF_DEPOT_PATCH_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_PATCH_(depot, key, patch, len, ...) \
    hf_depot_patch_with((depot), (key), (patch), (len), &(hf_depot_write_options){__VA_ARGS__})
#define hf_depot_delete(...) HF_DEPOT_DELETE_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_DELETE_(depot, key, ...) \
    hf_depot_delete_with((depot), (key), &(hf_depot_write_options){__VA_ARGS__})
#define hf_depot_create(...) HF_DEPOT_CREATE_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_CREATE_(depot, key, data, len, ret_id, ...) \
    hf_depot_create_with((depot), (key), (data), (len), (ret_id), &(hf_depot_write_options){__VA_ARGS__})
#define hf_depot_write_wait(...) HF_DEPOT_WRITE_WAIT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_DEPOT_WRITE_WAIT_(write, ...) \
    hf_depot_write_wait_with((write), &(hf_wait_options){__VA_ARGS__})
#define hf_depot_invalidate(...) HF_DEPOT_INVALIDATE_(__VA_ARGS__, .size = sizeof(hf_depot_invalidate_options))
#define HF_DEPOT_INVALIDATE_(depot, key, ...) \
    hf_depot_invalidate_with((depot), (key), &(hf_depot_invalidate_options){__VA_ARGS__})
#define hf_depot_invalidate_namespace(...) HF_DEPOT_INVALIDATE_NAMESPACE_(__VA_ARGS__, .size = sizeof(hf_depot_invalidate_options))
#define HF_DEPOT_INVALIDATE_NAMESPACE_(depot, ns, ...) \
    hf_depot_invalidate_namespace_with((depot), (ns), &(hf_depot_invalidate_options){__VA_ARGS__})
#define hf_depot_invalidate_all(...) HF_DEPOT_INVALIDATE_ALL_(__VA_ARGS__, .size = sizeof(hf_depot_invalidate_options))
#define HF_DEPOT_INVALIDATE_ALL_(depot, ...) \
    hf_depot_invalidate_all_with((depot), &(hf_depot_invalidate_options){__VA_ARGS__})
#define hf_depot_watch(...) HF_DEPOT_WATCH_(__VA_ARGS__, .size = sizeof(hf_depot_watch_options))
#define HF_DEPOT_WATCH_(depot, key, ret_watcher, ...) \
    hf_depot_watch_with((depot), (key), (ret_watcher), &(hf_depot_watch_options){__VA_ARGS__})
#define hf_watcher_next(...) HF_WATCHER_NEXT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_WATCHER_NEXT_(watcher, ret_event, ...) \
    hf_watcher_next_with((watcher), (ret_event), &(hf_wait_options){__VA_ARGS__})
#define hf_depot_memo(...) HF_DEPOT_MEMO_(__VA_ARGS__, .size = sizeof(hf_depot_memo_options))
#define HF_DEPOT_MEMO_(depot, ...) \
    hf_depot_memo_with((depot), &(hf_depot_memo_options){__VA_ARGS__})
#define hf_depot_drive(...) HF_DEPOT_DRIVE_(__VA_ARGS__, .size = sizeof(hf_depot_drive_options))
#define HF_DEPOT_DRIVE_(depot, service, ...) \
    hf_depot_drive_with((depot), (service), &(hf_depot_drive_options){__VA_ARGS__})
#define hf_depot_list(...) HF_DEPOT_LIST_(__VA_ARGS__, .size = sizeof(hf_depot_list_options))
#define HF_DEPOT_LIST_(depot, key, ret_items, ...) \
    hf_depot_list_with((depot), (key), (ret_items), &(hf_depot_list_options){__VA_ARGS__})
#define hf_depot_list_watch(...) HF_DEPOT_LIST_WATCH_(__VA_ARGS__, .size = sizeof(hf_depot_watch_options))
#define HF_DEPOT_LIST_WATCH_(depot, key, ret_watcher, ...) \
    hf_depot_list_watch_with((depot), (key), (ret_watcher), &(hf_depot_watch_options){__VA_ARGS__})
#define hf_reply_add(...) HF_REPLY_ADD_(__VA_ARGS__, .size = sizeof(hf_reply_add_options))
#define HF_REPLY_ADD_(reply, key, data, len, ...) \
    hf_reply_add_with((reply), (key), (data), (len), &(hf_reply_add_options){__VA_ARGS__})
#define hf_reply_fail(...) HF_REPLY_FAIL_(__VA_ARGS__, .size = sizeof(hf_reply_fail_options))
#define HF_REPLY_FAIL_(reply, reply_class, ...) \
    hf_reply_fail_with((reply), (reply_class), &(hf_reply_fail_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_depot_open(const char *name, hf_depot **ret_depot,
    hf_depot_options options = hf_depot_options())
{
    options.size = sizeof options;
    return hf_depot_open_with(name, ret_depot, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_get(hf_depot *depot, hf_depot_key key, hf_value **ret_value,
    hf_depot_get_options options = hf_depot_get_options())
{
    options.size = sizeof options;
    return hf_depot_get_with(depot, key, ret_value, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_get_many(hf_depot *depot, const hf_depot_key *keys, size_t count, hf_depot_result *ret_results,
    hf_depot_get_many_options options = hf_depot_get_many_options())
{
    options.size = sizeof options;
    return hf_depot_get_many_with(depot, keys, count, ret_results, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_put(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_put_with(depot, key, data, len, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_put_value(hf_depot *depot, hf_depot_key key, const hf_value *object,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_put_value_with(depot, key, object, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_patch(hf_depot *depot, hf_depot_key key, const void *patch, size_t len,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_patch_with(depot, key, patch, len, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_delete(hf_depot *depot, hf_depot_key key,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_delete_with(depot, key, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_create(hf_depot *depot, hf_depot_key key, const void *data, size_t len, hf_depot_id *ret_id,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_create_with(depot, key, data, len, ret_id, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_write_wait(hf_depot_write *write,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_depot_write_wait_with(write, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_invalidate(hf_depot *depot, hf_depot_key key,
    hf_depot_invalidate_options options = hf_depot_invalidate_options())
{
    options.size = sizeof options;
    return hf_depot_invalidate_with(depot, key, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_invalidate_namespace(hf_depot *depot, const char *ns,
    hf_depot_invalidate_options options = hf_depot_invalidate_options())
{
    options.size = sizeof options;
    return hf_depot_invalidate_namespace_with(depot, ns, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_invalidate_all(hf_depot *depot,
    hf_depot_invalidate_options options = hf_depot_invalidate_options())
{
    options.size = sizeof options;
    return hf_depot_invalidate_all_with(depot, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_watch(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
    hf_depot_watch_options options = hf_depot_watch_options())
{
    options.size = sizeof options;
    return hf_depot_watch_with(depot, key, ret_watcher, &options);
}
static inline HF_MUST_USE hf_status
hf_watcher_next(hf_watcher *watcher, hf_depot_event *ret_event,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_watcher_next_with(watcher, ret_event, &options);
}
static inline HF_MUST_USE hf_memo
hf_depot_memo(hf_depot *depot,
    hf_depot_memo_options options = hf_depot_memo_options())
{
    options.size = sizeof options;
    return hf_depot_memo_with(depot, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_drive(hf_depot *depot, hf_service *service,
    hf_depot_drive_options options = hf_depot_drive_options())
{
    options.size = sizeof options;
    return hf_depot_drive_with(depot, service, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_list(hf_depot *depot, hf_depot_key key, hf_items **ret_items,
    hf_depot_list_options options = hf_depot_list_options())
{
    options.size = sizeof options;
    return hf_depot_list_with(depot, key, ret_items, &options);
}
static inline HF_MUST_USE hf_status
hf_depot_list_watch(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
    hf_depot_watch_options options = hf_depot_watch_options())
{
    options.size = sizeof options;
    return hf_depot_list_watch_with(depot, key, ret_watcher, &options);
}
static inline HF_MUST_USE hf_status
hf_reply_add(hf_reply *reply, hf_depot_key key, const void *data, size_t len,
    hf_reply_add_options options = hf_reply_add_options())
{
    options.size = sizeof options;
    return hf_reply_add_with(reply, key, data, len, &options);
}
static inline HF_MUST_USE hf_status
hf_reply_fail(hf_reply *reply, hf_reply_class reply_class,
    hf_reply_fail_options options = hf_reply_fail_options())
{
    options.size = sizeof options;
    return hf_reply_fail_with(reply, reply_class, &options);
}
#endif
/* clang-format on */

#endif
