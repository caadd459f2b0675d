/* The options of every function that may wait: on channels, locks, connections, signals, results. */
#ifndef HOLDFAST_WAIT_H
#define HOLDFAST_WAIT_H

#include <holdfast/status.h>
#include <holdfast/time.h>

typedef struct hf_wait_options {
    size_t size; /* set by the macro */
    /* Give up with HF_ERR_TIMEOUT; 0 or HF_SPAN_UNLIMITED = never; a negative one is over at once. To wait until a
     * point in time use hf_time_until or hf_instant_until, which never return 0. */
    hf_span timeout;
    const char
        *file; /* set by the macro, as is the line: where the call is. A report of a replay that differs names it */
    int line;
} hf_wait_options;

#endif
