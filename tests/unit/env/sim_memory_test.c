/* Options, memory and randomness of a simulated environment. */
#include "sim_check.h"

#include "base/spin.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void options_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        hf_sim_options options;
        hf_status status;
    } CASES[] = {
        {"defaults", {.size = sizeof(hf_sim_options)}, HF_OK},
        {"all off", {.size = sizeof(hf_sim_options), .switch_permille = HF_OFF, .short_io_permille = HF_OFF}, HF_OK},
        {"no size", {.size = 0}, HF_ERR_MISUSE},
        {"too new", {.size = sizeof(hf_sim_options) + 8}, HF_ERR_UNSUPPORTED},
        {"older caller", {.size = offsetof(hf_sim_options, eio_permille)}, HF_OK},
        {"over 1000", {.size = sizeof(hf_sim_options), .reset_permille = 1001}, HF_ERR_INVALID},
        {"below off", {.size = sizeof(hf_sim_options), .eio_permille = -3}, HF_ERR_INVALID},
        {"unlimited disk", {.size = sizeof(hf_sim_options), .disk_len_max = HF_UNLIMITED}, HF_OK},
        {"unlimited steps", {.size = sizeof(hf_sim_options), .steps_max = HF_UNLIMITED}, HF_OK},
        {"no steps", {.size = sizeof(hf_sim_options), .steps_max = HF_OFF}, HF_ERR_INVALID},
        {"negative crash", {.size = sizeof(hf_sim_options), .crash_after = -7}, HF_ERR_INVALID},
        {"endless latency", {.size = sizeof(hf_sim_options), .latency_max = {.ns = INT64_MAX}}, HF_ERR_INVALID},
        {"huge buffer", {.size = sizeof(hf_sim_options), .buffer_len = SIZE_MAX}, HF_ERR_INVALID},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_env *env = NULL;
        print_message("options '%s'\n", CASES[i].name);
        assert_int_equal(hf_sim_new_with(&env, &CASES[i].options), CASES[i].status);
        hf_sim_free(env);
    }
    assert_int_equal(hf_sim_new_with(NULL, &CASES[0].options), HF_ERR_MISUSE);
}

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    hf_env *env = NULL;
    void *blocks[6];
    assert_int_equal(hf_sim_new(&env, .seed = 1), HF_OK);
    void *first = env->ops->allocate(env, 10, 8);
    assert_non_null(first);
    hf_sim_fail_allocation(env, 3, false);
    for (int i = 0; i < 6; i++) {
        blocks[i] = env->ops->allocate(env, (size_t)i * 100, 64);
        assert_int_equal(blocks[i] == NULL, i == 2);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
    }
    assert_int_equal(hf_sim_allocations(env), 7);
    assert_int_equal(hf_sim_allocations_live(env), 6);
    hf_sim_fail_allocation(env, 1, true);
    hf_poller *poller = NULL;
    hf_thread *thread = NULL;
    assert_null(env->ops->allocate(env, 1, 1));
    assert_null(env->ops->pages_reserve(env, 4096));
    assert_null(env->ops->fork_marker_open(env));
    assert_int_equal(env->ops->poller_open(env, NULL, &poller), HF_ERR_NOMEM);
    assert_int_equal(env->ops->thread_start(env, NULL, "x", 0, NULL, NULL, &thread), HF_ERR_NOMEM);
    hf_sim_fail_allocation(env, 0, false);
    hf_word *marker = env->ops->fork_marker_open(env);
    assert_int_equal(atomic_load(marker), 1);
    env->ops->fork_marker_close(env, marker);
    for (int i = 0; i < 6; i++) {
        env->ops->release(env, blocks[i], (size_t)i * 100);
    }
    env->ops->release(env, first, 10);
    sim_finish(env, 1);
}

static void many_blocks_come_and_go(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static void *blocks[COUNT];
    hf_env *env = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = 1), HF_OK);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            blocks[i] = env->ops->allocate(env, i % 97, 8);
            assert_non_null(blocks[i]);
        }
        assert_int_equal(hf_sim_allocations_live(env), COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            size_t at = (i * 2003 + round) % COUNT;
            env->ops->release(env, blocks[at], at % 97);
        }
        assert_int_equal(hf_sim_allocations_live(env), 0);
    }
    sim_finish(env, 1);
}

