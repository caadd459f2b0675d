/* The table of methods: gRPC path, the call of hf_service behind it, and who may make it. A new method of hf_service is one row here
 * (the build fails without it), and is then routed, authorized and part of the authorization test.
 *
 * Streaming methods and those that the door answers itself stand in the same table. */
#ifndef HF_SERVER_METHODS_H
#define HF_SERVER_METHODS_H

#include "service/service.h"

enum { HF_ROUTES_OWN_MAX = 8 }; /* routes that are not methods of hf_service, or other names of such */

/* What a credential may do in a namespace. A set. */
typedef enum hf_role {
    HF_ROLE_READ = 1,   /* look at workflows, list them, query them */
    HF_ROLE_WRITE = 2,  /* start, signal, cancel, complete by id; and everything that READ may */
    HF_ROLE_WORKER = 4, /* poll, respond, heartbeat */
    HF_ROLE_ADMIN = 8   /* everything */
} hf_role;

/* How the door answers. */
typedef enum hf_route_kind {
    HF_ROUTE_SERVICE, /* a call of hf_service */
    HF_ROUTE_HEALTH_CHECK,
    HF_ROUTE_HEALTH_WATCH, /* answers until the stream ends */
    HF_ROUTE_REFLECTION    /* takes messages and answers them until the stream ends */
} hf_route_kind;

typedef struct hf_route {
    const char *service; /* "temporal.api.workflowservice.v1.WorkflowService" */
    const char *name;    /* "StartWorkflowExecution" */
    hf_route_kind kind;
    hf_method method; /* HF_ROUTE_SERVICE */
    const hf_pb_type *request_type;
    const hf_pb_type *response_type;
    unsigned roles;      /* one of these is needed; 0 = open to everybody */
    bool is_of_system;   /* its request names no namespace */
    bool is_poll;        /* waits for a task or an event: answered a little before its caller's deadline */
    bool ends_with_door; /* waits for others: ends at once when the server stops, for then nothing comes any more */
    bool is_of_tests;    /* only of a door whose service has a clock for tests */
    /* Another name for the method: makes its request, in the arena; the answers have the same bytes. NULL result: what is asked for is not
     * here, or there is no memory. NULL = the request is the method's own. */
    void *(*translate)(hf_arena *arena, const void *request);
} hf_route;

/* All routes; `*ret_count` of them. */
const hf_route *hf_routes(size_t *ret_count);
/* The route of "/service/method"; `has_tests`: also those of tests. NULL: there is none; `*ret_has_service` says whether the service
 * exists. */
const hf_route *hf_route_find(hf_str path, bool has_tests, bool *ret_has_service);
/* The namespace that a request names, for all messages that have one; empty = none. */
hf_str hf_request_namespace(const hf_pb_type *type, const void *request);

#endif
