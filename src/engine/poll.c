/* Long polls: how long they wait.
 *
 * Most wait for the same time as all others of their kind, so they end in the order they came: a list each for polls of tasks
 * and of histories. A poll with a time of its own is in a heap. */
#include "engine/poll.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_page.h"
#include "engine/history_read.h"
#include "engine/machines/query.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/stream.h"
#include "engine/token.h"

void hf_poll_park(hf_core *core, hf_call *call, hf_list *alike, int64_t span)
{
    hf_assert(!hf_node_is_linked(&call->deadline_link) && call->deadline.place == 0);
    int64_t own = call->timeout.ns > 0 ? call->timeout.ns : span;
    int64_t until = own > INT64_MAX - core->now.mono ? INT64_MAX : core->now.mono + own;
    if (own == span) {
        call->deadline.key = until;
        hf_list_push_back(alike, &call->deadline_link);
    } else if (hf_heap_set(&core->polls, &call->deadline, until) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

void hf_poll_unpark(hf_core *core, hf_call *call)
{
    if (hf_node_is_linked(&call->deadline_link)) {
        hf_list_remove(&call->deadline_link);
    } else {
        hf_heap_remove(&core->polls, &call->deadline);
    }
}

hf_call *hf_polls_first(const hf_core *core)
{
    hf_heap_node *odd = hf_heap_first(&core->polls);
    hf_call *first = odd != NULL ? HF_CONTAINER(odd, hf_call, deadline) : NULL;
    const hf_list *const alike[] = {&core->task_polls, &core->history_polls};
    for (size_t i = 0; i < HF_COUNT_OF(alike); i++) {
        hf_node *node = hf_list_first(alike[i]);
        hf_call *call = node != NULL ? HF_CONTAINER(node, hf_call, deadline_link) : NULL;
        if (call != NULL && (first == NULL || call->deadline.key < first->deadline.key)) {
            first = call;
        }
    }
    return first;
}

/* A poll that has waited long enough. A poll of tasks is answered at once, because its answer names nothing; all others name a run, or a place behind
 * changes, and their answers wait for the open batch like every other (engine-E1). */
static void expire(hf_core *core, hf_call *call)
{
    if (call->place == HF_PLACE_QUERY) {
        hf_query_expire(core, call);
        return;
    }
    if (call->place == HF_PLACE_UPDATE) {
        hf_update_expire(core, call);
        return;
    }
    hf_assert(call->place == HF_PLACE_QUEUE || call->place == HF_PLACE_WATCH || call->place == HF_PLACE_CHANGES);
    HF_PROBE(core, HF_PROBE_POLL_EXPIRED);
    if (call->place == HF_PLACE_CHANGES) {
        hf_changes_expire(core, call);
        return;
    }
    if (call->place == HF_PLACE_QUEUE) {
        hf_match_unpark(core, call);
        hf_call_response(core, call);
        if (core->status == HF_OK) {
            hf_call_now(call);
        }
    } else if (call->method == HF_METHOD_READ_STREAM) {
        hf_read_stream_expire(core, call);
    } else {
        hf_page page = {.run = ((hf_history_watch *)call->parked)->run, .next = 1};
        char bytes[HF_TOKEN_LEN];
        const hf_pb_get_workflow_execution_history_request *request = call->request;
        hf_watch_remove(core, call);
        hf_pb_get_workflow_execution_history_response *response = hf_call_response(core, call);
        if (response == NULL) {
            return;
        }
        hf_page_encode(core, &page, bytes);
        hf_str first = hf_str_of_len(bytes, sizeof bytes);
        response->next_page_token =
            hf_arena_copy(call->arena, request->next_page_token.len > 0 ? request->next_page_token : first);
        hf_call_reply(core, call);
    }
}

void hf_polls_expire(hf_core *core)
{
    hf_call *call = NULL;
    while (core->status == HF_OK && (call = hf_polls_first(core)) != NULL && call->deadline.key <= core->now.mono) {
        expire(core, call);
    }
}
