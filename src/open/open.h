/* Shared by the files of this layer: parsed addresses, the owner's lock, the owner's socket. */
#ifndef HF_OPEN_OPEN_H
#define HF_OPEN_OPEN_H

#include "base/env.h"
#include "base/str.h"
#include "service/service.h"
#include "store/sqlite/owner.h"
#include "store/sqlite/sqlite.h"

/* ---- address.c ------------------------------------------------------------------------------------------------------- */

typedef enum hf_scheme {
    HF_SCHEME_SQLITE, /* the engine in this process, on a file */
    HF_SCHEME_MEMORY, /* the same on a store in memory, which is lost when it is closed */
    HF_SCHEME_REMOTE, /* an engine in another process, over gRPC */
    HF_SCHEME_OWNER   /* the engine of the process that has the file open, over the socket beside it */
} hf_scheme;

typedef struct hf_service_address {
    hf_scheme scheme;
    char path[HF_PATH_LEN_MAX]; /* sqlite, owner: as given */
    bool is_shared;             /* sqlite: other processes may have it, too, and one of them is the owner */
    size_t mem;                 /* bytes for everything; 0 = each part's own default */
    size_t log_len_max;         /* bytes of write-ahead log before a checkpoint; 0 = the store's default */
    hf_durability durability;
    bool has_retention; /* how long the namespace "default" keeps runs after their end was given: */
    int64_t retention;  /* ns; 0 = for ever */
    /* temporal: the texts point into the address. */
    hf_str host; /* IPv6 with its brackets */
    hf_str port;
    bool is_tls;
    hf_str namespace_;   /* for calls that name none; empty = "default" */
    hf_str ca;           /* a file in PEM, as the next two; empty = the certificates of the system */
    hf_str certificate;  /* empty = none */
    hf_str key;          /* of the certificate */
    hf_str server_name;  /* empty = the host */
    hf_str api_key_file; /* empty = none */
} hf_service_address;

/* "30d", "12h", "90m", "45s" or "0" as nanoseconds. False: it is not such a span. */
bool hf_retention_parse(hf_str text, int64_t *ret_ns);

/* Parses an address. Fails: HF_ERR_INVALID, with a message that lists the valid schemes or keys. */
hf_status hf_service_address_parse(hf_op *op, const char *address, hf_service_address *ret_place);

/* How mem= is divided, in bytes. */
typedef struct hf_shares {
    size_t cache;   /* SQLite's page cache */
    size_t state;   /* runs, queues and calls of the engine */
    size_t journal; /* part of `state`: changes that are only in the journal yet, and so are read after a crash */
} hf_shares;
hf_shares hf_service_address_shares(const hf_service_address *place); /* zeros = defaults */

/* ---- open.c ---------------------------------------------------------------------------------------------------------- */

/* A service in memory for tests, whose clock is moved by the calls of TestService (engine/skip.c). It knows every namespace and search
 * attribute. Closed by hf_close. Fails: as hf_open. */
hf_status hf_open_skipping(hf_service **ret_service);
/* The same on a runtime and a store (which it takes, also on failure; NULL = a new one in memory), with a clock that begins at `clock_at` and moves
 * only by skips. */
hf_status hf_open_standing(hf_runtime *runtime, hf_store *store, hf_time clock_at, hf_service **ret_service);
/* Figures of the engine and the store behind a service of hf_open or hf_open_skipping; rows are not counted. Blocks: not on a fiber.
 * Fails: what the store says. */
hf_status hf_open_figures(hf_op *op, hf_service *service, hf_pb_admin_stats *ret_stats);
/* ---- remote.c ---------------------------------------------------------------------------------------------------------- */

/* A service over the network. `api_key` NULL: that of the address, if it has one. Blocks. Fails: HF_ERR_INVALID (a file cannot be
 * used, a key without TLS), HF_ERR_UNAVAILABLE and others of hf_remote_open, HF_ERR_UNSUPPORTED (this library was built without). */
hf_status hf_open_remote(hf_op *op, hf_env *env, const hf_service_address *place, const char *api_key, hf_log_sink log,
                         void *log_state, hf_service **ret_service);

/* ---- admin.c: what tools ask the owner (share.h: the socket) ---------------------------------------------------------------------------------------- */

