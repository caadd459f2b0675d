/* Asking the origin: reads (read.c, many.c), the flights that they wait for (flight.c), the calls that carry flights
 * (call.c), and subscriptions (sub.c). */
#ifndef HF_DEPOT_FETCHING_H
#define HF_DEPOT_FETCHING_H

#include "depot/depot_private.h"

/* ---- Flights ----------------------------------------------------------------------------------------------------- */

struct hf_reply {
    hf_runtime *rt;
    size_t value_max;
    hf_value *value;
    hf_value *etag;
    hf_value *last_modified;
    int64_t max_age;   /* -1 = not said */
    uint64_t revision; /* 0 = not said */
    /* Of a create without an id: what was asked; NULL = the key may not change. */
    const hf_depot_key *asked;
    hf_value *key; /* packed; NULL = it stays */
    bool is_not_modified;
    bool has_class;
    hf_reply_class why;
    int64_t retry_after;
    bool takes_records;       /* it answers a fetch */
    bool takes_partial;       /* the depot has .merge */
    bool is_page;             /* `value` was set by hf_reply_page */
    hf_str asked_key;         /* of the fetch, borrowed from its slot */
    size_t window_max;        /* items that a page may have; 0 = no bound of its own */
    hf_list records;          /* hf_record: what it brings besides its own value */
    size_t record_count;      /* of `records` ... */
    size_t record_bytes;      /* ... and what they take */
    bool keeps_failure;       /* one of many: hf_reply_fail leaves the failure here */
    hf_failure_box *failure;  /* with keeps_failure; owned */
    struct hf_sub_run *emits; /* of a subscriber: hf_reply_emit hands the reply to it */
};

void hf_reply_init(hf_reply *reply, hf_runtime *rt, size_t value_max);
void hf_reply_clear(hf_reply *reply);

typedef struct hf_depot_call hf_depot_call;
typedef struct hf_many hf_many;

struct hf_depot_flight {
    hf_depot *depot;
    hf_depot_slot *slot; /* held */
    unsigned refs;       /* the slot's, the call's, and one per ask; of the driver */
    hf_node node;        /* while it waits: in depot->queue, depot->gathering or hf_many.gathered */
    hf_depot_call *call; /* that it is part of; NULL = it waits, or lands */
    uint64_t ticket;     /* flights with the same one may share a call; 0 = it flies alone */
    bool is_gathering;   /* it is in depot->gathering */
    hf_node in_all;      /* in depot->all_flights */
    hf_list waiters;     /* asks; under the lock */
    unsigned holders;    /* waiters, watchers and the depot */
    bool is_refresh;     /* the depot holds it */
    bool is_over;        /* left its slot */
    atomic_bool is_left; /* the same, for the fiber of its call */
    bool is_landing;     /* what it brought is being written */
    bool is_void;        /* the key was written or invalidated: what it brings is not kept, and it flies again */
    bool is_conditional; /* may be asked with etag and last_modified */
    bool is_unconfirmed; /* "not modified" was not about the value at hand: it flies again, and that is not a round */
    hf_urgency urgency;
    uint64_t began;   /* depot->stir when it began */
    uint64_t answers; /* slot->answers when it began */
    uint64_t generation, generation_all;
    unsigned rounds;                /* flown again because of a write or an invalidation */
    hf_value *etag, *last_modified; /* that it asks with */
    hf_reply reply;
    hf_value *object;      /* what .decode made of the reply's value; NULL = nothing */
    hf_post landed;        /* before its call is over */
    bool is_answered;      /* by the fiber of its call: the next three are set */
    hf_status work_status; /* what became of asking */
    hf_failure_box *work_failure;
    hf_status status; /* of its end; of the driver */
    hf_failure_box *failure;
    hf_reply_class why;
    int64_t retry_after;
    bool was_denied; /* the breaker refused it */
    unsigned origin;
    int64_t began_at;            /* wall; with `began` */
    hf_depot_slot *query;        /* of a page: the slot of its query, held; NULL = an ordinary fetch */
    hf_page_direction direction; /* of a page */
    hf_value *token;             /* of a page: where it begins; NUL-terminated */
    size_t page_size;            /* items that are wanted; 0 = not said */
    size_t window_max;           /* of a page: items that the window may have */
};

/* ---- Calls: a fiber that asks the origin for one flight, or for several ------------------------------------------ */

enum { HF_CALL_FLIGHTS_MAX = 256 };

