/* Pages of a depot against an obvious twin, on virtual time.
 *
 * Two feeds at an origin that is slow, fails, is down for a while, and now and then begins anew: an edition has posts of its own, so a
 * post tells where it came from. A token leads to the edition that it was given with. Actors open the pages of a feed, load in all
 * directions, are canceled and close them; others invalidate, go offline and trim; the depot is closed under their feet and opened
 * again on the same store. What the twin says of every view:
 *
 *     posts     a run of one edition without a gap, at most .window_max of them (depot-P1, depot-P2); each with its value, if it has one
 *     ends      more can be loaded at an end exactly if the edition goes on there, and all is there exactly if it does at neither
 *     edition   one that was shown after the last invalidation began (DP3)
 *     versions  never go back (DP4)
 *     loads     one at a time in a direction (DP1); one that succeeds has moved the end, unless something else moved it, too */
#include "support/lent.h"
#include "support/support.h"

#include "base/rng.h"
#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEEDS = 2, EDITIONS_MAX = 60, ACTORS_MAX = 4, FAILURES_MAX = 2000, ID_LEN = 40, POSTS_MAX = 30, PAGE_MAX = 8 };
static const int64_t SECOND = 1000000000;

typedef struct feed {
    int count;                    /* editions; the last one is what the origin shows */
    int len[EDITIONS_MAX];        /* posts of them */
    int first[EDITIONS_MAX];      /* where their first page begins */
    int voided;                   /* no edition before this one may be seen: an invalidation has returned */
    unsigned voids;               /* invalidations that have begun */
    int64_t loading[3][4];        /* when those under way began; 0 = none */
    int64_t void_at, moved_at[3]; /* the last of them */
    int64_t page_size, window_max;
    bool has_cursors; /* every post has a token */
} feed;

static struct {
    hf_depot *depot;
    lent store;
    bool has_store, is_closing, is_canceled, is_last, is_down, is_offline;
    int64_t trouble_at, answered_at, offline_at;
    feed feeds[FEEDS];
    struct {
        hf_status status;
        int64_t at;
    } failures[FAILURES_MAX];
    int failure_count;
    hf_rng rng; /* of the origin */
    uint64_t loads, views, posts, pages, voids, reopened;
} world;

static int64_t now(void)
{
    return hf_now(NULL).ns;
}

static int below(hf_rng *rng, int bound)
{
    return (int)hf_rng_below(rng, (uint64_t)bound);
}

static bool chance(hf_rng *rng, int percent)
{
    return below(rng, 100) < percent;
}

/* With HF_SEED: what happens, for the reader of a failure. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    if (getenv("HF_SEED") != NULL) {
        char line[200];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(line, sizeof line, format, args);
        va_end(args);
        (void)fprintf(stderr, "%8lld ms: %s\n", (long long)(now() / 1000000), line);
    }
}

/* ---- The origin -------------------------------------------------------------------------------------------------- */

static const char *const FEED_IDS[FEEDS] = {"f0", "f1"};

static hf_depot_key feed_key(int number)
{
    return hf_depot_key_of("blog", "feed", FEED_IDS[number]);
}

static void name_post(char *id, int number, int edition, int index)
{
    (void)snprintf(id, ID_LEN, "%d.%d.%d", number, edition, index);
}

typedef struct post {
    int feed, edition, index;
} post;

static post post_of(hf_depot_key key)
{
    char id[ID_LEN] = "";
    post one = {-1, -1, -1};
    memcpy(id, key.id, key.id_len < ID_LEN ? key.id_len : ID_LEN - 1);
    HF_CHECK_SAY(sscanf(id, "%d.%d.%d", &one.feed, &one.edition, &one.index) == 3, "'%s' is not a post", id);
    return one;
}

/* Some posts were taken back: their page has them, but they have no value. */
static bool has_value(post one)
{
    return (one.edition * 31 + one.index * 7 + one.feed) % 11 != 0;
}

