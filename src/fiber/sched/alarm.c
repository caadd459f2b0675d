#include "fiber/sched/alarm.h"

#include "fiber/core.h"
#include "fiber/crew/crew_private.h"

#include <string.h>

static bool is_before(const hf_alarm_slot *a, const hf_alarm_slot *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->seq < b->seq;
}

static void place(hf_alarms *alarms, size_t at, hf_alarm_slot slot)
{
    alarms->slots[at] = slot;
    slot.alarm->pos = at + 1;
}

static void sift_up(hf_alarms *alarms, size_t at, hf_alarm_slot slot)
{
    while (at > 0) {
        size_t parent = (at - 1) / 4;
        if (!is_before(&slot, &alarms->slots[parent])) {
            break;
        }
        place(alarms, at, alarms->slots[parent]);
        at = parent;
    }
    place(alarms, at, slot);
}

static void sift_down(hf_alarms *alarms, size_t at, hf_alarm_slot slot)
{
    for (;;) {
        size_t first = at * 4 + 1;
        if (first >= alarms->count) {
            break;
        }
        size_t best = first;
        for (size_t i = first + 1; i < first + 4 && i < alarms->count; i++) {
            if (is_before(&alarms->slots[i], &alarms->slots[best])) {
                best = i;
            }
        }
        if (!is_before(&alarms->slots[best], &slot)) {
            break;
        }
        place(alarms, at, alarms->slots[best]);
        at = best;
    }
    place(alarms, at, slot);
}

hf_status hf_alarm_arm(hf_sched *sched, hf_alarm *alarm, hf_instant when)
{
    hf_alarms *alarms = &sched->alarms;
    hf_assert(alarm->pos == 0);
    if (alarms->count == alarms->capacity) {
        size_t capacity = alarms->capacity == 0 ? 64 : alarms->capacity * 2;
        hf_alarm_slot *slots = hf_rt_alloc(sched->rt, capacity * sizeof *slots);
        if (slots == NULL) {
            return HF_ERR_NOMEM;
        }
        if (alarms->count > 0) {
            memcpy(slots, alarms->slots, alarms->count * sizeof *slots);
        }
        hf_rt_free(sched->rt, alarms->slots, alarms->capacity * sizeof *slots);
        alarms->slots = slots;
        alarms->capacity = capacity;
    }
    hf_alarm_slot slot = {.when_ns = when.ns, .seq = alarms->seq++, .alarm = alarm};
    sift_up(alarms, alarms->count++, slot);
    return HF_OK;
}

static void take_out(hf_alarms *alarms, size_t at)
{
    alarms->slots[at].alarm->pos = 0;
    hf_alarm_slot last = alarms->slots[--alarms->count];
    if (at < alarms->count) {
        if (at > 0 && is_before(&last, &alarms->slots[(at - 1) / 4])) {
            sift_up(alarms, at, last);
        } else {
            sift_down(alarms, at, last);
        }
    }
}

void hf_alarm_take_out(hf_sched *sched, hf_alarm *alarm)
{
    if (alarm->pos >= HF_ALARM_OF_CREW) {
        hf_crew_disarm(alarm);
        return;
    }
    hf_assert(sched->alarms.slots[alarm->pos - 1].alarm == alarm);
    take_out(&sched->alarms, alarm->pos - 1);
}

size_t hf_alarms_run(hf_sched *sched, hf_instant now)
{
    hf_alarms *alarms = &sched->alarms;
    size_t fired = 0;
    while (alarms->count > 0 && alarms->slots[0].when_ns <= now.ns) {
        hf_alarm *alarm = alarms->slots[0].alarm;
        take_out(alarms, 0);
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
    hf_rt_free(sched->rt, sched->alarms.slots, sched->alarms.capacity * sizeof *sched->alarms.slots);
    sched->alarms.slots = NULL;
    sched->alarms.capacity = 0;
}
