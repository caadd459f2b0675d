/* Lists and counts of workflows, namespaces and search attributes.
 *
 *     static bool show(void *arg, const hf_description *run)
 *     {
 *         printf("%s %s\n", run->id, hf_workflow_status_name(run->status));
 *         return true;
 *     }
 *
 *     hf_list(service, show, NULL, .query = "WorkflowType = 'charge' AND ExecutionStatus = 'Failed'", .limit = 20);
 *
 * A query is a condition over the attributes of runs, in Temporal's language:
 *
 *     = != < <= > >= IN (...) BETWEEN a AND b STARTS_WITH IS NULL, NOT, AND, OR, brackets; at the end ORDER BY name [DESC]
 *
 * Attributes that every run has are WorkflowId, RunId, WorkflowType, ExecutionStatus, TaskQueue, StartTime, ExecutionTime, CloseTime,
 * ExecutionDuration, HistoryLength, HistorySizeBytes, StateTransitionCount, ParentWorkflowId, ParentRunId, RootWorkflowId and
 * RootRunId. Others are added with hf_search_attribute_add; workflows get values of them by .search_attributes. A list sees
 * everything that was acknowledged before it was asked for. docs/guide/clients.md has more. */
#ifndef HOLDFAST_LIST_H
#define HOLDFAST_LIST_H

#include <holdfast/service.h>

typedef struct hf_list_options {
    size_t size;            /* set by the macro */
    const char *query;      /* at most 64 KiB; NULL = all runs */
    const char *namespace_; /* "default" */
    int64_t limit;          /* of hf_list: runs at most; 0 = no limit */
    bool
        current; /* of hf_list: only the current run of each id, oldest start first: the newest .limit of them, at most and by default
                               1,000; without ORDER BY */
} hf_list_options;

/* Runs by status. */
typedef struct hf_counts {
    int64_t total;
    int64_t by_status[16]; /* [HF_WORKFLOW_RUNNING] and so on */
} hf_counts;

typedef enum hf_search_attribute_type {
    HF_SEARCH_TEXT = 1, /* found by its words */
    HF_SEARCH_KEYWORD,
    HF_SEARCH_INT,
    HF_SEARCH_DOUBLE,
    HF_SEARCH_BOOL,
    HF_SEARCH_DATETIME,
    HF_SEARCH_KEYWORD_LIST
} hf_search_attribute_type;

typedef enum hf_namespace_state {
    HF_NAMESPACE_REGISTERED = 1,
    HF_NAMESPACE_DEPRECATED, /* it is not to be used for new things; everything in it works */
    HF_NAMESPACE_DELETED     /* its runs are being deleted; only clusters of Temporal still show such a namespace */
} hf_namespace_state;

/* A text of a namespace that tools find by its key. */
typedef struct hf_namespace_text {
    const char *key;
    const char *value;
} hf_namespace_text;

typedef struct hf_namespace_options {
    size_t size;                   /* set by the macro */
    const char *description;       /* for people; NULL = none */
    const char *owner;             /* e-mail address; NULL = none */
    hf_span retention;             /* how long runs are to stay after their end; 0 = for ever */
    const hf_namespace_text *data; /* ends with a NULL key; NULL = none. At most 64 keys */
} hf_namespace_options;

/* Options that are not set change nothing. */
typedef struct hf_namespace_update_options {
    size_t size;              /* set by the macro */
    const char *description;  /* NULL and "" = unchanged */
    const char *owner;        /* NULL and "" = unchanged */
    hf_span retention;        /* 0 = unchanged */
    bool keep_for_ever;       /* runs stay for ever; then .retention is 0 */
    hf_namespace_state state; /* 0 = unchanged; HF_NAMESPACE_REGISTERED takes hf_namespace_deprecate back */
    const hf_namespace_text
        *data; /* these keys get these values, others stay; ends with a NULL key; NULL = unchanged */
} hf_namespace_update_options;

typedef struct hf_search_attribute_options {
    size_t size;            /* set by the macro */
    const char *namespace_; /* "default" */
} hf_search_attribute_options;

/* A namespace. Texts are never NULL. */
typedef struct hf_namespace_info {
    const char *name;
    const char *id; /* a UUID, which tools of Temporal show */
    const char *description;
    const char *owner;
    hf_span retention; /* 0 = runs stay for ever */
    hf_namespace_state state;
    const hf_namespace_text *data; /* ends with a NULL key */
    size_t data_count;
} hf_namespace_info;

