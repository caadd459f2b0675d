/* hf_tempo: how many activities a worker begins in a second.
 *
 * A bucket of tokens, one for each activity that may begin: as many as the rate allows in a second, and at least one. A
 * poll takes a token before it asks, so that no task is taken that would have to wait here while its time runs. A poll
 * that brings no task gives its token back.
 *
 * The bucket is one number, as in engine/queue_rate.c: the time at which it is full if no poll holds a token. Each task
 * moves that time by the interval between two tokens.
 *
 * worker-P1  Polls hold fewer tokens than the bucket has, or all of them: hf_tempo_pollers bounds the pollers. So in any T
 *     seconds at most capacity + rate * T activities begin. */
#ifndef HF_WORKER_TEMPO_H
#define HF_WORKER_TEMPO_H

#include "base/op.h"
#include "base/spin.h"

typedef struct hf_tempo {
    hf_spin lock;
    int64_t interval; /* ns between two tokens; 0 = there is no limit */
    int capacity;     /* tokens of a full bucket */
    int held;         /* tokens that polls hold */
    int64_t full_at;  /* mono: when those that were spent are there again */
} hf_tempo;

/* Fails: HF_ERR_INVALID. `whose` and `what` name the option. */
hf_status hf_tempo_check(hf_op *op, const char *whose, const char *what, double rate);
void hf_tempo_init(hf_tempo *tempo, double rate);
/* How many polls may be under way at once, at most `max`. */
int hf_tempo_pollers(const hf_tempo *tempo, int max);
/* Takes a token. 0: it is the caller's; else the time in ns after which to ask again. */
int64_t hf_tempo_take(hf_tempo *tempo, int64_t now);
/* The poll is over: its token was spent for a task, or is given back. */
void hf_tempo_settle(hf_tempo *tempo, int64_t now, bool is_spent);

#endif
