/* Looking up host names. A lookup blocks for as long as a name server likes, so a pool thread does it. A canceled or
 * late caller leaves the lookup behind, so its results are on the heap and owned by the call. */
#include "fiber/io/conn.h"
#include "fiber/sched/wait.h"
#include "fiber/verbs.h"

#include <string.h>

enum { LOOKUP_COUNT_MAX = 64, HOST_LEN_MAX = 256 };

typedef struct lookup {
    hf_runtime *rt;
    hf_op op;
    char host[HOST_LEN_MAX];
    size_t count;       /* room */
    size_t found_count; /* used */
    char addresses[][HF_ADDRESS_LEN_MAX];
} lookup;

static size_t size_of(size_t count)
{
    return sizeof(lookup) + count * HF_ADDRESS_LEN_MAX;
}

static void drop(void *arg)
{
    lookup *call = arg;
    hf_rt_free(call->rt, call, size_of(call->count));
}

/* On a pool thread. Its own failure is in `op`: HF_OK means that the caller still wants to know. */
static hf_status look_up(void *arg)
{
    lookup *call = arg;
    hf_env *env = call->rt->env;
    (void)env->ops->resolve(env, &call->op, call->host, call->addresses, call->count, &call->found_count);
    return HF_OK;
}

static hf_status check(hf_fiber *self, const char *host, const void *room, size_t count, const size_t *ret_count)
{
    if (host == NULL || room == NULL || count == 0 || ret_count == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, "hf_resolve", "a name and room for at least one address are needed");
    }
    if (host[0] == '\0' || strnlen(host, HOST_LEN_MAX) == HOST_LEN_MAX) {
        return hf_refuse_at(self, HF_ERR_INVALID, "hf_resolve", "a host name has 1 to 255 bytes");
    }
    return HF_OK;
}

hf_status hf_resolve_on(hf_runtime *rt, const char *host, hf_span timeout, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                        size_t count, size_t *ret_count)
{
    hf_fiber *self = hf_enter(rt);
    if (self == NULL) {
        return hf_forked();
    }
    hf_status status = check(self, host, ret_addresses, count, ret_count);
    count = count < LOOKUP_COUNT_MAX ? count : LOOKUP_COUNT_MAX;
    lookup *call = status == HF_OK ? hf_rt_alloc(rt, size_of(count)) : NULL;
    if (status == HF_OK && call == NULL) {
        status = hf_refuse_at(self, HF_ERR_NOMEM, "hf_resolve", "no memory to look up a name");
    }
    hf_leave(self);
    HF_TRY(status);
    call->rt = rt;
    call->count = count;
    hf_op_init(&call->op);
    memcpy(call->host, host, strlen(host) + 1);
    HF_TRY(hf_block(look_up, call, .abandonable = true, .drop = drop, .timeout = timeout)); /* drops it on failure */
    self = hf_enter(rt);
    hf_assert(self != NULL);
    if (call->op.status == HF_OK) {
        hf_assert(call->found_count <= count);
        memcpy(ret_addresses, call->addresses, call->found_count * sizeof call->addresses[0]);
        *ret_count = call->found_count;
    } else {
        status = hf_refuse_at(self, call->op.status, "hf_resolve", "%s", call->op.message);
    }
    drop(call);
    HF_LEAVE(self, status);
}

hf_status hf_resolve(const char *host, char (*ret_addresses)[HF_ADDRESS_LEN_MAX], size_t count, size_t *ret_count)
{
    HF_TRY(HF_VERB_ALLOWED(hf_resolve));
    hf_runtime *rt = hf_runtime_current();
    if (rt != NULL) {
        return hf_resolve_on(rt, host, hf_nanoseconds(0), ret_addresses, count, ret_count);
    }
    HF_VERB_ENTER(self, hf_resolve, NULL); /* a plain thread simply asks */
    hf_op op;
    hf_op_init(&op);
    hf_status status = check(self, host, ret_addresses, count, ret_count);
    if (status == HF_OK) {
        hf_env *env = hf_env_posix();
        status = env->ops->resolve(env, &op, host, ret_addresses, count, ret_count);
        status = status == HF_OK ? HF_OK : hf_refuse(self, status, "%s", op.message);
    }
    HF_LEAVE(self, status);
}
