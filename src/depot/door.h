/* The socket of a depot's file, and what goes over it: a tool asks the program that has the file open (ADR 0038).
 *
 * A request is one line, "depot/1 VERB ARGUMENT...", whose arguments are numbers or bytes in hexadecimal. The answer is
 * a sequence of frames, the last of which says how it went:
 *
 *     length u32, kind u8, number u64, text length u32 (little endian), text, body
 *
 *     stats               FIGURE: text = name, number = value
 *     rows TABLE FROM     ROW: number and text = key, body = record; MORE if there are others behind them
 *     pending FROM        WRITE: number = sequence, text = key, body = hf_seen_write as a line; MORE
 *     retry N, drop N     nothing but the end */
#ifndef HF_DEPOT_DOOR_H
#define HF_DEPOT_DOOR_H

#include "base/buf.h"
#include "base/str.h"

#include <holdfast/depot.h>

#define HF_DOOR_HELLO "depot/1 "

enum {
    HF_DOOR_HEAD_LEN = 4 + 1 + 8 + 4,
    HF_DOOR_REQUEST_MAX = 4096,           /* bytes: a verb and a key in hexadecimal */
    HF_DOOR_PAGE_LEN = 1 << 20,           /* bytes of rows in one answer, and one row more */
    HF_DOOR_WRITES_MAX = 1000,            /* writes in one answer */
    HF_DOOR_FRAME_MAX = 64 * 1024 * 1024, /* bytes: a record of the largest size */
};

typedef enum hf_door_kind {
    HF_DOOR_END = '.', /* number = status, body = message */
    HF_DOOR_FIGURE = 'f',
    HF_DOOR_ROW = 'r',
    HF_DOOR_WRITE = 'w',
    HF_DOOR_MORE = 'm'
} hf_door_kind;

typedef struct hf_door_frame {
    hf_door_kind kind;
    uint64_t number;
    hf_str text;
    hf_str body;
} hf_door_frame;

void hf_door_put(hf_buf *out, hf_door_kind kind, uint64_t number, hf_str text, hf_str body);
/* Takes the first frame off `bytes`; its texts point into them. HF_ERR_AGAIN: it is not whole yet. HF_ERR_INVALID: it is
 * none. */
hf_status hf_door_take(hf_str *bytes, hf_door_frame *ret_frame);

#endif
