/* Releases the locks of ended binds. */
#include "daemon/bind/unlock.h"

#include "base/log.h"

/* How long other pods wait for a lock at most: NodeLockTimeout of HAMi and Volcano. */
#define EXPIRES_MS UINT64_C(300000)

#define PAUSE_MS     1000
#define PAUSE_MAX_MS 30000

/* LOOK_MS: how often a bound pod is looked at. GONE_MS: for how long after a pod is gone a kubelet
 * that has not seen this may still ask the plugin for it. In that time the plugin must not find
 * another pod. */
#define LOOK_MS 1000
#define GONE_MS 10000

/* Without the right to patch nodes nothing changes by itself. */
static bool unlock_may_help(const struct bind_op *op, uint64_t now_ms)
{
    return op->lock.err.code != ERR_DENIED && now_ms < op->unlock_until_ms;
}

static void unlock_end(struct bind_op *op)
{
    list_remove(&op->link);
    op->unlocker->ended(op);
}

static void unlock_released(struct node_lock *l)
{
    struct bind_op *op = CONTAINER_OF(l, struct bind_op, lock);
    struct unlocker *u = op->unlocker;
    if (l->result != NODE_LOCK_TAKEN && unlock_may_help(op, loop_now_ms(u->loop))) {
        timer_arm(u->loop, &op->wake, op->unlock_pause_ms);
        op->unlock_pause_ms = MIN_OF(2 * op->unlock_pause_ms, (uint64_t)PAUSE_MAX_MS);
        return;
    }
    if (l->result != NODE_LOCK_TAKEN)
        log_warn("can't remove the lock of a node", kv_str("node", op->node),
                 kv_str("pod", op->name), kv_cstr("error", l->err.text));
    unlock_end(op);
}

static void unlock_again(struct timer *t)
{
    node_lock_release(&CONTAINER_OF(t, struct bind_op, wake)->lock);
}

/* Whether the plugin has served the pod, as the watch shows, or a read after the last Binding. */
static bool unlock_is_served(const struct bind_op *op, const struct pod *p)
{
    enum dialect d = op->binding.dialect;
    return (p != NULL && p->ack == POD_ACK_SERVED) ||
           (op->call.get == GET_FOUND && str_eq(op->call.pod.uid, op->uid) &&
            str_eq(op->call.pod.said[d].assigned, dialect_served(d)));
}

/* Waits until the plugin has served the bound pod and removes the lock, or until the pod is gone.
 */
static void unlock_look(struct timer *t)
{
    struct bind_op *op = CONTAINER_OF(t, struct bind_op, wake);
    struct unlocker *u = op->unlocker;
    const struct pod *p = cache_pod(u->cache, op->uid);
    bool gone = p == NULL || p->node == NULL || !str_eq(p->node->name, op->node);
    if (!gone && (p->ack == POD_ACK_SERVED || loop_now_ms(u->loop) >= op->unlock_until_ms)) {
        unlock_end(op);
        return;
    }
    op->wake.fire = gone ? unlock_again : unlock_look;
    timer_arm(u->loop, &op->wake, gone ? GONE_MS : LOOK_MS);
}

void unlock_begin(struct unlocker *u, struct bind_op *op, bool failed)
{
    assert(op->lock.tried && !timer_armed(&op->wake));
    list_push_back(&u->ops, &op->link);
    op->unlocker = u;
    op->unlock_until_ms = loop_now_ms(u->loop) + EXPIRES_MS;
    op->unlock_pause_ms = PAUSE_MS;
    op->wake.fire = unlock_again;
    op->lock.done = unlock_released;
    if (failed || unlock_is_served(op, cache_pod(u->cache, op->uid)))
        node_lock_release(&op->lock);
    else if (dialect_facts(op->lock.dialect)->lock_owner)
        unlock_end(op);
    else
        unlock_look(&op->wake);
}

void unlock_done(struct unlocker *u)
{
    LIST_FOR_EACH (struct bind_op, op, &u->ops, link) {
        timer_cancel(&op->wake);
        list_remove(&op->link);
        bind_op_free(op);
    }
}
