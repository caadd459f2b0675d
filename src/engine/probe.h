/* Probes: situations that a campaign must have met. The simulator adds up the counts and fails when one stays zero. */
#ifndef HF_ENGINE_PROBE_H
#define HF_ENGINE_PROBE_H

/*    name, what happened */
#define HF_PROBE_MAP(X)                                                                      \
    X(HF_PROBE_START_DEDUPED, "a start with a known request id was answered with its run")   \
    X(HF_PROBE_START_REFUSED, "a start met an open run of the same id")                      \
    X(HF_PROBE_START_USE_EXISTING, "a start was answered with the run that is open")         \
    X(HF_PROBE_REQUEST_ATTACHED, "a start left something with the run that is open")         \
    X(HF_PROBE_START_FOUND_ATTACHED, "a start found a run by an attached request id")        \
    X(HF_PROBE_OPTIONS_UPDATED, "a run got other options")                                   \
    X(HF_PROBE_START_TERMINATED, "a start terminated the run that was open")                 \
    X(HF_PROBE_START_REUSE_REFUSED, "a start met a closed run and its policy refused")       \
    X(HF_PROBE_SIGNAL_DEDUPED, "a signal with a known request id changed nothing")           \
    X(HF_PROBE_SIGNAL_BUFFERED, "a signal came while a workflow task was started")           \
    X(HF_PROBE_SIGNAL_START_NEW, "a signal with start started a run")                        \
    X(HF_PROBE_SIGNAL_START_USED, "a signal with start found an open run")                   \
    X(HF_PROBE_SIGNAL_START_DEDUPED, "a signal with start was known and changed nothing")    \
    X(HF_PROBE_CANCEL_TWICE, "a cancel request found one already there")                     \
    X(HF_PROBE_UNHANDLED_COMMAND, "a closing command met buffered events")                   \
    X(HF_PROBE_BAD_SEQUENCE, "a command came behind the one that closes the run")            \
    X(HF_PROBE_BAD_COMMAND, "a command with bad attributes failed its workflow task")        \
    X(HF_PROBE_WFT_TRANSIENT, "a later attempt of a workflow task was started")              \
    X(HF_PROBE_WFT_TRANSIENT_DONE, "a transient workflow task was completed")                \
    X(HF_PROBE_WFT_TRANSIENT_RENEWED, "new events made a transient task a normal one")       \
    X(HF_PROBE_WFT_HEARTBEAT, "a workflow task asked for a new one without commands")        \
    X(HF_PROBE_WFT_STRETCHED, "a workflow task got a longer timeout after many attempts")    \
    X(HF_PROBE_STICKY_USED, "a workflow task went to a sticky queue")                        \
    X(HF_PROBE_STICKY_SKIPPED, "a sticky queue had no poller for a while")                   \
    X(HF_PROBE_STICKY_MOVED, "a task left the sticky queue of a worker that is gone")        \
    X(HF_PROBE_QUEUE_FREED, "a task queue that nobody used was freed")                       \
    X(HF_PROBE_STICKY_TIMED_OUT, "a sticky workflow task was not taken in time")             \
    X(HF_PROBE_FLUSH_REORDERED, "a completion moved behind a later buffered event")          \
    X(HF_PROBE_TIMER_UNFIRED, "a timer was canceled while its firing was buffered")          \
    X(HF_PROBE_CANCEL_PUT_OFF, "a canceled call waited for the next portion")                \
    X(HF_PROBE_LATE_ANSWER, "an answer came for a task that is not pending any more")        \
    X(HF_PROBE_FORGED_TOKEN, "a token was forged or damaged")                                \
    X(HF_PROBE_TASK_AGAIN, "a started task went to another poller")                          \
    X(HF_PROBE_WORKER_LOST, "an activity of a dead incarnation was retried")                 \
    X(HF_PROBE_ATTEMPT_LEFT, "a process left an attempt, which others will answer")          \
    X(HF_PROBE_WFT_OF_DEAD, "a workflow task of a dead incarnation was handed out again")    \
    X(HF_PROBE_SUSPECT, "a third process ended with the same task in hand")                  \
    X(HF_PROBE_SUSPECT_ALONE, "a suspect was handed out alone")                              \
    X(HF_PROBE_SUSPECT_WAITED_FOR, "a poll got no task because a suspect was in hand")       \
    X(HF_PROBE_ACTIVITY_RETRIED, "an activity failed and was scheduled again")               \
    X(HF_PROBE_ACTIVITY_CANCELED_EARLY, "an activity was canceled before it was started")    \
    X(HF_PROBE_HEARTBEAT_CANCEL, "a heartbeat told of a cancel request")                     \
    X(HF_PROBE_EVENT_FETCHED, "an input needed an event that is in a row")                   \
    X(HF_PROBE_PARTS_READ, "a run was loaded whose state has parts in rows of their own")    \
    X(HF_PROBE_CONTINUED_AS_NEW, "a run continued as new")                                   \
    X(HF_PROBE_WORKFLOW_RETRIED, "a run that failed was followed by another attempt")        \
    X(HF_PROBE_CRON, "a run was followed by the next one of its schedule")                   \
    X(HF_PROBE_FIRST_TASK_HELD, "a start let its first workflow task wait")                  \
    X(HF_PROBE_CHAIN_EXPIRED, "the deadline of a chain ended a run")                         \
    X(HF_PROBE_SUGGESTED, "a worker was advised to continue its workflow as new")            \
    X(HF_PROBE_RETRY_DELAY_NAMED, "a failure said when the next attempt is to begin")        \
    X(HF_PROBE_UPSERTED, "a workflow changed its memo or search attributes")                 \
    X(HF_PROBE_CHILD, "a run started a child")                                               \
    X(HF_PROBE_CHILD_REFUSED, "a child could not be started")                                \
    X(HF_PROBE_CHILD_ENDED, "a parent was told of the end of its child")                     \
    X(HF_PROBE_CHILD_LEFT, "a parent ended before its child")                                \
    X(HF_PROBE_CHILD_TERMINATED, "the end of a parent terminated its child")                 \
    X(HF_PROBE_CHILD_CANCELED, "the end of a parent asked its child to be canceled")         \
    X(HF_PROBE_CHILD_ONLY, "a message for children only met a run")                          \
    X(HF_PROBE_LOAD_WAITED, "an input waited for its run to be loaded")                      \
    X(HF_PROBE_NAME_FILTERED, "a new workflow id was known to be new without a read")        \
    X(HF_PROBE_EVICTED, "a run was dropped from memory")                                     \
    X(HF_PROBE_SPILLED_OPEN, "an open run was written to its rows")                          \
    X(HF_PROBE_SPILLED_CLOSED, "a closed run was written to its rows")                       \
    X(HF_PROBE_COLD_TASK, "a task of a run that was not in memory met a poller")             \
    X(HF_PROBE_COLD_TASK_STALE, "a task row was older than its run")                         \
    X(HF_PROBE_COLD_DUE, "a deadline loaded its run")                                        \
    X(HF_PROBE_COLD_DUE_STALE, "a run was loaded before its deadline on disk came up")       \
    X(HF_PROBE_TICK_FULL, "more deadlines came at once than a tick takes")                   \
    X(HF_PROBE_DUE_EARLY, "a deadline had moved on")                                         \
    X(HF_PROBE_JOURNAL_TRIMMED, "old commits left the journal")                              \
    X(HF_PROBE_RECOVERED, "a journal was replayed at open")                                  \
    X(HF_PROBE_RUN_AHEAD, "a workflow task was given out before its commit")                 \
    X(HF_PROBE_HISTORY_FROM_ROWS, "events were read back from rows")                         \
    X(HF_PROBE_HISTORY_PAGED, "a history did not fit one answer")                            \
    X(HF_PROBE_HISTORY_MORE_ROWS, "a page of a history needed a second read")                \
    X(HF_PROBE_HISTORY_REVERSED, "a history was read from its end")                          \
    X(HF_PROBE_WATCH_WOKEN, "a long poll of a history saw its event")                        \
    X(HF_PROBE_POLL_ENDED, "a poll of a worker that shut down was answered empty")           \
    X(HF_PROBE_RATE_LIMITED, "a poll had to wait for the rate limit of its queue")           \
    X(HF_PROBE_QUEUE_DESCRIBED, "a task queue was described")                                \
    X(HF_PROBE_POLL_EXPIRED, "a poll was answered empty")                                    \
    X(HF_PROBE_MESSAGE, "a run sent a message to another")                                   \
    X(HF_PROBE_MESSAGE_AGAIN, "a message of an earlier opening was sent again")              \
    X(HF_PROBE_NAMES_SWEPT, "a round of names went to their table")                          \
    X(HF_PROBE_NAME_ALIKE, "two names had the same hash")                                    \
    X(HF_PROBE_BAD_RECORD, "a record of the store was damaged")                              \
    X(HF_PROBE_KEPT, "changes of a run that cannot be read were kept aside")                 \
    X(HF_PROBE_KEPT_APPLIED, "a run that can be read again got the changes kept for it")     \
    X(HF_PROBE_LIMIT_HIT, "a limit refused an input")                                        \
    X(HF_PROBE_RESET, "a run was reset")                                                     \
    X(HF_PROBE_RESET_OPEN, "a reset terminated the current run")                             \
    X(HF_PROBE_RESET_CLOSED, "a reset followed a run that is closed")                        \
    X(HF_PROBE_RESET_OLD, "a run that is not the current one was reset")                     \
    X(HF_PROBE_RESET_NO_CURRENT, "a run was reset whose id has no current run")              \
    X(HF_PROBE_RESET_CONTINUED, "a reset looked through a run that continued its base")      \
    X(HF_PROBE_RESET_SIGNAL, "a reset applied a signal again")                               \
    X(HF_PROBE_RESET_UPDATE, "a reset applied an update again")                              \
    X(HF_PROBE_RESET_OPTIONS, "a reset gave the new run other options")                      \
    X(HF_PROBE_RESET_CHILD, "a reset applied the start or end of a child again")             \
    X(HF_PROBE_RESET_REFUSED, "a reset named a point that is not one")                       \
    X(HF_PROBE_RESET_DEDUPED, "a repeated reset was answered with its run")                  \
    X(HF_PROBE_RESET_JOINED, "a reset was repeated while it was under way")                  \
    X(HF_PROBE_RESET_PORTION, "events were written for a run that did not exist")            \
    X(HF_PROBE_RESET_RESTARTED, "a run began while a reset was under way")                   \
    X(HF_PROBE_RESET_UNDONE, "the rows of a run that was not made were deleted")             \
    X(HF_PROBE_RESET_TOLD, "the end of a child went on to the run that replaced its parent") \
    X(HF_PROBE_DELETED, "a run was deleted")                                                 \
    X(HF_PROBE_DELETED_OPEN, "a run that was open was terminated and deleted")               \
    X(HF_PROBE_DELETED_ALL, "all runs of a workflow id were deleted")                        \
    X(HF_PROBE_DELETED_BEHIND, "a run was deleted while a newer one had its id")             \
    X(HF_PROBE_DELETED_ASKED, "a call met a run that is being deleted")                      \
    X(HF_PROBE_DELETED_RESUMED, "an opening went on with a deletion")                        \
    X(HF_PROBE_LIST_MEMORY, "a list looked at runs with changes that are in no row")         \
    X(HF_PROBE_LIST_STEPPED, "a list took more than one step over rows")                     \
    X(HF_PROBE_LIST_PAGED, "a list had more runs than its page")                             \
    X(HF_PROBE_LIST_TOKEN_OF_OTHER, "a page token was used for another list")                \
    X(HF_PROBE_COUNTED, "runs were counted")                                                 \
    X(HF_PROBE_COUNT_GROUPED, "runs were counted by status")                                 \
    X(HF_PROBE_NAMESPACE_REGISTERED, "a namespace was registered")                           \
    X(HF_PROBE_NAMESPACE_UPDATED, "a namespace was updated")                                 \
    X(HF_PROBE_ATTRIBUTE_ADDED, "a search attribute was added")                              \
    X(HF_PROBE_ATTRIBUTE_REMOVED, "a search attribute was removed")                          \
    X(HF_PROBE_BLOCKS_LOADED, "an opening found the blocks of runs that have ended")         \
    X(HF_PROBE_BLOCK_WRITTEN, "a block of runs that have ended was written")                 \
    X(HF_PROBE_BLOCK_STALE, "a run changed while its block was made")                        \
    X(HF_PROBE_BLOCK_DELETED, "a run of a block changed")                                    \
    X(HF_PROBE_BLOCK_READ, "a list looked at the runs of a block")                           \
    X(HF_PROBE_BLOCK_SKIPPED, "a list left out a block by its summary")                      \
    X(HF_PROBE_BLOCK_COUNTED, "runs were counted by summaries")                              \
    X(HF_PROBE_BLOCK_OTHER, "a list read a run that its block left out")                     \
    X(HF_PROBE_RETIRED, "retention deleted a run")                                           \
    X(HF_PROBE_RETIRED_BESIDE, "retention went slower beside calls of others")               \
    X(HF_PROBE_BATCH_STARTED, "an operation on many runs was started")                       \
    X(HF_PROBE_BATCH_PORTION, "an operation has taken runs")                                 \
    X(HF_PROBE_BATCH_COMPLETED, "an operation has reached all of its runs")                  \
    X(HF_PROBE_BATCH_STOPPED, "an operation was stopped")                                    \
    X(HF_PROBE_BATCH_STOPPED_ACTING, "an operation was stopped while messages were out")     \
    X(HF_PROBE_BATCH_LATE, "a message of an operation came after its stop")                  \
    X(HF_PROBE_BATCH_RESUMED, "an operation sent its messages again")                        \
    X(HF_PROBE_BATCH_AGAIN, "a run has recognised a message of an operation")                \
    X(HF_PROBE_BATCH_UNPAUSED, "an operation unpaused the activities of a run")              \
    X(HF_PROBE_BATCH_ACTIVITY_RESET, "an operation reset the activities of a run")           \
    X(HF_PROBE_BATCH_ACTIVITY_OPTIONS, "an operation gave activities other options")         \
    X(HF_PROBE_BATCH_ACTIVITY_AGAIN, "a run has recognised a message about activities")      \
    X(HF_PROBE_BATCH_FAILED, "an operation could not list its runs")                         \
    X(HF_PROBE_BATCH_FORGOTTEN, "an operation that has ended was deleted")                   \
    X(HF_PROBE_NAMESPACE_DELETING, "a namespace was deleted, with its runs to follow")       \
    X(HF_PROBE_NAMESPACE_DELETED, "the last of a namespace is gone")                         \
    X(HF_PROBE_DELETED_REPLAYED, "the journal had changes of a deleted run")                 \
    X(HF_PROBE_DELETED_WAITED, "a deleted run had a message on its way, or a reader")        \
    X(HF_PROBE_DELETED_STUCK, "a deletion met an older run that is damaged")                 \
    X(HF_PROBE_DELETED_BAD, "a damaged run was deleted")                                     \
    X(HF_PROBE_UNNAMED, "an older run lost its name")                                        \
    X(HF_PROBE_NAME_GONE, "the table had a name that was gone")                              \
    X(HF_PROBE_NAME_STALE, "a name was read while a sweep deleted names")                    \
    X(HF_PROBE_QUERY_DIRECT, "a query was answered by a task of its own")                    \
    X(HF_PROBE_QUERY_CLOSED, "a run that has ended answered a query")                        \
    X(HF_PROBE_QUERY_ATTACHED, "a query went with a workflow task")                          \
    X(HF_PROBE_QUERY_UNSTUCK, "a query left the sticky queue of a worker")                   \
    X(HF_PROBE_QUERY_FAILED, "a worker could not answer a query")                            \
    X(HF_PROBE_QUERY_CONFLICT, "a query went with a task whose code does not fit")           \
    X(HF_PROBE_QUERY_FAILED_FAST, "a query met a workflow task that keeps failing")          \
    X(HF_PROBE_QUERY_REJECTED, "a query met a run that is not open")                         \
    X(HF_PROBE_QUERY_EXPIRED, "a query was not answered in time")                            \
    X(HF_PROBE_UPDATE_ADMITTED, "an update came")                                            \
    X(HF_PROBE_UPDATE_ATTACHED, "an update with a known id was the same one")                \
    X(HF_PROBE_UPDATE_ACCEPTED, "an update was accepted")                                    \
    X(HF_PROBE_UPDATE_COMPLETED, "an update was completed")                                  \
    X(HF_PROBE_UPDATE_REJECTED, "an update was rejected")                                    \
    X(HF_PROBE_UPDATE_UNPROCESSED, "a worker said nothing of an update")                     \
    X(HF_PROBE_UPDATE_SENT_AGAIN, "an update was sent with another workflow task")           \
    X(HF_PROBE_UPDATE_RESURRECTED, "an update that a crash took came back with its answer")  \
    X(HF_PROBE_UPDATE_OUTCOME_READ, "the outcome of an update was read from its event")      \
    X(HF_PROBE_UPDATE_OUTLIVED, "a run closed before an accepted update was completed")      \
    X(HF_PROBE_UPDATE_ABORTED, "a run closed before an update was accepted")                 \
    X(HF_PROBE_UPDATE_WAITED, "a call for an update was answered with the stage reached")    \
    X(HF_PROBE_UPDATE_LIMIT, "a run had too many updates in flight")                         \
    X(HF_PROBE_UPDATE_WITH_START, "a start and an update came as one call")                  \
    X(HF_PROBE_SPECULATIVE, "an update got a speculative workflow task")                     \
    X(HF_PROBE_SPECULATIVE_DROPPED, "a speculative workflow task left no trace")             \
    X(HF_PROBE_SPECULATIVE_CONVERTED, "a speculative workflow task became a real one")       \
    X(HF_PROBE_ACTIVITY_EAGER, "an activity began with the worker of its workflow")          \
    X(HF_PROBE_WFT_INLINE, "a workflow task went out with the answer to the one before")     \
    X(HF_PROBE_WFT_EAGER, "a workflow task went out with the answer to a start")             \
    X(HF_PROBE_WFT_HEARTBEAT_OVER, "a workflow task was kept alive for too long")            \
    X(HF_PROBE_HEARTBEAT_UNWRITTEN, "a heartbeat with nothing new was not written")          \
    X(HF_PROBE_HEARTBEAT_GRACE, "an opening gave an attempt time for its next heartbeat")    \
    X(HF_PROBE_ACTIVITY_BY_ID, "an activity was answered by its id")                         \
    X(HF_PROBE_ACTIVITY_DONE_UNSTARTED, "an activity that no worker had was completed")      \
    X(HF_PROBE_ACTIVITY_PAUSED, "an activity was paused while no attempt of it ran")         \
    X(HF_PROBE_ACTIVITY_PAUSED_RUNNING, "an activity was paused while an attempt ran")       \
    X(HF_PROBE_ACTIVITY_UNPAUSED, "a paused activity went on")                               \
    X(HF_PROBE_ACTIVITY_RESET, "an activity was reset")                                      \
    X(HF_PROBE_ACTIVITY_OPTIONS, "an activity got other options")                            \
    X(HF_PROBE_MESSAGE_TO_ITSELF, "a workflow tried to send itself a message")               \
    X(HF_PROBE_MESSAGE_STOPPED, "a run ended before its message went out")                   \
    X(HF_PROBE_FIRST_TASK_EARLY, "an update did not wait for the first workflow task")       \
    X(HF_PROBE_INBOX_FULL, "more messages came at once than a batch takes")                  \
    X(HF_PROBE_STREAM_BY_WORKFLOW, "the answer to a workflow task appended to a stream")     \
    X(HF_PROBE_STREAM_BY_ACTIVITY, "an activity appended to a stream")                       \
    X(HF_PROBE_STREAM_DEDUPED, "a repeated request did not append to a stream again")        \
    X(HF_PROBE_STREAM_FULL, "a stream had no room for a record")                             \
    X(HF_PROBE_STREAM_GOES_ON, "a run went on with the stream of the run before")            \
    X(HF_PROBE_STREAM_FROM_ROWS, "records of a stream were read from rows")                  \
    X(HF_PROBE_STREAM_PAGED, "records of a stream did not fit one answer")                   \
    X(HF_PROBE_LIST_CURRENT, "a list of current runs")                                       \
    X(HF_PROBE_OWN_SPAN, "a run is kept for a span of its own")                              \
    X(HF_PROBE_OWN_SPAN_OVER, "a run goes when its own span is over")                        \
    X(HF_PROBE_STREAM_GAP, "a reader was told that records were deleted")                    \
    X(HF_PROBE_STREAM_FAR, "the stops of a state did not reach back to a record")            \
    X(HF_PROBE_STREAM_FOLLOWED, "a reader went on with the next run of the chain")           \
    X(HF_PROBE_STREAM_ENDED, "a reader was told the end of a stream")                        \
    X(HF_PROBE_CHANGES_GAP, "a reader of changes was told that some may be missing")         \
    X(HF_PROBE_CHANGES_WOKEN, "a reader of changes that waited saw one")                     \
    X(HF_PROBE_QUEUES_LISTED, "task queues were listed")                                     \
    X(HF_PROBE_QUEUES_COLD, "a list of task queues had one that is only on disk")            \
    X(HF_PROBE_STREAM_WOKEN, "a reader that waited saw its record")                          \
    X(HF_PROBE_BUFFER_OVER, "a full buffer ended a workflow task")

typedef enum hf_probe {
#define HF_PROBE_ENUM(name, text) name,
    HF_PROBE_MAP(HF_PROBE_ENUM)
#undef HF_PROBE_ENUM
        HF_PROBE_COUNT
} hf_probe;

#endif
