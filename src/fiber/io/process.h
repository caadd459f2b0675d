/* Child processes of a runtime: the helper is started with the first of them. */
#ifndef HF_FIBER_PROCESS_H
#define HF_FIBER_PROCESS_H

#include "fiber/core.h"

void hf_processes_deinit(hf_runtime *rt); /* kills the processes that still run */

#endif
