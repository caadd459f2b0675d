/* How each method is asked by a service that is elsewhere (src/remote, src/open/share.c): whether it may be sent twice, and for how long. One
 * row for each method. */
#ifndef HF_SERVICE_REPEAT_H
#define HF_SERVICE_REPEAT_H

#include "service/service.h"

typedef enum hf_repeat {
    HF_REPEAT_ALWAYS, /* it changes nothing, or its token makes the second time fail */
    HF_REPEAT_BY_ID,  /* the server recognises its request id; without one it is not repeated */
    HF_REPEAT_NEVER   /* twice is not the same as once */
} hf_repeat;

typedef struct hf_manner {
    hf_repeat repeat;
    int patience_s; /* how long it is begun again; 0 = for ever */
    int attempt_s;  /* the time that the server has for one attempt */
    bool is_wait;   /* the call says how long the server shall wait: hf_call.timeout; then this is also the patience */
} hf_manner;

/* `call` is complete: whether its request has an id is looked at here. */
hf_manner hf_manner_of(const hf_call *call);

/* `now_ns` and a span, at most INT64_MAX. */
int64_t hf_later(int64_t now_ns, int64_t span_ns);
/* How long the other side may take for one attempt. */
int64_t hf_manner_attempt_span(const hf_manner *manner, const hf_call *call);
/* The time after which it is not begun again; INT64_MAX = always. */
int64_t hf_manner_patience_until(const hf_manner *manner, const hf_call *call, int64_t now_ns);

#endif
