/* Two programs, one file: `owner:`, share=yes, and what the owner's socket makes of bytes that nobody meant. */
/* labels: threads */
#include "unit/open/place.h"

#include "base/base.h"
#include "open/share.h"
#include "service/call.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static void address_of(const place *p, const char *scheme, const char *keys, char text[200])
{
    (void)snprintf(text, 200, "%s%s%s", scheme, p->path, keys);
}

/* ---- Workflows ----------------------------------------------------------------------------------------------------------- */

static atomic_int charged;
static atomic_int attempt_last;
static atomic_bool holds; /* the first attempt of `hold` does not end */

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    atomic_fetch_add(&charged, 1);
    return hf_payload_printf(ret_out, "7");
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    hf_payload word = hf_payload_none();
    HF_TRY(hf_signal_wait("go", &word));
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_hours(1));
}

static hf_status hold(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    atomic_store(&attempt_last, (int)hf_activity_info()->attempt);
    if (hf_activity_info()->attempt == 1) {
        atomic_store(&holds, true);
        return hf_sleep(hf_hours(1));
    }
    return hf_payload_printf(ret_out, "8");
}

static hf_status keeper(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hold", in, ret_out, .start_to_close = hf_hours(1));
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "%.*s", (int)in.len, (const char *)in.data);
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "echo", echo));
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_workflow(worker, "keeper", keeper));
    HF_TRY(hf_worker_add_activity(worker, "charge", charge));
    return hf_worker_add_activity(worker, "hold", hold, .on_fiber = true);
}

/* ---- Client and worker through the owner ------------------------------------------------------------------------------------ */

typedef struct stage {
    const place *place;
    const char *owner; /* address of the first, and ... */
    const char *other; /* ... of the second service */
    hf_service *first;
    hf_service *second;
    hf_worker *worker;
    hf_status (*client)(void *stage); /* NULL = ask_all */
} stage;

static hf_status ask_all(void *arg)
{
    stage *s = arg;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(s->second, "order", hf_payload_of_json("1"), &run, .id = "o", .task_queue = "q"));
    HF_CHECK(hf_start(s->second, "order", hf_payload_none(), NULL, .id = "o", .task_queue = "q") == HF_ERR_EXISTS);
    HF_CHECK(hf_result(run, NULL, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    hf_description *description = NULL;
    HF_TRY(hf_describe(run, &description));
    HF_CHECK(description->status == HF_WORKFLOW_RUNNING);
    hf_description_free(description);
    HF_TRY(hf_signal(run, "go", hf_payload_none()));
    HF_TRY(hf_result(run, &out));
    HF_CHECK(out.len == 1 && memcmp(out.data, "7", 1) == 0);
    hf_counts counts = {0};
    HF_TRY(hf_count(s->second, &counts));
    HF_CHECK(counts.total == 1);
    return hf_worker_stop(s->worker);
}

static hf_status play(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_open(s->owner, &s->first));
    HF_TRY(hf_open(s->other, &s->second));
    HF_TRY(hf_worker_new(s->second, "q", &s->worker));
    HF_TRY(add_all(s->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, s->client != NULL ? s->client : ask_all, s));
        HF_TRY(hf_worker_run(s->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(s->worker));
    HF_TRY(hf_close(s->second));
    return hf_close(s->first);
}

static void a_client_and_a_worker_work_through_the_owner(void **state)
{
    char other[200];
    address_of(*state, "owner:", "", other);
    stage s = {.place = *state, .owner = ((const place *)*state)->address, .other = other};
    atomic_store(&charged, 0);
    assert_int_equal(hf_run(play, &s, .threads = 2), HF_OK);
    assert_int_equal(atomic_load(&charged), 1);
}

enum { LARGE_LEN = 1 << 20 };

static hf_status ask_large(void *arg)
{
    static char text[LARGE_LEN + 1];
    stage *s = arg;
    memset(text, '1', LARGE_LEN);
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(s->second, "echo", hf_payload_of_json(text), &run, .id = "e", .task_queue = "q"));
    HF_TRY(hf_result(run, &out));
    HF_CHECK(out.len == LARGE_LEN && memcmp(out.data, text, LARGE_LEN) == 0);
    return hf_worker_stop(s->worker);
}

