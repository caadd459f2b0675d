/* The zombies of pools in dumps and metrics. */
#ifndef HF_FIBER_ZOMBIES_H
#define HF_FIBER_ZOMBIES_H

#include "base/json.h"
#include "fiber/watch/watch.h"

/* Those of one moment. */
typedef struct hf_zombies {
    hf_zombie *all; /* owned */
    size_t room;
    int count;
} hf_zombies;

/* Fails: HF_ERR_NOMEM. */
hf_status hf_zombies_get(hf_op *op, hf_runtime *rt, hf_zombies *ret_zombies);
void hf_zombies_free(hf_runtime *rt, hf_zombies *zombies);

/* The fields of one as members of the object that is being written. */
void hf_zombie_json(hf_json *json, const hf_zombie *zombie);
/* activity="charge",attempt="2" */
void hf_zombie_fields(hf_buf *buf, const hf_zombie *zombie);

#endif
