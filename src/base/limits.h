/* The bounds of fibers and of the layers below them, each with its reason. Those of workflows are in history/limits.h. */
#ifndef HF_BASE_LIMITS_H
#define HF_BASE_LIMITS_H

#define HF_THREADS_MAX 256               /* fiber threads of a runtime: far above any sensible core count */
#define HF_POOL_THREADS_MAX 1024         /* threads of one pool: each costs a kernel stack */
#define HF_POOL_ZOMBIES_MAX 128          /* threads of one pool beyond its limit, one for each of its zombies */
#define HF_ZOMBIES_LISTED_MAX 256        /* zombies of pools in one dump: more than a person reads */
#define HF_MESSAGE_LEN_MAX 480           /* bytes of a sentence of the library: a line on a screen, with names */
#define HF_TYPE_LEN_MAX 48               /* bytes of a type word of the library */
#define HF_FAILURE_MESSAGE_LEN_MAX 4096  /* bytes of a failure's message: a page; programs write them, too */
#define HF_FAILURE_TYPE_LEN_MAX 1000     /* bytes of a failure's type: as long as an id may be */
#define HF_FAILURE_STACK_LEN_MAX 16384   /* bytes of a failure's stack trace that a program is told */
#define HF_CHAIN_LEN_MAX 8192            /* bytes of the message with its causes: room for two whole ones */
#define HF_CAUSE_DEPTH_MAX 21            /* links of a cause chain: a failure and 20 causes, as Temporal keeps */
#define HF_LOCALS_MAX 64                 /* fiber-local bindings of one fiber */
#define HF_STEAL_COUNT_MAX 64            /* jobs taken by one steal */
#define HF_EVENTS_PER_POLL 64            /* descriptors handled per look at the poller */
#define HF_BACKTRACE_DEPTH_MAX 32        /* frames of a stack in a dump */
#define HF_CHAN_VALUE_LEN_MAX (1u << 20) /* bytes of one channel value: larger things travel by pointer */
#define HF_CHAN_LEN_MAX (1u << 30)       /* bytes buffered in one channel */
#define HF_KEY_LEN_MAX 1000              /* bytes of a key: as long as an id may be */
#define HF_SPAN_NS_MIN 1000000           /* ns of a durable bound or wait: less is probably a number without its unit */
#define HF_SCOPE_NAMES_MAX 1024          /* distinct scope names with metrics of their own; the rest share "other" */
#define HF_WHERE_LEN_MAX (64u << 10)     /* bytes of a filter of a list */
#define HF_WHERE_DEPTH_MAX 64            /* brackets and NOTs inside each other */
#define HF_WHERE_VALUES_MAX 2048         /* values in a filter */
#define HF_EVICTED_CALLS_MAX 1000        /* calls of an evicted fiber: cleanup makes a few, a loop makes any number */
#define HF_CREW_TIMERS_MAX 2000          /* timers that a workflow of an earlier version could have at once */
#define HF_STRANDED_PLACES_MAX 64        /* places in the code where such a loop was logged; more are only counted */

#endif
