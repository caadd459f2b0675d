/* One owner per file, and the names of the files beside a database. Both kinds of files have the same. */
#ifndef HF_STORE_SQLITE_OWNER_H
#define HF_STORE_SQLITE_OWNER_H

#include "store/store.h"

#define HF_PATH_LEN_MAX 4096 /* bytes of a path buffer; a database's path leaves 32 of them for suffixes */

/* ---- beside.c ---------------------------------------------------------------------------------------------------------- */

/* Writes the name of a file beside the database at `path` to a buffer of HF_PATH_LEN_MAX bytes: the absolute path,
 * since the program may change its directory, and `suffix`. A symbolic link is followed first, as SQLite does for the
 * log, so that all names of a file lead to the same lock, log and socket. False: the name is too long. */
bool hf_beside(const char *path, const char *suffix, char *ret_name);
/* Writes "unix:PATH-sock", the address of the owner's socket, to a buffer of HF_PATH_LEN_MAX bytes. A path that is not a
 * link is used as given, not made absolute: the address of a socket may only be about 100 bytes long. */
void hf_beside_socket(const char *path, char *ret_address);

/* ---- owner.c ----------------------------------------------------------------------------------------------------------- */

typedef struct hf_file_owner {
    char path[HF_PATH_LEN_MAX]; /* of the lock file; empty = not taken */
    int fd;                     /* descriptor that holds the lock */
} hf_file_owner;

/* Makes the caller the owner of the database at `path`, or finds the process that is. `is_brief`: the caller is a tool
 * that only reads; other openers wait a while for it. Blocks.
 * Fails: HF_ERR_EXISTS (there is an owner: `*ret_holder` is its process, negative = that of a tool, 0 = unknown),
 * HF_ERR_NOT_FOUND (no such folder), HF_ERR_DENIED, HF_ERR_FULL, HF_ERR_IO, HF_ERR_INVALID (the path is too long, or
 * not a file). */
hf_status hf_file_owner_take(hf_op *op, hf_env *env, const char *path, bool is_brief, hf_file_owner *ret_owner,
                             int64_t *ret_holder);
/* The same for a file of this kind, whose tool the message names. */
hf_status hf_file_owner_take_of(hf_op *op, hf_env *env, const hf_table_set *tables, const char *path, bool is_brief,
                                hf_file_owner *ret_owner, int64_t *ret_holder);
void hf_file_owner_release(hf_env *env, hf_file_owner *owner); /* accepts an owner that was not taken (zeroed) */

#endif
