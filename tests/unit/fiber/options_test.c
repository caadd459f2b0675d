/* Every verb with options reads `.size`: one that cannot be right is HF_ERR_MISUSE, an option that the library does not know
 * is HF_ERR_UNSUPPORTED, and a struct of an older header works. */
#include "base/base.h"
#include "unit/fiber/bodies.h"

/* As long as the longest options struct, and more. */
typedef union any_options {
    size_t size;
    char bytes[1024];
} any_options;

typedef hf_status (*call)(const void *options);

static void count_drop(void *arg)
{
    (*(int *)arg)++;
}

static hf_status nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_scope *here;
static const hf_depot_key NO_KEY = {NULL, NULL, NULL, 0};

#define CALL(name, expression)                 \
    static hf_status name(const void *options) \
    {                                          \
        return expression;                     \
    }
CALL(runtime_new, hf_runtime_new_with(NULL, options))
CALL(run, hf_run_with(nothing, NULL, options))
CALL(dump, hf_dump_with(NULL, NULL, options))
CALL(scope_open, hf_scope_open_with(NULL, options))
CALL(scope_cancel, hf_scope_cancel_with(NULL, options))
CALL(fork_one, hf_fork_with(here, nothing, NULL, options))
CALL(chan_new, hf_chan_new_with(1, NULL, options))
CALL(chan_send, hf_chan_send_with(NULL, NULL, options))
CALL(chan_recv, hf_chan_recv_with(NULL, NULL, options))
CALL(select_one, hf_select_with(NULL, 0, NULL, options))
CALL(mutex_new, hf_mutex_new_with(NULL, options))
CALL(mutex_lock, hf_mutex_lock_with(NULL, options))
CALL(sem_new, hf_sem_new_with(1, NULL, options))
CALL(sem_acquire, hf_sem_acquire_with(NULL, 1, options))
CALL(cond_new, hf_cond_new_with(NULL, options))
CALL(cond_wait, hf_cond_wait_with(NULL, NULL, options))
CALL(once_new, hf_once_new_with(NULL, options))
CALL(keylock_new, hf_keylock_new_with(NULL, options))
CALL(keylock_lock, hf_keylock_lock_with(NULL, NULL, 0, NULL, options))
CALL(flight_new, hf_flight_new_with(NULL, options))
CALL(flight_run, hf_flight_run_with(NULL, NULL, 0, NULL, NULL, NULL, options))
CALL(cache_new, hf_cache_new_with(NULL, options))
CALL(flow_new, hf_flow_new_with(1, NULL, options))
CALL(flow_collect, hf_flow_collect_with(NULL, NULL, NULL, options))
CALL(collector_open, hf_collector_open_with(NULL, NULL, options))
CALL(collector_next, hf_collector_next_with(NULL, NULL, options))
CALL(pool_new, hf_pool_new_with(NULL, options))
CALL(pool_view, hf_pool_view_with(NULL, NULL, options))
CALL(serial_new, hf_serial_new_with(NULL, options))
CALL(block, hf_block_with(NULL, NULL, options))
CALL(listener_open, hf_listener_open_with(NULL, NULL, options))
CALL(listener_accept, hf_listener_accept_with(NULL, NULL, options))
CALL(fd_wait, hf_fd_wait_with(-1, 0, options))
CALL(conn_open, hf_conn_open_with(NULL, NULL, options))
CALL(conn_read, hf_conn_read_with(NULL, NULL, 0, NULL, options))
CALL(conn_write, hf_conn_write_with(NULL, NULL, 0, options))
CALL(file_open, hf_file_open_with(NULL, HF_FILE_READ, NULL, options))
CALL(signals_open, hf_os_signals_open_with(NULL, 0, NULL, options))
CALL(signals_next, hf_os_signals_next_with(NULL, NULL, options))
CALL(process_start, hf_process_start_with(NULL, NULL, options))
CALL(process_wait, hf_process_wait_with(NULL, NULL, options))
CALL(sim_new, hf_sim_new_with(NULL, options))
CALL(service_open, hf_open_with("mem:", NULL, options))
CALL(start, hf_start_with(NULL, NULL, (hf_payload){0}, NULL, options))
CALL(execution_new, hf_execution_new_with(NULL, NULL, NULL, options))
CALL(result, hf_result_with(NULL, NULL, options))
CALL(signal_run, hf_signal_with(NULL, NULL, (hf_payload){0}, options))
CALL(start_and_signal, hf_start_and_signal_with(NULL, NULL, (hf_payload){0}, NULL, (hf_payload){0}, NULL, options))
CALL(start_and_update,
     hf_start_and_update_with(NULL, NULL, (hf_payload){0}, NULL, (hf_payload){0}, NULL, NULL, options))
