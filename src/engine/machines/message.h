/* Messages between runs. A step changes the runs of one workflow id (engine-E3), so an effect on another one is a message: a call of the core's
 * own, which finds its run like any other call, waits while that is loaded, and is answered inside the core. When both runs are in memory
 * everything is in one batch.
 *
 * A message is never written. It is made from the state of the run that sends it, so it can be made again after a crash, and its request id
 * makes a second arrival harmless. A run with a message on its way stays in memory, or has a row under "h" that opening finds (spill.c).
 *
 * engine-M1  A message is made from its sender's state alone, and its answer changes only the sender. */
#ifndef HF_ENGINE_MACHINES_MESSAGE_H
#define HF_ENGINE_MACHINES_MESSAGE_H

#include "engine/core.h"
#include "engine/slot.h"

typedef enum hf_message_kind {
    HF_MESSAGE_SIGNAL,
    HF_MESSAGE_CANCEL,
    HF_MESSAGE_START_CHILD,
    HF_MESSAGE_CLOSE_CHILD, /* the parent's close policy */
    HF_MESSAGE_TELL,        /* the end of a chain, to its listener */
    HF_MESSAGE_BATCH        /* of an operation to one of its runs (operations.h) */
} hf_message_kind;
#define HF_MESSAGE_KIND_COUNT 6

enum { HF_INBOX_MAX = 64 }; /* messages of one step */

typedef struct hf_message {
    hf_call call; /* first */
    hf_arena arena;
    hf_core *core;
    hf_message_kind kind;
    int64_t source;                     /* run that sent it */
    int64_t id;                         /* event of that run that it is about; of BATCH: the place of its target */
    hf_str batch_id;                    /* of BATCH: its request id, in the memory of the operation */
    hf_pb_history_event event;          /* that event, in the arena; not of CLOSE_CHILD */
    hf_pb_workflow_execution execution; /* it is for */
    hf_pb_workflow_execution sender;
    union {
        hf_pb_signal_workflow_execution_request signal;
        hf_pb_request_cancel_workflow_execution_request cancel;
        hf_pb_terminate_workflow_execution_request terminate;
        hf_pb_start_workflow_execution_request start;
        hf_pb_tell_listener_request tell;
    };
} hf_message;

/* A message without its request. `event`: bytes of the event it is about, or empty. NULL: engine-E2. */
hf_message *hf_message_new(hf_core *core, hf_run *run, hf_message_kind kind, int64_t id, hf_str event);
/* It goes to the inbox. `request` is one of its union. */
void hf_message_post(hf_core *core, hf_message *message, hf_method method, const void *request);
/* "<run id>/<event>": the same whenever the message is made. In its arena. */
hf_str hf_message_request_id(hf_message *message);
/* NULL: a client made the call. */
hf_message *hf_message_of(hf_call *call);
const hf_message *hf_message_of_const(const hf_call *call);

/* The run that sent a signal or cancel request, and its event that says so; NULL: a client did. */
hf_pb_workflow_execution *hf_message_sender(hf_call *call, int64_t *ret_initiated_id);
/* It may only go to a child of the run that sent it, and this run is none. */
bool hf_message_is_for_others(hf_core *core, const hf_call *call, const hf_run *run);
/* Records of the run that it is for are damaged. If it is about the end of a run it stays on its way (core->refused): it is sent again by the next
 * opening, when they may be restored, or when a damaged run is deleted. */
bool hf_message_is_refused(const hf_message *message);
/* A damaged run is gone: the messages that were refused go out again. */
void hf_messages_again(hf_core *core);
void hf_messages_deinit(hf_core *core);
/* A start whose parent has closed meanwhile: the child is not started any more. */
bool hf_message_is_void(hf_core *core, const hf_call *call);

/* The message of this event goes out. */
void hf_message_send(hf_core *core, hf_run *run, int64_t event_id);
/* The messages of a run that has closed, to its children and to its listener. */
void hf_message_send_last(hf_core *core, hf_run *run);
/* After a restart: sends the messages again that have no answer yet. */
void hf_message_send_all(hf_core *core, hf_run *run);
/* Messages that the last steps made, HF_INBOX_MAX of them at most, and as many as the open batch still takes. */
void hf_inbox_pump(hf_core *core);
/* There are some that the open batch takes. */
bool hf_inbox_has_work(const hf_core *core);

/* external.c, child.c, listener.c: how each kind is made, and what its answer means to its sender. */
void hf_external_send(hf_core *core, hf_run *run, const hf_external *external);
void hf_external_answered(hf_core *core, hf_run *run, const hf_message *message);
void hf_child_send_start(hf_core *core, hf_run *run, const hf_child *child);
/* The first event of a child names its parent and its root. */
void hf_child_take_parent(hf_core *core, const hf_call *call, hf_start_facts *body);
void hf_child_start_answered(hf_core *core, hf_run *run, const hf_message *message);
void hf_child_send_close(hf_core *core, hf_run *run, const hf_child *child);
void hf_child_close_answered(hf_core *core, hf_run *run, const hf_message *message);
void hf_listener_tell(hf_core *core, hf_run *run);
void hf_listener_told(hf_core *core, hf_run *run, const hf_message *message);
/* A listener hears of the end of a chain. */
void hf_listener_call(hf_core *core, hf_call *call, hf_run *run);

#endif