struct hf_depot_call {
    hf_work work;
    hf_depot *depot;
    hf_post over;
    unsigned origin; /* of all its flights */
    bool is_many;    /* .fetch_many is called */
    bool is_new;     /* counted in depot->calls_new; of its fiber, then of the driver */
    bool may_begin;  /* the breaker allowed the first attempt */
    bool is_probe;
    bool was_denied;   /* the breaker refused an attempt */
    bool has_answered; /* the origin has said something about one of the keys */
    bool has_failed;   /* a flight failed in a way that counts against the breaker */
    size_t live;       /* flights that somebody holds and that have not landed; of the driver */
    size_t count;
    hf_depot_flight *flights[]; /* a reference each; NULL = it lands before the call is over */
};

/* ---- Many keys in one call of a program -------------------------------------------------------------------------- */

typedef struct hf_many_key {
    hf_ask ask; /* ask.many is set: its answer goes there */
    hf_depot_key_bytes *bytes;
    size_t index; /* in the caller's arrays */
    hf_status status;
    bool is_decided; /* it was answered, or waits for a flight */
    bool is_done;    /* answered */
} hf_many_key;

struct hf_many {
    hf_ask whole;  /* the call; answered when all keys are */
    hf_list waits; /* `whole`, while it waits; under the lock */
    bool has_begun, is_acting;
    size_t left;      /* keys without an answer */
    size_t undecided; /* of them, those that are still being read */
    uint64_t ticket;
    hf_list gathered; /* flights that wait until all keys are decided */
    size_t count, capacity;
    hf_many_key keys[];
};

/* ---- Subscriptions ----------------------------------------------------------------------------------------------- */

/* One run of .subscribe for a key. */
typedef struct hf_sub_run {
    hf_work work;
    hf_depot *depot;
    hf_depot_slot *slot; /* held */
    bool is_current;     /* it is slot->sub; else nobody wants it any more */
    bool is_counted;     /* among the fetches at once: it has not emitted yet */
    bool has_emitted;
    bool has_handed_over;   /* the same, of the subscriber */
    atomic_bool is_probe;   /* set by its fiber */
    atomic_bool was_denied; /* the same */
    bool is_told;           /* the breaker knows how it began */
    unsigned origin;
    uint64_t voids;                      /* of the slot, when it began */
    uint64_t generation, generation_all; /* the same */
    hf_depot_timer_node timer;           /* the first reply must come before */
    hf_fetch_request request;
    hf_value *etag, *last_modified; /* that it asks with */
    hf_reply reply;                 /* that is being filled by the subscriber */
    hf_value *object;               /* what .decode made of it */
    hf_list emitting;               /* the ask of hf_reply_emit, while it waits; under the lock */
    hf_reply taken;                 /* what was handed over; of the driver */
    hf_value *taken_object;
    bool has_taken;  /* `taken` waits until the key is not being written */
    bool is_landing; /* `taken` was handed to the slot's flight, whose end answers the ask */
    hf_post over;
    hf_status status;
    hf_reply_class why;
    hf_failure_box *failure;
} hf_sub_run;

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

void hf_read_act(hf_depot *depot, hf_post *post);
/* The flight of this ask is over; `at`: what the rules see of its key now. */
void hf_read_landed(hf_depot *depot, hf_ask *ask, const hf_depot_flight *flight, const hf_look_at *at);
/* What is in memory, if it will do: no lock is taken, and nothing is counted but the reference of the value. */
bool hf_read_at_once(hf_depot *depot, hf_str key, const hf_ask_rule *rule, hf_value **ret_value,
                     hf_depot_info *ret_info);
void hf_info_fill(hf_depot_info *info, const hf_snap *snap, int64_t age, bool is_stale, hf_depot_place place);
/* Fails: HF_ERR_INVALID. */
hf_status hf_read_check(hf_op *op, hf_fresh fresh, hf_span within, hf_urgency urgency);

/* ---- flight.c ---------------------------------------------------------------------------------------------------- */

/* Whether the origin is not asked for this key now; `*ret_wait`: for how long at least. */
bool hf_depot_is_blocked(hf_depot *depot, hf_depot_slot *slot, bool is_forced, int64_t *ret_wait);
/* The flight of the slot that serves this freshness, or a new one; it is held by the caller. NULL = no memory. */
hf_depot_flight *hf_flight_board_for(hf_depot *depot, hf_depot_slot *slot, hf_fresh fresh, hf_urgency urgency,
                                     hf_many *many, bool *ret_joined);