CALL(query_run, hf_query_with(NULL, NULL, (hf_payload){0}, NULL, options))
CALL(update_run, hf_update_with(NULL, NULL, (hf_payload){0}, NULL, options))
CALL(update_start, hf_update_start_with(NULL, NULL, (hf_payload){0}, NULL, options))
CALL(update_result, hf_update_result_with(NULL, NULL, options))
CALL(reset_run, hf_reset_with(NULL, NULL, options))
CALL(list_runs, hf_list_with(NULL, NULL, NULL, options))
CALL(stream_read, hf_stream_read_with(NULL, NULL, NULL, NULL, options))
CALL(changes_read, hf_changes_read_with(NULL, NULL, NULL, NULL, options))
CALL(history_read, hf_history_with(NULL, NULL, options))
CALL(count_runs, hf_count_with(NULL, NULL, options))
CALL(namespace_register, hf_namespace_register_with(NULL, NULL, options))
CALL(namespace_update, hf_namespace_update_with(NULL, NULL, options))
CALL(attribute_add, hf_search_attribute_add_with(NULL, NULL, HF_SEARCH_INT, options))
CALL(attribute_remove, hf_search_attribute_remove_with(NULL, NULL, options))
CALL(attribute_list, hf_search_attribute_list_with(NULL, NULL, NULL, options))
CALL(cancel_run, hf_cancel_with(NULL, options))
CALL(terminate_run, hf_terminate_with(NULL, options))
CALL(fork_activity, hf_fork_activity_with(NULL, NULL, (hf_payload){0}, NULL, options))
CALL(fork_child, hf_fork_child_with(NULL, NULL, hf_payload_none(), NULL, options))
CALL(activity_run, hf_activity_run_with(NULL, (hf_payload){0}, NULL, options))
CALL(activity_fail, hf_activity_fail_with(NULL, options))
CALL(handlers_wait, hf_handlers_wait_with(options))
CALL(signal_wait, hf_signal_wait_with(NULL, NULL, options))
CALL(activity_run_local, hf_activity_run_local_with(NULL, (hf_payload){0}, NULL, options))
CALL(signal_wait_any, hf_signal_wait_any_with(NULL, 0, NULL, NULL, options))
CALL(child_run, hf_child_run_with(NULL, hf_payload_none(), NULL, options))
CALL(child_start, hf_child_start_with(NULL, hf_payload_none(), options))
CALL(saga_open, hf_saga_open_with(NULL, options))
CALL(saga_add, hf_saga_add_with(NULL, NULL, (hf_payload){0}, options))
CALL(on_signal, hf_on_signal_with(NULL, NULL, options))
CALL(on_query, hf_on_query_with(NULL, NULL, options))
CALL(on_update, hf_on_update_with(NULL, NULL, options))
CALL(workflow_fail, hf_workflow_fail_with(NULL, options))
CALL(continue_as_new, hf_continue_as_new_with(hf_payload_none(), options))
CALL(worker_new, hf_worker_new_with(NULL, NULL, NULL, options))
CALL(worker_add_activity, hf_worker_add_activity_with(NULL, NULL, NULL, options))
CALL(depot_open, hf_depot_open_with(NULL, NULL, options))
CALL(depot_get, hf_depot_get_with(NULL, NO_KEY, NULL, options))
CALL(depot_put, hf_depot_put_with(NULL, NO_KEY, NULL, 0, options))
CALL(depot_patch, hf_depot_patch_with(NULL, NO_KEY, NULL, 0, options))
CALL(depot_delete, hf_depot_delete_with(NULL, NO_KEY, options))
CALL(depot_create, hf_depot_create_with(NULL, NO_KEY, NULL, 0, NULL, options))
CALL(depot_write_wait, hf_depot_write_wait_with(NULL, options))
CALL(depot_invalidate, hf_depot_invalidate_with(NULL, NO_KEY, options))
CALL(depot_invalidate_namespace, hf_depot_invalidate_namespace_with(NULL, NULL, options))
CALL(depot_invalidate_all, hf_depot_invalidate_all_with(NULL, options))
CALL(depot_watch, hf_depot_watch_with(NULL, NO_KEY, NULL, options))
CALL(depot_memo, hf_depot_memo_with(NULL, options).state == NULL ? hf_error()->status : HF_OK)
CALL(depot_drive, hf_depot_drive_with(NULL, NULL, options))
CALL(watcher_next, hf_watcher_next_with(NULL, NULL, options))
CALL(reply_fail, hf_reply_fail_with(NULL, HF_REPLY_UNKNOWN, options))
CALL(external_signal, hf_external_signal_with(NULL, NULL, hf_payload_none(), options))
CALL(answer_failed, hf_answer_failed_with(NULL, (hf_answer_target){0}, NULL, options))
CALL(delete_run, hf_delete_with(NULL, options))
CALL(batch_start, hf_batch_start_with(NULL, NULL, HF_BATCH_CANCEL, options))
CALL(batch_stop, hf_batch_stop_with(NULL, NULL, options))
CALL(batch_describe, hf_batch_describe_with(NULL, NULL, NULL, options))
CALL(batch_list, hf_batch_list_with(NULL, NULL, NULL, options))
CALL(worker_add_workflow, hf_worker_add_workflow_with(NULL, NULL, NULL, options))
CALL(worker_add_command, hf_worker_add_command_with(NULL, NULL, NULL, options))
CALL(metrics, hf_metrics_with(NULL, NULL, options))
CALL(testenv_new, hf_testenv_new_with(NULL, options))
CALL(testenv_activity, hf_testenv_activity_with(NULL, NULL, NULL, options))
CALL(testenv_start, hf_testenv_start_with(NULL, NULL, hf_payload_none(), NULL, options))
CALL(depot_get_many, hf_depot_get_many_with(NULL, NULL, 0, NULL, options))
CALL(depot_put_value, hf_depot_put_value_with(NULL, NO_KEY, NULL, options))
CALL(depot_list, hf_depot_list_with(NULL, NO_KEY, NULL, options))
CALL(depot_list_watch, hf_depot_list_watch_with(NULL, NO_KEY, NULL, options))
CALL(pages_open, hf_pages_open_with(NULL, NO_KEY, NULL, options))
CALL(pages_load, hf_pages_load_with(NULL, HF_PAGE_INITIAL, options))
CALL(pages_next, hf_pages_next_with(NULL, NULL, options))
CALL(reply_add, hf_reply_add_with(NULL, NO_KEY, NULL, 0, options))
CALL(reply_page, hf_reply_page_with(NULL, NULL, 0, options))

