/* hf_zone: what the clocks of a time zone show, and when. Its rules are data from outside: the bytes of a TZif file
 * (RFC 9636), which tzdata installs as /usr/share/zoneinfo/NAME. A zone that is NULL is UTC and needs no data.
 *
 * Clocks are put forward and back, so from the local time to UTC there is not always exactly one way. hf_zone_utc
 * chooses as Go's time package does, because the cron schedules of a Temporal server are computed with it:
 *
 *     the local time does not exist (a gap)   one of the two offsets around the gap: the result is before the gap or
 *                                             behind it by as much as the clocks were moved
 *     it exists twice (a fold)                one of the two
 *
 * Which of the two follows from the offset that is in use when UTC shows that time. */
#ifndef HF_TIME_ZONE_H
#define HF_TIME_ZONE_H

#include "base/arena.h"
#include "base/env.h"
#include "base/op.h"
#include "time/civil.h"

#define HF_ZONE_NAME_LEN_MAX 255             /* bytes of a zone's name: as long as the name of a file may be */
#define HF_ZONE_LEN_MAX (64u << 10)          /* bytes of a zone's data: the largest file of tzdata has 4 KiB */
#define HF_ZONE_TRANSITIONS_MAX 2000         /* changes of the clocks that are listed: tzdata has up to 240 */
#define HF_ZONE_FOLDER "/usr/share/zoneinfo" /* where tzdata installs its files */
#define HF_ZONE_OFFSET_S_MAX 93599           /* seconds between local time and UTC: those of RFC 9636, 26 hours */
#define HF_ZONE_S_MAX (INT64_C(1) << 40)     /* seconds before or after 1970 that may be asked for: 34,000 years */

typedef struct hf_zone hf_zone;

/* Reads the bytes of a TZif file, version 1 to 4. They are not needed afterwards: the zone is in the arena. Zones that
 * count leap seconds ("right/...") are refused. Fails: HF_ERR_INVALID with what is wrong, HF_ERR_NOMEM. */
hf_status hf_zone_parse(hf_op *op, hf_str bytes, hf_arena *arena, const hf_zone **ret_zone);

/* Seconds that local time is ahead of UTC, at that many seconds since 1970 in UTC. */
int32_t hf_zone_offset(const hf_zone *zone, int64_t utc_s);
/* What the clocks show then. */
hf_civil hf_zone_local(const hf_zone *zone, int64_t utc_s);
/* When they show this, in seconds since 1970 in UTC. `local` may be out of range as in hf_civil_seconds. */
int64_t hf_zone_utc(const hf_zone *zone, hf_civil local);

/* Refuses a name that no zone can have: over 255 bytes, other bytes than A-Z a-z 0-9 _ + - /, or a "/" in front. As
 * there are no dots, the name of a file made of it stays in its folder. Fails: HF_ERR_INVALID. */
hf_status hf_zone_name_check(hf_op *op, hf_str name);
/* "UTC" and "", which need no data. So does "Local": a Temporal server takes it for the zone of the time that it
 * computes with, which is UTC. */
bool hf_zone_name_is_utc(hf_str name);

/* Reads the file of a zone through `env`. Blocks, so it is for pool threads. `folder` is HF_ZONE_FOLDER, as a rule.
 * The bytes are in the arena. Fails: HF_ERR_INVALID: the name, or the file is too large; HF_ERR_NOT_FOUND: there is no
 * such zone, or no tzdata; HF_ERR_NOMEM; what the environment reports. */
hf_status hf_zone_read(hf_op *op, hf_env *env, const char *folder, hf_str name, hf_arena *arena, hf_str *ret_bytes);

#endif
