/* What the files of this layer share: words of a filter, and values from them. */
#ifndef HF_WHERE_WHERE_PRIVATE_H
#define HF_WHERE_WHERE_PRIVATE_H

#include "where/where.h"

typedef enum hf_word_kind {
    HF_WORD_END,
    HF_WORD_NAME,   /* of an attribute, or a word of the language */
    HF_WORD_QUOTED, /* a name between backquotes */
    HF_WORD_TEXT,   /* between quotes */
    HF_WORD_NUMBER,
    HF_WORD_EQUAL,
    HF_WORD_NOT_EQUAL,
    HF_WORD_LESS,
    HF_WORD_LESS_EQUAL,
    HF_WORD_GREATER,
    HF_WORD_GREATER_EQUAL,
    HF_WORD_OPEN,
    HF_WORD_CLOSE,
    HF_WORD_COMMA
} hf_word_kind;

typedef struct hf_word {
    hf_word_kind kind;
    size_t at;   /* its first byte in the text */
    hf_str raw;  /* as it stands there */
    hf_str text; /* of a text or a quoted name: without quotes, in the arena; else the same as raw */
} hf_word;

typedef struct hf_reader {
    hf_str text;
    size_t at; /* behind the current word */
    hf_word word;
    hf_arena *arena;
    hf_op *op;
    size_t column; /* of the failure */
} hf_reader;

/* Fails with a sentence that names the place. */
hf_status hf_reader_fail(hf_reader *reader, size_t at, const char *format, ...) HF_PRINTF(3, 4);
/* Goes on to the next word. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_reader_next(hf_reader *reader);
/* Whether the current word is this one of the language, in capital letters here. */
bool hf_reader_is(const hf_reader *reader, const char *word);

/* The value that the current word says, for a test of this attribute. Fails: HF_ERR_INVALID. */
hf_status hf_value_of_word(hf_reader *reader, const hf_attr *attr, hf_attr_value *ret_value);

#endif