static const struct {
    const char *verb;
    call call;
} CALLS[] = {
    {"hf_runtime_new", runtime_new},
    {"hf_run", run},
    {"hf_dump", dump},
    {"hf_scope_open", scope_open},
    {"hf_scope_cancel", scope_cancel},
    {"hf_fork", fork_one},
    {"hf_chan_new", chan_new},
    {"hf_chan_send", chan_send},
    {"hf_chan_recv", chan_recv},
    {"hf_select", select_one},
    {"hf_mutex_new", mutex_new},
    {"hf_mutex_lock", mutex_lock},
    {"hf_sem_new", sem_new},
    {"hf_sem_acquire", sem_acquire},
    {"hf_cond_new", cond_new},
    {"hf_cond_wait", cond_wait},
    {"hf_once_new", once_new},
    {"hf_keylock_new", keylock_new},
    {"hf_keylock_lock", keylock_lock},
    {"hf_flight_new", flight_new},
    {"hf_flight_run", flight_run},
    {"hf_cache_new", cache_new},
    {"hf_flow_new", flow_new},
    {"hf_flow_collect", flow_collect},
    {"hf_collector_open", collector_open},
    {"hf_collector_next", collector_next},
    {"hf_pool_new", pool_new},
    {"hf_pool_view", pool_view},
    {"hf_serial_new", serial_new},
    {"hf_block", block},
    {"hf_listener_open", listener_open},
    {"hf_listener_accept", listener_accept},
    {"hf_fd_wait", fd_wait},
    {"hf_conn_open", conn_open},
    {"hf_conn_read", conn_read},
    {"hf_conn_write", conn_write},
    {"hf_file_open", file_open},
    {"hf_os_signals_open", signals_open},
    {"hf_os_signals_next", signals_next},
    {"hf_process_start", process_start},
    {"hf_process_wait", process_wait},
    {"hf_sim_new", sim_new},
    {"hf_open", service_open},
    {"hf_start", start},
    {"hf_execution_new", execution_new},
    {"hf_result", result},
    {"hf_signal", signal_run},
    {"hf_start_and_signal", start_and_signal},
    {"hf_start_and_update", start_and_update},
    {"hf_query", query_run},
    {"hf_update", update_run},
    {"hf_update_start", update_start},
    {"hf_update_result", update_result},
    {"hf_reset", reset_run},
    {"hf_list", list_runs},
    {"hf_stream_read", stream_read},
    {"hf_changes_read", changes_read},
    {"hf_history", history_read},
    {"hf_count", count_runs},
    {"hf_namespace_register", namespace_register},
    {"hf_namespace_update", namespace_update},
    {"hf_search_attribute_add", attribute_add},
    {"hf_search_attribute_remove", attribute_remove},
    {"hf_search_attribute_list", attribute_list},
    {"hf_cancel", cancel_run},
    {"hf_terminate", terminate_run},
    {"hf_activity_run", activity_run},
    {"hf_fork_activity", fork_activity},
    {"hf_fork_child", fork_child},
    {"hf_activity_fail", activity_fail},
    {"hf_activity_run_local", activity_run_local},
    {"hf_saga_open", saga_open},
    {"hf_saga_add", saga_add},
    {"hf_handlers_wait", handlers_wait},
    {"hf_signal_wait", signal_wait},
    {"hf_signal_wait_any", signal_wait_any},
    {"hf_child_run", child_run},
    {"hf_child_start", child_start},
    {"hf_on_signal", on_signal},
    {"hf_on_query", on_query},
    {"hf_on_update", on_update},
    {"hf_continue_as_new", continue_as_new},
    {"hf_workflow_fail", workflow_fail},
    {"hf_worker_new", worker_new},
    {"hf_worker_add_activity", worker_add_activity},
    {"hf_depot_open", depot_open},
    {"hf_depot_get", depot_get},
    {"hf_depot_put", depot_put},
    {"hf_depot_patch", depot_patch},
    {"hf_depot_delete", depot_delete},
    {"hf_depot_create", depot_create},
    {"hf_depot_write_wait", depot_write_wait},
    {"hf_depot_invalidate", depot_invalidate},
    {"hf_depot_invalidate_namespace", depot_invalidate_namespace},
    {"hf_depot_invalidate_all", depot_invalidate_all},
    {"hf_depot_watch", depot_watch},
    {"hf_depot_memo", depot_memo},
    {"hf_depot_drive", depot_drive},
    {"hf_watcher_next", watcher_next},
    {"hf_reply_fail", reply_fail},
    {"hf_external_signal", external_signal},
    {"hf_answer_failed", answer_failed},
    {"hf_delete", delete_run},
    {"hf_batch_start", batch_start},
    {"hf_batch_stop", batch_stop},
    {"hf_batch_describe", batch_describe},
    {"hf_batch_list", batch_list},
    {"hf_worker_add_workflow", worker_add_workflow},
    {"hf_worker_add_command", worker_add_command},
    {"hf_metrics", metrics},
    {"hf_testenv_new", testenv_new},
    {"hf_testenv_activity", testenv_activity},
    {"hf_testenv_start", testenv_start},
    {"hf_depot_get_many", depot_get_many},
    {"hf_depot_put_value", depot_put_value},
    {"hf_depot_list", depot_list},
    {"hf_depot_list_watch", depot_list_watch},
    {"hf_pages_open", pages_open},
    {"hf_pages_load", pages_load},
    {"hf_pages_next", pages_next},
    {"hf_reply_add", reply_add},
    {"hf_reply_page", reply_page},
};

