/* Time zones of cron schedules. Their rules are data from outside: the driver gives them to the core when it asks. An input that needs the
 * rules of a zone waits for them, as for an event in a row (fetch.h). A zone is asked for once and kept. */
#ifndef HF_ENGINE_ZONE_H
#define HF_ENGINE_ZONE_H

#include "engine/core.h"
#include "engine/fetch.h"
#include "time/cron.h"

/* Whether a schedule is good. False: the call waits for the rules of its zone, or has failed. An empty schedule is good. */
bool hf_zone_check_cron(hf_core *core, hf_call *call, hf_str schedule);
/* The rules that a run's schedule needs, for an input of that run. *ret_is_bad: nobody knows the zone, or the schedule is not one. */
hf_fetch hf_zone_get_cron(hf_core *core, hf_str schedule, hf_cron *ret_cron, const hf_zone **ret_zone);
/* ns until a run that was due at `due` and ends now is followed by the next one; HF_CRON_NEVER = there is none. The zone is here. */
int64_t hf_zone_cron_pause(hf_core *core, hf_str schedule, int64_t due);
/* The run waits, with its calls, for the rules of this schedule's zone. */
void hf_zone_wait(hf_core *core, hf_run *run, hf_str schedule);
bool hf_zone_wanted(const hf_core *core, hf_str *ret_name);
/* The driver has answered. */
void hf_zone_arrived(hf_core *core, hf_str name, hf_str bytes);
void hf_zones_free(hf_core *core);

#endif
