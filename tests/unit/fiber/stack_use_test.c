/* How full stacks are: in dumps, and in the log before one is full. */
/* labels: plainonly */
#include "support/support.h"

#include "fiber/core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What was logged --------------------------------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_grew = PTHREAD_COND_INITIALIZER;
static char lines[4096];

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)pthread_mutex_lock(&log_lock);
    size_t len = strlen(lines);
    (void)snprintf(lines + len, sizeof lines - len, "%s %s\n", event, fields);
    (void)pthread_cond_broadcast(&log_grew);
    (void)pthread_mutex_unlock(&log_lock);
}

static int count_of(const char *what)
{
    int count = 0;
    for (const char *at = lines; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* ---- Fibers that go deep ----------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int touch(size_t len)
{
    volatile char frame[1024];
    frame[0] = (char)len;
    frame[sizeof frame - 1] = (char)len;
    return len > sizeof frame ? touch(len - sizeof frame) + frame[0] : frame[sizeof frame - 1];
}

static hf_status go_deep(void *arg)
{
    int sum = touch(*(const size_t *)arg);
    return sum == 1 ? hf_yield() : hf_sleep(hf_hours(1));
}

/* A runtime that the test turns: no monitor looks at it but the test. */
static hf_runtime *hosted(void)
{
    hf_runtime *rt = NULL;
    lines[0] = '\0';
    assert_int_equal(hf_runtime_new(&rt, .threads = HF_OFF, .log = keep_line), HF_OK);
    return rt;
}

static hf_scope *open_in(hf_runtime *rt)
{
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = rt, .join = HF_JOIN_DISCARD), HF_OK);
    return scope;
}

static void fork_deep(hf_runtime *rt, hf_scope *scope, const char *name, const size_t *len, size_t stack_size)
{
    assert_int_equal(hf_fork(scope, go_deep, (void *)(uintptr_t)len, .name = name, .stack_size = stack_size), HF_OK);
    HF_IGNORE(hf_runtime_turn(rt, HF_SPAN_OFF));
}

static bool is_known_here(void)
{
    hf_env *env = hf_env_posix();
    unsigned char touched[1];
    char *page = env->ops->pages_reserve(env, 4096);
    bool is_known = page != NULL && env->ops->pages_touched(env, page, 4096, touched);
    env->ops->pages_release(env, page, 4096);
    return is_known;
}

static void a_page_is_touched_or_not(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    char *pages = env->ops->pages_reserve(env, 4 * 4096);
    unsigned char touched[4] = {9, 9, 9, 9};
    assert_non_null(pages);
    pages[2 * 4096] = 1;
    assert_true(env->ops->pages_touched(env, pages, 4 * 4096, touched));
    assert_memory_equal(touched, ((unsigned char[]){0, 0, 1, 0}), 4);
    env->ops->pages_discard(env, pages, 4 * 4096);
    assert_true(env->ops->pages_touched(env, pages, 4 * 4096, touched));
    assert_memory_equal(touched, ((unsigned char[]){0, 0, 0, 0}), 4);
    env->ops->pages_release(env, pages, 4 * 4096);
}

static unsigned long used_by(const char *dump, const char *name)
{
    const char *line = strstr(dump, name);
    const char *at = line != NULL ? strstr(line, "stack used up to ") : NULL;
    assert_non_null(at);
    assert_true(at < line + strcspn(line, "\n"));
    assert_in_range(strtoul(strstr(at, " of ") + 4, NULL, 10), 60000, 61440);
    return strtoul(at + strlen("stack used up to "), NULL, 10);
}

