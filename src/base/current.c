#include "base/current.h"

#include <stdio.h>
#include <stdlib.h>

_Thread_local hf_self *hf_current __attribute__((tls_model("initial-exec"), visibility("hidden")));

#if !defined(__x86_64__)
HF_NOINLINE hf_self *hf_self_get(void)
{
    hf_self *self = hf_current;
    __asm__ volatile("" : "+r"(self));
    return self;
}

HF_NOINLINE void hf_self_set(hf_self *self)
{
    hf_current = self;
    __asm__ volatile("" ::: "memory");
}
#endif

void hf_halt(const char *message)
{
    hf_self *self = hf_self_get();
    if (self != NULL && self->fatal != NULL) {
        self->fatal(self, message, 1);
    } else {
        (void)fprintf(stderr, "%s\n", message);
    }
    abort();
}

void hf_panic(const char *what, const char *file, int line)
{
    char message[512];
    (void)snprintf(message, sizeof message, "holdfast: broken invariant: %s (%s:%d)", what, file, line);
    hf_halt(message);
}
