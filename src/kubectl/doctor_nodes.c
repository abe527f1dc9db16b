/* What doctor says of nodes: their capacity, their card table and marks, and their use. */
#include "core/dialect/gpushare.h"
#include "kubectl/doctor.h"
#include "kubectl/limit.h"

#include <stdarg.h>
#include <stdio.h>

void finding_add(struct findings *f, enum finding_level level, struct str object,
                 const char *advice, const char *fmt, ...)
{
    char text[512];
    va_list args;
    size_t kept = str_starts(object, STR("pod/")) ? LIMIT_FINDINGS / 10 : 0;
    f->counts[level]++;
    if (f->n >= LIMIT_FINDINGS - kept)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    struct finding *grown = arena_grow(f->arena, f->items, f->n, &f->cap, sizeof(*grown));
    if (grown == NULL)
        return;
    f->items = grown;
    grown[f->n++] = (struct finding){.level = level,
                                     .object = object,
                                     .text = arena_dup(f->arena, str_of(text)),
                                     .advice = advice};
}

struct str finding_node(const struct findings *f, struct str name)
{
    struct buf b;
    buf_init(&b, KIB);
    buf_printf(&b, "node/%.*s", STR_ARG(name));
    return arena_keep(f->arena, &b);
}

struct str finding_pod(const struct findings *f, struct str namespace, struct str name)
{
    struct buf b;
    buf_init(&b, KIB);
    buf_printf(&b, "pod/%.*s/%.*s", STR_ARG(namespace), STR_ARG(name));
    return arena_keep(f->arena, &b);
}

#define LOOK_AT_PLUGIN                                                                        \
    "look at the log of the device plugin's pod on this node; the kubelet must run, and the " \
    "plugin be registered with it"

/* True: the node has cards, and the other checks make sense. */
static bool doctor_nodes_check_fault(struct findings *f, const struct node_view *v,
                                     const struct node *n, const struct doctor_marks *m,
                                     struct str object)
{
    const struct dialect_facts *of = dialect_facts(n->sizes->dialect);
    const struct capacity_view *said = &v->of[n->sizes->dialect];
    if (n->fault == NODE_NOT_SHARED && m->ours && m->paused.p != NULL)
        return false; /* doctor_plugins says why */
    if (n->fault == NODE_NOT_SHARED && (m->gpushare || m->ours || v->has_cards))
        finding_add(f, FINDING_FAIL, object, LOOK_AT_PLUGIN,
                    "no aliyun.com/gpu-mem in its capacity, although it has the %s",
                    m->ours       ? "label cardpack.io/node=true"
                    : m->gpushare ? "label gpushare=true"
                                  : "annotation cardpack.io/cards");
    else if (n->fault == NODE_NOT_SHARED && v->mem.p != NULL)
        finding_add(
            f, FINDING_FAIL, object, LOOK_AT_PLUGIN,
            "aliyun.com/gpu-mem is 0 in its capacity: the kubelet has lost the device plugin");
    else if (n->fault == NODE_NO_CARDS)
        finding_add(f, FINDING_FAIL, object,
                    "the device plugin writes the number of cards when it starts: restart its pod "
                    "on this node, and check that it may patch nodes/status",
                    "%.*s %.*s, and no %.*s in its capacity", STR_ARG(of->mem), STR_ARG(said->mem),
                    STR_ARG(of->count.p != NULL ? of->count : of->cores));
    else if (n->fault == NODE_BAD_QUANTITY)
        finding_add(f, FINDING_FAIL, object, LOOK_AT_PLUGIN,
                    "%.*s \"%.*s\" or %.*s \"%.*s\" is not usable", STR_ARG(of->mem),
                    STR_ARG(str_head(said->mem, 40)),
                    STR_ARG(of->count.p != NULL ? of->count : of->cores),
                    STR_ARG(str_head(said->count, 40)));
    else if (n->fault == NODE_BAD_CARDS)
        finding_add(f, FINDING_FAIL, object, "correct the annotation: docs/cards.md has its form",
                    "annotation %s; no pod is placed there", v->cards_fault);
    return n->fault == NODE_OK;
}

