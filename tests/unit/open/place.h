/* A folder for a test's files, and files as bytes. */
#ifndef HF_TESTS_OPEN_PLACE_H
#define HF_TESTS_OPEN_PLACE_H

#include "support/support.h"

#include "base/rng.h"
#include "open/open.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct place {
    char folder[64];
    char path[128];    /* of the database: folder/x.db */
    char address[160]; /* the same as hf_open wants it */
} place;

static inline int place_open(void **state)
{
    place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    (void)snprintf(p->folder, sizeof p->folder, "/tmp/hf_open_XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->path, sizeof p->path, "%s/x.db", p->folder);
    (void)snprintf(p->address, sizeof p->address, "sqlite:%s", p->path);
    *state = p;
    return 0;
}

/* Names in the folder, without the two that are always there. */
static inline int place_count(const place *p)
{
    int count = 0;
    DIR *folder = opendir(p->folder);
    assert_non_null(folder);
    for (const struct dirent *entry = NULL; (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    (void)closedir(folder);
    return count;
}

static inline int place_close(void **state)
{
    place *p = *state;
    (void)chmod(p->folder, 0700);
    DIR *folder = opendir(p->folder);
    for (const struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", p->folder, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(path) != 0) {
            (void)rmdir(path);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)rmdir(p->folder);
    free(p);
    return 0;
}

/* The whole file; freed by the caller. NULL: there is none. */
static inline char *file_bytes(const char *path, size_t *ret_len)
{
    struct stat info;
    FILE *file = stat(path, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) ? fopen(path, "rbe") : NULL;
    if (file == NULL) {
        *ret_len = 0;
        return NULL;
    }
    assert_int_equal(fstat(fileno(file), &info), 0);
    char *bytes = malloc((size_t)info.st_size + 1);
    assert_non_null(bytes);
    *ret_len = S_ISREG(info.st_mode) ? fread(bytes, 1, (size_t)info.st_size, file) : 0;
    (void)fclose(file);
    return bytes;
}

static inline uint64_t file_hash(const char *path)
{
    size_t len = 0;
    char *bytes = file_bytes(path, &len);
    uint64_t hash = bytes != NULL ? hf_hash_bytes(1, bytes, len) : 0;
    free(bytes);
    return hash;
}

static inline void file_put(const char *path, size_t offset, const void *bytes, size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), (ssize_t)len);
    (void)close(fd);
}

#endif
