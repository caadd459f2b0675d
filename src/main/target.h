/* TARGET: what a verb works on.
 *
 *     orders.db, sqlite:orders.db   a file. If a program has it open, that program is asked; else the file itself is opened
 *     owner:orders.db               the program that has it open, and nothing else
 *     temporal://HOST[:PORT][?...]  a server
 *     @                             the server of HOLDFAST_ADDRESS, or of ~/.config/holdfast/config */
#ifndef HF_MAIN_TARGET_H
#define HF_MAIN_TARGET_H

#include "main/tool.h"

#include <holdfast/service.h>

typedef enum hf_target_kind {
    HF_TARGET_REST,  /* a file that no program has open */
    HF_TARGET_OWNED, /* a file that one has */
    HF_TARGET_SERVER
} hf_target_kind;

typedef struct hf_tool_target {
    hf_target_kind kind;
    const char *word;       /* as given */
    const char *path;       /* of a file */
    const char *namespace_; /* of the command line, which knows the settings */
    char address[3 * HF_PATH_LEN_MAX];
    char api_key[1024];  /* from HOLDFAST_API_KEY; empty = none */
    hf_service *service; /* NULL = it is not open */
} hf_tool_target;

/* Finds out what it is, without opening it. Returns an exit code; a failure was told. */
int hf_target_find(hf_tool_target *target, const hf_tool_args *args);
/* The same, and opens it. */
int hf_target_open(hf_tool_target *target, const hf_tool_args *args);
/* Opens one that was found. */
int hf_target_reach(hf_tool_target *target);
/* After a call has failed because the program that had the file open has ended: closes what is open, finds the file again and opens it, so that this
 * process goes on with it, or asks its next owner. Returns an exit code; a failure was told. */
int hf_target_again(hf_tool_target *target);
/* Whether that helps. */
bool hf_target_was_left(const hf_tool_target *target, hf_status status);
/* Closes it. `code` is what the verb has come to; a failure of the closing is told. */
int hf_target_close(hf_tool_target *target, int code);

/* Whether the word names a server: temporal://..., or @. */
bool hf_target_is_server(const char *word);
/* Whether the word begins with letters and a colon that are the scheme of no address, which is told then: sqllite:x.db is a mistake, and
 * ./sqllite:x.db a file. */
bool hf_target_is_strange(const char *word);
/* The namespace that the settings name for a server; NULL = none, or it is a file. It stays. */
const char *hf_target_namespace(const char *word);

/* The exit code of a call that has failed, or HF_EXIT_FINE. */
int hf_exit_of(hf_status status);
/* The sentence without the name of the C function that failed: "hf_signal of workflow 'a': it has ended" says "it has ended". */
const char *hf_reason_of(const char *text);
/* Tells hf_error_text(), and gives its exit code. */
int hf_told(hf_status status);

#endif
