/* See eras.h. */
#include "support/eras.h"

#include "base/base.h"
#include "support/support.h"

#include <stdio.h>
#include <unistd.h>

static const char *const SUFFIXES[] = {"", "-wal"};

static void file_name(const eras *e, int number, const char *suffix, char name[100])
{
    (void)snprintf(name, 100, "%s-%d-%d.db%s", e->name, (int)getpid(), number, suffix);
}

static void forget_files(const eras *e)
{
    for (size_t i = 0; i < HF_COUNT_OF(SUFFIXES); i++) {
        char name[100];
        file_name(e, e->number, SUFFIXES[i], name);
        (void)remove(name);
    }
}

/* Copies a file that may be missing. */
static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 16];
    FILE *in = fopen(from, "rb");
    FILE *out = in != NULL ? fopen(to, "wb") : NULL;
    size_t len = 0;
    while (out != NULL && (len = fread(bytes, 1, sizeof bytes, in)) > 0) {
        HF_CHECK(fwrite(bytes, 1, len, out) == len);
    }
    HF_CHECK(in == NULL || (out != NULL && fclose(out) == 0));
    if (in != NULL) {
        (void)fclose(in);
    }
}

hf_status eras_open(eras *e, bool in_memory)
{
    char name[100];
    char address[160];
    file_name(e, e->number, "", name);
    (void)snprintf(address, sizeof address, "sqlite:%s?durability=normal", name);
    return hf_open(in_memory ? "memory:" : address, &e->service);
}

void eras_kill(eras *e)
{
    e->is_ghost = true;
    for (size_t i = 0; i < HF_COUNT_OF(SUFFIXES); i++) {
        char from[100];
        char to[100];
        file_name(e, e->number, SUFFIXES[i], from);
        file_name(e, e->number + 1, SUFFIXES[i], to);
        copy_file(from, to);
    }
}

hf_status eras_next(eras *e)
{
    HF_TRY(hf_close(e->service));
    forget_files(e);
    e->number++;
    HF_TRY(eras_open(e, false));
    e->is_ghost = false;
    return HF_OK;
}

hf_status eras_close(eras *e)
{
    HF_TRY(hf_close(e->service));
    forget_files(e);
    return HF_OK;
}
