/* A tap: a service in front of another one, for the worker's tests. It passes every call on, writes down what workers answered to
 * workflow tasks, and counts calls. Where a test wants faults it refuses calls, keeps them, or gives an answer twice.
 *
 *     client, worker -> tap -> the engine of hf_open("memory:"), or the fake of fake_service.h
 *
 * The engine is the real one: in a simulation it runs on virtual time, so timers and timeouts cost nothing and come in their
 * order. The tap may be used from any thread. */
#ifndef HF_TESTS_TAP_H
#define HF_TESTS_TAP_H

#include "service/service.h"

typedef struct tap tap;

typedef enum tap_strip { TAP_STRIP_NOTHING, TAP_STRIP_SEQUENCE, TAP_STRIP_IDS } tap_strip;

typedef struct tap_options {
    int refuse_every; /* every n-th completed workflow task is refused with UnhandledCommand, and fails; 0 = none */
    tap_strip strip;  /* what the messages of workflow tasks come without */
    bool late_tasks;  /* give each workflow task that was completed once more, as a poll that was slow would */
    int refuse_count; /* the first calls of refuse_method, as many as this, are not passed on; 0 = none */
    hf_method refuse_method;
    hf_status refuse_status; /* the answer to them; HF_OK = they get none until tap_close, or until they are canceled */
    int queries; /* each attempt of a workflow task after the first, up to this one, comes with a query that nobody answers; 0 = none */
    int other_tasks; /* the first descriptions of runs, as many as this, tell of a workflow task that started later than it did */
} tap_options;

/* Takes `service`: tap_free closes it. On a fiber or on a plain thread, like hf_open. */
tap *tap_new(hf_service *service, const tap_options *options);
hf_service *tap_as_service(tap *t);
/* From now on every call fails with this status, also those that wait. The service behind the tap stays open. */
void tap_close(tap *t, hf_status status);
/* Returns what hf_close of the service returned. All calls must be done. */
hf_status tap_free(tap *t);

/* One line per answer with commands that was taken: "order-1: ScheduleActivityTask 1 charge; StartTimer 1 1209600s;\n", and one
 * per failed workflow task: "order-1: FAILED 24 <message>\n". Read it when no worker runs. */
const char *tap_log(const tap *t);
int tap_calls(tap *t, hf_method method); /* calls of this method that came, also those that were refused */
int tap_activities(tap *t);              /* activity tasks that were given to workers */
int tap_histories(tap *t);               /* times that a worker asked for a history */
int tap_late_tasks(tap *t);              /* tasks that were given once more */
int tap_refused(tap *t);                 /* completed workflow tasks that were refused */

#endif
