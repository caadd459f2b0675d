/* Activities for the plugins of the trials: a bank and a warehouse that are variables. */
#ifndef HF_TESTS_SIM_SHOP_H
#define HF_TESTS_SIM_SHOP_H

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t shop_lock = PTHREAD_MUTEX_INITIALIZER;
static char shop_keys[64][80]; /* of charges that were made */
static int shop_key_count;
static int shop_charged;
static int shop_shipped;

/* Whether a charge with this key was made before; remembers it. */
static inline bool shop_knows(const char *key)
{
    for (int i = 0; i < shop_key_count; i++) {
        if (strcmp(shop_keys[i], key) == 0) {
            return true;
        }
    }
    (void)snprintf(shop_keys[shop_key_count++ % 64], sizeof shop_keys[0], "%s", key);
    return false;
}

/* One charge for a run and activity, however often it is tried. */
static hf_status shop_charge(hf_payload in, hf_payload *ret_out)
{
    char key[80];
    const hf_activity_facts *facts = hf_activity_info();
    (void)in;
    (void)ret_out;
    (void)snprintf(key, sizeof key, "%s %s", facts->run_id, facts->id);
    (void)pthread_mutex_lock(&shop_lock);
    shop_charged += shop_knows(key) ? 0 : 10;
    (void)pthread_mutex_unlock(&shop_lock);
    return HF_OK;
}

/* The bug: charges at every attempt. */
static hf_status shop_charge_again(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    (void)pthread_mutex_lock(&shop_lock);
    shop_charged += 10;
    (void)pthread_mutex_unlock(&shop_lock);
    return HF_OK;
}

static hf_status shop_refund(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    (void)pthread_mutex_lock(&shop_lock);
    shop_charged = 0; /* the whole order, and nothing if nothing was charged */
    (void)pthread_mutex_unlock(&shop_lock);
    return HF_OK;
}

static hf_status shop_ship(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    (void)pthread_mutex_lock(&shop_lock);
    shop_shipped = 1;
    (void)pthread_mutex_unlock(&shop_lock);
    return HF_OK;
}

static hf_status shop_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status shop_add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_activity(worker, "charge", shop_charge));
    HF_TRY(hf_worker_add_activity(worker, "charge_again", shop_charge_again));
    HF_TRY(hf_worker_add_activity(worker, "refund", shop_refund));
    HF_TRY(hf_worker_add_activity(worker, "ship", shop_ship));
    return hf_worker_add_activity(worker, "echo", shop_echo);
}

HF_PLUGIN_WORLD(ret_out)
{
    return hf_payload_printf(ret_out, "{\"charged\": %d, \"shipped\": %d}", shop_charged, shop_shipped);
}

#endif
