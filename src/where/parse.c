/* The grammar of filters: each rule is a function that stands on its first word and leaves its last behind. */
#include "where/where_private.h"

typedef struct parser {
    hf_reader reader;
    hf_where_find *find;
    const void *state;
    size_t depth;       /* brackets and NOTs around the current word */
    size_t value_count; /* in the whole filter */
} parser;

static hf_status parse_or(parser *self, hf_where_node **ret_node);

static hf_status no_memory(parser *self)
{
    return hf_fail(self->reader.op, HF_ERR_NOMEM, "no memory for a filter");
}

static hf_status new_node(parser *self, hf_where_kind kind, hf_where_node **ret_node)
{
    hf_where_node *node = HF_ARENA_NEW(self->reader.arena, hf_where_node);
    if (node == NULL) {
        return no_memory(self);
    }
    node->kind = kind;
    *ret_node = node;
    return HF_OK;
}

/* Steps over a word of the language, or says what is missing. */
static hf_status expect(parser *self, const char *word, const char *after)
{
    if (!hf_reader_is(&self->reader, word)) {
        return hf_reader_fail(&self->reader, self->reader.word.at, "%s must follow %s", word, after);
    }
    return hf_reader_next(&self->reader);
}

static hf_status expect_sign(parser *self, hf_word_kind kind, const char *sign)
{
    if (self->reader.word.kind != kind) {
        return hf_reader_fail(&self->reader, self->reader.word.at, "a %s is missing here", sign);
    }
    return hf_reader_next(&self->reader);
}

/* ---- Attributes ------------------------------------------------------------------------------------------------------- */

static hf_status parse_name(parser *self, const hf_attr **ret_attr)
{
    const hf_word *word = &self->reader.word;
    if (word->kind != HF_WORD_NAME && word->kind != HF_WORD_QUOTED) {
        return hf_reader_fail(&self->reader, word->at, "%s",
                              word->kind == HF_WORD_END ? "the filter ends where the name of an attribute must follow"
                                                        : "the name of an attribute must be here");
    }
    hf_attr *attr = HF_ARENA_NEW(self->reader.arena, hf_attr);
    if (attr == NULL) {
        return no_memory(self);
    }
    hf_attr_type type = HF_ATTR_NONE;
    if (!hf_attr_known(word->text, attr)) {
        if (self->find == NULL || !self->find(self->state, word->text, &type)) {
            int len = (int)(word->text.len > 100 ? 100 : word->text.len);
            return hf_reader_fail(&self->reader, word->at,
                                  "%.*s is not a search attribute of this namespace; names are case-sensitive, and "
                                  "custom ones must be added first",
                                  len, word->text.data);
        }
        hf_assert(type >= HF_ATTR_TEXT && type <= HF_ATTR_TYPE_LAST);
        *attr = (hf_attr){HF_ATTR_CUSTOM, type, hf_arena_copy(self->reader.arena, word->text)};
        if (self->reader.arena->status != HF_OK) {
            return no_memory(self);
        }
    }
    *ret_attr = attr;
    return hf_reader_next(&self->reader);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------ */

static hf_status count_value(parser *self)
{
    if (self->value_count >= HF_WHERE_VALUES_MAX) {
        return hf_reader_fail(&self->reader, self->reader.word.at, "a filter has at most %d values",
                              HF_WHERE_VALUES_MAX);
    }
    self->value_count++;
    return HF_OK;
}

static hf_status parse_value(parser *self, const hf_attr *attr, hf_attr_value *ret_value)
{
    HF_TRY(count_value(self));
    HF_TRY(hf_value_of_word(&self->reader, attr, ret_value));
    return hf_reader_next(&self->reader);
}

/* One value, or the two of BETWEEN. */
static hf_status parse_values(parser *self, hf_where_node *node, size_t count)
{
    hf_attr_value *values = HF_ARENA_ARRAY(self->reader.arena, hf_attr_value, count);
    if (values == NULL) {
        return no_memory(self);
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            HF_TRY(expect(self, "AND", "the first value of BETWEEN"));
        }
        HF_TRY(parse_value(self, node->attr, &values[i]));
    }
    node->values = values;
    node->value_count = count;
    return HF_OK;
}

