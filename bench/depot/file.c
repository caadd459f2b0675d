/* (g) A large file: how long it is, how long it takes to open it and to invalidate all of it, what it takes in memory,
 * and what readers notice while its rows go. The file is made in a process of its own. */
#include "depot/parts.h"

#include "depot/depot_private.h"

#include <sys/wait.h>

enum { OTHERS = 60000, READS = 20000, MEMORY = 8 << 20, KEY_LEN = 6 + 5 + ID_LEN, PUTS = 31 };

typedef struct big_file {
    char path[1024];
    char url[1100];
    uint32_t count;
    hf_depot *depot;
    uint32_t next;
    const char *ns;
} big_file;

static void file_of(big_file *one, const char *folder, uint32_t count)
{
    *one = (big_file){.count = count, .ns = "bench"};
    (void)snprintf(one->path, sizeof one->path, "%s/big.db", folder);
    (void)snprintf(one->url, sizeof one->url, "sqlite:%s", one->path);
}

/* ---- Making it --------------------------------------------------------------------------------------------------- */

static hf_status get_each(void *arg)
{
    big_file *one = arg;
    while (one->next < one->count) {
        id place;
        hf_value *value = NULL;
        uint32_t number = shuffled(one->next++, one->count);
        HF_TRY(hf_depot_get(one->depot, key_of(&place, one->ns, number), &value));
        hf_value_unref(value);
    }
    return HF_OK;
}

static hf_status fill(void *arg)
{
    big_file *one = arg;
    uint32_t count = one->count;
    HF_TRY(hf_depot_open("fill", &one->depot, .fetch = fetch_at_once, .file = one->url, .fetch_max = 1000,
                         .bytes_max = MEMORY));
    at_once(1000, get_each, one);
    one->ns = "other";
    one->count = OTHERS;
    one->next = 0;
    at_once(1000, get_each, one);
    one->count = count;
    return hf_depot_close(one->depot);
}

void file_fill(const char *folder, uint32_t count)
{
    big_file one;
    file_of(&one, folder, count);
    remove_file(one.path);
    on_fiber(1, fill, &one);
}

/* ---- Looking at it ----------------------------------------------------------------------------------------------- */

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds of the 99th of 100 reads of another namespace. Each pass reads other keys, which are only in the file. */
static hf_status read_p99(hf_depot *depot, uint32_t pass, double *ret_p99)
{
    double *took = malloc(READS * sizeof *took);
    if (took == NULL) {
        return HF_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < READS; i++) {
        id place;
        hf_value *value = NULL;
        int64_t from = bench_wall_ns();
        must(hf_depot_get(depot, key_of(&place, "other", shuffled(pass * READS + i, OTHERS)), &value,
                          .fresh = HF_FRESH_LOCAL),
             "get");
        took[i] = (double)(bench_wall_ns() - from) / 1000;
        hf_value_unref(value);
    }
    qsort(took, READS, sizeof *took, by_size);
    *ret_p99 = took[READS / 100 * 99];
    free(took);
    return HF_OK;
}

/* Milliseconds of a durable put and of an invalidation: medians, in turns. */
static hf_status commit_ms(hf_depot *depot, double *ret_put, double *ret_invalidate)
{
    double puts[PUTS];
    double invalidations[PUTS];
    for (uint32_t i = 0; i < PUTS; i++) {
        id place;
        int64_t from = bench_wall_ns();
        HF_TRY(hf_depot_put(depot, key_of(&place, "third", i), "v", 1));
        int64_t between = bench_wall_ns();
        HF_TRY(hf_depot_invalidate_namespace(depot, "bench", .hard = true));
        puts[i] = (double)(between - from) / 1e6;
        invalidations[i] = (double)(bench_wall_ns() - between) / 1e6;
    }
    qsort(puts, PUTS, sizeof *puts, by_size);
    qsort(invalidations, PUTS, sizeof *invalidations, by_size);
    *ret_put = puts[PUTS / 2];
    *ret_invalidate = invalidations[PUTS / 2];
    return HF_OK;
}

