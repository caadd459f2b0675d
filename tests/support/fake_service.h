/* A service that takes the engine's place where a test of the worker needs a run that the engine would not make. Its histories
 * are in memory, and there is no store and no clock: time moves by a millisecond with every event, and to the end of the next
 * timer whenever a run has nothing else to wait for. It has no timeouts, and tries a failed activity again at once.
 *
 * Three tests use it; all others of the worker run on the real engine:
 *
 *     tests/replay/replay_test.c          continues recorded histories. The engine continues only runs that it has begun.
 *     tests/unit/worker/workflow_test.c   one case: the numbers that a workflow gets from chance depend on the id of its run,
 *                                         and the engine makes a random one. Here it is "run-of-<workflow id>".
 *     tests/unit/worker/stuck_test.c      four cases: workflows that loop, on real threads and so on real time. When their task
 *                                         has failed, the engine gives it again at once. The worker does not answer that
 *                                         attempt, and the next one comes 10 s later. Here it comes with the next event.
 *
 * It belongs behind a tap (support/tap.h), which writes down what workers answered, and makes faults. It answers inside submit,
 * or keeps a poll until there is something for it. */
#ifndef HF_TESTS_FAKE_SERVICE_H
#define HF_TESTS_FAKE_SERVICE_H

#include "service/service.h"

/* hf_close frees it, through tap_free. Never fails. */
hf_status fake_open(hf_service **ret_service);

/* A run as the first `count` events of a recorded history (JSON) left it; 0 = all. No activity and no workflow task may be pending
 * then. Returns the number of its events. */
size_t fake_put_history(hf_service *fake, const char *id, const char *queue, hf_str json, size_t count);

#endif