static void doctor_nodes_check_table(struct findings *f, const struct node_view *v,
                                     const struct node *n, struct str object)
{
    const char *advice =
        "correct the annotation, or the options of the device plugin: gpu-mem must "
        "be the sum of the table";
    uint64_t count = 0;
    if (v->has_cards && n->sizes->dialect == DIALECT_OWN && n->remainder != 0)
        finding_add(f, FINDING_WARN, object, advice,
                    "its card table has %lld in sum, and aliyun.com/gpu-mem is %lld",
                    (long long)(n->total - n->remainder), (long long)n->total);
    else if (n->remainder != 0)
        finding_add(f, FINDING_WARN, object,
                    "if its cards differ, describe them in the annotation cardpack.io/cards",
                    "%.*s %lld is no multiple of its %u cards: %lld belong to no card",
                    STR_ARG(dialect_facts(n->sizes->dialect)->mem), (long long)n->total, n->n_cards,
                    (long long)n->remainder);
    if (!v->has_cards || n->sizes->dialect != DIALECT_OWN)
        return;
    bool known = str_to_u64(v->count, LIMIT_CARDS, &count);
    if (!known || count != v->n_cards)
        finding_add(f, FINDING_WARN, object,
                    "cardpack uses the table; kubectl inspect gpushare reads gpu-count: make both "
                    "the same",
                    "its card table has %zu cards, and aliyun.com/gpu-count is %.*s", v->n_cards,
                    STR_ARG(v->count.n > 0 ? str_head(v->count, 40) : STR("absent")));
}

static void doctor_nodes_check_list(struct findings *f, const struct node *n, struct str object,
                                    struct str annotation, struct str list)
{
    struct card_set set = {{0}};
    const char *advice = "write the indices of its cards with commas: \"0,2\"";
    if (card_set_read(&set, list) > 0)
        finding_add(f, FINDING_WARN, object, advice,
                    "annotation %.*s: \"%.*s\" names something that is no card",
                    STR_ARG(annotation), STR_ARG(str_head(list, 64)));
    for (uint32_t i = 0; list.n <= LIMIT_CARD_LIST_BYTES && i < LIMIT_CARDS; i++) {
        if (!card_set_has(&set, i) || node_has_card(n, i))
            continue;
        finding_add(f, FINDING_WARN, object, advice,
                    "annotation %.*s names card %u, which the node does not have",
                    STR_ARG(annotation), i);
        return;
    }
}

static void doctor_nodes_check_marks(struct findings *f, const struct node_view *v,
                                     const struct node *n, struct str object)
{
    enum policy policy;
    enum isolation isolation;
    uint64_t most = 0;
    doctor_nodes_check_list(f, n, object, CARDPACK_ANNOTATION_CORDONED, v->cordoned);
    doctor_nodes_check_list(f, n, object, CARDPACK_ANNOTATION_EXCLUSIVE, v->exclusive_cards);
    doctor_nodes_check_list(f, n, object, CARDPACK_ANNOTATION_DRA, v->dra_cards);
    if (v->placement.n > 0 && !policy_parse(v->placement, &policy))
        finding_add(f, FINDING_WARN, object, "write " POLICY_NAMES ", or remove the label",
                    "label ack.node.gpu.placement: \"%.*s\" has no effect", STR_ARG(v->placement));
    if (v->max_pods.n > 0 && !str_to_u64(v->max_pods, UINT32_MAX, &most))
        finding_add(f, FINDING_WARN, object, "write a number, or remove the label",
                    "label ack.node.gpu.max-pod: \"%.*s\" has no effect", STR_ARG(v->max_pods));
    if (v->isolation.n > 0 && !isolation_parse(v->isolation, &isolation))
        finding_add(f, FINDING_WARN, object,
                    "write driver-limits, mps, mig or none, or remove the label",
                    "label cardpack.io/isolation: \"%.*s\" counts as none", STR_ARG(v->isolation));
}

/* A lock that can't be true: the schedulers of HAMi and Volcano may obey it for ever. That a time
 * is in the future may also be the fault of a clock, and the lock then be true. */
static void doctor_nodes_check_lock(struct findings *f, const struct node *n, struct str object,
                                    uint32_t now_s)
{
    struct buf b;
    struct str key = dialect_facts(n->sizes->dialect)->lock;
    if (n->lock == NULL || !lock_is_odd(n->lock, now_s))
        return;
    bool timed = n->lock->since_s > 0;
    buf_init(&b, KIB);
    buf_printf(&b, "%s: kubectl annotate node %.*s %.*s-%c",
               timed ? "compare it with date -u: if the clocks of the nodes and of this machine "
                       "are right, remove it"
                     : "if no scheduler of HAMi or Volcano binds a pod there now, remove it",
               STR_ARG(n->name), STR_ARG(key), '\0');
    finding_add(f, FINDING_WARN, object, arena_keep(f->arena, &b).p,
                "annotation %.*s: \"%.*s\" %s cardpack does not obey it", STR_ARG(key),
                STR_ARG(str_head(n->lock->text, 64)),
                timed ? "has a time in the future:" : "is no lock: it has no time, and");
}

