/* Tombstones: a delete that the origin has accepted is remembered for 7 days, so that a fetch from an origin that does
 * not know of it yet (a replica, a cache between) does not bring the value back.
 *
 * A fetched value under a tombstone counts if it is later than the delete:
 *
 *     both have a revision (hf_reply_revision)    its revision is greater; nothing else is looked at
 *     else it has a last_modified, an HTTP date   that is later than the delete: than the last_modified that the
 *                                                 origin answered to the delete, or without one than the moment of the
 *                                                 answer by the clock here
 *     else                                        it does not count
 *
 * The revision of a tombstone is the one in the answer to the delete, or that of the value which was deleted. HTTP
 * dates are whole seconds: a value that was made in the second of the delete does not count. "Not found" leaves a
 * tombstone as it is. An invalidation lifts it: the caller wants what the origin has. */
#include "depot/outbox.h"

/* The number in these digits; -1 = they are none. */
static int number_at(const char *at, int len)
{
    int number = 0;
    for (int i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return -1;
        }
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

/* Days from 1970 to this one. */
static int64_t days_to(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    hf_assert(of_era >= 0 && of_era < 400 && of_year >= 0 && of_year <= 366);
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t hf_tombstone_date(const char *text)
{
    static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text == NULL || strlen(text) != 29 || text[3] != ',' || strcmp(text + 26, "GMT") != 0) {
        return -1;
    }
    int day = number_at(text + 5, 2);
    int year = number_at(text + 12, 4);
    int hour = number_at(text + 17, 2);
    int minute = number_at(text + 20, 2);
    int second = number_at(text + 23, 2);
    char name[4] = {text[8], text[9], text[10], '\0'};
    const char *found = strlen(name) == 3 ? strstr(MONTHS, name) : NULL;
    if (found == NULL || (found - MONTHS) % 3 != 0 || day < 1 || day > 31 || year < 1970 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60) {
        return -1;
    }
    int64_t days = days_to(year, (found - MONTHS) / 3 + 1, day);
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * INT64_C(1000000000);
}

bool hf_tombstone_stands(const hf_depot *depot, const hf_space *space, const hf_depot_entry *entry)
{
    return entry->kind == HF_ENTRY_DELETED && !hf_entry_is_unusable(depot, space, entry) &&
           hf_rule_age(hf_depot_wall(depot), entry->validated_at) <= HF_TOMBSTONE_NS;
}

bool hf_tombstone_hides(const hf_depot_entry *entry, const hf_value *last_modified, uint64_t revision)
{
    hf_assert(entry->kind == HF_ENTRY_DELETED && entry->value == NULL);
    if (entry->revision != 0 && revision != 0) {
        return revision <= entry->revision;
    }
    int64_t of_delete = hf_tombstone_date(hf_value_text(entry->last_modified));
    int64_t of_value = hf_tombstone_date(hf_value_text(last_modified));
    return of_value <= (of_delete >= 0 ? of_delete : entry->validated_at);
}
