/* A worker and a client on a simulated runtime, with a fake service between them. The client's body runs as a fiber beside
 * the worker; when it returns the worker is stopped. Each play runs twice: same seed, same trace. */
#ifndef HF_TESTS_PLAY_H
#define HF_TESTS_PLAY_H

#include "support/fake_service.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

typedef struct play play;

typedef struct play_options {
    hf_status (*add)(hf_worker *worker);
    hf_status (*body)(play *p);
    fake_options fake;
    hf_worker_options worker;
    const char *result; /* what the body notes; NULL = not compared */
    const char *log;    /* what the fake wrote down; NULL = not compared */
} play_options;

struct play {
    play_options options;
    fake_service *fake;
    hf_service *service;
    hf_worker *worker;
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
    HF_TRY(hf_worker_new_with(p->service, "orders", &p->worker, &p->options.worker));
    HF_TRY(p->options.add(p->worker));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "play", .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, play_worker, p, .name = "worker"));
        hf_status status = p->options.body(p);
        HF_CHECK_SAY(status == HF_OK, "the client ended with %s: %s", hf_status_name(status), hf_error_text());
        HF_TRY(hf_worker_stop(p->worker));
        HF_TRY(hf_join(scope));
    }
    return hf_worker_free(p->worker);
}

static inline void play_compare(const play *p)
{
    const play_options *o = &p->options;
    HF_CHECK_SAY(o->result == NULL || strcmp(o->result, p->notes) == 0, "it gave '%s', not '%s'", p->notes, o->result);
    HF_CHECK_SAY(o->log == NULL || strcmp(o->log, fake_log(p->fake)) == 0, "the commands were\n%snot\n%s",
                 fake_log(p->fake), o->log);
}

static inline uint64_t play_once(play_options options, uint64_t seed, int threads)
{
    static play p; /* too large for some stacks */
    uint64_t hash = 0;
    memset(&p, 0, sizeof p);
    p.options = options;
    p.options.worker.size = sizeof p.options.worker;
    p.fake = fake_new(&options.fake);
    p.service = fake_as_service(p.fake);
    HF_CHECK(hf_sim_run(seed, threads, play_main, &p, &hash) == HF_OK);
    play_compare(&p);
    fake_free(p.fake);
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
