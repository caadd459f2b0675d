/* grpc.reflection: a stream of questions, an answer to each. Tools such as grpcurl learn from it what they can call.
 *
 * A question is answered with one file; tools ask for its imports by name. An answer can be ten thousand times as long as its question,
 * so a peer that asks on without taking its answers is refused. */
#include "server/server_private.h"

#include "server/reflect.h"
#include "service/grpc_code.h"
#include "wire/grpc.h"
#include "wire/gzip.h"

enum {
    QUESTION_LEN_MAX = 16 * 1024, /* bytes: a name, and the frame around it */
    OWED_LEN_MAX = 4 << 20,       /* bytes of answers of a connection that were not taken */
    SERVICES_MAX = 16
};

static const hf_h2_field HEAD[] = {{HF_STR_INIT(":status"), HF_STR_INIT("200")},
                                   {HF_STR_INIT("content-type"), HF_STR_INIT("application/grpc")}};

/* Trailers, which must live until the stream is closed. */
static const hf_h2_field FINE[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("0")}};
static const hf_h2_field BAD[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("3")},
                                  {HF_STR_INIT("grpc-message"), HF_STR_INIT("this is not a ServerReflectionRequest")}};
static const hf_h2_field MANY[] = {
    {HF_STR_INIT("grpc-status"), HF_STR_INIT("8")},
    {HF_STR_INIT("grpc-message"),
     HF_STR_INIT("too many questions whose answers were not taken, or no memory for one")}};

static bool begin(hf_stream *stream)
{
    hf_op op;
    hf_op_init(&op);
    if (!stream->is_talking) {
        if (hf_h2_respond(&op, stream->link->h2, &stream->h2, HEAD, HF_COUNT_OF(HEAD), false) != HF_OK) {
            stream->is_answered = true;
            hf_h2_reset(stream->link->h2, &stream->h2, HF_H2_INTERNAL_ERROR);
            return false;
        }
        stream->is_talking = true;
    }
    return true;
}

static void finish(hf_stream *stream, const hf_h2_field *trailers, size_t count)
{
    if (!stream->is_answered && begin(stream)) {
        stream->is_answered = true;
        hf_heap_remove(&stream->link->deadlines, &stream->deadline);
        atomic_fetch_add(&stream->link->door->calls, 1);
        atomic_fetch_add(&stream->link->door->failures, trailers == FINE ? 0 : 1);
        hf_h2_end(stream->link->h2, &stream->h2, trailers, count);
    }
}

void hf_reflect_end(hf_stream *stream)
{
    if (stream->in.len > 0) {
        finish(stream, BAD, HF_COUNT_OF(BAD));
    } else {
        finish(stream, FINE, HF_COUNT_OF(FINE));
    }
}

/* ---- An answer -------------------------------------------------------------------------------------------------------------- */

static size_t services_of(const hf_stream *stream, hf_pb_service_response *ret_services)
{
    size_t count = 0;
    size_t found = 0;
    const hf_route *routes = hf_routes(&count);
    for (size_t i = 0; i < count; i++) {
        bool is_known = routes[i].is_of_tests && !stream->link->door->options.has_tests;
        for (size_t k = 0; k < found && !is_known; k++) {
            is_known = hf_str_equal(ret_services[k].name, hf_str_of(routes[i].service));
        }
        if (!is_known) {
            hf_assert(found < SERVICES_MAX);
            ret_services[found++].name = hf_str_of(routes[i].service);
        }
    }
    return found;
}

static void tell(hf_stream *stream, const hf_pb_server_reflection_response *response)
{
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_buf message;
    hf_buf_init(&message, stream->link->door->memory, HF_DOOR_MESSAGE_LEN_MAX);
    hf_pb_encode(&hf_pb_server_reflection_response_type, response, &message);
    hf_grpc_head(head, false, (uint32_t)message.len);
    if (hf_buf_status(&message) == HF_OK && begin(stream)) {
        hf_buf *out = &stream->h2.out;
        if (hf_buf_reserve(out, sizeof head + message.len)) {
            hf_buf_put(out, head, sizeof head);
            hf_buf_put(out, message.data, message.len);
            hf_h2_put(stream->link->h2, &stream->h2, sizeof head + message.len);
        } else {
            finish(stream, MANY, HF_COUNT_OF(MANY));
        }
    } else {
        finish(stream, MANY, HF_COUNT_OF(MANY));
    }
    hf_buf_deinit(&message);
}

