/* What mutate.c asks of a target. */
#ifndef HF_TESTS_FUZZ_MUTATE_H
#define HF_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this input is fields of a message, behind `*ret_head` bytes of another kind. */
bool fuzz_is_message(const uint8_t *data, size_t size, size_t *ret_head);

#endif
