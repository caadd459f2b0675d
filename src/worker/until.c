/* hf_wait_until: fibers that wait until an expression is true. The expression is evaluated on the waiting fiber itself, so a
 * condition that loops or crashes is handled like any other code of the workflow. The driver wakes one fiber after the
 * other, in the order in which they began to wait, each with a turn; it starts over until none has gone on
 * (activation.c).
 *
 * A bound is that of a scope around the wait, so that the whole wait has one timer. */
#include "worker/wf.h"

#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"

#include <string.h>

_Static_assert(sizeof(hf_wf_until) <= sizeof(hf_until) && _Alignof(hf_wf_until) <= _Alignof(hf_until),
               "hf_until has room for what lies in it");

static hf_wf_until *inside(hf_until *until)
{
    return (hf_wf_until *)(void *)until;
}

hf_status hf_until_begin(hf_until *until, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_until_begin);
    hf_wf_until *u = inside(until);
    *u = (hf_wf_until){.wf = NULL};
    {
        HF_VERB_ENTER(self, hf_until_begin, NULL);
        hf_wf *wf = hf_wf_self();
        if (wf == NULL) {
            HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                     "hf_wait_until can only be called in a workflow; elsewhere use hf_cond (sync.h)"));
        }
        hf_status status = hf_may_wait_for(self, "hf_wait_until", options);
        if (status != HF_OK) {
            HF_LEAVE(self, status);
        }
        u->wf = wf;
        u->number = ++wf->until_number;
        hf_leave(self);
    }
    u->is_past = options->timeout.ns < 0;
    u->file = options->file;
    u->line = options->line;
    if (options->timeout.ns > 0 && options->timeout.ns != INT64_MAX) {
        HF_TRY(hf_scope_open_with(&u->scope, &(hf_scope_options){.size = sizeof(hf_scope_options),
                                                                 .name = "hf_wait_until",
                                                                 .timeout = options->timeout,
                                                                 .file = options->file,
                                                                 .line = options->line}));
    }
    hf_crew_self_reads(true);
    return HF_OK;
}

/* The sentence names the place: the condition itself has no name. */
static hf_status is_over(const hf_wf_until *u)
{
    const char *file = u->file != NULL ? strrchr(u->file, '/') : NULL;
    file = file != NULL ? file + 1 : u->file;
    return file != NULL ? hf_raise(HF_ERR_TIMEOUT, "hf_wait_until at %s:%d: the condition has not become true in time",
                                   file, u->line)
                        : hf_raise(HF_ERR_TIMEOUT, "hf_wait_until: the condition has not become true in time");
}

static bool abort_until(hf_wait *wait)
{
    hf_wf_until *u = HF_CONTAINER(wait, hf_wf_until, wait);
    bool claimed = hf_node_is_linked(&u->node);
    if (claimed) {
        hf_list_remove(&u->node);
    }
    return claimed;
}

static const hf_wait_kind UNTIL = {"hf_wait_until", abort_until};

/* A fiber that looked and waits again keeps its place. */
static void enlist(hf_wf_until *u)
{
    hf_assert(!hf_node_is_linked(&u->node) && u->number > 0 && u->number <= u->wf->until_number);
    HF_LIST_EACH(node, &u->wf->untils)
    {
        if (HF_CONTAINER(node, hf_wf_until, node)->number > u->number) {
            hf_list_insert_before(node, &u->node);
            return;
        }
    }
    hf_list_push_back(&u->wf->untils, &u->node);
}

hf_status hf_until_next(hf_until *until)
{
    hf_wf_until *u = inside(until);
    if (u->wf == NULL || u->wf != hf_wf_self()) {
        return hf_raise(HF_ERR_MISUSE, "hf_until_next continues a wait that hf_until_begin has begun on this fiber");
    }
    hf_crew_self_reads(false);
    HF_VERB_ENTER(self, hf_until_next, NULL);
    hf_status status = u->is_past ? is_over(u) : hf_may_wait(self, "hf_wait_until");
    if (status == HF_OK) {
        hf_wait_init(&u->wait, self, &UNTIL, u, "");
        enlist(u);
        hf_set_place(self, u->file, u->line); /* for "__stack_trace" */
        status = hf_park(self, &u->wait, HF_INSTANT_NEVER);
        hf_set_place(self, NULL, 0);
    }
    self->is_reading = status == HF_OK;
    HF_LEAVE(self, status);
}

hf_status hf_until_end(hf_until *until, hf_status status)
{
    hf_wf_until *u = inside(until);
    if (u->wf == NULL) {
        return status; /* it did not begin */
    }
    hf_crew_self_reads(false);
    hf_assert(!hf_node_is_linked(&u->node)); /* it waits no more */
    if (u->scope != NULL) {
        hf_status joined = hf_join(u->scope);
        if (status == HF_ERR_CANCELED && joined == HF_ERR_TIMEOUT) {
            status = is_over(u);
        }
        HF_IGNORE(hf_scope_close(u->scope));
    }
    return status;
}

/* ---- For the driver ---------------------------------------------------------------------------------------------- */

bool hf_wf_wake_until(hf_wf *wf, uint64_t *after)
{
    HF_LIST_EACH(node, &wf->untils)
    {
        hf_wf_until *u = HF_CONTAINER(node, hf_wf_until, node);
        if (u->number > *after) {
            hf_assert(u->wf == wf);
            hf_fiber *self = hf_enter(NULL);
            *after = u->number;
            hf_list_remove(node);
            hf_wake(&u->wait, HF_OK);
            hf_leave(self);
            return true;
        }
    }
    return false;
}

bool hf_wf_until_waits(const hf_wf *wf, uint64_t number)
{
    HF_LIST_EACH(node, &wf->untils)
    {
        if (HF_CONTAINER_CONST(node, hf_wf_until, node)->number == number) {
            return true;
        }
    }
    return false;
}
