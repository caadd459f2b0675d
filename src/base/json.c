#include "base/json.h"

#include "base/glyph.h"

void hf_json_init(hf_json *json, hf_buf *buf)
{
    *json = (hf_json){.buf = buf};
}

/* Before every key, value or opening bracket. */
static void separate(hf_json *json)
{
    if (json->comma) {
        hf_buf_putc(json->buf, ',');
    }
    json->comma = false;
}

/* In an object a value comes after its key, in an array without one. */
static void begin_value(hf_json *json)
{
    bool in_object = json->depth > 0 && ((json->objects >> (json->depth - 1)) & 1) != 0;
    hf_assert(in_object == json->after_key);
    separate(json);
    json->after_key = false;
}

static void open_bracket(hf_json *json, bool is_object)
{
    hf_assert(json->depth < HF_JSON_DEPTH_MAX);
    begin_value(json);
    hf_buf_putc(json->buf, is_object ? '{' : '[');
    uint64_t bit = UINT64_C(1) << json->depth;
    json->objects = is_object ? json->objects | bit : json->objects & ~bit;
    json->depth++;
}

void hf_json_object(hf_json *json)
{
    open_bracket(json, true);
}

void hf_json_array(hf_json *json)
{
    open_bracket(json, false);
}

void hf_json_end(hf_json *json)
{
    hf_assert(json->depth > 0 && !json->after_key);
    json->depth--;
    hf_buf_putc(json->buf, ((json->objects >> json->depth) & 1) != 0 ? '}' : ']');
    json->comma = true;
}

void hf_json_key(hf_json *json, const char *key)
{
    hf_assert(json->depth > 0 && ((json->objects >> (json->depth - 1)) & 1) != 0 && !json->after_key);
    separate(json);
    hf_json_quote(json->buf, key, strlen(key));
    hf_buf_putc(json->buf, ':');
    json->after_key = true;
}

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

/* Escapes a control character, or another one that a terminal would obey: none of them is above U+FFFF. */
static void put_control(hf_buf *buf, uint32_t code)
{
    static const char SHORT[] = "btn\0fr"; /* from 0x08 on */
    if (code >= 0x08 && code <= 0x0d && SHORT[code - 0x08] != '\0') {
        char text[2] = {'\\', SHORT[code - 0x08]};
        hf_buf_put(buf, text, sizeof text);
        return;
    }
    static const char HEX[] = "0123456789abcdef";
    char text[6] = {'\\', 'u', HEX[code >> 12 & 15], HEX[code >> 8 & 15], HEX[code >> 4 & 15], HEX[code & 15]};
    hf_buf_put(buf, text, sizeof text);
}

void hf_json_quote(hf_buf *buf, const char *text, size_t len)
{
    static const char REPLACEMENT[] = "\xef\xbf\xbd"; /* U+FFFD */
    size_t plain = 0;                                 /* start of the run that can be copied as it is */
    hf_buf_putc(buf, '"');
    for (size_t i = 0; i < len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(text + i, len - i));
        bool is_special = text[i] == '"' || text[i] == '\\';
        if (glyph.is_printable && !is_special) {
            i += glyph.len;
            continue;
        }
        hf_buf_put(buf, text + plain, i - plain);
        if (is_special) {
            hf_buf_putc(buf, '\\');
            hf_buf_putc(buf, text[i]);
        } else if (glyph.is_utf8) {
            put_control(buf, glyph.code);
        } else {
            hf_buf_puts(buf, REPLACEMENT);
        }
        i += glyph.len;
        plain = i;
    }
    hf_buf_put(buf, text + plain, len - plain);
    hf_buf_putc(buf, '"');
}

void hf_json_string_len(hf_json *json, const char *text, size_t len)
{
    begin_value(json);
    hf_json_quote(json->buf, text, len);
    json->comma = true;
}

void hf_json_string(hf_json *json, const char *text)
{
    if (text == NULL) {
        hf_json_null(json);
        return;
    }
    hf_json_string_len(json, text, strlen(text));
}

/* ---- The rest ---------------------------------------------------------------------------------------------------- */

static void put_word(hf_json *json, const char *word)
{
    begin_value(json);
    hf_buf_puts(json->buf, word);
    json->comma = true;
}

void hf_json_uint(hf_json *json, uint64_t value)
{
    begin_value(json);
    hf_buf_putf(json->buf, "%llu", (unsigned long long)value);
    json->comma = true;
}

void hf_json_int(hf_json *json, int64_t value)
{
    begin_value(json);
    hf_buf_putf(json->buf, "%lld", (long long)value);
    json->comma = true;
}

void hf_json_bool(hf_json *json, bool value)
{
    put_word(json, value ? "true" : "false");
}

void hf_json_raw(hf_json *json, const char *text, size_t len)
{
    begin_value(json);
    hf_buf_put(json->buf, text, len);
    json->comma = true;
}

void hf_json_null(hf_json *json)
{
    put_word(json, "null");
}

void hf_json_key_string(hf_json *json, const char *key, const char *text)
{
    hf_json_key(json, key);
    hf_json_string(json, text);
}

void hf_json_key_int(hf_json *json, const char *key, int64_t value)
{
    hf_json_key(json, key);
    hf_json_int(json, value);
}

void hf_json_key_uint(hf_json *json, const char *key, uint64_t value)
{
    hf_json_key(json, key);
    hf_json_uint(json, value);
}

void hf_json_key_bool(hf_json *json, const char *key, bool value)
{
    hf_json_key(json, key);
    hf_json_bool(json, value);
}
