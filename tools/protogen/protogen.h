/* Shared by the parts of protogen: the definitions that were read, and small helpers for text. */
#ifndef PROTOGEN_PROTOGEN_H
#define PROTOGEN_PROTOGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NAME_LEN_MAX 256 /* bytes of a full name */
#define NUMBER_MAX 2047  /* field numbers: a tag has at most two bytes, and tables are indexed by them */
#define FIELDS_MAX 254   /* fields of a message: an index is a byte */
#define LISTS_MAX 64     /* repeated fields of a message: the decoder has a bit for each */
#define DEFS_MAX 4096    /* messages and enums in all */

typedef struct def def;

typedef struct field {
    char *name;
    char *type_name; /* as written */
    int number;
    bool is_list; /* repeated, or a map */
    bool is_map;
    char *is;         /* of bytes: the message that they are the encoding of; NULL = none */
    char *oneof;      /* name of the oneof that it is in; NULL = none */
    const char *kind; /* "STRING": what follows HF_PB_ */
    const char *c;    /* its C type, or that of an element */
    const def *of;    /* message or enum that it refers to */
} field;

typedef struct enumerator {
    char *name;
    long value;
} enumerator;

/* A message or an enum. */
struct def {
    bool is_enum;
    bool is_entry; /* made up for a map */
    size_t file;   /* index of its file */
    char *full;    /* "temporal.api.common.v1.Link.Activity" */
    char *simple;  /* "Activity" */
    char *c;       /* "link_activity" */
    field *fields; /* of a message, in the order written; by number once all is read */
    size_t field_count;
    enumerator *items; /* of an enum */
    size_t item_count;
};

/* A type that needs no definition. */
typedef struct scalar {
    const char *name; /* in a .proto */
    const char *kind;
    const char *c;    /* type of the member */
    const char *list; /* type of a list */
    int wire;         /* wire type of one value */
} scalar;
#define SCALAR_COUNT 15
extern const scalar SCALARS[SCALAR_COUNT];

/* A file that was read. */
typedef struct source {
    char *name; /* "temporal/api/common/v1/message.proto" */
    char *package;
} source;
#define FILES_MAX 100
extern source files[FILES_MAX];
extern size_t file_count;

extern def *defs[DEFS_MAX]; /* all definitions, in the order of the files */
extern size_t def_count;
extern const char *path; /* the current file, for messages */
extern int line;         /* the current line */

/* Ends the program with a message. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Ends the program when out of memory. */
void *must(void *ptr);
/* A new string; never freed. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "MacOSPlatform" to "mac_os_platform". */
char *snake(const char *camel_word);
char *upper(const char *word);
/* "activity_id" to "activityId"; with `first_up` and all else lowered, "TIMER_STARTED" to "TimerStarted". */
char *camel(const char *word, bool first_up);

/* Adds the definitions of a file. */
void read_file(const char *name);
/* The index of a field's type in SCALARS; -1 = it is not a scalar. */
int scalar_of(const field *f);
/* Whether an enum gets a typedef: not when it would be called like the table of a message (CommandType and Command). */
bool has_typedef(const def *d);
void write_header(FILE *out);
void write_source(FILE *out);
void write_descriptors(FILE *out);

#endif
