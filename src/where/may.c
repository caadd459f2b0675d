/* Whether a filter can fit any of many rows, of which only a summary is known. See hf_where_may_fit. */
#include "where/where.h"

/* What may become of a condition over the rows. */
typedef struct outcome {
    bool may_fit;  /* one of them may fit */
    bool may_miss; /* one of them may not fit */
} outcome;

static const outcome UNKNOWN = {true, true};

static bool fits_number(const hf_where_node *node, int64_t number)
{
    const hf_attr_value *values = node->values;
    switch (node->kind) {
    case HF_WHERE_EQUAL:
    case HF_WHERE_IN:
        for (size_t i = 0; i < node->value_count; i++) {
            if (values[i].number == number) {
                return true;
            }
        }
        return false;
    case HF_WHERE_LESS:
        return number < values[0].number;
    case HF_WHERE_LESS_EQUAL:
        return number <= values[0].number;
    case HF_WHERE_GREATER:
        return number > values[0].number;
    case HF_WHERE_GREATER_EQUAL:
        return number >= values[0].number;
    case HF_WHERE_BETWEEN:
        return number >= values[0].number && number <= values[1].number;
    case HF_WHERE_AND:
    case HF_WHERE_OR:
    case HF_WHERE_NOT:
    case HF_WHERE_STARTS_WITH:
    case HF_WHERE_NULL:
        break;
    }
    hf_assert(false); /* numbers have no other tests */
    return true;
}

/* A status is one of a few: each is tried. */
static outcome of_statuses(const hf_where_node *node, uint32_t statuses)
{
    outcome out = {false, false};
    for (int32_t status = 0; status < 32; status++) {
        if ((statuses >> status & 1) != 0) {
            bool fits = fits_number(node, status);
            out.may_fit = out.may_fit || fits;
            out.may_miss = out.may_miss || !fits;
        }
    }
    return out;
}

/* Every row has a number from `least` to `greatest`. */
static outcome of_bounds(const hf_where_node *node, int64_t least, int64_t greatest)
{
    outcome out = {false, true};
    if (node->kind == HF_WHERE_EQUAL || node->kind == HF_WHERE_IN) {
        for (size_t i = 0; i < node->value_count; i++) {
            out.may_fit = out.may_fit || (node->values[i].number >= least && node->values[i].number <= greatest);
        }
    } else if (node->kind == HF_WHERE_BETWEEN) {
        out.may_fit = node->values[0].number <= greatest && node->values[1].number >= least;
    } else { /* one end fits, or no number does */
        out.may_fit = fits_number(node, least) || fits_number(node, greatest);
    }
    out.may_miss = !(fits_number(node, least) && fits_number(node, greatest)) || node->kind == HF_WHERE_IN;
    return out;
}

/* Rows whose values are known by a Bloom filter: whether one may have one of the texts or numbers. */
static outcome of_values(const hf_where_node *node, const hf_where_bounds *bounds, const void *state)
{
    if (node->kind != HF_WHERE_EQUAL && node->kind != HF_WHERE_IN) {
        return UNKNOWN;
    }
    for (size_t i = 0; i < node->value_count; i++) {
        if (bounds->may_have(state, node->attr, &node->values[i])) {
            return UNKNOWN;
        }
    }
    return (outcome){false, true};
}

static outcome of_test(const hf_where_node *node, const hf_where_bounds *bounds, const void *state)
{
    int64_t least = 0;
    int64_t greatest = 0;
    const hf_attr *attr = node->attr;
    if (attr->id == HF_ATTR_EXECUTION_STATUS) {
        return node->kind == HF_WHERE_NULL ? (outcome){false, true}
                                           : of_statuses(node, bounds->statuses(state)); /* every row has one */
    }
    if (bounds->range(state, attr, &least, &greatest)) {
        hf_assert(least <= greatest);
        return node->kind == HF_WHERE_NULL ? (outcome){false, true} : of_bounds(node, least, greatest);
    }
    return node->kind == HF_WHERE_NULL ? UNKNOWN : of_values(node, bounds, state);
}

static outcome of_node(const hf_where_node *node, const hf_where_bounds *bounds, const void *state, size_t depth)
{
    hf_assert(depth <= 3 * HF_WHERE_DEPTH_MAX + 3); /* where-F2 */
    if (node->kind == HF_WHERE_NOT) {
        outcome inner = of_node(node->first, bounds, state, depth + 1);
        return (outcome){inner.may_miss, inner.may_fit};
    }
    if (node->kind != HF_WHERE_AND && node->kind != HF_WHERE_OR) {
        return of_test(node, bounds, state);
    }
    /* A row fits an AND only if it fits all of its parts, and misses an OR only if it misses all of them. */
    bool is_and = node->kind == HF_WHERE_AND;
    outcome out = {is_and, !is_and};
    for (const hf_where_node *part = node->first; part != NULL; part = part->next) {
        outcome one = of_node(part, bounds, state, depth + 1);
        out.may_fit = is_and ? out.may_fit && one.may_fit : out.may_fit || one.may_fit;
        out.may_miss = is_and ? out.may_miss || one.may_miss : out.may_miss && one.may_miss;
    }
    return out;
}

bool hf_where_may_fit(const hf_where *where, const hf_where_bounds *bounds, const void *state)
{
    return where->root == NULL || of_node(where->root, bounds, state, 0).may_fit;
}

static bool is_of_status(const hf_where_node *node)
{
    if (node->kind != HF_WHERE_AND && node->kind != HF_WHERE_OR && node->kind != HF_WHERE_NOT) {
        return node->attr->id == HF_ATTR_EXECUTION_STATUS;
    }
    for (const hf_where_node *part = node->first; part != NULL; part = part->next) {
        if (!is_of_status(part)) {
            return false;
        }
    }
    return true;
}

bool hf_where_is_of_status(const hf_where *where)
{
    return where->root == NULL || is_of_status(where->root);
}
