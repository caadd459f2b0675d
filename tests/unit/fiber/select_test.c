/* Select: one case of many, exactly one. */
/* labels: threads */
#include "unit/fiber/bodies.h"

/* ---- Which one ------------------------------------------------------------------------------- */

static hf_status first_ready(void *arg)
{
    (void)arg;
    hf_chan *chans[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_chan_new(sizeof(int), &chans[i], .capacity = 1));
    }
    int in[3] = {-1, -1, -1};
    hf_case cases[4] = {{.kind = HF_CASE_RECV, .chan = NULL}}; /* never happens */
    for (int i = 0; i < 3; i++) {
        cases[i + 1] = (hf_case){.kind = HF_CASE_RECV, .chan = chans[i], .value = &in[i]};
    }
    size_t idx = 99;
    HF_CHECK(hf_try_select(cases, 4, &idx) == HF_ERR_AGAIN && idx == 99);
    for (int i = 2; i >= 0; i--) {
        HF_TRY(hf_chan_send(chans[i], &i));
        HF_TRY(hf_select(cases, 4, &idx));
        HF_CHECK(idx == (size_t)i + 1 && in[i] == i && cases[idx].status == HF_OK);
        HF_TRY(hf_chan_send(chans[i], &i)); /* two are ready next time: the first in order wins */
    }
    for (size_t i = 1; i <= 3; i++) {
        HF_TRY(hf_select(cases, 4, &idx));
        HF_CHECK(idx == i);
    }
    int out = 7;
    cases[0] = (hf_case){.kind = HF_CASE_SEND, .chan = chans[1], .value = &out};
    HF_TRY(hf_try_select(cases, 4, &idx));
    HF_CHECK(idx == 0 && hf_chan_count(chans[1]) == 1);
    HF_TRY(hf_chan_close(chans[0]));
    HF_TRY(hf_select(&cases[1], 3, &idx)); /* closed is an event too */
    HF_CHECK(idx == 0 && cases[1].status == HF_ERR_CLOSED);
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_chan_free(chans[i]));
    }
    return HF_OK;
}

static void the_first_ready_case_in_order_wins(void **state)
{
    (void)state;
    simulated_and_on_threads("first ready", 20, first_ready);
}

/* ---- Everything arrives once ----------------------------------------------------------------- */

enum { CHANS = 4, EACH = 20 };

typedef struct mix {
    hf_chan *chans[CHANS];
    atomic_int sent;
    atomic_int received;
    atomic_int senders_left;
} mix;

static hf_status select_send(void *arg)
{
    mix *m = arg;
    int value = 1;
    for (int i = 0; i < EACH; i++) {
        hf_case cases[CHANS];
        for (int c = 0; c < CHANS; c++) {
            cases[c] = (hf_case){.kind = HF_CASE_SEND, .chan = m->chans[(c + i) % CHANS], .value = &value};
        }
        size_t idx = 0;
        HF_TRY(hf_select(cases, CHANS, &idx));
        m->sent++;
    }
    (void)atomic_fetch_sub(&m->senders_left, 1);
    return HF_OK;
}

/* Ends at the first closed channel, of whichever case. */
static hf_status select_until_closed(void *arg)
{
    mix *m = arg;
    for (;;) {
        int value = 0;
        hf_case cases[CHANS];
        for (int c = 0; c < CHANS; c++) {
            cases[c] = (hf_case){.kind = HF_CASE_RECV, .chan = m->chans[c], .value = &value};
        }
        size_t idx = 0;
        HF_TRY(hf_select(cases, CHANS, &idx));
        if (cases[idx].status == HF_ERR_CLOSED) {
            return HF_OK;
        }
        HF_CHECK(value == 1 && cases[idx].status == HF_OK);
        m->received++;
    }
}

