/* A hostile server, seen from the client of temporal://. An input is the server's program: heads, bodies, trailers, resets, GOAWAYs, and raw
 * bytes in between, for whatever streams the client has opened. Both run in a simulated environment, so that a call that waits for an
 * hour costs nothing.
 *
 * Whatever the server does, each call ends once, the service can be closed, and nothing is left behind. */
#include "fuzz/fuzz.h"

#include "base/list.h"
#include "env/sim/sim.h"
#include "fiber/verbs.h"
#include "remote/remote.h"
#include "service/call.h"
#include "wire/grpc.h"
#include "wire/http2.h"

#include <holdfast/holdfast.h>

enum {
    CONNECTIONS_MAX = 6, /* that the program is played on; later ones are closed at once */
    STREAMS_MAX = 100,
    STEPS_MAX = 2000000,
    CALLS = 6
};

typedef struct world {
    hf_env *env;
    hf_str program;   /* what is left of it */
    bool is_polite;   /* the calls of hf_open are answered well */
    int greetings;    /* calls of hf_open that are still to come */
    bool is_over;     /* the client has ended */
    hf_chan *address; /* the listener has its port */
    char listens[HF_ADDRESS_LEN_MAX];
    int done; /* calls that have ended */
} world;

/* A connection, seen by the server. */
typedef struct peer {
    world *w;
    hf_h2 *h2;
    hf_conn *conn;
    hf_list streams; /* those that wait for an answer, in order */
    hf_list closed;
} peer;

typedef struct peer_stream {
    hf_h2_stream h2; /* first */
    hf_node node;
    hf_h2_field trailers[3];
    hf_buf texts[3];
    bool is_whole; /* its request is complete */
    bool is_headed;
    bool is_closed;
} peer_stream;

/* ---- The program ------------------------------------------------------------------------------------------------------- */

static unsigned take_byte(world *w)
{
    if (w->program.len == 0) {
        return 0;
    }
    unsigned byte = (unsigned char)w->program.data[0];
    w->program = hf_str_of_len(w->program.data + 1, w->program.len - 1);
    return byte;
}

static hf_str take_bytes(world *w)
{
    size_t len = take_byte(w);
    len = len < w->program.len ? len : w->program.len;
    hf_str bytes = hf_str_of_len(w->program.data, len);
    w->program = hf_str_of_len(w->program.data + len, w->program.len - len);
    return bytes;
}

/* ---- The session of the server ------------------------------------------------------------------------------------------- */

static hf_h2_stream *on_begin(void *state, int32_t id)
{
    peer *p = state;
    (void)id;
    peer_stream *stream = calloc(1, sizeof *stream);
    for (size_t i = 0; i < HF_COUNT_OF(stream->texts); i++) {
        hf_buf_init(&stream->texts[i], hf_env_memory(p->w->env), SIZE_MAX / 2);
    }
    hf_list_push_back(&p->streams, &stream->node);
    return &stream->h2;
}

static void on_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    (void)state;
    (void)h2;
    (void)name;
    (void)value;
}

static void on_nothing(void *state, hf_h2_stream *h2)
{
    (void)state;
    (void)h2;
}

static void on_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    (void)state;
    (void)h2;
    (void)bytes;
}

static void on_end(void *state, hf_h2_stream *h2)
{
    (void)state;
    ((peer_stream *)(void *)h2)->is_whole = true;
}

static void on_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    peer *p = state;
    peer_stream *stream = (peer_stream *)(void *)h2;
    (void)code;
    stream->is_closed = true;
    hf_list_remove(&stream->node);
    hf_list_push_back(&p->closed, &stream->node);
}

static const hf_h2_events EVENTS = {on_begin, on_field, on_nothing, on_data, on_end, on_closed};

static void free_streams(hf_list *list, bool is_open)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(list)) != NULL) {
        peer_stream *stream = HF_CONTAINER(node, peer_stream, node);
        if (is_open) {
            hf_h2_drop(&stream->h2);
        }
        for (size_t i = 0; i < HF_COUNT_OF(stream->texts); i++) {
            hf_buf_deinit(&stream->texts[i]);
        }
        free(stream);
    }
}

