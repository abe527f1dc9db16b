/* Reads a pod's request. A container that can't be read does not stop the count: the other
 * containers hold their memory anyway, if another scheduler binds the pod. */
#include "core/request/request.h"

#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "core/limit.h"
#include "core/pattern.h"
#include "core/quantity.h"
#include "core/request/tally.h"

/* Longest value shown in an error, in bytes, so that the rule behind it fits in as well. */
#define VALUE_SHOWN ((size_t)64)

/* Arguments for "%.*s%s": the start of s, and "..." if it is longer. */
#define SHOWN_ARG(s) \
    (int)MIN_OF((s).n, VALUE_SHOWN), (s).p == NULL ? "" : (s).p, (s).n > VALUE_SHOWN ? "..." : ""

/* Sums are cut here, one above the allowed maximum, so that no number of containers can overflow
 * them. */
#define MEM_CAP (REQUEST_MEM_MAX + 1)

/* An amount with a suffix is taken for bytes from here on: 64 TiB in the smallest unit, MiB, which
 * is more than any node has. */
#define MEM_OF_BYTES ((int64_t)1 << 26)

/* The kubelet asks no device plugin for a container with 0 of its resource (devicesToAllocate in
 * pkg/kubelet/cm/devicemanager/manager.go). */
#define ZERO_RULE \
    "needs a container with a limit aliyun.com/gpu-mem of 1 or more: with 0 it gets no card"

/* The longest name of a container: with "container-" before it, it must be the name of an
 * annotation. */
#define SEAT_NAME_MAX 53

struct reader {
    const struct pod_view *pod;
    struct request *request;
    const struct dialect_facts *dialect;
    bool named;     /* a container names the dialect's memory, even with 0 */
    enum errc code; /* the first failure */
    struct err *reterr;
};

struct measure {
    struct str resource;
    int64_t max; /* the maximum for one container */
    const char *too_much;
};

static struct measure request_measure_mem(const struct dialect_facts *d)
{
    return (struct measure){d->mem, REQUEST_MEM_MAX,
                            "is out of range: no card has that much memory"};
}

static struct measure request_measure_cores(const struct dialect_facts *d)
{
    return (struct measure){d->cores, (int64_t)REQUEST_CORES_MAX * REQUEST_CARDS_MAX,
                            "is out of range: a card has 100"};
}

/* Another device plugin counts them: its nodes may have more than LIMIT_CARDS. */
static const struct measure measure_exclusive = {GPUSHARE_RESOURCE_EXCLUSIVE, INT32_MAX,
                                                 "is out of range: no node has so many cards"};

static const char *request_fault_of(enum errc code, const struct quantity *q,
                                    const struct measure *m)
{
    if (code == ERR_SYNTAX)
        return "is not a quantity";
    if (code != OK)
        return "is out of range";
    if (q->value < 0)
        return "is negative";
    if (q->value > m->max)
        return m->too_much;
    return q->whole ? NULL : "is not a whole number";
}

/* Splits 16Gi into 16 and Gi. False: there is no such suffix. */
static bool request_cut_suffix(struct str text, struct str *ret_number)
{
    size_t n = text.n > 0 && text.p[text.n - 1] == 'i' ? text.n - 1 : text.n;
    if (n < 2 || memchr("kKMGTPE", text.p[n - 1], 7) == NULL)
        return false;
    *ret_number = (struct str){text.p, n - 1};
    return true;
}

/* Refuses 16Gi, which asks for 17179869184 GiB or MiB where 16 is meant. */
static bool request_refuse_bytes(struct reader *rd, struct str text, const struct quantity *q,
                                 const char *what, struct str name)
{
    uint64_t whole = 0;
    struct str number;
    if (q->value < MEM_OF_BYTES || !request_cut_suffix(text, &number))
        return false;
    if (number.n > 12 || !str_to_u64(number, UINT64_MAX, &whole))
        number = STR("a whole number");
    if (rd->code == OK)
        rd->code = err_set(rd->reterr, ERR_RANGE,
                           "%s \"%.*s%s\": %.*s asks for %lld%s units of %s; write %.*s, "
                           "not %.*s%s",
                           what, SHOWN_ARG(name), STR_ARG(rd->dialect->mem), (long long)q->value,
                           q->saturated ? " or more" : "", rd->dialect->unit, STR_ARG(number),
                           SHOWN_ARG(text));
    return true;
}

