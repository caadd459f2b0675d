/* ListTaskQueues: task queues that have pollers or tasks, those of activities first, each kind by name.
 *
 * Queues in memory are known; others have waiting tasks in their table, where the keys are the texts of queues: each read finds the next text,
 * so a page takes as many reads as it has such queues. Queues of single workers (sticky ones) are left out, as far as they are known as such. */
#include "base/rng.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/input_private.h"
#include "engine/matching.h"
#include "engine/token.h"
#include "ledger/rows.h"

#include <stdlib.h>

/* A list that is under way; in the arena of its call. */
typedef struct hf_queue_listing {
    hf_call *call;
    hf_str *texts; /* of queues, in no order, until they are all here */
    size_t count;
    size_t room;
    hf_str after; /* the page begins behind this text */
    size_t max;   /* of the page */
    size_t cold;  /* found on disk */
    char kind;    /* that is looked for on disk */
} hf_queue_listing;

static const char KINDS[] = {'a', 'w'}; /* in the order of their texts */

static hf_str text_in(hf_core *core, const hf_call *call, char kind, hf_str name)
{
    REQUEST(list_task_queues);
    return hf_queue_text_in(core, call->arena, kind, request->namespace, name);
}

/* What a page token is bound to. */
static uint64_t bound_of(const hf_call *call)
{
    REQUEST(list_task_queues);
    return hf_hash_bytes(10, request->namespace.data, request->namespace.len);
}

static bool is_of(hf_str text, hf_str prefix)
{
    return text.len >= prefix.len && memcmp(text.data, prefix.data, prefix.len) == 0;
}

static int compare(const void *a, const void *b)
{
    const hf_str *left = a;
    const hf_str *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->data, right->data, len);
    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

static void add(hf_queue_listing *it, hf_str text)
{
    if (it->count == it->room) {
        size_t room = it->room > 0 ? 2 * it->room : 64;
        hf_str *texts = HF_ARENA_ARRAY(it->call->arena, hf_str, room);
        if (texts == NULL) {
            return; /* the arena's status says so */
        }
        if (it->count > 0) {
            memcpy(texts, it->texts, it->count * sizeof *texts);
        }
        it->texts = texts;
        it->room = room;
    }
    it->texts[it->count++] = text;
}

static void add_from_memory(hf_core *core, hf_queue_listing *it, hf_str prefix)
{
    HF_LIST_EACH(node, &core->queues_all)
    {
        const hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
        hf_str text = hf_owned_str(&queue->text);
        bool is_used = queue->task_count > 0 || queue->suspect_count > 0 || queue->poller_count > 0 ||
                       queue->poll_count > 0 || !hf_list_is_empty(&queue->cold);
        if (is_used && !queue->is_sticky && is_of(text, prefix) && compare(&text, &it->after) > 0) {
            add(it, hf_arena_copy(it->call->arena, text));
        }
    }
}

static void show(hf_core *core, hf_arena *arena, hf_str text, hf_pb_task_queue_entry *entry)
{
    const char *name = memchr(text.data, '\x1f', text.len);
    hf_assert(name != NULL); /* hf_queue_text */
    const hf_queue *queue = hf_queue_by_text(core, text);
    size_t from = (size_t)(name + 1 - text.data);
    entry->name = hf_arena_copy(arena, hf_str_of_len(name + 1, text.len - from));
    entry->type = text.data[0] == 'w' ? HF_TASK_QUEUE_TYPE_WORKFLOW : HF_TASK_QUEUE_TYPE_ACTIVITY;
    if (queue != NULL) {
        hf_pb_poller_info_list pollers = {NULL, 0};
        hf_pollers_list(core, queue, arena, &pollers);
        entry->pollers = (int64_t)pollers.count;
        entry->backlog = (int64_t)(queue->task_count + queue->suspect_count);
    }
}

