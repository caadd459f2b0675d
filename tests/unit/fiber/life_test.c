/* What outlives what: each in the smallest simulated program in which something was used after it had gone. */
#include "support/support.h"

#include "fiber/core.h"

#include <string.h>

enum { LOOK_TURN = 32 }; /* alarms are looked at every so many turns */

/* Keeps the thread, as code that blocks does, until then. */
static void block_until(hf_env *env, int64_t ns)
{
    hf_word never = 0;
    while (env->ops->now(env).ns < ns) {
        (void)env->ops->word_wait(env, &never, 0, (hf_instant){ns});
    }
}

/* ---- A timeout after a cancel ------------------------------------------------------------------------------------------ */

typedef struct late {
    hf_env *env;
    int64_t start_ns;
    int turns; /* before the cancel */
    hf_scope *scope;
} late;

static hf_status slow_call(void *arg)
{
    const late *l = arg;
    block_until(l->env, l->start_ns + 3000);
    return HF_OK;
}

static void keep(void *arg)
{
    (void)arg;
}

static hf_status call_slowly(void *arg)
{
    return hf_block(slow_call, arg, .abandonable = true, .drop = keep, .timeout = hf_nanoseconds(4000));
}

/* The call is canceled, ends, and is freed by its own thread; its timeout passes before its fiber has run again. */
static hf_status cancel_late(void *arg)
{
    late *l = arg;
    l->start_ns = hf_now(NULL).ns;
    HF_TRY(hf_scope_open(&l->scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(l->scope, call_slowly, l));
    HF_TRY(hf_sleep(hf_nanoseconds(2000)));
    for (int i = 0; i < l->turns; i++) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_scope_cancel(l->scope));
    block_until(l->env, l->start_ns + 5000);
    HF_IGNORE(hf_join(l->scope));
    return hf_scope_close(l->scope);
}

static void a_timeout_leaves_a_call_alone_that_was_given_up_before(void **state)
{
    (void)state;
    for (int turns = 0; turns < LOOK_TURN; turns++) {
        late l = {.env = hf_sim_begin(1), .turns = turns};
        hf_runtime_options options = hf_sim_runtime_options(l.env, 1);
        HF_CHECK(hf_run_with(cancel_late, &l, &options) == HF_OK);
        hf_sim_end(l.env, NULL);
    }
}

/* ---- A failure from another runtime ------------------------------------------------------------------------------------- */

typedef struct border {
    hf_flight *flight;
    hf_chan *freed; /* of the runtime that stays */
    hf_chan *seen;
} border;

static hf_status fail_there(void *arg, hf_value **ret_value)
{
    (void)arg;
    (void)ret_value;
    return hf_raise(HF_ERR_FAILED, "it failed there");
}

static hf_status hear_of_it(void *arg)
{
    border *b = arg;
    char token = 0;
    HF_CHECK(hf_flight_run(b->flight, "key", 3, fail_there, NULL, NULL) == HF_ERR_FAILED);
    HF_TRY(hf_chan_send(b->seen, ""));
    HF_TRY(hf_chan_recv(b->freed, &token));
    HF_CHECK(strstr(hf_error_text(), "it failed there") != NULL);
    return hf_raise(HF_ERR_FAILED, "and here"); /* the last failure goes for this one */
}

static void a_failure_outlives_the_runtime_that_it_came_from(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        hf_env *env = hf_sim_begin(seed);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)(seed % 2));
        hf_runtime *here = NULL;
        hf_runtime *there = NULL;
        hf_scope *stays = NULL;
        hf_scope *goes = NULL;
        border b = {0};
        char token = 0;
        HF_CHECK(hf_runtime_new_with(&here, &options) == HF_OK && hf_runtime_new_with(&there, &options) == HF_OK);
        HF_CHECK(hf_scope_open(&stays, .runtime = here, .join = HF_JOIN_COLLECT) == HF_OK);
        HF_CHECK(hf_chan_new(1, &b.freed, .runtime = here) == HF_OK &&
                 hf_chan_new(1, &b.seen, .runtime = here) == HF_OK);
        HF_CHECK(hf_scope_open(&goes, .runtime = there, .join = HF_JOIN_DISCARD) == HF_OK);
        HF_CHECK(hf_flight_new(&b.flight, .scope = goes) == HF_OK);
        HF_CHECK(hf_fork(stays, hear_of_it, &b) == HF_OK);
        HF_CHECK(hf_chan_recv(b.seen, &token) == HF_OK);
        HF_CHECK(hf_scope_close(goes) == HF_OK);
        HF_CHECK(hf_flight_free(b.flight) == HF_OK);
        HF_CHECK(hf_runtime_free(there) == HF_OK);
        HF_CHECK(hf_chan_send(b.freed, "") == HF_OK);
        HF_IGNORE(hf_join(stays));
        HF_CHECK(hf_scope_close(stays) == HF_OK);
        HF_CHECK(hf_chan_free(b.freed) == HF_OK && hf_chan_free(b.seen) == HF_OK);
        HF_CHECK(hf_runtime_free(here) == HF_OK);
        hf_sim_end(env, NULL);
    }
}

/* ---- A pool that was forgotten ------------------------------------------------------------------------------------------ */

static hf_status return_at_once(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status forget_pool(void *arg)
{
    hf_dispatcher *pool = NULL;
    (void)arg;
    HF_TRY(hf_pool_new(&pool, .name = "forgotten"));
    return hf_block(return_at_once, NULL, .on = pool);
}

static void a_pool_that_was_not_freed_ends_with_its_runtime(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), forget_pool, NULL, NULL) == HF_OK);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_timeout_leaves_a_call_alone_that_was_given_up_before),
        cmocka_unit_test(a_failure_outlives_the_runtime_that_it_came_from),
        cmocka_unit_test(a_pool_that_was_not_freed_ends_with_its_runtime),
    };
    return hf_test_main("life", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