static void begin_edition(feed *f, hf_rng *rng)
{
    if (f->count < EDITIONS_MAX) {
        f->len[f->count] = chance(rng, 10) ? 0 : below(rng, POSTS_MAX + 1);
        f->first[f->count] = f->len[f->count] > 0 && chance(rng, 70) ? below(rng, f->len[f->count]) : 0;
        f->count++;
    }
}

static hf_span delay(void)
{
    int what = below(&world.rng, 100);
    int64_t ms = what < 40 ? 0 : what < 80 ? below(&world.rng, 300) : what < 97 ? below(&world.rng, 3000) : 12000;
    return hf_milliseconds(world.is_last ? ms % 1000 : ms);
}

static hf_status fail_with(hf_reply *reply)
{
    static const hf_reply_class CLASSES[] = {HF_REPLY_UNKNOWN, HF_REPLY_TIMEOUT, HF_REPLY_NETWORK,
                                             HF_REPLY_ORIGIN,  HF_REPLY_DENIED,  HF_REPLY_TLS};
    hf_status status = hf_reply_fail(reply, CLASSES[below(&world.rng, HF_COUNT_OF(CLASSES))]);
    world.trouble_at = now();
    if (HF_CHECK(world.failure_count < FAILURES_MAX)) {
        world.failures[world.failure_count].status = status;
        world.failures[world.failure_count++].at = now();
    }
    return status;
}

/* Posts [from, to) of an edition. */
static hf_status reply_posts(const feed *f, int number, int edition, int from, int to, hf_reply *reply)
{
    char ids[PAGE_MAX][ID_LEN];
    char before[ID_LEN];
    char after[ID_LEN];
    hf_page_item items[PAGE_MAX];
    size_t count = 0;
    for (int i = from; i < to; i++, count++) {
        name_post(ids[count], number, edition, i);
        hf_depot_key key = hf_depot_key_of("blog", "post", ids[count]);
        items[count] = (hf_page_item){key, f->has_cursors ? ids[count] : NULL};
        if (has_value((post){number, edition, i}) && chance(&world.rng, 60)) {
            HF_TRY(hf_reply_add(reply, key, ids[count], strlen(ids[count])));
            world.posts++;
        }
    }
    name_post(before, number, edition, from);
    name_post(after, number, edition, to - 1);
    return hf_reply_page(reply, items, count, .before = from > 0 ? before : NULL,
                         .after = to < f->len[edition] ? after : NULL);
}

static hf_status fetch_page(const hf_fetch_request *request, hf_reply *reply)
{
    int number = *((const char *)request->key.id + 1) - '0';
    feed *f = &world.feeds[number];
    int edition = f->count - 1;
    int64_t began = now();
    bool reads_first = chance(&world.rng, 50);
    bool will_fail = !world.is_last && (world.is_down || chance(&world.rng, 15));
    HF_CHECK((request->page == HF_PAGE_INITIAL) == (request->token == NULL));
    HF_CHECK(request->page_size == 0 || request->page_size == (size_t)f->page_size);
    int64_t *loading = f->loading[request->page];
    int place = 0;
    while (place < 3 && loading[place] != 0) {
        place++;
    }
    loading[place] = began;
    hf_status status = hf_sleep(delay());
    loading[place] = 0;
    for (int i = 0; i < 4; i++) { /* one that was canceled ends in the same moment */
        HF_CHECK_SAY(loading[i] == 0 || loading[i] == now() || began == now(), "DP1 two loads at once");
    }
    world.answered_at = now();
    if (status != HF_OK) {
        world.trouble_at = now();
        return status;
    }
    if (will_fail) {
        return fail_with(reply);
    }
    int size = 1 + below(&world.rng, (int)f->page_size + 1);
    size =
        size <= f->window_max || f->has_cursors ? size : (int)f->window_max; /* else what is cut off cannot be found */
    int from = 0;
    int to = 0;
    if (request->page == HF_PAGE_INITIAL) {
        edition = reads_first ? edition : f->count - 1;
        from = f->first[edition];
        to = from + size;
    } else {
        post at = post_of(hf_depot_key_of("blog", "post", request->token));
        HF_CHECK_SAY(at.feed == number, "a token of another feed");
        edition = at.edition;
        from = request->page == HF_PAGE_APPEND ? at.index + 1 : at.index - size;
        to = request->page == HF_PAGE_APPEND ? from + size : at.index;
    }
    from = from > 0 ? from : 0;
    to = to < f->len[edition] ? to : f->len[edition];
    f->moved_at[request->page] = now();
    world.pages++;
    tell("feed %d answers %d with %d to %d of %d, edition %d", number, (int)request->page, from, to, f->len[edition],
         edition);
    return reply_posts(f, number, edition, from, to, reply);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    if (strcmp(request->key.type, "feed") == 0) {
        return fetch_page(request, reply);
    }
    HF_CHECK(request->page == HF_PAGE_INITIAL && strcmp(request->key.type, "post") == 0);
    HF_TRY(hf_sleep(delay()));
    if (!world.is_last && (world.is_down || chance(&world.rng, 10))) {
        return fail_with(reply);
    }
    return has_value(post_of(request->key)) ? hf_reply_value(reply, request->key.id, request->key.id_len)
                                            : HF_ERR_NOT_FOUND;
}

