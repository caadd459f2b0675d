/* Figures and health over HTTP/1.1, on a simulated network: what is answered to whom, peers that are slow, the order of the stop. */
#include "support/h2_client.h"
#include "support/support.h"

#include "base/env.h"
#include "server/auth.h"
#include "server/meter.h"
#include "service/grpc_code.h"

#include <holdfast/service.h>

#include <stdio.h>

#define KEY "hf_01234567_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

typedef struct meter_rig {
    hf_env *env;
    hf_meter *meter;
    char address[HF_ADDRESS_LEN_MAX];
    char door[HF_ADDRESS_LEN_MAX];
} meter_rig;

/* Sends bytes and reads to the end of the connection. */
static void talk(const meter_rig *rig, const char *request, hf_buf *answer)
{
    char bytes[1024];
    size_t len = 1;
    hf_conn *conn = NULL;
    answer->len = 0;
    HF_CHECK(hf_conn_open(rig->address, &conn) == HF_OK);
    HF_CHECK(hf_conn_write(conn, request, strlen(request)) == HF_OK);
    while (len > 0 && hf_conn_read(conn, bytes, sizeof bytes, &len) == HF_OK) {
        hf_buf_put(answer, bytes, len);
    }
    HF_CHECK(hf_conn_close(conn) == HF_OK);
}

static void expect(const meter_rig *rig, const char *request, int status, const char *words)
{
    hf_buf answer;
    hf_buf_init(&answer, hf_env_memory(rig->env), SIZE_MAX / 2);
    talk(rig, request, &answer);
    char head[32];
    (void)snprintf(head, sizeof head, "HTTP/1.1 %d ", status);
    HF_CHECK_SAY(strncmp(hf_buf_text(&answer), head, strlen(head)) == 0 && strstr(hf_buf_text(&answer), words) != NULL,
                 "%s was answered with %s", request, hf_buf_text(&answer));
    hf_buf_deinit(&answer);
}

static void put_more(void *state, hf_buf *out)
{
    hf_buf_puts(out, state);
}

static hf_status meter_body(void *arg)
{
    meter_rig *rig = arg;
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_door *door = NULL;
    hf_door_options options = {0};
    hf_meter_options meter = {.is_local = true, .figures = put_more, .figures_state = "more 7\n"};
    h2_client client;
    hf_pb_get_system_info_request info = {0};
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_meter_open(&op, service, "tcp:127.0.0.1:0", &meter, &rig->meter, rig->address));
    expect(rig, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 503, "starting");
    HF_TRY(hf_door_open(&op, service, &options, &door));
    hf_meter_attach(rig->meter, door);
    HF_TRY(hf_door_listen(&op, door, "tcp:127.0.0.1:0", rig->door));
    HF_TRY(h2_open(&client, rig->door, hf_env_memory(rig->env)));
    HF_CHECK(h2_ask(&client, HF_METHOD_GET_SYSTEM_INFO, &info, NULL, NULL) == HF_GRPC_OK);
    expect(rig, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\r\n\r\nok\n");
    expect(rig, "GET /livez HTTP/1.0\r\n\r\n", 200, "\r\n\r\nok\n");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200, "\nholdfast_calls_total 1\n");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", 200, "\nmore 7\n");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200,
           "holdfast_method_calls_total{service=\"temporal.api.workflowservice.v1.WorkflowService\","
           "method=\"GetSystemInfo\"} 1\n");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: web.example\r\n\r\n", 403, "Forbidden");
    expect(rig, "GET /metric HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "Not Found");
    expect(rig, "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "Allow: GET, HEAD");
    expect(rig, "nonsense\r\n\r\n", 400, "Bad Request");
    int64_t began = hf_now(NULL).ns;
    expect(rig, "GET /livez HTT", 408, "Request Timeout"); /* and no more */
    HF_CHECK(hf_now(NULL).ns - began >= hf_seconds(10).ns && hf_now(NULL).ns - began < hf_seconds(15).ns);
    hf_meter_drain(rig->meter);
    expect(rig, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 503, "stopping");
    expect(rig, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "ok");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\nholdfast_calls_total 1\n");
    h2_close(&client);
    hf_door_stop(door);
    hf_meter_close(rig->meter);
    return hf_close(service);
}

static void figures_and_health_are_served(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= hf_test_seeds(5); seed++) {
        meter_rig rig = {0};
        rig.env = hf_sim_begin(seed);
        hf_runtime_options options = hf_sim_runtime_options(rig.env, 2);
        assert_int_equal(hf_run_with(meter_body, &rig, &options), HF_OK);
        hf_sim_end(rig.env, NULL);
    }
}

static hf_status key_body(void *arg)
{
    meter_rig *rig = arg;
    hf_op op;
    hf_op_init(&op);
    hf_service *service = NULL;
    hf_allocator memory = hf_env_memory(rig->env);
    hf_buf file;
    unsigned char hash[HF_SHA256_LEN];
    char digits[2 * HF_SHA256_LEN + 1];
    hf_meter_options meter = {0};
    hf_buf_init(&file, memory, SIZE_MAX / 2);
    hf_sha256(HF_STR(KEY), hash);
    hf_hex(hash, sizeof hash, digits);
    hf_buf_putf(&file, "01234567 %s 0 default:read me\n", digits);
    HF_TRY(hf_keyring_parse(&op, memory, hf_str_of_len(file.data, file.len), &meter.keys));
    hf_buf_deinit(&file);
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_meter_open(&op, service, "tcp:127.0.0.1:0", &meter, &rig->meter, rig->address));
    hf_keyring_unref(meter.keys);
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", 401, "WWW-Authenticate: Bearer");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer hf_x\r\n\r\n", 401, "");
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer " KEY "\r\n\r\n", 200, "holdfast_");
    expect(rig, "GET /livez HTTP/1.1\r\nHost: a.example\r\n\r\n", 200, "ok");
    hf_keyring *others = NULL; /* the key was revoked */
    HF_TRY(hf_keyring_parse(&op, memory, HF_STR(""), &others));
    hf_meter_renew(rig->meter, others);
    hf_keyring_unref(others);
    expect(rig, "GET /metrics HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer " KEY "\r\n\r\n", 401, "");
    hf_meter_close(rig->meter);
    return hf_close(service);
}

static void metrics_may_need_a_key(void **state)
{
    (void)state;
    meter_rig rig = {0};
    rig.env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(rig.env, 1);
    assert_int_equal(hf_run_with(key_body, &rig, &options), HF_OK);
    hf_sim_end(rig.env, NULL);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(figures_and_health_are_served),
    cmocka_unit_test(metrics_may_need_a_key),
};

int main(int argc, char **argv)
{
    return hf_test_main("meter", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
