/* Shared by share.c (the connection and its thread) and share_call.c (calls). */
#ifndef HF_OPEN_SHARE_PRIVATE_H
#define HF_OPEN_SHARE_PRIVATE_H

#include "open/share.h"

enum {
    HF_SHARE_CALLS_HERE_MAX = 100000, /* of this process, as in src/remote */
    HF_SHARE_SEND_LEN_MAX = 8 << 20,  /* bytes of requests that the owner has not taken: beyond, calls wait */
    HF_SHARE_FAILURES_TOLD = 12,      /* attempts that failed before the log says so: some seconds */
    HF_SHARE_PAUSE_FIRST_MS = 5,  /* between two attempts to reach or become the owner; twice as long each time ... */
    HF_SHARE_PAUSE_MAX_MS = 100,  /* ... up to this: a file has a new owner within a second */
    HF_SHARE_CANCEL_SECONDS = 5,  /* a caller that has given up waits as long for an owner that does not answer */
    HF_SHARE_CONNECT_SECONDS = 5, /* for an owner to answer the first message */
    HF_SHARE_SPARE_MAX = 256,     /* hf_errand_out that are kept for the next calls */
};

/* A call that is not done. */
typedef struct hf_errand_out {
    struct hf_share *share;
    hf_call *call;
    hf_manner manner;
    hf_node node;       /* of share->out: all of the thread's */
    hf_node wait_node;  /* of share->waiting */
    hf_node by_wire;    /* of share->by_wire: it was sent */
    hf_heap_node alarm; /* the end of its patience, or of the owner's time */
    uint64_t wire;      /* its number on the connection; 0 = it was not sent */
    int64_t until_ns;   /* it is not begun again after this time */
    hf_buf answer;      /* pieces of an answer */
    bool is_canceled;   /* its caller does not want it any more */

    /* With the engine in this process: the call that the engine has in its place. Under share->lock. */
    hf_call inner;
    int refs; /* of the submitter and of `done` */
    bool is_local;
    bool is_submitted; /* inner.number is set */
} hf_errand_out;

struct hf_share {
    hf_service service; /* first */
    hf_env *env;
    hf_allocator memory;
    char path[HF_PATH_LEN_MAX];
    char address[HF_PATH_LEN_MAX];
    hf_share_become *become;
    void *become_state;
    hf_log_sink log;
    void *log_state;
    hf_poller *poller;
    hf_thread *thread;       /* NULL = this process has been the owner from the beginning */
    atomic_bool is_stopping; /* for waits in the middle of a handshake */

    /* The thread's own. */
    hf_duct duct; /* fd -1 = there is no connection */
    hf_list out;
    hf_list waiting; /* those that wait for a connection, or for room on it, in order */
    hf_list by_wire[HF_SHARE_BUCKETS];
    hf_heap alarms;
    uint64_t wire_last;
    hf_buf scratch; /* bytes of one request */
    int64_t try_ns; /* no connection is tried before this time */
    unsigned failures;
    bool has_told;                /* the log has a line about the loss */
    char why[HF_MESSAGE_LEN_MAX]; /* there is no connection */

    /* From any thread. */
    hf_spin lock;
    hf_list inbox;                     /* calls that were submitted */
    hf_list canceled;                  /* calls whose callers do not want them any more */
    hf_list tokens;                    /* hf_share_token: tasks that nobody took */
    hf_list buckets[HF_SHARE_BUCKETS]; /* all calls that are not done, by number */
    hf_list spare;                     /* hf_errand_out without a call, by `node` */
    int spare_count;
    size_t call_count;
    uint64_t number_last;
    bool is_closing;
    bool is_asleep;    /* the thread waits, or is about to */
    hf_service *local; /* the engine, once this process is the owner: open-S3 */
};

typedef struct hf_share_token {
    hf_node node;
    size_t len; /* the token follows */
} hf_share_token;

/* share_call.c */
extern const hf_service_ops hf_share_ops;
void hf_out_begin(hf_share *share, hf_call *call); /* from the inbox */
void hf_out_send_all(hf_share *share);             /* as many as there is room for */
void hf_out_cancel(hf_errand_out *out);
void hf_out_ring(hf_errand_out *out); /* its alarm */
void hf_out_answer(hf_share *share, const hf_pb_owner_answer *msg);
void hf_out_lost(hf_share *share);      /* the connection is: calls wait again, or fail (open-S2) */
void hf_out_hand_over(hf_share *share); /* share->local is set: all go to it */
void hf_out_fail_all(hf_share *share, hf_status status, const char *why);

/* share.c: wakes the thread; after the lock was released, as a guest of share->service.guests. */
bool hf_share_wants_ring(hf_share *share); /* under the lock; true: hf_share_ring must follow */
void hf_share_ring(hf_share *share);

#endif
