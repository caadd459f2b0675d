/* The simulated network: an echo between threads that use pollers directly, under every fault; and the corners. */
#include "sim_check.h"

#include "base/rng.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 3, MESSAGE_LEN = 9000, CONNS_MAX = 64 };

typedef struct world {
    hf_env *env;
    const char *address;
    char bound[HF_ADDRESS_LEN_MAX];
    hf_word listening;
    hf_word clients_left;
    hf_poller *server_poller;
    int echoed; /* clients that got everything back */
    int broken; /* attempts that ended with HF_ERR_RESET */
    int refused;
} world;

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 31 + (at >> 8));
}

/* ---- the server: one thread, edge-triggered, every connection echoed until its end ---- */

typedef struct echo {
    int fd; /* -1 = free */
    uint8_t buf[256];
    size_t len; /* read, not yet written */
    bool is_ended;
} echo;

typedef struct server {
    world *world;
    hf_poller *poller;
    int listener;
    echo conns[CONNS_MAX];
} server;

static void server_accept(server *self)
{
    hf_env *env = self->world->env;
    for (;;) {
        int fd = -1;
        char peer[HF_ADDRESS_LEN_MAX];
        hf_status status = env->ops->accept(env, NULL, self->listener, &fd, peer);
        if (status == HF_ERR_AGAIN) {
            return;
        }
        SIM_CHECK(status == HF_OK);
        SIM_CHECK(strncmp(peer, "tcp:127.0.0.1:", 14) == 0 || strcmp(peer, "unix:") == 0);
        size_t slot = 0;
        while (slot < CONNS_MAX && self->conns[slot].fd >= 0) {
            slot++;
        }
        SIM_CHECK(slot < CONNS_MAX);
        self->conns[slot] = (echo){.fd = fd};
        SIM_CHECK(env->ops->poller_set(env, NULL, self->poller, fd, HF_READABLE | HF_WRITABLE, true,
                                       &self->conns[slot]) == HF_OK);
    }
}

/* Until it would have to wait; false = done with it. */
static bool server_echo(hf_env *env, echo *conn)
{
    for (;;) {
        size_t count = 0;
        hf_status status = HF_OK;
        if (conn->len > 0) {
            status = env->ops->write(env, NULL, conn->fd, conn->buf, conn->len, &count);
            if (status == HF_OK) {
                memmove(conn->buf, conn->buf + count, conn->len - count);
                conn->len -= count;
            }
        } else if (conn->is_ended) {
            return false;
        } else {
            status = env->ops->read(env, NULL, conn->fd, conn->buf, sizeof conn->buf, &count);
            if (status == HF_OK) {
                conn->len = count;
                conn->is_ended = count == 0;
            }
        }
        if (status == HF_ERR_AGAIN) {
            return true;
        }
        SIM_CHECK(status == HF_OK || status == HF_ERR_RESET);
        if (status != HF_OK) {
            return false;
        }
    }
}

static void server_close(hf_env *env, echo *conn)
{
    if (conn->fd >= 0) {
        env->ops->close(env, conn->fd);
        conn->fd = -1;
    }
}

static void server_main(void *arg)
{
    server *self = (server *)arg;
    world *shared = self->world;
    hf_env *env = shared->env;
    hf_event events[4];
    SIM_CHECK(env->ops->listen(env, NULL, shared->address, 2, false, &self->listener, shared->bound) == HF_OK);
    SIM_CHECK(env->ops->poller_open(env, NULL, &self->poller) == HF_OK);
    SIM_CHECK(env->ops->poller_set(env, NULL, self->poller, self->listener, HF_READABLE, true, self) == HF_OK);
    shared->server_poller = self->poller;
    atomic_store(&shared->listening, 1);
    env->ops->word_wake(env, &shared->listening, INT32_MAX);
    while (atomic_load(&shared->clients_left) > 0) {
        int count = env->ops->poller_wait(env, self->poller, events, 4, HF_INSTANT_NEVER);
        for (int i = 0; i < count; i++) {
            if (events[i].cookie == self) {
                server_accept(self);
            } else {
                echo *conn = (echo *)events[i].cookie;
                if (conn->fd >= 0 && !server_echo(env, conn)) {
                    server_close(env, conn);
                }
            }
        }
    }
    for (size_t i = 0; i < CONNS_MAX; i++) {
        server_close(env, &self->conns[i]);
    }
    env->ops->close(env, self->listener);
    env->ops->poller_close(env, self->poller);
}

