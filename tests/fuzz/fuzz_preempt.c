/*
 * Compares the reader of ExtenderPreemptionArgs with jansson's tree. The written result must be
 * valid JSON that names each victim, and no node without a victim.
 */
#include "extender/extender_preempt.h"
#include "objects/kube.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The last of the members whose names differ only in case; NULL: absent or null. */
static const json_t *member(json_t *object, const char *name)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *last = NULL;
    json_object_foreach(object, key, value)
    {
        if (str_eq_nocase(str_of(key), str_of(name)))
            last = value;
    }
    return json_is_null(last) ? NULL : last;
}

/* Whether a key appears twice in different cases: cardpack then merges a Pod, which jansson
 * can't. */
static bool ambiguous(json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    unsigned pods = 0;
    json_object_foreach(object, key, value) pods += str_eq_nocase(str_of(key), STR("Pod")) ? 1 : 0;
    return pods > 1;
}

static void same_victims(const struct node_victims *node, json_t *victims, bool meta)
{
    const json_t *pods = member(victims, "Pods");
    const json_t *violations = member(victims, "NumPDBViolations");
    check(node->n == json_array_size(pods), "as many victims as jansson's");
    check(node->num_pdb_violations == json_integer_value(violations), "the same violations");
    for (size_t i = 0; i < node->n; i++) {
        json_t *pod = json_array_get(pods, i);
        const json_t *uid =
            meta ? member(pod, "UID") : json_object_get(json_object_get(pod, "metadata"), "uid");
        check(node->uids[i].n > 0 && str_eq(node->uids[i], jansson_str(uid)), "the same UID");
    }
}

static void compare(const struct preempt_args *args, json_t *json)
{
    const json_t *meta = member(json, "NodeNameToMetaVictims");
    const json_t *nodes = meta != NULL ? meta : member(json, "NodeNameToVictims");
    check(json_is_object(nodes) && args->n == json_object_size(nodes), "the same nodes");
    for (size_t i = 0; i < args->n; i++) {
        struct str name = args->nodes[i].node;
        json_t *victims = json_object_getn(nodes, name.p, name.n);
        check(victims != NULL, "a node that jansson knows");
        same_victims(&args->nodes[i], victims, meta != NULL);
    }
    same_text(args->pod.name,
              json_object_get(json_object_get(member(json, "Pod"), "metadata"), "name"));
}

static void check_answer(const struct preempt_args *args)
{
    struct buf out;
    size_t left = 0;
    buf_init(&out, 16 * MIB);
    extender_preempt_write(&out, args->nodes, args->n);
    check(!buf_failed(&out), "the answer fits");
    json_t *json = answer_reads(buf_str(&out));
    const json_t *nodes = json_object_get(json, "NodeNameToMetaVictims");
    for (size_t i = 0; i < args->n; i++) {
        const struct node_victims *node = &args->nodes[i];
        check(i == 0 || str_cmp(args->nodes[i - 1].node, node->node) < 0, "sorted, none twice");
        left += node->n > 0 ? 1 : 0;
        if (json != NULL && node->n > 0)
            same_victims(node, json_object_getn(nodes, node->node.p, node->node.n), true);
    }
    check(json == NULL || (json_is_object(nodes) && json_object_size(nodes) == left),
          "no node without a victim");
    json_decref(json);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    struct preempt_args args;
    struct arena arena;
    struct err err = ERR_INIT;
    arena_init(&arena, MIB);
    if (extender_preempt_read(body, &arena, &args, &err) == OK) {
        check_answer(&args);
        json_t *json = jansson_reads(body);
        if (json != NULL && !ambiguous(json))
            compare(&args, json);
        json_decref(json);
    } else {
        check(str_starts(str_of(err.text), STR("ExtenderPreemptionArgs: ")), "an error says whose");
    }
    arena_done(&arena);
    return 0;
}
