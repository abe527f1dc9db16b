/* What doctor says of a pod: its request, and whether its annotations agree with its node. */
#include "core/dialect/gpushare.h"
#include "kubectl/card_pods.h"
#include "kubectl/doctor.h"

#include <inttypes.h>

/* The device plugin acknowledges a pod when the kubelet starts it. Pulling the image comes later,
 * so this is long. */
#define ACKNOWLEDGE_S 300

#define NS_OF_S UINT64_C(1000000000)

/* A pod that holds cards, by the cache. */
struct bound {
    const struct pod_view *view;
    const struct request *request; /* as its spec says */
    const struct node *node;
    const struct pod *pod;
    struct str object;
    bool sure; /* it has no other way to a card than its annotations */
};

/* NULL: its annotations do not name the card. */
static const struct share *doctor_pods_share(const struct bound *b, uint32_t card)
{
    const struct pod_allocation *h = b->pod->allocation;
    for (uint32_t i = 0; i < h->n_shares; i++) {
        if (h->shares[i].card == card)
            return &h->shares[i];
    }
    return NULL;
}

/* What its processes use, by cardpack-node: of the cards that the annotations name, and of others.
 */
static void doctor_pods_check_use(struct findings *f, const struct measured *m,
                                  const struct bound *b)
{
    const struct node *n = b->node;
    const struct measured_node *real = measured_of(m, n->name);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        uint32_t mib = 0;
        if (!node_has_card(n, i) || !measured_pod_of(m, real, b->view->uid, i, &mib) || mib == 0)
            continue;
        int64_t total = n->cards[i].total;
        const struct share *s = doctor_pods_share(b, i);
        if (s == NULL && b->sure)
            finding_add(f, FINDING_FAIL, b->object,
                        "look at the log of cardpack-node on its node: if it sets the annotations "
                        "to this card, wait; else delete the pod, and if it sets "
                        "NVIDIA_VISIBLE_DEVICES by itself, remove that",
                        "its processes use %" PRIu32 " MiB of card %" PRIu32
                        " of node %.*s, which its annotations do not name",
                        mib, i, STR_ARG(n->name));
        else if (s != NULL && measured_exceeds(measured_card_of(real, i), total,
                                               node_charge_of(n, b->request, s), mib))
            finding_add(f, FINDING_WARN, b->object,
                        "let it request what it uses, or use a node that enforces the shares",
                        "it uses %" PRIu32 " MiB of card %" PRIu32 " of node %.*s, and that is "
                        "more than its share",
                        mib, i, STR_ARG(n->name));
    }
}

/* What its annotations say of cards, readable or not; absent: nothing. */
static struct str doctor_pods_said(const struct pod_view *v, enum dialect d, struct str *ret_name)
{
    *ret_name = dialect_facts(d)->idx;
    for (size_t i = 0; i < v->n_seats; i++) {
        if (v->seats[i].dialect != d)
            continue;
        *ret_name = dialect_facts(d)->seat;
        return v->seats[i].cards;
    }
    if (v->said[d].idx.p == NULL && d == DIALECT_OWN && v->former.allocation)
        return STR("");
    return v->said[d].idx;
}

static void doctor_pods_check_none(struct findings *f, const struct bound *b)
{
    struct str name;
    enum dialect d = b->request->dialect;
    struct str said = doctor_pods_said(b->view, d, &name);
    /* gpu-manager writes the card that it has chosen when the container starts. */
    if (said.p == NULL && dialect_facts(d)->match == DIALECT_MATCH_ORDER &&
        str_eq(b->view->phase, STR("Pending")))
        return;
    if (said.p == NULL)
        finding_add(f, FINDING_FAIL, b->object,
                    "check that the scheduler of its schedulerName calls cardpack for the "
                    "resources of the pod, and that it was not made with a nodeName; then delete "
                    "it: it may use memory of a card that others have",
                    "bound to node %.*s without a card: it was not scheduled through cardpack",
                    STR_ARG(b->node->name));
    else
        finding_add(f, FINDING_FAIL, b->object,
                    "find out who wrote the annotation, and correct it if the cards of its "
                    "containers are known; else delete the pod",
                    "its annotations name no card: %.*s is \"%.*s\"", STR_ARG(name),
                    STR_ARG(str_head(said, 40)));
}

static void doctor_pods_check_share(struct findings *f, const struct bound *b,
                                    const struct share *s)
{
    const struct node *n = b->node;
    const char *advice = "compare the node's cards with nvidia-smi there: if one is lost, restart "
                         "or repair the node; if the card is gone for good, delete the pod, so "
                         "that its controller makes a new one";
    if (s->card == INT32_MAX && dialect_has_uuids(b->request->dialect)) {
        finding_add(f, FINDING_FAIL, b->object, advice,
                    "its annotation %.*s names a card by a UUID that node %.*s does not have",
                    STR_ARG(dialect_facts(b->request->dialect)->idx), STR_ARG(n->name));
        return;
    }
    if (!node_has_card(n, s->card)) {
        finding_add(f, FINDING_FAIL, b->object, advice,
                    "its annotations name card %u, which node %.*s does not have", s->card,
                    STR_ARG(n->name));
        return;
    }
    int64_t charge = node_charge_of(n, b->request, s);
    if (charge > n->cards[s->card].total)
        finding_add(f, FINDING_FAIL, b->object,
                    "compare the size of the card with nvidia-smi on its node: if the device "
                    "plugin has another unit than before (MiB, GiB), set it back; if not, delete "
                    "the pod",
                    "it holds %lld of card %u of node %.*s, which has %lld", (long long)charge,
                    s->card, STR_ARG(n->name), (long long)n->cards[s->card].total);
}

