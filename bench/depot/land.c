/* (f) The file of a depot: values that are fetched land in it, writes are made durable in it, values that are not in
 * memory are read from it. Beside it: SQLite does the same with the same rows. By the clock, because the depot has a
 * thread for the file. */
#include "depot/parts.h"

typedef struct landing {
    const char *path;
    int at_once;   /* fibers that each ask for one after the other; raw: rows of a transaction */
    uint32_t rows; /* in all */
    hf_depot *depot;
    uint32_t next;
    double seconds;
    int record_len, pending_len;
} landing;

enum { ROUNDS = 3, READS = 20000, READ_ROWS = 100000 };

/* ---- Landings ---------------------------------------------------------------------------------------------------- */

static hf_status get_each(void *arg)
{
    landing *all = arg;
    while (all->next < all->rows) {
        id place;
        hf_value *value = NULL;
        uint32_t number = shuffled(all->next++, all->rows);
        HF_TRY(hf_depot_get(all->depot, key_of(&place, "bench", number), &value));
        hf_value_unref(value);
    }
    return HF_OK;
}

static hf_status land(void *arg)
{
    landing *all = arg;
    char url[1100];
    (void)snprintf(url, sizeof url, "sqlite:%s", all->path);
    HF_TRY(hf_depot_open("land", &all->depot, .fetch = fetch_at_once, .file = url, .fetch_max = 4096));
    all->next = 0;
    int64_t from = bench_wall_ns();
    at_once(all->at_once, get_each, all);
    all->seconds = fmin(all->seconds, (double)(bench_wall_ns() - from) / 1e9);
    return hf_depot_close(all->depot);
}

static void land_raw(landing *all)
{
    raw one;
    raw_open(&one, all->path, false);
    int64_t from = bench_wall_ns();
    for (uint32_t i = 0; i < all->rows;) {
        raw_step(&one, one.begin);
        for (int j = 0; j < all->at_once && i < all->rows; j++, i++) {
            raw_put_entry(&one, shuffled(i, all->rows), all->record_len);
        }
        raw_step(&one, one.commit);
    }
    all->seconds = fmin(all->seconds, (double)(bench_wall_ns() - from) / 1e9);
    raw_close(&one);
}

/* ---- Durable puts ------------------------------------------------------------------------------------------------ */

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_OK;
}

static hf_status put_each(void *arg)
{
    static const char VALUE[VALUE_LEN] = {1};
    landing *all = arg;
    while (all->next < all->rows) {
        id place;
        uint32_t number = shuffled(all->next++, all->rows);
        HF_TRY(hf_depot_put(all->depot, key_of(&place, "bench", number), VALUE, sizeof VALUE));
    }
    return HF_OK;
}

static hf_status put(void *arg)
{
    landing *all = arg;
    char url[1100];
    (void)snprintf(url, sizeof url, "sqlite:%s", all->path);
    HF_TRY(hf_depot_open("put", &all->depot, .push = push, .file = url));
    HF_TRY(hf_depot_online(all->depot, false)); /* nothing is sent */
    all->next = 0;
    int64_t from = bench_wall_ns();
    at_once(all->at_once, put_each, all);
    all->seconds = fmin(all->seconds, (double)(bench_wall_ns() - from) / 1e9);
    return hf_depot_close(all->depot);
}

/* A put has two rows: the entry, and the write that waits. */
static void put_raw(landing *all)
{
    raw one;
    raw_open(&one, all->path, true);
    int64_t from = bench_wall_ns();
    for (uint32_t i = 0; i < all->rows;) {
        raw_step(&one, one.begin);
        for (int j = 0; j < all->at_once && i < all->rows; j++, i++) {
            raw_put_entry(&one, shuffled(i, all->rows), all->record_len);
            raw_put_pending(&one, (int64_t)i + 1, all->pending_len);
        }
        raw_step(&one, one.commit);
    }
    all->seconds = fmin(all->seconds, (double)(bench_wall_ns() - from) / 1e9);
    raw_close(&one);
}