/* ---- a client: sends a message, reads it back, tries again when the network breaks ---- */

static void wait_for(hf_env *env, hf_poller *poller)
{
    hf_event event;
    int count = env->ops->poller_wait(env, poller, &event, 1, HF_INSTANT_NEVER);
    SIM_CHECK(count == 1);
}

static hf_status client_connect(world *shared, hf_poller *poller, int *ret_fd)
{
    hf_env *env = shared->env;
    HF_TRY(env->ops->connect(env, NULL, shared->bound, ret_fd));
    SIM_CHECK(env->ops->poller_set(env, NULL, poller, *ret_fd, HF_READABLE | HF_WRITABLE, true, NULL) == HF_OK);
    hf_status status = HF_OK;
    while ((status = env->ops->connect_finish(env, NULL, *ret_fd)) == HF_ERR_AGAIN) {
        wait_for(env, poller);
    }
    return status;
}

static hf_status client_exchange(world *shared, hf_poller *poller, int fd)
{
    hf_env *env = shared->env;
    uint8_t buf[700];
    size_t sent = 0;
    size_t received = 0;
    bool is_shut = false;
    for (;;) {
        bool has_moved = false;
        size_t count = 0;
        if (sent < MESSAGE_LEN) {
            size_t len = MESSAGE_LEN - sent < sizeof buf ? MESSAGE_LEN - sent : sizeof buf;
            for (size_t i = 0; i < len; i++) {
                buf[i] = byte_at(sent + i);
            }
            hf_status status = env->ops->write(env, NULL, fd, buf, len, &count);
            if (status == HF_OK) {
                sent += count;
                has_moved = true;
            } else if (status != HF_ERR_AGAIN) {
                return status;
            }
        } else if (!is_shut) {
            HF_TRY(env->ops->shutdown(env, NULL, fd));
            is_shut = true;
        }
        hf_status status = env->ops->read(env, NULL, fd, buf, sizeof buf, &count);
        if (status == HF_OK) {
            for (size_t i = 0; i < count; i++) {
                SIM_CHECK(buf[i] == byte_at(received + i)); /* in order, nothing lost in between */
            }
            received += count;
            has_moved = true;
            if (count == 0) {
                SIM_CHECK(received == MESSAGE_LEN); /* only a reset may lose bytes */
                return HF_OK;
            }
        } else if (status != HF_ERR_AGAIN) {
            return status;
        }
        if (!has_moved) {
            wait_for(env, poller);
        }
    }
}

static void client_main(void *arg)
{
    world *shared = (world *)arg;
    hf_env *env = shared->env;
    hf_poller *poller = NULL;
    SIM_CHECK(env->ops->poller_open(env, NULL, &poller) == HF_OK);
    while (atomic_load(&shared->listening) == 0) {
        (void)env->ops->word_wait(env, &shared->listening, 0, HF_INSTANT_NEVER);
    }
    for (int tries = 0; tries < 10; tries++) {
        int fd = -1;
        hf_status status = client_connect(shared, poller, &fd);
        if (status == HF_OK) {
            status = client_exchange(shared, poller, fd);
        }
        if (fd >= 0) {
            env->ops->close(env, fd);
        }
        SIM_CHECK(status == HF_OK || status == HF_ERR_RESET || status == HF_ERR_REFUSED);
        shared->broken += status == HF_ERR_RESET ? 1 : 0;
        shared->refused += status == HF_ERR_REFUSED ? 1 : 0;
        if (status == HF_OK) {
            shared->echoed++;
            break;
        }
    }
    env->ops->poller_close(env, poller);
    if (atomic_fetch_sub(&shared->clients_left, 1) == 1) {
        env->ops->poller_ring(env, shared->server_poller);
    }
}

