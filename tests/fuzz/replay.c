/* A fuzz target without libFuzzer: `fuzz_replay_NAME FOLDER...` gives every file of the folders to the target, in the order
 * of their names, and prints how many there were. A target that fails ends the process, after the name of the file. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>

static void feed(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    uint8_t *bytes = NULL;
    size_t len = 0;
    size_t got = 0;
    do {
        bytes = realloc(bytes, len + 65536);
        got = bytes != NULL ? fread(bytes + len, 1, 65536, file) : 0;
        len += got;
    } while (got > 0);
    (void)fclose(file);
    uint8_t *exact = realloc(bytes, len > 0 ? len : 1);
    (void)fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_type != DT_DIR;
}

/* How many files there were; -1: there is no such folder. */
static int feed_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_file, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        feed(path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = feed_folder(argv[i]);
        total += count > 0 ? count : 0; /* a target may have no past crashes, and then no folder for them */
    }
    printf("%d inputs\n", total);
    if (total == 0) {
        (void)fprintf(stderr, "there is nothing to replay\n");
    }
    return total > 0 ? 0 : 1;
}
