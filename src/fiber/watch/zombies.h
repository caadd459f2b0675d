/* The zombies of pools in dumps and metrics. */
#ifndef HF_FIBER_ZOMBIES_H
#define HF_FIBER_ZOMBIES_H

#include "base/json.h"
#include "fiber/watch/watch.h"

/* The zombies at one moment. */
typedef struct hf_zombies {
    hf_zombie *all; /* owned */
    size_t room;
    int count;
} hf_zombies;

/* Fails: HF_ERR_NOMEM. */
hf_status hf_zombies_get(hf_op *op, hf_runtime *rt, hf_zombies *ret_zombies);
void hf_zombies_free(hf_runtime *rt, hf_zombies *zombies);

/* Writes the fields of a zombie as members of the current JSON object. */
void hf_zombie_json(hf_json *json, const hf_zombie *zombie);
/* Writes the fields of a zombie as text: activity="charge",attempt="2". */
void hf_zombie_fields(hf_buf *buf, const hf_zombie *zombie);

#endif
