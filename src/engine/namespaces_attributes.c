/* Search attributes of a run: whether its namespace has them, with these types, and whether they are short enough. */
#include "engine/namespaces.h"

#include "engine/size.h"
#include "run/visible.h"

#include <stdio.h>

/* The type that an attribute has in the namespace. False: there is none of that name. */
static bool type_of(const hf_core *core, const hf_namespace *space, hf_str name, hf_attr_type *ret_type)
{
    hf_attr known;
    if (hf_attr_known(name, &known)) {
        *ret_type = known.type;
        return known.id == HF_ATTR_CUSTOM; /* those that every run has cannot be set */
    }
    *ret_type = HF_ATTR_NONE;
    return hf_namespace_find_attribute(space, name, ret_type) || !core->options.is_strict;
}

static bool refuse(char why[HF_MESSAGE_LEN_MAX], hf_str name, const char *what)
{
    (void)snprintf(why, HF_MESSAGE_LEN_MAX, "the search attribute '%.*s' %s", HF_STR_ARGS(name), what);
    return false;
}

bool hf_attributes_are_good(hf_core *core, hf_str namespace_, const hf_pb_search_attributes *attributes,
                            char ret_why[HF_MESSAGE_LEN_MAX])
{
    if (attributes == NULL || attributes->indexed_fields.count == 0) {
        return true;
    }
    const hf_namespace *space = hf_namespace_find(core, namespace_);
    size_t len = 0;
    if (attributes->indexed_fields.count > HF_ATTRIBUTES_MAX) {
        (void)snprintf(ret_why, HF_MESSAGE_LEN_MAX, "a run has at most %d search attributes", HF_ATTRIBUTES_MAX);
        return false;
    }
    for (size_t i = 0; i < attributes->indexed_fields.count; i++) {
        hf_str name = attributes->indexed_fields.items[i].key;
        const hf_pb_payload *payload = attributes->indexed_fields.items[i].value;
        hf_attr_type type = HF_ATTR_NONE;
        hf_attr_value value;
        if (!type_of(core, space, name, &type)) {
            return refuse(ret_why, name, "is not one of the namespace's custom ones: add it first");
        }
        if (payload == NULL) {
            continue;
        }
        if (payload->data.len > HF_ATTRIBUTE_LEN_MAX) {
            return refuse(ret_why, name, "has more than 2048 bytes");
        }
        len += name.len + payload->data.len;
        if (type != HF_ATTR_NONE && !hf_attr_value_of_payload(&core->scratch, type, payload, &value)) {
            (void)snprintf(ret_why, HF_MESSAGE_LEN_MAX, "the search attribute '%.*s' is a %s, and its value is not",
                           HF_STR_ARGS(name), hf_attr_type_name(type));
            return false;
        }
    }
    if (len > HF_ATTRIBUTES_LEN_MAX) {
        (void)snprintf(ret_why, HF_MESSAGE_LEN_MAX, "the search attributes of a run have %zu bytes, %d at most", len,
                       HF_ATTRIBUTES_LEN_MAX);
        return false;
    }
    return true;
}

static bool says_type(const hf_pb_payload *payload)
{
    for (size_t i = 0; payload != NULL && i < payload->metadata.count; i++) {
        if (hf_str_equal(payload->metadata.items[i].key, HF_STR("type"))) {
            return true;
        }
    }
    return payload == NULL;
}

static hf_pb_payload *with_type(hf_arena *arena, const hf_pb_payload *payload, hf_attr_type type)
{
    size_t count = payload->metadata.count;
    hf_pb_payload *copy = HF_ARENA_NEW(arena, hf_pb_payload);
    hf_pb_payload_metadata_entry *metadata = HF_ARENA_ARRAY(arena, hf_pb_payload_metadata_entry, count + 1);
    if (copy == NULL || metadata == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(metadata, payload->metadata.items, count * sizeof *metadata);
    }
    metadata[count] =
        (hf_pb_payload_metadata_entry){.key = HF_STR("type"), .value = hf_str_of(hf_attr_type_name(type))};
    *copy = *payload;
    copy->metadata.items = metadata;
    copy->metadata.count = count + 1;
    return copy;
}

hf_pb_search_attributes *hf_attributes_typed(hf_core *core, hf_str namespace_, hf_pb_search_attributes *attributes)
{
    if (attributes == NULL) {
        return NULL;
    }
    const hf_namespace *space = hf_namespace_find(core, namespace_);
    hf_pb_search_attributes *typed = NULL;
    for (size_t i = 0; core->scratch.status == HF_OK && i < attributes->indexed_fields.count; i++) {
        hf_attr_type type = HF_ATTR_NONE;
        const hf_pb_search_attributes_indexed_fields_entry *given = &attributes->indexed_fields.items[i];
        if (says_type(given->value) || !type_of(core, space, given->key, &type) || type == HF_ATTR_NONE) {
            continue;
        }
        if (typed == NULL) {
            size_t count = attributes->indexed_fields.count;
            typed = HF_ARENA_NEW(&core->scratch, hf_pb_search_attributes);
            hf_pb_search_attributes_indexed_fields_entry *items =
                HF_ARENA_ARRAY(&core->scratch, hf_pb_search_attributes_indexed_fields_entry, count);
            if (typed == NULL || items == NULL) {
                break;
            }
            memcpy(items, attributes->indexed_fields.items, count * sizeof *items);
            *typed = *attributes;
            typed->indexed_fields.items = items;
        }
        typed->indexed_fields.items[i].value = with_type(&core->scratch, given->value, type);
    }
    if (core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return attributes;
    }
    return typed != NULL ? typed : attributes;
}
