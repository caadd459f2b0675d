/* The only global of the library: who runs on this thread.
 *
 * Every fiber, and every plain thread that calls the library, has an hf_self; the thread-local pointer names the one
 * that runs. The accessor is not inlined: a compiler may keep the address of a thread-local across a call, and a fiber
 * may continue on another thread when its own was lost to a zombie. */
#ifndef HF_BASE_CURRENT_H
#define HF_BASE_CURRENT_H

#include "base/base.h"

typedef struct hf_self hf_self;
struct hf_self {
    /* Called for a broken invariant while this one runs; may return, then the process aborts. NULL = just abort. */
    void (*fatal)(hf_self *self, const char *message, int exit_code);
};

hf_self *hf_self_get(void);
void hf_self_set(hf_self *self);

#endif
