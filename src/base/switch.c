#include "base/switch.h"

#include <string.h>

#if defined(__x86_64__)
enum { FRAME_WORDS = 7 + HF_SWITCH_FPU };
#elif defined(__aarch64__)
enum { FRAME_WORDS = 20 };
#else
#error "Holdfast has no context switch for this processor: add src/base/switch_<arch>.S"
#endif

void hf_context_make(hf_context *context, void *lo, void *hi, void (*main)(void *), void *arg)
{
    uintptr_t top = (uintptr_t)hi & ~(uintptr_t)15;
    void **sp = (void **)top;
    *--sp = NULL; /* ends frame-pointer walks; keeps the entry aligned */
    *--sp = NULL;
    sp -= FRAME_WORDS; /* words that are not set below may have any value: a new context needs no register values */
    void (*entry)(void) = hf_switch_entry;
#if defined(__x86_64__)
    /* Layout, low to high: [fpu] r15 r14 r13 r12 rbx rbp pc */
#if HF_SWITCH_FPU
    uint32_t fpu[2] = {0x1f80, 0x37f};
    memcpy(sp, fpu, sizeof fpu);
#endif
    memcpy(&sp[HF_SWITCH_FPU + 3], &main, sizeof main); /* r12 */
    sp[HF_SWITCH_FPU + 2] = arg;                        /* r13 */
    sp[HF_SWITCH_FPU + 5] = NULL;                       /* rbp: ends frame-pointer walks */
    memcpy(&sp[HF_SWITCH_FPU + 6], &entry, sizeof entry);
#else
    /* Layout: d8-d15, x19-x28, x29, x30 */
    memcpy(&sp[8], &main, sizeof main); /* x19 */
    sp[9] = arg;                        /* x20 */
    sp[18] = NULL;                      /* x29 */
    memcpy(&sp[19], &entry, sizeof entry);
#endif
    context->sp = sp;
#if HF_ASAN
    context->stack_lo = lo;
    context->stack_len = (size_t)((char *)hi - (char *)lo);
    context->fake = NULL;
#else
    (void)lo;
#endif
}
