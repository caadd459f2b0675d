/* Names for addresses. dladdr knows exported functions only, and a program's own functions are seldom exported. So the
 * symbol table of each module's file is read once, when a name in that module is first asked for:
 *
 *     file:  .symtab (or .dynsym) + its strings  --read-->  table: functions sorted by address + strings, in memory
 *
 * A table belongs to a module, which is a load address and a name. Tables are kept for the life of the process. If a
 * module was unloaded, another one may have taken its place: then all tables are freed. */
#include "env/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 1 << 22, STRINGS_LEN_MAX = 1 << 28 }; /* larger tables are not read */

typedef struct function {
    uintptr_t value; /* address as linked */
    size_t len;      /* 0 = unknown: up to the next function */
    size_t name;     /* in the strings */
} function;

typedef struct table {
    struct table *next;
    uintptr_t bias; /* load address minus linked address */
    char *path;     /* as the loader names it; "" = the program */
    function *functions;
    size_t count;
    char *strings;
    size_t strings_len;
} table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static table *tables;
static unsigned long long unloads; /* as of the last look */

/* ---- Finding the module ------------------------------------------------------------------------------------------ */

typedef struct module {
    uintptr_t pc; /* in: the address that is looked for */
    uintptr_t bias;
    bool is_program;
    bool found;
    unsigned long long unloads;
    char path[512];
} module;

static int see_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    module *look = arg;
    look->unloads = info->dlpi_subs;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && look->pc >= from && look->pc - from < part->p_memsz) {
            look->found = true;
            look->bias = info->dlpi_addr;
            look->is_program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
            (void)snprintf(look->path, sizeof look->path, "%s", look->is_program ? "" : info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

static int see_static(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    uintptr_t address = *(const uintptr_t *)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz) {
            return 1;
        }
    }
    return 0;
}

bool hf_symbol_is_static(const void *address)
{
    uintptr_t number = (uintptr_t)address;
    return dl_iterate_phdr(see_static, &number) != 0;
}

/* ---- Reading a file ---------------------------------------------------------------------------------------------- */

typedef struct image {
    const unsigned char *bytes;
    size_t len;
} image;

/* A piece of the file, or NULL when the file does not have it all. */
static const void *piece(const image *file, uint64_t offset, uint64_t len)
{
    return offset <= file->len && len <= file->len - offset ? file->bytes + offset : NULL;
}

static bool is_function(const ElfW(Sym) * symbol)
{
    unsigned type = symbol->st_info & 0xf;
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
}

static int by_value(const void *left, const void *right)
{
    const function *a = left;
    const function *b = right;
    if (a->value != b->value) {
        return a->value < b->value ? -1 : 1;
    }
    return a->len != b->len ? (a->len < b->len ? -1 : 1) : 0; /* of several aliases the longest one is found */
}

static void copy_functions(table *into, const ElfW(Sym) * symbols, size_t count, const char *strings,
                           size_t strings_len)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        kept += is_function(&symbols[i]);
    }
    if (kept == 0 || kept > FUNCTIONS_MAX || strings_len == 0 || strings_len > STRINGS_LEN_MAX) {
        return;
    }
    into->functions = malloc(kept * sizeof(function));
    into->strings = malloc(strings_len);
    if (into->functions == NULL || into->strings == NULL) {
        return;
    }
    memcpy(into->strings, strings, strings_len);
    into->strings[strings_len - 1] = '\0';
    into->strings_len = strings_len;
    for (size_t i = 0; i < count; i++) {
        if (is_function(&symbols[i]) && symbols[i].st_name < strings_len) {
            into->functions[into->count++] = (function){symbols[i].st_value, symbols[i].st_size, symbols[i].st_name};
        }
    }
    hf_assert(into->count <= kept);
    qsort(into->functions, into->count, sizeof(function), by_value);
}

