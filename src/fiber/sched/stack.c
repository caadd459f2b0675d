/* Stacks: slots of a size class, carved from large reservations that use memory only where they are touched.
 *
 *     | guard 4 K | ............ stack grows down ............ | hf_fiber |     one slot
 *
 * The fiber's control block lies on the same page as its first frames: one page and one TLB entry for both. The tops
 * of neighbouring slots are coloured, so that they do not fall into the same cache sets. A slot is guarded once in
 * its life: by a marker in the page table (MADV_GUARD_INSTALL) where the kernel has it, else by mprotect, which
 * splits mappings and is therefore bounded to half of vm.max_map_count.
 *
 * A freed stack stays with its scheduler (hot); beyond a bound it goes to the class's depot. The monitor gives the
 * memory of stacks that lie in the depot back to the system, off everybody's path (hf_stack_trim). */
#include "fiber/sched/stack.h"

#include <string.h>

#if defined(__has_include) && __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(lo, hi) 0u
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

enum { PAGE = 4096, CLASS_COUNT = 3, BATCH = 128, COLOURS = 8, COLOUR_LEN = 128 };

static const size_t SLOT_LEN[CLASS_COUNT] = {16 * 1024, 64 * 1024, 256 * 1024};
static const size_t RESERVE_LEN = (size_t)256 << 20;
static const size_t RESERVE_LEN_MIN = (size_t)1 << 20;

typedef struct reserve {
    struct reserve *next;
    char *pages;
    size_t len;
} reserve;

struct hf_stack_class {
    hf_spin lock;
    size_t slot_len;
    char *carve; /* next slot of the newest reservation */
    char *carve_end;
    uint64_t carved;
    hf_fiber *depot; /* free, memory kept */
    size_t depot_count;
    hf_fiber **clean; /* free, memory given back */
    size_t clean_count;
    size_t clean_capacity;
    reserve *reserves;
};

hf_status hf_stacks_init(hf_runtime *rt, hf_op *op)
{
    rt->classes = hf_rt_alloc(rt, CLASS_COUNT * sizeof *rt->classes);
    if (rt->classes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the runtime's stack classes");
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        rt->classes[i].slot_len = SLOT_LEN[i];
    }
    return HF_OK;
}

uint8_t hf_stack_class_of(size_t stack_size)
{
    uint8_t index = 0;
    while (index < CLASS_COUNT - 1 && SLOT_LEN[index] < stack_size) {
        index++;
    }
    return index;
}

/* Called without the lock, because reserving is a system call. */
static bool reserve_more(hf_runtime *rt, hf_stack_class *class)
{
    reserve *fresh = hf_rt_alloc(rt, sizeof *fresh);
    if (fresh == NULL) {
        return false;
    }
    size_t len = RESERVE_LEN;
    while ((fresh->pages = rt->env->ops->pages_reserve(rt->env, len)) == NULL && len > RESERVE_LEN_MIN) {
        len /= 2;
    }
    if (fresh->pages == NULL) {
        hf_rt_free(rt, fresh, sizeof *fresh);
        return false;
    }
    fresh->len = len;
    hf_spin_lock(&class->lock);
    fresh->next = class->reserves;
    class->reserves = fresh;
    uintptr_t mask = class->slot_len - 1; /* slots are aligned: a control block finds its slot by its address */
    class->carve = (char *)(((uintptr_t)fresh->pages + mask) & ~mask);
    class->carve_end = (char *)(((uintptr_t)fresh->pages + len) & ~mask);
    hf_spin_unlock(&class->lock);
    return true;
}

static hf_fiber *fiber_of(hf_stack_class *class, char *slot, uint64_t number)
{
    size_t colour = (size_t)(number % COLOURS) * COLOUR_LEN;
    uintptr_t at = (uintptr_t)(slot + class->slot_len - sizeof(hf_fiber) - colour) & ~(uintptr_t)63;
    return (hf_fiber *)at;
}

