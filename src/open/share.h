/* Two programs, one file: the owner of a database answers the calls of other processes over the socket beside it (docs/adr/0030).
 *
 *     client, worker -> guard -> hf_share ==== unix socket ==== hf_host -> engine
 *                                other process                  owner
 *
 * A connection begins with a request of a tool (proto/holdfast/admin.proto). After "calls" it carries OwnerCall one way and OwnerAnswer the
 * other, many calls at once. As in one process, only workflow tasks are given out before they are durable (service-V2).
 *
 * open-H1  A call of another process is answered once, or its connection is closed. A frame that cannot be read closes its connection, and
 *     nothing else.
 * open-H2  Tasks that a connection was given and did not answer are handed out again when it is lost: a workflow task as it is, an activity
 *     as its next attempt, because the lost process may have begun it. They are counted, unless that process had closed its service
 *     (engine-U1). When the owner itself ends, the next opening does all this.
 * open-H3  What one connection may hold is bounded: calls, bytes of requests, bytes of answers that it does not take.
 * open-S1  `done` is called once for a call, after the call was taken out of the table of numbers: no cancel finds it any more.
 * open-S2  A call whose outcome is not known is sent again only if that cannot do its work twice (service/repeat.h).
 * open-S3  Once there is an engine in this process (`local`), calls go to it, and it stays until the service is closed. */
#ifndef HF_OPEN_SHARE_H
#define HF_OPEN_SHARE_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/latch.h"
#include "base/list.h"
#include "base/spin.h"
#include "open/open.h"
#include "service/repeat.h"

enum {
    HF_SHARE_VERSION = 1,          /* of OwnerCall and OwnerAnswer; method names may be added without another one */
    HF_SHARE_CONNECTIONS_MAX = 64, /* of one owner; tools count, too */
    HF_SHARE_CALLS_MAX = 4096,     /* under way at one owner; polls that wait count, too */
    HF_SHARE_REQUEST_LEN_MAX = 4 << 20,                       /* bytes of a request, as servers of gRPC take them ... */
    HF_SHARE_FRAME_LEN_MAX = HF_SHARE_REQUEST_LEN_MAX + 4096, /* ... and of its frame */
    HF_SHARE_PIECE_LEN = 1 << 20,                             /* bytes of one piece of an answer ... */
    HF_SHARE_DETAIL_LEN_MAX = 1 << 20,                        /* ... and of its detail; a larger one is left out */
    HF_SHARE_PIECE_FRAME_LEN_MAX = 4 << 20,                   /* frames of answers are smaller */
    HF_SHARE_ANSWER_LEN_MAX = 64 << 20,                       /* bytes of an answer: what a server sends at most */
    HF_SHARE_REQUESTS_LEN_MAX = 64 << 20,                     /* bytes of requests under way at one owner */
    HF_SHARE_OUT_LEN_MAX = 80 << 20, /* bytes that a connection has not taken: the largest answer, and some more */
    HF_SHARE_READ_LEN = 256 * 1024,  /* bytes of one connection before the others have their turn */
    HF_SHARE_HELD_MAX = 65536,   /* tasks of one connection that are remembered: others are found by their timeouts */
    HF_SHARE_HELLO_SECONDS = 10, /* for the first request of a connection */
    HF_SHARE_STALL_SECONDS = 10, /* without a byte taken, while there are bytes to take */
    HF_SHARE_BUCKETS = 256,      /* of tables of numbers and of tokens */
};

/* ---- duct.c: a connection with what was read and what is to be written ---------------------------------------------------- */

typedef struct hf_duct {
    hf_env *env;
    hf_poller *poller; /* watches fd: for bytes to read, and for room to write only while there is none */
    void *cookie;      /* of its events */
    int fd;            /* -1 = none */
    hf_buf in;         /* bytes from `in_at` on were not looked at */
    size_t in_at;
    hf_buf out; /* bytes from `out_at` on were not written */
    size_t out_at;
    bool may_read; /* the last read did not say "again" */
    bool may_write;
    bool waits_for_room;          /* the poller watches for it */
    bool is_over;                 /* the peer has gone, or has broken the rules: `why` */
    int64_t taken_ns;             /* when the peer last took bytes, or had taken all */
    char why[HF_MESSAGE_LEN_MAX]; /* of is_over */
} hf_duct;

/* `poller` watches the descriptor with this cookie, for bytes to read. Not used without a descriptor. */
void hf_duct_init(hf_duct *duct, hf_env *env, int fd, hf_poller *poller, void *cookie);
void hf_duct_deinit(hf_duct *duct); /* closes the descriptor */
/* Reads what is there, up to HF_SHARE_READ_LEN bytes. Never waits. */
void hf_duct_fill(hf_duct *duct, size_t frame_len_max);
/* Takes a whole message out of what was read. False: there is none, or is_over. It is valid until the next fill. */
bool hf_duct_take(hf_duct *duct, size_t frame_len_max, hf_str *ret_message);
/* Appends a message. */
void hf_duct_put(hf_duct *duct, const hf_pb_type *type, const void *msg);
/* Writes what can be written. Never waits. */
void hf_duct_flush(hf_duct *duct);
static inline size_t hf_duct_left(const hf_duct *duct)
{
    return duct->out.len - duct->out_at;
}

/* ---- host.c, host_call.c: the owner's side ---------------------------------------------------------------------------------- */

typedef struct hf_host hf_host;
typedef struct hf_visitor hf_visitor;

/* A request of a tool, which is not "calls". Takes the descriptor, which is not watched any more. */
typedef void hf_host_request(void *state, int fd, const hf_pb_admin_request *request, hf_status status,
                             const char *why);

/* Listens on the socket beside the database at `path`, on a thread of its own. `engine` must outlive it. `on_request` is called on that
 * thread, and must not wait. Fails: HF_ERR_INVALID (the path is too long for a socket), HF_ERR_LIMIT, HF_ERR_NOMEM, statuses of listen. */
hf_status hf_host_open(hf_op *op, hf_env *env, const char *path, hf_service *engine, hf_host_request *on_request,
                       void *state, hf_host **ret_host);
/* Ends all calls, and waits for the thread. Accepts NULL. */
void hf_host_close(hf_host *host);

/* ---- share.c, share_call.c: the other side ------------------------------------------------------------------------------------ */

typedef struct hf_share hf_share;

/* Tries to become the owner. HF_ERR_EXISTS: another process is. On the thread of the share; may block. */
typedef hf_status hf_share_become(void *state, hf_op *op, hf_service **ret_engine);

typedef struct hf_share_options {
    const char *path;        /* of the database */
    hf_service *local;       /* this process is the owner; NULL = another one is */
    hf_share_become *become; /* NULL = it never tries to become the owner */
    void *become_state;
    hf_log_sink log;
    void *log_state;
} hf_share_options;

/* Blocks. Fails: HF_ERR_NOT_FOUND: no program has the file open. HF_ERR_UNSUPPORTED: the owner speaks another version. HF_ERR_UNAVAILABLE,
 * HF_ERR_NOMEM, HF_ERR_LIMIT. */
hf_status hf_share_open(hf_op *op, hf_env *env, const hf_share_options *options, hf_share **ret_share);
hf_service *hf_share_service(hf_share *share);
/* No more calls; those that are at another process end. It does not become the owner any more. */
void hf_share_stop(hf_share *share);
/* After hf_share_stop, and after the engine that it has become was closed. */
void hf_share_free(hf_share *share);

#endif
