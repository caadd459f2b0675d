/* A program of somebody else's: uses the installed headers and library only, and calls every verb that takes options, once
 * without and once with them (tools/check_verbs.sh counts). Compiled as C11 and C17 with all warnings as errors, and
 * run: it ends with 0 when everything worked. Its one argument is a folder that it may write to. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* -std=c11 hides what is not C: the program declares what it takes from POSIX. */
int kill(pid_t pid, int number);

#define EXPECT(what)                                                        \
    do {                                                                    \
        if (!(what)) {                                                      \
            return hf_raise(HF_ERR_FAILED, "line %d: %s", __LINE__, #what); \
        }                                                                   \
    } while (0)

static const char *folder;

static hf_status nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status add_one(void *arg)
{
    int *number = (int *)arg;
    (*number)++;
    return HF_OK;
}

static hf_status sleep_long(void *arg)
{
    (void)arg;
    return hf_sleep(hf_hours(1));
}

/* As programs see the struct that were compiled with an older and with a newer header. */
typedef struct old_chan_options {
    size_t size;
    const char *name;
} old_chan_options;

typedef struct new_chan_options {
    hf_chan_options known;
    long invented;
} new_chan_options;

static hf_status use_other_headers(void)
{
    hf_chan *chan = NULL;
    old_chan_options old = {sizeof old, "old"};
    HF_TRY(hf_chan_new_with(sizeof(int), &chan, (const hf_chan_options *)(const void *)&old));
    HF_TRY(hf_chan_free(chan));
    chan = NULL;
    new_chan_options options = {.known = {.size = sizeof options, .name = "new", .capacity = 1}};
    HF_TRY(hf_chan_new_with(sizeof(int), &chan, &options.known));
    HF_TRY(hf_chan_free(chan));
    chan = NULL;
    options.invented = 1;
    EXPECT(hf_chan_new_with(sizeof(int), &chan, &options.known) == HF_ERR_UNSUPPORTED);
    EXPECT(chan == NULL && strstr(hf_error_text(), "newer header") != NULL);
    options.known.size = 0;
    EXPECT(hf_chan_new_with(sizeof(int), &chan, &options.known) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status use_scopes(void)
{
    int count = 0;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, add_one, &count));
        HF_TRY(hf_join(scope));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "named", .join = HF_JOIN_COLLECT, .timeout = hf_minutes(1)));
        hf_branch *job = NULL;
        HF_TRY(hf_fork(scope, sleep_long, NULL, .name = "sleeper", .ret_branch = &job));
        HF_TRY(hf_scope_cancel(scope, .reason = "enough"));
        HF_IGNORE(hf_join(scope));
        EXPECT(hf_branch_is_done(job));
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_TOLERATE(1)));
    HF_TRY(hf_scope_cancel(scope));
    EXPECT(hf_canceled() == HF_ERR_CANCELED);
    EXPECT(count == 1);
    return HF_OK;
}

static hf_status use_channels(void)
{
    int sent = 7;
    int received = 0;
    size_t taken = 9;
    HF_AUTO(hf_chan_free) hf_chan *rendezvous = NULL;
    HF_AUTO(hf_chan_free) hf_chan *buffered = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &rendezvous));
    HF_TRY(hf_chan_new(sizeof(int), &buffered, .name = "buffered", .capacity = 2));
    HF_TRY(hf_chan_send(buffered, &sent));
    HF_TRY(hf_chan_send(buffered, &sent, .timeout = hf_seconds(5)));
    HF_TRY(hf_chan_recv(buffered, &received));
    EXPECT(received == 7);
    EXPECT(hf_chan_recv(rendezvous, &received, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);

    hf_case cases[2] = {{HF_CASE_RECV, NULL, NULL, HF_OK}, {HF_CASE_RECV, NULL, NULL, HF_OK}};
    cases[0].chan = rendezvous;
    cases[0].value = &received;
    cases[1].chan = buffered;
    cases[1].value = &received;
    HF_TRY(hf_select(cases, 2, &taken));
    EXPECT(taken == 1);
    EXPECT(hf_select(cases, 2, &taken, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    return HF_OK;
}

typedef struct gate {
    hf_mutex *mutex;
    hf_cond *cond;
    bool open;
} gate;

static hf_status open_gate(void *arg)
{
    gate *g = (gate *)arg;
    HF_TRY(hf_mutex_lock(g->mutex));
    g->open = true;
    HF_TRY(hf_cond_broadcast(g->cond));
    return hf_mutex_unlock(g->mutex);
}

static hf_status use_gate(gate *g)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_mutex_lock(g->mutex, .timeout = hf_seconds(5)));
    EXPECT(hf_cond_wait(g->cond, g->mutex, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_fork(scope, open_gate, g));
    while (!g->open) {
        HF_TRY(hf_cond_wait(g->cond, g->mutex));
    }
    HF_TRY(hf_mutex_unlock(g->mutex));
    return hf_join(scope);
}

static hf_status use_locks(void)
{
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *named_mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_cond_free) hf_cond *named_cond = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_sem_free) hf_sem *named_sem = NULL;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_AUTO(hf_once_free) hf_once *named_once = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_mutex_new(&named_mutex, .name = "mutex"));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_cond_new(&named_cond, .name = "cond"));
    gate g = {NULL, NULL, false};
    g.mutex = mutex;
    g.cond = cond;
    HF_TRY(use_gate(&g));

    HF_TRY(hf_sem_new(2, &sem));
    HF_TRY(hf_sem_new(1, &named_sem, .name = "sem"));
    HF_TRY(hf_sem_acquire(sem, 2));
    EXPECT(hf_sem_acquire(sem, 1, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_sem_release(sem, 2));

    int count = 0;
    HF_TRY(hf_once_new(&once));
    HF_TRY(hf_once_new(&named_once, .name = "once"));
    HF_TRY(hf_once_run(once, add_one, &count));
    HF_TRY(hf_once_run(once, add_one, &count));
    EXPECT(count == 1);
    return HF_OK;
}

