/* For ./dev doctor: prints which kernel features that the library can use are there. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define MEMBARRIER_QUERY 0
#define MEMBARRIER_PRIVATE_EXPEDITED 8

static void tell(const char *feature, int is_there, const char *without)
{
    printf("  %-24s %s%s\n", feature, is_there ? "yes" : "no: ", is_there ? "" : without);
}

static int has_guard_markers(void)
{
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return 0;
    }
    int is_there = madvise(page, len, MADV_GUARD_INSTALL) == 0;
    (void)munmap(page, len);
    return is_there;
}

int main(void)
{
    tell("MADV_GUARD_INSTALL", has_guard_markers(), "stacks are guarded with mprotect, up to half of vm.max_map_count");
    long barriers = syscall(SYS_membarrier, MEMBARRIER_QUERY, 0, 0);
    tell("membarrier", barriers > 0 && (barriers & MEMBARRIER_PRIVATE_EXPEDITED) != 0, "slower fallbacks are used");
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    tell("pidfd_open", fd >= 0, "child processes need it (Linux 5.3)");
    return 0;
}
