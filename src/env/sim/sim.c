/* A simulated environment: its options, its table of operations, how it is made and freed. The operations are in
 * sched.c (threads and time), poller.c, delivery.c, stream.c, listen.c (network), disk.c, writeback.c, crash.c (files),
 * signals.c and memory.c. */
#include "env/sim/sim_private.h"

#include "base/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_LEN_MAX ((size_t)1 << 30)

static const int64_t START_NS = INT64_C(1000000000);              /* not 0: an instant of 0 often means "none" */
static const int64_t EPOCH_NS = INT64_C(1700000000) * 1000000000; /* the wall clock when the other one was 0 */

static hf_instant sim_now(hf_env *env)
{
    return (hf_instant){hf_sim_of(env)->now};
}

static hf_time sim_wall_now(hf_env *env)
{
    return (hf_time){EPOCH_NS + hf_sim_of(env)->now};
}

static void sim_whoami(hf_env *env, char *ret_text, size_t capacity)
{
    (void)env;
    (void)snprintf(ret_text, capacity, "1@sim");
}

static hf_status sim_random(hf_env *env, hf_op *op, void *bytes, size_t len)
{
    (void)op;
    hf_sim *sim = hf_sim_of(env);
    uint8_t *to = (uint8_t *)bytes;
    hf_sim_trace(sim, HF_SIM_TRACE_RANDOM, len);
    while (len > 0) {
        uint64_t word = hf_rng_next(&sim->rng_random);
        size_t count = len < sizeof word ? len : sizeof word;
        memcpy(to, &word, count);
        to += count;
        len -= count;
    }
    return HF_OK;
}

static int64_t sim_mappings_max(hf_env *env)
{
    (void)env;
    return 65530; /* Linux's default; the host's own would make runs differ */
}

static int sim_core_count(hf_env *env)
{
    (void)env;
    return 2;
}

static int sim_thread_core(hf_env *env)
{
    (void)env;
    return -1;
}

static hf_status sim_thread_pin(hf_env *env, hf_op *op, int index)
{
    (void)env;
    (void)op;
    (void)index;
    return HF_OK; /* simulated threads run on one core in any case */
}

static void sim_thread_unpin(hf_env *env, hf_thread *thread)
{
    (void)env;
    (void)thread;
}

static uint64_t sim_thread_id(hf_env *env)
{
    return hf_sim_of(env)->current->serial + 1;
}

static void sim_barrier_all(hf_env *env)
{
    (void)env; /* one thread of the host runs everything, in order */
}

/* One handler for all numbers: the library has no other. */
static hf_status sim_interrupt_open(hf_env *env, hf_op *op, int number, void (*on_signal)(void))
{
    (void)op;
    (void)number;
    hf_sim_of(env)->on_signal = on_signal;
    return HF_OK;
}

static void sim_interrupt_close(hf_env *env, int number)
{
    (void)env; /* another runtime may have opened it, too; a signal that is under way finds the handler */
    (void)number;
}

static hf_status sim_overflow_open(hf_env *env, hf_op *op, bool (*on_fault)(void *state, void *address), void *state)
{
    (void)env;
    (void)on_fault;
    (void)state;
    return hf_fail(op, HF_ERR_UNSUPPORTED, "a simulated environment does not report overflowed stacks");
}

static void sim_overflow_close(hf_env *env, void *state)
{
    (void)env;
    (void)state;
}

static void sim_overflow_thread(hf_env *env)
{
    (void)env;
}

static int sim_poller_fd(hf_env *env, hf_poller *poller)
{
    (void)env;
    (void)poller;
    return -1;
}

static void sim_poller_arm(hf_env *env, hf_poller *poller, hf_instant deadline)
{
    (void)env;
    (void)poller;
    (void)deadline;
}

static void sim_print(hf_env *env, const char *text)
{
    (void)env;
    (void)fputs(text, stderr);
}

