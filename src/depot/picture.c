/* A depot in hf_dump: fetches and who waits for them, sends, circuit breakers. A picture is taken in a glimpse, into
 * memory that was there before; the text is written when the depot works again.
 *
 *     depot 'users': 2 fetches, 1 send, 3 writes wait, 1 dead, 4 watchers
 *       fetch of acme/user/42: flying, 3 holders, for 'main', 'poll'
 *       write 17 of acme/user/7: attempt 2 on its way
 *       breaker of origin 0: open for another 12.300 s */
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/outbox.h"

#include <stdio.h>

enum { FLIGHTS_MAX = 100, SENDS_MAX = 100, NAMES_MAX = 4, KEY_LEN = 100, NAME_LEN = 32, ROWS_MAX = 10000 };

typedef struct flight_picture {
    char key[KEY_LEN];
    const char *state;
    unsigned holders;
    unsigned waiters;
    bool is_refresh;
    char names[NAMES_MAX][NAME_LEN]; /* of the first who wait */
} flight_picture;

typedef struct send_picture {
    char key[KEY_LEN];
    uint64_t sequence;
    uint32_t attempt;
} send_picture;

typedef struct picture {
    bool is_offline;
    size_t flight_all, send_all; /* how many there are */
    size_t rows, dead, watchers;
    size_t flight_count, send_count; /* how many are shown */
    flight_picture flights[FLIGHTS_MAX];
    send_picture sends[SENDS_MAX];
    hf_breaker breakers[HF_ORIGINS];
    int64_t now;
} picture;

/* "acme/user/42", cut, and without control characters. */
static void copy_key(char *to, hf_str key)
{
    size_t len = key.len < KEY_LEN - 1 ? key.len : KEY_LEN - 1;
    int separators = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)key.data[i];
        bool is_separator = byte == '\0' && separators < 2;
        separators += is_separator;
        to[i] = is_separator ? '/' : byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
    }
    to[len] = '\0';
}

static void look_at_flight(const hf_depot_flight *flight, flight_picture *into)
{
    copy_key(into->key, hf_slot_key(flight->slot));
    into->state = flight->is_landing ? "landing" : flight->call != NULL ? "flying" : "queued";
    hf_assert(!flight->is_over && flight->slot->flight == flight); /* DP1: those that are over have left the list */
    into->holders = flight->holders;
    into->is_refresh = flight->is_refresh;
    HF_LIST_EACH(node, &flight->waiters)
    {
        const hf_fiber *fiber = HF_CONTAINER(node, hf_wait, node)->fiber; /* parked: it cannot leave without the lock */
        if (into->waiters < NAMES_MAX) {
            const char *name = fiber->branch != NULL ? fiber->branch->name : "a thread";
            (void)snprintf(into->names[into->waiters], NAME_LEN, "%s", name != NULL ? name : "fiber");
        }
        into->waiters++;
    }
}

