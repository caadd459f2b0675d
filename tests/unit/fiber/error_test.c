/* labels: threads */
/* The text of a failure and the failure itself: asking for one does not change the other. Statuses of a program's own. */
#include "support/support.h"

#include "base/base.h"
#include "base/op.h"
#include "env/sim/sim.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Three links, each of them long enough that the whole would not fit into one message. */
static char long_part[301];

static hf_status fail_deep(void)
{
    HF_IGNORE(hf_raise(HF_ERR_IO, "the disk is gone %s", long_part));
    HF_IGNORE(hf_raise_typed(HF_ERR_STORE, "store", "the store failed %s", long_part));
    return hf_raise_typed(HF_ERR_FAILED, "order", "the order failed");
}

static void walk(char *text, size_t capacity)
{
    size_t used = 0;
    for (const hf_failure *at = hf_error(); at != NULL && used < capacity; at = at->cause) {
        used += (size_t)snprintf(text + used, capacity - used, "%s|%.20s\n", at->type, at->message);
    }
}

/* `is_whole`: the chain is there; a plain thread keeps one link. */
static void look(bool is_whole)
{
    char before[600];
    char after[600];
    char expected[1000];
    walk(before, sizeof before);
    const hf_failure *failure = hf_error();
    const char *message = failure->message;
    const char *text = hf_error_text();
    (void)snprintf(expected, sizeof expected,
                   is_whole ? "the order failed; because the store failed %s; because the disk is gone %s"
                            : "the order failed",
                   long_part, long_part);
    HF_CHECK_SAY(strcmp(text, expected) == 0, "the text was '%s'", text);
    HF_CHECK(strcmp(message, "the order failed") == 0 && hf_error() == failure && failure->message == message);
    HF_CHECK(hf_error_text() == text); /* and a second time */
    walk(after, sizeof after);
    HF_CHECK_SAY(strcmp(before, after) == 0, "the chain was '%s' and is '%s'", before, after);
}

static hf_status child(void *arg)
{
    (void)arg;
    return fail_deep();
}

static hf_status on_pool(void *arg)
{
    (void)arg;
    (void)fail_deep();
    look(true);
    HF_IGNORE(hf_raise(HF_ERR_IO, "another"));
    HF_CHECK(strcmp(hf_error_text(), "another") == 0);
    (void)fail_deep();
    look(true);
    return fail_deep();
}

static hf_status on_fibers(void *arg)
{
    (void)arg;
    hf_dispatcher *pool = NULL;
    HF_CHECK(fail_deep() == HF_ERR_FAILED);
    look(true);
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, child, NULL));
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
        look(true); /* the scope has it, too */
        HF_CHECK(strcmp(hf_scope_failure(scope, 0)->message, "the order failed") == 0);
    }
    look(true);
    HF_TRY(hf_pool_new(&pool));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, on_pool, NULL, .on = pool));
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
        look(true);
    }
    return hf_dispatcher_free(pool);
}

static void asking_for_the_text_changes_nothing(void **state)
{
    (void)state;
    memset(long_part, 'x', sizeof long_part - 1);
    assert_int_equal(hf_sim_run(1, 2, on_fibers, NULL, NULL), HF_OK);
    assert_int_equal(hf_run(on_fibers, NULL), HF_OK);
    assert_int_equal(fail_deep(), HF_ERR_FAILED);
    look(false);
}

/* A failure that was forgotten is neither found nor a cause, in each place where a failure is kept. */
static hf_status forget(void *arg)
{
    (void)arg;
    hf_error_clear();
    (void)fail_deep();
    hf_error_clear();
    HF_CHECK(hf_error() == NULL && strcmp(hf_error_text(), "") == 0 && hf_error_find("store") == NULL);
    hf_error_clear();
    HF_CHECK(hf_raise_typed(HF_ERR_FAILED, "later", "later") == HF_ERR_FAILED);
    HF_CHECK(strcmp(hf_error_text(), "later") == 0 && hf_error()->cause == NULL);
    hf_error_clear();
    return HF_ERR_FAILED; /* without a failure of its own: the library makes one, and not of an old text */
}

