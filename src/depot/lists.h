/* Lists of keys, records of replies, and pages. */
#ifndef HF_DEPOT_LISTS_H
#define HF_DEPOT_LISTS_H

#include "depot/depot_private.h"

typedef struct hf_change_group hf_change_group;

/* ---- stir.c: keys that were changed while something flies -------------------------------------------------------- */

/* The base of the key has changed, or was thrown away, by something that no fetch has brought. */
void hf_stir_note(hf_depot *depot, const hf_depot_slot *slot);
/* Whether neither the key, nor its namespace, nor all have been stirred since depot->stir was `since`, when a flight
 * began that is still in the air. */
bool hf_stir_is_quiet(const hf_depot *depot, const hf_depot_slot *slot, uint64_t since);
/* Nothing flies any more. */
void hf_stir_forget(hf_depot *depot);

/* ---- record.c: what a reply brings besides its own value --------------------------------------------------------- */

/* By hf_reply_clear. */
void hf_records_drop(hf_reply *reply);
/* Adds a change for each record of the reply, and takes the records. False: no memory; nothing was added. */
bool hf_records_add_changes(hf_depot *depot, hf_depot_flight *flight, hf_change_group *group);

/* ---- refs.c: who refers to a key --------------------------------------------------------------------------------- */

/* A list watcher of the slot's key comes or goes. */
void hf_refs_watch(hf_depot *depot, const hf_depot_slot *slot);
void hf_refs_unwatch(hf_depot *depot, const hf_depot_slot *slot);
/* A value of the key came into memory: if the key is referred to or watched, and the value is a list, its members are
 * noted. */
void hf_refs_saw(hf_depot *depot, hf_str key, const hf_value *value);
/* The visible value of the key has changed: list watchers of lists that refer to it hear of it. */
void hf_refs_changed(hf_depot *depot, hf_str key);
/* A key got another name: lists may refer to it by the old one. */
void hf_refs_renamed(hf_depot *depot);
/* Something has changed about any number of keys: all list watchers hear of it. */
void hf_refs_changed_all(hf_depot *depot);

/* ---- list.c ------------------------------------------------------------------------------------------------------ */

/* Reads the members of a list, the value of `key`, by the options. Outside the library, by any fiber or thread. */
hf_status hf_list_read(hf_depot *depot, hf_str key, const hf_value *list, const hf_depot_list_options *options,
                       hf_items **ret_items);
/* None; NULL = no memory. */
hf_items *hf_items_new(void);

/* ---- pages.c ----------------------------------------------------------------------------------------------------- */

/* Flights of pages before and after a window have slots of their own, so that both may fly at once: the key of such a slot
 * is that of the query with two bytes before its type. How many bytes of a type are such a mark. */
static inline size_t hf_page_mark_len(const char *type)
{
    return type[0] == '\x01' && (type[1] == 'a' || type[1] == 'p') && type[2] != '\0' ? 2 : 0;
}
/* The state of the pages of a query. */
typedef struct hf_paging {
    hf_key_node key;     /* of the query, in depot->paging; its bytes follow the struct */
    hf_node in_idle;     /* in depot->paging_idle, while nobody has it open */
    size_t users;        /* hf_pages that have it open */
    size_t page_size;    /* set by the first */
    size_t window_max;   /* the same: items */
    hf_span ttl;         /* the same */
    hf_status errors[3]; /* of the last load by direction; HF_OK = it did not fail */
    char bytes[];
} hf_paging;
/* The pages of a key that is a query; NULL = nobody has opened them. */
hf_paging *hf_paging_find(const hf_depot *depot, hf_str key);
/* A flight has begun, or left its slot with flight->status. */
void hf_pages_began(hf_depot *depot, const hf_depot_flight *flight);
void hf_pages_ended(hf_depot *depot, const hf_depot_flight *flight);
/* A watcher of the slot wanted to fetch, and the origin is not asked now. */
void hf_pages_refused(hf_depot *depot, const hf_depot_slot *slot, hf_status status);
/* The token where the next attempt of a page begins. False: there is none any more. */
bool hf_page_aim(hf_depot *depot, hf_depot_flight *flight);
/* By the change of a flight of a page, which leads its group: whether the page still fits. */
hf_status hf_page_decide(hf_depot *depot, hf_change *change);
/* The change of the window, for the group of such a flight. NULL = no memory. */
hf_change *hf_page_change_new(hf_depot *depot, hf_depot_flight *flight);
/* When the depot is taken down. */
void hf_paging_drop_all(hf_depot *depot);

#endif
