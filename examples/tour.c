/* A tour of the library in one process: what ./dev up runs. Each stop is a function; the smaller
 * examples beside this file show the same things one at a time, and at length. */
#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int64_t us_since(hf_instant start)
{
    return (hf_now(NULL).ns - start.ns) / 1000;
}

/* ---- 1. Fork and join ------------------------------------------------------------------------ */

static hf_status add_one(void *arg)
{
    HF_TRY(hf_yield());
    atomic_fetch_add((_Atomic int *)arg, 1);
    return HF_OK;
}

static hf_status many_fibers(void)
{
    enum { COUNT = 100000 };
    _Atomic int sum = 0;
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "many"));
    for (int i = 0; i < COUNT; i++) {
        HF_TRY(hf_fork(scope, add_one, &sum));
    }
    HF_TRY(hf_join(scope));
    printf("   %d fibers were forked, ran, yielded once and were joined in %.1f ms\n", atomic_load(&sum),
           (double)us_since(start) / 1000.0);
    return HF_OK;
}

/* ---- 2. Waiting together --------------------------------------------------------------------- */

static hf_status nap(void *arg)
{
    (void)arg;
    return hf_sleep(hf_milliseconds(100));
}

static hf_status sleepers(void)
{
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "sleepers"));
    for (int i = 0; i < 1000; i++) {
        HF_TRY(hf_fork(scope, nap, NULL));
    }
    HF_TRY(hf_join(scope));
    printf("   1000 sleeps of 100 ms took %.1f ms\n", (double)us_since(start) / 1000.0);
    return HF_OK;
}

/* ---- 3. Failure ------------------------------------------------------------------------------ */

static hf_status charge_card(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    return hf_raise(HF_ERR_FAILED, "the card was declined");
}

static hf_status pack_parcel(void *arg)
{
    (void)arg;
    hf_status status = hf_sleep(hf_hours(1));
    const char *reason = NULL;
    hf_cause cause = hf_cancel_cause(&reason);
    printf("   pack_parcel stops: a %s failed (%s)\n", hf_cause_name(cause), reason);

    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* cleanup that waits needs a shield, and gets a bounded one */
    HF_TRY(hf_shield_open(hf_seconds(1), &shield));
    HF_TRY(hf_sleep(hf_milliseconds(5)));
    printf("   pack_parcel has put everything back, inside a shield\n");
    return status;
}

static hf_status a_failure(void)
{
    HF_AUTO(hf_scope_close) hf_scope *order = NULL;
    HF_TRY(hf_scope_open(&order, .name = "order"));
    HF_TRY(hf_fork(order, pack_parcel, NULL, .name = "pack_parcel"));
    HF_TRY(hf_fork(order, charge_card, NULL, .name = "charge_card"));
    hf_status status = hf_join(order);
    printf("   hf_join returns %s: %s\n", hf_status_name(status), hf_error_text());
    return HF_OK;
}

/* ---- 4. Deadlines and joins ------------------------------------------------------------------ */

static hf_status replica(void *arg)
{
    const int *ms = arg;
    return hf_sleep(hf_milliseconds(*ms));
}

static hf_status ask_replicas(const char *what, hf_join_policy join, hf_span timeout)
{
    static int delays_ms[] = {5, 20, 10000}; /* the third one hangs */
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "replicas", .join = join, .timeout = timeout));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, replica, &delays_ms[i]));
    }
    hf_status status = hf_join(scope);
    hf_tally tally = hf_scope_tally(scope);
    printf("   %-36s %-15s %llu answered, %llu canceled, %3lld ms\n", what, hf_status_name(status),
           (unsigned long long)tally.ok, (unsigned long long)tally.canceled, (long long)(us_since(start) / 1000));
    return HF_OK;
}

static hf_status joins(void)
{
    HF_TRY(ask_replicas("any: the first answer will do", HF_JOIN_ANY, hf_seconds(5)));
    HF_TRY(ask_replicas("quorum: two of three", HF_JOIN_QUORUM(2), hf_seconds(5)));
    HF_TRY(ask_replicas("partial: what is there after 50 ms", HF_JOIN_PARTIAL, hf_milliseconds(50)));
    return ask_replicas("all, within 50 ms", HF_JOIN_ALL, hf_milliseconds(50));
}

/* ---- 5. Channels ----------------------------------------------------------------------------- */

static hf_status produce(void *arg)
{
    hf_chan *chan = arg;
    for (int i = 1; i <= 10000; i++) {
        HF_TRY(hf_chan_send(chan, &i));
    }
    return hf_chan_close(chan);
}

static hf_status channels(void)
{
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan, .name = "numbers", .capacity = 8));
    HF_TRY(hf_scope_open(&scope, .name = "producers"));
    HF_TRY(hf_fork(scope, produce, chan));
    int64_t sum = 0;
    size_t ahead_max = 0;
    int value = 0;
    while (hf_chan_recv(chan, &value) == HF_OK) {
        size_t ahead = hf_chan_count(chan);
        ahead_max = ahead > ahead_max ? ahead : ahead_max;
        sum += value;
    }
    printf("   10000 numbers came through, their sum is %lld; the producer was never more than %zu ahead\n",
           (long long)sum, ahead_max);
    return hf_join(scope);
}

/* ---- 6. Blocking calls, network, processes --------------------------------------------------- */

