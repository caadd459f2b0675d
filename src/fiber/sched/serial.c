/* Serial dispatchers: jobs one after another, in the order they were forked, each to its end, on fiber threads. The next
 * job starts on the scheduler where the last one ended. */
#include "fiber/sched/dispatch.h"

void hf_serial_start(hf_sched *sched, hf_branch *job)
{
    hf_dispatcher *serial = job->on;
    hf_spin_lock(&serial->lock);
    hf_assert(serial->kind == HF_DISPATCH_SERIAL && job->fiber == NULL);
    hf_assert((serial->jobs_head == NULL) == (serial->queued == 0));
    bool is_free = serial->running == 0;
    serial->running = 1;
    if (!is_free) {
        job->next = NULL;
        if (serial->jobs_tail != NULL) {
            serial->jobs_tail->next = job;
        } else {
            serial->jobs_head = job;
        }
        serial->jobs_tail = job;
        serial->queued++;
    }
    hf_spin_unlock(&serial->lock);
    if (is_free) {
        hf_sched_push_job(sched, job);
    }
}

void hf_serial_ended(hf_sched *sched, hf_branch *job)
{
    hf_dispatcher *serial = job->on;
    hf_spin_lock(&serial->lock);
    hf_assert(serial->running == 1);
    hf_branch *next = serial->jobs_head;
    if (next != NULL) {
        hf_assert(serial->queued > 0);
        serial->jobs_head = next->next;
        if (next->next == NULL) {
            serial->jobs_tail = NULL;
        }
        serial->queued--;
    } else {
        serial->running = 0;
    }
    hf_spin_unlock(&serial->lock);
    if (next != NULL) {
        hf_sched_push_job(sched, next);
    }
}
