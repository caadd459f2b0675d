/* Writes descriptors: each file as the bytes of a google.protobuf.FileDescriptorProto, for the server's reflection. The numbers are those
 * of descriptor.proto. Imports are those that the file uses. */
#include "protogen/protogen.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that grow. */
typedef struct bytes {
    unsigned char *data;
    size_t len;
} bytes;

static void put(bytes *b, const void *data, size_t len)
{
    b->data = must(realloc(b->data, b->len + len + 1));
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

static void put_varint(bytes *b, unsigned long long value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(b, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_number(bytes *b, int number, long long value)
{
    put_varint(b, (unsigned long long)number << 3);
    put_varint(b, (unsigned long long)value);
}

static void put_bytes(bytes *b, int number, const void *data, size_t len)
{
    put_varint(b, (unsigned long long)number << 3 | 2);
    put_varint(b, len);
    put(b, data, len);
}

static void put_text(bytes *b, int number, const char *word)
{
    put_bytes(b, number, word, strlen(word));
}

/* Takes the content of `inner`. */
static void put_inner(bytes *b, int number, bytes inner)
{
    put_bytes(b, number, inner.data != NULL ? inner.data : (const unsigned char *)"", inner.len);
    free(inner.data);
}

/* ---- Fields ---------------------------------------------------------------------------------------------------- */

/* FieldDescriptorProto.Type */
static int type_number(const field *f)
{
    static const struct {
        const char *kind;
        int number;
    } TYPES[] = {
        {"DOUBLE", 1},     {"FLOAT", 2},     {"INT64", 3},   {"UINT64", 4},  {"INT32", 5},
        {"FIXED64", 6},    {"FIXED32", 7},   {"BOOL", 8},    {"STRING", 9},  {"MESSAGE", 11},
        {"TIMESTAMP", 11}, {"DURATION", 11}, {"BYTES", 12},  {"UINT32", 13}, {"ENUM", 14},
        {"SFIXED32", 15},  {"SFIXED64", 16}, {"SINT32", 17}, {"SINT64", 18},
    };
    if (f->is != NULL) {
        return 11;
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(f->kind, TYPES[i].kind) == 0) {
            return TYPES[i].number;
        }
    }
    die("%s: its kind has no number", f->name);
}

static const char *type_name(const field *f)
{
    if (f->is != NULL) {
        return f->is;
    }
    if (strcmp(f->kind, "TIMESTAMP") == 0) {
        return "google.protobuf.Timestamp";
    }
    if (strcmp(f->kind, "DURATION") == 0) {
        return "google.protobuf.Duration";
    }
    return f->of != NULL ? f->of->full : NULL;
}

/* The index of a oneof among those of the message; the number of all, if `name` is NULL. */
static int oneof_index(const def *d, const char *name, const char **ret_names)
{
    int count = 0;
    for (size_t i = 0; i < d->field_count; i++) {
        const char *oneof = d->fields[i].oneof;
        bool is_known = oneof == NULL;
        for (int k = 0; k < count && !is_known; k++) {
            is_known = strcmp(ret_names[k], oneof) == 0;
        }
        if (!is_known) {
            ret_names[count++] = oneof;
        }
    }
    for (int k = 0; name != NULL && k < count; k++) {
        if (strcmp(ret_names[k], name) == 0) {
            return k;
        }
    }
    return count;
}

static bytes field_of(const def *d, const field *f)
{
    bytes b = {0};
    const char *oneofs[FIELDS_MAX];
    const char *name = type_name(f);
    put_text(&b, 1, f->name);
    put_number(&b, 3, f->number);
    put_number(&b, 4, f->is_list ? 3 : 1);
    put_number(&b, 5, type_number(f));
    if (name != NULL) {
        put_text(&b, 6, text(".%s", name));
    }
    if (f->oneof != NULL) {
        put_number(&b, 9, oneof_index(d, f->oneof, oneofs));
    }
    put_text(&b, 10, camel(f->name, false));
    return b;
}

/* ---- Messages, enums, files -------------------------------------------------------------------------------------- */

static bool is_inside(const def *d, const char *scope)
{
    return strcmp(d->full, text("%s.%s", scope, d->simple)) == 0;
}

static bytes enum_of(const def *d)
{
    bytes b = {0};
    bool has_alias = false;
    put_text(&b, 1, d->simple);
    for (int zero_first = 1; zero_first >= 0; zero_first--) { /* the first value is 0, also where others are negative */
        for (size_t i = 0; i < d->item_count; i++) {
            if ((d->items[i].value == 0) == (zero_first == 1)) {
                bytes value = {0};
                put_text(&value, 1, d->items[i].name);
                put_number(&value, 2, d->items[i].value);
                put_inner(&b, 2, value);
            }
            has_alias |= i > 0 && d->items[i].value == d->items[i - 1].value;
        }
    }
    if (has_alias) {
        put_bytes(&b, 3, "\x10\x01", 2);
    }
    return b;
}

static bytes message_of(const def *d)
{
    bytes b = {0};
    const char *oneofs[FIELDS_MAX];
    put_text(&b, 1, d->simple);
    for (size_t i = 0; i < d->field_count; i++) {
        put_inner(&b, 2, field_of(d, &d->fields[i]));
    }
    for (size_t i = 0; i < def_count; i++) {
        if (is_inside(defs[i], d->full)) {
            put_inner(&b, defs[i]->is_enum ? 4 : 3, defs[i]->is_enum ? enum_of(defs[i]) : message_of(defs[i]));
        }
    }
    if (d->is_entry) {
        put_bytes(&b, 7, "\x38\x01", 2);
    }
    for (int i = 0, count = oneof_index(d, NULL, oneofs); i < count; i++) {
        bytes oneof = {0};
        put_text(&oneof, 1, oneofs[i]);
        put_inner(&b, 8, oneof);
    }
    return b;
}

/* The file that defines a type. */
static const char *file_with(const char *full)
{
    for (size_t i = 0; i < def_count; i++) {
        if (strcmp(defs[i]->full, full) == 0) {
            return files[defs[i]->file].name;
        }
    }
    if (strcmp(full, "google.protobuf.Timestamp") == 0) {
        return "google/protobuf/timestamp.proto";
    }
    if (strcmp(full, "google.protobuf.Duration") == 0) {
        return "google/protobuf/duration.proto";
    }
    die("there is no %s", full);
}

static void put_imports(bytes *b, size_t file)
{
    const char *done[64];
    size_t count = 0;
    for (size_t i = 0; i < def_count; i++) {
        const def *d = defs[i];
        for (size_t k = 0; d->file == file && k < d->field_count; k++) {
            const char *name = type_name(&d->fields[k]);
            const char *from = name != NULL ? file_with(name) : files[file].name;
            bool is_done = strcmp(from, files[file].name) == 0;
            for (size_t n = 0; n < count && !is_done; n++) {
                is_done = strcmp(done[n], from) == 0;
            }
            if (!is_done) {
                if (count == sizeof done / sizeof done[0]) {
                    die("%s uses too many files", files[file].name);
                }
                done[count++] = from;
                put_text(b, 3, from);
            }
        }
    }
}

static bytes file_of(size_t file)
{
    bytes b = {0};
    put_text(&b, 1, files[file].name);
    put_text(&b, 2, files[file].package);
    put_imports(&b, file);
    for (size_t i = 0; i < def_count; i++) {
        if (defs[i]->file == file && is_inside(defs[i], files[file].package)) {
            put_inner(&b, defs[i]->is_enum ? 5 : 4, defs[i]->is_enum ? enum_of(defs[i]) : message_of(defs[i]));
        }
    }
    put_text(&b, 12, "proto3");
    return b;
}

/* Timestamp and Duration have no file here: the tables know them by themselves. */
static bytes time_file(const char *simple, const char *name)
{
    bytes b = {0};
    bytes message = {0};
    static const struct {
        const char *name;
        int type;
    } FIELDS[] = {{"seconds", 3}, {"nanos", 5}};
    put_text(&message, 1, simple);
    for (int i = 0; i < 2; i++) {
        bytes f = {0};
        put_text(&f, 1, FIELDS[i].name);
        put_number(&f, 3, i + 1);
        put_number(&f, 4, 1);
        put_number(&f, 5, FIELDS[i].type);
        put_text(&f, 10, FIELDS[i].name);
        put_inner(&message, 2, f);
    }
    put_text(&b, 1, name);
    put_text(&b, 2, "google.protobuf");
    put_inner(&b, 4, message);
    put_text(&b, 12, "proto3");
    return b;
}

static void write_bytes(FILE *out, size_t number, bytes b)
{
    fprintf(out, "static const unsigned char file_%zu[] = {", number);
    for (size_t i = 0; i < b.len; i++) {
        fprintf(out, "%s%u,", i % 24 == 0 ? "\n    " : "", b.data[i]);
    }
    fprintf(out, "\n};\n");
    free(b.data);
}

void write_descriptors(FILE *out)
{
    static const char *const TIMES[][2] = {{"Timestamp", "google/protobuf/timestamp.proto"},
                                           {"Duration", "google/protobuf/duration.proto"}};
    fprintf(out, "/* Made by tools/protogen from proto/. See server/reflect.h. */\n#include \"server/reflect.h\"\n\n");
    for (size_t i = 0; i < file_count; i++) {
        write_bytes(out, i, file_of(i));
    }
    for (size_t i = 0; i < 2; i++) {
        write_bytes(out, file_count + i, time_file(TIMES[i][0], TIMES[i][1]));
    }
    fprintf(out, "\nconst hf_proto_file hf_proto_files[] = {\n");
    for (size_t i = 0; i < file_count + 2; i++) {
        fprintf(out, "    {\"%s\", file_%zu, sizeof file_%zu},\n",
                i < file_count ? files[i].name : TIMES[i - file_count][1], i, i);
    }
    fprintf(out, "};\nconst size_t hf_proto_file_count = %zu;\n\nconst hf_proto_symbol hf_proto_symbols[] = {\n",
            file_count + 2);
    for (size_t i = 0; i < def_count; i++) {
        if (!defs[i]->is_entry) {
            fprintf(out, "    {\"%s\", %zu},\n", defs[i]->full, defs[i]->file);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        fprintf(out, "    {\"google.protobuf.%s\", %zu},\n", TIMES[i][0], file_count + i);
    }
    fprintf(out, "};\nconst size_t hf_proto_symbol_count = sizeof hf_proto_symbols / sizeof hf_proto_symbols[0];\n");
}
