/* What --json prints: one value in one line. */
#ifndef HF_MAIN_REPORT_H
#define HF_MAIN_REPORT_H

#include "base/json.h"
#include "main/tool.h"

typedef struct hf_report {
    hf_buf text;
    hf_json writer;
} hf_report;

void hf_report_init(hf_report *report);
/* Prints the line, if it is wanted (--json) and the command has ended well enough for one: HF_EXIT_FINE or HF_EXIT_DAMAGED. Frees it. Returns `code`. */
int hf_report_end(hf_report *report, bool is_wanted, int code);

/* An object of strings: `pairs` has keys and values by turns, and a NULL at its end. */
void hf_put_object(const char *const *pairs);
/* For verbs that only say that it was done: with --json {"KEY": second word}. Returns `code`. */
int hf_put_done(const hf_tool_args *args, const char *key, int code);

/* A key and its text. */
void hf_put_key(hf_json *writer, const char *key, hf_str text);

#endif
