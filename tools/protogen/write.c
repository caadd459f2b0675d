/* Writes the header with structs and enums, and the source with their tables. */
#include "protogen/protogen.h"

#include <string.h>

static void write_member(FILE *out, const char *indent, const field *f)
{
    int place = scalar_of(f);
    if (f->is_list && f->of != NULL && !f->of->is_enum) {
        fprintf(out, "%shf_pb_%s_list %s;\n", indent, f->of->c, f->name);
    } else if (f->is_list) {
        fprintf(out, "%shf_pb_%s_list %s;\n", indent, place >= 0 ? SCALARS[place].list : "int32", f->name);
    } else if (f->of != NULL && !f->of->is_enum) {
        fprintf(out, "%s%s *%s;\n", indent, f->c, f->name);
    } else if (f->of != NULL) {
        fprintf(out, "%s%s %s; /* hf_pb_%s */\n", indent, f->c, f->name, f->of->c);
    } else {
        fprintf(out, "%s%s %s;\n", indent, f->c, f->name);
    }
}

/* The members of a oneof stand together, where the first of them is. */
static void write_oneof(FILE *out, const def *d, size_t first)
{
    const char *oneof = d->fields[first].oneof;
    for (size_t i = 0; i < first; i++) {
        if (d->fields[i].oneof != NULL && strcmp(d->fields[i].oneof, oneof) == 0) {
            return;
        }
    }
    fprintf(out, "    uint32_t %s_case; /* number of the one that is set; 0 = none */\n    union {\n", oneof);
    for (size_t i = first; i < d->field_count; i++) {
        if (d->fields[i].oneof != NULL && strcmp(d->fields[i].oneof, oneof) == 0) {
            write_member(out, "        ", &d->fields[i]);
        }
    }
    fprintf(out, "    };\n");
}

static void write_struct(FILE *out, const def *d)
{
    fprintf(out, "/* %s */\nstruct hf_pb_%s {\n", d->full, d->c);
    bool has_oneof = false;
    for (size_t i = 0; i < d->field_count; i++) {
        if (d->fields[i].oneof != NULL) {
            has_oneof = true;
            write_oneof(out, d, i);
        } else {
            write_member(out, "    ", &d->fields[i]);
        }
    }
    fprintf(out, "    hf_str unknown;\n};\n");
    if (has_oneof) {
        fprintf(out, "enum {\n");
        for (size_t i = 0; i < d->field_count; i++) {
            if (d->fields[i].oneof != NULL) {
                fprintf(out, "    HF_PB_%s_%s = %d,\n", upper(d->c), upper(d->fields[i].name), d->fields[i].number);
            }
        }
        fprintf(out, "};\n");
    }
    fprintf(out, "extern const hf_pb_type hf_pb_%s_type;\n\n", d->c);
}

void write_header(FILE *out)
{
    fprintf(out, "/* Made by tools/protogen from proto/. See wire/pb.h. */\n"
                 "#ifndef HF_PROTO_PB_H\n#define HF_PROTO_PB_H\n\n#include \"wire/pb.h\"\n\n");
    for (size_t i = 0; i < def_count; i++) {
        const def *d = defs[i];
        if (!d->is_enum) {
            continue;
        }
        fprintf(out, "/* %s */\nenum hf_pb_%s {\n", d->full, d->c);
        for (size_t k = 0; k < d->item_count; k++) {
            fprintf(out, "    HF_%s = %ld,\n", d->items[k].name, d->items[k].value);
        }
        fprintf(out, "};\n");
        if (has_typedef(d)) {
            fprintf(out, "typedef enum hf_pb_%s hf_pb_%s;\n", d->c, d->c);
        }
        fprintf(out, "extern const hf_pb_enum hf_pb_%s_enum;\n\n", d->c);
    }
    for (size_t i = 0; i < def_count; i++) {
        if (!defs[i]->is_enum) {
            const char *c = defs[i]->c;
            fprintf(out, "typedef struct hf_pb_%s hf_pb_%s;\n", c, c);
            fprintf(out, "typedef struct hf_pb_%s_list {\n    hf_pb_%s *items;\n    size_t count;\n} hf_pb_%s_list;\n",
                    c, c, c);
        }
    }
    fprintf(out, "\n");
    for (size_t i = 0; i < def_count; i++) {
        if (!defs[i]->is_enum) {
            write_struct(out, defs[i]);
        }
    }
    fprintf(out, "/* All messages, in the order of the files. */\nextern const hf_pb_type *const hf_pb_types[];\n"
                 "extern const size_t hf_pb_type_count;\n\n#endif\n");
}

