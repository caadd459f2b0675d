/* Blocks: what filters can ask of runs that have ended, gathered for runs with neighbouring numbers (docs/adr/0025).
 *
 *     block     first run of the range    the runs that had ended when it was written, an entry of some 150 bytes each
 *     summary   first run of the range    how many they are, by namespace and status; least and greatest times and numbers; a Bloom
 *                                         filter over their texts; and the other runs of the range, whose own rows must be read
 *
 * Nothing depends on a block: everything in it is in the rows of its runs, so it may be missing, and a reader that cannot read one reads the
 * rows of its range.
 *
 * ledger-E1  A block has every run of its range that has a row, or names it among the others. An entry tells what the run's own row tells.
 *     A run that has an entry is not changed without the block being deleted in the same commit.
 * ledger-E2  A value that an entry has is in the Bloom filter, and its times and numbers are within the bounds: a summary that says no is right.
 * ledger-E3  A block and its summary are written and deleted together. */
#ifndef HF_LEDGER_BLOCKS_H
#define HF_LEDGER_BLOCKS_H

#include "ledger/writes.h"
#include "proto/pb.h"
#include "run/visible.h"

#define HF_BLOCK_RUNS 1024            /* numbers of a range; a filter takes about half a millisecond for a block */
#define HF_BLOCK_ENTRY_LEN_MAX 2048   /* bytes of the texts of an entry: a run with more is one of the others */
#define HF_BLOCK_LEN_MAX (512u << 10) /* bytes of all texts: the rest are among the others */
#define HF_BLOCK_BLOOM_LEN_MAX 8192   /* bytes of the Bloom filter */
#define HF_BLOCK_STATUS_COUNT 9       /* statuses that are counted; an unknown one counts as 0 */

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

/* A block that is being made. */
typedef struct hf_block_maker {
    hf_arena arena; /* of everything */
    int64_t first, end;
    hf_pb_run_block block;
    hf_pb_block_summary summary;
    size_t text_room, count_room;
    uint64_t seeds[5];   /* of the hashes of attributes that every run has, or may have */
    uint64_t *hashes;    /* of attributes and values */
    uint64_t recent[64]; /* some of them: most runs have the type and the queue of others */
    size_t hash_count, hash_room;
    size_t len; /* bytes of texts */
    uint32_t statuses;
} hf_block_maker;

void hf_block_begin(hf_block_maker *maker, hf_allocator memory, int64_t first, int64_t end);
void hf_block_deinit(hf_block_maker *maker);
/* The next run, in the order of their numbers. True: it has an entry. False: it is one of the others, because it is open, hidden or not a workflow, or its texts
 * are too long. */
bool hf_block_add(hf_block_maker *maker, const hf_visible *run);
void hf_block_add_other(hf_block_maker *maker, int64_t run);
/* The bodies of both rows. Fails: HF_ERR_NOMEM. */
hf_status hf_block_finish(hf_block_maker *maker, uint64_t commit, hf_buf *block, hf_buf *summary);

void hf_block_put(hf_writes *writes, int64_t first, const hf_buf *block, const hf_buf *summary);
void hf_block_delete(hf_writes *writes, int64_t first);

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

/* The summary in a row; its fields lie in the row and the arena. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_summary_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_block_summary *ret_summary);
/* The runs of the block in a row, by number, without memo and first run id. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_block_open(hf_op *op, const hf_row *row, const hf_pb_block_summary *summary, hf_arena *arena,
                        hf_visible **ret_runs, size_t *ret_count);
/* Its counts of a namespace; NULL: it has no entries of it. */
const hf_pb_block_count *hf_summary_count(const hf_pb_block_summary *summary, hf_str namespace_);
/* ledger-E2: whether a run of the namespace may fit that has an entry. */
bool hf_summary_may_fit(const hf_pb_block_summary *summary, hf_str namespace_, const hf_where *where);

#endif
