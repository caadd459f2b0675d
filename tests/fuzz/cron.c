/* Cron schedules. An input is a time in nanoseconds, 8 bytes, and the text of a schedule. One that is accepted comes later than
 * that time, or never; and as clocks are never changed in UTC, it matches what its text says, and no minute before it does. */
#include "fuzz/fuzz.h"

#include "time/cron.h"

#define SECOND INT64_C(1000000000)
#define MINUTES_TRIED 3000 /* minutes before the next time that are looked at */

static bool matches(const hf_cron *cron, int64_t at_s)
{
    hf_civil civil = hf_civil_of(at_s);
    bool is_day = (cron->days >> civil.day & 1) != 0;
    bool is_weekday = (cron->weekdays >> civil.weekday & 1) != 0;
    return civil.second == 0 && (cron->minutes >> civil.minute & 1) != 0 && (cron->hours >> civil.hour & 1) != 0 &&
           (cron->months >> civil.month & 1) != 0 && (cron->both_days ? is_day && is_weekday : is_day || is_weekday);
}

static void check_next(const hf_cron *cron, int64_t after)
{
    int64_t next = hf_cron_next(cron, NULL, after);
    if (next == HF_CRON_NEVER) {
        return;
    }
    FUZZ_CHECK(next > after && next % SECOND == 0, "%lld comes after %lld", (long long)next, (long long)after);
    if (cron->every_ns > 0) {
        FUZZ_CHECK(next - after == cron->every_ns - hf_floor_rest(after, SECOND), "%lld ns", (long long)(next - after));
        return;
    }
    FUZZ_CHECK(matches(cron, next / SECOND), "%lld does not match", (long long)next);
    int64_t minute = next / SECOND - 60;
    for (int tried = 0; tried < MINUTES_TRIED && minute > hf_floor_div(after, SECOND); tried++, minute -= 60) {
        FUZZ_CHECK(!matches(cron, minute), "%lld was left out", (long long)minute);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t after = 0;
    if (size < sizeof after) {
        return 0;
    }
    memcpy(&after, data, sizeof after);
    hf_str text = hf_str_of_len(data + sizeof after, size - sizeof after);
    char *exact = fuzz_copy(text);
    text.data = exact;
    hf_op op;
    hf_cron cron;
    hf_op_init(&op);
    if (hf_cron_parse(&op, text, &cron) == HF_OK) {
        FUZZ_CHECK(memchr(cron.zone, '\0', sizeof cron.zone) != NULL, "a zone without an end");
        FUZZ_CHECK(hf_zone_name_check(&op, hf_str_of(cron.zone)) == HF_OK, "%s", op.message);
        FUZZ_CHECK(cron.every_ns % SECOND == 0 && cron.every_ns >= 0, "%lld ns", (long long)cron.every_ns);
        check_next(&cron, after);
        int64_t wait = hf_cron_backoff(&cron, NULL, after, after);
        FUZZ_CHECK(wait == HF_CRON_NEVER || (wait > 0 && wait % SECOND == 0), "%lld ns", (long long)wait);
        wait = hf_cron_backoff(&cron, NULL, 0, after);
        FUZZ_CHECK(wait == HF_CRON_NEVER || (wait >= 0 && wait % SECOND == 0), "%lld ns", (long long)wait);
    } else {
        FUZZ_CHECK(op.status == HF_ERR_INVALID && op.message[0] != '\0', "refused without a sentence");
    }
    free(exact);
    return 0;
}