/* Everything that the page may have is here. */
static void finish(hf_core *core, hf_queue_listing *it)
{
    hf_call *call = it->call;
    hf_pb_list_task_queues_response *response = call->response;
    if (it->count > 1) {
        qsort(it->texts, it->count, sizeof *it->texts, compare);
    }
    response->queues.items = HF_ARENA_ARRAY(call->arena, hf_pb_task_queue_entry, it->max);
    size_t i = 0;
    for (; i < it->count && response->queues.items != NULL && response->queues.count < it->max; i++) {
        if (i == 0 || compare(&it->texts[i - 1], &it->texts[i]) != 0) { /* it may be in memory and on disk */
            show(core, call->arena, it->texts[i], &response->queues.items[response->queues.count++]);
        }
    }
    if (i > 0 && (i < it->count || it->cold == it->max)) {
        hf_list_place place = {.bound = bound_of(call), .number = 1, .key = it->texts[i - 1]};
        response->next_page_token = hf_list_token_encode(core, call->arena, &place);
    }
    if (call->arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

/* Reads the next queue on disk behind `from`. */
static void read_next(hf_core *core, hf_queue_listing *it, hf_str from)
{
    hf_read *read = hf_read_new(core, HF_READ_QUEUES, HF_TABLE_TASK);
    if (read == NULL) {
        return;
    }
    hf_str prefix = text_in(core, it->call, it->kind, HF_STR(""));
    char *end = hf_arena_take(it->call->arena, prefix.len + 1, 1);
    if (end == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        hf_read_free(core, read);
        return;
    }
    memcpy(end, prefix.data, prefix.len);
    end[prefix.len - 1] = '\x20'; /* behind the separator 0x1f: all names of the namespace come before */
    read->call = it->call;
    read->queues = it;
    read->request.key = (hf_key){.text = compare(&from, &prefix) > 0 ? from : prefix};
    read->request.key_end = (hf_key){.text = hf_str_of_len(end, prefix.len)};
    read->request.row_max = 1;
    hf_read_submit(core, read);
}

/* The text behind all rows of this one. */
static hf_str behind(hf_arena *arena, hf_str text)
{
    char *next = hf_arena_zero(arena, text.len + 1, 1);
    if (next == NULL) {
        return text;
    }
    memcpy(next, text.data, text.len);
    return hf_str_of_len(next, text.len + 1);
}

void hf_queues_read(hf_core *core, hf_read *read)
{
    hf_queue_listing *it = read->queues;
    hf_call *call = it->call;
    if (read->request.row_count > 0) {
        hf_str text = hf_arena_copy(call->arena, read->request.rows[0].key.text);
        add(it, text);
        it->cold++;
        HF_PROBE(core, HF_PROBE_QUEUES_COLD);
        if (call->arena->status == HF_OK && it->cold < it->max) {
            read_next(core, it, behind(call->arena, text));
            return;
        }
    } else if (it->kind == KINDS[0]) {
        it->kind = KINDS[1];
        read_next(core, it, behind(call->arena, it->after));
        return;
    }
    finish(core, it);
    if (core->status == HF_OK) {
        hf_call_let_go(call);
    }
}

void hf_list_task_queues_call(hf_core *core, hf_call *call)
{
    REQUEST(list_task_queues);
    hf_list_place place = {0};
    if (request->next_page_token.len > 0 &&
        (!hf_list_token_decode(core, request->next_page_token, &place) || place.bound != bound_of(call))) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        (void)hf_call_refuse(core, call, "NextPageToken was not issued by this store");
        return;
    }
    hf_queue_listing *it = HF_ARENA_NEW(call->arena, hf_queue_listing);
    if (hf_call_response(core, call) == NULL) {
        return;
    }
    if (it == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    HF_PROBE(core, HF_PROBE_QUEUES_LISTED);
    it->call = call;
    it->after = hf_arena_copy(call->arena, place.key);
    it->max = request->page_size > 0 && request->page_size < HF_QUEUE_PAGE ? (size_t)request->page_size : HF_QUEUE_PAGE;
    for (size_t i = 0; i < sizeof KINDS; i++) {
        add_from_memory(core, it, text_in(core, call, KINDS[i], HF_STR("")));
    }
    if (!core->tasks_on_disk) {
        finish(core, it);
        hf_call_reply(core, call);
        return;
    }
    it->kind = it->after.len > 0 ? it->after.data[0] : KINDS[0];
    call->place = HF_PLACE_ELSEWHERE;
    call->holds = 2; /* the rows and the commit */
    hf_call_reply(core, call);
    read_next(core, it, behind(call->arena, it->after));
}