static hf_status give_wrong_sizes(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    here = scope;
    for (size_t i = 0; i < HF_COUNT_OF(CALLS); i++) {
        any_options none = {.size = 0};
        hf_status status = CALLS[i].call(&none);
        HF_CHECK_SAY(status == HF_ERR_MISUSE && error_says(".size") && error_says(CALLS[i].verb), "%s: %s, %s",
                     CALLS[i].verb, hf_status_name(status), hf_error_text());
        any_options newer = {.size = 0};
        newer.size = sizeof newer;
        newer.bytes[sizeof newer - 1] = 1;
        status = CALLS[i].call(&newer);
        HF_CHECK_SAY(status == HF_ERR_UNSUPPORTED && error_says("newer header") && error_says(CALLS[i].verb),
                     "%s: %s, %s", CALLS[i].verb, hf_status_name(status), hf_error_text());
    }
    return hf_join(scope);
}

static void every_verb_with_options_looks_at_their_size(void **state)
{
    (void)state;
    simulated_and_on_threads("sizes", 2, give_wrong_sizes);
}

/* As an older and a newer header would have it. */
typedef struct old_chan_options {
    size_t size;
    const char *name;
} old_chan_options;

typedef struct new_chan_options {
    hf_chan_options known;
    int64_t invented;
} new_chan_options;

