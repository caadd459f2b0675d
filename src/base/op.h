/* hf_op: one operation. It carries the error record of a failure back up to the public call, which hands it to the
 * fiber (hf_error). A function that can fail in more than one way takes it as its first argument. */
#ifndef HF_BASE_OP_H
#define HF_BASE_OP_H

#include "base/base.h"
#include "base/limits.h"

typedef struct hf_op {
    hf_status status;                 /* of the record below; HF_OK = nothing failed */
    const char *where;                /* function that failed */
    char message[HF_MESSAGE_LEN_MAX]; /* for people */
} hf_op;

static inline void hf_op_init(hf_op *op)
{
    op->status = HF_OK;
    op->where = "";
    op->message[0] = '\0';
}

/* Records the failure and its message, returns `status`. */
#define hf_fail(op, status, ...) hf_fail_at((op), (status), __func__, __VA_ARGS__)
hf_status hf_fail_at(hf_op *op, hf_status status, const char *where, const char *format, ...) HF_PRINTF(4, 5);
/* The same from errno: maps it to a status and adds its text: "cannot bind tcp:...: Address already in use". */
#define hf_fail_errno(op, error, ...) hf_fail_errno_at((op), (error), __func__, __VA_ARGS__)
hf_status hf_fail_errno_at(hf_op *op, int error, const char *where, const char *format, ...) HF_PRINTF(4, 5);
/* The name of a status; for one of the program's own with its number: "HF_ERR_USER+7". Failures have it as their type. */
void hf_status_word(hf_status status, char *text, size_t capacity);
/* The status that such a name with a number stands for. False: it is another word. */
bool hf_status_of_word(const char *word, size_t len, hf_status *ret_status);
/* The status that stands for an errno value. */
hf_status hf_status_of_errno(int error);

#endif