static hf_status make_value(void *arg, hf_value **ret_value)
{
    return hf_value_copy(arg, strlen((const char *)arg), ret_value);
}

static hf_status use_keys(void)
{
    char text[] = "value";
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *named_keylock = NULL;
    HF_TRY(hf_keylock_new(&keylock));
    HF_TRY(hf_keylock_new(&named_keylock, .name = "keys", .idle_max = HF_OFF));
    hf_key_guard *guard = NULL;
    hf_key_guard *second = NULL;
    HF_TRY(hf_keylock_lock(keylock, "a", 1, &guard));
    HF_TRY(hf_keylock_lock(keylock, "b", 1, &second, .timeout = hf_seconds(5)));
    HF_TRY(hf_key_unlock(second));
    HF_TRY(hf_key_unlock(guard));

    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_AUTO(hf_cache_free) hf_cache *small_cache = NULL;
    HF_TRY(hf_cache_new(&cache));
    HF_TRY(hf_cache_new(&small_cache, .name = "small", .count_max = 1));

    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "flights"));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    EXPECT(hf_flight_new(&flight) != HF_OK); /* the scope is required */
    HF_TRY(hf_flight_new(&flight, .name = "flight", .scope = scope));
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_flight_run(flight, "k", 1, make_value, text, NULL));
    HF_TRY(hf_flight_run(flight, "k", 1, make_value, text, &value, .timeout = hf_seconds(5)));
    EXPECT(hf_value_len(value) == 5);
    return hf_cache_put(small_cache, "k", 1, value, NULL);
}

static hf_status count_to_three(void *arg, hf_emitter *emitter)
{
    (void)arg;
    for (int i = 1; i <= 3; i++) {
        HF_TRY(hf_emit(emitter, &i));
    }
    return HF_OK;
}

static hf_status add_up(void *ctx, const void *value)
{
    *(int *)ctx += *(const int *)value;
    return HF_OK;
}

static hf_status use_flows(void)
{
    int sum = 0;
    HF_AUTO(hf_flow_free) hf_flow *cold = NULL;
    HF_AUTO(hf_flow_free) hf_flow *hot = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &cold, .name = "cold", .source = count_to_three));
    HF_TRY(hf_flow_new(sizeof(int), &hot));
    HF_TRY(hf_flow_collect(cold, add_up, &sum));
    HF_TRY(hf_flow_collect(cold, add_up, &sum, .mode = HF_FLOW_BUFFER, .capacity = 4));
    EXPECT(sum == 12);

    int value = 5;
    HF_AUTO(hf_collector_close) hf_collector *slow = NULL;
    HF_AUTO(hf_collector_close) hf_collector *latest = NULL;
    HF_TRY(hf_collector_open(hot, &slow));
    HF_TRY(hf_collector_open(hot, &latest, .mode = HF_FLOW_CONFLATE));
    HF_TRY(hf_flow_emit(hot, &value));
    value = 0;
    HF_TRY(hf_collector_next(slow, &value));
    EXPECT(value == 5);
    HF_TRY(hf_collector_next(latest, &value, .timeout = hf_seconds(5)));
    EXPECT(hf_collector_next(latest, &value, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    return HF_OK;
}

/* ---- Depots: an origin that knows one key, and accepts every write but of the key "refused" ---- */

static hf_status fetch_user(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    if (request->key.id_len == 4 && memcmp(request->key.id, "none", 4) == 0) {
        return hf_reply_fail(reply, HF_REPLY_NOT_FOUND);
    }
    if (request->key.id_len == 4 && memcmp(request->key.id, "down", 4) == 0) {
        return hf_reply_fail(reply, HF_REPLY_ORIGIN, .http_status = 403, .message = "not you");
    }
    HF_TRY(hf_reply_etag(reply, "e1"));
    HF_TRY(hf_reply_max_age(reply, hf_minutes(1)));
    return hf_reply_value(reply, "ann", 3);
}

static hf_status push_user(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    EXPECT(request->attempt >= 1 && strlen(request->id) == HF_WRITE_ID_LEN - 1);
    if (request->verb == HF_WRITE_CREATE && ((const char *)request->key.id)[0] == '~') {
        HF_TRY(hf_reply_key(reply, hf_depot_key_of("acme", "user", "43")));
        HF_TRY(hf_reply_revision(reply, 1));
    }
    return hf_reply_etag(reply, "e2");
}

static hf_status append(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    char text[16];
    size_t had = hf_value_len(value);
    (void)state;
    EXPECT(had + len <= sizeof text);
    memcpy(text, had > 0 ? hf_value_data(value) : "", had);
    memcpy(text + had, patch, len);
    return hf_value_copy(text, had + len, ret_value);
}

static hf_status join_patches(void *state, const void *first, size_t first_len, const void *second, size_t second_len,
                              hf_value **ret_patch)
{
    char text[16];
    (void)state;
    EXPECT(first_len + second_len <= sizeof text);
    memcpy(text, first, first_len);
    memcpy(text + first_len, second, second_len);
    return hf_value_copy(text, first_len + second_len, ret_patch);
}

static hf_status create_users(hf_depot *users)
{
    hf_depot_id id;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_depot_create(users, hf_depot_key_of("acme", "user", "44"), "amy", 3, NULL));
    HF_TRY(hf_depot_create(users, hf_depot_key_of("acme", "user", NULL), "dan", 3, &id, .ret_write = &write));
    EXPECT(id.len == 27 && id.bytes[0] == '~');
    HF_TRY(hf_depot_write_wait(write));
    HF_TRY(hf_depot_get(users, hf_depot_key_of_bytes("acme", "user", id.bytes, id.len), &value));
    HF_TRY(hf_depot_write_key(write, &id));
    EXPECT(id.len == 2 && memcmp(id.bytes, "43", 2) == 0 && hf_value_len(value) == 3);
    return hf_depot_invalidate(users, hf_depot_key_of("acme", "user", "44"), .hard = true, .drop_pending = true);
}

