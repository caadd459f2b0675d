/* The log of a depot's file stays short while the depot is open. */
#include "support/support.h"

#include <holdfast/depot.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUES = 3000, VALUE_LEN = 1000, LOG_LEN_MAX = 16 << 20 }; /* the store's bound is 8 MiB */

static char folder[64];

static void path_of(char *ret_path, size_t capacity, const char *suffix)
{
    (void)snprintf(ret_path, capacity, "%s/values.db%s", folder, suffix);
}

static int64_t len_of(const char *suffix)
{
    char path[128];
    struct stat facts;
    path_of(path, sizeof path, suffix);
    return stat(path, &facts) == 0 ? (int64_t)facts.st_size : 0;
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    static const char VALUE[VALUE_LEN] = {1};
    (void)state;
    (void)request;
    return hf_reply_value(reply, VALUE, sizeof VALUE);
}

/* Each is a commit of its own, with some pages: without checkpoints the log would have some 30 MiB in the end. */
static hf_status land_many(void *arg)
{
    (void)arg;
    char url[140] = "sqlite:";
    hf_depot *depot = NULL;
    int64_t longest = 0;
    path_of(url + strlen(url), sizeof url - strlen(url), "");
    HF_TRY(hf_depot_open("log", &depot, .fetch = fetch, .file = url));
    for (int i = 0; i < VALUES; i++) {
        char name[16];
        hf_value *value = NULL;
        (void)snprintf(name, sizeof name, "%d", i * 7919 % VALUES);
        HF_TRY(hf_depot_get(depot, hf_depot_key_of("test", "value", name), &value));
        hf_value_unref(value);
        int64_t len = len_of("-wal");
        longest = len > longest ? len : longest;
    }
    print_message("the log had at most %lld bytes\n", (long long)longest);
    HF_CHECK(longest > 1 << 20 && longest < LOG_LEN_MAX);
    return hf_depot_close(depot);
}

static void a_log_is_moved_into_its_file_as_it_grows(void **state)
{
    (void)state;
    hf_runtime *runtime = NULL;
    hf_scope *scope = NULL;
    (void)snprintf(folder, sizeof folder, "%s", "/tmp/hf-depot-log.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hf_runtime_new(&runtime, .threads = 1), HF_OK);
    assert_int_equal(hf_scope_open(&scope, .runtime = runtime), HF_OK);
    assert_int_equal(hf_fork(scope, land_many, NULL), HF_OK);
    assert_int_equal(hf_join(scope), HF_OK);
    assert_int_equal(hf_scope_close(scope), HF_OK);
    assert_int_equal(hf_runtime_free(runtime), HF_OK);
    static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        char path[128];
        path_of(path, sizeof path, SUFFIXES[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static const struct CMUnitTest TESTS[] = {cmocka_unit_test(a_log_is_moved_into_its_file_as_it_grows)};

int main(int argc, char **argv)
{
    return hf_test_main("depot log", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
