/* hf_where: the filter language of lists and counts, as a tree, and one evaluator over a row of attributes. No I/O, no clock: a text
 * and the names of attributes go in, a tree comes out; the tree and a row go in, a yes or no comes out.
 *
 *     filter     [condition] [GROUP BY ExecutionStatus] [ORDER BY name [ASC | DESC], ...]
 *     condition  condition OR condition | condition AND condition | NOT condition | ( condition ) | test
 *     test       name = | != | <> | < | <= | > | >= value
 *                name [NOT] IN ( value, ... )
 *                name [NOT] BETWEEN value AND value          both ends belong to it
 *                name [NOT] STARTS_WITH value
 *                name IS [NOT] NULL
 *     name       WorkflowId, or `any name` between backquotes
 *     value      'text' or "text" (a quote is doubled, or has a backslash before it), 12, -1.5, 1e3, true, false
 *
 * Words of the language are written in any case, names of attributes exactly. NOT binds more closely than AND, AND than OR.
 *
 * What a value may be depends on the type of its attribute:
 *
 *     Keyword                 a text; compared by its bytes
 *     KeywordList             a text; = says that the list has it. Only = != IN and NULL
 *     Text                    a text; = says that one of its words is a word of the attribute. Only = != and NULL
 *     Int, Double, Bool       a number, true or false. Bool: only = != and NULL
 *     Datetime                '2024-02-29T12:00:00.5Z', with any offset, or nanoseconds since 1970
 *     ExecutionStatus         'Running', 'WORKFLOW_EXECUTION_STATUS_RUNNING' or its number. Only = != IN and NULL
 *     ExecutionDuration       '1h30m', '01:30:00' or nanoseconds
 *
 * where-F1  A test of an attribute that a row does not have is false, and its opposite (!=, NOT IN, NOT ...) is true, as on a Temporal
 *     server with Elasticsearch. There is no third value.
 * where-F2  Parsing takes time proportional to the text, which has at most HF_WHERE_LEN_MAX bytes; a tree is at most HF_WHERE_DEPTH_MAX
 *     deep, so neither parsing nor evaluating needs more stack than that.
 * where-F3  Sort keys of two rows compare (as bytes) like the rows do by ORDER BY; rows without an attribute come last, up and down.
 * where-F4  Rows of which only a summary is known are left out only if none of them fits. */
#ifndef HF_WHERE_WHERE_H
#define HF_WHERE_WHERE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/op.h"
#include "base/str.h"

#define HF_WHERE_ORDER_MAX 8       /* attributes of ORDER BY */
#define HF_WHERE_TEXT_LEN_MAX 4096 /* bytes of a value: longer than those of any attribute */

/* The first seven are Temporal's IndexedValueType. */
typedef enum hf_attr_type {
    HF_ATTR_NONE,
    HF_ATTR_TEXT,
    HF_ATTR_KEYWORD,
    HF_ATTR_INT,
    HF_ATTR_DOUBLE,
    HF_ATTR_BOOL,
    HF_ATTR_DATETIME,
    HF_ATTR_KEYWORD_LIST,
    HF_ATTR_STATUS,  /* of ExecutionStatus */
    HF_ATTR_DURATION /* of ExecutionDuration */
} hf_attr_type;
#define HF_ATTR_TYPE_LAST HF_ATTR_KEYWORD_LIST /* of those that a user's attribute may have */

/* "KeywordList". */
const char *hf_attr_type_name(hf_attr_type type);
/* The type of that name, in any case; HF_ATTR_NONE: there is none that a user's attribute may have. */
hf_attr_type hf_attr_type_of_name(hf_str name);

/* Attributes that every run has, or may have. */
typedef enum hf_attr_id {
    HF_ATTR_WORKFLOW_ID,
    HF_ATTR_RUN_ID,
    HF_ATTR_WORKFLOW_TYPE,
    HF_ATTR_EXECUTION_STATUS,
    HF_ATTR_TASK_QUEUE,
    HF_ATTR_START_TIME,
    HF_ATTR_EXECUTION_TIME,
    HF_ATTR_CLOSE_TIME,
    HF_ATTR_EXECUTION_DURATION,
    HF_ATTR_HISTORY_LENGTH,
    HF_ATTR_HISTORY_SIZE_BYTES,
    HF_ATTR_STATE_TRANSITION_COUNT,
    HF_ATTR_PARENT_WORKFLOW_ID,
    HF_ATTR_PARENT_RUN_ID,
    HF_ATTR_ROOT_WORKFLOW_ID,
    HF_ATTR_ROOT_RUN_ID,
    HF_ATTR_SYSTEM_COUNT,
    HF_ATTR_CUSTOM = HF_ATTR_SYSTEM_COUNT /* any other one: it is found by its name among the run's search attributes */
} hf_attr_id;

typedef struct hf_attr {
    hf_attr_id id;
    hf_attr_type type;
    hf_str name;
} hf_attr;

/* As IndexedValueType: a status is a Keyword, a duration an Int. */
int32_t hf_attr_indexed_type(hf_attr_type type);

