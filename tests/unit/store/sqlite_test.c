/* The SQLite store as a file: what it refuses to open and says then, backups, checkpoints, migrations; on a simulated disk
 * where that will do, on a real one where modes and locks matter. */
#include "backends.h"
#include "folder.h"

#include "store/sqlite/sqlite_private.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Opening ------------------------------------------------------------------------------------------------------- */

typedef struct bad_file {
    const char *name;           /* what is wrong, for the log */
    void (*make)(hf_vfs *disk); /* changes a good one */
    hf_status status;           /* of the open */
    const char *sentence;       /* a part of it */
} bad_file;

static void write_byte(hf_vfs *disk, uint64_t offset, unsigned char byte)
{
    unsigned char old = 0;
    size_t len = 0;
    assert_true(hf_vfs_read_file(disk, "test.db", offset, &old, 1, &len));
    for (unsigned bit = 0; bit < 8; bit++) {
        if (((old ^ byte) >> bit & 1) != 0) {
            assert_true(hf_vfs_flip(disk, "test.db", offset, bit));
        }
    }
}

static void make_tiny(hf_vfs *disk)
{
    hf_vfs_write_file(disk, "test.db", "SQLite format 3", 16);
}

static void make_text(hf_vfs *disk)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    hf_vfs_write_file(disk, "test.db", text, sizeof text);
}

static void make_zeros(hf_vfs *disk)
{
    for (uint64_t i = 0; i < 100; i++) {
        write_byte(disk, i, 0);
    }
}

static void make_short(hf_vfs *disk)
{
    uint64_t len = 0;
    assert_true(hf_vfs_file_size(disk, "test.db", &len));
    assert_true(hf_vfs_truncate_file(disk, "test.db", len - 1));
}

static void make_shorter(hf_vfs *disk)
{
    assert_true(hf_vfs_truncate_file(disk, "test.db", 4096));
}

static void make_foreign(hf_vfs *disk)
{
    write_byte(disk, 68, 0);
}

static void make_unfinished(hf_vfs *disk)
{
    write_byte(disk, 71, 'P');
}

static void make_newer(hf_vfs *disk)
{
    write_byte(disk, 63, (unsigned char)(hf_schema_version(&hf_engine_tables) + 1));
}

static void make_unversioned(hf_vfs *disk)
{
    write_byte(disk, 63, 0);
}

static void make_odd_pages(hf_vfs *disk)
{
    write_byte(disk, 16, 0x33);
}

static void make_no_tables(hf_vfs *disk)
{
    write_byte(disk, 100, 0x77); /* the kind of the first page */
}

static const bad_file BAD_FILES[] = {
    {"a few bytes", make_tiny, HF_ERR_INVALID, "is cut short"},
    {"a text", make_text, HF_ERR_INVALID, "is not a database"},
    {"zeros", make_zeros, HF_ERR_INVALID, "begins with zeros"},
    {"one byte less", make_short, HF_ERR_INVALID, "is cut short"},
    {"one page only", make_shorter, HF_ERR_INVALID, "is cut short"},
    {"another program's", make_foreign, HF_ERR_INVALID, "is a database of another program"},
    {"an unfinished backup", make_unfinished, HF_ERR_INVALID, "is a backup that was not finished"},
    {"a newer version", make_newer, HF_ERR_UNSUPPORTED, "use a newer program"},
    {"no version", make_unversioned, HF_ERR_INVALID, "is a database of another program"},
    {"an odd page size", make_odd_pages, HF_ERR_INVALID, "is damaged"},
    {"a damaged first page", make_no_tables, HF_ERR_INVALID, "is damaged"},
};

/* Of the database itself: SQLite may have looked for a log, and leaves an empty one. */
static uint64_t content_of(hf_vfs *disk)
{
    static unsigned char bytes[256 * 1024];
    size_t len = 0;
    assert_true(hf_vfs_read_file(disk, "test.db", 0, bytes, sizeof bytes, &len));
    return hf_hash_bytes(1, bytes, len);
}

static void sqlite_refuses_a_bad_file_with_a_sentence_and_leaves_it_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof BAD_FILES / sizeof *BAD_FILES; i++) {
        const bad_file *bad = &BAD_FILES[i];
        print_message("%s\n", bad->name);
        place p = place_new("sqlite");
        COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
        hf_store_close(p.store);
        p.store = NULL;
        bad->make(p.disk);
        uint64_t before = content_of(p.disk);
        hf_op op;
        assert_int_equal(place_try_open(&p, &op), bad->status);
        assert_non_null(strstr(op.message, bad->sentence));
        assert_non_null(strstr(op.message, "test.db"));
        assert_int_equal(content_of(p.disk), before);
        place_free(&p);
    }
}

