/* The simulated disk by itself: what a power cut may and may not leave, what each fault does, locks, temporary files. What
 * SQLite's journals make of it is in vfs_crash_test.c. */
#include "support/support.h"
#include "support/vfs.h"

#include <sqlite3.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB };

typedef struct disks {
    hf_vfs *disk;  /* under test */
    hf_vfs *image; /* of it */
    hf_rng rng;    /* of the images */
} disks;

static int setup(void **state)
{
    disks *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return -1;
    }
    d->disk = hf_vfs_new("disk", 1);
    d->image = hf_vfs_new("image", 2);
    d->rng.state = 3;
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    disks *d = *state;
    hf_vfs_free(d->disk);
    hf_vfs_free(d->image);
    free(d);
    return 0;
}

/* ---- The VFS as SQLite calls it ---------------------------------------------------------------------------------- */

static int try_open(hf_vfs *disk, const char *name, int flags, sqlite3_file **ret_file)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(hf_vfs_name(disk));
    assert_non_null(vfs);
    *ret_file = malloc((size_t)vfs->szOsFile);
    assert_non_null(*ret_file);
    int rc = vfs->xOpen(vfs, name, *ret_file, flags, NULL);
    if (rc != SQLITE_OK) {
        assert_null((*ret_file)->pMethods);
        free(*ret_file);
        *ret_file = NULL;
    }
    return rc;
}

static sqlite3_file *open_file(hf_vfs *disk, const char *name)
{
    sqlite3_file *file = NULL;
    assert_int_equal(try_open(disk, name, OPEN_FLAGS, &file), SQLITE_OK);
    return file;
}

static void close_file(sqlite3_file *file)
{
    assert_int_equal(file->pMethods->xClose(file), SQLITE_OK);
    free(file);
}

static int put(sqlite3_file *file, int offset, const char *text)
{
    return file->pMethods->xWrite(file, text, (int)strlen(text), offset);
}

static int sync_file(sqlite3_file *file)
{
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

static int delete_file(hf_vfs *disk, const char *name, int sync_dir)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(hf_vfs_name(disk));
    return vfs->xDelete(vfs, name, sync_dir);
}

/* The directory, as src/store/sqlite/shim.c syncs it. */
static int sync_dir(hf_vfs *disk)
{
    sqlite3_file *dir = NULL;
    int rc = try_open(disk, ".", SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL, &dir);
    if (rc == SQLITE_OK) {
        rc = sync_file(dir);
        close_file(dir);
    }
    return rc;
}

/* What the disk has under this name, "-" for no such file. Short texts only. */
static const char *text_of(const hf_vfs *disk, const char *name)
{
    static char text[64];
    size_t len = 0;
    if (!hf_vfs_read_file(disk, name, 0, text, sizeof text - 1, &len)) {
        return "-";
    }
    text[len] = '\0';
    return text;
}

static const char *text_after(disks *d, hf_crash_mode mode, const char *name)
{
    hf_vfs_image(d->disk, mode, &d->rng, d->image);
    return text_of(d->image, name);
}

/* ---- Power ------------------------------------------------------------------------------------------------------- */

static void a_sync_makes_its_own_file_durable_and_no_other(void **state)
{
    disks *d = *state;
    sqlite3_file *a = open_file(d->disk, "a");
    sqlite3_file *b = open_file(d->disk, "b");
    assert_int_equal(put(a, 0, "one"), SQLITE_OK);
    assert_int_equal(put(b, 0, "two"), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "-");
    assert_string_equal(text_after(d, HF_CRASH_ALL, "a"), "one");
    assert_int_equal(hf_vfs_unsynced(d->disk), 4);
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_int_equal(hf_vfs_unsynced(d->disk), 3);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "-"); /* nothing was said about its name */
    assert_int_equal(sync_dir(d->disk), SQLITE_OK);
    assert_int_equal(hf_vfs_unsynced(d->disk), 1);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "one");
    assert_string_equal(text_after(d, HF_CRASH_NONE, "b"), "");
    assert_int_equal(put(a, 3, " more"), SQLITE_OK);
    assert_int_equal(a->pMethods->xTruncate(a, 5), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "one");
    assert_string_equal(text_after(d, HF_CRASH_ALL, "a"), "one m");
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_int_equal(sync_file(b), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "one m");
    assert_int_equal(hf_vfs_unsynced(d->disk), 0);
    assert_int_equal(hf_vfs_ops(d->disk), 10);
    assert_string_equal(hf_vfs_file_name(d->disk, 1), "b");
    assert_null(hf_vfs_file_name(d->disk, 2));
    close_file(a);
    close_file(b);
}

