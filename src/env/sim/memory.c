/* Memory of a simulated run: the host's malloc and mmap, with a switch that makes the nth request fail, and a table of
 * the blocks that are not released yet. The table costs a few nanoseconds per call and has three uses: a release of an
 * unknown block, or with a wrong length, stops the process at once; a test can ask whether anything leaked; and all
 * memory of a run that was called off can be freed.
 *
 * Released memory is filled with POISON and kept for a while (scrap). A thread that still reads it finds pointers
 * that fault and locks that are neither free nor held; one that writes to it is found out when the block is given
 * back to the host. AddressSanitizer does the same and names the very access, so its builds leave this to it. */
#include "env/sim/sim_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum { BLOCKS_FIRST = 256, POISON = 0xdb };

/* ---- The table ---- */

bool hf_sim_may_allocate(hf_sim *sim)
{
    sim->allocations++;
    if (HF_LIKELY(sim->fail_at == 0 || sim->allocations < sim->fail_at)) {
        return true;
    }
    bool fails = sim->fail_forever || sim->allocations == sim->fail_at;
    if (fails) {
        hf_sim_trace(sim, HF_SIM_TRACE_ALLOCATE, sim->allocations);
    }
    return !fails;
}

static uint32_t slot_of(const hf_sim *sim, const void *ptr)
{
    uint64_t hash = ((uint64_t)(uintptr_t)ptr >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) & (sim->block_capacity - 1);
}

static void block_insert(hf_sim *sim, hf_sim_block block)
{
    uint32_t slot = slot_of(sim, block.ptr);
    while (sim->blocks[slot].ptr != NULL) {
        slot = (slot + 1) & (sim->block_capacity - 1);
    }
    sim->blocks[slot] = block;
}

/* Room for one more, at most half full. False = no memory. */
static bool block_reserve(hf_sim *sim)
{
    if (sim->block_count * 2 < sim->block_capacity) {
        return true;
    }
    hf_sim_block *old = sim->blocks;
    uint32_t old_capacity = sim->block_capacity;
    uint32_t capacity = old_capacity == 0 ? BLOCKS_FIRST : old_capacity * 2;
    hf_sim_block *blocks = (hf_sim_block *)calloc(capacity, sizeof *blocks);
    if (blocks == NULL) {
        return false;
    }
    sim->blocks = blocks;
    sim->block_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].ptr != NULL) {
            block_insert(sim, old[i]);
        }
    }
    free(old);
    return true;
}

/* Closes the gap: later entries of the same run move up unless their own slot lies behind it. */
static void block_remove(hf_sim *sim, const void *ptr, size_t len, bool is_pages)
{
    hf_assert(sim->block_count > 0); /* a block that was never allocated, or was released already */
    uint32_t mask = sim->block_capacity - 1;
    uint32_t gap = slot_of(sim, ptr);
    while (sim->blocks[gap].ptr != ptr) {
        hf_assert(sim->blocks[gap].ptr != NULL); /* the same */
        gap = (gap + 1) & mask;
    }
    hf_assert(sim->blocks[gap].len == len && sim->blocks[gap].is_pages == is_pages);
    for (uint32_t slot = (gap + 1) & mask; sim->blocks[slot].ptr != NULL; slot = (slot + 1) & mask) {
        uint32_t own = slot_of(sim, sim->blocks[slot].ptr);
        if (((slot - own) & mask) >= ((slot - gap) & mask)) {
            sim->blocks[gap] = sim->blocks[slot];
            gap = slot;
        }
    }
    sim->blocks[gap].ptr = NULL;
    sim->block_count--;
}

/* ---- Scrap ---- */

static void check_untouched(const hf_sim_block *block)
{
    const unsigned char *bytes = (const unsigned char *)block->ptr;
    bool is_untouched = block->len == 0 || (bytes[0] == POISON && memcmp(bytes, bytes + 1, block->len - 1) == 0);
    if (HF_UNLIKELY(!is_untouched)) {
        size_t at = 0;
        while (bytes[at] == POISON) {
            at++;
        }
        char text[128];
        (void)snprintf(text, sizeof text, "byte %zu of a block of %zu bytes was written to after its release", at,
                       block->len);
        hf_panic(text, __FILE__, __LINE__);
    }
}

/* Gives the oldest back to the host. */
static void scrap_drop_first(hf_sim *sim)
{
    hf_sim_block *block = &sim->scrap[sim->scrap_first];
    check_untouched(block);
    free(block->ptr);
    sim->scrap_len -= block->len;
    sim->scrap_first = (sim->scrap_first + 1) % HF_SIM_SCRAP_COUNT_MAX;
    sim->scrap_count--;
}