static hf_status fetch_users(void *state, const hf_fetch_request *requests, hf_reply *const *replies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)fetch_user(state, &requests[i], replies[i]);
    }
    return HF_OK;
}

static hf_status follow_user(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    HF_TRY(hf_reply_value(reply, "ann", 3));
    HF_TRY(hf_reply_emit(reply));
    return hf_sleep(hf_hours(1));
}

/* Values as texts with a NUL behind them. */
static hf_status to_text(void *state, const hf_value *bytes, hf_value **ret_object)
{
    char text[16] = {0};
    (void)state;
    EXPECT(hf_value_len(bytes) < sizeof text);
    memcpy(text, hf_value_data(bytes), hf_value_len(bytes));
    return hf_value_copy(text, hf_value_len(bytes) + 1, ret_object);
}

static hf_status from_text(void *state, const hf_value *object, hf_value **ret_bytes)
{
    (void)state;
    return hf_value_copy(hf_value_data(object), hf_value_len(object) - 1, ret_bytes);
}

/* A source that keeps nothing. */
static hf_status read_nothing(void *state, hf_source_row *row)
{
    (void)state;
    row->data = NULL;
    return HF_OK;
}

static hf_status write_nothing(void *state, const hf_source_write *writes, size_t count, bool is_synced)
{
    (void)writes;
    (void)is_synced;
    *(size_t *)state += count;
    return HF_OK;
}

static hf_status scan_nothing(void *state, hf_source_kind kind, const void *from, size_t from_len,
                              hf_source_visit *visit, void *arg)
{
    (void)state;
    (void)kind;
    (void)from;
    (void)from_len;
    (void)visit;
    (void)arg;
    return HF_OK;
}

static hf_status use_many_users(void)
{
    hf_depot_key keys[] = {hf_depot_key_of("acme", "user", "1"), hf_depot_key_of("acme", "user", "none")};
    hf_depot_result results[2];
    hf_depot_info infos[2];
    size_t written = 0;
    hf_source_hooks hooks = {&written, read_nothing, NULL, write_nothing, scan_nothing, NULL};
    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    HF_AUTO(hf_depot_close) hf_depot *followed = NULL;
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_TRY(hf_depot_open("many", &users, .fetch = fetch_user, .fetch_many = fetch_users, .push = push_user,
                         .decode = to_text, .encode = from_text, .source = &hooks));
    HF_TRY(hf_depot_open("followed", &followed, .subscribe = follow_user));
    HF_TRY(hf_depot_get_many(users, keys, 2, results));
    EXPECT(results[0].status == HF_OK && strcmp(hf_value_data(results[0].value), "ann") == 0);
    EXPECT(results[1].status == HF_ERR_NOT_FOUND && results[1].message[0] != '\0' && written > 0);
    HF_TRY(hf_depot_put_value(users, keys[0], results[0].value));
    HF_TRY(hf_depot_put_value(users, keys[0], results[0].value, .mode = HF_DEPOT_ORIGIN_FIRST));
    hf_value_unref(results[0].value);
    HF_TRY(hf_depot_get_many(users, keys, 1, results, .fresh = HF_FRESH_LOCAL, .ret_infos = infos));
    EXPECT(results[0].status == HF_OK);
    hf_value_unref(results[0].value);
    HF_TRY(hf_depot_changed(users, keys[1]));
    return hf_depot_get(followed, keys[0], &user);
}

static hf_status write_users(hf_depot *users, hf_depot_key key)
{
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_depot_put(users, key, "bob", 3));
    HF_TRY(hf_depot_patch(users, key, "by", 2));
    HF_TRY(hf_depot_patch(users, key, "!", 1, .ret_write = &write));
    HF_TRY(hf_depot_get(users, key, &value, .fresh = HF_FRESH_LOCAL));
    EXPECT(hf_value_len(value) == 6 && memcmp(hf_value_data(value), "bobby!", 6) == 0);
    HF_TRY(hf_depot_write_wait(write));
    HF_TRY(hf_depot_write_wait(write, .timeout = hf_seconds(30)));
    HF_TRY(hf_depot_put(users, key, "eve", 3, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_TRY(hf_depot_delete(users, key, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_TRY(create_users(users));
    return hf_depot_delete(users, hf_depot_key_of("acme", "user", "7"));
}

static hf_status watch_users(hf_depot *users, hf_depot_key key)
{
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *local = NULL;
    hf_depot_event event;
    HF_TRY(hf_depot_watch(users, key, &watcher));
    HF_TRY(hf_depot_watch(users, hf_depot_key_of("acme", "user", "8"), &local, .fresh = HF_FRESH_LOCAL));
    HF_TRY(hf_watcher_next(watcher, &event));
    EXPECT(event.kind == HF_DEPOT_DATA && hf_value_len(event.value) == 3);
    hf_value_unref(event.value);
    EXPECT(hf_watcher_next(local, &event, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    EXPECT(hf_watcher_dropped(watcher) == 0);
    return HF_OK;
}

static hf_status count_call(hf_payload in, hf_payload *ret_out)
{
    *(int *)hf_activity_arg() += 1;
    return hf_payload_copy(in, ret_out);
}

static hf_status call_twice(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("kept", in, NULL, .start_to_close = hf_seconds(60)));
    HF_TRY(hf_activity_run("kept", in, ret_out, .start_to_close = hf_seconds(60)));
    return hf_activity_run("kept for ever", in, NULL, .start_to_close = hf_seconds(60));
}

static hf_status use_depots_with_workflows(hf_depot *users)
{
    int calls = 0;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload mark = hf_payload_none();
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "calls", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "twice", call_twice));
    HF_TRY(hf_worker_add_activity(worker, "kept", count_call, .arg = &calls, .memo = hf_depot_memo(users)));
    hf_memo memo = hf_depot_memo(users);
    EXPECT(memo.state == users);
    HF_TRY(hf_worker_add_activity(worker, "kept for ever", count_call, .arg = &calls,
                                  .memo = hf_depot_memo(users, .ttl = HF_SPAN_UNLIMITED, .ns = "answers")));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "twice", hf_payload_of_json("7"), &run, .task_queue = "calls"));
    HF_TRY(hf_result(run, &out));
    HF_TRY(hf_payload_meta(out, HF_MEMO_NAME, &mark));
    EXPECT(calls == 2 && strncmp(mark.data, "hit, age ", 9) == 0);
    HF_TRY(hf_depot_drive(users, service));
    HF_TRY(hf_depot_put(users, hf_depot_key_of("acme", "user", "9"), "joe", 3, .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write, .timeout = hf_seconds(60)));
    HF_TRY(hf_depot_undrive(users));
    HF_TRY(hf_depot_drive(users, service, .queue = "sends of users", .retry_max = hf_seconds(30)));
    HF_TRY(hf_depot_undrive(users));
    return HF_OK;
}