/* Reads an amount. If it is invalid, records the first error and returns what is charged anyway. */
static int64_t request_amount(struct reader *rd, struct str text, const struct measure *m,
                              const char *what, struct str name)
{
    struct quantity q = {.value = 0};
    if (text.p == NULL)
        return 0;
    enum errc code = quantity_parse(str_trim(text), &q);
    bool bytes = code == OK && str_eq(m->resource, rd->dialect->mem) &&
                 request_refuse_bytes(rd, str_trim(text), &q, what, name);
    const char *fault = bytes ? NULL : request_fault_of(code, &q, m);
    if (fault != NULL && rd->code == OK)
        rd->code = err_set(rd->reterr, code == ERR_SYNTAX ? ERR_SYNTAX : ERR_RANGE,
                           "%s \"%.*s%s\": %.*s: \"%.*s%s\" %s", what, SHOWN_ARG(name),
                           STR_ARG(m->resource), SHOWN_ARG(text), fault);
    return code == OK ? MIN_OF(MAX_OF(q.value, 0), m->max) : 0;
}

/* NULL: it is not added. */
static struct demand *request_demand_add(struct reader *rd, const struct container_view *c,
                                         int64_t mem, int64_t cores)
{
    struct request *r = rd->request;
    bool init = c->kind != CONTAINER_MAIN;
    if (mem == 0 && cores == 0 && !dialect_has_uuids(r->dialect))
        return NULL;
    if (r->n_demands == REQUEST_DEMANDS_MAX) {
        if (rd->code == OK)
            rd->code = err_set(rd->reterr, ERR_RANGE,
                               "container \"%.*s%s\": more than %d containers ask for cards",
                               SHOWN_ARG(c->name), REQUEST_DEMANDS_MAX);
        return NULL;
    }
    uint64_t index = c->index + (init ? (uint64_t)rd->pod->n_mains : 0);
    if (index >= UINT16_MAX) { /* UINT16_MAX means the pod as a whole, see struct grant */
        if (rd->code == OK)
            rd->code = err_set(rd->reterr, ERR_RANGE,
                               "container \"%.*s%s\": it comes after more than %d others",
                               SHOWN_ARG(c->name), UINT16_MAX - 1);
        return NULL;
    }
    r->demands[r->n_demands] = (struct demand){
        .mem = mem,
        .cores = (uint16_t)cores,
        .index = (uint16_t)index,
        .kind = c->kind,
    };
    return &r->demands[r->n_demands++];
}

static enum errc request_fail(struct reader *rd, const struct container_view *c,
                              struct str resource, const char *why)
{
    if (rd->code == OK)
        rd->code = err_set(rd->reterr, ERR_RANGE, "%s \"%.*s%s\": %.*s: %s",
                           c->kind == CONTAINER_MAIN ? "container" : "init container",
                           SHOWN_ARG(c->name), STR_ARG(resource), why);
    return rd->code;
}

/* One of the resources of a dialect that the container names. */
static struct str request_name_of(const struct amounts_view *v, const struct dialect_facts *d)
{
    if (v->mem.p != NULL)
        return d->mem;
    if (v->cores.p != NULL)
        return d->cores;
    return v->count.p != NULL ? d->count : d->percent;
}

/* The dialect whose resources the pod names; gpushare's if it names none. */
static void request_find_dialect(struct reader *rd)
{
    bool found = false;
    rd->dialect = dialect_facts(DIALECT_OWN);
    for (size_t i = 0; i < rd->pod->n_containers; i++) {
        const struct container_view *c = &rd->pod->containers[i];
        for (unsigned d = 0; d < DIALECT_COUNT; d++) {
            const struct dialect_facts *its = dialect_facts((enum dialect)d);
            if (!amounts_view_any(&c->of[d]) || !dialect_is_used((enum dialect)d) ||
                (found && rd->request->dialect == d))
                continue;
            if (found) {
                (void)request_fail(rd, c, request_name_of(&c->of[d], its),
                                   "the pod names the resources of another device plugin, too");
                continue;
            }
            found = true;
            rd->request->dialect = (enum dialect)d;
            rd->dialect = its;
        }
    }
}

