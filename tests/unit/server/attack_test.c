/* Peers that misbehave slowly, against the whole door on a simulated network and virtual time: what they can hold is bounded, they are cut,
 * and an honest client is served all the while. Peers that misbehave fast are in tests/unit/wire/http2_test.c. */
#include "support/h2_client.h"
#include "support/support.h"

#include "server/door.h"
#include "service/grpc_code.h"

#include <holdfast/service.h>

#define SECOND_NS INT64_C(1000000000)

typedef struct attack_rig {
    void (*one)(struct attack_rig *rig);
    hf_env *env;
    hf_door *door;
    char address[HF_ADDRESS_LEN_MAX];
    h2_client honest;
} attack_rig;

static int streams_max; /* of the next case; 0 = as usual */

static void be_served(attack_rig *rig)
{
    hf_pb_get_system_info_request request = {0};
    HF_CHECK(h2_ask(&rig->honest, HF_METHOD_GET_SYSTEM_INFO, &request, NULL, NULL) == HF_GRPC_OK);
}

static hf_status rig_body(void *arg)
{
    attack_rig *rig = arg;
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_door_options options = {.streams_max = streams_max};
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_door_open(&op, service, &options, &rig->door));
    HF_TRY(hf_door_listen(&op, rig->door, "tcp:127.0.0.1:0", rig->address));
    HF_TRY(h2_open(&rig->honest, rig->address, hf_env_memory(rig->env)));
    be_served(rig);
    rig->one(rig);
    h2_close(&rig->honest);
    hf_door_stop(rig->door);
    return hf_close(service);
}

static void run_rig(void (*one)(attack_rig *rig))
{
    attack_rig rig = {.one = one};
    rig.env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(rig.env, 2);
    assert_int_equal(hf_run_with(rig_body, &rig, &options), HF_OK);
    hf_sim_end(rig.env, NULL);
}

static hf_door_stats stats_of(const attack_rig *rig)
{
    hf_door_stats stats;
    hf_door_stats_get(rig->door, &stats);
    return stats;
}

/* ---- Frames --------------------------------------------------------------------------------------------------------------- */

enum { DATA = 0, HEADERS = 1, SETTINGS = 4 };

static void put_frame(hf_buf *out, int type, int flags, uint32_t id, const void *payload, size_t len)
{
    unsigned char head[9] = {(unsigned char)(len >> 16), (unsigned char)(len >> 8), (unsigned char)len,
                             (unsigned char)type,        (unsigned char)flags,      (unsigned char)(id >> 24),
                             (unsigned char)(id >> 16),  (unsigned char)(id >> 8),  (unsigned char)id};
    hf_buf_put(out, head, sizeof head);
    hf_buf_put(out, payload, len);
}

