/* Checks a file before SQLite may touch it: SQLite would recover, and so change, a file that is not ours, and takes a file that lost
 * its beginning for an empty one.
 *
 * The check needs only the first hundred bytes. They may be older than the database, whose newest pages are in the write-ahead
 * log until a checkpoint: so the version found here may be too low, never too high, and a file that is shorter than its header
 * says is only judged where there is no log. Page 1 may also be torn: by a crash while a checkpoint copies it from the log, or
 * while a file is made under a rollback journal. If there is a log or a journal, SQLite must repair the page first, and the
 * result is checked again (open.c).
 *
 * SQLite takes whatever log lies beside a file for that file's own. A log without its file, or with one that says it has none (a
 * backup does, until it is first opened), was left by another file with this name: applied to this one it would destroy it.
 *
 *     0  "SQLite format 3\0"    16 page size    19 1 = no log, 2 = one    28 pages    60 user_version    68 application_id */
#include "store/sqlite/sqlite_private.h"

#include <errno.h>
#include <stdio.h>

enum { HEADER_LEN = 100 };
_Static_assert(HEADER_LEN >= 68 + 4, "the application id is the last field that is read");

typedef struct look {
    sqlite3_vfs *vfs;                 /* that reads the file */
    const char *path;                 /* as the caller names it, for messages */
    const hf_table_set *tables;       /* the wanted kind of file */
    sqlite3_int64 len;                /* of the file */
    unsigned char header[HEADER_LEN]; /* zeros where the file is shorter */
    bool has_log;                     /* a write-ahead log lies beside it */
    bool has_journal;                 /* a rollback journal does */
    bool at_rest;                     /* it will be read without a lock: no other process may have a lock */
    bool is_busy;                     /* another process has a lock */
    int error;                        /* errno of the read that failed; 0 = not known */
} look;

