/* The registry of namespaces and of their search attributes. It is small and wholly in memory; each namespace that was registered or changed
 * has a row (ledger/namespaces.h), written with the commit of the call that changed it.
 *
 * engine-B1  "default" is in every store. Every other name is a namespace from the commit on that registers it.
 *     It stays there while its runs are being deleted, with the state DELETED.
 * engine-B2  A call that names a namespace which is not there fails with NamespaceNotFound and changes nothing. */
#ifndef HF_ENGINE_NAMESPACES_H
#define HF_ENGINE_NAMESPACES_H

#include "engine/core_private.h"
#include "history/limits.h"
#include "where/where.h"

#define HF_NAMESPACE_DATA_MAX 64        /* keys of its data */
#define HF_NAMESPACE_TEXT_LEN_MAX 10000 /* bytes of its description, owner and data together */

typedef struct hf_attribute {
    hf_owned name;
    hf_attr_type type;
} hf_attribute;

typedef struct hf_namespace_datum {
    hf_owned key, value;
} hf_namespace_datum;

struct hf_namespace {
    hf_map_node by_name; /* of core->namespaces */
    hf_node link;        /* of core->namespaces_all, in order of arrival */
    hf_owned name;
    int32_t state; /* NamespaceState */
    hf_owned description;
    hf_owned owner;
    int64_t retention; /* ns; 0 = for ever */
    HF_VEC(hf_namespace_datum) data;
    HF_VEC(hf_attribute) attributes; /* custom ones, by name */
    bool is_dirty;                   /* its row is written with the open batch */
};

/* NULL: there is none. Also finds one that is being deleted. */
hf_namespace *hf_namespace_find(hf_core *core, hf_str name);
/* The same. In a core that is not strict every good name becomes a namespace when it is first used. */
bool hf_namespace_is_known(hf_core *core, hf_str name);
/* It is deleted: nobody sees it any more. Its runs go first, then its row (operations.h). */
void hf_namespace_mark_deleted(hf_core *core, hf_str name);
/* It is gone, with the open batch. */
void hf_namespace_remove(hf_core *core, hf_str name);
/* An hf_where_find over an hf_namespace: its custom attributes. */
bool hf_namespace_find_attribute(const void *space, hf_str name, hf_attr_type *ret_type);

/* At opening: the rows; for a file without them, the names that its runs have. */
hf_status hf_namespaces_open(hf_op *op, hf_core *core, hf_store *store, bool has_rows);
void hf_namespaces_deinit(hf_core *core);
/* Adds the rows that have changed to a batch. */
void hf_namespaces_put(hf_core *core, hf_commit_batch *batch);

void hf_register_namespace_call(hf_core *core, hf_call *call);
void hf_update_namespace_call(hf_core *core, hf_call *call);
void hf_deprecate_namespace_call(hf_core *core, hf_call *call);
void hf_describe_namespace_call(hf_core *core, hf_call *call);
void hf_list_namespaces_call(hf_core *core, hf_call *call);
void hf_add_search_attributes_call(hf_core *core, hf_call *call);
void hf_remove_search_attributes_call(hf_core *core, hf_call *call);
void hf_list_search_attributes_call(hf_core *core, hf_call *call);
void hf_get_search_attributes_call(hf_core *core, hf_call *call);

/* Fills the description of a namespace; check the arena's status. */
void hf_namespace_show(const hf_core *core, const hf_namespace *space, hf_arena *arena,
                       hf_pb_describe_namespace_response *ret_response);

/* Whether a run of this namespace may have these search attributes. `ret_why` says why not, with the name. */
bool hf_attributes_are_good(hf_core *core, hf_str namespace_, const hf_pb_search_attributes *attributes,
                            char ret_why[HF_MESSAGE_LEN_MAX]);
/* The same with the type of each in its metadata, where the caller has not said it: SDKs read attributes by it. In the scratch arena, or the
 * argument if nothing is added. */
hf_pb_search_attributes *hf_attributes_typed(hf_core *core, hf_str namespace_, hf_pb_search_attributes *attributes);

#endif