static uint64_t run_echo(const hf_sim_options *options, const char *address, world *ret_world)
{
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new_with(&env, options), HF_OK);
    *ret_world = (world){.env = env, .address = address, .clients_left = CLIENTS};
    server *serving = (server *)calloc(1, sizeof *serving);
    assert_non_null(serving);
    serving->world = ret_world;
    for (size_t i = 0; i < CONNS_MAX; i++) {
        serving->conns[i].fd = -1;
    }
    hf_thread *threads[CLIENTS + 1];
    threads[0] = sim_start(env, "server", server_main, serving);
    for (int i = 1; i <= CLIENTS; i++) {
        threads[i] = sim_start(env, "client", client_main, ret_world);
    }
    for (int i = 0; i <= CLIENTS; i++) {
        env->ops->thread_join(env, threads[i]);
    }
    free(serving);
    uint64_t hash = hf_sim_trace_hash(env);
    sim_finish(env, options->seed);
    return hash;
}

static void echo_is_complete_without_resets(void **state)
{
    (void)state;
    static const char *const ADDRESSES[] = {"tcp:127.0.0.1:0", "tcp:127.0.0.1:8080", "unix:/run/echo.sock"};
    for (uint64_t seed = 0; seed < 150; seed++) {
        world shared;
        hf_sim_options options = {
            .size = sizeof options,
            .seed = seed,
            .short_io_permille = seed % 2 == 0 ? 300 : HF_OFF,
            .full_permille = seed % 3 == 0 ? 200 : HF_OFF,
            .buffer_len = seed % 5 == 0 ? 7 : 0,
            .latency_max = seed % 7 == 0 ? HF_SPAN_OFF : hf_milliseconds(5),
        };
        uint64_t hash = run_echo(&options, ADDRESSES[seed % 3], &shared);
        assert_int_equal(shared.echoed, CLIENTS);
        assert_int_equal(hash, run_echo(&options, ADDRESSES[seed % 3], &shared));
    }
}

static void echo_survives_every_fault(void **state)
{
    (void)state;
    int echoed = 0;
    int broken = 0;
    int refused = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        world shared;
        hf_sim_options options = {
            .size = sizeof options,
            .seed = seed,
            .switch_permille = 400,
            .short_io_permille = 200,
            .full_permille = 100,
            .reset_permille = 5,
            .refuse_permille = 200,
        };
        (void)run_echo(&options, "tcp:127.0.0.1:0", &shared);
        echoed += shared.echoed;
        broken += shared.broken;
        refused += shared.refused;
    }
    print_message("%d echoed, %d broken, %d refused\n", echoed, broken, refused);
    assert_true(echoed > 0 && broken > 0 && refused > 0);
}

/* ---- corners ---- */

static hf_env *quiet_new(uint64_t seed)
{
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = seed, .latency_max = HF_SPAN_OFF), HF_OK);
    return env;
}

