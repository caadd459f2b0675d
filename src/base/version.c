/* The version of the library that is linked. */
#include "base/base.h"

_Static_assert(sizeof HF_VERSION_TEXT > sizeof "0.0", "the version is set where the header has it");

const char *hf_version(void)
{
    return HF_VERSION_TEXT;
}
