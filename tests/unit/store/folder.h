/* A folder of a real disk with a database in it, for the tests of the SQLite store. */
#ifndef HF_TESTS_STORE_FOLDER_H
#define HF_TESTS_STORE_FOLDER_H

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct folder {
    char path[64];  /* of the folder */
    char file[128]; /* of a database in it ... */
    char log[160];  /* ... of its log ... */
    char copy[160]; /* ... and of whatever is put aside */
} folder;

static inline folder folder_new(void)
{
    folder f = {.path = "/tmp/hf_sqlite_XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    (void)snprintf(f.file, sizeof f.file, "%s/a b?c#d%%41.db", f.path);
    (void)snprintf(f.log, sizeof f.log, "%s-wal", f.file);
    (void)snprintf(f.copy, sizeof f.copy, "%s.copy", f.file);
    return f;
}

static inline void folder_free(folder *f)
{
    static const char *const ENDINGS[] = {"", "-wal", "-shm", "-journal", ".copy"};
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s%s", f->file, ENDINGS[i]);
        (void)unlink(name);
    }
    assert_int_equal(rmdir(f->path), 0); /* nothing else was made */
}

#endif