static void a_deletion_is_durable_only_with_its_directory(void **state)
{
    disks *d = *state;
    hf_vfs_write_file(d->disk, "a", "old", 3);
    assert_int_equal(delete_file(d->disk, "a", 0), SQLITE_OK);
    assert_string_equal(text_of(d->disk, "a"), "-");
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "old");
    assert_string_equal(text_after(d, HF_CRASH_ALL, "a"), "-");
    sqlite3_file *a = open_file(d->disk, "a"); /* a new one, while the old may come back */
    assert_int_equal(put(a, 0, "new"), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "old");
    assert_string_equal(text_after(d, HF_CRASH_ALL, "a"), "new");
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "old");
    assert_int_equal(sync_dir(d->disk), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "new");
    assert_int_equal(hf_vfs_unsynced(d->disk), 0);
    assert_int_equal(put(a, 0, "never seen"), SQLITE_OK);
    assert_int_equal(delete_file(d->disk, "a", 1), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "-");
    assert_int_equal(put(a, 0, "nor this"), SQLITE_OK);
    assert_int_equal(hf_vfs_unsynced(d->disk), 0);
    assert_int_equal(delete_file(d->disk, "a", 1), SQLITE_IOERR_DELETE_NOENT);
    close_file(a);
}

static void later_changes_may_survive_earlier_ones(void **state)
{
    disks *d = *state;
    sqlite3_file *a = open_file(d->disk, "a");
    assert_int_equal(put(a, 0, "....."), SQLITE_OK);
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_int_equal(sync_dir(d->disk), SQLITE_OK);
    assert_int_equal(put(a, 0, "1"), SQLITE_OK);
    assert_int_equal(put(a, 1, "2"), SQLITE_OK);
    assert_int_equal(put(a, 2, "3"), SQLITE_OK);
    bool seen_random[8] = {false};
    bool seen_prefix[8] = {false};
    for (int i = 0; i < 1000; i++) {
        const char *text = text_after(d, i % 2 == 0 ? HF_CRASH_RANDOM : HF_CRASH_PREFIX, "a");
        assert_int_equal(strlen(text), 5);
        (i % 2 == 0 ? seen_random : seen_prefix)[(text[0] == '1') + 2 * (text[1] == '2') + 4 * (text[2] == '3')] = true;
    }
    for (size_t i = 0; i < 8; i++) {
        assert_true(seen_random[i]);
        assert_int_equal(seen_prefix[i], (i & (i + 1)) == 0);
    }
    close_file(a);
}

/* Sectors of a write of 'x' over 'o' that got down, as bits; asserts that none was split. */
static unsigned sectors_down(const hf_vfs *image, size_t sector_len, bool may_be_garbage)
{
    static char bytes[8192];
    size_t len = 0;
    unsigned down = 0;
    assert_true(hf_vfs_read_file(image, "a", 0, bytes, sizeof bytes, &len));
    for (size_t at = 0; at < len; at += sector_len) {
        bool is_even = memcmp(bytes + at, bytes + at + 1, sector_len - 1) == 0;
        assert_true(may_be_garbage || (is_even && (bytes[at] == 'x' || bytes[at] == 'o')));
        down |= (unsigned)(is_even && bytes[at] == 'x') << at / sector_len;
    }
    return down;
}

static void a_write_tears_between_sectors_in_any_order(void **state)
{
    disks *d = *state;
    static char bytes[8192];
    memset(bytes, 'o', sizeof bytes);
    hf_vfs_write_file(d->disk, "a", bytes, sizeof bytes);
    sqlite3_file *a = open_file(d->disk, "a");
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(a->pMethods->xWrite(a, bytes, sizeof bytes, 0), SQLITE_OK);
    unsigned first_only = 0;
    unsigned last_only = 0;
    unsigned halves = 0;
    uint64_t origin = hf_vfs_hash(d->disk);
    for (int i = 0; i < 2000; i++) {
        hf_vfs_image(d->disk, HF_CRASH_RANDOM, &d->rng, d->image);
        unsigned down = sectors_down(d->image, 512, false);
        first_only += (down & 0x8001) == 1;
        last_only += (down & 0x8001) == 0x8000;
        halves += down == 0xff00 || down == 0x00ff;
    }
    assert_true(first_only > 50 && last_only > 50 && halves > 20);
    assert_true(hf_vfs_hash(d->disk) == origin); /* images are written to, the origin is not */
    close_file(a);
}

