/* Texts for people: foreign text without control characters, and spans of time. */
#include "main/tool.h"

#include "base/glyph.h"

size_t hf_put_text(hf_buf *out, hf_str text, size_t len_max)
{
    size_t count = 0;
    size_t at = 0;
    while (at < text.len) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(text.data + at, text.len - at));
        if (at + glyph.len > len_max) { /* whole characters only */
            hf_buf_putf(out, "... (%zu bytes)", text.len);
            break;
        }
        bool is_space = glyph.code == '\n' || glyph.code == '\r' || glyph.code == '\t';
        if (glyph.is_printable) {
            hf_buf_put(out, text.data + at, glyph.len);
        } else {
            hf_buf_putc(out, is_space ? ' ' : '?');
        }
        at += glyph.len;
        count++;
    }
    return count;
}

void hf_put_span(hf_buf *out, int64_t ns)
{
    static const struct {
        int64_t ns;
        const char *name;
    } UNITS[] = {{INT64_C(86400000000000), "d"}, {INT64_C(3600000000000), "h"}, {INT64_C(60000000000), "min"}};
    if (ns < 0) {
        ns = 0;
    }
    for (size_t i = 0; i < HF_COUNT_OF(UNITS); i++) {
        if (ns >= UNITS[i].ns) {
            int64_t rest = ns % UNITS[i].ns;
            hf_buf_putf(out, "%lld %s", (long long)(ns / UNITS[i].ns), UNITS[i].name);
            if (i + 1 < HF_COUNT_OF(UNITS) && rest >= UNITS[i + 1].ns) {
                hf_buf_putf(out, " %lld %s", (long long)(rest / UNITS[i + 1].ns), UNITS[i + 1].name);
            }
            return;
        }
    }
    hf_buf_putf(out, "%.3f s", (double)ns / 1e9);
}
