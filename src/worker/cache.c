/* Runs in memory, by run id. When the cache is over its bounds, runs that have nothing to do are taken out of the
 * table and told to end; drivers evict their fibers. The next task of such a run makes it again from its history.
 *
 * A run whose step does not end is given up: it leaves the table, too, and is kept in `stuck` until its fiber comes back.
 *
 * worker-D2  At most two runs with the same id are in `stuck`. While there are two, tasks of that run are refused. */
#include "worker/wf.h"

#include "base/fields.h"
#include "base/rng.h"
#include "fiber/crew/crew_private.h"

#include <stdio.h>

enum { STUCK_MAX = 2 }; /* worker-D2 */

/* A task lies in its own arena. */
hf_wtask *hf_wtask_new(hf_worker *worker)
{
    hf_arena arena = hf_arenas_take(&worker->arenas);
    hf_wtask *task = hf_arena_take(&arena, sizeof *task, _Alignof(hf_wtask));
    if (task != NULL) {
        task->node = (hf_node){NULL, NULL};
        task->task = NULL;
        task->is_ahead = !worker->service->is_remote; /* also one that comes with an answer: worker-J1 */
        task->arena = arena;
        hf_arena_init(&task->steps[0], worker->memory); /* without memory until events are read */
        hf_arena_init(&task->steps[1], worker->memory);
        hf_list_init(&task->pages);
    }
    return task;
}

void hf_wtask_free(hf_worker *worker, hf_wtask *task)
{
    if (task != NULL) {
        hf_wf_pages_free(worker, &task->pages, INT64_MAX);
        for (size_t i = 0; i < HF_COUNT_OF(task->steps); i++) {
            if (task->steps[i].chunks != NULL) {
                hf_arenas_give(&worker->arenas, &task->steps[i]);
            }
        }
        hf_arena arena = task->arena;
        hf_arenas_give(&worker->arenas, &arena);
    }
}

void hf_wf_cache_init(hf_wf_cache *cache)
{
    for (size_t i = 0; i < HF_WF_BUCKETS; i++) {
        hf_list_init(&cache->buckets[i]);
    }
    hf_list_init(&cache->lru);
    hf_list_init(&cache->stuck);
}

static hf_list *bucket_of(hf_wf_cache *cache, hf_str run_id)
{
    return &cache->buckets[hf_hash_bytes(0, run_id.data, run_id.len) % HF_WF_BUCKETS];
}

/* Locked. */
static hf_wf *find(hf_list *bucket, hf_str run_id)
{
    HF_LIST_EACH(node, bucket)
    {
        hf_wf *wf = HF_CONTAINER(node, hf_wf, bucket);
        if (hf_str_equal(wf->run_id, run_id)) {
            return wf;
        }
    }
    return NULL;
}

/* Locked: worker-K2. */
static void take_out(hf_wf_cache *cache, hf_wf *wf)
{
    hf_assert(hf_node_is_linked(&wf->bucket) && hf_node_is_linked(&wf->lru)); /* worker-K2 */
    hf_assert(cache->count > 0 && cache->bytes >= wf->bytes);
    hf_list_remove(&wf->bucket);
    hf_list_remove(&wf->lru);
    cache->count--;
    cache->bytes -= wf->bytes;
}

/* Locked. Ends the run if it has nothing to do: a driver evicts its fibers. */
static void end_if_idle(hf_wf_cache *cache, hf_wf *wf, hf_wf_summons *summons)
{
    if (wf->posted > 0 || (wf->has_jobs && !cache->is_closed)) {
        return; /* what its jobs did would be done again */
    }
    hf_assert(!wf->is_told); /* worker-K2 */
    take_out(cache, wf);
    cache->released++;
    wf->is_told = true;
    if (!wf->is_driven) { /* else its driver sees it when it looks for the next task */
        hf_wf_want_driver(wf, summons);
    }
}

