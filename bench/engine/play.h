/* A scripted worker and its clients, in the process of the engine: the workloads of bench/engine.c.
 *
 * No workflow code runs. What a worker would answer is read off the history it is sent: how many of the things that it waits
 * for have happened. So the figures are the engine's, with the least that any worker must do.
 *
 * An errand is one call and what follows it. Answers are taken either by a thread of their own, as in a program with a worker
 * (the default), or right on the engine's thread (`direct`): the difference is the price of the hand-over. */
#ifndef HF_BENCH_PLAY_H
#define HF_BENCH_PLAY_H

#include "base/env.h"
#include "base/spin.h"
#include "service/service.h"

typedef enum play_wait {
    PLAY_ACTIVITIES, /* rounds of activities, one round after another, then the end */
    PLAY_SIGNAL,     /* until a signal comes */
    PLAY_TIMER,      /* until a timer fires */
    PLAY_UPDATE,     /* for ever; updates are accepted and completed in one task, or rejected */
    PLAY_CHILD,      /* for the result of a child, which ends at once */
    PLAY_FAMILY      /* for ever, as its child does */
} play_wait;

typedef struct play_options {
    hf_service *service;  /* borrowed */
    hf_env *env;          /* borrowed */
    play_wait wait;       /* what the workflow does */
    int rounds;           /* of activities */
    int width;            /* activities of a round */
    bool stays_open;      /* it does not end after its signal: the next one finds it */
    bool is_direct;       /* answers are taken on the engine's thread */
    bool is_patient;      /* workflow tasks are given out after their commit, as to a worker elsewhere */
    bool is_in_order;     /* workflow ids ascend; else they have no order */
    int look_us;          /* the thread looks for answers for so long before it sleeps */
    int polls;            /* under way, of each kind */
    size_t runs_max;      /* numbers of runs are below this */
    size_t table_max;     /* so many runs are remembered, others in their places; 0 = all */
    int64_t due_wall;     /* PLAY_TIMER: when all of them are due, ns since 1970 */
    bool rejects;         /* PLAY_UPDATE: all of them */
    bool has_request_ids; /* of signals, each another */
    bool may_be_late;     /* answers to workflow tasks that a full buffer or the end of their run has taken away */
    int children;         /* that a run of play_start_clan has */
    int far_every;        /* of the runs that wait for a signal, each n-th also has a timer of 30 days; 0 = none */
} play_options;

/* Lengths of time in microseconds, added by one thread. */
typedef struct play_times {
    uint32_t *items;
    size_t count;
    size_t capacity;
} play_times;

typedef struct play play;
typedef struct errand errand;

/* What the script knows of a run. Touched by the thread that takes the answers. */
typedef struct play_run {
    int64_t begun;   /* mono ns: when it was asked for */
    int64_t due;     /* wall ns: when its timer is due, as its history says */
    int64_t timeout; /* ns: what its timer was started with */
    int news;        /* of what it waits for, so many have happened */
    int asked;       /* and so many were asked for */
    uint32_t serial; /* how often this number was used */
} play_run;

struct play {
    play_options o;
    hf_allocator memory;
    play_run *runs;               /* by number, see table_max */
    size_t table_len;             /* of those */
    hf_thread *thread;            /* NULL when direct */
    hf_spin lock;                 /* for the next three */
    hf_list mail;                 /* errands whose call is done */
    bool asleep;                  /* the thread found no mail */
    bool closing;                 /* it ends when there is none */
    hf_word word;                 /* it sleeps on this */
    hf_list idle;                 /* errands to take */
    hf_pb_command *scheduling;    /* one round of activities */
    atomic_bool stopping;         /* slots start nothing more */
    atomic_bool measuring;        /* times are kept */
    atomic_int slots_busy;        /* slots that have not ended */
    atomic_llong next;            /* sweeps: the next number */
    atomic_llong swept;           /* sweeps: calls that were answered */
    long long sweep_count;        /* of the sweep that goes on */
    uint64_t chance;              /* sweeps over random numbers */
    bool sweep_is_random;         /* each call of a sweep names some run below runs_max */
    long long sweep_only;         /* each call of a sweep names this run; -1 = each another */
    long long ask_base;           /* ids of signals and updates of a sweep count from here */
    atomic_int sweepers;          /* errands of a sweep that have not ended */
    atomic_llong described;       /* status of a run that was described */
    atomic_llong mark_last;       /* mono ns: when a client of a slot was last answered */
    atomic_llong mark_gap;        /* ns: the longest time between two such answers */
    atomic_llong waiting;         /* answers to workflow tasks that left the run waiting, durable */
    atomic_llong kids;            /* of those, answers to tasks of children */
    atomic_llong ended;           /* runs whose end is durable, as the worker sees it */
    atomic_llong results;         /* runs whose result a client has got */
    atomic_llong failed;          /* calls that failed although nobody stopped them */
    char why[HF_MESSAGE_LEN_MAX]; /* the first of those */
    play_times result_times;      /* from asking for a run to having its result */
    play_times sweep_times;       /* of a call of a sweep */
    play_times fired_times;       /* from when a timer was due to its workflow task */
    play_times ended_times;       /* from when a timer was due to the end of its run being durable */
};

/* Prepares everything and starts polling. Ends the program when that fails: this is a benchmark. */
void play_open(play *p, const play_options *options);
/* After the service was closed. */
void play_close(play *p);

/* `count` clients, each in a loop: start a workflow, wait for its result. Until `stopping`; then slots_busy falls to 0. */
void play_slots(play *p, int count);
/* One call for each number below `count` (or for so many random runs), `window` of them at a time. Returns when all are
 * answered; the nanoseconds that took. */
int64_t play_start_all(play *p, long long count, int window);
int64_t play_signal_all(play *p, long long count, int window, bool is_random);
/* The same, so many calls to one run. */
int64_t play_signal_one(play *p, long long number, long long count, int window);
/* Updates or queries, `window` at a time, to the runs one after the other or at random, until play_ask_end. */
void play_ask_begin(play *p, hf_method method, int window, bool is_random);
void play_ask_end(play *p);
/* A run with o.children children that wait for ever. Returns when it was started; its children come later. */
void play_start_clan(play *p, long long number);
/* Ends it, and with it its children. The second: whether the last of them has ended. */
void play_end_clan(play *p, long long number);
bool play_clan_is_over(play *p, long long number);
/* Forgets the longest time between two answers; reads it. */
void play_gap_begin(play *p);
int64_t play_gap(play *p);
/* Sleeps until the counter has reached the count. */
void play_await(const atomic_llong *counter, long long count);

/* The q-quantile in microseconds; sorts. */
double play_quantile(play_times *times, double q);

void play_die(const char *format, ...) HF_PRINTF(1, 2) __attribute__((noreturn));

static inline play_run *play_run_of(play *p, long long number)
{
    return &p->runs[(size_t)number % p->table_len];
}

#endif
