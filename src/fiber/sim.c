/* The verbs of holdfast/sim.h that can fail. Their implementation is in the environment (env/sim), which knows no
 * fibers, so it cannot store an error message.
 *
 * A simulation needs no runtime, so a process that was made by fork() may use one, too. There hf_enter returns NULL,
 * and the message is lost. */
#include "env/sim/sim.h"
#include "fiber/enter.h"
#include "fiber/fail.h"
#include "fiber/verbs.h"

static hf_fiber *begin(hf_op *op)
{
    hf_op_init(op);
    return hf_enter(NULL);
}

static hf_status end(hf_fiber *self, hf_op *op, hf_status status, const char *verb)
{
    if (self == NULL) {
        return status;
    }
    op->where = verb;
    HF_LEAVE(self, hf_op_end(self, op));
}

hf_status hf_sim_new_with(hf_env **ret_env, const hf_sim_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_sim_new));
    HF_OPTIONS(hf_sim_options, options, hf_sim_new);
    hf_op op;
    hf_fiber *self = begin(&op);
    return end(self, &op, hf_sim_make(&op, ret_env, options), "hf_sim_new");
}

hf_status hf_sim_file_put(hf_env *env, const char *path, const void *bytes, size_t len)
{
    HF_TRY(HF_VERB_ALLOWED(hf_sim_file_put));
    hf_op op;
    hf_fiber *self = begin(&op);
    return end(self, &op, hf_sim_disk_put(env, &op, path, bytes, len), __func__);
}

hf_status hf_sim_file_get(hf_env *env, const char *path, char **ret_bytes, size_t *ret_len)
{
    HF_TRY(HF_VERB_ALLOWED(hf_sim_file_get));
    hf_op op;
    hf_fiber *self = begin(&op);
    return end(self, &op, hf_sim_disk_get(env, &op, path, ret_bytes, ret_len), __func__);
}

hf_status hf_sim_restart(hf_env *env)
{
    HF_TRY(HF_VERB_ALLOWED(hf_sim_restart));
    hf_op op;
    hf_fiber *self = begin(&op);
    return end(self, &op, hf_sim_boot(env, &op), __func__);
}

hf_status hf_sim_raise(hf_env *env, int number)
{
    HF_TRY(HF_VERB_ALLOWED(hf_sim_raise));
    hf_op op;
    hf_fiber *self = begin(&op);
    return end(self, &op, hf_sim_deliver_signal(env, &op, number), __func__);
}
