#include "base/status.h"

#include "base/op.h"

#include <holdfast/error.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *hf_status_name(hf_status status)
{
    static const struct {
        hf_status status;
        const char *name;
    } NAMES[] = {
#define ROW(name, number, passing, text) {name, #name},
        HF_STATUS_MAP(ROW)
#undef ROW
    };
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        if (NAMES[i].status == status) {
            return NAMES[i].name;
        }
    }
    return "HF_ERR_USER";
}

const char *hf_status_text(hf_status status)
{
    static const struct {
        hf_status status;
        const char *text;
    } TEXTS[] = {
#define ROW(name, number, passing, text) {name, text},
        HF_STATUS_MAP(ROW)
#undef ROW
    };
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        if (TEXTS[i].status == status) {
            return TEXTS[i].text;
        }
    }
    return "a status of the program's own";
}

bool hf_status_may_pass(hf_status status)
{
    enum { stays, passes };
    static const struct {
        hf_status status;
        int passing;
    } PASSING[] = {
#define ROW(name, number, passing, text) {name, passing},
        HF_STATUS_MAP(ROW)
#undef ROW
    };
    for (size_t i = 0; i < HF_COUNT_OF(PASSING); i++) {
        if (PASSING[i].status == status) {
            return PASSING[i].passing == passes;
        }
    }
    return false; /* a program's own */
}

#define USER_WORD "HF_ERR_USER+"

void hf_status_word(hf_status status, char *text, size_t capacity)
{
    if ((int)status >= HF_ERR_USER) {
        (void)snprintf(text, capacity, USER_WORD "%d", (int)status - HF_ERR_USER);
    } else {
        (void)snprintf(text, capacity, "%s", hf_status_name(status));
    }
}

bool hf_status_of_word(const char *word, size_t len, hf_status *ret_status)
{
    size_t at = sizeof USER_WORD - 1;
    int64_t number = 0;
    if (len <= at || len > at + 10 || memcmp(word, USER_WORD, at) != 0 || (word[at] == '0' && len > at + 1)) {
        return false;
    }
    for (; at < len; at++) {
        if (word[at] < '0' || word[at] > '9') {
            return false;
        }
        number = number * 10 + (word[at] - '0');
    }
    if (number > INT_MAX - HF_ERR_USER) {
        return false;
    }
    *ret_status = (hf_status)(HF_ERR_USER + number);
    return true;
}
