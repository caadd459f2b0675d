/* Cuts the power of a mounted ext4: `kernel_cut FOLDER`. From then on the file system writes nothing, neither data nor its
 * journal, so that the device below it holds what a power cut at this moment would have left. Needs root. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* As in the kernel's fs/ext4/ext4.h; XFS and F2FS have the same number. The headers for programs do not declare it everywhere. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
enum { NO_LOG_FLUSH = 2 };

int main(int argc, char **argv)
{
    uint32_t how = NO_LOG_FLUSH;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: kernel_cut FOLDER\n");
        return 2;
    }
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || ioctl(folder, SHUTDOWN, &how) != 0) {
        (void)fprintf(stderr, "kernel_cut: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    return 0;
}
