/* Files. */
#include "unit/env/posix_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/hf-file-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void put(hf_file_mode mode, const char *text)
{
    int fd = -1;
    ASSERT_STATUS(HF_OK, ops()->file_open(posix(), &op, path, mode, &fd));
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    ASSERT_STATUS(HF_OK, ops()->file_write(posix(), &op, fd, text, strlen(text)));
    ASSERT_STATUS(HF_OK, ops()->file_sync(posix(), &op, fd));
    ASSERT_STATUS(HF_OK, ops()->file_close(posix(), &op, fd));
}

static void assert_content(const char *text)
{
    int fd = -1;
    char buf[64] = {0};
    size_t len = 0;
    ASSERT_STATUS(HF_OK, ops()->file_open(posix(), &op, path, HF_FILE_READ, &fd));
    ASSERT_STATUS(HF_OK, ops()->file_read(posix(), &op, fd, buf, sizeof buf - 1, &len));
    assert_int_equal(len, strlen(text));
    assert_string_equal(buf, text);
    ASSERT_STATUS(HF_OK, ops()->file_read(posix(), &op, fd, buf, sizeof buf, &len));
    assert_int_equal(len, 0);
    ASSERT_STATUS(HF_OK, ops()->file_close(posix(), &op, fd));
}

/* That the kernel really drops it is what tests/kernel shows. */
static void a_file_that_is_read_again_from_the_disk_is_as_it_was(void **state)
{
    (void)state;
    ASSERT_STATUS(HF_ERR_NOT_FOUND, ops()->file_reread(posix(), &op, path));
    put(HF_FILE_WRITE_NEW, "first");
    ASSERT_STATUS(HF_OK, ops()->file_reread(posix(), &op, path));
    assert_content("first");
    char link_path[sizeof folder + 8];
    (void)snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_not_equal(ops()->file_reread(posix(), &op, link_path), HF_OK);
    (void)unlink(link_path);
}

static void the_four_modes_do_what_they_say(void **state)
{
    (void)state;
    int fd = -1;
    ASSERT_STATUS(HF_ERR_NOT_FOUND, ops()->file_open(posix(), &op, path, HF_FILE_READ, &fd));
    put(HF_FILE_WRITE_NEW, "first");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0077, 0);
    ASSERT_STATUS(HF_ERR_EXISTS, ops()->file_open(posix(), &op, path, HF_FILE_WRITE_NEW, &fd));
    assert_content("first");
    put(HF_FILE_APPEND, " second");
    assert_content("first second");
    put(HF_FILE_WRITE, "third");
    assert_content("third");
}

/* env-E4, env-E5 */
static void failures_of_files_are_statuses(void **state)
{
    (void)state;
    int fd = -1;
    char byte = 0;
    size_t len = 0;
    ASSERT_STATUS(HF_ERR_INVALID, ops()->file_open(posix(), &op, path, (hf_file_mode)9, &fd));
    ASSERT_STATUS(HF_ERR_NOT_FOUND, ops()->file_open(posix(), &op, "/nonexistent/x", HF_FILE_WRITE, &fd));
    ASSERT_STATUS(HF_ERR_IO, ops()->file_read(posix(), &op, -1, &byte, 1, &len));
    ASSERT_STATUS(HF_ERR_IO, ops()->file_write(posix(), &op, -1, &byte, 1));
    ASSERT_STATUS(HF_ERR_IO, ops()->file_sync(posix(), &op, -1));
    ASSERT_STATUS(HF_ERR_IO, ops()->file_close(posix(), &op, -1));
    if (access("/dev/full", W_OK) == 0) {
        ASSERT_STATUS(HF_OK, ops()->file_open(posix(), &op, "/dev/full", HF_FILE_APPEND, &fd));
        ASSERT_STATUS(HF_ERR_FULL, ops()->file_write(posix(), &op, fd, "x", 1));
        ASSERT_STATUS(HF_OK, ops()->file_close(posix(), &op, fd));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_four_modes_do_what_they_say, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_file_that_is_read_again_from_the_disk_is_as_it_was, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(failures_of_files_are_statuses, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