typedef struct hf_admin hf_admin;

/* Listens on a socket beside the database at `path`, and answers the requests of tools (proto/holdfast/admin.proto) and the calls of other
 * processes (share.h), on two threads. `engine` and `front` must outlive it. Fails: HF_ERR_INVALID (the path is too long for a socket),
 * HF_ERR_LIMIT, HF_ERR_NOMEM, statuses of listen. */
hf_status hf_admin_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_service *front,
                        hf_admin **ret_admin);
/* Stops the request that is being answered, and waits for the thread. Accepts NULL. */
void hf_admin_close(hf_admin *admin);

/* Fills in the store's part of the figures. `msg->rows` points into `stats`. */
void hf_admin_stats_of(const hf_store_stats *stats, hf_pb_admin_stats *msg);

/* ---- peek.c: a tool reads a database that no program has open ----------------------------------------------------------- */

typedef struct hf_peek {
    hf_env *env;
    hf_file_owner owner;          /* not taken if this user may not write to the folder */
    hf_store *store;              /* read only */
    bool has_log;                 /* its program did not close the database: the log beside it is read, too */
    char litter[HF_PATH_LEN_MAX]; /* a file to remove afterwards; empty = none */
} hf_peek;

/* Opens the database at `path` for reading, without changing it, and keeps programs from opening it meanwhile.
 * Fails: HF_ERR_EXISTS (it is open: `*ret_holder` as in hf_file_owner_take; if the holder is a program, hf_admin_ask
 * reaches it), HF_ERR_INVALID, statuses of hf_sqlite_open. */
hf_status hf_peek_open(hf_op *op, hf_env *env, const char *path, hf_peek *ret_peek, int64_t *ret_holder);
/* The same for a file of this kind. */
hf_status hf_peek_open_of(hf_op *op, hf_env *env, const hf_table_set *tables, const char *path, hf_peek *ret_peek,
                          int64_t *ret_holder);
void hf_peek_close(hf_peek *peek); /* accepts a zeroed one */

/* ---- ask.c: a tool's side of the socket ---------------------------------------------------------------------------------- */

/* Called for every piece of an answer; an empty `kind` means only that the owner is still at work. */
typedef void hf_admin_chunk(void *state, hf_str kind, hf_str chunk);

/* Asks the owner of the database at `path`. Blocks: not on a fiber.
 * Fails: the status that the owner sends; HF_ERR_CLOSED (nobody listens there), HF_ERR_TIMEOUT, HF_ERR_INVALID. */
hf_status hf_admin_ask(hf_op *op, hf_env *env, const char *path, const char *verb, const char *const *args,
                       size_t arg_count, hf_admin_chunk *chunk, void *state);

/* Whether an owner listens on the socket. An owner opens its socket last and closes it first: while it opens or closes
 * the file, it does not listen. */
bool hf_admin_listens(hf_env *env, const char *path);

/* ---- frame.c: messages on a socket, for both sides ------------------------------------------------------------------------ */

enum {
    HF_FRAME_HEAD_LEN = 4,                  /* bytes of the length before a message */
    HF_FRAME_REQUEST_MAX = 64 * 1024,       /* bytes: a verb and a few names */
    HF_FRAME_CHUNK_LEN = 256 * 1024,        /* bytes of one piece of an answer */
    HF_FRAME_RESPONSE_MAX = 2 * 256 * 1024, /* bytes: a piece and the fields around it */
    HF_ADMIN_LIST_MAX = 1000,               /* runs in one answer */
};

typedef struct hf_wire {
    hf_env *env;
    hf_poller *poller;           /* watches fd */
    int fd;                      /* the connection */
    hf_instant deadline;         /* of the read or write that is under way */
    const atomic_bool *stopping; /* true = give up; NULL = never */
} hf_wire;

/* Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED (stopping), HF_ERR_CLOSED (the peer has gone), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_frame_write(hf_op *op, hf_wire *wire, const hf_pb_type *type, const void *msg, hf_allocator memory);
hf_status hf_frame_read(hf_op *op, hf_wire *wire, const hf_pb_type *type, size_t len_max, hf_arena *arena,
                        void *ret_msg);

#endif