static const hf_env_ops SIM_OPS = {
    .name = "sim",
    .now = sim_now,
    .wall_now = sim_wall_now,
    .random = sim_random,
    .whoami = sim_whoami,
    .allocate = hf_sim_allocate,
    .release = hf_sim_release,
    .pages_reserve = hf_sim_pages_reserve,
    .pages_release = hf_sim_pages_release,
    .heap_trim = hf_sim_heap_trim,
    .pages_discard = hf_sim_pages_discard,
    .pages_guard = hf_sim_pages_guard,
    .pages_touched = hf_sim_pages_touched,
    .mappings_max = sim_mappings_max,
    .fork_marker_open = hf_sim_fork_marker_open,
    .fork_marker_close = hf_sim_fork_marker_close,
    .core_count = sim_core_count,
    .thread_start = hf_sim_thread_start,
    .thread_join = hf_sim_thread_join,
    .thread_forget = hf_sim_thread_forget,
    .thread_signal = hf_sim_thread_signal,
    .thread_id = sim_thread_id,
    .thread_core = sim_thread_core,
    .thread_pin = sim_thread_pin,
    .thread_unpin = sim_thread_unpin,
    .word_wait = hf_sim_word_wait,
    .word_wake = hf_sim_word_wake,
    .barrier_all = sim_barrier_all,
    .point = hf_sim_point,
    .interrupt_open = sim_interrupt_open,
    .interrupt_close = sim_interrupt_close,
    .overflow_open = sim_overflow_open,
    .overflow_close = sim_overflow_close,
    .overflow_thread = sim_overflow_thread,
    .poller_open = hf_sim_poller_open,
    .poller_close = hf_sim_poller_close,
    .poller_set = hf_sim_poller_set,
    .poller_wait = hf_sim_poller_wait,
    .poller_ring = hf_sim_poller_ring,
    .poller_fd = sim_poller_fd,
    .poller_arm = sim_poller_arm,
    .listen = hf_sim_listen,
    .accept = hf_sim_accept,
    .peer_is_us = hf_sim_peer_is_us,
    .connect = hf_sim_connect,
    .connect_finish = hf_sim_connect_finish,
    .read = hf_sim_read,
    .write = hf_sim_write,
    .shutdown = hf_sim_shutdown,
    .close = hf_sim_close,
    .resolve = hf_sim_resolve,
    .file_open = hf_sim_file_open,
    .file_read = hf_sim_file_read,
    .file_write = hf_sim_file_write,
    .file_sync = hf_sim_file_sync,
    .file_close = hf_sim_file_close,
    .file_remove = hf_sim_file_remove,
    .socket_remove = hf_sim_socket_remove,
    .file_check = hf_sim_file_check,
    .file_reread = hf_sim_file_reread,
    .lock_open = hf_sim_lock_open,
    .lock_close = hf_sim_lock_close,
    .signals_open = hf_sim_signals_open,
    .signals_share = hf_sim_signals_share,
    .signals_read = hf_sim_signals_read,
    .signals_close = hf_sim_signals_close,
    .pipe = hf_sim_pipe,
    .print = sim_print,
};

/* A probability in 1/1000: 0 = the default, HF_OFF = 0. */
static hf_status permille_fill(hf_op *op, const char *name, int *permille, int by_default)
{
    if (*permille == 0) {
        *permille = by_default;
    } else if (*permille == HF_OFF) {
        *permille = 0;
    }
    return *permille >= 0 && *permille <= 1000
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "%s is a probability of 0 to 1000, or HF_OFF, not %d", name, *permille);
}

static hf_status number_fill(hf_op *op, const char *name, int64_t *number, int64_t by_default, int64_t off)
{
    if (*number == 0) {
        *number = by_default;
    } else if (*number == HF_OFF) {
        *number = off;
    }
    return *number >= 0 || *number == HF_UNLIMITED
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "%s cannot be %lld", name, (long long)*number);
}

static hf_status bounds_check(hf_op *op, const hf_sim_options *options)
{
    if (options->latency_max.ns < 0 || options->latency_max.ns > hf_hours(1).ns) {
        return hf_fail(op, HF_ERR_INVALID, "latency_max is at most an hour");
    }
    if (options->crash_after < 0) {
        return hf_fail(op, HF_ERR_INVALID, "crash_after is a number of operations, or 0 for never");
    }
    if (options->buffer_len > BUFFER_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "buffer_len is at most %zu bytes", BUFFER_LEN_MAX);
    }
    return HF_OK;
}

/* Checks the caller's options and fills in the defaults. An older caller's struct is shorter: the rest is 0. */
static hf_status options_fill(hf_op *op, const hf_sim_options *given, hf_sim_options *ret_options)
{
    hf_sim_options options = {0};
    if (given->size < offsetof(hf_sim_options, switch_permille) || given->size > sizeof options) {
        return hf_fail(op, HF_ERR_INVALID,
                       "hf_sim_new: the options have .size = %zu, which cannot be right: is it set?", given->size);
    }
    memcpy(&options, given, given->size);
    HF_TRY(permille_fill(op, "switch_permille", &options.switch_permille, 250));
    HF_TRY(permille_fill(op, "short_io_permille", &options.short_io_permille, 0));
    HF_TRY(permille_fill(op, "reset_permille", &options.reset_permille, 0));
    HF_TRY(permille_fill(op, "refuse_permille", &options.refuse_permille, 0));
    HF_TRY(permille_fill(op, "full_permille", &options.full_permille, 0));
    HF_TRY(permille_fill(op, "eio_permille", &options.eio_permille, 0));
    HF_TRY(number_fill(op, "latency_max", &options.latency_max.ns, 1000000, 0));
    HF_TRY(number_fill(op, "disk_len_max", &options.disk_len_max, HF_UNLIMITED, 0));
    HF_TRY(number_fill(op, "crash_after", &options.crash_after, 0, 0));
    HF_TRY(hf_number_check(op, "hf_sim_new", ".steps_max", options.steps_max, HF_MAY_BE_UNLIMITED));
    HF_TRY(number_fill(op, "steps_max", &options.steps_max, INT64_C(100000000), 0));
    HF_TRY(bounds_check(op, &options));
    options.steps_max = options.steps_max < 0 ? INT64_MAX : options.steps_max;
    options.buffer_len = options.buffer_len == 0 ? 4096 : options.buffer_len;
    *ret_options = options;
    return HF_OK;
}