/* A socket takes some 200 KiB at once: both sides wait for room, several times. */
static void messages_may_be_larger_than_what_a_socket_takes(void **state)
{
    char other[200];
    address_of(*state, "owner:", "", other);
    stage s = {.place = *state, .owner = ((const place *)*state)->address, .other = other, .client = ask_large};
    assert_int_equal(hf_run(play, &s, .threads = 2), HF_OK);
}

static void both_may_share(void **state)
{
    char shared[200];
    address_of(*state, "sqlite:", "?share=yes", shared);
    stage s = {.place = *state, .owner = shared, .other = shared};
    assert_int_equal(hf_run(play, &s, .threads = 2), HF_OK);
}

static void nobody_has_the_file(void **state)
{
    char other[200];
    hf_service *service = NULL;
    address_of(*state, "owner:", "", other);
    assert_int_equal(hf_open(other, &service), HF_ERR_NOT_FOUND);
    assert_non_null(strstr(hf_error_text(), "no program has"));
    assert_int_equal(place_count(*state), 0);
}

/* ---- The owner closes, and another takes over ---------------------------------------------------------------------------------- */

/* open-S2, open-S3 */
static void the_next_one_takes_over(void **state)
{
    char shared[200];
    char asks[200];
    hf_service *services[4] = {NULL};
    hf_execution *run = NULL;
    address_of(*state, "sqlite:", "?share=yes", shared);
    address_of(*state, "owner:", "", asks);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_open(shared, &services[i]), HF_OK);
    }
    assert_int_equal(hf_open(asks, &services[3]), HF_OK);
    for (int owner = 0; owner < 3; owner++) { /* the last one is alone in the end */
        char id[16];
        (void)snprintf(id, sizeof id, "o%d", owner);
        assert_int_equal(hf_start(services[3], "order", hf_payload_none(), &run, .id = id, .task_queue = "q"), HF_OK);
        hf_execution_free(run);
        for (int i = owner; i < 3; i++) {
            hf_counts counts = {0};
            assert_int_equal(hf_count(services[i], &counts), HF_OK);
            assert_int_equal(counts.total, owner + 1);
        }
        if (owner < 2) {
            assert_int_equal(hf_close(services[owner]), HF_OK);
        }
    }
    assert_int_equal(hf_close(services[3]), HF_OK);
    assert_int_equal(hf_close(services[2]), HF_OK);
    assert_int_equal(place_count(*state), 1);
}

/* ---- A process is lost --------------------------------------------------------------------------------------------------------- */

/* The second process: a worker until it is killed. */
static hf_status work(void *arg)
{
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open(arg, &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(add_all(worker));
    return hf_worker_run(worker);
}

static hf_status await_second(void *arg)
{
    stage *s = arg;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_execution_new(s->first, "k", &run));
    HF_TRY(hf_result(run, &out));
    HF_CHECK(out.len == 1 && memcmp(out.data, "8", 1) == 0);
    return hf_worker_stop(s->worker);
}

/* The owner works, too, once the other is gone. */
static hf_status go_on(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_worker_new(s->first, "q", &s->worker));
    HF_TRY(add_all(s->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, await_second, s));
        HF_TRY(hf_worker_run(s->worker));
        HF_TRY(hf_join(scope));
    }
    return hf_worker_free(s->worker);
}

