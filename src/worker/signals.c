/* Signals as a workflow sees them: a fiber waits for one, a handler takes it, or the run keeps it until somebody does. */
#include "worker/wf.h"

#include "base/canary.h"
#include "fiber/crew/strand.h"
#include "fiber/sync/chan.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <stdio.h>

static bool abort_signal(hf_wait *wait)
{
    bool claimed = hf_node_is_linked(&wait->node);
    if (claimed) {
        hf_list_remove(&wait->node);
    }
    return claimed;
}

static const hf_wait_kind SIGNAL = {"hf_signal_wait", abort_signal};

/* A fiber in hf_signal_wait_any. On its stack. */
typedef struct any_wait {
    hf_wait wait;
    const char *const *names;
    size_t count;
    size_t idx; /* which of them has come */
} any_wait;

static const hf_wait_kind ANY = {"hf_signal_wait_any", abort_signal};

const char *hf_wf_awaited(const hf_wait *wait, size_t i)
{
    if (wait->kind == &ANY) {
        const any_wait *any = HF_CONTAINER_CONST(wait, any_wait, wait);
        hf_assert(any->count > 0 && any->count <= HF_SELECT_COUNT_MAX); /* check_any has looked */
        return i < any->count ? any->names[i] : NULL;
    }
    return i == 0 ? wait->object_name : NULL; /* of hf_signal_wait, or a case of hf_select */
}

static hf_wf_signal *take_signal(hf_wf *wf, hf_str name)
{
    HF_LIST_EACH(node, &wf->signals)
    {
        hf_wf_signal *signal = HF_CONTAINER(node, hf_wf_signal, node);
        if (hf_str_equal(name, hf_str_of_len(signal->name, signal->name_len))) {
            hf_list_remove(node);
            return signal;
        }
    }
    return NULL;
}

static void free_signal(hf_wf *wf, hf_wf_signal *signal)
{
    hf_assert(!hf_node_is_linked(&signal->node)); /* nobody finds it any more */
    hf_wf_header_free(wf, &signal->header);
    wf->worker->memory.release(wf->worker->memory.state, signal, sizeof *signal + signal->name_len);
}

static void give_signal(hf_wf *wf, hf_wf_signal *signal, hf_payload *ret_out)
{
    hf_assert(signal != NULL);
    if (ret_out != NULL) {
        *ret_out = signal->payload;
    } else {
        hf_payload_free(&signal->payload);
    }
    hf_wf_header_free(wf, &wf->taken_header);
    wf->taken_header = signal->header;
    signal->header = (hf_str){NULL, 0};
    free_signal(wf, signal);
}

/* Checks what hf_signal_wait and hf_signal_try have in common. */
static hf_status check(hf_fiber *self, const hf_wf *wf, const char *verb, const char *name)
{
    if (wf == NULL || name == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a name, and can only be called in a workflow", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    if (name[0] == '\0' || hf_wf_is_too_long(name)) { /* no signal can have this name */
        return hf_refuse_at(self, HF_ERR_INVALID, verb, "the name of a signal has 1 to %d bytes", HF_ID_LEN_MAX);
    }
    const hf_wf_handler *handler = hf_wf_handler_of(wf, HF_WF_ON_SIGNAL, hf_str_of(name));
    if (handler != NULL && !handler->is_any) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb,
                            "%s: signal '%.100s' has a handler; a name has a handler or is waited for", verb, name);
    }
    return HF_OK;
}

hf_status hf_signal_try(const char *name, hf_payload *ret_out)
{
    HF_VERB_ENTER(self, hf_signal_try, NULL);
    hf_wf *wf = hf_wf_self();
    hf_status status = check(self, wf, "hf_signal_try", name);
    hf_wf_signal *signal = status == HF_OK ? take_signal(wf, hf_str_of(name)) : NULL;
    if (signal != NULL) {
        give_signal(wf, signal, ret_out);
    } else if (status == HF_OK) {
        status = hf_refuse(self, HF_ERR_AGAIN, "signal '%.100s' has not come", name);
    }
    HF_LEAVE(self, status);
}