static hf_status guard_slot(hf_runtime *rt, char *slot)
{
    if (rt->guard_kind == HF_GUARD_NONE) {
        return HF_OK;
    }
    if (rt->guard_kind == HF_GUARD_PROTECT) {
        hf_spin_lock(&rt->depot_lock);
        bool room = rt->guards < rt->guards_max;
        hf_assert(rt->guards >= 0);
        rt->guards += room;
        hf_spin_unlock(&rt->depot_lock);
        if (!room) {
            return HF_ERR_LIMIT;
        }
    }
    hf_guard_kind used = rt->env->ops->pages_guard(rt->env, slot, PAGE, rt->guard_kind);
    return used == HF_GUARD_NONE ? HF_ERR_LIMIT : HF_OK;
}

/* A slot that was never used. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (guards). */
static hf_fiber *carve(hf_sched *sched, uint8_t index, hf_status *ret_why)
{
    hf_runtime *rt = sched->rt;
    hf_stack_class *class = &rt->classes[index];
    char *slot = NULL;
    uint64_t number = 0;
    for (int round = 0; slot == NULL; round++) {
        hf_spin_lock(&class->lock);
        if (class->carve < class->carve_end) {
            slot = class->carve;
            class->carve += class->slot_len;
            number = class->carved++;
        }
        hf_spin_unlock(&class->lock);
        if (slot == NULL && (round > 3 || !reserve_more(rt, class))) {
            *ret_why = HF_ERR_NOMEM;
            return NULL;
        }
    }
    hf_assert(((uintptr_t)slot & (class->slot_len - 1)) == 0); /* a control block finds its slot by its address */
    hf_status guarded = guard_slot(rt, slot);
    if (guarded != HF_OK) {
        hf_spin_lock(&class->lock);
        if (class->carve == slot + class->slot_len) { /* give it back, unless others carved meanwhile */
            hf_assert(class->carved > 0);
            class->carve = slot;
            class->carved--;
        }
        hf_spin_unlock(&class->lock);
        *ret_why = guarded;
        return NULL;
    }
    hf_fiber *fiber = fiber_of(class, slot, number);
    fiber->stack_class = index;
    fiber->stack_lo = slot + PAGE;
    fiber->stack_hi = (char *)fiber;
    hf_context_announce(&fiber->context);
    fiber->valgrind = VALGRIND_STACK_REGISTER(fiber->stack_lo, fiber->stack_hi);
    return fiber;
}

/* A batch from the depot, else one whose memory was given back. */
static hf_fiber *depot_take(hf_sched *sched, uint8_t index)
{
    hf_stack_class *class = &sched->rt->classes[index];
    hf_spin_lock(&class->lock);
    hf_assert((class->depot == NULL) == (class->depot_count == 0));
    hf_fiber *first = class->depot;
    unsigned taken = 0;
    hf_fiber *last = NULL;
    for (hf_fiber *at = first; at != NULL && taken < BATCH; at = at->next) {
        at->sched = sched; /* all of the batch belong to this scheduler from now on */
        last = at;
        taken++;
    }
    if (last != NULL) {
        class->depot = last->next;
        hf_assert(class->depot_count >= taken);
        class->depot_count -= taken;
    }
    hf_fiber *clean = first == NULL && class->clean_count > 0 ? class->clean[--class->clean_count] : NULL;
    hf_spin_unlock(&class->lock);
    if (clean != NULL) { /* its control block was discarded with its pages */
        uintptr_t lo = (uintptr_t)clean & ~(uintptr_t)(class->slot_len - 1);
        clean->stack_class = index;
        clean->stack_lo = (char *)lo + PAGE;
        clean->stack_hi = (char *)clean;
        hf_context_announce(&clean->context);
        clean->valgrind = VALGRIND_STACK_REGISTER(clean->stack_lo, clean->stack_hi);
        return clean;
    }
    if (first != NULL) {
        last->next = NULL;
        sched->free_fibers[index] = first->next;
        sched->free_fiber_count[index] = taken - 1;
    }
    return first;
}