static hf_status count_bytes(void *arg)
{
    long *count = arg; /* on a pool thread: here one may block */
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) {
        return hf_raise(HF_ERR_NOT_FOUND, "no /proc/cpuinfo");
    }
    while (fgetc(file) != EOF) {
        (*count)++;
    }
    (void)fclose(file);
    return HF_OK;
}

static hf_status echo_once(void *arg)
{
    hf_listener *listener = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    char buf[64];
    size_t len = 0;
    HF_TRY(hf_listener_accept(listener, &conn));
    HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
    return hf_conn_write(conn, buf, len);
}

static hf_status over_the_network(void)
{
    static const char HELLO[] = "hello over loopback";
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    char buf[64];
    size_t len = 0;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_TRY(hf_scope_open(&scope, .name = "network", .timeout = hf_seconds(5)));
    HF_TRY(hf_fork(scope, echo_once, listener));
    HF_TRY(hf_conn_open(hf_listener_address(listener), &conn));
    HF_TRY(hf_conn_write(conn, HELLO, strlen(HELLO)));
    HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len));
    printf("   network: \"%.*s\" came back\n", (int)len, buf);
    return hf_join(scope);
}

static hf_status a_process(void)
{
    static const char *const ARGV[] = {"uname", "-srm", NULL};
    HF_AUTO(hf_process_close) hf_process *child = NULL;
    char buf[80];
    size_t len = 0;
    hf_exit end;
    HF_TRY(hf_process_start(ARGV, &child, .out = HF_STDIO_PIPE));
    HF_TRY(hf_conn_read(hf_process_out(child), buf, sizeof buf, &len));
    HF_TRY(hf_process_wait(child, &end));
    printf("   process: uname says %.*s", (int)len, buf);
    return HF_OK;
}

static hf_status the_world(void)
{
    long count = 0;
    HF_TRY(hf_block(count_bytes, &count));
    printf("   a pool thread read %ld bytes of /proc/cpuinfo with plain blocking calls\n", count);
    HF_TRY(over_the_network());
    return a_process();
}

/* ---- 7. The simulator ------------------------------------------------------------------------ */

static hf_status a_day(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "day"));
    for (int i = 0; i < 24; i++) {
        HF_TRY(hf_fork(scope, nap, NULL, .delay = hf_hours(i)));
    }
    return hf_join(scope);
}

static hf_status simulate(uint64_t seed)
{
    hf_env *env = NULL;
    HF_TRY(hf_sim_new(&env, .seed = seed));
    hf_status status = hf_run(a_day, NULL, .env = env, .threads = 3);
    printf("   seed %llu: a day on 3 simulated threads, trace %016llx\n", (unsigned long long)seed,
           (unsigned long long)hf_sim_trace_hash(env));
    hf_sim_free(env);
    return status;
}

/* A simulated runtime blocks its thread, so it runs on a thread of the pool. */
static hf_status simulate_three(void *arg)
{
    (void)arg;
    HF_TRY(simulate(1));
    HF_TRY(simulate(1));
    return simulate(2);
}

static hf_status simulator(void)
{
    return hf_block(simulate_three, NULL);
}

/* ---- 8. Looking inside ----------------------------------------------------------------------- */

static hf_status wait_for_order(void *arg)
{
    int order = 0;
    return hf_chan_recv(arg, &order);
}

static hf_status print_lines(const char *text, int lines_max)
{
    for (int i = 0; i < lines_max && *text != '\0'; i++) {
        int len = (int)strcspn(text, "\n");
        printf("   %.*s%s\n", len < 96 ? len : 93, text, len < 96 ? "" : "...");
        text += len + (text[len] == '\n');
    }
    return HF_OK;
}

static hf_status looking_inside(void)
{
    HF_AUTO(hf_text_free) char *dump = NULL;
    HF_AUTO(hf_text_free) char *metrics = NULL;
    HF_AUTO(hf_chan_free) hf_chan *orders = NULL;
    HF_AUTO(hf_scope_close) hf_scope *shop = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &orders, .name = "orders"));
    HF_TRY(hf_scope_open(&shop, .name = "shop", .timeout = hf_minutes(1)));
    HF_TRY(hf_fork(shop, wait_for_order, orders, .name = "clerk"));
    HF_TRY(hf_fork(shop, nap, NULL, .name = "cat"));
    HF_TRY(hf_sleep(hf_milliseconds(20)));
    HF_TRY(hf_dump(NULL, &dump, .no_stacks = true));
    printf("   hf_dump, without the stacks:\n");
    HF_TRY(print_lines(dump, 24));
    HF_TRY(hf_metrics(NULL, &metrics));
    printf("\n   hf_metrics, the first lines:\n");
    return print_lines(metrics, 16);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *title;
    hf_status (*visit)(void);
} STOPS[] = {
    {"Fibers are cheap", many_fibers},
    {"Waiting costs nothing", sleepers},
    {"A failure stops the siblings, and they clean up", a_failure},
    {"A scope ends as you say: any, quorum, partial, all; with a deadline", joins},
    {"Channels push back", channels},
    {"Blocking calls, the network, processes", the_world},
    {"The same program on virtual time: same seed, same run", simulator},
    {"What is going on in there?", looking_inside},
};

static hf_status app(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof STOPS / sizeof *STOPS; i++) {
        printf("\n%zu. %s\n", i + 1, STOPS[i].title);
        HF_TRY(STOPS[i].visit());
    }
    return HF_OK;
}

int main(void)
{
    printf("Holdfast %s, a tour\n", hf_version());
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
