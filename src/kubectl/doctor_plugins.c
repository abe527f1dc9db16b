/* What doctor says of the device plugins: cardpack-node and gpushare's, one of them on each node.
 */
#include "core/dialect/gpushare.h"
#include "kubectl/doctor.h"

#define NODE_LABEL "cardpack.io/node=true"
#define ELSEWHERE                                                                                \
    "another namespace than kube-system and that of cardpack's Service, name it with --service " \
    "NAMESPACE/NAME"

void doctor_plugins_mark(struct doctor_system *s, const struct doctor_marks *m, struct arena *a)
{
    struct doctor_marks *grown = arena_grow(a, s->marks, s->n_marks, &s->marks_cap, sizeof(*grown));
    if (grown == NULL)
        return;
    s->marks = grown;
    s->marks[s->n_marks] = *m;
    s->marks[s->n_marks++].node = arena_dup(a, m->node);
}

void doctor_plugins_take(struct doctor_system *s, const struct pod_view *v, struct arena *a)
{
    struct str component = doctor_system_label(v, STR("component"));
    struct str name = doctor_system_label(v, STR("app.kubernetes.io/name"));
    bool ours = str_eq(name, STR("cardpack-node"));
    if ((!ours && !str_eq(component, STR("gpushare-device-plugin"))) || pod_view_terminal(v) ||
        !pod_view_bound(v) || !doctor_system_counts(s, v, ours ? DOCTOR_AGENT : DOCTOR_PLUGIN, a))
        return;
    struct doctor_plugin *grown = arena_grow(a, s->plugins, s->n_plugins, &s->cap, sizeof(*grown));
    if (grown == NULL)
        return;
    s->plugins = grown;
    s->plugins[s->n_plugins++] =
        (struct doctor_plugin){.node = arena_dup(a, v->node),
                               .namespace = arena_dup(a, v->namespace),
                               .name = arena_dup(a, v->name),
                               .ours = ours,
                               .runs = str_eq(v->phase, STR("Running")) && !v->deleting,
                               .ends = v->deleting,
                               .ready = v->ready};
}

/* What runs on a node. */
struct seen {
    size_t n;          /* running plugins, of both kinds */
    size_t ours;       /* pods of cardpack-node, running or not; also one that ends */
    size_t other;      /* running pods of gpushare's */
    bool unsure_agent; /* no pod of cardpack-node counts on any node: it may run in the namespace of
                          the pod that does not count */
    bool unsure_plugin; /* the same of gpushare's */
};

static struct seen doctor_plugins_on(const struct doctor_system *s, struct str node)
{
    struct seen seen = {.unsure_agent = s->strangers[DOCTOR_AGENT].n > 0,
                        .unsure_plugin = s->strangers[DOCTOR_PLUGIN].n > 0};
    for (size_t i = 0; i < s->n_plugins; i++) {
        const struct doctor_plugin *p = &s->plugins[i];
        seen.unsure_agent = seen.unsure_agent && !p->ours;
        seen.unsure_plugin = seen.unsure_plugin && p->ours;
        if (!str_eq(p->node, node))
            continue;
        seen.n += p->runs ? 1 : 0;
        seen.ours += p->ours ? 1 : 0;
        seen.other += !p->ours && p->runs ? 1 : 0;
    }
    return seen;
}