/* A pass of housekeeping begins ten minutes after the last one. */
static void act_keep_house(hf_depot *depot, hf_post *post)
{
    (void)post;
    hf_depot_timer(depot, &depot->keeping.timer, hf_rt_now(depot->rt).ns);
}

static hf_status look_at_memory(big_file *one)
{
    int64_t before = bench_rss();
    int64_t from = bench_wall_ns();
    HF_TRY(hf_depot_open("big", &one->depot, .push = push, .file = one->url, .bytes_max = MEMORY));
    double open_ms = (double)(bench_wall_ns() - from) / 1e6;
    row("open", open_ms, "ms", "", NAN, open_ms, ROW_AT_MOST, 50);
    for (uint32_t i = 0; i < 50000; i++) {
        id place;
        hf_value *value = NULL;
        HF_TRY(hf_depot_get(one->depot, key_of(&place, "bench", shuffled(i, one->count)), &value,
                            .fresh = HF_FRESH_LOCAL));
        hf_value_unref(value);
    }
    double rss = (double)(bench_rss() - before - MEMORY) / (1 << 20);
    row("resident, after 50,000 reads, beside 8 MiB", rss, "MiB", "", NAN, rss, ROW_AT_MOST, 20);
    return HF_OK;
}

static hf_status look_at_invalidation(big_file *one)
{
    hf_depot *depot = one->depot;
    hf_depot_counts counts;
    double commit = 0;
    double ms = 0;
    double before = 0;
    double during = 0;
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(commit_ms(depot, &commit, &ms));
    row("invalidate its namespace", ms, "ms", "a durable put", commit, ms - commit, ROW_AT_MOST, 1);
    HF_TRY(hf_depot_trim(depot, 0));
    HF_TRY(read_p99(depot, 0, &before)); /* warms the file */
    HF_TRY(read_p99(depot, 1, &before));
    hf_post post = {.act = act_keep_house};
    hf_depot_post(depot, &post);
    HF_TRY(hf_sleep(hf_milliseconds(200)));
    HF_TRY(read_p99(depot, 2, &during));
    HF_TRY(hf_depot_stat(depot, &counts));
    row("p99 of a read while its rows go", during, "us", "before", before, during / before, ROW_AT_MOST, 1.5);
    row("  rows that went meanwhile", (double)counts.forgotten, "", "", NAN, (double)counts.forgotten, ROW_AT_LEAST, 1);
    return hf_depot_close(depot);
}

static hf_status look(void *arg)
{
    big_file *one = arg;
    HF_TRY(look_at_memory(one));
    return look_at_invalidation(one);
}

void file_look(const char *folder, uint32_t count)
{
    big_file one;
    file_of(&one, folder, count);
    on_fiber(1, look, &one);
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static void run_self(const char *part, const char *folder, uint32_t count)
{
    char self[2048] = {0};
    char number[16];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fail("no /proc/self/exe");
    }
    (void)snprintf(number, sizeof number, "%u", count);
    pid_t child = fork();
    if (child == 0) {
        (void)execl(self, self, part, folder, number, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fail("a part failed");
    }
}

void part_file(const char *folder, uint32_t count)
{
    char title[128];
    big_file one;
    file_of(&one, folder, count);
    (void)snprintf(title, sizeof title, "(g) a file of %u values of 100 B, with keys of %d B", count, KEY_LEN);
    row_head(title);
    int64_t from = bench_wall_ns();
    run_self("file-fill", folder, count);
    row("made, 1,000 at once", count / ((double)(bench_wall_ns() - from) / 1e9), "/s", "", NAN, NAN, ROW_NO_BAR, 0);
    double put_in = (double)(count + OTHERS) * (KEY_LEN + VALUE_LEN);
    row("its length", (double)file_len(one.path) / 1e6, "MB", "the bytes put in", put_in / 1e6,
        (double)file_len(one.path) / put_in, ROW_AT_MOST, 1.3);
    run_self("file-look", folder, count);
    remove_file(one.path);
}
