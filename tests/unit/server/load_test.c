/* 10,000 parked polls on one connection, and what they cost. */
/* labels: plainonly */
#include "support/h2_client.h"
#include "support/support.h"

#include "base/env.h"
#include "server/door.h"
#include "service/grpc_code.h"

#include <malloc.h>

enum { POLLS = 9990, COST_MAX = 8 * 1024 };

/* The client's own memory, which does not count. */
static size_t client_bytes;

static void *client_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    void *ptr = hf_env_posix()->ops->allocate(hf_env_posix(), len, align);
    client_bytes += malloc_usable_size(ptr);
    return ptr;
}

static void client_release(void *state, void *ptr, size_t len)
{
    (void)state;
    client_bytes -= malloc_usable_size(ptr);
    hf_env_posix()->ops->release(hf_env_posix(), ptr, len);
}

static size_t server_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd - client_bytes;
}

static hf_status load_body(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_door *door = NULL;
    char address[HF_ADDRESS_LEN_MAX];
    h2_client client;
    hf_door_options options = {0};
    static h2_call *calls[POLLS];
    hf_pb_task_queue queue = {.name = HF_STR("a-queue-of-a-usual-name")};
    hf_pb_poll_workflow_task_queue_request poll = {
        .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("12345@a-host-of-a-usual-name")};
    hf_pb_get_system_info_request info = {0};
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_door_open(&op, service, &options, &door));
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", address));
    HF_TRY(h2_open(&client, address, (hf_allocator){client_allocate, client_release, NULL}));
    HF_CHECK(h2_ask(&client, HF_METHOD_GET_SYSTEM_INFO, &info, NULL, NULL) == HF_GRPC_OK);
    size_t before = server_bytes();
    for (int i = 0; i < POLLS; i++) {
        calls[i] = h2_begin_method(&client, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, NULL, &poll);
    }
    HF_CHECK(h2_ask(&client, HF_METHOD_GET_SYSTEM_INFO, &info, NULL, NULL) == HF_GRPC_OK); /* behind all polls */
    hf_door_stats stats;
    hf_door_stats_get(door, &stats);
    size_t each = (server_bytes() - before) / POLLS;
    print_message("%llu polls are parked, %zu bytes each, with the engine's part\n", (unsigned long long)stats.streams,
                  each);
    HF_CHECK(stats.streams == POLLS);
    HF_CHECK(each <= COST_MAX);
    h2_close(&client);
    for (int i = 0; i < POLLS; i++) {
        h2_free(calls[i]);
    }
    hf_door_stop(door);
    return hf_close(service);
}

static void parked_polls_are_cheap(void **state)
{
    (void)state;
    assert_int_equal(hf_run(load_body, NULL, .threads = 2), HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(parked_polls_are_cheap),
};

int main(int argc, char **argv)
{
    return hf_test_main("load", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