static hf_status listen_to_users(hf_depot *users, hf_depot_key key)
{
    HF_AUTO(hf_collector_close) hf_collector *events = NULL;
    hf_depot_news news;
    HF_TRY(hf_depot_events(users, &events));
    HF_TRY(hf_depot_invalidate(users, key));
    HF_TRY(hf_collector_next(events, &news, .timeout = hf_seconds(30)));
    EXPECT(news.kind == HF_NEWS_INVALIDATED && strcmp(news.ns, "acme") == 0 && news.id_len == 2);
    EXPECT(strcmp(hf_depot_news_name(news.kind), "invalidated") == 0);
    return HF_OK;
}

/* A list of two users that comes with them, and the pages of another one. */
static hf_status fetch_list(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    hf_depot_key keys[] = {hf_depot_key_of("acme", "user", "1"), hf_depot_key_of("acme", "user", "2")};
    HF_TRY(hf_reply_add(reply, keys[0], "ann", 3));
    HF_TRY(hf_reply_add(reply, keys[1], "bob", 3, .etag = "e3", .max_age = hf_minutes(1)));
    if (strcmp(request->key.type, "list") == 0) {
        return hf_reply_list(reply, keys, 2);
    }
    bool is_first = request->page == HF_PAGE_INITIAL;
    hf_page_item item = {keys[is_first ? 0 : 1], NULL};
    EXPECT(request->page_size == 1 && (is_first || strcmp(request->token, "t") == 0));
    if (is_first) {
        return hf_reply_page(reply, &item, 1, .after = "t");
    }
    return hf_reply_page(reply, &item, 1);
}

static bool count_keys(void *arg, hf_depot_key key)
{
    ++*(size_t *)arg;
    return key.id_len == 1;
}

static hf_status use_lists(void)
{
    hf_depot_key key = hf_depot_key_of("acme", "list", "all");
    hf_depot_event event;
    size_t count = 0;
    HF_AUTO(hf_depot_close) hf_depot *lists = NULL;
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_AUTO(hf_items_free) hf_items *local = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *second = NULL;
    HF_TRY(hf_depot_open("lists", &lists, .fetch = fetch_list));
    HF_TRY(hf_depot_list(lists, key, &items));
    HF_TRY(hf_depot_list(lists, key, &local, .members = HF_FRESH_LOCAL));
    EXPECT(hf_items_count(items) == 2 && hf_items_at(local, 1)->value != NULL && hf_items_at(local, 2) == NULL);
    HF_TRY(hf_depot_list_watch(lists, key, &watcher));
    HF_TRY(hf_depot_list_watch(lists, key, &second, .fresh = HF_FRESH_LOCAL));
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_TRY(hf_depot_list_keys(event.value, count_keys, &count));
    hf_value_unref(event.value);
    EXPECT(event.kind == HF_DEPOT_DATA && count == 2);
    HF_AUTO(hf_value_unref) hf_value *packed = NULL;
    return hf_depot_list_pack(&key, 1, &packed);
}

static hf_status use_pages(void)
{
    hf_pages_view view;
    HF_AUTO(hf_depot_close) hf_depot *lists = NULL;
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_AUTO(hf_pages_close) hf_pages *other = NULL;
    HF_TRY(hf_depot_open("pages", &lists, .fetch = fetch_list));
    HF_TRY(hf_pages_open(lists, hf_depot_key_of("acme", "feed", "all"), &pages, .page_size = 1));
    HF_TRY(hf_pages_open(lists, hf_depot_key_of("acme", "feed", "all"), &other));
    HF_TRY(hf_pages_next(pages, &view));
    hf_items_free(view.items);
    HF_TRY(hf_pages_load(pages, HF_PAGE_INITIAL));
    HF_TRY(hf_pages_load(pages, HF_PAGE_APPEND, .timeout = hf_seconds(30)));
    HF_TRY(hf_pages_look(other, &view));
    EXPECT(hf_items_count(view.items) == 2 && view.is_fully_loaded);
    hf_items_free(view.items);
    HF_TRY(hf_pages_next(other, &view, .timeout = hf_seconds(30)));
    EXPECT(view.states[HF_PAGE_APPEND].phase == HF_PAGE_IDLE);
    hf_items_free(view.items);
    return HF_OK;
}

