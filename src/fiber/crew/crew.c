/* Crews: see crew.h for their contract.
 *
 * A member is a fiber of kind HF_FIBER_MEMBER. The rest of the layer checks nothing but the kind:
 *
 *     wake-up         hf_fiber_ready  -> hf_crew_ready    to the end of crew->ready, not of the scheduler's list
 *     park            hf_sched_leave  -> hf_crew_leave    to the next member, else back into hf_crew_turn
 *     end of a branch runner_main     -> hf_crew_dismiss  the same; the stack is a plain one again
 *     fork            the scopes of members fork onto the crew's dispatcher, which leads to hf_crew_start
 *     deadline        hf_alarm with HF_ALARM_OF_CREW: a timer of the owner's
 *
 * A child without a fiber is in job.c.
 *
 * fiber-W1  Between hf_crew_turn's switch and its return only members of the crew run on the scheduler: the inbox,
 *           alarms and other fibers wait. A turn is as short as the code between two waits. A message of a member to
 *           a scope of its own crew does not go to the inbox, where it would be read too late and as one from
 *           outside: it goes to the crew's mailbox, which is read at each switch.
 * fiber-W2  crew->ready is changed on the scheduler's thread only, in an order that depends only on members and
 *           driver. If anything else wakes a member, the crew is "disturbed".
 * fiber-W3  The root scope is a shield, so members do not notice a cancel of the tree above. A run is canceled by
 *           its history, or evicted.
 * fiber-W4  A member that does not yield may lose its thread (watch_lost.c). The turn of its driver then ends on the
 *           new thread. Until the member is back on the scheduler, nobody touches what it may be using: members,
 *           timers, the ready list.
 * fiber-W5  An evicted member that does not return is stranded (strand.c). So an eviction ends, whatever the members
 *           do, unless one of them no longer calls the library. */
#include "fiber/crew/crew_struct.h"
#include "fiber/crew/job.h"
#include "fiber/crew/owned.h"
#include "fiber/crew/strand.h"
#include "fiber/sched/wait.h"

#include "base/limits.h"
#include "base/span.h"

#include <string.h>

enum { PAGE_LEN = 4096 };

typedef struct timer {
    hf_crew_timer pub;
    hf_crew *crew;
    hf_alarm *alarm; /* the alarm that it stands for */
    hf_node node;    /* in crew->timers */
} timer;

/* ---- Which member runs next -------------------------------------------------------------------------------------- */

static hf_fiber *pop_ready(hf_crew *crew)
{
    hf_fiber *member = crew->ready_head;
    if (member != NULL) {
        hf_assert(member->crew == crew); /* fiber-W2 */
        crew->ready_head = member->next;
        if (member->next == NULL) {
            crew->ready_tail = NULL;
        }
    }
    return member;
}

static void push_ready(hf_crew *crew, hf_fiber *member)
{
    hf_assert(member->kind == HF_FIBER_MEMBER && member->crew == crew); /* fiber-W2 */
    member->next = NULL;
    *(crew->ready_tail != NULL ? &crew->ready_tail->next : &crew->ready_head) = member;
    crew->ready_tail = member;
}

void hf_crew_ready(hf_fiber *member)
{
    hf_crew *crew = member->crew;
    if (!hf_crew_owns(crew, crew->sched->current) && !crew->is_disturbed) { /* fiber-W2 */
        crew->is_disturbed = true;
        hf_log(crew->sched->rt, HF_LOG_ERROR, "misuse", "message=woken_from_outside_its_workflow run=%s fiber=%s",
               crew->root->name, member->branch->name != NULL ? member->branch->name : "");
    }
    push_ready(crew, member);
}

bool hf_crew_post(const hf_scope *scope, hf_msg *msg)
{
    hf_crew *crew = hf_crew_of_scope(scope);
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    if (HF_LIKELY(crew == NULL || self == NULL || !hf_crew_owns(crew, self))) {
        return false;
    }
    hf_crew_mail(crew, msg);
    return true;
}

void hf_crew_mail(hf_crew *crew, hf_msg *msg)
{
    msg->next = NULL;
    *(crew->mail_tail != NULL ? &crew->mail_tail->next : &crew->mail_head) = msg;
    crew->mail_tail = msg;
}

