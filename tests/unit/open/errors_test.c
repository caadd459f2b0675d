/* labels: threads */
/* What cannot be opened: each with a sentence that says what is wrong and what to do, and left as it was. */
#include "unit/open/place.h"

#include "support/vfs.h"

#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- Ways to spoil a file. Offsets: SQLite's header ------------------------------------------------------------------ */

static void spoil_nothing(const place *p)
{
    (void)p;
}

static void spoil_short(const place *p)
{
    assert_int_equal(truncate(p->path, 8192), 0);
}

static void spoil_tiny(const place *p)
{
    assert_int_equal(truncate(p->path, 50), 0);
}

static void spoil_zeros(const place *p)
{
    static const char ZEROS[4096];
    file_put(p->path, 0, ZEROS, sizeof ZEROS);
}

static void spoil_text(const place *p)
{
    assert_int_equal(truncate(p->path, 0), 0);
    for (size_t i = 0; i < 100; i++) {
        file_put(p->path, i * 50, "Dear diary, today I was taken for a database. Oh! ", 50);
    }
}

static void spoil_newer(const place *p)
{
    file_put(p->path, 60, "\0\0\0\x63", 4);
}

static void spoil_foreign(const place *p)
{
    file_put(p->path, 68, "\x12\x34\x56\x78", 4);
}

static void spoil_unfinished(const place *p)
{
    file_put(p->path, 68, "HFSP", 4);
}

static void spoil_fifo(const place *p)
{
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(mkfifo(p->path, 0600), 0); /* whoever opens it waits for a writer */
}

static void spoil_socket(const place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_int_equal(unlink(p->path), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", p->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    (void)close(fd);
}

static void spoil_device(const place *p)
{
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(symlink("/dev/null", p->path), 0);
}

static void spoil_folder(const place *p)
{
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(mkdir(p->path, 0700), 0);
}

/* A page that holds a table: SQLite or the engine must notice. */
static void spoil_pages(const place *p)
{
    char junk[4096];
    memset(junk, 0x5a, sizeof junk);
    for (size_t page = 1; page < 11; page++) {
        file_put(p->path, page * 4096, junk, sizeof junk);
    }
}

static const struct {
    const char *name;
    void (*spoil)(const place *p);
    const char *tail; /* of the address, behind the path */
    hf_status status;
    const char *says[2]; /* what is wrong, what to do */
} CASES[] = {
    {"cut short", spoil_short, "", HF_ERR_INVALID, {"is cut short: 8192 bytes", "restore it from a backup"}},
    {"50 bytes", spoil_tiny, "", HF_ERR_INVALID, {"is cut short", "restore it from a backup"}},
    {"zeros", spoil_zeros, "", HF_ERR_INVALID, {"begins with zeros", "restore it from a backup"}},
    {"text", spoil_text, "", HF_ERR_INVALID, {"is not a database", "name another file"}},
    {"newer", spoil_newer, "", HF_ERR_UNSUPPORTED, {"has version 99", "use a newer program"}},
    {"foreign", spoil_foreign, "", HF_ERR_INVALID, {"of another program", "name another file"}},
    {"unfinished", spoil_unfinished, "", HF_ERR_INVALID, {"not finished", "delete it and make another"}},
    {"folder", spoil_folder, "", HF_ERR_INVALID, {"is a folder", "name a file in it"}},
    {"fifo", spoil_fifo, "", HF_ERR_INVALID, {"x.db is a fifo", "not a regular file: name another file"}},
    {"socket", spoil_socket, "", HF_ERR_INVALID, {"x.db is a socket", "not a regular file: name another file"}},
    {"device", spoil_device, "", HF_ERR_INVALID, {"x.db is a device", "not a regular file: name another file"}},
    {"pages", spoil_pages, "", HF_ERR_INVALID, {"is damaged", "restore it from a backup"}},
    {"no folder", spoil_nothing, "/there/y.db", HF_ERR_NOT_FOUND, {"there is no such folder", "make it first"}},
    {"key", spoil_nothing, "?memory=5", HF_ERR_INVALID, {"unknown key \"memory\"", "mem=SIZE"}},
    {"no pair", spoil_nothing, "?mem", HF_ERR_INVALID, {"\"mem\" in an address is not key=value", "mem=SIZE"}},
    {"size", spoil_nothing, "?mem=much", HF_ERR_INVALID, {"mem=much is not a size", "48M"}},
    {"small", spoil_nothing, "?mem=1K", HF_ERR_INVALID, {"mem=1K is too small", "at least 16M"}},
    {"little", spoil_nothing, "?log=1K", HF_ERR_INVALID, {"log=1K is too small", "at least 64K"}},
    {"huge", spoil_nothing, "?mem=99999999999999999999G", HF_ERR_INVALID, {"is not a size", "48M"}},
    {"durability", spoil_nothing, "?mem=48M&durability=some", HF_ERR_INVALID, {"durability=some", "full or normal"}},
};

static void make_database(const place *p)
{
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(place_count(p), 1);
}

/* open-O2 */
static void what_cannot_be_opened_says_why_and_is_left_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        void *own = NULL;
        (void)place_open(&own);
        const place *p = own;
        print_message("%s\n", CASES[i].name);
        make_database(p);
        CASES[i].spoil(p);
        uint64_t before = file_hash(p->path);
        char address[300];
        (void)snprintf(address, sizeof address, "%s%s", p->address, CASES[i].tail);
        hf_service *service = NULL;
        assert_int_equal(hf_open(address, &service), CASES[i].status);
        assert_null(service);
        for (size_t k = 0; k < 2; k++) {
            if (strstr(hf_error_text(), CASES[i].says[k]) == NULL) {
                fail_msg("'%s' does not say '%s'", hf_error_text(), CASES[i].says[k]);
            }
        }
        assert_true(file_hash(p->path) == before);
        char log[200];
        (void)snprintf(log, sizeof log, "%s-wal", p->path);
        struct stat info;
        int logs = stat(log, &info) == 0 ? 1 : 0; /* SQLite may leave an empty one */
        assert_true(logs == 0 || info.st_size == 0);
        assert_int_equal(place_count(p), 1 + logs); /* no lock, no socket */
        (void)place_close(&own);
    }
}

