/* The structs of a remote service.
 *
 *     submit --inbox--> turn --> ask --> attempt on a line --> server
 *     done <-- outcome of the ask <-- outcome of the attempt <--+
 *
 * An ask is a call until its `done`. An attempt is one stream that carries it. A line is a connection and its fiber. The manager
 * is the fiber that is awake when no line is.
 *
 * remote-R1  Asks, attempts and lines belong to the one thread of the remote's runtime, whose fibers switch only where they wait.
 *     Other threads touch what stands under `lock`, and nothing else.
 * remote-R2  A call whose outcome is not known is sent again only if that cannot do its work twice (repeat.c). One that was not
 *     sent, or was refused by HTTP/2, may always be sent again.
 * remote-R3  `done` is called once for a call, after the call was taken out of the table of numbers: no cancel finds it any more.
 * remote-R4  An ask has at most one attempt. An attempt without an ask (canceled, or too late) only waits for the end of its
 *     stream; it is freed by `closed`, or with its line.
 * remote-R5  The API key is in one text, `bearer`, that goes into a header and nowhere else.
 * remote-R6  An answer has what the engine's answers always have and the client relies on (whole.c); else the call fails. */
#ifndef HF_REMOTE_REMOTE_PRIVATE_H
#define HF_REMOTE_REMOTE_PRIVATE_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/latch.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/spin.h"
#include "fiber/core.h"
#include "remote/remote.h"
#include "service/repeat.h"
#include "wire/http2.h"
#include "wire/tls.h"

#include <holdfast/scope.h>

enum {
    HF_REMOTE_CALLS_MAX = 100000,         /* calls at once: a worker has some hundred polls */
    HF_REMOTE_REQUEST_LEN_MAX = 64 << 20, /* bytes of a request; servers take 4 MiB, and say so themselves */
    HF_REMOTE_ANSWER_LEN_MAX = 64 << 20,  /* bytes of an answer, inflated: what a Holdfast server sends at most */
    HF_REMOTE_IN_LEN_MAX = 256 << 20,     /* bytes of answers of one connection that are not complete */
    HF_REMOTE_OUT_LEN_MAX = 32 << 20,     /* bytes of requests that a connection has not taken: beyond, calls wait */
    HF_REMOTE_GZIP_FROM = 8 * 1024,       /* bytes from which on a request is compressed */
    HF_REMOTE_CONNECT_SECONDS = 5,        /* for one connection to be made ... */
    HF_REMOTE_HELLO_SECONDS = 10,         /* ... and for its TLS handshake */
    HF_REMOTE_PING_SECONDS = 30,          /* of silence before we ask whether the server is there ... */
    HF_REMOTE_PONG_SECONDS = 15,          /* ... and for its answer */
    HF_REMOTE_STALL_SECONDS = 60,         /* without a byte taken, while there are bytes to take */
    HF_REMOTE_PAUSE_FIRST_MS = 100,       /* between two attempts; 1.7 times as long each time ... */
    HF_REMOTE_PAUSE_MAX_MS = 5000,        /* ... up to this, give or take a fifth */
    HF_REMOTE_BUSY_MS = 1000,             /* the first pause after RESOURCE_EXHAUSTED */
    HF_REMOTE_BUCKETS = 1024,             /* of the table of numbers */
};

#define HF_SECOND_NS INT64_C(1000000000)

typedef struct hf_remote hf_remote;
typedef struct hf_line hf_line;
typedef struct hf_remote_ask hf_remote_ask;
typedef struct hf_attempt hf_attempt;

struct hf_remote {
    hf_service service; /* first */
    hf_env *env;
    hf_allocator memory;
    hf_arena texts;      /* memory of the next four */
    const char *address; /* "tcp:host:7233" */
    const char *name;    /* "host:7233", for people and for :authority */
    const char *server_name;
    hf_str bearer;       /* "Bearer KEY"; empty = none: remote-R5 */
    hf_tls_context *tls; /* with a reference; NULL = plain text */
    hf_log_sink log;
    void *log_state;
    hf_thread *thread;
    hf_latch begun; /* the manager runs, or could not; `begin_op` says which */
    hf_op begin_op;

    /* The thread's own: remote-R1. */
    hf_scope *scope;              /* of the lines' fibers */
    hf_line *line;                /* for new calls: it is open, or is being opened; NULL = none */
    hf_list lines;                /* all of them */
    hf_list asks;                 /* all of them */
    hf_list waiting;              /* those that wait for a stream, in order */
    hf_heap alarms;               /* of asks */
    hf_rng chance;                /* spreads pauses */
    unsigned failures;            /* connections in a row that brought no answer */
    int64_t try_ns;               /* no connection is tried before this time */
    int64_t armed_ns;             /* the manager wakes up then; INT64_MAX = it does not, or is awake */
    bool has_been;                /* it has answered once: from then on a loss is worth a line in the log */
    bool has_told;                /* the log has a line about the loss of the connection */
    bool is_plain;                /* the server cannot inflate requests */
    char why[HF_MESSAGE_LEN_MAX]; /* the last connection failed, or ended; empty = it did not */

