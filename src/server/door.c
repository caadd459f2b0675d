/* The door itself: it accepts connections, and stops them in order.
 *
 *     SERVING --hf_door_stop--> DRAINING: listeners closed, GOAWAY, parked polls answered, health NOT_SERVING
 *                                  | all connections have ended, or `stop_grace` has passed
 *                                  v
 *                               CLOSING: the rest is closed; calls that the service has are awaited
 *
 * Everything that was acknowledged is in the store, so nothing here has to be saved. */
#include "server/server_private.h"

#include "base/fields.h"
#include "fiber/io/conn.h"
#include "fiber/sched/wait.h"

#include <holdfast/wait.h>

enum { ACCEPT_PAUSE_MS = 50, BACKLOG = 1024 };

static void report(hf_door *door, hf_log_level level, const char *event, const char *why)
{
    if (door->options.log != NULL) {
        char fields[2 * HF_MESSAGE_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "why=\"%s\"", why);
        door->options.log(door->options.log_state, level, event, fields);
    }
}

hf_status hf_door_open(hf_op *op, hf_service *service, const hf_door_options *options, hf_door **ret_door)
{
    hf_runtime *rt = hf_runtime_current();
    hf_assert(rt != NULL); /* on a fiber */
    size_t count = 0;
    (void)hf_routes(&count);
    hf_env *env = rt->env;
    hf_door *door = env->ops->allocate(env, sizeof *door, 0);
    if (door == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the door");
    }
    *door = (hf_door){.service = service, .rt = rt, .env = env, .memory = hf_env_memory(env), .options = *options};
    door->options.streams_max = options->streams_max > 0 ? options->streams_max : HF_DOOR_STREAMS_ALL_MAX;
    door->options.links_max = options->links_max > 0 ? options->links_max : HF_DOOR_LINKS_MAX;
    door->options.stop_grace = options->stop_grace.ns > 0 ? options->stop_grace : hf_seconds(HF_DOOR_STOP_SECONDS);
    door->opened_ns = env->ops->wall_now(env).ns;
    hf_list_init(&door->links);
    door->handed = hf_handed_new(env);
    door->rates = options->rate_count > 0 ? hf_rates_new(env, options->rates, options->rate_count) : NULL;
    if (door->handed == NULL || (door->rates == NULL && options->rate_count > 0)) {
        hf_handed_free(door->handed);
        env->ops->release(env, door, sizeof *door);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the tables of the door");
    }
    hf_door_renew(door, options->keys, options->tls);
    hf_status status = hf_scope_open(&door->scope, .name = "door", .join = HF_JOIN_DISCARD);
    if (status != HF_OK) {
        hf_keyring_unref(door->keys);
        hf_tls_context_unref(door->tls);
        hf_rates_free(door->rates);
        hf_handed_free(door->handed);
        env->ops->release(env, door, sizeof *door);
        return hf_fail(op, status, "%s", hf_error_text());
    }
    *ret_door = door;
    return HF_OK;
}

void hf_door_renew(hf_door *door, hf_keyring *keys, hf_tls_context *tls)
{
    hf_keyring *old_keys = NULL;
    hf_tls_context *old_tls = NULL;
    if (keys != NULL) {
        (void)hf_keyring_ref(keys);
    }
    if (tls != NULL) {
        (void)hf_tls_context_ref(tls);
    }
    hf_spin_lock(&door->lock);
    if (keys != NULL) {
        old_keys = door->keys;
        door->keys = keys;
    }
    if (tls != NULL) {
        old_tls = door->tls;
        door->tls = tls;
    }
    hf_spin_unlock(&door->lock);
    hf_keyring_unref(old_keys);
    hf_tls_context_unref(old_tls);
}

hf_keyring *hf_door_keys(hf_door *door)
{
    hf_spin_lock(&door->lock);
    hf_keyring *keys = door->keys != NULL ? hf_keyring_ref(door->keys) : NULL;
    hf_spin_unlock(&door->lock);
    return keys;
}

/* ---- Accepting ------------------------------------------------------------------------------------------------------------- */

