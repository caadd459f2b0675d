/* The structs of the door. A link and its streams belong to the link's fiber; only the part that says "inbox" is touched by others.
 *
 * server-D1  A link is freed by its own fiber, after all its calls are done and nobody is inside hf_link_tell any more.
 * server-D2  A stream is freed when it is neither the session's (`is_closed`) nor the service's (`is_asked`).
 * server-D3  A task whose answer was not handed over completely goes back to the service (`unwanted`).
 * server-A1  Every route names the roles that may use it. */
#ifndef HF_SERVER_SERVER_PRIVATE_H
#define HF_SERVER_SERVER_PRIVATE_H

#include "base/arena.h"
#include "base/env.h"
#include "base/heap.h"
#include "base/latch.h"
#include "base/list.h"
#include "base/spin.h"
#include "server/auth.h"
#include "server/door.h"
#include "server/handed.h"
#include "server/methods.h"
#include "server/rate.h"
#include "wire/http2.h"

#include <holdfast/scope.h>

enum {
    HF_DOOR_DECODED_LEN_MAX = 64 << 20, /* bytes that a request may take as structs (wire-W4) */
    HF_DOOR_ANSWER_LEN_MAX = 64 << 20,  /* bytes of an answer: clients of the SDKs take up to 128 MB */
    HF_DOOR_IN_LEN_MAX = 32 << 20,      /* bytes of requests of one connection that are not complete */
    HF_DOOR_OUT_LEN_MAX = 32 << 20,     /* bytes of answers that a connection has not taken: beyond, we stop to read */
    HF_DOOR_GZIP_FROM = 8 * 1024,       /* bytes from which on an answer is compressed, for clients that do it, too */
    HF_DOOR_HEAD_SECONDS = 10, /* from a connection's start to its first request, and from there to the end of a head */
    HF_DOOR_BODY_SECONDS = 60, /* from the head of a request to its end */
    HF_DOOR_STALL_SECONDS =
        60, /* in which a peer must take HF_DOOR_TAKE_LEN_MIN bytes, while there are answers to take */
    HF_DOOR_TAKE_LEN_MIN = 1024,
    HF_DOOR_PING_SECONDS = 60,  /* of silence before we ask whether the peer is there; it has as long to answer */
    HF_DOOR_STOP_SECONDS = 10,  /* for calls under way */
    HF_DOOR_LINGER_SECONDS = 2, /* for the peer to read what was written before the end */
};

typedef enum hf_stage {
    HF_STAGE_SERVING,
    HF_STAGE_DRAINING, /* no new calls, polls end, calls under way go on */
    HF_STAGE_CLOSING   /* everything ends now */
} hf_stage;

typedef struct hf_link hf_link;
typedef struct hf_stream hf_stream;

struct hf_door {
    hf_service *service;
    hf_runtime *rt;
    hf_env *env;
    hf_allocator memory;
    hf_scope *scope; /* of all fibers of the door */
    hf_door_options options;
    atomic_int stage;    /* hf_stage; only ever grows */
    hf_spin lock;        /* of the next five; never held while a fiber is woken */
    hf_keyring *keys;    /* NULL = none are needed */
    hf_tls_context *tls; /* NULL = plain text */
    hf_list links;       /* all connections */
    int link_count;
    hf_branch *clock; /* while the door stops: waits for the end of its grace */
    hf_listener *listeners[16];
    int listener_count;
    atomic_uint_fast64_t links_total;
    atomic_uint_fast64_t streams;
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t failures;
    atomic_uint_fast64_t cut;
    atomic_uint_fast64_t returned;
    atomic_uint_fast64_t limited;
    hf_rates *rates; /* NULL = no limits */
    hf_handed *handed;
    int64_t opened_ns; /* wall time: tasks that were handed out before are not in `handed` */
    struct {
        atomic_uint_fast64_t calls;
        atomic_uint_fast64_t failures;
    } by_route[HF_METHOD_COUNT + HF_ROUTES_OWN_MAX]; /* in the order of hf_routes */
};

/* One connection. */
struct hf_link {
    hf_door *door;
    uint64_t number;     /* of all that were ever accepted, from 0 */
    hf_node node;        /* of door->links; under the door's lock, as the next */
    hf_stage stage_told; /* the fiber was poked for this one */
    hf_conn *conn;
    hf_h2 *h2;
    hf_tls *tls; /* NULL = plain text */
    hf_buf out;  /* bytes for the socket, from `out_sent` on */
    size_t out_sent;
    hf_list streams; /* all of them */
    size_t stream_count;
    hf_heap deadlines; /* of streams */
    size_t in_len;     /* bytes of requests that are not complete */
    size_t asked;      /* calls that the service has */
    hf_stage stage;    /* as far as this link has followed */
    bool may_read;     /* the last read did not say "again" */
    bool may_write;
    bool is_stuck;               /* the socket had no room when bytes were last written */
    bool is_over;                /* nothing more is read: the peer has ended, or is cut off */
    bool has_begun;              /* a request has come */
    bool is_pinged;              /* and no byte has come since */
    bool is_known;               /* a valid key has come, or none is needed */
    int64_t born_ns;             /* when it was accepted */
    int64_t heard_ns;            /* when the last bytes came */
    int64_t taken_ns;            /* when the peer last took bytes of answers */
    uint64_t taken_bytes;        /* hf_h2_body_sent at that time */
    atomic_int_fast64_t idle_ns; /* since when it has no stream; 0 = it has; the door picks a victim by it */
    atomic_bool is_unwanted;     /* the door needs its place */