hf_status hf_signal_wait_with(const char *name, hf_payload *ret_out, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_signal_wait);
    HF_VERB_ENTER(self, hf_signal_wait, NULL);
    hf_wf *wf = hf_wf_self();
    hf_status status = check(self, wf, "hf_signal_wait", name);
    status = status == HF_OK ? hf_may_wait_for(self, "hf_signal_wait", options) : status;
    hf_wf_signal *signal = status == HF_OK ? take_signal(wf, hf_str_of(name)) : NULL;
    if (status == HF_OK && signal == NULL) {
        hf_wait wait;
        hf_wait_init(&wait, self, &SIGNAL, wf, name);
        hf_list_push_back(&wf->signal_waits, &wait.node);
        status = hf_park(self, &wait, hf_wait_deadline(self, self->rt, options));
        hf_assert(!hf_node_is_linked(&wait.node)); /* it is on this stack */
        signal = wait.value;
    }
    if (status == HF_OK) {
        give_signal(wf, signal, ret_out);
    }
    HF_LEAVE(self, status);
}

/* The oldest stored signal that has one of the names. */
static hf_wf_signal *take_oldest(hf_wf *wf, any_wait *any)
{
    HF_LIST_EACH(node, &wf->signals)
    {
        hf_wf_signal *signal = HF_CONTAINER(node, hf_wf_signal, node);
        for (any->idx = 0; any->idx < any->count; any->idx++) {
            if (hf_str_equal(hf_str_of(any->names[any->idx]), hf_str_of_len(signal->name, signal->name_len))) {
                hf_list_remove(node);
                return signal;
            }
        }
    }
    return NULL;
}

static hf_status check_any(hf_fiber *self, const hf_wf *wf, const any_wait *any, const size_t *ret_idx)
{
    static const char VERB[] = "hf_signal_wait_any";
    if (wf == NULL || any->names == NULL || ret_idx == NULL) {
        return hf_refuse(
            self, HF_ERR_MISUSE,
            "hf_signal_wait_any needs names and a place for the index, and can only be called in a workflow");
    }
    if (any->count == 0 || any->count > HF_SELECT_COUNT_MAX) {
        return hf_refuse_at(self, HF_ERR_INVALID, VERB, "%s waits for 1 to %d names", VERB, HF_SELECT_COUNT_MAX);
    }
    for (size_t i = 0; i < any->count; i++) {
        HF_TRY(check(self, wf, VERB, any->names[i]));
    }
    return HF_OK;
}

/* The timeout is over: all names are told, so far as a message has room. */
static hf_status none_has_come(hf_fiber *self, const any_wait *any)
{
    char list[HF_MESSAGE_LEN_MAX / 2];
    size_t len = 0;
    for (size_t i = 0; i < any->count && len < sizeof list; i++) {
        int more = snprintf(list + len, sizeof list - len, "%s'%.100s'", i > 0 ? ", " : "", any->names[i]);
        len += more > 0 ? (size_t)more : 0;
    }
    return hf_refuse_at(self, HF_ERR_TIMEOUT, ANY.verb, "%s on %s%s: %s", ANY.verb, list,
                        len < sizeof list ? "" : "...", hf_status_text(HF_ERR_TIMEOUT));
}

hf_status hf_signal_wait_any_with(const char *const *names, size_t count, size_t *ret_idx, hf_payload *ret_out,
                                  const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_signal_wait_any);
    HF_VERB_ENTER(self, hf_signal_wait_any, NULL);
    hf_wf *wf = hf_wf_self();
    any_wait any = {.names = names, .count = count};
    hf_status status = check_any(self, wf, &any, ret_idx);
    status = status == HF_OK ? hf_may_wait_for(self, "hf_signal_wait_any", options) : status;
    hf_wf_signal *signal = status == HF_OK ? take_oldest(wf, &any) : NULL;
    if (status == HF_OK && signal == NULL) {
        hf_wait_init(&any.wait, self, &ANY, wf, names[0]);
        hf_list_push_back(&wf->signal_waits, &any.wait.node);
        status = hf_park(self, &any.wait, hf_wait_deadline(self, self->rt, options));
        hf_assert(!hf_node_is_linked(&any.wait.node)); /* the same */
        status = status == HF_ERR_TIMEOUT ? none_has_come(self, &any) : status;
        signal = any.wait.value;
    }
    if (status == HF_OK) {
        hf_assert(any.idx < count);
        *ret_idx = any.idx;
        give_signal(wf, signal, ret_out);
    }
    HF_LEAVE(self, status);
}

