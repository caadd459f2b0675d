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
    HF_EXIT_DAMAGED = 1, /* damage was found, or the work or the workflow failed */
    HF_EXIT_USAGE = 2,
    HF_EXIT_CANNOT_OPEN = 3, /* or cannot reach, or nobody there who could answer */
    HF_EXIT_NOT_FOUND = 4,
    HF_EXIT_DENIED = 5,
    HF_EXIT_CONFLICT = 6 /* its state does not allow it */
};

/* The command line of one command. */
typedef struct hf_tool_args {
    const char *words[4]; /* TARGET or FILE first: the arguments that are not options */
    int word_count;
    bool json;                     /* --json */
    bool deep;                     /* --deep */
    bool all;                      /* --all */
    bool full;                     /* --full */
    bool first;                    /* --first */
    bool last;                     /* --last */
    bool follow;                   /* --follow */
    bool stuck;                    /* --stuck */
    bool once;                     /* --once */
    bool current;                  /* --current */
    bool damaged;                  /* --damaged */
    const char *id;                /* --id ID */
    const char *queue;             /* --queue NAME */
    const char *timeout;           /* --timeout SPAN */
    const char *event;             /* --event N */
    const char *activity;          /* --activity ID */
    const char *run;               /* --run ID */
    const char *out;               /* -o DIR */
    const char *limit;             /* --limit N */
    const char *signal;            /* --signal NAME */
    const char *input;             /* --input JSON */
    const char *rate;              /* --rate N */
    const char *activity_type;     /* --activity-type NAME */
    const char *start_to_close;    /* --start-to-close SPAN */
    const char *schedule_to_close; /* --schedule-to-close SPAN */
    const char *heartbeat;         /* --heartbeat SPAN */
    const char *attempts;          /* --attempts N */
    bool original;                 /* --original */
    const char *reason;            /* --reason TEXT */
    const char *from;              /* --from N */
    const char *ids;               /* --ids @FILE or - */
    const char *description;       /* --description TEXT */
    const char *owner;             /* --owner EMAIL */
    const char *retention;         /* --retention SPAN */
    const char *state;             /* --state STATE */
    const char *namespace_;        /* --namespace NS; "default" */
    bool has_namespace;            /* --namespace was given */
    char **each;                   /* values of the option that may come again: --id ID of a batch, --data KEY=VALUE */
    size_t each_count;
} hf_tool_args;

typedef struct hf_tool_command {
    const char *names[2]; /* "db", "check" */
    const char *usage;    /* arguments and options, for the usage text */
    const char *options;  /* letters of the options it knows (main.c) */
    int words_min;
    int words_max;
    const char *brief;
    int (*run)(const hf_tool_args *args);  /* returns an exit code */
    int (*run_raw)(int argc, char **argv); /* in its place: parses the words behind the command itself */
} hf_tool_command;

