/* The watchdog's listeners: workers, which answer for workflows that do not yield, give the slots of zombies to
 * others, and stop when the runtime takes no new work. */
#include "fiber/watch/watch_private.h"

void hf_watchdog_listen(hf_runtime *rt, hf_watchdog_listener *listener)
{
    hf_assert(listener->word != NULL);
    listener->node = (hf_node){NULL, NULL};
    hf_spin_lock(&rt->watch->listeners_lock);
    hf_list_push_back(&rt->watch->listeners, &listener->node);
    hf_spin_unlock(&rt->watch->listeners_lock);
}

void hf_watchdog_unlisten(hf_runtime *rt, hf_watchdog_listener *listener)
{
    hf_spin_lock(&rt->watch->listeners_lock);
    hf_assert(hf_node_is_linked(&listener->node));
    hf_list_remove(&listener->node);
    hf_spin_unlock(&rt->watch->listeners_lock);
}

void hf_watchdog_tell(hf_watchdog *watch)
{
    hf_env *env = watch->rt->env;
    hf_spin_lock(&watch->listeners_lock); /* held while they are woken: rare, and a listener may go afterwards */
    HF_LIST_EACH(node, &watch->listeners)
    {
        hf_word *word = HF_CONTAINER(node, hf_watchdog_listener, node)->word;
        atomic_fetch_add(word, 1);
        env->ops->word_wake(env, word, 1);
    }
    hf_spin_unlock(&watch->listeners_lock);
}

void hf_watchdog_set_counted(hf_watchdog *watch, int slot, bool is_counted)
{
    int first_lost = watch->rt->sched_count;
    hf_assert(slot >= 0 && slot < hf_watchdog_pool_first(&watch->policy));
    const hf_fiber *fiber = slot < first_lost ? watch->seats[slot].seen : watch->lost[slot - first_lost]->fiber;
    hf_spin_lock(&watch->posts_lock);
    hf_assert((watch->counted[slot] != NULL) != is_counted); /* fiber-D3 */
    watch->counted[slot] = is_counted ? fiber : NULL;
    hf_spin_unlock(&watch->posts_lock);
    if (is_counted) {
        hf_watchdog_tell(watch);
    }
}

bool hf_watchdog_is_zombie(hf_runtime *rt, const hf_fiber *fiber)
{
    hf_watchdog *watch = rt->watch;
    bool is_one = false;
    hf_spin_lock(&watch->posts_lock);
    for (int i = 0; i < rt->sched_count + HF_LOST_MAX && !is_one; i++) {
        is_one = watch->counted[i] == fiber;
    }
    hf_spin_unlock(&watch->posts_lock);
    return is_one;
}

uint64_t hf_watchdog_zombies(const hf_runtime *rt)
{
    return rt->watch == NULL ? 0 : atomic_load(&rt->watch->zombies);
}

uint64_t hf_watchdog_stuck(const hf_runtime *rt)
{
    return rt->watch == NULL ? 0 : atomic_load(&rt->watch->stuck);
}