/* ---- Use after release ---------------------------------------------------------------------------------------------- */

enum { BLOCK_LEN = 200 };

static void use_nothing(unsigned char *block)
{
    (void)block;
}

static void write_first_byte(unsigned char *block)
{
    *(volatile unsigned char *)block = 0;
}

static void write_last_byte(unsigned char *block)
{
    ((volatile unsigned char *)block)[BLOCK_LEN - 1] = 0;
}

static void take_lock(unsigned char *block)
{
    hf_spin_lock((hf_spin *)(void *)block);
}

static void follow_pointer(unsigned char *block)
{
    volatile unsigned char *volatile *at = (volatile unsigned char *volatile *)(void *)block;
    (void)**at;
}

/* Whether a process that uses a released block in this way, and then goes on for a while, ends as it should. */
static bool ends_well(void (*use)(unsigned char *block))
{
    static const int DEADLY[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        for (size_t i = 0; i < sizeof DEADLY / sizeof *DEADLY; i++) {
            (void)signal(DEADLY[i], SIG_DFL); /* cmocka would go on with the next test, in the child */
        }
        (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* it says what it noticed */
        hf_env *env = NULL;
        bool is_made = hf_sim_new(&env, .seed = 1) == HF_OK;
        unsigned char *block = is_made ? env->ops->allocate(env, BLOCK_LEN, 16) : NULL;
        if (block == NULL) {
            _exit(0);
        }
        memset(block, 0, BLOCK_LEN);
        env->ops->release(env, block, BLOCK_LEN);
        use(block);
        for (int i = 0; i < 1000; i++) {
            env->ops->release(env, env->ops->allocate(env, 10, 0), 10);
        }
        hf_sim_free(env);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static void use_after_release_is_noticed(void **state)
{
    (void)state;
    assert_true(ends_well(use_nothing));
    assert_false(ends_well(write_first_byte));
    assert_false(ends_well(write_last_byte));
    assert_false(ends_well(take_lock));
    assert_false(ends_well(follow_pointer));
}

/* ---- The rest ------------------------------------------------------------------------------------------------------- */

static void pages_are_zeroed_and_guarded(void **state)
{
    (void)state;
    hf_env *env = NULL;
    hf_sim_counters counters;
    size_t len = 16 * 4096;
    assert_int_equal(hf_sim_new(&env, .seed = 1), HF_OK);
    char *pages = (char *)env->ops->pages_reserve(env, len);
    assert_non_null(pages);
    pages[len - 1] = 1;
    env->ops->pages_discard(env, pages, len);
    assert_int_equal(pages[len - 1], 0);
    assert_int_equal(env->ops->pages_guard(env, pages, 4096, HF_GUARD_PROTECT), HF_GUARD_PROTECT);
    assert_int_equal(env->ops->pages_guard(env, pages, 4096, HF_GUARD_NONE), HF_GUARD_NONE);
    assert_int_not_equal(env->ops->pages_guard(env, pages + 4096, 4096, HF_GUARD_BEST), HF_GUARD_NONE);
    hf_sim_count(env, &counters);
    assert_int_equal(counters.guards, 2);
    env->ops->pages_release(env, pages, len);
    sim_finish(env, 1);
}

static void randomness_comes_from_the_seed(void **state)
{
    (void)state;
    uint8_t bytes[3][37];
    static const uint64_t SEEDS[3] = {5, 5, 6};
    for (int i = 0; i < 3; i++) {
        hf_env *env = NULL;
        assert_int_equal(hf_sim_new(&env, .seed = SEEDS[i]), HF_OK);
        assert_int_equal(env->ops->random(env, NULL, bytes[i], sizeof bytes[i]), HF_OK);
        sim_finish(env, SEEDS[i]);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    assert_memory_not_equal(bytes[0], bytes[2], sizeof bytes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_checked),          cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(many_blocks_come_and_go),      cmocka_unit_test(use_after_release_is_noticed),
        cmocka_unit_test(pages_are_zeroed_and_guarded), cmocka_unit_test(randomness_comes_from_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
