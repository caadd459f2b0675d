/* The fields of a core, for the files of this layer. */
#ifndef HF_ENGINE_CORE_PRIVATE_H
#define HF_ENGINE_CORE_PRIVATE_H

#include "base/rng.h"
#include "engine/batch.h"
#include "engine/blocks.h"
#include "engine/changes.h"
#include "engine/core.h"
#include "engine/cursor.h"
#include "engine/delete.h"
#include "engine/filter.h"
#include "engine/operations.h"
#include "engine/probe.h"
#include "engine/reset.h"
#include "engine/slot.h"
#include "engine/suspect.h"
#include "ledger/names.h"

typedef struct hf_namespace hf_namespace;

struct hf_core {
    hf_core_options options;
    hf_allocator memory;       /* counts into `used` */
    hf_run_memory runs_memory; /* the same, for runs; a failed allocation breaks the core (engine-E2) */
    hf_effects effects;        /* of the change that is being applied */
    size_t used;               /* bytes allocated by the core */
    hf_status status;          /* engine-E2; sticky */
    char why[HF_MESSAGE_LEN_MAX];
    hf_clock now;      /* of the input that is being decided */
    int64_t opened_at; /* wall ns */
    hf_arena scratch;  /* of one input */
    hf_op op;          /* of one input */

    hf_map runs; /* by number */
    hf_list runs_all;
    hf_list lru; /* runs that may be dropped, longest unused first */
    hf_list
        ended; /* the same for runs that have ended: most are asked for soon after their end, and then never again */
    size_t ended_count;
    hf_list dirty;   /* runs with changes that are not in rows, by commit_dirty */
    hf_list touched; /* runs with changes in the open batch */
    hf_map names;
    hf_names index;       /* of names that are not in their table yet */
    hf_filter filter;     /* which names have runs with rows */
    hf_map pollers;       /* hf_poller, by queue and identity */
    hf_list shut_workers; /* workers that have shut down, longest ago first (shutdown.c) */
    size_t shut_count;    /* of those */
    hf_heap rated;        /* hf_queue.rate_wait, by the time of their next token */
    hf_map queues;
    hf_list queues_all;
    hf_list queues_marked; /* queues where tasks may meet polls at the end of the portion */
    hf_list unsettled;     /* hf_unwritten of runs that have changed in this step */
    hf_map watches;
    hf_heap due;           /* hf_run.due */
    hf_heap cold_due;      /* hf_cold_due */
    hf_map cold_runs;      /* the same, by run: at most one each, and none once its run is in memory */
    size_t due_loads;      /* runs that are being loaded for their deadlines */
    size_t fired;          /* runs of the open batch that a deadline has changed */
    size_t delivered;      /* messages of the open batch */
    size_t canceled;       /* calls that were canceled in this portion */
    hf_cursor due_cursor;  /* over deadlines on disk, by time and run */
    bool tasks_on_disk;    /* the table may have waiting tasks: new queues look there */
    bool is_opening;       /* tasks go to the end of their queues: hf_match_opened sorts these */
    hf_heap polls;         /* hf_call by deadline: polls with a timeout of their own. The others, in order: */
    hf_list task_polls;    /* for options.poll_span */
    hf_list history_polls; /* for options.history_span */

    hf_commit_batch batches[2];
    int open_idx;         /* index of the open one */
    bool committing;      /* the other one is being committed */
    size_t open_len;      /* bytes of changes in the open batch */
    uint64_t commit_next; /* number of the open batch */
    uint64_t commit_durable;
    uint64_t commit_first; /* of this opening */
    size_t ahead; /* workflow tasks of the open batch that were handed out and are not answered: a driver may hold it
                              back for a moment, so that their answers get into it */
    uint64_t journal_hash; /* of the last commit, for the chain */
    int64_t held_rows;     /* task rows under HF_QUEUE_HELD, the open batch left out (ledger-J4) */
    int64_t run_next;      /* number of the next run */
    int64_t order_next;    /* of the next task */
    uint64_t calls;        /* order of arrival */
    uint64_t run_ids;      /* made so far */
    uint64_t query_count;  /* queries so far, and updates without an id of their own */
    uint64_t incarnation;  /* of this opening */
    unsigned char mac_key[HF_SIPHASH_KEY_LEN];
    bool meta_dirty;

    /* The journal that a crash would have to read: lengths of its commits. */
    uint64_t journal_first; /* oldest commit that is kept */
    HF_VEC(uint32_t) journal_lens;
    size_t journal_start; /* index in journal_lens of journal_first */
    size_t journal_len;   /* sum */

