/* Signals for who cannot rely on fiber threads. */
#ifndef HF_FIBER_SIGNALS_H
#define HF_FIBER_SIGNALS_H

#include <holdfast/io.h>

/* Takes a signal that has come. From any thread, while nobody closes them; a fiber may wait in hf_signals_next meanwhile.
 * Never waits: HF_ERR_AGAIN. */
hf_status hf_signals_try_next(hf_signals *signals, int *ret_number);

#endif