static void without_powersafe_overwrite_a_torn_write_spoils_its_neighbours(void **state)
{
    disks *d = *state;
    static char bytes[8192];
    memset(bytes, 'o', sizeof bytes);
    hf_vfs_write_file(d->disk, "a", bytes, sizeof bytes);
    sqlite3_file *a = open_file(d->disk, "a");
    assert_int_equal(a->pMethods->xDeviceCharacteristics(a), SQLITE_IOCAP_POWERSAFE_OVERWRITE);
    hf_vfs_set_powersafe(d->disk, false);
    assert_int_equal(a->pMethods->xDeviceCharacteristics(a), 0);
    assert_int_equal(a->pMethods->xSectorSize(a), 4096);
    assert_int_equal(put(a, 100, "x"), SQLITE_OK);
    unsigned spoiled = 0;
    for (int i = 0; i < 500; i++) {
        hf_vfs_image(d->disk, HF_CRASH_RANDOM, &d->rng, d->image);
        size_t len = 0;
        assert_true(hf_vfs_read_file(d->image, "a", 0, bytes, sizeof bytes, &len));
        spoiled += memcmp(bytes, bytes + 4096, 100) != 0;
        (void)sectors_down(d->image, 4096, true);
        for (size_t at = 4096; at < sizeof bytes; at++) {
            assert_int_equal(bytes[at], 'o');
        }
    }
    assert_true(spoiled > 20);
    close_file(a);
}

static void the_dead_can_close_but_change_nothing(void **state)
{
    disks *d = *state;
    sqlite3_file *a = open_file(d->disk, "a");
    assert_int_equal(put(a, 0, "text"), SQLITE_OK);
    hf_vfs_power_off(d->disk);
    sqlite3_file *b = NULL;
    assert_int_equal(try_open(d->disk, "a", OPEN_FLAGS, &b), SQLITE_IOERR);
    assert_int_equal(delete_file(d->disk, "a", 1), SQLITE_IOERR_DELETE);
    hf_vfs_power_on(d->disk);
    assert_int_equal(put(a, 0, "ghost"), SQLITE_IOERR_WRITE);
    assert_int_equal(sync_file(a), SQLITE_IOERR_FSYNC);
    assert_int_equal(a->pMethods->xTruncate(a, 0), SQLITE_IOERR_TRUNCATE);
    b = open_file(d->disk, "a");
    assert_string_equal(text_of(d->disk, "a"), "text");
    assert_int_equal(put(b, 4, "s"), SQLITE_OK);
    hf_vfs_image(d->disk, HF_CRASH_ALL, &d->rng, d->disk); /* a power cut in place */
    assert_int_equal(put(b, 0, "ghost"), SQLITE_IOERR_WRITE);
    close_file(a);
    close_file(b);
    assert_string_equal(text_of(d->disk, "a"), "texts");
    assert_int_equal(hf_vfs_unsynced(d->disk), 0);
}

static void cut_at_third(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    assert_string_equal(file, "a");
    assert_int_equal(kind, op == 1 ? HF_VFS_CREATE : HF_VFS_WRITE);
    if (op == 3) {
        hf_vfs_power_off(state);
    }
}

static void a_hook_may_cut_the_power_before_a_change(void **state)
{
    disks *d = *state;
    hf_vfs_on_op(d->disk, cut_at_third, d->disk);
    sqlite3_file *a = open_file(d->disk, "a");
    assert_int_equal(put(a, 0, "yes"), SQLITE_OK);
    assert_int_equal(put(a, 0, "no!"), SQLITE_IOERR_WRITE);
    assert_int_equal(put(a, 0, "no!"), SQLITE_IOERR_WRITE);
    assert_int_equal(hf_vfs_ops(d->disk), 3);
    close_file(a);
    assert_string_equal(text_of(d->disk, "a"), "yes");
}

