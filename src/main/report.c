#include "main/report.h"

#include <stdio.h>

void hf_report_init(hf_report *report)
{
    hf_buf_init(&report->text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&report->writer, &report->text);
}

int hf_report_end(hf_report *report, bool is_wanted, int code)
{
    bool is_printed = is_wanted && (code == HF_EXIT_FINE || code == HF_EXIT_DAMAGED);
    if (is_printed && hf_buf_status(&report->text) != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "no memory for the output");
    } else if (is_printed) {
        (void)printf("%s\n", hf_buf_text(&report->text));
    }
    hf_buf_deinit(&report->text);
    return code;
}

void hf_put_object(const char *const *pairs)
{
    hf_report report;
    hf_report_init(&report);
    hf_json_object(&report.writer);
    for (; *pairs != NULL; pairs += 2) {
        hf_json_key_string(&report.writer, pairs[0], pairs[1]);
    }
    hf_json_end(&report.writer);
    (void)hf_report_end(&report, true, HF_EXIT_FINE);
}

int hf_put_done(const hf_tool_args *args, const char *key, int code)
{
    if (args->json && code == HF_EXIT_FINE) {
        hf_put_object((const char *const[]){key, args->words[1], NULL});
    }
    return code;
}

void hf_put_key(hf_json *writer, const char *key, hf_str text)
{
    hf_json_key(writer, key);
    hf_json_string_len(writer, text.data, text.len);
}
