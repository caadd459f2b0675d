/* Every bound of the library, with its reason. What users see of them is in the public headers. */
#ifndef HF_BASE_LIMITS_H
#define HF_BASE_LIMITS_H

#define HF_THREADS_MAX 256               /* fiber threads of a runtime: far above any sensible core count */
#define HF_POOL_THREADS_MAX 1024         /* threads of one pool: each costs a kernel stack */
#define HF_POOL_ZOMBIES_MAX 128          /* threads of one pool beyond its limit, one for each of its zombies */
#define HF_ZOMBIES_LISTED_MAX 256        /* zombies of pools in one dump: what a reader can still look at */
#define HF_MESSAGE_LEN_MAX 480           /* bytes of a failure's sentence: a line on a screen, with room for names */
#define HF_CHAIN_LEN_MAX 2048            /* bytes of the sentence with its causes: a few of them whole */
#define HF_TYPE_LEN_MAX 48               /* bytes of a failure's type word */
#define HF_CAUSE_DEPTH_MAX 8             /* links of a cause chain: more is noise */
#define HF_LOCALS_MAX 64                 /* fiber-local bindings of one fiber */
#define HF_STEAL_COUNT_MAX 64            /* jobs taken by one steal */
#define HF_EVENTS_PER_POLL 64            /* descriptors handled per look at the poller */
#define HF_BACKTRACE_DEPTH_MAX 32        /* frames of a stack in a dump */
#define HF_CHAN_VALUE_LEN_MAX (1u << 20) /* bytes of one channel value: larger things travel by pointer */
#define HF_CHAN_LEN_MAX (1u << 30)       /* bytes buffered in one channel */
#define HF_KEY_LEN_MAX 1000              /* bytes of a key: as long as an id may be */
#define HF_SPAN_NS_MIN 1000000           /* ns of a bound or a wait in a history: less is a number without its unit */
#define HF_SCOPE_NAMES_MAX 1024          /* distinct scope names with metrics of their own; the rest share "other" */
#define HF_EVICTED_CALLS_MAX 1000        /* calls of an evicted fiber: cleanup makes a few, a loop makes any number */
#define HF_STRANDED_PLACES_MAX 64        /* places in the code where such a loop was logged; more are only counted */

/* What comes from outside, as Temporal's defaults have it. */
#define HF_FAILURE_DEPTH_MAX 20 /* causes of a failure: they are messages inside messages */
#define HF_ID_LEN_MAX 1000      /* bytes of any id or name */
#define HF_QUEUE_LEN_MAX 963    /* bytes of a task queue's name: a worker polls one with 37 more for its cached runs */
#define HF_PAYLOAD_LEN_MAX (2u << 20)      /* bytes of one payload, of a blob in a request */
#define HF_PAYLOAD_COPY_LEN_MAX (1u << 30) /* bytes of a payload that is copied: whoever says more does not know them */
#define HF_METADATA_FREE_LEN 1024 /* bytes of metadata that do not count: encodings and types, as SDKs say them */
#define HF_ELEMENT_LEN_MIN 2 /* bytes that a payload counts with at least: it takes so many to say that there is one */
#define HF_REQUEST_LEN_MAX (4u << 20)      /* bytes of a request */
#define HF_HISTORY_LEN_MAX (50ll << 20)    /* bytes of a history: the run is terminated */
#define HF_HISTORY_COUNT_MAX 51200         /* events of a history: the same */
#define HF_HISTORY_SUGGEST_LEN (4ll << 20) /* from here on the worker is told to continue as new */
#define HF_HISTORY_SUGGEST_COUNT 4096      /* the same */
#define HF_RETRY_COEFFICIENT_MAX 1000000   /* times the last pause: more is no policy */
#define HF_PENDING_MAX 2000                /* activities, timers and such of one run at once */
#define HF_BUFFERED_COUNT_MAX 100          /* events that wait for a started workflow task */
#define HF_BUFFERED_LEN_MAX (2u << 20)     /* their bytes */
#define HF_SIGNALS_MAX 10000               /* signals of one run */
#define HF_REQUEST_IDS_MAX 10000           /* request ids of one run: as many as signals */
#define HF_FAILURE_KEPT_LEN_MAX 4096       /* bytes of the last failure in the state of an activity */
#define HF_HISTORY_PAGE_LEN (2u << 20)     /* bytes of history in one answer: half of what gRPC clients take */
#define HF_HISTORY_PAGE_COUNT 65536        /* events of one page unless the caller wants fewer */
#define HF_JOURNAL_LEN_MAX (32u << 20)     /* bytes that a crash may have to read */
#define HF_SUSPECT_FROM 3 /* processes that ended with a task in hand: from here on it is handed out last and alone */
#define HF_OPEN_LEN_MIN (64u << 10) /* bytes of changes that one commit may have however little memory there is */

#endif
