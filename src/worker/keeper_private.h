/* Shared by the two halves of a running worker: its fiber (serve.c) and its keeper (keeper.c). */
#ifndef HF_WORKER_KEEPER_PRIVATE_H
#define HF_WORKER_KEEPER_PRIVATE_H

#include "worker/wf.h"

/* serve.c: the body of the worker's fiber. `worker` is an hf_worker; its result is worker->result. */
hf_status hf_worker_main(void *worker);
/* Writes how many activities have ended without the service learning of it, and why. `count` is above 0. */
void hf_worker_say_unsaid(hf_worker *worker, int count, char *text, size_t capacity);

#endif
