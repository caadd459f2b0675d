/* holdfast limits: all bounds that a program may meet, in one table. docs/guide/limits.md is what --markdown prints; a test compares them. */
#include "main/author.h"
#include "main/report.h"

#include "base/limits.h"
#include "history/limits.h"
#include "open/share.h"
#include "server/door.h"

#include <holdfast/chan.h>
#include <holdfast/depot.h>

#include <inttypes.h>
#include <stdio.h>

typedef enum unit { COUNT, BYTES, SECONDS } unit;

typedef struct limit {
    const char *group; /* NULL = as the one before */
    const char *what;
    int64_t value;
    unit unit;
    const char *then; /* what happens beyond it */
} limit;

static const limit LIMITS[] = {
    {"A run", "events of its history", HF_HISTORY_COUNT_MAX, COUNT,
     "the run is terminated; continue as new before (hf_workflow_info says when)"},
    {NULL, "bytes of its history", HF_HISTORY_LEN_MAX, BYTES, "the same"},
    {NULL, "events from which on it is told to continue as new", HF_HISTORY_SUGGEST_COUNT, COUNT, "only a hint"},
    {NULL, "bytes from which on it is told so", HF_HISTORY_SUGGEST_LEN, BYTES, "only a hint"},
    {NULL, "pending activities", HF_PENDING_MAX, COUNT, "the next one is refused: HF_ERR_LIMIT"},
    {NULL, "pending children", HF_PENDING_MAX, COUNT, "the same"},
    {NULL, "signals and cancels of other workflows that are under way", HF_PENDING_MAX, COUNT, "the same"},
    {NULL, "local activities and side effects that are under way", HF_LOCAL_ACTIVITIES_MAX, COUNT, "the same"},
    {NULL, "signals", HF_SIGNALS_MAX, COUNT, "hf_signal fails with HF_ERR_LIMIT"},
    {NULL, "signals and other events during one workflow task", HF_BUFFERED_COUNT_MAX, COUNT,
     "the task fails and is tried again"},
    {NULL, "bytes of these events", HF_BUFFERED_LEN_MAX, BYTES, "the same"},
    {NULL, "names of one hf_signal_wait_any", HF_SELECT_COUNT_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "updates that are under way", HF_UPDATES_UNDER_WAY_MAX, COUNT, "hf_update fails with HF_ERR_LIMIT"},
    {NULL, "bytes of their inputs", HF_UPDATES_UNDER_WAY_LEN_MAX, BYTES, "the same"},
    {NULL, "updates in all", HF_UPDATES_MAX, COUNT, "hf_update fails with HF_ERR_NOT_READY; continue as new before"},
    {NULL, "queries that wait for its workflow task", HF_QUERIES_WAITING_MAX, COUNT,
     "hf_query fails with HF_ERR_LIMIT"},
    {NULL, "request ids that are remembered (.request_id of signals)", HF_REQUEST_IDS_MAX, COUNT,
     "later ones are not remembered"},
    {NULL, "starts that were attached to it (HF_ID_CONFLICT_USE_EXISTING)", HF_ATTACHED_MAX, COUNT,
     "the next one is refused: HF_ERR_LIMIT"},
    {NULL, "records in the stream of a chain of runs", HF_STREAM_COUNT_MAX, COUNT,
     "hf_publish fails with HF_ERR_LIMIT"},
    {NULL, "bytes of these records", HF_STREAM_LEN_MAX, BYTES, "the same"},
    {"Sizes", "a payload: input, result, signal, details", HF_PAYLOAD_LEN_MAX, BYTES, "HF_ERR_TOO_BIG"},
    {NULL, "bytes that a codec may add to a payload", HF_CODEC_GROWTH_MAX, BYTES, "the call fails"},
    {NULL, "an id, a name, a type, a key", HF_ID_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {NULL, "the name of a task queue", HF_QUEUE_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {NULL, "the message of a failure", HF_FAILURE_MESSAGE_LEN_MAX, BYTES, "it is cut"},
    {NULL, "a failure and its causes", HF_CAUSE_DEPTH_MAX, COUNT, "the rest is cut"},
    {NULL, "keys of the memo, or search attributes, of a start", HF_ENTRIES_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "fields of one hf_memo_set or hf_search_set", HF_FIELDS_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "a memo, all keys and values", HF_PAYLOAD_LEN_MAX, BYTES, "HF_ERR_TOO_BIG"},
    {NULL, "search attributes of a run", HF_ATTRIBUTES_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "a value of a search attribute", HF_ATTRIBUTE_LEN_MAX, BYTES, "the same"},
    {NULL, "search attributes of a run, all keys and values", HF_ATTRIBUTES_LEN_MAX, BYTES, "the same"},
    {NULL, "fields of a header", HF_HEADER_COUNT_MAX, COUNT, "HF_ERR_TOO_BIG"},
    {NULL, "a header, all keys and values", HF_HEADER_LEN_MAX, BYTES, "HF_ERR_TOO_BIG"},
    {NULL, "payloads in one list", HF_PAYLOAD_LIST_MAX, COUNT, "HF_ERR_INVALID"},
    {"Time", "a workflow task, unless the start says otherwise", HF_TASK_TIMEOUT_DEFAULT_SECONDS, SECONDS,
     "it is handed out again"},
    {NULL, "a workflow task, at most", HF_TASK_TIMEOUT_MAX_SECONDS, SECONDS, "longer ones are cut to this"},
    {NULL, "a workflow task that waits for local activities", HF_KEEP_ALIVE_SECONDS, SECONDS, "it is handed out again"},
    {"A worker", "activities at once on threads", HF_POOL_THREADS_MAX, COUNT,
     "others wait; .on_fiber has no such bound"},
    {NULL, "stack of a workflow, in bytes (.stack_size: up to 262,144)", 65536, BYTES,
     "the process ends with a sentence; keep big arrays out"},
    {NULL, "local activities at once (.local_activities_max)", 100, COUNT, "others wait"},
    {NULL, "local activities at once, at most", HF_POOL_THREADS_MAX / 2, COUNT, "larger numbers are cut to this"},
    {NULL, "calls of an evicted fiber", HF_EVICTED_CALLS_MAX, COUNT, "the fiber is stopped where it is"},
    {"A file", "namespaces", HF_NAMESPACES_MAX, COUNT, "hf_namespace_register fails with HF_ERR_LIMIT"},
    {NULL, "custom search attributes of a namespace", HF_ATTRIBUTES_MAX, COUNT,
     "hf_search_attribute_add fails with HF_ERR_LIMIT"},
    {NULL, "lists and counts at once", HF_LISTERS_MAX, COUNT, "HF_ERR_LIMIT: try again in a moment"},
    {NULL, "runs on one page of a list", HF_LIST_PAGE_MAX, COUNT, "the rest is on the next page"},
    {NULL, "a filter of a list", HF_WHERE_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {NULL, "brackets and NOTs of a filter inside each other", HF_WHERE_DEPTH_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "values in a filter", HF_WHERE_VALUES_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "batches of a namespace that have not ended", HF_OPERATIONS_OPEN_MAX, COUNT, "HF_ERR_LIMIT"},
    {NULL, "runs in the list of a batch (a filter has no such bound)", HF_OPERATION_TARGETS_MAX, COUNT,
     "HF_ERR_INVALID"},
    {NULL, "resets at once", HF_RESETS_MAX, COUNT, "HF_ERR_LIMIT: try again in a moment"},
    {"An owner", "connections, of programs and tools that ask it", HF_SHARE_CONNECTIONS_MAX, COUNT,
     "the next one is refused: HF_ERR_LIMIT"},
    {NULL, "calls under way through it; a poll that waits is one", HF_SHARE_CALLS_MAX, COUNT, "HF_ERR_LIMIT"},
    {NULL, "a request", HF_SHARE_REQUEST_LEN_MAX, BYTES, "HF_ERR_TOO_BIG"},
    {"A server", "connections", HF_DOOR_LINKS_MAX, COUNT, "an idle one is closed, or the next one"},
    {NULL, "a request, inflated", HF_DOOR_MESSAGE_LEN_MAX, BYTES, "RESOURCE_EXHAUSTED"},
    {NULL, "calls of one connection under way", HF_DOOR_STREAMS_MAX, COUNT, "the stream is refused"},
    {NULL, "the same, before it has shown a valid key", HF_DOOR_STREAMS_UNKNOWN_MAX, COUNT, "the same"},
    {NULL, "calls of all connections under way", HF_DOOR_STREAMS_ALL_MAX, COUNT,
     "the same, but for a few of each connection"},
    {"A depot", "a namespace or a type", HF_DEPOT_NAME_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {NULL, "an id", HF_DEPOT_ID_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {"A runtime", "fiber threads", HF_THREADS_MAX, COUNT, "HF_ERR_INVALID"},
    {NULL, "a value of a channel", HF_CHAN_VALUE_LEN_MAX, BYTES, "HF_ERR_INVALID"},
    {NULL, "fiber-local variables of one fiber", HF_LOCALS_MAX, COUNT, "HF_ERR_LIMIT"},
};

static void format(char *text, size_t len, const limit *row)
{
    char digits[32];
    char grouped[48];
    int64_t value = row->value;
    const char *name = row->unit == SECONDS ? " s" : "";
    if (row->unit == BYTES && value >= 1 << 20 && value % (1 << 20) == 0) {
        value >>= 20;
        name = " MiB";
    } else if (row->unit == BYTES && value >= 1 << 10 && value % (1 << 10) == 0) {
        value >>= 10;
        name = " KiB";
    } else if (row->unit == BYTES) {
        name = " bytes";
    }
    int count = snprintf(digits, sizeof digits, "%" PRId64, value);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            grouped[at++] = ',';
        }
        grouped[at++] = digits[i];
    }
    grouped[at] = '\0';
    (void)snprintf(text, len, "%s%s", grouped, name);
}

static void put_markdown(void)
{
    (void)printf("<!-- Made by `holdfast limits --markdown`; do not edit. -->\n# Limits\n\n"
                 "`holdfast limits` prints the same table. Sizes are in bytes of the plain data, before a codec.\n\n"
                 "| of | what | limit | beyond it |\n|---|---|---|---|\n");
    const char *group = "";
    for (size_t i = 0; i < HF_COUNT_OF(LIMITS); i++) {
        char value[64];
        group = LIMITS[i].group != NULL ? LIMITS[i].group : group;
        format(value, sizeof value, &LIMITS[i]);
        (void)printf("| %s | %s | %s | %s |\n", group, LIMITS[i].what, value, LIMITS[i].then);
    }
    (void)printf("\nTimers of a run have no bound of their own. A timeout, sleep or retry pause in a workflow is 0 or "
                 "at least a millisecond.\n");
}

static int put_json(void)
{
    static const char *const UNITS[] = {[COUNT] = "count", [BYTES] = "bytes", [SECONDS] = "seconds"};
    const char *group = "";
    hf_report report;
    hf_report_init(&report);
    hf_json_array(&report.writer);
    for (size_t i = 0; i < HF_COUNT_OF(LIMITS); i++) {
        group = LIMITS[i].group != NULL ? LIMITS[i].group : group;
        hf_json_object(&report.writer);
        hf_json_key_string(&report.writer, "of", group);
        hf_json_key_string(&report.writer, "what", LIMITS[i].what);
        hf_json_key_int(&report.writer, "limit", LIMITS[i].value);
        hf_json_key_string(&report.writer, "unit", UNITS[LIMITS[i].unit]);
        hf_json_key_string(&report.writer, "beyond", LIMITS[i].then);
        hf_json_end(&report.writer);
    }
    hf_json_end(&report.writer);
    return hf_report_end(&report, true, HF_EXIT_FINE);
}

int hf_cmd_limits(int argc, char **argv)
{
    bool is_markdown = false;
    bool is_json = false;
    int words = 0;
    const hf_author_option options[] = {
        {"--markdown", &is_markdown, NULL, NULL}, {"--json", &is_json, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    if (!hf_author_parse(argc, argv, options, NULL, 0, &words)) {
        return HF_EXIT_USAGE;
    }
    if (is_markdown && is_json) {
        return hf_complain(HF_EXIT_USAGE, "give either --markdown or --json");
    }
    if (is_json) {
        return put_json();
    }
    if (is_markdown) {
        put_markdown();
        return HF_EXIT_FINE;
    }
    for (size_t i = 0; i < HF_COUNT_OF(LIMITS); i++) {
        char value[64];
        format(value, sizeof value, &LIMITS[i]);
        if (LIMITS[i].group != NULL) {
            (void)printf("%s%s\n", i > 0 ? "\n" : "", LIMITS[i].group);
        }
        (void)printf("  %-60s %12s   %s\n", LIMITS[i].what, value, LIMITS[i].then);
    }
    return HF_EXIT_FINE;
}
