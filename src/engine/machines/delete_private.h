/* Shared by the files of a deletion: delete.c, delete_search.c, delete_bad.c and delete_end.c. */
#ifndef HF_ENGINE_MACHINES_DELETE_PRIVATE_H
#define HF_ENGINE_MACHINES_DELETE_PRIVATE_H

#include "engine/core_private.h"
#include "engine/delete.h"
#include "engine/load.h"

typedef enum hf_deletion_stage {
    DELETION_SEARCH,
    DELETION_NAME,  /* of a bad run: whether the index has it under this name */
    DELETION_DUE,   /* of a bad run: its deadline is looked for */
    DELETION_TASKS, /* of a bad run: its tasks are looked for */
    DELETION_FOUND,
    DELETION_STUCK
} hf_deletion_stage;

struct hf_deletion {
    hf_call call; /* to another run of the id; first */
    hf_node link; /* of one of hf_deletions' lists */
    hf_core *core;
    hf_arena arena; /* the request of `call`, and what was found of a bad run */
    hf_pb_workflow_execution execution;
    hf_pb_delete_workflow_execution_request request;
    int64_t run;
    int64_t hash;    /* of its name */
    uint64_t commit; /* that holds its mark; 0 = an earlier one */
    hf_deleting level;
    hf_deletion_stage stage;
    bool is_bad;
    bool was_free;    /* nothing else held it in memory */
    bool has_name;    /* the index may have it */
    bool has_waited;  /* for its messages or readers */
    bool is_newer;    /* the run that `call` met has the same name, and is newer */
    int64_t meets;    /* the run that `call` goes to */
    bool in_table;    /* searching: the part of the index in memory has no more runs */
    int64_t below;    /* searching: runs from this number on were looked at */
    uint64_t deletes; /* hf_names.deletes when the table was asked */
    hf_key from;      /* of a bad run: where the walk over a table goes on */
    hf_call *caller;  /* is answered when the search is over, or with the commit of a bad run; NULL = nobody */
    struct {
        hf_key *items;
        size_t count;
    } due, tasks; /* rows of a bad run, in the arena */
};

/* ---- delete.c ----------------------------------------------------------------------------------------------------------- */

/* The deletion goes to another of hf_deletions' lists. */
void hf_deletion_move(hf_deletion *it, hf_list *to);
/* Searches from the beginning. */
void hf_deletion_restart(hf_deletion *it);
void hf_deletion_free(hf_core *core, hf_deletion *it);
/* A damaged run is not deleted after all; nothing has happened to it. Frees the deletion. */
void hf_deletion_give_up(hf_core *core, hf_deletion *it);
/* Answers the caller, if somebody waits. */
void hf_deletion_answer(hf_core *core, hf_deletion *it);
void hf_deletion_refuse(hf_core *core, hf_deletion *it, hf_status status, const char *why);
/* A record that it needs cannot be read. A damaged run stays as it is; the deletion of another one goes on at the next opening. */
void hf_deletion_stick(hf_core *core, hf_deletion *it, const char *why);

/* ---- delete_search.c ---------------------------------------------------------------------------------------------------- */

/* A read for the deletion, which is idle until its answer comes. NULL: engine-E2. */
hf_read *hf_deletion_ask_table(hf_core *core, hf_deletion *it, hf_table table);
/* Looks for the next run of the id; the rows of that read have come. */
void hf_deletion_search(hf_core *core, hf_deletion *it);
void hf_deletion_searched(hf_core *core, hf_deletion *it, const hf_read *read);

/* ---- delete_bad.c ------------------------------------------------------------------------------------------------------- */

/* Asks whether the caller's workflow id leads to the damaged run, or did until its name was deleted; the answer. */
void hf_deletion_check_name(hf_core *core, hf_deletion *it);
void hf_deletion_name_known(hf_core *core, hf_deletion *it, bool is_known, bool is_gone);
/* Reads a page of the table; keeps the rows of the damaged run. */
void hf_deletion_walk(hf_core *core, hf_deletion *it, hf_table table);
void hf_deletion_walked(hf_core *core, hf_deletion *it, const hf_read *read);

#endif