static void answer(hf_stream *stream, hf_pb_server_reflection_request *request)
{
    bool has_tests = stream->link->door->options.has_tests;
    hf_pb_server_reflection_response response = {.valid_host = request->host, .original_request = request};
    hf_pb_service_response services[SERVICES_MAX] = {0};
    hf_pb_error_response error = {.error_code = HF_GRPC_NOT_FOUND,
                                  .error_message = HF_STR("there is no such file or symbol")};
    hf_buf file;
    hf_buf_init(&file, stream->link->door->memory, HF_DOOR_MESSAGE_LEN_MAX);
    bool is_found = false;
    switch (request->message_request_case) {
    case 3:
        is_found = hf_reflect_file(request->file_by_filename, has_tests, &file);
        break;
    case 4:
        is_found = hf_reflect_symbol(request->file_containing_symbol, has_tests, &file);
        break;
    default: /* there are no extensions */
        break;
    }
    hf_str bytes = hf_str_of_len(file.data, file.len);
    hf_pb_file_descriptor_response descriptors = {.file_descriptor_proto = {&bytes, 1}};
    hf_pb_list_service_response list = {.service = {services, 0}};
    if (hf_buf_status(&file) != HF_OK) {
        finish(stream, MANY, HF_COUNT_OF(MANY));
    } else if (request->message_request_case == 7) {
        list.service.count = services_of(stream, services);
        response.message_response_case = 6;
        response.list_services_response = &list;
        tell(stream, &response);
    } else if (is_found) {
        response.message_response_case = 4;
        response.file_descriptor_response = &descriptors;
        tell(stream, &response);
    } else {
        response.message_response_case = 7;
        response.error_response = &error;
        tell(stream, &response);
    }
    hf_buf_deinit(&file);
}

/* ---- Questions -------------------------------------------------------------------------------------------------------------- */

static void ask(hf_stream *stream, const hf_grpc_frame *frame)
{
    hf_op op;
    hf_op_init(&op);
    hf_allocator memory = stream->link->door->memory;
    hf_pb_server_reflection_request request = {0};
    hf_buf plain;
    hf_arena arena;
    hf_buf_init(&plain, memory, SIZE_MAX / 2);
    hf_arena_init(&arena, memory);
    hf_str bytes = frame->message;
    hf_status status = HF_OK;
    if (frame->is_compressed) {
        status = stream->is_gzip ? hf_gunzip(&op, bytes, QUESTION_LEN_MAX, &plain) : HF_ERR_INVALID;
        bytes = hf_str_of_len(plain.data, plain.len);
    }
    if (status == HF_OK) {
        status = hf_pb_decode(&op, &hf_pb_server_reflection_request_type, bytes, &arena, &request);
    }
    if (status != HF_OK) {
        finish(stream, BAD, HF_COUNT_OF(BAD));
    } else if (stream->is_talking || hf_permit_request(stream, &hf_pb_server_reflection_request_type, &request)) {
        answer(stream, &request);
    }
    hf_arena_deinit(&arena);
    hf_buf_deinit(&plain);
}

void hf_reflect_take(hf_stream *stream)
{
    hf_link *link = stream->link;
    hf_grpc_frame frame;
    hf_op op;
    hf_op_init(&op);
    size_t taken = 0;
    while (!stream->is_answered) {
        hf_str rest = hf_str_of_len(stream->in.data + taken, stream->in.len - taken);
        hf_status status = hf_grpc_take(&op, rest, QUESTION_LEN_MAX, &frame);
        if (status == HF_ERR_AGAIN) {
            break;
        }
        if (status != HF_OK) {
            finish(stream, BAD, HF_COUNT_OF(BAD));
        } else if (hf_h2_out_len(link->h2) > OWED_LEN_MAX) {
            finish(stream, MANY, HF_COUNT_OF(MANY));
        } else {
            ask(stream, &frame);
            taken += rest.len - frame.rest.len;
        }
    }
    if (taken > 0) {
        hf_assert(taken <= stream->in.len && link->in_len >= taken);
        memmove(stream->in.data, stream->in.data + taken, stream->in.len - taken);
        stream->in.len -= taken;
        link->in_len -= taken;
    }
}