static void addresses_are_checked_and_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_status status;
        const char *bound; /* NULL = not looked at */
    } CASES[] = {
        {"tcp:127.0.0.1:80", HF_OK, "tcp:127.0.0.1:80"},
        {"tcp:127.0.0.1:80", HF_ERR_EXISTS, NULL},
        {"tcp:0.0.0.0:80", HF_ERR_EXISTS, NULL},
        {"tcp:127.0.0.2:80", HF_OK, "tcp:127.0.0.2:80"},
        {"tcp:[::0001]:80", HF_OK, "tcp:[::1]:80"},
        {"tcp:127.0.0.1:0", HF_OK, NULL},
        {"tcp:127.0.0.1:0", HF_OK, NULL},
        {"unix:/run/a", HF_OK, "unix:/run/a"},
        {"unix:/run/a", HF_ERR_EXISTS, NULL},
        {"tcp:example.org:80", HF_ERR_INVALID, NULL},
        {"tcp:127.0.0.1:65536", HF_ERR_INVALID, NULL},
        {"tcp:127.0.0.1", HF_ERR_INVALID, NULL},
        {"tcp:127.0.0.1:", HF_ERR_INVALID, NULL},
        {"tcp:127.0.0.1:8x", HF_ERR_INVALID, NULL},
        {"unix:", HF_ERR_INVALID, NULL},
        {"udp:127.0.0.1:1", HF_ERR_INVALID, NULL},
    };
    hf_env *env = quiet_new(1);
    int fds[HF_COUNT_OF(CASES)];
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char bound[HF_ADDRESS_LEN_MAX] = "";
        print_message("listen '%s'\n", CASES[i].text);
        fds[i] = -1;
        assert_int_equal(env->ops->listen(env, NULL, CASES[i].text, 5, false, &fds[i], bound), CASES[i].status);
        if (CASES[i].bound != NULL) {
            assert_string_equal(bound, CASES[i].bound);
        }
    }
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        env->ops->close(env, fds[i]);
    }
    int fd = -1;
    assert_int_equal(env->ops->listen(env, NULL, "unix:/run/a", 5, false, &fd, NULL), HF_ERR_EXISTS);
    assert_int_equal(env->ops->connect(env, NULL, "unix:/run/b", &fd), HF_ERR_NOT_FOUND);
    assert_int_equal(env->ops->listen(env, NULL, "unix:/run/a", 5, true, &fd, NULL), HF_OK);
    env->ops->close(env, fd);
    sim_finish(env, 1);
}

static void connecting_to_nobody_is_refused_now_or_later(void **state)
{
    (void)state;
    int at_once = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        hf_env *env = quiet_new(seed);
        int fd = -1;
        hf_status status = env->ops->connect(env, NULL, "tcp:127.0.0.1:9", &fd);
        at_once += status != HF_OK ? 1 : 0;
        if (status == HF_OK) {
            status = env->ops->connect_finish(env, NULL, fd);
            env->ops->close(env, fd);
        }
        assert_int_equal(status, HF_ERR_REFUSED);
        sim_finish(env, seed);
    }
    assert_in_range(at_once, 5, 45);
}

/* Returns both ends of a connection and closes the listener. */
static void connect_both(hf_env *env, int *ret_client, int *ret_server)
{
    int listener = -1;
    char bound[HF_ADDRESS_LEN_MAX];
    assert_int_equal(env->ops->listen(env, NULL, "tcp:127.0.0.1:0", 5, false, &listener, bound), HF_OK);
    assert_int_equal(env->ops->connect(env, NULL, bound, ret_client), HF_OK);
    assert_int_equal(env->ops->connect_finish(env, NULL, *ret_client), HF_OK);
    assert_int_equal(env->ops->accept(env, NULL, listener, ret_server, NULL), HF_OK);
    env->ops->close(env, listener);
}

/* env-E3 */
static void edges_are_reported_once(void **state)
{
    (void)state;
    hf_env *env = quiet_new(12);
    hf_poller *poller = NULL;
    hf_event event;
    int client = -1;
    int server_fd = -1;
    size_t count = 0;
    char byte = 'x';
    connect_both(env, &client, &server_fd);
    assert_int_equal(env->ops->poller_open(env, NULL, &poller), HF_OK);
    hf_instant now = env->ops->now(env);
    assert_int_equal(env->ops->poller_set(env, NULL, poller, server_fd, HF_READABLE, true, &client), HF_OK);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, now), 0);
    assert_int_equal(env->ops->write(env, NULL, client, &byte, 1, &count), HF_OK);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, now), 1);
    assert_int_equal(event.events, HF_READABLE);
    assert_ptr_equal(event.cookie, &client);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, now), 0); /* nothing new */
    assert_int_equal(env->ops->write(env, NULL, client, &byte, 1, &count), HF_OK);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, now), 1);
    assert_int_equal(env->ops->poller_set(env, NULL, poller, server_fd, HF_READABLE, false, &client), HF_OK);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, now), 1); /* a change looks again */
    env->ops->poller_ring(env, poller);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, HF_INSTANT_NEVER), 0);
    /* Closing with unread bytes resets: both directions are reported though only one is watched. */
    assert_int_equal(env->ops->poller_set(env, NULL, poller, client, HF_READABLE, true, &byte), HF_OK);
    env->ops->close(env, server_fd);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, HF_INSTANT_NEVER), 1);
    assert_int_equal(event.events, HF_READABLE | HF_WRITABLE);
    assert_int_equal(env->ops->read(env, NULL, client, &byte, 1, &count), HF_ERR_RESET);
    assert_int_equal(env->ops->poller_set(env, NULL, poller, 3, HF_READABLE, true, NULL), HF_ERR_IO);
    env->ops->close(env, client);
    env->ops->poller_close(env, poller);
    sim_finish(env, 12);
}

