/* Payloads as users see them. A payload of the library's own is a box: a header, the bytes, a NUL. A box that was
 * made on a workflow's fiber is linked to its run, because an evicted workflow may return without freeing anything.
 *
 * A list of several payloads, or a payload with more metadata than an encoding, is one hf_payload all the same: the
 * first of the list. Its box also keeps the list as it came, and as long as nobody changes the hf_payload the whole list
 * is passed on. */
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
    size_t data_len;      /* of the payload */
    size_t count;         /* payloads of the list */
    size_t cost;          /* bytes that the list counts */
    const char *word;     /* encoding that was given out */
    hf_str wire;          /* the list as it came, behind the data; empty = data and encoding are all of it */
    bool is_view;         /* in an arena: not freed with its payload */
    char *encoding;
    char data[];
} box;

/* What a box keeps of a list. */
typedef struct hf_whole {
    hf_str wire;  /* empty = the payload is all of it */
    size_t count; /* payloads */
    size_t cost;  /* bytes that it counts: hf_payloads_len */
} hf_whole;
static const hf_whole JUST_ONE = {{NULL, 0}, 1, 0};

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

/* The bytes of a box; 0 = more than there are. */
static size_t box_len(size_t len, hf_str encoding, hf_str wire)
{
    size_t word_len = known_encoding(encoding) == NULL ? encoding.len + 1 : 0;
    size_t whole = 0;
    return __builtin_add_overflow(sizeof(box) + 1 + word_len, len, &whole) ||
                   __builtin_add_overflow(whole, wire.len, &whole)
               ? 0
               : whole;
}

/* Makes a box of `whole` bytes of room, without its data. */
static void box_init(box *b, size_t whole, hf_payload *ret_payload, size_t len, hf_str encoding, hf_whole list)
{
    const char *known = known_encoding(encoding);
    hf_assert(whole > len);
    memset(b, 0, sizeof *b);
    b->len = whole;
    b->data_len = len;
    b->count = list.count;
    b->cost = list.cost;
    b->data[len] = '\0';
    char *behind = b->data + len + 1;
    if (known == NULL) {
        b->encoding = behind;
        if (encoding.len > 0) {
            memcpy(b->encoding, encoding.data, encoding.len);
        }
        b->encoding[encoding.len] = '\0';
        behind += encoding.len + 1;
    }
    if (list.wire.len > 0) {
        memcpy(behind, list.wire.data, list.wire.len);
        b->wire = hf_str_of_len(behind, list.wire.len);
    }
    b->word = known != NULL ? known : b->encoding;
    *ret_payload = (hf_payload){b->data, len, b->word, b};
}

/* Room for `len` bytes, not filled; NULL: out of memory. */
static box *box_new(hf_payload *ret_payload, size_t len, hf_str encoding, hf_whole list, hf_payload_bag *keep)
{
    hf_env *env = hf_env_posix();
    size_t whole = box_len(len, encoding, list.wire);
    box *b = whole > 0 ? env->ops->allocate(env, whole, 16) : NULL;
    if (b == NULL) {
        return NULL;
    }
    box_init(b, whole, ret_payload, len, encoding, list);
    if (keep != NULL) {
        hf_list_push_back(&keep->boxes, &b->node);
        keep->bytes += whole;
        b->kept = keep;
    }
    return b;
}

