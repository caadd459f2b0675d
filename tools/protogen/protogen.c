/* Turns .proto files into C: protogen <folder> <file.proto>... writes <folder>/proto/pb.h and <folder>/proto/pb.c.
 *
 * It reads the part of proto3 that proto/ is written in: package, message, enum, oneof, map, repeated, reserved and
 * comments. Imports and options are ignored: all files are given at once. src/wire/pb.h describes the output: a struct
 * and a table for each message, an enum and a table for each enum.
 *
 *     message HistoryEvent { ... }       struct hf_pb_history_event, hf_pb_history_event_type
 *     message Link { message Activity }  struct hf_pb_link_activity
 *     enum EventType { ... }             enum hf_pb_event_type, hf_pb_event_type_enum, HF_EVENT_TYPE_...
 *     map<string, bytes> metadata        a list of struct hf_pb_payload_metadata_entry
 *
 * Packages are not part of the names, so two definitions of the same name are an error. The program runs only for a
 * moment, during the build: it frees nothing, and anything unexpected ends it with a message. */
#include "protogen/protogen.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Small things ---------------------------------------------------------------------------------------------- */

const char *path = "";
int line;
def *defs[DEFS_MAX];
source files[FILES_MAX];
size_t file_count;
size_t def_count;

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", path, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *must(void *ptr)
{
    if (ptr == NULL) {
        die("out of memory");
    }
    return ptr;
}

char *text(const char *format, ...)
{
    char *result = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&result, format, args) < 0) {
        result = NULL;
    }
    va_end(args);
    return must(result);
}

char *snake(const char *camel_word)
{
    char *result = must(malloc(2 * strlen(camel_word) + 1));
    char *out = result;
    for (const char *c = camel_word; *c != '\0'; c++) {
        bool starts_word = isupper((unsigned char)*c) && c > camel_word &&
                           (!isupper((unsigned char)c[-1]) || islower((unsigned char)c[1]));
        if (starts_word && c[-1] != '_') {
            *out++ = '_';
        }
        *out++ = (char)tolower((unsigned char)*c);
    }
    *out = '\0';
    return result;
}

