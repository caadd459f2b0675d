/* Activities with a memo: memo.h has the picture and the invariants. */
#include "worker/memo_private.h"

#include "fiber/keyed/keys.h"
#include "fiber/sync/sync.h"
#include "history/payload.h"

typedef struct hf_activity_work activity;

enum { BUCKETS = 64, KEEP_SECONDS = 5 };

/* One call of a function, for all attempts that wait for it. Everything that changes is under the lock of its bucket. */
struct hf_memo_body {
    hf_memo_body *next; /* in its bucket */
    atomic_int refs;    /* of its fiber, and of each attempt that waits for it */
    const hf_memo *memo;
    hf_allocator memory; /* that it is in; its worker may be freed before it */
    hf_runtime *rt;
    uint64_t hash;
    bool is_listed;      /* it can be joined: worker-M1 */
    int holders;         /* attempts that wait for it */
    activity *act;       /* its own; NULL = it has not begun, or has ended */
    hf_list waiters;     /* hf_wait.node */
    uint64_t beats;      /* heartbeats so far ... */
    hf_value *beat;      /* ... and the details of the last one, as an answer is kept */
    bool is_zombie;      /* it was canceled and does not end */
    bool is_over;        /* the rest is set, and does not change any more */
    bool is_stopped;     /* canceled because its worker stops: an attempt of another worker begins again */
    bool is_hit;         /* a kept answer was found */
    hf_span age;         /* of that */
    hf_status status;    /* its end */
    hf_value *out;       /* result, or what it returned when it was canceled; as an answer is kept; NULL = none */
    hf_value *failure;   /* hf_pb_failure; NULL = none */
    hf_memo_place place; /* its texts follow the struct */
    char bytes[];
};

typedef struct bucket {
    hf_spin lock; /* first: hf_wait.object */
    hf_memo_body *first;
} bucket;

/* The bodies of all workers of the process. */
static bucket table[BUCKETS];

