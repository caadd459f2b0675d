#include "engine/changes.h"

#include "base/rng.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/input_private.h"
#include "engine/poll.h"
#include "engine/token.h"

static hf_change_noted *place_of(const hf_changes *changes, uint64_t number)
{
    hf_assert(number >= changes->first && number <= changes->next);
    return &changes->ring[number % HF_CHANGES_MAX];
}

static size_t len_of(const hf_change_noted *noted)
{
    return (size_t)noted->lens[0] + noted->lens[1] + noted->lens[2] + noted->lens[3];
}

static void forget(hf_core *core, hf_change_noted *noted)
{
    if (noted->texts != NULL) {
        hf_core_free_mem(core, noted->texts, len_of(noted));
    }
    *noted = (hf_change_noted){0};
}

void hf_changes_free(hf_core *core)
{
    hf_changes *changes = &core->changes;
    if (changes->ring != NULL) {
        for (; changes->first < changes->next; changes->first++) {
            forget(core, place_of(changes, changes->first));
        }
        hf_core_free_mem(core, changes->ring, HF_CHANGES_MAX * sizeof *changes->ring);
        changes->ring = NULL;
    }
}

void hf_changes_note(hf_core *core, const hf_run *run)
{
    hf_changes *changes = &core->changes;
    if (HF_LIKELY(changes->ring == NULL)) {
        return;
    }
    if (hf_list_is_empty(&changes->waiting) &&
        core->now.mono - changes->asked_at > hf_seconds(HF_CHANGES_IDLE_SECONDS).ns) {
        hf_changes_free(core);
        return;
    }
    if (changes->next - changes->first == HF_CHANGES_MAX) {
        forget(core, place_of(changes, changes->first));
        changes->first++;
    }
    const hf_owned *const texts[] = {&run->namespace, &run->workflow_id, &run->run_id, &run->workflow_type};
    hf_change_noted noted = {.status = run->status};
    for (size_t i = 0; i < HF_COUNT_OF(texts); i++) {
        noted.lens[i] = (uint32_t)texts[i]->len;
    }
    noted.texts = hf_core_alloc(core, len_of(&noted));
    if (noted.texts == NULL) {
        return;
    }
    char *at = noted.texts;
    for (size_t i = 0; i < HF_COUNT_OF(texts); i++) {
        memcpy(at, texts[i]->data != NULL ? texts[i]->data : "", texts[i]->len);
        at += texts[i]->len;
    }
    *place_of(changes, changes->next) = noted;
    changes->next++;
    changes->has_news = true;
    hf_assert(changes->next - changes->first <= HF_CHANGES_MAX);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------- */

static uint64_t bound_of(const hf_core *core, hf_str namespace_)
{
    return hf_hash_mix(hf_hash_bytes(9, namespace_.data, namespace_.len), core->incarnation);
}

/* Where the call goes on. False: the ring does not reach back to that, or the cursor is not of this opening. */
static bool begin_of(const hf_core *core, const hf_call *call, uint64_t *ret_from)
{
    REQUEST(read_changes);
    const hf_changes *changes = &core->changes;
    hf_list_place place = {0};
    if (request->cursor.len == 0 || !hf_list_token_decode(core, request->cursor, &place) ||
        place.bound != bound_of(core, request->namespace)) {
        return false;
    }
    *ret_from = (uint64_t)place.number;
    return *ret_from >= changes->first && *ret_from <= changes->next;
}

static void set_cursor(const hf_core *core, const hf_call *call, uint64_t next)
{
    REQUEST(read_changes);
    hf_pb_read_changes_response *response = call->response;
    hf_list_place place = {.bound = bound_of(core, request->namespace), .number = (int64_t)next};
    response->cursor = hf_list_token_encode(core, call->arena, &place);
}

static void show(hf_arena *arena, const hf_change_noted *noted, hf_pb_run_change *change)
{
    const char *at = noted->texts + noted->lens[0];
    change->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    if (change->execution != NULL) {
        change->execution->workflow_id = hf_arena_copy(arena, hf_str_of_len(at, noted->lens[1]));
        change->execution->run_id = hf_arena_copy(arena, hf_str_of_len(at + noted->lens[1], noted->lens[2]));
        change->workflow_type =
            hf_arena_copy(arena, hf_str_of_len(at + noted->lens[1] + noted->lens[2], noted->lens[3]));
        change->status = noted->status;
    }
}

/* Answers with the changes from this number on. False: there are none for this call. */
static bool answer(hf_core *core, hf_call *call, uint64_t from)
{
    REQUEST(read_changes);
    const hf_changes *changes = &core->changes;
    size_t max = request->maximum_page_size > 0 && request->maximum_page_size < HF_CHANGES_PAGE
                     ? (size_t)request->maximum_page_size
                     : HF_CHANGES_PAGE;
    hf_pb_read_changes_response *response = call->response;
    for (; from < changes->next && response->changes.count < max; from++) {
        const hf_change_noted *noted = place_of(changes, from);
        if (!hf_str_equal(hf_str_of_len(noted->texts, noted->lens[0]), request->namespace)) {
            continue;
        }
        if (response->changes.items == NULL) {
            response->changes.items = HF_ARENA_ARRAY(call->arena, hf_pb_run_change, max);
        }
        if (response->changes.items == NULL) {
            break;
        }
        show(call->arena, noted, &response->changes.items[response->changes.count++]);
    }
    set_cursor(core, call, from);
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return response->changes.count > 0;
}

void hf_read_changes_call(hf_core *core, hf_call *call)
{
    REQUEST(read_changes);
    hf_changes *changes = &core->changes;
    hf_pb_read_changes_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    if (changes->ring == NULL) {
        changes->ring = hf_core_alloc(core, HF_CHANGES_MAX * sizeof *changes->ring);
        changes->first = changes->next; /* a cursor from before sees a gap: */
        changes->next++;
        changes->first++;
    }
    changes->asked_at = core->now.mono;
    uint64_t from = 0;
    if (core->status != HF_OK) {
        return;
    }
    if (!begin_of(core, call, &from)) {
        HF_PROBE(core, HF_PROBE_CHANGES_GAP);
        response->is_gap = true;
        set_cursor(core, call, changes->next);
    } else if (!answer(core, call, from) && request->wait_new_change) {
        call->place = HF_PLACE_CHANGES;
        hf_list_push_back(&changes->waiting, &call->link);
        hf_poll_park(core, call, &core->history_polls, core->options.history_span);
        return;
    }
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_call_reply(core, call);
}

void hf_changes_remove(hf_core *core, hf_call *call)
{
    hf_assert(call->place == HF_PLACE_CHANGES);
    hf_list_remove(&call->link);
    hf_poll_unpark(core, call);
    call->place = HF_PLACE_NONE;
    core->changes.asked_at = core->now.mono;
}

void hf_changes_wake(hf_core *core)
{
    hf_changes *changes = &core->changes;
    if (!changes->has_news) {
        return;
    }
    changes->has_news = false;
    hf_list woken;
    hf_list_init(&woken);
    while (!hf_list_is_empty(&changes->waiting)) {
        hf_list_push_back(&woken, hf_list_pop_front(&changes->waiting));
    }
    while (!hf_list_is_empty(&woken) && core->status == HF_OK) {
        hf_call *call = HF_CONTAINER(hf_list_pop_front(&woken), hf_call, link);
        uint64_t from = 0;
        bool reaches = begin_of(core, call, &from);
        hf_pb_read_changes_response *response = call->response;
        response->is_gap = !reaches;
        if (reaches && !answer(core, call, from)) { /* of other namespaces */
            hf_list_push_back(&changes->waiting, &call->link);
            continue;
        }
        if (!reaches) {
            set_cursor(core, call, changes->next);
        }
        HF_PROBE(core, HF_PROBE_CHANGES_WOKEN);
        hf_list_push_back(&changes->waiting, &call->link);
        hf_changes_remove(core, call);
        hf_call_reply(core, call); /* engine-F1 */
    }
    while (!hf_list_is_empty(&woken)) { /* the core is broken, and hf_core_stop answers them */
        hf_list_push_back(&changes->waiting, hf_list_pop_front(&woken));
    }
}

void hf_changes_expire(hf_core *core, hf_call *call)
{
    hf_changes_remove(core, call);
    hf_call_reply(core, call); /* its cursor was set when it began to wait, or was looked at last */
}
