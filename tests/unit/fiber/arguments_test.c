/* Arguments that make no sense: no place for the result, no object, numbers out of bounds. Every verb answers with a
 * status and a sentence, every accessor with the value that means nothing; none of them crashes. */
#include "unit/fiber/bodies.h"

#include <signal.h>

/* A refusal as it should be: the status, and a sentence of its own that has `part` in it. */
#define REFUSED(call, expected, part)                                                            \
    do {                                                                                         \
        HF_IGNORE(hf_raise(HF_ERR_FAILED, "an older failure"));                                  \
        hf_status refused_status_ = (call);                                                      \
        HF_CHECK_SAY(refused_status_ == (expected) && error_says(part), "%s: %s, \"%s\"", #call, \
                     hf_status_name(refused_status_), hf_error_text());                          \
    } while (0)

static void count_drop(void *arg)
{
    (*(int *)arg)++;
}

/* ---- No place for the result --------------------------------------------------------------------------------------- */

static hf_status make_nowhere(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    REFUSED(hf_runtime_new(NULL), HF_ERR_MISUSE, "a place for the runtime");
    REFUSED(hf_scope_open(NULL), HF_ERR_MISUSE, "a place for the scope");
    REFUSED(hf_shield_open(hf_seconds(1), NULL), HF_ERR_MISUSE, "a place for the shield");
    REFUSED(hf_chan_new(1, NULL), HF_ERR_MISUSE, "a place for the channel");
    REFUSED(hf_sem_new(1, NULL), HF_ERR_MISUSE, "a place for the semaphore");
    REFUSED(hf_mutex_new(NULL), HF_ERR_MISUSE, "a place for the mutex");
    REFUSED(hf_cond_new(NULL), HF_ERR_MISUSE, "a place for the condition");
    REFUSED(hf_once_new(NULL), HF_ERR_MISUSE, "a place for the once");
    REFUSED(hf_keylock_new(NULL), HF_ERR_MISUSE, "a place for the key lock");
    REFUSED(hf_flight_new(NULL, .scope = scope), HF_ERR_MISUSE, "a place for the flight");
    REFUSED(hf_cache_new(NULL), HF_ERR_MISUSE, "a place for the cache");
    REFUSED(hf_flow_new(1, NULL), HF_ERR_MISUSE, "a place for the flow");
    REFUSED(hf_pool_new(NULL), HF_ERR_MISUSE, "hf_pool_new needs a place");
    REFUSED(hf_pool_view(NULL, NULL), HF_ERR_MISUSE, "hf_pool_view needs a place");
    REFUSED(hf_serial_new(NULL), HF_ERR_MISUSE, "hf_serial_new needs a place");
    REFUSED(hf_random(NULL, NULL, 8), HF_ERR_MISUSE, "a place for 8 bytes");
    REFUSED(hf_runtime_stats(NULL, NULL), HF_ERR_MISUSE, "a place for the numbers");
    REFUSED(hf_dump(NULL, NULL), HF_ERR_MISUSE, "a place for the text");
    REFUSED(hf_metrics(NULL, NULL, .json = true), HF_ERR_MISUSE, "a place for the text");
    char *forms = NULL;
    REFUSED(hf_metrics(NULL, &forms, .json = true, .prometheus = true), HF_ERR_INVALID, "one form");
    REFUSED(hf_listener_open("tcp:127.0.0.1:0", NULL), HF_ERR_MISUSE, "a place for the listener");
    REFUSED(hf_conn_open("tcp:127.0.0.1:1", NULL), HF_ERR_MISUSE, "a place for the connection");
    REFUSED(hf_file_open("x", HF_FILE_READ, NULL), HF_ERR_MISUSE, "a place for the file");
    int number = SIGTERM;
    REFUSED(hf_os_signals_open(&number, 1, NULL), HF_ERR_MISUSE, "a place for the result");
    const char *const argv[] = {"true", NULL};
    REFUSED(hf_process_start(argv, NULL), HF_ERR_MISUSE, "a place for it");
    return HF_OK;
}

