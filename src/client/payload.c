/* Payloads as users see them. A payload of the library's own is a box: a header, the bytes, a NUL. A box that was
 * made on a workflow's fiber is linked to its run, because an evicted workflow may return without freeing anything. */
#include "history/payload.h"
#include "client/data.h"
#include "env/symbols.h"
#include "fiber/sched/wait.h"
#include "history/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct box {
    hf_node node;         /* in the run's list; unlinked elsewhere */
    hf_payload_bag *kept; /* of the run; NULL elsewhere */
    size_t len;           /* of the allocation */
    char *encoding;
    char data[];
} box;

/* This layer does not know workflows: the worker sets a function that finds the bag of the running workflow. */
static _Atomic(hf_payload_bag *(*)(void)) find_bag;

void hf_payload_bag_find_with(hf_payload_bag *(*find)(void))
{
    hf_assert(find != NULL);
    atomic_store_explicit(&find_bag, find, memory_order_relaxed);
}

static hf_payload_bag *bag_of_self(void)
{
    hf_payload_bag *(*find)(void) = atomic_load_explicit(&find_bag, memory_order_relaxed);
    return find != NULL ? find() : NULL;
}

/* ---- Boxes ------------------------------------------------------------------------------------------------------- */

static const char *const KNOWN[] = {HF_ENCODING_JSON_TEXT, HF_ENCODING_BYTES_TEXT, HF_ENCODING_NONE_TEXT};

/* The encodings of the library's own payloads point to these words, so that an address is enough. */
_Static_assert(HF_COUNT_OF(KNOWN) == 3, "is_known_word compares each");
static bool is_known_word(const char *word)
{
    return word == KNOWN[0] || word == KNOWN[1] || word == KNOWN[2];
}

static const char *known_encoding(hf_str encoding)
{
    for (size_t i = 0; i < HF_COUNT_OF(KNOWN); i++) {
        if (hf_str_equal(encoding, hf_str_of(KNOWN[i]))) {
            return KNOWN[i];
        }
    }
    return NULL;
}

/* Room for `len` bytes, not filled; NULL: out of memory. */
static box *box_new(hf_payload *ret_payload, size_t len, hf_str encoding, hf_payload_bag *keep)
{
    hf_env *env = hf_env_posix();
    const char *known = known_encoding(encoding);
    size_t word_len = known == NULL ? encoding.len + 1 : 0;
    size_t whole = 0;
    if (__builtin_add_overflow(sizeof(box) + 1 + word_len, len, &whole)) {
        return NULL;
    }
    box *b = env->ops->allocate(env, whole, 16);
    if (b == NULL) {
        return NULL;
    }
    hf_assert(whole > len);
    memset(b, 0, sizeof *b);
    b->len = whole;
    b->data[len] = '\0';
    if (known == NULL) {
        b->encoding = b->data + len + 1;
        memcpy(b->encoding, encoding.data, encoding.len);
        b->encoding[encoding.len] = '\0';
    }
    if (keep != NULL) {
        hf_list_push_back(&keep->boxes, &b->node);
        keep->bytes += whole;
        b->kept = keep;
    }
    *ret_payload = (hf_payload){b->data, len, known != NULL ? known : b->encoding, b};
    return b;
}

static void box_free(box *b)
{
    hf_env *env = hf_env_posix();
    if (b->kept != NULL) {
        hf_list_remove(&b->node);
        hf_assert(b->kept->bytes >= b->len);
        b->kept->bytes -= b->len;
    }
    env->ops->release(env, b, b->len);
}

void hf_payload_bag_free(hf_payload_bag *kept)
{
    while (!hf_list_is_empty(&kept->boxes)) {
        box_free(HF_CONTAINER(hf_list_first(&kept->boxes), box, node));
    }
    hf_assert(kept->bytes == 0);
}

void hf_payload_free(hf_payload *payload)
{
    if (payload != NULL) {
        if (payload->owned != NULL) {
            box_free(payload->owned);
        }
        *payload = hf_payload_none();
    }
}

/* The encoding of a payload: bytes if it has bytes and names none. NULL = no payload at all. */
static const char *encoding_of(hf_payload payload)
{
    return payload.encoding == NULL && payload.data != NULL ? HF_ENCODING_BYTES_TEXT : payload.encoding;
}

static hf_status no_memory(size_t len)
{
    return hf_raise(HF_ERR_NOMEM, "no memory for a payload of %zu bytes", len);
}

hf_status hf_payload_copy(hf_payload from, hf_payload *ret_payload)
{
    if (ret_payload == NULL || (from.data == NULL && from.len > 0)) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_copy needs bytes and a place for the copy");
    }
    if (from.len > HF_PAYLOAD_COPY_LEN_MAX) {
        return hf_raise(HF_ERR_TOO_BIG, "hf_payload_copy: the payload has %zu bytes, at most %u are copied", from.len,
                        HF_PAYLOAD_COPY_LEN_MAX);
    }
    const char *encoding = encoding_of(from);
    if (encoding == NULL) {
        *ret_payload = hf_payload_none();
        return HF_OK;
    }
    box *b = box_new(ret_payload, from.len, hf_str_of(encoding), bag_of_self());
    if (b == NULL) {
        return no_memory(from.len);
    }
    if (from.len > 0) {
        memcpy(b->data, from.data, from.len);
    }
    return HF_OK;
}

