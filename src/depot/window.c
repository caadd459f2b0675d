#include "depot/window.h"

#include "fiber/keyed/keys.h"

static const unsigned char MAGIC[8] = {0xf1, 'h', 'f', 'l', 'i', 's', 't', 1};
enum { IS_WINDOW = 1, IS_START = 2, IS_END = 4 };

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static uint64_t get_number(hf_window_cursor *in)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 35 && in->at != in->end; shift += 7) {
        unsigned char byte = *in->at++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return number;
        }
    }
    in->is_bad = true;
    return 0;
}

static hf_str get_bytes(hf_window_cursor *in, uint64_t len_max)
{
    uint64_t len = get_number(in);
    if (in->is_bad || len > len_max || len > (uint64_t)(in->end - in->at)) {
        in->is_bad = true;
        return (hf_str){0};
    }
    hf_str bytes = hf_str_of_len(in->at, (size_t)len);
    in->at += len;
    return bytes;
}

bool hf_window_begin(hf_window_cursor *cursor, hf_str bytes)
{
    *cursor = (hf_window_cursor){
        .at = (const unsigned char *)bytes.data,
        .end = (const unsigned char *)bytes.data + bytes.len,
    };
    if (bytes.len < sizeof MAGIC || memcmp(bytes.data, MAGIC, sizeof MAGIC) != 0) {
        cursor->is_bad = true;
        return false;
    }
    cursor->at += sizeof MAGIC;
    uint64_t flags = get_number(cursor);
    hf_window *head = &cursor->head;
    head->is_window = (flags & IS_WINDOW) != 0;
    head->is_start = (flags & IS_START) != 0;
    head->is_end = (flags & IS_END) != 0;
    if (head->is_window) {
        head->before = get_bytes(cursor, HF_PAGE_TOKEN_LEN_MAX);
        head->after = get_bytes(cursor, HF_PAGE_TOKEN_LEN_MAX);
    }
    uint64_t count = get_number(cursor);
    cursor->is_bad = cursor->is_bad || flags > (IS_WINDOW | IS_START | IS_END) || count > HF_DEPOT_LIST_MAX;
    cursor->left = cursor->is_bad ? 0 : (size_t)count;
    head->count = cursor->left;
    return !cursor->is_bad;
}

bool hf_window_next(hf_window_cursor *cursor, hf_window_item *ret_item)
{
    hf_depot_key parts;
    if (cursor->left == 0 || cursor->is_bad) {
        cursor->is_bad = cursor->is_bad || cursor->at != cursor->end;
        return false;
    }
    cursor->left--;
    *ret_item = (hf_window_item){.key = get_bytes(cursor, HF_DEPOT_KEY_LEN_MAX)};
    if (cursor->head.is_window) {
        ret_item->before = get_bytes(cursor, HF_PAGE_TOKEN_LEN_MAX);
        ret_item->after = get_bytes(cursor, HF_PAGE_TOKEN_LEN_MAX);
    }
    cursor->is_bad = cursor->is_bad || !hf_depot_key_unpack(ret_item->key, &parts);
    return !cursor->is_bad;
}

bool hf_window_is_list(hf_str bytes)
{
    hf_window_cursor cursor;
    hf_window_item item;
    if (!hf_window_begin(&cursor, bytes)) {
        return false;
    }
    while (hf_window_next(&cursor, &item)) {
    }
    return !cursor.is_bad;
}

hf_status hf_window_read(hf_arena *arena, hf_str bytes, hf_window *ret_window)
{
    hf_window_cursor cursor;
    if (!hf_window_begin(&cursor, bytes)) {
        return HF_ERR_INVALID;
    }
    hf_window window = cursor.head;
    window.items = HF_ARENA_ARRAY(arena, hf_window_item, window.count + 1);
    if (window.items == NULL) {
        return HF_ERR_NOMEM;
    }
    size_t count = 0;
    while (hf_window_next(&cursor, &window.items[count])) {
        count++;
    }
    if (cursor.is_bad) {
        return HF_ERR_INVALID;
    }
    hf_assert(count == window.count);
    *ret_window = window;
    return HF_OK;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_number(hf_buf *out, uint64_t number)
{
    do {
        hf_buf_putc(out, (char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0)));
        number >>= 7;
    } while (number > 0);
}

static void put_bytes(hf_buf *out, hf_str bytes)
{
    put_number(out, bytes.len);
    hf_buf_put(out, bytes.data, bytes.len);
}

