/* Payloads: the inputs and results of workflows, activities and signals: bytes and the name of their encoding.
 *
 * Who frees them. An argument is borrowed: hf_payload_of_json("{\"amount\": 7}") is good enough for a call. A result
 * that the library made (hf_payload_copy, hf_payload_printf, or what a call gave you) is taken over and freed. A result
 * may also be a constant or another static variable (*ret_out = hf_payload_of_json("\"done\"")), or the function's
 * input or a part of that. Other memory, from the stack or malloc, is refused: the activity or workflow fails with
 * HF_ERR_MISUSE. You free a payload that a call gave you with hf_payload_free; in a workflow you need not, the
 * library frees it with the run.
 *
 * A function that does not set `*ret_out` returns an empty payload, whose `data` is NULL. hf_payload_printf
 * inserts the text of a %s as it is, so quotes and backslashes in it must be escaped before; hf_payload_object of json.h
 * does that, and json.h also reads JSON. A payload has at most 2 MiB: a call with a longer one fails with
 * HF_ERR_TOO_BIG, and so does a workflow or activity that returns one. */
#ifndef HOLDFAST_PAYLOAD_H
#define HOLDFAST_PAYLOAD_H

#include <holdfast/status.h>

#define HF_ENCODING_JSON_TEXT "json/plain"    /* a JSON text */
#define HF_ENCODING_BYTES_TEXT "binary/plain" /* bytes */
#define HF_ENCODING_NONE_TEXT "binary/null"   /* nothing */

typedef struct hf_payload {
    const void *data;     /* one NUL follows what the library made, so that a JSON text can be read as a string */
    size_t len;           /* bytes */
    const char *encoding; /* NULL = HF_ENCODING_BYTES_TEXT, or no payload at all if `data` is NULL */
    void *owned;          /* the library's: what hf_payload_free frees; NULL = borrowed */
} hf_payload;

/* What a program does to its payloads before a service gets them: compresses or encrypts them. Inputs, results, signals,
 * details and memos go through it, on their way out and in, in clients and workers alike; the store holds only what the
 * codec made. Search attributes and names do not go through it. Both functions get the bytes of a whole payload, with its
 * metadata, and return bytes that they own (hf_payload_copy). Encoded bytes must always decode to the same payload, also
 * when a workflow is replayed later. They run on the threads of fibers, so they must be short. At most 64 KiB
 * may be added to a payload; the bound of 2 MiB is on the plain bytes.
 *
 * A payload that cannot be decoded fails the call or the workflow task that needs it, which is tried again. */
typedef struct hf_codec {
    const char *encoding; /* of what it makes, such as "binary/zstd"; what has another encoding is not decoded */
    /* An empty `*ret_out` leaves the payload as it is. */
    hf_status (*encode)(void *state, hf_payload in, hf_payload *ret_out);
    hf_status (*decode)(void *state, hf_payload in, hf_payload *ret_out);
    void *state;
    bool with_failures; /* messages and stack traces of failures go through it, too; types do not */
} hf_codec;

/* A key with its value: of a memo, a search attribute or a header. An array of them ends with a NULL key:
 *
 *     hf_entry memo[] = {{"customer", hf_payload_of_json("\"ada\"")}, {NULL, hf_payload_none()}}; */
typedef struct hf_entry {
    const char *key; /* 1 to 1,000 bytes */
    hf_payload value;
} hf_entry;

/* A header that is about to go out, and a function that adds to it: header.h. */
typedef struct hf_header hf_header;
typedef hf_status (*hf_header_hook)(void *arg, hf_header *header);

HF_BEGIN_DECLS

/* A copy that the caller owns. Fails: HF_ERR_NOMEM; HF_ERR_TOO_BIG: `from` has more than 1 GiB; HF_ERR_MISUSE:
 * `from.len` is not 0 but `from.data` is NULL. Every call that takes a payload refuses such a one, and an activity
 * or workflow that returns it fails. */
HF_API HF_MUST_USE hf_status hf_payload_copy(hf_payload from, hf_payload *ret_payload);
/* A JSON text that the caller owns: return hf_payload_printf(ret_out, "{\"receipt\": %d}", number);
 * Fails: HF_ERR_NOMEM, HF_ERR_INVALID when the format cannot be followed. */
HF_API HF_MUST_USE hf_status hf_payload_printf(hf_payload *ret_payload, const char *format, ...) HF_PRINTF(2, 3);

/* Programs in other languages may send several arguments at once, and metadata beside the encoding. Such a list is one
 * hf_payload, whose data is the first of them; it is passed on as it came, with all of its payloads and metadata, as long
 * as `data`, `len` and `encoding` are not changed: as the input of an activity, as a result, by hf_payload_copy.
 *
 * How many payloads `in` consists of: usually 1; 0 if it is empty. */
HF_API size_t hf_payload_count(hf_payload in);
/* One of them, from 0 on, as a copy that the caller owns. Fails: HF_ERR_NOT_FOUND, HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_payload_nth(hf_payload in, size_t idx, hf_payload *ret_payload);
/* Several payloads as one, which the caller owns; at most 1,000. Fails: HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_payload_list(const hf_payload *items, size_t count, hf_payload *ret_payload);
/* The metadata of the first payload under this key, as bytes that the caller owns. Fails: HF_ERR_NOT_FOUND,
 * HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_payload_meta(hf_payload in, const char *key, hf_payload *ret_value);

/* Frees what is owned and clears it; a borrowed or empty one is only cleared. Accepts NULL. */
HF_API void hf_payload_free(hf_payload *payload);

/* A codec that compresses payloads of 1 KiB and more with zstd, unless they would grow. */
HF_API const hf_codec *hf_codec_zstd(void);

HF_END_DECLS

/* Borrowed views, for arguments. */
static inline hf_payload hf_payload_of_bytes(const void *data, size_t len)
{
    hf_payload payload;
    payload.data = data;
    payload.len = len;
    payload.encoding = HF_ENCODING_BYTES_TEXT;
    payload.owned = NULL;
    return payload;
}

static inline hf_payload hf_payload_of_json(const char *text)
{
    hf_payload payload = hf_payload_of_bytes(text, text != NULL ? __builtin_strlen(text) : 0);
    payload.encoding = text != NULL ? HF_ENCODING_JSON_TEXT : NULL;
    return payload;
}

static inline hf_payload hf_payload_none(void)
{
    return hf_payload_of_json(NULL);
}

/* HF_AUTO(hf_payload_free) hf_payload receipt = hf_payload_none(); */
static inline void hf_payload_free_auto(hf_payload *payload)
{
    hf_payload_free(payload);
}

#endif
