// The same in C++: every verb with options, without them, with an options struct filled by hand (C++11 and later), and with
// designated initialisers (C++20). Compiled as C++11, C++17 and C++20 with all warnings as errors, and run. Its one
// argument is a folder that it may write to. tools/check_verbs.sh counts the calls.
#include <holdfast/holdfast.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#define EXPECT(what)                                                        \
    do {                                                                    \
        if (!(what)) {                                                      \
            return hf_raise(HF_ERR_FAILED, "line %d: %s", __LINE__, #what); \
        }                                                                   \
    } while (0)

namespace
{

std::string folder;

// Waits that end at once, and waits that are long enough.
hf_wait_options soon()
{
    hf_wait_options options = hf_wait_options();
    options.timeout = hf_milliseconds(1);
    return options;
}

hf_wait_options patient()
{
    hf_wait_options options = hf_wait_options();
    options.timeout = hf_seconds(30);
    return options;
}

const hf_wait_options soon_options = soon();
const hf_wait_options patient_options = patient();

hf_status nothing(void *)
{
    return HF_OK;
}

hf_status add_one(void *arg)
{
    ++*static_cast<int *>(arg);
    return HF_OK;
}

hf_status use_scopes()
{
    int count = 0;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, add_one, &count));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_scope_cancel(scope));
    }
    {
        hf_scope_options scope_options = hf_scope_options();
        scope_options.name = "named";
        scope_options.join = HF_JOIN_COLLECT;
        hf_fork_options fork_options = hf_fork_options();
        fork_options.name = "child";
        hf_scope_cancel_options cancel_options = hf_scope_cancel_options();
        cancel_options.reason = "enough";
        HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
        HF_TRY(hf_scope_open(&scope, scope_options));
        HF_TRY(hf_fork(scope, add_one, &count, fork_options));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_scope_cancel(scope, cancel_options));
    }
#if __cplusplus >= 202002L
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
        HF_TRY(hf_scope_open(&scope, {.name = "named", .timeout = hf_minutes(1)}));
        HF_TRY(hf_fork(scope, add_one, &count, {.name = "child"}));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_scope_cancel(scope, {.reason = "enough"}));
    }
    count--;
#endif
    EXPECT(count == 2);
    return HF_OK;
}

hf_status use_channels()
{
    int value = 7;
    size_t taken = 9;
    HF_AUTO(hf_chan_free) hf_chan *rendezvous = nullptr;
    HF_AUTO(hf_chan_free) hf_chan *buffered = nullptr;
    hf_chan_options chan_options = hf_chan_options();
    chan_options.capacity = 2;
    HF_TRY(hf_chan_new(sizeof value, &rendezvous));
    HF_TRY(hf_chan_new(sizeof value, &buffered, chan_options));
    HF_TRY(hf_chan_send(buffered, &value));
    HF_TRY(hf_chan_send(buffered, &value, patient_options));
    HF_TRY(hf_chan_recv(buffered, &value));
    EXPECT(hf_chan_recv(rendezvous, &value, soon_options) == HF_ERR_TIMEOUT);
    hf_case cases[1] = {hf_case()};
    cases[0].kind = HF_CASE_RECV;
    cases[0].chan = buffered;
    cases[0].value = &value;
    HF_TRY(hf_select(cases, 1, &taken));
    EXPECT(hf_select(cases, 1, &taken, soon_options) == HF_ERR_TIMEOUT);
#if __cplusplus >= 202002L
    HF_AUTO(hf_chan_free) hf_chan *another = nullptr;
    HF_TRY(hf_chan_new(sizeof value, &another, {.name = "another", .capacity = 1}));
    HF_TRY(hf_chan_send(another, &value, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_chan_recv(another, &value, {.timeout = hf_seconds(30)}));
    EXPECT(hf_select(cases, 1, &taken, {.timeout = hf_milliseconds(1)}) == HF_ERR_TIMEOUT);
#endif
    EXPECT(value == 7 && taken == 0);
    return HF_OK;
}

struct gate {
    hf_mutex *mutex;
    hf_cond *cond;
    bool open;
};

hf_status open_gate(void *arg)
{
    gate *g = static_cast<gate *>(arg);
    HF_TRY(hf_mutex_lock(g->mutex));
    g->open = true;
    HF_TRY(hf_cond_broadcast(g->cond));
    return hf_mutex_unlock(g->mutex);
}

hf_status use_gate(gate *g)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_mutex_lock(g->mutex, patient_options));
    EXPECT(hf_cond_wait(g->cond, g->mutex, soon_options) == HF_ERR_TIMEOUT);
    HF_TRY(hf_fork(scope, open_gate, g));
    while (!g->open) {
        HF_TRY(hf_cond_wait(g->cond, g->mutex));
    }
    HF_TRY(hf_mutex_unlock(g->mutex));
#if __cplusplus >= 202002L
    HF_TRY(hf_join(scope));
    HF_TRY(hf_mutex_lock(g->mutex, {.timeout = hf_seconds(30)}));
    EXPECT(hf_cond_wait(g->cond, g->mutex, {.timeout = hf_milliseconds(1)}) == HF_ERR_TIMEOUT);
    return hf_mutex_unlock(g->mutex);
#else
    return hf_join(scope);
#endif
}

hf_status use_mutexes()
{
    hf_sync_options sync_options = hf_sync_options();
    sync_options.name = "named";
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = nullptr;
    HF_AUTO(hf_mutex_free) hf_mutex *named_mutex = nullptr;
    HF_AUTO(hf_cond_free) hf_cond *cond = nullptr;
    HF_AUTO(hf_cond_free) hf_cond *named_cond = nullptr;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_mutex_new(&named_mutex, sync_options));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_cond_new(&named_cond, sync_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_mutex_free) hf_mutex *third_mutex = nullptr;
    HF_AUTO(hf_cond_free) hf_cond *third_cond = nullptr;
    HF_TRY(hf_mutex_new(&third_mutex, {.name = "third"}));
    HF_TRY(hf_cond_new(&third_cond, {.name = "third"}));
#endif
    gate g = {mutex, named_cond, false};
    return use_gate(&g);
}