static void sqlite_refuses_a_newer_version_that_is_still_in_the_log(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_sqlite *inside = (hf_sqlite *)p.store;
    assert_int_equal(sqlite3_exec(inside->db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
    inside->is_poisoned = true; /* so that closing leaves the log */
    hf_store_close(p.store);
    p.store = NULL;
    uint64_t before = hf_vfs_hash(p.disk);
    hf_op op;
    assert_int_equal(place_try_open(&p, &op), HF_ERR_UNSUPPORTED);
    assert_int_equal(hf_vfs_hash(p.disk), before);
    place_free(&p);
}

static void sqlite_takes_an_empty_file_for_a_new_one(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    hf_store_close(p.store);
    hf_vfs_write_file(p.disk, "test.db", "", 0);
    place_open(&p);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    place_free(&p);
}

static void sqlite_that_must_exist_is_not_made(void **state)
{
    (void)state;
    hf_vfs *disk = hf_vfs_new("place", 1);
    hf_sqlite_options options = {.vfs = "place", .must_exist = true};
    hf_op op;
    hf_op_init(&op);
    hf_store *store = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, "none.db", &options, &store), HF_ERR_NOT_FOUND);
    assert_string_equal(op.message, "there is no database none.db");
    assert_null(hf_vfs_file_name(disk, 0));
    options = (hf_sqlite_options){.vfs = "no such thing"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, "none.db", &options, &store), HF_ERR_NOT_FOUND);
    options = (hf_sqlite_options){.vfs = "place", .page_size = 1000};
    assert_int_equal(hf_sqlite_open(&op, HEAP, "odd.db", &options, &store), HF_ERR_MISUSE);
    hf_vfs_free(disk);
}

static void sqlite_that_is_open_is_not_opened_again(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    place second = p;
    hf_op op;
    assert_int_equal(place_try_open(&second, &op), HF_ERR_CONFLICT);
    assert_non_null(strstr(op.message, "is open already"));
    COMMIT(&p, put(HF_TABLE_RUN, key_a(2), HF_STR("x")));
    place_free(&p);
}

static void sqlite_on_a_full_disk_says_so_and_goes_on_when_there_is_room(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    uint64_t before = hash_of(&p);
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    for (uint64_t nth = 1; nth < 4; nth++) {
        hf_vfs_fail(p.disk, HF_IO_WRITE, nth, HF_FAULT_ENOSPC, false);
        hf_status status = commit_as(&p, p.commit + 1, &write, 1);
        if (status == HF_OK) {
            p.commit++;
            break;
        }
        assert_int_equal(status, HF_ERR_FULL);
        assert_int_equal(hash_of(&p), before);
    }
    hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(3), HF_STR("z")));
    place_reopen(&p);
    hf_arena arena;
    hf_arena_init(&arena, HEAP);
    assert_true(get(&p, &arena, HF_TABLE_RUN, key_a(3)).found);
    hf_arena_deinit(&arena);
    place_free(&p);
}

/* Calls that write for one commit of ten pages. */
static uint64_t writes_of_a_commit(place *p)
{
    static char page[40000];
    uint64_t before = hf_vfs_io_ops(p->disk, HF_IO_WRITE);
    COMMIT(p, put(HF_TABLE_RUN, key_a((int64_t)p->commit + 1), hf_str_of_len(page, sizeof page)));
    return hf_vfs_io_ops(p->disk, HF_IO_WRITE) - before;
}

static void sqlite_log_that_has_its_room_is_written_in_one_go(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    for (int i = 0; i < 3; i++) {
        assert_true(writes_of_a_commit(&p) >=
                    10); /* the log grows: each page by itself, so that a full disk is found there */
    }
    hf_store_request request = {.verb = HF_STORE_CHECKPOINT, .force = true};
    hf_store_execute(p.store, &request);
    assert_int_equal(request.status, HF_OK);
    assert_true(writes_of_a_commit(&p) <= 2); /* its new head, all pages */
    uint64_t before = hash_of(&p);
    hf_write write = put(HF_TABLE_RUN, key_a(99), HF_STR("x"));
    hf_vfs_fail(p.disk, HF_IO_WRITE, 1, HF_FAULT_ENOSPC, false); /* on a disk that needs room even for that */
    assert_int_equal(commit_as(&p, p.commit + 1, &write, 1), HF_ERR_FULL);
    assert_int_equal(hash_of(&p), before);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(3), HF_STR("z")));
    place_reopen(&p);
    hf_arena arena;
    hf_arena_init(&arena, HEAP);
    assert_true(get(&p, &arena, HF_TABLE_RUN, key_a(3)).found);
    assert_false(get(&p, &arena, HF_TABLE_RUN, key_a(99)).found);
    hf_arena_deinit(&arena);
    place_free(&p);
}