/* The labels agree with each other, and with what runs. */
static void doctor_plugins_check_marks(struct findings *f, const struct doctor_marks *m,
                                       struct seen seen, struct str object)
{
    enum finding_level no_agent = seen.unsure_agent ? FINDING_WARN : FINDING_FAIL;
    enum finding_level none = seen.unsure_agent || seen.unsure_plugin ? FINDING_WARN : FINDING_FAIL;
    if (m->ours && m->gpushare)
        finding_add(f, FINDING_WARN, object,
                    "remove the label of the plugin that is not to run there: docs/migration.md",
                    "it has both labels, gpushare=true and " NODE_LABEL
                    ": cardpack-node does not run there");
    else if (m->paused.p != NULL && m->ours)
        finding_add(
            f, FINDING_WARN, object,
            "it comes back when the GPU Operator has changed the label; if the operator, or "
            "its MIG manager, is not there any more, remove the label",
            "the label %.*s is to keep cardpack-node away: no new container gets a card there",
            STR_ARG(m->paused));
    else if (m->ours && seen.ours == 0)
        finding_add(f, no_agent, object,
                    "if it runs in " ELSEWHERE
                    "; else install it: kubectl apply -k manifests/node; "
                    "if it is installed, kubectl -n kube-system describe daemonset cardpack-node "
                    "says why it has no pod there",
                    "it has the label " NODE_LABEL ", and no pod of cardpack-node");
    else if (!m->ours && m->table && seen.n == 0)
        finding_add(f, none, object,
                    "if a device plugin runs there in " ELSEWHERE "; else set the label again: "
                    "kubectl label node NODE " NODE_LABEL,
                    "it has a table of cards, no device plugin, and not the label " NODE_LABEL
                    " by which cardpack-node runs there");
    if (seen.ours > 0 && !m->table)
        finding_add(f, FINDING_FAIL, object,
                    "look at the log of cardpack-node: NVIDIA's library must be there, and it may "
                    "patch nodes/status with the roles of manifests/node",
                    "cardpack-node is there, and the node has no annotation cardpack.io/cards");
}

static void doctor_plugins_check_number(struct findings *f, const struct doctor_marks *m,
                                        struct seen seen, struct str object)
{
    if (seen.n > 1)
        finding_add(f, FINDING_FAIL, object,
                    "keep one of them: gpushare's runs by the label gpushare=true, cardpack-node "
                    "by " NODE_LABEL,
                    "%zu pods of device plugins run there, for the same resource", seen.n);
    else if (seen.n == 0 && !m->ours && !m->table)
        finding_add(f, FINDING_WARN, object,
                    "if the device plugin is a pod, find out why it does not run there: "
                    "kubectl describe daemonset; if it is no pod, ignore this",
                    "it has cards, and no pod of a device plugin runs there");
}

static void doctor_plugins_check_ready(struct findings *f, const struct doctor_system *s)
{
    for (size_t i = 0; i < s->n_plugins; i++) {
        const struct doctor_plugin *p = &s->plugins[i];
        if (!p->ours || p->ends || (p->runs && p->ready))
            continue;
        finding_add(f, FINDING_FAIL, finding_pod(f, p->namespace, p->name),
                    "its log says why, and so does 127.0.0.1:9410/readyz on the node",
                    "cardpack-node on node %.*s %s: no new container gets a card there",
                    STR_ARG(p->node), p->runs ? "is not ready" : "does not run");
    }
}

void doctor_plugins(struct findings *f, const struct doctor_system *s, const struct cache *c)
{
    bool any =
        s->n_plugins > 0 || s->strangers[DOCTOR_AGENT].n > 0 || s->strangers[DOCTOR_PLUGIN].n > 0;
    for (size_t i = 0; i < s->n_marks; i++) {
        const struct doctor_marks *m = &s->marks[i];
        const struct node *n = cache_node(c, m->node);
        struct str object = finding_node(f, m->node);
        struct seen seen = doctor_plugins_on(s, m->node);
        any = any || m->ours;
        if (n != NULL && n->sizes != NULL && n->sizes->dialect != DIALECT_OWN)
            continue; /* a plugin of another project runs there */
        doctor_plugins_check_marks(f, m, seen, object);
        if (s->n_plugins > 0 && n != NULL && n->fault == NODE_OK)
            doctor_plugins_check_number(f, m, seen, object);
    }
    doctor_plugins_check_ready(f, s);
    if (!any)
        finding_add(f, FINDING_WARN, STR("device plugin"),
                    "if it is no pod, or has other labels, ignore this",
                    "no pod with the label component=gpushare-device-plugin or "
                    "app.kubernetes.io/name=cardpack-node runs");
}
