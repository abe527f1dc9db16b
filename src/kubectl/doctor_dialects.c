/* What doctor says of the device plugins of nodes: two of them on one node, and one that is not
 * read. */
#include "core/dialect/card_resources.h"
#include "kubectl/doctor.h"

/* Of a dialect, what a node has in its capacity. */
static struct str doctor_dialects_resource(enum dialect d)
{
    return dialect_has_uuids(d) ? dialect_facts(d)->count : dialect_facts(d)->mem;
}

static bool doctor_dialects_has(const struct node_view *v, enum dialect d)
{
    uint64_t amount = 0;
    bool uuids = dialect_has_uuids(d);
    struct str text = uuids ? v->of[d].count : v->of[d].mem;
    return text.n > 0 && (!str_to_u64(text, UINT64_MAX, &amount) || amount > 0) &&
           (!uuids || v->of[d].has_cards);
}

/* The resources of two agents; without a label one of the two counts. */
static void doctor_dialects_check_two(struct findings *f, const struct node_view *v,
                                      const struct node *n, struct str object)
{
    const struct dialect_facts *own = dialect_facts(n->sizes->dialect);
    for (enum dialect d = 0; d < DIALECT_COUNT; d++) {
        const struct dialect_facts *other = dialect_facts(d);
        if (other == own || !doctor_dialects_has(v, d) ||
            !doctor_dialects_has(v, n->sizes->dialect))
            continue;
        finding_add(f, FINDING_WARN, object,
                    "remove one of the two device plugins there; until then the label "
                    "cardpack.io/dialect=NAME says which one counts",
                    "it has resources of two device plugins, %.*s (%.*s) and %.*s (%.*s): pods of "
                    "dialect %.*s alone are placed there",
                    STR_ARG(doctor_dialects_resource(n->sizes->dialect)), STR_ARG(own->name),
                    STR_ARG(doctor_dialects_resource(d)), STR_ARG(other->name), STR_ARG(own->name));
        return;
    }
}

/* The same cards by a name that cardpack does not read, so that it counts no pod that has one. */
static void doctor_dialects_check_unknown(struct findings *f, const struct node_view *v,
                                          const struct node *n, struct str object)
{
    enum card_guess guess = card_resources_guess(v->unknown);
    enum finding_level level = guess == CARD_GUESS_YES ? FINDING_FAIL : FINDING_WARN;
    if (guess == CARD_GUESS_NO || n->fault != NODE_OK || node_has_aside(n))
        return;
    finding_add(f, level, object,
                "if it gives out the same cards, write it into the setting card-resources of "
                "cardpack, into managedResources of kube-scheduler, and into --card-resources "
                "here; or set cards aside for it: docs/cards.md",
                "it offers %.*s beside its %.*s, and cardpack does not know what that is",
                STR_ARG(str_head(v->unknown, 80)),
                STR_ARG(doctor_dialects_resource(n->sizes->dialect)));
}

void doctor_mixed(struct findings *f, const struct node *n)
{
    if (n->exclusive == 0 || n->n_sharing == 0 || node_has_aside(n))
        return;
    finding_add(f, FINDING_WARN, finding_node(f, n->name),
                "compare nvidia-smi on the node with the cards of its shared pods; set cards aside "
                "for the other device plugin: docs/cards.md",
                "its pods hold %lld cards of another device plugin, and %u pods share cards beside "
                "them: no card is set aside, so a card may be used twice",
                (long long)n->exclusive, n->n_sharing);
}

void doctor_dialect(struct findings *f, const struct node_view *v, const struct node *n)
{
    enum dialect named = DIALECT_OWN;
    struct str label = str_trim(v->dialect);
    if (n == NULL || n->sizes == NULL)
        return;
    struct str object = finding_node(f, v->name);
    doctor_dialects_check_unknown(f, v, n, object);
    if (v->dialect.p == NULL)
        doctor_dialects_check_two(f, v, n, object);
    else if (!dialect_parse(label, &named))
        finding_add(f, FINDING_FAIL, object, "docs/dialects.md has the names: correct the label",
                    "label cardpack.io/dialect: \"%.*s\" is no dialect: no pod is placed there",
                    STR_ARG(str_head(label, 64)));
    else if (!dialect_is_used(named))
        finding_add(f, FINDING_FAIL, object,
                    "add the dialect to the setting dialects of cardpack, and to --dialects here",
                    "label cardpack.io/dialect: \"%.*s\" is not among the dialects that are read: "
                    "no pod is placed there",
                    STR_ARG(label));
}

static bool doctor_dialects_is_shown(const struct figures *shown, struct str node)
{
    for (size_t i = 0; i < shown->n; i++) {
        if (str_eq(shown->nodes[i].name, node))
            return true;
    }
    return false;
}

void doctor_unread(struct findings *f, const struct cache *c, const struct figures *shown)
{
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (n->fault != NODE_OK || n->sizes->dialect == DIALECT_OWN ||
            doctor_dialects_is_shown(shown, n->name))
            continue;
        enum dialect d = n->sizes->dialect;
        finding_add(f, FINDING_WARN, finding_node(f, n->name),
                    "if cardpack is to place pods there, add the dialect to the setting dialects, "
                    "and its resources to managedResources of kube-scheduler: docs/dialects.md; "
                    "if another scheduler does, ignore this",
                    "its device plugin has the resource %.*s, of dialect %.*s, which the running "
                    "cardpack does not read: it places no pod there",
                    STR_ARG(doctor_dialects_resource(d)), STR_ARG(dialect_facts(d)->name));
    }
}