    hf_list zones;                       /* time zones that were asked for (zone.c) */
    size_t zone_count;                   /* of those */
    size_t zones_wanted;                 /* of those, whose rules are not here */
    hf_pb_user_metadata *event_metadata; /* of the command that is carried out: the next event gets it */
    hf_deletions deletions;              /* runs that are being deleted */
    hf_resets resets;                    /* runs that are being made of others */
    hf_blocks blocks;                    /* runs that have ended, and their housekeeping */
    hf_operations operations;            /* runs that do one thing to many */
    hf_changes changes;                  /* which runs have changed, for those who ask */
    hf_list listers;                     /* lists and counts that are under way (lister.h) */
    size_t lister_count;                 /* of those */
    hf_map namespaces;                   /* by name (namespaces.h) */
    hf_list namespaces_all;              /* the same, in order of arrival */
    hf_namespace *namespace_last;        /* the one that was looked for last */
    hf_list namespaces_gone;             /* the rows of these go with the open batch */
    bool namespaces_dirty;               /* some of their rows are written with the open batch */

    hf_list reads;
    hf_list ahead_replies;                                  /* answers that do not wait for the open batch */
    hf_list suspects;                                       /* hf_task that waits to be handed out last: engine-U3 */
    hf_alone alone;                                         /* the suspect that was handed out alone */
    int64_t suspects_look;                                  /* mono ns: when to look at them next */
    hf_list inbox;                                          /* messages that were not delivered yet */
    hf_list refused;                                        /* messages to damaged runs (machines/message.h) */
    hf_list calls_all;                                      /* not done, in order of arrival */
    hf_buf row;                                             /* scratch for a row */
    hf_buf events;                                          /* scratch for events */
    void (*submit)(void *state, hf_store_request *request); /* for reads */
    void *submit_state;

    /* The token that was decoded last: nearly always that of the call being decided. */
    const hf_call *token_call; /* NULL = of none */
    hf_token token;

    uint64_t step;        /* number of the input that is being decided */
    uint64_t transitions; /* runs changed by an input, since open */
    uint64_t run_commits; /* runs changed by a commit: one that changed twice with it counts once */
    uint64_t event_total; /* history events, since open */
    uint64_t probes[HF_PROBE_COUNT];

    /* Calls that are not done, by hf_call.number; without the messages that runs send each other. */
    hf_list calls_by_number[HF_CALL_BUCKETS];
};

/* Where a call is parked. */
enum {
    HF_PLACE_NONE,
    HF_PLACE_QUEUE,
    HF_PLACE_WATCH,
    HF_PLACE_ELSEWHERE,
    HF_PLACE_QUERY,
    HF_PLACE_UPDATE,
    HF_PLACE_LIST,
    HF_PLACE_CHANGES
};

hf_core *hf_core_new(const hf_core_options *options); /* empty; NULL: no memory */
/* Whether nothing is broken. Most code does not check the scratch arena's status when it allocates there: a failed allocation
 * breaks the core at once, and a length that cannot be allocated does so here, before anything that was made with it is used outside. */
bool hf_core_is_whole(hf_core *core);
/* The next input, or the next part of one. */
void hf_core_reset_scratch(hf_core *core);
/* A step begins. False: the core is broken. */
bool hf_core_begin_step(hf_core *core, hf_clock now);
/* The end of a portion of steps: tasks that became ready meet polls. */
void hf_core_end_steps(hf_core *core);
void *hf_core_alloc(hf_core *core, size_t len); /* cleared; NULL: engine-E2 */
void hf_core_free_mem(hf_core *core, void *ptr, size_t len);
void hf_core_break(hf_core *core, hf_status status, const char *format, ...) HF_PRINTF(3, 4);
#define HF_PROBE(core, probe) ((core)->probes[probe]++)

/* The run is about to change: it becomes part of the open batch. */
void hf_core_touch(hf_core *core, hf_run *run);
/* A worker does not want the task of this token: another one gets it. */
void hf_run_take_back(hf_core *core, hf_run *run, const hf_token *token);
/* The run may be dropped from memory again, if nothing else holds it. */
void hf_core_unuse(hf_core *core, hf_run *run);
void hf_core_use(hf_core *core, hf_run *run);
void hf_core_evict(hf_core *core); /* drops runs until the budget is met */

/* Whether a task may be given to this poll before the commit that starts it. Not after an unclean end, and not before the first
 * commit of this opening, from which the next opening recognises an unclean end (engine-U2). */
static inline bool hf_core_runs_ahead(const hf_core *core, const hf_call *call)
{
    return call->run_ahead && call->in_process && !core->options.was_left_open &&
           core->commit_durable >= core->commit_first;
}

/* A version 4 UUID of these bits, as text. */
hf_str hf_uuid_in(hf_arena *arena, uint64_t high, uint64_t low);

#endif
