/* The fields of a log line: "key=value" pairs that a program can take apart again.
 *
 *     hf_log(rt, HF_LOG_WARN, "poll_failed", "queue=%.*s pause_ms=%lld message=%s", HF_STR_ARGS(queue), pause, message);
 *     queue=orders pause_ms=100 message="the service is closed"
 *
 * A value stands in quotes if it is empty or has a space, a quote, a backslash or an equals sign in it, or if the format puts
 * it in quotes. Inside them a quote and a backslash have a backslash before them, and so has everything that a terminal would
 * obey (base/glyph.h): "\n", "\t", "\x9b" of a byte, "\u202e". A line has no newline and no control character. */
#ifndef HF_BASE_FIELDS_H
#define HF_BASE_FIELDS_H

#include "base/str.h"

#include <stdarg.h>

/* Writes the fields and a NUL, cut to `out_len` bytes; a value that is cut still ends with its quote.
 * The format knows %s (and %.60s, %.*s), %d, %u, %ld, %lu, %lld, %llu, %zu. A %s behind an equals sign is a value; any other is some
 * fields that were made by this. */
void hf_fields_format(char *out, size_t out_len, const char *format, ...) HF_PRINTF(3, 4);
void hf_fields_vformat(char *out, size_t out_len, const char *format, va_list args);

#endif
