/* What a run waits for, as a sentence. Its description has activities and children. The signals that its code waits for, and those that it has
 * not taken, are known to the worker that has it in memory (service/witness.h). */
#include "trial/testenv.h"

#include "client/errand.h"
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

/* What cannot be found out counts as polled. */
static bool is_polled(hf_service *service, hf_str name)
{
    hf_errand e;
    hf_pb_task_queue queue = {.name = name};
    hf_pb_describe_task_queue_request request = {.namespace = HF_STR("default"),
                                                 .task_queue = &queue,
                                                 .task_queue_type = HF_TASK_QUEUE_TYPE_ACTIVITY,
                                                 .report_pollers = true};
    hf_errand_begin(&e, "hf_testenv", HF_STR(""));
    bool is_polled = hf_errand_ask(&e, service, HF_METHOD_DESCRIBE_TASK_QUEUE, &request) != HF_OK ||
                     ((const hf_pb_describe_task_queue_response *)e.call.response)->pollers.count > 0;
    HF_IGNORE(hf_errand_end(&e));
    return is_polled;
}

/* Copies the name of the task queue if the activity waits for a worker there, and there is none. */
static bool take_unpolled(hf_service *service, const hf_pb_pending_activity_info *info, char *queue, size_t len)
{
    const hf_pb_activity_options *options = info->activity_options;
    if (info->state != HF_PENDING_ACTIVITY_STATE_SCHEDULED || info->last_started_time.has || options == NULL ||
        options->task_queue == NULL || is_polled(service, options->task_queue->name)) {
        return false;
    }
    (void)snprintf(queue, len, "%.*s", HF_STR_ARGS(options->task_queue->name));
    return true;
}

/* `id` of NULL: the first such activity. */
static bool find_unpolled(hf_service *service, hf_execution *execution, const char *id, char *queue, size_t len)
{
    hf_errand e;
    bool is_found = false;
    hf_pb_workflow_execution target = hf_execution_target(execution);
    hf_pb_describe_workflow_execution_request request = {.namespace = execution->namespace_, .execution = &target};
    hf_errand_begin(&e, "hf_testenv", execution->id);
    if (hf_errand_ask(&e, service, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request) == HF_OK) {
        const hf_pb_describe_workflow_execution_response *shown = e.call.response;
        for (size_t i = 0; i < shown->pending_activities.count && !is_found; i++) {
            const hf_pb_pending_activity_info *info = &shown->pending_activities.items[i];
            is_found = (id == NULL || hf_str_equal(info->activity_id, hf_str_of(id))) &&
                       take_unpolled(service, info, queue, len);
        }
    }
    HF_IGNORE(hf_errand_end(&e));
    return is_found;
}

bool hf_waiting_is_unpolled(hf_service *service, hf_execution *execution)
{
    char queue[8];
    return find_unpolled(service, execution, NULL, queue, sizeof queue);
}

static void say_activity(telling *t, hf_service *service, hf_execution *execution, const hf_pending_activity *activity)
{
    char queue[200];
    next(t);
    bool is_away = activity->state == HF_PENDING_STARTED || activity->state == HF_PENDING_CANCEL_REQUESTED;
    say(t, "the activity '%s' (id %s, attempt %d%s)", activity->type, activity->id, activity->attempt,
        is_away ? ", a worker has it, or it is to be answered" : "");
    if (!is_away && find_unpolled(service, execution, activity->id, queue, sizeof queue)) {
        say(t, ", whose task queue '%s' no worker polls: add a worker of it, or correct .task_queue", queue);
    }
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
        say_activity(&t, service, execution, &shown->activities[i]);
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
