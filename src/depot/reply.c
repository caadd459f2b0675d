/* What fetchers and pushers answer. A reply belongs to one call at a time. */
#include "depot/fetching.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

void hf_reply_init(hf_reply *reply, hf_runtime *rt, size_t value_max)
{
    *reply = (hf_reply){.rt = rt, .value_max = value_max, .max_age = -1};
    hf_list_init(&reply->records);
}

void hf_reply_clear(hf_reply *reply)
{
    hf_value_unref(reply->value);
    hf_value_unref(reply->etag);
    hf_value_unref(reply->last_modified);
    hf_value_unref(reply->key);
    const hf_depot_key *asked = reply->asked;
    hf_records_drop(reply);
    bool takes_records = reply->takes_records;
    bool takes_partial = reply->takes_partial;
    hf_str asked_key = reply->asked_key;
    size_t window_max = reply->window_max;
    hf_box_unref(reply->failure);
    struct hf_sub_run *emits = reply->emits;
    hf_reply_init(reply, reply->rt, reply->value_max);
    reply->asked = asked;
    reply->takes_records = takes_records;
    reply->takes_partial = takes_partial;
    reply->asked_key = asked_key;
    reply->window_max = window_max;
    reply->emits = emits;
}

/* A reply comes from the library, so it has a runtime. */
#define ENTER(self, verb, reply)                                                                 \
    HF_VERB_ENTER(self, verb, (reply) != NULL ? (reply)->rt : NULL);                             \
    if ((reply) == NULL) {                                                                       \
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, #verb " needs the reply of the request")); \
    }

hf_status hf_reply_value(hf_reply *reply, const void *data, size_t len)
{
    ENTER(self, hf_reply_value, reply);
    if (data == NULL && len > 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_reply_value needs the bytes of the value"));
    }
    if (len > reply->value_max) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_TOO_BIG, "a value has %zu bytes: the depot takes %zu (.value_max)", len,
                                 reply->value_max));
    }
    hf_leave(self);
    hf_value *value = NULL;
    HF_TRY(hf_value_copy(data, len, &value));
    hf_value_unref(reply->value);
    reply->value = value;
    reply->is_page = false;
    return HF_OK;
}

hf_status hf_reply_not_modified(hf_reply *reply)
{
    ENTER(self, hf_reply_not_modified, reply);
    reply->is_not_modified = true;
    HF_LEAVE(self, HF_OK);
}

static hf_status check_text(hf_fiber *self, const char *verb, const char *text)
{
    return text != NULL && strlen(text) <= HF_ETAG_LEN_MAX
               ? HF_OK
               : hf_refuse_at(self, HF_ERR_INVALID, verb, "%s needs a text of at most %d bytes", verb, HF_ETAG_LEN_MAX);
}

static hf_status set_text(hf_value **place, const char *text)
{
    hf_value *value = hf_text_value(text);
    if (value == NULL) {
        return HF_ERR_NOMEM;
    }
    hf_value_unref(*place);
    *place = value;
    return HF_OK;
}

hf_status hf_reply_etag(hf_reply *reply, const char *etag)
{
    ENTER(self, hf_reply_etag, reply);
    hf_status status = check_text(self, "hf_reply_etag", etag);
    hf_leave(self);
    return status == HF_OK ? set_text(&reply->etag, etag) : status;
}

hf_status hf_reply_last_modified(hf_reply *reply, const char *last_modified)
{
    ENTER(self, hf_reply_last_modified, reply);
    hf_status status = check_text(self, "hf_reply_last_modified", last_modified);
    hf_leave(self);
    return status == HF_OK ? set_text(&reply->last_modified, last_modified) : status;
}

hf_status hf_reply_revision(hf_reply *reply, uint64_t revision)
{
    ENTER(self, hf_reply_revision, reply);
    if (revision == 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "a revision must be above 0"));
    }
    reply->revision = revision;
    HF_LEAVE(self, HF_OK);
}

hf_status hf_reply_key(hf_reply *reply, hf_depot_key key)
{
    ENTER(self, hf_reply_key, reply);
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    if (reply->asked == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only a create without an id can be answered with another key"));
    }
    if (hf_depot_key_pack(&op, key, &bytes) != HF_OK) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (strcmp(key.ns, reply->asked->ns) != 0 || strcmp(key.type, reply->asked->type) != 0) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_INVALID, "a key cannot go from '%.100s' '%.100s' to another namespace or type",
                           reply->asked->ns, reply->asked->type));
    }
    bool is_same = key.id_len == reply->asked->id_len && memcmp(key.id, reply->asked->id, key.id_len) == 0;
    if (!is_same && hf_key_is_provisional(hf_str_of_len(bytes.bytes, bytes.len))) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_INVALID, "'~' and 26 letters is a provisional id: the origin needs others"));
    }
    hf_leave(self);
    hf_value *value = NULL;
    HF_TRY(hf_value_copy(bytes.bytes, bytes.len, &value));
    hf_value_unref(reply->key);
    reply->key = value;
    return HF_OK;
}

hf_status hf_reply_max_age(hf_reply *reply, hf_span max_age)
{
    ENTER(self, hf_reply_max_age, reply);
    if (max_age.ns < 0 && max_age.ns != HF_SPAN_OFF.ns) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "hf_reply_max_age was given a negative span"));
    }
    reply->max_age = max_age.ns > 0 ? max_age.ns : 0;
    HF_LEAVE(self, HF_OK);
}

hf_status hf_reply_emit(hf_reply *reply)
{
    ENTER(self, hf_reply_emit, reply);
    if (reply->emits == NULL) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "hf_reply_emit was given the reply of a fetch, not of .subscribe"));
    }
    hf_leave(self);
    return hf_sub_emit(reply->emits);
}

hf_status hf_reply_fail_with(hf_reply *reply, hf_reply_class reply_class, const hf_reply_fail_options *options)
{
    HF_OPTIONS(hf_reply_fail_options, options, hf_reply_fail);
    ENTER(self, hf_reply_fail, reply);
    if ((unsigned)reply_class > HF_REPLY_INVALID || options->retry_after.ns < 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "hf_reply_fail needs a class, and no negative span"));
    }
    reply->why = options->http_status != 0 ? hf_class_of_http(options->http_status) : reply_class;
    reply->has_class = true;
    reply->retry_after = options->retry_after.ns;
    const hf_class_info *info = hf_class_info_of(reply->why);
    hf_status status =
        options->message != NULL ? hf_refuse_at(self, info->status, "hf_reply_fail", "%s", options->message)
        : options->http_status != 0
            ? hf_refuse_at(self, info->status, "hf_reply_fail", "the origin answered %d", options->http_status)
            : hf_refuse_at(self, info->status, "hf_reply_fail", "the origin failed: %s", info->name);
    if (reply->keeps_failure) {
        hf_box_unref(reply->failure);
        reply->failure = hf_self_take_failure(self, reply->rt, status, "hf_reply_fail");
        hf_self_fail(self, hf_box_ref(reply->failure)); /* it may be what the fetcher returns */
    }
    HF_LEAVE(self, status);
}
