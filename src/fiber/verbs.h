/* The table of verbs, verbs.def, as the code enforces it: how a public verb begins.
 *
 * Each row becomes constants, so a check that a verb does not need costs nothing. The columns "workflow", "query", "forked"
 * and "hook" are enforced here, from the table alone. The answers on a plain fiber, in an activity and on a foreign
 * thread depend on the object that a verb acts on, so the verbs check them; tests/unit/fiber/verbs_test.c calls
 * every verb in every place. */
#ifndef HF_FIBER_VERBS_H
#define HF_FIBER_VERBS_H

#include "fiber/enter.h"

/* clang-format off */
#define HF_ANSWER_works 0
#define HF_ANSWER_blocks 0
#define HF_ANSWER_durable 0
#define HF_ANSWER_misuse 1
#define HF_WAITS_works 0
#define HF_WAITS_blocks 1
#define HF_WAITS_durable 1
#define HF_WAITS_misuse 0
#define HF_VERBS(headers, title)
#define HF_VERB(verb, fiber, workflow, handler, query, activity, foreign, forked, hook) \
    HF_REFUSED_IN_WORKFLOW_##verb = HF_ANSWER_##workflow,                               \
    HF_REFUSED_WHEN_FORKED_##verb = HF_ANSWER_##forked,                                 \
    HF_REFUSED_IN_HOOK_##verb = HF_ANSWER_##hook,                                       \
    HF_REFUSED_IN_QUERY_##verb = HF_ANSWER_##query,                                     \
    HF_WAITS_IN_##verb = HF_WAITS_##fiber | HF_WAITS_##workflow | HF_WAITS_##foreign,
enum {
#include "fiber/verbs.def"
};
#undef HF_VERB
#undef HF_VERBS
/* clang-format on */

/* A hook of a join runs on whatever fiber is at hand, inside the library. */
hf_status hf_refuse_in_hook(hf_fiber *self, const char *verb, bool may_wait);
/* A query, a validator or a condition looks at a workflow, and leaves it as it is. */
hf_status hf_refuse_in_query(hf_fiber *self, const char *verb);

/* HF_OK, or why the caller must not use the verb at all; also before hf_enter. */
#define HF_VERB_ALLOWED(verb) (HF_REFUSED_IN_WORKFLOW_##verb ? hf_not_in_workflow(#verb) : HF_OK)

/* Begins a verb that returns a status: declares `self`, inside the library from here on, or returns why not. */
#define HF_VERB_ENTER(self, verb, rt)                                                                             \
    HF_TRY(HF_VERB_ALLOWED(verb));                                                                                \
    hf_fiber *self = hf_enter(rt);                                                                                \
    _Static_assert(HF_REFUSED_WHEN_FORKED_##verb, "the table lets " #verb " work in a process that fork() made"); \
    if (HF_UNLIKELY((self) == NULL)) {                                                                            \
        return hf_forked();                                                                                       \
    }                                                                                                             \
    if ((HF_REFUSED_IN_HOOK_##verb || HF_REFUSED_IN_QUERY_##verb) && HF_UNLIKELY((self)->is_narrow != 0)) {       \
        if (HF_REFUSED_IN_HOOK_##verb && (self)->hook_depth != 0) {                                               \
            HF_LEAVE(self, hf_refuse_in_hook(self, #verb, HF_WAITS_IN_##verb));                                   \
        }                                                                                                         \
        if (HF_REFUSED_IN_QUERY_##verb && (self)->is_reading) {                                                   \
            HF_LEAVE(self, hf_refuse_in_query(self, #verb));                                                      \
        }                                                                                                         \
    }

#endif