static inline hf_depot_flight *hf_flight_board(hf_depot *depot, hf_depot_slot *slot, hf_fresh fresh, hf_urgency urgency,
                                               bool *ret_joined)
{
    return hf_flight_board_for(depot, slot, fresh, urgency, NULL, ret_joined);
}
/* A holder leaves; the last one ends it. */
void hf_flight_get_off(hf_depot *depot, hf_depot_flight *flight);
/* The same for an ask, which has a reference. */
void hf_flight_leave(hf_depot *depot, hf_depot_flight *flight);
/* The key of the slot got another name: those who wait ask again, by the new one. */
void hf_flight_redirect(hf_depot *depot, hf_depot_slot *slot);
/* A refresh that belongs to the depot, if there is room for one. */
void hf_flight_refresh_for(hf_depot *depot, hf_depot_slot *slot, hf_urgency urgency, hf_many *many);
static inline void hf_flight_refresh(hf_depot *depot, hf_depot_slot *slot, hf_urgency urgency)
{
    hf_flight_refresh_for(depot, slot, urgency, NULL);
}
/* At close: all flights end, and their waiters with this status. */
void hf_flight_end_all(hf_depot *depot);
/* The origin was asked: work_status, work_failure, reply, object, why and retry_after are set. Takes the reference of
 * the call. */
void hf_flight_land(hf_depot *depot, hf_depot_flight *flight);
/* It ends before the origin was asked. Takes `failure`. */
void hf_flight_fail(hf_depot *depot, hf_depot_flight *flight, hf_status status, hf_failure_box *failure);
/* It asks as if it began now. */
void hf_flight_aim(hf_depot *depot, hf_depot_flight *flight);
/* The same, and it waits for a permit once more. */
void hf_flight_queue_again(hf_depot *depot, hf_depot_flight *flight);
/* It counts as of now: of a reply that came by itself. */
void hf_flight_stamp(hf_depot *depot, hf_depot_flight *flight);
/* Queues those of a list, which are in no other one. */
void hf_flight_queue_all(hf_depot *depot, hf_list *flights);
/* Whether there is any way to ask the origin. */
static inline bool hf_depot_has_fetcher(const hf_depot *depot)
{
    return depot->options.fetch != NULL || depot->options.fetch_many != NULL || depot->options.subscribe != NULL;
}

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

void hf_depot_start_flights(hf_depot *depot);
/* A flight of the call is over before it has landed; without any other the call is canceled. */
void hf_call_leave(hf_depot *depot, hf_depot_call *call);
/* Cancels the fiber of a work, which is on its way. */
void hf_depot_abandon(hf_depot *depot, hf_work *work);
/* On a fiber, after a call returned `status`: its failure. */
hf_failure_box *hf_depot_take_failure(hf_depot *depot, hf_status status);
/* What an answer without a failure is: HF_OK, or the failure of a fetcher that did not keep to its contract. */
hf_status hf_reply_check(const hf_depot *depot, const hf_reply *reply, bool asks_with);
unsigned hf_depot_origin(hf_depot *depot, hf_str key);
/* One call of a fetcher, pusher or subscriber about a key, within `timeout` (0 = none): verbs about the key are refused inside. On
 * the fiber of a call, a send or a subscription. */
hf_status hf_depot_attempt_of(hf_depot *depot, const hf_depot_slot *slot, hf_span timeout, hf_body call, void *arg);
/* Whether this fiber is inside such a call about this key. */
bool hf_depot_is_called_for(const hf_fiber *self, const hf_depot *depot, hf_str key);
/* What a verb says there. */
hf_status hf_depot_refuse_own(hf_op *op, const hf_depot *depot, const char *verb);
/* When such a call ends. */
hf_instant hf_depot_attempt_deadline(const hf_depot *depot);
/* What became of it, after it returned `status`. */
hf_reply_class hf_depot_classify(const hf_reply *reply, hf_status status);
hf_breaker_end hf_depot_end_of(hf_status status, hf_reply_class why);
/* On such a fiber: asks the breaker. Fails: HF_ERR_UNAVAILABLE, HF_ERR_CANCELED. */
hf_status hf_depot_permit(hf_depot *depot, unsigned origin, bool *ret_is_probe);

/* ---- many.c ------------------------------------------------------------------------------------------------------ */

/* A key of many is answered. */
void hf_many_answered(hf_depot *depot, hf_ask *ask, hf_status status);
/* A key of many waits for a flight. */
void hf_many_decided(hf_depot *depot, hf_ask *ask);
/* Its flight was of an old name: it is acted on again. */
void hf_many_again(hf_ask *ask);

/* ---- sub.c ------------------------------------------------------------------------------------------------------- */

/* The flight waits for the next reply of its key's subscription, which begins if it does not run. */
void hf_sub_board(hf_depot *depot, hf_depot_flight *flight);
/* Something has changed: whether the slot's subscription is wanted is looked at when the driver has nothing else to do.
 * Does nothing without .subscribe. */
void hf_sub_look(hf_depot *depot, hf_depot_slot *slot);
void hf_depot_look_at_subs(hf_depot *depot);
/* Online again. */
void hf_depot_look_at_all_subs(hf_depot *depot);
/* By the subscriber: hf_reply_emit. */
hf_status hf_sub_emit(hf_sub_run *run);

#endif