static void an_address_of_nothing_known_lists_what_there_is(void **state)
{
    (void)state;
    static const char *const ADDRESSES[] = {"", "orders.db", "mysql:x", "sqlite:", "sqlite:?mem=48M", "memory:x"};
    for (size_t i = 0; i < HF_COUNT_OF(ADDRESSES); i++) {
        hf_service *service = NULL;
        print_message("'%s'\n", ADDRESSES[i]);
        assert_int_equal(hf_open(ADDRESSES[i], &service), HF_ERR_INVALID);
        assert_true(strstr(hf_error_text(), "sqlite:") != NULL || strstr(hf_error_text(), "memory:") != NULL);
    }
    assert_int_equal(hf_open_with(NULL, NULL, NULL), HF_ERR_MISUSE);
}

static void a_missing_folder_is_named(void **state)
{
    const place *p = *state;
    char address[300];
    (void)snprintf(address, sizeof address, "sqlite:%s/none/x.db", p->folder);
    hf_service *service = NULL;
    assert_int_equal(hf_open(address, &service), HF_ERR_NOT_FOUND);
    assert_non_null(strstr(hf_error_text(), "there is no such folder; make it first"));
    assert_int_equal(place_count(p), 0);
}

static void a_full_disk_is_named_and_later_it_works(void **state)
{
    const place *p = *state;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    hf_vfs *disk = hf_vfs_new("full", 1);
    assert_int_equal(sqlite3_vfs_register(sqlite3_vfs_find("full"), 1), SQLITE_OK);
    hf_vfs_fail(disk, HF_IO_ANY, 1, HF_FAULT_ENOSPC, true);
    hf_service *service = NULL;
    assert_int_equal(hf_open(p->address, &service), HF_ERR_FULL);
    assert_non_null(strstr(hf_error_text(), "full"));
    hf_vfs_fail(disk, 0, 0, HF_FAULT_ENOSPC, false);
    assert_int_equal(hf_open(p->address, &service), HF_OK);
    assert_int_equal(hf_close(service), HF_OK);
    assert_int_equal(sqlite3_vfs_register(real, 1), SQLITE_OK);
    hf_vfs_free(disk);
}

/* ---- Rights: in a child, since a superuser may everything -------------------------------------------------------------- */

static int as_nobody(int (*body)(const place *p), const place *p)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(geteuid() == 0 && setresuid(65534, 65534, 65534) != 0 ? 99 : body(p));
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 98;
}

static int open_it(const place *p)
{
    hf_service *service = NULL;
    hf_status status = hf_open(p->address, &service);
    const char *says = status == HF_ERR_DENIED ? hf_error_text() : "";
    if (strstr(says, "this user") != NULL || strstr(says, "its folder cannot be written to") != NULL) {
        return 1;
    }
    (void)fprintf(stderr, "status %d: %s\n", (int)status, hf_error_text());
    return 0;
}

static void what_may_only_be_read_is_named_and_left_alone(void **state)
{
    const place *p = *state;
    make_database(p);
    uint64_t before = file_hash(p->path);
    assert_int_equal(chmod(p->folder, 0755), 0); /* the file may be read, its folder not written */
    assert_int_equal(chmod(p->path, 0444), 0);
    if (geteuid() != 0) {
        assert_int_equal(chmod(p->folder, 0555), 0);
    }
    assert_int_equal(as_nobody(open_it, p), 1);
    assert_int_equal(chmod(p->folder, 0777), 0); /* the folder may be written, the file only read */
    assert_int_equal(as_nobody(open_it, p), 1);
    assert_true(file_hash(p->path) == before);
    assert_int_equal(place_count(p), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
static const struct CMUnitTest TESTS[] = {
    TEST(what_cannot_be_opened_says_why_and_is_left_alone),
    TEST(an_address_of_nothing_known_lists_what_there_is),
    TEST(a_missing_folder_is_named),
    TEST(a_full_disk_is_named_and_later_it_works),
    TEST(what_may_only_be_read_is_named_and_left_alone),
};

int main(int argc, char **argv)
{
    return hf_test_main("errors", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
