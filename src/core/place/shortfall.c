/* Collects the figures for the reasons of refusals: of the cards of one node, and over all nodes.
 */
#include "core/place/shortfall.h"

#include "core/state/pod.h"

/* Keeps the first names in the order of names: kube-scheduler's order of nodes differs from request
 * to request, and the reason must not. */
static void shortfall_model(struct shortfall *s, struct str model)
{
    if (model.n == 0) {
        s->unnamed++;
        return;
    }
    uint32_t at = 0;
    while (at < s->n_models && str_cmp(s->models[at], model) < 0)
        at++;
    if (at < s->n_models && str_eq(s->models[at], model))
        return;
    if (s->n_models == SHORTFALL_MODELS)
        s->more_models = true;
    if (at == SHORTFALL_MODELS)
        return;
    s->n_models = MIN_OF(s->n_models + 1, SHORTFALL_MODELS);
    for (uint32_t i = s->n_models - 1; i > at; i--)
        s->models[i] = s->models[i - 1];
    s->models[at] = model;
}

static void shortfall_unusable(struct shortfall *s, const struct card *c)
{
    if (c->absent)
        return;
    s->unhealthy += c->unhealthy ? 1 : 0;
    s->cordoned += !c->unhealthy && c->cordoned ? 1 : 0;
    s->aside += !c->unhealthy && !c->cordoned ? 1 : 0;
}

void shortfall_card(struct shortfall *s, const struct node *n, uint32_t i, enum verdict v)
{
    const struct card *c = &n->cards[i];
    if (v == VERDICT_TOO_LARGE || v == VERDICT_NO_CARD_FREE) {
        s->free = MAX_OF(s->free, card_free(c));
        s->largest = MAX_OF(s->largest, c->total);
    } else if (v == VERDICT_NO_CORES) {
        s->cores = MAX_OF(s->cores, card_free_cores(c));
    } else if (v == VERDICT_HELD_WHOLE) {
        s->held++;
    } else if (v == VERDICT_ANTI_AFFINITY) {
        s->foes++;
    } else if (v == VERDICT_POD_LIMIT) {
        s->max_pods = node_card_max_pods(n, i);
    } else if (v == VERDICT_UNUSABLE) {
        shortfall_unusable(s, c);
    } else if (v == VERDICT_CLAIMED) {
        s->claimed++;
    } else if (v == VERDICT_MODEL) {
        shortfall_model(s, node_card_model(n, i));
    } else if (v == VERDICT_UUID) {
        struct uuid_room room _uninitialized_;
        bool named = node_card_uuid(n, i, &room).n > 0;
        s->named += named ? 1 : 0;
        s->unnamed += named ? 0 : 1;
    }
}

static void shortfall_add_cards(struct shortfall *sum, const struct shortfall *one)
{
    sum->free = MAX_OF(sum->free, one->free);
    sum->largest = MAX_OF(sum->largest, one->largest);
    sum->held += one->held;
    sum->foes += one->foes;
    sum->named += one->named;
    sum->unnamed += one->unnamed;
    sum->unhealthy += one->unhealthy;
    sum->cordoned += one->cordoned;
    sum->aside += one->aside;
    sum->claimed += one->claimed;
    sum->cores = MAX_OF(sum->cores, one->cores);
    sum->max_pods = MAX_OF(sum->max_pods, one->max_pods);
    sum->fit = MAX_OF(sum->fit, one->fit);
    sum->could = MAX_OF(sum->could, one->could);
    sum->more_models = sum->more_models || one->more_models;
    for (uint32_t i = 0; i < one->n_models; i++)
        shortfall_model(sum, one->models[i]);
}

void shortfall_add(struct shortfall *sum, const struct node *n, enum verdict v,
                   const struct shortfall *one)
{
    if (v == VERDICT_NODE_FULL)
        sum->left = MAX_OF(sum->left, node_left(n));
    else if (v == VERDICT_KEPT)
        sum->pods += one == NULL ? 0 : one->pods;
    else if (v == VERDICT_SHARED)
        sum->pods += n->n_sharing;
    else if (v == VERDICT_EXCLUSIVE)
        sum->exclusive += (uint64_t)MAX_OF(n->exclusive, 0);
    else if (one != NULL && one->noted)
        shortfall_add_cards(sum, one);
    else if (v == VERDICT_NO_CARD_FREE) {
        sum->free = MAX_OF(sum->free, n->most_free);
        sum->largest = MAX_OF(sum->largest, n->largest);
    }
}

void shortfall_merge(struct shortfall *sum, const struct shortfall *one, uint64_t times)
{
    struct shortfall all = *one;
    assert(times > 0);
    all.held *= times;
    all.foes *= times;
    all.named *= times;
    all.unnamed *= times;
    all.unhealthy *= times;
    all.cordoned *= times;
    all.aside *= times;
    all.claimed *= times;
    shortfall_add_cards(sum, &all);
    sum->left = MAX_OF(sum->left, one->left);
    sum->pods += one->pods * times;
    sum->exclusive += one->exclusive * times;
}

bool shortfall_equal(const struct shortfall *a, const struct shortfall *b)
{
    bool models = a->n_models == b->n_models && a->more_models == b->more_models;
    for (uint32_t i = 0; models && i < a->n_models; i++)
        models = str_eq(a->models[i], b->models[i]);
    return models && a->noted == b->noted && a->free == b->free && a->largest == b->largest &&
           a->left == b->left && a->held == b->held && a->foes == b->foes && a->named == b->named &&
           a->unnamed == b->unnamed && a->unhealthy == b->unhealthy && a->cordoned == b->cordoned &&
           a->aside == b->aside && a->claimed == b->claimed && a->pods == b->pods &&
           a->exclusive == b->exclusive && a->cores == b->cores && a->max_pods == b->max_pods &&
           a->fit == b->fit && a->could == b->could;
}

struct shortfall shortfall_of_sentence(const struct shortfall sums[static VERDICT_COUNT],
                                       enum verdict v)
{
    if (v != VERDICT_TOO_LARGE && v != VERDICT_NO_CARD_FREE)
        return sums[v];
    struct shortfall both = sums[VERDICT_TOO_LARGE];
    shortfall_add_cards(&both, &sums[VERDICT_NO_CARD_FREE]);
    return both;
}
