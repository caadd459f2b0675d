/* Shared by the files of the loop (loop.c). */
#ifndef HF_ENGINE_LOOP_PRIVATE_H
#define HF_ENGINE_LOOP_PRIVATE_H

#include "base/latch.h"
#include "base/slab.h"
#include "engine/core_private.h"
#include "engine/engine.h"

/* Messages to the engine thread, besides calls. */
typedef enum hf_post_kind { HF_POST_CANCEL, HF_POST_UNWANTED, HF_POST_LEFT, HF_POST_LOST, HF_POST_ASK } hf_post_kind;

typedef struct hf_engine_post {
    hf_node link;
    hf_post_kind kind;
    uint64_t number; /* CANCEL: of the call, which may be done by then */
    size_t len;      /* of the whole allocation; UNWANTED, LEFT, LOST: the token follows the struct */
    size_t token_len;
} hf_engine_post;

/* A request that the engine thread answers while the asking thread blocks. */
typedef struct hf_engine_ask {
    hf_engine_post post;
    hf_engine_stats *stats;  /* to fill with figures ... */
    struct hf_listing *runs; /* ... or runs to list */
    hf_arena *arena;         /* with `stats`: for how long runs are kept; NULL = it is not asked for */
    hf_keeping *keepings;
    size_t keeping_count;
    int64_t now;                  /* wall ns */
    char why[HF_MESSAGE_LEN_MAX]; /* why there is no core to ask; empty = there is one, or the service closes */
    hf_latch done;
} hf_engine_ask;

/* The clock of an engine for tests (skip.c). */
typedef struct hf_skip {
    int64_t ahead;    /* ns that the wall clock of the engine is ahead of the environment's; never less than before */
    int64_t locks;    /* time is skipped only while there is none */
    hf_list sleepers; /* hf_call that wait for a time, deadline.key */
} hf_skip;

typedef struct hf_engine {
    hf_service service; /* first */
    hf_env *env;
    hf_engine_options options;
    hf_core_options core_options;
    hf_slab slab;    /* the core's memory; the engine thread's */
    hf_store *store; /* the queue's; used directly only while the queue has nothing to do */
    hf_store_queue *queue;
    hf_core *core;
    hf_thread *thread;
    uint64_t reopened;
    uint64_t calls_taken;  /* number of the last call that was given to the core */
    hf_list cancels_early; /* hf_engine_post: cancels of calls that were not given to it yet */
    size_t early_count;    /* of those; at most HF_CANCELS_MAX */
    bool is_closing;       /* the engine thread's copy of `closing` */
    int64_t held_since;    /* mono ns; 0 = no batch is held back */
    int64_t nap;           /* ns: how long the next nap is (loop.c) */
    unsigned commits_since_checkpoint;
    hf_store_request checkpoint;
    bool checkpointing;
    size_t requests_out; /* given to the queue and not back */
    hf_status stopped;   /* engine-L3: HF_OK while it serves, else what calls are answered with */
    int64_t opened_at;   /* mono ns: when a core was opened in place of a broken one, 0 = never */
    int broken_soon;     /* cores that broke soon after that, in a row */
    bool waits;          /* while stopped: another core is opened ... */
    int64_t try_at;      /* ... at this time (mono ns) ... */
    int64_t try_pause;   /* ... and if that fails again after this pause (ns); 0 = it was not tried yet */
    hf_skip skip;
    char why[HF_MESSAGE_LEN_MAX];

    hf_spin lock;        /* protects what follows */
    uint64_t calls;      /* submitted: their numbers */
    hf_list calls_in;    /* hf_call */
    hf_list posts;       /* hf_engine_post */
    hf_list completions; /* hf_store_request */
    bool asleep;         /* every push rings */
    bool napping;        /* only the store rings */
    bool closing;
    bool ended; /* the engine thread has ended: nothing is taken from here any more */
    hf_word word;
} hf_engine;

/* loop.c */
void hf_loop_ask_store(void *engine, hf_store_request *request); /* its answer comes back to the engine thread */
void hf_loop_post(hf_engine *engine, hf_engine_post *item);
/* suspect_log.c: a warning for each task that ended a third process or more. */
void hf_loop_log_suspects(hf_engine *engine);
void hf_loop_log_suspect(hf_engine *engine, hf_str task_token); /* whose process has gone: if its task is one now */
/* loop_reopen.c: engine-L3. All requests of the core are back. */
void hf_loop_reopen(hf_engine *engine, hf_clock now);
/* While it is stopped: opens another core, if it is time to try. */
void hf_loop_try_again(hf_engine *engine, hf_clock now);
hf_instant hf_loop_next_try(const hf_engine *engine); /* never, if it stays stopped */
/* skip.c: on the engine thread. */
void hf_skip_init(hf_engine *engine);
void hf_skip_call(hf_engine *engine, hf_call *call, hf_clock now); /* a call of TestService */
bool hf_skip_cancel(hf_engine *engine, uint64_t number);           /* false: this call does not sleep */
void hf_skip_end(hf_engine *engine);                               /* the engine closes: answers those that sleep */
int64_t hf_skip_next(const hf_engine *engine);                     /* wall ns: when the next sleeper is due */
/* The end of a step: wakes sleepers that are due, and moves the clock if time is skipped and nothing runs. */
void hf_skip_step(hf_engine *engine, hf_clock now);
/* loop_ask.c: on the engine thread. */
void hf_loop_answer(hf_engine *engine, hf_engine_ask *ask);

#endif