static bucket *bucket_of(uint64_t hash)
{
    return &table[hash % BUCKETS];
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static void unref(hf_memo_body *body)
{
    if (atomic_fetch_sub(&body->refs, 1) != 1) {
        return;
    }
    hf_assert(body->is_over && body->holders == 0 && !body->is_listed &&
              hf_list_is_empty(&body->waiters)); /* worker-M2 */
    hf_value_unref(body->beat);
    hf_value_unref(body->out);
    hf_value_unref(body->failure);
    hf_allocator memory = body->memory;
    memory.release(memory.state, body, sizeof *body + strlen(body->place.type) + 1 + body->place.id.len);
}

static hf_memo_body *body_new(const activity *act, uint64_t hash)
{
    hf_memo_place place = hf_memo_place_of(act);
    size_t type_len = strlen(place.type) + 1;
    hf_allocator memory = act->worker->memory;
    hf_memo_body *body = memory.allocate(memory.state, sizeof *body + type_len + place.id.len, _Alignof(hf_memo_body));
    if (body == NULL) {
        return NULL;
    }
    memset(body, 0, sizeof *body);
    memcpy(body->bytes, place.type, type_len);
    memcpy(body->bytes + type_len, place.id.data, place.id.len);
    body->place = (hf_memo_place){body->bytes, hf_str_of_len(body->bytes + type_len, place.id.len)};
    body->memo = &act->entry->memo;
    body->memory = memory;
    body->rt = act->worker->rt;
    body->hash = hash;
    hf_list_init(&body->waiters);
    return body;
}

static bool is_of(const hf_memo_body *body, const activity *act, uint64_t hash)
{
    const hf_memo *memo = &act->entry->memo;
    return body->hash == hash && body->rt == act->worker->rt && body->memo->ops == memo->ops &&
           body->memo->state == memo->state && strcmp(body->memo->ns, memo->ns) == 0 &&
           strcmp(body->place.type, act->facts.name) == 0 && hf_str_equal(body->place.id, act->memo_id);
}

/* Under the lock. */
static void unlist(hf_memo_body *body)
{
    if (body->is_listed) {
        hf_memo_body **at = &bucket_of(body->hash)->first;
        while (*at != body) {
            hf_assert(*at != NULL); /* worker-M1 */
            at = &(*at)->next;
        }
        *at = body->next;
        body->is_listed = false;
    }
}

/* Joins the body of the key, or puts a new one into the table, which the caller begins. NULL = no memory. */
static hf_memo_body *join(activity *act, bool *ret_is_new)
{
    uint64_t hash = hf_key_hash(1, act->memo_id.data, act->memo_id.len);
    bucket *b = bucket_of(hash);
    hf_memo_body *made = body_new(act, hash);
    hf_spin_lock(&b->lock);
    hf_memo_body *body = b->first;
    while (body != NULL && !is_of(body, act, hash)) {
        body = body->next;
    }
    *ret_is_new = body == NULL && made != NULL;
    if (*ret_is_new) {
        body = made;
        made = NULL;
        body->next = b->first;
        b->first = body;
        body->is_listed = true;
        atomic_init(&body->refs, 1); /* of its fiber */
    }
    if (body != NULL) {
        hf_assert(body->is_listed && !body->is_over); /* worker-M1 */
        body->holders++;
        atomic_fetch_add(&body->refs, 1);
    }
    hf_spin_unlock(&b->lock);
    if (made != NULL) {
        made->is_over = true;
        atomic_init(&made->refs, 1);
        unref(made);
    }
    return body;
}

static void wake_all(hf_memo_body *body, hf_claimed claimed)
{
    hf_fiber *self = hf_enter(body->rt);
    hf_claimed_wake(&claimed, HF_OK);
    if (self != NULL) {
        hf_leave(self);
    }
}

/* ---- The body ---------------------------------------------------------------------------------------------------- */

typedef struct ending {
    hf_status status;
    hf_pb_failure *failure; /* in the arena of the body's activity; NULL = none */
    hf_value *out;          /* taken */
    bool is_hit;
    hf_span age;
} ending;

/* The attempts hear of it. */
static void conclude(hf_memo_body *body, const ending *end, bool is_stopped)
{
    bucket *b = bucket_of(body->hash);
    hf_claimed claimed = {NULL, NULL};
    hf_value *failure = end->failure != NULL ? hf_memo_pack_failure(body->memory, end->failure) : NULL;
    hf_spin_lock(&b->lock);
    hf_assert(!body->is_over && body->holders > 0); /* worker-M2 */
    unlist(body);
    body->act = NULL;
    body->is_over = true;
    body->is_stopped = is_stopped;
    body->status = end->status;
    body->out = end->out;
    body->failure = failure;
    body->is_hit = end->is_hit;
    body->age = end->age;
    hf_claimed_add_all(&claimed, &body->waiters);
    hf_spin_unlock(&b->lock);
    wake_all(body, claimed);
}

/* Calls the function, inside the scope, unless an answer is found. */
static void call_it(activity *act, hf_scope *scope, ending *end, void **ret_ticket)
{
    hf_memo_body *body = act->body;
    hf_value *kept = NULL;
    end->status = body->memo->ops->begin(body->memo, &body->place, &kept, &end->age, ret_ticket); /* worker-M3 */
    if (end->status == HF_ERR_CANCELED) {
        end->failure = hf_failure_encode(&act->arena, hf_error_as(end->status), end->status);
        return;
    }
    hf_payload known = hf_payload_none();
    if (end->status == HF_OK && kept != NULL && hf_memo_unpack(act->worker, kept, NULL, &known) == HF_OK) {
        hf_payload_free(&known);
        end->out = kept;
        end->is_hit = true;
        return;
    }
    hf_value_unref(kept);
    end->failure = NULL;
    end->status = hf_activity_call(act, scope, &end->failure);
}

static void finish(activity *act, ending *end)
{
    if (end->status == HF_PENDING) {
        end->status = HF_ERR_UNSUPPORTED;
        end->failure =
            hf_failure_application(&act->arena, hf_str_of(hf_status_name(end->status)),
                                   HF_STR("an activity with .memo cannot be answered later (HF_PENDING)"), true);
    }
    end->status = hf_activity_check_result(act, end->status, &end->failure);
    if (end->status == HF_ERR_FAILED) {
        hf_activity_apply_verdict(act, end->failure);
    }
    bool is_told = end->status == HF_ERR_CANCELED && atomic_load(&act->is_cancel_requested);
    if (end->status == HF_OK || is_told) { /* else nobody has looked where it is */
        end->out = hf_memo_pack(act->worker->memory, act->out);
    }
    if (end->status == HF_OK && end->out == NULL) {
        end->status = hf_memo_no_memory(act, &end->failure);
    }
}

/* Failures are not kept. */
static void keep(const hf_memo_body *body, const ending *end, void *ticket)
{
    const hf_memo *memo = body->memo;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* also while the worker stops */
    if (ticket == NULL) {
        return;
    }
    if (end->status == HF_OK && hf_shield_open(hf_seconds(KEEP_SECONDS), &shield) == HF_OK) {
        memo->ops->keep(memo, ticket, hf_value_data(end->out), hf_value_len(end->out));
    } else {
        memo->ops->drop(memo, ticket);
    }
}

static hf_status run_body(void *arg)
{
    activity *act = arg;
    hf_worker *worker = act->worker;
    hf_memo_body *body = act->body;
    ending end = {.status = hf_local_set(&hf_activity_local, act)};
    void *ticket = NULL;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        if (end.status == HF_OK) {
            end.status = hf_scope_open(&scope, .name = act->facts.name, .join = HF_JOIN_COLLECT);
        }
        if (end.status == HF_OK) {
            hf_activity_be_reachable(act, scope);
            call_it(act, scope, &end, &ticket);
            hf_activity_be_unreachable(act);
        } else {
            end.failure = hf_failure_encode(&act->arena, hf_error(), end.status);
        }
    }
    atomic_store_explicit(&act->has_returned, true, memory_order_relaxed);
    if (!end.is_hit) {
        finish(act, &end);
    }
    keep(body, &end, ticket);
    bool is_stopped = end.status == HF_ERR_CANCELED && atomic_load(&act->why) == HF_WHY_SHUTDOWN;
    conclude(body, &end, is_stopped);
    hf_activity_release(act);
    unref(body);
    hf_worker_count(worker, &worker->jobs_count, -1);
    return HF_OK;
}