static void no_place_for_the_result_is_misuse(void **state)
{
    (void)state;
    simulated_and_on_threads("nowhere", 10, make_nowhere);
}

static hf_status values_nowhere(void *arg)
{
    (void)arg;
    int drops = 0;
    REFUSED(hf_value_new(&drops, sizeof drops, count_drop, NULL), HF_ERR_MISUSE, "a place for the value");
    HF_CHECK(drops == 1); /* taken is taken */
    REFUSED(hf_value_copy("x", 1, NULL), HF_ERR_MISUSE, "a place for the value");
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(1, &flow));
    REFUSED(hf_collector_open(flow, NULL), HF_ERR_MISUSE, "a place for the collector");
    hf_collector *collector = NULL;
    REFUSED(hf_collector_open(NULL, &collector), HF_ERR_MISUSE, "needs a flow");
    REFUSED(hf_collector_open(flow, &collector, .mode = (hf_flow_mode)77), HF_ERR_INVALID, ".mode");
    return HF_OK;
}

static void no_place_for_a_value_or_a_collector_is_misuse(void **state)
{
    (void)state;
    simulated_and_on_threads("values nowhere", 10, values_nowhere);
}

/* ---- No object ----------------------------------------------------------------------------------------------------- */

static hf_status look_at_nothing(void *arg)
{
    (void)arg;
    REFUSED(hf_branch_status(NULL), HF_ERR_MISUSE, "needs a branch");
    HF_CHECK(!hf_branch_is_done(NULL) && hf_branch_failure(NULL) == NULL && hf_branch_index(NULL) == 0);
    hf_tally tally = hf_scope_tally(NULL);
    HF_CHECK(tally.forked == 0 && tally.running == 0 && tally.ok == 0 && tally.failed == 0 && tally.canceled == 0);
    HF_CHECK(strcmp(hf_scope_name(NULL), "") == 0 && hf_scope_is_idle(NULL) && hf_scope_failure(NULL, 0) == NULL);
    HF_CHECK(hf_chan_count(NULL) == 0 && hf_keylock_count(NULL) == 0 && hf_flight_count(NULL) == 0);
    hf_cache_counts counts;
    REFUSED(hf_cache_stats(NULL, &counts), HF_ERR_MISUSE, "needs a cache");
    HF_CHECK(hf_collector_dropped(NULL) == 0 && hf_value_data(NULL) == NULL && hf_value_len(NULL) == 0);
    HF_CHECK(strcmp(hf_conn_peer(NULL), "") == 0 && strcmp(hf_listener_address(NULL), "") == 0);
    HF_CHECK(hf_process_pid(NULL) == -1 && hf_process_in(NULL) == NULL);
    HF_CHECK(hf_process_out(NULL) == NULL && hf_process_err(NULL) == NULL);
    HF_CHECK(hf_runtime_fd(NULL) == -1 && hf_sim_trace_hash(NULL) == 0 && hf_sim_steps(NULL) == 0);
    return HF_OK;
}

static void accessors_take_no_object_for_nothing(void **state)
{
    (void)state;
    simulated_and_on_threads("nothing", 10, look_at_nothing);
    HF_CHECK(look_at_nothing(NULL) == HF_OK); /* a plain thread */
}

/* ---- Numbers out of bounds ----------------------------------------------------------------------------------------- */

static hf_status big_stack(void *arg)
{
    (void)arg;
    int drops = 0;
    atomic_int runs = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    REFUSED(hf_fork(scope, sleep_long, &drops, .stack_size = 256 * 1024 + 1, .drop = count_drop), HF_ERR_INVALID,
            "256 K");
    HF_CHECK(drops == 1 && hf_scope_tally(scope).forked == 0);
    HF_TRY(hf_fork(scope, count_one, &runs, .stack_size = 256 * 1024));
    HF_TRY(hf_join(scope));
    HF_CHECK(runs == 1);
    return HF_OK;
}