/* ---- Judging ----------------------------------------------------------------------------------------------------- */

/* What a view shows; count 0 = nothing. */
typedef struct shown {
    int edition, low, high; /* posts [low, high) */
    bool has_before, has_after;
    uint64_t version;
} shown;

static void judge_status(hf_status status, int64_t began, hf_span timeout, const feed *f)
{
    bool has_failed = status == HF_OK;
    for (int i = world.failure_count - 1; i >= 0 && !has_failed; i--) {
        has_failed = world.failures[i].status == status && world.failures[i].at >= began;
    }
    bool is_right = has_failed;
    switch (status) {
    case HF_ERR_TIMEOUT: /* of the caller, or of an attempt */
        is_right = is_right || (timeout.ns > 0 && now() - began >= timeout.ns) || world.trouble_at >= began;
        break;
    case HF_ERR_CANCELED:
        is_right = is_right || hf_canceled() != HF_OK || world.is_canceled;
        break;
    case HF_ERR_CLOSED:
        is_right = is_right || world.is_closing;
        break;
    case HF_ERR_UNAVAILABLE:
        is_right = is_right || world.is_offline || world.depot->is_offline || world.offline_at >= began ||
                   now() - world.trouble_at <= 120 * SECOND || world.answered_at >= began ||
                   world.depot->breakers[0].state == HF_BREAKER_HALF_OPEN;
        break;
    case HF_ERR_CONFLICT: /* of a load that it joined, too */
        is_right = is_right || f->void_at >= began - 120 * SECOND;
        for (int i = 0; i < 3; i++) {
            is_right = is_right || f->moved_at[i] >= began - 120 * SECOND;
        }
        break;
    default:
        break;
    }
    if (!HF_CHECK_SAY(is_right, "DP7 %s, but nothing failed so", hf_status_name(status))) {
        tell("%s; offline %d, changed at %lld; trouble at %lld, breaker %d", hf_error_text(), world.is_offline,
             (long long)(world.offline_at / 1000000), (long long)(world.trouble_at / 1000000),
             (int)world.depot->breakers[0].state);
    }
}