static hf_status use_depots(void)
{
    char file[512];
    (void)snprintf(file, sizeof file, "sqlite:%s/users.db", folder);
    hf_depot_key key = hf_depot_key_of("acme", "user", "42");
    hf_depot_info info;
    hf_depot_counts counts;
    HF_AUTO(hf_value_unref) hf_value *user = NULL;
    HF_AUTO(hf_depot_close) hf_depot *empty = NULL;
    HF_AUTO(hf_depot_close) hf_depot *users = NULL;
    HF_TRY(hf_depot_open("empty", &empty));
    HF_TRY(hf_depot_open("users", &users, .fetch = fetch_user, .push = push_user, .apply = append,
                         .combine = join_patches, .file = file, .coalesce = HF_SPAN_OFF));
    EXPECT(hf_depot_get(empty, key, &user) == HF_ERR_UNAVAILABLE);
    HF_TRY(hf_depot_get(users, key, &user, .fresh = HF_FRESH_NOW, .ret_info = &info));
    EXPECT(hf_value_len(user) == 3 && info.place == HF_DEPOT_FETCHER && strcmp(info.etag, "e1") == 0);
    hf_value *none = NULL;
    EXPECT(hf_depot_get(users, hf_depot_key_of("acme", "user", "none"), &none) == HF_ERR_NOT_FOUND);
    EXPECT(hf_depot_get(users, hf_depot_key_of("acme", "user", "down"), &none, .force = true) == HF_ERR_DENIED);
    HF_TRY(use_many_users());
    HF_TRY(watch_users(users, key));
    HF_TRY(listen_to_users(users, key));
    HF_TRY(write_users(users, key));
    HF_TRY(hf_depot_invalidate(users, key));
    HF_TRY(hf_depot_invalidate(users, key, .hard = true));
    HF_TRY(hf_depot_invalidate_namespace(users, "acme"));
    HF_TRY(hf_depot_invalidate_namespace(users, "acme", .hard = true));
    HF_TRY(hf_depot_invalidate_all(users));
    HF_TRY(hf_depot_invalidate_all(users, .hard = true));
    HF_TRY(use_depots_with_workflows(users));
    HF_TRY(hf_depot_stat(users, &counts));
    EXPECT(counts.writes >= 4 && counts.damaged == 0);
    HF_TRY(use_lists());
    return use_pages();
}

static hf_status use_dispatchers(void)
{
    int count = 0;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *small_pool = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *view = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *wide_view = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *serial = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *named_serial = NULL;
    HF_TRY(hf_pool_new(&pool));
    HF_TRY(hf_pool_new(&small_pool, .name = "small", .limit = 2));
    HF_TRY(hf_pool_view(pool, &view));
    HF_TRY(hf_pool_view(small_pool, &wide_view, .limit = 2));
    HF_TRY(hf_serial_new(&serial));
    HF_TRY(hf_serial_new(&named_serial, .name = "serial"));
    HF_TRY(hf_block(add_one, &count));
    HF_TRY(hf_block(add_one, &count, .on = view));
    EXPECT(count == 2);
    return HF_OK;
}

static hf_status use_descriptors(void)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    hf_status status = hf_fd_wait(ends[1], HF_WRITABLE);
    hf_status timed_out = hf_fd_wait(ends[0], HF_READABLE, .timeout = hf_milliseconds(1));
    HF_IGNORE(hf_fd_forget(ends[0]));
    HF_IGNORE(hf_fd_forget(ends[1]));
    (void)close(ends[0]);
    (void)close(ends[1]);
    HF_TRY(status);
    EXPECT(timed_out == HF_ERR_TIMEOUT);
    return HF_OK;
}

static hf_status greet(void *arg)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open((const char *)arg, &conn));
    HF_TRY(hf_conn_write(conn, "hello", 5));
    return hf_conn_write(conn, "hello", 5, .timeout = hf_seconds(5));
}

static hf_status read_greeting(hf_conn *conn)
{
    char text[16] = "";
    size_t len = 0;
    HF_TRY(hf_conn_read(conn, text, 1, &len));
    EXPECT(len == 1 && text[0] == 'h');
    HF_TRY(hf_conn_read(conn, text, sizeof text, &len, .timeout = hf_seconds(5)));
    EXPECT(len >= 1 && text[0] == 'e');
    return HF_OK;
}

static hf_status use_network(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "unix:%s/consumer.sock", folder);
    HF_AUTO(hf_listener_close) hf_listener *tcp = NULL;
    HF_AUTO(hf_listener_close) hf_listener *local = NULL;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &tcp));
    HF_TRY(hf_listener_open(path, &local, .backlog = 8, .replace = true));
    char address[HF_ADDRESS_LEN_MAX];
    (void)snprintf(address, sizeof address, "%s", hf_listener_address(tcp));
    HF_AUTO(hf_conn_close) hf_conn *served = NULL;
    HF_AUTO(hf_conn_close) hf_conn *direct = NULL;
    HF_AUTO(hf_conn_close) hf_conn *none = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, greet, address));
    HF_TRY(hf_listener_accept(tcp, &served));
    HF_TRY(read_greeting(served));
    HF_TRY(hf_conn_open(path, &direct, .timeout = hf_seconds(5)));
    EXPECT(hf_listener_accept(tcp, &none, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    return hf_join(scope);
}

static hf_status use_files(void)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/consumer.txt", folder);
    HF_AUTO(hf_file_close) hf_file *out = NULL;
    HF_AUTO(hf_file_close) hf_file *in = NULL;
    HF_TRY(hf_file_open(path, HF_FILE_WRITE, &out));
    HF_TRY(hf_file_write(out, "text", 4));
    HF_TRY(hf_file_sync(out));
    HF_TRY(hf_file_open(path, HF_FILE_READ, &in, .runtime = hf_runtime_current()));
    char text[8] = "";
    size_t len = 0;
    HF_TRY(hf_file_read(in, text, sizeof text, &len));
    EXPECT(len == 4 && memcmp(text, "text", 4) == 0);
    return HF_OK;
}

