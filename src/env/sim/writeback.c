/* A sync of the simulated disk writes the pages that were changed since the last sync, even if that one failed.
 *
 * A sync fails as on Linux. Each page that was to be written gets to the disk or not; none is
 * tried again, reads still show all of them, and the next sync succeeds. Only a new write to a page makes it count
 * again. The error is reported once to every descriptor that is open, and to one that is opened later if nobody has
 * heard of it. */
#include "env/sim/sim_private.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_LEN = 4096 };

static size_t pages_of(size_t len)
{
    return (len + PAGE_LEN - 1) / PAGE_LEN;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool hf_sim_pages_touch(hf_sim_file *file, size_t offset, size_t end)
{
    size_t count = pages_of(end);
    if (count > file->page_capacity) {
        bool *is_dirty = (bool *)realloc(file->is_dirty, 2 * count * sizeof *is_dirty);
        if (is_dirty == NULL) {
            return false;
        }
        memset(is_dirty + file->page_capacity, 0, (2 * count - file->page_capacity) * sizeof *is_dirty);
        file->is_dirty = is_dirty;
        file->page_capacity = 2 * count;
    }
    for (size_t i = offset / PAGE_LEN; i < count && offset < end; i++) {
        file->is_dirty[i] = true;
    }
    return true;
}

void hf_sim_pages_clean(hf_sim_file *file)
{
    if (file->page_capacity > 0) {
        memset(file->is_dirty, 0, file->page_capacity * sizeof *file->is_dirty);
    }
}

static bool is_page_dirty(const hf_sim_file *file, size_t page)
{
    return page < file->page_capacity && file->is_dirty[page];
}

/* Writes the page of `now` to the disk image, which is at least as long as the file. */
static void write_page(hf_sim_file *file, size_t page)
{
    hf_assert(page * PAGE_LEN < file->now.len && file->now.len <= file->synced.len);
    size_t at = page * PAGE_LEN;
    size_t end = least(at + PAGE_LEN, file->now.len);
    memcpy(file->synced.bytes + at, file->now.bytes + at, end - at);
}

bool hf_sim_pages_sync(hf_sim_file *file)
{
    if (!hf_sim_image_resize(&file->synced, file->now.len)) {
        return false;
    }
    for (size_t i = 0; i < pages_of(file->now.len); i++) {
        if (is_page_dirty(file, i)) {
            write_page(file, i);
        }
    }
    hf_sim_pages_clean(file);
    file->is_durable = true;
    return true;
}

/* The new length may reach the disk without the new bytes: these are then zeros. */
void hf_sim_pages_drop(hf_sim *sim, hf_sim_file *file)
{
    size_t len = file->synced.len > file->now.len ? file->synced.len : file->now.len;
    size_t kept = file->synced.len;
    bool fits = hf_sim_image_resize(&file->synced, len);
    for (size_t i = 0; i < pages_of(file->now.len) && fits; i++) {
        if (is_page_dirty(file, i) && hf_rng_below(&sim->rng, 8) < 3) {
            size_t end = least((i + 1) * PAGE_LEN, file->now.len);
            write_page(file, i);
            kept = kept > end ? kept : end;
        }
    }
    if (fits && hf_rng_below(&sim->rng, 2) == 0) {
        file->synced.len = kept;
    }
    hf_sim_pages_clean(file);
    file->errors++;
    file->is_told = false;
}

void hf_sim_pages_forget(hf_sim_file *file)
{
    for (size_t i = 0; i < pages_of(file->now.len) && file->errors > 0; i++) {
        size_t at = i * PAGE_LEN;
        size_t len = least(PAGE_LEN, file->now.len - at);
        size_t safe = at < file->synced.len ? least(len, file->synced.len - at) : 0;
        if (!is_page_dirty(file, i)) {
            memset(file->now.bytes + at + safe, 0, len - safe);
            if (safe > 0) {
                memcpy(file->now.bytes + at, file->synced.bytes + at, safe);
            }
        }
    }
    file->errors = 0;
    file->is_told = false;
}
