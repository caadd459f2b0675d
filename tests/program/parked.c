/* A program for tests/program/gdb.sh: two fibers that wait, and one that stands in at_rest. */
#include <holdfast/holdfast.h>

static hf_chan *orders;

__attribute__((noinline)) static void at_rest(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static hf_status take_order(int depth)
{
    int order = 0;
    hf_status status = depth > 0 ? take_order(depth - 1) : hf_chan_recv(orders, &order);
    __asm__ volatile("" ::: "memory"); /* no tail call: the frame is to be seen */
    return status;
}

static hf_status cook(void *arg)
{
    (void)arg;
    return take_order(2);
}

static hf_status baker(void *arg)
{
    (void)arg;
    return hf_sleep(hf_hours(1));
}

static hf_status kitchen(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &orders, .name = "orders"));
    HF_TRY(hf_scope_open(&scope, .name = "kitchen"));
    HF_TRY(hf_fork(scope, cook, NULL, .name = "cook"));
    HF_TRY(hf_fork(scope, baker, NULL, .name = "baker"));
    HF_TRY(hf_sleep(hf_milliseconds(1))); /* both have begun, and wait, before this fiber goes on */
    at_rest();
    return hf_scope_cancel(scope);
}

int main(void)
{
    return hf_run(kitchen, NULL, .threads = 1) == HF_OK ? 0 : 1;
}
