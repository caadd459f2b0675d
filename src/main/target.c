#include "main/target.h"

#include <holdfast/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_LEN_MAX = 64 * 1024, TRIES_MAX = 10 };

/* ---- Exit codes ------------------------------------------------------------------------------------------------------------ */

int hf_exit_of(hf_status status)
{
    switch ((int)status) {
    case HF_OK:
        return HF_EXIT_FINE;
    case HF_ERR_INVALID:
    case HF_ERR_MISUSE:
    case HF_ERR_TOO_BIG:
        return HF_EXIT_USAGE;
    case HF_ERR_UNAVAILABLE:
    case HF_ERR_TIMEOUT:
    case HF_ERR_CLOSED:
    case HF_ERR_REFUSED:
    case HF_ERR_RESET:
    case HF_ERR_UNSUPPORTED:
        return HF_EXIT_CANNOT_OPEN;
    case HF_ERR_NOT_FOUND:
        return HF_EXIT_NOT_FOUND;
    case HF_ERR_DENIED:
        return HF_EXIT_DENIED;
    case HF_ERR_EXISTS:
    case HF_ERR_CONFLICT:
    case HF_ERR_NOT_READY:
        return HF_EXIT_CONFLICT;
    default:
        return HF_EXIT_DAMAGED;
    }
}

const char *hf_reason_of(const char *text)
{
    static const char OF[] = " of workflow '";
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    const char *at = text + len;
    if (len > 0 && strncmp(at, OF, sizeof OF - 1) == 0) {
        at = strstr(at + sizeof OF - 1, "': ");
        at = at != NULL ? at + 1 : text;
    }
    return len > 0 && strncmp(at, ": ", 2) == 0 ? at + 2 : text;
}

int hf_told(hf_status status)
{
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(hf_error_text()));
}

/* ---- Where a server is ------------------------------------------------------------------------------------------------------ */

/* What the environment and the file of settings may say, and the key of the address that it becomes. */
static const struct {
    const char *name;
    const char *variable;
    const char *key; /* NULL = not a key of an address */
} SETTINGS[] = {
    {"address", "HOLDFAST_ADDRESS", NULL},
    {"namespace", "HOLDFAST_NAMESPACE", NULL},
    {"tls", "HOLDFAST_CLIENT_TLS", "tls"},
    {"ca", "HOLDFAST_CLIENT_CA", "ca"},
    {"cert", "HOLDFAST_CLIENT_CERT", "cert"},
    {"key", "HOLDFAST_CLIENT_KEY", "key"},
    {"server-name", "HOLDFAST_SERVER_NAME", "server_name"},
    {"api-key-file", "HOLDFAST_API_KEY_FILE", "api_key_file"},
    {"api-key", "HOLDFAST_API_KEY", NULL},
};
enum { ADDRESS, NAMESPACE, API_KEY = HF_COUNT_OF(SETTINGS) - 1 };

typedef struct settings {
    char file[CONFIG_LEN_MAX + 1];
    const char *values[HF_COUNT_OF(SETTINGS)];
} settings;

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text;
}

static int read_line(settings *s, const char *path, int number, char *line)
{
    line = trim(line);
    char *equals = strchr(line, '=');
    if (*line == '\0' || *line == '#') {
        return HF_EXIT_FINE;
    }
    if (equals == NULL) {
        return hf_complain(HF_EXIT_USAGE, "%s:%d: a line is `name = value`", path, number);
    }
    *equals = '\0';
    const char *name = trim(line);
    for (size_t i = 0; i < HF_COUNT_OF(SETTINGS); i++) {
        if (strcmp(SETTINGS[i].name, name) == 0) {
            s->values[i] = trim(equals + 1);
            return HF_EXIT_FINE;
        }
    }
    return hf_complain(HF_EXIT_USAGE,
                       "%s:%d: there is no setting '%s': they are address, namespace, tls, ca, cert, key, server-name, "
                       "api-key-file and api-key",
                       path, number, name);
}