/* By the driver, or a member that is about to leave. */
static void read_mail(hf_crew *crew)
{
    while (HF_UNLIKELY(crew->mail_head != NULL)) {
        hf_msg *msg = crew->mail_head;
        hf_assert(crew->mail_tail != NULL);
        crew->mail_head = msg->next;
        crew->mail_tail = msg->next != NULL ? crew->mail_tail : NULL;
        msg->run(crew->sched, msg);
    }
}

static hf_fiber *next_of(hf_crew *crew)
{
    hf_fiber *next = pop_ready(crew);
    return next != NULL ? next : crew->driver;
}

void hf_crew_leave(hf_fiber *self)
{
    hf_assert(self->crew->is_turning && self->sched->current == self); /* fiber-W1 */
    read_mail(self->crew);
    hf_fiber *next = next_of(self->crew);
    if (next != self) {
        hf_sched_switch(self->sched, self, next, false);
    }
}

hf_fiber *hf_crew_dismiss(hf_fiber *self)
{
    hf_crew *crew = self->crew;
    hf_assert(crew->is_turning && self->kind == HF_FIBER_MEMBER && self->branch == NULL); /* fiber-W1 */
    read_mail(crew);
    hf_list_remove(&self->members);
    self->crew = NULL;
    self->kind = HF_FIBER_PLAIN;
    self->is_evicted = false;
    self->is_reading = false;
    self->evicted_calls = 0;
    return next_of(crew);
}

bool hf_crew_is_ready(const hf_crew *crew)
{
    return crew->ready_head != NULL || crew->mail_head != NULL;
}

bool hf_crew_turn(hf_crew *crew)
{
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver && !crew->is_turning && !crew->is_lost);
    hf_assert(crew->root->is_shield); /* fiber-W3 */
    read_mail(crew);
    hf_fiber *member = pop_ready(crew);
    if (member != NULL) {
        crew->is_turning = true;
        hf_sched_switch(crew->sched, self, member, false);
        crew->is_turning = false;
    }
    bool is_lost = crew->is_lost;
    hf_assert(is_lost || crew->ready_head == NULL);
    hf_leave(self);
    return !is_lost;
}

/* ---- Lost members (fiber-W4) ------------------------------------------------------------------------------------- */

void hf_crew_lost(hf_fiber *member)
{
    hf_crew *crew = member->crew;
    hf_assert(crew->is_turning && !crew->is_lost); /* fiber-W4 */
    crew->is_lost = true;
    hf_sched_ready_push(crew->sched, crew->driver); /* it waits in hf_crew_turn */
}

void hf_crew_returned(hf_fiber *member)
{
    hf_crew *crew = member->crew;
    hf_wait *driver = crew->returning;
    hf_assert(!crew->is_returned); /* fiber-W4; the news of its loss may come after it */
    crew->returning = NULL;
    crew->is_returned = true;
    push_ready(crew, member);
    if (driver != NULL) {
        hf_wake(driver, HF_OK);
    }
}

static const hf_wait_kind RETURN = {"a workflow's fiber that does not yield", NULL};

static void await_return(hf_fiber *self, hf_crew *crew)
{
    if (crew->is_lost && !crew->is_returned) {
        hf_wait wait;
        hf_wait_init(&wait, self, &RETURN, crew, crew->root->name);
        crew->returning = &wait;
        (void)hf_park(self, &wait, HF_INSTANT_NEVER);
    }
    crew->is_lost = crew->is_returned = false;
}

/* ---- Forking ----------------------------------------------------------------------------------------------------- */

hf_dispatcher *hf_crew_dispatcher(hf_crew *crew)
{
    return &crew->on;
}

hf_crew *hf_crew_of_dispatcher(hf_dispatcher *dispatcher)
{
    return dispatcher->kind == HF_DISPATCH_CREW ? HF_CONTAINER(dispatcher, hf_crew, on) : NULL;
}

bool hf_crew_owns(const hf_crew *crew, const hf_fiber *self)
{
    return self->crew == crew || self == crew->driver;
}

