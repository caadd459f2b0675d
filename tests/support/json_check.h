/* Checks whether a text is exactly one JSON value. A small strict reader for the library's output. */
#ifndef HF_TESTS_JSON_CHECK_H
#define HF_TESTS_JSON_CHECK_H

#include <stdbool.h>
#include <string.h>

static inline const char *json_skip(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static inline const char *json_value(const char *at, int depth);

static inline const char *json_text(const char *at)
{
    if (*at++ != '"') {
        return NULL;
    }
    while (*at != '"') {
        if ((unsigned char)*at < 0x20) {
            return NULL;
        }
        if (*at == '\\') {
            at++;
            if (*at == 'u') {
                if (strspn(at + 1, "0123456789abcdefABCDEF") < 4) {
                    return NULL;
                }
                at += 4;
            } else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL) {
                return NULL;
            }
        }
        at++;
    }
    return at + 1;
}

/* The inside of an object or array, up to and with its closing bracket. */
static inline const char *json_members(const char *at, bool is_object, int depth)
{
    char end = is_object ? '}' : ']';
    at = json_skip(at);
    if (*at == end) {
        return at + 1;
    }
    for (;;) {
        if (is_object) {
            at = json_text(json_skip(at));
            if (at == NULL || *(at = json_skip(at)) != ':') {
                return NULL;
            }
            at++;
        }
        at = json_value(json_skip(at), depth + 1);
        if (at == NULL) {
            return NULL;
        }
        at = json_skip(at);
        if (*at == end) {
            return at + 1;
        }
        if (*at++ != ',') {
            return NULL;
        }
    }
}

static inline const char *json_value(const char *at, int depth)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    if (depth > 100) {
        return NULL;
    }
    if (*at == '{' || *at == '[') {
        return json_members(at + 1, *at == '{', depth);
    }
    if (*at == '"') {
        return json_text(at);
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strncmp(at, WORDS[i], strlen(WORDS[i])) == 0) {
            return at + strlen(WORDS[i]);
        }
    }
    at += *at == '-';
    size_t digits = strspn(at, "0123456789");
    return digits > 0 && (digits == 1 || *at != '0') ? at + digits : NULL;
}

static inline bool json_is_valid(const char *text)
{
    const char *end = json_value(json_skip(text), 0);
    return end != NULL && *json_skip(end) == '\0';
}

#endif
