#include "support/h2_client.h"

#include "support/support.h"
#include "wire/grpc.h"

#include <stdio.h>
#include <stdlib.h>

static void on_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    h2_call *call = (h2_call *)(void *)h2;
    (void)state;
    if (hf_str_equal(name, HF_STR("grpc-status"))) {
        call->status = (int)strtol(value.data, NULL, 10);
    } else if (hf_str_equal(name, HF_STR(":status"))) {
        call->http = (int)strtol(value.data, NULL, 10);
    } else if (hf_str_equal(name, HF_STR("grpc-message"))) {
        (void)snprintf(call->message, sizeof call->message, "%.*s", (int)value.len, value.data);
    } else if (hf_str_equal(name, HF_STR("grpc-status-details-bin"))) {
        hf_buf_put(&call->details, value.data, value.len);
    } else if (hf_str_equal(name, HF_STR("grpc-encoding"))) {
        call->is_gzip = hf_str_equal(value, HF_STR("gzip"));
    }
}

static void on_nothing(void *state, hf_h2_stream *h2)
{
    (void)state;
    (void)h2;
}

static void on_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    h2_call *call = (h2_call *)(void *)h2;
    (void)state;
    hf_buf_put(&call->body, bytes.data, bytes.len);
}

static void on_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    h2_call *call = (h2_call *)(void *)h2;
    (void)state;
    call->is_closed = true;
    call->code = code;
}

static const hf_h2_events EVENTS = {NULL, on_field, on_nothing, on_data, on_nothing, on_closed};

hf_status h2_open(h2_client *client, const char *address, hf_allocator memory)
{
    hf_op op;
    hf_op_init(&op);
    hf_h2_options options = {.is_client = true, .streams_max = 0};
    *client = (h2_client){.memory = memory};
    HF_TRY(hf_conn_open(address, &client->conn));
    return hf_h2_open(&op, memory, &options, &EVENTS, client, &client->h2);
}

void h2_close(h2_client *client)
{
    hf_h2_close(client->h2);
    (void)hf_conn_close(client->conn);
}

h2_call *h2_begin_open(h2_client *client, const char *path, const h2_header *headers, bool is_last)
{
    hf_op op;
    hf_op_init(&op);
    hf_h2_field fields[32] = {
        {HF_STR(":method"), HF_STR("POST")},
        {HF_STR(":scheme"), HF_STR("http")},
        {HF_STR(":path"), hf_str_of(path)},
        {HF_STR(":authority"), HF_STR("localhost")},
        {HF_STR("content-type"), HF_STR("application/grpc")},
        {HF_STR("te"), HF_STR("trailers")},
    };
    size_t count = 6;
    for (; headers != NULL && headers->name != NULL; headers++) {
        size_t at = 0;
        while (at < count && !hf_str_equal(fields[at].name, hf_str_of(headers->name))) {
            at++;
        }
        fields[at] = (hf_h2_field){hf_str_of(headers->name), hf_str_of(headers->value)};
        count += at == count ? 1 : 0;
    }
    h2_call *call = client->memory.allocate(client->memory.state, sizeof *call, 0);
    *call = (h2_call){.client = client, .status = -1};
    hf_buf_init(&call->body, client->memory, SIZE_MAX / 2);
    hf_buf_init(&call->details, client->memory, SIZE_MAX / 2);
    HF_CHECK(hf_h2_request(&op, client->h2, &call->h2, fields, count, is_last) == HF_OK);
    return call;
}

void h2_finish(h2_call *call, const void *frame, size_t len)
{
    hf_buf_put(&call->h2.out, frame, len);
    hf_h2_put(call->client->h2, &call->h2, len);
    hf_h2_end(call->client->h2, &call->h2, NULL, 0);
}

h2_call *h2_begin(h2_client *client, const char *path, const h2_header *headers, const void *frame, size_t len)
{
    h2_call *call = h2_begin_open(client, path, headers, len == 0);
    if (len > 0) {
        h2_finish(call, frame, len);
    }
    return call;
}

h2_call *h2_begin_method(h2_client *client, hf_method method, const h2_header *headers, const void *request)
{
    char path[256];
    const hf_method_info *info = hf_method_info_of(method);
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_buf message;
    hf_buf frame;
    (void)snprintf(path, sizeof path, "/temporal.api.workflowservice.v1.WorkflowService/%s", info->name);
    hf_buf_init(&message, client->memory, SIZE_MAX / 2);
    hf_buf_init(&frame, client->memory, SIZE_MAX / 2);
    hf_pb_encode(info->request_type, request, &message);
    hf_grpc_head(head, false, (uint32_t)message.len);
    hf_buf_put(&frame, head, sizeof head);
    hf_buf_put(&frame, message.data, message.len);
    h2_call *call = h2_begin(client, path, headers, frame.data, frame.len);
    hf_buf_deinit(&message);
    hf_buf_deinit(&frame);
    return call;
}

void h2_free(h2_call *call)
{
    hf_allocator memory = call->client->memory;
    hf_buf_deinit(&call->body);
    hf_buf_deinit(&call->details);
    hf_h2_drop(&call->h2);
    memory.release(memory.state, call, sizeof *call);
}

void h2_flush(h2_client *client)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf out;
    hf_buf_init(&out, client->memory, SIZE_MAX / 2);
    do {
        out.len = 0;
        HF_CHECK(hf_h2_send(&op, client->h2, &out, 64 * 1024) == HF_OK);
        if (out.len > 0 && hf_conn_write(client->conn, out.data, out.len) != HF_OK) {
            break; /* the server has gone; what it wrote before may still be read */
        }
    } while (out.len > 0);
    hf_buf_deinit(&out);
}

bool h2_turn(h2_client *client)
{
    char bytes[4096];
    size_t len = 0;
    hf_op op;
    hf_op_init(&op);
    h2_flush(client);
    if (hf_conn_read(client->conn, bytes, sizeof bytes, &len) != HF_OK || len == 0 ||
        hf_h2_recv(&op, client->h2, hf_str_of_len(bytes, len), client->clock++) != HF_OK) {
        client->is_over = true;
    }
    h2_flush(client);
    return !client->is_over;
}

void h2_wait(h2_call *call)
{
    while (!call->is_closed && h2_turn(call->client)) {
    }
}

hf_str h2_message(const h2_call *call, bool *ret_gzip)
{
    hf_op op;
    hf_op_init(&op);
    hf_grpc_frame frame = {0};
    HF_CHECK(hf_grpc_take(&op, hf_str_of_len(call->body.data, call->body.len), SIZE_MAX / 2, &frame) == HF_OK);
    HF_CHECK(frame.rest.len == 0);
    *ret_gzip = frame.is_compressed;
    return frame.message;
}

int h2_ask(h2_client *client, hf_method method, const void *request, hf_arena *arena, void *ret_response)
{
    hf_op op;
    hf_op_init(&op);
    bool is_gzip = false;
    h2_call *call = h2_begin_method(client, method, NULL, request);
    h2_wait(call);
    int status = call->status;
    if (status == 0 && ret_response != NULL) {
        hf_str bytes = hf_arena_copy(arena, h2_message(call, &is_gzip));
        HF_CHECK(!is_gzip &&
                 hf_pb_decode(&op, hf_method_info_of(method)->response_type, bytes, arena, ret_response) == HF_OK);
    }
    if (status != 0) {
        print_message("  %s: %d %s\n", hf_method_info_of(method)->name, status, call->message);
    }
    h2_free(call);
    return status;
}
