/* Filters. An input is the text of one. One that is accepted is evaluated for some rows without a fault, and its opposite says the
 * opposite; one that is refused has a sentence and a place inside the text. */
#include "fuzz/fuzz.h"

#include "base/buf.h"
#include "where/where.h"

static bool find(const void *state, hf_str name, hf_attr_type *ret_type)
{
    (void)state;
    if (name.len != 2 || name.data[0] != 'C' || name.data[1] < '1' || name.data[1] > '7') {
        return false; /* C1 .. C7: one of each type */
    }
    *ret_type = (hf_attr_type)(name.data[1] - '0');
    return true;
}

/* A row whose values follow from its number. */
static void get(const void *row, const hf_attr *attr, hf_attr_value *ret_value)
{
    static const hf_str ITEMS[] = {HF_STR_INIT("a"), HF_STR_INIT("b c"), HF_STR_INIT("")};
    unsigned number = *(const unsigned *)row;
    ret_value->is_set = (number + (unsigned)attr->id) % 4 != 0;
    ret_value->number = (int64_t)number - 3;
    ret_value->real = number / 2.0;
    ret_value->text = ITEMS[number % 3];
    ret_value->items = ITEMS;
    ret_value->item_count = number % 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = fuzz_copy(hf_str_of_len(data, size));
    hf_op op;
    hf_where where;
    hf_arena arena;
    hf_buf key;
    fuzz_memory memory = {0};
    size_t column = 0;
    hf_op_init(&op);
    hf_arena_init(&arena, fuzz_heap(&memory));
    hf_buf_init(&key, fuzz_heap(&memory), 1u << 20);
    hf_status status = hf_where_parse(&op, hf_str_of_len(exact, size), HF_WHERE_MAY_ORDER | HF_WHERE_MAY_GROUP, find,
                                      NULL, &arena, &where, &column);
    if (status == HF_OK) {
        hf_where_node not = {.kind = HF_WHERE_NOT, .first = where.root};
        hf_where opposite = {.root = &not };
        for (unsigned row = 0; row < 12; row++) {
            bool fits = hf_where_fits(&where, get, &row);
            FUZZ_CHECK(where.root == NULL ? fits : hf_where_fits(&opposite, get, &row) == !fits, "row %u", row);
            hf_where_sort_key(&where, get, &row, &key);
        }
        FUZZ_CHECK(key.status == HF_OK, "sort keys of %zu bytes", key.len);
    } else {
        FUZZ_CHECK(status == HF_ERR_INVALID && op.message[0] != '\0', "refused without a sentence");
        FUZZ_CHECK(column <= size + 1, "column %zu of %zu", column, size);
    }
    hf_buf_deinit(&key);
    hf_arena_deinit(&arena);
    fuzz_memory_check(&memory, 300 * size + (1u << 20));
    free(exact);
    return 0;
}
