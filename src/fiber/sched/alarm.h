/* Alarms: deadlines in memory, one heap per scheduler. Armed, disarmed and fired on the scheduler's thread only. */
#ifndef HF_FIBER_ALARM_H
#define HF_FIBER_ALARM_H

#include "base/env.h"
#include "base/heap.h"

typedef struct hf_alarm hf_alarm;
typedef struct hf_sched hf_sched;

struct hf_alarm {
    size_t pos;                                     /* place in the heap, or HF_ALARM_OF_CREW; 0 = not armed */
    void (*fire)(hf_sched *sched, hf_alarm *alarm); /* called once, after the alarm was disarmed */
};

/* Fails: HF_ERR_NOMEM; then nothing changed. */
hf_status hf_alarm_arm(hf_sched *sched, hf_alarm *alarm, hf_instant when);
void hf_alarm_take_out(hf_sched *sched, hf_alarm *alarm);
static inline void hf_alarm_disarm(hf_sched *sched, hf_alarm *alarm) /* also when not armed */
{
    if (HF_UNLIKELY(alarm->pos != 0)) {
        hf_alarm_take_out(sched, alarm);
    }
}
/* Fires the alarms that are due. Returns how many. */
size_t hf_alarms_run(hf_sched *sched, hf_instant now);
void hf_alarms_deinit(hf_sched *sched);

static inline hf_instant hf_alarms_next(const hf_heap *alarms)
{
    return alarms->count == 0 ? HF_INSTANT_NEVER : (hf_instant){alarms->entries[0].key};
}

#endif
