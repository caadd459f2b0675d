/* Opening and closing a depot, and what can be asked about it. */
#include "depot/fetching.h"
#include "depot/file.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "base/options.h"
#include "fiber/keyed/cache.h"
#include "fiber/verbs.h"

/* ---- Options ----------------------------------------------------------------------------------------------------- */

typedef struct span_rule {
    size_t offset;
    const char *name;
    int64_t fallback;
    bool may_be_off;
} span_rule;

#define SECONDS(count) ((int64_t)(count)*1000000000)
static const span_rule SPANS[] = {
    {offsetof(hf_depot_options, ttl), ".ttl", SECONDS(300), false},
    {offsetof(hf_depot_options, stale_max), ".stale_max", INT64_MAX, false},
    {offsetof(hf_depot_options, negative_ttl), ".negative_ttl", SECONDS(30), true},
    {offsetof(hf_depot_options, keep), ".keep", SECONDS(30 * 86400), false},
    {offsetof(hf_depot_options, fetch_timeout), ".fetch_timeout", SECONDS(10), false},
    {offsetof(hf_depot_options, coalesce), ".coalesce", 150000000, true},
    {offsetof(hf_depot_options, batch_window), ".batch_window", 0, true},
};

typedef struct number_rule {
    size_t offset;
    const char *name;
    int64_t fallback;
    int64_t max;
    int64_t off; /* what HF_OFF stands for; -1 = it is refused */
} number_rule;

static const number_rule NUMBERS[] = {
    {offsetof(hf_depot_options, bytes_max), ".bytes_max", INT64_C(64) << 20, INT64_MAX, -1},
    {offsetof(hf_depot_options, file_max), ".file_max", INT64_C(1) << 30, INT64_MAX, -1},
    {offsetof(hf_depot_options, value_max), ".value_max", INT64_C(2) << 20, INT64_C(32) << 20, -1},
    {offsetof(hf_depot_options, fetch_max), ".fetch_max", 64, 100000, -1},
    {offsetof(hf_depot_options, send_max), ".send_max", 16, 100000, -1},
    {offsetof(hf_depot_options, refresh_max), ".refresh_max", 64, 100000, 0},
    {offsetof(hf_depot_options, pending_max), ".pending_max", 100000, INT64_MAX, -1},
    {offsetof(hf_depot_options, pending_bytes_max), ".pending_bytes_max", INT64_C(64) << 20, INT64_MAX, -1},
    {offsetof(hf_depot_options, retries), ".retries", 2, 100, 0},
};

