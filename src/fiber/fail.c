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
                .where = "allocator",
                .stack = ""},
    .as = HF_ERR_NOMEM,
};

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void *take_memory(hf_runtime *rt, size_t len)
{
    if (rt != NULL) {
        return hf_rt_alloc(rt, len);
    }
    hf_env *env = hf_env_posix();
    void *ptr = env->ops->allocate(env, len, 16);
    if (ptr != NULL) {
        memset(ptr, 0, len);
    }
    return ptr;
}

static void give_memory(hf_runtime *rt, void *ptr, size_t len)
{
    if (rt != NULL) {
        hf_rt_free(rt, ptr, len);
    } else {
        hf_env *env = hf_env_posix();
        env->ops->release(env, ptr, len);
    }
}

/* ---- Bodies ------------------------------------------------------------------------------------------------------ */

/* The length of a text that may be cut: up to its first NUL, and no part of a character is left over. */
static size_t kept_len(hf_str text, size_t max)
{
    size_t len = text.len > 0 ? strnlen(text.data, text.len) : 0;
    if (len <= max) {
        return len;
    }
    for (len = max; len > 0 && len > max - 4 && ((unsigned char)text.data[len] & 0xC0) == 0x80; len--) {
    }
    return len;
}

static const char *put_text(char **at, const char *text, size_t len)
{
    char *start = *at;
    if (len > 0) {
        memcpy(start, text, len);
    }
    start[len] = '\0';
    *at = start + len + 1;
    return start;
}

hf_failure_body *hf_body_new(hf_str type, hf_str message, hf_str stack, hf_str wire)
{
    size_t type_len = kept_len(type, HF_FAILURE_TYPE_LEN_MAX);
    size_t message_len = kept_len(message, HF_FAILURE_MESSAGE_LEN_MAX);
    size_t stack_len = kept_len(stack, HF_FAILURE_STACK_LEN_MAX);
    size_t len = sizeof(hf_failure_body) + type_len + message_len + stack_len + 4;
    if (__builtin_add_overflow(len, wire.len, &len)) {
        return NULL;
    }
    hf_failure_body *body = take_memory(NULL, len);
    if (body == NULL) {
        return NULL;
    }
    char *at = body->room;
    atomic_store_explicit(&body->refs, 1, memory_order_relaxed);
    body->len = len;
    body->kind = HF_FAILURE_APPLICATION;
    body->type = put_text(&at, type.data, type_len);
    body->message = put_text(&at, message.data, message_len);
    body->stack = put_text(&at, stack.data, stack_len);
    body->wire = hf_str_of_len(put_text(&at, wire.data, wire.len), wire.len);
    body->details = hf_payload_none();
    hf_assert(at == (char *)body + len - sizeof *body + offsetof(hf_failure_body, room));
    return body;
}

hf_failure_body *hf_body_ref(hf_failure_body *body)
{
    if (body != NULL) {
        unsigned before = atomic_fetch_add_explicit(&body->refs, 1, memory_order_relaxed);
        hf_assert(before > 0);
    }
    return body;
}

void hf_body_unref(hf_failure_body *body)
{
    if (body == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&body->refs, 1, memory_order_acq_rel);
    hf_assert(before > 0);
    if (before == 1) {
        if (body->drop != NULL) {
            body->drop(body);
        }
        give_memory(NULL, body, body->len);
    }
}

/* ---- Boxes ------------------------------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t capacity, const char *text)
{
    size_t len = kept_len(hf_str_of(text), capacity - 1);
    memcpy(to, text, len);
    to[len] = '\0';
}

/* The texts of the box's own arrays. */
static void point_inside(hf_failure_box *box)
{
    box->failure.type = box->type;
    box->failure.message = box->message;
    box->failure.stack = "";
    box->failure.details = hf_payload_none();
    box->failure.own = NULL;
}

/* Takes the body. The box has none. */
static void put_body(hf_failure_box *box, hf_failure_body *body)
{
    hf_assert(box->body == NULL && body != NULL);
    box->body = body;
    box->failure.type = body->type;
    box->failure.message = body->message;
    box->failure.stack = body->stack;
    box->failure.details = body->details;
    box->failure.kind = body->kind;
    box->failure.own = body;
}

