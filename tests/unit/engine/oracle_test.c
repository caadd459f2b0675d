/* The scenarios of tests/golden/temporal, which a Temporal server has played (./dev oracle), on our engine: each file is a
 * test. What the engine cannot do yet is listed in NOT_YET, what it does differently on purpose in DIFFERENT: a scenario that is
 * listed there must still differ, or the list is wrong. DIFFERENT_ATTRIBUTES has attributes that are not compared. A line of
 * these lists is a name and the reason. HF_ORACLE_SHOW=1 shows how those that are listed differ. */
#include "support/engine_facts.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCENARIOS_MAX = 600, NAME_LEN_MAX = 80 };

typedef struct scenario {
    char name[NAME_LEN_MAX];
    char path[512];
} scenario;

static scenario scenarios[SCENARIOS_MAX];
static size_t scenario_count;
static char *not_yet, *different; /* the lists, as they stand */

/* A line of DIFFERENT_ATTRIBUTES: "EventType.attribute" or, in answers, "step.attribute", and the reason. */
typedef struct attribute {
    char kind[NAME_LEN_MAX];
    char name[NAME_LEN_MAX];
    bool is_used; /* a line had it and differed */
} attribute;

static attribute unequal[100];
static size_t unequal_count;

static char *contents(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return strdup("");
    }
    size_t len = 0, room = 1 << 16;
    char *text = malloc(room);
    for (size_t got = 1; text != NULL && got > 0;) {
        if (len + 1 >= room) {
            room *= 2;
            char *more = realloc(text, room);
            if (more == NULL) {
                free(text);
            }
            text = more;
            continue;
        }
        got = fread(text + len, 1, room - len - 1, file);
        len += got;
        text[len] = '\0';
    }
    (void)fclose(file);
    assert_non_null(text);
    return text;
}

static char *list_of(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", HF_ORACLE, name);
    return contents(path);
}

/* Whether a line of the list begins with the name. */
static bool is_listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = list; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, name, len) == 0 && strchr(" \t\n", line[len]) != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

/* Cuts out every " name=value" or " name", values with spaces in brackets or quotes included. True: there was one. */
static bool cut_attribute(char *line, const char *name)
{
    bool found = false;
    size_t len = strlen(name);
    for (char *at = strstr(line, name); at != NULL; at = strstr(at, name)) {
        if (at == line || strchr(" {", at[-1]) == NULL || strchr("= }]", at[len]) == NULL) {
            at++;
            continue;
        }
        char *stop = at + len;
        int depth = 0;
        for (char quote = '\0'; *stop != '\0' && (quote != '\0' || depth > 0 || strchr(" }]", *stop) == NULL); stop++) {
            if (*stop == '\'' || *stop == '"') {
                quote = quote == '\0' ? *stop : quote == *stop ? '\0' : quote;
            }
            depth += quote != '\0' ? 0 : (*stop == '{' || *stop == '[') - (*stop == '}' || *stop == ']');
        }
        bool first = at[-1] == '{';
        char *from = first ? at : at - 1;
        stop += first && *stop == ' ';
        memmove(from, stop, strlen(stop) + 1);
        at = from;
        found = true;
    }
    return found;
}

