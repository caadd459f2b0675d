#include "wire/grpc.h"

#include <stdio.h>

hf_status hf_grpc_take(hf_op *op, hf_str bytes, size_t len_max, hf_grpc_frame *ret_frame)
{
    const unsigned char *head = (const unsigned char *)bytes.data;
    if (bytes.len >= 1 && head[0] > 1) {
        return hf_fail(op, HF_ERR_INVALID, "grpc: received a frame with the unknown flags %u", head[0]);
    }
    if (bytes.len < HF_GRPC_HEAD_LEN) {
        return HF_ERR_AGAIN;
    }
    size_t len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (len > len_max) {
        return hf_fail(op, HF_ERR_TOO_BIG, "grpc: received message larger than max (%zu vs. %zu)", len, len_max);
    }
    if (bytes.len - HF_GRPC_HEAD_LEN < len) {
        return HF_ERR_AGAIN;
    }
    ret_frame->is_compressed = head[0] == 1;
    ret_frame->message = hf_str_of_len(bytes.data + HF_GRPC_HEAD_LEN, len);
    ret_frame->rest = hf_str_of_len(bytes.data + HF_GRPC_HEAD_LEN + len, bytes.len - HF_GRPC_HEAD_LEN - len);
    hf_assert(ret_frame->rest.len < bytes.len); /* wire-W2: a frame takes at least its head */
    return HF_OK;
}

void hf_grpc_head(unsigned char *ret_head, bool is_compressed, uint32_t len)
{
    ret_head[0] = is_compressed ? 1 : 0;
    ret_head[1] = (unsigned char)(len >> 24);
    ret_head[2] = (unsigned char)(len >> 16);
    ret_head[3] = (unsigned char)(len >> 8);
    ret_head[4] = (unsigned char)len;
}

bool hf_grpc_timeout_parse(hf_str text, hf_span *ret_timeout)
{
    enum { DIGITS_MAX = 8 };
    int64_t number = 0;
    if (text.len < 2 || text.len > DIGITS_MAX + 1) {
        return false;
    }
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        number = number * 10 + (text.data[i] - '0');
    }
    int64_t unit = 0;
    switch (text.data[text.len - 1]) {
    case 'H':
        unit = INT64_C(3600000000000);
        break;
    case 'M':
        unit = INT64_C(60000000000);
        break;
    case 'S':
        unit = 1000000000;
        break;
    case 'm':
        unit = 1000000;
        break;
    case 'u':
        unit = 1000;
        break;
    case 'n':
        unit = 1;
        break;
    default:
        return false;
    }
    *ret_timeout = hf_span_times_(number, unit);
    hf_assert(ret_timeout->ns >= 0); /* wire-W2: eight digits of hours fit */
    return true;
}

void hf_grpc_message_put(hf_str text, hf_buf *out)
{
    static const char HEX[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte >= ' ' && byte <= '~' && byte != '%') {
            hf_buf_putc(out, (char)byte);
        } else {
            char escaped[3] = {'%', HEX[byte >> 4], HEX[byte & 15]};
            hf_buf_put(out, escaped, sizeof escaped);
        }
    }
}

void hf_grpc_timeout_format(hf_span timeout, char ret_text[HF_GRPC_TIMEOUT_LEN])
{
    static const struct {
        char name;
        int64_t ns;
    } UNITS[] = {{'n', 1},
                 {'u', 1000},
                 {'m', 1000000},
                 {'S', 1000000000},
                 {'M', INT64_C(60000000000)},
                 {'H', INT64_C(3600000000000)}};
    hf_assert(timeout.ns > 0);
    for (size_t i = 0; i < HF_COUNT_OF(UNITS); i++) {
        int64_t number = timeout.ns / UNITS[i].ns + (timeout.ns % UNITS[i].ns != 0 ? 1 : 0);
        if (number <= 99999999) {
            (void)snprintf(ret_text, HF_GRPC_TIMEOUT_LEN, "%d%c", (int)number, UNITS[i].name);
            return;
        }
    }
    hf_assert(false); /* wire-W2: 2^63 ns are 2.6 million hours */
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

void hf_grpc_message_parse(hf_str text, hf_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = text.data[i] == '%' && text.len - i > 2 ? digit_of(text.data[i + 1]) : -1;
        int low = high >= 0 ? digit_of(text.data[i + 2]) : -1;
        if (low >= 0) {
            hf_buf_putc(out, (char)(high << 4 | low));
            i += 2;
        } else {
            hf_buf_putc(out, text.data[i]);
        }
    }
}
