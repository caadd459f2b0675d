/* ShutdownWorker: tasks leave the sticky queue of the worker, and its polls are answered without a task, so that it need not wait for the
 * end of their time. Calls may overtake each other on their way, so a poll that the worker sent before the shutdown may come after it: it is
 * answered at once, too. */
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/matching.h"
#include "history/limits.h"

#define SHUT_SPAN \
    (INT64_C(70) * 1000000000) /* how long a poll may be on its way: no client waits longer for its answer */
#define SHUT_MAX 1000          /* workers that are remembered */

/* A worker that has shut down. */
typedef struct hf_shut_worker {
    hf_node link;  /* of core->shut_workers */
    hf_owned key;  /* worker_instance_key */
    int64_t until; /* mono ns */
} hf_shut_worker;

/* ---- Workers that are gone ------------------------------------------------------------------------------------------------- */

static void forget_first(hf_core *core)
{
    hf_assert(core->shut_count > 0);
    hf_shut_worker *first = HF_CONTAINER(hf_list_pop_front(&core->shut_workers), hf_shut_worker, link);
    hf_owned_free(&core->runs_memory, &first->key);
    hf_core_free_mem(core, first, sizeof *first);
    core->shut_count--;
}

static void forget_old(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&core->shut_workers)) != NULL &&
           (HF_CONTAINER(node, hf_shut_worker, link)->until <= core->now.mono || core->shut_count > SHUT_MAX)) {
        forget_first(core);
    }
}

void hf_shut_workers_free(hf_core *core)
{
    while (!hf_list_is_empty(&core->shut_workers)) {
        forget_first(core);
    }
}

static void remember(hf_core *core, hf_str key)
{
    hf_shut_worker *worker = hf_core_alloc(core, sizeof *worker);
    if (worker == NULL) {
        return;
    }
    hf_owned_set(&core->runs_memory, &worker->key, key);
    worker->until = core->now.mono + SHUT_SPAN;
    hf_list_push_back(&core->shut_workers, &worker->link);
    core->shut_count++;
    forget_old(core);
    hf_assert(core->shut_count <= SHUT_MAX);
}

bool hf_worker_is_shut(hf_core *core, hf_str key)
{
    if (key.len == 0 || hf_list_is_empty(&core->shut_workers)) {
        return false;
    }
    forget_old(core);
    HF_LIST_EACH(node, &core->shut_workers)
    {
        if (hf_str_equal(hf_owned_str(&HF_CONTAINER(node, hf_shut_worker, link)->key), key)) {
            return true;
        }
    }
    return false;
}

/* ---- Its polls --------------------------------------------------------------------------------------------------------------- */

static hf_str key_of(const hf_call *poll)
{
    const hf_pb_poll_workflow_task_queue_request *w = poll->request;
    const hf_pb_poll_activity_task_queue_request *a = poll->request;
    return poll->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ? w->worker_instance_key : a->worker_instance_key;
}

static hf_str identity_of(const hf_call *poll)
{
    const hf_pb_poll_workflow_task_queue_request *w = poll->request;
    const hf_pb_poll_activity_task_queue_request *a = poll->request;
    return poll->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE ? w->identity : a->identity;
}

/* Answers the polls of this queue that have the key; all of them if it is empty. */
static void end_polls(hf_core *core, hf_queue *queue, hf_str key)
{
    for (hf_node *node = queue->polls.head.next; core->status == HF_OK && node != &queue->polls.head;) {
        hf_call *poll = HF_CONTAINER(node, hf_call, link);
        node = node->next;
        if (key.len > 0 && !hf_str_equal(key_of(poll), key)) {
            continue;
        }
        HF_PROBE(core, HF_PROBE_POLL_ENDED);
        hf_match_unpark(core, poll);
        hf_poller_forget(core, queue, identity_of(poll));
        if (hf_call_response(core, poll) != NULL) {
            hf_call_reply(core, poll);
        }
    }
}

/* Whether the queue is one of those that the call is about. */
static bool is_meant(const hf_queue *queue, const hf_pb_shutdown_worker_request *request)
{
    hf_str text = hf_owned_str(&queue->text); /* kind, namespace, 0x1f, name */
    hf_str namespace_ = request->namespace;
    if (text.len < namespace_.len + 2 || memcmp(text.data + 1, namespace_.data, namespace_.len) != 0 ||
        text.data[namespace_.len + 1] != '\x1f') {
        return false;
    }
    hf_str name = {text.data + namespace_.len + 2, text.len - namespace_.len - 2};
    if (hf_str_equal(name, request->sticky_task_queue) || request->task_queue.len == 0) {
        return true;
    }
    int32_t type = text.data[0] == 'a' ? HF_TASK_QUEUE_TYPE_ACTIVITY : HF_TASK_QUEUE_TYPE_WORKFLOW;
    bool has_type = request->task_queue_types.count == 0;
    for (size_t i = 0; i < request->task_queue_types.count; i++) {
        has_type = has_type || request->task_queue_types.items[i] == type;
    }
    return has_type && hf_str_equal(name, request->task_queue);
}

void hf_shutdown_worker_call(hf_core *core, hf_call *call)
{
    const hf_pb_shutdown_worker_request *request = call->request;
    hf_str key = request->worker_instance_key;
    hf_str sticky = request->sticky_task_queue;
    if (key.len > HF_ID_LEN_MAX) {
        hf_call_fail(core, call, HF_ERR_INVALID, "WorkerInstanceKey is longer than 1000 bytes.");
        return;
    }
    if (sticky.len > 0 && sticky.len <= HF_ID_LEN_MAX) { /* a worker need not have one */
        hf_queue *queue = hf_queue_get(core, 'w', request->namespace, sticky);
        if (queue != NULL) {
            end_polls(core, queue, HF_STR("")); /* it is of this worker alone */
            hf_queue_shut(core, queue);
        }
    }
    if (key.len > 0 && core->status == HF_OK) {
        for (hf_node *node = core->queues_all.head.next; node != &core->queues_all.head;) {
            hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
            node = node->next; /* a queue whose poll ends moves to the end, and has no more of them */
            if (queue->poll_count > 0 && is_meant(queue, request)) {
                end_polls(core, queue, key);
            }
        }
        remember(core, key);
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}