/* Ids become "<id>", as in the scenarios. */
static void cut_ids(char *text)
{
    static const char ID[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (char *at = text; strlen(at) >= sizeof ID - 1; at++) {
        size_t len = 0;
        while (ID[len] != '\0' && (ID[len] == '-' ? at[len] == '-' : isxdigit((unsigned char)at[len]) != 0)) {
            len++;
        }
        if (ID[len] == '\0') {
            memcpy(at, "<id>", 4);
            memmove(at + 4, at + len, strlen(at + len) + 1);
        }
    }
}

/* Of the failures that people meet most, that something is not there or is there already, the sentence is compared; of others only the
 * code and the detail. */
static void cut_words(char *line)
{
    char *failure = line[0] == '!' ? line : strstr(line, "=> !");
    if (failure == NULL) {
        return;
    }
    if (strstr(line, "=> !NotFound NotFoundFailure '") != NULL ||
        strstr(line, "=> !AlreadyExists WorkflowExecutionAlreadyStartedFailure") != NULL) {
        cut_ids(failure);
        char *which = strstr(failure, " for workflow ID \"");
        if (which != NULL && strncmp(line, "complete ", 9) == 0) { /* a token does not know its names */
            (void)snprintf(which, strlen(which), "'");
        }
        return;
    }
    (void)cut_attribute(failure, "message");
    char *words = NULL; /* the last text in quotes that is outside of the detail */
    int depth = 0;
    for (char *at = failure; *at != '\0' && words == NULL; at++) {
        depth += (*at == '{') - (*at == '}');
        words = depth == 0 && *at == '\'' ? at : NULL;
    }
    if (words != NULL) {
        words[words > failure && words[-1] == ' ' ? -1 : 0] = '\0';
    }
}

/* "timeout=~" is whatever the other line has: chance has a part in it. */
static void cut_chance(char *a, char *b)
{
    for (char *at = strstr(a, "=~"); at != NULL; at = strstr(a, "=~")) {
        char name[NAME_LEN_MAX] = "";
        char *from = at;
        while (from > a && strchr(" {", from[-1]) == NULL) {
            from--;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(at - from), from);
        (void)cut_attribute(b, name);
        if (!cut_attribute(a, name)) {
            return;
        }
    }
}

/* Takes out of both lines what DIFFERENT_ATTRIBUTES lists for their kind. */
static void cut_listed(char *a, char *b)
{
    char kind[NAME_LEN_MAX] = "";
    char *a_arrow = strstr(a, " => "), *b_arrow = strstr(b, " => ");
    (void)sscanf(a, a_arrow != NULL ? "%79s" : "%*d %79s", kind);
    for (size_t i = 0; i < unequal_count; i++) {
        attribute *one = &unequal[i];
        if (strcmp(one->kind, kind) == 0 && strcmp(a, b) != 0) {
            bool in_a = cut_attribute(a_arrow != NULL ? a_arrow : a, one->name);
            bool in_b = cut_attribute(b_arrow != NULL ? b_arrow : b, one->name);
            one->is_used = one->is_used || in_a || in_b;
        }
    }
}

/* Compares line by line; prints what differs. */
static bool is_same(const char *name, char *theirs, char *ours)
{
    bool same = true;
    while (*theirs != '\0' || *ours != '\0') {
        char *a = theirs, *b = ours;
        theirs += strcspn(theirs, "\n");
        ours += strcspn(ours, "\n");
        theirs += *theirs == '\n' ? (*theirs = '\0', 1) : 0;
        ours += *ours == '\n' ? (*ours = '\0', 1) : 0;
        cut_words(a);
        cut_words(b);
        cut_chance(a, b);
        cut_listed(a, b);
        if (strcmp(a, b) != 0) {
            print_error("%s\n  temporal: %s\n  engine:   %s\n", name, a, b);
            same = false;
        }
    }
    return same;
}

/* ---- One scenario ------------------------------------------------------------------------------------------------ */

static hf_rig rig;

static void play(const scenario *s)
{
    char *text = contents(s->path);
    char *facts = strstr(text, "\n----\n");
    assert_non_null(facts);
    *facts = '\0';
    facts += 6;
    hf_core_options options = {.is_strict = true};
    char *script = text;
    while (*script == '#' || *script == '@') {
        if (strncmp(script, "@small", 6) == 0) {
            options.limits = (hf_core_limits){.pending = 2,
                                              .signals = 3,
                                              .history_count = 30,
                                              .suggest_count = 12,
                                              .keep_alive = INT64_C(1000000000),
                                              .updates = 3,
                                              .updates_in_flight = 2};
        }
        script += strcspn(script, "\n");
        script += *script == '\n';
    }
    hf_rig_open(&rig, options);
    /* What tests/oracle/server.conf registers. */
    hf_rig_do(&rig, "register ns; register small; addattr K type=Keyword; addattr N type=Int");
    rig.may_break = true; /* a poll is what it is: no words about it */
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    hf_facts_of(&rig, script, &out);
    char *ours = strdup(hf_buf_text(&out));
    hf_buf_deinit(&out);
    hf_rig_close(&rig);
    bool same = is_same(s->name, facts, ours);
    free(ours);
    free(text);
    assert_true(same);
}

static void test_alone(void **state)
{
    play(*state);
}

/* A scenario that is expected to differ, in a process of its own: it may end in the middle. */
static bool passes_alone(const scenario *s)
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (getenv("HF_ORACLE_SHOW") == NULL) {
            assert_non_null(freopen("/dev/null", "w", stdout));
            assert_non_null(freopen("/dev/null", "w", stderr));
        }
        const struct CMUnitTest one[] = {{s->name, test_alone, NULL, NULL, (void *)(uintptr_t)s}};
        _exit(_cmocka_run_group_tests("alone", one, 1, NULL, NULL) == 0 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_scenario(void **state)
{
    const scenario *s = *state;
    bool late = is_listed(not_yet, s->name), other = is_listed(different, s->name);
    if (!late && !other) {
        play(s);
        return;
    }
    if (passes_alone(s)) {
        fail_msg("%s is as on a Temporal server: take it off %s", s->name, late ? "NOT_YET" : "DIFFERENT");
    }
    skip();
}

/* Every name of a list is a scenario. */
static void test_lists(void **state)
{
    (void)state;
    const char *lists[] = {not_yet, different};
    size_t counts[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        for (const char *line = lists[i]; line != NULL && *line != '\0';
             line = strchr(line, '\n'), line += line != NULL) {
            char name[NAME_LEN_MAX] = "";
            bool known = sscanf(line, "%79s", name) != 1 || name[0] == '#';
            counts[i] += !known;
            for (size_t j = 0; j < scenario_count && !known; j++) {
                known = strcmp(scenarios[j].name, name) == 0;
            }
            if (!known) {
                fail_msg("there is no scenario '%s'", name);
            }
        }
    }
    print_message("%zu scenarios: %zu are played and compared, %zu cannot be played yet, %zu differ on purpose\n",
                  scenario_count, scenario_count - counts[0] - counts[1], counts[0], counts[1]);
}

/* An attribute that is listed makes a difference somewhere; known after all others have run. */
static void test_attributes(void **state)
{
    (void)state;
    for (size_t i = 0; i < unequal_count && getenv("HF_TEST_FILTER") == NULL; i++) {
        if (!unequal[i].is_used) {
            fail_msg("%s.%s is as on a Temporal server: take it off DIFFERENT_ATTRIBUTES", unequal[i].kind,
                     unequal[i].name);
        }
    }
}

static void read_attributes(void)
{
    char *list = list_of("DIFFERENT_ATTRIBUTES");
    for (const char *line = list; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        attribute *one = &unequal[unequal_count];
        if (sscanf(line, "%79[A-Za-z].%79[a-z_]", one->kind, one->name) == 2) {
            assert_true(++unequal_count < HF_COUNT_OF(unequal));
        }
    }
    free(list);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const scenario *)a)->name, ((const scenario *)b)->name);
}

