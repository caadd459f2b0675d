/* Tokens: the right to answer for a task, and the place where the next page of a history begins.
 *
 * A token names the task (run, scheduled and started event, attempt, stamp) and is sealed with a key that lives in the store,
 * so that it survives a restart, cannot be made up, and is not valid for another attempt of the task. Page tokens are
 * made in the same way; a token of one kind is never taken for another. */
#include "engine/token.h"

#include "engine/core_private.h"
#include "engine/history_page.h"

#include <endian.h>

enum { VERSION = 1, BODY_LEN = HF_TOKEN_LEN - 8 };
enum {
    WORKFLOW_TASK,
    ACTIVITY_TASK,
    PAGE,
    QUERY_TASK,
    PAGE_BACK,
    LIST
}; /* on disk and with callers: never renumbered */

/* Every kind of token is a few numbers. */
typedef struct hf_sealed {
    int kind;
    int64_t run;
    int64_t a, b;
    int32_t attempt;
    int64_t stamp;
} hf_sealed;

static void put(char **at, uint64_t value, size_t len)
{
    uint64_t bytes = htole64(value);
    memcpy(*at, &bytes, len);
    *at += len;
}

static uint64_t get(const char **at, size_t len)
{
    uint64_t bytes = 0;
    memcpy(&bytes, *at, len);
    *at += len;
    return le64toh(bytes);
}

static void seal(const hf_core *core, hf_sealed sealed, char bytes[HF_TOKEN_LEN])
{
    char *at = bytes;
    put(&at, VERSION, 1);
    put(&at, (uint64_t)sealed.kind, 1);
    put(&at, (uint64_t)sealed.run, 8);
    put(&at, (uint64_t)sealed.a, 8);
    put(&at, (uint64_t)sealed.b, 8);
    put(&at, (uint32_t)sealed.attempt, 4);
    put(&at, (uint64_t)sealed.stamp, 8);
    hf_assert(at == bytes + BODY_LEN);
    put(&at, hf_siphash(core->mac_key, hf_str_of_len(bytes, BODY_LEN)), 8);
}

static bool unseal(const hf_core *core, hf_str bytes, hf_sealed *ret_sealed)
{
    if (bytes.len != HF_TOKEN_LEN || bytes.data[0] != VERSION) {
        return false;
    }
    const char *at = bytes.data + BODY_LEN;
    if (get(&at, 8) != hf_siphash(core->mac_key, hf_str_of_len(bytes.data, BODY_LEN))) {
        return false;
    }
    at = bytes.data + 1;
    ret_sealed->kind = (int)get(&at, 1);
    ret_sealed->run = (int64_t)get(&at, 8);
    ret_sealed->a = (int64_t)get(&at, 8);
    ret_sealed->b = (int64_t)get(&at, 8);
    ret_sealed->attempt = (int32_t)(uint32_t)get(&at, 4);
    ret_sealed->stamp = (int64_t)get(&at, 8);
    /* Our tokens name possible runs and events. A token with other numbers is not ours, even if its seal fits. */
    return hf_run_is_number(ret_sealed->run) && ret_sealed->a >= 0 && ret_sealed->a < INT64_MAX && ret_sealed->b >= 0 &&
           ret_sealed->b < INT64_MAX && ret_sealed->attempt >= 0;
}

void hf_token_encode(const hf_core *core, const hf_token *token, char bytes[HF_TOKEN_LEN])
{
    static const int KINDS[] = {
        [HF_TASK_WORKFLOW] = WORKFLOW_TASK, [HF_TASK_ACTIVITY] = ACTIVITY_TASK, [HF_TASK_QUERY] = QUERY_TASK};
    hf_sealed sealed = {KINDS[token->kind], token->run,     token->scheduled_id,
                        token->started_id,  token->attempt, token->stamp};
    seal(core, sealed, bytes);
}

bool hf_token_decode(const hf_core *core, hf_str bytes, hf_token *ret_token)
{
    hf_sealed sealed;
    if (!unseal(core, bytes, &sealed) ||
        (sealed.kind != ACTIVITY_TASK && sealed.kind != WORKFLOW_TASK && sealed.kind != QUERY_TASK)) {
        return false;
    }
    hf_task_kind kind = sealed.kind == ACTIVITY_TASK   ? HF_TASK_ACTIVITY
                        : sealed.kind == WORKFLOW_TASK ? HF_TASK_WORKFLOW
                                                       : HF_TASK_QUERY;
    *ret_token = (hf_token){kind, sealed.run, sealed.a, sealed.b, sealed.attempt, sealed.stamp, false};
    return true;
}

void hf_page_encode(const hf_core *core, const hf_page *page, char bytes[HF_TOKEN_LEN])
{
    int kind = page->is_reverse ? PAGE_BACK : PAGE;
    seal(core, (hf_sealed){kind, page->run, page->next, page->last, page->attempt, page->stamp}, bytes);
}

bool hf_page_decode(const hf_core *core, hf_str bytes, hf_page *ret_page)
{
    hf_sealed sealed;
    if (!unseal(core, bytes, &sealed) || (sealed.kind != PAGE && sealed.kind != PAGE_BACK) || sealed.a < 1) {
        return false;
    }
    *ret_page = (hf_page){sealed.run, sealed.a, sealed.b, sealed.attempt, sealed.stamp, sealed.kind == PAGE_BACK};
    return true;
}

/* ---- Lists: version, kind, what it is bound to, the run, its sort key, the seal ------------------------------------------- */

enum { LIST_HEAD_LEN = 18, LIST_LEN_MAX = 64 << 10 };

hf_str hf_list_token_encode(const hf_core *core, hf_arena *arena, const hf_list_place *place)
{
    size_t len = LIST_HEAD_LEN + place->key.len;
    char *bytes = hf_arena_take(arena, len + 8, 1);
    if (bytes == NULL) {
        return HF_STR("");
    }
    char *at = bytes;
    put(&at, VERSION, 1);
    put(&at, LIST, 1);
    put(&at, place->bound, 8);
    put(&at, (uint64_t)place->number, 8);
    hf_assert(at == bytes + LIST_HEAD_LEN);
    if (place->key.len > 0) {
        memcpy(at, place->key.data, place->key.len);
        at += place->key.len;
    }
    put(&at, hf_siphash(core->mac_key, hf_str_of_len(bytes, len)), 8);
    return hf_str_of_len(bytes, len + 8);
}

bool hf_list_token_decode(const hf_core *core, hf_str bytes, hf_list_place *ret_place)
{
    if (bytes.len < LIST_HEAD_LEN + 8 || bytes.len > LIST_LEN_MAX || bytes.data[0] != VERSION ||
        bytes.data[1] != LIST) {
        return false;
    }
    size_t len = bytes.len - 8;
    const char *at = bytes.data + len;
    if (get(&at, 8) != hf_siphash(core->mac_key, hf_str_of_len(bytes.data, len))) {
        return false;
    }
    at = bytes.data + 2;
    ret_place->bound = get(&at, 8);
    ret_place->number = (int64_t)get(&at, 8);
    ret_place->key = hf_str_of_len(at, len - LIST_HEAD_LEN);
    return hf_run_is_number(ret_place->number);
}
