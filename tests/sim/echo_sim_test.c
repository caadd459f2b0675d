/* The echo server of the examples, unmodified, on a network that delays, splits, fills up,
 * refuses and resets. In all cases an echo that arrives is right, and the server ends with
 * everything closed. */
#include "sim/example.h"

#include "../../examples/06_echo_server.c"

#undef main

enum { SEEDS = 1000, TALKERS = 4, TALK_LEN = 40 };

/* Every other seed has a network that loses nothing: it is slow and splits messages, but every client
 * must be served. */
static bool is_harsh(uint64_t seed)
{
    return seed % 2 == 0;
}

static int64_t latency_us(uint64_t seed)
{
    return 1 + (int64_t)(seed * 7919 % 5000);
}

static hf_env *begin(uint64_t seed, hf_runtime_options *ret_options)
{
    hf_rng rng = {.state = seed};
    hf_sim_options options = {
        .latency_max = hf_microseconds(latency_us(seed)),
        .short_io_permille = (int)hf_rng_below(&rng, 600),
        .full_permille = (int)hf_rng_below(&rng, 300),
        .buffer_len = 64 + (size_t)hf_rng_below(&rng, 200), /* a whole message: clients write first, then read */
        .reset_permille = is_harsh(seed) ? (int)hf_rng_below(&rng, 30) : 0,
        .refuse_permille = is_harsh(seed) ? (int)hf_rng_below(&rng, 200) : 0,
    };
    hf_env *env = hf_sim_begin_with(seed, options);
    *ret_options = hf_sim_runtime_options(env, 1 + (int)hf_rng_below(&rng, 4));
    return env;
}

static bool is_network_failure(hf_status status)
{
    return status == HF_ERR_RESET || status == HF_ERR_REFUSED || status == HF_ERR_CLOSED;
}

static size_t count_of(const char *word)
{
    size_t count = 0;
    for (const char *at = example_said; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

static unsigned clients_served; /* in all runs: shows that the network is neither harmless nor dead */
static unsigned clients_cut_off;

static uint64_t demo_once(uint64_t seed)
{
    hf_runtime_options options;
    hf_env *env = begin(seed, &options);
    uint64_t hash = 0;
    server s = {.address = "tcp:127.0.0.1:0", .is_demo = true};
    example_forget();
    hf_status status = hf_run_with(app, &s, &options);
    HF_CHECK(hf_sim_errors_logged() == 0);
    hf_sim_end(env, &hash);

    const char *line = strchr(example_said, '\n');
    unsigned served = 0;
    HF_CHECK(line != NULL && sscanf(line + 1, "%u of", &served) == 1);
    HF_CHECK_SAY(served + count_of("a client failed") == CLIENTS, "somebody is missing:\n%s", example_said);
    HF_CHECK_SAY(count_of("not what I said") == 0, "a wrong echo:\n%s", example_said);
    clients_served += served;
    clients_cut_off += CLIENTS - served;
    HF_CHECK(count_of("all connections are closed") == 1);
    HF_CHECK_SAY((status == HF_OK) == (served == CLIENTS), "%u served, %s", served, hf_status_name(status));
    HF_CHECK_SAY(status == HF_OK || (is_harsh(seed) && is_network_failure(status)), "%s:\n%s", hf_status_name(status),
                 example_said);
    return hash;
}

static void demo_one(uint64_t seed)
{
    uint64_t hash = demo_once(seed);
    if (example_is_repeated(seed)) {
        HF_CHECK(demo_once(seed) == hash);
    }
}

static void every_client_that_was_not_cut_off_is_served(void **state)
{
    (void)state;
    hf_each_seed("the echo server's demonstration", SEEDS, demo_one);
    print_message("%u clients were served, %u cut off\n", clients_served, clients_cut_off);
}

/* ---- A signal in the middle ------------------------------------------------------------------ */

typedef struct stage {
    hf_env *env;
    int64_t signal_after_us;
    hf_status ended; /* status that the server returned */
    bool has_ended;
} stage;

static const char ADDRESS[] = "tcp:127.0.0.1:7007";

/* Talks until it is cut off; the echoes must be the bytes that were sent, in order. */
static hf_status talk(void *arg)
{
    stage *st = arg;
    while (!st->has_ended) {
        HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
        if (hf_conn_open(ADDRESS, &conn) != HF_OK) {
            HF_TRY(hf_sleep(hf_microseconds(300))); /* the server does not listen yet, or no longer */
            continue;
        }
        char text[TALK_LEN];
        for (int i = 0; i < TALK_LEN; i++) {
            text[i] = (char)('a' + i % 26);
        }
        hf_status status = HF_OK;
        while (status == HF_OK) {
            status = ask(conn, text, sizeof text);
        }
        HF_CHECK_SAY(is_network_failure(status), "%s", hf_error_text());
    }
    return HF_OK;
}

static hf_status serve(void *arg)
{
    stage *st = arg;
    server s = {.address = ADDRESS};
    st->ended = app(&s);
    st->has_ended = true;
    return HF_OK;
}

static hf_status send_signal(void *arg)
{
    stage *st = arg;
    HF_TRY(hf_sleep(hf_microseconds(st->signal_after_us)));
    while (!st->has_ended &&
           hf_sim_raise(st->env, SIGTERM) == HF_ERR_NOT_FOUND) { /* the server has not opened the signal yet */
        HF_TRY(hf_sleep(hf_microseconds(100)));
    }
    return HF_OK;
}

static hf_status play(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "play", .timeout = hf_minutes(10)));
    HF_TRY(hf_fork(scope, serve, arg, .name = "serve"));
    HF_TRY(hf_fork(scope, send_signal, arg, .name = "signal"));
    for (int i = 0; i < TALKERS; i++) {
        HF_TRY(hf_fork(scope, talk, arg, .name = "talk"));
    }
    return hf_join(scope);
}

static uint64_t signal_once(uint64_t seed)
{
    hf_runtime_options options;
    hf_env *env = begin(seed, &options);
    uint64_t hash = 0;
    /* The signal comes after some round trips, or before the first one. */
    stage st = {.env = env, .signal_after_us = latency_us(seed) * (int64_t)(seed % 31), .ended = HF_ERR_FAILED};
    example_forget();
    hf_status status = hf_run_with(play, &st, &options);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_status_name(status));
    HF_CHECK_SAY(st.ended == HF_OK, "%s", hf_status_name(st.ended));
    HF_CHECK(hf_sim_errors_logged() == 0);
    HF_CHECK(count_of("shutting down") == 1 && count_of("all connections are closed") == 1);
    hf_sim_end(env, &hash);
    return hash;
}

static void signal_one(uint64_t seed)
{
    uint64_t hash = signal_once(seed);
    if (example_is_repeated(seed)) {
        HF_CHECK(signal_once(seed) == hash);
    }
}

static void a_signal_in_the_middle_ends_it_cleanly(void **state)
{
    (void)state;
    hf_each_seed("the echo server and a signal", SEEDS, signal_one);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(every_client_that_was_not_cut_off_is_served),
    cmocka_unit_test(a_signal_in_the_middle_ends_it_cleanly),
};

int main(int argc, char **argv)
{
    return hf_test_main("echo_sim", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
