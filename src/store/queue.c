/* A thread in front of a store.
 *
 * Submitters push under a small lock; the thread takes the whole list at once and executes it without the lock, so a burst
 * of requests is taken at once. The thread sleeps only when it found the list empty, and sets `asleep` under the same lock: the
 * next submitter clears `asleep` and rings, so one wake ends a sleep, however many requests are submitted meanwhile.
 *
 * store-Q1  `waiting`, `asleep` and `closing` are touched under the lock; the environment is not called while it is held.
 * store-Q2  the word is 0 exactly while the thread sleeps or is about to: a ring in between is not missed.
 * store-Q3  a submitter does not touch the queue after it has released the lock: its request may be done, and the queue closed. */
#include "base/latch.h"
#include "store/store.h"

enum { STACK_LEN = 1024 * 1024 }; /* SQLite asks for tens of kilobytes at worst */

struct hf_store_queue {
    hf_env *env;       /* where thread, word and memory come from */
    hf_store *store;   /* owned; executed by the thread only */
    hf_thread *thread; /* joined by close */
    hf_spin lock;      /* protects the next three */
    hf_list waiting;   /* requests in the order submitted */
    bool asleep;       /* the thread found nothing and waits for the word */
    bool closing;      /* ends when the list is empty */
    hf_word word;      /* 0 = sleep on, 1 = look */
};

/* Takes all waiting requests, or waits for some. False: there are none, and the queue is closing. */
static bool take(hf_store_queue *queue, hf_list *ret_taken)
{
    for (;;) {
        hf_spin_lock(&queue->lock);
        hf_list_move_all(&queue->waiting, ret_taken);
        bool closing = queue->closing;
        bool sleeps = hf_list_is_empty(ret_taken) && !closing;
        if (sleeps) {
            hf_assert(!queue->asleep); /* store-Q2: the submitter that rang has cleared it */
            queue->asleep = true;
            atomic_store(&queue->word, 0);
        }
        hf_spin_unlock(&queue->lock);
        if (!sleeps) {
            return !hf_list_is_empty(ret_taken);
        }
        while (atomic_load(&queue->word) == 0) {
            (void)queue->env->ops->word_wait(queue->env, &queue->word, 0, HF_INSTANT_NEVER);
        }
    }
}

static bool is_idle(hf_store_queue *queue, const hf_list *taken)
{
    hf_spin_lock(&queue->lock);
    bool is_idle = hf_list_is_empty(&queue->waiting) && !queue->closing;
    hf_spin_unlock(&queue->lock);
    return is_idle && hf_list_is_empty(taken);
}

static void queue_main(void *arg)
{
    hf_store_queue *queue = arg;
    hf_list taken;
    while (take(queue, &taken)) {
        for (hf_node *node = hf_list_pop_front(&taken); node != NULL; node = hf_list_pop_front(&taken)) {
            hf_store_request *request = HF_CONTAINER(node, hf_store_request, link);
            hf_assert(request->done != NULL);
            do {
                hf_store_execute(queue->store, request);
            } while (request->goes_on != NULL && is_idle(queue, &taken) && request->goes_on(request));
            request->done(request);
        }
    }
    hf_assert(queue->closing);
}

hf_status hf_store_queue_open(hf_op *op, hf_env *env, hf_store *store, hf_store_queue **ret_queue)
{
    hf_assert(store != NULL);
    hf_store_queue *queue = env->ops->allocate(env, sizeof *queue, _Alignof(hf_store_queue));
    if (queue == NULL) {
        hf_store_close(store);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the queue of the store");
    }
    memset(queue, 0, sizeof *queue);
    queue->env = env;
    queue->store = store;
    hf_list_init(&queue->waiting);
    atomic_init(&queue->word, 1);
    hf_status status = env->ops->thread_start(env, op, "hf-store", STACK_LEN, queue_main, queue, &queue->thread);
    if (status != HF_OK) {
        hf_store_close(store);
        env->ops->release(env, queue, sizeof *queue);
        return status;
    }
    *ret_queue = queue;
    return HF_OK;
}

/* Releases the lock, and rings if the thread sleeps. */
static void unlock_and_ring(hf_store_queue *queue)
{
    bool ring = queue->asleep;
    queue->asleep = false;
    hf_unlock_and_ring(queue->env, &queue->lock, &queue->word, ring); /* store-Q3 */
}

void hf_store_queue_submit(hf_store_queue *queue, hf_store_request *request)
{
    hf_assert(request->done != NULL);
    hf_env *env = queue->env;
    hf_spin_lock(&queue->lock);
    hf_list_push_back(&queue->waiting, &request->link);
    unlock_and_ring(queue);
    hf_point_let_go(env);
}

void hf_store_queue_close(hf_store_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    hf_spin_lock(&queue->lock);
    hf_assert(!queue->closing); /* a queue has one owner, which closes it once */
    queue->closing = true;
    unlock_and_ring(queue);
    hf_env *env = queue->env;
    env->ops->thread_join(env, queue->thread);
    hf_assert(hf_list_is_empty(&queue->waiting)); /* store-S3: all submitted requests were executed */
    hf_store_close(queue->store);
    env->ops->release(env, queue, sizeof *queue);
}
