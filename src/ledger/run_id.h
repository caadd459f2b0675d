/* Run ids are UUIDs that hold the run's number, hidden by the store's key: the run of an id is found without an index. */
#ifndef HF_LEDGER_RUN_ID_H
#define HF_LEDGER_RUN_ID_H

#include "base/arena.h"
#include "base/siphash.h"

/* `chance`: random bits, so that two openings of a store make different ids. NULL data: the arena has no memory. */
hf_str hf_run_id_make(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_arena *arena, uint64_t chance,
                      int64_t number);
/* 0: not a UUID. The id of another store gives some number: the caller must compare the id of the run it finds. */
int64_t hf_run_id_number(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_str run_id);

#endif
