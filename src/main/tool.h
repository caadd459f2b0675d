/* Shared by the commands of the program. */
#ifndef HF_MAIN_TOOL_H
#define HF_MAIN_TOOL_H

#include "base/arena.h"
#include "base/buf.h"
#include "inspect/look.h"
#include "open/open.h"

/* Exit codes. */
enum {
    HF_EXIT_FINE = 0,
    HF_EXIT_DAMAGED = 1, /* damage was found, or the work failed */
    HF_EXIT_USAGE = 2,
    HF_EXIT_CANNOT_OPEN = 3
};

/* The command line of one command. */
typedef struct hf_tool_args {
    const char *words[4]; /* the arguments that are not options */
    int word_count;
    bool json;              /* --json */
    bool deep;              /* --deep */
    bool all;               /* --all */
    bool full;              /* --full */
    const char *run;        /* --run ID */
    const char *out;        /* -o DIR */
    const char *limit;      /* --limit N */
    const char *namespace_; /* --namespace NS; "default" */
    bool has_namespace;     /* --namespace was given */
} hf_tool_args;

typedef struct hf_command {
    const char *names[2]; /* "db", "check" */
    const char *usage;    /* arguments and options, for the usage text */
    const char
        *options; /* letters of the options it knows: j(son) d(eep) a(ll) f(ull) r(un) o(ut) n(amespace) l(imit) */
    int words_min;
    int words_max;
    const char *brief;
    int (*run)(const hf_tool_args *args);  /* returns an exit code */
    int (*run_raw)(int argc, char **argv); /* in its place: parses the words behind the command itself */
} hf_command;

int hf_cmd_version(const hf_tool_args *args);
int hf_cmd_check(const hf_tool_args *args);
int hf_cmd_stats(const hf_tool_args *args);
int hf_cmd_backup(const hf_tool_args *args);
int hf_cmd_export(const hf_tool_args *args);
int hf_cmd_show(const hf_tool_args *args);
int hf_cmd_list(const hf_tool_args *args); /* these eight: query.c */
int hf_cmd_count(const hf_tool_args *args);
int hf_cmd_namespace_list(const hf_tool_args *args);
int hf_cmd_namespace_register(const hf_tool_args *args);
int hf_cmd_namespace_deprecate(const hf_tool_args *args);
int hf_cmd_attribute_list(const hf_tool_args *args);
int hf_cmd_attribute_add(const hf_tool_args *args);
int hf_cmd_attribute_remove(const hf_tool_args *args);
int hf_cmd_serve(int argc, char **argv);     /* serve.c */
int hf_cmd_start_dev(int argc, char **argv); /* serve.c */
int hf_cmd_key_add(int argc, char **argv);   /* key.c, as the next two */
int hf_cmd_key_list(int argc, char **argv);
int hf_cmd_key_revoke(int argc, char **argv);
int hf_list_runs(const hf_tool_args *args); /* list.c: show without a run */

/* ---- source.c: a database, at rest or in use ---------------------------------------------------------------------------- */

typedef struct hf_source {
    hf_env *env;
    const char *path;
    int64_t holder;             /* process that has it open; 0 = none, or unknown */
    bool is_owned;              /* a program has it open */
    hf_peek peek;               /* open if no program has the file open, or on a copy that the owner made */
    char copy[HF_PATH_LEN_MAX]; /* path of that copy, removed at the end; empty = none */
} hf_source;

/* Opens the database for reading, or finds the program that has it open. Returns an exit code; a failure is reported on
 * stderr. */
int hf_source_open(hf_source *source, const char *path);
/* The same, but if the database is in use, its owner first makes a copy beside it, and the copy is opened. */
int hf_source_open_still(hf_source *source, const char *path);
void hf_source_close(hf_source *source);

/* Prints "holdfast: ..." to stderr and returns `code`. */
int hf_complain(int code, const char *format, ...) HF_PRINTF(2, 3);
/* One line of progress that writes over itself; only on a terminal. NULL ends it. */
void hf_progress(const char *format, ...) HF_PRINTF(1, 2);

/* ---- put.c: texts for people ----------------------------------------------------------------------------------------------- */

/* Writes foreign text without control characters and returns the number of characters. Text of more than `len_max`
 * bytes is cut, and its length is written after it. */
size_t hf_put_text(hf_buf *out, hf_str text, size_t len_max);
/* "3 d 4 h", "0.103 s". */
void hf_put_span(hf_buf *out, int64_t ns);

/* ---- timeline.c: a run for people ----------------------------------------------------------------------------------------- */

/* A run as it is shown, read from the file or from its owner. */
typedef struct hf_run_view {
    hf_str namespace_;
    hf_str workflow_id;
    hf_str run_id;
    int32_t status;                             /* WorkflowExecutionStatus */
    hf_str history;                             /* History bytes */
    const hf_pb_pending_activity_info *pending; /* activities that have not ended */
    size_t pending_count;
    size_t buffered_count; /* events that wait for the end of a workflow task */
    bool is_at_rest;       /* no program has the file open, so nothing runs */
    uint32_t crashes;      /* times in a row that a program ended while it worked on this run's workflow task */
    int64_t pause_until;   /* ns: the workflow task is not handed out before this time; 0 = no pause */
    const hf_pb_admin_insight *insight; /* from the program that has the file open; NULL = none, or an older version */
    bool is_full;                       /* show texts and payloads of any length */
} hf_run_view;

/* Writes the timeline. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_timeline_write(hf_op *op, const hf_run_view *view, int64_t now_ns, hf_buf *out);

#endif
