/* Inside an activity: a plain function on a thread of its own, which may block, fail and be tried again.
 *
 *     return hf_activity_fail("card declined", .type = "CardDeclined", .is_final = true);
 *
 * It runs at least once: if the process dies during an attempt, the attempt has failed with "WorkerLost" and is tried
 * again as the policy says, although it may have done its work. So pass a key that all attempts share to the systems
 * that it calls, such as run_id and id below. With .attempts_max = 1 it runs at most once, and the workflow gets the
 * failure of the lost attempt.
 *
 * An activity is canceled like any fiber: hf_canceled(), and every wait of the library, returns HF_ERR_CANCELED.
 * hf_activity_cancel_why says which of six reasons it was, and hf_cancel_cause has a sentence. An activity is canceled
 * when one of its timeouts has passed (start_to_close, schedule_to_close, heartbeat), when the worker stops and its
 * grace is over, and when its workflow cancels it. It learns of that at once if the workflow runs in the same process,
 * and else only from hf_activity_heartbeat. Only a heartbeat tells an activity that it was paused or reset from
 * outside, or that the service no longer knows it. An activity that was paused or reset should end, too: if it fails
 * then, it is tried again when it may.
 *
 * A cancel does not end a system call that blocks. If the runtime was granted a signal (.watchdog = {.signal =
 * SIGURG}), the thread of a canceled activity gets it at once and then after 1, 2, 4 ... s, at most 60 s apart, for an
 * hour. System calls that block then fail with EINTR, in cleanup and inside a shield, too. So ask before you repeat
 * one:
 *
 *     while ((got = read(fd, buf, len)) < 0 && errno == EINTR && hf_canceled() == HF_OK) {
 *     }
 *
 * An activity that has not returned 10 s after its cancel is a zombie (watchdog.zombie_after). It is in the log, with
 * its stack if there is a signal, and in hf_dump and hf_metrics. Its slot goes to another activity, for which the
 * worker starts one more thread. When the zombie returns it is no longer counted, and its result is dropped. At ten
 * zombies the runtime shuts down (watchdog.zombies_max).
 *
 * A result, the details of a failure and those of a heartbeat have at most 2 MiB each. A longer one fails the
 * activity for good, with the type "TooBig" and a sentence with both sizes. */
#ifndef HOLDFAST_ACTIVITY_H
#define HOLDFAST_ACTIVITY_H

#include <holdfast/payload.h>
#include <holdfast/time.h>

/* What an activity may want to know about itself. */
typedef struct hf_activity_facts {
    const char *workflow_id;
    const char *run_id;
    const char *id;    /* of the activity in its workflow's history */
    const char *name;  /* under which the workflow scheduled it */
    int attempt;       /* from 1 */
    hf_time deadline;  /* time limit of this attempt; INT64_MAX = none. hf_time_until converts it to a timeout */
    hf_span heartbeat; /* longest time between two heartbeats; 0 = none are expected */
    hf_payload last;   /* details of the last attempt's last heartbeat, borrowed; empty when there was none */
} hf_activity_facts;

typedef struct hf_activity_fail_options {
    size_t size;         /* set by the macro */
    const char *type;    /* for programs, and for a retry policy's final_types; NULL = "HF_ERR_FAILED" */
    bool is_final;       /* not tried again, whatever the retry policy says */
    hf_span retry_after; /* pause before the next attempt, in place of the policy's; 0 = the policy's */
    hf_payload details;  /* for the workflow: its .ret_details; borrowed */
} hf_activity_fail_options;

/* Why an activity should end. The first reason stays. */
typedef enum hf_cancel_why {
    HF_WHY_NOT,       /* it is not canceled */
    HF_WHY_CANCELED,  /* by its workflow */
    HF_WHY_TIMED_OUT, /* one of its timeouts has passed */
    HF_WHY_GONE,     /* the service does not know this attempt any more: its workflow has ended, or somebody answered */
    HF_WHY_SHUTDOWN, /* the worker stops */
    HF_WHY_PAUSED,   /* it was paused from outside, and is tried again when it is unpaused */
    HF_WHY_RESET     /* it was reset from outside, and begins again with its first attempt */
} hf_cancel_why;

HF_BEGIN_DECLS

/* Records how the activity fails and returns HF_ERR_FAILED; the activity must return this status. You may also return
 * any other failure, such as hf_raise_typed with a type; the retry policy applies to it. If hf_activity_fail is called
 * several times, the last call counts, if the activity returns HF_ERR_FAILED. Texts and details are copied. The
 * activity and fibers that it forks may call it.
 * Fails: HF_ERR_NOMEM; HF_ERR_MISUSE outside an activity; HF_ERR_TOO_BIG: .details has more than 2 MiB;
 * HF_ERR_INVALID: .retry_after is negative, or less than a millisecond. */
HF_API HF_MUST_USE hf_status hf_activity_fail_with(const char *message, const hf_activity_fail_options *options);
/* Reports that the activity is alive, and its progress; `details` is copied. Returns at once; the library sends it in
 * the background, at most once in 80 % of the heartbeat timeout (60 s at most; if there is none, in 30 s, or what
 * .heartbeat_throttle of the worker says), and always the latest. The activity and fibers that it forks may call it.
 * Fails: HF_ERR_CANCELED: the activity is canceled and should end; HF_ERR_NOMEM; HF_ERR_TOO_BIG: `details` has more
 * than 2 MiB; HF_ERR_MISUSE outside an activity. */
HF_API HF_MUST_USE hf_status hf_activity_heartbeat(hf_payload details);
/* Valid while the activity runs; NULL outside. */
HF_API const hf_activity_facts *hf_activity_info(void);
/* .arg of hf_worker_add_activity; NULL outside. */
HF_API void *hf_activity_arg(void);
/* Why the activity should end; HF_WHY_NOT outside, and while it should not. A scope that the activity itself has
 * canceled does not count. */
HF_API hf_cancel_why hf_activity_cancel_why(void);

HF_END_DECLS

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_activity_fail(...) HF_ACTIVITY_FAIL_(__VA_ARGS__, .size = sizeof(hf_activity_fail_options))
#define HF_ACTIVITY_FAIL_(message, ...) \
    hf_activity_fail_with((message), &(hf_activity_fail_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_activity_fail(const char *message,
    hf_activity_fail_options options = hf_activity_fail_options())
{
    options.size = sizeof options;
    return hf_activity_fail_with(message, &options);
}
#endif
/* clang-format on */

#endif