static void find(void)
{
    DIR *folder = opendir(HF_ORACLE);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        size_t len = strlen(entry->d_name);
        if (len < 5 || len - 4 >= NAME_LEN_MAX || strcmp(entry->d_name + len - 4, ".txt") != 0) {
            continue;
        }
        assert_true(scenario_count < SCENARIOS_MAX);
        scenario *s = &scenarios[scenario_count++];
        (void)snprintf(s->name, sizeof s->name, "%.*s", (int)(len - 4), entry->d_name);
        (void)snprintf(s->path, sizeof s->path, "%s/%s", HF_ORACLE, entry->d_name);
    }
    (void)closedir(folder);
    qsort(scenarios, scenario_count, sizeof *scenarios, by_name);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[SCENARIOS_MAX + 2];
    find();
    not_yet = list_of("NOT_YET");
    different = list_of("DIFFERENT");
    read_attributes();
    tests[0] = (struct CMUnitTest)cmocka_unit_test(test_lists);
    for (size_t i = 0; i < scenario_count; i++) {
        tests[i + 1] = (struct CMUnitTest){scenarios[i].name, test_scenario, NULL, NULL, &scenarios[i]};
    }
    tests[scenario_count + 1] = (struct CMUnitTest)cmocka_unit_test(test_attributes);
    int code = hf_test_main("oracle", tests, scenario_count + 2, argc, argv);
    free(not_yet);
    free(different);
    return code;
}