/* Reads the whole table if the file was not stripped, else only the exported functions. */
static void read_symbols(table *into, const image *file)
{
    const ElfW(Ehdr) *header = piece(file, 0, sizeof *header);
    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shoff % _Alignof(ElfW(Shdr)) != 0) {
        return;
    }
    const ElfW(Shdr) *sections = piece(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
    const ElfW(Shdr) *chosen = NULL;
    for (size_t i = 0; sections != NULL && i < header->e_shnum; i++) {
        if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && chosen == NULL)) {
            chosen = &sections[i];
        }
    }
    if (chosen == NULL || chosen->sh_link >= header->e_shnum || chosen->sh_offset % _Alignof(ElfW(Sym)) != 0) {
        return;
    }
    const ElfW(Shdr) *text = &sections[chosen->sh_link];
    const ElfW(Sym) *symbols = piece(file, chosen->sh_offset, chosen->sh_size);
    const char *strings = piece(file, text->sh_offset, text->sh_size);
    if (symbols != NULL && strings != NULL) {
        copy_functions(into, symbols, chosen->sh_size / sizeof *symbols, strings, text->sh_size);
    }
}

static void read_file(table *into, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat what;
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &what) == 0 && S_ISREG(what.st_mode) && what.st_size > 0) {
        size_t len = (size_t)what.st_size;
        void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            read_symbols(into, &(image){bytes, len});
            (void)munmap(bytes, len);
        }
    }
    (void)close(fd);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static void drop_tables(void)
{
    while (tables != NULL) {
        table *old = tables;
        tables = old->next;
        free(old->path);
        free(old->functions);
        free(old->strings);
        free(old);
    }
}

/* Under the lock. A module whose file has no symbols keeps an empty table, so that the file is not read again. */
static const table *table_of(const module *where)
{
    if (unloads != where->unloads) {
        drop_tables();
        unloads = where->unloads;
    }
    for (table *at = tables; at != NULL; at = at->next) {
        if (at->bias == where->bias && strcmp(at->path, where->path) == 0) {
            return at;
        }
    }
    table *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL || (fresh->path = strdup(where->path)) == NULL) {
        free(fresh);
        return NULL;
    }
    fresh->bias = where->bias;
    read_file(fresh, where->is_program ? "/proc/self/exe" : where->path);
    fresh->next = tables;
    tables = fresh;
    return fresh;
}

static const function *find_function(const table *in, uintptr_t value)
{
    size_t lo = 0;
    size_t hi = in->count;
    while (lo < hi) { /* the first beyond `value` */
        size_t middle = lo + (hi - lo) / 2;
        if (in->functions[middle].value <= value) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    if (lo == 0) {
        return NULL;
    }
    hf_assert(lo <= in->count && in->functions[lo - 1].value <= value);
    const function *at = &in->functions[lo - 1];
    return at->len == 0 || value - at->value < at->len ? at : NULL;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool find_in_table(const module *where, char *name, size_t capacity, size_t *ret_offset)
{
    (void)pthread_mutex_lock(&lock);
    const table *in = table_of(where);
    const function *at = in != NULL ? find_function(in, where->pc - where->bias) : NULL;
    if (at != NULL) {
        (void)snprintf(name, capacity, "%s", in->strings + at->name);
        *ret_offset = where->pc - where->bias - at->value;
    }
    (void)pthread_mutex_unlock(&lock);
    return at != NULL;
}

bool hf_symbol_of(const void *pc, char *name, size_t capacity, size_t *ret_offset, char *module_name,
                  size_t module_capacity)
{
    module where = {.pc = (uintptr_t)pc};
    name[0] = '\0';
    module_name[0] = '\0';
    *ret_offset = (uintptr_t)pc;
    (void)dl_iterate_phdr(see_module, &where);
    if (!where.found) {
        return false;
    }
    *ret_offset = where.pc - where.bias;
    if (where.is_program) {
        (void)snprintf(module_name, module_capacity, "%s", program_invocation_short_name);
    } else {
        (void)snprintf(module_name, module_capacity, "%s", last_part(where.path));
    }
    if (find_in_table(&where, name, capacity, ret_offset)) {
        return true;
    }
    Dl_info info; /* a module without a file of its own, such as the kernel's */
    if (dladdr(pc, &info) == 0 || info.dli_sname == NULL) {
        return false;
    }
    (void)snprintf(name, capacity, "%s", info.dli_sname);
    *ret_offset = (uintptr_t)pc - (uintptr_t)info.dli_saddr;
    return true;
}