static void put_preface(hf_buf *out, const void *settings, size_t len)
{
    hf_buf_puts(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(out, SETTINGS, 0, 0, settings, len);
}

/* A call of GetSystemInfo: nothing of it goes into a table. */
static void put_call(hf_buf *out, uint32_t id)
{
    static const char PATH[] = "/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo";
    static const char TYPE[] = "application/grpc";
    char block[200] = "\x83\x86\x01\x01" /* :method POST, :scheme http, :authority a */
                      "a\x04";
    size_t len = 6;
    block[len++] = (char)(sizeof PATH - 1);
    memcpy(block + len, PATH, sizeof PATH - 1);
    len += sizeof PATH - 1;
    memcpy(block + len, "\x0f\x10", 2); /* content-type */
    len += 2;
    block[len++] = (char)(sizeof TYPE - 1);
    memcpy(block + len, TYPE, sizeof TYPE - 1);
    len += sizeof TYPE - 1;
    put_frame(out, HEADERS, 4, id, block, len);
    put_frame(out, DATA, 1, id, "\0\0\0\0\0", 5);
}

/* Reads until the server has ended the connection. Returns how long it has taken. */
static int64_t read_to_the_end(hf_conn *conn)
{
    char bytes[4096];
    size_t len = 1;
    int64_t began = hf_now(NULL).ns;
    while (len > 0 && hf_conn_read(conn, bytes, sizeof bytes, &len) == HF_OK) {
    }
    return hf_now(NULL).ns - began;
}

/* ---- Attacks -------------------------------------------------------------------------------------------------------------- */

/* It asks and asks, and has no room for any answer, or for a byte now and then. */
static void leave_no_room_for(attack_rig *rig, bool has_a_byte)
{
    enum { CALLS = 2000 };
    hf_conn *conn = NULL;
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(rig->env), SIZE_MAX / 2);
    put_preface(&bytes, "\0\4\0\0\0\0", 6); /* SETTINGS_INITIAL_WINDOW_SIZE 0 */
    for (uint32_t i = 0; i < CALLS; i++) {
        put_call(&bytes, 2 * i + 1);
    }
    HF_CHECK(hf_conn_open(rig->address, &conn) == HF_OK);
    HF_CHECK(hf_conn_write(conn, bytes.data, bytes.len) == HF_OK);
    for (int i = 0; i < 30; i++) {
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK);
        HF_CHECK(!has_a_byte || hf_conn_write(conn, "\0\0\4\x08\0\0\0\0\1\0\0\0\1", 13) == HF_OK); /* WINDOW_UPDATE */
    }
    be_served(rig);
    HF_CHECK_SAY(stats_of(rig).streams == CALLS, "%llu", (unsigned long long)stats_of(rig).streams);
    int64_t took = read_to_the_end(conn);
    HF_CHECK_SAY(took > 10 * SECOND_NS && took < 62 * SECOND_NS, "cut after %lld ns", (long long)took);
    HF_CHECK(stats_of(rig).cut == 1 && stats_of(rig).streams == 0);
    be_served(rig);
    HF_CHECK(hf_conn_close(conn) == HF_OK);
    hf_buf_deinit(&bytes);
}

static void leave_no_room(attack_rig *rig)
{
    leave_no_room_for(rig, false);
}

static void leave_little_room(attack_rig *rig)
{
    leave_no_room_for(rig, true);
}

static void answers_that_nobody_takes_are_not_kept_for_ever(void **state)
{
    (void)state;
    run_rig(leave_no_room);
    run_rig(leave_little_room);
}

/* The first request comes a byte at a time, and never. */
static void dribble(attack_rig *rig)
{
    hf_conn *conn = NULL;
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(rig->env), SIZE_MAX / 2);
    put_preface(&bytes, NULL, 0);
    int64_t began = hf_now(NULL).ns;
    HF_CHECK(hf_conn_open(rig->address, &conn) == HF_OK);
    size_t sent = 0;
    while (sent < bytes.len && hf_conn_write(conn, bytes.data + sent, 1) == HF_OK) {
        sent++;
        HF_CHECK(hf_sleep(hf_seconds(2)) == HF_OK);
        be_served(rig);
    }
    HF_CHECK_SAY(sent < bytes.len, "all of it was taken");
    (void)read_to_the_end(conn);
    int64_t took = hf_now(NULL).ns - began;
    HF_CHECK_SAY(took >= 10 * SECOND_NS && took < 20 * SECOND_NS, "cut after %lld ns", (long long)took);
    HF_CHECK(hf_conn_close(conn) == HF_OK);
    hf_buf_deinit(&bytes);
}

static void a_first_request_has_ten_seconds(void **state)
{
    (void)state;
    run_rig(dribble);
}

/* A later head comes slowly: its stream ends, and the connection is as idle as any. */
static void dribble_later(attack_rig *rig)
{
    hf_conn *conn = NULL;
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(rig->env), SIZE_MAX / 2);
    put_preface(&bytes, NULL, 0);
    put_call(&bytes, 1);
    size_t whole = bytes.len;
    put_call(&bytes, 3);
    HF_CHECK(hf_conn_open(rig->address, &conn) == HF_OK);
    HF_CHECK(hf_conn_write(conn, bytes.data, whole + 9) == HF_OK); /* with the length of the second head */
    for (size_t i = 0; i < 15; i++) {
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK);
        HF_CHECK(hf_conn_write(conn, bytes.data + whole + 9 + i, 1) == HF_OK);
        be_served(rig);
    }
    HF_CHECK_SAY(stats_of(rig).streams == 0, "%llu", (unsigned long long)stats_of(rig).streams);
    HF_CHECK(hf_conn_close(conn) == HF_OK);
    hf_buf_deinit(&bytes);
}