bool hf_crew_is_evicted(const hf_scope *scope)
{
    const hf_crew *crew = hf_crew_of_scope(scope);
    return crew != NULL && crew->is_evicted;
}

hf_status hf_crew_may_fork(const hf_fiber *self, const hf_branch *branch)
{
    const hf_crew *crew = hf_crew_of_scope(branch->scope);
    if (crew == NULL || branch->on != &crew->on || !hf_crew_owns(crew, self)) {
        return HF_ERR_MISUSE;
    }
    return crew->is_evicted ? HF_ERR_EVICTED : HF_OK;
}

void hf_crew_start(hf_sched *sched, hf_branch *branch)
{
    hf_crew *crew = hf_crew_of_dispatcher(branch->on);
    hf_assert(crew != NULL && crew->sched == sched); /* fiber-W2 */
    if (hf_branch_is_job(branch)) {
        hf_crew_job_start(branch);
        return;
    }
    if (crew->is_evicted) { /* a delayed branch: it ends without having begun */
        branch->status = HF_ERR_EVICTED;
        hf_branch_drop(sched, branch);
        hf_branch_ended(sched, branch);
        return;
    }
    hf_fiber *member = hf_sched_start_branch(sched, branch);
    if (member == NULL) {
        return; /* no stack: the branch has ended, and its scope knows */
    }
    member->kind = HF_FIBER_MEMBER;
    member->crew = crew;
    hf_set_place(member, NULL, 0);
    hf_list_push_back(&crew->members, &member->members);
    push_ready(crew, member);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

hf_instant hf_crew_now(const hf_crew *crew)
{
    return crew->now;
}

void hf_crew_set_now(hf_crew *crew, hf_time now)
{
    if (now.ns > crew->now.ns) {
        crew->now.ns = now.ns;
    }
}

void hf_crew_set_strict(hf_crew *crew, bool is_strict)
{
    crew->is_strict = is_strict;
}

void hf_crew_set_tells_first(hf_crew *crew, bool tells_first)
{
    hf_assert(!crew->is_turning); /* fiber-W2 */
    crew->tells_first = tells_first;
}

bool hf_crew_tells_first(const hf_crew *crew)
{
    return crew != NULL && crew->tells_first;
}

void hf_crew_set_stack(hf_crew *crew, size_t stack_size)
{
    hf_assert(!crew->is_turning); /* fiber-W2: the driver sets it, between turns */
    crew->stack_class = hf_stack_class_of(stack_size != 0 ? stack_size : crew->on.rt->stack_size);
}

hf_status hf_crew_check_span(hf_fiber *self, const char *verb, const char *what, hf_span span)
{
    hf_op op;
    hf_op_init(&op);
    if (!self->crew->is_strict || hf_span_check(&op, verb, what, span, HF_MAY_BE_PAST) == HF_OK) {
        return HF_OK;
    }
    return hf_refuse_at(self, op.status, verb, "%s", op.message);
}

bool hf_crew_is_past(const hf_crew *crew, hf_instant deadline)
{
    return crew->is_strict && deadline.ns <= crew->now.ns;
}

int64_t hf_crew_time_left(const hf_crew *crew, int64_t ns)
{
    if (!crew->is_strict) {
        return ns > 0 ? ns : 0;
    }
    return ns > 0 && ns < HF_SPAN_NS_MIN ? HF_SPAN_NS_MIN : ns;
}

void hf_crew_set_seed(hf_crew *crew, uint64_t seed)
{
    crew->rng.state = seed;
}

void hf_crew_random(hf_crew *crew, void *bytes, size_t len)
{
    unsigned char *to = bytes;
    while (len > 0) {
        uint64_t word = hf_rng_next(&crew->rng);
        size_t piece = len < sizeof word ? len : sizeof word;
        memcpy(to, &word, piece);
        to += piece;
        len -= piece;
    }
}

static timer *timer_of(const hf_alarm *alarm)
{
    return (timer *)(uintptr_t)(alarm->pos & ~HF_ALARM_OF_CREW);
}

/* The alarm is not armed any more; the timer goes. */
static void free_timer(timer *t)
{
    hf_assert(timer_of(t->alarm) == t && hf_node_is_linked(&t->node));
    t->alarm->pos = 0;
    hf_list_remove(&t->node);
    hf_rt_free(t->crew->sched->rt, t, sizeof *t);
}

hf_status hf_crew_arm(hf_crew *crew, hf_alarm *alarm, hf_instant when)
{
    hf_assert(alarm->pos == 0 && alarm->fire != NULL);
    if (crew->is_evicted) {
        return HF_OK; /* nobody waits for it any more */
    }
    timer *t = hf_rt_alloc(crew->sched->rt, sizeof *t);
    if (t == NULL) {
        return HF_ERR_NOMEM;
    }
    t->crew = crew;
    t->alarm = alarm;
    int64_t left = when.ns > crew->now.ns ? when.ns - crew->now.ns : 0; /* a deadline may be older than the wait */
    hf_status status = crew->ops->timer_start(crew->state, &t->pub, hf_nanoseconds(left));
    if (status != HF_OK) {
        hf_rt_free(crew->sched->rt, t, sizeof *t);
        return status;
    }
    hf_list_push_back(&crew->timers, &t->node);
    alarm->pos = (size_t)(uintptr_t)t | HF_ALARM_OF_CREW;
    return HF_OK;
}

hf_status hf_crew_refuse_timer(hf_fiber *self, const char *verb)
{
    return hf_refuse_at(self, HF_ERR_LIMIT, verb,
                        "a workflow has at most %d timers at once: each sleep, and each wait with a timeout, has one",
                        HF_CREW_TIMERS_MAX);
}

void hf_crew_disarm(hf_alarm *alarm)
{
    hf_assert(alarm->pos >= HF_ALARM_OF_CREW);
    timer *t = timer_of(alarm);
    t->crew->ops->timer_cancel(t->crew->state, &t->pub);
    free_timer(t);
}

void hf_crew_fire(hf_crew *crew, hf_crew_timer *pub)
{
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver);
    timer *t = HF_CONTAINER(pub, timer, pub);
    hf_assert(t->crew == crew);
    hf_alarm *alarm = t->alarm;
    free_timer(t);
    alarm->fire(crew->sched, alarm);
    hf_leave(self);
}

