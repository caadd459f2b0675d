/* The workflows and activities of the recorded histories in rules-2. Like those of workflows.h they may never change: a
 * history is one of them as it ran, and must be replayed by every later version. New behaviour is a new program. */
#ifndef HF_TESTS_REPLAY_PROGRAMS_H
#define HF_TESTS_REPLAY_PROGRAMS_H

#include <holdfast/holdfast.h>

/* Adds every workflow: those of programs*.c, of storm_2.c and of workflows.h. */
hf_status programs_add_workflows(hf_worker *worker);
/* The local activities of the workflows: programs_add_workflows adds them, too. Such a worker has .activities_max = HF_OFF. */
hf_status programs_add_locals(hf_worker *worker);
/* Adds every activity. They run only while a history is recorded. */
hf_status programs_add_activities(hf_worker *worker);
hf_status programs_add_storm_activity(hf_worker *worker); /* of the task queue "other" */

/* A table of workflows ends with a row without a name. */
typedef struct program {
    const char *name;
    hf_function function;
} program;
extern const program programs_of_verbs[];   /* programs_verbs.c */
extern const program programs_of_scopes[];  /* programs_scopes.c */
extern const program programs_of_cancels[]; /* programs_cancels.c */
extern const program programs_of_runs[];    /* programs_runs.c */
extern const program programs_of_forks[];   /* programs_forks.c */
extern const program programs_of_waits[];   /* programs_waits.c */
extern const program programs_of_carry[];   /* programs_carry.c */
extern const program programs_of_storm[];   /* storm_2.c */

/* What a workflow was told so far, as text: its result. */
typedef struct notes {
    char text[3000];
    size_t len;
} notes;

void note(notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes "TIMEOUT " for HF_ERR_TIMEOUT. Returns HF_OK, but HF_ERR_EVICTED for that. */
hf_status heard(notes *n, hf_status status);
/* The same, and notes the message, the type and the causes of the failure. */
hf_status heard_why(notes *n, hf_status status);
/* Ends a workflow: its notes are the result. */
hf_status notes_result(const notes *n, hf_payload *ret_out);

/* The activities. Their input is a number.
 *     echo    returns its input
 *     slow    returns it after as many milliseconds, canceled or not
 *     beat    heartbeats every second for as many milliseconds; ends canceled when it is told so
 *     flaky   fails as often as the number says, then returns it
 *     refuse  fails for good, with the type "Declined" and details
 *     user    returns HF_ERR_USER + 7
 *     hang    does not end before it is canceled */
#define RUN(name, json, ...) hf_activity_run((name), hf_payload_of_json(json), NULL, __VA_ARGS__)

#endif
