/* A reel: a recorded history, and a service that gives a worker the workflow tasks of it and writes down the commands that
 * the worker's workflows make. Nothing else happens: no timer fires, no activity runs, no answer changes anything.
 *
 * The commands of a step that is only replayed are never sent. So a program with a reel is linked with
 * --wrap=hf_recorder_check, and the reel sees each command when the worker compares it with its event. */
#ifndef HF_TESTS_REPLAY_REEL_H
#define HF_TESTS_REPLAY_REEL_H

#include "worker/wf.h"

#include "support/support.h"

typedef struct reel reel;

typedef enum reel_mode {
    /* One task, whose history is all of it, and one more workflow task at its end, in which nothing has happened: every
     * step is an old one, also the one that ended the run. */
    REEL_WHOLE,
    REEL_PAGES,  /* the same, in pages of three events */
    REEL_STICKY, /* a task for every step, with the events since the last one: the run stays in memory, no step is old */
    REEL_UNTIL,  /* one task, that of a step in the middle, with the history up to there */
} reel_mode;

/* Reads {"events":[...]}. The test fails if it cannot be read. */
reel *reel_new(const char *json, size_t len);
void reel_free(reel *r);

size_t reel_count(const reel *r); /* of steps: workflow tasks that were completed */
/* Whether the rules of this version are those of the history at this step, from 0: then the step must make the same
 * commands also if it is not an old one. */
bool reel_is_of_today(const reel *r, size_t step);

/* Whether the step was answered while a local activity was under way, so that the next one followed at once. A current step
 * executes that again, and may end later. */
bool reel_beats(const reel *r, size_t step);

/* Plays it on a worker, in a simulation. Returns the commands of its steps, to be freed: a line "step 1, event 4", then
 * one line of JSON for each command. A failed workflow task is a line "FAILED ...". `until` is the step, from 0, of
 * REEL_UNTIL: its own commands are the last ones. What is for people only, or may be added without harm, is left out:
 * the sentences of the library in failures, and user metadata. */
char *reel_play(const reel *r, reel_mode mode, size_t until);
/* Plays it as REEL_UNTIL does, with the same text, and returns the history that the answer makes of it: this version has
 * taken the run over at this step. */
reel *reel_take_over(const reel *r, size_t until, char **ret_text);

#endif
