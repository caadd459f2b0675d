/* Text from outside: times and spans of JSON, addresses of stores and sockets, base64, run ids, names of kept rows. The first byte of
 * an input says what the rest is read as. A text that is accepted and written again is read as the same. */
#include "fuzz/fuzz.h"

#include "engine/core_private.h"
#include "env/sim/sim_private.h"
#include "ledger/kept.h"
#include "ledger/run_id.h"
#include "open/open.h"
#include "wire/base64.h"
#include "wire/text_read.h"
#include "wire/time_text.h"

static void read_timestamp(hf_str text)
{
    hf_pb_timestamp at;
    hf_pb_timestamp again;
    char written[HF_TIME_TEXT_LEN_MAX];
    if (!hf_timestamp_parse(text, &at)) {
        return;
    }
    size_t len = hf_timestamp_format(at, written);
    FUZZ_CHECK(len > 0 && len < sizeof written && strlen(written) == len, "%.*s has no text", HF_STR_ARGS(text));
    FUZZ_CHECK(hf_timestamp_parse(hf_str_of_len(written, len), &again), "%s cannot be read", written);
    FUZZ_CHECK(at.seconds == again.seconds && at.nanos == again.nanos && again.has, "%.*s became %s", HF_STR_ARGS(text),
               written);
    (void)hf_pb_timestamp_time(at);
}

static void read_duration(hf_str text)
{
    hf_pb_duration span;
    hf_pb_duration again;
    char written[HF_TIME_TEXT_LEN_MAX];
    if (!hf_duration_parse(text, &span)) {
        return;
    }
    size_t len = hf_duration_format(span, written);
    FUZZ_CHECK(len > 0 && len < sizeof written && strlen(written) == len, "%.*s has no text", HF_STR_ARGS(text));
    FUZZ_CHECK(hf_duration_parse(hf_str_of_len(written, len), &again), "%s cannot be read", written);
    FUZZ_CHECK(span.seconds == again.seconds && span.nanos == again.nanos && again.has, "%.*s became %s",
               HF_STR_ARGS(text), written);
    (void)hf_pb_duration_span(span);
}

/* Numbers that need not come from a text: what has a text is what it says. */
static void write_times(hf_str bytes)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    char written[HF_TIME_TEXT_LEN_MAX];
    if (bytes.len < sizeof seconds + sizeof nanos) {
        return;
    }
    memcpy(&seconds, bytes.data, sizeof seconds);
    memcpy(&nanos, bytes.data + sizeof seconds, sizeof nanos);
    hf_pb_timestamp at = {seconds, nanos, true};
    hf_pb_duration span = {seconds, nanos, true};
    size_t len = hf_timestamp_format(at, written);
    FUZZ_CHECK(len == 0 || hf_timestamp_parse(hf_str_of_len(written, len), &at), "%s cannot be read", written);
    FUZZ_CHECK(at.seconds == seconds && at.nanos == nanos, "%s is another time", written);
    len = hf_duration_format(span, written);
    FUZZ_CHECK(len == 0 || hf_duration_parse(hf_str_of_len(written, len), &span), "%s cannot be read", written);
    FUZZ_CHECK(span.seconds == seconds && span.nanos == nanos, "%s is another span", written);
    (void)hf_pb_timestamp_time(at);
    (void)hf_pb_duration_span(span);
}

static void read_place(const char *address)
{
    hf_op op;
    hf_op_init(&op);
    hf_service_address place;
    if (hf_service_address_parse(&op, address, &place) != HF_OK) {
        FUZZ_CHECK(op.status == HF_ERR_INVALID && op.message[0] != '\0', "refused without a sentence");
        return;
    }
    FUZZ_CHECK(memchr(place.path, '\0', sizeof place.path) != NULL, "a path without an end");
    bool has_file = place.scheme == HF_SCHEME_SQLITE || place.scheme == HF_SCHEME_OWNER;
    FUZZ_CHECK(has_file == (place.path[0] != '\0'), "a path where none is due, or none");
    hf_shares shares = hf_service_address_shares(&place);
    FUZZ_CHECK(shares.cache + shares.state <= place.mem || place.mem == 0, "shares beyond the whole");
    char address_of_socket[HF_PATH_LEN_MAX];
    char name[HF_PATH_LEN_MAX];
    hf_beside_socket(place.path, address_of_socket);
    (void)hf_beside(place.path, "-sock", name);
}

static void read_socket_address(const char *text)
{
    hf_op op;
    hf_op_init(&op);
    hf_sim_address address;
    hf_sim_address again;
    char written[HF_ADDRESS_LEN_MAX];
    if (hf_sim_address_parse(&op, text, &address) != HF_OK) {
        return;
    }
    hf_sim_address_format(&address, written);
    FUZZ_CHECK(hf_sim_address_parse(&op, written, &again) == HF_OK, "%s cannot be read", written);
    FUZZ_CHECK(strcmp(address.host, again.host) == 0 && address.port == again.port, "%s became %s", text, written);
}

static void read_base64(hf_str text)
{
    fuzz_memory memory = {0};
    hf_arena arena;
    hf_buf written;
    hf_arena_init(&arena, fuzz_heap(&memory));
    hf_buf_init(&written, fuzz_heap(&memory), SIZE_MAX / 4);
    hf_str bytes = {0};
    hf_str again = {0};
    if (hf_base64_decode(text, &arena, &bytes) == HF_OK) {
        hf_base64_encode(bytes, &written);
        FUZZ_CHECK(hf_base64_decode(hf_str_of_len(written.data, written.len), &arena, &again) == HF_OK,
                   "what was written cannot be read");
        FUZZ_CHECK(hf_str_equal(bytes, again), "other bytes");
    }
    hf_buf_deinit(&written);
    hf_arena_deinit(&arena);
    fuzz_memory_check(&memory, 16 * text.len + 65536);
}

static void read_ids(hf_str text)
{
    static const unsigned char KEY[HF_SIPHASH_KEY_LEN] = "sixteen bytes ..";
    (void)hf_run_id_number(KEY, text);
    hf_row row = {.key = {.text = text}};
    int64_t run = hf_kept_run(&row);
    FUZZ_CHECK(run >= 0 && run < INT64_MAX, "run %lld", (long long)run);
    hf_str rest = text;
    hf_name_entry entry;
    while (hf_names_next(&rest, &entry)) {
        FUZZ_CHECK(entry.hash >= 0 && entry.run > 0, "a name that is none");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    hf_str bytes = hf_str_of_len(data + 1, size - 1);
    char *text = malloc(bytes.len + 1);
    memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    char *exact = fuzz_copy(bytes);
    bytes.data = exact;
    switch (data[0] % 7) {
    case 0:
        read_timestamp(bytes);
        break;
    case 1:
        read_duration(bytes);
        break;
    case 2:
        write_times(bytes);
        break;
    case 3:
        read_place(text);
        break;
    case 4:
        read_socket_address(text);
        break;
    case 5:
        read_base64(bytes);
        break;
    default:
        read_ids(bytes);
        break;
    }
    free(exact);
    free(text);
    return 0;
}
