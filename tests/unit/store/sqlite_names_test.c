/* A database and its log belong together, under their names: what happens when one of them is another's, or gone. */
#include "backends.h"
#include "folder.h"

#include "store/sqlite/sqlite_private.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- At opening ---------------------------------------------------------------------------------------------------- */

/* The file's log, as a killed program leaves it. */
static void leave_log(const char *path, int64_t row)
{
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, path, NULL, &p.store), HF_OK);
    p.commit = p.store->ops->last_commit(p.store);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(row), HF_STR("x")));
    ((hf_sqlite *)p.store)->is_poisoned = true;
    hf_store_close(p.store);
}

static void back_up(const char *path, const char *copy)
{
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, path, NULL, &p.store), HF_OK);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = copy};
    do {
        run(&p, &backup);
    } while (backup.more);
    hf_store_close(p.store);
}

/* Refused, by owners and by tools, with a sentence that names the log; neither changes. */
static void refuses_the_log(const char *path, const char *log, const char *says)
{
    static const hf_sqlite_options WAYS[] = {{0}, {.must_exist = true}, {.read_only = true}};
    struct stat before;
    struct stat after;
    assert_int_equal(stat(log, &before), 0);
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        hf_op op;
        hf_op_init(&op);
        hf_store *store = NULL;
        assert_int_equal(hf_sqlite_open(&op, HEAP, path, &WAYS[i], &store), HF_ERR_INVALID);
        assert_non_null(strstr(op.message, says));
        assert_non_null(strstr(op.message, "-wal"));
        assert_int_equal(stat(log, &after), 0);
        assert_true(after.st_size == before.st_size && after.st_size > 0);
    }
}

/* SQLite would play the old log over the backup: pages of two times in one file. */
static void sqlite_put_back_from_a_backup_is_not_given_the_log_of_its_predecessor(void **state)
{
    (void)state;
    folder f = folder_new();
    leave_log(f.file, 1);
    back_up(f.file, f.copy);
    leave_log(f.file, 2);
    assert_int_equal(rename(f.copy, f.file), 0);
    refuses_the_log(f.file, f.log, "is the log of another file");
    assert_int_equal(unlink(f.log), 0);
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_OK);
    assert_int_equal(store->ops->last_commit(store), 1);
    hf_store_close(store);
    leave_log(f.file, 2); /* from now on it has a log of its own, which is played */
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_OK);
    assert_int_equal(store->ops->last_commit(store), 2);
    hf_store_close(store);
    folder_free(&f);
}

static void sqlite_whose_file_is_gone_keeps_its_log(void **state)
{
    (void)state;
    folder f = folder_new();
    leave_log(f.file, 1);
    assert_int_equal(rename(f.file, f.copy), 0);
    refuses_the_log(f.file, f.log, "put the file back");
    FILE *empty = fopen(f.file, "we");
    assert_non_null(empty);
    assert_int_equal(fclose(empty), 0);
    refuses_the_log(f.file, f.log, "put the file back");
    assert_int_equal(rename(f.copy, f.file), 0);
    leave_log(f.file, 2); /* is its second commit */
    folder_free(&f);
}

/* ---- While it is open ---------------------------------------------------------------------------------------------- */

/* What somebody may do to a file that is open; `kept` is where it is afterwards. */
static void lose_file(const char *file, const char *log, const char *kept)
{
    (void)log;
    assert_int_equal(rename(file, kept), 0);
}

static void lose_log(const char *file, const char *log, const char *kept)
{
    (void)file;
    (void)kept;
    assert_int_equal(unlink(log), 0);
}

static void lose_to_another(const char *file, const char *log, const char *kept)
{
    lose_file(file, log, kept);
    FILE *another = fopen(file, "we");
    assert_non_null(another);
    assert_true(fputs("another", another) >= 0);
    assert_int_equal(fclose(another), 0);
}

static void lose_both(const char *file, const char *log, const char *kept)
{
    lose_file(file, log, kept);
    lose_log(file, log, kept);
}