/* The values of IN. The array doubles in the arena: all of them together are less than twice the last. */
static hf_status parse_list(parser *self, hf_where_node *node)
{
    size_t room = 4;
    hf_attr_value *values = HF_ARENA_ARRAY(self->reader.arena, hf_attr_value, room);
    HF_TRY(expect_sign(self, HF_WORD_OPEN, "("));
    for (size_t count = 0;;) {
        if (values != NULL && count == room) {
            hf_attr_value *more = HF_ARENA_ARRAY(self->reader.arena, hf_attr_value, 2 * room);
            if (more != NULL) {
                memcpy(more, values, room * sizeof *values);
            }
            values = more;
            room *= 2;
        }
        if (values == NULL) {
            return no_memory(self);
        }
        hf_assert(count < room && count < HF_WHERE_VALUES_MAX);
        HF_TRY(parse_value(self, node->attr, &values[count]));
        node->values = values;
        node->value_count = ++count;
        if (self->reader.word.kind != HF_WORD_COMMA) {
            break;
        }
        HF_TRY(hf_reader_next(&self->reader));
    }
    return expect_sign(self, HF_WORD_CLOSE, ") or ,");
}

/* Which tests an attribute of this type allows. */
static bool allows(hf_attr_type type, hf_where_kind kind)
{
    if (kind == HF_WHERE_EQUAL || kind == HF_WHERE_NULL) {
        return true;
    }
    switch (type) {
    case HF_ATTR_TEXT:
    case HF_ATTR_BOOL:
        return false;
    case HF_ATTR_KEYWORD_LIST:
    case HF_ATTR_STATUS:
        return kind == HF_WHERE_IN;
    case HF_ATTR_KEYWORD:
        return true;
    case HF_ATTR_NONE:
    case HF_ATTR_INT:
    case HF_ATTR_DOUBLE:
    case HF_ATTR_DATETIME:
    case HF_ATTR_DURATION:
        break;
    }
    return kind != HF_WHERE_STARTS_WITH;
}

static bool kind_of_sign(hf_word_kind word, hf_where_kind *ret_kind, bool *ret_is_not)
{
    static const hf_where_kind KINDS[] = {
        [HF_WORD_EQUAL] = HF_WHERE_EQUAL,     [HF_WORD_NOT_EQUAL] = HF_WHERE_EQUAL,
        [HF_WORD_LESS] = HF_WHERE_LESS,       [HF_WORD_LESS_EQUAL] = HF_WHERE_LESS_EQUAL,
        [HF_WORD_GREATER] = HF_WHERE_GREATER, [HF_WORD_GREATER_EQUAL] = HF_WHERE_GREATER_EQUAL,
    };
    if (word < HF_WORD_EQUAL || word > HF_WORD_GREATER_EQUAL) {
        return false;
    }
    *ret_kind = KINDS[word];
    *ret_is_not = word == HF_WORD_NOT_EQUAL;
    return true;
}

/* The operator of a test, up to its first value. */
static hf_status parse_operator(parser *self, hf_where_kind *ret_kind, bool *ret_is_not)
{
    hf_reader *reader = &self->reader;
    *ret_is_not = false;
    if (kind_of_sign(reader->word.kind, ret_kind, ret_is_not)) {
        return hf_reader_next(reader);
    }
    if (hf_reader_is(reader, "IS")) {
        HF_TRY(hf_reader_next(reader));
        if (hf_reader_is(reader, "NOT")) {
            *ret_is_not = true;
            HF_TRY(hf_reader_next(reader));
        }
        *ret_kind = HF_WHERE_NULL;
        return expect(self, "NULL", *ret_is_not ? "IS NOT" : "IS");
    }
    if (hf_reader_is(reader, "NOT")) {
        *ret_is_not = true;
        HF_TRY(hf_reader_next(reader));
    }
    *ret_kind = hf_reader_is(reader, "IN")            ? HF_WHERE_IN
                : hf_reader_is(reader, "BETWEEN")     ? HF_WHERE_BETWEEN
                : hf_reader_is(reader, "STARTS_WITH") ? HF_WHERE_STARTS_WITH
                                                      : HF_WHERE_AND;
    if (*ret_kind == HF_WHERE_AND) {
        return hf_reader_fail(reader, reader->word.at,
                              "an operator must follow the name: = != < <= > >= IN BETWEEN STARTS_WITH or IS");
    }
    return hf_reader_next(reader);
}

