/* A worker and a client on a simulated runtime, on virtual time, with an engine between them: the real one on a store in memory,
 * behind a tap (support/tap.h) that writes down what the worker answered and makes faults. The client's body runs as a fiber
 * beside the worker; when it returns the worker is stopped. Each play runs twice: same seed, same trace. */
#ifndef HF_TESTS_PLAY_H
#define HF_TESTS_PLAY_H

#include "support/support.h"
#include "support/tap.h"

#include "engine/loop_private.h"
#include "service/guard.h"

#include <stdio.h>
#include <string.h>

typedef struct play play;

typedef struct play_options {
    hf_status (*add)(hf_worker *worker);
    hf_status (*before)(play *p); /* the client's calls before the worker runs; NULL = none */
    hf_status (*body)(play *p);
    hf_status (*open)(hf_service **ret_service); /* NULL = hf_open("memory:") */
    size_t page_len;                             /* bytes of history in one answer of the engine; 0 = the default */
    tap_options tap;
    hf_worker_options worker;
    const char *result; /* what the body notes; NULL = not compared */
    const char *log;    /* what the tap wrote down; NULL = not compared */
} play_options;

struct play {
    play_options options;
    tap *tap;
    hf_service *service; /* the tap's */
    hf_worker *worker;
    hf_execution *execution; /* for bodies; freed by them */
    char notes[2048];
    size_t len;
};

static inline void play_note(play *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void play_note(play *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(p->notes + p->len, sizeof p->notes - p->len, format, args);
    va_end(args);
    p->len += len > 0 ? (size_t)len : 0;
}

/* A play may last for weeks, and polls that end every minute would be most of it: they wait longer than any play. The options
 * belong to the engine's thread, which does not run now: a simulation runs one thread at a time. */
static inline hf_status play_open_engine(const play *p, hf_service **ret_service)
{
    HF_TRY(hf_open("memory:", ret_service));
    hf_core_options *core = &((hf_engine *)(void *)hf_guard_behind(*ret_service))->core->options;
    core->poll_span = hf_days(1000).ns;
    core->history_span = hf_days(1000).ns;
    core->history_page_len = p->options.page_len > 0 ? p->options.page_len : core->history_page_len;
    return HF_OK;
}

/* The service of a play, for those who do not use play_on. */
static inline hf_status play_open(play *p)
{
    hf_service *service = NULL;
    HF_TRY(p->options.open != NULL ? p->options.open(&service) : play_open_engine(p, &service));
    p->tap = tap_new(service, &p->options.tap);
    p->service = tap_as_service(p->tap);
    return HF_OK;
}

static inline hf_status play_close(play *p)
{
    tap *closed = p->tap;
    p->tap = NULL;
    p->service = NULL;
    return tap_free(closed);
}

static inline void play_compare(const play *p)
{
    const play_options *o = &p->options;
    HF_CHECK_SAY(o->result == NULL || strcmp(o->result, p->notes) == 0, "it gave '%s', not '%s'", p->notes, o->result);
    HF_CHECK_SAY(o->log == NULL || strcmp(o->log, tap_log(p->tap)) == 0, "the commands were\n%snot\n%s",
                 tap_log(p->tap), o->log);
    HF_CHECK(!o->tap.late_tasks || tap_late_tasks(p->tap) > 0);
    HF_CHECK(o->tap.refuse_every == 0 || tap_refused(p->tap) > 0);
}

static hf_status play_worker(void *arg)
{
    play *p = arg;
    hf_status status = hf_worker_run(p->worker);
    HF_CHECK_SAY(status == HF_OK, "the worker ended with %s: %s", hf_status_name(status), hf_error_text());
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    play *p = arg;
    HF_TRY(play_open(p));
    HF_TRY(hf_worker_new_with(p->service, "orders", &p->worker, &p->options.worker));
    HF_TRY(p->options.add(p->worker));
    if (p->options.before != NULL) {
        HF_TRY(p->options.before(p));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "play", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, play_worker, p, .name = "worker"));
        hf_status status = p->options.body(p);
        HF_CHECK_SAY(status == HF_OK, "the client ended with %s: %s", hf_status_name(status), hf_error_text());
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(p->worker));
    play_compare(p);
    return play_close(p);
}

static inline uint64_t play_once(play_options options, uint64_t seed, int threads)
{
    static play p; /* too large for some stacks */
    uint64_t hash = 0;
    memset(&p, 0, sizeof p);
    p.options = options;
    p.options.worker.size = sizeof p.options.worker;
    HF_CHECK(hf_sim_run(seed, threads, play_main, &p, &hash) == HF_OK);
    return hash;
}

static inline void play_seed(play_options options, uint64_t seed)
{
    (void)play_once(options, seed, 1 + (int)(seed % 3));
}

static inline void play_on(play_options options)
{
    for (int threads = 1; threads <= 2; threads++) {
        uint64_t first = play_once(options, 1, threads);
        HF_CHECK(first == play_once(options, 1, threads));
    }
}

#endif