/* False: the connection is over. */
static bool flush(peer *p)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(p->w->env), SIZE_MAX / 2);
    bool is_fine = hf_h2_send(&op, p->h2, &out, 1 << 20) == HF_OK &&
                   (out.len == 0 || hf_conn_write(p->conn, out.data, out.len) == HF_OK);
    hf_buf_deinit(&out);
    return is_fine;
}

/* Reads once. */
static bool hear(peer *p)
{
    char bytes[4096];
    size_t len = 0;
    hf_op op;
    hf_op_init(&op);
    return hf_conn_read(p->conn, bytes, sizeof bytes, &len) == HF_OK && len > 0 &&
           hf_h2_recv(&op, p->h2, hf_str_of_len(bytes, len), 0) == HF_OK;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

static void put_head(peer *p, peer_stream *stream, const char *status)
{
    hf_op op;
    hf_op_init(&op);
    hf_h2_field fields[] = {{HF_STR(":status"), hf_str_of(status)},
                            {HF_STR("content-type"), HF_STR("application/grpc")},
                            {HF_STR("grpc-encoding"), HF_STR("gzip")}};
    if (!stream->is_headed) {
        stream->is_headed = true;
        (void)hf_h2_respond(&op, p->h2, &stream->h2, fields, HF_COUNT_OF(fields), false);
    }
}

static void put_body(peer *p, peer_stream *stream, hf_str bytes)
{
    put_head(p, stream, "200");
    if (stream->h2.is_answering && !stream->h2.is_ended) {
        hf_buf_put(&stream->h2.out, bytes.data, bytes.len);
        hf_h2_put(p->h2, &stream->h2, bytes.len);
    }
}

static void put_frame(peer *p, peer_stream *stream, hf_str message, bool is_gzip)
{
    unsigned char head[HF_GRPC_HEAD_LEN];
    hf_grpc_head(head, is_gzip, (uint32_t)message.len);
    put_body(p, stream, hf_str_of_len((const char *)head, sizeof head));
    put_body(p, stream, message);
}

static hf_str keep(peer_stream *stream, int at, hf_str text)
{
    for (size_t i = 0; i < text.len; i++) { /* the sender's session refuses other bytes */
        char byte = text.data[i] >= ' ' && text.data[i] <= '~' ? text.data[i] : '%';
        hf_buf_put(&stream->texts[at], &byte, 1);
    }
    return hf_str_of_len(stream->texts[at].data, stream->texts[at].len);
}

static void end(peer *p, peer_stream *stream, unsigned code, hf_str message, hf_str details)
{
    char number[12];
    (void)snprintf(number, sizeof number, "%u", code % 20);
    if (stream->h2.is_ended) {
        return;
    }
    bool is_bare = !stream->is_headed;
    put_head(p, stream, is_bare && code >= 200 ? "503" : "200");
    if (!stream->h2.is_answering) {
        return; /* the head could not be sent */
    }
    stream->trailers[0] = (hf_h2_field){HF_STR("grpc-status"), keep(stream, 0, hf_str_of(number))};
    stream->trailers[1] = (hf_h2_field){HF_STR("grpc-message"), keep(stream, 1, message)};
    stream->trailers[2] = (hf_h2_field){HF_STR("grpc-status-details-bin"), keep(stream, 2, details)};
    hf_h2_end(p->h2, &stream->h2, stream->trailers, details.len > 0 ? 3 : 2);
}

/* The two calls of hf_open: what the server can do, and whether it is a Holdfast. */
static void greet(peer *p, peer_stream *stream)
{
    static const char INFO[] = "\x12\x02\x48\x01"; /* capabilities, with sdk_metadata */
    if (p->w->greetings-- == 2) {
        put_frame(p, stream, hf_str_of_len(INFO, sizeof INFO - 1), false);
        end(p, stream, 0, HF_STR(""), HF_STR(""));
    } else {
        end(p, stream, 12, HF_STR("unknown method"), HF_STR(""));
    }
}

/* One step of the program, for the first request that waits. False: the connection is to be closed. */
static bool step(peer *p)
{
    world *w = p->w;
    peer_stream *stream = HF_CONTAINER(hf_list_first(&p->streams), peer_stream, node);
    if (w->is_polite && w->greetings > 0) {
        greet(p, stream);
        return true;
    }
    if (w->program.len == 0) {
        return false;
    }
    unsigned move = take_byte(w);
    switch (move % 8) {
    case 0:
        put_head(p, stream, move < 128 ? "200" : "404");
        return true;
    case 1:
        put_body(p, stream, take_bytes(w));
        return true;
    case 2:
        put_frame(p, stream, take_bytes(w), move >= 128);
        return true;
    case 3: {
        unsigned code = take_byte(w);
        hf_str message = take_bytes(w);
        end(p, stream, code, message, take_bytes(w));
        return true;
    }
    case 4:
        hf_h2_reset(p->h2, &stream->h2, take_byte(w) % 16);
        return true;
    case 5:
        hf_h2_goaway(p->h2, move >= 128);
        return true;
    case 6: {
        hf_str raw = take_bytes(w);
        return raw.len > 0 && flush(p) && hf_conn_write(p->conn, raw.data, raw.len) == HF_OK;
    }
    default: /* a frame that has no error, and the end of the stream */
        put_frame(p, stream, take_bytes(w), false);
        end(p, stream, 0, HF_STR(""), HF_STR(""));
        return true;
    }
}

static bool waits(const peer *p)
{
    const hf_node *node = hf_list_first(&p->streams);
    return node != NULL && HF_CONTAINER(node, const peer_stream, node)->is_whole &&
           !HF_CONTAINER(node, const peer_stream, node)->h2.is_ended;
}

static void talk(world *w, hf_conn *conn)
{
    peer p = {.w = w, .conn = conn};
    hf_op op;
    hf_op_init(&op);
    hf_h2_options options = {.streams_max = STREAMS_MAX};
    hf_list_init(&p.streams);
    hf_list_init(&p.closed);
    if (hf_h2_open(&op, hf_env_memory(w->env), &options, &EVENTS, &p, &p.h2) != HF_OK) {
        return;
    }
    bool is_fine = true;
    while (is_fine) {
        while (is_fine && waits(&p)) {
            is_fine = step(&p) && flush(&p);
        }
        is_fine = is_fine && flush(&p) && hear(&p);
    }
    (void)flush(&p);
    hf_h2_close(p.h2);
    free_streams(&p.streams, true);
    free_streams(&p.closed, false);
}

static hf_status serve(void *arg)
{
    world *w = arg;
    hf_listener *listener = NULL;
    int word = 0;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    (void)snprintf(w->listens, sizeof w->listens, "%s", hf_listener_address(listener));
    hf_status status = hf_chan_send(w->address, &word);
    for (int i = 0; status == HF_OK && !w->is_over; i++) {
        hf_conn *conn = NULL;
        status = hf_listener_accept(listener, &conn);
        if (status == HF_OK && i < CONNECTIONS_MAX) {
            talk(w, conn);
        }
        (void)hf_conn_close(conn);
    }
    (void)hf_listener_close(listener);
    return HF_OK;
}

/* ---- The client ------------------------------------------------------------------------------------------------------------ */

typedef struct asked {
    world *w;
    hf_service *service;
    int which;
} asked;

static hf_status ask(void *arg)
{
    const asked *a = arg;
    static hf_pb_workflow_execution execution = {.workflow_id = HF_STR_INIT("w")};
    static hf_pb_workflow_type type = {.name = HF_STR_INIT("t")};
    static hf_pb_task_queue queue = {.name = HF_STR_INIT("q")};
    static hf_pb_workflow_query query = {.query_type = HF_STR_INIT("q")};
    static const hf_str NS = HF_STR_INIT("default");
    hf_pb_start_workflow_execution_request start = {.namespace = NS,
                                                    .workflow_id = HF_STR("w"),
                                                    .workflow_type = &type,
                                                    .task_queue = &queue,
                                                    .request_id = HF_STR("r")};
    hf_pb_describe_workflow_execution_request describe = {.namespace = NS, .execution = &execution};
    hf_pb_get_workflow_execution_history_request history = {
        .namespace = NS, .execution = &execution, .wait_new_event = true};
    hf_pb_query_workflow_request question = {.namespace = NS, .execution = &execution, .query = &query};
    hf_pb_poll_workflow_task_queue_request poll = {.namespace = NS, .task_queue = &queue};
    hf_pb_terminate_workflow_execution_request terminate = {.namespace = NS, .workflow_execution = &execution};
    const struct {
        hf_method method;
        const void *request;
    } METHODS[CALLS] = {
        {HF_METHOD_START_WORKFLOW_EXECUTION, &start},         {HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &describe},
        {HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &history}, {HF_METHOD_QUERY_WORKFLOW, &question},
        {HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll},          {HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &terminate},
    };
    hf_arena arena;
    hf_call call;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(a->w->env));
    hf_call_init(&call, METHODS[a->which].method, METHODS[a->which].request, &arena, NULL);
    call.timeout = a->which == 3 ? hf_seconds(2) : (hf_span){0};
    hf_status status = hf_service_ask(&op, a->service, &call);
    FUZZ_CHECK((status == HF_OK) == (call.status == HF_OK), "%d and %d", (int)status, (int)call.status);
    FUZZ_CHECK(status != HF_OK || call.response != NULL, "an answer without a message");
    FUZZ_CHECK(status == HF_OK || call.message[0] != '\0', "refused without a sentence");
    a->w->done++;
    hf_arena_deinit(&arena);
    return HF_OK;
}

