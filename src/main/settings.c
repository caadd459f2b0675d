#include "main/settings.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum often { FLAG, ONCE, MANY } often;

static const struct {
    const char *name;
    const char *hint;
    often often;
} SETTINGS[] = {
#define HF_SETTING_ROW(constant, name, hint, often) {name, hint, often},
    HF_SETTING_MAP(HF_SETTING_ROW)
#undef HF_SETTING_ROW
};

enum { FROM_FILE = 1, FROM_ENVIRONMENT = 2, FROM_FLAGS = 3, FILE_LEN_MAX = 64 * 1024, NAME_LEN_MAX = 64 };

static int find(const char *name, size_t len)
{
    for (int i = 0; i < HF_SETTING_COUNT; i++) {
        if (strlen(SETTINGS[i].name) == len && memcmp(SETTINGS[i].name, name, len) == 0) {
            return i;
        }
    }
    return -1;
}

hf_status hf_setting_put(hf_op *op, hf_settings *settings, hf_setting setting, const char *value, int rank)
{
    if (settings->all[setting].rank > rank) {
        return HF_OK; /* what is there comes first */
    }
    if (settings->all[setting].rank < rank) {
        settings->all[setting].count = 0;
        settings->all[setting].rank = rank;
    }
    if (settings->all[setting].count > 0 && SETTINGS[setting].often != MANY) {
        return hf_fail(op, HF_ERR_INVALID, "%s is set twice", SETTINGS[setting].name);
    }
    if (settings->all[setting].count == HF_SETTING_VALUES_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "%s is set more than %d times", SETTINGS[setting].name,
                       HF_SETTING_VALUES_MAX);
    }
    settings->all[setting].values[settings->all[setting].count++] = value;
    return HF_OK;
}

static hf_status read_flags(hf_op *op, hf_settings *settings, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strncmp(word, "--", 2) != 0) {
            return hf_fail(op, HF_ERR_INVALID, "'%s' is not an option of this command", word);
        }
        const char *equals = strchr(word, '=');
        size_t len = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
        int setting = find(word + 2, len);
        if (setting < 0) {
            return hf_fail(op, HF_ERR_INVALID, "this command has no option %s", word);
        }
        const char *value = equals != NULL ? equals + 1 : "true";
        if (equals == NULL && SETTINGS[setting].often != FLAG) {
            if (i + 1 == argc) {
                return hf_fail(op, HF_ERR_INVALID, "%s needs a value", word);
            }
            value = argv[++i];
        }
        HF_TRY(hf_setting_put(op, settings, (hf_setting)setting, value, FROM_FLAGS));
    }
    return HF_OK;
}

/* HOLDFAST_LOG_LEVEL. A list is separated by commas. */
static hf_status read_environment(hf_op *op, hf_settings *settings)
{
    for (int i = 0; i < HF_SETTING_COUNT; i++) {
        char name[NAME_LEN_MAX] = "HOLDFAST_";
        size_t at = strlen(name);
        for (const char *from = SETTINGS[i].name; *from != '\0' && at + 1 < sizeof name; from++) {
            name[at++] = (char)(*from == '-' ? '_' : *from >= 'a' && *from <= 'z' ? *from - 'a' + 'A' : *from);
        }
        name[at] = '\0';
        const char *value = getenv(name);
        while (value != NULL && *value != '\0') {
            size_t len = SETTINGS[i].often == MANY ? strcspn(value, ",") : strlen(value);
            hf_str copy = hf_arena_copy(settings->arena, hf_str_of_len(value, len));
            HF_TRY(hf_setting_put(op, settings, (hf_setting)i, copy.data, FROM_ENVIRONMENT));
            value += len + (value[len] == ',' ? 1 : 0);
        }
    }
    return HF_OK;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text;
}

static hf_status read_line(hf_op *op, hf_settings *settings, const char *path, int number, char *line)
{
    line = trim(line);
    if (*line == '\0' || *line == '#') {
        return HF_OK;
    }
    char *equals = strchr(line, '=');
    if (equals == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "%s:%d: a line is `name = value`", path, number);
    }
    *equals = '\0';
    const char *name = trim(line);
    int setting = find(name, strlen(name));
    if (setting < 0 || setting == HF_SETTING_CONFIG) {
        return hf_fail(op, HF_ERR_INVALID, "%s:%d: there is no setting '%s'", path, number, name);
    }
    return hf_setting_put(op, settings, (hf_setting)setting, trim(equals + 1), FROM_FILE);
}

static hf_status read_file(hf_op *op, hf_settings *settings, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "cannot read the settings in %s", path);
    }
    char *text = hf_arena_take(settings->arena, FILE_LEN_MAX + 1, 1);
    size_t len = text != NULL ? fread(text, 1, FILE_LEN_MAX + 1, file) : 0;
    (void)fclose(file);
    if (text == NULL || len > FILE_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the settings in %s have more than %d bytes", path, FILE_LEN_MAX);
    }
    text[len] = '\0';
    int number = 0;
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        HF_TRY(read_line(op, settings, path, ++number, line));
        line = end;
    }
    return HF_OK;
}

hf_status hf_settings_read(hf_op *op, hf_settings *settings, hf_arena *arena, int argc, char **argv)
{
    *settings = (hf_settings){.arena = arena};
    HF_TRY(read_flags(op, settings, argc, argv));
    HF_TRY(read_environment(op, settings));
    const char *path = hf_setting_get(settings, HF_SETTING_CONFIG);
    return path != NULL ? read_file(op, settings, path) : HF_OK;
}

const char *hf_setting_get(const hf_settings *settings, hf_setting setting)
{
    return settings->all[setting].count > 0 ? settings->all[setting].values[0] : NULL;
}

bool hf_setting_is_on(const hf_settings *settings, hf_setting setting)
{
    const char *value = hf_setting_get(settings, setting);
    return value != NULL && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0 || strcmp(value, "yes") == 0);
}

void hf_settings_help(void)
{
    for (int i = 0; i < HF_SETTING_COUNT; i++) {
        (void)printf("  --%-18s %s\n", SETTINGS[i].name, SETTINGS[i].hint);
    }
}
