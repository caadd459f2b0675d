/* The simulated disk: what reads see, what a sync makes safe or drops, and what a power cut leaves. */
#include "sim_check.h"

#include <stdlib.h>
#include <string.h>

static void files_behave_as_opened(void **state)
{
    (void)state;
    hf_env *env = NULL;
    char buf[64] = {0};
    size_t count = 0;
    int fd = -1;
    int other = -1;
    assert_int_equal(hf_sim_new(&env, .seed = 1), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_READ, &fd), HF_ERR_NOT_FOUND);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_WRITE_NEW, &fd), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_WRITE_NEW, &other), HF_ERR_EXISTS);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "hello ", 6), HF_OK);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "you", 3), HF_OK);
    assert_int_equal(env->ops->file_read(env, NULL, fd, buf, sizeof buf, &count), HF_ERR_INVALID);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_APPEND, &fd), HF_OK);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "!", 1), HF_OK);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_READ, &fd), HF_OK);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "!", 1), HF_ERR_INVALID);
    assert_int_equal(env->ops->file_read(env, NULL, fd, buf, 4, &count), HF_OK);
    assert_int_equal(count, 4);
    assert_int_equal(env->ops->file_read(env, NULL, fd, buf + 4, sizeof buf - 4, &count), HF_OK);
    assert_int_equal(count, 6);
    assert_memory_equal(buf, "hello you!", 10);
    assert_int_equal(env->ops->file_read(env, NULL, fd, buf, sizeof buf, &count), HF_OK);
    assert_int_equal(count, 0);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_WRITE, &fd), HF_OK);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    char *bytes = NULL;
    assert_int_equal(hf_sim_file_get(env, "/a", &bytes, &count), HF_OK);
    assert_int_equal(count, 0);
    free(bytes);
    assert_int_equal(hf_sim_file_get(env, "/b", &bytes, &count), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_sim_file_put(env, "/b", "xyz", 3), HF_OK);
    assert_int_equal(hf_sim_file_get(env, "/b", &bytes, &count), HF_OK);
    assert_string_equal(bytes, "xyz");
    free(bytes);
    sim_finish(env, 1);
}

static void a_full_disk_takes_what_fits(void **state)
{
    (void)state;
    hf_env *env = NULL;
    int fd = -1;
    size_t count = 0;
    char *bytes = NULL;
    assert_int_equal(hf_sim_new(&env, .seed = 2, .disk_len_max = 10), HF_OK);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_WRITE, &fd), HF_OK);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "12345678", 8), HF_OK);
    assert_int_equal(env->ops->file_write(env, NULL, fd, "12345678", 8), HF_ERR_FULL);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    assert_int_equal(hf_sim_file_get(env, "/a", &bytes, &count), HF_OK);
    assert_int_equal(count, 10);
    free(bytes);
    assert_int_equal(env->ops->file_open(env, NULL, "/a", HF_FILE_WRITE, &fd), HF_OK); /* truncating makes room */
    assert_int_equal(env->ops->file_write(env, NULL, fd, "1234567890", 10), HF_OK);
    assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
    sim_finish(env, 2);
}

/* Appends records of one byte value each, syncing after every second one, until the power fails. Returns how many
 * bytes were synced for certain; `*ret_written` how many were handed over in all. */
enum { RECORD_LEN = 700, RECORDS = 12 };

static size_t append_until_crash(hf_env *env, size_t *ret_written)
{
    int fd = -1;
    size_t synced = 0;
    *ret_written = 0;
    if (env->ops->file_open(env, NULL, "/log", HF_FILE_APPEND, &fd) != HF_OK) {
        return 0;
    }
    for (int i = 0; i < RECORDS; i++) {
        char record[RECORD_LEN];
        memset(record, 'a' + i, sizeof record);
        *ret_written += sizeof record;
        if (env->ops->file_write(env, NULL, fd, record, sizeof record) != HF_OK) {
            break;
        }
        if (i % 2 == 1) {
            if (env->ops->file_sync(env, NULL, fd) != HF_OK) {
                break;
            }
            synced = *ret_written;
        }
    }
    (void)env->ops->file_close(env, NULL, fd);
    return synced;
}

