/* Times as text, and the zones of tests/fixtures/zoneinfo: copies of tzdata, so that no test depends on what is installed
 * and the times in these tests stay true. "fat/New_York" lists its changes until 2037, the others only until their rule
 * begins to hold. */
#ifndef HF_TESTS_TIMES_H
#define HF_TESTS_TIMES_H

#include "support/support.h"

#include "time/cron.h"
#include "time/zone.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND INT64_C(1000000000)

static inline void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static inline void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

/* "2026-03-29 01:30:00", or less: "2026-03-29". */
static inline hf_civil civil_of_text(const char *text)
{
    long long year = 0;
    hf_civil civil = {.month = 1, .day = 1};
    int count =
        sscanf(text, "%lld-%d-%d %d:%d:%d", &year, &civil.month, &civil.day, &civil.hour, &civil.minute, &civil.second);
    assert_true(count >= 3);
    civil.year = year;
    return civil;
}

static inline int64_t seconds_of_text(const char *text)
{
    return hf_civil_seconds(civil_of_text(text));
}

typedef struct time_text {
    char text[40];
} time_text;

static inline time_text text_of_civil(hf_civil civil)
{
    time_text t;
    (void)snprintf(t.text, sizeof t.text, "%04lld-%02d-%02d %02d:%02d:%02d", (long long)civil.year, civil.month,
                   civil.day, civil.hour, civil.minute, civil.second);
    return t;
}

static inline time_text text_of_ns(int64_t ns)
{
    return ns == HF_CRON_NEVER ? (time_text){"never"} : text_of_civil(hf_civil_of(hf_floor_div(ns, SECOND)));
}

/* A zone of the fixtures; NULL for UTC. It stays until the program ends. */
static inline const hf_zone *zone_of_name(const char *name)
{
    static struct {
        char name[64];
        const hf_zone *zone;
    } known[32];
    static size_t count;
    static hf_arena arena;
    if (hf_zone_name_is_utc(hf_str_of(name))) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].zone;
        }
    }
    if (count == 0) {
        static char room[400000];
        hf_arena_init_in(&arena, HEAP, room, sizeof room);
    }
    hf_op op;
    hf_op_init(&op);
    hf_arena files;
    hf_arena_init(&files, HEAP);
    hf_str bytes = {0};
    assert_true(count < HF_COUNT_OF(known) && strlen(name) < sizeof known[0].name);
    if (hf_zone_read(&op, hf_env_posix(), HF_ZONES, hf_str_of(name), &files, &bytes) != HF_OK ||
        hf_zone_parse(&op, bytes, &arena, &known[count].zone) != HF_OK) {
        fail_msg("%s: %s", name, op.message);
    }
    hf_arena_deinit(&files);
    (void)snprintf(known[count].name, sizeof known[count].name, "%s", name);
    return known[count++].zone;
}

static inline hf_cron cron_of_text(const char *text)
{
    hf_op op;
    hf_op_init(&op);
    hf_cron cron;
    if (hf_cron_parse(&op, hf_str_of(text), &cron) != HF_OK) {
        fail_msg("%s", op.message);
    }
    return cron;
}

#endif
