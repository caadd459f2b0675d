/* The service manager: readiness, the watchdog and sockets that it opened (sd_notify(3), sd_listen_fds(3)), without its library. */
#ifndef HF_MAIN_NOTIFY_H
#define HF_MAIN_NOTIFY_H

#include <holdfast/base.h>
#include <holdfast/time.h>

#include <stdbool.h>

/* Sends "READY=1" and the like to NOTIFY_SOCKET; does nothing without one. */
void hf_notify(const char *text);
/* How often the manager wants to hear WATCHDOG=1; 0 = it does not. */
hf_span hf_notify_watchdog(void);
/* How many sockets were handed over: descriptors 3, 4, ... Forgets them, so that children do not take them for theirs. */
int hf_notify_sockets(void);

#endif
