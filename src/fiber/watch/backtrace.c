/* Walking stacks with the C compiler's own unwinder.
 *
 * A parked fiber is walked from outside: hf_unwind_from (switch_*.S) calls us on our own stack, but describes itself to
 * the unwinder as if it had been called from where the fiber parked. The walk thus goes
 *
 *     collect <- hf_unwind_from <- [ the fiber: hf_switch_raw's caller <- ... <- body ] <- hf_call_guarded <- ...
 *                                    `------------ what is kept -------------------'
 *
 * and ends at the latest in hf_switch_entry, which says that it has no caller. */
#include "fiber/watch/backtrace.h"

#include "env/symbols.h"

#include <stdio.h>
#include <unwind.h>

typedef struct walk {
    void **pcs;
    int max;
    int count;
    uintptr_t after; /* start of the function after which frames count; 0 = they do */
} walk;

static uintptr_t address_of(void (*function)(void))
{
    return (uintptr_t)function;
}

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
    walk *w = arg;
    int is_interrupted = 0; /* the address is that of an instruction not executed yet: below a signal handler */
    uintptr_t pc = _Unwind_GetIPInfo(context, &is_interrupted);
    uintptr_t start = _Unwind_GetRegionStart(context);
    if (pc == 0 || start == address_of((void (*)(void))hf_call_guarded) || start == address_of(hf_switch_entry)) {
        return _URC_END_OF_STACK;
    }
    if (is_interrupted != 0) {
        w->count = 0;
        w->after = 0;
    }
    if (w->after != 0) {
        w->after = start == w->after ? 0 : w->after;
        return _URC_NO_REASON;
    }
    if (w->count == w->max) {
        return _URC_NORMAL_STOP;
    }
    w->pcs[w->count++] = (void *)(pc - (is_interrupted == 0));
    return _URC_NO_REASON;
}

static void collect(void *arg)
{
    walk *w = arg;
    (void)_Unwind_Backtrace(on_frame, w);
    __asm__ volatile("" ::: "memory"); /* no tail call: this frame is above hf_unwind_from's */
}

int hf_backtrace_of(const hf_fiber *parked, void **pcs, int max)
{
    hf_assert(parked->context.sp != NULL && max > 0);
    walk w = {pcs, max, 0, address_of((void (*)(void))hf_unwind_from)};
    hf_unwind_from(parked->context.sp, collect, &w);
    return w.count;
}

HF_NOINLINE int hf_backtrace_here(void **pcs, int max)
{
    walk w = {pcs, max, 0, address_of((void (*)(void))hf_backtrace_here)};
    (void)_Unwind_Backtrace(on_frame, &w);
    return w.count;
}

void hf_frame_format(const void *pc, char *text, size_t capacity)
{
    char name[128];
    char module[48];
    size_t offset = 0;
    if (hf_symbol_of(pc, name, sizeof name, &offset, module, sizeof module)) {
        (void)snprintf(text, capacity, "%s+0x%zx (%s)", name, offset, module);
    } else if (module[0] != '\0') {
        (void)snprintf(text, capacity, "?+0x%zx (%s)", offset, module);
    } else {
        (void)snprintf(text, capacity, "?+0x%zx", offset);
    }
}

void hf_backtrace_format(void *const *pcs, int count, char *text, size_t capacity)
{
    size_t len = 0;
    if (capacity > 0) {
        text[0] = '\0';
    }
    for (int i = 0; i < count && len + 1 < capacity; i++) {
        char frame[HF_FRAME_LEN_MAX];
        hf_frame_format(pcs[i], frame, sizeof frame);
        int put = snprintf(text + len, capacity - len, "%s%s", i > 0 ? " < " : "", frame);
        len += put > 0 ? (size_t)put : 0;
    }
}
