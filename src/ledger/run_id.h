/* Run ids are UUIDs that hold the run's number, hidden by the store's key: the run of an id is found without an index. */
#ifndef HF_LEDGER_RUN_ID_H
#define HF_LEDGER_RUN_ID_H

#include "base/arena.h"
#include "base/siphash.h"

/* `chance` makes the ids of two lives of a store different. NULL data: the arena has no memory. */
hf_str hf_run_id_make(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_arena *arena, uint64_t chance,
                      int64_t number);
/* 0: not a UUID. Another store's id gives any number: the run that is found says whether it has this id. */
int64_t hf_run_id_number(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_str run_id);

#endif
