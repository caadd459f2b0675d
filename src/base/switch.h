/* The context switch, and how the sanitizers are told about it.
 *
 * A suspended context is its stack pointer; everything else lies on its stack. The routine is out of line and ends in an
 * indirect jump, not in `ret`: contexts that park at different places would mispredict every return. It saves the
 * callee-saved registers only. MXCSR and the x87 control word are saved when built with HF_SWITCH_FPU=1; otherwise
 * they belong to the thread. */
#ifndef HF_BASE_SWITCH_H
#define HF_BASE_SWITCH_H

#include "base/base.h"

#if HF_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if HF_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifndef HF_SWITCH_JUMP
#define HF_SWITCH_JUMP 1
#endif

typedef struct hf_context {
    void *sp; /* where the registers of a suspended context are saved */
#if HF_ASAN
    const void *stack_lo; /* bounds of the stack that this context runs on */
    size_t stack_len;
    void *fake; /* ASan's own shadow of the frames */
#endif
#if HF_TSAN
    void *tsan; /* TSan's handle of the fiber */
#endif
} hf_context;

/* Assembly. Saves the caller's registers, stores its stack pointer in *save_sp, continues at load_sp. */
void hf_switch_raw(void **save_sp, void *load_sp);
#if defined(__AVX512F__)
#define HF_SWITCH_WIDE_CLOBBERS                                                                                   \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define HF_SWITCH_WIDE_CLOBBERS
#endif

/* The same, entered by a jump. A call would leave an entry on the processor's return stack that no return takes off (the
 * routine ends in a jump), and every later return of the verb would be mispredicted. Needs -mno-red-zone on x86-64:
 * a build that cannot count on that flag, such as the library as one file, has HF_SWITCH_JUMP=0 and calls. */
static inline __attribute__((always_inline)) void hf_switch_jump(void **save_sp, void *load_sp)
{
#if defined(__x86_64__) && HF_SWITCH_JUMP
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "jmp hf_switch_raw\n"
                     "1:\n\t"
                     "endbr64"
                     : "+D"(save_sp), "+S"(load_sp)
                     :
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15" HF_SWITCH_WIDE_CLOBBERS);
#else
    hf_switch_raw(save_sp, load_sp);
#endif
}

/* Assembly. First code of a new context: jumps to the function with the argument that hf_context_make left there. */
void hf_switch_entry(void);
/* Assembly. Calls fn(arg) on the caller's own stack, but in an unwinder's eyes the caller is the suspended context
 * whose stack pointer is `sp`: _Unwind_Backtrace inside fn sees that context's frames. */
void hf_unwind_from(void *sp, void (*fn)(void *), void *arg);

/* Assembly. Calls body(arg) and returns its result. No exception leaves it: see hf_body_personality. */
int hf_call_guarded(int (*body)(void *), void *arg);

/* Prepares a context that will call main(arg), which must never return, on the stack [lo, hi). */
void hf_context_make(hf_context *context, void *lo, void *hi, void (*main)(void *), void *arg);

/* Makes `context` stand for the code that is running now on its own thread's stack. */
static inline void hf_context_adopt(hf_context *context)
{
    context->sp = NULL;
#if HF_ASAN
    context->stack_lo = NULL;
    context->stack_len = 0;
    context->fake = NULL;
#endif
#if HF_TSAN
    context->tsan = __tsan_get_current_fiber();
#endif
}

/* Once per context and thread of execution, before its first and after its last switch (TSan keeps state for each). */
static inline void hf_context_announce(hf_context *context)
{
#if HF_TSAN
    context->tsan = __tsan_create_fiber(0);
#else
    (void)context;
#endif
}

static inline void hf_context_retire(hf_context *context)
{
#if HF_TSAN
    if (context->tsan != NULL) {
        __tsan_destroy_fiber(context->tsan);
        context->tsan = NULL;
    }
#else
    (void)context;
#endif
}

/* The first thing a new context does, and what every switch ends with: `from` is the context that was left. */
static inline void hf_context_arrived(hf_context *self, hf_context *from)
{
#if HF_ASAN
    const void *lo = NULL;
    size_t len = 0;
    __sanitizer_finish_switch_fiber(self != NULL ? self->fake : NULL, &lo, &len);
    if (from != NULL && from->stack_lo == NULL) { /* a thread's own stack: learnt when it is first left */
        from->stack_lo = lo;
        from->stack_len = len;
    }
#else
    (void)self;
    (void)from;
#endif
}

/* Leaves `from` and continues `to`. `dying`: `from` is never resumed. */
static inline void hf_context_switch(hf_context *from, hf_context *to, bool dying)
{
    (void)dying;
#if HF_ASAN
    __sanitizer_start_switch_fiber(dying ? NULL : &from->fake, to->stack_lo, to->stack_len);
#endif
#if HF_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    hf_switch_jump(&from->sp, to->sp);
}

#endif