static void what_was_synced_survives_a_crash(void **state)
{
    (void)state;
    int missing = 0;
    int lost = 0;
    int torn = 0;
    int whole = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        hf_env *env = NULL;
        hf_sim_counters counters;
        size_t written = 0;
        assert_int_equal(hf_sim_new(&env, .seed = seed, .crash_after = (int64_t)(1 + seed % 20)), HF_OK);
        size_t synced = append_until_crash(env, &written);
        hf_sim_count(env, &counters);
        assert_int_equal(counters.is_crashed, counters.file_operations > 1 + seed % 20);
        assert_int_equal(hf_sim_restart(env), HF_OK);
        char *bytes = NULL;
        size_t len = 0;
        hf_status status = hf_sim_file_get(env, "/log", &bytes, &len);
        assert_true(status == HF_OK || (status == HF_ERR_NOT_FOUND && synced == 0));
        assert_true(len <= written);
        bool is_torn = false;
        for (size_t i = 0; i < len; i++) {
            bool is_good = bytes[i] == (char)('a' + (int)(i / RECORD_LEN));
            assert_true(is_good || (i >= synced / 512 * 512 && bytes[i] == 0 && i >= synced));
            is_torn = is_torn || !is_good;
        }
        assert_true(status != HF_OK || len >= synced);
        missing += status != HF_OK ? 1 : 0;
        torn += is_torn ? 1 : 0;
        lost += status == HF_OK && !is_torn && len < written ? 1 : 0;
        whole += status == HF_OK && !is_torn && len == written ? 1 : 0;
        free(bytes);
        int fd = -1; /* the next boot works */
        assert_int_equal(env->ops->file_open(env, NULL, "/log", HF_FILE_APPEND, &fd), HF_OK);
        assert_int_equal(env->ops->file_write(env, NULL, fd, "z", 1), HF_OK);
        assert_int_equal(env->ops->file_sync(env, NULL, fd), HF_OK);
        assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
        sim_finish(env, seed);
    }
    print_message("missing %d, lost %d, torn %d, whole %d\n", missing, lost, torn, whole);
    assert_true(missing > 0 && lost > 0 && torn > 0 && whole > 0);
}

static void rewriting_leaves_old_or_new_blocks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        hf_env *env = NULL;
        char old[2000];
        char new[3000];
        int fd = -1;
        char *bytes = NULL;
        size_t len = 0;
        memset(old, 'o', sizeof old);
        memset(new, 'n', sizeof new);
        assert_int_equal(hf_sim_new(&env, .seed = seed), HF_OK);
        assert_int_equal(hf_sim_file_put(env, "/f", old, sizeof old), HF_OK);
        assert_int_equal(env->ops->file_open(env, NULL, "/f", HF_FILE_WRITE, &fd), HF_OK);
        assert_int_equal(env->ops->file_write(env, NULL, fd, new, seed % 2 == 0 ? sizeof new : 1000), HF_OK);
        assert_int_equal(hf_sim_restart(env), HF_OK);
        assert_int_equal(env->ops->file_sync(env, NULL, fd), HF_ERR_IO); /* from before the restart */
        assert_int_equal(env->ops->file_close(env, NULL, fd), HF_OK);
        assert_int_equal(hf_sim_file_get(env, "/f", &bytes, &len), HF_OK);
        for (size_t i = 0; i < len; i++) {
            assert_true(bytes[i] == 'n' || (bytes[i] == 'o' && i < sizeof old) || (bytes[i] == 0 && i >= sizeof old));
        }
        free(bytes);
        sim_finish(env, seed);
    }
}

static void errors_come_as_often_as_asked(void **state)
{
    (void)state;
    hf_env *env = NULL;
    int fd = -1;
    int errors = 0;
    assert_int_equal(hf_sim_new(&env, .seed = 4, .eio_permille = 200), HF_OK);
    while (env->ops->file_open(env, NULL, "/a", HF_FILE_APPEND, &fd) != HF_OK) {
    }
    for (int i = 0; i < 1000; i++) {
        hf_status status = env->ops->file_write(env, NULL, fd, "x", 1);
        assert_true(status == HF_OK || status == HF_ERR_IO);
        errors += status != HF_OK ? 1 : 0;
    }
    assert_in_range(errors, 120, 280);
    (void)env->ops->file_close(env, NULL, fd);
    assert_int_equal(hf_sim_descriptors(env), 0);
    sim_finish(env, 4);
}

