/* The door: a hf_service over gRPC. Listeners, connections, and the order in which they stop.
 *
 *     HF_TRY(hf_door_open(op, service, &options, &door));      on a fiber
 *     HF_TRY(hf_door_listen(op, door, "tcp:127.0.0.1:7233"));  as often as needed
 *     ... the connections are served by fibers of their own ...
 *     hf_door_stop(door);                                      waits; then the service may be closed
 *
 * docs/adr/0022 has the shape and the reasons. */
#ifndef HF_SERVER_DOOR_H
#define HF_SERVER_DOOR_H

#include "base/op.h"

#include <holdfast/io.h>
#include <holdfast/service.h>

/* What users meet; the other bounds are in server_private.h. */
enum {
    HF_DOOR_LINKS_MAX = 2048,          /* connections: one of an SDK serves all its workers */
    HF_DOOR_STREAMS_MAX = 10000,       /* calls of one connection, also those whose stream was reset */
    HF_DOOR_STREAMS_UNKNOWN_MAX = 100, /* the same, where keys are needed and the peer has not shown a valid one */
    HF_DOOR_STREAMS_ALL_MAX = 100000,  /* calls of all connections: a parked poll has some 3 KiB. Beyond it ... */
    HF_DOOR_STREAMS_EACH_MIN = 64, /* ... a connection still has these, so that one peer cannot take the place of all */
    HF_DOOR_MESSAGE_LEN_MAX = 4 << 20, /* bytes of a request, inflated: as Temporal's server */
};

typedef struct hf_door hf_door;
typedef struct hf_keyring hf_keyring;         /* server/auth.h */
typedef struct hf_tls_context hf_tls_context; /* wire/tls.h */

typedef struct hf_door_options {
    int links_max;               /* connections at once; 0 = HF_DOOR_LINKS_MAX */
    int streams_max;             /* calls at once, on all connections; 0 = HF_DOOR_STREAMS_ALL_MAX */
    hf_span stop_grace;          /* time that calls under way get when the door stops; 0 = 10 s */
    hf_keyring *keys;            /* takes a reference; NULL = everybody may do everything */
    hf_tls_context *tls;         /* takes a reference; NULL = plain text */
    const struct hf_rate *rates; /* server/rate.h; their names must outlive the door */
    int rate_count;              /* of those; 0 = no limits */
    bool has_tests;              /* TestService, too: the service is one of hf_open_skipping */
    hf_log_sink log;             /* NULL = none */
    void *log_state;
} hf_door_options;

typedef struct hf_door_stats {
    uint64_t links;       /* connections now */
    uint64_t links_total; /* and ever */
    uint64_t streams;     /* calls now, parked polls among them */
    uint64_t calls;       /* answered */
    uint64_t failures;    /* of those, with a code other than OK */
    uint64_t cut;         /* connections that were cut: floods, broken frames, silence */
    uint64_t limited;     /* calls refused because their namespace was over its rate */
    uint64_t returned;    /* tasks given back because the poll's stream was gone */
} hf_door_stats;

/* On a fiber, which owns the door; `service` must outlive it. Fails: HF_ERR_NOMEM. */
hf_status hf_door_open(hf_op *op, hf_service *service, const hf_door_options *options, hf_door **ret_door);
/* Starts to accept connections. `ret_address` (HF_ADDRESS_LEN_MAX bytes, or NULL) gets the address with its real port. */
hf_status hf_door_listen(hf_op *op, hf_door *door, const char *address, char *ret_address);
/* New keys and a new certificate (NULL = as before), for calls and connections from now on; those that are open go on. Takes references. */
void hf_door_renew(hf_door *door, hf_keyring *keys, hf_tls_context *tls);
/* The figures now; from any thread. */
void hf_door_stats_get(const hf_door *door, hf_door_stats *ret_stats);
/* By the owner: health says NOT_SERVING, listeners close, every connection gets GOAWAY, parked polls are answered, calls under way get
 * `stop_grace`, then everything is closed and freed. Accepts NULL. */
void hf_door_stop(hf_door *door);

#endif
