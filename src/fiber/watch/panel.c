/* The list of panels. A reader pins the panel that it asks: the panel stays linked, and its object waits for the reader
 * before it goes. So the lock is not held while a panel writes. */
#include "fiber/watch/panel.h"

#include <stdio.h>

void hf_panel_add(hf_runtime *rt, hf_panel *panel)
{
    hf_assert(panel->kind != NULL && panel->name != NULL && panel->figures != NULL && panel->dump != NULL);
    hf_assert(!hf_node_is_linked(&panel->node) && panel->readers == 0);
    hf_spin_lock(&rt->panels_lock);
    hf_list_push_back(&rt->panels, &panel->node);
    hf_spin_unlock(&rt->panels_lock);
}

void hf_panel_remove(hf_runtime *rt, hf_panel *panel)
{
    hf_env *env = rt->env;
    for (;;) {
        uint32_t seen = atomic_load_explicit(&panel->gone, memory_order_acquire);
        hf_spin_lock(&rt->panels_lock);
        bool is_free = panel->readers == 0;
        panel->is_leaving = true;
        if (is_free && hf_node_is_linked(&panel->node)) {
            hf_list_remove(&panel->node);
        }
        hf_spin_unlock(&rt->panels_lock);
        if (is_free) {
            hf_assert(!hf_node_is_linked(&panel->node)); /* fiber-A1 */
            return;
        }
        (void)env->ops->word_wait(env, &panel->gone, seen, HF_INSTANT_NEVER);
    }
}

/* Under the lock: the first panel from `node` on that may be asked, pinned; NULL = none is left. */
static hf_panel *pin(hf_runtime *rt, hf_node *node)
{
    for (; node != &rt->panels.head; node = node->next) {
        hf_panel *panel = HF_CONTAINER(node, hf_panel, node);
        if (!panel->is_leaving) {
            panel->readers++;
            return panel;
        }
    }
    return NULL;
}

/* Lets go of a panel, and pins the next one. */
static hf_panel *next_of(hf_runtime *rt, hf_panel *panel)
{
    hf_env *env = rt->env;
    hf_word *word = &panel->gone;
    hf_spin_lock(&rt->panels_lock);
    hf_assert(panel->readers > 0 && hf_node_is_linked(&panel->node)); /* fiber-A1 */
    hf_panel *next = pin(rt, panel->node.next);
    panel->readers--;
    bool wakes = panel->is_leaving && panel->readers == 0;
    if (wakes) {
        atomic_fetch_add_explicit(word, 1, memory_order_release);
    }
    hf_spin_unlock(&rt->panels_lock); /* from here on the panel may be gone */
    if (wakes) {
        env->ops->word_wake(env, word, 1);
    }
    return next;
}

void hf_panels_each(hf_runtime *rt, void (*with)(void *arg, hf_panel *panel), void *arg)
{
    hf_spin_lock(&rt->panels_lock);
    hf_panel *panel = pin(rt, rt->panels.head.next);
    hf_spin_unlock(&rt->panels_lock);
    while (panel != NULL) {
        with(arg, panel);
        panel = next_of(rt, panel);
    }
}

/* ---- For hf_metrics ---------------------------------------------------------------------------------------------- */

typedef struct showing {
    hf_runtime *rt;
    hf_panel_shown *first;
    hf_panel_shown **last;
    bool is_whole;
} showing;

static void show(void *arg, hf_panel *panel)
{
    showing *all = arg;
    hf_panel_shown *one = hf_rt_alloc(all->rt, sizeof *one);
    if (one == NULL) {
        all->is_whole = false;
        return;
    }
    one->kind = panel->kind;
    (void)snprintf(one->name, sizeof one->name, "%s", panel->name);
    one->count = panel->figures(panel, one->figures);
    hf_assert(one->count <= HF_PANEL_FIGURES_MAX);
    *all->last = one;
    all->last = &one->next;
}

hf_panel_shown *hf_panels_show(hf_runtime *rt, bool *ret_is_whole)
{
    showing all = {.rt = rt, .is_whole = true};
    all.last = &all.first;
    hf_panels_each(rt, show, &all);
    *ret_is_whole = all.is_whole;
    return all.first;
}

void hf_panels_shown_free(hf_runtime *rt, hf_panel_shown *shown)
{
    while (shown != NULL) {
        hf_panel_shown *next = shown->next;
        hf_rt_free(rt, shown, sizeof *shown);
        shown = next;
    }
}