/* Texts that are too long for the box go into a body; without memory they are cut. */
static void fill(hf_failure_box *box, hf_status status, const char *type, const char *where, const char *message)
{
    hf_assert(status != HF_OK && box->body == NULL);
    char word[HF_TYPE_LEN_MAX];
    if (type == NULL) {
        hf_status_word(status, word, sizeof word);
        type = word;
    }
    copy_text(box->type, sizeof box->type, type);
    copy_text(box->where, sizeof box->where, where != NULL ? where : "");
    copy_text(box->message, sizeof box->message, message);
    box->as = status;
    box->failure.status = status;
    box->failure.kind = HF_FAILURE_APPLICATION;
    box->failure.where = box->where;
    point_inside(box);
    if (HF_UNLIKELY(strlen(type) >= sizeof box->type || strlen(message) >= sizeof box->message)) {
        hf_failure_body *body = hf_body_new(hf_str_of(type), hf_str_of(message), (hf_str){NULL, 0}, (hf_str){NULL, 0});
        if (body != NULL) {
            put_body(box, body);
        }
    }
}

/* The same for a copy of another box, without its causes. */
static void fill_like(hf_failure_box *box, const hf_failure_box *from)
{
    const hf_failure *failure = &from->failure;
    if (from->body != NULL) {
        fill(box, failure->status, "", failure->where, "");
        put_body(box, hf_body_ref(from->body));
    } else {
        fill(box, failure->status, failure->type, failure->where, failure->message);
    }
    box->as = from->as;
}

static int depth_of(const hf_failure_box *box)
{
    int depth = 0;
    for (; box != NULL; box = box->cause) {
        depth++;
    }
    return depth;
}

/* The text of a chain is in the same memory as its first box. */
static void drop_text(hf_failure_box *box)
{
    char *text = atomic_load_explicit(&box->text, memory_order_relaxed);
    if (HF_UNLIKELY(text != NULL)) {
        atomic_store_explicit(&box->text, NULL, memory_order_relaxed);
        give_memory(box->rt, text, HF_CHAIN_LEN_MAX);
    }
}

static hf_failure_box *new_box(hf_runtime *rt)
{
    hf_failure_box *box = take_memory(rt, sizeof *box);
    if (box != NULL) {
        box->rt = rt;
        atomic_store_explicit(&box->refs, 1, memory_order_relaxed);
    }
    return box;
}

static void link_cause(hf_failure_box *box, hf_failure_box *cause)
{
    box->cause = cause;
    box->failure.cause = cause != NULL ? &cause->failure : NULL;
}

/* A copy of the first `max` links of a chain. Without memory it is shorter; NULL = there was none at all. */
static hf_failure_box *copy_chain(hf_runtime *rt, const hf_failure_box *from, int max)
{
    hf_failure_box *first = NULL;
    hf_failure_box *last = NULL;
    for (; from != NULL && max > 0; from = from->cause, max--) {
        hf_failure_box *box = new_box(rt);
        if (box == NULL) {
            break;
        }
        fill_like(box, from);
        if (last != NULL) {
            link_cause(last, box);
        }
        first = first != NULL ? first : box;
        last = box;
    }
    return first;
}

/* Takes a chain and returns it with room for one more link in front of it. */
static hf_failure_box *shorten(hf_runtime *rt, hf_failure_box *cause)
{
    if (HF_LIKELY(depth_of(cause) < HF_CAUSE_DEPTH_MAX)) {
        return cause;
    }
    hf_failure_box *shorter = copy_chain(rt, cause, HF_CAUSE_DEPTH_MAX - 1);
    hf_box_unref(cause);
    return shorter;
}

hf_failure_box *hf_box_new(hf_runtime *rt, hf_status status, const char *type, const char *where, const char *message,
                           hf_failure_box *cause)
{
    hf_assert(status != HF_OK);
    hf_failure_box *box = new_box(rt);
    if (box == NULL) {
        hf_box_unref(cause);
        return &no_memory;
    }
    fill(box, status, type, where, message);
    link_cause(box, shorten(rt, cause));
    return box;
}

hf_failure_box *hf_box_of_body(hf_runtime *rt, hf_status status, hf_failure_body *body, hf_failure_box *cause)
{
    hf_failure_box *box = body != NULL ? new_box(rt) : NULL;
    if (box == NULL) {
        hf_body_unref(body);
        hf_box_unref(cause);
        return &no_memory;
    }
    fill(box, status, "", "", "");
    put_body(box, body);
    link_cause(box, shorten(rt, cause));
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
        hf_body_unref(box->body);
        give_memory(box->rt, box, sizeof *box);
        box = cause;
    }
}

