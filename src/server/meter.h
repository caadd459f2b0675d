/* Figures and health over HTTP/1.1, on an address of their own: GET /metrics (Prometheus' text), /livez, /readyz.
 *
 * One request per connection, each on a fiber of its own. */
#ifndef HF_SERVER_METER_H
#define HF_SERVER_METER_H

#include "base/buf.h"
#include "server/door.h"

typedef struct hf_meter hf_meter;

typedef struct hf_meter_options {
    hf_keyring *keys;                                  /* /metrics needs one of them; NULL = none. Takes a reference */
    bool is_local;                                     /* the Host of a request must be an address or localhost */
    void (*figures)(void *figures_state, hf_buf *out); /* more lines for /meter, from the caller's fiber; NULL = none */
    void *figures_state;
} hf_meter_options;

/* On a fiber, before the door, whose scope lies inside. Opens a listener and serves it until hf_meter_close; `service` must live that
 * long. `ret_address` as in hf_door_listen. */
hf_status hf_meter_open(hf_op *op, hf_service *service, const char *address, const hf_meter_options *options,
                        hf_meter **ret_meter, char *ret_address);
/* The door is open, and lives until hf_meter_drain. Before this /readyz says 503. Accepts NULL. */
void hf_meter_attach(hf_meter *meter, hf_door *door);
/* Other keys from now on, if the meter needs one; takes a reference. Accepts NULL. */
void hf_meter_renew(hf_meter *meter, hf_keyring *keys);
/* The door is about to stop: from now on /readyz says 503, and the door is not looked at any more. Accepts NULL. */
void hf_meter_drain(hf_meter *meter);
/* By the fiber that opened it. Accepts NULL. */
void hf_meter_close(hf_meter *meter);

#endif
