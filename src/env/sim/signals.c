/* Signals that a host asked to receive; tests raise them (hf_sim_raise). Interrupts of the library's own threads are in
 * sched.c. */
#include "env/sim/sim_private.h"

enum { SIGNAL_NUMBER_MAX = 63 }; /* the highest number that fits the mask; SIGRTMAX, which is 64, does not */

/* Whether one of the signals is open already, and is not shared with the caller. */
static bool is_taken(const hf_sim *sim, uint64_t mask, bool is_shared)
{
    for (uint32_t i = 0; i < sim->desc_capacity; i++) {
        const hf_sim_desc *desc = sim->descs[i];
        if (desc != NULL && desc->kind == HF_SIM_SIGNALS && (desc->as.signals.mask & mask) != 0 &&
            !(is_shared && desc->as.signals.is_shared)) {
            return true;
        }
    }
    return false;
}

static hf_status signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, bool is_shared, int *ret_fd)
{
    hf_sim *sim = hf_sim_of(env);
    uint64_t mask = 0;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 1 || numbers[i] > SIGNAL_NUMBER_MAX) {
            return hf_fail(op, HF_ERR_INVALID, "%d is not a signal", numbers[i]);
        }
        mask |= UINT64_C(1) << numbers[i];
    }
    if (is_taken(sim, mask, is_shared)) {
        return hf_fail(op, HF_ERR_EXISTS, "one of the signals has another receiver already");
    }
    hf_sim_desc *desc = NULL;
    HF_TRY(hf_sim_desc_new(sim, op, HF_SIM_SIGNALS, &desc));
    desc->as.signals.mask = mask;
    desc->as.signals.is_shared = is_shared;
    *ret_fd = desc->fd;
    return HF_OK;
}

hf_status hf_sim_signals_open(hf_env *env, hf_op *op, const int *numbers, size_t count, int *ret_fd)
{
    return signals_open(env, op, numbers, count, false, ret_fd);
}

hf_status hf_sim_signals_share(hf_env *env, hf_op *op, int number, int *ret_fd)
{
    return signals_open(env, op, &number, 1, true, ret_fd);
}

hf_status hf_sim_signals_read(hf_env *env, hf_op *op, int fd, int *ret_number)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    if (desc == NULL || desc->kind != HF_SIM_SIGNALS) {
        return hf_fail(op, HF_ERR_IO, "descriptor %d receives no signals", fd);
    }
    if (desc->as.signals.count == 0) {
        return hf_fail(op, HF_ERR_AGAIN, "no signal is queued");
    }
    hf_assert(desc->as.signals.count <= HF_SIM_SIGNALS_MAX && desc->as.signals.first < HF_SIM_SIGNALS_MAX);
    *ret_number = desc->as.signals.numbers[desc->as.signals.first];
    desc->as.signals.first = (desc->as.signals.first + 1) % HF_SIM_SIGNALS_MAX;
    desc->as.signals.count--;
    return HF_OK;
}

void hf_sim_signals_close(hf_env *env, const int *numbers, size_t count, int fd)
{
    (void)numbers;
    (void)count;
    hf_sim_close(env, fd);
}

hf_status hf_sim_deliver_signal(hf_env *env, hf_op *op, int number)
{
    if (env == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "a simulated environment is needed to raise a signal");
    }
    if (number < 1 || number > SIGNAL_NUMBER_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "%d is not a signal", number);
    }
    hf_sim *sim = hf_sim_of(env);
    hf_status status = HF_ERR_NOT_FOUND;
    for (uint32_t i = 0; i < sim->desc_capacity; i++) {
        hf_sim_desc *desc = sim->descs[i];
        if (desc == NULL || desc->kind != HF_SIM_SIGNALS || (desc->as.signals.mask >> number & 1) == 0) {
            continue;
        }
        if (desc->as.signals.count == HF_SIM_SIGNALS_MAX) {
            return hf_fail(op, HF_ERR_LIMIT, "%d signals wait to be read already", HF_SIM_SIGNALS_MAX);
        }
        uint32_t slot = (desc->as.signals.first + desc->as.signals.count++) % HF_SIM_SIGNALS_MAX;
        desc->as.signals.numbers[slot] = (uint8_t)number;
        hf_sim_desc_notify(sim, desc, HF_READABLE);
        status = HF_OK;
    }
    return status == HF_OK ? HF_OK : hf_fail(op, status, "nobody has signal %d open", number);
}