void doctor_node(struct findings *f, const struct node_view *v, const struct node *n,
                 const struct doctor_marks *m, uint32_t now_s)
{
    if (n == NULL || n->sizes == NULL)
        return;
    struct str object = finding_node(f, v->name);
    doctor_nodes_check_lock(f, n, object, now_s);
    if (!doctor_nodes_check_fault(f, v, n, m, object))
        return;
    doctor_nodes_check_table(f, v, n, object);
    if (n->limit < n->total)
        finding_add(f, FINDING_WARN, object,
                    "devices that the plugin reports as unhealthy are not allocatable: look at its "
                    "log, and at the node's cards with nvidia-smi",
                    "%lld of its %.*s %lld are allocatable", (long long)n->limit,
                    STR_ARG(dialect_facts(n->sizes->dialect)->mem), (long long)n->total);
    doctor_nodes_check_marks(f, v, n, object);
}

void doctor_health(struct findings *f, const struct cache *c, struct str name, struct str gpus)
{
    struct buf b;
    struct card_set set = {{0}};
    const struct node *n = cache_node(c, name);
    buf_init(&b, KIB);
    buf_printf(&b, "configmap/kube-system/unhealthy-gpu-%.*s", STR_ARG(name));
    struct str object = arena_keep(f->arena, &b);
    if (n == NULL || n->fault == NODE_ABSENT) {
        finding_add(f, FINDING_WARN, object,
                    "correct its name, or delete the ConfigMap if the node is gone for good",
                    "there is no node %.*s", STR_ARG(name));
        return;
    }
    if (card_set_read(&set, gpus) > 0)
        finding_add(f, FINDING_WARN, object, "write the indices of the cards: \"0,2\"",
                    "key gpus: \"%.*s\" names something that is no card",
                    STR_ARG(str_head(gpus, 64)));
    for (uint32_t i = 0; i < LIMIT_CARDS && gpus.n <= LIMIT_CARD_LIST_BYTES; i++) {
        if (!card_set_has(&set, i))
            continue;
        if (node_has_card(n, i))
            finding_add(
                f, FINDING_WARN, finding_node(f, name),
                "reset or replace the card; remove it from the ConfigMap unhealthy-gpu-NODE "
                "when it is well",
                "card %u is unhealthy, by its ConfigMap: no pod is placed on it", i);
        else
            finding_add(f, FINDING_WARN, object, "remove the index from key gpus",
                        "it names card %u, which the node does not have", i);
    }
}

static void doctor_nodes_check_use(struct findings *f, const struct node *n)
{
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        if (!c->absent && c->used > c->total && c->foreign == 0) /* else see doctor_pod */
            finding_add(f, FINDING_FAIL, finding_node(f, n->name),
                        "compare the size of the card with nvidia-smi: if the device plugin has "
                        "another unit than before (MiB, GiB), set it back; if not, kubectl "
                        "cardpack cards NODE names its pods: a pod whose containers have another "
                        "card in NVIDIA_VISIBLE_DEVICES has an edited annotation, and the others "
                        "are not at fault",
                        "card %u holds %lld of %lld", i, (long long)c->used, (long long)c->total);
    }
}

void doctor_usage(struct findings *f, const struct cache *c)
{
    size_t cursor = 0;
    size_t nodes = 0;
    size_t cards = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (n->fault != NODE_OK)
            continue;
        nodes++;
        for (uint32_t i = 0; i < n->n_cards; i++)
            cards += n->cards[i].absent ? 0 : 1;
        doctor_nodes_check_use(f, n);
        doctor_claimed(f, n);
        doctor_mixed(f, n);
    }
    if (nodes == 0)
        finding_add(f, FINDING_FAIL, STR("nodes"),
                    "install cardpack-node, and give the nodes with GPUs the label "
                    "cardpack.io/node=true",
                    "no node has aliyun.com/gpu-mem and cards");
    else
        finding_add(f, FINDING_OK, STR("nodes"), "", "%zu node%s with %zu card%s", nodes,
                    nodes == 1 ? "" : "s", cards, cards == 1 ? "" : "s");
}