static hf_status settle_options(hf_op *op, hf_depot_options *options)
{
    for (size_t i = 0; i < HF_COUNT_OF(SPANS); i++) {
        hf_span *span = (hf_span *)(void *)((char *)options + SPANS[i].offset);
        if (span->ns == 0) {
            span->ns = SPANS[i].fallback;
        } else if (span->ns == -1 && SPANS[i].may_be_off) {
            span->ns = 0;
        } else if (span->ns < 0) {
            return hf_fail(op, HF_ERR_INVALID, "%s is negative", SPANS[i].name);
        }
    }
    for (size_t i = 0; i < HF_COUNT_OF(NUMBERS); i++) {
        int64_t *number = (int64_t *)(void *)((char *)options + NUMBERS[i].offset);
        if (*number == 0) {
            *number = NUMBERS[i].fallback;
        } else if (*number == HF_OFF && NUMBERS[i].off >= 0) {
            *number = NUMBERS[i].off;
        } else if (*number < 0 || *number > NUMBERS[i].max) {
            return hf_fail(op, HF_ERR_INVALID, "%s is %lld: it may be 1 to %lld", NUMBERS[i].name, (long long)*number,
                           (long long)NUMBERS[i].max);
        }
    }
    options->attempts_max = options->attempts_max == 0 ? HF_UNLIMITED : options->attempts_max;
    if (options->attempts_max < 1 && options->attempts_max != HF_UNLIMITED) {
        return hf_fail(op, HF_ERR_INVALID, ".attempts_max must be 1 or more");
    }
    if (options->on_conflict == HF_CONFLICT_DEFAULT) {
        options->on_conflict = HF_CONFLICT_SERVER_WINS;
    }
    if ((unsigned)options->on_conflict > HF_CONFLICT_MERGE ||
        (options->on_conflict == HF_CONFLICT_MERGE && options->merge == NULL)) {
        return hf_fail(op, HF_ERR_INVALID, ".on_conflict has no such value, or needs .merge");
    }
    if (options->subscribe != NULL && (options->fetch != NULL || options->fetch_many != NULL)) {
        return hf_fail(op, HF_ERR_INVALID, ".subscribe is used instead of .fetch and .fetch_many, not beside them");
    }
    if (options->batch_window.ns > 0 && options->fetch_many == NULL) {
        return hf_fail(op, HF_ERR_INVALID, ".batch_window needs .fetch_many");
    }
    if (options->source != NULL && options->file != NULL) {
        return hf_fail(op, HF_ERR_INVALID, "a depot has a .file or a .source, not both");
    }
    return HF_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

void hf_depot_unref(hf_depot *depot)
{
    if (atomic_fetch_sub_explicit(&depot->refs, 1, memory_order_acq_rel) == 1) {
        hf_rt_free(depot->rt, depot, sizeof *depot);
    }
}

static void free_spaces(hf_depot *depot)
{
    for (hf_key_node *node = hf_keys_any(&depot->spaces); node != NULL; node = hf_keys_any(&depot->spaces)) {
        hf_space *space = HF_CONTAINER(node, hf_space, name);
        hf_keys_remove(&depot->spaces, node);
        hf_snap_unref(space->none);
        hf_rt_free(depot->rt, space, sizeof *space + space->name.len);
    }
}

/* What is left when nothing is under way any more. */
static void take_down(hf_depot *depot)
{
    hf_depot_source_close(depot);
    depot->is_ending = true;
    hf_depot_drop_rows(depot);
    hf_paging_drop_all(depot);
    hf_assert(depot->slots.count == 0 && depot->flight_count == 0 && depot->works == 0); /* DP8 */
    hf_damaged_free(depot);
    (void)hf_flow_free(depot->events); /* those who listen hear that it is closed */
    hf_assert(depot->stirs.count == 0 && depot->index.nodes.count == 0 && depot->paging.count == 0); /* DP8 */
    (void)hf_cache_free(depot->memory);
    hf_alias_drop_all(depot);
    (void)hf_keylock_free(depot->decoding);
    free_spaces(depot);
    hf_spare_drop_all(depot);
    hf_heap_deinit(&depot->timers);
    hf_depot_unref(depot);
}

static hf_depot *depot_new(hf_runtime *rt, const char *name, const hf_depot_options *options)
{
    hf_depot *depot = hf_rt_alloc(rt, sizeof *depot);
    if (depot == NULL) {
        return NULL;
    }
    depot->rt = rt;
    depot->name = name;
    depot->options = *options;
    hf_list *lists[] = {&depot->inbox,       &depot->keeper_waits, &depot->closer_waits, &depot->queue[0],
                        &depot->queue[1],    &depot->queue[2],     &depot->rows,         &depot->batch,
                        &depot->committing,  &depot->senders,      &depot->all_flights,  &depot->all_watchers,
                        &depot->boarded,     &depot->alias_order,  &depot->damaged,      &depot->stirs_by_age,
                        &depot->paging_idle, &depot->index.all,    &depot->gathering,    &depot->subs};
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        hf_list_init(lists[i]);
    }
    atomic_store_explicit(&depot->refs, 1, memory_order_relaxed);
    depot->seed = hf_keys_seed(rt);
    depot->rng.state = hf_keys_seed(rt);
    depot->sequence_next = 1;
    depot->boarding = 1;
    depot->waits_for_drive = options->driven;
    hf_heap_init(&depot->timers, hf_env_memory(rt->env));
    return depot;
}

