/* Shared by the files of kill_child: child.c is the program, clients.c asks, work.c and flow.c do what was asked for. */
#ifndef HF_TESTS_KILL_CHILD_H
#define HF_TESTS_KILL_CHILD_H

#include "service/call.h"

#include <stdatomic.h>

enum {
    CHILD_SIGNALS = 3, /* that a workflow waits for */
    CHILD_UPDATES = 4, /* that it is sent at most */
};

extern const hf_str child_namespace;
extern hf_pb_task_queue child_queue;
extern uint64_t child_seed;
extern const char *child_cycle;
extern bool child_is_heavy;
extern atomic_bool child_is_over; /* threads are to end */

/* One call after the other. */
typedef struct child_asking {
    hf_arena arena; /* of requests and responses; the caller resets it */
    hf_op op;       /* how the last one went */
    hf_call call;   /* the last one, with its response */
} child_asking;

void child_ask_init(child_asking *a);
hf_status child_ask(child_asking *a, hf_method method, const void *request, bool run_ahead);

/* A line for the ledger (ledger.h). */
void child_note(const char *format, ...) HF_PRINTF(1, 2);
/* A phase begins or ends (phase.h). */
void child_phase(char phase);
/* Ends the process: the test has failed. */
void child_give_up(const char *what, const char *why);

/* Threads; `arg` is their number. */
void *child_workflows(void *arg);
void *child_activities(void *arg);
void *child_client(void *arg);

/* Sends again what is in doubt, and looks whether what was deleted is gone. `goes_on`: some workflows are reset, some that ended
 * are deleted. */
void child_send_again(const char *ledger_path, bool goes_on);
/* Everything that is open gets what it waits for, until all have ended. */
void child_let_all_end(const char *ledger_path);

#endif