int hf_cmd_version(const hf_tool_args *args);
int hf_cmd_check(const hf_tool_args *args);
int hf_cmd_stats(const hf_tool_args *args);
int hf_cmd_backup(const hf_tool_args *args);
int hf_cmd_retention(const hf_tool_args *args); /* these two: keep.c */
int hf_cmd_shrink(const hf_tool_args *args);
int hf_cmd_export(const hf_tool_args *args);
int hf_cmd_show(const hf_tool_args *args);
int hf_cmd_namespace_register(const hf_tool_args *args); /* these three: space.c */
int hf_cmd_namespace_describe(const hf_tool_args *args);
int hf_cmd_namespace_update(const hf_tool_args *args);
int hf_cmd_list(const hf_tool_args *args); /* these seven: query.c */
int hf_cmd_count(const hf_tool_args *args);
int hf_cmd_namespace_list(const hf_tool_args *args);
int hf_cmd_namespace_deprecate(const hf_tool_args *args);
int hf_cmd_attribute_list(const hf_tool_args *args);
int hf_cmd_attribute_add(const hf_tool_args *args);
int hf_cmd_attribute_remove(const hf_tool_args *args);
int hf_cmd_namespace_delete(const hf_tool_args *args); /* these six: batch.c */
int hf_cmd_delete(const hf_tool_args *args);
int hf_cmd_batch_start(const hf_tool_args *args);
int hf_cmd_batch_stop(const hf_tool_args *args);
int hf_cmd_batch_show(const hf_tool_args *args);
int hf_cmd_batch_list(const hf_tool_args *args);
int hf_cmd_stream(const hf_tool_args *args);      /* stream.c */
int hf_cmd_depot_stats(const hf_tool_args *args); /* these two: depot.c */
int hf_cmd_depot_show(const hf_tool_args *args);
int hf_cmd_depot_pending(const hf_tool_args *args); /* these three: depot_write.c */
int hf_cmd_depot_retry(const hf_tool_args *args);
int hf_cmd_depot_drop(const hf_tool_args *args);
int hf_cmd_start(const hf_tool_args *args); /* these ten: act.c */
int hf_cmd_stack(const hf_tool_args *args);
int hf_cmd_run(const hf_tool_args *args);
int hf_cmd_result(const hf_tool_args *args);
int hf_cmd_signal(const hf_tool_args *args);
int hf_cmd_query(const hf_tool_args *args);
int hf_cmd_update(const hf_tool_args *args);
int hf_cmd_cancel(const hf_tool_args *args);
int hf_cmd_terminate(const hf_tool_args *args);
int hf_cmd_reset(const hf_tool_args *args);
int hf_cmd_why(const hf_tool_args *args);        /* why.c */
int hf_show_follow(const hf_tool_args *args);    /* follow.c: show --follow */
int hf_list_stuck(const hf_tool_args *args);     /* stuck.c: list --stuck */
int hf_cmd_top(const hf_tool_args *args);        /* top.c */
int hf_cmd_completion(const hf_tool_args *args); /* help.c */
int hf_cmd_serve(int argc, char **argv);         /* serve.c */
int hf_cmd_start_dev(int argc, char **argv);     /* serve.c */
bool hf_is_port(const char *word);               /* serve.c: `holdfast PORT` */
int hf_cmd_test_server(const char *port);
int hf_cmd_key_add(int argc, char **argv); /* key.c, as the next two */
int hf_cmd_key_list(int argc, char **argv);
int hf_cmd_key_revoke(int argc, char **argv);
int hf_list_runs(const hf_tool_args *args); /* list.c: show without a run */

/* ---- source.c: a database, at rest or in use ---------------------------------------------------------------------------- */

typedef struct hf_tool_source {
    hf_env *env;
    const char *path;
    int64_t holder;             /* process that has it open; 0 = none, or unknown */
    bool is_owned;              /* a program has it open */
    hf_peek peek;               /* open if no program has the file open, or on a copy that the owner made */
    char copy[HF_PATH_LEN_MAX]; /* path of that copy, removed at the end; empty = none */
} hf_tool_source;

/* Opens the database for reading, or finds the program that has it open. Returns an exit code; a failure is reported on
 * stderr. */
int hf_source_open(hf_tool_source *source, const char *path);
/* The same, but if the database is in use, its owner first makes a copy beside it, and the copy is opened. */
int hf_source_open_still(hf_tool_source *source, const char *path);
void hf_source_close(hf_tool_source *source);

/* query.c: opens the target to change something: a file as a program does, or the program that has it open, or a server. A file that is not
 * there is not made. NULL: it was told why. */
hf_service *hf_change_open(const hf_tool_args *args, int *ret_code);
/* Closes it; the exit code of what was done. */
int hf_change_close(hf_service *service, hf_status status);

/* space.c: "Deprecated"; `state` is a NamespaceState. */
const char *hf_namespace_state_word(int state);
/* query.c: tells that a file has no such namespace. Returns the exit code. */
int hf_no_namespace(const char *name);

/* ---- act.c: the input of a verb ------------------------------------------------------------------------------------------- */

typedef struct hf_input {
    hf_payload payload;
    char *owned; /* the text, if it was read */
} hf_input;

