/* The socket beside a store, both sides of it, in a simulated environment: bytes of a connection go through the real frame
 * reader, request handler and engine, on virtual time and without a socket of the operating system.
 *
 * An input is what the other side does, in this order:
 *
 *     1  sends these bytes                      4  says nothing for so many nanoseconds
 *     2  sends this message, with its length    5  hangs up, and connects again
 *     3  reads up to so many bytes              6  bits: the world has faults (FAULT_* below), or the input is an owner (AS_OWNER) or
 *                                                  another process with calls (AS_CALLER)
 *     7  the seed of the world
 *
 * Otherwise it is a tool that talks to the owner of a store. Then every connection that is not hung up is answered, the last answer
 * says so, and after all that an honest tool is answered, too. Another process says "calls" first (share.h); then messages are calls, and
 * whatever they are, the honest tool is answered. An owner talks to a tool of ours: that comes to an end. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#include "engine/engine.h"
#include "env/sim/sim.h"
#include "open/open.h"
#include "store/mem.h"
#include "support/support.h"

enum { SEND = 1, SEND_MESSAGE = 2, READ = 3, SLEEP = 4, HANG_UP = 5, BITS = 6, SEED = 7 };
enum { FAULT_SHORT = 1, FAULT_FULL = 2, FAULT_RESET = 4, AS_OWNER = 8, AS_CALLER = 16 };
enum { STEPS_MAX = 32, SENT_MAX = 200000, STACK_LEN = 256 * 1024 };

#define PATH "/fuzz.db"
#define ADDRESS "unix:" PATH "-sock"

typedef struct world {
    hf_env *env;
    hf_service *engine;
    hf_admin *admin;
    hf_poller *poller;
    int fd; /* the connection of the other side; -1 = none */
    uint64_t bits;
    size_t sent;
    hf_buf got; /* what came back on this connection */
} world;

/* ---- The world --------------------------------------------------------------------------------------------------------- */

typedef struct waiting {
    hf_call call;
    hf_env *env;
    hf_word done;
} waiting;

static void on_done(hf_call *call)
{
    waiting *w = HF_CONTAINER(call, waiting, call);
    atomic_store(&w->done, 1);
    w->env->ops->word_wake(w->env, &w->done, 1);
}

static void start_run(world *w, const char *id)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(w->env));
    waiting call = {.env = w->env};
    hf_pb_workflow_type type = {.name = HF_STR("type")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_start_workflow_execution_request request = {
        .namespace = HF_STR("default"), .workflow_id = hf_str_of(id), .workflow_type = &type, .task_queue = &queue};
    hf_call_init(&call.call, HF_METHOD_START_WORKFLOW_EXECUTION, &request, &arena, on_done);
    hf_service_submit(w->engine, &call.call);
    while (atomic_load(&call.done) == 0) {
        (void)w->env->ops->word_wait(w->env, &call.done, 0, HF_INSTANT_NEVER);
    }
    FUZZ_CHECK(call.call.status == HF_OK, "no run: %s", call.call.message);
    hf_arena_deinit(&arena);
}

static void open_world(world *w, uint64_t bits, uint64_t seed)
{
    hf_op op;
    hf_op_init(&op);
    *w = (world){.fd = -1, .bits = bits};
    hf_sim_options options = {
        .size = sizeof options,
        .seed = seed,
        .switch_permille = HF_OFF,
        .short_io_permille = (bits & FAULT_SHORT) != 0 ? 500 : 0,
        .full_permille = (bits & FAULT_FULL) != 0 ? 300 : 0,
        .reset_permille = (bits & FAULT_RESET) != 0 ? 50 : 0,
    };
    FUZZ_CHECK(hf_sim_make(&op, &w->env, &options) == HF_OK, "%s", op.message);
    hf_buf_init(&w->got, hf_env_memory(w->env), SIZE_MAX / 4);
    FUZZ_CHECK(w->env->ops->poller_open(w->env, &op, &w->poller) == HF_OK, "%s", op.message);
    if ((bits & AS_OWNER) != 0) {
        return;
    }
    hf_store *store = NULL;
    FUZZ_CHECK(hf_mem_store_open(&op, hf_env_memory(w->env), NULL, &store) == HF_OK, "%s", op.message);
    FUZZ_CHECK(hf_engine_open(&op, w->env, store, NULL, &w->engine) == HF_OK, "%s", op.message);
    start_run(w, "one");
    start_run(w, "two");
    FUZZ_CHECK(hf_admin_open(&op, w->env, PATH, w->engine, w->engine, &w->admin) == HF_OK, "%s", op.message);
}

