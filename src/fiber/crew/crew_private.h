/* What the rest of the fiber layer asks of crews. Plain fibers pay one predictable jump at a wake-up and at their end. */
#ifndef HF_FIBER_CREW_PRIVATE_H
#define HF_FIBER_CREW_PRIVATE_H

#include "fiber/core.h"
#include "fiber/crew/crew.h"

/* An alarm that stands for a timer of a crew: its `pos` is the timer's address with this bit, which no address and no
 * place in a heap has. */
#define HF_ALARM_OF_CREW ((size_t)1 << (sizeof(size_t) * 8 - 1))

/* A woken member goes to the end of its crew's list. */
void hf_crew_ready(hf_fiber *member);
/* A message to the home of this scope. True: it is a crew's, and who posts is one of its fibers: the crew has taken it. */
bool hf_crew_post(const hf_scope *scope, hf_msg *msg);
/* Leaves a member that has parked, for the next one or the driver. Returns when it is resumed. */
void hf_crew_leave(hf_fiber *self);
/* The branch of a member has ended: it is a plain stack again. Returns who runs next. */
hf_fiber *hf_crew_dismiss(hf_fiber *self);
/* On the scheduler's new thread: a member kept the old one, and the driver's turn is over without it. */
void hf_crew_lost(hf_fiber *member);
/* The lost member is on its scheduler again. */
void hf_crew_returned(hf_fiber *member);
/* A forked branch gets its stack at once: it will need one anyway, and this way one list knows the order. */
void hf_crew_start(hf_sched *sched, hf_branch *branch);

/* Fails: HF_ERR_NOMEM; HF_ERR_LIMIT: the owner has as many timers as it may have. */
hf_status hf_crew_arm(hf_crew *crew, hf_alarm *alarm, hf_instant when);
/* Says the latter to who wanted one. Returns HF_ERR_LIMIT. */
hf_status hf_crew_refuse_timer(hf_fiber *self, const char *verb);
void hf_crew_disarm(hf_alarm *alarm);
static inline hf_status hf_crew_or_sched_arm(hf_crew *crew, hf_sched *sched, hf_alarm *alarm, hf_instant when)
{
    return HF_LIKELY(crew == NULL) ? hf_alarm_arm(sched, alarm, when) : hf_crew_arm(crew, alarm, when);
}

/* A span that a member gave to `verb`; `what` names it. Fails: HF_ERR_INVALID, told to the member: see hf_crew_set_strict. */
hf_status hf_crew_check_span(hf_fiber *self, const char *verb, const char *what, hf_span span);
/* Whether a member that would wait until then need not begin. */
bool hf_crew_is_past(const hf_crew *crew, hf_instant deadline);
/* What hf_time_left says of so much time: in a strict crew a span that can be waited for. */
int64_t hf_crew_time_left(const hf_crew *crew, int64_t ns);

hf_instant hf_crew_now(const hf_crew *crew);
void hf_crew_random(hf_crew *crew, void *bytes, size_t len);

/* What the scopes of members fork onto. */
hf_dispatcher *hf_crew_dispatcher(hf_crew *crew);
hf_crew *hf_crew_of_dispatcher(hf_dispatcher *dispatcher); /* NULL for pools and serial ones */
static inline hf_crew *hf_crew_of_scope(const hf_scope *scope)
{
    return HF_LIKELY(scope->on == NULL) ? NULL : hf_crew_of_dispatcher(scope->on);
}
/* HF_OK; HF_ERR_MISUSE: a member outside its own scopes, or somebody else inside them; HF_ERR_EVICTED. */
hf_status hf_crew_may_fork(const hf_fiber *self, const hf_branch *branch);
bool hf_crew_owns(const hf_crew *crew, const hf_fiber *self);
static inline bool hf_crew_lets_in(const hf_fiber *self, const hf_scope *scope)
{
    const hf_crew *crew = hf_crew_of_scope(scope);
    return HF_LIKELY(crew == NULL) || hf_crew_owns(crew, self);
}
bool hf_crew_is_evicted(const hf_scope *scope);
const char *hf_crew_name(const hf_crew *crew); /* the id of its workflow */
bool hf_crew_is_first(const hf_fiber *member); /* the workflow function itself runs on it */

/* Never past the last instant but one: the last means "never". */
static inline hf_instant hf_instant_after(hf_instant now, hf_span span)
{
    int64_t ns = span.ns < 0 ? 0 : span.ns;
    return (hf_instant){ns > INT64_MAX - 1 - now.ns ? INT64_MAX - 1 : now.ns + ns};
}

#endif
