/* Reads .proto files into definitions: a lexer of one token, and a function for each construct. */
#include "protogen/protogen.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *at;               /* the rest of the file */
static char token[NAME_LEN_MAX + 1]; /* the current token; empty at the end of the file */

static void skip_space(void)
{
    for (;;) {
        if (*at == '\n') {
            line++;
            at++;
        } else if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            for (at += 2; *at != '\0' && !(at[0] == '*' && at[1] == '/'); at++) {
                line += *at == '\n';
            }
            at += *at != '\0' ? 2 : 0;
        } else {
            return;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static void next(void)
{
    skip_space();
    const char *start = at;
    if (*at == '"') {
        at += 1 + strcspn(at + 1, "\"\n");
        if (*at++ != '"') {
            die("a string has no end");
        }
    } else if (is_word(*at) || *at == '-') {
        do {
            at++;
        } while (is_word(*at));
    } else if (*at != '\0') {
        at++;
    }
    size_t len = (size_t)(at - start);
    if (len > NAME_LEN_MAX) {
        die("a word of %zu characters is too long", len);
    }
    memcpy(token, start, len);
    token[len] = '\0';
}

static bool is(const char *word)
{
    return strcmp(token, word) == 0;
}

static bool accept(const char *word)
{
    if (!is(word)) {
        return false;
    }
    next();
    return true;
}

static void expect(const char *word)
{
    if (!accept(word)) {
        die("'%s' instead of '%s'", token, word);
    }
}

static char *take_word(void)
{
    if (!is_word(token[0])) {
        die("'%s' instead of a name", token);
    }
    char *word = text("%s", token);
    next();
    return word;
}

static long take_number(void)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(token, &end, 0);
    if (end == token || *end != '\0' || errno != 0) {
        die("'%s' instead of a number", token);
    }
    next();
    return number;
}

/* Options, imports, reserved: skips to the semicolon, and over everything in braces. */
static void skip_statement(void)
{
    int depth = 0;
    while (depth > 0 || !is(";")) {
        depth += is("{");
        depth -= is("}");
        if (is("")) {
            die("the file ends in a statement");
        }
        next();
    }
    next();
}

/* A name, and everything in the braces behind it. */
static void skip_block(void)
{
    int depth = 0;
    do {
        if (is("")) {
            die("the file ends in a service");
        }
        depth += is("{") ? 1 : is("}") ? -1 : 0;
        next();
    } while (depth > 0 || is("{"));
}

static void skip_options(void)
{
    if (is("[")) {
        while (!is("]") && !is("")) {
            next();
        }
        expect("]");
    }
}

/* [is = "full.name.of.a.Message"], an option of ours; NULL = there is none. */
static char *take_is(void)
{
    if (!is("[")) {
        return NULL;
    }
    next();
    if (!accept("is")) {
        while (!is("]") && !is("")) {
            next();
        }
        expect("]");
        return NULL;
    }
    expect("=");
    if (token[0] != '"') {
        die("'%s' instead of a name in quotes", token);
    }
    char *name = text("%.*s", (int)strlen(token) - 2, token + 1);
    next();
    expect("]");
    return name;
}

static def *new_def(const char *scope, const char *c_scope, char *simple, bool is_enum)
{
    def *d = must(calloc(1, sizeof *d));
    d->is_enum = is_enum;
    d->file = file_count - 1;
    d->simple = simple;
    d->full = scope[0] != '\0' ? text("%s.%s", scope, simple) : simple;
    d->c = c_scope[0] != '\0' ? text("%s_%s", c_scope, snake(simple)) : snake(simple);
    if (def_count == DEFS_MAX) {
        die("more than %d messages and enums", DEFS_MAX);
    }
    defs[def_count++] = d;
    return d;
}

static field *add_field(def *d)
{
    d->fields = must(realloc(d->fields, (d->field_count + 1) * sizeof *d->fields));
    d->fields[d->field_count] = (field){0};
    return &d->fields[d->field_count++];
}

static void read_enum(const char *scope, const char *c_scope)
{
    def *d = new_def(scope, c_scope, take_word(), true);
    expect("{");
    while (!accept("}")) {
        if (is("option") || is("reserved")) {
            skip_statement();
            continue;
        }
        d->items = must(realloc(d->items, (d->item_count + 1) * sizeof *d->items));
        enumerator *item = &d->items[d->item_count++];
        item->name = take_word();
        expect("=");
        item->value = take_number();
        skip_options();
        expect(";");
    }
}

/* The entry of a map is a message with two fields. */
static char *make_entry(const def *owner, const char *name, char *key, char *value)
{
    def *entry = new_def(owner->full, owner->c, text("%sEntry", camel(name, false)), false);
    entry->c = text("%s_%s_entry", owner->c, name);
    entry->is_entry = true;
    *add_field(entry) = (field){.name = text("key"), .type_name = key, .number = 1};
    *add_field(entry) = (field){.name = text("value"), .type_name = value, .number = 2};
    return text(".%s", entry->full);
}

static void read_field(def *d, char *oneof)
{
    char *key = NULL;
    bool is_list = oneof == NULL && accept("repeated");
    char *type_name = take_word();
    if (strcmp(type_name, "map") == 0 && is("<")) {
        next();
        key = take_word();
        expect(",");
        type_name = take_word();
        expect(">");
    }
    char *name = take_word();
    expect("=");
    long number = take_number();
    if (number < 1 || number > NUMBER_MAX) {
        die("%s: numbers are 1 to %d", name, NUMBER_MAX);
    }
    char *as = take_is();
    expect(";");
    if (key != NULL) {
        type_name = make_entry(d, name, key, type_name);
    }
    *add_field(d) = (field){.name = name,
                            .type_name = type_name,
                            .number = (int)number,
                            .is_list = is_list || key != NULL,
                            .is_map = key != NULL,
                            .is = as,
                            .oneof = oneof};
}

static void read_message(const char *scope, const char *c_scope)
{
    def *d = new_def(scope, c_scope, take_word(), false);
    expect("{");
    while (!accept("}")) {
        if (is("option") || is("reserved")) {
            skip_statement();
        } else if (accept("message")) {
            read_message(d->full, d->c);
        } else if (accept("enum")) {
            read_enum(d->full, d->c);
        } else if (accept("oneof")) {
            char *oneof = take_word();
            expect("{");
            while (!accept("}")) {
                read_field(d, oneof);
            }
        } else {
            read_field(d, NULL);
        }
        while (accept(";")) {
        }
    }
}

static char *read_whole(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        die("cannot open %s: %s", name, strerror(errno));
    }
    char *content = NULL;
    size_t len = 0;
    size_t got = 0;
    do {
        content = must(realloc(content, len + 65536 + 1));
        got = fread(content + len, 1, 65536, file);
        len += got;
    } while (got > 0);
    fclose(file);
    content[len] = '\0';
    return content;
}

void read_file(const char *name)
{
    char *package = text("%s", "");
    path = name;
    line = 1;
    at = read_whole(name);
    const char *root = NULL; /* the last folder called proto */
    for (const char *hit = strstr(name, "/proto/"); hit != NULL; hit = strstr(hit + 1, "/proto/")) {
        root = hit + strlen("/proto/");
    }
    if (file_count == FILES_MAX) {
        die("more than %d files", FILES_MAX);
    }
    files[file_count++] = (source){.name = text("%s", root != NULL ? root : name), .package = package};
    next();
    while (!is("")) {
        if (accept("package")) {
            package = take_word();
            files[file_count - 1].package = package;
            expect(";");
        } else if (accept("message")) {
            read_message(package, "");
        } else if (accept("enum")) {
            read_enum(package, "");
        } else if (accept("service")) { /* its methods are in a table of their own: service/service.h */
            skip_block();
        } else if (is("syntax") || is("import") || is("option")) {
            skip_statement();
        } else {
            die("'%s' is not understood", token);
        }
        while (accept(";")) {
        }
    }
}
