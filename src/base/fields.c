#include "base/fields.h"

#include "base/glyph.h"

#include <stdio.h>

typedef struct writing {
    char *out;
    size_t len;
    size_t room; /* `len` does not exceed it; a byte for the NUL lies behind */
} writing;

static void put(writing *w, const char *bytes, size_t len)
{
    if (len <= w->room - w->len) {
        memcpy(w->out + w->len, bytes, len);
        w->len += len;
    } else {
        w->room = w->len; /* nothing more is written */
    }
}

static bool is_bare(hf_str value)
{
    for (size_t at = 0; at < value.len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(value.data + at, value.len - at));
        if (!glyph.is_printable || (glyph.len == 1 && strchr(" \"\\=", value.data[at]) != NULL)) {
            return false;
        }
        at += glyph.len;
    }
    return value.len > 0;
}

static void put_glyph(writing *w, hf_glyph glyph, const char *at)
{
    char text[16];
    if (glyph.is_printable && *at != '"' && *at != '\\') {
        put(w, at, glyph.len);
        return;
    }
    if (glyph.code == '\n' || glyph.code == '\t' || glyph.is_printable) {
        text[0] = '\\';
        text[1] = (char)(glyph.code == '\n' ? 'n' : glyph.code == '\t' ? 't' : *at);
        put(w, text, 2);
        return;
    }
    int len = snprintf(text, sizeof text, glyph.code <= 0xff ? "\\x%02x" : "\\u%04x", glyph.code);
    put(w, text, (size_t)len);
}

/* Writes a value without its quotes. */
static void put_escaped(writing *w, hf_str value)
{
    for (size_t at = 0; at < value.len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(value.data + at, value.len - at));
        put_glyph(w, glyph, value.data + at);
        at += glyph.len;
    }
}

/* Writes a value in quotes. A value that is cut still ends with its quote. */
static void put_quoted(writing *w, hf_str value)
{
    size_t room = w->room;
    if (room - w->len < 2) {
        w->room = w->len;
        return;
    }
    put(w, "\"", 1);
    w->room = room - 1;
    put_escaped(w, value);
    bool is_cut = w->room != room - 1;
    w->out[w->len++] = '"';
    w->room = is_cut ? w->len : room;
}

/* ---- The format -------------------------------------------------------------------------------------------------------- */

/* A va_list that functions can share. */
typedef struct arguments {
    va_list list;
} arguments;

/* Takes the argument of a %s, %.60s or %.*s. `format` points behind the percent sign; returns where the format
 * continues. */
static const char *take_text(const char *format, arguments *args, hf_str *ret_text)
{
    int most = -1;
    if (format[0] == '.' && format[1] == '*') {
        most = va_arg(args->list, int);
        format += 2;
    } else if (format[0] == '.') {
        most = 0;
        for (format++; *format >= '0' && *format <= '9'; format++) {
            most = most * 10 + (*format - '0');
        }
    }
    hf_assert(*format == 's');
    const char *text = va_arg(args->list, const char *);
    text = text != NULL ? text : "";
    *ret_text = hf_str_of_len(text, most < 0 ? strlen(text) : strnlen(text, (size_t)most));
    return format + 1;
}

static const char *put_number(writing *w, const char *format, arguments *args)
{
    int longs = 0;
    bool is_size = *format == 'z';
    format += is_size ? 1 : 0;
    for (; *format == 'l'; format++) {
        longs++;
    }
    char text[24];
    int len = 0;
    if (*format == 'd') {
        long long number = longs == 2   ? va_arg(args->list, long long)
                           : longs == 1 ? va_arg(args->list, long)
                                        : va_arg(args->list, int);
        len = snprintf(text, sizeof text, "%lld", number);
    } else {
        hf_assert(*format == 'u');
        unsigned long long number = is_size      ? va_arg(args->list, size_t)
                                    : longs == 2 ? va_arg(args->list, unsigned long long)
                                    : longs == 1 ? va_arg(args->list, unsigned long)
                                                 : va_arg(args->list, unsigned);
        len = snprintf(text, sizeof text, "%llu", number);
    }
    put(w, text, (size_t)len);
    return format + 1;
}

static const char *put_text(writing *w, const char *format, bool is_value, arguments *args)
{
    hf_str text = {0};
    format = take_text(format, args, &text);
    if (is_value && !is_bare(text)) {
        put_quoted(w, text);
    } else {
        put(w, text.data, text.len);
    }
    return format;
}

static bool is_text(const char *format)
{
    return *format == 's' || *format == '.';
}

void hf_fields_vformat(char *out, size_t out_len, const char *format, va_list args)
{
    hf_assert(out_len > 0);
    writing w = {.out = out, .room = out_len - 1};
    arguments own;
    va_copy(own.list, args);
    char last = '\0';
    while (*format != '\0') {
        if (format[0] == '"' && format[1] == '%' && is_text(format + 2)) {
            hf_str text = {0};
            format = take_text(format + 2, &own, &text);
            hf_assert(*format == '"');
            put_quoted(&w, text);
            format++;
        } else if (format[0] == '%' && is_text(format + 1)) {
            format = put_text(&w, format + 1, last == '=', &own);
        } else if (format[0] == '%') {
            format = put_number(&w, format + 1, &own);
        } else {
            put(&w, format, 1);
            format++;
        }
        last = format[-1];
    }
    va_end(own.list);
    w.out[w.len] = '\0';
}

void hf_fields_format(char *out, size_t out_len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_fields_vformat(out, out_len, format, args);
    va_end(args);
}