static void a_stack_over_256_k_is_refused(void **state)
{
    (void)state;
    simulated_and_on_threads("big stack", 10, big_stack);
}

static hf_status negative_jobs(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    REFUSED(hf_scope_open(&scope, .branches_max = -7), HF_ERR_INVALID, "branches_max");
    REFUSED(hf_scope_open(&scope, .branches_max = HF_OFF), HF_ERR_INVALID, "branches_max");
    HF_CHECK(scope == NULL);
    return hf_scope_open(&scope, .branches_max = HF_UNLIMITED);
}

static hf_status negative_figures(void *arg)
{
    (void)arg;
    hf_dispatcher *pool = NULL;
    hf_runtime *runtime = NULL;
    REFUSED(hf_pool_new(&pool, .idle = hf_nanoseconds(-2)), HF_ERR_INVALID, ".idle is negative");
    REFUSED(hf_pool_new(&pool, .queue_max = HF_OFF), HF_ERR_INVALID, ".queue_max is -1");
    REFUSED(hf_runtime_new(&runtime, .fibers_max = -7), HF_ERR_INVALID, ".fibers_max is -7");
    REFUSED(hf_runtime_new(&runtime, .watchdog = {.zombies_max = -7}), HF_ERR_INVALID, ".watchdog.zombies_max is -7");
    REFUSED(hf_runtime_new(&runtime, .watchdog = {.stuck_after = hf_seconds(-7)}), HF_ERR_INVALID,
            ".watchdog.stuck_after is negative: give a time, or HF_SPAN_OFF");
    HF_CHECK(pool == NULL && runtime == NULL);
    HF_TRY(hf_pool_new(&pool, .idle = HF_SPAN_OFF, .queue_max = HF_UNLIMITED));
    return hf_dispatcher_free(pool);
}

static void negative_figures_are_refused(void **state)
{
    (void)state;
    simulated_and_on_threads("negative figures", 10, negative_figures);
}

static void a_negative_bound_of_children_is_refused(void **state)
{
    (void)state;
    simulated_and_on_threads("negative jobs", 10, negative_jobs);
}

static hf_status big_port(void *arg)
{
    (void)arg;
    static const char *const ADDRESSES[] = {"tcp:127.0.0.1:65536", "tcp:[::1]:123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof ADDRESSES / sizeof *ADDRESSES; i++) {
        hf_listener *listener = NULL;
        hf_conn *conn = NULL;
        REFUSED(hf_listener_open(ADDRESSES[i], &listener), HF_ERR_INVALID, "is over 65535");
        REFUSED(hf_conn_open(ADDRESSES[i], &conn), HF_ERR_INVALID, "is over 65535");
    }
    hf_listener *listener = NULL;
    REFUSED(hf_listener_open("tcp:127.0.0.1:", &listener), HF_ERR_INVALID, "tcp:127.0.0.1:");
    HF_CHECK(!error_says("over 65535"));
    return HF_OK;
}

static void a_port_over_65535_is_named(void **state)
{
    (void)state;
    simulated_and_on_threads("big port", 10, big_port);
}

/* ---- Depots -------------------------------------------------------------------------------------------------------- */

