/* Failures: made rarely, read by people. A wait that ends canceled or timed out records only its status and the verb;
 * the sentence is made when somebody asks for it (hf_error), so that canceling 100,000 fibers allocates nothing. */
#include "fiber/fail.h"

#include "base/glyph.h"
#include "fiber/core.h"
#include "fiber/enter.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_failure_box no_memory = {
    .failure = {.status = HF_ERR_NOMEM,
                .type = "HF_ERR_NOMEM",
                .message = "out of memory, also for the details of this failure",
                .where = "allocator"},
    .as = HF_ERR_NOMEM,
};

static void copy_text(char *to, size_t capacity, const char *text)
{
    size_t len = strnlen(text, capacity - 1);
    memcpy(to, text, len);
    to[len] = '\0';
}

static void fill(hf_failure_box *box, hf_status status, const char *type, const char *where, const char *message)
{
    hf_assert(status != HF_OK);
    if (type != NULL) {
        copy_text(box->type, sizeof box->type, type);
    } else {
        hf_status_word(status, box->type, sizeof box->type);
    }
    copy_text(box->where, sizeof box->where, where != NULL ? where : "");
    copy_text(box->message, sizeof box->message, message);
    box->as = status;
    box->failure.status = status;
    box->failure.type = box->type;
    box->failure.message = box->message;
    box->failure.where = box->where;
}

static int depth_of(const hf_failure_box *box)
{
    int depth = 0;
    for (; box != NULL; box = box->cause) {
        depth++;
    }
    return depth;
}

/* The runtime whose memory holds the text of the box: the box's own, or, for a thread's box, that of its cause. NULL:
 * none. */
static hf_runtime *text_memory(const hf_failure_box *box)
{
    return box->rt != NULL || box->cause == NULL ? box->rt : box->cause->rt;
}

static void drop_text(hf_failure_box *box)
{
    char *text = atomic_load_explicit(&box->text, memory_order_relaxed);
    if (HF_UNLIKELY(text != NULL)) {
        hf_assert(text_memory(box) != NULL);
        atomic_store_explicit(&box->text, NULL, memory_order_relaxed);
        hf_rt_free(text_memory(box), text, HF_CHAIN_LEN_MAX);
    }
}

hf_failure_box *hf_box_new(hf_runtime *rt, hf_status status, const char *type, const char *where, const char *message,
                           hf_failure_box *cause)
{
    hf_assert(status != HF_OK);
    hf_failure_box *box = hf_rt_alloc(rt, sizeof *box);
    if (box == NULL) {
        hf_box_unref(cause);
        return &no_memory;
    }
    fill(box, status, type, where, message);
    box->rt = rt;
    if (depth_of(cause) >= HF_CAUSE_DEPTH_MAX) {
        hf_box_unref(cause);
        cause = NULL;
    }
    box->cause = cause;
    box->failure.cause = cause != NULL ? &cause->failure : NULL;
    atomic_store_explicit(&box->refs, 1, memory_order_relaxed);
    return box;
}

hf_failure_box *hf_box_ref(hf_failure_box *box)
{
    if (box != NULL && atomic_load_explicit(&box->refs, memory_order_relaxed) != 0) {
        unsigned before = atomic_fetch_add_explicit(&box->refs, 1, memory_order_relaxed);
        hf_assert(before > 0);
    }
    return box;
}

void hf_box_unref(hf_failure_box *box)
{
    while (box != NULL && atomic_load_explicit(&box->refs, memory_order_relaxed) != 0) {
        unsigned before = atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel);
        hf_assert(before > 0);
        if (before != 1) {
            return;
        }
        hf_failure_box *cause = box->cause;
        drop_text(box);
        hf_rt_free(box->rt, box, sizeof *box);
        box = cause;
    }
}

/* The chain of a box in one sentence: "a: b; because c". */
static void flatten(const hf_failure *failure, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (const hf_failure *at = failure; at != NULL && used + 1 < capacity; at = at->cause) {
        int len = snprintf(text + used, capacity - used, "%s%s", at == failure ? "" : "; because ", at->message);
        used += len < 0 ? 0 : (size_t)len;
    }
}

/* Puts the fiber's own last failure aside when a hook that runs on it fails. */
static void keep_aside(hf_fiber *self)
{
    if (HF_LIKELY(self->hook_depth < HF_HOOK_AWAY) || self->sched == NULL || self->sched->hook_kept.is_kept) {
        return;
    }
    self->sched->hook_kept = (hf_hook_kept){true, self->failure, self->last_status, self->last_where};
    self->failure = NULL;
}

void hf_hook_restore(hf_fiber *self)
{
    hf_hook_kept *kept = &self->sched->hook_kept;
    hf_assert(kept->is_kept);
    hf_box_unref(self->failure);
    self->failure = kept->failure;
    self->last_status = kept->last_status;
    self->last_where = kept->last_where;
    kept->is_kept = false;
}