static hf_status parse_test(parser *self, hf_where_node **ret_node)
{
    hf_where_node *node = NULL;
    bool is_not = false;
    HF_TRY(new_node(self, HF_WHERE_EQUAL, &node));
    HF_TRY(parse_name(self, &node->attr));
    size_t at = self->reader.word.at;
    HF_TRY(parse_operator(self, &node->kind, &is_not));
    if (!allows(node->attr->type, node->kind)) {
        return hf_reader_fail(&self->reader, at, "%.*s is a %s, which has no such test; %s",
                              HF_STR_ARGS(node->attr->name), hf_attr_type_name(node->attr->type),
                              allows(node->attr->type, HF_WHERE_IN)
                                  ? (allows(node->attr->type, HF_WHERE_LESS) ? "STARTS_WITH is for Keywords"
                                                                             : "it has = != IN and IS NULL")
                                  : "it has = != and IS NULL");
    }
    if (node->kind == HF_WHERE_IN) {
        HF_TRY(parse_list(self, node));
    } else if (node->kind != HF_WHERE_NULL) {
        HF_TRY(parse_values(self, node, node->kind == HF_WHERE_BETWEEN ? 2 : 1));
    }
    *ret_node = node;
    if (is_not) { /* the opposite: where-F1 */
        HF_TRY(new_node(self, HF_WHERE_NOT, ret_node));
        (*ret_node)->first = node;
    }
    return HF_OK;
}

/* ---- Conditions ------------------------------------------------------------------------------------------------------- */

static hf_status deeper(parser *self)
{
    if (self->depth >= HF_WHERE_DEPTH_MAX) {
        return hf_reader_fail(&self->reader, self->reader.word.at, "brackets and NOTs are at most %d deep",
                              HF_WHERE_DEPTH_MAX);
    }
    self->depth++;
    return HF_OK;
}

static hf_status parse_not(parser *self, hf_where_node **ret_node)
{
    hf_reader *reader = &self->reader;
    if (hf_reader_is(reader, "NOT")) {
        HF_TRY(deeper(self));
        HF_TRY(hf_reader_next(reader));
        hf_where_node *inner = NULL;
        HF_TRY(parse_not(self, &inner));
        HF_TRY(new_node(self, HF_WHERE_NOT, ret_node));
        (*ret_node)->first = inner;
        self->depth--;
        return HF_OK;
    }
    if (reader->word.kind == HF_WORD_OPEN) {
        size_t at = reader->word.at;
        HF_TRY(deeper(self));
        HF_TRY(hf_reader_next(reader));
        HF_TRY(parse_or(self, ret_node));
        if (reader->word.kind != HF_WORD_CLOSE) {
            return hf_reader_fail(reader, reader->word.at,
                                  "AND, OR or a ) must follow; the bracket was opened at column %zu", at + 1);
        }
        self->depth--;
        return hf_reader_next(reader);
    }
    return parse_test(self, ret_node);
}

/* Parts between the same word, as children of one node: a chain of a thousand ORs is not deep. A part alone stays itself. */
static hf_status parse_chain(parser *self, const char *word, hf_where_kind kind,
                             hf_status (*parse_part)(parser *self, hf_where_node **ret_node), hf_where_node **ret_node)
{
    hf_where_node *first = NULL;
    HF_TRY(parse_part(self, &first));
    *ret_node = first;
    if (!hf_reader_is(&self->reader, word)) {
        return HF_OK;
    }
    HF_TRY(new_node(self, kind, ret_node));
    (*ret_node)->first = first;
    for (hf_where_node *last = first; hf_reader_is(&self->reader, word);) {
        hf_where_node *part = NULL;
        HF_TRY(hf_reader_next(&self->reader));
        HF_TRY(parse_part(self, &part));
        hf_assert(last->next == NULL && part != last);
        last->next = part;
        last = part;
    }
    return HF_OK;
}

static hf_status parse_and(parser *self, hf_where_node **ret_node)
{
    return parse_chain(self, "AND", HF_WHERE_AND, parse_not, ret_node);
}

static hf_status parse_or(parser *self, hf_where_node **ret_node)
{
    return parse_chain(self, "OR", HF_WHERE_OR, parse_and, ret_node);
}