static void equal_contents_have_equal_hashes(void **state)
{
    disks *d = *state;
    static const char ZEROS[5000];
    hf_vfs_write_file(d->disk, "a", "text", 4);
    hf_vfs_write_file(d->disk, "b", ZEROS, sizeof ZEROS);
    hf_vfs_write_file(d->image, "b", "x", 1);
    hf_vfs_write_file(d->image, "b", ZEROS, sizeof ZEROS);
    assert_true(hf_vfs_hash(d->disk) != hf_vfs_hash(d->image));
    hf_vfs_write_file(d->image, "a", "text and more", 13);
    assert_true(hf_vfs_truncate_file(d->image, "a", 4));
    assert_true(hf_vfs_hash(d->disk) == hf_vfs_hash(d->image));
    assert_true(hf_vfs_flip(d->image, "b", 4999, 3));
    assert_true(hf_vfs_hash(d->disk) != hf_vfs_hash(d->image));
    assert_true(hf_vfs_flip(d->image, "b", 4999, 3));
    assert_true(hf_vfs_hash(d->disk) == hf_vfs_hash(d->image));
    assert_false(hf_vfs_flip(d->image, "b", 5000, 3));
    assert_true(hf_vfs_delete_file(d->image, "b"));
    assert_false(hf_vfs_delete_file(d->image, "b"));
    assert_true(hf_vfs_hash(d->disk) != hf_vfs_hash(d->image));
    uint64_t len = 0;
    assert_true(hf_vfs_file_size(d->disk, "b", &len) && len == sizeof ZEROS);
    assert_false(hf_vfs_file_size(d->image, "b", &len));
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

static void each_fault_does_what_it_says(void **state)
{
    disks *d = *state;
    hf_vfs *disk = d->disk;
    char bytes[8] = "";
    hf_vfs_write_file(disk, "a", "12345678", 8);
    sqlite3_file *a = open_file(disk, "a");
    hf_vfs_fail(disk, HF_IO_ANY, 2, HF_FAULT_SHORT_READ, false);
    assert_int_equal(a->pMethods->xRead(a, bytes, 8, 0), SQLITE_OK);
    assert_int_equal(a->pMethods->xRead(a, bytes, 8, 0), SQLITE_IOERR_SHORT_READ);
    assert_int_equal(bytes[7], 0);
    assert_int_equal(a->pMethods->xRead(a, bytes, 8, 0), SQLITE_OK);
    hf_vfs_fail(disk, HF_IO_READ, 1, HF_FAULT_BIT_FLIP, false);
    assert_int_equal(a->pMethods->xRead(a, bytes, 8, 0), SQLITE_OK);
    assert_memory_not_equal(bytes, "12345678", 8);
    hf_vfs_fail(disk, HF_IO_WRITE, 1, HF_FAULT_LOST_WRITE, false);
    assert_int_equal(put(a, 0, "x"), SQLITE_OK);
    assert_string_equal(text_of(disk, "a"), "12345678");
    assert_int_equal(put(a, 0, "x"), SQLITE_OK);
    hf_vfs_fail(disk, HF_IO_READ, 1, HF_FAULT_STALE_READ, false);
    assert_int_equal(a->pMethods->xRead(a, bytes, 8, 0), SQLITE_OK);
    assert_memory_equal(bytes, "12345678", 8);
    hf_vfs_fail(disk, HF_IO_ANY, 1, HF_FAULT_LOST_SYNC, false);
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "12345678");
    hf_vfs_fail(disk, HF_IO_SIZE | HF_IO_TRUNCATE, 1, HF_FAULT_EIO, true);
    sqlite3_int64 len = 0;
    assert_int_equal(a->pMethods->xFileSize(a, &len), SQLITE_IOERR_FSTAT);
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_int_equal(a->pMethods->xTruncate(a, 0), SQLITE_IOERR_TRUNCATE);
    assert_int_equal(hf_vfs_faults_hit(disk), 7);
    assert_int_equal(hf_vfs_io_ops(disk, HF_IO_READ), 5);
    assert_int_equal(hf_vfs_io_ops(disk, HF_IO_ANY), 12);
    sqlite3_file *b = NULL;
    hf_vfs_fail(disk, HF_IO_OPEN, 1, HF_FAULT_ENOSPC, true);
    assert_int_equal(try_open(disk, "b", OPEN_FLAGS, &b), SQLITE_FULL);
    assert_int_equal(try_open(disk, "a", OPEN_FLAGS, &b), SQLITE_OK); /* what is there needs no room */
    close_file(b);
    close_file(a);
}

