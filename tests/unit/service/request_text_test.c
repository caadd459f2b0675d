/* Texts of a request by the names of their fields. */
#include "support/support.h"

#include "service/grpc_path.h"

/* Whoever keeps track of tasks in hand (src/open/host_call.c) finds out by this which of them was answered. */
static void every_answer_to_a_task_tells_its_token(void **state)
{
    static const hf_method METHODS[] = {
        HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED,
        HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED,
        HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED,  HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT,
        HF_METHOD_RESPOND_QUERY_TASK_COMPLETED,
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(METHODS); i++) {
        static max_align_t room[256];
        const hf_method_info *info = hf_method_info_of(METHODS[i]);
        hf_str token = {0};
        print_message("%s\n", info->name);
        assert_true(info->request_type->size <= sizeof room);
        memset(room, 0, sizeof room);
        assert_true(hf_request_text(info->request_type, room, "task_token", &token));
        assert_int_equal(token.len, 0);
    }
}

static void a_text_is_found_by_its_name(void **state)
{
    (void)state;
    hf_pb_respond_activity_task_completed_request request = {.task_token = HF_STR("token"), .identity = HF_STR("me")};
    const hf_pb_type *type = &hf_pb_respond_activity_task_completed_request_type;
    hf_str text = {0};
    assert_true(hf_request_text(type, &request, "task_token", &text));
    assert_true(hf_str_equal(text, HF_STR("token")));
    assert_true(hf_request_text(type, &request, "identity", &text));
    assert_true(hf_str_equal(text, HF_STR("me")));
    assert_false(hf_request_text(type, &request, "result", &text)); /* a message */
    assert_false(hf_request_text(type, &request, "nothing", &text));
}

static const struct CMUnitTest TESTS[] = {cmocka_unit_test(every_answer_to_a_task_tells_its_token),
                                          cmocka_unit_test(a_text_is_found_by_its_name)};

int main(int argc, char **argv)
{
    return hf_test_main("request_text", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