/* ---- Opening, canceling, evicting, closing ----------------------------------------------------------------------- */

hf_status hf_crew_open(hf_op *op, hf_crew **ret_crew, const hf_crew_options *options)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL || self->kind != HF_FIBER_PLAIN) {
        return hf_fail(op, HF_ERR_MISUSE, "a crew is driven by a plain fiber");
    }
    hf_crew *crew = hf_rt_alloc(self->rt, sizeof *crew);
    hf_scope_options scope = {.size = sizeof scope, .name = options->name, .join = HF_JOIN_COLLECT};
    if (crew == NULL || hf_scope_open_on(self, self->rt, &crew->root, &scope, true) != HF_OK) { /* fiber-W3 */
        hf_rt_free(self->rt, crew, sizeof *crew);
        hf_leave(self);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a crew");
    }
    crew->on.kind = HF_DISPATCH_CREW;
    crew->on.rt = self->rt;
    crew->on.name = crew->root->name;
    crew->on.pool = &crew->on;
    crew->sched = self->sched;
    crew->driver = self;
    hf_list_init(&crew->members);
    hf_list_init(&crew->timers);
    hf_list_init(&crew->jobs);
    hf_list_init(&crew->owned);
    crew->ops = options->ops;
    crew->state = options->state;
    crew->rng.state = options->seed;
    crew->is_strict = true;
    crew->stack_class = self->sched->stack_class;
    crew->root->on = &crew->on;
    *ret_crew = crew;
    hf_leave(self);
    return HF_OK;
}

/* Without a driver nobody has the root scope open, and no cancel finds it. Pictures of the runtime find it in a list, and show
 * it where the driver was. */
void hf_crew_let_go(hf_crew *crew)
{
    hf_fiber *self = hf_enter(NULL);
    hf_scope *root = crew->root;
    hf_assert(self == crew->driver && self->scope == root && self->branch != NULL);
    hf_assert(!crew->is_turning && !crew->is_lost); /* fiber-W1, fiber-W4 */
    self->scope = root->outer;
    self->cx = root->parent_cx;
    root->outer = NULL;
    root->parent_cx = &self->branch->scope->cx;
    crew->driver = NULL;
    hf_spin_lock(&root->rt->roots_lock);
    root->owner = NULL;
    hf_list_push_back(&root->rt->parked, &root->roots);
    hf_spin_unlock(&root->rt->roots_lock);
    hf_leave(self);
}