/* The connection that has had no call for the longest time makes room. */
static void make_room(hf_door *door)
{
    hf_link *victim = NULL;
    int64_t since = INT64_MAX;
    hf_fiber *self = hf_enter(NULL);
    hf_spin_lock(&door->lock);
    HF_LIST_EACH(node, &door->links)
    {
        hf_link *link = HF_CONTAINER(node, hf_link, node);
        int64_t idle = atomic_load(&link->idle_ns);
        if (idle != 0 && idle < since && !atomic_load(&link->is_unwanted)) {
            victim = link;
            since = idle;
        }
    }
    if (victim != NULL) {
        atomic_store(&victim->is_unwanted, true);
        hf_guest_enter(&victim->guests); /* server-D1 */
    }
    hf_spin_unlock(&door->lock);
    if (victim != NULL) {
        hf_link_poke(victim);
        hf_guest_leave(door->env, &victim->guests);
    }
    hf_leave(self);
}

/* Takes `conn`. */
static void admit(hf_door *door, hf_conn *conn)
{
    hf_env *env = door->env;
    hf_spin_lock(&door->lock);
    bool is_full = door->link_count >= door->options.links_max;
    hf_spin_unlock(&door->lock);
    if (is_full) {
        make_room(door);
    }
    hf_link *link = atomic_load(&door->stage) == HF_STAGE_SERVING ? env->ops->allocate(env, sizeof *link, 0) : NULL;
    if (link == NULL || door->link_count >= door->options.links_max + door->options.links_max / 8 + 8) {
        (void)hf_conn_close(conn);
        env->ops->release(env, link, sizeof *link);
        return;
    }
    *link = (hf_link){.door = door, .conn = conn, .number = atomic_fetch_add(&door->links_total, 1)};
    hf_list_init(&link->streams);
    hf_list_init(&link->done);
    hf_heap_init(&link->deadlines, door->memory);
    hf_buf_init(&link->out, door->memory, SIZE_MAX / 2);
    hf_spin_lock(&door->lock);
    hf_list_push_back(&door->links, &link->node);
    door->link_count++;
    hf_spin_unlock(&door->lock);
    if (hf_fork(door->scope, hf_link_serve, link, .name = "connection") != HF_OK) {
        report(door, HF_LOG_WARN, "connection_refused", hf_error_text());
        hf_door_left(door, link);
        (void)hf_conn_close(conn);
        env->ops->release(env, link, sizeof *link);
    }
}

typedef struct accepting {
    hf_door *door;
    hf_listener *listener;
} accepting;

static hf_status accept_all(void *arg)
{
    accepting *a = arg;
    hf_door *door = a->door;
    hf_listener *listener = a->listener;
    door->env->ops->release(door->env, a, sizeof *a);
    for (;;) {
        hf_conn *conn = NULL;
        hf_status status = hf_listener_accept(listener, &conn);
        if (status == HF_OK) {
            admit(door, conn);
        } else if (status == HF_ERR_CLOSED || status == HF_ERR_CANCELED) {
            return HF_OK;
        } else { /* no descriptors or no memory: it passes */
            report(door, HF_LOG_WARN, "accept_failed", hf_error_text());
            make_room(door);
            if (hf_sleep(hf_milliseconds(ACCEPT_PAUSE_MS)) != HF_OK) {
                return HF_OK;
            }
        }
    }
}