    /* The inbox: from any thread. */
    hf_spin lock;
    hf_list inbox;    /* calls that were submitted */
    hf_list canceled; /* calls whose callers do not want them any more; they have asks, or are in the inbox */
    hf_list buckets[HF_REMOTE_BUCKETS]; /* all calls that are not done, by number */
    size_t call_count;
    uint64_t number_last;
    bool is_closing;  /* hf_close was called */
    bool is_rung;     /* something has come since the thread looked last */
    hf_wait *sleeper; /* the manager's wait, while it sleeps */
};

typedef enum hf_ask_state {
    HF_ASK_WAITING, /* for a line, or for room on it: in remote->waiting */
    HF_ASK_PAUSED,  /* its last attempt failed; it goes on at its alarm */
    HF_ASK_SENT     /* it has an attempt */
} hf_ask_state;

struct hf_remote_ask {
    hf_remote *remote;
    hf_call *call;
    hf_node node;        /* of remote->asks */
    hf_node wait_node;   /* of remote->waiting */
    hf_heap_node alarm;  /* WAITING: the end of its patience; PAUSED: of its pause; SENT: of the attempt's time */
    hf_attempt *attempt; /* SENT */
    hf_manner manner;
    hf_ask_state state;
    int64_t until_ns;  /* it is not begun again after this time; INT64_MAX = always */
    unsigned failures; /* attempts that the server has refused for now */
};

/* One stream. It collects the bytes that come in. */
struct hf_attempt {
    hf_h2_stream h2; /* first */
    hf_line *line;
    hf_node node;       /* of line->attempts */
    hf_remote_ask *ask; /* NULL: nobody waits any more (remote-R4) */
    hf_buf in;          /* bytes of the answer */
    hf_buf message;     /* grpc-message, as it came */
    hf_buf details;     /* grpc-status-details-bin, as it came */
    int code;           /* grpc-status; -1 = none */
    int http;           /* :status */
    bool is_gzip;       /* messages of the answer may be compressed */
    bool is_too_big;    /* the answer is */
};

struct hf_line {
    hf_remote *remote;
    hf_node node; /* of remote->lines */
    hf_conn *conn;
    hf_h2 *h2;
    hf_tls *tls; /* NULL = plain text */
    char *buf;   /* room for one read */
    hf_buf out;  /* bytes for the socket, from `out_sent` on */
    size_t out_sent;
    hf_list attempts; /* all of them */
    size_t attempt_count;
    size_t in_len; /* bytes of answers that are not complete */
    bool is_open;  /* connected, and the handshake is over: requests may be sent */
    bool may_read; /* the last read did not say "again" */
    bool may_write;
    bool has_left;                /* the server wants no more calls on it, or it is over */
    bool is_over;                 /* nothing more is read or written */
    bool is_dismissed;            /* the service is being closed */
    bool is_asleep;               /* its fiber waits */
    bool is_pinged;               /* and no byte has come since */
    bool has_answered;            /* an answer has come: this is a server */
    int64_t heard_ns;             /* when the last bytes came */
    int64_t taken_ns;             /* when the server last took bytes */
    int64_t hello_ns;             /* when the handshake must be over */
    char why[HF_MESSAGE_LEN_MAX]; /* it is over; empty = it just ended */
};

/* remote.c */
int64_t hf_remote_now(const hf_remote *remote);
/* Everything that is due: new calls, cancels, alarms, connections. By the thread of the remote, not inside of an event of a session. */
void hf_remote_turn(hf_remote *remote);
/* Wakes the manager, from the same thread. */
void hf_remote_ring(hf_remote *remote);
/* The pause before attempt number `failures` + 1, with its chance. */
int64_t hf_remote_pause(hf_remote *remote, unsigned failures, int first_ms);
void hf_remote_report(hf_remote *remote, hf_log_level level, const char *event, const char *why);

/* ask.c */
void hf_ask_begin(hf_remote *remote, hf_call *call);
void hf_ask_send(hf_remote_ask *ask, hf_line *line); /* the line has room */
void hf_ask_ring(hf_remote_ask *ask);                /* its alarm */
void hf_ask_cancel(hf_remote_ask *ask);
/* Ends the call with this failure. Frees the ask. */
void hf_ask_fail(hf_remote_ask *ask, hf_status status, const char *format, ...) HF_PRINTF(3, 4);
/* Ends the call with what stands in it. Frees the ask. */
void hf_ask_finish(hf_remote_ask *ask);
/* The attempt's stream has ended without an answer. `is_unsent`: the server has not seen it. Takes the attempt. */
void hf_attempt_lost(hf_attempt *attempt, bool is_unsent);
/* The server says that it cannot now: the call is repeated, if that is allowed and there is time; else it ends with what stands in
 * it. */
void hf_ask_refused(hf_remote_ask *ask, int first_ms);
void hf_attempt_free(hf_attempt *attempt);

/* answer.c: the events of a session */
extern const hf_h2_events hf_attempt_events;

/* line.c */
/* A line is being opened, by a fiber of its own. HF_ERR_NOMEM: there is none. */
hf_status hf_line_begin(hf_op *op, hf_remote *remote);
bool hf_line_has_room(const hf_line *line);
void hf_line_flush(hf_line *line);                /* writes what can be written */
void hf_line_cut(hf_line *line, const char *why); /* it is over */

/* What the answer of a server lacks; NULL: nothing. */
const char *hf_answer_lacks(hf_method method, const void *response);

#endif
