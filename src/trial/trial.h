/* Trials: one workflow is played again and again, each time with one disturbance, and must come to the same end (`holdfast sim`).
 *
 *     play -> testenv -> engine on a store that outlives it
 *                 |
 *               worker -> gate -> engine        what the worker answers passes the gate, where the disturbance happens
 *
 * An answer of the worker is a point: a workflow task that it has completed or failed, an activity that has ended. The points of a play are
 * numbered from 1. At a point the process may die, before the answer has arrived or after it; or a signal or a cancel comes before the answer. A
 * death is a worker and an engine that end without another word, and new ones on the same store, at the same time of the clock. Activities
 * of the plugin keep their variables: those are the world outside. */
#ifndef HF_TRIAL_TRIAL_H
#define HF_TRIAL_TRIAL_H

#include "base/list.h"
#include "trial/testenv.h"

/* What disturbs a play: constant, word of --play, whether it must not change the outcome, what it is for people. */
#define HF_UPSET_MAP(X)                                                                                                \
    X(HF_UPSET_NONE, "plain", true, "nothing happens to it")                                                           \
    X(HF_UPSET_EVICT, "evict", true, "every step is a replay")                                                         \
    X(HF_UPSET_CRASH_BEFORE, "crash-before", true, "the process dies before answer %d arrives")                        \
    X(HF_UPSET_CRASH_AFTER, "crash-after", true, "the process dies after answer %d has arrived")                       \
    X(HF_UPSET_SIGNAL, "signal", true, "a signal comes before answer %d")                                              \
    X(HF_UPSET_ORDER, "order", true, "activities that run at the same time end in the reverse order")                  \
    X(HF_UPSET_FAIL, "fail", false, "activity %d (in the order of their beginnings) fails for good, and does nothing") \
    X(HF_UPSET_FAIL_TWO, "fail-two", false,                                                                            \
      "activity %d (in the order of their beginnings) and the next one fail for good, and do nothing")                 \
    X(HF_UPSET_CANCEL, "cancel", false, "the run is canceled before answer %d")                                        \
    X(HF_UPSET_STORM, "storm", true, "evictions, deaths and early signals by seed %d")

typedef enum hf_upset_kind {
#define HF_UPSET_ENUM(constant, word, is_equal, text) constant,
    HF_UPSET_MAP(HF_UPSET_ENUM)
#undef HF_UPSET_ENUM
        HF_UPSET_COUNT
} hf_upset_kind;

typedef struct hf_upset {
    hf_upset_kind kind;
    int at;     /* the point, activity or seed; SIGNAL: 0 = before the first step */
    int signal; /* SIGNAL: which, from 0 */
} hf_upset;

/* ---- gate.c ------------------------------------------------------------------------------------------------------------------ */

typedef enum hf_gate_state { HF_GATE_OPEN, HF_GATE_PAUSES, HF_GATE_CUT } hf_gate_state;

enum { HF_GATE_POLLS_MAX = 256, HF_GATE_TOKENS_MAX = 4096 };

typedef struct hf_gate {
    hf_service service; /* first: the worker sees this */
    hf_service *behind;
    hf_env *env;
    hf_upset upset;
    uint64_t seed;     /* of the heap's disorder */
    atomic_int state;  /* hf_gate_state; the play looks at it */
    hf_spin lock;      /* protects what follows */
    int points;        /* answers so far */
    int asked;         /* activities that were asked for, and whose end was not answered */
    int looks;         /* in a row that found the same answers */
    hf_call *held;     /* the answer at whose point it pauses */
    hf_list kept;      /* hf_call: answers of activities, until all that run at the same time have come */
    size_t kept_count; /* of those */
    struct {
        hf_call *call;
        void (*done)(hf_call *call); /* the worker's */
    } polls[HF_GATE_POLLS_MAX];      /* for activities; a worker has fewer */
    struct {
        uint64_t hash;            /* of the token */
        int number;               /* of the activity */
    } tokens[HF_GATE_TOKENS_MAX]; /* that were given to the worker; a ring */
    unsigned token_count;
} hf_gate;

void hf_gate_init(hf_gate *gate, hf_env *env, hf_service *behind, hf_upset upset, uint64_t seed);
/* Lets the answer pass at which it pauses. */
void hf_gate_go_on(hf_gate *gate);
/* Now and then: lets one of the answers that it keeps pass, if no other is to be expected. They pass in the order in which the activities were
 * asked for, so that a play is the same each time; with ORDER in the reverse order. */
void hf_gate_look(hf_gate *gate);
/* From now on nothing passes: answers that are held or kept are refused. */
void hf_gate_shut(hf_gate *gate);
/* Waits until no thread is in it. The worker has ended. */
void hf_gate_deinit(hf_gate *gate);

/* ---- play.c ------------------------------------------------------------------------------------------------------------------ */

enum { HF_PLAY_SIGNALS_MAX = 16, HF_PLAY_TEXT_LEN = 4096 };

typedef struct hf_play_plan {
    const char *type;
    hf_payload in;
    struct {
        const char *name;
        hf_payload in;
    } signals[HF_PLAY_SIGNALS_MAX]; /* are sent in this order, each when no code runs, before time passes */
    int signal_count;
    hf_status (*add)(void *state, hf_worker *worker); /* adds the workflow and its activities */
    void *state;
    hf_status (*world)(hf_payload *ret_out); /* HF_PLUGIN_WORLD; NULL = the plugin has none */
    hf_span patience;                        /* real time for one wait */
} hf_play_plan;

typedef struct hf_play_result {
    bool has_ended;                 /* the run is closed */
    bool is_success;                /* and completed */
    bool has_lost;                  /* a death has used up the last attempt of an activity */
    char outcome[HF_PLAY_TEXT_LEN]; /* "completed {...}", "failed Type: sentence", "waits: sentence" */
    char before[HF_PLAY_TEXT_LEN];  /* the world before the play ... */
    char after[HF_PLAY_TEXT_LEN];   /* ... and after it; empty = the plugin does not tell */
    int points;                     /* answers in it */
    int activities;                 /* that were begun */
    char untaken[HF_PLAY_TEXT_LEN]; /* signals of the plan that nobody took: "go, stop"; empty = none */
} hf_play_result;

/* Plays it once in this process; once per process, since variables of the plugin are a part of it. Fails: as hf_testenv_new and hf_testenv_start. */
hf_status hf_play(const hf_play_plan *plan, hf_upset upset, hf_play_result *ret_result);

const char *hf_upset_word(hf_upset_kind kind);
bool hf_upset_is_equal(hf_upset_kind kind);
const char *hf_upset_text(hf_upset_kind kind); /* has a %d, or none */

#endif
