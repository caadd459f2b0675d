/* The stream of a chain of runs: records that workflows and activities publish, and readers follow (docs/adr/0027).
 *
 * Records are numbered from 0 over all runs of a chain. A run owns those that were appended while it was open: they are in its log as
 * HF_CHANGE_STREAM_APPENDED, and in rows of its own when its rows are written. No history tells of them.
 *
 * run-R7  first <= spilled <= next. Records spilled .. next - 1 are in the log, dense and in order; first .. spilled - 1 are in rows. */
#ifndef HF_RUN_STREAM_H
#define HF_RUN_STREAM_H

#include "run/run.h"

#define HF_STREAM_STOPS_MAX 32     /* earlier runs that a state names; their first rows name those before them */
#define HF_STREAM_REQUESTS_MAX 256 /* request ids that a run remembers: the last ones */
#define HF_STREAM_RECORD_FIELD 1u  /* of a record in StreamRecords */

/* An earlier run of the chain that has records. */
typedef struct hf_run_stream_stop {
    int64_t run;
    int64_t first; /* number of its first record */
} hf_run_stream_stop;

/* Where a HF_CHANGE_STREAM_APPENDED begins in the log. */
typedef struct hf_run_stream_mark {
    int64_t first;
    size_t at;
} hf_run_stream_mark;

struct hf_run_stream {
    int64_t first;                    /* records of earlier runs of the chain */
    int64_t next;                     /* and those of this run */
    int64_t spilled;                  /* records below this are in rows */
    int64_t len;                      /* bytes of all records */
    int64_t first_len;                /* of those of earlier runs */
    HF_VEC(hf_run_stream_stop) stops; /* oldest first */
    HF_VEC(uint64_t) requests;        /* hf_request_hash, oldest first */
    HF_VEC(hf_run_stream_mark) marks; /* in the log, up to `looked` */
    size_t looked;
};

static inline int64_t hf_run_stream_first(const hf_run *run)
{
    return run->stream != NULL ? run->stream->first : 0;
}

static inline int64_t hf_run_stream_next(const hf_run *run)
{
    return run->stream != NULL ? run->stream->next : 0;
}

/* Records below this are in rows. */
static inline int64_t hf_run_stream_spilled(const hf_run *run)
{
    return run->stream != NULL ? run->stream->spilled : 0;
}

static inline int64_t hf_run_stream_len(const hf_run *run)
{
    return run->stream != NULL ? run->stream->len : 0;
}

void hf_run_stream_free(hf_run_memory *memory, hf_run *run);
/* Whether records with this hf_request_hash were appended. */
bool hf_run_stream_knows(const hf_run *run, uint64_t request);
/* What the next run of the chain begins with, and at most `stops_max` stops; in the arena. False: no memory. */
bool hf_run_stream_follow(const hf_run *run, size_t stops_max, hf_arena *arena, hf_pb_stream_began *ret_began);

hf_status hf_run_stream_apply_appended(hf_apply *a, hf_run *run, hf_str bytes);
hf_status hf_run_stream_apply_began(hf_apply *a, hf_run *run, hf_str bytes);

/* state.c. False: no memory in the arena. */
bool hf_run_stream_encode(const hf_run *run, hf_arena *arena, hf_pb_run_state *msg);
void hf_run_stream_decode(hf_run_memory *memory, hf_run *run, const hf_pb_run_state *msg);
/* What is wrong with it; NULL = nothing. */
const char *hf_run_stream_wrong(const hf_run *run);
/* All of its records are in rows now, and its log is about to go. */
void hf_run_stream_written(hf_run_memory *memory, hf_run *run);

/* A walk over records, one by one: in a log, or in the bytes of StreamRecords. */
typedef struct hf_run_stream_walk {
    hf_str log;       /* changes that follow */
    hf_str records;   /* records that follow, of the change or row at hand */
    int64_t sequence; /* of the next record */
} hf_run_stream_walk;

/* Those in the log from this number on. */
hf_run_stream_walk hf_run_stream_walk_log(hf_run_memory *memory, hf_run *run, int64_t from);
static inline hf_run_stream_walk hf_run_stream_walk_records(int64_t first, hf_str records)
{
    return (hf_run_stream_walk){.records = records, .sequence = first};
}
/* The next record as an element of StreamRecords; `walk->sequence` is then the number of the one behind it. False: there are no more, or the
 * next one cannot be read: then walk->records.len > 0. */
bool hf_run_stream_walk_next(hf_run_stream_walk *walk, hf_str *ret_element);

#endif