static void close_world(world *w)
{
    hf_op op;
    hf_op_init(&op);
    hf_admin_close(w->admin);
    if (w->engine != NULL) {
        FUZZ_CHECK(w->engine->ops->close(&op, w->engine) == HF_OK, "%s", op.message);
    }
    w->env->ops->poller_close(w->env, w->poller);
    hf_buf_deinit(&w->got);
    hf_sim_counters counters;
    hf_sim_count(w->env, &counters);
    FUZZ_CHECK(hf_sim_allocations_live(w->env) == 0 && hf_sim_descriptors(w->env) == 0 && counters.threads_live == 0,
               "%llu allocations, %u descriptors and %llu threads are left",
               (unsigned long long)hf_sim_allocations_live(w->env), hf_sim_descriptors(w->env),
               (unsigned long long)counters.threads_live);
    hf_sim_free(w->env);
}

/* ---- The connection ---------------------------------------------------------------------------------------------------- */

static hf_instant in(world *w, hf_span span)
{
    return (hf_instant){w->env->ops->now(w->env).ns + span.ns};
}

static void wait_until(world *w, hf_instant deadline)
{
    hf_event events[4];
    (void)w->env->ops->poller_wait(w->env, w->poller, events, (int)HF_COUNT_OF(events), deadline);
}

static void watch(world *w)
{
    hf_op op;
    hf_op_init(&op);
    int events = HF_READABLE | HF_WRITABLE;
    FUZZ_CHECK(w->env->ops->poller_set(w->env, &op, w->poller, w->fd, events, true, w) == HF_OK, "%s", op.message);
}

static void hang_up(world *w)
{
    if (w->fd >= 0) {
        w->env->ops->close(w->env, w->fd);
    }
    w->fd = -1;
    w->got.len = 0;
}

static void connect_to(world *w)
{
    hf_op op;
    hf_op_init(&op);
    if (w->fd < 0 && w->env->ops->connect(w->env, &op, ADDRESS, &w->fd) != HF_OK) {
        w->fd = -1;
    } else {
        watch(w);
    }
}

typedef enum taken { OPEN, CLOSED, BROKEN } taken;

/* What comes back within `span`, up to so many bytes. */
static taken take(world *w, uint64_t len, hf_span span)
{
    hf_instant deadline = in(w, span);
    while (w->fd >= 0 && len > 0) {
        hf_op op;
        hf_op_init(&op);
        char bytes[4096];
        size_t got = 0;
        size_t room = len < sizeof bytes ? (size_t)len : sizeof bytes;
        hf_status status = w->env->ops->read(w->env, &op, w->fd, bytes, room, &got);
        if (status == HF_ERR_AGAIN && w->env->ops->now(w->env).ns < deadline.ns) {
            wait_until(w, deadline);
        } else if (status != HF_OK || got == 0) {
            return status == HF_ERR_AGAIN ? OPEN : status == HF_OK ? CLOSED : BROKEN;
        }
        hf_buf_put(&w->got, bytes, got);
        len -= got;
    }
    return OPEN;
}