static void write_enum_table(FILE *out, const def *d)
{
    char *prefix = text("%s_", upper(snake(d->simple)));
    size_t prefix_len = strlen(prefix);
    fprintf(out, "static const hf_pb_enumerator %s_items[] = {\n", d->c);
    for (size_t i = 0; i < d->item_count; i++) {
        const char *name = d->items[i].name;
        const char *brief = strncmp(name, prefix, prefix_len) == 0 ? name + prefix_len : name;
        fprintf(out, "    {%ld, \"%s\", \"%s\"},\n", d->items[i].value, name, camel(brief, true));
    }
    fprintf(out, "};\nconst hf_pb_enum hf_pb_%s_enum = {\"%s\", %s_items, %zu};\n\n", d->c, d->full, d->c,
            d->item_count);
}

static int wire_of(const field *f)
{
    int place = scalar_of(f);
    int wire = place >= 0 ? SCALARS[place].wire : strcmp(f->kind, "ENUM") == 0 ? 0 : 2;
    return f->is_list ? 2 : wire; /* lists of numbers are packed */
}

/* How many neighbours in the table belong to the same oneof. */
static size_t run_of(const def *d, size_t first)
{
    size_t run = 0;
    const char *oneof = d->fields[first].oneof;
    while (oneof != NULL && first + run < d->field_count && d->fields[first + run].oneof != NULL &&
           strcmp(d->fields[first + run].oneof, oneof) == 0) {
        run++;
    }
    return run;
}

/* The part of a member that tells whether it is present. */
static const char *probe_in(const field *f)
{
    if (f->is_list) {
        return " + sizeof(void *)"; /* the count */
    }
    if (strcmp(f->c, "hf_str") == 0) {
        return " + offsetof(hf_str, len)";
    }
    return strncmp(f->c, "hf_pb_", 6) == 0 && f->of == NULL ? " + offsetof(hf_pb_timestamp, has)" : "";
}

/* How many of the 64 bits that are read there do not belong to that part. */
static int probe_shift(const field *f)
{
    if (f->is_list || strcmp(f->c, "hf_str") == 0 || (f->of != NULL && !f->of->is_enum)) {
        return 0;
    }
    bool is_byte = strcmp(f->c, "bool") == 0 || (strncmp(f->c, "hf_pb_", 6) == 0 && f->of == NULL);
    bool is_short = strstr(f->c, "32") != NULL || strcmp(f->c, "float") == 0;
    return is_byte ? 56 : is_short ? 32 : 0;
}

/* hf_pb_put of a field. */
static const char *put_of(const field *f)
{
    static const struct {
        const char *kind, *put;
    } PUTS[] = {
        {"STRING", "STR"}, {"BYTES", "STR"},     {"INT64", "64"},       {"UINT64", "64"},     {"INT32", "32"},
        {"ENUM", "32"},    {"MESSAGE", "CHILD"}, {"TIMESTAMP", "TIME"}, {"DURATION", "TIME"},
    };
    for (size_t i = 0; i < sizeof PUTS / sizeof *PUTS && !f->is_list; i++) {
        if (strcmp(f->kind, PUTS[i].kind) == 0) {
            return PUTS[i].put;
        }
    }
    return f->is_list ? "LIST" : "NUMBER";
}

static void write_field_row(FILE *out, const def *d, size_t place, unsigned list_idx)
{
    const field *f = &d->fields[place];
    unsigned number = (unsigned)f->number << 3 | (unsigned)wire_of(f);
    unsigned tag = number < 0x80 ? number : ((number & 0x7f) | 0x80 | number >> 7 << 8);
    fprintf(
        out,
        "    {.number = %d, .tag = 0x%x, .tag_len = %d, .kind = HF_PB_%s, .put = HF_PB_PUT_%s, .shape = HF_PB_%s,\n",
        f->number, tag, number < 0x80 ? 1 : 2, f->kind, put_of(f),
        f->is_map          ? "MAP"
        : f->is_list       ? "LIST"
        : f->oneof != NULL ? "ONEOF"
                           : "SINGLE");
    fprintf(out, "     .offset = offsetof(hf_pb_%s, %s), .probe = offsetof(hf_pb_%s, ", d->c, f->name, d->c);
    if (f->oneof != NULL) {
        fprintf(out, "%s_case), .probe_shift = 32, .case_offset = offsetof(hf_pb_%s, %s_case), .run = %zu", f->oneof,
                d->c, f->oneof, run_of(d, place));
    } else {
        fprintf(out, "%s)%s, .probe_shift = %d", f->name, probe_in(f), probe_shift(f));
    }
    if (f->is_list) {
        fprintf(out, ", .list_idx = %u", list_idx);
    }
    if (f->of != NULL) {
        fprintf(out, ", .of.%s = &hf_pb_%s_%s", f->of->is_enum ? "set" : "type", f->of->c,
                f->of->is_enum ? "enum" : "type");
    }
    fprintf(out, "},\n");
}