void hf_self_drop_cause(hf_fiber *self)
{
    hf_assert(self->kind == HF_FIBER_THREAD);
    hf_failure_box *own = &HF_CONTAINER(self, hf_thread_fiber, fiber)->box;
    hf_failure_box *cause = own->cause;
    drop_text(own);
    own->cause = NULL;
    own->failure.cause = NULL;
    hf_box_unref(cause);
}

void hf_self_fail(hf_fiber *self, hf_failure_box *box)
{
    hf_assert(box != NULL && box->as != HF_OK);
    keep_aside(self);
    self->last_status = box->as;
    self->last_where = NULL;
    if (self->kind == HF_FIBER_THREAD) {
        hf_thread_fiber *thread = HF_CONTAINER(self, hf_thread_fiber, fiber);
        char text[HF_MESSAGE_LEN_MAX];
        flatten(&box->failure, text, sizeof text);
        hf_self_drop_cause(self);
        fill(&thread->box, box->failure.status, box->failure.type, box->failure.where, text);
        thread->box.as = box->as;
        self->failure = &thread->box;
        hf_box_unref(box);
        return;
    }
    if (HF_UNLIKELY(box->rt != self->rt &&
                    box != &no_memory)) { /* made by shared work in another runtime, which may be freed first */
        char text[HF_MESSAGE_LEN_MAX];
        flatten(&box->failure, text, sizeof text);
        hf_failure_box *own =
            hf_box_new(self->rt, box->failure.status, box->failure.type, box->failure.where, text, NULL);
        hf_box_unref(box);
        box = own;
    }
    hf_failure_box *old = self->failure;
    self->failure = box;
    hf_box_unref(old);
}

void hf_self_note(hf_fiber *self, hf_status status, const char *where)
{
    keep_aside(self);
    self->last_status = status;
    self->last_where = where;
}

hf_status hf_refuse_at(hf_fiber *self, hf_status status, const char *where, const char *format, ...)
{
    char message[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (self->kind == HF_FIBER_THREAD || self->rt == NULL) {
        hf_thread_fiber *thread = HF_CONTAINER(self, hf_thread_fiber, fiber);
        hf_self_drop_cause(self);
        fill(&thread->box, status, NULL, where, message);
        self->failure = &thread->box;
        self->last_status = status;
        self->last_where = NULL;
        return status;
    }
    hf_self_fail(self, hf_box_new(self->rt, status, NULL, where, message, NULL));
    return status;
}

hf_status hf_op_end(hf_fiber *self, const hf_op *op)
{
    return op->status == HF_OK ? HF_OK : hf_refuse_at(self, op->status, op->where, "%s", op->message);
}

/* The sentence for a failure that was only noted. */
static void describe_note(const hf_fiber *self, char *text, size_t capacity)
{
    const char *verb = self->last_where != NULL ? self->last_where : "the call";
    if (self->last_status == HF_ERR_CANCELED && self->cx != NULL && hf_is_canceled(self)) {
        const hf_cx *cx = self->cx;
        (void)snprintf(text, capacity, "%s: canceled (%s: %s)", verb, hf_cause_name((hf_cause)cx->cause), cx->reason);
    } else {
        (void)snprintf(text, capacity, "%s: %s", verb, hf_status_text(self->last_status));
    }
}

/* Sets the status that the failure is returned with, except in no_memory, which all fibers share. */
static hf_failure_box *return_as(hf_failure_box *box, hf_status status)
{
    if (box != &no_memory) {
        box->as = status;
    }
    return box;
}

hf_status hf_self_return(hf_fiber *self, hf_status status)
{
    hf_assert(self->failure != NULL && status != HF_OK);
    (void)return_as(self->failure, status);
    self->last_status = status;
    return status;
}

hf_failure_box *hf_self_take_failure(hf_fiber *self, hf_runtime *rt, hf_status status, const char *where)
{
    bool is_noted = self->last_where != NULL;
    if (!is_noted && self->failure != NULL && self->failure->as == status) {
        if (self->kind == HF_FIBER_THREAD) {
            const hf_failure *flat = &self->failure->failure;
            hf_failure_box *box =
                hf_box_new(rt, flat->status, flat->type, flat->where, flat->message, hf_box_ref(self->failure->cause));
            return return_as(box, status);
        }
        hf_failure_box *box = self->failure;
        self->failure = NULL;
        self->last_status = HF_OK;
        return box;
    }
    char text[HF_MESSAGE_LEN_MAX];
    if (is_noted && self->last_status == status) {
        describe_note(self, text, sizeof text);
    } else {
        char word[HF_TYPE_LEN_MAX];
        hf_status_word(status, word, sizeof word);
        (void)snprintf(text, sizeof text, "%s returned %s: %s", where != NULL ? where : "the fiber", word,
                       hf_status_text(status));
    }
    return hf_box_new(rt, status, NULL, where, text, NULL);
}

void hf_self_tell(hf_fiber *self)
{
    hf_assert(self->last_status != HF_OK && self->last_where != NULL);
    char text[HF_MESSAGE_LEN_MAX];
    describe_note(self, text, sizeof text);
    (void)hf_refuse_at(self, self->last_status, self->last_where, "%s", text);
}

const hf_failure *hf_error(void)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    if (self == NULL || self->last_status == HF_OK) {
        return NULL;
    }
    if (self->last_where != NULL) {
        hf_self_tell(self);
    }
    return self->failure != NULL ? &self->failure->failure : NULL;
}

