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
    int64_t bad_run;   /* the run that was found cannot be read; 0 = none */
    bool in_table;     /* loading: the part of the index in memory has no more runs, the table is read */
    uint64_t deletes;  /* hf_names.deletes when the table was asked */
    int64_t below;     /* loading: runs from this number on have another name */
    int64_t newer;     /* loading: a run that began meanwhile is the current one; 0 = none did */
    hf_list waiting;   /* calls */
};

/* A question to the store. */
typedef enum hf_read_kind {
    HF_READ_NAME,
    HF_READ_RUN,
    HF_READ_FIRST, /* the first event of a run whose row is of an earlier version */
    HF_READ_PARTS, /* pieces of a run's state that have rows of their own */
    HF_READ_HISTORY,
    HF_READ_EVENT,
    HF_READ_TASKS,
    HF_READ_BACKLOG, /* the same, to be counted */
    HF_READ_DUE,
    HF_READ_FILTER,
    HF_READ_DELETION, /* for a run that is being deleted */
    HF_READ_RESET,    /* events of a run that is reset, or continued it */
    HF_READ_LIST,     /* a step of a list */
    HF_READ_HOUSE,    /* a step of housekeeping */
    HF_READ_STREAM,   /* records of a stream */
    HF_READ_QUEUES    /* the next task queue with waiting tasks */
} hf_read_kind;

/* What a read of a stream is for. */
typedef enum hf_stream_stage {
    HF_STREAM_ROW,  /* the row that holds the next record */
    HF_STREAM_MORE, /* those behind it */
    HF_STREAM_STOPS /* the first row of a run, which names the runs before it */
} hf_stream_stage;

/* Records for an answer, and where they are (stream.h). */
typedef struct hf_stream_want {
    int64_t run;        /* whose records they are */
    int64_t from;       /* the next one; moves on as records are found */
    int64_t next_first; /* of an earlier run: records go on with this one if the run was deleted; 0 = it is there */
    hf_stream_stage stage;
    size_t count_max; /* at most this many more */
    size_t len_max;   /* bytes of the page */
    bool is_held;     /* the call is in the list of a batch already */
} hf_stream_want;

typedef struct hf_read {
    hf_store_request request;
    hf_node link; /* of core->reads */
    hf_arena arena;
    hf_read_kind kind;
    hf_name *name;                    /* NAME */
    hf_run *run;                      /* RUN, FIRST, PARTS, EVENT */
    hf_queue *queue;                  /* TASKS */
    hf_call *call;                    /* HISTORY, BACKLOG, STREAM, QUEUES */
    hf_deletion *deletion;            /* DELETION */
    hf_reset *reset;                  /* RESET */
    hf_lister *lister;                /* LIST */
    struct hf_house_work *house;      /* HOUSE */
    hf_stream_want stream;            /* STREAM */
    int64_t to;                       /* HISTORY: last event in rows */
    hf_page_want want;                /* HISTORY */
    struct hf_describing *describing; /* BACKLOG; in the arena of the call */
    struct hf_queue_listing *queues;  /* QUEUES; the same */
    hf_owned tail; /* HISTORY: the events after those in the table; PARTS: the value of the run's row */
} hf_read;

hf_run *hf_run_find(hf_core *core, int64_t number);
void hf_slot_free(hf_core *core, hf_slot *slot);
hf_run *hf_run_load(hf_core *core, int64_t number);  /* in memory, or loading */
hf_slot *hf_slot_new(hf_core *core, int64_t number); /* empty, and nobody finds it; NULL: engine-E2 */
bool hf_run_insert(hf_core *core, hf_slot *slot);    /* it can be found from now on; takes it. False: engine-E2 */
hf_run *hf_run_add(hf_core *core, int64_t number);   /* both */
hf_run *hf_run_create(hf_core *core);                /* with the next number */
int64_t hf_run_number_next(hf_core *core);
void hf_run_remove(hf_core *core, hf_run *run); /* from memory */
hf_name *hf_name_add(hf_core *core, hf_str namespace_,
                     hf_str workflow_id); /* without asking the store: `fresh` if new */
/* The run that this id leads to as far as memory knows, or one that is being deleted; NULL = unknown, or none. */
hf_run *hf_name_current(hf_core *core, hf_str namespace_, hf_str workflow_id);
hf_name *hf_name_get(hf_core *core, hf_str namespace_, hf_str workflow_id); /* known, or loading */
void hf_name_drop(hf_core *core, hf_name *name);                            /* if no run or call needs it */
void hf_name_bind(hf_name *name, hf_run *run); /* `run` becomes its current run; old bindings of both end */
/* The run follows the one that was the current run of its id. */
void hf_name_succeed(hf_core *core, hf_run *run);
/* A run that the index gives for this name was loaded: does it have the name? If not the search goes on. */
void hf_name_check(hf_core *core, hf_name *name, hf_run *run);
void hf_name_read(hf_core *core, hf_read *read); /* the answer to HF_READ_NAME */
void hf_load_done(hf_core *core, hf_read *read);
hf_read *hf_read_new(hf_core *core, hf_read_kind kind, hf_table table);
void hf_read_submit(hf_core *core, hf_read *read);
void hf_read_free(hf_core *core, hf_read *read);

#endif
