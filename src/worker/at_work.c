#include "worker/at_work.h"

#include "worker/activity_private.h"
#include "worker/wf.h"

#include "fiber/core.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 5 };

int hf_worker_tell_busy(hf_worker *worker, char *text, size_t len)
{
    int count = 0;
    size_t used = 0;
    hf_assert(len > 0);
    text[0] = '\0';
    hf_spin_lock(&worker->busy_lock);
    HF_LIST_EACH(node, &worker->busy)
    {
        const hf_activity_work *act = HF_CONTAINER(node, hf_activity_work, busy);
        if (count++ < SHOWN_MAX && used < len) {
            int added = snprintf(text + used, len - used, "%s'%.60s' of '%.60s'", used > 0 ? ", " : "", act->facts.name,
                                 act->facts.workflow_id);
            used += added > 0 ? (size_t)added : 0;
        }
    }
    hf_spin_unlock(&worker->busy_lock);
    if (count > SHOWN_MAX && used < len) {
        (void)snprintf(text + used, len - used, ", ...");
    }
    return count;
}

/* ---- Where a signal was caught: no call of libc that may lock or allocate ----------------------------------------------------- */

typedef struct telling {
    char *text;
    size_t len;
    size_t used;
} telling;

static void say_len(telling *t, const char *text, size_t len)
{
    for (size_t i = 0; i < len && t->used + 1 < t->len; i++) {
        bool is_plain = text[i] >= ' ' && text[i] != 0x7f; /* names are the user's, and end up on a terminal */
        t->text[t->used++] = (char)(is_plain ? text[i] : '?');
    }
    t->text[t->used] = '\0';
}

static void say(telling *t, const char *text)
{
    say_len(t, text, text != NULL ? strlen(text) : 0);
}

static void say_number(telling *t, int number)
{
    char digits[12];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 && at > 0);
    say_len(t, digits + at, sizeof digits - at);
}

static const hf_activity_work *activity_of(const hf_fiber *self)
{
    for (const hf_binding *at = self->locals; at != NULL; at = at->outer) {
        if (at->key == &hf_activity_local) {
            return at->value;
        }
    }
    return NULL;
}

void hf_tell_at_work(char *text, size_t len)
{
    telling t = {.text = text, .len = len};
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    hf_assert(len > 0);
    text[0] = '\0';
    const hf_wf *wf = hf_wf_self();
    const hf_activity_work *act = self != NULL && wf == NULL ? activity_of(self) : NULL;
    if (act != NULL) {
        say(&t, "activity '");
        say(&t, act->facts.name);
        say(&t, "', attempt ");
        say_number(&t, act->facts.attempt > 0 ? act->facts.attempt : 0);
        say(&t, ", of workflow '");
        say(&t, act->facts.workflow_id);
        say(&t, "'");
    } else if (wf != NULL) {
        say(&t, "workflow '");
        say_len(&t, wf->entry->name.data, wf->entry->name.len);
        say(&t, "' ('");
        say_len(&t, wf->id.data, wf->id.len);
        say(&t, "')");
    }
}
