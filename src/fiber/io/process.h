/* Child processes of a runtime: the helper is started with the first of them. */
#ifndef HF_FIBER_PROCESS_H
#define HF_FIBER_PROCESS_H

#include "fiber/core.h"

#include <holdfast/process.h>

void hf_processes_deinit(hf_runtime *rt); /* kills the processes that still run */

/* A helper process of its own, for processes of which nothing may be left: closing it kills all that descends from them,
 * also what has left their groups. Opening and closing block the thread for a moment. */
typedef struct hf_processes hf_process_box;
/* Fails: HF_ERR_UNSUPPORTED, HF_ERR_NOMEM, HF_ERR_LIMIT, and what the system says. */
hf_status hf_process_box_open(hf_op *op, hf_runtime *rt, hf_process_box **ret_box);
/* Returns when nothing of it runs any more. Its processes may be closed before or afterwards. Accepts NULL. */
void hf_process_box_kill(hf_process_box *box);
/* After hf_process_box_kill, when its processes are closed: frees it. Accepts NULL. */
void hf_process_box_free(hf_process_box *box);
/* hf_process_start in that box; `more` as in hf_spawn. The options' runtime is ignored. */
hf_status hf_process_start_in(hf_process_box *box, const char *const *argv, const char *const *more,
                              hf_process **ret_process, const hf_process_options *options);

#endif
