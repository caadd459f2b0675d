#include "server/auth.h"

static const struct {
    const char *name;
    hf_role role;
} ROLES[] = {{"read", HF_ROLE_READ}, {"write", HF_ROLE_WRITE}, {"worker", HF_ROLE_WORKER}, {"admin", HF_ROLE_ADMIN}};

const char *hf_role_name(hf_role role)
{
    for (size_t i = 0; i < HF_COUNT_OF(ROLES); i++) {
        if (ROLES[i].role == role) {
            return ROLES[i].name;
        }
    }
    return "?";
}

/* ---- Texts ------------------------------------------------------------------------------------------------------------------- */

void hf_hex(const unsigned char *bytes, size_t len, char *ret_text)
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        ret_text[2 * i] = DIGITS[bytes[i] >> 4];
        ret_text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    ret_text[2 * len] = '\0';
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unhex(hf_str text, unsigned char *ret_bytes, size_t len)
{
    if (text.len != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int high = digit_of(text.data[2 * i]);
        int low = digit_of(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void hf_api_key_format(const unsigned char random[36], char ret_text[HF_KEY_LEN + 1])
{
    char digits[2 * 36 + 1];
    hf_hex(random, 36, digits);
    memcpy(ret_text, "hf_", 3);
    memcpy(ret_text + 3, digits, HF_KEY_ID_LEN);
    ret_text[3 + HF_KEY_ID_LEN] = '_';
    memcpy(ret_text + 3 + HF_KEY_ID_LEN + 1, digits + HF_KEY_ID_LEN, HF_KEY_SECRET_LEN + 1);
    hf_assert(strlen(ret_text) == HF_KEY_LEN); /* server-K1 */
}

/* The next word, separated by spaces. */
static hf_str take_word(hf_str *rest)
{
    while (rest->len > 0 && (rest->data[0] == ' ' || rest->data[0] == '\t')) {
        rest->data++;
        rest->len--;
    }
    hf_str word = {rest->data, 0};
    while (word.len < rest->len && rest->data[word.len] != ' ' && rest->data[word.len] != '\t') {
        word.len++;
    }
    rest->data += word.len;
    rest->len -= word.len;
    return word;
}

static bool take_number(hf_str word, int64_t *ret_number)
{
    int64_t number = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < '0' || word.data[i] > '9' || number > INT64_MAX / 100) {
            return false;
        }
        number = number * 10 + (word.data[i] - '0');
    }
    *ret_number = number;
    return word.len > 0;
}

static bool parse_grant(hf_str text, hf_grant *ret_grant)
{
    size_t colon = text.len;
    while (colon > 0 && text.data[colon - 1] != ':') { /* the last one: a namespace may have some */
        colon--;
    }
    if (colon < 2) {
        return false;
    }
    hf_str role = hf_str_of_len(text.data + colon, text.len - colon);
    ret_grant->namespace_ = hf_str_of_len(text.data, colon - 1);
    for (size_t i = 0; i < HF_COUNT_OF(ROLES); i++) {
        if (hf_str_equal(role, hf_str_of(ROLES[i].name))) {
            ret_grant->role = ROLES[i].role;
            return true;
        }
    }
    return false;
}

hf_status hf_grants_parse(hf_op *op, hf_arena *arena, hf_str text, hf_grant **ret_grants, size_t *ret_count)
{
    hf_grant *grants = HF_ARENA_ARRAY(arena, hf_grant, HF_KEY_GRANTS_MAX);
    size_t count = 0;
    if (grants == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for keys");
    }
    while (text.len > 0) {
        const char *comma = memchr(text.data, ',', text.len);
        size_t len = comma != NULL ? (size_t)(comma - text.data) : text.len;
        if (count == HF_KEY_GRANTS_MAX || !parse_grant(hf_str_of_len(text.data, len), &grants[count])) {
            return hf_fail(
                op, HF_ERR_INVALID,
                "a permission is NAMESPACE:ROLE, and ROLE is read, write, worker or admin; at most %d of them",
                HF_KEY_GRANTS_MAX);
        }
        count++;
        text = hf_str_of_len(text.data + len + (comma != NULL ? 1 : 0), text.len - len - (comma != NULL ? 1 : 0));
    }
    if (count == 0) {
        return hf_fail(op, HF_ERR_INVALID, "a key needs a permission, such as default:write");
    }
    *ret_grants = grants;
    *ret_count = count;
    return HF_OK;
}

/* ---- Rings ------------------------------------------------------------------------------------------------------------------- */

static hf_status parse_key(hf_op *op, hf_arena *arena, hf_str line, int number, hf_api_key *ret_key)
{
    ret_key->id = take_word(&line);
    hf_str hash = take_word(&line);
    hf_str expiry = take_word(&line);
    hf_str grants = take_word(&line);
    hf_op inner;
    hf_op_init(&inner);
    if (ret_key->id.len != HF_KEY_ID_LEN || !unhex(hash, ret_key->hash, HF_SHA256_LEN) ||
        !take_number(expiry, &ret_key->expires_s)) {
        return hf_fail(op, HF_ERR_INVALID, "line %d is not a key: ID HASH EXPIRY PERMISSIONS LABEL", number);
    }
    if (hf_grants_parse(&inner, arena, grants, &ret_key->grants, &ret_key->grant_count) != HF_OK) {
        return hf_fail(op, inner.status, "line %d: %s", number, inner.message);
    }
    ret_key->label = take_word(&line);
    return HF_OK;
}

static hf_status parse_lines(hf_op *op, hf_keyring *ring, hf_str text)
{
    int number = 0;
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.data) : text.len;
        hf_str line = hf_str_of_len(text.data, len);
        text = hf_str_of_len(text.data + len + (end != NULL ? 1 : 0), text.len - len - (end != NULL ? 1 : 0));
        number++;
        hf_str probe = line;
        if (take_word(&probe).len == 0 || line.data[0] == '#') {
            continue;
        }
        if (ring->count == HF_KEYS_MAX) {
            return hf_fail(op, HF_ERR_LIMIT, "more than %d keys", HF_KEYS_MAX);
        }
        HF_TRY(parse_key(op, &ring->arena, line, number, &ring->keys[ring->count]));
        ring->count++;
    }
    return HF_OK;
}