/* What the device plugin of a dialect cannot do. with: the container names memory. */
static void request_check_container(struct reader *rd, const struct container_view *c, bool with,
                                    int64_t mem, int64_t cores)
{
    const struct dialect_facts *d = rd->dialect;
    if (mem == 0 && cores == 0)
        return;
    struct str resource = cores > 0 ? d->cores : d->mem;
    if (!d->inits && c->kind != CONTAINER_MAIN)
        (void)request_fail(rd, c, resource, "the device plugin does not serve init containers");
    else if (d->one && rd->request->n_demands > 1)
        (void)request_fail(rd, c, resource, "the device plugin serves one container of a pod");
    else if (d->both && cores == 0)
        (void)request_fail(rd, c, d->mem, "the device plugin wants a limit of compute beside it");
    else if (d->both && mem == 0 && cores < REQUEST_CORES_MAX)
        (void)request_fail(rd, c, d->cores, "the device plugin wants a limit of memory beside it");
    else if (d->multiple && cores > REQUEST_CORES_MAX && cores % REQUEST_CORES_MAX != 0)
        (void)request_fail(rd, c, d->cores, "above 100 it must be a multiple of 100: whole cards");
    else if (d->multiple && !d->both && with && cores > REQUEST_CORES_MAX)
        (void)request_fail(rd, c, d->mem, "the device plugin serves no memory on several cards");
    else if (dialect_names_containers(rd->request->dialect) && c->name.n > SEAT_NAME_MAX)
        (void)request_fail(rd, c, resource, "its name is too long for an annotation's key");
}

/* The number of cards that a container of HAMi's family asks for; 0: none. */
static uint32_t request_read_count(struct reader *rd, const struct container_view *c,
                                   const char *what)
{
    const struct amounts_view *its = &c->of[rd->request->dialect];
    const struct measure measure = {rd->dialect->count, REQUEST_CARDS_MAX,
                                    "is out of range: a pod gets 64 at most"};
    if (its->count.p != NULL)
        return (uint32_t)request_amount(rd, its->count, &measure, what, c->name);
    /* For Volcano's scheduler memory alone means one card. But the kubelet then asks the plugin for
     * memory only, which gives the container no card and no limit, and the pod waits for ever. */
    if (amounts_view_any(its))
        (void)request_fail(rd, c, request_name_of(its, rd->dialect),
                           "the device plugin wants a limit of cards beside it");
    return its->mem.p != NULL ? 1 : 0;
}

/* Percent of each card's memory. Without any amount a container gets all of it. */
static uint32_t request_read_part(struct reader *rd, const struct container_view *c,
                                  const char *what, int64_t mem)
{
    const struct amounts_view *its = &c->of[rd->request->dialect];
    const struct measure measure = {rd->dialect->percent, 100, "is more than the whole card"};
    int64_t part = request_amount(rd, its->percent, &measure, what, c->name);
    if (its->percent.p != NULL && its->mem.p != NULL)
        (void)request_fail(rd, c, rd->dialect->percent,
                           "the container has an amount of memory, too");
    else if (its->percent.p != NULL && part == 0)
        (void)request_fail(rd, c, rd->dialect->percent, "it must be 1 to 100");
    return part == 0 && mem == 0 ? 100 : (uint32_t)part;
}

static void request_check_devices(struct reader *rd, const struct container_view *c)
{
    const struct request *r = rd->request;
    if (!rd->dialect->inits && c->kind != CONTAINER_MAIN)
        (void)request_fail(rd, c, rd->dialect->count,
                           "the device plugin does not serve init containers");
    else if (rd->dialect->one && r->n_demands > 1)
        (void)request_fail(rd, c, rd->dialect->count,
                           "the device plugin serves one container of a pod");
    else if (r->cards > REQUEST_CARDS_MAX)
        (void)request_fail(rd, c, rd->dialect->count,
                           "with the containers before it, it is out of range: a pod gets 64 at "
                           "most");
}

