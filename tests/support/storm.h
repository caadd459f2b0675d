/* A workflow and an activity whose actions follow from a seed: bounded waits, scopes with deadlines and all kinds of
 * joins, children that begin later or are given up, activities that time out, fail, heartbeat and are canceled, locks,
 * conditions, channels, flows, signals, one of several signals, local activities, side effects, sagas; and handlers of signals, queries and updates that come at any time, conditions of the
 * run, children, signals and cancels to other runs, versions, the next run of a chain. Some of the code does not return when
 * it is evicted, but goes on.
 *
 * The results of its calls decide what the code does next, and its commands are in the history: so a replay with any
 * other result makes other commands. At its end the workflow runs an activity whose id is a hash of all results, and
 * waits for the signal "end". */
#ifndef HF_TESTS_STORM_H
#define HF_TESTS_STORM_H

#include <holdfast/holdfast.h>

enum { STORM_TICK_MS = 10 }; /* every span in it is a multiple of this, so that much happens at the same moment */

/* Adds the search attribute that programs set. */
hf_status storm_prepare(hf_service *service);
/* in: "SEED GENERATION", generation 0 for the first run of a chain. Takes signals "go", "note", "other" and "end", updates "up"
 * and others, queries "state" and others. Its queue is "storm", and its own type "program". */
hf_status storm_program(hf_payload in, hf_payload *ret_out);
hf_status storm_act(hf_payload in, hf_payload *ret_out);   /* "act" of the task queue "other" */
hf_status storm_local(hf_payload in, hf_payload *ret_out); /* "local", of the worker that has the program; on a fiber */

#endif