static hf_status plain_recv(void *arg)
{
    mix *m = arg;
    int value = 0;
    hf_status status = hf_chan_recv(m->chans[0], &value);
    if (status == HF_OK) {
        m->received++;
    }
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status many_selects(void *arg)
{
    (void)arg;
    mix m = {.senders_left = 3};
    for (int i = 0; i < CHANS; i++) {
        HF_TRY(hf_chan_new(sizeof(int), &m.chans[i], .capacity = i % 2 == 0 ? 0 : 2));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 3; i++) {
            HF_TRY(hf_fork(scope, select_send, &m));
            HF_TRY(hf_fork(scope, select_until_closed, &m));
            HF_TRY(hf_fork(scope, plain_recv, &m));
        }
        while (atomic_load(&m.senders_left) > 0) {
            HF_TRY(hf_yield());
        }
        for (int i = 0; i < CHANS; i++) {
            HF_TRY(hf_chan_close(m.chans[i]));
        }
        HF_TRY(hf_join(scope));
    }
    size_t buffered = 0;
    for (int i = 0; i < CHANS; i++) {
        buffered += hf_chan_count(m.chans[i]);
        HF_TRY(hf_chan_free(m.chans[i]));
    }
    HF_CHECK(m.sent == 3 * EACH && (size_t)(m.sent - m.received) == buffered);
    return HF_OK;
}

static hf_status cancel_selects(void *arg)
{
    (void)arg;
    mix m = {.senders_left = 3};
    for (int i = 0; i < CHANS; i++) {
        HF_TRY(hf_chan_new(sizeof(int), &m.chans[i], .capacity = i % 2 == 0 ? 0 : 2));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        hf_branch *jobs[6];
        for (int i = 0; i < 6; i++) {
            HF_TRY(hf_fork(scope, i < 3 ? select_send : select_until_closed, &m, .ret_branch = &jobs[i]));
        }
        HF_TRY(hf_yield());
        HF_TRY(hf_branch_cancel(jobs[1]));
        HF_TRY(hf_branch_cancel(jobs[4]));
        HF_TRY(hf_yield());
        HF_TRY(hf_scope_cancel(scope));
        HF_CHECK(hf_join(scope) == HF_ERR_CANCELED || hf_scope_tally(scope).ok > 0);
    }
    size_t buffered = 0;
    for (int i = 0; i < CHANS; i++) {
        buffered += hf_chan_count(m.chans[i]);
        HF_TRY(hf_chan_free(m.chans[i]));
    }
    HF_CHECK((size_t)(m.sent - m.received) == buffered);
    return HF_OK;
}

static void selects_meet_selects_and_nothing_is_lost(void **state)
{
    (void)state;
    simulated_and_on_threads("selects", 300, many_selects);
}

static void S18_a_canceled_select_has_done_nothing(void **state)
{
    (void)state;
    simulated_and_on_threads("canceled selects", 500, cancel_selects);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static hf_status waits(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan));
    int value = 5;
    size_t idx = 99;
    hf_case cases[] = {{.kind = HF_CASE_SEND, .chan = chan, .value = &value},
                       {.kind = HF_CASE_RECV, .chan = chan, .value = &value}}; /* it never meets itself */
    hf_instant start = hf_now(NULL);
    HF_CHECK(hf_select(cases, 2, &idx, .timeout = hf_seconds(2)) == HF_ERR_TIMEOUT);
    HF_CHECK(ms_since(start) >= 2000 && ms_since(start) < 2100 && idx == 99);
    HF_CHECK(hf_select(NULL, 0, &idx, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    hf_case many[HF_SELECT_COUNT_MAX + 1];
    for (size_t i = 0; i <= HF_SELECT_COUNT_MAX; i++) {
        many[i] = cases[1];
    }
    HF_CHECK(hf_select(many, HF_SELECT_COUNT_MAX + 1, &idx) == HF_ERR_INVALID && error_says("64"));
    HF_CHECK(hf_select(many, HF_SELECT_COUNT_MAX, &idx, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_select(cases, 1, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void a_select_times_out_and_has_its_limits(void **state)
{
    (void)state;
    simulated("waits", 50, waits);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(the_first_ready_case_in_order_wins),
        cmocka_unit_test(selects_meet_selects_and_nothing_is_lost),
        cmocka_unit_test(S18_a_canceled_select_has_done_nothing),
        cmocka_unit_test(a_select_times_out_and_has_its_limits),
    };
    return hf_test_main("select", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
