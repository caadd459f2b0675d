/* The memory store: the simplest backend, for tests and for engines that need not keep their data. Commits last as long as the
 * object lives. */
#ifndef HF_STORE_MEM_H
#define HF_STORE_MEM_H

#include "store/store.h"

/* `tables`: the set of tables, NULL = the engine's. Fails: HF_ERR_NOMEM. */
hf_status hf_mem_store_open(hf_op *op, hf_allocator memory, const hf_table_set *tables, hf_store **ret_store);

#endif