hf_status use_semaphores()
{
    int count = 0;
    hf_sync_options sync_options = hf_sync_options();
    sync_options.name = "named";
    HF_AUTO(hf_sem_free) hf_sem *sem = nullptr;
    HF_AUTO(hf_sem_free) hf_sem *named_sem = nullptr;
    HF_AUTO(hf_once_free) hf_once *once = nullptr;
    HF_AUTO(hf_once_free) hf_once *named_once = nullptr;
    HF_TRY(hf_sem_new(2, &sem));
    HF_TRY(hf_sem_new(1, &named_sem, sync_options));
    HF_TRY(hf_sem_acquire(sem, 2));
    EXPECT(hf_sem_acquire(sem, 1, soon_options) == HF_ERR_TIMEOUT);
    HF_TRY(hf_once_new(&once));
    HF_TRY(hf_once_new(&named_once, sync_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_sem_free) hf_sem *third_sem = nullptr;
    HF_AUTO(hf_once_free) hf_once *third_once = nullptr;
    HF_TRY(hf_sem_new(1, &third_sem, {.name = "third"}));
    HF_TRY(hf_sem_acquire(third_sem, 1, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_sem_release(third_sem, 1));
    HF_TRY(hf_once_new(&third_once, {.name = "third"}));
#endif
    HF_TRY(hf_sem_release(sem, 2));
    HF_TRY(hf_once_run(once, add_one, &count));
    EXPECT(count == 1);
    return HF_OK;
}

hf_status make_value(void *arg, hf_value **ret_value)
{
    return hf_value_copy(arg, std::strlen(static_cast<const char *>(arg)), ret_value);
}

hf_status use_key_locks()
{
    hf_keylock_options keylock_options = hf_keylock_options();
    keylock_options.idle_max = HF_OFF;
    hf_key_guard *guard = nullptr;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = nullptr;
    HF_AUTO(hf_keylock_free) hf_keylock *named_keylock = nullptr;
    HF_TRY(hf_keylock_new(&keylock));
    HF_TRY(hf_keylock_new(&named_keylock, keylock_options));
    HF_TRY(hf_keylock_lock(keylock, "a", 1, &guard));
    HF_TRY(hf_key_unlock(guard));
    HF_TRY(hf_keylock_lock(named_keylock, "a", 1, &guard, patient_options));
    HF_TRY(hf_key_unlock(guard));
#if __cplusplus >= 202002L
    HF_AUTO(hf_keylock_free) hf_keylock *third_keylock = nullptr;
    HF_TRY(hf_keylock_new(&third_keylock, {.name = "third"}));
    HF_TRY(hf_keylock_lock(third_keylock, "a", 1, &guard, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_key_unlock(guard));
#endif
    return HF_OK;
}

hf_status use_flights()
{
    char text[] = "value";
    HF_AUTO(hf_cache_free) hf_cache *cache = nullptr;
    HF_AUTO(hf_cache_free) hf_cache *small_cache = nullptr;
    hf_cache_options cache_options = hf_cache_options();
    cache_options.count_max = 1;
    HF_TRY(hf_cache_new(&cache));
    HF_TRY(hf_cache_new(&small_cache, cache_options));

    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    hf_flight_options flight_options = hf_flight_options();
    flight_options.scope = scope;
    HF_AUTO(hf_flight_free) hf_flight *flight = nullptr;
    HF_AUTO(hf_value_unref) hf_value *value = nullptr;
    EXPECT(hf_flight_new(&flight) != HF_OK); // the scope is required
    HF_TRY(hf_flight_new(&flight, flight_options));
    HF_TRY(hf_flight_run(flight, "k", 1, make_value, text, nullptr));
    HF_TRY(hf_flight_run(flight, "k", 1, make_value, text, &value, patient_options));
    EXPECT(hf_value_len(value) == 5);
#if __cplusplus >= 202002L
    HF_AUTO(hf_cache_free) hf_cache *third_cache = nullptr;
    HF_AUTO(hf_flight_free) hf_flight *third_flight = nullptr;
    HF_TRY(hf_cache_new(&third_cache, {.name = "third", .count_max = 3}));
    HF_TRY(hf_flight_new(&third_flight, {.name = "third", .scope = scope}));
    HF_TRY(hf_flight_run(third_flight, "k", 1, make_value, text, nullptr, {.timeout = hf_seconds(30)}));
#endif
    return hf_cache_put(small_cache, "k", 1, value, nullptr);
}

hf_status count_to_three(void *, hf_emitter *emitter)
{
    for (int i = 1; i <= 3; i++) {
        HF_TRY(hf_emit(emitter, &i));
    }
    return HF_OK;
}

hf_status add_up(void *ctx, const void *value)
{
    *static_cast<int *>(ctx) += *static_cast<const int *>(value);
    return HF_OK;
}

hf_status use_flows()
{
    int sum = 0;
    hf_flow_options flow_options = hf_flow_options();
    flow_options.source = count_to_three;
    hf_flow_collect_options collect_options = hf_flow_collect_options();
    collect_options.capacity = 4;
    HF_AUTO(hf_flow_free) hf_flow *cold = nullptr;
    HF_TRY(hf_flow_new(sizeof(int), &cold, flow_options));
    HF_TRY(hf_flow_collect(cold, add_up, &sum));
    HF_TRY(hf_flow_collect(cold, add_up, &sum, collect_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_flow_free) hf_flow *third_flow = nullptr;
    HF_TRY(hf_flow_new(sizeof(int), &third_flow, {.name = "third", .source = count_to_three}));
    HF_TRY(hf_flow_collect(third_flow, add_up, &sum, {.mode = HF_FLOW_BUFFER, .capacity = 2}));
    sum -= 6;
#endif
    EXPECT(sum == 12);
    return HF_OK;
}

hf_status use_collectors()
{
    int value = 5;
    hf_collector_options collect_options = hf_collector_options();
    collect_options.mode = HF_FLOW_CONFLATE;
    HF_AUTO(hf_flow_free) hf_flow *hot = nullptr;
    HF_TRY(hf_flow_new(sizeof(int), &hot));
    HF_AUTO(hf_collector_close) hf_collector *slow = nullptr;
    HF_AUTO(hf_collector_close) hf_collector *latest = nullptr;
    HF_TRY(hf_collector_open(hot, &slow));
    HF_TRY(hf_collector_open(hot, &latest, collect_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_collector_close) hf_collector *third = nullptr;
    HF_TRY(hf_collector_open(hot, &third, {.mode = HF_FLOW_DROP_OLDEST, .capacity = 2}));
#endif
    HF_TRY(hf_flow_emit(hot, &value));
    value = 0;
    HF_TRY(hf_collector_next(slow, &value));
    EXPECT(value == 5);
    HF_TRY(hf_collector_next(latest, &value, patient_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_collector_next(third, &value, {.timeout = hf_seconds(30)}));
#endif
    return HF_OK;
}

// An origin that knows every key but "none", and accepts every write.
hf_status fetch_user(void *, const hf_fetch_request *request, hf_reply *reply)
{
    std::string id(static_cast<const char *>(request->key.id), request->key.id_len);
    hf_reply_fail_options fail_options = hf_reply_fail_options();
    fail_options.http_status = 403;
    if (id == "none") {
        return hf_reply_fail(reply, HF_REPLY_NOT_FOUND);
    }
    if (id == "denied") {
        return hf_reply_fail(reply, HF_REPLY_ORIGIN, fail_options);
    }
#if __cplusplus >= 202002L
    if (id == "third") {
        return hf_reply_fail(reply, HF_REPLY_ORIGIN, {.http_status = 403});
    }
#endif
    return hf_reply_value(reply, "ann", 3);
}

hf_status push_user(void *, const hf_push_request *request, hf_reply *reply)
{
    EXPECT(request->attempt >= 1);
    if (request->verb == HF_WRITE_CREATE) {
        HF_TRY(hf_reply_key(reply, hf_depot_key_of("acme", "user", "43")));
        HF_TRY(hf_reply_revision(reply, 1));
    }
    return hf_reply_etag(reply, "e2");
}

hf_status replace(void *, const hf_value *, const void *patch, size_t len, hf_value **ret_value)
{
    return hf_value_copy(patch, len, ret_value);
}

hf_status encode_user(void *, const hf_value *object, hf_value **ret_bytes)
{
    return hf_value_copy(hf_value_data(object), hf_value_len(object), ret_bytes);
}

hf_status get_users(hf_depot *users, hf_depot_key key)
{
    hf_depot_result result;
    hf_depot_get_many_options many_options = hf_depot_get_many_options();
    many_options.fresh = HF_FRESH_NOW;
    HF_TRY(hf_depot_get_many(users, &key, 1, &result));
    HF_TRY(result.status);
    hf_value_unref(result.value);
    HF_TRY(hf_depot_get_many(users, &key, 1, &result, many_options));
    HF_TRY(result.status);
    HF_AUTO(hf_value_unref) hf_value *user = result.value;
    hf_depot_write_options write_options = hf_depot_write_options();
    write_options.mode = HF_DEPOT_ORIGIN_FIRST;
    HF_TRY(hf_depot_put_value(users, key, user));
    HF_TRY(hf_depot_put_value(users, key, user, write_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_depot_get_many(users, &key, 1, &result, {.fresh = HF_FRESH_LOCAL}));
    hf_value_unref(result.value);
    HF_TRY(hf_depot_put_value(users, key, user, {.mode = HF_DEPOT_ORIGIN_FIRST}));
#endif
    return hf_depot_changed(users, key);
}

hf_status write_users(hf_depot *users, hf_depot_key key)
{
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = nullptr;
    hf_depot_write_options write_options = hf_depot_write_options();
    write_options.mode = HF_DEPOT_ORIGIN_FIRST;
    hf_depot_write_options kept_options = hf_depot_write_options();
    kept_options.ret_write = &write;
    HF_TRY(hf_depot_put(users, key, "bob", 3));
    HF_TRY(hf_depot_put(users, key, "bob", 3, write_options));
    HF_TRY(hf_depot_patch(users, key, "eve", 3));
    HF_TRY(hf_depot_patch(users, key, "eve", 3, kept_options));
    HF_TRY(hf_depot_write_wait(write));
    HF_TRY(hf_depot_write_wait(write, patient_options));
    hf_depot_id id;
    HF_TRY(hf_depot_create(users, hf_depot_key_of("acme", "user", nullptr), "dan", 3, &id));
    EXPECT(id.len == 27 && id.bytes[0] == '~');
    HF_TRY(hf_depot_create(users, hf_depot_key_of("acme", "user", nullptr), "dan", 3, &id, write_options));
    EXPECT(id.len == 2);
    HF_TRY(hf_depot_write_key(write, &id));
    EXPECT(id.len == key.id_len);
    HF_TRY(hf_depot_delete(users, key));
    HF_TRY(hf_depot_delete(users, key, write_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_depot_put(users, key, "bob", 3, {.mode = HF_DEPOT_ORIGIN_FIRST}));
    HF_TRY(hf_depot_patch(users, key, "eve", 3, {.mode = HF_DEPOT_ORIGIN_FIRST}));
    HF_TRY(hf_depot_write_wait(write, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_depot_delete(users, key, {.mode = HF_DEPOT_ORIGIN_FIRST}));
    HF_TRY(hf_depot_create(users, hf_depot_key_of("acme", "user", nullptr), "dan", 3, &id,
                           {.mode = HF_DEPOT_ORIGIN_FIRST}));
#endif
    return HF_OK;
}

hf_status watch_users(hf_depot *users, hf_depot_key key)
{
    hf_depot_event event;
    hf_depot_watch_options watch_options = hf_depot_watch_options();
    watch_options.fresh = HF_FRESH_LOCAL;
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = nullptr;
    HF_AUTO(hf_watcher_close) hf_watcher *local = nullptr;
    HF_TRY(hf_depot_watch(users, key, &watcher));
    HF_TRY(hf_depot_watch(users, key, &local, watch_options));
    HF_TRY(hf_watcher_next(watcher, &event));
    EXPECT(event.kind == HF_DEPOT_DATA);
    hf_value_unref(event.value);
    HF_TRY(hf_watcher_next(local, &event, patient_options));
    hf_value_unref(event.value);
#if __cplusplus >= 202002L
    HF_AUTO(hf_watcher_close) hf_watcher *third = nullptr;
    HF_TRY(hf_depot_watch(users, key, &third, {.mode = HF_FLOW_DROP_OLDEST, .capacity = 2}));
    HF_TRY(hf_watcher_next(third, &event, {.timeout = hf_seconds(30)}));
    hf_value_unref(event.value);
#endif
    return HF_OK;
}

hf_status listen_to_users(hf_depot *users, hf_depot_key key)
{
    HF_AUTO(hf_collector_close) hf_collector *events = nullptr;
    hf_depot_news news;
    HF_TRY(hf_depot_events(users, &events));
    HF_TRY(hf_depot_invalidate(users, key));
    HF_TRY(hf_collector_next(events, &news, patient_options));
    EXPECT(news.kind == HF_NEWS_INVALIDATED && strcmp(hf_depot_news_name(news.kind), "invalidated") == 0);
    return HF_OK;
}

hf_status invalidate_users(hf_depot *users, hf_depot_key key)
{
    hf_depot_invalidate_options invalidate_options = hf_depot_invalidate_options();
    invalidate_options.hard = true;
    HF_TRY(hf_depot_invalidate(users, key));
    HF_TRY(hf_depot_invalidate(users, key, invalidate_options));
    HF_TRY(hf_depot_invalidate_namespace(users, "acme"));
    HF_TRY(hf_depot_invalidate_namespace(users, "acme", invalidate_options));
    HF_TRY(hf_depot_invalidate_all(users));
    HF_TRY(hf_depot_invalidate_all(users, invalidate_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_depot_invalidate(users, key, {.hard = true}));
    HF_TRY(hf_depot_invalidate_namespace(users, "acme", {.hard = true}));
    HF_TRY(hf_depot_invalidate_all(users, {.hard = true}));
#endif
    return HF_OK;
}

hf_status drive_users(hf_depot *users)
{
    hf_depot_memo_options memo_options = hf_depot_memo_options();
    memo_options.ttl = hf_hours(1);
    hf_depot_drive_options drive_options = hf_depot_drive_options();
    drive_options.queue = "sends";
    HF_AUTO(hf_close) hf_service *service = nullptr;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = nullptr;
    hf_memo plain = hf_depot_memo(users);
    EXPECT(plain.state == users);
    hf_memo kept = hf_depot_memo(users, memo_options);
    EXPECT(kept.state == users);
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_depot_drive(users, service));
    hf_depot_write_options waited_options = hf_depot_write_options();
    waited_options.ret_write = &write;
    HF_TRY(hf_depot_put(users, hf_depot_key_of("acme", "user", "9"), "joe", 3, waited_options));
    HF_TRY(hf_depot_write_wait(write, patient_options));
    HF_TRY(hf_depot_undrive(users));
    HF_TRY(hf_depot_drive(users, service, drive_options));
    HF_TRY(hf_depot_undrive(users));
#if __cplusplus >= 202002L
    hf_memo named = hf_depot_memo(users, {.ttl = hf_hours(1)});
    EXPECT(named.state == users);
    HF_TRY(hf_depot_drive(users, service, {.queue = "others"}));
    HF_TRY(hf_depot_undrive(users));
#endif
    return HF_OK;
}

// A list of users that comes with them, and the pages of another one.
hf_status fetch_list(void *, const hf_fetch_request *request, hf_reply *reply)
{
    hf_depot_key keys[] = {hf_depot_key_of("acme", "user", "1"), hf_depot_key_of("acme", "user", "2")};
    hf_reply_add_options add_options = hf_reply_add_options();
    add_options.etag = "e3";
    HF_TRY(hf_reply_add(reply, keys[0], "ann", 3));
    HF_TRY(hf_reply_add(reply, keys[1], "bob", 3, add_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_reply_add(reply, keys[1], "bob", 3, {.max_age = hf_minutes(1)}));
#endif
    if (std::string(request->key.type) == "list") {
        return hf_reply_list(reply, keys, 2);
    }
    hf_page_item items[] = {{keys[0], nullptr}, {keys[1], "t"}};
    hf_reply_page_options page_options = hf_reply_page_options();
    page_options.after = "t";
    if (request->page == HF_PAGE_INITIAL) {
        return hf_reply_page(reply, items, 1, page_options);
    }
#if __cplusplus >= 202002L
    HF_TRY(hf_reply_page(reply, items, 1, {.before = "b"}));
#endif
    return hf_reply_page(reply, items + 1, 1);
}

hf_status use_lists(hf_depot *lists)
{
    hf_depot_key key = hf_depot_key_of("acme", "list", "all");
    hf_depot_list_options list_options = hf_depot_list_options();
    list_options.members = HF_FRESH_LOCAL;
    hf_depot_watch_options watch_options = hf_depot_watch_options();
    watch_options.fresh = HF_FRESH_LOCAL;
    HF_AUTO(hf_items_free) hf_items *items = nullptr;
    HF_AUTO(hf_items_free) hf_items *local = nullptr;
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = nullptr;
    HF_AUTO(hf_watcher_close) hf_watcher *second = nullptr;
    HF_TRY(hf_depot_list(lists, key, &items));
    HF_TRY(hf_depot_list(lists, key, &local, list_options));
    EXPECT(hf_items_count(items) == 2 && hf_items_at(local, 1)->value != nullptr);
    HF_TRY(hf_depot_list_watch(lists, key, &watcher));
    HF_TRY(hf_depot_list_watch(lists, key, &second, watch_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_items_free) hf_items *third_items = nullptr;
    HF_AUTO(hf_watcher_close) hf_watcher *third = nullptr;
    HF_TRY(hf_depot_list(lists, key, &third_items, {.fresh = HF_FRESH_LOCAL}));
    HF_TRY(hf_depot_list_watch(lists, key, &third, {.fresh = HF_FRESH_LOCAL}));
#endif
    return HF_OK;
}

hf_status use_pages(hf_depot *lists)
{
    hf_depot_key key = hf_depot_key_of("acme", "feed", "all");
    hf_pages_view view;
    hf_pages_options pages_options = hf_pages_options();
    pages_options.page_size = 1;
    hf_pages_load_options load_options = hf_pages_load_options();
    load_options.timeout = hf_seconds(30);
    HF_AUTO(hf_pages_close) hf_pages *pages = nullptr;
    HF_AUTO(hf_pages_close) hf_pages *other = nullptr;
    HF_TRY(hf_pages_open(lists, key, &pages, pages_options));
    HF_TRY(hf_pages_open(lists, key, &other));
    HF_TRY(hf_pages_next(pages, &view));
    hf_items_free(view.items);
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND, load_options));
    HF_TRY(hf_pages_look(pages, &view));
    EXPECT(hf_items_count(view.items) == 2 && view.is_fully_loaded);
    hf_items_free(view.items);
    HF_TRY(hf_pages_next(other, &view, patient_options));
    hf_items_free(view.items);
#if __cplusplus >= 202002L
    HF_AUTO(hf_pages_close) hf_pages *third = nullptr;
    HF_TRY(hf_pages_open(lists, key, &third, {.page_size = 1}));
    HF_TRY(hf_pages_load(third, HF_PAGE_APPEND, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_pages_next(third, &view, {.timeout = hf_seconds(30)}));
    hf_items_free(view.items);
#endif
    return HF_OK;
}

hf_status use_depots()
{
    hf_depot_key key = hf_depot_key_of("acme", "user", "42");
    hf_depot_options depot_options = hf_depot_options();
    depot_options.fetch = fetch_user;
    depot_options.push = push_user;
    depot_options.apply = replace;
    depot_options.encode = encode_user;
    depot_options.coalesce = HF_SPAN_OFF;
    hf_depot_get_options get_options = hf_depot_get_options();
    get_options.fresh = HF_FRESH_NOW;
    HF_AUTO(hf_depot_close) hf_depot *empty = nullptr;
    HF_AUTO(hf_depot_close) hf_depot *users = nullptr;
    HF_AUTO(hf_value_unref) hf_value *user = nullptr;
    hf_value *none = nullptr;
    HF_TRY(hf_depot_open("empty", &empty));
    HF_TRY(hf_depot_open("users", &users, depot_options));
    EXPECT(hf_depot_get(empty, key, &user) == HF_ERR_UNAVAILABLE);
    HF_TRY(hf_depot_get(users, key, &user, get_options));
    EXPECT(hf_value_len(user) == 3);
    EXPECT(hf_depot_get(users, hf_depot_key_of("acme", "user", "none"), &none) == HF_ERR_NOT_FOUND);
    EXPECT(hf_depot_get(users, hf_depot_key_of("acme", "user", "denied"), &none) == HF_ERR_DENIED);
#if __cplusplus >= 202002L
    HF_AUTO(hf_depot_close) hf_depot *third = nullptr;
    HF_TRY(hf_depot_open("third", &third, {.fetch = fetch_user, .ttl = hf_minutes(1)}));
    EXPECT(hf_depot_get(third, hf_depot_key_of("acme", "user", "third"), &none, {.fresh = HF_FRESH_NOW}) ==
           HF_ERR_DENIED);
#endif
    HF_TRY(watch_users(users, key));
    HF_TRY(drive_users(users));
    HF_TRY(listen_to_users(users, key));
    HF_TRY(get_users(users, key));
    HF_TRY(write_users(users, key));
    HF_TRY(invalidate_users(users, key));
    depot_options.fetch = fetch_list;
    HF_AUTO(hf_depot_close) hf_depot *lists = nullptr;
    HF_TRY(hf_depot_open("lists", &lists, depot_options));
    HF_TRY(use_lists(lists));
    return use_pages(lists);
}

hf_status use_dispatchers()
{
    int count = 0;
    hf_dispatcher_options dispatcher_options = hf_dispatcher_options();
    dispatcher_options.name = "named";
    dispatcher_options.limit = 2;
    hf_dispatcher_options serial_options = hf_dispatcher_options();
    serial_options.name = "serial";
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *small_pool = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *view = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *wide_view = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *serial = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *named_serial = nullptr;
    HF_TRY(hf_pool_new(&pool));
    HF_TRY(hf_pool_new(&small_pool, dispatcher_options));
    HF_TRY(hf_pool_view(pool, &view));
    HF_TRY(hf_pool_view(small_pool, &wide_view, dispatcher_options));
    HF_TRY(hf_serial_new(&serial));
    HF_TRY(hf_serial_new(&named_serial, serial_options));
    hf_block_options block_options = hf_block_options();
    block_options.on = view;
    HF_TRY(hf_block(add_one, &count));
    HF_TRY(hf_block(add_one, &count, block_options));
    EXPECT(count == 2);
#if __cplusplus >= 202002L
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *third_pool = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *third_view = nullptr;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *third_serial = nullptr;
    HF_TRY(hf_pool_new(&third_pool, {.name = "third", .limit = 2}));
    HF_TRY(hf_pool_view(third_pool, &third_view, {.limit = 1}));
    HF_TRY(hf_serial_new(&third_serial, {.name = "third"}));
    HF_TRY(hf_block(add_one, &count, {.on = third_view}));
#endif
    return HF_OK;
}

hf_status use_descriptors()
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    hf_status first = hf_fd_wait(ends[1], HF_WRITABLE);
    hf_status second = hf_fd_wait(ends[0], HF_READABLE, soon_options);
#if __cplusplus >= 202002L
    second = hf_fd_wait(ends[0], HF_READABLE, {.timeout = hf_milliseconds(1)});
#endif
    HF_IGNORE(hf_fd_forget(ends[0]));
    HF_IGNORE(hf_fd_forget(ends[1]));
    (void)close(ends[0]);
    (void)close(ends[1]);
    HF_TRY(first);
    EXPECT(second == HF_ERR_TIMEOUT);
    return HF_OK;
}

hf_status greet(void *arg)
{
    hf_connect_options connect_options = hf_connect_options();
    connect_options.timeout = hf_seconds(30);
    HF_AUTO(hf_conn_close) hf_conn *conn = nullptr;
    HF_TRY(hf_conn_open(static_cast<const char *>(arg), &conn, connect_options));
    HF_TRY(hf_conn_write(conn, "he", 2));
    HF_TRY(hf_conn_write(conn, "llo", 3, patient_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_conn_write(conn, "!", 1, {.timeout = hf_seconds(30)}));
#endif
    return HF_OK;
}

hf_status read_greeting(hf_conn *conn)
{
    char text[16] = "";
    size_t len = 0;
    HF_TRY(hf_conn_read(conn, text, 1, &len));
    HF_TRY(hf_conn_read(conn, text, 1, &len, patient_options));
#if __cplusplus >= 202002L
    HF_TRY(hf_conn_read(conn, text + 1, 1, &len, {.timeout = hf_seconds(30)}));
#endif
    EXPECT(len == 1 && text[0] == 'e');
    return HF_OK;
}

hf_status use_network()
{
    std::string path = "unix:" + folder + "/consumer.sock";
    hf_listen_options listen_options = hf_listen_options();
    listen_options.replace = true;
    HF_AUTO(hf_listener_close) hf_listener *tcp = nullptr;
    HF_AUTO(hf_listener_close) hf_listener *local = nullptr;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &tcp));
    HF_TRY(hf_listener_open(path.c_str(), &local, listen_options));
    std::string address = hf_listener_address(tcp);
    HF_AUTO(hf_conn_close) hf_conn *served = nullptr;
    HF_AUTO(hf_conn_close) hf_conn *direct = nullptr;
    HF_AUTO(hf_conn_close) hf_conn *none = nullptr;
    HF_AUTO(hf_scope_close) hf_scope *scope = nullptr;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, greet, &address[0]));
    HF_TRY(hf_listener_accept(tcp, &served));
    HF_TRY(read_greeting(served));
    HF_TRY(hf_conn_open(path.c_str(), &direct));
    EXPECT(hf_listener_accept(tcp, &none, soon_options) == HF_ERR_TIMEOUT);
#if __cplusplus >= 202002L
    HF_AUTO(hf_listener_close) hf_listener *third = nullptr;
    HF_AUTO(hf_conn_close) hf_conn *to_third = nullptr;
    HF_AUTO(hf_conn_close) hf_conn *at_third = nullptr;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &third, {.backlog = 8}));
    HF_TRY(hf_conn_open(hf_listener_address(third), &to_third, {.timeout = hf_seconds(30)}));
    HF_TRY(hf_listener_accept(third, &at_third, {.timeout = hf_seconds(30)}));
#endif
    return hf_join(scope);
}

hf_status use_files()
{
    std::string path = folder + "/consumer.txt";
    hf_io_options io_options = hf_io_options();
    io_options.runtime = hf_runtime_current();
    HF_AUTO(hf_file_close) hf_file *out = nullptr;
    HF_AUTO(hf_file_close) hf_file *in = nullptr;
    HF_TRY(hf_file_open(path.c_str(), HF_FILE_WRITE, &out));
    HF_TRY(hf_file_write(out, "text", 4));
    HF_TRY(hf_file_open(path.c_str(), HF_FILE_READ, &in, io_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_file_close) hf_file *third = nullptr;
    HF_TRY(hf_file_open(path.c_str(), HF_FILE_APPEND, &third, {.runtime = hf_runtime_current()}));
#endif
    char text[8] = "";
    size_t len = 0;
    HF_TRY(hf_file_read(in, text, sizeof text, &len));
    EXPECT(len == 4);
    return HF_OK;
}

hf_status use_signals()
{
    const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP};
    int number = 0;
    hf_io_options io_options = hf_io_options();
    io_options.runtime = hf_runtime_current();
    HF_AUTO(hf_os_signals_close) hf_os_signals *first = nullptr;
    HF_AUTO(hf_os_signals_close) hf_os_signals *second = nullptr;
    HF_TRY(hf_os_signals_open(&numbers[0], 1, &first));
    HF_TRY(hf_os_signals_open(&numbers[1], 1, &second, io_options));
    EXPECT(kill(getpid(), SIGUSR1) == 0);
    HF_TRY(hf_os_signals_next(first, &number));
    EXPECT(number == SIGUSR1);
    EXPECT(hf_os_signals_next(second, &number, soon_options) == HF_ERR_TIMEOUT);
#if __cplusplus >= 202002L
    HF_AUTO(hf_os_signals_close) hf_os_signals *third = nullptr;
    HF_TRY(hf_os_signals_open(&numbers[2], 1, &third, {.runtime = hf_runtime_current()}));
    EXPECT(hf_os_signals_next(third, &number, {.timeout = hf_milliseconds(1)}) == HF_ERR_TIMEOUT);
#endif
    return HF_OK;
}

hf_status use_processes()
{
    const char *const true_argv[] = {"true", nullptr};
    const char *const cat_argv[] = {"cat", nullptr};
    hf_exit end = hf_exit();
    hf_process_options process_options = hf_process_options();
    process_options.in = HF_STDIO_PIPE;
    HF_AUTO(hf_process_close) hf_process *quiet = nullptr;
    HF_AUTO(hf_process_close) hf_process *cat = nullptr;
    HF_TRY(hf_process_start(true_argv, &quiet));
    HF_TRY(hf_process_wait(quiet, &end));
    EXPECT(end.code == 0 && end.signal == 0);
    HF_TRY(hf_process_start(cat_argv, &cat, process_options));
    HF_TRY(hf_process_close_in(cat));
    HF_TRY(hf_process_wait(cat, &end, patient_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_process_close) hf_process *third = nullptr;
    HF_TRY(hf_process_start(true_argv, &third, {.cwd = "/"}));
    HF_TRY(hf_process_wait(third, &end, {.timeout = hf_seconds(30)}));
#endif
    return HF_OK;
}

hf_status use_dumps()
{
    hf_dump_options dump_options = hf_dump_options();
    dump_options.json = true;
    HF_AUTO(hf_text_free) char *text = nullptr;
    HF_AUTO(hf_text_free) char *json = nullptr;
    HF_TRY(hf_dump(nullptr, &text));
    HF_TRY(hf_dump(nullptr, &json, dump_options));
    hf_metrics_options metrics_options = hf_metrics_options();
    metrics_options.json = true;
    HF_AUTO(hf_text_free) char *metrics = nullptr;
    HF_AUTO(hf_text_free) char *metrics_json = nullptr;
    HF_TRY(hf_metrics(nullptr, &metrics));
    HF_TRY(hf_metrics(nullptr, &metrics_json, metrics_options));
    EXPECT(json[0] == '{');
#if __cplusplus >= 202002L
    HF_AUTO(hf_text_free) char *third = nullptr;
    HF_TRY(hf_dump(nullptr, &third, {.no_stacks = true}));
    HF_AUTO(hf_text_free) char *fourth = nullptr;
    HF_TRY(hf_metrics(nullptr, &fourth, {.json = true}));
#endif
    return HF_OK;
}

hf_status ask_services(hf_service *none, hf_execution *run)
{
    hf_update_handle *update = nullptr;
    hf_description *description = nullptr;
    hf_payload in = hf_payload_of_json("1");
    hf_entry memo[] = {{"customer", in}, {nullptr, hf_payload_none()}};
    hf_start_options start_options = hf_start_options();
    start_options.memo = memo;
    hf_wait_options wait_options = hf_wait_options();
    wait_options.timeout = hf_seconds(1);
    hf_query_options query_options = hf_query_options();
    query_options.timeout = hf_seconds(1);
    hf_update_options update_options = hf_update_options();
    update_options.id = "once";
    hf_reset_options reset_options = hf_reset_options();
    reset_options.point = HF_RESET_LAST;
    EXPECT(hf_start_and_signal(none, "type", in, "go", in, &run) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_signal(none, "type", in, "go", in, &run, start_options) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_update(none, "type", in, "add", in, &run, &update) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_update(none, "type", in, "add", in, &run, &update, start_options) == HF_ERR_MISUSE);
    EXPECT(hf_query(run, "view", in, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_query(run, "view", in, nullptr, query_options) == HF_ERR_MISUSE);
    EXPECT(hf_update(run, "add", in, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_update(run, "add", in, nullptr, update_options) == HF_ERR_MISUSE);
    EXPECT(hf_update_start(run, "add", in, &update) == HF_ERR_MISUSE);
    EXPECT(hf_update_start(run, "add", in, &update, update_options) == HF_ERR_MISUSE);
    EXPECT(hf_update_handle_new(run, "once", &update) == HF_ERR_MISUSE);
    EXPECT(hf_update_result(update, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_update_result(update, nullptr, wait_options) == HF_ERR_MISUSE);
    EXPECT(hf_reset(run, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_reset(run, nullptr, reset_options) == HF_ERR_MISUSE);
    EXPECT(hf_describe(run, &description) == HF_ERR_MISUSE);
    hf_counts counts;
    hf_list_options list_options = hf_list_options();
    list_options.limit = 1;
    hf_namespace_options namespace_options = hf_namespace_options();
    hf_namespace_update_options namespace_update_options = hf_namespace_update_options();
    namespace_options.description = "d";
    hf_search_attribute_options attribute_options = hf_search_attribute_options();
    attribute_options.namespace_ = "n";
    int64_t cursor = 0;
    hf_payload place = hf_payload_none();
    hf_wait_options stream_options = hf_wait_options();
    stream_options.timeout = hf_seconds(1);
    hf_changes_options changes_options = hf_changes_options();
    changes_options.namespace_ = "n";
    hf_history_options history_options = hf_history_options();
    history_options.as_bytes = true;
    EXPECT(hf_publish("type", in) == HF_ERR_MISUSE);
    EXPECT(hf_stream_read(run, &cursor, nullptr, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_stream_read(run, &cursor, nullptr, nullptr, stream_options) == HF_ERR_MISUSE);
    EXPECT(hf_changes_read(none, &place, nullptr, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_changes_read(none, &place, nullptr, nullptr, changes_options) == HF_ERR_MISUSE);
    EXPECT(hf_history(run, &place) == HF_ERR_MISUSE);
    EXPECT(hf_history(run, &place, history_options) == HF_ERR_MISUSE);
    EXPECT(hf_list(none, nullptr, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_list(none, nullptr, nullptr, list_options) == HF_ERR_MISUSE);
    EXPECT(hf_count(none, &counts) == HF_ERR_MISUSE);
    EXPECT(hf_count(none, &counts, list_options) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_register(none, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_register(none, "n", namespace_options) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_describe(none, "n", nullptr) == HF_ERR_MISUSE);
    hf_namespace_info_free(nullptr);
    EXPECT(hf_namespace_update(none, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_update(none, "n", namespace_update_options) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_keep(none, "n", hf_days(1)) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_deprecate(none, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_delete(none, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_list(none, nullptr, nullptr) == HF_ERR_MISUSE);
    hf_batch_info batch;
    hf_delete_options delete_options = hf_delete_options();
    delete_options.all_runs = true;
    hf_batch_options batch_options = hf_batch_options();
    batch_options.query = "RunId = 'r'";
    hf_batch_stop_options stop_options = hf_batch_stop_options();
    stop_options.reason = "enough";
    hf_batch_find_options find_options = hf_batch_find_options();
    find_options.namespace_ = "n";
    EXPECT(hf_delete(run) == HF_ERR_MISUSE);
    EXPECT(hf_delete(run, delete_options) == HF_ERR_MISUSE);
    EXPECT(hf_batch_start(none, "b", HF_BATCH_CANCEL) == HF_ERR_MISUSE);
    EXPECT(hf_batch_start(none, "b", HF_BATCH_CANCEL, batch_options) == HF_ERR_MISUSE);
    EXPECT(hf_batch_stop(none, "b") == HF_ERR_MISUSE);
    EXPECT(hf_batch_stop(none, "b", stop_options) == HF_ERR_MISUSE);
    EXPECT(hf_batch_describe(none, "b", &batch) == HF_ERR_MISUSE);
    EXPECT(hf_batch_describe(none, "b", &batch, find_options) == HF_ERR_MISUSE);
    EXPECT(hf_batch_list(none, nullptr, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_batch_list(none, nullptr, nullptr, find_options) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_add(none, "a", HF_SEARCH_INT) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_add(none, "a", HF_SEARCH_INT, attribute_options) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_remove(none, "a") == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_remove(none, "a", attribute_options) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_list(none, nullptr, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_list(none, nullptr, nullptr, attribute_options) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_type_name(HF_SEARCH_INT)[0] == 'I');
    EXPECT(hf_workflow_status_name(HF_WORKFLOW_RUNNING)[0] == 'R');
#if __cplusplus >= 202002L
    EXPECT(hf_start_and_signal(none, "type", in, "go", in, &run, {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_update(none, "type", in, "add", in, &run, &update, {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_query(run, "view", in, nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_update(run, "add", in, nullptr, {.id = "once"}) == HF_ERR_MISUSE);
    EXPECT(hf_update_start(run, "add", in, &update, {.id = "once"}) == HF_ERR_MISUSE);
    EXPECT(hf_update_result(update, nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_reset(run, nullptr, {.point = HF_RESET_LAST}) == HF_ERR_MISUSE);
    EXPECT(hf_stream_read(run, &cursor, nullptr, nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_changes_read(none, &place, nullptr, nullptr, {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_history(run, &place, {.as_bytes = true}) == HF_ERR_MISUSE);
    EXPECT(hf_list(none, nullptr, nullptr, {.limit = 1}) == HF_ERR_MISUSE);
    EXPECT(hf_count(none, &counts, {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_register(none, "n", {.description = "d"}) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_update(none, "n", {.description = "d"}) == HF_ERR_MISUSE);
    EXPECT(hf_delete(run, {.all_runs = true}) == HF_ERR_MISUSE);
    EXPECT(hf_batch_start(none, "b", HF_BATCH_CANCEL, {.query = "RunId = 'r'"}) == HF_ERR_MISUSE);
    EXPECT(hf_batch_stop(none, "b", {.reason = "enough"}) == HF_ERR_MISUSE);
    EXPECT(hf_batch_describe(none, "b", &batch, {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_batch_list(none, nullptr, nullptr, {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_add(none, "a", HF_SEARCH_INT, {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_remove(none, "a", {.namespace_ = "n"}) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_list(none, nullptr, nullptr, {.namespace_ = "n"}) == HF_ERR_MISUSE);
#endif
    hf_update_handle_free(update);
    hf_description_free(description);
    return HF_OK;
}

// Without a store there is nothing to ask: each says so.
hf_status use_services()
{
    hf_service *none = nullptr;
    hf_execution *run = nullptr;
    hf_payload in = hf_payload_of_json("1");
    hf_open_options open_options = hf_open_options();
    hf_start_options start_options = hf_start_options();
    start_options.id = "id";
    hf_execution_options execution_options = hf_execution_options();
    hf_signal_options signal_options = hf_signal_options();
    hf_cancel_options cancel_options = hf_cancel_options();
    hf_terminate_options terminate_options = hf_terminate_options();
    EXPECT(hf_open("nowhere:", &none) == HF_ERR_INVALID);
    EXPECT(hf_open("nowhere:", &none, open_options) == HF_ERR_INVALID);
    EXPECT(hf_start(none, "type", in, &run) == HF_ERR_MISUSE);
    EXPECT(hf_start(none, "type", in, &run, start_options) == HF_ERR_MISUSE);
    EXPECT(hf_execution_new(none, "id", &run) == HF_ERR_MISUSE);
    EXPECT(hf_execution_new(none, "id", &run, execution_options) == HF_ERR_MISUSE);
    EXPECT(hf_result(run, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_result(run, nullptr, patient_options) == HF_ERR_MISUSE);
    EXPECT(hf_signal(run, "name", in) == HF_ERR_MISUSE);
    EXPECT(hf_signal(run, "name", in, signal_options) == HF_ERR_MISUSE);
    EXPECT(hf_cancel(run) == HF_ERR_MISUSE);
    EXPECT(hf_cancel(run, cancel_options) == HF_ERR_MISUSE);
    EXPECT(hf_terminate(run) == HF_ERR_MISUSE);
    EXPECT(hf_terminate(run, terminate_options) == HF_ERR_MISUSE);
#if __cplusplus >= 202002L
    EXPECT(hf_open("nowhere:", &none, {.runtime = hf_runtime_current()}) == HF_ERR_INVALID);
    EXPECT(hf_start(none, "type", in, &run, {.id = "id", .task_queue = "queue"}) == HF_ERR_MISUSE);
    EXPECT(hf_execution_new(none, "id", &run, {.run_id = "run"}) == HF_ERR_MISUSE);
    EXPECT(hf_result(run, nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_signal(run, "name", in, {.request_id = "once"}) == HF_ERR_MISUSE);
    EXPECT(hf_cancel(run, {.reason = "enough"}) == HF_ERR_MISUSE);
    EXPECT(hf_terminate(run, {.reason = "enough"}) == HF_ERR_MISUSE);
#endif
    return ask_services(none, run);
}

struct order {
    char item[16];
    int64_t cents;
    double weight;
    bool is_express;
};

const hf_member ORDER[] = {HF_MEMBER(order, item), HF_MEMBER(order, cents), HF_MEMBER(order, weight),
                           HF_OPTIONAL(order, is_express), HF_MEMBERS_END};

hf_status use_json()
{
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    order read = {"", 0, 0, true};
    HF_TRY(hf_payload_object(&made, hf_field_text("item", "a \"pen\""), hf_field_int("cents", 7),
                             hf_field_real("weight", 0.5)));
    HF_TRY(hf_payload_read(made, ORDER, &read));
    EXPECT(std::strcmp(read.item, "a \"pen\"") == 0 && read.cents == 7 && read.weight == 0.5 && read.is_express);
    int64_t cents = 0;
    EXPECT(hf_json_get_int(made, "item", &cents) == HF_ERR_INVALID);
    return HF_OK;
}

hf_status use_workers()
{
    hf_worker *worker = nullptr;
    hf_worker_options worker_options = hf_worker_options();
    worker_options.cached_max = HF_OFF;
    hf_activity_options activity_options = hf_activity_options();
    activity_options.start_to_close = hf_seconds(1);
    EXPECT(hf_worker_new(nullptr, "queue", &worker) == HF_ERR_MISUSE);
    hf_worker_add_activity_options add_options = hf_worker_add_activity_options();
    add_options.on_fiber = true;
    hf_activity_fail_options fail_options = hf_activity_fail_options();
    fail_options.is_final = true;
    hf_testenv *testenv = nullptr;
    hf_testenv_options testenv_options = hf_testenv_options();
    testenv_options.patience = HF_SPAN_OFF;
    EXPECT(hf_testenv_new(nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_new(&testenv, testenv_options) == HF_ERR_INVALID);
    hf_worker_add_activity_options fake_options = hf_worker_add_activity_options();
    fake_options.on_fiber = true;
    EXPECT(hf_testenv_activity(nullptr, "name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_activity(nullptr, "name", nullptr, fake_options) == HF_ERR_MISUSE);
    hf_start_options test_start_options = hf_start_options();
    test_start_options.id = "id";
    EXPECT(hf_testenv_start(nullptr, "type", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_start(nullptr, "type", hf_payload_none(), nullptr, test_start_options) == HF_ERR_MISUSE);
    hf_worker_add_command_options command_options = hf_worker_add_command_options();
    command_options.cwd = "/";
    EXPECT(hf_worker_add_command(nullptr, "name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_command(nullptr, "name", nullptr, command_options) == HF_ERR_MISUSE);
    hf_worker_add_workflow_options workflow_options = hf_worker_add_workflow_options();
    workflow_options.stack_size = 16384;
    EXPECT(hf_worker_add_workflow(nullptr, "name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_workflow(nullptr, "name", nullptr, workflow_options) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_activity(nullptr, "name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_activity(nullptr, "name", nullptr, add_options) == HF_ERR_MISUSE);
    EXPECT(hf_activity_fail("not in an activity") == HF_ERR_MISUSE);
    EXPECT(hf_activity_fail("not in an activity", fail_options) == HF_ERR_MISUSE);
    EXPECT(hf_worker_new(nullptr, "queue", &worker, worker_options) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run("name", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run("name", hf_payload_none(), nullptr, activity_options) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait("name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait("name", nullptr, patient_options) == HF_ERR_MISUSE);
    hf_local_options local_options = hf_local_options();
    local_options.start_to_close = hf_seconds(1);
    EXPECT(hf_activity_run_local("name", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run_local("name", hf_payload_none(), nullptr, local_options) == HF_ERR_MISUSE);
    EXPECT(hf_side_effect(nullptr, nullptr, nullptr) == HF_ERR_MISUSE);
    HF_AUTO(hf_saga_close) hf_saga *saga = nullptr;
    hf_saga_options saga_options = hf_saga_options();
    saga_options.name = "trip";
    EXPECT(hf_saga_open(&saga) == HF_ERR_MISUSE);
    EXPECT(hf_saga_open(&saga, saga_options) == HF_ERR_MISUSE);
    EXPECT(hf_saga_add(saga, "name", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_saga_add(saga, "name", hf_payload_none(), activity_options) == HF_ERR_MISUSE);
    EXPECT(hf_saga_commit(saga) == HF_ERR_MISUSE && hf_saga_undo(saga) == HF_ERR_MISUSE);
    EXPECT(hf_memo_set(hf_field_text("key", "value")) == HF_ERR_MISUSE);
    EXPECT(hf_search_set(hf_field_int("key", 7), hf_field_time("when", hf_wall_now(nullptr))) == HF_ERR_MISUSE);
    const char *const names[] = {"name", "other"};
    size_t idx = 0;
    EXPECT(hf_signal_wait_any(names, 2, &idx, nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait_any(names, 2, &idx, nullptr, patient_options) == HF_ERR_MISUSE);
#if __cplusplus >= 202002L
    EXPECT(hf_worker_new(nullptr, "queue", &worker, {.cached_max = HF_OFF}) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_new(nullptr, {.evict_always = true}) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_activity(nullptr, "name", nullptr, {.on_fiber = true}) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_start(nullptr, "type", hf_payload_none(), nullptr, {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_command(nullptr, "name", nullptr, {.cwd = "/"}) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_workflow(nullptr, "name", nullptr, {.stack_size = 16384}) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_activity(nullptr, "name", nullptr, {.on_fiber = true}) == HF_ERR_MISUSE);
    EXPECT(hf_activity_fail("not in an activity", {.is_final = true}) == HF_ERR_MISUSE);
    EXPECT(hf_answer_failed(nullptr, hf_answer_to_id("id", "1"), "message", {.is_final = true}) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run("name", hf_payload_none(), nullptr, {.start_to_close = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait("name", nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_handlers_wait({.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait_any(names, 2, &idx, nullptr, {.timeout = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_saga_open(&saga, {.name = "trip"}) == HF_ERR_MISUSE);
    EXPECT(hf_saga_add(saga, "name", hf_payload_none(), {.start_to_close = hf_seconds(1)}) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run_local("name", hf_payload_none(), nullptr, {.start_to_close = hf_seconds(1)}) ==
           HF_ERR_MISUSE);
    EXPECT(hf_child_run("type", hf_payload_none(), nullptr, {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_child_start("type", hf_payload_none(), {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_fork_child(nullptr, "type", hf_payload_none(), nullptr, {.id = "id"}) == HF_ERR_MISUSE);
    EXPECT(hf_external_signal("id", "name", hf_payload_none(), {.header = nullptr}) == HF_ERR_MISUSE);
    EXPECT(hf_fork_activity(nullptr, "name", hf_payload_none(), nullptr, {.start_to_close = hf_seconds(1)}) ==
           HF_ERR_MISUSE);
    EXPECT(hf_on_signal("name", nullptr, {.arg = nullptr}) == HF_ERR_MISUSE);
    EXPECT(hf_on_query("name", nullptr, {.arg = nullptr}) == HF_ERR_MISUSE);
    EXPECT(hf_on_update("name", nullptr, {.may_be_left = true}) == HF_ERR_MISUSE);
    EXPECT(hf_continue_as_new(hf_payload_none(), {.type = "next"}) == HF_ERR_MISUSE);
    EXPECT(hf_workflow_fail("not in a workflow", {.type = "Declined"}) == HF_ERR_MISUSE);
#endif
    hf_on_signal_options on_signal_options = hf_on_signal_options();
    hf_on_query_options on_query_options = hf_on_query_options();
    hf_on_update_options on_update_options = hf_on_update_options();
    hf_continue_options continue_options = hf_continue_options();
    continue_options.type = "next";
    hf_child_options child_options = hf_child_options();
    child_options.id = "id";
    EXPECT(hf_child_run("type", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_child_run("type", hf_payload_none(), nullptr, child_options) == HF_ERR_MISUSE);
    EXPECT(hf_child_start("type", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_child_start("type", hf_payload_none(), child_options) == HF_ERR_MISUSE);
    EXPECT(hf_fork_child(nullptr, "type", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_fork_child(nullptr, "type", hf_payload_none(), nullptr, child_options) == HF_ERR_MISUSE);
    EXPECT(hf_fork_activity(nullptr, "name", hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_fork_activity(nullptr, "name", hf_payload_none(), nullptr, activity_options) == HF_ERR_MISUSE);
    hf_external_options external_options = hf_external_options();
    EXPECT(hf_external_signal("id", "name", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_external_signal("id", "name", hf_payload_none(), external_options) == HF_ERR_MISUSE);
    EXPECT(hf_external_cancel("id", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_signal_try("name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_on_signal("name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_on_signal("name", nullptr, on_signal_options) == HF_ERR_MISUSE);
    EXPECT(hf_on_query("name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_on_query("name", nullptr, on_query_options) == HF_ERR_MISUSE);
    EXPECT(hf_on_update("name", nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_on_update("name", nullptr, on_update_options) == HF_ERR_MISUSE);
    EXPECT(hf_handlers_wait() == HF_ERR_MISUSE);
    EXPECT(hf_handlers_wait(patient_options) == HF_ERR_MISUSE);
    EXPECT(hf_wait_until(worker != nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_wait_until(worker != nullptr, patient_options) == HF_ERR_MISUSE);
    EXPECT(hf_handler_name() == nullptr && hf_update_id() == nullptr && hf_workflow_info() == nullptr);
    EXPECT(hf_activity_token(nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_answer(nullptr, hf_answer_to(hf_payload_none()), hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_answer_failed(nullptr, hf_answer_to_id("id", "1"), "message") == HF_ERR_MISUSE);
    EXPECT(hf_answer_failed(nullptr, hf_answer_to_id("id", "1"), "message", fail_options) == HF_ERR_MISUSE);
    EXPECT(hf_answer_canceled(nullptr, hf_answer_to_id("id", "1"), hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_answer_heartbeat(nullptr, hf_answer_to_id("id", "1"), hf_payload_none(), nullptr) == HF_ERR_MISUSE);
    EXPECT(hf_activity_arg() == nullptr && hf_activity_cancel_why() == HF_WHY_NOT);
    EXPECT(hf_workflow_scope() == nullptr && hf_workflow_alloc(8) == nullptr && !hf_patched("id"));
    EXPECT(hf_patch_deprecate("id") == HF_ERR_MISUSE);
    EXPECT(hf_continue_as_new(hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_workflow_fail("not in a workflow") == HF_ERR_MISUSE);
    EXPECT(hf_workflow_fail("not in a workflow", hf_workflow_fail_options()) == HF_ERR_MISUSE);
    EXPECT(hf_continue_as_new(hf_payload_none(), continue_options) == HF_ERR_MISUSE);
    HF_AUTO(hf_payload_free) hf_payload payload = hf_payload_none();
    HF_TRY(hf_payload_printf(&payload, "[%d]", 7));
    EXPECT(std::strcmp(static_cast<const char *>(payload.data), "[7]") == 0);
    return use_json();
}

hf_status use_all(void *)
{
    HF_TRY(use_scopes());
    HF_TRY(use_channels());
    HF_TRY(use_mutexes());
    HF_TRY(use_semaphores());
    HF_TRY(use_key_locks());
    HF_TRY(use_flights());
    HF_TRY(use_flows());
    HF_TRY(use_collectors());
    HF_TRY(use_depots());
    HF_TRY(use_dispatchers());
    HF_TRY(use_descriptors());
    HF_TRY(use_network());
    HF_TRY(use_files());
    HF_TRY(use_signals());
    HF_TRY(use_processes());
    HF_TRY(use_services());
    HF_TRY(use_workers());
    return use_dumps();
}

void use_runtimes()
{
    hf_runtime_options runtime_options = hf_runtime_options();
    runtime_options.threads = 1;
    HF_AUTO(hf_runtime_free) hf_runtime *plain = nullptr;
    HF_AUTO(hf_runtime_free) hf_runtime *named = nullptr;
    HF_OR_DIE(hf_runtime_new(&plain));
    HF_OR_DIE(hf_runtime_new(&named, runtime_options));
#if __cplusplus >= 202002L
    HF_AUTO(hf_runtime_free) hf_runtime *third = nullptr;
    HF_OR_DIE(hf_runtime_new(&third, {.name = "third", .threads = 1}));
    HF_OR_DIE(hf_run(nothing, nullptr, {.name = "third", .threads = 1}));
#endif
}

void use_simulation()
{
    hf_env *plain = nullptr;
    hf_env *seeded = nullptr;
    hf_sim_options sim_options = hf_sim_options();
    sim_options.seed = 42;
    HF_OR_DIE(hf_sim_new(&plain));
    HF_OR_DIE(hf_sim_new(&seeded, sim_options));
    hf_runtime_options runtime_options = hf_runtime_options();
    runtime_options.env = seeded;
    runtime_options.threads = 2;
    HF_OR_DIE(hf_run(nothing, nullptr, runtime_options));
    hf_sim_free(seeded);
    hf_sim_free(plain);
#if __cplusplus >= 202002L
    hf_env *third = nullptr;
    HF_OR_DIE(hf_sim_new(&third, {.seed = 42}));
    hf_sim_free(third);
#endif
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2 || std::strcmp(hf_version(), HF_VERSION_TEXT) != 0) {
        return 2;
    }
    folder = argv[1];
    HF_OR_DIE(hf_run(use_all, nullptr));
    use_runtimes();
    use_simulation();
    return 0;
}