static void a_failed_sync_drops_what_it_should_have_written(void **state)
{
    disks *d = *state;
    bool was_lost = false;
    bool was_kept = false;
    for (int i = 0; i < 40; i++) {
        hf_vfs_write_file(d->disk, "a", "old", 3);
        sqlite3_file *a = open_file(d->disk, "a");
        assert_int_equal(put(a, 0, "new"), SQLITE_OK);
        hf_vfs_fail(d->disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
        assert_int_equal(sync_file(a), SQLITE_IOERR_FSYNC);
        assert_int_equal(sync_file(a), SQLITE_OK); /* says the kernel, for which nothing is left to do */
        assert_string_equal(text_of(d->disk, "a"), "new");
        bool is_kept = strcmp(text_after(d, HF_CRASH_ALL, "a"), "new") == 0;
        assert_int_equal(hf_vfs_unsynced(d->disk) == 0, is_kept);
        was_kept = was_kept || is_kept;
        was_lost = was_lost || !is_kept;
        assert_int_equal(put(a, 0, "new"), SQLITE_OK); /* the same bytes again */
        assert_int_equal(sync_file(a), SQLITE_OK);
        assert_int_equal(hf_vfs_unsynced(d->disk), 0);
        assert_string_equal(text_after(d, HF_CRASH_NONE, "a"), "new");
        close_file(a);
    }
    assert_true(was_kept && was_lost);
}

/* What is left of eight blocks of 'x' over 'o' after a failed sync and a power cut, as bits: those that are 'x' throughout. */
static unsigned blocks_after_failure(disks *d, unsigned *ret_torn)
{
    enum { BLOCKS = 8, LEN = 4096 };
    static char bytes[BLOCKS * LEN];
    memset(bytes, 'o', sizeof bytes);
    hf_vfs_write_file(d->disk, "a", bytes, sizeof bytes / 2);
    sqlite3_file *a = open_file(d->disk, "a");
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(a->pMethods->xWrite(a, bytes, sizeof bytes, 0), SQLITE_OK);
    hf_vfs_fail(d->disk, HF_IO_SYNC, 1, HF_FAULT_EIO, false);
    assert_int_equal(sync_file(a), SQLITE_IOERR_FSYNC);
    assert_int_equal(put(a, 100, "y"), SQLITE_OK); /* takes its whole block along */
    assert_int_equal(sync_file(a), SQLITE_OK);
    close_file(a);
    hf_vfs_image(d->disk, HF_CRASH_NONE, &d->rng, d->image);
    memset(bytes, 0, sizeof bytes);
    size_t len = 0;
    assert_true(hf_vfs_read_file(d->image, "a", 0, bytes, sizeof bytes, &len));
    assert_true(len == sizeof bytes && bytes[0] == 'x' && bytes[100] == 'y' && bytes[LEN - 1] == 'x');
    unsigned whole = 0;
    for (unsigned i = 1; i < BLOCKS; i++) {
        bool is_even = memcmp(bytes + i * LEN, bytes + i * LEN + 1, LEN - 1) == 0;
        whole |= (unsigned)(is_even && bytes[i * LEN] == 'x') << i;
        *ret_torn += !is_even;
    }
    return whole;
}

static void a_failed_sync_leaves_holes_of_whole_blocks(void **state)
{
    disks *d = *state;
    unsigned holes_before_data = 0;
    unsigned torn = 0;
    for (int i = 0; i < 200; i++) {
        unsigned whole = blocks_after_failure(d, &torn);
        holes_before_data += (whole & 0xc) == 0x8;
    }
    assert_true(holes_before_data > 20 && torn > 20);
}

static void each_descriptor_hears_of_a_failed_writeback_once(void **state)
{
    disks *d = *state;
    static const struct {
        bool is_told;   /* another process heard of it */
        int late_first; /* what a descriptor that is opened afterwards hears */
    } CASES[] = {{false, SQLITE_IOERR_FSYNC}, {true, SQLITE_OK}};
    for (size_t i = 0; i < 2; i++) {
        sqlite3_file *early = open_file(d->disk, "a");
        sqlite3_file *other = open_file(d->disk, "a");
        assert_int_equal(put(early, 0, i == 0 ? "one" : "two"), SQLITE_OK);
        assert_true(hf_vfs_writeback_fails(d->disk, "a", ENOSPC, CASES[i].is_told));
        assert_false(hf_vfs_writeback_fails(d->disk, "a", ENOSPC, CASES[i].is_told)); /* nothing is pending any more */
        sqlite3_file *late = open_file(d->disk, "a");
        assert_int_equal(sync_file(late), CASES[i].late_first);
        assert_int_equal(sync_file(early), SQLITE_IOERR_FSYNC);
        int error = 0;
        assert_int_equal(early->pMethods->xFileControl(early, SQLITE_FCNTL_LAST_ERRNO, &error), SQLITE_OK);
        assert_int_equal(error, ENOSPC);
        assert_int_equal(sync_file(early), SQLITE_OK);
        assert_int_equal(sync_file(other), SQLITE_IOERR_FSYNC);
        assert_int_equal(sync_file(late), SQLITE_OK);
        sqlite3_file *last = open_file(d->disk, "a"); /* somebody has heard of it by now */
        assert_int_equal(sync_file(last), SQLITE_OK);
        close_file(early);
        close_file(other);
        close_file(late);
        close_file(last);
    }
}

static void a_full_disk_may_be_found_by_the_sync(void **state)
{
    disks *d = *state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(hf_vfs_name(d->disk));
    sqlite3_file *a = open_file(d->disk, "a");
    hf_vfs_fail(d->disk, HF_IO_ANY, 1, HF_FAULT_LATE_ENOSPC, true);
    assert_int_equal(put(a, 0, "text"), SQLITE_OK);
    assert_int_equal(sync_file(a), SQLITE_IOERR_FSYNC);
    assert_int_equal(vfs->xGetLastError(vfs, 0, NULL), ENOSPC);
    hf_vfs_fail(d->disk, 0, 0, HF_FAULT_EIO, false);
    assert_int_equal(sync_file(a), SQLITE_OK);
    assert_string_equal(text_of(d->disk, "a"), "text");
    close_file(a);
}

/* A directory is synced in three ways. After a failure the next sync has nothing to do, until a name changes. */
static void a_failed_sync_of_the_directory_leaves_names_behind(void **state)
{
    disks *d = *state;
    hf_vfs_write_file(d->disk, "old", "text", 4);
    sqlite3_file *log = NULL;
    assert_int_equal(try_open(d->disk, "log", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL, &log),
                     SQLITE_OK);
    hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
    assert_int_equal(sync_file(log), SQLITE_OK); /* with the directory, whose failure it does not mention */
    assert_int_equal(hf_vfs_faults_hit(d->disk), 1);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "log"), "-");
    assert_int_equal(sync_dir(d->disk), SQLITE_OK);
    assert_string_equal(text_after(d, HF_CRASH_NONE, "log"), "-");
    hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
    assert_int_equal(delete_file(d->disk, "old", 1), SQLITE_IOERR_DIR_FSYNC);
    assert_string_equal(text_of(d->disk, "old"), "-");
    assert_string_equal(text_after(d, HF_CRASH_NONE, "old"), "text");
    sqlite3_file *more = open_file(d->disk, "more");
    hf_vfs_fail(d->disk, HF_IO_SYNC_DIR, 1, HF_FAULT_EIO, false);
    assert_int_equal(sync_dir(d->disk), SQLITE_IOERR_DIR_FSYNC);
    assert_int_equal(delete_file(d->disk, "more", 0), SQLITE_OK);
    assert_int_equal(sync_dir(d->disk), SQLITE_OK); /* takes all of them along */
    assert_string_equal(text_after(d, HF_CRASH_NONE, "log"), "");
    assert_string_equal(text_after(d, HF_CRASH_NONE, "old"), "-");
    hf_vfs_fail(d->disk, HF_IO_OPEN, 1, HF_FAULT_EIO, false);
    assert_int_equal(sync_dir(d->disk), SQLITE_CANTOPEN);
    close_file(log);
    close_file(more);
}