void hf_crew_take_over(hf_crew *crew)
{
    hf_fiber *self = hf_enter(NULL);
    hf_scope *root = crew->root;
    hf_assert(self->kind == HF_FIBER_PLAIN && self->sched == crew->sched); /* fiber-F1, fiber-W2 */
    hf_assert(crew->driver == NULL && root->owner == NULL);
    hf_spin_lock(&root->rt->roots_lock);
    hf_list_remove(&root->roots);
    root->owner = self;
    hf_spin_unlock(&root->rt->roots_lock);
    root->outer = self->scope;
    root->parent_cx = self->cx;
    self->scope = root;
    self->cx = &root->cx;
    crew->driver = self;
    hf_leave(self);
}

int hf_crew_home(const hf_crew *crew)
{
    return crew->sched->index;
}

/* hf_fork refuses shields, because the owner of a shield should not wait for children. The root scope of a
 * crew is an exception: its driver waits for the members, turn by turn. */
hf_status hf_crew_fork(hf_op *op, hf_crew *crew, hf_body body, void *arg, const char *name)
{
    hf_assert(!crew->is_turning); /* fiber-W2: the driver forks, between turns */
    crew->root->is_shield = false;
    hf_status status = crew->first == NULL ? hf_fork(crew->root, body, arg, .name = name, .ret_branch = &crew->first)
                                           : hf_fork(crew->root, body, arg, .name = name);
    crew->root->is_shield = true;
    return status == HF_OK ? HF_OK : hf_fail(op, status, "%s", hf_error_text());
}

bool hf_crew_is_over(const hf_crew *crew)
{
    return crew->root->tally.running == 0;
}

/* A stack's pages stay once they were touched. A call of the library or of printf touches about a page below where the
 * fiber parks; deeper excursions are not seen. */
size_t hf_crew_bytes(const hf_crew *crew)
{
    size_t bytes = sizeof *crew + crew->job_count * sizeof(hf_branch);
    HF_LIST_EACH(node, &crew->members)
    {
        const hf_fiber *member = HF_CONTAINER(node, hf_fiber, members);
        size_t used = (size_t)(member->stack_hi - (const char *)member->context.sp);
        bytes += sizeof(hf_branch) + (used + 2 * PAGE_LEN - 1) / PAGE_LEN * PAGE_LEN;
    }
    return bytes;
}

void hf_crew_cancel(hf_crew *crew, const char *reason)
{
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver);
    if (crew->first != NULL && !hf_branch_is_done(crew->first)) {
        hf_branch_mark(crew->sched, crew->first, HF_CAUSE_EXPLICIT, reason, NULL);
    }
    hf_leave(self);
}

void hf_crew_cancel_member(hf_crew *crew, hf_branch *branch, const char *reason)
{
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver && branch->scope == crew->root);
    hf_branch_mark(crew->sched, branch, HF_CAUSE_EXPLICIT, reason, NULL);
    hf_leave(self);
}

hf_branch *hf_crew_self_branch(void)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    hf_assert(self != NULL && self->crew != NULL);
    return self->branch;
}

void hf_crew_self_reads(bool is_reading)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    hf_assert(self != NULL && self->crew != NULL);
    self->is_reading = is_reading;
}

const char *hf_crew_name(const hf_crew *crew)
{
    return crew->root->name;
}

bool hf_crew_is_first(const hf_fiber *member)
{
    return member->kind == HF_FIBER_MEMBER && member->branch != NULL && member->branch == member->crew->first;
}

bool hf_crew_is_disturbed(const hf_crew *crew)
{
    return crew->is_disturbed;
}