static void sqlite_that_cannot_be_made_on_a_full_disk_says_so(void **state)
{
    (void)state;
    place p = {.kind = "sqlite", .disk = hf_vfs_new("place", 1)};
    hf_op op;
    hf_vfs_fail(p.disk, HF_IO_WRITE, 1, HF_FAULT_ENOSPC, true);
    assert_int_equal(place_try_open(&p, &op), HF_ERR_FULL);
    hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
    place_open(&p);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    place_free(&p);
}

static void store_S5_sqlite_whose_sync_failed_answers_nothing_more(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_vfs_fail(p.disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    assert_int_equal(commit_as(&p, 2, &write, 1), HF_ERR_STORE);
    for (int verb = 0; verb <= HF_STORE_STATS; verb++) {
        hf_store_request request = {.verb = (hf_store_verb)verb, .commit = 2, .table = HF_TABLE_RUN};
        hf_store_execute(p.store, &request);
        assert_int_equal(request.status, HF_ERR_STORE);
        assert_non_null(strstr(request.op.message, "open it again"));
    }
    hf_store_close(p.store);
    place_open(&p);
    assert_true(p.commit == 1 || p.commit == 2);
    place_free(&p);
}

static void store_S5_sqlite_whose_checkpoint_could_not_sync_answers_nothing_more(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_vfs_fail(p.disk, HF_IO_SYNC, 1, HF_FAULT_EIO, true);
    hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
    hf_store_execute(p.store, &checkpoint);
    assert_int_equal(checkpoint.status, HF_ERR_STORE);
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    assert_int_equal(commit_as(&p, 2, &write, 1), HF_ERR_STORE);
    hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
    hf_store_close(p.store);
    place_open(&p);
    assert_int_equal(p.commit, 1);
    place_free(&p);
}

/* ---- A real disk --------------------------------------------------------------------------------------------------- */

static mode_t mode_of(const char *path, const char *ending)
{
    char name[160];
    struct stat st;
    (void)snprintf(name, sizeof name, "%s%s", path, ending);
    assert_int_equal(stat(name, &st), 0);
    return st.st_mode & 0777;
}

static void sqlite_files_are_for_their_owner_only_whatever_their_name(void **state)
{
    (void)state;
    folder f = folder_new();
    mode_t mask = umask(0);
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    assert_int_equal(mode_of(f.file, ""), 0600);
    assert_int_equal(mode_of(f.file, "-wal"), 0600);
    char copy[160];
    (void)snprintf(copy, sizeof copy, "%s.copy", f.file);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = copy};
    do {
        run(&p, &backup);
    } while (backup.more);
    assert_int_equal(mode_of(f.file, ".copy"), 0600);
    (void)umask(mask);
    hf_store_close(p.store);
    assert_int_equal(access(f.file, F_OK), 0);
    folder_free(&f);
}

static void limit_files(rlim_t len)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = len < limit.rlim_max ? len : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A quota looks the same, but needs a file system that has some. */
static void sqlite_whose_files_may_not_grow_is_full_and_goes_on_when_they_may(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    for (rlim_t len = 0; len < 20000; len += 2500) { /* none of it, a part of it */
        limit_files(len);
        hf_status status = commit_as(&p, p.commit + 1, &write, 1);
        limit_files(RLIM_INFINITY);
        assert_int_equal(status, len < 10000 ? HF_ERR_FULL : status);
        p.commit += status == HF_OK ? 1 : 0;
    }
    COMMIT(&p, put(HF_TABLE_RUN, key_a(3), HF_STR("z")));
    ((hf_sqlite *)p.store)->is_poisoned = true; /* closing leaves the log, as a crash would */
    hf_store_close(p.store);
    hf_sqlite_options options = {.read_only = true};
    limit_files(1); /* reading a log takes an index of it */
    hf_status status = hf_sqlite_open(&op, HEAP, f.file, &options, &p.store);
    limit_files(RLIM_INFINITY);
    assert_int_equal(status, HF_ERR_FULL);
    assert_non_null(strstr(op.message, "the disk is full: make room"));
    hf_op_init(&op);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, &options, &p.store), HF_OK);
    assert_int_equal(p.store->ops->last_commit(p.store), p.commit);
    hf_store_close(p.store);
    (void)signal(SIGXFSZ, was);
    folder_free(&f);
}