static const char *look_of(const def *d)
{
    if (d->is_entry) {
        return "ENTRY";
    }
    if (strncmp(d->full, "google.protobuf.", 16) == 0) {
        if (strcmp(d->simple, "Any") == 0) {
            return "ANY";
        }
        if (strlen(d->simple) > 5 && strcmp(d->simple + strlen(d->simple) - 5, "Value") == 0 && d->field_count == 1) {
            return "WRAPPER";
        }
    }
    return "OBJECT";
}

static void write_index(FILE *out, const def *d)
{
    fprintf(out, "static const uint8_t %s_index[] = {", d->c);
    size_t place = 0;
    for (int number = 0; number <= d->fields[d->field_count - 1].number; number++) {
        bool is_there = number == d->fields[place].number;
        place += is_there;
        fprintf(out, "%s%zu,", number % 24 == 0 ? "\n    " : " ", is_there ? place : 0);
    }
    fprintf(out, "\n};\n");
}

static void write_table(FILE *out, const def *d)
{
    const char *c = d->c;
    if (d->field_count == 0) { /* the table exists although it is empty: pointers into it are compared */
        fprintf(out,
                "const hf_pb_type hf_pb_%s_type = {.name = \"%s\", .size = sizeof(hf_pb_%s),\n"
                "    .fields = &(const hf_pb_field){0}, .unknown_offset = offsetof(hf_pb_%s, unknown),\n"
                "    .look = HF_PB_LOOK_%s};\n\n",
                c, d->full, c, c, look_of(d));
        return;
    }
    unsigned list_idx = 0;
    fprintf(out, "static const hf_pb_field %s_fields[] = {\n", c);
    for (size_t i = 0; i < d->field_count; i++) {
        write_field_row(out, d, i, list_idx);
        list_idx += d->fields[i].is_list;
    }
    fprintf(out, "};\nstatic const hf_pb_name %s_names[] = {\n", c);
    for (size_t i = 0; i < d->field_count; i++) {
        fprintf(out, "    {\"%s\", \"%s\"},\n", d->fields[i].name, camel(d->fields[i].name, false));
    }
    fprintf(out, "};\n");
    write_index(out, d);
    fprintf(out,
            "const hf_pb_type hf_pb_%s_type = {.name = \"%s\", .fields = %s_fields, .names = %s_names,\n"
            "    .index = %s_index, .size = sizeof(hf_pb_%s), .unknown_offset = offsetof(hf_pb_%s, unknown),\n"
            "    .index_count = sizeof %s_index, .field_count = %zu, .look = HF_PB_LOOK_%s};\n\n",
            c, d->full, c, c, c, c, c, c, d->field_count, look_of(d));
}

void write_source(FILE *out)
{
    fprintf(out, "/* Made by tools/protogen from proto/. See wire/pb.h. */\n#include \"proto/pb.h\"\n\n"
                 "#include <stddef.h>\n\n");
    size_t messages = 0;
    for (size_t i = 0; i < def_count; i++) {
        messages += !defs[i]->is_enum;
        if (defs[i]->is_enum) {
            write_enum_table(out, defs[i]);
        } else {
            write_table(out, defs[i]);
        }
    }
    fprintf(out, "const hf_pb_type *const hf_pb_types[] = {\n");
    for (size_t i = 0; i < def_count; i++) {
        if (!defs[i]->is_enum) {
            fprintf(out, "    &hf_pb_%s_type,\n", defs[i]->c);
        }
    }
    fprintf(out, "};\nconst size_t hf_pb_type_count = %zu;\n", messages);
}