hf_status hf_depot_open_in(const char *name, hf_depot **ret_depot, const hf_depot_options *given, hf_store *store)
{
    hf_op op;
    hf_op_init(&op);
    hf_depot_options options = *given;
    hf_runtime *rt = options.runtime != NULL ? options.runtime : hf_runtime_current();
    if (name == NULL || ret_depot == NULL || rt == NULL) {
        hf_store_close(store);
        (void)hf_fail_at(&op, HF_ERR_MISUSE, "hf_depot_open",
                         "hf_depot_open needs a name, a place for the depot, and on a plain thread .runtime");
        return hf_depot_raise(NULL, &op);
    }
    if (settle_options(&op, &options) != HF_OK) {
        hf_store_close(store);
        return hf_depot_raise(NULL, &op);
    }
    hf_depot *depot = depot_new(rt, name, &options);
    if (depot == NULL) {
        hf_store_close(store);
        (void)hf_fail_at(&op, HF_ERR_NOMEM, "hf_depot_open", "no memory for depot '%s'", name);
        return hf_depot_raise(NULL, &op);
    }
    hf_status status = hf_cache_new(&depot->memory, .name = name, .runtime = rt, .count_max = HF_UNLIMITED,
                                    .bytes_max = options.bytes_max, .evict = HF_EVICT_S3FIFO);
    if (status == HF_OK) {
        status = hf_flow_new(sizeof(hf_depot_news), &depot->events, .name = name, .runtime = rt);
    }
    if (status == HF_OK && options.decode != NULL) {
        status = hf_keylock_new(&depot->decoding, .name = name, .runtime = rt);
    }
    if (status == HF_OK && (store != NULL || options.file != NULL || options.source != NULL)) {
        status = store != NULL          ? hf_source_open_store(&op, depot, store)
                 : options.file != NULL ? hf_depot_source_open(&op, depot, options.file)
                                        : hf_depot_source_hook(&op, depot, options.source);
        status = status != HF_OK ? hf_depot_raise(depot, &op) : HF_OK;
    } else if (status != HF_OK) {
        hf_store_close(store);
    }
    if (status == HF_OK && hf_depot_make_timers(depot) != HF_OK) {
        (void)hf_fail_at(&op, HF_ERR_NOMEM, "hf_depot_open", "no memory for depot '%s'", name);
        status = hf_depot_raise(depot, &op);
    }
    if (status == HF_OK) {
        status = hf_scope_open(&depot->scope, .name = name, .join = HF_JOIN_DISCARD, .runtime = options.runtime);
    }
    if (status == HF_OK) {
        depot->owner = (const hf_fiber *)(void *)hf_self_get();
        depot->options.source = NULL; /* it was copied */
        status = hf_fork(depot->scope, hf_depot_keeper, depot, .name = name);
        bool is_kept = status == HF_OK;
        if (is_kept) { /* last: from here on the source is the depot's, to be closed by it */
            status = hf_depot_source_start(depot);
        }
        if (status != HF_OK) {
            if (is_kept) {
                hf_depot_end_keeper(depot);
            }
            (void)hf_scope_close(depot->scope);
        }
    }
    if (status != HF_OK) {
        take_down(depot);
        return status;
    }
    hf_depot_send_what_is_left(depot);
    hf_depot_panel_open(depot);
    if (hf_source_path(depot) != NULL && hf_fork(depot->scope, hf_depot_door, depot, .name = name) != HF_OK) {
        hf_log(rt, HF_LOG_WARN, "depot_without_socket", "depot=%s message=%s", name, hf_error_text());
    }
    *ret_depot = depot;
    return HF_OK;
}

hf_status hf_depot_open_with(const char *name, hf_depot **ret_depot, const hf_depot_options *options)
{
    HF_OPTIONS(hf_depot_options, options, hf_depot_open);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_open));
    HF_TRY(hf_depot_check_place(options->runtime, "hf_depot_open"));
    return hf_depot_open_in(name, ret_depot, options, NULL);
}

static void act_start(hf_depot *depot, hf_post *post)
{
    hf_depot_look_at_all_sends(depot, false);
    hf_depot_keep_house(depot);
    hf_depot_answer(depot, HF_CONTAINER(post, hf_ask, post), HF_OK);
}

/* Writes of an earlier process. */
void hf_depot_send_what_is_left(hf_depot *depot)
{
    hf_ask ask = {.what = NULL};
    hf_depot_tell(depot, &ask, act_start, "hf_depot_open");
}

/* ---- Closing ----------------------------------------------------------------------------------------------------- */

static bool is_idle(const hf_depot *depot)
{
    return depot->works == 0 && !depot->is_committing && hf_list_is_empty(&depot->batch) && depot->loads == 0;
}

void hf_depot_look_at_end(hf_depot *depot)
{
    hf_ask *closer = depot->closer;
    if (closer != NULL && is_idle(depot)) {
        depot->closer = NULL;
        hf_depot_answer(depot, closer, HF_OK);
    }
}

/* Those who wait hear that the depot closes, before anything is canceled. */
static void act_stop(hf_depot *depot, hf_post *post)
{
    depot->is_ending = true;
    hf_watch_close_all(depot);
    hf_flight_end_all(depot);
    hf_pending_end_all(depot);
    hf_driven_end(depot);
    hf_depot_answer(depot, HF_CONTAINER(post, hf_ask, post), HF_OK);
}

static void act_end(hf_depot *depot, hf_post *post)
{
    depot->closer = HF_CONTAINER(post, hf_ask, post);
    hf_depot_look_at_end(depot);
}

static const hf_wait_kind LAST_CALL = {"hf_depot_close", NULL};