hf_status hf_door_listen(hf_op *op, hf_door *door, const char *address, char *ret_address)
{
    hf_listener *listener = NULL;
    if (door->listener_count == (int)HF_COUNT_OF(door->listeners)) {
        return hf_fail(op, HF_ERR_LIMIT, "at most %zu addresses to listen on", HF_COUNT_OF(door->listeners));
    }
    if (hf_listener_open(address, &listener, .backlog = BACKLOG, .replace = true) != HF_OK) {
        return hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    accepting *a = door->env->ops->allocate(door->env, sizeof *a, 0);
    if (a == NULL) {
        (void)hf_listener_close(listener);
        return hf_fail(op, HF_ERR_NOMEM, "no memory to listen on %s", address);
    }
    *a = (accepting){door, listener};
    if (hf_fork(door->scope, accept_all, a, .name = "accept") != HF_OK) {
        door->env->ops->release(door->env, a, sizeof *a);
        (void)hf_listener_close(listener);
        return hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    if (ret_address != NULL) {
        memcpy(ret_address, hf_listener_address(listener), strlen(hf_listener_address(listener)) + 1);
    }
    door->listeners[door->listener_count++] = listener;
    return HF_OK;
}

void hf_door_stats_get(const hf_door *door, hf_door_stats *ret_stats)
{
    *ret_stats = (hf_door_stats){
        .links = (uint64_t)door->link_count,
        .links_total = atomic_load(&door->links_total),
        .streams = atomic_load(&door->streams),
        .calls = atomic_load(&door->calls),
        .failures = atomic_load(&door->failures),
        .cut = atomic_load(&door->cut),
        .returned = atomic_load(&door->returned),
        .limited = atomic_load(&door->limited),
    };
}

/* ---- Stopping -------------------------------------------------------------------------------------------------------------- */

/* Pokes one link after the other, none under the lock: a link that is a host to us stays (server-D1). Those that know go to the end
 * of the list. */
static void enter_stage(hf_door *door, hf_stage stage)
{
    hf_assert(atomic_load(&door->stage) <= (int)stage);
    atomic_store(&door->stage, stage);
    hf_fiber *self = hf_enter(NULL);
    for (;;) {
        hf_spin_lock(&door->lock);
        hf_node *first = hf_list_first(&door->links);
        hf_link *link = first != NULL ? HF_CONTAINER(first, hf_link, node) : NULL;
        if (link == NULL || link->stage_told == stage) {
            hf_spin_unlock(&door->lock);
            break;
        }
        link->stage_told = stage;
        hf_list_remove(first);
        hf_list_push_back(&door->links, first);
        hf_guest_enter(&link->guests);
        hf_spin_unlock(&door->lock);
        hf_link_poke(link);
        hf_guest_leave(door->env, &link->guests);
    }
    hf_leave(self);
}

static hf_status close_now(void *arg)
{
    enter_stage(arg, HF_STAGE_CLOSING);
    return HF_OK;
}

/* It need not wait any longer. If it cannot be told, it ends by itself. */
static void end_clock(hf_door *door, hf_branch *clock)
{
    if (clock != NULL && hf_branch_cancel(clock) != HF_OK) {
        report(door, HF_LOG_WARN, "stop_waits", hf_error_text());
    }
}

void hf_door_left(hf_door *door, hf_link *link)
{
    hf_spin_lock(&door->lock);
    hf_list_remove(&link->node);
    hf_assert(door->link_count > 0);
    hf_branch *clock = --door->link_count == 0 ? door->clock : NULL;
    hf_spin_unlock(&door->lock);
    end_clock(door, clock); /* the last connection of a door that stops */
}

void hf_door_stop(hf_door *door)
{
    if (door == NULL) {
        return;
    }
    hf_branch *clock = NULL;
    for (int i = 0; i < door->listener_count; i++) {
        (void)hf_listener_close(door->listeners[i]);
    }
    hf_status status =
        hf_fork(door->scope, close_now, door, .name = "stop", .delay = door->options.stop_grace, .ret_branch = &clock);
    hf_spin_lock(&door->lock);
    door->clock = clock;
    bool is_empty = door->link_count == 0;
    hf_spin_unlock(&door->lock);
    enter_stage(door, status == HF_OK ? HF_STAGE_DRAINING : HF_STAGE_CLOSING);
    end_clock(door, is_empty ? clock : NULL);
    if (hf_join(door->scope) != HF_OK) {
        report(door, HF_LOG_WARN, "stop_incomplete", hf_error_text()); /* closing the scope waits in any case */
    }
    (void)hf_scope_close(door->scope);
    hf_assert(door->link_count == 0); /* server-D1 */
    hf_keyring_unref(door->keys);
    hf_tls_context_unref(door->tls);
    hf_rates_free(door->rates);
    hf_handed_free(door->handed);
    door->env->ops->release(door->env, door, sizeof *door);
}
