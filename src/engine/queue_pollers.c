/* Who has polled a task queue in the last minutes, and how many tasks came and went in a second, over the last half minute. */
#include "engine/core_private.h"
#include "engine/matching.h"

#define POLLER_SPAN (INT64_C(300) * 1000000000) /* how long a poller is remembered */
#define POLLERS_MAX 1000                        /* of one queue; those that polled longest ago are forgotten first */
#define TALLY_SPAN (INT64_C(5) * 1000000000)    /* ns of one count */

/* A poller of a queue. */
typedef struct hf_queue_poller {
    hf_map_node by_name; /* of core->pollers */
    hf_node link;        /* of queue->pollers */
    hf_queue *queue;
    hf_owned identity;
    int64_t wall, mono; /* ns: its last poll */
    double rate;        /* tasks a second that it wants; negative = it does not say */
} hf_queue_poller;

/* ---- Pollers ----------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const hf_queue *queue, hf_str identity)
{
    return hf_hash_bytes(queue->by_text.hash, identity.data, identity.len);
}

static hf_queue_poller *find(const hf_core *core, const hf_queue *queue, hf_str identity)
{
    hf_map_node *node = hf_map_first(&core->pollers, hash_of(queue, identity));
    for (; node != NULL; node = hf_map_next(node)) {
        hf_queue_poller *poller = HF_CONTAINER(node, hf_queue_poller, by_name);
        if (poller->queue == queue && hf_str_equal(hf_owned_str(&poller->identity), identity)) {
            return poller;
        }
    }
    return NULL;
}

static void drop(hf_core *core, hf_queue_poller *poller)
{
    hf_assert(poller->queue->poller_count > 0);
    poller->queue->poller_count--;
    hf_list_remove(&poller->link);
    hf_map_remove(&core->pollers, &poller->by_name);
    hf_owned_free(&core->runs_memory, &poller->identity);
    hf_core_free_mem(core, poller, sizeof *poller);
}

static hf_queue_poller *add(hf_core *core, hf_queue *queue, hf_str identity)
{
    hf_queue_poller *poller = hf_core_alloc(core, sizeof *poller);
    if (poller == NULL) {
        return NULL;
    }
    hf_owned_set(&core->runs_memory, &poller->identity, identity);
    if (core->status != HF_OK || hf_map_insert(&core->pollers, &poller->by_name, hash_of(queue, identity)) != HF_OK) {
        hf_owned_free(&core->runs_memory, &poller->identity);
        hf_core_free_mem(core, poller, sizeof *poller);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    poller->queue = queue;
    queue->poller_count++;
    hf_list_push_back(&queue->pollers, &poller->link);
    return poller;
}

void hf_poller_note(hf_core *core, hf_queue *queue, hf_str identity, const hf_pb_double_value *rate)
{
    hf_node *last = hf_list_last(&queue->pollers); /* the poller that came last mostly polls again */
    hf_queue_poller *poller = last != NULL ? HF_CONTAINER(last, hf_queue_poller, link) : NULL;
    if (poller == NULL || !hf_str_equal(hf_owned_str(&poller->identity), identity)) {
        poller = find(core, queue, identity);
        if (poller != NULL) {
            hf_list_remove(&poller->link);
            hf_list_push_back(&queue->pollers, &poller->link);
        } else {
            poller = add(core, queue, identity);
        }
    }
    if (poller == NULL) {
        return;
    }
    poller->wall = core->now.wall;
    poller->mono = core->now.mono;
    poller->rate = rate != NULL ? rate->value : -1;
    hf_queue_poller *first = HF_CONTAINER(hf_list_first(&queue->pollers), hf_queue_poller, link);
    if (queue->poller_count > POLLERS_MAX || core->now.mono - first->mono > POLLER_SPAN) {
        drop(core, first);
    }
}

void hf_poller_forget(hf_core *core, hf_queue *queue, hf_str identity)
{
    hf_queue_poller *poller = find(core, queue, identity);
    if (poller != NULL) {
        drop(core, poller);
    }
}

void hf_pollers_free(hf_core *core, hf_queue *queue)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&queue->pollers)) != NULL) {
        drop(core, HF_CONTAINER(node, hf_queue_poller, link));
    }
    hf_assert(queue->poller_count == 0);
}

void hf_pollers_list(const hf_core *core, const hf_queue *queue, hf_arena *arena, hf_pb_poller_info_list *ret_pollers)
{
    ret_pollers->items = HF_ARENA_ARRAY(arena, hf_pb_poller_info, queue->poller_count);
    for (hf_node *node = queue->pollers.head.prev; arena->status == HF_OK && node != &queue->pollers.head;
         node = node->prev) {
        const hf_queue_poller *poller = HF_CONTAINER(node, hf_queue_poller, link);
        if (core->now.mono - poller->mono > POLLER_SPAN) {
            return;
        }
        ret_pollers->items[ret_pollers->count++] = (hf_pb_poller_info){
            .last_access_time = hf_pb_timestamp_of((hf_time){poller->wall}),
            .identity = hf_arena_copy(arena, hf_owned_str(&poller->identity)),
            .rate_per_second = poller->rate >= 0 ? poller->rate : HF_QUEUE_RATE_DEFAULT,
        };
    }
}

/* ---- Rates --------------------------------------------------------------------------------------------------------------- */

void hf_queue_tally_begin(const hf_core *core, hf_queue_tally *tally)
{
    *tally = (hf_queue_tally){.since = core->now.mono, .last = core->now.mono / TALLY_SPAN};
}

/* Forgets what is too long ago. */
static void tally_move(const hf_core *core, hf_queue_tally *tally)
{
    int64_t now = core->now.mono / TALLY_SPAN;
    hf_assert(now >= tally->last); /* this clock does not go back */
    tally->last = now - tally->last > HF_QUEUE_TALLY_COUNTS ? now - HF_QUEUE_TALLY_COUNTS : tally->last;
    while (tally->last < now) {
        tally->last++;
        for (size_t i = 0; i < HF_PRIORITY_LEVELS; i++) {
            tally->counts[i][tally->last % HF_QUEUE_TALLY_COUNTS] = 0;
        }
    }
}

void hf_queue_tally_count(const hf_core *core, hf_queue_tally *tally, const hf_task *task)
{
    tally_move(core, tally);
    hf_assert(task->priority >= 1 && task->priority <= HF_PRIORITY_LEVELS);
    tally->counts[task->priority - 1][tally->last % HF_QUEUE_TALLY_COUNTS]++;
}

float hf_queue_tally_rate(const hf_core *core, hf_queue_tally *tally, int priority)
{
    hf_assert(priority >= 1 && priority <= HF_PRIORITY_LEVELS);
    tally_move(core, tally);
    uint64_t count = 0;
    for (size_t i = 0; i < HF_QUEUE_TALLY_COUNTS; i++) {
        count += tally->counts[priority - 1][i];
    }
    int64_t counted = core->now.mono - (tally->last - (HF_QUEUE_TALLY_COUNTS - 1)) * TALLY_SPAN;
    int64_t span = core->now.mono - tally->since;
    span = span < counted ? span : counted;
    return span > 0 ? (float)((double)count * 1e9 / (double)span) : 0;
}