static void every_head_has_ten_seconds(void **state)
{
    (void)state;
    run_rig(dribble_later);
}

/* Many that say nothing: those without a request are cut, those with one make room, and a client with a parked poll stays. */
static void be_many(attack_rig *rig)
{
    enum { MANY = 5000, LINKS_MAX = 2048 + 2048 / 8 + 8 };
    static hf_conn *conns[MANY];
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_poll_workflow_task_queue_request poll = {
        .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("test")};
    hf_buf bytes;
    hf_buf_init(&bytes, hf_env_memory(rig->env), SIZE_MAX / 2);
    put_preface(&bytes, NULL, 0);
    put_call(&bytes, 1);
    h2_call *parked = h2_begin_method(&rig->honest, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &poll);
    h2_flush(&rig->honest);
    uint64_t most = 0;
    for (int i = 0; i < MANY; i++) {
        HF_CHECK(hf_conn_open(rig->address, &conns[i]) == HF_OK);
        if (i % 2 == 0) {
            HF_CHECK(hf_conn_write(conns[i], bytes.data, bytes.len) == HF_OK);
        }
        uint64_t links = stats_of(rig).links;
        most = links > most ? links : most;
        if (i % 500 == 0) {
            be_served(rig);
        }
    }
    print_message("%llu connections at most\n", (unsigned long long)most);
    HF_CHECK(most > 1000 && most <= LINKS_MAX);
    be_served(rig);
    HF_CHECK(!parked->is_closed); /* it was not among those that made room */
    for (int i = 0; i < MANY; i++) {
        (void)hf_conn_close(conns[i]);
    }
    hf_h2_reset(rig->honest.h2, &parked->h2, HF_H2_CANCEL);
    h2_flush(&rig->honest);
    h2_free(parked);
    hf_buf_deinit(&bytes);
}

static void idle_connections_make_room(void **state)
{
    (void)state;
    run_rig(be_many);
}

/* Parked polls, as many as there are, and more. */
static void park_polls(attack_rig *rig)
{
    enum { POLLS = 600, MINE = 40 };
    static h2_call *calls[POLLS + MINE];
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_poll_workflow_task_queue_request poll = {
        .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("test")};
    h2_client greedy;
    HF_CHECK(h2_open(&greedy, rig->address, hf_env_memory(rig->env)) == HF_OK);
    for (int i = 0; i < POLLS; i++) {
        calls[i] = h2_begin_method(&greedy, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &poll);
    }
    h2_wait(calls[POLLS - 1]);
    int refused = 0;
    for (int i = 0; i < POLLS; i++) {
        HF_CHECK(!calls[i]->is_closed || calls[i]->code == HF_H2_REFUSED_STREAM);
        refused += calls[i]->is_closed ? 1 : 0;
    }
    HF_CHECK_SAY(refused == POLLS - streams_max, "%d refused", refused);
    for (int i = 0; i < MINE; i++) { /* another connection still has some */
        calls[POLLS + i] = h2_begin_method(&rig->honest, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &poll);
    }
    be_served(rig);
    HF_CHECK(stats_of(rig).streams == (uint64_t)(streams_max + MINE));
    for (int i = 0; i < POLLS + MINE; i++) {
        HF_CHECK(i < POLLS || !calls[i]->is_closed);
        if (!calls[i]->is_closed) {
            hf_h2_reset(calls[i]->client->h2, &calls[i]->h2, HF_H2_CANCEL);
        }
    }
    h2_flush(&greedy);
    h2_flush(&rig->honest);
    be_served(rig);
    for (int i = 0; i < POLLS + MINE; i++) {
        h2_free(calls[i]);
    }
    h2_close(&greedy);
}

static void polls_of_all_connections_are_bounded(void **state)
{
    (void)state;
    streams_max = 500;
    run_rig(park_polls);
    streams_max = 0;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(answers_that_nobody_takes_are_not_kept_for_ever),
    cmocka_unit_test(a_first_request_has_ten_seconds),
    cmocka_unit_test(every_head_has_ten_seconds),
    cmocka_unit_test(idle_connections_make_room),
    cmocka_unit_test(polls_of_all_connections_are_bounded),
};

int main(int argc, char **argv)
{
    return hf_test_main("attack", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