/* Starts the fiber of a new body. Its activity is as the attempt that begins it, but without a task of the service. */
static void begin(activity *by, hf_memo_body *body)
{
    hf_worker *worker = by->worker;
    bucket *b = bucket_of(body->hash);
    hf_arena arena = hf_arenas_take(&worker->arenas);
    activity *act = HF_ARENA_NEW(&arena, activity);
    hf_status status = HF_ERR_NOMEM;
    if (act != NULL) {
        act->worker = worker;
        act->body = body;
        act->is_local = by->job != NULL;
        act->arena = arena;
        status = hf_activity_stand_in(act, by);
    } else {
        hf_arenas_give(&worker->arenas, &arena);
    }
    if (status == HF_OK) {
        hf_spin_lock(&b->lock);
        body->act = act;
        hf_spin_unlock(&b->lock);
        hf_worker_count(worker, &worker->jobs_count, 1);
        status = hf_fork(worker->jobs, run_body, act, .name = "activity", .stack_size = by->entry->stack_size);
        if (status != HF_OK) {
            hf_worker_count(worker, &worker->jobs_count, -1);
        }
    }
    if (status != HF_OK) { /* others may have joined it */
        hf_pb_failure *failure = hf_failure_encode(&by->arena, hf_error_as(status), status);
        ending end = {.status = status, .failure = failure};
        conclude(body, &end, status == HF_ERR_CANCELED);
        if (act != NULL) {
            hf_activity_release(act);
        }
        unref(body);
    }
}

/* ---- The attempts ------------------------------------------------------------------------------------------------ */

static const hf_wait_kind WAIT = {"activity", hf_wait_abort_linked};
static const hf_wait_kind WAIT_ON = {"activity", NULL}; /* of the last one, which was canceled */

/* Waits until the body is over, or has something to tell. `is_canceled`: the caller was, and waits on. */
static hf_status await(activity *act, hf_memo_body *body, bool is_canceled, uint64_t beats)
{
    bucket *b = bucket_of(body->hash);
    hf_fiber *self = hf_enter(body->rt);
    hf_wait wait;
    hf_assert(self != NULL);
    hf_status status = is_canceled ? HF_OK : hf_may_wait(self, WAIT.verb);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_wait_init(&wait, self, is_canceled ? &WAIT_ON : &WAIT, b, act->facts.name);
    hf_sync_point(self);
    hf_spin_lock(&b->lock);
    bool has_news =
        body->is_over || body->beats != beats || (is_canceled && body->is_zombie && atomic_load(&act->has_slot));
    if (!has_news) {
        hf_list_push_back(&body->waiters, &wait.node);
    }
    hf_spin_unlock(&b->lock);
    status = has_news ? HF_OK : hf_park(self, &wait, HF_INSTANT_NEVER);
    if (status != HF_OK) {
        hf_self_note(self, status, WAIT.verb);
    }
    HF_LEAVE(self, status);
}

/* Repeats the body's last heartbeat, if this attempt has not. */
static void repeat_beat(activity *act, hf_memo_body *body, uint64_t *beats)
{
    bucket *b = bucket_of(body->hash);
    hf_payload details = hf_payload_none();
    hf_spin_lock(&b->lock);
    bool is_new = body->beats != *beats;
    *beats = body->beats;
    hf_value *beat = is_new && body->beat != NULL ? hf_value_ref(body->beat) : NULL;
    hf_spin_unlock(&b->lock);
    if (beat != NULL && hf_memo_unpack(act->worker, beat, NULL, &details) == HF_OK) {
        HF_IGNORE(hf_activity_heartbeat(details)); /* the next wait says whether the attempt was canceled */
        hf_payload_free(&details);
    }
    hf_value_unref(beat);
}

