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

typedef struct hf_depot hf_depot;
typedef struct hf_reply hf_reply;
typedef struct hf_watcher hf_watcher;
typedef struct hf_depot_write hf_depot_write;

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

/* Valid until the fetcher returns. */
typedef struct hf_fetch_request {
    hf_depot_key key;
    const char *etag;          /* of the value that is at hand; NULL = ask without a condition */
    const char *last_modified; /* the same */
    hf_urgency urgency;
    int attempt;         /* from 1 on */
    hf_instant deadline; /* of this attempt; a wait of the fetcher ends there with HF_ERR_TIMEOUT */
} hf_fetch_request;

/* Asks the origin. It runs on a fiber of the depot, or on .on. It answers with hf_reply_value or hf_reply_not_modified
 * and returns HF_OK, or returns a failure: HF_ERR_NOT_FOUND if there is no such thing, what hf_reply_fail returned, or
 * any other status. */
typedef hf_status (*hf_fetcher)(void *state, const hf_fetch_request *request, hf_reply *reply);

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
 * wants, `theirs` what the origin has. */
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
    HF_REPLY_INVALID    /* not tried again */
} hf_reply_class;

typedef struct hf_reply_fail_options {
    size_t size;         /* set by the macro */
    int http_status;     /* decides the class if it is given: 404, 503 */
    hf_span retry_after; /* the origin asks not to come back earlier; at most an hour counts */
    const char *message; /* a sentence for people; copied */
} hf_reply_fail_options;

/* ---- Options ----------------------------------------------------------------------------------------------------- */

typedef enum hf_conflict {
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
    hf_merger merge;      /* needed by HF_CONFLICT_MERGE */
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
    hf_conflict on_conflict; /* HF_CONFLICT_SERVER_WINS */
    /* The origin that a key belongs to: a number below 64 of your choice. Each has its own circuit breaker. NULL =
     * there is one. */
    unsigned (*origin_of)(void *state, hf_depot_key key);
    hf_combiner combine; /* makes one patch of two within .coalesce; NULL = patches are sent one by one */
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
    hf_span age;          /* since the origin confirmed it */
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
    hf_conflict on_conflict;    /* 0 = the depot's */
    hf_depot_write **ret_write; /* to wait for it; NULL = not wanted. Freed with hf_depot_write_free */
    /* Of the call; with HF_DEPOT_ORIGIN_FIRST of the answer. The write may happen all the same. */
    hf_span timeout;
} hf_depot_write_options;

typedef struct hf_depot_invalidate_options {
    size_t size; /* set by the macro */
    /* The value is deleted; else it is kept for its etag and for HF_FRESH_OR_STALE. Writes that wait are sent all the
     * same. */
    bool hard;
    /* With .hard: writes that wait, and dead ones, are dropped, too; who waits for them gets HF_ERR_CANCELED. One that
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
    /* 0 = HF_FLOW_CONFLATE as well: a watcher never holds up the depot. HF_FLOW_DROP_OLDEST keeps `capacity`. */
    hf_flow_mode mode;
    size_t capacity; /* events that are kept; 16 with HF_FLOW_DROP_OLDEST */
    hf_span refresh; /* fetch again in this rhythm; 0 = no */
} hf_depot_watch_options;

typedef struct hf_depot_counts {
    uint64_t hits_memory, hits_source; /* gets that were served from there */
    uint64_t misses;                   /* gets that waited for a fetch */
    uint64_t stale_served;
    uint64_t fetches, not_modified, fetch_failures; /* fetches that ended */
    uint64_t joined;                                /* gets that joined a fetch under way */
    uint64_t refreshes;                             /* fetches that began behind a caller's back */
    uint64_t writes, sent, conflicts, dead;         /* of writes */
    uint64_t pending, pending_bytes;                /* writes that wait or are on their way, now */
    uint64_t flights, watchers;                     /* now */
    uint64_t entries, bytes;                        /* in memory, now */
    uint64_t breakers_open;                         /* now */
    uint64_t not_kept;                              /* values that the file could not take */
    uint64_t forgotten;                             /* values that left the file: old, invalidated, or too many */
    uint64_t damaged;                               /* records of the file that could not be read */
} hf_depot_counts;

