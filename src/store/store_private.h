/* Helpers for backends: how a scan fills its request, how keys are shown, and reduced to the parts that a table uses. */
#ifndef HF_STORE_STORE_PRIVATE_H
#define HF_STORE_STORE_PRIVATE_H

#include "store/store.h"

/* Bytes of a key as text, the NUL included. */
#define HF_KEY_FORMAT_LEN 160

/* "history a=7 b=12", "meta 'engine'"; long texts are cut, odd bytes shown as dots. */
void hf_key_format(hf_table table, const hf_key *key, char ret_text[HF_KEY_FORMAT_LEN]);
/* The key with the parts that the table does not use emptied. */
hf_key hf_key_used(hf_table table, const hf_key *key);

/* A scan under way. A backend walks its range and asks before each row whether the requester wants one more. */
typedef struct hf_scan {
    hf_store_request *request; /* rows, row_count and more are filled in */
    size_t capacity;           /* rows that fit request->rows */
    size_t len;                /* bytes of texts and values so far */
} hf_scan;

/* Whether the requester wants another row; if not, sets `more`: the range has more rows. */
bool hf_scan_wants(hf_scan *scan);
/* Copies the row into the arena. Fails: HF_ERR_NOMEM. */
hf_status hf_scan_add(hf_scan *scan, const hf_key *key, hf_str value);

#endif
