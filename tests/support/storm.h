/* A workflow and an activity that do what their seed says: bounded waits, scopes with deadlines and all kinds of joins, children
 * that begin later or are given up, activities that time out, fail, heartbeat and are canceled, locks,
 * conditions, channels, flows, signals. Some of it does not return when it is evicted, but goes on.
 *
 * What the code is told decides what it does next, and what it did is in the history: a replay that is told anything else than
 * the run was at first does something else. At its end the workflow names an activity by all that it was told, and waits for the
 * signal "end". */
#ifndef HF_TESTS_STORM_H
#define HF_TESTS_STORM_H

#include <holdfast/holdfast.h>

enum { STORM_TICK_MS = 10 }; /* every span in it is a multiple of this, so that much happens at the same moment */

hf_status storm_program(hf_payload in, hf_payload *ret_out); /* in: its seed, a number; takes signals "go" */
hf_status storm_act(hf_payload in, hf_payload *ret_out);     /* "act" of the task queue "other" */

#endif
