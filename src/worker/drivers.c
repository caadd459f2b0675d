/* Drivers: fibers that play the steps of runs. A run that waits has none, so it takes no stack but those of its own fibers.
 *
 *     a task for a run that is in memory ---> seat of its scheduler: `ready` ---> a driver of that seat takes the run over,
 *     a run that is to end                                                        plays, lets it go, looks for the next one
 *     a task for a new run ---> a new driver, wherever a thread is free: the run stays on that scheduler
 *
 * There is a seat for each scheduler, because the fibers of a run stay where they began. A seat has at least one driver,
 * which ends with the worker: so a run gets a driver even if there is no memory for one more. Up to IDLE_MAX wait there for
 * runs; others end when they find nothing to do.
 *
 * worker-D1  A run is in `ready` of its seat, or a driver has it, or neither: then it has nothing to do. `is_driven` says
 *            whether one of the first two is true. Under the cache's lock. */
#include "worker/wf.h"

#include "fiber/sched/dispatch.h"

enum { IDLE_MAX = 16 }; /* drivers that wait at a seat: making one costs less than a step, but more than waking one */

/* ---- Seats ------------------------------------------------------------------------------------------------------- */

hf_status hf_wf_seats_open(hf_worker *worker)
{
    hf_runtime *rt = worker->rt;
    size_t len = (size_t)rt->sched_count * sizeof(hf_wf_seat);
    worker->seats = worker->memory.allocate(worker->memory.state, len, _Alignof(hf_wf_seat));
    if (worker->seats == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a worker");
    }
    memset(worker->seats, 0, len);
    worker->seat_count = rt->sched_count;
    for (int i = 0; i < worker->seat_count; i++) {
        hf_wf_seat *seat = &worker->seats[i];
        seat->worker = worker;
        hf_list_init(&seat->ready);
        hf_list_init(&seat->idle);
        seat->on = hf_home_dispatcher_new(rt, i);
        if (seat->on == NULL) {
            return hf_raise(HF_ERR_NOMEM, "no memory for a worker");
        }
    }
    return HF_OK;
}

void hf_wf_seats_close(hf_worker *worker)
{
    for (int i = 0; i < worker->seat_count; i++) {
        hf_wf_seat *seat = &worker->seats[i];
        hf_assert(hf_list_is_empty(&seat->ready) && hf_list_is_empty(&seat->idle)); /* worker-D1 */
        (void)hf_dispatcher_free(seat->on);
    }
    worker->memory.release(worker->memory.state, worker->seats, (size_t)worker->seat_count * sizeof(hf_wf_seat));
    worker->seats = NULL;
    worker->seat_count = 0;
}

/* ---- Calling a driver -------------------------------------------------------------------------------------------- */

void hf_wf_want_driver(hf_wf *wf, hf_wf_summons *summons)
{
    hf_wf_seat *seat = &wf->worker->seats[wf->seat];
    hf_assert(!wf->is_driven && !hf_node_is_linked(&wf->ready)); /* worker-D1 */
    wf->is_driven = true;
    hf_list_push_back(&seat->ready, &wf->ready);
    hf_node *node = hf_list_pop_front(&seat->idle);
    if (node != NULL) {
        hf_wait *driver = HF_CONTAINER(node, hf_wait, node);
        seat->idle_count--;
        driver->value = summons->idle;
        summons->idle = driver;
    } else {
        summons->seats[(size_t)wf->seat / 64] |= UINT64_C(1) << (wf->seat % 64);
        summons->has_seats = true;
    }
}

static hf_status serve_seat(void *arg);

void hf_wf_summon(hf_worker *worker, hf_wf_summons *summons)
{
    hf_fiber *self = summons->idle != NULL ? hf_enter(worker->rt) : NULL;
    for (hf_wait *driver = summons->idle; driver != NULL;) {
        hf_wait *next = driver->value;
        hf_wake(driver, HF_OK);
        driver = next;
    }
    if (self != NULL) {
        hf_leave(self);
    }
    for (int i = 0; summons->has_seats && !summons->only_wakes && i < worker->seat_count; i++) {
        if ((summons->seats[i / 64] & (UINT64_C(1) << (i % 64))) != 0) {
            hf_wf_seat *seat = &worker->seats[i];
            HF_IGNORE(hf_fork(worker->runs, serve_seat, seat, .name = "workflow",
                              .on = seat->on)); /* else another one comes */
        }
    }
}

hf_status hf_wf_seats_fill(hf_worker *worker)
{
    for (int i = 0; i < worker->seat_count; i++) {
        hf_wf_seat *seat = &worker->seats[i];
        HF_TRY(hf_fork(worker->runs, hf_wf_keep_seat, seat, .name = "workflow driver", .on = seat->on));
    }
    return HF_OK;
}

/* ---- Waiting for a run ------------------------------------------------------------------------------------------- */

static bool abort_idle(hf_wait *wait)
{
    hf_wf_seat *seat = wait->object;
    hf_wf_cache *cache = &seat->worker->cache;
    hf_spin_lock(&cache->lock);
    bool claimed = hf_node_is_linked(&wait->node);
    if (claimed) {
        hf_list_remove(&wait->node);
        seat->idle_count--;
    }
    hf_spin_unlock(&cache->lock);
    return claimed;
}

static const hf_wait_kind NEXT = {"next task", abort_idle};

/* The next run of the seat; waits for it if `waits` or if few others wait. NULL: the driver is to end. */
static hf_wf *next_run(hf_wf_seat *seat, bool waits)
{
    hf_wf_cache *cache = &seat->worker->cache;
    hf_status status = HF_OK;
    hf_node *node = NULL;
    while (node == NULL && status == HF_OK) {
        hf_fiber *self = hf_enter(NULL);
        hf_wait wait;
        hf_wait_init(&wait, self, &NEXT, seat, "");
        hf_spin_lock(&cache->lock);
        node = hf_list_pop_front(&seat->ready);
        bool is_over = hf_is_canceled(self); /* on its own thread: a later cancel finds it parked */
        bool is_idle = node == NULL && !is_over && (waits || seat->idle_count < IDLE_MAX);
        if (is_idle) {
            hf_list_push_back(&seat->idle, &wait.node);
            seat->idle_count++;
        }
        hf_spin_unlock(&cache->lock);
        status = is_idle ? hf_park(self, &wait, HF_INSTANT_NEVER) : node == NULL ? HF_ERR_LIMIT : HF_OK;
        hf_leave(self);
    }
    return node != NULL ? HF_CONTAINER(node, hf_wf, ready) : NULL;
}

/* When the worker stops, its runs have ended before its drivers are canceled. */
static void serve(hf_wf_seat *seat, bool waits)
{
    for (hf_wf *wf = NULL; (wf = next_run(seat, waits)) != NULL;) {
        hf_wf_attend(wf);
    }
}

static hf_status serve_seat(void *arg)
{
    serve(arg, false);
    return HF_OK;
}

hf_status hf_wf_keep_seat(void *arg)
{
    serve(arg, true);
    return HF_OK;
}

hf_status hf_wf_drive_new(void *arg)
{
    hf_wf *wf = arg;
    hf_worker *worker = wf->worker;
    hf_fiber *self = hf_enter(NULL);
    int index = self->sched->index;
    hf_leave(self);
    hf_assert(index < worker->seat_count);
    wf->seat = index;
    hf_wf_attend(wf);
    serve(&worker->seats[index], false);
    return HF_OK;
}
