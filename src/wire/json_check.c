/* A checker without recursion: a flag for each open bracket says whether it belongs to an object. The text comes from outside,
 * so its depth must not decide how much stack is used. */
#include "wire/json_check.h"

#include "base/glyph.h"

typedef struct checker {
    const char *at;
    const char *end;
    bool is_object[HF_JSON_DEPTH_MAX]; /* for each open bracket, outermost first: object or array */
    size_t depth;                      /* number of open brackets */
} checker;

static bool accept(checker *c, char what)
{
    bool is_there = c->at < c->end && *c->at == what;
    c->at += is_there;
    return is_there;
}

static void skip_space(checker *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) {
        c->at++;
    }
}

static bool skip_digits(checker *c)
{
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        c->at++;
    }
    return c->at > first;
}

static bool skip_number(checker *c)
{
    (void)accept(c, '-');
    if (!accept(c, '0') && !skip_digits(c)) {
        return false;
    }
    if (accept(c, '.') && !skip_digits(c)) {
        return false;
    }
    if (accept(c, 'e') || accept(c, 'E')) {
        if (!accept(c, '+')) {
            (void)accept(c, '-');
        }
        return skip_digits(c);
    }
    return true;
}

/* Four hexadecimal digits; -1 when they are not there. */
static int32_t take_hex4(checker *c)
{
    int32_t code = 0;
    for (int i = 0; i < 4; i++) {
        if (c->at >= c->end) {
            return -1;
        }
        char digit = *c->at++;
        char letter = (char)(digit | 0x20);
        if (digit >= '0' && digit <= '9') {
            code = code << 4 | (digit - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            code = code << 4 | (letter - 'a' + 10);
        } else {
            return -1;
        }
    }
    hf_assert(code >= 0 && code <= 0xffff);
    return code;
}

/* Skips the escape after a backslash. A surrogate must be the first of a pair. */
static bool skip_escape(checker *c)
{
    if (c->at >= c->end) {
        return false;
    }
    char what = *c->at++;
    if (what != 'u') {
        return what != '\0' && strchr("\"\\/bfnrt", what) != NULL;
    }
    int32_t code = take_hex4(c);
    if (code < 0xd800 || code > 0xdfff) {
        return code >= 0;
    }
    if (code > 0xdbff || !accept(c, '\\') || !accept(c, 'u')) {
        return false;
    }
    code = take_hex4(c);
    return code >= 0xdc00 && code <= 0xdfff;
}

static bool skip_string(checker *c)
{
    if (!accept(c, '"')) {
        return false;
    }
    while (c->at < c->end) {
        if (accept(c, '"')) {
            return true;
        }
        if (accept(c, '\\')) {
            if (!skip_escape(c)) {
                return false;
            }
            continue;
        }
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(c->at, (size_t)(c->end - c->at)));
        if (!glyph.is_utf8 || glyph.code < 0x20) {
            return false;
        }
        c->at += glyph.len;
    }
    return false;
}

static bool skip_word(checker *c, hf_str word)
{
    if ((size_t)(c->end - c->at) < word.len || memcmp(c->at, word.data, word.len) != 0) {
        return false;
    }
    c->at += word.len;
    return true;
}

static bool skip_key(checker *c)
{
    skip_space(c);
    if (!skip_string(c)) {
        return false;
    }
    skip_space(c);
    return accept(c, ':');
}

/* A value that is not an array or object. */
static bool skip_scalar(checker *c)
{
    if (c->at < c->end && *c->at == '"') {
        return skip_string(c);
    }
    return skip_word(c, HF_STR("true")) || skip_word(c, HF_STR("false")) || skip_word(c, HF_STR("null")) ||
           skip_number(c);
}

/* Opens brackets up to the first value that is not an array or object, or up to a bracket that closes at once. */
static bool open_value(checker *c, bool *ret_is_over)
{
    *ret_is_over = false;
    skip_space(c);
    bool is_object = accept(c, '{');
    if (!is_object && !accept(c, '[')) {
        *ret_is_over = true;
        return skip_scalar(c);
    }
    if (c->depth == HF_JSON_DEPTH_MAX) {
        return false;
    }
    skip_space(c);
    if (accept(c, is_object ? '}' : ']')) {
        *ret_is_over = true;
        return true;
    }
    hf_assert(c->depth < HF_JSON_DEPTH_MAX); /* wire-W3 */
    c->is_object[c->depth++] = is_object;
    return !is_object || skip_key(c);
}

/* After a value: closes brackets up to a comma, or up to the outermost. */
static bool close_value(checker *c)
{
    while (c->depth > 0) {
        bool is_object = c->is_object[c->depth - 1];
        skip_space(c);
        if (accept(c, ',')) {
            return !is_object || skip_key(c);
        }
        if (!accept(c, is_object ? '}' : ']')) {
            return false;
        }
        c->depth--;
    }
    return true;
}

bool hf_json_is_valid(hf_str text)
{
    if (text.len == 0) {
        return false;
    }
    checker c = {.at = text.data, .end = text.data + text.len};
    do {
        bool is_over = false;
        while (!is_over) {
            if (!open_value(&c, &is_over)) {
                return false;
            }
        }
        hf_assert(c.depth <= HF_JSON_DEPTH_MAX); /* wire-W3 */
        if (!close_value(&c)) {
            return false;
        }
    } while (c.depth > 0);
    skip_space(&c);
    hf_assert(c.at <= c.end); /* wire-W2 */
    return c.at == c.end;
}