/* A record of three pages is written, and then synced until that works. True: a sync has failed before. */
static bool write_and_sync(hf_env *env, int fd, bool writes_again)
{
    enum { LEN = 3 * 4096 };
    static char bytes[LEN];
    memset(bytes, 'x', sizeof bytes);
    bool has_failed = false;
    bool is_written = false;
    for (;;) {
        if (!is_written && env->ops->file_write(env, NULL, fd, bytes, sizeof bytes) != HF_OK) {
            return false; /* that is another story */
        }
        is_written = true;
        if (env->ops->file_sync(env, NULL, fd) == HF_OK) {
            return has_failed;
        }
        has_failed = true;
        is_written = !writes_again;
    }
}

static void a_failed_sync_drops_what_it_should_have_written(void **state)
{
    (void)state;
    int lost = 0;
    int kept = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        hf_env *env = NULL;
        int fd = -1;
        bool writes_again = seed % 2 == 0;
        assert_int_equal(hf_sim_new(&env, .seed = seed, .eio_permille = 150), HF_OK);
        while (env->ops->file_open(env, NULL, "/log", HF_FILE_APPEND, &fd) != HF_OK) {
        }
        bool has_failed = write_and_sync(env, fd, writes_again);
        (void)env->ops->file_close(env, NULL, fd);
        char *bytes = NULL;
        size_t len = 0;
        assert_int_equal(hf_sim_file_get(env, "/log", &bytes, &len), HF_OK);
        assert_true(!has_failed || (len > 0 && memchr(bytes, 0, len) == NULL)); /* the cache is right */
        free(bytes);
        assert_int_equal(hf_sim_restart(env), HF_OK);
        if (has_failed) {
            size_t left = 0;
            assert_int_equal(hf_sim_file_get(env, "/log", &bytes, &left), HF_OK); /* its name was synced */
            size_t from = writes_again ? left - 3 * 4096 : 0;                     /* appended: the last copy counts */
            bool is_whole = left == len && memchr(bytes + from, 0, left - from) == NULL;
            assert_true(is_whole || !writes_again);
            lost += is_whole ? 0 : 1;
            kept += is_whole ? 1 : 0;
            free(bytes);
        }
        sim_finish(env, seed);
    }
    print_message("lost %d, kept %d\n", lost, kept);
    assert_true(lost > 50 && kept > 50);
}

/* Syncs until that works; how often it was told of somebody else's failure. */
static int count_reports(hf_env *env, int fd)
{
    for (int reports = 0;;) {
        hf_op op;
        hf_op_init(&op);
        if (env->ops->file_sync(env, &op, fd) == HF_OK) {
            return reports;
        }
        reports += strstr(op.message, "an earlier sync by another descriptor failed") != NULL ? 1 : 0;
    }
}

static void each_descriptor_hears_of_a_failed_sync_once(void **state)
{
    (void)state;
    int failed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        hf_env *env = NULL;
        int fds[3] = {-1, -1, -1};
        bool has_failed = false;
        assert_int_equal(hf_sim_new(&env, .seed = seed, .eio_permille = 300), HF_OK);
        for (int i = 0; i < 3; i++) { /* the last one is opened after the failure */
            has_failed = i == 2 ? write_and_sync(env, fds[0], false) : false;
            while (env->ops->file_open(env, NULL, "/log", HF_FILE_APPEND, &fds[i]) != HF_OK) {
            }
        }
        if (has_failed) {
            assert_int_equal(count_reports(env, fds[2]), 0); /* the first has heard of it */
            int reports = count_reports(env, fds[1]);
            assert_true(reports <= 1); /* none if its own first sync failed */
            assert_int_equal(count_reports(env, fds[1]), 0);
            failed += reports;
        }
        for (int i = 0; i < 3; i++) {
            (void)env->ops->file_close(env, NULL, fds[i]);
        }
        sim_finish(env, seed);
    }
    assert_true(failed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_behave_as_opened),
        cmocka_unit_test(a_full_disk_takes_what_fits),
        cmocka_unit_test(what_was_synced_survives_a_crash),
        cmocka_unit_test(rewriting_leaves_old_or_new_blocks),
        cmocka_unit_test(errors_come_as_often_as_asked),
        cmocka_unit_test(a_failed_sync_drops_what_it_should_have_written),
        cmocka_unit_test(each_descriptor_hears_of_a_failed_sync_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