hf_fiber *hf_stack_get_slow(hf_sched *sched, uint8_t index, hf_status *ret_why)
{
    hf_runtime *rt = sched->rt;
    if (rt->fibers_max > 0 && hf_stacks_used(rt) >= rt->fibers_max) {
        *ret_why = HF_ERR_LIMIT;
        return NULL;
    }
    hf_fiber *fiber = sched->free_fibers[index];
    if (fiber != NULL) {
        hf_assert(sched->free_fiber_count[index] > 0 && fiber->stack_class == index);
        sched->free_fibers[index] = fiber->next;
        sched->free_fiber_count[index]--;
        return fiber;
    }
    fiber = depot_take(sched, index);
    if (fiber == NULL) {
        fiber = carve(sched, index, ret_why);
    }
    if (fiber == NULL) {
        return NULL;
    }
    hf_assert(fiber->stack_class == index && fiber->branch == NULL);
    fiber->sched = sched;
    fiber->rt = rt;
    fiber->kind = HF_FIBER_PLAIN;
    fiber->self.fatal = sched->idle.self.fatal;
    fiber->failure = NULL;
    fiber->lost = 0;
    return fiber;
}

static void depot_give(hf_sched *sched, uint8_t index, hf_fiber *first, hf_fiber *last, unsigned count)
{
    hf_stack_class *class = &sched->rt->classes[index];
    hf_spin_lock(&class->lock);
    last->next = class->depot;
    class->depot = first;
    class->depot_count += count;
    hf_spin_unlock(&class->lock);
}

void hf_stack_spill(hf_sched *sched, uint8_t index)
{
    hf_assert(sched->free_fiber_count[index] > BATCH);
    hf_fiber *newest = sched->free_fibers[index];
    hf_fiber *first = newest->next;
    hf_fiber *last = first;
    for (unsigned i = 1; i < BATCH; i++) {
        last = last->next;
    }
    newest->next = last->next;
    sched->free_fiber_count[index] -= BATCH;
    depot_give(sched, index, first, last, BATCH);
}

/* Makes room for one more entry in the list of clean stacks. False: no memory. */
static bool clean_reserve(hf_runtime *rt, hf_stack_class *class)
{
    if (class->clean_count < class->clean_capacity) {
        return true;
    }
    size_t capacity = class->clean_capacity == 0 ? 1024 : class->clean_capacity * 2;
    hf_fiber **grown = hf_rt_alloc(rt, capacity * sizeof(hf_fiber *));
    if (grown == NULL) {
        return false;
    }
    hf_spin_lock(&class->lock);
    hf_fiber **old = class->clean;
    size_t old_capacity = class->clean_capacity;
    if (class->clean_count > 0) {
        memcpy(grown, old, class->clean_count * sizeof(hf_fiber *));
    }
    class->clean = grown;
    class->clean_capacity = capacity;
    hf_spin_unlock(&class->lock);
    hf_rt_free(rt, old, old_capacity * sizeof(hf_fiber *));
    return true;
}

size_t hf_stack_trim(hf_runtime *rt, size_t count_max)
{
    size_t trimmed = 0;
    for (int i = 0; i < CLASS_COUNT && trimmed < count_max; i++) {
        hf_stack_class *class = &rt->classes[i];
        while (trimmed < count_max && clean_reserve(rt, class)) {
            hf_spin_lock(&class->lock);
            hf_fiber *fiber = class->depot;
            if (fiber != NULL) {
                class->depot = fiber->next;
                class->depot_count--;
            }
            hf_spin_unlock(&class->lock);
            if (fiber == NULL) {
                break;
            }
            hf_assert(fiber->branch == NULL && fiber->wait == NULL && fiber->scope == NULL); /* at rest */
            VALGRIND_STACK_DEREGISTER(fiber->valgrind);
            hf_context_retire(&fiber->context);
            char *lo = fiber->stack_lo;
            rt->env->ops->pages_discard(rt->env, lo, class->slot_len - PAGE);
            hf_spin_lock(&class->lock);
            hf_assert(class->clean_count < class->clean_capacity);
            class->clean[class->clean_count++] = fiber;
            hf_spin_unlock(&class->lock);
            trimmed++;
        }
    }
    return trimmed;
}

bool hf_stack_is_guard(hf_runtime *rt, const void *address)
{
    for (int i = 0; i < CLASS_COUNT; i++) {
        const hf_stack_class *class = &rt->classes[i];
        for (const reserve *at = class->reserves; at != NULL; at = at->next) {
            const char *byte = address;
            if (byte >= at->pages && byte < at->pages + at->len) {
                return ((uintptr_t)byte & (class->slot_len - 1)) < PAGE;
            }
        }
    }
    return false;
}

