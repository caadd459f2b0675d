/* Are the model tests any good? Runs each of them against a library with one bug in it (base/canary.h) and expects it
 * to fail, soon. */
/* labels: plainonly */
#include "support/support.h"

#include "base/canary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef HF_CANARY_DIR /* set by canaries.cmake, in a plain build only */
#define HF_CANARY_DIR ""
#define HF_CANARY_LIBRARY ""
#define HF_PLAIN_LIBRARY ""
#endif

/* Without a canary a model goes through all of its seeds: at most half of CPU_SECONDS_MAX, so that a slow machine has enough. */
enum { SEEDS_MAX = 5000, SEEDS_ASLEEP = SEEDS_MAX / 2, CPU_SECONDS_MAX = 200, SECONDS_MAX = 600 };
enum { STORMS_MAX = 1500, STORMS_ASLEEP = 150 }; /* a seed of a storm is three programs, one of "remote" five */

static bool is_storm(const char *model)
{
    return strcmp(model, "storm") == 0 || strcmp(model, "charges") == 0;
}

static bool is_slow(const char *model)
{
    return is_storm(model) || strcmp(model, "remote") == 0;
}

typedef struct bug {
    const char *name;
    const char *model;
    const char *text;
} bug;

static const bug BUGS[] = {{"HF_BUG_NONE", "", ""},
#define BUG_ROW(name, model, text) {#name, model, text},
                           HF_BUG_MAP(BUG_ROW)
#undef BUG_ROW
};
_Static_assert(sizeof BUGS / sizeof *BUGS == HF_BUG_COUNT, "one row for each");

/* In the child: becomes the model program with the bug awake. Does not return. */
static void become(const char *model, int canary, int seeds_max, int out)
{
    char path[1000], number[16], seeds[16];
    bool is_power = strcmp(model, "power") == 0; /* another case of the depot's model */
    (void)snprintf(path, sizeof path, "%s/canary_%s", HF_CANARY_DIR, is_power ? "depot" : model);
    (void)snprintf(number, sizeof number, "%d", canary);
    (void)snprintf(seeds, sizeof seeds, "%d", seeds_max);
    (void)setenv("HF_CANARY_ID", number, 1);
    (void)setenv("HF_SEEDS", seeds, 1);
    (void)unsetenv("HF_SEED");
    if (is_storm(model)) { /* one weather is enough: its last step is a replay of everything */
        (void)setenv("HF_TEST_FILTER", "memory", 1);
    } else if (is_power) {
        (void)setenv("HF_TEST_FILTER", "power", 1);
    } else {
        (void)unsetenv("HF_TEST_FILTER");
    }
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    struct rlimit most = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
    (void)setrlimit(RLIMIT_CPU, &most); /* one that runs for ever ends here ... */
    (void)alarm(SECONDS_MAX);           /* ... and one that waits here; a loaded machine is neither */
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)execl(path, path, (char *)NULL);
    _exit(127);
}

/* Reads until the other end is closed; keeps the first `capacity` - 1 bytes. */
static void read_all(int fd, char *text, size_t capacity)
{
    size_t len = 0;
    char rest[512];
    for (;;) {
        bool fits = len + 1 < capacity;
        ssize_t got = fits ? read(fd, text + len, capacity - 1 - len) : read(fd, rest, sizeof rest);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        len += fits && got > 0 ? (size_t)got : 0;
    }
    text[len] = '\0';
}

/* Returns what waitpid says, or -1; `text` is what the program printed. */
static int run(const char *model, int canary, int seeds_max, char *text, size_t capacity)
{
    int ends[2];
    int status = -1;
    text[0] = '\0';
    if (pipe(ends) != 0) {
        return -1;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        become(model, canary, seeds_max, ends[1]);
    }
    (void)close(ends[1]);
    if (pid > 0) {
        read_all(ends[0], text, capacity);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    (void)close(ends[0]);
    return status;
}

/* The seed's place in the row, from the line that support.c prints; 0 = it ended in another way. */
static unsigned seeds_until(const char *text)
{
    const char *line = strstr(text, "FAILED at seed ");
    const char *the = line != NULL ? strstr(line, ", the ") : NULL;
    return the != NULL ? (unsigned)strtoul(the + 6, NULL, 10) : 0;
}

/* What gave it away: the sentence of the first check, or how the run ended. */
static void reason(const char *text, int status, char *why, size_t capacity)
{
    const char *said = strstr(text, "not so: ");
    if (said != NULL) {
        (void)snprintf(why, capacity, "%.*s", (int)strcspn(said + 8, "\n("), said + 8);
    } else if (strstr(text, "run is stuck") != NULL) {
        (void)snprintf(why, capacity, "the run is stuck");
    } else if ((said = strstr(text, "broken invariant")) != NULL) {
        (void)snprintf(why, capacity, "%.*s", (int)strcspn(said, "\n("), said);
    } else {
        (void)snprintf(why, capacity, "%s %d", WIFSIGNALED(status) ? "signal" : "exit code",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

static void every_canary_is_caught(void **state)
{
    (void)state;
    static char text[16384];
    if (HF_CANARY_DIR[0] == '\0') {
        skip();
    }
    print_message("%-28s %-8s %6s  %s\n", "canary", "model", "seeds", "noticed by");
    for (int i = 1; i < HF_BUG_COUNT; i++) {
        int status = run(BUGS[i].model, i, is_slow(BUGS[i].model) ? STORMS_MAX : SEEDS_MAX, text, sizeof text);
        bool is_caught = status > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
        unsigned seeds = seeds_until(text);
        char why[200];
        reason(text, status, why, sizeof why);
        print_message("%-28s %-8s %6u  %s\n", BUGS[i].name + 7, BUGS[i].model, seeds, is_caught ? why : "NOT CAUGHT");
        HF_CHECK_SAY(is_caught && seeds > 0 && seeds <= SEEDS_MAX, "%s is caught within %d seeds: %s", BUGS[i].name,
                     SEEDS_MAX, BUGS[i].text);
    }
}

static void without_a_canary_the_models_pass(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"scope", "chan",   "keylock", "flight", "depot",   "life",  "crew",
                                         "hung",  "engine", "images",  "storm",  "charges", "remote"};
    static char text[16384];
    if (HF_CANARY_DIR[0] == '\0') {
        skip();
    }
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        int status = run(MODELS[i], HF_BUG_NONE, is_slow(MODELS[i]) ? STORMS_ASLEEP : SEEDS_ASLEEP, text, sizeof text);
        HF_CHECK_SAY(status == 0, "the model of %s passes with every canary asleep:\n%s", MODELS[i], text);
    }
}

static bool file_contains(const char *path, const char *word)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t len = 0;
    if (!HF_CHECK(file != NULL)) {
        return false;
    }
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0) {
        len = (size_t)ftell(file);
        bytes = malloc(len);
        rewind(file);
        len = bytes != NULL ? fread(bytes, 1, len, file) : 0;
    }
    (void)fclose(file);
    bool found = len > 0 && memmem(bytes, len, word, strlen(word)) != NULL;
    free(bytes);
    return found;
}

static void no_canary_is_in_the_library(void **state)
{
    (void)state;
    if (HF_CANARY_DIR[0] == '\0') {
        skip();
    }
    HF_CHECK(file_contains(HF_CANARY_LIBRARY, "hf_canary"));
    HF_CHECK(!file_contains(HF_PLAIN_LIBRARY, "hf_canary"));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_canary_is_caught),
        cmocka_unit_test(without_a_canary_the_models_pass),
        cmocka_unit_test(no_canary_is_in_the_library),
    };
    return hf_test_main("canaries", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
