/* The smallest program: two fibers in one scope.
 *
 * A fiber is a function that may wait without holding a thread. A scope owns the fibers forked into it: it cannot be left before they have ended, so no fiber
 * can leak. If one of them fails, hf_join returns that failure. */
#include <holdfast/holdfast.h>

#include <stdio.h>

static hf_status greet(void *arg)
{
    const char *name = arg;
    HF_TRY(hf_sleep(hf_milliseconds(10))); /* parks the fiber; its thread runs others meanwhile */
    printf("hello, %s\n", name);
    return HF_OK;
}

static hf_status app(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *greetings = NULL; /* closed on every way out of this function */
    HF_TRY(hf_scope_open(&greetings, .name = "greetings"));
    HF_TRY(hf_fork(greetings, greet, "world"));
    HF_TRY(hf_fork(greetings, greet, "fibers"));
    HF_TRY(hf_join(greetings)); /* waits for both */
    printf("both have ended\n");
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL)); /* makes a runtime, runs app as its first fiber, frees the runtime */
    return 0;
}
