/* What a depot costs, beside what it is made of: hf_cond, hf_flow, SQLite. Hits are measured by bench/cache.
 *
 *   depot PART FOLDER [COUNT]     storm, watch, land, file; files are made in FOLDER
 *
 * The exit code says only whether something could be measured, never how fast it was. */
#include "depot/parts.h"

#include <sys/stat.h>

void fail(const char *what)
{
    (void)fprintf(stderr, "bench/depot: %s\n", what);
    exit(1);
}

void must(hf_status status, const char *what)
{
    if (status != HF_OK) {
        (void)fprintf(stderr, "bench/depot: %s: %s\n", what, hf_error_text());
        exit(1);
    }
}

hf_depot_key key_of(id *place, const char *ns, uint32_t number)
{
    memcpy(place->text, "user:00000000000", ID_LEN + 1); /* by hand: it is part of what is measured */
    for (int at = ID_LEN - 1; number > 0; at--, number /= 10) {
        place->text[at] = (char)('0' + number % 10);
    }
    return hf_depot_key_of_bytes(ns, "user", place->text, ID_LEN);
}

uint32_t shuffled(uint32_t at, uint32_t count)
{
    /* A prime larger than any count: it has no factor in common with it. */
    return (uint32_t)((uint64_t)at * UINT64_C(2654435761) % count);
}

void on_fiber(int threads, hf_body body, void *arg)
{
    hf_runtime *runtime = NULL;
    hf_scope *scope = NULL;
    must(hf_runtime_new(&runtime, .threads = threads), "no runtime");
    must(hf_scope_open(&scope, .runtime = runtime), "no scope");
    must(hf_fork(scope, body, arg), "no fiber");
    must(hf_join(scope), "a part failed");
    must(hf_scope_close(scope), "close");
    must(hf_runtime_free(runtime), "free");
}

void at_once(int count, hf_body body, void *arg)
{
    hf_scope *scope = NULL;
    must(hf_scope_open(&scope), "no scope");
    for (int i = 0; i < count; i++) {
        must(hf_fork(scope, body, arg), "no fiber");
    }
    must(hf_join(scope), "a fiber failed");
    must(hf_scope_close(scope), "close");
}

hf_status fetch_at_once(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    static const char VALUE[VALUE_LEN] = {1};
    (void)state;
    (void)request;
    return hf_reply_value(reply, VALUE, sizeof VALUE);
}

static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-lock"};

void remove_file(const char *path)
{
    char name[1100];
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, SUFFIXES[i]);
        (void)unlink(name);
    }
}

int64_t file_len(const char *path)
{
    char name[1100];
    int64_t len = 0;
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        struct stat facts;
        (void)snprintf(name, sizeof name, "%s%s", path, SUFFIXES[i]);
        len += stat(name, &facts) == 0 ? (int64_t)facts.st_size : 0;
    }
    return len;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const char *folder = argc > 2 ? argv[2] : ".";
    uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1000000;
    if (strcmp(part, "storm") == 0) {
        part_storm();
    } else if (strcmp(part, "watch") == 0) {
        part_watch();
    } else if (strcmp(part, "land") == 0) {
        part_land(folder);
    } else if (strcmp(part, "file") == 0) {
        part_file(folder, count);
    } else if (strcmp(part, "file-fill") == 0) {
        file_fill(folder, count);
    } else if (strcmp(part, "file-look") == 0) {
        file_look(folder, count);
    } else {
        fail("depot storm|watch|land|file FOLDER [COUNT]");
    }
    return 0;
}