    /* The inbox. */
    hf_spin lock;
    hf_list done;     /* calls that were answered */
    bool is_rung;     /* the fiber was poked since it looked last */
    hf_guests guests; /* threads inside hf_link_tell: server-D1 */
};

/* One call of a peer. */
struct hf_stream {
    hf_h2_stream h2; /* first */
    hf_link *link;
    hf_node node;          /* of link->streams */
    hf_node done_node;     /* of link->done */
    hf_heap_node deadline; /* of link->deadlines */
    const hf_route *route; /* NULL until the head has come, or if there is none */
    hf_buf in;             /* bytes of the request so far */
    hf_arena arena;        /* request, answer */
    size_t budget;         /* bytes that the arena may still take */
    hf_call call;
    const char *http; /* status for a request that is not gRPC, once it is complete; NULL = it is */
    char *path;       /* owned; NULL = none; long names are refused */
    int64_t until_ns; /* deadline of the caller; INT64_MAX = none */
    hf_str tokens[4]; /* of tasks in the answer, in memory of their own; server-D3 */
    int token_count;
    char token[HF_KEY_LEN]; /* the key that the caller shows */
    size_t token_len;       /* 0 = none, HF_KEY_LEN, or anything else that is not a key */
    bool is_post;
    bool is_grpc;      /* content type */
    bool is_gzip;      /* the request's messages may be compressed */
    bool has_encoding; /* ... by something that we do not know */
    bool takes_gzip;   /* so may the answer's */
    bool is_of_task;   /* of a history: the caller reads it only if it has a task of the run (server-K3) */
    bool is_ours;      /* a client of this library: sentences are its own, not those of a Temporal server */
    bool is_person;    /* a tool that shows histories to people, not a worker */
    bool is_bad_head;  /* a field was too long or not understood */
    bool is_headed;    /* head of the request is complete */
    bool is_complete;  /* the request is */
    bool is_asked;     /* the service has the call */
    bool is_answered;  /* the answer was submitted */
    bool is_expired;   /* the caller's deadline has passed */
    bool is_closed;    /* no longer the session's */
    bool is_talking;   /* reflection: the head of its answers was sent */
    bool is_watching;  /* health Watch: open until the end */
    int32_t watched;   /* the health that was told last */
};

/* link.c */
hf_status hf_link_serve(void *link);                 /* the body of its fiber; frees it */
void hf_link_tell(hf_link *link, hf_stream *stream); /* its call is done; from a thread of the service */
void hf_link_poke(hf_link *link);                    /* by a guest of it */

/* door.c */
hf_keyring *hf_door_keys(hf_door *door);         /* with a reference; NULL = none are needed */
void hf_door_left(hf_door *door, hf_link *link); /* it has ended */

/* temporal/stream.c: the events of a session, and what follows from them */
extern const hf_h2_events hf_stream_events;
void hf_stream_done(hf_stream *stream); /* the service has answered */
/* The time of hf_stream_expire: `at_ns` or the deadline of the caller, whichever is first. */
void hf_stream_set_deadline(hf_stream *stream, int64_t at_ns);
void hf_stream_expire(hf_stream *stream); /* its deadline has come */
void hf_stream_drain(hf_stream *stream);  /* the door stops: a parked poll ends */
void hf_stream_cancel(hf_stream *stream); /* tells the service that nobody waits any more */
void hf_stream_free(hf_stream *stream);   /* server-D2 */

/* temporal/reflection.c: questions have come into stream->in; no more will come */
void hf_reflect_take(hf_stream *stream);
void hf_reflect_end(hf_stream *stream);

/* temporal/permit.c: whether the caller may do this. False: the stream was answered. */
bool hf_permit_head(hf_stream *stream);
bool hf_permit_request(hf_stream *stream, const hf_pb_type *type, const void *request);
void hf_permit_note(hf_stream *stream); /* the answer goes out: its workflow tasks are the caller's now */

/* temporal/answer.c */
void hf_answer_message(hf_stream *stream, const hf_pb_type *type, const void *message);
void hf_answer_bytes(hf_stream *stream, hf_str message);
void hf_answer_status(hf_stream *stream, int code, const char *text, const hf_pb_type *detail_type, const void *detail);
void hf_answer_call(hf_stream *stream); /* the outcome of stream->call */
void hf_answer_http(hf_stream *stream, const char *http_status);

/* temporal/health.c */
void hf_health_check(hf_stream *stream, hf_str request);
void hf_health_watch(hf_stream *stream, hf_str request);
void hf_health_tell(hf_stream *stream);   /* to a watcher: the stage has changed */
void hf_health_expire(hf_stream *stream); /* the deadline of a watcher has come */

#endif
