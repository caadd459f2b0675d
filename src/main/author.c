/* What the commands for authors of workflows share. */
#include "main/author.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hf_author_option *find(const hf_author_option *options, const char *word)
{
    for (const hf_author_option *option = options; option->name != NULL; option++) {
        if (strcmp(option->name, word) == 0) {
            return option;
        }
    }
    return NULL;
}

static bool take_value(const hf_author_option *option, const char *value)
{
    int most = option->count != NULL ? HF_AUTHOR_VALUES_MAX : 1;
    int have = option->count != NULL ? *option->count : option->values[0] != NULL;
    if (have == most) {
        (void)hf_complain(0, "%s may be given %s", option->name, most == 1 ? "once" : "16 times");
        return false;
    }
    option->values[have] = value;
    if (option->count != NULL) {
        ++*option->count;
    }
    return true;
}

bool hf_author_parse(int argc, char **argv, const hf_author_option *options, const char **words, int words_max,
                     int *ret_count)
{
    int count = 0;
    for (int i = 0; i < argc; i++) {
        const hf_author_option *option = find(options, argv[i]);
        if (option == NULL && argv[i][0] == '-' && argv[i][1] != '\0') {
            (void)hf_complain(0, "this command has no option %s", argv[i]);
            return false;
        }
        if (option == NULL && count == words_max) {
            (void)hf_complain(0, "%s: one argument too many", argv[i]);
            return false;
        }
        if (option == NULL) {
            words[count++] = argv[i];
        } else if (option->flag != NULL) {
            *option->flag = true;
        } else if (i + 1 == argc) {
            (void)hf_complain(0, "%s needs a value", argv[i]);
            return false;
        } else if (!take_value(option, argv[++i])) {
            return false;
        }
    }
    *ret_count = count;
    return true;
}

/* ---- The guard ------------------------------------------------------------------------------------------------------------------ */

#define GUARD_FILE "libholdfast_guard.so"
#ifndef HF_LIBDIR
#define HF_LIBDIR "lib" /* the build says where this system has it */
#endif

/* Where the guard lies, seen from the folder of this program: installed, and in the build folder. */
static bool find_guard(char *path, size_t len)
{
    static const char *const PLACES[] = {"/../" HF_LIBDIR "/" GUARD_FILE, "/../lib/" GUARD_FILE, "/../" GUARD_FILE};
    char self[HF_PATH_LEN_MAX];
    ssize_t self_len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (self_len <= 0) {
        return false;
    }
    self[self_len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        int written = snprintf(path, len, "%s%s", self, PLACES[i]);
        if (written > 0 && (size_t)written < len && access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool hf_author_guard(char **argv, char *why)
{
    enum { WHY_LEN = 256 };
    char path[HF_PATH_LEN_MAX];
    char list[2 * HF_PATH_LEN_MAX];
    const char *before = getenv("LD_PRELOAD");
    if (before != NULL && strstr(before, GUARD_FILE) != NULL) {
        return true;
    }
    if (!find_guard(path, sizeof path)) {
        (void)snprintf(why, WHY_LEN, "%s is not beside this program, nor in ../%s", GUARD_FILE, HF_LIBDIR);
        return false;
    }
    (void)snprintf(list, sizeof list, "%s%s%s", path, before != NULL ? ":" : "", before != NULL ? before : "");
    if (setenv("LD_PRELOAD", list, 1) == 0) {
        (void)execv("/proc/self/exe", argv);
    }
    (void)snprintf(why, WHY_LEN, "this program could not be started again with it");
    return false;
}
