/* Many keys in one call. Each key has an ask of its own, which goes the way of hf_depot_get: memory, source, flight. Nobody waits
 * for one of them; the call waits for all, and its deadline or cancel takes all of them back.
 *
 *     hf_depot_get_many ---- whole ----> act_begin: an ask per key
 *                                          |-> in memory ............ answered
 *                                          |-> being read ........... acted on again when the key is known
 *                                          `-> a flight ............. gathered until every key is decided, then queued
 *                       <--- answer ----  left == 0
 *
 * depot-M1  A key is decided once, but again if it gets another name: it is answered, or it waits for a flight. It is answered
 *           once.
 * depot-M2  The struct is the caller's. The driver has it from act_begin until `left` is 0 or act_leave has returned. */
#include "depot/fetching.h"

#include "fiber/verbs.h"

#include <stdio.h>

/* ---- By the driver ----------------------------------------------------------------------------------------------- */

static hf_many_key *key_of(hf_ask *ask)
{
    return HF_CONTAINER(ask, hf_many_key, ask);
}

/* The flights share their calls, now that there will be no more of them. */
static void release(hf_depot *depot, hf_many *many)
{
    hf_flight_queue_all(depot, &many->gathered);
}

void hf_many_decided(hf_depot *depot, hf_ask *ask)
{
    hf_many *many = ask->many;
    hf_many_key *key = key_of(ask);
    hf_assert(!key->is_decided && many->undecided > 0); /* depot-M1 */
    key->is_decided = true;
    if (--many->undecided == 0 && !many->is_acting) {
        release(depot, many);
    }
}

void hf_many_again(hf_ask *ask)
{
    hf_many_key *key = key_of(ask);
    hf_assert(key->is_decided && !key->is_done && ask->flight == NULL); /* depot-M1 */
    key->is_decided = false;
    ask->many->undecided++;
}

/* All keys are answered: the call goes on, unless it is about to leave by itself. */
static void conclude(hf_depot *depot, hf_many *many)
{
    hf_assert(many->left == 0 && many->undecided == 0 && hf_list_is_empty(&many->gathered)); /* depot-M2 */
    hf_ask *whole = hf_depot_unpark(depot, &many->waits);
    if (whole != NULL) {
        hf_depot_answer(depot, whole, HF_OK); /* from here on `many` may be gone */
    }
}

void hf_many_answered(hf_depot *depot, hf_ask *ask, hf_status status)
{
    hf_many *many = ask->many;
    hf_many_key *key = key_of(ask);
    hf_assert(!key->is_done && many->left > 0); /* depot-M1, depot-D3 */
    key->is_done = true;
    key->status = status;
    if (!key->is_decided) {
        hf_many_decided(depot, ask);
    }
    if (--many->left == 0 && !many->is_acting) {
        conclude(depot, many);
    }
}

static void act_begin(hf_depot *depot, hf_post *post)
{
    hf_ask *whole = HF_CONTAINER(post, hf_ask, post);
    hf_many *many = HF_CONTAINER(whole, hf_many, whole);
    if (hf_depot_refuses(depot, whole)) {
        return;
    }
    many->has_begun = many->is_acting = true;
    many->ticket = ++depot->ticket_last;
    many->left = many->undecided = many->count;
    for (size_t i = 0; i < many->count; i++) {
        hf_read_act(depot, &many->keys[i].ask.post);
    }
    many->is_acting = false;
    if (many->undecided == 0) {
        release(depot, many);
    }
    if (many->left == 0) {
        hf_depot_answer(depot, whole, HF_OK);
    } else {
        (void)hf_depot_park(depot, whole, &many->waits); /* one that wants out is answered, and leaves */
    }
}

/* The call does not wait any more: its keys are taken back, and what they hold goes back (DP7). */
static void act_leave(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    hf_many *many = ask->what;
    hf_assert(!hf_node_is_linked(&many->whole.wait.node));
    if (many->has_begun) {
        many->is_acting = true;
        release(depot, many); /* others may have joined these flights */
        for (size_t i = 0; i < many->count; i++) {
            hf_many_key *key = &many->keys[i];
            if (key->is_done) {
                continue;
            }
            hf_spin_lock(&depot->lock);
            hf_assert(hf_node_is_linked(&key->ask.wait.node)); /* it waits for its key or for a flight */
            hf_list_remove(&key->ask.wait.node);
            hf_spin_unlock(&depot->lock);
            hf_depot_answer(depot, &key->ask, HF_ERR_TIMEOUT);
        }
        hf_assert(many->left == 0 && hf_list_is_empty(&many->gathered)); /* depot-M2 */
    }
    hf_depot_answer(depot, ask, HF_OK);
}