static void box_free(box *b)
{
    hf_env *env = hf_env_posix();
    if (b->is_view) {
        return;
    }
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

/* The list that a payload came in, if it is still what came; empty otherwise. */
static hf_whole whole_of(hf_payload payload)
{
    const box *b = payload.owned;
    if (b == NULL || b->wire.len == 0 || payload.data != b->data || payload.len != b->data_len ||
        payload.encoding != b->word) {
        return JUST_ONE;
    }
    return (hf_whole){b->wire, b->count, b->cost};
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
    box *b = box_new(ret_payload, from.len, hf_str_of(encoding), whole_of(from), bag_of_self());
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
    box *b = box_new(ret_payload, (size_t)len, HF_ENCODING_JSON, JUST_ONE, bag_of_self());
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
    size_t cost = whole_of(payload).cost;
    if (cost > HF_PAYLOAD_LEN_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "%s has %zu bytes in %zu payloads, at most %u are taken", what, cost,
                       hf_payload_count(payload), HF_PAYLOAD_LEN_MAX);
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
    hf_str whole = whole_of(payload).wire;
    if (whole.len > 0) {
        hf_pb_payloads *list = HF_ARENA_NEW(arena, hf_pb_payloads);
        hf_str wire = hf_arena_copy(arena, whole);
        bool is_there =
            list != NULL && wire.data != NULL && hf_pb_decode(NULL, &hf_pb_payloads_type, wire, arena, list) == HF_OK;
        return is_there ? list : NULL;
    }
    hf_str encoding = hf_arena_copy(arena, hf_str_of(word));
    hf_str data = hf_arena_copy(arena, hf_str_of_len(payload.data, payload.len));
    return hf_payloads_of(arena, hf_payload_make(arena, encoding, data));
}

/* Whether data and encoding of the first payload are all that the list has. */
static bool is_plain(const hf_pb_payloads *payloads)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    hf_assert(first != NULL);
    return payloads->payloads.count == 1 && payloads->unknown.len == 0 && first->unknown.len == 0 &&
           first->metadata.count == 1 && hf_str_equal(first->metadata.items[0].key, HF_STR("encoding")) &&
           first->metadata.items[0].unknown.len == 0 && first->external_payloads.count == 0 &&
           first->metadata.items[0].value.len > 0 &&
           memchr(first->metadata.items[0].value.data, 0, first->metadata.items[0].value.len) == NULL;
}

/* What the box of a list keeps beside its first payload. Fails: HF_ERR_NOMEM. */
static hf_status take_wire(const hf_pb_payloads *payloads, hf_buf *buf)
{
    hf_buf_init(buf, hf_env_memory(hf_env_posix()), SIZE_MAX);
    if (is_plain(payloads)) {
        return HF_OK;
    }
    hf_pb_encode(&hf_pb_payloads_type, payloads, buf);
    return hf_buf_status(buf);
}

static hf_whole whole_in(const hf_buf *buf, const hf_pb_payloads *payloads)
{
    return buf->len > 0 ? (hf_whole){hf_str_of_len(hf_buf_text(buf), buf->len), payloads->payloads.count,
                                     hf_payloads_len(payloads)}
                        : JUST_ONE;
}

static void put_data(box *b, hf_str data)
{
    if (data.len > 0) {
        memcpy(b->data, data.data, data.len);
    }
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
    hf_buf wire;
    hf_status status = take_wire(payloads, &wire);
    box *b = NULL;
    if (status == HF_OK) {
        b = box_new(ret_payload, first->data.len, hf_payload_encoding(first), whole_in(&wire, payloads), keep);
    }
    hf_buf_deinit(&wire);
    if (b == NULL) {
        return HF_ERR_NOMEM;
    }
    put_data(b, first->data);
    return HF_OK;
}

hf_payload hf_payload_view(hf_arena *arena, const hf_pb_payloads *payloads)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    if (first == NULL) {
        return hf_payload_none();
    }
    hf_str encoding = hf_payload_encoding(first);
    if (is_plain(payloads)) {
        const char *known = known_encoding(encoding);
        hf_str data = hf_arena_copy(arena, first->data); /* with the NUL that users may count on */
        return (hf_payload){data.data, data.len, known != NULL ? known : hf_arena_copy(arena, encoding).data, NULL};
    }
    hf_buf wire;
    hf_payload view = hf_payload_none();
    if (take_wire(payloads, &wire) == HF_OK) {
        size_t whole = box_len(first->data.len, encoding, whole_in(&wire, payloads).wire);
        box *b = whole > 0 ? hf_arena_take(arena, whole, 16) : NULL;
        if (b != NULL) {
            box_init(b, whole, &view, first->data.len, encoding, whole_in(&wire, payloads));
            put_data(b, first->data);
            b->is_view = true;
        }
    } else {
        arena->status = HF_ERR_NOMEM;
    }
    hf_buf_deinit(&wire);
    return view;
}

/* ---- Lists and metadata ------------------------------------------------------------------------------------------ */

/* Decodes the list of a payload into the arena. False: out of memory. */
static bool open_list(hf_arena *arena, hf_payload in, const hf_pb_payloads **ret_list)
{
    hf_arena_init(arena, hf_env_memory(hf_env_posix()));
    *ret_list = hf_payload_encode(arena, in);
    return arena->status == HF_OK && (*ret_list != NULL || encoding_of(in) == NULL);
}