static void sqlite_says_what_a_real_disk_denies(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    char missing[160];
    (void)snprintf(missing, sizeof missing, "%s/no/such.db", f.path);
    assert_int_equal(hf_sqlite_open(&op, HEAP, missing, NULL, &p.store), HF_ERR_NOT_FOUND);
    assert_int_not_equal(hf_sqlite_open(&op, HEAP, f.path, NULL, &p.store), HF_OK); /* a folder */
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_store *second = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &second), HF_ERR_CONFLICT);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = missing};
    hf_store_execute(p.store, &backup);
    assert_int_equal(backup.status, HF_ERR_DENIED);
    assert_non_null(strstr(backup.op.message, "no/such.db: its folder does not exist or is not writable"));
    hf_store_close(p.store);
    bool is_root = geteuid() == 0;
    assert_int_equal(chmod(f.path, 0755), 0);
    assert_int_equal(chmod(f.file, 0444), 0);
    assert_int_equal(is_root ? seteuid(65534) : 0, 0);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_ERR_DENIED);
    assert_non_null(strstr(op.message, "is read-only"));
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(f.file, 0000), 0);
    assert_int_equal(is_root ? seteuid(65534) : 0, 0);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_ERR_DENIED);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_equal(chmod(f.file, 0600), 0);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    assert_int_equal(p.store->ops->last_commit(p.store), 1);
    hf_store_close(p.store);
    folder_free(&f);
}

static void sqlite_that_is_only_read_shows_what_is_there_and_takes_nothing(void **state)
{
    (void)state;
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    hf_sqlite_options options = {.read_only = true};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, &options, &p.store), HF_ERR_NOT_FOUND);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")));
    hf_store *reader = NULL;
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, &options, &reader), HF_ERR_CONFLICT);
    ((hf_sqlite *)p.store)->is_poisoned = true; /* closing leaves the log, as a crash would */
    hf_store_close(p.store);
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, &options, &p.store), HF_OK);
    hf_arena arena;
    hf_arena_init(&arena, HEAP);
    assert_true(get(&p, &arena, HF_TABLE_RUN, key_a(1)).found);
    hf_arena_deinit(&arena);
    hf_write write = put(HF_TABLE_RUN, key_a(2), HF_STR("y"));
    assert_int_equal(commit_as(&p, 2, &write, 1), HF_ERR_DENIED);
    hf_store_close(p.store);
    folder_free(&f);
}

