/* Signals for the library's own use: a signal with several receivers, and reading without waiting. */
#ifndef HF_FIBER_SIGNALS_H
#define HF_FIBER_SIGNALS_H

#include <holdfast/io.h>

/* Like hf_os_signals_open, but several callers in the process may open the same signal, and each of them receives it.
 * By a fiber. Fails: HF_ERR_EXISTS (a caller has opened it with hf_os_signals_open), HF_ERR_INVALID, HF_ERR_LIMIT,
 * HF_ERR_NOMEM. */
hf_status hf_os_signals_share(hf_os_signals **ret_signals, int number);
/* Takes a signal that has come. From any thread, while nobody closes them; a fiber may wait in hf_os_signals_next
 * meanwhile. Never waits: HF_ERR_AGAIN. */
hf_status hf_os_signals_try_next(hf_os_signals *signals, int *ret_number);

#endif
