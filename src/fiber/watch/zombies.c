#include "fiber/watch/zombies.h"

#include <string.h>

hf_status hf_zombies_get(hf_op *op, hf_runtime *rt, hf_zombies *ret_zombies)
{
    ret_zombies->count = hf_watchdog_list(rt, &ret_zombies->all, &ret_zombies->room);
    hf_assert(ret_zombies->count <= (int)ret_zombies->room);
    return ret_zombies->count >= 0 ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a list of zombies");
}

void hf_zombies_free(hf_runtime *rt, hf_zombies *zombies)
{
    hf_rt_free(rt, zombies->all, zombies->room * sizeof *zombies->all);
    *zombies = (hf_zombies){0};
}

void hf_zombie_json(hf_json *json, const hf_zombie *zombie)
{
    for (int i = 0; i < zombie->label.count; i++) {
        hf_json_key_string(json, zombie->label.fields[i].key, zombie->label.fields[i].value);
    }
    hf_json_key_int(json, "age_us", zombie->age_ns / 1000);
}

void hf_zombie_fields(hf_buf *buf, const hf_zombie *zombie)
{
    for (int i = 0; i < zombie->label.count; i++) {
        const char *value = zombie->label.fields[i].value;
        hf_buf_puts(buf, i > 0 ? "," : "");
        hf_buf_puts(buf, zombie->label.fields[i].key);
        hf_buf_putc(buf, '=');
        hf_json_quote(buf, value, strlen(value));
    }
}