size_t hf_payload_count(hf_payload in)
{
    hf_whole list = whole_of(in);
    return list.wire.len > 0 ? list.count : encoding_of(in) != NULL;
}

/* A payload of the list as a list of its own. */
static hf_status give_one(hf_pb_payload *item, hf_payload *ret_payload)
{
    hf_pb_payloads one = {.payloads = {item, 1}};
    return hf_payload_decode(&one, bag_of_self(), ret_payload);
}

hf_status hf_payload_nth(hf_payload in, size_t idx, hf_payload *ret_payload)
{
    if (ret_payload == NULL || (in.data == NULL && in.len > 0)) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_nth needs bytes and a place for the payload");
    }
    if (idx >= hf_payload_count(in)) {
        return hf_raise(HF_ERR_NOT_FOUND, "hf_payload_nth: there are %zu payloads, number %zu is none of them",
                        hf_payload_count(in), idx);
    }
    hf_arena arena;
    const hf_pb_payloads *list = NULL;
    hf_status status = HF_ERR_NOMEM;
    if (open_list(&arena, in, &list)) {
        hf_assert(idx < list->payloads.count);
        status = give_one(&list->payloads.items[idx], ret_payload);
    }
    hf_arena_deinit(&arena);
    return status == HF_OK ? HF_OK : no_memory(in.len);
}

hf_status hf_payload_meta(hf_payload in, const char *key, hf_payload *ret_value)
{
    if (key == NULL || ret_value == NULL || (in.data == NULL && in.len > 0)) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_meta needs bytes, a key and a place for the value");
    }
    hf_arena arena;
    const hf_pb_payloads *list = NULL;
    hf_status status = HF_ERR_NOMEM;
    if (open_list(&arena, in, &list)) {
        const hf_pb_payload *first = hf_payloads_first(list);
        hf_str value = first != NULL ? hf_payload_metadata(first, hf_str_of(key)) : (hf_str){NULL, 0};
        status = value.data != NULL ? hf_payload_copy(hf_payload_of_bytes(value.data, value.len), ret_value)
                                    : hf_raise(HF_ERR_NOT_FOUND, "the payload has no metadata '%s'", key);
    } else {
        status = no_memory(in.len);
    }
    hf_arena_deinit(&arena);
    return status;
}

/* Adds the payloads of `item` to the list. False: out of memory. */
static bool append(hf_arena *arena, hf_payload item, hf_pb_payload *items, size_t *count)
{
    const hf_pb_payloads *list = hf_payload_encode(arena, item);
    for (size_t i = 0; list != NULL && i < list->payloads.count; i++) {
        items[(*count)++] = list->payloads.items[i];
    }
    return arena->status == HF_OK && (list != NULL || encoding_of(item) == NULL);
}

hf_status hf_payload_list(const hf_payload *items, size_t count, hf_payload *ret_payload)
{
    if (ret_payload == NULL || (items == NULL && count > 0) || count > HF_PAYLOAD_LIST_MAX) {
        return hf_raise(HF_ERR_MISUSE, "hf_payload_list needs payloads, at most %d, and a place for the list",
                        HF_PAYLOAD_LIST_MAX);
    }
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].data == NULL && items[i].len > 0) {
            return hf_raise(HF_ERR_MISUSE, "hf_payload_list: payload %zu has a length, but its data is NULL", i);
        }
        total += hf_payload_count(items[i]);
    }
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_payload *room = hf_arena_zero(&arena, (total + 1) * sizeof *room, _Alignof(hf_pb_payload));
    size_t used = 0;
    bool is_there = room != NULL;
    for (size_t i = 0; i < count && is_there; i++) {
        is_there = append(&arena, items[i], room, &used);
    }
    hf_pb_payloads list = {.payloads = {room, used}};
    hf_assert(!is_there || used == total);
    is_there = is_there && hf_payload_decode(&list, bag_of_self(), ret_payload) == HF_OK;
    hf_arena_deinit(&arena);
    return is_there ? HF_OK : hf_raise(HF_ERR_NOMEM, "no memory for a list of %zu payloads", count);
}
