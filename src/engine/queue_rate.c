/* The rate limit of a task queue: how many activities a second workers get from it. Each poll says how many its worker wants, and
 * the last one holds. Tasks wait beside polls until there is a token.
 *
 * The bucket holds the tokens of RATE_BURST_SECONDS, and at least one. It is one number, the time at which it will be full: each task that is handed
 * out moves that time by the interval between two tokens.
 *
 *     now                       full_at
 *      |--interval--|--interval--|             two tokens are missing
 *
 * The clock is the monotonic one, which comes with each input, so that the outcome is the same for the same inputs (engine-E6). */
#include "engine/matching.h"

#include "base/canary.h"
#include "engine/core_private.h"

#include <math.h>

#define RATE_BURST_SECONDS 1 /* seconds whose tokens may be spent at once */
#define INTERVALS_MAX 1e9    /* tokens of a bucket: more are given out at once anyway */
#define RATE_SLACK_MAX (INT64_C(1000000000) * RATE_BURST_SECONDS)
#define INTERVAL_MAX (INT64_MAX / 8) /* ns between two tokens: more than anybody waits for */

/* ns between two tokens. */
static int64_t interval_of(const hf_queue *queue)
{
    hf_assert(queue->rate > 0);
    double ns = 1e9 / queue->rate;
    return ns >= (double)INTERVAL_MAX ? INTERVAL_MAX : ns < 1 ? 1 : (int64_t)ns;
}

/* The bucket has a token if the time at which it is full is at most this much (ns) ahead: then at least one token is there. */
static int64_t slack_of(const hf_queue *queue)
{
    double tokens = ceil(queue->rate * RATE_BURST_SECONDS);
    return tokens < 2 ? 0 : tokens > INTERVALS_MAX ? RATE_SLACK_MAX : ((int64_t)tokens - 1) * interval_of(queue);
}

void hf_queue_set_rate(hf_core *core, hf_queue *queue, const hf_pb_double_value *rate)
{
    double is = rate != NULL ? rate->value : -1;
    if (is == queue->rate) {
        return;
    }
    double missing = 0; /* tokens */
    if (queue->rate > 0 && queue->rate_full_at > core->now.mono) {
        missing = (double)(queue->rate_full_at - core->now.mono) / (double)interval_of(queue);
    }
    queue->rate = is;
    queue->rate_full_at = core->now.mono;
    if (is > 0) { /* the new bucket lacks the same number of tokens, or all that it can hold */
        double ns = missing * (double)interval_of(queue);
        int64_t most = slack_of(queue) + interval_of(queue);
        queue->rate_full_at += ns < (double)most ? (int64_t)ns : most;
    }
    hf_heap_remove(&core->rated, &queue->rate_wait);
    hf_queue_mark(core, queue);
}

bool hf_queue_may_give(hf_core *core, hf_queue *queue)
{
    if (queue->rate < 0 || HF_CANARY(HF_BUG_RATE_IGNORED)) {
        return true;
    }
    int64_t next = queue->rate > 0 ? queue->rate_full_at - slack_of(queue) : INT64_MAX;
    if (next <= core->now.mono) {
        return true;
    }
    HF_PROBE(core, HF_PROBE_RATE_LIMITED);
    if (next != INT64_MAX && hf_heap_set(&core->rated, &queue->rate_wait, next) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return false;
}

void hf_queue_gave(const hf_core *core, hf_queue *queue, const hf_task *task)
{
    hf_queue_tally_count(core, &queue->given, task);
    if (queue->rate > 0) {
        int64_t from = queue->rate_full_at > core->now.mono ? queue->rate_full_at : core->now.mono;
        queue->rate_full_at = from + interval_of(queue);
    }
}

void hf_rates_tick(hf_core *core)
{
    hf_heap_node *node = NULL;
    while ((node = hf_heap_first(&core->rated)) != NULL && node->key <= core->now.mono) {
        hf_heap_remove(&core->rated, node);
        hf_queue_mark(core, HF_CONTAINER(node, hf_queue, rate_wait));
    }
}

int64_t hf_rates_next(const hf_core *core)
{
    const hf_heap_node *first = hf_heap_first(&core->rated);
    return first != NULL ? first->key : INT64_MAX;
}