/* Two leaves of the table of runs change places: SQLite reads its rows in another order. */
static void swap_leaves(const char *path)
{
    enum { PAGE = 4096, PAGES_MAX = 64 };
    static char pages[PAGES_MAX][PAGE];
    FILE *file = fopen(path, "r+be");
    assert_non_null(file);
    size_t count = fread(pages, PAGE, PAGES_MAX, file);
    size_t found[2] = {0, 0};
    size_t leaves = 0;
    for (size_t i = 1; i < count && leaves < 2; i++) { /* 13: a leaf of a table */
        if (pages[i][0] == 13 && memmem(pages[i], PAGE, "a run's row", 11) != NULL) {
            found[leaves++] = i;
        }
    }
    assert_int_equal(leaves, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fseek(file, (long)(found[i] * PAGE), SEEK_SET), 0);
        assert_int_equal(fwrite(pages[found[1 - i]], PAGE, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

static void sqlite_whose_pages_are_mixed_up_is_not_read_for_ever(void **state)
{
    (void)state;
    enum { ROWS = 100, READS_MAX = 1000 };
    folder f = folder_new();
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "sqlite"};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, NULL, &p.store), HF_OK);
    char value[300] = "a run's row";
    for (int64_t i = 1; i <= ROWS; i++) {
        COMMIT(&p, put(HF_TABLE_RUN, key_a(i), hf_str_of_len(value, sizeof value)));
    }
    hf_store_close(p.store);
    swap_leaves(f.file);
    hf_sqlite_options options = {.read_only = true, .at_rest = true};
    assert_int_equal(hf_sqlite_open(&op, HEAP, f.file, &options, &p.store), HF_OK);
    for (int backwards = 0; backwards < 2; backwards++) {
        hf_arena arena;
        hf_arena_init(&arena, HEAP);
        hf_store_request scan = {.verb = HF_STORE_SCAN,
                                 .table = HF_TABLE_RUN,
                                 .key_end = key_a(ROWS + 1),
                                 .backwards = backwards != 0,
                                 .row_max = 1,
                                 .arena = &arena};
        int reads = 0;
        do {
            hf_arena_reset(&arena);
            hf_store_execute(p.store, &scan);
            if (scan.row_count > 0 && backwards != 0) {
                scan.key_end = scan.rows[0].key;
            } else if (scan.row_count > 0) {
                scan.key = key_a(scan.rows[0].key.a + 1);
            }
        } while (++reads < READS_MAX && scan.status == HF_OK && scan.row_count > 0);
        assert_in_range(reads, 1, READS_MAX - 1);
        scan.key = key_a(0);
        scan.key_end = key_a(ROWS + 1);
        scan.row_max = 0;
        hf_store_execute(p.store, &scan);
        assert_int_equal(scan.status, HF_ERR_INVALID);
        assert_non_null(strstr(scan.op.message, "not where it belongs"));
        hf_arena_deinit(&arena);
    }
    hf_store_close(p.store);
    folder_free(&f);
}

/* ---- Checkpoints --------------------------------------------------------------------------------------------------- */

static hf_store_stats stats_of(place *p)
{
    hf_store_request stats = {.verb = HF_STORE_STATS};
    run(p, &stats);
    return stats.stats;
}

static void store_S6_checkpoints_keep_the_log_within_its_bound(void **state)
{
    (void)state;
    enum { BOUND = 256 * 1024, COMMITS = 400 };
    place p = {.kind = "sqlite", .disk = hf_vfs_new("place", 1)};
    hf_sqlite_options options = {.vfs = "place", .log_len_max = BOUND};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_sqlite_open(&op, HEAP, "test.db", &options, &p.store), HF_OK);
    char value[10000];
    memset(value, 'v', sizeof value);
    uint64_t log_max = 0;
    for (int i = 0; i < COMMITS; i++) {
        COMMIT(&p, put(HF_TABLE_JOURNAL, key_a(i + 1), hf_str_of_len(value, sizeof value)),
               del_range(HF_TABLE_JOURNAL, key_a(0), key_a(i - 20)));
        hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT};
        run(&p, &checkpoint);
        uint64_t len = 0;
        assert_true(hf_vfs_file_size(p.disk, "test.db-wal", &len));
        log_max = len > log_max ? len : log_max;
        assert_true(stats_of(&p).log_len <= BOUND);
    }
    hf_store_stats stats = stats_of(&p);
    assert_true(log_max < BOUND + 100 * 1024); /* the log is used again in place */
    assert_in_range(stats.checkpoints, 10, COMMITS / 2);
    assert_true(stats.flushes >= COMMITS);
    assert_true(stats.bytes_written > COMMITS * sizeof value);
    assert_true(stats.file_len < 2 * 1024 * 1024);
    place_free(&p);
}

/* ---- Backups ------------------------------------------------------------------------------------------------------- */

static void fill(place *p, int64_t from, int64_t to)
{
    char value[3000];
    for (int64_t i = from; i < to; i++) {
        memset(value, (int)('a' + i % 26), sizeof value);
        COMMIT(p, put(HF_TABLE_RUN, key_a(i), hf_str_of_len(value, sizeof value)),
               put(HF_TABLE_JOURNAL, key_a((int64_t)p->commit + 1), HF_STR("j")));
    }
}