/* It looks every few milliseconds. The last commit that was taken; after it none is. */
static uint64_t commit_until_refused(place *p, uint64_t last)
{
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    hf_status status = HF_OK;
    while ((status = commit_as(p, last + 1, &write, 1)) == HF_OK) {
        last++;
    }
    assert_int_equal(status, HF_ERR_STORE);
    assert_int_equal(commit_as(p, last + 1, &write, 1), HF_ERR_STORE);
    return last;
}

/* Soon after the loss nothing is answered for, and what was before is in the file that is left. */
static void sqlite_whose_file_or_log_is_lost_answers_nothing_more(void **state)
{
    (void)state;
    static void (*const LOSSES[])(const char *file, const char *log, const char *kept) = {lose_file, lose_log,
                                                                                          lose_to_another, lose_both};
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        folder f = folder_new();
        hf_op op;
        hf_op_init(&op);
        place p = {.kind = "sqlite"};
        assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
        COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
        LOSSES[i](f.file, f.log, f.copy);
        uint64_t last = commit_until_refused(&p, 1);
        hf_store_close(p.store);
        assert_true(rename(f.copy, f.file) == 0 || LOSSES[i] == lose_log);
        assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
        assert_int_equal(p.store->ops->last_commit(p.store), last);
        hf_store_close(p.store);
        folder_free(&f);
    }
}

static void copy_file(const char *from_path, const char *to_path)
{
    char bytes[4096];
    size_t len = 0;
    FILE *from = fopen(from_path, "re");
    FILE *to = fopen(to_path, "we");
    assert_true(from != NULL && to != NULL);
    while ((len = fread(bytes, 1, sizeof bytes, from)) > 0) {
        assert_int_equal(fwrite(bytes, 1, len, to), len);
    }
    assert_int_equal(fclose(from) | fclose(to), 0);
}

/* As who restores file by file under a running program does. The older log must not be played over what is newer. */
static void sqlite_whose_log_is_replaced_by_an_older_one_loses_nothing(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    copy_file(f.log, f.copy);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(2), HF_STR("y")));
    assert_int_equal(rename(f.copy, f.log), 0);
    uint64_t last = commit_until_refused(&p, 2);
    hf_store_close(p.store);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    assert_int_equal(p.store->ops->last_commit(p.store), last);
    hf_store_close(p.store);
    folder_free(&f);
}

static void sqlite_whose_log_is_a_link_says_so(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_OK);
    hf_store_close(store);
    assert_int_equal(symlink("elsewhere", f.log), 0);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_ERR_DENIED);
    assert_non_null(strstr(op.message, "is a symbolic link. Remove the link"));
    assert_int_equal(unlink(f.log), 0);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &store), HF_OK);
    hf_store_close(store);
    folder_free(&f);
}

/* ---- How it was left -------------------------------------------------------------------------------------------------- */

static bool was_left_open(const char *path)
{
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, path, NULL, &store), HF_OK);
    bool was = store->was_left_open;
    hf_store_close(store);
    return was;
}

static void sqlite_tells_whether_the_last_program_closed_it(void **state)
{
    (void)state;
    folder f = folder_new();
    assert_false(was_left_open(f.file)); /* new */
    assert_false(was_left_open(f.file));
    leave_log(f.file, 1);
    assert_true(was_left_open(f.file));
    assert_false(was_left_open(f.file)); /* by now it was closed */
    folder_free(&f);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(sqlite_tells_whether_the_last_program_closed_it),
    cmocka_unit_test(sqlite_put_back_from_a_backup_is_not_given_the_log_of_its_predecessor),
    cmocka_unit_test(sqlite_whose_file_is_gone_keeps_its_log),
    cmocka_unit_test(sqlite_whose_file_or_log_is_lost_answers_nothing_more),
    cmocka_unit_test(sqlite_whose_log_is_a_link_says_so),
    cmocka_unit_test(sqlite_whose_log_is_replaced_by_an_older_one_loses_nothing),
};

int main(int argc, char **argv)
{
    return hf_test_main("sqlite_names", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
