/* Whole depots on a disk whose power goes at every change, and whose every call fails (disk.h).
 *
 * Environment: HF_IMAGES, images of power cuts to look at; 6,000 unless set. ./dev campaign depots --images */
#include "disk.h"

#include <stdlib.h>

/* ---- The program ------------------------------------------------------------------------------------------------- */

static hf_vfs *disk; /* where it runs */

static disk_op *op_begin(disk_kind kind, int key)
{
    static disk_op spare;
    disk_op *one = HF_CHECK(book.op_count < DISK_OPS) ? &book.ops[book.op_count++] : &spare;
    *one = (disk_op){.kind = kind, .key = key, .start = disk_tick(), .made_at = rig_now(), .status = HF_ERR_AGAIN};
    return one;
}

static bool is_of_the_disk(hf_status status)
{
    return status == HF_ERR_IO || status == HF_ERR_FULL || status == HF_ERR_STORE;
}

static void op_end(disk_op *one, hf_status status, bool may_fail)
{
    one->status = status;
    one->end = status == HF_OK ? disk_tick() : 0;
    HF_CHECK_SAY(status == HF_OK || (may_fail && is_of_the_disk(status)), "op %d: %s", (int)one->kind,
                 hf_status_name(status));
}

static void get_one(hf_depot *depot, int key)
{
    hf_value *value = NULL;
    hf_depot_info info = {0};
    uint64_t at = disk_tick();
    hf_status status = hf_depot_get(depot, rig_key(DISK_IDS[key]), &value,
                                    .fresh = disk_chance(70) ? HF_FRESH_CACHED : HF_FRESH_NOW, .ret_info = &info);
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOT_FOUND || status == HF_ERR_UNAVAILABLE || status == HF_ERR_IO ||
                     status == HF_ERR_CONFLICT,
                 "get: %s", hf_status_name(status));
    if (status == HF_OK) { /* what was acknowledged before the get began counts */
        uint64_t end = book.tick;
        char token[TOKEN_LEN + 1] = "";
        memcpy(token, hf_value_data(value), hf_value_len(value) == TOKEN_LEN ? TOKEN_LEN : 0);
        bool is_known = info.is_pending;
        uint64_t first = disk_earliest(key, at);
        for (int i = 0; i < book.proof_count; i++) {
            const disk_proof *one = &book.proofs[i];
            is_known = is_known ||
                       (one->key == key && one->end <= end && one->start >= first && strcmp(one->token, token) == 0);
        }
        HF_CHECK_SAY(is_known, "DP3 key %d is '%s' while the depot works", key, token);
    }
    hf_value_unref(value);
}

static void write_one(hf_depot *depot, int key, bool may_fail)
{
    bool is_put = disk_chance(80);
    disk_op *one = op_begin(is_put ? DISK_PUT : DISK_DELETE, key);
    if (is_put) {
        disk_new_token(one->token);
        op_end(one, hf_depot_put(depot, rig_key(DISK_IDS[key]), one->token, TOKEN_LEN), may_fail);
    } else {
        op_end(one, hf_depot_delete(depot, rig_key(DISK_IDS[key])), may_fail);
    }
}

static void invalidate_one(hf_depot *depot, int key, bool may_fail)
{
    bool is_hard = disk_chance(50);
    int what = (int)hf_rng_below(&book.rng, 3);
    disk_op *one = op_begin(is_hard ? DISK_HARD : DISK_SOFT, what == 0 ? key : -1);
    op_end(one,
           what == 0   ? hf_depot_invalidate(depot, rig_key(DISK_IDS[key]), .hard = is_hard)
           : what == 1 ? hf_depot_invalidate_namespace(depot, "acme", .hard = is_hard)
                       : hf_depot_invalidate_all(depot, .hard = is_hard),
           may_fail);
}

static void some_steps(hf_depot *depot, int count, bool may_fail)
{
    for (int i = 0; i < count; i++) {
        int what = (int)hf_rng_below(&book.rng, 100);
        int key = (int)hf_rng_below(&book.rng, DISK_KEYS);
        if (what < 30) {
            get_one(depot, key);
        } else if (what < 65) {
            write_one(depot, key, may_fail);
        } else if (what < 75) {
            invalidate_one(depot, key, may_fail);
        } else if (what < 82) {
            HF_CHECK(hf_depot_online(depot, disk_chance(60)) == HF_OK);
        } else if (what < 87) {
            book.is_down = !book.is_down;
        } else if (what < 92) { /* somebody else writes */
            disk_new_token(book.state[key]);
        } else {
            HF_IGNORE(hf_sleep(hf_milliseconds((int64_t)hf_rng_below(&book.rng, 3000))));
        }
        disk_note_number(depot);
    }
}

