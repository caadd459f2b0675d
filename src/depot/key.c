#include "depot/key.h"

#include "fiber/verbs.h"

#include <string.h>

static hf_status refuse_name(hf_op *op, const char *what, const char *text)
{
    return hf_fail(op, HF_ERR_INVALID, "the %s of a key has %zu bytes: it must have 1 to %d", what,
                   text != NULL ? strlen(text) : 0, HF_DEPOT_NAME_LEN_MAX);
}

/* Copies a name with its NUL, `len_max` bytes at most without it. Returns the bytes that it takes; 0: it is not a name, or
 * longer. By a loop: names are short, and a call of strlen and one of memcpy take longer. */
static inline size_t put_name(char *to, const char *text, size_t len_max)
{
    if (HF_UNLIKELY(text == NULL || *text == '\0')) {
        return 0;
    }
    for (size_t len = 0; len <= len_max; len++) {
        to[len] = text[len];
        if (text[len] == '\0') {
            return len + 1;
        }
    }
    return 0;
}

hf_status hf_depot_ns_check(hf_op *op, const char *ns)
{
    size_t len = ns != NULL ? strlen(ns) : 0;
    return len >= 1 && len <= HF_DEPOT_NAME_LEN_MAX ? HF_OK : refuse_name(op, "namespace", ns);
}

hf_status hf_depot_key_pack(hf_op *op, hf_depot_key key, hf_depot_key_bytes *ret_bytes)
{
    size_t ns_len = put_name(ret_bytes->bytes, key.ns, HF_DEPOT_NAME_LEN_MAX);
    if (HF_UNLIKELY(ns_len == 0)) {
        return refuse_name(op, "namespace", key.ns);
    }
    size_t type_len = put_name(ret_bytes->bytes + ns_len, key.type, HF_DEPOT_NAME_LEN_MAX);
    if (HF_UNLIKELY(type_len == 0)) {
        return refuse_name(op, "type", key.type);
    }
    if (key.id == NULL || key.id_len < 1 || key.id_len > HF_DEPOT_ID_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the id of a key has %zu bytes: it must have 1 to %d",
                       key.id != NULL ? key.id_len : 0, HF_DEPOT_ID_LEN_MAX);
    }
    memcpy(ret_bytes->bytes + ns_len + type_len, key.id, key.id_len);
    ret_bytes->len = ns_len + type_len + key.id_len;
    hf_assert(ret_bytes->len <= sizeof ret_bytes->bytes);
    return HF_OK;
}

size_t hf_depot_key_pack_short(hf_depot_key key, char *to, size_t size)
{
    hf_assert(size > 0);
    size_t most = size - 1 < HF_DEPOT_NAME_LEN_MAX ? size - 1 : HF_DEPOT_NAME_LEN_MAX;
    size_t ns_len = put_name(to, key.ns, most);
    if (HF_UNLIKELY(ns_len == 0 || ns_len == size)) {
        return 0;
    }
    most = size - ns_len - 1 < HF_DEPOT_NAME_LEN_MAX ? size - ns_len - 1 : HF_DEPOT_NAME_LEN_MAX;
    size_t type_len = put_name(to + ns_len, key.type, most);
    if (HF_UNLIKELY(type_len == 0 || key.id == NULL || key.id_len < 1 || key.id_len > size - ns_len - type_len)) {
        return 0;
    }
    memcpy(to + ns_len + type_len, key.id, key.id_len);
    return ns_len + type_len + key.id_len;
}

hf_str hf_depot_key_ns(hf_str bytes)
{
    const char *end = memchr(bytes.data, '\0', bytes.len);
    hf_assert(end != NULL); /* packed by hf_depot_key_pack, or looked at by unpack */
    return hf_str_of_len(bytes.data, (size_t)(end - bytes.data));
}

bool hf_depot_key_unpack(hf_str bytes, hf_depot_key *ret_key)
{
    if (bytes.len < 5 || bytes.len > HF_DEPOT_KEY_LEN_MAX) {
        return false;
    }
    const char *ns_end = memchr(bytes.data, '\0', bytes.len);
    size_t ns_len = ns_end != NULL ? (size_t)(ns_end - bytes.data) + 1 : 0;
    const char *type_end = ns_end != NULL ? memchr(ns_end + 1, '\0', bytes.len - ns_len) : NULL;
    if (type_end == NULL) {
        return false;
    }
    size_t type_len = (size_t)(type_end - ns_end);
    size_t id_len = bytes.len - ns_len - type_len;
    if (ns_len < 2 || ns_len - 1 > HF_DEPOT_NAME_LEN_MAX || type_len < 2 || type_len - 1 > HF_DEPOT_NAME_LEN_MAX ||
        id_len < 1 || id_len > HF_DEPOT_ID_LEN_MAX) {
        return false;
    }
    *ret_key = hf_depot_key_of_bytes(bytes.data, ns_end + 1, type_end + 1, id_len);
    return true;
}

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

enum { TERMS_MAX = 64 };

/* Two bytes of length before each text: no other terms give the same bytes. */
static size_t put_text(unsigned char *at, const char *text)
{
    size_t len = strlen(text);
    at[0] = (unsigned char)(len >> 8);
    at[1] = (unsigned char)len;
    memcpy(at + 2, text, len);
    return len + 2;
}

static hf_status sort_terms(hf_op *op, const hf_depot_term *terms, size_t count, const hf_depot_term **ret_sorted)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        while (at > 0 && strcmp(ret_sorted[at - 1]->name, terms[i].name) > 0) {
            ret_sorted[at] = ret_sorted[at - 1];
            at--;
        }
        if (at > 0 && strcmp(ret_sorted[at - 1]->name, terms[i].name) == 0) {
            return hf_fail(op, HF_ERR_INVALID, "a query has the name '%.100s' twice", terms[i].name);
        }
        ret_sorted[at] = &terms[i];
    }
    return HF_OK;
}

static hf_status make_query(hf_op *op, const hf_depot_term *terms, size_t count, hf_depot_query_id *ret_id)
{
    const hf_depot_term *sorted[TERMS_MAX];
    size_t len = 0;
    if (ret_id == NULL || terms == NULL || count == 0) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_depot_query needs terms and a place for the id");
    }
    if (count > TERMS_MAX) {
        return hf_fail(op, HF_ERR_LIMIT, "a query has %zu terms: it may have %d", count, TERMS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (terms[i].name == NULL || terms[i].value == NULL) {
            return hf_fail(op, HF_ERR_INVALID, "term %zu of a query has no name or no value", i);
        }
        len += strlen(terms[i].name) + strlen(terms[i].value) + 4;
    }
    if (len > sizeof ret_id->bytes) {
        return hf_fail(op, HF_ERR_TOO_BIG, "the terms of a query take %zu bytes: they may take %zu", len,
                       sizeof ret_id->bytes);
    }
    HF_TRY(sort_terms(op, terms, count, sorted));
    ret_id->len = 0;
    for (size_t i = 0; i < count; i++) {
        ret_id->len += put_text(ret_id->bytes + ret_id->len, sorted[i]->name);
        ret_id->len += put_text(ret_id->bytes + ret_id->len, sorted[i]->value);
    }
    hf_assert(ret_id->len == len);
    return HF_OK;
}

hf_status hf_depot_query(const hf_depot_term *terms, size_t count, hf_depot_query_id *ret_id)
{
    HF_VERB_ENTER(self, hf_depot_query, NULL);
    hf_op op;
    hf_op_init(&op);
    HF_LEAVE(self, make_query(&op, terms, count, ret_id) == HF_OK ? HF_OK : hf_op_end(self, &op));
}