/* Locked. Runs with this id that were given up and have not ended. */
static int stuck_of(const hf_wf_cache *cache, hf_str run_id)
{
    int count = 0;
    HF_LIST_EACH(node, &cache->stuck)
    {
        count += hf_str_equal(HF_CONTAINER(node, hf_wf, bucket)->run_id, run_id);
    }
    hf_assert(count <= STUCK_MAX); /* worker-D2 */
    return count;
}

/* Each fiber that does not yield keeps a thread, or has cost one. So a run is tried again once, and then not until one of
 * the two has come back. A workflow task times out, and another worker may try. */
static void refuse(hf_worker *worker, hf_wtask *task)
{
    const hf_pb_poll_workflow_task_queue_response *t = task->task;
    hf_log(worker->rt, HF_LOG_WARN, "workflow_task_dropped", "run=%.*s message=it_has_not_come_back",
           HF_STR_ARGS(t->workflow_execution->run_id));
    if (t->query != NULL) {
        hf_op why;
        hf_op_init(&why);
        (void)hf_fail(&why, HF_ERR_TIMEOUT, "%s", hf_wf_stuck_text);
        hf_wf_answer_failed(worker,
                            &(hf_stuck_step){.id = t->workflow_execution->workflow_id,
                                             .run_id = t->workflow_execution->run_id,
                                             .token = t->task_token,
                                             .is_query = true},
                            &why);
    }
    hf_wtask_free(worker, task);
    (void)hf_sem_release(worker->workflow_slots, 1);
}

/* Gives the task to the run if the run is in the cache, or refuses it. */
static bool post_to_known(hf_worker *worker, hf_wtask *task, hf_list *bucket, hf_str run_id)
{
    hf_wf_cache *cache = &worker->cache;
    hf_wf_summons summons = {.idle = NULL};
    hf_spin_lock(&cache->lock);
    hf_wf *wf = find(bucket, run_id);
    bool is_refused = wf == NULL && stuck_of(cache, run_id) == STUCK_MAX;
    if (wf != NULL) {
        wf->posted++;
        hf_list_push_back(&wf->tasks, &task->node);
        if (!wf->is_driven) {
            hf_wf_want_driver(wf, &summons);
        }
    }
    hf_spin_unlock(&cache->lock);
    hf_wf_summon(worker, &summons);
    if (is_refused) {
        refuse(worker, task);
    }
    return wf != NULL || is_refused;
}

hf_status hf_wf_cache_post(hf_worker *worker, hf_wtask *task)
{
    hf_wf_cache *cache = &worker->cache;
    hf_list *bucket = bucket_of(cache, task->task->workflow_execution->run_id);
    while (!post_to_known(worker, task, bucket, task->task->workflow_execution->run_id)) {
        hf_wf *wf = NULL;
        HF_TRY(hf_wf_new(worker, task, &wf));
        hf_spin_lock(&cache->lock);
        /* A query may come beside a workflow task or another query: all of them are for one run in memory. */
        bool is_first = find(bucket, wf->run_id) == NULL && stuck_of(cache, wf->run_id) < STUCK_MAX;
        if (is_first) {
            hf_list_push_back(bucket, &wf->bucket);
            hf_list_push_back(&cache->lru, &wf->lru);
            cache->count++;
        }
        hf_spin_unlock(&cache->lock);
        if (is_first) {
            return hf_wf_start(wf);
        }
        task = hf_wf_unmake(wf);
    }
    return HF_OK;
}