/* A container of HAMi's family: so many cards, and of each card so much. */
static void request_read_devices(struct reader *rd, const struct container_view *c,
                                 const char *what, struct tally *mem, struct tally *cores)
{
    struct request *r = rd->request;
    const struct dialect_facts *d = rd->dialect;
    const struct amounts_view *its = &c->of[r->dialect];
    const struct measure measure_mem = request_measure_mem(d);
    const struct measure measure_cores = {d->cores, REQUEST_CORES_MAX,
                                          "is out of range: a card has 100"};
    uint32_t cards = request_read_count(rd, c, what);
    int64_t of_each = request_amount(rd, its->mem, &measure_mem, what, c->name);
    int64_t share = request_amount(rd, its->cores, &measure_cores, what, c->name);
    if (cards == 0)
        return;
    uint32_t part = request_read_part(rd, c, what, of_each);
    int64_t all = MIN_OF(of_each, REQUEST_MEM_MAX / REQUEST_CARDS_MAX) * cards;
    if (all / cards < of_each)
        (void)request_fail(rd, c, d->mem, "is out of range: no card has that much memory");
    rd->named = true;
    r->cards += cards;
    r->percent = MAX_OF(r->percent, part);
    r->whole = r->whole || share == REQUEST_CORES_MAX;
    tally_add(mem, all, c->kind, MEM_CAP);
    tally_add(cores, share * cards, c->kind, MEM_CAP);
    struct demand *its_demand = request_demand_add(rd, c, all, share * cards);
    if (its_demand != NULL) {
        its_demand->cards = cards;
        its_demand->percent = part;
    }
    request_check_devices(rd, c);
}

static void request_read_containers(struct reader *rd, struct tally *mem, struct tally *cores,
                                    struct tally *exclusive, struct tally *renamed)
{
    const struct measure measure_mem = request_measure_mem(rd->dialect);
    const struct measure measure_cores = request_measure_cores(rd->dialect);
    const struct amounts_view none = {.mem = STR_NULL};
    bool used = dialect_is_used(rd->request->dialect);
    for (size_t i = 0; i < rd->pod->n_containers; i++) {
        const struct container_view *c = &rd->pod->containers[i];
        const char *what = c->kind == CONTAINER_MAIN ? "container" : "init container";
        int64_t x = request_amount(rd, c->exclusive, &measure_exclusive, what, c->name);
        tally_add(exclusive, x + c->renamed, c->kind, MEM_CAP);
        tally_add(renamed, c->renamed, c->kind, MEM_CAP);
        if (dialect_has_uuids(rd->request->dialect)) {
            request_read_devices(rd, c, what, mem, cores);
            continue;
        }
        const struct amounts_view *its = used ? &c->of[rd->request->dialect] : &none;
        int64_t m = request_amount(rd, its->mem, &measure_mem, what, c->name);
        int64_t share = request_amount(rd, its->cores, &measure_cores, what, c->name);
        if (rd->dialect->multiple && share >= REQUEST_CORES_MAX)
            m = 0; /* whole cards, with all of their memory */
        rd->named = rd->named || its->mem.p != NULL || (rd->dialect->multiple && share > 0);
        tally_add(mem, m, c->kind, MEM_CAP);
        tally_add(cores, share, c->kind, MEM_CAP);
        (void)request_demand_add(rd, c, m, share);
        request_check_container(rd, c, its->mem.p != NULL, m, share);
    }
}

static enum errc request_refuse(struct reader *rd, const char *what, struct str field,
                                struct str value, const char *rule)
{
    if (rd->code == OK)
        rd->code = err_set(rd->reterr, ERR_RANGE, "%s %.*s: \"%.*s%s\" %s", what, STR_ARG(field),
                           SHOWN_ARG(value), rule);
    return rd->code;
}

/* A number from 1 to max; 0 if absent or refused. */
static uint32_t request_read_number(struct reader *rd, const char *what, struct str field,
                                    struct str value, uint32_t max, const char *rule)
{
    uint64_t n = 0;
    if (value.p == NULL)
        return 0;
    if (!str_to_u64(str_trim(value), max, &n) || n == 0) {
        (void)request_refuse(rd, what, field, value, rule);
        return 0;
    }
    return (uint32_t)n;
}