/* ---- Under SQLite ------------------------------------------------------------------------------------------------ */

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static sqlite3 *open_db(hf_vfs *disk)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(sqlite3_open_v2("test.db", &db, flags, hf_vfs_name(disk)), SQLITE_OK);
    return db;
}

static void connections_keep_each_other_out(void **state)
{
    disks *d = *state;
    sqlite3 *first = open_db(d->disk);
    sqlite3 *second = open_db(d->disk);
    assert_int_equal(run_sql(first, "CREATE TABLE t (x); BEGIN; SELECT * FROM t"), SQLITE_OK);
    assert_int_equal(run_sql(second, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)"), SQLITE_OK);
    assert_int_equal(run_sql(first, "SELECT * FROM t; INSERT INTO t VALUES (2)"), SQLITE_BUSY);
    assert_int_equal(run_sql(second, "COMMIT"), SQLITE_BUSY); /* the first one still reads */
    assert_int_equal(run_sql(first, "COMMIT"), SQLITE_OK);
    assert_int_equal(run_sql(first, "SELECT * FROM t"), SQLITE_BUSY); /* and now the second waits to write */
    assert_int_equal(run_sql(second, "COMMIT"), SQLITE_OK);
    assert_int_equal(run_sql(first, "SELECT * FROM t"), SQLITE_OK);
    assert_int_equal(run_sql(second, "PRAGMA locking_mode=exclusive; INSERT INTO t VALUES (3)"), SQLITE_OK);
    assert_int_equal(run_sql(first, "SELECT * FROM t"), SQLITE_BUSY);
    assert_int_equal(sqlite3_close(first), SQLITE_OK);
    assert_int_equal(sqlite3_close(second), SQLITE_OK);
}

static void a_wal_needs_exclusive_locking(void **state)
{
    disks *d = *state;
    sqlite3 *db = open_db(d->disk);
    assert_int_equal(run_sql(db, "PRAGMA journal_mode=wal; CREATE TABLE t (x)"), SQLITE_OK);
    assert_string_equal(text_of(d->disk, "test.db-wal"), "-"); /* refused, and a rollback journal used */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    db = open_db(d->disk);
    assert_int_equal(run_sql(db, "PRAGMA locking_mode=exclusive; PRAGMA journal_mode=wal"), SQLITE_OK);
    assert_int_equal(run_sql(db, "INSERT INTO t VALUES (1)"), SQLITE_OK);
    assert_string_not_equal(text_of(d->disk, "test.db-wal"), "-");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    db = open_db(d->disk);
    assert_int_equal(run_sql(db, "SELECT * FROM t"), SQLITE_CANTOPEN);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void temporary_files_leave_no_trace(void **state)
{
    disks *d = *state;
    sqlite3 *db = open_db(d->disk);
    assert_int_equal(run_sql(db, "CREATE TABLE t (x)"), SQLITE_OK);
    uint64_t ops = hf_vfs_ops(d->disk);
    uint64_t writes = hf_vfs_io_ops(d->disk, HF_IO_WRITE);
    uint64_t hash = hf_vfs_hash(d->disk);
    assert_int_equal(run_sql(db, "PRAGMA temp_store=file; PRAGMA temp.cache_size=2; CREATE TEMP TABLE big AS"
                                 " WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
                                 " SELECT i, printf('%.*c', 1000, 'x') FROM n"),
                     SQLITE_OK);
    assert_true(hf_vfs_io_ops(d->disk, HF_IO_WRITE) > writes);
    assert_int_equal(hf_vfs_ops(d->disk), ops);
    assert_true(hf_vfs_hash(d->disk) == hash);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest TESTS[] = {
    TEST(a_sync_makes_its_own_file_durable_and_no_other),
    TEST(a_deletion_is_durable_only_with_its_directory),
    TEST(later_changes_may_survive_earlier_ones),
    TEST(a_write_tears_between_sectors_in_any_order),
    TEST(without_powersafe_overwrite_a_torn_write_spoils_its_neighbours),
    TEST(the_dead_can_close_but_change_nothing),
    TEST(a_hook_may_cut_the_power_before_a_change),
    TEST(equal_contents_have_equal_hashes),
    TEST(each_fault_does_what_it_says),
    TEST(a_failed_sync_drops_what_it_should_have_written),
    TEST(a_failed_sync_leaves_holes_of_whole_blocks),
    TEST(each_descriptor_hears_of_a_failed_writeback_once),
    TEST(a_full_disk_may_be_found_by_the_sync),
    TEST(a_failed_sync_of_the_directory_leaves_names_behind),
    TEST(connections_keep_each_other_out),
    TEST(a_wal_needs_exclusive_locking),
    TEST(temporary_files_leave_no_trace),
};

int main(int argc, char **argv)
{
    return hf_test_main("vfs", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