static int read_config(settings *s)
{
    char path[HF_PATH_LEN_MAX];
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    bool has_base = base != NULL && *base != '\0';
    int len = has_base ? snprintf(path, sizeof path, "%s/holdfast/config", base)
                       : snprintf(path, sizeof path, "%s/.config/holdfast/config", home != NULL ? home : "");
    FILE *file = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL) {
        return HF_EXIT_FINE; /* nobody needs one */
    }
    size_t got = fread(s->file, 1, CONFIG_LEN_MAX + 1, file);
    (void)fclose(file);
    if (got > CONFIG_LEN_MAX) {
        return hf_complain(HF_EXIT_USAGE, "the settings in %s have more than %d bytes", path, CONFIG_LEN_MAX);
    }
    s->file[got] = '\0';
    int number = 0;
    for (char *line = s->file; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        int code = read_line(s, path, ++number, line);
        if (code != HF_EXIT_FINE) {
            return code;
        }
        line = end;
    }
    return HF_EXIT_FINE;
}

/* The environment comes before the file, and the address itself before both. */
static int read_settings(settings *s)
{
    int code = read_config(s);
    for (size_t i = 0; i < HF_COUNT_OF(SETTINGS); i++) {
        const char *value = getenv(SETTINGS[i].variable);
        if (value != NULL && *value != '\0') {
            s->values[i] = value;
        }
    }
    return code;
}

static bool has_key(const char *address, const char *key)
{
    const char *at = strchr(address, '?');
    size_t len = strlen(key);
    while (at != NULL) {
        at++;
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            return true;
        }
        at = strchr(at, '&');
    }
    return false;
}

bool hf_target_is_server(const char *word)
{
    return strncmp(word, "temporal://", 11) == 0 || strcmp(word, "@") == 0;
}

bool hf_target_is_strange(const char *word)
{
    static const char *const SCHEMES[] = {"sqlite:", "memory:", "owner:", "temporal://"};
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (len == 0 || word[len] != ':') {
        return false;
    }
    for (size_t i = 0; i < HF_COUNT_OF(SCHEMES); i++) {
        if (strncmp(word, SCHEMES[i], strlen(SCHEMES[i])) == 0) {
            return false;
        }
    }
    (void)hf_complain(0,
                      "%.*s: is not the scheme of an address: use sqlite:PATH, owner:PATH, memory:, "
                      "temporal://HOST:PORT, or ./%.200s for a file of that name",
                      len > 100 ? 100 : (int)len, word, word);
    return true;
}

const char *hf_target_namespace(const char *word)
{
    static settings s; /* one for each process: the namespace may point into it */
    return hf_target_is_server(word) && read_settings(&s) == HF_EXIT_FINE ? s.values[NAMESPACE] : NULL;
}

static int find_server(hf_tool_target *target)
{
    settings *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return hf_complain(HF_EXIT_DAMAGED, "no memory for the settings");
    }
    int code = read_settings(s);
    const char *address = strcmp(target->word, "@") == 0 ? s->values[ADDRESS] : target->word;
    if (code == HF_EXIT_FINE && address == NULL) {
        code = hf_complain(HF_EXIT_USAGE, "@ is the server of HOLDFAST_ADDRESS or of ~/.config/holdfast/config, and "
                                          "neither names one");
    }
    if (code == HF_EXIT_FINE) {
        bool has_scheme = strncmp(address, "temporal://", 11) == 0;
        size_t room = sizeof target->address;
        int len = snprintf(target->address, room, "%s%s", has_scheme ? "" : "temporal://", address);
        for (size_t i = 0; i < HF_COUNT_OF(SETTINGS) && len > 0 && (size_t)len < room; i++) {
            if (SETTINGS[i].key != NULL && s->values[i] != NULL && !has_key(target->address, SETTINGS[i].key)) {
                len += snprintf(target->address + len, room - (size_t)len, "%c%s=%s",
                                strchr(target->address, '?') != NULL ? '&' : '?', SETTINGS[i].key, s->values[i]);
            }
        }
        if (len < 0 || (size_t)len >= room) {
            code = hf_complain(HF_EXIT_USAGE, "the address of the server is too long");
        }
        if (s->values[API_KEY] != NULL) {
            (void)snprintf(target->api_key, sizeof target->api_key, "%s", s->values[API_KEY]);
        }
    }
    free(s);
    return code;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------------------ */