static bool may_fail; /* calls of the disk do */

static hf_status program(void *arg)
{
    (void)arg;
    for (int life = 0; life < 2; life++) {
        hf_depot *depot = NULL;
        hf_status status = disk_open(disk, &depot);
        HF_CHECK_SAY(status == HF_OK || may_fail, "open: %s", hf_status_name(status));
        if (status != HF_OK) {
            continue; /* nothing of it has changed */
        }
        some_steps(depot, 14, may_fail);
        HF_TRY(hf_depot_close(depot));
    }
    return HF_OK;
}

static void book_init(uint64_t seed)
{
    memset(&book, 0, sizeof book);
    book.rng.state = hf_hash_mix(17, seed);
    book.coalesces = seed % 3 == 0;
    for (int key = 0; key < DISK_KEYS; key++) {
        disk_new_token(book.state[key]);
    }
    hf_vfs_seed_sqlite(seed);
}

/* ---- Power ------------------------------------------------------------------------------------------------------- */

typedef struct image {
    hf_vfs *vfs;
    uint64_t at;
    uint64_t hash;
} image;

enum { IMAGES_MAX = 6000 };

static image images[IMAGES_MAX]; /* of one program */
static size_t image_count;
static hf_rng image_rng;
static uint64_t images_taken, images_judged, images_wanted;

static void power_goes(void *state, uint64_t op, hf_vfs_op_kind kind, const char *file)
{
    (void)state;
    (void)op;
    (void)kind;
    (void)file;
    for (int mode = 0; mode < HF_CRASH_MODE_COUNT && HF_CHECK(image_count < IMAGES_MAX); mode++) {
        image *one = &images[image_count];
        if (one->vfs == NULL) {
            char name[32];
            (void)snprintf(name, sizeof name, "image%zu", image_count);
            one->vfs = hf_vfs_new(name, 1);
        }
        hf_vfs_image(disk, (hf_crash_mode)mode, &image_rng, one->vfs);
        one->at = book.tick;
        one->hash = hf_vfs_hash(one->vfs);
        images_taken++;
        bool is_known = false; /* the same contents at the same moment */
        for (size_t i = image_count; i > 0 && images[i - 1].at == one->at; i--) {
            is_known = is_known || images[i - 1].hash == one->hash;
        }
        image_count += !is_known;
    }
}

static const image *judged;

static hf_status judge_image(void *arg)
{
    (void)arg;
    return disk_judge(judged->vfs, judged->at);
}

static void judge_images(uint64_t seed)
{
    int pushes = book.push_count;
    int proofs = book.proof_count;
    uint64_t tick = book.tick;
    for (size_t i = 0; i < image_count && hf_checks_failed() == 0; i++) {
        judged = &images[i];
        book.push_count = pushes; /* each image is a world of its own */
        book.proof_count = proofs;
        book.tick = tick;
        HF_CHECK(hf_sim_run(seed, 1, judge_image, NULL, NULL) == HF_OK);
        HF_CHECK_SAY(hf_sim_errors_logged() == 0, "DP9 errors were logged");
        images_judged++;
        if (hf_checks_failed() > 0) {
            print_message("image %zu of %zu, tick %d\n", i, image_count, (int)judged->at);
        }
    }
}

static void cut_power(uint64_t seed)
{
    if (images_taken >= images_wanted) {
        return;
    }
    book_init(seed);
    disk = hf_vfs_new("disk", seed);
    hf_vfs_set_powersafe(disk, seed % 4 != 0);
    image_rng.state = seed;
    image_count = 0;
    may_fail = false;
    hf_vfs_on_op(disk, power_goes, NULL);
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 2), program, NULL, NULL) == HF_OK);
    hf_vfs_on_op(disk, NULL, NULL);
    power_goes(NULL, 0, HF_VFS_SYNC, "");
    judge_images(seed);
    hf_vfs_free(disk);
    for (size_t i = 0; i < IMAGES_MAX && images[i].vfs != NULL; i++) {
        hf_vfs_free(images[i].vfs);
        images[i].vfs = NULL;
    }
}

