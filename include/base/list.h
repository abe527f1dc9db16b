/*
 * Intrusive doubly linked lists. An entry embeds a list_link, so to add it allocates nothing. A
 * zeroed list_link is in no list. A list is a ring that its head closes, so that no entry is a
 * special case; a list must not move in memory, and must be initialized before its first use.
 */
#pragma once

#include "base/macro.h"

struct list_link {
    struct list_link *next; /* NULL: in no list */
    struct list_link *prev;
};

struct list {
    struct list_link ring; /* next is the first entry, prev the last */
};

/* The value of a list in static memory, in place of list_init. */
#define LIST_EMPTY(list)                       \
    {                                          \
        .ring = { &(list).ring, &(list).ring } \
    }

static inline void list_init(struct list *l)
{
    l->ring.next = l->ring.prev = &l->ring;
}

static inline bool list_is_empty(const struct list *l)
{
    assert(l->ring.next != NULL); /* initialized */
    return l->ring.next == &l->ring;
}

static inline bool list_is_linked(const struct list_link *x)
{
    return x->next != NULL;
}

/* Adds x before `at`, which is an entry or the ring of a list. */
static inline void list_insert(struct list_link *at, struct list_link *x)
{
    assert(!list_is_linked(x) && list_is_linked(at));
    assert(at->prev->next == at);
    x->next = at;
    x->prev = at->prev;
    at->prev->next = x;
    at->prev = x;
}

static inline void list_push_front(struct list *l, struct list_link *x)
{
    list_insert(l->ring.next, x);
}

static inline void list_push_back(struct list *l, struct list_link *x)
{
    list_insert(&l->ring, x);
}

/* Removes x from its list. */
static inline void list_remove(struct list_link *x)
{
    assert(list_is_linked(x));
    assert(x->next->prev == x && x->prev->next == x);
    x->prev->next = x->next;
    x->next->prev = x->prev;
    x->next = x->prev = NULL;
}

/* Moves all entries to the empty list `to`, in their order. */
static inline void list_move(struct list *to, struct list *from)
{
    assert(list_is_empty(to));
    if (list_is_empty(from))
        return;
    *to = *from;
    to->ring.next->prev = to->ring.prev->next = &to->ring;
    list_init(from);
}

/* NULL: the list is empty. */
static inline struct list_link *list_first(const struct list *l)
{
    return list_is_empty(l) ? NULL : l->ring.next;
}

static inline struct list_link *list_last(const struct list *l)
{
    return list_is_empty(l) ? NULL : l->ring.prev;
}

/* The entry after x; NULL: x is the last. */
static inline struct list_link *list_next(const struct list *l, const struct list_link *x)
{
    assert(list_is_linked(x));
    return x->next == &l->ring ? NULL : x->next;
}

static inline struct list_link *list_prev(const struct list *l, const struct list_link *x)
{
    assert(list_is_linked(x));
    return x->prev == &l->ring ? NULL : x->prev;
}

/* For the macros below: the object that has the link at that offset; NULL if there is no link. */
static inline void *list_item(struct list_link *x, size_t offset)
{
    return x == NULL ? NULL : (char *)x - offset;
}

/* The same as objects: `member` is the list_link of `type`. */
#define LIST_FIRST(list, type, member) ((type *)list_item(list_first(list), offsetof(type, member)))
#define LIST_LAST(list, type, member)  ((type *)list_item(list_last(list), offsetof(type, member)))
#define LIST_NEXT(list, item, type, member) \
    ((type *)list_item(list_next(list, &(item)->member), offsetof(type, member)))
#define LIST_PREV(list, item, type, member) \
    ((type *)list_item(list_prev(list, &(item)->member), offsetof(type, member)))

/*
 * Walks all objects from the first to the last. The body may remove and free `item`, but no other
 * entry.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type and a name to declare */
#define LIST_FOR_EACH(type, item, list, member)                                       \
    for (type *item = LIST_FIRST(list, type, member), *item##_next = NULL;            \
         item != NULL && ((item##_next = LIST_NEXT(list, item, type, member)), true); \
         item = item##_next)
/* NOLINTEND(bugprone-macro-parentheses) */