void hf_wf_cache_touch(hf_wf *wf, size_t bytes)
{
    hf_wf_cache *cache = &wf->worker->cache;
    const hf_worker_options *options = &wf->worker->options;
    hf_wf_summons ended = {.idle = NULL};
    int64_t now = hf_now(NULL).ns;
    hf_spin_lock(&cache->lock);
    hf_assert(wf->posted > 0);
    wf->posted--;
    wf->used_ns = now;
    wf->has_jobs = !hf_list_is_empty(&wf->local_jobs);
    if (hf_node_is_linked(&wf->lru)) {
        hf_list_remove(&wf->lru);
        hf_list_push_back(&cache->lru, &wf->lru);
        cache->bytes += bytes - wf->bytes;
        wf->bytes = bytes;
    }
    size_t count_max = cache->is_closed ? 0 : (size_t)options->cached_max;
    HF_LIST_EACH(node, &cache->lru)
    {
        if (cache->count <= count_max && cache->bytes <= (uint64_t)options->cached_bytes_max) {
            break;
        }
        end_if_idle(cache, HF_CONTAINER(node, hf_wf, lru), &ended);
    }
    bool has_no_date = cache->look_ns == 0 && cache->count > 0 && options->idle_timeout.ns > 0;
    if (has_no_date) {
        cache->look_ns = hf_instant_after((hf_instant){now}, options->idle_timeout).ns;
    }
    hf_spin_unlock(&cache->lock);
    hf_wf_summon(wf->worker, &ended);
    if (has_no_date) {
        hf_worker_ring(wf->worker);
    }
}

/* ---- Runs that wait for long ------------------------------------------------------------------------------------- */

enum { RELEASED_AT_ONCE = 256 }; /* while the lock is held */

/* Locked. Ends runs that have waited since `before_ns` or longer, at most RELEASED_AT_ONCE. Returns since when the next
 * one waits; INT64_MAX = nobody does. */
static int64_t end_idle(hf_wf_cache *cache, int64_t before_ns, hf_wf_summons *summons)
{
    int count = 0;
    HF_LIST_EACH(node, &cache->lru)
    {
        hf_wf *wf = HF_CONTAINER(node, hf_wf, lru);
        if (wf->posted > 0) {
            continue; /* it is at work: its time begins after its step */
        }
        if (wf->used_ns > before_ns || count == RELEASED_AT_ONCE) {
            return wf->used_ns;
        }
        cache->given_back += wf->bytes;
        end_if_idle(cache, wf, summons);
        count++;
    }
    return INT64_MAX;
}

/* Locked. When the keeper looks again: when the run that has waited longest is due, or a little later, so that it does
 * not look all the time if runs come one by one. 0 = never: the cache is empty. */
static int64_t look_after(const hf_worker *worker, int64_t since_ns, int64_t now_ns)
{
    hf_span span = worker->options.idle_timeout;
    int64_t pause = span.ns / 16 < 1000000000 ? span.ns / 16 : 1000000000;
    hf_assert(span.ns > 0); /* only then has a run set a date */
    if (since_ns == INT64_MAX) {
        return worker->cache.count == 0 ? 0 : hf_instant_after((hf_instant){now_ns}, span).ns;
    }
    int64_t due = hf_instant_after((hf_instant){since_ns}, span).ns;
    return due <= now_ns || due > now_ns + pause ? due : now_ns + pause;
}

int64_t hf_wf_cache_release_idle(hf_worker *worker, int64_t now_ns)
{
    hf_wf_cache *cache = &worker->cache;
    int64_t look = 0;
    bool is_due = true;
    while (is_due) {
        hf_wf_summons ended = {.only_wakes = true}; /* a driver that is busy looks again when it is done */
        hf_spin_lock(&cache->lock);
        is_due = cache->look_ns != 0 && cache->look_ns <= now_ns;
        if (is_due) {
            int64_t since = end_idle(cache, now_ns - worker->options.idle_timeout.ns, &ended);
            cache->look_ns = look_after(worker, since, now_ns);
        }
        look = cache->look_ns;
        hf_spin_unlock(&cache->lock);
        hf_wf_summon(worker, &ended);
    }
    return look == 0 ? INT64_MAX : look;
}

