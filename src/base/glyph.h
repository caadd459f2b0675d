/* Characters of foreign text, before it goes to a terminal or into a log.
 *
 * A terminal obeys control characters, and some obey those of U+0080 to U+009F as well (U+009B begins a command).
 * Characters that change the direction of writing make a line read as something else. Text that is not UTF-8 may be any
 * of these in the terminal's own encoding. Code that prints foreign text checks each character here and replaces those
 * that are not printable. */
#ifndef HF_BASE_GLYPH_H
#define HF_BASE_GLYPH_H

#include "base/str.h"

typedef struct hf_glyph {
    uint32_t code;     /* the code point; of a byte that is not UTF-8, the byte */
    size_t len;        /* bytes of it, at least 1 */
    bool is_utf8;      /* false: one byte that begins no well-formed character */
    bool is_printable; /* a terminal shows it and does nothing else */
} hf_glyph;

/* The first character of a text that is not empty. */
hf_glyph hf_glyph_of(hf_str text);
/* Whether all of it is well-formed UTF-8. */
bool hf_str_is_utf8(hf_str text);
/* Replaces every character that is not printable by a question mark, in place. */
void hf_text_clean(char *text);

#endif
