/* Stores whose records have right checksums and any content: journal, runs, histories, tasks, names, deadlines, the meta record.
 * drive.h says what an input is.
 *
 * Such a store is looked at (hf_look, hf_check), opened, listed, asked, left and opened again. It may be refused, its runs may be
 * bad, and a core may break; but nothing crashes, hangs or leaks. */
#include "fuzz/drive.h"
#include "fuzz/mutate.h"

#include "engine/list.h"
#include "inspect/check.h"
#include "inspect/look.h"

enum { RUNS_MAX = 64, LISTS_MAX = 8 };

/* ---- Without an engine ------------------------------------------------------------------------------------------------- */

static void look_at_run(fuzz_drive *drive, hf_look *look, int64_t number)
{
    hf_op op;
    hf_op_init(&op);
    hf_run *run = NULL;
    hf_status status = hf_look_run(&op, look, number, &run);
    if (status != HF_OK) {
        FUZZ_CHECK(op.message[0] != '\0', "a run is refused without a sentence");
        return;
    }
    hf_buf bytes;
    hf_buf_init(&bytes, fuzz_heap(&drive->memory), SIZE_MAX / 4);
    (void)hf_look_history(&op, look, run, &bytes);
    bytes.len = 0;
    hf_run_encode(hf_look_memory(look), run, HF_ENCODE_ALL, HF_STR(""), &bytes);
    hf_arena arena;
    hf_arena_init(&arena, fuzz_heap(&drive->memory));
    hf_pb_admin_run brief;
    hf_run_brief(run, &arena, &brief);
    int64_t found = 0;
    (void)hf_look_find(&op, look, brief.namespace, brief.workflow_id, &found);
    (void)hf_look_find(&op, look, brief.namespace, brief.run_id, &found);
    hf_arena_deinit(&arena);
    hf_buf_deinit(&bytes);
    hf_look_run_free(look, run);
}

static void look_at(fuzz_drive *drive)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    if (hf_look_open(&op, fuzz_heap(&drive->memory), drive->store, &look) != HF_OK) {
        FUZZ_CHECK(op.message[0] != '\0', "refused without a sentence");
        return;
    }
    int64_t number = 0;
    uint64_t count = 0;
    (void)hf_look_count(&op, look, &count);
    for (int i = 0; i < RUNS_MAX && hf_look_next(&op, look, number, &number) == HF_OK && number != 0; i++) {
        look_at_run(drive, look, number);
    }
    number = INT64_MAX;
    for (int i = 0; i < RUNS_MAX && hf_look_before(&op, look, number, &number) == HF_OK && number != 0; i++) {
    }
    hf_look_close(look);
}

static void on_found(void *state, const char *sentence)
{
    uint64_t *count = state;
    FUZZ_CHECK(sentence[0] != '\0', "damage without a sentence");
    *count += 1;
}

static void check(fuzz_drive *drive)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t told = 0;
    hf_check_report report;
    hf_check_options options = {.deep = true, .found = on_found, .state = &told};
    hf_status status = hf_check_store(&op, fuzz_heap(&drive->memory), drive->store, &options, &report);
    FUZZ_CHECK(status != HF_OK || told == report.damages, "%llu damages, %llu told", (unsigned long long)report.damages,
               (unsigned long long)told);
}

/* ---- With one ---------------------------------------------------------------------------------------------------------- */

static void list(fuzz_drive *drive)
{
    int64_t before = INT64_MAX;
    for (int i = 0; i < LISTS_MAX && before > 0; i++) {
        hf_op op;
        hf_op_init(&op);
        hf_arena arena;
        hf_arena_init(&arena, fuzz_heap(&drive->memory));
        hf_listing listing = {.before = before, .count_max = 3, .arena = &arena};
        hf_list_memory(drive->core, &listing);
        hf_store_request scan = hf_list_scan(&listing);
        hf_store_execute(drive->store, &scan);
        FUZZ_CHECK(scan.status == HF_OK && hf_list_rows(&op, &listing, &scan) == HF_OK, "no list");
        before = 0;
        for (size_t j = 0; j < listing.runs.count; j++) {
            before = listing.runs.items[j].number;
            FUZZ_CHECK(j == 0 || before < listing.runs.items[j - 1].number, "a list without order");
        }
        hf_arena_deinit(&arena);
    }
}

bool fuzz_is_message(const uint8_t *data, size_t size, size_t *ret_head)
{
    (void)data;
    *ret_head = 0;
    return size > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_drive *drive = malloc(sizeof *drive);
    hf_str input = hf_str_of_len(data, size);
    if (fuzz_drive_open(drive, input)) {
        look_at(drive);
        check(drive);
        if (fuzz_core_open(drive)) {
            list(drive);
            fuzz_core_settle(drive);
            fuzz_core_calls(drive, input);
            list(drive);
            fuzz_core_close(drive);
            look_at(drive);
            check(drive);
            drive->options.was_left_open = !drive->options.was_left_open;
            if (fuzz_core_open(drive)) {
                fuzz_core_close(drive);
            }
        }
    }
    fuzz_drive_close(drive);
    free(drive);
    return 0;
}
