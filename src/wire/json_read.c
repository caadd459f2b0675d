/* yajl calls a function for each token; what is needed of the text is found on the way. A place in the text follows from
 * where the last token ended: only spaces, commas and colons are between two tokens.
 *
 * yajl does not check its memory. So it gets its memory from an arena, and a request that the arena cannot fulfil leaves
 * yajl by longjmp: nothing of it is outside the arena. Three rules of RFC 8259 and RFC 3629 that yajl does not know are
 * checked before: UTF-8 without detours, surrogates in pairs, and no other spaces than four. */
#include "wire/json_read.h"

#include "wire/json_memory.h"

#include "base/glyph.h"

#include <yajl/yajl_parse.h>

enum { ROOM_LEN = 6144 }; /* bytes on the stack: enough for yajl unless strings with escapes are long */

/* An open array or object. */
typedef struct level {
    bool is_array;
    bool is_on_path;
    bool is_key_next; /* object: the key that was read last is that of the path */
    size_t index;     /* array: of the next element */
} level;

typedef struct reader {
    hf_str text;
    hf_json_memory memory;
    const hf_json_step *steps;
    size_t step_count;
    hf_json_found *value;
    yajl_handle yajl;
    size_t last_end;   /* where the last token ended */
    bool is_finishing; /* the text is over: the last token ends with it */
    bool is_too_deep;
    size_t depth;        /* open levels */
    size_t target_depth; /* depth outside of the value that is looked for, while that is open; SIZE_MAX = it is not */
    level levels[HF_JSON_READ_DEPTH_MAX + 1];
} reader;

/* ---- Tokens -------------------------------------------------------------------------------------------------------- */

/* Where the token behind the last one begins, or the text ends. */
static size_t next_start(const reader *r)
{
    size_t start = r->last_end;
    while (start < r->text.len && memchr(" \t\n\r,:", r->text.data[start], 6) != NULL) {
        start++;
    }
    return start;
}

/* Where the token that was just read begins; moves on behind it. */
static size_t pass_token(reader *r)
{
    size_t start = next_start(r);
    r->last_end = r->is_finishing ? r->text.len : yajl_get_bytes_consumed(r->yajl);
    hf_assert(start < r->last_end && r->last_end <= r->text.len);
    return start;
}

/* A value begins. Returns whether it is the one that is looked for. */
static bool begin_value(reader *r, hf_json_kind kind, bool *ret_is_on_path)
{
    size_t start = pass_token(r);
    bool is_on_path = true;
    if (r->depth > 0) {
        level *in = &r->levels[r->depth];
        const hf_json_step *step = r->depth <= r->step_count ? &r->steps[r->depth - 1] : NULL;
        is_on_path = in->is_on_path && step != NULL &&
                     (in->is_array ? step->is_index && step->index == in->index : in->is_key_next);
        in->index++;
        r->value->count += r->target_depth + 1 == r->depth;
    }
    *ret_is_on_path = is_on_path;
    if (!is_on_path) {
        return false;
    }
    bool is_it = r->depth == r->step_count;
    *r->value =
        (hf_json_found){.kind = is_it ? kind : HF_KIND_MISSING, .steps = r->depth, .start = start, .end = r->last_end};
    return is_it;
}

static int on_null(void *ctx)
{
    bool is_on_path = false;
    (void)begin_value(ctx, HF_KIND_NULL, &is_on_path);
    return 1;
}

static int on_bool(void *ctx, int flag)
{
    reader *r = ctx;
    bool is_on_path = false;
    if (begin_value(r, HF_KIND_BOOL, &is_on_path)) {
        r->value->flag = flag != 0;
    }
    return 1;
}

static int on_number(void *ctx, const char *digits, size_t len)
{
    bool is_on_path = false;
    (void)digits; /* they are in the text */
    (void)len;
    (void)begin_value(ctx, HF_KIND_NUMBER, &is_on_path);
    return 1;
}

static int on_text(void *ctx, const unsigned char *text, size_t len)
{
    reader *r = ctx;
    bool is_on_path = false;
    if (begin_value(r, HF_KIND_TEXT, &is_on_path)) {
        r->value->text = hf_json_memory_copy(&r->memory, text, len);
    }
    return 1;
}

static int open_level(reader *r, bool is_array)
{
    bool is_on_path = false;
    bool is_it = begin_value(r, is_array ? HF_KIND_ARRAY : HF_KIND_OBJECT, &is_on_path);
    if (r->depth == HF_JSON_READ_DEPTH_MAX) {
        r->is_too_deep = true;
        return 0;
    }
    if (is_it) {
        r->target_depth = r->depth;
    }
    r->levels[++r->depth] = (level){.is_array = is_array, .is_on_path = is_on_path && !is_it};
    return 1;
}

static int close_level(reader *r)
{
    (void)pass_token(r);
    hf_assert(r->depth > 0);
    r->depth--;
    if (r->depth == r->target_depth) {
        r->value->end = r->last_end;
        r->target_depth = SIZE_MAX;
    }
    return 1;
}

static int on_object(void *ctx)
{
    return open_level(ctx, false);
}

static int on_array(void *ctx)
{
    return open_level(ctx, true);
}

static int on_end(void *ctx)
{
    return close_level(ctx);
}