hf_status hf_keyring_parse(hf_op *op, hf_allocator memory, hf_str text, hf_keyring **ret_ring)
{
    hf_keyring *ring = memory.allocate(memory.state, sizeof *ring, 0);
    if (ring == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for keys");
    }
    *ring = (hf_keyring){.memory = memory};
    atomic_store(&ring->refs, 1);
    hf_arena_init(&ring->arena, memory);
    hf_str copy = hf_arena_copy(&ring->arena, text);
    ring->keys = HF_ARENA_ARRAY(&ring->arena, hf_api_key, HF_KEYS_MAX);
    hf_status status =
        ring->arena.status == HF_OK ? parse_lines(op, ring, copy) : hf_fail(op, HF_ERR_NOMEM, "no memory for keys");
    if (status != HF_OK) {
        hf_keyring_unref(ring);
        return status;
    }
    *ret_ring = ring;
    return HF_OK;
}

hf_keyring *hf_keyring_ref(hf_keyring *ring)
{
    int before = atomic_fetch_add(&ring->refs, 1);
    hf_assert(before > 0);
    return ring;
}

void hf_keyring_unref(hf_keyring *ring)
{
    if (ring != NULL && atomic_fetch_sub(&ring->refs, 1) == 1) {
        hf_allocator memory = ring->memory;
        hf_arena_deinit(&ring->arena);
        memory.release(memory.state, ring, sizeof *ring);
    }
}

/* ---- Asking ------------------------------------------------------------------------------------------------------------------ */

const hf_api_key *hf_keyring_find(const hf_keyring *ring, hf_str token, int64_t now_s)
{
    unsigned char hash[HF_SHA256_LEN];
    if (token.len != HF_KEY_LEN || memcmp(token.data, "hf_", 3) != 0) {
        return NULL;
    }
    hf_str id = hf_str_of_len(token.data + 3, HF_KEY_ID_LEN);
    hf_sha256(token, hash);
    for (size_t i = 0; i < ring->count; i++) {
        const hf_api_key *key = &ring->keys[i];
        if (hf_str_equal(key->id, id) && hf_hash_equal(key->hash, hash)) { /* server-K1 */
            return key->expires_s == 0 || now_s < key->expires_s ? key : NULL;
        }
    }
    return NULL;
}

bool hf_api_key_may(const hf_api_key *key, const hf_route *route, hf_str namespace_)
{
    if (route->roles == 0) {
        return true;
    }
    for (size_t i = 0; i < key->grant_count; i++) {
        const hf_grant *grant = &key->grants[i];
        bool is_here = hf_str_equal(grant->namespace_, HF_STR("*")) || hf_str_equal(grant->namespace_, namespace_);
        if ((is_here || route->is_of_system) && (route->roles & grant->role) != 0) {
            return true;
        }
    }
    return false;
}