/* Waits until no call is inside. */
static void await_calls(hf_depot *depot)
{
    hf_fiber *self = hf_enter(depot->rt);
    if (self == NULL) {
        return;
    }
    hf_wait wait;
    hf_wait_init(&wait, self, &LAST_CALL, depot, depot->name);
    hf_spin_lock(&depot->lock);
    bool waits = depot->users > 0;
    if (waits) {
        hf_list_push_back(&depot->closer_waits, &wait.node);
    }
    hf_spin_unlock(&depot->lock);
    if (waits) {
        (void)hf_park(self, &wait, HF_INSTANT_NEVER);
    }
    hf_leave(self);
}

hf_status hf_depot_close(hf_depot *depot)
{
    if (depot == NULL) {
        return HF_OK;
    }
    HF_TRY(HF_VERB_ALLOWED(hf_depot_close));
    HF_TRY(hf_depot_check_place(depot->rt, "hf_depot_close"));
    hf_op op;
    hf_op_init(&op);
    if (depot->owner != (const hf_fiber *)(void *)hf_self_get()) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "depot '%s' must be closed by the fiber or thread that opened it",
                      depot->name);
        return hf_depot_raise(depot, &op);
    }
    if (atomic_load_explicit(&depot->driver, memory_order_relaxed) == depot->owner && depot->owner != NULL) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "depot '%s' cannot be closed by a function that it has called", depot->name);
        return hf_depot_raise(depot, &op);
    }
    hf_driven_close(depot);
    hf_spin_lock(&depot->lock);
    bool is_first = !depot->is_closing;
    depot->is_closing = true;
    hf_spin_unlock(&depot->lock);
    if (!is_first) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "depot '%s' is closed already", depot->name);
        return hf_depot_raise(depot, &op);
    }
    hf_panel_remove(depot->rt, &depot->panel);
    hf_ask stop = {.what = NULL};
    hf_depot_tell(depot, &stop, act_stop, "hf_depot_close");
    HF_IGNORE(hf_scope_cancel(depot->scope, .reason = "the depot closes"));
    hf_ask ask = {.what = NULL};
    hf_depot_tell(depot, &ask, act_end, "hf_depot_close");
    await_calls(depot);
    hf_depot_end_keeper(depot);
    hf_depot_source_stop(depot);
    (void)hf_scope_close(depot->scope);
    take_down(depot);
    return HF_OK;
}

/* ---- Figures and settings ---------------------------------------------------------------------------------------- */

static void act_stat(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    hf_depot_fill_counts(depot, ask->what);
    hf_depot_answer(depot, ask, HF_OK);
}

hf_status hf_depot_stat(hf_depot *depot, hf_depot_counts *ret_counts)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_stat));
    HF_TRY(hf_depot_enter(depot, "hf_depot_stat"));
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    if (ret_counts == NULL) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "hf_depot_stat needs a place for the counts");
        status = hf_depot_raise(depot, &op);
    } else {
        hf_ask ask = {.what = ret_counts};
        status = hf_depot_ask(depot, &ask, act_stat, "hf_depot_stat", hf_nanoseconds(0));
    }
    hf_depot_leave(depot);
    return status;
}

static void act_online(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    bool was_offline = depot->is_offline;
    depot->is_offline = ask->drops;
    if (was_offline && !depot->is_offline) {
        hf_depot_look_at_all_sends(depot, true);
        hf_depot_look_at_all_subs(depot);
    }
    hf_depot_answer(depot, ask, HF_OK);
}

hf_status hf_depot_online(hf_depot *depot, bool is_online)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_online));
    HF_TRY(hf_depot_enter(depot, "hf_depot_online"));
    hf_ask ask = {.drops = !is_online};
    hf_status status = hf_depot_ask(depot, &ask, act_online, "hf_depot_online", hf_nanoseconds(0));
    hf_depot_leave(depot);
    return status;
}

hf_status hf_depot_trim(hf_depot *depot, int64_t bytes)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_trim));
    HF_TRY(hf_depot_enter(depot, "hf_depot_trim"));
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    if (bytes < 0) {
        (void)hf_fail(&op, HF_ERR_INVALID, "hf_depot_trim was given %lld bytes", (long long)bytes);
        status = hf_depot_raise(depot, &op);
    } else {
        hf_cache_trim(depot->memory, (size_t)bytes);
    }
    hf_depot_leave(depot);
    return status;
}

double hf_depot_chance_of(hf_depot *depot)
{
    uint64_t seed = 0;
    hf_op op;
    hf_op_init(&op);
    if (depot->jitter_is_full || depot->rt->env->ops->random(depot->rt->env, &op, &seed, sizeof seed) != HF_OK) {
        return 1.0;
    }
    return (double)(seed % 1000001) / 1000000.0;
}