void hf_window_write(hf_buf *out, const hf_window *window)
{
    hf_assert(window->count <= HF_DEPOT_LIST_MAX);
    hf_assert(window->is_window || (window->before.len == 0 && window->after.len == 0));
    hf_buf_put(out, MAGIC, sizeof MAGIC);
    put_number(out, (window->is_window ? IS_WINDOW : 0U) | (window->is_start ? IS_START : 0U) |
                        (window->is_end ? IS_END : 0U));
    if (window->is_window) {
        put_bytes(out, window->before);
        put_bytes(out, window->after);
    }
    put_number(out, window->count);
    for (size_t i = 0; i < window->count; i++) {
        const hf_window_item *item = &window->items[i];
        hf_assert(item->key.len > 0 && item->key.len <= HF_DEPOT_KEY_LEN_MAX);
        put_bytes(out, item->key);
        if (window->is_window) {
            put_bytes(out, item->before);
            put_bytes(out, item->after);
        }
    }
}

/* ---- Windows ----------------------------------------------------------------------------------------------------- */

/* Adds the item, unless its key is in the set. False: no memory. */
static bool add_once(hf_arena *arena, hf_keys *keys, hf_window *window, const hf_window_item *item)
{
    uint64_t hash = hf_key_hash(0, item->key.data, item->key.len);
    if (hf_keys_find(keys, hash, item->key.data, item->key.len) != NULL) {
        return true;
    }
    hf_key_node *node = HF_ARENA_NEW(arena, hf_key_node);
    if (node == NULL) {
        return false;
    }
    node->hash = hash;
    node->bytes = item->key.data;
    node->len = item->key.len;
    hf_keys_add(keys, node);
    window->items[window->count++] = *item;
    return true;
}

bool hf_window_unite(hf_arena *arena, hf_window *window)
{
    hf_keys keys = {0};
    size_t count = window->count;
    window->count = 0; /* items move towards the front, never past those that are still to come */
    for (size_t i = 0; i < count; i++) {
        hf_window_item item = window->items[i];
        if (!add_once(arena, &keys, window, &item)) {
            return false;
        }
    }
    hf_assert(window->count <= count && keys.count == window->count);
    return true;
}

/* At the front, after a page was added at the back. */
static void trim_front(hf_window *window, size_t max)
{
    if (window->count <= max) {
        return;
    }
    size_t first = window->count - max;
    size_t at = first;
    while (at < window->count && window->items[at].before.len == 0) {
        at++;
    }
    first = at < window->count ? at : first;
    window->before = window->items[first].before;
    window->is_start = false;
    window->items += first;
    window->count -= first;
}

void hf_window_cut(hf_window *window, size_t max)
{
    hf_assert(max > 0);
    if (window->count <= max) {
        return;
    }
    size_t count = max;
    while (count > 0 && window->items[count - 1].after.len == 0) {
        count--;
    }
    window->count = count > 0 ? count : max;
    window->after = window->items[window->count - 1].after;
    window->is_end = false;
}

hf_status hf_window_join(hf_arena *arena, const hf_window *window, const hf_window *page, hf_page_direction direction,
                         size_t max, hf_window *ret_window)
{
    hf_assert(direction != HF_PAGE_INITIAL && max > 0);
    bool is_append = direction == HF_PAGE_APPEND;
    hf_window joined = {.is_window = true};
    joined.items = HF_ARENA_ARRAY(arena, hf_window_item, window->count + page->count + 1);
    hf_window_item *fresh = HF_ARENA_ARRAY(arena, hf_window_item, page->count + 1);
    if (joined.items == NULL || fresh == NULL) {
        return HF_ERR_NOMEM;
    }
    /* The items of the window come first in the set, so they stay where they are. */
    hf_keys keys = {0};
    hf_window old = {.items = is_append ? joined.items : joined.items + page->count};
    hf_window added = {.items = fresh};
    for (size_t i = 0; i < window->count; i++) {
        if (!add_once(arena, &keys, &old, &window->items[i])) {
            return HF_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < page->count; i++) {
        if (!add_once(arena, &keys, &added, &page->items[i])) {
            return HF_ERR_NOMEM;
        }
    }
    hf_window_item *place = is_append ? joined.items + old.count : old.items - added.count;
    memcpy(place, added.items, added.count * sizeof *place);
    joined.items = is_append ? joined.items : place;
    joined.count = old.count + added.count;
    joined.before = is_append ? window->before : page->before;
    joined.is_start = is_append ? window->is_start : page->is_start;
    joined.after = is_append ? page->after : window->after;
    joined.is_end = is_append ? page->is_end : window->is_end;
    if (is_append) {
        trim_front(&joined, max);
    } else {
        hf_window_cut(&joined, max);
    }
    hf_assert(joined.count <= max && !(joined.is_start && joined.before.len > 0) &&
              !(joined.is_end && joined.after.len > 0));
    *ret_window = joined;
    return HF_OK;
}