/* The attempt was canceled. True: it was the last one and has canceled the body, and must wait for its end. */
static bool leave(hf_memo_body *body)
{
    bucket *b = bucket_of(body->hash);
    activity *running = NULL;
    hf_cancel_why why = hf_activity_cancel_why();
    hf_spin_lock(&b->lock);
    hf_assert(body->holders > 0);
    bool is_last = body->holders == 1; /* worker-M2: it stays one */
    if (is_last) {
        unlist(body); /* the key is free at once: worker-M1 */
        running = body->act;
        if (running != NULL) {
            atomic_fetch_add(&running->pins, 1); /* it stays until hf_activity_cancel has returned */
        }
    } else {
        body->holders--;
    }
    hf_spin_unlock(&b->lock);
    if (running != NULL) {
        if (why != HF_WHY_NOT) {
            hf_activity_note_why(running, why);
        }
        hf_activity_cancel(running);
    }
    return is_last;
}

/* What the body's end is to this attempt. `*ret_again`: nothing, it begins again. */
static hf_status take_end(activity *act, hf_memo_body *body, bool is_canceled, bool began_it, bool *ret_again,
                          hf_pb_failure **ret_failure)
{
    hf_status status = body->status;
    char text[HF_MEMO_MARK_LEN];
    const char *mark = status == HF_OK && !began_it ? "shared" : NULL;
    *ret_again = body->is_stopped && !is_canceled && hf_canceled() == HF_OK;
    if (*ret_again) {
        return HF_OK;
    }
    if (body->is_hit) {
        hf_memo_mark_of_hit(body->age, text);
        mark = text;
    }
    if (body->out != NULL && hf_memo_unpack(act->worker, body->out, mark, &act->out) != HF_OK) {
        return hf_memo_no_memory(act, ret_failure);
    }
    if (status != HF_OK) {
        *ret_failure = hf_memo_unpack_failure(&act->arena, body->failure);
    }
    return status;
}

hf_status hf_memo_share(activity *act, hf_pb_failure **ret_failure)
{
    for (;;) {
        bool is_again = false;
        bool is_new = false;
        bool is_canceled = false;
        uint64_t beats = 0;
        hf_memo_body *body = join(act, &is_new);
        if (body == NULL) {
            return hf_memo_no_memory(act, ret_failure);
        }
        bucket *b = bucket_of(body->hash);
        if (is_new) {
            begin(act, body);
        }
        bool is_over = false;
        while (!is_over) {
            hf_status status = await(act, body, is_canceled, beats);
            if (status != HF_OK && !leave(body)) {
                unref(body);
                *ret_failure = hf_failure_encode(&act->arena, hf_error_as(status), status);
                return status;
            }
            is_canceled = is_canceled || status != HF_OK;
            repeat_beat(act, body, &beats);
            hf_spin_lock(&b->lock);
            is_over = body->is_over;
            bool is_zombie = body->is_zombie && is_canceled;
            hf_spin_unlock(&b->lock);
            if (is_zombie && !is_over) {
                hf_activity_free_slot(act);
            }
        }
        hf_status status = take_end(act, body, is_canceled, is_new, &is_again, ret_failure);
        hf_spin_lock(&b->lock);
        hf_assert(body->holders > 0);
        body->holders--;
        hf_spin_unlock(&b->lock);
        unref(body);
        if (!is_again) {
            return status;
        }
    }
}

/* ---- What a body says -------------------------------------------------------------------------------------------- */

hf_status hf_memo_beat(activity *act, hf_payload details)
{
    hf_memo_body *body = act->body;
    bucket *b = bucket_of(body->hash);
    hf_claimed claimed = {NULL, NULL};
    hf_value *beat = hf_memo_pack(body->memory, details);
    if (beat == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a heartbeat");
    }
    hf_spin_lock(&b->lock);
    hf_value *old = body->beat;
    body->beat = beat;
    body->beats++;
    hf_claimed_add_all(&claimed, &body->waiters);
    hf_spin_unlock(&b->lock);
    wake_all(body, claimed);
    hf_value_unref(old);
    return hf_canceled();
}

hf_memo_body *hf_memo_ref(activity *act)
{
    hf_assert(act->body != NULL);
    atomic_fetch_add(&act->body->refs, 1); /* its fiber has one */
    return act->body;
}

void hf_memo_see_zombie(hf_memo_body *body)
{
    bucket *b = bucket_of(body->hash);
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&b->lock);
    body->is_zombie = true;
    hf_claimed_add_all(&claimed, &body->waiters);
    hf_spin_unlock(&b->lock);
    wake_all(body, claimed);
    unref(body);
}