static int on_key(void *ctx, const unsigned char *key, size_t len)
{
    reader *r = ctx;
    level *in = &r->levels[r->depth];
    (void)pass_token(r);
    const hf_json_step *step = in->is_on_path && r->depth <= r->step_count ? &r->steps[r->depth - 1] : NULL;
    in->is_key_next = step != NULL && !step->is_index && hf_str_equal(step->key, hf_str_of_len((const char *)key, len));
    return 1;
}

static const yajl_callbacks TOKENS = {.yajl_null = on_null,
                                      .yajl_boolean = on_bool,
                                      .yajl_number = on_number,
                                      .yajl_string = on_text,
                                      .yajl_start_map = on_object,
                                      .yajl_map_key = on_key,
                                      .yajl_end_map = on_end,
                                      .yajl_start_array = on_array,
                                      .yajl_end_array = on_end};

/* ---- Before yajl --------------------------------------------------------------------------------------------------- */

/* Four hexadecimal digits; -1 when they are not there. */
static int32_t hex4(hf_str text, size_t at)
{
    int32_t code = 0;
    if (text.len < 4 || at > text.len - 4) {
        return -1;
    }
    for (size_t i = at; i < at + 4; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    return code;
}

/* The length of an escape; 0 = a surrogate without its other half. yajl deals with everything that is not an escape. */
static size_t escape_len(hf_str text, size_t at)
{
    if (at + 1 >= text.len || text.data[at + 1] != 'u') {
        return 2;
    }
    int32_t code = hex4(text, at + 2);
    if (code < 0xD800 || code > 0xDFFF) {
        return 6;
    }
    bool is_pair = code < 0xDC00 && at + 7 < text.len && text.data[at + 6] == '\\' && text.data[at + 7] == 'u';
    int32_t low = is_pair ? hex4(text, at + 8) : -1;
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

/* Checks the characters. Backslashes that are not in a string are refused by yajl. */
static hf_status check_characters(hf_op *op, hf_str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t len = 1;
        if (text.data[at] == '\\') {
            len = escape_len(text, at);
            if (len == 0) {
                return hf_fail(op, HF_ERR_INVALID, "no JSON: half of a surrogate pair at byte %zu", at);
            }
        } else if ((unsigned char)text.data[at] < 0x20 && memchr("\t\n\r", text.data[at], 3) == NULL) {
            return hf_fail(op, HF_ERR_INVALID, "no JSON: a control character at byte %zu", at);
        } else if ((unsigned char)text.data[at] >= 0x80) {
            hf_glyph glyph = hf_glyph_of(hf_str_of_len(text.data + at, text.len - at));
            if (!glyph.is_utf8) {
                return hf_fail(op, HF_ERR_INVALID, "no JSON: no UTF-8 at byte %zu", at);
            }
            len = glyph.len;
        }
        at += len;
    }
    return HF_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

/* yajl's own words, which are in the arena, without the line break at their end. */
static hf_status refuse(hf_op *op, reader *r)
{
    if (r->is_too_deep) {
        return hf_fail(op, HF_ERR_INVALID, "JSON that is nested deeper than %d at byte %zu", HF_JSON_READ_DEPTH_MAX,
                       r->value->start < r->last_end ? r->last_end - 1 : 0);
    }
    size_t used = yajl_get_bytes_consumed(r->yajl);
    size_t at = r->is_finishing || used == 0 ? next_start(r) : used - 1;
    const char *why = (const char *)yajl_get_error(r->yajl, 0, NULL, 0);
    return hf_fail(op, HF_ERR_INVALID, "no JSON: %.*s at byte %zu", (int)strcspn(why, ".\n"), why, at);
}

static hf_status read_text(hf_op *op, reader *r)
{
    yajl_alloc_funcs memory = hf_json_memory_funcs(&r->memory);
    if (setjmp(r->memory.none) != 0) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to read a JSON text of %zu bytes", r->text.len);
    }
    r->yajl = yajl_alloc(&TOKENS, &memory, r);
    yajl_status status = yajl_parse(r->yajl, (const unsigned char *)r->text.data, r->text.len);
    if (status == yajl_status_ok) {
        r->is_finishing = true;
        status = yajl_complete_parse(r->yajl);
    }
    return status == yajl_status_ok ? HF_OK : refuse(op, r);
}

hf_status hf_json_find(hf_op *op, hf_str text, const hf_json_step *steps, size_t count, hf_arena *arena,
                       hf_json_found *ret_value)
{
    HF_TRY(check_characters(op, text));
    hf_json_found value = {.kind = HF_KIND_MISSING};
    reader r; /* not cleared: most levels are never used */
    r.text = text;
    r.memory.arena = arena;
    r.steps = steps;
    r.step_count = count;
    r.value = &value;
    r.yajl = NULL;
    r.last_end = 0;
    r.is_finishing = false;
    r.is_too_deep = false;
    r.depth = 0;
    r.target_depth = SIZE_MAX;
    HF_TRY(read_text(op, &r));
    *ret_value = value;
    return HF_OK;
}

hf_status hf_json_check(hf_op *op, hf_str text, hf_allocator memory)
{
    char room[ROOM_LEN];
    hf_arena arena;
    hf_json_found value;
    hf_arena_init_in(&arena, memory, room, sizeof room);
    hf_status status = hf_json_find(op, text, NULL, 0, &arena, &value);
    hf_arena_deinit(&arena);
    return status;
}