/* Called for each item, on the caller's thread or fiber. The item is valid until it returns. False ends the list. */
typedef bool hf_list_visit(void *arg, const hf_description *run);
typedef bool hf_namespace_list_visit(void *arg, const hf_namespace_info *info);
typedef bool hf_search_attribute_list_visit(void *arg, const char *name, hf_search_attribute_type type, bool is_custom);

HF_BEGIN_DECLS

/* Visits the runs that fit the query: newest first, or as ORDER BY says. An open run has no history_count yet, and its pending activities and
 * children are not told: hf_describe does. Runs that begin or end meanwhile may be there or not; a run that is there all the time is
 * visited once. Fails: HF_ERR_INVALID: the query is wrong, and the sentence names the column; HF_ERR_NOT_FOUND: there is no such
 * namespace. HF_ERR_LIMIT: 64 lists are under way; try again in a moment. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM,
 * HF_ERR_UNAVAILABLE: as for hf_start. */
HF_API HF_MUST_USE hf_status hf_list_with(hf_service *service, hf_list_visit *visit, void *arg,
                                          const hf_list_options *options);
/* Counts the runs that fit the query, by status. The query has no ORDER BY; GROUP BY ExecutionStatus at its end changes nothing. Fails: as hf_list. */
HF_API HF_MUST_USE hf_status hf_count_with(hf_service *service, hf_counts *ret_counts, const hf_list_options *options);

/* Registers a namespace: ids of different namespaces never meet. "default" is always there. Fails: HF_ERR_EXISTS: it is there; HF_ERR_INVALID: the
 * name is empty, longer than 1,000 bytes, or has a byte 0x1f; HF_ERR_LIMIT: there are 10,000. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_register_with(hf_service *service, const char *name,
                                                        const hf_namespace_options *options);
/* Tells what a namespace is. Free the answer with hf_namespace_info_free. Fails: HF_ERR_NOT_FOUND. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_describe(hf_service *service, const char *name, hf_namespace_info **ret_info);
HF_API void hf_namespace_info_free(hf_namespace_info *info); /* accepts NULL */
/* Changes what the options name, all of it or nothing. A shorter retention deletes runs in the background whose time is over then. Fails:
 * HF_ERR_NOT_FOUND; HF_ERR_INVALID: .retention is below 0, or .keep_for_ever is set beside it, .state is HF_NAMESPACE_DELETED or no state, the
 * texts together have more than 10,000 bytes, or there are more than 64 keys. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_update_with(hf_service *service, const char *name,
                                                      const hf_namespace_update_options *options);
/* How long its runs stay after their end; 0 = for ever. Runs whose time is over then go in the background. This is the short form of the one
 * update that programs often make; here 0 is a span like others, where an option of 0 has to mean "unchanged". Fails: HF_ERR_NOT_FOUND;
 * HF_ERR_INVALID: the span is below 0. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_keep(hf_service *service, const char *name, hf_span retention);
/* Marks it as one that is not to be used any more; everything in it works as before. hf_namespace_update takes it back. Fails: HF_ERR_NOT_FOUND.
 * The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_deprecate(hf_service *service, const char *name);
/* Deletes a namespace with all of its runs, in the background; nobody sees it from now on, and its name can be registered again when the last run
 * is gone. Fails: HF_ERR_NOT_FOUND; HF_ERR_NOT_READY: it is "default". The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_delete(hf_service *service, const char *name);
/* Visits all namespaces, oldest first. Fails: as hf_start. */
HF_API HF_MUST_USE hf_status hf_namespace_list(hf_service *service, hf_namespace_list_visit *visit, void *arg);

/* Adds a custom search attribute. Adding it again with the same type changes nothing. Fails: HF_ERR_EXISTS: it is there with another type, or
 * every run has it; HF_ERR_LIMIT: the namespace has 100; HF_ERR_NOT_FOUND: there is no such namespace; HF_ERR_INVALID. The rest as for
 * hf_start. */
HF_API HF_MUST_USE hf_status hf_search_attribute_add_with(hf_service *service, const char *name,
                                                          hf_search_attribute_type type,
                                                          const hf_search_attribute_options *options);
/* Runs keep their values; queries do not know the name any more. Fails: HF_ERR_NOT_FOUND. The rest as for hf_start. */
HF_API HF_MUST_USE hf_status hf_search_attribute_remove_with(hf_service *service, const char *name,
                                                             const hf_search_attribute_options *options);
/* Visits the custom attributes of a namespace by name, then those that every namespace has. Fails: as hf_start. */
HF_API HF_MUST_USE hf_status hf_search_attribute_list_with(hf_service *service, hf_search_attribute_list_visit *visit,
                                                           void *arg, const hf_search_attribute_options *options);