static void a_full_queue_makes_connects_wait(void **state)
{
    (void)state;
    hf_env *env = quiet_new(5);
    int listener = -1;
    int fds[3];
    hf_poller *poller = NULL;
    hf_event event;
    assert_int_equal(env->ops->listen(env, NULL, "tcp:127.0.0.1:7", 2, false, &listener, NULL), HF_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(env->ops->connect(env, NULL, "tcp:127.0.0.1:7", &fds[i]), HF_OK);
        assert_int_equal(env->ops->connect_finish(env, NULL, fds[i]), i < 2 ? HF_OK : HF_ERR_AGAIN);
    }
    assert_int_equal(env->ops->poller_open(env, NULL, &poller), HF_OK);
    assert_int_equal(env->ops->poller_set(env, NULL, poller, fds[2], HF_WRITABLE, true, NULL), HF_OK);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, HF_INSTANT_NEVER), 1);
    assert_int_equal(env->ops->connect_finish(env, NULL, fds[2]), HF_ERR_TIMEOUT);
    for (int i = 0; i < 3; i++) {
        env->ops->close(env, fds[i]);
    }
    env->ops->close(env, listener);
    env->ops->poller_close(env, poller);
    sim_finish(env, 5);
}

static void a_limit_on_descriptors_loses_nobody(void **state)
{
    (void)state;
    hf_env *env = quiet_new(6);
    int listener = -1;
    int client = -1;
    int other = -1;
    assert_int_equal(env->ops->listen(env, NULL, "tcp:127.0.0.1:7", 2, false, &listener, NULL), HF_OK);
    assert_int_equal(env->ops->connect(env, NULL, "tcp:127.0.0.1:7", &client), HF_OK);
    hf_sim_limit_descriptors(env, 2);
    assert_int_equal(env->ops->accept(env, NULL, listener, &other, NULL), HF_ERR_LIMIT);
    assert_int_equal(env->ops->pipe(env, NULL, &other, &other), HF_ERR_LIMIT);
    hf_sim_limit_descriptors(env, 3);
    assert_int_equal(env->ops->accept(env, NULL, listener, &other, NULL), HF_OK);
    env->ops->close(env, other);
    env->ops->close(env, client);
    env->ops->close(env, listener);
    sim_finish(env, 6);
}

static void pipes_carry_bytes_and_end(void **state)
{
    (void)state;
    hf_env *env = quiet_new(7);
    int read_fd = -1;
    int write_fd = -1;
    char buf[5000] = {0};
    size_t count = 0;
    assert_int_equal(env->ops->pipe(env, NULL, &read_fd, &write_fd), HF_OK);
    assert_int_equal(env->ops->read(env, NULL, read_fd, buf, sizeof buf, &count), HF_ERR_AGAIN);
    assert_int_equal(env->ops->read(env, NULL, write_fd, buf, sizeof buf, &count), HF_ERR_INVALID);
    assert_int_equal(env->ops->write(env, NULL, write_fd, buf, sizeof buf, &count), HF_OK);
    assert_int_equal(count, 4096);
    assert_int_equal(env->ops->write(env, NULL, write_fd, buf, sizeof buf, &count), HF_ERR_AGAIN);
    env->ops->close(env, write_fd);
    assert_int_equal(env->ops->read(env, NULL, read_fd, buf, sizeof buf, &count), HF_OK);
    assert_int_equal(count, 4096);
    assert_int_equal(env->ops->read(env, NULL, read_fd, buf, sizeof buf, &count), HF_OK);
    assert_int_equal(count, 0);
    env->ops->close(env, read_fd);
    assert_int_equal(env->ops->pipe(env, NULL, &read_fd, &write_fd), HF_OK);
    env->ops->close(env, read_fd);
    assert_int_equal(env->ops->write(env, NULL, write_fd, buf, 1, &count), HF_ERR_RESET);
    env->ops->close(env, write_fd);
    sim_finish(env, 7);
}