size_t hf_wf_cache_given_back(hf_worker *worker, bool clears)
{
    hf_wf_cache *cache = &worker->cache;
    hf_spin_lock(&cache->lock);
    size_t bytes = cache->given_back;
    cache->given_back = clears ? 0 : bytes;
    hf_spin_unlock(&cache->lock);
    return bytes;
}

/* ---- Steps that do not end --------------------------------------------------------------------------------------- */

void hf_wf_cache_enter_step(hf_wf *wf, const hf_wtask *task)
{
    hf_wf_cache *cache = &wf->worker->cache;
    hf_spin_lock(&cache->lock);
    hf_assert(wf->at_work == NULL); /* worker-K1 */
    wf->at_work = task;
    hf_spin_unlock(&cache->lock);
}

/* Locked. */
static void give_up(hf_wf_cache *cache, hf_wf *wf)
{
    hf_assert(!wf->is_given_up && wf->is_driven); /* worker-D1 */
    if (hf_node_is_linked(&wf->lru)) {
        take_out(cache, wf);
    }
    wf->is_given_up = true;
    wf->is_told = true; /* worker-K2 */
    hf_list_push_back(&cache->stuck, &wf->bucket);
}

bool hf_wf_cache_leave_step(hf_wf *wf, bool is_lost)
{
    hf_wf_cache *cache = &wf->worker->cache;
    hf_spin_lock(&cache->lock);
    bool is_ours = !wf->is_given_up;
    if (is_lost && is_ours) {
        give_up(cache, wf);
    }
    wf->at_work = NULL;
    hf_spin_unlock(&cache->lock);
    return is_ours;
}

bool hf_wf_cache_give_up(hf_worker *worker, int64_t before_ns, hf_arena *arena, hf_stuck_step *ret_step, hf_list *left)
{
    hf_wf_cache *cache = &worker->cache;
    bool is_found = false;
    hf_spin_lock(&cache->lock);
    HF_LIST_EACH(node, &cache->lru)
    {
        hf_wf *wf = HF_CONTAINER(node, hf_wf, lru);
        int64_t since = atomic_load(&wf->turn_ns);
        if (wf->at_work == NULL || since == 0 || since > before_ns) {
            continue;
        }
        *ret_step = (hf_stuck_step){
            .id = hf_arena_copy(arena, wf->id),
            .run_id = hf_arena_copy(arena, wf->run_id),
            .token = hf_arena_copy(arena, wf->at_work->task->task_token),
            .attempt = wf->at_work->task->attempt,
            .is_query = wf->at_work->task->query != NULL,
            .seat = wf->seat,
            .since_ns = since,
        };
        is_found = arena->status == HF_OK;
        if (is_found) {
            give_up(cache, wf);
            atomic_fetch_add(&worker->runs_count, 1); /* its own stays for as long as we have the lock */
            while (!hf_list_is_empty(&wf->tasks)) {
                hf_list_push_back(left, hf_list_pop_front(&wf->tasks));
                wf->posted--;
            }
        }
        break;
    }
    hf_spin_unlock(&cache->lock);
    return is_found;
}

