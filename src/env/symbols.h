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

/* Whether the address lies in the program or in one of its libraries, where constants and static variables are: such
 * memory is never freed. Stacks, the heap and thread-local variables are elsewhere. Takes the loader's lock for a
 * moment. */
bool hf_symbol_is_static(const void *address);

#endif
