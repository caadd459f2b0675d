/* Which events of a history a caller gets; long polls for new events; descriptions. */
#ifndef HF_ENGINE_HISTORY_READ_H
#define HF_ENGINE_HISTORY_READ_H

#include "base/list.h"
#include "base/map.h"
#include "engine/core.h"
#include "engine/load.h"

/* Calls that wait for a run's next events or its end. They do not hold the run in memory. */
typedef struct hf_history_watch {
    hf_map_node by_number;
    int64_t run;
    hf_list calls;
} hf_history_watch;

void hf_history_call(hf_core *core, hf_call *call, hf_run *run);
void hf_history_rows_read(hf_core *core, hf_read *read);
/* From its end: history_reverse.c. */
void hf_history_reverse_call(hf_core *core, hf_call *call, hf_run *run);
void hf_history_rows_read_back(hf_core *core, hf_read *read);
void hf_history_failed(hf_core *core, hf_call *call, const char *why); /* its rows cannot be read */
/* New events are there, or records of its stream. `is_settled`: and the run that follows it, if there is one, has begun: readers of streams go
 * on with that. */
void hf_watch_wake(hf_core *core, hf_run *run, bool is_settled);
void hf_watch_park(hf_core *core, hf_call *call, int64_t number);
void hf_watch_remove(hf_core *core, hf_call *call);
void hf_describe_call(hf_core *core, hf_call *call, hf_run *run);

#endif
