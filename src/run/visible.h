/* hf_visible: what lists and counts see of a run. It is made from a run in memory or from the body of a state row, and is what
 * filters (src/where) are evaluated over.
 *
 * run-S1  A run in memory and its own state row give the same hf_visible, so a list need not know where a run was found. */
#ifndef HF_RUN_VISIBLE_H
#define HF_RUN_VISIBLE_H

#include "run/run.h"
#include "where/where.h"

typedef struct hf_visible {
    int64_t number;
    hf_str namespace_;
    hf_str workflow_id;
    hf_str run_id;
    hf_str first_run_id;
    hf_str workflow_type;
    hf_str task_queue;
    hf_str start;             /* WorkflowExecutionStartedEventAttributes: the rare fields (hf_run.start) */
    hf_str memo;              /* Memo */
    hf_str search_attributes; /* SearchAttributes */
    hf_str paused;            /* hf_visible_paused */
    hf_run_kind kind;
    int32_t status;
    int64_t start_time;
    int64_t close_time; /* 0 = it is open */
    int64_t event_count;
    int64_t history_len;
    uint64_t transitions;
    int64_t keep;     /* ns: it goes this long after its end; 0 = when its namespace says */
    bool is_hidden;   /* it is being deleted */
    bool is_nameless; /* its workflow id does not lead to it any more */
} hf_visible;

/* The texts are the run's, or lie in the arena: check its status. */
hf_visible hf_visible_of_run(const hf_run *run, hf_arena *arena);
/* The same of the body of a state row. If the row is of an earlier version, has pieces in rows of their own that a list shows, or an activity is
 * paused, the state alone does not say everything: false. */
bool hf_visible_of_sight(const hf_pb_run_sight *sight, hf_visible *ret_visible);
/* Bytes of its texts. */
size_t hf_visible_len(const hf_visible *visible);
/* A copy with its texts; check the arena's status. */
hf_visible hf_visible_copy(hf_arena *arena, const hf_visible *visible);

/* The row of a filter: a run, and what was decoded of it so far. */
typedef struct hf_visible_row {
    const hf_visible *run;
    hf_arena *arena; /* for what is decoded; the caller resets it */
    bool has_facts;
    hf_start_facts facts;
    bool has_attributes;
    hf_pb_search_attributes attributes;
} hf_visible_row;

/* An attribute of the system that is a number. */
int64_t hf_visible_number(hf_visible_row *row, hf_attr_id id);
/* An hf_where_get over an hf_visible_row. */
void hf_visible_get(const void *row, const hf_attr *attr, hf_attr_value *ret_value);

/* As lists show it. Texts that do not fit the arena are left out: check its status. */
void hf_visible_show(const hf_visible *visible, hf_arena *arena, hf_pb_workflow_execution_info *ret_info);

/* The value of the search attribute TemporalPauseInfo: a JSON list with the types of the activities that are paused, each once, in
 * order. Empty = none is, or the run is not open. Unlike other search attributes this one does not follow from the events. */
hf_str hf_visible_paused(const hf_run *run, hf_arena *arena);
bool hf_visible_is_paused_name(hf_str name);
/* NULL: no memory. */
hf_pb_payload *hf_visible_paused_payload(hf_arena *arena, hf_str paused);
/* The attributes with this one; `*attributes` may be NULL. */
void hf_visible_put_paused(hf_arena *arena, hf_str paused, hf_pb_search_attributes **attributes);

/* The value of a search attribute. False: the payload is not a value of that type. `*ret_value` is not set for a payload that means "no
 * value". Texts lie in the arena or the payload. */
bool hf_attr_value_of_payload(hf_arena *arena, hf_attr_type type, const hf_pb_payload *payload,
                              hf_attr_value *ret_value);

#endif
