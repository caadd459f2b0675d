/* What a run waits for, as a sentence. Its description has activities and children. The signals that its code waits for, and those that it has
 * not taken, are known to the worker that has it in memory (service/witness.h). */
#include "trial/testenv.h"

#include "service/witness.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct telling {
    char *text;
    size_t len;
    size_t used;
    int count; /* things that it waits for, so far */
} telling;

static void say(telling *t, const char *format, ...) HF_PRINTF(2, 3);
static void say(telling *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int added = t->used < t->len ? vsnprintf(t->text + t->used, t->len - t->used, format, args) : 0;
    va_end(args);
    t->used = added > 0 && (size_t)added < t->len - t->used ? t->used + (size_t)added
                                                            : t->used + (added > 0 ? t->len - t->used : 0);
    hf_assert(t->used <= t->len);
}

/* One more thing that it waits for. */
static void next(telling *t)
{
    say(t, t->count++ == 0 ? " waits for " : ", ");
}

static void say_activity(telling *t, const hf_pending_activity *activity)
{
    next(t);
    bool is_away = activity->state == HF_PENDING_STARTED || activity->state == HF_PENDING_CANCEL_REQUESTED;
    say(t, "the activity '%s' (id %s, attempt %d%s)", activity->type, activity->id, activity->attempt,
        is_away ? ", a worker has it, or it is to be answered" : "");
    if (activity->last_failure[0] != '\0') {
        say(t, ", whose last attempt failed: %s", activity->last_failure);
    }
}

static void say_names(telling *t, const char *what, const hf_insight_names *names)
{
    for (int i = 0; i < names->count; i++) {
        say(t, "%s%s", i == 0 ? what : ", ", names->items[i]);
    }
}

static void say_condition(telling *t, const hf_insight *insight)
{
    if (insight->looks && insight->signals.count + insight->updates.count > 0) {
        next(t);
        say(t, "a condition, which its handlers can make true: ");
        say_names(t, "signals ", &insight->signals);
        say_names(t, insight->signals.count > 0 ? "; updates " : "updates ", &insight->updates);
    }
}

static void say_signals(telling *t, const hf_insight *insight)
{
    for (int i = 0; i < insight->waits.count; i++) {
        next(t);
        say(t, "the signal '%s'", insight->waits.items[i]);
    }
    say_condition(t, insight);
    if (t->count == 0) {
        say(t, insight->is_known ? " waits for nothing from outside: its fibers wait for each other"
                                 : " waits for a signal or an update; which one is known while the run is in memory: "
                                   "without .evict_always");
    }
    for (int i = 0; i < insight->unread.count; i++) {
        say(t, i == 0 ? "; signals that came and that it has not taken: '%s'" : ", '%s'", insight->unread.items[i]);
    }
}

void hf_waiting_tell(hf_service *service, hf_execution *execution, char *text, size_t len)
{
    telling t = {.text = text, .len = len};
    hf_description *shown = NULL;
    hf_assert(len > 0);
    text[0] = '\0';
    if (hf_describe(execution, &shown) != HF_OK) {
        say(&t, "the run cannot be described: %s", hf_error_text());
        return;
    }
    hf_insight insight;
    hf_service_look(service, HF_STR("default"), hf_str_of(shown->run_id), &insight);
    say(&t, "'%s' (%s)", shown->type, shown->id);
    for (size_t i = 0; i < shown->activity_count; i++) {
        say_activity(&t, &shown->activities[i]);
    }
    for (size_t i = 0; i < shown->child_count; i++) {
        next(&t);
        say(&t, "the child '%s' (%s)", shown->children[i].type, shown->children[i].id);
    }
    if (shown->task_attempt > 1) {
        next(&t);
        say(&t, "a workflow task that succeeds (attempt %d)", shown->task_attempt);
    }
    say_signals(&t, &insight);
    hf_description_free(shown);
}
