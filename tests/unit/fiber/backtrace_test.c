/* Call stacks of contexts that do not run, and of code that was interrupted; names for static functions. */
/* labels: threads */
#include "support/support.h"

#include "base/limits.h"
#include "env/symbols.h"
#include "fiber/watch/backtrace.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_LEN = 256 * 1024, DEPTH = 10 };

static hf_fiber parked;
static hf_context outside;

static __attribute__((noinline)) int go_down(int depth)
{
    int result = 1;
    if (depth == 0) {
        hf_context_switch(&parked.context, &outside, false);
        hf_context_arrived(&parked.context, &outside);
    } else {
        result = go_down(depth - 1);
    }
    __asm__ volatile("" : "+r"(result)::"memory"); /* keeps the frame */
    return result + 1;
}

static void parked_main(void *arg)
{
    hf_context_arrived(NULL, &outside);
    int *result = arg;
    *result = go_down(DEPTH);
    hf_context_switch(&parked.context, &outside, true);
    abort();
}

typedef struct seen {
    void *pcs[HF_BACKTRACE_DEPTH_MAX];
    int count;
} seen;

static void *look_from_another_thread(void *arg)
{
    seen *s = arg;
    s->count = hf_backtrace_of(&parked, s->pcs, HF_BACKTRACE_DEPTH_MAX);
    return NULL;
}

static int count_named(const seen *s, const char *name)
{
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        char found[128];
        char module[64];
        size_t offset = 0;
        bool is_known = hf_symbol_of(s->pcs[i], found, sizeof found, &offset, module, sizeof module);
        count += is_known && strcmp(found, name) == 0;
    }
    return count;
}

static void backtrace_of_a_parked_context_ends_at_its_entry(void **state)
{
    (void)state;
    int result = 0;
    char *stack = aligned_alloc(64, STACK_LEN);
    assert_non_null(stack);
    hf_context_adopt(&outside);
    hf_context_announce(&parked.context);
    hf_context_make(&parked.context, stack, stack + STACK_LEN, parked_main, &result);
    hf_context_switch(&outside, &parked.context, false);
    hf_context_arrived(&outside, &parked.context);

    seen here = {.count = 0};
    seen there = {.count = 0};
    here.count = hf_backtrace_of(&parked, here.pcs, HF_BACKTRACE_DEPTH_MAX);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_from_another_thread, &there), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    seen last = {.pcs = {here.count > 0 ? here.pcs[here.count - 1] : NULL}, .count = 1};
    assert_int_equal(count_named(&last, "parked_main"), 1);
    assert_int_equal(there.count, here.count);
    assert_memory_equal(here.pcs, there.pcs, (size_t)here.count * sizeof(void *));
    assert_int_equal(count_named(&here, "go_down"), DEPTH + 1);

    void *few[3];
    assert_int_equal(hf_backtrace_of(&parked, few, 3), 3);
    assert_memory_equal(few, here.pcs, sizeof few);

    hf_context_switch(&outside, &parked.context, false); /* and it goes on as if nothing had been */
    hf_context_arrived(&outside, &parked.context);
    assert_int_equal(result, DEPTH + 2);
    hf_context_retire(&parked.context);
    free(stack);
}

static seen interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted.count = hf_backtrace_here(interrupted.pcs, HF_BACKTRACE_DEPTH_MAX);
}

static __attribute__((noinline)) void be_interrupted(void)
{
    assert_int_equal(raise(SIGUSR1), 0);
    __asm__ volatile("" ::: "memory");
}

static void backtrace_in_a_signal_handler_is_that_of_the_interrupted_code(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    be_interrupted();
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_true(interrupted.count > 2);
#if !HF_ASAN && !HF_TSAN /* whose own frames may stand between */
    assert_int_equal(count_named(&interrupted, "on_signal"), 0);
#endif
    assert_int_equal(count_named(&interrupted, "be_interrupted"), 1);
}

static __attribute__((noinline)) int look_here(seen *s)
{
    s->count = hf_backtrace_here(s->pcs, HF_BACKTRACE_DEPTH_MAX);
    return s->count;
}

static void backtrace_here_starts_with_its_caller(void **state)
{
    (void)state;
    seen s = {.count = 0};
    assert_true(look_here(&s) > 1);
    seen first = {.pcs = {s.pcs[0]}, .count = 1};
    assert_int_equal(count_named(&first, "look_here"), 1);
    char text[HF_FRAME_LEN_MAX * 3];
    hf_backtrace_format(s.pcs, 2, text, sizeof text);
    assert_ptr_equal(strstr(text, "look_here+0x"), text);
    assert_non_null(strstr(text, " < backtrace_here_starts_with_its_caller+0x"));
    hf_backtrace_format(s.pcs, 2, text, 8);
    assert_string_equal(text, "look_he");
}

static void symbols_of_nothing_are_empty(void **state)
{
    (void)state;
    char name[8];
    char module[8];
    size_t offset = 0;
    int local = 0;
    assert_false(hf_symbol_of((void *)16, name, sizeof name, &offset, module, sizeof module));
    assert_string_equal(name, "");
    assert_string_equal(module, "");
    assert_int_equal(offset, 16);
    assert_false(hf_symbol_of(&local, name, sizeof name, &offset, module, sizeof module));
    assert_true(hf_symbol_of((void *)(uintptr_t)qsort, name, sizeof name, &offset, module, sizeof module));
    assert_int_equal(offset, 0);
    assert_true(strlen(module) > 0 && strlen(module) < sizeof module);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(backtrace_of_a_parked_context_ends_at_its_entry),
    cmocka_unit_test(backtrace_in_a_signal_handler_is_that_of_the_interrupted_code),
    cmocka_unit_test(backtrace_here_starts_with_its_caller),
    cmocka_unit_test(symbols_of_nothing_are_empty),
};

int main(int argc, char **argv)
{
    return hf_test_main("backtrace", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