/* ---- What follows the condition ---------------------------------------------------------------------------------------- */

static hf_status parse_group(parser *self, unsigned may, hf_where *where)
{
    size_t at = self->reader.word.at;
    if ((may & HF_WHERE_MAY_GROUP) == 0) {
        return hf_reader_fail(&self->reader, at, "GROUP BY is for counts, not for lists");
    }
    HF_TRY(hf_reader_next(&self->reader));
    HF_TRY(expect(self, "BY", "GROUP"));
    at = self->reader.word.at;
    const hf_attr *attr = NULL;
    HF_TRY(parse_name(self, &attr));
    if (attr->id != HF_ATTR_EXECUTION_STATUS) {
        return hf_reader_fail(&self->reader, at, "GROUP BY is possible for ExecutionStatus only");
    }
    where->is_grouped = true;
    return HF_OK;
}

static hf_status parse_order(parser *self, unsigned may, hf_where *where)
{
    hf_reader *reader = &self->reader;
    if ((may & HF_WHERE_MAY_ORDER) == 0) {
        return hf_reader_fail(reader, reader->word.at, "ORDER BY is for lists, not for counts");
    }
    HF_TRY(hf_reader_next(reader));
    HF_TRY(expect(self, "BY", "ORDER"));
    for (;;) {
        size_t at = reader->word.at;
        if (where->order_count == HF_WHERE_ORDER_MAX) {
            return hf_reader_fail(reader, at, "ORDER BY has at most %d attributes", HF_WHERE_ORDER_MAX);
        }
        hf_where_order *order = &where->order[where->order_count];
        HF_TRY(parse_name(self, &order->attr));
        if (order->attr->type == HF_ATTR_TEXT || order->attr->type == HF_ATTR_KEYWORD_LIST) {
            return hf_reader_fail(reader, at, "runs cannot be ordered by %.*s, which is a %s",
                                  HF_STR_ARGS(order->attr->name), hf_attr_type_name(order->attr->type));
        }
        order->is_down = hf_reader_is(reader, "DESC");
        if (order->is_down || hf_reader_is(reader, "ASC")) {
            HF_TRY(hf_reader_next(reader));
        }
        where->order_count++;
        if (reader->word.kind != HF_WORD_COMMA) {
            return HF_OK;
        }
        HF_TRY(hf_reader_next(reader));
    }
}

static hf_status parse(parser *self, unsigned may, hf_where *where)
{
    hf_reader *reader = &self->reader;
    HF_TRY(hf_reader_next(reader));
    if (reader->word.kind != HF_WORD_END && !hf_reader_is(reader, "ORDER") && !hf_reader_is(reader, "GROUP")) {
        hf_where_node *root = NULL;
        HF_TRY(parse_or(self, &root));
        where->root = root;
    }
    hf_assert(self->depth == 0); /* where-F2 */
    if (hf_reader_is(reader, "GROUP")) {
        HF_TRY(parse_group(self, may, where));
    }
    if (hf_reader_is(reader, "ORDER")) {
        HF_TRY(parse_order(self, may, where));
    }
    if (reader->word.kind == HF_WORD_END) {
        return HF_OK;
    }
    int len = (int)(reader->word.raw.len > 60 ? 60 : reader->word.raw.len);
    return hf_reader_fail(reader, reader->word.at,
                          "the filter has ended before %.*s; AND, OR, GROUP BY or ORDER BY may follow", len,
                          reader->word.raw.data);
}

hf_status hf_where_parse(hf_op *op, hf_str text, unsigned may, hf_where_find *find, const void *state, hf_arena *arena,
                         hf_where *ret_where, size_t *ret_column)
{
    hf_assert(text.len == 0 || text.data != NULL);
    *ret_where = (hf_where){0};
    if (ret_column != NULL) {
        *ret_column = 0;
    }
    if (text.len > HF_WHERE_LEN_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the filter has %zu bytes, %u at most", text.len, HF_WHERE_LEN_MAX);
    }
    parser self = {.reader = {.text = text, .arena = arena, .op = op}, .find = find, .state = state};
    hf_where where = {0};
    hf_status status = parse(&self, may, &where);
    if (status == HF_OK) {
        *ret_where = where;
    } else if (ret_column != NULL) {
        *ret_column = self.reader.column;
    }
    return status;
}
