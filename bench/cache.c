/* What a hit of a cache costs, how much memory an entry takes, and how often there is a hit. Each figure is beside that
 * of the least that is needed for it (the floor), and of other caches.
 *
 *   cache [hit|bytes|ratio] [SECONDS] [PEERS]     all of them, 1 second a sample
 *   cache draw FOLDER                             writes the requests of `hit`, for programs in other languages
 *   cache memcached SOCKET PID                    what an entry takes there, and how long a get takes
 *
 * PEERS is a file of such programs' figures, lines of "metric<TAB>value" (bench/depot.sh makes it). The floor is an
 * open-addressing table of pointers to blocks with a count, the key and the value in one. A hit is a probe, a
 * comparison, and the count up and down. Nothing can leave it, so it needs no protection. */
#include "cache/parts.h"

hf_runtime *runtime;
static const char *peers_file; /* NULL = none */

void fail(const char *what)
{
    (void)fprintf(stderr, "bench/cache: %s\n", what);
    exit(1);
}

void key_of(uint32_t number, char ret_key[KEY_LEN])
{
    char text[KEY_LEN + 1];
    (void)snprintf(text, sizeof text, "user:%011u", number);
    memcpy(ret_key, text, KEY_LEN);
}

double peer(const char *metric)
{
    FILE *file = peers_file != NULL ? fopen(peers_file, "re") : NULL;
    char line[256];
    double found = NAN;
    size_t len = strlen(metric);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, metric, len) == 0 && line[len] == '\t') {
            found = strtod(line + len + 1, NULL);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    peers_file = argc > 3 ? argv[3] : NULL;
    if (strcmp(mode, "draw") == 0 && argc > 2) {
        draw_for_others(argv[2]);
        return 0;
    }
    if (strcmp(mode, "memcached") == 0 && argc > 3) {
        part_memcached(argv[2], strtol(argv[3], NULL, 10));
        return 0;
    }
    if (hf_runtime_new(&runtime, .threads = 2) != HF_OK) {
        fail("no runtime");
    }
    if (strncmp(mode, "bytes-", 6) == 0) {
        bytes_row_number(strtoul(mode + 6, NULL, 10));
        return 0;
    }
    if (*mode == '\0' || strcmp(mode, "hit") == 0) {
        part_hit(seconds);
    }
    if (*mode == '\0' || strcmp(mode, "bytes") == 0) {
        part_bytes();
    }
    if (*mode == '\0' || strcmp(mode, "ratio") == 0) {
        part_ratio();
    }
    return hf_runtime_free(runtime) == HF_OK ? 0 : 1;
}
