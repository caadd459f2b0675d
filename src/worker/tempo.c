#include "worker/tempo.h"

#include <limits.h>
#include <math.h>

#define RATE_MIN 0.000001
#define RATE_MAX 1e9
#define SECOND_NS 1000000000

hf_status hf_tempo_check(hf_op *op, const char *whose, const char *what, double rate)
{
    if (rate == 0 || (rate >= RATE_MIN && rate <= RATE_MAX)) { /* NaN is neither */
        return HF_OK;
    }
    return hf_fail(op, HF_ERR_INVALID, "%s: %s is %g: it must be 0, for any number, or 0.000001 to 1,000,000,000",
                   whose, what, rate);
}

void hf_tempo_init(hf_tempo *tempo, double rate)
{
    *tempo = (hf_tempo){0};
    if (rate > 0) {
        tempo->interval = (int64_t)(SECOND_NS / rate);
        tempo->interval = tempo->interval > 0 ? tempo->interval : 1;
        tempo->capacity = rate >= INT_MAX ? INT_MAX : (int)ceil(rate);
    }
}

int hf_tempo_pollers(const hf_tempo *tempo, int max)
{
    return tempo->interval != 0 && tempo->capacity < max ? tempo->capacity : max;
}

int64_t hf_tempo_take(hf_tempo *tempo, int64_t now)
{
    if (tempo->interval == 0) {
        return 0;
    }
    hf_spin_lock(&tempo->lock);
    hf_assert(tempo->held < tempo->capacity); /* worker-P1: of the pollers one asks here */
    int64_t next = tempo->full_at - (tempo->capacity - tempo->held - 1) * tempo->interval;
    int64_t wait = next > now ? next - now : 0;
    tempo->held += wait == 0;
    hf_spin_unlock(&tempo->lock);
    return wait;
}

void hf_tempo_settle(hf_tempo *tempo, int64_t now, bool is_spent)
{
    if (tempo->interval == 0) {
        return;
    }
    hf_spin_lock(&tempo->lock);
    hf_assert(tempo->held > 0); /* worker-P1 */
    tempo->held--;
    if (is_spent) {
        tempo->full_at = (tempo->full_at > now ? tempo->full_at : now) + tempo->interval;
    }
    hf_spin_unlock(&tempo->lock);
}