static void names_resolve_the_same_every_time(void **state)
{
    (void)state;
    hf_env *env = quiet_new(8);
    char addresses[2][HF_ADDRESS_LEN_MAX];
    char again[1][HF_ADDRESS_LEN_MAX];
    size_t count = 0;
    assert_int_equal(env->ops->resolve(env, NULL, "localhost", addresses, 2, &count), HF_OK);
    assert_int_equal(count, 1);
    assert_string_equal(addresses[0], "127.0.0.1");
    assert_int_equal(env->ops->resolve(env, NULL, "store-1.sim", addresses, 2, &count), HF_OK);
    assert_int_equal(env->ops->resolve(env, NULL, "store-1.sim", again, 1, &count), HF_OK);
    assert_string_equal(addresses[0], again[0]);
    assert_memory_equal(again[0], "127.0.0.", 8);
    assert_int_equal(env->ops->resolve(env, NULL, "::0001", again, 1, &count), HF_OK);
    assert_string_equal(again[0], "::1");
    assert_int_equal(env->ops->resolve(env, NULL, "example.org", again, 1, &count), HF_ERR_NOT_FOUND);
    sim_finish(env, 8);
}

static void raised_signals_are_read_in_order(void **state)
{
    (void)state;
    hf_env *env = quiet_new(9);
    static const int NUMBERS[] = {SIGTERM, SIGHUP};
    int fd = -1;
    int other = -1;
    int number = 0;
    hf_poller *poller = NULL;
    hf_event event;
    assert_int_equal(hf_sim_raise(env, SIGTERM), HF_ERR_NOT_FOUND);
    assert_int_equal(env->ops->signals_open(env, NULL, NUMBERS, 2, &fd), HF_OK);
    assert_int_equal(env->ops->signals_open(env, NULL, NUMBERS + 1, 1, &other), HF_ERR_EXISTS);
    assert_int_equal(env->ops->poller_open(env, NULL, &poller), HF_OK);
    assert_int_equal(env->ops->poller_set(env, NULL, poller, fd, HF_READABLE, true, NULL), HF_OK);
    assert_int_equal(hf_sim_raise(env, SIGHUP), HF_OK);
    assert_int_equal(hf_sim_raise(env, SIGTERM), HF_OK);
    assert_int_equal(hf_sim_raise(env, SIGINT), HF_ERR_NOT_FOUND);
    assert_int_equal(env->ops->poller_wait(env, poller, &event, 1, HF_INSTANT_NEVER), 1);
    assert_int_equal(env->ops->signals_read(env, NULL, fd, &number), HF_OK);
    assert_int_equal(number, SIGHUP);
    assert_int_equal(env->ops->signals_read(env, NULL, fd, &number), HF_OK);
    assert_int_equal(number, SIGTERM);
    assert_int_equal(env->ops->signals_read(env, NULL, fd, &number), HF_ERR_AGAIN);
    env->ops->signals_close(env, NUMBERS, 2, fd);
    env->ops->poller_close(env, poller);
    sim_finish(env, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_is_complete_without_resets),
        cmocka_unit_test(echo_survives_every_fault),
        cmocka_unit_test(addresses_are_checked_and_taken),
        cmocka_unit_test(connecting_to_nobody_is_refused_now_or_later),
        cmocka_unit_test(edges_are_reported_once),
        cmocka_unit_test(a_full_queue_makes_connects_wait),
        cmocka_unit_test(a_limit_on_descriptors_loses_nobody),
        cmocka_unit_test(pipes_carry_bytes_and_end),
        cmocka_unit_test(names_resolve_the_same_every_time),
        cmocka_unit_test(raised_signals_are_read_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
