/* The words of a step of the rig's language (engine_rig.h). A word with '=' is an option; the others are counted by
 * place. A malformed step fails the test. */
#ifndef HF_TESTS_ENGINE_WORDS_H
#define HF_TESTS_ENGINE_WORDS_H

#include "service/service.h"

enum { HF_WORDS_MAX = 32 };

typedef struct hf_words {
    const char *items[HF_WORDS_MAX]; /* in the text that was cut */
    size_t count;
} hf_words;

/* Cuts the text into words, which point into it. */
void hf_words_cut(char *text, hf_words *ret_words);

const char *hf_words_option(const hf_words *w, const char *key); /* NULL = not there */
bool hf_words_has(const hf_words *w, const char *flag);
const char *hf_words_place(const hf_words *w, size_t index); /* must be there */
hf_str hf_words_str(const hf_words *w, const char *key, const char *otherwise);
int32_t hf_words_number(const hf_words *w, const char *key, int32_t otherwise);
hf_pb_duration hf_words_span(const hf_words *w, const char *key); /* none = zero */

hf_pb_payloads *hf_words_input(hf_arena *arena, const hf_words *w); /* input=BYTES, NULL = none */
hf_pb_header *hf_words_header(hf_arena *arena, const hf_words *w);  /* "header": so many bytes */
/* "initial", "retries", "never": a retry policy; NULL = none of them is there. */
hf_pb_retry_policy *hf_words_retry(hf_arena *arena, const hf_words *w);
/* "a:1+b:two": names and JSON values, a word becomes a string, nothing becomes a null. NULL text gives NULL. */
hf_pb_memo *hf_words_memo(hf_arena *arena, const char *text);
hf_pb_search_attributes *hf_words_attributes(hf_arena *arena, const char *text);
/* A text in which '_' stands for a space. */
hf_str hf_words_spaced(hf_arena *arena, const hf_words *w, const char *key);
hf_pb_task_queue *hf_words_queue(hf_arena *arena, hf_str name);
/* "timer t 5s, done": cuts the text. */
hf_pb_command_list hf_words_commands(hf_arena *arena, char *text);

#endif
