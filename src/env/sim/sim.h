/* The functions behind the verbs of holdfast/sim.h, and functions for tests of a simulated environment: catch a run
 * that hangs, fail allocations, bound descriptors, and read counters. */
#ifndef HF_ENV_SIM_SIM_H
#define HF_ENV_SIM_SIM_H

#include "base/env.h"
#include "base/op.h"

#include <holdfast/sim.h>

/* The verbs hf_sim_new, hf_sim_file_put, hf_sim_file_get, hf_sim_restart and hf_sim_raise, for src/fiber/sim.c, which
 * stores their error messages. */
hf_status hf_sim_make(hf_op *op, hf_env **ret_env, const hf_sim_options *options);
hf_status hf_sim_disk_put(hf_env *env, hf_op *op, const char *path, const void *bytes, size_t len);
hf_status hf_sim_disk_get(hf_env *env, hf_op *op, const char *path, char **ret_bytes, size_t *ret_len);
hf_status hf_sim_boot(hf_env *env, hf_op *op);
hf_status hf_sim_deliver_signal(hf_env *env, hf_op *op, int number);

/* Called instead of the abort when a run is stuck (every thread waits and nothing can wake one) or endless (steps_max).
 * It runs on the main thread, at the call in which that thread waits, so it may longjmp to a frame of the test that is
 * still alive, or exit. After a longjmp the other threads never run again, and hf_sim_free drops them, their memory and
 * whatever else was left. If the hook returns, the report is printed and the process aborts. `report` lives until the
 * environment is freed. A main thread that turns a runtime itself may be on a fiber's stack: exit, do not longjmp. */
void hf_sim_on_stuck(hf_env *env, void (*hook)(void *state, const char *report), void *state);

/* From now on a thread that comes to a point (hf_point) is held there with this probability, in 1/1000: as if it had
 * lost its processor, it does not run while others can, for up to 2,000 of their steps. Meanwhile the others get
 * further than by switches alone: they may free the object that this thread has just let go of. */
void hf_sim_hold(hf_env *env, int permille);

/* Fails the nth allocation from now, counted from 1 (0 = none any more), and with `forever` all that follow. Each call
 * that may run out of memory counts as one: allocate, pages_reserve, fork_marker_open, thread_start, poller_open. */
void hf_sim_fail_allocation(hf_env *env, uint64_t nth, bool forever);
/* Allocations so far, failed ones included. */
uint64_t hf_sim_allocations(const hf_env *env);
/* Blocks and mappings that are not released yet: leaks, once everything was freed. */
uint64_t hf_sim_allocations_live(const hf_env *env);

/* Descriptors that may be open at once; beyond it HF_ERR_LIMIT. Default: 100,000. */
void hf_sim_limit_descriptors(hf_env *env, uint32_t count_max);
uint32_t hf_sim_descriptors(const hf_env *env);

typedef struct hf_sim_counters {
    uint64_t threads_live;    /* started and not ended */
    uint64_t switches;        /* times another thread was let run */
    uint64_t clock_jumps;     /* times nothing could run and the clock moved */
    uint64_t interrupts;      /* thread_signal calls */
    uint64_t guards;          /* pages_guard calls that worked */
    uint64_t file_operations; /* as crash_after counts them */
    bool is_crashed;          /* crash_after was reached, no restart since */
} hf_sim_counters;

void hf_sim_count(const hf_env *env, hf_sim_counters *ret_counters);

#endif
