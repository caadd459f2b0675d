/* Shared by host.c (connections) and host_call.c (calls, tasks). Everything but `finished` belongs to the host's thread. */
#ifndef HF_OPEN_HOST_PRIVATE_H
#define HF_OPEN_HOST_PRIVATE_H

#include "base/arenas.h"
#include "base/slab.h"
#include "open/share.h"

enum { HF_HOST_STICKY_MAX = 64 }; /* queues of one connection that are remembered: a worker has one */

struct hf_host {
    hf_env *env;
    hf_allocator memory;
    hf_service *engine; /* borrowed; outlives this */
    hf_host_request *on_request;
    void *state;                   /* of on_request */
    hf_poller *poller;             /* the thread waits here */
    int fd;                        /* the listener */
    char address[HF_PATH_LEN_MAX]; /* "unix:PATH-sock" */
    char socket[HF_PATH_LEN_MAX];  /* absolute path of the socket, for its removal; empty = the path is too long */
    hf_thread *thread;
    atomic_bool stopping;

    bool may_accept;  /* the listener may have a connection */
    hf_list visitors; /* connections, in order of arrival, and those that are lost and have calls */
    int visitor_count;
    size_t call_count;   /* under way */
    size_t requests_len; /* bytes of their requests */
    hf_buf scratch;      /* bytes of one answer */
    hf_slab slab;        /* for hf_visit and hf_held_task */
    hf_arenas arenas;    /* of visits */

    hf_spin lock;     /* protects the next two */
    hf_list finished; /* hf_visit whose `done` has come */
    bool is_asleep;   /* the thread waits, or is about to */
    hf_guests guests; /* threads that ring */
};

/* A connection. */
struct hf_visitor {
    hf_host *host;
    hf_node node;
    hf_duct duct;
    bool is_welcome;                /* it has said "calls" */
    bool is_leaving;                /* it goes when it has taken the last word */
    bool is_gone;                   /* lost: only its calls are left */
    bool has_closed;                /* its service was closed: what it has in hand did not end its process */
    hf_instant hello_end;           /* when its first request must be there */
    hf_list visits;                 /* its calls that are under way */
    hf_list held[HF_SHARE_BUCKETS]; /* hf_held_task: tasks that it was given, by their tokens */
    size_t held_count;
    hf_list sticky; /* hf_sticky_name: queues that only this process polls */
    int sticky_count;
};

/* A call of a connection. */
typedef struct hf_visit {
    hf_call call; /* first */
    hf_host *host;
    hf_visitor *visitor; /* NULL = the host's own */
    hf_node node;        /* of visitor->visits */
    uint64_t number;     /* the other side's */
    hf_arena arena;
    size_t len;       /* bytes of the request */
    bool is_given_up; /* nobody reads its answer */
} hf_visit;

typedef struct hf_held_task {
    hf_node node;
    uint64_t number; /* of the call in whose answer it was */
    size_t len;      /* of the token, which follows */
} hf_held_task;

typedef struct hf_sticky_name {
    hf_node node;
    size_t namespace_len;
    size_t len; /* of both, one behind the other; they follow */
} hf_sticky_name;

/* host_call.c */
void hf_visit_begin(hf_visitor *visitor, const hf_pb_owner_call *frame); /* any frame of a connection */
void hf_visit_end(hf_visit *visit);                                      /* `done` has come: answers it. Frees it */
void hf_visitor_leave(hf_visitor *visitor);                              /* lost: its calls end, its tasks go back */

/* host.c */
void hf_visit_done(hf_call *call); /* from a thread of the engine */

#endif