static void ask_all(world *w, hf_service *service)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    asked all[CALLS];
    FUZZ_CHECK(hf_scope_open(&scope, .name = "calls") == HF_OK, "%s", hf_error_text());
    for (int i = 0; i < CALLS; i++) {
        all[i] = (asked){w, service, i};
        FUZZ_CHECK(hf_fork(scope, ask, &all[i]) == HF_OK, "%s", hf_error_text());
    }
    HF_IGNORE(hf_sleep(hf_seconds(120))); /* a poll would wait for ever */
    HF_IGNORE(hf_scope_cancel(scope, .reason = "enough"));
    HF_IGNORE(hf_join(scope));
    FUZZ_CHECK(w->done == CALLS, "%d calls have ended", w->done);
}

static hf_status play(void *arg)
{
    world *w = arg;
    hf_op op;
    hf_op_init(&op);
    HF_AUTO(hf_chan_free) hf_chan *address = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    int word = 0;
    HF_TRY(hf_chan_new(sizeof word, &address));
    HF_TRY(hf_scope_open(&scope, .name = "server", .join = HF_JOIN_DISCARD));
    w->address = address;
    HF_TRY(hf_fork(scope, serve, w));
    HF_TRY(hf_chan_recv(address, &word));
    char host[HF_ADDRESS_LEN_MAX];
    (void)snprintf(host, sizeof host, "%s", w->listens + strlen("tcp:"));
    char *colon = strrchr(host, ':');
    *colon = '\0';
    hf_service *service = NULL;
    char url[HF_ADDRESS_LEN_MAX + 16];
    (void)snprintf(url, sizeof url, "temporal://%s:%s", host, colon + 1);
    if (hf_open(url, &service) == HF_OK) {
        ask_all(w, service);
        FUZZ_CHECK(hf_close(service) == HF_OK, "%s", hf_error_text());
    }
    w->is_over = true;
    HF_IGNORE(hf_scope_cancel(scope, .reason = "over"));
    return HF_OK;
}