static hf_status no_depot(void *arg)
{
    (void)arg;
    hf_depot_key key = hf_depot_key_of("ns", "type", "id");
    hf_value *value = NULL;
    hf_watcher *watcher = NULL;
    hf_depot_event event;
    hf_depot_counts counts;
    hf_depot_result result;
    REFUSED(hf_depot_open("depot", NULL), HF_ERR_MISUSE, "a place for the depot");
    REFUSED(hf_depot_query(NULL, 0, NULL), HF_ERR_MISUSE, "needs terms and a place");
    REFUSED(hf_depot_get(NULL, key, &value), HF_ERR_MISUSE, "hf_depot_get needs a depot");
    REFUSED(hf_depot_get_many(NULL, &key, 1, &result), HF_ERR_MISUSE, "hf_depot_get_many needs a depot");
    REFUSED(hf_depot_put_value(NULL, key, NULL), HF_ERR_MISUSE, "hf_depot_put_value needs a depot");
    REFUSED(hf_depot_changed(NULL, key), HF_ERR_MISUSE, "hf_depot_changed needs a depot");
    REFUSED(hf_reply_emit(NULL), HF_ERR_MISUSE, "hf_reply_emit needs the reply");
    REFUSED(hf_depot_prefetch(NULL, key), HF_ERR_MISUSE, "hf_depot_prefetch needs a depot");
    REFUSED(hf_depot_put(NULL, key, "x", 1), HF_ERR_MISUSE, "hf_depot_put needs a depot");
    REFUSED(hf_depot_patch(NULL, key, "x", 1), HF_ERR_MISUSE, "hf_depot_patch needs a depot");
    REFUSED(hf_depot_delete(NULL, key), HF_ERR_MISUSE, "hf_depot_delete needs a depot");
    REFUSED(hf_depot_create(NULL, key, "x", 1, NULL), HF_ERR_MISUSE, "hf_depot_create needs a depot");
    REFUSED(hf_depot_write_key(NULL, NULL), HF_ERR_MISUSE, "hf_depot_write_key needs a write");
    REFUSED(hf_depot_write_wait(NULL), HF_ERR_MISUSE, "hf_depot_write_wait needs a write");
    REFUSED(hf_depot_invalidate(NULL, key), HF_ERR_MISUSE, "hf_depot_invalidate needs a depot");
    REFUSED(hf_depot_invalidate_namespace(NULL, "ns"), HF_ERR_MISUSE, "hf_depot_invalidate_namespace needs a depot");
    REFUSED(hf_depot_invalidate_all(NULL), HF_ERR_MISUSE, "hf_depot_invalidate_all needs a depot");
    REFUSED(hf_depot_trim(NULL, 0), HF_ERR_MISUSE, "hf_depot_trim needs a depot");
    REFUSED(hf_depot_online(NULL, true), HF_ERR_MISUSE, "hf_depot_online needs a depot");
    REFUSED(hf_depot_stat(NULL, &counts), HF_ERR_MISUSE, "hf_depot_stat needs a depot");
    REFUSED(hf_depot_events(NULL, NULL), HF_ERR_MISUSE, "hf_depot_events needs a depot");
    REFUSED(hf_depot_pending(NULL, NULL, NULL), HF_ERR_MISUSE, "hf_depot_pending needs a depot");
    REFUSED(hf_depot_retry(NULL, 1), HF_ERR_MISUSE, "hf_depot_retry needs a depot");
    REFUSED(hf_depot_drop(NULL, 1), HF_ERR_MISUSE, "hf_depot_drop needs a depot");
    REFUSED(hf_depot_drive(NULL, NULL), HF_ERR_MISUSE, "hf_depot_drive needs a depot");
    REFUSED(hf_depot_undrive(NULL), HF_ERR_MISUSE, "hf_depot_undrive needs a depot");
    REFUSED(hf_depot_watch(NULL, key, &watcher), HF_ERR_MISUSE, "hf_depot_watch needs a depot");
    REFUSED(hf_watcher_next(NULL, &event), HF_ERR_MISUSE, "needs a watcher");
    REFUSED(hf_reply_value(NULL, "x", 1), HF_ERR_MISUSE, "hf_reply_value needs the reply");
    REFUSED(hf_reply_not_modified(NULL), HF_ERR_MISUSE, "hf_reply_not_modified needs the reply");
    REFUSED(hf_reply_etag(NULL, "x"), HF_ERR_MISUSE, "hf_reply_etag needs the reply");
    REFUSED(hf_reply_last_modified(NULL, "x"), HF_ERR_MISUSE, "hf_reply_last_modified needs the reply");
    REFUSED(hf_reply_revision(NULL, 1), HF_ERR_MISUSE, "hf_reply_revision needs the reply");
    REFUSED(hf_reply_key(NULL, key), HF_ERR_MISUSE, "hf_reply_key needs the reply");
    REFUSED(hf_reply_max_age(NULL, hf_seconds(1)), HF_ERR_MISUSE, "hf_reply_max_age needs the reply");
    REFUSED(hf_reply_fail(NULL, HF_REPLY_UNKNOWN), HF_ERR_MISUSE, "hf_reply_fail needs the reply");
    HF_CHECK(hf_depot_close(NULL) == HF_OK && hf_watcher_close(NULL) == HF_OK && hf_watcher_dropped(NULL) == 0);
    hf_depot_write_free(NULL);
    return HF_OK;
}

