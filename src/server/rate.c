#include "server/rate.h"

#define SECOND_NS INT64_C(1000000000)

typedef struct entry {
    uint64_t hash; /* of the namespace; 0 = free */
    int64_t until; /* ns */
} entry;

struct hf_rates {
    hf_env *env;
    hf_rate rates[HF_RATES_MAX];
    int count;
    unsigned char key[HF_SIPHASH_KEY_LEN]; /* so that nobody can choose two names with the same hash */
    hf_spin lock;
    entry table[HF_RATE_SETS][HF_RATE_WAYS];
};

hf_rates *hf_rates_new(hf_env *env, const hf_rate *rates, int count)
{
    hf_op op;
    hf_op_init(&op);
    hf_assert(count <= HF_RATES_MAX);
    hf_rates *all = env->ops->allocate(env, sizeof *all, 0);
    if (all == NULL) {
        return NULL;
    }
    memset(all, 0, sizeof *all);
    all->env = env;
    all->count = count;
    for (int i = 0; i < count; i++) {
        all->rates[i] = rates[i];
    }
    if (env->ops->random(env, &op, all->key, sizeof all->key) != HF_OK) {
        hf_rates_free(all);
        return NULL;
    }
    return all;
}

void hf_rates_free(hf_rates *rates)
{
    if (rates != NULL) {
        rates->env->ops->release(rates->env, rates, sizeof *rates);
    }
}

static int64_t rate_of(const hf_rates *rates, hf_str namespace_)
{
    int64_t rate = 0;
    for (int i = 0; i < rates->count; i++) {
        if (rates->rates[i].namespace_ == NULL) {
            rate = rates->rates[i].per_second;
        } else if (hf_str_equal(namespace_, hf_str_of(rates->rates[i].namespace_))) {
            return rates->rates[i].per_second;
        }
    }
    return rate;
}

/* The entry of a hash, or the one of its set that is forgotten for it: the one whose time is furthest back. */
static entry *find(hf_rates *rates, uint64_t hash)
{
    entry *set = rates->table[hash % HF_RATE_SETS];
    entry *oldest = &set[0];
    for (int i = 0; i < HF_RATE_WAYS; i++) {
        if (set[i].hash == hash) {
            return &set[i];
        }
        oldest = set[i].until < oldest->until ? &set[i] : oldest;
    }
    *oldest = (entry){.hash = hash};
    return oldest;
}

bool hf_rates_take(hf_rates *rates, hf_str namespace_, int64_t now_ns)
{
    int64_t rate = rate_of(rates, namespace_);
    if (rate <= 0) {
        return true;
    }
    uint64_t hash = hf_siphash(rates->key, namespace_);
    hash += hash == 0;
    int64_t each = SECOND_NS / rate > 0 ? SECOND_NS / rate : 1;
    hf_spin_lock(&rates->lock);
    entry *mine = find(rates, hash);
    int64_t from = mine->until > now_ns ? mine->until : now_ns;
    bool is_fine = from - now_ns <= SECOND_NS - each; /* server-R1 */
    if (is_fine) {
        mine->until = from + each;
    }
    hf_spin_unlock(&rates->lock);
    hf_assert(!is_fine || from + each - now_ns <= SECOND_NS); /* server-R1 */
    return is_fine;
}
