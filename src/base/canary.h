/* Seeded bugs, which check that the model tests notice such bugs. Each is a marked line in the library, which is off.
 * In a normal build it does not exist: HF_CANARY is the constant 0. Only in a build with -DHF_CANARIES=1, made by
 * tests/unit/model/canaries.cmake, one of them can be switched on through hf_canary; a test then expects that the model
 * named here fails. */
#ifndef HF_BASE_CANARY_H
#define HF_BASE_CANARY_H

/*    name, model, what goes wrong */
#define HF_BUG_MAP(X)                                                                                                 \
    X(HF_BUG_LOST_WAKE, "scope", "a message does not wake the scheduler it was posted to")                            \
    X(HF_BUG_CANCEL_AT_PARK, "scope", "a cancel does not wake a parked fiber")                                        \
    X(HF_BUG_JOIN_EARLY, "scope", "a join goes on before the last child has ended")                                   \
    X(HF_BUG_CHILD_NOT_COUNTED, "scope", "a child with a drop is not counted as running")                             \
    X(HF_BUG_ALARM_TWICE, "scope", "an alarm fires twice")                                                            \
    X(HF_BUG_SHIELD_IGNORED, "scope", "a cancel reaches into a shield")                                               \
    X(HF_BUG_DEADLINE_NOT_MIN, "scope", "a scope does not take over the nearer deadline around it")                   \
    X(HF_BUG_CANCEL_MSG_DROPPED, "scope", "a cancel does not reach a stolen child")                                   \
    X(HF_BUG_CANCEL_BEFORE_START, "scope", "a child that was canceled early starts as if nothing had happened")       \
    X(HF_BUG_JOIN_CLEARS_OUTER, "scope", "a join clears a cancel that came from further out")                         \
    X(HF_BUG_FORK_NOT_PENDING, "scope", "a close does not wait for a fork that is on its way")                        \
    X(HF_BUG_DROP_FORGOTTEN, "scope", "a canceled child with a drop runs its body")                                   \
    X(HF_BUG_POOL_STATUS, "scope", "the status of a job on a pool is lost")                                           \
    X(HF_BUG_FIRST_FAILURE, "scope", "the last failure is taken for the first")                                       \
    X(HF_BUG_SELECT_TWO_CASES, "chan", "two peers take two cases of one select")                                      \
    X(HF_BUG_CLOSE_DUPLICATES, "chan", "a closed channel gives its last value twice")                                 \
    X(HF_BUG_CAPACITY, "chan", "a channel takes one value more than fits")                                            \
    X(HF_BUG_TIMEOUT_NOT_CLAIMED, "chan", "a timeout wakes a waiter that a peer has woken already")                   \
    X(HF_BUG_SENDER_FORGOTTEN, "chan", "a receiver that made room does not let a sender in")                          \
    X(HF_BUG_TWO_HOLDERS, "keylock", "a key that is held is given to another caller")                                 \
    X(HF_BUG_EVICT_HELD, "keylock", "a key that is held stays among the idle ones and is dropped at the bound")       \
    X(HF_BUG_NOT_FIFO, "keylock", "a key goes to the second waiter")                                                  \
    X(HF_BUG_MUTEX_CANCELED, "keylock", "a mutex belongs to a waiter that was canceled")                              \
    X(HF_BUG_FLIGHT_ANY_LEAVES, "flight", "any waiter that leaves cancels the flight")                                \
    X(HF_BUG_FLIGHT_NOT_CANCELED, "flight", "the last waiter leaves and the work goes on")                            \
    X(HF_BUG_FLIGHT_STALE, "flight", "a caller joins a flight that is being abandoned")                               \
    X(HF_BUG_GHOST_TWICE, "cache", "a ghost that was admitted stays a ghost, and is admitted again")                  \
    X(HF_BUG_BYTES_DRIFT, "cache", "the bytes of a cache fall by less than what an entry took")                       \
    X(HF_BUG_REPLY_BEFORE_COMMIT, "engine", "an answer is given before its commit")                                   \
    X(HF_BUG_CRASH_NOT_COUNTED, "engine", "a process that ended with a task in hand is not counted")                  \
    X(HF_BUG_START_NOT_DEDUPED, "engine", "a repeated start is not recognised")                                       \
    X(HF_BUG_SIGNAL_NOT_DEDUPED, "engine", "a repeated signal is not recognised")                                     \
    X(HF_BUG_SIGNAL_START_LOST, "engine", "a signal with start that starts a run forgets the signal")                 \
    X(HF_BUG_ATTACHED_FORGOTTEN, "engine", "the request id of a start that uses a run is not attached")               \
    X(HF_BUG_RATE_IGNORED, "engine", "the rate limit of a task queue is ignored")                                     \
    X(HF_BUG_BUFFERED_LOST, "engine", "a signal that is to be buffered is dropped")                                   \
    X(HF_BUG_CLOSE_OVER_BUFFERED, "engine", "a run closes over events it has not seen")                               \
    X(HF_BUG_FAILED_COMMIT_IGNORED, "engine", "a failed commit is taken for done: the state in memory is stale")      \
    X(HF_BUG_TIMER_EARLY, "engine", "a timer fires up to half a second early")                                        \
    X(HF_BUG_OLD_ANSWER_TAKEN, "engine", "an answer to an earlier attempt of an activity is taken")                   \
    X(HF_BUG_TASK_ROW_FORGOTTEN, "engine", "a task that goes to the table is not looked for there")                   \
    X(HF_BUG_DUE_ROW_FORGOTTEN, "engine", "a deadline that goes to the table is not looked for there")                \
    X(HF_BUG_CHANGES_TWICE, "engine", "recovery applies changes that are in the rows already")                        \
    X(HF_BUG_TRIMMED_EARLY, "engine", "the journal is cut in front of changes that are in no row")                    \
    X(HF_BUG_ATTEMPT_NOT_COUNTED, "engine", "a retry is not counted as an attempt")                                   \
    X(HF_BUG_IDS_NOT_WRITTEN, "engine", "request ids are not part of a run's row")                                    \
    X(HF_BUG_PAGE_GAP, "engine", "the next page of a history begins one event too late")                              \
    X(HF_BUG_NAMES_CUT, "engine", "names are cut with the journal and not kept elsewhere")                            \
    X(HF_BUG_NOT_KEPT, "engine", "changes of a run that cannot be read are cut with the journal")                     \
    X(HF_BUG_NAME_NOT_COMPARED, "engine", "a name is taken for another with the same hash")                           \
    X(HF_BUG_STREAM_LOST, "engine", "records of a stream are lost when their run leaves memory")                      \
    X(HF_BUG_STREAM_RESTARTS, "engine", "the numbers of a stream restart in the next run")                            \
    X(HF_BUG_STREAM_TWICE, "engine", "a repeated request appends its records again")                                  \
    X(HF_BUG_STREAM_EARLY, "engine", "a reader is told of records before their commit")                               \
    X(HF_BUG_PUBLISHED_AGAIN, "storm", "a replay publishes records again")                                            \
    X(HF_BUG_STREAM_SKIPS, "engine", "a page of a stream leaves out a record that did not fit the last one")          \
    X(HF_BUG_PAUSE_IGNORED, "engine", "a paused activity runs")                                                       \
    X(HF_BUG_EAGER_NOT_WRITTEN, "engine", "an activity that goes out with a completion is not started")               \
    X(HF_BUG_INLINE_TWICE, "engine", "a workflow task that goes out with a completion stays in its queue")            \
    X(HF_BUG_NEXT_RUN_LATER, "engine", "the next run of a chain is written one commit after the end of the last")     \
    X(HF_BUG_RUN_ATTEMPT_NOT_COUNTED, "engine", "a retry of a workflow is not counted as an attempt")                 \
    X(HF_BUG_EXPIRATION_FORGOTTEN, "engine", "the next run of a chain forgets when the chain ends")                   \
    X(HF_BUG_PAUSE_SKIPPED, "engine", "the first workflow task of a run does not wait for its pause")                 \
    X(HF_BUG_DELETED_BACK, "engine", "a deleted run is back after a crash")                                           \
    X(HF_BUG_DELETED_NAME_LEFT, "engine", "the name of a deleted run is left")                                        \
    X(HF_BUG_DELETED_HISTORY_LEFT, "engine", "the history rows of a deleted run are left")                            \
    X(HF_BUG_OLDER_RUN_CURRENT, "engine", "an older run becomes the current one when the newest is deleted")          \
    X(HF_BUG_MAKING_LEFT, "engine", "the rows of a reset that a crash has interrupted are left")                      \
    X(HF_BUG_RESET_TWICE, "engine", "a repeated reset is not recognised")                                             \
    X(HF_BUG_LEFT_FORGOTTEN, "engine", "an attempt that its process has left is lost with the process")               \
    X(HF_BUG_LATCH_TOUCHED, "life", "a latch is touched after it was opened")                                         \
    X(HF_BUG_POSTER_NOT_COUNTED, "life", "a runtime ends while a thread from outside is waking one of its fibers")    \
    X(HF_BUG_EVICTED_SPINS, "crew", "an evicted fiber that does not return is refused for ever")                      \
    X(HF_BUG_STRANDED_STACK_LOST, "crew", "the stack of a stranded fiber is not given back")                          \
    X(HF_BUG_OWNED_KEPT, "crew", "an object of a workflow is not freed with its crew")                                \
    X(HF_BUG_TWO_OPEN_RUNS, "engine", "a start leaves the run open that it should have terminated")                   \
    X(HF_BUG_CHILD_STARTED_TWICE, "engine", "the start of a child is sent twice, and not recognised")                 \
    X(HF_BUG_EACH_RUN_TELLS, "engine", "each run of a chain tells its end to the listener, not only the last")        \
    X(HF_BUG_END_FORGOTTEN, "engine", "the end of a child is not told when a crash came before that")                 \
    X(HF_BUG_POLICY_FORGOTTEN, "engine", "a close policy is not applied when a crash came before that")               \
    X(HF_BUG_LOG_BEHIND_HOLE, "images", "a log is appended to behind a hole that a failed sync left")                 \
    X(HF_BUG_CACHE_TRUSTED, "images",                                                                                 \
      "the cached bytes of a file that was not closed are taken for the bytes on the disk")                           \
    X(HF_BUG_NAME_NOT_SYNCED, "images", "the name of a log is not checked for having been synced")                    \
    X(HF_BUG_ZOMBIE_KEEPS_SLOT, "hung", "the slot of a zombie is kept")                                               \
    X(HF_BUG_LIST_NOT_OVERLAID, "engine", "a list misses changes that are in no row yet")                             \
    X(HF_BUG_BATCH_ACTS_TWICE, "engine", "an operation sends a run its signal twice, without a request id")           \
    X(HF_BUG_BATCH_OTHER_NAMESPACE, "engine", "an operation also acts in another namespace")                          \
    X(HF_BUG_BATCH_CURSOR_FORGOTTEN, "engine", "an operation begins with its first page again and again")             \
    X(HF_BUG_BATCH_COUNTS_TWICE, "engine", "an operation counts a run twice")                                         \
    X(HF_BUG_BATCH_AFTER_STOP, "engine", "an operation acts on runs after its stop")                                  \
    X(HF_BUG_BATCH_NOT_REMEMBERED, "engine", "a run does not remember what an operation did to it")                   \
    X(HF_BUG_BATCH_SKIPS_AFTER_CRASH, "engine", "an operation does not send its messages again after a crash")        \
    X(HF_BUG_NAMESPACE_LEFT_OPEN, "engine", "a run of a deleted namespace stays")                                     \
    X(HF_BUG_PAGE_OF_ANY_NAMESPACE, "engine", "a page token is taken in another namespace")                           \
    X(HF_BUG_BLOOM_ONE_ITEM, "blocks", "the filter of a block has only the first text of a list")                     \
    X(HF_BUG_COUNTED_TWICE, "blocks", "a run is counted twice in the summary of its block")                           \
    X(HF_BUG_ROWLESS_FORGOTTEN, "engine", "a block forgets the runs that have no row yet")                            \
    X(HF_BUG_BLOCK_KEPT, "engine", "a block stays when one of its runs is deleted")                                   \
    X(HF_BUG_OPEN_RETIRED, "engine", "retention deletes runs that are open")                                          \
    X(HF_BUG_STALE_SEALED, "engine", "a block is written although one of its runs has changed")                       \
    X(HF_BUG_GATHER_KEPT, "engine", "what is remembered of a run is used for its block although it has changed")      \
    X(HF_BUG_QUERY_STALE, "engine", "a query does not wait for the workflow task that is pending")                    \
    X(HF_BUG_UPDATE_TOLD_EARLY, "engine", "the outcome of an update is told before its commit")                       \
    X(HF_BUG_UPDATE_LOST, "engine", "the outcome of an update is not part of the run's state")                        \
    X(HF_BUG_SPECULATIVE_REUSED, "engine", "an answer to a dropped workflow task is taken for another's")             \
    X(HF_BUG_ZOMBIE_NOT_COUNTED, "hung", "an activity that does not end is not counted among the zombies")            \
    X(HF_BUG_MARKER_OUT_OF_ORDER, "storm", "the marker of a patch goes in front of the commands that came before it") \
    X(HF_BUG_PATCH_FORGOTTEN, "storm", "a replay does not find the marker of a patch")                                \
    X(HF_BUG_CLOSING_NOT_LAST, "storm", "the command that ends a run goes in front of those of its handlers")         \
    X(HF_BUG_CONDITION_AFTER_QUERY, "storm", "conditions look after a query, by another clock")                       \
    X(HF_BUG_QUERY_DRAWS, "storm", "a query uses up a random number of its run")                                      \
    X(HF_BUG_UPDATE_OUT_OF_ORDER, "storm", "an update goes in front of signals that came before it")                  \
    X(HF_BUG_WITHDRAWN_SENT, "storm", "a command that was given up in its own step is sent")                          \
    X(HF_BUG_CANCEL_OF_ENDED, "storm", "an activity is canceled in the step that brings its end")                     \
    X(HF_BUG_LATE_HANDLER, "storm",                                                                                   \
      "a handler that was added does not get signals that were kept, except in a replay")                             \
    X(HF_BUG_ANSWER_LOST, "remote", "an answer to a task that is lost with its connection is not sent again")         \
    X(HF_BUG_SENT_TWICE, "remote", "a call without a request id is sent again after a lost connection")               \
    X(HF_BUG_TAKEN_FOR_UNSENT, "remote", "a call that was sent is taken for one that was not")                        \
    X(HF_BUG_ACTIVITY_NOT_JOINED, "charges", "a canceled call returns before its activity has ended")                 \
    X(HF_BUG_CHILD_NOT_JOINED, "charges", "a canceled call returns before its child has ended")                       \
    X(HF_BUG_LATE_LANDING, "depot", "a fetch that began before an invalidation is kept")                              \
    X(HF_BUG_WAITER_CANCELS, "depot", "any waiter that leaves cancels the fetch of a depot")                          \
    X(HF_BUG_OLDER_VERSION, "depot", "a watcher gets an older version after a newer one")                             \
    X(HF_BUG_ACK_OF_ANOTHER, "depot", "a write is acknowledged by the success of an earlier one")                     \
    X(HF_BUG_ROW_GONE_EARLY, "depot", "a write leaves the file before the origin has accepted it")                    \
    X(HF_BUG_UNSYNCED_PUT, "power", "a write is acknowledged before it is on the disk")                               \
    X(HF_BUG_AGE_NOT_RENEWED, "depot", "an answer 'not modified' does not renew the age")                             \
    X(HF_BUG_PERMIT_LOST, "depot", "a canceled probe does not give its permit back")                                  \
    X(HF_BUG_COALESCED_INTO_SENT, "depot", "a write is put into one that was sent")                                   \
    X(HF_BUG_LAST_WAITER_KEEPS, "depot", "the last waiter that leaves does not end the fetch")                        \
    X(HF_BUG_OLDER_THAN_ANSWER, "depot", "a fetch from before the answer to a write is kept")                         \
    X(HF_BUG_TOMBSTONE_IGNORED, "depot", "a fetch brings back what was deleted")                                      \
    X(HF_BUG_ALIAS_NOT_MOVED, "depot", "a key gets another name, and the writes that wait stay behind")

typedef enum hf_bug {
    HF_BUG_NONE,
#define HF_BUG_ENUM(name, model, text) name,
    HF_BUG_MAP(HF_BUG_ENUM)
#undef HF_BUG_ENUM
        HF_BUG_COUNT /* one more than the last bug */
} hf_bug;

#if defined(HF_CANARIES) && HF_CANARIES
extern int hf_canary; /* the bug that is switched on; defined by the tests */
#define HF_CANARY(bug) (hf_canary == (int)(bug))
#else
#define HF_CANARY(bug) 0
#endif

#endif