static hf_status forget_on_fibers(void *arg)
{
    (void)arg;
    hf_dispatcher *pool = NULL;
    HF_CHECK(forget(NULL) == HF_ERR_FAILED);
    HF_TRY(hf_pool_new(&pool));
    for (int i = 0; i < 2; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, forget, NULL, .on = i == 0 ? NULL : pool));
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED && strstr(hf_error_text(), "returned HF_ERR_FAILED") != NULL);
    }
    return hf_dispatcher_free(pool);
}

static void a_failure_can_be_forgotten(void **state)
{
    (void)state;
    memset(long_part, 'x', sizeof long_part - 1);
    assert_int_equal(hf_sim_run(1, 2, forget_on_fibers, NULL, NULL), HF_OK);
    assert_int_equal(hf_run(forget_on_fibers, NULL), HF_OK);
    assert_int_equal(forget(NULL), HF_ERR_FAILED);
}

/* ---- Statuses of a program's own ------------------------------------------------------------------------------------------ */

static void a_status_of_ones_own_has_a_word_with_its_number(void **state)
{
    static const struct {
        int status;
        const char *word;
    } ROWS[] = {
        {HF_ERR_USER, "HF_ERR_USER+0"},
        {HF_ERR_USER + 7, "HF_ERR_USER+7"},
        {INT_MAX, "HF_ERR_USER+2147482647"},
    };
    static const char *const OTHERS[] = {"HF_ERR_USER",
                                         "HF_ERR_USER+",
                                         "HF_ERR_USER+07",
                                         "HF_ERR_USER+7 ",
                                         "HF_ERR_USER+-7",
                                         "hf_err_user+7",
                                         "HF_ERR_USER+2147482648",
                                         "HF_ERR_IO",
                                         "Failure",
                                         "HF_ERR_USER+0x7",
                                         ""};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        char word[HF_TYPE_LEN_MAX];
        hf_status back = HF_OK;
        hf_status_word((hf_status)ROWS[i].status, word, sizeof word);
        assert_string_equal(word, ROWS[i].word);
        assert_true(hf_status_of_word(word, strlen(word), &back));
        assert_int_equal(back, ROWS[i].status);
        assert_string_equal(hf_status_name((hf_status)ROWS[i].status), "HF_ERR_USER");
        assert_string_equal(hf_status_text((hf_status)ROWS[i].status), "a status of the program's own");
        HF_IGNORE(hf_raise((hf_status)ROWS[i].status, "mine"));
        assert_string_equal(hf_error()->type, ROWS[i].word);
        assert_int_equal(hf_error()->status, ROWS[i].status);
    }
    for (size_t i = 0; i < HF_COUNT_OF(OTHERS); i++) {
        hf_status back = HF_OK;
        print_message("'%s'\n", OTHERS[i]);
        assert_false(hf_status_of_word(OTHERS[i], strlen(OTHERS[i]), &back));
        assert_int_equal(back, HF_OK);
    }
}

static hf_env *poor; /* the environment whose memory runs out */

static hf_status fail_without_memory(void *arg)
{
    (void)arg;
    hf_sim_fail_allocation(poor, 1, false);
    return HF_ERR_IO;
}

static hf_status join_the_failed(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, fail_without_memory, NULL));
    hf_status status = hf_join(scope);
    HF_CHECK_SAY(status == HF_ERR_NOMEM, "the join returned %s", hf_status_name(status));
    HF_CHECK(hf_error() != NULL && hf_error()->status == HF_ERR_NOMEM);
    return HF_OK;
}

/* The child's failure is lost for want of memory, but not that it failed. */
static void a_join_fails_even_without_memory_for_the_failure(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_new(&poor, .seed = 1), HF_OK);
    assert_int_equal(hf_run(join_the_failed, NULL, .env = poor, .threads = 1), HF_OK);
    hf_sim_free(poor);
}
int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(asking_for_the_text_changes_nothing),
        cmocka_unit_test(a_failure_can_be_forgotten),
        cmocka_unit_test(a_status_of_ones_own_has_a_word_with_its_number),
        cmocka_unit_test(a_join_fails_even_without_memory_for_the_failure),
    };
    return hf_test_main("error", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