/* "KeywordList"; "Unknown" for a number that is not a type. Never NULL. */
HF_API const char *hf_search_attribute_type_name(hf_search_attribute_type type);

HF_END_DECLS

HF_AUTO_DEFINE(hf_namespace_info_free, hf_namespace_info)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_list(...) HF_LIST_(__VA_ARGS__, .size = sizeof(hf_list_options))
#define HF_LIST_(service, visit, arg, ...) \
    hf_list_with((service), (visit), (arg), &(hf_list_options){__VA_ARGS__})
#define hf_count(...) HF_COUNT_(__VA_ARGS__, .size = sizeof(hf_list_options))
#define HF_COUNT_(service, ret_counts, ...) \
    hf_count_with((service), (ret_counts), &(hf_list_options){__VA_ARGS__})
#define hf_namespace_register(...) HF_NAMESPACE_REGISTER_(__VA_ARGS__, .size = sizeof(hf_namespace_options))
#define HF_NAMESPACE_REGISTER_(service, name, ...) \
    hf_namespace_register_with((service), (name), &(hf_namespace_options){__VA_ARGS__})
#define hf_namespace_update(...) HF_NAMESPACE_UPDATE_(__VA_ARGS__, .size = sizeof(hf_namespace_update_options))
#define HF_NAMESPACE_UPDATE_(service, name, ...) \
    hf_namespace_update_with((service), (name), &(hf_namespace_update_options){__VA_ARGS__})
#define hf_search_attribute_add(...) HF_SEARCH_ATTRIBUTE_ADD_(__VA_ARGS__, .size = sizeof(hf_search_attribute_options))
#define HF_SEARCH_ATTRIBUTE_ADD_(service, name, type, ...) \
    hf_search_attribute_add_with((service), (name), (type), &(hf_search_attribute_options){__VA_ARGS__})
#define hf_search_attribute_remove(...) HF_SEARCH_ATTRIBUTE_REMOVE_(__VA_ARGS__, .size = sizeof(hf_search_attribute_options))
#define HF_SEARCH_ATTRIBUTE_REMOVE_(service, name, ...) \
    hf_search_attribute_remove_with((service), (name), &(hf_search_attribute_options){__VA_ARGS__})
#define hf_search_attribute_list(...) HF_SEARCH_ATTRIBUTE_LIST_(__VA_ARGS__, .size = sizeof(hf_search_attribute_options))
#define HF_SEARCH_ATTRIBUTE_LIST_(service, visit, arg, ...) \
    hf_search_attribute_list_with((service), (visit), (arg), &(hf_search_attribute_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_list(hf_service *service, hf_list_visit *visit, void *arg,
    hf_list_options options = hf_list_options())
{
    options.size = sizeof options;
    return hf_list_with(service, visit, arg, &options);
}
static inline HF_MUST_USE hf_status
hf_count(hf_service *service, hf_counts *ret_counts,
    hf_list_options options = hf_list_options())
{
    options.size = sizeof options;
    return hf_count_with(service, ret_counts, &options);
}
static inline HF_MUST_USE hf_status
hf_namespace_register(hf_service *service, const char *name,
    hf_namespace_options options = hf_namespace_options())
{
    options.size = sizeof options;
    return hf_namespace_register_with(service, name, &options);
}
static inline HF_MUST_USE hf_status
hf_namespace_update(hf_service *service, const char *name,
    hf_namespace_update_options options = hf_namespace_update_options())
{
    options.size = sizeof options;
    return hf_namespace_update_with(service, name, &options);
}
static inline HF_MUST_USE hf_status
hf_search_attribute_add(hf_service *service, const char *name, hf_search_attribute_type type,
    hf_search_attribute_options options = hf_search_attribute_options())
{
    options.size = sizeof options;
    return hf_search_attribute_add_with(service, name, type, &options);
}
static inline HF_MUST_USE hf_status
hf_search_attribute_remove(hf_service *service, const char *name,
    hf_search_attribute_options options = hf_search_attribute_options())
{
    options.size = sizeof options;
    return hf_search_attribute_remove_with(service, name, &options);
}
static inline HF_MUST_USE hf_status
hf_search_attribute_list(hf_service *service, hf_search_attribute_list_visit *visit, void *arg,
    hf_search_attribute_options options = hf_search_attribute_options())
{
    options.size = sizeof options;
    return hf_search_attribute_list_with(service, visit, arg, &options);
}
#endif
/* clang-format on */

#endif
