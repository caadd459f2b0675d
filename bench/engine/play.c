/* The script of the worker: what it does with each answer.
 *
 *     poll (workflow) -> read the news -> RespondWorkflowTaskCompleted -> back to the idle errands
 *     poll (activity) ----------------> RespondActivityTaskCompleted ---> back to the idle errands
 *     poll (query) -------------------> RespondQueryTaskCompleted ------> back to the idle errands
 *
 * A poll that was answered is replaced by another one before its task is looked at, so that the number under way is constant. */
#include "engine/play_private.h"

#include "bench.h"

#include <stdarg.h>

#define THREAD_STACK_LEN ((size_t)512 * 1024)
#define SECOND INT64_C(1000000000)
#define FAR_TIMER (30 * 86400 * SECOND)

/* ---- What is the same in all calls --------------------------------------------------------------------------------------- */

hf_pb_task_queue play_queue = {.name = HF_STR_INIT("bench"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
static hf_pb_task_queue sticky_queue = {
    .name = HF_STR_INIT("bench-sticky-4f1c"), .kind = HF_TASK_QUEUE_KIND_STICKY, .normal_name = HF_STR_INIT("bench")};
static hf_pb_sticky_execution_attributes sticky = {.worker_task_queue = &sticky_queue,
                                                   .schedule_to_start_timeout = {10, 0, true}};
static hf_pb_activity_type activity_type = {.name = HF_STR_INIT("charge")};
static hf_pb_payload_metadata_entry encoding = {.key = HF_STR_INIT("encoding"), .value = HF_STR_INIT("json/plain")};
static hf_pb_payload payload = {.metadata = {&encoding, 1}, .data = HF_STR_INIT("{\"item\": 7, \"cents\": 1999}")};
hf_pb_payloads play_payloads = {.payloads = {&payload, 1}};
static hf_pb_complete_workflow_execution_command_attributes completion = {.result = &play_payloads};
static hf_pb_command complete = {
    .command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
    .attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
    .complete_workflow_execution_command_attributes = &completion,
};

void play_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

static void *take_memory(size_t count, size_t len)
{
    void *ptr = calloc(count > 0 ? count : 1, len);
    if (ptr == NULL) {
        play_die("out of memory");
    }
    return ptr;
}

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

void play_times_add(play *p, play_times *times, int64_t ns)
{
    if (!atomic_load_explicit(&p->measuring, memory_order_relaxed)) {
        return;
    }
    if (times->count == times->capacity) {
        times->capacity = times->capacity > 0 ? times->capacity * 2 : 1 << 16;
        times->items = realloc(times->items, times->capacity * sizeof *times->items);
        if (times->items == NULL) {
            play_die("out of memory");
        }
    }
    int64_t us = ns > 0 ? ns / 1000 : 0;
    times->items[times->count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double play_quantile(play_times *times, double q)
{
    if (times->count == 0) {
        return 0;
    }
    qsort(times->items, times->count, sizeof *times->items, compare_times);
    return times->items[(size_t)(q * (double)(times->count - 1))];
}

/* ---- Errands ------------------------------------------------------------------------------------------------------------- */

#define ANSWER_LEN 900 /* bytes that most answers fit in */

errand *play_errand_new(play *p)
{
    errand *e = take_memory(1, sizeof *e);
    e->p = p;
    hf_arena_init(&e->arena, p->memory);
    void *room = hf_arena_take(&e->arena, ANSWER_LEN, 16); /* as a worker's, which has had answers before */
    if (room != NULL) {
        memset(room, 0, ANSWER_LEN);
    }
    hf_arena_reset(&e->arena);
    return e;
}

void play_errand_free(errand *e)
{
    hf_arena_deinit(&e->arena);
    free(e);
}

static errand *errand_take(play *p)
{
    hf_node *node = hf_list_pop_front(&p->idle);
    return node != NULL ? HF_CONTAINER(node, errand, link) : play_errand_new(p);
}

static void errand_give(errand *e)
{
    hf_arena_reset(&e->arena);
    hf_list_push_front(&e->p->idle, &e->link);
}

/* On a thread of the service. */
static void call_done(hf_call *call)
{
    errand *e = call->state;
    play *p = e->p;
    if (p->thread == NULL) {
        e->then(e);
        return;
    }
    hf_spin_lock(&p->lock);
    hf_list_push_back(&p->mail, &e->link);
    bool ring = p->asleep;
    p->asleep = false;
    if (ring) {
        atomic_store(&p->word, 1);
    }
    hf_spin_unlock(&p->lock);
    if (ring) {
        p->o.env->ops->word_wake(p->o.env, &p->word, 1);
    }
}

void play_errand_send(errand *e, hf_method method, const void *request, void (*then)(errand *e))
{
    hf_call_init(&e->call, method, request, &e->arena, call_done);
    e->call.state = e;
    e->call.in_process = true;
    e->call.run_ahead = method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE && !e->p->o.is_patient;
    e->then = then;
    hf_service_submit(e->p->o.service, &e->call);
}

/* False: it failed. Calls that end because the service is closed are no news. */
bool play_errand_is_good(errand *e)
{
    if (e->call.status == HF_OK) {
        return true;
    }
    if (e->call.status != HF_ERR_CLOSED && atomic_fetch_add(&e->p->failed, 1) == 0) {
        (void)snprintf(e->p->why, sizeof e->p->why, "%s: %.200s", hf_method_info_of(e->call.method)->name,
                       e->call.message);
    }
    return false;
}

static void thread_main(void *arg)
{
    play *p = arg;
    int64_t looks_until = 0;
    for (;;) {
        hf_spin_lock(&p->lock);
        hf_node *first = hf_list_pop_front(&p->mail);
        bool sleeps = first == NULL && !p->closing;
        if (sleeps && p->o.look_us > 0) {
            int64_t now = bench_wall_ns();
            looks_until = looks_until == 0 ? now + p->o.look_us * 1000 : looks_until;
            if (now < looks_until) {
                hf_spin_unlock(&p->lock);
                continue;
            }
        }
        looks_until = 0;
        if (sleeps) {
            p->asleep = true;
            atomic_store(&p->word, 0);
        }
        hf_spin_unlock(&p->lock);
        if (first != NULL) {
            errand *e = HF_CONTAINER(first, errand, link);
            e->then(e);
        } else if (sleeps) {
            (void)p->o.env->ops->word_wait(p->o.env, &p->word, 0, HF_INSTANT_NEVER);
        } else {
            return;
        }
    }
}

/* ---- The worker ---------------------------------------------------------------------------------------------------------- */

static void take_workflow_task(errand *e);
static void take_activity(errand *e);

static void poll_workflow(errand *e, bool is_sticky)
{
    e->is_sticky = is_sticky;
    e->request.poll_workflow = (hf_pb_poll_workflow_task_queue_request){
        .namespace = PLAY_NAMESPACE, .task_queue = is_sticky ? &sticky_queue : &play_queue, .identity = PLAY_IDENTITY};
    play_errand_send(e, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &e->request.poll_workflow, take_workflow_task);
}

static void poll_activity(errand *e)
{
    e->request.poll_activity = (hf_pb_poll_activity_task_queue_request){
        .namespace = PLAY_NAMESPACE, .task_queue = &play_queue, .identity = PLAY_IDENTITY};
    play_errand_send(e, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &e->request.poll_activity, take_activity);
}

static void note_timer(errand *e, play_run *run, hf_str bytes)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history_event event;
    if (hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &e->arena, &event) == HF_OK) {
        run->due = hf_pb_timestamp_time(event.event_time).ns + run->timeout;
    }
}

/* Counts what the workflow waits for. A history from the beginning is a run that is seen for the first time, or again. */
static void read_news(errand *e, play_run *run, hf_str history)
{
    hf_pb_raw event;
    while (history.len > 0 && hf_pb_next(&history, &event)) {
        hf_str rest = event.bytes;
        hf_pb_raw field = {0};
        while (rest.len > 0 && hf_pb_next(&rest, &field) && field.number != 3) {
            if (field.number == 1 && field.value == 1) {
                run->news = run->asked = 0;
            }
        }
        switch ((int)field.value) {
        case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        case HF_EVENT_TYPE_TIMER_FIRED:
        case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            run->news++;
            break;
        case HF_EVENT_TYPE_TIMER_STARTED:
            note_timer(e, run, event.bytes);
            break;
        default:
            break;
        }
    }
}

static hf_pb_command_list start_timer(errand *e, int64_t ns)
{
    e->timer = (hf_pb_start_timer_command_attributes){.timer_id = HF_STR("1"),
                                                      .start_to_fire_timeout = hf_pb_duration_of(hf_nanoseconds(ns))};
    e->command = (hf_pb_command){.command_type = HF_COMMAND_TYPE_START_TIMER,
                                 .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
                                 .start_timer_command_attributes = &e->timer};
    return (hf_pb_command_list){&e->command, 1};
}

static const hf_pb_command_list NOTHING = {NULL, 0};

/* The commands that the workflow's code would give. */
static hf_pb_command_list decide(errand *e, play_run *run, hf_str workflow_id)
{
    play *p = e->p;
    bool is_first = run->asked == 0;
    e->ends = false;
    switch (p->o.wait) {
    case PLAY_ACTIVITIES:
        if (run->news < run->asked) {
            return NOTHING;
        }
        if (run->asked < p->o.rounds * p->o.width) {
            run->asked += p->o.width;
            return (hf_pb_command_list){p->scheduling, (size_t)p->o.width};
        }
        break;
    case PLAY_SIGNAL:
        run->asked = 1;
        if (is_first && p->o.far_every > 0 && e->run % p->o.far_every == 0 && run->news == 0) {
            return start_timer(e, FAR_TIMER);
        }
        if (run->news == 0 || p->o.stays_open) {
            return NOTHING;
        }
        break;
    case PLAY_TIMER:
        if (is_first) {
            run->asked = 1;
            run->timeout = p->o.due_wall - p->o.env->ops->wall_now(p->o.env).ns;
            return start_timer(e, run->timeout > 0 ? run->timeout : 1);
        }
        if (run->news == 0) {
            return NOTHING;
        }
        play_times_add(p, &p->fired_times, p->o.env->ops->wall_now(p->o.env).ns - run->due);
        break;
    case PLAY_UPDATE:
        return NOTHING;
    case PLAY_CHILD:
    case PLAY_FAMILY:
        run->asked = 1;
        if (is_first) {
            return play_start_kids(e, workflow_id, 1);
        }
        if (run->news == 0 || p->o.wait == PLAY_FAMILY) {
            return NOTHING;
        }
        break;
    }
    e->ends = true;
    return (hf_pb_command_list){&complete, 1};
}

/* The same for workflows that are not of the kind of o.wait. */
static bool decide_other(errand *e, const hf_pb_poll_workflow_task_queue_response *task, hf_pb_command_list *commands)
{
    play *p = e->p;
    e->is_kid = hf_str_equal(task->workflow_type->name, PLAY_KID);
    if (e->is_kid) {
        e->ends = p->o.wait == PLAY_CHILD;
        *commands = e->ends ? (hf_pb_command_list){&complete, 1} : NOTHING;
        return true;
    }
    if (hf_str_equal(task->workflow_type->name, PLAY_CLAN)) {
        e->ends = false;
        *commands = task->previous_started_event_id == 0
                        ? play_start_kids(e, task->workflow_execution->workflow_id, p->o.children)
                        : NOTHING;
        return true;
    }
    return false;
}

static void workflow_task_answered(errand *e)
{
    play *p = e->p;
    bool is_late = p->o.may_be_late && e->call.status == HF_ERR_NOT_FOUND;
    if (!is_late && play_errand_is_good(e)) {
        if (e->ends && p->o.wait == PLAY_TIMER) {
            play_times_add(p, &p->ended_times, p->o.env->ops->wall_now(p->o.env).ns - play_run_of(p, e->run)->due);
        }
        atomic_fetch_add_explicit(e->ends ? &p->ended : &p->waiting, 1, memory_order_relaxed);
        if (e->is_kid) {
            atomic_fetch_add_explicit(&p->kids, 1, memory_order_relaxed);
        }
    }
    errand_give(e);
}

static void errand_answered(errand *e)
{
    (void)play_errand_is_good(e);
    errand_give(e);
}

static void take_workflow_task(errand *e)
{
    play *p = e->p;
    if (!play_errand_is_good(e)) {
        errand_give(e);
        return;
    }
    poll_workflow(errand_take(p), e->is_sticky);
    const hf_pb_poll_workflow_task_queue_response *task = e->call.response;
    if (task->task_token.len == 0) {
        errand_give(e);
        return;
    }
    hf_str id = task->workflow_execution->workflow_id; /* with a NUL behind it: it was copied by hf_arena_copy */
    e->run = id.len > PLAY_ID_DIGITS ? strtoll(id.data + PLAY_ID_DIGITS + 1, NULL, 10) : -1;
    if (e->run < 0 || (size_t)e->run >= p->o.runs_max) {
        play_die("a task of run %.*s, which is none of ours", HF_STR_ARGS(id));
    }
    if (task->query != NULL) {
        play_answer_query(e, task, errand_answered);
        return;
    }
    hf_pb_command_list commands;
    if (!decide_other(e, task, &commands)) {
        play_run *run = play_run_of(p, e->run);
        read_news(e, run, task->history);
        commands = decide(e, run, id);
    }
    e->request.workflow = (hf_pb_respond_workflow_task_completed_request){
        .namespace = PLAY_NAMESPACE,
        .identity = PLAY_IDENTITY,
        .task_token = task->task_token,
        .commands = commands,
        .sticky_attributes = &sticky,
    };
    if (task->messages.count > 0) {
        play_take_updates(e, task, &e->request.workflow);
    }
    play_errand_send(e, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &e->request.workflow, workflow_task_answered);
}

static void take_activity(errand *e)
{
    if (!play_errand_is_good(e)) {
        errand_give(e);
        return;
    }
    poll_activity(errand_take(e->p));
    const hf_pb_poll_activity_task_queue_response *task = e->call.response;
    if (task->task_token.len == 0) {
        errand_give(e);
        return;
    }
    e->request.activity = (hf_pb_respond_activity_task_completed_request){.namespace = PLAY_NAMESPACE,
                                                                          .identity = PLAY_IDENTITY,
                                                                          .task_token = task->task_token,
                                                                          .result = &play_payloads};
    play_errand_send(e, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &e->request.activity, errand_answered);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static void make_activities(play *p)
{
    size_t width = p->o.width > 0 ? (size_t)p->o.width : 1;
    p->scheduling = take_memory(width, sizeof *p->scheduling);
    for (size_t i = 0; i < width; i++) {
        hf_pb_schedule_activity_task_command_attributes *attrs = take_memory(1, sizeof *attrs);
        char *id = take_memory(16, 1);
        int len = snprintf(id, 16, "%zu", i + 1);
        *attrs = (hf_pb_schedule_activity_task_command_attributes){
            .activity_id = hf_str_of_len(id, (size_t)len),
            .activity_type = &activity_type,
            .task_queue = &play_queue,
            .input = &play_payloads,
            .start_to_close_timeout = {60, 0, true},
        };
        p->scheduling[i] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
            .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
            .schedule_activity_task_command_attributes = attrs,
        };
    }
}

void play_open(play *p, const play_options *options)
{
    memset(p, 0, sizeof *p);
    p->o = *options;
    p->memory = (hf_allocator){heap_allocate, heap_release, NULL};
    p->table_len = p->o.table_max > 0 && p->o.table_max < p->o.runs_max ? p->o.table_max : p->o.runs_max;
    p->runs = take_memory(p->table_len, sizeof *p->runs);
    hf_list_init(&p->mail);
    hf_list_init(&p->idle);
    p->sweep_only = -1;
    make_activities(p);
    hf_op op;
    hf_op_init(&op);
    if (!p->o.is_direct &&
        p->o.env->ops->thread_start(p->o.env, &op, "play", THREAD_STACK_LEN, thread_main, p, &p->thread) != HF_OK) {
        play_die("%s", op.message);
    }
    for (int i = 0; i < p->o.polls && p->o.wait == PLAY_TIMER; i++) { /* a worker that has had so many tasks before */
        errand_give(play_errand_new(p));
    }
    for (int i = 0; i < p->o.polls; i++) {
        poll_workflow(play_errand_new(p), false);
        poll_workflow(play_errand_new(p), true);
        if (p->o.wait == PLAY_ACTIVITIES) {
            poll_activity(play_errand_new(p));
        }
    }
}

void play_close(play *p)
{
    if (p->thread != NULL) {
        hf_spin_lock(&p->lock);
        p->closing = true;
        p->asleep = false;
        atomic_store(&p->word, 1);
        hf_spin_unlock(&p->lock);
        p->o.env->ops->word_wake(p->o.env, &p->word, 1);
        p->o.env->ops->thread_join(p->o.env, p->thread);
    }
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&p->idle)) != NULL) {
        play_errand_free(HF_CONTAINER(node, errand, link));
    }
    play_times *const times[] = {&p->result_times, &p->sweep_times, &p->fired_times, &p->ended_times};
    for (size_t i = 0; i < HF_COUNT_OF(times); i++) {
        free(times[i]->items);
    }
    for (int i = 0; i < (p->o.width > 0 ? p->o.width : 1); i++) {
        hf_pb_schedule_activity_task_command_attributes *attrs =
            p->scheduling[i].schedule_activity_task_command_attributes;
        free((void *)(uintptr_t)attrs->activity_id.data);
        free(attrs);
    }
    free(p->scheduling);
    free(p->runs);
}
