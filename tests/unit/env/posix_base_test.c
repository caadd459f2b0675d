/* Time, chance, memory, guards, the fork marker, printing. */
#include "unit/env/posix_check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void clocks_move_forward_and_random_bytes_differ(void **state)
{
    (void)state;
    hf_instant first = ops()->now(posix());
    hf_instant second = ops()->now(posix());
    assert_true(second.ns >= first.ns && first.ns > 0);
    assert_true(ops()->wall_now(posix()).ns > INT64_C(1600000000) * 1000000000);

    unsigned char one[64] = {0};
    unsigned char two[64] = {0};
    ASSERT_STATUS(HF_OK, ops()->random(posix(), &op, one, sizeof one));
    ASSERT_STATUS(HF_OK, ops()->random(posix(), &op, two, sizeof two));
    assert_memory_not_equal(one, two, sizeof one);
    assert_string_equal(ops()->name, "posix");
    assert_null(ops()->point);
}

static void memory_has_the_alignment_that_was_asked(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        size_t align;
    } CASES[] = {{1, 0}, {0, 0}, {0, 64}, {1, 1}, {24, 8}, {100, 16}, {100, 64}, {1, 4096}, {5000, 4096}, {3, 65536}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("%zu bytes at %zu\n", CASES[i].len, CASES[i].align);
        unsigned char *ptr = ops()->allocate(posix(), CASES[i].len, CASES[i].align);
        assert_non_null(ptr);
        assert_int_equal((uintptr_t)ptr % (CASES[i].align > 0 ? CASES[i].align : 1), 0);
        memset(ptr, 0xa5, CASES[i].len);
        ops()->release(posix(), ptr, CASES[i].len);
    }
    ops()->release(posix(), NULL, 0);
    assert_null(ops()->allocate(posix(), SIZE_MAX - 10, 4096));
}

#if !defined(__GLIBC__) || HF_ASAN || HF_TSAN
#define HAS_HEAP false /* a sanitizer has its own */
#else
#define HAS_HEAP true
#endif

static long resident_kib(void)
{
    long total = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
    (void)fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Blocks that are in use lie between those that were freed, so that the heap cannot just become shorter. */
static void memory_between_blocks_in_use_goes_back_on_request(void **state)
{
    (void)state;
    if (!HAS_HEAP) {
        skip();
    }
    enum { COUNT = 2000, LEN = 32 * 1024 };
    static void *blocks[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++) {
        size_t len = i % 2 == 0 ? LEN : 64;
        blocks[i] = ops()->allocate(posix(), len, 16);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, len);
    }
    for (int i = 0; i < 2 * COUNT; i += 2) {
        ops()->release(posix(), blocks[i], LEN);
    }
    long before = resident_kib();
    ops()->heap_trim(posix());
    long after = resident_kib();
    for (int i = 1; i < 2 * COUNT; i += 2) {
        ops()->release(posix(), blocks[i], 64);
    }
    assert_true(after < before - COUNT * LEN / 1024 / 2);
}

static void pages_are_zero_again_after_discard(void **state)
{
    (void)state;
    size_t len = 16 * (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = ops()->pages_reserve(posix(), len);
    assert_non_null(pages);
    assert_int_equal(pages[0], 0);
    memset(pages, 0x5a, len);
    ops()->pages_discard(posix(), pages, len);
    assert_int_equal(pages[0], 0);
    assert_int_equal(pages[len - 1], 0);
    ops()->pages_release(posix(), pages, len);
    ops()->pages_release(posix(), NULL, len);
    assert_null(ops()->pages_reserve(posix(), SIZE_MAX / 2));
}

/* Touches an address in a process of its own. Returns the signal that ended it, or 0. */
static int touch(volatile unsigned char *address)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it as a bug of ours */
        *address = 1;
        _exit(0);
    }
    int status = reap(pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void touching_a_guard_faults_and_its_neighbours_do_not(void **state)
{
    (void)state;
    static const hf_guard_kind KINDS[] = {HF_GUARD_BEST, HF_GUARD_MARKER, HF_GUARD_PROTECT};
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        unsigned char *pages = ops()->pages_reserve(posix(), 3 * page_len);
        assert_non_null(pages);
        hf_guard_kind used = ops()->pages_guard(posix(), pages + page_len, page_len, KINDS[i]);
        print_message("asked for %d, got %d\n", (int)KINDS[i], (int)used);
        assert_true(used == KINDS[i] || KINDS[i] == HF_GUARD_BEST || used == HF_GUARD_NONE);
        assert_int_equal(touch(pages), 0);
        assert_int_equal(touch(pages + 2 * page_len), 0);
        if (used != HF_GUARD_NONE) {
            assert_int_equal(touch(pages + page_len), SIGSEGV);
            ops()->pages_discard(posix(), pages, 3 * page_len); /* a guard outlives it */
            assert_int_equal(touch(pages + page_len), SIGSEGV);
        }
        ops()->pages_release(posix(), pages, 3 * page_len);
    }
    assert_int_equal(ops()->pages_guard(posix(), NULL, page_len, HF_GUARD_NONE), HF_GUARD_NONE);
    assert_true(ops()->mappings_max(posix()) >= 1000);
}

static void the_fork_marker_is_1_here_and_0_in_a_forked_process(void **state)
{
    (void)state;
    hf_word *marker = ops()->fork_marker_open(posix());
    assert_non_null(marker);
    assert_int_equal(atomic_load(marker), 1);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit((int)atomic_load(marker));
    }
    assert_int_equal(reap(pid), 0);
    assert_int_equal(atomic_load(marker), 1);
    ops()->fork_marker_close(posix(), marker);
    ops()->fork_marker_close(posix(), NULL);
}

static void print_writes_all_to_stderr_and_survives_a_closed_one(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        ops()->print(posix(), "one line\n");
        (void)close(fds[0]);
        ops()->print(posix(), "lost\n"); /* the parent's end is still open: goes there */
        (void)close(STDERR_FILENO);
        ops()->print(posix(), "nowhere\n");
        _exit(0);
    }
    (void)close(fds[1]);
    assert_int_equal(reap(pid), 0);
    char text[64] = {0};
    assert_int_equal(read(fds[0], text, sizeof text - 1), 14);
    assert_string_equal(text, "one line\nlost\n");
    (void)close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_move_forward_and_random_bytes_differ),
        cmocka_unit_test(memory_has_the_alignment_that_was_asked),
        cmocka_unit_test(memory_between_blocks_in_use_goes_back_on_request),
        cmocka_unit_test(pages_are_zero_again_after_discard),
        cmocka_unit_test(touching_a_guard_faults_and_its_neighbours_do_not),
        cmocka_unit_test(the_fork_marker_is_1_here_and_0_in_a_forked_process),
        cmocka_unit_test(print_writes_all_to_stderr_and_survives_a_closed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
