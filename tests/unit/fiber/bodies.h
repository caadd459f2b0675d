/* Ways to run the body of a test as the first fiber of a runtime, and bodies that many tests fork. The bodies say what
 * is wrong with HF_CHECK. */
#ifndef HF_TESTS_BODIES_H
#define HF_TESTS_BODIES_H

#include "support/support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static inline hf_body *bodies_now(void)
{
    static hf_body body;
    return &body;
}

static inline void bodies_one_seed(uint64_t seed)
{
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), *bodies_now(), NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "the body returned %s: %s", hf_status_name(status), hf_error_text());
}

/* On virtual time, over seeds, with one to three simulated threads. */
static inline void simulated(const char *what, uint64_t seeds, hf_body body)
{
    *bodies_now() = body;
    hf_each_seed(what, seeds, bodies_one_seed);
}

static inline void bodies_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

/* On real threads, one to four. Only for bodies that do not wait for a clock. */
static inline void on_threads(hf_body body)
{
    for (int threads = 1; threads <= 4 && hf_checks_failed() == 0; threads++) {
        hf_status status = hf_run(body, NULL, .threads = threads, .log = bodies_log);
        HF_CHECK_SAY(status == HF_OK, "on %d threads the body returned %s: %s", threads, hf_status_name(status),
                     hf_error_text());
    }
}

static inline void simulated_and_on_threads(const char *what, uint64_t seeds, hf_body body)
{
    simulated(what, seeds, body);
    on_threads(body);
}

/* Sleeps an hour, unless canceled, and passes on what it was told. */
static inline hf_status sleep_long(void *arg)
{
    (void)arg;
    return hf_sleep(hf_hours(1));
}

/* The same, and counts the cancels it saw in `*arg`, an atomic_int. */
static inline hf_status sleep_and_tell(void *arg)
{
    hf_status status = hf_sleep(hf_hours(1));
    if (status == HF_ERR_CANCELED) {
        (void)atomic_fetch_add((atomic_int *)arg, 1);
    }
    return status;
}

static inline hf_status count_one(void *arg)
{
    (void)atomic_fetch_add((atomic_int *)arg, 1);
    return HF_OK;
}

static inline hf_status fail_at_once(void *arg)
{
    return hf_raise(HF_ERR_FAILED, "%s", arg != NULL ? (const char *)arg : "it failed");
}

/* For loops that wait for something to become so. Sleeps: virtual time moves only while nobody can run. */
static inline hf_status a_moment(void)
{
    return hf_sleep(hf_microseconds(50));
}

/* Milliseconds since `then`, on the runtime's clock. */
static inline int64_t ms_since(hf_instant then)
{
    return (hf_now(NULL).ns - then.ns) / 1000000;
}

static inline bool error_says(const char *part)
{
    return strstr(hf_error_text(), part) != NULL;
}

#endif