/* A write that waits or is dead. Valid until the function that it was given to returns. */
typedef struct hf_depot_pending_write {
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
 * Fails: HF_ERR_INVALID, HF_ERR_NOMEM; and with .file HF_ERR_CONFLICT: another program has it open; HF_ERR_UNSUPPORTED:
 * a newer version wrote it; HF_ERR_DENIED, HF_ERR_FULL, HF_ERR_IO. */
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
 * Fails as hf_depot_put, and with HF_ERR_CONFLICT if a value with this id is at hand. */
HF_API HF_MUST_USE hf_status hf_depot_create_with(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
                                                  hf_depot_id *ret_id, const hf_depot_write_options *options);
/* The id of the key that the write is about, as far as it is known: of a create that was accepted, the origin's.
 * Fails: HF_ERR_MISUSE. */
HF_API HF_MUST_USE hf_status hf_depot_write_key(const hf_depot_write *write, hf_depot_id *ret_id);
/* Waits until the origin has accepted the write (HF_OK) or it was given up: HF_ERR_CONFLICT, the origin's refusal,
 * HF_ERR_CLOSED when the depot closes first. */
HF_API HF_MUST_USE hf_status hf_depot_write_wait_with(hf_depot_write *write, const hf_wait_options *options);
HF_API void hf_depot_write_free(hf_depot_write *write); /* accepts NULL; the write goes on */

/* After this has returned nothing from before is served, nor written by a fetch that was under way. */
HF_API HF_MUST_USE hf_status hf_depot_invalidate_with(hf_depot *depot, hf_depot_key key,
                                                      const hf_depot_invalidate_options *options);
/* The same for all keys of a namespace, and for all; takes one row, however many there are. */
HF_API HF_MUST_USE hf_status hf_depot_invalidate_namespace_with(hf_depot *depot, const char *ns,
                                                                const hf_depot_invalidate_options *options);
HF_API HF_MUST_USE hf_status hf_depot_invalidate_all_with(hf_depot *depot, const hf_depot_invalidate_options *options);
/* Frees memory until at most `bytes` are taken by values at hand. The file keeps them. */
HF_API HF_MUST_USE hf_status hf_depot_trim(hf_depot *depot, int64_t bytes);
/* Whether the origin can be reached, as far as you know; true at first. False: nothing is fetched or sent. True again:
 * writes are sent at once. */
HF_API HF_MUST_USE hf_status hf_depot_online(hf_depot *depot, bool is_online);
HF_API HF_MUST_USE hf_status hf_depot_stat(hf_depot *depot, hf_depot_counts *ret_counts);
/* The writes that wait or are dead, in order. */
HF_API HF_MUST_USE hf_status hf_depot_pending(hf_depot *depot, hf_depot_pending_visit *visit, void *arg);
/* Sends a write again at once, also a dead one; or drops it. Fails: HF_ERR_NOT_FOUND; HF_ERR_CONFLICT: it is being
 * sent. */
HF_API HF_MUST_USE hf_status hf_depot_retry(hf_depot *depot, uint64_t sequence);
HF_API HF_MUST_USE hf_status hf_depot_drop(hf_depot *depot, uint64_t sequence);

/* Watches a key: first what is at hand, then every change. */
HF_API HF_MUST_USE hf_status hf_depot_watch_with(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                                                 const hf_depot_watch_options *options);
/* Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_CLOSED: the depot was closed. */
HF_API HF_MUST_USE hf_status hf_watcher_next_with(hf_watcher *watcher, hf_depot_event *ret_event,
                                                  const hf_wait_options *options);
HF_API uint64_t hf_watcher_dropped(const hf_watcher *watcher); /* events that newer ones replaced so far */
HF_API hf_status hf_watcher_close(hf_watcher *watcher);        /* accepts NULL */

/* What a fetcher or pusher answers. They return HF_OK, or HF_ERR_NOMEM, HF_ERR_TOO_BIG, HF_ERR_INVALID: then return
 * that. */
HF_API HF_MUST_USE hf_status hf_reply_value(hf_reply *reply, const void *data, size_t len);
HF_API HF_MUST_USE hf_status hf_reply_not_modified(hf_reply *reply);
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
/* Says why it failed. Returns a status that stands for the class: return it. */
HF_API HF_MUST_USE hf_status hf_reply_fail_with(hf_reply *reply, hf_reply_class reply_class,
                                                const hf_reply_fail_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_depot_close, hf_depot)
HF_AUTO_DEFINE(hf_depot_write_free, hf_depot_write)
HF_AUTO_DEFINE(hf_watcher_close, hf_watcher)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_depot_open(...) HF_DEPOT_OPEN_(__VA_ARGS__, .size = sizeof(hf_depot_options))
#define HF_DEPOT_OPEN_(name, ret_depot, ...) \
    hf_depot_open_with((name), (ret_depot), &(hf_depot_options){__VA_ARGS__})
#define hf_depot_get(...) HF_DEPOT_GET_(__VA_ARGS__, .size = sizeof(hf_depot_get_options))
#define HF_DEPOT_GET_(depot, key, ret_value, ...) \
    hf_depot_get_with((depot), (key), (ret_value), &(hf_depot_get_options){__VA_ARGS__})
#define hf_depot_put(...) HF_DEPOT_PUT_(__VA_ARGS__, .size = sizeof(hf_depot_write_options))
#define HF_DEPOT_PUT_(depot, key, data, len, ...) \
    hf_depot_put_with((depot), (key), (data), (len), &(hf_depot_write_options){__VA_ARGS__})
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
hf_depot_put(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
    hf_depot_write_options options = hf_depot_write_options())
{
    options.size = sizeof options;
    return hf_depot_put_with(depot, key, data, len, &options);
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
