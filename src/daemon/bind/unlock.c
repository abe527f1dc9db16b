/* Releases the locks of ended binds. */
#include "daemon/bind/unlock.h"

#include "base/log.h"

/* How long other pods wait for a lock at most: NodeLockTimeout of HAMi and Volcano. */
#define EXPIRES_MS UINT64_C(300000)

#define PAUSE_MS     1000
#define PAUSE_MAX_MS 30000

/* Without the right to patch nodes nothing changes by itself. */
static bool unlock_may_help(const struct bind_op *op, uint64_t now_ms)
{
    return op->lock.err.code != ERR_DENIED && now_ms < op->unlock_until_ms;
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
    list_remove(&op->link);
    u->ended(op);
}

static void unlock_again(struct timer *t)
{
    node_lock_release(&CONTAINER_OF(t, struct bind_op, wake)->lock);
}

void unlock_begin(struct unlocker *u, struct bind_op *op)
{
    assert(!timer_armed(&op->wake));
    list_push_back(&u->ops, &op->link);
    op->unlocker = u;
    op->unlock_until_ms = loop_now_ms(u->loop) + EXPIRES_MS;
    op->unlock_pause_ms = PAUSE_MS;
    op->wake.fire = unlock_again;
    op->lock.done = unlock_released;
    node_lock_release(&op->lock);
}

void unlock_done(struct unlocker *u)
{
    LIST_FOR_EACH (struct bind_op, op, &u->ops, link) {
        timer_cancel(&op->wake);
        list_remove(&op->link);
        bind_op_free(op);
    }
}