static void main_thread_init(hf_sim *sim)
{
    hf_thread *thread = &sim->main_thread;
    thread->sim = sim;
    thread->deadline = HF_INSTANT_NEVER;
    (void)snprintf(thread->name, sizeof thread->name, "main");
    hf_list_push_back(&sim->threads, &thread->node);
    sim->thread_count = 1;
    sim->runnable[0] = thread;
    sim->runnable_count = 1;
    sim->current = thread;
}

hf_status hf_sim_make(hf_op *op, hf_env **ret_env, const hf_sim_options *options)
{
    enum { RUNNABLE_FIRST = 16 };
    hf_sim_options filled = {0};
    if (ret_env == NULL || options == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_sim_new needs options and a place for the environment");
    }
    HF_TRY(options_fill(op, options, &filled));
    hf_sim *sim = (hf_sim *)calloc(1, sizeof *sim);
    hf_thread **runnable = (hf_thread **)malloc(RUNNABLE_FIRST * sizeof(hf_thread *));
    if (sim == NULL || runnable == NULL) {
        free(sim);
        free(runnable);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated environment");
    }
    sim->env.ops = &SIM_OPS;
    sim->options = filled;
    sim->seed = filled.seed;
    sim->rng.state = hf_hash_mix(1, filled.seed);
    sim->rng_random.state = hf_hash_mix(2, filled.seed);
    sim->hash = hf_hash_mix(3, filled.seed);
    sim->now = START_NS;
    hf_exceptions_look();
    sim->exceptions = hf_exceptions_here();
    sim->runnable = runnable;
    sim->runnable_capacity = RUNNABLE_FIRST;
    sim->desc_count_max = HF_SIM_FD_COUNT_MAX;
    hf_list_init(&sim->threads);
    hf_list_init(&sim->pollers);
    hf_list_init(&sim->listeners);
    hf_list_init(&sim->stales);
    hf_list_init(&sim->files);
    main_thread_init(sim);
    *ret_env = &sim->env;
    return HF_OK;
}

void hf_sim_free(hf_env *env)
{
    if (env == NULL) {
        return;
    }
    hf_assert(env->ops == &SIM_OPS);
    hf_sim *sim = hf_sim_of(env);
    hf_sim_threads_drop(sim);
    hf_sim_pollers_drop(sim);
    hf_sim_deliveries_drop(sim);
    hf_sim_stales_drop(sim);
    hf_sim_files_drop(sim);
    hf_sim_blocks_drop(sim);
    hf_sim_scrap_drop(sim);
    free(sim->report);
    free(sim);
}

uint64_t hf_sim_trace_hash(const hf_env *env)
{
    return env != NULL ? hf_sim_of_const(env)->hash : 0;
}

uint64_t hf_sim_steps(const hf_env *env)
{
    return env != NULL ? hf_sim_of_const(env)->steps : 0;
}

void hf_sim_on_stuck(hf_env *env, void (*hook)(void *state, const char *report), void *state)
{
    hf_sim *sim = hf_sim_of(env);
    sim->on_stuck = hook;
    sim->on_stuck_state = state;
}

void hf_sim_hold(hf_env *env, int permille)
{
    hf_sim_of(env)->hold_permille = permille;
}

void hf_sim_limit_descriptors(hf_env *env, uint32_t count_max)
{
    hf_sim_of(env)->desc_count_max = count_max;
}

uint32_t hf_sim_descriptors(const hf_env *env)
{
    return hf_sim_of_const(env)->desc_count;
}

void hf_sim_count(const hf_env *env, hf_sim_counters *ret_counters)
{
    const hf_sim *sim = hf_sim_of_const(env);
    *ret_counters = sim->counters;
    ret_counters->threads_live = sim->live_count;
}
