/* Runs and workflow ids that are in memory, or on their way there; and the questions to the store that bring them. */
#ifndef HF_ENGINE_LOAD_H
#define HF_ENGINE_LOAD_H

#include "base/arena.h"
#include "base/map.h"
#include "engine/core.h"
#include "engine/history_page.h"
#include "engine/slot.h"
#include "run/run.h"
#include "store/store.h"

/* A workflow id: which run is the current one. */
struct hf_name {
    hf_map_node by_text;
    hf_node want_link; /* of HF_SLOT(run)->wanted_as, while a run that may be the current one is loaded */
    hf_owned text;     /* namespace, 0x1f, workflow id */
    hf_run *run;       /* the current one, when it is in memory */
    bool loading;      /* it is being looked for */
    bool fresh;        /* nobody has looked for it yet */
    int64_t bad_run;   /* the run that is found cannot be read; 0 = fine */
    bool in_table;     /* loading: no run in memory's part of the index, now the table is asked */
    int64_t below;     /* loading: runs from this number on have another name */
    hf_list waiting;   /* calls */
};

/* A question to the store. */
typedef enum hf_read_kind {
    HF_READ_NAME,
    HF_READ_RUN,
    HF_READ_HISTORY,
    HF_READ_TASKS,
    HF_READ_DUE,
    HF_READ_FILTER
} hf_read_kind;

typedef struct hf_read {
    hf_store_request request;
    hf_node link; /* of core->reads */
    hf_arena arena;
    hf_read_kind kind;
    hf_name *name;     /* NAME */
    hf_run *run;       /* RUN */
    hf_queue *queue;   /* TASKS */
    hf_call *call;     /* HISTORY */
    int64_t to;        /* HISTORY: last event in rows */
    hf_page_want want; /* HISTORY */
    hf_owned tail;     /* HISTORY: what comes behind those in the table */
} hf_read;

hf_run *hf_run_find(hf_core *core, int64_t number);
void hf_slot_free(hf_core *core, hf_slot *slot);
hf_run *hf_run_load(hf_core *core, int64_t number); /* in memory, or loading */
hf_run *hf_run_add(hf_core *core, int64_t number);  /* empty */
hf_run *hf_run_create(hf_core *core);               /* with the next number */
void hf_run_remove(hf_core *core, hf_run *run);     /* from memory */
hf_name *hf_name_add(hf_core *core, hf_str namespace_,
                     hf_str workflow_id); /* without asking the store: `fresh` if new */
hf_name *hf_name_get(hf_core *core, hf_str namespace_, hf_str workflow_id); /* known, or loading */
void hf_name_drop(hf_core *core, hf_name *name);                            /* when it says nothing any more */
void hf_name_bind(hf_name *name, hf_run *run); /* its current one; to each its other, whatever they had before */
void hf_load_done(hf_core *core, hf_read *read);
hf_read *hf_read_new(hf_core *core, hf_read_kind kind, hf_table table);
void hf_read_submit(hf_core *core, hf_read *read);
void hf_read_free(hf_core *core, hf_read *read);

#endif
