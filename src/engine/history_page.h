/* A page of a history. */
#ifndef HF_ENGINE_HISTORY_PAGE_H
#define HF_ENGINE_HISTORY_PAGE_H

#include "engine/core.h"
#include "run/run.h"

/* Where a history goes on. In a next_page_token, sealed (token.c). */
typedef struct hf_page {
    int64_t run;     /* its number: a history goes on with the run it began with */
    int64_t next;    /* first event of the next page; from the end: its newest one */
    int64_t last;    /* of a workflow task: no events beyond this one; 0 = up to the end of the history */
    int32_t attempt; /* of a transient workflow task, whose two events come behind the last one; 0 = none */
    int64_t stamp;   /* the same task's started_time */
    bool is_reverse; /* from the end of the history to its beginning */
} hf_page;

/* Events for an answer, and where they go. */
typedef struct hf_page_want {
    hf_page page;        /* `next` moves on as events are found */
    int64_t to;          /* the last event wanted */
    size_t count_max;    /* at most this many events */
    bool open_end;       /* more events will follow: the last page has a token, too */
    hf_str extra;        /* the events of a transient task, which follow the last event */
    hf_str *ret_history; /* in the response */
    hf_str *ret_token;   /* the same */
} hf_page_want;

/* Replies with as many of the wanted events as fit a page, and a token for the rest. */
void hf_history_reply(hf_core *core, hf_call *call, hf_run *run, hf_page_want want);

#endif
