/* Memory: the heap, pages for stacks with their guards, and the word that tells a forked process apart.
 *
 * A guard of the kind MARKER is an entry in the page table (Linux 6.13): it costs no mapping, so a million guarded
 * stacks fit under vm.max_map_count. A guard of the kind PROTECT splits its mapping. Some emulators accept every
 * advice and do nothing; therefore the first marker is tried on a page of our own, by asking the kernel to write
 * there. */
#include "env/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#define MAPPINGS_MAX_DEFAULT 65530 /* the kernel's own default, when /proc cannot be read */

void *hf_posix_allocate(hf_env *env, size_t len, size_t align)
{
    (void)env;
    hf_assert((align & (align - 1)) == 0 || align == 0);
    if (align <= _Alignof(max_align_t)) {
        return malloc(len > 0 ? len : 1);
    }
    size_t rounded = (len + align - 1) & ~(align - 1);
    if (rounded < len) {
        return NULL;
    }
    return aligned_alloc(align, rounded > 0 ? rounded : align);
}

void hf_posix_release(hf_env *env, void *ptr, size_t len)
{
    (void)env;
    (void)len;
    free(ptr);
}

void *hf_posix_pages_reserve(hf_env *env, size_t len)
{
    (void)env;
    void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    /* A huge page would make the first touch of a stack cost 2 MiB. Kernels without huge pages refuse, which is fine. */
    (void)madvise(pages, len, MADV_NOHUGEPAGE);
    return pages;
}

void hf_posix_pages_release(hf_env *env, void *pages, size_t len)
{
    (void)env;
    if (pages != NULL) {
        int result = munmap(pages, len);
        /* Taking a piece out of a mapping may need one mapping more than the process may have; the memory at least
         * goes back. */
        if (result != 0) {
            (void)madvise(pages, len, MADV_DONTNEED);
        }
    }
}

/* The heap of glibc keeps what was freed between blocks that are in use; others give it back by themselves, or never. */
void hf_posix_heap_trim(hf_env *env)
{
    (void)env;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void hf_posix_pages_discard(hf_env *env, void *pages, size_t len)
{
    (void)env;
    (void)madvise(pages, len, MADV_DONTNEED);
}

/* True when a marker really makes the kernel refuse the page. */
static bool try_marker(void)
{
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    bool works = madvise(page, len, MADV_GUARD_INSTALL) == 0 && syscall(SYS_getrandom, page, (size_t)1, 0) == -1 &&
                 errno == EFAULT;
    (void)munmap(page, len);
    return works;
}

static bool has_markers(void)
{
    static atomic_int known; /* 0 = not tried yet, 1 = no, 2 = yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = try_marker() ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

hf_guard_kind hf_posix_pages_guard(hf_env *env, void *pages, size_t len, hf_guard_kind kind)
{
    (void)env;
    hf_assert(((uintptr_t)pages & 4095) == 0 && len > 0);
    if ((kind == HF_GUARD_BEST || kind == HF_GUARD_MARKER) && has_markers() &&
        madvise(pages, len, MADV_GUARD_INSTALL) == 0) {
        return HF_GUARD_MARKER;
    }
    if ((kind == HF_GUARD_BEST || kind == HF_GUARD_PROTECT) && mprotect(pages, len, PROT_NONE) == 0) {
        return HF_GUARD_PROTECT;
    }
    return HF_GUARD_NONE;
}

bool hf_posix_pages_touched(hf_env *env, void *pages, size_t len, unsigned char *ret_touched)
{
    (void)env;
    if (sysconf(_SC_PAGESIZE) != 4096 || mincore(pages, len, ret_touched) != 0) {
        return false;
    }
    for (size_t i = 0; i < len / 4096; i++) {
        ret_touched[i] &= 1; /* the other bits are the kernel's */
    }
    return true;
}

int64_t hf_posix_mappings_max(hf_env *env)
{
    (void)env;
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return MAPPINGS_MAX_DEFAULT;
    }
    char text[32] = {0};
    ssize_t len = read(fd, text, sizeof text - 1);
    (void)close(fd);
    long long count = len > 0 ? strtoll(text, NULL, 10) : 0;
    return count > 0 ? (int64_t)count : MAPPINGS_MAX_DEFAULT;
}

hf_word *hf_posix_fork_marker_open(hf_env *env)
{
    (void)env;
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return NULL;
    }
    if (madvise(page, len, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, len);
        return NULL;
    }
    hf_word *marker = page;
    atomic_init(marker, 1);
    return marker;
}

void hf_posix_fork_marker_close(hf_env *env, hf_word *marker)
{
    (void)env;
    if (marker != NULL) {
        (void)munmap((void *)(uintptr_t)marker, (size_t)sysconf(_SC_PAGESIZE));
    }
}
