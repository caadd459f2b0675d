/* What every Holdfast header needs: export marks, cleanup, forwarding, "off" and "unlimited". */
#ifndef HOLDFAST_BASE_H
#define HOLDFAST_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HF_BEGIN_DECLS extern "C" {
#define HF_END_DECLS }
#else
#define HF_BEGIN_DECLS
#define HF_END_DECLS
#endif

/* Public symbols; everything else in the library is hidden. */
#define HF_API __attribute__((visibility("default")))
#define HF_PRINTF(format_idx, args_idx) __attribute__((format(printf, format_idx, args_idx)))
/* The status of a call says whether it happened at all, so the compiler warns when it is dropped. Functions that
 * release or unlock something are not marked, because a caller can do nothing about their failure. */
#define HF_MUST_USE __attribute__((warn_unused_result))

/* Numbers and spans in options mean the same everywhere. The comment of an option ends with its default, after the last
 * semicolon, and with the special values that it takes: "time for cleanup; 10 s, HF_SPAN_OFF = none" is 10 s by default.
 *
 *     0                      the default, which the comment of the option names. The default of a timeout is none.
 *     HF_UNLIMITED,          no bound.
 *     HF_SPAN_UNLIMITED
 *     HF_OFF, HF_SPAN_OFF    none: no threads, no second attempt, no grace; a wait returns at once, a part of the
 *                            watchdog is switched off.
 *     another negative span  a moment that has passed, as hf_time_until may return it. A timeout, deadline or delay
 *                            takes it and is over at once, as with HF_SPAN_OFF. Every other option refuses it.
 *
 * A number may be HF_OFF or HF_UNLIMITED only if the comment of its option names it; every other negative number fails
 * with HF_ERR_INVALID. Spans of hf_start, hf_activity_run and hf_activity_fail are recorded in a
 * history, and must be 0 or at least a millisecond. */
#define HF_OFF (-1)
#define HF_UNLIMITED (-2)

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0
#define HF_VERSION_TEXT "0.1.0"

/* Who owns what. An object that a call makes for you, a `char *` text and a payload are yours: release them with the
 * function that their header names (hf_text_free, hf_payload_free; payload.h has the exceptions). A `const char *` that
 * a call returns belongs to the library. It is valid as long as the object that it describes:
 *
 *     hf_error, hf_error_text    until the next failure of this fiber or thread
 *     hf_workflow_id             while the workflow runs
 *     hf_activity_info           while the activity runs
 *     names of statuses, causes  always
 *
 * A call that fails leaves its `ret_` arguments as they were. One that succeeds overwrites them, and frees nothing.
 *
 * Texts, keys and payloads that you pass are copied, or needed only during the call. Exceptions: .name of a runtime or
 * of an object of its fibers (scope, branch, channel, lock, flow, flight, cache, dispatcher), and .reason of
 * hf_scope_cancel. These are not copied and must outlive the object or scope: pass literals.
 *
 * Functions that release an object accept NULL and then do nothing: every hf_*_free, hf_value_unref, hf_key_unlock, and
 * every hf_*_close of an object that was opened or started. hf_chan_close, hf_flow_close and hf_mutex_unlock release no
 * object: NULL is HF_ERR_MISUSE.
 *
 * Releases a variable when its block is left, by any path: HF_AUTO(hf_scope_close) hf_scope *scope = NULL; */
#define HF_AUTO(release) __attribute__((cleanup(release##_auto)))
#define HF_AUTO_DEFINE(release, type)             \
    static inline void release##_auto(type **ptr) \
    {                                             \
        if (*ptr != NULL) {                       \
            (void)release(*ptr);                  \
        }                                         \
    }

/* Forwards a failure to the caller; the only macro that returns. */
#define HF_TRY(call)                       \
    do {                                   \
        hf_status hf_try_status_ = (call); \
        if (hf_try_status_ != HF_OK) {     \
            return hf_try_status_;         \
        }                                  \
    } while (0)

/* Drops a status that does not matter; say why in a comment. A cast to (void) is not enough for gcc. */
#define HF_IGNORE(call)                        \
    do {                                       \
        hf_status hf_ignored_status_ = (call); \
        (void)hf_ignored_status_;              \
    } while (0)

/* For main(): prints the sentence of a failure and ends the program with code 1. */
#define HF_OR_DIE(call)                    \
    do {                                   \
        hf_status hf_die_status_ = (call); \
        if (hf_die_status_ != HF_OK) {     \
            hf_die(hf_die_status_, #call); \
        }                                  \
    } while (0)

HF_BEGIN_DECLS

/* The version of the library that is linked, such as "0.1.0". Compare with HF_VERSION_TEXT of the header. */
HF_API const char *hf_version(void);

HF_END_DECLS

#endif