/* ---- By the caller ----------------------------------------------------------------------------------------------- */

static size_t many_len(size_t capacity)
{
    return sizeof(hf_many) + capacity * sizeof(hf_many_key);
}

/* A key is kept without the room behind it. */
static size_t bytes_len(const hf_depot_key_bytes *bytes)
{
    return offsetof(hf_depot_key_bytes, bytes) + bytes->len;
}

static hf_many *many_new(hf_depot *depot, size_t capacity)
{
    hf_many *many = hf_rt_alloc(depot->rt, many_len(capacity));
    if (many != NULL) {
        many->capacity = capacity;
        hf_list_init(&many->waits);
        hf_list_init(&many->gathered);
    }
    return many;
}

static void many_free(hf_depot *depot, hf_many *many)
{
    if (many == NULL) {
        return;
    }
    for (size_t i = 0; i < many->count; i++) {
        hf_many_key *key = &many->keys[i];
        hf_assert(key->ask.slot == NULL && key->ask.flight == NULL); /* depot-M2 */
        hf_snap_unref(key->ask.snap);
        hf_box_unref(key->ask.failure);
        hf_rt_free(depot->rt, key->bytes, bytes_len(key->bytes));
    }
    hf_rt_free(depot->rt, many, many_len(many->capacity));
}

static void drop_results(hf_depot_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_value_unref(results[i].value);
        results[i].value = NULL;
    }
}

static void say(hf_depot_result *result, hf_status status, const char *message)
{
    result->status = status;
    (void)snprintf(result->message, sizeof result->message, "%.*s", (int)sizeof result->message - 1, message);
}

static void take_result(hf_depot *depot, hf_many_key *key, hf_depot_result *result, hf_depot_info *info)
{
    hf_ask *ask = &key->ask;
    hf_assert(key->is_done);
    if (key->status == HF_OK) {
        result->status = hf_snap_give(depot, ask->snap, &result->value);
        if (result->status != HF_OK) {
            const hf_failure *failure = hf_error_as(result->status);
            say(result, result->status, failure != NULL ? failure->message : hf_status_text(result->status));
        } else if (info != NULL) {
            hf_info_fill(info, ask->snap, ask->age, ask->is_stale, ask->snap->is_pending ? HF_DEPOT_WRITE : ask->place);
        }
        return;
    }
    const char *message = ask->failure != NULL            ? ask->failure->failure.message
                          : ask->op.status == key->status ? ask->op.message
                          : key->status == HF_ERR_TIMEOUT ? "the key had no answer before the call's timeout"
                                                          : hf_status_text(key->status);
    say(result, key->status, message);
    if (info != NULL && key->status == HF_ERR_UNAVAILABLE) {
        info->retry_after = hf_nanoseconds(ask->retry_after);
    }
}

/* The keys that memory does not answer. */
static hf_status ask_rest(hf_depot *depot, hf_many *many, hf_depot_result *results,
                          const hf_depot_get_many_options *options)
{
    hf_status status = hf_depot_ask(depot, &many->whole, act_begin, "hf_depot_get_many", options->timeout);
    if (status != HF_OK) {
        hf_ask leave = {.what = many};
        hf_depot_tell(depot, &leave, act_leave, "hf_depot_get_many");
        if (status != HF_ERR_TIMEOUT) {
            return status;
        }
    }
    unsigned pace = 0;
    for (size_t i = 0; i < many->count; i++) {
        hf_many_key *key = &many->keys[i];
        if (!key->is_done) { /* its time was over before it was asked for */
            key->is_done = true;
            key->status = HF_ERR_TIMEOUT;
        }
        take_result(depot, key, &results[key->index],
                    options->ret_infos != NULL ? &options->ret_infos[key->index] : NULL);
        HF_TRY(hf_pace(&pace, 16)); /* S20: decoders run here */
    }
    return HF_OK;
}

/* False: no memory. */
static bool add_key(hf_depot *depot, hf_many *many, size_t index, const hf_depot_key_bytes *bytes,
                    const hf_ask_rule *rule, const hf_depot_get_many_options *options)
{
    hf_many_key *key = &many->keys[many->count];
    hf_assert(many->count < many->capacity);
    key->bytes = hf_rt_alloc(depot->rt, bytes_len(bytes));
    if (key->bytes == NULL) {
        return false;
    }
    memcpy(key->bytes, bytes, bytes_len(bytes));
    key->index = index;
    key->ask.many = many;
    key->ask.post.act = hf_read_act;
    hf_op_init(&key->ask.op);
    key->ask.deadline = HF_INSTANT_NEVER;
    key->ask.key = hf_depot_key_str(key->bytes);
    key->ask.rule = *rule;
    key->ask.is_forced = options->force;
    key->ask.urgency = options->urgency;
    key->ask.place = HF_DEPOT_MEMORY;
    key->ask.asked_at = hf_depot_wall(depot);
    many->count++;
    return true;
}