static hf_status use_other_headers(void *arg)
{
    (void)arg;
    {
        HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
        union {
            old_chan_options old;
            hf_chan_options now;
        } options = {.now = {.capacity = 1000000000, .runtime = (hf_runtime *)1}}; /* beyond what the old struct has */
        options.old = (old_chan_options){.size = sizeof(old_chan_options), .name = "old"};
        HF_TRY(hf_chan_new_with(sizeof(int), &chan, &options.now));
        int value = 1;
        HF_CHECK(hf_chan_try_send(chan, &value) == HF_ERR_AGAIN); /* a rendezvous: .capacity is 0 */
    }
    {
        HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
        new_chan_options options = {.known = {.size = sizeof options, .name = "new", .capacity = 1}};
        HF_TRY(hf_chan_new_with(sizeof(int), &chan, &options.known));
        int value = 1;
        HF_CHECK(hf_chan_try_send(chan, &value) == HF_OK);
        options.invented = 1;
        hf_chan *other = NULL;
        HF_CHECK(hf_chan_new_with(sizeof(int), &other, &options.known) == HF_ERR_UNSUPPORTED && other == NULL);
    }
    return HF_OK;
}

static void options_of_older_and_newer_headers_work(void **state)
{
    (void)state;
    simulated_and_on_threads("headers", 2, use_other_headers);
}

/* What the call owns is released, also when its options are refused. */
static hf_status drop_with_refused_options(void *arg)
{
    (void)arg;
    int dropped = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    struct {
        hf_fork_options known;
        int64_t invented;
    } fork_options = {.known = {.size = sizeof fork_options, .drop = count_drop}, .invented = 1};
    HF_CHECK(hf_fork_with(scope, nothing, &dropped, &fork_options.known) == HF_ERR_UNSUPPORTED);
    HF_CHECK(dropped == 1);
    struct {
        hf_block_options known;
        int64_t invented;
    } block_options = {.known = {.size = sizeof block_options, .abandonable = true, .drop = count_drop}, .invented = 1};
    HF_CHECK(hf_block_with(nothing, &dropped, &block_options.known) == HF_ERR_UNSUPPORTED);
    HF_CHECK(dropped == 2);
    return hf_join(scope);
}

static void refused_options_still_drop_the_argument(void **state)
{
    (void)state;
    simulated_and_on_threads("drops", 2, drop_with_refused_options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_with_options_looks_at_their_size),
        cmocka_unit_test(options_of_older_and_newer_headers_work),
        cmocka_unit_test(refused_options_still_drop_the_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
