/* Every bound of the library, with its reason. What users see of them is in the public headers. */
#ifndef HF_BASE_LIMITS_H
#define HF_BASE_LIMITS_H

#define HF_THREADS_MAX 256               /* fiber threads of a runtime: far above any sensible core count */
#define HF_POOL_THREADS_MAX 1024         /* threads of one pool: each costs a kernel stack */
#define HF_MESSAGE_LEN_MAX 480           /* bytes of a failure's sentence: a line on a screen, with room for names */
#define HF_TYPE_LEN_MAX 48               /* bytes of a failure's type word */
#define HF_CAUSE_DEPTH_MAX 8             /* links of a cause chain: more is noise */
#define HF_LOCALS_MAX 64                 /* fiber-local bindings of one fiber */
#define HF_STEAL_COUNT_MAX 64            /* jobs taken by one steal */
#define HF_EVENTS_PER_POLL 64            /* descriptors handled per look at the poller */
#define HF_BACKTRACE_DEPTH_MAX 32        /* frames of a stack in a dump */
#define HF_CHAN_VALUE_LEN_MAX (1u << 20) /* bytes of one channel value: larger things travel by pointer */
#define HF_CHAN_LEN_MAX (1u << 30)       /* bytes buffered in one channel */
#define HF_KEY_LEN_MAX 1000              /* bytes of a key: as long as an id may be */
#define HF_SCOPE_NAMES_MAX 1024          /* distinct scope names with metrics of their own; the rest share "other" */

#endif