static void no_depot_and_no_reply_is_misuse(void **state)
{
    (void)state;
    simulated_and_on_threads("no depot", 10, no_depot);
    HF_CHECK(no_depot(NULL) == HF_OK); /* a plain thread */
}

static hf_status fetch_nothing(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_ERR_NOT_FOUND;
}

static hf_status odd_options_of_a_depot(void)
{
    hf_depot *depot = NULL;
    REFUSED(hf_depot_open(NULL, &depot), HF_ERR_MISUSE, "needs a name");
    REFUSED(hf_depot_open("d", &depot, .ttl = hf_seconds(-7)), HF_ERR_INVALID, ".ttl is negative");
    REFUSED(hf_depot_open("d", &depot, .fetch_timeout = HF_SPAN_OFF), HF_ERR_INVALID, ".fetch_timeout is negative");
    REFUSED(hf_depot_open("d", &depot, .value_max = INT64_C(1) << 40), HF_ERR_INVALID, ".value_max is");
    REFUSED(hf_depot_open("d", &depot, .fetch_max = HF_OFF), HF_ERR_INVALID, ".fetch_max is -1");
    REFUSED(hf_depot_open("d", &depot, .attempts_max = -7), HF_ERR_INVALID, ".attempts_max");
    REFUSED(hf_depot_open("d", &depot, .on_conflict = HF_CONFLICT_MERGE), HF_ERR_INVALID, "needs .merge");
    REFUSED(hf_depot_open("d", &depot, .file = "nonsense"), HF_ERR_INVALID, "nonsense");
    REFUSED(hf_depot_open("d", &depot, .batch_window = hf_seconds(1)), HF_ERR_INVALID, "needs .fetch_many");
    REFUSED(hf_depot_open("d", &depot, .subscribe = fetch_nothing, .fetch = fetch_nothing), HF_ERR_INVALID,
            ".subscribe is used instead");
    REFUSED(hf_depot_open("d", &depot, .source = &(hf_source_hooks){NULL}), HF_ERR_INVALID, "read, write and scan");
    REFUSED(hf_depot_open("d", &depot, .source = &(hf_source_hooks){NULL}, .file = "sqlite:d"), HF_ERR_INVALID,
            "not both");
    HF_CHECK(depot == NULL);
    return HF_OK;
}

static hf_status push_nothing(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_OK;
}

