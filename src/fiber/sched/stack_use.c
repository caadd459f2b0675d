/* How much of their stacks fibers use.
 *
 * A running fiber does not count it. A page of a stack has no memory until it is touched, and keeps it afterwards,
 * so the kernel knows to a page how deep a stack was ever used. hf_dump asks it for each fiber. Now and then the
 * monitor asks for all stacks at once, and logs those of which three quarters were used: the guard behind the last
 * quarter ends the process.
 *
 * The next fiber on the same stack inherits the touched pages, so the log line may name the wrong fiber if that one is
 * young; the line says so. Each name is logged once, and each stack once. */
#include "fiber/core.h"
#include "fiber/crew/crew_private.h"
#include "fiber/sched/safepoint.h"
#include "fiber/sched/stack.h"

#include <string.h>

enum { PAGE = 4096, PAGES_AT_ONCE = 4096, SLOT_PAGES_MAX = 256 * 1024 / PAGE, FOUND_MAX = 64, CLASS_COUNT = 3 };

static size_t size_of(const hf_fiber *fiber)
{
    return (size_t)(fiber->stack_hi - fiber->stack_lo);
}

/* From the first touched page of the stack to its upper end; `touched` begins with the page of stack_lo. */
static size_t touched_len(size_t size, const unsigned char *touched, size_t page_count)
{
    size_t first = 0;
    while (first < page_count && touched[first] == 0) {
        first++;
    }
    return first < page_count ? size - first * PAGE : 0;
}

size_t hf_stack_most(const hf_fiber *fiber)
{
    unsigned char touched[SLOT_PAGES_MAX];
    size_t page_count = (size_of(fiber) + PAGE - 1) / PAGE;
    hf_env *env = fiber->rt->env;
    hf_assert(page_count <= SLOT_PAGES_MAX);
    return env->ops->pages_touched(env, fiber->stack_lo, page_count * PAGE, touched)
               ? touched_len(size_of(fiber), touched, page_count)
               : 0;
}

/* ---- The monitor's look ------------------------------------------------------------------------------------------ */

typedef struct finding {
    hf_fiber *fiber;
    size_t most;
    size_t size;
    char name[48];     /* of the branch that it runs; empty = none, or one without a name */
    char workflow[64]; /* id of the workflow that it belongs to; empty = none */
} finding;

typedef struct search {
    finding found[FOUND_MAX];
    int count;
} search;

/* Pages are coarse: the one at the mark counts if most of it lies below. */
static bool is_nearly_full(size_t most, size_t size)
{
    return most >= size * 3 / 4 + PAGE / 2;
}

/* Read while the fibers run: bounds do not change while a stack has memory, and is_told is the monitor's. */
__attribute__((no_sanitize("thread"))) static void see_slot(search *s, char *slot, size_t slot_len,
                                                            const unsigned char *touched)
{
    hf_assert(slot_len <= (size_t)SLOT_PAGES_MAX * PAGE && s->count <= FOUND_MAX);
    size_t page_count = slot_len / PAGE - 1; /* without the guard, which is the first */
    if (touched[page_count] == 0) {
        return; /* not in use, or its memory was given back */
    }
    hf_fiber *fiber = hf_stack_fiber_at(slot, slot_len);
    if (fiber == NULL || fiber->is_told || s->count == FOUND_MAX) {
        return;
    }
    size_t size = (size_t)((char *)fiber - (slot + PAGE)); /* the control block lies at the stack's upper end */
    size_t most = touched_len(size, touched + 1, page_count);
    if (is_nearly_full(most, size)) {
        fiber->is_told = true;
        s->found[s->count++] = (finding){.fiber = fiber, .most = most, .size = size};
    }
}

static void see_stretch(hf_env *env, search *s, const hf_stack_stretch *stretch)
{
    hf_assert(stretch->len % stretch->slot_len == 0 && (size_t)PAGES_AT_ONCE * PAGE % stretch->slot_len == 0);
    unsigned char touched[PAGES_AT_ONCE];
    for (size_t at = 0; at < stretch->len;) {
        size_t len = stretch->len - at;
        len = len < (size_t)PAGES_AT_ONCE * PAGE ? len : (size_t)PAGES_AT_ONCE * PAGE;
        if (!env->ops->pages_touched(env, stretch->slots + at, len, touched)) {
            return;
        }
        for (size_t slot = 0; slot < len; slot += stretch->slot_len) {
            see_slot(s, stretch->slots + at + slot, stretch->slot_len, touched + slot / PAGE);
        }
        at += len;
    }
}

static void copy_name(char *to, size_t len, const char *from)
{
    to[0] = '\0';
    if (from != NULL) {
        size_t count = strnlen(from, len - 1);
        memcpy(to, from, count);
        to[count] = '\0';
    }
}

/* Branches come and go with their names: the world stands still while these are read. */
static void name_them(hf_runtime *rt, search *s)
{
    hf_world_stop(rt);
    for (int i = 0; i < s->count; i++) {
        finding *f = &s->found[i];
        const hf_fiber *fiber = f->fiber;
        copy_name(f->name, sizeof f->name, fiber->branch != NULL ? fiber->branch->name : NULL);
        bool is_member = fiber->branch != NULL && fiber->kind == HF_FIBER_MEMBER;
        copy_name(f->workflow, sizeof f->workflow, is_member ? hf_crew_name(fiber->crew) : NULL);
    }
    hf_world_start(rt);
}

static bool is_news(hf_stack_names *told, const char *name)
{
    for (int i = 0; i < told->count; i++) {
        if (strcmp(told->names[i], name) == 0) {
            return false;
        }
    }
    if (told->count == (int)HF_COUNT_OF(told->names)) {
        return false;
    }
    copy_name(told->names[told->count++], sizeof told->names[0], name);
    return true;
}

static void tell(hf_runtime *rt, const finding *f)
{
    if (f->workflow[0] != '\0') {
        hf_log(
            rt, HF_LOG_WARN, "stack_nearly_full", "fiber=%s workflow=%s used=%zu size=%zu message=%s", f->name,
            f->workflow, f->most, f->size,
            "this fiber, or one before it on the same stack, has used three quarters of it; the process ends when it "
            "is full: give hf_worker_add_workflow a larger .stack_size");
    } else {
        hf_log(
            rt, HF_LOG_WARN, "stack_nearly_full", "fiber=%s used=%zu size=%zu message=%s", f->name, f->most, f->size,
            "this fiber, or one before it on the same stack, has used three quarters of it; the process ends when it "
            "is full: give hf_fork, hf_worker_add_activity or hf_run a larger .stack_size");
    }
}

void hf_stack_look(hf_runtime *rt, hf_stack_names *told)
{
    search s;
    s.count = 0;
    for (int i = 0; i < CLASS_COUNT; i++) {
        void *cursor = NULL;
        hf_stack_stretch stretch;
        while (hf_stack_next_stretch(rt, i, &cursor, &stretch)) {
            see_stretch(rt->env, &s, &stretch);
        }
    }
    if (s.count == 0) {
        return;
    }
    name_them(rt, &s);
    for (int i = 0; i < s.count; i++) {
        if (is_news(told, s.found[i].name)) {
            tell(rt, &s.found[i]);
        }
    }
}