/* JSON, @FILE or - for stdin; NULL = no input. False: it is not JSON, which was told with the byte. */
bool hf_input_read(const char *word, hf_input *ret_input);
/* All of a file, or of stdin (-), with a NUL; freed by the caller. NULL: it was told why. */
char *hf_read_all(const char *name, size_t *ret_len);
void hf_input_free(hf_input *input);

/* Prints "holdfast: ..." to stderr and returns `code`. */
int hf_complain(int code, const char *format, ...) HF_PRINTF(2, 3);
/* One line of progress that writes over itself; only on a terminal. NULL ends it. */
void hf_progress(const char *format, ...) HF_PRINTF(1, 2);
/* The same for one call that does not say how far it is: from its first second on "deleting a: 2 s" is shown, until the end. Not nested. `of` may
 * be NULL. */
void hf_wait_begin(const char *what, const char *of);
void hf_wait_end(void);
/* Whether a second has passed since the first call of this. What is over sooner needs no progress. */
bool hf_takes_long(void);
/* Progress of a walk over runs, if that takes long. */
void hf_progress_runs(uint64_t looked);

/* ---- put.c: texts for people ----------------------------------------------------------------------------------------------- */

/* Writes foreign text without control characters and returns the number of characters. Text of more than `len_max`
 * bytes is cut, and its length is written after it. */
size_t hf_put_text(hf_buf *out, hf_str text, size_t len_max);
/* "3 d 4 h", "0.103 s". */
void hf_put_span(hf_buf *out, int64_t ns);

/* ---- list.c ----------------------------------------------------------------------------------------------------------------- */

/* One page of all runs of a file that a program has open: the newest before the number `before`. */
hf_status hf_owner_page(hf_op *op, const char *path, int64_t before, size_t count_max, hf_arena *arena,
                        hf_pb_admin_runs *ret_page);

/* ---- timeline.c: a run for people ----------------------------------------------------------------------------------------- */

/* A run as it is shown, read from the file or from its owner. */
typedef struct hf_run_view {
    hf_str namespace_;
    hf_str workflow_id;
    hf_str run_id;
    hf_str queue;                               /* its task queue */
    int32_t status;                             /* WorkflowExecutionStatus */
    hf_str history;                             /* History bytes */
    const hf_pb_pending_activity_info *pending; /* activities that have not ended */
    size_t pending_count;
    const hf_pb_pending_child_execution_info *children; /* child workflows that have not ended */
    size_t child_count;
    size_t buffered_count; /* events that wait for the end of a workflow task */
    bool is_at_rest;       /* no program has the file open, so nothing runs */
    uint32_t crashes;      /* times in a row that a program ended while it worked on this run's workflow task */
    int64_t pause_until;   /* ns: the workflow task is not handed out before this time; 0 = no pause */
    bool task_waits;       /* its workflow task waits for a worker ... */
    bool is_unpolled;      /* ... and no worker polls the task queue */
    const bool
        *unpolled; /* for each of `pending`: it waits for a worker, and none polls its task queue; NULL = unknown */
    const hf_pb_admin_insight *insight; /* from the program that has the file open; NULL = none, or an older version */
    bool is_full;                       /* show texts and payloads of any length */
} hf_run_view;

/* ---- show.c: a run, from wherever it is ------------------------------------------------------------------------------------- */

/* A run and the memory that it uses. */
typedef struct hf_shown {
    hf_run_view view;
    hf_buf history;
    hf_buf description; /* from an owner: DescribeWorkflowExecutionResponse */
    hf_buf insight;     /* from an owner: AdminInsight; empty = the owner is an older version without it */
    hf_arena arena;
} hf_shown;

void hf_shown_init(hf_shown *shown);
void hf_shown_deinit(hf_shown *shown);
/* Finds the run by its workflow id or, in a file, by its run id; `run_id` may be NULL. Returns an exit code; a failure was told. */
int hf_shown_take(const hf_tool_args *args, const char *what, const char *run_id, hf_shown *shown);

/* Writes the timeline. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_timeline_write(hf_op *op, const hf_run_view *view, int64_t now_ns, hf_buf *out);

#endif