static enum policy request_read_policy(struct reader *rd, struct str field, struct str value)
{
    enum policy policy = POLICY_UNSET;
    if (value.p != NULL && !policy_parse(str_trim(value), &policy))
        (void)request_refuse(rd, "annotation", field, value, "must be " POLICY_NAMES);
    return policy;
}

static bool request_read_bool(struct reader *rd, struct str field, struct str value)
{
    bool yes = str_eq(str_trim(value), STR("true"));
    if (value.p != NULL && !yes && !str_eq(str_trim(value), STR("false")))
        (void)request_refuse(rd, "annotation", field, value, "must be true or false");
    return yes;
}

static void request_refuse_much(struct reader *rd, struct str field, struct str value, size_t n,
                                const char *what, size_t max)
{
    if (rd->code == OK)
        rd->code =
            err_set(rd->reterr, ERR_RANGE, "annotation %.*s: \"%.*s%s\" has %zu %s: %zu at most",
                    STR_ARG(field), SHOWN_ARG(value), n, what, max);
}

/* A list of patterns; refused, and absent, if it is too long to compare it with every card. */
static struct str request_read_list(struct reader *rd, struct str field, struct str value)
{
    struct str list = str_trim(value);
    if (list.n > LIMIT_WISH_BYTES) {
        request_refuse_much(rd, field, list, list.n, "bytes", LIMIT_WISH_BYTES);
        return STR_NULL;
    }
    size_t n = pattern_list_items(list);
    if (n <= LIMIT_WISH_ITEMS)
        return list;
    request_refuse_much(rd, field, list, n, "items", LIMIT_WISH_ITEMS);
    return STR_NULL;
}

static struct str request_read_group(struct reader *rd, struct str field, struct str value)
{
    struct str group = str_trim(value);
    if (group.n <= REQUEST_GROUP_MAX)
        return group;
    request_refuse_much(rd, field, group, group.n, "bytes", REQUEST_GROUP_MAX);
    return STR_NULL;
}

static void request_read_wishes(struct reader *rd)
{
    const struct pod_view *pod = rd->pod;
    struct request *r = rd->request;
    enum policy both = request_read_policy(rd, CARDPACK_ANNOTATION_POLICY, pod->policy);
    r->node_policy = request_read_policy(rd, CARDPACK_ANNOTATION_NODE_POLICY, pod->node_policy);
    r->card_policy = request_read_policy(rd, CARDPACK_ANNOTATION_CARD_POLICY, pod->card_policy);
    if (r->node_policy == POLICY_UNSET)
        r->node_policy = both;
    if (r->card_policy == POLICY_UNSET)
        r->card_policy = both;
    r->namespace = pod->namespace;
    r->models = request_read_list(rd, CARDPACK_ANNOTATION_MODEL, pod->card_model);
    r->uuids = request_read_list(rd, CARDPACK_ANNOTATION_UUID, pod->card_uuid);
    r->affinity = request_read_group(rd, CARDPACK_ANNOTATION_AFFINITY, pod->affinity);
    r->anti_affinity =
        request_read_group(rd, CARDPACK_ANNOTATION_ANTI_AFFINITY, pod->anti_affinity);
    r->isolated = request_read_bool(rd, CARDPACK_ANNOTATION_ISOLATION, pod->require_isolation);
    r->priority = pod->priority;
    r->never_preempts = pod->never_preempts;
    if (r->affinity.n > 0 && str_eq(r->affinity, r->anti_affinity))
        (void)request_refuse(
            rd, "annotation", CARDPACK_ANNOTATION_ANTI_AFFINITY, r->anti_affinity,
            "is also its cardpack.io/card-affinity-group: one card can't be the same and another");
}

