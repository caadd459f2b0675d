/* Timestamps and durations as text, the way proto3's JSON writes them: "2024-02-29T12:00:00.500Z", "-1.500s". The
 * fraction has 0, 3, 6 or 9 digits. */
#ifndef HF_WIRE_TIME_TEXT_H
#define HF_WIRE_TIME_TEXT_H

#include "wire/pb.h"

#define HF_TIME_TEXT_LEN_MAX 40

/* Writes a text with a NUL; returns its length. 0: the value is out of range (years 1 to 9999, a fraction below a
 * second) or its parts have different signs. */
size_t hf_timestamp_format(hf_pb_timestamp at, char ret_text[HF_TIME_TEXT_LEN_MAX]);
size_t hf_duration_format(hf_pb_duration span, char ret_text[HF_TIME_TEXT_LEN_MAX]);

#endif