/* Whether a fetcher, subscriber or pusher asks for the key that it is called for. */
static bool is_own_key(hf_depot *depot, const hf_depot_key_bytes *bytes)
{
    hf_fiber *self = hf_enter(depot->rt);
    bool is_own = self != NULL && hf_depot_is_called_for(self, depot, hf_str_of_len(bytes->bytes, bytes->len));
    if (self != NULL) {
        hf_leave(self);
    }
    return is_own;
}

/* Keys that memory answers at once; the others go into `*ret_many`. */
static hf_status look_at_memory(hf_depot *depot, const hf_depot_key *keys, size_t count, hf_depot_result *results,
                                const hf_depot_get_many_options *options, hf_many **ret_many)
{
    hf_ask_rule rule = {options->fresh, options->within.ns, depot->options.stale_max.ns};
    unsigned pace = 0;
    for (size_t i = 0; i < count; i++) {
        hf_depot_key_bytes bytes;
        hf_op op;
        results[i].status = HF_OK;
        HF_TRY(hf_pace(&pace, 256)); /* S20 */
        if (hf_depot_key_pack(&op, keys[i], &bytes) != HF_OK) {
            say(&results[i], op.status, op.message);
            continue;
        }
        hf_depot_info *info = options->ret_infos != NULL ? &options->ret_infos[i] : NULL;
        if (hf_read_at_once(depot, hf_depot_key_str(&bytes), &rule, &results[i].value, info)) {
            continue;
        }
        if (is_own_key(depot, &bytes)) {
            say(&results[i], HF_ERR_MISUSE,
                "hf_depot_get_many was called by the fetcher, subscriber or pusher of this key: it would wait for "
                "itself");
            continue;
        }
        if (*ret_many == NULL) {
            *ret_many = many_new(depot, count - i);
        }
        if (*ret_many == NULL || !add_key(depot, *ret_many, i, &bytes, &rule, options)) {
            return hf_raise(HF_ERR_NOMEM, "no memory for %zu keys", count);
        }
    }
    return HF_OK;
}

static hf_status get_many(hf_depot *depot, const hf_depot_key *keys, size_t count, hf_depot_result *results,
                          const hf_depot_get_many_options *options)
{
    hf_many *many = NULL;
    for (size_t i = 0; i < count; i++) {
        results[i].status = HF_ERR_CANCELED;
        results[i].value = NULL;
        results[i].message[0] = '\0';
    }
    hf_status status = look_at_memory(depot, keys, count, results, options, &many);
    if (status == HF_OK && many != NULL) {
        status = ask_rest(depot, many, results, options);
    }
    many_free(depot, many);
    if (status != HF_OK) {
        drop_results(results, count);
    }
    return status;
}

static hf_status check_many(hf_op *op, const hf_depot_key *keys, size_t count, const hf_depot_result *ret_results,
                            const hf_depot_get_many_options *options)
{
    if (keys == NULL || ret_results == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, "hf_depot_get_many",
                          "hf_depot_get_many needs keys and a place for the results");
    }
    if (count > HF_DEPOT_MANY_MAX) {
        return hf_fail_at(op, HF_ERR_LIMIT, "hf_depot_get_many", "%zu keys were asked for at once: at most %d", count,
                          HF_DEPOT_MANY_MAX);
    }
    return hf_read_check(op, options->fresh, options->within, options->urgency);
}

hf_status hf_depot_get_many_with(hf_depot *depot, const hf_depot_key *keys, size_t count, hf_depot_result *ret_results,
                                 const hf_depot_get_many_options *options)
{
    HF_OPTIONS(hf_depot_get_many_options, options, hf_depot_get_many);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_get_many));
    HF_TRY(hf_depot_enter(depot, "hf_depot_get_many"));
    hf_op op;
    hf_op_init(&op);
    hf_status status = check_many(&op, keys, count, ret_results, options) != HF_OK
                           ? hf_depot_raise(depot, &op)
                           : get_many(depot, keys, count, ret_results, options);
    hf_depot_leave(depot);
    return status;
}