/* open-H2. All timeouts are an hour: what the killed process had in hand goes out again at once, the activity as its second attempt. */
static void tasks_of_a_killed_process_go_out_again(void **state)
{
    char other[200];
    int ready[2];
    char byte = 0;
    stage s = {.place = *state};
    hf_execution *run = NULL;
    address_of(*state, "owner:", "", other);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork(); /* before this process has threads of the library */
    if (child == 0) {
        (void)!read(ready[0], &byte, 1); /* the owner is there */
        _exit(hf_run(work, other, .threads = 1) == HF_OK ? 0 : 1);
    }
    assert_int_equal(hf_open(s.place->address, &s.first), HF_OK);
    assert_int_equal(
        hf_start(s.first, "keeper", hf_payload_none(), &run, .id = "k", .task_queue = "q", .task_timeout = hf_hours(1)),
        HF_OK);
    assert_int_equal(write(ready[1], &byte, 1), 1);
    bool is_held = false;
    while (!is_held) { /* until the activity is in its hand */
        hf_description *description = NULL;
        assert_int_equal(hf_describe(run, &description), HF_OK);
        is_held = description->activity_count == 1 && description->activities[0].state == HF_PENDING_STARTED;
        hf_description_free(description);
        (void)sched_yield();
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(hf_run(go_on, &s, .threads = 1), HF_OK);
    assert_int_equal(atomic_load(&attempt_last), 2);
    hf_execution_free(run);
    assert_int_equal(hf_close(s.first), HF_OK);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* ---- Bytes that nobody meant ------------------------------------------------------------------------------------------------------ */

static int connect_raw(const place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s-sock", p->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Whether the other side still takes it. */
static bool try_frame(int fd, const hf_pb_type *type, const void *msg)
{
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_buf_put(&out, "\0\0\0", 4);
    hf_pb_encode(type, msg, &out);
    for (size_t i = 0; i < 4; i++) {
        out.data[i] = (char)((out.len - 4) >> (8 * i));
    }
    bool is_sent = send(fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
    hf_buf_deinit(&out);
    return is_sent;
}

static void send_frame(int fd, const hf_pb_type *type, const void *msg)
{
    assert_true(try_frame(fd, type, msg));
}

/* Reads a frame into the buffer; false: the connection has ended. */
static bool read_frame(int fd, char *bytes, size_t room, size_t *ret_len)
{
    unsigned char head[4];
    if (recv(fd, head, 4, MSG_WAITALL) != 4) {
        return false;
    }
    *ret_len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    assert_true(*ret_len <= room);
    return recv(fd, bytes, *ret_len, MSG_WAITALL) == (ssize_t)*ret_len;
}

static int say_calls(const place *p)
{
    char bytes[4096];
    size_t len = 0;
    int fd = connect_raw(p);
    hf_str version = HF_STR("1");
    hf_pb_admin_request hello = {.verb = HF_STR("calls"), .args = {&version, 1}};
    send_frame(fd, &hf_pb_admin_request_type, &hello);
    assert_true(read_frame(fd, bytes, sizeof bytes, &len));
    return fd;
}

/* open-H1 */
static void nonsense_closes_its_own_connection(void **state)
{
    char other[200];
    char bytes[4096];
    size_t len = 0;
    hf_service *owner = NULL;
    hf_service *good = NULL;
    hf_counts counts = {0};
    const place *p = *state;
    address_of(p, "owner:", "", other);
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    assert_int_equal(hf_open(other, &good), HF_OK);
    hf_rng rng = {7};
    for (int i = 0; i < 200; i++) {
        bool is_welcome = i % 2 == 0;
        int fd = is_welcome ? say_calls(p) : connect_raw(p);
        char junk[64];
        uint64_t length = hf_rng_below(&rng, sizeof junk);
        for (size_t k = 0; k < sizeof junk; k++) {
            junk[k] = (char)hf_rng_next(&rng);
        }
        if (i % 3 == 0) { /* a head that fits, then noise */
            memset(junk, 0, 4);
            junk[0] = (char)length;
        }
        (void)!send(fd, junk, sizeof junk, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        while (read_frame(fd, bytes, sizeof bytes, &len)) {
        }
        (void)close(fd);
    }
    int fd = say_calls(p); /* a message of 4 GiB */
    assert_int_equal(send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
    assert_false(read_frame(fd, bytes, sizeof bytes, &len));
    (void)close(fd);
    fd = connect_raw(p); /* another version */
    hf_str version = HF_STR("99");
    hf_pb_admin_request hello = {.verb = HF_STR("calls"), .args = {&version, 1}};
    send_frame(fd, &hf_pb_admin_request_type, &hello);
    assert_true(read_frame(fd, bytes, sizeof bytes - 1, &len));
    bytes[len] = '\0';
    assert_non_null(memmem(bytes, len, "another version", 15));
    assert_false(read_frame(fd, bytes, sizeof bytes, &len));
    (void)close(fd);
    assert_int_equal(hf_count(good, &counts), HF_OK); /* nobody else has noticed */
    assert_int_equal(hf_close(good), HF_OK);
    assert_int_equal(hf_close(owner), HF_OK);
}

/* open-H1. The socket can be reached by another user here, whom the kernel names; root may ask everybody's programs, so only root can play it. */
static void another_user_is_not_served(void **state)
{
    enum { NOBODY = 65534 };
    char path[200];
    char bytes[4096];
    size_t len = 0;
    hf_service *owner = NULL;
    hf_str version = HF_STR("1");
    hf_pb_admin_request hello = {.verb = HF_STR("calls"), .args = {&version, 1}};
    const place *p = *state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    (void)snprintf(path, sizeof path, "%s-sock", p->path);
    assert_int_equal(chmod(p->folder, 0711), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(syscall(SYS_setresuid, -1, NOBODY, -1), 0); /* this thread only */
    int fd = connect_raw(p);
    assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
    (void)try_frame(fd, &hf_pb_admin_request_type, &hello);
    assert_false(read_frame(fd, bytes, sizeof bytes, &len));
    (void)close(fd);
    (void)close(say_calls(p)); /* this user is */
    assert_int_equal(hf_close(owner), HF_OK);
}

/* open-H3. 4,096 polls wait at the owner without a thread of their own; the next call is refused with a sentence. */
static void calls_are_bounded(void **state)
{
    static char bytes[1 << 16];
    size_t len = 0;
    hf_service *owner = NULL;
    const place *p = *state;
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    int fd = say_calls(p);
    hf_pb_task_queue queue = {.name = HF_STR("nobody")};
    hf_pb_poll_activity_task_queue_request poll = {.namespace = HF_STR("default"), .task_queue = &queue};
    hf_buf request;
    hf_buf_init(&request, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_poll_activity_task_queue_request_type, &poll, &request);
    hf_pb_owner_call call = {.method = HF_STR("PollActivityTaskQueue"), .request = {request.data, request.len}};
    for (uint64_t i = 1; i <= HF_SHARE_CALLS_MAX + 1; i++) {
        call.number = i;
        send_frame(fd, &hf_pb_owner_call_type, &call);
    }
    assert_true(read_frame(fd, bytes, sizeof bytes, &len));
    hf_op op;
    hf_arena arena;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_owner_answer answer = {0};
    assert_int_equal(hf_pb_decode(&op, &hf_pb_owner_answer_type, hf_str_of_len(bytes, len), &arena, &answer), HF_OK);
    assert_int_equal(answer.number, HF_SHARE_CALLS_MAX + 1);
    assert_int_equal(answer.status, HF_ERR_LIMIT);
    hf_pb_owner_call gone = {.number = 17}; /* a cancel is answered */
    send_frame(fd, &hf_pb_owner_call_type, &gone);
    assert_true(read_frame(fd, bytes, sizeof bytes, &len));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_owner_answer_type, hf_str_of_len(bytes, len), &arena, &answer), HF_OK);
    assert_int_equal(answer.number, 17);
    assert_int_equal(answer.status, HF_ERR_CANCELED);
    call = (hf_pb_owner_call){.number = 9999, .method = HF_STR("Dance")};
    send_frame(fd, &hf_pb_owner_call_type, &call);
    assert_true(read_frame(fd, bytes, sizeof bytes, &len));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_owner_answer_type, hf_str_of_len(bytes, len), &arena, &answer), HF_OK);
    assert_int_equal(answer.status, HF_ERR_UNSUPPORTED);
    hf_arena_deinit(&arena);
    hf_buf_deinit(&request);
    assert_int_equal(hf_close(owner), HF_OK); /* ends all of them */
    (void)close(fd);
}

static void connections_are_bounded(void **state)
{
    static char bytes[4096];
    size_t len = 0;
    int fds[HF_SHARE_CONNECTIONS_MAX];
    hf_service *owner = NULL;
    hf_service *more = NULL;
    char other[200];
    const place *p = *state;
    address_of(p, "owner:", "", other);
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    for (int i = 0; i < HF_SHARE_CONNECTIONS_MAX; i++) {
        fds[i] = say_calls(p);
    }
    int silent = connect_raw(p); /* all have said something: refused */
    assert_true(read_frame(silent, bytes, sizeof bytes, &len));
    assert_non_null(memmem(bytes, len, "as many connections", 19));
    (void)close(silent);
    assert_int_equal(hf_open(other, &more), HF_ERR_LIMIT);
    (void)close(fds[0]);
    while (hf_open(other, &more) == HF_ERR_LIMIT) { /* the owner notices in a moment */
        (void)sched_yield();
    }
    assert_int_equal(hf_close(more), HF_OK);
    for (int i = 1; i < HF_SHARE_CONNECTIONS_MAX; i++) {
        (void)close(fds[i]);
    }
    assert_int_equal(hf_close(owner), HF_OK);
}

/* ---- A call that is given up ------------------------------------------------------------------------------------------------------- */

static void send_poll(int fd, uint64_t number)
{
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_poll_workflow_task_queue_request poll = {.namespace = HF_STR("default"), .task_queue = &queue};
    hf_buf request;
    hf_buf_init(&request, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_pb_encode(&hf_pb_poll_workflow_task_queue_request_type, &poll, &request);
    hf_pb_owner_call call = {.number = number,
                             .method = HF_STR("PollWorkflowTaskQueue"),
                             .timeout_ns =
                                 hf_seconds(5).ns, /* without a task it is answered empty, and the test fails */
                             .request = {request.data, request.len}};
    send_frame(fd, &hf_pb_owner_call_type, &call);
    hf_buf_deinit(&request);
}

static void read_task(int fd, uint64_t number)
{
    static char bytes[1 << 16];
    size_t len = 0;
    hf_op op;
    hf_arena arena;
    hf_pb_owner_answer answer = {0};
    hf_pb_poll_workflow_task_queue_response task = {0};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    assert_true(read_frame(fd, bytes, sizeof bytes, &len));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_owner_answer_type, hf_str_of_len(bytes, len), &arena, &answer), HF_OK);
    assert_int_equal(answer.number, number);
    assert_int_equal(answer.status, HF_OK);
    assert_int_equal(hf_pb_decode(&op, &hf_pb_poll_workflow_task_queue_response_type, answer.response, &arena, &task),
                     HF_OK);
    assert_true(task.task_token.len > 0);
    hf_arena_deinit(&arena);
}

/* open-H2. The answer of a poll and the word that nobody waits for it meet on the way: the next poll gets the same task, although its
 * timeout is an hour and its connection lives. */
static void a_task_of_a_poll_that_was_given_up_goes_to_the_next(void **state)
{
    hf_service *owner = NULL;
    const place *p = *state;
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    assert_int_equal(
        hf_start(owner, "order", hf_payload_none(), NULL, .id = "k", .task_queue = "q", .task_timeout = hf_hours(1)),
        HF_OK);
    int fd = say_calls(p);
    send_poll(fd, 1);
    read_task(fd, 1);
    hf_pb_owner_call given_up = {.number = 1, .gives_up = true};
    send_frame(fd, &hf_pb_owner_call_type, &given_up);
    send_poll(fd, 2);
    read_task(fd, 2);
    (void)close(fd);
    assert_int_equal(hf_close(owner), HF_OK);
}

/* ---- Ends that are none of a task's fault ------------------------------------------------------------------------------------------- */

/* How often a process ended with the workflow task of `k` in hand. */
static uint32_t crashes_of(hf_service *service)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("k")};
    hf_pb_describe_workflow_execution_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    assert_int_equal(hf_service_ask(&op, service, &call), HF_OK);
    const hf_pb_describe_workflow_execution_response *response = call.response;
    assert_non_null(response->pending_workflow_task);
    uint32_t crashes = response->pending_workflow_task->holdfast_crashes;
    hf_arena_deinit(&arena);
    return crashes;
}

