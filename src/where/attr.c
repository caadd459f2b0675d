/* Attributes that every store knows, their types, and the names of a status. */
#include "where/where.h"

#define ATTR(id, type, name)        \
    {                               \
        id, type, HF_STR_INIT(name) \
    }

static const hf_attr KNOWN[] = {
    ATTR(HF_ATTR_WORKFLOW_ID, HF_ATTR_KEYWORD, "WorkflowId"),
    ATTR(HF_ATTR_RUN_ID, HF_ATTR_KEYWORD, "RunId"),
    ATTR(HF_ATTR_WORKFLOW_TYPE, HF_ATTR_KEYWORD, "WorkflowType"),
    ATTR(HF_ATTR_EXECUTION_STATUS, HF_ATTR_STATUS, "ExecutionStatus"),
    ATTR(HF_ATTR_TASK_QUEUE, HF_ATTR_KEYWORD, "TaskQueue"),
    ATTR(HF_ATTR_START_TIME, HF_ATTR_DATETIME, "StartTime"),
    ATTR(HF_ATTR_EXECUTION_TIME, HF_ATTR_DATETIME, "ExecutionTime"),
    ATTR(HF_ATTR_CLOSE_TIME, HF_ATTR_DATETIME, "CloseTime"),
    ATTR(HF_ATTR_EXECUTION_DURATION, HF_ATTR_DURATION, "ExecutionDuration"),
    ATTR(HF_ATTR_HISTORY_LENGTH, HF_ATTR_INT, "HistoryLength"),
    ATTR(HF_ATTR_HISTORY_SIZE_BYTES, HF_ATTR_INT, "HistorySizeBytes"),
    ATTR(HF_ATTR_STATE_TRANSITION_COUNT, HF_ATTR_INT, "StateTransitionCount"),
    ATTR(HF_ATTR_PARENT_WORKFLOW_ID, HF_ATTR_KEYWORD, "ParentWorkflowId"),
    ATTR(HF_ATTR_PARENT_RUN_ID, HF_ATTR_KEYWORD, "ParentRunId"),
    ATTR(HF_ATTR_ROOT_WORKFLOW_ID, HF_ATTR_KEYWORD, "RootWorkflowId"),
    ATTR(HF_ATTR_ROOT_RUN_ID, HF_ATTR_KEYWORD, "RootRunId"),
    /* Predefined: workers and servers set these among a run's search attributes. */
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "TemporalChangeVersion"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "BinaryChecksums"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "BuildIds"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "BatcherNamespace"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "BatcherUser"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_DATETIME, "TemporalScheduledStartTime"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "TemporalScheduledById"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_BOOL, "TemporalSchedulePaused"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "TemporalNamespaceDivision"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "TemporalPauseInfo"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "TemporalReportedProblems"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "TemporalWorkerDeployment"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "TemporalWorkerDeploymentVersion"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD, "TemporalWorkflowVersioningBehavior"),
    ATTR(HF_ATTR_CUSTOM, HF_ATTR_KEYWORD_LIST, "TemporalUsedWorkerDeploymentVersions"),
};

const hf_attr *hf_attr_known_at(size_t n)
{
    hf_assert(n >= HF_ATTR_SYSTEM_COUNT || KNOWN[n].id == (hf_attr_id)n);
    return n < HF_COUNT_OF(KNOWN) ? &KNOWN[n] : NULL;
}

bool hf_attr_known(hf_str name, hf_attr *ret_attr)
{
    for (size_t i = 0; i < HF_COUNT_OF(KNOWN); i++) {
        if (hf_str_equal(KNOWN[i].name, name)) {
            *ret_attr = KNOWN[i];
            return true;
        }
    }
    return false;
}

/* ---- Types --------------------------------------------------------------------------------------------------------- */

static const char *const TYPES[] = {
    [HF_ATTR_NONE] = "Unspecified",       [HF_ATTR_TEXT] = "Text",
    [HF_ATTR_KEYWORD] = "Keyword",        [HF_ATTR_INT] = "Int",
    [HF_ATTR_DOUBLE] = "Double",          [HF_ATTR_BOOL] = "Bool",
    [HF_ATTR_DATETIME] = "Datetime",      [HF_ATTR_KEYWORD_LIST] = "KeywordList",
    [HF_ATTR_STATUS] = "ExecutionStatus", [HF_ATTR_DURATION] = "Duration",
};

const char *hf_attr_type_name(hf_attr_type type)
{
    hf_assert((size_t)type < HF_COUNT_OF(TYPES));
    return TYPES[type];
}

int32_t hf_attr_indexed_type(hf_attr_type type)
{
    return type == HF_ATTR_STATUS ? HF_ATTR_KEYWORD : type == HF_ATTR_DURATION ? HF_ATTR_INT : (int32_t)type;
}

static bool equals_ignoring_case(hf_str a, const char *b)
{
    if (a.len != strlen(b)) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char)a.data[i];
        unsigned char y = (unsigned char)b[i];
        x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 32) : x;
        y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 32) : y;
        if (x != y) {
            return false;
        }
    }
    return true;
}

hf_attr_type hf_attr_type_of_name(hf_str name)
{
    for (int type = HF_ATTR_TEXT; type <= HF_ATTR_TYPE_LAST; type++) {
        if (equals_ignoring_case(name, TYPES[type])) {
            return (hf_attr_type)type;
        }
    }
    return HF_ATTR_NONE;
}

/* ---- Status -------------------------------------------------------------------------------------------------------- */

/* By number, in the words of filters and in those of the enum. */
static const struct {
    const char *name;
    const char *long_name;
} STATUSES[] = {
    {"", ""},
    {"Running", "WORKFLOW_EXECUTION_STATUS_RUNNING"},
    {"Completed", "WORKFLOW_EXECUTION_STATUS_COMPLETED"},
    {"Failed", "WORKFLOW_EXECUTION_STATUS_FAILED"},
    {"Canceled", "WORKFLOW_EXECUTION_STATUS_CANCELED"},
    {"Terminated", "WORKFLOW_EXECUTION_STATUS_TERMINATED"},
    {"ContinuedAsNew", "WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW"},
    {"TimedOut", "WORKFLOW_EXECUTION_STATUS_TIMED_OUT"},
    {"Paused", "WORKFLOW_EXECUTION_STATUS_PAUSED"},
};

int32_t hf_status_of_run_name(hf_str name)
{
    for (size_t i = 1; i < HF_COUNT_OF(STATUSES); i++) {
        if (hf_str_equal(name, hf_str_of(STATUSES[i].name)) || hf_str_equal(name, hf_str_of(STATUSES[i].long_name))) {
            return (int32_t)i;
        }
    }
    return 0;
}

const char *hf_run_status_name(int32_t status)
{
    return status > 0 && (size_t)status < HF_COUNT_OF(STATUSES) ? STATUSES[status].name : "";
}