static hf_status odd_calls_of_a_depot(void *arg)
{
    (void)arg;
    HF_TRY(odd_options_of_a_depot());
    char text[HF_ETAG_LEN_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hf_depot_key key = hf_depot_key_of("ns", "type", "id");
    hf_value *value = NULL;
    hf_watcher *watcher = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("depot", &depot, .push = push_nothing, .value_max = 8));
    REFUSED(hf_depot_get(depot, hf_depot_key_of("", "type", "id"), &value), HF_ERR_INVALID, "namespace of a key");
    REFUSED(hf_depot_get(depot, hf_depot_key_of("ns", text, "id"), &value), HF_ERR_INVALID, "type of a key");
    REFUSED(hf_depot_get(depot, hf_depot_key_of("ns", "type", NULL), &value), HF_ERR_INVALID, "id of a key");
    REFUSED(hf_depot_get(depot, key, NULL), HF_ERR_MISUSE, "a place for the value");
    REFUSED(hf_depot_get(depot, key, &value, .fresh = (hf_fresh)7), HF_ERR_INVALID, "7 is not a freshness");
    REFUSED(hf_depot_get(depot, key, &value, .within = hf_seconds(-7)), HF_ERR_INVALID, ".within is negative");
    REFUSED(hf_depot_get(depot, key, &value, .urgency = (hf_urgency)7), HF_ERR_INVALID, "7 is not an urgency");
    hf_depot_result result;
    REFUSED(hf_depot_get_many(depot, NULL, 1, &result), HF_ERR_MISUSE, "needs keys");
    REFUSED(hf_depot_get_many(depot, &key, 1, NULL), HF_ERR_MISUSE, "a place for the results");
    REFUSED(hf_depot_get_many(depot, &key, HF_DEPOT_MANY_MAX + 1, &result), HF_ERR_LIMIT, "4097 keys");
    REFUSED(hf_depot_get_many(depot, &key, 1, &result, .fresh = (hf_fresh)7), HF_ERR_INVALID, "7 is not a freshness");
    REFUSED(hf_depot_put_value(depot, key, NULL), HF_ERR_MISUSE, ".encode");
    REFUSED(hf_depot_changed(depot, hf_depot_key_of("", "type", "id")), HF_ERR_INVALID, "namespace of a key");
    REFUSED(hf_depot_prefetch(depot, hf_depot_key_of(NULL, "type", "id")), HF_ERR_INVALID, "namespace of a key");
    REFUSED(hf_depot_put(depot, key, NULL, 1), HF_ERR_MISUSE, "hf_depot_put");
    REFUSED(hf_depot_put(depot, key, "123456789", 9), HF_ERR_TOO_BIG, "9 bytes");
    REFUSED(hf_depot_put(depot, key, "x", 1, .mode = (hf_depot_mode)7), HF_ERR_INVALID, ".mode");
    REFUSED(hf_depot_put(depot, key, "x", 1, .if_match = text), HF_ERR_INVALID, ".if_match");
    REFUSED(hf_depot_put(depot, key, "x", 1, .on_conflict = HF_CONFLICT_MERGE), HF_ERR_MISUSE, ".merge");
    REFUSED(hf_depot_patch(depot, key, "x", 1), HF_ERR_MISUSE, ".apply");
    REFUSED(hf_depot_invalidate_namespace(depot, NULL), HF_ERR_INVALID, "namespace");
    REFUSED(hf_depot_trim(depot, -7), HF_ERR_INVALID, "-7 bytes");
    REFUSED(hf_depot_stat(depot, NULL), HF_ERR_MISUSE, "a place for the counts");
    REFUSED(hf_depot_events(depot, NULL), HF_ERR_MISUSE, "a place for the collector");
    REFUSED(hf_depot_pending(depot, NULL, NULL), HF_ERR_MISUSE, "a function");
    REFUSED(hf_depot_retry(depot, 7), HF_ERR_NOT_FOUND, "7");
    REFUSED(hf_depot_watch(depot, key, NULL), HF_ERR_MISUSE, "a place for the watcher");
    REFUSED(hf_depot_watch(depot, key, &watcher, .mode = (hf_flow_mode)77), HF_ERR_INVALID, ".mode");
    REFUSED(hf_depot_watch(depot, key, &watcher, .refresh = hf_seconds(-7)), HF_ERR_INVALID, ".refresh");
    HF_TRY(hf_depot_watch(depot, key, &watcher));
    REFUSED(hf_watcher_next(watcher, NULL), HF_ERR_MISUSE, "a place for the event");
    HF_CHECK(value == NULL);
    return hf_watcher_close(watcher);
}

