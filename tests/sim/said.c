/* Reads the index annotation of a pod. */
#include "slices.h"

#include <string.h>

#define BLANKS " \t\n\v\f\r"

/* The number that begins here, and where it ends; -1: none, or one that no card has. */
static int64_t number(const char *at, const char **ret_end)
{
    int64_t card = *at >= '0' && *at <= '9' ? 0 : -1;
    for (; *at >= '0' && *at <= '9' && card <= 100000; at++)
        card = card * 10 + (*at - '0');
    *ret_end = at;
    return card > 100000 ? -1 : card;
}

int64_t pod_object_card(const struct pod_object *p)
{
    const char *end;
    int64_t card = number(p->idx.z, &end);
    return *end == '\0' ? card : -1;
}

unsigned pod_object_said(const struct pod_object *p, int64_t cards[static SAID_MAX])
{
    unsigned n = 0;
    for (const char *c = p->idx.z; *c != '\0';) {
        const char *end;
        bool known = false;
        c += strspn(c, BLANKS);
        c += *c == '+' ? 1 : 0;
        int64_t card = number(c, &end);
        end += strspn(end, BLANKS);
        bool whole = card >= 0 && (*end == ',' || *end == '\0');
        c += strcspn(c, ",");
        c += *c == ',' ? 1 : 0;
        for (unsigned i = 0; i < n; i++)
            known = known || cards[i] == card;
        if (whole && !known && n < SAID_MAX)
            cards[n++] = card;
    }
    return n;
}

bool pod_object_names(const struct pod_object *p, int64_t card)
{
    int64_t cards[SAID_MAX];
    unsigned n = pod_object_said(p, cards);
    for (unsigned i = 0; i < n; i++) {
        if (cards[i] == card)
            return true;
    }
    return false;
}
