/* To include an example's source, unmodified, into a test: its main gets another name, and its
 * output is kept. */
#ifndef HF_TESTS_SIM_EXAMPLE_H
#define HF_TESTS_SIM_EXAMPLE_H

#include "support/support.h"

#include "base/rng.h"
#include "env/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int example_main(int argc, char **argv);

/* Output of the example since the last forget(). */
static char example_said[8192];
static size_t example_said_len;

static inline void example_forget(void)
{
    example_said_len = 0;
    example_said[0] = '\0';
}

static int example_printf(const char *format, ...) HF_PRINTF(1, 2);
static int example_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(example_said + example_said_len, sizeof example_said - example_said_len, format, args);
    va_end(args);
    example_said_len += len > 0 ? (size_t)len : 0;
    if (example_said_len >= sizeof example_said) {
        example_said_len = sizeof example_said - 1;
    }
    return len;
}

/* Which seeds are run twice, to see that they leave the same trace: the first fifty, then one in
 * nineteen (an odd number: faults go by even ones). */
static inline bool example_is_repeated(uint64_t seed)
{
    return seed <= 50 || seed % 19 == 0;
}

#undef printf
#define printf example_printf
#define main example_main

#endif
