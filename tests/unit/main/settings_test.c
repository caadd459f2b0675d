/* Settings: flags come before the environment, and the environment before the file. */
#include "support/support.h"

#include "base/env.h"

#include "main/settings.c"

#include <unistd.h>

static hf_arena arena;
static hf_op op;

static int set_up(void **state)
{
    (void)state;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_op_init(&op);
    (void)unsetenv("HOLDFAST_STORE");
    (void)unsetenv("HOLDFAST_LISTEN");
    (void)unsetenv("HOLDFAST_LOG_LEVEL");
    (void)unsetenv("HOLDFAST_CONFIG");
    (void)unsetenv("HOLDFAST_INSECURE_NETWORK");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_arena_deinit(&arena);
    return 0;
}

static char *file_with(const char *text)
{
    static char path[] = "/tmp/holdfast_settings_XXXXXX";
    (void)snprintf(path, sizeof path, "/tmp/holdfast_settings_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    return path;
}

static void flags_come_before_the_environment_and_that_before_the_file(void **state)
{
    (void)state;
    hf_settings settings;
    char *path = file_with("# a comment\n\n store = sqlite:file.db \nlog-level=debug\nlisten = unix:/run/f\n"
                           "insecure-network = yes\n");
    char *args[] = {"--config", path, "--store=sqlite:flag.db"};
    assert_int_equal(setenv("HOLDFAST_STORE", "sqlite:environment.db", 1), 0);
    assert_int_equal(setenv("HOLDFAST_LISTEN", "127.0.0.1:1,127.0.0.1:2", 1), 0);
    assert_int_equal(hf_settings_read(&op, &settings, &arena, 3, args), HF_OK);
    assert_string_equal(hf_setting_get(&settings, HF_SETTING_STORE), "sqlite:flag.db");
    assert_int_equal(settings.all[HF_SETTING_LISTEN].count, 2); /* of the environment, none of the file */
    assert_string_equal(settings.all[HF_SETTING_LISTEN].values[1], "127.0.0.1:2");
    assert_string_equal(hf_setting_get(&settings, HF_SETTING_LOG_LEVEL), "debug");
    assert_true(hf_setting_is_on(&settings, HF_SETTING_INSECURE_NETWORK));
    assert_null(hf_setting_get(&settings, HF_SETTING_KEYS));
    (void)unlink(path);
}

static void the_file_can_be_named_by_the_environment(void **state)
{
    (void)state;
    hf_settings settings;
    char *path = file_with("store = memory:\n");
    assert_int_equal(setenv("HOLDFAST_CONFIG", path, 1), 0);
    assert_int_equal(hf_settings_read(&op, &settings, &arena, 0, NULL), HF_OK);
    assert_string_equal(hf_setting_get(&settings, HF_SETTING_STORE), "memory:");
    (void)unlink(path);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *args[3];
        const char *file; /* NULL = none */
        const char *words;
    } CASES[] = {
        {{"--stroe", "x", NULL}, NULL, "no option --stroe"},
        {{"--store", NULL, NULL}, NULL, "--store needs a value"},
        {{"--store=a", "--store=b", NULL}, NULL, "store is set twice"},
        {{"store", NULL, NULL}, NULL, "'store' is not an option"},
        {{"--config", "/nowhere/at/all", NULL}, NULL, "cannot read the settings in /nowhere/at/all"},
        {{NULL}, "store\n", ":1: a line is `name = value`"},
        {{NULL}, "\nstroe = x\n", ":2: there is no setting 'stroe'"},
        {{NULL}, "config = x\n", ":1: there is no setting 'config'"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_settings settings;
        char *args[3] = {0};
        int count = 0;
        hf_op_init(&op);
        char *path = CASES[i].file != NULL ? file_with(CASES[i].file) : NULL;
        if (path != NULL) {
            args[count++] = "--config";
            args[count++] = path;
        }
        for (int k = 0; CASES[i].args[k] != NULL; k++) {
            args[count++] = (char *)(uintptr_t)CASES[i].args[k];
        }
        assert_int_not_equal(hf_settings_read(&op, &settings, &arena, count, args), HF_OK);
        print_message("%s\n", op.message);
        assert_non_null(strstr(op.message, CASES[i].words));
        if (path != NULL) {
            (void)unlink(path);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest TESTS[] = {
    TEST(flags_come_before_the_environment_and_that_before_the_file),
    TEST(the_file_can_be_named_by_the_environment),
    TEST(what_is_wrong_is_named),
};

int main(int argc, char **argv)
{
    return hf_test_main("settings", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