void hf_sim_scrap(hf_sim *sim, void *ptr, size_t len)
{
    if (HF_ASAN) {
        free(ptr);
        return;
    }
    memset(ptr, POISON, len);
    while (sim->scrap_count > 0 &&
           (sim->scrap_count == HF_SIM_SCRAP_COUNT_MAX || sim->scrap_len + len > HF_SIM_SCRAP_LEN_MAX)) {
        scrap_drop_first(sim);
    }
    uint32_t last = (sim->scrap_first + sim->scrap_count) % HF_SIM_SCRAP_COUNT_MAX;
    sim->scrap[last] = (hf_sim_block){ptr, len, false};
    sim->scrap_count++;
    sim->scrap_len += len;
}

void hf_sim_scrap_drop(hf_sim *sim)
{
    while (sim->scrap_count > 0) {
        scrap_drop_first(sim);
    }
}

/* ---- Blocks and pages ---- */

void *hf_sim_allocate(hf_env *env, size_t len, size_t align)
{
    hf_sim *sim = hf_sim_of(env);
    if (!hf_sim_may_allocate(sim) || !block_reserve(sim)) {
        return NULL;
    }
    void *ptr = NULL;
    size_t size = len > 0 ? len : 1;
    if (align <= _Alignof(max_align_t)) {
        ptr = malloc(size);
    } else if (posix_memalign(&ptr, align, size) != 0) {
        ptr = NULL;
    }
    if (ptr != NULL) {
        block_insert(sim, (hf_sim_block){ptr, len, false});
        sim->block_count++;
    }
    return ptr;
}

void hf_sim_release(hf_env *env, void *ptr, size_t len)
{
    if (ptr != NULL) {
        hf_sim *sim = hf_sim_of(env);
        block_remove(sim, ptr, len, false);
        hf_sim_scrap(sim, ptr, len);
    }
}

void *hf_sim_pages_reserve(hf_env *env, size_t len)
{
    hf_sim *sim = hf_sim_of(env);
    if (!hf_sim_may_allocate(sim) || !block_reserve(sim)) {
        return NULL;
    }
    void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    block_insert(sim, (hf_sim_block){pages, len, true});
    sim->block_count++;
    return pages;
}

void hf_sim_pages_release(hf_env *env, void *pages, size_t len)
{
    if (pages != NULL) {
        block_remove(hf_sim_of(env), pages, len, true);
        (void)munmap(pages, len);
    }
}

void hf_sim_heap_trim(hf_env *env)
{
    hf_sim_of(env)->heap_trims++;
}

void hf_sim_pages_discard(hf_env *env, void *pages, size_t len)
{
    (void)env;
    (void)madvise(pages, len, MADV_DONTNEED);
}

hf_guard_kind hf_sim_pages_guard(hf_env *env, void *pages, size_t len, hf_guard_kind kind)
{
    hf_guard_kind used = HF_GUARD_NONE;
    if ((kind == HF_GUARD_BEST || kind == HF_GUARD_MARKER) && madvise(pages, len, MADV_GUARD_INSTALL) == 0) {
        used = HF_GUARD_MARKER;
    } else if ((kind == HF_GUARD_BEST || kind == HF_GUARD_PROTECT) && mprotect(pages, len, PROT_NONE) == 0) {
        used = HF_GUARD_PROTECT;
    }
    hf_sim_of(env)->counters.guards += used != HF_GUARD_NONE ? 1 : 0;
    return used;
}

/* Not supported: the result would depend on the machine and the compiler. */
bool hf_sim_pages_touched(hf_env *env, void *pages, size_t len, unsigned char *ret_touched)
{
    (void)env;
    (void)pages;
    (void)len;
    (void)ret_touched;
    return false;
}

/* A plain word: a simulation does not survive fork() anyway. */
hf_word *hf_sim_fork_marker_open(hf_env *env)
{
    hf_word *marker = (hf_word *)hf_sim_allocate(env, sizeof *marker, _Alignof(hf_word));
    if (marker != NULL) {
        atomic_init(marker, 1);
    }
    return marker;
}

void hf_sim_fork_marker_close(hf_env *env, hf_word *marker)
{
    hf_sim_release(env, marker, sizeof(hf_word));
}

/* Frees the memory of a run that was called off: its test cannot free it. After any other run the blocks that are left
 * stay allocated, so that a leak checker sees them. */
void hf_sim_blocks_drop(hf_sim *sim)
{
    for (uint32_t i = 0; sim->is_over && i < sim->block_capacity; i++) {
        hf_sim_block *block = &sim->blocks[i];
        if (block->ptr != NULL && block->is_pages) {
            (void)munmap(block->ptr, block->len);
        } else {
            free(block->ptr);
        }
    }
    free(sim->blocks);
}

void hf_sim_fail_allocation(hf_env *env, uint64_t nth, bool forever)
{
    hf_sim *sim = hf_sim_of(env);
    sim->fail_at = nth > 0 ? sim->allocations + nth : 0;
    sim->fail_forever = forever;
}

uint64_t hf_sim_allocations(const hf_env *env)
{
    return hf_sim_of_const(env)->allocations;
}

uint64_t hf_sim_allocations_live(const hf_env *env)
{
    return hf_sim_of_const(env)->block_count;
}
