/* The words of a filter. */
#include "where/where_private.h"

#include <stdarg.h>
#include <stdio.h>

hf_status hf_reader_fail(hf_reader *reader, size_t at, const char *format, ...)
{
    char text[HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hf_assert(at <= reader->text.len);
    reader->column = at + 1;
    return hf_fail(reader->op, HF_ERR_INVALID, "the filter is wrong at column %zu: %s", at + 1, text);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The place of the quote that closes the text which begins at `start`; the end of the filter = it is not closed. */
static size_t end_of_quoted(hf_str text, size_t start, char quote)
{
    size_t at = start + 1;
    for (; at < text.len; at++) {
        bool has_next = at + 1 < text.len;
        if (text.data[at] == quote && !(has_next && text.data[at + 1] == quote)) {
            return at;
        }
        at += text.data[at] == quote || (text.data[at] == '\\' && quote != '`') ? 1 : 0;
    }
    return text.len;
}

/* A text or a quoted name. Its bytes are copied without the quotes. */
static hf_status read_quoted(hf_reader *reader, char quote)
{
    size_t start = reader->at;
    hf_assert(start < reader->text.len && reader->text.data[start] == quote);
    size_t end = end_of_quoted(reader->text, start, quote);
    const char *what = quote == '`' ? "name" : "text";
    if (end == reader->text.len) {
        return hf_reader_fail(reader, start, "the %s that begins here has no end; it ends with %c", what, quote);
    }
    if (end - start > HF_WHERE_TEXT_LEN_MAX) {
        return hf_reader_fail(reader, start, "this %s has %zu bytes, %d at most", what, end - start - 1,
                              HF_WHERE_TEXT_LEN_MAX - 1);
    }
    char *out = hf_arena_take(reader->arena, end - start, 1);
    if (out == NULL) {
        return hf_fail(reader->op, HF_ERR_NOMEM, "no memory for a filter");
    }
    size_t len = 0;
    for (size_t at = start + 1; at < end; at++) {
        char c = reader->text.data[at];
        if (c == quote) {
            at++; /* doubled */
        } else if (c == '\\' && quote != '`') {
            c = reader->text.data[++at];
            c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
        }
        out[len++] = c;
    }
    hf_assert(len < end - start);
    reader->word.kind = quote == '`' ? HF_WORD_QUOTED : HF_WORD_TEXT;
    reader->word.text = hf_str_of_len(out, len);
    reader->at = end + 1;
    return HF_OK;
}

static void read_name(hf_reader *reader)
{
    const char *data = reader->text.data;
    while (reader->at < reader->text.len && (is_letter(data[reader->at]) || is_digit(data[reader->at]) ||
                                             data[reader->at] == '-' || data[reader->at] == '.')) {
        reader->at++;
    }
    reader->word.kind = HF_WORD_NAME;
}

/* Letters too, so that "12abc" is one wrong number and not a number and a name. */
static void read_number(hf_reader *reader)
{
    const char *data = reader->text.data;
    for (reader->at++; reader->at < reader->text.len; reader->at++) {
        char c = data[reader->at];
        bool is_sign = (c == '+' || c == '-') && (data[reader->at - 1] == 'e' || data[reader->at - 1] == 'E');
        if (!is_digit(c) && !is_letter(c) && c != '.' && !is_sign) {
            break;
        }
    }
    reader->word.kind = HF_WORD_NUMBER;
}

static const struct {
    const char *text;
    hf_word_kind kind;
} SIGNS[] = {
    /* longer ones first */
    {"!=", HF_WORD_NOT_EQUAL}, {"<>", HF_WORD_NOT_EQUAL}, {"<=", HF_WORD_LESS_EQUAL}, {">=", HF_WORD_GREATER_EQUAL},
    {"=", HF_WORD_EQUAL},      {"<", HF_WORD_LESS},       {">", HF_WORD_GREATER},     {"(", HF_WORD_OPEN},
    {")", HF_WORD_CLOSE},      {",", HF_WORD_COMMA},
};

static bool read_sign(hf_reader *reader)
{
    hf_str rest = hf_str_of_len(reader->text.data + reader->at, reader->text.len - reader->at);
    for (size_t i = 0; i < HF_COUNT_OF(SIGNS); i++) {
        size_t len = strlen(SIGNS[i].text);
        if (rest.len >= len && memcmp(rest.data, SIGNS[i].text, len) == 0) {
            reader->at += len;
            reader->word.kind = SIGNS[i].kind;
            return true;
        }
    }
    return false;
}

hf_status hf_reader_next(hf_reader *reader)
{
    while (reader->at < reader->text.len && is_space(reader->text.data[reader->at])) {
        reader->at++;
    }
    size_t start = reader->at;
    hf_assert(start <= reader->text.len); /* where-F2 */
    reader->word = (hf_word){.kind = HF_WORD_END, .at = start};
    if (start == reader->text.len) {
        return HF_OK;
    }
    char c = reader->text.data[start];
    if (c == '\'' || c == '"' || c == '`') {
        HF_TRY(read_quoted(reader, c));
        reader->word.raw = hf_str_of_len(reader->text.data + start, reader->at - start);
        return HF_OK;
    }
    if (is_letter(c)) {
        read_name(reader);
    } else if (is_digit(c) || c == '-' || c == '+' || c == '.') {
        read_number(reader);
    } else if (!read_sign(reader)) {
        return (unsigned char)c >= ' ' && (unsigned char)c < 0x7f
                   ? hf_reader_fail(reader, start, "nothing begins with %c", c)
                   : hf_reader_fail(reader, start, "nothing begins with the byte 0x%02x", (unsigned char)c);
    }
    hf_assert(reader->at > start); /* where-F2: every word has a byte */
    reader->word.raw = hf_str_of_len(reader->text.data + start, reader->at - start);
    reader->word.text = reader->word.raw;
    return HF_OK;
}

bool hf_reader_is(const hf_reader *reader, const char *word)
{
    size_t len = strlen(word);
    if (reader->word.kind != HF_WORD_NAME || reader->word.text.len != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = reader->word.text.data[i];
        if ((c >= 'a' && c <= 'z' ? (char)(c - 32) : c) != word[i]) {
            return false;
        }
    }
    return true;
}
