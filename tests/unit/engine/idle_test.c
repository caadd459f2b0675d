/* Since when a run has waited, as the engine tells it and as a file at rest does. */
#include "inspect/look.h"
#include "unit/engine/fixture.h"

static int64_t idle_in(const hf_pb_describe_workflow_execution_response *response)
{
    return hf_pb_timestamp_time(response->workflow_extended_info->holdfast_idle_since).ns;
}

/* Of the only run, from the engine; a look at its store says the same. */
static int64_t idle(void)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_arena arena;
    hf_buf history;
    hf_str namespace_;
    hf_pb_describe_workflow_execution_response description;
    hf_arena_init(&arena, hf_rig_heap);
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_do(&rig, "describe wf");
    const hf_pb_describe_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    assert_int_equal(hf_look_describe(&op, look, 1, &arena, &history, &namespace_, &description), HF_OK);
    assert_int_equal(idle_in(&description), idle_in(response));
    assert_int_equal(description.workflow_execution_info->state_transition_count,
                     response->workflow_execution_info->state_transition_count);
    hf_look_close(look);
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
    return idle_in(response);
}

static void a_run_is_idle_since_its_last_change(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) { /* in memory, and on disk */
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0, .trim_count = 1});
        hf_rig_do(&rig, "start wf; poll; complete activity a1; time 1s; apoll");
        int64_t start = rig.now.wall - INT64_C(1000000000);
        assert_int_equal(idle() - start, INT64_C(1000000000)); /* the attempt is no event yet */
        hf_rig_do(&rig, "time 5s; heartbeat details=half; time 5s");
        assert_int_equal(idle() - start, INT64_C(6000000000));
        hf_rig_do(&rig, "crash");
        assert_int_equal(idle() - start, INT64_C(6000000000));
        hf_rig_do(&rig, "acomplete; time 1s; poll; complete done; time 1h");
        assert_int_equal(idle() - start, INT64_C(12000000000)); /* it has closed */
        hf_rig_do(&rig, "crash");
        assert_int_equal(idle() - start, INT64_C(12000000000));
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_run_is_idle_since_its_last_change),
};

int main(int argc, char **argv)
{
    return hf_test_main("idle", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