static uint32_t get_be32(const unsigned char *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Length of the file `name`, -1 if there is none; reads its beginning. */
static int read_start(look *at, sqlite3_filename name, int kind, unsigned char *ret_bytes, int len,
                      sqlite3_int64 *ret_len)
{
    sqlite3_vfs *vfs = at->vfs;
    hf_assert(len == 0 || ret_bytes != NULL);
    int exists = 0;
    int rc = hf_shim_exists(vfs, name, SQLITE_ACCESS_EXISTS, &exists);
    *ret_len = -1;
    if (rc != SQLITE_OK || exists == 0) {
        return rc;
    }
    sqlite3_file *file = sqlite3_malloc(vfs->szOsFile);
    if (file == NULL) {
        return SQLITE_NOMEM;
    }
    memset(file, 0, (size_t)vfs->szOsFile);
    rc = vfs->xOpen(vfs, name, file, SQLITE_OPEN_READONLY | kind, NULL);
    if (rc == SQLITE_OK) {
        rc = file->pMethods->xFileSize(file, ret_len);
    }
    if (rc == SQLITE_OK && at->at_rest && kind == SQLITE_OPEN_MAIN_DB) {
        at->is_busy = file->pMethods->xLock(file, SQLITE_LOCK_SHARED) == SQLITE_BUSY;
        (void)file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
    }
    if (rc == SQLITE_OK && len > 0) {
        int here = *ret_len < len ? (int)*ret_len : len;
        rc = here > 0 ? file->pMethods->xRead(file, ret_bytes, here, 0) : SQLITE_OK;
    }
    if (rc != SQLITE_OK && vfs->xGetLastError != NULL) {
        at->error = vfs->xGetLastError(vfs, 0, NULL);
    }
    if (file->pMethods != NULL) {
        (void)file->pMethods->xClose(file);
    }
    sqlite3_free(file);
    return rc;
}

/* Whether there is a log or journal beside the file that is not empty. Beside a missing file SQLite opens nothing. */
static int look_beside(look *at, sqlite3_filename name, int kind, bool *ret_is_there)
{
    int exists = 0;
    sqlite3_int64 len = 0;
    int rc = at->len > 0 ? read_start(at, name, kind, NULL, 0, &len)
                         : hf_shim_exists(at->vfs, name, SQLITE_ACCESS_EXISTS, &exists);
    *ret_is_there = exists != 0 || len > 0;
    return rc;
}

/* xAccess answers "no" for an empty file: for SQLite and for us it counts as missing. */
static int read_all(look *at)
{
    char *full = sqlite3_malloc(at->vfs->mxPathname + 1);
    if (full == NULL) {
        return SQLITE_NOMEM;
    }
    full[0] = '\0';
    int rc = at->vfs->xFullPathname(at->vfs, at->path, at->vfs->mxPathname + 1, full) & 0xff;
    char *journal = sqlite3_mprintf("%s-journal", full);
    char *wal = sqlite3_mprintf("%s-wal", full);
    sqlite3_filename name =
        journal != NULL && wal != NULL ? sqlite3_create_filename(full, journal, wal, 0, NULL) : NULL;
    if (name == NULL) {
        rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK) {
        rc = read_start(at, name, SQLITE_OPEN_MAIN_DB, at->header, HEADER_LEN, &at->len);
    }
    if (rc == SQLITE_OK) {
        rc = look_beside(at, sqlite3_filename_wal(name), SQLITE_OPEN_WAL, &at->has_log);
    }
    if (rc == SQLITE_OK) {
        rc = look_beside(at, sqlite3_filename_journal(name), SQLITE_OPEN_MAIN_JOURNAL, &at->has_journal);
    }
    sqlite3_free_filename(name);
    sqlite3_free(journal);
    sqlite3_free(wal);
    sqlite3_free(full);
    return rc;
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Checks that the file begins like a database. */
static hf_status judge_form(hf_op *op, const look *at)
{
    if (at->len < HEADER_LEN) {
        return hf_fail(op, HF_ERR_INVALID, "%s is cut short: it has only %lld bytes; restore it from a backup",
                       at->path, (long long)at->len);
    }
    if (is_zero(at->header, HEADER_LEN)) {
        return hf_fail(op, HF_ERR_INVALID, "%s begins with zeros: it was damaged; restore it from a backup", at->path);
    }
    if (memcmp(at->header, "SQLite format 3", 16) != 0) {
        return hf_fail(op, HF_ERR_INVALID, "%s is not a database; name another file", at->path);
    }
    return HF_OK;
}

hf_status hf_probe_id(hf_op *op, const char *path, const hf_table_set *tables, uint32_t application_id)
{
    const hf_table_set *found = hf_table_set_of_id(application_id);
    if (found == tables) {
        return HF_OK;
    }
    return found != NULL ? hf_fail(op, HF_ERR_INVALID, "%s is %s: open it with %s or name another file", path,
                                   found->is_called, found->opened_with)
                         : hf_fail(op, HF_ERR_INVALID, "%s is a database of another program; name another file", path);
}

/* Checks that it is a database of the wanted kind, of a known version; or bare: at most one page, not marked as anyone's yet. */
static hf_status judge_kind(hf_op *op, const look *at, bool *ret_is_bare)
{
    uint32_t id = get_be32(at->header + 68);
    uint32_t version = get_be32(at->header + 60);
    if (id == HF_SQLITE_UNFINISHED_ID) {
        return hf_fail(op, HF_ERR_INVALID, "%s is a backup that was not finished; delete it and make another",
                       at->path);
    }
    if (id == 0 && version == 0 && get_be32(at->header + 28) <= 1) {
        *ret_is_bare = true;
        return HF_OK;
    }
    HF_TRY(hf_probe_id(op, at->path, at->tables, version != 0 ? id : 0));
    uint32_t newest = (uint32_t)hf_schema_version(at->tables);
    if (version > newest) {
        return hf_fail(op, HF_ERR_UNSUPPORTED,
                       "%s has version %u and this program knows %u at most: use a newer program", at->path, version,
                       newest);
    }
    return HF_OK;
}

/* Checks that the log beside it is its own. The header of a file says durably that it has a log before the log is begun. */
static hf_status judge_log(hf_op *op, const look *at)
{
    if (at->has_log && at->header[19] == 1) {
        return hf_fail(op, HF_ERR_INVALID,
                       "%s-wal is the log of another file that was here before: %s is a copy without a log; delete "
                       "%s-wal to go on with the copy",
                       at->path, at->path, at->path);
    }
    return HF_OK;
}

static hf_status judge_length(hf_op *op, const look *at)
{
    uint32_t page_size = (uint32_t)at->header[16] << 8 | at->header[17];
    page_size = page_size == 1 ? 65536 : page_size;
    if (page_size < 512 || (page_size & (page_size - 1)) != 0) {
        return hf_fail(op, HF_ERR_INVALID, "%s is damaged: %u is not a valid page size; restore it from a backup",
                       at->path, page_size);
    }
    long long wanted = (long long)page_size * get_be32(at->header + 28);
    if (!at->has_log && !at->has_journal && at->len < wanted) {
        return hf_fail(op, HF_ERR_INVALID, "%s is cut short: %lld bytes of %lld; restore it from a backup", at->path,
                       (long long)at->len, wanted);
    }
    return HF_OK;
}

bool hf_sqlite_follow(const char *path, char *ret_path, size_t len)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    char *full = vfs != NULL ? sqlite3_malloc(vfs->mxPathname + 1) : NULL;
    int rc = full != NULL ? vfs->xFullPathname(vfs, path, vfs->mxPathname + 1, full) : SQLITE_NOMEM;
    (void)snprintf(ret_path, len, "%s", (rc & 0xff) == SQLITE_OK ? full : path);
    sqlite3_free(full);
    return rc == SQLITE_OK_SYMLINK;
}

hf_status hf_probe_file(hf_op *op, sqlite3_vfs *vfs, const char *path, const hf_table_set *tables,
                        const hf_sqlite_options *options, hf_sqlite_probe *ret_probe)
{
    look at = {.vfs = vfs, .path = path, .tables = tables, .at_rest = options->read_only && options->at_rest};
    int rc = read_all(&at);
    if (rc == SQLITE_OK && at.is_busy) {
        return hf_fail(op, HF_ERR_CONFLICT, "%s is open in another program, under another name: use that one", path);
    }
    if (rc != SQLITE_OK && at.error == EISDIR) {
        return hf_fail(op, HF_ERR_INVALID, "%s is a folder; name a file in it", path);
    }
    if (rc != SQLITE_OK && at.error == EACCES) {
        return hf_fail(op, HF_ERR_DENIED, "cannot read %s: give this user the right to read and write it", path);
    }
    if (rc != SQLITE_OK) {
        return hf_fail(op,
                       (rc & 0xff) == SQLITE_CANTOPEN ? HF_ERR_DENIED
                       : (rc & 0xff) == SQLITE_NOMEM  ? HF_ERR_NOMEM
                                                      : HF_ERR_IO,
                       "cannot read %s: %s", path, sqlite3_errstr(rc));
    }
    if (at.len <= 0 && at.has_log) {
        return hf_fail(op, HF_ERR_INVALID,
                       "%s is missing, but its log, %s-wal, exists: put the file back, or delete the log to begin "
                       "with a new one",
                       path, path);
    }
    if (at.len <= 0) {
        *ret_probe = HF_PROBE_MISSING;
        return options->must_exist || options->read_only
                   ? hf_fail(op, HF_ERR_NOT_FOUND, "there is no database %s", path)
                   : HF_OK;
    }
    hf_op form; /* a file that SQLite can repair is not a failure */
    hf_op_init(&form);
    hf_status status = judge_form(&form, &at);
    if (status != HF_OK && (at.has_journal || at.has_log)) {
        *ret_probe = HF_PROBE_UNSURE;
        return HF_OK;
    }
    if (status != HF_OK) {
        return hf_fail(op, status, "%s", form.message);
    }
    hf_assert(at.len >= HEADER_LEN); /* all of the header was read */
    bool is_bare = false;
    HF_TRY(judge_kind(op, &at, &is_bare));
    HF_TRY(judge_log(op, &at));
    HF_TRY(judge_length(op, &at));
    *ret_probe = is_bare ? HF_PROBE_UNSURE : HF_PROBE_OURS;
    return HF_OK;
}