/* ---- Cases of hf_select ------------------------------------------------------------------------------------------ */

hf_status hf_wf_signal_check(hf_fiber *self, void *state, const char *verb, const char *name)
{
    return check(self, state, verb, name);
}

hf_status hf_wf_signal_take(void *state, hf_signal_case *to)
{
    hf_wf *wf = state;
    hf_wf_signal *signal = take_signal(wf, hf_str_of(to->name));
    if (signal == NULL) {
        return HF_ERR_AGAIN;
    }
    give_signal(wf, signal, &to->payload);
    return HF_OK;
}

hf_list *hf_wf_signal_waits(void *state)
{
    return &((hf_wf *)state)->signal_waits;
}

/* ---- Delivery ---------------------------------------------------------------------------------------------------- */

/* Whether the fiber waits for this name. */
static bool wants(hf_wait *wait, hf_str name)
{
    const char *awaited = NULL;
    for (size_t i = 0; (awaited = hf_wf_awaited(wait, i)) != NULL; i++) {
        if (hf_str_equal(name, hf_str_of(awaited))) {
            if (wait->kind == &ANY) {
                HF_CONTAINER(wait, any_wait, wait)->idx = i;
            }
            return true;
        }
    }
    return false;
}

/* Gives the signal to a fiber that waits for it. False: its select has taken another case. */
static bool hand_over(hf_wf *wf, hf_wait *wait, hf_wf_signal *signal)
{
    if (wait->kind != &hf_select_case) {
        hf_list_remove(&wait->node);
        wait->value = signal;
        hf_wake(wait, HF_OK);
        return true;
    }
    hf_wait *main = NULL;
    hf_signal_case *to = wait->value;
    if (!hf_select_claim(wait, HF_OK, &main)) {
        return false;
    }
    hf_list_remove(&wait->node);
    give_signal(wf, signal, &to->payload);
    hf_wake(main, HF_OK);
    return true;
}

/* Starts the handler of a signal and frees the signal. */
static hf_status handle(hf_op *op, hf_wf *wf, const hf_wf_handler *handler, hf_wf_signal *signal)
{
    hf_str name = hf_str_of_len(signal->name, signal->name_len);
    hf_status status = hf_wf_handle(op, wf, HF_WF_ON_SIGNAL, handler, name, (hf_str){NULL, 0}, signal->payload);
    if (status != HF_OK) {
        hf_list_push_back(&wf->signals, &signal->node); /* it goes with the run */
        return status;
    }
    HF_CONTAINER(hf_list_last(&wf->handlings), hf_wf_handling, node)->header = signal->header;
    signal->header = (hf_str){NULL, 0};
    free_signal(wf, signal);
    return HF_OK;
}

/* The run ends when its last fibers have ended: a handler would see the signal in vain, and the next run would not. */
static bool is_for_next(const hf_wf *wf)
{
    return wf->next != NULL && hf_wf_plays_by(wf, HF_WF_RULE_NEXT);
}

/* Gives the signal to the first fiber that waits for its name, else to a handler, else keeps it. */
static hf_status deliver(hf_op *op, hf_wf *wf, hf_wf_signal *signal)
{
    hf_str name = hf_str_of_len(signal->name, signal->name_len);
    hf_assert(!hf_node_is_linked(&signal->node));
    hf_fiber *self = hf_enter(NULL);
    HF_LIST_EACH(node, &wf->signal_waits)
    {
        hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
        if (wants(wait, name) && hand_over(wf, wait, signal)) {
            hf_leave(self);
            return HF_OK;
        }
    }
    hf_leave(self);
    const hf_wf_handler *handler = is_for_next(wf) ? NULL : hf_wf_handler_of(wf, HF_WF_ON_SIGNAL, name);
    if (handler != NULL) {
        return handle(op, wf, handler, signal);
    }
    hf_list_push_back(&wf->signals, &signal->node);
    return HF_OK;
}