static int find_file(hf_tool_target *target)
{
    hf_tool_source source;
    int code = hf_source_open(&source, target->path);
    if (code == HF_EXIT_FINE) {
        target->kind = source.is_owned ? HF_TARGET_OWNED : HF_TARGET_REST;
        hf_source_close(&source);
        (void)snprintf(target->address, sizeof target->address, "%s%s",
                       target->kind == HF_TARGET_OWNED ? "owner:" : "sqlite:", target->path);
    }
    return code;
}

/* Whether the file is no longer as it was found. An address owner: is about that program, and nobody else. */
static bool is_stale(const hf_tool_target *target, hf_status status)
{
    return (target->kind == HF_TARGET_REST && status == HF_ERR_EXISTS) ||
           (target->kind == HF_TARGET_OWNED && status == HF_ERR_NOT_FOUND && strncmp(target->word, "owner:", 6) != 0);
}

int hf_target_find(hf_tool_target *target, const hf_tool_args *args)
{
    const char *word = args->words[0];
    *target = (hf_tool_target){.word = word, .namespace_ = args->namespace_};
    if (hf_target_is_strange(word)) {
        return HF_EXIT_USAGE;
    }
    if (hf_target_is_server(word)) {
        target->kind = HF_TARGET_SERVER;
        return find_server(target);
    }
    if (strncmp(word, "owner:", 6) == 0) {
        target->kind = HF_TARGET_OWNED;
        target->path = word + 6;
        (void)snprintf(target->address, sizeof target->address, "%s", word);
        return HF_EXIT_FINE;
    }
    target->path = strncmp(word, "sqlite:", 7) == 0 ? word + 7 : word;
    return find_file(target);
}

static hf_status open_it(hf_tool_target *target)
{
    return hf_open(target->address, &target->service, .api_key = target->api_key[0] != '\0' ? target->api_key : NULL);
}

int hf_target_reach(hf_tool_target *target)
{
    hf_status status = open_it(target);
    /* Meanwhile a program may have opened the file, or have closed it. */
    for (int i = 0; i < TRIES_MAX && status != HF_OK && is_stale(target, status); i++) {
        int code = find_file(target);
        if (code != HF_EXIT_FINE) {
            return code;
        }
        status = open_it(target);
    }
    if (status == HF_OK) {
        return HF_EXIT_FINE;
    }
    return hf_complain(status == HF_ERR_DENIED ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN, "%s",
                       hf_reason_of(hf_error_text()));
}

int hf_target_open(hf_tool_target *target, const hf_tool_args *args)
{
    int code = hf_target_find(target, args);
    return code == HF_EXIT_FINE ? hf_target_reach(target) : code;
}

bool hf_target_was_left(const hf_tool_target *target, hf_status status)
{
    return target->kind == HF_TARGET_OWNED && status == HF_ERR_UNAVAILABLE && strncmp(target->word, "owner:", 6) != 0;
}

int hf_target_again(hf_tool_target *target)
{
    hf_assert(target->kind == HF_TARGET_OWNED);
    (void)hf_close(target->service); /* the other side is gone, which was told */
    target->service = NULL;
    int code = find_file(target);
    return code == HF_EXIT_FINE ? hf_target_reach(target) : code;
}

int hf_target_close(hf_tool_target *target, int code)
{
    if (target->service != NULL && hf_close(target->service) != HF_OK && code == HF_EXIT_FINE) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return code;
}