/* `voided`: the oldest edition that may be seen. Releases the items. */
static shown judge_view(int number, hf_pages_view *view, int voided, const shown *before)
{
    const feed *f = &world.feeds[number];
    size_t count = hf_items_count(view->items);
    shown one = {.edition = -1, .has_before = view->has_before, .has_after = view->has_after, .version = view->version};
    world.views++;
    HF_CHECK_SAY(before == NULL || view->version >= before->version, "DP4 a version goes back");
    HF_CHECK_SAY(count <= (size_t)f->window_max, "depot-P2 %zu posts", count);
    for (size_t i = 0; i < count; i++) {
        const hf_item *item = hf_items_at(view->items, i);
        post at = post_of(item->key);
        if (i == 0) {
            one.edition = at.edition;
            one.low = at.index;
        }
        HF_CHECK_SAY(at.feed == number && at.edition == one.edition && at.index == one.low + (int)i,
                     "depot-P1 post %d.%d.%d is not at its place", at.feed, at.edition, at.index);
        if (item->value != NULL) {
            HF_CHECK(item->status == HF_OK && hf_value_len(item->value) == item->key.id_len &&
                     memcmp(hf_value_data(item->value), item->key.id, item->key.id_len) == 0 && has_value(at));
        } else {
            HF_CHECK(item->status != HF_OK);
        }
    }
    one.high = one.low + (int)count;
    if (count > 0) {
        int len = f->len[one.edition];
        HF_CHECK_SAY(one.edition >= voided, "DP3 edition %d was invalidated, %d may be seen", one.edition, voided);
        HF_CHECK_SAY(one.high <= len && (!view->has_before || one.low > 0) && (!view->has_after || one.high < len),
                     "there is nothing to load at an end");
        HF_CHECK_SAY(!f->has_cursors || (view->has_before == (one.low > 0) && view->has_after == (one.high < len)),
                     "an end is lost: %d to %d of %d, %d %d", one.low, one.high, len, view->has_before,
                     view->has_after);
        HF_CHECK_SAY(view->is_fully_loaded == (one.low == 0 && one.high == len), "fully loaded: %d to %d of %d",
                     one.low, one.high, len);
    } else {
        HF_CHECK(!view->has_before && !view->has_after);
    }
    hf_items_free(view->items);
    return one;
}

/* ---- Actors ------------------------------------------------------------------------------------------------------ */

typedef struct actor {
    hf_rng rng;
    int number;
} actor;

static void pause_a_little(hf_rng *rng)
{
    int what = below(rng, 100);
    int64_t ms = what < 40 ? 0 : what < 80 ? below(rng, 400) : what < 95 ? below(rng, 5000) : below(rng, 400000);
    HF_IGNORE(hf_sleep(hf_milliseconds(ms)));
}

static hf_span any_timeout(hf_rng *rng)
{
    return chance(rng, 30) ? hf_milliseconds(1 + below(rng, 800)) : hf_nanoseconds(0);
}

static bool look(int number, hf_pages *pages, const shown *before, shown *ret_shown)
{
    hf_pages_view view;
    int voided = world.feeds[number].voided;
    int64_t began = now();
    hf_status status = hf_pages_look(pages, &view);
    if (status != HF_OK) {
        judge_status(status, began, hf_nanoseconds(0), &world.feeds[number]);
        return false;
    }
    *ret_shown = judge_view(number, &view, voided, before);
    return true;
}

/* One load. What it does is known for sure if nothing else happened to the feed. */
static void load(hf_rng *rng, int number, hf_pages *pages, shown *seen)
{
    feed *f = &world.feeds[number];
    hf_page_direction direction = (hf_page_direction)below(rng, 3);
    shown then = {0};
    int64_t looked = now();
    unsigned voids = f->voids;
    if (!look(number, pages, seen, seen)) {
        return;
    }
    int64_t began = now();
    hf_span timeout = any_timeout(rng);
    world.loads++;
    hf_status status = hf_pages_load(pages, direction, .timeout = timeout, .force = chance(rng, 20));
    judge_status(status, began, timeout, f);
    if (!look(number, pages, seen, &then) || status != HF_OK) {
        return;
    }
    tell("feed %d loaded %d: edition %d, %d to %d, then edition %d, %d to %d", number, (int)direction, seen->edition,
         seen->low, seen->high, then.edition, then.low, then.high);
    bool is_alone = voids == f->voids && f->void_at < looked;
    for (int i = 0; i < 3; i++) { /* one in the same moment may have landed later */
        is_alone = is_alone && (i == (int)direction || f->moved_at[i] < looked);
    }
    if (is_alone && direction != HF_PAGE_INITIAL && seen->high > seen->low) {
        bool is_append = direction == HF_PAGE_APPEND;
        bool goes_on = is_append ? seen->has_after : seen->has_before;
        int moved = is_append ? then.high - seen->high : seen->low - then.low;
        HF_CHECK_SAY(then.edition == seen->edition && (goes_on ? moved > 0 : moved == 0),
                     "direction %d: %d to %d, then %d to %d", (int)direction, seen->low, seen->high, then.low,
                     then.high);
    }
    *seen = then;
}

