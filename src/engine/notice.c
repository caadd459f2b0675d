/* Warnings in the log about runs that come near a limit: events, bytes of history, signals.
 *
 * Beyond the limit a run is terminated, or gets no more signals, and its workflow code is not told. So there is a warning long before:
 * when an event makes a count pass a fifth of its limit. A count passes that once, so the warning comes once, also over
 * restarts, and nothing has to be stored for it. It is logged when the event is durable. If the process dies between the two, the
 * warning is lost. */
#include "engine/notice.h"

#include "base/fields.h"
#include "engine/batch.h"
#include "engine/core_private.h"
#include "run/machine.h"

#include <stdio.h>

enum { PART = 5, NAME_LEN_MAX = 200 };

typedef struct hf_notice {
    hf_node link; /* of batch->notices */
    hf_log_level level;
    const char *event;
    const char *fields; /* in the batch's arena */
} hf_notice;

static bool passes(int64_t before, int64_t after, int64_t limit)
{
    return after > limit / PART && before <= limit / PART;
}

void hf_notice_event(hf_core *core, hf_run *run, int64_t len_before, int64_t signals_before)
{
    const hf_core_limits *limits = &core->options.limits;
    if (HF_UNLIKELY(passes(run->event_count - 1, run->event_count, limits->history_count))) {
        HF_SLOT(run)->notices |= HF_BIT(HF_NOTICE_EVENTS);
    }
    if (HF_UNLIKELY(passes(len_before, run->history_len, limits->history_len))) {
        HF_SLOT(run)->notices |= HF_BIT(HF_NOTICE_BYTES);
    }
    if (HF_UNLIKELY(passes(signals_before, run->signal_count, limits->signals))) {
        HF_SLOT(run)->notices |= HF_BIT(HF_NOTICE_SIGNALS);
    }
}

void hf_notice_sentence(const hf_core *core, const hf_run *run, char text[HF_MESSAGE_LEN_MAX])
{
    const hf_core_limits *limits = &core->options.limits;
    int64_t count = HF_SLOT(run)->over_count;
    bool is_count = count > limits->history_count;
    (void)snprintf(text, HF_MESSAGE_LEN_MAX,
                   "the history of this run %s %lld %s, and one run may have %lld: let the workflow continue as "
                   "new before that (hf_continue_as_new)%s",
                   is_count && count > run->event_count ? "would have" : "has",
                   (long long)(is_count ? count : HF_SLOT(run)->over_len), is_count ? "events" : "bytes",
                   (long long)(is_count ? limits->history_count : limits->history_len),
                   is_count ? "" : ", or pass less data to its activities and signals");
}

/* ---- For the log ----------------------------------------------------------------------------------------------------- */

static int shown(const hf_owned *name)
{
    return name->len < NAME_LEN_MAX ? (int)name->len : NAME_LEN_MAX;
}

typedef struct hf_count {
    const char *unit; /* key of the field */
    int64_t is;
    int64_t limit;
} hf_count;

static void add(hf_core *core, hf_commit_batch *batch, const hf_run *run, hf_log_level level, const char *event,
                hf_count count, const char *message)
{
    char fields[2 * HF_MESSAGE_LEN_MAX];
    hf_notice *notice = HF_ARENA_NEW(&batch->writes.arena, hf_notice);
    hf_fields_format(fields, sizeof fields, "workflow=%.*s type=%.*s run=%.*s %s=%lld limit=%lld message=%s",
                     shown(&run->workflow_id), run->workflow_id.data, shown(&run->workflow_type),
                     run->workflow_type.data, shown(&run->run_id), run->run_id.data, count.unit, (long long)count.is,
                     (long long)count.limit, message);
    hf_str copy = hf_arena_copy(&batch->writes.arena, hf_str_of(fields));
    if (batch->writes.arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    *notice = (hf_notice){.level = level, .event = event, .fields = copy.data};
    hf_list_push_back(&batch->notices, &notice->link);
}

void hf_notice_gather(hf_core *core, hf_commit_batch *batch, hf_run *run)
{
    static const char NEAR[] = "workflow_nears_limit";
    static const char RETURN_BEFORE[] =
        "a run that reaches the limit is terminated: let the workflow continue as new before that "
        "(hf_continue_as_new)";
    static const char REFUSED[] =
        "a run that has had as many signals as the limit gets no more: let the workflow continue as new before "
        "that (hf_continue_as_new)";
    const hf_core_limits *limits = &core->options.limits;
    const hf_count events = {"events", run->event_count, limits->history_count};
    const hf_count bytes = {"history_bytes", run->history_len, limits->history_len};
    const hf_count signals = {"signals", run->signal_count, limits->signals};
    unsigned notices = core->options.log != NULL ? HF_SLOT(run)->notices : 0;
    HF_SLOT(run)->notices = 0;
    if ((notices & HF_BIT(HF_NOTICE_ENDED)) !=
        0) { /* the numbers of hf_notice_sentence, without the events that ended it */
        const hf_count over_events = {"events", HF_SLOT(run)->over_count, limits->history_count};
        const hf_count over_bytes = {"history_bytes", HF_SLOT(run)->over_len, limits->history_len};
        hf_assert(!hf_run_is_open(run) && HF_SLOT(run)->over_count > 0);
        bool is_count = over_events.is > over_events.limit;
        add(core, batch, run, HF_LOG_ERROR, "workflow_over_limit", is_count ? over_events : over_bytes,
            "the run was terminated");
        return;
    }
    if ((notices & HF_BIT(HF_NOTICE_EVENTS)) != 0) {
        add(core, batch, run, HF_LOG_WARN, NEAR, events, RETURN_BEFORE);
    }
    if ((notices & HF_BIT(HF_NOTICE_BYTES)) != 0) {
        add(core, batch, run, HF_LOG_WARN, NEAR, bytes, RETURN_BEFORE);
    }
    if ((notices & HF_BIT(HF_NOTICE_SIGNALS)) != 0) {
        add(core, batch, run, HF_LOG_WARN, NEAR, signals, REFUSED);
    }
}

void hf_notice_tell(hf_core *core, hf_commit_batch *batch)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&batch->notices)) != NULL) {
        const hf_notice *notice = HF_CONTAINER(node, hf_notice, link);
        hf_assert(core->options.log != NULL); /* else none was gathered */
        core->options.log(core->options.log_state, notice->level, notice->event, notice->fields);
    }
}
