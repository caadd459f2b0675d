/* grpc.health.v1.Health. The messages are small enough to be written by hand: a name in, a number out. */
#include "server/server_private.h"

#include "service/grpc_code.h"
#include "wire/grpc.h"

typedef enum health { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 } health;

/* The health of a service, "" for the whole. */
static health health_of(const hf_stream *stream, hf_str name)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    bool is_known = name.len == 0;
    for (size_t i = 0; i < count && !is_known; i++) {
        bool is_here = stream->link->door->options.has_tests || !routes[i].is_of_tests;
        is_known = is_here && hf_str_equal(name, hf_str_of(routes[i].service));
    }
    if (!is_known) {
        return SERVICE_UNKNOWN;
    }
    return atomic_load(&stream->link->door->stage) == HF_STAGE_SERVING ? SERVING : NOT_SERVING;
}

static hf_str service_of(hf_str request)
{
    hf_pb_raw field;
    hf_str name = {0};
    while (hf_pb_next(&request, &field)) {
        if (field.number == 1 && field.wire == HF_PB_WIRE_BYTES) {
            name = field.bytes;
        }
    }
    return name;
}

void hf_health_check(hf_stream *stream, hf_str request)
{
    health state = health_of(stream, service_of(request));
    if (state == SERVICE_UNKNOWN) {
        hf_answer_status(stream, HF_GRPC_NOT_FOUND, "unknown service", NULL, NULL);
        return;
    }
    char message[2] = {1 << 3 | HF_PB_WIRE_VARINT, (char)state};
    hf_answer_bytes(stream, hf_str_of_len(message, sizeof message));
}

static void tell(hf_stream *stream, health state)
{
    unsigned char frame[HF_GRPC_HEAD_LEN + 2];
    hf_grpc_head(frame, false, 2);
    frame[HF_GRPC_HEAD_LEN] = 1 << 3 | HF_PB_WIRE_VARINT;
    frame[HF_GRPC_HEAD_LEN + 1] = (unsigned char)state;
    stream->watched = (int32_t)state;
    hf_buf_put(&stream->h2.out, frame, sizeof frame);
    if (hf_buf_status(&stream->h2.out) == HF_OK) {
        hf_h2_put(stream->link->h2, &stream->h2, sizeof frame);
    }
}

void hf_health_watch(hf_stream *stream, hf_str request)
{
    static const hf_h2_field HEAD[] = {{HF_STR_INIT(":status"), HF_STR_INIT("200")},
                                       {HF_STR_INIT("content-type"), HF_STR_INIT("application/grpc")}};
    hf_op op;
    hf_op_init(&op);
    health state = health_of(stream, service_of(request));
    if (hf_h2_respond(&op, stream->link->h2, &stream->h2, HEAD, HF_COUNT_OF(HEAD), false) != HF_OK) {
        hf_h2_reset(stream->link->h2, &stream->h2, HF_H2_INTERNAL_ERROR);
        return;
    }
    stream->is_answered = true;
    stream->is_watching = true;
    tell(stream, state);
    hf_stream_set_deadline(stream, INT64_MAX); /* the caller's own, if it has one */
    if (stream->link->stage != HF_STAGE_SERVING) {
        hf_health_tell(stream);
    }
}

void hf_health_expire(hf_stream *stream)
{
    static const hf_h2_field LATE[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("4")},
                                       {HF_STR_INIT("grpc-message"), HF_STR_INIT("context deadline exceeded")}};
    hf_assert(stream->is_watching && stream->is_answered);
    if (!stream->h2.is_ended) {
        hf_h2_end(stream->link->h2, &stream->h2, LATE, HF_COUNT_OF(LATE));
    }
}

/* The last word to a watcher, and the end of its stream: the door stops. */
void hf_health_tell(hf_stream *stream)
{
    static const hf_h2_field FINE[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("0")}};
    hf_assert(stream->is_watching);
    if (stream->h2.is_ended) {
        return;
    }
    if (stream->watched == SERVING) {
        tell(stream, NOT_SERVING);
    }
    hf_h2_end(stream->link->h2, &stream->h2, FINE, HF_COUNT_OF(FINE));
}
