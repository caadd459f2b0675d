/* Which function an address belongs to, for dumps and reports. Works for static functions too, as long as the program's
 * and libraries' files still have their symbol tables. */
#ifndef HF_ENV_SYMBOLS_H
#define HF_ENV_SYMBOLS_H

#include "base/base.h"

/* Writes the name of the function around `pc`, how far into it `pc` lies, and the file name of its module, each cut to
 * its capacity. False: no function is known; then `name` is empty, the offset counts from the module's load address,
 * and `module` is empty when there is none either.
 *
 * The first question about a module reads its file. May block for that; not for signal handlers. */
bool hf_symbol_of(const void *pc, char *name, size_t capacity, size_t *ret_offset, char *module,
                  size_t module_capacity);

#endif
