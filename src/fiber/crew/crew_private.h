/* Crews, as the rest of the fiber layer uses them. A plain fiber pays one predictable jump per wake-up and at its
 * end. */
#ifndef HF_FIBER_CREW_PRIVATE_H
#define HF_FIBER_CREW_PRIVATE_H

#include "fiber/core.h"
#include "fiber/crew/crew.h"

/* An alarm that stands for a timer of a crew: its `pos` is the timer's address with this bit set, which is never set
 * in an address or in a place in a heap. */
#define HF_ALARM_OF_CREW ((size_t)1 << (sizeof(size_t) * 8 - 1))

/* A woken member goes to the end of its crew's list. */
void hf_crew_ready(hf_fiber *member);
/* Puts a message for the home of this scope into the crew's mailbox, if the scope is a crew's and the caller is one
 * of its fibers. False: it is not, and the caller posts the message to the home. */
bool hf_crew_post(const hf_scope *scope, hf_msg *msg);
/* The same for a caller that knows the crew: the message runs at the next switch, or when a turn begins. */
void hf_crew_mail(hf_crew *crew, hf_msg *msg);
/* Leaves a member that has parked, for the next member or the driver. Returns when the member is resumed. */
void hf_crew_leave(hf_fiber *self);
/* The branch of a member has ended, and its stack is a plain one again. Returns the fiber that runs next. */
hf_fiber *hf_crew_dismiss(hf_fiber *self);
/* On the scheduler's new thread: a member kept the old thread, and the driver's turn ends without that member. */
void hf_crew_lost(hf_fiber *member);
/* The lost member is back on its scheduler. */
void hf_crew_returned(hf_fiber *member);
/* Starts a forked branch: it gets a stack at once, so that one list holds all members in order. */
void hf_crew_start(hf_sched *sched, hf_branch *branch);

/* Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (the owner has as many timers as it may have). */
hf_status hf_crew_arm(hf_crew *crew, hf_alarm *alarm, hf_instant when);
/* Reports that limit to the member that wanted a timer. Returns HF_ERR_LIMIT. */
hf_status hf_crew_refuse_timer(hf_fiber *self, const char *verb);
void hf_crew_disarm(hf_alarm *alarm);
static inline hf_status hf_crew_or_sched_arm(hf_crew *crew, hf_sched *sched, hf_alarm *alarm, hf_instant when)
{
    return HF_LIKELY(crew == NULL) ? hf_alarm_arm(sched, alarm, when) : hf_crew_arm(crew, alarm, when);
}

/* Checks a span that a member gave to `verb`; `what` names it. Fails: HF_ERR_INVALID, reported to the member: see
 * hf_crew_set_strict. */
hf_status hf_crew_check_span(hf_fiber *self, const char *verb, const char *what, hf_span span);
/* Whether a wait until `deadline` ends at once. */
bool hf_crew_is_past(const hf_crew *crew, hf_instant deadline);
/* The value that hf_time_left returns for `ns`: in a strict crew a span that a member can wait for. */
int64_t hf_crew_time_left(const hf_crew *crew, int64_t ns);

/* See hf_crew_set_tells_first. Accepts NULL: not of a crew. */
bool hf_crew_tells_first(const hf_crew *crew);

/* The ops of the member's crew, if it knows signals, and its state; NULL = it has none. */
const hf_crew_ops *hf_crew_signals(const hf_fiber *self, void **ret_state);

hf_instant hf_crew_now(const hf_crew *crew);
void hf_crew_random(hf_crew *crew, void *bytes, size_t len);

/* The dispatcher onto which the scopes of members fork. */
hf_dispatcher *hf_crew_dispatcher(hf_crew *crew);
hf_crew *hf_crew_of_dispatcher(hf_dispatcher *dispatcher); /* NULL for pools and serial ones */
static inline hf_crew *hf_crew_of_scope(const hf_scope *scope)
{
    return HF_LIKELY(scope->on == NULL) ? NULL : hf_crew_of_dispatcher(scope->on);
}
/* Fails: HF_ERR_MISUSE (a member forks outside its own scopes, or another fiber inside them), HF_ERR_EVICTED. */
hf_status hf_crew_may_fork(const hf_fiber *self, const hf_branch *branch);
bool hf_crew_owns(const hf_crew *crew, const hf_fiber *self);
static inline bool hf_crew_lets_in(const hf_fiber *self, const hf_scope *scope)
{
    const hf_crew *crew = hf_crew_of_scope(scope);
    return HF_LIKELY(crew == NULL) || hf_crew_owns(crew, self);
}
bool hf_crew_is_evicted(const hf_scope *scope);
/* The scope that this one of a member is inside, shields left out. NULL: the crew itself. */
hf_scope *hf_crew_scope_around(const hf_scope *scope);
/* The scope that the calling member is in; NULL: none, or the caller is not a member. */
hf_scope *hf_crew_self_scope(void);
/* By a member: hf_scope_open_in. The caller closes it. */
void hf_crew_self_open(hf_scope *room, const char *name);
const char *hf_crew_name(const hf_crew *crew); /* id of its workflow */
bool hf_crew_is_first(const hf_fiber *member); /* whether the workflow function itself runs on it */

/* At most the last instant but one: the last one means "never". */
static inline hf_instant hf_instant_after(hf_instant now, hf_span span)
{
    int64_t ns = span.ns < 0 ? 0 : span.ns;
    return (hf_instant){ns > INT64_MAX - 1 - now.ns ? INT64_MAX - 1 : now.ns + ns};
}

#endif