static void DP3_DP5_DP6_DP9_hold_when_the_power_goes_at_any_change(void **state)
{
    (void)state;
    const char *wanted = getenv("HF_IMAGES");
    images_wanted = wanted != NULL ? strtoull(wanted, NULL, 10) : hf_test_seeds(6000);
    images_taken = images_judged = 0;
    hf_each_seed("depots on a disk without power", 100000, cut_power);
    print_message("%llu images, %llu of them different and opened\n", (unsigned long long)images_taken,
                  (unsigned long long)images_judged);
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

static const struct {
    hf_io_fault fault;
    unsigned kinds;
    bool forever;
} FAULTS[] = {
    {HF_FAULT_EIO, HF_IO_ANY & ~(unsigned)HF_IO_SYNC, false},
    {HF_FAULT_EIO, HF_IO_SYNC, false},
    {HF_FAULT_EIO, HF_IO_ANY, true},
    {HF_FAULT_ENOSPC, HF_IO_ANY, false},
    {HF_FAULT_ENOSPC, HF_IO_ANY, true},
};

static uint64_t errors_met, errors_seen;

static hf_status judge_disk(void *arg)
{
    (void)arg;
    return disk_judge(disk, book.tick);
}

/* A write that was refused cleanly is never sent. */
static void judge_refused(void)
{
    for (int i = 0; i < book.op_count; i++) {
        const disk_op *one = &book.ops[i];
        errors_seen += one->status != HF_OK;
        if (one->kind != DISK_PUT || (one->status != HF_ERR_IO && one->status != HF_ERR_FULL)) {
            continue;
        }
        for (int j = 0; j < book.push_count; j++) {
            HF_CHECK_SAY(strcmp(book.pushes[j].token, one->token) != 0, "DP6 %s was refused with %s and sent",
                         one->token, hf_status_name(one->status));
        }
    }
}

/* Whether the call was reached. */
static bool fail_call(uint64_t seed, size_t fault, uint64_t nth)
{
    book_init(seed);
    disk = hf_vfs_new("disk", seed);
    may_fail = true;
    hf_vfs_fail(disk, FAULTS[fault].kinds, nth, FAULTS[fault].fault, FAULTS[fault].forever);
    HF_CHECK(hf_sim_run(seed, 1, program, NULL, NULL) == HF_OK);
    bool was_met = hf_vfs_faults_hit(disk) > 0;
    hf_vfs_fail(disk, 0, 0, HF_FAULT_EIO, false); /* the disk is well again */
    if (nth % 2 == 0) {                           /* or it loses its power, too */
        hf_rng rng = {seed + nth};
        hf_vfs_image(disk, (hf_crash_mode)hf_rng_below(&rng, HF_CRASH_MODE_COUNT), &rng, disk);
    }
    HF_CHECK(hf_sim_run(seed, 1, judge_disk, NULL, NULL) == HF_OK);
    judge_refused();
    hf_vfs_free(disk);
    return was_met;
}

static void fail_every_call(uint64_t seed)
{
    uint64_t step = hf_test_scale();
    for (size_t fault = 0; fault < HF_COUNT_OF(FAULTS) && hf_checks_failed() == 0; fault++) {
        uint64_t nth = 1;
        while (fail_call(seed, fault, nth) && hf_checks_failed() == 0) {
            errors_met++;
            nth += step;
        }
        if (hf_checks_failed() > 0) {
            print_message("fault %zu, call %d\n", fault, (int)nth);
        }
    }
}

static void DP3_DP5_DP6_DP9_hold_when_any_call_of_the_disk_fails(void **state)
{
    (void)state;
    errors_met = errors_seen = 0;
    hf_each_seed("depots on a failing disk", hf_test_scale() > 1 ? 10 * hf_test_scale() : 10, fail_every_call);
    print_message("%llu calls failed, %llu writes and invalidations were refused\n", (unsigned long long)errors_met,
                  (unsigned long long)errors_seen);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(DP3_DP5_DP6_DP9_hold_when_the_power_goes_at_any_change),
        cmocka_unit_test(DP3_DP5_DP6_DP9_hold_when_any_call_of_the_disk_fails),
    };
    return hf_test_main("depot disk", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