static void wait_for_news(hf_rng *rng, int number, hf_pages *pages, shown *seen)
{
    hf_pages_view view;
    int voided = world.feeds[number].voided;
    int64_t began = now();
    hf_span timeout = hf_milliseconds(1 + below(rng, 4000));
    hf_status status = hf_pages_next(pages, &view, .timeout = timeout);
    judge_status(status, began, timeout, &world.feeds[number]);
    if (status == HF_OK) {
        *seen = judge_view(number, &view, voided, seen);
    }
}

static hf_status open_pages(hf_rng *rng, int number, hf_pages **ret_pages)
{
    const feed *f = &world.feeds[number];
    return hf_pages_open(world.depot, feed_key(number), ret_pages, .page_size = f->page_size,
                         .window_max = f->window_max, .ttl = hf_seconds(1 + below(rng, 400)),
                         .members = chance(rng, 50) ? HF_FRESH_LOCAL : HF_FRESH_CACHED);
}

static hf_status read_feed(void *arg)
{
    hf_rng rng = {.state = (uint64_t)(uintptr_t)arg};
    int number = below(&rng, FEEDS);
    hf_pages *pages = NULL;
    shown seen = {0};
    int64_t began = now();
    hf_status status = open_pages(&rng, number, &pages);
    judge_status(status, began, hf_nanoseconds(0), &world.feeds[number]);
    for (int i = below(&rng, 8); i > 0 && status == HF_OK && !world.is_closing && hf_canceled() == HF_OK; i--) {
        int what = below(&rng, 100);
        if (what < 60) {
            load(&rng, number, pages, &seen);
        } else if (what < 80) {
            wait_for_news(&rng, number, pages, &seen);
        } else {
            (void)look(number, pages, &seen, &seen);
        }
        pause_a_little(&rng);
    }
    HF_CHECK(hf_pages_close(pages) == HF_OK);
    return HF_OK;
}

static void read_and_cancel(hf_rng *rng)
{
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .join = HF_JOIN_DISCARD) == HF_OK);
    for (int i = 0; i < 2; i++) {
        HF_CHECK(hf_fork(scope, read_feed, (void *)(uintptr_t)hf_rng_next(rng)) == HF_OK);
    }
    HF_IGNORE(hf_sleep(hf_milliseconds(below(rng, 2000))));
    HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
}

