/* What the files of this layer share: addresses taken apart, the owner's lock, the owner's socket. */
#ifndef HF_OPEN_OPEN_H
#define HF_OPEN_OPEN_H

#include "base/env.h"
#include "base/str.h"
#include "service/service.h"
#include "store/sqlite/sqlite.h"

#define HF_PATH_LEN_MAX 4096 /* bytes of a database's path, with room for the names beside it */

/* ---- address.c ------------------------------------------------------------------------------------------------------- */

typedef enum hf_scheme {
    HF_SCHEME_SQLITE, /* the engine in this process, on a file */
    HF_SCHEME_MEMORY  /* the same on a store that forgets */
} hf_scheme;

typedef struct hf_service_address {
    hf_scheme scheme;
    char path[HF_PATH_LEN_MAX]; /* sqlite: as given */
    size_t mem;                 /* bytes for everything; 0 = each part's own default */
    size_t log_len_max;         /* bytes of write-ahead log before a checkpoint; 0 = the store's default */
    hf_durability durability;
} hf_service_address;

/* Takes an address apart. Fails: HF_ERR_INVALID, with a sentence that lists what there is. */
hf_status hf_service_address_parse(hf_op *op, const char *address, hf_service_address *ret_place);

/* How a budget is shared out. */
typedef struct hf_shares {
    size_t cache;   /* pages of SQLite */
    size_t state;   /* runs, queues and calls of the engine */
    size_t journal; /* of the state: changes that are in no row yet, and so are read after a crash */
} hf_shares;
hf_shares hf_service_address_shares(const hf_service_address *place); /* zeros = defaults */

/* ---- beside.c ---------------------------------------------------------------------------------------------------------- */

/* The name of what lies beside the database at `path`, in a buffer of HF_PATH_LEN_MAX: `path` from the root on, since a program
 * may go to another folder, and `suffix`. A symbolic link is followed first, as SQLite does for the log, so that all names of a
 * file lead to the same lock, log and socket. False: that is too long. */
bool hf_beside(const char *path, const char *suffix, char *ret_name);

/* ---- owner.c: one owner per file --------------------------------------------------------------------------------------- */

typedef struct hf_file_owner {
    char path[HF_PATH_LEN_MAX]; /* of the lock's file; empty = not taken */
    int fd;                     /* that holds it */
} hf_file_owner;

/* Becomes the owner of the database at `path`, or says who is. `is_brief`: for a tool that only looks; for such ones others wait
 * a while. Blocks.
 * Fails: HF_ERR_EXISTS (somebody is: `*ret_holder` is its process, negative = a tool's, 0 = not known), HF_ERR_NOT_FOUND (no such folder),
 * HF_ERR_DENIED, HF_ERR_FULL, HF_ERR_IO, HF_ERR_INVALID (the path is too long). */
hf_status hf_file_owner_take(hf_op *op, hf_env *env, const char *path, bool is_brief, hf_file_owner *ret_owner,
                             int64_t *ret_holder);
void hf_file_owner_release(hf_env *env, hf_file_owner *owner); /* fine on one that was not taken (zeroed) */

/* ---- admin.c: the owner's socket ---------------------------------------------------------------------------------------- */

typedef struct hf_admin hf_admin;

/* Listens beside the database at `path` and answers what tools ask (proto/holdfast/admin.proto), on a thread of its own.
 * `engine` and `front` must outlive it. Fails: HF_ERR_INVALID (the path is too long for a socket), HF_ERR_LIMIT, HF_ERR_NOMEM, what
 * listening says. */
hf_status hf_admin_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_service *front,
                        hf_admin **ret_admin);
/* Ends what is under way, and waits for it. Accepts NULL. */
void hf_admin_close(hf_admin *admin);

/* The store's part of the figures; their list points into `stats`. */
void hf_admin_stats_of(const hf_store_stats *stats, hf_pb_admin_stats *msg);

/* ---- peek.c: a database that nobody has open, looked at by a tool ------------------------------------------------------- */

typedef struct hf_peek {
    hf_env *env;
    hf_file_owner owner;          /* not taken where the folder may not be written */
    hf_store *store;              /* read only */
    bool has_log;                 /* its program did not close it: the log beside it is read, too */
    char litter[HF_PATH_LEN_MAX]; /* a file to remove afterwards; empty = none */
} hf_peek;

/* Looks at the database at `path` without changing it; keeps others from opening it meanwhile.
 * Fails: HF_ERR_EXISTS (somebody has it open: `*ret_holder` as in hf_file_owner_take; a program can be asked), what hf_sqlite_open
 * says. */
hf_status hf_peek_open(hf_op *op, hf_env *env, const char *path, hf_peek *ret_peek, int64_t *ret_holder);
void hf_peek_close(hf_peek *peek); /* fine on a zeroed one */

/* ---- ask.c: a tool's side of the socket ---------------------------------------------------------------------------------- */

/* Called for every piece of an answer, and with an empty kind now and then meanwhile. */
typedef void hf_admin_chunk(void *state, hf_str kind, hf_str chunk);

/* Asks the owner of the database at `path`. Blocks: not on a fiber.
 * Fails: what the owner says; HF_ERR_CLOSED (nobody listens there), HF_ERR_TIMEOUT, HF_ERR_INVALID. */
hf_status hf_admin_ask(hf_op *op, hf_env *env, const char *path, const char *verb, const char *const *args,
                       size_t arg_count, hf_admin_chunk *chunk, void *state);

/* Whether anybody listens there. An owner opens its socket last and closes it first: while it opens or closes the file, nobody
 * does. */
bool hf_admin_listens(hf_env *env, const char *path);

/* ---- frame.c: messages on a socket, for both sides ------------------------------------------------------------------------ */

enum {
    HF_FRAME_HEAD_LEN = 4,                  /* bytes that say how long a message is */
    HF_FRAME_REQUEST_MAX = 64 * 1024,       /* bytes: a verb and a few names */
    HF_FRAME_CHUNK_LEN = 256 * 1024,        /* bytes of one piece of an answer */
    HF_FRAME_RESPONSE_MAX = 2 * 256 * 1024, /* a piece, and what is around it */
    HF_ADMIN_LIST_MAX = 1000,               /* runs of one answer */
};

typedef struct hf_wire {
    hf_env *env;
    hf_poller *poller;           /* knows the descriptor */
    int fd;                      /* the connection */
    hf_instant deadline;         /* of whatever is under way */
    const atomic_bool *stopping; /* give up; NULL = never */
} hf_wire;

/* Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED (stopping), HF_ERR_CLOSED (the peer has gone), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_frame_write(hf_op *op, hf_wire *wire, const hf_pb_type *type, const void *msg, hf_allocator memory);
hf_status hf_frame_read(hf_op *op, hf_wire *wire, const hf_pb_type *type, size_t len_max, hf_arena *arena,
                        void *ret_msg);

/* As much of a message as is there, without waiting: `bytes` has room for the longest request and its head, of which `*got` are filled.
 * Fails: HF_ERR_AGAIN (more is to come), HF_ERR_CLOSED, HF_ERR_TOO_BIG, what reading says. */
hf_status hf_frame_gather(hf_op *op, hf_env *env, int fd, char *bytes, size_t *got);

/* "unix:PATH-sock", in a buffer of HF_PATH_LEN_MAX; as short as it was given if it is no link, for what fits a socket is not
 * much. */
void hf_admin_address(const char *path, char *ret_address);

#endif
