/* Proves the other architecture: the context switch, the environment and the scheduler on aarch64. Linked statically and run
 * under user-mode emulation, so it sticks to what needs no timing: forks and joins, a channel ping-pong that switches
 * on every value, callee-saved registers across waits (floating point ones too), a failure that travels, a dump. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

#define CHILDREN 200
#define ROUNDS 2000

#define EXPECT(what)                                                        \
    do {                                                                    \
        if (!(what)) {                                                      \
            return hf_raise(HF_ERR_FAILED, "%s, line %d", #what, __LINE__); \
        }                                                                   \
    } while (0)

/* Many values live across a wait, more than the compiler can rebuild from its arguments. */
static hf_status sum_across_waits(void *arg)
{
    int64_t *slot = arg;
    double a = (double)*slot, b = a + 1, c = a + 2, d = a + 3;
    int64_t i = *slot, j = i * 3, k = i * 5;
    for (int round = 0; round < 3; round++) {
        HF_TRY(hf_yield());
        a += 1;
        b += 1;
        c += 1;
        d += 1;
        i += 1;
        j += 1;
        k += 1;
    }
    *slot = (int64_t)(a + b + c + d) + i + j + k;
    return HF_OK;
}

static hf_status check_fork_join(void)
{
    int64_t slots[CHILDREN];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "children"));
    for (int64_t i = 0; i < CHILDREN; i++) {
        slots[i] = i;
        HF_TRY(hf_fork(scope, sum_across_waits, &slots[i]));
    }
    HF_TRY(hf_join(scope));
    for (int64_t i = 0; i < CHILDREN; i++) {
        EXPECT(slots[i] == (4 * i + 6 + 12) + (i + 3) + (3 * i + 3) + (5 * i + 3));
    }
    EXPECT(hf_scope_tally(scope).ok == CHILDREN);
    return HF_OK;
}

typedef struct table {
    hf_chan *ping;
    hf_chan *pong;
} table;

static hf_status answer(void *arg)
{
    table *pair = arg;
    for (;;) {
        int64_t value = 0;
        hf_status status = hf_chan_recv(pair->ping, &value);
        if (status == HF_ERR_CLOSED) {
            return HF_OK;
        }
        HF_TRY(status);
        value++;
        HF_TRY(hf_chan_send(pair->pong, &value));
    }
}

static hf_status check_ping_pong(void)
{
    HF_AUTO(hf_chan_free) hf_chan *ping = NULL;
    HF_AUTO(hf_chan_free) hf_chan *pong = NULL;
    HF_TRY(hf_chan_new(sizeof(int64_t), &ping, .name = "ping"));
    HF_TRY(hf_chan_new(sizeof(int64_t), &pong, .name = "pong"));
    table pair = {ping, pong};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, answer, &pair, .name = "answer"));
    int64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        HF_TRY(hf_chan_send(ping, &value));
        HF_TRY(hf_chan_recv(pong, &value));
    }
    EXPECT(value == ROUNDS);
    HF_TRY(hf_chan_close(ping));
    return hf_join(scope);
}

static hf_status decline(void *arg)
{
    (void)arg;
    return hf_raise_typed(HF_ERR_FAILED, "declined", "number %d", 7);
}

static hf_status wait_for_cancel(void *arg)
{
    (void)arg;
    return hf_sleep(HF_SPAN_UNLIMITED);
}

static hf_status check_failure(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_for_cancel, NULL));
    HF_TRY(hf_fork(scope, decline, NULL));
    EXPECT(hf_join(scope) == HF_ERR_FAILED);
    EXPECT(hf_error() != NULL && strcmp(hf_error()->type, "declined") == 0);
    return HF_OK;
}

static hf_status check_dump(void)
{
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "sleepers"));
    HF_TRY(hf_fork(scope, wait_for_cancel, NULL, .name = "sleeper"));
    for (int round = 0; round < 10; round++) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_dump(NULL, &text));
    EXPECT(strstr(text, "sleepers") != NULL && strstr(text, "sleeper") != NULL);
    return HF_OK;
}

static hf_status check_all(void *arg)
{
    (void)arg;
    HF_TRY(check_fork_join());
    HF_TRY(check_ping_pong());
    HF_TRY(check_failure());
    return check_dump();
}

int main(void)
{
    static const int THREADS[] = {1, 2};
    for (size_t i = 0; i < sizeof THREADS / sizeof THREADS[0]; i++) {
        HF_OR_DIE(hf_run(check_all, NULL, .threads = THREADS[i]));
        printf("aarch64 self-test with %d fiber thread(s): ok\n", THREADS[i]);
    }
    return 0;
}