char *upper(const char *word)
{
    char *result = text("%s", word);
    for (char *c = result; *c != '\0'; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return result;
}

char *camel(const char *word, bool first_up)
{
    char *result = must(malloc(strlen(word) + 1));
    char *out = result;
    bool up = first_up;
    for (const char *c = word; *c != '\0'; c++) {
        if (*c == '_') {
            up = true;
            continue;
        }
        *out++ = (char)(up ? toupper((unsigned char)*c) : first_up ? tolower((unsigned char)*c) : *c);
        up = false;
    }
    *out = '\0';
    return result;
}

/* ---- Meaning --------------------------------------------------------------------------------------------------- */

const scalar SCALARS[SCALAR_COUNT] = {
    {"bool", "BOOL", "bool", "bool", 0},
    {"int32", "INT32", "int32_t", "int32", 0},
    {"int64", "INT64", "int64_t", "int64", 0},
    {"uint32", "UINT32", "uint32_t", "uint32", 0},
    {"uint64", "UINT64", "uint64_t", "uint64", 0},
    {"sint32", "SINT32", "int32_t", "int32", 0},
    {"sint64", "SINT64", "int64_t", "int64", 0},
    {"fixed32", "FIXED32", "uint32_t", "uint32", 5},
    {"fixed64", "FIXED64", "uint64_t", "uint64", 1},
    {"sfixed32", "SFIXED32", "int32_t", "int32", 5},
    {"sfixed64", "SFIXED64", "int64_t", "int64", 1},
    {"float", "FLOAT", "float", "float", 5},
    {"double", "DOUBLE", "double", "double", 1},
    {"string", "STRING", "hf_str", "str", 2},
    {"bytes", "BYTES", "hf_str", "str", 2},
};

static const def *find_def(const char *full)
{
    for (size_t i = 0; i < def_count; i++) {
        if (strcmp(defs[i]->full, full) == 0) {
            return defs[i];
        }
    }
    return NULL;
}

/* A name is looked up in the scope where it is used, then in the scopes around it. */
static const def *resolve(const char *scope, const char *name)
{
    if (name[0] == '.') {
        return find_def(name + 1);
    }
    char *around = text("%s", scope);
    for (;;) {
        const def *d = find_def(text("%s.%s", around, name));
        char *dot = strrchr(around, '.');
        if (d != NULL || dot == NULL) {
            return d != NULL ? d : find_def(name);
        }
        *dot = '\0';
    }
}

int scalar_of(const field *f)
{
    for (size_t i = 0; i < SCALAR_COUNT; i++) {
        if (strcmp(f->kind, SCALARS[i].kind) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool ends_with_type(const char *name, const char *type)
{
    return strcmp(name, type) == 0 || strcmp(name, text(".%s", type)) == 0;
}

static void settle_field(const def *d, field *f)
{
    for (size_t i = 0; i < SCALAR_COUNT; i++) {
        if (strcmp(f->type_name, SCALARS[i].name) == 0) {
            f->kind = SCALARS[i].kind;
            f->c = SCALARS[i].c;
            return;
        }
    }
    if (ends_with_type(f->type_name, "google.protobuf.Timestamp") ||
        ends_with_type(f->type_name, "google.protobuf.Duration")) {
        bool is_point = strstr(f->type_name, "Timestamp") != NULL;
        f->kind = is_point ? "TIMESTAMP" : "DURATION";
        f->c = is_point ? "hf_pb_timestamp" : "hf_pb_duration";
        if (f->is_list) {
            die("%s.%s: lists of times are not supported", d->full, f->name);
        }
        return;
    }
    f->of = resolve(d->full, f->type_name);
    if (f->of == NULL) {
        die("%s.%s: there is no %s", d->full, f->name, f->type_name);
    }
    f->kind = f->of->is_enum ? "ENUM" : "MESSAGE";
    f->c = f->of->is_enum ? "int32_t" : text("hf_pb_%s", f->of->c);
}

static int by_number(const void *a, const void *b)
{
    return ((const field *)a)->number - ((const field *)b)->number;
}

static int by_value(const void *a, const void *b)
{
    const enumerator *left = a;
    const enumerator *right = b;
    return left->value != right->value ? (left->value > right->value) - (left->value < right->value)
                                       : (left > right) - (left < right);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool has_typedef(const def *d)
{
    for (size_t i = 0; d->is_enum && i < def_count; i++) {
        if (!defs[i]->is_enum && strcmp(text("%s_type", defs[i]->c), d->c) == 0) {
            return false;
        }
    }
    return true;
}

/* No name of the generated C may appear twice. */
static void check_names(void)
{
    char **names = must(calloc(2 * def_count, sizeof *names));
    size_t count = 0;
    for (size_t i = 0; i < def_count; i++) {
        if (has_typedef(defs[i])) {
            names[count++] = defs[i]->c;
        }
        names[count++] = text("%s_%s", defs[i]->c, defs[i]->is_enum ? "enum" : "type");
    }
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            die("two definitions would be called hf_pb_%s", names[i]);
        }
    }
}

static void check_message(const def *d)
{
    size_t lists = 0;
    for (size_t i = 0; i < d->field_count; i++) {
        lists += d->fields[i].is_list;
        if (i > 0 && d->fields[i - 1].number == d->fields[i].number) {
            die("%s: number %d is used twice", d->full, d->fields[i].number);
        }
    }
    if (d->field_count > FIELDS_MAX || lists > LISTS_MAX) {
        die("%s has too many fields", d->full);
    }
}

static void settle(void)
{
    path = "all files";
    line = 0;
    check_names();
    for (size_t i = 0; i < def_count; i++) {
        def *d = defs[i];
        for (size_t k = 0; k < d->field_count; k++) {
            settle_field(d, &d->fields[k]);
        }
        if (d->field_count > 0) {
            qsort(d->fields, d->field_count, sizeof *d->fields, by_number);
        }
        if (d->item_count > 0) {
            qsort(d->items, d->item_count, sizeof *d->items, by_value);
        }
        check_message(d);
    }
}

/* ---- Writing --------------------------------------------------------------------------------------------------- */

static void write_file(const char *folder, const char *name, void (*write)(FILE *out))
{
    path = text("%s/proto/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (out == NULL) {
        die("%s", strerror(errno));
    }
    write(out);
    if (ferror(out) || fclose(out) != 0) {
        die("cannot be written");
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: protogen <folder> <file.proto>...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        read_file(argv[i]);
    }
    settle();
    write_file(argv[1], "pb.h", write_header);
    write_file(argv[1], "pb.c", write_source);
    write_file(argv[1], "files.c", write_descriptors);
    return 0;
}
