/* A background service under a supervisor: a worker that fails is started again, with growing
 * pauses, while the others continue.
 *
 *     scope "service" (discard) -- supervise -- scope "attempt" -- worker
 *                               -- supervise -- scope "attempt" -- worker
 *
 * Each attempt has a scope of its own: all fibers that a failing worker forked have ended before the
 * next attempt starts. The supervisor is a loop of a few lines because a failure is a value, and
 * because stopping the service is the same for all: the scope is left, and every wait in it
 * fails. */
#include <holdfast/holdfast.h>

#include <stdio.h>

typedef struct worker {
    const char *name;
    hf_body body;
    int attempts; /* so far; the supervisor's */
    int done;     /* units of work that are done */
} worker;

/* Fails three times, then works. */
static hf_status indexer(void *arg)
{
    worker *w = arg;
    HF_TRY(hf_sleep(hf_milliseconds(5)));
    if (w->attempts <= 3) {
        return hf_raise(HF_ERR_IO, "the index is locked");
    }
    for (;;) {
        HF_TRY(hf_sleep(hf_milliseconds(10)));
        w->done++;
    }
}

static hf_status heartbeat(void *arg)
{
    worker *w = arg;
    for (;;) {
        HF_TRY(hf_sleep(hf_milliseconds(10)));
        w->done++;
    }
}

static hf_status attempt(worker *w)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "attempt"));
    HF_TRY(hf_fork(scope, w->body, w, .name = w->name));
    return hf_join(scope);
}

static hf_status supervise(void *arg)
{
    worker *w = arg;
    int64_t pause_ms = 10;
    for (;;) {
        w->attempts++;
        hf_status status = attempt(w);
        HF_TRY(hf_canceled()); /* the service is stopping: this is not a failure of the worker */
        printf("  %s: attempt %d ended: %s; again in %lld ms\n", w->name, w->attempts,
               status == HF_OK ? "it returned" : hf_error_text(), (long long)pause_ms);
        HF_TRY(hf_sleep(hf_milliseconds(pause_ms)));
        pause_ms = pause_ms < 500 ? pause_ms * 2 : 1000;
    }
}

/* Returning from here cancels the service and waits until all its fibers have ended. */
static hf_status run_service(worker *workers, size_t count)
{
    HF_AUTO(hf_scope_close) hf_scope *service = NULL;
    HF_TRY(hf_scope_open(&service, .name = "service", .join = HF_JOIN_DISCARD));
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hf_fork(service, supervise, &workers[i], .name = workers[i].name));
    }
    return hf_sleep(hf_milliseconds(300)); /* the program's own work */
}

static hf_status app(void *arg)
{
    (void)arg;
    worker workers[] = {{.name = "indexer", .body = indexer}, {.name = "heartbeat", .body = heartbeat}};
    printf("the service runs for 300 ms\n");
    HF_TRY(run_service(workers, 2));
    for (size_t i = 0; i < 2; i++) {
        printf("%-9s attempts: %d, %s\n", workers[i].name, workers[i].attempts,
               workers[i].done > 0 ? "worked until the end" : "got nothing done");
    }
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
