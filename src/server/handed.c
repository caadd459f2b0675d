#include "server/handed.h"

#define SECOND_NS INT64_C(1000000000)

typedef struct entry {
    uint64_t hash; /* of who, namespace and run; 0 = free */
    int64_t at_ns; /* when the last task of it was handed out */
} entry;

typedef struct table {
    entry sets[HF_HANDED_SETS][HF_HANDED_WAYS];
} table;

struct hf_handed {
    hf_env *env;
    unsigned char key[HF_SIPHASH_KEY_LEN];
    hf_spin lock; /* of the table's entries */
    table *table; /* pages that take memory when they are touched */
};

hf_handed *hf_handed_new(hf_env *env)
{
    hf_op op;
    hf_op_init(&op);
    hf_handed *handed = env->ops->allocate(env, sizeof *handed, 0);
    if (handed == NULL) {
        return NULL;
    }
    *handed = (hf_handed){.env = env, .table = env->ops->pages_reserve(env, sizeof(table))};
    if (handed->table == NULL || env->ops->random(env, &op, handed->key, sizeof handed->key) != HF_OK) {
        hf_handed_free(handed);
        return NULL;
    }
    return handed;
}

void hf_handed_free(hf_handed *handed)
{
    if (handed == NULL) {
        return;
    }
    hf_env *env = handed->env;
    if (handed->table != NULL) {
        env->ops->pages_release(env, handed->table, sizeof(table));
    }
    env->ops->release(env, handed, sizeof *handed);
}

typedef enum kind { BY_KEY, BY_LINK, KIND_COUNT } kind;

static uint64_t hash_of(const hf_handed *handed, kind by, hf_bearer to, hf_str namespace_, hf_str run_id)
{
    uint64_t parts[] = {
        by,
        by == BY_KEY ? hf_siphash(handed->key, to.key_id) : to.link,
        hf_siphash(handed->key, namespace_),
        hf_siphash(handed->key, run_id),
    };
    uint64_t hash = hf_siphash(handed->key, hf_str_of_len((const char *)parts, sizeof parts));
    return hash + (hash == 0);
}

/* The entry of a hash. NULL: it has none. */
static entry *find(table *t, uint64_t hash)
{
    entry *set = t->sets[hash % HF_HANDED_SETS];
    for (int i = 0; i < HF_HANDED_WAYS; i++) {
        if (set[i].hash == hash) {
            return &set[i];
        }
    }
    return NULL;
}

static entry *oldest_of(table *t, uint64_t hash)
{
    entry *set = t->sets[hash % HF_HANDED_SETS];
    entry *oldest = &set[0];
    hf_assert(hash != 0); /* which is that of a free one */
    for (int i = 0; i < HF_HANDED_WAYS; i++) {
        if (set[i].hash == 0) {
            return &set[i];
        }
        oldest = set[i].at_ns < oldest->at_ns ? &set[i] : oldest;
    }
    return oldest;
}

void hf_handed_note(hf_handed *handed, hf_bearer to, hf_str namespace_, hf_str run_id, int64_t now_ns)
{
    for (kind by = 0; by < KIND_COUNT; by++) {
        uint64_t hash = hash_of(handed, by, to, namespace_, run_id);
        hf_spin_lock(&handed->lock);
        entry *mine = find(handed->table, hash);
        mine = mine != NULL ? mine : oldest_of(handed->table, hash);
        *mine = (entry){hash, now_ns};
        hf_spin_unlock(&handed->lock);
    }
}

bool hf_handed_has(hf_handed *handed, hf_bearer to, hf_str namespace_, hf_str run_id, int64_t now_ns)
{
    bool is_there = false;
    for (kind by = 0; by < KIND_COUNT && !is_there; by++) {
        uint64_t hash = hash_of(handed, by, to, namespace_, run_id);
        hf_spin_lock(&handed->lock);
        const entry *mine = find(handed->table, hash);
        is_there = mine != NULL && now_ns - mine->at_ns <= HF_HANDED_SECONDS * SECOND_NS;
        hf_spin_unlock(&handed->lock);
    }
    return is_there;
}
