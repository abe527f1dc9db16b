/* What doctor says of a pod: its request, and whether its annotations agree with its node. */
#include "core/gpushare.h"
#include "kubectl/doctor.h"

#include <inttypes.h>

/* The device plugin acknowledges a pod when the kubelet starts it. Pulling the image comes later,
 * so this is long. */
#define ACKNOWLEDGE_S 300

#define NS_OF_S UINT64_C(1000000000)

static int64_t doctor_pods_charge(const struct node *n, const struct request *r,
                                  const struct share *shares, uint32_t count, uint32_t card)
{
    for (uint32_t i = 0; i < count; i++) {
        if (shares[i].card == card)
            return share_charge(r, &shares[i], n->cards[card].total);
    }
    return 0;
}

/* What its processes use, by cardpack-node: of the cards that the annotations name, and of others.
 */
static void doctor_pods_check_use(struct findings *f, const struct measured *m,
                                  const struct node *n, const struct request *r,
                                  const struct pod_view *v, struct str object)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    const struct measured_node *real = measured_of(m, v->node);
    placement_read(v, r, &there);
    uint32_t count = shares_of(r, there.grants, there.n, v->initialized, shares);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        uint32_t mib = 0;
        if (!node_has_card(n, i) || !measured_pod_of(m, real, v->uid, i, &mib) || mib == 0)
            continue;
        int64_t total = n->cards[i].total;
        int64_t share = doctor_pods_charge(n, r, shares, count, i);
        if (share == 0)
            finding_add(f, FINDING_FAIL, object,
                        "delete the pod; if it sets NVIDIA_VISIBLE_DEVICES by itself, remove that",
                        "its processes use %" PRIu32 " MiB of card %" PRIu32
                        " of node %.*s, which its annotations do not name",
                        mib, i, STR_ARG(v->node));
        else if (measured_exceeds(measured_card_of(real, i), total, share, mib))
            finding_add(f, FINDING_WARN, object,
                        "let it request what it uses, or use a node that enforces the shares",
                        "it uses %" PRIu32 " MiB of card %" PRIu32 " of node %.*s, and that is "
                        "more than its share",
                        mib, i, STR_ARG(v->node));
    }
}

static void doctor_pods_check_place(struct findings *f, const struct node *n,
                                    const struct request *r, const struct pod_view *v,
                                    struct str object)
{
    struct placement there _uninitialized_;
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    placement_read(v, r, &there);
    uint32_t count = shares_of(r, there.grants, there.n, v->initialized, shares);
    const struct dialect_facts *of = dialect_facts(r->dialect);
    const struct said_view *said = &v->said[r->dialect];
    const char *advice = "delete the pod, so that its controller makes a new one: its card may be "
                         "given to others";
    if (count == 0 && said->idx.p == NULL && !v->said_allocation)
        finding_add(
            f, FINDING_FAIL, object,
            "delete the pod, and check that the scheduler of its schedulerName calls "
            "cardpack for the resources of the pod, and that it was not made with a nodeName",
            "bound to node %.*s without a card: it was not scheduled through cardpack",
            STR_ARG(v->node));
    else if (count == 0)
        finding_add(f, FINDING_FAIL, object, advice,
                    "its annotations name no card: %.*s is \"%.*s\"",
                    STR_ARG(of->idx.p != NULL ? of->idx : GPUSHARE_ANNOTATION_ALLOCATION),
                    STR_ARG(str_head(said->idx, 40)));
    for (uint32_t i = 0; i < count; i++) {
        const struct share *s = &shares[i];
        if (!node_has_card(n, s->card))
            finding_add(f, FINDING_FAIL, object, advice,
                        "its annotations name card %u, which node %.*s does not have", s->card,
                        STR_ARG(v->node));
        else if (share_charge(r, s, n->cards[s->card].total) > n->cards[s->card].total)
            finding_add(f, FINDING_FAIL, object, advice,
                        "it holds %lld of card %u of node %.*s, which has %lld",
                        (long long)share_charge(r, s, n->cards[s->card].total), s->card,
                        STR_ARG(v->node), (long long)n->cards[s->card].total);
    }
}

/* The time of the Binding, in seconds; 0: not known. */
static uint64_t doctor_pods_bound_s(const struct said_view *said)
{
    uint64_t ns = 0;
    return str_to_u64(said->assume_time, UINT64_MAX, &ns) ? ns / NS_OF_S : 0;
}

static void doctor_pods_check_plugin(struct findings *f, const struct request *r,
                                     const struct pod_view *v, uint32_t now_s, struct str object)
{
    const struct said_view *said = &v->said[r->dialect];
    uint64_t bound_s = doctor_pods_bound_s(said);
    const char *advice = "look at the log of the device plugin on its node; then delete the pod, "
                         "because its containers may use another card";
    if (!str_eq(said->assigned, STR("false")))
        return;
    if (str_eq(v->phase, STR("Running")))
        finding_add(f, FINDING_WARN, object, advice,
                    "it runs, and the device plugin has not acknowledged it: "
                    "%.*s is \"false\"",
                    STR_ARG(dialect_facts(r->dialect)->assigned));
    else if (bound_s > 0 && bound_s + ACKNOWLEDGE_S < now_s)
        finding_add(f, FINDING_WARN, object, advice,
                    "bound %llu minutes ago, and the device plugin has not acknowledged it",
                    (unsigned long long)(now_s - bound_s) / 60);
}