hf_status hf_wf_flush_signals(hf_op *op, hf_wf *wf, bool *ret_any)
{
    *ret_any = false;
    if (!wf->has_takers || is_for_next(wf) || (HF_CANARY(HF_BUG_LATE_HANDLER) && wf->is_current)) {
        return HF_OK;
    }
    wf->has_takers = false;
    HF_LIST_EACH(node, &wf->signals)
    {
        hf_wf_signal *signal = HF_CONTAINER(node, hf_wf_signal, node);
        const hf_wf_handler *handler =
            hf_wf_handler_of(wf, HF_WF_ON_SIGNAL, hf_str_of_len(signal->name, signal->name_len));
        if (handler != NULL) {
            hf_list_remove(node);
            HF_TRY(handle(op, wf, handler, signal));
            *ret_any = true;
        }
    }
    return HF_OK;
}

hf_status hf_wf_signaled(hf_op *op, hf_wf *wf, const hf_pb_workflow_execution_signaled_event_attributes *from)
{
    hf_allocator memory = wf->worker->memory;
    hf_wf_signal *signal =
        memory.allocate(memory.state, sizeof *signal + from->signal_name.len, _Alignof(hf_wf_signal));
    if (signal == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a signal");
    }
    *signal = (hf_wf_signal){.name_len = from->signal_name.len};
    if (signal->name_len > 0) {
        memcpy(signal->name, from->signal_name.data, signal->name_len);
    }
    hf_status status = hf_payload_decode(from->input, &wf->payloads, &signal->payload);
    if (status != HF_OK || !hf_wf_header_keep(wf, from->header, &signal->header)) {
        free_signal(wf, signal);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a signal");
    }
    return deliver(op, wf, signal);
}

/* ---- The next run of the chain ----------------------------------------------------------------------------------- */

hf_str hf_wf_encode_signals(const hf_wf *wf, hf_arena *arena)
{
    size_t count = 0;
    HF_LIST_EACH(node, &wf->signals)
    {
        count++;
    }
    hf_pb_history history = {0};
    history.events.items = HF_ARENA_ARRAY(arena, hf_pb_history_event, count);
    hf_pb_workflow_execution_signaled_event_attributes *bodies =
        HF_ARENA_ARRAY(arena, hf_pb_workflow_execution_signaled_event_attributes, count);
    if (count == 0 || history.events.items == NULL || bodies == NULL) {
        return (hf_str){NULL, 0};
    }
    HF_LIST_EACH(node, &wf->signals)
    {
        const hf_wf_signal *signal = HF_CONTAINER_CONST(node, hf_wf_signal, node);
        hf_pb_workflow_execution_signaled_event_attributes *body = &bodies[history.events.count];
        body->signal_name = hf_str_of_len(signal->name, signal->name_len);
        body->input = hf_payload_encode(arena, signal->payload);
        body->header = signal->header.len > 0 ? HF_ARENA_NEW(arena, hf_pb_header) : NULL;
        if (body->header != NULL) {
            (void)hf_pb_decode(NULL, &hf_pb_header_type, signal->header, arena, body->header);
        }
        history.events.items[history.events.count++] = (hf_pb_history_event){
            .event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
            .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES,
            .workflow_execution_signaled_event_attributes = body,
        };
    }
    hf_assert(history.events.count == count);
    hf_buf bytes;
    hf_buf_init(&bytes, wf->worker->memory, HF_HISTORY_LEN_MAX);
    hf_pb_encode(&hf_pb_history_type, &history, &bytes);
    hf_str encoded = hf_arena_copy(arena, hf_str_of_len(bytes.data, bytes.status == HF_OK ? bytes.len : 0));
    hf_buf_deinit(&bytes);
    return encoded;
}

hf_status hf_wf_decode_signals(hf_op *op, hf_wf *wf, hf_str bytes)
{
    hf_arena arena;
    hf_arena_init(&arena, wf->worker->memory);
    hf_pb_history history;
    hf_status status = hf_pb_decode(op, &hf_pb_history_type, bytes, &arena, &history);
    for (size_t i = 0; status == HF_OK && i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES) {
            status = hf_wf_signaled(op, wf, event->workflow_execution_signaled_event_attributes);
        }
    }
    hf_arena_deinit(&arena);
    return status;
}