static void store_S6_backup_under_commits_is_the_store_at_its_last_step(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    fill(&p, 0, 2000);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
    int steps = 0;
    do {
        run(&p, &backup);
        if (backup.more) {
            place copy = {.kind = "sqlite", .disk = p.disk};
            hf_sqlite_options options = {.vfs = hf_vfs_name(p.disk), .must_exist = true};
            hf_op op;
            hf_op_init(&op);
            assert_int_not_equal(hf_sqlite_open(&op, HEAP, "copy.db", &options, &copy.store), HF_OK);
            fill(&p, 5000 + steps, 5001 + steps); /* seen by the copy, without a restart */
            COMMIT(&p, del(HF_TABLE_RUN, key_a(steps)));
            hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = steps % 2 == 0};
            run(&p, &checkpoint);
        }
        steps++;
    } while (backup.more);
    assert_in_range(steps, 3, 20);
    uint64_t wanted = hash_of(&p);
    uint64_t commit = p.commit;
    hf_store_request again = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
    hf_store_execute(p.store, &again);
    assert_int_equal(again.status, HF_ERR_EXISTS);
    unsigned char header[20];
    size_t len = 0;
    assert_true(hf_vfs_read_file(p.disk, "copy.db", 0, header, sizeof header, &len));
    assert_int_equal(header[18], 1); /* no log */
    uint64_t unused = 0;
    assert_false(hf_vfs_file_size(p.disk, "copy.db-wal", &unused));
    hf_store_close(p.store);
    hf_sqlite_options options = {.vfs = hf_vfs_name(p.disk), .must_exist = true};
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_sqlite_open(&op, HEAP, "copy.db", &options, &p.store), HF_OK);
    assert_int_equal(p.store->ops->last_commit(p.store), commit);
    assert_int_equal(hash_of(&p), wanted);
    p.commit = commit;
    fill(&p, 1, 3); /* and it goes on */
    place_free(&p);
}

static void sqlite_backup_that_fails_leaves_no_file_and_the_store_well(void **state)
{
    (void)state;
    bool done = false;
    uint64_t nth = 1;
    for (; !done; nth += 7) {
        place p = place_new("sqlite");
        fill(&p, 0, 200);
        hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
        run(&p, &checkpoint);
        hf_vfs_fail(p.disk, HF_IO_WRITE | HF_IO_SYNC, nth, HF_FAULT_EIO, false);
        hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
        do {
            hf_store_execute(p.store, &backup);
        } while (backup.status == HF_OK && backup.more);
        done = backup.status == HF_OK;
        hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
        uint64_t len = 0;
        assert_int_equal(hf_vfs_file_size(p.disk, "copy.db", &len), done);
        COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("goes on")));
        place_free(&p);
    }
    print_message("failed at %d places\n", (int)(nth / 7));
}

static void sqlite_closed_during_a_backup_leaves_none(void **state)
{
    (void)state;
    place p = place_new("sqlite");
    fill(&p, 0, 1000);
    hf_store_request backup = {.verb = HF_STORE_BACKUP, .path = "copy.db"};
    run(&p, &backup);
    assert_true(backup.more);
    hf_store_request other = {.verb = HF_STORE_BACKUP, .path = "other.db"};
    hf_store_execute(p.store, &other);
    assert_int_equal(other.status, HF_ERR_MISUSE);
    place_reopen(&p);
    uint64_t len = 0;
    assert_false(hf_vfs_file_size(p.disk, "copy.db", &len));
    place_free(&p);
}

/* ---- A process that ends --------------------------------------------------------------------------------------------- */

/* Pages that do not fit the cache are written to the log before the commit, and again when they change after that. */
static void sqlite_that_is_killed_has_every_commit_it_said_yes_to(void **state)
{
    (void)state;
    static const hf_durability WAYS[] = {HF_DURABILITY_FULL, HF_DURABILITY_NORMAL};
    enum { ROWS = 4000, COMMITS = 4 };
    static hf_write writes[ROWS + 1];
    for (size_t way = 0; way < HF_COUNT_OF(WAYS); way++) {
        hf_vfs *disk = hf_vfs_new("disk", 1);
        hf_vfs *copy = hf_vfs_new("copy", 2);
        hf_op op;
        hf_op_init(&op);
        hf_store *store = NULL;
        hf_sqlite_options options = {.vfs = hf_vfs_name(disk), .cache_len = 65536, .durability = WAYS[way]};
        assert_int_equal(hf_sqlite_open(&op, HEAP, "test.db", &options, &store), HF_OK);
        hf_rng rng = {9};
        for (uint64_t commit = 1; commit <= COMMITS; commit++) {
            for (size_t i = 0; i < ROWS; i++) {
                writes[i] = (hf_write){.table = HF_TABLE_NAME,
                                       .kind = HF_WRITE_PUT,
                                       .key = {.a = (int64_t)(hf_rng_next(&rng) >> 2), .b = (int64_t)i + 1}};
            }
            writes[ROWS] = (hf_write){.table = HF_TABLE_JOURNAL,
                                      .kind = HF_WRITE_PUT,
                                      .key = {.a = (int64_t)commit},
                                      .value = HF_STR("journal")};
            hf_store_request request = {
                .verb = HF_STORE_COMMIT, .commit = commit, .writes = writes, .write_count = ROWS + 1};
            hf_op_init(&request.op);
            hf_store_execute(store, &request);
            assert_int_equal(request.status, HF_OK);
            hf_vfs_image(disk, HF_CRASH_ALL, &rng, copy); /* what was written stays: the machine goes on */
            hf_store *again = NULL;
            hf_sqlite_options same = options;
            same.vfs = hf_vfs_name(copy);
            assert_int_equal(hf_sqlite_open(&op, HEAP, "test.db", &same, &again), HF_OK);
            assert_int_equal(again->ops->last_commit(again), commit);
            hf_store_close(again);
        }
        hf_store_close(store);
        hf_vfs_free(disk);
        hf_vfs_free(copy);
    }
}