static void doctor_pods_check_bound(struct findings *f, const struct cache *c,
                                    const struct measured *m, const struct request *r,
                                    const struct pod_view *v, uint32_t now_s, struct str object)
{
    const struct node *n = cache_node(c, v->node);
    if (n == NULL || n->sizes == NULL) {
        finding_add(f, FINDING_WARN, object, "delete the pod, unless its node comes back",
                    "bound to node %.*s, which does not exist", STR_ARG(v->node));
        return;
    }
    if (n->fault != NODE_OK) {
        finding_add(f, FINDING_FAIL, object, "see the finding about the node",
                    "bound to node %.*s, of which no cards are known", STR_ARG(v->node));
        return;
    }
    doctor_pods_check_place(f, n, r, v, object);
    doctor_pods_check_plugin(f, r, v, now_s, object);
    doctor_pods_check_use(f, m, n, r, v, object);
}

void doctor_pod(struct findings *f, const struct cache *c, const struct measured *m,
                const struct pod_view *v, bool claims, uint32_t now_s)
{
    struct request r _uninitialized_;
    struct err fault = ERR_INIT;
    fault.code = request_read(v, &r, &fault);
    if (pod_view_terminal(v) || (fault.code == OK && !request_shares(&r)))
        return;
    struct str object = finding_pod(f, v->namespace, v->name);
    if (fault.code != OK && !pod_view_bound(v)) {
        finding_add(f, FINDING_FAIL, object, "correct the pod: docs/requests.md",
                    "its request is not valid: %s", fault.text);
        return;
    }
    if (v->unknown.p != NULL)
        finding_add(f, FINDING_WARN, object, "correct the name: docs/requests.md has all of them",
                    "annotation %.*s has no effect: cardpack does not know it",
                    STR_ARG(str_head(v->unknown, 80)));
    if (claims && fault.code == OK)
        doctor_pod_claims(f, object);
    if (v->vacated.p != NULL)
        finding_add(f, FINDING_WARN, object,
                    "cardpack-node on the node finishes it in some milliseconds: look at its log; "
                    "if another device plugin runs there now, remove the annotation",
                    "it exchanges its cards with another pod, by annotation %.*s: no pod is placed "
                    "on node %.*s meanwhile",
                    STR_ARG(CARDPACK_ANNOTATION_VACATED), STR_ARG(v->node));
    if (pod_view_bound(v))
        doctor_pods_check_bound(f, c, m, &r, v, now_s, object);
    else if (v->idx.p != NULL || v->said_allocation)
        finding_add(
            f, FINDING_WARN, object,
            "remove the annotation from the template that the pod comes from: only a "
            "Binding writes it",
            "it is not bound, and has the annotation %.*s of a bound pod",
            STR_ARG(v->idx.p != NULL ? GPUSHARE_ANNOTATION_IDX : GPUSHARE_ANNOTATION_ALLOCATION));
}

/* Before a list of cards: "no card" before an empty one. */
static const char *doctor_pods_noun(struct str cards)
{
    if (cards.n == 0)
        return "no card";
    return memchr(cards.p, ',', cards.n) != NULL ? "cards " : "card ";
}

void doctor_listed(struct findings *f, struct str node, const struct usage_view *u,
                   struct doctor_listed_sum *sum)
{
    static const char *const advice =
        "look at the log of cardpack-node on its node; if it does not set the annotations back, "
        "delete the pod";
    sum->nodes += u->asked ? 1 : 0;
    sum->containers += u->compared;
    sum->differences += u->n_differences;
    for (size_t i = 0; i < u->n_differences; i++) {
        const struct usage_difference *d = &u->differences[i];
        struct str object = finding_pod(f, d->namespace, d->name);
        switch (d->kind) {
        case USAGE_DIFFERS_CARDS:
            finding_add(f, FINDING_FAIL, object, advice,
                        "container %.*s: its annotations name %s%.*s, and the devices that it "
                        "has by the kubelet's podresources are of %s%.*s of node %.*s",
                        STR_ARG(d->container), doctor_pods_noun(d->annotated),
                        STR_ARG(d->annotated), doctor_pods_noun(d->given), STR_ARG(d->given),
                        STR_ARG(node));
            break;
        case USAGE_DIFFERS_OWNER:
            finding_add(f, FINDING_FAIL, object, "delete the pod, and restart the kubelet there",
                        "container %.*s: by the kubelet's podresources on node %.*s it has devices "
                        "that are not its pod's by the kubelet's checkpoint",
                        STR_ARG(d->container), STR_ARG(node));
            break;
        case USAGE_DIFFERS_NONE:
        case USAGE_DIFFERS_KINDS:
            finding_add(f, FINDING_FAIL, object, "delete the pod",
                        "container %.*s: its annotations name %s%.*s, and the kubelet's "
                        "podresources on node %.*s have no device for it",
                        STR_ARG(d->container), doctor_pods_noun(d->annotated),
                        STR_ARG(d->annotated), STR_ARG(node));
            break;
        }
    }
}

void doctor_tell_listed(struct findings *f, const struct doctor_listed_sum *sum)
{
    if (sum->nodes > 0 && sum->differences == 0)
        finding_add(f, FINDING_OK, STR("podresources"), "",
                    "the %s of %zu %s devices for %llu containers, of the cards that the "
                    "annotations name",
                    sum->nodes == 1 ? "kubelet" : "kubelets", sum->nodes,
                    sum->nodes == 1 ? "node lists" : "nodes list",
                    (unsigned long long)sum->containers);
}
