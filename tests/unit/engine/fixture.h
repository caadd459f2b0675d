/* What the engine's tests share: a rig that is opened and closed around every test. */
#ifndef HF_TESTS_ENGINE_FIXTURE_H
#define HF_TESTS_ENGINE_FIXTURE_H

#include "support/engine_rig.h"

static hf_rig rig;

static inline int open_rig(void **state)
{
    (void)state;
    hf_rig_open(&rig, (hf_core_options){0});
    return 0;
}

static inline int close_rig(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    return 0;
}

/* With other options. */
static inline void again(const hf_core_options *options)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, *options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

/* A test that is a script and the history it leaves. */
#define GOLDEN(name, script, history)        \
    static void name(void **state)           \
    {                                        \
        (void)state;                         \
        hf_rig_do(&rig, script);             \
        hf_rig_history(&rig, "wf", history); \
    }

#define START                      \
    "1 WorkflowExecutionStarted\n" \
    "2 WorkflowTaskScheduled attempt=1\n"
#define FIRST_TASK                        \
    START                                 \
    "3 WorkflowTaskStarted scheduled=2\n" \
    "4 WorkflowTaskCompleted scheduled=2 started=3\n"
#define FIRST_ACTIVITY FIRST_TASK "5 ActivityTaskScheduled a1\n"

#endif
