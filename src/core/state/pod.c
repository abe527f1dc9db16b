/* A pod's state and the doubt about it. A pod is bound because its object says so, or it holds
 * cards by our own record only: reserved, or confirmed by the API server and not yet shown by the
 * watch. Only such a pod can be missing. */
#include "core/state/pod.h"

#include "base/mem.h"
#include "core/limit.h"
#include "core/request/request.h"

/*
 * An ASSUME_TIME further ahead was not written by us or by a device plugin: clocks of two machines
 * differ by less. A user who may edit a pod can write any value, and our own times must exceed the
 * latest one that we accepted. With a limit relative to now, a later process accepts the same
 * values again, and there is always room for later times.
 */
#define ASSUME_AHEAD_NS (UINT64_C(86400) * 1000000000)

static bool pod_is_reserved_or_confirmed(const struct pod *p)
{
    return p->state == POD_RESERVED || p->state == POD_CONFIRMED;
}

struct pod *pod_new(struct str uid, struct str name)
{
    struct pod *p = mem_alloc(sizeof(*p) + uid.n + name.n);
    if (p == NULL)
        return NULL;
    char *at = (char *)(p + 1);
    p->uid = str_store(&at, uid);
    p->name = str_store(&at, name);
    p->card = -1;
    return p;
}

void pod_set_list(struct pod *p, char *list, size_t n)
{
    static_assert(LIMIT_DEVICES_BYTES <= UINT16_MAX, "list_n");
    assert(n <= LIMIT_DEVICES_BYTES);
    mem_free(p->list);
    p->list = list;
    p->list_n = (uint16_t)n;
}

void pod_note_missing(struct pod *p)
{
    assert(pod_is_reserved_or_confirmed(p));
    p->missing = true;
    p->asked = false;
}

void pod_note_shown(struct pod *p)
{
    p->missing = false;
    p->asked = false;
}

bool pod_needs_read(struct pod *p, bool read_back)
{
    assert(pod_is_reserved_or_confirmed(p) && (p->missing || !p->asked));
    if (!p->missing || (p->asked && read_back))
        return false;
    p->asked = true;
    return true;
}

void pod_take_annotations(struct pod *p, const struct pod_view *view, uint64_t now_ns)
{
    uint64_t ns = 0;
    enum dialect d = p->request->dialect;
    const struct said_view *said = &view->said[d];
    assert(p->node != NULL);
    /* Schedulers of other dialects may leave the annotation to the plugin. */
    bool others = d != DIALECT_OWN && dialect_facts(d)->assigned.p != NULL;
    if (str_eq(said->assigned, dialect_served(d)))
        p->ack = POD_ACK_SERVED;
    else if (others || str_eq(said->assigned, dialect_waits(d)))
        p->ack = POD_ACK_WAITS;
    else
        p->ack = POD_ACK_NONE;
    p->assume_ns = str_to_u64(said->assume_time, now_ns + ASSUME_AHEAD_NS, &ns) ? ns : 0;
}

void pod_check(const struct pod *p)
{
    assert((p->node != NULL) == pod_holds(p));
    assert(pod_is_reserved_or_confirmed(p) || (p->seen && !p->missing));
    assert(p->missing || !p->asked);
    assert(pod_holds(p) || (p->card == -1 && !pod_starts(p) && !p->exchanging && !p->unreadable &&
                            p->ack == POD_ACK_NONE));
    assert(p->request != NULL && p->request->mem >= 0 && p->request->mem <= REQUEST_MEM_MAX);
    assert((p->edited == NULL && !p->unwanting) || p->state == POD_RESERVED);
    assert(pod_holds(p) ? p->keeper == NULL : !p->kept || p->keeper != NULL);
    assert((p->allocation != NULL) == (pod_holds(p) || p->kept));
    assert(p->list == NULL || (pod_holds(p) && dialect_has_uuids(p->request->dialect)));
    assert(p->state != POD_BOUND || p->nominated == NULL);
    assert(pod_holds(p) || p->kept || p->keeper == p->nominated);
    assert(!p->deleting || (p->keeper == NULL && p->nominated == NULL));
}