/* Rows per second of a depot and of SQLite, in turns. */
static void compare(const char *folder, int count, uint32_t rows, bool is_put, double *ret_ours, double *ret_raw)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/land.db", folder);
    landing ours = {.path = path, .at_once = count, .rows = rows, .seconds = INFINITY};
    landing floor_of = ours;
    for (int i = 0; i < ROUNDS; i++) {
        remove_file(path);
        on_fiber(1, is_put ? put : land, &ours);
        floor_of.record_len = raw_record_len(path, "entry");
        floor_of.pending_len = is_put ? raw_record_len(path, "pending") : 0;
        remove_file(path);
        (is_put ? put_raw : land_raw)(&floor_of);
    }
    remove_file(path);
    *ret_ours = rows / ours.seconds;
    *ret_raw = rows / floor_of.seconds;
}

/* ---- Reads ------------------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *path;
    double ours_ns, raw_ns;
    raw db;
    uint32_t number;
    bool is_missing;
} reading;

static hf_status read_ours(void *arg)
{
    reading *one = arg;
    char url[1100];
    hf_depot *depot = NULL;
    (void)snprintf(url, sizeof url, "sqlite:%s", one->path);
    HF_TRY(hf_depot_open("read", &depot, .file = url, .bytes_max = 1 << 20));
    for (int round = 0; round <= ROUNDS; round++) {
        int64_t from = bench_wall_ns();
        for (uint32_t i = 0; i < READS; i++) {
            id place;
            hf_value *value = NULL;
            uint32_t number = shuffled((uint32_t)round * READS + i, READ_ROWS);
            HF_TRY(hf_depot_get(depot, key_of(&place, "bench", number), &value, .fresh = HF_FRESH_LOCAL));
            hf_value_unref(value);
        }
        if (round > 0) { /* the first warms the file */
            one->ours_ns = fmin(one->ours_ns, (double)(bench_wall_ns() - from) / READS);
        }
    }
    return hf_depot_close(depot);
}

static hf_status select_one(void *arg)
{
    reading *one = arg;
    one->is_missing = !raw_get(&one->db, one->number) || one->is_missing;
    return HF_OK;
}

static hf_status read_raw(void *arg)
{
    reading *one = arg;
    raw_open(&one->db, one->path, false);
    for (int round = 0; round <= ROUNDS; round++) {
        int64_t from = bench_wall_ns();
        for (uint32_t i = 0; i < READS; i++) {
            one->number = shuffled((uint32_t)round * READS + i, READ_ROWS);
            HF_TRY(hf_block(select_one, one));
        }
        if (round > 0) {
            one->raw_ns = fmin(one->raw_ns, (double)(bench_wall_ns() - from) / READS);
        }
    }
    raw_close(&one->db);
    return one->is_missing ? HF_ERR_NOT_FOUND : HF_OK;
}

static void reads(const char *folder)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/read.db", folder);
    remove_file(path);
    landing fill = {.path = path, .at_once = 1000, .rows = READ_ROWS, .seconds = INFINITY};
    on_fiber(1, land, &fill);
    reading one = {.path = path, .ours_ns = INFINITY, .raw_ns = INFINITY};
    on_fiber(1, read_ours, &one);
    fill.record_len = raw_record_len(path, "entry");
    remove_file(path);
    land_raw(&fill);
    on_fiber(1, read_raw, &one);
    remove_file(path);
    row("a value that only the file has", one.ours_ns / 1000, "us", "SELECT on a pool", one.raw_ns / 1000,
        one.ours_ns / one.raw_ns, ROW_AT_MOST, 1.5);
}

void part_land(const char *folder)
{
    static const struct {
        int at_once;
        uint32_t landings, puts;
    } SIZES[] = {{1, 10000, 500}, {10, 40000, 3000}, {100, 100000, 10000}, {1000, 200000, 20000}};
    row_head("(f) the file; by the clock; compared: ours / SQLite");
    for (int is_put = 0; is_put < 2; is_put++) {
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
            char what[64];
            double ours = 0;
            double raw_rate = 0;
            compare(folder, SIZES[i].at_once, is_put ? SIZES[i].puts : SIZES[i].landings, is_put, &ours, &raw_rate);
            (void)snprintf(what, sizeof what, "%s, %d at once", is_put ? "durable puts" : "landings", SIZES[i].at_once);
            row(what, ours, "/s", "SQLite, so many a commit", raw_rate, ours / raw_rate, ROW_AT_LEAST,
                is_put ? 0.6 : 0.7);
        }
    }
    reads(folder);
}