static void ignore_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    char *copy = fuzz_copy(hf_str_of_len((const char *)data + 1, size - 1));
    world w = {.program = hf_str_of_len(copy, size - 1), .is_polite = data[0] % 4 != 0, .greetings = 2};
    hf_op op;
    hf_op_init(&op);
    hf_sim_options simulation = {.size = sizeof simulation, .seed = 1, .steps_max = STEPS_MAX};
    FUZZ_CHECK(hf_sim_make(&op, &w.env, &simulation) == HF_OK, "%s", op.message);
    hf_runtime_options options = {.size = sizeof options, .threads = 1, .env = w.env, .log = ignore_log};
    FUZZ_CHECK(hf_run_with(play, &w, &options) == HF_OK, "%s", hf_error_text());
    hf_sim_counters counters;
    hf_sim_count(w.env, &counters);
    FUZZ_CHECK(hf_sim_allocations_live(w.env) == 0 && hf_sim_descriptors(w.env) == 0 && counters.threads_live == 0,
               "%llu allocations, %u descriptors, %llu threads are left",
               (unsigned long long)hf_sim_allocations_live(w.env), hf_sim_descriptors(w.env),
               (unsigned long long)counters.threads_live);
    hf_sim_free(w.env);
    free(copy);
    return 0;
}