/* Wakes all members that can be woken. The others wait for members, in a join or for a lock, and follow. */
static void release_members(hf_crew *crew)
{
    hf_assert(!crew->is_evicted && !crew->is_turning);
    crew->is_evicted = true;
    HF_LIST_EACH(node, &crew->timers)
    {
        timer *t = HF_CONTAINER(node, timer, node);
        hf_alarm *alarm = t->alarm;
        free_timer(t);
        if (hf_alarm_is_delay(alarm)) { /* a branch that has not begun must end, too: its scope waits for it */
            alarm->fire(crew->sched, alarm);
        }
    }
    hf_assert(hf_list_is_empty(&crew->timers)); /* fiber-X4 */
    HF_LIST_EACH(node, &crew->members)
    {
        hf_fiber *member = HF_CONTAINER(node, hf_fiber, members);
        hf_wait *wait = member->wait;
        member->is_evicted = true;
        if (wait != NULL && wait->kind->abort != NULL && wait->kind->abort(wait)) {
            hf_wake(wait, HF_ERR_EVICTED);
        }
    }
    hf_crew_drop_jobs(crew); /* fibers that join them follow */
}

size_t hf_crew_evict(hf_crew *crew)
{
    size_t stranded = 0;
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver);
    await_return(self, crew);
    if (!crew->is_evicted) {
        release_members(crew);
    }
    bool is_over = false;
    while (!is_over) {
        hf_leave(self);
        bool is_lost = !hf_crew_turn(crew);
        self = hf_enter(NULL);
        if (is_lost) { /* once more, in its cleanup */
            await_return(self, crew);
        } else {
            is_over = hf_strand_rest(self, crew, &stranded);
        }
    }
    hf_leave(self);
    return stranded;
}

size_t hf_crew_close(hf_crew *crew)
{
    if (crew == NULL) {
        return 0;
    }
    size_t stranded = hf_crew_evict(crew);
    hf_fiber *self = hf_enter(NULL);
    hf_assert(self == crew->driver && self->scope == crew->root && hf_crew_is_over(crew));
    hf_assert(hf_list_is_empty(&crew->members) && hf_list_is_empty(&crew->timers)); /* fiber-W5 */
    hf_crew_drop_owned(crew);
    (void)hf_scope_close_on(self, crew->root);
    hf_rt_free(self->rt, crew, sizeof *crew);
    hf_leave(self);
    return stranded;
}

/* ---- Scopes of members ------------------------------------------------------------------------------------------- */

/* The innermost of these that is not a shield; else the scope that the fiber was forked into. */
static hf_scope *first_of(hf_scope *scope, const hf_fiber *fiber)
{
    while (scope != NULL && scope->is_shield) {
        scope = scope->outer;
    }
    hf_scope *forked = scope == NULL && fiber->branch != NULL ? fiber->branch->scope : NULL;
    return scope != NULL ? scope : forked != NULL && !forked->is_shield ? forked : NULL;
}

hf_scope *hf_crew_scope_around(const hf_scope *scope)
{
    hf_assert(hf_crew_of_scope(scope) != NULL && scope->owner != NULL);
    return first_of(scope->outer, scope->owner);
}

void hf_crew_self_open(hf_scope *room, const char *name)
{
    hf_fiber *self = hf_enter(NULL);
    hf_scope_open_in(self, room, name);
    hf_leave(self);
}

hf_scope *hf_crew_self_scope(void)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    return self != NULL && self->crew != NULL ? first_of(self->scope, self) : NULL;
}

/* ---- On a member ------------------------------------------------------------------------------------------------- */

const hf_crew_ops *hf_crew_signals(const hf_fiber *self, void **ret_state)
{
    const hf_crew *crew = self->crew;
    if (crew == NULL || crew->ops->signal_waits == NULL) {
        return NULL;
    }
    *ret_state = crew->state;
    return crew->ops;
}

void *hf_crew_self_state(const hf_crew_ops *ops)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    return self != NULL && self->crew != NULL && self->crew->ops == ops ? self->crew->state : NULL;
}

const char *hf_crew_self_place(int *ret_line)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    const char *file = NULL;
    *ret_line = 0;
    if (self != NULL && self->crew != NULL) {
        file = self->file;
        *ret_line = self->line;
        hf_set_place(self, NULL, 0);
    }
    return file;
}

bool hf_crew_self_is_evicted(void)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    return self != NULL && self->is_evicted;
}