static void doctor_pods_check_place(struct findings *f, const struct bound *b)
{
    const struct pod_allocation *h = b->pod->allocation;
    if (node_is_foreign(b->node, b->request))
        finding_add(f, FINDING_WARN, b->object,
                    "while the node changes from one device plugin to another, let the pod end; "
                    "else move it to a node with its own: docs/dialects.md",
                    "it asks for %.*s, and node %.*s has another device plugin: what it has of the "
                    "node is not known, and counts as %s",
                    STR_ARG(dialect_facts(b->request->dialect)->name), STR_ARG(b->node->name),
                    h->n_shares > 0 ? "its whole cards" : "the whole node");
    else if (h->n_shares == 0)
        doctor_pods_check_none(f, b);
    for (uint32_t i = 0; i < h->n_shares && !node_is_foreign(b->node, b->request); i++)
        doctor_pods_check_share(f, b, &h->shares[i]);
}

/* The time of the Binding, in seconds; 0: not known. */
static uint64_t doctor_pods_bound_s(const struct said_view *said)
{
    uint64_t ns = 0;
    return str_to_u64(said->assume_time, UINT64_MAX, &ns) ? ns / NS_OF_S : 0;
}

static void doctor_pods_check_plugin(struct findings *f, const struct bound *b, uint32_t now_s)
{
    const struct said_view *said = &b->view->said[b->request->dialect];
    uint64_t bound_s = doctor_pods_bound_s(said);
    const char *advice = "look at the log of the device plugin on its node, and at the variables "
                         "of its containers: if they name another card than the annotations, "
                         "delete the pod";
    if (!str_eq(said->assigned, STR("false")))
        return;
    if (str_eq(b->view->phase, STR("Running")))
        finding_add(f, FINDING_WARN, b->object, advice,
                    "it runs, and the device plugin has not acknowledged it: "
                    "%.*s is \"false\"",
                    STR_ARG(dialect_facts(b->request->dialect)->assigned));
    else if (bound_s > 0 && bound_s + ACKNOWLEDGE_S < now_s)
        finding_add(f, FINDING_WARN, b->object, advice,
                    "bound %llu minutes ago, and the device plugin has not acknowledged it",
                    (unsigned long long)(now_s - bound_s) / 60);
}

static void doctor_pods_check_bound(struct findings *f, const struct cache *c,
                                    const struct measured *m, struct bound *b, uint32_t now_s)
{
    struct str node = b->view->node;
    const struct node *n = b->node = cache_node(c, node);
    if (n == NULL || n->sizes == NULL) {
        finding_add(f, FINDING_WARN, b->object,
                    "look whether the node comes back, as after a restart; if it is gone for good, "
                    "delete the pod",
                    "bound to node %.*s, which does not exist", STR_ARG(node));
        return;
    }
    if (card_pods_may_be_nvidias(b->view, b->request->dialect) && n->fault == NODE_NOT_SHARED)
        return;
    if (!node_serves(n, b->request)) {
        finding_add(
            f, FINDING_WARN, b->object,
            "let a scheduler choose its node: remove spec.nodeName where it is written",
            "node %.*s has no resource of %.*s, so the kubelet gave the pod no card, and it "
            "holds none",
            STR_ARG(n->name), STR_ARG(dialect_facts(b->request->dialect)->name));
        return;
    }
    if (n->fault != NODE_OK) {
        finding_add(f, FINDING_FAIL, b->object,
                    "see the finding about the node; without one, look whether its device plugin "
                    "runs there and is registered with the kubelet",
                    "bound to node %.*s, of which no cards are known", STR_ARG(node));
        return;
    }
    b->pod = cache_pod(c, b->view->uid);
    if (b->pod == NULL || b->pod->node != n)
        return;
    doctor_pods_check_place(f, b);
    doctor_pods_check_plugin(f, b, now_s);
    doctor_pods_check_use(f, m, b);
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
    if (v->vacated.n > 0)
        finding_add(f, FINDING_WARN, object,
                    "cardpack-node on the node finishes it in some milliseconds: look at its log; "
                    "if another device plugin runs there now, remove the annotation",
                    "it exchanges its cards with another pod, by annotation %.*s: no pod is placed "
                    "on node %.*s meanwhile",
                    STR_ARG(CARDPACK_ANNOTATION_VACATED), STR_ARG(v->node));
    if (pod_view_bound(v))
        doctor_pods_check_bound(f, c, m,
                                &(struct bound){.view = v,
                                                .request = &r,
                                                .object = object,
                                                .sure = fault.code == OK && !claims &&
                                                        r.exclusive == 0 && v->vacated.n == 0},
                                now_s);
    else if (v->idx.p != NULL || v->former.allocation)
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
    static const char *const advice = "look at the log of cardpack-node on its node: if it does "
                                      "not set the annotations back, and "
                                      "the container still differs, delete the pod";
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
            finding_add(f, FINDING_FAIL, object,
                        "if the log of cardpack-node on its node does not say that it agrees "
                        "again, delete the pod, and restart the kubelet there",
                        "container %.*s: by the kubelet's podresources on node %.*s it has devices "
                        "that are not its pod's by the kubelet's checkpoint",
                        STR_ARG(d->container), STR_ARG(node));
            break;
        case USAGE_DIFFERS_NONE:
        case USAGE_DIFFERS_KINDS:
            finding_add(f, FINDING_FAIL, object,
                        "if the log of cardpack-node on its node does not say that it agrees "
                        "again, delete the pod: the kubelet may give its card to others",
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
