/* Probes: situations that a campaign must have met. The simulator adds up the counts and fails when one stays zero. */
#ifndef HF_ENGINE_PROBE_H
#define HF_ENGINE_PROBE_H

/*    name, what happened */
#define HF_PROBE_MAP(X)                                                                    \
    X(HF_PROBE_START_DEDUPED, "a start with a known request id was answered with its run") \
    X(HF_PROBE_START_REFUSED, "a start met an open run of the same id")                    \
    X(HF_PROBE_START_USE_EXISTING, "a start was answered with the run that is open")       \
    X(HF_PROBE_START_TERMINATED, "a start terminated the run that was open")               \
    X(HF_PROBE_START_REUSE_REFUSED, "a start met a closed run and its policy refused")     \
    X(HF_PROBE_SIGNAL_DEDUPED, "a signal with a known request id changed nothing")         \
    X(HF_PROBE_SIGNAL_BUFFERED, "a signal came while a workflow task was started")         \
    X(HF_PROBE_CANCEL_TWICE, "a cancel request found one already there")                   \
    X(HF_PROBE_UNHANDLED_COMMAND, "a closing command met buffered events")                 \
    X(HF_PROBE_BAD_COMMAND, "a command with bad attributes failed its workflow task")      \
    X(HF_PROBE_WFT_TRANSIENT, "a later attempt of a workflow task was started")            \
    X(HF_PROBE_WFT_TRANSIENT_DONE, "a transient workflow task was completed")              \
    X(HF_PROBE_WFT_TRANSIENT_RENEWED, "new events made a transient task a normal one")     \
    X(HF_PROBE_WFT_HEARTBEAT, "a workflow task asked for a new one without commands")      \
    X(HF_PROBE_WFT_STRETCHED, "a workflow task got a longer timeout after many attempts")  \
    X(HF_PROBE_STICKY_USED, "a workflow task went to a sticky queue")                      \
    X(HF_PROBE_STICKY_SKIPPED, "a sticky queue had no poller for a while")                 \
    X(HF_PROBE_STICKY_MOVED, "a task left the sticky queue of a worker that is gone")      \
    X(HF_PROBE_QUEUE_FREED, "a task queue that nobody used was freed")                     \
    X(HF_PROBE_STICKY_TIMED_OUT, "a sticky workflow task was not taken in time")           \
    X(HF_PROBE_FLUSH_REORDERED, "a completion moved behind a later buffered event")        \
    X(HF_PROBE_TIMER_UNFIRED, "a timer was canceled while its firing was buffered")        \
    X(HF_PROBE_LATE_ANSWER, "an answer came for a task that is not pending any more")      \
    X(HF_PROBE_FORGED_TOKEN, "a token did not check")                                      \
    X(HF_PROBE_TASK_AGAIN, "a started task went to another poller")                        \
    X(HF_PROBE_WORKER_LOST, "an activity of a dead incarnation was retried")               \
    X(HF_PROBE_WFT_OF_DEAD, "a workflow task of a dead incarnation was handed out again")  \
    X(HF_PROBE_SUSPECT, "a third process ended with the same task in hand")                \
    X(HF_PROBE_SUSPECT_ALONE, "a suspect was handed out alone")                            \
    X(HF_PROBE_SUSPECT_WAITED_FOR, "a poll got no task because a suspect was in hand")     \
    X(HF_PROBE_ACTIVITY_RETRIED, "an activity failed and was scheduled again")             \
    X(HF_PROBE_ACTIVITY_CANCELED_EARLY, "an activity was canceled before it was started")  \
    X(HF_PROBE_HEARTBEAT_CANCEL, "a heartbeat told of a cancel request")                   \
    X(HF_PROBE_LOAD_WAITED, "an input waited for its run to be loaded")                    \
    X(HF_PROBE_NAME_FILTERED, "a new workflow id was known to be new without a read")      \
    X(HF_PROBE_EVICTED, "a run was dropped from memory")                                   \
    X(HF_PROBE_SPILLED_OPEN, "an open run was written to its rows")                        \
    X(HF_PROBE_SPILLED_CLOSED, "a closed run was written to its rows")                     \
    X(HF_PROBE_COLD_TASK, "a task of a run that was not in memory met a poller")           \
    X(HF_PROBE_COLD_TASK_STALE, "a task row was older than its run")                       \
    X(HF_PROBE_COLD_DUE, "a deadline loaded its run")                                      \
    X(HF_PROBE_COLD_DUE_STALE, "a run was loaded before its deadline on disk came up")     \
    X(HF_PROBE_TICK_FULL, "more deadlines came at once than a tick takes")                 \
    X(HF_PROBE_DUE_EARLY, "a deadline had moved on")                                       \
    X(HF_PROBE_JOURNAL_TRIMMED, "old commits left the journal")                            \
    X(HF_PROBE_RECOVERED, "a journal was replayed at open")                                \
    X(HF_PROBE_RUN_AHEAD, "a workflow task was given out before its commit")               \
    X(HF_PROBE_HISTORY_FROM_ROWS, "events were read back from rows")                       \
    X(HF_PROBE_HISTORY_PAGED, "a history did not fit one answer")                          \
    X(HF_PROBE_HISTORY_MORE_ROWS, "a page of a history needed a second read")              \
    X(HF_PROBE_WATCH_WOKEN, "a long poll of a history saw its event")                      \
    X(HF_PROBE_POLL_EXPIRED, "a poll was answered empty")                                  \
    X(HF_PROBE_MESSAGE, "a run sent a message to another")                                 \
    X(HF_PROBE_MESSAGE_AGAIN, "a message of an earlier opening was sent again")            \
    X(HF_PROBE_MESSAGE_HELD, "a message waited for room in its target's buffer")           \
    X(HF_PROBE_NAMES_SWEPT, "a round of names went to their table")                        \
    X(HF_PROBE_NAME_ALIKE, "two names had the same hash")                                  \
    X(HF_PROBE_BAD_RECORD, "a record of the store did not check")                          \
    X(HF_PROBE_KEPT, "changes of a run that cannot be read were kept aside")               \
    X(HF_PROBE_KEPT_APPLIED, "a run that can be read again got the changes kept for it")   \
    X(HF_PROBE_LIMIT_HIT, "a limit refused an input")

typedef enum hf_probe {
#define HF_PROBE_ENUM(name, text) name,
    HF_PROBE_MAP(HF_PROBE_ENUM)
#undef HF_PROBE_ENUM
        HF_PROBE_COUNT
} hf_probe;

#endif
