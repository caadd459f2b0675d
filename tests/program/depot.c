/* A program for tests/program/depot.sh and json.sh: a depot with a few entries and writes in FILE. `depot FILE [stay]`: "ready" goes to
 * stdout when they are there; with `stay` it has the file open until SIGTERM. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    if (request->key.id_len == 4 && memcmp(request->key.id, "none", 4) == 0) {
        return HF_ERR_NOT_FOUND;
    }
    HF_TRY(hf_reply_etag(reply, "e1"));
    return request->key.id_len == 6 ? hf_reply_value(reply, "\0\1\2\377", 4) : hf_reply_value(reply, "Ada", 3);
}

/* Refuses user 7, accepts user 9 slowly, and does not know the others yet. */
static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    char id = *(const char *)request->key.id;
    if (id == '7') {
        return hf_reply_fail(reply, HF_REPLY_DENIED, .message = "user 7 is read only");
    }
    return id == '9' ? hf_sleep(hf_seconds(3600)) : hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "no route");
}

/* Each has a breaker of its own. */
static unsigned origin_of(void *state, hf_depot_key key)
{
    (void)state;
    return *(const unsigned char *)key.id % 64;
}

static hf_status get(hf_depot *depot, const char *ns, const char *id)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, hf_depot_key_of(ns, "user", id), &value);
    hf_value_unref(value);
    return status == HF_ERR_NOT_FOUND ? HF_OK : status;
}

static hf_status put(hf_depot *depot, const char *id, bool waits)
{
    hf_depot_write *write = NULL;
    HF_TRY(hf_depot_put(depot, hf_depot_key_of("acme", "user", id), "Grace", 5, .ret_write = &write));
    hf_status status = waits ? hf_depot_write_wait(write, .timeout = hf_seconds(30)) : HF_OK;
    hf_depot_write_free(write);
    return waits && status != HF_OK ? HF_OK : status;
}

static hf_status fill(hf_depot *depot)
{
    HF_TRY(get(depot, "acme", "1"));
    HF_TRY(get(depot, "acme", "2"));
    HF_TRY(get(depot, "acme", "binary"));
    HF_TRY(get(depot, "acme", "none"));
    HF_TRY(get(depot, "old", "1"));
    HF_TRY(hf_depot_invalidate_namespace(depot, "old", .hard = true));
    HF_TRY(put(depot, "7", true));  /* write 1: dead */
    HF_TRY(put(depot, "8", false)); /* write 2: waits */
    HF_TRY(put(depot, "9", false)); /* write 3: on its way */
    hf_depot_id id;
    return hf_depot_create(depot, hf_depot_key_of("acme", "user", "10"), "Hopper", 6, &id); /* write 4: waits, too */
}

static hf_status run(void *arg)
{
    char **argv = arg;
    char file[1000];
    (void)snprintf(file, sizeof file, "sqlite:%s", argv[1]);
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = fetch, .push = push, .file = file, .origin_of = origin_of,
                         .fetch_timeout = hf_hours(2)));
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    if (counts.pending == 0) {
        HF_TRY(fill(depot));
    }
    if (argv[2] != NULL) {
        const int number = SIGTERM;
        int got = 0;
        HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
        HF_TRY(hf_os_signals_open(&number, 1, &signals));
        printf("ready\n");
        (void)fflush(stdout);
        return hf_os_signals_next(signals, &got);
    }
    printf("ready\n");
    return HF_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    HF_OR_DIE(hf_run(run, argv));
    return 0;
}
