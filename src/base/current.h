/* The only global of the library: the fiber or plain thread that runs on this thread.
 *
 * Every fiber, and every plain thread that calls the library, has an hf_self; the thread-local pointer names the one
 * that runs. It is read by an instruction the compiler cannot move or remember: a compiler may keep the address of a
 * thread-local across a call, and a fiber may continue on another thread when its own was lost to a zombie. */
#ifndef HF_BASE_CURRENT_H
#define HF_BASE_CURRENT_H

#include "base/base.h"

typedef struct hf_self hf_self;
struct hf_self {
    /* Called for a broken invariant while this one runs; may return, then the process aborts. NULL = just abort. */
    void (*fatal)(hf_self *self, const char *message, int exit_code);
};

/* Ends the process with this message: the fatal hook of the running fiber or thread reports it, or else stderr. */
void hf_halt(const char *message) __attribute__((noreturn, cold));

extern _Thread_local hf_self *hf_current __attribute__((tls_model("initial-exec"), visibility("hidden")));

#if defined(__x86_64__)
static inline hf_self *hf_self_get(void)
{
    hf_self *self;
    __asm__ volatile("movq hf_current@GOTTPOFF(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self) : : "memory");
    return self;
}
static inline void hf_self_set(hf_self *self)
{
    __asm__("" : "+r"(self)); /* hides from the compiler that `self` may point to a stack */
    hf_current = self;
    __asm__ volatile("" ::: "memory");
}
#else
hf_self *hf_self_get(void);
void hf_self_set(hf_self *self);
#endif

#endif