/* Checks that every container can be divided into equal parts for the cards. */
static void request_check_division(struct reader *rd)
{
    struct request *r = rd->request;
    uint32_t cards = request_cards(r);
    for (uint32_t i = 0; i < r->n_demands && rd->code == OK; i++) {
        const struct demand *d = &r->demands[i];
        bool mem = d->mem % cards != 0;
        if (!mem && d->cores % cards == 0)
            continue;
        rd->code = err_set(rd->reterr, ERR_RANGE,
                           "label %.*s: \"%.*s\" does not divide the %.*s of %lld of a container",
                           STR_ARG(GPUSHARE_LABEL_COUNT), STR_ARG(rd->pod->count_label),
                           STR_ARG(mem ? rd->dialect->mem : rd->dialect->cores),
                           mem ? (long long)d->mem : (long long)d->cores);
    }
    if (r->n_demands * cards > REQUEST_GRANTS_MAX)
        (void)request_refuse(rd, "label", GPUSHARE_LABEL_COUNT, rd->pod->count_label,
                             "is too many for so many containers");
}

/* A container with 100 or more of the dialect's compute gets as many whole cards. The cards of a
 * pod are whole, or none of them is. */
static void request_read_multiple(struct reader *rd)
{
    struct request *r = rd->request;
    for (uint32_t i = 0; i < r->n_demands; i++)
        r->whole = r->whole || r->demands[i].cores >= REQUEST_CORES_MAX;
    if (!r->whole)
        return;
    r->cards = r->demands[0].cores / REQUEST_CORES_MAX;
    r->cards = MIN_OF(MAX_OF(r->cards, 1U), (uint32_t)REQUEST_CARDS_MAX);
    if (r->n_demands > 1 && rd->code == OK)
        rd->code = err_set(rd->reterr, ERR_RANGE,
                           "%.*s: one container asks for whole cards, and another one for cards, "
                           "too: give each a pod",
                           STR_ARG(rd->dialect->cores));
}

static void request_read_other_shape(struct reader *rd)
{
    const struct pod_view *pod = rd->pod;
    if (pod->percent.p != NULL)
        (void)request_refuse(rd, "annotation", CARDPACK_ANNOTATION_PERCENT, pod->percent,
                             "is only for pods with aliyun.com/gpu-mem");
    if (rd->dialect->multiple)
        request_read_multiple(rd);
}

static void request_read_shape(struct reader *rd)
{
    const struct pod_view *pod = rd->pod;
    struct request *r = rd->request;
    r->cards = request_read_number(rd, "label", GPUSHARE_LABEL_COUNT, pod->count_label,
                                   REQUEST_CARDS_MAX, "must be a number of cards, 1 to 64");
    if (r->n_demands == 0)
        r->cards = 0; /* nothing to divide */
    r->percent =
        request_read_number(rd, "annotation", CARDPACK_ANNOTATION_PERCENT, pod->percent, 100,
                            "must be a whole number from 1 to 100, without a percent sign");
    r->whole = str_eq(str_trim(pod->whole_label), GPUSHARE_WHOLE_DEVICE);
    if (pod->whole_label.n > 0 && !r->whole)
        (void)request_refuse(rd, "label", GPUSHARE_LABEL_PLACEMENT, pod->whole_label,
                             "must be require-whole-device");
    bool some = false;
    for (uint32_t i = 0; i < r->n_demands; i++)
        some = some || r->demands[i].mem > 0;
    if (!some && (r->whole || r->percent > 0)) {
        (void)request_refuse(rd, r->whole ? "label" : "annotation",
                             r->whole ? GPUSHARE_LABEL_PLACEMENT : CARDPACK_ANNOTATION_PERCENT,
                             r->whole ? pod->whole_label : pod->percent, ZERO_RULE);
        r->whole = false;
        r->percent = 0;
    }
    request_check_division(rd);
}

/* The compute that one card must have free, if each container gets its own card where that is
 * allowed. */
static uint32_t request_cores_of_card(const struct request *r)
{
    uint32_t most = 0;
    bool own = request_by_container(r);
    if (!request_may_part(r) && !own)
        return r->cores / request_cards(r);
    for (uint32_t i = 0; i < r->n_demands; i++)
        most = MAX_OF(most, r->demands[i].cores / (own ? r->demands[i].cards : 1));
    return most;
}

