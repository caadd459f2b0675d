/* A service for the worker's tests: histories in memory, built by hand, without a store, retries in time or timeouts.
 *
 * It answers inside submit, or keeps a poll until there is something for it. Time is its own: it moves by a millisecond with
 * every event, and to a timer's end when the timer is fired: by fake_fire, or, with auto_timers, whenever a run has nothing
 * else to wait for. What workers answered is written down, one line per workflow task with commands. */
#ifndef HF_TESTS_FAKE_SERVICE_H
#define HF_TESTS_FAKE_SERVICE_H

#include "service/service.h"

typedef struct fake_service fake_service;

typedef struct fake_options {
    bool auto_timers;   /* fire the next timer of a run that waits for nothing else */
    bool ignore_sticky; /* give every task to the normal queue, with its whole history */
    int page_events;    /* events of one page of history; 0 = all */
    int full_answers;   /* answer the first so many completed activities with HF_ERR_FULL */
    bool late_tasks;    /* give each workflow task that was completed once more, as a poll that was slow would */
    int refuse_every;   /* answer every n-th completed workflow task with UnhandledCommand; 0 = none */
    int refuse_count;   /* refuse the first so many calls of a method; 0 = none */
    hf_method refuse_method;
    hf_status refuse_status; /* HF_OK = these are not answered at all, until fake_close */
} fake_options;

fake_service *fake_new(const fake_options *options);
/* Nobody may be asking any more. */
void fake_free(fake_service *fake);
hf_service *fake_as_service(fake_service *fake);

/* Ends all polls and refuses what comes from now on with this status. */
void fake_close(fake_service *fake, hf_status status);
/* A run as the first `count` events of a recorded history (JSON) left it; 0 = all. No activity and no workflow task may be pending
 * then. How many events it has. */
size_t fake_put_history(fake_service *fake, const char *id, const char *queue, hf_str json, size_t count);
/* Fires the timer that is due next. False: there is none. */
bool fake_fire(fake_service *fake);
/* Takes the activity of this name off its queue and keeps it: nobody gets it. */
void fake_hold(fake_service *fake, const char *activity);

/* "order-1: ScheduleActivityTask 1 charge; StartTimer 1 14d\n" per answer; "order-1: FAILED 24 <message>\n". */
const char *fake_log(fake_service *fake);
/* Events of the newest run, by their short names: "WorkflowExecutionStarted WorkflowTaskScheduled ...". Freed by free(). */
char *fake_events(fake_service *fake);
/* Heartbeats that came; activities that were given out; unwanted tasks that came back. */
int fake_heartbeats(const fake_service *fake);
int fake_activities(const fake_service *fake);
int fake_refusable(const fake_service *fake); /* calls of refuse_method that came */
int fake_histories(const fake_service *fake); /* times that a worker asked for a history */

#endif