/* ---- Migrations ---------------------------------------------------------------------------------------------------- */

/* A step that no version has yet. */
static const char NEXT_STEP[] = "CREATE TABLE extra (id INTEGER PRIMARY KEY, v BLOB);"
                                "INSERT INTO extra SELECT id, v FROM run;"
                                "PRAGMA user_version=4";

static int count_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int count = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        count = sqlite3_column_int(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return count;
}

static void sqlite_migration_happens_whole_or_not_at_all(void **state)
{
    (void)state;
    const hf_schema_step *now = hf_engine_tables.steps;
    const hf_schema_step steps[] = {now[0], now[1], now[2], {4, NEXT_STEP}};
    assert_int_equal(hf_engine_tables.step_count, 3);
    bool done = false;
    uint64_t nth = 1;
    for (; !done; nth++) {
        place p = place_new("sqlite");
        fill(&p, 0, 20);
        sqlite3 *db = ((hf_sqlite *)p.store)->db;
        hf_op op;
        hf_op_init(&op);
        hf_vfs_fail(p.disk, HF_IO_WRITE | HF_IO_SYNC, nth, HF_FAULT_EIO, true);
        hf_status status = hf_schema_migrate(&op, db, steps, 4);
        done = status == HF_OK;
        assert_true(done || status == HF_ERR_IO);
        hf_vfs_power_off(p.disk); /* the program ends here */
        hf_store_close(p.store);
        p.store = NULL;
        hf_rng rng = {nth};
        hf_vfs_image(p.disk, HF_CRASH_RANDOM, &rng, p.disk);
        hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
        assert_int_equal(sqlite3_open_v2("test.db", &db, SQLITE_OPEN_READWRITE, hf_vfs_name(p.disk)), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
        int version = count_of(db, "PRAGMA user_version");
        assert_int_equal(version == 4 ? 20 : -1, count_of(db, "SELECT count(*) FROM extra"));
        assert_true(version == 4 || !done);
        assert_int_equal(hf_schema_migrate(&op, db, steps, 4), HF_OK);
        assert_int_equal(count_of(db, "SELECT count(*) FROM extra"), 20);
        assert_int_equal(hf_schema_migrate(&op, db, steps, 4), HF_OK); /* nothing is left to do */
        assert_int_equal(hf_schema_migrate(&op, db, steps, 3), HF_ERR_UNSUPPORTED);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        place_free(&p);
    }
    print_message("interrupted at %d places\n", (int)nth - 2);
    assert_true(nth > 3);
}

/* ---- Shrinking ------------------------------------------------------------------------------------------------------ */

static void commit_deletes(place *p, uint64_t commit, int64_t from, int64_t to)
{
    hf_write write = {.table = HF_TABLE_RUN, .kind = HF_WRITE_DELETE_RANGE, .key = {.a = from}, .key_end = {.a = to}};
    hf_store_request request = {.verb = HF_STORE_COMMIT, .commit = commit, .writes = &write, .write_count = 1};
    hf_store_execute(p->store, &request);
    assert_int_equal(request.status, HF_OK);
}

static hf_store_stats stats_now(hf_store *store)
{
    hf_store_request stats = {.verb = HF_STORE_STATS};
    hf_store_execute(store, &stats);
    assert_int_equal(stats.status, HF_OK);
    return stats.stats;
}

/* The n-th write or sync fails, and then the power: the rows are there, and the rest of the space can be given back. */
static void sqlite_shrinks_and_loses_nothing_when_it_is_interrupted(void **state)
{
    (void)state;
    bool done = false;
    uint64_t nth = 1;
    for (; !done; nth += nth < 30 ? 1 : 11) {
        place p = place_new("sqlite");
        uint64_t before = 0;
        uint64_t after = 0;
        hf_op op;
        hf_op_init(&op);
        fill(&p, 0, 300);
        commit_deletes(&p, p.commit + 1, 4, 296);
        assert_int_equal(hf_store_hash(&op, p.store, HEAP, &before), HF_OK);
        hf_store_stats full = stats_now(p.store);
        assert_true(full.free_len > full.file_len / 2);
        hf_vfs_fail(p.disk, HF_IO_WRITE | HF_IO_SYNC, nth, HF_FAULT_EIO, true);
        hf_store_request step = {.verb = HF_STORE_SHRINK};
        do {
            hf_store_execute(p.store, &step);
        } while (step.status == HF_OK && step.more);
        hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
        if (step.status == HF_OK) {
            hf_store_execute(p.store, &checkpoint);
        }
        done = step.status == HF_OK && checkpoint.status == HF_OK;
        hf_vfs_power_off(p.disk);
        hf_store_close(p.store);
        hf_rng rng = {nth};
        hf_vfs_image(p.disk, HF_CRASH_RANDOM, &rng, p.disk);
        hf_vfs_fail(p.disk, 0, 0, HF_FAULT_EIO, false);
        hf_sqlite_options options = {.vfs = hf_vfs_name(p.disk)};
        assert_int_equal(hf_sqlite_open(&op, HEAP, "test.db", &options, &p.store), HF_OK);
        assert_int_equal(hf_store_hash(&op, p.store, HEAP, &after), HF_OK);
        assert_true(before == after);
        assert_int_equal(p.store->ops->last_commit(p.store), p.commit + 1);
        do {
            hf_store_execute(p.store, &step);
            assert_int_equal(step.status, HF_OK);
        } while (step.more);
        hf_store_stats small = stats_now(p.store);
        assert_true(small.free_len == 0 && small.file_len < full.file_len / 4);
        place_free(&p);
    }
    assert_true(nth > 30);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(sqlite_shrinks_and_loses_nothing_when_it_is_interrupted),
    cmocka_unit_test(sqlite_that_is_killed_has_every_commit_it_said_yes_to),
    cmocka_unit_test(sqlite_refuses_a_bad_file_with_a_sentence_and_leaves_it_alone),
    cmocka_unit_test(sqlite_refuses_a_newer_version_that_is_still_in_the_log),
    cmocka_unit_test(sqlite_takes_an_empty_file_for_a_new_one),
    cmocka_unit_test(sqlite_that_must_exist_is_not_made),
    cmocka_unit_test(sqlite_that_is_open_is_not_opened_again),
    cmocka_unit_test(sqlite_on_a_full_disk_says_so_and_goes_on_when_there_is_room),
    cmocka_unit_test(sqlite_log_that_has_its_room_is_written_in_one_go),
    cmocka_unit_test(sqlite_that_cannot_be_made_on_a_full_disk_says_so),
    cmocka_unit_test(store_S5_sqlite_whose_sync_failed_answers_nothing_more),
    cmocka_unit_test(store_S5_sqlite_whose_checkpoint_could_not_sync_answers_nothing_more),
    cmocka_unit_test(sqlite_files_are_for_their_owner_only_whatever_their_name),
    cmocka_unit_test(sqlite_whose_files_may_not_grow_is_full_and_goes_on_when_they_may),
    cmocka_unit_test(sqlite_says_what_a_real_disk_denies),
    cmocka_unit_test(sqlite_that_is_only_read_shows_what_is_there_and_takes_nothing),
    cmocka_unit_test(sqlite_whose_pages_are_mixed_up_is_not_read_for_ever),
    cmocka_unit_test(store_S6_checkpoints_keep_the_log_within_its_bound),
    cmocka_unit_test(store_S6_backup_under_commits_is_the_store_at_its_last_step),
    cmocka_unit_test(sqlite_backup_that_fails_leaves_no_file_and_the_store_well),
    cmocka_unit_test(sqlite_closed_during_a_backup_leaves_none),
    cmocka_unit_test(sqlite_migration_happens_whole_or_not_at_all),
};

int main(int argc, char **argv)
{
    return hf_test_main("sqlite", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