/* As long as the other side reads, or says something to which this one has to listen. */
static void put(world *w, const void *bytes, size_t len)
{
    const char *from = bytes;
    hf_instant deadline = in(w, hf_seconds(5));
    w->sent += len;
    while (w->fd >= 0 && len > 0 && w->sent <= SENT_MAX) {
        hf_op op;
        hf_op_init(&op);
        size_t done = 0;
        hf_status status = w->env->ops->write(w->env, &op, w->fd, from, len, &done);
        if (status != HF_OK && (status != HF_ERR_AGAIN || w->env->ops->now(w->env).ns >= deadline.ns)) {
            return;
        }
        if (status == HF_ERR_AGAIN) {
            wait_until(w, deadline);
        }
        from += done;
        len -= done;
    }
}

static void put_message(world *w, hf_str message)
{
    unsigned char head[4];
    for (size_t i = 0; i < sizeof head; i++) {
        head[i] = (unsigned char)(message.len >> (8 * i));
    }
    put(w, head, sizeof head);
    put(w, message.data, message.len);
}

static void act(world *w, const hf_pb_raw *field)
{
    switch (field->number) {
    case SEND:
        put(w, field->bytes.data, field->bytes.len);
        break;
    case SEND_MESSAGE:
        put_message(w, field->bytes);
        break;
    case READ:
        (void)take(w, field->value % 100000, hf_seconds(1));
        break;
    case SLEEP: {
        hf_instant end = in(w, hf_nanoseconds((int64_t)(field->value % 30000000000)));
        while (w->env->ops->now(w->env).ns < end.ns) {
            wait_until(w, end);
        }
        break;
    }
    case HANG_UP:
        if ((w->bits & AS_OWNER) == 0) {
            hang_up(w);
            connect_to(w);
        }
        break;
    default:
        break;
    }
}

static void act_all(world *w, hf_str input)
{
    hf_pb_raw field;
    for (int steps = 0; steps < STEPS_MAX && input.len > 0 && hf_pb_next(&input, &field); steps++) {
        act(w, &field);
    }
}

/* ---- A tool ------------------------------------------------------------------------------------------------------------ */

/* Messages that have come whole: all are answers, and the last one says that it is. Gives how many there were. */
static size_t check_answers(world *w, bool is_ended, hf_status *ret_status)
{
    size_t count = 0;
    bool is_last = false;
    hf_str rest = hf_str_of_len(w->got.data, w->got.len);
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(w->env));
    while (rest.len >= 4) {
        const unsigned char *head = (const unsigned char *)rest.data;
        size_t len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        if (len > rest.len - 4) {
            break;
        }
        hf_op op;
        hf_op_init(&op);
        hf_pb_admin_response response;
        FUZZ_CHECK(!is_last, "an answer behind the last");
        hf_status status =
            hf_pb_decode(&op, &hf_pb_admin_response_type, hf_str_of_len(rest.data + 4, len), &arena, &response);
        FUZZ_CHECK(status == HF_OK, "an answer that is none: %s", op.message);
        FUZZ_CHECK(response.status == HF_OK || (response.last && response.message.len > 0),
                   "a failure without a sentence");
        is_last = response.last;
        *ret_status = (hf_status)response.status;
        count++;
        rest = hf_str_of_len(rest.data + 4 + len, rest.len - 4 - len);
    }
    hf_arena_deinit(&arena);
    FUZZ_CHECK(!is_ended || (is_last && rest.len == 0), "%zu answers and %zu bytes, and no last one", count, rest.len);
    return count;
}