/* The chain of a box in one sentence: "a: b; because c". */
static void flatten(const hf_failure *failure, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (const hf_failure *at = failure; at != NULL && used + 1 < capacity; at = at->cause) {
        if (at->message[0] != '\0') {
            int len = snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : "; because ", at->message);
            used += len < 0 ? 0 : (size_t)len;
        }
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

/* What the box of a thread had. It is freed when the box has been filled again, because the new failure may quote the
 * old one. */
typedef struct hf_old_parts {
    hf_failure_body *body;
    hf_failure_box *cause;
} hf_old_parts;

static hf_old_parts take_parts(hf_failure_box *own)
{
    hf_old_parts old = {own->body, own->cause};
    drop_text(own);
    link_cause(own, NULL);
    own->body = NULL;
    return old;
}

static void free_parts(hf_old_parts old)
{
    hf_body_unref(old.body);
    hf_box_unref(old.cause);
}

void hf_self_drop_chain(hf_fiber *self)
{
    hf_assert(self->kind == HF_FIBER_THREAD);
    hf_failure_box *own = &HF_CONTAINER(self, hf_thread_fiber, fiber)->box;
    if (own->body != NULL) {
        copy_text(own->type, sizeof own->type, own->body->type);
        copy_text(own->message, sizeof own->message, own->body->message);
        point_inside(own);
    }
    free_parts(take_parts(own));
}

/* The thread gets a copy of the box and of its causes. */
static void fail_thread(hf_thread_fiber *thread, const hf_failure_box *box)
{
    hf_failure_box *own = &thread->box;
    hf_old_parts old = take_parts(own);
    fill_like(own, box);
    link_cause(own, copy_chain(NULL, box->cause, HF_CAUSE_DEPTH_MAX - 1));
    thread->fiber.failure = own;
    free_parts(old);
}

void hf_self_fail(hf_fiber *self, hf_failure_box *box)
{
    hf_assert(box != NULL && box->as != HF_OK);
    keep_aside(self);
    self->last_status = box->as;
    self->last_where = NULL;
    if (self->kind == HF_FIBER_THREAD) {
        fail_thread(HF_CONTAINER(self, hf_thread_fiber, fiber), box);
        hf_box_unref(box);
        return;
    }
    if (HF_UNLIKELY(box->rt != NULL && box->rt != self->rt)) { /* made by shared work in another runtime, which may be
                                                                  freed first */
        hf_failure_box *own = copy_chain(self->rt, box, HF_CAUSE_DEPTH_MAX);
        hf_box_unref(box);
        box = own != NULL ? own : &no_memory;
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
        hf_old_parts old = take_parts(&thread->box);
        fill(&thread->box, status, NULL, where, message);
        free_parts(old);
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

/* Why a wait ended that was only noted: a sibling failed, and the wait was canceled for that. NULL = for another reason. */
static hf_failure_box *sibling_of_note(const hf_fiber *self)
{
    bool is_canceled = self->last_status == HF_ERR_CANCELED && self->cx != NULL && hf_is_canceled(self);
    return is_canceled && self->cx->cause == HF_CAUSE_SIBLING && self->cx->failure != NULL
               ? hf_box_of(self->cx->failure)
               : NULL;
}

/* A chain as the cause of a box in this runtime (NULL = in memory of the process). It is shared where that is possible. */
static hf_failure_box *as_cause(hf_runtime *rt, hf_failure_box *box)
{
    bool is_shared = box == NULL || box->rt == NULL || box->rt == rt;
    return is_shared ? hf_box_ref(box) : copy_chain(rt, box, HF_CAUSE_DEPTH_MAX - 1);
}

/* Sets the status that the failure is returned with, except in no_memory, which all fibers share. */
static hf_failure_box *return_as(hf_failure_box *box, hf_status status)
{
    if (box != &no_memory && box->as != status) { /* others may have the box as well, and read it */
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
            hf_failure_box *box = new_box(rt);
            if (box == NULL) {
                return &no_memory;
            }
            fill_like(box, self->failure);
            link_cause(box, hf_box_ref(self->failure->cause)); /* memory of the process: it may be shared */
            return return_as(box, status);
        }
        hf_failure_box *box = self->failure;
        self->failure = NULL;
        self->last_status = HF_OK;
        return box;
    }
    char text[HF_MESSAGE_LEN_MAX];
    hf_failure_box *cause = NULL;
    if (is_noted && self->last_status == status) {
        describe_note(self, text, sizeof text);
        cause = as_cause(rt, sibling_of_note(self));
    } else {
        char word[HF_TYPE_LEN_MAX];
        hf_status_word(status, word, sizeof word);
        (void)snprintf(text, sizeof text, "%s returned %s: %s", where != NULL ? where : "the fiber", word,
                       hf_status_text(status));
    }
    return hf_box_new(rt, status, NULL, where, text, cause);
}

/* A thread has one box, and its causes are in memory of the process. */
static void raise_on_thread(hf_thread_fiber *thread, hf_status status, const char *type, const char *where,
                            const char *message, hf_failure_box *cause)
{
    cause = shorten(NULL, cause);
    hf_failure_box *own = &thread->box;
    hf_old_parts old = take_parts(own);
    fill(own, status, type, where, message);
    link_cause(own, cause);
    free_parts(old);
    thread->fiber.failure = own;
    thread->fiber.last_status = status;
    thread->fiber.last_where = NULL;
}

void hf_self_tell(hf_fiber *self)
{
    hf_assert(self->last_status != HF_OK && self->last_where != NULL);
    char text[HF_MESSAGE_LEN_MAX];
    hf_failure_box *sibling = sibling_of_note(self);
    describe_note(self, text, sizeof text);
    if (sibling == NULL || self->rt == NULL) {
        (void)hf_refuse_at(self, self->last_status, self->last_where, "%s", text);
    } else if (self->kind == HF_FIBER_THREAD) {
        raise_on_thread(HF_CONTAINER(self, hf_thread_fiber, fiber), self->last_status, NULL, self->last_where, text,
                        as_cause(NULL, sibling));
    } else {
        hf_self_fail(
            self, hf_box_new(self->rt, self->last_status, NULL, self->last_where, text, as_cause(self->rt, sibling)));
    }
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

void hf_error_clear(void)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) { /* in a process that fork() made no memory is given back */
        self = (hf_fiber *)(void *)hf_self_get();
        if (self != NULL) {
            hf_self_note(self, HF_OK, NULL);
        }
        return;
    }
    if (self->last_status != HF_OK) {
        keep_aside(self);
        if (self->kind == HF_FIBER_THREAD && self->failure != NULL) {
            hf_self_drop_chain(self); /* the box itself is the thread's */
        } else {
            hf_box_unref(self->failure);
        }
        self->failure = NULL;
        self->last_status = HF_OK;
        self->last_where = NULL;
    }
    hf_leave(self);
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
    char *fresh = take_memory(box->rt, HF_CHAIN_LEN_MAX);
    if (fresh == NULL) {
        return failure->message;
    }
    flatten(failure, fresh, HF_CHAIN_LEN_MAX);
    if (atomic_compare_exchange_strong_explicit(&box->text, &text, fresh, memory_order_acq_rel, memory_order_acquire)) {
        return fresh;
    }
    give_memory(box->rt, fresh, HF_CHAIN_LEN_MAX);
    return text;
}

const hf_failure *hf_error_find(const char *type)
{
    const hf_failure *failure = type != NULL ? hf_error() : NULL;
    while (failure != NULL && strcmp(failure->type, type) != 0) {
        failure = failure->cause;
    }
    return failure;
}

const char *hf_failure_kind_name(hf_failure_kind kind)
{
    static const char *const WORDS[] = {
#define ROW(name, word, text) word,
        HF_FAILURE_KIND_MAP(ROW)
#undef ROW
    };
    return (size_t)kind < HF_COUNT_OF(WORDS) ? WORDS[kind] : "?";
}

static void raise_text(hf_status status, const char *type, bool with_cause, const char *message)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) { /* nothing can be stored but that: an earlier failure must not pass for this one */
        self = (hf_fiber *)(void *)hf_self_get();
        if (self != NULL) {
            hf_self_note(self, status, "a failure in a process that fork() made");
        }
        return;
    }
    const char *where = self->branch != NULL && self->branch->name != NULL ? self->branch->name : "";
    bool is_thread = self->kind == HF_FIBER_THREAD;
    hf_failure_box *cause = NULL;
    if (with_cause && self->last_status != HF_OK && (!is_thread || self->branch != NULL)) {
        cause = hf_self_take_failure(self, is_thread ? NULL : self->rt, self->last_status, where);
    }
    if (is_thread) {
        raise_on_thread(HF_CONTAINER(self, hf_thread_fiber, fiber), status, type, where, message, cause);
    } else {
        hf_self_fail(self, hf_box_new(self->rt, status, type, where, message, cause));
    }
    hf_leave(self);
}

/* Few messages are longer than a line: only those take memory, and are cut without it. */
static HF_PRINTF(4, 0) hf_status
    raise(hf_status status, const char *type, bool with_cause, const char *format, va_list args)
{
    if (status == HF_OK) {
        return HF_OK;
    }
    char message[HF_MESSAGE_LEN_MAX];
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(message, sizeof message, format, args);
    if (HF_LIKELY(len < (int)sizeof message)) {
        raise_text(status, type, with_cause, message);
    } else {
        size_t room = (size_t)len < HF_FAILURE_MESSAGE_LEN_MAX + 4 ? (size_t)len + 1 : HF_FAILURE_MESSAGE_LEN_MAX + 4;
        char *whole = take_memory(NULL, room);
        if (whole != NULL) {
            (void)vsnprintf(whole, room, format, again);
            raise_text(status, type, with_cause, whole);
            give_memory(NULL, whole, room);
        } else {
            raise_text(status, type, with_cause, message);
        }
    }
    va_end(again);
    return status;
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