const hf_failure *hf_error_as(hf_status status)
{
    const hf_failure *failure = hf_error();
    return failure != NULL && hf_box_of(failure)->as == status ? failure : NULL;
}

/* A scope or a branch may share the box, and another thread may ask at the same time: the first text stays. */
const char *hf_error_text(void)
{
    const hf_failure *failure = hf_error();
    if (failure == NULL) {
        return "";
    }
    if (failure->cause == NULL) {
        return failure->message;
    }
    hf_failure_box *box = hf_box_of(failure);
    char *text = atomic_load_explicit(&box->text, memory_order_acquire);
    if (text != NULL) {
        return text;
    }
    hf_runtime *rt = text_memory(box);
    char *fresh = rt != NULL ? hf_rt_alloc(rt, HF_CHAIN_LEN_MAX) : NULL;
    if (fresh == NULL) {
        return failure->message;
    }
    flatten(failure, fresh, HF_CHAIN_LEN_MAX);
    if (atomic_compare_exchange_strong_explicit(&box->text, &text, fresh, memory_order_acq_rel, memory_order_acquire)) {
        return fresh;
    }
    hf_rt_free(rt, fresh, HF_CHAIN_LEN_MAX);
    return text;
}

/* A thread has one box. While the thread runs a branch, the box may have causes, in the memory of the branch's runtime;
 * they are released with the branch. */
static void raise_on_thread(hf_thread_fiber *thread, hf_status status, const char *type, const char *where,
                            const char *message, hf_failure_box *cause)
{
    if (depth_of(cause) >= HF_CAUSE_DEPTH_MAX) {
        hf_box_unref(cause);
        cause = NULL;
    }
    hf_failure_box *old = thread->box.cause;
    drop_text(&thread->box);
    fill(&thread->box, status, type, where, message);
    thread->box.cause = cause;
    thread->box.failure.cause = cause != NULL ? &cause->failure : NULL;
    thread->fiber.failure = &thread->box;
    thread->fiber.last_status = status;
    thread->fiber.last_where = NULL;
    hf_box_unref(old);
}

static HF_PRINTF(4, 0) hf_status
    raise(hf_status status, const char *type, bool with_cause, const char *format, va_list args)
{
    if (status == HF_OK) {
        return HF_OK;
    }
    char message[HF_MESSAGE_LEN_MAX];
    (void)vsnprintf(message, sizeof message, format, args);
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return status;
    }
    const char *where = self->branch != NULL && self->branch->name != NULL ? self->branch->name : "";
    hf_failure_box *cause = NULL;
    if (with_cause && self->last_status != HF_OK && (self->kind != HF_FIBER_THREAD || self->branch != NULL)) {
        hf_runtime *rt = self->kind != HF_FIBER_THREAD ? self->rt : self->branch->scope->rt;
        cause = hf_self_take_failure(self, rt, self->last_status, where);
    }
    if (self->kind == HF_FIBER_THREAD) {
        raise_on_thread(HF_CONTAINER(self, hf_thread_fiber, fiber), status, type, where, message, cause);
    } else {
        hf_self_fail(self, hf_box_new(self->rt, status, type, where, message, cause));
    }
    HF_LEAVE(self, status);
}

hf_status hf_raise(hf_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_status result = raise(status, NULL, false, format, args);
    va_end(args);
    return result;
}

hf_status hf_raise_typed(hf_status status, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_status result = raise(status, type, true, format, args);
    va_end(args);
    return result;
}

void hf_die(hf_status status, const char *what)
{
    const char *text = hf_error_as(status) != NULL ? hf_error_text() : hf_status_text(status);
    char line[4096];
    (void)snprintf(line, sizeof line, "%s: %s", what, text);
    hf_text_clean(line); /* an activity elsewhere may have written it */
    (void)fprintf(stderr, "%s\n", line);
    exit(1);
}
