#include "engine/cursor.h"

void hf_cursor_begin(hf_cursor *cursor, hf_store_request *request, hf_str text, int64_t end)
{
    hf_assert(!cursor->is_reading && cursor->a <= end);
    request->key = (hf_key){text, cursor->a, cursor->b};
    request->key_end = (hf_key){text, end, 0};
    cursor->end = end;
    cursor->is_reading = true;
    cursor->is_moved = false;
}

bool hf_cursor_end(hf_cursor *cursor, const hf_store_request *request)
{
    hf_assert(cursor->is_reading);
    cursor->is_reading = false;
    if (cursor->is_moved) {
        cursor->is_moved = false;
        return false;
    }
    bool is_whole = !request->more;
    if (is_whole && cursor->end != INT64_MAX) {
        cursor->a = cursor->end;
        cursor->b = 0;
    } else if (request->row_count > 0) {
        const hf_key *last = &request->rows[request->row_count - 1].key;
        bool has_b = hf_table_info_of(request->table)->has_b;
        cursor->a = has_b ? last->a : last->a + 1;
        cursor->b = has_b ? last->b + 1 : 0;
    }
    hf_assert(!hf_cursor_may_miss(cursor, cursor->a, cursor->b)); /* engine-C1 */
    return is_whole;
}

bool hf_cursor_may_miss(const hf_cursor *cursor, int64_t a, int64_t b)
{
    return a < cursor->a || (a == cursor->a && b < cursor->b) || (cursor->is_reading && a < cursor->end);
}

void hf_cursor_move_back(hf_cursor *cursor, int64_t a, int64_t b)
{
    if (a < cursor->a || (a == cursor->a && b < cursor->b)) {
        cursor->a = a;
        cursor->b = b;
    }
    cursor->is_moved = cursor->is_reading;
    cursor->has_rows = true;
}
