/* Time zones. An input is a TZif file. One that is accepted has an offset at all times, and schedules in it come to an end,
 * whatever its clocks do. */
#include "fuzz/fuzz.h"

#include "time/cron.h"
#include "time/zone_private.h"

#define SECOND INT64_C(1000000000)
#define MEMORY_MAX (HF_ZONE_TRANSITIONS_MAX * 12u + 8192) /* of a zone */

static void check_at(const hf_zone *zone, int64_t at)
{
    if (at < -HF_ZONE_S_MAX || at > HF_ZONE_S_MAX) {
        return;
    }
    hf_civil local = hf_zone_local(zone, at);
    int64_t ahead = hf_civil_seconds(local) - at;
    FUZZ_CHECK(ahead == hf_zone_offset(zone, at), "two offsets at %lld", (long long)at);
    if (at > -HF_ZONE_S_MAX / 2 && at < HF_ZONE_S_MAX / 2) {
        int64_t back = hf_zone_utc(zone, local);
        int64_t off = back > at ? back - at : at - back;
        FUZZ_CHECK(off <= 2 * HF_ZONE_OFFSET_S_MAX, "%lld s away", (long long)off);
    }
}

static void check_schedule(const hf_zone *zone, const char *text, int64_t after)
{
    hf_op op;
    hf_cron cron;
    hf_op_init(&op);
    FUZZ_CHECK(hf_cron_parse(&op, hf_str_of(text), &cron) == HF_OK, "%s", op.message);
    for (int i = 0; i < 3 && after != HF_CRON_NEVER; i++) {
        int64_t next = hf_cron_next(&cron, zone, after);
        FUZZ_CHECK(next > after || next == HF_CRON_NEVER, "%lld after %lld", (long long)next, (long long)after);
        after = next;
    }
}

static void check_zone(const hf_zone *zone)
{
    static const char *const SCHEDULES[] = {"30 2 * * *", "0 0 1 1 *", "*/7 0,23 29 2 1", "0 0 31 2 *"};
    static const int64_t TIMES[] = {-HF_ZONE_S_MAX, -9223372036, -1,         0,
                                    1774747800,     1793577600,  9223372035, HF_ZONE_S_MAX};
    for (size_t i = 0; i < HF_COUNT_OF(TIMES); i++) {
        check_at(zone, TIMES[i]);
    }
    for (size_t i = 0; i < zone->count; i++) {
        check_at(zone, zone->at[i]);
    }
    for (size_t i = 0; i < HF_COUNT_OF(SCHEDULES); i++) {
        check_schedule(zone, SCHEDULES[i], 1774000000 * SECOND);
        for (size_t j = 0; j < zone->count && j < 4; j++) {
            int64_t at = zone->at[zone->count - 1 - j];
            if (at > -9000000000 && at < 9000000000) {
                check_schedule(zone, SCHEDULES[i], (at - 90000) * SECOND);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_str bytes = hf_str_of_len(data, size);
    char *exact = fuzz_copy(bytes);
    fuzz_memory memory = {0};
    hf_arena arena;
    hf_op op;
    const hf_zone *zone = NULL;
    hf_op_init(&op);
    hf_arena_init(&arena, fuzz_heap(&memory));
    if (hf_zone_parse(&op, hf_str_of_len(exact, size), &arena, &zone) == HF_OK) {
        memset(exact, 0, size); /* it is not needed any more */
        check_zone(zone);
    } else {
        FUZZ_CHECK(op.status == HF_ERR_INVALID && op.message[0] != '\0', "refused without a sentence");
    }
    free(exact);
    hf_arena_deinit(&arena);
    fuzz_memory_check(&memory, MEMORY_MAX);
    return 0;
}