/* The owner gives up who says nothing for ten seconds: by then everything is answered. */
static void be_a_tool(world *w, hf_str input)
{
    hf_status status = HF_OK;
    connect_to(w);
    if ((w->bits & AS_CALLER) != 0) {
        static const char CALLS[] = "\x0a\x05"
                                    "calls\x12\x01"
                                    "1";
        put_message(w, hf_str_of_len(CALLS, sizeof CALLS - 1));
    }
    act_all(w, input);
    if ((w->bits & AS_CALLER) != 0) { /* its polls may wait: the connection need not have an end */
        (void)take(w, UINT64_MAX, hf_seconds(2));
        hang_up(w);
    }
    bool is_reliable = (w->bits & FAULT_RESET) == 0;
    taken end = w->fd >= 0 ? take(w, UINT64_MAX, hf_seconds(30)) : CLOSED;
    FUZZ_CHECK(end != OPEN || w->fd < 0, "the connection is still open");
    if (w->fd >= 0) { /* one that has more to say than a request is hung up on */
        (void)check_answers(w, end == CLOSED && is_reliable, &status);
    }
    hang_up(w);
    if (!is_reliable) {
        return;
    }
    static const char STATS[] = "\x0a\x05stats";
    connect_to(w);
    FUZZ_CHECK(w->fd >= 0, "nobody listens any more");
    w->sent = 0;
    put_message(w, hf_str_of_len(STATS, sizeof STATS - 1));
    (void)take(w, UINT64_MAX, hf_seconds(30));
    FUZZ_CHECK(check_answers(w, true, &status) == 2 && status == HF_OK, "an honest tool is not answered: status %d",
               (int)status);
    hang_up(w);
}

/* ---- An owner ---------------------------------------------------------------------------------------------------------- */

static void on_chunk(void *state, hf_str kind, hf_str chunk)
{
    uint64_t *sum = state;
    for (size_t i = 0; i < kind.len; i++) {
        *sum += (unsigned char)kind.data[i];
    }
    for (size_t i = 0; i < chunk.len; i++) {
        *sum += (unsigned char)chunk.data[i];
    }
}

static void ask(void *arg)
{
    world *w = arg;
    static const char *const ARGS[] = {"default", "one"};
    hf_op op;
    hf_op_init(&op);
    uint64_t sum = 0;
    hf_status status = hf_admin_ask(&op, w->env, PATH, "show", ARGS, HF_COUNT_OF(ARGS), on_chunk, &sum);
    FUZZ_CHECK(status == HF_OK || (op.message[0] != '\0' && op.status == status), "a failure without a sentence");
    FUZZ_CHECK(hf_status_name(status) != NULL, "status %d has no name", (int)status);
}

static void be_an_owner(world *w, hf_str input)
{
    hf_op op;
    hf_op_init(&op);
    int listener = -1;
    char bound[HF_ADDRESS_LEN_MAX];
    char peer[HF_ADDRESS_LEN_MAX];
    hf_thread *thread = NULL;
    FUZZ_CHECK(w->env->ops->listen(w->env, &op, ADDRESS, 4, true, &listener, bound) == HF_OK, "%s", op.message);
    FUZZ_CHECK(w->env->ops->poller_set(w->env, &op, w->poller, listener, HF_READABLE, true, w) == HF_OK, "%s",
               op.message);
    FUZZ_CHECK(w->env->ops->thread_start(w->env, &op, "tool", STACK_LEN, ask, w, &thread) == HF_OK, "%s", op.message);
    hf_instant deadline = in(w, hf_seconds(5));
    while (w->fd < 0 && w->env->ops->now(w->env).ns < deadline.ns) {
        if (w->env->ops->accept(w->env, &op, listener, &w->fd, peer) != HF_OK) {
            w->fd = -1;
            wait_until(w, deadline);
        }
    }
    if (w->fd >= 0) {
        watch(w);
        act_all(w, input);
    }
    hang_up(w);
    w->env->ops->close(w->env, listener);
    w->env->ops->thread_join(w->env, thread);
}

bool fuzz_is_message(const uint8_t *data, size_t size, size_t *ret_head)
{
    (void)data;
    *ret_head = 0;
    return size > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_str input = hf_str_of_len(data, size);
    hf_str rest = input;
    uint64_t bits = 0;
    uint64_t seed = 1;
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        bits = field.number == BITS ? field.value : bits;
        seed = field.number == SEED ? field.value : seed;
    }
    world w;
    open_world(&w, bits, seed);
    if ((bits & AS_OWNER) != 0) {
        be_an_owner(&w, input);
    } else {
        be_a_tool(&w, input);
    }
    close_world(&w);
    return 0;
}
