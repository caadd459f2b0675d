/* Sealed tokens: of tasks, and of pages of a history. */
#ifndef HF_ENGINE_TOKEN_H
#define HF_ENGINE_TOKEN_H

#include "engine/core.h"
#include "engine/history_page.h"
#include "engine/slot.h"

#define HF_TOKEN_LEN 46
void hf_token_encode(const hf_core *core, const hf_token *token, char bytes[HF_TOKEN_LEN]);
bool hf_token_decode(const hf_core *core, hf_str bytes, hf_token *ret_token);
void hf_page_encode(const hf_core *core, const hf_page *page, char bytes[HF_TOKEN_LEN]);
bool hf_page_decode(const hf_core *core, hf_str bytes, hf_page *ret_page);

/* Where a page of a list begins: behind this run. */
typedef struct hf_list_place {
    uint64_t bound; /* what the list was asked for: engine-S3 */
    int64_t number;
    hf_str key; /* its sort key; in the token */
} hf_list_place;
hf_str hf_list_token_encode(const hf_core *core, hf_arena *arena, const hf_list_place *place);
bool hf_list_token_decode(const hf_core *core, hf_str bytes, hf_list_place *ret_place);

#endif
