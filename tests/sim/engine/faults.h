/* Faults of the simulated world. A campaign counts how often each happened and fails if one never did. */
#ifndef HF_TESTS_SIM_ENGINE_FAULTS_H
#define HF_TESTS_SIM_ENGINE_FAULTS_H

/*    name, what happens */
#define HF_SIM_FAULT_MAP(X)                                                                      \
    X(HF_SIM_CRASH, "the process died")                                                          \
    X(HF_SIM_CRASH_COMMITTED, "it died with a commit done that nobody was told of")              \
    X(HF_SIM_CRASH_UNCOMMITTED, "it died with a commit on its way that did not happen")          \
    X(HF_SIM_CRASH_IDLE, "it died with nothing on its way")                                      \
    X(HF_SIM_CRASH_AT_OPEN, "it died again before its first commit")                             \
    X(HF_SIM_CRASH_OF_TASK, "it died of the task that a worker had in hand")                     \
    X(HF_SIM_CRASH_LEFT, "it died with an activity pending that it had left to others")          \
    X(HF_SIM_COMMIT_FAILED, "a commit failed and did not happen")                                \
    X(HF_SIM_COMMIT_LIED, "a commit happened and was reported as failed")                        \
    X(HF_SIM_COMMIT_UNKNOWN, "a commit ended with HF_ERR_STORE: the store was opened again")     \
    X(HF_SIM_READ_FAILED, "a read failed")                                                       \
    X(HF_SIM_CLOCK_FORWARD, "the wall clock jumped forward")                                     \
    X(HF_SIM_CLOCK_BACK, "the wall clock jumped back")                                           \
    X(HF_SIM_POLL_CANCELED, "a poll was canceled")                                               \
    X(HF_SIM_TASK_UNWANTED, "a task was handed back: nobody was there to take it")               \
    X(HF_SIM_TASK_LOST, "a worker lost a task without a word")                                   \
    X(HF_SIM_ALONG_LOST, "a task came along, and nobody was there to take it")                   \
    X(HF_SIM_WORKER_CRASH, "a worker forgot what it knew")                                       \
    X(HF_SIM_TASK_GONE, "it had a workflow task in hand, and the engine was told")               \
    X(HF_SIM_ACTIVITY_GONE, "it had an activity in hand, and the engine was told")               \
    X(HF_SIM_WORKER_PAUSED, "a worker was away for a while")                                     \
    X(HF_SIM_WORKER_SHUTDOWN, "a worker said that it goes")                                      \
    X(HF_SIM_ANSWER_TWICE, "an answer was sent twice")                                           \
    X(HF_SIM_ANSWER_LATE, "an answer came after its timeout")                                    \
    X(HF_SIM_ANSWER_AGAIN, "an answer was repeated because nobody knew whether it had arrived")  \
    X(HF_SIM_TOKEN_FORGED, "a token was changed")                                                \
    X(HF_SIM_TASK_FAILED, "a worker failed a workflow task")                                     \
    X(HF_SIM_COMMAND_BAD, "a worker sent a bad command")                                         \
    X(HF_SIM_STICKY_RESET, "a worker gave up its sticky queue")                                  \
    X(HF_SIM_HISTORY_FETCHED, "a worker had to ask for the beginning of a history")              \
    X(HF_SIM_PAGE_FETCHED, "a worker asked for the next page of a history")                      \
    X(HF_SIM_REQUEST_AGAIN, "a request was repeated because nobody knew whether it had arrived") \
    X(HF_SIM_REQUEST_TWICE, "a request was sent twice at once")                                  \
    X(HF_SIM_SIGNAL_TO_CLOSED, "a signal named a run that was over")                             \
    X(HF_SIM_PAYLOAD_LARGE, "a payload was large")                                               \
    X(HF_SIM_NOMEM, "an allocation of the engine failed")                                        \
    X(HF_SIM_LIMIT_IGNORED, "a worker wanted more at once than a run may have")                  \
    X(HF_SIM_HISTORY_FULL, "a run was ended because its history was too long")                   \
    X(HF_SIM_RECORD_DAMAGED, "a record of a run, of its history or of a task was damaged")       \
    X(HF_SIM_RECORD_MET, "a damaged record was read")                                            \
    X(HF_SIM_RUN_STOPPED, "a call was refused because of a damaged record")                      \
    X(HF_SIM_OPENED_DAMAGED, "an opening needed a damaged record")                               \
    X(HF_SIM_ZONE_GIVEN, "the driver gave the rules of a time zone")                             \
    X(HF_SIM_ZONE_MISSING, "the driver did not find a time zone")                                \
    X(HF_SIM_RECORD_RESTORED, "damaged records were restored and the engine opened again")

typedef enum hf_sim_fault {
#define HF_SIM_FAULT_ENUM(name, text) name,
    HF_SIM_FAULT_MAP(HF_SIM_FAULT_ENUM)
#undef HF_SIM_FAULT_ENUM
        HF_SIM_FAULT_COUNT
} hf_sim_fault;

#endif
