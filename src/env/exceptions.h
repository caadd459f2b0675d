/* The state that a C++ runtime keeps for each thread: which exceptions its catch blocks are handling, and how many were
 * thrown and not caught yet. It belongs to the code that runs on the thread, so it moves with fibers
 * (fiber/sched/leave.h) and simulated threads.
 *
 * The library is C and does not link a C++ runtime. It uses that of the process, if there is one, through the Itanium
 * ABI's __cxa_get_globals, which libstdc++, libc++abi and libcxxrt share. */
#ifndef HF_ENV_EXCEPTIONS_H
#define HF_ENV_EXCEPTIONS_H

#include "base/base.h"

/* __cxa_eh_globals, as the ABI lays it out on our processors. */
typedef struct hf_exceptions {
    void *caught;      /* a chain, the innermost first */
    unsigned uncaught; /* thrown and not caught yet */
} hf_exceptions;

/* Looks for a C++ runtime, unless one is known. Called when a runtime of ours is made; a C++ runtime that is loaded
 * later is found at the next call. May block. */
void hf_exceptions_look(void);

/* The state of the calling thread; valid until the thread ends. NULL = there is no C++ runtime. */
hf_exceptions *hf_exceptions_here(void);

/* `from` stops running on the thread whose state is `here`, and `to` continues there. The fields are copied one by one:
 * a wide load over a field that the C++ runtime has just stored would stall. */
static inline void hf_exceptions_swap(hf_exceptions *here, hf_exceptions *from, const hf_exceptions *to)
{
    if (here != NULL) {
        from->caught = here->caught;
        from->uncaught = here->uncaught;
        here->caught = to->caught;
        here->uncaught = to->uncaught;
    }
}

#endif