static void request_check_cores(struct reader *rd)
{
    struct request *r = rd->request;
    uint32_t cards = request_cards(r);
    if (rd->code != OK || r->cores == 0)
        return;
    uint32_t most = request_cores_of_card(r);
    if (!request_shares(r))
        rd->code = err_set(rd->reterr, ERR_RANGE, "%.*s: \"%u\" without %.*s: add a limit %.*s",
                           STR_ARG(rd->dialect->cores), r->cores, STR_ARG(rd->dialect->mem),
                           STR_ARG(rd->dialect->mem));
    else if (most > REQUEST_CORES_MAX)
        rd->code = err_set(rd->reterr, ERR_RANGE, "%.*s: \"%u\" is more than %u of %u card%s%s%.*s",
                           STR_ARG(rd->dialect->cores), most * cards, REQUEST_CORES_MAX * cards,
                           cards, cards == 1 ? "" : "s", cards == 1 ? "" : ", the number in label ",
                           cards == 1 ? 0 : (int)GPUSHARE_LABEL_COUNT.n, GPUSHARE_LABEL_COUNT.p);
}

/* A Binding of a pod without cards of ours adds none. */
static void request_check_annotations(struct reader *rd)
{
    size_t n = rd->pod->annotation_bytes;
    if (rd->code == OK && !pod_view_bound(rd->pod) && request_shares(rd->request) &&
        n > LIMIT_ANNOTATIONS_BYTES)
        rd->code = err_set(rd->reterr, ERR_RANGE,
                           "its annotations have %zu bytes, %zu at most: the Binding adds some, "
                           "and above %zu the API server refuses every change of a pod; remove or "
                           "shorten annotations",
                           n, LIMIT_ANNOTATIONS_BYTES, LIMIT_ANNOTATIONS_API_BYTES);
}

enum errc request_read(const struct pod_view *pod, struct request *ret, struct err *reterr)
{
    struct tally mem = {0};
    struct tally cores = {0};
    struct tally exclusive = {0};
    struct tally renamed = {0};
    *ret = (struct request){.host = host_clamp(pod->host),
                            .classes = pod->classes,
                            .n_classes = (uint32_t)pod->n_classes};
    struct reader rd = {.pod = pod, .request = ret, .code = OK, .reterr = reterr};
    request_find_dialect(&rd);
    request_read_containers(&rd, &mem, &cores, &exclusive, &renamed);
    const struct measure measure_mem = request_measure_mem(rd.dialect);
    int64_t overhead =
        request_amount(&rd, ret->dialect == DIALECT_OWN ? pod->mem_overhead : STR_NULL,
                       &measure_mem, "overhead of pod", pod->name);
    int64_t peak = tally_sum(tally_peak(&mem), overhead, MEM_CAP);
    if (peak > REQUEST_MEM_MAX && rd.code == OK)
        rd.code = err_set(reterr, ERR_RANGE, "%.*s: the containers' sum is out of range",
                          STR_ARG(rd.dialect->mem));
    ret->mem = MIN_OF(peak, REQUEST_MEM_MAX);
    ret->lasting_mem = MIN_OF(tally_sum(mem.sum, overhead, MEM_CAP), REQUEST_MEM_MAX);
    ret->cores = (uint32_t)MIN_OF(tally_peak(&cores), (int64_t)UINT16_MAX);
    ret->lasting_cores = (uint32_t)MIN_OF(cores.sum, (int64_t)UINT16_MAX);
    ret->exclusive = (uint32_t)MIN_OF(tally_peak(&exclusive), (int64_t)INT32_MAX);
    ret->renamed = (uint32_t)MIN_OF(tally_peak(&renamed), (int64_t)UINT16_MAX);
    ret->claims = ret->exclusive > 0 && pod_view_bound(pod) ? pod->claims | CLAIMS_KNOWN : 0;
    assert(ret->lasting_mem <= ret->mem && ret->lasting_cores <= ret->cores);
    if (rd.named && ret->dialect == DIALECT_OWN)
        request_read_shape(&rd);
    else if (rd.named)
        request_read_other_shape(&rd);
    if (rd.named || ret->exclusive > 0 || ret->cores > 0)
        request_read_wishes(&rd);
    request_check_cores(&rd);
    request_check_annotations(&rd);
    if (pod->fault.n > 0 && rd.code == OK)
        rd.code = err_set(reterr, ERR_SYNTAX, "it can't be read: %.*s", STR_ARG(pod->fault));
    return rd.code;
}
