/* Intrusive doubly linked list. The head is a node too: an empty list points at itself. */
#ifndef HF_BASE_LIST_H
#define HF_BASE_LIST_H

#include "base/base.h"

typedef struct hf_node hf_node;
struct hf_node {
    hf_node *next; /* NULL when the node is in no list */
    hf_node *prev;
};

typedef struct hf_list {
    hf_node head;
} hf_list;

static inline void hf_list_init(hf_list *list)
{
    list->head.next = list->head.prev = &list->head;
}

static inline bool hf_list_is_empty(const hf_list *list)
{
    return list->head.next == &list->head;
}

static inline bool hf_node_is_linked(const hf_node *node)
{
    return node->next != NULL;
}

static inline void hf_node_insert_(hf_node *node, hf_node *prev, hf_node *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void hf_list_push_back(hf_list *list, hf_node *node)
{
    hf_node_insert_(node, list->head.prev, &list->head);
}

static inline void hf_list_push_front(hf_list *list, hf_node *node)
{
    hf_node_insert_(node, &list->head, list->head.next);
}

/* Links `node` in front of `at`, which is linked. */
static inline void hf_list_insert_before(hf_node *at, hf_node *node)
{
    hf_node_insert_(node, at->prev, at);
}

static inline void hf_list_remove(hf_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

static inline hf_node *hf_list_first(const hf_list *list)
{
    return hf_list_is_empty(list) ? NULL : list->head.next;
}

static inline hf_node *hf_list_last(const hf_list *list)
{
    return hf_list_is_empty(list) ? NULL : list->head.prev;
}

static inline hf_node *hf_list_pop_front(hf_list *list)
{
    hf_node *node = hf_list_first(list);
    if (node != NULL) {
        hf_list_remove(node);
    }
    return node;
}

/* Moves all nodes of `from`, in order, to `to`; nodes that `to` had before are forgotten. */
static inline void hf_list_move_all(hf_list *from, hf_list *to)
{
    hf_list_init(to);
    if (!hf_list_is_empty(from)) {
        to->head = from->head;
        to->head.next->prev = &to->head;
        to->head.prev->next = &to->head;
        hf_list_init(from);
    }
}

/* Moves all nodes of `from`, in order, behind those of `to`. */
static inline void hf_list_append_all(hf_list *to, hf_list *from)
{
    if (!hf_list_is_empty(from)) {
        from->head.next->prev = to->head.prev;
        from->head.prev->next = &to->head;
        to->head.prev->next = from->head.next;
        to->head.prev = from->head.prev;
        hf_list_init(from);
    }
}

/* `node` may be removed in the body, others may not. */
#define HF_LIST_EACH(node, list)                                                               \
    for (hf_node *node = (list)->head.next, *node##_next_ = node->next; node != &(list)->head; \
         node = node##_next_, node##_next_ = node->next)

#endif