static void a_depot_refuses_odd_arguments_in_sentences(void **state)
{
    (void)state;
    simulated_and_on_threads("odd depot", 10, odd_calls_of_a_depot);
}

/* ---- The simulator ------------------------------------------------------------------------------------------------- */

static void the_simulator_refuses_in_sentences(void **state)
{
    (void)state;
    HF_AUTO(hf_sim_free) hf_env *env = NULL;
    char *bytes = NULL;
    REFUSED(hf_sim_new(NULL), HF_ERR_MISUSE, "a place for the environment");
    REFUSED(hf_sim_new(&env, .reset_permille = 1001), HF_ERR_INVALID, "reset_permille");
    REFUSED(hf_sim_new(&env, .latency_max = hf_hours(2)), HF_ERR_INVALID, "latency_max");
    REFUSED(hf_sim_new_with(&env, &(hf_sim_options){.seed = 1}), HF_ERR_MISUSE, ".size");
    HF_CHECK(env == NULL && hf_sim_new(&env, .seed = 1) == HF_OK);
    REFUSED(hf_sim_file_put(NULL, "/a", "x", 1), HF_ERR_MISUSE, "a simulated environment");
    REFUSED(hf_sim_file_put(env, NULL, "x", 1), HF_ERR_MISUSE, "a path");
    REFUSED(hf_sim_file_get(env, "/a", NULL, NULL), HF_ERR_MISUSE, "a place for the bytes");
    REFUSED(hf_sim_file_get(env, "/a", &bytes, NULL), HF_ERR_NOT_FOUND, "/a");
    HF_CHECK(strcmp(hf_error()->where, "hf_sim_file_get") == 0);
    REFUSED(hf_sim_restart(NULL), HF_ERR_MISUSE, "a simulated environment");
    REFUSED(hf_sim_raise(NULL, SIGTERM), HF_ERR_MISUSE, "a simulated environment");
    REFUSED(hf_sim_raise(env, 0), HF_ERR_INVALID, "0 is not a signal");
    REFUSED(hf_sim_raise(env, SIGTERM), HF_ERR_NOT_FOUND, "nobody has signal 15 open");
}

static hf_status take_signal(void *arg)
{
    int number = SIGTERM;
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    HF_TRY(hf_os_signals_open(&number, 1, &signals));
    number = 0;
    HF_TRY(hf_sim_raise(arg, SIGTERM));
    HF_TRY(hf_os_signals_next(signals, &number));
    HF_CHECK(number == SIGTERM);
    hf_status status = HF_OK;
    for (int i = 0; i < 100000 && status == HF_OK; i++) {
        status = hf_sim_raise(arg, SIGTERM);
    }
    HF_CHECK(status == HF_ERR_LIMIT && error_says("wait to be read already"));
    return HF_OK;
}

static void a_raised_signal_arrives_where_it_is_open(void **state)
{
    (void)state;
    HF_AUTO(hf_sim_free) hf_env *env = NULL;
    HF_CHECK(hf_sim_new(&env, .seed = 7) == HF_OK);
    HF_CHECK(hf_run(take_signal, env, .env = env, .threads = 2) == HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(no_place_for_the_result_is_misuse),
        cmocka_unit_test(no_place_for_a_value_or_a_collector_is_misuse),
        cmocka_unit_test(accessors_take_no_object_for_nothing),
        cmocka_unit_test(a_stack_over_256_k_is_refused),
        cmocka_unit_test(a_negative_bound_of_children_is_refused),
        cmocka_unit_test(negative_figures_are_refused),
        cmocka_unit_test(a_port_over_65535_is_named),
        cmocka_unit_test(no_depot_and_no_reply_is_misuse),
        cmocka_unit_test(a_depot_refuses_odd_arguments_in_sentences),
        cmocka_unit_test(the_simulator_refuses_in_sentences),
        cmocka_unit_test(a_raised_signal_arrives_where_it_is_open),
    };
    return hf_test_main("arguments", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