hf_status hf_payload_printf(hf_payload *ret_payload, const char *format, ...)
{
    if (ret_payload == NULL || format == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_printf needs a format and a place for the payload");
    }
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        return hf_raise(HF_ERR_INVALID, "hf_payload_printf cannot use this format");
    }
    box *b = box_new(ret_payload, (size_t)len, HF_ENCODING_JSON, bag_of_self());
    if (b == NULL) {
        return no_memory((size_t)len);
    }
    va_start(args, format);
    (void)vsnprintf(b->data, (size_t)len + 1, format, args);
    va_end(args);
    return HF_OK;
}

/* ---- To and from the wire ---------------------------------------------------------------------------------------- */

hf_status hf_text_check(hf_op *op, const char *verb, const char *what, const char *text, size_t min, size_t max)
{
    hf_assert(min <= max);
    size_t len = text != NULL ? strlen(text) : min;
    if (len < min || len > max) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: %s has %zu bytes, not %zu to %zu", verb, what, len, min, max);
    }
    return HF_OK;
}

hf_status hf_payload_check(hf_op *op, const char *what, hf_payload payload)
{
    if (payload.data == NULL && payload.len > 0) {
        return hf_fail(op, HF_ERR_MISUSE, "%s has a length of %zu bytes, but its data is NULL", what, payload.len);
    }
    const char *encoding = encoding_of(payload);
    if (encoding == NULL) {
        return HF_OK;
    }
    size_t metadata = HF_ELEMENT_LEN_MIN + strlen("encoding") + strlen(encoding);
    size_t extra = metadata > HF_METADATA_FREE_LEN ? metadata - HF_METADATA_FREE_LEN : 0;
    if (extra > HF_PAYLOAD_LEN_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "%s has an encoding of %zu bytes", what, strlen(encoding));
    }
    if (payload.len > HF_PAYLOAD_LEN_MAX - extra) {
        return hf_fail(op, HF_ERR_TOO_BIG, "%s has %zu bytes, at most %u are taken", what, payload.len,
                       HF_PAYLOAD_LEN_MAX);
    }
    return HF_OK;
}

static bool is_within(const void *at, size_t len, const void *room, size_t room_len)
{
    return room != NULL && (uintptr_t)at >= (uintptr_t)room && len <= room_len &&
           (uintptr_t)at - (uintptr_t)room <= room_len - len;
}

static bool is_static(const void *at, size_t len)
{
    return hf_symbol_is_static(at) && (len <= 1 || hf_symbol_is_static((const char *)at + len - 1));
}

/* Whether bytes of a result outlive the function that returned it. */
static bool outlives(const box *owned, const void *at, size_t len, hf_payload in)
{
    return (owned != NULL && is_within(at, len, owned->data, owned->len - offsetof(box, data))) ||
           is_within(at, len, in.data, in.len) || is_static(at, len);
}

hf_status hf_payload_check_result(hf_op *op, const char *what, hf_payload result, hf_payload in)
{
    const char *word = result.encoding;
    bool is_there = word == NULL || is_known_word(word) || word == in.encoding || outlives(result.owned, word, 1, in);
    if (is_there) { /* only a result with a valid length is looked for */
        HF_TRY(hf_payload_check(op, what, result));
        is_there = result.len == 0 || outlives(result.owned, result.data, result.len, in);
    }
    return is_there
               ? HF_OK
               : hf_fail(op, HF_ERR_MISUSE,
                         "%s is in memory that is no longer valid (the stack of the function), or is not the "
                         "library's: return a copy, hf_payload_printf(ret_out, ...) or hf_payload_copy(..., ret_out)",
                         what);
}

hf_pb_payloads *hf_payload_encode(hf_arena *arena, hf_payload payload)
{
    hf_assert(arena != NULL);
    const char *word = encoding_of(payload);
    if (word == NULL) {
        return NULL;
    }
    hf_str encoding = hf_arena_copy(arena, hf_str_of(word));
    hf_str data = hf_arena_copy(arena, hf_str_of_len(payload.data, payload.len));
    return hf_payloads_of(arena, hf_payload_make(arena, encoding, data));
}

hf_status hf_payload_decode(const hf_pb_payloads *payloads, hf_payload_bag *keep, hf_payload *ret_payload)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    if (ret_payload == NULL) {
        return HF_OK;
    }
    if (first == NULL) {
        *ret_payload = hf_payload_none();
        return HF_OK;
    }
    box *b = box_new(ret_payload, first->data.len, hf_payload_encoding(first), keep);
    if (b == NULL) {
        return HF_ERR_NOMEM;
    }
    if (first->data.len > 0) {
        memcpy(b->data, first->data.data, first->data.len);
    }
    return HF_OK;
}

hf_payload hf_payload_view(hf_arena *arena, const hf_pb_payloads *payloads)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    if (first == NULL) {
        return hf_payload_none();
    }
    hf_str encoding = hf_payload_encoding(first);
    const char *known = known_encoding(encoding);
    hf_str data = hf_arena_copy(arena, first->data); /* with the NUL that users may count on */
    return (hf_payload){data.data, data.len, known != NULL ? known : hf_arena_copy(arena, encoding).data, NULL};
}