static hf_status use_signals(void)
{
    static const int FIRST[] = {SIGUSR1};
    static const int SECOND[] = {SIGUSR2};
    int number = 0;
    HF_AUTO(hf_os_signals_close) hf_os_signals *first = NULL;
    HF_AUTO(hf_os_signals_close) hf_os_signals *second = NULL;
    HF_TRY(hf_os_signals_open(FIRST, 1, &first));
    HF_TRY(hf_os_signals_open(SECOND, 1, &second, .runtime = hf_runtime_current()));
    EXPECT(kill(getpid(), SIGUSR1) == 0);
    HF_TRY(hf_os_signals_next(first, &number));
    EXPECT(number == SIGUSR1);
    EXPECT(hf_os_signals_next(second, &number, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    return HF_OK;
}

static hf_status use_processes(void)
{
    static const char *const TRUE_ARGV[] = {"true", NULL};
    static const char *const ECHO_ARGV[] = {"echo", "hi", NULL};
    hf_exit end = {-1, -1};
    HF_AUTO(hf_process_close) hf_process *quiet = NULL;
    HF_AUTO(hf_process_close) hf_process *echo = NULL;
    HF_TRY(hf_process_start(TRUE_ARGV, &quiet));
    HF_TRY(hf_process_wait(quiet, &end));
    EXPECT(end.code == 0 && end.signal == 0);
    HF_TRY(hf_process_start(ECHO_ARGV, &echo, .out = HF_STDIO_PIPE));
    char text[8] = "";
    size_t len = 0;
    HF_TRY(hf_conn_read(hf_process_out(echo), text, sizeof text, &len));
    EXPECT(len >= 1 && text[0] == 'h');
    return hf_process_wait(echo, &end, .timeout = hf_seconds(30));
}

static hf_status use_dumps(void)
{
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_AUTO(hf_text_free) char *json = NULL;
    HF_TRY(hf_dump(NULL, &text));
    HF_TRY(hf_dump(NULL, &json, .json = true, .no_stacks = true));
    HF_AUTO(hf_text_free) char *metrics = NULL;
    HF_AUTO(hf_text_free) char *metrics_json = NULL;
    HF_AUTO(hf_text_free) char *metrics_prometheus = NULL;
    HF_TRY(hf_metrics(NULL, &metrics));
    HF_TRY(hf_metrics(NULL, &metrics_json, .json = true));
    HF_TRY(hf_metrics(NULL, &metrics_prometheus, .prometheus = true));
    EXPECT(strstr(metrics_prometheus, "# TYPE holdfast_runtime_forks_total counter\n") != NULL);
    EXPECT(strlen(text) > 0 && json[0] == '{');
    return HF_OK;
}

static hf_status ask_services(hf_service *none, hf_execution *run)
{
    hf_update_handle *update = NULL;
    hf_description *description = NULL;
    hf_payload in = hf_payload_of_json("1");
    hf_entry memo[] = {{"customer", in}, {NULL, hf_payload_none()}};
    EXPECT(hf_start_and_signal(none, "type", in, "go", in, &run) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_signal(none, "type", in, "go", in, &run, .id = "id", .memo = memo) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_update(none, "type", in, "add", in, &run, &update) == HF_ERR_MISUSE);
    EXPECT(hf_start_and_update(none, "type", in, "add", in, &run, &update, .update_id = "once") == HF_ERR_MISUSE);
    EXPECT(hf_query(run, "view", in, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_query(run, "view", in, NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_update(run, "add", in, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_update(run, "add", in, NULL, .id = "once", .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_update_start(run, "add", in, &update) == HF_ERR_MISUSE);
    EXPECT(hf_update_start(run, "add", in, &update, .id = "once") == HF_ERR_MISUSE);
    EXPECT(hf_update_handle_new(run, "once", &update) == HF_ERR_MISUSE);
    EXPECT(hf_update_result(update, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_update_result(update, NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(strcmp(hf_update_handle_id(update), "") == 0);
    EXPECT(hf_reset(run, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_reset(run, NULL, .point = HF_RESET_LAST, .reason = "again") == HF_ERR_MISUSE);
    EXPECT(hf_describe(run, &description) == HF_ERR_MISUSE);
    int64_t cursor = 0;
    hf_payload place = hf_payload_none();
    EXPECT(hf_publish("type", in) == HF_ERR_MISUSE);
    EXPECT(hf_stream_read(run, &cursor, NULL, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_stream_read(run, &cursor, NULL, NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_changes_read(NULL, &place, NULL, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_changes_read(NULL, &place, NULL, NULL, .namespace_ = "n", .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_history(run, &place) == HF_ERR_MISUSE);
    EXPECT(hf_history(run, &place, .as_bytes = true) == HF_ERR_MISUSE);
    hf_counts counts;
    EXPECT(hf_list(NULL, NULL, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_list(NULL, NULL, NULL, .query = "RunId = 'r'", .limit = 1) == HF_ERR_MISUSE);
    EXPECT(hf_count(NULL, &counts) == HF_ERR_MISUSE);
    EXPECT(hf_count(NULL, &counts, .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_register(NULL, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_register(NULL, "n", .description = "d") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_describe(NULL, "n", NULL) == HF_ERR_MISUSE);
    hf_namespace_info_free(NULL);
    EXPECT(hf_namespace_update(NULL, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_update(NULL, "n", .owner = "o") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_keep(NULL, "n", hf_days(1)) == HF_ERR_MISUSE);
    EXPECT(hf_namespace_deprecate(NULL, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_delete(NULL, "n") == HF_ERR_MISUSE);
    EXPECT(hf_namespace_list(NULL, NULL, NULL) == HF_ERR_MISUSE);
    hf_batch_info batch;
    EXPECT(hf_delete(run) == HF_ERR_MISUSE);
    EXPECT(hf_delete(run, .all_runs = true) == HF_ERR_MISUSE);
    EXPECT(hf_batch_start(NULL, "b", HF_BATCH_CANCEL) == HF_ERR_MISUSE);
    EXPECT(hf_batch_start(NULL, "b", HF_BATCH_CANCEL, .query = "RunId = 'r'", .rate = 5) == HF_ERR_MISUSE);
    EXPECT(hf_batch_stop(NULL, "b") == HF_ERR_MISUSE);
    EXPECT(hf_batch_stop(NULL, "b", .reason = "enough") == HF_ERR_MISUSE);
    EXPECT(hf_batch_describe(NULL, "b", &batch) == HF_ERR_MISUSE);
    EXPECT(hf_batch_describe(NULL, "b", &batch, .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(hf_batch_list(NULL, NULL, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_batch_list(NULL, NULL, NULL, .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_add(NULL, "a", HF_SEARCH_INT) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_add(NULL, "a", HF_SEARCH_INT, .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_remove(NULL, "a") == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_remove(NULL, "a", .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_list(NULL, NULL, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_search_attribute_list(NULL, NULL, NULL, .namespace_ = "n") == HF_ERR_MISUSE);
    EXPECT(strcmp(hf_search_attribute_type_name(HF_SEARCH_KEYWORD_LIST), "KeywordList") == 0);
    EXPECT(strcmp(hf_workflow_status_name(HF_WORKFLOW_RUNNING), "Running") == 0);
    hf_update_handle_free(update);
    hf_description_free(description);
    return HF_OK;
}

/* Without a store there is nothing to ask: each says so. */
static hf_status use_services(void)
{
    hf_service *none = NULL;
    hf_execution *run = NULL;
    hf_payload in = hf_payload_of_json("1");
    EXPECT(hf_open("nowhere:", &none) == HF_ERR_INVALID);
    EXPECT(hf_open("nowhere:", &none, .runtime = hf_runtime_current()) == HF_ERR_INVALID);
    EXPECT(hf_start(none, "type", in, &run) == HF_ERR_MISUSE);
    EXPECT(hf_start(none, "type", in, &run, .id = "id", .task_queue = "queue") == HF_ERR_MISUSE);
    EXPECT(hf_execution_new(none, "id", &run) == HF_ERR_MISUSE);
    EXPECT(hf_execution_new(none, "id", &run, .run_id = "run") == HF_ERR_MISUSE);
    EXPECT(hf_result(run, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_result(run, NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_signal(run, "name", in) == HF_ERR_MISUSE);
    EXPECT(hf_signal(run, "name", in, .request_id = "once") == HF_ERR_MISUSE);
    EXPECT(hf_cancel(run) == HF_ERR_MISUSE);
    EXPECT(hf_cancel(run, .reason = "enough") == HF_ERR_MISUSE);
    EXPECT(hf_terminate(run) == HF_ERR_MISUSE);
    EXPECT(hf_terminate(run, .reason = "enough") == HF_ERR_MISUSE);
    return ask_services(none, run);
}

typedef struct order {
    char item[16];
    int64_t cents;
    double weight;
    bool is_express;
} order;

static const hf_member ORDER[] = {HF_MEMBER(order, item), HF_MEMBER(order, cents), HF_MEMBER(order, weight),
                                  HF_OPTIONAL(order, is_express), HF_MEMBERS_END};

static hf_status use_json(void)
{
    HF_AUTO(hf_payload_free) hf_payload made = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload again = hf_payload_none();
    order read = {"", 0, 0, true};
    HF_TRY(hf_payload_object(&made, hf_field_text("item", "a \"pen\""), hf_field_int("cents", 7),
                             hf_field_real("weight", 0.5)));
    HF_TRY(hf_payload_read(made, ORDER, &read));
    EXPECT(strcmp(read.item, "a \"pen\"") == 0 && read.cents == 7 && read.weight == 0.5 && read.is_express);
    HF_TRY(hf_payload_write(&read, ORDER, &again));
    int64_t cents = 0;
    HF_TRY(hf_json_get_int(again, "cents", &cents));
    EXPECT(cents == 7 && hf_json_get_int(again, "item", &cents) == HF_ERR_INVALID);
    EXPECT(hf_error()->kind == HF_FAILURE_APPLICATION && hf_error_find("HF_ERR_INVALID") == hf_error());
    hf_error_clear();
    EXPECT(hf_error() == NULL);
    return HF_OK;
}

static hf_status use_workers(void)
{
    hf_worker *worker = NULL;
    EXPECT(hf_worker_new(NULL, "queue", &worker) == HF_ERR_MISUSE);
    hf_testenv *testenv = NULL;
    EXPECT(hf_testenv_new(NULL) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_new(&testenv, .patience = HF_SPAN_OFF) == HF_ERR_INVALID);
    EXPECT(hf_testenv_activity(NULL, "name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_activity(NULL, "name", NULL, .on_fiber = true) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_start(NULL, "type", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_testenv_start(NULL, "type", hf_payload_none(), NULL, .id = "id") == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_command(NULL, "name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_command(NULL, "name", NULL, .cwd = "/") == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_workflow(NULL, "name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_workflow(NULL, "name", NULL, .stack_size = 16384) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_activity(NULL, "name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_worker_add_activity(NULL, "name", NULL, .on_fiber = true) == HF_ERR_MISUSE);
    EXPECT(hf_activity_fail("not in an activity") == HF_ERR_MISUSE);
    EXPECT(hf_activity_fail("not in an activity", .type = "Declined", .is_final = true) == HF_ERR_MISUSE);
    EXPECT(hf_worker_new(NULL, "queue", &worker, .cached_max = HF_OFF) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run("name", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run("name", hf_payload_none(), NULL, .start_to_close = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait("name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait("name", NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run_local("name", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_activity_run_local("name", hf_payload_none(), NULL, .start_to_close = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_side_effect(NULL, NULL, NULL) == HF_ERR_MISUSE);
    HF_AUTO(hf_saga_close) hf_saga *saga = NULL;
    EXPECT(hf_saga_open(&saga) == HF_ERR_MISUSE);
    EXPECT(hf_saga_open(&saga, .name = "trip") == HF_ERR_MISUSE);
    EXPECT(hf_saga_add(saga, "name", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_saga_add(saga, "name", hf_payload_none(), .start_to_close = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_saga_commit(saga) == HF_ERR_MISUSE && hf_saga_undo(saga) == HF_ERR_MISUSE);
    EXPECT(hf_memo_set(hf_field_text("key", "value")) == HF_ERR_MISUSE);
    EXPECT(hf_search_set(hf_field_int("key", 7), hf_field_time("when", hf_wall_now(NULL))) == HF_ERR_MISUSE);
    char uuid[HF_UUID_LEN];
    HF_TRY(hf_uuid(uuid));
    EXPECT(strlen(uuid) == HF_UUID_LEN - 1);
    hf_note(HF_LOG_INFO, "consumer", "uuid=%s", uuid);
    HF_TRY(hf_sleep_until(hf_wall_now(NULL)));
    const char *const names[] = {"name", "other"};
    size_t idx = 0;
    EXPECT(hf_signal_wait_any(names, 2, &idx, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_signal_wait_any(names, 2, &idx, NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    hf_signal_case signal = {.name = "name"};
    hf_case one = {.kind = HF_CASE_SIGNAL, .value = &signal};
    EXPECT(hf_try_select(&one, 1, &idx) == HF_ERR_MISUSE);
    EXPECT(hf_child_run("type", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_child_run("type", hf_payload_none(), NULL, .id = "id") == HF_ERR_MISUSE);
    EXPECT(hf_fork_activity(NULL, "name", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_fork_activity(NULL, "name", hf_payload_none(), NULL, .start_to_close = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_fork_child(NULL, "type", hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_fork_child(NULL, "type", hf_payload_none(), NULL, .id = "id") == HF_ERR_MISUSE);
    EXPECT(hf_child_start("type", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_child_start("type", hf_payload_none(), .parent_close = HF_PARENT_CLOSE_ABANDON) == HF_ERR_MISUSE);
    EXPECT(hf_external_signal("id", "name", hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_external_signal("id", "name", hf_payload_none(), .header = NULL) == HF_ERR_MISUSE);
    EXPECT(hf_external_cancel("id", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_signal_try("name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_on_signal("name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_on_signal("name", NULL, .arg = &worker) == HF_ERR_MISUSE);
    EXPECT(hf_on_query("name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_on_query("name", NULL, .arg = &worker) == HF_ERR_MISUSE);
    EXPECT(hf_on_update("name", NULL) == HF_ERR_MISUSE);
    EXPECT(hf_on_update("name", NULL, .may_be_left = true) == HF_ERR_MISUSE);
    EXPECT(hf_handlers_wait() == HF_ERR_MISUSE);
    EXPECT(hf_handlers_wait(.timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    EXPECT(hf_wait_until(worker != NULL) == HF_ERR_MISUSE);
    EXPECT(hf_wait_until(worker != NULL, .timeout = hf_seconds(1)) == HF_ERR_MISUSE);
    hf_until until;
    EXPECT(hf_until_begin(&until, NULL) == HF_ERR_MISUSE);
    EXPECT(hf_until_next(&until) == HF_ERR_MISUSE);
    EXPECT(hf_until_end(&until, HF_ERR_MISUSE) == HF_ERR_MISUSE);
    EXPECT(hf_handler_name() == NULL && hf_update_id() == NULL && hf_workflow_info() == NULL);
    EXPECT(hf_activity_token(NULL) == HF_ERR_MISUSE);
    EXPECT(hf_answer(NULL, hf_answer_to(hf_payload_none()), hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_answer_failed(NULL, hf_answer_to_id("id", "1"), "message") == HF_ERR_MISUSE);
    EXPECT(hf_answer_failed(NULL, hf_answer_to_id("id", "1"), "message", .is_final = true) == HF_ERR_MISUSE);
    EXPECT(hf_answer_canceled(NULL, hf_answer_to_id("id", "1"), hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_answer_heartbeat(NULL, hf_answer_to_id("id", "1"), hf_payload_none(), NULL) == HF_ERR_MISUSE);
    EXPECT(hf_activity_arg() == NULL && hf_activity_cancel_why() == HF_WHY_NOT);
    EXPECT(hf_workflow_scope() == NULL && hf_workflow_alloc(8) == NULL && !hf_patched("id"));
    EXPECT(hf_patch_deprecate("id") == HF_ERR_MISUSE);
    EXPECT(hf_continue_as_new(hf_payload_none()) == HF_ERR_MISUSE);
    EXPECT(hf_workflow_fail("not in a workflow") == HF_ERR_MISUSE);
    EXPECT(hf_workflow_fail("not in a workflow", .type = "Declined", .is_final = true) == HF_ERR_MISUSE);
    EXPECT(hf_continue_as_new(hf_payload_none(), .type = "next") == HF_ERR_MISUSE);
    HF_AUTO(hf_payload_free) hf_payload payload = hf_payload_none();
    HF_TRY(hf_payload_printf(&payload, "[%d]", 7));
    EXPECT(strcmp((const char *)payload.data, "[7]") == 0);
    return use_json();
}

static hf_status use_all(void *arg)
{
    (void)arg;
    HF_TRY(use_scopes());
    HF_TRY(use_other_headers());
    HF_TRY(use_channels());
    HF_TRY(use_locks());
    HF_TRY(use_keys());
    HF_TRY(use_flows());
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

static void use_runtimes(void)
{
    HF_AUTO(hf_runtime_free) hf_runtime *plain = NULL;
    HF_AUTO(hf_runtime_free) hf_runtime *named = NULL;
    HF_OR_DIE(hf_runtime_new(&plain));
    HF_OR_DIE(hf_runtime_new(&named, .name = "named", .threads = 1));
}

static void use_simulation(void)
{
    hf_env *plain = NULL;
    hf_env *seeded = NULL;
    HF_OR_DIE(hf_sim_new(&plain));
    HF_OR_DIE(hf_sim_new(&seeded, .seed = 42));
    HF_OR_DIE(hf_run(nothing, NULL, .env = seeded, .threads = 2));
    hf_sim_free(seeded);
    hf_sim_free(plain);
}

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(hf_version(), HF_VERSION_TEXT) != 0) {
        return 2;
    }
    folder = argv[1];
    HF_OR_DIE(hf_run(use_all, NULL));
    HF_OR_DIE(hf_run(use_all, NULL, .threads = 2));
    use_runtimes();
    use_simulation();
    return 0;
}
