/* The order of the README, on the worker and the engine: with a cache, without one, and with every other way to lose it in
 * between. Commands and result are always the same. */
#include "unit/worker/play.h"

/* ---- The workflow ------------------------------------------------------------------------------------------------ */

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    hf_payload receipt = {0};
    hf_payload parcel = {0};
    HF_TRY(hf_activity_run("charge", in, &receipt, .start_to_close = hf_seconds(30), .attempts_max = 5));
    hf_status status = hf_signal_wait("delivered", &parcel, .timeout = hf_days(14));
    if (status == HF_ERR_TIMEOUT) {
        return hf_activity_run("refund", receipt, ret_out, .start_to_close = hf_seconds(30));
    }
    HF_TRY(status);
    HF_TRY(hf_sleep(hf_days(30)));
    return hf_activity_run("ask_review", in, ret_out, .start_to_close = hf_minutes(1));
}

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "{\"charged\": %.*s}", (int)in.len, (const char *)in.data);
}

static hf_status refund(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "{\"refunded\": %.*s}", (int)in.len, (const char *)in.data);
}

static hf_status ask_review(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"five stars\"");
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_activity(worker, "charge", charge));
    HF_TRY(hf_worker_add_activity(worker, "refund", refund));
    return hf_worker_add_activity(worker, "ask_review", ask_review);
}

static hf_status start_order(play *p)
{
    return hf_start(p->service, "order", hf_payload_of_json("7"), &p->execution, .id = "order-1",
                    .task_queue = "orders");
}

/* Before the worker runs: a signal that races with it comes before the wait or during it, and the commands differ. */
static hf_status deliver(play *p)
{
    HF_TRY(start_order(p));
    return hf_signal(p->execution, "delivered", hf_payload_of_json("\"at the door\""));
}

/* Until every order has ended: hf_result would ask the service every 20 s. */
static hf_status let_it_end(void)
{
    return hf_sleep(hf_days(31));
}

static hf_status await_order(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *order_1 = p->execution;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(let_it_end());
    HF_TRY(hf_result(order_1, &out));
    play_note(p, "%s", (const char *)out.data);
    return HF_OK;
}

/* Without a cache every task has the whole history: the worker asks for what did not fit into its first page. */
static hf_status await_pages(play *p)
{
    HF_TRY(await_order(p));
    HF_CHECK(tap_histories(p->tap) > 0);
    return HF_OK;
}

static const char DELIVERED[] = "order-1: ScheduleActivityTask 1 charge;\n"
                                "order-1: StartTimer 1 2592000s;\n"
                                "order-1: ScheduleActivityTask 2 ask_review;\n"
                                "order-1: CompleteWorkflowExecution;\n";

static void a_delivered_order_is_reviewed(void **state)
{
    (void)state;
    play_on((play_options){
        .add = add_all, .before = deliver, .body = await_order, .result = "\"five stars\"", .log = DELIVERED});
}

static void without_a_cache_every_step_is_replayed_and_equal(void **state)
{
    (void)state;
    play_on((play_options){.add = add_all,
                           .before = deliver,
                           .body = await_order,
                           .worker = {.cached_max = HF_OFF},
                           .result = "\"five stars\"",
                           .log = DELIVERED});
}

static void a_history_may_come_in_pages(void **state)
{
    (void)state;
    play_on((play_options){.add = add_all,
                           .before = deliver,
                           .body = await_pages,
                           .page_len = 1, /* one event */
                           .worker = {.cached_max = HF_OFF},
                           .result = "\"five stars\"",
                           .log = DELIVERED});
}

static void a_refused_answer_evicts_quietly(void **state)
{
    (void)state;
    play_on((play_options){.add = add_all,
                           .before = deliver,
                           .body = await_order,
                           .tap = {.refuse_every = 2},
                           .result = "\"five stars\"",
                           .log = DELIVERED});
}

static void an_answer_that_finds_the_disk_full_is_given_again(void **state)
{
    (void)state;
    play_on((play_options){.add = add_all,
                           .before = deliver,
                           .body = await_order,
                           .tap = {.refuse_count = 3,
                                   .refuse_method = HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED,
                                   .refuse_status = HF_ERR_FULL},
                           .result = "\"five stars\"",
                           .log = DELIVERED});
}

/* ---- Nobody delivers --------------------------------------------------------------------------------------------- */

static void an_order_that_does_not_arrive_is_refunded(void **state)
{
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        play_on((play_options){.add = add_all,
                               .before = start_order,
                               .body = await_order,
                               .worker = {.cached_max = cached == 0 ? HF_OFF : 0},
                               .result = "{\"refunded\": {\"charged\": 7}}",
                               .log = "order-1: ScheduleActivityTask 1 charge;\n"
                                      "order-1: StartTimer 1 1209600s;\n"
                                      "order-1: ScheduleActivityTask 2 refund;\n"
                                      "order-1: CompleteWorkflowExecution;\n"});
    }
}

/* ---- Many at once, and room for one ------------------------------------------------------------------------------ */

static hf_status deliver_many(play *p)
{
    enum { MANY = 5 };
    hf_execution *orders[MANY] = {NULL};
    for (int i = 0; i < MANY; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "order-%d", i);
        HF_TRY(hf_start(p->service, "order", hf_payload_of_json("7"), &orders[i], .id = id, .task_queue = "orders"));
    }
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_signal(orders[i], "delivered", hf_payload_none()));
    }
    HF_TRY(let_it_end());
    for (int i = 0; i < MANY; i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        HF_TRY(hf_result(orders[i], &out));
        HF_CHECK(strcmp((const char *)out.data, "\"five stars\"") == 0);
        hf_execution_free(orders[i]);
    }
    play_note(p, "all");
    HF_CHECK(tap_histories(p->tap) > 0); /* partial histories of runs that were not there any more */
    return HF_OK;
}

static void runs_that_were_evicted_read_their_history(void **state)
{
    (void)state;
    play_on((play_options){.add = add_all, .body = deliver_many, .worker = {.cached_max = 1}, .result = "all"});
}

static void one_seed(uint64_t seed)
{
    play_seed((play_options){.add = add_all,
                             .before = deliver,
                             .body = await_order,
                             .tap = {.refuse_every = seed % 4 == 0 ? 0 : 1 + (int)(seed % 4)},
                             .worker = {.cached_max = seed % 3 == 0 ? HF_OFF : (int)(seed % 3)},
                             .result = "\"five stars\"",
                             .log = DELIVERED},
              seed);
}

static void every_schedule_makes_the_same_commands(void **state)
{
    (void)state;
    hf_each_seed("order", 60, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_delivered_order_is_reviewed),
        cmocka_unit_test(without_a_cache_every_step_is_replayed_and_equal),
        cmocka_unit_test(a_history_may_come_in_pages),
        cmocka_unit_test(a_refused_answer_evicts_quietly),
        cmocka_unit_test(an_answer_that_finds_the_disk_full_is_given_again),
        cmocka_unit_test(an_order_that_does_not_arrive_is_refunded),
        cmocka_unit_test(runs_that_were_evicted_read_their_history),
        cmocka_unit_test(every_schedule_makes_the_same_commands),
    };
    return hf_test_main("order", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
