#include "fiber/sched/alarm.h"

#include "fiber/core.h"
#include "fiber/crew/crew_private.h"

hf_status hf_alarm_arm(hf_sched *sched, hf_alarm *alarm, hf_instant when)
{
    hf_assert(alarm->fire != NULL);
    hf_assert(alarm->pos == 0);
    return hf_heap_put(&sched->alarms, &alarm->pos, when.ns);
}

void hf_alarm_take_out(hf_sched *sched, hf_alarm *alarm)
{
    hf_assert(alarm->pos != 0);
    if (alarm->pos >= HF_ALARM_OF_CREW) {
        hf_crew_disarm(alarm);
        return;
    }
    hf_assert(alarm->pos <= sched->alarms.count);
    hf_heap_take(&sched->alarms, &alarm->pos);
}

size_t hf_alarms_run(hf_sched *sched, hf_instant now)
{
    hf_heap *alarms = &sched->alarms;
    size_t fired = 0;
    while (alarms->count > 0 && alarms->entries[0].key <= now.ns) {
        hf_alarm *alarm = HF_CONTAINER(alarms->entries[0].place, hf_alarm, pos);
        hf_heap_take(alarms, &alarm->pos);
        alarm->fire(sched, alarm);
        if (HF_CANARY(HF_BUG_ALARM_TWICE)) {
            alarm->fire(sched, alarm);
        }
        fired++;
    }
    return fired;
}

void hf_alarms_deinit(hf_sched *sched)
{
    hf_assert(sched->alarms.count == 0);
    hf_heap_deinit(&sched->alarms);
}
