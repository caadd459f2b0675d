/* Alarms: deadlines in memory, one heap per scheduler. Armed, disarmed and fired on the scheduler's thread only. */
#ifndef HF_FIBER_ALARM_H
#define HF_FIBER_ALARM_H

#include "base/env.h"

typedef struct hf_alarm hf_alarm;
typedef struct hf_sched hf_sched;

struct hf_alarm {
    size_t pos;                                     /* place in the heap plus 1; 0 = not armed; see HF_ALARM_OF_CREW */
    void (*fire)(hf_sched *sched, hf_alarm *alarm); /* runs once, disarmed already */
};

typedef struct hf_alarm_slot {
    int64_t when_ns; /* beside the pointer, so that sifting touches no alarm but the moved one */
    uint64_t seq;    /* equal deadlines fire in the order they were armed */
    hf_alarm *alarm;
} hf_alarm_slot;

typedef struct hf_alarms {
    hf_alarm_slot *slots; /* 4-ary heap */
    size_t count;
    size_t capacity;
    uint64_t seq;
} hf_alarms;

/* Fails: HF_ERR_NOMEM; then nothing changed. */
hf_status hf_alarm_arm(hf_sched *sched, hf_alarm *alarm, hf_instant when);
void hf_alarm_take_out(hf_sched *sched, hf_alarm *alarm);
static inline void hf_alarm_disarm(hf_sched *sched, hf_alarm *alarm) /* also when not armed */
{
    if (HF_UNLIKELY(alarm->pos != 0)) {
        hf_alarm_take_out(sched, alarm);
    }
}
/* Fires what is due; returns how many. */
size_t hf_alarms_run(hf_sched *sched, hf_instant now);
void hf_alarms_deinit(hf_sched *sched);

static inline hf_instant hf_alarms_next(const hf_alarms *alarms)
{
    return alarms->count == 0 ? HF_INSTANT_NEVER : (hf_instant){alarms->slots[0].when_ns};
}

#endif
