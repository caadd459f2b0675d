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
