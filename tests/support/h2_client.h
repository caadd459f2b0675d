/* A gRPC client for tests of the door: one connection, driven by the fiber that calls. */
#ifndef HF_TESTS_H2_CLIENT_H
#define HF_TESTS_H2_CLIENT_H

#include "base/arena.h"
#include "service/service.h"
#include "wire/http2.h"

#include <holdfast/io.h>

typedef struct h2_client h2_client;

/* One call: from h2_begin to h2_free. */
typedef struct h2_call {
    hf_h2_stream h2; /* first */
    h2_client *client;
    hf_buf body;        /* frames of the answer */
    int status;         /* grpc-status; -1 = none came */
    int http;           /* :status */
    char message[1000]; /* grpc-message, as sent */
    hf_buf details;     /* grpc-status-details-bin, as sent */
    bool is_gzip;       /* grpc-encoding of the answer */
    bool is_closed;
    uint32_t code; /* of the end of the stream */
} h2_call;

struct h2_client {
    hf_conn *conn;
    hf_h2 *h2;
    hf_allocator memory;
    int64_t clock;
    bool is_over; /* the connection was closed by the server */
};

/* NULL headers end the list. */
typedef struct h2_header {
    const char *name;
    const char *value;
} h2_header;

hf_status h2_open(h2_client *client, const char *address, hf_allocator memory);
void h2_close(h2_client *client);
/* Begins a call of "/service/method" with a frame that is sent as it is; `len` 0 = none. */
h2_call *h2_begin(h2_client *client, const char *path, const h2_header *headers, const void *frame, size_t len);
/* Begins a call whose frame comes later, by h2_finish, or never: `is_last`. */
h2_call *h2_begin_open(h2_client *client, const char *path, const h2_header *headers, bool is_last);
void h2_finish(h2_call *call, const void *frame, size_t len);
/* h2_begin for a method of the workflow service, with its request. */
h2_call *h2_begin_method(h2_client *client, hf_method method, const h2_header *headers, const void *request);
void h2_free(h2_call *call);
/* Sends what there is, then reads once. False: the connection is over. */
bool h2_turn(h2_client *client);
void h2_flush(h2_client *client);
/* Turns until the call is closed. */
void h2_wait(h2_call *call);
/* The message of a finished call in its one frame; `ret_gzip` says whether it is compressed. */
hf_str h2_message(const h2_call *call, bool *ret_gzip);
/* begin, wait, decode. Returns grpc-status. `response` may be NULL. */
int h2_ask(h2_client *client, hf_method method, const void *request, hf_arena *arena, void *ret_response);

#endif