/* engine-U1. Neither the owner crashed nor the process that had the task. */
static void a_clean_end_of_the_owner_is_not_counted(void **state)
{
    const place *p = *state;
    hf_service *owner = NULL;
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    assert_int_equal(
        hf_start(owner, "order", hf_payload_none(), NULL, .id = "k", .task_queue = "q", .task_timeout = hf_hours(1)),
        HF_OK);
    for (int i = 0; i < 3; i++) {
        int fd = say_calls(p);
        send_poll(fd, 1);
        read_task(fd, 1);
        assert_int_equal(hf_close(owner), HF_OK);
        (void)close(fd);
        assert_int_equal(hf_open(p->address, &owner), HF_OK);
    }
    assert_int_equal(crashes_of(owner), 0);
    assert_int_equal(hf_close(owner), HF_OK);
}

/* The same for a process that closes its service, as one whose worker was left behind, and for one that does not. */
static void a_connection_that_is_closed_is_not_counted(void **state)
{
    const place *p = *state;
    hf_service *owner = NULL;
    assert_int_equal(hf_open(p->address, &owner), HF_OK);
    assert_int_equal(
        hf_start(owner, "order", hf_payload_none(), NULL, .id = "k", .task_queue = "q", .task_timeout = hf_hours(1)),
        HF_OK);
    for (int i = 0; i < 3; i++) {
        int fd = say_calls(p);
        send_poll(fd, 1);
        read_task(fd, 1); /* at once: it is no suspect */
        hf_pb_owner_call goodbye = {.closes = true};
        send_frame(fd, &hf_pb_owner_call_type, &goodbye);
        (void)close(fd);
    }
    int fd = say_calls(p);
    send_poll(fd, 1);
    read_task(fd, 1);
    assert_int_equal(crashes_of(owner), 0);
    (void)close(fd);
    fd = say_calls(p);
    send_poll(fd, 1);
    read_task(fd, 1);
    assert_int_equal(crashes_of(owner), 1);
    (void)close(fd);
    assert_int_equal(hf_close(owner), HF_OK);
}

