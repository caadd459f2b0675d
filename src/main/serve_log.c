/* The log of a server: one line for each event, on stderr. */
#include "main/serve_private.h"

#include <stdio.h>
#include <time.h>

static const char *const LEVELS[] = {"debug", "info", "warn", "error"};

static void put_json_text(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            (void)fputc('\\', to);
        }
        if (byte >= ' ') {
            (void)fputc(byte, to);
        } else {
            (void)fprintf(to, "\\u%04x", byte);
        }
    }
    (void)fputc('"', to);
}

void hf_serve_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    const hf_serving *s = state;
    if (s->is_silent || level < s->level) {
        return;
    }
    struct timespec now;
    struct tm parts;
    char time[40];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    size_t len = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(time + len, sizeof time - len, ".%03ldZ", now.tv_nsec / 1000000);
    flockfile(stderr);
    if (s->is_json) {
        (void)fprintf(stderr, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\",\"fields\":", time, LEVELS[level],
                      event);
        put_json_text(stderr, fields);
        (void)fputs("}\n", stderr);
    } else {
        (void)fprintf(stderr, "%s %-5s %s %s\n", time, LEVELS[level], event, fields);
    }
    funlockfile(stderr);
}

hf_status hf_serve_take_log(hf_op *op, hf_serving *s, const char *format, const char *level)
{
    if (format != NULL && strcmp(format, "json") != 0 && strcmp(format, "text") != 0 && strcmp(format, "pretty") != 0) {
        return hf_fail(op, HF_ERR_INVALID, "log-format is text or json, not '%s'", format);
    }
    s->is_json = format != NULL && strcmp(format, "json") == 0;
    s->level = HF_LOG_INFO;
    if (level == NULL) {
        return HF_OK;
    }
    if (strcmp(level, "never") == 0) {
        s->is_silent = true;
        return HF_OK;
    }
    for (int i = 0; i < (int)HF_COUNT_OF(LEVELS); i++) {
        if (strcmp(level, LEVELS[i]) == 0) {
            s->level = (hf_log_level)i;
            return HF_OK;
        }
    }
    return hf_fail(op, HF_ERR_INVALID, "log-level is debug, info, warn, error or never, not '%s'", level);
}