/* While a run has no driver, it does not change, and giving it one needs the lock. */
void hf_wf_cache_look(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_insight *insight)
{
    hf_worker *worker = HF_CONTAINER(witness, hf_worker, witness);
    hf_wf_cache *cache = &worker->cache;
    hf_spin_lock(&cache->lock);
    const hf_wf *wf = hf_str_equal(namespace_, worker->namespace_) ? find(bucket_of(cache, run_id), run_id) : NULL;
    if (wf != NULL && !wf->is_driven) { /* worker-D1 */
        insight->is_known = true;
        HF_LIST_EACH(node, &wf->signal_waits)
        {
            const hf_wait *wait = HF_CONTAINER_CONST(node, hf_wait, node);
            const char *name = NULL;
            for (size_t i = 0; (name = hf_wf_awaited(wait, i)) != NULL; i++) {
                hf_insight_add(&insight->waits, hf_str_of(name));
            }
        }
        HF_LIST_EACH(node, &wf->signals)
        {
            const hf_wf_signal *signal = HF_CONTAINER_CONST(node, hf_wf_signal, node);
            hf_insight_add(&insight->unread, hf_str_of_len(signal->name, signal->name_len));
            if (insight->unread.count == HF_INSIGHT_NAMES_MAX) {
                break; /* enough: there may be thousands */
            }
        }
        insight->looks = !hf_list_is_empty(&wf->untils);
        HF_LIST_EACH(node, &wf->handlers)
        {
            const hf_wf_handler *handler = HF_CONTAINER_CONST(node, hf_wf_handler, node);
            hf_str name = handler->is_any ? HF_STR("any") : hf_str_of_len(handler->name, handler->name_len);
            if (handler->kind != HF_WF_ON_QUERY) {
                hf_insight_add(handler->kind == HF_WF_ON_SIGNAL ? &insight->signals : &insight->updates, name);
            }
        }
    }
    hf_spin_unlock(&cache->lock);
}

int hf_wf_cache_in_code(hf_worker *worker)
{
    hf_wf_cache *cache = &worker->cache;
    int count = 0;
    hf_spin_lock(&cache->lock);
    HF_LIST_EACH(node, &cache->lru)
    {
        count += atomic_load(&HF_CONTAINER(node, hf_wf, lru)->turn_ns) != 0;
    }
    HF_LIST_EACH(node, &cache->stuck)
    {
        count++;
    }
    hf_spin_unlock(&cache->lock);
    return count;
}

enum { REPORT_MAX = 16, REPORT_LEN = 200 };

void hf_wf_cache_report(hf_worker *worker, const char *event)
{
    hf_wf_cache *cache = &worker->cache;
    char names[REPORT_MAX][REPORT_LEN];
    size_t count = 0;
    hf_spin_lock(&cache->lock);
    HF_LIST_EACH(node, &cache->lru)
    {
        const hf_wf *wf = HF_CONTAINER(node, hf_wf, lru);
        if (wf->at_work != NULL && count < REPORT_MAX) {
            hf_fields_format(names[count++], REPORT_LEN, "workflow=%.40s run=%.40s", wf->id.data, wf->run_id.data);
        }
    }
    HF_LIST_EACH(node, &cache->stuck)
    {
        const hf_wf *wf = HF_CONTAINER(node, hf_wf, bucket);
        if (count < REPORT_MAX) {
            hf_fields_format(names[count++], REPORT_LEN, "workflow=%.40s run=%.40s", wf->id.data, wf->run_id.data);
        }
    }
    hf_spin_unlock(&cache->lock);
    for (size_t i = 0; i < count; i++) {
        hf_log(worker->rt, HF_LOG_ERROR, event, "%s", names[i]);
    }
}

void hf_wf_cache_remove(hf_wf *wf)
{
    hf_wf_cache *cache = &wf->worker->cache;
    hf_spin_lock(&cache->lock);
    if (hf_node_is_linked(&wf->lru)) {
        take_out(cache, wf);
    } else if (wf->is_given_up) {
        hf_list_remove(&wf->bucket);
    }
    hf_spin_unlock(&cache->lock);
}

bool hf_wf_cache_is_closed(hf_worker *worker)
{
    hf_spin_lock(&worker->cache.lock);
    bool is_closed = worker->cache.is_closed;
    hf_spin_unlock(&worker->cache.lock);
    return is_closed;
}

void hf_wf_cache_close(hf_worker *worker)
{
    hf_wf_cache *cache = &worker->cache;
    hf_wf_summons ended = {.idle = NULL};
    hf_spin_lock(&cache->lock);
    cache->is_closed = true;
    HF_LIST_EACH(node, &cache->lru)
    {
        end_if_idle(cache, HF_CONTAINER(node, hf_wf, lru), &ended);
    }
    hf_spin_unlock(&cache->lock);
    hf_wf_summon(worker, &ended);
}
