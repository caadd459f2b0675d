/* JSON by path. The first byte of an input is the length of a path, which follows; the rest is the text. What is found is JSON
 * itself, and is found again in what a copy of it says; other readers agree on what is JSON (jansson, in codec.c). */
#include "fuzz/fuzz.h"

#include "base/env.h"
#include "wire/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char path[256];
    size_t path_len = len > 0 ? data[0] : 0;
    if (len < 1 + path_len) {
        return 0;
    }
    memcpy(path, data + 1, path_len);
    path[path_len] = '\0';
    hf_payload in = hf_payload_of_bytes(data + 1 + path_len, len - 1 - path_len);
    in.encoding = HF_ENCODING_JSON_TEXT;
    hf_json_kind kind = HF_KIND_MISSING;
    hf_status status = hf_json_get_kind(in, path, &kind);
    FUZZ_CHECK(status == HF_OK || (status == HF_ERR_INVALID && hf_error_text()[0] != '\0'), "%s", hf_error_text());
    hf_payload view = hf_payload_none();
    hf_status seen = hf_json_get_view(in, path, &view);
    FUZZ_CHECK((seen == HF_OK) == (status == HF_OK && kind != HF_KIND_MISSING), "%s", hf_error_text());
    if (seen != HF_OK) {
        return 0;
    }
    hf_json_kind again = HF_KIND_MISSING;
    FUZZ_CHECK((const uint8_t *)view.data >= data && view.len > 0 &&
                   (const uint8_t *)view.data + view.len <= data + len,
               "a view outside of the text");
    FUZZ_CHECK(hf_json_get_kind(view, "", &again) == HF_OK && again == kind, "a view of another kind: %d, not %d",
               (int)again, (int)kind);
    static char text[1 << 16];
    int64_t number = 0;
    double real = 0;
    bool flag = false;
    size_t count = 0;
    FUZZ_CHECK(kind == HF_KIND_TEXT || hf_json_get_text(in, path, sizeof text, text) == HF_ERR_INVALID, "no text");
    FUZZ_CHECK(hf_json_get_int(in, path, &number) != HF_OK || kind == HF_KIND_NUMBER, "no number");
    FUZZ_CHECK(hf_json_get_real(in, path, &real) != HF_OK || kind == HF_KIND_NUMBER, "no number");
    FUZZ_CHECK((hf_json_get_bool(in, path, &flag) == HF_OK) == (kind == HF_KIND_BOOL), "no boolean");
    FUZZ_CHECK((hf_json_get_count(in, path, &count) == HF_OK) == (kind == HF_KIND_ARRAY || kind == HF_KIND_OBJECT),
               "no container");
    return 0;
}
