/* The files beside a database. A program that opens it through a symbolic link must find the log that SQLite has put
 * beside the file itself, and the lock that was taken under the file's own name. A tool that found neither would take
 * the file for one that is at rest. */
#include "store/sqlite/owner.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>

bool hf_beside(const char *path, const char *suffix, char *ret_name)
{
    char file[HF_PATH_LEN_MAX];
    (void)hf_sqlite_follow(path, file, sizeof file);
    int len = snprintf(ret_name, HF_PATH_LEN_MAX, "%s%s", file, suffix);
    return len > 0 && len < HF_PATH_LEN_MAX;
}

void hf_beside_socket(const char *path, char *ret_address)
{
    char file[HF_PATH_LEN_MAX];
    bool is_link = hf_sqlite_follow(path, file, sizeof file);
    (void)snprintf(ret_address, HF_PATH_LEN_MAX, "unix:%.*s-sock", HF_PATH_LEN_MAX - 11, is_link ? file : path);
}