typedef struct fake_owner {
    int listener;
    int asked;
    int given_up;
    int closed;
} fake_owner;

/* Welcomes one connection and never answers it. */
static void *never_answer(void *arg)
{
    fake_owner *fake = arg;
    char bytes[4096];
    size_t len = 0;
    hf_op op;
    hf_arena arena;
    hf_pb_admin_response yes = {.kind = HF_STR("calls"), .chunk = HF_STR("1")};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    int fd = accept(fake->listener, NULL, NULL);
    if (HF_CHECK(fd >= 0) && HF_CHECK(read_frame(fd, bytes, sizeof bytes, &len))) {
        send_frame(fd, &hf_pb_admin_response_type, &yes);
    }
    while (read_frame(fd, bytes, sizeof bytes, &len)) {
        hf_pb_owner_call call = {0};
        HF_CHECK(hf_pb_decode(&op, &hf_pb_owner_call_type, hf_str_of_len(bytes, len), &arena, &call) == HF_OK);
        fake->asked += call.method.len > 0 ? 1 : 0;
        fake->given_up += call.gives_up ? 1 : 0;
        fake->closed += call.closes ? 1 : 0;
    }
    hf_arena_deinit(&arena);
    (void)close(fd);
    return NULL;
}

/* The other side of it: whoever stops waiting for an owner that does not answer says so. */
static void an_owner_that_is_too_slow_is_told(void **state)
{
    const place *p = *state;
    char other[200];
    pthread_t thread;
    hf_service *service = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    fake_owner fake = {.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s-sock", p->path);
    address_of(p, "owner:", "", other);
    assert_int_equal(bind(fake.listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fake.listener, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, never_answer, &fake), 0);
    assert_int_equal(hf_open(other, &service), HF_OK);
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    call.timeout = hf_milliseconds(1);
    assert_int_equal(hf_service_ask(&op, service, &call), HF_ERR_TIMEOUT);
    hf_arena_deinit(&arena);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(fake.asked > 0);
    assert_int_equal(fake.given_up, fake.asked);
    assert_int_equal(fake.closed, 1);
    (void)close(fake.listener);
    (void)unlink(address.sun_path);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test_setup_teardown(tasks_of_a_killed_process_go_out_again, place_open,
                                    place_close), /* first: it forks */
    cmocka_unit_test_setup_teardown(a_client_and_a_worker_work_through_the_owner, place_open, place_close),
    cmocka_unit_test_setup_teardown(messages_may_be_larger_than_what_a_socket_takes, place_open, place_close),
    cmocka_unit_test_setup_teardown(both_may_share, place_open, place_close),
    cmocka_unit_test_setup_teardown(nobody_has_the_file, place_open, place_close),
    cmocka_unit_test_setup_teardown(the_next_one_takes_over, place_open, place_close),
    cmocka_unit_test_setup_teardown(nonsense_closes_its_own_connection, place_open, place_close),
    cmocka_unit_test_setup_teardown(another_user_is_not_served, place_open, place_close),
    cmocka_unit_test_setup_teardown(calls_are_bounded, place_open, place_close),
    cmocka_unit_test_setup_teardown(connections_are_bounded, place_open, place_close),
    cmocka_unit_test_setup_teardown(a_task_of_a_poll_that_was_given_up_goes_to_the_next, place_open, place_close),
    cmocka_unit_test_setup_teardown(a_clean_end_of_the_owner_is_not_counted, place_open, place_close),
    cmocka_unit_test_setup_teardown(a_connection_that_is_closed_is_not_counted, place_open, place_close),
    cmocka_unit_test_setup_teardown(an_owner_that_is_too_slow_is_told, place_open, place_close),
};

int main(int argc, char **argv)
{
    return hf_test_main("share", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