static void a_dump_says_how_much_of_its_stack_a_fiber_has_used(void **state)
{
    (void)state;
    static const size_t LITTLE = 1000;
    static const size_t MUCH = 30000;
    hf_runtime *rt = hosted();
    hf_scope *scope = open_in(rt);
    fork_deep(rt, scope, "little", &LITTLE, 0);
    fork_deep(rt, scope, "much", &MUCH, 0);
    char *text = NULL;
    assert_int_equal(hf_dump(rt, &text), HF_OK);
    print_message("%s", text);
    unsigned long little = used_by(text, "fiber 'little'");
    unsigned long much = used_by(text, "fiber 'much'");
    assert_in_range(little, 1000, 16000);
    assert_in_range(much, 30000, 46000);
    hf_text_free(text);
    assert_int_equal(hf_dump(rt, &text, .json = true), HF_OK);
    assert_non_null(strstr(text, "\"stack_used_max\":"));
    hf_text_free(text);
    assert_int_equal(hf_dump(rt, &text, .no_stacks = true), HF_OK);
    assert_null(strstr(text, "stack used"));
    hf_text_free(text);
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

static void three_quarters_of_a_stack_are_told_once_for_each_name(void **state)
{
    (void)state;
    static const struct {
        size_t stack_size, below, above;
    } CASES[] = {{16 * 1024, 2000, 9000}, {64 * 1024, 36000, 50000}, {256 * 1024, 170000, 230000}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_stack_names told = {.count = 0};
        hf_runtime *rt = hosted();
        hf_scope *scope = open_in(rt);
        fork_deep(rt, scope, "modest", &CASES[i].below, CASES[i].stack_size);
        hf_stack_look(rt, &told);
        assert_string_equal(lines, "");
        fork_deep(rt, scope, "greedy", &CASES[i].above, CASES[i].stack_size);
        hf_stack_look(rt, &told);
        print_message("%s", lines);
        assert_int_equal(count_of("stack_nearly_full fiber=greedy used="), 1);
        assert_int_equal(count_of("\n"), 1);
        fork_deep(rt, scope, "greedy", &CASES[i].above, CASES[i].stack_size); /* another stack */
        hf_stack_look(rt, &told);
        hf_stack_look(rt, &told);
        assert_int_equal(count_of("\n"), 1);
        fork_deep(rt, scope, "gluttonous", &CASES[i].above, CASES[i].stack_size);
        hf_stack_look(rt, &told);
        assert_int_equal(count_of("stack_nearly_full fiber=gluttonous used="), 1);
        assert_int_equal(count_of("\n"), 2);
        assert_int_equal(hf_scope_close(scope), HF_OK);
        assert_int_equal(hf_runtime_free(rt), HF_OK);
    }
}

/* More than one question to the kernel has room for, and more than one look tells of. */
static void all_stacks_are_looked_at(void **state)
{
    (void)state;
    enum { COUNT = 600 };
    static const size_t LITTLE = 100;
    static const size_t MUCH = 50000;
    hf_stack_names told = {.count = 0};
    hf_runtime *rt = hosted();
    hf_scope *scope = open_in(rt);
    for (int i = 0; i < COUNT; i++) {
        fork_deep(rt, scope, "modest", &LITTLE, 0);
    }
    fork_deep(rt, scope, "last", &MUCH, 0);
    hf_stack_look(rt, &told);
    assert_int_equal(count_of("stack_nearly_full fiber=last used="), 1);
    assert_int_equal(count_of("\n"), 1);
    for (int i = 0; i < 100; i++) {
        fork_deep(rt, scope, i < 99 ? "last" : "very last", &MUCH, 0);
    }
    for (int i = 0; i < 3; i++) {
        hf_stack_look(rt, &told);
    }
    assert_int_equal(count_of("stack_nearly_full fiber=\"very last\" used="), 1);
    assert_int_equal(count_of("\n"), 2);
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

static void the_monitor_looks(void **state)
{
    (void)state;
    static const size_t MUCH = 50000;
    hf_runtime *rt = NULL;
    lines[0] = '\0';
    assert_int_equal(hf_runtime_new(&rt, .threads = 1, .log = keep_line), HF_OK);
    hf_scope *scope = open_in(rt);
    assert_int_equal(hf_fork(scope, go_deep, (void *)(uintptr_t)&MUCH, .name = "greedy"), HF_OK);
    (void)pthread_mutex_lock(&log_lock);
    while (strstr(lines, "stack_nearly_full fiber=greedy") == NULL) {
        (void)pthread_cond_wait(&log_grew, &log_lock);
    }
    (void)pthread_mutex_unlock(&log_lock);
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_page_is_touched_or_not),
    cmocka_unit_test(a_dump_says_how_much_of_its_stack_a_fiber_has_used),
    cmocka_unit_test(three_quarters_of_a_stack_are_told_once_for_each_name),
    cmocka_unit_test(all_stacks_are_looked_at),
    cmocka_unit_test(the_monitor_looks),
};

int main(int argc, char **argv)
{
    if (!is_known_here()) {
        (void)printf("this kernel does not say which pages are touched\n");
        return 77;
    }
    return hf_test_main("stack_use", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