static void look(const hf_depot *depot, void *arg)
{
    picture *into = arg;
    into->is_offline = depot->is_offline;
    into->flight_all = depot->flight_count;
    into->send_all = depot->sends;
    into->rows = depot->row_count;
    into->dead = depot->dead_count;
    into->watchers = depot->watcher_count;
    into->now = hf_rt_now(depot->rt).ns;
    hf_assert(depot->flights <= depot->works && depot->sends <= depot->works && depot->dead_count <= depot->row_count);
    memcpy(into->breakers, depot->breakers, sizeof into->breakers);
    HF_LIST_EACH(node, &depot->all_flights)
    {
        if (into->flight_count == FLIGHTS_MAX) {
            break;
        }
        look_at_flight(HF_CONTAINER(node, hf_depot_flight, in_all), &into->flights[into->flight_count++]);
    }
    size_t seen = 0;
    HF_LIST_EACH(node, &depot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (into->send_count == depot->sends || into->send_count == SENDS_MAX || ++seen > ROWS_MAX) {
            break;
        }
        if (row->state == HF_ROW_SENDING) {
            send_picture *one = &into->sends[into->send_count++];
            copy_key(one->key, hf_slot_key(row->slot));
            one->sequence = hf_pending_number(row);
            one->attempt = row->attempts + 1;
        }
    }
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static const char *const STATES[] = {
    [HF_BREAKER_CLOSED] = "closed", [HF_BREAKER_OPEN] = "open", [HF_BREAKER_HALF_OPEN] = "half open"};

static void write_text(const picture *from, hf_buf *text)
{
    hf_buf_putf(text, "%zu fetches, %zu sends, %zu writes wait, %zu dead, %zu watchers%s\n", from->flight_all,
                from->send_all, from->rows - from->dead, from->dead, from->watchers,
                from->is_offline ? ", offline" : "");
    for (size_t i = 0; i < from->flight_count; i++) {
        const flight_picture *one = &from->flights[i];
        hf_buf_putf(text, "  fetch of %s: %s, %u holders%s", one->key, one->state, one->holders,
                    one->is_refresh ? ", a refresh" : "");
        for (unsigned k = 0; k < one->waiters && k < NAMES_MAX; k++) {
            hf_buf_putf(text, "%s'%s'", k == 0 ? ", for " : ", ", one->names[k]);
        }
        if (one->waiters > NAMES_MAX) {
            hf_buf_putf(text, " and %u more", one->waiters - NAMES_MAX);
        }
        hf_buf_putc(text, '\n');
    }
    if (from->flight_count < from->flight_all) {
        hf_buf_putf(text, "  and %zu more fetches\n", from->flight_all - from->flight_count);
    }
    for (size_t i = 0; i < from->send_count; i++) {
        hf_buf_putf(text, "  write %llu of %s: attempt %u on its way\n", (unsigned long long)from->sends[i].sequence,
                    from->sends[i].key, from->sends[i].attempt);
    }
    for (int i = 0; i < HF_ORIGINS; i++) {
        int64_t wait = 0;
        if (from->breakers[i].state != HF_BREAKER_CLOSED) {
            (void)hf_breaker_is_shut(&from->breakers[i], from->now, &wait);
            hf_buf_putf(text, "  breaker of origin %d: %s for another %.3f s\n", i, STATES[from->breakers[i].state],
                        (double)wait / 1e9);
        }
    }
}

static void write_flight(const flight_picture *one, hf_json *json)
{
    hf_json_object(json);
    hf_json_key_string(json, "key", one->key);
    hf_json_key_string(json, "state", one->state);
    hf_json_key_uint(json, "holders", one->holders);
    hf_json_key_bool(json, "refresh", one->is_refresh);
    hf_json_key_uint(json, "waiters", one->waiters);
    hf_json_key(json, "names");
    hf_json_array(json);
    for (unsigned k = 0; k < one->waiters && k < NAMES_MAX; k++) {
        hf_json_string(json, one->names[k]);
    }
    hf_json_end(json);
    hf_json_end(json);
}

static void write_json(const picture *from, hf_json *json)
{
    hf_json_key_bool(json, "offline", from->is_offline);
    hf_json_key_uint(json, "pending", from->rows);
    hf_json_key_uint(json, "dead", from->dead);
    hf_json_key_uint(json, "watchers", from->watchers);
    hf_json_key_uint(json, "flight_count", from->flight_all);
    hf_json_key(json, "flights");
    hf_json_array(json);
    for (size_t i = 0; i < from->flight_count; i++) {
        write_flight(&from->flights[i], json);
    }
    hf_json_end(json);
    hf_json_key_uint(json, "send_count", from->send_all);
    hf_json_key(json, "sends");
    hf_json_array(json);
    for (size_t i = 0; i < from->send_count; i++) {
        hf_json_object(json);
        hf_json_key_string(json, "key", from->sends[i].key);
        hf_json_key_uint(json, "sequence", from->sends[i].sequence);
        hf_json_key_uint(json, "attempt", from->sends[i].attempt);
        hf_json_end(json);
    }
    hf_json_end(json);
    hf_json_key(json, "breakers");
    hf_json_array(json);
    for (int i = 0; i < HF_ORIGINS; i++) {
        int64_t wait = 0;
        if (from->breakers[i].state != HF_BREAKER_CLOSED) {
            (void)hf_breaker_is_shut(&from->breakers[i], from->now, &wait);
            hf_json_object(json);
            hf_json_key_int(json, "origin", i);
            hf_json_key_string(json, "state", STATES[from->breakers[i].state]);
            hf_json_key_int(json, "left_ms", wait / 1000000);
            hf_json_end(json);
        }
    }
    hf_json_end(json);
}

void hf_depot_dump(hf_panel *panel, hf_buf *text, hf_json *json)
{
    hf_depot *depot = HF_CONTAINER(panel, hf_depot, panel);
    hf_assert((text == NULL) != (json == NULL));
    picture *taken = hf_rt_alloc(depot->rt, sizeof *taken);
    bool is_seen = taken != NULL && hf_depot_glimpse(depot, look, taken);
    if (is_seen && text != NULL) {
        write_text(taken, text);
    } else if (is_seen) {
        write_json(taken, json);
    } else if (text != NULL) {
        hf_buf_puts(text, taken != NULL ? "busy: one of its functions takes its time\n" : "no memory to look at it\n");
    } else {
        hf_json_key_bool(json, "busy", true);
    }
    hf_rt_free(depot->rt, taken, sizeof *taken);
}
