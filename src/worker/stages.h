/* The stages of an activation, in their order. This list is the order: activation.c goes through it, README.md shows it as a
 * table, and tests/sim/worker_stages_test.c compares both with what runs. Replay relies on it: another order would need a
 * rule (wf.h). */
#ifndef HF_WORKER_STAGES_H
#define HF_WORKER_STAGES_H

/* When fibers in hf_wait_until look, and handlers that were added get signals that had been kept (settle in activation.c). */
#define HF_WF_LOOKS_MAP(X)        \
    X(HF_WF_LOOKS_NEVER, "never") \
    X(HF_WF_LOOKS_AFTER, "after") \
    X(HF_WF_LOOKS_EACH, "after each of them")

typedef enum hf_wf_looks {
#define HF_WF_LOOKS_ENUM(name, text) name,
    HF_WF_LOOKS_MAP(HF_WF_LOOKS_ENUM)
#undef HF_WF_LOOKS_ENUM
} hf_wf_looks;

/*    stage, its name, when conditions look, what it brings, what runs */
#define HF_WF_STAGE_MAP(X)                                                                                           \
    X(HF_WF_STAGE_PATCHES, "patches", HF_WF_LOOKS_NEVER,                                                             \
      "the patches of the whole history, the events that the last commands became, the clock", "nothing")            \
    X(HF_WF_STAGE_START, "start", HF_WF_LOOKS_AFTER, "the start of the run", "the main function")                    \
    X(HF_WF_STAGE_SIGNALS, "signals", HF_WF_LOOKS_AFTER, "signals as they came, and then updates as they came",      \
      "for each a fiber that waits for it, or its handler")                                                          \
    X(HF_WF_STAGE_ENDS, "ends", HF_WF_LOOKS_AFTER,                                                                   \
      "ends of activities, children and calls to other workflows, fired timers, a cancel, as they came",             \
      "the fibers that waited for them")                                                                             \
    X(HF_WF_STAGE_LOCALS, "locals", HF_WF_LOOKS_EACH, "ends of local activities and side effects, as they came",     \
      "the fiber that waited for it")                                                                                \
    X(HF_WF_STAGE_CLOSING, "closing", HF_WF_LOOKS_NEVER, "the end of the run, if the main function has returned",    \
      "handlers that still wait, canceled")                                                                          \
    X(HF_WF_STAGE_QUERIES, "queries", HF_WF_LOOKS_NEVER, "queries, as they came; once a task, behind its last step", \
      "their handlers, which only read")

typedef enum hf_wf_stage {
#define HF_WF_STAGE_ENUM(stage, name, looks, brings, runs) stage,
    HF_WF_STAGE_MAP(HF_WF_STAGE_ENUM)
#undef HF_WF_STAGE_ENUM
} hf_wf_stage;
#define HF_WF_STAGE_COUNT 7

#endif
