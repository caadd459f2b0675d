/* The bounds of workflows, each with its reason. Most are the defaults of a Temporal server, so that a program meets the same
 * limits on both. */
#ifndef HF_HISTORY_LIMITS_H
#define HF_HISTORY_LIMITS_H

#include "base/limits.h"

#define HF_FAILURE_DEPTH_MAX HF_CAUSE_DEPTH_MAX /* links of a failure: each is a message inside the one before */
#define HF_TASK_TIMEOUT_DEFAULT_SECONDS 10      /* of a workflow task, if the start does not say */
#define HF_KEEP_ALIVE_SECONDS 1800              /* of a workflow task, by asking for the next one without commands */
#define HF_TASK_TIMEOUT_MAX_SECONDS 120         /* the most that a start may ask for */
#define HF_ID_LEN_MAX 1000                      /* bytes of any id or name */
#define HF_QUEUE_LEN_MAX 963 /* bytes of a task queue's name: a worker polls one with 37 more for its cached runs */
#define HF_PAYLOAD_LEN_MAX (2u << 20) /* bytes of one payload, of a blob in a request */
#define HF_PAYLOAD_COPY_LEN_MAX \
    (1u << 30)                    /* bytes of a payload that is copied: a greater length is a mistake of the caller */
#define HF_CODEC_GROWTH_MAX 65536 /* bytes that a codec may add to a payload: keys, nonces, signatures */
#define HF_CODEC_FROM_LEN 1024    /* bytes from which on hf_codec_zstd compresses: less does not pay */
#define HF_CODED_LEN_MAX                        \
    (HF_PAYLOAD_LEN_MAX + HF_CODEC_GROWTH_MAX + \
     4096)                        /* bytes of one payload that a codec made, with the metadata of the plain one */
#define HF_PAYLOAD_LIST_MAX 1000  /* payloads that a program puts into one list: arguments of one call */
#define HF_METADATA_FREE_LEN 1024 /* bytes of metadata that do not count: the encodings and type names that SDKs add */
#define HF_ELEMENT_LEN_MIN 2      /* bytes that an empty payload counts: its tag and length in a list */
#define HF_HISTORY_LEN_MAX (50ll << 20)    /* bytes of a history: beyond them the run is terminated */
#define HF_HISTORY_COUNT_MAX 51200         /* events of a history: beyond them the run is terminated */
#define HF_HISTORY_SUGGEST_LEN (4ll << 20) /* bytes from which on the worker is told to continue as new */
#define HF_HISTORY_SUGGEST_COUNT 4096      /* events from which on it is told so */
#define HF_RETRY_COEFFICIENT_MAX 1000000   /* times the last pause: a greater factor is a mistake */
#define HF_PENDING_MAX 2000       /* pending activities of one run; also its children, and messages to other runs */
#define HF_BUFFERED_COUNT_MAX 100 /* events that wait until a started workflow task has ended */
#define HF_BUFFERED_LEN_MAX (2u << 20) /* their bytes */
#define HF_SIGNALS_MAX 10000           /* signals of one run */
#define HF_UPDATES_MAX 2000            /* accepted updates of one run */
#define HF_UPDATES_UNDER_WAY_MAX 10    /* updates of one run that are admitted, sent, or accepted and not completed */
#define HF_UPDATES_UNDER_WAY_LEN_MAX (20u << 20) /* bytes of their requests */
#define HF_QUERIES_WAITING_MAX 64                /* queries of one run that wait for its workflow task */
#define HF_LOCAL_ACTIVITIES_MAX 1000             /* local activities and side effects of one run that are under way */
#define HF_HEADER_COUNT_MAX 64                   /* fields of a header */
#define HF_HEADER_LEN_MAX (64 << 10)             /* bytes of their keys and values */
#define HF_FIELDS_MAX 100                        /* fields of one hf_memo_set or hf_search_set */
#define HF_ENTRIES_MAX 1000     /* of a memo, or search attributes, of a start: each key is compared with all others */
#define HF_NAMESPACES_MAX 10000 /* in one store */
#define HF_ATTRIBUTES_MAX 100   /* custom search attributes of a namespace, and keys of a run */
#define HF_ATTRIBUTE_LEN_MAX 2048        /* bytes of one value */
#define HF_ATTRIBUTES_LEN_MAX (40 << 10) /* bytes of all keys and values of a run */
#define HF_LIST_PAGE_MAX 1000            /* runs on a page of a list, and what a caller gets that does not say */
#define HF_LISTERS_MAX 64                /* lists and counts at a time; further ones are refused */
#define HF_OPERATIONS_OPEN_MAX 64        /* batches of one namespace that have not ended */
#define HF_OPERATION_TARGETS_MAX 1000    /* runs in a batch's list, as on Temporal */
#define HF_RESETS_MAX 64                 /* under way at the same time: each has a run and a portion in memory */
#define HF_REQUEST_IDS_MAX 10000         /* request ids of one run: as many as signals */
#define HF_ATTACHED_MAX 2000           /* request ids of later starts that are attached to one run: each is an event */
#define HF_FAIRNESS_KEY_LEN_MAX 64     /* bytes of the fairness key of a priority */
#define HF_FAILURE_KEPT_LEN_MAX 4096   /* bytes of the last failure in the state of an activity */
#define HF_HISTORY_PAGE_LEN (2u << 20) /* bytes of history in one answer: half of what gRPC clients take */
#define HF_HISTORY_PAGE_COUNT 65536    /* events of one page unless the caller wants fewer */
#define HF_STREAM_COUNT_MAX 100000     /* records in the stream of a chain */
#define HF_STREAM_LEN_MAX (50ll << 20) /* their bytes: as many as a history may have */
#define HF_STREAM_PAGE_LEN (1u << 20)  /* bytes of records in one answer, unless the caller wants fewer or more ... */
#define HF_STREAM_PAGE_LEN_MAX (2u << 20) /* ... but no more than this, behind the first record */
#define HF_STREAM_PAGE_COUNT 1000         /* records of one answer, unless the caller wants fewer */
#define HF_JOURNAL_LEN_MAX (32u << 20)    /* bytes that a crash may have to read */
#define HF_SUSPECT_FROM 3 /* processes that ended with a task in hand: from here on it is handed out last and alone */
#define HF_OPEN_LEN_MIN (64u << 10) /* bytes of changes that one commit may have however little memory there is */

#endif
