/* The fields of a log line: "key=value" pairs that a program can take apart again.
 *
 *     hf_log(rt, HF_LOG_WARN, "poll_failed", "queue=%.*s pause_ms=%lld message=%s", HF_STR_ARGS(queue), pause, message);
 *     queue=orders pause_ms=100 message="the service is closed"
 *
 * A value is quoted if it is empty or contains a space, a quote, a backslash or an equals sign, or if the format quotes
 * it. Inside quotes, a quote, a backslash and every character that a terminal would obey (base/glyph.h) are escaped
 * with a backslash: "\n", "\t", "\x9b" for a byte, "\u202e". A line has no newline and no control character. */
#ifndef HF_BASE_FIELDS_H
#define HF_BASE_FIELDS_H

#include "base/str.h"

#include <stdarg.h>

/* Writes the fields and a NUL, cut to `out_len` bytes; a value that is cut still ends with its quote. The format knows
 * %s (and %.60s, %.*s), %d, %u, %ld, %lu, %lld, %llu, %zu. A %s after an equals sign is a value; any other %s is text
 * that this function made before. */
void hf_fields_format(char *out, size_t out_len, const char *format, ...) HF_PRINTF(3, 4);
void hf_fields_vformat(char *out, size_t out_len, const char *format, va_list args);

#endif