static void invalidate(hf_rng *rng)
{
    int what = below(rng, 100);
    int number = below(rng, FEEDS);
    bool is_hard = chance(rng, 40);
    int editions[FEEDS];
    for (int i = 0; i < FEEDS; i++) {
        feed *f = &world.feeds[i];
        editions[i] = f->count - 1;
        f->voids++;
        f->void_at = INT64_MAX; /* until it has returned */
    }
    hf_status status = what < 60   ? hf_depot_invalidate(world.depot, feed_key(number), .hard = is_hard)
                       : what < 85 ? hf_depot_invalidate_namespace(world.depot, "blog", .hard = is_hard)
                                   : hf_depot_invalidate_all(world.depot, .hard = is_hard);
    HF_CHECK_SAY(status == HF_OK || (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK,
                 "invalidate: %s", hf_status_name(status));
    for (int i = 0; i < FEEDS; i++) {
        feed *f = &world.feeds[i];
        f->void_at = now();
        f->voids++;
        bool is_meant = status == HF_OK && (what >= 60 || i == number);
        f->voided = is_meant && editions[i] > f->voided ? editions[i] : f->voided;
    }
    world.voids++;
    tell("feed %d was invalidated (%d)", what < 60 ? number : -1, (int)is_hard);
}

static void disturb(hf_rng *rng)
{
    int what = below(rng, 100);
    if (what < 30) {
        world.is_down = !world.is_down;
    } else if (what < 60) {
        begin_edition(&world.feeds[below(rng, FEEDS)], rng);
    } else if (what < 85) {
        bool is_online = chance(rng, 70);
        world.is_offline = world.is_offline || !is_online;
        hf_status status = hf_depot_online(world.depot, is_online);
        world.is_offline = !is_online;
        world.offline_at = now();
        HF_CHECK(status == HF_OK || (status == HF_ERR_CLOSED && world.is_closing) || hf_canceled() != HF_OK);
    } else {
        HF_IGNORE(hf_depot_trim(world.depot, 0));
    }
}

static hf_status act(void *arg)
{
    actor *self = arg;
    for (int i = 3 + below(&self->rng, 8); i > 0 && !world.is_closing && hf_canceled() == HF_OK; i--) {
        int what = below(&self->rng, 100);
        if (what < 50) {
            HF_IGNORE(read_feed((void *)(uintptr_t)hf_rng_next(&self->rng)));
        } else if (what < 60) {
            read_and_cancel(&self->rng);
        } else if (what < 75) {
            invalidate(&self->rng);
        } else {
            disturb(&self->rng);
        }
        pause_a_little(&self->rng);
    }
    return HF_OK;
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

/* The origin is well: every end can be reached. */
static void settle(hf_rng *rng)
{
    world.is_last = true;
    world.is_down = false;
    HF_CHECK(hf_depot_online(world.depot, true) == HF_OK);
    world.is_offline = false;
    HF_CHECK(hf_sleep(hf_minutes(15)) == HF_OK);
    for (int number = 0; number < FEEDS; number++) {
        const feed *f = &world.feeds[number];
        hf_pages *pages = NULL;
        shown seen = {0};
        HF_CHECK(open_pages(rng, number, &pages) == HF_OK);
        HF_CHECK(hf_sleep(hf_seconds(20)) == HF_OK); /* its fetch may be the probe of the breaker */
        HF_CHECK(hf_pages_load(pages, HF_PAGE_INITIAL, .force = true) == HF_OK);
        HF_CHECK(look(number, pages, NULL, &seen));
        int len = f->len[f->count - 1];
        HF_CHECK_SAY(seen.edition == (len > f->first[f->count - 1] ? f->count - 1 : -1), "edition %d of %d",
                     seen.edition, f->count);
        for (int i = 0; i <= len && seen.has_after; i++) {
            HF_CHECK(hf_pages_load(pages, HF_PAGE_APPEND, .force = true) == HF_OK);
            HF_CHECK(look(number, pages, &seen, &seen));
        }
        HF_CHECK_SAY(!seen.has_after && (len == 0 || seen.high == len), "the end is not reached: %d of %d", seen.high,
                     len);
        bool has_all = f->has_cursors || f->window_max > len;
        for (int i = 0; i <= len && seen.has_before; i++) {
            HF_CHECK(hf_pages_load(pages, HF_PAGE_PREPEND, .force = true) == HF_OK);
            HF_CHECK(look(number, pages, &seen, &seen));
        }
        HF_CHECK_SAY(!seen.has_before && (!has_all || seen.low == 0), "the beginning is not reached: %d", seen.low);
        HF_CHECK(hf_pages_close(pages) == HF_OK);
    }
    HF_CHECK(hf_sleep(hf_minutes(1)) == HF_OK); /* posts are refreshed behind the reader's back */
    hf_depot_counts counts;
    HF_CHECK(hf_depot_stat(world.depot, &counts) == HF_OK);
    HF_CHECK_SAY(counts.flights == 0 && counts.breakers_open == 0 && counts.damaged == 0, "DP10 a load does not end");
}

static void run_round(hf_rng *rng, bool is_cut)
{
    actor actors[ACTORS_MAX];
    hf_scope *scope = NULL;
    hf_depot_options options = {.size = sizeof options,
                                .fetch = fetch,
                                .ttl = hf_seconds(1 + below(rng, 100)),
                                .bytes_max = chance(rng, 50) ? 2000 : 0,
                                .fetch_max = chance(rng, 30) ? 2 : 0};
    HF_CHECK(hf_scope_open(&scope, .join = HF_JOIN_DISCARD) == HF_OK);
    HF_CHECK(hf_depot_open_in("model", &world.depot, &options, world.has_store ? &world.store.base : NULL) == HF_OK);
    world.is_offline = false;
    int count = 1 + below(rng, ACTORS_MAX);
    for (int i = 0; i < count; i++) {
        actors[i] = (actor){.rng = {.state = hf_rng_next(rng)}, .number = i};
        HF_CHECK(hf_fork(scope, act, &actors[i]) == HF_OK);
    }
    if (is_cut) {
        HF_IGNORE(hf_sleep(hf_milliseconds(below(rng, 8000))));
    } else {
        HF_IGNORE(hf_join(scope));
        settle(rng);
    }
    world.is_closing = true;
    HF_IGNORE(hf_sleep(hf_milliseconds(1))); /* calls that have begun are inside now */
    if (is_cut && chance(rng, 30)) {
        world.is_canceled = true; /* the depot is in the scope, too */
        HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    }
    HF_CHECK(hf_depot_close(world.depot) == HF_OK);
    HF_IGNORE(hf_join(scope));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    world.is_closing = world.is_canceled = false;
}

static hf_status root(void *arg)
{
    hf_rng *rng = arg;
    hf_op opening;
    hf_op_init(&opening);
    world.has_store = chance(rng, 60);
    world.store = (lent){.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_CHECK(hf_mem_store_open(&opening, hf_env_memory(hf_env_posix()), &hf_depot_tables, &world.store.inner) == HF_OK);
    for (int rounds = world.has_store ? below(rng, 3) : 0; rounds > 0; rounds--) {
        run_round(rng, true);
        world.reopened++;
    }
    run_round(rng, false);
    hf_store_close(world.store.inner);
    return HF_OK;
}

static uint64_t totals[6];

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    hf_rng rng = {.state = hf_hash_mix(163, seed)};
    world.rng.state = hf_rng_next(&rng);
    world.trouble_at = world.answered_at = world.offline_at = -1000 * SECOND;
    for (int i = 0; i < FEEDS; i++) {
        feed *f = &world.feeds[i];
        f->page_size = 1 + below(&rng, PAGE_MAX - 2);
        f->window_max = f->page_size + below(&rng, (int)f->page_size * 9 + 1);
        f->has_cursors = chance(&rng, 60);
        f->void_at = f->moved_at[0] = f->moved_at[1] = f->moved_at[2] = -1000 * SECOND;
        begin_edition(f, &rng);
    }
    uint64_t hash = 0;
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 4), root, &rng, &hash) == HF_OK);
    HF_CHECK(hf_sim_errors_logged() == 0);
    uint64_t counts[] = {world.loads, world.views, world.posts, world.pages, world.voids, world.reopened};
    for (size_t i = 0; i < HF_COUNT_OF(counts); i++) {
        totals[i] += counts[i];
    }
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 50 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "the same seed gave another trace");
    }
}

static void pages_do_what_their_twin_says(void **state)
{
    (void)state;
    memset(totals, 0, sizeof totals);
    hf_each_seed("pages", 2000, one_seed);
    print_message("loads %llu, views %llu, posts %llu, pages %llu, invalidations %llu, reopened %llu\n",
                  (unsigned long long)totals[0], (unsigned long long)totals[1], (unsigned long long)totals[2],
                  (unsigned long long)totals[3], (unsigned long long)totals[4], (unsigned long long)totals[5]);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(pages_do_what_their_twin_says)};
    return hf_test_main("pages_model", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
