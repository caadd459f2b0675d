/* Stopping the world: exclusive access to everything the schedulers own, while they run user code or sleep.
 *
 * A scheduler is quiet when the fiber that runs on it has in_lib == 0: it is in user code (or asleep in the poller)
 * and nothing of the library is half done. The stopper sets stop_request on each scheduler, makes every thread pass
 * a barrier (so that the fiber's plain store of in_lib and load of stop_request need none), and waits until each is
 * quiet. A fiber that wants to enter the library meanwhile waits in hf_enter_slow. */
#ifndef HF_FIBER_SAFEPOINT_H
#define HF_FIBER_SAFEPOINT_H

#include "fiber/core.h"

/* Stops all schedulers but the caller's own. One stopper at a time. Must be followed by hf_world_start. */
void hf_world_stop(hf_runtime *rt);
void hf_world_start(hf_runtime *rt);

#endif
