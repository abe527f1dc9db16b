/* Collects the figures for the reasons of refusals: of the cards of one node, and over all nodes.
 */
#include "core/place/lack.h"

#include "core/state/pod.h"

/* Keeps the first names in the order of names: kube-scheduler's order of nodes differs from request
 * to request, and the reason must not. */
static void lack_model(struct lack *l, struct str model)
{
    if (model.n == 0) {
        l->unnamed++;
        return;
    }
    uint32_t at = 0;
    while (at < l->n_models && str_cmp(l->models[at], model) < 0)
        at++;
    if (at < l->n_models && str_eq(l->models[at], model))
        return;
    if (l->n_models == LACK_MODELS)
        l->more_models = true;
    if (at == LACK_MODELS)
        return;
    l->n_models = MIN_OF(l->n_models + 1, LACK_MODELS);
    for (uint32_t i = l->n_models - 1; i > at; i--)
        l->models[i] = l->models[i - 1];
    l->models[at] = model;
}

static void lack_unusable(struct lack *l, const struct card *c)
{
    if (c->absent)
        return;
    l->unhealthy += c->unhealthy ? 1 : 0;
    l->cordoned += !c->unhealthy && c->cordoned ? 1 : 0;
    l->aside += !c->unhealthy && !c->cordoned ? 1 : 0;
}

void lack_card(struct lack *l, const struct node *n, uint32_t i, enum verdict v)
{
    const struct card *c = &n->cards[i];
    if (v == VERDICT_TOO_LARGE || v == VERDICT_NO_CARD_FREE) {
        l->free = MAX_OF(l->free, card_free(c));
        l->largest = MAX_OF(l->largest, c->total);
    } else if (v == VERDICT_NO_CORES) {
        l->cores = MAX_OF(l->cores, card_free_cores(c));
    } else if (v == VERDICT_HELD_WHOLE) {
        l->held++;
    } else if (v == VERDICT_ANTI_AFFINITY) {
        l->foes++;
    } else if (v == VERDICT_POD_LIMIT) {
        l->max_pods = node_card_max_pods(n, i);
    } else if (v == VERDICT_UNUSABLE) {
        lack_unusable(l, c);
    } else if (v == VERDICT_CLAIMED) {
        l->claimed++;
    } else if (v == VERDICT_MODEL) {
        lack_model(l, node_card_model(n, i));
    } else if (v == VERDICT_UUID) {
        struct uuid_room room _uninitialized_;
        bool named = node_card_uuid(n, i, &room).n > 0;
        l->named += named ? 1 : 0;
        l->unnamed += named ? 0 : 1;
    }
}

static void lack_add_cards(struct lack *sum, const struct lack *one)
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
        lack_model(sum, one->models[i]);
}

void lack_add(struct lack *sum, const struct node *n, enum verdict v, const struct lack *one)
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
        lack_add_cards(sum, one);
    else if (v == VERDICT_NO_CARD_FREE) {
        sum->free = MAX_OF(sum->free, n->most_free);
        sum->largest = MAX_OF(sum->largest, n->largest);
    }
}

void lack_merge(struct lack *sum, const struct lack *one, uint64_t times)
{
    struct lack all = *one;
    assert(times > 0);
    all.held *= times;
    all.foes *= times;
    all.named *= times;
    all.unnamed *= times;
    all.unhealthy *= times;
    all.cordoned *= times;
    all.aside *= times;
    all.claimed *= times;
    lack_add_cards(sum, &all);
    sum->left = MAX_OF(sum->left, one->left);
    sum->pods += one->pods * times;
    sum->exclusive += one->exclusive * times;
}

bool lack_equal(const struct lack *a, const struct lack *b)
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

struct lack lack_of_sentence(const struct lack sums[static VERDICT_COUNT], enum verdict v)
{
    if (v != VERDICT_TOO_LARGE && v != VERDICT_NO_CARD_FREE)
        return sums[v];
    struct lack both = sums[VERDICT_TOO_LARGE];
    lack_add_cards(&both, &sums[VERDICT_NO_CARD_FREE]);
    return both;
}