bool hf_stack_next_stretch(hf_runtime *rt, int class_index, void **cursor, hf_stack_stretch *ret)
{
    hf_assert(class_index >= 0 && class_index < CLASS_COUNT);
    hf_stack_class *class = &rt->classes[class_index];
    hf_spin_lock(&class->lock);
    reserve *newest = class->reserves;
    reserve *at = *cursor == NULL ? newest : ((reserve *)*cursor)->next;
    char *carve_end = class->carve;
    hf_spin_unlock(&class->lock);
    if (at == NULL) {
        return false;
    }
    uintptr_t mask = class->slot_len - 1;
    char *first = (char *)(((uintptr_t)at->pages + mask) & ~mask);
    char *end = at == newest ? carve_end : (char *)(((uintptr_t)at->pages + at->len) & ~mask);
    hf_assert(end >= first && (size_t)(end - first) % class->slot_len == 0);
    *cursor = at;
    *ret = (hf_stack_stretch){first, (size_t)(end - first), class->slot_len};
    return true;
}

/* A control block holds the bounds of its stack, so it can be distinguished from other data in its place. That data
 * may be the stack of a running fiber, or a block that is being made. It is read in any case, and only compared
 * with addresses. */
__attribute__((no_sanitize("thread"))) hf_fiber *hf_stack_fiber_at(char *slot, size_t slot_len)
{
    hf_stack_class class = {.slot_len = slot_len};
    for (uint64_t colour = 0; colour < COLOURS; colour++) {
        hf_fiber *fiber = fiber_of(&class, slot, colour);
        char *lo = __atomic_load_n(&fiber->stack_lo, __ATOMIC_RELAXED);
        char *hi = __atomic_load_n(&fiber->stack_hi, __ATOMIC_RELAXED);
        if (lo == slot + PAGE && hi == (char *)fiber) {
            return fiber;
        }
    }
    return NULL;
}

int64_t hf_stacks_used(hf_runtime *rt)
{
    int64_t sum = 0;
    for (int i = 0; i < rt->sched_count; i++) {
        sum += (int64_t)__atomic_load_n(&rt->scheds[i]->counters.fibers, __ATOMIC_RELAXED);
    }
    return sum;
}

uint64_t hf_stacks_bytes(hf_runtime *rt)
{
    uint64_t sum = 0;
    for (int i = 0; i < CLASS_COUNT; i++) {
        hf_stack_class *class = &rt->classes[i];
        hf_spin_lock(&class->lock);
        sum += class->carved * class->slot_len;
        hf_spin_unlock(&class->lock);
    }
    return sum;
}

static void retire_all(hf_fiber *list)
{
    for (; list != NULL; list = list->next) {
        VALGRIND_STACK_DEREGISTER(list->valgrind);
        hf_context_retire(&list->context);
    }
}

void hf_stacks_deinit(hf_runtime *rt)
{
    if (rt->classes == NULL) {
        return;
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        hf_stack_class *class = &rt->classes[i];
        for (int s = 0; s < rt->sched_count; s++) {
            if (rt->scheds != NULL && rt->scheds[s] != NULL) {
                retire_all(rt->scheds[s]->free_fibers[i]);
                rt->scheds[s]->free_fibers[i] = NULL;
            }
        }
        retire_all(class->depot);
        hf_rt_free(rt, class->clean, class->clean_capacity * sizeof(hf_fiber *));
        while (class->reserves != NULL) {
            reserve *next = class->reserves->next;
#if HF_ASAN
            __asan_unpoison_memory_region(class->reserves->pages, class->reserves->len);
#endif
            rt->env->ops->pages_release(rt->env, class->reserves->pages, class->reserves->len);
            hf_rt_free(rt, class->reserves, sizeof(reserve));
            class->reserves = next;
        }
    }
    hf_rt_free(rt, rt->classes, CLASS_COUNT * sizeof *rt->classes);
    rt->classes = NULL;
}