/* An attribute that every store knows: those above, and the ones that Temporal predefines, which have the id HF_ATTR_CUSTOM. False: there is
 * none of that name. */
bool hf_attr_known(hf_str name, hf_attr *ret_attr);
/* The n-th of them; NULL behind the last. The first HF_ATTR_SYSTEM_COUNT are in the order of their ids. */
const hf_attr *hf_attr_known_at(size_t n);

/* The value of an attribute. Times, durations (ns), numbers, truth and status are `number`. */
typedef struct hf_attr_value {
    bool is_set; /* the row has the attribute */
    int64_t number;
    double real;         /* of Double */
    hf_str text;         /* of Keyword and Text */
    const hf_str *items; /* of KeywordList */
    size_t item_count;
} hf_attr_value;

/* Finds a custom attribute. False: there is none of that name. */
typedef bool hf_where_find(const void *state, hf_str name, hf_attr_type *ret_type);
/* The value of an attribute of a row. `ret_value` is cleared. */
typedef void hf_where_get(const void *row, const hf_attr *attr, hf_attr_value *ret_value);

typedef enum hf_where_kind {
    HF_WHERE_AND,
    HF_WHERE_OR,
    HF_WHERE_NOT,
    HF_WHERE_EQUAL,
    HF_WHERE_LESS,
    HF_WHERE_LESS_EQUAL,
    HF_WHERE_GREATER,
    HF_WHERE_GREATER_EQUAL,
    HF_WHERE_IN,
    HF_WHERE_BETWEEN,
    HF_WHERE_STARTS_WITH,
    HF_WHERE_NULL
} hf_where_kind;

typedef struct hf_where_node hf_where_node;
struct hf_where_node {
    hf_where_kind kind;
    const hf_attr *attr;         /* of a test */
    const hf_attr_value *values; /* of a test: one, of IN several, of BETWEEN two */
    size_t value_count;
    const hf_where_node *first; /* of AND, OR, NOT: the first part ... */
    const hf_where_node *next;  /* ... and the next part of the same parent */
};

typedef struct hf_where_order {
    const hf_attr *attr;
    bool is_down;
} hf_where_order;

/* A filter. It lies in the arena that hf_where_parse got, with copies of all texts. */
typedef struct hf_where {
    const hf_where_node *root; /* NULL = every row fits */
    hf_where_order order[HF_WHERE_ORDER_MAX];
    size_t order_count;
    bool is_grouped; /* GROUP BY ExecutionStatus */
} hf_where;

/* What a caller can do with. */
enum { HF_WHERE_MAY_ORDER = 1, HF_WHERE_MAY_GROUP = 2 };

/* Parses a filter; an empty one fits every row. `find` may be NULL. Fails: HF_ERR_INVALID with a sentence that names the column, counted
 * in bytes from 1, which `*ret_column` gets as well (0 = of the whole text; may be NULL); HF_ERR_NOMEM. */
hf_status hf_where_parse(hf_op *op, hf_str text, unsigned may, hf_where_find *find, const void *state, hf_arena *arena,
                         hf_where *ret_where, size_t *ret_column);

/* Whether a row fits. */
bool hf_where_fits(const hf_where *where, hf_where_get *get, const void *row);

/* If every row that fits has this text as the value of this Keyword attribute (it is one side of the ANDs at the top): that text. */
bool hf_where_pins(const hf_where *where, hf_attr_id id, hf_str *ret_text);
/* If rows with this status cannot fit, by the tests of ExecutionStatus that are one side of the ANDs at the top: false. */
bool hf_where_may_have_status(const hf_where *where, int32_t status);

/* What a summary of many rows tells of their attributes. */
typedef struct hf_where_bounds {
    /* HF_BIT of each status that a row has; every row has one. */
    uint32_t (*statuses)(const void *state);
    /* True: every row has this attribute, and its number is one of these. False: not known. */
    bool (*range)(const void *state, const hf_attr *attr, int64_t *ret_least, int64_t *ret_greatest);
    /* Whether a row may have this value of an attribute: as `=` compares them. True: perhaps. */
    bool (*may_have)(const void *state, const hf_attr *attr, const hf_attr_value *value);
} hf_where_bounds;

/* Whether one of those rows may fit. where-F4: false only if none of them does. */
bool hf_where_may_fit(const hf_where *where, const hf_where_bounds *bounds, const void *state);
/* Whether a filter tests nothing but ExecutionStatus, or nothing at all; and whether rows with this status fit such a filter. */
bool hf_where_is_of_status(const hf_where *where);
bool hf_where_status_fits(const hf_where *where, int32_t status);

/* Appends the sort key of a row: where-F3. */
void hf_where_sort_key(const hf_where *where, hf_where_get *get, const void *row, hf_buf *out);

/* '2024-02-29T12:00:00.5+01:00' as nanoseconds since 1970. False: it is not such a text. */
bool hf_where_time(hf_str text, int64_t *ret_ns);

/* The number of a status by its name, in either form. 0: there is none. */
int32_t hf_status_of_run_name(hf_str name);
/* "Running". "" = there is none. */
const char *hf_run_status_name(int32_t status);

#endif
