/* Our depot, whose memory is such a cache. */
#include "cache/parts.h"

static hf_depot *depot;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    static const char VALUE[VALUE_LEN] = {1};
    (void)state;
    (void)request;
    return hf_reply_value(reply, VALUE, sizeof VALUE);
}

bool depot_hit(const char *key)
{
    hf_value *value = NULL;
    if (hf_depot_get(depot, hf_depot_key_of_bytes("bench", "user", key, KEY_LEN), &value) != HF_OK) {
        return false;
    }
    char seen = *(volatile char *)hf_value_data(value);
    (void)seen;
    hf_value_unref(value);
    return true;
}

static hf_status depot_fill(void *arg)
{
    (void)arg;
    char key[KEY_LEN];
    for (uint32_t i = 0; i < MANY; i++) {
        key_of(i, key);
        if (!depot_hit(key)) {
            return HF_ERR_FAILED;
        }
    }
    return HF_OK;
}

/* By a fiber: a fetch is then a switch, and not a wake-up of another thread. */
void depot_side_open(void)
{
    hf_scope *scope = NULL;
    if (hf_depot_open("bench", &depot, .runtime = runtime, .fetch = fetch, .ttl = hf_hours(24),
                      .bytes_max = INT64_C(8) << 30) != HF_OK ||
        hf_scope_open(&scope, .runtime = runtime) != HF_OK || hf_fork(scope, depot_fill, NULL) != HF_OK ||
        hf_join(scope) != HF_OK || hf_scope_close(scope) != HF_OK) {
        fail(hf_error_text());
    }
}

void depot_side_close(void)
{
    if (hf_depot_close(depot) != HF_OK) {
        fail(hf_error_text());
    }
}
