/* Call stacks: of a fiber that is parked, of the code that is running.
 *
 * Addresses are those of the call instructions (return addresses less one), innermost first, so that each lies in the
 * function and line it stands for. The library's own frames around a fiber's body are left out. */
#ifndef HF_FIBER_BACKTRACE_H
#define HF_FIBER_BACKTRACE_H

#include "fiber/core.h"

#define HF_FRAME_LEN_MAX 200 /* bytes of one frame as text: a long C name, an offset and a module */

/* The stack of a fiber that does not run and cannot start to run meanwhile: parked or ready, with the world stopped.
 * Runs on the caller's stack only. Returns how many addresses it wrote. */
int hf_backtrace_of(const hf_fiber *parked, void **pcs, int max);
/* The stack of the caller, without this function's own frame. In a signal handler: of the code that was interrupted;
 * it takes no lock where the C library finds unwind tables without one (glibc 2.35 and later). */
int hf_backtrace_here(void **pcs, int max);

/* One frame as text: "name+0x1c (module)". Not for signal handlers. */
void hf_frame_format(const void *pc, char *text, size_t capacity);
/* A stack on one line, innermost first: "a+0x4 (m) < b+0x8 (m)", cut to the capacity. Not for signal handlers. */
void hf_backtrace_format(void *const *pcs, int count, char *text, size_t capacity);

#endif
