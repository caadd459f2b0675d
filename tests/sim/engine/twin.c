/* The contents that a store should have after each commit: a store in memory gets the same commits, and is hashed after
 * each. A commit that was lost with its process is followed by another one of the same number: then the twin is made
 * again from the commits before it. If an opening finds that the lost one became complete, it takes its place again. */
#include "sim/engine/disk.h"

#include "support/support.h"

#include <stdlib.h>

typedef struct twin_commit twin_commit;
struct twin_commit {
    hf_write *writes; /* in the arena, with their keys and values */
    size_t count;
    uint64_t hash;           /* of the contents after it */
    const twin_commit *lost; /* the one that had its number before; in the arena */
};

struct sim_twin {
    hf_store *store;
    hf_arena arena;
    SIM_VEC(twin_commit) commits; /* the first is number 1 */
    uint64_t hash_empty;          /* before the first */
};

static uint64_t hash_of(const sim_twin *twin)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    HF_CHECK(hf_store_hash(&op, twin->store, sim_heap, &hash) == HF_OK);
    return hash;
}

static void open_store(sim_twin *twin)
{
    hf_op op;
    hf_op_init(&op);
    HF_CHECK(hf_mem_store_open(&op, sim_heap, NULL, &twin->store) == HF_OK);
}

sim_twin *sim_twin_new(void)
{
    sim_twin *twin = calloc(1, sizeof *twin);
    if (twin == NULL) {
        abort();
    }
    hf_arena_init(&twin->arena, sim_heap);
    open_store(twin);
    twin->hash_empty = hash_of(twin);
    return twin;
}

void sim_twin_free(sim_twin *twin)
{
    hf_store_close(twin->store);
    hf_arena_deinit(&twin->arena);
    free(twin->commits.items);
    free(twin);
}

static void apply(const sim_twin *twin, uint64_t number)
{
    const twin_commit *commit = &twin->commits.items[number - 1];
    hf_store_request same = {
        .verb = HF_STORE_COMMIT, .commit = number, .writes = commit->writes, .write_count = commit->count};
    hf_op_init(&same.op);
    hf_store_execute(twin->store, &same);
    HF_CHECK_SAY(same.status == HF_OK, "%s", same.op.message);
}

/* All commits from `number` on were lost. */
static void rewind_to(sim_twin *twin, uint64_t number)
{
    hf_store_close(twin->store);
    open_store(twin);
    twin->commits.count = number - 1;
    for (uint64_t i = 1; i < number; i++) {
        apply(twin, i);
    }
}

static twin_commit copy(sim_twin *twin, const hf_store_request *request)
{
    twin_commit made = {.count = request->write_count};
    size_t len = sizeof *made.writes * (request->write_count + 1);
    made.writes = hf_arena_take(&twin->arena, len, _Alignof(hf_write));
    for (size_t i = 0; made.writes != NULL && i < made.count; i++) {
        made.writes[i] = request->writes[i];
        made.writes[i].key.text = hf_arena_copy(&twin->arena, request->writes[i].key.text);
        made.writes[i].key_end.text = hf_arena_copy(&twin->arena, request->writes[i].key_end.text);
        made.writes[i].value = hf_arena_copy(&twin->arena, request->writes[i].value);
    }
    hf_assert(made.writes != NULL && twin->arena.status == HF_OK);
    return made;
}

void sim_twin_commit(sim_twin *twin, const hf_store_request *request)
{
    twin_commit *lost = NULL;
    if (request->commit <= twin->commits.count) {
        lost = hf_arena_take(&twin->arena, sizeof *lost, _Alignof(twin_commit));
        hf_assert(lost != NULL);
        *lost = twin->commits.items[request->commit - 1];
        rewind_to(twin, request->commit);
    }
    hf_assert(request->commit == twin->commits.count + 1);
    twin_commit made = copy(twin, request);
    made.lost = lost;
    *SIM_PUSH(&twin->commits) = made;
    apply(twin, request->commit);
    twin->commits.items[request->commit - 1].hash = hash_of(twin);
}

uint64_t sim_twin_hash(const sim_twin *twin, uint64_t commit)
{
    hf_assert(commit <= twin->commits.count);
    return commit == 0 ? twin->hash_empty : twin->commits.items[commit - 1].hash;
}

static const twin_commit *find_lost(const sim_twin *twin, uint64_t commit, uint64_t hash)
{
    hf_assert(commit <= twin->commits.count);
    const twin_commit *lost = commit == 0 ? NULL : twin->commits.items[commit - 1].lost;
    while (lost != NULL && lost->hash != hash) {
        lost = lost->lost;
    }
    return lost;
}

bool sim_twin_has_lost(const sim_twin *twin, uint64_t commit, uint64_t hash)
{
    return find_lost(twin, commit, hash) != NULL;
}

void sim_twin_find(sim_twin *twin, uint64_t commit, uint64_t hash)
{
    const twin_commit *lost = find_lost(twin, commit, hash);
    hf_assert(lost != NULL);
    rewind_to(twin, commit);
    *SIM_PUSH(&twin->commits) = *lost;
    apply(twin, commit);
    HF_CHECK(hash_of(twin) == hash);
}
