/* Writes of the file that cannot be read. They stay where they are and are never guessed: `holdfast depot pending --damaged`
 * lists them, and hf_depot_drop takes their numbers. */
#include "depot/change.h"
#include "depot/file.h"

typedef struct damaged {
    hf_node node; /* in depot->damaged */
    uint64_t sequence;
} damaged;

void hf_damaged_add(hf_depot *depot, uint64_t sequence)
{
    hf_assert(sequence < depot->sequence_next); /* no new write gets its number */
    damaged *one = hf_rt_alloc(depot->rt, sizeof *one);
    if (one != NULL) { /* without memory it cannot be dropped until the file is opened again */
        one->sequence = sequence;
        hf_list_push_back(&depot->damaged, &one->node);
    }
}

void hf_damaged_free(hf_depot *depot)
{
    for (hf_node *node = hf_list_pop_front(&depot->damaged); node != NULL; node = hf_list_pop_front(&depot->damaged)) {
        hf_rt_free(depot->rt, HF_CONTAINER(node, damaged, node), sizeof(damaged));
    }
}

static damaged *find(hf_depot *depot, uint64_t sequence)
{
    HF_LIST_EACH(node, &depot->damaged)
    {
        damaged *one = HF_CONTAINER(node, damaged, node);
        if (one->sequence == sequence) {
            return one;
        }
    }
    return NULL;
}

static hf_status decide(hf_depot *depot, hf_change *change)
{
    hf_assert(change->slot == NULL && depot->source != NULL); /* what it was about is not known */
    if (find(depot, change->number) == NULL) {
        return hf_fail(&change->op, HF_ERR_NOT_FOUND, "there is no write %llu", (unsigned long long)change->number);
    }
    hf_change_delete(depot, change, HF_TABLE_PENDING, (hf_key){.a = (int64_t)change->number});
    change->is_synced = true;
    return HF_OK;
}

static void apply(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_assert(change->row == NULL && change->snap == NULL); /* it was never folded */
    damaged *one = status == HF_OK ? find(depot, change->number) : NULL;
    if (one != NULL) { /* two calls may have dropped it in one commit */
        hf_list_remove(&one->node);
        hf_rt_free(depot->rt, one, sizeof *one);
    }
    hf_change_tell(depot, change, status);
    hf_change_free(depot, change);
}

bool hf_damaged_drop(hf_depot *depot, hf_ask *ask, uint64_t sequence)
{
    if (find(depot, sequence) == NULL) {
        return false;
    }
    hf_change *change = hf_change_new(depot, NULL);
    if (change == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a write"));
        return true;
    }
    change->number = sequence;
    change->decide = decide;
    change->apply = apply;
    if (!hf_depot_park(depot, ask, &change->asks)) {
        hf_change_free(depot, change);
        return true;
    }
    hf_change_begin(depot, change);
    return true;
}
