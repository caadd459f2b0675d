/* Task tokens: who may answer for a task.
 *
 * A token names the task (run, scheduled and started event, attempt, stamp) and is sealed with a key that lives in the store,
 * so that it survives a restart, cannot be made up, and is worth nothing once the task is another attempt. */
#include "engine/core.h"

enum { VERSION = 1, BODY_LEN = HF_TOKEN_LEN - 8 };

static void put(char **at, uint64_t value, int len)
{
    for (int i = 0; i < len; i++) {
        *(*at)++ = (char)(unsigned char)(value >> (8 * i));
    }
}

static uint64_t get(const char **at, int len)
{
    uint64_t value = 0;
    for (int i = 0; i < len; i++) {
        value |= (uint64_t)(unsigned char)*(*at)++ << (8 * i);
    }
    return value;
}

void hf_token_encode(const hf_core *core, const hf_token *token, char bytes[HF_TOKEN_LEN])
{
    char *at = bytes;
    put(&at, VERSION, 1);
    put(&at, token->activity ? 1 : 0, 1);
    put(&at, (uint64_t)token->run, 8);
    put(&at, (uint64_t)token->scheduled_id, 8);
    put(&at, (uint64_t)token->started_id, 8);
    put(&at, (uint32_t)token->attempt, 4);
    put(&at, (uint64_t)token->stamp, 8);
    hf_assert(at == bytes + BODY_LEN);
    put(&at, hf_siphash(core->mac_key, hf_str_of_len(bytes, BODY_LEN)), 8);
}

bool hf_token_decode(const hf_core *core, hf_str bytes, hf_token *ret_token)
{
    if (bytes.len != HF_TOKEN_LEN || bytes.data[0] != VERSION) {
        return false;
    }
    const char *seal = bytes.data + BODY_LEN;
    if (get(&seal, 8) != hf_siphash(core->mac_key, hf_str_of_len(bytes.data, BODY_LEN))) {
        return false;
    }
    const char *at = bytes.data + 1;
    ret_token->activity = get(&at, 1) != 0;
    ret_token->run = (int64_t)get(&at, 8);
    ret_token->scheduled_id = (int64_t)get(&at, 8);
    ret_token->started_id = (int64_t)get(&at, 8);
    ret_token->attempt = (int32_t)(uint32_t)get(&at, 4);
    ret_token->stamp = (int64_t)get(&at, 8);
    return true;
}
