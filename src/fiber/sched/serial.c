/* Serial dispatchers: branches run one after another on fiber threads, in the order of their forks, each to its end.
 * The next branch starts on the scheduler on which the last one ended. */
#include "fiber/sched/dispatch.h"

void hf_serial_start(hf_sched *sched, hf_branch *branch)
{
    hf_dispatcher *serial = branch->on;
    hf_spin_lock(&serial->lock);
    hf_assert(serial->kind == HF_DISPATCH_SERIAL && branch->fiber == NULL);
    hf_assert((serial->branches_head == NULL) == (serial->queued == 0));
    bool is_free = serial->running == 0;
    serial->running = 1;
    if (!is_free) {
        branch->next = NULL;
        if (serial->branches_tail != NULL) {
            serial->branches_tail->next = branch;
        } else {
            serial->branches_head = branch;
        }
        serial->branches_tail = branch;
        serial->queued++;
    }
    hf_spin_unlock(&serial->lock);
    if (is_free) {
        hf_sched_push_branch(sched, branch);
    }
}

void hf_serial_ended(hf_sched *sched, hf_branch *branch)
{
    hf_dispatcher *serial = branch->on;
    hf_spin_lock(&serial->lock);
    hf_assert(serial->running == 1);
    hf_branch *next = serial->branches_head;
    if (next != NULL) {
        hf_assert(serial->queued > 0);
        serial->branches_head = next->next;
        if (next->next == NULL) {
            serial->branches_tail = NULL;
        }
        serial->queued--;
    } else {
        serial->running = 0;
    }
    hf_spin_unlock(&serial->lock);
    if (next != NULL) {
        hf_sched_push_branch(sched, next);
    }
}
